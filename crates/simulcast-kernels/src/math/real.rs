//! The functions of each type, at a level with fused multiply-add or without.

use std::mem::MaybeUninit;

use super::{
    cbrt_hypot, erf, exp, f32_functions, hyperbolic, inverse_trig, log, payne_hanek, pow, trig,
    via_f64,
};

/// A float with its functions.
pub trait Real: Copy + PartialOrd {
    /// `e^x`, as [`Self::exp_tile`] of one that is not usual.
    fn exp<const FMA: bool>(self) -> Self;
    fn exp2<const FMA: bool>(self) -> Self;
    fn expm1<const FMA: bool>(self) -> Self;
    fn log<const FMA: bool>(self) -> Self;
    fn log2<const FMA: bool>(self) -> Self;
    fn log10<const FMA: bool>(self) -> Self;
    fn log1p<const FMA: bool>(self) -> Self;
    fn tanh<const FMA: bool>(self) -> Self;
    /// `1 / (1 + e^-x)`.
    fn sigmoid<const FMA: bool>(self) -> Self;
    fn erf<const FMA: bool>(self) -> Self;
    fn asin<const FMA: bool>(self) -> Self;
    fn acos<const FMA: bool>(self) -> Self;
    fn atan<const FMA: bool>(self) -> Self;
    fn sinh<const FMA: bool>(self) -> Self;
    fn cosh<const FMA: bool>(self) -> Self;
    fn asinh<const FMA: bool>(self) -> Self;
    fn acosh<const FMA: bool>(self) -> Self;
    fn atanh<const FMA: bool>(self) -> Self;
    fn cbrt<const FMA: bool>(self) -> Self;
    /// The angle of the point `(x, self)`.
    fn atan2<const FMA: bool>(self, x: Self) -> Self;
    fn hypot<const FMA: bool>(self, other: Self) -> Self;
    fn pow<const FMA: bool>(self, exponent: Self) -> Self;

    /// `e^x` of `from` of every index of `to`, into `to`.
    fn exp_tile<const FMA: bool>(from: impl Fn(usize) -> Self, to: &mut [MaybeUninit<Self>]);
    /// The sines: as [`Self::exp_tile`]. Angles beyond what the fast reduction covers (65,536 for `f32`,
    /// 2^20 for `f64`) are reduced one by one, which slows down the block of elements that they stand
    /// in.
    fn sin_tile<const FMA: bool>(from: impl Fn(usize) -> Self, to: &mut [MaybeUninit<Self>]);
    /// The cosines: as [`Self::sin_tile`].
    fn cos_tile<const FMA: bool>(from: impl Fn(usize) -> Self, to: &mut [MaybeUninit<Self>]);
    /// The tangents: as [`Self::sin_tile`].
    fn tan_tile<const FMA: bool>(from: impl Fn(usize) -> Self, to: &mut [MaybeUninit<Self>]);

    /// Whether it is an angle beyond what the fast reduction covers.
    fn is_far(self) -> bool;
    /// The sine, as [`Self::sin_tile`], of any other angle.
    fn near_sin<const FMA: bool>(self) -> Self;
    /// The cosine, as [`Self::cos_tile`], of any other angle.
    fn near_cos<const FMA: bool>(self) -> Self;
}

macro_rules! real {
    (
        $type:ident: $($name:ident $module:ident)*;
        $($wide:ident $of:ident)*; $($pair:ident $pair_of:ident)*
    ) => {
        impl Real for $type {
            $(
                #[inline(always)]
                fn $name<const FMA: bool>(self) -> Self {
                    $module::$name::<Self, FMA>(self)
                }
            )*

            #[inline(always)]
            fn pow<const FMA: bool>(self, exponent: Self) -> Self {
                pow::pow::<Self, FMA>(self, exponent)
            }

            #[inline(always)]
            fn exp_tile<const FMA: bool>(
                from: impl Fn(usize) -> Self,
                to: &mut [MaybeUninit<Self>],
            ) {
                exp::exp_tile::<Self, FMA>(from, to);
            }

            #[inline(always)]
            fn sin_tile<const FMA: bool>(
                from: impl Fn(usize) -> Self,
                to: &mut [MaybeUninit<Self>],
            ) {
                trig::tile(from, to, trig::sin::<Self, FMA>, payne_hanek::sin);
            }

            #[inline(always)]
            fn cos_tile<const FMA: bool>(
                from: impl Fn(usize) -> Self,
                to: &mut [MaybeUninit<Self>],
            ) {
                trig::tile(from, to, trig::cos::<Self, FMA>, payne_hanek::cos);
            }

            #[inline(always)]
            fn tan_tile<const FMA: bool>(
                from: impl Fn(usize) -> Self,
                to: &mut [MaybeUninit<Self>],
            ) {
                trig::tile(from, to, trig::tan::<Self, FMA>, payne_hanek::tan);
            }

            #[inline(always)]
            fn is_far(self) -> bool {
                trig::is_far(self)
            }

            #[inline(always)]
            fn near_sin<const FMA: bool>(self) -> Self {
                trig::sin::<Self, FMA>(self)
            }

            #[inline(always)]
            fn near_cos<const FMA: bool>(self) -> Self {
                trig::cos::<Self, FMA>(self)
            }

            $(
                #[inline(always)]
                fn $wide<const FMA: bool>(self) -> Self {
                    via_f64::via(self, $of::$wide::<FMA>)
                }
            )*

            $(
                #[inline(always)]
                fn $pair<const FMA: bool>(self, other: Self) -> Self {
                    via_f64::via_pair(self, other, $pair_of::$pair::<FMA>)
                }
            )*
        }
    };
    ($type:ident, $angle:ident $hyperbolic:ident $root:ident) => {
        real! {
            $type:
            exp exp exp2 exp expm1 exp tanh exp sigmoid exp erf erf
            log log log2 log log10 log log1p log;
            asin $angle acos $angle atan $angle sinh $hyperbolic cosh $hyperbolic asinh $hyperbolic
            acosh $hyperbolic atanh $hyperbolic cbrt $root;
            atan2 $angle hypot $root
        }
    };
}

real!(f32, f32_functions f32_functions f32_functions);
real!(f64, inverse_trig hyperbolic cbrt_hypot);
