//! A whole program for arrays that lie like this: its passes, the memory that they take, their launches.

use simulcast::DType;
use simulcast::program::lowered::{LeafSource, Pass};

use crate::body::{Body, Joining};
use crate::launch::{Array, Launch, Limits, Place, Reducing, Reduction, VECTOR_BYTES, elementwise};

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
    /// Whether it repeats a short row for a pass that joins its rows.
    pub(crate) is_expansion: bool,
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
        // Where the passes of the program are among those that are planned.
        let mut places: Vec<usize> = Vec::with_capacity(passes.len());
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
            let mut sources: Vec<LeafSource> = Vec::with_capacity(ins.len());
            for leaf in pass.leaves() {
                sources.push(match leaf.source() {
                    LeafSource::Pass(pass) => LeafSource::Pass(*places.get(pass)?),
                    operand @ LeafSource::Operand(_) => operand,
                });
            }
            let joined = JoinedRows::new(pass, &layout, &ins, limits);
            let mut one = match joined {
                Some(joined) => {
                    joined.plan(pass, &layout, ins, &mut sources, &mut planned, limits)?
                }
                None => plan_pass(pass, &layout, ins, limits)?,
            };
            one.sources = sources;
            places.push(planned.len());
            one.result_bytes = bytes_of(pass.result_shape(), pass.dtype())?;
            one.is_last = at == last && !copies;
            planned.push(one);
            if let Some(out) = out.filter(|_| copies) {
                planned.push(copy(pass.dtype(), &Layout::fresh(&shape), out, limits));
                let copied = planned.last_mut()?;
                copied.sources = vec![LeafSource::Pass(*places.get(at)?)];
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

/// Rows that are shorter than vectors, or no whole number of them, such as the three colours of an image: several of
/// them become one row, for which what repeats along the rows is repeated first.
struct JoinedRows {
    /// The elements of a row, and how many of them are joined.
    row: usize,
    rows: usize,
}

/// Rows of more elements are not joined.
const ROW_MAX: usize = 64;

impl JoinedRows {
    /// None where rows stay as they are.
    fn new(pass: &Pass, out: &Layout, ins: &[Array], limits: &Limits) -> Option<Self> {
        let shape = pass.shape();
        let &[.., height, row] = shape else { return None };
        let elements = shape.iter().product::<usize>();
        let fits = pass.reduction().is_none()
            && out.shape == shape
            && out.strides == contiguous(shape)
            && out.low_bits == 0
            && (2..=ROW_MAX).contains(&row)
            && elements >= limits.joined.max(1);
        if !fits {
            return None;
        }
        let widest = ins.iter().map(|own| own.dtype.size()).chain([pass.dtype().size()]).max()?;
        let vector = VECTOR_BYTES / widest;
        let mut rows = 1;
        while !(rows * row).is_multiple_of(vector) {
            rows *= 2;
        }
        let last = shape.len() - 1;
        let repeats = |own: &Array| own.strides[..last].iter().all(|&stride| stride == 0);
        let moves =
            |own: &Array| own.strides[last] == 1 && own.strides[last - 1] == row.cast_signed();
        let is_any = ins.iter().any(|own| repeats(own) && own.strides[last] != 0);
        let fits = rows > 1 && height.is_multiple_of(rows) && is_any;
        (fits && ins.iter().all(|own| repeats(own) || moves(own))).then_some(Self { row, rows })
    }

    /// The pass over joined rows, after those that repeat operands.
    fn plan(
        &self,
        pass: &Pass,
        out: &Layout,
        ins: Vec<Array>,
        sources: &mut [LeafSource],
        planned: &mut Vec<PlannedPass>,
        limits: &Limits,
    ) -> Option<PlannedPass> {
        let Self { row, rows } = *self;
        let last = pass.shape().len() - 1;
        let joined = |own: &[usize]| {
            let mut own = own.to_vec();
            own[last - 1] /= rows;
            own[last] *= rows;
            own
        };
        let shape = joined(pass.shape());
        let mut all = Vec::with_capacity(ins.len());
        for (own, source) in ins.into_iter().zip(sources) {
            let mut strides = own.strides.clone();
            let repeats = strides[..last].iter().all(|&stride| stride == 0);
            let mut low_bits = own.low_bits;
            if repeats && strides[last] != 0 {
                let short = Layout { shape: vec![row], strides: vec![strides[last]], low_bits };
                let mut copied = copy(own.dtype, &short, &Layout::fresh(&[rows, row]), limits);
                copied.sources = vec![*source];
                copied.result_bytes = bytes_of(&[rows, row], own.dtype)?;
                (copied.is_last, copied.is_expansion) = (false, true);
                *source = LeafSource::Pass(planned.len());
                planned.push(copied);
                (strides[last], low_bits) = (1, 0);
            } else if !repeats {
                strides[last - 1] *= rows.cast_signed();
            }
            all.push(Array { strides, low_bits, ..own });
        }
        let body = Body::new(pass);
        let to = array(Place::Out, pass.dtype(), out.low_bits, contiguous(&shape));
        let launches = elementwise(&body, &shape, &to, &all, limits);
        Some(PlannedPass {
            body,
            partial: None,
            sources: Vec::new(),
            launches,
            scratch_bytes: 0,
            result_bytes: 0,
            is_last: false,
            spent: Vec::new(),
            is_expansion: false,
        })
    }
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
        is_expansion: false,
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
        is_expansion: false,
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
        is_expansion: false,
    };
    let to = array(Place::Out, dtype, out.low_bits, strides);
    let source = array(Place::Leaf(0), dtype, from.low_bits, from.strides.clone());
    reduced(&mut planned, joining, &from.shape, &kept, count, &to, &[source], limits);
    planned
}
