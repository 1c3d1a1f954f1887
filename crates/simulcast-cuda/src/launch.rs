//! How a pass is launched: which kernel for arrays that lie like this, with which arguments, in how many blocks.
//!
//! Nothing here touches a device, and no address is known: of one its alignment alone counts, so that what is decided for a
//! call serves every later one with arrays that lie alike.

use simulcast::DType;

use crate::body::Body;
use crate::loops::Loops;
use crate::source::{Access, Elementwise, Index, Kind, THREADS, Tiled};
use crate::tuning::{
    ELEMENTS_MAX, JOINED_LEAST, JOINT_LEAST, LOOPS_MAX, SECTOR_BYTES, SHARED_BYTES_MAX, SLANT_MAX,
    SQUARE_LEAST, VECTOR_BYTES,
};

mod joint;
mod pairwise;
mod reducing;

pub(crate) use self::joint::Joined;
pub(crate) use self::reducing::{Reducing, Reduction};

/// What is known of a device, and bounds that tests make smaller.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) multiprocessors: usize,
    pub(crate) elements: usize,
    pub(crate) loops: usize,
    /// Short rows are joined in results of at least so many elements.
    pub(crate) joined: usize,
    /// Several reductions are one launch from so many elements on.
    pub(crate) joint: usize,
}

impl Limits {
    pub(crate) const fn new(multiprocessors: usize) -> Self {
        Self {
            multiprocessors,
            elements: ELEMENTS_MAX,
            loops: LOOPS_MAX,
            joined: JOINED_LEAST,
            joint: JOINT_LEAST,
        }
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
    // What repeats along a loop is read from memory once. `a > b` of (16384, 16384) and a row of float32 is at 104% of a
    // copy with two, and at 98% with one (H200).
    let streamed = ins.iter().enumerate().map(|(n, own)| {
        let repeats = loops.steps[n + 1].contains(&0);
        if repeats || rank == 0 { 0 } else { own.dtype.size() }
    });
    let (read, written) = (streamed.sum::<usize>(), body.result.size());
    let is_uneven = 2 * read <= written || 4 * written <= read;
    let unroll = if is_uneven && total > 1 << 16 { 2 } else { 1 };
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
    let is_whole = out.is_aligned(loops.starts[0], vector)
        && are_whole(&loops.steps[0][..x], vector)
        && loops.sizes[x].is_multiple_of(vector);
    // Rows that begin anywhere are cut where sectors of memory begin, so that each is written by one square.
    let mut slant = if is_whole { 0 } else { (SECTOR_BYTES / body.result.size()).min(SLANT_MAX) };
    if !out.is_aligned(loops.starts[0], 1) {
        // Pairs of numbers that are aligned as each of them is.
        (vector, slant) = (1, 0);
    }
    let mut shared = 0;
    let mut ins_access = Vec::with_capacity(ins.len());
    for (n, own) in ins.iter().enumerate() {
        let steps = &loops.steps[n + 1];
        let aligned = own.is_aligned(loops.starts[n + 1], vector);
        let square = (side + slant) * (side + 1) * own.dtype.size();
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
                1 if slant == 0 && aligned && are_whole(&steps[..x], vector) => Access::Row,
                _ => Access::Strided,
            }
        });
    }
    let tiles: Vec<usize> = loops
        .sizes
        .iter()
        .enumerate()
        .map(|(at, &size)| match at {
            at if at < y => size,
            at if at == x => (size + slant).div_ceil(side),
            _ => size.div_ceil(side),
        })
        .collect();
    let mut args = addressed(body, &loops, out, ins);
    for steps in &loops.steps {
        args.steps(steps.iter().copied(), rank);
    }
    args.sizes(&tiles, rank);
    args.short.extend([loops.sizes[y] as u32, loops.sizes[x] as u32]);
    let blocks: usize = tiles.iter().product();
    let kind = Tiled { rank, index: index(&loops), vector, side, slant, ins: ins_access };
    Some(args.launch(Kind::Tiled(kind), [blocks, 1]))
}
