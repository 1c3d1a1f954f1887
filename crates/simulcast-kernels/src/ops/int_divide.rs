//! Quotients and remainders of integers: no machine divides them by vectors, floats it does.
//!
//! ```text
//! q = ⌊x / y⌋             of the magnitudes; the signs come off before, and go on after it
//!
//! all of an array by one number
//!     t = ⌊m x / 2^w⌋      q = (t + (x - t) / 2) / 2^(k - 1), for w bits, y <= 2^k and
//!                         m = ⌊2^w (2^k - y) / y⌋ + 1 (Granlund and Montgomery, 1994)
//! an array by another
//!     q = (x + 1/2) / y - 1/2, rounded to the nearest integer, in f32 for up to 16 bits and in f64 for 32;
//!     the fraction is at least 1/2y away from one that rounds another way, and errors are smaller.
//!     For 64 bits the same, where all of a tile are below 2^50; elsewhere the machine divides.
//! ```
//!
//! Results wrap, and those of a division by 0 are 0, at every level alike.

use std::marker::PhantomData;
use std::mem::MaybeUninit;

use super::{ElementOp, Weight};
use crate::ops::int::Int;

/// An unsigned integer that is divided by another.
pub(crate) trait Unsigned: Int {
    /// Whether [`Self::quotient`] holds for both.
    fn small(x: Self, y: Self) -> bool;
    /// The quotient by way of floats, where `y` is not 0; something otherwise.
    fn quotient(x: Self, y: Self) -> Self;
    /// The upper half of the product.
    fn high(self, other: Self) -> Self;
    fn wide(self) -> u128;
    /// The lower bits.
    fn low(wide: u128) -> Self;
}

macro_rules! unsigned {
    ($($type:ident $double:ident $float:ident: $magic:literal, |$x:ident| $small:expr, $of:expr;)*) => { $(
        impl Unsigned for $type {
            #[inline(always)]
            fn small(x: Self, y: Self) -> bool {
                let $x = x | y;
                $small
            }
            #[inline(always)]
            fn quotient(x: Self, y: Self) -> Self {
                let of = |$x: Self| $of;
                const MAGIC: $float = $magic;
                // A sum with it has the nearest integer in its low bits.
                let sum = ((of(x) + 0.5) / of(y) - 0.5) + MAGIC;
                sum.to_bits().wrapping_sub(MAGIC.to_bits()) as Self
            }
            #[inline(always)]
            fn high(self, other: Self) -> Self {
                ($double::from(self) * $double::from(other) >> Self::BITS) as Self
            }
            #[inline(always)]
            fn wide(self) -> u128 { u128::from(self) }
            #[inline(always)]
            fn low(wide: u128) -> Self { wide as Self }
        }
    )* };
}

unsigned! {
    u8 u16 f32: 12_582_912.0, |_x| true, f32::from(_x);
    u16 u32 f32: 12_582_912.0, |_x| true, f32::from(_x);
    u32 u64 f64: 6_755_399_441_055_744.0, |_x| true, f64::from(_x);
    // As the fraction of a number that is known: for want of an instruction.
    u64 u128 f64: 6_755_399_441_055_744.0, |x| x >> 50 == 0, f64::from_bits(x | 0x4330 << 48) - 4_503_599_627_370_496.0;
}

/// What an array is divided by.
struct Divisor<U> {
    /// What is multiplied with, less 2^w.
    by: U,
    first: u32,
    rest: u32,
}

impl<U: Unsigned> Divisor<U> {
    /// `y` is not 0.
    fn new(y: U) -> Self {
        let y = y.wide();
        let power = u128::BITS - (y - 1).leading_zeros();
        let by = U::low(((1 << power) - y) * (1 << U::WIDTH) / y + 1);
        Self { by, first: power.min(1), rest: power.saturating_sub(1) }
    }

    #[inline(always)]
    fn quotient(&self, x: U) -> U {
        let t = self.by.high(x);
        t.plus(x.minus(t).shr(self.first)).shr(self.rest)
    }
}

/// A division: rounded `DOWN` or towards 0, of which the quotient or what is `LEFT` is the result.
pub(super) struct Divide<T, const DOWN: bool, const LEFT: bool>(PhantomData<T>);

impl<T: Int<Bits: Unsigned>, const DOWN: bool, const LEFT: bool> Divide<T, DOWN, LEFT> {
    /// The magnitudes to divide, and ones in all bits where the quotient is negative.
    #[inline(always)]
    fn before(a: T, b: T) -> (T::Bits, T::Bits, T::Bits) {
        let negative =
            if DOWN { a != T::ZERO && (a < T::ZERO) != (b < T::ZERO) } else { a.xor(b) < T::ZERO };
        let sign = if negative { T::ONES } else { T::ZERO }.bits();
        let (x, y) = (a.magnitude().bits(), b.magnitude().bits());
        // Rounded down, -q is what is below -⌊(x - 1) / y⌋.
        (if DOWN { x.plus(sign) } else { x }, y, sign)
    }

    /// The result for the quotient of the magnitudes; 0 for a divisor of 0.
    #[inline(always)]
    fn after(a: T, b: T, sign: T::Bits, q: T::Bits) -> T {
        let q = q.xor(sign);
        let q = T::of_bits(if DOWN { q } else { q.minus(sign) });
        let result = if LEFT { a.minus(q.times(b)) } else { q };
        if b == T::ZERO { b } else { result }
    }

    #[inline(always)]
    fn each(
        a: &[T],
        b: &[T],
        out: &mut [MaybeUninit<T>],
        quotient: impl Fn(T::Bits, T::Bits) -> T::Bits,
    ) {
        let (a, b) = (&a[..out.len()], &b[..out.len()]);
        for at in 0..out.len() {
            let (x, y, sign) = Self::before(a[at], b[at]);
            out[at].write(Self::after(a[at], b[at], sign, quotient(x, y)));
        }
    }
}

/// What the machine says; of a division by 0, something.
#[inline(always)]
fn exact<U: Unsigned>(x: U, y: U) -> U {
    x.over(if y == U::ZERO { U::ONE } else { y })
}

impl<T: Int<Bits: Unsigned>, const DOWN: bool, const LEFT: bool> ElementOp
    for Divide<T, DOWN, LEFT>
{
    type A = T;
    type B = T;
    type C = ();
    type Out = T;
    const ARITY: usize = 2;
    const WEIGHT: Weight = Weight::Tiled;
    const BY_ONE: bool = true;

    #[inline(always)]
    fn at<const FMA: bool>(a: T, b: T, (): ()) -> T {
        let (x, y, sign) = Self::before(a, b);
        Self::after(a, b, sign, exact(x, y))
    }

    #[inline(always)]
    unsafe fn tile<const FMA: bool>(a: &[T], b: &[T], _: &[()], out: &mut [MaybeUninit<T>]) {
        let small = |(&a, &b): (&T, &T)| {
            let (x, y, _) = Self::before(a, b);
            T::Bits::small(x, y)
        };
        // Without a way out of the loop, which would keep it from being one of vectors.
        if a.iter().zip(b).map(small).fold(true, |all, one| all & one) {
            Self::each(a, b, out, T::Bits::quotient);
        } else {
            Self::each(a, b, out, exact);
        }
    }

    #[inline(always)]
    fn tile_by<const FMA: bool>(a: &[T], b: T, out: &mut [MaybeUninit<T>]) {
        if b == T::ZERO {
            out.iter_mut().for_each(|out| {
                out.write(b);
            });
            return;
        }
        let by = Divisor::new(b.magnitude().bits());
        let a = &a[..out.len()];
        for at in 0..out.len() {
            let (x, _, sign) = Self::before(a[at], b);
            out[at].write(Self::after(a[at], b, sign, by.quotient(x)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A quotient and what is left, by the definition.
    fn naive(a: i128, b: i128, down: bool) -> (i128, i128) {
        if b == 0 {
            return (0, 0);
        }
        let below = down && a % b != 0 && (a < 0) != (b < 0);
        let q = a / b - i128::from(below);
        (q, a - q * b)
    }

    /// One division, by an array and by each of its numbers, of all pairs.
    fn hold<T: Int<Bits: Unsigned>, const DOWN: bool, const LEFT: bool>(
        values: &[T],
        number: impl Fn(T) -> i128,
    ) {
        let right = |a: T, b: T, got: T| {
            let (q, left) = naive(number(a), number(b), DOWN);
            // The lower bits: results wrap.
            let bits = T::Bits::low((if LEFT { left } else { q }).cast_unsigned());
            assert!(got.bits() == bits, "{} by {}: {}", number(a), number(b), number(got));
        };
        for &b in values {
            let by = vec![b; values.len()];
            let mut out = vec![MaybeUninit::new(T::ZERO); values.len()];
            let read = |out: &MaybeUninit<T>| {
                // SAFETY: all of it was written to before.
                unsafe { out.assume_init() }
            };
            // SAFETY: without FMA nothing is asked of the caller.
            unsafe { Divide::<T, DOWN, LEFT>::tile::<false>(values, &by, &[], &mut out) };
            values.iter().zip(&out).for_each(|(&a, out)| right(a, b, read(out)));
            Divide::<T, DOWN, LEFT>::tile_by::<false>(values, b, &mut out);
            values.iter().zip(&out).for_each(|(&a, out)| right(a, b, read(out)));
            // One at a time, so that none is kept from its way by another.
            for &a in values {
                let mut out = [MaybeUninit::new(T::ZERO)];
                // SAFETY: as above.
                unsafe { Divide::<T, DOWN, LEFT>::tile::<false>(&[a], &[b], &[], &mut out) };
                right(a, b, read(&out[0]));
                right(a, b, Divide::<T, DOWN, LEFT>::at::<false>(a, b, ()));
            }
        }
    }

    macro_rules! hold {
        ($($type:ident: $values:expr;)*) => { $({
            let values: Vec<$type> = $values;
            hold::<$type, true, false>(&values, i128::from);
            hold::<$type, true, true>(&values, i128::from);
            hold::<$type, false, false>(&values, i128::from);
            hold::<$type, false, true>(&values, i128::from);
        })* };
    }

    /// What lies around powers of two and around their thirds, from either end.
    macro_rules! edges {
        ($type:ident) => {{
            let powers = (0..$type::BITS).map(|n| 1 << n);
            let near = powers.flat_map(|p: $type| [p, p.wrapping_sub(1), p.wrapping_add(1), p / 3]);
            let all = near.flat_map(|x| [x, !x, x.wrapping_neg()]);
            all.step_by(if cfg!(miri) { 37 } else { 1 }).collect()
        }};
    }

    #[test]
    fn every_pair_of_bytes_and_the_edges_of_other_types() {
        // Every pair takes Miri half an hour.
        let step = if cfg!(miri) { 17 } else { 1 };
        hold! {
            u8: (0..=u8::MAX).step_by(step).collect();
            i8: (i8::MIN..=i8::MAX).step_by(step).collect();
            u16: edges!(u16);
            i16: edges!(i16);
            u32: edges!(u32);
            i32: edges!(i32);
            u64: edges!(u64);
            i64: edges!(i64);
        }
    }
}
