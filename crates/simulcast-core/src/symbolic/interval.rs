//! Intervals of sizes: what is known of a size before it is known.
//!
//! The rule for two intervals is OpenVINO's, and it is exact for the size rule: the set of possible
//! results is always an interval, and always the one returned.
//!
//! ```
//! use simulcast_core::Interval;
//!
//! let batch = Interval::new(2, Some(4)).unwrap();
//! assert_eq!(Interval::new(4, Some(2)), None); // it ends before it begins
//! assert_eq!(batch.join(Interval::UNKNOWN), Some(batch)); // the other side is 1 or agrees
//! assert_eq!(batch.join(Interval::from(5)), None); // no size satisfies both
//! ```

use core::fmt;

/// The sizes from `lo` to `hi`, both included; `hi` is `None` where there is no upper end.
///
/// Never empty.
///
/// ```
/// use simulcast_core::Interval;
///
/// let batch = Interval::new(1, Some(8)).unwrap();
/// assert_eq!((batch.lo(), batch.hi(), batch.contains(4)), (1, Some(8), true));
/// assert_eq!(batch.join(Interval::from(4)), Some(Interval::from(4)));
/// assert_eq!(Interval::from(4).size(), Some(4));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Interval {
    lo: usize,
    hi: Option<usize>,
}

impl Interval {
    /// Nothing is known: every size from 0 on.
    pub const UNKNOWN: Self = Self { lo: 0, hi: None };

    /// The sizes from `lo` to `hi`; `None` where `hi` is below `lo`.
    #[must_use]
    pub const fn new(lo: usize, hi: Option<usize>) -> Option<Self> {
        match hi {
            Some(hi) if hi < lo => None,
            hi => Some(Self { lo, hi }),
        }
    }

    /// The sizes from `lo` on.
    #[must_use]
    pub const fn at_least(lo: usize) -> Self {
        Self { lo, hi: None }
    }

    /// The smallest size.
    #[must_use]
    pub const fn lo(self) -> usize {
        self.lo
    }

    /// The largest size, if there is one.
    #[must_use]
    pub const fn hi(self) -> Option<usize> {
        self.hi
    }

    /// The size, where there is only one.
    #[must_use]
    pub fn size(self) -> Option<usize> {
        self.hi.filter(|&hi| hi == self.lo)
    }

    /// Whether `size` lies inside.
    #[must_use]
    pub fn contains(self, size: usize) -> bool {
        match self.hi {
            _ if size < self.lo => false,
            Some(hi) => size <= hi,
            None => true,
        }
    }

    /// The sizes in both, if there are any.
    #[must_use]
    pub fn intersect(self, other: Self) -> Option<Self> {
        let lo = self.lo.max(other.lo);
        let hi = match (self.hi, other.hi) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        match hi {
            Some(hi) if hi < lo => None,
            _ => Some(Self { lo, hi }),
        }
    }

    /// The smallest interval that holds both.
    #[must_use]
    pub fn hull(self, other: Self) -> Self {
        let hi = self.hi.zip(other.hi).map(|(a, b)| a.max(b));
        Self { lo: self.lo.min(other.lo), hi }
    }

    // Implements E_BROADCAST_ANY_FUNC_0140.
    /// The possible common sizes of two aligned axes, or `None` where every pair clashes.
    #[must_use]
    pub fn join(self, other: Self) -> Option<Self> {
        match (self.contains(1), other.contains(1)) {
            (true, true) => Some(self.hull(other)),
            (true, false) => Some(other),
            (false, true) => Some(self),
            (false, false) => self.intersect(other),
        }
    }
}

impl From<usize> for Interval {
    fn from(size: usize) -> Self {
        Self { lo: size, hi: Some(size) }
    }
}

/// `3`, `2..4`, `2..`, `..4` or `?`.
impl fmt::Display for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.lo, self.hi) {
            (0, None) => f.write_str("?"),
            (lo, None) => write!(f, "{lo}.."),
            (lo, Some(hi)) if lo == hi => write!(f, "{lo}"),
            (0, Some(hi)) => write!(f, "..{hi}"),
            (lo, Some(hi)) => write!(f, "{lo}..{hi}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::join;
    use std::string::ToString;

    fn all() -> impl Iterator<Item = Interval> {
        (0..=5).flat_map(|lo| (lo..=5).filter_map(move |hi| Interval::new(lo, Some(hi))))
    }

    // [E_BROADCAST_ANY_FUNC_0140]
    #[test]
    fn join_is_exact_over_all_pairs_of_intervals_up_to_5() {
        for a in all() {
            for b in all() {
                let inside = |i: Interval| (0..=5).filter(move |&size| i.contains(size));
                for size in 0..=5 {
                    let possible = inside(a).any(|x| inside(b).any(|y| join(x, y) == Some(size)));
                    let said = a.join(b).is_some_and(|c| c.contains(size));
                    assert_eq!(said, possible, "{a} with {b}: {size}");
                }
            }
        }
    }

    // [E_BROADCAST_ANY_FUNC_0140]: the table of OpenVINO's answers for one dimension.
    #[test]
    fn join_answers_as_openvino_does() {
        let names = ["?", "0", "1", "3", "..1", "1..3", "2..4", "5..8", "2..", "..2"];
        let open = Interval::at_least;
        let to = |lo, hi| Interval::new(lo, Some(hi)).unwrap();
        let dims = [
            open(0),
            to(0, 0),
            to(1, 1),
            to(3, 3),
            to(0, 1),
            to(1, 3),
            to(2, 4),
            to(5, 8),
            open(2),
            to(0, 2),
        ];
        for (dim, name) in dims.iter().zip(names) {
            assert_eq!(dim.to_string(), name);
        }
        let rows = [
            (open(0), "? 0 ? 3 ? ? 2..4 5..8 2.. ?"),
            (to(0, 0), "0 0 0 ERR 0 0 ERR ERR ERR 0"),
            (to(1, 1), "? 0 1 3 ..1 1..3 2..4 5..8 2.. ..2"),
            (to(3, 3), "3 ERR 3 3 3 3 3 ERR 3 3"),
            (to(0, 1), "? 0 ..1 3 ..1 ..3 2..4 5..8 2.. ..2"),
            (to(1, 3), "? 0 1..3 3 ..3 1..3 2..4 5..8 2.. ..3"),
            (to(2, 4), "2..4 ERR 2..4 3 2..4 2..4 2..4 ERR 2..4 2..4"),
            (to(5, 8), "5..8 ERR 5..8 ERR 5..8 5..8 ERR 5..8 5..8 5..8"),
            (open(3), "3.. ERR 3.. 3 3.. 3.. 3..4 5..8 3.. 3.."),
        ];
        for (row, answers) in rows {
            for (dim, answer) in dims.iter().zip(answers.split(' ')) {
                let got = row.join(*dim).map_or("ERR".to_string(), |i| i.to_string());
                assert_eq!(got, answer, "{row} with {dim}");
                assert_eq!(dim.join(row), row.join(*dim));
            }
        }
    }

    #[test]
    fn an_interval_is_never_empty() {
        assert_eq!(Interval::new(4, Some(2)), None);
        assert_eq!(Interval::new(4, Some(4)), Some(Interval::from(4)));
        assert_eq!(Interval::from(4).size(), Some(4));
        assert_eq!(Interval::at_least(4).size(), None);
        assert_eq!((Interval::UNKNOWN.lo(), Interval::UNKNOWN.hi()), (0, None));
    }
}
