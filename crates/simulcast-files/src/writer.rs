//! Arrays to files: computed straight into a mapped `.npy` file, or written from memory.
//!
//! Every file is a [`Temporary`] until it is whole. Of a mapped one only the rows that are being
//! written are in the address space, so that neither its pages nor its addresses are too many.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

use flate2::Crc;
use memmap2::{MmapMut, MmapOptions};
use simulcast::program::row_axis;
use simulcast::{AnyView, AnyViewMut, DType};

use crate::elements::{extent, strides};
use crate::error::{FileError, FileProblem};
use crate::npy::{self, Header};
use crate::temporary::Temporary;
use crate::zip;

/// A `.npy` file whose elements are yet to be computed: row-major, all zeros at first, in memory
/// that the system writes to the disk as it goes, so that it may be larger than the memory there is.
///
/// Nothing is found under its name before [`Writer::finish`], and nothing is left of a writer that
/// is dropped before.
#[derive(Debug)]
pub struct Writer {
    path: PathBuf,
    temporary: Temporary,
    /// The rows that were asked for last.
    map: Option<MmapMut>,
    start: usize,
    dtype: DType,
    shape: Vec<usize>,
}

impl Writer {
    /// A file for an array of that type and shape.
    ///
    /// # Errors
    ///
    /// Returns the system's refusal, which comes here where the disk has no room, rather than as a
    /// signal amid the work; strings are written by [`write_npy`].
    pub fn create(
        path: impl AsRef<Path>,
        dtype: DType,
        shape: &[usize],
    ) -> Result<Self, FileError> {
        let path = path.as_ref();
        Self::new(path, dtype, shape).map_err(|problem| problem.of(path, None))
    }

    fn new(path: &Path, dtype: DType, shape: &[usize]) -> Result<Self, FileProblem> {
        let descr = npy::descr(dtype).ok_or_else(|| {
            let why = "strings have no fixed size, and cannot be mapped";
            FileProblem::Element { descr: dtype.name().into(), why }
        })?;
        let header = Header::write(&descr, shape)?;
        let whole = extent(dtype.size(), shape).and_then(|bytes| bytes.checked_add(header.len()));
        let whole = whole.ok_or_else(|| FileProblem::Overflow { shape: shape.to_vec() })?;
        let temporary = Temporary::new(path)?;
        allocate(temporary.file(), whole as u64)?;
        temporary.file().write_all(&header)?;
        let (map, start) = (None, header.len());
        Ok(Self { path: path.into(), temporary, map, start, dtype, shape: shape.to_vec() })
    }

    /// All elements, for writing.
    ///
    /// # Errors
    ///
    /// Returns the system's refusal to map them.
    pub fn view_mut(&mut self) -> Result<AnyViewMut<'_>, FileError> {
        self.rows_mut(0..usize::MAX)
    }

    /// Some rows, steps of the array's [`row_axis`], for writing; none of those that there are not.
    /// What was written to others is in the file.
    ///
    /// # Errors
    ///
    /// As [`Writer::view_mut`].
    pub fn rows_mut(&mut self, rows: Range<usize>) -> Result<AnyViewMut<'_>, FileError> {
        let (mut shape, strides) = (self.shape.clone(), strides(&self.shape, false));
        let (mut skip, axis) = (self.start, row_axis(&shape));
        if let (Some(size), Some(&stride)) = (shape.get_mut(axis), strides.get(axis)) {
            let end = rows.end.min(*size);
            let first = rows.start.min(end);
            *size = end - first;
            skip += first * stride.unsigned_abs() * self.dtype.size();
        }
        let map = self.map(skip, extent(self.dtype.size(), &shape).unwrap_or_default());
        let pointer = map.map_err(|error| FileProblem::from(error).of(&self.path, None))?;
        // SAFETY: the map, which is borrowed for writing, holds these rows: they are some of the
        // file's, whose length `new` has computed. Maps begin at a page, headers are multiples of 64
        // long and rows follow one another, so that elements are aligned; they are zeros or were
        // written through such a view, and so values of the type.
        Ok(unsafe { AnyViewMut::from_raw(self.dtype, pointer, &shape, &strides) })
    }

    /// Maps a part of the file, in place of the last one.
    fn map(&mut self, start: usize, bytes: usize) -> io::Result<*mut u8> {
        self.unmap()?;
        let mut options = MmapOptions::new();
        options.offset(start as u64).len(bytes);
        // SAFETY: no other process maps the file: it has no name yet, or a random one.
        let map = unsafe { options.map_mut(self.temporary.file()) }?;
        Ok(self.map.insert(map).as_mut_ptr())
    }

    fn unmap(&mut self) -> io::Result<()> {
        // Where the system would forget to write what is mapped no more.
        self.map.take().map_or(Ok(()), |map| map.flush_async())
    }

    /// Gives the file its name, once everything has reached the disk.
    ///
    /// # Errors
    ///
    /// Returns the system's refusal; what had the name before has it still.
    pub fn finish(mut self) -> Result<(), FileError> {
        // Some systems rename no file that is mapped.
        let done = self.unmap().and_then(|()| self.temporary.finish());
        done.map_err(|error| FileProblem::from(error).of(&self.path, None))
    }
}

/// Makes a file as long as that, with room on the disk for all of it.
fn allocate(file: &File, bytes: u64) -> io::Result<()> {
    file.set_len(bytes)?;
    #[cfg(target_os = "linux")]
    {
        use std::os::fd::AsRawFd as _;
        let length = libc::off_t::try_from(bytes).map_err(|_| io::ErrorKind::FileTooLarge)?;
        // SAFETY: the descriptor is open; the call touches no memory of ours.
        match unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, length) } {
            // Some file systems have no such call; there the disk may turn out to be full later.
            0 | libc::EOPNOTSUPP | libc::EINVAL => {}
            code => return Err(io::Error::from_raw_os_error(code)),
        }
    }
    Ok(())
}

/// Writes an array to a `.npy` file, row-major.
///
/// # Errors
///
/// Returns the system's refusal, or which string cannot be kept; what had the name before has it
/// still.
pub fn write_npy(path: impl AsRef<Path>, array: &AnyView<'_>) -> Result<(), FileError> {
    replace(path.as_ref(), |out| write_array(out, array))
}

/// Writes arrays with their names to a `.npz` file, stored, so that they can be mapped.
///
/// # Errors
///
/// As [`write_npy`], and where two arrays have one name.
pub fn write_npz(path: impl AsRef<Path>, arrays: &[(&str, AnyView<'_>)]) -> Result<(), FileError> {
    replace(path.as_ref(), |out| archive(out, arrays, u32::MAX.into()))
}

fn replace(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<&File>) -> Result<(), FileProblem>,
) -> Result<(), FileError> {
    let written = || {
        let temporary = Temporary::new(path)?;
        let mut out = BufWriter::with_capacity(1 << 18, temporary.file());
        write(&mut out)?;
        out.flush()?;
        drop(out);
        Ok(temporary.finish()?)
    };
    written().map_err(|problem: FileProblem| problem.of(path, None))
}

/// A header, and the elements.
fn write_array(out: &mut impl Write, array: &AnyView<'_>) -> Result<(), FileProblem> {
    if let Some(strings) = array.typed::<String>() {
        let width = strings.iter().map(|text| text.chars().count()).max().unwrap_or(0).max(1);
        out.write_all(&Header::write(&format!("{}U{width}", npy::NATIVE), array.shape())?)?;
        for (element, text) in strings.iter().enumerate() {
            if text.ends_with('\0') {
                let why = "ends in a zero, which would be lost";
                return Err(FileProblem::Text { element, why });
            }
            let mut left = width;
            for point in text.chars() {
                out.write_all(&u32::from(point).to_ne_bytes())?;
                left -= 1;
            }
            for _ in 0..left {
                out.write_all(&[0; 4])?;
            }
        }
        return Ok(());
    }
    let descr = npy::descr(array.dtype()).unwrap_or_default();
    out.write_all(&Header::write(&descr, array.shape())?)?;
    if let Some(bytes) = contiguous(array) {
        return Ok(out.write_all(bytes)?);
    }
    macro_rules! numbers {
        ($($variant:ident: $type:ty => $number:ident: [$($part:expr),*],)*) => {
            match array.dtype() {
                $(DType::$variant => for &$number in array.typed::<$type>().iter().flatten() {
                    $(out.write_all(&$part.to_ne_bytes())?;)*
                },)*
                DType::String => {}
            }
        };
    }
    numbers!(
        Bool: bool => x: [u8::from(x)], I8: i8 => x: [x], I16: i16 => x: [x], I32: i32 => x: [x],
        I64: i64 => x: [x], U8: u8 => x: [x], U16: u16 => x: [x], U32: u32 => x: [x],
        U64: u64 => x: [x], F16: half::f16 => x: [x], Bf16: half::bf16 => x: [x],
        F32: f32 => x: [x], F64: f64 => x: [x],
        C64: simulcast::Complex<f32> => x: [x.re, x.im],
        C128: simulcast::Complex<f64> => x: [x.re, x.im],
    );
    Ok(())
}

/// The bytes of numbers that lie one after another, row-major.
fn contiguous<'a>(array: &AnyView<'a>) -> Option<&'a [u8]> {
    let bytes = extent(array.dtype().size(), array.shape())?;
    let known = strides(array.shape(), false);
    let mut axes = array.shape().iter().zip(known.iter().zip(array.strides()));
    let row_major = axes.all(|(&size, (known, stride))| size <= 1 || known == stride);
    let plain = bytes > 0 && row_major && array.dtype() != DType::String;
    // SAFETY: the view's elements, all of them by the strides, are numbers, which have no bytes
    // that are not initialised, and live for `'a`.
    plain.then(|| unsafe { std::slice::from_raw_parts(array.as_ptr(), bytes) })
}

/// What the bytes of a member sum up to.
#[derive(Default)]
struct Sum {
    crc: Crc,
    bytes: u64,
}

impl Write for Sum {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.crc.update(bytes);
        self.bytes += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// An archive of stored members, each from a multiple of 64 on; numbers from `wide` on take 64 bits.
///
/// Written here, beside the reader whose constants it shares: members are stored and aligned, so that they
/// can be mapped, and their sums stand before them, so that the archive is written as a stream.
fn archive(
    out: &mut impl Write,
    arrays: &[(&str, AnyView<'_>)],
    wide: u64,
) -> Result<(), FileProblem> {
    /// The extra field that aligns what follows; readers skip what they do not know.
    const PADDING: u16 = 0xd935;
    /// Names are UTF-8.
    const FLAGS: u16 = 1 << 11;
    /// 1980-01-01, the earliest date that a ZIP entry can hold; a constant keeps archives reproducible.
    const DATE: u16 = 0x21;
    let narrow = |number: u64| match u32::try_from(number) {
        Ok(small) if number < wide => small,
        _ => u32::MAX,
    };
    let (mut at, mut directory, mut names) = (0_u64, Vec::new(), HashSet::new());
    for (name, array) in arrays {
        if !names.insert(name) {
            return Err(FileProblem::Duplicate { name: (*name).into() });
        }
        // First the sum, which stands before the elements.
        let mut sum = Sum::default();
        write_array(&mut sum, array)?;
        let Sum { crc, bytes } = sum;
        let name = format!("{name}.npy");
        let length = u16::try_from(name.len());
        let length = length.map_err(|_| io::Error::other("a name of more than 65,535 bytes"))?;
        let large = bytes >= wide || at >= wide;
        let version: u16 = if large { 45 } else { 20 };
        let (size, place) = if large { (u32::MAX, u32::MAX) } else { (narrow(bytes), narrow(at)) };
        let mut common = Vec::new();
        common.extend([version, FLAGS, 0, 0, DATE].iter().flat_map(|n| n.to_le_bytes()));
        common.extend([crc.sum(), size, size].iter().flat_map(|n| n.to_le_bytes()));
        common.extend(length.to_le_bytes());
        let sizes = |numbers: &[u64]| {
            let mut field = Vec::new();
            if large {
                let length = u16::try_from(8 * numbers.len()).unwrap_or_default();
                field.extend([zip::EXTRA64, length].iter().flat_map(|n| n.to_le_bytes()));
                field.extend(numbers.iter().flat_map(|n| n.to_le_bytes()));
            }
            field
        };
        let mut extra = sizes(&[bytes, bytes]);
        let start = at + 30 + name.len() as u64 + extra.len() as u64 + 4;
        let padding = u16::try_from(start.next_multiple_of(64) - start).unwrap_or_default();
        extra.extend([PADDING, padding].iter().flat_map(|n| n.to_le_bytes()));
        extra.extend(std::iter::repeat_n(0, padding.into()));
        let extra_length = u16::try_from(extra.len()).unwrap_or_default();

        out.write_all(&zip::MEMBER)?;
        out.write_all(&common)?;
        out.write_all(&extra_length.to_le_bytes())?;
        out.write_all(name.as_bytes())?;
        out.write_all(&extra)?;
        write_array(out, array)?;

        let extra = sizes(&[bytes, bytes, at]);
        directory.extend(zip::ENTRY);
        directory.extend(version.to_le_bytes());
        directory.extend(&common);
        directory.extend(u16::try_from(extra.len()).unwrap_or_default().to_le_bytes());
        // No comment, the first disk, no attributes.
        directory.extend([0; 10]);
        directory.extend(place.to_le_bytes());
        directory.extend(name.as_bytes());
        directory.extend(extra);
        at = start + u64::from(padding) + bytes;
    }
    let (count, size) = (arrays.len() as u64, directory.len() as u64);
    out.write_all(&directory)?;
    let many = count >= wide.min(u16::MAX.into());
    if many || size >= wide || at >= wide {
        out.write_all(&zip::END64)?;
        out.write_all(&44_u64.to_le_bytes())?;
        out.write_all(&[45, 0, 45, 0, 0, 0, 0, 0, 0, 0, 0, 0])?;
        for number in [count, count, size, at] {
            out.write_all(&number.to_le_bytes())?;
        }
        out.write_all(&zip::PLACE64)?;
        out.write_all(&[0; 4])?;
        out.write_all(&(at + size).to_le_bytes())?;
        out.write_all(&1_u32.to_le_bytes())?;
    }
    let count = if many { u16::MAX } else { u16::try_from(count).unwrap_or(u16::MAX) };
    out.write_all(&zip::END)?;
    out.write_all(&[0; 4])?;
    out.write_all(&count.to_le_bytes())?;
    out.write_all(&count.to_le_bytes())?;
    out.write_all(&narrow(size).to_le_bytes())?;
    out.write_all(&narrow(at).to_le_bytes())?;
    Ok(out.write_all(&[0; 2])?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ReadLimits, Store};
    use std::fs;

    fn data(name: &str) -> PathBuf {
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
    }

    /// `tests/record.py check` has read this archive with NumPy.
    #[test]
    fn numbers_of_64_bits_are_what_numpy_has_read() {
        let store = Store::open(data("numpy.npz"), &ReadLimits::default()).unwrap();
        let views = store.names().map(|name| (name, store.get(Some(name)).unwrap()));
        let (arrays, mut ours) = (views.collect::<Vec<_>>(), Vec::new());
        archive(&mut ours, &arrays, 0).unwrap();
        if std::env::var_os("SIMULCAST_RECORD").is_some() {
            fs::write(data("ours64.npz"), &ours).unwrap();
        }
        // Each machine writes numbers in its own order.
        let is_recorded = ours == fs::read(data("ours64.npz")).unwrap();
        assert!(is_recorded || cfg!(target_endian = "big"));
    }

    #[test]
    fn what_cannot_be_kept_is_refused() {
        let words = ndarray::array!["a", "b\0"].mapv(String::from);
        let mut out = Vec::new();
        let refused = write_array(&mut out, &(&words).into());
        assert!(matches!(refused, Err(FileProblem::Text { element: 1, .. })));
        let x = ndarray::array![1.0_f32];
        let twice = [("x", (&x).into()), ("x", (&x).into())];
        let refused = archive(&mut out, &twice, u32::MAX.into());
        assert_eq!(refused, Err(FileProblem::Duplicate { name: "x".into() }));
        let far = Path::new("far.npy");
        for (dtype, shape) in [
            (DType::String, &[2][..]),
            (DType::F64, &[1 << (usize::BITS - 2); 2]),
            (DType::U8, &[0, 1 << (usize::BITS - 1)]),
        ] {
            assert!(Writer::new(far, dtype, shape).is_err(), "{dtype} {shape:?}");
        }
        assert!(!far.exists());
    }

    #[test]
    fn any_strides_are_written() {
        let x = ndarray::Array::from_iter(0_i16..24);
        let x = x.to_shape((4, 6)).unwrap().to_owned();
        for view in [x.t(), x.slice(ndarray::s![..;-2, 1..;3]), x.slice(ndarray::s![2..2, ..])] {
            let mut bytes = Vec::new();
            write_array(&mut bytes, &(&view).into()).unwrap();
            let store = Store::from_bytes("x.npy", bytes, &ReadLimits::default()).unwrap();
            assert_eq!(store.get(None).unwrap().typed::<i16>(), Some(view.into_dyn()));
        }
    }
}
