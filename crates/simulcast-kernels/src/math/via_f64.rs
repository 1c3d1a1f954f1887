//! Functions computed in `f64` and rounded to their type: for `f32` the result is then mostly the correctly rounded one.

/// A float that is computed in `f64`.
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

#[inline(always)]
pub(super) fn via<T: Double>(x: T, function: impl Fn(f64) -> f64) -> T {
    T::rounded(function(x.into()))
}

#[inline(always)]
pub(super) fn via_pair<T: Double>(x: T, y: T, function: impl Fn(f64, f64) -> f64) -> T {
    T::rounded(function(x.into(), y.into()))
}
