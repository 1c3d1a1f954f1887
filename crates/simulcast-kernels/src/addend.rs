//! Addends: what gradients are made of, and what they are summed in.

#[cfg(feature = "half")]
use half::{bf16, f16};

use crate::cpu::level::Level;
use crate::dtype::Complex;
#[cfg(feature = "half")]
use crate::math::half::{bf16_from_f32, f16_from_f32};
use crate::reduce::Reducer;

/// An element that can be summed.
///
/// Implemented for the numbers: floats and complex numbers in their own type, `f16` and `bf16` in
/// `f32`, integers in their own type, wrapping. Exact types of your own take five lines; they are aligned to 64 bytes
/// at most.
///
/// ```
/// # extern crate simulcast_kernels as simulcast;
/// use simulcast::addend::Addend; // `simulcast::Addend`
///
/// /// Money, in cents.
/// #[derive(Clone, Copy)]
/// struct Cents(i32);
///
/// impl Addend for Cents {
///     type Sum = i64;
///     const ZERO: i64 = 0;
///     fn widen(self) -> i64 {
///         self.0.into()
///     }
///     fn plus(a: i64, b: i64) -> i64 {
///         a + b
///     }
///     fn narrow(sum: i64) -> Self {
///         Self(sum as i32)
///     }
/// }
/// assert_eq!(Cents::narrow(Cents::plus(Cents(150).widen(), Cents(250).widen())).0, 400);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be summed",
    note = "numbers can, and types that implement `simulcast::Addend`",
    note = "count where a mask is true with `zip((&mask,)).count(|&set| set)`"
)]
pub trait Addend: Copy + Send + Sync {
    /// What sums are kept in.
    type Sum: Copy + Send + Sync;

    /// The sum of nothing.
    const ZERO: Self::Sum;

    /// What sums begin with: added to anything it gives just that. Of floats it is -0.0, so that a
    /// sum of negative zeros keeps its sign.
    const NEUTRAL: Self::Sum = Self::ZERO;

    /// The element as a sum.
    #[must_use]
    fn widen(self) -> Self::Sum;

    /// Neighbours as sums, a multiple of eight.
    ///
    /// # Safety
    ///
    /// `from` reaches that many elements; with `WIDE`, the caller is compiled for F16C.
    #[doc(hidden)]
    #[inline(always)]
    unsafe fn widen_all<const WIDE: bool, const N: usize>(from: *const Self) -> [Self::Sum; N] {
        // SAFETY: by the condition of this function.
        unsafe { widen_each(from) }
    }

    /// Whether sums may be moved as integers of their size, which is 1, 2, 4, 8 or 16.
    #[doc(hidden)]
    const PLAIN: bool = false;

    /// The loops that sum elements. Those of this crate's types are compiled here where there are operations too, and
    /// otherwise, as those of other types, in the crate that sums.
    #[doc(hidden)]
    #[inline]
    fn reducer(level: Level) -> Reducer {
        Reducer::sums::<Self>(level)
    }

    /// The sum of two sums.
    #[must_use]
    fn plus(a: Self::Sum, b: Self::Sum) -> Self::Sum;

    /// The sum as an element.
    #[must_use]
    fn narrow(sum: Self::Sum) -> Self;
}

/// Neighbours as sums, one by one. A loop: `map` of an array stays a call in crates that are compiled without
/// `lto`, and nothing around it vectorises.
///
/// # Safety
///
/// `from` reaches that many elements.
#[inline(always)]
unsafe fn widen_each<T: Addend, const N: usize>(from: *const T) -> [T::Sum; N] {
    let mut sums = [T::NEUTRAL; N];
    for (at, sum) in sums.iter_mut().enumerate() {
        // SAFETY: by the condition of this function.
        *sum = unsafe { from.add(at).read() }.widen();
    }
    sums
}

macro_rules! addend {
    ($($type:ty as $bits:ty: $zero:expr, $neutral:expr, |$a:ident, $b:ident| $plus:expr;)*) => { $(
        impl Addend for $type {
            type Sum = Self;
            const ZERO: Self = $zero;
            const NEUTRAL: Self = $neutral;
            const PLAIN: bool = true;
            #[cfg_attr(not(feature = "ops"), inline)]
            fn reducer(level: Level) -> Reducer {
                // Sums of integers that wrap do not depend on the sign.
                Reducer::sums::<$bits>(level)
            }
            #[inline(always)]
            fn widen(self) -> Self {
                self
            }
            #[inline(always)]
            fn plus($a: Self, $b: Self) -> Self {
                $plus
            }
            #[inline(always)]
            fn narrow(sum: Self) -> Self {
                sum
            }
        }
    )* };
}

addend! {
    f32 as f32: 0.0, -0.0, |a, b| a + b;
    f64 as f64: 0.0, -0.0, |a, b| a + b;
    Complex<f32> as Complex<f32>: Complex::new(0.0, 0.0), Complex::new(-0.0, -0.0), |a, b| a + b;
    Complex<f64> as Complex<f64>: Complex::new(0.0, 0.0), Complex::new(-0.0, -0.0), |a, b| a + b;
    i8 as u8: 0, 0, |a, b| a.wrapping_add(b);
    i16 as u16: 0, 0, |a, b| a.wrapping_add(b);
    i32 as u32: 0, 0, |a, b| a.wrapping_add(b);
    i64 as u64: 0, 0, |a, b| a.wrapping_add(b);
    u8 as u8: 0, 0, |a, b| a.wrapping_add(b);
    u16 as u16: 0, 0, |a, b| a.wrapping_add(b);
    u32 as u32: 0, 0, |a, b| a.wrapping_add(b);
    u64 as u64: 0, 0, |a, b| a.wrapping_add(b);
}

#[cfg(feature = "half")]
impl Addend for f16 {
    type Sum = f32;
    const ZERO: f32 = 0.0;
    const NEUTRAL: f32 = -0.0;
    const PLAIN: bool = true;

    #[cfg_attr(not(feature = "ops"), inline)]
    fn reducer(level: Level) -> Reducer {
        Reducer::sums::<Self>(level)
    }

    /// Without branches or calls, so that loops of it vectorise: the exponent is moved by a
    /// product, which is exact, and set to all ones where it was.
    #[inline(always)]
    fn widen(self) -> f32 {
        let bits = u32::from(self.to_bits());
        let (sign, rest) = ((bits & 0x8000) << 16, bits & 0x7fff);
        let moved = f32::from_bits(rest << 13) * f32::from_bits((127 + 112) << 23);
        let special = if rest >= 0x7c00 { 0x7f80_0000 } else { 0 };
        f32::from_bits(sign | moved.to_bits() | special)
    }

    #[inline(always)]
    unsafe fn widen_all<const WIDE: bool, const N: usize>(from: *const Self) -> [f32; N] {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if WIDE {
            use std::arch::x86_64::{_mm_loadu_si128, _mm256_cvtph_ps, _mm256_storeu_ps};
            let mut sums = [0.0; N];
            for at in (0..N).step_by(8) {
                // SAFETY: eight elements are a vector, and the caller has the instructions.
                unsafe {
                    let own = _mm256_cvtph_ps(_mm_loadu_si128(from.add(at).cast()));
                    _mm256_storeu_ps(sums.as_mut_ptr().add(at), own);
                }
            }
            return sums;
        }
        // SAFETY: by the condition of this function.
        unsafe { widen_each(from) }
    }

    #[inline(always)]
    fn plus(a: f32, b: f32) -> f32 {
        a + b
    }

    #[inline(always)]
    fn narrow(sum: f32) -> Self {
        f16_from_f32(sum)
    }
}

#[cfg(feature = "half")]
impl Addend for bf16 {
    type Sum = f32;
    const ZERO: f32 = 0.0;
    const NEUTRAL: f32 = -0.0;
    const PLAIN: bool = true;

    #[cfg_attr(not(feature = "ops"), inline)]
    fn reducer(level: Level) -> Reducer {
        Reducer::sums::<Self>(level)
    }

    #[inline(always)]
    fn widen(self) -> f32 {
        f32::from_bits(u32::from(self.to_bits()) << 16)
    }

    #[inline(always)]
    fn plus(a: f32, b: f32) -> f32 {
        a + b
    }

    #[inline(always)]
    fn narrow(sum: f32) -> Self {
        bf16_from_f32(sum)
    }
}

#[cfg(all(test, feature = "half"))]
mod tests {
    use super::*;

    // [E_BROADCAST_ANY_FUNC_3040]
    #[test]
    fn every_half_widens_to_its_value() {
        for bits in (0..=u16::MAX).step_by(if cfg!(miri) { 97 } else { 1 }) {
            let half = f16::from_bits(bits);
            let same = half.widen() == half.to_f32() || half.widen().is_nan() && half.is_nan();
            assert!(same, "{bits:#x}: {} is not {}", half.widen(), half.to_f32());
            let brain = bf16::from_bits(bits);
            assert!(brain.widen() == brain.to_f32() || brain.widen().is_nan() && brain.is_nan());
        }
    }
}
