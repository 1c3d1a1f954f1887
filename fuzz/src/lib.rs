//! What the targets for files of arrays have in common.

use std::fs;
use std::path::{Path, PathBuf};

use simulcast::{AnyView, DType};
use simulcast_files::{FileError, ReadLimits, Store, write_npy, write_npz};

/// Reads every array of a file, holds it against what the file says of it, writes it, and reads it
/// back: alone as `.npy`, and all of them together as `.npz`.
pub fn arrays_of(path: &str, bytes: Vec<u8>) {
    let limits = ReadLimits { header: 1 << 16, memory: 1 << 20 };
    let store = match Store::from_bytes(path, bytes, &limits) {
        Ok(store) => store,
        Err(error) => return assert!(error.to_string().starts_with(path)),
    };
    let names: Vec<Option<&str>> = store.names().map(Some).chain([None]).collect();
    let mut read = Vec::new();
    for name in names {
        let (shape, dtype) = (store.shape(name), store.dtype(name));
        match store.get(name) {
            Ok(view) => {
                assert_eq!(Ok(view.shape()), shape.as_deref());
                assert_eq!(Ok(view.dtype()), dtype);
                if let Some(written) = written(&view, |path| write_npy(path, &view)) {
                    let again = Store::from_bytes("again.npy", written.clone(), &limits);
                    let again = again.expect("what was written is a file");
                    let again = again.get(None).expect("what was written is there");
                    same(&view, &again, &written);
                }
                read.push((name.unwrap_or("x"), view));
            }
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
    archive(&read);
}

/// All arrays in one archive, and back.
fn archive(read: &[(&str, AnyView<'_>)]) {
    let path = scratch("npz");
    // Names that an archive cannot hold, and texts that `.npy` cannot, are refused.
    if write_npz(&path, read).is_err() {
        return;
    }
    let bytes = fs::read(&path).expect("the archive is there");
    let limits = ReadLimits { header: 1 << 20, memory: 1 << 24 };
    let store = Store::from_bytes("again.npz", bytes, &limits).expect("an archive");
    assert_eq!(store.names().count(), read.len());
    for (name, view) in read {
        let again = store.get(Some(name)).expect("every member is there");
        let bytes = written(view, |path| write_npy(path, view)).expect("was written before");
        same(view, &again, &bytes);
    }
}

/// Two views have the same type, the same shape and the same elements, bit for bit: debug output alone
/// would hide elements of large arrays and payloads of NaN.
fn same(view: &AnyView<'_>, again: &AnyView<'_>, bytes: &[u8]) {
    assert_eq!((view.dtype(), view.shape()), (again.dtype(), again.shape()));
    assert_eq!(format!("{view:?}"), format!("{again:?}"));
    let twice = written(again, |path| write_npy(path, again)).expect("what was written once");
    assert!(twice == *bytes, "written again, the bytes differ");
}

/// The bytes that a writer makes; `None` for text that the format cannot hold.
fn written(
    view: &AnyView<'_>,
    write: impl Fn(&Path) -> Result<(), FileError>,
) -> Option<Vec<u8>> {
    let path = scratch("npy");
    match write(&path) {
        Ok(()) => Some(fs::read(&path).expect("the file is there")),
        Err(error) => {
            assert_eq!(view.dtype(), DType::String, "{error}");
            None
        }
    }
}

/// A file in memory where there is such a folder: every input writes several.
fn scratch(ending: &str) -> PathBuf {
    let memory = Path::new("/dev/shm");
    let folder = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
    folder.join(format!("simulcast-fuzz-{}.{ending}", std::process::id()))
}
