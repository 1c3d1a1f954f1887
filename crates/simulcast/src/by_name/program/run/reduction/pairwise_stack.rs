//! A pile: rows that are folded in pairs as they come, whose number need not be known.

use simulcast_kernels::ops::Kernel;

/// Rows that were folded already, to be folded in pairs: the number of each is a power of two.
pub(super) struct Pile {
    rows: Vec<(u32, Vec<[u64; 2]>)>,
    spare: Vec<Vec<[u64; 2]>>,
    words: usize,
}

impl Pile {
    pub(super) fn new(bytes: usize) -> Self {
        Self { rows: Vec::new(), spare: Vec::new(), words: bytes.div_ceil(16) }
    }

    /// Adds a row of `count` elements of `size` bytes.
    ///
    /// # Safety
    ///
    /// It is there, of the kernel's type, and no longer than a row of the pile.
    pub(super) unsafe fn push(&mut self, row: *const u8, count: usize, size: usize, pair: Kernel) {
        let mut own = self.empty();
        // SAFETY: the row fits by the condition of this function.
        unsafe { std::ptr::copy_nonoverlapping(row, own.as_mut_ptr().cast(), count * size) };
        let mut level = 0;
        while let Some((_, older)) = self.rows.pop_if(|(top, _)| *top == level) {
            // SAFETY: both hold `count` elements.
            own = unsafe { self.paired(older, own, count, pair) };
            level += 1;
        }
        self.rows.push((level, own));
    }

    /// Folds what is left into `out`, and is empty again.
    ///
    /// # Safety
    ///
    /// `out` has room for `count` elements of `size` bytes; rows were pushed, of that many.
    pub(super) unsafe fn finish(&mut self, out: *mut u8, count: usize, size: usize, pair: Kernel) {
        let Some((_, mut newer)) = self.rows.pop() else { return };
        while let Some((_, older)) = self.rows.pop() {
            // SAFETY: both hold `count` elements.
            newer = unsafe { self.paired(older, newer, count, pair) };
        }
        // SAFETY: there is room by the condition of this function.
        unsafe { std::ptr::copy_nonoverlapping(newer.as_ptr().cast(), out, count * size) };
        self.spare.push(newer);
    }

    fn empty(&mut self) -> Vec<[u64; 2]> {
        self.spare.pop().unwrap_or_else(|| vec![[0; 2]; self.words])
    }

    /// Two rows as one.
    ///
    /// # Safety
    ///
    /// Both hold `count` elements of the kernel's type.
    unsafe fn paired(
        &mut self,
        older: Vec<[u64; 2]>,
        newer: Vec<[u64; 2]>,
        count: usize,
        pair: Kernel,
    ) -> Vec<[u64; 2]> {
        let mut both = self.empty();
        let ins = [older.as_ptr().cast(), newer.as_ptr().cast(), std::ptr::null()];
        // SAFETY: a row of the pile has room for `count` elements.
        unsafe { pair(both.as_mut_ptr().cast(), ins, 0, count) };
        self.spare.extend([older, newer]);
        both
    }
}
