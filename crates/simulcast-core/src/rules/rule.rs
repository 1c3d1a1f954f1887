//! Every rule, and everything that the crate knows of it: its variant, its row of facts, its frame.
//!
//! No other file matches on rules. Text, JSON, fixes, symbolic resolution, the command and Python ask a
//! rule for its [`Parameters`] and the rows of [`RuleKind::facts`], so a new rule is a change to this file
//! (`docs/contributing/adding-a-rule.md` adds one).

#![cfg_attr(
    not(feature = "alloc"),
    allow(dead_code, reason = "text, fixes and symbolic shapes use the rest")
)]

use core::fmt;

use super::frame::{Base, Frame, Lay, listed};
use crate::Refusal;

/// How operands are brought to one shape, with lists of sizes and axes of type `L`: borrowed in
/// [`Rule`], owned in `OwnedRule`.
///
/// ```
/// use simulcast_core::{OwnedRule, Rule};
///
/// let borrowed = Rule::To { target: &[2, 3] };
/// let owned = OwnedRule::from(borrowed);
/// assert_eq!(owned, OwnedRule::To { target: vec![2, 3] });
/// assert_eq!(owned.as_rule(), borrowed);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RuleOf<L> {
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
        target: L,
    },
    /// As [`Rule::Numpy`], and the result is the target.
    To {
        /// The shape of the result.
        target: L,
    },
    /// The operand's shape is `shape` without `broadcast_axes`: `output[C] = arg[p(C)]`.
    Axes {
        /// The shape of the result.
        shape: L,
        /// The axes of `shape` that the operand lacks: a set, so order and repetition do not count.
        broadcast_axes: L,
    },
    /// Operand axis k feeds result axis `axes_mapping[k]`; a size of 1 stretches.
    Mapping {
        /// The shape of the result.
        shape: L,
        /// One result axis for each axis of the operand, strictly increasing.
        axes_mapping: L,
    },
    /// Axes meet by name. The result's axes stand in the order in which names first appear.
    ///
    /// `NamedAxes` (with `alloc`) makes the labels from names.
    Named {
        /// One label for each axis of each operand, operand after operand: equal labels stand for
        /// equal names, and a new name takes the next number, from 0. So a label is the result axis.
        labels: L,
    },
}

/// A rule that borrows its parameters, so that it works without `alloc` and costs nothing to pass.
///
/// ```
/// use simulcast_core::{Rule, resolve};
///
/// let plan = resolve(Rule::Pdpd { axis: Some(1) }, &[&[2, 3, 4, 5][..], &[3, 4]])?;
/// assert_eq!(plan.shape(), [2, 3, 4, 5]);
/// # Ok::<(), simulcast_core::BroadcastError>(())
/// ```
pub type Rule<'a> = RuleOf<&'a [usize]>;

/// A [`Rule`] without its parameters.
///
/// ```
/// use simulcast_core::{Rule, RuleKind};
///
/// assert_eq!(Rule::Pdpd { axis: Some(1) }.kind(), RuleKind::Pdpd);
/// assert_eq!("pdpd".parse(), Ok(RuleKind::Pdpd));
/// assert_eq!((RuleKind::Pdpd.arity(), RuleKind::Numpy.arity()), (Some(2), None));
/// ```
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

/// Which parameters a kind of rule takes, and the names under which requests, JSON and Python give them.
///
/// ```
/// use simulcast_core::RuleKind;
///
/// let takes = RuleKind::Mapping.parameters();
/// assert_eq!((takes.axis, takes.shape, takes.axes), (false, Some("shape"), Some("axes_mapping")));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Parameters {
    /// Whether it takes an `axis`, which may be left out.
    pub axis: bool,
    /// The name of the shape that it carries: `target` or `shape`.
    pub shape: Option<&'static str>,
    /// The name of its list of axes: `broadcast_axes` or `axes_mapping`.
    pub axes: Option<&'static str>,
    /// Whether it takes labels, which are made from the names of axes.
    pub labels: bool,
}

/// The parameters of a rule of any kind; `None` for one that its kind does not take.
///
/// ```
/// use simulcast_core::{Parts, Rule, RuleKind};
///
/// let parts = Parts { axis: Some(1), ..Parts::default() };
/// assert_eq!(Rule::from_parts(RuleKind::Pdpd, parts), Some(Rule::Pdpd { axis: Some(1) }));
/// assert_eq!(Rule::from_parts(RuleKind::Numpy, parts), None); // it takes no axis
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parts<L> {
    /// The `axis`; `None` too where the default is meant.
    pub axis: Option<isize>,
    /// The target or the shape.
    pub shape: Option<L>,
    /// The list of axes.
    pub axes: Option<L>,
    /// The labels of named axes.
    pub labels: Option<L>,
}

impl<L> Default for Parts<L> {
    fn default() -> Self {
        Self { axis: None, shape: None, axes: None, labels: None }
    }
}

/// What the result's shape is before any size is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fixed {
    /// Nothing: sizes join.
    Nothing,
    /// Every operand's own shape.
    Every,
    /// The first operand's shape.
    First,
    /// The shape that the rule carries.
    Carried,
}

/// What is known of the other operands where the rank of one is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unranked {
    /// They have its shape.
    Same,
    /// They meet as if it were a scalar.
    Scalar,
    /// They meet as if it were a scalar, under NumPy's rule where it is the first.
    ScalarAfterFirst,
    /// Nothing.
    Nothing,
}

/// What the rest of the crate needs to know of a kind of rule.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts {
    name: &'static str,
    /// A short form that is read too.
    pub(crate) alias: Option<&'static str>,
    summary: &'static str,
    /// How many operands it takes; `None` for any number.
    arity: Option<usize>,
    parameters: Parameters,
    /// Whether an axis of size 1 stretches.
    stretches: bool,
    /// Whether axes are counted from the right, unless an `axis` says otherwise.
    right_aligned: bool,
    pub(crate) fixed: Fixed,
    pub(crate) unranked: Unranked,
    /// Whether exchanging two operands can help.
    pub(crate) swaps: bool,
    /// The rule of one operand that lays it onto a shape as this one lays operands onto each other.
    onto: Option<RuleKind>,
    /// The rules that may have been meant instead.
    pub(crate) instead: &'static [RuleKind],
}

const NONE: Parameters = Parameters { axis: false, shape: None, axes: None, labels: false };
const AXIS: Parameters = Parameters { axis: true, ..NONE };
const TARGET: Parameters = Parameters { shape: Some("target"), ..NONE };

/// What most rules have in common; a row says what is different.
const COMMON: Facts = Facts {
    name: "",
    alias: None,
    summary: "",
    arity: None,
    parameters: NONE,
    stretches: true,
    right_aligned: true,
    fixed: Fixed::Nothing,
    unranked: Unranked::Scalar,
    swaps: false,
    onto: None,
    instead: &[],
};

impl RuleKind {
    /// Every kind, in the order of the table of rules.
    pub const ALL: &'static [Self] = &[
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

    /// The row of a rule.
    pub(crate) const fn facts(self) -> Facts {
        const PDPD: Facts = Facts {
            name: "pdpd",
            summary: "B onto A from AXIS, only B stretches",
            arity: Some(2),
            parameters: AXIS,
            fixed: Fixed::First,
            unranked: Unranked::Nothing,
            swaps: true,
            instead: &[RuleKind::Paddle, RuleKind::Numpy],
            ..COMMON
        };
        const TO: Facts = Facts {
            name: "to",
            summary: "to that shape, as broadcast_to",
            arity: Some(1),
            parameters: TARGET,
            fixed: Fixed::Carried,
            unranked: Unranked::Nothing,
            instead: &[RuleKind::Bidirectional],
            ..COMMON
        };
        match self {
            Self::Exact => Facts {
                name: "exact",
                alias: Some("none"),
                summary: "equal shapes",
                stretches: false,
                fixed: Fixed::Every,
                unranked: Unranked::Same,
                instead: &[Self::Numpy],
                ..COMMON
            },
            Self::Numpy => Facts {
                name: "numpy",
                summary: "right-aligned; sizes other than 1 agree",
                onto: Some(Self::To),
                ..COMMON
            },
            Self::Unidirectional => Facts {
                name: "unidirectional",
                alias: Some("uni"),
                summary: "as numpy, and the result is the first shape",
                fixed: Fixed::First,
                unranked: Unranked::ScalarAfterFirst,
                swaps: true,
                instead: &[Self::Numpy],
                ..COMMON
            },
            Self::Pdpd => PDPD,
            Self::Legacy => Facts {
                name: "legacy",
                summary: "ONNX opsets 1 to 6 with broadcast=1",
                instead: &[Self::Numpy],
                ..PDPD
            },
            Self::Paddle => Facts {
                name: "paddle",
                summary: "the shorter onto the longer from AXIS, both stretch",
                fixed: Fixed::Nothing,
                swaps: false,
                instead: &[],
                ..PDPD
            },
            Self::Bidirectional => Facts {
                name: "bidirectional",
                summary: "as numpy against that shape, as ONNX Expand",
                fixed: Fixed::Nothing,
                instead: &[],
                ..TO
            },
            Self::To => TO,
            Self::Axes => Facts {
                name: "axes",
                summary: "SHAPE without AXES is the operand's, as nGraph Broadcast",
                parameters: Parameters {
                    shape: Some("shape"),
                    axes: Some("broadcast_axes"),
                    ..NONE
                },
                stretches: false,
                right_aligned: false,
                instead: &[],
                ..TO
            },
            Self::Mapping => Facts {
                name: "mapping",
                summary: "axis k feeds axis AXES[k], as OpenVINO mode explicit",
                parameters: Parameters { shape: Some("shape"), axes: Some("axes_mapping"), ..NONE },
                right_aligned: false,
                instead: &[],
                ..TO
            },
            Self::Named => Facts {
                name: "named",
                summary: "axes meet by name",
                parameters: Parameters { labels: true, ..NONE },
                right_aligned: false,
                unranked: Unranked::Nothing,
                ..COMMON
            },
        }
    }

    /// The one name of the rule, in Rust, Python, the command and its JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.facts().name
    }

    /// The kind of that [`name`](Self::name).
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.name() == name)
    }

    /// The rule in a few words, for lists of rules.
    #[must_use]
    pub const fn summary(self) -> &'static str {
        self.facts().summary
    }

    /// Which parameters the rule takes.
    #[must_use]
    pub const fn parameters(self) -> Parameters {
        self.facts().parameters
    }

    /// Whether an axis of size 1 stretches under the rule.
    #[must_use]
    pub const fn stretches(self) -> bool {
        self.facts().stretches
    }

    /// How many operands the rule takes; `None` for any number.
    #[must_use]
    pub const fn arity(self) -> Option<usize> {
        self.facts().arity
    }

    /// Whether the result has the first operand's shape wherever operands meet, so that its shape is known
    /// even where they do not.
    ///
    /// ```
    /// use simulcast_core::RuleKind;
    ///
    /// let of_first = RuleKind::ALL.iter().copied().filter(|kind| kind.result_is_first());
    /// let names: Vec<_> = of_first.map(RuleKind::name).collect();
    /// assert_eq!(names, ["exact", "unidirectional", "pdpd", "legacy"]);
    /// ```
    #[must_use]
    pub const fn result_is_first(self) -> bool {
        matches!(self.facts().fixed, Fixed::First | Fixed::Every)
    }

    /// Whether the shape that the rule carries may be smaller than the result: it is met, not reached.
    #[must_use]
    pub const fn outgrows_target(self) -> bool {
        matches!((self.parameters().shape, self.facts().fixed), (Some(_), Fixed::Nothing))
    }

    /// Whether axes of operands are counted from the right, by a rule that stretches and takes no axis:
    /// then axes of size 1 inside an operand move it.
    pub(crate) const fn takes_insertions(self) -> bool {
        let Facts { right_aligned, stretches, parameters, .. } = self.facts();
        matches!((right_aligned, stretches, parameters.axis), (true, true, false))
    }
}

impl fmt::Display for RuleKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl<L> RuleOf<L> {
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

    /// The parameters.
    #[must_use]
    pub fn parts(&self) -> Parts<&L> {
        let none = Parts::default();
        match self {
            Self::Exact | Self::Numpy | Self::Unidirectional => none,
            Self::Pdpd { axis } | Self::Legacy { axis } | Self::Paddle { axis } => {
                Parts { axis: *axis, ..none }
            }
            Self::Bidirectional { target } | Self::To { target } => {
                Parts { shape: Some(target), ..none }
            }
            Self::Axes { shape, broadcast_axes: axes }
            | Self::Mapping { shape, axes_mapping: axes } => {
                Parts { shape: Some(shape), axes: Some(axes), ..none }
            }
            Self::Named { labels } => Parts { labels: Some(labels), ..none },
        }
    }

    /// The rule of a kind with these parameters; `None` where one is missing, or one is given that the
    /// kind does not take.
    ///
    /// ```
    /// use simulcast_core::{Parts, Rule, RuleKind};
    ///
    /// let to = Parts { shape: Some(&[2, 3][..]), ..Parts::default() };
    /// assert_eq!(Rule::from_parts(RuleKind::To, to), Some(Rule::To { target: &[2, 3] }));
    /// assert_eq!(Rule::from_parts(RuleKind::Numpy, to), None);
    /// ```
    #[must_use]
    pub fn from_parts(kind: RuleKind, parts: Parts<L>) -> Option<Self> {
        let Parts { axis, shape, axes, labels } = parts;
        Some(match (kind, axis, shape, axes, labels) {
            (RuleKind::Exact, None, None, None, None) => Self::Exact,
            (RuleKind::Numpy, None, None, None, None) => Self::Numpy,
            (RuleKind::Unidirectional, None, None, None, None) => Self::Unidirectional,
            (RuleKind::Pdpd, axis, None, None, None) => Self::Pdpd { axis },
            (RuleKind::Legacy, axis, None, None, None) => Self::Legacy { axis },
            (RuleKind::Paddle, axis, None, None, None) => Self::Paddle { axis },
            (RuleKind::Bidirectional, None, Some(target), None, None) => {
                Self::Bidirectional { target }
            }
            (RuleKind::To, None, Some(target), None, None) => Self::To { target },
            (RuleKind::Axes, None, Some(shape), Some(broadcast_axes), None) => {
                Self::Axes { shape, broadcast_axes }
            }
            (RuleKind::Mapping, None, Some(shape), Some(axes_mapping), None) => {
                Self::Mapping { shape, axes_mapping }
            }
            (RuleKind::Named, None, None, None, Some(labels)) => Self::Named { labels },
            _ => return None,
        })
    }

    /// The same rule with its lists converted.
    pub(crate) fn map<'l, M>(&'l self, mut convert: impl FnMut(&'l L) -> M) -> RuleOf<M> {
        match self {
            Self::Exact => RuleOf::Exact,
            Self::Numpy => RuleOf::Numpy,
            Self::Unidirectional => RuleOf::Unidirectional,
            Self::Pdpd { axis } => RuleOf::Pdpd { axis: *axis },
            Self::Legacy { axis } => RuleOf::Legacy { axis: *axis },
            Self::Paddle { axis } => RuleOf::Paddle { axis: *axis },
            Self::Bidirectional { target } => RuleOf::Bidirectional { target: convert(target) },
            Self::To { target } => RuleOf::To { target: convert(target) },
            Self::Axes { shape, broadcast_axes } => {
                let shape = convert(shape);
                RuleOf::Axes { shape, broadcast_axes: convert(broadcast_axes) }
            }
            Self::Mapping { shape, axes_mapping } => {
                let shape = convert(shape);
                RuleOf::Mapping { shape, axes_mapping: convert(axes_mapping) }
            }
            Self::Named { labels } => RuleOf::Named { labels: convert(labels) },
        }
    }

    /// Whether axes are counted from the right, by the rule or by an axis that was left out.
    pub(crate) fn is_right_aligned(&self) -> bool {
        match self.parts().axis {
            None | Some(-1) => self.kind().facts().right_aligned,
            Some(_) => false,
        }
    }
}

#[cfg(feature = "alloc")]
impl RuleOf<alloc::vec::Vec<usize>> {
    /// The rule with lists of axes that are sets in order, for which it resolves in linear time.
    #[must_use]
    pub fn with_sorted_sets(mut self) -> Self {
        if let Self::Axes { broadcast_axes, .. } = &mut self {
            broadcast_axes.sort_unstable();
        }
        self
    }
}

impl<'a> Rule<'a> {
    // Implements E_BROADCAST_ANY_ERR_0030, E_BROADCAST_ANY_ERR_0060.
    /// The frame of the rule for `count` operands, of which number m has `rank(m)` axes.
    ///
    /// Repeated labels of a [`Rule::Named`] are left to [`Frame::check_distinct`].
    pub(crate) fn frame(
        self,
        count: usize,
        rank: impl Fn(usize) -> usize,
    ) -> Result<Frame<'a>, Refusal> {
        if let Some(expected) = self.kind().arity() {
            if count != expected {
                return Err(Refusal::Operands { expected, given: count });
            }
        }
        match self {
            Self::Exact => exact(count, rank),
            Self::Numpy => Ok(numpy(count, rank)),
            Self::Unidirectional => unidirectional(count, rank),
            Self::Pdpd { axis } => pdpd(axis, rank(0), rank(1)),
            Self::Legacy { axis } => legacy(axis, rank(0), rank(1)),
            Self::Paddle { axis } => paddle(axis, rank(0), rank(1)),
            Self::Bidirectional { target } => Ok(bidirectional(target, rank(0))),
            Self::To { target } => to(target, rank(0)),
            Self::Axes { shape, broadcast_axes } => axes(shape, broadcast_axes, rank(0)),
            Self::Mapping { shape, axes_mapping } => mapping(shape, axes_mapping, rank(0)),
            Self::Named { labels } => named(labels, count, rank),
        }
    }

    /// The rule of one operand that lays it onto a shape as this rule lays its second operand onto its
    /// first, where there is one of that meaning: NumPy's `broadcast_to` for NumPy's rule.
    ///
    /// ```
    /// use simulcast_core::Rule;
    ///
    /// assert_eq!(Rule::Numpy.onto(&[2, 3]), Some(Rule::To { target: &[2, 3] }));
    /// assert_eq!(Rule::Exact.onto(&[2, 3]), None);
    /// ```
    #[must_use]
    pub fn onto(self, target: &'a [usize]) -> Option<Self> {
        let parts = Parts { shape: Some(target), ..Parts::default() };
        Self::from_parts(self.kind().facts().onto?, parts)
    }

    /// What is wrong with the parameters and the number of operands, whatever the ranks.
    #[cfg(feature = "alloc")]
    pub(crate) fn parameter_refusal(self, count: usize) -> Option<Refusal> {
        // Ranks that the parameters fit, so that nothing is refused because of a rank.
        let (first, rest) = match self {
            // With a scalar for B, no axis up to A's rank is wrong.
            Self::Pdpd { axis } | Self::Legacy { axis } | Self::Paddle { axis } => {
                let axis = axis.and_then(|axis| usize::try_from(axis).ok()).unwrap_or(0);
                (axis.saturating_add(1), 0)
            }
            Self::Axes { shape, broadcast_axes } => (kept(shape, broadcast_axes), 0),
            Self::Mapping { axes_mapping, .. } => (axes_mapping.len(), 0),
            // Labels need ranks, and there are none to count.
            Self::Named { .. } => return None,
            _ => (0, 0),
        };
        self.frame(count, |operand| if operand == 0 { first } else { rest }).err()
    }

    /// The rule of another kind with the parameters that both take, where that is a rule.
    #[cfg(feature = "alloc")]
    pub(crate) fn under(self, kind: RuleKind) -> Option<Self> {
        let (parts, takes) = (self.parts(), kind.parameters());
        let parts = Parts {
            axis: parts.axis.filter(|_| takes.axis),
            shape: parts.shape.copied().filter(|_| takes.shape.is_some()),
            axes: parts.axes.copied().filter(|_| takes.axes.is_some()),
            labels: parts.labels.copied().filter(|_| takes.labels),
        };
        Self::from_parts(kind, parts)
    }

    /// The rule without the labels of named axes, which are made anew for other operands.
    #[cfg(feature = "alloc")]
    pub(crate) fn without_labels(self) -> Self {
        match self {
            Self::Named { .. } => Self::Named { labels: &[] },
            _ => self,
        }
    }

    /// The rule with another `axis`, where it takes one.
    #[cfg(feature = "alloc")]
    pub(crate) fn with_axis(self, axis: isize) -> Self {
        let axis = Some(axis).filter(|_| self.kind().parameters().axis);
        Self::from_parts(self.kind(), Parts { axis, ..Parts::default() }).unwrap_or(self)
    }

    /// The rule with sets of axes in order, for which frames take linear time.
    #[cfg(feature = "alloc")]
    pub(crate) fn sorted<'b>(self, buffer: &'b mut alloc::vec::Vec<usize>) -> Rule<'b>
    where
        'a: 'b,
    {
        match self {
            Self::Axes { shape, broadcast_axes } if !broadcast_axes.is_sorted() => {
                buffer.extend_from_slice(broadcast_axes);
                buffer.sort_unstable();
                Rule::Axes { shape, broadcast_axes: buffer }
            }
            _ => self,
        }
    }
}

// Implements E_BROADCAST_ANY_FUNC_1000.
/// OpenVINO "None", rules 1 and 2.
fn exact<'a>(count: usize, rank: impl Fn(usize) -> usize) -> Result<Frame<'a>, Refusal> {
    let allowed = if count == 0 { 0 } else { rank(0) };
    match (1..count).find(|&operand| rank(operand) != allowed) {
        Some(operand) => {
            Err(Refusal::Rank { operand, rank: rank(operand), allowed, at_most: false })
        }
        None => Ok(Frame {
            rank: allowed,
            base: Base::First,
            grow: false,
            stretch: false,
            lay: Lay::Right,
            refusal_override: None,
        }),
    }
}

// Implements E_BROADCAST_ANY_FUNC_0010, E_BROADCAST_ANY_FUNC_0020.
/// SONNX steps 1 and 2, OpenVINO "Numpy", rules 1 to 5.
fn numpy<'a>(count: usize, rank: impl Fn(usize) -> usize) -> Frame<'a> {
    let rank = (0..count).map(rank).max().unwrap_or(0);
    Frame {
        rank,
        base: Base::Ones,
        grow: true,
        stretch: true,
        lay: Lay::Right,
        refusal_override: None,
    }
}

// Implements E_BROADCAST_ANY_FUNC_1100.
/// ONNX: unidirectional, every later operand to the first.
fn unidirectional<'a>(count: usize, rank: impl Fn(usize) -> usize) -> Result<Frame<'a>, Refusal> {
    let allowed = if count == 0 { 0 } else { rank(0) };
    match (1..count).find(|&operand| rank(operand) > allowed) {
        Some(operand) => {
            Err(Refusal::Rank { operand, rank: rank(operand), allowed, at_most: true })
        }
        None => Ok(Frame {
            rank: allowed,
            base: Base::First,
            grow: false,
            stretch: true,
            lay: Lay::Right,
            refusal_override: None,
        }),
    }
}

// Implements E_BROADCAST_ANY_FUNC_1200, E_BROADCAST_ANY_FUNC_1210, E_BROADCAST_ANY_FUNC_1220,
// E_BROADCAST_ANY_FUNC_1230, E_BROADCAST_ANY_FUNC_1240, E_BROADCAST_ANY_FUNC_1250,
// E_BROADCAST_ANY_FUNC_1260.
/// OpenVINO "PDPD", rules 1 (rank), 3 and 4 (axis) and 5 (ones that hang over).
fn pdpd<'a>(axis: Option<isize>, a: usize, b: usize) -> Result<Frame<'a>, Refusal> {
    let Some(default) = a.checked_sub(b) else {
        return Err(Refusal::Rank { operand: 1, rank: b, allowed: a, at_most: true });
    };
    let start = match axis {
        // -1 is the default; no other negative value is allowed.
        None | Some(-1) => default,
        Some(axis) => match usize::try_from(axis) {
            Ok(start) if start <= a => start,
            _ => {
                let allowed = a.saturating_add(1);
                return Err(Refusal::Axis { axis: axis as i128, allowed });
            }
        },
    };
    let lay = Lay::From { operand: 1, start };
    Ok(Frame {
        rank: a,
        base: Base::First,
        grow: false,
        stretch: true,
        lay,
        refusal_override: None,
    })
}

// Implements E_BROADCAST_ANY_FUNC_1300.
/// ONNX opsets 1 to 6: a single element lies anywhere, anything longer lies inside.
fn legacy<'a>(axis: Option<isize>, a: usize, b: usize) -> Result<Frame<'a>, Refusal> {
    let frame = pdpd(axis, a, b)?;
    match frame.lay {
        Lay::From { start, .. } if start > a.saturating_sub(b) => {
            let allowed = a.saturating_sub(b).saturating_add(1);
            let refusal_override = Some(Refusal::Axis { axis: wide(start), allowed });
            Ok(Frame { lay: Lay::Dropped { operand: 1 }, refusal_override, ..frame })
        }
        _ => Ok(frame),
    }
}

// Implements E_BROADCAST_ANY_FUNC_1400, E_BROADCAST_ANY_FUNC_1410.
/// Paddle 3: the shorter onto the longer, then both stretch.
fn paddle<'a>(axis: Option<isize>, a: usize, b: usize) -> Result<Frame<'a>, Refusal> {
    let rank = a.max(b);
    let spare = a.abs_diff(b);
    let both = Frame {
        rank,
        base: Base::Ones,
        grow: true,
        stretch: true,
        lay: Lay::Right,
        refusal_override: None,
    };
    let axis = match axis {
        None | Some(-1) => return Ok(both),
        Some(axis) => axis,
    };
    let allowed = rank.min(spare.saturating_add(1)).max(1);
    let silly = Refusal::Axis { axis: axis as i128, allowed };
    match usize::try_from(axis) {
        // Equal ranks: with an axis that is neither -1 nor 0, Paddle accepts equal shapes only.
        Ok(0) if spare == 0 => Ok(both),
        _ if spare == 0 => {
            let refusal_override = Some(silly);
            Ok(Frame { base: Base::First, grow: false, stretch: false, refusal_override, ..both })
        }
        Ok(start) if start < allowed => {
            let operand = if a < b { 0 } else { 1 };
            Ok(Frame { lay: Lay::From { operand, start }, ..both })
        }
        _ => Err(silly),
    }
}

// Implements E_BROADCAST_ANY_FUNC_1500, E_BROADCAST_ANY_FUNC_1510.
/// OpenVINO "Bidirectional", rules 1 to 4: the target is one more operand, without elements.
fn bidirectional(target: &[usize], rank: usize) -> Frame<'_> {
    let rank = rank.max(target.len());
    Frame {
        rank,
        base: Base::Given(target),
        grow: true,
        stretch: true,
        lay: Lay::Right,
        refusal_override: None,
    }
}

// Implements E_BROADCAST_ANY_FUNC_1600.
/// NumPy `broadcast_to`.
fn to(target: &[usize], rank: usize) -> Result<Frame<'_>, Refusal> {
    let allowed = target.len();
    if rank > allowed {
        return Err(Refusal::Rank { operand: 0, rank, allowed, at_most: true });
    }
    let base = Base::Given(target);
    Ok(Frame {
        rank: allowed,
        base,
        grow: false,
        stretch: true,
        lay: Lay::Right,
        refusal_override: None,
    })
}

/// An axis as a refusal carries it: `i128` holds every `isize` and every `usize`.
const fn wide(axis: usize) -> i128 {
    axis as i128
}

// Implements E_BROADCAST_ANY_FUNC_1700, E_BROADCAST_ANY_FUNC_1710.
/// nGraph `Broadcast`: the shape of arg must match `shape` with `broadcast_axes` removed.
fn axes<'a>(shape: &'a [usize], skip: &'a [usize], rank: usize) -> Result<Frame<'a>, Refusal> {
    if let Some(&axis) = skip.iter().max().filter(|&&axis| axis >= shape.len()) {
        return Err(Refusal::Axis { axis: wide(axis), allowed: shape.len() });
    }
    let kept = kept(shape, skip);
    if rank != kept {
        return Err(Refusal::Rank { operand: 0, rank, allowed: kept, at_most: false });
    }
    let (base, lay) = (Base::Given(shape), Lay::Unlisted(skip));
    Ok(Frame { rank: shape.len(), base, grow: false, stretch: false, lay, refusal_override: None })
}

/// How many axes of a shape are not in `skip`.
fn kept(shape: &[usize], skip: &[usize]) -> usize {
    let (mut left, sorted) = (skip, skip.is_sorted());
    (0..shape.len()).filter(|&axis| !listed(&mut left, sorted, axis)).count()
}

// Implements E_BROADCAST_ANY_FUNC_1800.
/// OpenVINO `Broadcast` in mode explicit, with strictly increasing axes.
fn mapping<'a>(shape: &'a [usize], list: &'a [usize], rank: usize) -> Result<Frame<'a>, Refusal> {
    if list.len() != rank {
        return Err(Refusal::AxisCount { expected: rank, given: list.len() });
    }
    if let Some(&axis) = list.iter().find(|&&axis| axis >= shape.len()) {
        return Err(Refusal::Axis { axis: wide(axis), allowed: shape.len() });
    }
    for (position, (&before, &axis)) in (1..).zip(list.iter().zip(list.iter().skip(1))) {
        if before == axis {
            return Err(Refusal::Duplicate { operand: 0, axis: position });
        }
        if before > axis {
            return Err(Refusal::NotIncreasing { position });
        }
    }
    let (base, lay) = (Base::Given(shape), Lay::Listed(list));
    Ok(Frame { rank: shape.len(), base, grow: false, stretch: true, lay, refusal_override: None })
}

// Implements E_BROADCAST_ANY_FUNC_1900, E_BROADCAST_ANY_ERR_0050.
/// Axes meet by label; labels are numbered as they first appear, so they are the result's axes.
fn named<'a>(
    labels: &'a [usize],
    count: usize,
    rank: impl Fn(usize) -> usize,
) -> Result<Frame<'a>, Refusal> {
    let expected = (0..count).map(rank).fold(0_usize, usize::saturating_add);
    if labels.len() != expected {
        return Err(Refusal::AxisCount { expected, given: labels.len() });
    }
    let mut rank = 0_usize;
    for (position, &label) in labels.iter().enumerate() {
        if label > rank {
            return Err(Refusal::Label { position });
        }
        rank = rank.max(label.saturating_add(1));
    }
    let lay = Lay::Labels(labels);
    Ok(Frame { rank, base: Base::Ones, grow: true, stretch: true, lay, refusal_override: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_distinct_and_found_again() {
        for &kind in RuleKind::ALL {
            assert_eq!(RuleKind::from_name(kind.name()), Some(kind));
        }
        assert_eq!(RuleKind::from_name("NUMPY"), None);
    }

    #[test]
    fn a_rule_is_its_kind_and_its_parameters() {
        let list = &[2, 3][..];
        for &kind in RuleKind::ALL {
            let takes = kind.parameters();
            let parts = Parts {
                axis: takes.axis.then_some(1),
                shape: takes.shape.map(|_| list),
                axes: takes.axes.map(|_| list),
                labels: takes.labels.then_some(list),
            };
            let rule = Rule::from_parts(kind, parts).unwrap();
            assert_eq!(rule.kind(), kind);
            let copied = rule.parts();
            assert_eq!((copied.axis, copied.shape.copied()), (parts.axis, parts.shape), "{kind}");
            assert_eq!(copied.axes.copied(), parts.axes, "{kind}");
            assert_eq!(copied.labels.copied(), parts.labels, "{kind}");
            assert_eq!(rule.map(|list| *list), rule);
            // A parameter too many, or one too few.
            let more = [
                Parts { axis: Some(1), ..parts },
                Parts { shape: Some(list), ..parts },
                Parts { axes: Some(list), ..parts },
                Parts { labels: Some(list), ..parts },
                Parts { shape: None, ..parts },
                Parts { axes: None, ..parts },
                Parts { labels: None, ..parts },
            ];
            for other in more {
                assert_eq!(Rule::from_parts(kind, other).is_some(), other == parts, "{kind}");
            }
        }
    }
}
