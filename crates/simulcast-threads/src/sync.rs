//! What the protocol needs of the standard library; of loom under `cfg(loom)`, which then explores its interleavings.

#[cfg(not(loom))]
mod imp {
    pub(crate) use std::hint::spin_loop;
    pub(crate) use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};
    pub(crate) use std::sync::{Arc, Mutex};
    pub(crate) use std::thread::{Builder, Thread, current, park, yield_now};
    use std::time::{Duration, Instant};

    use crate::tuning::{ASK_MILLISECONDS, AWAKE_MICROSECONDS};

    /// Parks for a time at most.
    pub(crate) fn park_briefly() {
        std::thread::park_timeout(Duration::from_millis(ASK_MILLISECONDS));
    }

    /// [`std::cell::UnsafeCell`], with loom's interface.
    #[derive(Debug, Default)]
    pub(crate) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

    impl<T> UnsafeCell<T> {
        pub(crate) fn new(value: T) -> Self {
            Self(std::cell::UnsafeCell::new(value))
        }

        #[inline]
        pub(crate) fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
            f(self.0.get())
        }
    }

    /// How long a helper has been polling.
    pub(crate) struct AwakeTime(Instant);

    impl AwakeTime {
        pub(crate) fn start() -> Self {
            Self(Instant::now())
        }

        pub(crate) fn is_over(&mut self) -> bool {
            self.0.elapsed() >= Duration::from_micros(AWAKE_MICROSECONDS)
        }
    }
}

#[cfg(loom)]
mod imp {
    pub(crate) use loom::cell::UnsafeCell;
    pub(crate) use loom::hint::spin_loop;
    pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};
    pub(crate) use loom::sync::{Arc, Mutex};
    pub(crate) use loom::thread::{Builder, Thread, current, park, yield_now};

    /// No model is interrupted.
    pub(crate) fn park_briefly() {
        park();
    }

    /// Time is not modelled: a helper may go to sleep when it has polled once.
    pub(crate) struct AwakeTime;

    impl AwakeTime {
        pub(crate) fn start() -> Self {
            Self
        }

        pub(crate) fn is_over(&mut self) -> bool {
            true
        }
    }
}

pub(crate) use imp::*;
