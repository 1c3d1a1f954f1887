//! An array in a file, as the command line names it: `x.npy`, `d.npz:key`, `w.safetensors:layer.weight`.

use std::path::Path;

use simulcast_files::{FileError, ReadLimits, Store};

/// A file, and perhaps one of its arrays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileWord<'a> {
    pub(crate) path: &'a str,
    pub(crate) array: Option<&'a str>,
}

impl<'a> FileWord<'a> {
    /// The file that a word names, if it does; the first ending that is known ends the path, since
    /// arrays too are called `x.npy`. A path that begins as one needs no ending: `/dev/stdin`.
    pub(crate) fn new(word: &'a str) -> Option<Self> {
        let ends = [".npz:", ".safetensors:", ".npy:"].iter();
        let first = ends.filter_map(|end| Some((word.find(end)?, end))).min();
        let Some((at, end)) = first else {
            let ends = [".npy", ".npz", ".safetensors"].iter().any(|end| word.ends_with(end));
            let begins = ["/", "./", "../"].iter().any(|start| word.starts_with(start));
            return (ends || begins).then_some(Self { path: word, array: None });
        };
        let (path, array) = word.split_at_checked(at + end.len() - 1)?;
        Some(Self { path, array: array.strip_prefix(':') })
    }

    pub(crate) fn open(&self, limits: &ReadLimits) -> Result<Store, FileError> {
        Store::open(self.path, limits)
    }

    /// The file's name without its folder and its ending.
    pub(crate) fn stem(&self) -> Option<String> {
        Path::new(self.path).file_stem().map(|stem| stem.to_string_lossy().into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_name_files_and_arrays() {
        let file = |path, array| Some(FileWord { path, array });
        assert_eq!(FileWord::new("x.npy"), file("x.npy", None));
        assert_eq!(FileWord::new("a/d.npz:key"), file("a/d.npz", Some("key")));
        assert_eq!(FileWord::new("w.safetensors:a.b:c"), file("w.safetensors", Some("a.b:c")));
        assert_eq!(FileWord::new("d.npz:x.npy:y"), file("d.npz", Some("x.npy:y")));
        assert_eq!(FileWord::new("w.safetensors:x.npy"), file("w.safetensors", Some("x.npy")));
        assert_eq!(FileWord::new("/dev/stdin"), file("/dev/stdin", None));
        assert_eq!(FileWord::new("./d.npz:k"), file("./d.npz", Some("k")));
        assert_eq!(FileWord::new("8,1,6,1"), None);
        assert_eq!(FileWord::new("pred:32,1"), None);
    }
}
