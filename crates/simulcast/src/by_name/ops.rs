//! Operators by name, over arrays of one element type.
//!
//! ```
//! use ndarray::array;
//! use simulcast::ops;
//!
//! let (x, y) = (array![[1, -7], [3, 4]], array![2, 0]);
//! assert_eq!(ops::add(&x, &y), array![[3, -7], [5, 4]]);
//! assert_eq!(ops::divide(&x, &y), array![[0, 0], [1, 0]]); // towards 0, and 0 for a divisor of 0
//! assert_eq!(ops::where_(&ops::less(&x, &y), &x, 9), array![[1, -7], [9, 9]]);
//!
//! let error = ops::try_add(&x, &array![1, 2, 3]).unwrap_err();
//! assert!(error.to_string().contains("axis 1 (-1): A has 2, B has 3"));
//! ```
//!
//! They are [`Op::apply`] with types: one loop for each operation and element type serves every
//! storage and rank. Corner cases are those of [`Op`]; `float16` and `bfloat16` are computed in
//! `float32` and rounded once. A closure of your own goes into [`zip`](crate::zip()).

#![expect(
    clippy::needless_pass_by_value,
    reason = "operands are references, or views to be given away"
)]
#![allow(
    clippy::type_complexity,
    reason = "the dimension of a result is the larger of its operands'"
)]

use ndarray::{Array, DimMax, Dimension, Ix0};
use simulcast_core::{BroadcastError, Refusal, Rule};

use crate::api::view::or_panic;
use crate::array::operand::Operand;
use crate::by_name::apply::Apply as _;
use crate::by_name::dyn_array::{AnyArray, AnyView};
use crate::by_name::program::{ProgramError, ProgramErrorKind};
use simulcast_kernels::dtype::{Complex, Element};
use simulcast_kernels::op::Op;
use simulcast_kernels::{every_dtype, every_op};

pub mod vjp;

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident: $above:path = $first:ident $($type:ty)*;)*) => { $(
        $(#[$doc])*
        ///
        /// ```
        #[doc = concat!("fn name<T: simulcast::ops::", stringify!($name), ">(_: T) -> &'static str {")]
        ///     T::DTYPE.name()
        /// }
        #[doc = concat!("assert!(!name(", stringify!($first), "::default()).is_empty());")]
        /// ```
        ///
        /// Sealed, as [`Element`] is.
        pub trait $name: $above {}
        impl $name for $first {}
        $(impl $name for $type {})*
    )* };
}

kinds! {
    /// Every type but text.
    Plain: Element = bool i8 i16 i32 i64 u8 u16 u32 u64
        half::f16 half::bf16 f32 f64 Complex<f32> Complex<f64>;
    /// Integers and booleans: what has bits to combine.
    Bits: Plain = bool i8 i16 i32 i64 u8 u16 u32 u64;
    /// Integers, floats, complex numbers.
    Number: Plain = i8 i16 i32 i64 u8 u16 u32 u64
        half::f16 half::bf16 f32 f64 Complex<f32> Complex<f64>;
    /// Integers and floats.
    Real: Number = i8 i16 i32 i64 u8 u16 u32 u64 half::f16 half::bf16 f32 f64;
    /// Integers.
    Integer: Real = i8 i16 i32 i64 u8 u16 u32 u64;
    /// Floats and complex numbers.
    Analytic: Number = f32 f64 half::f16 half::bf16 Complex<f32> Complex<f64>;
    /// Floats.
    Float: Analytic = f32 f64 half::f16 half::bf16;
}

/// The dimension that two have together: the larger.
///
/// ```
/// use ndarray::{Array2, Ix1, Ix2, array};
/// use simulcast::ops::{self, Larger};
///
/// let sum: ndarray::Array<f64, Larger<Ix2, Ix1>> = ops::add(&Array2::zeros((2, 2)), &array![1.0, 2.0]);
/// assert_eq!(sum.dim(), (2, 2));
/// ```
pub type Larger<D, E> = <D as DimMax<E>>::Output;

mod sealed {
    pub trait Sealed<T> {}
}

/// What operations of this module take: an array of `T` by reference, a view of it, or one value, which meets every element.
///
/// ```
/// use ndarray::{Array1, array};
/// use simulcast::ops::{self, ArrayOrScalar};
///
/// fn halved<A: ArrayOrScalar<f32, Dim = ndarray::Ix1>>(x: A) -> Array1<f32> {
///     ops::multiply(x, 0.5)
/// }
/// assert_eq!(halved(&array![1.0, 2.0]), array![0.5, 1.0]);
/// assert_eq!(ops::subtract(1.0, 0.25).into_scalar(), 0.75);
/// ```
///
/// Sealed: arrays and element types are all there are.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is neither an array of `{T}` nor a `{T}`",
    label = "no array of `{T}`, and no `{T}`",
    note = "operands are `&array`, a view, or a number, all of one element type",
    note = "types are converted by `x.mapv(f64::from)`, or by `simulcast::eval` and `Op::apply`, which promote them"
)]
pub trait ArrayOrScalar<T>: sealed::Sealed<T> {
    /// Its dimension.
    type Dim: Dimension;

    /// It without its type.
    #[doc(hidden)]
    fn erased(&self) -> AnyView<'_>;
}

impl<T: Element, A: Operand<Elem = T>> sealed::Sealed<T> for A {}
#[diagnostic::do_not_recommend]
impl<T: Element, A: Operand<Elem = T>> ArrayOrScalar<T> for A {
    type Dim = A::Dim;

    fn erased(&self) -> AnyView<'_> {
        let (sizes, steps) = (self.sizes(), self.steps());
        // SAFETY: an operand's own pointer, sizes and strides, borrowed as long as it is.
        unsafe { AnyView::from_raw(T::DTYPE, self.pointer().cast(), sizes, steps) }
    }
}

macro_rules! scalars {
    ($($variant:ident: $type:ty = $name:literal,)*) => { $(
        impl sealed::Sealed<$type> for $type {}
        impl ArrayOrScalar<$type> for $type {
            type Dim = Ix0;

            fn erased(&self) -> AnyView<'_> {
                // SAFETY: one value, borrowed as long as the view.
                unsafe { AnyView::from_raw(<$type>::DTYPE, std::ptr::from_ref(self).cast(), &[], &[]) }
            }
        }
    )* };
}

every_dtype!(scalars);

/// An array with the type and the dimension that the compiler found for it.
fn settled<R: Element, D: Dimension>(made: AnyArray) -> Option<Array<R, D>> {
    made.into_typed::<R>().ok()?.into_dimensionality().ok()
}

/// What is wrong with operands whose types were checked by the compiler: their shapes, or memory.
fn shapes_error(error: ProgramError, operands: &[AnyView<'_>]) -> BroadcastError {
    match error.kind {
        ProgramErrorKind::Broadcast(error) => error,
        // Never: the traits of this module are the types that operations are defined on.
        _ => too_large(operands),
    }
}

fn too_large(operands: &[AnyView<'_>]) -> BroadcastError {
    let shapes: Vec<&[usize]> = operands.iter().map(AnyView::shape).collect();
    BroadcastError::new(Rule::Numpy, &shapes, Refusal::Overflow)
}

/// The result of an operation whose types were checked by the compiler.
fn typed<R: Element, D: Dimension>(
    op: Op,
    operands: &[AnyView<'_>],
) -> Result<Array<R, D>, BroadcastError> {
    let made = op.apply(operands).map_err(|error| shapes_error(error, operands))?;
    // Never `None`: the result's type and rank are those that the traits name.
    settled(made).ok_or_else(|| too_large(operands))
}

/// An element for the examples of a function, by the trait of its operands.
macro_rules! sample {
    (Float) => {
        "0.5"
    };
    (Analytic) => {
        "0.5"
    };
    ($kind:ident) => {
        "2"
    };
}

/// Writes the function of an operation and its form without the panic.
macro_rules! function {
    ($doc:literal $op:expr, $name:ident(a), $try:ident: $kind:ident -> $result:ty) => {
        #[doc = $doc]
        ///
        /// ```
        #[doc = concat!("let a = ndarray::array![[", sample!($kind), "], [", sample!($kind), "]];")]
        #[doc = concat!("assert_eq!(simulcast::ops::", stringify!($name), "(&a).dim(), (2, 1));")]
        /// ```
        ///
        /// # Panics
        ///
        /// Where the result does not fit in memory.
        #[track_caller]
        #[must_use]
        pub fn $name<T: $kind, A: ArrayOrScalar<T>>(a: A) -> Array<$result, A::Dim> {
            or_panic($try(a))
        }

        #[doc = concat!("[`", stringify!($name), "`] without the panic.")]
        ///
        /// ```
        #[doc = concat!("let a = ndarray::array![", sample!($kind), ", ", sample!($kind), "];")]
        #[doc = concat!("assert_eq!(simulcast::ops::", stringify!($try), "(&a)?.dim(), 2);")]
        /// # Ok::<(), simulcast::BroadcastError>(())
        /// ```
        ///
        /// # Errors
        ///
        /// Where the result does not fit in memory.
        pub fn $try<T: $kind, A: ArrayOrScalar<T>>(a: A) -> Result<Array<$result, A::Dim>, BroadcastError> {
            typed($op, &[a.erased()])
        }
    };
    ($doc:literal $op:expr, $name:ident(a, b), $try:ident: $kind:ident -> $result:ty) => {
        #[doc = $doc]
        ///
        /// ```
        /// use ndarray::array;
        /// use simulcast::ops;
        ///
        #[doc = concat!("let (a, b) = (array![[", sample!($kind), "], [", sample!($kind), "]], array![",
            sample!($kind), ", ", sample!($kind), "]);")]
        #[doc = concat!("assert_eq!(ops::", stringify!($name), "(&a, &b).dim(), (2, 2));")]
        #[doc = concat!("assert_eq!(ops::", stringify!($name), "(&a, ", sample!($kind), ").shape(), [2, 1]);")]
        /// ```
        ///
        /// # Panics
        ///
        /// Where the operands do not broadcast, or the result does not fit in memory, with the message of the
        /// [`BroadcastError`].
        #[track_caller]
        #[must_use]
        pub fn $name<T: $kind, A: ArrayOrScalar<T>, B: ArrayOrScalar<T>>(
            a: A,
            b: B,
        ) -> Array<$result, Larger<A::Dim, B::Dim>>
        where
            A::Dim: DimMax<B::Dim>,
        {
            or_panic($try(a, b))
        }

        #[doc = concat!("[`", stringify!($name), "`] without the panic.")]
        ///
        /// ```
        #[doc = concat!("let two = ndarray::array![", sample!($kind), ", ", sample!($kind), "];")]
        #[doc = concat!("let three = ndarray::array![", sample!($kind), ", ", sample!($kind), ", ", sample!($kind), "];")]
        #[doc = concat!("let error = simulcast::ops::", stringify!($try), "(&two, &three).unwrap_err();")]
        /// assert_eq!(error.clash().map(|clash| clash.sizes), Some([2, 3]));
        /// ```
        ///
        /// # Errors
        ///
        /// Where the operands do not broadcast, or the result does not fit in memory.
        pub fn $try<T: $kind, A: ArrayOrScalar<T>, B: ArrayOrScalar<T>>(
            a: A,
            b: B,
        ) -> Result<Array<$result, Larger<A::Dim, B::Dim>>, BroadcastError>
        where
            A::Dim: DimMax<B::Dim>,
        {
            typed($op, &[a.erased(), b.erased()])
        }
    };
}

/// Writes a function for each row of the table of operations that has a typed one.
macro_rules! functions {
    (
        { $grad:ident }
        $(
            $doc:literal
            $variant:ident = $name:literal $function:ident $operands:tt on $types:tt -> $gives:ident,
                typed $typed:tt, also $also:tt, text $text:tt, onnx $onnx:tt, slope $slopes:tt;
        )*
    ) => {
        $(functions! { @one $typed $doc $variant $function $operands })*
    };
    (@one [] $doc:literal $variant:ident $function:ident $operands:tt) => {};
    (@one [$try:ident: $kind:ident -> $result:ty] $doc:literal $variant:ident $function:ident $operands:tt) => {
        function! { $doc Op::$variant, $function $operands, $try: $kind -> $result }
    };
}

every_op!(functions);

function! {
    "`a / b`; of integers towards 0, and 0 for a divisor of 0."
    if T::DTYPE.is_integer() { Op::TruncDivide } else { Op::Divide }, divide(a, b), try_divide: Number -> T
}

/// `a` where the condition is true, else `b`; of any element type, text included.
///
/// ```
/// use ndarray::array;
/// use simulcast::ops;
///
/// let x = array![[1, -7], [3, 4]];
/// assert_eq!(ops::where_(&ops::less(&x, 0), 0, &x), array![[1, 0], [3, 4]]);
/// ```
///
/// # Panics
///
/// Where the operands do not broadcast, with the message of the [`BroadcastError`].
#[doc(alias = "select")]
#[track_caller]
#[must_use]
pub fn where_<T: Element, C: ArrayOrScalar<bool>, A: ArrayOrScalar<T>, B: ArrayOrScalar<T>>(
    condition: C,
    a: A,
    b: B,
) -> Array<T, Larger<Larger<C::Dim, A::Dim>, B::Dim>>
where
    C::Dim: DimMax<A::Dim>,
    Larger<C::Dim, A::Dim>: DimMax<B::Dim>,
{
    or_panic(try_where(condition, a, b))
}

/// [`where_`] without the panic.
///
/// ```
/// use ndarray::array;
/// use simulcast::ops;
///
/// let error = ops::try_where(&array![true, false], &array![1, 2, 3], 0).unwrap_err();
/// assert!(error.to_string().contains("A has 2, B has 3"));
/// ```
///
/// # Errors
///
/// Where the operands do not broadcast.
pub fn try_where<T: Element, C: ArrayOrScalar<bool>, A: ArrayOrScalar<T>, B: ArrayOrScalar<T>>(
    condition: C,
    a: A,
    b: B,
) -> Result<Array<T, Larger<Larger<C::Dim, A::Dim>, B::Dim>>, BroadcastError>
where
    C::Dim: DimMax<A::Dim>,
    Larger<C::Dim, A::Dim>: DimMax<B::Dim>,
{
    typed(Op::Where, &[condition.erased(), a.erased(), b.erased()])
}

/// One text after the other.
///
/// ```
/// use ndarray::array;
/// use simulcast::ops;
///
/// let names = array!["a", "b"].mapv(String::from);
/// assert_eq!(ops::concat(&names, ".npy".to_owned()), array!["a.npy", "b.npy"]);
/// ```
///
/// # Panics
///
/// Where the operands do not broadcast, with the message of the [`BroadcastError`].
#[track_caller]
#[must_use]
pub fn concat<A: ArrayOrScalar<String>, B: ArrayOrScalar<String>>(
    a: A,
    b: B,
) -> Array<String, Larger<A::Dim, B::Dim>>
where
    A::Dim: DimMax<B::Dim>,
{
    or_panic(try_concat(a, b))
}

/// [`concat()`] without the panic.
///
/// ```
/// use ndarray::array;
/// use simulcast::ops;
///
/// let (names, ends) = (array!["a", "b"].mapv(String::from), array!["1", "2", "3"].mapv(String::from));
/// assert!(ops::try_concat(&names, &ends).is_err());
/// ```
///
/// # Errors
///
/// Where the operands do not broadcast.
pub fn try_concat<A: ArrayOrScalar<String>, B: ArrayOrScalar<String>>(
    a: A,
    b: B,
) -> Result<Array<String, Larger<A::Dim, B::Dim>>, BroadcastError>
where
    A::Dim: DimMax<B::Dim>,
{
    typed(Op::Concat, &[a.erased(), b.erased()])
}
