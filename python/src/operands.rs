//! What a call is given: arrays, numbers of Python's, text.
//!
//! Numbers of Python's are weak, as in NumPy 2: they adopt the type of the arrays that they meet.
//! NumPy's own scalars and arrays without axes are not. Arrays that Rust cannot read as they lie
//! (swapped bytes, misaligned, oddly spaced) are copied first.

use half::{bf16, f16};
use ndarray::{ArrayD, IxDyn};
use numpy::npyffi::flags::NPY_ARRAY_ALIGNED;
use numpy::{PyArrayDescr, PyArrayDescrMethods as _, PyUntypedArray, PyUntypedArrayMethods as _};
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyComplex, PyFloat, PyInt, PyString};
use simulcast::types::{Literal, OperandType};
use simulcast::{AnyView, Complex, DType, Scalar};

use crate::arrays::{is_sound, plain, scalar};
use crate::cuda;
use crate::dtypes;

/// An operand.
pub(crate) enum Operand<'py> {
    /// An array that can be read as it lies, and the order of bytes that the one given is in.
    Array(Bound<'py, PyUntypedArray>, Order),
    /// A number that adopts a type.
    Number(Literal),
    /// A number that has got its type.
    Scalar(DType, [u64; 2]),
    /// Text, and the dtype that it had.
    Text(ArrayD<String>, Bound<'py, PyAny>),
    /// An array on a CUDA device, of another library.
    Device(Box<cuda::Array<'py>>),
}

/// An order of bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    Native,
    Swapped,
}

impl Order {
    /// The order of a descriptor.
    fn of(descriptor: &Bound<'_, PyArrayDescr>) -> Self {
        match descriptor.is_native_byteorder() {
            Some(false) => Self::Swapped,
            Some(true) | None => Self::Native,
        }
    }
}

/// So many axes are read without an allocation.
const FEW: usize = 8;

/// A plain array as a view, where it can be read as it lies and holds no text.
#[inline]
pub(crate) fn view<'a>(array: &'a Bound<'_, PyUntypedArray>) -> Option<AnyView<'a>> {
    let (mut few, many);
    let (shape, own) = (array.shape(), array.strides());
    // SAFETY: a live array and its descriptor.
    let (number, order, pointer, flags) = unsafe {
        let fields = &(*array.as_array_ptr()).fields;
        let descriptor = &(*fields.descr).fields;
        (descriptor.type_num, descriptor.byteorder, fields.data, fields.flags)
    };
    let dtype = dtypes::by_number(number).filter(|&dtype| dtype != DType::String)?;
    if order.cast_unsigned() == dtypes::SWAPPED || flags & NPY_ARRAY_ALIGNED == 0 {
        return None;
    }
    let item = dtype.size().cast_signed();
    let whole = |(&size, &stride): (&usize, &isize)| match size {
        0 | 1 => Some(0),
        _ => (stride & (item - 1) == 0).then(|| stride >> item.trailing_zeros()),
    };
    let strides = if shape.len() <= FEW {
        few = [0; FEW];
        for (place, axis) in few.iter_mut().zip(shape.iter().zip(own)) {
            *place = whole(axis)?;
        }
        &few[..shape.len()]
    } else {
        many = shape.iter().zip(own).map(whole).collect::<Option<Vec<isize>>>()?;
        &many[..]
    };
    // SAFETY: NumPy's own pointer, sizes and strides; aligned, in the machine's order of bytes, and
    // whole elements apart, as was just checked. NumPy's truths may be any bytes. That no other thread
    // writes to the array in the meantime is the caller's care in Python, as for all of NumPy.
    Some(unsafe {
        match dtype {
            DType::Bool => AnyView::from_raw_truths(pointer.cast(), shape, strides),
            _ => AnyView::from_raw(dtype, pointer.cast(), shape, strides),
        }
    })
}

impl<'py> Operand<'py> {
    /// An object as an operand; `None` for a Dask array, and for one of pandas or xarray.
    pub(crate) fn read(object: &Bound<'py, PyAny>) -> PyResult<Option<Self>> {
        let py = object.py();
        if let Some(array) = plain(object) {
            return Self::of_array(array.clone()).map(Some);
        }
        if object.is_none() {
            return Err(PyTypeError::new_err("None is not an array, a number or text"));
        }
        if let Some(number) = number(object)? {
            return Ok(Some(Self::Number(number)));
        }
        if let Ok(text) = object.cast::<PyString>() {
            let text = ArrayD::from_elem(IxDyn(&[]), text.to_str()?.to_owned());
            let dtype = py.import("numpy")?.getattr("asarray")?.call1((object,))?;
            return Ok(Some(Self::Text(text, dtype.getattr("dtype")?)));
        }
        if let Some(array) = scalar(object) {
            return Self::of_array(array.cast_into()?).map(Some);
        }
        if let Some(array) = cuda::Array::read(object)? {
            return Ok(Some(Self::Device(Box::new(array))));
        }
        let read = py.import("simulcast._inputs")?.getattr("operand")?.call1((object,))?;
        let read: Option<Bound<'py, PyUntypedArray>> = read.extract()?;
        read.map(Self::of_array).transpose()
    }

    fn of_array(array: Bound<'py, PyUntypedArray>) -> PyResult<Self> {
        let (py, descriptor) = (array.py(), array.dtype());
        match dtypes::of_descriptor(&descriptor) {
            None => Err(dtypes::unknown(&descriptor)),
            Some(DType::String) => {
                let text = py.import("simulcast._inputs")?.getattr("text")?;
                let words: Vec<String> = text.call1((&array,))?.extract()?;
                let text = ArrayD::from_shape_vec(IxDyn(array.shape()), words);
                let text = text.map_err(|error| PyTypeError::new_err(error.to_string()))?;
                Ok(Self::Text(text, descriptor.into_any()))
            }
            Some(_) if is_sound(&array) => Ok(Self::Array(array, Order::Native)),
            Some(_) => {
                let sound = py.import("simulcast._inputs")?.getattr("sound")?.call1((array,))?;
                Ok(Self::Array(sound.cast_into()?, Order::of(&descriptor)))
            }
        }
    }

    /// The arguments of a function as operands; `None` where one is a Dask array, or has labels.
    pub(crate) fn read_all(
        function: &str,
        arguments: &[(&str, &Bound<'py, PyAny>)],
    ) -> PyResult<Option<Vec<Self>>> {
        let read = |(name, object): &(&str, &Bound<'py, PyAny>)| {
            Self::read(object).map_err(|error| {
                about(object.py(), &format!("argument '{name}' of {function}"), &error)
            })
        };
        arguments.iter().map(read).collect()
    }

    /// Its type, for promotion.
    pub(crate) fn is(&self) -> OperandType {
        match self {
            Self::Array(array, _) => {
                OperandType::Array(dtypes::of_descriptor(&array.dtype()).unwrap_or(DType::String))
            }
            Self::Number(number) => OperandType::Literal(*number),
            Self::Scalar(dtype, _) => OperandType::Array(*dtype),
            Self::Text(..) => OperandType::Array(DType::String),
            Self::Device(array) => OperandType::Array(array.dtype),
        }
    }

    /// The type of its elements; of a number that has got none yet, that of text.
    pub(crate) fn dtype(&self) -> DType {
        match self.is() {
            OperandType::Array(dtype) => dtype,
            OperandType::Literal(_) => DType::String,
        }
    }

    /// The order that its bytes were in.
    pub(crate) fn order(&self) -> Order {
        match self {
            Self::Array(_, order) => *order,
            Self::Text(_, dtype) => dtype.cast().map_or(Order::Native, Order::of),
            Self::Number(_) | Self::Scalar(..) | Self::Device(_) => Order::Native,
        }
    }

    /// Its sizes.
    pub(crate) fn shape(&self) -> &[usize] {
        match self {
            Self::Array(array, _) => array.shape(),
            Self::Text(text, _) => text.shape(),
            Self::Device(array) => &array.shape,
            Self::Number(_) | Self::Scalar(..) => &[],
        }
    }

    /// It as a view; a number must have got its type. What is on a device has none.
    pub(crate) fn view(&self) -> Option<AnyView<'_>> {
        match self {
            Self::Array(array, _) => view(array),
            Self::Number(_) | Self::Device(_) => None,
            // SAFETY: one element of that type.
            Self::Scalar(dtype, bytes) => Some(unsafe {
                AnyView::from_raw(*dtype, std::ptr::from_ref(bytes).cast(), &[], &[])
            }),
            Self::Text(text, _) => Some(AnyView::from(text)),
        }
    }

    /// The number with a type.
    pub(crate) fn scalar(scalar: &Scalar) -> PyResult<Self> {
        Ok(Self::Scalar(scalar.dtype(), bytes(scalar)?))
    }
}

/// The names of the operands of a function, as its signature has them.
pub(crate) const ARGUMENTS: [&str; 3] = ["a", "b", "c"];

/// An error of types or values with what it is about in front: `argument 'a' of add: None is not …`.
#[cold]
pub(crate) fn about(py: Python<'_>, what: &str, error: &PyErr) -> PyErr {
    let kind = error.get_type(py);
    let plain = kind.is(py.get_type::<PyTypeError>()) || kind.is(py.get_type::<PyValueError>());
    match plain {
        true => PyErr::from_type(kind, format!("{what}: {}", error.value(py))),
        false => error.clone_ref(py),
    }
}

/// The views of operands whose numbers have got their types.
pub(crate) fn views<'a>(operands: &'a [Operand<'_>]) -> PyResult<Vec<AnyView<'a>>> {
    let lost = |operand: &Operand<'_>| match operand {
        Operand::Device(_) => PyTypeError::new_err(
            "an array on a device is not taken here: evaluate, functions, copies and sums compute there",
        ),
        _ => PyTypeError::new_err("an operand cannot be read"),
    };
    operands.iter().map(|operand| operand.view().ok_or_else(|| lost(operand))).collect()
}

/// A number of Python's own classes: NumPy takes those of any other for arrays.
pub(crate) fn number(object: &Bound<'_, PyAny>) -> PyResult<Option<Literal>> {
    if let Ok(truth) = object.cast::<PyBool>() {
        return Ok(Some(Literal::Bool(truth.is_true())));
    }
    if object.is_exact_instance_of::<PyInt>() {
        let value: Result<i128, _> = object.extract();
        return value
            .map(|value| Some(Literal::Int(value)))
            .map_err(|_| PyOverflowError::new_err(format!("the integer {object} is too large")));
    }
    if let Ok(float) = object.cast_exact::<PyFloat>() {
        return Ok(Some(Literal::Float(float.value())));
    }
    let complex = object.cast_exact::<PyComplex>().ok();
    Ok(complex.map(|own| Literal::Complex(Complex::new(own.real(), own.imag()))))
}

/// A value as it lies in memory.
fn bytes(scalar: &Scalar) -> PyResult<[u64; 2]> {
    let mut place = [0_u8; 16];
    let mut put = |bytes: &[u8]| place[..bytes.len()].copy_from_slice(bytes);
    #[expect(clippy::cast_possible_truncation, reason = "the type holds the value")]
    match *scalar {
        Scalar::Bool(value) => put(&[u8::from(value)]),
        Scalar::Int(dtype, value) => match dtype.size() {
            1 => put(&(value as u8).to_ne_bytes()),
            2 => put(&(value as u16).to_ne_bytes()),
            4 => put(&(value as u32).to_ne_bytes()),
            _ => put(&(value as u64).to_ne_bytes()),
        },
        Scalar::Float(DType::F16, value) => put(&f16::from_f64(value).to_ne_bytes()),
        Scalar::Float(DType::Bf16, value) => put(&bf16::from_f64(value).to_ne_bytes()),
        Scalar::Float(DType::F32, value) => put(&(value as f32).to_ne_bytes()),
        Scalar::Float(_, value) => put(&value.to_ne_bytes()),
        Scalar::Complex(DType::C64, value) => {
            put(&[(value.re as f32).to_ne_bytes(), (value.im as f32).to_ne_bytes()].concat());
        }
        Scalar::Complex(_, value) => {
            put(&[value.re.to_ne_bytes(), value.im.to_ne_bytes()].concat());
        }
        Scalar::String(_) => return Err(PyTypeError::new_err("text is no number")),
    }
    let half = |at: usize| u64::from_ne_bytes(std::array::from_fn(|k| place[at + k]));
    Ok([half(0), half(8)])
}
