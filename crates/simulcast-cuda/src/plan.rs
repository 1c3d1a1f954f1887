//! A whole program for arrays that lie like this: its passes, the memory that they take, their launches.

use std::ops::Range;

use simulcast::DType;
use simulcast::program::lowered::{JointPasses, LeafSource, Pass, PassLeaf};

use crate::body::{Body, Joining};
use crate::launch::{Array, Joined, Launch, Limits, Place, Reducing, Reduction, elementwise};
use crate::tuning::{ROW_MAX, VECTOR_BYTES};

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
    /// The bytes of the result, and which of the program's it is, where it is one.
    pub(crate) result_bytes: usize,
    pub(crate) place: Option<usize>,
    /// The passes whose results no later pass reads.
    pub(crate) spent: Vec<usize>,
    /// Whether it repeats a short row for a pass that joins its rows.
    pub(crate) is_expansion: bool,
}

impl PlannedPass {
    /// A pass that launches nothing yet.
    const fn empty(body: Body) -> Self {
        Self {
            body,
            partial: None,
            sources: Vec::new(),
            launches: Vec::new(),
            scratch_bytes: 0,
            result_bytes: 0,
            place: None,
            spent: Vec::new(),
            is_expansion: false,
        }
    }
}

/// All passes of a program.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) passes: Vec<PlannedPass>,
    /// The shapes of the results.
    pub(crate) shapes: Vec<Vec<usize>>,
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
        let is_stretched = out.is_some_and(|out| out.shape != shape);
        let mut planning = Planning::new(passes, operands, limits);
        for (at, pass) in passes.iter().enumerate() {
            let copies = at == last && is_stretched && pass.reduction().is_some();
            let layout = match out {
                Some(out) if at == last && !copies => out.clone(),
                _ => Layout::fresh(pass.result_shape()),
            };
            planning.add(at, &layout, (at == last && !copies).then_some(0))?;
            if let Some(out) = out.filter(|_| copies) {
                planning.copy(at, out, 0)?;
            }
        }
        Some(planning.finished(vec![shape]))
    }

    /// The plan of a program of several results, into new arrays.
    pub(crate) fn joint(
        lowered: &JointPasses,
        operands: &[Layout],
        limits: &Limits,
    ) -> Option<Self> {
        let mut planning = Planning::new(lowered.passes(), operands, limits);
        for group in lowered.groups() {
            let of = |at: usize| {
                (0..lowered.results().len()).filter(move |&n| lowered.results()[n].pass() == at)
            };
            let joined = planning.joined(group.clone(), |at| of(at).next()).unwrap_or_default();
            for at in group.clone() {
                let layout = Layout::fresh(lowered.passes()[at].result_shape());
                let mut places = of(at);
                let first = places.next();
                if !joined.contains(&at) {
                    planning.add(at, &layout, first)?;
                }
                for place in places {
                    planning.copy(at, &layout, place)?;
                }
            }
        }
        let shapes = lowered.results().iter().map(|own| own.shape().to_vec());
        Some(planning.finished(shapes.collect()))
    }
}

/// Passes that are being planned.
struct Planning<'p> {
    passes: &'p [Pass],
    operands: &'p [Layout],
    limits: &'p Limits,
    planned: Vec<PlannedPass>,
    /// Where the passes of the program are among those that are planned.
    places: Vec<usize>,
}

impl<'p> Planning<'p> {
    fn new(passes: &'p [Pass], operands: &'p [Layout], limits: &'p Limits) -> Self {
        Self { passes, operands, limits, planned: Vec::new(), places: vec![0; passes.len()] }
    }

    /// How the array of a leaf lies.
    fn layout(&self, source: LeafSource) -> Option<Layout> {
        match source {
            LeafSource::Operand(operand) => Some(self.operands.get(operand)?.clone()),
            LeafSource::Pass(pass) => Some(Layout::fresh(self.passes.get(pass)?.result_shape())),
        }
    }

    /// A leaf as an array of that number, and where it comes from among what is planned.
    fn leaf(&self, leaf: &PassLeaf, n: usize) -> Option<(Array, LeafSource)> {
        let from = self.layout(leaf.source())?;
        let axis = |axis: &Option<usize>| axis.map_or(0, |axis| from.strides[axis]);
        let strides: Vec<isize> = leaf.axes().iter().map(axis).collect();
        let source = match leaf.source() {
            LeafSource::Pass(pass) => LeafSource::Pass(*self.places.get(pass)?),
            operand @ LeafSource::Operand(_) => operand,
        };
        Some((array(Place::Leaf(n), leaf.dtype(), from.low_bits, strides), source))
    }

    /// Those reductions of a group that are computed together: which they are; none where there are not two.
    fn joined(
        &mut self,
        group: Range<usize>,
        place: impl Fn(usize) -> Option<usize>,
    ) -> Option<Vec<usize>> {
        let shape = self.passes.get(group.start)?.shape();
        // The leaves of all reductions, each once.
        let mut leaves: Vec<&PassLeaf> = Vec::new();
        let (mut all, mut outs, mut elements, mut bodies) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for at in group {
            let pass = self.passes.get(at)?;
            let Some(reduction) = pass.reduction() else { continue };
            if pass.result_shape().len() != shape.len() {
                continue;
            }
            let mut own = Vec::new();
            for leaf in pass.leaves() {
                let is_it = |known: &&PassLeaf| {
                    (known.source(), known.dtype(), known.axes())
                        == (leaf.source(), leaf.dtype(), leaf.axes())
                };
                own.push(leaves.iter().position(is_it).unwrap_or_else(|| {
                    leaves.push(leaf);
                    leaves.len() - 1
                }));
            }
            let strides = contiguous(pass.result_shape()).into_iter().zip(reduction.kept());
            outs.push(strides.map(|(stride, &kept)| if kept { stride } else { 0 }).collect());
            elements.push(reduction.element());
            bodies.push((Body::new(pass), own));
            all.push(at);
        }
        let found: Option<Vec<_>> =
            leaves.iter().enumerate().map(|(n, leaf)| self.leaf(leaf, n)).collect();
        let (ins, sources): (Vec<Array>, Vec<LeafSource>) = found?.into_iter().unzip();
        let joined = Joined::new(shape, &ins, &outs, &elements, self.limits)?;
        let own: Vec<(Body, Vec<usize>)> =
            joined.chosen.iter().filter_map(|&n| bodies.get(n).cloned()).collect();
        let body = Body::joint(leaves.iter().map(|leaf| leaf.dtype()).collect(), &own);
        let mut partial = PlannedPass::empty(body);
        partial.launches = vec![joined.launch(&partial.body, &ins)];
        (partial.sources, partial.result_bytes) = (sources, joined.bytes);
        let made = self.planned.len();
        self.planned.push(partial);
        for (n, &chosen) in joined.chosen.iter().enumerate() {
            let (pass, element) = (self.passes.get(all[chosen])?, elements[chosen]);
            let reduction = pass.reduction()?;
            let joining = Joining { fold: reduction.fold(), element, result: pass.dtype() };
            let rest = joined.rest(n, ins.len(), element);
            let mut one = PlannedPass::empty(Body::reduction(element, joining));
            let mut to = array(Place::Out, pass.dtype(), 0, rest.to);
            to.offset = rest.start * pass.dtype().size().cast_signed();
            let (count, from) = (reduction.count(), [rest.from]);
            reduced(&mut one, joining, &rest.shape, &rest.kept, count, &to, &from, self.limits);
            one.sources = vec![LeafSource::Pass(made)];
            one.result_bytes = bytes_of(pass.result_shape(), pass.dtype())?;
            one.place = place(all[chosen]);
            self.places[all[chosen]] = self.planned.len();
            self.planned.push(one);
        }
        Some(joined.chosen.iter().map(|&n| all[n]).collect())
    }

    /// A pass of the program, whose result lies as `layout` says, and is one of the program's by its place.
    fn add(&mut self, at: usize, layout: &Layout, place: Option<usize>) -> Option<()> {
        let pass = self.passes.get(at)?;
        let found: Option<Vec<_>> =
            pass.leaves().iter().enumerate().map(|(n, leaf)| self.leaf(leaf, n)).collect();
        let (ins, mut sources): (Vec<Array>, Vec<LeafSource>) = found?.into_iter().unzip();
        let limits = self.limits;
        let mut one = match JoinedRows::new(pass, layout, &ins, limits) {
            Some(joined) => {
                joined.plan(pass, layout, ins, &mut sources, &mut self.planned, limits)?
            }
            None => plan_pass(pass, layout, ins, limits)?,
        };
        one.sources = sources;
        one.result_bytes = bytes_of(pass.result_shape(), pass.dtype())?;
        one.place = place;
        self.places[at] = self.planned.len();
        self.planned.push(one);
        Some(())
    }

    /// A copy of what a pass of the program made, to a result.
    fn copy(&mut self, at: usize, out: &Layout, place: usize) -> Option<()> {
        let pass = self.passes.get(at)?;
        let mut copied = copy(pass.dtype(), &Layout::fresh(pass.result_shape()), out, self.limits);
        copied.sources = vec![LeafSource::Pass(*self.places.get(at)?)];
        copied.place = Some(place);
        self.planned.push(copied);
        Some(())
    }

    /// The plan, in which memory goes after the last pass that reads it.
    fn finished(self, shapes: Vec<Vec<usize>>) -> Plan {
        let mut planned = self.planned;
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
        Plan { passes: planned, shapes }
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
                (copied.place, copied.is_expansion) = (None, true);
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
        Some(PlannedPass { launches, ..PlannedPass::empty(body) })
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
    let mut planned = PlannedPass::empty(Body::new(pass));
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
    let (sources, place) = (vec![LeafSource::Operand(0)], Some(0));
    PlannedPass { launches, sources, place, ..PlannedPass::empty(body) }
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
    let mut planned = PlannedPass::empty(Body::reduction(dtype, joining));
    (planned.sources, planned.place) = (vec![LeafSource::Operand(0)], Some(0));
    let to = array(Place::Out, dtype, out.low_bits, strides);
    let source = array(Place::Leaf(0), dtype, from.low_bits, from.strides.clone());
    reduced(&mut planned, joining, &from.shape, &kept, count, &to, &[source], limits);
    planned
}
