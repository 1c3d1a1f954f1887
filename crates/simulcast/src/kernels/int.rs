//! Operations on integers: they wrap, and a quotient by 0 and its remainder are 0.
//!
//! Addition, multiplication, equality and bits are the same for signed and unsigned integers of one
//! width, so they are looked for among the unsigned first.

use super::{Loops, bodies};
use crate::{Level, Op};

/// An integer.
pub(super) trait Int: Copy + Ord {
    /// The unsigned integer of the same width.
    type Bits: Int;
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
    /// The quotient rounded towards 0; `other` is not 0.
    fn over(self, other: Self) -> Self;
    /// What is left then.
    fn left(self, other: Self) -> Self;
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
            fn left(self, other: Self) -> Self { self.wrapping_rem(other) }
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
pub(super) fn signed<T: Int>(op: Op, level: Level) -> Option<Loops> {
    let op = alike(op);
    bits::<T::Bits>(op, level).or_else(|| with_sign::<T>(op, level)).or_else(|| int::<T>(op, level))
}

/// The loops of an operation on unsigned integers.
pub(super) fn unsigned<T: Int>(op: Op, level: Level) -> Option<Loops> {
    let op = alike(op);
    bits::<T>(op, level).or_else(|| without_sign::<T>(op, level)).or_else(|| int::<T>(op, level))
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
    light Multiply(a, b) -> T { a.times(b) }
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
    light MultiplyAdd(a, b, c) -> T { a.times(b).plus(c) }
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
    heavy FloorDivide(a, b) -> T { floor_divide(a, b) }
    heavy Remainder(a, b) -> T { remainder(a, b) }
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
    heavy FloorDivide(a, b) -> T { if b == T::ZERO { b } else { a.over(b) } }
    heavy Remainder(a, b) -> T { if b == T::ZERO { b } else { a.left(b) } }
}

bodies! {
    /// What is written alike and compiled for both.
    fn int<T: Int>;
    light Reciprocal(a) -> T {
        if a == T::ONE || a == T::ONES && a < T::ZERO { a } else { T::ZERO }
    }
    heavy TruncDivide(a, b) -> T { if b == T::ZERO { b } else { a.over(b) } }
    heavy Fmod(a, b) -> T { if b == T::ZERO { b } else { a.left(b) } }
    heavy Power(a, b) -> T { power(a, b) }
    light Maximum(a, b) -> T { a.max(b) }
    light Minimum(a, b) -> T { a.min(b) }
    light Less(a, b) -> u8 { u8::from(a < b) }
    light LessEqual(a, b) -> u8 { u8::from(a <= b) }
    light Greater(a, b) -> u8 { u8::from(a > b) }
    light GreaterEqual(a, b) -> u8 { u8::from(a >= b) }
}

/// The quotient rounded down.
#[inline(always)]
fn floor_divide<T: Int>(a: T, b: T) -> T {
    if b == T::ZERO {
        return b;
    }
    let (quotient, left) = (a.over(b), a.left(b));
    let below = left != T::ZERO && (left < T::ZERO) != (b < T::ZERO);
    if below { quotient.minus(T::ONE) } else { quotient }
}

/// What is left then, with the sign of the divisor.
#[inline(always)]
fn remainder<T: Int>(a: T, b: T) -> T {
    if b == T::ZERO {
        return b;
    }
    let left = a.left(b);
    let below = left != T::ZERO && (left < T::ZERO) != (b < T::ZERO);
    if below { left.plus(b) } else { left }
}

/// By squaring; to a negative power, the quotient rounded towards 0.
#[inline(always)]
fn power<T: Int>(base: T, exponent: T) -> T {
    if exponent < T::ZERO {
        return match base {
            one if one == T::ONE => one,
            minus if minus == T::ONES => {
                if exponent.and(T::ONE) == T::ONE {
                    minus
                } else {
                    T::ONE
                }
            }
            _ => T::ZERO,
        };
    }
    let (mut result, mut base, mut exponent) = (T::ONE, base, exponent);
    while exponent != T::ZERO {
        if exponent.and(T::ONE) == T::ONE {
            result = result.times(base);
        }
        base = base.times(base);
        exponent = exponent.shr(1);
    }
    result
}
