//! The shapes of an expression's parts, from those of its operands: to check a suggestion without
//! running it.

use simulcast_core::{Rule, resolve};

use crate::by_name::program::front::axes::AxisPattern;
use crate::by_name::program::front::expr::{Expr, ExprKind};

/// The shape of a part; none for numbers, which fit everywhere.
pub(in crate::by_name::program) type Shape = Option<Vec<usize>>;

/// The shape of each node, up to the first that has none that fits.
pub(in crate::by_name::program) fn shapes<'a>(
    expr: &Expr,
    rule: Rule<'_>,
    operand: impl Fn(&str) -> Option<&'a [usize]>,
) -> Vec<Shape> {
    let mut shapes: Vec<Shape> = Vec::with_capacity(expr.nodes().len());
    for node in expr.nodes() {
        let args: Vec<&Shape> =
            node.kind.children().iter().filter_map(|id| shapes.get(id.index())).collect();
        let arrays: Vec<&[usize]> = args.iter().filter_map(|shape| shape.as_deref()).collect();
        let first = arrays.first().copied().unwrap_or_default();
        let shape = match &node.kind {
            ExprKind::Literal(_) | ExprKind::Text(_) => Some(None),
            ExprKind::Name(name) => Some(operand(name).map(<[usize]>::to_vec)),
            ExprKind::Cast(..) => args.first().map(|&shape| shape.clone()),
            ExprKind::Index(_, pattern) => indexed(first, pattern).map(Some),
            ExprKind::Transpose(_, axes) => transposed(first, axes.as_deref()).map(Some),
            ExprKind::Reduce { axes, keepdims, .. } => {
                reduced(first, axes.as_deref(), *keepdims).map(Some)
            }
            _ => match arrays.as_slice() {
                [] => Some(None),
                [one] => Some(Some(one.to_vec())),
                all => resolve(rule, all).ok().map(|plan| Some(plan.shape().to_vec())),
            },
        };
        match shape {
            Some(shape) => shapes.push(shape),
            None => break,
        }
    }
    shapes
}

fn indexed(shape: &[usize], pattern: &[AxisPattern]) -> Option<Vec<usize>> {
    let kept = pattern.iter().filter(|part| **part == AxisPattern::Keep).count();
    let mut rest = shape.len().checked_sub(kept)?;
    let mut axes = shape.iter().copied();
    let mut made = Vec::new();
    for part in pattern {
        match part {
            AxisPattern::Keep => made.extend(axes.next()),
            AxisPattern::New => made.push(1),
            AxisPattern::Rest => made.extend(axes.by_ref().take(std::mem::take(&mut rest))),
        }
    }
    made.extend(axes);
    Some(made)
}

/// An axis that may be counted from the end.
fn axis(axis: isize, rank: usize) -> Option<usize> {
    let axis = if axis < 0 { axis.checked_add_unsigned(rank)? } else { axis };
    usize::try_from(axis).ok().filter(|&axis| axis < rank)
}

/// Those axes, none of them twice.
fn distinct(axes: &[isize], rank: usize) -> Option<Vec<usize>> {
    let found: Vec<usize> = axes.iter().map(|&own| axis(own, rank)).collect::<Option<_>>()?;
    let mut sorted = found.clone();
    sorted.sort_unstable();
    sorted.dedup();
    (sorted.len() == found.len()).then_some(found)
}

fn transposed(shape: &[usize], axes: Option<&[isize]>) -> Option<Vec<usize>> {
    let Some(axes) = axes else { return Some(shape.iter().rev().copied().collect()) };
    let order = distinct(axes, shape.len()).filter(|order| order.len() == shape.len())?;
    order.iter().map(|&axis| shape.get(axis).copied()).collect()
}

fn reduced(shape: &[usize], axes: Option<&[isize]>, keepdims: bool) -> Option<Vec<usize>> {
    let folded = match axes {
        Some(axes) => distinct(axes, shape.len())?,
        None => (0..shape.len()).collect(),
    };
    let sizes = shape.iter().enumerate();
    Some(match keepdims {
        true => sizes.map(|(k, &size)| if folded.contains(&k) { 1 } else { size }).collect(),
        false => sizes.filter(|(k, _)| !folded.contains(k)).map(|(_, &size)| size).collect(),
    })
}
