//! From an expression to stages: a typed graph, its stages, and the instructions of each.

pub(super) mod builder;
pub(super) mod bytecode;
pub(super) mod chain;
pub(super) mod graph;
pub(super) mod hoist;
pub(super) mod lower;
pub(super) mod stages;
