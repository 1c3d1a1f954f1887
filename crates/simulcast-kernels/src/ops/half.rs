//! Arithmetic on `f16` and `bf16` in one loop: widened, computed in `f32` and rounded once.
//!
//! ```text
//! f16     by the instructions that convert it, which no compiler makes out of anything else
//! bf16    two neighbours are one number of 32 bits: the upper one is a float once the lower is
//!         cleared, the lower one once it is shifted up, and nothing moves across a vector
//! ```
//!
//! Of two equal operands, such as zeros of both signs, `maximum` and `minimum` give the first for `f16`, as NumPy's
//! loops for halves do, and the second for `bf16`, as for wider types.
//!
//! A cache line of results is made at a time, in registers, by the [tiled loop](super::loops::tiled).

use std::hint::select_unpredictable;
use std::marker::PhantomData;
use std::mem::MaybeUninit;

use half::{bf16, f16};

use super::{ElementOp, Kernels, Weight, kernel_of};
use crate::math::half::f16_from_f32;
use crate::ops::float::{maximum, minimum};
use crate::tuning::CACHE_LINE_BYTES;
use crate::{Addend, DType, Level, Op};

/// The elements of a cache line, in two halves.
const LINE_ELEMENTS: usize = 2 * HALF_LINE;
const HALF_LINE: usize = 16;

/// The floats of a line. Each type decides which half an element goes to: operands and results agree.
type Wide = [[f32; HALF_LINE]; 2];

/// A line of 16-bit elements, two in a number.
type Line = [u32; HALF_LINE];

const _: () = assert!(
    size_of::<Line>() == CACHE_LINE_BYTES && size_of::<[f16; LINE_ELEMENTS]>() == CACHE_LINE_BYTES
);

/// The upper element of two.
const UPPER: u32 = 0xffff_0000;

/// A type of 16 bits.
trait Half: Addend<Sum = f32> + 'static {
    /// Whether the larger of two equal elements is the first one.
    const FIRST_OF_EQUALS: bool;

    /// A line as floats.
    ///
    /// # Safety
    ///
    /// With `AVX2`, the caller is compiled for AVX2 and F16C.
    unsafe fn widened<const AVX2: bool>(line: &Line) -> Wide;

    /// The nearest elements of results on widened lines.
    ///
    /// # Safety
    ///
    /// As [`Half::widened`].
    unsafe fn rounded<const AVX2: bool>(values: Wide) -> Line;
}

impl Half for f16 {
    const FIRST_OF_EQUALS: bool = true;

    #[inline(always)]
    unsafe fn widened<const AVX2: bool>(line: &Line) -> Wide {
        let from = (&raw const *line).cast::<Self>();
        // SAFETY: a line is as many elements, and the caller has the instructions.
        unsafe {
            let last = from.add(HALF_LINE);
            [Self::widen_all::<AVX2, HALF_LINE>(from), Self::widen_all::<AVX2, HALF_LINE>(last)]
        }
    }

    #[inline(always)]
    unsafe fn rounded<const AVX2: bool>(values: Wide) -> Line {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if AVX2 {
            use std::arch::x86_64::{
                __m256, __m256i, _MM_FROUND_TO_NEAREST_INT as NEAREST, _mm256_cvtps_ph,
                _mm256_set_m128i,
            };
            // SAFETY: the caller has the instructions; both are as many bytes of numbers. Whole
            // vectors are made, so that they can be stored as such.
            return unsafe {
                let [a, b, c, d] = std::mem::transmute::<Wide, [__m256; 4]>(values);
                std::mem::transmute::<[__m256i; 2], Line>([
                    _mm256_set_m128i(_mm256_cvtps_ph::<NEAREST>(b), _mm256_cvtps_ph::<NEAREST>(a)),
                    _mm256_set_m128i(_mm256_cvtps_ph::<NEAREST>(d), _mm256_cvtps_ph::<NEAREST>(c)),
                ])
            };
        }
        let mut halves = [Self::ZERO; LINE_ELEMENTS];
        for (half, &value) in halves.iter_mut().zip(values.as_flattened()) {
            *half = f16_from_f32(value);
        }
        // SAFETY: both are as many bytes of numbers.
        unsafe { std::mem::transmute::<[Self; LINE_ELEMENTS], Line>(halves) }
    }
}

impl Half for bf16 {
    const FIRST_OF_EQUALS: bool = false;

    #[inline(always)]
    unsafe fn widened<const AVX2: bool>(line: &Line) -> Wide {
        let mut values = [[0.0; HALF_LINE]; 2];
        for (at, both) in line.iter().enumerate() {
            values[0][at] = f32::from_bits(both << 16);
            values[1][at] = f32::from_bits(both & UPPER);
        }
        values
    }

    /// A NaN needs no care: it is an operand's or the machine's own, and its last bits are 0, so that
    /// it is not rounded.
    #[inline(always)]
    unsafe fn rounded<const AVX2: bool>([lower, upper]: Wide) -> Line {
        let (mut first, mut last) = ([0; HALF_LINE], [0; HALF_LINE]);
        for (at, (lower, upper)) in lower.into_iter().zip(upper).enumerate() {
            let (lower, upper) = (lower.to_bits(), upper.to_bits());
            first[at] = lower >> 16 | upper & UPPER;
            last[at] = lower & !UPPER | upper << 16;
        }
        // SAFETY: all are as many bytes of numbers.
        unsafe {
            let mut halves = std::mem::transmute::<Line, [u16; LINE_ELEMENTS]>(first);
            let last = std::mem::transmute::<Line, [u16; LINE_ELEMENTS]>(last);
            for (half, last) in halves.iter_mut().zip(last) {
                // Up from more than a half on, and from a half where the first bits are odd.
                let over = (last ^ 0x8000).cast_signed().saturating_add((*half & 1).cast_signed());
                *half = half.wrapping_add(u16::from(over > 0));
            }
            std::mem::transmute::<[u16; LINE_ELEMENTS], Line>(halves)
        }
    }
}

/// An operation on widened elements.
trait Widened: 'static {
    fn at<T: Half>(a: f32, b: f32) -> f32;
}

/// `E` on one element, or two, of type `T`.
struct Unary<T, E>(PhantomData<(T, E)>);
struct Binary<T, E>(PhantomData<(T, E)>);

impl<T: Half, E: Widened> ElementOp for Unary<T, E> {
    type A = T;
    type B = ();
    type C = ();
    type Out = T;
    const ARITY: usize = 1;
    const WEIGHT: Weight = Weight::Tiled;
    const LANES: usize = LINE_ELEMENTS;

    #[inline(always)]
    fn at<const FMA: bool>(a: T, (): (), (): ()) -> T {
        T::narrow(E::at::<T>(a.widen(), 0.0))
    }

    #[inline(always)]
    unsafe fn tile<const FMA: bool>(a: &[T], _: &[()], _: &[()], out: &mut [MaybeUninit<T>]) {
        // SAFETY: the condition of this function.
        unsafe { lines::<T, E, FMA>(a, None, out) };
    }
}

impl<T: Half, E: Widened> ElementOp for Binary<T, E> {
    type A = T;
    type B = T;
    type C = ();
    type Out = T;
    const ARITY: usize = 2;
    const WEIGHT: Weight = Weight::Tiled;
    const LANES: usize = LINE_ELEMENTS;

    #[inline(always)]
    fn at<const FMA: bool>(a: T, b: T, (): ()) -> T {
        T::narrow(E::at::<T>(a.widen(), b.widen()))
    }

    #[inline(always)]
    unsafe fn tile<const FMA: bool>(a: &[T], b: &[T], _: &[()], out: &mut [MaybeUninit<T>]) {
        // SAFETY: the condition of this function.
        unsafe { lines::<T, E, FMA>(a, Some(b), out) };
    }
}

/// Line after line of a tile. `AVX2`, the level's FMA: both come with F16C.
///
/// # Safety
///
/// With `AVX2`, the caller is compiled for AVX2 and F16C.
#[inline(always)]
unsafe fn lines<T: Half, E: Widened, const AVX2: bool>(
    a: &[T],
    b: Option<&[T]>,
    out: &mut [MaybeUninit<T>],
) {
    for first in (0..out.len() / LINE_ELEMENTS).map(|line| line * LINE_ELEMENTS) {
        let place = first..first + LINE_ELEMENTS;
        // SAFETY: each slice has a line's elements there; with `AVX2`, the caller is compiled for it.
        unsafe {
            let line = |from: &[T]| from[place.clone()].as_ptr().cast::<Line>().read_unaligned();
            let mut values = T::widened::<AVX2>(&line(a));
            let others = b.map_or(values, |b| T::widened::<AVX2>(&line(b)));
            for (values, others) in values.iter_mut().zip(&others) {
                for (value, &other) in values.iter_mut().zip(others) {
                    *value = E::at::<T>(*value, other);
                }
            }
            let to = out[place].as_mut_ptr().cast::<Line>();
            to.write_unaligned(T::rounded::<AVX2>(values));
        }
    }
}

macro_rules! each {
    ($($op:ident $of:ident |$a:ident, $b:ident| $value:expr;)*) => {
        $(
            struct $op;
            impl Widened for $op {
                #[inline(always)]
                fn at<T: Half>($a: f32, $b: f32) -> f32 {
                    $value
                }
            }
        )*

        fn of<T: Half>(op: Op, level: Level) -> Option<Kernels> {
            let cached = match op {
                $(Op::$op => kernel_of::<$of<T, $op>>(level),)*
                _ => return None,
            };
            Some(Kernels::of(cached))
        }
    };
}

each! {
    Add Binary |a, b| a + b;
    Subtract Binary |a, b| a - b;
    Multiply Binary |a, b| a * b;
    Divide Binary |a, b| a / b;
    Maximum Binary |a, b| first_if::<T>(a == b, a, maximum(a, b));
    Minimum Binary |a, b| first_if::<T>(a == b, a, minimum(a, b));
    Square Unary |a, _b| a * a;
    Sqrt Unary |a, _b| a.sqrt();
    Relu Unary |a, _b| select_unpredictable(a <= 0.0, 0.0, a);
}

/// The first of two equal operands, where the type asks for it; the choice is one of compilation for other types.
#[inline(always)]
fn first_if<T: Half>(equal: bool, first: f32, other: f32) -> f32 {
    if T::FIRST_OF_EQUALS { select_unpredictable(equal, first, other) } else { other }
}

/// The kernels of an operation on halves, whose result is a half too; none but for the most common.
pub fn half(op: Op, dtype: DType, level: Level) -> Option<Kernels> {
    match dtype {
        DType::F16 => of::<f16>(op, level),
        DType::Bf16 => of::<bf16>(op, level),
        _ => None,
    }
}
