//! Parts of a nest: which steps of each loop one of them takes.
//!
//! ```text
//! stretches  the outermost loops are cut, each step apart where that is not enough: a part is a stretch
//!            of the output
//! blocks     an operand repeats along an outer loop, and is too large for a cache: the loop along it is
//!            cut, so that its share of a part is read from memory once
//! bands      an operand is transposed: both loops are cut, so that a part reads whole pages of that
//!            operand, and writes to no more pages than the processor knows its way to; where that is not enough, into
//!            narrower ones, or lower ones where rows begin anywhere in a line: then borders between columns are in
//!            the middle of one
//! ```
//!
//! Pieces of the innermost loop begin at lines of the output, where they are not short and rows are whole lines.

use crate::exec::drive::BAND;
use crate::layout::loop_nest::{Loop, Nest};
use crate::layout::small_vec::Inline;

/// The elements of a block: with what is beside them, they stay in a cache of one thread. Four times as many would not.
const BLOCK: usize = 1 << 16;

/// The least results of a block in a row.
const ROW: usize = 1024;

/// The columns of a band, and the fewest, where bands would be few; its rows are those after which squares go right.
const WIDE: usize = 512;
const NARROW: usize = 128;

/// The fewest rows of a band, where there would be few.
const LOW: usize = 128;

/// `len * part / parts`, without the overflow; at most `len`, since no part is beyond the last.
pub(crate) fn share(len: usize, part: usize, parts: usize) -> usize {
    let share = len as u128 * part as u128 / parts.max(1) as u128;
    usize::try_from(share).map_or(len, |share| share.min(len))
}

/// How a nest is cut.
pub(crate) struct Parts {
    /// In how many pieces each loop is.
    pieces: Inline<usize>,
    /// How many elements would fit before the first result, in its line, and so of every row; none where those begin anywhere.
    before: Option<usize>,
}

impl Parts {
    /// About so many parts; stretches, unless they may write in any order. `before` elements would fit before the
    /// first result of every row, in its line, where they are as many.
    pub(crate) fn new<const N: usize>(
        nest: &Nest<N>,
        about: usize,
        before: Option<usize>,
        any_order: bool,
    ) -> Self {
        let loops = &nest.loops[..];
        let mut pieces = Inline::of_len(loops.len());
        pieces.fill(1);
        if about <= 1 {
            return Self { pieces, before };
        }
        if let Some((rows, columns)) = bands(loops, about, before.is_some()).filter(|_| any_order) {
            pieces.copy_from_slice(&[rows, columns]);
        } else if let Some((at, elements)) = again(loops, about).filter(|_| any_order) {
            pieces[at] = about.max(elements / BLOCK).min(loops[at].len);
        } else {
            let mut left = about;
            for (pieces, one) in pieces.iter_mut().zip(loops) {
                *pieces = left.min(one.len);
                left = left.div_ceil(*pieces);
            }
        }
        Self { pieces, before }
    }

    pub(crate) fn count(&self) -> usize {
        self.pieces.iter().product()
    }

    /// One of the parts.
    pub(crate) fn part<const N: usize>(&self, nest: &Nest<N>, mut number: usize) -> Nest<N> {
        let mut part = nest.clone();
        let inner = self.pieces.len().saturating_sub(1);
        for (at, &pieces) in self.pieces.iter().enumerate().rev() {
            let (len, piece) = (nest.loops[at].len, number % pieces);
            number /= pieces;
            // Whole lines of results, or whole squares, where there are enough.
            let (grain, before) = match len / pieces {
                128.. if at == inner => (64, self.before.unwrap_or(0) % 64),
                32.. => (32, 0),
                _ => (1, 0),
            };
            let cut = |piece: usize| match piece {
                0 => 0,
                piece if piece == pieces => len,
                piece => (share(len, piece, pieces) + before) / grain * grain - before,
            };
            part.cut(at, cut(piece)..cut(piece + 1));
        }
        part
    }
}

/// In how many pieces to cut rows and columns, where those are all, and an operand runs along the rows, which are whole lines
/// of the result or not.
fn bands<const N: usize>(loops: &[Loop<N>], about: usize, whole: bool) -> Option<(usize, usize)> {
    let [rows, columns] = loops else { return None };
    let far = |one: &Loop<N>, n: usize| one.ins[n].unsigned_abs();
    let turned = |n: usize| far(columns, n) > 1 && far(rows, n) < far(columns, n);
    let high = (rows.len / BAND).clamp(1, about);
    let most = about.div_ceil(high);
    let wide = (columns.len / WIDE).clamp(1, most);
    let (high, wide) = match high * wide * 4 < about {
        true if whole => (high, most.min(columns.len / NARROW).max(wide)),
        true => (about.div_ceil(wide).min(rows.len / LOW).max(high), wide),
        false => (high, wide),
    };
    ((0..N).any(turned) && high * wide > 1).then_some((high, wide))
}

/// A loop of enough steps within others along which an operand repeats, and the elements of that operand from there
/// on, where they are many.
fn again<const N: usize>(loops: &[Loop<N>], about: usize) -> Option<(usize, usize)> {
    let least = |at: usize| if at + 1 == loops.len() { ROW } else { 1 };
    let long = |&at: &usize| loops[at].len / least(at) >= about;
    (1..loops.len()).filter(long).find_map(|at| {
        let (outer, inner) = loops.split_at(at);
        let elements = |n: usize| {
            let repeats = outer.iter().all(|one| one.ins[n] == 0) && inner[0].ins[n] != 0;
            let moves = inner.iter().filter(|one| one.ins[n] != 0);
            repeats.then(|| moves.map(|one| one.len).product::<usize>())
        };
        let most = (0..N).filter_map(elements).max()?;
        (most > 4 * BLOCK).then_some((at, most))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The steps of every loop that a part takes.
    fn steps<const N: usize>(nest: &Nest<N>, part: &Nest<N>) -> Vec<(usize, usize)> {
        let mut at = (part.out - nest.out).unsigned_abs();
        let step = |(whole, cut): (&Loop<N>, &Loop<N>)| {
            let first = at / whole.out.unsigned_abs();
            at %= whole.out.unsigned_abs();
            (first, cut.len)
        };
        nest.loops.iter().zip(part.loops.iter()).map(step).collect()
    }

    fn nest<const N: usize>(lens: &[usize], ins: [&[isize]; N]) -> Nest<N> {
        let mut out = vec![1_isize; lens.len()];
        for at in (1..lens.len()).rev() {
            out[at - 1] = out[at] * lens[at].cast_signed();
        }
        Nest::new(lens, &out, ins)
    }

    #[test]
    fn loops_are_cut_as_their_operands_lie() {
        let pieces = |nest: &Nest<2>, any| Parts::new(nest, 32, Some(0), any).pieces.to_vec();
        // A bias over channels: images, and channels of an image.
        let bias = nest(&[8, 64, 3136], [&[64 * 3136, 3136, 1], &[0, 1, 0]]);
        assert_eq!(pieces(&bias, true), [8, 4, 1]);
        // The row is long, and read again for each of few: pieces of it, all rows of each.
        let again = nest(&[4, 1 << 22], [&[1 << 22, 1], &[0, 1]]);
        assert_eq!((pieces(&again, true), pieces(&again, false)), (vec![1, 64], vec![4, 8]));
        // It is not long enough for so many pieces.
        let again = nest(&[1000, 300_000], [&[300_000, 1], &[0, 1]]);
        assert_eq!(Parts::new(&again, 1024, Some(0), true).pieces.to_vec(), [1000, 2]);
        let turned = nest(&[4096, 4096], [&[1, 4096], &[0, 1]]);
        assert_eq!((pieces(&turned, true), pieces(&turned, false)), (vec![4, 8], vec![32, 1]));
        // Few are cut into narrower ones.
        let small = nest(&[1024, 1024], [&[1, 1024], &[0, 1]]);
        assert_eq!(Parts::new(&small, 16, Some(0), true).pieces.to_vec(), [1, 8]);
        // And into lower ones, where rows begin anywhere in a line.
        let small = nest(&[1025, 1025], [&[1, 1025], &[0, 1]]);
        assert_eq!(Parts::new(&small, 16, None, true).pieces.to_vec(), [8, 2]);
        // Neither, and nothing to cut.
        assert_eq!(pieces(&nest(&[4096, 4096], [&[4096, 1], &[0, 1]]), true), [32, 1]);
        assert_eq!(Parts::new(&bias, 1, Some(0), true).count(), 1);
        assert_eq!(Parts::new(&nest(&[], [&[]]), 32, Some(0), true).count(), 1);
    }

    #[test]
    fn parts_begin_at_lines_of_the_output() {
        let one = nest(&[100_000], [&[1]]);
        let parts = Parts::new(&one, 8, Some(4), true);
        let begins = |part| parts.part(&one, part).out;
        assert_eq!(begins(0), 0);
        assert!((1..8).all(|part| (begins(part) + 4) % 64 == 0));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 256 }))]

        // [E_BROADCAST_ANY_FUNC_3030]
        #[test]
        fn every_step_is_in_one_part(
            lens in prop::collection::vec(2_usize..300, 1..4),
            about in 1_usize..100, before in prop::option::of(0_usize..70), any_order in any::<bool>(), turned in any::<bool>(),
        ) {
            let mut ins = vec![1_isize; lens.len()];
            for at in 1..lens.len() {
                ins[at] = ins[at - 1] * lens[at - 1].cast_signed();
            }
            if !turned {
                ins.fill(0);
            }
            let nest = nest(&lens, [&ins]);
            let parts = Parts::new(&nest, about, before, any_order);
            // No two parts have a step in common, and together they have as many as there are.
            let all: Vec<_> = (0..parts.count()).map(|part| steps(&nest, &parts.part(&nest, part))).collect();
            let elements = |part: &Vec<(usize, usize)>| part.iter().map(|&(_, len)| len).product::<usize>();
            prop_assert!(all.iter().all(|part| elements(part) > 0));
            prop_assert_eq!(all.iter().map(elements).sum::<usize>(), lens.iter().product::<usize>());
            for (at, one) in all.iter().enumerate() {
                for other in &all[..at] {
                    let meet = |(a, b): (&(usize, usize), &(usize, usize))| a.0 < b.0 + b.1 && b.0 < a.0 + a.1;
                    prop_assert!(!one.iter().zip(other).all(meet));
                }
            }
        }
    }
}
