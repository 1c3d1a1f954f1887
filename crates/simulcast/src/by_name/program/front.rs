//! From text to an expression, and what errors say about it.

pub(super) mod axes;
pub(super) mod builtins;
pub(super) mod diagnostic;
pub(super) mod display;
pub(super) mod error;
pub(super) mod expr;
pub(super) mod matrix_product;
pub(super) mod parse;
pub(super) mod python_literals;
pub(super) mod shapes;
pub(super) mod syntax_error;
pub(super) mod token;
