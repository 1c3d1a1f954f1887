//! Arrays whose element type is known when the program runs.
//!
//! [`AnyArray`] owns; [`AnyView`] reads and [`AnyViewMut`] writes somebody's memory, which may have
//! any strides. Views carry a pointer, a shape and strides, and no Rust type: one engine serves all
//! types, and other systems' arrays (NumPy's, files mapped into memory) are views as they are.
//!
//! ```
//! use ndarray::array;
//! use simulcast::{AnyArray, AnyView, DType};
//!
//! let x = array![[1.5_f32, 2.5], [3.5, 4.5]];
//! let view = AnyView::from(&x);
//! assert_eq!((view.dtype(), view.shape()), (DType::F32, &[2, 2][..]));
//! assert_eq!(view.typed::<f32>(), Some(x.view().into_dyn()));
//! assert_eq!(view.typed::<f64>(), None);
//!
//! // Seen otherwise, without a copy.
//! let turned = view.permuted_axes(&[1, 0]).map(|view| view.broadcast_to(&[3, 2, 2]));
//! assert_eq!(turned.map(|view| view.map(|view| view.strides().to_vec())), Some(Ok(vec![0, 1, 2])));
//! assert_eq!(view.reshaped(&[4]).and_then(|view| Some(view.typed::<f32>()?[3])), Some(4.5));
//!
//! let owned = AnyArray::from(x.clone());
//! assert_eq!(owned.typed::<f32>(), Some(x.view().into_dyn()));
//! ```

use std::fmt;
use std::marker::PhantomData;

use ndarray::{
    Array, ArrayBase, ArrayD, ArrayRef, ArrayView, ArrayViewD, ArrayViewMut, ArrayViewMutD, Data,
    DataMut, Dimension, IxDyn,
};
use simulcast_core::{BroadcastError, Rule, row_major_into};

use crate::array::raw_view;
use crate::by_name::types::IntoArrayError;
use crate::layout::broadcast::{Laid, checked_len};
use crate::layout::small_vec::Inline;
use simulcast_kernels::dtype::{DType, Element};
use simulcast_kernels::every_dtype;

/// A read-only view of an array of any element type.
///
/// ```
/// use ndarray::{array, s};
/// use simulcast::{AnyView, DType};
///
/// let x = array![[1_u8, 2, 3], [4, 5, 6]];
/// let odd = x.slice(s![.., ..;2]);
/// let view = AnyView::from(&odd);
/// assert_eq!((view.dtype(), view.shape(), view.strides()), (DType::U8, &[2, 2][..], &[3, 2][..]));
/// assert_eq!(view.typed::<u8>(), Some(array![[1, 3], [4, 6]].view().into_dyn()));
/// ```
#[derive(Clone)]
pub struct AnyView<'a> {
    dtype: DType,
    pointer: *const u8,
    shape: Inline<usize>,
    strides: Inline<isize>,
    /// Whether truths may be other bytes than 0 and 1.
    loose: bool,
    elements: PhantomData<&'a ()>,
}

/// A view of an array of any element type, for writing: no two of its elements share a place.
///
/// ```
/// use ndarray::Array2;
/// use simulcast::{AnyViewMut, DType};
///
/// let mut x = Array2::<f32>::zeros((2, 3));
/// let mut view = AnyViewMut::from(&mut x);
/// assert_eq!((view.dtype(), view.shape()), (DType::F32, &[2, 3][..]));
/// view.typed::<f32>().unwrap().fill(1.0);
/// assert_eq!(x.sum(), 6.0);
/// ```
pub struct AnyViewMut<'a> {
    dtype: DType,
    pointer: *mut u8,
    shape: Inline<usize>,
    strides: Inline<isize>,
    elements: PhantomData<&'a mut ()>,
}

// SAFETY: every element type is `Send` and `Sync`, and a view is used as a reference to them.
unsafe impl Send for AnyView<'_> {}
// SAFETY: as above.
unsafe impl Sync for AnyView<'_> {}
// SAFETY: as above.
unsafe impl Send for AnyViewMut<'_> {}
// SAFETY: as above.
unsafe impl Sync for AnyViewMut<'_> {}

/// What views of both kinds say of themselves.
macro_rules! described {
    ($($view:ident)*) => { $(
        impl $view<'_> {
            /// The type of the elements.
            #[must_use]
            #[inline]
            pub const fn dtype(&self) -> DType {
                self.dtype
            }

            /// The sizes.
            #[must_use]
            #[inline]
            pub fn shape(&self) -> &[usize] {
                &self.shape
            }

            /// How far apart neighbours are along each axis, in elements.
            #[must_use]
            #[inline]
            pub fn strides(&self) -> &[isize] {
                &self.strides
            }
        }
    )* };
}

described!(AnyView AnyViewMut);

impl<'a> AnyView<'a> {
    /// A view of somebody's memory; strides in elements.
    ///
    /// # Safety
    ///
    /// For every index within `shape`, `pointer` moved by the index times the strides (times the
    /// size of an element) is aligned and holds a value of that type, unchanged during `'a`; the
    /// product of the sizes other than 0 fits in `isize`; `shape` and `strides` are of one length.
    #[must_use]
    #[inline]
    pub unsafe fn from_raw(
        dtype: DType,
        pointer: *const u8,
        shape: &[usize],
        strides: &[isize],
    ) -> Self {
        let (shape, strides) = (Inline::from_slice(shape), Inline::from_slice(strides));
        Self { dtype, pointer, shape, strides, loose: false, elements: PhantomData }
    }

    /// A view of truths in somebody's memory, of which every byte but 0 is true, as in NumPy's arrays.
    ///
    /// Programs read such bytes as they are; [`AnyView::typed`] looks at all of them.
    ///
    /// # Safety
    ///
    /// As [`AnyView::from_raw`], of bytes of any value.
    #[must_use]
    #[inline]
    #[doc(hidden)]
    pub unsafe fn from_raw_truths(pointer: *const u8, shape: &[usize], strides: &[isize]) -> Self {
        // SAFETY: the caller keeps the conditions, and nothing reads the bytes as `bool`.
        let bytes = unsafe { Self::from_raw(DType::Bool, pointer, shape, strides) };
        Self { loose: true, ..bytes }
    }

    /// The same memory with another shape and other strides.
    ///
    /// # Safety
    ///
    /// As [`AnyView::from_raw`]; every element that is reached is one of this view's.
    #[must_use]
    #[inline]
    #[doc(hidden)]
    pub unsafe fn relaid(&self, shape: &[usize], strides: &[isize]) -> Self {
        // SAFETY: the caller keeps the conditions, and what holds of the elements still does.
        let seen = unsafe { Self::from_raw(self.dtype, self.pointer, shape, strides) };
        Self { loose: self.loose, ..seen }
    }

    /// The first element.
    #[must_use]
    #[inline]
    pub const fn as_ptr(&self) -> *const u8 {
        self.pointer
    }

    /// The number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Whether there are no elements: a size is 0.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.shape.contains(&0)
    }

    /// The same elements with the axes in another order: axis `k` is this one's axis `order[k]`. None
    /// where that is no order of the axes.
    #[must_use]
    pub fn permuted_axes(&self, order: &[usize]) -> Option<Self> {
        let rank = self.shape.len();
        let mut seen: Inline<usize> = Inline::of_len(rank);
        for &axis in order {
            *seen.get_mut(axis)? += 1;
        }
        if order.len() != rank || seen.iter().any(|&times| times != 1) {
            return None;
        }
        let mut moved = self.clone();
        for (to, &from) in order.iter().enumerate() {
            (moved.shape[to], moved.strides[to]) = (self.shape[from], self.strides[from]);
        }
        Some(moved)
    }

    /// The same elements in that shape, as [`broadcast_to`](crate::broadcast_to) shows them.
    ///
    /// # Errors
    ///
    /// Where the view does not broadcast to the shape.
    pub fn broadcast_to(&self, shape: &[usize]) -> Result<Self, BroadcastError> {
        let laid = Laid::new(Rule::To { target: shape }, [self.shape()], [self.strides()])?;
        let [strides] = laid.strides;
        Ok(Self { shape: laid.shape, strides, ..self.clone() })
    }

    /// The same elements, row after row, in other sizes. None where there are more or fewer of those,
    /// or where they do not lie row after row.
    #[must_use]
    pub fn reshaped(&self, shape: &[usize]) -> Option<Self> {
        let mut strides = Inline::of_len(self.shape.len());
        row_major_into(&self.shape, &mut strides).ok()?;
        let axes = self.shape.iter().zip(&*self.strides).zip(&*strides);
        let in_rows = axes.into_iter().all(|((&size, own), rows)| size == 1 || own == rows);
        if checked_len(shape).ok()? != self.len() || (!self.is_empty() && !in_rows) {
            return None;
        }
        let mut strides = Inline::of_len(shape.len());
        row_major_into(shape, &mut strides).ok()?;
        Some(Self { shape: Inline::from_slice(shape), strides, ..self.clone() })
    }

    /// The view as one of `T`, where that is its element type, and all elements are values of it.
    #[must_use]
    pub fn typed<T: Element>(&self) -> Option<ArrayViewD<'a, T>> {
        (T::DTYPE == self.dtype && self.loose_bytes().is_none()).then(|| self.trusted())
    }

    /// The truths as an array, where one of them is another byte than 0 and 1.
    #[must_use]
    #[doc(hidden)]
    pub fn settled(&self) -> Option<AnyArray> {
        let bytes = self.loose_bytes()?;
        Some(crate::zip((&bytes,)).map(|&byte| byte != 0).into())
    }

    /// The bytes of truths, where one is no `bool`.
    fn loose_bytes(&self) -> Option<ArrayViewD<'a, u8>> {
        if !self.loose {
            return None;
        }
        // SAFETY: bytes of any value, and whoever made the view vouched for the rest.
        let bytes: ArrayViewD<'a, u8> =
            unsafe { raw_view::view(self.pointer, &self.shape, &self.strides) };
        (bytes.fold(0, |all, byte| all | byte) > 1).then_some(bytes)
    }

    /// The view as one of `T`, which is its element type.
    fn trusted<T: Element>(&self) -> ArrayViewD<'a, T> {
        // SAFETY: the elements are of that type, and whoever made the view vouched for the rest.
        unsafe { raw_view::view(self.pointer.cast(), &self.shape, &self.strides) }
    }
}

impl<'a> AnyViewMut<'a> {
    /// A view for writing of memory that is given by its parts; strides in elements.
    ///
    /// # Safety
    ///
    /// As [`AnyView::from_raw`]; nothing else reads or writes the elements during `'a`, and no two
    /// indices reach one element.
    #[must_use]
    #[inline]
    pub unsafe fn from_raw(
        dtype: DType,
        pointer: *mut u8,
        shape: &[usize],
        strides: &[isize],
    ) -> Self {
        let (shape, strides) = (Inline::from_slice(shape), Inline::from_slice(strides));
        Self { dtype, pointer, shape, strides, elements: PhantomData }
    }

    /// The first element.
    #[must_use]
    #[inline]
    pub const fn as_mut_ptr(&mut self) -> *mut u8 {
        self.pointer
    }

    /// Whether the elements lie side by side in C's order.
    pub(in crate::by_name) fn is_row_major(&self) -> bool {
        let mut next = 1_isize;
        self.shape.iter().zip(&*self.strides).rev().all(|(&size, &stride)| {
            let fits = size == 1 || stride == next;
            next = next.saturating_mul(size.cast_signed());
            fits
        })
    }

    /// The view as one of `T`, where that is its element type.
    #[must_use]
    pub fn typed<T: Element>(&mut self) -> Option<ArrayViewMutD<'_, T>> {
        // SAFETY: the elements are of that type, and whoever made the view vouched for the rest.
        (T::DTYPE == self.dtype)
            .then(|| unsafe { raw_view::view_mut(self.pointer.cast(), &self.shape, &self.strides) })
    }
}

impl<'a, T: Element, S: Data<Elem = T>, D: Dimension> From<&'a ArrayBase<S, D, T>> for AnyView<'a> {
    #[inline]
    fn from(array: &'a ArrayBase<S, D, T>) -> Self {
        // SAFETY: an array's own pointer, shape and strides, borrowed for `'a`.
        unsafe { Self::from_raw(T::DTYPE, array.as_ptr().cast(), array.shape(), array.strides()) }
    }
}

impl<'a, T: Element, D: Dimension> From<&'a ArrayRef<T, D>> for AnyView<'a> {
    #[inline]
    fn from(array: &'a ArrayRef<T, D>) -> Self {
        // SAFETY: an array's own pointer, shape and strides, borrowed for `'a`.
        unsafe { Self::from_raw(T::DTYPE, array.as_ptr().cast(), array.shape(), array.strides()) }
    }
}

impl<'a, T: Element, D: Dimension> From<ArrayView<'a, T, D>> for AnyView<'a> {
    #[inline]
    fn from(array: ArrayView<'a, T, D>) -> Self {
        // SAFETY: a view's own pointer, shape and strides; its elements are borrowed for `'a`.
        unsafe { Self::from_raw(T::DTYPE, array.as_ptr().cast(), array.shape(), array.strides()) }
    }
}

impl<'a, T: Element, S: DataMut<Elem = T>, D: Dimension> From<&'a mut ArrayBase<S, D, T>>
    for AnyViewMut<'a>
{
    #[inline]
    fn from(array: &'a mut ArrayBase<S, D, T>) -> Self {
        Self::from(&mut **array)
    }
}

impl<'a, T: Element, D: Dimension> From<ArrayViewMut<'a, T, D>> for AnyViewMut<'a> {
    #[inline]
    fn from(mut array: ArrayViewMut<'a, T, D>) -> Self {
        let pointer = array.as_mut_ptr().cast();
        // SAFETY: a view's own pointer, shape and strides; its elements are borrowed for writing for `'a`, and the view
        // that borrowed them ends here.
        unsafe { Self::from_raw(T::DTYPE, pointer, array.shape(), array.strides()) }
    }
}

impl<'a, T: Element, D: Dimension> From<&'a mut ArrayRef<T, D>> for AnyViewMut<'a> {
    #[inline]
    fn from(array: &'a mut ArrayRef<T, D>) -> Self {
        let pointer = array.as_mut_ptr().cast();
        // SAFETY: an array's own pointer, shape and strides, borrowed for writing for `'a`.
        unsafe { Self::from_raw(T::DTYPE, pointer, array.shape(), array.strides()) }
    }
}

macro_rules! any {
    ($($variant:ident: $type:ty = $name:literal,)*) => {
        /// An array of any element type.
        ///
        /// ```
        /// use ndarray::{Array2, array};
        /// use simulcast::{AnyArray, DType};
        ///
        /// let any = AnyArray::from(array![[1_f32, 2.0]]);
        /// assert_eq!((any.dtype(), any.shape()), (DType::F32, &[1, 2][..]));
        /// assert!(matches!(&any, AnyArray::F32(array) if array[[0, 1]] == 2.0));
        /// let back: Array2<f32> = any.try_into()?;
        /// # Ok::<(), simulcast::IntoArrayError>(())
        /// ```
        #[derive(Clone, PartialEq)]
        #[non_exhaustive]
        pub enum AnyArray {
            $(#[doc = concat!("Of `", $name, "`.")] $variant(ArrayD<$type>),)*
        }

        impl AnyArray {
            /// The type of the elements.
            #[must_use]
            pub const fn dtype(&self) -> DType {
                match self { $(Self::$variant(_) => DType::$variant),* }
            }

            /// The sizes.
            #[must_use]
            pub fn shape(&self) -> &[usize] {
                match self { $(Self::$variant(array) => array.shape()),* }
            }

            /// The same elements, row after row, in other sizes; none where there are more or fewer of those.
            pub(crate) fn reshaped(self, shape: &[usize]) -> Option<Self> {
                match self {
                    $(Self::$variant(array) => {
                        array.into_shape_with_order(IxDyn(shape)).ok().map(Self::$variant)
                    })*
                }
            }

            /// The array as one of `T`, where that is its element type.
            ///
            /// # Errors
            ///
            /// The array itself, where it has another element type.
            pub fn into_typed<T: Element>(self) -> Result<ArrayD<T>, Self> {
                match self {
                    $(Self::$variant(array) => {
                        let mut place = Some(array);
                        let any: &mut dyn std::any::Any = &mut place;
                        match any.downcast_mut::<Option<ArrayD<T>>>().and_then(Option::take) {
                            Some(array) => Ok(array),
                            // Never empty: the place was not taken from.
                            None => Err(Self::$variant(place.unwrap_or_default())),
                        }
                    })*
                }
            }

            /// A view of all of it.
            #[must_use]
            pub fn view(&self) -> AnyView<'_> {
                match self { $(Self::$variant(array) => AnyView::from(array)),* }
            }

            /// A view of all of it, for writing.
            #[must_use]
            pub fn view_mut(&mut self) -> AnyViewMut<'_> {
                match self { $(Self::$variant(array) => AnyViewMut::from(&mut **array)),* }
            }
        }

        impl AnyView<'_> {
            /// A row-major copy.
            #[must_use]
            pub fn to_owned(&self) -> AnyArray {
                if let Some(settled) = self.settled() {
                    return settled;
                }
                match self.dtype {
                    $(DType::$variant => {
                        let view = self.trusted::<$type>();
                        AnyArray::$variant(crate::copy_to(&view, view.raw_dim()))
                    })*
                }
            }
        }

        $(
            impl<D: Dimension> From<Array<$type, D>> for AnyArray {
                fn from(array: Array<$type, D>) -> Self {
                    Self::$variant(array.into_dyn())
                }
            }

        )*

        impl fmt::Debug for AnyView<'_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self.dtype {
                    $(DType::$variant => match self.typed::<$type>() {
                        Some(view) => write!(f, "{view:?} of {}", self.dtype),
                        None => f.write_str("no view"),
                    })*
                }
            }
        }
    };
}

every_dtype!(any);

/// Compiles an expression once for every element type, and evaluates that of a [`DType`]: the name
/// before `=>` is the type.
///
/// ```
/// use simulcast::{AnyArray, dispatch};
///
/// let x = AnyArray::from(ndarray::array![3_i16, 1, 2]);
/// let first = dispatch!(x.dtype(), T => x.typed::<T>().and_then(|x| Some(format!("{:?}", x.first()?))));
/// assert_eq!(first.as_deref(), Some("3"));
/// ```
#[macro_export]
macro_rules! dispatch {
    ($dtype:expr, $type:ident => $body:expr) => {
        $crate::dispatch! { @ $dtype, $type => $body,
            Bool: bool, I8: i8, I16: i16, I32: i32, I64: i64, U8: u8, U16: u16, U32: u32, U64: u64,
            F16: $crate::half::f16, Bf16: $crate::half::bf16, F32: f32, F64: f64,
            C64: $crate::Complex<f32>, C128: $crate::Complex<f64>, String: ::std::string::String }
    };
    (@ $dtype:expr, $type:ident => $body:expr, $($variant:ident: $own:ty),*) => {
        match $dtype {
            $($crate::DType::$variant => {
                type $type = $own;
                $body
            })*
        }
    };
}

impl<T: Element, D: Dimension> TryFrom<AnyArray> for Array<T, D> {
    type Error = IntoArrayError;

    fn try_from(array: AnyArray) -> Result<Self, IntoArrayError> {
        array.into_array()
    }
}

impl AnyArray {
    /// The array as one of `T` with the dimension `D`, without a copy.
    ///
    /// ```
    /// use ndarray::{Ix2, IxDyn, array};
    /// use simulcast::AnyArray;
    ///
    /// let any = AnyArray::from(array![[1_f32, 2.0]]);
    /// assert_eq!(any.clone().into_array::<f32, Ix2>()?, array![[1.0, 2.0]]);
    /// assert_eq!(any.clone().into_array::<f32, IxDyn>()?.ndim(), 2);
    /// let error = any.into_array::<f64, Ix2>().unwrap_err();
    /// assert_eq!(error.to_string(), "the array is float32 (1, 2), not float64 with 2 axes");
    /// # Ok::<(), simulcast::IntoArrayError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Where it has another element type, or another number of axes.
    pub fn into_array<T: Element, D: Dimension>(self) -> Result<Array<T, D>, IntoArrayError> {
        IntoArrayError::check::<T, D>(self.dtype(), self.shape())?;
        let refused = |dtype, shape: &[usize]| IntoArrayError::new::<T, D>(dtype, shape);
        // Never errors: type and rank were compared.
        let array = self.into_typed::<T>().map_err(|own| refused(own.dtype(), own.shape()))?;
        let shape = array.shape().to_vec();
        array.into_dimensionality().map_err(|_| refused(T::DTYPE, &shape))
    }

    /// The array as one of `T`, where that is its element type.
    #[must_use]
    pub fn typed<T: Element>(&self) -> Option<ArrayViewD<'_, T>> {
        self.view().typed()
    }

    /// An array of one element, of rank 0.
    #[must_use]
    pub fn scalar<T: Element>(value: T) -> Self
    where
        Self: From<Array<T, IxDyn>>,
    {
        Self::from(ArrayD::from_elem(IxDyn(&[]), value))
    }
}

impl fmt::Debug for AnyArray {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.view().fmt(f)
    }
}

impl fmt::Debug for AnyViewMut<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AnyViewMut {:?} of {}", &self.shape[..], self.dtype)
    }
}

impl<'a> From<&'a AnyArray> for AnyView<'a> {
    fn from(array: &'a AnyArray) -> Self {
        array.view()
    }
}

impl<'a> From<&'a mut AnyArray> for AnyViewMut<'a> {
    fn from(array: &'a mut AnyArray) -> Self {
        array.view_mut()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::{Array1, array, s};

    #[test]
    fn a_view_shows_an_array_with_its_strides() {
        let x = Array1::from_iter(0_i64..24);
        let x = x.to_shape((4, 6)).map(|x| x.to_owned()).unwrap_or_default();
        let odd = x.slice(s![..;-2, 1..;3]);
        let view = AnyView::from(&odd);
        assert_eq!(view.typed::<i64>(), Some(odd.into_dyn()));
        assert_eq!(view.to_owned().typed::<i64>(), Some(odd.into_dyn()));
        assert_eq!(view.typed::<u64>(), None);
    }

    #[test]
    fn strings_and_empty_arrays_are_arrays() {
        let words = AnyArray::from(array![["a", "b"]].mapv(String::from));
        assert_eq!(words.view().to_owned(), words);
        let mut none = AnyArray::from(Array1::<half::f16>::default(0));
        assert_eq!((none.dtype(), none.shape(), none.view().len()), (DType::F16, &[0][..], 0));
        assert!(none.view_mut().typed::<half::f16>().is_some());
        assert_eq!(ArrayD::<f32>::try_from(none).map_err(|error| error.found().0), Err(DType::F16));
    }

    #[test]
    fn truths_of_other_bytes_are_settled() {
        let bytes = array![[0_u8, 2], [1, 255]];
        // SAFETY: the array's own pointer, sizes and strides.
        let view =
            unsafe { AnyView::from_raw_truths(bytes.as_ptr(), bytes.shape(), bytes.strides()) };
        let truths = AnyArray::from(array![[false, true], [true, true]]);
        assert_eq!((view.typed::<bool>(), view.settled()), (None, Some(truths.clone())));
        assert_eq!(view.to_owned(), truths);
        let turned = view.permuted_axes(&[1, 0]);
        let expected = AnyArray::from(array![[false, true], [true, true]].reversed_axes());
        assert_eq!(turned.map(|view| view.to_owned()), Some(expected));
        // SAFETY: the elements of the first column.
        let column = unsafe { view.relaid(&[2], &[2]) };
        assert_eq!(column.typed::<bool>(), Some(array![false, true].view().into_dyn()));
        assert_eq!(column.settled(), None);
    }
}
