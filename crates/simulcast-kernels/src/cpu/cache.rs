//! Caches: which results stay in the last one, and which go past it.

use std::sync::OnceLock;

#[cfg(all(target_arch = "x86_64", not(miri)))]
use super::nontemporal::cpuid;

/// The bytes of a last-level cache: of a larger one, others use the rest. With debug assertions it is less, so
/// that tests come here with less.
const CACHE: usize = if cfg!(debug_assertions) { 8 << 20 } else { 32 << 20 };

/// Fewer bytes of results are not worth going past a cache, whatever there is of it.
pub const FEW: usize = CACHE / 8;

/// What is read and written stays in the last-level cache if it is no more than this.
pub fn cache_bytes() -> usize {
    cache()
}

/// What is read and written stays in the last-level cache if it is no more than this.
fn cache() -> usize {
    static SIZE: OnceLock<usize> = OnceLock::new();
    *SIZE.get_or_init(|| largest_cache().map_or(CACHE, |bytes| bytes.min(CACHE)))
}

/// The size of the largest cache, where the processor says it.
fn largest_cache() -> Option<usize> {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        // Intel's leaf, and AMD's: alike, and without entries where the other is in use.
        let known = |&leaf: &u32| leaf <= cpuid(leaf & 0x8000_0000, 0).eax;
        let leaves = [4, 0x8000_001d].into_iter().filter(known);
        let caches = leaves.flat_map(|leaf| (0..8).map(move |at| cpuid(leaf, at)));
        let bytes = caches.filter(|found| matches!(found.eax & 31, 1 | 3)).map(|found| {
            let field = |from: u32, bits: u32| (found.ebx >> from & ((1 << bits) - 1)) as usize + 1;
            let set = field(0, 12) * field(12, 10) * field(22, 10);
            set.saturating_mul(found.ecx as usize + 1)
        });
        bytes.max()
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    None
}

/// Of what is more, the share of the cache that results fill: whoever reads or writes those next finds them
/// there, and the rest goes past it.
const fn kept(cache: usize) -> usize {
    cache / 8 * 7
}

/// The bytes of neighbouring results that go the same way.
pub const STRETCH: usize = 1 << 16;

/// Which results are streamed. Where a cache has room for some, those are spread over all of the output:
/// then every thread writes to memory and to a cache at the same time, and each to its own.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Streams {
    /// The share that is not, of `1 << 32`.
    kept: u64,
}

impl Streams {
    pub const NONE: Self = Self { kept: 1 << 32 };

    /// A guess, for so many bytes. What is read goes through the cache too, and what it finds there of the last call is
    /// worth more than results that are: those are never waited for.
    pub fn guess(written: usize, read: usize) -> Self {
        let cache = cache();
        if written.saturating_add(read) <= cache {
            return Self::NONE;
        }
        let room = kept(cache).saturating_sub(read.saturating_mul(2)).min(written) as u64;
        // No overflow: there is less room than a cache has.
        Self { kept: (room << 32) / written.max(1) as u64 }
    }

    /// Whether so many bytes are about as many as a cache holds, so that a guess may be wrong.
    pub fn is_guess(written: usize, read: usize) -> bool {
        let (cache, all) = (cache(), written.saturating_add(read));
        // Elsewhere, no way goes past the caches.
        cfg!(all(target_arch = "x86_64", not(miri))) && cache / 8 * 5 < all && all <= cache / 2 * 5
    }

    /// How many halves stay, about.
    pub fn halves(self) -> usize {
        ((self.kept + (1 << 30)) >> 31) as usize
    }

    /// So many halves stay.
    pub fn of_halves(halves: usize) -> Self {
        Self { kept: (halves as u64) << 31 }
    }

    /// Whether any are.
    #[inline(always)]
    pub fn any(self) -> bool {
        self != Self::NONE
    }

    /// Whether all are.
    #[inline(always)]
    pub fn all(self) -> bool {
        self.kept == 0
    }

    /// Whether those at a place are.
    #[inline(always)]
    pub fn at<R>(self, out: *const R) -> bool {
        // Multiples of the golden ratio are spread evenly, and over all sets of a cache.
        const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
        let place = (out.addr() / STRETCH) as u64;
        place.wrapping_mul(GOLDEN) >> 32 >= self.kept
    }
}

#[cfg(test)]
mod tests {
    use std::ptr;

    use super::*;

    #[test]
    fn as_much_stays_in_a_cache_as_it_has_room_for() {
        let cache = cache();
        assert!(!Streams::guess(cache, 0).any() && !Streams::guess(cache / 2, cache / 2).any());
        // What is read takes all the room.
        assert!(Streams::guess(2 * cache, 2 * cache).all() && Streams::guess(usize::MAX, 0).all());
        let some = Streams::guess(2 * cache, 0);
        assert!(some.any() && !some.all());
        let stays = |at: &usize| !some.at(ptr::without_provenance::<u8>(*at));
        let stay = (0..2 * cache).step_by(STRETCH).filter(stays).count() * STRETCH;
        assert!(stay.abs_diff(kept(cache)) <= 4 * STRETCH, "{stay} bytes");
        assert_eq!([0, 1, 2].map(|halves| Streams::of_halves(halves).halves()), [0, 1, 2]);
        assert!(Streams::of_halves(0).all() && Streams::of_halves(2) == Streams::NONE);
    }

    #[test]
    #[cfg(all(target_arch = "x86_64", target_os = "linux", not(miri)))]
    fn the_largest_cache_is_as_large_as_the_system_says() {
        let size = |at: usize| {
            let path = format!("/sys/devices/system/cpu/cpu0/cache/index{at}/size");
            let text = std::fs::read_to_string(path).ok()?;
            text.trim().strip_suffix('K')?.parse::<usize>().ok()
        };
        // Containers may hide it.
        if let Some(largest) = (0..8).filter_map(size).max() {
            assert_eq!(largest_cache(), Some(largest << 10));
        }
    }
}
