//! Axes as expressions name them: entries of an insertion, reductions over axes, axes counted from the end.

/// One entry of an axis insertion, such as `a[:, None]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AxisPattern {
    /// `:`, the next axis as it is.
    Keep,
    /// `None`, a new axis of size 1.
    New,
    /// `...`, all axes that no other entry names; at the end where it is left out.
    Rest,
}

/// A reduction: many elements into one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fold {
    /// The sum; of nothing, 0.
    Sum,
    /// The product; of nothing, 1.
    Product,
    /// The largest, or NaN; of nothing, an error.
    Maximum,
    /// The smallest, or NaN; of nothing, an error.
    Minimum,
    /// The sum over the number; of nothing, NaN.
    Mean,
}

impl Fold {
    /// The name that expressions use.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sum => "sum",
            Self::Product => "prod",
            Self::Maximum => "max",
            Self::Minimum => "min",
            Self::Mean => "mean",
        }
    }
}

/// An axis, counted from the front.
pub(crate) fn axis_of(axis: isize, rank: usize) -> Option<usize> {
    let at = if axis < 0 { axis.checked_add_unsigned(rank)? } else { axis };
    usize::try_from(at).ok().filter(|&at| at < rank)
}
