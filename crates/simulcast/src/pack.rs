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

/// Does something with the type that elements of a size are moved as: it has at most the alignment of
/// the plain types of that size, of which complex numbers have that of their parts.
macro_rules! by_size {
    ($size:expr, $dst:expr, $src:expr, $T:ident => $do:block) => {
        match $size {
            1 => {
                type $T = u8;
                $do
            }
            2 => {
                type $T = u16;
                $do
            }
            4 => {
                type $T = u32;
                $do
            }
            8 if ($dst.addr() | $src.addr()).is_multiple_of(align_of::<u64>()) => {
                type $T = u64;
                $do
            }
            8 => {
                type $T = [u32; 2];
                $do
            }
            _ => {
                type $T = [u64; 2];
                $do
            }
        }
    };
}

/// Copies the elements that the loops visit, in their order, to `dst`; of plain data.
///
/// # Safety
///
/// The invariant of this module; `size` is the size of an element: 1, 2, 4, 8 or 16.
#[inline(never)]
pub(crate) unsafe fn pack(size: usize, dst: *mut u8, src: *const u8, loops: Loops<'_>) {
    // SAFETY: the caller keeps the invariant; see `by_size` for the types.
    unsafe {
        by_size!(size, dst, src, T => {
            let _written = nested::<T>(dst.cast(), src.cast(), loops);
        });
    }
}

/// Copies the elements of a square, row by row, to rows of `dst` that are `pitch` elements apart; of
/// plain data.
///
/// # Safety
///
/// The invariant of this module, with room for `pitch` elements a row; `size` is the size of an
/// element: 1, 2, 4, 8 or 16. With `WIDE`, the machine has AVX2.
pub(crate) unsafe fn square<const WIDE: bool>(
    size: usize,
    dst: *mut u8,
    pitch: usize,
    src: *const u8,
    rows: (usize, isize),
    columns: (usize, isize),
) {
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    unsafe fn avx2(
        size: usize,
        dst: *mut u8,
        pitch: usize,
        src: *const u8,
        rows: (usize, isize),
        columns: (usize, isize),
    ) {
        // SAFETY: the caller keeps the conditions.
        unsafe { sized::<true>(size, dst, pitch, src, rows, columns) }
    }
    // SAFETY: the caller keeps the conditions.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        if WIDE {
            return avx2(size, dst, pitch, src, rows, columns);
        }
        sized::<false>(size, dst, pitch, src, rows, columns);
    }
}

/// # Safety
///
/// As [`square`]; with `WIDE`, the caller is compiled for AVX2.
#[inline(always)]
unsafe fn sized<const WIDE: bool>(
    size: usize,
    dst: *mut u8,
    pitch: usize,
    src: *const u8,
    rows: (usize, isize),
    columns: (usize, isize),
) {
    // SAFETY: the caller keeps the invariant; see `by_size` for the types.
    unsafe {
        by_size!(size, dst, src, T => {
            squared::<T, WIDE>(dst.cast(), pitch, src.cast(), rows, columns);
        });
    }
}

/// # Safety
///
/// As [`sized`].
#[inline(always)]
unsafe fn squared<T: Copy, const WIDE: bool>(
    dst: *mut T,
    pitch: usize,
    src: *const T,
    (rows, stride): (usize, isize),
    (columns, step): (usize, isize),
) {
    // SAFETY: the caller keeps the conditions.
    unsafe {
        if stride.unsigned_abs() < step.unsigned_abs() {
            return turned::<T, WIDE>(dst, pitch, src, (rows, stride), (columns, step));
        }
        for row in 0..rows {
            line(dst.add(row * pitch), src.offset(row.cast_signed() * stride), columns, step);
        }
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
                turned::<T, false>(dst, columns, src, (len, stride), (columns, step));
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
/// The invariant of this module; with `WIDE`, the caller is compiled for AVX2.
#[inline(always)]
unsafe fn turned<T: Copy, const WIDE: bool>(
    dst: *mut T,
    pitch: usize,
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
    // SAFETY: rows and columns stay below their numbers.
    unsafe {
        for column in (0..whole_columns).step_by(SIDE) {
            for row in (0..whole_rows).step_by(SIDE) {
                let to = dst.add(row * pitch + column);
                #[cfg(target_arch = "x86_64")]
                if WIDE && stride == 1 && size_of::<T>() == 4 {
                    eight(to.cast(), pitch, from(row, column).cast(), step);
                    continue;
                }
                if stride == 1 && size_of::<T>() == 4 {
                    for half in 0..4 {
                        let (r, c) = (half / 2 * 4, half % 2 * 4);
                        let from = from(row + r, column + c);
                        four(to.add(r * pitch + c).cast(), pitch, from.cast(), step);
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
                    to.add(r * pitch).cast::<[T; SIDE]>().write(line);
                }
            }
            for row in whole_rows..rows {
                line(dst.add(row * pitch + column), from(row, column), SIDE, step);
            }
        }
        for row in 0..rows {
            let rest = columns - whole_columns;
            line(dst.add(row * pitch + whole_columns), from(row, whole_columns), rest, step);
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

/// Turns a square of eight by eight words over.
///
/// # Safety
///
/// Eight rows of `dst`, `columns` apart, and eight of `src`, `step` apart, have eight words each; the
/// caller is compiled for AVX2.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
#[inline]
unsafe fn eight(dst: *mut f32, columns: usize, src: *const f32, step: isize) {
    use std::arch::x86_64::{
        __m256, _mm256_castpd_ps, _mm256_castps_pd, _mm256_loadu_ps, _mm256_permute2f128_ps,
        _mm256_storeu_ps, _mm256_unpackhi_pd, _mm256_unpackhi_ps, _mm256_unpacklo_pd,
        _mm256_unpacklo_ps,
    };
    // SAFETY: the places are valid and the instructions are there by the conditions of this function.
    unsafe {
        let load = |row: isize| _mm256_loadu_ps(src.offset(row * step));
        let low = |a: __m256, b: __m256| {
            _mm256_castpd_ps(_mm256_unpacklo_pd(_mm256_castps_pd(a), _mm256_castps_pd(b)))
        };
        let high = |a: __m256, b: __m256| {
            _mm256_castpd_ps(_mm256_unpackhi_pd(_mm256_castps_pd(a), _mm256_castps_pd(b)))
        };
        // Four rows of a half each, as in `four`, then halves are brought together.
        let turn = |row: isize| {
            let (a, b, c, d) = (load(row), load(row + 1), load(row + 2), load(row + 3));
            let (ab, cd) = (_mm256_unpacklo_ps(a, b), _mm256_unpacklo_ps(c, d));
            let (ba, dc) = (_mm256_unpackhi_ps(a, b), _mm256_unpackhi_ps(c, d));
            [low(ab, cd), high(ab, cd), low(ba, dc), high(ba, dc)]
        };
        let (left, right) = (turn(0), turn(4));
        for (row, (left, right)) in left.into_iter().zip(right).enumerate() {
            let to = dst.add(row * columns);
            _mm256_storeu_ps(to, _mm256_permute2f128_ps::<0x20>(left, right));
            let both = _mm256_permute2f128_ps::<0x31>(left, right);
            _mm256_storeu_ps(to.add(4 * columns), both);
        }
    }
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

        // [E_BROADCAST_ANY_FUNC_3020]
        #[test]
        fn squares_are_packed_row_by_row(
            rows in 1_usize..40,
            columns in 1_usize..40,
            stride in prop::sample::select(vec![-41_isize, -1, 0, 1, 2, 50]),
            step in prop::sample::select(vec![-45_isize, -1, 1, 3, 44]),
        ) {
            let reach = stride.abs() * (rows as isize - 1) + step.abs() * (columns as isize - 1);
            let at = |r: usize, c: usize| reach + r as isize * stride + c as isize * step;
            let pitch = columns + 5;
            macro_rules! check {
                ($($type:ty)*) => { $(for wide in [false, crate::Level::avx2().is_some()] {
                    let source: Vec<$type> = (0..=2 * reach as u64).map(|v| v as $type).collect();
                    let mut packed: Vec<$type> = vec![0; rows * pitch];
                    let (size, to) = (size_of::<$type>(), packed.as_mut_ptr().cast());
                    let from = source.as_ptr().wrapping_add(reach as usize).cast();
                    let (down, across) = ((rows, stride), (columns, step));
                    // SAFETY: the source reaches `reach` to both sides, the destination has rows of
                    // `pitch`; wide only where the machine has AVX2.
                    unsafe {
                        if wide {
                            square::<true>(size, to, pitch, from, down, across);
                        } else {
                            square::<false>(size, to, pitch, from, down, across);
                        }
                    }
                    for r in 0..rows {
                        let expected: Vec<$type> = (0..columns).map(|c| at(r, c) as $type).collect();
                        prop_assert_eq!(&packed[r * pitch..r * pitch + columns], &expected);
                        prop_assert!(packed[r * pitch + columns..(r + 1) * pitch].iter().all(|&x| x == 0));
                    }
                })* };
            }
            check!(u8 u16 u32 u64 u128);
        }
    }
}
