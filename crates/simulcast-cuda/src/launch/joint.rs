//! Several reductions of the same elements in one launch, after which each joins its partial values.

use simulcast::DType;

use super::{Args, Array, Launch, Limits, Place, are_whole};
use crate::body::Body;
use crate::loops::Loops;
use crate::source::{Access, Index, Joint, Kind, Partial, THREADS};
use crate::tuning::{JOINT_BLOCKS, JOINT_STEPS_LEAST, SLICES_MAX, VECTOR_BYTES};

/// Reductions that are computed together, as loops over their elements.
pub(crate) struct Joined {
    loops: Loops,
    kind: Joint,
    slices: usize,
    blocks: usize,
    /// Which of the reductions those are.
    pub(crate) chosen: Vec<usize>,
    /// For each of those, where its partial values begin, in bytes.
    offsets: Vec<usize>,
    /// The bytes of all partial values.
    pub(crate) bytes: usize,
}

/// Partial values of a reduction, and how they become its result.
pub(crate) struct Rest {
    pub(crate) shape: Vec<usize>,
    pub(crate) kept: Vec<bool>,
    pub(crate) from: Array,
    /// The steps of the result along these axes, and where its first element is, in elements.
    pub(crate) to: Vec<isize>,
    pub(crate) start: isize,
}

impl Joined {
    /// None where fewer than two of the reductions can be computed together. `outs` are the strides of their results,
    /// 0 along what is reduced, and `elements` what their values are joined in.
    pub(crate) fn new(
        shape: &[usize],
        ins: &[Array],
        outs: &[Vec<isize>],
        elements: &[DType],
        limits: &Limits,
    ) -> Option<Self> {
        let count = ins.len();
        let weight = |own: &Array| {
            let axes = shape.iter().zip(&own.strides).filter(|(_, stride)| **stride != 0);
            axes.map(|(&size, _)| size).fold(own.dtype.size(), usize::saturating_mul)
        };
        let main = (0..count).max_by_key(|&n| (weight(&ins[n]), count - n))?;
        let strides: Vec<&[isize]> =
            ins.iter().map(|own| &own.strides[..]).chain(outs.iter().map(Vec::as_slice)).collect();
        let loops = Loops::new(shape, &strides, Some(main));
        let rank = loops.rank();
        let inner = rank.checked_sub(1)?;
        let elements_all = loops.len();
        let fits = elements_all >= limits.joint.max(1) && elements_all <= limits.elements;
        if !fits || rank > limits.loops || loops.steps[main][inner] != 1 {
            return None;
        }
        let (width, rows) = (loops.sizes[inner], elements_all / loops.sizes[inner]);
        let widest =
            (0..count).filter(|&n| loops.steps[n][inner] == 1).map(|n| ins[n].dtype.size());
        let mut vector = VECTOR_BYTES / widest.max()?;
        while !width.is_multiple_of(vector) {
            vector /= 2;
        }
        let vectors = width / vector;
        if vectors < 32 {
            return None;
        }
        let (mut chosen, mut values) = (Vec::new(), Vec::new());
        for n in 0..outs.len() {
            let steps = &loops.steps[count + n];
            let is_one_row = steps[..inner].iter().all(|&step| step == 0);
            values.push(match (steps[inner] != 0, is_one_row) {
                (false, true) => Partial::All,
                (false, false) => Partial::Rows,
                (true, true) => Partial::Columns,
                (true, false) => continue,
            });
            chosen.push(n);
        }
        if chosen.len() < 2 {
            return None;
        }
        let access = |n: usize| {
            let steps = &loops.steps[n];
            let aligned = ins[n].is_aligned(loops.starts[n], vector);
            if steps.iter().all(|&step| step == 0) {
                return Access::Scalar;
            }
            match steps[inner] {
                0 => Access::Repeated,
                1 if aligned && are_whole(&steps[..inner], vector) => Access::Row,
                1 => Access::Loose,
                _ => Access::Strided,
            }
        };
        let columns = vectors.next_power_of_two().clamp(32, THREADS as usize) as u32;
        let unroll = if count > 4 { 2 } else { 4 };
        let blocks = vectors.div_ceil(columns as usize);
        let steps = (THREADS / columns) as usize * unroll;
        let wanted = (JOINT_BLOCKS * limits.multiprocessors).div_ceil(blocks);
        let slices = wanted.min(rows / (steps * JOINT_STEPS_LEAST)).clamp(1, SLICES_MAX);
        let slices = rows.div_ceil(rows.div_ceil(slices));
        let (mut offsets, mut bytes) = (Vec::new(), 0_usize);
        for (&n, value) in chosen.iter().zip(&values) {
            offsets.push(bytes);
            let partial = match value {
                Partial::All => slices * blocks,
                Partial::Rows => blocks * (columns / 32) as usize * rows,
                Partial::Columns => slices * width,
            };
            bytes += (partial * elements[n].size()).next_multiple_of(256);
        }
        let ins = (0..count).map(access).collect();
        let kind = Joint { index: Index::Wide, rank, vector, columns, unroll, ins, values };
        Some(Self { loops, kind, slices, blocks, chosen, offsets, bytes })
    }

    /// The launch that makes the partial values.
    pub(crate) fn launch(&self, body: &Body, ins: &[Array]) -> Launch {
        let Self { loops, kind, slices, blocks, offsets, .. } = self;
        let starts = ins.iter().zip(&loops.starts).map(|(own, &start)| own.at(start));
        let mut args = Args::new(body, (Place::Out, 0), starts);
        args.long.extend(offsets.iter().map(|&offset| offset as u64));
        for n in 0..ins.len() {
            args.steps(loops.steps[n].iter().copied(), kind.rank);
        }
        let outer = kind.rank - 1;
        args.sizes(&loops.sizes[..outer], outer);
        let rows: usize = loops.sizes[..outer].iter().product();
        let vectors = loops.sizes[outer] / kind.vector;
        let short = [rows, vectors, rows.div_ceil(*slices), *blocks];
        args.short.extend(short.map(|own| own as u32));
        args.launch(Kind::Joint(kind.clone()), [*blocks, *slices])
    }

    /// The partial values of one of the chosen reductions; `count` operands come before the results among the loops.
    pub(crate) fn rest(&self, at: usize, count: usize, element: DType) -> Rest {
        let Self { loops, kind, slices, blocks, .. } = self;
        let steps = &loops.steps[count + self.chosen[at]];
        let outer = kind.rank - 1;
        let width = loops.sizes[outer];
        let rows: usize = loops.sizes[..outer].iter().product();
        let (mut shape, mut kept, mut from, mut to) =
            (Vec::new(), vec![false], Vec::new(), vec![0]);
        match kind.values[at] {
            Partial::All => {
                shape.push(slices * blocks);
                from.push(1);
            }
            Partial::Columns => {
                shape.extend([*slices, width]);
                from.extend([width.cast_signed(), 1]);
                kept.push(true);
                to.push(steps[outer]);
            }
            Partial::Rows => {
                shape.push(blocks * (kind.columns / 32) as usize);
                from.push(rows.cast_signed());
                shape.extend(&loops.sizes[..outer]);
                from.extend(crate::plan::contiguous(&loops.sizes[..outer]));
                kept.extend(steps[..outer].iter().map(|&step| step != 0));
                to.extend(&steps[..outer]);
            }
        }
        let offset = self.offsets[at].cast_signed();
        let from =
            Array { place: Place::Leaf(0), low_bits: 0, offset, dtype: element, strides: from };
        Rest { shape, kept, from, to, start: loops.starts[count + self.chosen[at]] }
    }
}
