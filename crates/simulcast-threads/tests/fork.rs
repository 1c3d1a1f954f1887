//! A forked child starts helpers of its own, and waits for none that its parent has.

#![cfg(all(unix, not(miri)))]

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use simulcast_threads::{for_each_part, set_threads};

const THREADS: usize = 4;

/// Whether each part ran once.
fn runs() -> bool {
    let done = [const { AtomicUsize::new(0) }; 16];
    for_each_part(done.len(), None, &|part| {
        done[part].fetch_add(1, Ordering::Relaxed);
    });
    done.iter().all(|times| times.load(Ordering::Relaxed) == 1)
}

/// Whether a helper runs parts before long.
fn is_helped() -> bool {
    let caller = thread::current().id();
    let is_helped = AtomicBool::new(false);
    let tries = 0..100_000;
    tries.take_while(|_| !is_helped.load(Ordering::Relaxed)).for_each(|_| {
        for_each_part(THREADS, None, &|_| {
            if thread::current().id() != caller {
                is_helped.store(true, Ordering::Relaxed);
            }
            thread::yield_now();
        });
    });
    is_helped.into_inner()
}

/// What a forked child answers; it is killed after some seconds.
fn in_child(ask: impl FnOnce() -> bool) -> bool {
    // SAFETY: the child calls nothing that needs a thread of its parent, and leaves through `_exit`.
    let child = unsafe { libc::fork() };
    assert_ne!(child, -1);
    if child == 0 {
        // SAFETY: no handler is set.
        unsafe { libc::alarm(30) };
        let answer = ask();
        // SAFETY: nothing of the parent's is run or dropped.
        unsafe { libc::_exit(i32::from(!answer)) };
    }
    let mut status = 0;
    // SAFETY: the child is this process's own, and nobody else waits for it.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    status == 0
}

#[test]
fn a_child_of_an_idle_parent_has_helpers_of_its_own() {
    set_threads(THREADS);
    assert!(runs() && is_helped());
    // Of a child, too.
    assert!(in_child(|| runs() && is_helped() && in_child(|| runs() && is_helped())));
    assert!(runs() && is_helped());
}

#[test]
fn a_child_of_a_busy_parent_waits_for_nobody() {
    set_threads(THREADS);
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                assert!(runs());
            }
        });
        let answers: Vec<bool> = (0..50).map(|_| in_child(|| runs() && is_helped())).collect();
        stop.store(true, Ordering::Relaxed);
        assert!(answers.iter().all(|&answer| answer), "{answers:?}");
    });
}
