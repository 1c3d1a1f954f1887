//! Thresholds of the team. The figures are those of `cargo run --release -p simulcast-threads --example latency`.

/// The most threads of a call: more than machines run; a slot for each takes 64 KiB.
pub const MAX_THREADS: usize = 1 << 10;

/// For how long a helper polls for the next call before it sleeps.
#[cfg(not(loom))]
pub(crate) const AWAKE_MICROSECONDS: u64 = 200;

/// How often a caller that waits for helpers asks whether it is interrupted.
#[cfg(not(loom))]
pub(crate) const ASK_MILLISECONDS: u64 = 10;

/// Polls of a helper between two looks at the clock, after each of which it yields.
pub(crate) const POLLS: usize = if cfg!(loom) { 1 } else { 64 };

/// Rounds over the slots in which a caller looks for awake helpers, while some are finishing their last job.
pub(crate) const HANDOUT_ROUNDS: usize = if cfg!(loom) { 2 } else { 64 };

/// Spins of a caller before it parks, while helpers finish their parts: some 40 to 160 µs, more than most parts take.
pub(crate) const CALLER_SPINS: usize = if cfg!(loom) { 1 } else { 4096 };
