//! Lanes: the few operations that every function here is written in, for `f32` and `f64` alike.
//!
//! Each is one or a handful of instructions at every level, without branches, calls or saturating
//! casts, so that a loop of any composition of them vectorises.

use std::ops::{Add, Div, Mul, Neg, Sub};

/// A float, seen as the element of a vector register.
pub(super) trait Lane:
    Copy
    + PartialOrd
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
{
    /// 1.5 times two to the number of fraction bits. A small number plus this is rounded to the
    /// nearest integer, which stands in the low bits of the sum.
    const MAGIC: Self;
    /// What is added to an exponent to store it.
    const BIAS: Self;
    const INFINITY: Self;
    const NAN: Self;

    /// The nearest number to a constant.
    fn of(constant: f64) -> Self;

    /// `self * b + c`, rounded once where `FMA` says that the level can do so by itself.
    fn fma<const FMA: bool>(self, b: Self, c: Self) -> Self;

    fn abs(self) -> Self;

    fn copysign(self, sign: Self) -> Self;

    /// Two to the power of the integer that was added to `MAGIC + BIAS` to make `self`.
    fn power(self) -> Self;

    /// `self` times two to the power of the integer that was added to [`Self::MAGIC`] to make `sum`,
    /// where both `self` and the product are normal numbers.
    fn raised(self, sum: Self) -> Self;

    /// Two powers of two whose product is two to the power of the integer that was added to
    /// `MAGIC + 2 BIAS` to make `self`.
    fn powers(self) -> (Self, Self);

    /// `self`, negated where the integer that was added to [`Self::MAGIC`] to make `sum` is odd.
    fn flipped(self, sum: Self) -> Self;

    /// The number without the lower half of its fraction: products of two such are exact.
    fn upper(self) -> Self;

    /// `(e, m)` with `self = m * 2^e` and `m` between the roots of 1/2 and 2, for positive finite
    /// numbers; something finite otherwise.
    fn parts(self) -> (Self, Self);
}

macro_rules! lane {
    ($type:ident, $fraction:literal, $bias:literal, $root:literal, $upper:literal, $lift:literal) => {
        impl Lane for $type {
            const MAGIC: Self = 1.5 * ((1_u64 << $fraction) as $type);
            const BIAS: Self = $bias;
            const INFINITY: Self = $type::INFINITY;
            const NAN: Self = $type::NAN;

            #[inline(always)]
            fn of(constant: f64) -> Self {
                constant as $type
            }

            #[inline(always)]
            fn fma<const FMA: bool>(self, b: Self, c: Self) -> Self {
                if FMA { self.mul_add(b, c) } else { self * b + c }
            }

            #[inline(always)]
            fn abs(self) -> Self {
                $type::abs(self)
            }

            #[inline(always)]
            fn copysign(self, sign: Self) -> Self {
                $type::copysign(self, sign)
            }

            #[inline(always)]
            fn power(self) -> Self {
                Self::from_bits(self.to_bits() << $fraction)
            }

            #[inline(always)]
            fn raised(self, sum: Self) -> Self {
                Self::from_bits(self.to_bits().wrapping_add(sum.to_bits() << $fraction))
            }

            #[inline(always)]
            fn powers(self) -> (Self, Self) {
                // Half of the integer where exponents stand, rounded down, and what is left of it.
                let half = self.to_bits() << ($fraction - 1);
                let first = half >> $fraction << $fraction;
                let rest = half.wrapping_add(half).wrapping_sub(first);
                (Self::from_bits(first), Self::from_bits(rest))
            }

            #[inline(always)]
            fn flipped(self, sum: Self) -> Self {
                let odd = sum.to_bits() << (size_of::<Self>() * 8 - 1);
                Self::from_bits(self.to_bits() ^ odd)
            }

            #[inline(always)]
            fn upper(self) -> Self {
                Self::from_bits(self.to_bits() & $upper)
            }

            #[inline(always)]
            fn parts(self) -> (Self, Self) {
                // A number whose bits are an exponent field, and what it is too large by.
                const FIELD: $type = (1_u64 << $fraction) as $type;
                // Subnormal numbers are lifted among the normal ones.
                let small = self < $type::MIN_POSITIVE;
                let lifted = if small { self * (1_u64 << $lift) as $type } else { self };
                let excess = if small { FIELD + $bias + $lift as $type } else { FIELD + $bias };
                let bits = lifted.to_bits().wrapping_add((1.0 as $type).to_bits() - $root);
                let fraction = bits & ((1 << $fraction) - 1);
                let exponent = Self::from_bits(bits >> $fraction | FIELD.to_bits()) - excess;
                (exponent, Self::from_bits(fraction + $root))
            }
        }
    };
}

lane!(f32, 23, 127.0, 0x3f35_04f3, 0xffff_f000, 24);
lane!(f64, 52, 1023.0, 0x3fe6_a09e_667f_3bcd, 0xffff_ffff_f800_0000, 54);

/// A polynomial, its constant coefficient first.
#[inline(always)]
pub(super) fn polynomial<T: Lane, const FMA: bool>(x: T, coefficients: &[T]) -> T {
    if coefficients.len() < 10 {
        chain::<T, FMA>(x, coefficients, 0, 1)
    } else {
        split::<T, FMA>(x, coefficients)
    }
}

/// The same, even and odd powers apart: neither chain waits for the other. It costs the square of x,
/// which may be there already.
#[inline(always)]
pub(super) fn split<T: Lane, const FMA: bool>(x: T, coefficients: &[T]) -> T {
    let odd = chain::<T, FMA>(x * x, coefficients, 1, 2);
    odd.fma::<FMA>(x, chain::<T, FMA>(x * x, coefficients, 0, 2))
}

/// The polynomial of every `step`th coefficient from `first` on.
#[inline(always)]
fn chain<T: Lane, const FMA: bool>(x: T, coefficients: &[T], first: usize, step: usize) -> T {
    let all = coefficients.iter().skip(first).step_by(step).rev().copied();
    all.reduce(|sum, coefficient| sum.fma::<FMA>(x, coefficient)).unwrap_or(T::of(0.0))
}

/// `y * 2^n` for integers `n` of up to twice the range of exponents, rounded once.
#[inline(always)]
pub(super) fn scaled<T: Lane>(y: T, n: T) -> T {
    // In two steps: the first is exact, and both factors are normal numbers.
    let (first, rest) = (n + (T::MAGIC + T::BIAS + T::BIAS)).powers();
    y * first * rest
}

/// `2^n`, for an integer `n` that is an exponent of normal numbers.
#[inline(always)]
pub(super) fn power<T: Lane>(n: T) -> T {
    (n + (T::MAGIC + T::BIAS)).power()
}

/// The sum as rounded, and what rounding took away.
#[inline(always)]
pub(super) fn two_sum<T: Lane>(a: T, b: T) -> (T, T) {
    let sum = a + b;
    let part = sum - a;
    (sum, (a - (sum - part)) + (b - part))
}

/// As [`two_sum`], where `a` is zero or the larger one.
#[inline(always)]
pub(super) fn quick_two_sum<T: Lane>(a: T, b: T) -> (T, T) {
    let sum = a + b;
    (sum, b - (sum - a))
}

/// The product as rounded, and what rounding took away.
#[inline(always)]
pub(super) fn two_product<T: Lane, const FMA: bool>(a: T, b: T) -> (T, T) {
    let product = a * b;
    if FMA {
        return (product, a.fma::<FMA>(b, -product));
    }
    let (a_high, b_high) = (a.upper(), b.upper());
    let (a_low, b_low) = (a - a_high, b - b_high);
    let rest = ((a_high * b_high - product) + a_high * b_low) + a_low * b_high;
    (product, rest + a_low * b_low)
}
