//! What is wrong with a file: data first, text second.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// A file, perhaps one of its arrays, and what is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileError {
    /// The file.
    pub path: PathBuf,
    /// The array within it, where one was asked for by name.
    pub array: Option<String>,
    /// What is wrong.
    pub problem: FileProblem,
}

/// What is wrong with a file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FileProblem {
    /// The system refused.
    Io {
        /// The kind of refusal.
        kind: io::ErrorKind,
        /// Its words.
        message: String,
    },
    /// Not a file of arrays.
    Unknown,
    /// A version of the `.npy` format that is not known.
    Version {
        /// Its first number.
        major: u8,
        /// Its second number.
        minor: u8,
    },
    /// A part of the file is longer than what is there.
    Truncated {
        /// The part.
        part: &'static str,
        /// The bytes that it needs.
        needs: u64,
        /// The bytes that there are.
        has: u64,
    },
    /// The header of a `.npy` file is not what it should be.
    Header {
        /// Where, in bytes from the header's beginning.
        at: usize,
        /// What was expected.
        expected: &'static str,
    },
    /// More than the caller's limit.
    Limit {
        /// What is too large.
        part: &'static str,
        /// How many bytes it asks for.
        bytes: u64,
        /// How many it may have.
        limit: u64,
    },
    /// A shape of more elements than can be addressed.
    Overflow {
        /// The shape.
        shape: Vec<usize>,
    },
    /// Elements that are not read.
    Element {
        /// Their type, in the file's words.
        descr: String,
        /// Why not.
        why: &'static str,
    },
    /// Bytes after the last element.
    Trailing {
        /// How many.
        bytes: u64,
    },
    /// An element that is not text, or that cannot be kept as text.
    Text {
        /// Which, counted as stored.
        element: usize,
        /// Why not.
        why: &'static str,
    },
    /// An archive that is not what it should be.
    Zip {
        /// Where, in bytes from the file's beginning.
        at: u64,
        /// What is wrong there.
        why: &'static str,
    },
    /// A `.safetensors` header that is not what it should be.
    Safetensors {
        /// In the words of the format's own library.
        why: String,
    },
    /// Two arrays of one name.
    Duplicate {
        /// The name.
        name: String,
    },
    /// No array of that name.
    NoSuch {
        /// The names that there are.
        known: Vec<String>,
    },
    /// One of several arrays must be chosen by its name, or there is none.
    Choose {
        /// The names that there are.
        known: Vec<String>,
    },
}

impl FileProblem {
    pub(crate) fn of(self, path: &Path, array: Option<&str>) -> FileError {
        FileError { path: path.into(), array: array.map(str::to_owned), problem: self }
    }
}

impl From<io::Error> for FileProblem {
    fn from(error: io::Error) -> Self {
        Self::Io { kind: error.kind(), message: error.to_string() }
    }
}

/// The first few of the names.
struct Few<'a>(&'a [String]);

impl fmt::Display for Few<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 8;
        for (at, name) in self.0.iter().take(SHOWN).enumerate() {
            write!(f, "{}`{name}`", if at == 0 { "" } else { ", " })?;
        }
        match self.0.len().checked_sub(SHOWN) {
            Some(more @ 1..) => write!(f, " and {more} more"),
            _ => Ok(()),
        }
    }
}

impl fmt::Display for FileProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { kind: io::ErrorKind::NotFound, .. } => f.write_str("there is no such file"),
            Self::Io { kind: io::ErrorKind::PermissionDenied, .. } => {
                f.write_str("permission denied")
            }
            Self::Io { message, .. } => f.write_str(message),
            Self::Unknown => f.write_str("neither a .npy, a .npz nor a .safetensors file"),
            Self::Version { major, minor } => {
                write!(f, "version {major}.{minor} of the format is not known")
            }
            Self::Truncated { part, needs, has } => {
                write!(f, "the file ends inside its {part}: it needs {needs} bytes, and has {has}")
            }
            Self::Header { at, expected } => {
                write!(f, "expected {expected} at byte {at} of the header")
            }
            Self::Limit { part, bytes, limit } => {
                write!(f, "{part} of {bytes} bytes is over the limit of {limit}")
            }
            Self::Overflow { shape } => {
                const SHOWN: usize = 16;
                let sizes: Vec<String> = shape.iter().take(SHOWN).map(usize::to_string).collect();
                let end = match shape.len() {
                    1 => ",",
                    len if len > SHOWN => ", …",
                    _ => "",
                };
                write!(
                    f,
                    "a shape of ({}{end}) has more elements than can be addressed",
                    sizes.join(", ")
                )
            }
            Self::Element { descr, why } => write!(f, "elements of type {descr}: {why}"),
            Self::Trailing { bytes } => write!(f, "{bytes} bytes after the last element"),
            Self::Text { element, why } => write!(f, "element {element} {why}"),
            Self::Zip { at, why } => write!(f, "the archive {why} at byte {at}"),
            Self::Safetensors { why } => write!(f, "not a safetensors header: {why}"),
            Self::Duplicate { name } => write!(f, "two arrays have the name `{name}`"),
            Self::NoSuch { known } if known.is_empty() => {
                f.write_str("the file has no array of a name")
            }
            Self::NoSuch { known } => write!(f, "there is no such array; there are {}", Few(known)),
            Self::Choose { known } if known.is_empty() => f.write_str("there is no array in it"),
            Self::Choose { known } => write!(f, "choose one of its arrays: {}", Few(known)),
        }
    }
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path.display())?;
        if let Some(array) = &self.array {
            write!(f, ":{array}")?;
        }
        write!(f, ": {}", self.problem)
    }
}

impl std::error::Error for FileError {}
