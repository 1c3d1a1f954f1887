//! Calls by the threads of one process, which share its team.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use simulcast_threads::{MAX_THREADS, SendPtr, for_each_part, set_threads, share, threads};

/// Helpers, whatever the machine has. All tests of this process ask for as many.
const THREADS: usize = 8;

const REPEATS: usize = if cfg!(miri) { 3 } else { 200 };

/// Each part runs once, and the caller sees its writes.
fn squares(parts: usize, limit: Option<usize>) {
    let mut squares = vec![usize::MAX; 3 * parts + 1];
    let (len, out) = (squares.len(), SendPtr::new(squares.as_mut_ptr()));
    for_each_part(parts, limit, &|part| {
        for at in share(len, part, parts)..share(len, part + 1, parts) {
            // SAFETY: the shares are disjoint, and lie within the vector.
            unsafe { out.get().add(at).write(at * at) };
        }
    });
    let written = if parts == 0 { 0 } else { len };
    assert!(squares[..written].iter().enumerate().all(|(at, &square)| square == at * at));
}

#[test]
fn every_part_is_run_once_and_its_writes_are_seen() {
    set_threads(THREADS);
    for _ in 0..REPEATS {
        for parts in [0, 1, 2, 3, 8, 64] {
            for limit in [None, Some(0), Some(1), Some(2), Some(3), Some(8), Some(usize::MAX)] {
                squares(parts, limit);
            }
        }
    }
}

#[test]
fn helpers_that_fell_asleep_are_woken() {
    set_threads(THREADS);
    for _ in 0..REPEATS.min(20) {
        squares(64, None);
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn no_more_threads_work_than_the_limit() {
    set_threads(THREADS);
    for limit in 1..4 {
        let (working, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        for_each_part(100, Some(limit), &|_| {
            most.fetch_max(working.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            thread::yield_now();
            working.fetch_sub(1, Ordering::SeqCst);
        });
        assert!((1..=limit).contains(&most.into_inner()));
    }
}

#[test]
fn nested_calls_run_every_part() {
    set_threads(THREADS);
    let most = if cfg!(miri) { 4 } else { 64 };
    for parts in [1, 2, 3, most] {
        let done: Vec<AtomicUsize> = (0..parts).map(|_| AtomicUsize::new(0)).collect();
        for_each_part(parts, None, &|part| {
            for_each_part(3, None, &|_| {
                for_each_part(2, None, &|_| {
                    done[part].fetch_add(1, Ordering::Relaxed);
                });
            });
        });
        assert!(done.iter().all(|times| times.load(Ordering::Relaxed) == 6));
    }
}

#[test]
fn callers_share_the_team() {
    set_threads(THREADS);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..REPEATS).for_each(|_| squares(30, None)));
        }
    });
}

#[test]
fn a_panic_comes_out_when_no_part_is_running() {
    set_threads(THREADS);
    for _ in 0..REPEATS.min(10) {
        for fuse in [0, 7, 49] {
            let (running, run) = (AtomicUsize::new(0), AtomicUsize::new(0));
            let outcome = catch_unwind(AssertUnwindSafe(|| {
                for_each_part(50, None, &|part| {
                    running.fetch_add(1, Ordering::SeqCst);
                    run.fetch_add(1, Ordering::SeqCst);
                    thread::yield_now();
                    running.fetch_sub(1, Ordering::SeqCst);
                    if part == fuse {
                        // Unlike `panic!`, it prints nothing.
                        resume_unwind(Box::new(fuse));
                    }
                });
            }));
            assert_eq!(running.load(Ordering::SeqCst), 0);
            assert!((1..=50).contains(&run.load(Ordering::SeqCst)));
            assert_eq!(outcome.unwrap_err().downcast_ref::<usize>(), Some(&fuse));
        }
    }
    squares(64, None);
}

#[test]
fn payloads_that_panic_when_dropped_hold_up_nobody() {
    struct Fuse(#[expect(dead_code, reason = "it tells payloads apart")] usize);
    impl Drop for Fuse {
        fn drop(&mut self) {
            if !thread::panicking() {
                resume_unwind(Box::new("dropped"));
            }
        }
    }
    set_threads(THREADS);
    for _ in 0..REPEATS.min(10) {
        let outcome = catch_unwind(|| {
            for_each_part(20, None, &|part| resume_unwind(Box::new(Fuse(part))));
        });
        // Its own drop panics, too.
        std::mem::forget(outcome.unwrap_err());
    }
    squares(64, None);
}

#[test]
fn the_number_of_threads_is_within_bounds() {
    // Not the number that other tests of this process set: that may be set at any time.
    assert!((1..=MAX_THREADS).contains(&threads()));
}
