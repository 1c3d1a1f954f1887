//! Operations on `bool`, which is a byte of 0 or 1 here.
//!
//! Addition and `maximum` are or, multiplication and `minimum` are and, as in NumPy; subtraction and
//! negation are not defined.

use super::{Loops, bodies};
use crate::{Level, Op};

/// What a truth value is in memory; sealed to the byte, so that the table is generic as the others.
pub(super) trait Truth: Copy + Into<u8> + From<u8> {}

impl Truth for u8 {}

/// The loops of an operation on `bool`.
pub(super) fn boolean(op: Op, level: Level) -> Option<Loops> {
    let alike = match op {
        Op::Floor | Op::Ceil | Op::Round | Op::Trunc | Op::Conjugate | Op::Real => Op::Absolute,
        Op::BitwiseNot => Op::LogicalNot,
        Op::Isinf => Op::Isnan,
        Op::Add | Op::Maximum | Op::BitwiseOr => Op::LogicalOr,
        Op::Multiply | Op::Minimum | Op::BitwiseAnd => Op::LogicalAnd,
        Op::BitwiseXor | Op::NotEqual => Op::LogicalXor,
        _ => op,
    };
    truth::<u8>(alike, level)
}

bodies! {
    /// The loops of an operation on truth values.
    fn truth<T: Truth>;
    light Absolute(a) -> T { a }
    light Imag(_a) -> T { T::from(0) }
    light LogicalNot(a) -> u8 { a.into() ^ 1 }
    light Isnan(_a) -> u8 { 0 }
    light Isfinite(_a) -> u8 { 1 }
    light LogicalAnd(a, b) -> u8 { a.into() & b.into() }
    light LogicalOr(a, b) -> u8 { a.into() | b.into() }
    light LogicalXor(a, b) -> u8 { a.into() ^ b.into() }
    light Equal(a, b) -> u8 { a.into() ^ b.into() ^ 1 }
    light Less(a, b) -> u8 { (a.into() ^ 1) & b.into() }
    light LessEqual(a, b) -> u8 { (a.into() ^ 1) | b.into() }
    light Greater(a, b) -> u8 { a.into() & (b.into() ^ 1) }
    light GreaterEqual(a, b) -> u8 { a.into() | (b.into() ^ 1) }
    light MultiplyAdd(a, b, c) -> u8 { (a.into() & b.into()) | c.into() }
}
