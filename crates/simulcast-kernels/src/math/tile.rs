//! One branch for a tile: a fast path if all of its arguments are in the common range, else the general path.
//!
//! Some functions are cheaper for arguments in a common range. A branch for each element would cost more than it saves; one
//! test for a block is cheap, and both loops vectorise. A result never depends on its neighbours: on the general path, the
//! arguments in the common range give the same bits.

use std::mem::MaybeUninit;

/// `to` becomes `fast` of `from` of its indices if those are `usual` throughout, and `slow` of them otherwise.
///
/// By index, and not by iterators: see [`ElementOp::tile`](crate::ops::ElementOp::tile).
#[inline(always)]
#[allow(clippy::needless_range_loop, reason = "iterators would cost what is known of aliases")]
pub(super) fn tile<T: Copy>(
    from: impl Fn(usize) -> T,
    to: &mut [MaybeUninit<T>],
    usual: impl Fn(T) -> bool,
    fast: impl Fn(T) -> T,
    slow: impl Fn(T) -> T,
) {
    let mut all = true;
    for at in 0..to.len() {
        let x = from(at);
        all &= usual(x);
        to[at].write(fast(x));
    }
    if !all {
        for at in 0..to.len() {
            to[at].write(slow(from(at)));
        }
    }
}
