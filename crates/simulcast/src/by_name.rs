//! Operations by name, arrays whose element type is known when they run, and programs: the feature `program`.

mod apply;
mod composite;
mod dyn_array;
mod formula;
pub mod gradient;
pub mod ops;
pub mod program;
mod slope;
pub mod types;

pub use apply::Apply;
pub use composite::{compose, dynamic};
pub use dyn_array::{AnyArray, AnyView, AnyViewMut};
pub use gradient::vjp;
/// The crate of `f16` and `bf16`.
pub use half;
pub use program::{JointProgram, Program, ProgramError, ProgramErrorKind, TypedProgram, eval};
pub use simulcast_kernels::op::{Op, UnknownOp};
pub use types::IntoArrayError;
