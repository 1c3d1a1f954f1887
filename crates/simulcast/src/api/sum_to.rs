//! Sums back to an operand's shape: the adjoint of a broadcast, for every rule.
//!
//! Each element of an operand appears at one or more places of the result; its gradient is the sum over those places.
//!
//! ```
//! use ndarray::array;
//! use simulcast::{Rule, resolve, sum_to, sum_to_shape};
//!
//! let grad = array![[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]];
//! assert_eq!(sum_to_shape(&grad, 3), array![5.0, 7.0, 9.0]);
//! assert_eq!(sum_to_shape(&grad, (2, 1)), array![[6.0], [15.0]]);
//!
//! let plan = resolve(Rule::Pdpd { axis: Some(0) }, &[&[2, 3][..], &[2]])?;
//! assert_eq!(sum_to(&grad, &plan, 1), array![6.0, 15.0].into_dyn());
//! # Ok::<(), simulcast::BroadcastError>(())
//! ```
//!
//! - The same bits for a given shape and layout, whatever the number of threads and the level: the
//!   partition and the order of additions depend on the shape and the strides alone. (The payload of a NaN
//!   is not part of that.)
//! - As accurate as pairwise summation: the error grows with the logarithm of the number of terms.
//!   `f16` and `bf16` are summed in `f32`.
//! - A gradient without elements gives zeros.
//! - Beside the result, at most 2 MiB of sums of parts, and about 1 MiB of each thread's own.

#![allow(clippy::needless_pass_by_value, reason = "operands are references, or views")]

use ndarray::{Array, ArrayD, Dimension, IntoDimension, IxDyn};
use simulcast_core::{BroadcastError, Names, Plan, Refusal, Rule, resolve, row_major_into};

use crate::Addend;
use crate::api::copy::laid_to;
use crate::api::view::or_panic;
use crate::array::operand::Operand;
use crate::array::output::reserve;
use crate::reduce::sums::Sums;
use simulcast_kernels::cpu::level::Level;
use simulcast_kernels::tuning::UNINTERRUPTED_OPERATIONS;
use simulcast_threads::checkpoint;

/// The gradient summed to a shape that broadcasts to its own under [`Rule::Numpy`].
///
/// ```
/// use ndarray::{Array1, array};
/// use simulcast::sum_to_shape;
///
/// let grad = array![[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]];
/// let of_row: Array1<f64> = sum_to_shape(&grad, 3);
/// assert_eq!(of_row, array![5.0, 7.0, 9.0]);
/// assert_eq!(sum_to_shape(&grad, (2, 1)), array![[6.0], [15.0]]);
/// assert_eq!(sum_to_shape(&grad, ()).into_scalar(), 21.0);
/// ```
///
/// # Panics
///
/// Where the shape does not broadcast to that of the gradient, with the error's message.
#[track_caller]
#[must_use]
pub fn sum_to_shape<A: Operand<Elem: Addend>, I: IntoDimension>(
    grad: A,
    shape: I,
) -> Array<A::Elem, I::Dim> {
    or_panic(try_sum_to_shape(grad, shape))
}

/// [`sum_to_shape`] without the panic.
///
/// ```
/// use ndarray::array;
/// use simulcast::try_sum_to_shape;
///
/// let error = try_sum_to_shape(&array![[1.0, 2.0, 3.0]], 2).unwrap_err();
/// assert!(error.to_string().starts_with("E1: shape (2,) does not broadcast to the gradient (1, 3)"));
/// ```
///
/// # Errors
///
/// Where the shape does not broadcast to that of the gradient.
pub fn try_sum_to_shape<A: Operand<Elem: Addend>, I: IntoDimension>(
    grad: A,
    shape: I,
) -> Result<Array<A::Elem, I::Dim>, BroadcastError> {
    to_shape(&grad, shape.into_dimension(), Some(1))
}

/// [`sum_to_shape`] on several threads; the same bits.
///
/// ```
/// use ndarray::Array2;
/// use simulcast::{par_sum_to_shape, sum_to_shape};
///
/// let grad = Array2::from_shape_fn((1000, 7), |(i, j)| ((i * 7 + j) as f32).sqrt());
/// assert_eq!(par_sum_to_shape(&grad, 7), sum_to_shape(&grad, 7)); // bit for bit
/// ```
///
/// # Panics
///
/// Where the shape does not broadcast to that of the gradient, with the error's message.
#[track_caller]
#[must_use]
pub fn par_sum_to_shape<A: Operand<Elem: Addend>, I: IntoDimension>(
    grad: A,
    shape: I,
) -> Array<A::Elem, I::Dim> {
    or_panic(to_shape(&grad, shape.into_dimension(), None))
}

/// [`par_sum_to_shape`] without the panic.
///
/// ```
/// use ndarray::array;
/// use simulcast::try_par_sum_to_shape;
///
/// let error = try_par_sum_to_shape(&array![[1.0, 2.0], [3.0, 4.0]], 3).unwrap_err();
/// assert!(error.to_string().ends_with("axis 1 (-1): the gradient has 2, shape has 3"));
/// ```
///
/// # Errors
///
/// Where the shape does not broadcast to that of the gradient.
pub fn try_par_sum_to_shape<A: Operand<Elem: Addend>, I: IntoDimension>(
    grad: A,
    shape: I,
) -> Result<Array<A::Elem, I::Dim>, BroadcastError> {
    to_shape(&grad, shape.into_dimension(), None)
}

/// The gradient summed to the shape of an array, which broadcasts to its own under [`Rule::Numpy`]: what the array gets,
/// where it took part in a broadcast.
///
/// ```
/// use ndarray::{Array1, array};
/// use simulcast::{sum_to_like, zip};
///
/// let (x, w) = (array![[1.0, 2.0], [3.0, 4.0]], array![10.0, 20.0]);
/// let of_product = array![[1.0, 1.0], [1.0, 2.0]]; // the gradient of x * w
/// let of_w: Array1<f64> = sum_to_like(&zip((&x, &of_product)).map(|x, g| x * g), &w);
/// assert_eq!(of_w, array![4.0, 10.0]);
/// ```
///
/// # Panics
///
/// Where the array does not broadcast to the shape of the gradient, with the error's message.
#[track_caller]
#[must_use]
pub fn sum_to_like<A: Operand<Elem: Addend>, W: Operand>(
    grad: A,
    like: W,
) -> Array<A::Elem, W::Dim> {
    or_panic(try_sum_to_like(grad, like))
}

/// [`sum_to_like`] without the panic.
///
/// ```
/// use ndarray::array;
/// use simulcast::try_sum_to_like;
///
/// assert!(try_sum_to_like(&array![[1.0, 2.0]], &array![1.0, 2.0, 3.0]).is_err());
/// ```
///
/// # Errors
///
/// Where the array does not broadcast to the shape of the gradient.
pub fn try_sum_to_like<A: Operand<Elem: Addend>, W: Operand>(
    grad: A,
    like: W,
) -> Result<Array<A::Elem, W::Dim>, BroadcastError> {
    to_shape(&grad, like.shown().raw_dim(), Some(1))
}

/// [`sum_to_like`] on several threads; the same bits.
///
/// ```
/// use ndarray::{Array2, array};
/// use simulcast::par_sum_to_like;
///
/// let w = array![0.5, 1.5, 2.5];
/// assert_eq!(par_sum_to_like(&Array2::<f64>::ones((1000, 3)), &w), array![1000.0, 1000.0, 1000.0]);
/// ```
///
/// # Panics
///
/// Where the array does not broadcast to the shape of the gradient, with the error's message.
#[track_caller]
#[must_use]
pub fn par_sum_to_like<A: Operand<Elem: Addend>, W: Operand>(
    grad: A,
    like: W,
) -> Array<A::Elem, W::Dim> {
    or_panic(to_shape(&grad, like.shown().raw_dim(), None))
}

// Implements E_BROADCAST_ANY_FUNC_3040, E_BROADCAST_ANY_ERR_3030.
/// The gradient of an operand, from that of the result, under a plan.
///
/// ```
/// use ndarray::array;
/// use simulcast::{Rule, resolve, sum_to};
///
/// let plan = resolve(Rule::Pdpd { axis: Some(0) }, &[&[2, 3][..], &[2]])?;
/// let grad = array![[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]];
/// assert_eq!(sum_to(&grad, &plan, 1), array![6.0, 15.0].into_dyn());
/// # Ok::<(), simulcast::BroadcastError>(())
/// ```
///
/// # Panics
///
/// Where the gradient does not have the result's shape, or the plan has no such operand.
#[track_caller]
#[must_use]
pub fn sum_to<A: Operand<Elem: Addend>>(grad: A, plan: &Plan, operand: usize) -> ArrayD<A::Elem> {
    or_panic(try_sum_to(grad, plan, operand))
}

/// [`sum_to`] without the panic.
///
/// ```
/// use ndarray::array;
/// use simulcast::{Rule, resolve, try_sum_to};
///
/// let plan = resolve(Rule::Numpy, &[&[2, 3][..], &[3]])?;
/// assert!(try_sum_to(&array![1.0, 2.0], &plan, 1).is_err()); // not of the result's shape
/// # Ok::<(), simulcast::BroadcastError>(())
/// ```
///
/// # Errors
///
/// Where the gradient does not have the result's shape, or the plan has no such operand.
pub fn try_sum_to<A: Operand<Elem: Addend>>(
    grad: A,
    plan: &Plan,
    operand: usize,
) -> Result<ArrayD<A::Elem>, BroadcastError> {
    under(&grad, plan, operand, Some(1))
}

/// [`sum_to`] on several threads; the same bits.
///
/// ```
/// use ndarray::Array2;
/// use simulcast::{Rule, par_sum_to, resolve};
///
/// let plan = resolve(Rule::Numpy, &[&[1000, 3][..], &[3]])?;
/// assert_eq!(par_sum_to(&Array2::<f32>::ones((1000, 3)), &plan, 1).as_slice(), Some(&[1000.0; 3][..]));
/// # Ok::<(), simulcast::BroadcastError>(())
/// ```
///
/// # Panics
///
/// Where the gradient does not have the result's shape, or the plan has no such operand.
#[track_caller]
#[must_use]
pub fn par_sum_to<A: Operand<Elem: Addend>>(
    grad: A,
    plan: &Plan,
    operand: usize,
) -> ArrayD<A::Elem> {
    or_panic(try_par_sum_to(grad, plan, operand, None))
}

/// [`par_sum_to`] without the panic, on at most `limit` threads; `None` for all of them.
///
/// ```
/// use ndarray::Array2;
/// use simulcast::{Rule, resolve, try_par_sum_to};
///
/// let plan = resolve(Rule::Numpy, &[&[1000, 3][..], &[3]])?;
/// let sums = try_par_sum_to(&Array2::<i64>::ones((1000, 3)), &plan, 1, Some(2))?; // on two threads at most
/// assert_eq!(sums.as_slice(), Some(&[1000; 3][..]));
/// # Ok::<(), simulcast::BroadcastError>(())
/// ```
///
/// # Errors
///
/// Where the gradient does not have the result's shape, the plan has no such operand, or there is
/// no memory for the sums.
pub fn try_par_sum_to<A: Operand<Elem: Addend>>(
    grad: A,
    plan: &Plan,
    operand: usize,
    limit: Option<usize>,
) -> Result<ArrayD<A::Elem>, BroadcastError> {
    under(&grad, plan, operand, limit)
}

fn to_shape<A: Operand<Elem: Addend>, D: Dimension>(
    grad: &A,
    dim: D,
    limit: Option<usize>,
) -> Result<Array<A::Elem, D>, BroadcastError> {
    let rule = Rule::To { target: grad.sizes() };
    let named = |error: BroadcastError| {
        error.with_names(Names::of(["shape"])).with_target("the gradient").without_fixes()
    };
    let plan = resolve(rule, &[dim.slice()]).map_err(named)?;
    summed(grad, &plan, 0, dim.clone(), limit)
        .map_err(|refusal| named(BroadcastError::new(rule, &[dim.slice()], refusal)))
}

fn under<A: Operand<Elem: Addend>>(
    grad: &A,
    plan: &Plan,
    operand: usize,
    limit: Option<usize>,
) -> Result<ArrayD<A::Elem>, BroadcastError> {
    let shapes = [plan.shape(), grad.sizes()];
    let named =
        |error: BroadcastError| error.with_names(Names::of(["result", "gradient"])).without_fixes();
    resolve(Rule::Exact, &shapes).map_err(named)?;
    let refused = |refusal| named(BroadcastError::new(Rule::Exact, &shapes, refusal));
    let own = plan.operand_shape(operand).map_err(refused)?;
    summed(grad, plan, operand, IxDyn(&own), limit).map_err(refused)
}

/// The sum over every axis along which the operand, of shape `dim`, repeats.
fn summed<A: Operand<Elem: Addend>, D: Dimension>(
    grad: &A,
    plan: &Plan,
    operand: usize,
    dim: D,
    limit: Option<usize>,
) -> Result<Array<A::Elem, D>, Refusal> {
    let own = dim.slice();
    let mut strides = vec![0; own.len()];
    row_major_into(own, &mut strides)?;
    let along = plan.strides(operand, &strides)?;
    let elements: usize = plan.elements()?;
    if own == plan.shape() && along == strides {
        // Nothing is summed.
        let copy = laid_to(grad.shown(), dim).map(|copy| copy.threads(limit.unwrap_or(usize::MAX)));
        return copy
            .and_then(|copy| copy.try_par_map(Clone::clone))
            .map_err(|error| *error.refusal());
    }
    let len = own.iter().product();
    let mut sums = Vec::new();
    reserve(&mut sums, len)?;
    // In pieces, so that the call can be stopped: a page is cleared when it is first written.
    while sums.len() < len {
        checkpoint();
        sums.resize(len.min(sums.len() + UNINTERRUPTED_OPERATIONS), A::Elem::narrow(A::Elem::ZERO));
    }
    if elements > 0 {
        let (from, to) = (grad.pointer().cast(), sums.as_mut_ptr().cast());
        let (from, to) = ((from, grad.steps()), (to, &along[..]));
        // SAFETY: the pointer and the strides are the gradient's own, of the plan's shape, without a 0; the result's
        // strides are row-major in a vector of its size, and 0 where the operand repeats.
        unsafe { Sums::of::<A::Elem>(Level::for_closures()).run(plan.shape(), from, to, limit) };
    }
    // Never an error: there are as many sums as the shape has elements.
    Array::from_shape_vec(dim, sums).map_err(|_| Refusal::Overflow)
}
