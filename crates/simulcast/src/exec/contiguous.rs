//! Runs along the innermost loop, straight on the arrays: [`Shape::Contiguous`](super::strategy::Shape::Contiguous).

use super::cursor::{Cursor, Pointers};
use super::emit::Emitter;
use super::inner_loop::{InnerLoop, Operands, Repeated, RowLoop};
use super::launch::Job;
use super::repeated_block::{RepeatedBlock, repeated_block_bytes};
use super::scratch::Scratch;
use super::strategy::Stores;
use crate::layout::small_vec::SmallVec;

/// # Safety
///
/// The invariant of [`super::launch`]; the strategy is [`Contiguous`](super::strategy::Shape::Contiguous) with these
/// repeated operands, which are plain data where they are passed as blocks.
pub(crate) unsafe fn contiguous(inner: &mut dyn InnerLoop, job: &Job<'_>, repeated: Operands) {
    let nest = job.nest;
    let operands = nest.arrays() - 1;
    let facts = inner.facts();
    let in_blocks = if facts.repeated == Repeated::Block { repeated } else { 0 };
    let bytes = |n: usize| repeated_block_bytes(facts.sizes[n + 1]);
    let all = (0..operands).filter(|n| in_blocks >> n & 1 == 1).map(bytes).sum::<usize>();
    let mut scratch = Scratch::new(all + Emitter::scratch_bytes(job.strategy, &facts));
    let mut pieces = scratch.pieces();
    let mut blocks = SmallVec::<RepeatedBlock, 4>::new();
    for n in (0..operands).filter(|n| in_blocks >> n & 1 == 1) {
        blocks.push(RepeatedBlock::new(n, pieces.take(bytes(n)), job.strategy.level));
    }
    // SAFETY: the scratch memory was sized for the emitter too, and is not moved.
    let mut emitter = unsafe { Emitter::new(inner, job.strategy, &mut pieces) };
    let last = nest.rank() - 1;
    let len = nest.len(last);
    // Rows whose blocks hold the same elements are one call; those that are stored non-temporally begin at any place of a
    // cache line, and each is split there.
    let same_blocks = |rows: &usize| blocks.iter().all(|at| nest.step(*rows)[at.operand + 1] == 0);
    let ordinary = job.strategy.stores == Stores::Cached;
    let (outer, rows) = match last.checked_sub(1).filter(same_blocks) {
        Some(rows) if ordinary => (rows, RowLoop { count: nest.len(rows), steps: nest.step(rows) }),
        _ => (last, RowLoop::ONE),
    };
    let mut cursor = Cursor::new(nest, 0..outer, Pointers::start(nest, job.out, job.ins));
    loop {
        // Blocks take the places of their operands for a run: a copy of all pointers would take as long as 100 elements.
        let at = &mut cursor.at;
        for block in &mut *blocks {
            let (n, size) = (block.operand, emitter.sizes()[block.operand + 1]);
            // SAFETY: the nest stays within the operand, whose elements are plain data.
            at.set_operand(n, unsafe { block.filled(at.operand(n), size, len) });
        }
        // SAFETY: the nest stays within the arrays, along whose innermost loop the strategy saw operands that are
        // contiguous or repeat, under a contiguous result.
        unsafe { emitter.run(at.out(), at.ins(), repeated, len, rows) };
        for block in &*blocks {
            at.set_operand(block.operand, block.element());
        }
        if !cursor.step() {
            return;
        }
    }
}
