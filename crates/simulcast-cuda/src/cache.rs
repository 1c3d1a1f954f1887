//! Compiled kernels on disk, so that a process which starts later compiles none of them again.
//!
//! ```text
//! folder   SIMULCAST_CACHE_DIR, or `simulcast` in the user's cache folder; set to nothing, there is none
//! file     cuda-<hash of the key>.bin
//! key      version of this crate, driver, architecture, the kernel's whole text: no sizes
//! content  magic · length of the key · length of the code · checksum of both · key · code
//! ```
//!
//! A file is written under another name and renamed, so that a process reads all of it or none. One that is damaged,
//! or whose key differs, is as good as missing: the kernel is compiled again and the file replaced. A folder that
//! cannot be written costs the time of compiling, and no error. The version of NVRTC is not in the key, so that a
//! kernel that is there is found without loading the compiler.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

const MAGIC: &[u8; 8] = b"smcuda01";
const HEADER_BYTES: usize = 32;
/// A file of more bytes is no kernel.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// The folder of compiled kernels.
#[derive(Clone, Debug)]
pub(crate) struct Cache {
    folder: Option<PathBuf>,
}

/// FNV-1a.
fn hash(parts: &[&[u8]], start: u64) -> u64 {
    let step = |hash: u64, &byte: &u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    parts.iter().flat_map(|part| *part).fold(start, step)
}

const BASIS: u64 = 0xcbf2_9ce4_8422_2325;

impl Cache {
    /// The folder that the environment names, or the user's.
    pub(crate) fn of_user() -> Self {
        if let Some(folder) = std::env::var_os("SIMULCAST_CACHE_DIR") {
            let folder = (!folder.is_empty()).then(|| PathBuf::from(folder));
            return Self { folder };
        }
        let variable = |name: &str| std::env::var_os(name).filter(|own| !own.is_empty());
        let home = |rest: &str| variable("HOME").map(|home| Path::new(&home).join(rest));
        let folder = if cfg!(windows) {
            variable("LOCALAPPDATA").map(PathBuf::from)
        } else if cfg!(target_os = "macos") {
            home("Library/Caches")
        } else {
            variable("XDG_CACHE_HOME").map(PathBuf::from).or_else(|| home(".cache"))
        };
        Self { folder: folder.map(|folder| folder.join("simulcast")) }
    }

    #[cfg(test)]
    fn at(folder: &Path) -> Self {
        Self { folder: Some(folder.to_owned()) }
    }

    fn file(&self, key: &str) -> Option<PathBuf> {
        let key = key.as_bytes();
        let name =
            format!("cuda-{:016x}{:016x}.bin", hash(&[key], BASIS), hash(&[key, b"1"], !BASIS));
        self.folder.as_ref().map(|folder| folder.join(name))
    }

    /// The code of a kernel, where it is there, whole and undamaged.
    pub(crate) fn get(&self, key: &str) -> Option<Vec<u8>> {
        let file = self.file(key)?;
        if std::fs::metadata(&file).ok()?.len() > FILE_BYTES_MAX {
            return None;
        }
        let mut bytes = std::fs::read(&file).ok()?;
        let word = |at: usize| Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
        let (key_bytes, code_bytes, sum) = (word(8)?, word(16)?, word(24)?);
        let own = bytes.get(HEADER_BYTES..)?;
        let lengths = (key_bytes == key.len() as u64)
            && key_bytes.checked_add(code_bytes) == Some(own.len() as u64);
        let is_whole = bytes.starts_with(MAGIC)
            && lengths
            && own.starts_with(key.as_bytes())
            && hash(&[own], BASIS) == sum;
        is_whole.then(|| bytes.split_off(HEADER_BYTES + key.len()))
    }

    /// Keeps the code of a kernel; says nothing where that is not possible.
    pub(crate) fn put(&self, key: &str, code: &[u8]) {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let (Some(file), Some(folder)) = (self.file(key), &self.folder) else { return };
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let other = folder.join(format!(".cuda-{}-{number}.part", std::process::id()));
        let write = || -> std::io::Result<()> {
            std::fs::create_dir_all(folder)?;
            let mut open = std::fs::OpenOptions::new().write(true).create_new(true).open(&other)?;
            let sum = hash(&[key.as_bytes(), code], BASIS);
            open.write_all(MAGIC)?;
            for word in [key.len() as u64, code.len() as u64, sum] {
                open.write_all(&word.to_le_bytes())?;
            }
            open.write_all(key.as_bytes())?;
            open.write_all(code)?;
            drop(open);
            std::fs::rename(&other, &file)
        };
        if write().is_err() {
            let _ = std::fs::remove_file(&other);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let own = format!("simulcast-cuda-cache-{name}-{}", std::process::id());
            Self(std::env::temp_dir().join(own))
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn what_was_kept_is_found_by_its_key_alone() {
        let folder = Folder::new("found");
        let cache = Cache::at(&folder.0);
        assert_eq!(cache.get("key"), None);
        cache.put("key", b"code");
        cache.put("other", b"");
        assert_eq!(cache.get("key"), Some(b"code".to_vec()));
        assert_eq!((cache.get("other"), cache.get("ke")), (Some(Vec::new()), None));
        assert!(std::fs::read_dir(&folder.0).is_ok_and(|files| files.count() == 2));
    }

    #[test]
    fn a_file_that_is_cut_changed_or_of_another_key_is_missing() {
        let folder = Folder::new("damaged");
        let cache = Cache::at(&folder.0);
        cache.put("key", b"the code of a kernel");
        let file = cache.file("key").unwrap_or_default();
        let whole = std::fs::read(&file).unwrap_or_default();
        for cut in 0..whole.len() {
            let _ = std::fs::write(&file, &whole[..cut]);
            assert_eq!(cache.get("key"), None, "cut at {cut}");
        }
        for at in 0..whole.len() {
            let mut changed = whole.clone();
            changed[at] ^= 0x10;
            let _ = std::fs::write(&file, changed);
            assert_eq!(cache.get("key"), None, "changed at {at}");
        }
        let longer = [&whole[..], b"more"].concat();
        let _ = std::fs::write(&file, longer);
        assert_eq!(cache.get("key"), None);
        cache.put("key", b"new");
        assert_eq!(cache.get("key"), Some(b"new".to_vec()));
    }

    #[test]
    fn many_threads_fill_a_cache_at_once() {
        let folder = Folder::new("threads");
        let cache = Cache::at(&folder.0);
        let code = |n: usize| vec![n as u8; 10_000];
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for n in 0..50 {
                        cache.put(&format!("key {}", n % 5), &code(n % 5));
                        let got = cache.get(&format!("key {}", n % 5));
                        assert!(got.is_none_or(|got| got == code(n % 5)));
                    }
                });
            }
        });
        assert!((0..5).all(|n| cache.get(&format!("key {n}")) == Some(code(n))));
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_no_error() {
        let folder = Folder::new("file");
        let _ = std::fs::write(&folder.0, "a file");
        let cache = Cache::at(&folder.0);
        cache.put("key", b"code");
        assert_eq!(cache.get("key"), None);
        let _ = std::fs::remove_file(&folder.0);
    }
}
