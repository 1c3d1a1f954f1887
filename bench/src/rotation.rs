//! Several copies of a case's arrays, used in turn, so that no call finds in the caches what the call before left there.
//!
//! A case whose arrays fit in half of the last-level cache has one copy: it is measured in the caches. A larger one
//! has as many as come to several times that cache, so that every call reads its operands from memory and writes
//! its result to memory. With one copy of 64 MB, a cache of 32 MB kept up to half of the operands from one call to
//! the next.

use std::fs;
use std::rc::Rc;
use std::sync::OnceLock;

use crate::case::Case;

/// How many times the last-level cache the operands, or the results, of all copies come to.
const CACHES: usize = 4;

/// The bytes of the last-level cache where the system does not tell.
const DEFAULT_CACHE_BYTES: usize = 32 << 20;

/// Values that are used in turn.
pub struct Rotation<T> {
    copies: Vec<T>,
    at: usize,
}

impl<T> Rotation<T> {
    pub fn new(copies: impl IntoIterator<Item = T>) -> Self {
        Self { copies: copies.into_iter().collect(), at: 0 }
    }

    /// The copy that was used longest ago.
    #[inline]
    pub fn turn(&mut self) -> &mut T {
        self.at += 1;
        if self.at >= self.copies.len() {
            self.at = 0;
        }
        &mut self.copies[self.at]
    }
}

/// The copies of an array, which the engines of a case share.
pub fn copies<T: Clone>(case: &Case, array: T) -> Vec<Rc<T>> {
    let mut all: Vec<Rc<T>> = (1..count(case)).map(|_| Rc::new(array.clone())).collect();
    all.push(Rc::new(array));
    all
}

/// The copies of each array that a case has.
pub fn count(case: &Case) -> usize {
    if !case.moves() || case.element == "string" || in_cache(case) {
        return 1;
    }
    let (read, written) = case.traffic();
    (CACHES * last_level_cache()).div_ceil(read.max(written))
}

/// Whether its arrays stay in the last-level cache from one call to the next.
pub fn in_cache(case: &Case) -> bool {
    case.bytes() <= last_level_cache() / 2
}

/// The bytes of the last-level cache that a core sees.
fn last_level_cache() -> usize {
    static BYTES: OnceLock<usize> = OnceLock::new();
    *BYTES.get_or_init(|| {
        let folder = "/sys/devices/system/cpu/cpu0/cache";
        let sizes = fs::read_dir(folder).into_iter().flatten().flatten().filter_map(|entry| {
            let text = fs::read_to_string(entry.path().join("size")).ok()?;
            Some(text.trim().strip_suffix('K')?.parse::<usize>().ok()? << 10)
        });
        sizes.max().unwrap_or(DEFAULT_CACHE_BYTES)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(shapes: &str) -> Case {
        let text = format!(r#"{{"name": "x", "op": "a + b", "type": "f32", "shapes": {shapes}}}"#);
        serde_json::from_str(&text).expect("a case")
    }

    #[test]
    fn copies_take_turns() {
        let mut rotation = Rotation::new([1, 2, 3]);
        let taken: Vec<i32> = (0..6).map(|_| *rotation.turn()).collect();
        assert_eq!(taken, [2, 3, 1, 2, 3, 1]);
        assert_eq!(*Rotation::new([7]).turn(), 7);
    }

    #[test]
    fn small_cases_have_one_copy_and_large_ones_exceed_the_cache() {
        assert_eq!(count(&case("[[64], [64]]")), 1);
        let elements = last_level_cache() / 2;
        let large = case(&format!("[[{elements}], [1]]"));
        let bytes = count(&large) * large.traffic().1;
        assert!(bytes >= CACHES * last_level_cache() && bytes < (CACHES + 2) * last_level_cache());
    }
}
