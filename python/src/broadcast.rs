//! `broadcast_shapes`, `broadcast_to` and `broadcast_arrays`: shapes, and views that share memory.
//!
//! Shapes of a call stand on the stack or in one list, and the core resolves them without
//! allocation; only what fails is looked at again, for the error.

use numpy::{PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use simulcast_core::{
    BroadcastError, Dims, OwnedRule, Plan, Refusal, Rule as CoreRule, Source, resolve,
    resolve_dims, resolve_into, sources_into, view_strides_into,
};

use crate::arrays::{self, AXES};
use crate::cuda;
use crate::errors::refused;
use crate::policies;
use crate::rules::Rule;
use crate::shapes::{Shapes, read_shape, tuple};

/// The shape that shapes broadcast to; an int is a shape of one axis, `None` a size not known.
///
/// >>> import simulcast
/// >>> simulcast.broadcast_shapes((8, 1, 6, 1), (7, 1, 5))
/// (8, 7, 6, 5)
/// >>> simulcast.broadcast_shapes((None, 1), (None, 4))
/// (None, 4)
/// >>> simulcast.broadcast_shapes((2, 3, 4, 5), (3, 4), rule="pdpd:1")
/// (2, 3, 4, 5)
///
/// Raises `BroadcastError` where they do not. A result that is too large for an array has a shape too.
#[pyfunction]
#[pyo3(signature = (*shapes, rule = None), text_signature = "(*shapes, rule='numpy')")]
pub(crate) fn broadcast_shapes<'py>(
    shapes: &Bound<'py, PyTuple>,
    rule: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyTuple>> {
    let py = shapes.py();
    let read = Shapes::read(shapes)?;
    let rule = Rule::read(rule)?.positional()?;
    let known = read.known(|sizes| known(py, &rule, sizes));
    known.unwrap_or_else(|| unknown(py, &rule, &read.dims()))
}

/// The result of known shapes.
fn known<'py>(
    py: Python<'py>,
    rule: &OwnedRule,
    sizes: &[&[usize]],
) -> PyResult<Bound<'py, PyTuple>> {
    let mut buffer = [0; AXES];
    match resolve_into(rule.as_rule(), sizes, &mut buffer) {
        Ok(shape) => tuple(py, shape),
        // More axes than an array has are still a shape.
        Err(_) => match resolve(rule.as_rule(), sizes) {
            Ok(plan) => tuple(py, plan.shape()),
            Err(error) => Err(refused(py, &error)),
        },
    }
}

/// The result of shapes that are not all known: `None` where the core cannot say the size.
fn unknown<'py>(py: Python<'py>, rule: &OwnedRule, dims: &[Dims]) -> PyResult<Bound<'py, PyTuple>> {
    let plan = resolve_dims(rule.as_rule(), dims).map_err(|error| refused(py, &error))?;
    let dims = plan.shape().dims().unwrap_or_default();
    PyTuple::new(py, dims.iter().map(simulcast_core::Dim::size))
}

/// A read-only view of `x` in another shape, which shares its memory.
///
/// >>> import simulcast
/// >>> simulcast.broadcast_to([1, 2, 3], (2, 3))
/// array([[1, 2, 3],
///        [1, 2, 3]])
///
/// Under another rule, `x` is laid onto `shape` as the rule lays its second operand onto the first.
/// Where a rule carries the shape, `shape` can be left out.
///
/// >>> simulcast.broadcast_to([1, 2], (2, 3), rule="pdpd:0")
/// array([[1, 1, 1],
///        [2, 2, 2]])
#[pyfunction]
#[pyo3(signature = (x, /, shape = None, *, rule = None), text_signature = "(x, /, shape=None, *, rule='numpy')")]
pub(crate) fn broadcast_to<'py>(
    x: &Bound<'py, PyAny>,
    shape: Option<&Bound<'py, PyAny>>,
    rule: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = x.py();
    let Some(array) = arrays::plain(x) else {
        if let Some(array) = cuda::Array::read(x)? {
            let shape = shape.map(read_shape).transpose()?;
            let rule = Rule::read(rule)?.positional()?;
            let (plan, operand) = onto(py, &rule, shape.as_deref(), &array.shape, |error| error)?;
            let sources = plan.sources(operand).unwrap_or_default();
            return cuda::broadcast_to(array, &sources, plan.shape());
        }
        let Some(read) = arrays::read(&PyTuple::new(py, [x])?)? else {
            let dask = py.import("simulcast._dask")?;
            return dask.getattr("broadcast_to")?.call1((x, shape, Rule::read(rule)?));
        };
        return broadcast_to(read[0].as_any(), shape, rule);
    };
    let shape = shape.map(read_shape).transpose()?;
    let rule = Rule::read(rule)?.positional()?;
    let own = array.shape();
    let result = match shape.as_deref().and_then(|target| rule.as_rule().onto(target)) {
        Some(to) => shown(array, to, &[own], 0),
        None => {
            let (plan, operand) = onto(py, &rule, shape.as_deref(), own, |error| error)?;
            let shapes: Vec<_> = (0..plan.operand_count())
                .map(|m| plan.operand_shape(m).unwrap_or_default())
                .collect();
            shown(array, plan.rule().as_rule(), &shapes, operand)
        }
    }?;
    policies::observe_view(py, "broadcast_to", own, &result)?;
    Ok(result)
}

/// The plan that lays a shape onto a target, and the operand that stands for the shape; an error is `told`.
pub(crate) fn onto(
    py: Python<'_>,
    rule: &OwnedRule,
    target: Option<&[usize]>,
    own: &[usize],
    told: impl Fn(BroadcastError) -> BroadcastError,
) -> PyResult<(Plan, usize)> {
    let fail = |error: BroadcastError| refused(py, &told(error));
    let kind = rule.kind();
    let to = target.and_then(|target| rule.as_rule().onto(target));
    let (plan, operand) = match (to, kind.arity(), target) {
        (Some(to), ..) => (resolve(to, &[own]).map_err(fail)?, 0),
        (None, Some(1), _) => (resolve(rule.as_rule(), &[own]).map_err(fail)?, 0),
        (None, _, Some(target)) => (resolve(rule.as_rule(), &[target, own]).map_err(fail)?, 1),
        (None, _, None) => {
            return Err(PyTypeError::new_err(format!("under rule {kind} a shape must be given")));
        }
    };
    if let Some(target) = target
        && plan.shape() != target
        && !kind.outgrows_target()
    {
        // The rule asks for more than the target; say where, as far as NumPy's rule can.
        resolve(CoreRule::To { target }, &[plan.shape()]).map_err(fail)?;
        return Err(PyValueError::new_err(format!(
            "rule {rule} gives {}, not {}",
            simulcast_core::format_shape(plan.shape()),
            simulcast_core::format_shape(target)
        )));
    }
    Ok((plan, operand))
}

/// The view of an operand under a rule.
fn shown<'py, S: AsRef<[usize]>>(
    array: &Bound<'py, PyUntypedArray>,
    rule: CoreRule<'_>,
    shapes: &[S],
    operand: usize,
) -> PyResult<Bound<'py, PyAny>> {
    let py = array.py();
    let (mut shape, mut sources, mut strides) = ([0; AXES], [Source::Added; AXES], [0; AXES]);
    let laid = resolve_into(rule, shapes, &mut shape).and_then(|shape| {
        sources_into(rule, shapes, operand, shape, &mut sources)?;
        let sources = &sources[..shape.len()];
        view_strides_into(sources, array.strides(), &mut strides)?;
        Ok(shape)
    });
    match laid {
        // SAFETY: by the core's promise, an axis keeps the array's own size and stride, or has
        // stride 0; an axis that is left out has size 1.
        Ok(shape) => unsafe { arrays::view(array, shape, &strides[..shape.len()]) },
        Err(Refusal::Buffer { needed, .. }) => Err(arrays::too_many_axes(needed)),
        Err(refusal) => Err(refused(py, &BroadcastError::new(rule, shapes, refusal))),
    }
}

/// Read-only views of arrays in their common shape, which share the arrays' memory; a tuple.
///
/// >>> import simulcast
/// >>> simulcast.broadcast_arrays([[1], [2]], [3, 4, 5])
/// (array([[1, 1, 1],
///        [2, 2, 2]]), array([[3, 4, 5],
///        [3, 4, 5]]))
#[pyfunction]
#[pyo3(signature = (*arrays, rule = None), text_signature = "(*arrays, rule='numpy')")]
pub(crate) fn broadcast_arrays<'py>(
    arrays: &Bound<'py, PyTuple>,
    rule: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyTuple>> {
    let py = arrays.py();
    let Some(read) = arrays::read(arrays)? else {
        let dask = py.import("simulcast._dask")?;
        let shown = dask.getattr("broadcast_arrays")?.call1((arrays, Rule::read(rule)?))?;
        return Ok(shown.cast_into()?);
    };
    let rule = Rule::read(rule)?;
    let shapes: Vec<&[usize]> = read.iter().map(PyUntypedArrayMethods::shape).collect();
    policies::observe(py, "broadcast_arrays", &rule, &shapes)?;
    let rule = rule.positional()?;
    if read.is_empty() {
        resolve(rule.as_rule(), &shapes).map_err(|error| refused(py, &error))?;
    }
    let views: Vec<_> = read
        .iter()
        .enumerate()
        .map(|(operand, array)| shown(array, rule.as_rule(), &shapes, operand))
        .collect::<PyResult<_>>()?;
    PyTuple::new(py, views)
}

/// The result axis that each axis of an operand feeds.
type Feeds = Vec<Option<usize>>;

/// The result's shape, and for each operand the result axis that each of its axes feeds; `None`
/// for an axis of size 1 that feeds none. With a `target`, the one operand is laid onto it.
#[pyfunction]
#[pyo3(name = "_layout", signature = (rule, *shapes, target = None))]
pub(crate) fn layout<'py>(
    py: Python<'py>,
    rule: &Bound<'py, PyAny>,
    shapes: &Bound<'py, PyTuple>,
    target: Option<&Bound<'py, PyAny>>,
) -> PyResult<(Bound<'py, PyTuple>, Vec<Feeds>)> {
    let rule = Rule::read(Some(rule))?.positional()?;
    let shapes: Vec<Vec<usize>> =
        shapes.iter().map(|shape| read_shape(&shape)).collect::<PyResult<_>>()?;
    let target = target.map(read_shape).transpose()?;
    let (plan, operands) = match (&shapes[..], &target) {
        ([own], Some(_)) => {
            let (plan, operand) = onto(py, &rule, target.as_deref(), own, |error| error)?;
            (plan, operand..operand + 1)
        }
        _ => {
            let plan = resolve(rule.as_rule(), &shapes).map_err(|error| refused(py, &error))?;
            (plan, 0..shapes.len())
        }
    };
    let feeds = |operand: usize| {
        plan.axes(operand).unwrap_or_default().iter().map(|&(_, target)| target).collect()
    };
    Ok((tuple(py, plan.shape())?, operands.map(feeds).collect()))
}
