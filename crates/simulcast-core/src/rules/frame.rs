//! Frames: what a rule comes down to, once the ranks of the operands are known.
//!
//! Every rule is four facts: the result's rank and the sizes it begins with, whether a size of the
//! result may still grow, whether an operand may stretch, and on which result axis each axis of
//! each operand is laid. One loop then serves all rules:
//!
//! ```text
//! result := base
//! for each operand, each of its axes, of size d:
//!     dropped          : d must be 1
//!     laid on axis j   : d = result[j]               fine
//!                        d = 1, the rule stretches   fine, the axis is repeated
//!                        result[j] = 1, it may grow  result[j] := d
//!                        otherwise                   E1
//! ```
//!
//! A frame depends on ranks and parameters alone, never on sizes. So the same frame serves known
//! sizes, symbols and intervals.

use core::slice;

use crate::{Refusal, Side};

/// What a rule comes down to for operands of given ranks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame<'a> {
    /// The result's rank.
    pub(crate) rank: usize,
    /// The sizes that the result begins with.
    pub(crate) base: Base<'a>,
    /// Whether a 1 of the result may grow to an operand's size.
    pub(crate) grow: bool,
    /// Whether a 1 of an operand may stretch to the result's size.
    pub(crate) stretch: bool,
    /// Where operands' axes are laid.
    pub(super) lay: Lay<'a>,
    /// What a clash or an overhang really means, where it means that the axis was badly chosen.
    pub(crate) refusal_override: Option<Refusal>,
}

/// The sizes that a result begins with.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Base<'a> {
    /// Ones.
    Ones,
    /// The first operand's own sizes.
    First,
    /// A shape of the rule's, right-aligned, with ones before it.
    Given(&'a [usize]),
}

/// Where operands' axes are laid.
#[derive(Clone, Copy, Debug)]
pub(super) enum Lay<'a> {
    /// Every operand ends where the result ends.
    Right,
    /// That operand begins at `start`, every other at 0; what hangs over the end is dropped.
    From { operand: usize, start: usize },
    /// Every axis of that operand is dropped; the others begin at 0.
    Dropped { operand: usize },
    /// Axis k is laid on the k-th entry.
    Listed(&'a [usize]),
    /// Axis k is laid on the k-th result axis that is not listed.
    Unlisted(&'a [usize]),
    /// The axes of all operands, one after another, are laid on these.
    Labels(&'a [usize]),
}

impl<'a> Frame<'a> {
    /// The result axis of each axis of operand `operand`, in order; `None` where it is dropped.
    ///
    /// `before` is the number of axes that the operands before it have, `rank` its own.
    pub(crate) fn targets(&self, operand: usize, before: usize, rank: usize) -> Targets<'a> {
        match self.lay {
            Lay::Right => Targets::From { next: self.rank.saturating_sub(rank), end: self.rank },
            Lay::From { operand: moved, start } => {
                let next = if operand == moved { start } else { 0 };
                Targets::From { next, end: self.rank }
            }
            Lay::Dropped { operand: dropped } if operand == dropped => Targets::Dropped,
            Lay::Dropped { .. } => Targets::From { next: 0, end: self.rank },
            Lay::Listed(list) => Targets::Listed(list.iter()),
            Lay::Unlisted(skip) => Targets::Unlisted { next: 0, skip, sorted: skip.is_sorted() },
            Lay::Labels(labels) => Targets::Listed(labels.get(before..).unwrap_or(&[]).iter()),
        }
    }

    // Implements E_BROADCAST_ANY_ERR_0040.
    /// Refuses an operand that lays two axes on one result axis. `scratch` has the result's rank.
    pub(crate) fn check_distinct(
        &self,
        count: usize,
        rank: impl Fn(usize) -> usize,
        scratch: &mut [usize],
    ) -> Result<(), Refusal> {
        let Lay::Labels(mut labels) = self.lay else { return Ok(()) };
        // The last operand, counted from 1, that was laid on each result axis.
        scratch.fill(0);
        for operand in 0..count {
            let (own, rest) = labels.split_at_checked(rank(operand)).unwrap_or((labels, &[]));
            labels = rest;
            let stamp = operand.saturating_add(1);
            for (axis, &label) in own.iter().enumerate() {
                // Never else: labels are below the result's rank.
                if let Some(last) = scratch.get_mut(label) {
                    if *last == stamp {
                        return Err(Refusal::Duplicate { operand, axis });
                    }
                    *last = stamp;
                }
            }
        }
        Ok(())
    }

    /// Writes the sizes that the result begins with into `out`, which has the result's rank.
    pub(crate) fn begin(&self, first: &[usize], out: &mut [usize]) {
        let base = match self.base {
            Base::Ones => &[],
            Base::First => first,
            Base::Given(shape) => shape,
        };
        let (ones, sizes) = out.split_at_mut(self.rank.saturating_sub(base.len()));
        ones.fill(1);
        for (size, &given) in sizes.iter_mut().zip(base) {
            *size = given;
        }
    }

    /// The side of a clash that no operand brought: the shape that the rule itself carries.
    pub(crate) fn base_side(&self, axis: usize, size: usize) -> Side {
        let padding = match self.base {
            Base::Given(shape) => self.rank.saturating_sub(shape.len()),
            Base::Ones | Base::First => 0,
        };
        Side { operand: None, axis: axis.saturating_sub(padding), size: size.into() }
    }

    // Implements E_BROADCAST_ANY_FUNC_0030, E_BROADCAST_ANY_FUNC_0070,
    // E_BROADCAST_ANY_CONSTR_X_0010.
    /// One step of the loop: lays an axis of size `size` on the result's size `result`.
    /// `false` is a clash.
    #[inline]
    pub(crate) fn meet(&self, result: &mut usize, size: usize) -> bool {
        if size == *result {
            return true;
        }
        match (size, *result) {
            (1, _) if self.stretch => true,
            (_, 1) if self.grow => {
                *result = size;
                true
            }
            _ => false,
        }
    }
}

/// The result axes of an operand's axes, in order.
#[derive(Clone, Debug)]
pub(crate) enum Targets<'a> {
    From { next: usize, end: usize },
    Dropped,
    Listed(slice::Iter<'a, usize>),
    Unlisted { next: usize, skip: &'a [usize], sorted: bool },
}

impl Targets<'_> {
    /// The result axis of the next axis; `None` where it is dropped.
    #[inline]
    pub(crate) fn step(&mut self) -> Option<usize> {
        match self {
            Self::From { next, end } => {
                let axis = *next;
                if axis < *end {
                    *next = axis.saturating_add(1);
                    return Some(axis);
                }
                None
            }
            Self::Dropped => None,
            Self::Listed(list) => list.next().copied(),
            Self::Unlisted { next, skip, sorted } => {
                while listed(skip, *sorted, *next) {
                    *next = next.saturating_add(1);
                }
                let axis = *next;
                *next = axis.saturating_add(1);
                Some(axis)
            }
        }
    }
}

/// Whether `axis` is in `skip`. Where `skip` is sorted, axes must be asked for in order, and what
/// lies before `axis` is forgotten: a walk over all axes then takes linear time.
pub(super) fn listed(skip: &mut &[usize], sorted: bool, axis: usize) -> bool {
    if !sorted {
        return skip.contains(&axis);
    }
    while let Some((&first, rest)) = skip.split_first() {
        if first >= axis {
            return first == axis;
        }
        *skip = rest;
    }
    false
}
