//! The floor: the bytes that a case must read and write, moved as fast as this machine moves them,
//! with streaming stores, on every thread. A small case's floor is a plain copy on one thread.

use rayon::prelude::*;

use crate::measure::Task;

/// A task that reads and writes that many bytes.
pub(crate) fn floor(read: usize, written: usize) -> Task {
    let source = vec![1_u8; read];
    let mut target = vec![0_u8; written];
    if written + read < 4 << 20 {
        return Box::new(move || {
            let common = read.min(written);
            target[..common].copy_from_slice(&source[..common]);
            target[common..].fill(3);
            std::hint::black_box((&mut target, sum(&source[common..])));
        });
    }
    Box::new(move || {
        const PART: usize = 1 << 18;
        let parts = written.div_ceil(PART).max(read.div_ceil(PART)).max(1);
        let (from, to) = (read.div_ceil(parts).max(1), written.div_ceil(parts).max(1));
        let empty: &[u8] = &[];
        let mut ends: Vec<(&[u8], &mut [u8])> = Vec::with_capacity(parts);
        let mut sources = source.chunks(from);
        let mut targets = target.chunks_mut(to);
        for _ in 0..parts {
            ends.push((sources.next().unwrap_or(empty), targets.next().unwrap_or(&mut [])));
        }
        let total: u64 = ends.into_par_iter().map(|(from, to)| part(from, to)).sum();
        std::hint::black_box(total);
    })
}

/// Reads all of one and writes all of the other.
fn part(from: &[u8], to: &mut [u8]) -> u64 {
    let common = from.len().min(to.len());
    let (head, rest) = to.split_at_mut(common);
    stream(head, Some(&from[..common]));
    stream(rest, None);
    sum(&from[common..])
}

fn sum(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let words = words.iter().fold(0_u64, |sum, word| sum.wrapping_add(u64::from_le_bytes(*word)));
    words.wrapping_add(rest.iter().map(|&b| u64::from(b)).sum())
}

/// Streams the source, or a constant, into the target.
fn stream(target: &mut [u8], source: Option<&[u8]>) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{
            __m128i, _mm_loadu_si128, _mm_set1_epi8, _mm_sfence, _mm_stream_si128,
        };
        // SAFETY: any bytes are a valid vector of integers.
        let (head, lines, _) = unsafe { target.align_to_mut::<__m128i>() };
        let head = head.len();
        for (at, line) in lines.iter_mut().enumerate() {
            // SAFETY: the line is aligned, the source is as long as the target, and every x86-64
            // has these instructions.
            unsafe {
                let value = match source {
                    Some(source) => _mm_loadu_si128(source.as_ptr().add(head + 16 * at).cast()),
                    None => _mm_set1_epi8(3),
                };
                _mm_stream_si128(line, value);
            }
        }
        // SAFETY: every x86-64 has it.
        unsafe { _mm_sfence() };
    }
    #[cfg(not(target_arch = "x86_64"))]
    match source {
        Some(source) => target.copy_from_slice(source),
        None => target.fill(3),
    }
}
