//! A helper's slot: where callers hand it assignments, and where it waits for them. The states and transitions are those
//! of the crate's documentation.
//!
//! Invariant: the contents belong to the claiming caller in `CLAIMED`, to the helper in `POSTED` and `BUSY`, and to no
//! thread in the other states.

use std::ops::Range;

use crate::job::Job;
use crate::sync::{
    Arc, AtomicU8, AwakeTime, Ordering, Thread, UnsafeCell, current, park, spin_loop, yield_now,
};
use crate::tuning::POLLS;

/// No helper thread has been started.
const ABSENT: u8 = 0;
/// The helper polls.
const AWAKE: u8 = 1;
/// The helper is parked, or about to be.
const ASLEEP: u8 = 2;
/// A caller is writing the contents.
const CLAIMED: u8 = 3;
/// The helper has an assignment that it has not taken yet.
const POSTED: u8 = 4;
/// The helper works.
const BUSY: u8 = 5;

/// What a helper is handed.
pub(crate) struct Assignment {
    pub(crate) job: Arc<Job>,
    /// The range of parts that the helper begins with, and those for which it wakes other helpers.
    pub(crate) ranges: Range<usize>,
}

#[derive(Default)]
struct Contents {
    /// None is the order to leave, which only tests give.
    assignment: Option<Assignment>,
    /// The helper's own, from its first assignment on.
    thread: Option<Thread>,
}

/// On a cache line of its own, which the helper polls.
#[repr(align(64))]
pub(crate) struct Slot {
    state: AtomicU8,
    contents: UnsafeCell<Contents>,
}

// SAFETY: the contents are `Send`, and by the invariant only one thread at a time has access to them.
unsafe impl Sync for Slot {}

/// A slot in the state `CLAIMED`, by this thread. It must be posted to.
#[must_use]
pub(crate) struct Claim<'s> {
    slot: &'s Slot,
    before: u8,
}

impl Slot {
    pub(crate) fn new() -> Self {
        Self { state: AtomicU8::new(ABSENT), contents: UnsafeCell::new(Contents::default()) }
    }

    /// Whether the helper may be about to finish a job.
    pub(crate) fn is_busy(&self) -> bool {
        self.state.load(Ordering::Relaxed) >= CLAIMED
    }

    /// Claims the slot of a helper that polls.
    pub(crate) fn claim_awake(&self) -> Option<Claim<'_>> {
        self.claim_from(AWAKE)
    }

    /// Claims the slot, unless the helper has an assignment.
    pub(crate) fn claim(&self) -> Option<Claim<'_>> {
        match self.state.load(Ordering::Relaxed) {
            state @ (ABSENT | AWAKE | ASLEEP) => self.claim_from(state),
            _ => None,
        }
    }

    fn claim_from(&self, before: u8) -> Option<Claim<'_>> {
        // The load spares the cache line a write.
        let claimed = self.state.load(Ordering::Relaxed) == before
            && self
                .state
                .compare_exchange(before, CLAIMED, Ordering::Acquire, Ordering::Relaxed)
                .is_ok();
        claimed.then_some(Claim { slot: self, before })
    }

    /// Waits for an assignment, as the helper: polls for the awake time, then sleeps. None is the order to leave.
    pub(crate) fn wait(&self) -> Option<Assignment> {
        self.state.store(AWAKE, Ordering::Release);
        let mut awake = AwakeTime::start();
        loop {
            for _ in 0..POLLS {
                if self.state.load(Ordering::Acquire) == POSTED {
                    return self.take();
                }
                spin_loop();
            }
            if awake.is_over() && self.fall_asleep() {
                break;
            }
            yield_now();
        }
        while self.state.load(Ordering::Acquire) != POSTED {
            park();
        }
        self.take()
    }

    /// Fails where a caller has claimed the slot.
    fn fall_asleep(&self) -> bool {
        self.state.compare_exchange(AWAKE, ASLEEP, Ordering::Release, Ordering::Relaxed).is_ok()
    }

    /// Takes what was posted, as the helper, which then is busy. The first time, it says which thread it is.
    pub(crate) fn take(&self) -> Option<Assignment> {
        self.state.store(BUSY, Ordering::Relaxed);
        self.contents.with_mut(|contents| {
            // SAFETY: the helper has seen `POSTED`, so that the contents are its own.
            let contents = unsafe { &mut *contents };
            contents.thread.get_or_insert_with(current);
            contents.assignment.take()
        })
    }

    /// Makes the slot that of no helper, as the helper.
    pub(crate) fn leave(&self) {
        // SAFETY: the helper is busy, so that the contents are its own.
        self.contents.with_mut(|contents| unsafe { *contents = Contents::default() });
        self.state.store(ABSENT, Ordering::Release);
    }

    /// Orders the helper to leave, once it waits.
    #[cfg(test)]
    pub(crate) fn dismiss(&self) {
        loop {
            match self.state.load(Ordering::Acquire) {
                ABSENT => return,
                AWAKE | ASLEEP => {
                    if let Some(claim) = self.claim() {
                        return claim.post(None, || false);
                    }
                }
                _ => yield_now(),
            }
        }
    }
}

impl Claim<'_> {
    /// Hands over an assignment, and wakes the helper. There must be one.
    pub(crate) fn hand(self, assignment: Assignment) {
        self.post(Some(assignment), || false);
    }

    /// Hands over an assignment, and wakes the helper; where there is none, `start` starts its thread, and says whether
    /// it could.
    pub(crate) fn hand_or_start(self, assignment: Assignment, start: impl FnOnce() -> bool) {
        self.post(Some(assignment), start);
    }

    fn post(self, assignment: Option<Assignment>, start: impl FnOnce() -> bool) {
        let Self { slot, before } = self;
        let sleeping = slot.contents.with_mut(|contents| {
            // SAFETY: this thread has claimed the slot and not yet posted to it, so that the contents are its own.
            let contents = unsafe { &mut *contents };
            contents.assignment = assignment;
            contents.thread.clone().filter(|_| before == ASLEEP)
        });
        slot.state.store(POSTED, Ordering::Release);
        if let Some(thread) = sleeping {
            thread.unpark();
        }
        if before == ABSENT && !start() {
            // SAFETY: there is no helper to take the contents, so that they still are this thread's own.
            slot.contents.with_mut(|contents| unsafe { (*contents).assignment = None });
            slot.state.store(ABSENT, Ordering::Release);
        }
    }
}
