//! The recorded answers of other systems, read from `conformance/data`, and what the core says to the
//! same questions.
//!
//! `tests/core.rs` holds that each answer is ours or a listed deviation, `tests/engine.rs` that the
//! engine's elements and gradients are the recorded ones.
//!
//! | module | what |
//! |---|---|
//! | [`data`] | systems, questions and answers, as the files have them |
//! | [`ours`] | what the core says to a question |
//! | [`deviation`] | which listed reason explains a difference |
//! | [`replay`] | every answer beside ours |
//! | [`dialects`] | the page `docs/dialects.md` |

#![allow(
    missing_docs,
    reason = "fields have the names of the files, which conformance/README.md describes"
)]
#![allow(
    clippy::missing_panics_doc,
    reason = "a replay that meets a contradiction of the core panics"
)]

pub mod data;
pub mod deviation;
pub mod dialects;
pub mod ours;
pub mod replay;
