//! Tiles: elements that are looked at together, so that what most of them need is done fast.
//!
//! Some functions are cheaper for the arguments that are usual. A choice for each element would cost
//! more than it saves; a look at a block of them is cheap, and both loops vectorise. A result never
//! depends on its neighbours: where a block takes the long way, the usual elements in it get the same
//! bits.

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
