//! Zip archives, as far as `.npz` files need them: a directory of members, stored or deflated.
//!
//! Written for files that lie: the directory at the end is what counts, every number in it is held
//! against the file, and the member's own header must repeat its name. Names are names, never paths:
//! nothing is unpacked to anywhere. Members that overlap are read each for itself, at the expense of
//! the caller's budget. (The crate `zip` gives members as readers; here a stored member is used where it is
//! mapped, without a copy.)
//!
//! ```text
//! member header, name, bytes │ … │ directory: one entry a member │ (64-bit end, its place) │ end
//! ```

use std::io::Read as _;
use std::ops::Range;

use flate2::Crc;
use flate2::read::DeflateDecoder;

use crate::error::FileProblem;

pub(crate) const MEMBER: [u8; 4] = *b"PK\x03\x04";
pub(crate) const ENTRY: [u8; 4] = *b"PK\x01\x02";
pub(crate) const END: [u8; 4] = *b"PK\x05\x06";
pub(crate) const END64: [u8; 4] = *b"PK\x06\x06";
pub(crate) const PLACE64: [u8; 4] = *b"PK\x06\x07";
/// The extra field that holds sizes and places of 64 bits.
pub(crate) const EXTRA64: u16 = 1;

/// Deflate's maximum ratio (1032:1). A member that claims more is a zip bomb.
const BEST: u64 = 1032;

/// A member of an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Member {
    pub(crate) name: String,
    /// The bytes of the member once unpacked.
    pub(crate) size: u64,
    /// The bytes in the archive.
    packed: Range<usize>,
    deflated: bool,
    checksum: u32,
}

/// Little-endian numbers, one after another.
struct Cursor<'a> {
    file: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    fn bytes(&mut self, count: usize) -> Result<&'a [u8], FileProblem> {
        let end = self.at.checked_add(count);
        let bytes = end.and_then(|end| self.file.get(self.at..end));
        let bytes = bytes.ok_or_else(|| self.wrong("ends too early"))?;
        self.at += count;
        Ok(bytes)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], FileProblem> {
        let bytes = self.bytes(N)?;
        bytes.try_into().map_err(|_| self.wrong("ends too early"))
    }

    fn u16(&mut self) -> Result<u16, FileProblem> {
        self.array().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Result<u32, FileProblem> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, FileProblem> {
        self.array().map(u64::from_le_bytes)
    }

    fn sign(&mut self, sign: [u8; 4], why: &'static str) -> Result<(), FileProblem> {
        let at = self.at;
        if self.array()? == sign { Ok(()) } else { Err(FileProblem::Zip { at: at as u64, why }) }
    }

    fn wrong(&self, why: &'static str) -> FileProblem {
        FileProblem::Zip { at: self.at as u64, why }
    }
}

/// The members of an archive, in the directory's order; two of one name are refused.
pub(crate) fn members(file: &[u8], limit: u64) -> Result<Vec<Member>, FileProblem> {
    let (count, directory) = directory(file)?;
    let bytes = directory.len() as u64;
    if bytes > limit {
        return Err(FileProblem::Limit { part: "a directory", bytes, limit });
    }
    let mut cursor =
        Cursor { file: file.get(..directory.end).unwrap_or_default(), at: directory.start };
    let mut members = Vec::new();
    while cursor.at < directory.end {
        members.push(entry(&mut cursor, directory.start)?);
    }
    if members.len() as u64 != count {
        return Err(cursor.wrong("has another number of members than it says"));
    }
    let mut names: Vec<&str> = members.iter().map(|member| &*member.name).collect();
    names.sort_unstable();
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(FileProblem::Duplicate { name: pair[0].into() }),
        None => Ok(members),
    }
}

/// How many members there are, and where the directory is.
fn directory(file: &[u8]) -> Result<(u64, Range<usize>), FileProblem> {
    const LONGEST: usize = 22 + u16::MAX as usize;
    let lowest = file.len().saturating_sub(LONGEST);
    let ends = |at: usize| {
        let tail = file.get(at..).unwrap_or_default();
        // The comment reaches to the end, so that there is no second end within it.
        matches!(*tail, [a, b, c, d, ..] if [a, b, c, d] == END)
            && matches!(tail.get(20..22), Some(&[low, high]) if
                tail.len() - 22 == usize::from(u16::from_le_bytes([low, high])))
    };
    let end = (lowest..(file.len() + 1).saturating_sub(22)).rev().find(|&at| ends(at));
    let end = end.ok_or(FileProblem::Zip { at: file.len() as u64, why: "has no directory" })?;
    let mut cursor = Cursor { file, at: end + 4 };
    let (disk, first) = (cursor.u16()?, cursor.u16()?);
    let (here, count) = (cursor.u16()?, cursor.u16()?);
    let (size, start) = (cursor.u32()?, cursor.u32()?);
    let (count, size, start, end) = if count == u16::MAX || size == u32::MAX || start == u32::MAX {
        let place = end.checked_sub(20).ok_or_else(|| cursor.wrong("has no 64-bit end"))?;
        let mut cursor = Cursor { file, at: place };
        cursor.sign(PLACE64, "has no place of a 64-bit end")?;
        let (disk, at, disks) = (cursor.u32()?, cursor.u64()?, cursor.u32()?);
        let at = usize::try_from(at).ok().filter(|&at| at < place && disk == 0 && disks <= 1);
        let at = at.ok_or_else(|| cursor.wrong("has a 64-bit end elsewhere"))?;
        let mut cursor = Cursor { file, at };
        cursor.sign(END64, "has no 64-bit end")?;
        let (_length, _versions) = (cursor.u64()?, cursor.u32()?);
        let (disk, first) = (cursor.u32()?, cursor.u32()?);
        let (here, count) = (cursor.u64()?, cursor.u64()?);
        if (disk, first) != (0, 0) || here != count {
            return Err(cursor.wrong("is in several parts"));
        }
        (count, cursor.u64()?, cursor.u64()?, at)
    } else {
        if (disk, first) != (0, 0) || here != count {
            return Err(cursor.wrong("is in several parts"));
        }
        (u64::from(count), u64::from(size), u64::from(start), end)
    };
    let stop = start.checked_add(size);
    if stop != Some(end as u64) {
        return Err(cursor.wrong("has a directory that does not end at its end"));
    }
    // Both fit, since `end` did.
    let start = usize::try_from(start).unwrap_or(end);
    Ok((count, start..end))
}

/// The next entry of the directory, which begins at `directory`.
fn entry(cursor: &mut Cursor<'_>, directory: usize) -> Result<Member, FileProblem> {
    let at = cursor.at as u64;
    let wrong = |why| FileProblem::Zip { at, why };
    cursor.sign(ENTRY, "has no entry")?;
    let (_versions, flags, method) = (cursor.u32()?, cursor.u16()?, cursor.u16()?);
    let (_time, checksum) = (cursor.u32()?, cursor.u32()?);
    let (mut packed, mut size) = (u64::from(cursor.u32()?), u64::from(cursor.u32()?));
    let (name, extra, comment) = (cursor.u16()?, cursor.u16()?, cursor.u16()?);
    let (disk, _attributes) = (cursor.u16()?, cursor.bytes(6)?);
    let mut start = u64::from(cursor.u32()?);
    let name = cursor.bytes(name.into())?;
    let extra = cursor.bytes(extra.into())?;
    cursor.bytes(comment.into())?;
    wide(extra, [&mut size, &mut packed, &mut start]).map_err(wrong)?;
    if disk != 0 || flags & 1 != 0 {
        return Err(wrong("has a member that is encrypted, or elsewhere,"));
    }
    let deflated = match method {
        0 if packed == size => false,
        0 => return Err(wrong("has a stored member of two sizes")),
        8 => true,
        _ => return Err(wrong("has a member that is neither stored nor deflated")),
    };
    if deflated && size > packed.saturating_mul(BEST).saturating_add(BEST) {
        return Err(wrong("has a member that cannot be as large as it says"));
    }
    let text = str::from_utf8(name).map_err(|_| wrong("has a name that is not UTF-8"))?;
    let before = cursor.file.get(..directory).unwrap_or_default();
    let start = usize::try_from(start).map_err(|_| wrong("has a member past its end"))?;
    let mut own = Cursor { file: before, at: start };
    own.sign(MEMBER, "has no member")?;
    own.bytes(22)?;
    let (length, extra) = (own.u16()?, own.u16()?);
    if own.bytes(length.into())? != name {
        return Err(wrong("has a member of two names"));
    }
    own.bytes(extra.into())?;
    let start = own.at;
    let packed = usize::try_from(packed).map_err(|_| wrong("has a member past its end"))?;
    own.bytes(packed)?;
    Ok(Member { name: text.into(), size, packed: start..own.at, deflated, checksum })
}

/// Puts in the numbers of 64 bits, for those that are all ones, from the extra field.
fn wide(mut extra: &[u8], numbers: [&mut u64; 3]) -> Result<(), &'static str> {
    let narrow = u64::from(u32::MAX);
    if numbers.iter().all(|number| **number != narrow) {
        return Ok(());
    }
    let why = "has an entry without its 64-bit sizes";
    loop {
        let (&[a, b, c, d], rest) = extra.split_first_chunk().ok_or(why)?;
        let length = u16::from_le_bytes([c, d]).into();
        let (mut field, rest) = rest.split_at_checked(length).ok_or(why)?;
        if u16::from_le_bytes([a, b]) != EXTRA64 {
            extra = rest;
            continue;
        }
        for number in numbers {
            if *number == narrow {
                let (wide, rest) = field.split_first_chunk().ok_or(why)?;
                *number = u64::from_le_bytes(*wide);
                field = rest;
            }
        }
        return Ok(());
    }
}

impl Member {
    /// The bytes in the file, where they are stored as they are.
    pub(crate) fn stored(&self) -> Option<Range<usize>> {
        (!self.deflated).then(|| self.packed.clone())
    }

    /// The first bytes of the member, at most `count`.
    pub(crate) fn start(&self, file: &[u8], count: usize) -> Result<Vec<u8>, FileProblem> {
        let packed = file.get(self.packed.clone()).unwrap_or_default();
        if !self.deflated {
            return Ok(packed.get(..count).unwrap_or(packed).to_vec());
        }
        let (mut bytes, count) = (Vec::new(), self.size.min(count as u64));
        let read = DeflateDecoder::new(packed).take(count).read_to_end(&mut bytes);
        read.map(|_| bytes).map_err(|_| self.broken())
    }

    /// All bytes of a deflated member: as many as it says, and of its checksum.
    pub(crate) fn unpack(&self, file: &[u8]) -> Result<Vec<u8>, FileProblem> {
        let packed = file.get(self.packed.clone()).unwrap_or_default();
        let limit =
            FileProblem::Limit { part: "a member", bytes: self.size, limit: isize::MAX as u64 };
        let size = usize::try_from(self.size).map_err(|_| limit.clone())?;
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(size).map_err(|_| limit)?;
        let mut inflated = DeflateDecoder::new(packed).take(self.size);
        inflated.read_to_end(&mut bytes).map_err(|_| self.broken())?;
        let more = inflated.into_inner().read(&mut [0]).map_err(|_| self.broken())?;
        if bytes.len() != size || more != 0 {
            let why = "has a member of another size than it says";
            return Err(FileProblem::Zip { at: self.packed.start as u64, why });
        }
        self.check(&bytes)?;
        Ok(bytes)
    }

    /// Holds the bytes against the checksum.
    pub(crate) fn check(&self, bytes: &[u8]) -> Result<(), FileProblem> {
        let mut crc = Crc::new();
        crc.update(bytes);
        let why = "has a member of another checksum";
        let wrong = FileProblem::Zip { at: self.packed.start as u64, why };
        if crc.sum() == self.checksum { Ok(()) } else { Err(wrong) }
    }

    fn broken(&self) -> FileProblem {
        FileProblem::Zip {
            at: self.packed.start as u64,
            why: "has a member that cannot be unpacked",
        }
    }
}
