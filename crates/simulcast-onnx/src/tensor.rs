//! Tensors that a model carries: element type, sizes and data, each held to the others.
//!
//! Every field that may carry numbers becomes one form, little-endian bytes, row after row. Bytes
//! of the model file are shared, not copied; bytes of another file stay there until they are asked
//! for. What the sizes promise is compared with what is there before anything is believed.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use simulcast_core::{elements, format_shape};

use crate::ElementType;
use crate::external::{External, ExternalError, Place};
use crate::schema::tensor as fields;
use crate::wire::{Field, Fields, WireError};

/// Why a tensor is not what it says.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TensorError {
    /// The message is broken.
    Wire(WireError),
    /// The element type has no or an unknown number.
    Element(i64),
    /// A size is negative.
    Size(i64),
    /// There are more elements than can be counted.
    Elements(Vec<usize>),
    /// The data are of another length than sizes and element type say.
    Length {
        /// The sizes.
        shape: Vec<usize>,
        /// The element type.
        element: ElementType,
        /// The elements, or for raw data the bytes, that this needs.
        expected: usize,
        /// Those that are there.
        given: usize,
        /// Whether bytes were counted.
        bytes: bool,
    },
    /// Data stand in a field that is not for this element type, or in two fields.
    Field(ElementType),
    /// A number does not fit the element type.
    Value {
        /// The element type.
        element: ElementType,
        /// The number.
        value: i64,
    },
    /// Data in another file cannot be had.
    External(ExternalError),
    /// Only a part of a tensor is stored.
    Segment,
}

impl From<WireError> for TensorError {
    fn from(error: WireError) -> Self {
        Self::Wire(error)
    }
}

impl fmt::Display for TensorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Wire(error) => write!(f, "{error}"),
            Self::Element(code) => write!(f, "there is no element type {code}"),
            Self::Size(size) => write!(f, "a size is {size}"),
            Self::Elements(shape) => {
                write!(f, "{} has too many elements to count", format_shape(shape))
            }
            Self::Length { shape, element, expected, given, bytes } => {
                let what = if *bytes { "bytes" } else { "elements" };
                write!(f, "{element} {} needs {expected} {what}, not {given}", format_shape(shape))
            }
            Self::Field(element) => write!(f, "{element} data stand in the wrong field"),
            Self::Value { element, value } => write!(f, "{value} is no {element}"),
            Self::External(error) => write!(f, "{error}"),
            Self::Segment => f.write_str("only a segment is stored, which is not supported"),
        }
    }
}

impl std::error::Error for TensorError {}

/// A file in memory, which tensors share; a vector, so that what was read is not copied once more.
pub(crate) type Buffer = Arc<Vec<u8>>;

/// A part of a buffer that several tensors share.
#[derive(Clone)]
pub(crate) struct Bytes {
    buffer: Buffer,
    range: Range<usize>,
}

impl Bytes {
    /// `part` must be a part of `buffer`; otherwise it is copied.
    pub(crate) fn of(buffer: &Buffer, part: &[u8]) -> Self {
        let start = part.as_ptr().addr().wrapping_sub(buffer.as_ptr().addr());
        let range = start..start.saturating_add(part.len());
        match buffer.get(range.clone()) {
            Some(_) => Self { buffer: Arc::clone(buffer), range },
            None => Self::from(part.to_vec()),
        }
    }

    pub(crate) fn as_slice(&self) -> &[u8] {
        self.buffer.get(self.range.clone()).unwrap_or_default()
    }
}

impl From<Vec<u8>> for Bytes {
    fn from(bytes: Vec<u8>) -> Self {
        Self { range: 0..bytes.len(), buffer: Buffer::new(bytes) }
    }
}

#[derive(Clone)]
enum Data {
    Bytes(Bytes),
    Strings(Vec<Vec<u8>>),
    External(External),
}

/// A tensor that a model carries.
#[derive(Clone)]
pub struct Tensor {
    name: String,
    element: ElementType,
    shape: Vec<usize>,
    data: Data,
}

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.name, self.element, format_shape(&self.shape))
    }
}

/// At most this many elements of a tensor are followed when shapes are computed from values.
pub(crate) const FOLDED: usize = 1024;

impl Tensor {
    /// The name; empty where it has none.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The type of the elements.
    #[must_use]
    pub fn element(&self) -> ElementType {
        self.element
    }

    /// The sizes.
    #[must_use]
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The number of elements.
    #[must_use]
    pub fn elements(&self) -> usize {
        elements(&self.shape).unwrap_or(0)
    }

    /// The elements as little-endian bytes, row after row; sub-byte elements packed, the first in
    /// the lowest bits. Reads the file that they are in, where that is another one.
    ///
    /// # Errors
    ///
    /// A [`TensorError`] for strings, and where that file cannot be read.
    pub fn bytes(&self) -> Result<Cow<'_, [u8]>, TensorError> {
        match &self.data {
            Data::Bytes(bytes) => Ok(Cow::Borrowed(bytes.as_slice())),
            Data::External(external) => {
                external.read().map(Cow::Owned).map_err(TensorError::External)
            }
            Data::Strings(_) => Err(TensorError::Field(self.element)),
        }
    }

    /// The elements of a tensor of strings, which need not be UTF-8.
    #[must_use]
    pub fn strings(&self) -> Option<&[Vec<u8>]> {
        match &self.data {
            Data::Strings(strings) => Some(strings),
            Data::Bytes(_) | Data::External(_) => None,
        }
    }

    /// The elements of a small tensor of whole numbers or truth values, where they can be read; of
    /// floats too, where each is a whole number.
    #[must_use]
    pub fn ints(&self) -> Option<Vec<i64>> {
        if self.elements() > FOLDED {
            return None;
        }
        let bytes = self.bytes().ok()?;
        let bytes = &*bytes;
        fn each<const N: usize>(
            bytes: &[u8],
            of: impl Fn([u8; N]) -> Option<i64>,
        ) -> Option<Vec<i64>> {
            bytes.as_chunks::<N>().0.iter().map(|chunk| of(*chunk)).collect()
        }
        match self.element {
            ElementType::Bool | ElementType::U8 => each(bytes, |b: [u8; 1]| Some(b[0].into())),
            ElementType::I8 => each(bytes, |b| Some(i8::from_le_bytes(b).into())),
            ElementType::U16 => each(bytes, |b| Some(u16::from_le_bytes(b).into())),
            ElementType::I16 => each(bytes, |b| Some(i16::from_le_bytes(b).into())),
            ElementType::U32 => each(bytes, |b| Some(u32::from_le_bytes(b).into())),
            ElementType::I32 => each(bytes, |b| Some(i32::from_le_bytes(b).into())),
            ElementType::U64 => each(bytes, |b| u64::from_le_bytes(b).try_into().ok()),
            ElementType::I64 => each(bytes, |b| Some(i64::from_le_bytes(b))),
            ElementType::F32 => each(bytes, |b| whole(f32::from_le_bytes(b).into())),
            ElementType::F64 => each(bytes, |b| whole(f64::from_le_bytes(b))),
            _ => None,
        }
    }

    /// The elements of a small tensor of floats, where they can be read.
    pub(crate) fn floats(&self) -> Option<Vec<f32>> {
        if self.elements() > FOLDED {
            return None;
        }
        let bytes = self.bytes().ok()?;
        match self.element {
            ElementType::F32 => {
                Some(bytes.as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect())
            }
            ElementType::F64 => {
                Some(bytes.as_chunks().0.iter().map(|b| f64::from_le_bytes(*b) as f32).collect())
            }
            _ => None,
        }
    }

    /// Reads a `TensorProto`.
    pub(crate) fn decode(
        message: &[u8],
        buffer: &Buffer,
        place: &Place,
    ) -> Result<Self, (String, TensorError)> {
        let mut parts = Parts::default();
        let tensor = parts.read(message).and_then(|()| parts.tensor(buffer, place));
        tensor.map_err(|error| (parts.name.to_owned(), error))
    }
}

/// The fields of a `TensorProto`, before they are held to each other.
#[derive(Default)]
struct Parts<'a> {
    name: &'a str,
    dims: Vec<i64>,
    code: i64,
    raw: Option<&'a [u8]>,
    typed: Vec<Field<'a>>,
    external: Vec<Fields<'a>>,
    is_external: bool,
    segment: bool,
}

impl<'a> Parts<'a> {
    fn read(&mut self, message: &'a [u8]) -> Result<(), TensorError> {
        for field in Fields::new(message) {
            let field = field?;
            match field.number {
                fields::DIMS => field.ints(|size| self.dims.push(size.cast_signed()))?,
                fields::DATA_TYPE => self.code = field.int()?,
                fields::SEGMENT => self.segment = true,
                fields::FLOAT_DATA
                | fields::INT32_DATA
                | fields::STRING_DATA
                | fields::INT64_DATA
                | fields::DOUBLE_DATA
                | fields::UINT64_DATA => self.typed.push(field),
                fields::NAME => self.name = field.text()?,
                fields::RAW_DATA => self.raw = Some(field.bytes()?),
                fields::EXTERNAL_DATA => self.external.push(field.fields()?),
                fields::DATA_LOCATION => self.is_external = field.int()? == 1,
                _ => {}
            }
        }
        Ok(())
    }

    fn tensor(&mut self, buffer: &Buffer, place: &Place) -> Result<Tensor, TensorError> {
        let code = i32::try_from(self.code).ok().and_then(ElementType::from_code);
        let element = code.ok_or(TensorError::Element(self.code))?;
        let size = |size: &i64| usize::try_from(*size).map_err(|_| TensorError::Size(*size));
        let shape: Vec<usize> = self.dims.iter().map(size).collect::<Result<_, _>>()?;
        let count = elements(&shape).map_err(|_| TensorError::Elements(shape.clone()))?;
        if self.segment {
            return Err(TensorError::Segment);
        }
        let bytes = element.bytes(count);
        let length = |expected: usize, given: usize, bytes: bool| match expected == given {
            true => Ok(()),
            false => {
                Err(TensorError::Length { shape: shape.clone(), element, expected, given, bytes })
            }
        };
        let data = match (self.is_external, self.raw, bytes) {
            (_, _, None) if element != ElementType::String => {
                return Err(TensorError::Elements(shape));
            }
            (true, None, Some(bytes)) if self.typed.is_empty() => {
                let external = External::find(&self.external, place, bytes as u64);
                Data::External(external.map_err(TensorError::External)?)
            }
            (false, Some(raw), Some(bytes)) if self.typed.is_empty() => {
                length(bytes, raw.len(), true)?;
                Data::Bytes(Bytes::of(buffer, raw))
            }
            (false, None, None) => {
                let strings = self.strings(element)?;
                length(count, strings.len(), false)?;
                Data::Strings(strings)
            }
            (false, None, Some(bytes)) => {
                let typed = self.typed(element)?;
                // Sub-byte elements are packed in bytes, so only bytes can be counted.
                match element.bits() {
                    Some(bits @ 8..) => length(count, typed.len() / (bits / 8), false)?,
                    _ => length(bytes, typed.len(), true)?,
                }
                Data::Bytes(typed.into())
            }
            _ => return Err(TensorError::Field(element)),
        };
        Ok(Tensor { name: self.name.to_owned(), element, shape, data })
    }

    fn strings(&self, element: ElementType) -> Result<Vec<Vec<u8>>, TensorError> {
        let of = |field: &Field<'_>| match field.number {
            fields::STRING_DATA => Ok(field.bytes()?.to_vec()),
            _ => Err(TensorError::Field(element)),
        };
        self.typed.iter().map(of).collect()
    }

    /// The numbers of the typed fields as little-endian bytes.
    fn typed(&self, element: ElementType) -> Result<Vec<u8>, TensorError> {
        use ElementType as E;
        let mut out = Vec::new();
        for field in &self.typed {
            match (field.number, element) {
                (fields::FLOAT_DATA, E::F32 | E::Complex64) => field.fixed::<4>(&mut out)?,
                (fields::DOUBLE_DATA, E::F64 | E::Complex128) => field.fixed::<8>(&mut out)?,
                (fields::INT64_DATA, E::I64) | (fields::UINT64_DATA, E::U64) => {
                    field.ints(|number| out.extend_from_slice(&number.to_le_bytes()))?;
                }
                (fields::UINT64_DATA, E::U32) => {
                    narrow::<4>(field, element, 0, u32::MAX.into(), &mut out)?;
                }
                (fields::INT32_DATA, E::I32) => {
                    narrow::<4>(field, element, i32::MIN.into(), i32::MAX.into(), &mut out)?;
                }
                (fields::INT32_DATA, E::I16) => {
                    narrow::<2>(field, element, i16::MIN.into(), i16::MAX.into(), &mut out)?;
                }
                (fields::INT32_DATA, E::U16 | E::F16 | E::BF16) => {
                    narrow::<2>(field, element, 0, u16::MAX.into(), &mut out)?;
                }
                (fields::INT32_DATA, E::I8) => {
                    narrow::<1>(field, element, i8::MIN.into(), i8::MAX.into(), &mut out)?;
                }
                (fields::INT32_DATA, E::Bool) => narrow::<1>(field, element, 0, 1, &mut out)?,
                (fields::INT32_DATA, _) if element.bits().is_some_and(|bits| bits <= 8) => {
                    narrow::<1>(field, element, 0, u8::MAX.into(), &mut out)?;
                }
                _ => return Err(TensorError::Field(element)),
            }
        }
        Ok(out)
    }
}

/// A float as a whole number that it holds exactly.
fn whole(value: f64) -> Option<i64> {
    // Up to 2^53 every whole number is a float of its own.
    let number = value as i64;
    let fits = value.abs() <= 9_007_199_254_740_992.0 && number as f64 == value;
    fits.then_some(number)
}

/// Numbers in a field that is wider than the element type: each must fit.
fn narrow<const N: usize>(
    field: &Field<'_>,
    element: ElementType,
    lo: i64,
    hi: i64,
    out: &mut Vec<u8>,
) -> Result<(), TensorError> {
    let mut wrong = None;
    field.ints(|number| {
        let value = number.cast_signed();
        if !(lo..=hi).contains(&value) {
            wrong = wrong.or(Some(value));
        }
        out.extend_from_slice(number.to_le_bytes().first_chunk::<N>().unwrap_or(&[0; N]));
    })?;
    wrong.map_or(Ok(()), |value| Err(TensorError::Value { element, value }))
}
