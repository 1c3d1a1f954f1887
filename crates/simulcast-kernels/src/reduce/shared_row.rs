//! Folds abreast: an operation on a row that many rows share, folded for all of them at once.
//!
//! ```text
//! one      the row that is shared: each of its elements is repeated
//! many     the other rows, turned: element k of all of them, then element k + 1
//! out      one result a column; a vector of them is kept where a row alone would keep one value
//! ```
//!
//! What the operation gives is never written out, and nothing is joined across a vector. Each result
//! is joined in the order of a row alone, so that it has the same bits.

use super::{Joint, SHORT, WIDE, long_from};
use crate::compiled_for_levels;
use crate::cpu::level::{Kind, Level};
use crate::ops::Body;

/// `out[c]` becomes the fold over `k` of what the operation makes of `one[k * step]` and
/// `many[k * pitch + c]`: `columns` of them, each of `len` elements, at least one and at most
/// [`super::LEAF`]. Rows of `many` are readable up to a multiple of [`WIDE`] bytes, and no result
/// overlaps an operand.
pub type Abreast = unsafe fn(
    out: *mut u8,
    one: (*const u8, isize),
    many: (*const u8, usize),
    columns: usize,
    len: usize,
);

pub(super) fn columns<B: Body<C = ()>, J: Joint<Value = B::Out>>(level: Level) -> Abreast {
    match level.kind() {
        Kind::Baseline => all::<B, J, false>,
        #[cfg(target_arch = "x86_64")]
        Kind::Avx2 | Kind::Avx512 => all_avx2::<B, J>,
    }
}

compiled_for_levels! {
    /// [`all`], compiled for a level.
    ///
    /// # Safety
    ///
    /// As there, and the machine has the features.
    unsafe fn all_avx2<B: Body<C = ()>, J: Joint<Value = B::Out>>(
        out: *mut u8,
        one: (*const u8, isize),
        many: (*const u8, usize),
        columns: usize,
        len: usize,
    ) {
        // SAFETY: the caller keeps the conditions.
        unsafe { all::<B, J, true>(out, one, many, columns, len) }
    }
}

/// The fold of every column.
///
/// # Safety
///
/// As [`Abreast`] says; `FMA` says whether the level has it.
#[inline(always)]
unsafe fn all<B: Body<C = ()>, J: Joint<Value = B::Out>, const FMA: bool>(
    out: *mut u8,
    (one, step): (*const u8, isize),
    (many, pitch): (*const u8, usize),
    columns: usize,
    len: usize,
) {
    let rows = Rows::<B> { one: one.cast(), step, many: many.cast(), pitch, len };
    // SAFETY: the caller keeps the conditions.
    unsafe {
        match size_of::<B::Out>() {
            4 => every_column::<B, J, FMA, { WIDE / 4 }>(out.cast(), &rows, columns),
            _ => every_column::<B, J, FMA, { WIDE / 8 }>(out.cast(), &rows, columns),
        }
    }
}

/// What is folded, from one column on.
struct Rows<B: Body> {
    one: *const B::A,
    step: isize,
    many: *const B::B,
    pitch: usize,
    len: usize,
}

/// # Safety
///
/// As [`Abreast`] says; `W` elements are [`WIDE`] bytes at most.
#[inline(always)]
unsafe fn every_column<
    B: Body<C = ()>,
    J: Joint<Value = B::Out>,
    const FMA: bool,
    const W: usize,
>(
    out: *mut B::Out,
    rows: &Rows<B>,
    columns: usize,
) {
    let mut done = 0;
    while done < columns {
        let part = Rows { many: rows.many.wrapping_add(done), ..*rows };
        // SAFETY: whole vectors of the rows are readable, and `columns` results are writable.
        unsafe {
            let values = some_columns::<B, J, FMA, W>(&part);
            let count = W.min(columns - done);
            if count == W {
                out.add(done).cast::<[B::Out; W]>().write(values);
            } else {
                out.add(done).copy_from_nonoverlapping(values.as_ptr(), count);
            }
        }
        done += W;
    }
}

/// The folds of `W` columns, in the order of [`crate::reduce::along_row`].
///
/// # Safety
///
/// There are so many.
#[inline(always)]
unsafe fn some_columns<
    B: Body<C = ()>,
    J: Joint<Value = B::Out>,
    const FMA: bool,
    const W: usize,
>(
    rows: &Rows<B>,
) -> [B::Out; W] {
    let both = joined::<J, W>;
    // SAFETY: there are `W` columns.
    let lane = |first, lanes| unsafe { lane::<B, J, FMA, W>(rows, first, lanes) };
    if rows.len < SHORT {
        return lane(0, 1);
    }
    let middling = rows.len < long_from::<B::Out>();
    if FMA && middling {
        // Eight lanes are joined in pairs, the first with the fifth: as they are made, so that few
        // of them are kept.
        let even = both(both(lane(0, 8), lane(4, 8)), both(lane(2, 8), lane(6, 8)));
        let odd = both(both(lane(1, 8), lane(5, 8)), both(lane(3, 8), lane(7, 8)));
        return both(even, odd);
    }
    // The same with as many lanes as there are, and for machines for which more code is too much.
    let lanes = if middling { SHORT } else { WIDE / size_of::<B::Out>() };
    // Place k holds what `1 << k` lanes gave, until as many follow; the last is the result.
    let mut places = [[J::NEUTRAL; W]; 6];
    let last = lanes.trailing_zeros() as usize;
    for count in 0..lanes {
        let first = count.reverse_bits() >> (usize::BITS as usize - last);
        let mut value = lane(first, lanes);
        let full = count.trailing_ones() as usize;
        for early in &places[..full] {
            value = both(*early, value);
        }
        places[full] = value;
    }
    places[last]
}

/// Every `lanes`th element of `W` columns, from `first` on, joined one after the other.
///
/// # Safety
///
/// There are so many columns.
#[inline(always)]
unsafe fn lane<B: Body<C = ()>, J: Joint<Value = B::Out>, const FMA: bool, const W: usize>(
    rows: &Rows<B>,
    first: usize,
    lanes: usize,
) -> [B::Out; W] {
    let mut values = [J::NEUTRAL; W];
    let mut at = first;
    while at < rows.len {
        // SAFETY: element `at` of the row, and of each of `W` columns.
        let (a, many) = unsafe {
            let many = rows.many.add(at * rows.pitch).cast::<[B::B; W]>();
            (rows.one.offset(at.cast_signed() * rows.step).read(), &*many)
        };
        for (value, &b) in values.iter_mut().zip(many) {
            *value = J::join(*value, B::at::<FMA>(a, b, ()));
        }
        at += lanes;
    }
    values
}

#[inline(always)]
fn joined<J: Joint, const W: usize>(a: [J::Value; W], b: [J::Value; W]) -> [J::Value; W] {
    std::array::from_fn(|at| J::join(a[at], b[at]))
}
