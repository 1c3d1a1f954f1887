//! A job: one call's parts, how they are claimed, and how the caller learns that they are finished.
//!
//! Invariant: the closure is called only for a part that is claimed and not finished, and the caller, who owns the
//! closure, waits until every part is finished.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::PoisonError;

use crate::interrupt::{Place, Shared, checkpoint};
use crate::send_ptr::SendPtr;
use crate::share;
use crate::sync::{
    AtomicBool, AtomicUsize, Mutex, Ordering, Thread, current, park, park_briefly, spin_loop,
};
use crate::tuning::CALLER_SPINS;

/// What is called for each part.
pub(crate) type Work<'w> = dyn Fn(usize) + Sync + 'w;

/// What a part panicked with.
type Payload = Box<dyn Any + Send>;

pub(crate) struct Job {
    /// The caller's closure; dangling once every part is finished.
    work: SendPtr<Work<'static>>,
    /// One for each thread of the call, the caller's first.
    ranges: Box<[Claims]>,
    /// How many parts are not finished.
    unfinished: AtomicUsize,
    caller: Thread,
    /// Where the caller can be interrupted: what says so to the other threads.
    scope: Option<Shared>,
    /// Whether a part has panicked: parts claimed after that are not run.
    panicked: AtomicBool,
    /// What the first of them panicked with.
    payload: Mutex<Option<Payload>>,
}

/// The parts with which one thread begins, on a cache line of their own.
#[repr(align(64))]
struct Claims {
    /// The next to be claimed; at or past the end, there is none.
    next: AtomicUsize,
    end: usize,
}

impl Job {
    /// A job of the current thread, for this number of threads.
    ///
    /// # Safety
    ///
    /// The caller keeps the closure alive until [`Job::wait`] has returned.
    pub(crate) unsafe fn new(work: &Work<'_>, parts: usize, threads: usize) -> Self {
        let range = |range| Claims {
            next: AtomicUsize::new(share(parts, range, threads)),
            end: share(parts, range + 1, threads),
        };
        let work: *const Work<'_> = work;
        // SAFETY: only the lifetime changes, and the invariant keeps calls within it.
        let work: *const Work<'static> = unsafe { std::mem::transmute(work) };
        Self {
            work: SendPtr::reading(work),
            ranges: (0..threads).map(range).collect(),
            unfinished: AtomicUsize::new(parts),
            caller: current(),
            scope: Place::shared(),
            panicked: AtomicBool::new(false),
            payload: Mutex::new(None),
        }
    }

    /// Whether all parts are claimed, so that another thread would find none. An answer of `false` may be out of date.
    pub(crate) fn is_claimed(&self) -> bool {
        self.ranges.iter().all(|range| range.next.load(Ordering::Relaxed) >= range.end)
    }

    /// Claims and runs parts until none is left, those of the thread's own range first.
    pub(crate) fn run(&self, own: usize) {
        Place::within(self.scope.as_ref(), || self.run_parts(own));
    }

    fn run_parts(&self, own: usize) {
        let (before, from) = self.ranges.split_at(own.min(self.ranges.len()));
        for range in from.iter().chain(before) {
            loop {
                let part = range.next.fetch_add(1, Ordering::Relaxed);
                if part >= range.end {
                    break;
                }
                self.run_part(part);
            }
        }
    }

    /// Runs a part that this thread has claimed, and finishes it.
    fn run_part(&self, part: usize) {
        if !self.panicked.load(Ordering::Relaxed) {
            let work = || {
                checkpoint();
                // SAFETY: the part is claimed and not finished, so that by the invariant the caller keeps the closure alive.
                unsafe { (*self.work.get())(part) };
            };
            if let Err(payload) = catch_unwind(AssertUnwindSafe(work)) {
                self.keep(payload);
            }
        }
        // Release: the caller sees what the part wrote. Acquire: the thread that unparks has seen it all.
        if self.unfinished.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.caller.unpark();
        }
    }

    #[cold]
    fn keep(&self, payload: Payload) {
        self.panicked.store(true, Ordering::Relaxed);
        let mut first = self.payload.lock().unwrap_or_else(PoisonError::into_inner);
        if first.is_none() {
            *first = Some(payload);
        } else {
            // Its own drop may panic, and the part would never be finished.
            std::mem::forget(payload);
        }
    }

    /// Waits until every part is finished: spinning for as long as a part may take, then parked. A caller that can be
    /// interrupted asks now and then, so that the parts that run see the answer.
    pub(crate) fn wait(&self) {
        let place = Place::current();
        let mut spins = 0;
        while self.unfinished.load(Ordering::Acquire) != 0 {
            if spins < CALLER_SPINS {
                spins += 1;
                spin_loop();
            } else if let Some(place) = &place {
                park_briefly();
                // A question that panics would leave parts that run: the answer counts, not how it is given.
                let _stopped = catch_unwind(AssertUnwindSafe(|| place.is_stopped()));
            } else {
                park();
            }
        }
    }

    /// What the first part that panicked did so with.
    pub(crate) fn take_panic(&self) -> Option<Payload> {
        if !self.panicked.load(Ordering::Relaxed) {
            return None;
        }
        self.payload.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}
