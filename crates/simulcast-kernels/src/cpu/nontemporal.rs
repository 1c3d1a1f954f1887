//! Streaming stores: results that go to memory past the caches.
//!
//! An ordinary store first reads the line that it is about to overwrite. Where an output is too
//! large to be found in a cache afterwards, that read is a third of the traffic of `a + b`, and
//! half of that of a copy. So large outputs are computed a few lines at a time, which the compiler
//! keeps in registers where it can, and moved on with stores that do not read. Which those are
//! is a question of [caches](super::cache), and reading is one of [asking](super::prefetch) ahead of time.
//!
//! Stores take their turn: an ordinary one that follows waits until those before it have gone to memory, and the next
//! ones wait for it. So rows of two lines are written by one loop that keeps all in registers ([`Strip`]).
//!
//! Invariant of every call: source and destination are valid for that many bytes and do not overlap.

use std::mem::MaybeUninit;
use std::ptr;

pub use crate::cpu::cache::{FEW, STRETCH, Streams};
pub use crate::cpu::prefetch::{Ask, FAR, Far, ask_ahead, ask_for, likes_help, prefetch};

/// The bytes of a line: what a streaming store should fill.
pub const LINE: usize = 64;

/// What the processor says of itself.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[allow(unused_unsafe, reason = "needed by the oldest compiler that is supported")]
pub(super) fn cpuid(leaf: u32, at: u32) -> std::arch::x86_64::CpuidResult {
    // SAFETY: every x86-64 has the instruction.
    unsafe { std::arch::x86_64::__cpuid_count(leaf, at) }
}

/// How many of some results come before the first that begins a vector: stores that cross lines take twice as long.
/// None where all are few.
#[inline(always)]
pub fn head<R>(out: *const R, len: usize) -> usize {
    const VECTOR: usize = 32;
    const FEW: usize = 1024;
    if len.saturating_mul(size_of::<R>()) < FEW { 0 } else { out.align_offset(VECTOR).min(len) }
}

/// Of what is left, the first part of about so many; few more are no part of their own.
#[inline(always)]
pub fn part(left: usize, about: usize) -> usize {
    if left <= about.saturating_add(about / 4) { left } else { about }
}

/// The bytes of results that [`results`] makes at a time: half of the vector registers of AVX2. Loops over fewer elements would
/// be unrolled before they are vectorised, and vectors put together from pieces.
const BLOCK: usize = 2 * ROW;

/// The bytes of a row of a strip: memory likes two lines better than one.
pub const ROW: usize = 2 * LINE;

/// Where results lie that are made one after the other: in rows.
pub struct Strip {
    /// How far it is from row to row, in bytes.
    pub pitch: isize,
    /// What is asked for before each.
    pub ask: Ask,
    /// The operand of a loop that comes from memory, where there is one, and which may be asked for.
    pub far: Option<usize>,
}

impl Strip {
    /// One row after the other, as in any run.
    pub const NONE: Self = Self { pitch: ROW.cast_signed(), ask: Ask::NOTHING, far: None };

    /// Whether rows follow each other.
    #[inline(always)]
    pub fn is_none(&self) -> bool {
        self.pitch == Self::NONE.pitch
    }

    /// Whether results that begin there, so many bytes, are whole blocks at lines.
    #[inline(always)]
    pub fn fits<R>(&self, out: *const R, bytes: usize) -> bool {
        let lines = (out.addr() | self.pitch.unsigned_abs()).is_multiple_of(LINE);
        lines && bytes.is_multiple_of(BLOCK)
    }
}

/// Room for that many.
#[repr(C, align(64))]
struct Block([MaybeUninit<u8>; BLOCK]);

/// Makes results, and moves them past the caches: `make` writes so many of them, counted from a first
/// one, to a place. A [`Fence`] must follow before anybody reads them.
///
/// # Safety
///
/// `out` is valid for `len` results, plain data of at most [`LINE`] bytes each, that lie as the strip says; they fit,
/// or it is none; `make` writes all that it is asked for, and nothing else; with `WIDE`, the machine has AVX, and the
/// caller is compiled for it.
#[inline(always)]
pub unsafe fn results<R, const WIDE: bool>(
    out: *mut R,
    len: usize,
    strip: &Strip,
    mut make: impl FnMut(*mut R, usize, usize),
) {
    let block = BLOCK / size_of::<R>().max(1);
    let head = out.align_offset(LINE);
    if size_of::<R>() != align_of::<R>() && head == usize::MAX {
        // No result begins at a line: those of complex numbers may lie so. Others are aligned for their size, and one of
        // them does; that is asked for by types alone, so that their loops are compiled without this one.
        for from in (0..len).step_by(block) {
            let count = block.min(len - from);
            let mut room = Block([MaybeUninit::uninit(); BLOCK]);
            let made = room.0.as_mut_ptr();
            make(made.cast(), from, count);
            let bytes = count * size_of::<R>();
            // SAFETY: the room is written, by the condition of this function; the place is within `out`.
            unsafe { copy::<WIDE>(out.add(from).cast(), made.cast_const().cast(), bytes) };
        }
        return;
    }
    let head = head.min(len);
    let done = head + (len - head) / block * block;
    // All of this stays in registers.
    let (mut at, mut to, mut ask) = (head, out.wrapping_add(head), strip.ask);
    while at < done {
        let mut room = Block([MaybeUninit::uninit(); BLOCK]);
        let made = room.0.as_mut_ptr();
        make(made.cast(), at, block);
        for row in (0..BLOCK).step_by(ROW) {
            ask.some();
            // SAFETY: the room is written, by the condition of this function; the place is one of `out`,
            // and at a line.
            unsafe { lines::<R, WIDE>(to.cast(), made.add(row).cast_const().cast(), ROW) };
            to = to.wrapping_byte_offset(strip.pitch);
        }
        at += block;
    }
    // What is no whole block, at both ends: still only what is no whole line goes through the caches. Not a loop over
    // both, which would be two copies of all that `make` is.
    let (mut from, mut to) = (0, head);
    loop {
        if from < to {
            let mut room = Block([MaybeUninit::uninit(); BLOCK]);
            let made = room.0.as_mut_ptr();
            make(made.cast(), from, to - from);
            let bytes = (to - from) * size_of::<R>();
            // SAFETY: as above; there is less than a block of results.
            unsafe { copy::<WIDE>(out.add(from).cast(), made.cast_const().cast(), bytes) };
        }
        if to == len {
            return;
        }
        (from, to) = (done, len);
    }
}

/// Moves one line past the caches. A [`Fence`] must follow before anybody reads it.
///
/// # Safety
///
/// `dst` is at a line and valid for one; the machine has AVX, with `LONG` AVX-512, and the caller is compiled for it.
#[inline(always)]
pub unsafe fn line<const LONG: bool>(dst: *mut u8, line: &[u32; LINE / 4]) {
    // SAFETY: the caller keeps the conditions; a vector of AVX-512 is a line.
    unsafe {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if LONG {
            use std::arch::x86_64::{__m512i, _mm512_stream_si512};
            return _mm512_stream_si512(
                dst.cast(),
                line.as_ptr().cast::<__m512i>().read_unaligned(),
            );
        }
        lines::<u32, true>(dst, line.as_ptr().cast(), LINE);
    }
}

/// Moves whole lines past the caches: as vectors of what was written there, so that the compiler makes
/// such vectors to begin with.
///
/// # Safety
///
/// The invariant of this module; `dst` is at a line and `bytes` whole lines; `WIDE` as in
/// [`results`].
#[inline(always)]
unsafe fn lines<R, const WIDE: bool>(dst: *mut u8, src: *const u8, bytes: usize) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        use std::arch::x86_64::{
            _mm_loadu_si128, _mm_stream_si128, _mm256_loadu_ps, _mm256_loadu_si256,
            _mm256_stream_ps, _mm256_stream_si256,
        };
        let step = if WIDE { 32 } else { 16 };
        // Four lines in a round, then one: rows of a few lines are common, and every round costs.
        let many = bytes / (4 * LINE) * (4 * LINE);
        for (from, to, round) in [(0, many, 4 * LINE), (many, bytes, LINE)] {
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
    // SAFETY: the caller keeps the invariant.
    unsafe {
        ptr::copy_nonoverlapping(src, dst, bytes);
    }
}

/// Moves bytes past the caches. A [`Fence`] must follow before anybody reads them.
///
/// # Safety
///
/// The invariant of this module; `WIDE` as in [`results`].
#[inline(always)]
pub unsafe fn copy<const WIDE: bool>(dst: *mut u8, src: *const u8, bytes: usize) {
    let head = dst.align_offset(LINE).min(bytes);
    let done = head + (bytes - head) / LINE * LINE;
    // SAFETY: head, lines and tail add up to `bytes`; `dst` moved by `head` is at a line, unless no
    // line follows.
    unsafe {
        // Mostly there is neither head nor tail, and a call for nothing costs as much as lines.
        if head > 0 {
            edge(dst, src, head);
        }
        lines::<u8, WIDE>(dst.add(head), src.add(head), done - head);
        if done < bytes {
            edge(dst.add(done), src.add(done), bytes - done);
        }
    }
}

/// Moves bytes that follow each other past the caches, to where a strip says, which they fit.
///
/// # Safety
///
/// As [`results`]; with `WIDE`, the machine has AVX2.
#[inline(never)]
pub unsafe fn copy_strip<const WIDE: bool>(
    dst: *mut u8,
    src: *const u8,
    bytes: usize,
    strip: &Strip,
) {
    /// # Safety
    ///
    /// As [`copy_strip`]; `WIDE` as in [`results`].
    #[inline(always)]
    unsafe fn words<const WIDE: bool>(dst: *mut u8, src: *const u8, bytes: usize, strip: &Strip) {
        let make = |to: *mut u32, from: usize, count: usize| {
            // SAFETY: the caller keeps the conditions.
            unsafe { to.cast::<u8>().copy_from_nonoverlapping(src.add(4 * from), 4 * count) };
        };
        // SAFETY: the caller keeps the conditions; blocks are whole words.
        unsafe { results::<u32, WIDE>(dst.cast(), bytes / 4, strip, make) };
    }
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    unsafe fn avx2(dst: *mut u8, src: *const u8, bytes: usize, strip: &Strip) {
        // SAFETY: the caller keeps the conditions.
        unsafe { words::<true>(dst, src, bytes, strip) }
    }
    // SAFETY: the caller keeps the conditions.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        if WIDE {
            return avx2(dst, src, bytes, strip);
        }
        words::<false>(dst, src, bytes, strip);
    }
}

/// Moves less than a line past the caches, where it is whole words: what is before or after it in its line mostly
/// comes next, and makes it whole. An ordinary store would wait for the line to be read, and all that follow would
/// wait for it.
///
/// # Safety
///
/// The invariant of this module.
#[inline(always)]
pub unsafe fn edge(dst: *mut u8, src: *const u8, bytes: usize) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        use std::arch::x86_64::{_mm_loadu_si128, _mm_stream_si32, _mm_stream_si128};
        let both = dst.addr() | bytes;
        if both.is_multiple_of(4) {
            // Mostly it is whole vectors: that is where allocators begin.
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
    // SAFETY: the caller keeps the invariant.
    unsafe { ptr::copy_nonoverlapping(src, dst, bytes) };
}

/// Orders streaming stores before whatever follows its drop, a panic's unwinding included.
pub struct Fence;

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
    fn results_that_never_begin_at_a_line_arrive() {
        // Pairs of words, as complex numbers are, between two places for pairs.
        let mut words = [0_u32; 1027];
        let off = words.as_ptr().align_offset(LINE) % 16 + 1;
        let out = words.as_mut_ptr().wrapping_add(off).cast::<[u32; 2]>();
        let make = |to: *mut [u32; 2], from: usize, count: usize| {
            for at in 0..count {
                // SAFETY: there is room for so many.
                unsafe { to.add(at).write([(from + at) as u32, 7]) };
            }
        };
        // SAFETY: there are as many results in the array.
        unsafe { results::<[u32; 2], false>(out, 501, &Strip::NONE, make) };
        drop(Fence);
        let pairs = words[off..off + 1002].chunks(2).zip(0..);
        assert!(pairs.into_iter().all(|(pair, n)| *pair == [n, 7]));
        assert!(words[..off].iter().chain(&words[off + 1002..]).all(|&word| word == 0));
    }

    // [E_BROADCAST_ANY_FUNC_3020]
    #[test]
    fn streamed_bytes_arrive_whatever_their_number_and_place() {
        let source: Vec<u8> = (0..600_u32).map(|n| (n * 7 % 251) as u8).collect();
        for (from, to, bytes) in [(0, 0, 0), (1, 3, 5), (0, 16, 64), (5, 1, 63), (7, 9, 500)] {
            for wide in [false, crate::Level::avx2().is_some()] {
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
