//! Non-temporal stores: results are written to memory without being read into the caches first.
//!
//! An ordinary store to a line that is in no cache first reads the line (read for ownership). If an output is too large to be
//! found in a cache afterwards, those reads are a third of the traffic of `a + b` and half of that of a copy. So large
//! outputs are computed a few cache lines at a time, in registers where the compiler can, and moved on with stores that do
//! not read. The engine's strategy says from which size (`exec::strategy`, by [`cache`](super::cache)).
//!
//! An ordinary store issued after non-temporal stores waits until the write-combining buffers have drained, and holds up
//! those that follow. So there are no spills between them: results are computed in registers and stored by one loop
//! ([`store_computed`]), and whole cache lines are stored at once, so that each fills its buffer ([`split_at_lines`]).
//!
//! Non-temporal stores are weakly ordered: a [`Fence`] must follow before another thread reads the results.
//!
//! Invariant of every call: source and destination are valid for that many bytes and do not overlap.

use std::ops::Range;
use std::ptr;

use super::aligned_buf::AlignedArray;
use super::level::Level;
#[cfg(target_arch = "x86_64")]
use crate::moves::store_avx2;
use crate::moves::store_nontemporal;
use crate::tuning::{CACHE_LINE_BYTES, NONTEMPORAL_BLOCK_BYTES, STORE_ROW_BYTES};

/// The elements of a run that lie in whole blocks of `block` elements, the first of which begins at a cache line; a block is
/// whole lines. Before and after them are the parts that share a line with neighbours. Empty, at the end, if no element of
/// the run begins at a line.
#[inline(always)]
pub fn split_at_lines<R>(run: *const R, len: usize, block: usize) -> Range<usize> {
    let head = run.align_offset(CACHE_LINE_BYTES).min(len);
    head..head + (len - head) / block * block
}

/// The length of the next chunk of about `about` elements: a remainder of up to a quarter of a chunk is joined with it.
#[inline(always)]
pub fn chunk_len(left: usize, about: usize) -> usize {
    if left <= about.saturating_add(about / 4) { left } else { about }
}

/// A block of results between the loop that computes them and the stores; the compiler keeps it in registers.
type Block = AlignedArray<NONTEMPORAL_BLOCK_BYTES>;

/// A loop whose results [`store_computed`] stores.
///
/// A trait and not a closure: a closure with two callers is not always inlined, and results of a function go through memory.
pub trait Compute<R> {
    /// Writes the results `from..from + count` to `to`, and nothing else: a whole block of them, or at
    /// the ends of a run fewer. Implementations are `#[inline(always)]`.
    ///
    /// # Safety
    ///
    /// The results are within those that `store_computed` was called for; `to` has room for them.
    unsafe fn compute(&mut self, to: *mut R, from: usize, count: usize);
}

/// Computes results and stores them non-temporally. A [`Fence`] must follow.
///
/// # Safety
///
/// `out` is valid for `len` results, plain data of at most [`CACHE_LINE_BYTES`] bytes each; with `WIDE`, the machine has AVX2,
/// and the caller is compiled for it.
#[inline(always)]
pub unsafe fn store_computed<R, const WIDE: bool>(
    out: *mut R,
    len: usize,
    results: &mut impl Compute<R>,
) {
    let block = NONTEMPORAL_BLOCK_BYTES / size_of::<R>().max(1);
    if size_of::<R>() != align_of::<R>() && out.align_offset(CACHE_LINE_BYTES) == usize::MAX {
        // No result begins at a line, as may be with complex numbers, which are aligned for their parts. The first half of
        // the condition is known at compile time: loops of other types are compiled without this branch.
        for from in (0..len).step_by(block) {
            let count = block.min(len - from);
            let mut computed = Block::new();
            let computed = computed.as_mut_ptr();
            let bytes = count * size_of::<R>();
            // SAFETY: `compute` writes `count` results, of which a block has room for more; the place is within `out`, since
            // `from + count <= len`.
            unsafe {
                results.compute(computed.cast(), from, count);
                copy_end::<WIDE>(out.add(from).cast(), computed.cast_const(), bytes);
            }
        }
        return;
    }
    let whole = split_at_lines(out, len, block);
    let (mut at, mut to) = (whole.start, out.wrapping_add(whole.start));
    while at < whole.end {
        let mut computed = Block::new();
        let computed = computed.as_mut_ptr();
        // SAFETY: the block has room for as many results, which lie within `len` by `split_at_lines`.
        unsafe { results.compute(computed.cast(), at, block) };
        for row in (0..NONTEMPORAL_BLOCK_BYTES).step_by(STORE_ROW_BYTES) {
            // SAFETY: `compute` wrote the block; the row is within `out`, at a line by `split_at_lines`.
            unsafe {
                store_lines::<R, WIDE>(to.cast(), computed.add(row).cast_const(), STORE_ROW_BYTES);
            }
            to = to.wrapping_byte_add(STORE_ROW_BYTES);
        }
        at += block;
    }
    // The results before and after the whole blocks.
    let (mut from, mut to) = (0, whole.start);
    loop {
        if from < to {
            let mut computed = Block::new();
            let computed = computed.as_mut_ptr();
            let bytes = (to - from) * size_of::<R>();
            // SAFETY: `compute` writes the results, fewer than a block; the place is within `out`.
            unsafe {
                results.compute(computed.cast(), from, to - from);
                copy_end::<WIDE>(out.add(from).cast(), computed.cast_const(), bytes);
            }
        }
        if to == len {
            return;
        }
        (from, to) = (whole.end, len);
    }
}

/// Stores whole cache lines non-temporally, as vectors of the type that was computed, so that the compiler stores the
/// registers of the block and never the block itself.
///
/// # Safety
///
/// The invariant of this module; `dst` is at a line and `bytes` are whole lines; `WIDE` as in [`store_computed`].
#[inline(always)]
unsafe fn store_lines<R, const WIDE: bool>(dst: *mut u8, src: *const u8, bytes: usize) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        use std::arch::x86_64::{
            _mm_loadu_si128, _mm_stream_si128, _mm256_loadu_ps, _mm256_loadu_si256,
            _mm256_stream_ps, _mm256_stream_si256,
        };
        let step = if WIDE { 32 } else { 16 };
        // Four lines in a round, then one: rows of a few lines are common, and every round has its overhead.
        let unrolled = bytes / (4 * CACHE_LINE_BYTES) * (4 * CACHE_LINE_BYTES);
        for (from, to, round) in
            [(0, unrolled, 4 * CACHE_LINE_BYTES), (unrolled, bytes, CACHE_LINE_BYTES)]
        {
            for first in (from..to).step_by(round) {
                for at in (first..first + round).step_by(step) {
                    // SAFETY: both have that many bytes, and `dst` is aligned to the step.
                    unsafe {
                        if WIDE && size_of::<R>() == 4 {
                            let value = _mm256_loadu_ps(src.add(at).cast());
                            _mm256_stream_ps(dst.add(at).cast(), value);
                        } else if WIDE {
                            let value = _mm256_loadu_si256(src.add(at).cast());
                            _mm256_stream_si256(dst.add(at).cast(), value);
                        } else {
                            let value = _mm_loadu_si128(src.add(at).cast());
                            _mm_stream_si128(dst.add(at).cast(), value);
                        }
                    }
                }
            }
        }
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    // SAFETY: the invariant of this module.
    unsafe {
        ptr::copy_nonoverlapping(src, dst, bytes);
    }
}

/// Copies bytes with non-temporal stores. A [`Fence`] must follow.
///
/// # Safety
///
/// The invariant of this module; `WIDE` as in [`store_computed`].
#[inline(always)]
pub unsafe fn copy<const WIDE: bool>(dst: *mut u8, src: *const u8, bytes: usize) {
    let Range { start, end } = split_at_lines(dst, bytes, CACHE_LINE_BYTES);
    // SAFETY: the three parts add up to `bytes`; `dst + start` is at a line, by `split_at_lines`.
    unsafe {
        // Mostly there is neither head nor tail, and a call for no bytes costs as much as a few lines.
        if start > 0 {
            store_partial_line(dst, src, start);
        }
        store_lines::<u8, WIDE>(dst.add(start), src.add(start), end - start);
        if end < bytes {
            store_partial_line(dst.add(end), src.add(end), bytes - end);
        }
    }
}

/// [`copy`] as a call: what is at an end of a run is short, and the loops of a copy are long.
///
/// # Safety
///
/// As [`copy`].
unsafe fn copy_end<const WIDE: bool>(dst: *mut u8, src: *const u8, bytes: usize) {
    // SAFETY: the condition of this function.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        if WIDE {
            return store_avx2(dst, src, bytes);
        }
        store_nontemporal(Level::BASELINE, dst, src, bytes);
    }
}

/// Stores part of a cache line, non-temporally if it is whole words: the rest of the line is mostly stored right before or
/// after and completes it in the write-combining buffer. An ordinary store would wait for the line to be read, and hold up
/// the non-temporal stores that follow.
///
/// # Safety
///
/// The invariant of this module.
#[inline(always)]
pub unsafe fn store_partial_line(dst: *mut u8, src: *const u8, bytes: usize) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        use std::arch::x86_64::{_mm_loadu_si128, _mm_stream_si32, _mm_stream_si128};
        let both = dst.addr() | bytes;
        if both.is_multiple_of(4) {
            // Mostly whole 16-byte vectors: allocators align to that.
            let step = if both.is_multiple_of(16) { 16 } else { 4 };
            for at in (0..bytes).step_by(step) {
                // SAFETY: both have that many bytes, and `dst` is aligned.
                unsafe {
                    let (from, to) = (src.add(at), dst.add(at));
                    if step == 16 {
                        _mm_stream_si128(to.cast(), _mm_loadu_si128(from.cast()));
                    } else {
                        _mm_stream_si32(to.cast(), from.cast::<i32>().read_unaligned());
                    }
                }
            }
            return;
        }
    }
    // SAFETY: the invariant of this module.
    unsafe { ptr::copy_nonoverlapping(src, dst, bytes) };
}

/// Orders non-temporal stores before all that follows its drop, also when a panic unwinds.
pub struct Fence;

impl Drop for Fence {
    #[inline(always)]
    fn drop(&mut self) {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        // SAFETY: every x86-64 has the instruction, and it touches no memory.
        unsafe {
            std::arch::x86_64::_mm_sfence();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_of_a_split_is_whole_lines_and_the_ends_are_less_than_a_block() {
        for (offset, len, block) in
            [(0, 64, 16), (1, 64, 16), (15, 15, 16), (3, 300, 64), (7, 0, 16)]
        {
            let address = ptr::without_provenance::<u32>(4096 + 4 * offset);
            let whole = split_at_lines(address, len, block);
            assert!(whole.start <= whole.end && whole.end <= len, "{whole:?}");
            assert!(whole.len().is_multiple_of(block), "{whole:?}");
            assert!(whole.start < 16 && len - whole.end < block.max(16), "{whole:?}");
            let first = address.wrapping_add(whole.start).addr();
            assert!(whole.is_empty() || first.is_multiple_of(CACHE_LINE_BYTES), "{whole:?}");
        }
        // Pairs of words between two places for pairs never begin at a line.
        let never = ptr::without_provenance::<[u32; 2]>(4096 + 4);
        assert_eq!(split_at_lines(never, 40, 8), 40..40);
    }

    // [E_BROADCAST_ANY_FUNC_3020]
    #[test]
    fn results_that_never_begin_at_a_line_arrive() {
        // Pairs of words, as complex numbers are, between two places for pairs.
        let mut words = [0_u32; 1027];
        let off = words.as_ptr().align_offset(CACHE_LINE_BYTES) % 16 + 1;
        let out = words.as_mut_ptr().wrapping_add(off).cast::<[u32; 2]>();
        struct Numbered;
        impl Compute<[u32; 2]> for Numbered {
            unsafe fn compute(&mut self, to: *mut [u32; 2], from: usize, count: usize) {
                for at in 0..count {
                    // SAFETY: the block has room for `count` pairs.
                    unsafe { to.add(at).write([(from + at) as u32, 7]) };
                }
            }
        }
        // SAFETY: the array has 501 pairs from `out` on.
        unsafe { store_computed::<[u32; 2], false>(out, 501, &mut Numbered) };
        drop(Fence);
        let pairs = words[off..off + 1002].chunks(2).zip(0..);
        assert!(pairs.into_iter().all(|(pair, n)| *pair == [n, 7]));
        assert!(words[..off].iter().chain(&words[off + 1002..]).all(|&word| word == 0));
    }

    // [E_BROADCAST_ANY_FUNC_3020]
    #[test]
    fn copied_bytes_arrive_whatever_their_number_and_place() {
        let source: Vec<u8> = (0..600_u32).map(|n| (n * 7 % 251) as u8).collect();
        for (from, to, bytes) in [(0, 0, 0), (1, 3, 5), (0, 16, 64), (5, 1, 63), (7, 9, 500)] {
            for wide in [false, Level::avx2().is_some()] {
                let mut target = vec![255_u8; 600];
                let dst = target.as_mut_ptr().wrapping_add(to);
                let src = source.as_ptr().wrapping_add(from);
                // SAFETY: both lie within the vectors; wide only where the machine has AVX.
                unsafe {
                    if wide {
                        copy::<true>(dst, src, bytes);
                    } else {
                        copy::<false>(dst, src, bytes);
                    }
                }
                drop(Fence);
                assert_eq!(target[to..to + bytes], source[from..from + bytes]);
                assert!(target[..to].iter().chain(&target[to + bytes..]).all(|&b| b == 255));
            }
        }
    }
}
