//! Execution: how a nest of loops runs on this machine.

pub(crate) mod autotune;
pub(crate) mod drive;
pub(crate) mod inner_loop;
pub(crate) mod launch;
pub(crate) mod threads;
