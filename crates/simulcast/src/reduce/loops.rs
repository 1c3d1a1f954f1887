//! The loops of a reduction: runs and rows, compiled into the caller for its level.
//!
//! Reading is what takes time. Along a run the hardware sees what comes next, most of it; across rows it does not,
//! and is asked for lines some rows ahead, a few at a time.

use super::{Reduction, count, offsets};
use crate::Addend;
use crate::layout::loop_nest::Loop;
use simulcast_kernels::cpu::EIGHT;
use simulcast_kernels::cpu::nontemporal::{self, LINE, prefetch};

/// The elements of a run that a leaf along sums, and how many of them at a time.
pub(super) const RUN: usize = 16 * BLOCK;
const BLOCK: usize = 2048;
/// The rows of a leaf across.
pub(super) const ROWS: usize = 128;
/// How far ahead rows are asked for, in bytes.
const AHEAD: usize = 32 << 10;

/// The neighbours that are added at a time, and the sums side by side in a block along; the neighbours
/// at a time where there are no more of those.
const TOGETHER: usize = 32;
const FEW: usize = 8;

/// The sum of one run: sums of blocks, then those in pairs. What follows it may be asked for.
///
/// # Safety
///
/// `from` reaches `len` elements, at most [`RUN`], with that stride; with `WIDE`, the caller is
/// compiled for AVX2 and F16C.
#[inline(always)]
pub(super) unsafe fn run<T: Addend, const WIDE: bool>(
    from: *const T,
    len: usize,
    stride: isize,
    asks: bool,
) -> T::Sum {
    let mut blocks = [T::NEUTRAL; RUN / BLOCK];
    let mut done = 0_usize;
    loop {
        let from = from.wrapping_offset(done.cast_signed() * stride);
        // SAFETY: the caller keeps the conditions.
        let sum = unsafe { block::<T, WIDE>(from, BLOCK.min(len - done), stride, asks) };
        if len <= BLOCK {
            return sum;
        }
        blocks[done / BLOCK] = sum;
        done += BLOCK;
        if done >= len {
            return sixteen::<T>(blocks);
        }
    }
}

/// The sum of sixteen sums, in pairs.
#[inline(always)]
fn sixteen<T: Addend>(sums: [T::Sum; 16]) -> T::Sum {
    let [sum] = halves::<T, 2, 1>(halves::<T, 4, 2>(halves::<T, 8, 4>(halves::<T, 16, 8>(sums))));
    sum
}

/// The sums of one half and the other. Arrays of their own are what the compiler sees through.
#[inline(always)]
fn halves<T: Addend, const N: usize, const HALF: usize>(sums: [T::Sum; N]) -> [T::Sum; HALF] {
    let mut halves = [T::NEUTRAL; HALF];
    for (at, half) in halves.iter_mut().enumerate() {
        *half = T::plus(sums[at], sums[at + HALF]);
    }
    halves
}

#[inline(always)]
fn add<T: Addend, const N: usize>(sums: &mut [T::Sum; N], more: [T::Sum; N]) {
    for (sum, more) in sums.iter_mut().zip(&more) {
        *sum = T::plus(*sum, *more);
    }
}

/// The sum of one block: many sums side by side, then those in pairs, then what is left over.
///
/// # Safety
///
/// `from` reaches `len` elements with that stride; with `WIDE`, the caller is compiled for AVX2 and
/// F16C.
#[inline(always)]
unsafe fn block<T: Addend, const WIDE: bool>(
    from: *const T,
    len: usize,
    stride: isize,
    asks: bool,
) -> T::Sum {
    // SAFETY: by the condition of this function.
    let element = |at: usize| unsafe { from.offset(at.cast_signed() * stride).read() }.widen();
    let whole = len / TOGETHER * TOGETHER;
    let mut sum = T::NEUTRAL;
    if whole > 0 {
        let mut sums = [T::NEUTRAL; TOGETHER];
        if stride == 1 {
            let mut own = sums;
            for at in (0..whole).step_by(TOGETHER) {
                if asks {
                    nontemporal::ask_ahead(from.wrapping_add(at).cast(), TOGETHER * size_of::<T>());
                }
                // SAFETY: by the conditions of this function.
                let more = unsafe { T::widen_all::<WIDE, TOGETHER>(from.add(at)) };
                add::<T, TOGETHER>(&mut own, more);
            }
            sums = own;
        } else {
            for at in 0..whole {
                sums[at % TOGETHER] = T::plus(sums[at % TOGETHER], element(at));
            }
        }
        // A compiler that sees the pairs makes vectors of two, in the loop too.
        sum = sixteen::<T>(halves::<T, TOGETHER, 16>(std::hint::black_box(sums)));
    }
    (whole..len).fold(sum, |sum, at| T::plus(sum, element(at)))
}

/// Adds the rows of a leaf to sums, and what is left over after the last of them.
///
/// # Safety
///
/// From `from`, every row reaches as many elements as there are sums, and what is left over follows
/// the last; with `WIDE`, the caller is compiled for AVX2 and F16C.
#[inline(always)]
pub(super) unsafe fn across<T: Addend, const WIDE: bool>(
    reduction: &Reduction,
    from: *const T,
    leaf: usize,
    sums: &mut [T::Sum],
) {
    let Reduction { row: Loop { out: stride, .. }, abreast, leaves, .. } = *reduction;
    let loops = &reduction.summed[..];
    let rows = leaf * ROWS..count(loops).min((leaf + 1) * ROWS);
    let over = if leaf + 1 == leaves { sums.len() / abreast * reduction.over } else { 0 };
    let place = |row| from.wrapping_offset(offsets(loops, row).0);
    let ahead = match reduction.is_far::<T>() {
        true => (AHEAD / (sums.len() * size_of::<T>()).max(1)).clamp(EIGHT, 4 * EIGHT),
        false => 0,
    };
    let mut row = rows.start;
    while row + EIGHT <= rows.end && stride == 1 {
        let eight = |row| std::array::from_fn(|n| place(row + n));
        // SAFETY: the caller keeps the conditions.
        unsafe { together::<T, WIDE, EIGHT>(sums, eight(row), eight(row + ahead)) };
        row += EIGHT;
    }
    for row in row..rows.end + usize::from(over > 0) {
        let sums = if row < rows.end { &mut *sums } else { &mut sums[..over] };
        if stride == 1 {
            // SAFETY: the caller keeps the conditions.
            unsafe { together::<T, WIDE, 1>(sums, [place(row)], [place(row + ahead)]) };
            continue;
        }
        for (at, sum) in sums.iter_mut().enumerate() {
            // SAFETY: by the condition of this function.
            let element = unsafe { place(row).offset(at.cast_signed() * stride).read() };
            *sum = T::plus(*sum, element.widen());
        }
    }
}

/// Adds some rows together to sums, and asks for the lines of others.
///
/// # Safety
///
/// The rows have as many elements as there are sums; with `WIDE`, the caller is compiled for AVX2 and
/// F16C.
#[inline(always)]
unsafe fn together<T: Addend, const WIDE: bool, const N: usize>(
    sums: &mut [T::Sum],
    rows: [*const T; N],
    next: [*const T; N],
) {
    let whole = sums.len() / TOGETHER * TOGETHER;
    let few = sums.len() / FEW * FEW;
    for at in (0..whole).step_by(TOGETHER) {
        // SAFETY: by the conditions of this function.
        unsafe { columns::<T, WIDE, N, TOGETHER>(&mut sums[at..at + TOGETHER], rows, next, at) };
    }
    for at in (whole..few).step_by(FEW) {
        // SAFETY: by the conditions of this function.
        unsafe { columns::<T, WIDE, N, FEW>(&mut sums[at..at + FEW], rows, next, at) };
    }
    for (at, sum) in sums.iter_mut().enumerate().skip(few) {
        // SAFETY: by the conditions of this function.
        let own = rows.iter().map(|row| unsafe { row.add(at).read() }.widen());
        *sum = T::plus(*sum, own.fold(T::NEUTRAL, T::plus));
    }
}

/// [`together`] for some columns, in registers.
///
/// # Safety
///
/// The rows have that many elements from `at` on; `WIDE` as in [`together`].
#[inline(always)]
unsafe fn columns<T: Addend, const WIDE: bool, const N: usize, const COLUMNS: usize>(
    sums: &mut [T::Sum],
    rows: [*const T; N],
    next: [*const T; N],
    at: usize,
) {
    let mut own = [T::NEUTRAL; COLUMNS];
    for (row, next) in rows.into_iter().zip(next) {
        let first = at * size_of::<T>();
        if first.is_multiple_of(LINE) {
            for line in (0..COLUMNS * size_of::<T>()).step_by(LINE) {
                prefetch(next.cast::<u8>().wrapping_add(first + line));
            }
        }
        // SAFETY: by the conditions of this function.
        add::<T, COLUMNS>(&mut own, unsafe { T::widen_all::<WIDE, COLUMNS>(row.add(at)) });
    }
    for (sum, own) in sums.iter_mut().zip(own) {
        *sum = T::plus(*sum, own);
    }
}
