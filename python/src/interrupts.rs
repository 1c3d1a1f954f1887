//! Ctrl-C: a long call ends with what Python's handler of the signal raises.
//!
//! Python's own handler in C only notes that a signal came; the handlers that programs write run later, on the main thread,
//! between steps of the interpreter. A call that computes for minutes takes no such step. So a long call is run within
//! [`interruptible`], and between its parts it looks at a counter that a handler in front of Python's counts up. Where
//! that moved, the interpreter is attached and Python's handlers run: if one raises, the call unwinds with what it raised.
//! No signal, no attaching: the check is one load.
//!
//! Python runs handlers on the main thread alone. Blocks of Dask's are computed on other threads while the main thread
//! waits, is interrupted, and leaves them behind: such a thread says so ([`set_stoppable`]), and its calls end with
//! `KeyboardInterrupt` where the handler of Ctrl-C is Python's default one. Other threads are the program's own, and are
//! left alone, as Python leaves them.

use std::cell::Cell;

use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::marker::Ungil;
use pyo3::prelude::*;
use simulcast_threads::{Interrupted, interruptible};

/// Calls on fewer elements are over too soon to be interrupted.
const LONG: usize = 1 << 18;

thread_local! {
    /// Whether an interrupt of the main thread ends the calls of this thread.
    static STOPPABLE: Cell<bool> = const { Cell::new(false) };
}

/// Says whether Ctrl-C ends the calls of this thread, which is not the main one; returns what was said before.
#[pyfunction]
#[pyo3(name = "_set_stoppable")]
pub(crate) fn set_stoppable(stoppable: bool) -> bool {
    STOPPABLE.replace(stoppable)
}

/// Runs a call on that many elements, with the interpreter released where that takes a while. Where Python's handler of
/// a signal raises, the call ends early with what it raised.
pub(crate) fn released<T: Ungil + Send>(
    py: Python<'_>,
    elements: usize,
    small: usize,
    work: impl FnOnce() -> T + Ungil + Send,
) -> PyResult<T> {
    if elements <= small {
        return Ok(work());
    }
    if elements < LONG {
        return Ok(py.detach(work));
    }
    signals::watch();
    // What comes from here on is counted; Python's handlers run for what came before.
    let before = signals::count();
    py.check_signals()?;
    py.detach(|| {
        let (seen, raised) = (Cell::new(before), Cell::new(None));
        let stop = || {
            let count = signals::count();
            if seen.replace(count) == count {
                return false;
            }
            match Python::attach(asked) {
                Ok(()) => false,
                Err(error) => {
                    raised.set(Some(error));
                    true
                }
            }
        };
        interruptible(&stop, work).map_err(|Interrupted| {
            raised.take().unwrap_or_else(|| PyKeyboardInterrupt::new_err(()))
        })
    })
}

/// Runs Python's handlers, where this is the main thread; what they raise is the error.
fn asked(py: Python<'_>) -> PyResult<()> {
    py.check_signals()?;
    if !STOPPABLE.get() {
        return Ok(());
    }
    let signal = py.import("signal")?;
    let threading = py.import("threading")?;
    let here = threading.call_method0("current_thread")?;
    if here.is(&threading.call_method0("main_thread")?) {
        return Ok(());
    }
    let handler = signal.call_method1("getsignal", (signal.getattr("SIGINT")?,))?;
    match handler.is(&signal.getattr("default_int_handler")?) {
        true => Err(PyKeyboardInterrupt::new_err(())),
        false => Ok(()),
    }
}

#[cfg(unix)]
mod signals {
    //! A handler in front of Python's, which counts.

    use std::mem::{MaybeUninit, transmute};
    use std::ptr;
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use libc::{SIG_DFL, SIG_IGN, SIGINT, c_int, c_void, sighandler_t, siginfo_t};

    /// How many times Ctrl-C was pressed since it is watched.
    static COUNT: AtomicUsize = AtomicUsize::new(0);

    /// The handler behind ours, as a function's address, and whether it takes three arguments.
    static BEHIND: AtomicUsize = AtomicUsize::new(SIG_DFL);
    static TAKES_INFO: AtomicUsize = AtomicUsize::new(0);

    pub(super) fn count() -> usize {
        COUNT.load(Ordering::Acquire)
    }

    extern "C" fn handle(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
        let behind = BEHIND.load(Ordering::Acquire);
        if behind != SIG_DFL && behind != SIG_IGN {
            // SAFETY: it is the handler that `sigaction` named, with the arguments that its flags say.
            unsafe {
                if TAKES_INFO.load(Ordering::Acquire) != 0 {
                    let behind: extern "C" fn(c_int, *mut siginfo_t, *mut c_void) =
                        transmute(behind);
                    behind(signal, info, context);
                } else {
                    let behind: extern "C" fn(c_int) = transmute(behind);
                    behind(signal);
                }
            }
        }
        // Counted once Python has noted it, since any thread may be here: a call that sees the count asks Python once.
        COUNT.fetch_add(1, Ordering::Release);
    }

    /// Puts our handler before the one that is there, unless that is ours. `signal.signal` puts Python's back, and the
    /// next long call ours before it. A handler that another library put before ours may call ours: it is left in place.
    pub(super) fn watch() {
        static LOCK: Mutex<()> = Mutex::new(());
        let own = handle as extern "C" fn(c_int, *mut siginfo_t, *mut c_void) as sighandler_t;
        let mut known = MaybeUninit::<libc::sigaction>::uninit();
        // SAFETY: it only asks, and writes all of `known` where it succeeds.
        let mut action = unsafe {
            if libc::sigaction(SIGINT, ptr::null(), known.as_mut_ptr()) != 0 {
                return;
            }
            known.assume_init()
        };
        let there = action.sa_sigaction;
        if there == own || there == SIG_DFL || there == SIG_IGN {
            return;
        }
        let Ok(_locked) = LOCK.try_lock() else { return };
        let behind = BEHIND.load(Ordering::Acquire);
        if behind != SIG_DFL && behind != there {
            return;
        }
        TAKES_INFO.store(usize::from(action.sa_flags & libc::SA_SIGINFO != 0), Ordering::Release);
        BEHIND.store(there, Ordering::Release);
        action.sa_sigaction = own;
        action.sa_flags |= libc::SA_SIGINFO;
        // SAFETY: the handler stores to atomics and calls the one that was there; mask and flags stay as they were.
        unsafe { libc::sigaction(SIGINT, &raw const action, ptr::null_mut()) };
    }
}

#[cfg(not(unix))]
mod signals {
    //! Where no handler can be put before Python's, Python is asked every 50 ms.

    use std::sync::OnceLock;
    use std::time::Instant;

    static START: OnceLock<Instant> = OnceLock::new();

    pub(super) fn count() -> usize {
        let elapsed = START.get_or_init(Instant::now).elapsed();
        usize::try_from(elapsed.as_millis() / 50).unwrap_or(usize::MAX)
    }

    pub(super) fn watch() {}
}
