//! Where elements lie: strides of each operand along the result, loop nests, and their partition. Arithmetic alone.

pub(crate) mod broadcast;
pub(crate) mod nest;
pub(crate) mod partition;
pub(crate) mod small_vec;
