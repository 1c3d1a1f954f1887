//! Elementary functions of `f32` and `f64`, fast in loops, with a stated bound of error.
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

/// `f32` and `f64`. Sealed.
pub trait Float: sealed::Functions {}

impl Float for f32 {}
impl Float for f64 {}

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
    exp own_exp
    /// 2 to the power of `x`.
    exp2 own_exp2
    /// [`exp`](exp()) less 1, exact near 0.
    expm1 own_expm1
    /// The natural logarithm.
    log own_log
    /// The logarithm to the base 2.
    log2 own_log2
    /// The logarithm to the base 10.
    log10 own_log10
    /// [`log`](log()) of `1 + x`, exact near 0.
    log1p own_log1p
    /// The hyperbolic tangent.
    tanh own_tanh
    /// `1 / (1 + e^-x)`.
    sigmoid own_sigmoid
}
