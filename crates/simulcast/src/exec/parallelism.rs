//! Parallelism: into how many parts a call is cut, and so whether it runs on several threads.

use simulcast_kernels::tuning::{
    PART_ELEMENTS, PARTS_PER_THREAD, UNINTERRUPTED_ELEMENTS, UNINTERRUPTED_OPERATIONS,
};
use simulcast_threads::{is_interruptible, threads};

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

/// Whether a call of `len` elements is one part whatever is done to an element: of few elements, or on one thread where
/// nothing interrupts it.
pub(crate) fn is_one_part(len: usize, limit: Option<usize>) -> bool {
    let is_stoppable = len > UNINTERRUPTED_OPERATIONS && is_interruptible();
    len <= PART_ELEMENTS || (limit == Some(1) && !is_stoppable)
}

/// How many parts a call has at least, so that none takes long where the call can be interrupted. They are shared between
/// threads as other parts are: where a call can be interrupted, work counts, and not elements alone.
pub(crate) fn pieces(len: usize, operations: usize) -> usize {
    match is_interruptible() {
        true => {
            let pieces = len.saturating_mul(operations.max(1)) / UNINTERRUPTED_OPERATIONS;
            pieces.min(len / UNINTERRUPTED_ELEMENTS)
        }
        false => 1,
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
