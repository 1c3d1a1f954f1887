//! What is measured: cases, the engines that do them, and the clock.
//!
//! A library only so that the program beside it, which decides who is measured when and what is shown, is linked in
//! seconds when it changes: the engines take minutes to compile.

#![allow(missing_docs, reason = "parts of one program, for nothing else to use")]

#[cfg(feature = "candle")]
pub mod candle;
pub mod case;
pub mod engines;
pub mod measure;
#[cfg(feature = "onnx")]
pub mod model;
pub mod names;
pub mod operands;
pub mod program;
pub mod rotation;
pub mod worker;
