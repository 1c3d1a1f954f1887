//! Half precision: whole slices of `f16` and `bf16` to `f32` and back, and doubles rounded once.
//!
//! Arithmetic on halves is done in `f32`; these are the two ends of it. Narrowing rounds to the
//! nearest, ties to even, overflows to infinity, keeps subnormal numbers, and keeps NaN a NaN. Where
//! the level has them, the instructions of F16C do the work; elsewhere it is branch-free integer
//! code that vectorises.

use ::half::{bf16, f16};

use crate::addend::Addend;
use crate::cpu::level::{Kind, Level};

/// `to` becomes `from`, exactly, for as long as both last.
#[inline]
pub fn widen_f16(level: Level, from: &[f16], to: &mut [f32]) {
    match level.kind() {
        Kind::Baseline => map(from, to, f16::widen),
        // SAFETY: a `Level` exists only where the machine has it.
        #[cfg(target_arch = "x86_64")]
        Kind::Avx2 | Kind::Avx512 => unsafe { x86::widen(from, to) },
    }
}

/// `to` becomes `from`, rounded, for as long as both last.
#[inline]
pub fn narrow_f16(level: Level, from: &[f32], to: &mut [f16]) {
    match level.kind() {
        Kind::Baseline => map(from, to, f16_from_f32),
        // SAFETY: a `Level` exists only where the machine has it.
        #[cfg(target_arch = "x86_64")]
        Kind::Avx2 | Kind::Avx512 => unsafe { x86::narrow(from, to) },
    }
}

/// `to` becomes `from`, exactly, for as long as both last.
#[inline]
pub fn widen_bf16(level: Level, from: &[bf16], to: &mut [f32]) {
    match level.kind() {
        Kind::Baseline => map(from, to, bf16::widen),
        // SAFETY: a `Level` exists only where the machine has it.
        #[cfg(target_arch = "x86_64")]
        Kind::Avx2 | Kind::Avx512 => unsafe { x86::map(from, to, bf16::widen) },
    }
}

/// `to` becomes `from`, rounded, for as long as both last.
#[inline]
pub fn narrow_bf16(level: Level, from: &[f32], to: &mut [bf16]) {
    match level.kind() {
        Kind::Baseline => map(from, to, bf16_from_f32),
        // SAFETY: a `Level` exists only where the machine has it.
        #[cfg(target_arch = "x86_64")]
        Kind::Avx2 | Kind::Avx512 => unsafe { x86::map(from, to, bf16_from_f32) },
    }
}

#[inline(always)]
fn map<A: Copy, B>(from: &[A], to: &mut [B], each: impl Fn(A) -> B) {
    for (a, b) in from.iter().zip(to) {
        *b = each(*a);
    }
}

/// The nearest `f16`.
#[inline(always)]
pub fn f16_from_f32(x: f32) -> f16 {
    // Exponents are stored with 127 added in one, with 15 in the other.
    const SMALLEST_NORMAL: u32 = (127 - 14) << 23;
    const TOO_LARGE: u32 = (127 + 16) << 23;
    const INFINITE: u32 = 0x7f80_0000;
    // At one half, the last place of an `f32` is that of a subnormal `f16`.
    const HALF: f32 = 0.5;
    let bits = x.to_bits();
    let (sign, rest) = (bits >> 16 & 0x8000, bits & 0x7fff_ffff);
    let tie = rest >> 13 & 1;
    let normal = rest.wrapping_sub((127 - 15) << 23).wrapping_add(0xfff + tie) >> 13;
    let subnormal = (f32::from_bits(rest) + HALF).to_bits().wrapping_sub(HALF.to_bits());
    let nan = 0x7e00 | rest >> 13 & 0x3ff;
    let finite = if rest < SMALLEST_NORMAL { subnormal } else { normal };
    let number = if rest < TOO_LARGE { finite } else { 0x7c00 };
    let any = if rest > INFINITE { nan } else { number };
    f16::from_bits((sign | any) as u16)
}

/// The nearest `bf16`.
#[inline(always)]
pub fn bf16_from_f32(x: f32) -> bf16 {
    let bits = x.to_bits();
    let number = bits.wrapping_add(0x7fff + (bits >> 16 & 1)) >> 16;
    let nan = bits >> 16 | 0x40;
    let any = if bits & 0x7fff_ffff > 0x7f80_0000 { nan } else { number };
    bf16::from_bits(any as u16)
}

/// The nearest `f16`, rounded once.
#[inline(always)]
pub fn f16_from_f64(x: f64) -> f16 {
    f16_from_f32(to_odd(x))
}

/// The nearest `bf16`, rounded once.
#[inline(always)]
pub fn bf16_from_f64(x: f64) -> bf16 {
    bf16_from_f32(to_odd(x))
}

/// The number, or of its two neighbours the one whose last bit is set. It lies on the same side of
/// every midpoint between halves as the number does, so that rounding it again is rounding once.
#[inline(always)]
fn to_odd(x: f64) -> f32 {
    let near = x as f32;
    let back = f64::from(near);
    let below = near.to_bits().wrapping_sub(u32::from(back.abs() > x.abs()));
    let odd = f32::from_bits(below | 1);
    if (back < x) | (back > x) { odd } else { near }
}

/// The same by instructions that not every machine has.
#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{
        _MM_FROUND_TO_NEAREST_INT, _mm_loadu_si128, _mm_storeu_si128, _mm256_cvtph_ps,
        _mm256_cvtps_ph, _mm256_loadu_ps, _mm256_storeu_ps,
    };

    use ::half::f16;

    use super::f16_from_f32;
    use crate::addend::Addend;
    use crate::compiled_for_levels;

    compiled_for_levels! {
        /// [`super::map`], compiled for AVX2.
        ///
        /// # Safety
        ///
        /// The machine has the features.
        pub(super) unsafe fn map<A: Copy, B>(from: &[A], to: &mut [B], each: impl Fn(A) -> B) {
            super::map(from, to, each);
        }
    }

    compiled_for_levels! {
        /// # Safety
        ///
        /// The machine has the features.
        pub(super) unsafe fn widen(from: &[f16], to: &mut [f32]) {
            let whole = from.len().min(to.len()) / 8 * 8;
            let (from, last) = from.split_at(whole);
            let (to, last_to) = to.split_at_mut(whole);
            for (from, to) in from.chunks_exact(8).zip(to.chunks_exact_mut(8)) {
                // SAFETY: both chunks have eight elements; an `f16` is 16 bits.
                unsafe {
                    let halves = _mm_loadu_si128(from.as_ptr().cast());
                    _mm256_storeu_ps(to.as_mut_ptr(), _mm256_cvtph_ps(halves));
                }
            }
            super::map(last, last_to, f16::widen);
        }
    }

    compiled_for_levels! {
        /// # Safety
        ///
        /// The machine has the features.
        pub(super) unsafe fn narrow(from: &[f32], to: &mut [f16]) {
            let whole = from.len().min(to.len()) / 8 * 8;
            let (from, last) = from.split_at(whole);
            let (to, last_to) = to.split_at_mut(whole);
            for (from, to) in from.chunks_exact(8).zip(to.chunks_exact_mut(8)) {
                // SAFETY: both chunks have eight elements; an `f16` is 16 bits.
                unsafe {
                    let numbers = _mm256_loadu_ps(from.as_ptr());
                    let halves = _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(numbers);
                    _mm_storeu_si128(to.as_mut_ptr().cast(), halves);
                }
            }
            super::map(last, last_to, f16_from_f32);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same bits, or both NaN.
    fn same(a: f32, b: f32) -> bool {
        a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan()
    }

    #[test]
    fn every_half_widens_to_its_value_at_every_level() {
        let bits: Vec<u16> = (0..=u16::MAX).step_by(if cfg!(miri) { 397 } else { 1 }).collect();
        let halves: Vec<f16> = bits.iter().map(|&bits| f16::from_bits(bits)).collect();
        let brains: Vec<bf16> = bits.iter().map(|&bits| bf16::from_bits(bits)).collect();
        let mut to = vec![0.0; bits.len()];
        for level in Level::available() {
            // From the second on, so that the last few are not a whole vector.
            widen_f16(level, &halves[1..], &mut to[1..]);
            for (half, &wide) in halves.iter().zip(&to).skip(1) {
                assert!(same(wide, half.to_f32()), "{half:?} at {level:?}: {wide}");
            }
            widen_bf16(level, &brains[1..], &mut to[1..]);
            for (brain, &wide) in brains.iter().zip(&to).skip(1) {
                assert!(same(wide, brain.to_f32()), "{brain:?} at {level:?}: {wide}");
            }
        }
    }

    /// A kind of half under test.
    struct Kind<H> {
        of_bits: fn(u16) -> H,
        bits: fn(H) -> u16,
        wide: fn(H) -> f64,
        infinite: u16,
        /// What the exponent is for that infinity.
        beyond: f64,
        once: fn(f64) -> H,
        narrow: fn(Level, &[f32], &mut [H]),
    }

    /// Every half, and every midpoint of two neighbours and the numbers beside it, from doubles and
    /// from singles: the half below, the even one, the half above.
    fn round_as_they_should<H: Copy>(kind: &Kind<H>) {
        let (mut singles, mut expected) = (Vec::new(), Vec::new());
        let mut hold = |x: f64, bits: u16| {
            for (x, bits) in [(x, bits), (-x, bits | 0x8000)] {
                assert_eq!((kind.bits)((kind.once)(x)), bits, "{x:e}");
                if f64::from(x as f32) == x {
                    singles.push(x as f32);
                    expected.push(bits);
                }
            }
        };
        for bits in (0..kind.infinite).step_by(if cfg!(miri) { 997 } else { 1 }) {
            let low = (kind.wide)((kind.of_bits)(bits));
            let high = match bits + 1 {
                next if next == kind.infinite => kind.beyond,
                next => (kind.wide)((kind.of_bits)(next)),
            };
            let middle = f64::midpoint(low, high);
            let even = bits + (bits & 1);
            hold(low, bits);
            for (x, bits) in [
                (middle, even),
                (middle.next_down(), bits),
                (middle.next_up(), bits + 1),
                (f64::from((middle as f32).next_down()), bits),
                (f64::from((middle as f32).next_up()), bits + 1),
            ] {
                hold(x, bits);
            }
        }
        for x in [kind.beyond, 1e60, f64::MAX, f64::INFINITY] {
            hold(x, kind.infinite);
        }
        hold(5e-324, 0);
        for level in Level::available() {
            let mut to = vec![(kind.of_bits)(0); singles.len()];
            (kind.narrow)(level, &singles, &mut to);
            for ((x, &to), &bits) in singles.iter().zip(&to).zip(&expected) {
                assert_eq!((kind.bits)(to), bits, "{x:e} at {level:?}");
            }
        }
    }

    #[test]
    fn numbers_round_to_the_nearest_half_once() {
        round_as_they_should(&Kind {
            of_bits: f16::from_bits,
            bits: f16::to_bits,
            wide: f16::to_f64,
            infinite: 0x7c00,
            beyond: 65536.0,
            once: f16_from_f64,
            narrow: narrow_f16,
        });
        round_as_they_should(&Kind {
            of_bits: bf16::from_bits,
            bits: bf16::to_bits,
            wide: bf16::to_f64,
            infinite: 0x7f80,
            beyond: 128_f64.exp2(),
            once: bf16_from_f64,
            narrow: narrow_bf16,
        });
    }

    #[test]
    fn singles_of_any_bits_narrow_as_another_crate_does() {
        // Every exponent comes up, and every pattern of the bits that decide.
        let x: Vec<f32> =
            (0..1 << 17).map(|i: u32| f32::from_bits(i.wrapping_mul(0x9e37_79b1))).collect();
        let x = [&x[..], &[f32::NAN, -f32::NAN, f32::from_bits(0x7f80_0001)]].concat();
        let mut halves = vec![f16::ZERO; x.len()];
        let mut brains = vec![bf16::ZERO; x.len()];
        for level in Level::available() {
            narrow_f16(level, &x, &mut halves);
            narrow_bf16(level, &x, &mut brains);
            for ((x, half), brain) in x.iter().zip(&halves).zip(&brains) {
                let expected = (f16::from_f32_const(*x), bf16::from_f32_const(*x));
                let nan = half.is_nan() && brain.is_nan() && x.is_nan();
                assert!(nan || (*half, *brain) == expected, "{x:e} at {level:?}");
            }
            assert!(f16_from_f64(f64::NAN).is_nan() && bf16_from_f64(f64::NAN).is_nan());
        }
    }
}
