//! Turns: rows that share operands are made together, a piece of each in turn.
//!
//! Operands that repeat from row to row and are too long for the first-level cache would be read from the
//! next one again and again, in the way of what comes from memory. A piece of them stays while so many
//! rows are made of it. Nobody would guess which row comes next, so the operand that comes from memory
//! is asked for.

use super::walk::{At, Walk};
use super::{Job, from_memory};
use crate::inline::Inline;
use crate::kernel::Body;
use crate::nest::Loop;
use crate::stream::{Far, LINE, part};

/// The rows that take turns.
const ROWS: usize = 16;

/// The bytes of a piece.
const PIECE: usize = 4096;

/// How many pieces ahead the operand is asked for.
const SOON: usize = 2;

/// The first-level cache has room for so many bytes of operands that repeat, beside all else.
const NEAR: usize = 8192;

/// The operand that comes from memory, where it is the only one, and rows are worth taking turns: results go
/// past the caches, in any order, all rows begin at the same place of a line, and they are long.
#[inline(always)]
fn lone<B: Body<N>, const N: usize>(body: &B, job: &Job<'_, B::Out, N>) -> Option<usize> {
    let (inner, outer) = job.nest.loops.split_last()?;
    let side = outer.last()?;
    let moves = |n: &usize| inner.ins[*n] != 0;
    let near = (0..N).filter(|n| moves(n) && side.ins[*n] == 0).map(|n| body.sizes()[n]).sum();
    let mut far = (0..N).filter(|n| moves(n) && side.ins[*n] != 0);
    let lone = far.next().filter(|&n| far.next().is_none() && from_memory(outer, n));
    let lines = (side.out * size_of::<B::Out>().cast_signed()) % LINE.cast_signed() == 0;
    let pieces = inner.len >= 2 * PIECE / (size_of::<B::Out>() * body.unit()).max(1);
    let worth = job.stream.all() && job.any_order && lines && pieces;
    lone.filter(|_| worth && inner.len.saturating_mul(near) > NEAR)
}

/// Whether rows are worth taking turns, where operands are contiguous along them or repeat.
#[inline(always)]
pub(super) fn worth<B: Body<N>, const N: usize>(body: &B, job: &Job<'_, B::Out, N>) -> bool {
    B::ASKS && body.asks() && lone(body, job).is_some()
}

/// How rows are cut into pieces.
struct Cut {
    /// How long rows are, the first piece, and all others.
    len: usize,
    head: usize,
    piece: usize,
    /// The rows that take turns.
    rows: usize,
}

/// A piece of a row, and where it begins and ends.
#[derive(Clone, Copy)]
struct Piece {
    row: usize,
    from: usize,
    to: usize,
}

impl Cut {
    /// The same piece of the next row, or the next of the first; after the last one, the first of the rows
    /// below.
    #[inline(always)]
    fn after(&self, Piece { row, from, to }: Piece) -> Piece {
        if row + 1 != self.rows {
            Piece { row: row + 1, from, to }
        } else if to < self.len {
            Piece { row: 0, from: to, to: to + part(self.len - to, self.piece) }
        } else {
            Piece { row: self.rows, from: 0, to: self.head }
        }
    }
}

/// Rows in turn.
///
/// # Safety
///
/// The invariant of [`super`], and [`super::choose`] chose turns, and with `WIDE` the caller is compiled for
/// AVX.
#[inline(always)]
pub(super) unsafe fn turns<B: Body<N>, const N: usize, const WIDE: bool>(
    body: &mut B,
    job: &Job<'_, B::Out, N>,
) {
    // Nothing is compiled for a body that never asks.
    if !B::ASKS {
        return;
    }
    let Some((inner, outer)) = job.nest.loops.split_last() else { return };
    let (Some(side), Some(far)) = (outer.last(), lone(body, job)) else { return };
    let sizes = body.sizes();
    let size = (size_of::<B::Out>() * body.unit()).max(1);
    let splat = (0..N).fold(0, |mask, n| mask | usize::from(inner.ins[n] == 0) << n);
    let piece = PIECE / size;
    let far_on = |step: isize| step * ROWS.cast_signed();
    let mut groups = Inline::from_slice(outer);
    if let Some(last) = groups.last_mut() {
        let (out, ins) = (far_on(side.out), side.ins.map(far_on));
        *last = Loop { len: side.len.div_ceil(ROWS), out, ins };
    }
    let mut walk = Walk::new(&groups, At::start(job, sizes));
    loop {
        // The first piece ends at a line, so that all others are whole lines.
        let head = part(inner.len, piece - walk.at.out.addr() % LINE / size);
        let rows = (side.len - walk.innermost() * ROWS).min(ROWS);
        let cut = Cut { len: inner.len, head, piece, rows };
        let at = |piece: Piece| {
            let row = walk.at.moved(side, piece.row.cast_signed(), sizes);
            row.moved(inner, piece.from.cast_signed(), sizes)
        };
        let mut one = Piece { row: 0, from: 0, to: head };
        let mut soon = (0..SOON).fold(one, |piece, _| cut.after(piece));
        while one.row < rows {
            let (now, then) = (at(one), at(soon));
            let mut apart = [0; N];
            apart[far] = then.ins[far].addr().wrapping_sub(now.ins[far].addr()).cast_signed();
            let far = Far { operands: 1 << far, beside: true, next: Some(&apart) };
            // SAFETY: the output is contiguous along a row, operands are too or repeat; results that are
            // streamed are plain.
            unsafe { body.streamed::<WIDE>(now.out, now.ins, splat, one.to - one.from, far) };
            (one, soon) = (cut.after(one), cut.after(soon));
        }
        if !walk.step(sizes) {
            return;
        }
    }
}
