//! An open file of arrays.
//!
//! Opening reads headers and directories only. An array's elements are looked at when it is first
//! asked for; what had to be converted is kept, so that views live as long as the store.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read as _;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use memmap2::Mmap;
use simulcast::{AnyArray, AnyView, DType};

use crate::elements::FileLayout;
use crate::error::{FileError, FileProblem};
use crate::npy::{self, Header};
use crate::tensors;
use crate::zip::{self, Member};

/// How much a file may ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadLimits {
    /// The bytes of a header, or of an archive's directory.
    pub header: u64,
    /// The bytes of memory for everything that is not mapped: unpacked, converted, or read from
    /// what is no plain file.
    pub memory: u64,
}

impl Default for ReadLimits {
    /// 16 MiB and 4 GiB.
    fn default() -> Self {
        Self { header: 16 << 20, memory: 4 << 30 }
    }
}

/// The memory that a file may ask for, and what it has taken of it.
#[derive(Debug)]
pub(crate) struct Budget {
    limit: AtomicU64,
    taken: AtomicU64,
}

impl Budget {
    fn new(limit: u64) -> Self {
        Self { limit: AtomicU64::new(limit), taken: AtomicU64::new(0) }
    }

    pub(crate) fn take(&self, part: &'static str, bytes: u64) -> Result<(), FileProblem> {
        let limit = self.limit.load(Ordering::Relaxed);
        let more = |taken: u64| taken.checked_add(bytes).filter(|&taken| taken <= limit);
        match self.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more) {
            Ok(_) => Ok(()),
            Err(taken) => {
                let limit = limit.saturating_sub(taken);
                Err(FileProblem::Limit { part, bytes, limit })
            }
        }
    }
}

/// An open file of arrays.
#[derive(Debug)]
pub struct Store {
    path: PathBuf,
    file: Bytes,
    limits: ReadLimits,
    budget: Budget,
    arrays: Vec<Array>,
    /// The place of each name; empty in a `.npy` file, whose array has none.
    names: HashMap<String, usize>,
}

#[derive(Debug)]
enum Bytes {
    Mapped(Mmap),
    Read(Vec<u8>),
}

/// One array of a file.
#[derive(Debug)]
struct Array {
    name: String,
    place: Place,
    /// What is shown, once it was asked for.
    shown: OnceLock<Shown>,
}

#[derive(Debug)]
enum Place {
    /// All of a `.npy` file.
    Whole,
    Member(Member),
    Tensor(Header, Range<usize>),
}

#[derive(Debug)]
enum Shown {
    /// Elements in the file, as they lie there.
    File(FileLayout, Range<usize>),
    /// Elements in an unpacked member, from that byte on.
    Unpacked(FileLayout, Vec<u8>, usize),
    /// Converted elements.
    Array(AnyArray),
}

impl Store {
    // Implements E_BROADCAST_ANY_FUNC_2280.
    /// Opens a file; a plain one is mapped into memory.
    ///
    /// A name that ends in `.safetensors` says what is in the file; otherwise its first bytes do.
    ///
    /// # Errors
    ///
    /// Returns what is wrong with the file, its header or its directory.
    pub fn open(path: impl AsRef<Path>, limits: &ReadLimits) -> Result<Self, FileError> {
        let path = path.as_ref();
        let budget = Budget::new(limits.memory);
        let file = Bytes::open(path, &budget).map_err(|problem| problem.of(path, None))?;
        Self::new(path, file, *limits, budget)
    }

    /// The arrays of a file that is in memory; the path says how to name it in errors.
    ///
    /// # Errors
    ///
    /// As [`Store::open`].
    pub fn from_bytes(
        path: impl AsRef<Path>,
        bytes: Vec<u8>,
        limits: &ReadLimits,
    ) -> Result<Self, FileError> {
        Self::new(path.as_ref(), Bytes::Read(bytes), *limits, Budget::new(limits.memory))
    }

    fn new(
        path: &Path,
        file: Bytes,
        limits: ReadLimits,
        budget: Budget,
    ) -> Result<Self, FileError> {
        let known = |problem: FileProblem| problem.of(path, None);
        let mut arrays = places(path, file.get(), limits.header).map_err(known)?;
        let whole = matches!(arrays[..], [Array { place: Place::Whole, .. }]);
        let mut names = HashMap::new();
        for (at, array) in arrays.iter_mut().enumerate().filter(|_| !whole) {
            if names.insert(array.name.clone(), at).is_some() {
                return Err(known(FileProblem::Duplicate {
                    name: std::mem::take(&mut array.name),
                }));
            }
        }
        Ok(Self { path: path.into(), file, limits, budget, arrays, names })
    }

    /// The bytes of memory that it has taken so far.
    #[must_use]
    pub fn taken(&self) -> u64 {
        self.budget.taken.load(Ordering::Relaxed)
    }

    /// Lets it take no more than that many bytes of memory from now on, for whoever opens several
    /// files within one limit.
    pub fn limit(&self, memory: u64) {
        self.budget.limit.store(self.taken().saturating_add(memory), Ordering::Relaxed);
    }

    /// The names of the arrays, in the file's order; none for the array of a `.npy` file.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.arrays.iter().map(|array| &*array.name).filter(|_| !self.names.is_empty())
    }

    /// The shape of an array; its elements are not looked at, and may be of any type.
    ///
    /// # Errors
    ///
    /// Returns what is wrong with the array's header, or that there is no such array.
    pub fn shape(&self, name: Option<&str>) -> Result<Vec<usize>, FileError> {
        self.about(name, |header| Ok(header.shape))
    }

    /// The element type of an array; its elements are not looked at.
    ///
    /// # Errors
    ///
    /// As [`Store::shape`], and where elements of the type are not read.
    pub fn dtype(&self, name: Option<&str>) -> Result<DType, FileError> {
        self.about(name, |header| Ok(header.coding?.dtype()))
    }

    /// An array, by its name, or the only one.
    ///
    /// # Errors
    ///
    /// Returns what is wrong with the array, or that there is no such array.
    pub fn get(&self, name: Option<&str>) -> Result<AnyView<'_>, FileError> {
        let fail = |problem: FileProblem| problem.of(&self.path, name);
        let array = self.find(name).map_err(fail)?;
        let shown = match array.shown.get() {
            Some(shown) => shown,
            None => {
                let shown = self.show(&array.place).map_err(fail)?;
                array.shown.get_or_init(|| shown)
            }
        };
        let (layout, bytes) = match shown {
            Shown::Array(array) => return Ok(array.view()),
            Shown::File(layout, range) => (layout, self.file.get().get(range.clone())),
            Shown::Unpacked(layout, bytes, start) => (layout, bytes.get(*start..)),
        };
        let bytes = bytes.ok_or_else(|| fail(FileProblem::Unknown))?;
        // SAFETY: `in_file` and `unpacked` have found that these very bytes lie as they should.
        Ok(unsafe { layout.view(bytes) })
    }

    fn find(&self, name: Option<&str>) -> Result<&Array, FileProblem> {
        let known = || self.names().map(str::to_owned).collect();
        match (name, &self.arrays[..]) {
            (Some(name), arrays) => {
                let at = self.names.get(name).and_then(|&at| arrays.get(at));
                at.ok_or_else(|| FileProblem::NoSuch { known: known() })
            }
            (None, [array]) => Ok(array),
            (None, _) => Err(FileProblem::Choose { known: known() }),
        }
    }

    fn about<T>(
        &self,
        name: Option<&str>,
        tell: impl FnOnce(Header) -> Result<T, FileProblem>,
    ) -> Result<T, FileError> {
        let told = self.find(name).and_then(|array| tell(self.header(&array.place)?));
        told.map_err(|problem| problem.of(&self.path, name))
    }

    /// What is said of an array; as much of a member is unpacked as that needs.
    fn header(&self, place: &Place) -> Result<Header, FileProblem> {
        let (file, limit) = (self.file.get(), self.limits.header);
        let member = match place {
            Place::Whole => return Ok(Header::read(file, limit)?.0),
            Place::Tensor(header, _) => return Ok(header.clone()),
            Place::Member(member) => member,
        };
        let mut count = 1 << 10;
        loop {
            let start = member.start(file, count)?;
            match Header::read(&start, limit) {
                // More helps where there was as much as was asked for.
                Err(FileProblem::Truncated { needs, .. }) if start.len() == count => {
                    count = usize::try_from(needs).unwrap_or(usize::MAX);
                }
                header => return Ok(header?.0),
            }
        }
    }

    fn show(&self, place: &Place) -> Result<Shown, FileProblem> {
        let file = self.file.get();
        let range = match place {
            Place::Whole => 0..file.len(),
            Place::Tensor(header, range) => {
                return self.in_file(FileLayout::new(header.clone())?, range.clone());
            }
            Place::Member(member) => match member.stored() {
                Some(range) => {
                    member.check(file.get(range.clone()).unwrap_or_default())?;
                    range
                }
                None => return self.unpacked(member),
            },
        };
        let bytes = file.get(range.clone()).unwrap_or_default();
        let (header, start) = Header::read(bytes, self.limits.header)?;
        self.in_file(FileLayout::new(header)?, range.start + start..range.end)
    }

    /// Elements in the file: as they lie there, or converted.
    fn in_file(&self, layout: FileLayout, range: Range<usize>) -> Result<Shown, FileProblem> {
        let bytes = layout.whole(self.file.get().get(range.clone()).unwrap_or_default())?;
        if layout.is_viewable(bytes) {
            return Ok(Shown::File(layout, range));
        }
        layout.convert(bytes, &self.budget).map(Shown::Array)
    }

    fn unpacked(&self, member: &Member) -> Result<Shown, FileProblem> {
        self.budget.take("a member", member.size)?;
        let bytes = member.unpack(self.file.get())?;
        let (header, start) = Header::read(&bytes, self.limits.header)?;
        let layout = FileLayout::new(header)?;
        let elements = layout.whole(bytes.get(start..).unwrap_or_default())?;
        if layout.is_viewable(elements) {
            return Ok(Shown::Unpacked(layout, bytes, start));
        }
        layout.convert(elements, &self.budget).map(Shown::Array)
    }
}

fn is_tensors(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "safetensors")
}

fn is_zip(file: &[u8]) -> bool {
    file.starts_with(&zip::MEMBER) || file.starts_with(&zip::END)
}

/// Whether the first bytes are those of no file that can be read.
fn is_unknown(file: &[u8]) -> bool {
    file.len() >= npy::MAGIC.len() && !file.starts_with(npy::MAGIC) && !is_zip(file)
}

/// Where the arrays of a file are.
fn places(path: &Path, file: &[u8], limit: u64) -> Result<Vec<Array>, FileProblem> {
    let array = |name, place| Array { name, place, shown: OnceLock::new() };
    if is_tensors(path) {
        let tensors = tensors::read(file, limit)?.into_iter();
        return Ok(tensors
            .map(|(name, header, range)| array(name, Place::Tensor(header, range)))
            .collect());
    }
    if is_zip(file) {
        let members = zip::members(file, limit)?.into_iter();
        let named = members.filter_map(|member| {
            let name = member.name.strip_suffix(".npy")?.to_owned();
            Some(array(name, Place::Member(member)))
        });
        return Ok(named.collect());
    }
    if is_unknown(file) {
        return Err(FileProblem::Unknown);
    }
    Header::read(file, limit)?;
    Ok(vec![array(String::new(), Place::Whole)])
}

impl Bytes {
    fn open(path: &Path, budget: &Budget) -> Result<Self, FileProblem> {
        let mut file = File::open(path)?;
        let about = file.metadata()?;
        if about.is_file() {
            // SAFETY: others must not write to the file while it is mapped; `docs/security.md` says
            // that we trust them not to. All reads are of plain bytes, or of types of which any
            // bits are a value, but for `bool`, whose bytes are looked at before they are shown.
            return Ok(Self::Mapped(unsafe { Mmap::map(&file) }?));
        }
        if about.is_dir() {
            return Err(std::io::Error::from(std::io::ErrorKind::IsADirectory).into());
        }
        let (mut bytes, most) = (Vec::new(), budget.limit.load(Ordering::Relaxed));
        // A pipe without an end is not worth reading all that may be read of it.
        file.by_ref().take(npy::MAGIC.len() as u64).read_to_end(&mut bytes)?;
        if !is_tensors(path) && is_unknown(&bytes) {
            return Err(FileProblem::Unknown);
        }
        let left = most.saturating_add(1).saturating_sub(bytes.len() as u64);
        file.by_ref().take(left).read_to_end(&mut bytes)?;
        budget.take("a file", bytes.len() as u64)?;
        Ok(Self::Read(bytes))
    }

    fn get(&self) -> &[u8] {
        match self {
            Self::Mapped(map) => map,
            Self::Read(bytes) => bytes,
        }
    }
}
