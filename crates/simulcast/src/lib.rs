//! Broadcasting over `ndarray`: any number of arrays, every rule, any element type.
//!
//! ```
//! use ndarray::array;
//! use simulcast::{broadcast_views, zip};
//!
//! let (x, mean, unit) = (array![[1.0, 20.0], [3.0, 40.0]], array![2.0, 30.0], array![["m"], ["s"]]);
//! let text = zip((&x, &mean, &unit)).map(|x, mean, unit| format!("{} {unit}", x - mean));
//! assert_eq!(text, array![["-1 m", "-10 m"], ["1 s", "10 s"]]);
//!
//! let (x, mean, unit) = broadcast_views((&x, &mean, &unit)); // no copy
//! assert_eq!((x.dim(), mean.dim(), unit.dim()), ((2, 2), (2, 2), (2, 2)));
//! ```
//!
//! | you want | you call |
//! |---|---|
//! | an array shown in another shape | [`broadcast_to`] |
//! | several arrays shown in their common shape | [`broadcast_views`], [`broadcast_all`] |
//! | an array written out in another shape | [`copy_to`], [`copy_into`] |
//! | a closure over one to eight arrays | [`zip()`], then [`map`](Zip::map), [`map_into`](Zip::map_into), [`fold`](Zip::fold), [`par_map`](Zip::par_map) … |
//! | an array changed in place | [`zip()`], then [`update`](Zip::update), [`par_update`](Zip::par_update) |
//! | a function that vectorises in such a closure | [`math`] |
//! | an operator by its name | [`ops`]; on arrays whose type is known when it runs, [`Op::apply`], [`dynamic`] |
//! | several results of expressions in one pass | [`JointProgram`] |
//! | an expression in text | [`eval`], [`Program`] |
//! | the gradient of an operand | [`sum_to_like`], [`sum_to()`]; of an operation, [`ops::vjp`], [`vjp`]; of an expression, [`TypedProgram::gradient`] |
//! | another rule than NumPy's | [`zip_onto`] and the `…_by` forms, with a [`Rule`] |
//! | code that is generic over dimensions | [`zip_onto`], [`zip_dyn`] |
//! | an error rather than a panic | the `try_…` forms, which return a [`BroadcastError`] |
//!
//! The pages of [`mod@zip`], [`mod@view`], [`mod@copy`] and [`mod@sum_to`] say what each promises: orders of visits, memory, panics, accuracy.
//!
//! The feature `program` adds everything that has loops of its own for every operation and element type: [`ops`], [`Op`],
//! [`TypedProgram`], [`AnyArray`], [`vjp`]. It takes minutes to compile. Without it there are views, copies, zips, [`math`] and
//! [`sum_to()`], in seconds. The feature `half`, which `program` brings, makes `f16` and `bf16` plain numbers of these too.
//!
//! ```text
//! api       views, copies, zips, sum_to: what one calls on arrays whose types the compiler knows
//! by_name   operations by name, arrays of any type, programs           (feature `program`)
//! reduce    sums along axes
//! exec      how a nest of loops runs: strategy, executors, threads
//! array     operands, outputs, views from parts
//! layout    strides, loop nests, partition: arithmetic alone
//!           ── simulcast-kernels: the loops over runs of elements; CPU facts ──
//!           ── simulcast-threads: runs the parts of a call on several threads ──
//! ```
//!
//! `SIMULCAST_NUM_THREADS` sets the number of threads of the `par_…` calls, up to 1,024, which stay awake for a
//! fifth of a millisecond after each (the crate `simulcast-threads`); `SIMULCAST_LEVEL` sets the instruction set.

#![cfg_attr(docsrs, feature(doc_cfg))]
#![warn(clippy::panic, clippy::expect_used)]
#![cfg_attr(not(feature = "program"), allow(dead_code, reason = "programs use the rest"))]

#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
#[doc = include_str!("../README.md")]
struct Readme;

#[cfg(all(doctest, feature = "program"))]
#[doc = include_str!("../../../docs/guide/rust.md")]
struct Guide;

mod api;
mod array;
#[cfg(feature = "program")]
mod by_name;
mod environment;
mod exec;
mod layout;
mod reduce;

pub use api::{copy, sum_to, view, zip};

#[doc(inline)]
pub use api::copy::{
    copy_into, copy_into_by, copy_to, copy_to_by, par_copy_into, par_copy_to, try_copy_into,
    try_copy_into_by, try_copy_to, try_copy_to_by, try_par_copy_into, try_par_copy_to,
};
#[doc(inline)]
pub use api::sum_to::{
    par_sum_to, par_sum_to_like, par_sum_to_shape, sum_to, sum_to_like, sum_to_shape,
    try_par_sum_to, try_par_sum_to_shape, try_sum_to, try_sum_to_like, try_sum_to_shape,
};
#[doc(inline)]
pub use api::view::{
    broadcast_all, broadcast_all_by, broadcast_to, broadcast_to_by, broadcast_views,
    broadcast_views_by, try_broadcast_all, try_broadcast_all_by, try_broadcast_to,
    try_broadcast_to_by, try_broadcast_views, try_broadcast_views_by,
};
#[doc(inline)]
pub use api::zip::{
    Zip, try_zip, try_zip_by, try_zip_dyn, try_zip_onto, zip, zip_by, zip_dyn, zip_onto,
};
pub use array::operand::{CommonDim, Operand, Operands};
#[cfg(feature = "program")]
pub use by_name::*;
pub use environment::{EnvironmentError, check_environment};
pub use exec::strategy::Strategy;
/// The crate of `f16` and `bf16`.
#[cfg(feature = "half")]
pub use half;
/// The crate of the arrays: its version is part of this crate's.
pub use ndarray;
/// The crate of rules and plans, whose types stand in this crate's signatures: findings and symbolic shapes besides.
pub use simulcast_core;
pub use simulcast_core::{
    BroadcastError, Clash, Dims, Edit, Fix, Interval, Layout, NamedAxes, Names, OwnedRule, Plan,
    Refusal, Rule, RuleKind, Side, broadcast_shapes, resolve,
};
pub use simulcast_kernels::addend::Addend;
pub use simulcast_kernels::cpu::level::Level;
pub use simulcast_kernels::dtype::{Complex, DType, DTypeKind, Element, Scalar, UnknownDType};
/// ```
/// use ndarray::array;
/// use simulcast::{math, zip};
///
/// let (x, most, sum) = (array![[1.0, 2.0], [3.0, 1.0]], array![[2.0], [3.0]], array![[1.5], [1.25]]);
/// let softmax = zip((&x, &most, &sum)).map(|x, most, sum| math::exp(x - most) / sum);
/// assert_eq!(softmax[[0, 1]], 1.0 / 1.5);
/// ```
#[doc(inline)]
pub use simulcast_kernels::math;
