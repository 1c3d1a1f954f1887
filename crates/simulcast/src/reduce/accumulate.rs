//! Rows of values as they accumulate: joined one after the other within a run, pairwise from run to run.
//!
//! Invariant: the loops are those of the rows' type, and a row has no more values than was said when its owner was made.

use simulcast_kernels::cpu::aligned_buf::{CacheLine, cache_lines};
use simulcast_kernels::reduce::Reducer;
use simulcast_kernels::reduce::pairwise::Pairwise;
use simulcast_kernels::tuning::ROWS_PER_PASS;

/// Joins the rows of a run.
pub(super) struct Accumulator<'r> {
    reducer: &'r Reducer,
    /// How many narrow rows are taken as one, at most.
    side_by_side: usize,
    /// Whether rows come from memory, so that later ones are prefetched.
    far: bool,
    /// Where rows begin that are yet to be joined.
    places: Vec<*const u8>,
    /// The values of rows that were side by side.
    sides: Vec<CacheLine>,
    /// The values of all rows before, where there were any.
    values: Vec<CacheLine>,
    more: bool,
}

impl<'r> Accumulator<'r> {
    pub(super) fn new(reducer: &'r Reducer, side_by_side: usize, widest: usize, far: bool) -> Self {
        let bytes = widest * reducer.value_bytes;
        let sides = if side_by_side > 1 { cache_lines(side_by_side * bytes) } else { Vec::new() };
        let values = cache_lines(bytes);
        Self { reducer, side_by_side, far, places: Vec::new(), sides, values, more: false }
    }

    /// The number of rows, out of `rows`, that are joined side by side as one row: a power of two.
    pub(super) fn side_by_side(&self, rows: usize) -> usize {
        (rows / ROWS_PER_PASS).checked_ilog2().map_or(1, |log| self.side_by_side.min(1 << log))
    }

    /// Where the values are.
    pub(super) fn to(&mut self) -> *mut u8 {
        self.values.as_mut_ptr().cast()
    }

    /// Joins rows that begin at some places: now, or with the next ones where the order is the same, since rows are
    /// joined in eights.
    ///
    /// # Safety
    ///
    /// Each has `count` elements, as all rows of the run; they stay there until the run is taken, or settled.
    pub(super) unsafe fn add(&mut self, places: impl Iterator<Item = *const u8>, count: usize) {
        self.places.extend(places);
        if !self.places.len().is_multiple_of(ROWS_PER_PASS) {
            // SAFETY: by the conditions of this function.
            unsafe { self.settle(count) };
        }
    }

    /// Joins rows that follow one another.
    ///
    /// # Safety
    ///
    /// As [`Self::add`].
    pub(super) unsafe fn add_block(&mut self, first: *const u8, rows: usize, count: usize) {
        let (bytes, side) = (count * self.reducer.element_bytes, self.side_by_side(rows));
        let place = |row: usize| first.wrapping_add(row * bytes);
        // SAFETY: the rows are there, and `sides` has room for `side` rows of values.
        unsafe {
            if side == 1 {
                return self.add((0..rows).map(place), count);
            }
            let sides: *mut u8 = self.sides.as_mut_ptr().cast();
            self.places.extend((0..rows / side).map(|row| place(row * side)));
            (self.reducer.across)(sides, &self.places, side * count, false, self.far);
            self.places.clear();
            let over = rows % side;
            if over > 0 {
                (self.reducer.across)(sides, &[place(rows - over)], over * count, true, false);
            }
            // The rows that were side by side, in halves.
            let row = count * self.reducer.value_bytes;
            let mut half = side / 2;
            while half > 0 {
                (self.reducer.join)(sides, sides.add(half * row), half * count);
                half /= 2;
            }
            // A run has one block where rows are narrow: nothing is joined with what was there before.
            std::ptr::copy_nonoverlapping(sides, self.to(), row);
            self.more = true;
        }
    }

    /// Joins the rows that are yet to be joined.
    ///
    /// # Safety
    ///
    /// Its rows have `count` elements.
    pub(super) unsafe fn settle(&mut self, count: usize) {
        if !self.places.is_empty() {
            let to = self.to();
            // SAFETY: by the condition of this function, and there is room for a row.
            unsafe { (self.reducer.across)(to, &self.places, count, self.more, self.far) };
            self.places.clear();
            self.more = true;
        }
    }

    /// The values of a run, which had a row; the next row begins another run.
    ///
    /// # Safety
    ///
    /// As [`Self::settle`].
    pub(super) unsafe fn take(&mut self, count: usize) -> *const u8 {
        // SAFETY: by the condition of this function.
        unsafe { self.settle(count) };
        self.more = false;
        self.to()
    }
}

/// Rows that are joined pairwise as they come.
pub(super) struct PairwiseRows {
    order: Pairwise,
    levels: Vec<Vec<CacheLine>>,
    spare: Vec<CacheLine>,
    bytes: usize,
}

impl PairwiseRows {
    /// Rows of at most `bytes` bytes.
    pub(super) fn new(bytes: usize) -> Self {
        Self { order: Pairwise::default(), levels: Vec::new(), spare: Vec::new(), bytes }
    }

    /// Adds a row.
    ///
    /// # Safety
    ///
    /// It has `count` values, as all rows since the last finish.
    pub(super) unsafe fn push(&mut self, row: *const u8, count: usize, reducer: &Reducer) {
        let carries = self.order.push();
        if self.spare.capacity() == 0 {
            self.spare = cache_lines(self.bytes);
        }
        if self.levels.len() == carries {
            self.levels.push(cache_lines(self.bytes));
        }
        // SAFETY: every level, and the spare row, has room for `count` values.
        unsafe {
            // The row itself takes part in the first join; after that, what was joined is in the level before.
            let mut value = row;
            for level in &mut self.levels[..carries] {
                (reducer.join)(level.as_mut_ptr().cast(), value, count);
                value = level.as_ptr().cast();
            }
            let to = self.spare.as_mut_ptr().cast();
            std::ptr::copy_nonoverlapping(value, to, count * reducer.value_bytes);
        }
        std::mem::swap(&mut self.spare, &mut self.levels[carries]);
    }

    /// Joins what is left into `to`, and is empty again.
    ///
    /// # Safety
    ///
    /// `to` has room for `count` values; at least one row was pushed, and each had `count` values.
    pub(super) unsafe fn finish(&mut self, to: *mut u8, count: usize, reducer: &Reducer) {
        let mut later: Option<*const u8> = None;
        for level in self.order.left() {
            let own: *mut u8 = self.levels[level].as_mut_ptr().cast();
            if let Some(later) = later {
                // SAFETY: both have `count` values.
                unsafe { (reducer.join)(own, later, count) };
            }
            later = Some(own);
        }
        if let Some(values) = later {
            // SAFETY: there is room by the condition of this function.
            unsafe { std::ptr::copy_nonoverlapping(values, to, count * reducer.value_bytes) };
        }
        self.order = Pairwise::default();
    }
}
