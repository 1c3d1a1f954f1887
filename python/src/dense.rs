//! The short way for small arrays: operands and result side by side in memory, and of one shape.
//!
//! For three elements all the time goes into finding out what to do. Here nothing is laid out, no
//! strides are read and nothing is allocated but the result; whatever is not quite so (another layout,
//! a policy, an option) takes the long way.

use std::ops::Range;

use half::f16;
use numpy::npyffi::flags::{NPY_ARRAY_ALIGNED, NPY_ARRAY_C_CONTIGUOUS, NPY_ARRAY_WRITEABLE};
use numpy::{PyUntypedArray, PyUntypedArrayMethods as _};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyFloat, PyInt};
use simulcast::{DType, Op, Promotion};

use crate::arrays::plain;
use crate::dtypes;
use crate::functions::Options;
use crate::policies;
use crate::results::{SMALL, fresh, meets, returned};

/// An array whose elements lie side by side, in C's order.
struct Flat<'a> {
    dtype: DType,
    pointer: *mut u8,
    shape: &'a [usize],
    len: usize,
    flags: i32,
}

#[inline]
fn flat<'a>(array: &'a Bound<'_, PyUntypedArray>) -> Option<Flat<'a>> {
    const NEEDED: i32 = NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_ALIGNED;
    // SAFETY: a live array and its descriptor.
    let (number, order, pointer, flags) = unsafe {
        let fields = &(*array.as_array_ptr()).fields;
        let descriptor = &(*fields.descr).fields;
        (descriptor.type_num, descriptor.byteorder, fields.data, fields.flags)
    };
    let dtype = dtypes::by_number(number)?;
    let (shape, mut len) = (array.shape(), 1_usize);
    for &size in shape {
        len = len.checked_mul(size)?;
    }
    let swapped = order.cast_unsigned() == dtypes::SWAPPED;
    let fits = flags & NEEDED == NEEDED && !swapped && dtype != DType::String;
    (fits && (1..=SMALL).contains(&len)).then_some(Flat {
        dtype,
        pointer: pointer.cast(),
        shape,
        len,
        flags,
    })
}

impl Flat<'_> {
    #[inline]
    fn bytes(&self) -> Range<usize> {
        self.pointer.addr()..self.pointer.addr() + self.len * self.dtype.size()
    }
}

/// The operation, where it can go the short way.
#[inline]
pub(crate) fn apply<'py, const N: usize>(
    op: Op,
    args: [&Bound<'py, PyAny>; N],
    options: Options<'_, 'py>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let Options { out, casting, dtype, rule, threads } = options;
    let plainly = casting.is_none() && dtype.is_none() && rule.is_none() && threads.is_none();
    // A power of integers looks at its exponents first.
    if !plainly || op == Op::Power || policies::is_active() {
        return Ok(None);
    }
    let py = args[0].py();
    let mut pointers = [std::ptr::null::<u8>(); N];
    let mut dtypes = [DType::Bool; N];
    let mut shape: &[usize] = &[];
    let (mut single, mut number) = (0, None);
    for (n, &object) in args.iter().enumerate() {
        let Some(array) = plain(object) else {
            if N != 2 || number.is_some() {
                return Ok(None);
            }
            number = Some((n, object));
            single |= 1 << n;
            continue;
        };
        let Some(own) = flat(array) else { return Ok(None) };
        (pointers[n], dtypes[n]) = (own.pointer.cast_const(), own.dtype);
        if own.shape.is_empty() {
            single |= 1 << n;
        } else if shape.is_empty() {
            shape = own.shape;
        } else if shape != own.shape {
            return Ok(None);
        }
    }
    let value;
    if let Some((n, object)) = number {
        dtypes[n] = dtypes[1 - n];
        match weak(object, dtypes[n]) {
            Some(own) => value = own,
            None => return Ok(None),
        }
        pointers[n] = (&raw const value).cast();
    }
    // What is wrong with types is said on the long way.
    let Ok(program) = op.program(Promotion::Numpy, &dtypes) else { return Ok(None) };
    let result = program.dtype();
    let Some(out) = out.filter(|out| !out.is_none()) else {
        let made = fresh(py, result, shape, &[])?;
        let Some(place) = flat(&made) else { return Ok(None) };
        // SAFETY: aligned elements side by side, as was looked at; the result is new.
        let done = unsafe { program.run_dense(place.pointer, &pointers, single, place.len) };
        return if done { returned(made).map(Some) } else { Ok(None) };
    };
    let Some(place) = plain(out).and_then(flat) else { return Ok(None) };
    let bytes = place.bytes();
    let apart = |(n, pointer): (usize, &*const u8)| {
        let len = if single >> n & 1 == 1 { 1 } else { place.len };
        let start = pointer.addr();
        !meets(&bytes, &(start..start + len * dtypes[n].size()))
    };
    let fits = place.flags & NPY_ARRAY_WRITEABLE != 0
        && place.dtype == result
        && place.shape == shape
        && pointers.iter().enumerate().all(apart);
    // SAFETY: as above, and the result shares no memory with an operand.
    let done = fits && unsafe { program.run_dense(place.pointer, &pointers, single, place.len) };
    Ok(done.then(|| out.clone()))
}

/// A number of Python's beside an array of floats, or of integers that hold it, as one of that type.
#[inline]
fn weak(object: &Bound<'_, PyAny>, beside: DType) -> Option<[u64; 2]> {
    #[expect(clippy::cast_possible_truncation, reason = "rounded, as NumPy does it")]
    let float = |value: f64| match beside {
        DType::F64 => Some([value.to_bits(), 0]),
        DType::F32 => Some(first((value as f32).to_ne_bytes())),
        DType::F16 => Some(first(f16::from_f64_const(value).to_ne_bytes())),
        _ => None,
    };
    if object.is_exact_instance_of::<PyFloat>() {
        // SAFETY: a live float, and the interpreter is attached.
        return float(unsafe { ffi::PyFloat_AsDouble(object.as_ptr()) });
    }
    if !object.is_exact_instance_of::<PyInt>() {
        return None;
    }
    let mut overflow = 0;
    // SAFETY: a live int, and the interpreter is attached.
    let value = unsafe { ffi::PyLong_AsLongLongAndOverflow(object.as_ptr(), &raw mut overflow) };
    if overflow != 0 {
        return None;
    }
    match beside {
        DType::I64 => Some([value.cast_unsigned(), 0]),
        DType::I32 => i32::try_from(value).ok().map(|value| first(value.to_ne_bytes())),
        DType::U8 => u8::try_from(value).ok().map(|value| first(value.to_ne_bytes())),
        _ => float(value as f64),
    }
}

/// Some bytes at the beginning of sixteen.
#[inline]
fn first<const M: usize>(bytes: [u8; M]) -> [u64; 2] {
    let mut eight = [0; 8];
    eight[..M].copy_from_slice(&bytes);
    [u64::from_ne_bytes(eight), 0]
}
