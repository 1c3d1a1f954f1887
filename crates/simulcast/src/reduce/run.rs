//! The engine of reductions: runs a [`ReductionPlan`] over a [`Source`] into [`Results`].
//!
//! The plan fixes blocks and runs. What depends on a block's own shape is decided here, from shapes, strides and types alone,
//! and so the same on any number of threads: whether rows are read where they lie or computed first, and whether a row is
//! added as one or piece by piece (`Reduction::reduce_rows`), which is another order.
//!
//! Invariant of every function here, established where a [`Reduction`] is made: the operands reach every element that their
//! strides name along the plan's axes; the loops are those of the operands' types; there is a place for each result, and
//! no other reduction writes it. Tasks write results of their own.

use std::ops::Range;

use simulcast_kernels::cpu::aligned_buf::{CacheLine, cache_lines};
use simulcast_kernels::cpu::prefetch::pays_in_light_loops;
use simulcast_kernels::reduce::{AlongRow, Reducer, Rows};
use simulcast_kernels::tuning::{REDUCE_IN_PLACE_MIN, REDUCE_PIECE_ELEMENTS};
use simulcast_threads::{SendPtr, checkpoint, for_each_part, share};

use super::accumulate::{Accumulator, PairwiseRows};
use super::blocking::{Cut, Rectangle};
use super::plan::{Axes, Blocks, Order, ReductionPlan};
#[cfg(feature = "program")]
use super::shared_row::{Loop, Task};
use crate::exec::parallelism;

/// Where elements come from.
pub(crate) trait Source: Sync {
    /// Writes the elements of a rectangle of the axes, row-major.
    ///
    /// # Safety
    ///
    /// The invariant of this module, and there is room for the elements.
    unsafe fn fill(&self, axes: &Axes, rectangle: &Rectangle, to: *mut u8);
}

/// Where values go.
pub(crate) trait Results: Sync {
    /// The place of results from a number on, row-major along the kept axes, where they are values as they are.
    fn place(&self, first: usize) -> Option<*mut u8>;

    /// Makes results of values.
    ///
    /// # Safety
    ///
    /// There are `count` values, and `count` results from `first` on.
    unsafe fn put(&self, first: usize, values: *const u8, count: usize);
}

/// An operand that loops read where it lies, on any thread: its number among the plan's strides, or none where it is one
/// element.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Operand {
    pub(crate) first: SendPtr<u8>,
    pub(crate) number: Option<usize>,
    pub(crate) bytes: usize,
}

/// What rows are made of, where a loop reads them as it reduces them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Direct {
    pub(crate) along: AlongRow,
    pub(crate) operands: [Operand; 2],
    /// Whether the loop has the first operand alone.
    pub(crate) bare: bool,
}

/// A reduction about to run.
#[derive(Clone, Copy)]
pub(crate) struct Reduction<'r> {
    pub(crate) plan: &'r ReductionPlan,
    pub(crate) reducer: Reducer,
    pub(crate) direct: Option<Direct>,
    pub(crate) source: &'r dyn Source,
    pub(crate) results: &'r dyn Results,
    #[cfg(feature = "program")]
    pub(crate) shared_row: Option<Loop>,
}

/// Does this number of tasks in parts, each a range of them.
type EachPart<'e> = dyn Fn(usize, &(dyn Fn(Range<usize>) + Sync)) + 'e;

impl Reduction<'_> {
    /// Runs on at most `limit` threads, if that is said.
    ///
    /// # Safety
    ///
    /// The invariant of this module.
    pub(crate) unsafe fn run(&self, limit: Option<usize>) {
        let parallel = parallelism::parts(self.plan.axes.elements(), limit);
        // SAFETY: by the condition of this function.
        unsafe { self.run_in(parallel, limit) };
    }

    /// Runs in `parallel` shares of the tasks.
    ///
    /// # Safety
    ///
    /// The invariant of this module.
    pub(super) unsafe fn run_in(&self, parallel: usize, limit: Option<usize>) {
        let each = |tasks: usize, work: &(dyn Fn(Range<usize>) + Sync)| {
            let shares = parallel.min(tasks);
            let own = |n| work(share(tasks, n, shares)..share(tasks, n + 1, shares));
            for_each_part(shares, limit, &own);
        };
        match &self.plan.order {
            Order::WholeRows { rows } => each(rows.blocks, &|own| self.whole_rows(rows, own)),
            Order::Blocks(blocks) => self.blocks(blocks, &each),
            #[cfg(feature = "program")]
            &Order::SharedRow { one, many } => {
                let (Some(shared_row), Some(direct)) = (self.shared_row, self.direct) else {
                    unreachable!("a shared row is planned only for operands that its loop reads")
                };
                let task = Task::new(self, shared_row, direct.operands, one, many);
                each(task.count(), &|own| task.run(own));
            }
            #[cfg(not(feature = "program"))]
            Order::SharedRow { .. } => unreachable!("only programs have such loops"),
        }
    }

    /// Has `count` values written, and makes results of them. `spare` has room for the values.
    ///
    /// # Safety
    ///
    /// `write` writes `count` values, and there are `count` results from `first` on.
    pub(super) unsafe fn through(
        &self,
        first: usize,
        count: usize,
        spare: &mut Vec<CacheLine>,
        write: impl FnOnce(*mut u8),
    ) {
        if let Some(place) = self.results.place(first) {
            return write(place);
        }
        let values = spare.as_mut_ptr().cast();
        write(values);
        // SAFETY: by the conditions of this function.
        unsafe { self.results.put(first, values, count) };
    }

    /// Blocks of rows that become a value each.
    fn whole_rows(&self, cut: &Cut, blocks: Range<usize>) {
        let axes = &self.plan.axes;
        let mut values = cache_lines(cut.most() * self.reducer.value_bytes);
        let mut scratch = Scratch::new(self, cut.most() * axes.reduced(), cut.most());
        let mut rectangle = Rectangle::whole(&axes.sizes);
        for block in blocks {
            checkpoint();
            cut.place(&axes.sizes, block, &mut rectangle);
            let rows = rectangle.count(axes.outer());
            // SAFETY: the rectangle lies within the axes, and has no more rows than the cut says.
            unsafe {
                self.through(cut.first(&axes.sizes, block), rows, &mut values, |to| {
                    self.reduce_rows(&rectangle, &mut scratch, to);
                });
            }
        }
    }

    /// Reduces the rows of a rectangle that has no columns: where they lie, if there is a loop for that and they are
    /// contiguous, or have long contiguous pieces; computed first otherwise.
    ///
    /// # Safety
    ///
    /// The invariant of this module for the rectangle; scratch has room for it, and `to` for a value a row.
    unsafe fn reduce_rows(&self, rectangle: &Rectangle, scratch: &mut Scratch, to: *mut u8) {
        let axes = &self.plan.axes;
        let (rows, len) = (rectangle.count(axes.outer()), rectangle.count(axes.inner.clone()));
        // The contiguous axis is the last one of which there are steps.
        let inner = axes.inner.clone();
        let along =
            inner.clone().rev().find(|&axis| rectangle.len[axis] > 1).or(inner.clone().next());
        if let Some(direct) = self.direct
            && let Some(along) = along
            && let Some(steps) = self.steps(&direct, along, rectangle.len[along])
        {
            let pieces = rectangle.count(inner.start..along);
            let piece = Pieces { direct: &direct, steps, along, axes: inner.start..along };
            // SAFETY: by the conditions of this function.
            unsafe {
                if pieces == 1 && self.are_many(rectangle) {
                    return self.reduce_pieces(&piece, 0, rectangle, to);
                }
                if pieces > 1 && rectangle.len[along] >= REDUCE_PIECE_ELEMENTS {
                    let Scratch { piece: values, rows: tree, .. } = scratch;
                    for index in 0..pieces {
                        let values = values.at();
                        self.reduce_pieces(&piece, index, rectangle, values);
                        tree.push(values, rows, &self.reducer);
                    }
                    return tree.finish(to, rows, &self.reducer);
                }
            }
        }
        // SAFETY: by the conditions of this function.
        unsafe {
            let buffer = scratch.buffer.at();
            self.source.fill(axes, rectangle, buffer);
            let stride = (len * self.reducer.element_bytes).cast_signed();
            let own = Rows { first: buffer, stride, step: 1 };
            (self.reducer.along)(to, [own; 2], rows, len, false);
        }
    }

    /// Reduces one piece of every row, where it lies.
    ///
    /// # Safety
    ///
    /// As [`Self::reduce_rows`].
    unsafe fn reduce_pieces(
        &self,
        pieces: &Pieces<'_>,
        index: usize,
        rectangle: &Rectangle,
        to: *mut u8,
    ) {
        let axes = &self.plan.axes;
        // The last kept axis of which there are steps is a loop of the rows.
        let rows = axes.outer().rev().find(|&axis| rectangle.len[axis] > 1).unwrap_or(0);
        let rows = if axes.outer().is_empty() { None } else { Some(rows) };
        let count = rows.map_or(1, |axis| rectangle.len[axis]);
        let around = 0..rows.unwrap_or(0);
        for round in 0..rectangle.count(around.clone()) {
            let ins = [0, 1].map(|n| {
                let Operand { first, number, bytes } = pieces.direct.operands[n];
                let first = first.get().cast_const();
                let Some(number) = number else { return Rows { first, stride: 0, step: 0 } };
                let offset = axes.offset(rectangle, number)
                    + axes.moved(rectangle, around.clone(), number, round)
                    + axes.moved(rectangle, pieces.axes.clone(), number, index);
                let bytes = bytes.cast_signed();
                let stride = rows.map_or(0, |axis| axes.stride(axis, number)) * bytes;
                Rows { first: first.wrapping_offset(offset * bytes), stride, step: pieces.steps[n] }
            });
            let (len, far) = (rectangle.len[pieces.along], self.plan.far);
            // SAFETY: by the conditions of this function.
            unsafe {
                let to = to.add(round * count * self.reducer.value_bytes);
                (pieces.direct.along)(to, ins, count, len, far && pays_in_light_loops());
            }
        }
    }

    /// The steps of the operands along an axis, where a loop can take them.
    fn steps(&self, direct: &Direct, along: usize, len: usize) -> Option<[usize; 2]> {
        // Short rows have no vectors, which an operation by itself has.
        if len < REDUCE_IN_PLACE_MIN && !direct.bare {
            return None;
        }
        let step = |operand: &Operand| match operand
            .number
            .map(|number| self.plan.axes.stride(along, number))
        {
            Some(1) => Some(1),
            Some(0) | None if !direct.bare => Some(0),
            Some(_) if len == 1 && direct.bare => Some(1),
            _ => None,
        };
        Some([step(&direct.operands[0])?, step(&direct.operands[1])?])
    }

    /// Whether the innermost loop over rows is long enough to read them in place.
    fn are_many(&self, rectangle: &Rectangle) -> bool {
        let mut loops =
            self.plan.axes.outer().rev().map(|axis| rectangle.len[axis]).filter(|&len| len > 1);
        let last = loops.next().unwrap_or(1);
        last >= REDUCE_IN_PLACE_MIN || loops.next().is_none()
    }

    /// Groups of neighbouring results, each made of many blocks.
    fn blocks(&self, plan: &Blocks, each: &EachPart<'_>) {
        let (axes, reducer) = (&self.plan.axes, &self.reducer);
        let widest = plan.columns.most();
        let groups = axes.product(axes.outer()) * plan.columns.blocks;
        let row = widest * reducer.value_bytes;
        let mut partial = Vec::new();
        if plan.parts > 1 {
            partial = cache_lines(groups * plan.parts * row);
        }
        let shared = SendPtr::new(partial.as_mut_ptr().cast::<u8>());
        let place = |group: usize, rectangle: &mut Rectangle| {
            let (unit, block) = (group / plan.columns.blocks, group % plan.columns.blocks);
            rectangle.set_index(&axes.sizes, axes.outer(), unit);
            plan.columns.place(&axes.sizes, block, rectangle);
            let first =
                unit * axes.product(axes.columns()) + plan.columns.first(&axes.sizes, block);
            (first, rectangle.count(axes.columns()))
        };
        each(groups * plan.parts, &|tasks| {
            let mut rectangle = Rectangle::whole(&axes.sizes);
            let mut accumulator =
                Accumulator::new(reducer, plan.side_by_side, widest, self.plan.far);
            let mut scratch = Scratch::new(self, plan.depth.most() * widest, 1);
            let (mut tree, mut values) = (PairwiseRows::new(row), cache_lines(row));
            for task in tasks {
                let (group, part) = (task / plan.parts, task % plan.parts);
                let (first, count) = place(group, &mut rectangle);
                let runs =
                    share(plan.runs, part, plan.parts)..share(plan.runs, part + 1, plan.parts);
                // SAFETY: the rectangle lies within the axes, and scratch has room for a block; the task has a row of
                // its own in `partial`, or results of its own.
                unsafe {
                    let mut one_run = |run: usize| {
                        for block in run * plan.run..plan.depth.blocks.min((run + 1) * plan.run) {
                            checkpoint();
                            plan.depth.place(&axes.sizes, block, &mut rectangle);
                            if axes.columns().is_empty() {
                                self.reduce_rows(&rectangle, &mut scratch, accumulator.to());
                            } else {
                                self.reduce_block(plan, &rectangle, &mut scratch, &mut accumulator);
                            }
                        }
                        accumulator.take(count)
                    };
                    let mut write = |to: *mut u8| {
                        if runs.len() == 1 {
                            let values = one_run(runs.start);
                            std::ptr::copy_nonoverlapping(values, to, count * reducer.value_bytes);
                            return;
                        }
                        for run in runs.clone() {
                            tree.push(one_run(run), count, reducer);
                        }
                        tree.finish(to, count, reducer);
                    };
                    match plan.parts {
                        1 => self.through(first, count, &mut values, write),
                        _ => write(shared.get().add(task * row)),
                    }
                }
            }
        });
        if plan.parts > 1 {
            let (mut tree, mut values) = (PairwiseRows::new(row), cache_lines(row));
            let mut rectangle = Rectangle::whole(&axes.sizes);
            for group in 0..groups {
                let (first, count) = place(group, &mut rectangle);
                // SAFETY: every part left `count` values in its row.
                unsafe {
                    for part in 0..plan.parts {
                        let values = shared.get().add((group * plan.parts + part) * row);
                        tree.push(values, count, reducer);
                    }
                    self.through(first, count, &mut values, |to| tree.finish(to, count, reducer));
                }
            }
        }
    }

    /// Joins the rows of a block with those before it in the run: where they lie, or computed first.
    ///
    /// # Safety
    ///
    /// The invariant of this module for the rectangle; scratch has room for it.
    unsafe fn reduce_block(
        &self,
        plan: &Blocks,
        rectangle: &Rectangle,
        scratch: &mut Scratch,
        accumulator: &mut Accumulator<'_>,
    ) {
        let axes = &self.plan.axes;
        let (inner, columns) = (axes.inner.clone(), axes.columns());
        let (rows, count) = (rectangle.count(inner.clone()), rectangle.count(columns));
        // SAFETY: by the conditions of this function; the buffer is not written again before its rows are settled.
        unsafe {
            if let (Some(operand), Some(direct)) = (plan.in_place, self.direct) {
                let Operand { first, bytes, .. } = direct.operands[0];
                let (first, bytes) = (first.get().cast_const(), bytes.cast_signed());
                let first = first.wrapping_offset(axes.offset(rectangle, operand) * bytes);
                let place = |row| {
                    let at = axes.moved(rectangle, inner.clone(), operand, row);
                    first.wrapping_offset(at * bytes)
                };
                // The rows follow one another where those of each axis do.
                let mut next = count.cast_signed();
                let follow = inner.clone().rev().all(|axis| {
                    let len = rectangle.len[axis];
                    let follows = len == 1 || axes.stride(axis, operand) == next;
                    next *= len.cast_signed();
                    follows
                });
                if follow {
                    return accumulator.add_block(first, rows, count);
                }
                if accumulator.side_by_side(rows) == 1 {
                    return accumulator.add((0..rows).map(place), count);
                }
            }
            let buffer = scratch.buffer.at();
            self.source.fill(axes, rectangle, buffer);
            accumulator.add_block(buffer, rows, count);
            accumulator.settle(count);
        }
    }
}

/// Pieces of rows that loops read where they lie.
struct Pieces<'p> {
    direct: &'p Direct,
    steps: [usize; 2],
    /// The axis of a piece, and the reduced axes around it.
    along: usize,
    axes: Range<usize>,
}

/// What a thread works with: memory that is there from the first use on.
struct Scratch {
    /// A block of elements.
    buffer: Lazy,
    /// A value of a piece for each row, and those of the pieces before.
    piece: Lazy,
    rows: PairwiseRows,
}

impl Scratch {
    fn new(reduction: &Reduction<'_>, elements: usize, rows: usize) -> Self {
        let Reducer { element_bytes, value_bytes, .. } = reduction.reducer;
        Self {
            buffer: Lazy { room: Vec::new(), bytes: elements * element_bytes },
            piece: Lazy { room: Vec::new(), bytes: rows * value_bytes },
            rows: PairwiseRows::new(rows * value_bytes),
        }
    }
}

/// A buffer that is allocated at its first use.
struct Lazy {
    room: Vec<CacheLine>,
    bytes: usize,
}

impl Lazy {
    fn at(&mut self) -> *mut u8 {
        if self.room.capacity() == 0 {
            self.room = cache_lines(self.bytes);
        }
        self.room.as_mut_ptr().cast()
    }
}
