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
//! | a closure over one to eight arrays | [`zip`], then `map`, `map_into`, `fold`, `par_map` … |
//! | a function that vectorises in such a closure | [`math`] |
//! | an operator by its name | [`ops`]; on arrays whose type is known when it runs, [`Op::apply`], [`dynamic`] |
//! | the gradient of an operand | [`sum_to`], [`sum_to_shape`]; of an operation, [`vjp`] |
//! | another rule than NumPy's | the `…_by` forms, with a [`Rule`] |
//! | an error rather than a panic | the `try_…` forms, which return a [`BroadcastError`] |
//!
//! The feature `program`, which is on by default, is all that has loops of its own for every operation and element type:
//! [`ops`], [`Op`], [`Program`], [`AnyArray`], [`vjp`]. They take minutes to compile. With `default-features = false` there
//! are views, copies, zips, [`math`] and [`sum_to`], in seconds.
//!
//! `SIMULCAST_NUM_THREADS` sets the number of threads of the `par_…` calls, up to 1,024, which stay awake for a
//! fifth of a millisecond after each; `SIMULCAST_LEVEL` sets the instruction set.

#![warn(clippy::panic, clippy::expect_used)]
#![cfg_attr(not(feature = "program"), allow(dead_code, reason = "programs use the rest"))]

#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

mod addend;
#[cfg(feature = "program")]
mod any;
#[cfg(feature = "program")]
mod apply;
#[cfg(feature = "program")]
pub mod compose;
mod copy;
mod drive;
mod dtype;
#[cfg(feature = "program")]
pub mod dynamic;
mod fresh;
#[cfg(feature = "program")]
pub mod gradient;
mod habit;
mod inline;
mod kernel;
#[cfg(feature = "program")]
mod kernels;
mod laid;
mod level;
mod line;
#[allow(dead_code, reason = "kernels convert bfloat16 in loops of their own, not by slices")]
pub mod math;
mod nest;
#[cfg(feature = "program")]
mod op;
mod operand;
#[cfg(feature = "program")]
pub mod ops;
mod pack;
mod parts;
mod plain;
#[cfg(feature = "program")]
pub mod program;
mod raw;
mod reduce;
mod run;
mod stream;
mod sum_to;
mod threads;
#[cfg(feature = "program")]
mod typing;
mod view;
mod zip;

pub use addend::Addend;
#[cfg(feature = "program")]
pub use any::{AnyArray, AnyView, AnyViewMut};
pub use copy::{
    copy_into, copy_to, copy_to_by, par_copy_into, par_copy_to, try_copy_into, try_copy_to,
    try_copy_to_by,
};
pub use dtype::{Complex, DType, Element, Kind, Scalar, UnknownDType};
#[cfg(feature = "program")]
pub use gradient::{Laying, vjp, vjp_by, vjp_clip, vjp_clip_by, vjp_prelu};
pub use level::Level;
#[cfg(feature = "program")]
pub use op::{Op, UnknownOp};
pub use operand::{CommonDim, Operand, Operands};
#[cfg(feature = "program")]
pub use program::{
    Argument, AxisPattern, Builder, Diagnostic, Expr, ExprId, ExprKind, ExprNode, Fold, Input,
    Node, ParseError, ParseErrorKind, Program, ProgramError, ProgramErrorKind, Ready, Run,
    row_axis,
};
pub use simulcast_core::{
    BroadcastError, NamedAxes, Names, Plan, Refusal, Rule, RuleKind, Source, broadcast_shapes,
    resolve,
};
pub use sum_to::{
    par_sum_to, par_sum_to_shape, sum_to, sum_to_shape, try_par_sum_to, try_sum_to,
    try_sum_to_shape,
};
#[cfg(feature = "program")]
pub use typing::{
    Casting, Literal, Promotion, Signature, Type, TypeError, TypeErrorKind, can_cast, literal_as,
    literal_operand, promote_types, result_type, signature,
};
pub use view::{
    broadcast_all, broadcast_all_by, broadcast_to, broadcast_views, broadcast_views_by,
    try_broadcast_all, try_broadcast_all_by, try_broadcast_to, try_broadcast_views,
    try_broadcast_views_by,
};
pub use zip::{Zip, try_zip, try_zip_by, zip, zip_by};
