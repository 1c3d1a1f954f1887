//! Fixes: small changes that make shapes broadcast, each checked by resolving again.
//!
//! People meet a clash in a handful of ways: an axis is missing in the middle, two axes are
//! swapped, a trailing 1 is left over, the start axis is off by one, the operands are in the wrong
//! order. Each way is tried; what resolves is suggested, and nothing else.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::plan::resolve::try_resolve;
use crate::{Names, OwnedRule, Plan, Refusal, Rule, RuleKind, format_shape};

/// A change to an operand, or to the rule.
///
/// ```
/// use simulcast_core::{Edit, Rule, resolve};
///
/// let error = resolve(Rule::Numpy, &[&[2, 3, 4][..], &[2, 4]]).unwrap_err();
/// assert_eq!(error.fixes()[0].edit(), &Edit::InsertAxes { operand: 1, axes: vec![1] });
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Edit {
    /// Give the operand axes of size 1 at these places of its new shape.
    InsertAxes {
        /// The operand, counted from 0.
        operand: usize,
        /// Places in the new shape, increasing.
        axes: Vec<usize>,
    },
    /// Reorder the operand's axes: new axis k is old axis `order[k]`.
    Transpose {
        /// The operand, counted from 0.
        operand: usize,
        /// A permutation of its axes.
        order: Vec<usize>,
    },
    /// Drop an axis of size 1.
    DropAxis {
        /// The operand, counted from 0.
        operand: usize,
        /// The axis of its shape.
        axis: usize,
    },
    /// Lay the operand from another axis.
    StartAxis {
        /// The `axis` of the rule.
        axis: isize,
    },
    /// Exchange the two operands.
    Swap,
    /// Resolve under another rule.
    UseRule(RuleKind),
}

/// An [`Edit`] that was checked to work, with what comes out of it.
///
/// ```
/// use simulcast_core::{Names, Rule, resolve};
///
/// let error = resolve(Rule::Numpy, &[&[2, 3, 4][..], &[2, 4]]).unwrap_err();
/// let fix = &error.fixes()[0];
/// assert_eq!((fix.shape(), fix.result()), (Some(&[2, 1, 4][..]), &[2, 3, 4][..]));
/// assert_eq!(fix.expression(&Names::of(["image", "mask"])), "mask[:, None, :]");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fix {
    edit: Edit,
    shape: Option<Vec<usize>>,
    rule: OwnedRule,
    result: Vec<usize>,
}

impl Fix {
    /// The change.
    #[must_use]
    pub fn edit(&self) -> &Edit {
        &self.edit
    }

    /// The changed operand's new shape, where an operand was changed.
    #[must_use]
    pub fn shape(&self) -> Option<&[usize]> {
        self.shape.as_deref()
    }

    /// The rule to resolve under, with its parameters: as it was, unless it is what was changed.
    #[must_use]
    pub fn rule(&self) -> &OwnedRule {
        &self.rule
    }

    /// The result shape that the change leads to.
    #[must_use]
    pub fn result(&self) -> &[usize] {
        &self.result
    }

    fn same_operand_shape(&self, other: &Self) -> bool {
        match (&self.shape, &other.shape) {
            (Some(own), Some(others)) => {
                (self.edit.operand(), own) == (other.edit.operand(), others)
            }
            _ => false,
        }
    }

    /// The change as people write it: `B[:, None, :]`, `B.T`, `axis = 1`.
    #[must_use]
    pub fn expression(&self, names: &Names) -> String {
        match &self.edit {
            Edit::InsertAxes { operand, axes } => {
                let rank = self.shape.as_ref().map_or(0, Vec::len);
                let part = |axis: usize| if axes.contains(&axis) { "None" } else { ":" };
                let index: Vec<&str> = (0..rank).map(part).collect();
                format!("{}[{}]", names.operand(*operand), index.join(", "))
            }
            Edit::Transpose { operand, order } => {
                let name = names.operand(*operand);
                if order.iter().rev().copied().eq(0..order.len()) {
                    return format!("{name}.T");
                }
                let order: Vec<String> = order.iter().map(|axis| format!("{axis}")).collect();
                format!("{name}.transpose({})", order.join(", "))
            }
            Edit::DropAxis { operand, axis } => {
                let rank = self.shape.as_ref().map_or(0, Vec::len).saturating_add(1);
                let part = |own: usize| if own == *axis { "0" } else { ":" };
                let index: Vec<&str> = (0..rank).map(part).collect();
                format!("{}[{}]", names.operand(*operand), index.join(", "))
            }
            Edit::StartAxis { axis } => format!("axis = {axis}"),
            Edit::Swap => format!("exchanging {} and {}", names.operand(0), names.operand(1)),
            Edit::UseRule(_) => format!("rule {}", self.rule),
        }
    }

    /// The change and what comes out of it: `B[:, None, :] is (2, 1, 4), result (2, 3, 4)`.
    #[must_use]
    pub fn describe(&self, names: &Names) -> String {
        let (expression, result) = (self.expression(names), format_shape(&self.result));
        match &self.shape {
            Some(shape) => format!("{expression} is {}, result {result}", format_shape(shape)),
            None => format!("{expression} gives {result}"),
        }
    }
}

impl Edit {
    /// The rule and the shapes after the change.
    ///
    /// An edit that does not apply to them leaves them as they are.
    #[must_use]
    pub fn apply<'a, S: AsRef<[usize]>>(
        &self,
        rule: Rule<'a>,
        shapes: &[S],
    ) -> (Rule<'a>, Vec<Vec<usize>>) {
        let mut shapes: Vec<Vec<usize>> = shapes.iter().map(|s| s.as_ref().to_vec()).collect();
        let rule = match self {
            Self::InsertAxes { operand, axes } => {
                if let Some(shape) = shapes.get_mut(*operand) {
                    for &axis in axes {
                        shape.insert(axis.min(shape.len()), 1);
                    }
                }
                rule
            }
            Self::Transpose { operand, order } => {
                if let Some(shape) = shapes.get_mut(*operand) {
                    let old = shape.clone();
                    for (size, &axis) in shape.iter_mut().zip(order) {
                        *size = old.get(axis).copied().unwrap_or(*size);
                    }
                }
                rule
            }
            Self::DropAxis { operand, axis } => {
                if let Some(shape) = shapes.get_mut(*operand) {
                    let mut position = 0..;
                    shape.retain(|_| position.next() != Some(*axis));
                }
                rule
            }
            Self::StartAxis { axis } => rule.with_axis(*axis),
            Self::Swap => {
                shapes.reverse();
                rule
            }
            Self::UseRule(kind) => rule.under(*kind).unwrap_or(rule),
        };
        (rule, shapes)
    }

    fn operand(&self) -> Option<usize> {
        match self {
            Self::InsertAxes { operand, .. }
            | Self::Transpose { operand, .. }
            | Self::DropAxis { operand, .. } => Some(*operand),
            Self::StartAxis { .. } | Self::Swap | Self::UseRule(_) => None,
        }
    }
}

/// At most this many fixes are suggested.
const SUGGESTED: usize = 3;
/// Ranks above this are not searched: no index expression of that length is written by hand.
pub(crate) const SEARCHED_RANK: usize = 16;
/// About how many sizes the search may look at altogether, so that it stays a small constant.
const BUDGET: usize = 200_000;

/// The fixes for shapes that the rule refused.
pub(crate) fn fixes<S: AsRef<[usize]>>(
    rule: Rule<'_>,
    shapes: &[S],
    refusal: &Refusal,
) -> Vec<Fix> {
    let mut operands: Vec<usize> = match refusal {
        Refusal::Clash { first, second, .. } => {
            [second.operand, first.operand].into_iter().flatten().collect()
        }
        Refusal::Rank { operand, .. } | Refusal::Overhang { operand, .. } => {
            alloc::vec![*operand]
        }
        // The operand that was laid from that axis, under the rules that have one.
        Refusal::Axis { .. } => alloc::vec![1],
        _ => return Vec::new(),
    };
    let rank = |operand: &usize| shapes.get(*operand).map_or(0, |shape| shape.as_ref().len());
    if let [first, second] = &mut operands[..] {
        if rank(first) > rank(second) {
            core::mem::swap(first, second);
        }
    }
    if let (true, Some(target)) = (rule.kind().outgrows_target(), rule.parts().shape) {
        // Who names a target wants it, and not what lies beyond.
        return search(rule, shapes, &operands, |plan| plan.shape() == *target);
    }
    // A fix that makes the operands grow is rarely what was meant, and a square outer never.
    let calm = search(rule, shapes, &operands, |plan| !plan.is_growing());
    match calm.is_empty() {
        true => search(rule, shapes, &operands, |plan| !plan.is_square_outer()),
        false => calm,
    }
}

// Implements E_BROADCAST_ANY_ERR_0020.
/// Tries edits of `operands`, in that order, and then of the rule; keeps what resolves to a plan
/// for which `accept` holds.
pub(crate) fn search<S: AsRef<[usize]>>(
    rule: Rule<'_>,
    shapes: &[S],
    operands: &[usize],
    accept: impl Fn(&Plan) -> bool,
) -> Vec<Fix> {
    let total = shapes.iter().map(|s| s.as_ref().len().saturating_add(1)).sum::<usize>();
    let mut tries = BUDGET.checked_div(total).unwrap_or(BUDGET);
    let mut found: Vec<Fix> = Vec::new();
    for edit in candidates(rule, shapes, operands) {
        let Some(left) = tries.checked_sub(1) else { break };
        tries = left;
        let Some(fix) = verify(rule, shapes, edit, &accept) else { continue };
        if !found.iter().any(|known| fix.same_operand_shape(known)) {
            found.push(fix);
        }
        if found.len() == SUGGESTED {
            break;
        }
    }
    found
}

/// The edit with what comes out of it, where it resolves to a plan for which `accept` holds.
pub(crate) fn verify<S: AsRef<[usize]>>(
    rule: Rule<'_>,
    shapes: &[S],
    edit: Edit,
    accept: impl Fn(&Plan) -> bool,
) -> Option<Fix> {
    let (edited, changed) = edit.apply(rule, shapes);
    let plan = try_resolve(edited, &changed).ok().filter(accept)?;
    let shape = edit.operand().and_then(|operand| changed.get(operand).cloned());
    Some(Fix { result: plan.shape().to_vec(), edit, shape, rule: edited.into() })
}

/// Every edit worth trying, the likeliest first.
fn candidates<S: AsRef<[usize]>>(rule: Rule<'_>, shapes: &[S], operands: &[usize]) -> Vec<Edit> {
    let mut edits = Vec::new();
    let small = |operand: &&usize| {
        shapes.get(**operand).is_some_and(|shape| shape.as_ref().len() <= SEARCHED_RANK)
    };
    let operands: Vec<usize> = operands.iter().filter(small).copied().collect();
    let (kind, parameters) = (rule.kind(), rule.kind().parameters());
    if parameters.axis {
        let last = shapes.iter().map(|shape| shape.as_ref().len()).max().unwrap_or(0);
        let starts = 0..=last.min(SEARCHED_RANK).cast_signed();
        edits.extend(starts.map(|axis| Edit::StartAxis { axis }));
    }
    for &operand in operands.iter().filter(|_| kind.takes_insertions()) {
        edits.extend(insertions(rule, shapes, operand));
    }
    let shape_of = |operand: usize| shapes.get(operand).map_or(&[][..], S::as_ref);
    if !parameters.labels {
        for &operand in &operands {
            let ones = shape_of(operand).iter().enumerate().rev().filter(|&(_, &size)| size == 1);
            edits.extend(ones.map(|(axis, _)| Edit::DropAxis { operand, axis }));
        }
        for &operand in &operands {
            let rank = shape_of(operand).len();
            edits.extend(orders(rank).map(|order| Edit::Transpose { operand, order }));
        }
    }
    let facts = kind.facts();
    match shapes.len() {
        2 if facts.swaps => edits.push(Edit::Swap),
        _ => {}
    }
    edits.extend(facts.instead.iter().copied().map(Edit::UseRule));
    edits
}

/// Axes put into an operand so that each of its sizes meets an equal one of the others: as far to
/// the left as possible, as far to the right as possible.
fn insertions<S: AsRef<[usize]>>(rule: Rule<'_>, shapes: &[S], operand: usize) -> Vec<Edit> {
    let mut without: Vec<&[usize]> = shapes.iter().map(S::as_ref).collect();
    let own = without.get_mut(operand).map(core::mem::take).unwrap_or_default();
    let Ok(others) = try_resolve(rule, &without) else { return Vec::new() };
    let others = others.shape();
    if others.len() > SEARCHED_RANK {
        return Vec::new();
    }
    let leftmost = places(own.iter(), others.iter());
    let rightmost = places(own.iter().rev(), others.iter().rev()).map(|mut places| {
        let last = others.len().saturating_sub(1);
        places.reverse();
        places.iter().map(|place| last.saturating_sub(*place)).collect()
    });
    let edit = |places: Vec<usize>| {
        let &first = places.first()?;
        // What lies before the first place is padded anyway.
        let gaps = (first..others.len()).filter(|axis| !places.contains(axis));
        let axes: Vec<usize> = gaps.map(|axis| axis.saturating_sub(first)).collect();
        (!axes.is_empty()).then_some(Edit::InsertAxes { operand, axes })
    };
    [leftmost, rightmost].into_iter().flatten().filter_map(edit).collect()
}

/// For each size the first place, after the one before, that has the same size; a 1 takes any.
fn places<'a>(
    own: impl Iterator<Item = &'a usize>,
    mut others: impl Iterator<Item = &'a usize>,
) -> Option<Vec<usize>> {
    let mut next = 0_usize;
    own.map(|size| {
        let skipped = match size {
            1 => others.next().map(|_| 0),
            _ => others.position(|other| other == size),
        }?;
        let place = next.saturating_add(skipped);
        next = place.saturating_add(1);
        Some(place)
    })
    .collect()
}

/// Each two axes exchanged.
fn orders(rank: usize) -> impl Iterator<Item = Vec<usize>> {
    (0..rank).flat_map(move |a| {
        (a.saturating_add(1)..rank).map(move |b| {
            let mut order: Vec<usize> = (0..rank).collect();
            order.swap(a, b);
            order
        })
    })
}
