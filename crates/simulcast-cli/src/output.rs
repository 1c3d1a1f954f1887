//! Output: standard output that may be closed early, and files that are whole or not there.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use crate::Failure;

/// Prints bytes, in colour where the terminal has it.
pub(crate) fn print(bytes: &[u8]) -> Result<(), Failure> {
    let mut out = anstream::stdout().lock();
    out.write_all(bytes).and_then(|()| out.flush()).map_err(|error| failed(&error))
}

pub(crate) fn failed(error: &io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::BrokenPipe => Failure::Closed,
        _ => Failure::Usage(format!("cannot write: {error}")),
    }
}

// Implements E_BROADCAST_ANY_FUNC_2230.
/// Writes a file under a temporary name beside it and renames it, so that nothing half-written is
/// ever found under its name; `-` is standard output. A link is followed, and what is no plain file
/// (a pipe, a device) is written to as it is.
pub(crate) fn write(path: &Path, bytes: impl AsRef<[u8]>) -> Result<(), Failure> {
    let bytes = bytes.as_ref();
    if path == Path::new("-") {
        return print(bytes);
    }
    let fail =
        |error: io::Error| Failure::Usage(format!("cannot write {}: {error}", path.display()));
    let whole = match fs::metadata(path) {
        Ok(known) if !known.is_file() => fs::write(path, bytes),
        Ok(known) => fs::canonicalize(path).and_then(|path| replace(&path, bytes, Some(&known))),
        Err(_) => replace(path, bytes, None),
    };
    whole.map_err(fail)
}

fn replace(path: &Path, bytes: &[u8], known: Option<&fs::Metadata>) -> io::Result<()> {
    let temporary = path.with_file_name(format!(".simulcast-{}.tmp", std::process::id()));
    let mut file = fs::File::create_new(&temporary)?;
    let written = (|| {
        if let Some(known) = known {
            file.set_permissions(known.permissions())?;
        }
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&temporary, path)
    })();
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    written
}
