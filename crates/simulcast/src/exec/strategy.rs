//! The strategy: everything that is decided about a call, once, before anything runs.
//!
//! Shapes, strides, element types and the machine go in; a value comes out that can be printed, compared and tested. The
//! executors obey it. Left to them is what follows from it and from sizes: how large tiles and blocks are, which rows are one
//! call, and for blocks, which operands are packed.
//!
//! | shape | chosen where | executor |
//! |---|---|---|
//! | [`Tiny`](Shape::Tiny) | at most 64 results on at most two axes, which need not be dropped, of at most five operands (eight into the caller's array); programs need contiguous rows | [`super::tiny`], no nest, no tile |
//! | [`Contiguous`](Shape::Contiguous) | along the innermost loop the result is contiguous, and each operand contiguous or repeated | [`super::contiguous`]: run after run, straight on the arrays |
//! | [`Tiled`](Shape::Tiled) | some operand is neither, or the innermost loop is short | [`super::tiled`]: stretches of the result over several loops, awkward operands packed beside them |
//! | [`Blocked`](Shape::Blocked) | an operand is transposed: it runs along another loop than the result | [`super::blocked`]: blocks over both loops, so that every cache line that is read is used |
//! | [`Strided`](Shape::Strided) | elements that must not be copied, or gaps in the result | [`super::strided`]: element by element |
//!
//! | decision | rule |
//! |---|---|
//! | loop order, merged axes | [`Nest`](crate::layout::nest::Nest): by the result's strides |
//! | packed operands | those that are neither contiguous nor repeated along a stretch (tiled) or a row (blocked) |
//! | stores | non-temporal if all hold: the result is plain data, has at least [`NONTEMPORAL_RESULT_BYTES`], does not fit the last-level cache together with what is read, and is not compute-bound |
//! | prefetch | of what is read in order, with non-temporal stores: operands from memory on Intel, whose own prefetcher stops at pages; with a long inner loop; one operand from memory beside several in the first-level cache, or one at least twice as wide as the result. Blocks and backward tiles prefetch as they pack |
//! | partition | [`Partition`]: bands of transposed operands, blocks along a loop whose operand is re-read, else stretches of the result |
//! | level | given: AVX2 for closures, the widest for programs, or what `SIMULCAST_LEVEL` names |

use std::fmt;

use simulcast_kernels::cpu::cache::cache_bytes;
use simulcast_kernels::cpu::level::Level;
use simulcast_kernels::cpu::prefetch::pays_in_light_loops;
use simulcast_kernels::tuning::{
    CACHE_LINE_BYTES, NONTEMPORAL_RESULT_BYTES, NONTEMPORAL_ROW_BYTES, ROW_WITHOUT_PACKING_BYTES,
    SHORT_LOOP_ELEMENTS, TILE_BYTES, TRANSPOSED_LOOP_MIN,
};

use super::inner_loop::{Facts, Operands};
use crate::layout::nest::Nest;
use crate::layout::partition::Partition;
use crate::layout::small_vec::INLINE;

/// How a call is computed on this machine, for these shapes and strides: printed by `Display`.
///
/// ```
/// use ndarray::array;
/// use simulcast::{Strategy, zip};
///
/// let strategy: Strategy = zip((&array![1.0, 2.0],)).threads(1).strategy::<f64>();
/// println!("{strategy}"); // the loops, stores and threads of a call, before it runs
/// assert_eq!(strategy, zip((&array![3.0, 4.0],)).threads(1).strategy::<f64>());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Strategy {
    pub(crate) shape: Shape,
    pub(crate) stores: Stores,
    /// The operands to prefetch.
    pub(crate) prefetch: Operands,
    pub(crate) partition: Partition,
    pub(crate) level: Level,
}

/// How the nest is walked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Nothing to compute: a size is 0.
    Empty,
    /// Few results: no nest, no tile.
    Tiny,
    /// Runs along the innermost loop.
    Contiguous {
        /// The operands that repeat along it.
        repeated: Operands,
    },
    /// Stretches of the result.
    Tiled {
        /// The outermost loop of a stretch.
        from: usize,
        /// The operands that are packed for each.
        packed: Operands,
        /// The operands that repeat along all of it.
        repeated: Operands,
        /// Whether stretches are visited from the last to the first, as an operand that runs backwards lies in memory.
        backwards: bool,
    },
    /// Blocks over a loop and the innermost one.
    Blocked {
        /// The loop along which an operand is contiguous.
        with: usize,
    },
    /// Element by element.
    Strided,
}

/// How results are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stores {
    /// Ordinary stores.
    Cached,
    /// Stores that do not read the cache line first, nor keep it.
    NonTemporal,
}

/// What a strategy is chosen for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Question<'q> {
    pub(crate) facts: &'q Facts<'q>,
    pub(crate) nest: &'q Nest,
    /// Whether elements may be visited in another order than that of the result's memory.
    pub(crate) any_order: bool,
    /// About how many parts to make.
    pub(crate) parts: usize,
    /// Whether every row of the result begins at the same place of a cache line.
    pub(crate) rows_aligned: bool,
    pub(crate) level: Level,
}

/// How an operand lies along some loops, relative to the result.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Access {
    /// Element for element as the result.
    Contiguous,
    /// One element.
    Repeated,
    /// Otherwise.
    Packed,
}

impl Question<'_> {
    fn operands(&self) -> std::ops::Range<usize> {
        0..self.nest.arrays() - 1
    }

    /// The bytes that an operand moves in a step of a loop.
    fn step(&self, at: usize, operand: usize) -> isize {
        self.nest.step(at)[operand + 1]
    }

    fn size(&self, operand: usize) -> usize {
        self.facts.sizes[operand + 1]
    }

    fn result_size(&self) -> usize {
        self.facts.sizes[0]
    }

    /// How an operand lies along the loops from `from` on, along which the result is contiguous.
    fn access(&self, from: usize, operand: usize) -> Access {
        let loops = from..self.nest.rank();
        let (own, result) = (self.size(operand), self.result_size());
        let alike = |at: usize| {
            self.step(at, operand).wrapping_mul(result.cast_signed())
                == self.nest.step(at)[0].wrapping_mul(own.cast_signed())
        };
        // Elements without a size never move.
        if loops.clone().all(|at| self.step(at, operand) == 0) && own > 0 {
            Access::Repeated
        } else if loops.clone().all(alike) {
            Access::Contiguous
        } else {
            Access::Packed
        }
    }

    fn is_plain(&self, operand: usize) -> bool {
        self.facts.plain >> operand & 1 == 1
    }

    /// Whether a stretch may reach over the loops from `from` on: what is not contiguous there is copied, which only
    /// plain data may be; a single element is only read where that is allowed.
    fn is_tileable(&self, from: usize) -> bool {
        self.operands().all(|operand| match self.access(from, operand) {
            Access::Contiguous => true,
            Access::Repeated => {
                self.is_plain(operand)
                    || self.facts.repeated == super::inner_loop::Repeated::Element
            }
            Access::Packed => self.is_plain(operand),
        })
    }

    /// The operands that lie so along the loops from `from` on.
    fn set(&self, from: usize, access: Access) -> Operands {
        self.operands().fold(0, |set, operand| {
            set | Operands::from(self.access(from, operand) == access) << operand
        })
    }

    fn stores(&self) -> Stores {
        let elements = self.nest.lens().iter().fold(1_usize, |all, &len| all.saturating_mul(len));
        let written = elements.saturating_mul(self.result_size());
        if written < NONTEMPORAL_RESULT_BYTES
            || !self.facts.plain_result
            || self.facts.compute_bound
        {
            return Stores::Cached;
        }
        let distinct = |operand: usize| {
            let moves = (0..self.nest.rank()).filter(|&at| self.step(at, operand) != 0);
            let elements = moves.fold(1_usize, |all, at| all.saturating_mul(self.nest.len(at)));
            elements.saturating_mul(self.size(operand))
        };
        let read = self.operands().map(distinct).fold(0, usize::saturating_add);
        if written.saturating_add(read) <= cache_bytes() {
            Stores::Cached
        } else {
            Stores::NonTemporal
        }
    }

    /// The loop along which a transposed operand is contiguous, or nearly so, where blocks pay.
    fn transposed(&self, stores: Stores) -> Option<usize> {
        let rank = self.nest.rank();
        let last = rank - 1;
        let inner_len = self.nest.len(last);
        if !self.any_order || inner_len < TRANSPOSED_LOOP_MIN {
            return None;
        }
        let awkward = self.operands().filter(|&operand| {
            let step = self.step(last, operand);
            step != 0 && step != self.size(operand).cast_signed()
        });
        for operand in awkward {
            let step = self.step(last, operand).unsigned_abs();
            let nearer = |at: usize| {
                let own = self.step(at, operand).unsigned_abs();
                (own != 0 && own < step && self.nest.len(at) >= TRANSPOSED_LOOP_MIN)
                    .then_some((own, at))
            };
            let Some((_, at)) = (0..last).filter_map(nearer).min() else { continue };
            // Short rows that follow each other are one run once they are packed. An operand from memory comes in cache
            // lines, of which a tile should use two of every column.
            let few = match stores {
                Stores::NonTemporal => TILE_BYTES / (2 * CACHE_LINE_BYTES),
                Stores::Cached => SHORT_LOOP_ELEMENTS - 1,
            };
            let row = inner_len.cast_signed() * self.result_size().cast_signed();
            let joined = at + 1 == last && inner_len <= few && self.nest.step(at)[0] == row;
            if !joined {
                return Some(at);
            }
        }
        None
    }

    /// The outermost loop of a stretch that is not short.
    fn stretch(&self, stores: Stores) -> usize {
        let rank = self.nest.rank();
        let size = self.facts.sizes.iter().fold(1, |most, &size| most.max(size));
        // With non-temporal stores a run begins and ends at cache lines, which takes longer than a few of them do.
        let short = match stores {
            Stores::NonTemporal => SHORT_LOOP_ELEMENTS.max(NONTEMPORAL_ROW_BYTES / size),
            Stores::Cached => SHORT_LOOP_ELEMENTS,
        };
        let (mut from, mut len) = (rank - 1, self.nest.len(rank - 1));
        while len < short && from > 0 && rank - from < INLINE {
            let row = len.cast_signed() * self.result_size().cast_signed();
            if self.nest.step(from - 1)[0] != row || !self.is_tileable(from - 1) {
                break;
            }
            from -= 1;
            len *= self.nest.len(from);
        }
        from
    }

    fn shape(&self, stores: Stores) -> Shape {
        let rank = self.nest.rank();
        let Some(last) = rank.checked_sub(1) else { return Shape::Strided };
        if self.nest.step(last)[0] != self.result_size().cast_signed() || !self.is_tileable(last) {
            return Shape::Strided;
        }
        if let Some(with) = self.transposed(stores) {
            return Shape::Blocked { with };
        }
        let from = self.stretch(stores);
        let runs = Shape::Contiguous { repeated: self.set(last, Access::Repeated) };
        let is_straight = self.set(last, Access::Packed) == 0;
        if from == last && is_straight {
            return runs;
        }
        let packed = self.set(from, Access::Packed);
        // Packing an operand that changes with every stretch puts a store and a load of it between memory and the loop;
        // rows of some length do without.
        let varies = self.operands().any(|n| packed >> n & 1 == 1 && self.step(from, n) != 0);
        let row_bytes = self.nest.len(last) * self.result_size();
        if stores == Stores::Cached
            && is_straight
            && varies
            && row_bytes >= ROW_WITHOUT_PACKING_BYTES
        {
            return runs;
        }
        let repeated = self.set(from, Access::Repeated);
        Shape::Tiled { from, packed, repeated, backwards: self.backwards(from, packed) }
    }

    /// Whether no loop outside of `from` repeats an operand.
    fn is_new(&self, from: usize, operand: usize) -> bool {
        (0..from).all(|at| self.step(at, operand) != 0)
    }

    /// Whether some packed operand runs backwards, and no other operand would then be read backwards.
    fn backwards(&self, from: usize, packed: Operands) -> bool {
        let moves = |n: usize, is_packed: bool, back: bool| {
            (packed >> n & 1 == 1) == is_packed
                && self.step(from, n) != 0
                && self.is_new(from, n)
                && (self.step(from, n) < 0) == back
        };
        self.any_order
            && self.operands().any(|n| moves(n, true, true))
            && !self.operands().any(|n| moves(n, false, false) || moves(n, true, false))
    }

    /// Every stretch that tiles may cover: what tests run beside the one that is chosen.
    #[cfg(test)]
    pub(crate) fn tilings(&self) -> Vec<Shape> {
        let (mut all, mut row) = (Vec::new(), self.result_size().cast_signed());
        for from in (0..self.nest.rank()).rev() {
            if self.nest.step(from)[0] != row || !self.is_tileable(from) {
                break;
            }
            row *= self.nest.len(from).cast_signed();
            let (packed, repeated) =
                (self.set(from, Access::Packed), self.set(from, Access::Repeated));
            let tiled = |backwards| Shape::Tiled { from, packed, repeated, backwards };
            all.extend([tiled(false), tiled(packed != 0)]);
            if from + 1 == self.nest.rank() && packed == 0 {
                all.push(Shape::Contiguous { repeated });
            }
        }
        all
    }

    /// The operands to prefetch.
    fn prefetch(&self, shape: Shape, stores: Stores) -> Operands {
        let from = match shape {
            Shape::Contiguous { .. } => self.nest.rank() - 1,
            Shape::Tiled { from, backwards: false, .. } => from,
            _ => return 0,
        };
        if stores == Stores::Cached {
            return 0;
        }
        let repeated = self.set(from, Access::Repeated);
        let moving = self.operands().len() - repeated.count_ones() as usize;
        let contiguous = self.set(from, Access::Contiguous);
        let from_memory = self
            .operands()
            .filter(|&n| contiguous >> n & 1 == 1 && self.is_new(from, n))
            .fold(0, |set: Operands, n| set | 1 << n);
        // Among several streams that stay in the first-level cache, the hardware does not track the one from memory; and
        // an operand at least twice as wide as the result dominates the traffic.
        let lone = from_memory.is_power_of_two() && {
            let operand = from_memory.trailing_zeros() as usize;
            let wide = self.operands().len() == 2 && self.size(operand) >= 2 * self.result_size();
            moving > 2 || wide
        };
        if lone || self.facts.prefetches || pays_in_light_loops() { from_memory } else { 0 }
    }
}

impl Strategy {
    /// The strategy for a call.
    pub(crate) fn new(question: &Question<'_>) -> Self {
        let stores = question.stores();
        let shape = question.shape(stores);
        // Element by element, non-temporal stores gain nothing.
        let stores = if shape == Shape::Strided { Stores::Cached } else { stores };
        Self {
            shape,
            stores,
            prefetch: question.prefetch(shape, stores),
            partition: Partition::new(
                question.nest,
                question.facts.sizes,
                question.parts,
                question.rows_aligned,
                question.any_order,
            ),
            level: question.level,
        }
    }

    /// The strategy of a call that needs no nest.
    pub(crate) fn without_nest(shape: Shape, level: Level) -> Self {
        let (stores, partition) = (Stores::Cached, Partition::whole(0));
        Self { shape, stores, prefetch: 0, partition, level }
    }
}

/// The operands of a set by number: `0, 2`.
struct Numbers(Operands);

impl fmt::Display for Numbers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for operand in (0..Operands::BITS).filter(|at| self.0 >> at & 1 == 1) {
            write!(f, "{separator}{operand}")?;
            separator = ", ";
        }
        Ok(())
    }
}

/// `tiled from loop 0, packs operands 1; non-temporal stores; prefetches operands 0; 8 x 1 parts; avx2`.
impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.shape {
            Shape::Empty => return f.write_str("empty: nothing to compute"),
            Shape::Tiny => f.write_str("tiny: no loop nest")?,
            Shape::Contiguous { repeated: 0 } => f.write_str("contiguous")?,
            Shape::Contiguous { repeated } => {
                write!(f, "contiguous, repeats operands {}", Numbers(repeated))?;
            }
            Shape::Tiled { from, packed, repeated, backwards } => {
                write!(f, "tiled from loop {from}")?;
                if packed != 0 {
                    write!(f, ", packs operands {}", Numbers(packed))?;
                }
                if repeated != 0 {
                    write!(f, ", repeats operands {}", Numbers(repeated))?;
                }
                f.write_str(if backwards { ", backwards" } else { "" })?;
            }
            Shape::Blocked { with } => write!(f, "blocked over loop {with} and the innermost")?,
            Shape::Strided => f.write_str("strided: element by element")?,
        }
        match self.stores {
            Stores::Cached => {}
            Stores::NonTemporal => f.write_str("; non-temporal stores")?,
        }
        if self.prefetch != 0 {
            write!(f, "; prefetches operands {}", Numbers(self.prefetch))?;
        }
        write!(f, "; {}; {}", self.partition, self.level.name())
    }
}

#[cfg(test)]
mod tests {
    use simulcast_kernels::tuning::LAST_LEVEL_CACHE_BYTES_MAX;

    use super::super::inner_loop::Repeated;
    use super::*;

    /// Facts of an inner loop on `operands` operands of plain data of that size.
    fn facts(sizes: &[usize]) -> Facts<'_> {
        Facts {
            sizes,
            plain: Operands::MAX,
            plain_result: true,
            repeated: Repeated::Block,
            copies: None,
            nontemporal: false,
            prefetches: false,
            compute_bound: false,
            operations: 1,
        }
    }

    /// Row-major strides.
    fn row_major(shape: &[usize]) -> Vec<isize> {
        let mut strides = vec![1; shape.len()];
        for at in (1..shape.len()).rev() {
            strides[at - 1] = strides[at] * shape[at].cast_signed();
        }
        strides
    }

    fn strategy_of(
        facts: &Facts<'_>,
        shape: &[usize],
        operands: &[&[isize]],
        parts: usize,
    ) -> Strategy {
        let out = row_major(shape);
        let strides: Vec<&[isize]> =
            [&out[..]].into_iter().chain(operands.iter().copied()).collect();
        let nest = Nest::new(shape, &strides, facts.sizes);
        let (any_order, rows_aligned, level) = (true, true, Level::BASELINE);
        Strategy::new(&Question { facts, nest: &nest, any_order, parts, rows_aligned, level })
    }

    fn shape_of(sizes: &[usize], shape: &[usize], operands: &[&[isize]]) -> Shape {
        strategy_of(&facts(sizes), shape, operands, 1).shape
    }

    // [E_BROADCAST_ANY_FUNC_3030]
    #[test]
    fn each_shape_is_chosen_where_the_table_says() {
        let f32s = &[4, 4, 4];
        // Contiguous operands of any rank are one run; a row and a column are runs too.
        assert_eq!(
            shape_of(f32s, &[50, 40], &[&[40, 1], &[40, 1]]),
            Shape::Contiguous { repeated: 0 }
        );
        assert_eq!(
            shape_of(f32s, &[50, 400], &[&[400, 1], &[0, 1]]),
            Shape::Contiguous { repeated: 0 }
        );
        assert_eq!(
            shape_of(f32s, &[50, 400], &[&[400, 1], &[1, 0]]),
            Shape::Contiguous { repeated: 0b10 }
        );
        assert_eq!(shape_of(f32s, &[1000], &[&[1], &[0]]), Shape::Contiguous { repeated: 0b10 });
        // Rows of a few channels are joined, and the channels packed.
        let tiled = |packed, backwards| Shape::Tiled { from: 0, packed, repeated: 0, backwards };
        assert_eq!(shape_of(f32s, &[500, 3], &[&[3, 1], &[0, 1]]), tiled(0b10, false));
        assert_eq!(shape_of(f32s, &[500], &[&[1], &[2]]), tiled(0b10, false));
        assert_eq!(
            shape_of(f32s, &[500], &[&[-1], &[0]]),
            Shape::Tiled { from: 0, packed: 1, repeated: 0b10, backwards: true }
        );
        assert_eq!(shape_of(f32s, &[500], &[&[1], &[-1]]), tiled(0b10, false));
        // Rows of 256 bytes and more do without packing, where what is packed would change.
        assert_eq!(
            shape_of(f32s, &[500, 64], &[&[64, 1], &[1, 0]]),
            Shape::Contiguous { repeated: 0b10 }
        );
        assert_eq!(shape_of(f32s, &[500, 32], &[&[32, 1], &[1, 0]]), tiled(0b10, false));
        // A transposed operand.
        assert_eq!(shape_of(f32s, &[300, 200], &[&[1, 300], &[0, 1]]), Shape::Blocked { with: 0 });
        assert_eq!(
            shape_of(f32s, &[7, 300, 200], &[&[60_000, 200, 1], &[60_000, 1, 300]]),
            Shape::Blocked { with: 1 }
        );
        // One of short rows that follow each other is packed.
        assert_eq!(shape_of(f32s, &[300, 20], &[&[1, 300], &[0, 1]]), tiled(0b11, false));
    }

    // [E_BROADCAST_ANY_FUNC_3030]
    #[test]
    fn elements_that_must_not_be_copied_are_read_where_they_are() {
        let sizes = &[24, 24, 24];
        let owned = Facts { plain: 0, plain_result: false, ..facts(sizes) };
        let shape = |operands: &[&[isize]]| strategy_of(&owned, &[50, 400], operands, 1).shape;
        assert_eq!(shape(&[&[400, 1], &[0, 1]]), Shape::Contiguous { repeated: 0 });
        assert_eq!(shape(&[&[400, 1], &[1, 0]]), Shape::Strided);
        assert_eq!(shape(&[&[1, 50], &[0, 1]]), Shape::Strided);
        // An inner loop that takes a repeated element as it is has no need of a copy.
        let element = Facts { repeated: Repeated::Element, ..owned };
        let repeated = strategy_of(&element, &[50, 400], &[&[400, 1], &[1, 0]], 1).shape;
        assert_eq!(repeated, Shape::Contiguous { repeated: 0b10 });
    }

    // [E_BROADCAST_ANY_FUNC_3020]
    #[test]
    fn stores_are_non_temporal_where_results_outgrow_the_last_level_cache() {
        let sizes = &[4, 4, 4];
        let stores =
            |facts: &Facts<'_>, len: usize| strategy_of(facts, &[len], &[&[1], &[1]], 1).stores;
        let most = cache_bytes() / 12;
        assert_eq!(stores(&facts(sizes), most), Stores::Cached);
        assert_eq!(stores(&facts(sizes), most + 1), Stores::NonTemporal);
        // What repeats is read once.
        let outer =
            |len: usize| strategy_of(&facts(sizes), &[len, len], &[&[1, 0], &[0, 1]], 1).stores;
        assert_eq!(outer(((cache_bytes() / 4) as f64).sqrt() as usize - 8), Stores::Cached);
        assert_eq!(outer(((cache_bytes() / 4) as f64).sqrt() as usize + 8), Stores::NonTemporal);
        let slow = Facts { compute_bound: true, ..facts(sizes) };
        assert_eq!(stores(&slow, LAST_LEVEL_CACHE_BYTES_MAX), Stores::Cached);
        let owned = Facts { plain_result: false, ..facts(sizes) };
        assert_eq!(stores(&owned, LAST_LEVEL_CACHE_BYTES_MAX), Stores::Cached);
    }

    #[test]
    fn one_operand_from_memory_beside_several_in_a_cache_is_prefetched() {
        let sizes = &[4, 4, 4, 4];
        let len = 2 * LAST_LEVEL_CACHE_BYTES_MAX / (4 * 4096);
        let rows: [&[isize]; 3] = [&[4096, 1], &[0, 1], &[0, 1]];
        let large = strategy_of(&facts(sizes), &[len, 4096], &rows, 1);
        assert_eq!((large.stores, large.prefetch), (Stores::NonTemporal, 0b001));
        // Not where results stay in the cache.
        assert_eq!(strategy_of(&facts(sizes), &[10, 4096], &rows, 1).prefetch, 0);
        // An inner loop that is long asks for all of them.
        let long = Facts { prefetches: true, ..facts(&[4, 4, 4]) };
        let both = strategy_of(&long, &[len, 4096], &[&[4096, 1], &[4096, 1]], 1);
        assert_eq!(both.prefetch, 0b11);
    }

    #[test]
    fn a_strategy_says_what_it_is() {
        let sizes = &[4, 4, 4];
        let text = |shape: &[usize], operands: &[&[isize]], parts| {
            strategy_of(&facts(sizes), shape, operands, parts).to_string()
        };
        let row: [&[isize]; 2] = [&[400, 1], &[0, 1]];
        assert_eq!(text(&[50, 400], &row, 1), "contiguous; 1 part; baseline");
        assert_eq!(
            text(&[500, 3], &[&[3, 1], &[0, 1]], 4),
            "tiled from loop 0, packs operands 1; 4 parts (4 x 1); baseline"
        );
        let transposed: [&[isize]; 2] = [&[1, 4096], &[0, 1]];
        assert_eq!(
            text(&[4096, 4096], &transposed, 32),
            "blocked over loop 0 and the innermost; non-temporal stores; 32 parts (4 x 8); baseline"
        );
    }
}
