//! How many threads calls run on.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyInt};
use simulcast_explain::terminal_safe;

/// What `threads=` says: a whole number from 1 on.
#[derive(Clone, Copy)]
pub(crate) struct Threads(usize);

impl Threads {
    /// Of what is no small number of Python's: of another class, or none at all.
    #[cold]
    fn of_other(given: &Bound<'_, PyAny>) -> PyResult<Self> {
        let whole = match given.is_instance_of::<PyBool>() {
            true => None,
            false => given.py().import("operator")?.call_method1("index", (given,)).ok(),
        };
        let Some(whole) = whole else {
            let shown = given.repr()?;
            return Err(PyTypeError::new_err(format!(
                "argument 'threads' is {}, and threads is a whole number from 1 on",
                terminal_safe(shown.to_str()?)
            )));
        };
        match whole.extract() {
            Ok(threads @ 1..) => Ok(Self(threads)),
            Err(_) if whole.gt(0)? => Err(PyValueError::new_err(format!(
                "argument 'threads' is {whole}, which is more than any machine has"
            ))),
            _ => Err(PyValueError::new_err(format!(
                "argument 'threads' is {whole}, and threads is a number from 1 on"
            ))),
        }
    }

    pub(crate) const fn get(self) -> usize {
        self.0
    }
}

impl<'py> FromPyObject<'_, 'py> for Threads {
    type Error = PyErr;

    #[inline]
    fn extract(given: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        match given.is_exact_instance_of::<PyInt>().then(|| given.extract()) {
            Some(Ok(threads @ 1..)) => Ok(Self(threads)),
            _ => Self::of_other(&given),
        }
    }
}

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
pub(crate) fn set_num_threads(py: Python<'_>, threads: Threads) -> usize {
    let before = simulcast_threads::threads();
    // Helpers that are not needed any more are waited for.
    py.detach(|| simulcast_threads::set_threads(threads.get()));
    before
}
