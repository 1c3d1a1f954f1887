//! One run, stored as the strategy says: ordinarily, or with non-temporal stores.
//!
//! Non-temporal stores fill cache lines without reading them first. An inner loop that has such stores of its own makes
//! results in registers; any other writes a tile that stays in the first-level cache, which is moved from there. The
//! first tile ends at a cache line, so that all others start and end at cache lines.

use simulcast_kernels::cpu::level::Level;
use simulcast_kernels::cpu::prefetch::prefetch_ahead;
use simulcast_kernels::moves::store_nontemporal;
use simulcast_kernels::tuning::{CACHE_LINE_BYTES, NONTEMPORAL_TILE_BYTES};

use super::inner_loop::{Facts, InnerLoop, MAX_OPERANDS, Operands, RowLoop, Run};
use super::scratch::Pieces;
use super::strategy::{Stores, Strategy};
use crate::layout::small_vec::SmallVec;

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
