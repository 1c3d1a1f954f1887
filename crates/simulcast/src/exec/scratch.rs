//! Scratch memory of a part of a call: tiles, rooms for packed operands, blocks of repeated elements.

use std::mem::MaybeUninit;

use simulcast_kernels::cpu::aligned_buf::CacheLine;
use simulcast_kernels::tuning::{CACHE_LINE_BYTES, SCRATCH_IN_PLACE_LINES};

/// Memory of cache lines for tiles: in place where it is little, else on the heap.
pub(crate) struct Scratch {
    /// One value that is not initialised, rather than many, which would be copied one by one.
    place: MaybeUninit<[CacheLine; SCRATCH_IN_PLACE_LINES]>,
    heap: Vec<CacheLine>,
}

impl Scratch {
    /// Room for this number of bytes.
    #[inline(always)]
    pub(crate) fn new(bytes: usize) -> Self {
        let lines = bytes.div_ceil(CACHE_LINE_BYTES);
        let heap =
            if lines > SCRATCH_IN_PLACE_LINES { Vec::with_capacity(lines) } else { Vec::new() };
        Self { place: MaybeUninit::uninit(), heap }
    }

    /// All of it, to be taken in pieces.
    #[inline(always)]
    pub(crate) fn pieces(&mut self) -> Pieces {
        if self.heap.capacity() > 0 {
            let lines = self.heap.capacity();
            Pieces { next: self.heap.as_mut_ptr().cast(), left: lines * CACHE_LINE_BYTES }
        } else {
            Pieces { next: self.place.as_mut_ptr().cast(), left: size_of_val(&self.place) }
        }
    }
}

/// What is left of scratch memory.
pub(crate) struct Pieces {
    next: *mut u8,
    left: usize,
}

impl Pieces {
    /// The next `bytes` bytes, at a cache line.
    ///
    /// # Panics
    ///
    /// Where fewer are left: [`Scratch::new`] was asked for too few.
    #[inline(always)]
    pub(crate) fn take(&mut self, bytes: usize) -> *mut u8 {
        let bytes = bytes.next_multiple_of(CACHE_LINE_BYTES);
        assert!(bytes <= self.left, "scratch memory was sized for all that is taken");
        let piece = self.next;
        self.next = piece.wrapping_add(bytes);
        self.left -= bytes;
        piece
    }
}
