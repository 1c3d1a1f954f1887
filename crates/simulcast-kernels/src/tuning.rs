//! Every threshold of the engine: what it cuts, and what it was measured on.
//!
//! A number that trades one path for another stands here and nowhere else (`cargo xtask lint` looks). Each says its unit
//! in its name, the loop that it cuts, and the measurement: case of the benchmark, machine, date, figures on both sides.
//! Where none was made, the reason of the choice is given instead. Machines: *Zen 3* is an AMD EPYC of family 25, model 1
//! (AVX2, 32 MiB of last-level cache, 2 cores); *Zen 4* is one of model 17 (AVX-512); *Xeon* is an Intel Sapphire Rapids.

/// The bytes of a cache line, on every processor that the engine has loops for.
pub const CACHE_LINE_BYTES: usize = 64;

/// The bytes of a vector of AVX2.
pub const VECTOR_BYTES: usize = 32;

/// # Strategy
///
/// Results of at most this many elements are computed without a loop nest. Not measured on both sides: the nest takes about
/// as long as 64 additions of f32 at AVX2.
pub const TINY_ELEMENTS: usize = 64;

/// An innermost loop shorter than this is joined with the loops around it, by packing. Rows of 3 channels (`bn_nhwc`,
/// `rgb`) are the case; the call of an inner loop is worth some 50 elements.
pub const SHORT_LOOP_ELEMENTS: usize = 128;

/// The same with non-temporal stores, in bytes of the widest element: a run begins and ends at cache lines then, which
/// takes longer than a few lines do.
pub const NONTEMPORAL_ROW_BYTES: usize = 2048;

/// Rows of at least this many bytes are not joined, where packing would be done anew for every tile: reading a packed
/// tile back right after it was written is what the loop would wait for.
pub const ROW_WITHOUT_PACKING_BYTES: usize = 256;

/// Loops shorter than this make no blocks of a transposed operand.
pub const BAND_TILE_COLUMNS_MIN: usize = 8;

/// # Tiles
///
/// The bytes of one operand's part of a tile: with the other operands and the result it stays in a first-level cache of
/// 32 KiB.
pub const TILE_BYTES: usize = 4096;

/// The bytes of a tile that runs backwards: the sooner results are written, the less memory waits. `back_row`, Zen 3, 2026-09:
/// 1024 bytes reach 87 % of the floor, 512 reach 80 %.
pub const BACKWARD_TILE_BYTES: usize = 1024;

/// An operand that is packed once for a whole round of a stretch takes at most this much: the second-level cache has room
/// for several.
pub const PACKED_ROUND_BYTES: usize = 32768;

/// The copies in a block of a repeated element: long enough for vector loops, short enough to be filled for each row. At
/// least as many as the results that [`nontemporal::results`](crate::cpu::nontemporal::results) makes at a time: 256 bytes.
pub const REPEATED_BLOCK_ELEMENTS: usize = 256;

/// Runs of fewer bytes are not cut where vectors begin.
pub const ALIGNED_RUN_BYTES: usize = 1024;

/// The bytes of results that are computed into a tile before they are moved with non-temporal stores.
pub const NONTEMPORAL_TILE_BYTES: usize = 1024;

/// # Non-temporal stores
///
/// The last-level cache is taken for no larger than this: of a larger one, others use the rest. With debug assertions it is
/// smaller, so that tests reach the stores with less.
pub const LAST_LEVEL_CACHE_BYTES_MAX: usize =
    if cfg!(debug_assertions) { 8 << 20 } else { 32 << 20 };

/// Results of fewer bytes are stored ordinarily, however small the cache is.
pub const NONTEMPORAL_RESULT_BYTES: usize = LAST_LEVEL_CACHE_BYTES_MAX / 8;

/// # Blocks of transposed operands
///
/// The bytes that are read in a row from a transposed operand: eight cache lines.
pub const BLOCK_READ_BYTES: usize = 512;

/// The bytes of results that are written in a row, where a strip is not one run: columns of an operand whose pitch is a
/// power of two share a few sets of a cache, so the fewer the better, but every row costs.
pub const BLOCK_WRITTEN_BYTES: usize = 512;

/// The bytes of a strip's side: two cache lines. Transposing and storing take turns, and are better short.
pub const STRIP_BYTES: usize = 2 * CACHE_LINE_BYTES;

/// Fewer columns than this at the end of a row are written with those before them.
pub const BLOCK_COLUMNS_MIN: usize = 32;

/// Rows of a band, after which blocks move to the right, so that the pages that are written stay within the TLB. `xT_row`,
/// 4096 x 4096 f32: 256 rows are 8 to 10 % faster on Zen 4 and 0 to 8 % slower on Xeon (2026-10).
pub const BAND_ROWS: usize = 1024;

/// # Threads
///
/// A part of fewer elements is not worth another thread. Not measured on both sides: waking a thread takes as long as
/// adding some 100,000 numbers.
pub const PART_ELEMENTS: usize = 1 << 16;

/// Parts for each thread: many, so that a thread that is slower than the others, or is descheduled, delays none of them.
pub const PARTS_PER_THREAD: usize = 16;

/// The elements of a block along a loop whose operand is read again: with what is beside them, they stay in a cache of one
/// thread; four times as many do not.
pub const REREAD_BLOCK_ELEMENTS: usize = 1 << 16;

/// The fewest results of such a block in a row.
pub const REREAD_ROW_ELEMENTS: usize = 1024;

/// The columns of a thread's band of a transposed operand, and the fewest, where there would be too few bands.
pub const BAND_COLUMNS: usize = 512;
/// See [`BAND_COLUMNS`].
pub const BAND_COLUMNS_MIN: usize = 128;

/// The fewest rows of a band, where there would be too few bands.
pub const BAND_ROWS_MIN: usize = 128;

/// Elements of a chunk of the vectorised loop of light operations (`ops::loops::chunked`): a repeated operand is a block of
/// as many. Zen 4, 2026-11-18, program-1, a loop a pattern of repeated operands -> chunks: `med_row` 22.6 -> 22.7 us, `med_col`
/// 22.3 -> 23.7 us, f32 `a + b` of 2048 299 -> 302 ns, `a + 2` of 2048 237 -> 285 ns. Other sizes are not measured.
pub const CHUNK_ELEMENTS: usize = 64;

/// Blocks of a chain's values, and of its leaves and constants, at most: 2 * 24 blocks of 256 bytes are 12 KiB of a first-level
/// cache. Not measured: longer chains go step by step.
pub const CHAIN_BLOCKS: usize = 24;

/// Elements of a tile of long operations (`ops::loops::tiled`), and of conversions through a hub. Not measured: the compiler unrolls
/// a loop over fewer to its end, and reads its constants again and again.
pub const TILE_ELEMENTS: usize = 256;

/// Bytes of results of a program that are made at a time, if its last kernel has non-temporal stores. Not measured: the fewer, the
/// sooner memory has something to write, and the more often all is set up.
pub const NONTEMPORAL_PIECE_BYTES: usize = 4096;

/// The same for results that are made in the first-level cache and copied from there by non-temporal stores, and for a single
/// kernel that prefetches.
pub const CACHED_PIECE_BYTES: usize = 1024;

/// Loops of a program from which on memory is prefetched beside them, whatever the processor. Not measured.
pub const PREFETCH_LOOPS: usize = 4;

/// Bytes of all tile registers of a program: half of a first-level cache of 32 KiB, the rest of which its leaves use. Not measured.
pub const REGISTER_BYTES: usize = 16384;

/// The fewest and the most elements of a tile register. Not measured.
pub const REGISTER_ELEMENTS: std::ops::Range<usize> = 256..4096;

/// Elements of a strided run of a program that are gathered, computed and scattered at a time. Not measured.
pub const STRIDED_PIECE_ELEMENTS: usize = 256;

/// # Hoisting
///
/// Picoseconds that a byte of a light element-wise step takes. Loop: a step of an element-wise stage. Case: `x + (r - s)`
/// to `x + ((r - s) * s + r) * r`, (256, 1024) with rows, one thread, Zen 3, 2026-11-18: the first step of the row 78 ps an
/// element of float32, four of them 41 each (10 a byte); float64 200, and 101 each (13 a byte).
pub const HOIST_STEP_PS_PER_BYTE: u64 = 12;

/// Picoseconds that a byte of a function takes, such as `exp`. Loop, machine and date as above. Case: `x + exp(r)`, (256, 1024)
/// with a row: 200 ps an element of float32 (50 a byte), 660 of float64 (82 a byte); `sin` and `tanh` a third more, `**`
/// eight times as much: the cheapest counts.
pub const HOIST_FUNCTION_PS_PER_BYTE: u64 = 60;

/// Picoseconds that it takes to write a byte of a hoisted value to fresh memory, and to read it back. Machine and date as above.
/// Case: `x + exp(r)`, (4, 1000, 1000) with (1000, 1000) of float32: 1,209 us hoisted, 1,205 not, that is 190 a byte.
pub const HOIST_PASS_PS_PER_BYTE: u64 = 200;

/// Picoseconds that it takes to choose and set up a further stage and to allocate its result. Machine and date as above. Case:
/// `x + exp(r)`, (64, 64) with a row: float32, where `exp` counts 0.97 us, 1.92 us hoisted and 1.71 not; float64, where it counts
/// 1.94 us, 2.29 and 3.51.
pub const HOIST_STAGE_PS: u64 = 1_000_000;

/// A sub-expression that takes less than so many light steps is not hoisted. Machine and date as above. Case: rows of float32 and
/// a matrix of (256, 1024): two steps, `x + (r - s) * s`, 32 us hoisted and 64 not. One step, `x + (r - s)`, takes 48 us where
/// `x + r` takes 34, but hides behind memory where arrays are large.
pub const HOIST_LEAST_STEPS: u64 = 2;

/// Bytes that hoisted values may take however small the operands and the result are; otherwise no more than those take. It bounds
/// memory, not time: in `sum(exp(a[:, None] + b) * c[:, None, None])` a hoisted value is larger than all that is given.
pub const HOIST_MOST_BYTES: u64 = 64 << 20;

/// Stages of more steps are left as they are: choosing takes time quadratic in the steps at worst, 10 ms for so many.
pub const HOIST_STEPS_MAX: usize = 4096;

/// The choices that a program keeps with their code; the oldest gives way to the next.
pub const HOIST_CHOICES_KEPT: usize = 8;

/// Steps of a chain that the register machine makes with ordinary stores too, unless they are one fused loop. Zen 4, 2026-11-18,
/// program-1, two loops over a tile -> a chain: f32 `(a - b) / c` of (1000, 1000) 178 -> 148 us, `exp(a - b)` of (64, 1024) 18.2 ->
/// 14.3 us, `where(a > b, a, b)` 12.3 -> 10.5 us; a fused loop takes 105, 13.6 and 7.4 us. Longer chains are not measured.
pub const CACHED_CHAIN_STEPS: usize = 2;

/// # Reductions
///
/// Rows of fewer elements are joined one element after the other, and longer ones in at least as many lanes.
pub const REDUCE_SHORT_ELEMENTS: usize = 8;

/// The bytes of the lanes of a long row, and of the columns that are joined in registers: four vectors of AVX2, as many
/// as an addition of floats takes cycles.
pub const REDUCE_LANE_BYTES: usize = 128;

/// The elements of a leaf of a long row: its lanes hold 64 elements each, so that the error of a sum stays that of a
/// pairwise sum plus 64 additions. Rows of more do not meet a shared row.
pub const REDUCE_LEAF_ELEMENTS: usize = 2048;

/// How far ahead rows are prefetched that are joined eight at a time, in bytes and at most in rows.
pub const REDUCE_PREFETCH_BYTES: usize = 32 << 10;
/// See [`REDUCE_PREFETCH_BYTES`].
pub const REDUCE_PREFETCH_ROWS: usize = 32;

/// The elements of a block of rows that is computed into a buffer and then joined: 64 KiB of `f32`, of a second-level
/// cache. Rows of as many elements at most are reduced whole.
pub const REDUCE_BLOCK_ELEMENTS: usize = 16384;

/// The bytes of rows that are reduced whole, together.
pub const REDUCE_ROWS_BYTES: usize = 128 << 10;

/// The bytes of the columns of a block: with eight rows of them, values stay in a first-level cache.
pub const REDUCE_COLUMN_BYTES: usize = 16384;

/// Rows of columns of at most half as many elements are taken side by side as one row: loops over fewer columns are
/// shorter than the call of one.
pub const REDUCE_NARROW_ELEMENTS: usize = 512;

/// The bytes of a block of such rows: the values side by side are to be few beside it.
pub const REDUCE_NARROW_BLOCK_BYTES: usize = 256 << 10;

/// The rows of a run, which are joined one after the other: so a run costs one row of the pairwise tree.
pub const REDUCE_RUN_ROWS: usize = 128;

/// The parts that there are at least, however few the results and the threads are: enough for 64 threads.
pub const REDUCE_PARTS: usize = 64;

/// Fewer rows, or rows of fewer elements, are computed into a buffer before they are reduced.
pub const REDUCE_IN_PLACE_MIN: usize = 8;

/// Rows that are not contiguous are reduced piece by piece where a contiguous piece has as many elements.
pub const REDUCE_PIECE_ELEMENTS: usize = 64;

/// With fewer rows of either operand, transposing costs more than a shared row saves.
pub const REDUCE_SHARED_ROWS_MIN: usize = 8;

/// The bytes of the transposed tile that meets a shared row: half of a first-level cache.
pub const REDUCE_SHARED_TILE_BYTES: usize = 16384;

/// The shared rows that one transposed tile meets.
pub const REDUCE_SHARED_ROWS: usize = 256;
