//! A register machine for chains: many light steps, and some functions, on floating-point numbers as one loop.
//!
//! A loop for each step writes its results into a tile, from which the next one reads them: of five steps, that is most of
//! the work. Here a block of results stays in vector registers, the accumulator, while each step changes it by what it reads.
//! Steps are dispatched once a block, always in the same order, so that the branches are predicted.
//!
//! An ordinary store after non-temporal ones waits for the write-combining buffers to drain. So a block is as large as leaves
//! registers for the temporaries of its steps, which are then never spilled: with AVX2, half as large if there are functions
//! other than exponentials.
//!
//! Results are those of the loops of each step alone, to the bit.
//!
//! Invariant of every call: each operand of a step is valid for a block, at every place that is visited if it moves.

use std::ops::Range;

use crate::Op;

/// What a step does to the accumulator; operands are the step's, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// Accumulator ← operand.
    Load,
    /// Operand ← accumulator.
    Store,
    Add,
    /// Accumulator - operand; and operand - accumulator.
    Subtract,
    From,
    Multiply,
    /// Accumulator / operand; and operand / accumulator.
    Divide,
    Under,
    /// The maximum of accumulator and operand; and of operand and accumulator: of equal zeros it is the second.
    Maximum,
    MaximumOf,
    Minimum,
    MinimumOf,
    /// A mask of ones or zeros: accumulator < operand, and so on.
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    Equal,
    NotEqual,
    /// The first operand where the accumulator is ones, otherwise the second.
    Choose,
    /// The accumulator where the first operand is ones, otherwise the second operand.
    Keep,
    /// The second operand where the first is ones, otherwise the accumulator.
    Replace,
    Negative,
    Absolute,
    Square,
    Sqrt,
    Reciprocal,
    Relu,
    Floor,
    Ceil,
    Round,
    Trunc,
    Exp,
    Log,
    Sin,
    Cos,
    Tanh,
    Sigmoid,
    Erf,
}

impl Act {
    /// The act of an operation whose first operand is the accumulator; none if chains have none for it.
    pub const fn of(op: Op) -> Option<Self> {
        Some(match op {
            Op::Add => Self::Add,
            Op::Subtract => Self::Subtract,
            Op::Multiply => Self::Multiply,
            Op::Divide => Self::Divide,
            Op::Maximum => Self::Maximum,
            Op::Minimum => Self::Minimum,
            Op::Less => Self::Less,
            Op::LessEqual => Self::LessEqual,
            Op::Greater => Self::Greater,
            Op::GreaterEqual => Self::GreaterEqual,
            Op::Equal => Self::Equal,
            Op::NotEqual => Self::NotEqual,
            Op::Where => Self::Choose,
            Op::Negative => Self::Negative,
            Op::Absolute => Self::Absolute,
            Op::Square => Self::Square,
            Op::Sqrt => Self::Sqrt,
            Op::Reciprocal => Self::Reciprocal,
            Op::Relu => Self::Relu,
            Op::Floor => Self::Floor,
            Op::Ceil => Self::Ceil,
            Op::Round => Self::Round,
            Op::Trunc => Self::Trunc,
            Op::Exp => Self::Exp,
            Op::Log => Self::Log,
            Op::Sin => Self::Sin,
            Op::Cos => Self::Cos,
            Op::Tanh => Self::Tanh,
            Op::Sigmoid => Self::Sigmoid,
            Op::Erf => Self::Erf,
            _ => return None,
        })
    }

    /// Whether its temporaries take more registers than those of exponentials.
    pub const fn is_long(self) -> bool {
        matches!(self, Self::Log | Self::Sin | Self::Cos | Self::Tanh | Self::Sigmoid | Self::Erf)
    }

    /// The act with its operands swapped: the second one is the accumulator.
    pub const fn swapped(self) -> Self {
        match self {
            Self::Subtract => Self::From,
            Self::Divide => Self::Under,
            Self::Maximum => Self::MaximumOf,
            Self::Minimum => Self::MinimumOf,
            Self::Less => Self::Greater,
            Self::LessEqual => Self::GreaterEqual,
            Self::Greater => Self::Less,
            Self::GreaterEqual => Self::LessEqual,
            same => same,
        }
    }
}

/// An operand of a step.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    pub pointer: *mut u8,
    /// Whether it moves with the results, or is one block for all of them.
    pub moves: bool,
}

impl Place {
    pub const NONE: Self = Self { pointer: std::ptr::null_mut(), moves: false };
}

/// A step.
#[derive(Clone, Copy, Debug)]
pub struct ChainStep {
    pub act: Act,
    pub places: [Place; 2],
}

/// The loops of a type, for a level. They are called under the invariant of this module; non-temporal stores need a fence.
#[derive(Clone, Copy, Debug)]
pub struct ChainLoops {
    /// Blocks of results, from one place to another, in bytes from `out`: with non-temporal stores, which begin at a cache
    /// line, or ordinary ones. Memory ahead of `asks` is prefetched beside them.
    pub whole: Whole,
    /// Of a block at a cache line, the results in the range alone, in bytes from there; moving operands are read nowhere
    /// else.
    pub part: unsafe fn(
        steps: &[ChainStep],
        out: *mut u8,
        at: isize,
        wanted: Range<usize>,
        asks: &[*const u8],
    ),
    /// Fills a block with one element.
    pub fill: unsafe fn(block: *mut u8, element: *const u8),
    /// The bytes of a block.
    pub block: usize,
}

/// Makes blocks of results.
pub type Whole = unsafe fn(
    steps: &[ChainStep],
    out: *mut u8,
    nontemporal: bool,
    blocks: Range<usize>,
    asks: &[*const u8],
);

/// How large a block is beside the temporaries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockShare {
    /// AVX2, with half of the registers for the block: no [long](Act::is_long) function.
    Short,
    /// AVX2, with a quarter of the registers for the block, and all functions.
    Half,
    /// AVX-512, with an eighth of the registers for the block, and all functions.
    Long,
}

/// The loops of `float32` or, `wide`, of `float64`.
#[cfg(target_arch = "x86_64")]
pub fn chains(wide: bool, registers: BlockShare) -> ChainLoops {
    use std::arch::x86_64::{__m256, __m256d, __m512, __m512d};
    match (wide, registers) {
        (false, BlockShare::Short) => x86::short::<__m256, false, 8>(),
        (true, BlockShare::Short) => x86::short::<__m256d, false, 8>(),
        (false, BlockShare::Half) => x86::short::<__m256, true, 4>(),
        (true, BlockShare::Half) => x86::short::<__m256d, true, 4>(),
        (false, BlockShare::Long) => x86::long::<__m512>(),
        (true, BlockShare::Long) => x86::long::<__m512d>(),
    }
}

#[cfg(target_arch = "x86_64")]
mod simd;

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;
    use std::mem::MaybeUninit;
    use std::ops::Range;
    use std::slice;

    use super::simd::Vector;
    use super::{Act, ChainLoops, ChainStep, Place};
    use crate::compiled_for_levels;
    use crate::cpu::{nontemporal, prefetch};
    use crate::math::Real;
    use crate::tuning::CHAIN_BLOCK_BYTES;

    /// The vectors of a block of AVX-512.
    const LONG: usize = CHAIN_BLOCK_BYTES / size_of::<__m512>();

    /// The loops of AVX2.
    pub(super) const fn short<V: Vector, const FUNCTIONS: bool, const N: usize>() -> ChainLoops {
        ChainLoops {
            whole: whole_short::<V, FUNCTIONS, N>,
            part: part_short::<V, FUNCTIONS, N>,
            fill: fill_short::<V, N>,
            block: size_of::<[V; N]>(),
        }
    }

    /// The loops of AVX-512.
    pub(super) const fn long<V: Vector>() -> ChainLoops {
        ChainLoops {
            whole: whole_long::<V, true, LONG>,
            part: part_long::<V, true, LONG>,
            fill: fill_long::<V, LONG>,
            block: size_of::<[V; LONG]>(),
        }
    }

    compiled_for_levels! {
        /// # Safety
        ///
        /// The machine has the features; all else is said by [`ChainLoops`].
        unsafe fn whole_short, whole_long<V: Vector, const FUNCTIONS: bool, const N: usize>(
            steps: &[ChainStep],
            out: *mut u8,
            nontemporal: bool,
            blocks: Range<usize>,
            asks: &[*const u8],
        ) {
            // SAFETY: the caller keeps the conditions.
            unsafe {
                let mut accumulator = [V::all(0.0); N];
                for at in blocks.step_by(size_of::<[V; N]>()) {
                    block::<V, FUNCTIONS, N, false>(&mut accumulator, steps, at, 0, asks);
                    let to = out.wrapping_add(at);
                    if nontemporal {
                        for (k, vector) in accumulator.iter().enumerate() {
                            vector.stream(to.wrapping_add(k * size_of::<V>()));
                        }
                    } else {
                        for (k, vector) in accumulator.iter().enumerate() {
                            vector.store(to.wrapping_add(k * size_of::<V>()));
                        }
                    }
                }
            }
        }
    }

    compiled_for_levels! {
        /// # Safety
        ///
        /// The machine has the features; all else is said by [`ChainLoops`].
        unsafe fn part_short, part_long<V: Vector, const FUNCTIONS: bool, const N: usize>(
            steps: &[ChainStep],
            out: *mut u8,
            at: isize,
            wanted: Range<usize>,
            asks: &[*const u8],
        ) {
            let at = at.cast_unsigned();
            // A bit for each of the words that are wanted.
            let below = |end: usize| u64::MAX.checked_shl(end as u32 / 4).map_or(u64::MAX, |above| !above);
            let some = below(wanted.end) & !below(wanted.start);
            // SAFETY: the caller keeps the conditions.
            unsafe {
                let mut accumulator = [V::all(0.0); N];
                block::<V, FUNCTIONS, N, true>(&mut accumulator, steps, at, some, asks);
                for (k, vector) in accumulator.into_iter().enumerate() {
                    let first = k * size_of::<V>();
                    let (from, to) = (wanted.start.max(first), wanted.end.min(first + size_of::<V>()));
                    let place = out.wrapping_add(at);
                    if to == from + size_of::<V>() {
                        vector.stream(place.wrapping_add(first));
                    } else if from < to {
                        let mut bytes = [0_u8; size_of::<__m512>()];
                        vector.store(bytes.as_mut_ptr());
                        let own = bytes.as_ptr().wrapping_add(from - first);
                        nontemporal::store_partial_line(place.wrapping_add(from), own, to - from);
                    }
                }
            }
        }
    }

    compiled_for_levels! {
        /// Fills a block by whole vectors, so that loads soon after are forwarded from single stores.
        ///
        /// # Safety
        ///
        /// There are a block and an element; the machine has the features.
        unsafe fn fill_short, fill_long<V: Vector, const N: usize>(block: *mut u8, element: *const u8) {
            // SAFETY: the caller keeps the conditions.
            unsafe {
                let vector = V::every(element);
                for k in 0..N {
                    vector.store(block.wrapping_add(k * size_of::<V>()));
                }
            }
        }
    }

    /// Makes the results of a block. Of a `PART`, moving operands are read only where `some` has a bit for the word.
    ///
    /// # Safety
    ///
    /// The invariant of [`super`], and the caller is compiled for the vectors, of which a block has this number.
    #[inline(always)]
    unsafe fn block<V: Vector, const FUNCTIONS: bool, const N: usize, const PART: bool>(
        accumulator: &mut [V; N],
        steps: &[ChainStep],
        at: usize,
        some: u64,
        asks: &[*const u8],
    ) {
        for ask in asks {
            prefetch::prefetch_ahead(ask.wrapping_add(at), size_of::<[V; N]>());
        }
        for step in steps {
            // SAFETY: the caller keeps the conditions.
            unsafe { act::<V, FUNCTIONS, N, PART>(accumulator, step, at, some) };
        }
    }

    /// A vector of an operand; of a `PART` as in [`block`].
    ///
    /// # Safety
    ///
    /// As [`block`].
    #[inline(always)]
    unsafe fn load<V: Vector, const PART: bool>(
        place: &Place,
        at: usize,
        some: u64,
        k: usize,
    ) -> V {
        let first = k * size_of::<V>();
        let from = place.pointer.wrapping_add(if place.moves { at } else { 0 }).wrapping_add(first);
        // SAFETY: the caller keeps the conditions.
        unsafe {
            if PART && place.moves {
                V::load_some(from, (some >> (first / 4)) as u16)
            } else {
                V::load(from)
            }
        }
    }

    /// Takes a step.
    ///
    /// # Safety
    ///
    /// As [`block`].
    #[inline(always)]
    unsafe fn act<V: Vector, const FUNCTIONS: bool, const N: usize, const PART: bool>(
        accumulator: &mut [V; N],
        step: &ChainStep,
        at: usize,
        some: u64,
    ) {
        let [one, two] = &step.places;
        // SAFETY: the caller keeps the invariant.
        unsafe {
            // Not closures: those would be compiled for every machine.
            macro_rules! each {
                (|$is:ident $(, $operand:ident)*| $value:expr) => {
                    each!([one two] $is [$($operand)*] [] $value)
                };
                ([$place:ident $($places:ident)*] $is:ident [$operand:ident $($operands:ident)*] [$($done:tt)*] $value:expr) => {
                    each!([$($places)*] $is [$($operands)*] [$($done)* ($operand $place)] $value)
                };
                ([$($places:ident)*] $is:ident [] [$(($operand:ident $place:ident))*] $value:expr) => {
                    for k in 0..N {
                        let $is = accumulator[k];
                        $(let $operand = load::<V, PART>($place, at, some, k);)*
                        accumulator[k] = $value;
                    }
                };
            }
            macro_rules! compare {
                ($how:ident) => {
                    each!(|is, one| is.compare::<$how>(one))
                };
            }
            macro_rules! round {
                ($how:ident) => {
                    each!(|is| is.round::<{ $how | _MM_FROUND_NO_EXC }>())
                };
            }
            // The element count is constant: all stays in registers.
            macro_rules! function {
                ($name:ident) => {{
                    let was = *accumulator;
                    let (from, to) = elements(&was, accumulator);
                    for (to, from) in to.iter_mut().zip(from) {
                        to.write(from.$name::<true>());
                    }
                }};
            }
            macro_rules! angles {
                ($near:ident, $cosines:literal) => {{
                    let was = *accumulator;
                    let (from, to) = elements(&was, accumulator);
                    let mut far = false;
                    for (to, from) in to.iter_mut().zip(from) {
                        far |= from.is_far();
                        to.write(from.$near::<true>());
                    }
                    if far {
                        // A copy: a block whose address escapes would no longer be kept in registers.
                        let mut block = was;
                        if size_of::<V>() == size_of::<__m256>() {
                            far_short(&mut block, $cosines);
                        } else {
                            far_long(&mut block, $cosines);
                        }
                        *accumulator = block;
                    }
                }};
            }
            match step.act {
                Act::Load => each!(|_is, one| one),
                Act::Store => {
                    for (k, vector) in accumulator.iter().enumerate() {
                        vector.store(one.pointer.wrapping_add(k * size_of::<V>()));
                    }
                }
                Act::Add => each!(|is, one| is.add(one)),
                Act::Subtract => each!(|is, one| is.sub(one)),
                Act::From => each!(|is, one| one.sub(is)),
                Act::Multiply => each!(|is, one| is.mul(one)),
                Act::Divide => each!(|is, one| is.div(one)),
                Act::Under => each!(|is, one| one.div(is)),
                Act::Maximum => each!(|is, one| is.max(one)),
                Act::MaximumOf => each!(|is, one| one.max(is)),
                Act::Minimum => each!(|is, one| is.min(one)),
                Act::MinimumOf => each!(|is, one| one.min(is)),
                Act::Less => compare!(_CMP_LT_OQ),
                Act::LessEqual => compare!(_CMP_LE_OQ),
                Act::Greater => compare!(_CMP_GT_OQ),
                Act::GreaterEqual => compare!(_CMP_GE_OQ),
                Act::Equal => compare!(_CMP_EQ_OQ),
                Act::NotEqual => compare!(_CMP_NEQ_UQ),
                Act::Choose => each!(|is, one, two| is.choose(one, two)),
                Act::Keep => each!(|is, one, two| one.choose(is, two)),
                Act::Replace => each!(|is, one, two| one.choose(two, is)),
                Act::Negative => each!(|is| is.xor(V::all(-0.0))),
                Act::Absolute => each!(|is| V::all(-0.0).and_not(is)),
                Act::Square => each!(|is| is.mul(is)),
                Act::Sqrt => each!(|is| is.sqrt()),
                Act::Reciprocal => each!(|is| V::all(1.0).div(is)),
                Act::Relu => each!(|is| is.compare::<_CMP_LE_OQ>(V::all(0.0)).and_not(is)),
                Act::Floor => round!(_MM_FROUND_TO_NEG_INF),
                Act::Ceil => round!(_MM_FROUND_TO_POS_INF),
                Act::Round => round!(_MM_FROUND_TO_NEAREST_INT),
                Act::Trunc => round!(_MM_FROUND_TO_ZERO),
                Act::Exp => {
                    let was = *accumulator;
                    let (from, to) = elements(&was, accumulator);
                    V::Element::exp_tile::<true>(|at| from[at], to);
                }
                Act::Sin if FUNCTIONS => angles!(near_sin, false),
                Act::Cos if FUNCTIONS => angles!(near_cos, true),
                Act::Log if FUNCTIONS => function!(log),
                Act::Tanh if FUNCTIONS => function!(tanh),
                Act::Sigmoid if FUNCTIONS => function!(sigmoid),
                Act::Erf if FUNCTIONS => function!(erf),
                Act::Log | Act::Sin | Act::Cos | Act::Tanh | Act::Sigmoid | Act::Erf => {
                    debug_assert!(false, "no such chain is made: see `BlockShare`");
                }
            }
        }
    }

    compiled_for_levels! {
        /// The sines, or the cosines, of a block with angles that need Payne-Hanek reduction.
        ///
        /// # Safety
        ///
        /// The machine has the features.
        #[cold]
        #[inline(never)]
        unsafe fn far_short, far_long<V: Vector, const N: usize>(block: &mut [V; N], cosines: bool) {
            let was = *block;
            let (from, to) = elements(&was, block);
            if cosines {
                V::Element::cos_tile::<true>(|at| from[at], to);
            } else {
                V::Element::sin_tile::<true>(|at| from[at], to);
            }
        }
    }

    /// The elements of a block, and of another one.
    #[inline(always)]
    fn elements<'v, V: Vector, const N: usize>(
        from: &'v [V; N],
        to: &'v mut [V; N],
    ) -> (&'v [V::Element], &'v mut [MaybeUninit<V::Element>]) {
        let count = size_of::<[V; N]>() / size_of::<V::Element>();
        // SAFETY: a vector is its elements, and those are less aligned than it is; what is written is initialised.
        unsafe {
            (
                slice::from_raw_parts(from.as_ptr().cast(), count),
                slice::from_raw_parts_mut(to.as_mut_ptr().cast(), count),
            )
        }
    }
}
