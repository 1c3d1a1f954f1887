//! Threads: rayon's, or a pool of `SIMULCAST_NUM_THREADS`, started when first needed.
//!
//! Who calls works too: the parts are taken by the caller and by whoever of the pool comes to help, so
//! that a call never waits for a thread to wake up. What is left for helpers that come late is nothing.
//! Who has helped stays awake for a moment, in a [`Seat`], since calls often follow each other: waking a
//! thread takes as long as adding a hundred thousand numbers.
//!
//! Each begins with a range of parts of its own, the same one in every call, and goes on with what is
//! left of the others: so a thread finds in its caches what it left there, and caches that only some
//! threads share do not hand lines to each other.
//!
//! Invariant of a [`Team`]: its work is called for a part that was taken and is not finished, and the
//! caller, who owns the work, does not return before all parts are finished.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::Thread;
use std::time::{Duration, Instant};

use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::layout::partition::share;

/// Fewer elements than this are not worth another thread.
pub(crate) const PART: usize = 1 << 16;

/// Parts a thread: many, so that a thread that is slower than others, or was held up, does not hold up those.
const PARTS: usize = 16;

/// The pool that `SIMULCAST_NUM_THREADS` asks for; else rayon's own.
fn pool() -> Option<&'static ThreadPool> {
    static POOL: OnceLock<Option<ThreadPool>> = OnceLock::new();
    let start = || {
        let threads = wanted(std::env::var("SIMULCAST_NUM_THREADS").ok().as_deref())?;
        let name = |n| format!("simulcast-{n}");
        ThreadPoolBuilder::new().num_threads(threads).thread_name(name).build().ok()
    };
    POOL.get_or_init(start).as_ref()
}

/// More threads than any machine runs; starting them takes time that grows with their square.
const MOST: usize = 1 << 10;

/// The number that a text names: at least 1.
fn wanted(text: Option<&str>) -> Option<usize> {
    let threads: usize = text?.trim().parse().ok()?;
    (threads > 0).then_some(threads.min(MOST))
}

fn threads() -> usize {
    pool().map_or_else(rayon::current_num_threads, ThreadPool::current_num_threads)
}

/// How many parts to make of `len` elements, on at most `limit` threads if that is said.
pub(crate) fn parts(len: usize, limit: Option<usize>) -> usize {
    let most = (len / PART).max(1);
    if most == 1 || limit == Some(1) {
        return 1;
    }
    match threads().min(limit.unwrap_or(usize::MAX)) {
        0 | 1 => 1,
        threads => most.min(threads * PARTS),
    }
}

/// Does each part, here and on the pool, on at most `limit` threads if that is said; a panic in one comes
/// out here.
pub(crate) fn each(parts: usize, limit: Option<usize>, work: impl Fn(usize) + Sync) {
    let helpers = threads().min(limit.unwrap_or(parts)).min(parts).saturating_sub(1);
    if helpers == 0 {
        return (0..parts).for_each(work);
    }
    let work: *const (dyn Fn(usize) + Sync + '_) = &raw const work;
    // SAFETY: only the lifetime changes, and the invariant keeps calls within it.
    let work: *const (dyn Fn(usize) + Sync) = unsafe { std::mem::transmute(work) };
    let team = Arc::new(Team::new(work, parts, helpers + 1));
    // Threads of a pool that is not ours to keep awake do not stay.
    let seats = rayon::current_thread_index().is_none().then(seats);
    summon(&team, helpers - seats.map_or(0, |seats| seat(seats, &team, helpers)), seats);
    team.help();
    team.wait();
    if let Some(panic) = team.panic.lock().unwrap_or_else(PoisonError::into_inner).take() {
        resume_unwind(panic);
    }
}

/// Calls for helpers. Waking one takes as long as some work does, so that the first half of them is left
/// to the first of them, and so on.
fn summon(team: &Arc<Team>, helpers: usize, seats: Option<&'static [Seat]>) {
    let mut left = helpers;
    while left > 0 && !team.is_taken() {
        let others = left / 2;
        left -= others + 1;
        let team = Arc::clone(team);
        let help = move || {
            summon(&team, others, seats);
            team.help();
            let own = rayon::current_thread_index().and_then(|thread| seats?.get(thread));
            if let Some(seat) = own {
                seat.stay(team);
            }
        };
        match pool() {
            Some(pool) => pool.spawn(help),
            None => rayon::spawn(help),
        }
    }
}

/// Where a thread of the pool waits awake for the next call.
#[repr(align(64))]
#[derive(Default)]
struct Seat(AtomicPtr<Team>);

/// One for each thread of the pool.
fn seats() -> &'static [Seat] {
    static SEATS: OnceLock<Box<[Seat]>> = OnceLock::new();
    SEATS.get_or_init(|| (0..threads()).map(|_| Seat::default()).collect())
}

/// Hands work to at most so many of those who wait, always in the same order; says to how many. Who has
/// just ended the last work is about to sit down.
fn seat(seats: &[Seat], team: &Arc<Team>, helpers: usize) -> usize {
    const TURNS: usize = 64;
    let mut handed = 0;
    for _ in 0..TURNS {
        handed += seats.iter().filter(|seat| seat.hand(team)).take(helpers - handed).count();
        if handed == helpers || seats.iter().all(Seat::is_empty) {
            break;
        }
        std::hint::spin_loop();
    }
    handed
}

impl Seat {
    /// How long one waits: longer than a caller in a loop takes between two calls.
    const STAY: Duration = Duration::from_micros(200);

    /// What lies there where a thread waits, and nothing does yet.
    const FREE: *mut Team = ptr::without_provenance_mut(1);

    /// Whether nobody belongs there now, waiting or at work.
    fn is_empty(&self) -> bool {
        self.0.load(Ordering::Relaxed).is_null()
    }

    /// Hands work to who waits there, if anybody does.
    fn hand(&self, team: &Arc<Team>) -> bool {
        if self.0.load(Ordering::Relaxed) != Self::FREE {
            return false;
        }
        let work = Arc::into_raw(Arc::clone(team)).cast_mut();
        let orders = (Ordering::Release, Ordering::Relaxed);
        let handed = self.0.compare_exchange(Self::FREE, work, orders.0, orders.1).is_ok();
        if !handed {
            // SAFETY: it is the one from above, which nobody else has seen.
            drop(unsafe { Arc::from_raw(work) });
        }
        handed
    }

    /// Stays here after work, and does what is handed over for as long as anything is.
    fn stay(&self, mut last: Arc<Team>) {
        loop {
            self.0.store(Self::FREE, Ordering::Relaxed);
            let Some(team) = self.wait(&last) else { return };
            team.help();
            last = team;
        }
    }

    /// Waits for the work that follows the last.
    fn wait(&self, last: &Team) -> Option<Arc<Team>> {
        const TURNS: usize = 64;
        let mut until = Instant::now() + Self::STAY;
        let mut ended = false;
        loop {
            for _ in 0..TURNS {
                let work = self.0.load(Ordering::Acquire);
                if work != Self::FREE {
                    // SAFETY: `hand` put it there, and nobody else takes it away.
                    return Some(unsafe { Arc::from_raw(work) });
                }
                std::hint::spin_loop();
            }
            let now = Instant::now();
            if !ended && last.left.load(Ordering::Relaxed) == 0 {
                // Only now may the caller call again.
                (ended, until) = (true, now + Self::STAY);
            }
            let leave = || {
                let order = Ordering::Relaxed;
                self.0.compare_exchange(Self::FREE, ptr::null_mut(), order, order).is_ok()
            };
            if now >= until && leave() {
                return None;
            }
            std::thread::yield_now();
        }
    }
}

/// Parts that one thread begins with.
#[repr(align(64))]
struct Range {
    /// Whether one has.
    taken: AtomicBool,
    /// The next part to take.
    next: AtomicUsize,
    end: usize,
}

/// Work in parts, and who has taken which.
struct Team {
    /// A pointer, since helpers that come late keep it longer than there is anything behind it.
    work: *const (dyn Fn(usize) + Sync),
    /// One for each who works.
    ranges: Box<[Range]>,
    /// How many parts are not finished.
    left: AtomicUsize,
    caller: Thread,
    /// What the first part that panicked says; parts taken after that do nothing.
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}

// SAFETY: the work is `Sync`, and so is all else.
unsafe impl Send for Team {}
// SAFETY: as above.
unsafe impl Sync for Team {}

impl Team {
    /// Parts of work for so many, of whom this thread is one.
    fn new(work: *const (dyn Fn(usize) + Sync), parts: usize, ranges: usize) -> Self {
        let range = |range| Range {
            taken: AtomicBool::new(false),
            next: AtomicUsize::new(share(parts, range, ranges)),
            end: share(parts, range + 1, ranges),
        };
        Self {
            work,
            ranges: (0..ranges).map(range).collect(),
            left: AtomicUsize::new(parts),
            caller: std::thread::current(),
            panic: Mutex::new(None),
        }
    }

    /// Whether all parts are taken.
    fn is_taken(&self) -> bool {
        self.ranges.iter().all(|range| range.next.load(Ordering::Relaxed) >= range.end)
    }

    /// Takes parts as long as there are any, of the thread's own range first.
    fn help(&self) {
        let count = self.ranges.len();
        let own = rayon::current_thread_index().map_or(0, |thread| thread + 1);
        let around =
            |first: usize| (0..count).map(move |step| &self.ranges[(first + step) % count]);
        let free = |range: &Range| !range.taken.swap(true, Ordering::Relaxed);
        let own = own + around(own).position(free).unwrap_or(0);
        for range in around(own) {
            let take = || Some(range.next.fetch_add(1, Ordering::Relaxed));
            let parts = std::iter::from_fn(take).take_while(|&part| part < range.end);
            parts.for_each(|part| self.work_on(part));
        }
    }

    fn work_on(&self, part: usize) {
        let panic = || self.panic.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: the part is not finished, so that by the invariant the caller still owns the work.
        let work = || unsafe { (*self.work)(part) };
        if panic().is_none()
            && let Err(payload) = catch_unwind(AssertUnwindSafe(work))
        {
            panic().get_or_insert(payload);
        }
        // What was written is seen by the caller, who reads that nothing is left.
        if self.left.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.caller.unpark();
        }
    }

    /// Waits until all parts are finished: awake for as long as a part may take, then asleep.
    fn wait(&self) {
        const AWAKE: usize = 4096;
        let mut turns = 0;
        while self.left.load(Ordering::Acquire) != 0 {
            if turns < AWAKE {
                turns += 1;
                std::hint::spin_loop();
            } else {
                std::thread::park();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_work_stays_on_one_thread() {
        assert_eq!((parts(0, None), parts(PART, Some(8)), parts(100 * PART, Some(1))), (1, 1, 1));
        let expected = if threads() > 1 { (2, 2 * PARTS) } else { (1, 1) };
        assert_eq!((parts(2 * PART, Some(8)), parts(1000 * PART, Some(2))), expected);
    }

    #[test]
    #[cfg_attr(miri, ignore = "rayon's queues break the rules that Miri tries out")]
    fn no_more_threads_work_than_are_said() {
        for limit in 1..4 {
            let (working, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
            each(100, Some(limit), |_| {
                most.fetch_max(working.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                std::thread::yield_now();
                working.fetch_sub(1, Ordering::SeqCst);
            });
            assert!((1..=limit).contains(&most.into_inner()));
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "rayon's queues break the rules that Miri tries out")]
    fn every_part_is_done_once_whoever_does_it() {
        for parts in [0, 1, 2, 3, 64, 1000] {
            let done: Vec<AtomicUsize> = (0..parts).map(|_| AtomicUsize::new(0)).collect();
            // Parts that call for parts themselves, too.
            each(parts, None, |part| {
                each(3, None, |_| {
                    done[part].fetch_add(1, Ordering::Relaxed);
                });
            });
            assert!(done.iter().all(|times| times.load(Ordering::Relaxed) == 3));
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "rayon's queues break the rules that Miri tries out")]
    fn a_panic_comes_out_where_all_parts_have_ended() {
        let running = AtomicUsize::new(0);
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            each(50, None, |part| {
                running.fetch_add(1, Ordering::SeqCst);
                std::thread::yield_now();
                running.fetch_sub(1, Ordering::SeqCst);
                assert_ne!(part, 7, "the fuse");
            });
        }));
        assert_eq!(running.load(Ordering::SeqCst), 0);
        let said = outcome.unwrap_err();
        assert!(said.downcast_ref::<String>().is_some_and(|text| text.contains("the fuse")));
    }

    #[test]
    fn who_stays_is_handed_the_next_work_and_leaves_when_none_comes() {
        static DONE: AtomicUsize = AtomicUsize::new(0);
        let work = |_| {
            DONE.fetch_add(1, Ordering::Relaxed);
        };
        let team = |parts| Arc::new(Team::new(&raw const work, parts, 1));
        let (seat, first, next) = (Seat::default(), team(0), team(3));
        assert!(!seat.hand(&next) && seat.is_empty());
        std::thread::scope(|scope| {
            // It may have left before it was handed anything.
            scope.spawn(|| {
                while next.left.load(Ordering::Relaxed) > 0 {
                    seat.stay(Arc::clone(&first));
                }
            });
            while !seat.hand(&next) {
                std::hint::spin_loop();
            }
            next.wait();
            assert_eq!(DONE.load(Ordering::Relaxed), 3);
        });
        assert!(!seat.hand(&next) && seat.is_empty());
        assert_eq!(Arc::strong_count(&next), 1);
    }

    #[test]
    fn only_a_number_of_threads_is_a_number_of_threads() {
        assert_eq!((wanted(None), wanted(Some("0")), wanted(Some("x"))), (None, None, None));
        assert_eq!((wanted(Some(" 2 ")), wanted(Some("99999"))), (Some(2), Some(MOST)));
    }
}
