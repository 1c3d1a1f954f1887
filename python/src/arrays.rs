//! NumPy arrays as pointers, sizes and strides, and views of them.
//!
//! The numpy crate's own `as_array` divides strides by the size of an element and panics above 32
//! axes; neither happens here: a view is made by NumPy from byte strides, and an array is read only
//! where its strides are whole elements.

use std::ffi::c_int;

use ndarray::{ArrayViewD, Axis, IxDyn, ShapeBuilder as _};
use numpy::npyffi::{NpyTypes, PyArray_CheckExact, get_type_object};
use numpy::{PY_ARRAY_API, PyArrayDescrMethods as _, PyUntypedArray, PyUntypedArrayMethods as _};
use pyo3::exceptions::PyValueError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

/// The most axes that a NumPy array has.
pub(crate) const AXES: usize = 64;

/// The object as an array, where its class is `ndarray` itself.
#[inline]
pub(crate) fn plain<'a, 'py>(
    object: &'a Bound<'py, PyAny>,
) -> Option<&'a Bound<'py, PyUntypedArray>> {
    // SAFETY: the object is alive, and the interpreter is attached.
    let exact = unsafe { PyArray_CheckExact(object.py(), object.as_ptr()) } != 0;
    // SAFETY: its class was just compared.
    exact.then(|| unsafe { object.cast_unchecked() })
}

/// A scalar of NumPy's own as an array without axes.
#[inline]
pub(crate) fn scalar<'py>(object: &Bound<'py, PyAny>) -> Option<Bound<'py, PyAny>> {
    let py = object.py();
    // SAFETY: the object is alive, and the interpreter is attached. NumPy's classes are part of it; whoever inherits
    // from one makes a class on the heap, which may have its own idea of an array.
    unsafe {
        let class = ffi::Py_TYPE(object.as_ptr());
        let is_scalar = ffi::PyType_GetFlags(class) & ffi::Py_TPFLAGS_HEAPTYPE == 0
            && ffi::PyType_IsSubtype(class, get_type_object(py, NpyTypes::PyGenericArrType_Type))
                != 0;
        let made = is_scalar
            .then(|| PY_ARRAY_API.PyArray_FromScalar(py, object.as_ptr(), std::ptr::null_mut()))?;
        Bound::from_owned_ptr_or_err(py, made).ok()
    }
}

/// Operands as plain arrays; `None` where one of them is a Dask array.
pub(crate) fn read<'py>(
    objects: &Bound<'py, PyTuple>,
) -> PyResult<Option<Vec<Bound<'py, PyUntypedArray>>>> {
    let all: Option<Vec<_>> = objects.iter().map(|object| plain(&object).cloned()).collect();
    if all.is_some() {
        return Ok(all);
    }
    let inputs = objects.py().import("simulcast._inputs")?;
    inputs.getattr("prepare")?.call1((objects,))?.extract()
}

/// A read-only view of an array, with another shape and other byte strides, which keeps it alive.
///
/// # Safety
///
/// Every element that the shape and the strides reach is one of the array's.
pub(crate) unsafe fn view<'py>(
    array: &Bound<'py, PyUntypedArray>,
    shape: &[usize],
    strides: &[isize],
) -> PyResult<Bound<'py, PyAny>> {
    let py = array.py();
    let (Ok(rank), true) = (c_int::try_from(shape.len()), shape.len() == strides.len()) else {
        return Err(too_many_axes(shape.len()));
    };
    let own = array.as_array_ptr();
    // SAFETY: `own` is a live array. NumPy takes over the new reference to its descriptor, copies
    // sizes (which fit, by the caller's promise or by its own check) and strides, and checks rank and
    // size; the base keeps the elements alive, and the flags leave the view read-only.
    unsafe {
        let descriptor = (*own).fields.descr;
        ffi::Py_INCREF(descriptor.cast());
        let view = PY_ARRAY_API.PyArray_NewFromDescr(
            py,
            get_type_object(py, NpyTypes::PyArray_Type),
            descriptor,
            rank,
            shape.as_ptr().cast_mut().cast(),
            strides.as_ptr().cast_mut().cast(),
            (*own).fields.data.cast(),
            0,
            std::ptr::null_mut(),
        );
        let view = Bound::from_owned_ptr_or_err(py, view)?;
        ffi::Py_INCREF(array.as_ptr());
        if PY_ARRAY_API.PyArray_SetBaseObject(py, view.as_ptr().cast(), array.as_ptr()) < 0 {
            return Err(PyErr::fetch(py));
        }
        Ok(view)
    }
}

pub(crate) fn too_many_axes(rank: usize) -> PyErr {
    PyValueError::new_err(format!("an array has at most {AXES} axes, not {rank}"))
}

/// Whether the elements can be read as they lie: in the machine's order of bytes, aligned, and a
/// whole number of elements apart.
pub(crate) fn is_sound(array: &Bound<'_, PyUntypedArray>) -> bool {
    let descriptor = array.dtype();
    let item = descriptor.itemsize().max(1).cast_signed();
    let whole = |(&size, &stride): (&usize, &isize)| size <= 1 || stride % item == 0;
    descriptor.is_native_byteorder().unwrap_or(true)
        && array.is_aligned()
        && array.shape().iter().zip(array.strides()).all(whole)
}

/// The elements of an array, of any rank.
///
/// # Safety
///
/// The array [`is_sound`] and holds elements that have the size and alignment of `T`, every pattern
/// of bits of which is one; nobody writes to it as long as the view lives.
pub(crate) unsafe fn elements<'a, T>(array: &'a Bound<'_, PyUntypedArray>) -> ArrayViewD<'a, T> {
    let item = size_of::<T>().max(1).cast_signed();
    // SAFETY: the array is alive.
    let mut start: *const T = unsafe { (*array.as_array_ptr()).fields.data.cast() };
    let (shape, mut strides) = (array.shape(), Vec::with_capacity(array.ndim()));
    let (mut backwards, empty) = (Vec::new(), shape.contains(&0));
    for (axis, (&size, &stride)) in shape.iter().zip(array.strides()).enumerate() {
        let stride = if size <= 1 || empty { 0 } else { stride / item };
        if stride < 0 {
            // SAFETY: the last element of an axis of a live array.
            start = unsafe { start.offset(stride * (size.cast_signed() - 1)) };
            backwards.push(Axis(axis));
        }
        strides.push(stride.unsigned_abs());
    }
    if empty {
        // What an empty array points to need not be aligned.
        start = std::ptr::NonNull::dangling().as_ptr();
    }
    // SAFETY: by the conditions of this function; strides are not negative, and axes that run
    // backwards start at their other end.
    let mut view =
        unsafe { ArrayViewD::from_shape_ptr(IxDyn(shape).strides(IxDyn(&strides)), start) };
    for axis in backwards {
        view.invert_axis(axis);
    }
    view
}
