//! Measuring: as often as fits in the time, the best and the median.

use std::time::{Duration, Instant};

/// What is measured: one call is one run of the case.
pub(crate) type Task = Box<dyn FnMut()>;

/// Seconds a run.
pub(crate) struct Measured {
    pub(crate) best: f64,
    pub(crate) median: f64,
}

impl Measured {
    /// The best of both, and the median between them.
    pub(crate) fn and(self, other: &Self) -> Self {
        Self { best: self.best.min(other.best), median: f64::midpoint(self.median, other.median) }
    }
}

/// Runs tasks for about that many seconds each, in turn: what else the machine does for a while,
/// it does to all of them.
pub(crate) fn in_turn(seconds: f64, tasks: &mut [Task]) -> Vec<Measured> {
    const ROUNDS: usize = 4;
    let round = |tasks: &mut [Task]| -> Vec<Measured> {
        tasks.iter_mut().map(|task| measure(seconds / ROUNDS as f64, task)).collect()
    };
    let mut all = round(tasks);
    for _ in 1..ROUNDS {
        let more = round(tasks);
        all = all.into_iter().zip(&more).map(|(one, more)| one.and(more)).collect();
    }
    all
}

/// Runs a task for about that many seconds; tiny tasks are timed in batches.
fn measure(seconds: f64, task: &mut Task) -> Measured {
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
