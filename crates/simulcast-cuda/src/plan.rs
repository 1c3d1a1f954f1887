//! A whole program for arrays that lie like this: its passes, the memory that they take, their launches.

use simulcast::DType;
use simulcast::program::lowered::{LeafSource, Pass, PassLeaf};

use crate::body::{Body, Joining};
use crate::launch::{Array, Launch, Limits, Place, Reducing, Reduction, elementwise};

/// How an array lies: its sizes, its strides in elements, and the low bits of its address.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Layout {
    pub(crate) shape: Vec<usize>,
    pub(crate) strides: Vec<isize>,
    pub(crate) low_bits: usize,
}

impl Layout {
    /// Memory of a new array: contiguous, and aligned.
    pub(crate) fn fresh(shape: &[usize]) -> Self {
        Self { shape: shape.to_vec(), strides: contiguous(shape), low_bits: 0 }
    }
}

/// The strides of an array whose elements lie row by row.
pub(crate) fn contiguous(shape: &[usize]) -> Vec<isize> {
    let mut strides = vec![1_isize; shape.len()];
    for at in (1..shape.len()).rev() {
        strides[at - 1] = strides[at].wrapping_mul(shape[at].max(1).cast_signed());
    }
    strides
}

/// One pass, ready to be launched.
#[derive(Debug)]
pub(crate) struct PlannedPass {
    pub(crate) body: Body,
    /// What joins partial values, of a reduction.
    pub(crate) partial: Option<Body>,
    pub(crate) sources: Vec<LeafSource>,
    pub(crate) launches: Vec<Launch>,
    /// The bytes of partial values.
    pub(crate) scratch_bytes: usize,
    /// The bytes of the result, and whether it is the program's.
    pub(crate) result_bytes: usize,
    pub(crate) is_last: bool,
    /// The passes whose results no later pass reads.
    pub(crate) spent: Vec<usize>,
}

/// All passes of a program.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) passes: Vec<PlannedPass>,
    /// The shape of the result.
    pub(crate) shape: Vec<usize>,
}

/// Bytes of so many elements, where they can be counted.
pub(crate) fn bytes_of(shape: &[usize], dtype: DType) -> Option<usize> {
    let bytes = shape.iter().try_fold(dtype.size(), |bytes, &size| bytes.checked_mul(size))?;
    isize::try_from(bytes).ok().map(isize::cast_unsigned)
}

impl Plan {
    /// The plan of some passes, for operands that lie like this, into `out`, to whose shape the result stretches; or into
    /// a new array. None where a value is larger than memory can be.
    pub(crate) fn new(
        passes: &[Pass],
        operands: &[Layout],
        out: Option<&Layout>,
        limits: &Limits,
    ) -> Option<Self> {
        let last = passes.len().checked_sub(1)?;
        let shape = passes[last].result_shape().to_vec();
        let mut planned: Vec<PlannedPass> = Vec::with_capacity(passes.len() + 1);
        let is_stretched = out.is_some_and(|out| out.shape != shape);
        for (at, pass) in passes.iter().enumerate() {
            let copies = at == last && is_stretched && pass.reduction().is_some();
            let layout = match out {
                Some(out) if at == last && !copies => out.clone(),
                _ => Layout::fresh(pass.result_shape()),
            };
            let own = |source: LeafSource| match source {
                LeafSource::Operand(operand) => Some(operands.get(operand)?.clone()),
                LeafSource::Pass(pass) => Some(Layout::fresh(passes.get(pass)?.result_shape())),
            };
            let mut ins = Vec::with_capacity(pass.leaves().len());
            for (n, leaf) in pass.leaves().iter().enumerate() {
                let from = own(leaf.source())?;
                let axis = |axis: &Option<usize>| axis.map_or(0, |axis| from.strides[axis]);
                let strides: Vec<isize> = leaf.axes().iter().map(axis).collect();
                ins.push(array(Place::Leaf(n), leaf.dtype(), from.low_bits, strides));
            }
            let mut one = plan_pass(pass, &layout, ins, limits)?;
            one.sources = pass.leaves().iter().map(PassLeaf::source).collect();
            one.result_bytes = bytes_of(pass.result_shape(), pass.dtype())?;
            one.is_last = at == last && !copies;
            planned.push(one);
            if let Some(out) = out.filter(|_| copies) {
                planned.push(copy(pass.dtype(), &Layout::fresh(&shape), out, limits));
                let copied = planned.last_mut()?;
                copied.sources = vec![LeafSource::Pass(at)];
            }
        }
        let mut read = vec![false; planned.len()];
        for at in (0..planned.len()).rev() {
            for source in planned[at].sources.clone() {
                if let LeafSource::Pass(pass) = source
                    && !std::mem::replace(&mut read[pass], true)
                {
                    planned[at].spent.push(pass);
                }
            }
        }
        Some(Self { passes: planned, shape })
    }
}

fn array(place: Place, dtype: DType, low_bits: usize, strides: Vec<isize>) -> Array {
    Array { place, low_bits, offset: 0, dtype, strides }
}

/// Strides along a larger shape, aligned on the right; 0 where an axis repeats.
fn stretched(own: &[usize], strides: &[isize], shape: &[usize]) -> Vec<isize> {
    let missing = shape.len().saturating_sub(own.len());
    let mut all = vec![0; missing];
    let axes = own.iter().zip(strides).zip(&shape[missing.min(shape.len())..]);
    all.extend(axes.map(|((&size, &stride), &to)| if size == to { stride } else { 0 }));
    all
}

/// The launches of one pass; where its result goes is `out`, which may be larger than an element-wise result.
fn plan_pass(pass: &Pass, out: &Layout, ins: Vec<Array>, limits: &Limits) -> Option<PlannedPass> {
    let body = Body::new(pass);
    let mut planned = PlannedPass {
        body,
        partial: None,
        sources: Vec::new(),
        launches: Vec::new(),
        scratch_bytes: 0,
        result_bytes: 0,
        is_last: false,
        spent: Vec::new(),
    };
    let Some(reduction) = pass.reduction() else {
        let whole = |own: Array| {
            let strides = stretched(pass.shape(), &own.strides, &out.shape);
            Array { strides, ..own }
        };
        let ins: Vec<Array> = ins.into_iter().map(whole).collect();
        let to = array(Place::Out, pass.dtype(), out.low_bits, out.strides.clone());
        planned.launches = elementwise(&planned.body, &out.shape, &to, &ins, limits);
        return Some(planned);
    };
    let joining =
        Joining { fold: reduction.fold(), element: reduction.element(), result: pass.dtype() };
    // The strides of the result along the axes of the pass; an axis that is reduced is one of size 1, or none.
    let kept = reduction.kept();
    let every = out.strides.len() == kept.len();
    let mut own = out.strides.iter().copied();
    let strides = kept.iter().map(|&kept| match (kept, every) {
        (true, _) => own.next().unwrap_or(0),
        (false, true) => own.next().map_or(0, |_| 0),
        (false, false) => 0,
    });
    let to = array(Place::Out, pass.dtype(), out.low_bits, strides.collect());
    reduced(&mut planned, joining, pass.shape(), kept, reduction.count(), &to, &ins, limits);
    Some(planned)
}

#[expect(clippy::too_many_arguments, reason = "a reduction is all of these")]
fn reduced(
    planned: &mut PlannedPass,
    joining: Joining,
    shape: &[usize],
    kept: &[bool],
    count: usize,
    out: &Array,
    ins: &[Array],
    limits: &Limits,
) {
    let partial = Body::reduction(joining.element, joining);
    let reduction =
        Reduction { body: &planned.body, partial: &partial, shape, kept, count, out, ins };
    let reducing = Reducing::new(&reduction, limits);
    planned.launches = reducing.launches(&reduction, limits);
    planned.scratch_bytes = reducing.scratch;
    planned.partial = Some(partial);
}

/// A pass that copies an array into another, to whose shape it stretches.
pub(crate) fn copy(dtype: DType, from: &Layout, out: &Layout, limits: &Limits) -> PlannedPass {
    let body = Body::copy(dtype);
    let strides = stretched(&from.shape, &from.strides, &out.shape);
    let source = array(Place::Leaf(0), dtype, from.low_bits, strides);
    let to = array(Place::Out, dtype, out.low_bits, out.strides.clone());
    let launches = elementwise(&body, &out.shape, &to, &[source], limits);
    PlannedPass {
        body,
        partial: None,
        sources: vec![LeafSource::Operand(0)],
        launches,
        scratch_bytes: 0,
        result_bytes: 0,
        is_last: true,
        spent: Vec::new(),
    }
}

/// A pass that sums an array to a shape that broadcasts to its own; `out` has that shape.
pub(crate) fn sum_to(dtype: DType, from: &Layout, out: &Layout, limits: &Limits) -> PlannedPass {
    let element = crate::body::widened(dtype);
    let joining = Joining { fold: simulcast::program::Fold::Sum, element, result: dtype };
    let strides = stretched(&out.shape, &out.strides, &from.shape);
    let missing = from.shape.len().saturating_sub(out.shape.len());
    let kept: Vec<bool> = (0..from.shape.len())
        .map(|at| at >= missing && out.shape[at - missing] == from.shape[at])
        .collect();
    let axes = from.shape.iter().zip(&kept).filter(|axis| !axis.1);
    let count = axes.map(|axis| axis.0).product();
    let mut planned = PlannedPass {
        body: Body::reduction(dtype, joining),
        partial: None,
        sources: vec![LeafSource::Operand(0)],
        launches: Vec::new(),
        scratch_bytes: 0,
        result_bytes: 0,
        is_last: true,
        spent: Vec::new(),
    };
    let to = array(Place::Out, dtype, out.low_bits, strides);
    let source = array(Place::Leaf(0), dtype, from.low_bits, from.strides.clone());
    reduced(&mut planned, joining, &from.shape, &kept, count, &to, &[source], limits);
    planned
}
