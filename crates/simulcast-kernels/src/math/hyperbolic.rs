//! Hyperbolic functions and their inverses, of doubles.
//!
//! ```text
//! a = n ln 2 + r                                                      as for the exponential
//! 2 sinh a = 2^n ((1 - t) + (1 + t) r + r² (Q(r) - t Q(-r)))          t = 4^-n
//! 2 cosh a = 2^n ((1 + t) + (1 - t) r + r² (Q(r) + t Q(-r)))
//! asinh a = log1p (a + a² / (1 + √(a² + 1)))
//! acosh x = log1p (t + √(2t + t²))                                    t = x - 1
//! atanh a = log1p (2a + 2a² / (1 - a)) / 2
//! ```
//!
//! Where a square would overflow, the logarithm of 2a is all that is left.

use std::f64::consts::LN_2;

use crate::math::exp::{Exponential, reduced};
use crate::math::lane::{Lane, power, scaled, split, two_sum};
use crate::math::log::log1p;

/// How many units in the last place each function may be away, for `f32` and for `f64`.
#[cfg(test)]
pub(super) const ULP: [(&str, [f64; 2]); 5] = [
    ("sinh", [0.51, 2.0]),
    ("cosh", [0.51, 2.0]),
    ("asinh", [0.51, 2.5]),
    ("acosh", [0.51, 2.5]),
    ("atanh", [0.51, 2.5]),
];

/// The n of `|x|`, and `2 sinh |x|` or, with a `sign` of 1, `2 cosh x`, over 2^n.
#[inline(always)]
fn halves<const FMA: bool>(x: f64, sign: f64) -> (f64, f64) {
    let a = x.abs();
    let (sum, r) = reduced::<f64, FMA>(if a > 711.0 { 711.0 } else { a }, f64::MAGIC);
    let n = sum - f64::MAGIC;
    // Beyond 60 it is lost in the 1.
    let t = sign * power::<f64>(-2.0 * if n > 60.0 { 60.0 } else { n });
    let curve = t.fma::<FMA>(split::<f64, FMA>(-r, f64::Q), split::<f64, FMA>(r, f64::Q));
    let (high, lost) = two_sum(1.0 + t, (1.0 - t) * r);
    (n, high + (r * r).fma::<FMA>(curve, lost))
}

/// The hyperbolic sine, within 2 ULP.
#[inline(always)]
pub(super) fn sinh<const FMA: bool>(x: f64) -> f64 {
    let (n, y) = halves::<FMA>(x, -1.0);
    scaled(y, n - 1.0).copysign(x)
}

/// The hyperbolic cosine, within 2 ULP.
#[inline(always)]
pub(super) fn cosh<const FMA: bool>(x: f64) -> f64 {
    let (n, y) = halves::<FMA>(x, 1.0);
    scaled(y, n - 1.0)
}

/// Beyond this the square of a number may be infinite, and a 1 beside it is lost.
const LARGE: f64 = 1e150;

/// `log1p u`, where `a` is not large, and the logarithm of `2a` where it is.
#[inline(always)]
fn grown<const FMA: bool>(a: f64, u: f64) -> f64 {
    let (of, more) = if a > LARGE { (a, LN_2) } else { (u, 0.0) };
    log1p::<f64, FMA>(of) + more
}

/// The inverse hyperbolic sine, within 2.5 ULP.
#[inline(always)]
pub(super) fn asinh<const FMA: bool>(x: f64) -> f64 {
    let a = x.abs();
    let square = a * a;
    grown::<FMA>(a, a + square / (1.0 + (square + 1.0).sqrt())).copysign(x)
}

/// The inverse hyperbolic cosine, within 2.5 ULP.
#[inline(always)]
pub(super) fn acosh<const FMA: bool>(x: f64) -> f64 {
    let t = x - 1.0;
    let y = grown::<FMA>(x, t + t.fma::<FMA>(t, 2.0 * t).sqrt());
    if x < 1.0 { f64::NAN } else { y }
}

/// The inverse hyperbolic tangent, within 2.5 ULP.
#[inline(always)]
pub(super) fn atanh<const FMA: bool>(x: f64) -> f64 {
    let a = x.abs();
    let ratio = a / (1.0 - a);
    let u = if a < 0.5 { 2.0 * (a * ratio) + 2.0 * a } else { 2.0 * ratio };
    (0.5 * log1p::<f64, FMA>(u)).copysign(x)
}
