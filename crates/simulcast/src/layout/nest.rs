//! The loop nest: the fewest and longest loops that visit every element of a result once.
//!
//! ```text
//! drop axes of size 1
//! reverse axes along which the result runs backwards
//! order axes by the result's stride, the largest outermost
//! merge an axis into the one inside it where every array strides through both alike
//! ```
//!
//! So `(32, 56, 56, 64) + (64,)` is two loops, `(100352, 64)`, and a contiguous sum of any rank is one. Strides are in
//! bytes, and array 0 is the result: the arrays after it are the operands. (A sum asks for the nest of its gradient: array 0
//! is that, and the sums come after it.) All of this is arithmetic on a few numbers; nothing here touches an element.

use std::ops::Range;

use super::small_vec::{INLINE, Inline, SmallVec};

/// Bytes or elements from step to step, one for each array.
pub(crate) type Steps = SmallVec<isize, { 5 * INLINE }>;

/// Loops from the outermost to the innermost, and where each array begins.
#[derive(Clone, Debug)]
pub(crate) struct Nest {
    /// How often each loop runs.
    lens: Inline<usize>,
    /// The bytes that each array moves in a step, loop after loop.
    steps: Steps,
    /// The bytes from each array's pointer to its first element in the order of the nest.
    starts: Inline<isize>,
    /// How many arrays there are: the result and the operands.
    arrays: usize,
}

impl Nest {
    /// The nest over a shape without a 0 in it, of arrays with these strides, in elements, and bytes an element: in the order of
    /// array 0.
    pub(crate) fn new(shape: &[usize], strides: &[&[isize]], sizes: &[usize]) -> Self {
        let arrays = strides.len();
        let mut nest = Self {
            lens: Inline::new(),
            steps: Steps::new(),
            starts: Inline::of_len(arrays),
            arrays,
        };
        for (axis, &len) in shape.iter().enumerate() {
            if len == 1 {
                continue;
            }
            nest.lens.push(len);
            for (strides, &size) in strides.iter().zip(sizes) {
                let stride = strides.get(axis).copied().unwrap_or(0);
                nest.steps.push(stride.wrapping_mul(size.cast_signed()));
            }
            let mut at = nest.lens.len() - 1;
            if nest.step(at)[0] < 0 {
                nest.reverse(at);
            }
            // Insertion keeps equal strides in their order; nests are short.
            while at > 0 && nest.step(at - 1)[0] < nest.step(at)[0] {
                nest.swap(at - 1, at);
                at -= 1;
            }
        }
        nest.merge();
        nest
    }

    /// The number of loops.
    #[inline]
    pub(crate) fn rank(&self) -> usize {
        self.lens.len()
    }

    /// How often a loop runs.
    #[inline]
    pub(crate) fn len(&self, at: usize) -> usize {
        self.lens[at]
    }

    /// How often each loop runs, from the outermost on.
    #[inline]
    pub(crate) fn lens(&self) -> &[usize] {
        &self.lens
    }

    /// The bytes that each array moves in a step of a loop, the result first.
    #[inline]
    pub(crate) fn step(&self, at: usize) -> &[isize] {
        &self.steps[at * self.arrays..(at + 1) * self.arrays]
    }

    /// The bytes from each array's pointer to where the nest begins, the result first.
    #[inline]
    pub(crate) fn starts(&self) -> &[isize] {
        &self.starts
    }

    /// How many arrays there are, the result among them.
    #[inline]
    pub(crate) fn arrays(&self) -> usize {
        self.arrays
    }

    /// Leaves loop `at` only the steps of `range`.
    pub(crate) fn cut(&mut self, at: usize, range: Range<usize>) {
        let Some(len) = self.lens.get_mut(at) else { return };
        *len = range.len();
        let first = range.start.cast_signed();
        let steps = &self.steps[at * self.arrays..(at + 1) * self.arrays];
        for (start, step) in self.starts.iter_mut().zip(steps) {
            *start += step * first;
        }
    }

    /// Runs a loop from its end.
    fn reverse(&mut self, at: usize) {
        let last = self.lens[at].cast_signed() - 1;
        let steps = &mut self.steps[at * self.arrays..(at + 1) * self.arrays];
        for (start, step) in self.starts.iter_mut().zip(steps) {
            *start += *step * last;
            *step = -*step;
        }
    }

    fn swap(&mut self, a: usize, b: usize) {
        self.lens.swap(a, b);
        for array in 0..self.arrays {
            self.steps.swap(a * self.arrays + array, b * self.arrays + array);
        }
    }

    /// Merges neighbours that every array strides through alike.
    fn merge(&mut self) {
        let mut kept = 0;
        for next in 1..self.rank() {
            let round = self.len(next).cast_signed();
            let continues = |(&outer, &inner): (&isize, &isize)| outer == inner.wrapping_mul(round);
            if self.step(kept).iter().zip(self.step(next)).all(continues) {
                self.lens[next] *= self.lens[kept];
            } else {
                kept += 1;
            }
            if kept != next {
                self.swap(kept, next);
            }
        }
        let rank = (kept + 1).min(self.rank());
        self.lens.truncate(rank);
        self.steps.truncate(rank * self.arrays);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Every place of all arrays, index by index.
    fn naive(shape: &[usize], strides: &[&[isize]]) -> Vec<Vec<isize>> {
        let mut all = vec![vec![0; strides.len()]];
        for (axis, &len) in shape.iter().enumerate() {
            let step = |at: &Vec<isize>, i: usize| {
                at.iter().zip(strides).map(|(at, s)| at + s[axis] * i as isize).collect()
            };
            all = all.iter().flat_map(|at| (0..len).map(move |i| step(at, i))).collect();
        }
        all
    }

    fn visited(nest: &Nest) -> Vec<Vec<isize>> {
        let strides: Vec<Vec<isize>> = (0..nest.arrays())
            .map(|array| (0..nest.rank()).map(|at| nest.step(at)[array]).collect())
            .collect();
        let mut all = naive(nest.lens(), &strides.iter().map(Vec::as_slice).collect::<Vec<_>>());
        for at in &mut all {
            at.iter_mut().zip(nest.starts()).for_each(|(at, start)| *at += start);
        }
        all
    }

    fn loops(nest: &Nest) -> Vec<(usize, &[isize])> {
        (0..nest.rank()).map(|at| (nest.len(at), nest.step(at))).collect()
    }

    #[test]
    fn contiguous_arrays_of_any_rank_are_one_loop() {
        let strides: [&[isize]; 3] = [&[12, 12, 4, 1], &[12, 7, 4, 1], &[0; 4]];
        let nest = Nest::new(&[2, 1, 3, 4], &strides, &[4, 8, 1]);
        assert_eq!(loops(&nest), [(24, &[4, 8, 0][..])]);
    }

    #[test]
    fn channels_last_is_two_loops() {
        let strides: [&[isize]; 3] = [&[140, 28, 4, 1], &[140, 28, 4, 1], &[0, 0, 0, 1]];
        let nest = Nest::new(&[2, 5, 7, 4], &strides, &[1; 3]);
        assert_eq!(loops(&nest), [(70, &[4, 4, 0][..]), (4, &[1, 1, 1])]);
    }

    #[test]
    fn backward_and_transposed_results_run_forward() {
        let nest = Nest::new(&[3, 4], &[&[-1, 3], &[4, 1]], &[1; 2]);
        assert_eq!(loops(&nest), [(4, &[3, 1][..]), (3, &[1, -4])]);
        assert_eq!(nest.starts(), [-2, 8]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 256 }))]

        // [E_BROADCAST_ANY_FUNC_3030]
        #[test]
        fn a_nest_visits_every_element_once(
            axes in prop::collection::vec((1_usize..5, any::<bool>(), -3_isize..4, -3_isize..4), 0..5),
            order in any::<u64>(),
        ) {
            // A result of any axis order, some axes backwards, no two elements in one place.
            let mut places: Vec<usize> = (0..axes.len()).collect();
            places.sort_by_key(|&place| order.rotate_left(7 * place as u32) & 0xff);
            let mut out = vec![0; axes.len()];
            let mut step = 1;
            for &place in &places {
                out[place] = if axes[place].1 { -step } else { step };
                step *= axes[place].0 as isize;
            }
            let shape: Vec<usize> = axes.iter().map(|a| a.0).collect();
            let a: Vec<isize> = axes.iter().map(|a| a.2).collect();
            let b: Vec<isize> = axes.iter().map(|a| a.3).collect();
            let strides = [&out[..], &a, &b];
            let nest = Nest::new(&shape, &strides, &[1; 3]);
            let (mut got, mut expected) = (visited(&nest), naive(&shape, &strides));
            // The result is walked in the order of memory.
            prop_assert!(got.is_sorted_by_key(|at| at[0]));
            expected.sort();
            got.sort();
            prop_assert_eq!(got, expected);
        }

        // [E_BROADCAST_ANY_FUNC_3030]
        #[test]
        fn parts_of_a_nest_make_the_whole(lens in prop::collection::vec(2_usize..6, 1..4), cut in 0_usize..6) {
            let out: Vec<isize> =
                (0..lens.len()).map(|k| lens[k + 1..].iter().product::<usize>() as isize).collect();
            let transposed: Vec<isize> = out.iter().rev().map(|stride| -stride).collect();
            let nest = Nest::new(&lens, &[&out, &transposed], &[1; 2]);
            for at in 0..nest.rank() {
                let cut = cut.min(nest.len(at));
                let part = |range| {
                    let mut part = nest.clone();
                    part.cut(at, range);
                    visited(&part)
                };
                let mut parts = part(0..cut);
                parts.extend(part(cut..nest.len(at)));
                parts.sort();
                prop_assert_eq!(parts, visited(&nest));
            }
        }
    }
}
