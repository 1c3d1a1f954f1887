//! Elements: bytes that can be shown as they lie, and bytes that must be converted.
//!
//! The one place that makes a view of bytes from outside. Invariant: a [`FileLayout`] is made for
//! exactly `bytes()` bytes, and a view is given only where [`FileLayout::lies`] holds for them.

use ndarray::{ArrayD, IxDyn, ShapeBuilder as _};
use simulcast::{AnyArray, AnyView, Complex, DType};

use crate::error::FileProblem;
use crate::npy::{Coding, Header};
use crate::store::Budget;

/// How an array lies in bytes, row-major or the other way round, with nothing between elements.
#[derive(Clone, Debug)]
pub(crate) struct FileLayout {
    coding: Coding,
    fortran: bool,
    shape: Vec<usize>,
    count: usize,
}

impl FileLayout {
    /// What a header says, where that can be addressed.
    pub(crate) fn new(header: Header) -> Result<Self, FileProblem> {
        let Header { coding, fortran, shape } = header;
        let coding = coding?;
        // In the file and in memory.
        if extent(coding.width(), &shape).and(extent(coding.dtype().size(), &shape)).is_none() {
            return Err(FileProblem::Overflow { shape });
        }
        let count = shape.iter().product();
        Ok(Self { coding, fortran, shape, count })
    }

    /// The bytes of all elements in the file.
    pub(crate) const fn bytes(&self) -> usize {
        self.count * self.coding.width()
    }

    /// The elements within what follows a header: all of it, and no more.
    pub(crate) fn whole<'a>(&self, rest: &'a [u8]) -> Result<&'a [u8], FileProblem> {
        let (needs, has) = (self.bytes() as u64, rest.len() as u64);
        match has.checked_sub(needs) {
            None => Err(FileProblem::Truncated { part: "elements", needs, has }),
            Some(0) => Ok(rest),
            Some(bytes) => Err(FileProblem::Trailing { bytes }),
        }
    }

    /// Whether the bytes can be viewed in place: right length, alignment and byte order, and valid
    /// `bool`s. NumPy takes a byte other than 0 and 1 for true, and so does the conversion.
    pub(crate) fn is_viewable(&self, bytes: &[u8]) -> bool {
        let Coding::Number { dtype, swap: false } = self.coding else { return false };
        bytes.len() == self.bytes()
            && bytes.as_ptr().addr().is_multiple_of(dtype.align())
            && (dtype != DType::Bool || bytes.iter().all(|&byte| byte <= 1))
    }

    /// The view of bytes that lie as they should.
    ///
    /// # Safety
    ///
    /// [`FileLayout::lies`] was found to hold for these bytes.
    pub(crate) unsafe fn view<'a>(&self, bytes: &'a [u8]) -> AnyView<'a> {
        let strides = strides(&self.shape, self.fortran);
        // SAFETY: `lies`: the bytes are as many as the elements of this shape have, aligned, and
        // values of the type (any bits are, but for `bool`, which it looks at); the strides walk
        // them without a gap; `new` has checked the product.
        unsafe { AnyView::from_raw(self.coding.dtype(), bytes.as_ptr(), &self.shape, &strides) }
    }

    /// An array of its own, of exactly [`FileLayout::bytes`] bytes.
    pub(crate) fn convert(&self, bytes: &[u8], budget: &Budget) -> Result<AnyArray, FileProblem> {
        let held = self.coding.dtype().size();
        let text = if self.coding.dtype() == DType::String { self.coding.width() } else { 0 };
        budget.take("an array", (held as u64 + text as u64).saturating_mul(self.count as u64))?;
        match self.coding {
            Coding::Number { dtype, swap } => self.numbers(dtype, bytes, swap),
            Coding::Points { count, swap } => self.strings(bytes, |at, element| {
                points(element, count, swap)
                    .ok_or(FileProblem::Text { element: at, why: "has a code point that is none" })
            }),
            Coding::Bytes { .. } => self.strings(bytes, |at, element| {
                let used = element.len() - element.iter().rev().take_while(|&&b| b == 0).count();
                let text = element.get(..used).and_then(|bytes| str::from_utf8(bytes).ok());
                text.map(str::to_owned)
                    .ok_or(FileProblem::Text { element: at, why: "is not UTF-8" })
            }),
        }
    }

    fn numbers(&self, dtype: DType, bytes: &[u8], swap: bool) -> Result<AnyArray, FileProblem> {
        macro_rules! numbers {
            ([$($variant:ident: $type:ty,)*] [$($pair:ident: $part:ty,)*]) => {
                match dtype {
                    DType::Bool => self.array(bytes.iter().map(|&byte| byte != 0).collect()),
                    $(DType::$variant => self.array(
                        cut(bytes, swap).map(<$type>::from_ne_bytes).collect(),
                    ),)*
                    $(DType::$pair => {
                        let mut parts = cut(bytes, swap).map(<$part>::from_ne_bytes);
                        let pair = || Some(Complex::new(parts.next()?, parts.next()?));
                        self.array(std::iter::from_fn(pair).collect())
                    })*
                    DType::String => Err(FileProblem::Unknown),
                }
            };
        }
        numbers!(
            [
                I8: i8, I16: i16, I32: i32, I64: i64, U8: u8, U16: u16, U32: u32, U64: u64,
                F16: half::f16, Bf16: half::bf16, F32: f32, F64: f64,
            ]
            [C64: f32, C128: f64,]
        )
    }

    fn strings(
        &self,
        bytes: &[u8],
        text: impl Fn(usize, &[u8]) -> Result<String, FileProblem>,
    ) -> Result<AnyArray, FileProblem> {
        if self.coding.width() == 0 {
            return self.array(vec![String::new(); self.count]);
        }
        let elements = bytes.chunks_exact(self.coding.width()).enumerate();
        self.array(elements.map(|(at, element)| text(at, element)).collect::<Result<_, _>>()?)
    }

    fn array<T>(&self, elements: Vec<T>) -> Result<AnyArray, FileProblem>
    where
        AnyArray: From<ArrayD<T>>,
    {
        let shape = IxDyn(&self.shape).set_f(self.fortran);
        let array = ArrayD::from_shape_vec(shape, elements);
        array.map(AnyArray::from).map_err(|_| FileProblem::Overflow { shape: self.shape.clone() })
    }
}

/// The bytes of all elements, of that many each; `None` for what cannot be addressed, even if a size
/// is 0: no array has such a shape.
pub(crate) fn extent(width: usize, shape: &[usize]) -> Option<usize> {
    let mut sizes = shape.iter().filter(|&&size| size != 0);
    let whole = sizes.try_fold(width.max(1), |product, &size| product.checked_mul(size))?;
    isize::try_from(whole).ok()?;
    Some(if shape.contains(&0) { 0 } else { whole })
}

/// The strides of elements with nothing between them. Not the core's `row_major_into`: files know Fortran's order too,
/// and an empty array keeps the strides of its axes.
pub(crate) fn strides(shape: &[usize], fortran: bool) -> Vec<isize> {
    let mut strides = vec![0; shape.len()];
    let mut step = 1;
    let mut place = |(stride, &size): (&mut isize, &usize)| {
        *stride = step;
        // It fits: the product of all sizes other than 0 does.
        step *= size.max(1).cast_signed();
    };
    if fortran {
        strides.iter_mut().zip(shape).for_each(&mut place);
    } else {
        strides.iter_mut().zip(shape).rev().for_each(&mut place);
    }
    strides
}

/// Numbers of `N` bytes, in this machine's order.
fn cut<const N: usize>(bytes: &[u8], swap: bool) -> impl Iterator<Item = [u8; N]> {
    bytes.chunks_exact(N).filter_map(move |chunk| {
        let mut number: [u8; N] = chunk.try_into().ok()?;
        if swap {
            number.reverse();
        }
        Some(number)
    })
}

/// Text of four bytes a code point, without the zeros at its end.
fn points(element: &[u8], count: usize, swap: bool) -> Option<String> {
    let mut text = String::new();
    let mut zeros = 0;
    for point in cut(element, swap).map(u32::from_ne_bytes).take(count) {
        if point == 0 {
            zeros += 1;
            continue;
        }
        text.extend(std::iter::repeat_n('\0', std::mem::take(&mut zeros)));
        text.push(char::from_u32(point)?);
    }
    Some(text)
}
