//! The calls on arrays whose element types are known at compile time.

pub mod copy;
pub mod sum_to;
pub mod view;
pub mod zip;
