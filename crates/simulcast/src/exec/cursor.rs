//! Cursors: pointers of all arrays that move through loops.

use crate::exec::inner_loop::MAX_OPERANDS;
use crate::layout::nest::Nest;
use crate::layout::small_vec::Inline;

/// Pointers to an element of each array, the result first.
#[derive(Clone, Copy)]
pub(crate) struct Pointers {
    all: [*const u8; MAX_OPERANDS + 1],
    count: usize,
}

impl Pointers {
    /// Where a nest begins.
    #[inline]
    pub(crate) fn start(nest: &Nest, out: *mut u8, ins: &[*const u8]) -> Self {
        let mut this = Self { all: [out.cast_const(); MAX_OPERANDS + 1], count: nest.arrays() };
        this.all[1..=ins.len()].copy_from_slice(ins);
        this.advance(nest.starts(), 1);
        this
    }

    /// Moves each pointer by a number of its steps, in bytes.
    #[inline(always)]
    pub(crate) fn advance(&mut self, steps: &[isize], count: isize) {
        for (pointer, step) in self.all[..self.count].iter_mut().zip(steps) {
            *pointer = pointer.wrapping_offset(step.wrapping_mul(count));
        }
    }

    /// The same, moved by a number of steps.
    #[inline(always)]
    pub(crate) fn moved(&self, steps: &[isize], count: isize) -> Self {
        // One by one: a copy of all of them, whole vectors at a time, waits until the pointers that were just written one by
        // one have reached the cache.
        let mut moved = Self { all: [std::ptr::null(); MAX_OPERANDS + 1], count: self.count };
        for ((to, from), step) in moved.all.iter_mut().zip(&self.all[..self.count]).zip(steps) {
            *to = from.wrapping_offset(step.wrapping_mul(count));
        }
        moved
    }

    /// The place of a result.
    #[inline(always)]
    pub(crate) fn out(&self) -> *mut u8 {
        self.all[0].cast_mut()
    }

    /// The pointers of the operands.
    #[inline(always)]
    pub(crate) fn ins(&self) -> &[*const u8] {
        &self.all[1..self.count]
    }

    /// The pointer of an operand.
    #[inline(always)]
    pub(crate) fn operand(&self, operand: usize) -> *const u8 {
        self.all[operand + 1]
    }

    /// Reads an operand from elsewhere.
    #[inline(always)]
    pub(crate) fn set_operand(&mut self, operand: usize, pointer: *const u8) {
        self.all[operand + 1] = pointer;
    }
}

/// An odometer over every combination of some loops of a nest, in order.
pub(crate) struct Cursor<'n> {
    nest: &'n Nest,
    /// The loops, from the outermost to the innermost.
    loops: Inline<usize>,
    index: Inline<usize>,
    pub(crate) at: Pointers,
}

impl<'n> Cursor<'n> {
    /// At the start of those loops.
    #[inline]
    pub(crate) fn new(nest: &'n Nest, loops: impl Iterator<Item = usize>, at: Pointers) -> Self {
        let mut list = Inline::new();
        loops.for_each(|one| list.push(one));
        Self { nest, index: Inline::of_len(list.len()), loops: list, at }
    }

    /// One step on; says whether there was one.
    #[inline]
    pub(crate) fn step(&mut self) -> bool {
        for (&one, index) in self.loops.iter().zip(&mut *self.index).rev() {
            let (len, steps) = (self.nest.len(one), self.nest.step(one));
            *index += 1;
            if *index < len {
                self.at.advance(steps, 1);
                return true;
            }
            self.at.advance(steps, 1 - len.cast_signed());
            *index = 0;
        }
        false
    }
}
