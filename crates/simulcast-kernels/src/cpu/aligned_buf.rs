//! Scratch memory that begins at a cache line: vector stores to it never cross a line.
//!
//! [`AlignedArray`] lives on the stack, [`AlignedBuf`] on the heap. Neither is initialised, and neither knows what lies in
//! it: kernels write through the pointer before they read.

use std::mem::MaybeUninit;

use crate::tuning::CACHE_LINE_BYTES;

/// The bytes of one cache line, uninitialised.
#[repr(C, align(64))]
#[derive(Clone, Copy)]
pub struct CacheLine([MaybeUninit<u8>; CACHE_LINE_BYTES]);

const _: () = assert!(align_of::<CacheLine>() == CACHE_LINE_BYTES);

pub use self::CacheLine as Line;

/// Uninitialised lines for at least `bytes` bytes, and for at least one.
pub fn room(bytes: usize) -> Vec<CacheLine> {
    Vec::with_capacity(bytes / CACHE_LINE_BYTES + 1)
}

/// Uninitialised memory on the heap that begins at a cache line.
#[derive(Default)]
pub struct AlignedBuf(Vec<CacheLine>);

impl AlignedBuf {
    /// A buffer of no bytes, without an allocation.
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// A buffer of at least `bytes` bytes.
    pub fn with_bytes(bytes: usize) -> Self {
        Self(Vec::with_capacity(bytes.div_ceil(CACHE_LINE_BYTES)))
    }

    /// How many bytes it has.
    #[inline]
    pub fn bytes(&self) -> usize {
        self.0.capacity() * CACHE_LINE_BYTES
    }

    /// The begin of at least `bytes` bytes; what was in the buffer is lost if it grows.
    #[inline]
    pub fn reserve(&mut self, bytes: usize) -> *mut u8 {
        if self.bytes() < bytes {
            *self = Self::with_bytes(bytes);
        }
        self.as_mut_ptr()
    }

    /// The begin of the buffer, at a cache line; not to be read before it is written.
    #[inline]
    pub fn as_mut_ptr(&mut self) -> *mut u8 {
        self.0.as_mut_ptr().cast()
    }
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
    fn buffers_begin_at_cache_lines_and_hold_what_was_asked() {
        let mut on_stack = AlignedArray::<100>::new();
        assert!(on_stack.as_mut_ptr().addr().is_multiple_of(CACHE_LINE_BYTES));
        let mut on_heap = AlignedBuf::new();
        assert_eq!(on_heap.bytes(), 0);
        for bytes in [1, 64, 65, 1000, 10] {
            let begin = on_heap.reserve(bytes);
            assert!(begin.addr().is_multiple_of(CACHE_LINE_BYTES) && on_heap.bytes() >= bytes);
            // SAFETY: there are so many bytes.
            unsafe { begin.write_bytes(7, bytes) };
        }
        assert!(on_heap.bytes() >= 1000, "a smaller request keeps the buffer");
    }
}
