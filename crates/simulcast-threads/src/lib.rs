//! Fork-join over a team of helper threads: [`for_each_part`] runs a closure for each part of some work, on the
//! calling thread and on helpers, and returns when every part is finished.
//!
//! ```
//! use simulcast_threads::{SendPtr, for_each_part, share};
//!
//! let mut squares = vec![0; 1000];
//! let (len, out) = (squares.len(), SendPtr::new(squares.as_mut_ptr()));
//! for_each_part(8, None, &|part| {
//!     for at in share(len, part, 8)..share(len, part + 1, 8) {
//!         // SAFETY: the shares are disjoint and lie within the vector.
//!         unsafe { out.get().add(at).write(at * at) };
//!     }
//! });
//! assert_eq!(squares[999], 998_001);
//! ```
//!
//! The calling thread works too, and a call never waits for a helper to start or to wake up: parts are claimed one by
//! one, and a helper that arrives late finds none left. Helpers poll for the next call for [a short time](#awake-time)
//! before they sleep, since waking a thread takes as long as adding a hundred thousand numbers.
//!
//! # Threads
//!
//! `SIMULCAST_NUM_THREADS` sets the number of threads of a call, the caller included, up to 1,024; without it (or where
//! it is not a positive number) it is [`std::thread::available_parallelism`]. It is read once, before the first
//! parallel call. [`set_threads`] overrides both. A helper thread is started by the first call that has work for it.
//! Where a thread cannot be started, the call runs on those that exist.
//!
//! # The protocol
//!
//! Two structures, each with one invariant. Both are model-checked with loom (`cargo xtask loom`), over all
//! interleavings of two threads and, with bounded preemptions, of three.
//!
//! ## Job
//!
//! One call makes one job (`job.rs`), on the heap and reference counted. It holds a pointer to the caller's closure, the
//! ranges of parts, and `unfinished`, the number of parts that are not finished. Each thread of the call begins
//! with a range of its own, the same in every call while the helpers are awake (so that a thread finds in its caches the
//! data of the last call), and goes on with what the other ranges have left.
//!
//! | step | by | how |
//! |---|---|---|
//! | claim a part | caller or helper | `fetch_add` on the range's counter; the part is claimed if the result is below its end |
//! | run it | the same thread | through the pointer to the closure; a panic is caught |
//! | finish it | the same thread | `fetch_sub` on `unfinished`, `AcqRel`; the thread that reaches 0 unparks the caller |
//! | return | caller | after reading 0 from `unfinished`, Acquire |
//!
//! **Invariant: the closure is called only for a part that is claimed and not finished, and the caller does not leave
//! [`for_each_part`], not even by unwinding, before `unfinished` is 0.** So no helper reaches the closure after the call
//! has returned, however late it is: every counter is past its end by then, and stays so. A late helper still owns a
//! reference to the job, which is why the job is on the heap; it never dereferences the closure. Each
//! write of a part happens before the return, because the decrements form one release sequence that the caller acquires.
//!
//! ## Slot
//!
//! Each helper has a slot (`slot.rs`), by which callers hand it an assignment: a job, the range that the helper begins with,
//! and ranges for which it has to wake further helpers. The slot's state says which thread owns its contents.
//!
//! ```text
//!            claim (caller)             post (caller)          take (helper)
//!  ABSENT ──────────────┬──▶ CLAIMED ───────────────▶ POSTED ─────────────▶ BUSY
//!  AWAKE  ──────────────┤                               │                    │
//!  ASLEEP ──────────────┘    ABSENT ◀───────────────────┘                    │
//!    ▲                          no thread could be started                   │
//!    │      sleep (helper)                            wait (helper)          │
//!    └──────────────── AWAKE ◀───────────────────────────────────────────────┘
//! ```
//!
//! | from | to | by | ordering |
//! |---|---|---|---|
//! | `ABSENT`, `AWAKE` or `ASLEEP` | `CLAIMED` | any caller, compare-exchange | Acquire |
//! | `CLAIMED` | `POSTED` | that caller; then it unparks a helper that was asleep, or starts the thread of one that was absent | Release |
//! | `POSTED` | `ABSENT` | that caller, where the thread could not be started | Release |
//! | `POSTED` | `BUSY` | the helper | Acquire |
//! | `BUSY` | `AWAKE` | the helper | Release |
//! | `AWAKE` | `ASLEEP` | the helper, compare-exchange; then it parks until the state is `POSTED` | Release |
//!
//! **Invariant: the contents belong to the claiming caller in `CLAIMED`, to the helper (or, while its thread is not
//! started, still to that caller) in `POSTED`, to the helper in `BUSY`, and to no thread otherwise.** Only the thread that owns
//! them leaves those states, so that no two threads ever have access at once. Going to
//! sleep and being claimed are compare-exchanges on one variable: exactly one succeeds, and a wake-up is never lost.
//!
//! ## Consequences
//!
//! - **Panics.** The first panic of a part is kept, and parts claimed after it are finished without being run. The caller
//!   resumes it once every part is finished. The helper survives.
//! - **Interrupts.** [`interruptible`] asks between parts whether to go on. An interrupt is kept like a panic: parts claimed
//!   after it are finished without being run, and the caller unwinds once every part is finished.
//! - **Two callers** share the team: each claims the slots that are free. A caller that finds none runs all parts itself,
//!   so that no call waits for another.
//! - **Nested calls** are calls by a thread whose own slot is `BUSY`. A thread waits only for parts that other threads
//!   are running, and a helper that runs a part is not assigned another one: the waits form a tree, and cannot deadlock.
//! - **Fork.** A forked child has the slots of its parent, and no helpers. A handler (`pthread_atfork`) has it forget that
//!   team, so that its first call makes one of its own, of the same size. No lock is held across a call, and a caller can run
//!   every part itself: even a child that was forked without handlers never waits for a thread that does not exist.
//! - **End of the process.** Helpers are detached, and end with it.
//!
//! ## Awake time
//!
//! After a job, a helper polls its slot for 200 µs: in the loops of users, calls follow each other faster than that. It
//! yields to other threads all the while. Then it sleeps. A caller whose parts are all claimed spins for as long as a
//! part may take, then parks.

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod interrupt;
mod job;
#[cfg(all(test, loom))]
mod models;
#[cfg(not(loom))]
mod process;
mod send_ptr;
mod share;
mod slot;
mod sync;
mod team;
mod tuning;

pub use interrupt::{Interrupted, checkpoint, interruptible, is_interruptible};
#[cfg(not(loom))]
pub use process::{for_each_part, parse_threads, set_threads, threads};
pub use send_ptr::SendPtr;
pub use share::share;
pub use tuning::MAX_THREADS;
