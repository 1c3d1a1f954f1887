//! The size of the last-level cache, by which `exec::strategy` chooses between ordinary and non-temporal stores.

use std::sync::OnceLock;

#[cfg(all(target_arch = "x86_64", not(miri)))]
use super::cpuid;
use crate::tuning::LAST_LEVEL_CACHE_BYTES_MAX;

/// The bytes of the last-level cache that one call may count on: a call that reads and writes no more than this leaves its
/// results in the cache. At most [`LAST_LEVEL_CACHE_BYTES_MAX`].
pub fn cache_bytes() -> usize {
    static BYTES: OnceLock<usize> = OnceLock::new();
    *BYTES.get_or_init(|| {
        let most = LAST_LEVEL_CACHE_BYTES_MAX;
        largest_cache().map_or(most, |bytes| bytes.min(most))
    })
}

/// The bytes of the largest cache, if the processor describes its caches.
fn largest_cache() -> Option<usize> {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        // Intel's leaf and AMD's have one layout; a processor has entries in one of them.
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

#[cfg(all(test, target_arch = "x86_64", target_os = "linux", not(miri)))]
mod tests {
    use super::*;

    #[test]
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
