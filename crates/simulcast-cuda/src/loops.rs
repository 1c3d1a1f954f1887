//! The fewest loops that visit every element of some arrays once, in an order that suits memory.
//!
//! ```text
//! drop axes of size 1
//! sort axes by the stride of one array, the largest outermost, and run those backwards along which it is negative
//! merge an axis into the one inside it where every array moves through both alike
//! ```
//!
//! Steps are in elements. A kernel numbers elements with 31 bits and has few loops, so loops of more elements, or of
//! more axes, are [cut](Loops::cut) into parts, each a launch of its own.

/// Loops from the outermost to the innermost, and how each array moves along them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Loops {
    pub(crate) sizes: Vec<usize>,
    /// For each array, its step along each loop.
    pub(crate) steps: Vec<Vec<isize>>,
    /// For each array, the place of the first element, in elements from the array's own.
    pub(crate) starts: Vec<isize>,
}

impl Loops {
    /// The loops over a shape, sorted by the strides of the array `by`; those along which it repeats are outermost.
    pub(crate) fn new(shape: &[usize], strides: &[&[isize]], by: Option<usize>) -> Self {
        let mut starts = vec![0; strides.len()];
        let mut axes: Vec<(usize, Vec<isize>)> = Vec::new();
        for (axis, &size) in shape.iter().enumerate().filter(|axis| *axis.1 != 1) {
            let mut steps: Vec<isize> = strides.iter().map(|own| own[axis]).collect();
            if by.is_some_and(|by| steps[by] < 0) {
                for (start, step) in starts.iter_mut().zip(&mut steps) {
                    *start += *step * (size.cast_signed() - 1);
                    *step = -*step;
                }
            }
            axes.push((size, steps));
        }
        if let Some(by) = by {
            axes.sort_by_key(|(_, steps)| match steps[by] {
                0 => isize::MIN,
                step => -step,
            });
        }
        let mut merged: Vec<(usize, Vec<isize>)> = Vec::new();
        for (size, steps) in axes {
            if let Some((outer, own)) = merged.last_mut()
                && own
                    .iter()
                    .zip(&steps)
                    .all(|(own, step)| *own == step.wrapping_mul(size.cast_signed()))
            {
                *outer *= size;
                *own = steps;
            } else {
                merged.push((size, steps));
            }
        }
        let sizes = merged.iter().map(|own| own.0).collect();
        let along = |array: usize| merged.iter().map(|own| own.1[array]).collect();
        Self { sizes, steps: (0..strides.len()).map(along).collect(), starts }
    }

    /// How many elements they visit.
    pub(crate) fn len(&self) -> usize {
        self.sizes.iter().product()
    }

    /// The number of loops.
    pub(crate) fn rank(&self) -> usize {
        self.sizes.len()
    }

    /// Makes a loop the last but one, or the last.
    pub(crate) fn move_loop(&mut self, from: usize, to: usize) {
        let size = self.sizes.remove(from);
        self.sizes.insert(to, size);
        for steps in &mut self.steps {
            let step = steps.remove(from);
            steps.insert(to, step);
        }
    }

    /// The loops in parts of at most so many elements and loops each; together they visit the same.
    pub(crate) fn cut(self, elements: usize, rank: usize) -> Vec<Self> {
        if self.len() <= elements && self.rank() <= rank {
            return vec![self];
        }
        let inner: usize = self.sizes[1..].iter().product();
        // Ranges of a single loop begin at whole vectors, whatever the type.
        let whole = if self.rank() == 1 { 16 } else { 1 };
        let most =
            if self.rank() > rank { 1 } else { (elements / inner.max(1) / whole * whole).max(1) };
        let mut parts = Vec::new();
        for start in (0..self.sizes[0]).step_by(most) {
            let mut part = self.clone();
            for (own, steps) in part.starts.iter_mut().zip(&self.steps) {
                *own += steps[0] * start.cast_signed();
            }
            part.sizes[0] = most.min(self.sizes[0] - start);
            if most == 1 && part.rank() > 1 {
                part.sizes.remove(0);
                for steps in &mut part.steps {
                    steps.remove(0);
                }
                parts.extend(part.cut(elements, rank));
            } else {
                parts.push(part);
            }
        }
        parts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Every place of all arrays.
    fn places(loops: &Loops) -> Vec<Vec<isize>> {
        let mut all = vec![loops.starts.clone()];
        for (at, &size) in loops.sizes.iter().enumerate() {
            let step = |own: &Vec<isize>, i: usize| {
                own.iter()
                    .zip(&loops.steps)
                    .map(|(own, steps)| own + steps[at] * i.cast_signed())
                    .collect()
            };
            all = all.iter().flat_map(|own| (0..size).map(move |i| step(own, i))).collect();
        }
        all
    }

    proptest! {
        #[test]
        fn loops_and_their_parts_visit_every_element_once(
            axes in prop::collection::vec((1_usize..6, -3_isize..4, -3_isize..4), 0..5),
            (by, most, rank) in (prop::option::of(0_usize..2), 1_usize..40, 1_usize..4),
        ) {
            let shape: Vec<usize> = axes.iter().map(|axis| axis.0).collect();
            let strides: [Vec<isize>; 2] =
                [axes.iter().map(|axis| axis.1).collect(), axes.iter().map(|axis| axis.2).collect()];
            let own = Loops {
                sizes: shape.clone(), steps: strides.to_vec(), starts: vec![0; 2],
            };
            let mut expected = places(&own);
            expected.sort();
            let loops = Loops::new(&shape, &[&strides[0], &strides[1]], by);
            let mut got = places(&loops);
            got.sort();
            prop_assert_eq!(&got, &expected);
            let parts = loops.cut(most.max(16), rank);
            prop_assert!(parts.iter().all(|part| part.len() <= most.max(16) && part.rank() <= rank));
            let mut got: Vec<Vec<isize>> = parts.iter().flat_map(places).collect();
            got.sort();
            prop_assert_eq!(got, expected);
        }
    }

    #[test]
    fn contiguous_axes_are_one_loop_and_what_repeats_is_outermost() {
        let loops = Loops::new(&[4, 3, 2], &[&[6, 2, 1], &[0, 2, 1]], Some(1));
        assert_eq!((&loops.sizes[..], &loops.steps[1][..]), (&[4, 6][..], &[0, 1][..]));
        let all = Loops::new(&[4, 3, 2], &[&[6, 2, 1]], Some(0));
        assert_eq!(all.sizes, [24]);
    }
}
