//! A part of a pass: pieces in groups of rows, and what becomes of their values.
//!
//! Invariant: as in [`super::machine`]; operands reach every element of the nest, maps and sums have room for theirs, and no
//! other part writes the same.

use std::ops::Range;

use super::machine::Machine;
use super::nest::{AxisParts, Folded, Nest};
use super::sums::{Place, join};
use crate::by_name::program::build::bytecode::register_elements;
use simulcast_kernels::cpu::aligned_buf::{CacheLine, cache_lines};
use simulcast_kernels::moves;
use simulcast_kernels::reduce::Rows;
use simulcast_kernels::tuning::{JOINT_GROUP_ROWS, JOINT_ROW_ELEMENTS};
use simulcast_threads::{checkpoint, share};

/// What the values of a group become, of one reduction.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// One value.
    One,
    /// One row: rows are reduced.
    Row,
    /// One value for each row.
    Column,
    /// A value for each element.
    Each,
}

/// The sums of a group.
struct Local<'n> {
    fold: &'n Folded,
    shape: Shape,
    /// The part's own sums.
    to: *mut u8,
    values: Vec<CacheLine>,
    /// Whether there are values.
    begun: bool,
}

/// How large pieces are.
#[derive(Clone, Copy)]
struct Cut {
    columns: usize,
    rows: usize,
    group: usize,
}

impl Nest<'_> {
    /// The last axis, and the one before it.
    fn inner(&self) -> (usize, Option<usize>) {
        let inner = self.sizes.len() - 1;
        (inner, inner.checked_sub(1))
    }

    fn cut(&self) -> Cut {
        let (inner, row) = self.inner();
        let most = register_elements(self.code.registers, self.code.widest);
        let columns = self.sizes[inner].min(most);
        let rows = match row {
            Some(_) if columns < JOINT_ROW_ELEMENTS => most / columns.max(1),
            _ => 1,
        };
        Cut { columns, rows, group: JOINT_GROUP_ROWS.div_ceil(rows) * rows }
    }

    /// Runs a part.
    ///
    /// # Safety
    ///
    /// The invariant of this module.
    pub(super) unsafe fn run(&self, parts: &AxisParts, part: usize, sums: &[Place]) {
        let mut ranges: Vec<Range<usize>> = self.sizes.iter().map(|&size| 0..size).collect();
        let size = self.sizes[parts.axis];
        let own = share(size, part, parts.count)..share(size, part + 1, parts.count);
        ranges[parts.axis] = own;
        if ranges.iter().any(Range::is_empty) {
            return;
        }
        // SAFETY: by the condition of this function.
        unsafe { Task::new(self, parts, part, sums).run(&ranges) };
    }
}

/// A part about to run.
struct Task<'n> {
    nest: &'n Nest<'n>,
    cut: Cut,
    machine: Machine,
    /// How each operand is read.
    reads: Vec<Read>,
    ins: Vec<*const u8>,
    locals: Vec<Local<'n>>,
    /// Which maps a machine writes itself.
    direct: Vec<bool>,
}

/// How an operand is read.
enum Read {
    /// It is one element for a piece.
    Repeated,
    /// Its elements follow one another.
    InPlace,
    /// They are brought together.
    Packed(Vec<CacheLine>),
}

impl<'n> Task<'n> {
    fn new(nest: &'n Nest<'n>, parts: &AxisParts, part: usize, sums: &[Place]) -> Self {
        let ((inner, row), cut) = (nest.inner(), nest.cut());
        let room = cut.columns * cut.rows;
        let whole = cut.columns == nest.sizes[inner];
        let mut reads = Vec::with_capacity(nest.sources.len());
        for source in &nest.sources {
            let (size, step) = (source.size.cast_signed(), source.steps[inner]);
            let down = row.map_or(0, |row| source.steps[row]);
            let follows = cut.rows == 1 || whole && down == step * cut.columns.cast_signed();
            reads.push(match step {
                0 if cut.rows == 1 || down == 0 => Read::Repeated,
                _ if step == size && follows => Read::InPlace,
                _ => Read::Packed(cache_lines(room * source.size)),
            });
        }
        let repeats: Vec<bool> = reads.iter().map(|read| matches!(read, Read::Repeated)).collect();
        // Rows of a result that follow one another as the piece's do.
        let mut direct = vec![false; nest.code.results.len()];
        for map in &nest.maps {
            let down = row.map_or(0, |row| map.steps[row]);
            let (size, step) = (map.size.cast_signed(), map.steps[inner]);
            let follows = cut.rows == 1 || whole && down == step * cut.columns.cast_signed();
            direct[map.result] = step == size && follows;
        }
        let machine = Machine::new(nest.code, &repeats, room, &direct);
        let locals = nest.folds.iter().zip(sums).map(|(fold, place)| {
            let shape = match (row.is_some_and(|row| fold.kept[row]), fold.kept[inner]) {
                (false, false) => Shape::One,
                (false, true) => Shape::Row,
                (true, false) => Shape::Column,
                (true, true) => Shape::Each,
            };
            let count = match shape {
                Shape::One | Shape::Each => 1,
                Shape::Row => cut.columns,
                Shape::Column => cut.group,
            };
            let copy = if parts.copies(fold) > 1 { part } else { 0 };
            let to = place.first.get().wrapping_add(copy * place.stride);
            let values = cache_lines(count * fold.reducer.value_bytes);
            Local { fold, shape, to, values, begun: false }
        });
        let locals = locals.collect();
        let direct = nest.maps.iter().map(|map| machine.is_direct(map.result)).collect();
        let ins = vec![std::ptr::null(); nest.sources.len()];
        Self { nest, cut, machine, reads, ins, locals, direct }
    }

    /// Runs the elements of some ranges.
    ///
    /// # Safety
    ///
    /// The invariant of this module.
    unsafe fn run(&mut self, ranges: &[Range<usize>]) {
        let (inner, row) = self.nest.inner();
        let outer = &ranges[..row.unwrap_or(0)];
        let rows = row.map_or(0..1, |row| ranges[row].clone());
        let columns = ranges[inner].clone();
        let mut index: Vec<usize> = outer.iter().map(|range| range.start).collect();
        loop {
            for first in columns.clone().step_by(self.cut.columns) {
                let count = self.cut.columns.min(columns.end - first);
                for group in rows.clone().step_by(self.cut.group) {
                    checkpoint();
                    let end = (group + self.cut.group).min(rows.end);
                    // SAFETY: within the ranges.
                    unsafe { self.group(&index, group..end, first..first + count) };
                }
            }
            let mut axis = index.len();
            loop {
                let Some(next) = axis.checked_sub(1) else { return };
                axis = next;
                index[axis] += 1;
                if index[axis] < outer[axis].end {
                    break;
                }
                index[axis] = outer[axis].start;
            }
        }
    }

    /// Runs some rows and columns.
    ///
    /// # Safety
    ///
    /// As [`Self::run`].
    unsafe fn group(&mut self, index: &[usize], rows: Range<usize>, columns: Range<usize>) {
        let (inner, row) = self.nest.inner();
        let at = |steps: &[isize]| {
            let outer = index.iter().zip(steps).map(|(&at, step)| at.cast_signed() * step);
            outer.sum::<isize>() + columns.start.cast_signed() * steps[inner]
        };
        let down = |steps: &[isize], at: usize| row.map_or(0, |row| at.cast_signed() * steps[row]);
        let bases: Vec<isize> = self.nest.sources.iter().map(|source| at(&source.steps)).collect();
        let outs: Vec<isize> = self.nest.maps.iter().map(|map| at(&map.steps)).collect();
        let sums: Vec<usize> = self
            .nest
            .folds
            .iter()
            .map(|fold| {
                let outer = index.iter().zip(&fold.steps).map(|(&at, step)| at * step);
                outer.sum::<usize>() + columns.start * fold.steps[inner]
            })
            .collect();
        let count = columns.len();
        self.locals.iter_mut().for_each(|local| local.begun = false);
        for first in rows.clone().step_by(self.cut.rows) {
            let own = self.cut.rows.min(rows.end - first);
            let len = own * count;
            // SAFETY: by the condition of this function: all within the ranges.
            unsafe {
                for (n, source) in self.nest.sources.iter().enumerate() {
                    let offset = bases[n] + down(&source.steps, first);
                    let from = source.first.get().cast_const().wrapping_offset(offset);
                    self.ins[n] = match &mut self.reads[n] {
                        Read::Repeated | Read::InPlace => from,
                        Read::Packed(room) => {
                            let to = room.as_mut_ptr().cast();
                            let size = source.size.cast_signed();
                            let down = row.map_or(0, |row| source.steps[row] / size);
                            let loops = [(own, down), (count, source.steps[inner] / size)];
                            moves::pack(self.nest.level, source.size, to, from, &loops);
                            to.cast_const()
                        }
                    };
                }
                for (n, map) in self.nest.maps.iter().enumerate().filter(|(n, _)| self.direct[*n]) {
                    let to = map.out.get().wrapping_offset(outs[n] + down(&map.steps, first));
                    self.machine.direct(map.result, to);
                }
                self.machine.run(&self.ins, len);
                for (n, map) in self.nest.maps.iter().enumerate().filter(|(n, _)| !self.direct[*n])
                {
                    let values = self.machine.values(map.result, &self.ins, len);
                    let to = map.out.get().wrapping_offset(outs[n] + down(&map.steps, first));
                    let steps = (row.map_or(0, |row| map.steps[row]), map.steps[inner]);
                    scatter(map.size, to, steps, values, (own, count));
                }
                for (local, &sum) in self.locals.iter_mut().zip(&sums) {
                    let values = self.machine.values(local.fold.result, &self.ins, len);
                    let down = row.map_or(0, |row| local.fold.steps[row]);
                    let place = (sum + first * down, down);
                    local.take(values, (own, count), first - rows.start, place);
                }
            }
        }
        for (local, &sum) in self.locals.iter_mut().zip(&sums) {
            let own = sum + row.map_or(0, |row| rows.start * local.fold.steps[row]);
            // SAFETY: as above.
            unsafe { local.settle(own, rows.len(), count) };
        }
    }
}

impl Local<'_> {
    fn to(&self, sum: usize) -> *mut u8 {
        self.to.wrapping_add(sum * self.fold.wide.value_bytes)
    }

    /// Joins the values of a piece: `rows` of `count` each, of which the first is that row of the group.
    ///
    /// # Safety
    ///
    /// There are so many values, and the sums from `place` on, those of the next row `down` from there, are the part's own.
    #[inline]
    unsafe fn take(
        &mut self,
        values: *const u8,
        (rows, count): (usize, usize),
        row: usize,
        (place, down): (usize, usize),
    ) {
        let reducer = &self.fold.reducer;
        let (element, value) = (reducer.element_bytes, reducer.value_bytes);
        let own: *mut u8 = self.values.as_mut_ptr().cast();
        let whole = |len: usize| {
            let stride = (len * element).cast_signed();
            [Rows { first: values, stride, step: 1 }; 2]
        };
        // SAFETY: by the conditions of this function; `own` has room for a value, a row or a column of them.
        unsafe {
            match self.shape {
                Shape::One if self.begun => {
                    let mut one = [0_u64; 2];
                    let to: *mut u8 = (&raw mut one).cast();
                    (reducer.along)(to, whole(rows * count), 1, rows * count, false);
                    (reducer.join)(own, to, 1);
                }
                Shape::One => (reducer.along)(own, whole(rows * count), 1, rows * count, false),
                Shape::Row if rows == 1 => {
                    (reducer.across)(own, &[values], count, self.begun, false);
                }
                Shape::Row => {
                    let places = (0..rows).map(|row| values.wrapping_add(row * count * element));
                    let places: Vec<*const u8> = places.collect();
                    (reducer.across)(own, &places, count, self.begun, false);
                }
                Shape::Column => {
                    (reducer.along)(own.add(row * value), whole(count), rows, count, false);
                }
                Shape::Each => {
                    for row in 0..rows {
                        let values = values.add(row * count * element);
                        join(self.fold, self.to(place + row * down), values, count);
                    }
                }
            }
        }
        self.begun = true;
    }

    /// Adds the values of a group to the part's sums from `sum` on.
    ///
    /// # Safety
    ///
    /// As [`Self::take`], for all rows of the group.
    unsafe fn settle(&mut self, sum: usize, rows: usize, count: usize) {
        let values: *const u8 = self.values.as_ptr().cast();
        let len = match self.shape {
            Shape::One => 1,
            Shape::Row => count,
            Shape::Column => rows,
            Shape::Each => return,
        };
        // SAFETY: by the conditions of this function.
        unsafe { join(self.fold, self.to(sum), values, len) };
    }
}

/// Writes values to where a result's elements are.
///
/// # Safety
///
/// There are `rows` times `count` values, and places for them along the steps.
unsafe fn scatter(
    size: usize,
    to: *mut u8,
    (down, step): (isize, isize),
    values: *const u8,
    (rows, count): (usize, usize),
) {
    for row in 0..rows {
        let from = values.wrapping_add(row * count * size);
        let to = to.wrapping_offset(row.cast_signed() * down);
        // SAFETY: by the condition of this function.
        unsafe {
            if step == size.cast_signed() {
                std::ptr::copy_nonoverlapping(from, to, count * size);
                continue;
            }
            for at in 0..count {
                let to = to.offset(at.cast_signed() * step);
                std::ptr::copy_nonoverlapping(from.add(at * size), to, size);
            }
        }
    }
}
