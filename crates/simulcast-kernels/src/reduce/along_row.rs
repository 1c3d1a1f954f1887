//! Each row becomes one value.
//!
//! ```text
//! short   up to 7 elements     one after the other
//! middle  less than 512 bytes  eight lanes side by side; the lanes of 32 rows are transposed, so that one
//!                              vector joins them for several rows
//! long    lanes of 128 bytes   joined in halves; rows of more than 2048 elements are cut into leaves of
//!                              2048, which are joined pairwise
//! ```

use std::hint::black_box;

use super::Reduce;
use super::pairwise::{Pairwise, halves};
use crate::compiled_for_levels;
use crate::cpu::level::{Kind, Level};
use crate::cpu::prefetch::prefetch_ahead;
use crate::pack::pack;
use crate::tuning::{
    REDUCE_LANE_BYTES, REDUCE_LEAF_ELEMENTS, REDUCE_ROWS_AT_ONCE, REDUCE_SHORT_ELEMENTS,
};

/// The rows of an operand: where the first begins, the bytes from one row to the next, and the step within a row in
/// elements: 1, or 0 where one element is the whole row.
#[derive(Clone, Copy, Debug)]
pub struct Rows {
    pub first: *const u8,
    pub stride: isize,
    pub step: usize,
}

/// `out[r]` becomes the join of what the operation makes of row `r` of each operand: `rows` rows of `len` elements.
/// Where the operation has one operand, the second is not read, and the step of the first is 1. Elements are prefetched
/// where they are `far`. The result does not overlap the operands. Of no elements it is the neutral value.
pub type AlongRow = unsafe fn(out: *mut u8, ins: [Rows; 2], rows: usize, len: usize, far: bool);

/// The lanes of a row that is not long.
const LANES: usize = REDUCE_SHORT_ELEMENTS;

/// The elements from which on a row is long.
pub(super) const fn long_from<T>() -> usize {
    4 * REDUCE_LANE_BYTES / if size_of::<T>() == 0 { 1 } else { size_of::<T>() }
}

pub(super) fn along_row<R: Reduce>(level: Level) -> AlongRow {
    match level.kind() {
        Kind::Baseline => every_row::<R, false>,
        #[cfg(target_arch = "x86_64")]
        Kind::Avx2 | Kind::Avx512 => every_row_avx2::<R>,
    }
}

compiled_for_levels! {
    /// [`every_row`], compiled for a level.
    ///
    /// # Safety
    ///
    /// As [`AlongRow`] says, and the machine has the features.
    unsafe fn every_row_avx2<R: Reduce>(
        out: *mut u8,
        ins: [Rows; 2],
        rows: usize,
        len: usize,
        far: bool,
    ) {
        // SAFETY: by the conditions of this function, which is compiled for AVX2.
        unsafe { every_row::<R, true>(out, ins, rows, len, far) }
    }
}

/// A row of each operand, and the steps within.
struct Row<R: Reduce> {
    a: *const R::A,
    b: *const R::B,
    steps: [usize; 2],
}

impl<R: Reduce> Row<R> {
    #[inline(always)]
    fn new(ins: [Rows; 2], row: usize) -> Self {
        let first = |n: usize| ins[n].first.wrapping_offset(row.cast_signed() * ins[n].stride);
        // One operand alone never has step 0, which is a constant for the compiler.
        let steps = if R::ARITY == 1 { [1, 0] } else { [ins[0].step, ins[1].step] };
        Self { a: first(0).cast(), b: first(R::ARITY - 1).cast(), steps }
    }

    /// The rest of the row, from an element on.
    #[inline(always)]
    fn from(&self, at: usize) -> Self {
        let [a, b] = self.steps;
        Self { a: self.a.wrapping_add(at * a), b: self.b.wrapping_add(at * b), steps: self.steps }
    }

    /// What the operation makes of an element.
    ///
    /// # Safety
    ///
    /// The row has such an element.
    #[inline(always)]
    unsafe fn term(&self, at: usize) -> R::Value {
        let place = self.from(at);
        // SAFETY: by the condition of this function.
        unsafe { R::term(place.a.read(), place.b.read()) }
    }
}

/// [`AlongRow`].
///
/// # Safety
///
/// As [`AlongRow`] says; with `AVX2`, the caller is compiled for it.
#[inline(always)]
unsafe fn every_row<R: Reduce, const AVX2: bool>(
    out: *mut u8,
    ins: [Rows; 2],
    rows: usize,
    len: usize,
    far: bool,
) {
    let out = out.cast::<R::Value>();
    if len >= LANES && len < long_from::<R::Value>() {
        // SAFETY: by the conditions of this function, and the row has an element.
        return unsafe { middle::<R, AVX2>(out, ins, rows, len) };
    }
    for at in 0..rows {
        let row = Row::<R>::new(ins, at);
        // SAFETY: `at` is one of the rows, and `out` has a value for each.
        unsafe {
            let value = if len < LANES {
                (0..len).fold(R::NEUTRAL, |all, at| R::join(all, row.term(at)))
            } else {
                match size_of::<R::Value>() {
                    // Narrow values take no more lanes: joining those at the end of each row is what takes the time.
                    ..=4 => long::<R, AVX2, { REDUCE_LANE_BYTES / 4 }>(&row, len, far),
                    5..=8 => long::<R, AVX2, { REDUCE_LANE_BYTES / 8 }>(&row, len, far),
                    _ => long::<R, AVX2, { REDUCE_LANE_BYTES / 16 }>(&row, len, far),
                }
            };
            out.add(at).write(value);
        }
    }
}

/// Rows of eight lanes each, which are transposed: the first lane of all rows, then the second.
///
/// # Safety
///
/// As [`every_row`]; `len` is not 0.
#[inline(always)]
unsafe fn middle<R: Reduce, const AVX2: bool>(
    out: *mut R::Value,
    ins: [Rows; 2],
    rows: usize,
    len: usize,
) {
    let mut lanes = [[R::NEUTRAL; LANES]; REDUCE_ROWS_AT_ONCE];
    let mut transposed = [[R::NEUTRAL; REDUCE_ROWS_AT_ONCE]; LANES];
    let mut done = 0;
    while done < rows {
        let count = REDUCE_ROWS_AT_ONCE.min(rows - done);
        for (at, lanes) in lanes.iter_mut().enumerate().take(count) {
            // SAFETY: `done + at` is one of the rows.
            unsafe { side_by_side::<R, AVX2, LANES>(lanes, &Row::new(ins, done + at), len, false) };
        }
        if R::PLAIN {
            let loops = [(LANES, 1), (REDUCE_ROWS_AT_ONCE, LANES.cast_signed())];
            let (to, from) = (transposed.as_mut_ptr().cast(), lanes.as_ptr().cast());
            // SAFETY: both have `REDUCE_ROWS_AT_ONCE * LANES` values, which are plain.
            unsafe { pack::<AVX2>(size_of::<R::Value>(), to, from, &loops) };
        } else {
            for (lane, transposed) in transposed.iter_mut().enumerate() {
                transposed.iter_mut().zip(&lanes).for_each(|(to, from)| *to = from[lane]);
            }
        }
        let mut half = LANES / 2;
        while half > 0 {
            let (low, high) = transposed.split_at_mut(half);
            for (low, high) in low.iter_mut().zip(high) {
                for (low, &high) in low.iter_mut().zip(&*high) {
                    *low = R::join(*low, high);
                }
            }
            half /= 2;
        }
        // SAFETY: `out` has room for `count` more values.
        unsafe {
            if count == REDUCE_ROWS_AT_ONCE {
                out.add(done).cast::<[R::Value; REDUCE_ROWS_AT_ONCE]>().write(transposed[0]);
            } else {
                out.add(done).copy_from_nonoverlapping(transposed[0].as_ptr(), count);
            }
        }
        done += count;
    }
}

/// Leaf after leaf, joined pairwise.
///
/// # Safety
///
/// The row has `len` elements, at least one; `AVX2` as for [`every_row`].
#[inline(always)]
unsafe fn long<R: Reduce, const AVX2: bool, const LANES: usize>(
    row: &Row<R>,
    len: usize,
    far: bool,
) -> R::Value {
    if len <= REDUCE_LEAF_ELEMENTS {
        // SAFETY: by the conditions of this function.
        return unsafe { leaf::<R, AVX2, LANES>(row, len, far) };
    }
    let (mut order, mut levels) = (Pairwise::default(), [R::NEUTRAL; Pairwise::LEVELS]);
    for start in (0..len).step_by(REDUCE_LEAF_ELEMENTS) {
        let (part, count) = (row.from(start), REDUCE_LEAF_ELEMENTS.min(len - start));
        // SAFETY: `start + count` is at most `len`.
        let mut value = unsafe { leaf::<R, AVX2, LANES>(&part, count, far) };
        let carries = order.push();
        for &early in &levels[..carries] {
            value = R::join(early, value);
        }
        levels[carries] = value;
    }
    let left = order.left().map(|level| levels[level]);
    left.reduce(|late, early| R::join(early, late)).unwrap_or(R::NEUTRAL)
}

/// The value of a leaf.
///
/// # Safety
///
/// As [`long`].
#[inline(always)]
unsafe fn leaf<R: Reduce, const AVX2: bool, const LANES: usize>(
    row: &Row<R>,
    len: usize,
    far: bool,
) -> R::Value {
    let mut lanes = [R::NEUTRAL; LANES];
    // SAFETY: by the conditions of this function.
    unsafe { side_by_side::<R, AVX2, LANES>(&mut lanes, row, len, far) };
    // Where the compiler sees the halves it makes the vectors of the loop before as narrow as the last of them.
    halves(black_box(lanes), R::join)
}

/// `LANES` values side by side, each of every `LANES`th element.
///
/// # Safety
///
/// The row has `len` elements, at least one; `AVX2` as for [`every_row`].
#[inline(always)]
unsafe fn side_by_side<R: Reduce, const AVX2: bool, const LANES: usize>(
    to: &mut [R::Value; LANES],
    row: &Row<R>,
    len: usize,
    far: bool,
) {
    let (splat_a, splat_b);
    let Row { mut a, mut b, steps } = *row;
    // SAFETY: there is a first element. A repeated one is repeated in memory too, so that one loop serves all.
    unsafe {
        if R::ARITY == 2 && steps[0] == 0 {
            splat_a = [a.read(); LANES];
            a = splat_a.as_ptr();
        }
        if R::ARITY == 2 && steps[1] == 0 {
            splat_b = [b.read(); LANES];
            b = splat_b.as_ptr();
        }
    }
    let mut lanes = [R::NEUTRAL; LANES];
    for _ in 0..len / LANES {
        if far {
            prefetch_ahead(a.cast(), LANES * size_of::<R::A>());
            if R::ARITY == 2 {
                prefetch_ahead(b.cast(), LANES * size_of::<R::B>());
            }
        }
        // SAFETY: `LANES` elements are left, or repeated.
        let terms = unsafe { R::terms::<AVX2, LANES>(a, b) };
        for (lane, term) in lanes.iter_mut().zip(terms) {
            *lane = R::join(*lane, term);
        }
        a = a.wrapping_add(LANES * steps[0]);
        b = b.wrapping_add(LANES * steps[1]);
    }
    *to = lanes;
    for (at, lane) in to.iter_mut().enumerate().take(len % LANES) {
        // SAFETY: `len % LANES` elements are left, or repeated.
        let term = unsafe { R::term(a.add(at).read(), b.add(at).read()) };
        *lane = R::join(*lane, term);
    }
}
