//! Reductions: many elements into few, in an order that depends on the shape, the strides and the element types alone.
//!
//! ```text
//! plan        which axes, blocks, parts and order: decided once, a value with `Debug`
//! blocking    axes cut into blocks
//! run         runs a plan; knows element types as pointers to loops
//! accumulate  rows of values, joined one after the other and pairwise
//! shared_row  every row of one operand meets every row of another   (feature `program`)
//! sums        `sum_to`: addends of any type, in the order of memory
//! ```
//!
//! `sum_to` and the reductions of programs are this one engine: they differ in where elements come from
//! ([`Source`](run::Source)), in the loops ([`Reducer`](simulcast_kernels::reduce::Reducer)), and in what becomes of values
//! ([`Results`](run::Results)). It is compiled once; of a further element type, only the loops are.

mod accumulate;
pub(crate) mod blocking;
pub(crate) mod plan;
pub(crate) mod run;
#[cfg(feature = "program")]
pub(crate) mod shared_row;
pub(crate) mod sums;
