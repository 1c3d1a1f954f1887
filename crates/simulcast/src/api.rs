//! The calls on arrays whose element types are known at compile time.

pub(crate) mod copy;
pub(crate) mod sum_to;
pub(crate) mod view;
pub(crate) mod zip;
