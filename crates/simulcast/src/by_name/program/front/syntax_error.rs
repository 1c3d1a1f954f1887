//! What is wrong with an expression's text, and where.

use std::fmt;
use std::ops::Range;

/// A text that is no expression.
///
/// ```
/// use simulcast::program::Expr;
///
/// let error = Expr::parse("sqrt(x").unwrap_err();
/// assert_eq!(error.span, 6..6); // the end, where a bracket has to stand
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct SyntaxError {
    /// Where, in bytes.
    pub span: Range<usize>,
    /// What.
    pub kind: SyntaxErrorKind,
}

/// What is wrong with a text.
///
/// ```
/// use simulcast::program::{Expr, SyntaxErrorKind};
///
/// let error = Expr::parse("x + 'y").unwrap_err();
/// assert_eq!(error.kind, SyntaxErrorKind::Unclosed);
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum SyntaxErrorKind {
    /// Something else has to stand here.
    Expected {
        /// What.
        wanted: &'static str,
        /// What does.
        found: String,
    },
    /// A character that no expression has.
    Character(char),
    /// A number that is not written as one.
    Number,
    /// A number that is too large.
    TooLarge,
    /// A text without its closing quote.
    Unclosed,
    /// A backslash before a letter that means nothing.
    Escape(char),
    /// Brackets, signs or conditions nested too deeply.
    Deep,
    /// A function that there is not.
    UnknownFunction {
        /// Its name.
        name: String,
        /// One that is nearly called so.
        near: Option<&'static str>,
    },
    /// A method or an attribute that there is not.
    UnknownMethod(String),
    /// A type that there is not.
    UnknownType {
        /// Its name.
        name: String,
        /// One that is nearly called so.
        near: Option<&'static str>,
    },
    /// Another number of operands than the function takes.
    Arity {
        /// The function.
        function: String,
        /// How many it takes, in words.
        expected: String,
        /// How many were given.
        given: usize,
    },
    /// A keyword that the function does not take.
    Keyword {
        /// The function.
        function: String,
        /// The keyword.
        keyword: String,
    },
    /// A keyword that was given before.
    Twice {
        /// The function.
        function: String,
        /// The keyword.
        keyword: String,
    },
    /// A function or a constant of a module: `np.sin(a)`.
    Module(String),
    /// An index other than `:`, `None` and one `...`.
    Index,
    /// An operator that there is not, with what to write instead.
    Operator {
        /// The operator.
        operator: &'static str,
        /// What to write instead, or why there is none.
        instead: &'static str,
    },
}

impl SyntaxError {
    pub(crate) const fn new(span: Range<usize>, kind: SyntaxErrorKind) -> Self {
        Self { span, kind }
    }
}

impl fmt::Display for SyntaxErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Expected { wanted, found } => write!(f, "expected {wanted}, found {found}"),
            Self::Character(c) => write!(f, "no expression has the character {c:?}"),
            Self::Number => f.write_str("this is not a number"),
            Self::TooLarge => f.write_str("this number is too large"),
            Self::Unclosed => f.write_str("this text has no closing quote"),
            Self::Escape(c) => write!(f, "a backslash before {c:?} means nothing"),
            Self::Deep => f.write_str("the expression is nested too deeply here"),
            Self::UnknownFunction { name, near: None } => {
                write!(f, "there is no function `{name}`")
            }
            Self::UnknownFunction { name, near: Some(near) } => {
                write!(f, "there is no function `{name}`; did you mean `{near}`?")
            }
            Self::UnknownMethod(name) => write!(f, "arrays have no `.{name}` here"),
            Self::UnknownType { name, near: None } => write!(f, "`{name}` is no element type"),
            Self::UnknownType { name, near: Some(near) } => {
                write!(f, "`{name}` is no element type; did you mean `{near}`?")
            }
            Self::Arity { function, expected, given } => {
                write!(f, "`{function}` takes {expected}, not {given}")
            }
            Self::Keyword { function, keyword } => {
                write!(f, "`{function}` takes no `{keyword}=`")
            }
            Self::Twice { function, keyword } => {
                write!(f, "`{function}` is given `{keyword}=` twice")
            }
            Self::Module(name) => {
                write!(f, "functions stand here without a module; leave out `{name}.`")
            }
            Self::Index => f.write_str("an index is made of `:`, `None` and one `...` alone"),
            Self::Operator { operator, instead } => {
                write!(f, "there is no `{operator}`; {instead}")
            }
        }
    }
}

impl fmt::Display for SyntaxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (at byte {})", self.kind, self.span.start)
    }
}

impl std::error::Error for SyntaxError {}
