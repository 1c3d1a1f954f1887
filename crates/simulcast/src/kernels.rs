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

mod analytic;
mod boolean;
mod cast;
#[cfg_attr(
    not(all(target_arch = "x86_64", not(miri))),
    allow(dead_code, reason = "there are no loops")
)]
mod chain;
mod complex;
mod divide;
mod float;
mod fold;
mod half;
mod int;
mod pair;
mod power;
mod select;
#[cfg(test)]
mod tests;

use std::mem::MaybeUninit;

use crate::level::{Level, compiled_for_levels};
use crate::stream::{self, Strip};
use crate::{DType, Op};

pub(crate) use cast::cast;
pub(crate) use chain::{Act, BLOCK, Bank, Chains, Place, Step};
#[cfg(all(target_arch = "x86_64", not(miri)))]
pub(crate) use chain::{Registers, chains};
pub(crate) use fold::{Abreast, Down, Fold, LEAF, RowFold, Rows, WIDE, abreast, fold, folds};
pub(crate) use half::half;
pub(crate) use pair::{choice_by, pair};

/// A loop over a stretch: `out[i] = op(a[i], b[i], c[i])`; an operand whose bit is set in the
/// pattern is one element. It is called under the invariant of this module.
pub(crate) type Kernel = unsafe fn(out: *mut u8, ins: [*const u8; 3], len: usize);

/// The same, with results that go past the caches, and lie as a strip says, which they fit: before anybody reads them,
/// a [`stream::Fence`] must follow.
pub(crate) type Past = unsafe fn(out: *mut u8, ins: [*const u8; 3], len: usize, strip: &Strip);

/// A loop, with results that stay in the caches or go past them.
#[derive(Clone, Copy)]
pub(crate) enum Call {
    Stay(Kernel),
    Past(Past),
}

impl Call {
    /// # Safety
    ///
    /// As [`Kernel`].
    #[inline(always)]
    pub(crate) unsafe fn run(self, out: *mut u8, ins: [*const u8; 3], len: usize) {
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
pub(crate) struct Loops {
    each: &'static [Kernel],
    /// The same loops, with results that go past the caches, or none.
    past: &'static [Past],
    /// Whether an element takes longer than memory takes to bring it.
    pub(crate) slow: bool,
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
    pub(crate) fn past(&self, pattern: usize) -> Option<Past> {
        self.past.get(pattern).copied()
    }
}

/// The loops of an operation on operands of `dtype` (of `where`: the second and third, the first is
/// `bool`), one for each pattern of repeated operands but the last, in which all are: then one
/// element is computed, and repeated. Bit k of a pattern stands for operand k. None where the
/// operation is not defined on the type.
pub(crate) fn kernels(op: Op, dtype: DType, level: Level) -> Option<Loops> {
    if op == Op::Where {
        return select::select(dtype, level);
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
pub(crate) const fn result_of(op: Op, dtype: DType) -> DType {
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
enum Weight {
    Light,
    /// Light, but long enough for a processor to see few lines of memory ahead, so that those are asked for.
    Busy,
    Tiled,
    Heavy,
}

/// The most elements of a tile. A loop over fewer would be unrolled to its end, and its constants
/// read again and again.
const TILE: usize = 256;

/// Tiles are whole multiples of this, a vector of the widest level: their loops have no rest.
const LANES: usize = 16;

/// What an operation does to one element. Operands that it doesn't have are `()`.
trait Body {
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
        pub(super) fn $table<$T: $bound>(
            op: $crate::Op,
            level: $crate::Level,
        ) -> Option<$crate::kernels::Loops> {
            $(
                struct $op<$T>(std::marker::PhantomData<$T>);
                impl<$T: $bound> $crate::kernels::Body for $op<$T> {
                    $crate::kernels::body!($weight, $T ($($operand)+) -> $out { $value });
                }
            )*
            match op {
                $($crate::Op::$op => Some($crate::kernels::table::<$op<$T>>(level)),)*
                _ => None,
            }
        }
    };
}

/// The inside of a [`Body`] whose operands are all of one type.
macro_rules! body {
    (light, $($rest:tt)*) => { $crate::kernels::body!(Light; $($rest)*); };
    (busy, $($rest:tt)*) => { $crate::kernels::body!(Busy; $($rest)*); };
    (tiled, $($rest:tt)*) => { $crate::kernels::body!(Tiled; $($rest)*); };
    (heavy, $($rest:tt)*) => { $crate::kernels::body!(Heavy; $($rest)*); };
    ($weight:ident; $T:ident ($a:ident) -> $out:ty { $value:expr }) => {
        $crate::kernels::body!($weight 1 $out { $value } $a: $T, _unused: (), _none: ());
    };
    ($weight:ident; $T:ident ($a:ident $b:ident) -> $out:ty { $value:expr }) => {
        $crate::kernels::body!($weight 2 $out { $value } $a: $T, $b: $T, _none: ());
    };
    ($weight:ident; $T:ident ($a:ident $b:ident $c:ident) -> $out:ty { $value:expr }) => {
        $crate::kernels::body!($weight 3 $out { $value } $a: $T, $b: $T, $c: $T);
    };
    ($weight:ident $arity:literal $out:ty { $value:expr }
        $a:ident: $A:ty, $b:ident: $B:ty, $c:ident: $C:ty) => {
        type A = $A;
        type B = $B;
        type C = $C;
        type Out = $out;
        const ARITY: usize = $arity;
        const WEIGHT: $crate::kernels::Weight = $crate::kernels::Weight::$weight;
        #[inline(always)]
        fn at<const FMA: bool>($a: $A, $b: $B, $c: $C) -> $out {
            $value
        }
    };
}

use {bodies, body};

/// The loops of one shim, one a pattern: of an operation with so many operands.
macro_rules! patterns {
    ($arity:expr, $shim:ident<$($type:ty),+ $(; $vectors:tt)?> as $Kernel:ident) => {
        const {
            match $arity {
                1 => &[$shim::<$($type,)+ 0 $(, $vectors)?> as $Kernel] as &[$Kernel],
                2 => &[
                    $shim::<$($type,)+ 0 $(, $vectors)?>,
                    $shim::<$($type,)+ 1 $(, $vectors)?>,
                    $shim::<$($type,)+ 2 $(, $vectors)?>,
                ],
                _ => &[
                    $shim::<$($type,)+ 0 $(, $vectors)?>,
                    $shim::<$($type,)+ 1 $(, $vectors)?>,
                    $shim::<$($type,)+ 2 $(, $vectors)?>,
                    $shim::<$($type,)+ 3 $(, $vectors)?>,
                    $shim::<$($type,)+ 4 $(, $vectors)?>,
                    $shim::<$($type,)+ 5 $(, $vectors)?>,
                    $shim::<$($type,)+ 6 $(, $vectors)?>,
                ],
            }
        }
    };
}

use patterns;

/// Loops of every level that there is on this processor.
macro_rules! each_level {
    ($Kernel:ident: $baseline:expr, $avx2:expr, $avx512:expr) => {
        [
            $baseline as &[$Kernel],
            #[cfg(target_arch = "x86_64")]
            $avx2,
            #[cfg(target_arch = "x86_64")]
            $avx512,
        ]
    };
}

/// The loops of a body. What is not worth loops of its own for results that go past the caches has none: those go there
/// from the tile that they are made in.
fn table<B: Body>(level: Level) -> Loops {
    let light = matches!(B::WEIGHT, Weight::Light | Weight::Busy);
    let past = const {
        match B::WEIGHT {
            Weight::Light | Weight::Busy => each_level!(
                Past: &[],
                patterns!(B::ARITY, past_avx2<B> as Past),
                patterns!(B::ARITY, past_avx2<B> as Past)
            ),
            Weight::Tiled | Weight::Heavy => [&[] as &[Past]; Level::COUNT],
        }
    };
    Loops { each: staying::<B>(level), past: past[level.number()], slow: !light }
}

/// The loops of a body whose results stay in the caches. They are chosen by its weight in a constant: those of other
/// weights would be compiled too, and thrown away.
fn staying<B: Body>(level: Level) -> &'static [Kernel] {
    let loops = const {
        match B::WEIGHT {
            Weight::Light | Weight::Busy => each_level!(
                Kernel: patterns!(B::ARITY, light<B; false> as Kernel),
                patterns!(B::ARITY, light_avx2<B> as Kernel),
                patterns!(B::ARITY, light_avx2<B> as Kernel)
            ),
            Weight::Tiled => each_level!(
                Kernel: patterns!(B::ARITY, tiled_baseline<B> as Kernel),
                patterns!(B::ARITY, tiled_avx2<B> as Kernel),
                patterns!(B::ARITY, tiled_avx512<B> as Kernel)
            ),
            Weight::Heavy => [patterns!(B::ARITY, heavy<B> as Kernel); Level::COUNT],
        }
    };
    loops[level.number()]
}

compiled_for_levels! {
    /// [`light`], compiled for a level.
    ///
    /// # Safety
    ///
    /// As there, and the machine has the features.
    unsafe fn light_avx2<B: Body, const PATTERN: usize>(
        out: *mut u8,
        ins: [*const u8; 3],
        len: usize,
    ) {
        // SAFETY: the caller keeps the invariant.
        unsafe { light::<B, PATTERN, true>(out, ins, len) }
    }
}

compiled_for_levels! {
    /// [`past`], compiled for a level.
    ///
    /// # Safety
    ///
    /// As there, and the machine has the features.
    unsafe fn past_avx2<B: Body, const PATTERN: usize>(
        out: *mut u8,
        ins: [*const u8; 3],
        len: usize,
        strip: &Strip,
    ) {
        // SAFETY: the caller keeps the invariant.
        unsafe { past::<B, PATTERN>(out, ins, len, strip) }
    }
}

compiled_for_levels! {
    /// [`tiles`], compiled for a level.
    ///
    /// # Safety
    ///
    /// As there, and the machine has the features.
    #[inline(never)]
    unsafe fn tiles_avx2, tiles_avx512<B: Body>(
        out: *mut u8,
        ins: [*const u8; 3],
        steps: [usize; 3],
        len: usize,
    ) {
        // SAFETY: the caller keeps the conditions.
        unsafe { tiles::<B, true>(out, ins, steps, len) }
    }
}

/// [`tiles`], compiled for every machine.
///
/// # Safety
///
/// As there.
#[inline(never)]
unsafe fn tiles_baseline<B: Body>(
    out: *mut u8,
    ins: [*const u8; 3],
    steps: [usize; 3],
    len: usize,
) {
    // SAFETY: the caller keeps the conditions.
    unsafe { tiles::<B, false>(out, ins, steps, len) }
}

/// Writes the loops of a tiled or heavy body for one pattern.
macro_rules! by_pattern {
    ($($name:ident = $every:ident;)*) => { $(
        /// # Safety
        ///
        /// The invariant of this module, and the machine has the features.
        unsafe fn $name<B: Body, const PATTERN: usize>(
            out: *mut u8,
            ins: [*const u8; 3],
            len: usize,
        ) {
            // SAFETY: the caller keeps the invariant; what is repeated stays where it is.
            unsafe { $every::<B>(out, ins, steps(PATTERN), len) }
        }
    )* };
}

by_pattern! {
    heavy = stepped;
    tiled_baseline = tiles_baseline;
}

#[cfg(target_arch = "x86_64")]
by_pattern! {
    tiled_avx2 = tiles_avx2;
    tiled_avx512 = tiles_avx512;
}

/// How far each operand moves from element to element.
const fn steps(pattern: usize) -> [usize; 3] {
    [1 - (pattern & 1), 1 - (pattern >> 1 & 1), 1 - (pattern >> 2 & 1)]
}

/// The loop of a light body.
///
/// # Safety
///
/// The invariant of this module.
#[inline(always)]
unsafe fn light<B: Body, const PATTERN: usize, const FMA: bool>(
    out: *mut u8,
    ins: [*const u8; 3],
    len: usize,
) {
    let out = out.cast::<B::Out>();
    let head = stream::head(out, len);
    for (from, to) in [(0, head), (head, len)] {
        if from < to {
            // SAFETY: the caller keeps the invariant.
            unsafe { some::<B, PATTERN, FMA>(out.wrapping_add(from), ins, from, to - from) };
        }
    }
}

/// The loop of a light body, with results that go past the caches.
///
/// # Safety
///
/// The invariant of this module, and that of [`Past`]; the caller is compiled for AVX2.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn past<B: Body, const PATTERN: usize>(
    out: *mut u8,
    ins: [*const u8; 3],
    len: usize,
    strip: &Strip,
) {
    // As [`stream::Far::asked`]; of operands that move, the first is mostly the largest one.
    let wide = B::ARITY == 2 && size_of::<B::A>() >= 2 * size_of::<B::Out>() && PATTERN & 1 == 0;
    let asks =
        strip.is_none() && (wide || matches!(B::WEIGHT, Weight::Busy) || stream::likes_help());
    let first = PATTERN.trailing_ones() as usize;
    let size = [size_of::<B::A>(), size_of::<B::B>(), size_of::<B::C>()][first];
    let some = |out: *mut B::Out, from: usize, len: usize| {
        if asks {
            stream::ask_ahead(ins[first].wrapping_add(from * size), len * size);
        }
        // SAFETY: the caller keeps the invariant.
        unsafe { some::<B, PATTERN, true>(out, ins, from, len) };
    };
    // SAFETY: the result has `len` elements, all of them numbers; the caller is compiled for AVX2.
    unsafe { stream::results::<B::Out, true>(out.cast(), len, strip, some) };
}

/// Some results of a light body, at least one, from one of a run on. The slices are references, and so promised not
/// to overlap.
///
/// # Safety
///
/// The invariant of this module, and there are so many; `out` is where they go.
#[inline(always)]
unsafe fn some<B: Body, const PATTERN: usize, const FMA: bool>(
    out: *mut B::Out,
    ins: [*const u8; 3],
    from: usize,
    len: usize,
) {
    /// # Safety
    ///
    /// Each slice has `out.len()` elements, or one where its bit of `PATTERN` is set.
    #[inline(always)]
    unsafe fn each<B: Body, const PATTERN: usize, const FMA: bool>(
        out: &mut [MaybeUninit<B::Out>],
        a: &[B::A],
        b: &[B::B],
        c: &[B::C],
    ) {
        for (at, out) in out.iter_mut().enumerate() {
            let place = |number: usize| if PATTERN >> number & 1 == 1 { 0 } else { at };
            // SAFETY: `at` is below the length of every slice that is not repeated.
            let (x, y, z) = unsafe {
                let (x, y) = (*a.get_unchecked(place(0)), *b.get_unchecked(place(1)));
                (x, y, *c.get_unchecked(place(2)))
            };
            out.write(B::at::<FMA>(x, y, z));
        }
    }
    let repeats = |number: usize| PATTERN >> number & 1 == 1;
    let count = |number: usize| if repeats(number) { 1 } else { len };
    // An operand that is not there has no size: any aligned place will do.
    let place = |number: usize, size: usize| {
        if number < B::ARITY {
            ins[number].wrapping_add(if repeats(number) { 0 } else { from * size })
        } else {
            std::ptr::NonNull::<u64>::dangling().as_ptr().cast_const().cast()
        }
    };
    // SAFETY: the invariant gives each operand as many elements as the pattern says, and the
    // result memory that nobody else sees.
    unsafe {
        each::<B, PATTERN, FMA>(
            std::slice::from_raw_parts_mut(out.cast(), len),
            std::slice::from_raw_parts(place(0, size_of::<B::A>()).cast(), count(0)),
            std::slice::from_raw_parts(place(1, size_of::<B::B>()).cast(), count(1)),
            std::slice::from_raw_parts(place(2, size_of::<B::C>()).cast(), count(2)),
        );
    }
}

/// The result that a tile of one element has; `some` is any value.
#[inline(always)]
fn alone<T: Copy>(some: T, tile: impl FnOnce(&mut [MaybeUninit<T>])) -> T {
    let mut result = [MaybeUninit::new(some)];
    tile(&mut result);
    // SAFETY: it was written before, and a tile may only write results.
    unsafe { result[0].assume_init() }
}

/// Room for a tile.
struct Room<T>([MaybeUninit<T>; TILE]);

impl<T: Copy> Room<T> {
    /// Filled with the element at `from` where it repeats; otherwise for [`Self::lay`] to fill.
    ///
    /// # Safety
    ///
    /// There is such an element.
    #[inline(always)]
    unsafe fn new(from: *const T, step: usize) -> Self {
        let mut one = MaybeUninit::uninit();
        if step == 0 {
            // SAFETY: the condition of this function.
            one.write(unsafe { from.read() });
        }
        Self([one; TILE])
    }

    /// The `count` elements from `done` on, and as many more as make whole vectors: where they are, or
    /// here.
    ///
    /// # Safety
    ///
    /// There are so many, at least one and at most a tile; or one, with which the room was filled.
    #[inline(always)]
    unsafe fn lay(&mut self, from: *const T, step: usize, done: usize, count: usize) -> &[T] {
        let whole = count.next_multiple_of(LANES);
        let room = self.0.as_mut_ptr().cast::<T>();
        // SAFETY: `whole` elements are there, or are written here: they fit, since a tile is a multiple
        // of whole vectors. An operand that is not there has no size: any place will do.
        unsafe {
            let from = from.add(done * step);
            let all = if step == 0 || size_of::<T>() == 0 {
                room.cast_const()
            } else if whole == count {
                from
            } else {
                room.copy_from_nonoverlapping(from, count);
                (count..whole).for_each(|at| room.add(at).write(from.read()));
                room.cast_const()
            };
            std::slice::from_raw_parts(all, whole)
        }
    }
}

/// Tile after tile.
///
/// # Safety
///
/// The invariant of this module, where a step is 0 for an operand of one element.
#[inline(always)]
unsafe fn tiles<B: Body, const FMA: bool>(
    out: *mut u8,
    ins: [*const u8; 3],
    steps: [usize; 3],
    len: usize,
) {
    if len == 0 {
        return;
    }
    let out = out.cast::<MaybeUninit<B::Out>>();
    let (a, b, c) = (ins[0].cast::<B::A>(), ins[1].cast::<B::B>(), ins[2].cast::<B::C>());
    // SAFETY: there is a first element of every operand, and one that is not there has no size.
    let (mut x, mut y, mut z) =
        unsafe { (Room::new(a, steps[0]), Room::new(b, steps[1]), Room::new(c, steps[2])) };
    let mut results = Room([MaybeUninit::uninit(); TILE]);
    let mut done = 0;
    while done < len {
        let count = TILE.min(len - done);
        let whole = count.next_multiple_of(LANES);
        // SAFETY: operands that move have `len` elements, and the result has, too: it is made in its
        // place where it is whole vectors, and otherwise moved there.
        unsafe {
            let a = x.lay(a, steps[0], done, count);
            let b = y.lay(b, steps[1], done, count);
            let c = z.lay(c, steps[2], done, count);
            let to = out.add(done);
            let made = if whole == count { to } else { results.0.as_mut_ptr() };
            let to_make = std::slice::from_raw_parts_mut(made, whole);
            match b {
                [b, ..] if B::BY_ONE && steps[1] == 0 => B::tile_by::<FMA>(a, *b, to_make),
                _ => B::tile::<FMA>(a, b, c, to_make),
            }
            if whole != count {
                to.copy_from_nonoverlapping(made, count);
            }
        }
        done += count;
    }
}

/// The loop of a heavy body; an operand moves by its step.
///
/// # Safety
///
/// The invariant of this module, where a step is 0 for an operand of one element.
#[inline(never)]
unsafe fn stepped<B: Body>(out: *mut u8, ins: [*const u8; 3], steps: [usize; 3], len: usize) {
    let out = out.cast::<B::Out>();
    let (a, b, c) = (ins[0].cast::<B::A>(), ins[1].cast::<B::B>(), ins[2].cast::<B::C>());
    for at in 0..len {
        // SAFETY: `at` is below the length of the result and of every operand that moves.
        unsafe {
            let (x, y) = (a.add(at * steps[0]).read(), b.add(at * steps[1]).read());
            let value = B::at::<false>(x, y, c.add(at * steps[2]).read());
            out.add(at).write(value);
        }
    }
}
