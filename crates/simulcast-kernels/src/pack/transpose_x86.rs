//! Transposition of squares of elements that fit in vector registers (SSE2, AVX2).
//!
//! `n` vectors of `n` elements are transposed in `log2 n` equal rounds: each interleaves the first half of the vectors with
//! the second half. Seen as one row of `n²` elements, a round rotates the bits of every element's index by one; after
//! `log2 n` rounds, the row bits and the column bits have changed places. One scheme serves elements of every size.
//!
//! Invariant of every call: `SIZE * SIDE` is 16; strides are in bytes, and the source and the
//! destination reach the elements that they name.

use std::arch::x86_64::*;

/// The rounds, for vectors of a width.
macro_rules! rounds {
    ($name:ident, $vector:ty, $feature:literal, $($size:pat => $low:ident, $high:ident;)*) => {
        /// Transposes `SIDE` vectors, within each 16 bytes of them.
        #[target_feature(enable = $feature)]
        #[inline]
        fn $name<const SIZE: usize, const SIDE: usize>(mut rows: [$vector; SIDE]) -> [$vector; SIDE] {
            for _ in 0..SIDE.trailing_zeros() {
                let before = rows;
                for half in 0..SIDE / 2 {
                    let (a, b) = (before[half], before[half + SIDE / 2]);
                    (rows[2 * half], rows[2 * half + 1]) = match SIZE {
                        $($size => ($low(a, b), $high(a, b)),)*
                    };
                }
            }
            rows
        }
    };
}

rounds! {
    transpose_sse2, __m128i, "sse2",
    1 => _mm_unpacklo_epi8, _mm_unpackhi_epi8;
    2 => _mm_unpacklo_epi16, _mm_unpackhi_epi16;
    4 => _mm_unpacklo_epi32, _mm_unpackhi_epi32;
    _ => _mm_unpacklo_epi64, _mm_unpackhi_epi64;
}

rounds! {
    transpose_avx2, __m256i, "avx2",
    1 => _mm256_unpacklo_epi8, _mm256_unpackhi_epi8;
    2 => _mm256_unpacklo_epi16, _mm256_unpackhi_epi16;
    4 => _mm256_unpacklo_epi32, _mm256_unpackhi_epi32;
    _ => _mm256_unpacklo_epi64, _mm256_unpackhi_epi64;
}

/// `SIDE` columns of `SIDE` elements become rows.
///
/// # Safety
///
/// The invariant of this module.
#[inline(always)]
pub(super) unsafe fn square<const SIZE: usize, const SIDE: usize>(
    dst: *mut u8,
    pitch: isize,
    src: *const u8,
    step: isize,
) {
    let column = |n: usize| src.wrapping_offset(n.cast_signed() * step).cast();
    // SAFETY: the invariant of this module reaches `SIDE` columns and rows; every x86-64 has SSE2.
    unsafe {
        let columns = std::array::from_fn(|n| _mm_loadu_si128(column(n)));
        for (row, value) in transpose_sse2::<SIZE, SIDE>(columns).into_iter().enumerate() {
            _mm_storeu_si128(dst.offset(row.cast_signed() * pitch).cast(), value);
        }
    }
}

/// `2 * SIDE` columns of `2 * SIDE` elements become rows: four squares at once. A cache line is read in two loads, not in
/// four: columns that are a power of two apart share a cache set, and soon evict each other.
///
/// # Safety
///
/// The invariant of this module, and the machine has AVX2.
#[target_feature(enable = "avx2")]
#[inline]
pub(super) unsafe fn large_square<const SIZE: usize, const SIDE: usize>(
    dst: *mut u8,
    pitch: isize,
    src: *const u8,
    step: isize,
) {
    let column = |n: usize| src.wrapping_offset(n.cast_signed() * step).cast();
    let row = |n: usize| dst.wrapping_offset(n.cast_signed() * pitch).cast();
    // SAFETY: the invariant of this module reaches twice as many columns and rows; the caller has AVX2.
    unsafe {
        let left = std::array::from_fn(|n| _mm256_loadu_si256(column(n)));
        let left = transpose_avx2::<SIZE, SIDE>(left);
        let right = std::array::from_fn(|n| _mm256_loadu_si256(column(SIDE + n)));
        let right = transpose_avx2::<SIZE, SIDE>(right);
        // The halves of a vector belong to rows that are `SIDE` apart.
        for (n, (a, b)) in left.into_iter().zip(right).enumerate() {
            _mm256_storeu_si256(row(n), _mm256_permute2x128_si256::<0x20>(a, b));
            _mm256_storeu_si256(row(SIDE + n), _mm256_permute2x128_si256::<0x31>(a, b));
        }
    }
}
