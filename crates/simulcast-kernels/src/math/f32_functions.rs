//! Functions of `f32`, computed in `f64` with the number of terms that `f32` needs.
//!
//! The formulas are those of `f64`, with three simplifications: no intermediate result overflows, one short polynomial
//! replaces a quotient of two, and intermediate rounding does not matter. Before the final rounding, the error is below a
//! hundredth of an ULP.
//!
//! ```text
//! atan a = π/2 + atan (-1 / a) = π/4 + atan ((a - 1) / (a + 1))       one of the three
//! asin a = π/2 - 2 asin √((1 - a) / 2)                                above 1/2
//! 2 sinh a = 2^n ((1 - t) cosh r + (1 + t) sinh r)                    a = n ln 2 + r, t = 4^-n
//! 2 cosh a = 2^n ((1 + t) cosh r + (1 - t) sinh r)
//! asinh a = log (a + √(a² + 1))                                       and series near 0
//! acosh x = log (1 + (t + √(t (t + 2))))                              t = x - 1
//! atanh a = log ((1 + a) / (1 - a)) / 2                               and series near 0
//! ∛(m 2^(3 q + k)) = ∛m ∛2^k 2^q                                      a cubic, then one of Halley's steps
//! ```

use std::f64::consts::{FRAC_PI_2, FRAC_PI_4, LN_2, LOG2_E, PI};

use crate::math::lane::{Lane, polynomial, power};

/// The angle of `above / below`, neither of which is negative or both infinite.
#[inline(always)]
fn angle<const FMA: bool>(above: f64, below: f64) -> f64 {
    const P: [f64; 6] = [
        -0.333_333_332_792_245_4,
        0.199_999_772_482_335_3,
        -0.142_841_506_297_302_88,
        0.110_713_545_712_013_51,
        -0.086_245_982_151_961_26,
        0.050_479_374_320_400_91,
    ];
    const ROOT: f64 = std::f64::consts::SQRT_2;
    let (large, middle) = (above > (ROOT + 1.0) * below, above > (ROOT - 1.0) * below);
    let (over, under, base) = if large {
        (-below, above, FRAC_PI_2)
    } else if middle {
        (above - below, above + below, FRAC_PI_4)
    } else {
        (above, below, 0.0)
    };
    let t = over / under;
    let z = t * t;
    base + t.fma::<FMA>(z * polynomial::<f64, FMA>(z, &P), t)
}

/// The angle of a tangent.
#[inline(always)]
pub(super) fn atan<const FMA: bool>(x: f64) -> f64 {
    angle::<FMA>(x.abs(), 1.0).copysign(x)
}

/// The angle of the point `(x, y)`.
#[inline(always)]
pub(super) fn atan2<const FMA: bool>(y: f64, x: f64) -> f64 {
    let (a, b) = (y.abs(), x.abs());
    let both = a == f64::INFINITY && b == f64::INFINITY;
    let (above, below) = if both { (1.0, 1.0) } else { (a, b) };
    // Of no distance the angle is 0, not that of 0 / 0.
    let below = if a == 0.0 && b == 0.0 { 1.0 } else { below };
    let angle = angle::<FMA>(above, below);
    let angle = if 1.0_f64.copysign(x) < 0.0 { PI - angle } else { angle };
    let nan = x + y;
    if nan.is_nan() && !both { nan } else { angle.copysign(y) }
}

/// Whether `a` is above 1/2, and the arc of the sine that is `a`, or that of half the angle of that cosine.
#[inline(always)]
fn arc<const FMA: bool>(a: f64) -> (bool, f64) {
    const P: [f64; 7] = [
        0.166_666_666_860_856_43,
        0.074_999_924_044_018_38,
        0.044_647_663_888_134_85,
        0.030_269_138_728_589_183,
        0.023_611_817_008_891_752,
        0.010_574_415_516_912_909,
        0.030_974_540_371_355_073,
    ];
    let large = a > 0.5;
    let z = if large { (1.0 - a) * 0.5 } else { a * a };
    let t = if large { z.sqrt() } else { a };
    (large, t.fma::<FMA>(z * polynomial::<f64, FMA>(z, &P), t))
}

/// The angle of a sine.
#[inline(always)]
pub(super) fn asin<const FMA: bool>(x: f64) -> f64 {
    let (large, arc) = arc::<FMA>(x.abs());
    (if large { FRAC_PI_2 - 2.0 * arc } else { arc }).copysign(x)
}

/// The angle of a cosine.
#[inline(always)]
pub(super) fn acos<const FMA: bool>(x: f64) -> f64 {
    let (large, arc) = arc::<FMA>(x.abs());
    let arc = arc.copysign(x);
    let base = if x < 0.0 { PI } else { 0.0 };
    if large { base + 2.0 * arc } else { FRAC_PI_2 - arc }
}

/// `2 sinh |x|` or, with a `sign` of 1, `2 cosh x`.
#[inline(always)]
fn doubled<const FMA: bool>(x: f64, sign: f64) -> f64 {
    const COSH: [f64; 5] = [1.0, 1.0 / 2.0, 1.0 / 24.0, 1.0 / 720.0, 1.0 / 40_320.0];
    const SINH: [f64; 5] = [1.0, 1.0 / 6.0, 1.0 / 120.0, 1.0 / 5_040.0, 1.0 / 362_880.0];
    let a = x.abs();
    // Far beyond what `f32` holds.
    let a = if a > 200.0 { 200.0 } else { a };
    let n = a.fma::<FMA>(LOG2_E, f64::MAGIC) - f64::MAGIC;
    let r = n.fma::<FMA>(-LN_2, a);
    let z = r * r;
    let t = sign * power::<f64>(-2.0 * n);
    let odd = (1.0 - t) * r * polynomial::<f64, FMA>(z, &SINH);
    (1.0 + t).fma::<FMA>(polynomial::<f64, FMA>(z, &COSH), odd) * power::<f64>(n)
}

/// The hyperbolic sine.
#[inline(always)]
pub(super) fn sinh<const FMA: bool>(x: f64) -> f64 {
    (0.5 * doubled::<FMA>(x, -1.0)).copysign(x)
}

/// The hyperbolic cosine.
#[inline(always)]
pub(super) fn cosh<const FMA: bool>(x: f64) -> f64 {
    0.5 * doubled::<FMA>(x, 1.0)
}

/// The natural logarithm of a number that is positive and finite; something near it otherwise.
#[inline(always)]
fn log<const FMA: bool>(x: f64) -> f64 {
    const R: [f64; 4] = [
        0.666_666_665_544_516_5,
        0.400_001_218_769_72,
        0.285_508_165_997_115_5,
        0.233_305_819_382_418_93,
    ];
    let (e, m) = x.parts();
    let f = m - 1.0;
    let s = f / (2.0 + f);
    let z = s * s;
    let small = s * (z.fma::<FMA>(polynomial::<f64, FMA>(z, &R), 2.0));
    e.fma::<FMA>(LN_2, small)
}

/// Where the logarithm of a number near 1 would lose digits, a series takes its place.
const NEAR: f64 = 0.01;

/// The inverse hyperbolic sine.
#[inline(always)]
pub(super) fn asinh<const FMA: bool>(x: f64) -> f64 {
    let a = x.abs();
    let z = a * a;
    let near = a.fma::<FMA>(z * z.fma::<FMA>(3.0 / 40.0, -1.0 / 6.0), a);
    let far = log::<FMA>(a + (z + 1.0).sqrt());
    let y = if a < NEAR { near } else { far };
    (if a < f64::INFINITY { y } else { a }).copysign(x)
}

/// The inverse hyperbolic cosine.
#[inline(always)]
pub(super) fn acosh<const FMA: bool>(x: f64) -> f64 {
    let t = x - 1.0;
    let y = log::<FMA>(1.0 + (t + (t * (t + 2.0)).sqrt()));
    let y = if x < f64::INFINITY { y } else { x };
    if x < 1.0 { f64::NAN } else { y }
}

/// The inverse hyperbolic tangent.
#[inline(always)]
pub(super) fn atanh<const FMA: bool>(x: f64) -> f64 {
    let a = x.abs();
    let z = a * a;
    let near = a.fma::<FMA>(z * z.fma::<FMA>(1.0 / 5.0, 1.0 / 3.0), a);
    let far = 0.5 * log::<FMA>((1.0 + a) / (1.0 - a));
    let y = if a < NEAR { near } else { far };
    let edge = if a == 1.0 { f64::INFINITY } else { f64::NAN };
    (if a < 1.0 { y } else { edge }).copysign(x)
}

/// The cube root.
#[inline(always)]
pub(super) fn cbrt<const FMA: bool>(x: f64) -> f64 {
    const P: [f64; 4] = [
        0.495_154_223_574_295_84,
        0.731_790_208_590_190_1,
        -0.282_696_667_683_699_2,
        0.055_808_000_665_353_25,
    ];
    /// The roots of 1/2 and of 2.
    const ROOTS: [f64; 2] = [0.793_700_525_984_099_8, 1.259_921_049_894_873_2];
    let a = x.abs();
    let (e, m) = a.parts();
    let q = e.fma::<FMA>(1.0 / 3.0, f64::MAGIC) - f64::MAGIC;
    let k = e - 3.0 * q;
    let y = polynomial::<f64, FMA>(m, &P);
    let cube = y * y * y;
    let y = y - y * ((cube - m) / (2.0 * cube + m));
    let by = if k < 0.0 { ROOTS[0] } else { 1.0 };
    let by = if k > 0.0 { ROOTS[1] } else { by };
    let y = (y * by * power::<f64>(q)).copysign(x);
    // Zeros, infinities and NaN stay.
    if a > 0.0 && a < f64::INFINITY { y } else { x }
}

/// The length of the hypotenuse.
#[inline(always)]
pub(super) fn hypot<const FMA: bool>(x: f64, y: f64) -> f64 {
    let length = x.fma::<FMA>(x, y * y).sqrt();
    let far = x.abs() == f64::INFINITY || y.abs() == f64::INFINITY;
    // NaN is no longer than infinity, and stays else.
    if far { f64::INFINITY } else { length }
}
