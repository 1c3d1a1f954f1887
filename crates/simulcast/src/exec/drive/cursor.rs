//! Walks: pointers that move through loops.

use super::Job;
use crate::layout::loop_nest::Loop;
use crate::layout::small_vec::Inline;

/// Pointers to an element of the output and of every operand.
pub(super) struct At<R, const N: usize> {
    pub(super) out: *mut R,
    pub(super) ins: [*const u8; N],
}

impl<R, const N: usize> At<R, N> {
    /// Where a job's nest begins.
    #[inline(always)]
    pub(super) fn start(job: &Job<'_, R, N>, sizes: [usize; N]) -> Self {
        let mut at = Self { out: job.out.wrapping_offset(job.nest.out), ins: job.ins };
        for (operand, size) in sizes.into_iter().enumerate() {
            let bytes = job.nest.ins[operand] * size.cast_signed();
            at.ins[operand] = at.ins[operand].wrapping_offset(bytes);
        }
        at
    }

    /// `steps` steps of a loop further.
    #[inline(always)]
    pub(super) fn moved(&self, one: &Loop<N>, steps: isize, sizes: [usize; N]) -> Self {
        let mut at = Self { out: self.out.wrapping_offset(one.out * steps), ins: self.ins };
        for (operand, size) in sizes.into_iter().enumerate() {
            let bytes = one.ins[operand] * steps * size.cast_signed();
            at.ins[operand] = at.ins[operand].wrapping_offset(bytes);
        }
        at
    }
}

/// A walk over every combination of some loops, in order.
///
/// Not a function that takes a closure: a closure that is large is not inlined, and what is not
/// inlined is not compiled for the level.
pub(super) struct Walk<'l, R, const N: usize> {
    loops: &'l [Loop<N>],
    index: Inline<usize>,
    pub(super) at: At<R, N>,
}

impl<'l, R, const N: usize> Walk<'l, R, N> {
    /// At the start.
    #[inline(always)]
    pub(super) fn new(loops: &'l [Loop<N>], at: At<R, N>) -> Self {
        Self { loops, index: Inline::of_len(loops.len()), at }
    }

    /// One step on; says whether there was one.
    #[inline(always)]
    pub(super) fn step(&mut self, sizes: [usize; N]) -> bool {
        for (one, index) in self.loops.iter().zip(&mut *self.index).rev() {
            *index += 1;
            if *index < one.len {
                self.at = self.at.moved(one, 1, sizes);
                return true;
            }
            self.at = self.at.moved(one, 1 - one.len.cast_signed(), sizes);
            *index = 0;
        }
        false
    }
}
