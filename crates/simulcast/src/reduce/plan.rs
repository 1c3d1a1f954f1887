//! The plan of a reduction: which loops run over which axes, in which blocks, on how many parts, and in what order values
//! are joined. Decided once, from the shape, the strides and the sizes of elements: so the result has the same bits on any
//! number of threads.
//!
//! | order | when | what happens |
//! |---|---|---|
//! | [`Order::WholeRows`] | no kept axis follows the last reduced one, and a row fits in a block | each row becomes one value, some rows at a time |
//! | [`Order::Blocks`] | columns follow, or rows are longer | blocks of rows are joined one after the other into a *run*; runs are joined pairwise; where there are few results, each is made in *parts* |
//! | [`Order::SharedRow`] | every row of one operand meets every row of another | one row is joined with a transposed tile of the others, one column a lane |
//!
//! The axes are *outer* (kept), *inner* (reduced) and *columns* (kept, after the last reduced axis). Neighbours among each
//! kind are merged where every operand strides through them alike.

#![forbid(unsafe_code)]

use std::ops::Range;

use simulcast_kernels::tuning::REDUCE_PREFETCH_MIN_BYTES;
use simulcast_kernels::tuning::ROWS_PER_PASS;
use simulcast_kernels::tuning::{
    REDUCE_BLOCK_ELEMENTS, REDUCE_COLUMN_BYTES, REDUCE_LEAF_ELEMENTS, REDUCE_NARROW_BLOCK_BYTES,
    REDUCE_NARROW_ELEMENTS, REDUCE_PARTS, REDUCE_ROWS_BYTES, REDUCE_RUN_ROWS,
    REDUCE_SHARED_ROWS_MIN,
};

use super::blocking::{Cut, Rectangle};
use crate::layout::small_vec::Inline;

/// An axis before it has a place in the order: whether the result keeps it, and the stride of each operand in elements.
#[derive(Clone, Debug)]
pub(crate) struct Axis {
    pub(crate) size: usize,
    pub(crate) kept: bool,
    pub(crate) strides: Inline<isize>,
}

/// What the plan has to know of elements and loops.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Elements {
    /// The size of an element as it is read, and of the value that elements are joined in.
    pub(crate) element_bytes: usize,
    pub(crate) value_bytes: usize,
    /// The operand whose elements are reduced as they are, where nothing is computed.
    pub(crate) bare: Option<usize>,
    /// The operands of an operation that there is a loop for in which one row is shared.
    pub(crate) pair: Option<[usize; 2]>,
}

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct ReductionPlan {
    pub(crate) axes: Axes,
    pub(crate) order: Order,
    /// Whether operands come from memory rather than from a cache, so that they are prefetched.
    pub(crate) far: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    WholeRows { rows: Cut },
    Blocks(Blocks),
    SharedRow { one: usize, many: usize },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Blocks {
    /// The columns, and the reduced axes, of a block.
    pub(crate) columns: Cut,
    pub(crate) depth: Cut,
    /// Rows that are taken as one, side by side, where they are narrow: a power of two.
    pub(crate) side_by_side: usize,
    /// The blocks of a run, and the runs of a result.
    pub(crate) run: usize,
    pub(crate) runs: usize,
    /// The parts that the runs of a result are shared out to.
    pub(crate) parts: usize,
    /// The operand whose rows are read where they lie.
    pub(crate) in_place: Option<usize>,
}

impl ReductionPlan {
    /// The plan over some axes, of which none has size 0. Where those are a part of `whole`, cut on one axis that is
    /// kept, blocks are those of the whole, so that the part has the same bits.
    pub(crate) fn new(axes: &[Axis], whole: Option<&[Axis]>, facts: Elements) -> Self {
        let (all, axes) = (whole.unwrap_or(axes), Axes::new(axes, whole.unwrap_or(axes)));
        let bytes = axes.elements().saturating_mul(facts.element_bytes);
        let far = facts.bare.is_some() && bytes >= REDUCE_PREFETCH_MIN_BYTES;
        let order = axes.shared_row(facts).unwrap_or_else(|| {
            if axes.columns().is_empty() && axes.reduced() <= REDUCE_BLOCK_ELEMENTS {
                let bytes = facts.element_bytes.max(facts.value_bytes).max(1);
                let most = REDUCE_ROWS_BYTES / bytes / axes.reduced();
                return Order::WholeRows { rows: Cut::new(&axes.sizes, axes.outer(), most.max(1)) };
            }
            let own = axes.blocks(facts);
            Order::Blocks(match whole {
                Some(_) => Blocks { columns: own.columns, ..Axes::new(all, all).blocks(facts) },
                None => own,
            })
        });
        Self { axes, order, far }
    }
}

/// The axes in their order.
#[derive(Clone, Debug)]
pub(crate) struct Axes {
    pub(crate) sizes: Inline<usize>,
    strides: Vec<Inline<isize>>,
    /// Which of them are reduced; those before are outer ones, those after are columns.
    pub(crate) inner: Range<usize>,
}

impl Axes {
    /// The axes that have more than one step in the whole.
    fn new(own: &[Axis], whole: &[Axis]) -> Self {
        let mut axes = Self { sizes: Inline::new(), strides: Vec::new(), inner: 0..0 };
        let pairs = || own.iter().zip(whole).filter(|(_, whole)| whole.size != 1);
        let real = || pairs().map(|(axis, _)| axis).collect::<Vec<_>>().into_iter();
        let last = real().rposition(|axis| !axis.kept).unwrap_or(0);
        axes.extend(real().take(last).filter(|axis| axis.kept));
        let start = axes.sizes.len();
        axes.extend(real().filter(|axis| !axis.kept));
        axes.inner = start..axes.sizes.len();
        axes.extend(real().skip(last).filter(|axis| axis.kept));
        axes
    }

    /// Adds axes of one kind, merged where every operand strides through two of them alike.
    fn extend<'a>(&mut self, all: impl Iterator<Item = &'a Axis>) {
        let first = self.sizes.len();
        for axis in all {
            let size = axis.size.cast_signed();
            let continues = |outer: &[isize]| {
                outer
                    .iter()
                    .zip(&*axis.strides)
                    .all(|(&outer, own)| outer == own.wrapping_mul(size))
            };
            if self.sizes.len() > first
                && let (Some(size), Some(outer)) = (self.sizes.last_mut(), self.strides.last_mut())
                && continues(outer)
            {
                *size *= axis.size;
                *outer = axis.strides.clone();
            } else {
                self.sizes.push(axis.size);
                self.strides.push(axis.strides.clone());
            }
        }
    }

    pub(crate) fn outer(&self) -> Range<usize> {
        0..self.inner.start
    }

    pub(crate) fn columns(&self) -> Range<usize> {
        self.inner.end..self.sizes.len()
    }

    pub(crate) fn product(&self, axes: Range<usize>) -> usize {
        self.sizes[axes].iter().product()
    }

    /// The elements of one result, and of all.
    pub(crate) fn reduced(&self) -> usize {
        self.product(self.inner.clone())
    }

    pub(crate) fn elements(&self) -> usize {
        self.product(0..self.sizes.len())
    }

    pub(crate) fn stride(&self, axis: usize, operand: usize) -> isize {
        self.strides[axis].get(operand).copied().unwrap_or(0)
    }

    /// How far an operand is at the first element of a rectangle, in elements.
    pub(crate) fn offset(&self, rectangle: &Rectangle, operand: usize) -> isize {
        let axes = rectangle.start.iter().enumerate();
        axes.map(|(axis, &start)| start.cast_signed() * self.stride(axis, operand)).sum()
    }

    /// How far an operand moves to an index of some axes of a rectangle, taken as one.
    pub(crate) fn moved(
        &self,
        rectangle: &Rectangle,
        axes: Range<usize>,
        operand: usize,
        mut index: usize,
    ) -> isize {
        let mut offset = 0;
        for axis in axes.rev() {
            let size = rectangle.len[axis];
            offset += (index % size).cast_signed() * self.stride(axis, operand);
            index /= size;
        }
        offset
    }

    fn blocks(&self, facts: Elements) -> Blocks {
        let value = facts.value_bytes.max(1);
        let columns = Cut::new(&self.sizes, self.columns(), REDUCE_COLUMN_BYTES / value);
        let widest = columns.most();
        let alone = self.columns().is_empty();
        let side_by_side = match (REDUCE_NARROW_ELEMENTS / widest).checked_ilog2() {
            Some(log) if !alone => 1 << log,
            _ => 1,
        };
        let most = match side_by_side {
            1 => REDUCE_BLOCK_ELEMENTS,
            _ => REDUCE_NARROW_BLOCK_BYTES / value,
        };
        let depth = Cut::new(&self.sizes, self.inner.clone(), (most / widest).max(ROWS_PER_PASS));
        let run = match alone || side_by_side > 1 {
            true => 1,
            false => (REDUCE_RUN_ROWS / depth.most()).clamp(1, depth.blocks),
        };
        let runs = depth.blocks.div_ceil(run);
        let groups = self.product(self.outer()) * columns.blocks;
        let parts =
            if groups >= REDUCE_PARTS { 1 } else { REDUCE_PARTS.div_ceil(groups).min(runs) };
        let first = self.inner.end;
        let contiguous =
            |&operand: &usize| self.columns().len() == 1 && self.stride(first, operand) == 1;
        let in_place = facts.bare.filter(contiguous);
        Blocks { columns, depth, side_by_side, run, runs, parts, in_place }
    }

    /// Two operands of which one moves along the last but one of the kept axes and the other along the last one, and
    /// both along the reduced one.
    fn shared_row(&self, facts: Elements) -> Option<Order> {
        let [a, b] = facts.pair?;
        let across = self.outer().next_back()?;
        let down = across.checked_sub(1)?;
        if !self.columns().is_empty() || self.inner.len() != 1 {
            return None;
        }
        let (one, many) = match (self.stride(across, a), self.stride(across, b)) {
            (0, _) => (a, b),
            (_, 0) => (b, a),
            _ => return None,
        };
        let few = self.sizes[down].min(self.sizes[across]) < REDUCE_SHARED_ROWS_MIN;
        let met = self.stride(down, many) == 0 && !few && self.reduced() <= REDUCE_LEAF_ELEMENTS;
        met.then_some(Order::SharedRow { one, many })
    }
}
