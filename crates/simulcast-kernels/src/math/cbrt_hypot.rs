//! Cube roots, and the length of a hypotenuse, of doubles.
//!
//! ```text
//! x = m 2^(3 q + k)           k is -1, 0 or 1
//! ∛x = y 2^q                  y is the root of m 2^k: a cubic, then Halley's steps
//! √(a² + b²)                  squares in two parts; large and small numbers are scaled first
//! ```

use crate::math::lane::{Lane, polynomial, power, quick_two_sum, scaled, two_product};

/// How many units in the last place each function may be away, for `f32` and for `f64`.
#[cfg(test)]
pub(super) const ULP: [(&str, [f64; 2]); 2] = [("cbrt", [0.51, 1.5]), ("hypot", [0.51, 1.0])];

/// The cube root, within 1.5 ULP.
#[inline(always)]
pub(super) fn cbrt<const FMA: bool>(x: f64) -> f64 {
    const P: [f64; 4] = [0.482_025, 0.729_045, -0.244_986, 0.037_008];
    let a = x.abs();
    let (e, m) = a.parts();
    let q = e.fma::<FMA>(1.0 / 3.0, f64::MAGIC) - f64::MAGIC;
    let m = m * power::<f64>(e - 3.0 * q);
    let mut y = polynomial::<f64, FMA>(m, &P);
    for _ in 0..2 {
        let cube = y * y * y;
        y = y - y * ((cube - m) / (2.0 * cube + m));
    }
    let y = scaled(y, q).copysign(x);
    // Zeros, infinities and NaN stay.
    if a > 0.0 && a < f64::INFINITY { y } else { x }
}

/// The length of the hypotenuse, within 1 ULP.
#[inline(always)]
pub(super) fn hypot<const FMA: bool>(x: f64, y: f64) -> f64 {
    const FAR: f64 = (1_u128 << 100) as f64 * (1_u128 << 100) as f64 * (1_u128 << 100) as f64;
    let (x, y) = (x.abs(), y.abs());
    let (long, short) = if x > y { (x, y) } else { (y, x) };
    let by = if long > FAR { 1.0 / (FAR * FAR) } else { 1.0 };
    let by = if long < 1.0 / FAR { FAR * FAR } else { by };
    let (square, lost) = two_product::<f64, FMA>(long * by, long * by);
    let (other, other_lost) = two_product::<f64, FMA>(short * by, short * by);
    let (sum, rest) = quick_two_sum(square, other);
    let root = sum.sqrt();
    let (back, back_lost) = two_product::<f64, FMA>(root, root);
    let left = ((sum - back) - back_lost) + (rest + (lost + other_lost));
    let root = root + if root > 0.0 { left / (root + root) } else { 0.0 };
    let length = root / by;
    let far = x == f64::INFINITY || y == f64::INFINITY;
    // NaN is no longer than infinity, and stays else.
    if far { f64::INFINITY } else { length }
}
