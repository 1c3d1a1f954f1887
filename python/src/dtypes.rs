//! Element types: NumPy's descriptors and the engine's names for them.
//!
//! Types that NumPy itself has go by their number; `bfloat16`, which the package `ml_dtypes` brings,
//! is known by its name and remembered.

use std::ffi::c_int;
use std::sync::atomic::{AtomicI32, Ordering};

use numpy::npyffi::{NPY_TYPES, PyArray_Descr};
use numpy::{PY_ARRAY_API, PyArrayDescr, PyArrayDescrMethods as _};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use simulcast::DType;
use simulcast::types::Casting;

/// The number that NumPy gave to `bfloat16`, once it was seen.
static BF16: AtomicI32 = AtomicI32::new(-1);
static BF16_DESCRIPTOR: PyOnceLock<Py<PyArrayDescr>> = PyOnceLock::new();

/// C's `long` and `long long`, which NumPy numbers apart from the integers of known sizes.
const fn integer(size: usize, signed: bool) -> Option<DType> {
    Some(match (size, signed) {
        (4, true) => DType::I32,
        (4, false) => DType::U32,
        (8, true) => DType::I64,
        (8, false) => DType::U64,
        _ => return None,
    })
}

const LONG: usize = size_of::<std::ffi::c_long>();
const LONGLONG: usize = size_of::<std::ffi::c_longlong>();

/// How NumPy marks types in the other order of bytes than the machine's.
pub(crate) const SWAPPED: u8 = if cfg!(target_endian = "little") { b'>' } else { b'<' };

/// By NumPy's numbers, from 0 to 23.
static BY_NUMBER: [Option<DType>; 24] = {
    let mut table = [None; 24];
    table[NPY_TYPES::NPY_BOOL as usize] = Some(DType::Bool);
    table[NPY_TYPES::NPY_BYTE as usize] = Some(DType::I8);
    table[NPY_TYPES::NPY_UBYTE as usize] = Some(DType::U8);
    table[NPY_TYPES::NPY_SHORT as usize] = Some(DType::I16);
    table[NPY_TYPES::NPY_USHORT as usize] = Some(DType::U16);
    table[NPY_TYPES::NPY_INT as usize] = Some(DType::I32);
    table[NPY_TYPES::NPY_UINT as usize] = Some(DType::U32);
    table[NPY_TYPES::NPY_LONG as usize] = integer(LONG, true);
    table[NPY_TYPES::NPY_ULONG as usize] = integer(LONG, false);
    table[NPY_TYPES::NPY_LONGLONG as usize] = integer(LONGLONG, true);
    table[NPY_TYPES::NPY_ULONGLONG as usize] = integer(LONGLONG, false);
    table[NPY_TYPES::NPY_FLOAT as usize] = Some(DType::F32);
    table[NPY_TYPES::NPY_DOUBLE as usize] = Some(DType::F64);
    table[NPY_TYPES::NPY_CFLOAT as usize] = Some(DType::C64);
    table[NPY_TYPES::NPY_CDOUBLE as usize] = Some(DType::C128);
    table[NPY_TYPES::NPY_HALF as usize] = Some(DType::F16);
    table[NPY_TYPES::NPY_OBJECT as usize] = Some(DType::String);
    table[NPY_TYPES::NPY_UNICODE as usize] = Some(DType::String);
    table
};

/// The engine's type for a number of NumPy's; objects and NumPy's strings may hold text.
#[inline]
pub(crate) fn by_number(number: c_int) -> Option<DType> {
    match usize::try_from(number).ok().and_then(|number| BY_NUMBER.get(number)) {
        Some(dtype) => *dtype,
        None if number == NPY_TYPES::NPY_VSTRING as c_int => Some(DType::String),
        None if number == BF16.load(Ordering::Relaxed) => Some(DType::Bf16),
        None => None,
    }
}

/// The engine's type for a descriptor.
pub(crate) fn of_descriptor(descriptor: &Bound<'_, PyArrayDescr>) -> Option<DType> {
    let known = by_number(descriptor.num());
    let foreign = descriptor.num() >= NPY_TYPES::NPY_USERDEF as c_int;
    if known.is_some() || !foreign || descriptor.str().ok()?.to_str().ok()? != "bfloat16" {
        return known;
    }
    BF16_DESCRIPTOR.get_or_init(descriptor.py(), || descriptor.clone().unbind());
    BF16.store(descriptor.num(), Ordering::Relaxed);
    Some(DType::Bf16)
}

/// A new reference to the descriptor of a type.
pub(crate) fn descriptor(py: Python<'_>, dtype: DType) -> PyResult<*mut PyArray_Descr> {
    let number = match dtype {
        DType::Bool => NPY_TYPES::NPY_BOOL,
        DType::I8 => NPY_TYPES::NPY_BYTE,
        DType::U8 => NPY_TYPES::NPY_UBYTE,
        DType::I16 => NPY_TYPES::NPY_SHORT,
        DType::U16 => NPY_TYPES::NPY_USHORT,
        DType::I32 => NPY_TYPES::NPY_INT,
        DType::U32 => NPY_TYPES::NPY_UINT,
        DType::I64 if LONG == 8 => NPY_TYPES::NPY_LONG,
        DType::U64 if LONG == 8 => NPY_TYPES::NPY_ULONG,
        DType::I64 => NPY_TYPES::NPY_LONGLONG,
        DType::U64 => NPY_TYPES::NPY_ULONGLONG,
        DType::F16 => NPY_TYPES::NPY_HALF,
        DType::F32 => NPY_TYPES::NPY_FLOAT,
        DType::F64 => NPY_TYPES::NPY_DOUBLE,
        DType::C64 => NPY_TYPES::NPY_CFLOAT,
        DType::C128 => NPY_TYPES::NPY_CDOUBLE,
        DType::String => NPY_TYPES::NPY_OBJECT,
        DType::Bf16 => {
            let own = BF16_DESCRIPTOR.get_or_try_init(py, || {
                let class = py.import("ml_dtypes").and_then(|module| module.getattr("bfloat16"));
                let class = class.map_err(|_| {
                    PyTypeError::new_err("bfloat16 needs the package ml_dtypes, which is not there")
                })?;
                PyArrayDescr::new(py, class).map(Bound::unbind)
            })?;
            return Ok(own.clone_ref(py).into_ptr().cast());
        }
    };
    // SAFETY: one of NumPy's own numbers, and the interpreter is attached.
    let made = unsafe { PY_ARRAY_API.PyArray_DescrFromType(py, number as c_int) };
    if made.is_null() { Err(PyErr::fetch(py)) } else { Ok(made) }
}

/// The descriptor of a type, as an object.
pub(crate) fn object(py: Python<'_>, dtype: DType) -> PyResult<Bound<'_, PyAny>> {
    // SAFETY: a new reference to a live object.
    Ok(unsafe { Bound::from_owned_ptr(py, descriptor(py, dtype)?.cast::<ffi::PyObject>()) })
}

/// The type that an argument `dtype=` names.
pub(crate) fn read(argument: &Bound<'_, PyAny>) -> PyResult<DType> {
    let descriptor = PyArrayDescr::new(argument.py(), argument)?;
    match of_descriptor(&descriptor) {
        Some(dtype) if dtype != DType::String => Ok(dtype),
        _ => Err(unknown(&descriptor)),
    }
}

#[cold]
pub(crate) fn unknown(descriptor: &Bound<'_, PyArrayDescr>) -> PyErr {
    PyTypeError::new_err(format!("arrays of dtype {descriptor} cannot be computed with"))
}

/// What an argument `casting=` allows.
pub(crate) fn casting(argument: Option<&str>) -> PyResult<Casting> {
    Ok(match argument {
        None | Some("same_kind") => Casting::SameKind,
        Some("no") => Casting::No,
        Some("equiv") => Casting::Equiv,
        Some("safe") => Casting::Safe,
        Some("unsafe") => Casting::Unsafe,
        Some(other) => {
            return Err(PyValueError::new_err(format!(
                "casting is no, equiv, safe, same_kind or unsafe, not {other:?}"
            )));
        }
    })
}
