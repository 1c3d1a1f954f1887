//! Operators on numbers alone: computed as Python does, so that the result is a number of its kind.
//!
//! In `x + 7 // 2` NumPy never sees the 7: Python has made a 3 of it, which adopts the type of `x`. What
//! Python would refuse (a division by 0), what does not fit, and powers that it makes complex are
//! left to the engine, with a type.

use crate::op::Op;
use crate::typing::{Literal, Type};

use Literal::{Bool, Complex, Float, Int};

/// What Python makes of an operator on numbers.
pub(super) fn literally(op: Op, types: &[Type]) -> Option<Literal> {
    let number = |at: usize| match types.get(at) {
        Some(Type::Literal(literal)) => Some(*literal),
        _ => None,
    };
    if types.len() != op.arity() {
        return None;
    }
    match types.len() {
        1 => of_one(op, number(0)?),
        2 => of_two(op, number(0)?, number(1)?),
        _ => match (op, number(0)?, number(1)?, number(2)?) {
            (Op::Where, condition, yes, no) => {
                let (chosen, other) = if condition.truth() { (yes, no) } else { (no, yes) };
                alike(chosen, other)
            }
            _ => None,
        },
    }
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

fn of_one(op: Op, a: Literal) -> Option<Literal> {
    match (op, whole(a)) {
        (Op::LogicalNot, _) => Some(Bool(!a.truth())),
        (Op::Negative, Int(a)) => a.checked_neg().map(Int),
        (Op::Negative, Float(a)) => Some(Float(-a)),
        (Op::Negative, Complex(a)) => Some(Complex(-a)),
        (Op::BitwiseNot, Int(a)) => Some(Int(!a)),
        _ => None,
    }
}

fn of_two(op: Op, a: Literal, b: Literal) -> Option<Literal> {
    match (op, a, b) {
        (Op::LogicalAnd | Op::BitwiseAnd, Bool(a), Bool(b)) => return Some(Bool(a && b)),
        (Op::LogicalOr | Op::BitwiseOr, Bool(a), Bool(b)) => return Some(Bool(a || b)),
        (Op::BitwiseXor, Bool(a), Bool(b)) => return Some(Bool(a != b)),
        _ => {}
    }
    match (whole(a), whole(b)) {
        (Int(a), Int(b)) => of_integers(op, a, b),
        (a @ Complex(_), b) | (a, b @ Complex(_)) => {
            let [a, b] = [a, b].map(|literal| match literal {
                Complex(value) => Some(value),
                other => real(other).map(|value| crate::Complex::new(value, 0.0)),
            });
            match op {
                Op::Add => Some(Complex(a? + b?)),
                Op::Subtract => Some(Complex(a? - b?)),
                Op::Multiply => Some(Complex(a? * b?)),
                Op::Equal => Some(Bool(a? == b?)),
                Op::NotEqual => Some(Bool(a? != b?)),
                _ => None,
            }
        }
        (a, b) => of_floats(op, real(a)?, real(b)?),
    }
}

fn real(literal: Literal) -> Option<f64> {
    match literal {
        Int(value) => Some(value as f64),
        Float(value) => Some(value),
        Bool(_) | Complex(_) => None,
    }
}

fn of_integers(op: Op, a: i128, b: i128) -> Option<Literal> {
    let whole = match op {
        Op::Add => a.checked_add(b),
        Op::Subtract => a.checked_sub(b),
        Op::Multiply => a.checked_mul(b),
        Op::Power if b >= 0 => a.checked_pow(u32::try_from(b).ok()?),
        // Rounded down, and what is left has the sign of `b`.
        Op::FloorDivide => {
            let (times, left) = (a.checked_div(b)?, a.checked_rem(b)?);
            Some(if left != 0 && (left < 0) != (b < 0) { times - 1 } else { times })
        }
        Op::Remainder => {
            let left = a.checked_rem(b)?;
            Some(if left != 0 && (left < 0) != (b < 0) { left + b } else { left })
        }
        Op::LeftShift => a.checked_mul(2_i128.checked_pow(u32::try_from(b).ok()?)?),
        Op::RightShift if b >= 0 => Some(a >> b.min(127)),
        Op::BitwiseAnd => Some(a & b),
        Op::BitwiseOr => Some(a | b),
        Op::BitwiseXor => Some(a ^ b),
        Op::Divide if b == 0 => None,
        Op::Divide => return Some(Float(quotient(a, b))),
        Op::Power => return of_floats(op, a as f64, b as f64),
        _ => return compared(op, a, b),
    };
    whole.map(Int)
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
