//! Squares: tiles over two loops, for operands that run along the other one.

use super::Job;
use super::walk::{At, Walk};
use crate::inline::Inline;
use crate::kernel::Body;
use crate::line::Line;
use crate::nest::Loop;
use crate::pack::square;
use crate::stream::{self, Far, prefetch};

/// The bytes of one operand's square: they stay in the second-level cache.
const SQUARE: usize = 65536;

/// The bytes of a column of a square, at best. Eight lines in a row are what memory likes.
const COLUMN: usize = 512;

/// Squares go down after this many columns, so that the pages of a transposed operand stay known.
const ACROSS: usize = 1024;

/// Tiles over two loops, for operands that run along the other one.
///
/// # Safety
///
/// The invariant of [`super`], and [`super::choose`] chose squares, and with `WIDE` the caller is compiled
/// for AVX.
#[inline(always)]
pub(super) unsafe fn squares<B: Body<N>, const N: usize, const WIDE: bool>(
    body: &mut B,
    job: &Job<'_, B::Out, N>,
    with: usize,
) {
    let sizes = body.sizes();
    let size = size_of::<B::Out>() * body.unit();
    let Some((inner, rest)) = job.nest.loops.split_last() else { return };
    let mut outer = Inline::new();
    rest.iter().enumerate().filter(|&(at, _)| at != with).for_each(|(_, one)| outer.push(*one));
    let side = rest[with];

    let (mut splat, mut packed) = (0, [false; N]);
    let mut widest = if job.stream { size } else { 1 }.max(1);
    for operand in 0..N {
        match inner.ins[operand] {
            1 => {}
            0 if B::PATTERNS => splat |= 1 << operand,
            _ => {
                packed[operand] = true;
                widest = widest.max(sizes[operand]);
            }
        }
    }
    let rows = (COLUMN / widest).clamp(16, 128);
    let columns = SQUARE / widest / rows;

    // Rows that are a line longer than they need be: those of a power of two would all fall on a few
    // sets of the cache.
    let pitches = sizes.map(|own| columns.min(inner.len) + stream::LINE / own.max(1));
    let mut rooms: [Vec<Line>; N] = std::array::from_fn(|n| {
        let bytes = if packed[n] { rows.min(side.len) * pitches[n] * sizes[n] } else { 0 };
        Vec::with_capacity(bytes.div_ceil(size_of::<Line>()))
    });
    // Whole squares across, and as many rows as there are.
    let across = (ACROSS / columns).max(1) * columns;
    let start = At::start(job, sizes);
    // As if the output began at a line, so that blocks end at lines too.
    let before = if job.stream { start.out.addr() % stream::LINE / size.max(1) } else { 0 };
    let blocks = Loop { len: (inner.len + before).div_ceil(across), ..Loop::default() };
    let mut first = 0;
    outer.push(blocks);
    let mut walk = Walk::new(&outer, start);
    loop {
        let end = if first == 0 { across - before } else { first + across }.min(inner.len);
        // End the first rows at a line of the transposed operand, so that all others read whole lines.
        let over = (0..N).filter(|&n| packed[n]).find_map(|n| {
            let in_line = walk.at.ins[n].addr() % stream::LINE / sizes[n].max(1);
            match side.ins[n] {
                1 => Some(in_line),
                -1 => Some((stream::LINE / sizes[n].max(1)).saturating_sub(in_line + 1)),
                _ => None,
            }
        });
        let over = over.map_or(0, |over| over.min(rows - 1));
        let mut row = 0;
        while row < side.len {
            let most = if row == 0 { rows - over } else { rows };
            let high = most.min(side.len - row);
            let line = walk.at.moved(&side, row.cast_signed(), sizes);
            let mut column = first;
            while column < end {
                let at = line.moved(inner, column.cast_signed(), sizes);
                let mut wide = columns.min(end - column);
                if job.stream && column == first {
                    let over = at.out.addr() % stream::LINE / size.max(1);
                    wide = wide.min(columns.saturating_sub(over).max(1));
                }
                for operand in (0..N).filter(|&operand| packed[operand]) {
                    let down = (high, side.ins[operand]);
                    let across = (wide, inner.ins[operand]);
                    // SAFETY: `high` rows of `wide` elements fit in the room, the nest stays within
                    // the operand, and `tileable` saw that it is plain.
                    unsafe {
                        let (room, pitch) = (rooms[operand].as_mut_ptr().cast(), pitches[operand]);
                        square::<WIDE>(sizes[operand], room, pitch, at.ins[operand], down, across);
                    }
                }
                // Columns of a transposed operand are far apart, and no hardware guesses them: ask
                // for those of the next square while this one is written.
                let next = if column + wide < end {
                    at.moved(inner, wide.cast_signed(), sizes)
                } else {
                    let line = walk.at.moved(&side, (row + high).cast_signed(), sizes);
                    line.moved(inner, first.cast_signed(), sizes)
                };
                for r in 0..high {
                    let mut at = at.moved(&side, r.cast_signed(), sizes);
                    for operand in (0..N).filter(|&operand| packed[operand]) {
                        let (own, room) = (sizes[operand].cast_signed(), rooms[operand].as_ptr());
                        let bytes = r * pitches[operand] * sizes[operand];
                        at.ins[operand] = room.cast::<u8>().wrapping_add(bytes);
                        if side.ins[operand].unsigned_abs() != 1 {
                            continue;
                        }
                        for c in r * wide / high..(r + 1) * wide / high {
                            let column = c.cast_signed() * inner.ins[operand] * own;
                            let from = next.ins[operand].wrapping_offset(column);
                            for line in (0..high * sizes[operand]).step_by(stream::LINE) {
                                let down = line.cast_signed() * side.ins[operand];
                                prefetch(from.wrapping_offset(down));
                            }
                        }
                    }
                    // SAFETY: a row of `wide` elements, in the rooms or in the arrays; the results
                    // of one row fit in their room.
                    unsafe {
                        if job.stream {
                            body.streamed::<WIDE>(at.out, at.ins, splat, wide, Far::NONE);
                        } else {
                            body.dense(at.out, at.ins, splat, wide);
                        }
                    }
                }
                column += wide;
            }
            row += high;
        }
        first = if end == inner.len { 0 } else { end };
        if !walk.step(sizes) {
            return;
        }
    }
}
