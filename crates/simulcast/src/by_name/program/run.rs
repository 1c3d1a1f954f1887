//! Running stages on arrays.

pub(super) mod bind;
pub(super) mod chunked;
pub(super) mod hoist;
pub(super) mod interpreter;
pub(super) mod joint;
pub(super) mod reduction;
pub(super) mod run_map;
pub(super) mod strategy;
pub(super) mod strings;
