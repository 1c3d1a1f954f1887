//! The team: the slots of all helpers, how a caller finds free ones, and what a helper does until the process ends.

use std::ops::Range;
use std::panic::resume_unwind;
// Plain ones: how large the team is and how long it lives are no part of the protocol.
use std::sync::Arc as TeamArc;
use std::sync::atomic::AtomicUsize as Size;

use crate::interrupt::checkpoint;
use crate::job::{Job, Work};
use crate::slot::{Assignment, Slot};
use crate::sync::{Arc, Builder, Ordering, spin_loop};
use crate::tuning::HANDOUT_ROUNDS;

pub(crate) struct Team {
    slots: Box<[Slot]>,
    /// How many slots are in use.
    helpers: Size,
}

impl Team {
    /// A team of some helpers out of `most`. None is started yet.
    pub(crate) fn new(helpers: usize, most: usize) -> TeamArc<Self> {
        TeamArc::new(Self {
            slots: (0..most).map(|_| Slot::new()).collect(),
            helpers: Size::new(helpers.min(most)),
        })
    }

    pub(crate) fn helpers(&self) -> usize {
        self.helpers.load(Ordering::Relaxed)
    }

    /// Makes the team larger or smaller. Helpers that are too many finish what they have, and sleep.
    #[cfg(not(loom))]
    pub(crate) fn resize(&self, helpers: usize) {
        self.helpers.store(helpers.min(self.slots.len()), Ordering::Relaxed);
    }

    fn slots(&self) -> &[Slot] {
        &self.slots[..self.helpers()]
    }

    /// Runs the parts on at most `threads` threads, this one included, and resumes the panic of the first part that panicked.
    pub(crate) fn run(self: &TeamArc<Self>, parts: usize, threads: usize, work: &Work<'_>) {
        let helpers = self.helpers().min(threads.min(parts).saturating_sub(1));
        if helpers == 0 {
            return one_after_another(parts, work);
        }
        // SAFETY: the closure is borrowed until this function returns or unwinds, and the guard waits before it does.
        let job = Arc::new(unsafe { Job::new(work, parts, helpers + 1) });
        let guard = WaitOnDrop(&job);
        let handed = self.hand_to_awake(&job, helpers);
        self.wake(&job, handed + 1..helpers + 1);
        job.run(0);
        drop(guard);
        if let Some(payload) = job.take_panic() {
            resume_unwind(payload);
        }
    }

    /// Hands the job to at most `helpers` helpers that poll, always in the same order; returns their number. A helper that
    /// is finishing the last part of the caller's last job is about to poll: it is worth a few rounds.
    fn hand_to_awake(&self, job: &Arc<Job>, helpers: usize) -> usize {
        let mut handed = 0;
        for _ in 0..HANDOUT_ROUNDS {
            for claim in self.slots().iter().filter_map(Slot::claim_awake).take(helpers - handed) {
                handed += 1;
                claim.hand(Assignment { job: Arc::clone(job), ranges: handed..handed + 1 });
            }
            if handed == helpers || !self.slots().iter().any(Slot::is_busy) {
                break;
            }
            spin_loop();
        }
        handed
    }

    /// Wakes or starts a helper for the first of these ranges, which does the same for the others. Waking a thread takes as
    /// long as some work does: the caller wakes only one, and every helper up to two.
    fn wake(self: &TeamArc<Self>, job: &Arc<Job>, ranges: Range<usize>) {
        if ranges.is_empty() || job.is_claimed() {
            return;
        }
        let free = |(index, slot): (usize, _)| Some((index, Slot::claim(slot)?));
        let Some((index, claim)) = self.slots().iter().enumerate().find_map(free) else { return };
        claim.hand_or_start(Assignment { job: Arc::clone(job), ranges }, || {
            let team = TeamArc::clone(self);
            let thread = Builder::new().name(format!("simulcast-{index}"));
            thread.spawn(move || team.help(index)).is_ok()
        });
    }

    /// What a helper does, from its first assignment on.
    fn help(self: TeamArc<Self>, index: usize) {
        let slot = &self.slots[index];
        let mut next = slot.take();
        while let Some(Assignment { job, ranges }) = next {
            let half = ranges.start + ranges.len().div_ceil(2);
            self.wake(&job, ranges.start + 1..half);
            self.wake(&job, half..ranges.end);
            job.run(ranges.start);
            // Not kept while the helper waits.
            drop(job);
            next = slot.wait();
        }
        slot.leave();
    }

    /// Ends the helpers, once they wait.
    #[cfg(test)]
    pub(crate) fn dismiss(&self) {
        self.slots.iter().for_each(Slot::dismiss);
    }
}

/// All parts, on this thread; interrupts come between them.
pub(crate) fn one_after_another(parts: usize, work: &Work<'_>) {
    for part in 0..parts {
        checkpoint();
        work(part);
    }
}

/// Waits for a job to be finished, also where the caller unwinds.
struct WaitOnDrop<'j>(&'j Job);

impl Drop for WaitOnDrop<'_> {
    fn drop(&mut self) {
        self.0.wait();
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::AtomicBool;

    use super::*;

    #[test]
    fn as_many_threads_work_as_are_asked_for_whatever_the_machine_has() {
        for threads in [2, 3, 8] {
            let team = Team::new(threads - 1, 10);
            let all = Barrier::new(threads);
            // No part ends before there is a thread for each.
            team.run(threads, usize::MAX, &|_| _ = all.wait());
            team.dismiss();
        }
    }

    #[test]
    fn a_helper_that_cannot_be_started_is_not_waited_for() {
        let (team, done) = (Team::new(1, 1), AtomicBool::new(false));
        let work = |_| done.store(true, Ordering::Relaxed);
        // SAFETY: the closure outlives the team, and so all helpers.
        let job = Arc::new(unsafe { Job::new(&work, 1, 2) });
        let ask = || Assignment { job: Arc::clone(&job), ranges: 1..2 };
        for _ in 0..2 {
            let claim = team.slots[0].claim().unwrap();
            assert!(team.slots[0].claim().is_none());
            claim.hand_or_start(ask(), || false);
            // What it would have been handed is not kept.
            assert_eq!(Arc::strong_count(&job), 1);
        }
        job.run(0);
        job.wait();
        assert!(done.into_inner());
    }

    #[test]
    fn no_helper_keeps_a_job() {
        let team = Team::new(3, 3);
        let work = |_| ();
        // SAFETY: the closure outlives the team, and so all helpers.
        let job = Arc::new(unsafe { Job::new(&work, 4, 4) });
        team.wake(&job, 1..4);
        job.run(0);
        job.wait();
        team.dismiss();
        while team.slots.iter().any(Slot::is_busy) {
            std::thread::yield_now();
        }
        assert_eq!(Arc::strong_count(&job), 1);
    }

    #[test]
    fn a_smaller_team_uses_fewer_helpers() {
        let team = Team::new(3, 3);
        team.resize(0);
        let caller = std::thread::current().id();
        let only = |_| assert_eq!(std::thread::current().id(), caller);
        team.run(100, usize::MAX, &only);
        team.resize(100);
        assert_eq!(team.helpers(), 3);
        team.dismiss();
    }
}
