//! Rules: the dialects of broadcasting, and nothing else knows them.
//!
//! | rule | source | operands | in words |
//! |---|---|---|---|
//! | [`Exact`](Rule::Exact) | OpenVINO "None" | N | all shapes equal |
//! | [`Numpy`](Rule::Numpy) | SONNX Broadcast, OpenVINO "Numpy", ONNX multidirectional | N | right-align, pad with 1 on the left; on each axis the sizes other than 1 agree |
//! | [`Unidirectional`](Rule::Unidirectional) | ONNX unidirectional | N | as `Numpy`, and the result is the first operand's shape |
//! | [`Pdpd`](Rule::Pdpd) | OpenVINO "PDPD" | 2 | B is laid onto A from `axis`; only B stretches |
//! | [`Legacy`](Rule::Legacy) | ONNX opsets 1 to 6, `broadcast=1` | 2 | as `Pdpd`, and nothing but a single element may hang over A's end |
//! | [`Paddle`](Rule::Paddle) | Paddle 3 element-wise | 2 | the shorter is laid onto the longer from `axis`; both stretch |
//! | [`Bidirectional`](Rule::Bidirectional) | OpenVINO "Bidirectional", ONNX `Expand` | 1 | as `Numpy` against a target; the result may be larger than the target |
//! | [`To`](Rule::To) | NumPy `broadcast_to` | 1 | as `Numpy`, and the result is the target |
//! | [`Axes`](Rule::Axes) | nGraph `Broadcast` | 1 | the operand's shape is `shape` without `broadcast_axes` |
//! | [`Mapping`](Rule::Mapping) | OpenVINO `Broadcast`, mode explicit | 1 | operand axis k feeds result axis `axes_mapping[k]` |
//! | [`Named`](Rule::Named) | xarray, einops | N | axes meet by name, never by position |
//!
//! A rule borrows its parameters, so that it works without `alloc` and costs nothing to pass.

#[cfg(feature = "alloc")]
mod owned;

use core::fmt;

#[cfg(feature = "alloc")]
pub use owned::{OwnedRule, RuleError};

/// How operands are brought to one shape.
///
/// ```
/// use simulcast_core::{Rule, resolve};
///
/// let plan = resolve(Rule::Pdpd { axis: Some(1) }, &[&[2, 3, 4, 5][..], &[3, 4]])?;
/// assert_eq!(plan.shape(), [2, 3, 4, 5]);
/// # Ok::<(), simulcast_core::BroadcastError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Rule<'a> {
    /// All shapes are equal; nothing is stretched.
    Exact,
    /// Right-aligned; on each axis the sizes other than 1 agree. No operand gives the scalar shape.
    Numpy,
    /// As [`Rule::Numpy`], and the result is the first operand's shape.
    Unidirectional,
    /// The second operand is laid onto the first, A, from `axis`; only it stretches.
    ///
    /// `None` and `Some(-1)` stand for rank(A) - rank(B); no other negative axis is allowed. Ones
    /// of B that hang over A's end are dropped.
    Pdpd {
        /// The axis of A that B's first axis is laid on.
        axis: Option<isize>,
    },
    /// ONNX opsets 1 to 6 with `broadcast=1`: as [`Rule::Pdpd`], and only an operand of one element
    /// may hang over A's end.
    ///
    /// The text of those opsets lets no size-1 axis stretch inside a longer B, their own shipped
    /// models do; this rule accepts both.
    Legacy {
        /// The axis of A that B's first axis is laid on.
        axis: Option<isize>,
    },
    /// The shorter shape is laid onto the longer from `axis`, then both stretch.
    ///
    /// With equal ranks, an `axis` other than -1 and 0 accepts equal shapes only, as Paddle does.
    Paddle {
        /// The axis of the longer shape that the shorter one's first axis is laid on.
        axis: Option<isize>,
    },
    /// As [`Rule::Numpy`] against a target shape; the result may be larger than the target.
    Bidirectional {
        /// The shape to meet.
        target: &'a [usize],
    },
    /// As [`Rule::Numpy`], and the result is the target.
    To {
        /// The shape of the result.
        target: &'a [usize],
    },
    /// The operand's shape is `shape` without `broadcast_axes`: `output[C] = arg[p(C)]`.
    Axes {
        /// The shape of the result.
        shape: &'a [usize],
        /// The axes of `shape` that the operand lacks: a set, so order and repetition do not count.
        broadcast_axes: &'a [usize],
    },
    /// Operand axis k feeds result axis `axes_mapping[k]`; a size of 1 stretches.
    Mapping {
        /// The shape of the result.
        shape: &'a [usize],
        /// One result axis for each axis of the operand, strictly increasing.
        axes_mapping: &'a [usize],
    },
    /// Axes meet by name. The result's axes stand in the order in which names first appear.
    ///
    /// `NamedAxes` (with `alloc`) makes the labels from names.
    Named {
        /// One label for each axis of each operand, operand after operand: equal labels stand for
        /// equal names, and a new name takes the next number, from 0. So a label is the result axis.
        labels: &'a [usize],
    },
}

/// A [`Rule`] without its parameters: what a plan or an error remembers of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "lowercase"))]
#[non_exhaustive]
pub enum RuleKind {
    /// [`Rule::Exact`]
    Exact,
    /// [`Rule::Numpy`]
    Numpy,
    /// [`Rule::Unidirectional`]
    Unidirectional,
    /// [`Rule::Pdpd`]
    Pdpd,
    /// [`Rule::Legacy`]
    Legacy,
    /// [`Rule::Paddle`]
    Paddle,
    /// [`Rule::Bidirectional`]
    Bidirectional,
    /// [`Rule::To`]
    To,
    /// [`Rule::Axes`]
    Axes,
    /// [`Rule::Mapping`]
    Mapping,
    /// [`Rule::Named`]
    Named,
}

impl RuleKind {
    /// Every kind, in the order of the table of rules.
    pub const ALL: [Self; 11] = [
        Self::Exact,
        Self::Numpy,
        Self::Unidirectional,
        Self::Pdpd,
        Self::Legacy,
        Self::Paddle,
        Self::Bidirectional,
        Self::To,
        Self::Axes,
        Self::Mapping,
        Self::Named,
    ];

    /// The one name of the rule, in Rust, Python, the command and its JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Numpy => "numpy",
            Self::Unidirectional => "unidirectional",
            Self::Pdpd => "pdpd",
            Self::Legacy => "legacy",
            Self::Paddle => "paddle",
            Self::Bidirectional => "bidirectional",
            Self::To => "to",
            Self::Axes => "axes",
            Self::Mapping => "mapping",
            Self::Named => "named",
        }
    }

    /// The kind of that [`name`](Self::name).
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Whether an axis of size 1 stretches under the rule.
    #[must_use]
    pub const fn stretches(self) -> bool {
        !matches!(self, Self::Exact | Self::Axes)
    }

    /// How many operands the rule takes; `None` for any number.
    #[must_use]
    pub const fn operands(self) -> Option<usize> {
        match self {
            Self::Exact | Self::Numpy | Self::Unidirectional | Self::Named => None,
            Self::Pdpd | Self::Legacy | Self::Paddle => Some(2),
            Self::Bidirectional | Self::To | Self::Axes | Self::Mapping => Some(1),
        }
    }
}

impl fmt::Display for RuleKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Rule<'_> {
    /// The rule without its parameters.
    #[must_use]
    pub const fn kind(&self) -> RuleKind {
        match self {
            Self::Exact => RuleKind::Exact,
            Self::Numpy => RuleKind::Numpy,
            Self::Unidirectional => RuleKind::Unidirectional,
            Self::Pdpd { .. } => RuleKind::Pdpd,
            Self::Legacy { .. } => RuleKind::Legacy,
            Self::Paddle { .. } => RuleKind::Paddle,
            Self::Bidirectional { .. } => RuleKind::Bidirectional,
            Self::To { .. } => RuleKind::To,
            Self::Axes { .. } => RuleKind::Axes,
            Self::Mapping { .. } => RuleKind::Mapping,
            Self::Named { .. } => RuleKind::Named,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_distinct_and_found_again() {
        for kind in RuleKind::ALL {
            assert_eq!(RuleKind::from_name(kind.name()), Some(kind));
        }
        assert_eq!(RuleKind::from_name("NUMPY"), None);
    }
}
