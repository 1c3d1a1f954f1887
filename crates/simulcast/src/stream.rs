//! Streaming stores: results that go to memory past the caches.
//!
//! An ordinary store first reads the line that it is about to overwrite. Where an output is too
//! large to be found in a cache afterwards, that read is a third of the traffic of `a + b`, and
//! half of that of a copy. So large outputs are computed a tile at a time into the first-level
//! cache, and the tile is moved from there with stores that do not read.
//!
//! Invariant of every call: source and destination are valid for that many bytes and do not overlap.

use std::ptr;

/// Outputs of at least that many bytes are streamed: smaller ones stay in a last-level cache, where
/// whoever reads them next finds them. With debug assertions it is half of that, so that tests come
/// here with less.
pub(crate) const STREAM_FROM: usize = if cfg!(debug_assertions) { 16 << 20 } else { 32 << 20 };

/// The bytes of a line: what a streaming store should fill.
pub(crate) const LINE: usize = 64;

/// Moves bytes past the caches, and calls `beside` with the offset of each line of them: the time
/// to ask for what is read next, since memory that only writes is idle half of the time. A
/// [`Fence`] must follow before anybody reads the bytes.
///
/// # Safety
///
/// The invariant of this module; with `WIDE`, the machine has AVX, and the caller is compiled for it.
#[inline(always)]
pub(crate) unsafe fn copy<const WIDE: bool>(
    dst: *mut u8,
    src: *const u8,
    bytes: usize,
    beside: impl Fn(usize),
) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        use std::arch::x86_64::{
            _mm_loadu_si128, _mm_stream_si128, _mm256_loadu_si256, _mm256_stream_si256,
        };
        let head = dst.align_offset(LINE).min(bytes);
        let lines = (bytes - head) / LINE;
        // SAFETY: head, lines and tail add up to `bytes`; `dst` moved by `head` is aligned to a
        // line, unless no line follows.
        unsafe {
            // Mostly there is neither head nor tail, and a call for nothing costs as much as lines.
            if head > 0 {
                ptr::copy_nonoverlapping(src, dst, head);
            }
            for line in 0..lines {
                let at = head + line * LINE;
                beside(at);
                if WIDE {
                    for at in [at, at + 32] {
                        let value = _mm256_loadu_si256(src.add(at).cast());
                        _mm256_stream_si256(dst.add(at).cast(), value);
                    }
                } else {
                    for at in [at, at + 16, at + 32, at + 48] {
                        let value = _mm_loadu_si128(src.add(at).cast());
                        _mm_stream_si128(dst.add(at).cast(), value);
                    }
                }
            }
            let done = head + lines * LINE;
            if done < bytes {
                ptr::copy_nonoverlapping(src.add(done), dst.add(done), bytes - done);
            }
        }
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    // SAFETY: the caller keeps the invariant.
    unsafe {
        (0..bytes).step_by(LINE).for_each(beside);
        ptr::copy_nonoverlapping(src, dst, bytes);
    }
}

/// Orders streaming stores before whatever follows its drop, a panic's unwinding included.
pub(crate) struct Fence;

impl Drop for Fence {
    #[inline(always)]
    fn drop(&mut self) {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        // SAFETY: every x86-64 has it, and it touches no memory.
        unsafe {
            std::arch::x86_64::_mm_sfence();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // [E_BROADCAST_ANY_FUNC_3020]
    #[test]
    fn streamed_bytes_arrive_whatever_their_number_and_place() {
        let source: Vec<u8> = (0..600_u32).map(|n| (n * 7 % 251) as u8).collect();
        for (from, to, bytes) in [(0, 0, 0), (1, 3, 5), (0, 16, 64), (5, 1, 63), (7, 9, 500)] {
            for wide in [false, crate::Level::avx2().is_some()] {
                let mut target = vec![255_u8; 600];
                let dst = target.as_mut_ptr().wrapping_add(to);
                let src = source.as_ptr().wrapping_add(from);
                let lines = std::cell::Cell::new(0);
                let count = |at: usize| lines.set(lines.get().max(at / LINE + 1));
                // SAFETY: both lie within the vectors; wide only where the machine has AVX.
                unsafe {
                    if wide {
                        copy::<true>(dst, src, bytes, count);
                    } else {
                        copy::<false>(dst, src, bytes, count);
                    }
                }
                drop(Fence);
                assert_eq!(target[to..to + bytes], source[from..from + bytes]);
                assert!(target[..to].iter().chain(&target[to + bytes..]).all(|&b| b == 255));
                assert!(lines.get() <= bytes.div_ceil(LINE));
            }
        }
    }
}
