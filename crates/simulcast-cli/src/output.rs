//! Output: standard output that may be closed early, and files that are whole or not there.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use simulcast_files::Temporary;

use crate::Failure;

/// Prints a text for people, in colour where the terminal has it.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    put_to(anstream::stdout().lock(), text.as_bytes())
}

/// The columns of the terminal that is printed to, or of `COLUMNS`; `None` where there is neither.
pub(crate) fn columns() -> Option<usize> {
    let told = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let told = told.filter(|columns| *columns > 0);
    told.or_else(|| {
        let (width, _) = terminal_size::terminal_size_of(io::stdout())?;
        Some(usize::from(width.0))
    })
}

/// Puts bytes out as they are: data, and text for programs.
pub(crate) fn put(bytes: impl AsRef<[u8]>) -> Result<(), Failure> {
    put_to(io::stdout().lock(), bytes.as_ref())
}

fn put_to(mut out: impl Write, bytes: &[u8]) -> Result<(), Failure> {
    out.write_all(bytes).and_then(|()| out.flush()).map_err(|error| failed(&error))
}

pub(crate) fn failed(error: &io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::BrokenPipe => Failure::Closed,
        _ => Failure::Usage(format!("cannot write: {error}")),
    }
}

// Implements E_BROADCAST_ANY_FUNC_2230.
/// Writes a file that is whole under its name or not there; `-` is standard output. What is no
/// plain file (a pipe, a device) is written to as it is.
pub(crate) fn write(path: &Path, bytes: impl AsRef<[u8]>) -> Result<(), Failure> {
    let bytes = bytes.as_ref();
    if path == Path::new("-") {
        return put(bytes);
    }
    let whole = match fs::metadata(path) {
        Ok(known) if !known.is_file() => fs::write(path, bytes),
        _ => Temporary::new(path).and_then(|temporary| {
            temporary.file().write_all(bytes)?;
            temporary.finish()
        }),
    };
    whole.map_err(|error| Failure::Usage(format!("cannot write {}: {error}", path.display())))
}
