//! Text: operations that own memory, one zip each.

use std::ops::Range;

use ndarray::{ArrayViewD, Axis, Slice};
use simulcast_core::BroadcastError;

use crate::by_name::dyn_array::{AnyArray, AnyView, AnyViewMut};
use crate::by_name::program::build::stages::Stage;
use crate::by_name::program::front::error::ProgramError;
use crate::by_name::program::run::bind::{Leaves, blame};
use crate::by_name::program::run::chunked::row_axis;
use crate::by_name::program::{Run, Target};
use crate::{try_copy_into, try_copy_to, try_zip_by};
use simulcast_kernels::dtype::Element;
use simulcast_kernels::op::Op;

/// Runs a stage of text: an operation, or a copy.
pub(crate) fn text(
    run: &Run<'_>,
    stage: &Stage,
    op: Option<Op>,
    leaves: &Leaves<'_>,
    target: &mut Target<'_, '_>,
) -> Result<Option<AnyArray>, ProgramError> {
    let refused = |error| blame(run, stage, &leaves.shapes(), error);
    let unsupported = || run.program.unsupported("this on text");
    let view = |at: usize| leaves.view(at);
    let text = |at: usize| view(at).and_then(AnyView::typed::<String>).ok_or_else(unsupported);
    let rule = run.rule;
    let made = match op {
        None => {
            let whole = text(0)?;
            AnyArray::from(try_copy_to(&whole, whole.raw_dim()).map_err(refused)?)
        }
        Some(Op::Concat) => {
            let zip = try_zip_by(rule, (text(0)?, text(1)?)).map_err(refused)?;
            AnyArray::from(zip.try_map(|a, b| [a.as_str(), b].concat()).map_err(refused)?)
        }
        Some(Op::Equal | Op::NotEqual) => {
            let same = op == Some(Op::Equal);
            let zip = try_zip_by(rule, (text(0)?, text(1)?)).map_err(refused)?;
            AnyArray::from(zip.try_map(|a, b| (a == b) == same).map_err(refused)?)
        }
        Some(Op::Where) => {
            let settled = view(0).and_then(AnyView::settled);
            let which = settled.as_ref().map(AnyArray::view).or_else(|| view(0).cloned());
            let which = which.and_then(|which| which.typed::<bool>()).ok_or_else(unsupported)?;
            let zip = try_zip_by(rule, (which, text(1)?, text(2)?)).map_err(refused)?;
            let pick = |&which: &bool, a: &String, b: &String| if which { a } else { b }.clone();
            AnyArray::from(zip.try_map(pick).map_err(refused)?)
        }
        Some(_) => return Err(unsupported()),
    };
    given(made, target).map_err(|error| run.refused(stage, error))
}

/// Gives a finished array to whom it is for.
pub(crate) fn given(
    made: AnyArray,
    target: &mut Target<'_, '_>,
) -> Result<Option<AnyArray>, BroadcastError> {
    match target {
        Target::Fresh => Ok(Some(made)),
        Target::Into(out) => copied(&made, out, None).map(|()| None),
    }
}

/// Copies a finished array, or some of its rows, to where they stretch.
pub(crate) fn copied(
    made: &AnyArray,
    out: &mut AnyViewMut<'_>,
    rows: Option<Range<usize>>,
) -> Result<(), BroadcastError> {
    crate::dispatch!(made.dtype(), T => match made.typed::<T>() {
        Some(array) => copy(array, out, rows),
        None => Ok(()),
    })
}

fn copy<T: Element>(
    mut whole: ArrayViewD<'_, T>,
    out: &mut AnyViewMut<'_>,
    rows: Option<Range<usize>>,
) -> Result<(), BroadcastError> {
    let axis = row_axis(whole.shape());
    if let (Some(rows), Some(&len)) = (rows, whole.shape().get(axis)) {
        let end = rows.end.min(len);
        whole.slice_axis_inplace(Axis(axis), Slice::from(rows.start.min(end)..end));
    }
    match out.typed::<T>() {
        Some(mut out) => try_copy_into(whole, &mut out),
        None => Ok(()),
    }
}
