//! What a call costs beyond its parts: the median of empty calls that follow each other, whose helpers are awake; of calls
//! a millisecond apart, whose helpers sleep; and of sums of an array that fits into a cache.

#![allow(clippy::print_stdout, reason = "it is a program")]

use std::hint::black_box;
use std::thread::sleep;
use std::time::{Duration, Instant};

use simulcast_threads::{SendPtr, for_each_part, set_threads, share};

const PARTS: usize = 16;

fn main() {
    println!("threads  awake ns  asleep ns  sum of 131,072 f32, ns");
    for threads in [1, 2, 3, 8, 16] {
        set_threads(threads);
        let empty = || for_each_part(PARTS * threads, None, &|part| _ = black_box(part));
        let awake = median(20_000, Duration::ZERO, empty);
        let asleep = median(500, Duration::from_millis(1), empty);
        let array = vec![1_f32; 1 << 17];
        let sum = median(5_000, Duration::ZERO, || _ = black_box(sum(&array, threads)));
        println!("{threads:7} {awake:9} {asleep:10} {sum:12}");
    }
}

/// The sum, by parts.
fn sum(array: &[f32], threads: usize) -> f32 {
    let mut sums = [0_f32; 64];
    let (parts, out) = ((2 * threads).min(sums.len()), SendPtr::new(sums.as_mut_ptr()));
    for_each_part(parts, None, &|part| {
        let own = &array[share(array.len(), part, parts)..share(array.len(), part + 1, parts)];
        let (lanes, _) = own.as_chunks::<16>();
        let mut sums = [0_f32; 16];
        for lane in lanes {
            sums.iter_mut().zip(lane).for_each(|(sum, &value)| *sum += value);
        }
        // SAFETY: there are at least as many sums as parts, and each part has its own.
        unsafe { out.get().add(part).write(sums.iter().sum()) };
    });
    sums.iter().sum()
}

/// The median time of a call, in nanoseconds.
fn median(calls: usize, pause: Duration, call: impl Fn()) -> u128 {
    let mut times: Vec<u128> = (0..calls)
        .map(|_| {
            if !pause.is_zero() {
                sleep(pause);
            }
            let start = Instant::now();
            call();
            start.elapsed().as_nanos()
        })
        .collect();
    times.sort_unstable();
    times[calls / 2]
}
