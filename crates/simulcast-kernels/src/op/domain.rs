//! The element types that an operation takes, and the type that it gives: NumPy's lists of loops, as sets.

use crate::dtype::DType;

/// `bool`.
pub const BOOL: u32 = 1 << DType::Bool as u32;
const SIGNED: u32 = 1 << DType::I8 as u32
    | 1 << DType::I16 as u32
    | 1 << DType::I32 as u32
    | 1 << DType::I64 as u32;
const UNSIGNED: u32 = 1 << DType::U8 as u32
    | 1 << DType::U16 as u32
    | 1 << DType::U32 as u32
    | 1 << DType::U64 as u32;
/// Signed and unsigned integers.
pub const INTEGERS: u32 = SIGNED | UNSIGNED;
/// Floats of 16, 32 and 64 bits.
pub const FLOATS: u32 = 1 << DType::F16 as u32
    | 1 << DType::Bf16 as u32
    | 1 << DType::F32 as u32
    | 1 << DType::F64 as u32;
/// Complex numbers.
pub const COMPLEX: u32 = 1 << DType::C64 as u32 | 1 << DType::C128 as u32;
/// Text.
pub const STRING: u32 = 1 << DType::String as u32;
/// Integers and floats.
pub const REAL: u32 = INTEGERS | FLOATS;
/// Integers, floats and complex numbers.
pub const NUMBERS: u32 = REAL | COMPLEX;
/// Operands that are all `bool` are refused, as NumPy does, rather than cast to `int8`.
pub const REFUSES_BOOL: u32 = 1 << 31;

/// The type of an operation's result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gives {
    /// The type of the operands.
    Same,
    /// `bool`.
    Bool,
    /// `bool`, of a comparison: integers that no integer type holds together are legal.
    Compared,
    /// The type of a complex number's parts; otherwise the operand's.
    Part,
}

/// The types of an operation.
#[derive(Clone, Copy, Debug)]
pub struct Domain {
    types: u32,
    gives: Gives,
}

impl Domain {
    pub(super) const fn new(types: u32, gives: Gives) -> Self {
        Self { types, gives }
    }

    /// Whether the operation has a loop for this type.
    #[must_use]
    pub const fn has(self, dtype: DType) -> bool {
        self.types & 1 << dtype as u32 != 0
    }

    /// Whether operands that are all `bool` are refused, though `bool` casts to types that it takes.
    #[must_use]
    pub const fn refuses_bool(self) -> bool {
        self.types & REFUSES_BOOL != 0
    }

    /// Whether the operation compares: integers of any two types are legal then.
    #[must_use]
    pub const fn compares(self) -> bool {
        matches!(self.gives, Gives::Compared)
    }

    /// What it gives.
    #[must_use]
    pub const fn gives(self) -> Gives {
        self.gives
    }

    /// The type of the result of operands of type `dtype`.
    #[must_use]
    pub const fn result(self, dtype: DType) -> DType {
        match (self.gives, dtype) {
            (Gives::Bool | Gives::Compared, _) => DType::Bool,
            (Gives::Part, DType::C64) => DType::F32,
            (Gives::Part, DType::C128) => DType::F64,
            _ => dtype,
        }
    }

    /// The kinds of types that it takes, in words.
    pub fn words(self) -> impl Iterator<Item = &'static str> {
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
