//! Element-wise stages: code over laid leaves, into a fresh array or the caller's.

use std::ops::Range;

use ndarray::{ArrayD, IxDyn};
use simulcast_core::{BroadcastError, Refusal, Rule};

use crate::array::output::Fresh;
use crate::by_name::dyn_array::{AnyArray, AnyView, AnyViewMut};
use crate::by_name::program::build::bytecode::{Code, LEAVES};
use crate::by_name::program::build::stages::Stage;
use crate::by_name::program::front::error::ProgramError;
use crate::by_name::program::run::bind::{Leaves, Stepwise, blame};
use crate::by_name::program::run::chunked::row_axis;
use crate::by_name::program::run::interpreter::Interpreter;
use crate::by_name::program::{Run, Target};
use crate::exec::inner_loop::InnerLoop;
use crate::exec::launch::{Source, Work};
use crate::exec::parallelism;
use crate::exec::tiny::{Tiny, is_tiny};
use crate::layout::broadcast::{Laid, checked_len};
use crate::layout::small_vec::Inline;
use simulcast_kernels::cpu::level::Level;
use simulcast_kernels::dtype::DType;
use simulcast_kernels::tuning::TINY_ARRAYS;

/// Runs a stage.
pub(crate) fn map(
    run: &Run<'_>,
    stage: &Stage,
    code: &Code,
    leaves: &Leaves<'_>,
    target: &mut Target<'_, '_>,
    rows: Option<Range<usize>>,
) -> Result<Option<AnyArray>, ProgramError> {
    if run.rule == Rule::Numpy {
        if rows.is_none()
            && let Target::Into(out) = target
            && tiny(code, leaves, out)
        {
            return Ok(None);
        }
        let exec = Exec { run, stage, code, rows };
        return match leaves.len() {
            0..=2 => exec.together::<2>(leaves, target),
            3 => exec.together::<3>(leaves, target),
            4..=5 => exec.together::<5>(leaves, target),
            6..=8 => exec.together::<8>(leaves, target),
            _ => exec.together::<LEAVES>(leaves, target),
        };
    }
    let (code, mut laid, ins) = one_by_one(run, stage, leaves, stage.narrow)?;
    let exec = Exec { run, stage, code: &code, rows };
    exec.sized(&mut laid, ins, target)
}

/// Computes a tiny result under NumPy's rule, where that needs neither a nest nor to lay the leaves. Says whether it did.
fn tiny(code: &Code, leaves: &Leaves<'_>, out: &mut AnyViewMut<'_>) -> bool {
    let (to, count) = (out.as_mut_ptr(), leaves.len());
    if !is_tiny(out.shape().iter().product()) || count >= TINY_ARRAYS {
        return false;
    }
    let mut arrays = [(out.shape(), out.strides()); TINY_ARRAYS];
    let mut ins = [dangling(); TINY_ARRAYS];
    for (n, (array, pointer)) in arrays[1..].iter_mut().zip(&mut ins).enumerate().take(count) {
        let Some(view) = leaves.view(n) else { return false };
        (*array, *pointer) = ((view.shape(), view.strides()), view.as_ptr());
    }
    let mut inner = Interpreter::new(code, count);
    let Some(rows) = Tiny::<TINY_ARRAYS>::new(&inner.facts(), &arrays[..=count]) else {
        return false;
    };
    // SAFETY: the output is borrowed for writing, and has elements of the result's type; the leaves' own pointers, shapes
    // and strides, of the types that the code reads.
    unsafe { rows.run(&mut inner, to, &ins[..count]) };
    true
}

/// Leaves brought together operation by operation, and code that reads them so; its result is
/// rounded to its own type where it is `narrow`.
pub(crate) fn one_by_one(
    run: &Run<'_>,
    stage: &Stage,
    leaves: &Leaves<'_>,
    narrow: bool,
) -> Result<(Code, Laid<LEAVES>, [*const u8; LEAVES]), ProgramError> {
    let stepwise = Stepwise::new(run.program, stage, run.rule, &leaves.shapes())?;
    let relaid = stepwise.relaid(&leaves.strides(), narrow)?;
    let mut laid = Laid::<LEAVES> { shape: Inline::from_slice(&relaid.shape), ..Laid::default() };
    let refused = |refusal| {
        run.refused(stage, BroadcastError::new(Rule::Exact, &[&relaid.shape[..]], refusal))
    };
    laid.len = checked_len(&relaid.shape).map_err(refused)?;
    let mut ins = [dangling(); LEAVES];
    laid.strides.iter_mut().for_each(|strides| *strides = Inline::of_len(relaid.shape.len()));
    let places = laid.strides.iter_mut().zip(&mut ins);
    for ((strides, pointer), (leaf, own)) in places.zip(&relaid.leaves) {
        *strides = Inline::from_slice(own);
        *pointer = leaves.view(*leaf).map_or_else(dangling, AnyView::as_ptr);
    }
    Ok((relaid.code, laid, ins))
}

/// Where leaves that are not there are read: nowhere, but some place must be named.
pub(crate) fn dangling() -> *const u8 {
    static NOTHING: [u64; 2] = [0; 2];
    NOTHING.as_ptr().cast()
}

/// Leaves brought together under NumPy's rule; places without a leaf repeat nothing.
#[inline]
pub(crate) fn brought<const N: usize>(
    leaves: &Leaves<'_>,
    laid: &mut Laid<N>,
) -> Result<[*const u8; N], BroadcastError> {
    let (mut shapes, mut strides) = ([&[][..]; N], [&[][..]; N]);
    let mut ins = [dangling(); N];
    for n in 0..N.min(leaves.len()) {
        if let Some(view) = leaves.view(n) {
            (shapes[n], strides[n], ins[n]) = (view.shape(), view.strides(), view.as_ptr());
        }
    }
    laid.lay(Rule::Numpy, &shapes, &strides)?;
    Ok(ins)
}

/// A stage about to run.
struct Exec<'e, 'r> {
    run: &'e Run<'r>,
    stage: &'e Stage,
    code: &'e Code,
    rows: Option<Range<usize>>,
}

impl Exec<'_, '_> {
    /// All leaves brought together at once.
    #[inline]
    fn together<const N: usize>(
        &self,
        leaves: &Leaves<'_>,
        target: &mut Target<'_, '_>,
    ) -> Result<Option<AnyArray>, ProgramError> {
        let mut laid = Laid::<N>::default();
        match brought::<N>(leaves, &mut laid) {
            Ok(ins) => self.sized(&mut laid, ins, target),
            Err(error) => Err(blame(self.run, self.stage, &leaves.shapes(), error)),
        }
    }

    /// Runs on laid leaves.
    fn sized<const N: usize>(
        &self,
        laid: &mut Laid<N>,
        mut ins: [*const u8; N],
        target: &mut Target<'_, '_>,
    ) -> Result<Option<AnyArray>, ProgramError> {
        if let Some(rows) = &self.rows {
            part(laid, &mut ins, self.code.leaf_sizes(), rows);
        }
        let (code, level, threads) = (self.code, self.run.program.level, self.run.threads);
        let task = Task { code, level, threads, laid, ins };
        task.go(target).map_err(|error| self.run.refused(self.stage, error))
    }
}

/// Some rows.
fn part<const N: usize>(
    laid: &mut Laid<N>,
    ins: &mut [*const u8; N],
    sizes: &[usize],
    rows: &Range<usize>,
) {
    let axis = row_axis(&laid.shape);
    let Some(size) = laid.shape.get_mut(axis) else { return };
    let whole = (*size).max(1);
    let start = rows.start.min(*size);
    let count = rows.end.min(*size).saturating_sub(start);
    *size = count;
    laid.len = laid.len / whole * count;
    for (n, pointer) in ins.iter_mut().enumerate() {
        let stride = laid.strides[n].get(axis).copied().unwrap_or(0);
        let size = sizes.get(n).copied().unwrap_or(1).cast_signed();
        *pointer = pointer.wrapping_offset(start.cast_signed() * stride * size);
    }
}

/// Code on pointers.
pub(crate) struct Task<'t, const N: usize> {
    pub(crate) code: &'t Code,
    pub(crate) level: Level,
    pub(crate) threads: Option<usize>,
    pub(crate) laid: &'t Laid<N>,
    pub(crate) ins: [*const u8; N],
}

impl<const N: usize> Task<'_, N> {
    fn go(&self, target: &mut Target<'_, '_>) -> Result<Option<AnyArray>, BroadcastError> {
        let (shape, strides) = (&self.laid.shape[..], self.laid.slices());
        // SAFETY: the leaves' own pointers, with their strides along the shape, and of the types that the code reads.
        let source = unsafe { Source::new(shape, &strides, &self.ins, self.level) };
        match target {
            Target::Fresh => {
                // SAFETY: there is room for every element of the row-major result.
                let write = |out| unsafe {
                    self.run(&source, |work| source.run_row_major(work, out, None))
                };
                let mut refused = None;
                let made = fresh(self.code.dtype, shape, self.laid.len, &mut |out| {
                    refused = write(out).err();
                });
                match refused {
                    Some(error) => Err(error),
                    None => Ok(Some(made.map_err(|refusal| source.refused(refusal))?)),
                }
            }
            Target::Into(out) => {
                let (pointer, sizes, strides) = (out.as_mut_ptr(), out.shape(), out.strides());
                // SAFETY: the output is borrowed for writing, and has elements of the result's type.
                unsafe {
                    self.run(&source, |work| {
                        source.assign_to(work, sizes, pointer, strides, true)
                    })?;
                }
                Ok(None)
            }
        }
    }

    /// Runs the code, on this thread or on several.
    fn run<Out>(&self, source: &Source<'_>, then: impl FnOnce(Work<'_>) -> Out) -> Out {
        let make = || Interpreter::new(self.code, N);
        if parallelism::is_one_part(source.len(), self.threads) {
            return then(Work::Here(&mut make()));
        }
        let pass = |run: &mut dyn FnMut(&mut dyn InnerLoop)| run(&mut make());
        then(Work::Parts(&pass, self.threads))
    }
}

/// A new array of that type and shape, whose elements `write` writes, row-major.
pub(crate) fn fresh(
    dtype: DType,
    shape: &[usize],
    len: usize,
    write: &mut dyn FnMut(*mut u8),
) -> Result<AnyArray, Refusal> {
    fn of<T>(
        shape: &[usize],
        len: usize,
        write: &mut dyn FnMut(*mut u8),
    ) -> Result<ArrayD<T>, Refusal> {
        let mut fresh = Fresh::<T>::new(len)?;
        write(fresh.pointer().cast());
        // SAFETY: all elements were written, and there is room for them.
        let array = unsafe { fresh.finish(IxDyn(shape), len) };
        // Never `None`: the shape has that many elements.
        array.ok_or(Refusal::Overflow)
    }
    if dtype == DType::String {
        // Never: text is not computed in tiles.
        return Err(Refusal::Overflow);
    }
    crate::dispatch!(dtype, T => of::<T>(shape, len, write).map(AnyArray::from))
}
