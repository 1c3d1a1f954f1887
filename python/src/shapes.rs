//! Shapes as Python writes them: tuples, lists and ints; `None` for a size that is not known.
//!
//! The shapes of one call stand in one list of sizes, so that reading them costs one allocation.

use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};
use simulcast_core::{Dim, Dims, Interval, ShapeText, Symbol};

/// The shapes of a call.
#[derive(Default)]
pub(crate) struct Shapes {
    /// For each shape its rank, then its sizes.
    sizes: Vec<usize>,
    /// Which of `sizes` are not known.
    unknown: Vec<usize>,
    count: usize,
}

/// So many operands are kept on the stack.
const FEW: usize = 8;

impl Shapes {
    /// The shapes that the arguments name.
    pub(crate) fn read(args: &Bound<'_, PyTuple>) -> PyResult<Self> {
        let mut this = Self { sizes: Vec::with_capacity(24), unknown: Vec::new(), count: 0 };
        for arg in args.iter_borrowed() {
            this.push(&arg)?;
        }
        Ok(this)
    }

    fn push(&mut self, shape: &Bound<'_, PyAny>) -> PyResult<()> {
        let start = self.sizes.len();
        self.sizes.push(0);
        if let Ok(sizes) = shape.cast_exact::<PyTuple>() {
            for size in sizes.iter_borrowed() {
                self.push_size(&size)?;
            }
        } else if shape.is_instance_of::<PyString>() {
            return Err(no_shape(shape));
        } else if shape.is_instance_of::<PyInt>() || is_index(shape) {
            self.push_size(shape)?;
        } else {
            for size in shape.try_iter().map_err(|_| no_shape(shape))? {
                self.push_size(&size?)?;
            }
        }
        self.sizes[start] = self.sizes.len() - start - 1;
        self.count += 1;
        Ok(())
    }

    #[inline]
    fn push_size(&mut self, size: &Bound<'_, PyAny>) -> PyResult<()> {
        if size.is_none() {
            self.unknown.push(self.sizes.len());
            self.sizes.push(0);
        } else {
            self.sizes.push(read_size(size)?);
        }
        Ok(())
    }

    /// What `then` makes of the sizes of each shape, where all of them are known.
    #[inline]
    pub(crate) fn known<R>(&self, then: impl FnOnce(&[&[usize]]) -> R) -> Option<R> {
        if !self.unknown.is_empty() {
            return None;
        }
        let spans = self.spans().map(|(at, end)| &self.sizes[at..end]);
        if self.count > FEW {
            return Some(then(&spans.collect::<Vec<_>>()));
        }
        let mut few: [&[usize]; FEW] = [&[]; FEW];
        for (place, span) in few.iter_mut().zip(spans) {
            *place = span;
        }
        Some(then(&few[..self.count]))
    }

    /// The dimensions of each shape.
    pub(crate) fn dims(&self) -> Vec<Dims> {
        let dim = |at: usize| match self.unknown.binary_search(&at) {
            Ok(_) => Dim::UNKNOWN,
            Err(_) => Dim::Size(self.sizes[at]),
        };
        self.spans().map(|(at, end)| Dims::Ranked((at..end).map(dim).collect())).collect()
    }

    /// Where each shape begins and ends in `sizes`.
    fn spans(&self) -> impl Iterator<Item = (usize, usize)> {
        let mut end = 0;
        (0..self.count).map(move |_| {
            let start = end + 1;
            end = start + self.sizes[end];
            (start, end)
        })
    }
}

/// Whether an object is an int in all but its class: a NumPy integer, but no array with axes.
fn is_index(object: &Bound<'_, PyAny>) -> bool {
    object.hasattr("__index__").unwrap_or(false)
        && object.getattr("ndim").map_or(true, |rank| rank.extract::<usize>().is_ok_and(|n| n == 0))
}

fn no_shape(object: &Bound<'_, PyAny>) -> PyErr {
    let class = object.get_type();
    PyTypeError::new_err(format!("a shape is a tuple of sizes or an int, not {class}"))
}

/// A size: an int that is not negative.
#[inline]
pub(crate) fn read_size(size: &Bound<'_, PyAny>) -> PyResult<usize> {
    if size.is_exact_instance_of::<PyInt>() {
        // SAFETY: the object is a live int, and the interpreter is attached.
        let own = unsafe { ffi::PyLong_AsSsize_t(size.as_ptr()) };
        if let Ok(own) = usize::try_from(own) {
            return Ok(own);
        }
        drop(PyErr::take(size.py()));
    }
    match size.extract::<isize>() {
        Ok(own) => usize::try_from(own)
            .map_err(|_| PyValueError::new_err(format!("negative sizes are not allowed: {own}"))),
        Err(error) => Err(bad_size(size, error)),
    }
}

#[cold]
fn bad_size(size: &Bound<'_, PyAny>, error: PyErr) -> PyErr {
    if error.is_instance_of::<PyOverflowError>(size.py()) {
        return PyValueError::new_err(format!("the size {size} is too large"));
    }
    if is_index(size) {
        // What its own `__index__` said.
        return error;
    }
    PyTypeError::new_err(format!("a size is an int, not {}", size.get_type()))
}

/// A shape of known sizes: a tuple, a list or an int.
pub(crate) fn read_shape(shape: &Bound<'_, PyAny>) -> PyResult<Vec<usize>> {
    let mut shapes = Shapes::default();
    shapes.push(shape)?;
    let sizes = shapes.known(|shapes| shapes[0].to_vec());
    sizes.ok_or_else(|| PyTypeError::new_err("every size must be known here, and None is not"))
}

/// Anything that says what its shape is, for `explain` and policies: text, an int, a tuple, a dict of
/// named sizes, `None` for an unknown rank, or an object with a `shape` (and names in `dims`).
pub(crate) fn read_operand(object: &Bound<'_, PyAny>) -> PyResult<ShapeText> {
    if let Ok(text) = object.cast::<PyString>() {
        let shape: Result<ShapeText, _> = text.to_str()?.parse();
        return shape.map_err(|error| PyValueError::new_err(error.to_string()));
    }
    if object.is_none() {
        return Ok(ShapeText { name: None, dims: Dims::Unranked, axes: Vec::new() });
    }
    if object.is_instance_of::<PyInt>() {
        return Ok(unnamed(vec![Dim::Size(read_size(object)?)]));
    }
    if object.is_instance_of::<PyTuple>() || object.is_instance_of::<PyList>() {
        return Ok(unnamed(read_dims(object)?));
    }
    if let Ok(named) = object.cast::<PyDict>() {
        let axes = named.keys().extract()?;
        return Ok(ShapeText { name: None, dims: read_dims(&named.values())?.into(), axes });
    }
    let Ok(shape) = object.getattr("shape") else {
        let class = object.get_type();
        return Err(PyTypeError::new_err(format!(
            "a shape is text, a tuple, an int or an object with a shape, not {class}"
        )));
    };
    if shape.is_none() {
        return read_operand(&shape);
    }
    let mut operand = unnamed(read_dims(&shape)?);
    // xarray has names for its axes; a torch tensor has a method `dims`, and no names there.
    if let Ok(names) = object.getattr("dims").and_then(|names| names.extract::<Vec<String>>())
        && names.len() == operand.axes.len()
    {
        operand.axes = names;
    }
    Ok(operand)
}

/// An object that is read as the same operand, but for its name.
pub(crate) fn operand_object<'py>(
    py: Python<'py>,
    operand: &ShapeText,
) -> PyResult<Bound<'py, PyAny>> {
    let dim = |dim: &Dim| match dim {
        // As text is read, with its limits.
        Dim::Symbol(symbol) if symbol.range != Interval::UNKNOWN => {
            Ok(PyString::new(py, &format!("{}@{}", symbol.name, symbol.range)).into_any())
        }
        _ => dim_object(py, dim),
    };
    let Some(dims) = operand.dims.dims() else { return Ok(py.None().into_bound(py)) };
    let shape = PyTuple::new(py, dims.iter().map(dim).collect::<PyResult<Vec<_>>>()?)?;
    if operand.axes.iter().all(String::is_empty) {
        return Ok(shape.into_any());
    }
    let named = PyDict::new(py);
    named.set_item("shape", shape)?;
    named.set_item("dims", &operand.axes)?;
    py.import("types")?.getattr("SimpleNamespace")?.call((), Some(&named))
}

fn unnamed(dims: Vec<Dim>) -> ShapeText {
    let axes = vec![String::new(); dims.len()];
    ShapeText { name: None, dims: Dims::Ranked(dims), axes }
}

fn read_dims(sizes: &Bound<'_, PyAny>) -> PyResult<Vec<Dim>> {
    sizes.try_iter()?.map(|size| read_dim(&size?)).collect()
}

fn read_dim(size: &Bound<'_, PyAny>) -> PyResult<Dim> {
    if size.is_none() {
        return Ok(Dim::UNKNOWN);
    }
    if let Ok(text) = size.cast::<PyString>() {
        let text = text.to_str()?;
        // An interval, or any text as the name of a symbol.
        return Ok(text.parse().unwrap_or_else(|_| Dim::Symbol(Symbol::new(text))));
    }
    // Dask writes a size that it does not know as nan.
    if size.cast::<PyFloat>().is_ok_and(|size| size.value().is_nan()) {
        return Ok(Dim::UNKNOWN);
    }
    read_size(size).map(Dim::Size)
}

/// Sizes as a tuple.
pub(crate) fn tuple<'py>(py: Python<'py>, sizes: &[usize]) -> PyResult<Bound<'py, PyTuple>> {
    PyTuple::new(py, sizes)
}

/// Dimensions as a tuple: a symbol is its text, a size that is not known is `None`; so is a shape of
/// unknown rank.
pub(crate) fn dims_tuple<'py>(
    py: Python<'py>,
    dims: &Dims,
) -> PyResult<Option<Bound<'py, PyTuple>>> {
    let Some(dims) = dims.dims() else { return Ok(None) };
    let dims: Vec<_> = dims.iter().map(|dim| dim_object(py, dim)).collect::<PyResult<_>>()?;
    PyTuple::new(py, dims).map(Some)
}

fn dim_object<'py>(py: Python<'py>, dim: &Dim) -> PyResult<Bound<'py, PyAny>> {
    match (dim, dim.size()) {
        (_, Some(size)) => Ok(size.into_pyobject(py)?.into_any()),
        (Dim::Range(Interval::UNKNOWN), _) => Ok(py.None().into_bound(py)),
        (dim, _) => Ok(dim.to_string().into_pyobject(py)?.into_any()),
    }
}
