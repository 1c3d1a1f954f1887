//! x
mod check;
mod element;
mod error;
mod expr;
mod external;
mod infer;
mod load;
mod model;
mod report;
mod structure;
mod tensor;
mod upgrade;
mod wire;
pub use check::*;
pub use element::ElementType;
pub use error::LoadError;
pub use external::ExternalError;
pub use infer::*;
pub use model::*;
pub use report::SCHEMA;
pub use tensor::{Tensor, TensorError};
pub use upgrade::{UpgradeError, upgrade};
pub use wire::WireError;
#[cfg(test)]
mod tests;
