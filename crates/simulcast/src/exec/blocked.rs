//! Blocks over two loops, for transposed operands: [`Shape::Blocked`](super::strategy::Shape::Blocked).
//!
//! An operand that is contiguous along another loop, the *side*, than the result is read in runs along it, as it lies in
//! memory, and transposed on the way into a room beside the result:
//!
//! ```text
//! band    BAND_ROWS rows of the result, so that the pages that are written stay within the TLB
//!   block   a few cache lines of rows by a few of columns: every cache line that is read is used at once
//!     strip   rows of a block whose packed operands stay in the first-level cache, computed and stored
//! ```
//!
//! With non-temporal stores each cache line of the result is to be written once, by one strip. Where rows begin at cache
//! lines, blocks do too. Where they begin anywhere, horizontally adjacent blocks both compute the columns at their border,
//! a cache line's worth, and each row is cut where a cache line begins: `shared` columns.

use simulcast_kernels::cpu::prefetch::PrefetchCursor;
use simulcast_kernels::moves::{pack, store_nontemporal};
use simulcast_kernels::tuning::{
    BAND_ROWS, BLOCK_COLUMNS, BLOCK_COLUMNS_MIN, BLOCK_READ_BYTES, BLOCK_ROWS_MIN,
    BLOCK_WRITTEN_BYTES, CACHE_LINE_BYTES, STRIP_BYTES, STRIP_ROWS_MIN,
};

use super::cursor::{Cursor, Pointers};
use super::inner_loop::{Facts, InnerLoop, MAX_OPERANDS, Operands, Repeated, RowLoop, Run};
use super::launch::Job;
use super::scratch::Scratch;
use super::strategy::Stores;
use crate::layout::nest::Nest;

/// Where the stretch of `step` that `at` is in ends, if the first one began `before` earlier.
fn end(at: usize, before: usize, step: usize, len: usize) -> usize {
    (((at + before) / step + 1) * step - before).min(len)
}

/// What all blocks have in common.
struct Grid<'g> {
    /// The steps of every array along a row, and from row to row.
    along: &'g [isize],
    down: &'g [isize],
    /// The columns and the rows of the nest.
    width: usize,
    height: usize,
    sizes: &'g [usize],
    /// The operands that are one element along a row, and those that are laid out in rooms.
    repeated: Operands,
    packed: Operands,
    /// Whether rows are stored by the inner loop itself, with non-temporal stores.
    direct: bool,
    /// Whether a strip is one run of the inner loop: all operands are in rooms, row after row.
    one_run: bool,
    nontemporal: bool,
    /// The columns that horizontally adjacent blocks both compute.
    shared: usize,
    /// The columns and rows of a block, and the rows of a strip.
    columns: usize,
    rows: usize,
    strip: usize,
}

impl<'g> Grid<'g> {
    fn new(facts: &Facts<'g>, job: &Job<'g>, with: usize) -> Self {
        let nest = job.nest;
        let last = nest.rank() - 1;
        let (along, down) = (nest.step(last), nest.step(with));
        let operands = nest.arrays() - 1;
        let size = facts.sizes[0];
        let (mut repeated, mut packed, mut widest): (Operands, Operands, usize) = (0, 0, 1);
        for n in 0..operands {
            let own = facts.sizes[n + 1];
            if along[n + 1] == 0 && facts.repeated == Repeated::Element {
                repeated |= 1 << n;
            } else if along[n + 1] != own.cast_signed() {
                packed |= 1 << n;
                widest = widest.max(own);
            }
        }
        let nontemporal = job.strategy.stores == Stores::NonTemporal;
        let start = job.out.wrapping_offset(nest.starts()[0]).addr();
        let outer = |at: &usize| *at != last;
        let all_rows = |unit: usize| {
            (0..nest.rank())
                .filter(outer)
                .all(|at| nest.step(at)[0].unsigned_abs().is_multiple_of(unit))
        };
        let begins = start.is_multiple_of(size);
        let whole_rows = all_rows(CACHE_LINE_BYTES);
        // Rows of a strip of two cache lines follow each other in a tile, and are one run: what is not packed repeats
        // along the side, and is laid out once.
        let fits = |n: usize| {
            packed >> n & 1 == 1
                || down[n + 1] == 0 && (repeated >> n & 1 == 1 || facts.plain >> n & 1 == 1)
        };
        let direct = nontemporal && facts.nontemporal && facts.copies.is_none();
        let one_run = nontemporal
            && !direct
            && whole_rows
            && begins
            && STRIP_BYTES.is_multiple_of(size)
            && (0..operands).all(fits);
        if one_run {
            packed =
                (0..operands).fold(0, |set, n| set | Operands::from(repeated >> n & 1 == 0) << n);
        }
        // Elements of some types, such as complex numbers, may never begin at a cache line.
        let ragged = nontemporal
            && !whole_rows
            && begins
            && size.is_power_of_two()
            && size < CACHE_LINE_BYTES
            && all_rows(size);
        let shared = if ragged { CACHE_LINE_BYTES / size } else { 0 };
        let columns = if one_run {
            STRIP_BYTES / size
        } else {
            (BLOCK_WRITTEN_BYTES / widest).clamp(*BLOCK_COLUMNS.start(), *BLOCK_COLUMNS.end())
        };
        let rows = (BLOCK_READ_BYTES / widest).max(BLOCK_ROWS_MIN);
        let strip = (STRIP_BYTES / widest).max(STRIP_ROWS_MIN);
        let (width, height, sizes) = (nest.len(last), nest.len(with), facts.sizes);
        Self {
            along,
            down,
            width,
            height,
            sizes,
            repeated,
            packed,
            direct,
            one_run,
            nontemporal,
            shared,
            columns,
            rows,
            strip,
        }
    }

    fn is_packed(&self, operand: usize) -> bool {
        self.packed >> operand & 1 == 1
    }

    /// Where the columns of a block end: at a cache line, where rows are whole ones. A few that are left at the end are no
    /// block of their own.
    fn right(&self, column: usize, before: usize) -> usize {
        let end = end(column, before, self.columns, self.width);
        let few = BLOCK_COLUMNS_MIN.max(self.shared).min(self.columns);
        if self.width - end < few { self.width } else { end }
    }

    /// How many rows would fit before the first, in its cache line of a transposed operand: blocks end at lines of that.
    fn above(&self, at: &Pointers) -> usize {
        let in_line = |n: usize| {
            let size = self.sizes[n + 1].max(1);
            let before = at.operand(n).addr() % CACHE_LINE_BYTES / size;
            match self.down[n + 1] / size.cast_signed() {
                1 => Some(before),
                -1 => Some((CACHE_LINE_BYTES / size).saturating_sub(before + 1)),
                _ => None,
            }
        };
        let operands = self.sizes.len() - 1;
        (0..operands).filter(|&n| self.is_packed(n)).find_map(in_line).unwrap_or(0)
    }

    /// What to prefetch beside a block: one of as many rows and columns, which begins there, of each operand that is
    /// contiguous along the side, of which there is mostly one.
    fn prefetches(&self, next: &Pointers, high: usize, wide: usize) -> [PrefetchCursor; 2] {
        let runs = |&n: &usize| {
            let size = self.sizes[n + 1].cast_signed();
            self.is_packed(n)
                && (self.down[n + 1] == size || self.down[n + 1] == -size)
                && self.along[n + 1] != 0
        };
        let mut all = [PrefetchCursor::NONE; 2];
        let operands = self.sizes.len() - 1;
        for (one, n) in all.iter_mut().zip((0..operands).filter(runs)) {
            let apart = self.along[n + 1];
            let line = self.down[n + 1].signum() * CACHE_LINE_BYTES.cast_signed();
            // Columns that do not all begin at cache lines reach into one more.
            let whole = apart.unsigned_abs().is_multiple_of(CACHE_LINE_BYTES);
            let lines = (high * self.sizes[n + 1]).div_ceil(CACHE_LINE_BYTES) + usize::from(!whole);
            *one = PrefetchCursor::new(next.operand(n), (wide, apart), (lines, line), high);
        }
        all
    }
}

/// The room of a packed operand.
#[derive(Clone, Copy)]
struct Room {
    place: *mut u8,
    /// What it holds that does not change from row to row: where it comes from, and for how many rows and columns.
    held: (*const u8, usize, usize),
}

/// Rooms for the operands of a strip, and a tile for its results.
struct Rooms {
    rooms: [Room; MAX_OPERANDS],
    tile: *mut u8,
}

impl Rooms {
    /// The most rows and columns of a strip.
    fn most(grid: &Grid<'_>) -> usize {
        let wide = grid.columns + BLOCK_COLUMNS_MIN + grid.shared;
        grid.strip.min(grid.height) * wide.min(grid.width)
    }

    /// The bytes that [`Self::new`] takes.
    fn bytes(grid: &Grid<'_>) -> usize {
        let most = Self::most(grid);
        let room = |n: usize| {
            if grid.is_packed(n) {
                (most * grid.sizes[n + 1]).next_multiple_of(CACHE_LINE_BYTES)
            } else {
                0
            }
        };
        (0..grid.sizes.len() - 1).map(room).sum::<usize>()
            + (most * grid.sizes[0]).next_multiple_of(CACHE_LINE_BYTES)
    }

    fn new(grid: &Grid<'_>, scratch: &mut Scratch) -> Self {
        let (most, mut pieces) = (Self::most(grid), scratch.pieces());
        let nothing = Room { place: std::ptr::null_mut(), held: (std::ptr::null(), 0, 0) };
        let mut rooms = [nothing; MAX_OPERANDS];
        for n in (0..grid.sizes.len() - 1).filter(|&n| grid.is_packed(n)) {
            rooms[n].place = pieces.take(most * grid.sizes[n + 1]);
        }
        Self { rooms, tile: pieces.take(most * grid.sizes[0]) }
    }

    /// Packs the operands of a strip; `at` points to them in their rooms then, and what is given back are the steps from
    /// row to row.
    ///
    /// # Safety
    ///
    /// The nest has these rows and columns from `at` on, at most those of a strip.
    unsafe fn pack(
        &mut self,
        job: &Job<'_>,
        grid: &Grid<'_>,
        at: &mut Pointers,
        (high, wide): (usize, usize),
    ) -> [isize; MAX_OPERANDS + 1] {
        let mut down = [0; MAX_OPERANDS + 1];
        down[..grid.down.len()].copy_from_slice(grid.down);
        for n in (0..grid.sizes.len() - 1).filter(|&n| grid.is_packed(n)) {
            let (from, size, room) = (at.operand(n), grid.sizes[n + 1], &mut self.rooms[n]);
            at.set_operand(n, room.place);
            down[n + 1] = (wide * size).cast_signed();
            let (before, rows, columns) = room.held;
            if grid.down[n + 1] == 0 && (before, columns) == (from, wide) && rows >= high {
                continue;
            }
            room.held = (from, high, wide);
            let elements = |bytes: isize| bytes / size.max(1).cast_signed();
            let loops = [(high, elements(grid.down[n + 1])), (wide, elements(grid.along[n + 1]))];
            // SAFETY: the caller vouches for the operand, and the strategy saw that it is plain data; the room holds as
            // many elements as a strip has.
            unsafe { pack(job.strategy.level, size, room.place, from, &loops) };
        }
        down
    }
}

/// # Safety
///
/// The invariant of [`super::launch`], and the strategy is [`Blocked`](super::strategy::Shape::Blocked) with that loop.
pub(crate) unsafe fn blocked(inner: &mut dyn InnerLoop, job: &Job<'_>, with: usize) {
    let nest: &Nest = job.nest;
    let (operands, last) = (nest.arrays() - 1, nest.rank() - 1);
    // The element sizes outlive the borrow of the inner loop.
    let sizes: [usize; MAX_OPERANDS + 1] = {
        let mut all = [0; MAX_OPERANDS + 1];
        all[..nest.arrays()].copy_from_slice(inner.facts().sizes);
        all
    };
    let facts = Facts { sizes: &sizes[..nest.arrays()], ..inner.facts() };
    let copies = facts.copies;
    let grid = Grid::new(&facts, job, with);
    let mut scratch = Scratch::new(Rooms::bytes(&grid));
    let mut strips =
        Strips { rooms: Rooms::new(&grid, &mut scratch), grid: &grid, job, operands, copies };
    let start = Pointers::start(nest, job.out, job.ins);
    // Columns end at cache lines of the result.
    let in_lines = grid.nontemporal && grid.shared == 0;
    let left = if in_lines { start.out().addr() % CACHE_LINE_BYTES / grid.sizes[0] } else { 0 };
    let mut cursor = Cursor::new(nest, (0..last).filter(|&at| at != with), start);
    loop {
        let above = grid.above(&cursor.at);
        let at = |row: usize, column: usize| {
            cursor.at.moved(grid.down, row.cast_signed()).moved(grid.along, column.cast_signed())
        };
        let mut top = 0;
        while top < grid.height {
            let bottom = end(top, above, BAND_ROWS, grid.height);
            let mut column = 0;
            while column < grid.width {
                let right = grid.right(column, left);
                let shared = grid.shared.min(grid.width - right);
                let part = Columns {
                    wide: right - column,
                    all: right - column + shared,
                    cut_left: column > 0 && grid.shared > 0,
                    cut_right: shared > 0,
                };
                let mut row = top;
                while row < bottom {
                    let below = end(row, above, grid.rows, bottom);
                    let next = if below < bottom {
                        at(below, column)
                    } else if right == grid.width && bottom < grid.height {
                        at(bottom, 0)
                    } else {
                        // To the right; beyond the last column is most likely another part, and this thread's.
                        at(top, right)
                    };
                    let mut prefetches = grid.prefetches(&next, below - row, part.all);
                    while row < below {
                        let last = end(row, above, grid.strip, below);
                        // SAFETY: the nest has these rows and columns from there on.
                        unsafe {
                            strips.one(inner, at(row, column), last - row, &part, &mut prefetches);
                        };
                        row = last;
                    }
                }
                column = right;
            }
            top = bottom;
        }
        if !cursor.step() {
            return;
        }
    }
}

/// The columns of a block.
struct Columns {
    /// Its own columns, and those with the ones that it shares with the block at its right.
    wide: usize,
    all: usize,
    /// Whether rows are cut where a cache line begins, at the left and at the right end.
    cut_left: bool,
    cut_right: bool,
}

/// All that a strip needs.
struct Strips<'s> {
    grid: &'s Grid<'s>,
    job: &'s Job<'s>,
    rooms: Rooms,
    operands: usize,
    copies: Option<usize>,
}

impl Strips<'_> {
    /// A strip of a block.
    ///
    /// # Safety
    ///
    /// As [`blocked`], and the nest reaches `high` rows and all columns from there on, at most those of a strip.
    unsafe fn one(
        &mut self,
        inner: &mut dyn InnerLoop,
        mut at: Pointers,
        high: usize,
        columns: &Columns,
        prefetches: &mut [PrefetchCursor; 2],
    ) {
        let (grid, job, operands) = (self.grid, self.job, self.operands);
        let (size, level) = (grid.sizes[0], job.strategy.level);
        // SAFETY: the caller vouches for the nest.
        let down = unsafe { self.rooms.pack(job, grid, &mut at, (high, columns.all)) };
        // Results that are copies are where their operand was packed.
        let copied = self.copies.filter(|&n| grid.is_packed(n));
        let one_run = grid.one_run && columns.wide == columns.all;
        let tile = match copied {
            Some(n) => at.operand(n).cast_mut(),
            None => self.rooms.tile,
        };
        let ordinary = Run {
            out: tile,
            ins: &[],
            repeated: grid.repeated,
            prefetch: 0,
            stores: Stores::Cached,
            len: columns.all,
        };
        if one_run && copied.is_none() {
            let ins = at.ins();
            let len = high * columns.all;
            // SAFETY: all operands lie in rooms, row after row, or repeat in all rows; the tile has room for a strip.
            unsafe { inner.contiguous(&Run { ins, len, ..ordinary }, RowLoop::ONE) };
        }
        for row in 0..high {
            prefetches.iter_mut().for_each(PrefetchCursor::step);
            let out = at.out();
            let ins = at.ins();
            // SAFETY: rows of operands are contiguous in the arrays or in their rooms, or repeat, and the result's row is
            // within the nest; a cut row begins and ends within the columns that were computed.
            unsafe {
                if grid.nontemporal {
                    let to_line = |at: *mut u8| at.addr().wrapping_neg() % CACHE_LINE_BYTES;
                    let skip = if columns.cut_left { to_line(out) } else { 0 };
                    let row_bytes = columns.wide * size;
                    let more =
                        if columns.cut_right { to_line(out.wrapping_add(row_bytes)) } else { 0 };
                    let (to, bytes) = (out.add(skip), row_bytes + more - skip);
                    if grid.direct {
                        let (mut from, elements) = ([std::ptr::null(); MAX_OPERANDS], skip / size);
                        for (n, (place, &row)) in from.iter_mut().zip(ins).enumerate() {
                            let moves = grid.repeated >> n & 1 == 0;
                            *place = row.wrapping_add(if moves {
                                elements * grid.sizes[n + 1]
                            } else {
                                0
                            });
                        }
                        let run = Run {
                            out: to,
                            ins: &from[..operands],
                            len: bytes / size,
                            stores: Stores::NonTemporal,
                            ..ordinary
                        };
                        inner.contiguous(&run, RowLoop::ONE);
                    } else {
                        let made = if one_run || copied.is_some() {
                            tile.wrapping_add(row * columns.all * size)
                        } else {
                            inner.contiguous(&Run { ins, ..ordinary }, RowLoop::ONE);
                            tile
                        };
                        store_nontemporal(level, to, made.add(skip), bytes);
                    }
                } else if copied.is_some() {
                    let made = tile.wrapping_add(row * columns.all * size);
                    out.copy_from_nonoverlapping(made, columns.wide * size);
                } else {
                    let run = Run { out, ins, len: columns.wide, ..ordinary };
                    inner.contiguous(&run, RowLoop::ONE);
                }
            }
            at.advance(&down, 1);
        }
    }
}
