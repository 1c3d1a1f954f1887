//! Every threshold of the engine: what it decides, and what it was measured on.
//!
//! A number that trades one path for another stands here and nowhere else (`cargo xtask lint` looks). Each names its unit,
//! the loop that it cuts, and the measurement: case of the benchmark, machine, date, figures on both sides. If there was
//! none, the reason of the choice is given, and "not measured".
//!
//! | machine | what it is |
//! |---|---|
//! | Zen 3 | AMD EPYC, family 25 model 1: AVX2, 2 cores, 32 KiB L1d, 512 KiB L2, 32 MiB L3 |
//! | Zen 4 | AMD EPYC, family 25 model 17: AVX-512, 2 cores, 32 KiB L1d, 1 MiB L2, 32 MiB L3 |
//! | Zen | one of these two: which was not noted |
//! | Xeon | Intel Xeon (Sapphire Rapids): AVX-512, 16 cores |
//!
//! The machines are shared: memory speed changes by up to 2 within minutes, so figures compare runs in turns in one process.

// ── The processor ──────────────────────────────────────────────────────────────────────────────────────────────────────

/// The bytes of a cache line, on every processor that the engine has loops for.
pub const CACHE_LINE_BYTES: usize = 64;

/// The bytes of a vector of AVX2.
pub const VECTOR_BYTES: usize = 32;

/// The last-level cache is taken for no larger than this: it cuts the choice of non-temporal stores. Not measured on both
/// sides: the machines have 32 MiB or more, and other processes use a part of a larger one. With debug assertions it is
/// smaller, so that tests reach non-temporal stores with less data.
pub const LAST_LEVEL_CACHE_BYTES_MAX: usize =
    if cfg!(debug_assertions) { 8 << 20 } else { 32 << 20 };

// ── Strategy ───────────────────────────────────────────────────────────────────────────────────────────────────────────

/// Results of at most this many elements are computed without a loop nest. Not measured on both sides: the nest takes about
/// as long as 64 additions of f32 at AVX2.
pub const TINY_ELEMENTS: usize = 64;

/// The arrays of such a call, at most, where their number is not known to the compiler: with more, it has a nest. Not measured.
pub const TINY_ARRAYS: usize = 6;

/// An innermost loop shorter than this is joined with the loops around it, by packing. Not measured on both sides: a call of
/// an inner loop takes as long as some 50 elements. `bn_nhwc` and `rgb` (rows of 64 and of 3) are the cases.
pub const SHORT_LOOP_ELEMENTS: usize = 128;

/// The same with non-temporal stores, in bytes of the widest element: each run then begins and ends at cache lines, which
/// takes longer than a few lines do. Not measured on both sides.
pub const NONTEMPORAL_ROW_BYTES: usize = 2048;

/// Rows of at least this many bytes are not joined if their packed operand would be packed anew for every tile: each tile
/// would then wait for its packed bytes to be stored and loaded back. Not measured on both sides.
pub const ROW_WITHOUT_PACKING_BYTES: usize = 256;

/// Where either of the two loops of a transposed operand is shorter than this, it makes no blocks. Not measured on both sides.
pub const TRANSPOSED_LOOP_MIN: usize = 8;

// ── Non-temporal stores ────────────────────────────────────────────────────────────────────────────────────────────────

/// Results of fewer bytes are stored ordinarily, however small the cache is: it cuts the decision of `exec::strategy`. Not
/// measured on both sides: an eighth of the largest cache is found again by the next call on every machine.
pub const NONTEMPORAL_RESULT_BYTES: usize = LAST_LEVEL_CACHE_BYTES_MAX / 8;

/// The bytes of results that [`store_computed`](crate::cpu::nontemporal::store_computed) holds in registers at a time: half
/// of the vector registers of AVX2. Loops over fewer elements are unrolled before they are vectorised. `fma4` in a program of
/// its own, 3 x 128 MB f32, Zen, 2026-11-15: from registers 8.0 ms, through a tile 9.0, ordinary stores 10.8.
pub const NONTEMPORAL_BLOCK_BYTES: usize = 2 * STORE_ROW_BYTES;

/// The bytes that one round of non-temporal stores writes, and a row of a strip of a transposed result: two cache lines.
/// 4096 x 4096 f32, transposed, Zen 4, 2026-11-16: rows of 512 bytes through a buffer reach 0.73 to 0.94 of the floor, rows of
/// 128 bytes from registers 0.88 to 0.97.
pub const STORE_ROW_BYTES: usize = 2 * CACHE_LINE_BYTES;

/// The bytes of results that are computed into a tile before they are moved with non-temporal stores. Not measured on both
/// sides: it leaves most of the L1 cache to operands.
pub const NONTEMPORAL_TILE_BYTES: usize = 1024;

/// Runs of fewer bytes are not split so that their stores begin at vectors. Programs of one operation on rows within a cache,
/// Zen, 2026-11-16: 15 to 20 % less time with the split; the bound itself is not measured.
pub const ALIGNED_RUN_BYTES: usize = 1024;

// ── Prefetch ───────────────────────────────────────────────────────────────────────────────────────────────────────────

/// How far ahead of a sequential read [`prefetch_ahead`](crate::cpu::prefetch::prefetch_ahead) prefetches.
/// `(x - m) * s * g + b` with one operand from memory, Zen, 2026-11-15: 6.4 ms without, 4.4 with 16 KiB into L2; nearer, every
/// second line, and into L1 were all slower. Xeon, 2026-11-18: `row_add` takes a fifth less time, `bool_and` a quarter.
pub const PREFETCH_DISTANCE_BYTES: usize = 16 << 10;

/// Reductions of fewer bytes do not prefetch: the lines beyond a task's range belong to another thread, and fetching them
/// out of its L2 cache costs more than it saves. Xeon, 2026-11-18: sums along rows of 64 MB take a quarter less time with
/// prefetch; the bound itself is not measured.
pub const REDUCE_PREFETCH_MIN_BYTES: usize = 4 << 20;

// ── Packing and transposition ──────────────────────────────────────────────────────────────────────────────────────────

/// The bytes of a column that one pass of [`pack`](crate::pack::pack) transposes before it moves to the next columns: two
/// cache lines, so that the page of a column is still in the TLB. `mat_T` and `xT_row`, Zen, 2026-11-15: with 32-byte loads
/// and this order, 63 -> 75 % and 46 -> 72 % of the floor.
pub const TRANSPOSE_COLUMN_BYTES: usize = 2 * CACHE_LINE_BYTES;

// ── Tiles ──────────────────────────────────────────────────────────────────────────────────────────────────────────────

/// The bytes of one operand's part of a tile: with the other operands and the result it stays in a first-level cache of
/// 32 KiB. Tiles of 1 KiB, Zen, 2026-11-15: slower, by the calls of the inner loop.
pub const TILE_BYTES: usize = 4096;

/// The bytes of a tile that runs backwards: the sooner results are written, the less memory waits. `back_row`, Zen 3,
/// 2026-11-18: 1024 bytes reach 87 % of the floor, 512 reach 80 %.
pub const BACKWARD_TILE_BYTES: usize = 1024;

/// An operand that is packed once for a whole round of a stretch takes at most this much: the second-level cache has room
/// for several. Not measured on both sides.
pub const PACKED_ROUND_BYTES: usize = 32768;

/// The copies in a block of a repeated element: long enough for vector loops, short enough to be filled for each row. At
/// least as many as the results that [`store_computed`](crate::cpu::nontemporal::store_computed) holds at
/// a time: 256 bytes. Not measured on both sides.
pub const REPEATED_BLOCK_ELEMENTS: usize = 256;

/// The cache lines of scratch memory on the stack, 12 KiB: the tiles of three operands. More is allocated. Not measured on
/// both sides: an allocation takes some 20 ns, and a stack of a thread has 2 MiB.
pub const SCRATCH_IN_PLACE_LINES: usize = 3 * TILE_BYTES / CACHE_LINE_BYTES;

// ── Blocks of transposed operands ──────────────────────────────────────────────────────────────────────────────────────

/// The bytes that are read in a row from a transposed operand: eight cache lines. Not measured on both sides.
pub const BLOCK_READ_BYTES: usize = 512;

/// The bytes of the widest packed operand that a row of a block has, where a strip is not one run: columns of an operand whose pitch is a
/// power of two share a few sets of a cache, so the fewer the better, but every row costs a call. Raw loops, rows of 16 KB,
/// Zen, 2026-11-15: 32 columns by 128 rows reach 0.87 to 0.91 of the floor, 128 by 128 reach 0.70; in the engine, where a row
/// costs some 20 ns, 128 columns are ahead.
pub const BLOCK_WRITTEN_BYTES: usize = 512;

/// The fewest and the most columns of such a block, for elements of any size: a cache line of bytes at least. Not measured
/// on both sides but at 128, see [`BLOCK_WRITTEN_BYTES`].
pub const BLOCK_COLUMNS: std::ops::RangeInclusive<usize> = 64..=128;

/// The fewest rows of a block, and of a strip, for wide elements: fewer would be a call for each vector. Not measured.
pub const BLOCK_ROWS_MIN: usize = 32;
/// See [`BLOCK_ROWS_MIN`].
pub const STRIP_ROWS_MIN: usize = 16;

/// The bytes of a strip's side: two cache lines. Transposing and storing alternate, and are better short: see
/// [`STORE_ROW_BYTES`].
pub const STRIP_BYTES: usize = STORE_ROW_BYTES;

/// Fewer columns than this at the end of a row are written with those before them. Not measured on both sides.
pub const BLOCK_COLUMNS_MIN: usize = 32;

/// Rows of a band, after which blocks move to the right, so that the pages that are written stay within the TLB. 4096 x 4096
/// f32, transposed, 2026-11-18: 256 rows are 8 to 10 % faster on Zen 4 and 0 to 8 % slower on Xeon; 512 rows 4 % and -2 %.
pub const BAND_ROWS: usize = 1024;

// ── Threads ────────────────────────────────────────────────────────────────────────────────────────────────────────────

/// The fewest elements of a part: calls of two parts, twice as many, run on several threads, whatever is done to an element.
/// Not measured on both sides: waking a thread takes as long as adding some 100,000 numbers.
pub const PART_ELEMENTS: usize = 1 << 16;

/// Parts for each thread: many, so that a thread that is slower than the others, or is descheduled, delays none of them. Not
/// measured on both sides.
pub const PARTS_PER_THREAD: usize = 16;

/// Pieces of the innermost loop begin at whole multiples of this many elements from a cache line, where they have twice as
/// many: a line of the smallest elements. Not measured on both sides.
pub const PART_ROW_GRAIN: usize = 64;

/// Pieces of any other loop begin at whole multiples of this many steps, where they have as many: whole blocks of a
/// transposed operand, see [`BLOCK_ROWS_MIN`]. Not measured on both sides.
pub const PART_GRAIN: usize = 32;

/// Operations of one part, at most, where a call can be interrupted between parts: those of the slowest functions (some
/// 200 ns each, complex powers) take 50 ms, and a part of additions still takes 100 times as long as to begin one.
pub const UNINTERRUPTED_OPERATIONS: usize = 1 << 18;

/// Operations between two questions whether to stop, within a part: of programs and reductions, whose operations may be any.
/// Those of the slowest functions take 3 ms, and a question takes as long as an addition of some ten numbers.
pub const UNASKED_OPERATIONS: usize = 1 << 14;

/// The elements of such a part, at least: several tiles of a program, so that long expressions run as they do otherwise.
pub const UNINTERRUPTED_ELEMENTS: usize = 1 << 13;

/// The elements of a block along a loop whose operand is read again: with what is beside them, they stay in a cache of one
/// thread; four times as many do not. Not measured on both sides.
pub const REREAD_BLOCK_ELEMENTS: usize = 1 << 16;

/// Operands of at most this many elements stay in a cache however often they are read again, and make no blocks. Not
/// measured on both sides.
pub const REREAD_OPERAND_ELEMENTS: usize = 4 * REREAD_BLOCK_ELEMENTS;

/// The fewest results of such a block in a row. Not measured on both sides.
pub const REREAD_ROW_ELEMENTS: usize = 1024;

/// The columns of a thread's band of a transposed operand, and the fewest, where there would be too few bands. Ten shapes
/// tried on `xT_row`, Zen, 2026-11-16: most were alike once bands begin at cache lines.
pub const BAND_COLUMNS: usize = 512;
/// See [`BAND_COLUMNS`].
pub const BAND_COLUMNS_MIN: usize = 128;

/// The fewest rows of a band, where there would be too few bands. Not measured.
pub const BAND_ROWS_MIN: usize = 128;

/// There are too few bands if even this many times as many are fewer parts than there should be. Not measured on both sides.
pub const BANDS_TOO_FEW: usize = 4;

// ── Reductions ─────────────────────────────────────────────────────────────────────────────────────────────────────────

/// The rows that are joined in one pass: with more of them, lines a power of two apart would evict each other from an L1
/// cache of 8 ways. (4096, 4096) f32 over axis 0, Zen, 2026-11-16: one row a pass 5.4 ms, eight 2.0.
pub const ROWS_PER_PASS: usize = 8;

// ── Outputs ────────────────────────────────────────────────────────────────────────────────────────────────────────────

/// New outputs of at least this many bytes ask for huge pages (`madvise`): a first touch of each 4 KiB page takes some
/// 110 ns. A chain of five steps, 64 MB f32, Zen, 2026-11-16: 8.2 ms in 4 KiB pages, 6.0 in huge ones; the bound itself, two
/// huge pages, is not measured.
pub const HUGE_PAGES_MIN_BYTES: usize = 4 << 20;

// ── Loops of operations, and programs ──────────────────────────────────────────────────────────────────────────────────

/// Elements of a chunk of the vectorised loop of light operations (`ops::loops::chunked`): a repeated operand is a block of
/// as many. Zen 4, 2026-11-18, program-1, a loop a pattern of repeated operands -> chunks: `med_row` 22.6 -> 22.7 us, `med_col`
/// 22.3 -> 23.7 us, f32 `a + b` of 2048 299 -> 302 ns, `a + 2` of 2048 237 -> 285 ns. Other sizes are not measured.
pub const CHUNK_ELEMENTS: usize = 64;

/// Elements of the chunks that make the end of a run: the last one overlaps the one before it by less than this. `med_row`, whose
/// rows of 1024 begin between two vectors, Zen 4, 2026-11-20, program-1: 25.8 us if the last chunk overlaps by up to 64, 24.7 so.
pub const CHUNK_END_ELEMENTS: usize = 16;

/// The most bytes of a block of a chain: half of the vector registers of AVX2, an eighth of those of AVX-512. Not measured on
/// both sides.
pub const CHAIN_BLOCK_BYTES: usize = 256;

/// Blocks of a chain's values, and of its leaves and constants, at most: 2 * 24 blocks of 256 bytes are 12 KiB of a first-level
/// cache. Not measured: longer chains go step by step.
pub const CHAIN_BLOCKS: usize = 24;

/// Elements of a tile of long operations (`ops::loops::tiled`), and of conversions through a hub. Not measured: the compiler unrolls
/// a loop over fewer to its end, and reads its constants again and again.
pub const TILE_ELEMENTS: usize = 256;

/// Results that are narrower than their operands are made so many at a time: a vector of AVX2 of the smallest. The measurement is
/// beside the loop (`ops::ElementOp::tile`).
pub const NARROW_RESULTS: usize = 32;

/// Bytes of results of a program that are made at a time, if its last kernel has non-temporal stores. Not measured: the fewer, the
/// sooner memory has something to write, and the more often all is set up.
pub const NONTEMPORAL_PIECE_BYTES: usize = 4096;

/// Loops of a program from which on memory is prefetched beside them, whatever the processor. Not measured.
pub const PREFETCH_LOOPS: usize = 4;

/// Bytes of all tile registers of a program: half of a first-level cache of 32 KiB, the rest of which its leaves use. Not measured.
pub const REGISTER_BYTES: usize = 16384;

/// The fewest and the most elements of a tile register. Not measured.
pub const REGISTER_ELEMENTS: std::ops::RangeInclusive<usize> = 256..=4096;
/// The elements of a tile register are a multiple of this: a cache line of the smallest. Not measured.
pub const REGISTER_STEP_ELEMENTS: usize = 64;

/// Elements of a strided run of a program that are gathered, computed and scattered at a time. Not measured.
pub const STRIDED_PIECE_ELEMENTS: usize = 256;

// ── Hoisting ───────────────────────────────────────────────────────────────────────────────────────────────────────────

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

/// A sub-expression of fewer light steps than this is not hoisted. Machine and date as above. Case: rows of float32 and
/// a matrix of (256, 1024): two steps, `x + (r - s) * s`, 32 us hoisted and 64 not. One step, `x + (r - s)`, takes 48 us where
/// `x + r` takes 34, but hides behind memory where arrays are large.
pub const HOIST_LEAST_STEPS: u64 = 2;

/// Bytes that hoisted values may take however small the operands and the result are; otherwise no more than those take. It bounds
/// memory, not time: in `sum(exp(a[:, None] + b) * c[:, None, None])` a hoisted value is larger than all that is given.
pub const HOIST_MOST_BYTES: u64 = 64 << 20;

/// Stages of more steps are left as they are: choosing takes time quadratic in the steps at worst, 10 ms at this number.
pub const HOIST_STEPS_MAX: usize = 4096;

/// Runs of axes that the choice tells apart, the size of an array: stages of more are left as they are.
pub const HOIST_AXES_MAX: usize = 8;

/// The choices that a program keeps with their code; the oldest gives way to the next.
pub const HOIST_CHOICES_KEPT: usize = 8;

/// Steps of a chain that the register machine makes with ordinary stores too, unless they are one fused loop. Zen 4, 2026-11-18,
/// program-1, two loops over a tile -> a chain: f32 `(a - b) / c` of (1000, 1000) 178 -> 148 us, `exp(a - b)` of (64, 1024) 18.2 ->
/// 14.3 us, `where(a > b, a, b)` 12.3 -> 10.5 us; a fused loop takes 105, 13.6 and 7.4 us. Longer chains are not measured.
pub const CACHED_CHAIN_STEPS: usize = 2;

// ── Loops of reductions ────────────────────────────────────────────────────────────────────────────────────────────────

/// Rows of fewer elements are joined one element after the other, and longer ones in at least as many lanes. Not measured.
pub const REDUCE_SHORT_ELEMENTS: usize = 8;

/// The bytes of the lanes of a long row, and of the columns that are joined in registers: four vectors of AVX2, as many
/// as an addition of floats takes cycles. Not measured.
pub const REDUCE_LANE_BYTES: usize = 128;

/// The elements of a leaf of a long row: its lanes hold 64 elements of four bytes each, 128 of eight, so that the error of a
/// sum stays that of a pairwise sum plus as many additions. Rows of more do not meet a shared row. Not measured.
pub const REDUCE_LEAF_ELEMENTS: usize = 2048;

/// The rows of few elements whose lanes are joined at once: four vectors of AVX2, of `f32`. Not measured on both sides.
pub const REDUCE_ROWS_AT_ONCE: usize = 32;

/// The values that are divided at a time, where they are cast afterwards: 1 KiB of the widest type, on the stack. Not
/// measured on both sides.
pub const REDUCE_QUOTIENTS: usize = 64;

/// How far ahead rows are prefetched that are joined eight at a time, in bytes and at most in rows. Not measured.
pub const REDUCE_PREFETCH_BYTES: usize = 32 << 10;
/// See [`REDUCE_PREFETCH_BYTES`].
pub const REDUCE_PREFETCH_ROWS: usize = 32;

/// The elements of a block of rows that is computed into a buffer and then joined: 64 KiB of `f32`, of a second-level
/// cache. Rows of as many elements at most are reduced whole. Not measured.
pub const REDUCE_BLOCK_ELEMENTS: usize = 16384;

/// The bytes of rows that are reduced whole, together. Not measured.
pub const REDUCE_ROWS_BYTES: usize = 128 << 10;

/// The bytes of the columns of a block: with eight rows of them, values stay in a first-level cache. Not
/// measured.
pub const REDUCE_COLUMN_BYTES: usize = 16384;

/// Rows of columns of at most half as many elements are taken side by side as one row: loops over fewer columns are
/// shorter than the call of one. Not measured.
pub const REDUCE_NARROW_ELEMENTS: usize = 512;

/// The bytes of a block of such rows: the values side by side are to be few beside it. Not measured.
pub const REDUCE_NARROW_BLOCK_BYTES: usize = 256 << 10;

/// The rows of a run, which are joined one after the other: so a run costs one row of the pairwise tree. Not
/// measured.
pub const REDUCE_RUN_ROWS: usize = 128;

/// The parts that there are at least, however few the results and the threads are: enough for 64 threads. Not
/// measured.
pub const REDUCE_PARTS: usize = 64;

/// Fewer rows, or rows of fewer elements, are computed into a buffer before they are reduced. Not measured.
pub const REDUCE_IN_PLACE_MIN: usize = 8;

/// Rows that are not contiguous are reduced piece by piece where a contiguous piece has as many elements. Not measured.
pub const REDUCE_PIECE_ELEMENTS: usize = 64;

/// With fewer rows of either operand, transposing costs more than a shared row saves. Not measured.
pub const REDUCE_SHARED_ROWS_MIN: usize = 8;

/// The bytes of the transposed tile that meets a shared row: half of a first-level cache. Not measured.
pub const REDUCE_SHARED_TILE_BYTES: usize = 16384;

/// The shared rows that one transposed tile meets. Not measured.
pub const REDUCE_SHARED_ROWS: usize = 256;

// ── Programs of several results ────────────────────────────────────────────────────────────────────────────────────────

/// Elements from which on a value that is repeated to that size is computed before the pass that reads it. Not measured.
pub const JOINT_HOIST_ELEMENTS: usize = 4096;

/// How many times it has to be repeated for that. Not measured.
pub const JOINT_HOIST_RATIO: usize = 8;

/// Parts of a pass, at most: the sums of each are kept apart and added in pairs, so that the result does not depend on
/// threads. Not measured.
pub const JOINT_PARTS: usize = 64;

/// Bytes of the sums of all parts together. Not measured.
pub const JOINT_SUMS_BYTES: usize = 16 << 20;

/// Elements of the innermost loop below which rows are taken together. Not measured.
pub const JOINT_ROW_ELEMENTS: usize = 64;

/// Rows whose sums are kept in the type of the elements, before they are added to wider ones: at most this many
/// roundings in a sum. Not measured.
pub const JOINT_GROUP_ROWS: usize = 64;

/// Schedules that are kept with a program, for shapes that came before. Not measured.
pub const JOINT_SCHEDULES_KEPT: usize = 16;

// ── Products of matrices ───────────────────────────────────────────────────────────────────────────────────────────────

/// Up to this many rows of A, columns of B that are contiguous are read where they are, as dot products: it cuts the choice of
/// the loops of a product. 2112 x 128, f32, Zen 4, AVX-512, 2026-11-19, without packing and with it: 64 rows 330 us and 466; the
/// crate `gemm` 378, `matrixmultiply` 590 (AVX2). 8 rows: 39 us and 176; `gemm` 121, `matrixmultiply` 252.
pub const PRODUCT_COLUMNS_ROWS_MAX: usize = 128;

/// Up to this many columns of B that are contiguous are read where they are, whatever the rows of A: A is read once.
/// 1024 x 2048 with them, f32, Zen 4, AVX-512, 2026-11-19, without packing and with it: 1 column 115 us and 631, 4 columns 185 and
/// 629.
pub const PRODUCT_COLUMNS_MAX: usize = 4;

/// Up to this many rows of A, rows of B that are contiguous are read where they are. 2112 x 128, as above: 16 rows 74 us and 127
/// with packing (`gemm` 79, `matrixmultiply` 176), 64 rows 298 us and 362; 768 x 768, 256 rows: 2.96 ms and 2.92.
pub const PRODUCT_ROWS_MAX: usize = 128;

/// Rows of A that are few: a B of more than [`PRODUCT_CACHED_BYTES`] is then read in blocks of
/// [`PRODUCT_ROWS_AT_A_TIME`] rows. With more of them, additions take longer than memory.
pub const PRODUCT_FEW_ROWS: usize = 8;

/// The rows of B in a block where it comes from memory. 4096 x 4096, 4 rows, as above: 9.3 ms with 8, 36 with 64. Where B is
/// cached it is the other way: 768 x 3072, 4 rows: 256 us with 8, 182 with 512.
pub const PRODUCT_ROWS_AT_A_TIME: usize = 8;

/// A larger B is taken to come from memory: half of the last-level cache that is counted on.
pub const PRODUCT_CACHED_BYTES: usize = 16 << 20;

/// The rows of B in a block otherwise, and of a packed panel. 2112 x 128 and 768 x 768: within 10% of 256 and of 768.
pub const PRODUCT_PANEL_ROWS: usize = 512;

/// The rows of A whose last columns, fewer than a vector has, are computed beside the result at a time: at most 32 KB.
pub const PRODUCT_NARROW_ROWS: usize = 512;

/// How many rows ahead the rows of B are prefetched where they lie: a strip of columns is read against the order of memory. 24 rows
/// with the 52 matrices of a transformer, 43 MB that come from memory, as above: 6.6 ms with it, 8.5 without.
pub const PRODUCT_PREFETCH_ROWS: usize = 16;

/// Columns of B that meet all rows of A before the next ones do take about this: most of the L1 cache, without the rows. Not
/// measured on both sides.
pub const PRODUCT_COLUMNS_BYTES: usize = 24 << 10;

/// A thread's part of a product has at least so many multiplications: some 5 us. Not measured on both sides: waking a helper
/// that polls takes about 2 us.
pub const PRODUCT_PART_OPERATIONS: usize = 1 << 19;

/// A part of a product that can be interrupted has about so many multiplications: some 50 ms. Not measured on both sides.
pub const PRODUCT_UNINTERRUPTED_OPERATIONS: usize = 1 << 31;
