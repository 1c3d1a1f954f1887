//! Dimensions: sizes that may not be known yet.

use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use crate::Interval;

/// A name for a size that is not known yet, with what is known of it.
///
/// ```
/// use simulcast_core::{Dim, Dims, Rule, Symbol, resolve_dims};
///
/// let n = Dims::from(vec![Dim::Symbol(Symbol::new("n"))]);
/// assert_eq!(resolve_dims(Rule::Numpy, &[n.clone(), n])?.shape().to_string(), "(n,)");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Symbol {
    /// The name; equal names stand for equal sizes. Shared, because sizes go from shape to shape.
    pub name: Arc<str>,
    /// The sizes that it may stand for.
    pub range: Interval,
}

impl Symbol {
    /// A symbol that may stand for any size.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self { name: name.into(), range: Interval::UNKNOWN }
    }
}

/// A size, an interval of sizes, or a symbol.
///
/// ```
/// use simulcast_core::{Dim, Symbol};
///
/// let dims = [Dim::Size(3), Dim::Symbol(Symbol::new("n")), Dim::UNKNOWN];
/// assert_eq!(dims.map(|dim| dim.size()), [Some(3), None, None]);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Dim {
    /// A known size.
    Size(usize),
    /// Some size in an interval; [`Interval::UNKNOWN`] where nothing is known.
    Range(Interval),
    /// A size with a name.
    Symbol(Symbol),
    /// The common size of symbols: the one that is not 1, if there is one.
    Join(Vec<Symbol>),
}

impl Dim {
    /// A size of which nothing is known.
    pub const UNKNOWN: Self = Self::Range(Interval::UNKNOWN);

    /// The size, where it is known.
    #[must_use]
    pub fn size(&self) -> Option<usize> {
        self.interval().size()
    }

    /// The sizes that it may be.
    #[must_use]
    pub fn interval(&self) -> Interval {
        match self {
            Self::Size(size) => Interval::from(*size),
            Self::Range(range) => *range,
            Self::Symbol(symbol) => symbol.range,
            Self::Join(symbols) => symbols
                .iter()
                .map(|symbol| symbol.range)
                .try_fold(Interval::from(1), Interval::join)
                .unwrap_or(Interval::UNKNOWN),
        }
    }
}

impl From<usize> for Dim {
    fn from(size: usize) -> Self {
        Self::Size(size)
    }
}

impl From<Interval> for Dim {
    fn from(range: Interval) -> Self {
        range.size().map_or(Self::Range(range), Self::Size)
    }
}

impl fmt::Display for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Size(size) => write!(f, "{size}"),
            Self::Range(range) => write!(f, "{range}"),
            Self::Symbol(symbol) => f.write_str(&symbol.name),
            Self::Join(symbols) => {
                f.write_str("bcast(")?;
                write_list(f, symbols.iter().map(|symbol| &symbol.name))?;
                f.write_str(")")
            }
        }
    }
}

/// The dimensions of a shape, or a shape of which not even the rank is known.
///
/// ```
/// use simulcast_core::{Dims, ShapeText};
///
/// let dims = "N,3".parse::<ShapeText>()?.dims;
/// assert_eq!((dims.to_string().as_str(), dims.sizes()), ("(N, 3)", None));
/// assert_eq!(Dims::from(&[2, 3][..]).sizes(), Some(vec![2, 3]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Dims {
    /// One dimension for each axis.
    Ranked(Vec<Dim>),
    /// The rank is not known.
    Unranked,
}

impl Dims {
    /// The sizes, where all of them are known.
    #[must_use]
    pub fn sizes(&self) -> Option<Vec<usize>> {
        self.dims()?.iter().map(Dim::size).collect()
    }

    /// The dimensions, where the rank is known.
    #[must_use]
    pub fn dims(&self) -> Option<&[Dim]> {
        match self {
            Self::Ranked(dims) => Some(dims),
            Self::Unranked => None,
        }
    }
}

impl From<&[usize]> for Dims {
    fn from(sizes: &[usize]) -> Self {
        Self::Ranked(sizes.iter().copied().map(Dim::Size).collect())
    }
}

impl From<Vec<Dim>> for Dims {
    fn from(dims: Vec<Dim>) -> Self {
        Self::Ranked(dims)
    }
}

/// `(2, N, 4)`, `(3,)`, `()`, and `(...)` for an unknown rank.
impl fmt::Display for Dims {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ranked(dims) => write_tuple(f, dims),
            Self::Unranked => f.write_str("(...)"),
        }
    }
}

/// A shape as people write it: `(2, 3, 4)`, `(3,)`, `()`.
///
/// ```
/// assert_eq!(simulcast_core::format_shape(&[3]), "(3,)");
/// ```
#[must_use]
pub fn format_shape(shape: &[usize]) -> String {
    Dims::from(shape).to_string()
}

fn write_tuple(f: &mut fmt::Formatter<'_>, items: &[impl fmt::Display]) -> fmt::Result {
    f.write_str("(")?;
    write_list(f, items)?;
    f.write_str(if items.len() == 1 { ",)" } else { ")" })
}

fn write_list(
    f: &mut fmt::Formatter<'_>,
    items: impl IntoIterator<Item = impl fmt::Display>,
) -> fmt::Result {
    for (position, item) in items.into_iter().enumerate() {
        if position > 0 {
            f.write_str(", ")?;
        }
        write!(f, "{item}")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_read_as_people_write_them() {
        let n = || Symbol::new("N");
        let join = Dim::Join(alloc::vec![n(), Symbol::new("M")]);
        let dims = Dims::from(alloc::vec![Dim::Size(2), Dim::Symbol(n()), join, Dim::UNKNOWN]);
        assert_eq!(dims.to_string(), "(2, N, bcast(N, M), ?)");
        assert_eq!(Dims::Unranked.to_string(), "(...)");
        assert_eq!(
            [format_shape(&[]), format_shape(&[3]), format_shape(&[2, 3])],
            ["()", "(3,)", "(2, 3)"]
        );
        assert_eq!(dims.sizes(), None);
        assert_eq!(Dims::Unranked.sizes(), None);
        assert_eq!(Dims::from(&[2, 3][..]).sizes(), Some(alloc::vec![2, 3]));
        let to = |lo, hi| Interval::new(lo, Some(hi)).unwrap();
        assert_eq!(Dim::from(to(2, 4)).interval(), to(2, 4));
        assert_eq!(Dim::from(Interval::from(2)), Dim::from(2));
    }

    #[test]
    fn a_join_is_as_wide_as_its_symbols_allow() {
        let to = |lo, hi| Interval::new(lo, Some(hi)).unwrap();
        let at = |lo, hi| Symbol { name: "n".into(), range: to(lo, hi) };
        let join = |symbols| Dim::Join(symbols).interval();
        assert_eq!(join(alloc::vec![at(1, 3), at(0, 2)]), to(0, 3));
        assert_eq!(join(alloc::vec![at(2, 3), at(4, 5)]), Interval::UNKNOWN);
    }
}
