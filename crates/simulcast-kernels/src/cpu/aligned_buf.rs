//! Scratch memory that begins at a cache line: vector stores to it never cross a line.
//!
//! [`AlignedArray`] lives on the stack, [`cache_lines`] on the heap. Neither is initialised: kernels write through the pointer
//! before they read.

use std::mem::MaybeUninit;

use crate::tuning::CACHE_LINE_BYTES;

/// The bytes of one cache line, uninitialised.
#[repr(C, align(64))]
#[derive(Clone, Copy)]
pub struct CacheLine([MaybeUninit<u8>; CACHE_LINE_BYTES]);

const _: () = assert!(align_of::<CacheLine>() == CACHE_LINE_BYTES);

/// Uninitialised lines for at least `bytes` bytes, and for at least one.
pub fn cache_lines(bytes: usize) -> Vec<CacheLine> {
    Vec::with_capacity(bytes / CACHE_LINE_BYTES + 1)
}

/// Uninitialised memory on the stack that begins at a cache line.
#[repr(C, align(64))]
pub struct AlignedArray<const BYTES: usize>([MaybeUninit<u8>; BYTES]);

impl<const BYTES: usize> AlignedArray<BYTES> {
    #[inline(always)]
    pub const fn new() -> Self {
        Self([MaybeUninit::uninit(); BYTES])
    }

    /// The begin of the array, at a cache line; not to be read before it is written.
    #[inline(always)]
    pub const fn as_mut_ptr(&mut self) -> *mut u8 {
        self.0.as_mut_ptr().cast()
    }
}

impl<const BYTES: usize> Default for AlignedArray<BYTES> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_begin_at_cache_lines_and_have_room() {
        let mut on_stack = AlignedArray::<100>::new();
        assert!(on_stack.as_mut_ptr().addr().is_multiple_of(CACHE_LINE_BYTES));
        for bytes in [0, 1, 64, 65, 1000] {
            let mut on_heap = cache_lines(bytes);
            let begin = on_heap.as_mut_ptr().cast::<u8>();
            assert!(begin.addr().is_multiple_of(CACHE_LINE_BYTES));
            assert!(on_heap.capacity() * CACHE_LINE_BYTES > bytes);
            // SAFETY: the buffer has that many bytes.
            unsafe { begin.write_bytes(7, bytes) };
        }
    }
}
