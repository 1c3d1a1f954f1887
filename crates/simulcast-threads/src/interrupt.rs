//! Interrupts: a long call that is stopped between its parts.
//!
//! [`interruptible`] runs a closure and asks, between the parts of the parallel calls that it makes, whether to stop. Where
//! it has to, no part begins any more, and the call unwinds once those that run are finished: what it holds is dropped as
//! after a panic, and `interruptible` returns [`Interrupted`]. No panic hook is called, and nothing is printed.
//!
//! ```
//! use std::cell::Cell;
//! use simulcast_threads::{Interrupted, for_each_part, interruptible};
//!
//! let asked = Cell::new(0);
//! let stop = || asked.replace(asked.get() + 1) == 2;
//! let stopped = interruptible(&stop, || for_each_part(1000, Some(1), &|_| ()));
//! assert_eq!((stopped, asked.get()), (Err(Interrupted), 3));
//! ```
//!
//! Only the thread that called `interruptible` asks, so the question may be about things of that thread (Python runs its
//! handlers of signals on one thread alone); helpers see the answer. A caller that waits for helpers asks every
//! 10 ms. Outside `interruptible` none of this takes time: a part looks at one variable of its thread.

use std::cell::Cell;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr::NonNull;
// Plain: whether a call is stopped is no part of the protocol that loom explores.
use std::sync::atomic::{AtomicBool, Ordering};

use crate::send_ptr::SendPtr;

/// A call was stopped before it was finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interrupted;

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("interrupted")
    }
}

impl std::error::Error for Interrupted {}

/// One run of [`interruptible`]. It outlives the calls that it contains, and so all of their parts.
struct Scope<'s> {
    /// Asked by the thread that made the scope, and by no other.
    stop: &'s dyn Fn() -> bool,
    stopped: AtomicBool,
}

/// A thread's place in a scope.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    scope: NonNull<Scope<'static>>,
    /// Whether this thread made the scope, and so asks.
    asks: bool,
}

thread_local! {
    static PLACE: Cell<Option<Place>> = const { Cell::new(None) };
}

/// Puts back the place that the thread had before.
struct Restore(Option<Place>);

impl Drop for Restore {
    fn drop(&mut self) {
        PLACE.set(self.0);
    }
}

/// Runs `work`; between the parts of its parallel calls, `stop` is asked whether to go on. Where it says `true`, the call
/// that is running unwinds to here. What it was writing is written in part.
///
/// Scopes may be nested; the innermost one counts. `stop` is called often, and has to be quick. Under `panic = "abort"` an
/// interrupt aborts the process, as a panic does.
///
/// # Errors
///
/// Returns [`Interrupted`] where `stop` said so before `work` was finished, also where no part was left to stop.
///
/// # Panics
///
/// Where `work` or `stop` does.
pub fn interruptible<T>(
    stop: &dyn Fn() -> bool,
    work: impl FnOnce() -> T,
) -> Result<T, Interrupted> {
    let scope = Scope { stop, stopped: AtomicBool::new(false) };
    let _restore = Restore(PLACE.replace(Some(Place {
        // The lifetime is erased: the place is taken back before the scope ends, and parts of its calls are finished then.
        scope: NonNull::from(&scope).cast(),
        asks: true,
    })));
    match catch_unwind(AssertUnwindSafe(work)) {
        // The last parts were running when the caller was told to stop.
        Ok(_) if scope.stopped.load(Ordering::Relaxed) => Err(Interrupted),
        Ok(made) => Ok(made),
        Err(payload) if payload.is::<Interrupted>() => Err(Interrupted),
        Err(payload) => resume_unwind(payload),
    }
}

/// Whether this thread runs within [`interruptible`].
#[must_use]
#[inline]
pub fn is_interruptible() -> bool {
    PLACE.get().is_some()
}

/// Unwinds to [`interruptible`], where that is to stop: for loops that are long within one part.
#[inline]
pub fn checkpoint() {
    if let Some(place) = PLACE.get()
        && place.is_stopped()
    {
        resume_unwind(Box::new(Interrupted));
    }
}

impl Place {
    /// That of the current thread.
    #[inline]
    pub(crate) fn current() -> Option<Self> {
        PLACE.get()
    }

    /// Whether the call is to stop.
    #[inline]
    pub(crate) fn is_stopped(&self) -> bool {
        // SAFETY: the scope outlives the parts of its calls, and only they and their caller look at it.
        let scope = unsafe { self.scope.as_ref() };
        if scope.stopped.load(Ordering::Relaxed) {
            return true;
        }
        let stop = self.asks && {
            // What answers is no part of the call: it neither asks nor is stopped.
            let _restore = Restore(PLACE.take());
            (scope.stop)()
        };
        if stop {
            scope.stopped.store(true, Ordering::Relaxed);
        }
        stop
    }

    /// For the job that the current thread makes: the same scope as helpers see it.
    pub(crate) fn shared() -> Option<Shared> {
        PLACE.get().map(|place| Shared(SendPtr::reading(place.scope.as_ptr())))
    }

    /// Runs `work` with the current thread in the scope of a job.
    pub(crate) fn within(shared: Option<&Shared>, work: impl FnOnce()) {
        let own = PLACE.get();
        let place = shared.and_then(|shared| NonNull::new(shared.0.get()));
        let place = place.map(|scope| match own {
            // The caller itself, which asks.
            Some(own) if own.scope == scope => own,
            _ => Self { scope, asks: false },
        });
        let _restore = Restore(PLACE.replace(place));
        work();
    }
}

/// A scope, for other threads: they look at whether it is stopped, and at nothing else.
pub(crate) struct Shared(SendPtr<Scope<'static>>);

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::atomic::AtomicUsize;
    use std::time::{Duration, Instant};

    use super::*;
    use crate::{for_each_part, set_threads};

    #[test]
    fn an_interrupt_stops_a_call_on_one_thread_and_on_many() {
        set_threads(4);
        for threads in [1, 4] {
            let start = Instant::now();
            let stop = || start.elapsed() > Duration::from_millis(30);
            let done = AtomicUsize::new(0);
            let part = |_| {
                std::thread::sleep(Duration::from_millis(1));
                done.fetch_add(1, Ordering::Relaxed);
            };
            let outcome = interruptible(&stop, || for_each_part(100_000, Some(threads), &part));
            assert_eq!(outcome, Err(Interrupted));
            assert!(done.into_inner() < 100_000);
            assert!(!is_interruptible());
        }
    }

    #[test]
    fn a_caller_that_waits_for_helpers_asks() {
        set_threads(4);
        // The helpers' parts last until the caller has said stop, which it does while it has none of its own.
        let (caller, start) = (std::thread::current().id(), Instant::now());
        let stop = || start.elapsed() > Duration::from_millis(50);
        let part = |_| {
            if std::thread::current().id() != caller {
                loop {
                    checkpoint();
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
            std::thread::sleep(Duration::from_millis(20));
        };
        // Where no helper came in time, the caller is stopped between parts of its own.
        assert_eq!(interruptible(&stop, || for_each_part(4, None, &part)), Err(Interrupted));
    }

    #[test]
    fn an_interrupt_is_told_where_only_parts_of_helpers_were_left() {
        set_threads(4);
        let caller = std::thread::current().id();
        let is_helped = || {
            let (helped, waits) = (AtomicBool::new(false), AtomicBool::new(false));
            let stopped = AtomicBool::new(false);
            // Once the caller has no part left and waits for a helper, which goes on to its end.
            let stop = || {
                let stops = waits.load(Ordering::Relaxed);
                stopped.fetch_or(stops, Ordering::Relaxed);
                stops
            };
            let part = |_| {
                if std::thread::current().id() == caller {
                    let start = Instant::now();
                    let patience = Duration::from_millis(200);
                    while !helped.load(Ordering::Relaxed) && start.elapsed() < patience {
                        std::thread::yield_now();
                    }
                    waits.store(true, Ordering::Relaxed);
                } else {
                    helped.store(true, Ordering::Relaxed);
                    let start = Instant::now();
                    while !stopped.load(Ordering::Relaxed)
                        && start.elapsed() < Duration::from_secs(30)
                    {
                        std::thread::sleep(Duration::from_millis(1));
                    }
                }
            };
            assert_eq!(interruptible(&stop, || for_each_part(2, None, &part)), Err(Interrupted));
            helped.into_inner()
        };
        // The helpers may be those of another test just now.
        assert!((0..100).any(|_| is_helped()));
    }

    #[test]
    fn what_answers_is_no_part_of_the_call() {
        let asked = Cell::new(0);
        let stop = || {
            assert!(!is_interruptible());
            // Calls of its own, as a handler of signals may make, do not ask again.
            for_each_part(10, Some(1), &|_| ());
            asked.set(asked.get() + 1);
            false
        };
        let outcome = interruptible(&stop, || for_each_part(3, Some(1), &|_| ()));
        assert_eq!((outcome, asked.get()), (Ok(()), 3));
    }

    #[test]
    fn a_panic_is_not_an_interrupt_and_calls_within_calls_stop() {
        let panicked = catch_unwind(|| {
            let _ = interruptible(&|| false, || resume_unwind(Box::new("mine")));
        });
        assert_eq!(*panicked.unwrap_err().downcast::<&str>().unwrap(), "mine");

        set_threads(4);
        let start = Instant::now();
        let stop = || start.elapsed() > Duration::from_millis(20);
        let inner =
            |_| for_each_part(1000, None, &|_| std::thread::sleep(Duration::from_millis(1)));
        assert_eq!(interruptible(&stop, || for_each_part(100, None, &inner)), Err(Interrupted));
        // The team goes on.
        let count = AtomicUsize::new(0);
        for_each_part(100, None, &|_| _ = count.fetch_add(1, Ordering::Relaxed));
        assert_eq!(count.into_inner(), 100);
        assert_eq!(interruptible(&|| false, || 3), Ok(3));
    }
}
