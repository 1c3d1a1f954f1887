//! Blocking: axes cut into rectangles of some elements.

#![forbid(unsafe_code)]

use std::ops::Range;

use crate::layout::small_vec::Inline;

/// A cut of neighbouring axes: every block has one index of the axes before `axis`, some steps of `axis`, and the axes
/// after it whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cut {
    axes: Range<usize>,
    /// The axis that is cut; none where one block has all.
    axis: Option<usize>,
    /// How many steps of `axis` a block takes, and the elements of one step.
    steps: usize,
    step_elements: usize,
    pub(crate) blocks: usize,
}

impl Cut {
    /// Blocks of at most `most` elements, unless one step of the last axis has more: of one, then.
    pub(crate) fn new(sizes: &[usize], axes: Range<usize>, most: usize) -> Self {
        let (mut first, mut inside) = (axes.end, 1);
        while first > axes.start && inside * sizes[first - 1] <= most {
            first -= 1;
            inside *= sizes[first];
        }
        let Some(axis) = first.checked_sub(1).filter(|_| first > axes.start) else {
            return Self { axes, axis: None, steps: 1, step_elements: inside, blocks: 1 };
        };
        let size = sizes[axis];
        let steps = (most / inside).clamp(1, size);
        let blocks = sizes[axes.start..axis].iter().product::<usize>() * size.div_ceil(steps);
        Self { axes, axis: Some(axis), steps, step_elements: inside, blocks }
    }

    /// The most elements of a block.
    pub(crate) fn most(&self) -> usize {
        self.steps * self.step_elements
    }

    /// The number of a block's first element among those of all axes, row-major.
    pub(crate) fn first(&self, sizes: &[usize], block: usize) -> usize {
        let Some(axis) = self.axis else { return 0 };
        let across = sizes[axis].div_ceil(self.steps);
        (block / across * sizes[axis] + block % across * self.steps) * self.step_elements
    }

    /// Narrows a rectangle to a block.
    pub(crate) fn place(&self, sizes: &[usize], block: usize, rectangle: &mut Rectangle) {
        let Some(axis) = self.axis else {
            return self.axes.clone().for_each(|axis| rectangle.set(axis, 0, sizes[axis]));
        };
        let across = sizes[axis].div_ceil(self.steps);
        let first = block % across * self.steps;
        rectangle.set_index(sizes, self.axes.start..axis, block / across);
        rectangle.set(axis, first, self.steps.min(sizes[axis] - first));
        (axis + 1..self.axes.end).for_each(|axis| rectangle.set(axis, 0, sizes[axis]));
    }
}

/// Some neighbouring steps of every axis.
#[derive(Clone, Debug)]
pub(crate) struct Rectangle {
    pub(crate) start: Inline<usize>,
    pub(crate) len: Inline<usize>,
}

impl Rectangle {
    pub(crate) fn whole(sizes: &[usize]) -> Self {
        Self { start: Inline::of_len(sizes.len()), len: Inline::from_slice(sizes) }
    }

    fn set(&mut self, axis: usize, start: usize, len: usize) {
        (self.start[axis], self.len[axis]) = (start, len);
    }

    /// One step of each of some axes, which are row-major at that index.
    pub(crate) fn set_index(&mut self, sizes: &[usize], axes: Range<usize>, mut index: usize) {
        for axis in axes.rev() {
            self.set(axis, index % sizes[axis], 1);
            index /= sizes[axis];
        }
    }

    /// The elements of some axes.
    pub(crate) fn count(&self, axes: Range<usize>) -> usize {
        self.len[axes].iter().product()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_a_partition_in_row_major_order() {
        for sizes in [&[][..], &[7], &[3, 4, 5], &[2, 1, 6], &[5, 2, 3, 2]] {
            for (first, end) in [(0, sizes.len()), (sizes.len().min(1), sizes.len())] {
                for most in [1, 2, 3, 5, 7, 12, 1000] {
                    let cut = Cut::new(sizes, first..end, most);
                    let mut next = 0;
                    for block in 0..cut.blocks {
                        let mut own = Rectangle::whole(sizes);
                        cut.place(sizes, block, &mut own);
                        let count = own.count(first..end);
                        assert_eq!(cut.first(sizes, block), next, "{sizes:?} {cut:?}");
                        assert!((1..=cut.most().max(1)).contains(&count), "{sizes:?} {cut:?}");
                        assert!(count <= most || cut.most() == 1 || most == 0, "{sizes:?} {cut:?}");
                        // The rectangle begins where the count of elements says.
                        let at =
                            (first..end).fold(0, |at, axis| at * sizes[axis] + own.start[axis]);
                        assert_eq!(at, next, "{sizes:?} {cut:?}");
                        next += count;
                    }
                    assert_eq!(next, sizes[first..end].iter().product::<usize>(), "{sizes:?}");
                }
            }
        }
    }
}
