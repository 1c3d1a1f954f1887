//! The team of this process, and how large it is.

use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::thread::available_parallelism;

use crate::team::{Team, one_after_another};
use crate::tuning::MAX_THREADS;

/// The team; null before the first call, and after a fork. Teams are never freed, since their helpers live as long as the process.
static TEAM: AtomicPtr<Arc<Team>> = AtomicPtr::new(ptr::null_mut());

/// The team of the process that this one was forked from, for its size.
static TEAM_OF_PARENT: AtomicPtr<Arc<Team>> = AtomicPtr::new(ptr::null_mut());

/// How many threads the next call runs on, the caller included, if it has parts for all of them.
#[must_use]
pub fn threads() -> usize {
    team().helpers() + 1
}

/// Sets the number of threads of calls from now on, between 1 and [`MAX_THREADS`], whatever `SIMULCAST_NUM_THREADS` says
/// and however many processors there are.
pub fn set_threads(threads: usize) {
    team().resize(threads.saturating_sub(1));
}

/// Calls `work` for each part in `0..parts`, on this thread and on helpers, at most `limit` threads if that is said; returns
/// when all calls have returned. Parts may run in any order, and several at once.
///
/// # Panics
///
/// Where a part does, with its payload, when no part is running any more. Parts that had not begun by then may not be run.
pub fn for_each_part(parts: usize, limit: Option<usize>, work: &(dyn Fn(usize) + Sync)) {
    let threads = limit.unwrap_or(MAX_THREADS);
    if parts <= 1 || threads <= 1 {
        return one_after_another(parts, work);
    }
    team().run(parts, threads, work);
}

fn team() -> &'static Arc<Team> {
    // SAFETY: it is null, or was leaked by `publish`.
    match unsafe { TEAM.load(Ordering::Acquire).as_ref() } {
        Some(team) => team,
        None => publish(),
    }
}

/// Makes a team for this process, unless another thread has just done so.
#[cold]
fn publish() -> &'static Arc<Team> {
    fork::watch();
    // SAFETY: it is null, or was leaked by this function in the parent.
    let parent = unsafe { TEAM_OF_PARENT.load(Ordering::Acquire).as_ref() };
    let helpers = parent.map_or_else(|| default_threads() - 1, |team| team.helpers());
    let new = Box::into_raw(Box::new(Team::new(helpers, MAX_THREADS - 1)));
    let order = (Ordering::AcqRel, Ordering::Acquire);
    let current = match TEAM.compare_exchange(ptr::null_mut(), new, order.0, order.1) {
        Ok(_) => new,
        Err(faster) => {
            // SAFETY: it is the one from above, which no other thread has seen.
            drop(unsafe { Box::from_raw(new) });
            faster
        }
    };
    // SAFETY: it is not null, and what is published is never freed.
    unsafe { &*current }
}

/// After a fork the child has no helpers: it forgets the team of its parent, and touches its slots no more.
#[cfg(all(unix, not(any(miri, target_os = "emscripten"))))]
mod fork {
    use std::ffi::c_int;
    use std::ptr;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::{TEAM, TEAM_OF_PARENT};

    type Handler = Option<extern "C" fn()>;

    unsafe extern "C" {
        fn pthread_atfork(prepare: Handler, parent: Handler, child: Handler) -> c_int;
    }

    extern "C" fn in_child() {
        let team = TEAM.swap(ptr::null_mut(), Ordering::AcqRel);
        if !team.is_null() {
            TEAM_OF_PARENT.store(team, Ordering::Release);
        }
    }

    /// Has children forget the team, and their children too.
    pub(super) fn watch() {
        static WATCHES: AtomicBool = AtomicBool::new(false);
        if !WATCHES.swap(true, Ordering::Relaxed) {
            // It fails where there is no memory. Then calls of children hand work to slots that no helper polls, and
            // run alone.
            // SAFETY: the handler stores to atomics, which is allowed after a fork.
            unsafe { pthread_atfork(None, None, Some(in_child)) };
        }
    }
}

#[cfg(not(all(unix, not(any(miri, target_os = "emscripten")))))]
mod fork {
    pub(super) fn watch() {}
}

/// What `SIMULCAST_NUM_THREADS` asks for, or the number of processors that the process may use.
fn default_threads() -> usize {
    let asked = std::env::var("SIMULCAST_NUM_THREADS").ok().and_then(|text| parse_threads(&text));
    let default = || available_parallelism().map_or(1, usize::from);
    asked.unwrap_or_else(default).min(MAX_THREADS)
}

/// The number of threads that a value of `SIMULCAST_NUM_THREADS` asks for: a positive integer.
#[must_use]
pub fn parse_threads(text: &str) -> Option<usize> {
    text.trim().parse().ok().filter(|&number| number > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_positive_number_is_a_number_of_threads() {
        assert_eq!(["", "0", "x", "-1"].map(parse_threads), [None; 4]);
        assert_eq!([" 2 ", "99999"].map(parse_threads), [Some(2), Some(99999)]);
    }
}
