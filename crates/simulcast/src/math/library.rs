//! Functions by way of doubles, and those of the standard library.
//!
//! For `f32` the result is then that of exact arithmetic, rounded, but for one in some hundred million.

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
pub(super) const ULP: [(&str, [f64; 2]); 2] = [("asin", [0.51, 2.0]), ("acos", [0.51, 2.0])];

#[inline(always)]
pub(super) fn via<T: Double>(x: T, function: impl Fn(f64) -> f64) -> T {
    T::rounded(function(x.into()))
}

#[inline(always)]
pub(super) fn via_pair<T: Double>(x: T, y: T, function: impl Fn(f64, f64) -> f64) -> T {
    T::rounded(function(x.into(), y.into()))
}
