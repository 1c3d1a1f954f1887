//! Execution: how a nest of loops runs on this machine.
//!
//! ```text
//! launch      a Source (shape, strides, pointers) and the work ──▶ nest, strategy, parts
//! results     a new array, or the caller's
//! strategy    everything that is decided, once a call: a value with a table
//! contiguous, tiled, blocked, strided, tiny     the executors: they obey the strategy
//! emit        one run: ordinary or non-temporal stores (blocks store rows themselves, cut where lines begin)
//! scratch, repeated_block     memory of a part; blocks of copies of an element
//! cursor      pointers that move through loops
//! inner_loop  the waist: what is done to a run of elements
//! closure     the user's closures as inner loops: all that is compiled for each of them
//! parallelism how many parts a call has; `simulcast-threads` runs them
//! ```

pub(crate) mod blocked;
pub(crate) mod closure;
pub(crate) mod contiguous;
pub(crate) mod cursor;
pub(crate) mod emit;
pub(crate) mod inner_loop;
pub(crate) mod launch;
pub(crate) mod parallelism;
pub(crate) mod repeated_block;
pub(crate) mod results;
pub(crate) mod scratch;
pub(crate) mod strategy;
pub(crate) mod strided;
pub(crate) mod tiled;
pub(crate) mod tiny;
