//! A file that gets its name when it is whole.
//!
//! On Linux it has no name at all until then, so that nothing is left of a run that was killed.
//! Where the system or the file system cannot do that, it has a temporary name beside the final
//! one, which is removed when it is dropped or by [`Temporary::remove_all`].
//!
//! Written here rather than taken from `atomic-write-file`: a handler of signals must be able to remove
//! all temporary names, and results are mapped into the file, so that it is open for reading too.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

/// The temporary names in use.
static NAMES: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// A file that gets its name when it is whole, in place of what had it before.
#[derive(Debug)]
pub struct Temporary {
    file: File,
    path: PathBuf,
    permissions: Option<Permissions>,
    name: Option<PathBuf>,
}

impl Temporary {
    // Implements E_BROADCAST_ANY_FUNC_2230.
    /// A file that is to be found under `path`, empty as yet. A link is followed; the permissions
    /// of a file that is replaced are kept.
    ///
    /// # Errors
    ///
    /// Returns the system's refusal; what is there and is no plain file is not replaced.
    pub fn new(path: &Path) -> io::Result<Self> {
        let (path, permissions) = match fs::metadata(path) {
            Ok(known) if !known.is_file() => {
                return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a plain file"));
            }
            Ok(known) => (fs::canonicalize(path)?, Some(known.permissions())),
            // It would be replaced by the file, rather than followed.
            Err(_) if fs::symlink_metadata(path).is_ok() => {
                let why = "a link that leads nowhere";
                return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
            }
            Err(_) => (path.to_owned(), None),
        };
        if !folder(&path).is_dir() {
            let why = "there is no such folder";
            return Err(io::Error::new(io::ErrorKind::NotADirectory, why));
        }
        match nameless(folder(&path)) {
            Some(file) => Ok(Self { file, path, permissions, name: None }),
            None => Self::named(path, permissions),
        }
    }

    fn named(path: PathBuf, permissions: Option<Permissions>) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true);
        let (name, file) = beside(&path, |name| options.open(name))?;
        Ok(Self { file, path, permissions, name: Some(name) })
    }

    /// The file, for reading and writing.
    #[must_use]
    pub const fn file(&self) -> &File {
        &self.file
    }

    /// Gives it its name, once everything has reached the disk.
    ///
    /// # Errors
    ///
    /// Returns the system's refusal; what had the name before has it still.
    pub fn finish(mut self) -> io::Result<()> {
        if let Some(permissions) = self.permissions.take() {
            self.file.set_permissions(permissions)?;
        }
        self.file.sync_all()?;
        let name = match &self.name {
            Some(name) => name,
            None => {
                let (name, ()) = beside(&self.path, |name| link(&self.file, name))?;
                self.name.insert(name)
            }
        };
        fs::rename(name, &self.path)?;
        names().retain(|known| known != name);
        self.name = None;
        // That the name is on the disk too is more than some file systems can promise.
        let _ = File::open(folder(&self.path)).and_then(|folder| folder.sync_all());
        Ok(())
    }

    /// Removes every temporary name, for whoever is about to end the process in another way than by
    /// dropping what it holds.
    pub fn remove_all() {
        for name in names().drain(..) {
            let _ = fs::remove_file(name);
        }
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if let Some(name) = &self.name {
            let _ = fs::remove_file(name);
            names().retain(|known| known != name);
        }
    }
}

fn names() -> std::sync::MutexGuard<'static, Vec<PathBuf>> {
    NAMES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Gives a name in the same folder to a new file. The process's number is not enough: a process of
/// the same number may have been killed before it could remove its files.
fn beside<T>(path: &Path, make: impl Fn(&Path) -> io::Result<T>) -> io::Result<(PathBuf, T)> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    loop {
        let (process, count) = (std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let name = path.with_file_name(format!(".simulcast-{process}-{count}.tmp"));
        match make(&name) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => {
                let made = made?;
                names().push(name.clone());
                return Ok((name, made));
            }
        }
    }
}

fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    }
}

/// A file without a name, where there is such a thing, and a way to give it one later.
#[cfg(target_os = "linux")]
fn nameless(folder: &Path) -> Option<File> {
    use std::os::unix::fs::OpenOptionsExt as _;
    let mut options = OpenOptions::new();
    let file = options.read(true).write(true).custom_flags(libc::O_TMPFILE).open(folder).ok()?;
    fs::metadata(descriptor(&file)).is_ok().then_some(file)
}

#[cfg(target_os = "linux")]
fn descriptor(file: &File) -> String {
    use std::os::fd::AsRawFd as _;
    format!("/proc/self/fd/{}", file.as_raw_fd())
}

#[cfg(target_os = "linux")]
fn link(file: &File, name: &Path) -> io::Result<()> {
    use std::ffi::CString;
    use std::os::unix::ffi::OsStrExt as _;
    let from = CString::new(descriptor(file))?;
    let name = CString::new(name.as_os_str().as_bytes())?;
    let (here, follow) = (libc::AT_FDCWD, libc::AT_SYMLINK_FOLLOW);
    // SAFETY: both are strings that end in a zero and live through the call.
    match unsafe { libc::linkat(here, from.as_ptr(), here, name.as_ptr(), follow) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(not(target_os = "linux"))]
fn nameless(_folder: &Path) -> Option<File> {
    None
}

#[cfg(not(target_os = "linux"))]
fn link(_file: &File, _name: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    fn names_in(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    // [E_BROADCAST_ANY_FUNC_2230]
    #[test]
    fn temporary_names_are_removed_on_every_way_out() {
        let folder = std::env::temp_dir().join(format!("simulcast-names-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("x");
        let new = || Temporary::named(path.clone(), None).unwrap();

        // Names that others left behind are passed over.
        for count in 0..3 {
            let name = format!(".simulcast-{}-{count}.tmp", std::process::id());
            fs::write(folder.join(name), "").unwrap();
        }
        drop(new());
        assert_eq!(names_in(&folder).len(), 3);
        names_in(&folder).iter().for_each(|name| fs::remove_file(folder.join(name)).unwrap());

        drop(new());
        assert_eq!(names_in(&folder), [""; 0]);

        let left = new();
        assert_eq!(names_in(&folder).len(), 1);
        Temporary::remove_all();
        assert_eq!(names_in(&folder), [""; 0]);
        assert!(left.finish().is_err(), "it has lost its name");

        let whole = new();
        whole.file().write_all(b"whole").unwrap();
        whole.finish().unwrap();
        assert_eq!(names_in(&folder), ["x"]);
        assert_eq!(fs::read(&path).unwrap(), b"whole");
        fs::remove_dir_all(&folder).unwrap();
    }
}
