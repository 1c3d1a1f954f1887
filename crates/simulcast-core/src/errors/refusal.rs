//! Refusals: why shapes do not resolve, as plain data that needs no allocation.
//!
//! `BroadcastError` (with `alloc`) carries a refusal together with the shapes, every clashing axis
//! and fixes; without `alloc` the refusal is all there is.

use core::fmt;

use crate::Interval;

/// One side of a clash: who has which size.
///
/// ```
/// use simulcast_core::{Refusal, Rule, resolve};
///
/// let error = resolve(Rule::Numpy, &[[2, 3], [2, 4]]).unwrap_err();
/// let Refusal::Clash { second, .. } = *error.refusal() else { panic!("no clash") };
/// assert_eq!((second.operand, second.axis, second.size.size()), (Some(1), 1, Some(4)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Side {
    /// The operand, counted from 0; `None` for the shape that the rule itself carries.
    pub operand: Option<usize>,
    /// The axis in that operand's own shape, counted from 0.
    pub axis: usize,
    /// Its size; an interval of sizes where the shape is symbolic.
    pub size: Interval,
}

/// Why operands cannot be brought to one shape, or why a question about a plan has no answer.
///
/// ```
/// use simulcast_core::{Refusal, Rule, resolve_into};
///
/// let refused = resolve_into(Rule::Exact, &[&[2][..], &[2, 1]], &mut [0; 4]).unwrap_err();
/// assert_eq!(refused, Refusal::Rank { operand: 1, rank: 2, allowed: 1, at_most: false });
/// assert_eq!((refused.code(), refused.to_string().as_str()), ("E2", "operand 1 has rank 2, the rule allows 1"));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Refusal {
    /// `E1`: two sizes meet on an axis and neither may give way.
    Clash {
        /// The result axis, counted from 0.
        axis: usize,
        /// The result's rank, so that the axis can be counted from the end too.
        rank: usize,
        /// The side that came first.
        first: Side,
        /// The side that does not fit.
        second: Side,
    },
    /// `E2`: an operand has more axes than the rule allows, or another number than it needs.
    Rank {
        /// The operand, counted from 0.
        operand: usize,
        /// Its rank.
        rank: usize,
        /// The rank that the rule allows.
        allowed: usize,
        /// Whether a smaller rank would do.
        at_most: bool,
    },
    /// `E3`: an axis that does not exist.
    Axis {
        /// The axis as given.
        axis: i128,
        /// How many axes are allowed, from 0 on.
        allowed: usize,
    },
    /// `E4`: an axis of an operand is laid where another one lies already, or two have one name.
    Duplicate {
        /// The operand, counted from 0.
        operand: usize,
        /// The axis in that operand's own shape.
        axis: usize,
    },
    /// `E5`: `axes_mapping` does not increase.
    NotIncreasing {
        /// The first position whose axis is smaller than the one before.
        position: usize,
    },
    /// `E6`: the rule takes another number of operands.
    Operands {
        /// How many it takes.
        expected: usize,
        /// How many were given.
        given: usize,
    },
    /// `E7`: the list of axes does not have one entry for each axis of the operands.
    AxisCount {
        /// How many entries are needed.
        expected: usize,
        /// How many were given.
        given: usize,
    },
    /// `E8`: a number of elements, or an offset, that does not fit in the machine's integers.
    Overflow,
    /// `E9`: a slice of the caller's is too short.
    Buffer {
        /// The length that is needed.
        needed: usize,
        /// The length that was given.
        given: usize,
    },
    /// `E10`: labels of named axes that are not numbered in the order in which they first appear.
    Label {
        /// The position in the list of labels.
        position: usize,
    },
    /// `E11`: axes of an operand hang over the end of the other's shape.
    Overhang {
        /// The operand, counted from 0.
        operand: usize,
        /// The axis in that operand's own shape.
        axis: usize,
        /// Its size, which is not 1.
        size: Interval,
        /// The rank of the shape that it was laid on.
        rank: usize,
    },
    /// `E12`: an operand or an index that the plan does not have.
    Index {
        /// The position that was asked for.
        index: usize,
        /// How many there are.
        len: usize,
    },
    /// `E13`: a size that the symbol, the interval or the rank it stands for does not allow.
    Bind {
        /// The operand, counted from 0.
        operand: usize,
        /// The axis in that operand's own shape; `None` where the rank itself differs.
        axis: Option<usize>,
        /// The size, or the rank, that was given.
        given: usize,
        /// What is allowed there.
        allowed: Interval,
    },
    /// `E14`: an axis without a name, where axes meet by name.
    Unnamed {
        /// The operand, counted from 0.
        operand: usize,
        /// The axis in that operand's own shape.
        axis: usize,
    },
    /// `E15`: shapes that broadcast, and no memory for their result.
    Memory,
}

impl Refusal {
    /// The stable code: `E1` for incompatible sizes, as in the source documents, one code for each
    /// other reason.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Clash { .. } => "E1",
            Self::Rank { .. } => "E2",
            Self::Axis { .. } => "E3",
            Self::Duplicate { .. } => "E4",
            Self::NotIncreasing { .. } => "E5",
            Self::Operands { .. } => "E6",
            Self::AxisCount { .. } => "E7",
            Self::Overflow => "E8",
            Self::Buffer { .. } => "E9",
            Self::Label { .. } => "E10",
            Self::Overhang { .. } => "E11",
            Self::Index { .. } => "E12",
            Self::Bind { .. } => "E13",
            Self::Unnamed { .. } => "E14",
            Self::Memory => "E15",
        }
    }
}

/// The text without names: operands are numbered, as no names are known here.
impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, |f, operand| write!(f, "operand {operand}"), |_| None, None)
    }
}

impl core::error::Error for Refusal {}

impl Refusal {
    /// Writes the text with operands named by `name`, axes by `axis_name`, and the rule's own shape by `target`.
    pub(crate) fn write<'n, N, A>(
        &self,
        f: &mut fmt::Formatter<'_>,
        name: N,
        axis_name: A,
        target: Option<&str>,
    ) -> fmt::Result
    where
        N: Fn(&mut fmt::Formatter<'_>, usize) -> fmt::Result,
        A: Fn(&Side) -> Option<&'n str>,
    {
        match *self {
            Self::Clash { axis, rank, first, second } => {
                let from_end = rank.saturating_sub(axis);
                match axis_name(&first).or(axis_name(&second)) {
                    Some(name) => write!(f, "axis {name} ({axis}, -{from_end}): ")?,
                    None => write!(f, "axis {axis} (-{from_end}): ")?,
                }
                match first.operand {
                    Some(operand) => name(f, operand)?,
                    None => f.write_str(target.unwrap_or("the target"))?,
                }
                write!(f, " has {}, ", first.size)?;
                match second.operand {
                    Some(operand) => name(f, operand)?,
                    None => f.write_str(target.unwrap_or("the target"))?,
                }
                write!(f, " has {}", second.size)
            }
            Self::Rank { operand, rank, allowed, at_most } => {
                name(f, operand)?;
                match target {
                    Some(target) => write!(f, " has rank {rank}, {target} has {allowed}"),
                    None => {
                        let bound = if at_most { "at most " } else { "" };
                        write!(f, " has rank {rank}, the rule allows {bound}{allowed}")
                    }
                }
            }
            Self::Axis { axis, allowed } => match allowed.checked_sub(1) {
                None => write!(f, "axis {axis} is out of range: there are no axes"),
                Some(0) => write!(f, "axis {axis} is out of range: only axis 0 is allowed"),
                Some(last) => write!(f, "axis {axis} is out of range: 0 to {last} are allowed"),
            },
            Self::Duplicate { operand, axis } => {
                write!(f, "axis {axis} of ")?;
                name(f, operand)?;
                f.write_str(" is laid on an axis that is taken already")
            }
            Self::NotIncreasing { position } => {
                write!(
                    f,
                    "axes_mapping does not increase at position {position}: axes are never transposed"
                )
            }
            Self::Operands { expected, given } => {
                let plural = if expected == 1 { "" } else { "s" };
                write!(f, "the rule takes {expected} operand{plural}, {given} given")
            }
            Self::AxisCount { expected, given } => {
                write!(f, "{given} axes are listed for {expected} axes of the operands")
            }
            Self::Overflow => {
                f.write_str("the number of elements does not fit in the machine's integers")
            }
            Self::Buffer { needed, given } => {
                write!(f, "a slice has {given} values where {needed} are needed")
            }
            Self::Label { position } => {
                write!(f, "label {position} is not numbered in the order of first appearance")
            }
            Self::Overhang { operand, axis, size, rank } => {
                write!(f, "axis {axis} of ")?;
                name(f, operand)?;
                write!(f, ", of size {size}, hangs over the end of a shape of rank {rank}")
            }
            Self::Index { index, len } => write!(f, "position {index} is out of range for {len}"),
            Self::Bind { operand, axis: Some(axis), given, allowed } => {
                write!(f, "axis {axis} of ")?;
                name(f, operand)?;
                write!(f, " has size {given}, and {allowed} is allowed")
            }
            Self::Bind { operand, axis: None, given, allowed } => {
                name(f, operand)?;
                write!(f, " has rank {given}, and {allowed} is allowed")
            }
            Self::Unnamed { operand, axis } => {
                write!(f, "axis {axis} of ")?;
                name(f, operand)?;
                f.write_str(" has no name")
            }
            Self::Memory => f.write_str("there is not enough memory for the result"),
        }
    }
}
