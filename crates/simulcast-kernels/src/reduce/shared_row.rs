//! One row meets many: an operation of two rows, joined for all of them at once.
//!
//! ```text
//! one      the row that all share: each of its elements is repeated
//! many     the other rows, transposed: element k of all of them, then element k + 1
//! out      one value a column; one vector holds the same lane of several columns
//! ```
//!
//! What the operation gives is never stored, and nothing is joined across a vector. Each column is joined in the order
//! of [a row alone](super::along_row), so that it has the same bits.

use super::Reduce;
use super::along_row::long_from;
use super::pairwise::Pairwise;
use crate::compiled_for_levels;
use crate::cpu::level::{Kind, Level};
use crate::tuning::{REDUCE_LANE_BYTES, REDUCE_SHORT_ELEMENTS};

/// `out[c]` becomes the join over `k` of what the operation makes of the element that lies `k * stride` bytes from
/// `one`, and of `many[k * pitch + c]`: `columns` of them, each of `len` elements, at least one and at most
/// [`REDUCE_LEAF_ELEMENTS`](crate::tuning::REDUCE_LEAF_ELEMENTS). Rows of `many` are readable up to a multiple of
/// [`REDUCE_LANE_BYTES`], and no result overlaps an operand.
pub type SharedRow = unsafe fn(
    out: *mut u8,
    one: (*const u8, isize),
    many: (*const u8, usize),
    columns: usize,
    len: usize,
);

pub(super) fn shared_row<R: Reduce>(level: Level) -> SharedRow {
    match level.kind() {
        Kind::Baseline => all::<R, false>,
        #[cfg(target_arch = "x86_64")]
        Kind::Avx2 | Kind::Avx512 => all_avx2::<R>,
    }
}

compiled_for_levels! {
    /// [`all`], compiled for a level.
    ///
    /// # Safety
    ///
    /// As [`SharedRow`] says, and the machine has the features.
    unsafe fn all_avx2<R: Reduce>(
        out: *mut u8,
        one: (*const u8, isize),
        many: (*const u8, usize),
        columns: usize,
        len: usize,
    ) {
        // SAFETY: by the conditions of this function, which is compiled for AVX2.
        unsafe { all::<R, true>(out, one, many, columns, len) }
    }
}

/// [`SharedRow`].
///
/// # Safety
///
/// As [`SharedRow`] says; with `AVX2`, the caller is compiled for it.
#[inline(always)]
unsafe fn all<R: Reduce, const AVX2: bool>(
    out: *mut u8,
    (one, stride): (*const u8, isize),
    (many, pitch): (*const u8, usize),
    columns: usize,
    len: usize,
) {
    let rows = Rows::<R> { one, stride, many: many.cast(), pitch, len };
    // SAFETY: by the conditions of this function.
    unsafe {
        match size_of::<R::Value>() {
            4 => every_column::<R, AVX2, { REDUCE_LANE_BYTES / 4 }>(out.cast(), &rows, columns),
            _ => every_column::<R, AVX2, { REDUCE_LANE_BYTES / 8 }>(out.cast(), &rows, columns),
        }
    }
}

/// The shared row, and the others from one column on.
struct Rows<R: Reduce> {
    one: *const u8,
    stride: isize,
    many: *const R::B,
    pitch: usize,
    len: usize,
}

/// # Safety
///
/// As [`all`]; `W` elements are [`REDUCE_LANE_BYTES`] bytes at most.
#[inline(always)]
unsafe fn every_column<R: Reduce, const AVX2: bool, const W: usize>(
    out: *mut R::Value,
    rows: &Rows<R>,
    columns: usize,
) {
    for done in (0..columns).step_by(W) {
        let part = Rows { many: rows.many.wrapping_add(done), ..*rows };
        // SAFETY: rows are readable up to a multiple of `W`, and there are `columns` results.
        unsafe {
            let values = some_columns::<R, AVX2, W>(&part);
            let count = W.min(columns - done);
            if count == W {
                out.add(done).cast::<[R::Value; W]>().write(values);
            } else {
                out.add(done).copy_from_nonoverlapping(values.as_ptr(), count);
            }
        }
    }
}

/// The values of `W` columns, in the order of [`super::along_row`].
///
/// # Safety
///
/// As [`all`], and there are `W` columns.
#[inline(always)]
unsafe fn some_columns<R: Reduce, const AVX2: bool, const W: usize>(
    rows: &Rows<R>,
) -> [R::Value; W] {
    // SAFETY: there are `W` columns.
    let lane = |first, lanes| unsafe { lane::<R, W>(rows, first, lanes) };
    if rows.len < REDUCE_SHORT_ELEMENTS {
        return lane(0, 1);
    }
    let middle = rows.len < long_from::<R::Value>();
    if AVX2 && middle {
        // The halves of eight lanes, joined as soon as they are there, so that few lanes are in registers.
        let both = joined::<R, W>;
        let even = both(both(lane(0, 8), lane(4, 8)), both(lane(2, 8), lane(6, 8)));
        let odd = both(both(lane(1, 8), lane(5, 8)), both(lane(3, 8), lane(7, 8)));
        return both(even, odd);
    }
    // Halves of lanes are pairs of lanes whose numbers are read with their bits reversed.
    let lanes =
        if middle { REDUCE_SHORT_ELEMENTS } else { REDUCE_LANE_BYTES / size_of::<R::Value>() };
    let bits = lanes.trailing_zeros();
    let (mut order, mut levels) = (Pairwise::default(), [[R::NEUTRAL; W]; 6]);
    for count in 0..lanes {
        let first = count.reverse_bits() >> (usize::BITS - bits);
        let mut value = lane(first, lanes);
        let carries = order.push();
        for early in &levels[..carries] {
            value = joined::<R, W>(*early, value);
        }
        levels[carries] = value;
    }
    levels[bits as usize]
}

/// Every `lanes`th element of `W` columns, from `first` on, joined one after the other.
///
/// # Safety
///
/// As [`all`], and there are `W` columns.
#[inline(always)]
unsafe fn lane<R: Reduce, const W: usize>(
    rows: &Rows<R>,
    first: usize,
    lanes: usize,
) -> [R::Value; W] {
    let mut values = [R::NEUTRAL; W];
    let mut at = first;
    while at < rows.len {
        // SAFETY: element `at` of the row, and of each of `W` columns.
        let (a, many) = unsafe {
            let many = rows.many.add(at * rows.pitch).cast::<[R::B; W]>();
            (rows.one.offset(at.cast_signed() * rows.stride).cast::<R::A>().read(), &*many)
        };
        for (value, &b) in values.iter_mut().zip(many) {
            *value = R::join(*value, R::term(a, b));
        }
        at += lanes;
    }
    values
}

#[inline(always)]
fn joined<R: Reduce, const W: usize>(a: [R::Value; W], b: [R::Value; W]) -> [R::Value; W] {
    std::array::from_fn(|at| R::join(a[at], b[at]))
}
