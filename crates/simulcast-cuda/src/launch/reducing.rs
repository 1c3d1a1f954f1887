//! How a reduction is launched: in slices whose partial values another launch joins, or by squares of results.

use simulcast::DType;

use super::pairwise::Squares;
use super::{Args, Array, Launch, Limits, Place, are_whole};
use crate::body::Body;
use crate::loops::Loops;
use crate::source::{Access, Across, Along, Index, Kind, THREADS};
use crate::tuning::{
    BLOCKS_ACROSS, BLOCKS_ALONG, LONG_STEPS, SLICE_STEPS_LEAST, SLICES_MAX, VECTOR_BYTES,
};

/// A reduction about to be launched.
pub(crate) struct Reduction<'r> {
    pub(crate) body: &'r Body,
    /// What joins its partial values.
    pub(crate) partial: &'r Body,
    pub(crate) shape: &'r [usize],
    /// For each axis, whether the result has it.
    pub(crate) kept: &'r [bool],
    /// How many elements become one.
    pub(crate) count: usize,
    /// The result; its strides along reduced axes do not count.
    pub(crate) out: &'r Array,
    pub(crate) ins: &'r [Array],
}

/// What a reduction takes: the bytes of its partial values, and its launches.
pub(crate) struct Reducing {
    parts: Vec<Part>,
    pub(crate) scratch: usize,
}

/// A part of the results, cut so that a kernel can number them.
struct Part {
    kept: Loops,
    /// The loops over what is reduced, in parts.
    reduced: Vec<Loops>,
    plan: Plan,
    /// Where the results are computed by squares.
    squares: Option<Squares>,
}

/// How the parts of the same results are computed.
#[derive(Clone)]
struct Plan {
    is_along: bool,
    vector: usize,
    group: u32,
    unroll: usize,
    ins: Vec<Access>,
    /// How many slices each part of the reduced loops is cut into.
    slices: Vec<usize>,
}

impl Reducing {
    pub(crate) fn new(reduction: &Reduction<'_>, limits: &Limits) -> Self {
        let Reduction { body, shape, kept, out, ins, .. } = *reduction;
        if shape.iter().zip(kept).any(|(&size, &kept)| kept && size == 0) {
            return Self { parts: Vec::new(), scratch: 0 };
        }
        let of = |keeps: bool| {
            let axes: Vec<usize> = (0..shape.len()).filter(|&at| kept[at] == keeps).collect();
            let shape: Vec<usize> = axes.iter().map(|&at| shape[at]).collect();
            let strides = |own: &Array| axes.iter().map(|&at| own.strides[at]).collect();
            let mut all: Vec<Vec<isize>> = ins.iter().map(strides).collect();
            all.push(if keeps { strides(out) } else { vec![0; axes.len()] });
            (shape, all)
        };
        // The operand of which most is read decides the order.
        let weight = |own: &Array| {
            let axes = shape.iter().zip(&own.strides).filter(|(_, stride)| **stride != 0);
            axes.map(|(&size, _)| size).fold(own.dtype.size(), usize::saturating_mul)
        };
        let main = (0..ins.len()).max_by_key(|&n| (weight(&ins[n]), ins.len() - n));
        let loops = |keeps: bool| {
            let (shape, strides) = of(keeps);
            let strides: Vec<&[isize]> = strides.iter().map(Vec::as_slice).collect();
            Loops::new(&shape, &strides, main)
        };
        let (kept, reduced) = (loops(true), loops(false));
        let reduced = if reduced.len() == 0 {
            // Nothing is reduced: one part without steps.
            vec![Loops {
                sizes: vec![0],
                steps: vec![vec![0]; ins.len() + 1],
                starts: reduced.starts,
            }]
        } else {
            reduced.cut(limits.elements, limits.loops)
        };
        let (mut parts, mut scratch) = (Vec::new(), 0);
        let element = body.element.map_or(1, DType::size);
        for kept in kept.cut(limits.elements, limits.loops) {
            if let Some(squares) = Squares::new(body, &kept, &reduced, (out, ins), limits) {
                let plan = Plan::alone(reduced.len());
                parts.push(Part { kept, reduced: reduced.clone(), plan, squares: Some(squares) });
                continue;
            }
            let plan = Plan::new(&kept, &reduced, main, ins, limits);
            let slices: usize = plan.slices.iter().sum();
            if slices > 1 {
                scratch = scratch.max(slices * kept.len() * element);
            }
            parts.push(Part { kept, reduced: reduced.clone(), plan, squares: None });
        }
        Self { parts, scratch }
    }

    /// The launches.
    pub(crate) fn launches(&self, reduction: &Reduction<'_>, limits: &Limits) -> Vec<Launch> {
        let mut launches = Vec::new();
        let Some(element) = reduction.body.element else { return launches };
        for part in &self.parts {
            if let (Some(squares), [steps]) = (&part.squares, &part.reduced[..]) {
                launches.push(squares.launch(reduction, &part.kept, steps));
                continue;
            }
            let slices: usize = part.plan.slices.iter().sum();
            let outputs = part.kept.len();
            let mut done = 0;
            for (reduced, &own) in part.reduced.iter().zip(&part.plan.slices) {
                let to = (slices > 1).then(|| done * outputs * element.size());
                launches.push(part.launch(reduction, reduced, own, to));
                done += own;
            }
            if slices > 1 {
                // The partial values of each result are joined by a reduction over the slices.
                let out = reduction.out;
                let result = part.kept.steps.last().cloned().unwrap_or_default();
                let start = part.kept.starts.last().copied().unwrap_or(0);
                let mut strides = vec![0];
                strides.extend(&result);
                let mut contiguous = vec![1_isize; result.len()];
                for at in (1..result.len()).rev() {
                    contiguous[at - 1] = contiguous[at] * part.kept.sizes[at].cast_signed();
                }
                let mut from = vec![outputs.cast_signed()];
                from.extend(&contiguous);
                let mut shape = vec![slices];
                shape.extend(&part.kept.sizes);
                let mut kept = vec![false];
                kept.resize(shape.len(), true);
                let joined = Reduction {
                    body: reduction.partial,
                    partial: reduction.partial,
                    shape: &shape,
                    kept: &kept,
                    count: reduction.count,
                    out: &Array { offset: out.at(start).1, strides, ..out.clone() },
                    ins: &[Array {
                        place: Place::Scratch,
                        low_bits: 0,
                        offset: 0,
                        dtype: element,
                        strides: from,
                    }],
                };
                let one = Limits { multiprocessors: 0, ..*limits };
                let last = Self::new(&joined, &one);
                launches.extend(
                    last.launches(&joined, &one)
                        .into_iter()
                        .map(|launch| Launch { joins_partial: true, ..launch }),
                );
            }
        }
        launches
    }
}

impl Plan {
    /// The plan of results that are computed otherwise.
    fn alone(parts: usize) -> Self {
        let (ins, slices) = (Vec::new(), vec![1; parts]);
        Self { is_along: true, vector: 1, group: 1, unroll: 1, ins, slices }
    }

    fn new(
        kept: &Loops,
        reduced: &[Loops],
        main: Option<usize>,
        ins: &[Array],
        limits: &Limits,
    ) -> Self {
        let first = &reduced[0];
        let inner = |loops: &Loops, n: usize| loops.steps[n].last().copied().unwrap_or(0);
        // Along the results where neighbours of the main operand are different results.
        let is_along = match main {
            Some(main) => {
                let (own, other) = (inner(first, main), inner(kept, main));
                own == 1 || other != 1 && (other == 0 || own != 0 && own.abs() <= other.abs())
            }
            None => true,
        };
        let loops = if is_along { first } else { kept };
        let len = loops.sizes.last().copied().unwrap_or(1);
        let widest =
            (0..ins.len()).filter(|&n| inner(loops, n) == 1).map(|n| ins[n].dtype.size()).max();
        let mut vector = widest.map_or(1, |size| VECTOR_BYTES / size);
        let is_whole =
            |own: &Loops| own.sizes.last().is_none_or(|size| size.is_multiple_of(vector));
        let whole = if is_along { reduced.iter().all(is_whole) } else { is_whole(kept) };
        if !whole {
            while !len.is_multiple_of(vector) {
                vector /= 2;
            }
            if is_along
                && !reduced
                    .iter()
                    .all(|own| own.sizes.last().is_none_or(|size| size.is_multiple_of(vector)))
            {
                vector = 1;
            }
        }
        let access = |n: usize| {
            let all = [kept].into_iter().chain(reduced);
            if all.clone().all(|loops| loops.steps[n].iter().all(|&step| step == 0)) {
                return Access::Scalar;
            }
            let whole = all.clone().all(|own| {
                let steps = &own.steps[n];
                let is_inner = std::ptr::eq(own, kept) != is_along;
                let outer =
                    if is_inner { &steps[..steps.len().saturating_sub(1)] } else { &steps[..] };
                are_whole(outer, vector) && ins[n].is_aligned(own.starts[n], vector)
            });
            match inner(loops, n) {
                0 => Access::Repeated,
                1 if whole => Access::Row,
                1 => Access::Loose,
                _ => Access::Strided,
            }
        };
        let accesses: Vec<Access> = (0..ins.len()).map(access).collect();
        let vectors = |own: &Loops| if is_along { own.len() / vector } else { own.len() };
        let total: usize = reduced.iter().map(vectors).sum();
        let (group, unroll, blocks);
        if is_along {
            // As many threads as give each about four vectors.
            let wanted = total.div_ceil(4).next_power_of_two();
            group = if wanted > 64 { THREADS } else { wanted.clamp(1, 32) as u32 };
            unroll = if total >= LONG_STEPS * group as usize { 8 } else { 4 };
            blocks = kept.len().div_ceil((THREADS / group) as usize);
        } else {
            let vectors = kept.len() / vector;
            group = vectors.next_power_of_two().clamp(1, THREADS as usize) as u32;
            blocks = vectors.div_ceil(group as usize);
            let most = if blocks < limits.multiprocessors { 4 } else { 8 };
            unroll = (32 / vector).clamp(2, most);
        }
        // Threads that take steps side by side.
        let abreast = if is_along { group } else { THREADS / group } as usize * unroll;
        let blocks_wanted = if is_along { BLOCKS_ALONG } else { BLOCKS_ACROSS };
        let wanted = (blocks_wanted * limits.multiprocessors).div_ceil(blocks.max(1));
        let slices = |own: &Loops| {
            let most = vectors(own) / (abreast * SLICE_STEPS_LEAST);
            wanted.min(most).clamp(1, SLICES_MAX)
        };
        let slices = reduced.iter().map(slices).collect();
        Self { is_along, vector, group, unroll, ins: accesses, slices }
    }
}

impl Part {
    /// The launch of one part of the reduced loops, to partial values at `to`, or to the results.
    fn launch(
        &self,
        reduction: &Reduction<'_>,
        reduced: &Loops,
        slices: usize,
        to: Option<usize>,
    ) -> Launch {
        let Self { kept, plan, .. } = self;
        let count = reduction.ins.len();
        let start = kept.starts.last().copied().unwrap_or(0);
        let out = match to {
            Some(bytes) => (Place::Scratch, bytes.cast_signed()),
            None => reduction.out.at(start),
        };
        let ins = reduction.ins.iter().enumerate();
        let mut args = Args::new(
            reduction.body,
            out,
            ins.map(|(n, own)| own.at(kept.starts[n] + reduced.starts[n])),
        );
        let (ranks, none) = ((kept.rank(), reduced.rank()), Vec::new());
        args.steps(kept.steps.last().unwrap_or(&none).iter().copied(), ranks.0);
        for n in 0..count.max(1) {
            let own = if count == 0 { &none } else { &kept.steps[n] };
            args.steps(own.iter().copied(), ranks.0);
        }
        for n in 0..count.max(1) {
            let own = if count == 0 { &none } else { &reduced.steps[n] };
            args.steps(own.iter().copied(), ranks.1);
        }
        args.long.push(reduction.count as u64);
        let in_vectors = |loops: &Loops, vectors: bool| {
            let mut sizes = loops.sizes.clone();
            if let Some(last) = sizes.last_mut().filter(|_| vectors) {
                *last /= plan.vector;
            }
            sizes
        };
        let kept_sizes = in_vectors(kept, !plan.is_along);
        let reduced_sizes = in_vectors(reduced, plan.is_along);
        args.sizes(&kept_sizes, ranks.0);
        args.sizes(&reduced_sizes, ranks.1);
        let outputs: usize = kept_sizes.iter().product();
        let total: usize = reduced_sizes.iter().product();
        let slice = total.div_ceil(slices).max(1);
        args.short.extend([outputs as u32, total as u32, slice as u32, 0]);
        let finishes = to.is_none();
        let Plan { is_along, vector, group, unroll, ref ins, .. } = *plan;
        // Loops over 64 bits are strength-reduced: 98% of a copy over a leading axis, and 87% with 32 bits (H200).
        let index = Index::Wide;
        let (kept, reduced, ins) = (ranks.0, ranks.1, ins.clone());
        let (kind, side) = if is_along {
            let kind = Along { index, kept, reduced, vector, group, unroll, finishes, ins };
            (Kind::Along(kind), THREADS / group)
        } else {
            let columns = group;
            let kind = Across { index, kept, reduced, vector, columns, unroll, finishes, ins };
            (Kind::Across(kind), group)
        };
        let blocks = outputs.div_ceil(side as usize);
        args.launch(kind, [blocks, slices])
    }
}
