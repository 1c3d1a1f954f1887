//! Arithmetic on `f16` and `bf16` in one loop: widened, computed in `f32` and rounded once.
//!
//! Those of `f16` are written by hand, sixteen elements at a time, because no compiler makes the
//! instructions that convert them out of anything else.

use std::hint::select_unpredictable;

use half::{bf16, f16};

use super::float::{maximum, minimum};
use super::{Kernel, Loops, bodies};
use crate::level::Kind;
use crate::math::half::{bf16_from_f32, f16_from_f32};
use crate::{Addend, DType, Level, Op};

/// The elements that are done at once.
const LANES: usize = 16;

/// The loops of an operation on halves, whose result is a half too; none but for the most common.
pub(crate) fn half(op: Op, dtype: DType, level: Level) -> Option<Loops> {
    match dtype {
        DType::F16 => of(op, level),
        DType::Bf16 => brain::<bf16>(op, level),
        _ => None,
    }
}

/// A `bf16`.
pub(super) trait Brain: Addend<Sum = f32> {
    fn rounded(wide: f32) -> Self;
}

impl Brain for bf16 {
    #[inline(always)]
    fn rounded(wide: f32) -> Self {
        bf16_from_f32(wide)
    }
}

bodies! {
    /// The loops on `bf16`.
    fn brain<T: Brain>;
    light Add(a, b) -> T { T::rounded(a.widen() + b.widen()) }
    light Subtract(a, b) -> T { T::rounded(a.widen() - b.widen()) }
    light Multiply(a, b) -> T { T::rounded(a.widen() * b.widen()) }
    light Divide(a, b) -> T { T::rounded(a.widen() / b.widen()) }
    light Maximum(a, b) -> T { T::rounded(maximum(a.widen(), b.widen())) }
    light Minimum(a, b) -> T { T::rounded(minimum(a.widen(), b.widen())) }
    light Square(a) -> T { T::rounded(a.widen() * a.widen()) }
    light Sqrt(a) -> T { T::rounded(a.widen().sqrt()) }
    light Relu(a) -> T { if a.widen() <= 0.0 { T::rounded(0.0) } else { a } }
}

/// What is done to one element of `f16`.
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

        fn of(op: Op, level: Level) -> Option<Loops> {
            match op {
                $(Op::$op => Some(table::<$op>(level)),)*
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

/// The loops for each pattern of repeated operands.
fn table<E: Each>(level: Level) -> Loops {
    macro_rules! patterns {
        ($shim:ident) => {
            const {
                match E::ARITY {
                    1 => &[$shim::<E, 0> as Kernel] as &[Kernel],
                    _ => &[$shim::<E, 0>, $shim::<E, 1>, $shim::<E, 2>],
                }
            }
        };
    }
    let each = match level.kind() {
        Kind::Baseline => patterns!(baseline),
        #[cfg(target_arch = "x86_64")]
        Kind::Avx2 | Kind::Avx512 => patterns!(wide),
    };
    Loops { each, past: &[], slow: false }
}

/// # Safety
///
/// The invariant of kernels.
unsafe fn baseline<E: Each, const PATTERN: usize>(out: *mut u8, ins: [*const u8; 3], len: usize) {
    // SAFETY: the caller keeps the invariant.
    unsafe { halves::<E, PATTERN, false>(out.cast(), [ins[0].cast(), ins[1].cast()], len) }
}

/// # Safety
///
/// The invariant of kernels, and the machine has the features.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt,movbe")]
unsafe fn wide<E: Each, const PATTERN: usize>(out: *mut u8, ins: [*const u8; 3], len: usize) {
    // SAFETY: the caller keeps the invariant.
    unsafe { halves::<E, PATTERN, true>(out.cast(), [ins[0].cast(), ins[1].cast()], len) }
}

/// # Safety
///
/// The invariant of kernels; with `WIDE` the caller is compiled for AVX2 and F16C.
#[inline(always)]
unsafe fn halves<E: Each, const PATTERN: usize, const WIDE: bool>(
    out: *mut f16,
    [a, b]: [*const f16; 2],
    len: usize,
) {
    /// An operand: repeated, or where it is.
    struct Operand<const REPEATS: bool> {
        from: *const f16,
        one: [f32; LANES],
    }

    impl<const REPEATS: bool> Operand<REPEATS> {
        #[inline(always)]
        unsafe fn new(from: *const f16) -> Self {
            // SAFETY: what repeats has one element.
            let one = if REPEATS { unsafe { from.read() }.widen() } else { 0.0 };
            Self { from, one: [one; LANES] }
        }

        /// `count` elements from `at` on, and anything after them.
        #[inline(always)]
        unsafe fn get<const WIDE: bool>(&self, at: usize, count: usize) -> [f32; LANES] {
            // SAFETY: the operand has `at + count` elements, and so has the room.
            unsafe {
                if REPEATS {
                    self.one
                } else if count == LANES {
                    widened::<WIDE>(self.from.add(at))
                } else {
                    let mut room = [f16::ZERO; LANES];
                    room.as_mut_ptr().copy_from_nonoverlapping(self.from.add(at), count);
                    widened::<WIDE>(room.as_ptr())
                }
            }
        }
    }

    macro_rules! all {
        ($first:literal $second:literal) => {{
            let a = Operand::<$first>::new(a);
            let b = Operand::<$second>::new(if E::ARITY == 2 { b } else { a.from });
            let value = |at: usize, count: usize| {
                let (x, y) = (a.get::<WIDE>(at, count), b.get::<WIDE>(at, count));
                std::array::from_fn(|lane| E::at(x[lane], y[lane]))
            };
            let whole = len / LANES * LANES;
            for at in (0..whole).step_by(LANES) {
                narrowed::<WIDE>(value(at, LANES), out.add(at));
            }
            if whole < len {
                let mut room = [f16::ZERO; LANES];
                narrowed::<WIDE>(value(whole, len - whole), room.as_mut_ptr());
                out.add(whole).copy_from_nonoverlapping(room.as_ptr(), len - whole);
            }
        }};
    }
    if len == 0 {
        return;
    }
    // SAFETY: operands have `len` elements, or one where they repeat, and the result has `len`.
    unsafe {
        match PATTERN {
            1 => all!(true false),
            2 => all!(false true),
            _ => all!(false false),
        }
    }
}

/// # Safety
///
/// There are sixteen; with `WIDE` the caller is compiled for AVX2 and F16C.
#[inline(always)]
unsafe fn widened<const WIDE: bool>(from: *const f16) -> [f32; LANES] {
    #[cfg(target_arch = "x86_64")]
    if WIDE {
        use std::arch::x86_64::{_mm_loadu_si128, _mm256_cvtph_ps};
        // SAFETY: the caller promises the elements and the features; both are 64 bytes of
        // numbers.
        return unsafe {
            std::mem::transmute::<[std::arch::x86_64::__m256; 2], [f32; LANES]>([
                _mm256_cvtph_ps(_mm_loadu_si128(from.cast())),
                _mm256_cvtph_ps(_mm_loadu_si128(from.add(LANES / 2).cast())),
            ])
        };
    }
    // SAFETY: the caller promises the elements.
    unsafe { from.cast::<[f16; LANES]>().read() }.map(Addend::widen)
}

/// # Safety
///
/// There is room for sixteen; with `WIDE` the caller is compiled for AVX2 and F16C.
#[inline(always)]
unsafe fn narrowed<const WIDE: bool>(values: [f32; LANES], to: *mut f16) {
    #[cfg(target_arch = "x86_64")]
    if WIDE {
        use std::arch::x86_64::{
            __m256, _MM_FROUND_TO_NEAREST_INT, _mm_storeu_si128, _mm256_cvtps_ph,
        };
        // SAFETY: the caller promises the room and the features; both are 64 bytes of numbers.
        unsafe {
            let [low, high] = std::mem::transmute::<[f32; LANES], [__m256; 2]>(values);
            let (low, high) = (
                _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(low),
                _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(high),
            );
            _mm_storeu_si128(to.cast(), low);
            _mm_storeu_si128(to.add(LANES / 2).cast(), high);
        }
        return;
    }
    // SAFETY: the caller promises the room.
    unsafe { to.cast::<[f16; LANES]>().write(values.map(f16_from_f32)) };
}
