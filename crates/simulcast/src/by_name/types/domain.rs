//! What each operation is defined on, and what it gives: NumPy's lists of loops, in short.

use simulcast_kernels::dtype::DType;
use simulcast_kernels::op::Op;

const BOOL: u32 = 1 << DType::Bool as u32;
const SIGNED: u32 = 1 << DType::I8 as u32
    | 1 << DType::I16 as u32
    | 1 << DType::I32 as u32
    | 1 << DType::I64 as u32;
const UNSIGNED: u32 = 1 << DType::U8 as u32
    | 1 << DType::U16 as u32
    | 1 << DType::U32 as u32
    | 1 << DType::U64 as u32;
const INTEGERS: u32 = SIGNED | UNSIGNED;
const FLOATS: u32 = 1 << DType::F16 as u32
    | 1 << DType::Bf16 as u32
    | 1 << DType::F32 as u32
    | 1 << DType::F64 as u32;
const COMPLEX: u32 = 1 << DType::C64 as u32 | 1 << DType::C128 as u32;
const STRING: u32 = 1 << DType::String as u32;
const REAL: u32 = INTEGERS | FLOATS;
const NUMBERS: u32 = REAL | COMPLEX;

/// What comes out of an operation.
#[derive(Clone, Copy)]
enum Gives {
    Same,
    Bool,
    /// The type of a complex number's parts.
    Part,
}

/// The types of an operation.
#[derive(Clone, Copy)]
pub(super) struct Domain {
    types: u32,
    gives: Gives,
    /// NumPy refuses booleans alone, rather than to take the smallest integers for them.
    pub(super) refuses_bool: bool,
    /// Whether it compares: integers that do not fit are legal then.
    pub(super) compares: bool,
}

impl Domain {
    pub(super) const fn of(op: Op) -> Self {
        use Gives::{Bool, Part, Same};
        let (types, gives) = match op {
            Op::Negative | Op::Sign | Op::Square | Op::Reciprocal | Op::Conjugate => {
                (NUMBERS, Same)
            }
            Op::Subtract | Op::Power => (NUMBERS, Same),
            Op::Absolute | Op::Real | Op::Imag => (BOOL | NUMBERS, Part),
            Op::Sqrt
            | Op::Exp
            | Op::Exp2
            | Op::Expm1
            | Op::Log
            | Op::Log2
            | Op::Log10
            | Op::Log1p
            | Op::Sin
            | Op::Cos
            | Op::Tan
            | Op::Arcsin
            | Op::Arccos
            | Op::Arctan
            | Op::Sinh
            | Op::Cosh
            | Op::Tanh
            | Op::Arcsinh
            | Op::Arccosh
            | Op::Arctanh
            | Op::Divide => (FLOATS | COMPLEX, Same),
            Op::Cbrt | Op::Erf | Op::Sigmoid | Op::Arctan2 | Op::Hypot => (FLOATS, Same),
            Op::Relu | Op::FloorDivide | Op::Remainder | Op::Fmod => (REAL, Same),
            Op::Floor | Op::Ceil | Op::Trunc => (BOOL | REAL, Same),
            Op::Round => (NUMBERS, Same),
            Op::Add | Op::Multiply | Op::Maximum | Op::Minimum | Op::MultiplyAdd => {
                (BOOL | NUMBERS, Same)
            }
            Op::BitwiseNot | Op::BitwiseAnd | Op::BitwiseOr | Op::BitwiseXor => {
                (BOOL | INTEGERS, Same)
            }
            Op::TruncDivide | Op::LeftShift | Op::RightShift => (INTEGERS, Same),
            Op::LogicalNot
            | Op::LogicalAnd
            | Op::LogicalOr
            | Op::LogicalXor
            | Op::Isnan
            | Op::Isinf
            | Op::Isfinite
            | Op::Less
            | Op::LessEqual
            | Op::Greater
            | Op::GreaterEqual => (BOOL | NUMBERS, Bool),
            Op::Equal | Op::NotEqual => (BOOL | NUMBERS | STRING, Bool),
            Op::Concat => (STRING, Same),
            Op::Where => (BOOL | NUMBERS | STRING, Same),
        };
        let compares = matches!(
            op,
            Op::Equal | Op::NotEqual | Op::Less | Op::LessEqual | Op::Greater | Op::GreaterEqual
        );
        let refuses_bool = matches!(op, Op::Negative | Op::Sign | Op::Subtract);
        Self { types, gives, refuses_bool, compares }
    }

    pub(super) const fn has(self, dtype: DType) -> bool {
        self.types & 1 << dtype as u32 != 0
    }

    pub(super) const fn result(self, dtype: DType) -> DType {
        match (self.gives, dtype) {
            (Gives::Bool, _) => DType::Bool,
            (Gives::Part, DType::C64) => DType::F32,
            (Gives::Part, DType::C128) => DType::F64,
            _ => dtype,
        }
    }

    /// The kinds that it takes, in words.
    pub(super) fn words(self) -> impl Iterator<Item = &'static str> {
        let kinds = [
            (BOOL, "bool"),
            (INTEGERS, "integers"),
            (FLOATS, "floats"),
            (COMPLEX, "complex numbers"),
            (STRING, "strings"),
        ];
        kinds.into_iter().filter(move |(mask, _)| self.types & mask != 0).map(|(_, word)| word)
    }
}
