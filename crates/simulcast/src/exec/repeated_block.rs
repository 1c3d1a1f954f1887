//! Blocks of copies of a repeated operand's element, for inner loops that read every operand element by element.

use simulcast_kernels::cpu::level::Level;
use simulcast_kernels::moves::pack;
use simulcast_kernels::tuning::{CACHE_LINE_BYTES, REPEATED_BLOCK_ELEMENTS};

/// The bytes of a block of copies of an element.
pub(crate) const fn repeated_block_bytes(size: usize) -> usize {
    (REPEATED_BLOCK_ELEMENTS * size).next_multiple_of(CACHE_LINE_BYTES)
}

/// A block of copies of a repeated operand's element.
#[derive(Clone, Copy)]
pub(crate) struct RepeatedBlock {
    pub(crate) operand: usize,
    block: *mut u8,
    level: Level,
    /// The element that it was filled with, and how many copies.
    held: (*const u8, usize),
}

impl RepeatedBlock {
    pub(crate) fn new(operand: usize, block: *mut u8, level: Level) -> Self {
        Self { operand, block, level, held: (std::ptr::null(), 0) }
    }

    /// The element that it was last filled with.
    #[inline(always)]
    pub(crate) fn element(&self) -> *const u8 {
        self.held.0
    }

    /// The block with copies of an element, no fewer than a run of `len` reads.
    ///
    /// # Safety
    ///
    /// The block has room for as many copies as a block has; there is an element of plain
    /// data of that size, which does not change while the block is used.
    #[inline]
    pub(crate) unsafe fn filled(
        &mut self,
        element: *const u8,
        size: usize,
        len: usize,
    ) -> *const u8 {
        let count = len.min(REPEATED_BLOCK_ELEMENTS);
        if self.held.0 != element || self.held.1 < count {
            // SAFETY: the caller keeps the conditions.
            unsafe { pack(self.level, size, self.block, element, &[(count, 0)]) };
            self.held = (element, count);
        }
        self.block
    }
}
