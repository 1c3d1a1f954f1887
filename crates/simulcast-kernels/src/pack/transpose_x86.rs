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

use crate::cpu::nontemporal::{LINE, Strip};

/// The rounds, for vectors of a width.
macro_rules! rounds {
    ($name:ident, $vector:ty, $feature:literal, $($size:pat => $low:ident, $high:ident;)*) => {
        /// Turns `SIDE` vectors over, in every 16 bytes of them.
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
    narrow, __m128i, "sse2",
    1 => _mm_unpacklo_epi8, _mm_unpackhi_epi8;
    2 => _mm_unpacklo_epi16, _mm_unpackhi_epi16;
    4 => _mm_unpacklo_epi32, _mm_unpackhi_epi32;
    _ => _mm_unpacklo_epi64, _mm_unpackhi_epi64;
}

rounds! {
    wide, __m256i, "avx2",
    1 => _mm256_unpacklo_epi8, _mm256_unpackhi_epi8;
    2 => _mm256_unpacklo_epi16, _mm256_unpackhi_epi16;
    4 => _mm256_unpacklo_epi32, _mm256_unpackhi_epi32;
    _ => _mm256_unpacklo_epi64, _mm256_unpackhi_epi64;
}

rounds! {
    whole, __m512i, "avx512f",
    4 => _mm512_unpacklo_epi32, _mm512_unpackhi_epi32;
    _ => _mm512_unpacklo_epi64, _mm512_unpackhi_epi64;
}

/// `SIDE` columns of `SIDE` elements become rows.
///
/// # Safety
///
/// The invariant of this module.
#[inline(always)]
pub(super) unsafe fn one<const SIZE: usize, const SIDE: usize>(
    dst: *mut u8,
    pitch: isize,
    src: *const u8,
    step: isize,
) {
    let column = |n: usize| src.wrapping_offset(n.cast_signed() * step).cast();
    // SAFETY: the caller keeps the invariant, and every x86-64 has the instructions.
    unsafe {
        let columns = std::array::from_fn(|n| _mm_loadu_si128(column(n)));
        for (row, value) in narrow::<SIZE, SIDE>(columns).into_iter().enumerate() {
            _mm_storeu_si128(dst.offset(row.cast_signed() * pitch).cast(), value);
        }
    }
}

/// Twice as many columns of twice as many elements: four squares at once. A line is read in two pieces,
/// not in four: where columns are a power of two apart, it is soon pushed out by the next ones.
///
/// # Safety
///
/// The invariant of this module, and the machine has AVX2.
#[target_feature(enable = "avx2")]
#[inline]
pub(super) unsafe fn four<const SIZE: usize, const SIDE: usize>(
    dst: *mut u8,
    pitch: isize,
    src: *const u8,
    step: isize,
) {
    let column = |n: usize| src.wrapping_offset(n.cast_signed() * step).cast();
    let row = |n: usize| dst.wrapping_offset(n.cast_signed() * pitch).cast();
    // SAFETY: the caller keeps the invariant.
    unsafe {
        let left = std::array::from_fn(|n| _mm256_loadu_si256(column(n)));
        let left = wide::<SIZE, SIDE>(left);
        let right = std::array::from_fn(|n| _mm256_loadu_si256(column(SIDE + n)));
        let right = wide::<SIZE, SIDE>(right);
        // The halves of a vector are of rows that are `SIDE` apart.
        for (n, (a, b)) in left.into_iter().zip(right).enumerate() {
            _mm256_storeu_si256(row(n), _mm256_permute2x128_si256::<0x20>(a, b));
            _mm256_storeu_si256(row(SIDE + n), _mm256_permute2x128_si256::<0x31>(a, b));
        }
    }
}

/// Columns become rows of a strip that go past the caches, in squares whose side is a line: each line is read once,
/// written once, and nowhere between.
///
/// # Safety
///
/// The invariant of this module; `SIZE` is at least 4; rows and columns are whole lines, the rows begin at lines, and
/// the machine has AVX-512.
#[target_feature(enable = "avx512f")]
pub(super) unsafe fn past<const SIZE: usize, const SIDE: usize>(
    dst: *mut u8,
    strip: &Strip,
    src: *const u8,
    step: isize,
    (rows, columns): (usize, usize),
) {
    let (side, mut ask) = (LINE / SIZE, strip.ask);
    for row in (0..rows).step_by(side) {
        for column in (0..columns).step_by(side) {
            let from = |n: usize| {
                let right = (column + n).cast_signed() * step;
                src.wrapping_offset(right).wrapping_add(row * SIZE).cast()
            };
            let to = |n: usize| {
                let down = (row + n).cast_signed() * strip.pitch;
                dst.wrapping_offset(down).wrapping_add(column * SIZE).cast()
            };
            // SAFETY: the caller keeps the conditions.
            unsafe {
                let [a, b, c, d] = std::array::from_fn(|group| {
                    let column = |n: usize| _mm512_loadu_si512(from(group * SIDE + n));
                    whole::<SIZE, SIDE>(std::array::from_fn(column))
                });
                // The quarters of a vector are of rows that are `SIDE` apart.
                for n in 0..SIDE {
                    let even = _mm512_shuffle_i32x4::<0x88>(a[n], b[n]);
                    let odd = _mm512_shuffle_i32x4::<0xdd>(a[n], b[n]);
                    let more_even = _mm512_shuffle_i32x4::<0x88>(c[n], d[n]);
                    let more_odd = _mm512_shuffle_i32x4::<0xdd>(c[n], d[n]);
                    // Two lines are as many as a row has, for each of which some are asked for.
                    ask.some();
                    _mm512_stream_si512(to(n), _mm512_shuffle_i32x4::<0x88>(even, more_even));
                    _mm512_stream_si512(to(SIDE + n), _mm512_shuffle_i32x4::<0x88>(odd, more_odd));
                    ask.some();
                    let (third, fourth) = (to(2 * SIDE + n), to(3 * SIDE + n));
                    _mm512_stream_si512(third, _mm512_shuffle_i32x4::<0xdd>(even, more_even));
                    _mm512_stream_si512(fourth, _mm512_shuffle_i32x4::<0xdd>(odd, more_odd));
                }
            }
        }
    }
}
