//! Numbers that were measured, or that bound what a kernel may take.

/// Kernels number elements with 31 bits.
pub(crate) const ELEMENTS_MAX: usize = (1 << 31) - (1 << 12);
/// The most loops that a kernel has; their numbers are arguments, of which there may be 4 KiB.
pub(crate) const LOOPS_MAX: usize = 8;
/// The widest load and store.
pub(crate) const VECTOR_BYTES: usize = 16;
/// What the squares of transposed operands may take of shared memory: a block has 48 KiB without asking for more.
pub(crate) const SHARED_BYTES_MAX: usize = 46 << 10;
/// The least elements along both sides of a square: below, half of its threads have nothing to do.
pub(crate) const SQUARE_LEAST: usize = 16;
/// Short rows are joined in results of so many elements on: the launches that repeat operands first take some
/// microseconds, in which 2 M elements are computed.
pub(crate) const JOINED_LEAST: usize = 1 << 21;
/// Rows of more elements are not joined: what is repeated along them would no longer be small beside a vector.
pub(crate) const ROW_MAX: usize = 64;
/// The most blocks along the second axis of a grid, by the driver.
pub(crate) const SLICES_MAX: usize = 65535;
/// The least steps of each thread of a reduction before its rows are cut into further slices.
pub(crate) const SLICE_STEPS_LEAST: usize = 8;
/// The blocks for each multiprocessor of a reduction across rows: 33 slices of 16 blocks on a GPU of 132. A sum of
/// (32768, 16384) `float16` over its rows is at 102% of a copy, and at 92% with 16 (H200).
pub(crate) const BLOCKS_ACROSS: usize = 4;
/// The same of a reduction along neighbouring elements, whose slices cost one value each: a sum of (32768, 16384)
/// `float32` is at 108% of a copy, and at 102% with 4 (H200).
pub(crate) const BLOCKS_ALONG: usize = 32;
/// A thread of a reduction along neighbouring elements reads eight vectors at a time where it has so many, or else four:
/// a sum of products of (16384, 16384) `float32` is at 110% of a copy, and at 106% with four (H200).
pub(crate) const LONG_STEPS: usize = 16;
/// What is written at once without reading it first: the sector of a cache line.
pub(crate) const SECTOR_BYTES: usize = 32;
/// The most elements that a row of a slanted square is moved by: what the square reads besides.
pub(crate) const SLANT_MAX: usize = 16;
/// How many plans a program keeps.
pub(crate) const PLANS_KEPT: usize = 64;
/// Steps of a reduction that a square of results has in shared memory at once.
pub(crate) const PAIRWISE_DEPTH: usize = 16;
/// So many of those are joined to a part of their own, where there are more: the error of a sum of `float32` grows with
/// the longest chain of additions.
pub(crate) const PAIRWISE_PART_SLABS: usize = 16;
/// The least results along both sides of a square that is computed so: in narrower ones most threads have nothing to do.
pub(crate) const PAIRWISE_LEAST: usize = 32;
/// The most steps of a program that is computed so: each stands in the kernel up to 64 times.
pub(crate) const PAIRWISE_STEPS_MAX: usize = 24;
/// Several reductions of the same elements are one launch from so many elements on: partial values take two launches more.
pub(crate) const JOINT_LEAST: usize = 1 << 18;
/// The blocks of such a launch for each multiprocessor.
pub(crate) const JOINT_BLOCKS: usize = 8;
/// The least steps of each of its threads before rows are cut into further slices.
pub(crate) const JOINT_STEPS_LEAST: usize = 4;
