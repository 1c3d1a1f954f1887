//! Resolution: shapes and a rule in, the result out.
//!
//! [`resolve_into`] and [`sources_into`] never allocate. [`resolve`] makes a [`Plan`], or a
//! [`BroadcastError`] that names every clashing axis and fixes that work. All three run the one
//! loop of the frame, in time linear in the total number of sizes.

use core::ops::ControlFlow;

use crate::rules::frame::Frame;
#[cfg(feature = "alloc")]
use crate::{BroadcastError, Plan};
use crate::{Refusal, Rule, Side, Source, elements};
#[cfg(feature = "alloc")]
use alloc::vec::Vec;

/// Writes the result shape into `out` and returns the part that was written; never allocates.
///
/// The shapes of a [`Rule::Axes`] resolve in linear time where `broadcast_axes` is sorted.
///
/// # Errors
///
/// A [`Refusal`] where the rule does not accept the shapes, [`Refusal::Buffer`] where `out` is
/// shorter than the result's rank.
///
/// ```
/// use simulcast_core::{Rule, resolve_into};
///
/// let mut buffer = [0; 8];
/// let shape = resolve_into(Rule::Numpy, &[&[8, 1, 6, 1][..], &[7, 1, 5]], &mut buffer)?;
/// assert_eq!(shape, [8, 7, 6, 5]);
/// # Ok::<(), simulcast_core::Refusal>(())
/// ```
pub fn resolve_into<'o, S: AsRef<[usize]>>(
    rule: Rule<'_>,
    shapes: &[S],
    out: &'o mut [usize],
) -> Result<&'o [usize], Refusal> {
    let frame = frame(rule, shapes)?;
    let given = out.len();
    let Some(out) = out.get_mut(..frame.rank) else {
        return Err(Refusal::Buffer { needed: frame.rank, given });
    };
    fill(&frame, shapes, out, |_, _| ())?;
    Ok(out)
}

/// Writes the source of each result axis in operand `operand` into `out`; never allocates.
///
/// `out` has the result's rank. With [`view_strides_into`](crate::view_strides_into) this is all
/// that reading a broadcast operand takes.
///
/// # Errors
///
/// As [`resolve_into`], and [`Refusal::Index`] where there is no such operand; [`Refusal::Clash`]
/// where `result` is not what the shapes resolve to.
///
/// ```
/// use simulcast_core::{Rule, Source, resolve_into, sources_into};
///
/// let shapes = [&[8, 1, 6][..], &[7, 1]];
/// let (mut shape, mut sources) = ([0; 3], [Source::Added; 3]);
/// let shape = resolve_into(Rule::Numpy, &shapes, &mut shape)?;
/// sources_into(Rule::Numpy, &shapes, 1, shape, &mut sources)?;
/// assert_eq!(sources, [Source::Added, Source::Kept(0), Source::Stretched(1)]);
/// # Ok::<(), simulcast_core::Refusal>(())
/// ```
pub fn sources_into<S: AsRef<[usize]>>(
    rule: Rule<'_>,
    shapes: &[S],
    operand: usize,
    result: &[usize],
    out: &mut [Source],
) -> Result<(), Refusal> {
    let frame = frame(rule, shapes)?;
    let given = out.len().min(result.len());
    if given < frame.rank {
        return Err(Refusal::Buffer { needed: frame.rank, given });
    }
    let Some(shape) = shapes.get(operand).map(S::as_ref) else {
        return Err(Refusal::Index { index: operand, len: shapes.len() });
    };
    let before = shapes.iter().take(operand).map(|s| s.as_ref().len()).sum();
    let mut targets = frame.targets(operand, before, shape.len());
    out.fill(Source::Added);
    for (axis, &size) in shape.iter().enumerate() {
        let Some(target) = targets.step() else { continue };
        // Never else: targets are below the result's rank.
        let (Some(source), Some(&result)) = (out.get_mut(target), result.get(target)) else {
            continue;
        };
        if *source != Source::Added {
            return Err(Refusal::Duplicate { operand, axis });
        }
        *source = Source::of(axis, size, result);
        if let (Source::Stretched(_), 0 | 2..) = (*source, size) {
            let first = Side { operand: None, axis: target, size: result.into() };
            let second = Side { operand: Some(operand), axis, size: size.into() };
            return Err(Refusal::Clash { axis: target, rank: frame.rank, first, second });
        }
    }
    Ok(())
}

/// Writes the result shape, and the strides along it of operand `operand`; never allocates. Returns the part of `shape` that
/// was written. With [`offsets`](crate::offsets) this is all that reading broadcast operands takes.
///
/// `own` are the operand's strides; `None` stands for a row-major array. An axis along which the operand repeats has stride 0.
///
/// # Errors
///
/// As [`resolve_into`], and [`Refusal::Index`] where there is no such operand; [`Refusal::Buffer`] where `strides` is shorter
/// than the result's rank, or `own` has not one stride for each axis of the operand; [`Refusal::Overflow`] where a row-major
/// operand has more elements than fit in `isize`.
///
/// ```
/// use simulcast_core::{Rule, strides_into};
///
/// let shapes = [&[8, 1, 6][..], &[7, 1]];
/// let (mut shape, mut strides) = ([0; 4], [0; 4]);
/// let shape = strides_into(Rule::Numpy, &shapes, 1, None, &mut shape, &mut strides)?;
/// assert_eq!((shape, &strides[..3]), (&[8, 7, 6][..], &[0, 1, 0][..]));
/// # Ok::<(), simulcast_core::Refusal>(())
/// ```
pub fn strides_into<'o, S: AsRef<[usize]>>(
    rule: Rule<'_>,
    shapes: &[S],
    operand: usize,
    own: Option<&[isize]>,
    shape: &'o mut [usize],
    strides: &mut [isize],
) -> Result<&'o [usize], Refusal> {
    let result = resolve_into(rule, shapes, shape)?;
    let given = strides.len();
    let Some(strides) = strides.get_mut(..result.len()) else {
        return Err(Refusal::Buffer { needed: result.len(), given });
    };
    let Some(sizes) = shapes.get(operand).map(S::as_ref) else {
        return Err(Refusal::Index { index: operand, len: shapes.len() });
    };
    let mut row_major = 0;
    match own {
        Some(own) if own.len() != sizes.len() => {
            return Err(Refusal::Buffer { needed: sizes.len(), given: own.len() });
        }
        Some(_) => {}
        None => match isize::try_from(elements(sizes)?) {
            Ok(all) => row_major = all,
            Err(_) => return Err(Refusal::Overflow),
        },
    }
    let before = shapes.iter().take(operand).map(|s| s.as_ref().len()).sum();
    let frame = frame(rule, shapes)?;
    let mut targets = frame.targets(operand, before, sizes.len());
    strides.fill(0);
    for (axis, &size) in sizes.iter().enumerate() {
        // The number of elements of the axes behind it.
        row_major = row_major.checked_div(size.cast_signed()).unwrap_or(0);
        let stride = own.and_then(|own| own.get(axis)).copied().unwrap_or(row_major);
        let Some(target) = targets.step() else { continue };
        // Never else: targets are below the result's rank.
        let (Some(out), Some(&all)) = (strides.get_mut(target), result.get(target)) else {
            continue;
        };
        *out = if size == all { stride } else { 0 };
    }
    Ok(result)
}

fn frame<'a, S: AsRef<[usize]>>(rule: Rule<'a>, shapes: &[S]) -> Result<Frame<'a>, Refusal> {
    rule.frame(shapes.len(), |operand| rank(shapes, operand))
}

fn rank<S: AsRef<[usize]>>(shapes: &[S], operand: usize) -> usize {
    shapes.get(operand).map_or(0, |shape| shape.as_ref().len())
}

/// Visits each axis of each operand with the result axis that it is laid on, until `step` breaks.
#[inline]
fn walk<S: AsRef<[usize]>, B>(
    frame: &Frame<'_>,
    shapes: &[S],
    mut step: impl FnMut(Side, usize, Option<usize>) -> ControlFlow<B>,
) -> ControlFlow<B> {
    let mut before = 0_usize;
    for (operand, shape) in shapes.iter().enumerate() {
        let shape = shape.as_ref();
        let mut targets = frame.targets(operand, before, shape.len());
        before = before.saturating_add(shape.len());
        for (axis, &size) in shape.iter().enumerate() {
            let side = Side { operand: Some(operand), axis, size: size.into() };
            step(side, size, targets.step())?;
        }
    }
    ControlFlow::Continue(())
}

/// The loop of the frame. `visit` sees the size and the target of each axis, in order.
#[inline]
fn fill<S: AsRef<[usize]>>(
    frame: &Frame<'_>,
    shapes: &[S],
    out: &mut [usize],
    mut visit: impl FnMut(usize, Option<usize>),
) -> Result<(), Refusal> {
    frame.check_distinct(shapes.len(), |operand| rank(shapes, operand), out)?;
    frame.begin(shapes.first().map_or(&[], S::as_ref), out);
    let outcome = walk(frame, shapes, |side, size, target| {
        visit(size, target);
        let fits = match target.and_then(|target| out.get_mut(target)) {
            Some(result) => frame.meet(result, size),
            None => size == 1,
        };
        if fits {
            return ControlFlow::Continue(());
        }
        ControlFlow::Break((side, target))
    });
    match outcome {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break((second, target)) => Err(refuse(frame, shapes, out, second, target)),
    }
}

/// What is wrong with laying `second` on result axis `target`, where the loop stopped.
#[cold]
fn refuse<S: AsRef<[usize]>>(
    frame: &Frame<'_>,
    shapes: &[S],
    out: &[usize],
    second: Side,
    target: Option<usize>,
) -> Refusal {
    if let Some(refusal) = frame.refusal_override {
        return refusal;
    }
    let Some((axis, &size)) = target.and_then(|axis| Some((axis, out.get(axis)?))) else {
        return overhang(frame, second);
    };
    let brought = walk(frame, shapes, |side, own, target| match target {
        Some(target) if (target, own) == (axis, size) => ControlFlow::Break(side),
        _ => ControlFlow::Continue(()),
    });
    let first = match brought {
        ControlFlow::Break(side) => side,
        ControlFlow::Continue(()) => frame.base_side(axis, size),
    };
    Refusal::Clash { axis, rank: frame.rank, first, second }
}

fn overhang(frame: &Frame<'_>, side: Side) -> Refusal {
    let Side { operand, axis, size } = side;
    Refusal::Overhang { operand: operand.unwrap_or(0), axis, size, rank: frame.rank }
}

// Implements E_BROADCAST_ANY_FUNC_0090, E_BROADCAST_ANY_FUNC_2400, E_BROADCAST_ANY_ERR_0090.
/// Resolves shapes under a rule.
///
/// Works for any number of operands and any rank, in time linear in the total number of sizes
/// (the `broadcast_axes` of a [`Rule::Axes`] are sorted first).
///
/// # Errors
///
/// A [`BroadcastError`] where the rule does not accept the shapes.
///
/// ```
/// use simulcast_core::{Rule, Source, resolve};
///
/// let plan = resolve(Rule::Numpy, &[&[8, 1, 6, 1][..], &[7, 1, 5]])?;
/// assert_eq!(plan.shape(), [8, 7, 6, 5]);
/// assert_eq!(plan.source(1, 0), Ok(Source::Added));
///
/// let error = resolve(Rule::Numpy, &[&[2, 3, 4][..], &[2, 4]]).unwrap_err();
/// assert_eq!(error.code(), "E1");
/// assert_eq!(
///     error.to_string(),
///     "E1: A (2, 3, 4) and B (2, 4) do not broadcast under rule numpy: axis 1 (-2): A has 3, B has 2; \
///      help: B[:, None, :] is (2, 1, 4), result (2, 3, 4)"
/// );
/// # Ok::<(), simulcast_core::BroadcastError>(())
/// ```
#[cfg(feature = "alloc")]
pub fn resolve<S: AsRef<[usize]>>(rule: Rule<'_>, shapes: &[S]) -> Result<Plan, BroadcastError> {
    let mut sorted = Vec::new();
    let rule = rule.sorted(&mut sorted);
    try_resolve(rule, shapes).map_err(|refusal| BroadcastError::new(rule, shapes, refusal))
}

/// The result shape under [`Rule::Numpy`]: the short way for the common case.
///
/// # Errors
///
/// As [`resolve`].
///
/// ```
/// use simulcast_core::broadcast_shapes;
///
/// assert_eq!(broadcast_shapes(&[&[2, 1][..], &[3], &[]])?, [2, 3]);
/// # Ok::<(), simulcast_core::BroadcastError>(())
/// ```
#[cfg(feature = "alloc")]
pub fn broadcast_shapes<S: AsRef<[usize]>>(shapes: &[S]) -> Result<Vec<usize>, BroadcastError> {
    let refused = |refusal| BroadcastError::new(Rule::Numpy, shapes, refusal);
    let frame = frame(Rule::Numpy, shapes).map_err(refused)?;
    let mut shape = alloc::vec![1; frame.rank];
    fill(&frame, shapes, &mut shape, |_, _| ()).map_err(refused)?;
    Ok(shape)
}

/// [`resolve`] without the work that makes an error helpful.
#[cfg(feature = "alloc")]
pub(crate) fn try_resolve<S: AsRef<[usize]>>(
    rule: Rule<'_>,
    shapes: &[S],
) -> Result<Plan, Refusal> {
    let frame = frame(rule, shapes)?;
    let mut shape = alloc::vec![1; frame.rank];
    let total = shapes.iter().map(|s| s.as_ref().len()).fold(0, usize::saturating_add);
    let mut axes = Vec::with_capacity(total);
    fill(&frame, shapes, &mut shape, |size, target| axes.push((size, target)))?;
    let mut ends = Vec::with_capacity(shapes.len());
    let mut end = 0_usize;
    ends.extend(shapes.iter().map(|s| {
        end = end.saturating_add(s.as_ref().len());
        end
    }));
    Ok(Plan::new(rule, shape, axes, ends))
}

/// Every clash, not only the first: one for each result axis, in their order, then one for each overhanging axis.
#[cfg(feature = "alloc")]
pub(crate) fn all_clashes<S: AsRef<[usize]>>(rule: Rule<'_>, shapes: &[S]) -> Vec<Refusal> {
    // Never else: a clash comes after the frame.
    let Ok(frame) = frame(rule, shapes) else { return Vec::new() };
    let mut sizes = alloc::vec![1; frame.rank];
    frame.begin(shapes.first().map_or(&[], S::as_ref), &mut sizes);
    // Beside each size of the result: who brought it, and its first clash.
    let mut out: Vec<(usize, Option<Side>, Option<Refusal>)> =
        sizes.into_iter().map(|size| (size, None, None)).collect();
    let mut overhangs = Vec::new();
    let _: ControlFlow<()> = walk(&frame, shapes, |side, own, target| {
        let slot = target.and_then(|axis| Some((axis, out.get_mut(axis)?)));
        let Some((axis, (size, first, clash))) = slot else {
            overhangs.extend((own != 1).then(|| overhang(&frame, side)));
            return ControlFlow::Continue(());
        };
        let before = *size;
        let fits = frame.meet(size, own);
        if before != *size {
            *first = Some(side);
        }
        if own == *size {
            first.get_or_insert(side);
        }
        if !fits {
            let first = first.unwrap_or_else(|| frame.base_side(axis, *size));
            clash.get_or_insert(Refusal::Clash { axis, rank: frame.rank, first, second: side });
        }
        ControlFlow::Continue(())
    });
    out.into_iter().filter_map(|(.., clash)| clash).chain(overhangs).collect()
}
