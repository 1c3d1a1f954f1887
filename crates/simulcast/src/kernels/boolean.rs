//! Operations on `bool`, which is a byte of 0 or 1 here.
//!
//! Addition and `maximum` are or, multiplication and `minimum` are and, as in NumPy; subtraction and
//! negation are not defined.

use super::{Kernel, bodies};
use crate::{Level, Op};

/// What a truth value is in memory; sealed to the byte, so that the table is generic as the others.
pub(super) trait Truth: Copy + Into<u8> + From<u8> {}

impl Truth for u8 {}

/// The loops of an operation on `bool`.
pub(super) fn boolean(op: Op, level: Level) -> Option<&'static [Kernel]> {
    truth::<u8>(op, level)
}

bodies! {
    /// The loops of an operation on truth values.
    fn truth<T: Truth>;
    light Absolute(a) -> T { a }
    light Floor(a) -> T { a }
    light Ceil(a) -> T { a }
    light Round(a) -> T { a }
    light Trunc(a) -> T { a }
    light Conjugate(a) -> T { a }
    light Real(a) -> T { a }
    light Imag(_a) -> T { T::from(0) }
    light LogicalNot(a) -> u8 { a.into() ^ 1 }
    light BitwiseNot(a) -> u8 { a.into() ^ 1 }
    light Isnan(_a) -> u8 { 0 }
    light Isinf(_a) -> u8 { 0 }
    light Isfinite(_a) -> u8 { 1 }
    light Add(a, b) -> u8 { a.into() | b.into() }
    light Multiply(a, b) -> u8 { a.into() & b.into() }
    light Maximum(a, b) -> u8 { a.into() | b.into() }
    light Minimum(a, b) -> u8 { a.into() & b.into() }
    light LogicalAnd(a, b) -> u8 { a.into() & b.into() }
    light LogicalOr(a, b) -> u8 { a.into() | b.into() }
    light LogicalXor(a, b) -> u8 { a.into() ^ b.into() }
    light BitwiseAnd(a, b) -> u8 { a.into() & b.into() }
    light BitwiseOr(a, b) -> u8 { a.into() | b.into() }
    light BitwiseXor(a, b) -> u8 { a.into() ^ b.into() }
    light Equal(a, b) -> u8 { a.into() ^ b.into() ^ 1 }
    light NotEqual(a, b) -> u8 { a.into() ^ b.into() }
    light Less(a, b) -> u8 { (a.into() ^ 1) & b.into() }
    light LessEqual(a, b) -> u8 { (a.into() ^ 1) | b.into() }
    light Greater(a, b) -> u8 { a.into() & (b.into() ^ 1) }
    light GreaterEqual(a, b) -> u8 { a.into() | (b.into() ^ 1) }
    light MultiplyAdd(a, b, c) -> u8 { (a.into() & b.into()) | c.into() }
}
