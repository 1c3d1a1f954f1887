//! Arithmetic on `f16` and `bf16` in one loop: widened, computed in `f32` and rounded once.
//!
//! ```text
//! f16     by the instructions that convert it, which no compiler makes out of anything else
//! bf16    two neighbours are one number of 32 bits: the upper one is a float once the lower is
//!         cleared, the lower one once it is shifted up, and nothing moves across a vector
//! ```
//!
//! A line of results is made at a time, in registers, from which it goes to its place or past the
//! caches. That takes so many instructions that a processor sees few lines of memory ahead: those are asked for.

use std::hint::select_unpredictable;

use half::{bf16, f16};

use super::{Kernel, Loops, Past, patterns};
use crate::compiled_for_levels;
use crate::cpu::level::Kind;
use crate::cpu::nontemporal::{self, LINE, ROW, Strip};
use crate::math::half::f16_from_f32;
use crate::ops::float::{maximum, minimum};
use crate::{Addend, DType, Level, Op};

/// The elements that are done at once: those of a line, in two halves.
const LANES: usize = 2 * TOGETHER;
const TOGETHER: usize = 16;

/// As many floats. Which is whose is for the type to say: it is the same for operands and results.
type Wide = [[f32; TOGETHER]; 2];

/// As many halves, two in a number.
type Line = [u32; TOGETHER];

const _: () = assert!(size_of::<Line>() == LINE && size_of::<[f16; LANES]>() == LINE);

/// The upper one of two.
const UPPER: u32 = 0xffff_0000;

/// What the loops are compiled for: vectors of the baseline, of AVX2 with F16C, or of AVX-512.
const BASELINE: usize = 0;
const SHORT: usize = 1;
const LONG: usize = 2;

/// A type of 16 bits.
trait Half: Addend<Sum = f32> {
    /// A line of them as floats.
    ///
    /// # Safety
    ///
    /// The caller is compiled for those vectors.
    unsafe fn widened<const VECTORS: usize>(line: &Line) -> Wide;

    /// The nearest ones of what an operation makes of lines of them.
    ///
    /// # Safety
    ///
    /// As [`Half::widened`].
    unsafe fn rounded<const VECTORS: usize>(values: Wide) -> Line;
}

impl Half for f16 {
    #[inline(always)]
    unsafe fn widened<const VECTORS: usize>(line: &Line) -> Wide {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if VECTORS == LONG {
            use std::arch::x86_64::{__m256i, __m512, _mm512_cvtph_ps};
            // SAFETY: the caller has the instructions; both are as many bytes of numbers.
            return unsafe {
                let halves = std::mem::transmute::<Line, [__m256i; 2]>(*line);
                let values = [_mm512_cvtph_ps(halves[0]), _mm512_cvtph_ps(halves[1])];
                std::mem::transmute::<[__m512; 2], Wide>(values)
            };
        }
        let from = (&raw const *line).cast::<Self>();
        // SAFETY: a line is as many elements, and the caller has the instructions.
        unsafe {
            let last = from.add(TOGETHER);
            if VECTORS == BASELINE {
                [Self::widen_all::<false, TOGETHER>(from), Self::widen_all::<false, TOGETHER>(last)]
            } else {
                [Self::widen_all::<true, TOGETHER>(from), Self::widen_all::<true, TOGETHER>(last)]
            }
        }
    }

    #[inline(always)]
    unsafe fn rounded<const VECTORS: usize>(values: Wide) -> Line {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if VECTORS == LONG {
            use std::arch::x86_64::{
                __m256i, __m512, _MM_FROUND_TO_NEAREST_INT as NEAREST, _mm512_cvtps_ph,
            };
            // SAFETY: the caller has the instructions; both are as many bytes of numbers.
            return unsafe {
                let [a, b] = std::mem::transmute::<Wide, [__m512; 2]>(values);
                let halves = [_mm512_cvtps_ph::<NEAREST>(a), _mm512_cvtps_ph::<NEAREST>(b)];
                std::mem::transmute::<[__m256i; 2], Line>(halves)
            };
        }
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if VECTORS == SHORT {
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
        let mut halves = [Self::ZERO; LANES];
        for (half, &value) in halves.iter_mut().zip(values.as_flattened()) {
            *half = f16_from_f32(value);
        }
        // SAFETY: both are as many bytes of numbers.
        unsafe { std::mem::transmute::<[Self; LANES], Line>(halves) }
    }
}

impl Half for bf16 {
    #[inline(always)]
    unsafe fn widened<const VECTORS: usize>(line: &Line) -> Wide {
        let mut values = [[0.0; TOGETHER]; 2];
        for (at, both) in line.iter().enumerate() {
            values[0][at] = f32::from_bits(both << 16);
            values[1][at] = f32::from_bits(both & UPPER);
        }
        values
    }

    /// A NaN needs no care: it is an operand's or the machine's own, and its last bits are 0, so that
    /// it is not rounded.
    #[inline(always)]
    unsafe fn rounded<const VECTORS: usize>([lower, upper]: Wide) -> Line {
        let (mut first, mut last) = ([0; TOGETHER], [0; TOGETHER]);
        for (at, (lower, upper)) in lower.into_iter().zip(upper).enumerate() {
            let (lower, upper) = (lower.to_bits(), upper.to_bits());
            first[at] = lower >> 16 | upper & UPPER;
            last[at] = lower & !UPPER | upper << 16;
        }
        // SAFETY: all are as many bytes of numbers.
        unsafe {
            let mut halves = std::mem::transmute::<Line, [u16; LANES]>(first);
            let last = std::mem::transmute::<Line, [u16; LANES]>(last);
            for (half, last) in halves.iter_mut().zip(last) {
                // Up from more than a half on, and from a half where the first bits are odd.
                let over = (last ^ 0x8000).cast_signed().saturating_add((*half & 1).cast_signed());
                *half = half.wrapping_add(u16::from(over > 0));
            }
            std::mem::transmute::<[u16; LANES], Line>(halves)
        }
    }
}

/// What is done to one element.
trait Each {
    const ARITY: usize;
    fn at(a: f32, b: f32) -> f32;
}

macro_rules! each {
    ($($op:ident $arity:literal |$a:ident, $b:ident| $value:expr;)*) => {
        $(
            struct $op;
            impl Each for $op {
                const ARITY: usize = $arity;
                #[inline(always)]
                fn at($a: f32, $b: f32) -> f32 {
                    $value
                }
            }
        )*

        fn of<T: Half>(op: Op, level: Level) -> Option<Loops> {
            match op {
                $(Op::$op => Some(table::<T, $op>(level)),)*
                _ => None,
            }
        }
    };
}

each! {
    Add 2 |a, b| a + b;
    Subtract 2 |a, b| a - b;
    Multiply 2 |a, b| a * b;
    Divide 2 |a, b| a / b;
    Maximum 2 |a, b| maximum(a, b);
    Minimum 2 |a, b| minimum(a, b);
    Square 1 |a, _b| a * a;
    Sqrt 1 |a, _b| a.sqrt();
    Relu 1 |a, _b| select_unpredictable(a <= 0.0, 0.0, a);
}

/// The loops of an operation on halves, whose result is a half too; none but for the most common.
pub fn half(op: Op, dtype: DType, level: Level) -> Option<Loops> {
    match dtype {
        DType::F16 => of::<f16>(op, level),
        DType::Bf16 => of::<bf16>(op, level),
        _ => None,
    }
}

fn table<T: Half, E: Each>(level: Level) -> Loops {
    let (each, past) = match level.kind() {
        Kind::Baseline => (patterns!(E::ARITY, halves<T, E; BASELINE> as Kernel), &[] as &[Past]),
        #[cfg(target_arch = "x86_64")]
        Kind::Avx2 => (
            patterns!(E::ARITY, halves_avx2<T, E; SHORT> as Kernel),
            patterns!(E::ARITY, past_avx2<T, E; SHORT> as Past),
        ),
        #[cfg(target_arch = "x86_64")]
        Kind::Avx512 => (
            patterns!(E::ARITY, halves_avx512<T, E; LONG> as Kernel),
            patterns!(E::ARITY, past_avx512<T, E; LONG> as Past),
        ),
    };
    Loops { each, past, slow: false }
}

compiled_for_levels! {
    /// [`halves`], compiled for a level.
    ///
    /// # Safety
    ///
    /// As there, and the machine has the features.
    unsafe fn halves_avx2, halves_avx512<T: Half, E: Each, const PATTERN: usize, const VECTORS: usize>(
        out: *mut u8,
        ins: [*const u8; 3],
        len: usize,
    ) {
        // SAFETY: the caller keeps the invariant.
        unsafe { halves::<T, E, PATTERN, VECTORS>(out, ins, len) }
    }
}

compiled_for_levels! {
    /// [`past`], compiled for a level.
    ///
    /// # Safety
    ///
    /// As there, and the machine has the features.
    unsafe fn past_avx2, past_avx512<T: Half, E: Each, const PATTERN: usize, const VECTORS: usize>(
        out: *mut u8,
        ins: [*const u8; 3],
        len: usize,
        strip: &Strip,
    ) {
        // SAFETY: the caller keeps the invariant.
        unsafe { past::<T, E, PATTERN, VECTORS>(out, ins, len, strip) }
    }
}

/// # Safety
///
/// The invariant of kernels, and the caller is compiled for those vectors.
#[inline(always)]
unsafe fn halves<T: Half, E: Each, const PATTERN: usize, const VECTORS: usize>(
    out: *mut u8,
    ins: [*const u8; 3],
    len: usize,
) {
    // SAFETY: the caller keeps the conditions.
    unsafe { row::<T, E, PATTERN, VECTORS, false>(out, ins, len, None) };
}

/// The same, with results that go past the caches.
///
/// # Safety
///
/// As [`halves`], and that of [`Past`].
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn past<T: Half, E: Each, const PATTERN: usize, const VECTORS: usize>(
    out: *mut u8,
    ins: [*const u8; 3],
    len: usize,
    strip: &Strip,
) {
    let (mut to, mut ask) = (out, strip.ask);
    let far = strip.far.and_then(|number| ins.get(number).copied());
    let each = if strip.is_none() { len.max(1) } else { ROW / size_of::<T>() };
    for at in (0..len).step_by(each).map(|first| first * size_of::<T>()) {
        ask.some();
        let moved = |n: usize| ins[n].wrapping_add(if PATTERN >> n & 1 == 1 { 0 } else { at });
        let ins = [moved(0), moved(1), ins[2]];
        // SAFETY: the caller keeps the conditions.
        unsafe { row::<T, E, PATTERN, VECTORS, true>(to, ins, each, far) };
        to = to.wrapping_offset(strip.pitch);
    }
}

/// Operand `NUMBER` of a pattern: one element as a line, or where it is.
struct Operand<T, const PATTERN: usize, const NUMBER: usize> {
    from: *const T,
    one: Wide,
}

impl<T: Half, const PATTERN: usize, const NUMBER: usize> Operand<T, PATTERN, NUMBER> {
    const REPEATS: bool = PATTERN >> NUMBER & 1 == 1;

    /// # Safety
    ///
    /// There is one element, if it repeats.
    #[inline(always)]
    unsafe fn new(from: *const T) -> Self {
        // SAFETY: by the condition of this function.
        let one = if Self::REPEATS { unsafe { from.read() }.widen() } else { 0.0 };
        Self { from, one: [[one; TOGETHER]; 2] }
    }

    /// `count` elements from `at` on, and anything after them.
    ///
    /// # Safety
    ///
    /// There are so many, a line at most, unless it repeats; `VECTORS` as in [`Half::widened`].
    #[inline(always)]
    unsafe fn line<const VECTORS: usize>(&self, at: usize, count: usize) -> Wide {
        if Self::REPEATS {
            return self.one;
        }
        // SAFETY: by the conditions of this function; a line has room for `count` elements.
        unsafe {
            let from = self.from.add(at);
            if count == LANES {
                return T::widened::<VECTORS>(&from.cast::<Line>().read_unaligned());
            }
            let mut line = [0; TOGETHER];
            line.as_mut_ptr().cast::<T>().copy_from_nonoverlapping(from, count);
            T::widened::<VECTORS>(&line)
        }
    }
}

/// A row, whose results go past the caches or not; what comes after it in an operand may be asked for.
///
/// # Safety
///
/// As [`halves`].
#[inline(always)]
unsafe fn row<T: Half, E: Each, const PATTERN: usize, const VECTORS: usize, const PAST: bool>(
    out: *mut u8,
    ins: [*const u8; 3],
    len: usize,
    far: Option<*const u8>,
) {
    /// The results from `at` on: `count` of them, and anything after them.
    ///
    /// # Safety
    ///
    /// As [`Operand::line`], for both.
    #[inline(always)]
    unsafe fn results<T: Half, E: Each, const PATTERN: usize, const VECTORS: usize>(
        a: &Operand<T, PATTERN, 0>,
        b: &Operand<T, PATTERN, 1>,
        at: usize,
        count: usize,
    ) -> Line {
        // SAFETY: the caller keeps the conditions; an operand that is not there is not read.
        unsafe {
            let x = a.line::<VECTORS>(at, count);
            let y = if E::ARITY == 2 { b.line::<VECTORS>(at, count) } else { x };
            let mut values = x;
            for (values, y) in values.iter_mut().zip(&y) {
                for (value, &y) in values.iter_mut().zip(y) {
                    *value = E::at(*value, y);
                }
            }
            T::rounded::<VECTORS>(values)
        }
    }

    if len == 0 {
        return;
    }
    let out = out.cast::<T>();
    // Past the caches go whole lines.
    let head = if PAST { out.addr().wrapping_neg() % LINE / size_of::<T>() } else { 0 }.min(len);
    let done = head + (len - head) / LANES * LANES;
    // SAFETY: operands have `len` elements, or one where they repeat, and the result has `len`.
    unsafe {
        let a = Operand::<T, PATTERN, 0>::new(ins[0].cast());
        let b = Operand::<T, PATTERN, 1>::new(ins[1].cast());
        for at in (head..done).step_by(LANES) {
            if let Some(far) = far {
                nontemporal::ask_ahead(far.wrapping_add(at * size_of::<T>()), LINE);
            }
            let line = results::<T, E, PATTERN, VECTORS>(&a, &b, at, LANES);
            if PAST && VECTORS == LONG {
                nontemporal::line::<true>(out.add(at).cast(), &line);
            } else if PAST {
                nontemporal::line::<false>(out.add(at).cast(), &line);
            } else {
                out.add(at).cast::<Line>().write_unaligned(line);
            }
        }
        for (from, to) in [(0, head), (done, len)] {
            if from < to {
                let line = results::<T, E, PATTERN, VECTORS>(&a, &b, from, to - from);
                let (place, made) = (out.add(from), (&raw const line).cast::<T>());
                if PAST {
                    nontemporal::edge(place.cast(), made.cast(), (to - from) * size_of::<T>());
                } else {
                    place.copy_from_nonoverlapping(made, to - from);
                }
            }
        }
    }
}
