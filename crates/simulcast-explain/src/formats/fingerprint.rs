//! Fingerprints: what makes a finding the same one after lines above it were added or removed.

use std::collections::BTreeMap;

use super::Notice;

/// The fingerprint of each notice: of its code, its file, its node, its source text without the space around its
/// lines, and its operands; and of how many like it came before, so that no two are equal.
///
/// They are 32 hexadecimal digits, the FNV-1a hash of 128 bits, and stay the same from release to release.
#[must_use]
pub fn fingerprints(notices: &[Notice]) -> Vec<String> {
    let mut seen: BTreeMap<u128, usize> = BTreeMap::new();
    let print = |notice: &Notice| {
        let mut hash = Hash::new();
        for part in [&*notice.code, &notice.file, notice.node.as_deref().unwrap_or_default()] {
            hash.part(part);
        }
        for line in notice.snippet.lines().map(str::trim).filter(|line| !line.is_empty()) {
            hash.part(line);
        }
        hash.part("");
        for operand in &notice.operands {
            hash.part(operand);
        }
        let before = seen.entry(hash.0).or_default();
        if *before > 0 {
            hash.part(&before.to_string());
        }
        *before = before.saturating_add(1);
        format!("{:032x}", hash.0)
    };
    notices.iter().map(print).collect()
}

/// FNV-1a of 128 bits.
struct Hash(u128);

impl Hash {
    fn new() -> Self {
        Self(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d)
    }

    /// Takes a text, and a byte that no text has after it.
    fn part(&mut self, text: &str) {
        for byte in text.bytes().chain([0xff]) {
            self.0 ^= u128::from(byte);
            self.0 = self.0.wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::Position;

    fn notice(snippet: &str, line: usize) -> Notice {
        let mut notice = Notice::new("SC102", None, "said", "a.py");
        notice.snippet = snippet.into();
        notice.start = Some(Position { line, column: Some(line) });
        notice
    }

    #[test]
    fn the_hash_is_fnv_1a_of_128_bits() {
        // The values of Noll's own tables for "" and "a", whose end is not marked there.
        let mut hash = Hash::new();
        assert_eq!(format!("{:032x}", hash.0), "6c62272e07bb014262b821756295c58d");
        hash.0 = (hash.0 ^ u128::from(b'a')).wrapping_mul(0x0100_0000_0000_0000_0000_013b);
        assert_eq!(format!("{:032x}", hash.0), "d228cb696f1a8caf78912b704e4a8964");
    }

    #[test]
    fn a_fingerprint_survives_moved_and_indented_lines_and_tells_all_else() {
        let one = |notice: Notice| fingerprints(&[notice]).remove(0);
        let own = one(notice("loss = pred - target", 3));
        assert_eq!(own, one(notice("    loss = pred - target  ", 17)));
        assert_ne!(own, one(notice("loss = target - pred", 3)));
        let mut other = notice("loss = pred - target", 3);
        other.operands = vec!["pred".into(), "target".into()];
        let named = one(other.clone());
        assert_ne!(own, named);
        other.operands = vec!["predtarget".into()];
        assert_ne!(named, one(other));
        // Findings that look alike differ by their order.
        let twice = fingerprints(&[notice("x", 1), notice("x", 2), notice("x", 3)]);
        assert!(twice[0] != twice[1] && twice[1] != twice[2] && twice[0] != twice[2]);
        assert_eq!(twice[0], one(notice("x", 9)));
    }
}
