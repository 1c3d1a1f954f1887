//! Programs: expressions over broadcast arrays, computed in one pass over memory.

mod error;
mod expr;
mod functions;
mod graph;
mod parse;
mod parse_error;
mod show;
mod token;

pub use error::{Argument, ProgramError, ProgramErrorKind};
pub use expr::{Expr, ExprId, ExprKind, ExprNode};
pub use graph::{AxisPattern, Fold};
pub use parse_error::{ParseError, ParseErrorKind};
