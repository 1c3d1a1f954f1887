//! Types of expressions: what operands are cast to, what is computed, what comes out.
//!
//! [`Promotion::Numpy`] is NumPy 2's: literals are weak (NEP 50), and an operation takes the first
//! of its types, from small to large, that every operand fits in. [`Promotion::Strict`] wants equal
//! types, as ONNX does; literals still adopt the arrays' type.
//!
//! ```
//! use simulcast::{DType, Op};
//! use simulcast::types::{Literal, Promotion, OperandType, promote_types, signature};
//!
//! assert_eq!(promote_types(DType::I64, DType::F32), Some(DType::F64));
//! let args = [OperandType::Array(DType::F32), OperandType::Literal(Literal::Float(0.5))];
//! let product = signature(Op::Multiply, &args, Promotion::Numpy)?;
//! assert_eq!(product.result, DType::F32);
//! let args = [OperandType::Array(DType::I8), OperandType::Literal(Literal::Int(200))];
//! let error = signature(Op::Add, &args, Promotion::Numpy).unwrap_err();
//! assert_eq!(error.to_string(), "200 does not fit in int8");
//! # Ok::<(), simulcast::types::TypeError>(())
//! ```
//!
//! | operands | types |
//! |---|---|
//! | integers divided by integers | `float64` |
//! | `sqrt`, `exp`, … of integers | the smallest float that holds all of them: `int8` gives `float16` |
//! | `bool - bool`, `-bool` | refused; `bool + bool` is or, `bool * bool` and |
//! | `int64` compared with `uint64` | exact: see [`Signature::is_mixed`] |
//! | `int8 < 300` | legal, computed in a type that holds both |
//! | `bfloat16` | as NumPy with `ml_dtypes`: with `float16`, `int16` it is `float32`; with a float literal too |

mod cast;
mod error;
mod into_array_error;
mod literal;
#[cfg(test)]
mod tests;

pub use cast::{Casting, can_cast, promote_types};
pub(crate) use error::listed;
pub use error::{TypeError, TypeErrorKind};
pub use into_array_error::IntoArrayError;
pub use literal::{Literal, literal_as, literal_operand};

use cast::{BY_SIZE, Family};
use simulcast_kernels::dtype::{DType, DTypeKind};
use simulcast_kernels::op::Op;

/// How operands of different types meet.
///
/// ```
/// use ndarray::array;
/// use simulcast::Program;
/// use simulcast::types::Promotion;
///
/// let (x, y) = (array![1_f32], array![1_i32]);
/// let both = (("x", &x), ("y", &y));
/// assert!(Program::parse("x + y")?.call(both).is_ok()); // float64
/// assert!(Program::parse("x + y")?.with_promotion(Promotion::Strict).call(both).is_err());
/// # Ok::<(), simulcast::ProgramError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Promotion {
    /// As NumPy 2: operands are cast to a common type, literals are weak.
    #[default]
    Numpy,
    /// As ONNX: the types must be equal; literals adopt them.
    Strict,
}

/// The type of an operand: an array's, or a literal that adopts the type of what it meets.
///
/// ```
/// use simulcast::types::{OperandType, Promotion, result_type};
/// use simulcast::DType;
///
/// let types = [OperandType::from(DType::F32), OperandType::Literal(0.5.into())];
/// assert_eq!(result_type(&types, Promotion::Numpy)?, DType::F32);
/// # Ok::<(), simulcast::types::TypeError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum OperandType {
    /// An array of that type.
    Array(DType),
    /// A number in the text.
    Literal(Literal),
}

impl From<DType> for OperandType {
    fn from(dtype: DType) -> Self {
        Self::Array(dtype)
    }
}

/// What an operation does with its operands' types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[doc(hidden)]
pub struct Signature {
    /// The type that each operand is cast to; literals get their value there. Places beyond the
    /// operation's arity repeat the last one.
    pub args: [DType; 3],
    /// The type of the loop. For the 16-bit floats the engine takes `float32`, which holds their
    /// values, and rounds once.
    pub compute: DType,
    /// The type of the result.
    pub result: DType,
}

impl Signature {
    /// Whether it compares `int64` with `uint64`: no integer type holds both, and as floats they
    /// lose bits. With `s` the signed and `u` the unsigned operand, and `s` cast to `uint64` with
    /// its bits kept, `s < u` is `s < 0 or uint64(s) < u`, and `s == u` is `s >= 0 and uint64(s) == u`.
    #[must_use]
    pub fn is_mixed(&self) -> bool {
        let [first, second, _] = self.args;
        matches!((first, second), (DType::I64, DType::U64) | (DType::U64, DType::I64))
    }
}

/// The types that `op` takes and gives, on operands of types `args`.
///
/// # Errors
///
/// A number of operands that the operation does not take, types that it is not defined on, types
/// that have nothing in common (or, under [`Promotion::Strict`], differ), and literals that do not
/// fit.
#[doc(hidden)]
pub fn signature(
    op: Op,
    args: &[OperandType],
    promotion: Promotion,
) -> Result<Signature, TypeError> {
    let error = |kind| TypeError::new(Some(op), args, kind);
    if args.len() != op.arity() {
        return Err(error(TypeErrorKind::Arity { expected: op.arity() }));
    }
    let domain = op.row().domain;
    let operands = match (op, args) {
        (Op::Where, [condition, operands @ ..]) => {
            if let OperandType::Array(dtype) = *condition {
                let strict = promotion == Promotion::Strict && dtype != DType::Bool;
                if strict || dtype == DType::String {
                    return Err(error(TypeErrorKind::Condition(dtype)));
                }
            }
            operands
        }
        _ => args,
    };
    let dtype = match promotion {
        Promotion::Strict => {
            let dtype = strict(operands).map_err(error)?;
            let refused = domain.refuses_bool() && dtype == DType::Bool;
            if refused || !domain.has(dtype) {
                return Err(error(TypeErrorKind::Undefined));
            }
            dtype
        }
        // Moved, not computed: NumPy's answer is that of `result_type`, not of the list of loops.
        Promotion::Numpy if op == Op::Where => common(operands).map_err(error)?,
        Promotion::Numpy => {
            let asked: Vec<DType> = stand_ins(operands, domain.compares(), DType::F16).collect();
            if domain.refuses_bool() && asked.iter().all(|&dtype| dtype == DType::Bool) {
                return Err(error(TypeErrorKind::Undefined));
            }
            let holds = |dtype: &DType| {
                domain.has(*dtype) && asked.iter().all(|&own| can_cast(own, *dtype, Casting::Safe))
            };
            let whole = asked.iter().all(|&dtype| is_whole(dtype));
            match (BY_SIZE.iter().copied().find(holds), asked.as_slice()) {
                (Some(DType::F64), &[first, second]) if whole && domain.compares() => {
                    return Ok(mixed(first, second));
                }
                (Some(_), _) if whole && op == Op::Divide => DType::F64,
                (Some(_), [DType::Bool]) if op == Op::Round => DType::F16,
                (Some(dtype), _) => dtype,
                (None, _) if asked.contains(&DType::String) && common(operands).is_err() => {
                    return Err(error(TypeErrorKind::NothingCommon));
                }
                (None, _) => return Err(error(TypeErrorKind::Undefined)),
            }
        }
    };
    let first = if op == Op::Where { DType::Bool } else { dtype };
    let targets = [first, dtype, dtype];
    for (place, (own, target)) in args.iter().zip(targets).enumerate() {
        if let OperandType::Literal(literal) = *own {
            literal_operand(op, args, place, literal, target)
                .map_err(|failed| error(failed.kind))?;
        }
    }
    Ok(Signature { args: targets, compute: dtype, result: domain.result(dtype) })
}

/// The type that operands have in common: NumPy's `result_type`.
///
/// ```
/// use simulcast::types::{OperandType, Promotion, result_type};
/// use simulcast::DType;
///
/// assert_eq!(result_type(&[DType::I8.into(), DType::U8.into()], Promotion::Numpy)?, DType::I16);
/// let types = [OperandType::Literal(1.into()), DType::U8.into()];
/// assert_eq!(result_type(&types, Promotion::Numpy)?, DType::U8);
/// # Ok::<(), simulcast::types::TypeError>(())
/// ```
///
/// # Errors
///
/// Types without a common one, literals that do not fit; no type at all.
pub fn result_type(types: &[OperandType], promotion: Promotion) -> Result<DType, TypeError> {
    let found = match promotion {
        Promotion::Numpy => common(types),
        Promotion::Strict => strict(types),
    };
    let dtype = found.map_err(|kind| TypeError::new(None, types, kind))?;
    for one in types {
        if let OperandType::Literal(literal) = *one {
            literal_as(literal, dtype)
                .map_err(|failed| TypeError::new(None, types, failed.kind))?;
        }
    }
    Ok(dtype)
}

/// Whether it is an integer or a boolean.
const fn is_whole(dtype: DType) -> bool {
    dtype.is_integer() || matches!(dtype.kind(), DTypeKind::Bool)
}

fn common(types: &[OperandType]) -> Result<DType, TypeErrorKind> {
    let mut types = stand_ins(types, false, DType::F64);
    let first = types.next().ok_or(TypeErrorKind::NothingCommon)?;
    let join = |own, next| promote_types(own, next).ok_or(TypeErrorKind::NothingCommon);
    types.try_fold(first, join)
}

/// The types that decide: those of arrays, and what literals stand for where they are of another
/// family than every array. Next to arrays of their own family literals have no say; `comparing`
/// gives integers that do not fit a type that holds them all the same.
///
/// `beside_bf16` is what a float literal is next to `bfloat16`, which NumPy does not know as a float:
/// its loops see the smallest float, its `result_type` the usual one.
fn stand_ins(
    types: &[OperandType],
    comparing: bool,
    beside_bf16: DType,
) -> impl Iterator<Item = DType> {
    let arrays = types.iter().filter_map(|one| match *one {
        OperandType::Array(dtype) => Some(dtype),
        OperandType::Literal(Literal::Bool(_)) => Some(DType::Bool),
        OperandType::Literal(_) => None,
    });
    let family = arrays.clone().map(Family::of).max();
    let foreign = arrays.clone().any(|dtype| dtype == DType::Bf16)
        && !arrays.clone().any(|dtype| dtype.is_float() && dtype != DType::Bf16)
        && family == Some(Family::Float);
    let range = arrays.clone().filter(|dtype| dtype.is_integer()).collect::<Vec<_>>();
    let literal = move |literal: Literal| match literal {
        Literal::Bool(_) => Some(DType::Bool),
        Literal::Int(value) if comparing && family <= Some(Family::Integer) => {
            let fits = range.iter().any(|&dtype| literal_as(literal, dtype).is_ok());
            (!fits).then(|| literal::smallest_holding(value))
        }
        Literal::Int(_) => (family < Some(Family::Integer)).then_some(DType::I64),
        Literal::Float(_) if foreign => Some(beside_bf16),
        Literal::Float(_) => (family < Some(Family::Float)).then_some(DType::F64),
        Literal::Complex(_) if family == Some(Family::Float) => Some(DType::C64),
        Literal::Complex(_) => (family < Some(Family::Float)).then_some(DType::C128),
    };
    types.iter().filter_map(move |one| match *one {
        OperandType::Array(dtype) => Some(dtype),
        OperandType::Literal(own) => literal(own),
    })
}

/// The one type of the arrays, or what the literals are on their own.
fn strict(types: &[OperandType]) -> Result<DType, TypeErrorKind> {
    let mut arrays = types.iter().filter_map(|one| match one {
        OperandType::Array(dtype) => Some(*dtype),
        OperandType::Literal(_) => None,
    });
    let Some(first) = arrays.next() else { return common(types) };
    match arrays.all(|other| other == first) {
        true => Ok(first),
        false => Err(TypeErrorKind::Different),
    }
}

/// The comparison of a signed operand with an unsigned one that no signed type holds.
fn mixed(first: DType, second: DType) -> Signature {
    let wide = |dtype: DType| match dtype.kind() {
        DTypeKind::Unsigned => DType::U64,
        _ => DType::I64,
    };
    let args = [wide(first), wide(second), wide(second)];
    Signature { args, compute: DType::U64, result: DType::Bool }
}
