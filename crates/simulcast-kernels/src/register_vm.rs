//! Chains: many light steps, and some functions, on floating-point numbers as one loop.
//!
//! A loop for each step writes what it makes into a tile, and the next one reads it there: of five steps,
//! that is most of the work. Here a block of results stays in vector registers, the accumulator, while one
//! step after the other changes it by what it reads. Which step comes next is looked up once a block, and
//! the processor guesses it right: the steps are always the same.
//!
//! Every other store holds up those that go past the caches (see [`crate::cpu::nontemporal`]). So a block is as large as leaves registers
//! for what steps make on the way: with AVX2, half as large where there are functions but exponentials. With AVX-512 there is
//! room for what a later step reads too, in [banks](Bank).
//!
//! Results are those of the loops of each step alone, to the bit.
//!
//! Invariant of every call: whatever a step reads or writes has a block there, at every place that is visited
//! if it moves.

use std::ops::Range;

use crate::Op;
use crate::cpu::nontemporal::Strip;

/// The most bytes of a block: half of the registers of AVX2, an eighth of those of AVX-512.
pub const BLOCK: usize = 256;

/// What becomes of the accumulator; operands are the step's, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// It is the operand.
    Load,
    /// The operand is it.
    Store,
    Add,
    /// It, less the operand; and the other way round.
    Subtract,
    From,
    Multiply,
    /// It, over the operand; and the other way round.
    Divide,
    Under,
    /// The larger, of it and the operand; and the other way round, which tells zeros apart.
    Maximum,
    MaximumOf,
    Minimum,
    MinimumOf,
    /// All ones or zeros: whether it is less than the operand, and so on.
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    Equal,
    NotEqual,
    /// The first operand where it is ones, otherwise the second.
    Choose,
    /// It, where the first operand is ones, otherwise the second.
    Keep,
    /// The second operand where the first is ones, otherwise it.
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
    /// The act of an operation whose first operand is the accumulator; none where chains have none.
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

    /// Whether it takes many registers, as exponentials do, or still more.
    pub const fn is_function(self) -> bool {
        matches!(self, Self::Exp) || self.is_long()
    }

    /// Whether it takes more registers than exponentials.
    pub const fn is_long(self) -> bool {
        matches!(self, Self::Log | Self::Sin | Self::Cos | Self::Tanh | Self::Sigmoid | Self::Erf)
    }

    /// The same of two operands, where the second one is the accumulator.
    pub const fn turned(self) -> Self {
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

/// Where a block of an operand is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bank {
    /// In memory.
    None,
    /// In registers, beside the accumulator.
    First,
    Second,
}

/// An operand of a step.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    pub bank: Bank,
    /// In memory, it moves with the results, or stays.
    pub pointer: *mut u8,
    pub moves: bool,
}

impl Place {
    pub const NONE: Self = Self { bank: Bank::None, pointer: std::ptr::null_mut(), moves: false };
}

/// A step.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    pub act: Act,
    pub places: [Place; 2],
}

/// The loops of a type, for a level. They are called under the invariant of this module; results go
/// past the caches, and need a fence.
#[derive(Clone, Copy, Debug)]
pub struct Chains {
    /// Blocks of results, from one place to another, in bytes from `out`; they begin at a line. What comes after
    /// `asks` is asked for beside them.
    pub whole: Whole,
    /// Blocks of results from `out` on, which lie as the strip says; it asks for what it says, and for no `asks`.
    pub strips: Whole,
    /// Of a block at a line, those results alone that are in the range, in bytes from there; what moves is read
    /// nowhere else.
    pub part: unsafe fn(
        steps: &[Step],
        out: *mut u8,
        at: isize,
        wanted: Range<usize>,
        asks: &[*const u8],
    ),
    /// Fills a block with one element.
    pub fill: unsafe fn(block: *mut u8, element: *const u8),
    /// The bytes of a block.
    pub block: usize,
    /// What may stay in registers.
    pub banks: &'static [Bank],
}

/// Makes blocks of results.
pub type Whole = unsafe fn(
    steps: &[Step],
    out: *mut u8,
    strip: &Strip,
    blocks: Range<usize>,
    asks: &[*const u8],
);

/// What the registers are used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Registers {
    /// Those of AVX2, for the accumulator and what changes it: no [function](Act::is_function) but exponentials.
    Short,
    /// Those of AVX2, more of them for what functions make on the way.
    Half,
    /// Those of AVX-512, for an accumulator and all functions.
    Long,
    /// Those of AVX-512, for banks: no functions.
    Banked,
}

/// The loops of `float32` or, `wide`, of `float64`.
#[cfg(target_arch = "x86_64")]
pub const fn chains(wide: bool, registers: Registers) -> Chains {
    use std::arch::x86_64::{__m256, __m256d, __m512, __m512d};
    match (wide, registers) {
        (false, Registers::Short) => x86::short::<__m256, x86::Exponentials, 8>(),
        (true, Registers::Short) => x86::short::<__m256d, x86::Exponentials, 8>(),
        (false, Registers::Half) => x86::short::<__m256, x86::Functions, 4>(),
        (true, Registers::Half) => x86::short::<__m256d, x86::Functions, 4>(),
        (false, Registers::Long) => x86::long::<__m512, x86::Functions>(),
        (true, Registers::Long) => x86::long::<__m512d, x86::Functions>(),
        (false, Registers::Banked) => x86::long::<__m512, x86::Banked>(),
        (true, Registers::Banked) => x86::long::<__m512d, x86::Banked>(),
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
    use super::{Act, BLOCK, Bank, Chains, Place, Step};
    use crate::compiled_for_levels;
    use crate::cpu::nontemporal::{self, Strip};
    use crate::math::Real;

    /// The vectors of a block of AVX-512.
    const LONG: usize = BLOCK / size_of::<__m512>();

    /// What loops use the registers for: see [`super::Registers`].
    pub(super) trait Use {
        const BANKS: &'static [Bank] = &[];
        /// Whether there are all functions, or none but exponentials, which banks leave no room for.
        const FUNCTIONS: bool = false;
    }

    pub(super) struct Exponentials;
    pub(super) struct Functions;
    pub(super) struct Banked;

    impl Use for Exponentials {}
    impl Use for Functions {
        const FUNCTIONS: bool = true;
    }
    impl Use for Banked {
        const BANKS: &'static [Bank] = &[Bank::First, Bank::Second];
    }

    /// The loops of AVX2.
    pub(super) const fn short<V: Vector, U: Use, const N: usize>() -> Chains {
        Chains {
            whole: whole_short::<V, U, N, false>,
            strips: whole_short::<V, U, N, true>,
            part: part_short::<V, U, N>,
            fill: fill_short::<V, N>,
            block: size_of::<[V; N]>(),
            banks: U::BANKS,
        }
    }

    /// The loops of AVX-512.
    pub(super) const fn long<V: Vector, U: Use>() -> Chains {
        Chains {
            whole: whole_long::<V, U, LONG, false>,
            strips: whole_long::<V, U, LONG, true>,
            part: part_long::<V, U, LONG>,
            fill: fill_long::<V, LONG>,
            block: size_of::<[V; LONG]>(),
            banks: U::BANKS,
        }
    }

    /// The accumulator, and the banks beside it.
    struct Held<V, const N: usize> {
        accumulator: [V; N],
        first: [V; N],
        second: [V; N],
    }

    impl<V: Vector, const N: usize> Held<V, N> {
        /// # Safety
        ///
        /// The caller is compiled for the vectors.
        #[inline(always)]
        unsafe fn new() -> Self {
            // SAFETY: the caller keeps the condition.
            let zeros = unsafe { [V::all(0.0); N] };
            Self { accumulator: zeros, first: zeros, second: zeros }
        }
    }

    compiled_for_levels! {
        /// # Safety
        ///
        /// The machine has the features; all else is said by [`Chains`].
        unsafe fn whole_short, whole_long<V: Vector, U: Use, const N: usize, const STRIP: bool>(
            steps: &[Step],
            out: *mut u8,
            strip: &Strip,
            blocks: Range<usize>,
            asks: &[*const u8],
        ) {
            // SAFETY: the caller keeps the conditions.
            unsafe {
                let mut held = Held::<V, N>::new();
                // There are not registers enough to ask for both, and what is stored elsewhere holds up the rest.
                let (asks, pitch) = if STRIP { (&[][..], strip.pitch) } else { (asks, Strip::NONE.pitch) };
                let (mut to, mut ask) = (out.wrapping_add(blocks.start), strip.ask);
                for at in blocks.step_by(size_of::<[V; N]>()) {
                    block::<V, U, N, false>(&mut held, steps, at, 0, asks);
                    for row in held.accumulator.chunks_exact(nontemporal::ROW / size_of::<V>()) {
                        if STRIP {
                            ask.some();
                        }
                        for (k, vector) in row.iter().enumerate() {
                            vector.stream(to.wrapping_add(k * size_of::<V>()));
                        }
                        to = to.wrapping_offset(pitch);
                    }
                }
            }
        }
    }

    compiled_for_levels! {
        /// # Safety
        ///
        /// The machine has the features; all else is said by [`Chains`].
        unsafe fn part_short, part_long<V: Vector, U: Use, const N: usize>(
            steps: &[Step],
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
                let mut held = Held::<V, N>::new();
                block::<V, U, N, true>(&mut held, steps, at, some, asks);
                for (k, vector) in held.accumulator.into_iter().enumerate() {
                    let first = k * size_of::<V>();
                    let (from, to) = (wanted.start.max(first), wanted.end.min(first + size_of::<V>()));
                    let place = out.wrapping_add(at);
                    if to == from + size_of::<V>() {
                        vector.stream(place.wrapping_add(first));
                    } else if from < to {
                        let mut bytes = [0_u8; size_of::<__m512>()];
                        vector.store(bytes.as_mut_ptr());
                        let own = bytes.as_ptr().wrapping_add(from - first);
                        nontemporal::edge(place.wrapping_add(from), own, to - from);
                    }
                }
            }
        }
    }

    compiled_for_levels! {
        /// Fills a block, by whole vectors: whoever reads them at once need not wait for anything else that is
        /// being written.
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

    /// Makes the results of a block; of a `PART`, what moves is read where results are wanted alone: some words, a bit
    /// for each.
    ///
    /// # Safety
    ///
    /// The invariant of [`super`], and the caller is compiled for the vectors, of which a block is so many.
    #[inline(always)]
    unsafe fn block<V: Vector, U: Use, const N: usize, const PART: bool>(
        held: &mut Held<V, N>,
        steps: &[Step],
        at: usize,
        some: u64,
        asks: &[*const u8],
    ) {
        for ask in asks {
            nontemporal::ask_ahead(ask.wrapping_add(at), size_of::<[V; N]>());
        }
        for step in steps {
            // SAFETY: the caller keeps the conditions.
            unsafe { act::<V, U, N, PART>(held, step, at, some) };
        }
    }

    /// A vector of an operand in memory; of a `PART`, what moves is read where results are wanted alone.
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
    unsafe fn act<V: Vector, U: Use, const N: usize, const PART: bool>(
        held: &mut Held<V, N>,
        step: &Step,
        at: usize,
        some: u64,
    ) {
        let Held { accumulator, first, second } = held;
        let [one, two] = &step.places;
        // SAFETY: the caller keeps the invariant.
        unsafe {
            // Closures would be compiled for every machine. The compiler must know in which registers operands are: there is
            // a loop for every bank.
            macro_rules! each {
                (|$is:ident| $value:expr) => {
                    for k in 0..N {
                        let $is = accumulator[k];
                        accumulator[k] = $value;
                    }
                };
                (|$is:ident, $one:ident| $value:expr) => {
                    match one.bank {
                        Bank::First if !U::BANKS.is_empty() => each!(k, $is, $one = first[k] => $value),
                        Bank::Second if !U::BANKS.is_empty() => each!(k, $is, $one = second[k] => $value),
                        _ => each!(k, $is, $one = load::<V, PART>(one, at, some, k) => $value),
                    }
                };
                (|$is:ident, $one:ident, $two:ident| $value:expr) => {
                    match one.bank {
                        Bank::First if !U::BANKS.is_empty() => each!(k, $is, $one = first[k], $two => $value),
                        Bank::Second if !U::BANKS.is_empty() => each!(k, $is, $one = second[k], $two => $value),
                        _ => each!(k, $is, $one = load::<V, PART>(one, at, some, k), $two => $value),
                    }
                };
                ($k:ident, $is:ident, $one:ident = $from:expr, $two:ident => $value:expr) => {
                    match two.bank {
                        Bank::First if !U::BANKS.is_empty() => each!($k, $is, $one = $from, $two = first[$k] => $value),
                        Bank::Second if !U::BANKS.is_empty() => each!($k, $is, $one = $from, $two = second[$k] => $value),
                        _ => each!($k, $is, $one = $from, $two = load::<V, PART>(two, at, some, $k) => $value),
                    }
                };
                ($k:ident, $is:ident, $($operand:ident = $from:expr),+ => $value:expr) => {
                    for $k in 0..N {
                        let $is = accumulator[$k];
                        $(let $operand = $from;)+
                        accumulator[$k] = $value;
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
            // All stays in registers, since the compiler knows how many elements there are.
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
                        // A block of its own: what others see is no longer in registers.
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
                Act::Store => match one.bank {
                    Bank::First if !U::BANKS.is_empty() => *first = *accumulator,
                    Bank::Second if !U::BANKS.is_empty() => *second = *accumulator,
                    _ => {
                        for (k, vector) in accumulator.iter().enumerate() {
                            vector.store(one.pointer.wrapping_add(k * size_of::<V>()));
                        }
                    }
                },
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
                Act::Exp if U::BANKS.is_empty() => {
                    let was = *accumulator;
                    let (from, to) = elements(&was, accumulator);
                    V::Element::exp_tile::<true>(from.iter().copied(), to);
                }
                Act::Sin if U::FUNCTIONS => angles!(near_sin, false),
                Act::Cos if U::FUNCTIONS => angles!(near_cos, true),
                Act::Log if U::FUNCTIONS => function!(log),
                Act::Tanh if U::FUNCTIONS => function!(tanh),
                Act::Sigmoid if U::FUNCTIONS => function!(sigmoid),
                Act::Erf if U::FUNCTIONS => function!(erf),
                Act::Exp | Act::Log | Act::Sin | Act::Cos | Act::Tanh | Act::Sigmoid | Act::Erf => {
                    debug_assert!(false, "no such chain is made: see `Registers`");
                }
            }
        }
    }

    compiled_for_levels! {
        /// The sines, or the cosines, of a block with angles that are far.
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
                V::Element::cos_tile::<true>(from.iter().copied(), to);
            } else {
                V::Element::sin_tile::<true>(from.iter().copied(), to);
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
