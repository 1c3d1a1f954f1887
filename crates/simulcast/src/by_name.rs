//! Operations by name, arrays whose element type is known when they run, and programs: the feature `program`.

pub mod apply;
mod composite;
pub mod dyn_array;
mod formula;
pub mod gradient;
pub mod ops;
pub mod program;
mod slope;
pub mod types;

#[doc(inline)]
pub use apply::Apply;
pub use composite::{compose, dynamic};
#[doc(inline)]
pub use dyn_array::{AnyArray, AnyView, AnyViewMut};
#[doc(inline)]
pub use gradient::vjp;
#[doc(inline)]
pub use program::{JointProgram, Program, ProgramError, ProgramErrorKind, TypedProgram, eval};
pub use simulcast_kernels::op::{Op, UnknownOp};
#[doc(inline)]
pub use types::IntoArrayError;
