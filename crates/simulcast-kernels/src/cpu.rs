//! The processor: instruction-set levels, caches, non-temporal stores, prefetch and aligned buffers.

pub mod aligned_buf;
pub mod cache;
pub mod level;
pub mod nontemporal;
pub mod prefetch;

/// The rows that are joined at a time: with more of them, lines that are a power of two apart would push each
/// other out of the first-level cache.
pub const EIGHT: usize = 8;
