//! Functions of more than one operation: activations, bounds, operators of any number of operands, ONNX's among them.
//!
//! [`compose`] adds their steps to a program, which fuses them with what is around; [`dynamic`] runs them on arrays.

pub mod compose;
pub mod dynamic;
