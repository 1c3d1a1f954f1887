//! Folds along: rows of the reduced axes that fit in a block, several at a time.

use std::ops::Range;

use super::cuts::Cut;
use super::folding::Spare;
use super::task::{FoldTask, Shared};
use crate::line::room;

/// The bytes of a block of rows that are folded one by one, each in one go.
const ROWS: usize = 131_072;

impl<const N: usize> FoldTask<'_, N> {
    /// Rows of the reduced axes that fit in a block: several at a time.
    pub(super) fn rows(&self, out: *mut u8, parallel: usize, limit: Option<usize>) {
        let (cuts, reduced, folding) = (self.cuts, self.cuts.reduced(), self.folding);
        let outer = 0..cuts.inner.start;
        let most = (ROWS / folding.size / reduced).max(1);
        let cut = cuts.cut(outer.clone(), most);
        let shared = Shared(out);
        let this = self;
        Self::each(cut.blocks, parallel, limit, |blocks| {
            let out = shared.get();
            let mut room = room(most * reduced * folding.size);
            let mut folded = Spare::new(folding, most);
            for block in blocks {
                let (at, steps) = cuts.block(outer.clone(), cut, block);
                let mut axes = cuts.within(&outer, cut, steps);
                let rows = axes.iter().map(|(size, _)| size).product::<usize>();
                axes.extend_from_slice(&cuts.axes[cuts.inner.clone()]);
                let first = this.first_row(&outer, cut, block);
                // SAFETY: the room holds `rows * reduced` elements, at most a block; every block
                // writes rows of its own.
                unsafe {
                    let room = room.as_mut_ptr().cast::<u8>();
                    this.compute(&axes, at, room);
                    folded.through(out.add(first * folding.gives), rows, |to| {
                        (folding.row)(to, room, rows, reduced, reduced);
                    });
                }
            }
        });
    }

    /// Which result a block of the outer axes begins with.
    fn first_row(&self, outer: &Range<usize>, cut: Cut, block: usize) -> usize {
        if self.cuts.is_whole(outer, cut) {
            return 0;
        }
        let size = self.cuts.axes[cut.axis].0;
        let across = size.div_ceil(cut.steps);
        (block / across * size + block % across * cut.steps) * cut.whole
    }
}
