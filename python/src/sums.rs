//! `sum_to`: the adjoint of a broadcast, on the engine, with the interpreter released.

use half::{bf16, f16};
use ndarray::ArrayViewD;
use numpy::{
    Element, PyArray1, PyArrayDescr, PyArrayDescrMethods as _, PyUntypedArray,
    PyUntypedArrayMethods as _,
};
use pyo3::exceptions::{PyMemoryError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use simulcast::{Addend, BroadcastError, Complex, Plan, try_par_sum_to};
use simulcast_core::Names;

use crate::arrays;
use crate::broadcast::onto;
use crate::cuda;
use crate::interrupts::released;
use crate::results::SMALL;
use crate::rules::Rule;
use crate::shapes::read_shape;
use crate::threads::Threads;

/// `x` summed back to a shape that broadcasts to its own: what a broadcast repeats, this adds up.
///
/// It gives the gradient of an operand from that of the result. Sums are kept in the dtype of `x`
/// (float16 and bfloat16 in float32), are as accurate as pairwise summation, and have the same bits
/// on any number of threads.
///
/// >>> import numpy as np, simulcast
/// >>> simulcast.sum_to(np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]), (2, 1))
/// array([[ 6.],
///        [15.]])
#[pyfunction]
#[pyo3(
    signature = (x, /, shape, *, rule = None, threads = None),
    text_signature = "(x, /, shape, *, rule='numpy', threads=None)"
)]
pub(crate) fn sum_to<'py>(
    x: &Bound<'py, PyAny>,
    shape: &Bound<'py, PyAny>,
    rule: Option<&Bound<'py, PyAny>>,
    threads: Option<Threads>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = x.py();
    let limit = threads.map(Threads::get);
    let Some(array) = arrays::plain(x) else {
        if let Some(array) = cuda::Array::read(x)? {
            let (shape, rule) = (read_shape(shape)?, Rule::read(rule)?.positional()?);
            let (plan, operand) = onto(py, &rule, Some(&array.shape), &shape, told)?;
            let sources = plan.sources(operand).unwrap_or_default();
            return cuda::sum_to(array, &sources, &shape);
        }
        let Some(read) = arrays::read(&PyTuple::new(py, [x])?)? else {
            let dask = py.import("simulcast._dask")?;
            return dask.getattr("sum_to")?.call1((x, shape, Rule::read(rule)?));
        };
        return sum_to(read[0].as_any(), shape, rule, threads);
    };
    if !arrays::is_sound(array) {
        let sound = py.import("simulcast._inputs")?.getattr("sound")?.call1((array,))?;
        return sum_to(&sound, shape, rule, threads);
    }
    let shape = read_shape(shape)?;
    let rule = Rule::read(rule)?.positional()?;
    let (plan, operand) = onto(py, &rule, Some(array.shape()), &shape, told)?;
    let work = Work { array, plan: &plan, operand, limit, shape: &shape };
    let descriptor = array.dtype();
    // SAFETY: the array is sound, and each arm names the type of its elements.
    unsafe {
        match (descriptor.kind(), descriptor.itemsize()) {
            (b'f', 4) => work.sum::<f32>(),
            (b'f', 8) => work.sum::<f64>(),
            (b'f', 2) => work.sum_bits::<f16>(&descriptor, f16::to_bits),
            (b'c', 8) => work.sum::<Complex<f32>>(),
            (b'c', 16) => work.sum::<Complex<f64>>(),
            (b'i', 1) => work.sum::<i8>(),
            (b'i', 2) => work.sum::<i16>(),
            (b'i', 4) => work.sum::<i32>(),
            (b'i', 8) => work.sum::<i64>(),
            (b'u', 1) => work.sum::<u8>(),
            (b'u', 2) => work.sum::<u16>(),
            (b'u', 4) => work.sum::<u32>(),
            (b'u', 8) => work.sum::<u64>(),
            (_, 2) if descriptor.str()? == "bfloat16" => {
                work.sum_bits::<bf16>(&descriptor, bf16::to_bits)
            }
            _ => Err(PyTypeError::new_err(format!("sum_to has no sums of dtype {descriptor}"))),
        }
    }
}

/// An error of a sum: the shape is the caller's, what it is laid on is not.
fn told(error: BroadcastError) -> BroadcastError {
    let names = match error.shapes().len() {
        1 => Names::of(["shape"]),
        _ => Names::of(["x", "shape"]),
    };
    error.with_names(names).without_fixes()
}

/// An array to be summed, and how.
struct Work<'a, 'py> {
    array: &'a Bound<'py, PyUntypedArray>,
    plan: &'a Plan,
    operand: usize,
    limit: Option<usize>,
    shape: &'a [usize],
}

impl<'py> Work<'_, 'py> {
    /// # Safety
    ///
    /// The array is sound and holds elements of that type.
    unsafe fn sum<T: Addend + Element>(&self) -> PyResult<Bound<'py, PyAny>> {
        // SAFETY: by the condition of this function.
        let sums: Vec<T> = unsafe { self.sums() }?;
        self.shaped(PyArray1::from_vec(self.array.py(), sums).as_any())
    }

    /// The same for a type that goes to NumPy by its bits.
    ///
    /// # Safety
    ///
    /// As for [`Work::sum`].
    unsafe fn sum_bits<T: Addend>(
        &self,
        descriptor: &Bound<'py, PyArrayDescr>,
        bits: fn(T) -> u16,
    ) -> PyResult<Bound<'py, PyAny>> {
        // SAFETY: by the condition of this function.
        let sums: Vec<T> = unsafe { self.sums() }?;
        let bits = PyArray1::from_vec(self.array.py(), sums.into_iter().map(bits).collect());
        self.shaped(&bits.call_method1("view", (descriptor,))?)
    }

    fn shaped(&self, sums: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        sums.call_method1("reshape", (PyTuple::new(self.array.py(), self.shape)?,))
    }

    /// # Safety
    ///
    /// As for [`Work::sum`].
    unsafe fn sums<T: Addend>(&self) -> PyResult<Vec<T>> {
        let py = self.array.py();
        // SAFETY: by the condition of this function. That no other thread writes to the array in
        // the meantime is the caller's care in Python, as for all of NumPy.
        let grad: ArrayViewD<'_, T> = unsafe { arrays::elements(self.array) };
        let (plan, operand, limit) = (self.plan, self.operand, self.limit);
        let sum = || try_par_sum_to(grad, plan, operand, limit);
        let summed = released(py, self.array.len(), SMALL, sum)?;
        // The shapes agree, so that what is left to refuse is memory.
        let summed = summed.map_err(|error| PyMemoryError::new_err(error.to_string()))?;
        Ok(summed.into_raw_vec_and_offset().0)
    }
}
