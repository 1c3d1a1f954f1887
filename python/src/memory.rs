//! Memory that is kept: large blocks that were freed, for the next large result.
//!
//! A fresh array costs more than what is computed into it: the system clears each page when it is
//! first written. So large blocks are not given back at once, and the next one of about the same size
//! is one of them. All of this module's memory comes through here, and so does that of the arrays of
//! NumPy's that are made for results (see [`crate::handler`]).
//!
//! ```text
//! size     at least a megabyte; rounded up by at most an eighth, so that what was freed fits again
//! bounds   8 blocks, and `SIMULCAST_KEEP_BYTES` (512 MiB unless it is set, 0 for none); the oldest go
//! pages    those of the largest are the system's to take, as long as nobody uses them
//! locks    never blocks: on contention, or after fork, allocation falls through to the system
//! ```

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use pyo3::prelude::*;
use simulcast::EnvironmentError;

/// Blocks of at least that many bytes are kept.
pub(crate) const LARGE: usize = 1 << 20;

/// Blocks of at least that many bytes are asked for in huge pages.
const HUGE: usize = 4 << 20;

/// The pages of blocks of at least that many bytes are marked as free while they are kept, which takes
/// a tenth of the time in which they are written; of smaller ones it takes as long.
const MARKED: usize = 32 << 20;

/// How many are kept.
const BLOCKS: usize = 8;

/// How many bytes are kept, where the environment does not say.
const BYTES: usize = 512 << 20;

/// The alignment of all that is kept, which every system gives at once.
const ALIGN: usize = 16;

/// How many bytes are kept at most; none until the module is there.
static LIMIT: AtomicUsize = AtomicUsize::new(0);

static KEPT: Mutex<Kept> = Mutex::new(Kept::EMPTY);

#[global_allocator]
static MEMORY: Memory = Memory;

/// The system's memory, with what is kept of it.
struct Memory;

/// A block that nobody uses, and its size.
#[derive(Clone, Copy)]
struct Block {
    start: *mut u8,
    bytes: usize,
}

/// The blocks that are kept, the oldest first.
struct Kept {
    blocks: [Block; BLOCKS],
    count: usize,
}

// SAFETY: nobody but the store has pointers to its blocks.
unsafe impl Send for Kept {}

impl Block {
    const NONE: Self = Self { start: std::ptr::null_mut(), bytes: 0 };

    /// Gives it back to the system.
    fn free(self) {
        if let Ok(layout) = Layout::from_size_align(self.bytes, ALIGN) {
            // SAFETY: it came from there with this size and alignment, and nobody uses it.
            unsafe { System.dealloc(self.start, layout) };
        }
    }
}

impl Kept {
    const EMPTY: Self = Self { blocks: [Block::NONE; BLOCKS], count: 0 };

    fn bytes(&self) -> usize {
        self.blocks[..self.count].iter().map(|block| block.bytes).sum()
    }

    /// Takes out a block.
    fn remove(&mut self, at: usize) -> Block {
        let block = self.blocks[at];
        self.blocks.copy_within(at + 1..self.count, at);
        self.count -= 1;
        block
    }

    /// The newest block of that size, which may still be in a cache.
    fn take(&mut self, bytes: usize) -> Option<Block> {
        let at = self.blocks[..self.count].iter().rposition(|block| block.bytes == bytes)?;
        Some(self.remove(at))
    }

    /// Keeps a block that fits within the limit; what has to go for it is given back.
    fn keep(&mut self, block: Block, limit: usize) -> Kept {
        let mut gone = Self::EMPTY;
        while self.count == BLOCKS || self.bytes() + block.bytes > limit {
            gone.push(self.remove(0));
        }
        self.push(block);
        gone
    }

    fn push(&mut self, block: Block) {
        self.blocks[self.count] = block;
        self.count += 1;
    }

    /// Gives all back to the system.
    fn free(self) {
        self.blocks[..self.count].iter().for_each(|block| block.free());
    }
}

/// The block that large memory is: its size rounded up, so that it depends on the layout alone. None
/// for what is not kept.
fn block(layout: Layout) -> Option<Layout> {
    let bytes = layout.size();
    if bytes < LARGE || layout.align() > ALIGN {
        return None;
    }
    let step = 1 << (bytes.ilog2() - 3);
    Layout::from_size_align(bytes.checked_next_multiple_of(step)?, ALIGN).ok()
}

// SAFETY: what is given out is the system's, of the size and alignment that were asked for or larger
// ones, which depend on the layout alone; a block is in use or kept, never both.
unsafe impl GlobalAlloc for Memory {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let Some(whole) = block(layout) else {
            // SAFETY: the caller keeps the conditions.
            return unsafe { System.alloc(layout) };
        };
        let kept = KEPT.try_lock().ok().and_then(|mut kept| kept.take(whole.size()));
        if let Some(kept) = kept {
            return kept.start;
        }
        // SAFETY: it has a size.
        let start = unsafe { System.alloc(whole) };
        if !start.is_null() && whole.size() >= HUGE {
            advise(Block { start, bytes: whole.size() }, Advice::Huge);
        }
        start
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // What was used before is no faster to clear than what the system has to clear.
        // SAFETY: the caller keeps the conditions, and a block has a size.
        unsafe { System.alloc_zeroed(block(layout).unwrap_or(layout)) }
    }

    #[inline]
    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        let Some(whole) = block(layout) else {
            // SAFETY: the caller keeps the conditions.
            return unsafe { System.dealloc(start, layout) };
        };
        let (block, limit) = (Block { start, bytes: whole.size() }, LIMIT.load(Ordering::Relaxed));
        if block.bytes > limit {
            return block.free();
        }
        if block.bytes >= MARKED {
            advise(block, Advice::Free);
        }
        match KEPT.try_lock().map(|mut kept| kept.keep(block, limit)) {
            Ok(gone) => gone.free(),
            Err(_) => block.free(),
        }
    }

    #[inline]
    unsafe fn realloc(&self, start: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        let Ok(wanted) = Layout::from_size_align(bytes, layout.align()) else {
            return std::ptr::null_mut();
        };
        // SAFETY: the caller keeps the conditions; memory of either kind came from the system with the
        // layout that is computed again, and is moved there.
        unsafe {
            match (block(layout), block(wanted)) {
                (None, None) => System.realloc(start, layout, bytes),
                (Some(old), Some(new)) if old == new => start,
                _ => {
                    let moved = self.alloc(wanted);
                    if !moved.is_null() {
                        let both = layout.size().min(bytes);
                        std::ptr::copy_nonoverlapping(start, moved, both);
                        self.dealloc(start, layout);
                    }
                    moved
                }
            }
        }
    }
}

/// What the system is told of a block's pages.
#[derive(Clone, Copy)]
enum Advice {
    /// Nobody reads them any more: they may be taken, until they are written.
    Free,
    /// They are to be huge ones.
    Huge,
}

/// Tells the system of the pages that lie within a block, where it has such a call.
fn advise(block: Block, advice: Advice) {
    #[cfg(target_os = "linux")]
    {
        let advice = match advice {
            Advice::Free => libc::MADV_FREE,
            Advice::Huge => libc::MADV_HUGEPAGE,
        };
        const PAGE: usize = 2 << 20;
        let skip = block.start.align_offset(PAGE).min(block.bytes);
        let whole = (block.bytes - skip) / PAGE * PAGE;
        if whole > 0 {
            // SAFETY: the range lies within the block and begins at a page; nobody reads what is in
            // it before it is written, and a refusal changes nothing at all.
            unsafe { libc::madvise(block.start.wrapping_add(skip).cast(), whole, advice) };
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (block, advice);
}

/// Gives the memory that is kept for the next results back to the system, and says how many bytes that
/// was. `SIMULCAST_KEEP_BYTES` in the environment sets how many are kept at most.
///
/// >>> import simulcast
/// >>> simulcast.release_memory() >= 0
/// True
#[pyfunction]
pub(crate) fn release_memory() -> usize {
    let Ok(mut kept) = KEPT.try_lock() else { return 0 };
    let all = std::mem::replace(&mut *kept, Kept::EMPTY);
    drop(kept);
    let bytes = all.bytes();
    all.free();
    bytes
}

/// From now on memory is kept: as many bytes as the environment says.
pub(crate) fn register() -> Result<(), EnvironmentError> {
    const NAME: &str = "SIMULCAST_KEEP_BYTES";
    let limit = match std::env::var_os(NAME) {
        None => BYTES,
        Some(value) if value.is_empty() => BYTES,
        Some(value) => match value.to_str().and_then(|bytes| bytes.trim().parse().ok()) {
            Some(bytes) => bytes,
            None => return Err(EnvironmentError::new(NAME, &value, "a number of bytes")),
        },
    };
    LIMIT.store(limit, Ordering::Relaxed);
    Ok(())
}
