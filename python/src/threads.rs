//! How many threads calls run on.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// How many threads a call runs on at most, where it does not say `threads=` itself.
///
/// >>> import simulcast
/// >>> simulcast.get_num_threads() >= 1
/// True
#[pyfunction]
pub(crate) fn get_num_threads() -> usize {
    simulcast_threads::threads()
}

/// Sets how many threads calls run on at most from now on, in every thread of the process, whatever
/// `SIMULCAST_NUM_THREADS` said; what was set before is returned.
///
/// >>> import simulcast
/// >>> before = simulcast.set_num_threads(2)
/// >>> simulcast.get_num_threads()
/// 2
/// >>> simulcast.set_num_threads(before)
/// 2
#[pyfunction]
#[pyo3(signature = (threads, /))]
pub(crate) fn set_num_threads(py: Python<'_>, threads: isize) -> PyResult<usize> {
    match usize::try_from(threads) {
        Ok(threads @ 1..) => {
            let before = simulcast_threads::threads();
            // Helpers that are not needed any more are waited for.
            py.detach(|| simulcast_threads::set_threads(threads));
            Ok(before)
        }
        _ => Err(PyValueError::new_err("threads is a number from 1 on")),
    }
}
