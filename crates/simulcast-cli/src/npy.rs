//! The shape in the header of a NumPy file. The file may be hostile: only its first bytes are
//! read, and its header is taken apart as text, never evaluated.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Headers longer than this are refused; NumPy itself stops at 10,000 unless told otherwise.
const LONGEST: u32 = 1 << 20;

// Implements E_BROADCAST_ANY_FUNC_2210.
/// The shape of the array in a `.npy` file.
pub(crate) fn read_shape(path: &Path) -> Result<Vec<usize>, String> {
    let file = File::open(path).map_err(|error| plain(&error))?;
    shape_of(file)
}

fn shape_of(mut file: impl Read) -> Result<Vec<usize>, String> {
    let mut start = [0; 8];
    read(&mut file, &mut start)?;
    let [magic @ .., major, _minor] = start;
    if magic != *b"\x93NUMPY" {
        return Err("not a NumPy file".into());
    }
    let length = match major {
        1 => {
            let mut bytes = [0; 2];
            read(&mut file, &mut bytes)?;
            u32::from(u16::from_le_bytes(bytes))
        }
        2 | 3 => {
            let mut bytes = [0; 4];
            read(&mut file, &mut bytes)?;
            u32::from_le_bytes(bytes)
        }
        major => return Err(format!("version {major} of the format is not known")),
    };
    if length > LONGEST {
        return Err(format!("a header of {length} bytes is too long"));
    }
    let mut header = Vec::new();
    file.take(length.into()).read_to_end(&mut header).map_err(|error| plain(&error))?;
    if header.len() != length as usize {
        return Err("the file ends inside its header".into());
    }
    parse(&String::from_utf8_lossy(&header)).ok_or_else(|| "the header has no shape".into())
}

fn read(file: &mut impl Read, bytes: &mut [u8]) -> Result<(), String> {
    file.read_exact(bytes).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => "the file ends inside its header".into(),
        _ => plain(&error),
    })
}

fn plain(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "there is no such file".into(),
        io::ErrorKind::PermissionDenied => "the file may not be read".into(),
        _ => error.to_string(),
    }
}

/// Finds the value of the key `shape` in the outer dictionary; strings elsewhere may say anything.
fn parse(header: &str) -> Option<Vec<usize>> {
    let mut rest = header.trim_start().strip_prefix('{')?;
    let mut depth = 0_usize;
    loop {
        let at = rest.find(['\'', '"', '(', '[', '{', ')', ']', '}'])?;
        let (_, tail) = rest.split_at_checked(at)?;
        let mut chars = tail.chars();
        let first = chars.next()?;
        rest = chars.as_str();
        match first {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.checked_sub(1)?,
            quote => {
                let (string, after) = string(rest, quote)?;
                rest = after;
                let value = after.trim_start().strip_prefix(':').map(str::trim_start);
                if let (0, "shape", Some(value)) = (depth, string, value) {
                    return tuple(value);
                }
            }
        }
    }
}

/// The text up to the closing quote, and what follows; a backslash hides the next character.
fn string(text: &str, quote: char) -> Option<(&str, &str)> {
    let mut hidden = false;
    for (at, c) in text.char_indices() {
        if !hidden && c == quote {
            return Some((text.get(..at)?, text.get(at + c.len_utf8()..)?));
        }
        hidden = !hidden && c == '\\';
    }
    None
}

fn tuple(text: &str) -> Option<Vec<usize>> {
    let (inside, _) = text.strip_prefix('(')?.split_once(')')?;
    let inside = inside.trim();
    let inside = inside.strip_suffix(',').unwrap_or(inside);
    if inside.is_empty() {
        return Some(Vec::new());
    }
    // Python 2 wrote long integers as 3L.
    inside.split(',').map(|size| size.trim().trim_end_matches('L').parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(header: &str) -> Vec<u8> {
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend(u16::try_from(header.len()).unwrap().to_le_bytes());
        bytes.extend(header.as_bytes());
        bytes
    }

    // [E_BROADCAST_ANY_FUNC_2210]
    #[test]
    fn shapes_are_read_from_headers() {
        let read = |shape: &str| {
            let header =
                format!("{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}\n");
            shape_of(&file(&header)[..])
        };
        assert_eq!(read("(8, 1, 6, 1)"), Ok(vec![8, 1, 6, 1]));
        assert_eq!(read("(3,)"), Ok(vec![3]));
        assert_eq!(read("()"), Ok(vec![]));
        assert_eq!(read("(0, 3L)"), Ok(vec![0, 3]));
        let tricky = r#"{'descr': [("a'shape': (9,)", '<f8'), ('shape', '<i4', (2,)), ({'shape': (7,)})], 'shape': (2,)}"#;
        assert_eq!(shape_of(&file(tricky)[..]), Ok(vec![2]));
        let escaped = r"{'descr': 'it\'s', 'shape': (2,)}";
        assert_eq!(shape_of(&file(escaped)[..]), Ok(vec![2]));
    }

    // [E_BROADCAST_ANY_FUNC_2210]
    #[test]
    fn hostile_headers_are_refused() {
        let refused = |bytes: &[u8]| shape_of(bytes).unwrap_err();
        assert_eq!(refused(b""), "the file ends inside its header");
        assert_eq!(refused(b"PK\x03\x04aaaa"), "not a NumPy file");
        assert_eq!(refused(b"\x93NUMPY\x01\x00\xff"), "the file ends inside its header");
        assert_eq!(refused(b"\x93NUMPY\x09\x00"), "version 9 of the format is not known");
        assert_eq!(
            refused(b"\x93NUMPY\x02\x00\xff\xff\xff\xff"),
            "a header of 4294967295 bytes is too long"
        );
        assert_eq!(
            refused(b"\x93NUMPY\x01\x00\x10\x00{'shape': (2,)"),
            "the file ends inside its header"
        );
        for header in [
            "",
            "{}",
            "{'shape'}",
            "{'shape': }",
            "{'shape': (2, x)}",
            "{'shape': (2",
            "{'shape': (-2,)}",
            "{'shape': (99999999999999999999999,)}",
            "{'shape",
            ")",
            "{)",
            "{'a\\",
            "{'shape': (2,,)}",
        ] {
            assert_eq!(refused(&file(header)), "the header has no shape", "{header}");
        }
    }
}
