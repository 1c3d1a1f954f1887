//! Vectors of the register machine: AVX2 and AVX-512.

use std::arch::x86_64::*;

use crate::math::Real;

/// A vector. Its functions are called where the machine has the instructions, by code that is compiled for them;
/// comparisons make ones and zeros.
pub(super) trait Vector: Copy {
    type Element: Real;

    unsafe fn all(value: f32) -> Self;
    unsafe fn every(element: *const u8) -> Self;
    unsafe fn load(from: *const u8) -> Self;
    /// Some words alone, a bit for each; the others are 0.
    unsafe fn load_some(from: *const u8, words: u16) -> Self;
    unsafe fn store(self, to: *mut u8);
    unsafe fn stream(self, to: *mut u8);
    unsafe fn add(self, other: Self) -> Self;
    unsafe fn sub(self, other: Self) -> Self;
    unsafe fn mul(self, other: Self) -> Self;
    unsafe fn div(self, other: Self) -> Self;
    unsafe fn sqrt(self) -> Self;
    unsafe fn or(self, other: Self) -> Self;
    unsafe fn xor(self, other: Self) -> Self;
    /// `!self & other`.
    unsafe fn and_not(self, other: Self) -> Self;
    unsafe fn compare<const HOW: i32>(self, other: Self) -> Self;
    unsafe fn round<const HOW: i32>(self) -> Self;
    /// The first where it is ones, otherwise the second.
    unsafe fn choose(self, first: Self, second: Self) -> Self;

    /// The larger one, or NaN; the second where they are equal.
    #[inline(always)]
    unsafe fn max(self, other: Self) -> Self {
        // SAFETY: the caller keeps the conditions.
        unsafe {
            let larger = self.compare::<_CMP_GT_OQ>(other);
            larger.or(self.compare::<_CMP_UNORD_Q>(self)).choose(self, other)
        }
    }

    /// The smaller one, or NaN; the second where they are equal.
    #[inline(always)]
    unsafe fn min(self, other: Self) -> Self {
        // SAFETY: the caller keeps the conditions.
        unsafe {
            let smaller = self.compare::<_CMP_LT_OQ>(other);
            smaller.or(self.compare::<_CMP_UNORD_Q>(self)).choose(self, other)
        }
    }
}

/// Writes a vector's functions; those that are more than an instruction are given as expressions.
macro_rules! vector {
    ($vector:ident of $element:ty: $all:ident $load:ident $store:ident $stream:ident
        load_some |$from:ident, $words:ident| $load_some:expr;
        compare |$this:ident, $other:ident| $compare:expr;
        choose |$which:ident, $first:ident, $second:ident| $choose:expr;
        round $round:ident;
        $($own:ident($($with:ident)?) = $instruction:ident;)*) => {
        #[allow(unused_unsafe, reason = "needed by the oldest compiler that is supported")]
        impl Vector for $vector {
            type Element = $element;

            #[inline(always)]
            unsafe fn all(value: f32) -> Self {
                // SAFETY: the caller keeps the conditions, here and in all that follow.
                unsafe { $all(value.into()) }
            }
            #[inline(always)]
            unsafe fn every(element: *const u8) -> Self {
                // SAFETY: as above.
                unsafe { $all(element.cast::<$element>().read_unaligned()) }
            }
            #[inline(always)]
            unsafe fn load(from: *const u8) -> Self {
                // SAFETY: as above.
                unsafe { $load(from.cast()) }
            }
            #[inline(always)]
            unsafe fn load_some($from: *const u8, $words: u16) -> Self {
                // SAFETY: as above.
                unsafe { $load_some }
            }
            #[inline(always)]
            unsafe fn store(self, to: *mut u8) {
                // SAFETY: as above.
                unsafe { $store(to.cast(), self) }
            }
            #[inline(always)]
            unsafe fn stream(self, to: *mut u8) {
                // SAFETY: as above.
                unsafe { $stream(to.cast(), self) }
            }
            #[inline(always)]
            unsafe fn compare<const HOW: i32>(self, $other: Self) -> Self {
                let $this = self;
                // SAFETY: as above.
                unsafe { $compare }
            }
            #[inline(always)]
            unsafe fn choose(self, $first: Self, $second: Self) -> Self {
                let $which = self;
                // SAFETY: as above.
                unsafe { $choose }
            }
            #[inline(always)]
            unsafe fn round<const HOW: i32>(self) -> Self {
                // SAFETY: as above.
                unsafe { $round::<HOW>(self) }
            }
            $(
                #[inline(always)]
                unsafe fn $own(self $(, $with: Self)?) -> Self {
                    // SAFETY: as above.
                    unsafe { $instruction(self $(, $with)?) }
                }
            )*
        }
    };
}

/// Ones for some of eight words, a bit for each.
///
/// # Safety
///
/// The caller is compiled for AVX2.
#[inline(always)]
#[allow(unused_unsafe, reason = "needed by the oldest compiler that is supported")]
unsafe fn ones(words: u16) -> __m256i {
    // SAFETY: the caller keeps the condition.
    unsafe {
        let own = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
        _mm256_cmpeq_epi32(_mm256_and_si256(_mm256_set1_epi32(words.into()), own), own)
    }
}

vector! { __m256 of f32: _mm256_set1_ps _mm256_loadu_ps _mm256_storeu_ps _mm256_stream_ps
    load_some |from, words| _mm256_castsi256_ps(_mm256_maskload_epi32(from.cast(), ones(words)));
    compare |this, other| _mm256_cmp_ps::<HOW>(this, other);
    choose |which, first, second| _mm256_blendv_ps(second, first, which);
    round _mm256_round_ps;
    add(other) = _mm256_add_ps;
    sub(other) = _mm256_sub_ps;
    mul(other) = _mm256_mul_ps;
    div(other) = _mm256_div_ps;
    sqrt() = _mm256_sqrt_ps;
    or(other) = _mm256_or_ps;
    xor(other) = _mm256_xor_ps;
    and_not(other) = _mm256_andnot_ps;
}

vector! { __m256d of f64: _mm256_set1_pd _mm256_loadu_pd _mm256_storeu_pd _mm256_stream_pd
    load_some |from, words| _mm256_castsi256_pd(_mm256_maskload_epi32(from.cast(), ones(words)));
    compare |this, other| _mm256_cmp_pd::<HOW>(this, other);
    choose |which, first, second| _mm256_blendv_pd(second, first, which);
    round _mm256_round_pd;
    add(other) = _mm256_add_pd;
    sub(other) = _mm256_sub_pd;
    mul(other) = _mm256_mul_pd;
    div(other) = _mm256_div_pd;
    sqrt() = _mm256_sqrt_pd;
    or(other) = _mm256_or_pd;
    xor(other) = _mm256_xor_pd;
    and_not(other) = _mm256_andnot_pd;
}

vector! { __m512 of f32: _mm512_set1_ps _mm512_loadu_ps _mm512_storeu_ps _mm512_stream_ps
    load_some |from, words| _mm512_castsi512_ps(_mm512_maskz_loadu_epi32(words, from.cast()));
    compare |this, other| _mm512_castsi512_ps(_mm512_movm_epi32(_mm512_cmp_ps_mask::<HOW>(this, other)));
    choose |which, first, second| {
        let which = _mm512_movepi32_mask(_mm512_castps_si512(which));
        _mm512_mask_blend_ps(which, second, first)
    };
    round _mm512_roundscale_ps;
    add(other) = _mm512_add_ps;
    sub(other) = _mm512_sub_ps;
    mul(other) = _mm512_mul_ps;
    div(other) = _mm512_div_ps;
    sqrt() = _mm512_sqrt_ps;
    or(other) = _mm512_or_ps;
    xor(other) = _mm512_xor_ps;
    and_not(other) = _mm512_andnot_ps;
}

vector! { __m512d of f64: _mm512_set1_pd _mm512_loadu_pd _mm512_storeu_pd _mm512_stream_pd
    load_some |from, words| _mm512_castsi512_pd(_mm512_maskz_loadu_epi32(words, from.cast()));
    compare |this, other| _mm512_castsi512_pd(_mm512_movm_epi64(_mm512_cmp_pd_mask::<HOW>(this, other)));
    choose |which, first, second| {
        let which = _mm512_movepi64_mask(_mm512_castpd_si512(which));
        _mm512_mask_blend_pd(which, second, first)
    };
    round _mm512_roundscale_pd;
    add(other) = _mm512_add_pd;
    sub(other) = _mm512_sub_pd;
    mul(other) = _mm512_mul_pd;
    div(other) = _mm512_div_pd;
    sqrt() = _mm512_sqrt_pd;
    or(other) = _mm512_or_pd;
    xor(other) = _mm512_xor_pd;
    and_not(other) = _mm512_andnot_pd;
}
