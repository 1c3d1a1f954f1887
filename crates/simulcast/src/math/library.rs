//! The standard library's functions, where a vector would not gain enough to be worth its code.
//!
//! All go through doubles: for `f32` the result is then that of exact arithmetic, rounded, but for
//! one in some hundred million.

use std::f64::consts::LN_2;

use super::log::{log, log1p};

/// A float that goes through doubles.
pub(super) trait Double: Into<f64> + Copy {
    fn rounded(wide: f64) -> Self;
}

impl Double for f32 {
    #[inline(always)]
    fn rounded(wide: f64) -> Self {
        wide as Self
    }
}

impl Double for f64 {
    #[inline(always)]
    fn rounded(wide: f64) -> Self {
        wide
    }
}

/// How many units in the last place each function may be away, for `f32` and for `f64`. The standard
/// library promises nothing; this is what its functions are held to where the tests run.
#[cfg(test)]
pub(super) const ULP: [(&str, [f64; 2]); 12] = [
    ("tan", [0.51, 2.5]),
    ("asin", [0.51, 2.0]),
    ("acos", [0.51, 2.0]),
    ("atan", [0.51, 2.0]),
    ("sinh", [0.51, 2.0]),
    ("cosh", [0.51, 2.0]),
    ("asinh", [0.51, 2.0]),
    ("acosh", [0.51, 2.0]),
    ("atanh", [0.51, 2.0]),
    ("cbrt", [0.51, 2.0]),
    ("atan2", [0.51, 2.0]),
    ("hypot", [0.51, 2.0]),
];

#[inline(always)]
pub(super) fn via<T: Double>(x: T, function: impl Fn(f64) -> f64) -> T {
    T::rounded(function(x.into()))
}

#[inline(always)]
pub(super) fn via_pair<T: Double>(x: T, y: T, function: impl Fn(f64, f64) -> f64) -> T {
    T::rounded(function(x.into(), y.into()))
}

/// Beyond this the square of a number is all that is left beside a 1.
const LARGE: f64 = (1_u64 << 28) as f64;

/// The inverse hyperbolic sine. The standard library's overflows, and loses digits.
pub(super) fn asinh(x: f64) -> f64 {
    let a = x.abs();
    let y = if a > LARGE {
        log::<f64, false>(a) + LN_2
    } else if a > 2.0 {
        log::<f64, false>(2.0 * a + 1.0 / ((a * a + 1.0).sqrt() + a))
    } else {
        log1p::<f64, false>(a + a * a / (1.0 + (a * a + 1.0).sqrt()))
    };
    y.copysign(x)
}

/// The inverse hyperbolic cosine. The standard library's overflows, and loses digits.
pub(super) fn acosh(x: f64) -> f64 {
    if x > LARGE {
        log::<f64, false>(x) + LN_2
    } else if x > 2.0 {
        log::<f64, false>(2.0 * x - 1.0 / (x + (x * x - 1.0).sqrt()))
    } else if x < 1.0 {
        f64::NAN
    } else {
        let t = x - 1.0;
        log1p::<f64, false>(t + (2.0 * t + t * t).sqrt())
    }
}

/// The inverse hyperbolic tangent. The standard library's loses digits.
pub(super) fn atanh(x: f64) -> f64 {
    let a = x.abs();
    let twice = if a < 0.5 {
        log1p::<f64, false>(2.0 * a + 2.0 * a * a / (1.0 - a))
    } else {
        log1p::<f64, false>(2.0 * a / (1.0 - a))
    };
    (0.5 * twice).copysign(x)
}
