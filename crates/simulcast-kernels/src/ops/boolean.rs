//! Operations on `bool`: results are bytes of 0 and 1, and of operands every byte but 0 is true.
//!
//! NumPy's arrays may hold such bytes. To take each for what it is costs a loop over memory nothing,
//! where to look at all of them first would be a pass of its own.
//!
//! Addition and `maximum` are or, multiplication and `minimum` are and, as in NumPy; subtraction and
//! negation are not defined.

use super::{Kernels, bodies};
use crate::{Level, Op};

/// What a truth value is in memory; sealed to the byte, so that the table is generic as the others.
pub(super) trait Truth: Copy {
    fn is(self) -> bool;
}

impl Truth for u8 {
    #[inline(always)]
    fn is(self) -> bool {
        self != 0
    }
}

/// The loops of an operation on `bool`.
pub(super) fn boolean(op: Op, level: Level) -> Option<Kernels> {
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
    light Absolute(a) -> u8 { a.is().into() }
    light Imag(_a) -> u8 { 0 }
    light LogicalNot(a) -> u8 { (!a.is()).into() }
    light Isnan(_a) -> u8 { 0 }
    light Isfinite(_a) -> u8 { 1 }
    light LogicalAnd(a, b) -> u8 { (a.is() & b.is()).into() }
    light LogicalOr(a, b) -> u8 { (a.is() | b.is()).into() }
    light LogicalXor(a, b) -> u8 { (a.is() != b.is()).into() }
    light Equal(a, b) -> u8 { (a.is() == b.is()).into() }
    light Less(a, b) -> u8 { (!a.is() & b.is()).into() }
    light LessEqual(a, b) -> u8 { (!a.is() | b.is()).into() }
    light MultiplyAdd(a, b, c) -> u8 { ((a.is() & b.is()) | c.is()).into() }
}
