//! The team of this process, and how large it is.

use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::thread::available_parallelism;

use crate::team::Team;
use crate::tuning::MAX_THREADS;

/// The team; null before the first call. Teams are never freed, since their helpers live as long as the process.
static TEAM: AtomicPtr<Arc<Team>> = AtomicPtr::new(ptr::null_mut());

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
        return (0..parts).for_each(work);
    }
    team().run(parts, threads, work, |team| match team.is_of_this_process() {
        true => Arc::clone(team),
        false => Arc::clone(renew(team)),
    });
}

fn team() -> &'static Arc<Team> {
    // SAFETY: it is null, or was leaked by `publish`.
    match unsafe { TEAM.load(Ordering::Acquire).as_ref() } {
        Some(team) => team,
        None => publish(ptr::null_mut(), default_threads() - 1),
    }
}

/// A team of this process as large as that of its parent, if nobody else has made one.
#[cold]
fn renew(stale: &Arc<Team>) -> &'static Arc<Team> {
    let current = TEAM.load(Ordering::Acquire);
    // SAFETY: it was leaked by `publish`: there has been a call.
    match unsafe { current.as_ref() } {
        Some(team) if team.is_of_this_process() => team,
        _ => publish(current, stale.helpers()),
    }
}

/// Makes a new team that of the process, unless another thread was faster.
#[cold]
fn publish(old: *mut Arc<Team>, helpers: usize) -> &'static Arc<Team> {
    let new = Box::into_raw(Box::new(Team::new(helpers, MAX_THREADS - 1)));
    let published = TEAM.compare_exchange(old, new, Ordering::AcqRel, Ordering::Acquire);
    let current = published.map_or_else(
        |faster| {
            // SAFETY: it is the one from above, which no other thread has seen.
            drop(unsafe { Box::from_raw(new) });
            faster
        },
        |_| new,
    );
    // SAFETY: what is published is not null, and never freed.
    unsafe { &*current }
}

/// What `SIMULCAST_NUM_THREADS` asks for, or as many as the process may use processors.
fn default_threads() -> usize {
    let asked = number(std::env::var("SIMULCAST_NUM_THREADS").ok().as_deref());
    let default = || available_parallelism().map_or(1, usize::from);
    asked.unwrap_or_else(default).min(MAX_THREADS)
}

/// The positive number that a text is.
fn number(text: Option<&str>) -> Option<usize> {
    text?.trim().parse().ok().filter(|&number| number > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_positive_number_is_a_number_of_threads() {
        assert_eq!((number(None), number(Some("0")), number(Some("x"))), (None, None, None));
        assert_eq!((number(Some(" 2 ")), number(Some("99999"))), (Some(2), Some(99999)));
    }
}
