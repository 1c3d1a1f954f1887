//! Rows become one row of values.
//!
//! Eight rows are joined one after the other, in registers, and then with the values of all rows before them; what is
//! left over follows row by row. So the row of values is read and written once for eight rows.

use super::Reduce;
use crate::compiled_for_levels;
use crate::cpu::level::{Kind, Level};
use crate::cpu::prefetch::prefetch;
use crate::tuning::{
    CACHE_LINE_BYTES, REDUCE_LANE_BYTES, REDUCE_PREFETCH_BYTES, REDUCE_PREFETCH_ROWS, ROWS_PER_PASS,
};

/// `to[c]` becomes the join of element `c` of every row: `count` values of rows that begin at these places, at least
/// one. Where it is `more`, it held the join of rows before them, and goes on from there; where rows are `far`, later
/// ones are prefetched. No row overlaps the result.
pub type AcrossRows =
    unsafe fn(to: *mut u8, rows: &[*const u8], count: usize, more: bool, far: bool);

pub(super) fn across_rows<R: Reduce<B = ()>>(level: Level) -> AcrossRows {
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
    /// As [`AcrossRows`] says, and the machine has the features.
    unsafe fn every_row_avx2<R: Reduce<B = ()>>(
        to: *mut u8,
        rows: &[*const u8],
        count: usize,
        more: bool,
        far: bool,
    ) {
        // SAFETY: by the conditions of this function, which is compiled for AVX2.
        unsafe { every_row::<R, true>(to, rows, count, more, far) }
    }
}

/// [`AcrossRows`].
///
/// # Safety
///
/// As [`AcrossRows`] says; with `AVX2`, the caller is compiled for it.
#[inline(always)]
unsafe fn every_row<R: Reduce<B = ()>, const AVX2: bool>(
    to: *mut u8,
    rows: &[*const u8],
    count: usize,
    mut more: bool,
    far: bool,
) {
    let to = to.cast::<R::Value>();
    let bytes = (count * size_of::<R::A>()).max(1);
    let ahead = (REDUCE_PREFETCH_BYTES / bytes).clamp(ROWS_PER_PASS, REDUCE_PREFETCH_ROWS);
    let mut done = 0;
    while let Some(eight) = rows[done..].first_chunk::<ROWS_PER_PASS>() {
        let next = rows.get(done + ahead..).filter(|_| far);
        // SAFETY: by the conditions of this function.
        unsafe { some_rows::<R, AVX2, ROWS_PER_PASS>(to, eight, next.unwrap_or(&[]), count, more) };
        (done, more) = (done + ROWS_PER_PASS, true);
    }
    for row in &rows[done..] {
        // SAFETY: by the conditions of this function.
        unsafe { some_rows::<R, AVX2, 1>(to, &[*row], &[], count, more) };
        more = true;
    }
}

/// The join of `N` rows; the first `N` of the `next` rows are prefetched.
///
/// # Safety
///
/// As [`every_row`].
#[inline(always)]
unsafe fn some_rows<R: Reduce<B = ()>, const AVX2: bool, const N: usize>(
    to: *mut R::Value,
    rows: &[*const u8; N],
    next: &[*const u8],
    count: usize,
    more: bool,
) {
    // SAFETY: by the conditions of this function.
    unsafe {
        match size_of::<R::Value>() {
            ..=1 => blocks::<R, AVX2, N, REDUCE_LANE_BYTES>(to, rows, next, count, more),
            2 => blocks::<R, AVX2, N, { REDUCE_LANE_BYTES / 2 }>(to, rows, next, count, more),
            3..=4 => blocks::<R, AVX2, N, { REDUCE_LANE_BYTES / 4 }>(to, rows, next, count, more),
            5..=8 => blocks::<R, AVX2, N, { REDUCE_LANE_BYTES / 8 }>(to, rows, next, count, more),
            _ => blocks::<R, AVX2, N, { REDUCE_LANE_BYTES / 16 }>(to, rows, next, count, more),
        }
    }
}

/// [`some_rows`], `W` columns at a time, then eight at a time, then one by one.
///
/// # Safety
///
/// As [`every_row`].
#[inline(always)]
unsafe fn blocks<R: Reduce<B = ()>, const AVX2: bool, const N: usize, const W: usize>(
    to: *mut R::Value,
    rows: &[*const u8; N],
    next: &[*const u8],
    count: usize,
    more: bool,
) {
    let mut at = 0;
    // SAFETY: by the conditions of this function; `at` and the columns from there on stay below `count`.
    unsafe {
        while at + W <= count {
            columns::<R, AVX2, N, W>(to, rows, next, at, more);
            at += W;
        }
        while W > ROWS_PER_PASS && at + ROWS_PER_PASS <= count {
            columns::<R, AVX2, N, ROWS_PER_PASS>(to, rows, next, at, more);
            at += ROWS_PER_PASS;
        }
        for at in at..count {
            let term = |row: &*const u8| R::term(row.cast::<R::A>().add(at).read(), ());
            let mut own = term(&rows[0]);
            for row in &rows[1..] {
                own = R::join(own, term(row));
            }
            if more {
                own = R::join(to.add(at).read(), own);
            }
            to.add(at).write(own);
        }
    }
}

/// [`some_rows`] for `W` columns from `at` on, in registers.
///
/// # Safety
///
/// As [`every_row`], and there are `W` columns from `at` on.
#[inline(always)]
unsafe fn columns<R: Reduce<B = ()>, const AVX2: bool, const N: usize, const W: usize>(
    to: *mut R::Value,
    rows: &[*const u8; N],
    next: &[*const u8],
    at: usize,
    more: bool,
) {
    let first = at * size_of::<R::A>();
    if let Some(next) = next.first_chunk::<N>().filter(|_| first.is_multiple_of(CACHE_LINE_BYTES)) {
        for row in next {
            for line in (0..W * size_of::<R::A>()).step_by(CACHE_LINE_BYTES) {
                prefetch(row.wrapping_add(first + line));
            }
        }
    }
    // SAFETY: there are `W` columns from `at` on, in every row and in the result.
    unsafe {
        let to = to.add(at).cast::<[R::Value; W]>();
        // No closure: one is not compiled for the level, and does not inline the level's instructions.
        let mut own = R::terms::<AVX2, W>(rows[0].cast::<R::A>().add(at), &());
        for row in &rows[1..] {
            let terms = R::terms::<AVX2, W>(row.cast::<R::A>().add(at), &());
            for (own, term) in own.iter_mut().zip(terms) {
                *own = R::join(*own, term);
            }
        }
        if more {
            for (own, before) in own.iter_mut().zip(to.read()) {
                *own = R::join(before, *own);
            }
        }
        to.write(own);
    }
}
