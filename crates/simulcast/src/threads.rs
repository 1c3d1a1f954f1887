//! Threads: rayon's, or a pool of `SIMULCAST_NUM_THREADS`, started when first needed.

use std::sync::OnceLock;

use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

/// Fewer elements than this are not worth another thread.
pub(crate) const PART: usize = 1 << 16;

/// Parts a thread: more than one, so that a thread that was held up does not hold up the others.
const PARTS: usize = 4;

/// The pool that `SIMULCAST_NUM_THREADS` asks for; else rayon's own.
fn pool() -> Option<&'static ThreadPool> {
    static POOL: OnceLock<Option<ThreadPool>> = OnceLock::new();
    let start = || {
        let threads = wanted(std::env::var("SIMULCAST_NUM_THREADS").ok().as_deref())?;
        let name = |n| format!("simulcast-{n}");
        ThreadPoolBuilder::new().num_threads(threads).thread_name(name).build().ok()
    };
    POOL.get_or_init(start).as_ref()
}

/// The number that a text names: at least 1.
fn wanted(text: Option<&str>) -> Option<usize> {
    text?.trim().parse().ok().filter(|&threads| threads > 0)
}

/// How many parts to make of `len` elements, on at most `limit` threads if that is said.
pub(crate) fn parts(len: usize, limit: Option<usize>) -> usize {
    let most = (len / PART).max(1);
    if most == 1 || limit == Some(1) {
        return 1;
    }
    let threads =
        || pool().map_or_else(rayon::current_num_threads, ThreadPool::current_num_threads);
    // As many parts as threads is what keeps a call on that many.
    let wanted = limit.unwrap_or_else(|| match threads() {
        1 => 1,
        threads => threads * PARTS,
    });
    wanted.min(most)
}

/// Does each part, on the pool; a panic in one comes out here.
pub(crate) fn each(parts: usize, work: impl Fn(usize) + Sync) {
    let go = || (0..parts).into_par_iter().with_max_len(1).for_each(&work);
    match pool() {
        Some(pool) => pool.install(go),
        None => go(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_work_stays_on_one_thread() {
        assert_eq!((parts(0, None), parts(PART, Some(8)), parts(100 * PART, Some(1))), (1, 1, 1));
        assert_eq!((parts(100 * PART, Some(3)), parts(2 * PART, Some(8))), (3, 2));
    }

    #[test]
    fn only_a_number_of_threads_is_a_number_of_threads() {
        assert_eq!((wanted(None), wanted(Some("0")), wanted(Some("x"))), (None, None, None));
        assert_eq!(wanted(Some(" 2 ")), Some(2));
    }
}
