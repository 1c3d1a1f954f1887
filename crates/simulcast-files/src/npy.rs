//! The header of a `.npy` file: how elements are coded, in which order, and the shape.
//!
//! The header is a Python dictionary as text. It is taken apart in one pass, without recursion, and
//! never evaluated; an unknown value is skipped, however deep it nests. (The crate `npyz` parses it with a
//! general parser of literals and reads the elements; here sizes are bounded and elements are mapped.)
//!
//! ```text
//! \x93NUMPY 1 0 | length | {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), } \n
//! ```

use simulcast::DType;

use crate::error::FileProblem;

pub(crate) const MAGIC: &[u8] = b"\x93NUMPY";

/// What a header says.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Header {
    pub(crate) shape: Vec<usize>,
    /// The first axis is the innermost.
    pub(crate) fortran: bool,
    /// How an element is coded, or why it is not read.
    pub(crate) coding: Result<Coding, FileProblem>,
}

/// How an element is coded in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Coding {
    /// A number; `swap` where the byte order is not this machine's.
    Number { dtype: DType, swap: bool },
    /// That many code points of four bytes, filled up with zeros.
    Points { count: usize, swap: bool },
    /// That many bytes, filled up with zeros.
    Bytes { count: usize },
}

impl Coding {
    pub(crate) const fn dtype(self) -> DType {
        match self {
            Self::Number { dtype, .. } => dtype,
            Self::Points { .. } | Self::Bytes { .. } => DType::String,
        }
    }

    /// The bytes of an element in the file.
    pub(crate) const fn width(self) -> usize {
        match self {
            Self::Number { dtype, .. } => dtype.size(),
            Self::Points { count, .. } => 4 * count,
            Self::Bytes { count } => count,
        }
    }
}

impl Header {
    // Implements E_BROADCAST_ANY_FUNC_2210.
    /// The header at the beginning of `bytes`, and where the elements begin.
    pub(crate) fn read(bytes: &[u8], limit: u64) -> Result<(Self, usize), FileProblem> {
        let truncated =
            |needs: u64| FileProblem::Truncated { part: "header", needs, has: bytes.len() as u64 };
        let short = bytes.len() < MAGIC.len() && MAGIC.starts_with(bytes);
        let start = bytes.strip_prefix(MAGIC);
        let start =
            start.ok_or_else(|| if short { truncated(10) } else { FileProblem::Unknown })?;
        let (length, before) = match *start {
            [1, _, a, b, ..] => (u32::from(u16::from_le_bytes([a, b])), 10),
            [2 | 3, _, a, b, c, d, ..] => (u32::from_le_bytes([a, b, c, d]), 12),
            [1, ..] | [] => return Err(truncated(10)),
            [2 | 3, ..] => return Err(truncated(12)),
            [major, ref rest @ ..] => {
                let minor = rest.first().copied().unwrap_or_default();
                return Err(FileProblem::Version { major, minor });
            }
        };
        if u64::from(length) > limit {
            return Err(FileProblem::Limit { part: "a header", bytes: length.into(), limit });
        }
        let end = before + length as usize;
        let text = bytes.get(before..end).ok_or_else(|| truncated(end as u64))?;
        Ok((Scan { text, at: 0 }.header()?, end))
    }

    /// The header of a row-major array, with what comes before it, byte for byte as NumPy writes
    /// it; its length is a multiple of 64.
    pub(crate) fn write(descr: &str, shape: &[usize]) -> Result<Vec<u8>, FileProblem> {
        let sizes: Vec<String> = shape.iter().map(|size| format!("{size},")).collect();
        let sizes = sizes.join(" ");
        let sizes = if shape.len() > 1 { sizes.trim_end_matches(',') } else { &sizes };
        let mut text =
            format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({sizes}), }}");
        if let Some(first) = shape.first() {
            // As NumPy does, so that the first axis may grow in place.
            let digits = first.to_string().len();
            text.extend(std::iter::repeat_n(' ', 21_usize.saturating_sub(digits)));
        }
        // There is always a space before the end of the line.
        let padded = |before: usize| ((before + text.len() + 1) / 64 + 1) * 64;
        let long = padded(10) - 10 > usize::from(u16::MAX);
        let before = if long { 12 } else { 10 };
        let whole = padded(before);
        let length = u32::try_from(whole - before)
            .map_err(|_| FileProblem::Overflow { shape: shape.to_vec() })?;
        let mut bytes = MAGIC.to_vec();
        bytes.extend([if long { 2 } else { 1 }, 0]);
        bytes.extend(&length.to_le_bytes()[..before - 8]);
        bytes.extend(text.bytes());
        bytes.resize(whole - 1, b' ');
        bytes.push(b'\n');
        Ok(bytes)
    }
}

/// The name of a type in a header, as NumPy writes it on this machine.
pub(crate) fn descr(dtype: DType) -> Option<String> {
    let kind = match dtype {
        DType::Bool => 'b',
        DType::Bf16 => 'V',
        DType::F16 | DType::F32 | DType::F64 => 'f',
        DType::C64 | DType::C128 => 'c',
        DType::I8 | DType::I16 | DType::I32 | DType::I64 => 'i',
        DType::U8 | DType::U16 | DType::U32 | DType::U64 => 'u',
        DType::String => return None,
    };
    let size = dtype.size();
    Some(format!("{}{kind}{size}", if size == 1 { '|' } else { NATIVE }))
}

/// The byte order of this machine.
pub(crate) const NATIVE: char = if cfg!(target_endian = "big") { '>' } else { '<' };

/// The coding that a type's name stands for.
fn coding(descr: &str) -> Result<Coding, FileProblem> {
    let refused = |why| FileProblem::Element { descr: format!("'{descr}'"), why };
    if let Some(dtype) = descr.parse().ok().filter(|dtype| *dtype != DType::String) {
        return Ok(Coding::Number { dtype, swap: false });
    }
    let mut chars = descr.chars().peekable();
    let order = chars.next_if(|c| matches!(c, '<' | '>' | '|' | '=')).unwrap_or('=');
    let swap = matches!(order, '<' | '>') && order != NATIVE;
    let kind = chars.next();
    let digits: String = chars.collect();
    // No sign: `parse` alone would take one.
    let number = digits.bytes().all(|byte| byte.is_ascii_digit());
    let size = if number { digits.parse::<usize>().ok() } else { None };
    let dtype = match (kind, size) {
        (Some('b'), Some(1)) | (Some('?'), None) => DType::Bool,
        (Some('i'), Some(1)) => DType::I8,
        (Some('i'), Some(2)) => DType::I16,
        (Some('i'), Some(4)) => DType::I32,
        (Some('i'), Some(8)) => DType::I64,
        (Some('u'), Some(1)) => DType::U8,
        (Some('u'), Some(2)) => DType::U16,
        (Some('u'), Some(4)) => DType::U32,
        (Some('u'), Some(8)) => DType::U64,
        (Some('f'), Some(2)) => DType::F16,
        (Some('f'), Some(4)) => DType::F32,
        (Some('f'), Some(8)) => DType::F64,
        (Some('c'), Some(8)) => DType::C64,
        (Some('c'), Some(16)) => DType::C128,
        (Some('V'), Some(2)) => DType::Bf16,
        (Some('U'), Some(count)) if count <= usize::MAX / 8 => {
            return Ok(Coding::Points { count, swap });
        }
        (Some('S' | 'a'), Some(count)) => return Ok(Coding::Bytes { count }),
        (Some('O'), _) => {
            return Err(refused("pickled objects could run any code and are not read"));
        }
        (Some('M' | 'm'), _) => return Err(refused("dates and durations are not read")),
        (Some('V'), _) => return Err(refused("raw bytes have no type here")),
        _ => return Err(refused("not known")),
    };
    Ok(Coding::Number { dtype, swap: swap && dtype.size() > 1 })
}

/// The text of a header, and how far it was read.
struct Scan<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Scan<'a> {
    /// The dictionary of the three keys, each once, and nothing after it.
    fn header(mut self) -> Result<Header, FileProblem> {
        let (mut coded, mut fortran, mut shape) = (None, None, None);
        self.expect(b'{', "a dictionary")?;
        while !self.eat(b'}') {
            let start = self.at;
            let key = self.string()?;
            self.expect(b':', "a colon")?;
            let twice = match key {
                b"descr" => coded.replace(self.descr()?).is_some(),
                b"fortran_order" => fortran.replace(self.truth()?).is_some(),
                b"shape" => shape.replace(self.sizes()?).is_some(),
                _ => true,
            };
            if twice {
                let expected = "each of 'descr', 'fortran_order' and 'shape' once";
                return Err(FileProblem::Header { at: start, expected });
            }
            if !self.eat(b',') {
                self.expect(b'}', "a comma or a closing brace")?;
                break;
            }
        }
        self.space();
        if self.at != self.text.len() {
            return Err(self.wrong("nothing but space"));
        }
        let key = |expected| FileProblem::Header { at: self.at, expected };
        Ok(Header {
            coding: coded.ok_or_else(|| key("the key 'descr'"))?,
            fortran: fortran.ok_or_else(|| key("the key 'fortran_order'"))?,
            shape: shape.ok_or_else(|| key("the key 'shape'"))?,
        })
    }

    fn wrong(&self, expected: &'static str) -> FileProblem {
        FileProblem::Header { at: self.at, expected }
    }

    fn rest(&self) -> &'a [u8] {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn space(&mut self) {
        self.at += self.rest().iter().take_while(|byte| byte.is_ascii_whitespace()).count();
    }

    /// Takes a byte, after any space, if it comes next.
    fn eat(&mut self, byte: u8) -> bool {
        self.space();
        let next = self.rest().first() == Some(&byte);
        self.at += usize::from(next);
        next
    }

    fn expect(&mut self, byte: u8, expected: &'static str) -> Result<(), FileProblem> {
        if self.eat(byte) { Ok(()) } else { Err(self.wrong(expected)) }
    }

    /// What stands between quotes; a backslash hides the next byte.
    fn string(&mut self) -> Result<&'a [u8], FileProblem> {
        self.space();
        let quote = match self.rest().first() {
            Some(&quote @ (b'\'' | b'"')) => quote,
            _ => return Err(self.wrong("a string")),
        };
        let (start, mut hidden) = (self.at + 1, false);
        for (at, &byte) in self.text.iter().enumerate().skip(start) {
            if !hidden && byte == quote {
                self.at = at + 1;
                return Ok(self.text.get(start..at).unwrap_or_default());
            }
            hidden = !hidden && byte == b'\\';
        }
        Err(self.wrong("a string with an end"))
    }

    /// The type's name; lists and tuples are records, and are skipped.
    fn descr(&mut self) -> Result<Result<Coding, FileProblem>, FileProblem> {
        self.space();
        if !matches!(self.rest().first(), Some(b'[' | b'(')) {
            return Ok(coding(&String::from_utf8_lossy(self.string()?)));
        }
        let (start, mut depth) = (self.at, 0_usize);
        loop {
            match self.rest().first() {
                Some(b'\'' | b'"') => {
                    self.string()?;
                    continue;
                }
                Some(b'(' | b'[' | b'{') => depth += 1,
                Some(b')' | b']' | b'}') => depth -= 1,
                Some(_) => {}
                None => return Err(self.wrong("a closing bracket")),
            }
            self.at += 1;
            if depth == 0 {
                break;
            }
        }
        let shown = self.text.get(start..self.at.min(start + 60)).unwrap_or_default();
        let descr = String::from_utf8_lossy(shown).into_owned();
        Ok(Err(FileProblem::Element { descr, why: "records are not read" }))
    }

    fn truth(&mut self) -> Result<bool, FileProblem> {
        self.space();
        for (word, value) in [(&b"True"[..], true), (b"False", false)] {
            if self.rest().starts_with(word) {
                self.at += word.len();
                return Ok(value);
            }
        }
        Err(self.wrong("True or False"))
    }

    /// A tuple of sizes: one alone has a comma after it.
    fn sizes(&mut self) -> Result<Vec<usize>, FileProblem> {
        self.expect(b'(', "a tuple of sizes")?;
        let (mut sizes, mut comma) = (Vec::new(), true);
        while !self.eat(b')') {
            self.space();
            let digits = self.rest().iter().take_while(|byte| byte.is_ascii_digit()).count();
            let number = self.rest().get(..digits).and_then(|digits| str::from_utf8(digits).ok());
            let number = number.filter(|_| comma).and_then(|digits| digits.parse().ok());
            sizes.push(number.ok_or_else(|| self.wrong(A_SIZE))?);
            self.at += digits;
            // Python 2 wrote long integers as 3L.
            self.at += usize::from(self.rest().first() == Some(&b'L'));
            comma = self.eat(b',');
        }
        if sizes.len() == 1 && !comma { Err(self.wrong("a tuple of sizes")) } else { Ok(sizes) }
    }
}

/// What an axis may have, where addresses have so many bits.
const A_SIZE: &str = match usize::BITS {
    32 => "a size, from 0 to 2^32 - 1",
    _ => "a size, from 0 to 2^64 - 1",
};

#[cfg(test)]
mod tests {
    use super::*;

    fn file(header: &str) -> Vec<u8> {
        let mut bytes = b"\x93NUMPY\x02\x00".to_vec();
        bytes.extend(u32::try_from(header.len()).unwrap().to_le_bytes());
        bytes.extend(header.as_bytes());
        bytes
    }

    fn read(header: &str) -> Result<Header, FileProblem> {
        Header::read(&file(header), 1 << 20).map(|(header, _)| header)
    }

    fn with(descr: &str, shape: &str) -> Result<Header, FileProblem> {
        read(&format!("{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}\n"))
    }

    // [E_BROADCAST_ANY_FUNC_2210]
    #[test]
    fn shapes_are_read_from_headers() {
        let shape = |shape: &str| with("'<f8'", shape).map(|header| header.shape);
        assert_eq!(shape("(8, 1, 6, 1)"), Ok(vec![8, 1, 6, 1]));
        assert_eq!(shape("(3,)"), Ok(vec![3]));
        assert_eq!(shape("()"), Ok(vec![]));
        assert_eq!(shape("( 0 , 3L , )"), Ok(vec![0, 3]));
        let tricky = r#"[("a'shape': (9,)", '<f8'), ('shape', '<i4', (2,)), ({'shape': (7,)})]"#;
        assert_eq!(with(tricky, "(2,)").map(|header| header.shape), Ok(vec![2]));
        assert_eq!(with(r"'it\'s'", "(2,)").map(|header| header.shape), Ok(vec![2]));
    }

    // [E_BROADCAST_ANY_FUNC_2210]
    #[test]
    fn hostile_headers_are_refused() {
        let refused = |bytes: &[u8]| Header::read(bytes, 1 << 20).unwrap_err();
        let ends = |needs, has| FileProblem::Truncated { part: "header", needs, has };
        assert_eq!(refused(b""), ends(10, 0));
        assert_eq!(refused(b"PK\x03\x04aaaa"), FileProblem::Unknown);
        assert_eq!(refused(b"\x93NUMPY\x01\x00\xff"), ends(10, 9));
        assert_eq!(refused(b"\x93NUMPY\x03\x00\xff\xff\xff"), ends(12, 11));
        assert_eq!(refused(b"\x93NUMPY\x09\x04"), FileProblem::Version { major: 9, minor: 4 });
        let limit = FileProblem::Limit { part: "a header", bytes: 0xffff_ffff, limit: 1 << 20 };
        assert_eq!(refused(b"\x93NUMPY\x02\x00\xff\xff\xff\xff"), limit);
        assert_eq!(refused(b"\x93NUMPY\x01\x00\x10\x00{'shape': (2,)"), ends(26, 24));
        let both = "'descr': '<f4', 'fortran_order': True";
        for (header, at, expected) in [
            ("", 0, "a dictionary"),
            ("[]", 0, "a dictionary"),
            ("{}", 2, "the key 'descr'"),
            ("{'shape'}", 8, "a colon"),
            ("{'shape': }", 10, "a tuple of sizes"),
            ("{'shape': (2, x)}", 14, A_SIZE),
            ("{'shape': (2", 12, A_SIZE),
            ("{'shape': (-2,)}", 11, A_SIZE),
            ("{'shape': (+2,)}", 11, A_SIZE),
            ("{'shape': (99999999999999999999999,)}", 11, A_SIZE),
            ("{'shape': (2,,)}", 13, A_SIZE),
            ("{'shape': (2 3)}", 13, A_SIZE),
            ("{'shape': (2)}", 13, "a tuple of sizes"),
            ("{'shape': ((2,),)}", 11, A_SIZE),
            ("{'shape", 1, "a string with an end"),
            ("{'a\\'", 1, "a string with an end"),
            (")", 0, "a dictionary"),
            ("{)", 1, "a string"),
            ("{'other': 1}", 1, "each of 'descr', 'fortran_order' and 'shape' once"),
            ("{'shape': (), 'shape': ()}", 14, "each of 'descr', 'fortran_order' and 'shape' once"),
            ("{'fortran_order': 1}", 18, "True or False"),
            ("{'descr': [('a', '<f4')", 23, "a closing bracket"),
            ("{'descr': 4}", 10, "a string"),
        ] {
            assert_eq!(read(header), Err(FileProblem::Header { at, expected }), "{header}");
        }
        let more = format!("{{{both}, 'shape': ()}} or 1");
        let at = more.len() - 4;
        assert_eq!(read(&more), Err(FileProblem::Header { at, expected: "nothing but space" }));
    }

    #[test]
    fn nesting_a_hundred_thousand_deep_costs_nothing() {
        let (open, close) = ("(".repeat(100_000), ")".repeat(100_000));
        let deep = with(&format!("[{open}{close}]"), "(2,)").unwrap();
        assert!(matches!(
            deep.coding,
            Err(FileProblem::Element { why: "records are not read", .. })
        ));
        assert!(with("'<f4'", &format!("{open}{close}")).is_err());
        assert!(with(&open, "()").is_err());
    }

    #[test]
    fn codings_are_known_by_their_names() {
        let number = |dtype, swap| Ok(Coding::Number { dtype, swap });
        let little = cfg!(target_endian = "little");
        assert_eq!(coding("<f4"), number(DType::F32, !little));
        assert_eq!(coding(">c16"), number(DType::C128, little));
        assert_eq!(coding(">i1"), number(DType::I8, false));
        assert_eq!(coding("<V2"), number(DType::Bf16, !little));
        assert_eq!(coding("bfloat16"), number(DType::Bf16, false));
        assert_eq!(coding(">U3"), Ok(Coding::Points { count: 3, swap: little }));
        assert_eq!(coding("|S5"), Ok(Coding::Bytes { count: 5 }));
        for descr in [
            "",
            "<",
            "O",
            "|O",
            "|O8",
            "<M8[ns]",
            "<m8",
            "|V1",
            "<f16",
            "<f",
            "<f+4",
            "f-4",
            "<<f4",
            "string",
            "|T16",
            "<U99999999999999999999",
            "<U9223372036854775807",
            "b2",
            "<i3",
            "é4",
        ] {
            assert!(matches!(coding(descr), Err(FileProblem::Element { .. })), "{descr}");
        }
    }

    #[test]
    fn written_headers_are_read_back() {
        let long = vec![7; 40_000];
        for shape in [&[][..], &[3], &[2, 0], &long] {
            let bytes = Header::write("<f4", shape).unwrap();
            let (header, end) = Header::read(&bytes, 1 << 20).unwrap();
            assert_eq!((end, end % 64), (bytes.len(), 0));
            assert_eq!((&header.shape[..], header.fortran), (shape, false));
            assert_eq!(header.coding.map(Coding::dtype), Ok(DType::F32));
        }
        for &dtype in DType::ALL.iter().filter(|dtype| **dtype != DType::String) {
            let coded = coding(&descr(dtype).unwrap());
            assert_eq!(coded, Ok(Coding::Number { dtype, swap: false }));
        }
    }
}
