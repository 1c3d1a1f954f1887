//! The floor: the bytes that a case must read and write, moved as fast as this machine moves them,
//! with streaming stores, on every thread.
//!
//! A small case's floor is a plain copy on one thread. Where the output is allocated by the call,
//! so is the floor's, in huge pages where the system gives them: the system's own work on new
//! memory is part of what must be done. Strings are not bytes in a row: their floor is a loop over
//! vectors of them, on every thread, that writes into strings that are there.
//!
//! Some processors read faster what they are asked for ahead of time, and others slower: the floor tries both, and keeps to
//! what is faster.
//!
//! NumPy asks for huge pages, Rust's allocator does not, and memory in huge pages is faster: what
//! other processes do has a floor of its own.

use std::mem::MaybeUninit;
use std::time::Instant;

use rayon::prelude::*;

use simulcast_bench::case::Case;
use simulcast_bench::measure::Task;

/// Which pages the floor's memory is in.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pages {
    /// Those of Rust's allocator.
    Plain,
    /// Huge ones where the system gives them, as NumPy asks for.
    Huge,
}

/// The floor of a case.
pub(crate) fn of(case: &Case, pages: Pages) -> Task {
    let (read, written) = case.traffic();
    match case.element.as_str() {
        "string" => strings(case),
        _ if read + written < 4 << 20 => small(read, written),
        _ if case.fresh => fresh(read, written, pages),
        _ => large(read, written, pages),
    }
}

/// Copies strings, each to a stretch of the output.
fn strings(case: &Case) -> Task {
    let count = |shape: &[usize]| shape.iter().product::<usize>().max(1);
    let (few, many) = (count(&case.shapes[0]), count(&case.output()));
    let source: Vec<String> = (0..few).map(|n| format!("text {}", n % 97)).collect();
    let mut target = vec![source[0].clone(); many];
    Box::new(move || {
        let parts = target.par_chunks_mut(many / few).zip(&source);
        parts.for_each(|(part, text)| part.iter_mut().for_each(|one| one.clone_from(text)));
        std::hint::black_box(&mut target);
    })
}

/// On one thread, within caches. Not by what copies memory in the C library: where source and target lie at like places of
/// their pages, that takes 15 times as long.
fn small(read: usize, written: usize) -> Task {
    let (source, mut target) = (vec![1_u8; read], vec![0_u8; written]);
    Box::new(move || {
        let common = read.min(written);
        target.iter_mut().zip(&source).for_each(|(to, from)| *to = from ^ 1);
        target[common..].fill(3);
        std::hint::black_box((&mut target, sum(&source[common..], false)));
    })
}

/// On every thread, past the caches.
fn large(read: usize, written: usize, pages: Pages) -> Task {
    let (source, mut target) = (filled(read, pages), filled(written, pages));
    target.clear();
    faster(move |asks| move_all(&source, target.spare_capacity_mut(), asks))
}

/// [`large`] into memory that is new each time.
fn fresh(read: usize, written: usize, pages: Pages) -> Task {
    let source = filled(read, pages);
    faster(move |asks| {
        let mut target = empty(written, Pages::Huge);
        move_all(&source, target.spare_capacity_mut(), asks);
        std::hint::black_box(&mut target);
    })
}

/// The faster way, of asking for memory ahead of time and not: both are tried in turn.
fn faster(mut way: impl FnMut(bool) + 'static) -> Task {
    const TURNS: usize = 9;
    let mut medians = [false, true].map(|_| Vec::with_capacity(TURNS));
    for _ in 0..TURNS {
        for (times, asks) in medians.iter_mut().zip([false, true]) {
            let start = Instant::now();
            way(asks);
            times.push(start.elapsed());
        }
    }
    let [plain, asked] = medians.map(|mut times| {
        times.sort();
        times[TURNS / 2]
    });
    Box::new(move || way(asked < plain))
}

fn filled(bytes: usize, pages: Pages) -> Vec<u8> {
    let mut memory = empty(bytes, pages);
    memory.resize(bytes, 1);
    memory
}

/// New memory.
fn empty(bytes: usize, pages: Pages) -> Vec<u8> {
    let memory: Vec<u8> = Vec::with_capacity(bytes);
    #[cfg(target_os = "linux")]
    if pages == Pages::Huge {
        unsafe extern "C" {
            fn madvise(start: *mut std::ffi::c_void, length: usize, advice: i32) -> i32;
        }
        const HUGE: usize = 2 << 20;
        const MADV_HUGEPAGE: i32 = 14;
        let start = memory.as_ptr();
        let skip = start.align_offset(HUGE).min(bytes);
        // SAFETY: the range lies within the vector's own memory and begins at a page; the advice
        // changes no contents.
        unsafe {
            madvise(start.add(skip).cast_mut().cast(), (bytes - skip) / HUGE * HUGE, MADV_HUGEPAGE)
        };
    }
    #[cfg(not(target_os = "linux"))]
    let _ = pages;
    memory
}

/// Reads all of one and writes all of the other, on every thread.
fn move_all(source: &[u8], target: &mut [MaybeUninit<u8>], asks: bool) {
    const PART: usize = 1 << 18;
    let parts = target.len().div_ceil(PART).max(source.len().div_ceil(PART)).max(1);
    let (from, to) = (source.len().div_ceil(parts).max(1), target.len().div_ceil(parts).max(1));
    let (mut sources, mut targets) = (source.chunks(from), target.chunks_mut(to));
    let mut ends = Vec::with_capacity(parts);
    for _ in 0..parts {
        ends.push((sources.next().unwrap_or(&[]), targets.next().unwrap_or(&mut [])));
    }
    let total: u64 = ends.into_par_iter().map(|(from, to)| part(from, to, asks)).sum();
    std::hint::black_box(total);
}

/// Reads all of one and writes all of the other.
fn part(from: &[u8], to: &mut [MaybeUninit<u8>], asks: bool) -> u64 {
    let common = from.len().min(to.len());
    let (head, rest) = to.split_at_mut(common);
    stream(head, Some(&from[..common]), asks);
    stream(rest, None, false);
    sum(&from[common..], asks)
}

fn sum(bytes: &[u8], asks: bool) -> u64 {
    let all = bytes.chunks(4 * LINE).map(|some| {
        if asks {
            (0..some.len()).step_by(LINE).for_each(|line| ask_ahead(some.as_ptr(), line));
        }
        let (words, rest) = some.as_chunks::<8>();
        let add = |sum: u64, word: &[u8; 8]| sum.wrapping_add(u64::from_le_bytes(*word));
        words.iter().fold(0, add).wrapping_add(rest.iter().map(|&b| u64::from(b)).sum())
    });
    all.fold(0, u64::wrapping_add)
}

/// The bytes of a line.
const LINE: usize = 64;

/// Asks for what comes some time after a place.
fn ask_ahead(from: *const u8, at: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        const AHEAD: usize = 16 << 10;
        // SAFETY: every x86-64 has it, and it neither faults nor changes anything.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(from.wrapping_add(at + AHEAD).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (from, at);
}

/// Streams the source, or a constant, into the target.
fn stream(target: &mut [MaybeUninit<u8>], source: Option<&[u8]>, asks: bool) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{
            __m128i, _mm_loadu_si128, _mm_set1_epi8, _mm_sfence, _mm_stream_si128,
        };
        // SAFETY: room for bytes is room for vectors of them.
        let (head, lines, tail) = unsafe { target.align_to_mut::<MaybeUninit<__m128i>>() };
        // The few bytes around the vectors are not worth a stream.
        head.iter_mut().chain(tail).for_each(|byte| {
            byte.write(3);
        });
        let head = head.len();
        for (at, line) in lines.iter_mut().enumerate() {
            if let Some(source) = source.filter(|_| asks && (16 * at).is_multiple_of(LINE)) {
                ask_ahead(source.as_ptr(), head + 16 * at);
            }
            // SAFETY: the line is aligned, the source is as long as the target, and every x86-64
            // has these instructions.
            unsafe {
                let value = match source {
                    Some(source) => _mm_loadu_si128(source.as_ptr().add(head + 16 * at).cast()),
                    None => _mm_set1_epi8(3),
                };
                _mm_stream_si128(line.as_mut_ptr(), value);
            }
        }
        // SAFETY: every x86-64 has it.
        unsafe { _mm_sfence() };
    }
    #[cfg(not(target_arch = "x86_64"))]
    for (at, byte) in target.iter_mut().enumerate() {
        let _ = asks;
        byte.write(source.map_or(3, |source| source[at]));
    }
}
