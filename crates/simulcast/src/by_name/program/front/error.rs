//! What can go wrong with a program, as data: what, where in the text, with which values.

use std::fmt;
use std::ops::Range;

use simulcast_core::BroadcastError;

use crate::by_name::program::front::axes::Fold;
use crate::by_name::program::front::diagnostic::Diagnostic;
use crate::by_name::program::front::syntax_error::{SyntaxError, SyntaxErrorKind};
use crate::by_name::types::{IntoArrayError, TypeError};
use simulcast_kernels::dtype::DType;

/// A program that cannot be made, or not be run on these arrays.
///
/// ```
/// use ndarray::array;
/// use simulcast::{ProgramErrorKind, eval};
///
/// let error = eval("x + y", (("x", &array![1, 2]), ("y", &array![1, 2, 3]))).unwrap_err();
/// assert!(matches!(&error.kind, ProgramErrorKind::Broadcast(error) if error.code() == "E1"));
/// assert!(error.span.contains(&2)); // the `+`
/// ```
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub struct ProgramError {
    /// What is wrong.
    pub kind: ProgramErrorKind,
    /// Which part of the text it is about; empty where there is no text.
    pub span: Range<usize>,
    /// The values that met there.
    pub operands: Box<[ErrorOperand]>,
    /// The error in its text, where that is known.
    pub(super) diagnostic: Option<Box<Diagnostic>>,
}

/// A value that took part in what went wrong.
///
/// ```
/// use ndarray::array;
/// use simulcast::eval;
///
/// let error = eval("x + y", (("x", &array![1, 2]), ("y", &array![1, 2, 3]))).unwrap_err();
/// assert_eq!((error.operands[1].span.clone(), &error.operands[1].shape[..]), (4..5, &[3][..]));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ErrorOperand {
    /// Which part of the text it is.
    pub span: Range<usize>,
    /// The type of its elements.
    pub dtype: DType,
    /// Its sizes.
    pub shape: Vec<usize>,
}

/// What is wrong with a program.
///
/// ```
/// use simulcast::{Program, ProgramErrorKind};
///
/// let error = Program::parse("x + y")?.call(("x", 1)).unwrap_err();
/// assert!(matches!(&error.kind, ProgramErrorKind::Unknown { name, .. } if name == "y"));
/// # Ok::<(), simulcast::ProgramError>(())
/// ```
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
    /// An argument of a name that the expression does not have.
    NotInExpression {
        /// The name.
        name: String,
        /// An operand that is nearly called so.
        near: Option<String>,
    },
    /// Two arguments of one name.
    GivenTwice {
        /// The name.
        name: String,
    },
    /// A result of another type or rank than was asked for.
    IntoArray(IntoArrayError),
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
    /// The largest or the smallest of no elements.
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
        Self { kind, span, operands: Box::default(), diagnostic: None }
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
            Self::NotInExpression { name, near } => {
                write!(f, "the expression has no operand `{name}`")?;
                near.as_ref().map_or(Ok(()), |near| write!(f, "; did you mean `{near}`?"))
            }
            Self::GivenTwice { name } => write!(f, "`{name}` is given twice"),
            Self::IntoArray(error) => error.fmt(f),
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

impl ProgramError {
    /// An error about a part of the text, and the values that met there.
    pub(crate) fn of_operands(
        kind: ProgramErrorKind,
        span: Range<usize>,
        operands: impl IntoIterator<Item = ErrorOperand>,
    ) -> Self {
        Self { operands: operands.into_iter().collect(), ..Self::new(kind, span) }
    }

    /// The error in its text, to be shown with colours, and with the edits that it suggests; none where the error came
    /// without a text, as from [`TypedProgram`](crate::TypedProgram).
    ///
    /// ```
    /// use ndarray::array;
    ///
    /// let error = simulcast::eval("a + b", (("a", &array![[1], [2]]), ("b", &array![1, 2]), ("c", 1)));
    /// assert!(error.is_err_and(|error| error.diagnostic().is_none())); // about the call, not the text
    ///
    /// let (x, y) = (array![[1, 2, 3], [4, 5, 6]], array![1, 2]);
    /// let error = simulcast::eval("x + y", (("x", &x), ("y", &y))).unwrap_err();
    /// let edit = error.diagnostic().and_then(|shown| shown.suggestions().next());
    /// assert_eq!(edit.as_deref(), Some("x + y[:, None]"));
    /// ```
    #[must_use]
    pub fn diagnostic(&self) -> Option<&Diagnostic> {
        self.diagnostic.as_deref()
    }
}

/// The error in its text where that is known, with what it is about underlined; else one line.
impl fmt::Display for ProgramError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.diagnostic {
            Some(shown) => shown.fmt(f),
            None => self.kind.fmt(f),
        }
    }
}

/// As its text: what `unwrap` shows.
impl fmt::Debug for ProgramError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.diagnostic {
            Some(shown) => write!(f, "{shown}"),
            None => write!(f, "ProgramError({:?})", self.kind.to_string()),
        }
    }
}

impl std::error::Error for ProgramError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.kind {
            ProgramErrorKind::Broadcast(error) => Some(error),
            ProgramErrorKind::Type(error) => Some(&**error),
            ProgramErrorKind::IntoArray(error) => Some(error),
            _ => None,
        }
    }
}

impl From<BroadcastError> for ProgramError {
    fn from(error: BroadcastError) -> Self {
        Self::new(ProgramErrorKind::Broadcast(error), 0..0)
    }
}

impl From<IntoArrayError> for ProgramError {
    fn from(error: IntoArrayError) -> Self {
        Self::new(ProgramErrorKind::IntoArray(error), 0..0)
    }
}

/// The error, with its text.
impl From<Diagnostic> for ProgramError {
    fn from(shown: Diagnostic) -> Self {
        Self { diagnostic: Some(Box::new(shown.clone())), ..shown.into_error() }
    }
}

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
