//! What a broadcast means: rules, plans, errors, findings and symbolic shapes.
//!
//! ```text
//!  shapes ── Rule ──resolve──▶ Plan    which operand axis feeds which result axis
//!                          └─▶ BroadcastError    every clashing axis, and fixes that work
//! ```
//!
//! A [`Rule`] is the only thing that knows a dialect; everything after it sees a [`Plan`].
//!
//! ```
//! use simulcast_core::{Rule, resolve};
//!
//! let plan = resolve(Rule::Numpy, &[&[8, 1, 6, 1][..], &[7, 1, 5]])?;
//! assert_eq!(plan.shape(), [8, 7, 6, 5]);
//! assert_eq!(plan.strides(1, &[5, 5, 1])?, [0, 5, 0, 1]); // 0: B repeats here
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! People who look for `broadcast_shapes`, `co_broadcast`, `newaxis`, `expand` or `sum_to_size`
//! find them as [`broadcast_shapes`], [`resolve`], [`Edit::InsertAxes`], [`Rule::Bidirectional`]
//! and [`Plan::sum_axes`].
//!
//! # Limits, and the lack of them
//!
//! - No limit on operands, rank or sizes but memory. A result too large to allocate still has a
//!   shape; only questions for its number of elements refuse.
//! - No operand at all gives the scalar shape.
//! - Nothing panics, wraps or allocates beyond a constant times its input. The crate has no
//!   `unsafe`, and its lints forbid indexing and unchecked arithmetic.
//! - Without the `alloc` feature there remain [`resolve_into`], [`sources_into`],
//!   [`view_strides_into`], [`row_major_into`] and [`offset_through`], which never allocate.

#![no_std]
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    warn(
        clippy::arithmetic_side_effects,
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::panic,
        clippy::string_slice,
        clippy::unreachable
    )
)]
#![allow(
    clippy::collapsible_if,
    reason = "decisions have one condition, so that branch coverage is MC/DC"
)]

#[cfg(feature = "alloc")]
extern crate alloc;
#[cfg(test)]
extern crate std;

mod frame;
mod interval;
mod refusal;
mod resolve;
mod rule;
mod size;
mod source;

#[cfg(feature = "alloc")]
mod dim;
#[cfg(feature = "alloc")]
mod error;
#[cfg(feature = "alloc")]
mod finding;
#[cfg(feature = "alloc")]
mod fix;
#[cfg(feature = "alloc")]
mod layout;
#[cfg(feature = "alloc")]
mod names;
#[cfg(feature = "alloc")]
mod plan;
#[cfg(feature = "alloc")]
mod policy;
#[cfg(feature = "alloc")]
mod symbolic;
#[cfg(feature = "alloc")]
mod text;

pub use interval::Interval;
pub use refusal::{CODES, Refusal, Side};
pub use resolve::{resolve_into, sources_into};
pub use rule::{Rule, RuleKind};
pub use size::{elements, join};
pub use source::{Source, offset_through, row_major_into, view_strides_into};

#[cfg(feature = "alloc")]
pub use {
    dim::{Dim, Dims, Symbol, tuple},
    error::BroadcastError,
    finding::{Finding, FindingCode, LOOKED_AT, Limits},
    fix::{Edit, Fix},
    layout::Layout,
    names::{NamedAxes, Names},
    plan::{Alignment, Cost, Plan},
    policy::{Action, Level, Policy, Verdict},
    resolve::{broadcast_shapes, resolve},
    rule::{OwnedRule, RuleError},
    symbolic::{Constraint, SymbolicPlan, Term, resolve_dims},
    text::{ParseError, ShapeText},
};
