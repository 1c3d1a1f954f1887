//! Squares: tiles over two loops, for operands that run along the other one.

use super::Job;
use super::walk::{At, Walk};
use crate::inline::Inline;
use crate::kernel::Body;
use crate::level::{Kind, Level, compiled_for_levels};
use crate::line::room;
use crate::nest::Loop;
use crate::pack::{pack, turn_past};
use crate::stream::{self, Ask, Strip};

/// The bytes that are read in a row from an operand that runs along the other loop. Eight lines are
/// what memory likes.
const RUN: usize = 512;

/// The bytes of results that are written in a row, where that is not a block: columns of an operand whose size is a
/// power of two all fall on a few sets of a cache, so the fewer the better, but every row costs.
const WRITTEN: usize = 512;

/// The bytes of a strip's side: what is turned over and what is written take turns, and are better short.
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
    level: Level,
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
    // Strips of which every row is a block: what does not run along the side repeats along it, and is laid out once.
    let pitch = side.out * size_of::<B::Out>().cast_signed();
    let repeats = |n: usize| side.ins[n] == 0;
    let row = stream::ROW / size;
    let narrow = job.stream.all()
        && pitch.unsigned_abs().is_multiple_of(stream::LINE)
        && body.strips()
        && stream::ROW.is_multiple_of(size)
        && (0..N).all(|n| packed[n] || repeats(n));
    if narrow {
        packed = std::array::from_fn(|n| packed[n] || splat >> n & 1 == 0);
    }
    let columns = if narrow { row } else { (WRITTEN / widest).clamp(64, 128) };
    let (strip, rows) = ((STRIP / widest).max(16), (RUN / widest).max(32));
    let mut rooms: [_; N] = std::array::from_fn(|n| {
        room(if packed[n] {
            strip.min(side.len) * (columns + FEW).min(inner.len) * sizes[n]
        } else {
            0
        })
    });
    let copies = body.copies() && N == 1 && side.ins[0] == 1;
    // Columns end at lines of the output.
    let left =
        if job.stream.any() { At::start(job, sizes).out.addr() % stream::LINE / size } else { 0 };
    // What runs along the side. Mostly that is one operand.
    let runs = |n: &usize| packed[*n] && side.ins[*n].unsigned_abs() == 1;
    // What the rooms hold that does not change from row to row: where it comes from, and for how many.
    let mut held = [(std::ptr::null::<u8>(), 0); N];
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
                    let high = below - row;
                    let ask = |n: usize| {
                        let apart = inner.ins[n] * sizes[n].cast_signed();
                        let line = side.ins[n] * stream::LINE.cast_signed();
                        let lines = (high * sizes[n]).div_ceil(stream::LINE);
                        Ask::new(next.ins[n], (wide, apart), (lines, line), high)
                    };
                    let mut asks = (0..N).filter(runs).map(ask);
                    let mut ask = asks.next().unwrap_or(Ask::NOTHING);
                    asks.for_each(|mut ask| (0..high).for_each(|_| ask.some()));
                    while row < below {
                        let last = end(row, above, strip, below);
                        let mut line = at(row, column);
                        let whole = Strip { pitch, ask };
                        let whole = Some(whole).filter(|whole| {
                            narrow
                                && wide == columns
                                && whole.fits(line.out, wide * (last - row) * size)
                        });
                        if copies && let Some(whole) = &whole {
                            let (out, from) = (line.out.cast(), line.ins[0]);
                            let both = (last - row, wide);
                            // SAFETY: the nest stays within the operand and the output, which fits.
                            if unsafe {
                                turn_past(level, size, out, whole, from, inner.ins[0], both)
                            } {
                                ask = ask.after(last - row);
                                row = last;
                                continue;
                            }
                        }
                        let mut down = side;
                        for operand in (0..N).filter(|&operand| packed[operand]) {
                            let loops =
                                [(last - row, side.ins[operand]), (wide, inner.ins[operand])];
                            let room = rooms[operand].as_mut_ptr().cast::<u8>();
                            let (size, from) = (sizes[operand], line.ins[operand]);
                            line.ins[operand] = room.cast_const();
                            down.ins[operand] = wide.cast_signed();
                            let (before, have) = held[operand];
                            if repeats(operand) && before == from && have >= last - row {
                                continue;
                            }
                            held[operand] = (from, last - row);
                            // SAFETY: a strip fits in the room, the nest stays within the operand,
                            // and `tileable` saw that it is plain.
                            unsafe { pack::<WIDE>(size, room, from, &loops) };
                        }
                        let At { out, ins } = line;
                        if let Some(whole) = &whole {
                            let len = wide * (last - row);
                            // SAFETY: operands repeat, or lie in rooms, row after row.
                            unsafe { body.strip::<WIDE>(out, ins, splat, len, whole) };
                            ask = ask.after(last - row);
                        } else if job.stream.any() {
                            // Where only some are streamed, every row goes its own way.
                            down.len = if job.stream.all() { last - row } else { 1 };
                            for _ in (row..last).step_by(down.len) {
                                let At { out, ins } = line;
                                // SAFETY: rows of `wide` elements, in the rooms or in the arrays.
                                unsafe {
                                    if job.stream.at(out) {
                                        past_rows(level, body, (out, ins, splat, wide), &down, ask);
                                    } else {
                                        body.dense(out, ins, splat, wide);
                                    }
                                }
                                line = line.moved(&down, down.len.cast_signed(), sizes);
                                ask = ask.after(down.len);
                            }
                        } else {
                            (row..last).for_each(|_| ask.some());
                            down.len = last - row;
                            // SAFETY: as above.
                            unsafe { body.rows(out, ins, splat, wide, &down) };
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

/// [`Body::streamed_rows`] in a function of its own, where all stays in registers.
///
/// # Safety
///
/// As there.
#[inline(always)]
unsafe fn past_rows<B: Body<N>, const N: usize>(
    level: Level,
    body: &mut B,
    (out, ins, splat, len): (*mut B::Out, [*const u8; N], usize, usize),
    rows: &Loop<N>,
    ask: Ask,
) {
    // SAFETY: the caller keeps the conditions; a `Level` exists only where the machine has it.
    unsafe {
        match level.kind() {
            Kind::Baseline => body.streamed_rows::<false>(out, ins, splat, len, rows, ask),
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512 if !B::OWN_LEVELS => rows_avx512(body, out, ins, splat, len, rows, ask),
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 | Kind::Avx512 => rows_avx2(body, out, ins, splat, len, rows, ask),
        }
    }
}

compiled_for_levels! {
    /// [`Body::streamed_rows`], compiled for a level.
    ///
    /// # Safety
    ///
    /// As there, and the machine has the features.
    #[inline(never)]
    unsafe fn rows_avx2, rows_avx512<B: Body<N>, const N: usize>(
        body: &mut B,
        out: *mut B::Out,
        ins: [*const u8; N],
        splat: usize,
        len: usize,
        rows: &Loop<N>,
        ask: Ask,
    ) {
        // SAFETY: the caller keeps the conditions.
        unsafe { body.streamed_rows::<true>(out, ins, splat, len, rows, ask) }
    }
}
