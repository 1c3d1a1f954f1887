//! The `simulcast` command inside the wheel; `simulcast/__main__.py` calls it.

use std::ffi::OsString;

use pyo3::prelude::*;

/// Runs the command on the words of a command line, the program's name first, and returns its exit code.
///
/// Other Python threads go on meanwhile.
#[pyfunction(name = "_run_command")]
pub(crate) fn run_command(py: Python<'_>, args: Vec<OsString>) -> u8 {
    // `__main__.py` has set Python's handlers of signals.
    py.detach(|| simulcast_cli::run(args, || {}))
}

/// Removes the temporary files of results that the command is writing.
#[pyfunction(name = "_clean_up_command")]
pub(crate) fn clean_up_command() {
    simulcast_cli::signals::clean_up();
}
