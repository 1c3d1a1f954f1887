//! One run, stored as the strategy says: ordinarily, or with non-temporal stores.
//!
//! Non-temporal stores fill cache lines without reading them first. An inner loop that has such stores of its own makes
//! results in registers; any other writes a tile that stays in the first-level cache, which is moved from there. The
//! first tile ends at a cache line, so that all others start and end at cache lines.

use std::mem::MaybeUninit;

use simulcast_kernels::cpu::aligned_buf::CacheLine;
use simulcast_kernels::cpu::level::Level;
use simulcast_kernels::cpu::prefetch::prefetch_ahead;
use simulcast_kernels::moves::{pack, store_nontemporal};
use simulcast_kernels::tuning::{
    CACHE_LINE_BYTES, NONTEMPORAL_TILE_BYTES, REPEATED_BLOCK_ELEMENTS, SCRATCH_IN_PLACE_LINES,
};

use super::inner_loop::{Facts, InnerLoop, MAX_OPERANDS, Operands, RowLoop, Run};
use super::strategy::{Stores, Strategy};
use crate::layout::small_vec::SmallVec;

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

/// An inner loop with what is known of it, and where its results go on the way to non-temporal stores.
pub(crate) struct Emitter<'e> {
    inner: &'e mut dyn InnerLoop,
    stores: Stores,
    prefetch: Operands,
    level: Level,
    sizes: SmallVec<usize, { MAX_OPERANDS + 1 }>,
    copies: Option<usize>,
    /// Whether the inner loop has non-temporal stores of its own.
    nontemporal: bool,
    tile: *mut u8,
}

impl<'e> Emitter<'e> {
    /// The bytes of scratch memory that an emitter takes.
    pub(crate) fn scratch_bytes(strategy: &Strategy, facts: &Facts<'_>) -> usize {
        let needs = strategy.stores == Stores::NonTemporal && !facts.nontemporal;
        if needs { NONTEMPORAL_TILE_BYTES } else { 0 }
    }

    /// # Safety
    ///
    /// The scratch memory has [`Self::scratch_bytes`] left, and stays where it is while the emitter is used.
    pub(crate) unsafe fn new(
        inner: &'e mut dyn InnerLoop,
        strategy: &Strategy,
        scratch: &mut Pieces,
    ) -> Self {
        let facts = inner.facts();
        let bytes = Self::scratch_bytes(strategy, &facts);
        let tile = if bytes == 0 { std::ptr::null_mut() } else { scratch.take(bytes) };
        let (sizes, copies) = (SmallVec::from_slice(facts.sizes), facts.copies);
        let nontemporal = facts.nontemporal;
        let Strategy { stores, prefetch, level, .. } = *strategy;
        Self { inner, stores, prefetch, level, sizes, copies, nontemporal, tile }
    }

    /// The bytes of an element of each array, the result first.
    #[inline(always)]
    pub(crate) fn sizes(&self) -> &[usize] {
        &self.sizes
    }

    /// Does rows of runs: with non-temporal stores, one row.
    ///
    /// # Safety
    ///
    /// The invariant of [`super::inner_loop`], for rows in which the result is contiguous and operands are contiguous or
    /// repeat, the latter as [`Facts::repeated`] says.
    #[inline]
    pub(crate) unsafe fn run(
        &mut self,
        out: *mut u8,
        ins: &[*const u8],
        repeated: Operands,
        len: usize,
        rows: RowLoop<'_>,
    ) {
        let run = Run { out, ins, repeated, prefetch: self.prefetch, stores: Stores::Cached, len };
        // SAFETY: the caller keeps the conditions.
        unsafe {
            match self.stores {
                Stores::Cached => self.inner.contiguous(&run, rows),
                Stores::NonTemporal => self.nontemporal(&run),
            }
        }
    }

    /// The operands' pointers `done` elements on, in places of the caller's: an array that is returned is copied by vectors,
    /// and a vector that is read right after its parts were written waits until all stores before them are done.
    #[inline(always)]
    fn ins_at<'p>(
        &self,
        run: &Run<'_>,
        done: usize,
        places: &'p mut [*const u8; MAX_OPERANDS],
    ) -> &'p [*const u8] {
        for (n, (place, &pointer)) in places.iter_mut().zip(run.ins).enumerate() {
            let moves = run.repeated >> n & 1 == 0;
            *place = pointer.wrapping_add(if moves { done * self.sizes[n + 1] } else { 0 });
        }
        &places[..run.ins.len()]
    }

    /// A run with non-temporal stores.
    ///
    /// # Safety
    ///
    /// As [`Self::run`].
    unsafe fn nontemporal(&mut self, run: &Run<'_>) {
        let size = self.sizes[0];
        // SAFETY: the caller keeps the conditions: results are plain data, as the strategy checked; a tile has room for
        // `count` of them.
        unsafe {
            if let Some(operand) = self.copies.filter(|&n| run.repeated >> n & 1 == 0) {
                return store_nontemporal(self.level, run.out, run.ins[operand], run.len * size);
            }
            if self.nontemporal {
                let run = Run { stores: Stores::NonTemporal, ..*run };
                return self.inner.contiguous(&run, RowLoop::ONE);
            }
            let whole = NONTEMPORAL_TILE_BYTES / size;
            // The first tile ends at a cache line.
            let mut count = (whole - run.out.addr() % CACHE_LINE_BYTES / size).min(run.len);
            let (mut done, mut places) = (0, [std::ptr::null(); MAX_OPERANDS]);
            while done < run.len {
                let ins = self.ins_at(run, done, &mut places);
                let mut left = run.prefetch;
                while left != 0 {
                    let operand = left.trailing_zeros() as usize;
                    left &= left - 1;
                    prefetch_ahead(ins[operand], count * self.sizes[operand + 1]);
                }
                let tile = Run { out: self.tile, ins, prefetch: 0, len: count, ..*run };
                self.inner.contiguous(&tile, RowLoop::ONE);
                store_nontemporal(self.level, run.out.add(done * size), self.tile, count * size);
                done += count;
                count = whole.min(run.len - done);
            }
        }
    }
}

/// The bytes of a block of copies of an element.
pub(crate) const fn repeated_block_bytes(size: usize) -> usize {
    (REPEATED_BLOCK_ELEMENTS * size).next_multiple_of(CACHE_LINE_BYTES)
}

/// A block of copies of a repeated operand's element.
#[derive(Clone, Copy)]
pub(crate) struct RepeatedBlock {
    pub(crate) operand: usize,
    block: *mut u8,
    level: Level,
    /// The element that it was filled with, and how many copies.
    held: (*const u8, usize),
}

impl RepeatedBlock {
    pub(crate) fn new(operand: usize, block: *mut u8, level: Level) -> Self {
        Self { operand, block, level, held: (std::ptr::null(), 0) }
    }

    /// The element that it was last filled with.
    #[inline(always)]
    pub(crate) fn element(&self) -> *const u8 {
        self.held.0
    }

    /// The block with copies of an element, no fewer than a run of `len` reads.
    ///
    /// # Safety
    ///
    /// The block has room for as many copies as a block has; there is an element of plain
    /// data of that size, which does not change while the block is used.
    #[inline]
    pub(crate) unsafe fn filled(
        &mut self,
        element: *const u8,
        size: usize,
        len: usize,
    ) -> *const u8 {
        let count = len.min(REPEATED_BLOCK_ELEMENTS);
        if self.held.0 != element || self.held.1 < count {
            // SAFETY: the caller keeps the conditions.
            unsafe { pack(self.level, size, self.block, element, &[(count, 0)]) };
            self.held = (element, count);
        }
        self.block
    }
}
