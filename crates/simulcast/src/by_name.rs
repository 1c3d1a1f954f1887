//! Operations by name, arrays whose element type is known when they run, and programs: the feature `program`.

mod apply;
mod composite;
mod dyn_array;
mod formula;
pub mod gradient;
pub mod ops;
pub mod program;
mod types;

pub use apply::Apply;
pub use composite::{compose, dynamic};
pub use dyn_array::{AnyArray, AnyView, AnyViewMut};
pub use gradient::{Laying, vjp, vjp_by, vjp_clip, vjp_clip_by, vjp_prelu};
/// The crate of `f16` and `bf16`.
pub use half;
pub use program::{
    Argument, AxisPattern, Builder, Diagnostic, Expr, ExprId, ExprKind, ExprNode, Fold, Hoisting,
    Input, Node, ParseError, ParseErrorKind, Program, ProgramError, ProgramErrorKind,
    ProgramStrategy, Ready, Run, StageStrategy, row_axis,
};
pub use simulcast_kernels::op::{Op, UnknownOp};
pub use types::{
    Casting, Literal, Promotion, Signature, Type, TypeError, TypeErrorKind, can_cast, literal_as,
    literal_operand, promote_types, result_type, signature,
};
