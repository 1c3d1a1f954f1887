//! Constraints: what must hold for sizes, once they are known.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use crate::{Names, join};

/// A size that a constraint speaks of.
///
/// ```
/// use simulcast_core::{Constraint, Rule, ShapeText, Term, resolve_dims};
///
/// let shapes = ["N", "4"].map(|text| text.parse::<ShapeText>().unwrap().dims);
/// let plan = resolve_dims(Rule::Numpy, &shapes)?;
/// assert_eq!(plan.constraints(), [Constraint::OneOr(Term::Symbol("N".into()), Term::Size(4))]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Term {
    /// A known size.
    Size(usize),
    /// The size that a symbol stands for.
    Symbol(Arc<str>),
    /// The common size of these symbols.
    Join(Vec<Arc<str>>),
    /// The size of an axis that has no name.
    Axis {
        /// The operand, counted from 0.
        operand: usize,
        /// The axis of its shape.
        axis: usize,
    },
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.describe(|operand| format!("operand {operand}")))
    }
}

impl Term {
    fn describe(&self, name: impl Fn(usize) -> String) -> String {
        match self {
            Self::Size(size) => size.to_string(),
            Self::Symbol(name) => name.to_string(),
            Self::Join(names) => format!("bcast({})", names.join(", ")),
            Self::Axis { operand, axis } => format!("axis {axis} of {}", name(*operand)),
        }
    }
}

/// What must hold for the sizes, once they are known.
///
/// ```
/// use simulcast_core::{Names, Rule, ShapeText, resolve_dims};
///
/// let shapes = ["N", "4"].map(|text| text.parse::<ShapeText>().unwrap().dims);
/// let plan = resolve_dims(Rule::Numpy, &shapes)?;
/// let constraint = &plan.constraints()[0];
/// assert_eq!(constraint.describe(&Names::default()), "N is 1 or 4");
/// assert_eq!((constraint.holds(|_| Some(1)), constraint.holds(|_| Some(3))), (Some(true), Some(false)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Constraint {
    /// Both are equal.
    Equal(Term, Term),
    /// The first is 1, or equal to the second.
    OneOr(Term, Term),
    /// Those that are not 1 are equal.
    Agree(Vec<Term>),
}

impl Constraint {
    /// Whether the constraint holds; `None` where `size` does not know a size that decides it.
    pub fn holds(&self, size: impl Fn(&Term) -> Option<usize>) -> Option<bool> {
        let size = |term: &Term| match term {
            Term::Size(size) => Some(*size),
            Term::Symbol(_) | Term::Axis { .. } => size(term),
            Term::Join(names) => {
                let mut sizes = names.iter().map(|name| size(&Term::Symbol(name.clone())));
                sizes.try_fold(1, |common, size| join(common, size?))
            }
        };
        match self {
            Self::Equal(a, b) => Some(size(a)? == size(b)?),
            Self::OneOr(a, b) => match size(a)? {
                1 => Some(true),
                known => Some(known == size(b)?),
            },
            Self::Agree(terms) => {
                let sizes: Option<BTreeSet<usize>> = terms.iter().map(size).collect();
                let mut sizes = sizes?;
                sizes.remove(&1);
                Some(sizes.len() < 2)
            }
        }
    }
}

/// The text with operands numbered, as no names are known here.
impl fmt::Display for Constraint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.write(|operand| format!("operand {operand}")))
    }
}

impl Constraint {
    /// `N = 4`, `N is 1 or 4`, `N and M are equal or one is 1`, with operands by name.
    #[must_use]
    pub fn describe(&self, names: &Names) -> String {
        self.write(|operand| names.operand(operand))
    }

    fn write(&self, name: impl Fn(usize) -> String) -> String {
        let term = |term: &Term| term.describe(&name);
        match self {
            Self::Equal(a, b) => format!("{} = {}", term(a), term(b)),
            Self::OneOr(a, b) => format!("{} is 1 or {}", term(a), term(b)),
            Self::Agree(terms) => match terms.as_slice() {
                [a, b] => format!("{} and {} are equal or one is 1", term(a), term(b)),
                terms => {
                    let terms: Vec<String> = terms.iter().map(term).collect();
                    format!("{}: those that are not 1 are equal", terms.join(", "))
                }
            },
        }
    }
}
