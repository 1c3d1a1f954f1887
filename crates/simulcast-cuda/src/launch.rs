//! How a pass is launched: which kernel for arrays that lie like this, with which arguments, in how many blocks.
//!
//! Nothing here touches a device, and no address is known: of one its alignment alone counts, so that what is decided for a
//! call serves every later one with arrays that lie alike.

use simulcast::DType;

use crate::body::Body;
use crate::loops::Loops;
use crate::source::{Access, Across, Along, Elementwise, Index, Kind, THREADS, Tiled};

/// Kernels number elements with 31 bits.
const ELEMENTS_MAX: usize = (1 << 31) - (1 << 12);
/// The most loops that a kernel has; their numbers are arguments, of which there may be 4 KiB.
const LOOPS_MAX: usize = 8;
/// The widest load and store.
pub(crate) const VECTOR_BYTES: usize = 16;
/// What the squares of transposed operands may take of shared memory.
const SHARED_BYTES_MAX: usize = 46 << 10;
/// The least elements along both sides of a square.
const SQUARE_LEAST: usize = 16;
/// Short rows are joined from so many elements on: what is launched besides takes some microseconds.
const JOINED_LEAST: usize = 1 << 21;
/// The most blocks along the second axis of a grid.
const SLICES_MAX: usize = 65535;
/// The least steps of each thread of a reduction before its rows are cut into further slices.
const SLICE_STEPS_LEAST: usize = 8;
/// The blocks of a reduction for each multiprocessor: 33 slices of 16 blocks were best on a GPU of 132.
const BLOCKS_PER_MULTIPROCESSOR: usize = 4;

/// What is known of a device, and bounds that tests make smaller.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) multiprocessors: usize,
    pub(crate) elements: usize,
    pub(crate) loops: usize,
    /// Short rows are joined in results of at least so many elements.
    pub(crate) joined: usize,
}

impl Limits {
    pub(crate) const fn new(multiprocessors: usize) -> Self {
        Self { multiprocessors, elements: ELEMENTS_MAX, loops: LOOPS_MAX, joined: JOINED_LEAST }
    }
}

/// Which array an argument is the address of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// The result of the pass.
    Out,
    /// A leaf of the pass.
    Leaf(usize),
    /// The partial values of a reduction.
    Scratch,
}

/// An array as a kernel sees it: which one, and a stride for each axis of the pass, in elements. Of its address only the
/// bits count that decide whether vectors can begin there.
#[derive(Clone, Debug)]
pub(crate) struct Array {
    pub(crate) place: Place,
    pub(crate) low_bits: usize,
    /// The bytes from the array's address to the first element.
    pub(crate) offset: isize,
    pub(crate) dtype: DType,
    pub(crate) strides: Vec<isize>,
}

/// One launch.
#[derive(Clone, Debug)]
pub(crate) struct Launch {
    pub(crate) kind: Kind,
    /// Arguments, in which the addresses of arrays are missing: they are the first of 64 bits each.
    pub(crate) args: Vec<u8>,
    /// Which addresses those are, and what is added to each.
    pub(crate) addresses: Vec<(Place, isize)>,
    pub(crate) grid: [u32; 2],
    /// Which body it runs: that of the pass, or that which joins its partial values.
    pub(crate) joins_partial: bool,
}

/// Arguments of a kernel: numbers of 64 bits, then those of 32.
struct Args {
    addresses: Vec<(Place, isize)>,
    long: Vec<u64>,
    short: Vec<u32>,
}

impl Args {
    /// The addresses of the result and of the leaves, one more where there are no leaves; then the body's numbers.
    fn new(
        body: &Body,
        out: (Place, isize),
        ins: impl IntoIterator<Item = (Place, isize)>,
    ) -> Self {
        let mut addresses = vec![out];
        addresses.extend(ins);
        let mut long = vec![0; addresses.len().max(2)];
        long.extend(&body.constants);
        Self { addresses, long, short: Vec::new() }
    }

    fn steps(&mut self, steps: impl IntoIterator<Item = isize>, count: usize) {
        let start = self.long.len();
        self.long.extend(steps.into_iter().map(|step| step as u64));
        self.long.resize(start + count.max(1), 0);
    }

    /// The divisors of loops of these sizes; a loop that is missing has size 1.
    fn sizes(&mut self, sizes: &[usize], count: usize) {
        for at in 0..count.max(1) {
            let size = sizes.get(at).copied().unwrap_or(1).max(1) as u64;
            // Sizes are below 2^31.
            let shift = (size - 1).checked_ilog2().map_or(0, |log| log + 1);
            let multiplier = ((1_u64 << 32) * ((1_u64 << shift) - size)) / size + 1;
            self.short.extend([size as u32, multiplier as u32, shift]);
        }
    }

    /// The launch of a kernel with these arguments, in so many blocks.
    fn launch(self, kind: Kind, grid: [usize; 2]) -> Launch {
        let mut args: Vec<u8> = self.long.iter().flat_map(|own| own.to_ne_bytes()).collect();
        args.extend(self.short.iter().flat_map(|own| own.to_ne_bytes()));
        args.resize(args.len().next_multiple_of(8), 0);
        // Elements are below 2^31, and blocks no more than they.
        let grid = grid.map(|blocks| blocks as u32);
        Launch { kind, args, addresses: self.addresses, grid, joins_partial: false }
    }
}

impl Array {
    /// The address of an element.
    fn at(&self, elements: isize) -> (Place, isize) {
        (self.place, self.offset + elements * self.dtype.size().cast_signed())
    }

    /// Whether vectors of so many elements can begin at an element.
    fn is_aligned(&self, elements: isize, vector: usize) -> bool {
        let bytes = self.low_bits.cast_signed() + self.at(elements).1;
        bytes % (vector * self.dtype.size()).cast_signed() == 0
    }
}

/// Whether steps are whole vectors.
fn are_whole(steps: &[isize], vector: usize) -> bool {
    steps.iter().all(|step| step % vector.cast_signed() == 0)
}

/// The launches that compute element by element.
pub(crate) fn elementwise(
    body: &Body,
    shape: &[usize],
    out: &Array,
    ins: &[Array],
    limits: &Limits,
) -> Vec<Launch> {
    if shape.contains(&0) {
        return Vec::new();
    }
    let strides: Vec<&[isize]> =
        [&out.strides[..]].into_iter().chain(ins.iter().map(|own| &own.strides[..])).collect();
    let loops = Loops::new(shape, &strides, Some(0));
    let mut launches = Vec::new();
    for loops in loops.cut(limits.elements, limits.loops) {
        let launch = tiled(body, &loops, out, ins).unwrap_or_else(|| rows(body, &loops, out, ins));
        launches.push(launch);
    }
    launches
}

/// Whether an array moves through all loops as one of contiguous elements does.
fn is_flat(loops: &Loops, array: usize) -> bool {
    let mut expected = 1_isize;
    for (&size, &step) in loops.sizes.iter().zip(&loops.steps[array]).rev() {
        if step != expected {
            return false;
        }
        expected *= size.cast_signed();
    }
    true
}

/// Whether 32 bits hold every offset that the arrays of some loops reach.
fn index(loops: &Loops) -> Index {
    let far = |steps: &Vec<isize>| {
        let along = loops.sizes.iter().zip(steps);
        along.fold(0_usize, |far, (&size, step)| {
            far.saturating_add(step.unsigned_abs().saturating_mul(size))
        })
    };
    if loops.steps.iter().all(|steps| far(steps) < 1 << 31) { Index::Narrow } else { Index::Wide }
}

/// The addresses of the result and of the leaves.
fn addressed(body: &Body, loops: &Loops, out: &Array, ins: &[Array]) -> Args {
    let starts = loops.starts.get(1..).unwrap_or(&[]);
    let ins = ins.iter().zip(starts).map(|(own, &start)| own.at(start));
    Args::new(body, out.at(loops.starts[0]), ins)
}

fn rows(body: &Body, loops: &Loops, out: &Array, ins: &[Array]) -> Launch {
    let rank = loops.rank();
    let inner = loops.sizes.last().copied().unwrap_or(1);
    let step = |array: usize| loops.steps[array].last().copied().unwrap_or(1);
    let is_out_flat = is_flat(loops, 0);
    let neighbours = (0..ins.len()).filter(|n| rank > 0 && step(n + 1) == 1);
    let widest = neighbours.map(|n| ins[n].dtype.size()).chain([body.result.size()]).max();
    let mut vector = VECTOR_BYTES / widest.unwrap_or(VECTOR_BYTES).max(1);
    if step(0) != 1 {
        vector = 1;
    }
    let outer = |array: usize| &loops.steps[array][..rank.saturating_sub(1)];
    while vector > 1
        && (!out.is_aligned(loops.starts[0], vector)
            || !is_out_flat && (!inner.is_multiple_of(vector) || !are_whole(outer(0), vector)))
    {
        vector /= 2;
    }
    let is_ragged = !inner.is_multiple_of(vector);
    let access = |n: usize| {
        let steps = &loops.steps[n + 1];
        let aligned = ins[n].is_aligned(loops.starts[n + 1], vector);
        if steps.iter().all(|&step| step == 0) {
            Access::Scalar
        } else if is_out_flat && *steps == loops.steps[0] && aligned {
            Access::Flat
        } else if is_ragged {
            Access::Strided
        } else {
            match step(n + 1) {
                0 => Access::Repeated,
                1 if aligned && are_whole(outer(n + 1), vector) => Access::Row,
                1 => Access::Loose,
                _ => Access::Strided,
            }
        }
    };
    let ins_access: Vec<Access> = (0..ins.len()).map(access).collect();
    let out_access = match step(0) {
        _ if is_out_flat => Access::Flat,
        1 => Access::Row,
        _ => Access::Strided,
    };
    let elements = loops.len();
    let total = elements.div_ceil(vector);
    // One vector a thread where as much is read as written, two where little is read.
    // What repeats along a loop is read from memory once.
    let streamed = ins.iter().enumerate().map(|(n, own)| {
        let repeats = loops.steps[n + 1].contains(&0);
        if repeats || rank == 0 { 0 } else { own.dtype.size() }
    });
    let unroll =
        if 2 * streamed.sum::<usize>() <= body.result.size() && total > 1 << 16 { 2 } else { 1 };
    let mut args = addressed(body, loops, out, ins);
    args.steps(loops.steps[0].iter().copied(), rank);
    for n in 0..ins.len().max(1) {
        args.steps(loops.steps.get(n + 1).into_iter().flatten().copied(), rank);
    }
    let mut sizes = loops.sizes.clone();
    if let Some(last) = sizes.last_mut().filter(|_| !is_ragged) {
        *last /= vector;
    }
    args.sizes(&sizes, rank);
    args.short.extend([total as u32, elements as u32]);
    let blocks = total.div_ceil(THREADS as usize * unroll);
    let kind = Elementwise {
        rank,
        index: index(loops),
        vector,
        unroll,
        is_ragged,
        out: out_access,
        ins: ins_access,
    };
    args.launch(Kind::Elementwise(kind), [blocks, 1])
}

/// The launch by squares, where an operand is transposed.
fn tiled(body: &Body, loops: &Loops, out: &Array, ins: &[Array]) -> Option<Launch> {
    let rank = loops.rank();
    let inner = rank.checked_sub(1).filter(|&inner| {
        inner > 0 && loops.steps[0][inner] == 1 && loops.sizes[inner] >= SQUARE_LEAST
    })?;
    // The loop along which an operand's elements are neighbours, where that is not the innermost.
    let turned = |n: usize| {
        let steps = &loops.steps[n + 1];
        let far = !(0..=1).contains(&steps[inner]);
        (0..inner).find(|&at| far && steps[at] == 1 && loops.sizes[at] >= SQUARE_LEAST)
    };
    let other = (0..ins.len()).find_map(turned)?;
    let is_turned: Vec<bool> = (0..ins.len()).map(|n| turned(n) == Some(other)).collect();
    let mut loops = loops.clone();
    loops.move_loop(other, rank - 2);
    let (y, x) = (rank - 2, rank - 1);
    let sizes = ins.iter().enumerate().filter(|(n, _)| is_turned[*n] || loops.steps[n + 1][x] == 1);
    let widest = sizes.map(|(_, own)| own.dtype.size()).chain([body.result.size()]).max()?;
    let side = if widest >= 8 { 32 } else { 64 };
    let mut vector = (VECTOR_BYTES / widest).min(8);
    while vector > 1
        && !(out.is_aligned(loops.starts[0], vector) && are_whole(&loops.steps[0][..x], vector))
    {
        vector /= 2;
    }
    if !loops.sizes[x].is_multiple_of(vector) {
        // Neighbouring threads take neighbouring elements.
        vector = 1;
    }
    let mut shared = 0;
    let mut ins_access = Vec::with_capacity(ins.len());
    for (n, own) in ins.iter().enumerate() {
        let steps = &loops.steps[n + 1];
        let aligned = own.is_aligned(loops.starts[n + 1], vector);
        let square = side * (side + 1) * own.dtype.size();
        ins_access.push(if steps.iter().all(|&step| step == 0) {
            Access::Scalar
        } else if is_turned[n] && shared + square <= SHARED_BYTES_MAX {
            shared += square;
            let others: Vec<isize> = steps
                .iter()
                .enumerate()
                .filter(|(at, _)| *at != y)
                .map(|(_, &step)| step)
                .collect();
            let whole = aligned
                && vector > 1
                && are_whole(&others, vector)
                && loops.sizes[y].is_multiple_of(vector);
            Access::Transposed { vectors: whole }
        } else {
            match steps[x] {
                0 => Access::Repeated,
                1 if aligned && are_whole(&steps[..x], vector) => Access::Row,
                _ => Access::Strided,
            }
        });
    }
    let tiles: Vec<usize> = loops
        .sizes
        .iter()
        .enumerate()
        .map(|(at, &size)| if at < y { size } else { size.div_ceil(side) })
        .collect();
    let mut args = addressed(body, &loops, out, ins);
    for steps in &loops.steps {
        args.steps(steps.iter().copied(), rank);
    }
    args.sizes(&tiles, rank);
    args.short.extend([loops.sizes[y] as u32, loops.sizes[x] as u32]);
    let blocks: usize = tiles.iter().product();
    let kind = Tiled { rank, index: index(&loops), vector, side, ins: ins_access };
    Some(args.launch(Kind::Tiled(kind), [blocks, 1]))
}

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
            let plan = Plan::new(&kept, &reduced, main, ins, limits);
            let slices: usize = plan.slices.iter().sum();
            if slices > 1 {
                scratch = scratch.max(slices * kept.len() * element);
            }
            parts.push(Part { kept, reduced: reduced.clone(), plan });
        }
        Self { parts, scratch }
    }

    /// The launches.
    pub(crate) fn launches(&self, reduction: &Reduction<'_>, limits: &Limits) -> Vec<Launch> {
        let mut launches = Vec::new();
        let Some(element) = reduction.body.element else { return launches };
        for part in &self.parts {
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
            unroll = 4;
            blocks = kept.len().div_ceil((THREADS / group) as usize);
        } else {
            let vectors = kept.len() / vector;
            group = vectors.next_power_of_two().clamp(1, THREADS as usize) as u32;
            unroll = (32 / vector).clamp(2, 8);
            blocks = vectors.div_ceil(group as usize);
        }
        // Threads that take steps side by side.
        let abreast = if is_along { group } else { THREADS / group } as usize * unroll;
        let wanted = (BLOCKS_PER_MULTIPROCESSOR * limits.multiprocessors).div_ceil(blocks.max(1));
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
