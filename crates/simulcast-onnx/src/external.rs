//! Data in files beside the model: found only below the model's folder, and held to their length.
//!
//! A model from outside must not make this program read other files. So a location is a relative
//! path without `..`, and what it names must, after links, lie below the folder of the model.

use std::fmt;
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use crate::schema::entry;
use crate::wire::{Fields, WireError};

/// Why data in another file cannot be had.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExternalError {
    /// The entry has no location, or an offset or a length that is no number.
    Entry,
    /// The model was not loaded from a file, so that it has no folder.
    NoFolder,
    /// The location leads out of the model's folder.
    Outside(String),
    /// The file cannot be read.
    Read {
        /// The location.
        location: String,
        /// What the system says.
        why: String,
    },
    /// Offset and length reach beyond the file, or are not what the sizes need.
    Length {
        /// The location.
        location: String,
        /// The bytes that the tensor needs.
        expected: u64,
        /// The bytes that are there.
        given: u64,
    },
}

impl fmt::Display for ExternalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Entry => f.write_str("its entry for external data cannot be understood"),
            Self::NoFolder => f.write_str("its data are in another file, and there is no folder"),
            Self::Outside(location) => {
                write!(f, "its data are in {location:?}, outside the model's folder")
            }
            Self::Read { location, why } => write!(f, "its data in {location:?}: {why}"),
            Self::Length { location, expected, given } => {
                write!(f, "its data in {location:?} need {expected} bytes, not {given}")
            }
        }
    }
}

/// Files beside a model that was not loaded from a folder, such as those that somebody chose in a browser.
///
/// Locations are relative paths without `..`, as the model has them.
pub trait ExternalFiles: fmt::Debug + Send + Sync {
    /// The size of a file in bytes; `None` where there is no such file.
    fn size(&self, location: &str) -> Option<u64>;

    /// Fills `bytes` with those of the file from `offset` on, which it has by its size.
    ///
    /// # Errors
    ///
    /// Why the file cannot be read, in words.
    fn read(&self, location: &str, offset: u64, bytes: &mut [u8]) -> Result<(), String>;
}

/// Where data in other files are looked for.
#[derive(Clone, Debug, Default)]
pub(crate) enum Place {
    /// Nowhere.
    #[default]
    Nowhere,
    /// Below a folder.
    Folder(PathBuf),
    /// Among files that were given.
    Files(Arc<dyn ExternalFiles>),
}

impl From<Option<&Path>> for Place {
    fn from(folder: Option<&Path>) -> Self {
        folder.map_or(Self::Nowhere, |folder| Self::Folder(folder.to_owned()))
    }
}

/// A part of a file beside the model, which is opened where its elements are asked for: shapes
/// hardly ever depend on them, and a model is checked without its data.
#[derive(Clone, Debug)]
pub(crate) struct External {
    location: String,
    place: Place,
    offset: u64,
    length: u64,
}

impl External {
    /// The data that the entries of a tensor name, which must have `expected` bytes.
    pub(crate) fn find(
        entries: &[Fields<'_>],
        place: &Place,
        expected: u64,
    ) -> Result<Self, ExternalError> {
        let (mut location, mut offset, mut length) = (None, 0, None);
        for entry in entries {
            let (key, value) = pair(*entry).map_err(|_| ExternalError::Entry)?;
            let number = || value.parse::<u64>().map_err(|_| ExternalError::Entry);
            match key {
                "location" => location = Some(value.to_owned()),
                "offset" => offset = number()?,
                "length" => length = Some(number()?),
                _ => {}
            }
        }
        let location = location.ok_or(ExternalError::Entry)?;
        relative(&location)?;
        match length {
            Some(given) if given != expected => {
                Err(ExternalError::Length { location, expected, given })
            }
            _ => Ok(Self { location, place: place.clone(), offset, length: expected }),
        }
    }

    fn failed(&self, error: &std::io::Error) -> ExternalError {
        ExternalError::Read { location: self.location.clone(), why: error.to_string() }
    }

    /// The file, where it is below the model's folder and long enough.
    fn path(&self, folder: &Path) -> Result<PathBuf, ExternalError> {
        let path = below(folder, &self.location)?;
        let known = std::fs::metadata(&path).map_err(|error| self.failed(&error))?;
        if !known.is_file() {
            let why = "not a plain file".into();
            return Err(ExternalError::Read { location: self.location.clone(), why });
        }
        self.held(known.len().saturating_sub(self.offset))?;
        Ok(path)
    }

    /// Whether so many bytes are enough.
    fn held(&self, given: u64) -> Result<(), ExternalError> {
        let (location, expected) = (self.location.clone(), self.length);
        match given >= expected {
            true => Ok(()),
            false => Err(ExternalError::Length { location, expected, given }),
        }
    }

    pub(crate) fn read(&self) -> Result<Vec<u8>, ExternalError> {
        match &self.place {
            Place::Nowhere => Err(ExternalError::NoFolder),
            Place::Folder(folder) => self.read_below(folder),
            Place::Files(files) => self.read_of(&**files),
        }
    }

    fn read_of(&self, files: &dyn ExternalFiles) -> Result<Vec<u8>, ExternalError> {
        let failed = |why: String| ExternalError::Read { location: self.location.clone(), why };
        let size = files.size(&self.location).ok_or_else(|| failed("no such file".into()))?;
        self.held(size.saturating_sub(self.offset))?;
        let length = usize::try_from(self.length).map_err(|error| failed(error.to_string()))?;
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(length).map_err(|error| failed(error.to_string()))?;
        bytes.resize(length, 0);
        files.read(&self.location, self.offset, &mut bytes).map_err(failed)?;
        Ok(bytes)
    }

    fn read_below(&self, folder: &Path) -> Result<Vec<u8>, ExternalError> {
        let failed = |error| self.failed(&error);
        let path = self.path(folder)?;
        let mut file = File::open(path).map_err(failed)?;
        file.seek(SeekFrom::Start(self.offset)).map_err(failed)?;
        let mut bytes = Vec::new();
        // Grows with what is read: the file may have shrunk since.
        file.take(self.length).read_to_end(&mut bytes).map_err(failed)?;
        self.held(bytes.len() as u64)?;
        Ok(bytes)
    }
}

/// Key and value of a `StringStringEntryProto`.
fn pair(fields: Fields<'_>) -> Result<(&str, &str), WireError> {
    let (mut key, mut value) = ("", "");
    for field in fields {
        let field = field?;
        match field.number {
            entry::KEY => key = field.text()?,
            entry::VALUE => value = field.text()?,
            _ => {}
        }
    }
    Ok((key, value))
}

/// A location as a path that leads down from a folder.
fn relative(location: &str) -> Result<&Path, ExternalError> {
    let path = Path::new(location);
    let plain = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
    match location.is_empty() || location.contains('\\') || !path.components().all(plain) {
        true => Err(ExternalError::Outside(location.to_owned())),
        false => Ok(path),
    }
}

/// The file that a location names, which must lie below the folder.
fn below(folder: &Path, location: &str) -> Result<PathBuf, ExternalError> {
    let failed = |error: std::io::Error| ExternalError::Read {
        location: location.to_owned(),
        why: error.to_string(),
    };
    // The parent of a bare file name is the empty path.
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let folder = folder.canonicalize().map_err(failed)?;
    let path = folder.join(relative(location)?).canonicalize().map_err(failed)?;
    match path.starts_with(&folder) {
        true => Ok(path),
        false => Err(ExternalError::Outside(location.to_owned())),
    }
}
