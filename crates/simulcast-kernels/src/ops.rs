//! Kernels: the loop of each operation, for each element type, instruction-set level and pattern of
//! repeated operands.
//!
//! ```text
//! body    what an operation does to one element: a type without values, its `at` inlined
//! light   a body of a few instructions: one loop for each pattern and each level but AVX-512, whose
//!         vectors of a whole line mostly lie across two, and with AVX2 in two variants: results that
//!         stay in the caches, and results that go past them
//! busy    the same, of a few instructions more: beside results that go past the caches, memory is asked for ahead
//! tiled   a body of many instructions that vectorise: one loop for each level, over tiles of whole
//!         vectors; operands that repeat or end are copied into one, which costs little beside the body
//! heavy   a body that calls a function or branches: one loop for all levels and patterns, since the
//!         loop is not what takes the time; it is bit-equal at every level
//! chain   many light steps, and some functions, as one loop, which looks up what each of them is
//! ```
//!
//! Signed and unsigned integers of one width share what is the same for both, and what only moves
//! elements goes by their size.
//!
//! Invariant: whoever calls a kernel passes `len` elements of the result and of each operand of the
//! operation, or one where the operand's bit of the pattern is set, all aligned; the result overlaps
//! no operand.

mod boolean;
mod cast;
pub(crate) mod complex;
mod complex_functions;
pub(crate) mod float;
mod fused_pairs;
mod half;
pub(crate) mod int;
mod int_divide;
mod int_power;
pub(crate) mod loops;
pub(crate) mod table;
#[cfg(test)]
mod tests;
mod where_;

use std::mem::MaybeUninit;

use crate::cpu::level::Level;
use crate::cpu::nontemporal::Strip;
use crate::{DType, Op};

pub use cast::cast;
pub use fused_pairs::{choice_by, pair};
pub use half::half;

use table::{patterns, staying, table};

/// A loop over a stretch: `out[i] = op(a[i], b[i], c[i])`; an operand whose bit is set in the
/// pattern is one element. It is called under the invariant of this module.
pub type Kernel = unsafe fn(out: *mut u8, ins: [*const u8; 3], len: usize);

/// The same, with results that go past the caches, and lie as a strip says, which they fit: before anybody reads them,
/// a [`Fence`](crate::cpu::nontemporal::Fence) must follow.
pub type Past = unsafe fn(out: *mut u8, ins: [*const u8; 3], len: usize, strip: &Strip);

/// A loop, with results that stay in the caches or go past them.
#[derive(Clone, Copy)]
pub enum Call {
    Stay(Kernel),
    Past(Past),
}

impl Call {
    /// # Safety
    ///
    /// As [`Kernel`].
    #[inline(always)]
    pub unsafe fn run(self, out: *mut u8, ins: [*const u8; 3], len: usize) {
        // SAFETY: the caller keeps the invariant.
        unsafe {
            match self {
                Self::Stay(kernel) => kernel(out, ins, len),
                Self::Past(past) => past(out, ins, len, &Strip::NONE),
            }
        }
    }
}

/// The loops of an operation, one for each pattern of repeated operands.
#[derive(Clone, Copy, Debug)]
pub struct Loops {
    each: &'static [Kernel],
    /// The same loops, with results that go past the caches, or none.
    past: &'static [Past],
    /// Whether an element takes longer than memory takes to bring it.
    pub slow: bool,
}

impl std::ops::Deref for Loops {
    type Target = [Kernel];

    #[inline]
    fn deref(&self) -> &[Kernel] {
        self.each
    }
}

impl Loops {
    /// The loop for a pattern whose results go past the caches, where there is one.
    #[inline]
    pub fn past(&self, pattern: usize) -> Option<Past> {
        self.past.get(pattern).copied()
    }
}

/// The loops of an operation on operands of `dtype` (of `where`: the second and third, the first is
/// `bool`), one for each pattern of repeated operands but the last, in which all are: then one
/// element is computed, and repeated. Bit k of a pattern stands for operand k. None where the
/// operation is not defined on the type.
pub fn kernels(op: Op, dtype: DType, level: Level) -> Option<Loops> {
    if op == Op::Where {
        return where_::select(dtype, level);
    }
    match dtype {
        DType::Bool => boolean::boolean(op, level),
        DType::I8 => int::signed::<i8>(op, level),
        DType::I16 => int::signed::<i16>(op, level),
        DType::I32 => int::signed::<i32>(op, level),
        DType::I64 => int::signed::<i64>(op, level),
        DType::U8 => int::unsigned::<u8>(op, level),
        DType::U16 => int::unsigned::<u16>(op, level),
        DType::U32 => int::unsigned::<u32>(op, level),
        DType::U64 => int::unsigned::<u64>(op, level),
        DType::F32 => float::float::<f32>(op, level),
        DType::F64 => float::float::<f64>(op, level),
        DType::C64 => complex::complex::<f32>(op, level),
        DType::C128 => complex::complex::<f64>(op, level),
        DType::F16 | DType::Bf16 | DType::String => None,
    }
}

/// The type of the result: `bool` of what asks, the type of the parts for those of a complex number
/// and for its absolute value, and otherwise `dtype`.
pub const fn result_of(op: Op, dtype: DType) -> DType {
    match (op, dtype) {
        (
            Op::LogicalNot
            | Op::LogicalAnd
            | Op::LogicalOr
            | Op::LogicalXor
            | Op::Isnan
            | Op::Isinf
            | Op::Isfinite
            | Op::Equal
            | Op::NotEqual
            | Op::Less
            | Op::LessEqual
            | Op::Greater
            | Op::GreaterEqual,
            _,
        ) => DType::Bool,
        (Op::Absolute | Op::Real | Op::Imag, DType::C64) => DType::F32,
        (Op::Absolute | Op::Real | Op::Imag, DType::C128) => DType::F64,
        _ => dtype,
    }
}

/// How a body is made into loops.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Weight {
    Light,
    /// Light, but long enough for a processor to see few lines of memory ahead, so that those are asked for.
    Busy,
    Tiled,
    Heavy,
}

/// The most elements of a tile. A loop over fewer would be unrolled to its end, and its constants
/// read again and again.
const TILE: usize = 256;

/// What an operation does to one element. Operands that it doesn't have are `()`.
pub trait Body {
    type A: Copy;
    type B: Copy;
    type C: Copy;
    type Out: Copy;

    /// How many operands there are.
    const ARITY: usize;
    const WEIGHT: Weight;

    /// The result; `FMA` says whether the level has fused multiply-add.
    fn at<const FMA: bool>(a: Self::A, b: Self::B, c: Self::C) -> Self::Out;

    /// Whether tiles by a second operand that repeats are made by [`Self::tile_by`].
    const BY_ONE: bool = false;

    /// The results of a tile: all slices have the same length.
    #[inline(always)]
    fn tile<const FMA: bool>(
        a: &[Self::A],
        b: &[Self::B],
        c: &[Self::C],
        out: &mut [MaybeUninit<Self::Out>],
    ) {
        for (((out, &a), &b), &c) in out.iter_mut().zip(a).zip(b).zip(c) {
            out.write(Self::at::<FMA>(a, b, c));
        }
    }

    /// The results of a tile of a first operand, and one second one.
    #[inline(always)]
    fn tile_by<const FMA: bool>(_a: &[Self::A], _b: Self::B, _out: &mut [MaybeUninit<Self::Out>]) {}
}

/// Writes bodies of operations on one type and the table that finds their loops.
macro_rules! bodies {
    (
        $(#[$meta:meta])*
        fn $table:ident<$T:ident: $bound:path>;
        $($weight:ident $op:ident($($operand:ident),+) -> $out:ty { $value:expr })*
    ) => {
        $(#[$meta])*
        pub(crate) fn $table<$T: $bound>(
            op: $crate::Op,
            level: $crate::Level,
        ) -> Option<$crate::ops::Loops> {
            $(
                struct $op<$T>(std::marker::PhantomData<$T>);
                impl<$T: $bound> $crate::ops::Body for $op<$T> {
                    $crate::ops::body!($weight, $T ($($operand)+) -> $out { $value });
                }
            )*
            match op {
                $($crate::Op::$op => Some($crate::ops::table::<$op<$T>>(level)),)*
                _ => None,
            }
        }
    };
}

/// The inside of a [`Body`] whose operands are all of one type.
macro_rules! body {
    (light, $($rest:tt)*) => { $crate::ops::body!(Light; $($rest)*); };
    (busy, $($rest:tt)*) => { $crate::ops::body!(Busy; $($rest)*); };
    (tiled, $($rest:tt)*) => { $crate::ops::body!(Tiled; $($rest)*); };
    (heavy, $($rest:tt)*) => { $crate::ops::body!(Heavy; $($rest)*); };
    ($weight:ident; $T:ident ($a:ident) -> $out:ty { $value:expr }) => {
        $crate::ops::body!($weight 1 $out { $value } $a: $T, _unused: (), _none: ());
    };
    ($weight:ident; $T:ident ($a:ident $b:ident) -> $out:ty { $value:expr }) => {
        $crate::ops::body!($weight 2 $out { $value } $a: $T, $b: $T, _none: ());
    };
    ($weight:ident; $T:ident ($a:ident $b:ident $c:ident) -> $out:ty { $value:expr }) => {
        $crate::ops::body!($weight 3 $out { $value } $a: $T, $b: $T, $c: $T);
    };
    ($weight:ident $arity:literal $out:ty { $value:expr }
        $a:ident: $A:ty, $b:ident: $B:ty, $c:ident: $C:ty) => {
        type A = $A;
        type B = $B;
        type C = $C;
        type Out = $out;
        const ARITY: usize = $arity;
        const WEIGHT: $crate::ops::Weight = $crate::ops::Weight::$weight;
        #[inline(always)]
        fn at<const FMA: bool>($a: $A, $b: $B, $c: $C) -> $out {
            $value
        }
    };
}

use bodies;
pub(crate) use body;

/// The result that a tile of one element has; `some` is any value.
#[inline(always)]
fn alone<T: Copy>(some: T, tile: impl FnOnce(&mut [MaybeUninit<T>])) -> T {
    let mut result = [MaybeUninit::new(some)];
    tile(&mut result);
    // SAFETY: it was written before, and a tile may only write results.
    unsafe { result[0].assume_init() }
}
