//! Reductions: an element-wise expression folded as it is computed, never written out.
//!
//! ```text
//! axes     outer (kept) · inner (reduced) · columns (kept, after the last reduced axis)
//! along    without columns: rows of the reduced axes, folded one by one; those of a leaf, of a
//!          product or of a distance as they are made, and many abreast where they cross
//! across   with columns: a block of rows, folded eight at a time, one after the other; short rows
//!          several side by side, and those of a leaf where they lie
//! block    what is computed at once, into memory that stays in the second-level cache
//! run      blocks whose rows are folded one after the other, some hundred of them
//! group    a row of the result that is folded from many runs: in pairs, pairs in pairs, in their order
//! part     where there are few groups, the runs of each are cut into parts of equal size
//! ```
//!
//! How the work is cut up depends on the shape and the strides alone, so that the result has the same
//! bits on any number of threads. The error of a sum grows with the logarithm of the number of terms.

mod blocking;
mod column_groups;
mod operation;
mod pairwise_stack;
mod reducer;
mod row_pairs;
mod rows;
mod task;

use std::ops::Range;

use simulcast_core::{BroadcastError, Rule, row_major_into};
use simulcast_threads::SendPtr;

use self::blocking::Cuts;
use self::operation::Operation;
use self::reducer::Folding;
use self::row_pairs::Cross;
use self::task::FoldTask;
use crate::by_name::dyn_array::AnyArray;
use crate::by_name::program::build::bytecode::{Code, LEAVES};
use crate::by_name::program::build::graph::{Fold, Over};
use crate::by_name::program::build::stages::Stage;
use crate::by_name::program::front::error::{ProgramError, ProgramErrorKind};
use crate::by_name::program::run::bind::{Leaves, blame, left, reduced};
use crate::by_name::program::run::chunked::row_axis;
use crate::by_name::program::run::run_map::{brought, fresh, one_by_one};
use crate::by_name::program::run::strings::given;
use crate::by_name::program::{Run, Target};
use crate::layout::broadcast::Laid;
use crate::layout::small_vec::Inline;

/// Runs a stage.
pub(crate) fn fold(
    run: &Run<'_>,
    stage: &Stage,
    code: &Code,
    over: &Over,
    leaves: &Leaves<'_>,
    target: &mut Target<'_, '_>,
    rows: Option<Range<usize>>,
) -> Result<Option<AnyArray>, ProgramError> {
    let deal = &mut Deal { run, stage, over, target, rows };
    if run.rule == Rule::Numpy {
        return match leaves.len() {
            0..=2 => deal.together::<2>(code, leaves),
            3..=4 => deal.together::<4>(code, leaves),
            _ => deal.together::<LEAVES>(code, leaves),
        };
    }
    let (code, laid, ins) = one_by_one(run, stage, leaves, false)?;
    deal.folded(&code, &laid, ins)
}

/// What is to be folded, and for whom.
struct Deal<'d, 'r, 't, 'a> {
    run: &'d Run<'r>,
    stage: &'d Stage,
    over: &'d Over,
    target: &'d mut Target<'t, 'a>,
    rows: Option<Range<usize>>,
}

impl Deal<'_, '_, '_, '_> {
    /// All leaves brought together at once.
    fn together<const N: usize>(
        &mut self,
        code: &Code,
        leaves: &Leaves<'_>,
    ) -> Result<Option<AnyArray>, ProgramError> {
        let mut laid = Laid::<N>::default();
        let ins = brought::<N>(leaves, &mut laid)
            .map_err(|error| blame(self.run, self.stage, &leaves.shapes(), error))?;
        self.folded(code, &laid, ins)
    }

    /// Folds laid leaves, into the target itself where its elements lie in a row.
    fn folded<const N: usize>(
        &mut self,
        code: &Code,
        laid: &Laid<N>,
        mut ins: [*const u8; N],
    ) -> Result<Option<AnyArray>, ProgramError> {
        let (run, stage, over) = (self.run, self.stage, self.over);
        let program = run.program;
        let step = program.graph.step(stage.node);
        let kept = reduced(program, stage.node, &laid.shape, over.axes.as_deref())?;
        let mut shape = left(&laid.shape, &kept, over.keepdims);
        let whole = Cuts::new(laid, &kept, None);
        let own = row_axis(&shape);
        let part = match (&self.rows, shape.get_mut(own)) {
            (Some(rows), Some(size)) => {
                let start = rows.start.min(*size);
                *size = rows.end.min(*size).saturating_sub(start);
                // The axis that this one of the result is, where it is one.
                let mut shown = (0..kept.len()).filter(|&at| kept[at] || over.keepdims);
                let axis = shown.nth(own).filter(|&at| kept[at]);
                axis.map(|axis| {
                    for (n, pointer) in ins.iter_mut().enumerate() {
                        let stride = laid.strides[n].get(axis).copied().unwrap_or(0);
                        let size = code.sizes.get(n).copied().unwrap_or(1).cast_signed();
                        *pointer = pointer.wrapping_offset(start.cast_signed() * stride * size);
                    }
                    Cuts::new(laid, &kept, Some((axis, *size)))
                })
            }
            _ => None,
        };
        let cuts = part.as_ref().unwrap_or(&whole);
        let (len, count) = (shape.iter().product::<usize>(), cuts.reduced());
        if count == 0 && matches!(over.fold, Fold::Maximum | Fold::Minimum) {
            return Err(ProgramError::new(ProgramErrorKind::Empty(over.fold), step.span.clone()));
        }
        let (level, dtype) = (program.level, step.dtype());
        let folding =
            Folding::new(over.fold, code.dtype, count, dtype, level).ok_or_else(|| {
                let what = format!("the {} of {}", over.fold.name(), code.dtype);
                ProgramError::new(ProgramErrorKind::Unsupported(what), step.span.clone())
            })?;
        // Under another rule than NumPy's, leaves are not laid as the stage says.
        let operation = (run.rule == Rule::Numpy)
            .then(|| Operation::new(program, stage, folding.kind, code.dtype, level))
            .flatten();
        let operation = operation.as_ref();
        let cross = operation
            .and_then(|operation| Cross::new(operation, folding.kind, code.dtype, cuts, level));
        let cross = cross.as_ref();
        let (whole, folding) = (&whole, &folding);
        let ins = ins.map(SendPtr::reading);
        let task = FoldTask { code, level, ins, whole, cuts, folding, operation, cross };
        let mut write = |out: *mut u8| match (len, count) {
            (0, _) => {}
            // SAFETY: there is room for the results.
            (_, 0) => unsafe { folding.nothing(out, len) },
            // SAFETY: as above.
            _ => unsafe { task.go(out, run.threads) },
        };
        if let Target::Into(out) = &mut *self.target
            && out.shape() == shape
            && in_a_row(&shape, out.strides())
        {
            write(out.pointer());
            return Ok(None);
        }
        let made = fresh(dtype, &shape, len, &mut write);
        let refused = |refusal| BroadcastError::new(Rule::Exact, &[&shape[..]], refusal);
        made.map_err(refused)
            .and_then(|made| given(made, self.target))
            .map_err(|error| run.refused(stage, error))
    }
}

/// Whether elements of that shape follow one another, row by row.
fn in_a_row(shape: &[usize], strides: &[isize]) -> bool {
    let mut own = Inline::of_len(shape.len());
    let same = |((&size, &stride), &own): ((&usize, &isize), &isize)| size == 1 || stride == own;
    row_major_into(shape, &mut own).is_ok() && shape.iter().zip(strides).zip(&*own).all(same)
}
