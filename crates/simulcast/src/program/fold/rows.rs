//! Folds along: rows of the reduced axes that fit in a block, several at a time.

use super::cuts::{Axis, merged};
use super::folding::Spare;
use super::task::{FoldTask, Shared};
use crate::line::room;
use crate::program::code::From;

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
                let axes = cuts.within(&outer, cut, steps);
                let rows = axes.iter().map(|(size, _)| size).product::<usize>();
                let first = cuts.first(&outer, cut, block);
                // SAFETY: the room holds `rows * reduced` elements, at most a block; every block
                // writes rows of its own.
                unsafe {
                    let room = room.as_mut_ptr().cast();
                    let inner = &cuts.axes[cuts.inner.clone()];
                    let (from, stride) = this.rows_of(&axes, inner, at, room);
                    folded.through(out.add(first * folding.gives), rows, |to| {
                        (folding.row)(to, from, rows, reduced, stride);
                    });
                }
            }
        });
    }

    /// Rows over some axes: those of a leaf that is folded as it stands, where they are whole, or
    /// computed into the room. Says where they are, and how far apart.
    ///
    /// # Safety
    ///
    /// As [`Self::compute`], of all axes together.
    pub(super) unsafe fn rows_of(
        &self,
        kept: &[Axis<N>],
        inner: &[Axis<N>],
        at: [isize; N],
        room: *mut u8,
    ) -> (*const u8, usize) {
        if let From::Leaf(leaf) = self.code.result
            && let [] | [_] = merged(inner)[..]
            && let [] | [_] = merged(kept)[..]
            && inner.last().is_none_or(|(_, strides)| strides[leaf] == 1)
        {
            let stride = kept.last().map_or(0, |(_, strides)| strides[leaf]);
            if let Ok(stride) = usize::try_from(stride) {
                return (self.leaf(leaf, at[leaf]), stride);
            }
        }
        // SAFETY: the caller keeps the conditions.
        unsafe { self.compute(&[kept, inner].concat(), at, room) };
        (room, inner.iter().map(|(size, _)| size).product())
    }
}
