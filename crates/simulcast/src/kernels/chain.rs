//! Chains: many light steps, and exponentials, on floating-point numbers as one loop.
//!
//! A loop for each step writes what it makes into a tile, and the next one reads it there: of five steps,
//! that is most of the work. Here a block of results stays in vector registers, the accumulator, while one
//! step after the other changes it by what it reads. Which step comes next is looked up once a block, and
//! the processor guesses it right: the steps are always the same.
//!
//! Results are those of the loops of each step alone, to the bit.
//!
//! Invariant of every call: whatever a step reads or writes has a block there, at every place that is visited
//! if it moves.

use std::ops::Range;

use crate::Op;

/// The bytes of a block: eight vectors, half of the registers.
pub(crate) const BLOCK: usize = VECTORS * 32;

const VECTORS: usize = 8;

/// What becomes of the accumulator; operands are the step's, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Act {
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
}

impl Act {
    /// The act of an operation whose first operand is the accumulator; none where chains have none.
    pub(crate) const fn of(op: Op) -> Option<Self> {
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
            _ => return None,
        })
    }

    /// The same of two operands, where the second one is the accumulator.
    pub(crate) const fn turned(self) -> Self {
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

/// An operand of a step: it moves with the results, or stays.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) pointer: *mut u8,
    pub(crate) moves: bool,
}

/// A step.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub(crate) act: Act,
    pub(crate) places: [Place; 2],
}

/// The loops of a type, for machines with AVX2. They are called under the invariant of this module; results go
/// past the caches, and need a fence.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chains {
    /// Blocks of results, from one place to another, in bytes from `out`; they begin at a line. What comes after
    /// `asks` is asked for beside them.
    pub(crate) whole:
        unsafe fn(steps: &[Step], out: *mut u8, blocks: Range<usize>, asks: &[*const u8]),
    /// Of a block at a line, those results alone that are in the range, in bytes from there; what moves is read
    /// nowhere else.
    pub(crate) part: unsafe fn(
        steps: &[Step],
        out: *mut u8,
        at: isize,
        wanted: Range<usize>,
        asks: &[*const u8],
    ),
    /// Fills a block with one element.
    pub(crate) fill: unsafe fn(block: *mut u8, element: *const u8),
}

#[cfg(target_arch = "x86_64")]
pub(crate) const fn chains(wide: bool) -> Chains {
    use std::arch::x86_64::{__m256, __m256d};
    if wide { x86::chains::<__m256d>() } else { x86::chains::<__m256>() }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;
    use std::ops::Range;
    use std::slice;

    use super::{Act, BLOCK, Chains, Place, Step, VECTORS};
    use crate::level::compiled_for_levels;
    use crate::math::Real;
    use crate::stream;

    /// A vector of 32 bytes. Its functions are called where the machine has AVX2, by code that is compiled for
    /// it; comparisons make ones and zeros.
    pub(super) trait Vector: Copy {
        type Element: Real;

        unsafe fn all(value: f32) -> Self;
        unsafe fn every(element: *const u8) -> Self;
        unsafe fn load(from: *const u8) -> Self;
        unsafe fn store(self, to: *mut u8);
        unsafe fn stream(self, to: *mut u8);
        /// Some elements alone, those that are ones; the others are 0.
        unsafe fn load_some(from: *const u8, some: __m256i) -> Self;
        unsafe fn add(self, other: Self) -> Self;
        unsafe fn sub(self, other: Self) -> Self;
        unsafe fn mul(self, other: Self) -> Self;
        unsafe fn div(self, other: Self) -> Self;
        unsafe fn sqrt(self) -> Self;
        unsafe fn or(self, other: Self) -> Self;
        unsafe fn xor(self, other: Self) -> Self;
        /// Of the other, what is 0 in it.
        unsafe fn and_not(self, other: Self) -> Self;
        unsafe fn compare<const HOW: i32>(self, other: Self) -> Self;
        unsafe fn round<const HOW: i32>(self) -> Self;
        /// The first where it is ones, otherwise the second.
        unsafe fn choose(self, first: Self, second: Self) -> Self;

        /// The larger one, or NaN; the second where they are equal.
        #[inline(always)]
        unsafe fn max(self, other: Self) -> Self {
            // SAFETY: the caller keeps the conditions.
            unsafe {
                let larger = self.compare::<_CMP_GT_OQ>(other);
                larger.or(self.compare::<_CMP_UNORD_Q>(self)).choose(self, other)
            }
        }

        /// The smaller one, or NaN; the second where they are equal.
        #[inline(always)]
        unsafe fn min(self, other: Self) -> Self {
            // SAFETY: the caller keeps the conditions.
            unsafe {
                let smaller = self.compare::<_CMP_LT_OQ>(other);
                smaller.or(self.compare::<_CMP_UNORD_Q>(self)).choose(self, other)
            }
        }
    }

    /// Ones for some bytes of a block, from one multiple of four to another: a vector for each.
    ///
    /// # Safety
    ///
    /// The caller is compiled for AVX2.
    #[inline(always)]
    #[allow(unused_unsafe, reason = "needed by the oldest compiler that is supported")]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_possible_wrap,
        reason = "a block is short"
    )]
    unsafe fn masks(bytes: &Range<usize>) -> [__m256i; VECTORS] {
        // SAFETY: the caller keeps the conditions.
        unsafe {
            let (start, end) = (bytes.start as i32, bytes.end as i32);
            let mut masks = [_mm256_setzero_si256(); VECTORS];
            for (k, mask) in masks.iter_mut().enumerate() {
                let first = _mm256_set1_epi32(32 * k as i32);
                let own = _mm256_add_epi32(_mm256_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28), first);
                let below = _mm256_cmpgt_epi32(_mm256_set1_epi32(start), own);
                *mask = _mm256_andnot_si256(below, _mm256_cmpgt_epi32(_mm256_set1_epi32(end), own));
            }
            masks
        }
    }

    /// Writes a vector's functions.
    macro_rules! vector {
        ($vector:ident of $element:ty: $all:ident $load:ident $store:ident $stream:ident
            $of_bits:ident $compare:ident $round:ident $choose:ident
            $($own:ident($($other:ident)?) = $instruction:ident;)*) => {
            #[allow(unused_unsafe, reason = "needed by the oldest compiler that is supported")]
            impl Vector for $vector {
                type Element = $element;

                #[inline(always)]
                unsafe fn all(value: f32) -> Self {
                    // SAFETY: the caller keeps the conditions, here and in all that follow.
                    unsafe { $all(value.into()) }
                }
                #[inline(always)]
                unsafe fn every(element: *const u8) -> Self {
                    // SAFETY: as above.
                    unsafe { $all(element.cast::<$element>().read_unaligned()) }
                }
                #[inline(always)]
                unsafe fn load(from: *const u8) -> Self {
                    // SAFETY: as above.
                    unsafe { $load(from.cast()) }
                }
                #[inline(always)]
                unsafe fn load_some(from: *const u8, some: __m256i) -> Self {
                    // SAFETY: as above.
                    unsafe { $of_bits(_mm256_maskload_epi32(from.cast(), some)) }
                }
                #[inline(always)]
                unsafe fn store(self, to: *mut u8) {
                    // SAFETY: as above.
                    unsafe { $store(to.cast(), self) }
                }
                #[inline(always)]
                unsafe fn stream(self, to: *mut u8) {
                    // SAFETY: as above.
                    unsafe { $stream(to.cast(), self) }
                }
                #[inline(always)]
                unsafe fn compare<const HOW: i32>(self, other: Self) -> Self {
                    // SAFETY: as above.
                    unsafe { $compare::<HOW>(self, other) }
                }
                #[inline(always)]
                unsafe fn round<const HOW: i32>(self) -> Self {
                    // SAFETY: as above.
                    unsafe { $round::<HOW>(self) }
                }
                #[inline(always)]
                unsafe fn choose(self, first: Self, second: Self) -> Self {
                    // SAFETY: as above.
                    unsafe { $choose(second, first, self) }
                }
                $(
                    #[inline(always)]
                    unsafe fn $own(self $(, $other: Self)?) -> Self {
                        // SAFETY: as above.
                        unsafe { $instruction(self $(, $other)?) }
                    }
                )*
            }
        };
    }

    vector! { __m256 of f32: _mm256_set1_ps _mm256_loadu_ps _mm256_storeu_ps _mm256_stream_ps
    _mm256_castsi256_ps _mm256_cmp_ps _mm256_round_ps _mm256_blendv_ps
        add(other) = _mm256_add_ps;
        sub(other) = _mm256_sub_ps;
        mul(other) = _mm256_mul_ps;
        div(other) = _mm256_div_ps;
        sqrt() = _mm256_sqrt_ps;
        or(other) = _mm256_or_ps;
        xor(other) = _mm256_xor_ps;
        and_not(other) = _mm256_andnot_ps;
    }

    vector! { __m256d of f64: _mm256_set1_pd _mm256_loadu_pd _mm256_storeu_pd _mm256_stream_pd
    _mm256_castsi256_pd _mm256_cmp_pd _mm256_round_pd _mm256_blendv_pd
        add(other) = _mm256_add_pd;
        sub(other) = _mm256_sub_pd;
        mul(other) = _mm256_mul_pd;
        div(other) = _mm256_div_pd;
        sqrt() = _mm256_sqrt_pd;
        or(other) = _mm256_or_pd;
        xor(other) = _mm256_xor_pd;
        and_not(other) = _mm256_andnot_pd;
    }

    pub(super) const fn chains<V: Vector>() -> Chains {
        Chains { whole: whole::<V>, part: part::<V>, fill: fill::<V> }
    }

    compiled_for_levels! {
        /// # Safety
        ///
        /// The machine has the features; all else is said by [`Chains`].
        unsafe fn whole<V: Vector>(
            steps: &[Step],
            out: *mut u8,
            blocks: Range<usize>,
            asks: &[*const u8],
        ) {
            for at in blocks.step_by(BLOCK) {
                // SAFETY: the caller keeps the conditions.
                unsafe {
                    let none = [_mm256_setzero_si256(); VECTORS];
                    for (k, vector) in block::<V, false>(steps, at, &none, asks).into_iter().enumerate() {
                        vector.stream(out.wrapping_add(at + k * size_of::<V>()));
                    }
                }
            }
        }
    }

    compiled_for_levels! {
        /// # Safety
        ///
        /// The machine has the features; all else is said by [`Chains`].
        unsafe fn part<V: Vector>(
            steps: &[Step],
            out: *mut u8,
            at: isize,
            wanted: Range<usize>,
            asks: &[*const u8],
        ) {
            let at = at.cast_unsigned();
            // SAFETY: the caller keeps the conditions.
            unsafe {
                let some = masks(&wanted);
                for (k, vector) in block::<V, true>(steps, at, &some, asks).into_iter().enumerate() {
                    let first = k * size_of::<V>();
                    let (from, to) = (wanted.start.max(first), wanted.end.min(first + size_of::<V>()));
                    let place = out.wrapping_add(at);
                    if to == from + size_of::<V>() {
                        vector.stream(place.wrapping_add(first));
                    } else if from < to {
                        let mut bytes = [0_u8; size_of::<__m256>()];
                        vector.store(bytes.as_mut_ptr());
                        let own = bytes.as_ptr().wrapping_add(from - first);
                        stream::edge(place.wrapping_add(from), own, to - from);
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
        unsafe fn fill<V: Vector>(block: *mut u8, element: *const u8) {
            // SAFETY: the caller keeps the conditions.
            unsafe {
                let vector = V::every(element);
                for k in 0..VECTORS {
                    vector.store(block.wrapping_add(k * size_of::<V>()));
                }
            }
        }
    }

    /// The results of a block; of a `PART`, what moves is read where results are wanted alone.
    ///
    /// # Safety
    ///
    /// The invariant of [`super`], and the caller is compiled for AVX2.
    #[inline(always)]
    unsafe fn block<V: Vector, const PART: bool>(
        steps: &[Step],
        at: usize,
        some: &[__m256i; VECTORS],
        asks: &[*const u8],
    ) -> [V; VECTORS] {
        for ask in asks {
            stream::ask_ahead(ask.wrapping_add(at), BLOCK);
        }
        // SAFETY: the caller keeps the conditions.
        unsafe {
            let mut accumulator = [V::all(0.0); VECTORS];
            for step in steps {
                accumulator = stepped::<V, PART>(accumulator, step, at, some);
            }
            accumulator
        }
    }

    /// A vector of an operand; of a `PART`, what moves is read where results are wanted alone.
    ///
    /// # Safety
    ///
    /// The invariant of [`super`], and the caller is compiled for AVX2.
    #[inline(always)]
    unsafe fn load<V: Vector, const PART: bool>(
        place: &Place,
        at: usize,
        some: &[__m256i; VECTORS],
        k: usize,
    ) -> V {
        let from = place.pointer.wrapping_add(if place.moves { at } else { 0 });
        let from = from.wrapping_add(k * size_of::<V>());
        // SAFETY: the caller keeps the conditions.
        unsafe { if PART && place.moves { V::load_some(from, some[k]) } else { V::load(from) } }
    }

    /// The accumulator after a step.
    ///
    /// # Safety
    ///
    /// The invariant of [`super`], and the caller is compiled for AVX2.
    #[inline(always)]
    unsafe fn stepped<V: Vector, const PART: bool>(
        was: [V; VECTORS],
        step: &Step,
        at: usize,
        some: &[__m256i; VECTORS],
    ) -> [V; VECTORS] {
        // SAFETY: the caller keeps the invariant.
        unsafe {
            // Closures would be compiled for every machine.
            macro_rules! one {
                ($k:expr) => {
                    load::<V, PART>(&step.places[0], at, some, $k)
                };
            }
            macro_rules! two {
                ($k:expr) => {
                    load::<V, PART>(&step.places[1], at, some, $k)
                };
            }
            macro_rules! each {
                (|$is:ident, $k:ident| $value:expr) => {{
                    let mut now = was;
                    for $k in 0..VECTORS {
                        let $is = was[$k];
                        now[$k] = $value;
                    }
                    now
                }};
            }
            const NEAREST: i32 = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
            const DOWN: i32 = _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC;
            const UP: i32 = _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC;
            const ZERO: i32 = _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC;
            match step.act {
                Act::Load => each!(|_is, k| one!(k)),
                Act::Store => {
                    for (k, vector) in was.into_iter().enumerate() {
                        vector.store(step.places[0].pointer.wrapping_add(k * size_of::<V>()));
                    }
                    was
                }
                Act::Add => each!(|is, k| is.add(one!(k))),
                Act::Subtract => each!(|is, k| is.sub(one!(k))),
                Act::From => each!(|is, k| one!(k).sub(is)),
                Act::Multiply => each!(|is, k| is.mul(one!(k))),
                Act::Divide => each!(|is, k| is.div(one!(k))),
                Act::Under => each!(|is, k| one!(k).div(is)),
                Act::Maximum => each!(|is, k| is.max(one!(k))),
                Act::MaximumOf => each!(|is, k| one!(k).max(is)),
                Act::Minimum => each!(|is, k| is.min(one!(k))),
                Act::MinimumOf => each!(|is, k| one!(k).min(is)),
                Act::Less => each!(|is, k| is.compare::<_CMP_LT_OQ>(one!(k))),
                Act::LessEqual => each!(|is, k| is.compare::<_CMP_LE_OQ>(one!(k))),
                Act::Greater => each!(|is, k| is.compare::<_CMP_GT_OQ>(one!(k))),
                Act::GreaterEqual => each!(|is, k| is.compare::<_CMP_GE_OQ>(one!(k))),
                Act::Equal => each!(|is, k| is.compare::<_CMP_EQ_OQ>(one!(k))),
                Act::NotEqual => each!(|is, k| is.compare::<_CMP_NEQ_UQ>(one!(k))),
                Act::Choose => each!(|is, k| is.choose(one!(k), two!(k))),
                Act::Keep => each!(|is, k| one!(k).choose(is, two!(k))),
                Act::Replace => each!(|is, k| one!(k).choose(two!(k), is)),
                Act::Negative => each!(|is, _k| is.xor(V::all(-0.0))),
                Act::Absolute => each!(|is, _k| V::all(-0.0).and_not(is)),
                Act::Square => each!(|is, _k| is.mul(is)),
                Act::Sqrt => each!(|is, _k| is.sqrt()),
                Act::Reciprocal => each!(|is, _k| V::all(1.0).div(is)),
                Act::Relu => {
                    each!(|is, _k| is.compare::<_CMP_LE_OQ>(V::all(0.0)).and_not(is))
                }
                Act::Floor => each!(|is, _k| is.round::<DOWN>()),
                Act::Ceil => each!(|is, _k| is.round::<UP>()),
                Act::Round => each!(|is, _k| is.round::<NEAREST>()),
                Act::Trunc => each!(|is, _k| is.round::<ZERO>()),
                Act::Exp => {
                    let (mut now, count) = (was, BLOCK / size_of::<V::Element>());
                    let from = slice::from_raw_parts(was.as_ptr().cast::<V::Element>(), count);
                    let to = slice::from_raw_parts_mut(now.as_mut_ptr().cast(), count);
                    // Both stay in registers, since the compiler knows how many there are.
                    V::Element::exp_tile::<true>(from.iter().copied(), to);
                    now
                }
            }
        }
    }
}
