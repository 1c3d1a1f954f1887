//! What a broadcast means: rules, plans, errors, findings and symbolic shapes.
//!
//! ```text
//!  shapes ── Rule ──resolve──▶ Plan    which operand axis feeds which result axis
//!                          └─▶ BroadcastError    every clashing axis, and fixes that work
//! ```
//!
//! A [`Rule`] is the only thing that knows a dialect; everything after it sees a [`Plan`].
//!
//! | folder | what is in it |
//! |---|---|
//! | `rules/` | every rule, what it comes down to, its text, names of axes |
//! | `plan/` | resolution, and the plan: what goes where |
//! | `errors/` | what does not fit, and fixes that work |
//! | `findings/` | what is legal and suspicious, and policies |
//! | `symbolic/` | sizes that are not known yet, and shape text |
//! | `request.rs` | operands and a rule in, an outcome out: what the command, Python and models ask |
//! | `codes.rs` | every stable code, explained |
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
//! - Without the `alloc` feature there remain [`resolve_into`], [`strides_into`], [`offsets`] and the steps that they
//!   are made of, which never allocate: `examples/bare.rs`. A target without an operating system needs
//!   `default-features = false`, and `features = ["alloc"]` where it has an allocator.

#![cfg_attr(docsrs, feature(doc_cfg))]
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

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/certification.md")]
struct Certification;

#[cfg(all(feature = "default", target_os = "none"))]
compile_error!(
    "simulcast-core on a target without an operating system: say `default-features = false` where you depend on it, \
     and `features = [\"alloc\"]` if the target has an allocator"
);

#[cfg(feature = "alloc")]
extern crate alloc;
#[cfg(test)]
extern crate std;

mod codes;
mod errors;
mod plan;
mod rules;
mod symbolic;

#[cfg(feature = "alloc")]
mod findings;
#[cfg(feature = "alloc")]
mod request;

pub use codes::{Anchor, Code, CodeKind};
pub use errors::{Refusal, Side};
pub use plan::{
    Offsets, Source, elements, join, offset_through, offsets, resolve_into, row_major_into,
    sources_into, strides_into, view_strides_into,
};
pub use rules::{Parameters, Parts, Rule, RuleKind, RuleOf};
pub use symbolic::Interval;

#[cfg(feature = "alloc")]
pub use {
    errors::{BroadcastError, Clash, Edit, Fix},
    findings::{
        Action, Certainty, Chosen, Evidence, Finding, FindingCode, Limits, MAX_COMPARED_OPERANDS,
        Policy, PolicyError, Strictness, Verdict,
    },
    plan::{Alignment, Cost, Plan, broadcast_shapes, resolve},
    request::{Outcome, Request, RequestError},
    rules::{Layout, NamedAxes, Names, OwnedRule, RuleError},
    symbolic::{
        Constraint, Dim, Dims, ParseError, ShapeText, Symbol, SymbolicPlan, Term, format_shape,
        resolve_dims,
    },
};
