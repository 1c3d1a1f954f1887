//! The partition: how a nest is cut into parts for threads.
//!
//! ```text
//! stretches  the outermost loops are cut, down to single steps where that is not enough: a part is a stretch of the
//!            result
//! blocks     an operand repeats along an outer loop and is too large for a cache: the loop along it is cut, so that
//!            its share of a part is read from memory once
//! bands      an operand is transposed: both loops are cut, so that a part reads whole pages of that operand and writes
//!            to no more pages than the TLB holds; where that makes too few parts, into narrower bands, or into lower
//!            ones where rows begin anywhere in a cache line, since then each border between columns splits one
//! ```
//!
//! No two parts share an element of the result: each takes a range of steps of every loop, and the ranges of a loop are
//! disjoint. Pieces of the innermost loop begin at cache lines of the result, where they are long enough and every row
//! begins at the same place of a line.

use std::fmt;

use super::nest::Nest;
use super::small_vec::Inline;
use simulcast_kernels::tuning::{
    BAND_COLUMNS, BAND_COLUMNS_MIN, BAND_ROWS, BAND_ROWS_MIN, BANDS_TOO_FEW, PART_GRAIN,
    PART_ROW_GRAIN, REREAD_BLOCK_ELEMENTS, REREAD_OPERAND_ELEMENTS, REREAD_ROW_ELEMENTS,
};
use simulcast_threads::share;

/// A piece of the innermost loop of fewer elements is not begun at a cache line.
const TWO_ROW_GRAINS: usize = 2 * PART_ROW_GRAIN;

/// In how many pieces each loop of a nest is cut.
#[derive(Clone, Debug)]
pub(crate) struct Partition {
    pieces: Inline<usize>,
}

impl PartialEq for Partition {
    fn eq(&self, other: &Self) -> bool {
        self.pieces[..] == other.pieces[..]
    }
}

impl Eq for Partition {}

impl Partition {
    /// One part: all of a nest of that many loops.
    pub(crate) fn whole(rank: usize) -> Self {
        let mut pieces = Inline::of_len(rank);
        pieces.fill(1);
        Self { pieces }
    }

    /// `about` parts, more or less: bands and blocks only if elements may be written in any order, else stretches. Whether rows
    /// are aligned says that all of them begin at the same place of a cache line.
    pub(crate) fn new(
        nest: &Nest,
        sizes: &[usize],
        about: usize,
        rows_aligned: bool,
        any_order: bool,
    ) -> Self {
        let mut this = Self::whole(nest.rank());
        if about <= 1 {
            return this;
        }
        let pieces = &mut this.pieces;
        if let Some(both) = bands(nest, sizes, about, rows_aligned).filter(|_| any_order) {
            pieces.copy_from_slice(&<[usize; 2]>::from(both));
        } else if let Some((at, elements)) = reread(nest, about).filter(|_| any_order) {
            pieces[at] = about.max(elements / REREAD_BLOCK_ELEMENTS).min(nest.len(at));
        } else {
            let mut left = about;
            for (pieces, &len) in pieces.iter_mut().zip(nest.lens()) {
                *pieces = left.min(len);
                left = left.div_ceil(*pieces);
            }
        }
        this
    }

    /// The number of parts.
    pub(crate) fn count(&self) -> usize {
        self.pieces.iter().product()
    }

    /// One of the parts. Each row begins `before` elements after the start of a cache line.
    pub(crate) fn part(&self, nest: &Nest, mut number: usize, before: usize) -> Nest {
        let mut part = nest.clone();
        let inner = self.pieces.len().saturating_sub(1);
        for (at, &pieces) in self.pieces.iter().enumerate().rev() {
            let (len, piece) = (nest.len(at), number % pieces);
            number /= pieces;
            // Whole cache lines of results, or whole blocks of a transposed operand, where there are enough.
            let (grain, before) = match len / pieces {
                TWO_ROW_GRAINS.. if at == inner => (PART_ROW_GRAIN, before % PART_ROW_GRAIN),
                PART_GRAIN.. => (PART_GRAIN, 0),
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

/// `1 part`, or `32 parts (4 x 8)`: the pieces of each loop, the outermost first.
impl fmt::Display for Partition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.count();
        write!(f, "{count} part{}", if count == 1 { "" } else { "s" })?;
        if count > 1 && self.pieces.len() > 1 {
            let pieces: Vec<_> = self.pieces.iter().map(usize::to_string).collect();
            write!(f, " ({})", pieces.join(" x "))?;
        }
        Ok(())
    }
}

/// In how many pieces to cut rows and columns, where those are all the loops and an operand is transposed.
fn bands(nest: &Nest, sizes: &[usize], about: usize, rows_aligned: bool) -> Option<(usize, usize)> {
    let &[rows, columns] = nest.lens() else { return None };
    let is_transposed = |array: usize| {
        let far = |at: usize| nest.step(at)[array].unsigned_abs();
        far(1) > sizes[array] && far(0) < far(1)
    };
    let high = (rows / BAND_ROWS).clamp(1, about);
    let most = about.div_ceil(high);
    let wide = (columns / BAND_COLUMNS).clamp(1, most);
    let (high, wide) = match high * wide * BANDS_TOO_FEW < about {
        true if rows_aligned => (high, most.min(columns / BAND_COLUMNS_MIN).max(wide)),
        true => (about.div_ceil(wide).min(rows / BAND_ROWS_MIN).max(high), wide),
        false => (high, wide),
    };
    ((1..nest.arrays()).any(is_transposed) && high * wide > 1).then_some((high, wide))
}

/// A loop of enough steps within others along which an operand repeats, and the elements of that operand from there on,
/// where they are too many for a cache.
fn reread(nest: &Nest, about: usize) -> Option<(usize, usize)> {
    let rank = nest.rank();
    let least = |at: usize| if at + 1 == rank { REREAD_ROW_ELEMENTS } else { 1 };
    (1..rank).filter(|&at| nest.len(at) / least(at) >= about).find_map(|at| {
        let elements = |array: usize| {
            let repeats =
                (0..at).all(|outer| nest.step(outer)[array] == 0) && nest.step(at)[array] != 0;
            let moves = (at..rank).filter(|&inner| nest.step(inner)[array] != 0);
            repeats.then(|| moves.map(|inner| nest.len(inner)).product::<usize>())
        };
        let most = (1..nest.arrays()).filter_map(elements).max()?;
        (most > REREAD_OPERAND_ELEMENTS).then_some((at, most))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The steps of every loop that a part takes.
    fn steps(nest: &Nest, part: &Nest) -> Vec<(usize, usize)> {
        let mut place = (part.starts()[0] - nest.starts()[0]).unsigned_abs();
        let step = |at: usize| {
            let own = nest.step(at)[0].unsigned_abs();
            let first = place / own;
            place %= own;
            (first, part.len(at))
        };
        (0..nest.rank()).map(step).collect()
    }

    fn nest(lens: &[usize], ins: &[&[isize]]) -> Nest {
        let mut out = vec![1_isize; lens.len()];
        for at in (1..lens.len()).rev() {
            out[at - 1] = out[at] * lens[at].cast_signed();
        }
        let strides: Vec<&[isize]> = [&out[..]].into_iter().chain(ins.iter().copied()).collect();
        Nest::new(lens, &strides, &[1; 3])
    }

    fn cut(nest: &Nest, about: usize, rows_aligned: bool, any_order: bool) -> Partition {
        Partition::new(nest, &[1; 3], about, rows_aligned, any_order)
    }

    #[test]
    fn loops_are_cut_as_their_operands_lie() {
        let pieces = |nest: &Nest, any| cut(nest, 32, true, any).pieces.to_vec();
        // A bias over channels: images, and channels of an image.
        let bias = nest(&[8, 64, 3136], &[&[64 * 3136, 3136, 1], &[0, 1, 0]]);
        assert_eq!(pieces(&bias, true), [8, 4, 1]);
        // The row is long, and read again for each of few: pieces of it, all rows of each.
        let again = nest(&[4, 1 << 22], &[&[1 << 22, 1], &[0, 1]]);
        assert_eq!((pieces(&again, true), pieces(&again, false)), (vec![1, 64], vec![4, 8]));
        // The loop is too short for that number of pieces.
        let again = nest(&[1000, 300_000], &[&[300_000, 1], &[0, 1]]);
        assert_eq!(cut(&again, 1024, true, true).pieces.to_vec(), [1000, 2]);
        let transposed = nest(&[4096, 4096], &[&[1, 4096], &[0, 1]]);
        assert_eq!(
            (pieces(&transposed, true), pieces(&transposed, false)),
            (vec![4, 8], vec![32, 1])
        );
        // Few are cut into narrower ones.
        let small = nest(&[1024, 1024], &[&[1, 1024], &[0, 1]]);
        assert_eq!(cut(&small, 16, true, true).pieces.to_vec(), [1, 8]);
        // And into lower ones, where rows begin anywhere in a line.
        let small = nest(&[1025, 1025], &[&[1, 1025], &[0, 1]]);
        assert_eq!(cut(&small, 16, false, true).pieces.to_vec(), [8, 2]);
        // Neither, and nothing to cut.
        assert_eq!(pieces(&nest(&[4096, 4096], &[&[4096, 1], &[0, 1]]), true), [32, 1]);
        assert_eq!(cut(&bias, 1, true, true).count(), 1);
        assert_eq!(cut(&nest(&[], &[&[]]), 32, true, true).count(), 1);
    }

    #[test]
    fn parts_begin_at_lines_of_the_output() {
        let one = nest(&[100_000], &[&[1]]);
        let parts = cut(&one, 8, true, true);
        let begins = |part| parts.part(&one, part, 4).starts()[0];
        assert_eq!(begins(0), 0);
        assert!((1..8).all(|part| (begins(part) + 4) % 64 == 0));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 256 }))]

        // [E_BROADCAST_ANY_FUNC_3030]
        #[test]
        fn every_step_is_in_one_part(
            lens in prop::collection::vec(2_usize..300, 1..4),
            about in 1_usize..100, before in prop::option::of(0_usize..70), any_order in any::<bool>(), transposed in any::<bool>(),
        ) {
            let mut ins = vec![1_isize; lens.len()];
            for at in 1..lens.len() {
                ins[at] = ins[at - 1] * lens[at - 1].cast_signed();
            }
            if !transposed {
                ins.fill(0);
            }
            let nest = nest(&lens, &[&ins]);
            let parts = cut(&nest, about, before.is_some(), any_order);
            // No two parts have a step in common, and together they have all of them.
            let all: Vec<_> = (0..parts.count()).map(|part| steps(&nest, &parts.part(&nest, part, before.unwrap_or(0)))).collect();
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
