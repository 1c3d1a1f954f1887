//! Asking: lines of memory, some time before they are read.
//!
//! Reading is mostly left to the hardware, which does not always like to be helped: see [`Far`] and [`likes_help`].

use std::ops::Range;
use std::ptr;
#[cfg(all(target_arch = "x86_64", not(miri)))]
use std::sync::OnceLock;

use super::nontemporal::LINE;
#[cfg(all(target_arch = "x86_64", not(miri)))]
use super::nontemporal::cpuid;

/// Asks for a line, into a near cache; any address will do.
#[inline(always)]
pub fn prefetch<T>(at: *const T) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: every x86-64 has it, and it neither faults nor changes anything.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T1>(at.cast());
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = at;
}

/// Whether the hardware reads faster what it was asked for, in loops of a few instructions too. Intel's looks no further than
/// to the end of a page: from memory, it then takes up to a quarter less time, and from a last-level cache up to a
/// twentieth more. AMD's is slower for it.
#[inline]
pub fn likes_help() -> bool {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        static LIKES: OnceLock<bool> = OnceLock::new();
        *LIKES.get_or_init(|| {
            let maker = cpuid(0, 0);
            let name = [maker.ebx, maker.edx, maker.ecx].map(u32::to_le_bytes);
            name.as_flattened() == b"GenuineIntel"
        })
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    false
}

/// The operands that come from memory.
#[derive(Clone, Copy)]
pub struct Far {
    /// A bit for each.
    pub operands: usize,
    /// Whether several others move beside them, in the first-level cache.
    pub beside: bool,
}

impl Far {
    pub const NONE: Self = Self { operands: 0, beside: false };

    /// The operand to ask for ahead of time: among others that stay in the first-level cache, the
    /// hardware does not see that one comes from memory, and reads it late.
    #[inline(always)]
    pub fn only(self) -> Option<usize> {
        self.one().filter(|_| self.beside)
    }

    /// The operands to ask for where loops are light, a bit for each: all, where the hardware likes that, or the
    /// [only](Self::only) one, or one that is read beside another for results of a smaller size: then it is all that
    /// memory is busy with.
    #[inline(always)]
    pub fn asked(self, sizes: &[usize], size: usize) -> usize {
        let wide = |number: usize| sizes.len() == 2 && sizes[number] >= 2 * size;
        let one = self.one().is_some_and(|number| self.beside || wide(number));
        if one || likes_help() { self.operands } else { 0 }
    }

    /// The operand, where there is one.
    #[inline(always)]
    fn one(self) -> Option<usize> {
        self.operands.is_power_of_two().then(|| self.operands.trailing_zeros() as usize)
    }
}

/// Rows of as many bytes, together, are asked for before they are folded. The rows that follow those of a task are
/// another's, and asking for them is worse than nothing where they lie in a cache of its own.
pub const FAR: usize = 4 << 20;

/// How far ahead [`ask_ahead`] asks, in bytes.
const AHEAD: usize = 16384;

/// Asks for what will be read some time after these bytes; for few lines at a time, since asking for
/// more than are on their way already holds up all that follows.
#[inline(always)]
pub fn ask_ahead(at: *const u8, bytes: usize) {
    for line in (0..bytes).step_by(LINE) {
        prefetch(at.wrapping_add(AHEAD + line));
    }
}

/// [`ask_ahead`] for some elements of operands, a bit for each.
#[inline(always)]
pub fn ask_for(operands: usize, ins: &[*const u8], sizes: &[usize], elements: Range<usize>) {
    let mut left = operands;
    while left != 0 {
        let number = left.trailing_zeros() as usize;
        left &= left - 1;
        let at = ins[number].wrapping_add(elements.start * sizes[number]);
        ask_ahead(at, elements.len() * sizes[number]);
    }
}

/// Asks for the lines of a square, whose columns lie apart, a few at a time: nobody else would guess where they are,
/// and many at once would hold up what is written.
#[derive(Clone, Copy)]
pub struct Ask {
    /// The column, and how far it is to the next.
    column: *const u8,
    apart: isize,
    /// How far it is from line to line of a column, and how many there are.
    line: isize,
    lines: usize,
    /// How many of them were asked for.
    asked: usize,
    /// How many lines are asked for at a time.
    each: usize,
}

impl Ask {
    pub const NOTHING: Self =
        Self { column: ptr::null(), apart: 0, line: 0, lines: 0, asked: 0, each: 0 };

    /// For `columns` columns of `lines` lines, in so many times; strides are in bytes.
    #[inline(always)]
    pub fn new(
        column: *const u8,
        (columns, apart): (usize, isize),
        (lines, line): (usize, isize),
        times: usize,
    ) -> Self {
        let each = (columns * lines).div_ceil(times.max(1));
        Self { column, apart, line, lines, asked: 0, each }
    }

    /// What is left after so many times.
    #[inline(always)]
    pub fn after(self, times: usize) -> Self {
        let asked = self.asked + times * self.each;
        let columns = asked.checked_div(self.lines).unwrap_or(0);
        let column = self.column.wrapping_offset(columns.cast_signed() * self.apart);
        Self { column, asked: asked - columns * self.lines, ..self }
    }

    /// Asks for some.
    #[inline(always)]
    pub fn some(&mut self) {
        for _ in 0..self.each {
            prefetch(self.column.wrapping_offset(self.asked.cast_signed() * self.line));
            self.asked += 1;
            if self.asked == self.lines {
                self.asked = 0;
                self.column = self.column.wrapping_offset(self.apart);
            }
        }
    }
}
