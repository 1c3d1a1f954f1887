//! Operands: the arrays and views that can be broadcast.
//!
//! References to arrays of any storage, views, and [`ArrayRef`]s; of any element type and any rank,
//! fixed or not. Several operands are a tuple of one to eight, of different types.

use ndarray::{ArrayBase, ArrayRef, ArrayView, Data, DimMax, Dimension};
use simulcast_core::{BroadcastError, Rule};

use crate::array::raw_view;
use crate::layout::broadcast::{Laid, common, fit, same};

pub(crate) mod sealed {
    pub trait Sealed {}
}
use sealed::Sealed;

/// An array to be broadcast: `&ArrayBase` of any storage, `&ArrayRef`, or a view.
///
/// ```
/// use ndarray::{Array, ArrayD, Dimension, array, aview0, aview1};
/// use simulcast::{Operand, zip};
///
/// fn doubled<A: Operand<Elem = f64>>(array: A) -> Array<f64, A::Dim> {
///     zip((array,)).map(|x| 2.0 * x)
/// }
/// assert_eq!(doubled(&array![1.0, 2.0]), array![2.0, 4.0]);
/// assert_eq!(doubled(aview1(&[1.0, 2.0])), array![2.0, 4.0]); // a slice or a vector, as a view
/// assert_eq!(doubled(aview0(&3.0)).into_scalar(), 6.0); // a number
/// ```
///
/// Sealed: unsafe code relies on strides that stay within the array.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no array that can be broadcast",
    label = "neither a reference to an array nor a view",
    note = "an operand is `&array`, or a view such as `array.view()`; an output is passed to `map_into` or `update`",
    note = "a number is captured by the closure, `zip((&x,)).map(|x| x * scale)`, or passed as `aview0(&scale)`",
    note = "a `Vec` or a slice is passed as `aview1(&values)`; `aview0` and `aview1` are ndarray's"
)]
pub trait Operand: Sealed {
    /// The element type.
    type Elem;
    /// Its own dimension.
    type Dim: Dimension;
    /// A read-only view of its elements, with another dimension.
    type View<D: Dimension>;

    #[doc(hidden)]
    fn pointer(&self) -> *const Self::Elem;
    #[doc(hidden)]
    fn sizes(&self) -> &[usize];
    #[doc(hidden)]
    fn steps(&self) -> &[isize];
    #[doc(hidden)]
    fn shown(&self) -> ArrayView<'_, Self::Elem, Self::Dim>;
    /// The view under [`Rule::To`], where there is one.
    #[doc(hidden)]
    fn stretched<D: Dimension>(&self, dim: D) -> Option<Self::View<D>>;
    /// # Safety
    ///
    /// As for a view made of [`Operand::pointer`], `shape` and `strides`.
    #[doc(hidden)]
    unsafe fn laid<D: Dimension>(self, shape: &[usize], strides: &[isize]) -> Self::View<D>;
}

macro_rules! operand {
    ($(impl[$($generics:tt)*] $type:ty, $elem:ty, $dim:ty, |$this:ident, $to:ident| $stretched:expr;)*) => { $(
        impl<'a, $($generics)*> Sealed for $type {}
        #[diagnostic::do_not_recommend]
        impl<'a, $($generics)*> Operand for $type {
            type Elem = $elem;
            type Dim = $dim;
            type View<E: Dimension> = ArrayView<'a, $elem, E>;

            #[inline(always)]
            fn pointer(&self) -> *const $elem {
                self.as_ptr()
            }
            #[inline(always)]
            fn sizes(&self) -> &[usize] {
                self.shape()
            }
            #[inline(always)]
            fn steps(&self) -> &[isize] {
                self.strides()
            }
            fn shown(&self) -> ArrayView<'_, $elem, $dim> {
                self.view()
            }
            #[inline(always)]
            fn stretched<E: Dimension>(&self, $to: E) -> Option<Self::View<E>> {
                let $this = self;
                $stretched
            }
            #[inline(always)]
            unsafe fn laid<E: Dimension>(self, shape: &[usize], strides: &[isize]) -> Self::View<E> {
                // SAFETY: the caller keeps the conditions, and `self` borrows the elements for `'a`.
                unsafe { raw_view::view(self.as_ptr(), shape, strides) }
            }
        }
    )* };
}

operand! {
    impl[S: Data<Elem = A>, D: Dimension, A] &'a ArrayBase<S, D, A>, A, D, |this, dim| (*this).broadcast(dim);
    impl[A, D: Dimension] &'a ArrayRef<A, D>, A, D, |this, dim| (*this).broadcast(dim);
    impl[A, D: Dimension] ArrayView<'a, A, D>, A, D, |this, dim| {
        let view = this.broadcast(dim)?;
        // SAFETY: the elements that it shows are borrowed for `'a`, not for this call alone.
        Some(unsafe { view.raw_view().deref_into_view() })
    };
}

/// Operands that were laid, eight at most: of the strides, as many are meant as there are operands.
pub(crate) type LaidOperands = Box<Laid<8>>;

/// One to eight operands, of different element types, in a tuple.
///
/// ```
/// use ndarray::array;
/// use simulcast::{BroadcastError, Operands, Rule, try_zip_by};
///
/// /// The shape that operands come to under a rule.
/// fn shape<T: Operands>(rule: Rule<'_>, operands: T) -> Result<Vec<usize>, BroadcastError> {
///     Ok(try_zip_by(rule, operands)?.shape().to_vec())
/// }
/// assert_eq!(shape(Rule::Numpy, (&array![[1], [2]], &array!["a", "b", "c"]))?, [2, 3]);
/// # Ok::<(), BroadcastError>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no tuple of arrays",
    label = "not one to eight arrays in a tuple",
    note = "operands are passed as one tuple of references or views: `(&a, &b)`; one alone is `(&a,)`"
)]
pub trait Operands: Sealed {
    /// Views of all of them, with one dimension.
    type Views<D: Dimension>;
    /// The dimension of the first.
    type First: Dimension;

    /// The shape of the first.
    #[doc(hidden)]
    fn first(&self) -> &[usize];

    /// Whether all have one shape, so that their own strides are those along the result.
    #[doc(hidden)]
    fn alike(&self) -> bool;
    /// Whether they broadcast under [`Rule::Numpy`].
    #[doc(hidden)]
    fn fit(&self) -> bool;
    #[doc(hidden)]
    fn lay(&self, rule: Rule<'_>) -> Result<LaidOperands, BroadcastError>;
    #[doc(hidden)]
    fn views<D: Dimension>(self, rule: Rule<'_>) -> Result<Option<Self::Views<D>>, BroadcastError>;
}

/// Operands whose common dimension under [`Rule::Numpy`] is known to the compiler: the largest.
///
/// Where a dimension is a type parameter, the compiler does not know the largest without a bound on it;
/// [`zip_onto`](crate::zip_onto) and [`zip_dyn`](crate::zip_dyn) need none.
///
/// ```
/// use ndarray::{Array2, array};
/// use simulcast::{CommonDim, broadcast_views};
///
/// fn rank<T: CommonDim>(_: &T) -> Option<usize> {
///     <T::Dim as ndarray::Dimension>::NDIM
/// }
/// assert_eq!(rank(&(&Array2::<f32>::zeros((2, 3)), &array![1, 2, 3])), Some(2));
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no tuple of arrays",
    label = "not one to eight arrays in a tuple",
    note = "operands are passed as one tuple of references or views: `(&a, &b)`; one alone is `(&a,)`",
    note = "in code that is generic over the dimension, use `zip_onto` or `zip_dyn`"
)]
pub trait CommonDim: Operands {
    /// The dimension of the result.
    type Dim: Dimension;
}

macro_rules! operands {
    ($count:literal: $($name:ident $index:tt),*) => {
        impl<$($name: Operand),*> Sealed for ($($name,)*) {}
        impl<$($name: Operand),*> Operands for ($($name,)*) {
            type Views<Dim: Dimension> = ($($name::View<Dim>,)*);
            type First = A::Dim;

            #[inline(always)]
            fn first(&self) -> &[usize] {
                self.0.sizes()
            }

            #[inline(always)]
            fn alike(&self) -> bool {
                $(same(self.$index.sizes(), self.first()))&&*
            }

            #[inline(always)]
            fn fit(&self) -> bool {
                fit(&[$(self.$index.sizes()),*])
            }

            #[inline]
            fn lay(&self, rule: Rule<'_>) -> Result<LaidOperands, BroadcastError> {
                let mut laid = LaidOperands::default();
                laid.lay(rule, &[$(self.$index.sizes()),*], &[$(self.$index.steps()),*])?;
                Ok(laid)
            }

            #[inline]
            #[expect(non_snake_case, reason = "one name for a type and its value")]
            fn views<Dim: Dimension>(
                self,
                rule: Rule<'_>,
            ) -> Result<Option<Self::Views<Dim>>, BroadcastError> {
                let sizes = [$(self.$index.sizes()),*];
                if rule == Rule::Numpy && let Some(dim) = common::<Dim>(sizes.into_iter())
                    && let ($(Some($name),)*) = ($(self.$index.stretched(dim.clone()),)*)
                {
                    return Ok(Some(($($name,)*)));
                }
                let laid = Laid::<$count>::new(rule, sizes, [$(self.$index.steps()),*])?;
                if Dim::NDIM.is_some_and(|rank| rank != laid.shape.len()) {
                    return Ok(None);
                }
                // SAFETY: the strides are these operands' own, each kept on an axis of its length
                // or 0, and `checked_len` bounded the sizes; the rank was compared.
                Ok(Some(unsafe { ($(self.$index.laid(&laid.shape, &laid.strides[$index]),)*) }))
            }
        }
    };
}

operands!(1: A 0);
operands!(2: A 0, B 1);
operands!(3: A 0, B 1, C 2);
operands!(4: A 0, B 1, C 2, D 3);
operands!(5: A 0, B 1, C 2, D 3, E 4);
operands!(6: A 0, B 1, C 2, D 3, E 4, F 5);
operands!(7: A 0, B 1, C 2, D 3, E 4, F 5, G 6);
operands!(8: A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7);

impl<A: Operand> CommonDim for (A,) {
    type Dim = A::Dim;
}

macro_rules! common_dim {
    ($($name:ident),*; $last:ident) => {
        impl<$($name: Operand,)* $last: Operand> CommonDim for ($($name,)* $last,)
        where
            ($($name,)*): CommonDim,
            <($($name,)*) as CommonDim>::Dim: DimMax<$last::Dim>,
        {
            type Dim = <<($($name,)*) as CommonDim>::Dim as DimMax<$last::Dim>>::Output;
        }
    };
}

common_dim!(A; B);
common_dim!(A, B; C);
common_dim!(A, B, C; D);
common_dim!(A, B, C, D; E);
common_dim!(A, B, C, D, E; F);
common_dim!(A, B, C, D, E, F; G);
common_dim!(A, B, C, D, E, F, G; H);
