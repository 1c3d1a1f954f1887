//! Folds of many blocks each: down columns, or along rows that no block holds.

use super::cuts::moved;
use super::folding::Spare;
use super::pile::Pile;
use super::task::{BLOCK, FoldTask, Shared};
use crate::line;
use crate::run::share;

/// The parts that there should be at least, whoever does them.
const PARTS: usize = 64;

impl<const N: usize> FoldTask<'_, N> {
    /// Groups of neighbouring results, each folded from many blocks.
    pub(super) fn groups(&self, results: *mut u8, parallel: usize, limit: Option<usize>) {
        let (cuts, folding, size) = (self.cuts, self.folding, self.folding.size);
        let (outer, inner, columns) = (0..cuts.inner.start, cuts.inner.clone(), cuts.columns());
        let units = cuts.product(outer.clone());
        let (wide, widest) = cuts.wide();
        let groups = units * wide.blocks;
        let (deep, parts) = {
            let (wide, widest) = self.whole.wide();
            let deep = cuts.cut(inner.clone(), (BLOCK / widest).max(1));
            let groups = self.whole.product(outer.clone()) * wide.blocks;
            (deep, if groups >= PARTS { 1 } else { PARTS.div_ceil(groups).min(deep.blocks) })
        };
        let mut partial = Vec::new();
        if parts > 1 {
            partial.resize((groups * parts * widest * size).div_ceil(16), [0_u64; 2]);
        }
        let out = if parts > 1 { partial.as_mut_ptr().cast() } else { results };
        let (shared, this) = (Shared(out), self);
        let all_columns = cuts.product(columns.clone());
        // Where the results of a group are, and how many.
        let place = |group: usize| {
            let (unit, block) = (group / wide.blocks, group % wide.blocks);
            let (_, steps) = cuts.block(columns.clone(), wide, block);
            let count = if cuts.is_whole(&columns, wide) { wide.whole } else { steps * wide.whole };
            let first = cuts.first(&columns, wide, block);
            (unit * all_columns + first, count)
        };
        Self::each(groups * parts, parallel, limit, |tasks| {
            let out = shared.get();
            let depth =
                if cuts.is_whole(&inner, deep) { deep.whole } else { deep.steps * deep.whole };
            let mut room = line::room(depth * widest * size);
            let mut other = line::room(depth.div_ceil(2) * widest * size);
            let mut folded = Spare::new(folding, widest);
            let mut pile = Pile::new(widest * size);
            for task in tasks {
                let (group, part) = (task / parts, task % parts);
                let (unit, column) = (group / wide.blocks, group % wide.blocks);
                let mut at = moved(&cuts.axes[outer.clone()], unit);
                let (more, steps) = cuts.block(columns.clone(), wide, column);
                at.iter_mut().zip(more).for_each(|(at, more)| *at += more);
                let across = cuts.within(&columns, wide, steps);
                let (first, count) = place(group);
                let blocks = share(deep.blocks, part, parts)..share(deep.blocks, part + 1, parts);
                for block in blocks {
                    let (more, steps) = cuts.block(inner.clone(), deep, block);
                    let mut start = at;
                    start.iter_mut().zip(more).for_each(|(at, more)| *at += more);
                    let mut axes = cuts.within(&inner, deep, steps);
                    let rows = axes.iter().map(|(size, _)| size).product::<usize>();
                    let room = room.as_mut_ptr().cast::<u8>();
                    let other = other.as_mut_ptr().cast::<u8>();
                    // SAFETY: the room holds a block of `rows * count` elements, and the other half
                    // as many.
                    unsafe {
                        let row = if columns.is_empty() {
                            this.fold_rows(&[], &axes, start, room, other);
                            other
                        } else {
                            axes.extend_from_slice(&across);
                            this.compute(&axes, start, room);
                            this.down(room, other, rows, count)
                        };
                        pile.push(row, count, size, folding.pair);
                    }
                }
                // SAFETY: every task has a place of its own, with room for `count` elements.
                unsafe {
                    if parts > 1 {
                        let out = out.add(task * widest * size);
                        pile.finish(out, count, size, folding.pair);
                    } else {
                        folded.through(out.add(first * folding.gives), count, |to| {
                            pile.finish(to, count, size, folding.pair);
                        });
                    }
                }
            }
        });
        if parts > 1 {
            let mut pile = Pile::new(widest * size);
            let mut folded = Spare::new(folding, widest);
            for group in 0..groups {
                let (first, count) = place(group);
                for part in 0..parts {
                    // SAFETY: each part left `count` elements in its place.
                    unsafe {
                        let from = out.add((group * parts + part) * widest * size);
                        pile.push(from, count, size, folding.pair);
                    }
                }
                // SAFETY: the results of the group are there to be written.
                unsafe {
                    folded.through(results.add(first * folding.gives), count, |to| {
                        pile.finish(to, count, size, folding.pair);
                    });
                }
            }
        }
    }

    /// Folds `rows` rows of `count` elements into one, in pairs, pairs in pairs; says where it is.
    ///
    /// # Safety
    ///
    /// The room holds that many elements, and the other half as many, rounded up.
    unsafe fn down(&self, room: *mut u8, other: *mut u8, rows: usize, count: usize) -> *mut u8 {
        let size = self.code.dtype.size();
        let (mut from, mut to, mut rows) = (room, other, rows);
        while rows > 1 {
            let half = rows / 2;
            // SAFETY: the second half of the rows with the first; the last of an odd number goes
            // along to the next round. What is written fits in the half that is not read.
            unsafe {
                let second = from.add(half * count * size).cast_const();
                (self.folding.pair)(to, [from, second, std::ptr::null()], half * count);
                if rows % 2 == 1 {
                    let last = from.add((rows - 1) * count * size);
                    let place = to.add(half * count * size);
                    std::ptr::copy_nonoverlapping(last, place, count * size);
                }
            }
            rows -= half;
            std::mem::swap(&mut from, &mut to);
        }
        from
    }
}
