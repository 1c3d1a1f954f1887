//! Software prefetch: a hint that brings a cache line closer before it is read.
//!
//! Sequential reads are left to the hardware prefetcher wherever it keeps up. It does not if one operand comes from memory
//! among several that stay in the L1 cache, if reads cross pages on Intel's processors ([`pays_in_light_loops`]), and if the
//! columns of a block lie far apart ([`PrefetchCursor`]). Which operands of a call are prefetched is decided by
//! `exec::strategy`.

use std::ops::Range;
use std::ptr;
#[cfg(all(target_arch = "x86_64", not(miri)))]
use std::sync::OnceLock;

#[cfg(all(target_arch = "x86_64", not(miri)))]
use super::cpuid;
use crate::tuning::{CACHE_LINE_BYTES, PREFETCH_DISTANCE_BYTES};

/// Prefetches the cache line of an address into the L2 cache. Any address will do: a hint never faults.
#[inline(always)]
pub fn prefetch<T>(address: *const T) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: every x86-64 has the instruction, and it neither faults nor changes anything.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T1>(address.cast());
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = address;
}

/// Whether software prefetch pays in loops of a few instructions that read sequentially.
///
/// Intel's hardware prefetcher stops at the end of a 4 KiB page, so a hint ahead of it saves up to a quarter of the time
/// from memory, and costs up to a twentieth from the last-level cache. AMD's is slower for the hints.
#[inline]
pub fn pays_in_light_loops() -> bool {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        static PAYS: OnceLock<bool> = OnceLock::new();
        *PAYS.get_or_init(|| {
            let vendor = cpuid(0, 0);
            let name = [vendor.ebx, vendor.edx, vendor.ecx].map(u32::to_le_bytes);
            name.as_flattened() == b"GenuineIntel"
        })
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    false
}

/// Prefetches the lines that lie [`PREFETCH_DISTANCE_BYTES`] beyond these bytes. Called for a few lines at a time: when more
/// hints are pending than the core has line-fill buffers, the loads that follow stall.
#[inline(always)]
pub fn prefetch_ahead(address: *const u8, bytes: usize) {
    for line in (0..bytes).step_by(CACHE_LINE_BYTES) {
        prefetch(address.wrapping_add(PREFETCH_DISTANCE_BYTES + line));
    }
}

/// [`prefetch_ahead`] for a range of elements of each operand whose bit is set.
#[inline(always)]
pub fn prefetch_operands(
    operands: usize,
    ins: &[*const u8],
    sizes: &[usize],
    elements: Range<usize>,
) {
    let mut left = operands;
    while left != 0 {
        let operand = left.trailing_zeros() as usize;
        left &= left - 1;
        let address = ins[operand].wrapping_add(elements.start * sizes[operand]);
        prefetch_ahead(address, elements.len() * sizes[operand]);
    }
}

/// Prefetches the next block of a transposed operand, whose columns lie far apart, a few lines at each step: no hardware
/// prefetcher finds such lines, and hints for all of them at once would stall the stores of the current block.
#[derive(Clone, Copy)]
pub struct PrefetchCursor {
    /// The column that is prefetched next, and the distance to the one after it, in bytes.
    column: *const u8,
    column_step: isize,
    /// The distance from line to line of a column, in bytes, and the number of lines of a column.
    line_step: isize,
    lines: usize,
    /// The lines of this column that are prefetched already.
    done: usize,
    /// The lines that one step prefetches.
    lines_per_step: usize,
}

impl PrefetchCursor {
    /// Prefetches nothing.
    pub const NONE: Self = Self {
        column: ptr::null(),
        column_step: 0,
        line_step: 0,
        lines: 0,
        done: 0,
        lines_per_step: 0,
    };

    /// `columns` columns of `lines` lines each, spread over `steps` steps; distances are in bytes.
    #[inline(always)]
    pub fn new(
        column: *const u8,
        (columns, column_step): (usize, isize),
        (lines, line_step): (usize, isize),
        steps: usize,
    ) -> Self {
        let lines_per_step = (columns * lines).div_ceil(steps.max(1));
        Self { column, column_step, line_step, lines, done: 0, lines_per_step }
    }

    /// Prefetches the lines of one step.
    #[inline(always)]
    pub fn step(&mut self) {
        for _ in 0..self.lines_per_step {
            prefetch(self.column.wrapping_offset(self.done.cast_signed() * self.line_step));
            self.done += 1;
            if self.done == self.lines {
                self.done = 0;
                self.column = self.column.wrapping_offset(self.column_step);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_steps_of_a_cursor_meet_every_line_of_its_columns_once() {
        let mut cursor = PrefetchCursor::new(ptr::without_provenance(4096), (5, 100), (3, 64), 4);
        // 15 lines in 4 steps: 4 lines each, of which the last one is beyond the columns.
        cursor.step();
        assert_eq!((cursor.column.addr(), cursor.done), (4096 + 100, 1));
        (1..4).for_each(|_| cursor.step());
        assert_eq!((cursor.column.addr(), cursor.done), (4096 + 500, 1));
    }
}
