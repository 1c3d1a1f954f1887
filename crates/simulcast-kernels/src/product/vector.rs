//! Vectors of a product's loops: AVX2, AVX-512, and arrays of 16 bytes that every machine has.

/// A vector. Its functions are called where the machine has the instructions, by code that is compiled for them.
pub(super) trait Vector: Copy {
    type Element: Copy + Default;

    const LANES: usize;

    unsafe fn zero() -> Self;
    unsafe fn all(value: Self::Element) -> Self;
    unsafe fn load(from: *const Self::Element) -> Self;
    unsafe fn store(self, to: *mut Self::Element);
    unsafe fn add(self, other: Self) -> Self;
    /// `self + a * b`, rounded twice: not every level can fuse them.
    unsafe fn plus(self, a: Self, b: Self) -> Self;
    /// The sum of the lanes, in halves.
    unsafe fn sum(self) -> Self::Element;
}

/// Two vectors that are one of twice the lanes.
#[derive(Clone, Copy)]
pub(super) struct Pair<V>(V, V);

impl<V: Vector> Vector for Pair<V> {
    type Element = V::Element;

    const LANES: usize = 2 * V::LANES;

    #[inline(always)]
    unsafe fn zero() -> Self {
        // SAFETY: the caller is compiled for the instructions, here and in all that follow.
        unsafe { Self(V::zero(), V::zero()) }
    }
    #[inline(always)]
    unsafe fn all(value: Self::Element) -> Self {
        // SAFETY: as above.
        unsafe { Self(V::all(value), V::all(value)) }
    }
    #[inline(always)]
    unsafe fn load(from: *const Self::Element) -> Self {
        // SAFETY: as above; the caller has so many elements there.
        unsafe { Self(V::load(from), V::load(from.add(V::LANES))) }
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut Self::Element) {
        // SAFETY: as above; the caller has so many elements there.
        unsafe {
            self.0.store(to);
            self.1.store(to.add(V::LANES));
        }
    }
    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        // SAFETY: as above.
        unsafe { Self(self.0.add(other.0), self.1.add(other.1)) }
    }
    #[inline(always)]
    unsafe fn plus(self, a: Self, b: Self) -> Self {
        // SAFETY: as above.
        unsafe { Self(self.0.plus(a.0, b.0), self.1.plus(a.1, b.1)) }
    }
    #[inline(always)]
    unsafe fn sum(self) -> Self::Element {
        // SAFETY: as above.
        unsafe { self.0.add(self.1).sum() }
    }
}

/// Arrays that the compiler keeps in vector registers.
macro_rules! portable {
    ($($type:ty: $lanes:literal, |$own:ident| $sum:expr;)*) => {$(
        impl Vector for [$type; $lanes] {
            type Element = $type;

            const LANES: usize = $lanes;

            #[inline(always)]
            unsafe fn zero() -> Self {
                [0.0; $lanes]
            }
            #[inline(always)]
            unsafe fn all(value: $type) -> Self {
                [value; $lanes]
            }
            #[inline(always)]
            unsafe fn load(from: *const $type) -> Self {
                // SAFETY: the caller has so many elements there.
                unsafe { from.cast::<Self>().read() }
            }
            #[inline(always)]
            unsafe fn store(self, to: *mut $type) {
                // SAFETY: the caller has so many elements there.
                unsafe { to.cast::<Self>().write(self) }
            }
            #[inline(always)]
            unsafe fn add(mut self, other: Self) -> Self {
                for lane in 0..$lanes {
                    self[lane] += other[lane];
                }
                self
            }
            #[inline(always)]
            unsafe fn plus(mut self, a: Self, b: Self) -> Self {
                for lane in 0..$lanes {
                    self[lane] += a[lane] * b[lane];
                }
                self
            }
            #[inline(always)]
            unsafe fn sum(self) -> $type {
                let $own = self;
                $sum
            }
        }
    )*};
}

portable! {
    f32: 4, |own| (own[0] + own[2]) + (own[1] + own[3]);
    f64: 2, |own| own[0] + own[1];
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::Vector;

    macro_rules! vector {
        ($($vector:ident of $type:ty: $lanes:literal
            $zero:ident $all:ident $load:ident $store:ident $add:ident $mul:ident, |$own:ident| $sum:expr;)*) => {$(
            #[allow(unused_unsafe, reason = "needed by the oldest compiler that is supported")]
            impl Vector for $vector {
                type Element = $type;

                const LANES: usize = $lanes;

                #[inline(always)]
                unsafe fn zero() -> Self {
                    // SAFETY: the caller is compiled for the instructions, here and in all that follow.
                    unsafe { $zero() }
                }
                #[inline(always)]
                unsafe fn all(value: $type) -> Self {
                    // SAFETY: as above.
                    unsafe { $all(value) }
                }
                #[inline(always)]
                unsafe fn load(from: *const $type) -> Self {
                    // SAFETY: as above; the caller has so many elements there.
                    unsafe { $load(from) }
                }
                #[inline(always)]
                unsafe fn store(self, to: *mut $type) {
                    // SAFETY: as above; the caller has so many elements there.
                    unsafe { $store(to, self) }
                }
                #[inline(always)]
                unsafe fn add(self, other: Self) -> Self {
                    // SAFETY: as above.
                    unsafe { $add(self, other) }
                }
                #[inline(always)]
                unsafe fn plus(self, a: Self, b: Self) -> Self {
                    // SAFETY: as above.
                    unsafe { $add(self, $mul(a, b)) }
                }
                #[inline(always)]
                unsafe fn sum(self) -> $type {
                    let $own = self;
                    // SAFETY: as above.
                    unsafe { $sum }
                }
            }
        )*};
    }

    /// The sum of the lanes of half a register of AVX2.
    ///
    /// # Safety
    ///
    /// The caller is compiled for AVX2.
    #[inline(always)]
    #[allow(unused_unsafe, reason = "needed by the oldest compiler that is supported")]
    unsafe fn four(own: __m128) -> f32 {
        // SAFETY: the caller keeps the condition.
        unsafe {
            let two = _mm_add_ps(own, _mm_movehl_ps(own, own));
            _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)))
        }
    }

    /// As [`four`].
    ///
    /// # Safety
    ///
    /// The caller is compiled for AVX2.
    #[inline(always)]
    #[allow(unused_unsafe, reason = "needed by the oldest compiler that is supported")]
    unsafe fn two(own: __m128d) -> f64 {
        // SAFETY: the caller keeps the condition.
        unsafe { _mm_cvtsd_f64(_mm_add_sd(own, _mm_unpackhi_pd(own, own))) }
    }

    vector! {
        __m256 of f32: 8 _mm256_setzero_ps _mm256_set1_ps _mm256_loadu_ps _mm256_storeu_ps _mm256_add_ps _mm256_mul_ps,
            |own| four(_mm_add_ps(_mm256_castps256_ps128(own), _mm256_extractf128_ps::<1>(own)));
        __m256d of f64: 4 _mm256_setzero_pd _mm256_set1_pd _mm256_loadu_pd _mm256_storeu_pd _mm256_add_pd _mm256_mul_pd,
            |own| two(_mm_add_pd(_mm256_castpd256_pd128(own), _mm256_extractf128_pd::<1>(own)));
        __m512 of f32: 16 _mm512_setzero_ps _mm512_set1_ps _mm512_loadu_ps _mm512_storeu_ps _mm512_add_ps _mm512_mul_ps,
            |own| _mm256_add_ps(_mm512_castps512_ps256(own), _mm512_extractf32x8_ps::<1>(own)).sum();
        __m512d of f64: 8 _mm512_setzero_pd _mm512_set1_pd _mm512_loadu_pd _mm512_storeu_pd _mm512_add_pd _mm512_mul_pd,
            |own| _mm256_add_pd(_mm512_castpd512_pd256(own), _mm512_extractf64x4_pd::<1>(own)).sum();
    }
}
