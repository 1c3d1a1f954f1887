//! Squares: tiles over two loops, for operands that run along the other one.

use super::Job;
use crate::exec::drive::cursor::{At, Walk};
use crate::exec::inner_loop::{Body, Ends, strips};
use crate::layout::loop_nest::Loop;
use crate::layout::small_vec::Inline;
use simulcast_kernels::compiled_for_levels;
use simulcast_kernels::cpu::aligned_buf::{Line, room};
use simulcast_kernels::cpu::level::{Kind, Level};
use simulcast_kernels::cpu::nontemporal::{self, Ask, Strip};
use simulcast_kernels::pack::{pack, turn_past};

/// The bytes that are read in a row from an operand that runs along the other loop. Eight lines are
/// what memory likes.
const RUN: usize = 512;

/// The bytes of results that are written in a row, where that is not one of a [`Strip`]: columns of an operand whose size is a
/// power of two all fall on a few sets of a cache, so the fewer the better, but every row costs.
const WRITTEN: usize = 512;

/// The bytes of a strip's side: what is turned over and what is written take turns, and are better short.
const STRIP: usize = 2 * nontemporal::LINE;

/// Fewer columns than this are written with those before them.
const FEW: usize = 32;

/// Squares go right after this many rows, so that the pages of the output stay known.
pub(crate) const BAND: usize = 1024;

/// Where the stretch of `step` that `at` is in ends, if the first one began `before` earlier.
#[inline(always)]
fn end(at: usize, before: usize, step: usize, len: usize) -> usize {
    (((at + before) / step + 1) * step - before).min(len)
}

/// What all squares have in common.
struct Grid<'g, const N: usize> {
    inner: &'g Loop<N>,
    side: Loop<N>,
    sizes: [usize; N],
    /// The bytes of a result, and how many there are from row to row.
    size: usize,
    pitch: isize,
    /// Which operands are one element a row, a bit for each, and which are laid out in rooms.
    splat: usize,
    packed: [bool; N],
    /// Whether a row is one of a [`Strip`].
    narrow: bool,
    /// The columns that the squares at the left and at the right of a border both have, where rows are not whole lines: those
    /// of a line. One of them is never needed there, but whole vectors are turned over sooner.
    shared: usize,
    /// The operand whose elements are the results, where that runs along the side.
    copies: Option<usize>,
    /// The columns and rows of a square, and the rows of a strip.
    columns: usize,
    rows: usize,
    strip: usize,
}

impl<'g, const N: usize> Grid<'g, N> {
    #[inline(always)]
    fn new<B: Body<N>>(
        body: &B,
        job: &Job<'_, B::Out, N>,
        inner: &'g Loop<N>,
        side: Loop<N>,
        outer: &[Loop<N>],
    ) -> Self {
        let sizes = body.sizes();
        let size = (size_of::<B::Out>() * body.unit()).max(1);
        let bytes = |one: &Loop<N>| one.out * size_of::<B::Out>().cast_signed();
        let lines = |one: &Loop<N>| bytes(one).unsigned_abs().is_multiple_of(nontemporal::LINE);
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
        let whole = lines(&side) && outer.iter().all(lines);
        let begins = At::start(job, sizes).out.addr().is_multiple_of(size);
        // In a strip, rows follow each other: what does not run along the side repeats along it, and is laid out once.
        let plain = body.plain();
        let lies = |n: usize| packed[n] || side.ins[n] == 0 && (splat >> n & 1 == 1 || plain[n]);
        let narrow = job.stream.all()
            && body.strips()
            && (0..N).all(lies)
            && whole
            && begins
            && nontemporal::ROW.is_multiple_of(size);
        if narrow {
            packed = std::array::from_fn(|n| splat >> n & 1 == 0);
        }
        // Elements of some types, such as complex numbers, may never begin at a line.
        let aligned = |one: &Loop<N>| bytes(one).unsigned_abs().is_multiple_of(size);
        let ragged = job.stream.all()
            && !whole
            && begins
            && size.is_power_of_two()
            && size < nontemporal::LINE
            && aligned(&side)
            && outer.iter().all(aligned);
        let shared = if ragged { nontemporal::LINE / size } else { 0 };
        let columns =
            if narrow { nontemporal::ROW / size } else { (WRITTEN / widest).clamp(64, 128) };
        let copies = body.copies().filter(|&n| side.ins[n] == 1);
        let (rows, strip) = ((RUN / widest).max(32), (STRIP / widest).max(16));
        let pitch = bytes(&side);
        Self {
            inner,
            side,
            sizes,
            size,
            pitch,
            splat,
            packed,
            narrow,
            shared,
            copies,
            columns,
            rows,
            strip,
        }
    }

    /// Where the columns of a square end: at a line, where rows are whole ones. A few that are left at the end are no square of
    /// their own.
    #[inline(always)]
    fn right(&self, column: usize, before: usize) -> usize {
        let len = self.inner.len;
        let end = end(column, before, self.columns, len);
        if len - end < FEW.max(self.shared).min(self.columns) { len } else { end }
    }

    /// How many rows would fit before the first, in its line of a transposed operand: squares end at lines of that.
    #[inline(always)]
    fn above<R>(&self, at: &At<R, N>) -> usize {
        let in_line = |n: usize| {
            let before = at.ins[n].addr() % nontemporal::LINE / self.sizes[n].max(1);
            match self.side.ins[n] {
                1 => Some(before),
                -1 => Some((nontemporal::LINE / self.sizes[n].max(1)).saturating_sub(before + 1)),
                _ => None,
            }
        };
        (0..N).filter(|&n| self.packed[n]).find_map(in_line).unwrap_or(0)
    }

    /// What to ask for beside a square: one of as many rows and columns, which begins there. What runs along the side
    /// comes first: mostly that is one operand.
    #[inline(always)]
    fn asks<R>(&self, next: &At<R, N>, high: usize, wide: usize) -> [Ask; N] {
        let runs = |&n: &usize| {
            self.packed[n] && self.side.ins[n].unsigned_abs() == 1 && self.inner.ins[n] != 0
        };
        let mut asks = [Ask::NOTHING; N];
        for (ask, n) in asks.iter_mut().zip((0..N).filter(runs)) {
            let apart = self.inner.ins[n] * self.sizes[n].cast_signed();
            let line = self.side.ins[n] * nontemporal::LINE.cast_signed();
            // Columns that do not all begin at lines reach into one more.
            let whole = apart.unsigned_abs().is_multiple_of(nontemporal::LINE);
            let lines = (high * self.sizes[n]).div_ceil(nontemporal::LINE) + usize::from(!whole);
            *ask = Ask::new(next.ins[n], (wide, apart), (lines, line), high);
        }
        asks
    }
}

/// Rooms for the operands of a strip.
struct Rooms<const N: usize> {
    rooms: [Vec<Line>; N],
    /// What each holds that does not change from row to row: where it comes from, and for how many rows and columns.
    held: [(*const u8, usize, usize); N],
}

impl<const N: usize> Rooms<N> {
    #[inline(always)]
    fn new(grid: &Grid<'_, N>) -> Self {
        let (high, wide) = (grid.strip, grid.columns + FEW + grid.shared);
        let most = high.min(grid.side.len) * wide.min(grid.inner.len);
        let rooms =
            std::array::from_fn(|n| room(if grid.packed[n] { most * grid.sizes[n] } else { 0 }));
        Self { rooms, held: [(std::ptr::null(), 0, 0); N] }
    }

    /// Lays out what does not lie as it should, which is in the rooms then. Says how far it is from row to row.
    ///
    /// # Safety
    ///
    /// The nest reaches as many rows and columns from there on, and they fit.
    #[inline(always)]
    unsafe fn lay<R, const WIDE: bool>(
        &mut self,
        grid: &Grid<'_, N>,
        at: &mut At<R, N>,
        (high, wide): (usize, usize),
    ) -> Loop<N> {
        let mut down = grid.side;
        for n in (0..N).filter(|&n| grid.packed[n]) {
            let (from, room) = (at.ins[n], self.rooms[n].as_mut_ptr().cast::<u8>());
            at.ins[n] = room.cast_const();
            down.ins[n] = wide.cast_signed();
            let (before, rows, columns) = self.held[n];
            if grid.side.ins[n] == 0 && (before, columns) == (from, wide) && rows >= high {
                continue;
            }
            self.held[n] = (from, high, wide);
            let loops = [(high, grid.side.ins[n]), (wide, grid.inner.ins[n])];
            // SAFETY: the caller keeps the conditions; `tileable` or the grid saw that elements are plain.
            unsafe { pack::<WIDE>(grid.sizes[n], room, from, &loops) };
        }
        down
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
    level: Level,
) {
    let Some((inner, rest)) = job.nest.loops.split_last() else { return };
    let mut outer = Inline::new();
    rest.iter().enumerate().filter(|&(at, _)| at != with).for_each(|(_, one)| outer.push(*one));
    let grid = Grid::new(body, job, inner, rest[with], &outer);
    let (side, sizes) = (&grid.side, grid.sizes);
    let mut rooms = Rooms::new(&grid);
    let start = At::start(job, sizes);
    // Columns end at lines of the output.
    let in_lines = job.stream.any() && grid.shared == 0;
    let left = if in_lines { start.out.addr() % nontemporal::LINE / grid.size } else { 0 };
    let mut walk = Walk::new(&outer, start);
    loop {
        let above = grid.above(&walk.at);
        let at = |row: usize, column: usize| {
            let line = walk.at.moved(side, row.cast_signed(), sizes);
            line.moved(inner, column.cast_signed(), sizes)
        };
        let mut top = 0;
        while top < side.len {
            let bottom = end(top, above, BAND, side.len);
            let mut column = 0;
            while column < inner.len {
                let right = grid.right(column, left);
                let shared = grid.shared.min(inner.len - right);
                let (wide, all) = (right - column, right - column + shared);
                let ends = Ends { left: column > 0 && grid.shared > 0, right: shared > 0 };
                let mut row = top;
                while row < bottom {
                    let below = end(row, above, grid.rows, bottom);
                    let next = if below < bottom {
                        at(below, column)
                    } else if right == inner.len && bottom < side.len {
                        at(bottom, 0)
                    } else {
                        // To the right; beyond the last column is most likely another part, and this thread's.
                        at(top, right)
                    };
                    let mut asks = grid.asks(&next, below - row, all);
                    while row < below {
                        let last = end(row, above, grid.strip, below);
                        let (line, both) = (at(row, column), (last - row, wide, all));
                        // SAFETY: the nest reaches so many rows and columns from there on.
                        unsafe {
                            strip::<B, N, WIDE>(
                                level, body, job, &grid, &mut rooms, line, both, ends, &mut asks,
                            );
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

/// A strip of a square.
///
/// # Safety
///
/// As [`squares`], and the nest reaches so many rows and columns from there on, at most those of a strip, and then all columns.
#[inline(always)]
#[allow(clippy::too_many_arguments, reason = "a loop's body")]
unsafe fn strip<B: Body<N>, const N: usize, const WIDE: bool>(
    level: Level,
    body: &mut B,
    job: &Job<'_, B::Out, N>,
    grid: &Grid<'_, N>,
    rooms: &mut Rooms<N>,
    mut at: At<B::Out, N>,
    (high, wide, all): (usize, usize, usize),
    ends: Ends,
    asks: &mut [Ask; N],
) {
    let Some((ask, others)) = asks.split_first_mut() else { return };
    others.iter_mut().for_each(|ask| (0..high).for_each(|_| ask.some()));
    let strip = Strip { pitch: grid.pitch, ask: *ask, far: None };
    let whole = grid.narrow && wide == grid.columns && strip.fits(at.out, high * wide * grid.size);
    // SAFETY: the caller keeps the conditions: results fit a strip, operands lie in rooms row after row, or repeat, or
    // are where the nest says.
    unsafe {
        if let Some(n) = grid.copies.filter(|_| whole)
            && turn_past(
                level,
                grid.size,
                at.out.cast(),
                &strip,
                (at.ins[n], grid.inner.ins[n]),
                (high, wide),
            )
        {
            *ask = ask.after(high);
            return;
        }
        let mut down = rooms.lay::<B::Out, WIDE>(grid, &mut at, (high, all));
        // A strip is one run; where only some results are streamed, every row goes its own way.
        let (len, strip) = if whole { (high * wide, &strip) } else { (wide, &Strip::NONE) };
        let rows = if whole { 1 } else { high };
        down.len = if job.stream.all() { rows } else { 1 };
        for _ in (0..rows).step_by(down.len) {
            let run = (at.out, at.ins, grid.splat, len);
            if job.stream.at(at.out) {
                // A strip asks for itself.
                let own = if whole { Ask::NOTHING } else { *ask };
                past(level, body, run, ends, &down, strip, own);
                *ask = ask.after(if whole { high } else { down.len });
            } else {
                ask.some();
                body.dense(at.out, at.ins, grid.splat, wide);
            }
            at = at.moved(&down, down.len.cast_signed(), grid.sizes);
        }
    }
}

/// [`strips`] in a function of its own, where all stays in registers.
///
/// # Safety
///
/// As there.
#[inline(always)]
unsafe fn past<B: Body<N>, const N: usize>(
    level: Level,
    body: &mut B,
    run: (*mut B::Out, [*const u8; N], usize, usize),
    ends: Ends,
    rows: &Loop<N>,
    strip: &Strip,
    ask: Ask,
) {
    // SAFETY: the caller keeps the conditions; a `Level` exists only where the machine has it.
    unsafe {
        match level.kind() {
            Kind::Baseline => strips_baseline(body, run, ends, rows, strip, ask),
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512 if !B::OWN_LEVELS => strips_avx512(body, run, ends, rows, strip, ask),
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 | Kind::Avx512 => strips_avx2(body, run, ends, rows, strip, ask),
        }
    }
}

/// [`strips`], compiled for every machine.
///
/// # Safety
///
/// As there.
#[inline(never)]
unsafe fn strips_baseline<B: Body<N>, const N: usize>(
    body: &mut B,
    run: (*mut B::Out, [*const u8; N], usize, usize),
    ends: Ends,
    rows: &Loop<N>,
    strip: &Strip,
    ask: Ask,
) {
    // SAFETY: the caller keeps the conditions.
    unsafe { strips::<B, N, false>(body, run, ends, rows, strip, ask) }
}

compiled_for_levels! {
    /// [`strips`], compiled for a level.
    ///
    /// # Safety
    ///
    /// As there, and the machine has the features.
    #[inline(never)]
    unsafe fn strips_avx2, strips_avx512<B: Body<N>, const N: usize>(
        body: &mut B,
        run: (*mut B::Out, [*const u8; N], usize, usize),
        ends: Ends,
        rows: &Loop<N>,
        strip: &Strip,
        ask: Ask,
    ) {
        // SAFETY: the caller keeps the conditions.
        unsafe { strips::<B, N, true>(body, run, ends, rows, strip, ask) }
    }
}
