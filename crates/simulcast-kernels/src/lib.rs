//! The loops under `simulcast`: operations on runs of elements, compiled for every instruction-set level.
//!
//! ```text
//! tuning       every threshold of the engine, and what it was measured on
//! cpu          instruction-set levels, caches, non-temporal stores, prefetch, aligned buffers
//! moves        packing and non-temporal copies, with a level as an argument
//! pack         gathering a tile of strided elements, and its transposition
//! math         elementary functions with stated error bounds
//! op           the table of operations: names, element types, results, derivatives
//! ops          one loop for each operation and element type           (feature `ops`)
//! register_vm  chains of float operations in vector registers         (feature `ops`)
//! reduce       loops of reductions along rows and across them
//! product      products of matrices                               (feature `product`)
//! ```
//!
//! Nothing here knows loop nests, threads or arrays: `simulcast` decides, this crate computes. It is published for
//! `simulcast` alone; its functions may change in any version.

#![cfg_attr(docsrs, feature(doc_cfg))]
#![allow(
    missing_docs,
    reason = "the loops are internal; what `simulcast` re-exports is documented"
)]
#![cfg_attr(
    not(feature = "ops"),
    allow(dead_code, reason = "the loops of operations use the rest")
)]

pub mod addend;
pub mod cpu;
pub mod dtype;
pub mod math;
pub mod moves;
pub mod op;
#[cfg(feature = "ops")]
pub mod ops;
pub mod pack;
pub mod pod;
#[cfg(feature = "product")]
pub mod product;
pub mod reduce;
#[cfg(feature = "ops")]
#[cfg_attr(
    not(all(target_arch = "x86_64", not(miri))),
    allow(dead_code, reason = "there are no loops")
)]
pub mod register_vm;
pub mod tuning;

pub use addend::Addend;
pub use cpu::level::Level;
pub use dtype::{DType, Element};
pub use op::Op;
