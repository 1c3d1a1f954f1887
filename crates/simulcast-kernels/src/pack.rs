//! Packing: the elements of one tile of a strided operand are copied into contiguous memory, as BLIS packs its panels.
//!
//! A tile is small, so that it stays in the L1 or L2 cache. Elements are plain data, moved as unsigned integers of their
//! size. A tile whose rows lie closer together in the source than its columns is transposed, in squares that fit in vector
//! registers.
//!
//! Invariant of every call: the source reaches every element that the loops name, and the destination has room for all of
//! them; both are aligned for an element.

#[cfg(target_arch = "x86_64")]
mod transpose_x86;

#[cfg(target_arch = "x86_64")]
use std::ops::Range;
use std::ptr;

#[cfg(target_arch = "x86_64")]
use crate::tuning::TRANSPOSE_COLUMN_BYTES;

/// Loops from the outermost to the innermost: the count, and the source's stride in elements.
pub type Loops<'a> = &'a [(usize, isize)];

/// Runs a block with `$T` as the type that elements of a size are moved as. Its alignment is at most that of the plain types
/// of that size; complex numbers are aligned for their parts alone.
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

/// Copies the elements that the loops visit, in their order, to contiguous memory at `dst`.
///
/// # Safety
///
/// As [`pack_rows`].
#[inline(always)]
pub unsafe fn pack<const AVX2: bool>(size: usize, dst: *mut u8, src: *const u8, loops: Loops<'_>) {
    let pitch = loops.last().map_or(1, |&(len, _)| len);
    // SAFETY: the caller's conditions are those of the callee, with the pitch of contiguous rows.
    unsafe { pack_rows::<AVX2>(size, dst, pitch, src, loops) };
}

/// As [`pack`], to rows that are `pitch` elements apart; a row is one round of the innermost loop.
///
/// # Safety
///
/// The invariant of this module, with room for `pitch` elements a row; `size` is the size of an
/// element: 1, 2, 4, 8 or 16. With `AVX2`, the machine has AVX2.
#[inline(never)]
pub unsafe fn pack_rows<const AVX2: bool>(
    size: usize,
    dst: *mut u8,
    pitch: usize,
    src: *const u8,
    loops: Loops<'_>,
) {
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    unsafe fn avx2(size: usize, dst: *mut u8, pitch: usize, src: *const u8, loops: Loops<'_>) {
        // SAFETY: the caller's conditions are those of the callee, and this is compiled for AVX2.
        unsafe { sized::<true>(size, dst, pitch, src, loops) }
    }
    // SAFETY: the caller's conditions are those of the callees; `AVX2` says that the machine has it.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        if AVX2 {
            return avx2(size, dst, pitch, src, loops);
        }
        sized::<false>(size, dst, pitch, src, loops);
    }
}

/// # Safety
///
/// As [`pack_rows`]; with `AVX2`, the caller is compiled for AVX2.
#[inline(always)]
unsafe fn sized<const AVX2: bool>(
    size: usize,
    dst: *mut u8,
    pitch: usize,
    src: *const u8,
    loops: Loops<'_>,
) {
    // SAFETY: the invariant of this module; `by_size` chooses a type that is aligned at both addresses.
    unsafe {
        by_size!(size, dst, src, T => {
            copy_nested::<T, AVX2>(dst.cast(), pitch, src.cast(), loops);
        });
    }
}

/// # Safety
///
/// As [`sized`].
#[inline(always)]
unsafe fn copy_nested<T: Copy, const AVX2: bool>(
    dst: *mut T,
    pitch: usize,
    src: *const T,
    loops: Loops<'_>,
) {
    // SAFETY: every offset is one that the loops visit, and `dst` advances by what was written.
    unsafe {
        match *loops {
            [] => dst.write(src.read()),
            [(len, stride)] => copy_strided(dst, src, len, stride),
            [(rows, stride), (columns, step)] if stride != 0 => {
                if step != 0 && stride.unsigned_abs() < step.unsigned_abs() {
                    let pitch = pitch.cast_signed();
                    return transpose::<T, AVX2>(dst, pitch, src, (rows, stride), (columns, step));
                }
                for row in 0..rows {
                    let from = src.offset(row.cast_signed() * stride);
                    copy_strided(dst.add(row * pitch), from, columns, step);
                }
            }
            [(len, stride), ref inside @ .., _] => {
                let one = inside.iter().map(|&(len, _)| len).product::<usize>() * pitch;
                for at in 0..if stride == 0 { len.min(1) } else { len } {
                    let (to, from) = (dst.add(at * one), src.offset(at.cast_signed() * stride));
                    // Not a recursive call: a recursive function is not inlined, and so not compiled for AVX2.
                    let (size, inside) = (size_of::<T>(), &loops[1..]);
                    pack_rows::<AVX2>(size, to.cast(), pitch, from.cast(), inside);
                }
                if stride == 0 {
                    repeat(dst, one, one * len);
                }
            }
        }
    }
}

/// Copies elements that lie a stride apart to contiguous memory.
///
/// # Safety
///
/// The invariant of this module.
#[inline(always)]
unsafe fn copy_strided<T: Copy>(dst: *mut T, src: *const T, len: usize, stride: isize) {
    // SAFETY: every offset is below `len` strides, all of which the source reaches.
    unsafe {
        match stride {
            1 => ptr::copy_nonoverlapping(src, dst, len),
            0 if len == 0 => {}
            0 => {
                let value = src.read();
                for at in 0..len {
                    dst.add(at).write(value);
                }
            }
            // From the last element on: memory is read upwards, as hardware prefetchers expect.
            -1 => {
                for at in (0..len).rev() {
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

/// Transposes a tile whose rows lie closer together in the source than its columns: read column by column, written to rows
/// that are `pitch` elements apart.
///
/// # Safety
///
/// The invariant of this module; with `AVX2`, the caller is compiled for AVX2.
#[inline(always)]
unsafe fn transpose<T: Copy, const AVX2: bool>(
    mut dst: *mut T,
    mut pitch: isize,
    mut src: *const T,
    (rows, mut stride): (usize, isize),
    (columns, step): (usize, isize),
) {
    if stride == -1 {
        // Begins with the last row, so that columns are read upwards.
        let last = rows.cast_signed() - 1;
        (dst, src) = (dst.wrapping_offset(last * pitch), src.wrapping_offset(-last));
        (pitch, stride) = (-pitch, 1);
    }
    // The rows and columns that large squares cover, then those of small ones; the divisors are constants.
    let side = 16 / size_of::<T>();
    let squares = cfg!(target_arch = "x86_64") && stride == 1;
    let whole = |side: usize, any: bool| {
        if any { (rows / side * side, columns / side * side) } else { (0, 0) }
    };
    #[cfg_attr(
        not(target_arch = "x86_64"),
        allow(unused_variables, reason = "there are no squares")
    )]
    let (large, small) = (whole(2 * side, squares && AVX2), whole(side, squares));
    // SAFETY: rows and columns stay below their numbers, and are multiples of a square's side.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        {
            let (to, from) = ((dst, pitch), (src, step));
            transpose_squares::<T, true>(to, from, 0..large.0, 0..large.1);
            transpose_squares::<T, false>(to, from, large.0..small.0, 0..small.1);
            transpose_squares::<T, false>(to, from, 0..large.0, large.1..small.1);
        }
        // The elements below the squares, and those to their right.
        for (rows, columns) in [(small.0..rows, 0..small.1), (0..rows, small.1..columns)] {
            if rows.is_empty() {
                continue;
            }
            for column in columns {
                for row in rows.clone() {
                    let (row, column) = (row.cast_signed(), column.cast_signed());
                    let from = src.offset(row * stride + column * step);
                    dst.offset(row * pitch + column).write(from.read());
                }
            }
        }
    }
}

/// Transposes rows and columns in squares; the rows lie side by side in the source.
///
/// # Safety
///
/// The invariant of [`transpose`]; both ranges are whole squares; where they are `LARGE`, the caller is compiled
/// for AVX2.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn transpose_squares<T, const LARGE: bool>(
    (dst, pitch): (*mut T, isize),
    (src, step): (*const T, isize),
    rows: Range<usize>,
    columns: Range<usize>,
) {
    let side = if LARGE { 32 } else { 16 } / size_of::<T>();
    // A few lines of every column before the next ones below: the page of the column is still in the TLB.
    let lines = TRANSPOSE_COLUMN_BYTES / size_of::<T>();
    let bytes = size_of::<T>().cast_signed();
    for first in rows.clone().step_by(lines) {
        for column in columns.clone().step_by(side) {
            for row in (first..(first + lines).min(rows.end)).step_by(side) {
                let (row, column) = (row.cast_signed(), column.cast_signed());
                // SAFETY: both ranges are whole squares, so this one lies within them.
                unsafe {
                    let to = dst.offset(row * pitch + column).cast();
                    let from = src.offset(row + column * step).cast();
                    transpose_square::<T, LARGE>(to, pitch * bytes, from, step * bytes);
                }
            }
        }
    }
}

/// Transposes a square; strides are in bytes.
///
/// # Safety
///
/// The invariant of [`transpose`]; where it is `LARGE`, the caller is compiled for AVX2.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn transpose_square<T, const LARGE: bool>(
    dst: *mut u8,
    pitch: isize,
    src: *const u8,
    step: isize,
) {
    // SAFETY: the caller's conditions are those of the callees: the sides of a square are those of its vectors.
    unsafe {
        match (size_of::<T>(), LARGE) {
            (1, false) => transpose_x86::square::<1, 16>(dst, pitch, src, step),
            (2, false) => transpose_x86::square::<2, 8>(dst, pitch, src, step),
            (4, false) => transpose_x86::square::<4, 4>(dst, pitch, src, step),
            (8, false) => transpose_x86::square::<8, 2>(dst, pitch, src, step),
            (_, false) => transpose_x86::square::<16, 1>(dst, pitch, src, step),
            (1, true) => transpose_x86::large_square::<1, 16>(dst, pitch, src, step),
            (2, true) => transpose_x86::large_square::<2, 8>(dst, pitch, src, step),
            (4, true) => transpose_x86::large_square::<4, 4>(dst, pitch, src, step),
            (8, true) => transpose_x86::large_square::<8, 2>(dst, pitch, src, step),
            (_, true) => transpose_x86::large_square::<16, 1>(dst, pitch, src, step),
        }
    }
}

/// Fills `all` elements with copies of the first `one`, doubling what is there.
///
/// # Safety
///
/// `dst` holds `one` elements and has room for `all`.
#[inline(always)]
unsafe fn repeat<T: Copy>(dst: *mut T, one: usize, all: usize) {
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
            loops in prop::collection::vec((1_usize..52, prop::sample::select(vec![-41_isize, -3, -1, 0, 1, 2, 40])), 0..4),
            apart in 0_usize..2,
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
                    let expected: Vec<$type> = expected.iter().map(|&at| at as $type).collect();
                    for wide in [false, crate::Level::avx2().is_some()] {
                        let columns = loops.last().map_or(1, |l| l.0);
                        let pitch = columns + apart;
                        let mut packed: Vec<$type> = vec![0; all / columns * pitch];
                        let (size, to) = (size_of::<$type>(), packed.as_mut_ptr().cast());
                        let from = source.as_ptr().wrapping_add(reach as usize).cast();
                        // SAFETY: the source reaches `reach` to both sides, the destination
                        // has rows of `pitch`; wide only where the machine has AVX2.
                        unsafe {
                            if wide {
                                pack_rows::<true>(size, to, pitch, from, &loops);
                            } else {
                                pack_rows::<false>(size, to, pitch, from, &loops);
                            }
                        }
                        for (row, expected) in packed.chunks(pitch).zip(expected.chunks(columns)) {
                            prop_assert_eq!(&row[..columns], expected);
                            prop_assert!(row[columns..].iter().all(|&gap| gap == 0));
                        }
                    }
                })* };
            }
            check!(u8 u16 u32 u64 u128);
        }
    }
}
