//! ONNX models: every broadcast in them inferred, checked and explained; models run, and legacy ones
//! upgraded.
//!
//! ```text
//!  bytes ── load ──▶ Model ── infer ──▶ facts, broadcasts, constraints ── check ──▶ text · JSON · HTML
//!                          ├─ prepare ──▶ Session ── run ──▶ arrays; chains of element-wise nodes are programs
//!                          └─ upgrade ──▶ a model of opset 7, where broadcasting is NumPy's
//! ```
//!
//! ```
//! use simulcast_onnx::{CheckPolicy, Model, check};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/models/loss.onnx");
//! let model = Model::load(path)?;
//! let found = check(&model, &[], &CheckPolicy::default())?;
//! assert_eq!(
//!     found.findings[0].to_string(),
//!     "SC110: subtract: pred and target both grow (SC102), and mean (ReduceMean) reduces the result \
//!      to one number"
//! );
//! # Ok(())
//! # }
//! ```
//!
//! # What it believes
//!
//! Models come from outside. Nothing is believed that was not checked: lengths end with the message
//! around them, sizes are compared with the data, data in other files are looked for below the
//! model's folder only, and graphs in graphs, functions that call functions and sizes that multiply
//! have an end. A model that is refused says why; none makes this crate panic. The wire format is
//! read here, over borrowed bytes: `prost` and `rten-onnx` copy into types of their own and drop the fields
//! that they do not know, which an upgrade and [`Annotated`] have to keep byte for byte.
//!
//! # Features
//!
//! `run`, on by default, brings [`Session`] and with it the engine. Without it, inference, checks and
//! upgrades compile in seconds.
//!
//! # Limits
//!
//! - Sparse initializers and segmented tensors are refused.
//! - `Loop` and `Scan` bodies are checked with what is declared of their inputs; the sizes of their
//!   results are those that are declared.
//! - Operators without a rule have the declared shapes, and are listed.
//! - What runs are element-wise operators, shapes, casts, indices, reductions, softmax, products and
//!   the normalizations made of them, on tensors of NumPy's types and `bfloat16` (elements of float8,
//!   float4 and of less than 8 bits are moved and cast, not computed with); `docs/onnx-backend.md`
//!   lists the tests of the package onnx that ask for more. What there is no code for is named before
//!   anything runs.

#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod annotate;
mod check;
mod diff;
mod element;
mod error;
mod expr;
mod external;
mod infer;
mod load;
mod model;
mod notices;
mod operators;
mod report;
#[cfg(feature = "run")]
mod run;
mod schema;
mod structure;
mod tensor;
mod upgrade;
mod wire;

#[cfg(test)]
mod tests;

pub use annotate::{AnnotateError, AnnotateOptions, AnnotateReport, Annotated, annotate};
pub use check::{Check, CheckPolicy, Checked, ModelCode, ModelFinding, check};
pub use diff::{ModelDiff, diff};
pub use element::ElementType;
pub use error::LoadError;
pub use external::{ExternalError, ExternalFiles};
pub use infer::{Broadcast, Difference, Fact, Inference, NodeProblem, ProblemOperand, infer};
pub use load::read;
pub use model::{
    Attribute, AttributeValue, Declared, DeclaredDim, Function, Graph, Model, Node, Producer,
    Value, ValueId,
};
pub use operators::operators_page;
pub use report::SCHEMA;
#[cfg(feature = "run")]
pub use run::{NodeError, RunError, Session, UnsupportedNode};
pub use tensor::{Tensor, TensorError};
pub use upgrade::{UpgradeError, upgrade};
pub use wire::WireError;
