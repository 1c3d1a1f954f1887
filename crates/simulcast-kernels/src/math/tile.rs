//! One branch for a tile: a fast path if all of its arguments are in the common range, else the general path.
//!
//! Some functions are cheaper for arguments in a common range. A branch for each element would cost more than it saves; one
//! test for a block is cheap, and both loops vectorise. A result never depends on its neighbours: on the general path, the
//! arguments in the common range give the same bits.

use std::mem::MaybeUninit;

/// `to` becomes `fast` of the elements of `from` if they are `usual` throughout, and `slow` of them
/// otherwise.
#[inline(always)]
pub(super) fn tile<T: Copy>(
    from: impl Iterator<Item = T> + Clone,
    to: &mut [MaybeUninit<T>],
    usual: impl Fn(T) -> bool,
    fast: impl Fn(T) -> T,
    slow: impl Fn(T) -> T,
) {
    let mut all = true;
    for (x, y) in from.clone().zip(&mut *to) {
        all &= usual(x);
        y.write(fast(x));
    }
    if !all {
        for (x, y) in from.zip(to) {
            y.write(slow(x));
        }
    }
}
