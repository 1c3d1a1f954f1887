//! Cuts: the axes of a fold in the order in which they are folded, in rectangles of some elements.

use std::ops::Range;

use crate::layout::broadcast::Laid;

/// The bytes of the columns of a block.
const COLUMNS: usize = 16384;

/// An axis: its size, and the stride of each operand.
pub(super) type Axis<const N: usize> = (usize, [isize; N]);

/// Axes in the order in which they are folded.
pub(super) struct Cuts<const N: usize> {
    pub(super) axes: Vec<Axis<N>>,
    /// Where the reduced axes begin, and where they end.
    pub(super) inner: Range<usize>,
}

/// A rectangle of steps: the axes before `axis` have one index each, `axis` some steps, and those
/// after it, up to an end, are whole.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cut {
    pub(super) axis: usize,
    /// How many steps of `axis` a block takes, and how many blocks there are in all.
    pub(super) steps: usize,
    pub(super) blocks: usize,
    /// The elements of one step.
    pub(super) whole: usize,
}

impl Cut {
    /// The most elements of a block.
    pub(super) fn most(self) -> usize {
        self.steps * self.whole
    }
}

impl<const N: usize> Cuts<N> {
    /// Of all steps, or of some of one axis that is kept.
    pub(super) fn new(laid: &Laid<N>, kept: &[bool], part: Option<(usize, usize)>) -> Self {
        let axis = |at: usize| {
            let strides = std::array::from_fn(|n| laid.strides[n].get(at).copied().unwrap_or(0));
            let size = part.filter(|part| part.0 == at).map_or(laid.shape[at], |part| part.1);
            (size, strides)
        };
        // Axes of size 1 take no part.
        let real = |&at: &usize| laid.shape[at] != 1;
        let last = (0..kept.len()).rev().find(|&at| !kept[at] && laid.shape[at] != 1).unwrap_or(0);
        let mut axes: Vec<_> = (0..last).filter(|&at| kept[at]).filter(real).map(axis).collect();
        let start = axes.len();
        axes.extend((0..kept.len()).filter(|&at| !kept[at]).filter(real).map(axis));
        let end = axes.len();
        axes.extend((last..kept.len()).filter(|&at| kept[at]).filter(real).map(axis));
        Self { axes, inner: start..end }
    }

    pub(super) fn product(&self, axes: Range<usize>) -> usize {
        self.axes[axes].iter().map(|(size, _)| size).product()
    }

    pub(super) fn reduced(&self) -> usize {
        self.product(self.inner.clone())
    }

    pub(super) fn columns(&self) -> Range<usize> {
        self.inner.end..self.axes.len()
    }

    pub(super) fn results(&self) -> usize {
        self.product(0..self.inner.start) * self.product(self.columns())
    }

    /// The columns that are folded at once, of elements of so many bytes.
    pub(super) fn wide(&self, size: usize) -> Cut {
        self.cut(self.columns(), COLUMNS / size)
    }

    /// Cuts axes into rectangles of at most `most` elements, where one step has as many at most.
    pub(super) fn cut(&self, axes: Range<usize>, most: usize) -> Cut {
        let (mut axis, mut whole) = (axes.end, 1);
        while axis > axes.start && whole * self.axes[axis - 1].0 <= most {
            axis -= 1;
            whole *= self.axes[axis].0;
        }
        if axis == axes.start {
            return Cut { axis, steps: 1, blocks: 1, whole };
        }
        let axis = axis - 1;
        let size = self.axes[axis].0;
        let steps = (most / whole).clamp(1, size);
        let blocks = self.product(axes.start..axis) * size.div_ceil(steps);
        Cut { axis, steps, blocks, whole }
    }

    /// Where a block begins, for each operand, and how many steps it takes.
    pub(super) fn block(&self, axes: Range<usize>, cut: Cut, block: usize) -> ([isize; N], usize) {
        if self.is_whole(&axes, cut) {
            return ([0; N], 1);
        }
        let (size, strides) = self.axes[cut.axis];
        let across = size.div_ceil(cut.steps);
        let first = block % across * cut.steps;
        let mut at = moved(&self.axes[axes.start..cut.axis], block / across);
        at.iter_mut().zip(strides).for_each(|(at, stride)| *at += stride * first.cast_signed());
        (at, cut.steps.min(size - first))
    }

    /// Which element of its axes, taken as one, a block begins with.
    pub(super) fn first(&self, axes: &Range<usize>, cut: Cut, block: usize) -> usize {
        if self.is_whole(axes, cut) {
            return 0;
        }
        let size = self.axes[cut.axis].0;
        let across = size.div_ceil(cut.steps);
        (block / across * size + block % across * cut.steps) * cut.whole
    }

    /// Whether a cut leaves its axes whole.
    pub(super) fn is_whole(&self, axes: &Range<usize>, cut: Cut) -> bool {
        cut.blocks == 1 && cut.whole == self.product(axes.clone())
    }

    /// The axes of a block: the steps of its own axis, and what comes after.
    pub(super) fn within(&self, axes: &Range<usize>, cut: Cut, steps: usize) -> Vec<Axis<N>> {
        if self.is_whole(axes, cut) {
            return self.axes[axes.clone()].to_vec();
        }
        let mut own = self.axes[cut.axis..axes.end].to_vec();
        if let Some(first) = own.first_mut() {
            first.0 = steps;
        }
        own
    }
}

/// How far each operand has moved at an index of some axes, taken as one.
pub(super) fn moved<const N: usize>(axes: &[Axis<N>], mut index: usize) -> [isize; N] {
    let mut at = [0; N];
    for &(size, strides) in axes.iter().rev() {
        let own = (index % size).cast_signed();
        index /= size;
        at.iter_mut().zip(strides).for_each(|(at, stride)| *at += stride * own);
    }
    at
}

/// Neighbouring axes as one where every operand strides through them alike.
pub(super) fn merged<const N: usize>(axes: &[Axis<N>]) -> Vec<Axis<N>> {
    let mut all: Vec<Axis<N>> = Vec::with_capacity(axes.len());
    for &(size, strides) in axes {
        match all.last_mut() {
            Some((outer, own))
                if *outer == 1 || (0..N).all(|n| own[n] == strides[n] * size.cast_signed()) =>
            {
                (*outer, *own) = (*outer * size, strides);
            }
            _ => all.push((size, strides)),
        }
    }
    all
}
