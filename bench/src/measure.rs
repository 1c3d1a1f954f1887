//! Measuring: as often as fits in the time, the best and the median.

use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

/// What is measured: one call is one run of the case.
pub type Task = Box<dyn FnMut()>;

/// Seconds a run.
pub struct Measured {
    pub best: f64,
    pub median: f64,
}

impl Measured {
    /// What several rounds come to: the best of them, and what half of them stay below.
    pub fn over<'m>(rounds: impl Iterator<Item = &'m Self> + Clone) -> Self {
        let best = rounds.clone().map(|one| one.best).fold(f64::INFINITY, f64::min);
        Self { best, median: median(rounds.map(|one| one.median).collect()).unwrap_or(best) }
    }
}

/// What half of them stay below, where there are any.
pub fn median(mut all: Vec<f64>) -> Option<f64> {
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2).copied()
}

/// Runs a task for about that many seconds; tiny tasks are timed in batches.
pub fn measure(seconds: f64, task: &mut Task) -> Measured {
    task();
    let start = Instant::now();
    task();
    let once = start.elapsed().max(Duration::from_nanos(20)).as_secs_f64();
    let batch = ((20e-6 / once) as usize).max(1);
    let mut times = Vec::new();
    let begin = Instant::now();
    while times.len() < 2 || (begin.elapsed().as_secs_f64() < seconds && times.len() < 20_000) {
        let start = Instant::now();
        for _ in 0..batch {
            task();
        }
        times.push(start.elapsed().as_secs_f64() / batch as f64);
    }
    times.sort_by(f64::total_cmp);
    Measured { best: times[0], median: times[times.len() / 2] }
}

/// The median of the seconds a call, of calls for about that many seconds, after one that brings everything to where
/// this process left it.
pub fn turn(seconds: f64, task: &mut Task) -> f64 {
    /// Clocks are read at most this often.
    const BATCH_SECONDS: f64 = 10e-6;
    let timed = |batch: usize, task: &mut Task| {
        let start = Instant::now();
        for _ in 0..batch {
            task();
        }
        start.elapsed().as_secs_f64()
    };
    let begin = Instant::now();
    task();
    let mut batch = 1;
    while timed(batch, task) < BATCH_SECONDS {
        batch *= 2;
    }
    let mut times = vec![timed(batch, task) / batch as f64];
    while begin.elapsed().as_secs_f64() < seconds {
        times.push(timed(batch, task) / batch as f64);
    }
    median(times).unwrap_or(f64::NAN)
}

/// How many cores that many threads have at the moment: two of them on one core share its divider. On machines that
/// are shared, this changes within seconds, and with it what speed there is to be had.
pub fn cores(threads: usize) -> f64 {
    const ROUNDS: usize = 20_000;
    let divide = || {
        let start = Instant::now();
        let mut quotients = [1.1_f64; 8];
        for _ in 0..ROUNDS {
            for quotient in &mut quotients {
                *quotient = 3.7 / *quotient;
            }
            std::hint::black_box(&mut quotients);
        }
        start.elapsed().as_secs_f64()
    };
    let slowest = |threads: usize| {
        let begin = Barrier::new(threads);
        let one = || {
            begin.wait();
            divide()
        };
        thread::scope(|scope| {
            let all: Vec<_> = (0..threads).map(|_| scope.spawn(one)).collect();
            all.into_iter().filter_map(|one| one.join().ok()).fold(0.0, f64::max)
        })
    };
    // The best of some, since others come between.
    let best = |threads| (0..5).map(|_| slowest(threads)).fold(f64::INFINITY, f64::min);
    (threads as f64 * best(1) / best(threads)).min(threads as f64)
}
