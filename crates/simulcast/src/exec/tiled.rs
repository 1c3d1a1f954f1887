//! Stretches of the result, with awkward operands packed beside them: [`Shape::Tiled`](super::strategy::Shape::Tiled).
//!
//! A tile covers some steps of the outermost loop of a stretch, and all of the loops inside it. A packed operand is copied
//! into a tile of the first-level cache, in the order of the result; one that has not moved since the last tile is not
//! packed again. An operand that the loop around repeats is packed once for a whole round of the stretch, where the
//! second-level cache has room for that.

use simulcast_kernels::cpu::prefetch::prefetch_ahead;
use simulcast_kernels::moves::pack;
use simulcast_kernels::tuning::{
    BACKWARD_TILE_BYTES, CACHE_LINE_BYTES, PACKED_ROUND_BYTES, TILE_BYTES,
};

use super::cursor::{Cursor, Pointers};
use super::emit::Emitter;
use super::inner_loop::{InnerLoop, Operands, Repeated, RowLoop};
use super::launch::Job;
use super::repeated_block::{RepeatedBlock, repeated_block_bytes};
use super::scratch::Scratch;
use super::strategy::{Shape, Stores};
use crate::layout::nest::Nest;
use crate::layout::small_vec::{INLINE, SmallVec};

/// How many steps of some bytes make whole cache lines.
struct LineSteps {
    bytes: usize,
    steps: usize,
}

impl LineSteps {
    fn new(bytes: usize) -> Self {
        // A cache line is a power of two: what divides both is their lowest bit, or the line.
        let common = 1 << bytes.trailing_zeros().min(CACHE_LINE_BYTES.trailing_zeros());
        Self { bytes, steps: CACHE_LINE_BYTES / common }
    }

    /// At most `steps` steps that fill whole cache lines, where there are enough.
    fn fit(&self, steps: usize) -> usize {
        if steps < self.steps { steps } else { steps / self.steps * self.steps }
    }

    /// At most `steps` steps from that address on that end at a line, where any do.
    fn first(&self, address: usize, steps: usize) -> usize {
        let ends = |&count: &usize| (address + count * self.bytes).is_multiple_of(CACHE_LINE_BYTES);
        (1..=steps).rev().take(self.steps).find(ends).unwrap_or(steps)
    }
}

/// An operand that is packed.
#[derive(Clone, Copy)]
struct Packed {
    operand: usize,
    room: *mut u8,
    /// Whether the room holds a whole round of the stretch.
    is_round: bool,
    /// The loops of the stretch: how often, and how far the operand moves, in elements.
    loops: [(usize, isize); INLINE],
    /// What the room holds: where it came from, and how many steps of the first loop.
    held: (*const u8, usize),
}

impl Packed {
    /// The tile from `first` on, of `count` steps of the outermost loop, which a round begins `done` steps before.
    ///
    /// # Safety
    ///
    /// The nest has this number of steps from there on; `inner` is the number of elements in each.
    unsafe fn tile(
        &mut self,
        job: &Job<'_>,
        size: usize,
        depth: usize,
        inner: usize,
        (first, done, count): (*const u8, usize, usize),
        (round, whole): (*const u8, usize),
    ) -> *const u8 {
        let (from, steps, skip) =
            if self.is_round { (round, whole, done * inner * size) } else { (first, count, 0) };
        if self.held.0 != from || self.held.1 < steps {
            self.loops[0].0 = steps;
            // SAFETY: the caller vouches for the operand, which is plain data as the strategy checked; the room was sized
            // for a tile, or for a round.
            unsafe { pack(job.strategy.level, size, self.room, from, &self.loops[..depth]) };
            self.held = (from, steps);
        }
        self.room.wrapping_add(skip)
    }
}

/// The room that a packed operand takes, and whether it holds a whole round.
fn room(
    nest: &Nest,
    from: usize,
    operand: usize,
    size: usize,
    steps: usize,
    inner: usize,
) -> (usize, bool) {
    let round = nest.len(from).saturating_mul(inner * size);
    let again = from.checked_sub(1).is_some_and(|outer| nest.step(outer)[operand + 1] == 0);
    let is_round = again && nest.len(from) > steps && round <= PACKED_ROUND_BYTES;
    (if is_round { round } else { steps.min(nest.len(from)) * inner * size }, is_round)
}

/// # Safety
///
/// The invariant of [`super::launch`], and the strategy is [`Tiled`](Shape::Tiled), of which `shape` is.
pub(crate) unsafe fn tiled(inner_loop: &mut dyn InnerLoop, job: &Job<'_>, shape: Shape) {
    let Shape::Tiled { from, packed, repeated, backwards } = shape else {
        unreachable!("the strategy is tiled")
    };
    let nest = job.nest;
    let operands = nest.arrays() - 1;
    let facts = inner_loop.facts();
    let sizes = facts.sizes;
    let (len, steps_of_first) = (nest.len(from), nest.step(from));
    let inner: usize = nest.lens()[from + 1..].iter().product();
    let depth = nest.rank() - from;

    let in_set = |set: Operands| (0..operands).filter(move |n| set >> n & 1 == 1);
    let widest = in_set(packed).map(|n| sizes[n + 1]).fold(1, usize::max);
    let tile_bytes = if backwards { BACKWARD_TILE_BYTES } else { TILE_BYTES };
    // How many steps of the first loop make a tile; without packing, all of them.
    let lines = LineSteps::new(inner * sizes[0]);
    let nontemporal = job.strategy.stores == Stores::NonTemporal;
    let steps = if packed == 0 { len } else { (tile_bytes / widest / inner).max(1) };
    let steps = if nontemporal { lines.fit(steps) } else { steps };

    let room = |n: usize| room(nest, from, n, sizes[n + 1], steps, inner);
    let in_blocks = if facts.repeated == Repeated::Block { repeated } else { 0 };
    let block_bytes = |n: usize| repeated_block_bytes(sizes[n + 1]);
    let rooms = in_set(packed).map(|n| room(n).0.next_multiple_of(CACHE_LINE_BYTES)).sum::<usize>();
    let all = rooms + in_set(in_blocks).map(block_bytes).sum::<usize>();
    let mut scratch = Scratch::new(all + Emitter::scratch_bytes(job.strategy, &facts));
    let mut pieces = scratch.pieces();
    let mut packs = SmallVec::<Packed, 4>::new();
    for n in in_set(packed) {
        let (bytes, is_round) = room(n);
        let mut loops = [(1, 0); INLINE];
        for (place, at) in loops.iter_mut().zip(from..nest.rank()) {
            *place = (nest.len(at), nest.step(at)[n + 1] / sizes[n + 1].max(1).cast_signed());
        }
        let held = (std::ptr::null(), 0);
        packs.push(Packed { operand: n, room: pieces.take(bytes), is_round, loops, held });
    }
    let mut blocks = SmallVec::<RepeatedBlock, 4>::new();
    for n in in_set(in_blocks) {
        blocks.push(RepeatedBlock::new(n, pieces.take(block_bytes(n)), job.strategy.level));
    }
    // SAFETY: the scratch memory was sized for the emitter too, and is not moved.
    let mut emitter = unsafe { Emitter::new(inner_loop, job.strategy, &mut pieces) };

    let mut cursor = Cursor::new(nest, 0..from, Pointers::start(nest, job.out, job.ins));
    loop {
        // The first tile ends at a cache line, so that all others start and end at cache lines.
        let head =
            if nontemporal { lines.first(cursor.at.out().addr(), steps.min(len)) } else { steps };
        let head = head.min(len);
        let tiles = 1 + (len - head).div_ceil(steps);
        for tile in 0..tiles {
            let tile = if backwards { tiles - 1 - tile } else { tile };
            let done = if tile == 0 { 0 } else { head + (tile - 1) * steps };
            let count = (head + tile * steps).min(len) - done;
            let mut at = cursor.at.moved(steps_of_first, done.cast_signed());
            for packed in &mut *packs {
                let n = packed.operand;
                let size = emitter.sizes()[n + 1];
                if backwards && steps_of_first[n + 1] == -size.cast_signed() {
                    // Short runs that go backwards are not tracked by the hardware prefetcher.
                    let bytes = count * size;
                    prefetch_ahead(at.operand(n).wrapping_sub(bytes), bytes);
                }
                let (first, round) = (at.operand(n), (cursor.at.operand(n), len));
                // SAFETY: the nest stays within the operand.
                let tile =
                    unsafe { packed.tile(job, size, depth, inner, (first, done, count), round) };
                at.set_operand(n, tile);
            }
            for block in &mut *blocks {
                let (n, size) = (block.operand, emitter.sizes()[block.operand + 1]);
                // SAFETY: the nest stays within the operand, whose elements are plain data.
                at.set_operand(n, unsafe { block.filled(at.operand(n), size, count * inner) });
            }
            // SAFETY: the result is contiguous along the stretch, as the strategy saw; operands are contiguous in the
            // arrays or in their rooms, or repeat.
            unsafe { emitter.run(at.out(), at.ins(), repeated, count * inner, RowLoop::ONE) };
        }
        if !cursor.step() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::LineSteps;

    #[test]
    fn first_tiles_end_at_cache_lines() {
        let lines = LineSteps::new(12);
        assert_eq!((lines.steps, lines.fit(100), lines.fit(7)), (16, 96, 7));
        for address in (0..256).step_by(4) {
            let steps = lines.first(address, 100);
            assert!((address + steps * 12).is_multiple_of(64) && (85..=100).contains(&steps));
        }
        assert_eq!(LineSteps::new(4).first(2, 40), 40);
    }
}
