//! Output: standard output that may be closed early, and files that are whole or not there.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use crate::Failure;

/// The message of a closed standard output: `simulcast … | head` is no mistake.
pub(crate) const CLOSED: &str = "standard output is closed";

/// Prints bytes, in colour where the terminal has it.
pub(crate) fn print(bytes: &[u8]) -> Result<(), Failure> {
    let mut out = anstream::stdout().lock();
    out.write_all(bytes).and_then(|()| out.flush()).map_err(|error| failed(&error))
}

pub(crate) fn failed(error: &io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::BrokenPipe => Failure::Usage(CLOSED.into()),
        _ => Failure::Usage(format!("cannot write: {error}")),
    }
}

// Implements E_BROADCAST_ANY_FUNC_2230.
/// Writes a file under a temporary name beside it and renames it, so that nothing half-written is
/// ever found under its name; `-` is standard output.
pub(crate) fn write(path: &Path, text: &str) -> Result<(), Failure> {
    if path == Path::new("-") {
        return print(text.as_bytes());
    }
    let fail =
        |error: io::Error| Failure::Usage(format!("cannot write {}: {error}", path.display()));
    let Some(name) = path.file_name() else {
        return Err(Failure::Usage(format!("{} is not the name of a file", path.display())));
    };
    let mut temporary = std::ffi::OsString::from(".");
    temporary.push(name);
    temporary.push(format!(".{}.tmp", std::process::id()));
    let temporary = path.with_file_name(temporary);
    let written = fs::write(&temporary, text).and_then(|()| fs::rename(&temporary, path));
    written.map_err(|error| {
        let _ = fs::remove_file(&temporary);
        fail(error)
    })
}
