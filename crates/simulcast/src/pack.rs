//! Packing: an operand's elements of one tile, brought side by side.
//!
//! A tile is small, so that it stays in a near cache. What is packed is
//! plain data, moved as unsigned integers of the same size.
//!
//! Invariant of every call: the source reaches every element that the loops name, and the
//! destination has room for all of them; both are aligned for an element.

use std::ptr;

/// Loops from the outermost to the innermost: how often, and the source's stride in elements.
pub(crate) type Loops<'a> = &'a [(usize, isize)];

/// Copies the elements that the loops visit, in their order, to `dst`; of plain data.
///
/// # Safety
///
/// The invariant of this module; `size` is the size of an element: 1, 2, 4, 8 or 16.
#[inline(never)]
pub(crate) unsafe fn pack(size: usize, dst: *mut u8, src: *const u8, loops: Loops<'_>) {
    // SAFETY: the caller keeps the invariant, and the types moved as have at most the alignment of
    // the plain types of that size: complex numbers have that of their parts.
    unsafe {
        let _written = match size {
            1 => nested::<u8>(dst, src, loops),
            2 => nested::<u16>(dst.cast(), src.cast(), loops),
            4 => nested::<u32>(dst.cast(), src.cast(), loops),
            8 if (dst.addr() | src.addr()).is_multiple_of(align_of::<u64>()) => {
                nested::<u64>(dst.cast(), src.cast(), loops)
            }
            8 => nested::<[u32; 2]>(dst.cast(), src.cast(), loops),
            _ => nested::<[u64; 2]>(dst.cast(), src.cast(), loops),
        };
    }
}

/// # Safety
///
/// The invariant of this module.
unsafe fn nested<T: Copy>(dst: *mut T, src: *const T, loops: Loops<'_>) -> usize {
    let Some((&(len, stride), inside)) = loops.split_first() else {
        // SAFETY: one element is left, by the invariant.
        unsafe { dst.write(src.read()) };
        return 1;
    };
    // SAFETY: every offset is one that the loops visit, and `dst` advances by what was written.
    unsafe {
        if stride == 0 {
            let one = if len == 0 { 0 } else { nested(dst, src, inside) };
            repeat(dst, one, one * len);
            return one * len;
        }
        match inside {
            [] => line(dst, src, len, stride),
            &[(columns, step)] if stride.unsigned_abs() < step.unsigned_abs() => {
                turned(dst, src, (len, stride), (columns, step));
            }
            _ => {
                let mut written = 0;
                for at in 0..len.cast_signed() {
                    written += nested(dst.add(written), src.offset(at * stride), inside);
                }
                return written;
            }
        }
    }
    loops.iter().map(|&(len, _)| len).product()
}

/// One line with a stride other than 0.
///
/// # Safety
///
/// The invariant of this module.
#[inline(always)]
unsafe fn line<T: Copy>(dst: *mut T, src: *const T, len: usize, stride: isize) {
    // SAFETY: every offset is one that the line visits.
    unsafe {
        match stride {
            1 => ptr::copy_nonoverlapping(src, dst, len),
            -1 => {
                for at in 0..len {
                    dst.add(at).write(src.sub(at).read());
                }
            }
            _ => {
                for at in 0..len {
                    dst.add(at).write(src.offset(at.cast_signed() * stride).read());
                }
            }
        }
    }
}

/// A tile whose rows lie closer together in the source than its columns: read column by column.
///
/// # Safety
///
/// The invariant of this module.
#[inline(always)]
unsafe fn turned<T: Copy>(
    dst: *mut T,
    src: *const T,
    (rows, stride): (usize, isize),
    (columns, step): (usize, isize),
) {
    // Small squares, so that lines of both sides are used whole while they are at hand. Columns
    // outside: few lines of the source are then in use at once, which counts where they all fall
    // on one set of the cache, as with sizes that are powers of two.
    const SIDE: usize = 8;
    let (whole_rows, whole_columns) = (rows / SIDE * SIDE, columns / SIDE * SIDE);
    let from = |row: usize, column: usize| {
        src.wrapping_offset(row.cast_signed() * stride + column.cast_signed() * step)
    };
    let lines = (rows * size_of::<T>()).div_ceil(64);
    // SAFETY: rows and columns stay below their numbers.
    unsafe {
        for column in (0..whole_columns).step_by(SIDE) {
            // Columns are far apart, and no hardware guesses them: ask for later ones now.
            for ahead in column + 4 * SIDE..column + 5 * SIDE {
                for line in 0..lines {
                    prefetch(from(line * (64 / size_of::<T>()).max(1), ahead));
                }
            }
            for row in (0..whole_rows).step_by(SIDE) {
                let to = dst.add(row * columns + column);
                if stride == 1 && size_of::<T>() == 4 {
                    for half in 0..4 {
                        let (r, c) = (half / 2 * 4, half % 2 * 4);
                        let from = from(row + r, column + c);
                        four(to.add(r * columns + c).cast(), columns, from.cast(), step);
                    }
                    continue;
                }
                let mut square = [[from(row, column).read(); SIDE]; SIDE];
                for (c, line) in square.iter_mut().enumerate() {
                    let start = from(row, column + c);
                    if stride == 1 {
                        *line = start.cast::<[T; SIDE]>().read();
                    } else {
                        for (r, place) in line.iter_mut().enumerate() {
                            *place = start.offset(r.cast_signed() * stride).read();
                        }
                    }
                }
                let turned: [[T; SIDE]; SIDE] =
                    std::array::from_fn(|r| std::array::from_fn(|c| square[c][r]));
                for (r, line) in turned.into_iter().enumerate() {
                    to.add(r * columns).cast::<[T; SIDE]>().write(line);
                }
            }
            for row in whole_rows..rows {
                line(dst.add(row * columns + column), from(row, column), SIDE, step);
            }
        }
        for row in 0..rows {
            let rest = columns - whole_columns;
            line(dst.add(row * columns + whole_columns), from(row, whole_columns), rest, step);
        }
    }
}

/// Turns a square of four by four words over.
///
/// # Safety
///
/// Four rows of `dst`, `columns` apart, and four of `src`, `step` apart, have four words each.
#[inline(always)]
unsafe fn four(dst: *mut u32, columns: usize, src: *const u32, step: isize) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 has these instructions, and the places are valid by the condition of
    // this function.
    unsafe {
        use std::arch::x86_64::{
            _mm_loadu_si128, _mm_storeu_si128, _mm_unpackhi_epi32, _mm_unpackhi_epi64,
            _mm_unpacklo_epi32, _mm_unpacklo_epi64,
        };
        let load = |row: isize| _mm_loadu_si128(src.offset(row * step).cast());
        let (a, b, c, d) = (load(0), load(1), load(2), load(3));
        let (ab, cd) = (_mm_unpacklo_epi32(a, b), _mm_unpacklo_epi32(c, d));
        let (ba, dc) = (_mm_unpackhi_epi32(a, b), _mm_unpackhi_epi32(c, d));
        _mm_storeu_si128(dst.cast(), _mm_unpacklo_epi64(ab, cd));
        _mm_storeu_si128(dst.add(columns).cast(), _mm_unpackhi_epi64(ab, cd));
        _mm_storeu_si128(dst.add(2 * columns).cast(), _mm_unpacklo_epi64(ba, dc));
        _mm_storeu_si128(dst.add(3 * columns).cast(), _mm_unpackhi_epi64(ba, dc));
    }
    #[cfg(not(target_arch = "x86_64"))]
    for r in 0..4 {
        for c in 0..4 {
            // SAFETY: by the condition of this function.
            unsafe {
                dst.add(r * columns + c).write(src.offset(c.cast_signed() * step).add(r).read())
            };
        }
    }
}

/// Asks for a line, into a near cache; any address will do.
#[inline(always)]
pub(crate) fn prefetch<T>(at: *const T) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: every x86-64 has it, and it neither faults nor changes anything.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T1>(at.cast());
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = at;
}

/// Asks for a line, into the nearest cache; any address will do.
#[inline(always)]
pub(crate) fn prefetch_near(at: *const u8) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: every x86-64 has it, and it neither faults nor changes anything.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(at.cast());
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = at;
}

/// Repeats the first `one` elements up to `all`.
///
/// # Safety
///
/// `dst` holds `one` elements and has room for `all`.
#[inline(always)]
unsafe fn repeat<T: Copy>(dst: *mut T, one: usize, all: usize) {
    if one == 1 {
        // SAFETY: the first element is there, and `at` is below the room.
        unsafe {
            let value = dst.read();
            for at in 1..all {
                dst.add(at).write(value);
            }
        }
        return;
    }
    let mut have = one;
    while have < all && have > 0 {
        let more = have.min(all - have);
        // SAFETY: `have` elements are there, and `have + more` fit.
        unsafe { ptr::copy_nonoverlapping(dst, dst.add(have), more) };
        have += more;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 256 }))]

        // [E_BROADCAST_ANY_FUNC_3020]
        #[test]
        fn packing_visits_the_loops_in_order(
            loops in prop::collection::vec((1_usize..20, prop::sample::select(vec![-21_isize, -3, -1, 0, 1, 2, 20])), 0..3),
        ) {
            let all: usize = loops.iter().map(|l| l.0).product();
            let reach: isize = loops.iter().map(|l| l.1.abs() * (l.0 as isize - 1)).sum();
            let source: Vec<u64> = (0..2 * reach as u64 + 1).collect();
            let mut expected = vec![reach];
            for &(len, stride) in &loops {
                expected = expected.iter().flat_map(|at| (0..len as isize).map(move |i| at + i * stride)).collect();
            }
            macro_rules! check {
                ($($type:ty)*) => { $({
                    let source: Vec<$type> = source.iter().map(|&v| v as $type).collect();
                    let mut packed: Vec<$type> = vec![0; all];
                    // SAFETY: the source reaches `reach` to both sides, the destination has `all`.
                    unsafe {
                        let from = source.as_ptr().add(reach as usize);
                        pack(size_of::<$type>(), packed.as_mut_ptr().cast(), from.cast(), &loops);
                    }
                    let expected: Vec<$type> = expected.iter().map(|&at| at as $type).collect();
                    prop_assert_eq!(packed, expected);
                })* };
            }
            check!(u8 u16 u32 u64 u128);
        }
    }
}
