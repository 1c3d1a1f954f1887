//! Type errors: which operation, on which types, and what it would take.

use std::fmt;

use super::{Literal, OperandType};
use simulcast_kernels::dtype::DType;
use simulcast_kernels::op::Op;

/// Types that an operation does not take.
///
/// ```
/// use ndarray::array;
/// use simulcast::{ProgramErrorKind, eval};
///
/// let error = eval("~x", ("x", &array![1.5])).unwrap_err();
/// let ProgramErrorKind::Type(error) = &error.kind else { panic!("a type error") };
/// assert_eq!(error.to_string(), "`bitwise_not` is not defined on float64; it takes bool and integers");
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct TypeError {
    /// The operation, where there is one.
    pub op: Option<Op>,
    /// The types of its operands.
    pub types: Vec<OperandType>,
    /// What is wrong.
    pub kind: TypeErrorKind,
}

/// What is wrong with types.
///
/// ```
/// use ndarray::array;
/// use simulcast::types::TypeErrorKind;
/// use simulcast::{ProgramErrorKind, eval};
///
/// let error = eval("x + 300", ("x", &array![1_i8])).unwrap_err();
/// let ProgramErrorKind::Type(error) = &error.kind else { panic!("a type error") };
/// assert!(matches!(error.kind, TypeErrorKind::Literal { .. }));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum TypeErrorKind {
    /// Another number of operands than the operation takes.
    Arity {
        /// How many it takes.
        expected: usize,
    },
    /// The operation is not defined on these types.
    Undefined,
    /// No type holds all of them.
    NothingCommon,
    /// They are not equal, where they have to be.
    Different,
    /// A condition that is not boolean.
    Condition(DType),
    /// A literal that the type does not hold.
    Literal {
        /// The literal.
        literal: Literal,
        /// The type that it had to adopt.
        dtype: DType,
    },
    /// An integer, of numbers alone, of more than 128 bits.
    TooLarge,
    /// A conversion between text and numbers.
    Cast(DType),
    /// A reduction that is not defined on the type.
    Reduction(&'static str),
}

impl TypeError {
    pub(crate) fn new(op: Option<Op>, types: &[OperandType], kind: TypeErrorKind) -> Self {
        Self { op, types: types.to_vec(), kind }
    }

    /// Whether text meets numbers.
    fn mixes_text(&self) -> bool {
        let text = OperandType::Array(DType::String);
        let meet =
            matches!(self.kind, TypeErrorKind::NothingCommon | TypeErrorKind::Literal { .. });
        meet && self.op.is_some()
            && self.types.contains(&text)
            && self.types.iter().any(|own| *own != text)
    }

    /// The kinds of types that the operation takes, in words: `integers`, `floats`.
    pub fn allowed(&self) -> impl Iterator<Item = &'static str> {
        self.op.into_iter().flat_map(|op| op.row().domain.words())
    }
}

impl fmt::Display for OperandType {
    /// The name of the type, or the literal.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Array(dtype) => dtype.fmt(f),
            Self::Literal(literal) => literal.fmt(f),
        }
    }
}

/// Words in a row: `a`, `a and b`, `a, b and c`.
pub(crate) fn listed(words: &[impl fmt::Display]) -> String {
    let mut text = String::new();
    for (k, word) in words.iter().enumerate() {
        let joint = match k {
            0 => "",
            _ if k + 1 == words.len() => " and ",
            _ => ", ",
        };
        text.push_str(joint);
        text.push_str(&word.to_string());
    }
    text
}

impl fmt::Display for TypeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let types = listed(&self.types);
        let op = self.op.map_or("this", Op::name);
        if self.mixes_text() {
            let allowed: Vec<&str> = self.allowed().collect();
            // Text is joined by what users call `add`.
            let op = if self.op == Some(Op::Concat) { Op::Add.name() } else { op };
            return match allowed.contains(&"strings") || self.op == Some(Op::Add) {
                true => write!(f, "`{op}` takes text or numbers, not {types} together"),
                false => write!(
                    f,
                    "`{op}` does not take text, as in {types}; it takes {}",
                    listed(&allowed)
                ),
            };
        }
        match self.kind {
            TypeErrorKind::Arity { expected } => {
                let (given, s) = (self.types.len(), if expected == 1 { "" } else { "s" });
                write!(f, "`{op}` takes {expected} operand{s}, not {given}")
            }
            TypeErrorKind::Undefined => {
                let allowed: Vec<&str> = self.allowed().collect();
                write!(f, "`{op}` is not defined on {types}; it takes {}", listed(&allowed))
            }
            TypeErrorKind::NothingCommon => write!(f, "{types} have no type in common"),
            TypeErrorKind::Different => {
                write!(f, "{types} differ, and `{op}` takes equal types here; cast one of them")
            }
            TypeErrorKind::Condition(dtype) => {
                write!(f, "the condition of `{op}` is bool, not {dtype}")
            }
            TypeErrorKind::Literal { literal, dtype } => {
                write!(f, "{literal} does not fit in {dtype}")
            }
            TypeErrorKind::TooLarge => {
                write!(f, "`{op}` of {types} is too large an integer; one of them can be a float")
            }
            TypeErrorKind::Cast(dtype) => write!(f, "{types} does not convert to {dtype}"),
            TypeErrorKind::Reduction(name) => write!(f, "`{name}` is not defined on {types}"),
        }
    }
}

impl std::error::Error for TypeError {}
