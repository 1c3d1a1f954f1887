//! Arrays at the edge of the engine: operands, views made from parts, uninitialised outputs.

pub(crate) mod operand;
pub(crate) mod output;
pub(crate) mod raw_view;
