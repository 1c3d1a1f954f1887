//! Operators on numbers alone: computed as Python does, so that the result is a number of its kind.
//!
//! In `x + 7 // 2` NumPy never sees the 7: Python has made a 3 of it, which adopts the type of `x`. What
//! Python would refuse (a division by 0), and powers that it makes complex, are left to the engine,
//! with a type. An integer beyond 128 bits is refused: in 64 bits it would be another number.

use crate::by_name::types::{Literal, OperandType, TypeErrorKind};
use simulcast_kernels::op::Op;

use Literal::{Bool, Complex, Float, Int};

/// What Python makes of an operator on numbers, where it is one.
pub(in crate::by_name::program) fn literally(
    op: Op,
    types: &[OperandType],
) -> Result<Option<Literal>, TypeErrorKind> {
    let number = |at: usize| match types.get(at) {
        Some(OperandType::Literal(literal)) => Some(*literal),
        _ => None,
    };
    if types.len() != op.arity() {
        return Ok(None);
    }
    match (number(0), number(1), number(2)) {
        (Some(a), None, None) => of_one(op, a),
        (Some(a), Some(b), None) => of_two(op, a, b),
        (Some(condition), Some(yes), Some(no)) if op == Op::Where => {
            let (chosen, other) = if condition.truth() { (yes, no) } else { (no, yes) };
            Ok(alike(chosen, other))
        }
        _ => Ok(None),
    }
}

/// An integer, unless it is beyond what is counted in.
fn counted(whole: Option<i128>) -> Result<Option<Literal>, TypeErrorKind> {
    whole.map(|whole| Some(Int(whole))).ok_or(TypeErrorKind::TooLarge)
}

/// A truth as the integer that it is in Python.
fn whole(literal: Literal) -> Literal {
    if let Bool(truth) = literal { Int(truth.into()) } else { literal }
}

/// A number as one of the wider kind of the two: which of them is chosen says nothing of the type.
fn alike(chosen: Literal, other: Literal) -> Option<Literal> {
    match (chosen, other) {
        (Complex(_), _) | (Bool(_), Bool(_)) | (Float(_), Bool(_) | Int(_) | Float(_)) => {
            Some(chosen)
        }
        (_, Complex(_)) => real(whole(chosen)).map(|own| Complex(crate::Complex::new(own, 0.0))),
        (_, Float(_)) => real(whole(chosen)).map(Float),
        (Bool(_) | Int(_), Bool(_) | Int(_)) => Some(whole(chosen)),
    }
}

fn of_one(op: Op, a: Literal) -> Result<Option<Literal>, TypeErrorKind> {
    match (op, whole(a)) {
        (Op::LogicalNot, _) => Ok(Some(Bool(!a.truth()))),
        (Op::Negative, Int(a)) => counted(a.checked_neg()),
        (Op::Negative, Float(a)) => Ok(Some(Float(-a))),
        (Op::Negative, Complex(a)) => Ok(Some(Complex(-a))),
        (Op::BitwiseNot, Int(a)) => Ok(Some(Int(!a))),
        _ => Ok(None),
    }
}

fn of_two(op: Op, a: Literal, b: Literal) -> Result<Option<Literal>, TypeErrorKind> {
    match (op, a, b) {
        (Op::LogicalAnd | Op::BitwiseAnd, Bool(a), Bool(b)) => return Ok(Some(Bool(a && b))),
        (Op::LogicalOr | Op::BitwiseOr, Bool(a), Bool(b)) => return Ok(Some(Bool(a || b))),
        (Op::BitwiseXor, Bool(a), Bool(b)) => return Ok(Some(Bool(a != b))),
        _ => {}
    }
    match (whole(a), whole(b)) {
        (Int(a), Int(b)) => of_integers(op, a, b),
        (a, b) => Ok(match (real(a), real(b)) {
            (Some(a), Some(b)) => of_floats(op, a, b),
            _ => of_complex(op, complex(a), complex(b)),
        }),
    }
}

/// The number, where it is real.
fn real(literal: Literal) -> Option<f64> {
    match whole(literal) {
        Int(value) => Some(value as f64),
        Float(value) => Some(value),
        Bool(_) | Complex(_) => None,
    }
}

fn complex(literal: Literal) -> crate::Complex<f64> {
    match literal {
        Complex(value) => value,
        other => real(other).unwrap_or_default().into(),
    }
}

fn of_complex(op: Op, a: crate::Complex<f64>, b: crate::Complex<f64>) -> Option<Literal> {
    match op {
        Op::Add => Some(Complex(a + b)),
        Op::Subtract => Some(Complex(a - b)),
        Op::Multiply => Some(Complex(a * b)),
        Op::Equal => Some(Bool(a == b)),
        Op::NotEqual => Some(Bool(a != b)),
        _ => None,
    }
}

fn of_integers(op: Op, a: i128, b: i128) -> Result<Option<Literal>, TypeErrorKind> {
    let whole = match op {
        Op::FloorDivide | Op::Remainder | Op::Divide if b == 0 => return Ok(None),
        Op::LeftShift | Op::RightShift if b < 0 => return Ok(None),
        Op::Add => a.checked_add(b),
        Op::Subtract => a.checked_sub(b),
        Op::Multiply => a.checked_mul(b),
        Op::Power if b >= 0 => {
            // Of 0, 1 and -1 there are few powers.
            let b = if a.unsigned_abs() <= 1 { b.min(2 + b % 2) } else { b };
            u32::try_from(b).ok().and_then(|b| a.checked_pow(b))
        }
        // Rounded down, and what is left has the sign of `b`.
        Op::FloorDivide => a.checked_div(b).map(|times| {
            let left = a % b;
            if left != 0 && (left < 0) != (b < 0) { times - 1 } else { times }
        }),
        Op::Remainder => a
            .checked_rem(b)
            .map(|left| if left != 0 && (left < 0) != (b < 0) { left + b } else { left }),
        Op::LeftShift if a == 0 => Some(0),
        Op::LeftShift => {
            let by = u32::try_from(b).ok().and_then(|b| 2_i128.checked_pow(b));
            by.and_then(|by| a.checked_mul(by))
        }
        Op::RightShift => Some(a >> b.min(127)),
        Op::BitwiseAnd => Some(a & b),
        Op::BitwiseOr => Some(a | b),
        Op::BitwiseXor => Some(a ^ b),
        Op::Divide => return Ok(Some(Float(quotient(a, b)))),
        Op::Power => return Ok(of_floats(op, a as f64, b as f64)),
        _ => return Ok(compared(op, a, b)),
    };
    counted(whole)
}

/// The quotient, rounded once: neither number need be one that a float holds.
fn quotient(a: i128, b: i128) -> f64 {
    let (by, mut left) = (b.unsigned_abs(), a.unsigned_abs() % b.unsigned_abs());
    let (mut bits, mut places) = (a.unsigned_abs() / by, 0);
    // Two bits more than are kept, and then whether anything is left.
    while left != 0 && bits >> (f64::MANTISSA_DIGITS + 2) == 0 {
        let more = left >= by - left;
        left = if more { left - (by - left) } else { left + left };
        bits = bits << 1 | u128::from(more);
        places += 1;
    }
    let value = (bits | u128::from(left != 0)) as f64 * 2_f64.powi(-places);
    if (a < 0) != (b < 0) { -value } else { value }
}

fn of_floats(op: Op, a: f64, b: f64) -> Option<Literal> {
    Some(Float(match op {
        Op::Add => a + b,
        Op::Subtract => a - b,
        Op::Multiply => a * b,
        Op::Divide => a / b,
        // Of a negative number it may be complex, and of 0 there is not every one.
        Op::Power if a > 0.0 || a < 0.0 && b.fract() == 0.0 || a == 0.0 && b >= 0.0 => a.powf(b),
        Op::Remainder if b != 0.0 => remainder(a, b),
        Op::FloorDivide if b != 0.0 => {
            let left = a % b;
            let below = left != 0.0 && (left < 0.0) != (b < 0.0);
            let times = (a - left) / b - f64::from(u8::from(below));
            // It is whole but for its last bits.
            if times == 0.0 { 0.0_f64.copysign(a / b) } else { times.round() }
        }
        Op::Remainder | Op::FloorDivide | Op::Power => return None,
        _ => return compared(op, a, b),
    }))
}

/// What is left, with the sign of `b`.
fn remainder(a: f64, b: f64) -> f64 {
    let left = a % b;
    match left == 0.0 {
        true => 0.0_f64.copysign(b),
        false if (left < 0.0) != (b < 0.0) => left + b,
        false => left,
    }
}

fn compared<T: PartialOrd + Copy>(op: Op, a: T, b: T) -> Option<Literal> {
    Some(Bool(match op {
        Op::Equal => a == b,
        Op::NotEqual => a != b,
        Op::Less => a < b,
        Op::LessEqual => a <= b,
        Op::Greater => a > b,
        Op::GreaterEqual => a >= b,
        _ => return None,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Python's own answers, as far as 128 bits hold them.
    #[test]
    fn integers_are_pythons_or_refused() {
        let of = |op, a: i128, b: i128| {
            literally(op, &[OperandType::Literal(Int(a)), OperandType::Literal(Int(b))])
        };
        let far = 100_000_000_000_000_000_001;
        for (op, a, b, answer) in [
            (Op::Power, 10, 38, 100_000_000_000_000_000_000_000_000_000_000_000_000),
            (Op::Power, -1, far, -1),
            (Op::Power, -1, far - 1, 1),
            (Op::Power, -1, 0, 1),
            (Op::Power, 0, far, 0),
            (Op::Power, 0, 0, 1),
            (Op::Power, 1, far, 1),
            (Op::LeftShift, 0, 200, 0),
            (Op::LeftShift, -1, 126, -85_070_591_730_234_615_865_843_651_857_942_052_864),
            (Op::RightShift, -7, 200, -1),
            (Op::FloorDivide, -7, 2, -4),
            (Op::FloorDivide, 7, -2, -4),
            (Op::Remainder, -7, 3, 2),
            (Op::Remainder, 7, -3, -2),
        ] {
            assert_eq!(of(op, a, b), Ok(Some(Int(answer))), "{op} of {a} and {b}");
        }
        for (op, a, b) in [
            (Op::Power, 10, 39),
            (Op::Power, 2, far),
            (Op::LeftShift, 1, 127),
            (Op::LeftShift, 1, far),
            (Op::Add, i128::MAX, 1),
            (Op::Multiply, i128::MAX, 2),
        ] {
            assert_eq!(of(op, a, b), Err(TypeErrorKind::TooLarge), "{op} of {a} and {b}");
        }
        for op in [Op::FloorDivide, Op::Remainder, Op::Divide] {
            assert_eq!(of(op, 7, 0), Ok(None), "{op}");
        }
    }
}
