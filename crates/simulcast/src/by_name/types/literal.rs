//! Literals: numbers in the text, which adopt the type of what they meet.

use std::fmt;

use half::{bf16, f16};

use super::OperandType;
use crate::by_name::types::cast::{BY_SIZE, Family};
use crate::by_name::types::error::{TypeError, TypeErrorKind};
use simulcast_kernels::dtype::{Complex, DType, Scalar};
use simulcast_kernels::op::Op;

/// A number without a type of its own: in the text of an expression, or given for one of its names. It adopts the type of
/// what it meets, as Python's numbers do beside NumPy's arrays; a boolean is of type `bool` and nothing else.
///
/// ```
/// use simulcast::types::Literal;
///
/// assert_eq!([Literal::from(2), 0.5.into(), true.into()].map(|own| own.to_string()), ["2", "0.5", "True"]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Literal {
    /// `True`, `False`
    Bool(bool),
    /// `7`
    Int(i128),
    /// `0.5`
    Float(f64),
    /// `2j`, `1 + 2j`
    Complex(Complex<f64>),
}

impl Literal {
    /// Whether it is other than 0.
    #[must_use]
    pub fn truth(self) -> bool {
        match self {
            Self::Bool(value) => value,
            Self::Int(value) => value != 0,
            Self::Float(value) => value != 0.0,
            Self::Complex(value) => value != Complex::new(0.0, 0.0),
        }
    }

    const fn family(self) -> Family {
        match self {
            Self::Bool(_) => Family::Bool,
            Self::Int(_) => Family::Integer,
            Self::Float(_) => Family::Float,
            Self::Complex(_) => Family::Complex,
        }
    }
}

impl From<bool> for Literal {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

macro_rules! from_numbers {
    ($($variant:ident as $wide:ty: $($type:ty)*;)*) => { $($(
        impl From<$type> for Literal {
            fn from(value: $type) -> Self {
                Self::$variant(<$wide>::from(value))
            }
        }
    )*)* };
}

from_numbers! {
    Int as i128: i8 i16 i32 i64 i128 u8 u16 u32 u64;
    Float as f64: f16 bf16 f32 f64;
}

macro_rules! from_sizes {
    ($($type:ty)*) => { $(
        impl From<$type> for Literal {
            fn from(value: $type) -> Self {
                Self::Int(value as i128)
            }
        }
    )* };
}

from_sizes! { isize usize }

impl From<Complex<f64>> for Literal {
    fn from(value: Complex<f64>) -> Self {
        Self::Complex(value)
    }
}

impl From<Complex<f32>> for Literal {
    fn from(value: Complex<f32>) -> Self {
        Self::Complex(Complex::new(value.re.into(), value.im.into()))
    }
}

impl fmt::Display for Literal {
    /// As Python writes it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Bool(true) => f.write_str("True"),
            Self::Bool(false) => f.write_str("False"),
            Self::Int(value) => write!(f, "{value}"),
            Self::Float(value) => write_float(f, value),
            Self::Complex(value) if value.re == 0.0 && value.re.is_sign_positive() => {
                write_float(f, value.im)?;
                f.write_str("j")
            }
            Self::Complex(value) => {
                f.write_str("(")?;
                write_float(f, value.re)?;
                if value.im.is_sign_positive() || value.im.is_nan() {
                    f.write_str("+")?;
                }
                write_float(f, value.im)?;
                f.write_str("j)")
            }
        }
    }
}

fn write_float(f: &mut fmt::Formatter<'_>, value: f64) -> fmt::Result {
    match value.is_nan() {
        true => f.write_str("nan"),
        false => write!(f, "{value:?}"),
    }
}

/// The value of a literal as `dtype`.
///
/// ```
/// use simulcast::{DType, Scalar};
/// use simulcast::types::{Literal, literal_as};
///
/// assert_eq!(literal_as(Literal::Int(-3), DType::I8), Ok(Scalar::Int(DType::I8, -3)));
/// assert!(literal_as(Literal::Int(-3), DType::U8).is_err());
/// assert!(literal_as(Literal::Float(0.5), DType::I8).is_err());
/// ```
///
/// # Errors
///
/// An integer outside of the type's range, and a literal of a larger family than the type: `0.5` is
/// no integer. Floats are rounded, to infinity where they are too large, as NumPy does it.
#[doc(hidden)]
pub fn literal_as(literal: Literal, dtype: DType) -> Result<Scalar, TypeError> {
    let refused = || {
        let types = [OperandType::Literal(literal)];
        TypeError::new(None, &types, TypeErrorKind::Literal { literal, dtype })
    };
    if literal.family() > Family::of(dtype) || dtype == DType::String {
        return Err(refused());
    }
    let number = match literal {
        Literal::Bool(value) => f64::from(u8::from(value)),
        // In two steps, as Python and then NumPy do it.
        Literal::Int(value) => value as f64,
        Literal::Float(value) => value,
        Literal::Complex(value) => value.re,
    };
    Ok(match Family::of(dtype) {
        Family::Bool => Scalar::Bool(literal.truth()),
        Family::Integer => {
            let value = match literal {
                Literal::Int(value) => value,
                other => i128::from(other.truth()),
            };
            let (least, most) = range(dtype).ok_or_else(refused)?;
            if !(least..=most).contains(&value) {
                return Err(refused());
            }
            Scalar::Int(dtype, value)
        }
        Family::Float => Scalar::Float(dtype, rounded(number, dtype)),
        Family::Complex | Family::String => {
            let imaginary = match literal {
                Literal::Complex(value) => value.im,
                _ => 0.0,
            };
            Scalar::Complex(dtype, Complex::new(rounded(number, dtype), rounded(imaginary, dtype)))
        }
    })
}

/// The value of the literal that is operand `place` of `op` on operands of types `args`, cast to
/// `dtype`: as [`literal_as`], but conditions and logic ask for its truth, and comparisons with
/// integers see one beyond 64 bits as infinite, so that the answer is exact.
///
/// # Errors
///
/// As [`literal_as`].
#[doc(hidden)]
pub fn literal_operand(
    op: Op,
    args: &[OperandType],
    place: usize,
    literal: Literal,
    dtype: DType,
) -> Result<Scalar, TypeError> {
    let whole = |own: &OperandType| match own {
        OperandType::Array(dtype) => Family::of(*dtype) <= Family::Integer,
        OperandType::Literal(own) => own.family() <= Family::Integer,
    };
    let literal = match (op, literal) {
        (Op::Where, _) if place == 0 => Literal::Bool(literal.truth()),
        (Op::LogicalNot | Op::LogicalAnd | Op::LogicalOr | Op::LogicalXor, _) => {
            Literal::Bool(literal.truth())
        }
        (
            Op::Equal | Op::NotEqual | Op::Less | Op::LessEqual | Op::Greater | Op::GreaterEqual,
            Literal::Int(value),
        ) if smallest_holding(value) == DType::F64 && args.iter().all(whole) => {
            Literal::Float(f64::INFINITY.copysign(if value < 0 { -1.0 } else { 1.0 }))
        }
        _ => literal,
    };
    literal_as(literal, dtype)
}

/// The smallest and the largest integer of the type.
pub(super) const fn range(dtype: DType) -> Option<(i128, i128)> {
    Some(match dtype {
        DType::I8 => (i8::MIN as i128, i8::MAX as i128),
        DType::I16 => (i16::MIN as i128, i16::MAX as i128),
        DType::I32 => (i32::MIN as i128, i32::MAX as i128),
        DType::I64 => (i64::MIN as i128, i64::MAX as i128),
        DType::U8 => (0, u8::MAX as i128),
        DType::U16 => (0, u16::MAX as i128),
        DType::U32 => (0, u32::MAX as i128),
        DType::U64 => (0, u64::MAX as i128),
        _ => return None,
    })
}

/// The smallest integer type that holds the value, or `float64`.
pub(super) fn smallest_holding(value: i128) -> DType {
    let holds = |dtype: &&DType| {
        range(**dtype).is_some_and(|(least, most)| (least..=most).contains(&value))
    };
    BY_SIZE.iter().find(holds).copied().unwrap_or(DType::F64)
}

/// The nearest number of the type, or of a complex type's parts.
fn rounded(value: f64, dtype: DType) -> f64 {
    match dtype {
        // The other conversions may go through `f32` and round twice.
        DType::F16 => f16::from_f64_const(value).to_f64(),
        DType::Bf16 => bf16::from_f64_const(value).to_f64(),
        DType::F32 | DType::C64 => f64::from(value as f32),
        _ => value,
    }
}
