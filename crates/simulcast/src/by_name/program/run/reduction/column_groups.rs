//! Folds of many blocks each: down columns, or along rows that no block holds.

use crate::by_name::program::run::reduction::blocking::{Axis, merged, moved};
use crate::by_name::program::run::reduction::operation::Arg;
use crate::by_name::program::run::reduction::pairwise_stack::Pile;
use crate::by_name::program::run::reduction::reducer::{Folding, Spare};
use crate::by_name::program::run::reduction::task::{BLOCK, FoldTask};
use simulcast_kernels::cpu::EIGHT;
use simulcast_kernels::cpu::aligned_buf::{Line, room};
use simulcast_kernels::cpu::nontemporal::FAR;
use simulcast_threads::{SendPtr, share};

/// The parts that there should be at least, whoever does them.
const PARTS: usize = 64;
/// The rows that are folded one after the other, at least.
const DEEP: usize = 128;
/// Rows of at most half as many neighbours are folded several side by side.
const NARROW: usize = 512;
/// The bytes of a block of such rows: what was folded side by side is to be little beside it.
const SIDES: usize = 1 << 18;

impl<const N: usize> FoldTask<'_, N> {
    /// Groups of neighbouring results, each folded from many blocks.
    pub(super) fn groups(&self, results: *mut u8, parallel: usize, limit: Option<usize>) {
        let (cuts, folding, size) = (self.cuts, self.folding, self.folding.size);
        let (outer, inner, columns) = (0..cuts.inner.start, cuts.inner.clone(), cuts.columns());
        let units = cuts.product(outer.clone());
        let wide = cuts.wide(size);
        let widest = wide.most();
        let groups = units * wide.blocks;
        let (deep, side, run, runs, parts) = {
            let wide = self.whole.wide(size);
            let widest = wide.most();
            let side = if columns.is_empty() { 1 } else { (NARROW / widest).max(1) };
            let most = if side > 1 { SIDES / size } else { BLOCK };
            let deep = cuts.cut(inner.clone(), (most / widest).max(EIGHT));
            let alone = columns.is_empty() || side > 1;
            let run = if alone { 1 } else { (DEEP / deep.most()).clamp(1, deep.blocks) };
            let runs = deep.blocks.div_ceil(run);
            let groups = self.whole.product(outer.clone()) * wide.blocks;
            let parts = if groups >= PARTS { 1 } else { PARTS.div_ceil(groups).min(runs) };
            (deep, side, run, runs, parts)
        };
        let bare = self.bare();
        let bytes = cuts.results().saturating_mul(cuts.reduced()).saturating_mul(size);
        let far = bare.is_some() && bytes >= FAR;
        let mut partial = Vec::new();
        if parts > 1 {
            partial.resize((groups * parts * widest * size).div_ceil(16), [0_u64; 2]);
        }
        let out = if parts > 1 { partial.as_mut_ptr().cast() } else { results };
        let (shared, this) = (SendPtr::new(out), self);
        let all_columns = cuts.product(columns.clone());
        // Where the results of a group are, and how many.
        let place = |group: usize| {
            let (unit, block) = (group / wide.blocks, group % wide.blocks);
            let (_, steps) = cuts.block(columns.clone(), wide, block);
            let first = cuts.first(&columns, wide, block);
            (unit * all_columns + first, steps * wide.whole)
        };
        Self::each(groups * parts, parallel, limit, |tasks| {
            let out = shared.get();
            let mut rows = Rows::new(folding, side, widest, far);
            let mut made = Made { room: Vec::new(), bytes: deep.most() * widest * size };
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
                for own in share(runs, part, parts)..share(runs, part + 1, parts) {
                    for block in own * run..deep.blocks.min((own + 1) * run) {
                        let (more, steps) = cuts.block(inner.clone(), deep, block);
                        let mut start = at;
                        start.iter_mut().zip(more).for_each(|(at, more)| *at += more);
                        let axes = cuts.within(&inner, deep, steps);
                        // SAFETY: the room holds a block of all axes.
                        unsafe {
                            if columns.is_empty() {
                                this.fold_rows(&[], &axes, start, made.to(), rows.to());
                            } else {
                                this.fold_down(bare, &axes, &across, start, &mut made, &mut rows);
                            }
                        }
                    }
                    // SAFETY: there was a block, and a row has `count` elements.
                    unsafe { pile.push(rows.taken(count), count, size, folding.pair) };
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

    /// The leaf that is all there is to fold, where neighbouring columns of it are neighbours.
    fn bare(&self) -> Option<usize> {
        let operation = self.operation.filter(|operation| operation.ops.is_empty())?;
        let Arg::Leaf(leaf) = operation.args[0] else { return None };
        let columns = merged(&self.cuts.axes[self.cuts.columns()]);
        matches!(columns[..], [(_, strides)] if strides[leaf] == 1).then_some(leaf)
    }

    /// Folds a block, of the rows of some axes, onto what was folded of a run: a bare leaf is read where it lies,
    /// and all else is made in the room first.
    ///
    /// # Safety
    ///
    /// As [`Self::compute`], of all axes together; a row is no wider than `rows` says.
    unsafe fn fold_down(
        &self,
        bare: Option<usize>,
        down: &[Axis<N>],
        across: &[Axis<N>],
        at: [isize; N],
        made: &mut Made,
        rows: &mut Rows<'_>,
    ) {
        let [high, count] =
            [down, across].map(|axes| axes.iter().map(|(size, _)| size).product::<usize>());
        let axes = [down, across].concat();
        // SAFETY: the caller keeps the conditions; the room is not written again before its rows are folded.
        unsafe {
            if let Some(leaf) = bare {
                if matches!(merged(&axes)[..], [(_, strides)] if strides[leaf] == 1) {
                    return rows.close(self.leaf(leaf, at[leaf]), high, count);
                }
                if rows.side(high) == 1 {
                    let place = |row| self.leaf(leaf, at[leaf] + moved(down, row)[leaf]);
                    return rows.apart((0..high).map(place), count);
                }
            }
            self.compute(&axes, at, made.to());
            rows.close(made.to(), high, count);
            rows.settle(count);
        }
    }
}

/// Room for a block that is made, from when one is.
struct Made {
    room: Vec<Line>,
    bytes: usize,
}

impl Made {
    fn to(&mut self) -> *mut u8 {
        if self.room.capacity() == 0 {
            self.room = room(self.bytes);
        }
        self.room.as_mut_ptr().cast()
    }
}

/// What folds the rows of a run into one.
struct Rows<'f> {
    folding: &'f Folding,
    /// How many rows are taken side by side as one, at most.
    side: usize,
    /// Whether they come from memory, and those to come are asked for.
    far: bool,
    /// Where rows begin that are yet to be folded.
    places: Vec<*const u8>,
    /// The fold of rows that were side by side.
    sides: Vec<Line>,
    /// The fold of all rows before, where there were any.
    folded: Vec<Line>,
    more: bool,
}

impl<'f> Rows<'f> {
    /// Rows of at most that many neighbours.
    fn new(folding: &'f Folding, side: usize, widest: usize, far: bool) -> Self {
        let bytes = widest * folding.size;
        let sides = room(if side > 1 { side * bytes } else { 0 });
        let (places, folded) = (Vec::new(), room(bytes));
        Self { folding, side, far, places, sides, folded, more: false }
    }

    /// How many of so many rows are taken side by side.
    fn side(&self, rows: usize) -> usize {
        self.side.min(rows / EIGHT).max(1)
    }

    /// Where the fold of all is.
    fn to(&mut self) -> *mut u8 {
        self.folded.as_mut_ptr().cast()
    }

    /// Folds rows that begin at some places: now, or with those that follow, where that is the same.
    ///
    /// # Safety
    ///
    /// There are `count` elements at each of them, no more than in the widest row, and as many as in all others
    /// of the run; they stay there until it was taken, or settled.
    unsafe fn apart(&mut self, places: impl Iterator<Item = *const u8>, count: usize) {
        self.places.extend(places);
        if !self.places.len().is_multiple_of(EIGHT) {
            // SAFETY: by the conditions of this function.
            unsafe { self.settle(count) };
        }
    }

    /// Folds rows that follow each other.
    ///
    /// # Safety
    ///
    /// As [`Self::apart`].
    unsafe fn close(&mut self, first: *const u8, rows: usize, count: usize) {
        let (bytes, side) = (count * self.folding.size, self.side(rows));
        let places = |first: *const u8, rows, bytes| {
            (0..rows).map(move |row: usize| first.wrapping_add(row * bytes))
        };
        // SAFETY: the rows are there, and there is room for so many side by side.
        unsafe {
            if side == 1 {
                return self.apart(places(first, rows, bytes), count);
            }
            let to = self.sides.as_mut_ptr().cast();
            self.places.extend(places(first, rows / side, side * bytes));
            (self.folding.down)(to, &self.places, side * count, false, self.far);
            self.places.clear();
            let over = rows % side;
            if over > 0 {
                let last = first.wrapping_add((rows - over) * bytes);
                (self.folding.down)(to, &[last], over * count, true, false);
            }
            self.places.extend(places(to, side, bytes));
            self.settle(count);
        }
    }

    /// Folds what is yet to be folded.
    ///
    /// # Safety
    ///
    /// Its rows have `count` elements.
    unsafe fn settle(&mut self, count: usize) {
        if !self.places.is_empty() {
            let to = self.to();
            // SAFETY: by the condition of this function, and there is room.
            unsafe { (self.folding.down)(to, &self.places, count, self.more, self.far) };
            self.places.clear();
            self.more = true;
        }
    }

    /// The fold of a run, of which there is a row; the next row begins another.
    ///
    /// # Safety
    ///
    /// As [`Self::settle`].
    unsafe fn taken(&mut self, count: usize) -> *const u8 {
        // SAFETY: by the condition of this function.
        unsafe { self.settle(count) };
        self.more = false;
        self.to()
    }
}
