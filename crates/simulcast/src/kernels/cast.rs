//! Conversions between element types, each rounded once.
//!
//! | to | value |
//! |---|---|
//! | `bool` | whether it is other than 0, in either part; NaN is |
//! | integers from integers | wraps |
//! | integers from floats | rounded towards 0, the nearest integer where it is out of range, NaN is 0 |
//! | floats | the nearest, halves to even; out of range is infinite |
//! | real from complex | the real part |
//!
//! Halves are made from an `f32` that was rounded to odd: where bits were lost, its last bit is set,
//! so that the second rounding sees on which side of a half the number was.

use std::marker::PhantomData;

use half::{bf16, f16};
use num_complex::Complex;

use super::{Body, Kernel, body, table};
use crate::{Addend, DType, Level};

/// The loop that converts a contiguous stretch; none from or to `string`.
pub(crate) fn cast(from: DType, to: DType, level: Level) -> Option<Kernel> {
    type C64 = Complex<f32>;
    type C128 = Complex<f64>;
    /// The loop from one type; integers are made as unsigned ones where `$from` is one too.
    macro_rules! from {
        (int $from:ty) => { from!($from, u8 u16 u32 u64) };
        (other $from:ty) => { from!($from, i8 i16 i32 i64) };
        ($from:ty, $i8:ident $i16:ident $i32:ident $i64:ident) => {
            match to {
                DType::Bool => table::<ToBool<$from>>(level),
                DType::I8 => table::<Cast<$from, $i8>>(level),
                DType::I16 => table::<Cast<$from, $i16>>(level),
                DType::I32 => table::<Cast<$from, $i32>>(level),
                DType::I64 => table::<Cast<$from, $i64>>(level),
                DType::U8 => table::<Cast<$from, u8>>(level),
                DType::U16 => table::<Cast<$from, u16>>(level),
                DType::U32 => table::<Cast<$from, u32>>(level),
                DType::U64 => table::<Cast<$from, u64>>(level),
                DType::F16 => table::<Cast<$from, f16>>(level),
                DType::Bf16 => table::<Cast<$from, bf16>>(level),
                DType::F32 => table::<Cast<$from, f32>>(level),
                DType::F64 => table::<Cast<$from, f64>>(level),
                DType::C64 => table::<Cast<$from, C64>>(level),
                DType::C128 => table::<Cast<$from, C128>>(level),
                DType::String => return None,
            }
        };
    }
    let loops = match from {
        DType::Bool | DType::U8 => from!(int u8),
        DType::I8 => from!(int i8),
        DType::I16 => from!(int i16),
        DType::I32 => from!(int i32),
        DType::I64 => from!(int i64),
        DType::U16 => from!(int u16),
        DType::U32 => from!(int u32),
        DType::U64 => from!(int u64),
        DType::F16 => from!(other f16),
        DType::Bf16 => from!(other bf16),
        DType::F32 => from!(other f32),
        DType::F64 => from!(other f64),
        DType::C64 => from!(other C64),
        DType::C128 => from!(other C128),
        DType::String => return None,
    };
    loops.first().copied()
}

/// A conversion, but for those to `bool`.
trait Convert<To>: Copy {
    fn convert(self) -> To;
}

/// What is true or false.
trait Truth: Copy {
    fn truth(self) -> bool;
}

struct Cast<From, To>(PhantomData<(From, To)>);

impl<From: Convert<To>, To: Copy> Body for Cast<From, To> {
    body!(Light 1 To { a.convert() } a: From, _none: (), _unused: ());
}

struct ToBool<From>(PhantomData<From>);

impl<From: Truth> Body for ToBool<From> {
    body!(Light 1 u8 { u8::from(a.truth()) } a: From, _none: (), _unused: ());
}

/// The nearest `f32` towards 0, with the last bit set where that is another number.
trait Odd: Copy {
    fn odd(self) -> f32;
}

/// One bit for the last twelve, with which an integer of 64 bits fits in `f64`.
#[inline(always)]
fn sticky(a: u64) -> u64 {
    if a & 0xfff == 0 { 0 } else { 0x800 }
}

macro_rules! odd {
    ($($type:ident |$a:ident| $odd:expr;)*) => { $(
        impl Odd for $type {
            #[inline(always)]
            fn odd(self) -> f32 {
                let $a = self;
                $odd
            }
        }
    )* };
}

odd! {
    i8 |a| f32::from(a);
    u8 |a| f32::from(a);
    i16 |a| f32::from(a);
    u16 |a| f32::from(a);
    f32 |a| a;
    i32 |a| f64::from(a).odd();
    u32 |a| f64::from(a).odd();
    i64 |a| (if a.unsigned_abs() >> 53 == 0 { a } else { a & !0xfff | sticky(a as u64) as i64 } as f64).odd();
    u64 |a| (if a >> 53 == 0 { a } else { a & !0xfff | sticky(a) } as f64).odd();
    f64 |a| {
        let near = a as f32;
        let over = f64::from(near).abs() > a.abs();
        let lost = f64::from(near) != a && !a.is_nan();
        // One less in the bits is one step towards 0, from infinity too.
        f32::from_bits((near.to_bits() - u32::from(over)) | u32::from(lost))
    };
}

macro_rules! native {
    ($($from:ident)*) => { $(
        native!($from => i8 i16 i32 i64 u8 u16 u32 u64 f32 f64);
        impl Truth for $from {
            #[inline(always)]
            fn truth(self) -> bool {
                self != 0 as $from
            }
        }
        impl Convert<f16> for $from {
            #[inline(always)]
            fn convert(self) -> f16 {
                narrow(self.odd())
            }
        }
        impl Convert<bf16> for $from {
            #[inline(always)]
            fn convert(self) -> bf16 {
                narrow_brain(self.odd())
            }
        }
    )* };
    ($from:ident => $($to:ident)*) => { $(
        impl Convert<$to> for $from {
            #[inline(always)]
            #[allow(trivial_numeric_casts, clippy::unnecessary_cast, reason = "of any to any")]
            fn convert(self) -> $to {
                self as $to
            }
        }
    )* };
}

native!(i8 i16 i32 i64 u8 u16 u32 u64 f32 f64);

macro_rules! halves {
    ($($half:ident)*) => { $(
        halves!($half: i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 f16 bf16);
        impl Truth for $half {
            #[inline(always)]
            fn truth(self) -> bool {
                self.to_bits() & 0x7fff != 0
            }
        }
    )* };
    ($half:ident: $($to:ident)*) => { $(
        impl Convert<$to> for $half {
            #[inline(always)]
            fn convert(self) -> $to {
                self.widen().convert()
            }
        }
    )* };
}

halves!(f16 bf16);

macro_rules! complex {
    ($($real:ident)*) => { $(
        impl<T> Convert<Complex<T>> for $real
        where
            Self: Convert<T>,
            T: Copy + Default,
        {
            #[inline(always)]
            fn convert(self) -> Complex<T> {
                Complex { re: self.convert(), im: T::default() }
            }
        }
        impl<T: Convert<$real>> Convert<$real> for Complex<T> {
            #[inline(always)]
            fn convert(self) -> $real {
                self.re.convert()
            }
        }
    )* };
}

complex!(i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 f16 bf16);

impl<T: Convert<U>, U: Copy> Convert<Complex<U>> for Complex<T> {
    #[inline(always)]
    fn convert(self) -> Complex<U> {
        Complex { re: self.re.convert(), im: self.im.convert() }
    }
}

impl<T: Truth> Truth for Complex<T> {
    #[inline(always)]
    fn truth(self) -> bool {
        self.re.truth() | self.im.truth()
    }
}

/// The nearest `f16`, without branches or calls, so that loops of it vectorise.
#[inline(always)]
fn narrow(a: f32) -> f16 {
    const SMALL: f32 = f32::from_bits(126 << 23);
    let sign = a.to_bits() >> 16 & 0x8000;
    let rest = a.to_bits() & 0x7fff_ffff;
    // The exponent moves by 112, and half of a last bit is added, or just less for even numbers.
    let moved = rest.wrapping_sub((112 << 23) - 0xfff).wrapping_add(rest >> 13 & 1) >> 13;
    // Adding a number whose last bit is that of the smallest half rounds to a multiple of it.
    let small = (f32::from_bits(rest) + SMALL).to_bits().wrapping_sub(SMALL.to_bits());
    let special = if rest > 0x7f80_0000 { 0x7e00 } else { 0x7c00 };
    let finite = if rest < 113 << 23 { small } else { moved };
    let half = if rest < 143 << 23 { finite } else { special };
    f16::from_bits((sign | half) as u16)
}

/// The nearest `bf16`.
#[inline(always)]
fn narrow_brain(a: f32) -> bf16 {
    let bits = a.to_bits();
    let near = bits.wrapping_add(0x7fff + (bits >> 16 & 1)) >> 16;
    bf16::from_bits(if a.is_nan() { bits >> 16 | 0x40 } else { near } as u16)
}
