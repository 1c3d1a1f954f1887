//! Shapes as Python writes them: tuples, lists and ints; `None` for a size that is not known.
//!
//! The shapes of one call stand in one list of sizes, so that a call costs two allocations, however
//! many operands it has.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};
use simulcast_core::{Dim, Dims, Interval, ShapeText, Symbol};

/// The shapes of a call.
#[derive(Default)]
pub(crate) struct Shapes {
    sizes: Vec<usize>,
    /// Where each shape ends in `sizes`.
    ends: Vec<usize>,
    /// Which of `sizes` are not known.
    unknown: Vec<usize>,
}

impl Shapes {
    /// The shapes that the arguments name.
    pub(crate) fn read(args: &Bound<'_, PyTuple>) -> PyResult<Self> {
        let mut this = Self {
            sizes: Vec::with_capacity(16),
            ends: Vec::with_capacity(args.len()),
            unknown: Vec::new(),
        };
        for arg in args.iter_borrowed() {
            this.push(&arg)?;
        }
        Ok(this)
    }

    fn push(&mut self, shape: &Bound<'_, PyAny>) -> PyResult<()> {
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
        self.ends.push(self.sizes.len());
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

    /// The sizes of each shape, where all of them are known.
    pub(crate) fn known(&self) -> Option<Vec<&[usize]>> {
        self.unknown
            .is_empty()
            .then(|| self.spans().map(|(at, end)| &self.sizes[at..end]).collect())
    }

    /// The dimensions of each shape.
    pub(crate) fn dims(&self) -> Vec<Dims> {
        let dim = |at: usize| match self.unknown.binary_search(&at) {
            Ok(_) => Dim::UNKNOWN,
            Err(_) => Dim::Size(self.sizes[at]),
        };
        self.spans().map(|(at, end)| Dims::Ranked((at..end).map(dim).collect())).collect()
    }

    fn spans(&self) -> impl Iterator<Item = (usize, usize)> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(self.ends.iter().copied())
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
    match size.extract::<isize>() {
        Ok(own) => usize::try_from(own)
            .map_err(|_| PyValueError::new_err(format!("negative sizes are not allowed: {own}"))),
        Err(_) => Err(bad_size(size)),
    }
}

#[cold]
fn bad_size(size: &Bound<'_, PyAny>) -> PyErr {
    if is_index(size) {
        return PyValueError::new_err(format!("the size {size} is too large"));
    }
    PyTypeError::new_err(format!("a size is an int, not {}", size.get_type()))
}

/// A shape of known sizes: a tuple, a list or an int.
pub(crate) fn read_shape(shape: &Bound<'_, PyAny>) -> PyResult<Vec<usize>> {
    let mut shapes = Shapes::default();
    shapes.push(shape)?;
    match shapes.unknown.is_empty() {
        true => Ok(shapes.sizes),
        false => Err(PyTypeError::new_err("every size must be known here, and None is not")),
    }
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
    let mut operand = unnamed(read_dims(&shape)?);
    // xarray has names for its axes; a torch tensor has a method `dims`, and no names there.
    if let Ok(names) = object.getattr("dims").and_then(|names| names.extract::<Vec<String>>())
        && names.len() == operand.axes.len()
    {
        operand.axes = names;
    }
    Ok(operand)
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
        return Ok(match text.parse::<ShapeText>() {
            Ok(ShapeText { name: None, dims: Dims::Ranked(dims), .. }) if dims.len() == 1 => {
                dims.into_iter().next().unwrap_or(Dim::UNKNOWN)
            }
            _ => Dim::Symbol(Symbol::new(text)),
        });
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
    let dim = |dim: &Dim| -> PyResult<Bound<'py, PyAny>> {
        match (dim, dim.size()) {
            (_, Some(size)) => Ok(size.into_pyobject(py)?.into_any()),
            (Dim::Range(Interval::UNKNOWN), _) => Ok(py.None().into_bound(py)),
            (dim, _) => Ok(dim.to_string().into_pyobject(py)?.into_any()),
        }
    };
    let dims: Vec<_> = dims.iter().map(dim).collect::<PyResult<_>>()?;
    PyTuple::new(py, dims).map(Some)
}
