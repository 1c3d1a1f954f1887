//! Pairwise summation: the order in which partial values are joined, the one tree of all reductions.
//!
//! Leaves are joined in pairs as they come, pairs of pairs, and so on, as the bits of a binary counter carry: level `k`
//! holds the join of `1 << k` leaves. So the rounding error of a sum grows with the logarithm of the number of leaves,
//! and the order depends on nothing but that number, which need not be known beforehand.
//!
//! ```
//! use simulcast_kernels::reduce::pairwise::Pairwise;
//!
//! let (mut order, mut levels) = (Pairwise::default(), vec![String::new(); 8]);
//! for leaf in ["a", "b", "c", "d", "e", "f", "g"] {
//!     let (mut value, carries) = (leaf.to_string(), order.push());
//!     for level in 0..carries {
//!         value = format!("({}{value})", levels[level]);
//!     }
//!     levels[carries] = value;
//! }
//! let left: Vec<_> = order.left().map(|level| levels[level].clone()).collect();
//! assert_eq!(left, ["g", "(ef)", "((ab)(cd))"]); // joined in this order, the earlier one on the left
//! ```

/// The leaves so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pairwise {
    leaves: usize,
}

impl Pairwise {
    /// The most levels that there are.
    pub const LEVELS: usize = usize::BITS as usize;

    /// Adds a leaf and returns the number of carries: the leaf is joined with that many levels, the lowest first, each on
    /// its left, and the result is stored in the next level.
    #[inline(always)]
    pub fn push(&mut self) -> usize {
        let carries = self.leaves.trailing_ones() as usize;
        self.leaves += 1;
        carries
    }

    /// The levels that hold a value, the latest leaves first.
    #[inline(always)]
    pub fn left(self) -> impl Iterator<Item = usize> {
        (0..Self::LEVELS).filter(move |level| self.leaves >> level & 1 == 1)
    }
}

/// Joins lanes in halves, lane `k` with lane `k + half`, down to one: a power of two of them, at most 128.
#[inline(always)]
pub(crate) fn halves<T: Copy, const N: usize>(
    mut lanes: [T; N],
    join: impl Fn(T, T) -> T + Copy,
) -> T {
    const { assert!(N.is_power_of_two() && N <= 128, "lanes that have halves") };
    // Each loop has a constant number of steps, so that it is unrolled and the lanes stay in registers.
    half::<T, 64>(&mut lanes, join);
    half::<T, 32>(&mut lanes, join);
    half::<T, 16>(&mut lanes, join);
    half::<T, 8>(&mut lanes, join);
    half::<T, 4>(&mut lanes, join);
    half::<T, 2>(&mut lanes, join);
    half::<T, 1>(&mut lanes, join);
    lanes[0]
}

#[inline(always)]
fn half<T: Copy, const HALF: usize>(lanes: &mut [T], join: impl Fn(T, T) -> T) {
    if let Some((low, high)) = lanes.split_at_mut_checked(HALF)
        && let (Some(low), Some(high)) = (low.first_chunk_mut::<HALF>(), high.first_chunk::<HALF>())
    {
        for (low, &high) in low.iter_mut().zip(high) {
            *low = join(*low, high);
        }
    }
}
