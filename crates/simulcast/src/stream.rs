//! Streaming stores: results that go to memory past the caches.
//!
//! An ordinary store first reads the line that it is about to overwrite. Where an output is too
//! large to be found in a cache afterwards, that read is a third of the traffic of `a + b`, and
//! half of that of a copy. So large outputs are computed a few lines at a time, which the compiler
//! keeps in registers where it can, and moved on with stores that do not read. Reading is mostly left
//! to the hardware, which does not always like to be helped: see [`Far`] and [`likes_help`].
//!
//! Stores take their turn: an ordinary one that follows waits until those before it have gone to memory, and the next
//! ones wait for it. So rows of two lines are written by one loop that keeps all in registers ([`Strip`]).
//!
//! Invariant of every call: source and destination are valid for that many bytes and do not overlap.

use std::mem::MaybeUninit;
use std::ptr;
use std::sync::OnceLock;

/// The bytes of a last-level cache: of a larger one, others use the rest. With debug assertions it is less, so
/// that tests come here with less.
const CACHE: usize = if cfg!(debug_assertions) { 8 << 20 } else { 32 << 20 };

/// Fewer bytes of results are not worth going past a cache, whatever there is of it.
pub(crate) const FEW: usize = CACHE / 8;

/// What is read and written stays in the last-level cache if it is no more than this.
fn cache() -> usize {
    static SIZE: OnceLock<usize> = OnceLock::new();
    *SIZE.get_or_init(|| largest_cache().map_or(CACHE, |bytes| bytes.min(CACHE)))
}

/// The size of the largest cache, where the processor says it.
fn largest_cache() -> Option<usize> {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        // Intel's leaf, and AMD's: alike, and without entries where the other is in use.
        let known = |&leaf: &u32| leaf <= cpuid(leaf & 0x8000_0000, 0).eax;
        let leaves = [4, 0x8000_001d].into_iter().filter(known);
        let caches = leaves.flat_map(|leaf| (0..8).map(move |at| cpuid(leaf, at)));
        let bytes = caches.filter(|found| matches!(found.eax & 31, 1 | 3)).map(|found| {
            let field = |from: u32, bits: u32| (found.ebx >> from & ((1 << bits) - 1)) as usize + 1;
            let set = field(0, 12) * field(12, 10) * field(22, 10);
            set.saturating_mul(found.ecx as usize + 1)
        });
        bytes.max()
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    None
}

/// What the processor says of itself.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[allow(unused_unsafe, reason = "needed by the oldest compiler that is supported")]
fn cpuid(leaf: u32, at: u32) -> std::arch::x86_64::CpuidResult {
    // SAFETY: every x86-64 has the instruction.
    unsafe { std::arch::x86_64::__cpuid_count(leaf, at) }
}

/// Of what is more, the share of the cache that results fill: whoever reads or writes those next finds them
/// there, and the rest goes past it.
const fn kept(cache: usize) -> usize {
    cache / 8 * 7
}

/// The bytes of neighbouring results that go the same way.
pub(crate) const STRETCH: usize = 1 << 16;

/// Which results are streamed. Where a cache has room for some, those are spread over all of the output:
/// then every thread writes to memory and to a cache at the same time, and each to its own.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Streams {
    /// The share that is not, of `1 << 32`.
    kept: u64,
}

impl Streams {
    pub(crate) const NONE: Self = Self { kept: 1 << 32 };

    /// A guess, for so many bytes. What is read goes through the cache too, and what it finds there of the last call is
    /// worth more than results that are: those are never waited for.
    pub(crate) fn guess(written: usize, read: usize) -> Self {
        let cache = cache();
        if written.saturating_add(read) <= cache {
            return Self::NONE;
        }
        let room = kept(cache).saturating_sub(read.saturating_mul(2)).min(written) as u64;
        // No overflow: there is less room than a cache has.
        Self { kept: (room << 32) / written.max(1) as u64 }
    }

    /// Whether so many bytes are about as many as a cache holds, so that a guess may be wrong.
    pub(crate) fn is_guess(written: usize, read: usize) -> bool {
        let (cache, all) = (cache(), written.saturating_add(read));
        // Elsewhere, no way goes past the caches.
        cfg!(all(target_arch = "x86_64", not(miri))) && cache / 8 * 5 < all && all <= cache / 2 * 5
    }

    /// How many halves stay, about.
    pub(crate) fn halves(self) -> usize {
        ((self.kept + (1 << 30)) >> 31) as usize
    }

    /// So many halves stay.
    pub(crate) fn of_halves(halves: usize) -> Self {
        Self { kept: (halves as u64) << 31 }
    }

    /// Whether any are.
    #[inline(always)]
    pub(crate) fn any(self) -> bool {
        self != Self::NONE
    }

    /// Whether all are.
    #[inline(always)]
    pub(crate) fn all(self) -> bool {
        self.kept == 0
    }

    /// Whether those at a place are.
    #[inline(always)]
    pub(crate) fn at<R>(self, out: *const R) -> bool {
        // Multiples of the golden ratio are spread evenly, and over all sets of a cache.
        const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
        let place = (out.addr() / STRETCH) as u64;
        place.wrapping_mul(GOLDEN) >> 32 >= self.kept
    }
}

/// The bytes of a line: what a streaming store should fill.
pub(crate) const LINE: usize = 64;

/// How many of some results come before the first that begins a vector: stores that cross lines take twice as long.
/// None where all are few.
#[inline(always)]
pub(crate) fn head<R>(out: *const R, len: usize) -> usize {
    const VECTOR: usize = 32;
    const FEW: usize = 1024;
    if len.saturating_mul(size_of::<R>()) < FEW { 0 } else { out.align_offset(VECTOR).min(len) }
}

/// Asks for a line, into a near cache; any address will do.
#[inline(always)]
pub(crate) fn prefetch<T>(at: *const T) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: every x86-64 has it, and it neither faults nor changes anything.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T1>(at.cast());
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = at;
}

/// Whether the hardware reads faster what it was asked for, in loops of a few instructions too. Intel's looks no further than
/// to the end of a page: from memory, it then takes up to a quarter less time, and from a last-level cache up to a
/// twentieth more. AMD's is slower for it.
#[inline]
pub(crate) fn likes_help() -> bool {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        static LIKES: OnceLock<bool> = OnceLock::new();
        *LIKES.get_or_init(|| {
            let maker = cpuid(0, 0);
            let name = [maker.ebx, maker.edx, maker.ecx].map(u32::to_le_bytes);
            name.as_flattened() == b"GenuineIntel"
        })
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    false
}

/// The operands that come from memory.
#[derive(Clone, Copy)]
pub(crate) struct Far {
    /// A bit for each.
    pub(crate) operands: usize,
    /// Whether several others move beside them, in the first-level cache.
    pub(crate) beside: bool,
}

impl Far {
    pub(crate) const NONE: Self = Self { operands: 0, beside: false };

    /// The operand to ask for ahead of time: among others that stay in the first-level cache, the
    /// hardware does not see that one comes from memory, and reads it late.
    #[inline(always)]
    pub(crate) fn only(self) -> Option<usize> {
        self.one().filter(|_| self.beside)
    }

    /// The operands to ask for where loops are light, a bit for each: all, where the hardware likes that, or the
    /// [only](Self::only) one, or one that is read beside another for results of a smaller size: then it is all that
    /// memory is busy with.
    #[inline(always)]
    pub(crate) fn asked(self, sizes: &[usize], size: usize) -> usize {
        let wide = |number: usize| sizes.len() == 2 && sizes[number] >= 2 * size;
        let one = self.one().is_some_and(|number| self.beside || wide(number));
        if one || likes_help() { self.operands } else { 0 }
    }

    /// The operand, where there is one.
    #[inline(always)]
    fn one(self) -> Option<usize> {
        self.operands.is_power_of_two().then(|| self.operands.trailing_zeros() as usize)
    }
}

/// Of what is left, the first part of about so many; few more are no part of their own.
#[inline(always)]
pub(crate) fn part(left: usize, about: usize) -> usize {
    if left <= about.saturating_add(about / 4) { left } else { about }
}

/// Rows of as many bytes, together, are asked for before they are folded. The rows that follow those of a task are
/// another's, and asking for them is worse than nothing where they lie in a cache of its own.
pub(crate) const FAR: usize = 4 << 20;

/// How far ahead [`ask_ahead`] asks, in bytes.
const AHEAD: usize = 16384;

/// Asks for what will be read some time after these bytes; for few lines at a time, since asking for
/// more than are on their way already holds up all that follows.
#[inline(always)]
pub(crate) fn ask_ahead(at: *const u8, bytes: usize) {
    for line in (0..bytes).step_by(LINE) {
        prefetch(at.wrapping_add(AHEAD + line));
    }
}

/// [`ask_ahead`] for some elements of operands, a bit for each.
#[inline(always)]
pub(crate) fn ask_for(
    operands: usize,
    ins: &[*const u8],
    sizes: &[usize],
    elements: std::ops::Range<usize>,
) {
    let mut left = operands;
    while left != 0 {
        let number = left.trailing_zeros() as usize;
        left &= left - 1;
        let at = ins[number].wrapping_add(elements.start * sizes[number]);
        ask_ahead(at, elements.len() * sizes[number]);
    }
}

/// Asks for the lines of a square, whose columns lie apart, a few at a time: nobody else would guess where they are,
/// and many at once would hold up what is written.
#[derive(Clone, Copy)]
pub(crate) struct Ask {
    /// The column, and how far it is to the next.
    column: *const u8,
    apart: isize,
    /// How far it is from line to line of a column, and how many there are.
    line: isize,
    lines: usize,
    /// How many of them were asked for.
    asked: usize,
    /// How many lines are asked for at a time.
    each: usize,
}

impl Ask {
    pub(crate) const NOTHING: Self =
        Self { column: ptr::null(), apart: 0, line: 0, lines: 0, asked: 0, each: 0 };

    /// For `columns` columns of `lines` lines, in so many times; strides are in bytes.
    #[inline(always)]
    pub(crate) fn new(
        column: *const u8,
        (columns, apart): (usize, isize),
        (lines, line): (usize, isize),
        times: usize,
    ) -> Self {
        let each = (columns * lines).div_ceil(times.max(1));
        Self { column, apart, line, lines, asked: 0, each }
    }

    /// What is left after so many times.
    #[inline(always)]
    pub(crate) fn after(self, times: usize) -> Self {
        let asked = self.asked + times * self.each;
        let columns = asked.checked_div(self.lines).unwrap_or(0);
        let column = self.column.wrapping_offset(columns.cast_signed() * self.apart);
        Self { column, asked: asked - columns * self.lines, ..self }
    }

    /// Asks for some.
    #[inline(always)]
    pub(crate) fn some(&mut self) {
        for _ in 0..self.each {
            prefetch(self.column.wrapping_offset(self.asked.cast_signed() * self.line));
            self.asked += 1;
            if self.asked == self.lines {
                self.asked = 0;
                self.column = self.column.wrapping_offset(self.apart);
            }
        }
    }
}

/// The bytes of results that [`results`] makes at a time: half of the vector registers of AVX2. Loops over fewer elements would
/// be unrolled before they are vectorised, and vectors put together from pieces.
const BLOCK: usize = 2 * ROW;

/// The bytes of a row of a strip: memory likes two lines better than one.
pub(crate) const ROW: usize = 2 * LINE;

/// Where results lie that are made one after the other: in rows.
pub(crate) struct Strip {
    /// How far it is from row to row, in bytes.
    pub(crate) pitch: isize,
    /// What is asked for before each.
    pub(crate) ask: Ask,
}

impl Strip {
    /// One row after the other, as in any run.
    pub(crate) const NONE: Self = Self { pitch: ROW.cast_signed(), ask: Ask::NOTHING };

    /// Whether rows follow each other.
    #[inline(always)]
    pub(crate) fn is_none(&self) -> bool {
        self.pitch == Self::NONE.pitch
    }

    /// Whether results that begin there, so many bytes, are whole blocks at lines.
    #[inline(always)]
    pub(crate) fn fits<R>(&self, out: *const R, bytes: usize) -> bool {
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
pub(crate) unsafe fn results<R, const WIDE: bool>(
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
pub(crate) unsafe fn line<const LONG: bool>(dst: *mut u8, line: &[u32; LINE / 4]) {
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
pub(crate) unsafe fn copy<const WIDE: bool>(dst: *mut u8, src: *const u8, bytes: usize) {
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
pub(crate) unsafe fn copy_strip<const WIDE: bool>(
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
pub(crate) unsafe fn edge(dst: *mut u8, src: *const u8, bytes: usize) {
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

    #[test]
    fn as_much_stays_in_a_cache_as_it_has_room_for() {
        let cache = cache();
        assert!(!Streams::guess(cache, 0).any() && !Streams::guess(cache / 2, cache / 2).any());
        // What is read takes all the room.
        assert!(Streams::guess(2 * cache, 2 * cache).all() && Streams::guess(usize::MAX, 0).all());
        let some = Streams::guess(2 * cache, 0);
        assert!(some.any() && !some.all());
        let stays = |at: &usize| !some.at(ptr::without_provenance::<u8>(*at));
        let stay = (0..2 * cache).step_by(STRETCH).filter(stays).count() * STRETCH;
        assert!(stay.abs_diff(kept(cache)) <= 4 * STRETCH, "{stay} bytes");
        assert_eq!([0, 1, 2].map(|halves| Streams::of_halves(halves).halves()), [0, 1, 2]);
        assert!(Streams::of_halves(0).all() && Streams::of_halves(2) == Streams::NONE);
    }

    #[test]
    #[cfg(all(target_arch = "x86_64", target_os = "linux", not(miri)))]
    fn the_largest_cache_is_as_large_as_the_system_says() {
        let size = |at: usize| {
            let path = format!("/sys/devices/system/cpu/cpu0/cache/index{at}/size");
            let text = std::fs::read_to_string(path).ok()?;
            text.trim().strip_suffix('K')?.parse::<usize>().ok()
        };
        // Containers may hide it.
        if let Some(largest) = (0..8).filter_map(size).max() {
            assert_eq!(largest_cache(), Some(largest << 10));
        }
    }

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
