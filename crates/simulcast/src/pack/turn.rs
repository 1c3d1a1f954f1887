//! Turning: squares of elements that fit in vectors, rows into columns.
//!
//! As many vectors as one has elements are turned over in rounds that are all alike: the first half of
//! them is interleaved with the second. With the vectors as one row, a round rotates the bits of every
//! element's place by one; after as many rounds as a vector's elements have bits, row and column have
//! changed places. One scheme serves elements of every size.
//!
//! Invariant of every call: `SIZE * SIDE` is 16; strides are in bytes, and the source and the
//! destination reach the elements that they name.

use std::arch::x86_64::*;

macro_rules! turn {
    (
        $(#[$attribute:meta])* $name:ident, $vector:ty,
        |$from:ident, $step:ident, $row:ident| $load:expr, $store:ident,
        $($size:pat => $low:ident, $high:ident;)*
    ) => {
        $(#[$attribute])*
        pub(super) unsafe fn $name<const SIZE: usize, const SIDE: usize>(
            dst: *mut u8,
            pitch: isize,
            $from: *const u8,
            $step: isize,
        ) {
            // SAFETY: the caller keeps the invariant, and the machine has the instructions.
            unsafe {
                let mut rows: [$vector; SIDE] = std::mem::zeroed();
                for ($row, place) in rows.iter_mut().enumerate() {
                    let $row = $row.cast_signed();
                    *place = $load;
                }
                for _ in 0..SIDE.trailing_zeros() {
                    let before = rows;
                    for half in 0..SIDE / 2 {
                        let (a, b) = (before[half], before[half + SIDE / 2]);
                        (rows[2 * half], rows[2 * half + 1]) = match SIZE {
                            $($size => ($low(a, b), $high(a, b)),)*
                        };
                    }
                }
                for (row, value) in rows.into_iter().enumerate() {
                    $store(dst.offset(row.cast_signed() * pitch).cast(), value);
                }
            }
        }
    };
}

turn! {
    /// `SIDE` columns of `SIDE` elements become rows.
    ///
    /// # Safety
    ///
    /// The invariant of this module.
    #[inline(always)]
    one, __m128i,
    |src, step, row| _mm_loadu_si128(src.offset(row * step).cast()), _mm_storeu_si128,
    1 => _mm_unpacklo_epi8, _mm_unpackhi_epi8;
    2 => _mm_unpacklo_epi16, _mm_unpackhi_epi16;
    4 => _mm_unpacklo_epi32, _mm_unpackhi_epi32;
    _ => _mm_unpacklo_epi64, _mm_unpackhi_epi64;
}

turn! {
    /// Twice as many columns become rows twice as long: two squares at once.
    ///
    /// # Safety
    ///
    /// The invariant of this module, and the machine has AVX2.
    #[target_feature(enable = "avx2")]
    #[inline]
    two, __m256i,
    |src, step, row| _mm256_loadu2_m128i(
        src.offset((row + SIDE.cast_signed()) * step).cast(),
        src.offset(row * step).cast(),
    ), _mm256_storeu_si256,
    1 => _mm256_unpacklo_epi8, _mm256_unpackhi_epi8;
    2 => _mm256_unpacklo_epi16, _mm256_unpackhi_epi16;
    4 => _mm256_unpacklo_epi32, _mm256_unpackhi_epi32;
    _ => _mm256_unpacklo_epi64, _mm256_unpackhi_epi64;
}
