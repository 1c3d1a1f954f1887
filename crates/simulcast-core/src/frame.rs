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

use crate::{Refusal, Rule, Side};

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
    lay: Lay<'a>,
    /// What a clash or an overhang really means, where it means that the axis was badly chosen.
    pub(crate) instead: Option<Refusal>,
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
enum Lay<'a> {
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
    // Implements E_BROADCAST_ANY_ERR_0030, E_BROADCAST_ANY_ERR_0060.
    /// The frame of `rule` for `count` operands, of which number m has `rank(m)` axes.
    ///
    /// Repeated labels of a [`Rule::Named`] are left to [`Frame::check_distinct`].
    pub(crate) fn new(
        rule: Rule<'a>,
        count: usize,
        rank: impl Fn(usize) -> usize,
    ) -> Result<Self, Refusal> {
        if let Some(expected) = rule.kind().operands() {
            if count != expected {
                return Err(Refusal::Operands { expected, given: count });
            }
        }
        match rule {
            Rule::Exact => exact(count, rank),
            Rule::Numpy => Ok(numpy(count, rank)),
            Rule::Unidirectional => unidirectional(count, rank),
            Rule::Pdpd { axis } => pdpd(axis, rank(0), rank(1)),
            Rule::Legacy { axis } => legacy(axis, rank(0), rank(1)),
            Rule::Paddle { axis } => paddle(axis, rank(0), rank(1)),
            Rule::Bidirectional { target } => Ok(bidirectional(target, rank(0))),
            Rule::To { target } => to(target, rank(0)),
            Rule::Axes { shape, broadcast_axes } => axes(shape, broadcast_axes, rank(0)),
            Rule::Mapping { shape, axes_mapping } => mapping(shape, axes_mapping, rank(0)),
            Rule::Named { labels } => named(labels, count, rank),
        }
    }

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
fn listed(skip: &mut &[usize], sorted: bool, axis: usize) -> bool {
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
            instead: None,
        }),
    }
}

// Implements E_BROADCAST_ANY_FUNC_0010, E_BROADCAST_ANY_FUNC_0020.
/// SONNX steps 1 and 2, OpenVINO "Numpy", rules 1 to 5.
fn numpy<'a>(count: usize, rank: impl Fn(usize) -> usize) -> Frame<'a> {
    let rank = (0..count).map(rank).max().unwrap_or(0);
    Frame { rank, base: Base::Ones, grow: true, stretch: true, lay: Lay::Right, instead: None }
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
            instead: None,
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
    Ok(Frame { rank: a, base: Base::First, grow: false, stretch: true, lay, instead: None })
}

// Implements E_BROADCAST_ANY_FUNC_1300.
/// ONNX opsets 1 to 6: a single element lies anywhere, anything longer lies inside.
fn legacy<'a>(axis: Option<isize>, a: usize, b: usize) -> Result<Frame<'a>, Refusal> {
    let frame = pdpd(axis, a, b)?;
    match frame.lay {
        Lay::From { start, .. } if start > a.saturating_sub(b) => {
            let allowed = a.saturating_sub(b).saturating_add(1);
            let instead = Some(Refusal::Axis { axis: wide(start), allowed });
            Ok(Frame { lay: Lay::Dropped { operand: 1 }, instead, ..frame })
        }
        _ => Ok(frame),
    }
}

// Implements E_BROADCAST_ANY_FUNC_1400, E_BROADCAST_ANY_FUNC_1410.
/// Paddle 3: the shorter onto the longer, then both stretch.
fn paddle<'a>(axis: Option<isize>, a: usize, b: usize) -> Result<Frame<'a>, Refusal> {
    let rank = a.max(b);
    let spare = a.abs_diff(b);
    let both =
        Frame { rank, base: Base::Ones, grow: true, stretch: true, lay: Lay::Right, instead: None };
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
            let instead = Some(silly);
            Ok(Frame { base: Base::First, grow: false, stretch: false, instead, ..both })
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
        instead: None,
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
    Ok(Frame { rank: allowed, base, grow: false, stretch: true, lay: Lay::Right, instead: None })
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
    let (mut left, sorted) = (skip, skip.is_sorted());
    let kept = (0..shape.len()).filter(|&axis| !listed(&mut left, sorted, axis)).count();
    if rank != kept {
        return Err(Refusal::Rank { operand: 0, rank, allowed: kept, at_most: false });
    }
    let (base, lay) = (Base::Given(shape), Lay::Unlisted(skip));
    Ok(Frame { rank: shape.len(), base, grow: false, stretch: false, lay, instead: None })
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
    Ok(Frame { rank: shape.len(), base, grow: false, stretch: true, lay, instead: None })
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
    Ok(Frame { rank, base: Base::Ones, grow: true, stretch: true, lay, instead: None })
}
