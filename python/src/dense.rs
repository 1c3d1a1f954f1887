//! The short way for small arrays: operands and result side by side in memory, and of one shape.
//!
//! For three elements all the time goes into finding out what to do. Here nothing is laid out, no
//! strides are read and nothing is allocated but the result; whatever is not quite so (another layout,
//! a policy, an option, an expression that is new) takes the long way.

use std::ops::Range;

use half::f16;
use numpy::npyffi::flags::{NPY_ARRAY_ALIGNED, NPY_ARRAY_C_CONTIGUOUS, NPY_ARRAY_WRITEABLE};
use numpy::{PyUntypedArray, PyUntypedArrayMethods as _};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyFloat, PyInt};
use simulcast::types::{OperandType, Promotion};
use simulcast::{Apply as _, DType, Op, TypedProgram};

use crate::arrays::plain;
use crate::dtypes;
use crate::functions::Options;
use crate::operands::number;
use crate::policies;
use crate::programs::{Part, Programs};
use crate::results::{SMALL, fresh, meets, returned};
use crate::rules::Rule;

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

/// Operands side by side, all of one shape but for those of a single element.
struct Side<'a, const N: usize> {
    pointers: [*const u8; N],
    dtypes: [DType; N],
    count: usize,
    /// The shape of those that have more than one element.
    shape: &'a [usize],
    /// The bits of those that have one.
    single: usize,
}

impl<'a, const N: usize> Side<'a, N> {
    const EMPTY: Self = Self {
        pointers: [std::ptr::null(); N],
        dtypes: [DType::Bool; N],
        count: 0,
        shape: &[],
        single: 0,
    };

    /// One more operand, which repeats.
    #[inline]
    const fn push_one(&mut self, pointer: *const u8, dtype: DType) {
        self.single |= 1 << self.count;
        (self.pointers[self.count], self.dtypes[self.count]) = (pointer, dtype);
        self.count += 1;
    }

    /// One more operand; its type, where it fits those that are there.
    #[inline]
    fn push(&mut self, array: &'a Bound<'_, PyUntypedArray>) -> Option<DType> {
        let own = flat(array)?;
        if own.shape.is_empty() {
            self.push_one(own.pointer, own.dtype);
            return Some(own.dtype);
        }
        if self.shape.is_empty() {
            self.shape = own.shape;
        } else if self.shape != own.shape {
            return None;
        }
        (self.pointers[self.count], self.dtypes[self.count]) = (own.pointer, own.dtype);
        self.count += 1;
        Some(own.dtype)
    }

    /// Runs a program of these operands, where it can go this way.
    #[inline]
    fn run<'py>(
        &self,
        py: Python<'py>,
        program: &TypedProgram,
        out: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let (pointers, single) = (&self.pointers[..self.count], self.single);
        let result = program.dtype();
        let Some(out) = out.filter(|out| !out.is_none()) else {
            let made = fresh(py, result, self.shape, &[])?;
            let Some(place) = flat(&made) else { return Ok(None) };
            // SAFETY: aligned elements side by side, as was looked at; the result is new.
            let done = unsafe { program.run_dense(place.pointer, pointers, single, place.len) };
            return if done { returned(made).map(Some) } else { Ok(None) };
        };
        let Some(place) = plain(out).and_then(flat) else { return Ok(None) };
        let bytes = place.bytes();
        let apart = |(n, pointer): (usize, &*const u8)| {
            let len = if single >> n & 1 == 1 { 1 } else { place.len };
            let start = pointer.addr();
            !meets(&bytes, &(start..start + len * self.dtypes[n].size()))
        };
        let fits = place.flags & NPY_ARRAY_WRITEABLE != 0
            && place.dtype == result
            && place.shape == self.shape
            && pointers.iter().enumerate().all(apart);
        // SAFETY: as above, and the result shares no memory with an operand.
        let done = fits && unsafe { program.run_dense(place.pointer, pointers, single, place.len) };
        Ok(done.then(|| out.clone()))
    }
}

/// What options ask of the short way.
#[derive(Clone, Copy)]
struct Asked {
    /// The type of the result.
    dtype: Option<DType>,
    /// Whether the rule brings only equal shapes together as NumPy's does.
    equal_shapes: bool,
}

impl Asked {
    /// None where something is asked for that only the long way knows, or says what is wrong with.
    #[inline]
    fn of(options: &Options<'_, '_>, operands: usize) -> Option<Self> {
        let Options { casting, dtype, rule, .. } = options;
        if policies::is_active() {
            return None;
        }
        if casting.is_some_and(|casting| casting != "same_kind") {
            return None;
        }
        let equal_shapes = match rule.filter(|rule| !rule.is_none()) {
            None => false,
            Some(rule) => Rule::keeps_equal_shapes(rule, operands)?,
        };
        let dtype = match dtype.filter(|dtype| !dtype.is_none()) {
            None => None,
            Some(dtype) => Some(dtypes::read(dtype).ok()?),
        };
        Some(Self { dtype, equal_shapes })
    }

    /// Whether a program of these operands gives what is asked for.
    #[inline]
    fn fits<const N: usize>(self, side: &Side<'_, N>, result: DType) -> bool {
        (!self.equal_shapes || side.single == 0) && self.dtype.is_none_or(|dtype| dtype == result)
    }
}

/// The operation, where it can go the short way.
#[inline]
pub(crate) fn apply<'py, const N: usize>(
    op: Op,
    args: [&Bound<'py, PyAny>; N],
    options: Options<'_, 'py>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    // A power of integers looks at its exponents first.
    if op == Op::Power {
        return Ok(None);
    }
    let Some(asked) = Asked::of(&options, N) else { return Ok(None) };
    let (mut side, mut number) = (Side::<N>::EMPTY, None);
    for (n, &object) in args.iter().enumerate() {
        let Some(array) = plain(object) else {
            if N != 2 || number.is_some() {
                return Ok(None);
            }
            number = Some((n, object));
            side.push_one(std::ptr::null(), DType::Bool);
            continue;
        };
        if side.push(array).is_none() {
            return Ok(None);
        }
    }
    let value;
    if let Some((n, object)) = number {
        side.dtypes[n] = side.dtypes[1 - n];
        match weak(object, side.dtypes[n]) {
            Some(own) => value = own,
            None => return Ok(None),
        }
        side.pointers[n] = (&raw const value).cast();
    }
    // What is wrong with types is said on the long way.
    let Ok(program) = op.program(Promotion::Numpy, &side.dtypes) else { return Ok(None) };
    if !asked.fits(&side, program.dtype()) {
        return Ok(None);
    }
    side.run(args[0].py(), program, options.out)
}

/// So many operands of an expression can go the short way.
pub(crate) const FEW: usize = 8;

/// The value of an expression, where its program is known and it can go the short way.
#[inline]
pub(crate) fn evaluate<'py>(
    py: Python<'py>,
    programs: &Programs,
    objects: &[Option<Bound<'py, PyAny>>],
    options: Options<'_, 'py>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    if objects.len() > FEW {
        return Ok(None);
    }
    // Operations of an expression have other numbers of operands.
    let Some(asked) = Asked::of(&options, 0) else { return Ok(None) };
    let (mut side, mut parts) = (Side::<FEW>::EMPTY, [Part::Absent; FEW]);
    for (part, object) in parts.iter_mut().zip(objects) {
        let Some(object) = object else { continue };
        let own = match plain(object) {
            Some(array) => side.push(array).map(OperandType::Array),
            None => number(object)?.map(OperandType::Literal),
        };
        match own {
            Some(own) => *part = own.into(),
            None => return Ok(None),
        }
    }
    let out = options.out.filter(|out| !out.is_none());
    let dtype = match out.map(plain) {
        Some(Some(out)) => dtypes::of_descriptor(&out.dtype()),
        Some(None) => return Ok(None),
        None => None,
    };
    let dtype = match (asked.dtype, dtype) {
        (Some(asked), Some(own)) if asked != own => return Ok(None),
        (asked, own) => asked.or(own),
    };
    match programs.known(&parts[..objects.len()], dtype) {
        Some(known)
            if side.count > 0
                && known.exponents.is_empty()
                && dtype.is_none_or(|dtype| dtype == known.natural)
                && asked.fits(&side, known.natural) =>
        {
            side.run(py, &known.program, out)
        }
        _ => Ok(None),
    }
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
