//! The floor: the bytes that a case must read and write, moved as fast as this machine moves them, on every thread.
//!
//! Large cases rotate over copies of their arrays, as the engines do: several times the last-level cache, so that nothing
//! survives there from one call to the next. Some processors read faster with software prefetch, others slower, and
//! ordinary stores are faster than non-temporal ones where all fits a cache: the floor tries each, and keeps to the
//! fastest. A small case's floor is a plain copy on one thread.
//!
//! Where the output is allocated by the call, so is the floor's, in huge pages where the system gives them: the system's
//! own work on new memory is part of what must be done. Strings are not bytes in a row: their floor is a loop over vectors
//! of them, on every thread, that writes into strings that are there.
//!
//! NumPy asks for huge pages, Rust's allocator does not, and memory in huge pages is faster: what other processes do has
//! a floor of its own.

use std::mem::MaybeUninit;
use std::time::Instant;

use rayon::prelude::*;

use simulcast_bench::case::Case;
use simulcast_bench::measure::Task;
use simulcast_bench::rotation::{Rotation, count};

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
        _ if case.fresh => fresh(case, pages),
        _ => large(case, pages),
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

/// How bytes are moved.
#[derive(Clone, Copy)]
struct Way {
    prefetch: bool,
    /// Whether stores bypass the caches.
    nontemporal: bool,
}

/// On every thread. As the engines do, it takes copies of its arrays in turn, so that no call finds in the caches what the
/// call before left there.
fn large(case: &Case, pages: Pages) -> Task {
    let (read, written) = case.traffic();
    let one = |_| {
        let (source, mut target) = (filled(read, pages), filled(written, pages));
        target.clear();
        (source, target)
    };
    let mut arrays = Rotation::new((0..count(case)).map(one));
    fastest(move |way| {
        let (source, target) = arrays.turn();
        move_all(source, target.spare_capacity_mut(), way);
    })
}

/// [`large`] into memory that is new each time.
fn fresh(case: &Case, pages: Pages) -> Task {
    let (read, written) = case.traffic();
    let mut sources = Rotation::new((0..count(case)).map(|_| filled(read, pages)));
    fastest(move |way| {
        let mut target = empty(written, Pages::Huge);
        move_all(sources.turn(), target.spare_capacity_mut(), way);
        std::hint::black_box(&mut target);
    })
}

/// The fastest way, of prefetch or none and of both kinds of stores: all are tried in turn.
fn fastest(mut call: impl FnMut(Way) + 'static) -> Task {
    const TURNS: usize = 9;
    let ways = [(false, true), (true, true), (false, false), (true, false)];
    let ways = ways.map(|(prefetch, nontemporal)| Way { prefetch, nontemporal });
    let mut times = ways.map(|_| Vec::with_capacity(TURNS));
    for _ in 0..TURNS {
        for (times, way) in times.iter_mut().zip(ways) {
            let start = Instant::now();
            call(way);
            times.push(start.elapsed());
        }
    }
    let medians = times.map(|mut times| {
        times.sort();
        times[TURNS / 2]
    });
    let least = medians.iter().zip(ways).min_by_key(|(time, _)| **time);
    let way = least.map_or(ways[0], |(_, way)| way);
    Box::new(move || call(way))
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
fn move_all(source: &[u8], target: &mut [MaybeUninit<u8>], way: Way) {
    const PART: usize = 1 << 18;
    let parts = target.len().div_ceil(PART).max(source.len().div_ceil(PART)).max(1);
    let (from, to) = (source.len().div_ceil(parts).max(1), target.len().div_ceil(parts).max(1));
    let (mut sources, mut targets) = (source.chunks(from), target.chunks_mut(to));
    let mut ends = Vec::with_capacity(parts);
    for _ in 0..parts {
        ends.push((sources.next().unwrap_or(&[]), targets.next().unwrap_or(&mut [])));
    }
    let total: u64 = ends.into_par_iter().map(|(from, to)| part(from, to, way)).sum();
    std::hint::black_box(total);
}

/// Reads all of one and writes all of the other.
fn part(from: &[u8], to: &mut [MaybeUninit<u8>], way: Way) -> u64 {
    let common = from.len().min(to.len());
    let (head, rest) = to.split_at_mut(common);
    store(head, Some(&from[..common]), way);
    store(rest, None, Way { prefetch: false, ..way });
    sum(&from[common..], way.prefetch)
}

fn sum(bytes: &[u8], prefetch: bool) -> u64 {
    let all = bytes.chunks(4 * LINE).map(|some| {
        if prefetch {
            (0..some.len()).step_by(LINE).for_each(|line| prefetch_ahead(some.as_ptr(), line));
        }
        let (words, rest) = some.as_chunks::<8>();
        let add = |sum: u64, word: &[u8; 8]| sum.wrapping_add(u64::from_le_bytes(*word));
        words.iter().fold(0, add).wrapping_add(rest.iter().map(|&b| u64::from(b)).sum())
    });
    all.fold(0, u64::wrapping_add)
}

/// The bytes of a cache line.
const LINE: usize = 64;

/// Prefetches what comes some time after a place.
fn prefetch_ahead(from: *const u8, at: usize) {
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

/// Writes the source, or a constant, to the target.
fn store(target: &mut [MaybeUninit<u8>], source: Option<&[u8]>, way: Way) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{
            __m128i, _mm_loadu_si128, _mm_set1_epi8, _mm_sfence, _mm_store_si128, _mm_stream_si128,
        };
        // SAFETY: room for bytes is room for vectors of them.
        let (head, vectors, tail) = unsafe { target.align_to_mut::<MaybeUninit<__m128i>>() };
        // The few bytes around the vectors are not worth a vector.
        head.iter_mut().chain(tail).for_each(|byte| {
            byte.write(3);
        });
        let head = head.len();
        for (at, vector) in vectors.iter_mut().enumerate() {
            let first = way.prefetch && (16 * at).is_multiple_of(LINE);
            if let Some(source) = source.filter(|_| first) {
                prefetch_ahead(source.as_ptr(), head + 16 * at);
            }
            // SAFETY: the vector is aligned, the source is as long as the target, and every x86-64 has these instructions.
            unsafe {
                let value = match source {
                    Some(source) => _mm_loadu_si128(source.as_ptr().add(head + 16 * at).cast()),
                    None => _mm_set1_epi8(3),
                };
                if way.nontemporal {
                    _mm_stream_si128(vector.as_mut_ptr(), value);
                } else {
                    _mm_store_si128(vector.as_mut_ptr(), value);
                }
            }
        }
        // SAFETY: every x86-64 has it.
        unsafe { _mm_sfence() };
    }
    #[cfg(not(target_arch = "x86_64"))]
    for (at, byte) in target.iter_mut().enumerate() {
        let _ = way;
        byte.write(source.map_or(3, |source| source[at]));
    }
}
