//! Elementary functions of floats, fast in loops, with a stated bound of error.
//!
//! They are meant for loops and closures: `f32::exp` is a function call for every element, [`exp`](exp()) is inlined and
//! vectorised.
//!
//! ```
//! # extern crate simulcast_kernels as simulcast;
//! use simulcast::math;
//!
//! let logits = [1.0_f32, 3.0, 2.0];
//! let exponentials = logits.map(|x| math::exp(x - 3.0));
//! assert_eq!(exponentials[1], 1.0);
//! ```
//!
//! | functions | `f32` within | `f64` within | vectorise in programs |
//! |---|---|---|---|
//! | `power` | 0.51 ULP | 1 ULP | yes |
//! | `exp`, `log` | 1 | 1 | yes |
//! | `exp2`, `log2`, `log10`, `log1p`, `erf` | 1.5 | 1.5 | yes |
//! | `expm1`, `tanh`, `sigmoid`, `sin`, `cos` | 2 | 2 | yes |
//! | `hypot` | 0.51 | 1 | yes |
//! | `cbrt`, `tan` | 0.51 | 1.5 | yes |
//! | `sinh`, `cosh`, `arctan`, `arcsin`, `arccos` | 0.51 | 2 | yes |
//! | `arcsinh`, `arccosh`, `arctanh`, `arctan2` | 0.51 | 2.5 | yes |
//!
//! The functions that vectorise are plain Rust without branches, inlined into the loop of the
//! caller, which is compiled once for each level. Those of programs use fused multiply-add where
//! the level has it, and take a few elements together; results at two levels may differ within the bound, and so may
//! those of closures, which are the same at every level. Special values are those of
//! C99: signed zeros, infinities, NaN, subnormal numbers in and out, and the whole table of `power`.
//!
//! The bounds are asserted against correctly rounded answers (`conformance/functions.jsonl`), at
//! every level of the machine that runs the tests. The functions of the table that this module does not export are for
//! programs alone: the compiler does not vectorise them in the loop of a closure.

mod cbrt_hypot;
mod erf;
mod exp;
mod f32_functions;
#[cfg(feature = "half")]
pub mod half;
mod hyperbolic;
mod inverse_trig;
mod lane;
mod log;
mod payne_hanek;
mod pow;
mod real;
#[cfg(test)]
mod tests;
mod tile;
mod trig;
mod via_f64;

pub use real::Real;

/// `f32` and `f64`, and with the feature `half`, `f16` and `bf16`, which are computed in `f32` and rounded once.
///
/// ```
/// # extern crate simulcast_kernels as simulcast;
/// use simulcast::math::{self, Float};
///
/// fn softplus<T: Float>(x: T) -> T {
///     math::log1p(math::exp(x))
/// }
/// assert!((softplus(0.0_f32) - 2_f32.ln()).abs() < 1e-6);
/// ```
///
/// Sealed.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no float that `math` has functions for",
    note = "they take `f32` and `f64` by value, and with the feature `half` `f16` and `bf16`; elements come by reference: `*x`"
)]
pub trait Float: sealed::Functions {}

impl Float for f32 {}
impl Float for f64 {}
#[cfg(feature = "half")]
impl Float for ::half::f16 {}
#[cfg(feature = "half")]
impl Float for ::half::bf16 {}

/// Writes functions for closures.
macro_rules! functions {
    ($($(#[$doc:meta])* $name:ident $own:ident)*) => {
        $(
            $(#[$doc])*
            #[inline(always)]
            #[must_use]
            pub fn $name<T: Float>(x: T) -> T {
                x.$own()
            }
        )*

        mod sealed {
            /// Methods with a prefix of their own: code that is generic over [`Float`] sees them.
            pub trait Functions: Copy {
                $(fn $own(self) -> Self;)*
            }

            functions!(@f32 $($name $own)*);
            functions!(@f64 $($name $own)*);
            #[cfg(feature = "half")]
            functions!(@half f16 f16_from_f32 $($name $own)*);
            #[cfg(feature = "half")]
            functions!(@half bf16 bf16_from_f32 $($name $own)*);
        }
    };
    (@half $type:ident $narrow:ident $($name:ident $own:ident)*) => {
        impl Functions for ::half::$type {
            $(
                #[inline(always)]
                fn $own(self) -> Self {
                    super::half::$narrow(super::Real::$name::<false>(crate::addend::Addend::widen(self)))
                }
            )*
        }
    };
    (@$type:ident $($name:ident $own:ident)*) => {
        impl Functions for $type {
            $(
                #[inline(always)]
                fn $own(self) -> Self {
                    super::Real::$name::<false>(self)
                }
            )*
        }
    };
}

functions! {
    /// e to the power of `x`.
    ///
    /// ```
    /// # extern crate simulcast_kernels as simulcast;
    /// assert_eq!(simulcast::math::exp(0.0_f32), 1.0);
    /// ```
    exp own_exp
    /// 2 to the power of `x`.
    ///
    /// ```
    /// # extern crate simulcast_kernels as simulcast;
    /// assert_eq!(simulcast::math::exp2(3.0_f32), 8.0);
    /// ```
    exp2 own_exp2
    /// [`exp`](exp()) less 1, exact near 0.
    ///
    /// ```
    /// # extern crate simulcast_kernels as simulcast;
    /// assert_eq!(simulcast::math::expm1(0.0_f32), 0.0);
    /// ```
    expm1 own_expm1
    /// The natural logarithm.
    ///
    /// ```
    /// # extern crate simulcast_kernels as simulcast;
    /// assert_eq!(simulcast::math::log(1.0_f32), 0.0);
    /// ```
    log own_log
    /// The logarithm to the base 2.
    ///
    /// ```
    /// # extern crate simulcast_kernels as simulcast;
    /// assert_eq!(simulcast::math::log2(8.0_f32), 3.0);
    /// ```
    log2 own_log2
    /// The logarithm to the base 10.
    ///
    /// ```
    /// # extern crate simulcast_kernels as simulcast;
    /// assert_eq!(simulcast::math::log10(100.0_f32), 2.0);
    /// ```
    log10 own_log10
    /// [`log`](log()) of `1 + x`, exact near 0.
    ///
    /// ```
    /// # extern crate simulcast_kernels as simulcast;
    /// assert_eq!(simulcast::math::log1p(0.0_f32), 0.0);
    /// ```
    log1p own_log1p
    /// The hyperbolic tangent.
    ///
    /// ```
    /// # extern crate simulcast_kernels as simulcast;
    /// assert_eq!(simulcast::math::tanh(0.0_f32), 0.0);
    /// ```
    tanh own_tanh
    /// `1 / (1 + e^-x)`.
    ///
    /// ```
    /// # extern crate simulcast_kernels as simulcast;
    /// assert_eq!(simulcast::math::sigmoid(0.0_f32), 0.5);
    /// ```
    sigmoid own_sigmoid
}
