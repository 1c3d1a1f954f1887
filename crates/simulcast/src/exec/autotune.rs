//! Habits: which share of large results a call leaves in the last-level cache, by what was fastest the last times.
//!
//! How much of that cache is ours, nobody says: where machines are shared it changes within seconds. For results about
//! as large, leaving them there takes three quarters of the time of moving them past it, or half as long again. So calls
//! that come back are timed, and now and then another way is tried: soon at first, and less often as long as
//! nothing changes. Results are the same either way.

use std::cmp::Ordering;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Mutex;
use std::time::Instant;

use simulcast_kernels::cpu::nontemporal::Streams;

/// The ways: nothing stays in the cache, half of all, or all.
const WAYS: usize = 3;

/// A way takes this share of another's time, or it is not worth a change.
const WORTH: f32 = 0.97;

/// The calls of a trial. The first finds the caches as another way left them, and does not count.
const TRIAL: u32 = 3;

/// A trial ends with its first call if that takes so many times as long as others do.
const HOPELESS: f32 = 1.5;

/// The calls between trials, at first and at most.
const REST: [u32; 2] = [4, 256];

/// Calls of the usual way that a trial is compared with.
const RECENT: usize = 4;

/// A call that comes back.
#[derive(Clone, Copy)]
struct Habit {
    /// Which call it is.
    key: u64,
    /// The way that it usually takes, and how many ways further the next one to try is.
    way: usize,
    further: usize,
    /// How many calls come before the next trial, and how many there were since the last.
    rest: u32,
    calls: u32,
    /// The seconds of the last calls, and the least of the trial.
    recent: [f32; RECENT],
    trial: f32,
}

impl Habit {
    const fn new(key: u64, way: usize) -> Self {
        let recent = [f32::INFINITY; RECENT];
        Self { key, way, further: 1, rest: REST[0], calls: 0, recent, trial: f32::INFINITY }
    }

    /// The way to try.
    fn other(&self) -> usize {
        (self.way + self.further) % WAYS
    }

    /// The way of the next call.
    fn next(&self) -> usize {
        if self.calls < self.rest { self.way } else { self.other() }
    }

    /// A call of that way took so long.
    fn learn(&mut self, way: usize, seconds: f32) {
        if way != self.next() {
            // Somebody else has made the same call meanwhile.
            return;
        }
        let usual = self.recent.into_iter().fold(f32::INFINITY, f32::min);
        let mut tried = false;
        match self.calls.cmp(&self.rest) {
            Ordering::Less => self.recent[self.calls as usize % RECENT] = seconds,
            Ordering::Equal => tried = seconds > usual * HOPELESS,
            Ordering::Greater => self.trial = self.trial.min(seconds),
        }
        self.calls += 1;
        if !tried && self.calls < self.rest + TRIAL {
            return;
        }
        if self.trial < usual * WORTH {
            *self = Self { further: self.further, ..Self::new(self.key, self.other()) };
            return;
        }
        self.further = WAYS - self.further;
        self.rest = (self.rest * 2).min(REST[1]);
        (self.calls, self.trial) = (0, f32::INFINITY);
    }
}

/// The last calls, each at a place that its key says.
static HABITS: Mutex<[Habit; 64]> = Mutex::new([Habit::new(0, 0); 64]);

/// Does something with the place of a key, unless another thread is there.
fn at<R>(key: u64, act: impl FnOnce(&mut Habit) -> R) -> Option<R> {
    let mut habits = HABITS.try_lock().ok()?;
    let place = key as usize % habits.len();
    Some(act(&mut habits[place]))
}

/// The way that a call takes, from when it began; when it is dropped, the call is over.
pub(crate) struct Taken {
    key: u64,
    way: usize,
    begun: Instant,
}

impl Taken {
    /// For a call that is told from others by `what`, and a first guess.
    #[inline(never)]
    pub(crate) fn new(what: &impl Hash, guess: Streams) -> (Streams, Option<Self>) {
        let mut hasher = DefaultHasher::new();
        what.hash(&mut hasher);
        let (key, way) = (hasher.finish(), guess.halves());
        let next = at(key, |habit| {
            if habit.key != key {
                *habit = Habit::new(key, way);
            }
            habit.next()
        });
        let taken = next.map(|way| Self { key, way, begun: Instant::now() });
        (next.map_or(guess, Streams::of_halves), taken)
    }
}

impl Drop for Taken {
    #[inline(never)]
    fn drop(&mut self) {
        // A closure that panicked says nothing of how long it takes.
        if std::thread::panicking() {
            return;
        }
        let seconds = self.begun.elapsed().as_secs_f32();
        at(self.key, |habit| {
            if habit.key == self.key {
                habit.learn(self.way, seconds);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The ways that so many calls take, where each takes so many seconds.
    fn calls(habit: &mut Habit, count: usize, seconds: [f32; WAYS]) -> [usize; WAYS] {
        let mut taken = [0; WAYS];
        for _ in 0..count {
            let way = habit.next();
            taken[way] += 1;
            habit.learn(way, seconds[way]);
        }
        taken
    }

    #[test]
    fn the_fastest_way_is_found_within_a_few_calls() {
        for first in 0..WAYS {
            for fastest in 0..WAYS {
                let mut habit = Habit::new(1, first);
                let mut seconds = [1.0; WAYS];
                seconds[fastest] = 0.8;
                calls(&mut habit, 40, seconds);
                assert_eq!(habit.way, fastest, "from {first}");
                let taken = calls(&mut habit, 1000, seconds);
                assert!(taken[fastest] > 940, "from {first}: {taken:?}");
            }
        }
    }

    #[test]
    fn a_way_that_becomes_slow_is_left() {
        let mut habit = Habit::new(1, 2);
        calls(&mut habit, 1000, [1.0, 0.9, 0.7]);
        assert_eq!(habit.way, 2);
        calls(&mut habit, 600, [1.0, 1.2, 1.5]);
        assert_eq!(habit.way, 0);
        // All being slower, or faster, is no reason.
        for times in [2.0, 0.5] {
            for _ in 0..600 {
                calls(&mut habit, 1, [1.0, 1.2, 1.5].map(|seconds| seconds * times));
                assert_eq!(habit.way, 0);
            }
        }
    }

    #[test]
    fn a_call_that_was_held_up_changes_nothing() {
        let mut habit = Habit::new(1, 0);
        for turn in 0..2000 {
            let way = habit.next();
            let held = if turn % 3 == 0 { 10.0 } else { 1.0 };
            habit.learn(way, [1.0, 1.1, 1.2][way] * held);
            assert_eq!(habit.way, 0, "after {turn} calls");
        }
    }

    #[test]
    fn a_way_without_hope_is_tried_with_one_call() {
        let mut habit = Habit::new(1, 2);
        let taken = calls(&mut habit, 5, [9.0, 9.0, 1.0]);
        assert_eq!((taken, habit.next()), ([1, 0, 4], 2));
    }

    #[test]
    fn a_call_that_another_thread_overtook_is_not_counted() {
        let mut habit = Habit::new(1, 0);
        calls(&mut habit, 4, [1.0; WAYS]);
        assert_eq!(habit.next(), 1);
        habit.learn(0, 0.1);
        assert_eq!((habit.calls, habit.way), (4, 0));
    }
}
