//! Values of a run: arrays that it made, or that its caller lent, or one of those seen otherwise.

use std::sync::Arc;

use ndarray::{ArrayD, IxDyn};
use simulcast::{AnyArray, AnyView, DType};
use simulcast_core::format_shape;

use super::error::{NodeError, RunError};
use super::node::Allowed;
use crate::{ElementType, Tensor};

/// Does the same to an array of whichever element type.
macro_rules! each {
    ($view:expr, $typed:ident => $body:expr) => {{
        let view: &::simulcast::AnyView<'_> = &$view;
        ::simulcast::dispatch!(view.dtype(), T => match view.typed::<T>() {
            Some($typed) => $body,
            None => Err($crate::run::error::NodeError::from("a view without its type")),
        })
    }};
}
pub(crate) use each;

/// A value of a run.
#[derive(Clone, Debug)]
pub(crate) enum Value<'a> {
    Made(Arc<AnyArray>),
    Lent(&'a AnyView<'a>),
    /// Elements that stay where they are: who reads them reads them there.
    Seen(Arc<Seen<'a>>),
}

/// A way to see elements, without moving them.
#[derive(Clone, Debug)]
pub(crate) enum Look {
    /// The axes in another order.
    Axes(Vec<usize>),
    /// Stretched to a shape.
    To(Vec<usize>),
    /// In other sizes, row after row.
    Sizes(Vec<usize>),
}

impl Look {
    fn at<'v>(&self, view: &AnyView<'v>) -> Option<AnyView<'v>> {
        match self {
            Self::Axes(order) => view.permuted_axes(order),
            Self::To(shape) => view.broadcast_to(shape).ok(),
            Self::Sizes(shape) => view.reshaped(shape),
        }
    }
}

/// More looks at one array than this, and it is written out: each costs its readers a little.
const LOOKS: usize = 8;

/// An array, how it is looked at, and the shape that it has then.
#[derive(Debug)]
pub(crate) struct Seen<'a> {
    array: Value<'a>,
    looks: Vec<Look>,
    shape: Vec<usize>,
}

impl Seen<'_> {
    fn view(&self) -> Option<AnyView<'_>> {
        self.looks.iter().try_fold(self.array.view(), |view, look| look.at(&view))
    }
}

impl<'a> Value<'a> {
    pub(crate) fn view(&self) -> AnyView<'_> {
        match self {
            Self::Made(array) => array.view(),
            Self::Lent(view) => (*view).clone(),
            // Never `None`: the value was made when there was such a view.
            Self::Seen(seen) => seen.view().unwrap_or_else(|| seen.array.view()),
        }
    }

    /// The array that a run made and that the value is, or is a look at.
    pub(crate) fn made(&self) -> Option<&Arc<AnyArray>> {
        match self {
            Self::Made(array) => Some(array),
            Self::Lent(_) => None,
            Self::Seen(seen) => seen.array.made(),
        }
    }

    /// The value seen in another way; written out first, where its elements do not lie so.
    pub(crate) fn look(self, look: &Look, allowed: &Allowed) -> Result<Self, NodeError> {
        if let Some(seen) = self.seen(look) {
            return Ok(seen);
        }
        let shape = format_shape(self.shape());
        let written = Self::from(self.into_array(allowed)?);
        written.seen(look).ok_or_else(|| format!("{shape} cannot be seen as {look:?}").into())
    }

    fn seen(&self, look: &Look) -> Option<Self> {
        let (array, mut looks) = match self {
            Self::Seen(seen) => (seen.array.clone(), seen.looks.clone()),
            other => (other.clone(), Vec::new()),
        };
        looks.push(look.clone());
        let mut seen = Seen { array, looks, shape: Vec::new() };
        seen.shape = seen.view()?.shape().to_vec();
        (seen.looks.len() <= LOOKS).then(|| Self::Seen(Arc::new(seen)))
    }

    pub(crate) fn dtype(&self) -> DType {
        match self {
            Self::Made(array) => array.dtype(),
            Self::Lent(view) => view.dtype(),
            Self::Seen(seen) => seen.array.dtype(),
        }
    }

    pub(crate) fn shape(&self) -> &[usize] {
        match self {
            Self::Made(array) => array.shape(),
            Self::Lent(view) => view.shape(),
            Self::Seen(seen) => &seen.shape,
        }
    }

    /// The array itself where nobody else has it, else a copy; row-major.
    pub(crate) fn into_array(self, allowed: &Allowed) -> Result<AnyArray, NodeError> {
        match self {
            Self::Made(array) => Ok(Arc::unwrap_or_clone(array)),
            other => allowed.evaluate(&[other.view()], |_, args| Ok(args[0])),
        }
    }
}

impl From<AnyArray> for Value<'_> {
    fn from(array: AnyArray) -> Self {
        Self::Made(Arc::new(array))
    }
}

/// The type that elements are computed as.
pub(crate) const fn dtype(element: ElementType) -> Option<DType> {
    Some(match element {
        ElementType::Bool => DType::Bool,
        ElementType::I8 => DType::I8,
        ElementType::I16 => DType::I16,
        ElementType::I32 => DType::I32,
        ElementType::I64 => DType::I64,
        ElementType::U8 => DType::U8,
        ElementType::U16 => DType::U16,
        ElementType::U32 => DType::U32,
        ElementType::U64 => DType::U64,
        ElementType::F16 => DType::F16,
        ElementType::BF16 => DType::Bf16,
        ElementType::F32 => DType::F32,
        ElementType::F64 => DType::F64,
        ElementType::Complex64 => DType::C64,
        ElementType::Complex128 => DType::C128,
        ElementType::String => DType::String,
        _ => return None,
    })
}

/// The type that a run holds elements as: codes, where nothing computes with them.
pub(crate) fn held(element: ElementType) -> DType {
    dtype(element).unwrap_or(DType::U8)
}

/// The array of a shape and its elements, row after row.
pub(crate) fn array<T>(shape: &[usize], elements: Vec<T>) -> Result<ArrayD<T>, NodeError> {
    ArrayD::from_shape_vec(IxDyn(shape), elements).map_err(|error| error.to_string().into())
}

/// A tensor of the model as an array.
pub(crate) fn of_tensor(tensor: &Tensor, name: &str) -> Result<AnyArray, RunError> {
    let name = || if tensor.name().is_empty() { name } else { tensor.name() }.to_owned();
    let other = |why: String| RunError::Value { name: name(), why };
    let dtype = held(tensor.element());
    let shape = tensor.shape();
    if dtype == DType::String {
        let texts = tensor.strings().unwrap_or_default().iter().map(|text| {
            String::from_utf8(text.clone()).map_err(|_| other("a text that is not UTF-8".into()))
        });
        let texts = texts.collect::<Result<Vec<_>, _>>()?;
        return array(shape, texts).map(AnyArray::from).map_err(|why| other(why.to_string()));
    }
    let bytes = tensor.bytes().map_err(|why| RunError::Tensor { name: name(), why })?;
    if let Some(bits @ ..8) = tensor.element().bits() {
        let (in_each, mask) = (8 / bits, (1_u8 << bits) - 1);
        let code =
            |n: usize| bytes.get(n / in_each).map(|byte| byte >> (n % in_each * bits) & mask);
        let codes: Vec<u8> = (0..tensor.elements()).filter_map(code).collect();
        return array(shape, codes).map(AnyArray::from).map_err(|why| other(why.to_string()));
    }
    macro_rules! read {
        ($size:literal, $of:expr) => {{
            let elements = bytes.as_chunks::<$size>().0.iter().map(|&chunk| $of(chunk)).collect();
            array(shape, elements).map(AnyArray::from)
        }};
    }
    use simulcast::Complex;
    let made = match dtype {
        DType::Bool => read!(1, |[byte]: [u8; 1]| byte != 0),
        DType::I8 => read!(1, i8::from_le_bytes),
        DType::U8 => read!(1, u8::from_le_bytes),
        DType::I16 => read!(2, i16::from_le_bytes),
        DType::U16 => read!(2, u16::from_le_bytes),
        DType::F16 => read!(2, half::f16::from_le_bytes),
        DType::Bf16 => read!(2, half::bf16::from_le_bytes),
        DType::I32 => read!(4, i32::from_le_bytes),
        DType::U32 => read!(4, u32::from_le_bytes),
        DType::F32 => read!(4, f32::from_le_bytes),
        DType::I64 => read!(8, i64::from_le_bytes),
        DType::U64 => read!(8, u64::from_le_bytes),
        DType::F64 => read!(8, f64::from_le_bytes),
        DType::C64 => read!(8, |b: [u8; 8]| {
            let [re, im] = [[b[0], b[1], b[2], b[3]], [b[4], b[5], b[6], b[7]]];
            Complex::new(f32::from_le_bytes(re), f32::from_le_bytes(im))
        }),
        DType::C128 => read!(16, |b: [u8; 16]| {
            let bits = u128::from_le_bytes(b);
            let part = |shift: u32| f64::from_bits((bits >> shift) as u64);
            Complex::new(part(0), part(64))
        }),
        DType::String => return Err(other("text".into())),
    };
    made.map_err(|why| other(why.to_string()))
}
