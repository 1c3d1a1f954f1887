//! What can go wrong with a program, as data: what, where in the text, with which values.

use std::fmt;
use std::ops::Range;

use simulcast_core::BroadcastError;

use crate::by_name::program::front::axes::Fold;
use crate::by_name::program::front::syntax_error::{SyntaxError, SyntaxErrorKind};
use crate::by_name::types::TypeError;
use simulcast_kernels::dtype::DType;

/// A program that cannot be made, or not be run on these arrays.
#[derive(Clone, Debug, PartialEq)]
pub struct ProgramError {
    /// What is wrong.
    pub kind: ProgramErrorKind,
    /// Which part of the text it is about; empty where there is no text.
    pub span: Range<usize>,
    /// The values that met there.
    pub operands: Box<[ErrorOperand]>,
}

/// A value that took part in what went wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorOperand {
    /// Which part of the text it is.
    pub span: Range<usize>,
    /// The type of its elements.
    pub dtype: DType,
    /// Its sizes.
    pub shape: Vec<usize>,
}

/// What is wrong with a program.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ProgramErrorKind {
    /// A text that is no expression.
    Parse(SyntaxErrorKind),
    /// A name that no operand has.
    Unknown {
        /// The name.
        name: String,
        /// An operand that is nearly called so.
        near: Option<String>,
    },
    /// Shapes that do not broadcast, or a result too large to hold.
    Broadcast(BroadcastError),
    /// Types that do not go together.
    Type(Box<TypeError>),
    /// Another number of arrays than the program has operands.
    Operands {
        /// How many it has.
        expected: usize,
        /// How many came.
        given: usize,
    },
    /// An array of another type than the program was made for.
    DType {
        /// The operand, or `out`.
        name: String,
        /// The type it was made for.
        expected: DType,
        /// The type that came.
        given: DType,
    },
    /// An axis that the value does not have.
    Axis {
        /// The axis, counted from the end where it is negative.
        axis: isize,
        /// How many it has.
        rank: usize,
    },
    /// Axes that are no order of the value's, or name one twice.
    Axes {
        /// As they were given.
        axes: Vec<isize>,
        /// How many it has.
        rank: usize,
    },
    /// More `:` than the value has axes.
    Indices {
        /// How many there are.
        indices: usize,
        /// How many axes it has.
        rank: usize,
    },
    /// The largest or the smallest of nothing.
    Empty(Fold),
    /// An operation for which the engine has no code.
    Unsupported(String),
    /// An operation that has no derivative on these types.
    NoDerivative {
        /// Its name.
        name: &'static str,
        /// The types of its operands.
        dtypes: Vec<DType>,
    },
    /// A gradient that is not one of floats.
    Gradient {
        /// The type that came.
        given: DType,
    },
    /// Something that is to have a gradient, or whose gradient is wanted, and is no float.
    NotAFloat {
        /// The operand, or `the result`.
        name: String,
        /// Its type.
        given: DType,
    },
    /// A result that is to have a gradient, and is not one number.
    NotOneNumber {
        /// Its shape.
        shape: Vec<usize>,
    },
}

impl ProgramError {
    pub(crate) fn new(kind: ProgramErrorKind, span: Range<usize>) -> Self {
        Self { kind, span, operands: Box::default() }
    }
}

impl fmt::Display for ProgramErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Parse(kind) => kind.fmt(f),
            Self::Unknown { name, near: None } => write!(f, "there is no operand `{name}`"),
            Self::Unknown { name, near: Some(near) } => {
                write!(f, "there is no operand `{name}`; did you mean `{near}`?")
            }
            Self::Broadcast(error) => error.fmt(f),
            Self::Type(error) => error.fmt(f),
            Self::Operands { expected, given } => {
                let (own, arrays) = match (expected, given) {
                    (1, _) => ("operand", "arrays were"),
                    (_, 1) => ("operands", "array was"),
                    _ => ("operands", "arrays were"),
                };
                write!(f, "the program has {expected} {own}, {given} {arrays} given")
            }
            Self::DType { name, expected, given } => {
                write!(f, "`{name}` is {given}, the program was made for {expected}")
            }
            Self::Axis { axis, rank } => write!(f, "there is no axis {axis} among {rank}"),
            Self::Axes { axes, rank } => {
                let own =
                    |&axis: &isize| crate::by_name::program::front::axes::axis_of(axis, *rank);
                let twice = (1..axes.len()).any(|at| {
                    let axis = own(&axes[at]);
                    axis.is_some() && axes[..at].iter().any(|before| own(before) == axis)
                });
                let listed: Vec<String> = axes.iter().map(isize::to_string).collect();
                let listed = listed.join(", ");
                match twice {
                    true => write!(f, "axes ({listed}) name one of {rank} twice"),
                    false => write!(f, "axes ({listed}) are no order of {rank}"),
                }
            }
            Self::Indices { indices, rank } => {
                write!(f, "{indices} axes are kept of a value that has {rank}")
            }
            Self::Empty(fold) => write!(f, "there is no {} of no elements", fold.name()),
            Self::Unsupported(what) => write!(f, "there is no code for {what}"),
            Self::NoDerivative { name, dtypes } => {
                write!(f, "`{name}` has no derivative on")?;
                let mut links = std::iter::once("").chain(std::iter::repeat(" and"));
                dtypes
                    .iter()
                    .zip(&mut links)
                    .try_for_each(|(dtype, link)| write!(f, "{link} {dtype}"))
            }
            Self::Gradient { given } => write!(f, "the gradient is {given}, not a float"),
            Self::NotAFloat { name, given } => {
                write!(f, "`{name}` is {given}; only floats have gradients")
            }
            Self::NotOneNumber { shape } => {
                let sizes: Vec<String> = shape.iter().map(usize::to_string).collect();
                let comma = if sizes.len() == 1 { "," } else { "" };
                let shape = sizes.join(", ");
                write!(
                    f,
                    "the result has shape ({shape}{comma}), and a gradient is that of one number; \
                     reduce it, as in `sum(...)`, or give the gradient of the result"
                )
            }
        }
    }
}

impl fmt::Display for ProgramError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.kind.fmt(f)
    }
}

impl std::error::Error for ProgramError {}

impl From<TypeError> for ProgramError {
    fn from(error: TypeError) -> Self {
        Self::new(ProgramErrorKind::Type(Box::new(error)), 0..0)
    }
}

impl From<SyntaxError> for ProgramError {
    fn from(error: SyntaxError) -> Self {
        Self::new(ProgramErrorKind::Parse(error.kind), error.span)
    }
}
