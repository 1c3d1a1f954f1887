//! Axes as expressions name them: entries of an insertion, reductions over axes, axes counted from the end.

/// One entry of an axis insertion, such as `a[:, None]`.
///
/// ```
/// use simulcast::program::{AxisPattern, Expr, ExprKind};
///
/// let expr = Expr::parse("x[..., None]")?;
/// let ExprKind::Index(_, pattern) = &expr.nodes()[1].kind else { panic!("no index") };
/// assert_eq!(pattern[..], [AxisPattern::Rest, AxisPattern::New]);
/// # Ok::<(), simulcast::program::SyntaxError>(())
/// ```
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
///
/// ```
/// use simulcast::program::{Builder, Fold};
/// use simulcast::types::Promotion;
/// use simulcast::DType;
///
/// let mut build = Builder::new(Promotion::Numpy);
/// let x = build.operand("x", DType::I8);
/// let mean = build.reduce(Fold::Mean, x, Some(&[-1]), false)?;
/// assert_eq!(build.finish(mean)?.dtype(), DType::F64);
/// # Ok::<(), simulcast::ProgramError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fold {
    /// The sum; 0 of no elements.
    Sum,
    /// The product; 1 of no elements.
    Product,
    /// The largest, or NaN; an error of no elements.
    Maximum,
    /// The smallest, or NaN; an error of no elements.
    Minimum,
    /// The mean; NaN of no elements.
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
