//! Copies: an operand written out in the result's shape.
//!
//! For any `T: Clone`. Plain data moves at the speed of memory, whether a row, a column, an axis in
//! the middle or several of them repeat, and for transposed and backward operands too; other types
//! are cloned, each element of the result on its own.
//!
//! ```
//! use ndarray::{Array2, array};
//! use simulcast::{Rule, copy_into, copy_to, copy_to_by};
//!
//! assert_eq!(copy_to(&array!["a", "b"], (2, 2)), array![["a", "b"], ["a", "b"]]);
//!
//! let mut out = Array2::zeros((2, 3));
//! copy_into(&array![[1], [2]], &mut out);
//! assert_eq!(out, array![[1, 1, 1], [2, 2, 2]]);
//!
//! let rule = Rule::Axes { shape: &[2, 3], broadcast_axes: &[1] };
//! assert_eq!(copy_to_by(rule, &array![1, 2]), out.into_dyn());
//! ```

use std::mem::needs_drop;
use std::sync::{Mutex, PoisonError};

use ndarray::{Array, ArrayD, ArrayRef, Axis, Dimension, IntoDimension};
use simulcast_core::{BroadcastError, Rule};

use crate::api::view::{or_panic, try_broadcast_to};
use crate::api::zip::{Zip, laid, try_zip_by};
use crate::array::operand::Operand;
use crate::exec::parallelism;
use simulcast_threads::for_each_part;

/// The array laid onto that shape, to be cloned.
pub(crate) fn laid_to<A: Operand, I: IntoDimension>(
    array: A,
    shape: I,
) -> Result<Zip<(A,), I::Dim>, BroadcastError> {
    let zip = laid(Rule::To { target: shape.into_dimension().slice() }, (array,))?;
    // SAFETY: one operand, and here it is only cloned.
    Ok(unsafe { zip.copying() })
}

// Implements E_BROADCAST_ANY_FUNC_3020.
/// The array in that shape, as an array of its own.
///
/// ```
/// use ndarray::array;
/// use simulcast::copy_to;
///
/// let mut own = copy_to(&array!["a", "b"], (2, 2)); // strings and other types are cloned
/// own[[0, 0]] = "c";
/// assert_eq!(own, array![["c", "b"], ["a", "b"]]);
/// ```
///
/// # Panics
///
/// Where the array does not broadcast to the shape, with the message of the [`BroadcastError`].
#[track_caller]
#[must_use]
pub fn copy_to<A: Operand<Elem: Clone>, I: IntoDimension>(
    array: A,
    shape: I,
) -> Array<A::Elem, I::Dim> {
    or_panic(try_copy_to(array, shape))
}

/// [`copy_to`] without the panic.
///
/// ```
/// use ndarray::array;
/// use simulcast::try_copy_to;
///
/// assert_eq!(try_copy_to(&array![[1], [2]], (2, 2))?, array![[1, 1], [2, 2]]);
/// assert!(try_copy_to(&array![1, 2], 3).is_err());
/// # Ok::<(), simulcast::BroadcastError>(())
/// ```
///
/// # Errors
///
/// Where the array does not broadcast to the shape, or the result does not fit in memory.
pub fn try_copy_to<A: Operand<Elem: Clone>, I: IntoDimension>(
    array: A,
    shape: I,
) -> Result<Array<A::Elem, I::Dim>, BroadcastError> {
    laid_to(array, shape)?.try_map(Clone::clone)
}

/// The array as a rule of one operand shows it, as an array of its own.
///
/// ```
/// use ndarray::array;
/// use simulcast::{Rule, copy_to_by};
///
/// let rule = Rule::Mapping { shape: &[2, 3], axes_mapping: &[0] };
/// assert_eq!(copy_to_by(rule, &array![1, 2]), array![[1, 1, 1], [2, 2, 2]].into_dyn());
/// ```
///
/// # Panics
///
/// Where the rule refuses the array, with the message of the [`BroadcastError`].
#[track_caller]
#[must_use]
pub fn copy_to_by<A: Operand<Elem: Clone>>(rule: Rule<'_>, array: A) -> ArrayD<A::Elem> {
    or_panic(try_copy_to_by(rule, array))
}

/// [`copy_to_by`] without the panic.
///
/// ```
/// use ndarray::array;
/// use simulcast::{Rule, try_copy_to_by};
///
/// let rule = Rule::Axes { shape: &[2, 3], broadcast_axes: &[0] };
/// assert!(try_copy_to_by(rule, &array![1, 2]).is_err()); // without axis 0 it is (3,)
/// ```
///
/// # Errors
///
/// Where the rule refuses the array, or the result does not fit in memory.
pub fn try_copy_to_by<A: Operand<Elem: Clone>>(
    rule: Rule<'_>,
    array: A,
) -> Result<ArrayD<A::Elem>, BroadcastError> {
    // SAFETY: one operand, and it is cloned.
    unsafe { try_zip_by(rule, (array,))?.copying() }.try_map(Clone::clone)
}

/// The array into `out`, to whose shape it stretches.
///
/// ```
/// use ndarray::{Array2, array};
/// use simulcast::copy_into;
///
/// let mut out = Array2::zeros((2, 3));
/// copy_into(&array![[1.5], [2.5]], &mut out);
/// assert_eq!(out, array![[1.5, 1.5, 1.5], [2.5, 2.5, 2.5]]);
/// ```
///
/// # Panics
///
/// Where the array does not broadcast to that shape, with the message of the [`BroadcastError`].
#[track_caller]
pub fn copy_into<A: Operand<Elem: Clone>, D: Dimension>(array: A, out: &mut ArrayRef<A::Elem, D>) {
    or_panic(try_copy_into(array, out));
}

/// [`copy_into`] without the panic.
///
/// ```
/// use ndarray::{Array2, array};
/// use simulcast::try_copy_into;
///
/// let error = try_copy_into(&array![1, 2], &mut Array2::zeros((2, 3))).unwrap_err();
/// assert!(error.to_string().ends_with("axis 1 (-1): out has 3, A has 2"));
/// ```
///
/// # Errors
///
/// Where the array does not broadcast to the shape of `out`.
pub fn try_copy_into<A: Operand<Elem: Clone>, D: Dimension>(
    array: A,
    out: &mut ArrayRef<A::Elem, D>,
) -> Result<(), BroadcastError> {
    if needs_drop::<A::Elem>() {
        return clone_from(&array, out);
    }
    laid_to(array, out.raw_dim()).map_err(of_out)?.try_map_into(out, Clone::clone)
}

/// The array as a rule of one operand shows it, into `out`, to whose shape that stretches.
///
/// ```
/// use ndarray::{Array2, array};
/// use simulcast::{Rule, copy_into_by};
///
/// let mut out = Array2::zeros((2, 3));
/// copy_into_by(Rule::Axes { shape: &[2, 3], broadcast_axes: &[1] }, &array![1, 2], &mut out);
/// assert_eq!(out, array![[1, 1, 1], [2, 2, 2]]);
/// ```
///
/// # Panics
///
/// Where the rule refuses the array, or what it gives does not broadcast to the shape of `out`, with the message
/// of the [`BroadcastError`].
#[track_caller]
pub fn copy_into_by<A: Operand<Elem: Clone>, D: Dimension>(
    rule: Rule<'_>,
    array: A,
    out: &mut ArrayRef<A::Elem, D>,
) {
    or_panic(try_copy_into_by(rule, array, out));
}

/// [`copy_into_by`] without the panic.
///
/// ```
/// use ndarray::{Array2, array};
/// use simulcast::{Rule, try_copy_into_by};
///
/// let rule = Rule::To { target: &[2, 3] };
/// let error = try_copy_into_by(rule, &array![[1], [2]], &mut Array2::zeros((3, 2))).unwrap_err();
/// assert!(error.to_string().contains("out"));
/// ```
///
/// # Errors
///
/// Where the rule refuses the array, or what it gives does not broadcast to the shape of `out`.
pub fn try_copy_into_by<A: Operand<Elem: Clone>, D: Dimension>(
    rule: Rule<'_>,
    array: A,
    out: &mut ArrayRef<A::Elem, D>,
) -> Result<(), BroadcastError> {
    // SAFETY: one operand, and it is cloned.
    unsafe { try_zip_by(rule, (array,))?.copying() }.try_map_into(out, Clone::clone)
}

/// Clones into the existing values: strings keep their memory.
fn clone_from<A: Operand<Elem: Clone>, D: Dimension>(
    array: &A,
    out: &mut ArrayRef<A::Elem, D>,
) -> Result<(), BroadcastError> {
    // Broadcast first: `assign` would panic where this returns an error.
    out.assign(&try_broadcast_to(array.shown(), out.raw_dim()).map_err(of_out)?);
    Ok(())
}

/// The error of an array that does not stretch to an output.
fn of_out(error: BroadcastError) -> BroadcastError {
    error.with_target("out").without_fixes()
}

/// [`clone_from`] on several threads.
fn par_clone_from<A: Operand<Elem: Clone + Send + Sync>, D: Dimension>(
    array: &A,
    out: &mut ArrayRef<A::Elem, D>,
) -> Result<(), BroadcastError> {
    let parts = parallelism::parts(out.len(), None);
    let longest = (0..out.ndim()).rev().max_by_key(|&axis| out.shape()[axis]).map(Axis);
    let Some(axis) = longest.filter(|_| parts > 1) else { return clone_from(array, out) };
    let shown = try_broadcast_to(array.shown(), out.raw_dim()).map_err(of_out)?;
    let each = out.len_of(axis).div_ceil(parts);
    let pairs = out.axis_chunks_iter_mut(axis, each).zip(shown.axis_chunks_iter(axis, each));
    let pairs: Vec<_> = pairs.map(|pair| Mutex::new(Some(pair))).collect();
    for_each_part(pairs.len(), None, &|part| {
        let pair = pairs[part].lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((mut out, shown)) = pair {
            out.assign(&shown);
        }
    });
    Ok(())
}

/// [`copy_to`] on several threads.
///
/// ```
/// use ndarray::array;
/// use simulcast::par_copy_to;
///
/// let large = par_copy_to(&array![1_u8, 2], (1000, 2));
/// assert_eq!(large.row(999), array![1, 2]);
/// ```
///
/// # Panics
///
/// Where the array does not broadcast to the shape, with the message of the [`BroadcastError`].
#[track_caller]
#[must_use]
pub fn par_copy_to<A: Operand<Elem: Clone + Send + Sync>, I: IntoDimension>(
    array: A,
    shape: I,
) -> Array<A::Elem, I::Dim> {
    or_panic(try_par_copy_to(array, shape))
}

/// [`par_copy_to`] without the panic.
///
/// ```
/// use ndarray::array;
/// use simulcast::try_par_copy_to;
///
/// assert_eq!(try_par_copy_to(&array![1_u8, 2], (1000, 2))?.row(999), array![1, 2]);
/// # Ok::<(), simulcast::BroadcastError>(())
/// ```
///
/// # Errors
///
/// Where the array does not broadcast to the shape, or the result does not fit in memory.
pub fn try_par_copy_to<A: Operand<Elem: Clone + Send + Sync>, I: IntoDimension>(
    array: A,
    shape: I,
) -> Result<Array<A::Elem, I::Dim>, BroadcastError> {
    laid_to(array, shape)?.try_par_map(Clone::clone)
}

/// [`copy_into`] on several threads.
///
/// ```
/// use ndarray::{Array2, array};
/// use simulcast::par_copy_into;
///
/// let mut out = Array2::zeros((1000, 2));
/// par_copy_into(&array![1_u8, 2], &mut out);
/// assert_eq!(out.row(999), array![1, 2]);
/// ```
///
/// # Panics
///
/// Where the array does not broadcast to that shape, with the message of the [`BroadcastError`].
#[track_caller]
pub fn par_copy_into<A: Operand<Elem: Clone + Send + Sync>, D: Dimension>(
    array: A,
    out: &mut ArrayRef<A::Elem, D>,
) {
    or_panic(try_par_copy_into(array, out));
}

/// [`par_copy_into`] without the panic.
///
/// ```
/// use ndarray::{Array2, array};
/// use simulcast::try_par_copy_into;
///
/// let error = try_par_copy_into(&array![1, 2], &mut Array2::zeros((2, 3))).unwrap_err();
/// assert!(error.to_string().starts_with("E1: A (2,) does not broadcast to out (2, 3)"));
/// ```
///
/// # Errors
///
/// Where the array does not broadcast to the shape of `out`.
pub fn try_par_copy_into<A: Operand<Elem: Clone + Send + Sync>, D: Dimension>(
    array: A,
    out: &mut ArrayRef<A::Elem, D>,
) -> Result<(), BroadcastError> {
    if needs_drop::<A::Elem>() {
        return par_clone_from(&array, out);
    }
    laid_to(array, out.raw_dim()).map_err(of_out)?.try_par_map_into(out, Clone::clone)
}
