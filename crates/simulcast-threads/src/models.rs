//! Models of the protocol, whose interleavings loom explores: `cargo xtask loom`.
//!
//! Loom reports a part that two threads run, a write that the caller does not see, a closure that is called after its
//! call has returned, contents of a slot that two threads touch, a wake-up that is lost, and a job that is never freed.
//! Each model also says which outcomes must have occurred, so that none of them holds vacuously.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use loom::cell::UnsafeCell;
use loom::model::Builder;
use loom::thread;

use crate::team::Team;

/// Explores a model; every interleaving without a bound on preemptions. Returns the outcomes that occurred.
fn explore<T: Ord + Send + 'static>(
    preemptions: Option<usize>,
    model: impl Fn() -> T + Sync + Send + 'static,
) -> BTreeSet<T> {
    let outcomes = Arc::new(Mutex::new(BTreeSet::new()));
    let (start, interleavings) = (Instant::now(), Arc::new(AtomicUsize::new(0)));
    let mut builder = Builder::new();
    builder.preemption_bound = preemptions;
    builder.max_branches = 100_000;
    let (seen, count) = (Arc::clone(&outcomes), Arc::clone(&interleavings));
    builder.check(move || {
        count.fetch_add(1, Ordering::Relaxed);
        let outcome = model();
        seen.lock().unwrap().insert(outcome);
    });
    let seconds = start.elapsed().as_secs_f64();
    println!("{} interleavings in {seconds:.1} s", interleavings.load(Ordering::Relaxed));
    let mut outcomes = outcomes.lock().unwrap();
    std::mem::take(&mut *outcomes)
}

/// What a call borrows: loom tracks its reads and writes, and their order.
struct Borrowed {
    /// How often each part was run, and on which thread.
    parts: Vec<UnsafeCell<(usize, Option<thread::ThreadId>)>>,
    /// Read by each part, and written when the call has returned.
    alive: UnsafeCell<()>,
}

// SAFETY: loom checks every access, and runs one thread at a time.
unsafe impl Sync for Borrowed {}

impl Borrowed {
    fn new(parts: usize) -> Self {
        let parts = (0..parts).map(|_| UnsafeCell::new((0, None))).collect();
        Self { parts, alive: UnsafeCell::new(()) }
    }

    fn run(&self, part: usize) {
        self.alive.with(|_| ());
        // SAFETY: loom checks that no other thread has access.
        self.parts[part].with_mut(|part| unsafe {
            (*part).0 += 1;
            (*part).1 = Some(thread::current().id());
        });
    }

    /// Ends the borrow. Each part was run once; returns how many by other threads.
    fn returned(&self) -> usize {
        self.alive.with_mut(|_| ());
        let own = thread::current().id();
        let by_others = |part: &UnsafeCell<(usize, Option<thread::ThreadId>)>| {
            // SAFETY: loom checks that writes happened before.
            let (times, by) = part.with(|part| unsafe { *part });
            assert_eq!(times, 1);
            usize::from(by != Some(own))
        };
        self.parts.iter().map(by_others).sum()
    }
}

fn run(team: &Arc<Team>, parts: usize, work: &(dyn Fn(usize) + Sync)) {
    team.run(parts, usize::MAX, work);
}

/// A call; returns how many of its parts helpers ran.
fn call(team: &Arc<Team>, parts: usize) -> usize {
    let borrowed = Borrowed::new(parts);
    run(team, parts, &|part| borrowed.run(part));
    borrowed.returned()
}

/// A helper starts late or in time, and one that is late touches nothing of the call.
#[test]
fn every_part_is_run_once_and_seen_by_the_caller() {
    let by_helper = explore(None, || {
        let team = Team::new(1, 1);
        let by_helper = call(&team, 2);
        team.dismiss();
        by_helper
    });
    assert_eq!(by_helper, BTreeSet::from([0, 1, 2]));
}

/// Between two calls the helper is still working, awake, about to sleep or asleep.
#[test]
fn a_helper_takes_the_next_job_awake_or_asleep() {
    let by_helper = explore(Some(3), || {
        let team = Team::new(1, 1);
        let first = call(&team, 2);
        let second = call(&team, 2);
        team.dismiss();
        (first, second)
    });
    let each = [0, 1, 2];
    let all = each.iter().flat_map(|&first| each.map(|second| (first, second)));
    assert_eq!(by_helper, all.collect());
}

/// Whichever thread runs the part that panics, the caller resumes it, when nothing runs any more.
#[test]
fn a_panic_reaches_the_caller_and_the_team_survives_it() {
    let outcomes = explore(Some(3), || {
        let team = Team::new(1, 1);
        let borrowed = Borrowed::new(2);
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            run(&team, 2, &|part| {
                borrowed.run(part);
                // Unlike `panic!`, it prints nothing.
                resume_unwind(Box::new((part, thread::current().id())));
            });
        }));
        borrowed.alive.with_mut(|_| ());
        let payload = outcome.unwrap_err();
        let (part, by) = payload.downcast_ref::<(usize, thread::ThreadId)>().unwrap();
        let by_helper = *by != thread::current().id();
        let again = call(&team, 2);
        team.dismiss();
        (*part, by_helper, again > 0)
    });
    // Each thread begins with a part of its own.
    assert!(outcomes.contains(&(0, false, true)) && outcomes.contains(&(1, true, true)));
}

/// Two threads call at once, with one helper between them.
#[test]
fn two_callers_share_a_team() {
    let outcomes = explore(Some(2), || {
        let team = Team::new(1, 1);
        let other = {
            let team = Arc::clone(&team);
            thread::spawn(move || call(&team, 2))
        };
        let own = call(&team, 2);
        let other = other.join().unwrap();
        team.dismiss();
        (own > 0, other > 0)
    });
    // At a time it helps one of them.
    assert!(outcomes.contains(&(true, false)) && outcomes.contains(&(false, true)));
}

/// Parts make calls themselves, on the caller's thread and on the helper's, and the helper may be free for them or not.
#[test]
fn nested_calls_end() {
    let outcomes = explore(Some(4), || {
        let team = Team::new(1, 1);
        let (borrowed, helped) = (Borrowed::new(2), AtomicUsize::new(0));
        run(&team, 2, &|part| {
            borrowed.run(part);
            helped.fetch_add(call(&team, 2), Ordering::Relaxed);
        });
        let by_helper = borrowed.returned();
        team.dismiss();
        (by_helper > 0, helped.into_inner() > 0)
    });
    let both = [false, true];
    assert_eq!(outcomes, both.iter().flat_map(|&one| both.map(|other| (one, other))).collect());
}

/// The caller wakes one helper, and that one the other.
#[test]
fn helpers_wake_helpers() {
    let by_helpers = explore(Some(2), || {
        let team = Team::new(2, 2);
        let by_helpers = call(&team, 3);
        team.dismiss();
        by_helpers
    });
    assert_eq!(by_helpers, BTreeSet::from([0, 1, 2, 3]));
}
