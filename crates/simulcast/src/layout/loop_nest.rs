//! The loop nest: the fewest and longest loops that visit every element of a result once.
//!
//! ```text
//! drop axes of size 1
//! turn axes over on which the output runs backwards
//! order axes by the output's stride, the largest outermost
//! merge an axis into the one inside it where every operand strides through both alike
//! ```
//!
//! So `(32, 56, 56, 64) + (64,)` is two loops, `(100352, 64)`, and a contiguous sum of any rank is
//! one. All of this is arithmetic on a few numbers: nothing here touches an element.

use crate::layout::small_vec::Inline;

/// One loop: how often, and how far the output and each of `N` operands move, in elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Loop<const N: usize> {
    pub(crate) len: usize,
    pub(crate) out: isize,
    pub(crate) ins: [isize; N],
}

impl<const N: usize> Default for Loop<N> {
    fn default() -> Self {
        Self { len: 1, out: 0, ins: [0; N] }
    }
}

impl<const N: usize> Loop<N> {
    /// Whether a step of `self` is a whole round of `inner`, for everyone.
    fn continues(&self, inner: &Self) -> bool {
        let round = |stride: isize| stride.wrapping_mul(inner.len.cast_signed());
        self.out == round(inner.out)
            && self.ins.iter().zip(inner.ins).all(|(&own, stride)| own == round(stride))
    }
}

/// Loops from the outermost to the innermost, and where everyone begins, in elements.
#[derive(Clone, Debug)]
pub(crate) struct Nest<const N: usize> {
    pub(crate) loops: Inline<Loop<N>>,
    pub(crate) out: isize,
    pub(crate) ins: [isize; N],
}

impl<const N: usize> Nest<N> {
    /// The nest over a shape without a 0 in it.
    ///
    /// The output has no two elements in one place, so its strides are 0 only on axes of size 1.
    #[inline(always)]
    pub(crate) fn new(shape: &[usize], out: &[isize], ins: [&[isize]; N]) -> Self {
        let mut nest = Self { loops: Inline::new(), out: 0, ins: [0; N] };
        for (axis, &len) in shape.iter().enumerate() {
            if len == 1 {
                continue;
            }
            let stride = |strides: &[isize]| strides.get(axis).copied().unwrap_or(0);
            let mut one = Loop { len, out: stride(out), ins: ins.map(stride) };
            if one.out < 0 {
                let last = len.cast_signed() - 1;
                nest.out += one.out * last;
                one.out = -one.out;
                for (base, stride) in nest.ins.iter_mut().zip(&mut one.ins) {
                    *base += *stride * last;
                    *stride = -*stride;
                }
            }
            // Insertion keeps equal strides in their order; nests are short.
            nest.loops.push(one);
            let mut at = nest.loops.len() - 1;
            while let Some(before) = at.checked_sub(1) {
                if nest.loops[before].out >= nest.loops[at].out {
                    break;
                }
                nest.loops.swap(before, at);
                at = before;
            }
        }
        nest.merge();
        nest
    }

    /// Merges neighbours that everyone strides through alike.
    #[inline(always)]
    fn merge(&mut self) {
        let mut kept = 0;
        for next in 1..self.loops.len() {
            let inner = self.loops[next];
            if self.loops[kept].continues(&inner) {
                self.loops[kept] = Loop { len: self.loops[kept].len * inner.len, ..inner };
            } else {
                kept += 1;
                self.loops[kept] = inner;
            }
        }
        let len = (kept + 1).min(self.loops.len());
        self.loops.truncate(len);
    }

    /// Leaves loop `at` only the steps of `range`.
    pub(crate) fn cut(&mut self, at: usize, range: std::ops::Range<usize>) {
        let Some(one) = self.loops.get_mut(at) else { return };
        one.len = range.len();
        let steps = range.start.cast_signed();
        self.out += one.out * steps;
        for (base, stride) in self.ins.iter_mut().zip(one.ins) {
            *base += stride * steps;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Every (output, operands) offset, index by index.
    fn naive<const N: usize>(
        shape: &[usize],
        out: &[isize],
        ins: [&[isize]; N],
    ) -> Vec<Vec<isize>> {
        let mut all = vec![vec![0; N + 1]];
        for (axis, &len) in shape.iter().enumerate() {
            let step = |at: &Vec<isize>, i: usize| {
                let strides = [out].into_iter().chain(ins).map(|strides| strides[axis]);
                at.iter().zip(strides).map(|(at, s)| at + s * i as isize).collect()
            };
            all = all.iter().flat_map(|at| (0..len).map(move |i| step(at, i))).collect();
        }
        all
    }

    fn walked<const N: usize>(nest: &Nest<N>) -> Vec<Vec<isize>> {
        let shape: Vec<usize> = nest.loops.iter().map(|one| one.len).collect();
        let out: Vec<isize> = nest.loops.iter().map(|one| one.out).collect();
        let ins: [Vec<isize>; N] =
            std::array::from_fn(|n| nest.loops.iter().map(|one| one.ins[n]).collect());
        let mut all = naive::<N>(&shape, &out, std::array::from_fn(|n| &ins[n][..]));
        for at in &mut all {
            at[0] += nest.out;
            at.iter_mut().skip(1).zip(nest.ins).for_each(|(at, base)| *at += base);
        }
        all
    }

    #[test]
    fn contiguous_operands_of_any_rank_are_one_loop() {
        let nest = Nest::new(&[2, 1, 3, 4], &[12, 12, 4, 1], [&[12, 7, 4, 1], &[0; 4]]);
        assert_eq!(nest.loops[..], [Loop { len: 24, out: 1, ins: [1, 0] }]);
    }

    #[test]
    fn channels_last_is_two_loops() {
        let nest = Nest::new(&[2, 5, 7, 4], &[140, 28, 4, 1], [&[140, 28, 4, 1], &[0, 0, 0, 1]]);
        let loops = [Loop { len: 70, out: 4, ins: [4, 0] }, Loop { len: 4, out: 1, ins: [1, 1] }];
        assert_eq!(nest.loops[..], loops);
    }

    #[test]
    fn backward_and_transposed_outputs_run_forward() {
        let nest = Nest::new(&[3, 4], &[-1, 3], [&[4, 1]]);
        let loops = [Loop { len: 4, out: 3, ins: [1] }, Loop { len: 3, out: 1, ins: [-4] }];
        assert_eq!((&nest.loops[..], nest.out, nest.ins), (&loops[..], -2, [8]));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 256 }))]

        // [E_BROADCAST_ANY_FUNC_3030]
        #[test]
        fn a_nest_visits_every_element_once(
            axes in prop::collection::vec((1_usize..5, any::<bool>(), -3_isize..4, -3_isize..4), 0..5),
            order in any::<u64>(),
        ) {
            // An output of any axis order, some axes backwards, no two elements in one place.
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
            let nest = Nest::new(&shape, &out, [&a, &b]);
            let (mut got, mut expected) = (walked(&nest), naive(&shape, &out, [&a, &b]));
            // The output is walked in the order of memory.
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
            let turned: Vec<isize> = out.iter().rev().map(|stride| -stride).collect();
            let nest = Nest::new(&lens, &out, [&turned]);
            for at in 0..nest.loops.len() {
                let cut = cut.min(nest.loops[at].len);
                let part = |range| {
                    let mut part = nest.clone();
                    part.cut(at, range);
                    walked(&part)
                };
                let mut parts = part(0..cut);
                parts.extend(part(cut..nest.loops[at].len));
                parts.sort();
                prop_assert_eq!(parts, walked(&nest));
            }
        }
    }
}
