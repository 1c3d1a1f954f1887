//! Gradients of operations, each in the type and the shape of its operand.
//!
//! ```
//! use ndarray::{Array1, Array2, array};
//! use simulcast::ops;
//!
//! let (x, w, grad) = (array![[1.0, 2.0], [3.0, 4.0]], array![10.0, 20.0], array![[1.0, 1.0], [1.0, 2.0]]);
//! let (of_x, of_w): (Array2<f64>, Array1<f64>) = ops::vjp::multiply(&x, &w, &grad);
//! assert_eq!(of_x, array![[10.0, 20.0], [10.0, 40.0]]);
//! assert_eq!(of_w, array![4.0, 10.0]); // summed over the rows, along which w is repeated
//! ```
//!
//! The last argument is the gradient of the result, in the result's shape. These are [`simulcast::vjp`](crate::vjp) with
//! types, under NumPy's rule; [`gradient`](crate::gradient) says what they give where a function has no derivative.

use ndarray::{Array, Dimension};
use simulcast_core::BroadcastError;

use super::{ArrayOrScalar, Float, settled, shapes_error, too_large};
use crate::api::view::or_panic;
use crate::by_name::dyn_array::{AnyArray, AnyView};
use crate::by_name::gradient;
use simulcast_kernels::dtype::Element;
use simulcast_kernels::every_op;
use simulcast_kernels::op::Op;

/// The gradients of operands whose types were checked by the compiler.
fn pulled(
    op: Op,
    operands: &[AnyView<'_>],
    grad: &AnyView<'_>,
) -> Result<std::vec::IntoIter<Option<AnyArray>>, BroadcastError> {
    let made = gradient::vjp(op, operands, grad).map_err(|error| shapes_error(error, operands))?;
    Ok(made.into_iter())
}

/// The next gradient, in the type of its operand.
fn next<T: Element, D: Dimension>(
    gradients: &mut impl Iterator<Item = Option<AnyArray>>,
    operands: &[AnyView<'_>],
) -> Result<Array<T, D>, BroadcastError> {
    // Never `None`: each operand is of floats and has a gradient, of its type and shape.
    gradients.next().flatten().and_then(settled).ok_or_else(|| too_large(operands))
}

/// Writes the gradients of an operation, and their form without the panic.
macro_rules! gradients {
    ($op:expr, $name:ident(a), $try:ident) => {
        #[doc = concat!("The gradient of [`ops::", stringify!($name), "`](crate::ops::", stringify!($name), ").")]
        ///
        /// ```
        /// use ndarray::array;
        /// use simulcast::ops::vjp;
        ///
        /// let (a, grad) = (array![1.5, 1.75], array![1.0, 2.0]);
        #[doc = concat!("assert_eq!(vjp::", stringify!($name), "(&a, &grad).dim(), 2);")]
        /// ```
        ///
        /// # Panics
        ///
        /// Where `grad` does not have the result's shape, with the message of the [`BroadcastError`].
        #[track_caller]
        #[must_use]
        pub fn $name<T: Float, A: ArrayOrScalar<T>, G: ArrayOrScalar<T>>(a: A, grad: G) -> Array<T, A::Dim> {
            or_panic($try(a, grad))
        }

        #[doc = concat!("[`", stringify!($name), "`] without the panic.")]
        ///
        /// ```
        /// use ndarray::array;
        ///
        #[doc = concat!("let error = simulcast::ops::vjp::", stringify!($try), "(&array![0.5, 0.25], &array![1.0]).unwrap_err();")]
        /// assert!(error.to_string().ends_with("result has 2, gradient has 1"));
        /// ```
        ///
        /// # Errors
        ///
        /// Where `grad` does not have the result's shape.
        pub fn $try<T: Float, A: ArrayOrScalar<T>, G: ArrayOrScalar<T>>(
            a: A,
            grad: G,
        ) -> Result<Array<T, A::Dim>, BroadcastError> {
            let operands = [a.erased()];
            next(&mut pulled($op, &operands, &grad.erased())?, &operands)
        }
    };
    ($op:expr, $name:ident(a, b), $try:ident) => {
        #[doc = concat!("The gradients of [`ops::", stringify!($name), "`](crate::ops::", stringify!($name), "): of `a`, and of `b`.")]
        ///
        /// ```
        /// use ndarray::{Array2, array};
        /// use simulcast::ops::vjp;
        ///
        /// let (a, b) = (array![[0.5], [0.25]], array![1.0, 2.0, 3.0]);
        #[doc = concat!("let (of_a, of_b) = vjp::", stringify!($name), "(&a, &b, &Array2::ones((2, 3)));")]
        /// assert_eq!((of_a.dim(), of_b.dim()), ((2, 1), 3));
        /// ```
        ///
        /// # Panics
        ///
        /// Where the operands do not broadcast, or `grad` does not have the result's shape, with the message of the
        /// [`BroadcastError`].
        #[track_caller]
        #[must_use]
        pub fn $name<T: Float, A: ArrayOrScalar<T>, B: ArrayOrScalar<T>, G: ArrayOrScalar<T>>(
            a: A,
            b: B,
            grad: G,
        ) -> (Array<T, A::Dim>, Array<T, B::Dim>) {
            or_panic($try(a, b, grad))
        }

        #[doc = concat!("[`", stringify!($name), "`] without the panic.")]
        ///
        /// ```
        /// use ndarray::array;
        ///
        /// let (two, three) = (array![1.0, 2.0], array![1.0, 2.0, 3.0]);
        #[doc = concat!("assert!(simulcast::ops::vjp::", stringify!($try), "(&two, &three, &three).is_err());")]
        /// ```
        ///
        /// # Errors
        ///
        /// Where the operands do not broadcast, or `grad` does not have the result's shape.
        pub fn $try<T: Float, A: ArrayOrScalar<T>, B: ArrayOrScalar<T>, G: ArrayOrScalar<T>>(
            a: A,
            b: B,
            grad: G,
        ) -> Result<(Array<T, A::Dim>, Array<T, B::Dim>), BroadcastError> {
            let operands = [a.erased(), b.erased()];
            let mut made = pulled($op, &operands, &grad.erased())?;
            Ok((next(&mut made, &operands)?, next(&mut made, &operands)?))
        }
    };
}

/// Writes the gradients of each row of the table of operations that has a typed function and slopes.
macro_rules! functions {
    (
        { $grad:ident }
        $(
            $doc:literal
            $variant:ident = $name:literal $function:ident $operands:tt on $types:tt -> $gives:ident,
                typed $typed:tt, also $also:tt, text $text:tt, onnx $onnx:tt, slope $slopes:tt;
        )*
    ) => {
        $(functions! { @one $typed $slopes $variant $function $operands })*
    };
    (@one [] $slopes:tt $variant:ident $function:ident $operands:tt) => {};
    (@one $typed:tt [] $variant:ident $function:ident $operands:tt) => {};
    (@one [$try:ident: $kind:ident -> $result:ty] $slopes:tt $variant:ident $function:ident $operands:tt) => {
        gradients! { Op::$variant, $function $operands, $try }
    };
}

every_op!(functions);

gradients! { Op::Divide, divide(a, b), try_divide }

/// The gradients of [`ops::where_`](crate::ops::where_): of `a`, and of `b`.
///
/// ```
/// use ndarray::array;
/// use simulcast::ops::vjp;
///
/// let (mask, grad) = (array![true, false, true], array![1.0, 2.0, 3.0]);
/// let (of_a, of_b) = vjp::where_(&mask, &array![0.0, 0.0, 0.0], 7.0, &grad);
/// assert_eq!((of_a, of_b.into_scalar()), (array![1.0, 0.0, 3.0], 2.0));
/// ```
///
/// # Panics
///
/// Where the operands do not broadcast, or `grad` does not have the result's shape, with the message of the
/// [`BroadcastError`].
#[track_caller]
#[must_use]
pub fn where_<T: Float, C, A, B, G>(
    condition: C,
    a: A,
    b: B,
    grad: G,
) -> (Array<T, A::Dim>, Array<T, B::Dim>)
where
    C: ArrayOrScalar<bool>,
    A: ArrayOrScalar<T>,
    B: ArrayOrScalar<T>,
    G: ArrayOrScalar<T>,
{
    or_panic(try_where(condition, a, b, grad))
}

/// [`where_`] without the panic.
///
/// ```
/// use ndarray::array;
/// use simulcast::ops::vjp;
///
/// let (mask, two) = (array![true, false, true], array![1.0, 2.0]);
/// assert!(vjp::try_where(&mask, &two, &two, &two).is_err());
/// ```
///
/// # Errors
///
/// Where the operands do not broadcast, or `grad` does not have the result's shape.
pub fn try_where<T: Float, C, A, B, G>(
    condition: C,
    a: A,
    b: B,
    grad: G,
) -> Result<(Array<T, A::Dim>, Array<T, B::Dim>), BroadcastError>
where
    C: ArrayOrScalar<bool>,
    A: ArrayOrScalar<T>,
    B: ArrayOrScalar<T>,
    G: ArrayOrScalar<T>,
{
    let operands = [condition.erased(), a.erased(), b.erased()];
    let mut made = pulled(Op::Where, &operands, &grad.erased())?;
    made.next(); // The condition decides, and has no gradient.
    Ok((next(&mut made, &operands)?, next(&mut made, &operands)?))
}
