//! Casts between types: which lose nothing, which stay in their family, and the smallest type that
//! holds two.

use simulcast_kernels::dtype::{DType, DTypeKind};

/// What a cast may do, as in NumPy.
///
/// ```
/// use simulcast::types::{Casting, can_cast};
/// use simulcast::DType;
///
/// assert!(can_cast(DType::I32, DType::F64, Casting::Safe));
/// assert!(!can_cast(DType::I64, DType::F32, Casting::Safe) && can_cast(DType::I64, DType::F32, Casting::SameKind));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Casting {
    /// Nothing.
    No,
    /// Change the order of bytes, which no array here has: nothing.
    Equiv,
    /// Keep every value.
    Safe,
    /// Stay in the family, or go to a larger one: integers to smaller ones, to any float.
    SameKind,
    /// Anything.
    Unsafe,
}

/// The types as NumPy's loops are ordered: the first that holds all operands is the one to take.
pub(super) const BY_SIZE: [DType; 16] = [
    DType::Bool,
    DType::I8,
    DType::U8,
    DType::I16,
    DType::U16,
    DType::I32,
    DType::U32,
    DType::I64,
    DType::U64,
    DType::F16,
    DType::Bf16,
    DType::F32,
    DType::F64,
    DType::C64,
    DType::C128,
    DType::String,
];

/// What decides whether a literal has a say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Family {
    Bool,
    Integer,
    Float,
    Complex,
    String,
}

impl Family {
    pub(super) const fn of(dtype: DType) -> Self {
        match dtype.kind() {
            DTypeKind::Bool => Self::Bool,
            DTypeKind::Unsigned | DTypeKind::Signed => Self::Integer,
            DTypeKind::Float => Self::Float,
            DTypeKind::Complex => Self::Complex,
            DTypeKind::String => Self::String,
        }
    }
}

/// Whether values of `from` may be cast to `to`: NumPy's `can_cast`.
///
/// ```
/// use simulcast::DType;
/// use simulcast::types::{Casting, can_cast};
///
/// assert!(can_cast(DType::U8, DType::I16, Casting::Safe));
/// assert!(!can_cast(DType::I64, DType::F32, Casting::Safe));
/// assert!(can_cast(DType::I64, DType::F32, Casting::SameKind));
/// ```
#[must_use]
pub const fn can_cast(from: DType, to: DType, casting: Casting) -> bool {
    let (a, b) = (from.kind(), to.kind());
    let same = from as u8 == to as u8;
    match casting {
        _ if same => true,
        _ if matches!(a, DTypeKind::String) || matches!(b, DTypeKind::String) => false,
        Casting::No | Casting::Equiv => false,
        Casting::Unsafe => true,
        Casting::Safe => is_safe(from, to),
        Casting::SameKind => match (from, to) {
            // `ml_dtypes` registers its type outside of NumPy's families.
            (DType::Bf16, DType::F16) => false,
            (DType::C64 | DType::C128, DType::Bf16) => true,
            _ => match (a, b) {
                (DTypeKind::Signed, DTypeKind::Signed)
                | (DTypeKind::Unsigned, DTypeKind::Unsigned | DTypeKind::Signed)
                | (
                    DTypeKind::Signed | DTypeKind::Unsigned,
                    DTypeKind::Float | DTypeKind::Complex,
                )
                | (DTypeKind::Float, DTypeKind::Float | DTypeKind::Complex)
                | (DTypeKind::Complex, DTypeKind::Complex) => true,
                _ => is_safe(from, to),
            },
        },
    }
}

/// Whether every value is kept, which NumPy also says of 64-bit integers as `float64`.
const fn is_safe(from: DType, to: DType) -> bool {
    let (wide, own) = (to.size(), from.size());
    match (from.kind(), to.kind()) {
        (DTypeKind::Bool, _) => true,
        (DTypeKind::Unsigned, DTypeKind::Unsigned) | (DTypeKind::Signed, DTypeKind::Signed) => {
            own <= wide
        }
        (DTypeKind::Unsigned, DTypeKind::Signed) => own < wide,
        (DTypeKind::Signed | DTypeKind::Unsigned, DTypeKind::Float) => own < wide || wide == 8,
        (DTypeKind::Signed | DTypeKind::Unsigned, DTypeKind::Complex) => {
            own < wide / 2 || wide == 16
        }
        (DTypeKind::Float, DTypeKind::Float) => own < wide,
        (DTypeKind::Float, DTypeKind::Complex) => own <= wide / 2,
        (DTypeKind::Complex, DTypeKind::Complex) => own <= wide,
        _ => false,
    }
}

/// The smallest type that holds both: NumPy's `promote_types`, with `ml_dtypes`' `bfloat16`.
///
/// `None` for text with numbers, and for `bfloat16` with what neither holds: NumPy has no common type
/// for these, though its loops take `float32` for them.
///
/// ```
/// use simulcast::types::promote_types;
/// use simulcast::DType;
///
/// assert_eq!(promote_types(DType::I64, DType::F32), Some(DType::F64));
/// assert_eq!(promote_types(DType::String, DType::F32), None);
/// ```
#[must_use]
pub fn promote_types(a: DType, b: DType) -> Option<DType> {
    let holds =
        |dtype: &&DType| can_cast(a, **dtype, Casting::Safe) && can_cast(b, **dtype, Casting::Safe);
    let both = *BY_SIZE.iter().find(holds)?;
    let foreign = a == DType::Bf16 || b == DType::Bf16;
    (!foreign || both == a || both == b).then_some(both)
}
