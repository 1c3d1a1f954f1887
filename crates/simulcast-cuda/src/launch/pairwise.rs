//! When and how results are computed by squares: see [`Pairwise`].

use super::{Args, Array, Launch, Limits, Reduction};
use crate::body::Body;
use crate::loops::Loops;
use crate::source::pairwise::ABREAST;
use crate::source::{Facing, Index, Kind, Pairwise};
use crate::tuning::{
    PAIRWISE_DEPTH, PAIRWISE_LEAST, PAIRWISE_PART_SLABS, SHARED_BYTES_MAX, VECTOR_BYTES,
};

/// Results of a reduction that are computed by squares.
pub(super) struct Squares {
    /// The loops of results that are a square's rows and columns.
    height: usize,
    width: usize,
    kind: Pairwise,
}

impl Squares {
    /// None where an operand moves along both of every two loops of results, or there are too few results.
    pub(super) fn new(
        body: &Body,
        kept: &Loops,
        reduced: &[Loops],
        (out, ins): (&Array, &[Array]),
        limits: &Limits,
    ) -> Option<Self> {
        let [steps] = reduced else { return None };
        if !body.is_light || steps.len() < 2 || ins.len() < 2 {
            return None;
        }
        let to = kept.steps.last()?;
        let large = |at: &usize| kept.sizes[*at] >= PAIRWISE_LEAST;
        let width = (0..kept.rank()).filter(large).min_by_key(|&at| to[at].unsigned_abs())?;
        let moves = |n: usize, at: usize| kept.steps[n][at] != 0;
        let are_apart = |at: &usize| {
            let apart = (0..ins.len()).all(|n| !moves(n, width) || !moves(n, *at));
            apart && (0..ins.len()).any(|n| moves(n, *at))
        };
        let others = (0..kept.rank()).filter(|&at| at != width).filter(large).filter(are_apart);
        let height = others.max_by_key(|&at| kept.sizes[at])?;
        if !(0..ins.len()).any(|n| moves(n, width)) {
            return None;
        }
        let widest = ins.iter().map(|own| own.dtype.size()).chain([body.element?.size()]).max()?;
        let squares = |side: usize| {
            let sides = kept.sizes.iter().enumerate().map(|(at, &size)| match at {
                at if at == width || at == height => size.div_ceil(side),
                _ => size,
            });
            sides.product::<usize>()
        };
        let fits = |per_thread: &usize| {
            let is_narrow = *per_thread == 4 || widest <= 4;
            is_narrow && squares(ABREAST * per_thread) >= limits.multiprocessors
        };
        let per_thread = [8, 4].into_iter().find(fits)?;
        let bytes = |own: &Array| PAIRWISE_DEPTH * (ABREAST * per_thread + 4) * own.dtype.size();
        if ins.iter().map(bytes).sum::<usize>() > SHARED_BYTES_MAX {
            return None;
        }
        let start = *kept.starts.last()?;
        let mut vector = (VECTOR_BYTES / out.dtype.size()).min(4);
        let others = (0..kept.rank()).filter(|&at| at != width).map(|at| to[at]);
        let others: Vec<isize> = others.collect();
        while vector > 1
            && !(to[width] == 1
                && kept.sizes[width].is_multiple_of(vector)
                && super::are_whole(&others, vector)
                && out.is_aligned(start, vector))
        {
            vector /= 2;
        }
        let facing = |n: usize| {
            let is_along = steps.steps[n].last().is_some_and(|&step| step.unsigned_abs() == 1);
            match (moves(n, height), moves(n, width)) {
                (true, _) => Facing::Height { is_along },
                (_, true) => Facing::Width { is_along },
                _ => Facing::Neither,
            }
        };
        let kind = Pairwise {
            index: Index::Wide,
            kept: kept.rank(),
            reduced: steps.rank(),
            per_thread,
            vector,
            is_deep: steps.len() > PAIRWISE_DEPTH * PAIRWISE_PART_SLABS,
            ins: (0..ins.len()).map(facing).collect(),
        };
        Some(Self { height, width, kind })
    }

    /// The launch, over loops whose last two are those of the square.
    pub(super) fn launch(&self, reduction: &Reduction<'_>, kept: &Loops, steps: &Loops) -> Launch {
        let Self { height, width, kind } = self;
        let (mut kept, rank) = (kept.clone(), kept.rank());
        kept.move_loop(*width, rank - 1);
        kept.move_loop(if height > width { height - 1 } else { *height }, rank - 2);
        let start = kept.starts.last().copied().unwrap_or(0);
        let ins = reduction.ins.iter().enumerate();
        let ins = ins.map(|(n, own)| own.at(kept.starts[n] + steps.starts[n]));
        let mut args = Args::new(reduction.body, reduction.out.at(start), ins);
        args.steps(kept.steps.last().into_iter().flatten().copied(), rank);
        for loops in [&kept, steps] {
            for n in 0..reduction.ins.len() {
                args.steps(loops.steps[n].iter().copied(), loops.rank());
            }
        }
        args.long.push(reduction.count as u64);
        let side = ABREAST * kind.per_thread;
        let mut tiles = kept.sizes.clone();
        tiles[rank - 2..].iter_mut().for_each(|size| *size = size.div_ceil(side));
        args.sizes(&tiles, rank);
        args.sizes(&steps.sizes, steps.rank());
        let sizes = [kept.sizes[rank - 2], kept.sizes[rank - 1], steps.len()];
        args.short.extend(sizes.map(|size| size as u32));
        let blocks = tiles.iter().product();
        args.launch(Kind::Pairwise(kind.clone()), [blocks, 1])
    }
}
