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
    Ok(unsafe { zip.moving() })
}

// Implements E_BROADCAST_ANY_FUNC_3020.
/// The array in that shape, as an array of its own.
///
/// # Panics
///
/// Where the array does not broadcast to the shape, with the message of the [`BroadcastError`].
#[track_caller]
pub fn copy_to<A: Operand<Elem: Clone>, I: IntoDimension>(
    array: A,
    shape: I,
) -> Array<A::Elem, I::Dim> {
    or_panic(try_copy_to(array, shape))
}

/// [`copy_to`] without the panic.
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
/// # Panics
///
/// Where the rule refuses the array, with the message of the [`BroadcastError`].
#[track_caller]
pub fn copy_to_by<A: Operand<Elem: Clone>>(rule: Rule<'_>, array: A) -> ArrayD<A::Elem> {
    or_panic(try_copy_to_by(rule, array))
}

/// [`copy_to_by`] without the panic.
///
/// # Errors
///
/// Where the rule refuses the array, or the result does not fit in memory.
pub fn try_copy_to_by<A: Operand<Elem: Clone>>(
    rule: Rule<'_>,
    array: A,
) -> Result<ArrayD<A::Elem>, BroadcastError> {
    // SAFETY: one operand, and it is cloned.
    unsafe { try_zip_by(rule, (array,))?.moving() }.try_map(Clone::clone)
}

/// The array into `out`, to whose shape it stretches.
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
    laid_to(array, out.raw_dim())?.try_map_into(out, Clone::clone)
}

/// Clones into the existing values: strings keep their memory.
fn clone_from<A: Operand<Elem: Clone>, D: Dimension>(
    array: &A,
    out: &mut ArrayRef<A::Elem, D>,
) -> Result<(), BroadcastError> {
    // Broadcast first: `assign` would panic where this returns an error.
    out.assign(&try_broadcast_to(array.shown(), out.raw_dim())?);
    Ok(())
}

/// [`clone_from`] on several threads.
fn par_clone_from<A: Operand<Elem: Clone + Send + Sync>, D: Dimension>(
    array: &A,
    out: &mut ArrayRef<A::Elem, D>,
) -> Result<(), BroadcastError> {
    let parts = parallelism::parts(out.len(), None);
    let longest = (0..out.ndim()).rev().max_by_key(|&axis| out.shape()[axis]).map(Axis);
    let Some(axis) = longest.filter(|_| parts > 1) else { return clone_from(array, out) };
    let shown = try_broadcast_to(array.shown(), out.raw_dim())?;
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
/// # Panics
///
/// Where the array does not broadcast to the shape, with the message of the [`BroadcastError`].
#[track_caller]
pub fn par_copy_to<A: Operand<Elem: Clone + Send + Sync>, I: IntoDimension>(
    array: A,
    shape: I,
) -> Array<A::Elem, I::Dim> {
    or_panic(laid_to(array, shape).and_then(|zip| zip.try_par_map(Clone::clone)))
}

/// [`copy_into`] on several threads.
///
/// # Panics
///
/// Where the array does not broadcast to that shape, with the message of the [`BroadcastError`].
#[track_caller]
pub fn par_copy_into<A: Operand<Elem: Clone + Send + Sync>, D: Dimension>(
    array: A,
    out: &mut ArrayRef<A::Elem, D>,
) {
    if needs_drop::<A::Elem>() {
        return or_panic(par_clone_from(&array, out));
    }
    let zip = laid_to(array, out.raw_dim());
    or_panic(zip.and_then(|zip| zip.try_par_map_into(out, Clone::clone)));
}
