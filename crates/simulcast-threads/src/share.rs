//! The arithmetic of shares: `len` things in `parts` parts whose sizes differ by at most 1.

/// Where a part begins: `len * part / parts`, computed without overflow; `len` from `part == parts` on.
///
/// Part `part` is `share(len, part, parts)..share(len, part + 1, parts)`.
///
/// ```
/// use simulcast_threads::share;
///
/// let begins: Vec<usize> = (0..=4).map(|part| share(10, part, 4)).collect();
/// assert_eq!(begins, [0, 2, 5, 7, 10]);
/// ```
#[must_use]
pub fn share(len: usize, part: usize, parts: usize) -> usize {
    let share = len as u128 * part as u128 / parts.max(1) as u128;
    usize::try_from(share).map_or(len, |share| share.min(len))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn shares_differ_by_at_most_one_and_cover_the_whole() {
        for (len, parts) in [(0, 1), (0, 7), (1, 3), (5, 5), (7, 3), (1000, 64), (usize::MAX, 1000)]
        {
            let begins: Vec<usize> = (0..=parts).map(|part| share(len, part, parts)).collect();
            assert_eq!((begins[0], begins[parts]), (0, len));
            let sizes = begins.windows(2).map(|two| two[1] - two[0]);
            let (least, most) = (sizes.clone().min().unwrap(), sizes.max().unwrap());
            assert!(most - least <= 1, "{len} in {parts}: {least} to {most}");
        }
    }

    #[test]
    fn parts_beyond_the_last_begin_at_the_end() {
        assert_eq!((share(10, 9, 4), share(10, 3, 0)), (10, 10));
        assert_eq!(share(usize::MAX, usize::MAX, 1), usize::MAX);
    }
}
