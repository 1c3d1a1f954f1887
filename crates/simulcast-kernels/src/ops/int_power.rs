//! Powers of integers, by squaring, a tile at a time: as many steps as its largest exponent has bits.
//!
//! Results wrap. To a negative power a number is its quotient rounded towards 0: that of 1 and -1 is as to the last
//! bit of the exponent, and that of all others is 0; of 0 too, which has none.

use std::marker::PhantomData;
use std::mem::MaybeUninit;

use super::{ElementOp, TILE, Weight};
use crate::ops::int::Int;

pub(super) struct Power<T>(PhantomData<T>);

/// The exponent to compute with.
#[inline(always)]
fn effective<T: Int>(exponent: T) -> T {
    if exponent < T::ZERO { exponent.and(T::ONE) } else { exponent }
}

/// The result, for the power of the effective exponent.
#[inline(always)]
fn result<T: Int>(base: T, exponent: T, power: T) -> T {
    let vanishes = exponent < T::ZERO && base != T::ONE && base != T::ONES;
    if vanishes { T::ZERO } else { power }
}

impl<T: Int> ElementOp for Power<T> {
    type A = T;
    type B = T;
    type C = ();
    type Out = T;
    const ARITY: usize = 2;
    const WEIGHT: Weight = Weight::Tiled;
    const BY_ONE: bool = true;

    #[inline(always)]
    fn at<const FMA: bool>(a: T, b: T, (): ()) -> T {
        let (mut power, mut square, mut left) = (T::ONE, a, effective(b));
        while left != T::ZERO {
            if left.and(T::ONE) == T::ONE {
                power = power.times(square);
            }
            square = square.times(square);
            left = left.shr(1);
        }
        result(a, b, power)
    }

    #[inline(always)]
    unsafe fn tile<const FMA: bool>(a: &[T], b: &[T], _: &[()], out: &mut [MaybeUninit<T>]) {
        let (mut powers, mut squares) = ([T::ONE; TILE], [T::ZERO; TILE]);
        let (powers, squares) = (&mut powers[..a.len()], &mut squares[..a.len()]);
        squares.copy_from_slice(a);
        let mut left = b.iter().fold(T::ZERO, |all, &b| all.or(effective(b)));
        let mut bit = T::ONE;
        while left != T::ZERO {
            for ((power, square), &b) in powers.iter_mut().zip(&mut *squares).zip(b) {
                let longer = power.times(*square);
                *power = if effective(b).and(bit) == T::ZERO { *power } else { longer };
                *square = square.times(*square);
            }
            (left, bit) = (left.shr(1), bit.shl(1));
        }
        let (a, b) = (&a[..out.len()], &b[..out.len()]);
        for at in 0..out.len() {
            out[at].write(result(a[at], b[at], powers[at]));
        }
    }

    #[inline(always)]
    fn tile_by<const FMA: bool>(a: &[T], b: T, out: &mut [MaybeUninit<T>]) {
        let (mut powers, mut squares) = ([T::ONE; TILE], [T::ZERO; TILE]);
        let (powers, squares) = (&mut powers[..a.len()], &mut squares[..a.len()]);
        squares.copy_from_slice(a);
        let mut left = effective(b);
        while left != T::ZERO {
            if left.and(T::ONE) == T::ONE {
                for (power, square) in powers.iter_mut().zip(&*squares) {
                    *power = power.times(*square);
                }
            }
            left = left.shr(1);
            if left != T::ZERO {
                squares.iter_mut().for_each(|square| *square = square.times(*square));
            }
        }
        let a = &a[..out.len()];
        for at in 0..out.len() {
            out[at].write(result(a[at], b, powers[at]));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Powers of a tile, by an array and by a number, and of single numbers.
    fn hold<T: Int + std::fmt::Debug>(bases: &[T], exponents: &[T], expected: impl Fn(T, T) -> T) {
        for &b in exponents {
            for bases in bases.chunks(TILE) {
                let mut out = vec![MaybeUninit::new(T::ZERO); bases.len()];
                // SAFETY: all of it was written to before.
                let read = |out: &MaybeUninit<T>| unsafe { out.assume_init() };
                let right = |out: &[MaybeUninit<T>], exponent: &dyn Fn(usize) -> T| {
                    for (at, (&a, out)) in bases.iter().zip(out).enumerate() {
                        assert_eq!(
                            read(out),
                            expected(a, exponent(at)),
                            "{a:?} to {:?}",
                            exponent(at)
                        );
                    }
                };
                Power::<T>::tile_by::<false>(bases, b, &mut out);
                right(&out, &|_| b);
                // Exponents side by side, each with its neighbours in turn.
                let start = exponents.iter().position(|&own| own == b).unwrap_or(0);
                let mixed: Vec<T> =
                    exponents.iter().cycle().skip(start).take(bases.len()).copied().collect();
                // SAFETY: without FMA nothing is asked of the caller.
                unsafe { Power::<T>::tile::<false>(bases, &mixed, &[], &mut out) };
                right(&out, &|at| mixed[at]);
                bases.iter().for_each(|&a| {
                    assert_eq!(Power::<T>::at::<false>(a, b, ()), expected(a, b), "{a:?} to {b:?}");
                });
            }
        }
    }

    macro_rules! hold {
        ($($type:ident: $bases:expr, $exponents:expr;)*) => { $(
            let expected = |a: $type, b: $type| match (u32::try_from(b), a) {
                (Ok(exponent), _) => a.wrapping_pow(exponent),
                (Err(_), 1) => 1,
                (Err(_), a) if a == !0 => if b & 1 == 1 { a } else { 1 },
                (Err(_), _) => 0,
            };
            hold(&$bases.collect::<Vec<_>>(), &$exponents.collect::<Vec<_>>(), expected);
        )* };
    }

    #[test]
    fn every_pair_of_bytes_and_what_is_around_the_ends_of_other_types() {
        hold! {
            u8: 0..=u8::MAX, 0..=u8::MAX;
            i8: i8::MIN..=i8::MAX, i8::MIN..=i8::MAX;
            u16: (0..300).chain(u16::MAX - 300..=u16::MAX), (0..40).chain([u16::MAX, 1 << 15]);
            i16: (-300..300).chain([i16::MIN, i16::MAX]), (-20..20).chain([i16::MIN, i16::MAX]);
            u32: (0..300).chain(u32::MAX - 300..=u32::MAX), (0..40).chain([u32::MAX, 1 << 31]);
            i32: (-300..300).chain([i32::MIN, i32::MAX]), (-20..20).chain([i32::MIN, i32::MAX]);
            u64: (0..300).chain(u64::MAX - 300..=u64::MAX), (0..40).chain([u64::from(u32::MAX)]);
            i64: (-300..300).chain([i64::MIN, i64::MAX]), (-20..20).chain([i64::MIN, 1 << 31]);
        }
    }
}
