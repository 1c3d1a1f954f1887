//! Operations on `f32` and `f64`: IEEE's, and where IEEE is silent, NumPy's.
//!
//! `maximum` and `minimum` give the second operand where both are equal, so `maximum(0.0, -0.0)` is
//! -0.0, as NumPy does.

use std::hint::select_unpredictable;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ops::{Add, Div, Mul, Neg, Rem, Sub};

use super::{ElementOp, Kernels, Weight, alone, bodies, kernels_of};
use crate::math::Real;
use crate::{Level, Op};

/// A floating-point number.
pub(crate) trait Float:
    Real
    + Neg<Output = Self>
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Rem<Output = Self>
    + 'static
{
    const ZERO: Self;
    const MINUS_ZERO: Self;
    const MINUS_INFINITY: Self;
    const HALF: Self;
    const ONE: Self;
    const INFINITY: Self;
    const NAN: Self;
    fn magnitude(self) -> Self;
    fn copysign(self, sign: Self) -> Self;
    fn nan(self) -> bool;
    fn wide(self) -> f64;
    fn narrow(wide: f64) -> Self;
    /// `self * by + and`, rounded once.
    fn fused(self, by: Self, and: Self) -> Self;
    fn sqrt(self) -> Self;
    fn floor(self) -> Self;
    fn ceil(self) -> Self;
    fn round(self) -> Self;
    fn trunc(self) -> Self;
}

macro_rules! float {
    ($type:ident: $($own:ident = $std:ident($($other:ident)*);)*) => {
        impl Float for $type {
            const ZERO: Self = 0.0;
            const MINUS_ZERO: Self = -0.0;
            const MINUS_INFINITY: Self = Self::NEG_INFINITY;
            const HALF: Self = 0.5;
            const ONE: Self = 1.0;
            const INFINITY: Self = Self::INFINITY;
            const NAN: Self = Self::NAN;
            #[inline(always)]
            #[allow(trivial_numeric_casts, reason = "one of the two is wide")]
            fn wide(self) -> f64 {
                self as f64
            }
            #[inline(always)]
            #[allow(trivial_numeric_casts, reason = "one of the two is wide")]
            fn narrow(wide: f64) -> Self {
                wide as Self
            }
            #[inline(always)]
            fn nan(self) -> bool { self.is_nan() }
            $(
                #[inline(always)]
                fn $own(self, $($other: Self),*) -> Self { self.$std($($other),*) }
            )*
        }
    };
    ($($type:ident)*) => { $(
        float! { $type:
            magnitude = abs(); copysign = copysign(sign); fused = mul_add(by and);
            sqrt = sqrt(); floor = floor(); ceil = ceil(); round = round_ties_even(); trunc = trunc();

        }
    )* };
}

float!(f32 f64);

/// The loops of an operation on floating-point numbers.
pub(crate) fn float<T: Float>(op: Op, level: Level) -> Option<Kernels> {
    match op {
        Op::Exp => Some(kernels_of::<Exp<T>>(level)),
        Op::Sin => Some(kernels_of::<Sin<T>>(level)),
        Op::Cos => Some(kernels_of::<Cos<T>>(level)),
        Op::Tan => Some(kernels_of::<Tan<T>>(level)),
        _ => most::<T>(op, level),
    }
}

bodies! {
    /// The loops of most operations on floating-point numbers.
    fn most<T: Float>;
    light Negative(a) -> T { -a }
    light Absolute(a) -> T { a.magnitude() }
    light Sign(a) -> T {
        // -0.0 is no longer negative once 0.0 is added; NaN is neither, and stays.
        if a > T::ZERO { T::ONE } else if a < T::ZERO { -T::ONE } else { a + T::ZERO }
    }
    light Sqrt(a) -> T { a.sqrt() }
    tiled Cbrt(a) -> T { a.cbrt::<FMA>() }
    light Square(a) -> T { a * a }
    light Reciprocal(a) -> T { T::ONE / a }
    tiled Exp2(a) -> T { a.exp2::<FMA>() }
    tiled Expm1(a) -> T { a.expm1::<FMA>() }
    tiled Log(a) -> T { a.log::<FMA>() }
    tiled Log2(a) -> T { a.log2::<FMA>() }
    tiled Log10(a) -> T { a.log10::<FMA>() }
    tiled Log1p(a) -> T { a.log1p::<FMA>() }
    tiled Arcsin(a) -> T { a.asin::<FMA>() }
    tiled Arccos(a) -> T { a.acos::<FMA>() }
    tiled Arctan(a) -> T { a.atan::<FMA>() }
    tiled Sinh(a) -> T { a.sinh::<FMA>() }
    tiled Cosh(a) -> T { a.cosh::<FMA>() }
    tiled Tanh(a) -> T { a.tanh::<FMA>() }
    tiled Arcsinh(a) -> T { a.asinh::<FMA>() }
    tiled Arccosh(a) -> T { a.acosh::<FMA>() }
    tiled Arctanh(a) -> T { a.atanh::<FMA>() }
    tiled Erf(a) -> T { a.erf::<FMA>() }
    tiled Sigmoid(a) -> T { a.sigmoid::<FMA>() }
    light Softsign(a) -> T { a / (T::ONE + a.magnitude()) }
    light Relu(a) -> T { if a <= T::ZERO { T::ZERO } else { a } }
    light Floor(a) -> T { a.floor() }
    light Ceil(a) -> T { a.ceil() }
    light Round(a) -> T { a.round() }
    light Trunc(a) -> T { a.trunc() }
    light LogicalNot(a) -> u8 { u8::from(a == T::ZERO) }
    light Isnan(a) -> u8 { u8::from(a.nan()) }
    light Isinf(a) -> u8 { u8::from(a.magnitude() == T::INFINITY) }
    light Isfinite(a) -> u8 { u8::from(a.magnitude() < T::INFINITY) }
    light Conjugate(a) -> T { a }
    light Real(a) -> T { a }
    light Imag(_a) -> T { T::ZERO }
    light Add(a, b) -> T { a + b }
    light Subtract(a, b) -> T { a - b }
    light Multiply(a, b) -> T { a * b }
    light Divide(a, b) -> T { a / b }
    heavy FloorDivide(a, b) -> T { floor_divide(a, b) }
    heavy Remainder(a, b) -> T { remainder(a, b) }
    heavy Fmod(a, b) -> T { a % b }
    tiled Power(a, b) -> T { a.pow::<FMA>(b) }
    tiled Arctan2(a, b) -> T { a.atan2::<FMA>(b) }
    tiled Hypot(a, b) -> T { a.hypot::<FMA>(b) }
    light Maximum(a, b) -> T { maximum(a, b) }
    light Minimum(a, b) -> T { minimum(a, b) }
    light LogicalAnd(a, b) -> u8 { u8::from(a != T::ZERO) & u8::from(b != T::ZERO) }
    light LogicalOr(a, b) -> u8 { u8::from(a != T::ZERO) | u8::from(b != T::ZERO) }
    light LogicalXor(a, b) -> u8 { u8::from(a != T::ZERO) ^ u8::from(b != T::ZERO) }
    light Equal(a, b) -> u8 { u8::from(a == b) }
    light NotEqual(a, b) -> u8 { u8::from(a != b) }
    light Less(a, b) -> u8 { u8::from(a < b) }
    light LessEqual(a, b) -> u8 { u8::from(a <= b) }
    fused MultiplyAdd(a, b, c) -> T { if FMA { a.fused(b, c) } else { a * b + c } }
}

/// Functions that look at a whole tile for elements that need another way than most.
macro_rules! tiles {
    ($($op:ident $tile:ident)*) => { $(
        struct $op<T>(PhantomData<T>);

        impl<T: Float> ElementOp for $op<T> {
            type A = T;
            type B = ();
            type C = ();
            type Out = T;
            const ARITY: usize = 1;
            const WEIGHT: Weight = Weight::Tiled;

            #[inline(always)]
            fn at<const FMA: bool>(a: T, (): (), (): ()) -> T {
                alone(a, |out| T::$tile::<FMA>(|_| a, out))
            }

            #[inline(always)]
            unsafe fn tile<const FMA: bool>(
                a: &[T],
                _: &[()],
                _: &[()],
                out: &mut [MaybeUninit<T>],
            ) {
                let a = &a[..out.len()];
                T::$tile::<FMA>(|at| a[at], out);
            }
        }
    )* };
}

tiles!(Exp exp_tile Sin sin_tile Cos cos_tile Tan tan_tile);

/// The larger one, or NaN. Choices, not branches: both operands are read whatever is chosen.
#[inline(always)]
pub(crate) fn maximum<T: Float>(a: T, b: T) -> T {
    select_unpredictable(a.nan(), a, select_unpredictable(a > b, a, b))
}

/// The smaller one, or NaN.
#[inline(always)]
pub(crate) fn minimum<T: Float>(a: T, b: T) -> T {
    select_unpredictable(a.nan(), a, select_unpredictable(a < b, a, b))
}

/// The quotient rounded down, from the exact remainder, as NumPy and Python: it is the quotient's
/// floor also where the rounded quotient is a whole number too many.
#[inline(always)]
fn floor_divide<T: Float>(a: T, b: T) -> T {
    if b == T::ZERO {
        return a / b;
    }
    let left = a % b;
    let below = left != T::ZERO && (b < T::ZERO) != (left < T::ZERO);
    let quotient = (a - left) / b - if below { T::ONE } else { T::ZERO };
    if quotient == T::ZERO {
        return T::ZERO.copysign(a / b);
    }
    let floor = quotient.floor();
    if quotient - floor > T::HALF { floor + T::ONE } else { floor }
}

/// What is left then, with the sign of the divisor, as NumPy and Python.
#[inline(always)]
fn remainder<T: Float>(a: T, b: T) -> T {
    let left = a % b;
    if b == T::ZERO || left.nan() {
        left
    } else if left == T::ZERO {
        T::ZERO.copysign(b)
    } else if (b < T::ZERO) != (left < T::ZERO) {
        left + b
    } else {
        left
    }
}
