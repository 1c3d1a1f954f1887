//! Folds along: rows of the reduced axes that fit in a block, several at a time.

use crate::by_name::program::run::reduction::blocking::{Axis, merged, moved};
use crate::by_name::program::run::reduction::operation::Arg;
use crate::by_name::program::run::reduction::reducer::Spare;
use crate::by_name::program::run::reduction::task::FoldTask;
use simulcast_kernels::cpu::aligned_buf::room;
use simulcast_kernels::reduce::{RowFold, Rows};
use simulcast_threads::SendPtr;

/// The bytes of a block of rows that are folded one by one, each in one go.
const ROWS: usize = 131_072;
/// Fewer rows, or rows of fewer elements, are made in a room before they are folded.
const FEW: usize = 8;
/// Pieces of as many elements are folded by themselves.
const PIECE: usize = 64;

/// A loop for rows, and its operands with their steps.
type Straight = (RowFold, [(Arg, usize); 2]);

impl<const N: usize> FoldTask<'_, N> {
    /// Rows of the reduced axes that fit in a block: several at a time.
    pub(super) fn rows(&self, out: *mut u8, parallel: usize, limit: Option<usize>) {
        let (cuts, reduced, folding) = (self.cuts, self.cuts.reduced(), self.folding);
        let outer = 0..cuts.inner.start;
        let most = (ROWS / folding.size / reduced).max(1);
        let cut = cuts.cut(outer.clone(), most);
        let shared = SendPtr::new(out);
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
                    folded.through(out.add(first * folding.gives), rows, |to| {
                        this.fold_rows(&axes, inner, at, room, to);
                    });
                }
            }
        });
    }

    /// Folds rows over the inner axes, one for each step of those that are kept: as they are made,
    /// where there is a loop for that and they are straight, or are long pieces that are; or made in the
    /// room first.
    ///
    /// # Safety
    ///
    /// As [`Self::compute`], of all axes together; there is room for the results.
    pub(super) unsafe fn fold_rows(
        &self,
        kept: &[Axis<N>],
        inner: &[Axis<N>],
        at: [isize; N],
        room: *mut u8,
        to: *mut u8,
    ) {
        let rows = kept.iter().map(|(size, _)| size).product();
        let len = inner.iter().map(|(size, _)| size).product::<usize>();
        let mut pieces = merged(inner);
        let last = pieces.pop().unwrap_or((1, [0; N]));
        let straight = self.straight(last);
        // SAFETY: the caller keeps the conditions; there are no more pieces than elements.
        unsafe {
            match straight {
                Some(straight) if pieces.is_empty() && are_many(kept) => {
                    return self.fold_straight(&straight, kept, at, last.0, to);
                }
                Some(straight) if !pieces.is_empty() && last.0 >= PIECE => {
                    let each = len / last.0;
                    let all = [kept, &pieces].concat();
                    self.fold_straight(&straight, &all, at, last.0, room);
                    let own = Rows { first: room, stride: each.cast_signed(), step: 1 };
                    return (self.folding.row)(to, [own; 2], rows, each);
                }
                _ => {}
            }
            self.compute(&[kept, inner].concat(), at, room);
            let own = Rows { first: room, stride: len.cast_signed(), step: 1 };
            (self.folding.row)(to, [own; 2], rows, len);
        }
    }

    /// Folds straight rows as they are made, one for each step of those axes.
    ///
    /// # Safety
    ///
    /// As [`Self::fold_rows`].
    unsafe fn fold_straight(
        &self,
        (fold, args): &Straight,
        kept: &[Axis<N>],
        at: [isize; N],
        len: usize,
        to: *mut u8,
    ) {
        let mut merged = merged(kept);
        let (rows, strides) = merged.pop().unwrap_or((1, [0; N]));
        let before = merged.iter().map(|(size, _)| size).product::<usize>();
        for index in 0..before {
            let more = moved(&merged, index);
            let ins = args.each_ref().map(|(arg, step)| match arg {
                Arg::Leaf(leaf) => Rows {
                    first: self.leaf(*leaf, at[*leaf] + more[*leaf]),
                    stride: strides[*leaf],
                    step: *step,
                },
                Arg::Constant(bytes) => {
                    Rows { first: (&raw const *bytes).cast(), stride: 0, step: 0 }
                }
            });
            // SAFETY: the caller keeps the conditions.
            unsafe { fold(to.add(index * rows * self.folding.size), ins, rows, len) };
        }
    }

    /// The loop for rows as they are made, with the operands' steps, where those are 1 or 0.
    fn straight(&self, (len, strides): Axis<N>) -> Option<Straight> {
        let operation = self.operation?;
        let alone = operation.ops.is_empty();
        // Short rows have no vectors, which an operation by itself has.
        if len < FEW && !alone {
            return None;
        }
        let step = |arg: Arg| match arg {
            Arg::Leaf(leaf) if strides[leaf] == 1 => Some((arg, 1)),
            Arg::Leaf(leaf) if strides[leaf] != 0 || alone => None,
            Arg::Constant(_) if alone => None,
            _ => Some((arg, 0)),
        };
        Some((operation.row?, [step(operation.args[0])?, step(operation.args[1])?]))
    }
}

/// Whether rows are so many at a time that it is worth it.
fn are_many<const N: usize>(kept: &[Axis<N>]) -> bool {
    let merged = merged(kept);
    merged.len() <= 1 || merged.last().is_some_and(|(rows, _)| *rows >= FEW)
}
