//! A fold about to run: which way it takes, and what a block of it is.

use std::ops::Range;

use simulcast_core::row_major_into;

use crate::by_name::program::build::bytecode::Code;
use crate::by_name::program::run::interpreter::Interpreter;
use crate::by_name::program::run::reduction::blocking::{Axis, Cuts};
use crate::by_name::program::run::reduction::operation::Operation;
use crate::by_name::program::run::reduction::reducer::Folding;
use crate::by_name::program::run::reduction::row_pairs::Cross;
use crate::exec::launch::{Source, Work};
use crate::exec::parallelism;
use crate::layout::broadcast::Laid;
use crate::layout::small_vec::Inline;
use simulcast_kernels::cpu::level::Level;
use simulcast_threads::{SendPtr, for_each_part, share};

/// The elements of a block.
pub(super) const BLOCK: usize = 16384;

/// A fold about to run.
#[derive(Clone, Copy)]
pub(super) struct FoldTask<'t, const N: usize> {
    pub(super) code: &'t Code,
    pub(super) level: Level,
    /// Only read, and their elements are `Sync`.
    pub(super) ins: [SendPtr<u8>; N],
    /// What is folded is a part of this, cut up as it would be in the whole.
    pub(super) whole: &'t Cuts<N>,
    pub(super) cuts: &'t Cuts<N>,
    pub(super) folding: &'t Folding,
    /// What the code does, and how its rows cross, where it is little and they do.
    pub(super) operation: Option<&'t Operation>,
    pub(super) cross: Option<&'t Cross<N>>,
}

impl<const N: usize> FoldTask<'_, N> {
    /// Folds into memory for all results.
    ///
    /// # Safety
    ///
    /// There is room for them, apart from the operands.
    pub(super) unsafe fn go(&self, out: *mut u8, limit: Option<usize>) {
        let cuts = self.cuts;
        let elements = cuts.results().saturating_mul(cuts.reduced());
        let parallel = parallelism::parts(elements, limit);
        if let Some(cross) = self.cross {
            self.crossed(cross, out, parallel, limit);
        } else if cuts.columns().is_empty() && cuts.reduced() <= BLOCK {
            self.rows(out, parallel, limit);
        } else {
            self.groups(out, parallel, limit);
        }
    }

    /// Does some tasks, on this thread or on several.
    pub(super) fn each(
        tasks: usize,
        parallel: usize,
        limit: Option<usize>,
        work: impl Fn(Range<usize>) + Sync,
    ) {
        let parts = parallel.min(tasks);
        let part = |part| work(share(tasks, part, parts)..share(tasks, part + 1, parts));
        for_each_part(parts, limit, &part);
    }

    /// Where a leaf is, so many elements from its first.
    pub(super) fn leaf(&self, leaf: usize, at: isize) -> *const u8 {
        let size = self.code.sizes.get(leaf).copied().unwrap_or(1);
        self.ins[leaf].get().cast_const().wrapping_offset(at * size.cast_signed())
    }

    /// Computes a rectangle into the room, row-major.
    ///
    /// # Safety
    ///
    /// The room holds as many elements as the axes have, and the axes from `at` on stay within the
    /// leaves.
    pub(super) unsafe fn compute(&self, axes: &[Axis<N>], at: [isize; N], room: *mut u8) {
        let mut laid = Laid::<N>::default();
        let mut shape = Inline::of_len(axes.len());
        let mut strides: [Inline<isize>; N] = std::array::from_fn(|_| Inline::of_len(axes.len()));
        laid.len = 1;
        for (axis, (size, steps)) in axes.iter().enumerate() {
            shape[axis] = *size;
            laid.len *= size;
            strides.iter_mut().zip(steps).for_each(|(all, step)| all[axis] = *step);
        }
        (laid.shape, laid.strides) = (shape, strides);
        let ins: [*const u8; N] = std::array::from_fn(|n| self.leaf(n, at[n]));
        let mut out = Inline::of_len(axes.len());
        // Never an error: a block is small.
        if row_major_into(&laid.shape, &mut out).is_err() {
            return;
        }
        // SAFETY: the leaves' own pointers and strides, and a room for all results.
        unsafe {
            let strides = laid.slices();
            let source = Source::new(&laid.shape, &strides, &ins, self.level);
            source.run(Work::Here(&mut Interpreter::new(self.code, N)), room, &out, None, true);
        }
    }
}
