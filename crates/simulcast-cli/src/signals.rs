//! Signals that end the command: no temporary file stays, and the exit code says which it was.
//!
//! A thread waits for them, rather than a handler that may do next to nothing. All other threads
//! leave them to it, since they are started later and hold back what the first one does.

use simulcast_files::Temporary;

/// Waits for signals from now on; to be called before other threads are started.
#[cfg(unix)]
pub fn watch() {
    use nix::sys::signal::{SigSet, Signal};

    let signals = SigSet::from_iter([Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP]);
    if signals.thread_block().is_err() {
        return;
    }
    let wait = move || {
        if let Ok(signal) = signals.wait() {
            end(128 + signal as i32);
        }
    };
    // Where there is no thread to wait, they do what they always do.
    if std::thread::Builder::new().name("signals".into()).spawn(wait).is_err() {
        let _ = signals.thread_unblock();
    }
}

/// Waits for what ends programs on other systems, where it has no number.
#[cfg(not(unix))]
pub fn watch() {
    let _ = ctrlc::set_handler(|| end(130));
}

fn end(code: i32) -> ! {
    clean_up();
    std::process::exit(code)
}

/// Removes the temporary files of results that are being written.
pub fn clean_up() {
    Temporary::remove_all();
}
