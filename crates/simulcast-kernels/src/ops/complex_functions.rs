//! Functions of complex numbers, computed in `f64`.
//!
//! Kahan's formulas ("Branch cuts for complex elementary functions", 1987), which cancel neither
//! near the branch points nor for large and small numbers; signed zeros choose the side of a cut.
//! Each part is within 16 units in the last place of the larger part. Infinities, NaN and zeros give
//! what NumPy gives, which is what Annex G of C99 says and what glibc does where it says nothing.

use num_complex::Complex;

type C = Complex<f64>;

/// Beyond it the 1 that is added to a number is lost, and its square may be infinite.
const LARGE: f64 = 1e150;

/// Below it the square of a number may be lost, and is lost beside 1 in any case.
const SMALL: f64 = 1e-150;

fn is_small(z: C) -> bool {
    z.re.abs() < SMALL && z.im.abs() < SMALL
}

const fn c(re: f64, im: f64) -> C {
    Complex { re, im }
}

/// `i * z`, exactly.
fn turned(z: C) -> C {
    c(-z.im, z.re)
}

/// `-i * z`, exactly.
fn turned_back(z: C) -> C {
    c(z.im, -z.re)
}

pub(super) fn sqrt(z: C) -> C {
    let (x, y) = (z.re, z.im);
    if x == 0.0 && y == 0.0 {
        return c(0.0, y);
    }
    if y.is_infinite() {
        return c(f64::INFINITY, y);
    }
    if x.is_infinite() {
        let small = if y.is_nan() { y } else { 0.0_f64.copysign(y) };
        return if x > 0.0 { c(x, small) } else { c(small.abs(), x.abs().copysign(y)) };
    }
    // Away from the ends of the range, where doubling would overflow or halving lose bits.
    let (factor, root) = match x.abs().max(y.abs()) {
        large if large > 1e300 => (0.0625, 4.0),
        small if small < 1e-290 => (2.0_f64.powi(108), 2.0_f64.powi(-54)),
        _ => (1.0, 1.0),
    };
    let (x, y) = (x * factor, y * factor);
    let long = ((x.abs() + x.hypot(y)) / 2.0).sqrt();
    let short = y.abs() / (2.0 * long);
    let (re, im) = if x >= 0.0 { (long, short) } else { (short, long) };
    c(re * root, (im * root).copysign(y))
}

pub(super) fn exp(z: C) -> C {
    let (x, y) = (z.re, z.im);
    if y == 0.0 {
        return c(x.exp(), y);
    }
    if x == f64::NEG_INFINITY && !y.is_finite() {
        return c(0.0, 0.0_f64.copysign(y));
    }
    if x == f64::INFINITY && !y.is_finite() {
        return c(x, f64::NAN);
    }
    scaled_exp(1.0, x, y)
}

/// `scale * e^(x + iy)`, in two steps where `e^x` alone would be infinite.
fn scaled_exp(scale: f64, x: f64, y: f64) -> C {
    let (first, rest) =
        if x > 700.0 { ((x - 700.0).exp(), 700.0_f64.exp()) } else { (x.exp(), 1.0) };
    c(scale * first * y.cos() * rest, scale * first * y.sin() * rest)
}

pub(super) fn exp2(z: C) -> C {
    exp(c(z.re * std::f64::consts::LN_2, z.im * std::f64::consts::LN_2))
}

pub(super) fn expm1(z: C) -> C {
    let half = (z.im / 2.0).sin();
    let (grown, sine) = (z.re.exp_m1(), z.im.sin());
    c(grown * z.im.cos() - 2.0 * half * half, z.re.exp() * sine)
}

/// The logarithm of `|z|`.
fn log_abs(z: C) -> f64 {
    let (large, small) = (z.re.abs().max(z.im.abs()), z.re.abs().min(z.im.abs()));
    if z.re.is_infinite() || z.im.is_infinite() {
        return f64::INFINITY;
    }
    if (0.5..=2.0).contains(&large) && z.re.hypot(z.im) < 3.0 {
        // Near 1, from what |z|^2 is more than 1; the square is split so that nothing is lost.
        let (a, b) = (large - 1.0, large + 1.0);
        let (product, rest) = (a * b, a.mul_add(b, -(a * b)));
        let (square, left) = (small * small, small.mul_add(small, -(small * small)));
        return (product + square + (rest + left)).ln_1p() / 2.0;
    }
    if large < 1e-300 {
        let scaled = (z.re * 2.0_f64.powi(600)).hypot(z.im * 2.0_f64.powi(600));
        return scaled.ln() - 600.0 * std::f64::consts::LN_2;
    }
    if large > 1e300 {
        return (z.re / 4.0).hypot(z.im / 4.0).ln() + 2.0 * std::f64::consts::LN_2;
    }
    z.re.hypot(z.im).ln()
}

pub(super) fn log(z: C) -> C {
    c(log_abs(z), z.im.atan2(z.re))
}

pub(super) fn log2(z: C) -> C {
    let log = log(z);
    c(log.re * std::f64::consts::LOG2_E, log.im * std::f64::consts::LOG2_E)
}

pub(super) fn log10(z: C) -> C {
    let log = log(z);
    c(log.re * std::f64::consts::LOG10_E, log.im * std::f64::consts::LOG10_E)
}

pub(super) fn log1p(z: C) -> C {
    let im = z.im.atan2(1.0 + z.re);
    let size = z.re.abs().max(z.im.abs());
    if size < 0.5 {
        // |1 + z|^2 = 1 + x (2 + x) + y^2
        let (x, y) = (z.re, z.im);
        return c((x * (2.0 + x) + y * y).ln_1p() / 2.0, im);
    }
    c(log_abs(c(1.0 + z.re, z.im)), im)
}

pub(super) fn sinh(z: C) -> C {
    if z.im == 0.0 {
        return c(z.re.sinh(), z.im);
    }
    if !z.im.is_finite() && (z.re == 0.0 || z.re.is_infinite()) {
        return c(if z.re == 0.0 { z.re } else { f64::INFINITY }, f64::NAN);
    }
    if z.re.abs() > 700.0 && z.re.is_finite() {
        let both = scaled_exp(0.5, z.re.abs(), z.im);
        return c(both.re * z.re.signum(), both.im);
    }
    let (sin, cos) = z.im.sin_cos();
    c(z.re.sinh() * cos, z.re.cosh() * sin)
}

pub(super) fn cosh(z: C) -> C {
    if !z.im.is_finite() && (z.re == 0.0 || z.re.is_infinite()) {
        return if z.re == 0.0 { c(f64::NAN, 0.0) } else { c(f64::INFINITY, f64::NAN) };
    }
    if z.im == 0.0 {
        return c(z.re.cosh(), if z.re.is_nan() { z.im } else { z.im * 1.0_f64.copysign(z.re) });
    }
    if z.re.abs() > 700.0 && z.re.is_finite() {
        let both = scaled_exp(0.5, z.re.abs(), z.im);
        return c(both.re, both.im * z.re.signum());
    }
    let (sin, cos) = z.im.sin_cos();
    c(z.re.cosh() * cos, z.re.sinh() * sin)
}

pub(super) fn tanh(z: C) -> C {
    if z.im == 0.0 || z.re == 0.0 && !z.im.is_finite() {
        return if z.im == 0.0 { c(z.re.tanh(), z.im) } else { c(z.re, f64::NAN) };
    }
    if !z.im.is_finite() {
        return match z.re.is_infinite() {
            true => c(1.0_f64.copysign(z.re), 0.0_f64.copysign(z.im)),
            false => c(f64::NAN, f64::NAN),
        };
    }
    if z.re.abs() > 20.0 {
        // One, but for terms below its last place; the imaginary part is still told from 0, and has its sign there.
        let decay = (-z.re.abs()).exp();
        return c(1.0_f64.copysign(z.re), 4.0 * z.im.sin() * z.im.cos() * decay * decay);
    }
    let (tangent, sine) = (z.im.tan(), z.re.sinh());
    let beta = 1.0 + tangent * tangent;
    let rho = (1.0 + sine * sine).sqrt();
    if tangent.is_infinite() {
        return c(rho / sine, 1.0 / tangent);
    }
    let below = 1.0 + beta * sine * sine;
    c(beta * rho * sine / below, tangent / below)
}

pub(super) fn sin(z: C) -> C {
    if z.im.is_infinite() && !z.re.is_finite() {
        return c(f64::NAN, f64::INFINITY);
    }
    turned_back(sinh(turned(z)))
}

pub(super) fn cos(z: C) -> C {
    cosh(turned(z))
}

pub(super) fn tan(z: C) -> C {
    turned_back(tanh(turned(z)))
}

pub(super) fn arcsin(z: C) -> C {
    if z.re == 0.0 && z.im.is_nan() {
        return z;
    }
    let size = z.re.abs().max(z.im.abs());
    if is_small(z) {
        return z;
    }
    if size > LARGE {
        // asin(z) is that of a half plus the logarithm of 2 z.
        let im = (log_abs(z) + std::f64::consts::LN_2).copysign(z.im);
        return c(z.re.atan2(z.im.abs()), im);
    }
    let (minus, plus) = (sqrt(c(1.0 - z.re, -z.im)), sqrt(c(1.0 + z.re, z.im)));
    let re = z.re.atan2(minus.re * plus.re - minus.im * plus.im);
    let im = (minus.re * plus.im - minus.im * plus.re).asinh();
    c(re, im)
}

pub(super) fn arccos(z: C) -> C {
    if z.re == 0.0 && z.im.is_nan() {
        return c(std::f64::consts::FRAC_PI_2, z.im);
    }
    let size = z.re.abs().max(z.im.abs());
    if is_small(z) {
        return c(std::f64::consts::FRAC_PI_2, -z.im);
    }
    if size > LARGE {
        let im = (log_abs(z) + std::f64::consts::LN_2).copysign(-z.im);
        return c(z.im.abs().atan2(z.re), im);
    }
    let (minus, plus) = (sqrt(c(1.0 - z.re, -z.im)), sqrt(c(1.0 + z.re, z.im)));
    let re = 2.0 * minus.re.atan2(plus.re);
    let im = (plus.re * minus.im - plus.im * minus.re).asinh();
    c(re, im)
}

pub(super) fn arcsinh(z: C) -> C {
    turned_back(arcsin(turned(z)))
}

pub(super) fn arccosh(z: C) -> C {
    if z.re == 0.0 && z.im.is_nan() {
        return c(z.im, std::f64::consts::FRAC_PI_2);
    }
    let size = z.re.abs().max(z.im.abs());
    if is_small(z) {
        return c(z.im.abs(), std::f64::consts::FRAC_PI_2.copysign(z.im));
    }
    if size > LARGE {
        return c(log_abs(z) + std::f64::consts::LN_2, z.im.atan2(z.re));
    }
    let (minus, plus) = (sqrt(c(z.re - 1.0, z.im)), sqrt(c(z.re + 1.0, z.im)));
    let re = (minus.re * plus.re + minus.im * plus.im).asinh();
    c(re, 2.0 * minus.im.atan2(plus.re))
}

pub(super) fn arctanh(z: C) -> C {
    if z.re == 0.0 && z.im.is_nan() {
        return z;
    }
    let (x, y) = (z.re.abs(), z.im);
    let size = x.max(y.abs());
    if size > LARGE {
        let quarter = if y.is_nan() { y } else { std::f64::consts::FRAC_PI_2.copysign(y) };
        if !size.is_finite() {
            return c(0.0_f64.copysign(z.re), quarter);
        }
        if x.is_nan() || y.is_nan() {
            return c(f64::NAN, f64::NAN);
        }
        let (x, y) = (x / size, y / size);
        return c((x / (x * x + y * y) / size).copysign(z.re), quarter);
    }
    let apart = (1.0 - x) * (1.0 - x) + y * y;
    let re = match x == 1.0 && y.abs() < SMALL {
        // Beside the pole, where the square is 0 and its quotient infinite.
        true => (std::f64::consts::LN_2 - y.abs().ln()) / 2.0,
        false => (4.0 * x / apart).ln_1p() / 4.0,
    };
    c(re.copysign(z.re), (2.0 * y).atan2((1.0 - x) * (1.0 + x) - y * y) / 2.0)
}

pub(super) fn arctan(z: C) -> C {
    turned_back(arctanh(turned(z)))
}

/// By products where the exponent is a small whole number, as NumPy; otherwise by the logarithm.
pub(super) fn power(a: C, b: C) -> C {
    if b.re == 0.0 && b.im == 0.0 {
        return c(1.0, 0.0);
    }
    if a.re == 0.0 && a.im == 0.0 {
        return if b.re > 0.0 { c(0.0, 0.0) } else { c(f64::NAN, f64::NAN) };
    }
    // Without a factor of 1, whose imaginary 0 makes NaN of what is infinite.
    match (b.re, b.im) {
        (1.0, 0.0) => return a,
        (2.0, 0.0) => return a * a,
        (3.0, 0.0) => return a * (a * a),
        _ => {}
    }
    if b.im == 0.0 && b.re == b.re.trunc() && b.re.abs() < 100.0 {
        let mut left = b.re.abs() as u32;
        let (mut result, mut square) = (c(1.0, 0.0), a);
        while left > 0 {
            if left & 1 == 1 {
                result *= square;
            }
            square *= square;
            left >>= 1;
        }
        return if b.re < 0.0 { crate::ops::complex::divide(c(1.0, 0.0), result) } else { result };
    }
    exp(annex_g_product(b, log(a)))
}

/// The product of Annex G of C99, in which a factor that is infinite makes an infinite product: with NumPy, the exponent
/// is multiplied with the logarithm so.
fn annex_g_product(a: C, b: C) -> C {
    let plain = a * b;
    if !(plain.re.is_nan() && plain.im.is_nan()) {
        return plain;
    }
    // An infinite number is told by its direction: each part 1 or 0, with its sign.
    let boxed = |z: C| {
        let part = |part: f64| f64::from(u8::from(part.is_infinite())).copysign(part);
        c(part(z.re), part(z.im))
    };
    let unless_nan = |z: C| {
        let part = |part: f64| if part.is_nan() { 0.0_f64.copysign(part) } else { part };
        c(part(z.re), part(z.im))
    };
    let is_infinite = |z: C| z.re.is_infinite() || z.im.is_infinite();
    let (mut own, mut other, mut again) = (a, b, false);
    if is_infinite(own) {
        (own, other, again) = (boxed(own), unless_nan(other), true);
    }
    if is_infinite(other) {
        (own, other, again) = (unless_nan(own), boxed(other), true);
    }
    let products = [a.re * b.re, a.im * b.im, a.re * b.im, a.im * b.re];
    if !again && products.iter().any(|product| product.is_infinite()) {
        (own, other, again) = (unless_nan(own), unless_nan(other), true);
    }
    match again {
        true => c(
            f64::INFINITY * (own.re * other.re - own.im * other.im),
            f64::INFINITY * (own.re * other.im + own.im * other.re),
        ),
        false => plain,
    }
}
