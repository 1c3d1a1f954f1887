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
//! Common pairs of types have a loop of their own. All others take two, by way of a hub that holds every value of the
//! first type exactly, so that the second loop alone rounds: `int64` for integers, `float64` for floats and real parts.

use std::marker::PhantomData;
use std::mem::MaybeUninit;

use half::{bf16, f16};
use num_complex::Complex;

use super::{ElementOp, Kernel, body, kernel_of};
use crate::math::half::{
    bf16_from_f32, bf16_from_f64, f16_from_f32, f16_from_f64, narrow_f16, widen_f16,
};
use crate::{Addend, DType, Level};

/// How elements are converted: by one loop, or by two with a hub between them.
#[derive(Clone, Copy, Debug)]
pub enum Conversion {
    Direct(Kernel),
    Via { first: Kernel, hub: DType, second: Kernel },
}

impl Conversion {
    /// Converts `len` contiguous elements.
    ///
    /// # Safety
    ///
    /// The invariant of kernels, for one operand that is not repeated.
    pub unsafe fn run(self, out: *mut u8, from: *const u8, sizes: [usize; 2], len: usize) {
        /// Elements of the hub, all of 8 bytes, that are converted at a time.
        const TILE: usize = super::TILE;
        // SAFETY: the caller keeps the invariant; a tile fits in the hub.
        unsafe {
            match self {
                Self::Direct(kernel) => kernel(out, &[from; 3], 0, len),
                Self::Via { first, second, .. } => {
                    let mut tile = [MaybeUninit::<u64>::uninit(); TILE];
                    let hub: *mut u8 = tile.as_mut_ptr().cast();
                    for done in (0..len).step_by(TILE) {
                        let count = TILE.min(len - done);
                        first(hub, &[from.add(done * sizes[0]); 3], 0, count);
                        second(out.add(done * sizes[1]), &[hub.cast_const(); 3], 0, count);
                    }
                }
            }
        }
    }
}

/// The conversion from one type to another; none from or to `string`.
pub fn cast(from: DType, to: DType, level: Level) -> Option<Conversion> {
    if let Some(kernel) = direct(from, to, level) {
        return Some(Conversion::Direct(kernel));
    }
    let hub = match from {
        DType::F16 | DType::Bf16 | DType::F32 | DType::C64 | DType::C128 => DType::F64,
        DType::String | DType::I64 | DType::U64 | DType::F64 => return None,
        _ => DType::I64,
    };
    let (first, second) = (direct(from, hub, level)?, direct(hub, to, level)?);
    Some(Conversion::Via { first, hub, second })
}

/// The loop of a pair of types, where there is one: from and to every hub, and between common types. Integers of one
/// width share what does not depend on the sign.
fn direct(from: DType, to: DType, level: Level) -> Option<Kernel> {
    use DType::{Bf16, Bool, C64, C128, F16, F32, F64, I8, I16, I32, I64, U8, U16, U32, U64};
    type Complex64 = Complex<f32>;
    type Complex128 = Complex<f64>;
    if level != Level::BASELINE {
        match (from, to) {
            (F16, F32) => return Some(widen),
            (F32, F16) => return Some(narrow),
            _ => {}
        }
    }
    macro_rules! pairs {
        ($($from:pat => $source:ty { $($to:pat => $target:ty;)* })*) => {
            match (from, to) {
                $($(($from, $to) => Some(kernel_of::<Cast<$source, $target>>(level)),)*)*
                _ => None,
            }
        };
    }
    pairs! {
        I64 | U64 => u64 { Bool => Truth8; I8 | U8 => u8; I16 | U16 => u16; I32 | U32 => u32; I64 | U64 => u64; }
        I64 => i64 { F16 => f16; Bf16 => bf16; F32 => f32; F64 => f64; C64 => Complex64; C128 => Complex128; }
        U64 => u64 { F16 => f16; Bf16 => bf16; F32 => f32; F64 => f64; C64 => Complex64; C128 => Complex128; }
        Bool | U8 => u8 { Bool => Truth8; I32 | U32 => u32; I64 | U64 => u64; F32 => f32; F64 => f64; }
        I8 => i8 { I64 | U64 => u64; F32 => f32; }
        I16 => i16 { I64 | U64 => u64; F32 => f32; }
        U16 => u16 { I64 | U64 => u64; F32 => f32; }
        I32 => i32 { I64 | U64 => u64; F32 => f32; F64 => f64; }
        U32 => u32 { I64 | U64 => u64; F64 => f64; }
        F64 => f64 {
            Bool => Truth8; I8 => i8; I16 => i16; I32 => i32; I64 => i64; U8 => u8; U16 => u16; U32 => u32; U64 => u64;
            F16 => f16; Bf16 => bf16; F32 => f32; F64 => f64; C64 => Complex64; C128 => Complex128;
        }
        F32 => f32 {
            Bool => Truth8; U8 => u8; I32 => i32; I64 => i64;
            F16 => f16; Bf16 => bf16; F64 => f64; C64 => Complex64;
        }
        F16 => f16 { F32 => f32; F64 => f64; }
        Bf16 => bf16 { F32 => f32; F64 => f64; }
        C64 => Complex64 { Bool => Truth8; F64 => f64; C64 => Complex64; C128 => Complex128; }
        C128 => Complex128 { Bool => Truth8; F64 => f64; C64 => Complex64; C128 => Complex128; }
    }
}

/// Writes loops by a function of slices, which uses instructions that no loop becomes. They are those of AVX2, also at wider
/// levels; the table gives them at no other.
macro_rules! by_slices {
    ($($name:ident: $from:ty => $to:ty, $function:ident;)*) => { $(
        /// # Safety
        ///
        /// The invariant of kernels.
        unsafe fn $name(out: *mut u8, ins: &[*const u8; 3], _repeated: usize, len: usize) {
            // SAFETY: both have `len` elements; the result takes any bits, and is written alone.
            unsafe {
                let out = std::slice::from_raw_parts_mut(out.cast::<$to>(), len);
                let level = Level::avx2().unwrap_or(Level::BASELINE);
                $function(level, std::slice::from_raw_parts(ins[0].cast::<$from>(), len), out);
            }
        }
    )* };
}

by_slices! {
    widen: f16 => f32, widen_f16;
    narrow: f32 => f16, narrow_f16;
}

/// A conversion of one element.
trait Convert<To>: Copy {
    fn convert(self) -> To;
}

/// What is true or false.
trait Truth: Copy {
    fn truth(self) -> bool;
}

struct Cast<From, To>(PhantomData<(From, To)>);

impl<From: Convert<To>, To: Copy> ElementOp for Cast<From, To> {
    body!(Light 1 To { a.convert() } a: From, _none: (), _unused: ());
}

/// A byte of 0 or 1.
#[derive(Clone, Copy)]
#[repr(transparent)]
struct Truth8(u8);

impl<From: Truth> Convert<Truth8> for From {
    #[inline(always)]
    fn convert(self) -> Truth8 {
        Truth8(self.truth().into())
    }
}

/// One bit for the last twelve, with which an integer of 64 bits fits in `f64`, and still lies on
/// the same side of every midpoint between halves.
#[inline(always)]
fn sticky(a: u64) -> u64 {
    if a & 0xfff == 0 { 0 } else { 0x800 }
}

/// What is rounded once to halves: the number as `f64`, or on the same side of every midpoint.
trait Double: Copy {
    fn double(self) -> f64;
}

macro_rules! double {
    ($($type:ident |$a:ident| $double:expr;)*) => { $(
        impl Double for $type {
            #[inline(always)]
            fn double(self) -> f64 {
                let $a = self;
                $double
            }
        }
    )* };
}

double! {
    i8 |a| a.into();
    u8 |a| a.into();
    i16 |a| a.into();
    u16 |a| a.into();
    i32 |a| a.into();
    u32 |a| a.into();
    f64 |a| a;
    i64 |a| {
        let short = a.unsigned_abs() >> 53 == 0;
        if short { a as f64 } else { (a & !0xfff | sticky(a as u64) as i64) as f64 }
    };
    u64 |a| if a >> 53 == 0 { a as f64 } else { (a & !0xfff | sticky(a)) as f64 };
}

macro_rules! native {
    ($($from:ident)* => $to:tt) => { $(
        native!($from $to);
        impl Truth for $from {
            #[inline(always)]
            fn truth(self) -> bool {
                self != 0 as $from
            }
        }
    )* };
    ($from:ident ($($to:ident)*)) => { $(
        impl Convert<$to> for $from {
            #[inline(always)]
            #[allow(trivial_numeric_casts, clippy::unnecessary_cast, reason = "of any to any")]
            fn convert(self) -> $to {
                self as $to
            }
        }
    )* };
}

native!(i8 i16 i32 i64 u8 u16 u32 u64 => (i8 i16 i32 i64 u8 u16 u32 u64 f32 f64));
native!(f32 f64 => (f32 f64));

/// Floats to integers by way of an integer that the machine converts many of: what is out of range is brought into it
/// before, since an `as` would look at every element by itself.
macro_rules! integers {
    ($($from:ident { $($to:ident by $by:ident up to $most:literal;)* })*) => { $($(
        impl Convert<$to> for $from {
            #[inline(always)]
            #[allow(trivial_numeric_casts, reason = "of any by any")]
            fn convert(self) -> $to {
                const LEAST: $from = $to::MIN as $from;
                const MOST: $from = $most;
                let near = if self > LEAST { self } else { LEAST };
                let near = if near < MOST { near } else { MOST };
                let near = if self.is_nan() { 0.0 } else { near };
                // SAFETY: between two numbers of that integer, and not NaN.
                let made = unsafe { near.to_int_unchecked::<$by>() } as $to;
                if self > MOST { $to::MAX } else { made }
            }
        }
    )*)* };
}

integers! {
    f32 {
        i8 by i32 up to 127.0;
        i16 by i32 up to 32_767.0;
        // The largest ones that are no integer too many.
        i32 by i32 up to 2_147_483_520.0;
        i64 by i64 up to 9_223_371_487_098_961_920.0;
        u8 by i32 up to 255.0;
        u16 by i32 up to 65_535.0;
        u32 by u32 up to 4_294_967_040.0;
        u64 by u64 up to 18_446_742_974_197_923_840.0;
    }
    f64 {
        i8 by i32 up to 127.0;
        i16 by i32 up to 32_767.0;
        i32 by i32 up to 2_147_483_647.0;
        i64 by i64 up to 9_223_372_036_854_774_784.0;
        u8 by i32 up to 255.0;
        u16 by i32 up to 65_535.0;
        u32 by u32 up to 4_294_967_295.0;
        u64 by u64 up to 18_446_744_073_709_549_568.0;
    }
}

impl Convert<f16> for f32 {
    #[inline(always)]
    fn convert(self) -> f16 {
        f16_from_f32(self)
    }
}

impl Convert<bf16> for f32 {
    #[inline(always)]
    fn convert(self) -> bf16 {
        bf16_from_f32(self)
    }
}

macro_rules! halves {
    (from $($from:ident)*) => { $(
        impl Convert<f16> for $from {
            #[inline(always)]
            fn convert(self) -> f16 {
                f16_from_f64(self.double())
            }
        }
        impl Convert<bf16> for $from {
            #[inline(always)]
            fn convert(self) -> bf16 {
                bf16_from_f64(self.double())
            }
        }
    )* };
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

halves!(from i8 i16 i32 i64 u8 u16 u32 u64 f64);
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

#[cfg(test)]
mod tests {
    use super::Convert;

    /// What lies around the ends of every integer, and what is none.
    macro_rules! edges {
        ($from:ident) => {{
            let powers = (0..=65).map(|n| (2.0 as $from).powi(n));
            let near =
                powers.flat_map(|p| [p, p - 1.0, p - 0.5, p + 0.5, p.next_down(), p.next_up()]);
            let odd = [0.0, 0.4, 0.9, $from::MAX, $from::MIN_POSITIVE, $from::INFINITY, $from::NAN];
            near.chain(odd).flat_map(|x| [x, -x])
        }};
    }

    macro_rules! as_the_language_casts {
        ($($from:ident => $($to:ident)*;)*) => { $($(
            for x in edges!($from) {
                let made: $to = x.convert();
                assert_eq!(made, x as $to, "{x:e} to {}", stringify!($to));
            }
        )*)* };
    }

    #[test]
    fn floats_become_the_nearest_integers() {
        as_the_language_casts! {
            f32 => i8 i16 i32 i64 u8 u16 u32 u64;
            f64 => i8 i16 i32 i64 u8 u16 u32 u64;
        }
    }
}
