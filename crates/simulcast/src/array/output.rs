//! New outputs: uninitialised memory that results are written to, without a zero fill.
//!
//! Large outputs ask for huge pages (`madvise`): the page faults of 4 KiB pages take longer than most arithmetic.
//!
//! Invariant: exactly the elements that the ledger lists are initialised, so that a panic in a closure drops each of them
//! once. Results that need no drop are not listed.

use std::mem::needs_drop;
use std::ptr;
use std::sync::Mutex;

use ndarray::{Array, Dimension};
use simulcast_core::Refusal;
use simulcast_kernels::tuning::HUGE_PAGES_MIN_BYTES;

/// The initialised ranges of an output: where each begins, and its length.
#[derive(Default)]
pub(crate) struct Ledger(Mutex<Vec<(usize, usize)>>);

impl Ledger {
    pub(crate) fn enter(&self, start: usize, len: usize) {
        // A poisoned list is whole: pushing is all that is ever done to it.
        let mut list = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        list.push((start, len));
    }
}

/// Reserves memory for `len` elements.
pub(crate) fn reserve<T>(memory: &mut Vec<T>, len: usize) -> Result<(), Refusal> {
    let bytes = len.checked_mul(size_of::<T>()).filter(|&bytes| isize::try_from(bytes).is_ok());
    let Some(_) = bytes else { return Err(Refusal::Overflow) };
    memory.try_reserve_exact(len).map_err(|_| Refusal::Memory)
}

/// An output under construction.
pub(crate) struct Fresh<R> {
    /// Of length 0 until [`finish`](Self::finish).
    memory: Vec<R>,
    pub(crate) ledger: Ledger,
}

impl<R> Fresh<R> {
    /// Memory for `len` results.
    pub(crate) fn new(len: usize) -> Result<Self, Refusal> {
        let mut memory = Vec::new();
        reserve(&mut memory, len)?;
        if len.saturating_mul(size_of::<R>()) >= HUGE_PAGES_MIN_BYTES {
            advise(&memory);
        }
        Ok(Self { memory, ledger: Ledger::default() })
    }

    pub(crate) fn pointer(&mut self) -> *mut R {
        self.memory.as_mut_ptr()
    }

    /// The finished array, row-major; `None` where the shape has another number of elements.
    ///
    /// # Safety
    ///
    /// `len` elements were written, and there is room for them.
    pub(crate) unsafe fn finish<D: Dimension>(mut self, dim: D, len: usize) -> Option<Array<R, D>> {
        self.ledger = Ledger::default();
        let mut memory = std::mem::take(&mut self.memory);
        // SAFETY: the caller wrote them.
        unsafe { memory.set_len(len) };
        Array::from_shape_vec(dim, memory).ok()
    }
}

// Implements E_BROADCAST_ANY_FUNC_3060.
impl<R> Drop for Fresh<R> {
    fn drop(&mut self) {
        if !needs_drop::<R>() {
            return;
        }
        let list = self.ledger.0.get_mut().unwrap_or_else(std::sync::PoisonError::into_inner);
        for &(start, len) in &*list {
            let range =
                ptr::slice_from_raw_parts_mut(self.memory.as_mut_ptr().wrapping_add(start), len);
            // SAFETY: the ledger lists ranges that were written, each once; `finish`, which moves them into the array,
            // empties it.
            unsafe { ptr::drop_in_place(range) };
        }
    }
}

/// Asks for huge pages for the memory of a vector (Linux alone).
fn advise<R>(memory: &Vec<R>) {
    #[cfg(all(target_os = "linux", not(miri)))]
    {
        unsafe extern "C" {
            fn madvise(start: *mut std::ffi::c_void, length: usize, advice: i32) -> i32;
        }
        const HUGE: usize = 2 << 20;
        const MADV_HUGEPAGE: i32 = 14;
        let start = memory.as_ptr().cast::<u8>();
        let bytes = memory.capacity() * size_of::<R>();
        let skip = start.align_offset(HUGE).min(bytes);
        let whole = (bytes - skip) / HUGE * HUGE;
        if whole > 0 {
            // SAFETY: the range lies within the vector's own memory and begins at a page; the advice changes no contents, and
            // a refusal changes nothing.
            unsafe { madvise(start.wrapping_add(skip).cast_mut().cast(), whole, MADV_HUGEPAGE) };
        }
    }
    #[cfg(not(all(target_os = "linux", not(miri))))]
    let _ = memory;
}
