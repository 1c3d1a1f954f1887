//! Moves of plain data as calls: packing and non-temporal copies at a level, compiled here once for each, and copies of one
//! element.

use crate::compiled_for_levels;
use crate::cpu::level::{Kind, Level};
use crate::cpu::nontemporal;
use crate::pack::{Loops, pack as pack_inlined};

/// Copies the elements that the loops visit, in their order, to `dst`.
///
/// # Safety
///
/// The invariant of [`crate::pack`]; `size` is the size of an element: 1, 2, 4, 8 or 16.
pub unsafe fn pack(level: Level, size: usize, dst: *mut u8, src: *const u8, loops: Loops<'_>) {
    // SAFETY: the caller keeps the conditions; a `Level` exists only where the machine has it.
    unsafe {
        match level.kind() {
            Kind::Baseline => pack_inlined::<false>(size, dst, src, loops),
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 | Kind::Avx512 => pack_inlined::<true>(size, dst, src, loops),
        }
    }
}

/// Copies bytes with non-temporal stores. A [`Fence`](nontemporal::Fence) must follow before another thread reads them.
///
/// # Safety
///
/// Source and destination are valid for that many bytes and do not overlap.
pub unsafe fn store_nontemporal(level: Level, dst: *mut u8, src: *const u8, bytes: usize) {
    // SAFETY: the caller keeps the conditions; a `Level` exists only where the machine has it.
    unsafe {
        match level.kind() {
            Kind::Baseline => nontemporal::copy::<false>(dst, src, bytes),
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 | Kind::Avx512 => store_avx2(dst, src, bytes),
        }
    }
}

compiled_for_levels! {
    /// The copy, compiled for AVX2.
    ///
    /// # Safety
    ///
    /// As [`store_nontemporal`], and the machine has AVX2.
    #[inline(never)]
    pub(crate) unsafe fn store_avx2(dst: *mut u8, src: *const u8, bytes: usize) {
        // SAFETY: the caller keeps the conditions.
        unsafe { nontemporal::copy::<true>(dst, src, bytes) }
    }
}

/// Writes `count` copies of an element.
///
/// # Safety
///
/// There is an element of plain data of that size at `element`, and room for the copies at `dst`, aligned for it.
pub unsafe fn repeat(size: usize, dst: *mut u8, element: *const u8, count: usize) {
    // SAFETY: the caller keeps the conditions.
    unsafe { pack_inlined::<false>(size, dst, element, &[(count, 0)]) }
}
