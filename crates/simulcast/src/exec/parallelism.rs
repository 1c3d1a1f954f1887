//! Parallelism: into how many parts a call is cut, and so whether it runs on several threads.

use simulcast_kernels::tuning::{PART_ELEMENTS, PARTS_PER_THREAD};
use simulcast_threads::threads;

/// How many parts to make of `len` elements, on at most `limit` threads if that is said.
pub(crate) fn parts(len: usize, limit: Option<usize>) -> usize {
    let most = (len / PART_ELEMENTS).max(1);
    if most == 1 || limit == Some(1) {
        return 1;
    }
    match threads().min(limit.unwrap_or(usize::MAX)) {
        0 | 1 => 1,
        threads => most.min(threads * PARTS_PER_THREAD),
    }
}

#[cfg(test)]
mod tests {
    use simulcast_threads::set_threads;

    use super::*;

    #[test]
    fn small_work_stays_on_one_thread() {
        // Every test that sets the number sets this one.
        set_threads(8);
        let one =
            (parts(0, None), parts(PART_ELEMENTS, Some(8)), parts(100 * PART_ELEMENTS, Some(1)));
        assert_eq!(one, (1, 1, 1));
        let some = (parts(2 * PART_ELEMENTS, Some(8)), parts(1000 * PART_ELEMENTS, Some(2)));
        assert_eq!(some, (2, 2 * PARTS_PER_THREAD));
        assert_eq!(parts(1000 * PART_ELEMENTS, None), 8 * PARTS_PER_THREAD);
    }
}
