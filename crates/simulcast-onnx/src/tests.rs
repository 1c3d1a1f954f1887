//! Tests on models that are built here, and on what other systems said of theirs.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod annotates;
mod build;
mod checks;
mod hostile;
mod real;
mod recorded;
mod refused;
mod rules;
#[cfg(feature = "run")]
mod runs;
mod table;
mod tensors;
mod upgrades;
