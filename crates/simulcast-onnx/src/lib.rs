//! x
mod element;
mod error;
mod expr;
mod external;
mod infer;
mod load;
mod model;
mod structure;
mod tensor;
mod wire;
pub use element::ElementType;
pub use error::LoadError;
pub use external::ExternalError;
pub use infer::*;
pub use model::*;
pub use tensor::{Tensor, TensorError};
pub use wire::WireError;
