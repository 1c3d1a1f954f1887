//! Operations on integers: they wrap. [Divisions](crate::ops::int_divide) and [powers](crate::ops::int_power) have modules of their own.
//!
//! Addition, multiplication, equality and bits are the same for signed and unsigned integers of one
//! width, so they are looked for among the unsigned first.

use super::{Kernels, bodies, kernels_of};
use crate::ops::int_divide::{Divide, Unsigned};
use crate::ops::int_power::Power;
use crate::{Level, Op};

/// An integer.
pub(crate) trait Int: Copy + Ord {
    /// The unsigned integer of the same width.
    type Bits: Unsigned;
    const ZERO: Self;
    const ONE: Self;
    /// -1, of unsigned integers the largest.
    const ONES: Self;
    const SMALLEST: Self;
    const LARGEST: Self;
    const WIDTH: u32;
    fn plus(self, other: Self) -> Self;
    fn minus(self, other: Self) -> Self;
    fn times(self, other: Self) -> Self;
    fn and(self, other: Self) -> Self;
    fn or(self, other: Self) -> Self;
    fn xor(self, other: Self) -> Self;
    fn inverted(self) -> Self;
    fn bits(self) -> Self::Bits;
    fn of_bits(bits: Self::Bits) -> Self;
    /// The quotient rounded towards 0; `other` is not 0.
    fn over(self, other: Self) -> Self;
    fn magnitude(self) -> Self;
    /// `self << by`; `by` is below the width.
    fn shl(self, by: u32) -> Self;
    /// `self >> by`; `by` is below the width.
    fn shr(self, by: u32) -> Self;
    /// The amount of a shift: negative ones are large.
    fn amount(self) -> u64;
}

macro_rules! int {
    ($($type:ty: $bits:ty, |$a:ident| $magnitude:expr;)*) => { $(
        impl Int for $type {
            type Bits = $bits;
            const ZERO: Self = 0;
            const ONE: Self = 1;
            const ONES: Self = !0;
            const SMALLEST: Self = Self::MIN;
            const LARGEST: Self = Self::MAX;
            const WIDTH: u32 = Self::BITS;
            #[inline(always)]
            fn plus(self, other: Self) -> Self { self.wrapping_add(other) }
            #[inline(always)]
            fn minus(self, other: Self) -> Self { self.wrapping_sub(other) }
            #[inline(always)]
            fn times(self, other: Self) -> Self { self.wrapping_mul(other) }
            #[inline(always)]
            fn and(self, other: Self) -> Self { self & other }
            #[inline(always)]
            fn or(self, other: Self) -> Self { self | other }
            #[inline(always)]
            fn xor(self, other: Self) -> Self { self ^ other }
            #[inline(always)]
            fn inverted(self) -> Self { !self }
            #[inline(always)]
            fn over(self, other: Self) -> Self { self.wrapping_div(other) }
            #[inline(always)]
            #[allow(trivial_numeric_casts, reason = "of one of the two")]
            fn bits(self) -> $bits { self as $bits }
            #[inline(always)]
            #[allow(trivial_numeric_casts, reason = "of one of the two")]
            fn of_bits(bits: $bits) -> Self { bits as Self }
            #[inline(always)]
            fn magnitude(self) -> Self { let $a = self; $magnitude }
            #[inline(always)]
            fn shl(self, by: u32) -> Self { self.wrapping_shl(by) }
            #[inline(always)]
            fn shr(self, by: u32) -> Self { self.wrapping_shr(by) }
            #[inline(always)]
            fn amount(self) -> u64 { self as u64 }
        }
    )* };
}

int! {
    i8: u8, |a| a.wrapping_abs();
    i16: u16, |a| a.wrapping_abs();
    i32: u32, |a| a.wrapping_abs();
    i64: u64, |a| a.wrapping_abs();
    u8: Self, |a| a;
    u16: Self, |a| a;
    u32: Self, |a| a;
    u64: Self, |a| a;
}

/// The operation whose loop serves this one too.
fn alike(op: Op) -> Op {
    match op {
        Op::Ceil | Op::Round | Op::Trunc | Op::Conjugate | Op::Real => Op::Floor,
        Op::Isinf => Op::Isnan,
        _ => op,
    }
}

/// The loops of an operation on signed integers.
pub(crate) fn signed<T: Int>(op: Op, level: Level) -> Option<Kernels> {
    let op = alike(op);
    let own = || with_sign::<T>(op, level).or_else(|| int::<T>(op, level));
    bits::<T::Bits>(op, level)
        .or_else(own)
        .or_else(|| tiled::<T>(op, level))
        .or_else(|| truncated::<T>(op, level))
}

/// The loops of an operation on unsigned integers.
pub(crate) fn unsigned<T: Int>(op: Op, level: Level) -> Option<Kernels> {
    let op = alike(op);
    let op = match op {
        Op::TruncDivide => Op::FloorDivide,
        Op::Fmod => Op::Remainder,
        _ => op,
    };
    let own = || without_sign::<T>(op, level).or_else(|| int::<T>(op, level));
    bits::<T>(op, level).or_else(own).or_else(|| tiled::<T>(op, level))
}

bodies! {
    /// What is the same with and without a sign.
    fn bits<T: Int>;
    light Negative(a) -> T { T::ZERO.minus(a) }
    light Square(a) -> T { a.times(a) }
    light Floor(a) -> T { a }
    light Imag(_a) -> T { T::ZERO }
    light LogicalNot(a) -> u8 { u8::from(a == T::ZERO) }
    light BitwiseNot(a) -> T { a.inverted() }
    light Isnan(_a) -> u8 { 0 }
    light Isfinite(_a) -> u8 { 1 }
    light Add(a, b) -> T { a.plus(b) }
    light Subtract(a, b) -> T { a.minus(b) }
    busy Multiply(a, b) -> T { a.times(b) }
    light LogicalAnd(a, b) -> u8 { u8::from(a != T::ZERO) & u8::from(b != T::ZERO) }
    light LogicalOr(a, b) -> u8 { u8::from(a.or(b) != T::ZERO) }
    light LogicalXor(a, b) -> u8 { u8::from(a != T::ZERO) ^ u8::from(b != T::ZERO) }
    light BitwiseAnd(a, b) -> T { a.and(b) }
    light BitwiseOr(a, b) -> T { a.or(b) }
    light BitwiseXor(a, b) -> T { a.xor(b) }
    light LeftShift(a, b) -> T {
        if b.amount() < u64::from(T::WIDTH) { a.shl(b.amount() as u32) } else { T::ZERO }
    }
    light Equal(a, b) -> u8 { u8::from(a == b) }
    light NotEqual(a, b) -> u8 { u8::from(a != b) }
    busy MultiplyAdd(a, b, c) -> T { a.times(b).plus(c) }
}

bodies! {
    /// What is another thing with a sign.
    fn with_sign<T: Int>;
    light Absolute(a) -> T { a.magnitude() }
    light Sign(a) -> T { if a < T::ZERO { T::ONES } else if a > T::ZERO { T::ONE } else { a } }
    light Relu(a) -> T { a.max(T::ZERO) }
    light RightShift(a, b) -> T {
        a.shr(if b.amount() < u64::from(T::WIDTH) { b.amount() as u32 } else { T::WIDTH - 1 })
    }
}

bodies! {
    /// What is simpler without a sign.
    fn without_sign<T: Int>;
    light Absolute(a) -> T { a }
    light Sign(a) -> T { a.min(T::ONE) }
    light Relu(a) -> T { a }
    light RightShift(a, b) -> T {
        if b.amount() < u64::from(T::WIDTH) { a.shr(b.amount() as u32) } else { T::ZERO }
    }
}

bodies! {
    /// What is written alike and compiled for both.
    fn int<T: Int>;
    light Reciprocal(a) -> T {
        if a == T::ONE || a == T::ONES && a < T::ZERO { a } else { T::ZERO }
    }
    light Maximum(a, b) -> T { a.max(b) }
    light Minimum(a, b) -> T { a.min(b) }
    light Less(a, b) -> u8 { u8::from(a < b) }
    light LessEqual(a, b) -> u8 { u8::from(a <= b) }
}

/// The kernels of divisions and powers. Without a sign, rounding towards 0 is rounding down: `unsigned` maps those.
fn tiled<T: Int>(op: Op, level: Level) -> Option<Kernels> {
    Some(match op {
        Op::FloorDivide => kernels_of::<Divide<T, true, false>>(level),
        Op::Remainder => kernels_of::<Divide<T, true, true>>(level),
        Op::Power => kernels_of::<Power<T>>(level),
        _ => return None,
    })
}

/// The kernels of divisions that round towards 0.
fn truncated<T: Int>(op: Op, level: Level) -> Option<Kernels> {
    Some(match op {
        Op::TruncDivide => kernels_of::<Divide<T, false, false>>(level),
        Op::Fmod => kernels_of::<Divide<T, false, true>>(level),
        _ => return None,
    })
}
