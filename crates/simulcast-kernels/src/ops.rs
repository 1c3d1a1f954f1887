//! The loop of each operation, for each element type and instruction-set level.
//!
//! ```text
//! element op  what an operation does to one element: a type without values, its `at` inlined
//! light       a few instructions: a loop over chunks, for AVX2 alone: the vectors of AVX-512, of a whole cache line,
//!             mostly lie across two
//! busy        the same with a few instructions more: beside non-temporal stores, its operand is prefetched
//! fused       light, but one instruction where there is FMA: a loop over tiles
//! tiled       many instructions that vectorise: a loop over tiles of whole vectors for each level; repeated operands and
//!             ends are copied into a tile, which costs little beside the operation
//! heavy       a function call or branches: one loop over single elements for all levels, bit-equal at each of them
//! ```
//!
//! Chains of light steps are loops of the [register machine](crate::register_vm).
//!
//! Signed and unsigned integers of one width share the operations that do not depend on the sign, and moves go by element
//! size.
//!
//! Invariant: a kernel gets `len` aligned elements of the result and of each operand of the operation, or one of an operand
//! whose bit of `repeated` is set; the result overlaps no operand.

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
use crate::tuning::{NARROW_RESULTS, TILE_ELEMENTS as TILE};
use crate::{DType, Op};

pub use cast::{Conversion, cast};
pub use fused_pairs::{choice_by, pair};
pub use half::half;

use table::{kernel_of, kernels_of};

/// The loop of an operation: `out[i] = op(a[i], b[i], c[i])`. Bit k of `repeated` is set if operand k is one element,
/// read for every `i`. It is called under the invariant of this module.
pub type Kernel = unsafe fn(out: *mut u8, ins: &[*const u8; 3], repeated: usize, len: usize);

/// The same with non-temporal stores: a [`Fence`](crate::cpu::nontemporal::Fence) must follow before anything reads the
/// results. It prefetches the operand with number `far`, which comes from memory.
pub type NonTemporalKernel =
    unsafe fn(out: *mut u8, ins: &[*const u8; 3], repeated: usize, len: usize, far: Option<usize>);

/// The kernels of an operation on a type, at a level.
#[derive(Clone, Copy, Debug)]
pub struct Kernels {
    pub cached: Kernel,
    /// The same with non-temporal stores; without it, results are made in a tile in the first-level cache and copied
    /// from there.
    pub nontemporal: Option<NonTemporalKernel>,
    /// Whether an element takes longer than memory takes to bring it.
    pub compute_bound: bool,
    /// Whether an element takes so long that out-of-order execution reaches few cache lines ahead: prefetching pays.
    pub prefetches: bool,
}

impl Kernels {
    /// A kernel without a non-temporal variant, that waits for memory.
    pub const fn of(cached: Kernel) -> Self {
        Self { cached, nontemporal: None, compute_bound: false, prefetches: false }
    }

    /// Runs the kernel, with non-temporal stores if `nontemporal` says so and it has them.
    ///
    /// # Safety
    ///
    /// As [`Kernel`] and [`NonTemporalKernel`].
    #[inline(always)]
    pub unsafe fn run(
        &self,
        nontemporal: bool,
        out: *mut u8,
        ins: &[*const u8; 3],
        repeated: usize,
        len: usize,
    ) {
        // SAFETY: the caller keeps the invariant.
        unsafe {
            match self.nontemporal {
                Some(kernel) if nontemporal => kernel(out, ins, repeated, len, None),
                _ => (self.cached)(out, ins, repeated, len),
            }
        }
    }
}

/// The kernels of an operation on operands of `dtype` (of `where`: the second and third, the first is
/// `bool`). None where the operation is not defined on the type, or where it is another one, [`swapped`].
pub fn kernels(op: Op, dtype: DType, level: Level) -> Option<Kernels> {
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

/// The comparison whose kernels serve this one with its operands swapped: `a > b` is `b < a`.
pub const fn swapped(op: Op) -> Option<Op> {
    match op {
        Op::Greater => Some(Op::Less),
        Op::GreaterEqual => Some(Op::LessEqual),
        _ => None,
    }
}

/// The type of the result of an operation on operands of `dtype`.
pub const fn result_of(op: Op, dtype: DType) -> DType {
    op.row().domain.result(dtype)
}

/// How an operation is made into loops.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Weight {
    Light,
    /// Light, but so long that out-of-order execution reaches few cache lines ahead: memory is prefetched.
    Busy,
    /// Light, but another instruction with FMA.
    Fused,
    Tiled,
    Heavy,
}

/// What an operation does to one element. Operands that it doesn't have are `()`.
pub trait ElementOp {
    type A: Copy;
    type B: Copy;
    type C: Copy;
    type Out: Copy;

    /// How many operands there are.
    const ARITY: usize;
    const WEIGHT: Weight;

    /// The result; `FMA` says whether the level has fused multiply-add.
    fn at<const FMA: bool>(a: Self::A, b: Self::B, c: Self::C) -> Self::Out;

    /// The operand that alone is read if the first one repeats as `a`: it has the type of both others.
    #[inline(always)]
    fn only(_a: Self::A) -> Option<usize> {
        None
    }

    /// Tiles are whole multiples of this, by default a vector of the widest level: their loops have no remainder.
    const LANES: usize = 16;

    /// Whether tiles by a second operand that repeats are made by [`Self::tile_by`].
    const BY_ONE: bool = false;

    /// The results of a tile or a chunk: all slices have the same length. The references promise the compiler that operands
    /// and results do not overlap.
    ///
    /// # Safety
    ///
    /// With `FMA`, the caller is compiled for AVX2 with FMA and F16C.
    #[inline(always)]
    unsafe fn tile<const FMA: bool>(
        a: &[Self::A],
        b: &[Self::B],
        c: &[Self::C],
        out: &mut [MaybeUninit<Self::Out>],
    ) {
        let (a, b, c) = (&a[..out.len()], &b[..out.len()], &c[..out.len()]);
        let mut done = 0;
        if size_of::<Self::Out>() < size_of::<Self::A>() {
            // Results narrower than operands, as of comparisons: as many at a time as fill a vector. Otherwise the compiler takes
            // as many as fill one of operands, and packs each by itself: 22 instructions for 32 comparisons of `f32`, and 16 so.
            for results in out.as_chunks_mut::<NARROW_RESULTS>().0 {
                let (a, b, c) = (&a[done..], &b[done..], &c[done..]);
                let (a, b, c) = (&a[..NARROW_RESULTS], &b[..NARROW_RESULTS], &c[..NARROW_RESULTS]);
                for at in 0..NARROW_RESULTS {
                    results[at].write(Self::at::<FMA>(a[at], b[at], c[at]));
                }
                done += NARROW_RESULTS;
            }
        }
        // By index: through iterators, the compiler loses that operands and results do not overlap, asks before each chunk, and
        // keeps a loop for where they do. A chunk of `add` of `f32` is 55 instructions so, and 118 otherwise.
        for at in done..out.len() {
            out[at].write(Self::at::<FMA>(a[at], b[at], c[at]));
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
        ) -> Option<$crate::ops::Kernels> {
            $(
                struct $op<$T>(std::marker::PhantomData<$T>);
                impl<$T: $bound> $crate::ops::ElementOp for $op<$T> {
                    $crate::ops::body!($weight, $T ($($operand)+) -> $out { $value });
                }
            )*
            match op {
                $($crate::Op::$op => Some($crate::ops::kernels_of::<$op<$T>>(level)),)*
                _ => None,
            }
        }
    };
}

/// The inside of a [`ElementOp`] whose operands are all of one type.
macro_rules! body {
    (light, $($rest:tt)*) => { $crate::ops::body!(Light; $($rest)*); };
    (busy, $($rest:tt)*) => { $crate::ops::body!(Busy; $($rest)*); };
    (fused, $($rest:tt)*) => { $crate::ops::body!(Fused; $($rest)*); };
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
