//! Views: operands shown in the result's shape, without a copy.
//!
//! An axis that repeats has stride 0, so nothing is stored twice; for that reason the views are
//! read-only. Any element type, any rank, negative strides and empty arrays included.
//!
//! ```
//! use ndarray::array;
//! use simulcast::{Rule, broadcast_to, broadcast_views, try_broadcast_views_by};
//!
//! let names = array![["row"], ["column"]];
//! assert_eq!(broadcast_to(&names, (2, 3)).row(1), array!["column", "column", "column"]);
//!
//! let (x, y) = (array![[1.0], [2.0]], array![10, 20, 30]);
//! let (x, y) = broadcast_views((&x, &y));
//! assert_eq!((x.shape(), y.shape()), (&[2, 3][..], &[2, 3][..]));
//!
//! // Every other rule by name; the rank of its result is known only when it runs.
//! let (a, b) = (array![[1, 2, 3], [4, 5, 6]], array![7, 8]);
//! let (_, b) = try_broadcast_views_by(Rule::Pdpd { axis: Some(0) }, (&a, &b))?;
//! assert_eq!(b, array![[7, 7, 7], [8, 8, 8]].into_dyn());
//! # Ok::<(), simulcast::BroadcastError>(())
//! ```

use ndarray::{ArrayBase, ArrayView, Dimension, IntoDimension, IxDyn};
use simulcast_core::{BroadcastError, Refusal, Rule, resolve};

use crate::array::operand::{CommonDim, Operand, Operands};
use crate::array::raw_view;
use crate::layout::broadcast::{checked_len, common, strides_under};

// Implements E_BROADCAST_ANY_FUNC_3010.
/// The array in that shape, as NumPy's `broadcast_to` has it.
///
/// ```
/// use ndarray::array;
/// use simulcast::broadcast_to;
///
/// let row = array![1, 2];
/// let view = broadcast_to(&row, (3, 2));
/// assert_eq!(view, array![[1, 2], [1, 2], [1, 2]]);
/// assert_eq!(view.strides(), [0, 1]); // a row is repeated, nothing is copied
/// ```
///
/// # Panics
///
/// Where the array does not broadcast to the shape, with the message of the [`BroadcastError`].
#[track_caller]
#[must_use]
pub fn broadcast_to<A: Operand, I: IntoDimension>(array: A, shape: I) -> A::View<I::Dim> {
    or_panic(try_broadcast_to(array, shape))
}

/// [`broadcast_to`] without the panic.
///
/// ```
/// use ndarray::array;
/// use simulcast::try_broadcast_to;
///
/// let error = try_broadcast_to(&array![1, 2], (2, 3)).unwrap_err();
/// assert!(error.to_string().contains("axis 1 (-1): the target has 3, A has 2"));
/// ```
///
/// # Errors
///
/// Where the array does not broadcast to the shape.
#[expect(clippy::needless_pass_by_value, reason = "operands are references, or views")]
pub fn try_broadcast_to<A: Operand, I: IntoDimension>(
    array: A,
    shape: I,
) -> Result<A::View<I::Dim>, BroadcastError> {
    let dim = shape.into_dimension();
    match array.stretched(dim.clone()) {
        Some(view) => Ok(view),
        None => Err(refused_to(array.sizes(), dim.slice())),
    }
}

/// The array as a rule of one operand shows it.
///
/// ```
/// use ndarray::array;
/// use simulcast::{Rule, broadcast_to_by};
///
/// let column = array![1, 2];
/// let view = broadcast_to_by(Rule::Axes { shape: &[2, 3], broadcast_axes: &[1] }, &column);
/// assert_eq!(view, array![[1, 1, 1], [2, 2, 2]].into_dyn());
/// assert_eq!(view.strides(), [1, 0]); // a column is repeated, nothing is copied
/// ```
///
/// # Panics
///
/// Where the rule refuses the array, with the message of the [`BroadcastError`].
#[track_caller]
#[must_use]
pub fn broadcast_to_by<A: Operand>(rule: Rule<'_>, array: A) -> A::View<IxDyn> {
    or_panic(try_broadcast_to_by(rule, array))
}

/// [`broadcast_to_by`] without the panic.
///
/// ```
/// use ndarray::array;
/// use simulcast::{Rule, try_broadcast_to_by};
///
/// let rule = Rule::Mapping { shape: &[2, 3], axes_mapping: &[1] };
/// assert!(try_broadcast_to_by(rule, &array![1, 2]).is_err()); // axis 1 has 3
/// ```
///
/// # Errors
///
/// Where the rule refuses the array.
pub fn try_broadcast_to_by<A: Operand>(
    rule: Rule<'_>,
    array: A,
) -> Result<A::View<IxDyn>, BroadcastError> {
    let (view,) = try_broadcast_views_by(rule, (array,))?;
    Ok(view)
}

/// Why there is no view of that shape.
#[cold]
fn refused_to(shape: &[usize], target: &[usize]) -> BroadcastError {
    let rule = Rule::To { target };
    match resolve(rule, &[shape]) {
        Err(error) => error,
        // The shapes agree: the result has more elements than there are addresses.
        Ok(_) => BroadcastError::new(rule, &[shape], Refusal::Overflow),
    }
}

/// The operands in their common shape under [`Rule::Numpy`].
///
/// ```
/// use ndarray::array;
/// use simulcast::broadcast_views;
///
/// let (x, names) = (array![[1.0], [2.0]], array!["a", "b", "c"]);
/// let (x, names) = broadcast_views((&x, &names));
/// assert_eq!((x.dim(), names.dim()), ((2, 3), (2, 3)));
/// assert_eq!((x[[1, 2]], names[[1, 2]]), (2.0, "c"));
/// ```
///
/// # Panics
///
/// Where they do not broadcast, with the message of the [`BroadcastError`].
#[track_caller]
#[must_use]
pub fn broadcast_views<T: CommonDim>(operands: T) -> T::Views<T::Dim> {
    or_panic(try_broadcast_views(operands))
}

/// [`broadcast_views`] without the panic.
///
/// ```
/// use ndarray::array;
/// use simulcast::try_broadcast_views;
///
/// let error = try_broadcast_views((&array![1, 2], &array![1, 2, 3])).unwrap_err();
/// assert_eq!((error.code(), error.axis()), ("E1", Some(0)));
/// ```
///
/// # Errors
///
/// Where the operands do not broadcast.
pub fn try_broadcast_views<T: CommonDim>(operands: T) -> Result<T::Views<T::Dim>, BroadcastError> {
    views(Rule::Numpy, operands)
}

/// The operands in their common shape under a rule.
///
/// ```
/// use ndarray::array;
/// use simulcast::{Rule, broadcast_views_by};
///
/// let (x, column) = (array![[1, 2, 3], [4, 5, 6]], array![7, 8]);
/// let (_, column) = broadcast_views_by(Rule::Pdpd { axis: Some(0) }, (&x, &column));
/// assert_eq!(column, array![[7, 7, 7], [8, 8, 8]].into_dyn());
/// ```
///
/// # Panics
///
/// Where they do not broadcast, with the message of the [`BroadcastError`].
#[track_caller]
#[must_use]
pub fn broadcast_views_by<T: Operands>(rule: Rule<'_>, operands: T) -> T::Views<IxDyn> {
    or_panic(try_broadcast_views_by(rule, operands))
}

/// [`broadcast_views_by`] without the panic.
///
/// ```
/// use ndarray::array;
/// use simulcast::{Rule, try_broadcast_views_by};
///
/// let error = try_broadcast_views_by(Rule::Exact, (&array![[1, 2]], &array![1, 2])).unwrap_err();
/// assert_eq!(error.code(), "E2"); // another rank
/// ```
///
/// # Errors
///
/// Where the operands do not broadcast under the rule.
pub fn try_broadcast_views_by<T: Operands>(
    rule: Rule<'_>,
    operands: T,
) -> Result<T::Views<IxDyn>, BroadcastError> {
    views(rule, operands)
}

fn views<T: Operands, D: Dimension>(
    rule: Rule<'_>,
    operands: T,
) -> Result<T::Views<D>, BroadcastError> {
    // Never `None`: the common dimension has the rank of the common shape.
    operands.views(rule)?.ok_or_else(|| BroadcastError::new(rule, NO_SHAPES, Refusal::Overflow))
}

const NO_SHAPES: &[&[usize]] = &[];

/// Any number of views of one element type in their common shape under [`Rule::Numpy`].
///
/// # Panics
///
/// Where they do not broadcast, with the message of the [`BroadcastError`].
///
/// ```
/// use ndarray::{array, Array1};
/// use simulcast::broadcast_all;
///
/// let parts: Vec<_> = (0..100).map(|n| Array1::from_elem(1, n)).chain([array![1, 2, 3]]).collect();
/// let views = broadcast_all(&parts.iter().map(|p| p.view().into_dyn()).collect::<Vec<_>>());
/// assert_eq!(views[99], array![99, 99, 99].into_dyn());
/// ```
#[track_caller]
#[must_use]
pub fn broadcast_all<'a, A, D: Dimension>(
    operands: &[ArrayView<'a, A, D>],
) -> Vec<ArrayView<'a, A, IxDyn>> {
    or_panic(try_broadcast_all(operands))
}

/// [`broadcast_all`] without the panic.
///
/// ```
/// use ndarray::{array, aview1};
/// use simulcast::try_broadcast_all;
///
/// let views = try_broadcast_all(&[aview1(&[1]), aview1(&[1, 2, 3])])?;
/// assert_eq!(views[0], array![1, 1, 1].into_dyn());
/// assert!(try_broadcast_all(&[aview1(&[1, 2]), aview1(&[1, 2, 3])]).is_err());
/// # Ok::<(), simulcast::BroadcastError>(())
/// ```
///
/// # Errors
///
/// Where the views do not broadcast.
pub fn try_broadcast_all<'a, A, D: Dimension>(
    operands: &[ArrayView<'a, A, D>],
) -> Result<Vec<ArrayView<'a, A, IxDyn>>, BroadcastError> {
    try_broadcast_all_by(Rule::Numpy, operands)
}

/// Any number of views of one element type in their common shape under a rule.
///
/// ```
/// use ndarray::aview1;
/// use simulcast::{NamedAxes, broadcast_all_by};
///
/// let named = NamedAxes::new(&[&["city"][..], &["day"]])?;
/// let views = broadcast_all_by(named.as_rule(), &[aview1(&[1, 2]), aview1(&[3, 4, 5])]);
/// assert_eq!(views[0].shape(), [2, 3]);
/// # Ok::<(), simulcast::Refusal>(())
/// ```
///
/// # Panics
///
/// Where they do not broadcast, with the message of the [`BroadcastError`].
#[track_caller]
#[must_use]
pub fn broadcast_all_by<'a, A, D: Dimension>(
    rule: Rule<'_>,
    operands: &[ArrayView<'a, A, D>],
) -> Vec<ArrayView<'a, A, IxDyn>> {
    or_panic(try_broadcast_all_by(rule, operands))
}

/// [`broadcast_all_by`] without the panic.
///
/// ```
/// use ndarray::aview1;
/// use simulcast::{Rule, try_broadcast_all_by};
///
/// assert!(try_broadcast_all_by(Rule::Exact, &[aview1(&[1]), aview1(&[1, 2])]).is_err());
/// ```
///
/// # Errors
///
/// Where the views do not broadcast under the rule.
pub fn try_broadcast_all_by<'a, A, D: Dimension>(
    rule: Rule<'_>,
    operands: &[ArrayView<'a, A, D>],
) -> Result<Vec<ArrayView<'a, A, IxDyn>>, BroadcastError> {
    if rule == Rule::Numpy
        && let Some(dim) = common::<IxDyn>(operands.iter().map(ArrayBase::shape))
        && let Some(views) = operands.iter().map(|view| view.stretched(dim.clone())).collect()
    {
        return Ok(views);
    }
    let shapes: Vec<&[usize]> = operands.iter().map(ArrayBase::shape).collect();
    let refused = |refusal| BroadcastError::new(rule, &shapes, refusal);
    let plan = resolve(rule, &shapes)?;
    checked_len(plan.shape()).map_err(refused)?;
    let view = |(operand, view): (usize, &ArrayView<'a, A, D>)| {
        let strides = strides_under(&plan, operand, view.strides()).map_err(refused)?;
        // SAFETY: the plan gives the view's own strides, each on an axis of its length, or 0, and
        // `checked_len` bounded the sizes; the copy of the view borrows the elements for `'a`.
        Ok(unsafe { raw_view::view(view.as_ptr(), plan.shape(), &strides) })
    };
    operands.iter().enumerate().map(view).collect()
}

/// The value, or a panic with the error's message at the caller's line.
#[track_caller]
#[inline(always)]
pub(crate) fn or_panic<T>(result: Result<T, BroadcastError>) -> T {
    match result {
        Ok(value) => value,
        Err(error) => refuse(&error),
    }
}

#[cold]
#[track_caller]
#[expect(clippy::panic, reason = "the short names panic with the message of the fallible ones")]
fn refuse(error: &BroadcastError) -> ! {
    panic!("{error}")
}
