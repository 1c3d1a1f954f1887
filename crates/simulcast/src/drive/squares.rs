//! Squares: tiles over two loops, for operands that run along the other one.

use super::Job;
use super::walk::{At, Walk};
use crate::inline::Inline;
use crate::kernel::Body;
use crate::line::room;
use crate::pack::pack;
use crate::stream::{self, Far, prefetch};

/// The bytes that are read in a row from an operand that runs along the other loop. Eight lines are
/// what memory likes.
const RUN: usize = 512;

/// The bytes of results that are written in a row.
const WRITTEN: usize = 512;

/// The bytes of a strip's side: two lines, so that what is written goes to few pages at a time.
const STRIP: usize = 2 * stream::LINE;

/// Fewer columns than this are written with those before them.
const FEW: usize = 32;

/// Squares go right after this many rows, so that the pages of the output stay known.
pub(crate) const BAND: usize = 1024;

/// Where the stretch of `step` that `at` is in ends, if the first one began `before` earlier.
#[inline(always)]
fn end(at: usize, before: usize, step: usize, len: usize) -> usize {
    (((at + before) / step + 1) * step - before).min(len)
}

/// [`end`] of columns: a few that are left at the end are no stretch of their own.
#[inline(always)]
fn right(at: usize, before: usize, step: usize, len: usize) -> usize {
    let end = end(at, before, step, len);
    if len - end < FEW { len } else { end }
}

/// How an operand that runs along the side is asked for.
struct Runs {
    /// The bytes of an element, or 0 where it does not run along the side.
    size: usize,
    /// How far it is from column to column and from line to line, in bytes.
    apart: isize,
    line: isize,
}

/// Asks for the runs of a square, a few for every row of the one before: nobody else would guess where
/// they are.
struct Ask<const N: usize> {
    from: [*const u8; N],
    /// How many rows and columns there are, and how many columns a row asks for.
    high: usize,
    left: usize,
    each: usize,
}

impl<const N: usize> Ask<N> {
    #[inline(always)]
    fn new<R>(next: &At<R, N>, high: usize, wide: usize) -> Self {
        Self { from: next.ins, high, left: wide, each: wide.div_ceil(high) }
    }

    /// Asks for some columns.
    #[inline(always)]
    fn some(&mut self, operands: &[Runs; N]) {
        for _ in 0..self.each.min(self.left) {
            for (from, runs) in self.from.iter_mut().zip(operands) {
                let mut at = *from;
                for _ in 0..(self.high * runs.size).div_ceil(stream::LINE) {
                    prefetch(at);
                    at = at.wrapping_offset(runs.line);
                }
                *from = from.wrapping_offset(runs.apart);
            }
            self.left -= 1;
        }
    }
}

/// Tiles over two loops, for operands that run along the other one: read in runs along it, as they lie
/// in memory, into the second-level cache, and turned over from there strip by strip.
///
/// # Safety
///
/// The invariant of [`super`], and [`super::choose`] chose squares, and with `WIDE` the caller is compiled
/// for AVX2.
#[inline(always)]
pub(super) unsafe fn squares<B: Body<N>, const N: usize, const WIDE: bool>(
    body: &mut B,
    job: &Job<'_, B::Out, N>,
    with: usize,
) {
    let sizes = body.sizes();
    let size = (size_of::<B::Out>() * body.unit()).max(1);
    let Some((inner, rest)) = job.nest.loops.split_last() else { return };
    let mut outer = Inline::new();
    rest.iter().enumerate().filter(|&(at, _)| at != with).for_each(|(_, one)| outer.push(*one));
    let side = rest[with];

    let (mut splat, mut packed) = (0, [false; N]);
    let mut widest = 1;
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
    // Few columns: those of a transposed operand whose size is a power of two all fall on a few sets
    // of the cache.
    let columns = (WRITTEN / widest).clamp(64, 128);
    let (strip, rows) = ((STRIP / widest).max(16), (RUN / widest).max(32));
    let mut rooms: [_; N] = std::array::from_fn(|n| {
        room(if packed[n] {
            strip.min(side.len) * (columns + FEW).min(inner.len) * sizes[n]
        } else {
            0
        })
    });
    // Columns end at lines of the output.
    let left =
        if job.stream.any() { At::start(job, sizes).out.addr() % stream::LINE / size } else { 0 };
    let runs: [_; N] = std::array::from_fn(|n| Runs {
        size: if packed[n] && side.ins[n].unsigned_abs() == 1 { sizes[n] } else { 0 },
        apart: inner.ins[n] * sizes[n].cast_signed(),
        line: side.ins[n] * stream::LINE.cast_signed(),
    });
    let mut walk = Walk::new(&outer, At::start(job, sizes));
    loop {
        // Rows end at lines of a transposed operand.
        let above = (0..N).filter(|&n| packed[n]).find_map(|n| {
            let in_line = walk.at.ins[n].addr() % stream::LINE / sizes[n].max(1);
            match side.ins[n] {
                1 => Some(in_line),
                -1 => Some((stream::LINE / sizes[n].max(1)).saturating_sub(in_line + 1)),
                _ => None,
            }
        });
        let above = above.unwrap_or(0);
        let at = |row: usize, column: usize| {
            let line = walk.at.moved(&side, row.cast_signed(), sizes);
            line.moved(inner, column.cast_signed(), sizes)
        };
        let mut top = 0;
        while top < side.len {
            let bottom = end(top, above, BAND, side.len);
            let mut column = 0;
            while column < inner.len {
                let right = right(column, left, columns, inner.len);
                let wide = right - column;
                let mut row = top;
                while row < bottom {
                    let below = end(row, above, rows, bottom);
                    let next = if below < bottom {
                        at(below, column)
                    } else if right == inner.len && bottom < side.len {
                        at(bottom, 0)
                    } else {
                        // To the right; beyond the last column is most likely another part, and this thread's.
                        at(top, right)
                    };
                    let mut ask = Ask::new(&next, below - row, wide);
                    while row < below {
                        let last = end(row, above, strip, below);
                        let mut line = at(row, column);
                        for operand in (0..N).filter(|&operand| packed[operand]) {
                            let down = (last - row, side.ins[operand]);
                            let loops = [down, (wide, inner.ins[operand])];
                            let room = rooms[operand].as_mut_ptr().cast();
                            // SAFETY: a strip fits in the room, the nest stays within the operand,
                            // and `tileable` saw that it is plain.
                            unsafe {
                                pack::<WIDE>(sizes[operand], room, line.ins[operand], &loops);
                            }
                            line.ins[operand] = room.cast_const();
                        }
                        for _ in row..last {
                            ask.some(&runs);
                            // SAFETY: a row of `wide` elements, in the rooms or in the arrays.
                            unsafe {
                                if job.stream.at(line.out) {
                                    body.streamed::<WIDE>(
                                        line.out,
                                        line.ins,
                                        splat,
                                        wide,
                                        Far::NONE,
                                    );
                                } else {
                                    body.dense(line.out, line.ins, splat, wide);
                                }
                            }
                            line.out = line.out.wrapping_offset(side.out);
                            for operand in 0..N {
                                let down = if packed[operand] {
                                    wide.cast_signed()
                                } else {
                                    side.ins[operand]
                                };
                                let bytes = down * sizes[operand].cast_signed();
                                line.ins[operand] = line.ins[operand].wrapping_offset(bytes);
                            }
                        }
                        row = last;
                    }
                }
                column = right;
            }
            top = bottom;
        }
        if !walk.step(sizes) {
            return;
        }
    }
}
