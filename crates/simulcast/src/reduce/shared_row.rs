//! Shared rows: every row of one operand meets every row of another, as in distances between points.
//!
//! ```text
//! one      the operand that stays where it is along the last kept axis: a row of it at a time
//! many     the other one, which is the same for all rows of the first: transposed, a tile at a time
//! tile     columns of many that a first-level cache holds, for some hundred rows of one
//! ```
//!
//! Each value is joined in the order of a row alone, so that it has the same bits.

use std::ops::Range;

use simulcast_kernels::cpu::aligned_buf::cache_lines;
use simulcast_kernels::cpu::level::Level;
use simulcast_kernels::pack::pack_rows;
use simulcast_kernels::reduce::SharedRow;
use simulcast_kernels::tuning::{REDUCE_LANE_BYTES, REDUCE_SHARED_ROWS, REDUCE_SHARED_TILE_BYTES};
use simulcast_threads::checkpoint;

use super::run::{Operand, Reduction};

/// The loop of an operation, and its level.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Loop {
    pub(crate) join: SharedRow,
    pub(crate) level: Level,
}

/// A reduction whose plan has shared rows.
pub(super) struct Task<'t> {
    reduction: &'t Reduction<'t>,
    run: Loop,
    one: Place<'t>,
    many: Place<'t>,
    /// Rows of one, rows of many, and the elements of both; the axes around.
    down: usize,
    across: usize,
    len: usize,
    around: usize,
    /// The columns of a tile.
    wide: usize,
}

/// An operand's steps along the axes, in elements.
struct Place<'p> {
    reduction: &'p Reduction<'p>,
    operand: Operand,
    number: usize,
}

impl Place<'_> {
    fn stride(&self, axis: usize) -> isize {
        self.reduction.plan.axes.stride(axis, self.number)
    }

    /// Where the operand is at an index of the axes around, and some steps of another axis.
    fn at(&self, mut index: usize, axis: usize, steps: usize) -> *const u8 {
        let axes = &self.reduction.plan.axes;
        let mut offset = steps.cast_signed() * self.stride(axis);
        for axis in (0..axes.inner.start - 2).rev() {
            offset += (index % axes.sizes[axis]).cast_signed() * self.stride(axis);
            index /= axes.sizes[axis];
        }
        self.operand
            .first
            .get()
            .cast_const()
            .wrapping_offset(offset * self.operand.bytes.cast_signed())
    }
}

impl<'t> Task<'t> {
    /// The operands are numbered as in the plan, which has at least two outer axes and one that is reduced.
    pub(super) fn new(
        reduction: &'t Reduction<'t>,
        run: Loop,
        operands: [Operand; 2],
        one: usize,
        many: usize,
    ) -> Self {
        let axes = &reduction.plan.axes;
        let place = |number: usize| {
            let [a, b] = operands;
            let operand = if a.number == Some(number) { a } else { b };
            Place { reduction, operand, number }
        };
        let end = axes.inner.start;
        let (down, across, len) = (axes.sizes[end - 2], axes.sizes[end - 1], axes.reduced());
        let around = axes.product(0..end - 2);
        let size = reduction.reducer.value_bytes;
        let vector = REDUCE_LANE_BYTES / size;
        let most = (REDUCE_SHARED_TILE_BYTES / size / len / vector).max(1);
        let wide = most.min(across.div_ceil(vector)) * vector;
        let (one, many) = (place(one), place(many));
        Self { reduction, run, one, many, down, across, len, around, wide }
    }

    fn tiles(&self) -> usize {
        self.across.div_ceil(self.wide)
    }

    fn parts(&self) -> usize {
        self.down.div_ceil(REDUCE_SHARED_ROWS)
    }

    pub(super) fn count(&self) -> usize {
        self.around * self.tiles() * self.parts()
    }

    /// Some tasks: a tile and some hundred rows each.
    pub(super) fn run(&self, tasks: Range<usize>) {
        let Self { down, across, len, wide, .. } = *self;
        let (tiles, parts) = (self.tiles(), self.parts());
        let size = self.reduction.reducer.value_bytes;
        let (row_axis, along) =
            (self.reduction.plan.axes.inner.start - 2, self.reduction.plan.axes.inner.start);
        let column_axis = row_axis + 1;
        let bytes = wide * len * size;
        let mut buffer = cache_lines(bytes);
        let tile = buffer.as_mut_ptr().cast::<u8>();
        // SAFETY: the buffer has `bytes` bytes. Columns beyond the last are computed too, and discarded.
        unsafe { tile.write_bytes(0, bytes) };
        let (mut values, mut held) = (cache_lines(wide * size), None);
        for task in tasks {
            checkpoint();
            let (transposed, part) = (task / parts, task % parts);
            let (unit, column) = (transposed / tiles, transposed % tiles * wide);
            let count = wide.min(across - column);
            if held != Some(transposed) {
                let first = self.many.at(unit, column_axis, column);
                let loops =
                    [(len, self.many.stride(along)), (count, self.many.stride(column_axis))];
                // SAFETY: the operand reaches every element along its own strides, and the tile has room for `len` rows
                // of `wide`.
                unsafe {
                    if self.run.level == Level::BASELINE {
                        pack_rows::<false>(size, tile, wide, first, &loops);
                    } else {
                        pack_rows::<true>(size, tile, wide, first, &loops);
                    }
                }
                held = Some(transposed);
            }
            for row in part * REDUCE_SHARED_ROWS..down.min((part + 1) * REDUCE_SHARED_ROWS) {
                let one = self.one.at(unit, row_axis, row);
                let one = (one, self.one.stride(along) * size.cast_signed());
                let first = (unit * down + row) * across + column;
                // SAFETY: every row of a tile has results of its own, of which there are `count`; the row and the tile
                // have `len` elements each.
                unsafe {
                    self.reduction.through(first, count, &mut values, |to| {
                        (self.run.join)(to, one, (tile.cast_const(), wide), count, len);
                    });
                }
            }
        }
    }
}
