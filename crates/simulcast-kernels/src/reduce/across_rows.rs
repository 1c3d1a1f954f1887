//! Folds down: rows of neighbours into one row.
//!
//! Eight rows are joined one after the other, in registers, and then with what all rows before them gave;
//! rows that are left over follow one by one. So what was folded is read and written once for eight rows.

use super::{Joint, WIDE};
use crate::compiled_for_levels;
use crate::cpu::EIGHT;
use crate::cpu::level::{Kind, Level};
use crate::cpu::nontemporal::{LINE, prefetch};

/// `to[c]` becomes the fold of element `c` of every row: `count` of them, of rows that begin at these places,
/// at least one. Where it is `more`, it held the fold of rows before them, and goes on from there; where rows
/// are `far`, those to come are asked for. No row overlaps the result.
pub type Down = unsafe fn(to: *mut u8, rows: &[*const u8], count: usize, more: bool, far: bool);

pub(super) fn down<J: Joint>(level: Level) -> Down {
    match level.kind() {
        Kind::Baseline => all::<J>,
        #[cfg(target_arch = "x86_64")]
        Kind::Avx2 | Kind::Avx512 => all_avx2::<J>,
    }
}

compiled_for_levels! {
    /// [`all`], compiled for a level.
    ///
    /// # Safety
    ///
    /// As there, and the machine has the features.
    unsafe fn all_avx2<J: Joint>(
        to: *mut u8,
        rows: &[*const u8],
        count: usize,
        more: bool,
        far: bool,
    ) {
        // SAFETY: the caller keeps the conditions.
        unsafe { all::<J>(to, rows, count, more, far) }
    }
}

/// The fold of all rows.
///
/// # Safety
///
/// As [`Down`] says.
#[inline(always)]
unsafe fn all<J: Joint>(to: *mut u8, rows: &[*const u8], count: usize, mut more: bool, far: bool) {
    let to = to.cast::<J::Value>();
    let mut left = rows;
    while let Some((eight, after)) = left.split_first_chunk::<EIGHT>() {
        let next = after.first_chunk::<EIGHT>().filter(|_| far);
        // SAFETY: the caller keeps the conditions.
        unsafe { some::<J, EIGHT>(to, eight, next, count, more) };
        (left, more) = (after, true);
    }
    for row in left {
        // SAFETY: as above.
        unsafe { some::<J, 1>(to, &[*row], None, count, more) };
        more = true;
    }
}

/// The fold of some rows.
///
/// # Safety
///
/// As [`Down`] says.
#[inline(always)]
unsafe fn some<J: Joint, const N: usize>(
    to: *mut J::Value,
    rows: &[*const u8; N],
    next: Option<&[*const u8; N]>,
    count: usize,
    more: bool,
) {
    // SAFETY: the caller keeps the conditions.
    unsafe {
        match size_of::<J::Value>() {
            1 => wide::<J, N, WIDE>(to, rows, next, count, more),
            2 => wide::<J, N, { WIDE / 2 }>(to, rows, next, count, more),
            4 => wide::<J, N, { WIDE / 4 }>(to, rows, next, count, more),
            8 => wide::<J, N, { WIDE / 8 }>(to, rows, next, count, more),
            _ => wide::<J, N, { WIDE / 16 }>(to, rows, next, count, more),
        }
    }
}

/// [`some`], `W` columns at a time, then what is left over: eight at a time, then one by one.
///
/// # Safety
///
/// As [`Down`] says.
#[inline(always)]
unsafe fn wide<J: Joint, const N: usize, const W: usize>(
    to: *mut J::Value,
    rows: &[*const u8; N],
    next: Option<&[*const u8; N]>,
    count: usize,
    more: bool,
) {
    let mut at = 0;
    // SAFETY: the caller keeps the conditions.
    unsafe {
        while at + W <= count {
            columns::<J, N, W>(to, rows, next, at, more);
            at += W;
        }
        while W > EIGHT && at + EIGHT <= count {
            columns::<J, N, EIGHT>(to, rows, next, at, more);
            at += EIGHT;
        }
        while at < count {
            columns::<J, N, 1>(to, rows, None, at, more);
            at += 1;
        }
    }
}

/// [`some`], for `W` columns, in registers.
///
/// # Safety
///
/// As [`Down`] says, and there are so many columns from `at` on.
#[inline(always)]
unsafe fn columns<J: Joint, const N: usize, const W: usize>(
    to: *mut J::Value,
    rows: &[*const u8; N],
    next: Option<&[*const u8; N]>,
    at: usize,
    more: bool,
) {
    let first = at * size_of::<J::Value>();
    if let Some(next) = next {
        for row in next {
            for line in (0..W * size_of::<J::Value>()).step_by(LINE) {
                prefetch(row.wrapping_add(first + line));
            }
        }
    }
    // SAFETY: there are so many columns, in every row and in what they become.
    unsafe {
        let to = to.add(at).cast::<[J::Value; W]>();
        let mut own = rows[0].cast::<J::Value>().add(at).cast::<[J::Value; W]>().read();
        for row in &rows[1..] {
            let row = row.cast::<J::Value>().add(at).cast::<[J::Value; W]>().read();
            for (own, value) in own.iter_mut().zip(row) {
                *own = J::join(*own, value);
            }
        }
        if more {
            for (own, before) in own.iter_mut().zip(to.read()) {
                *own = J::join(before, *own);
            }
        }
        to.write(own);
    }
}
