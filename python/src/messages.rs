//! Errors of array libraries, read from text: what `explain_error` is made of.

use pyo3::prelude::*;
use simulcast_explain::TextOptions;

use crate::explanation::object;

/// Every message about broadcasting in a text: its explanation as text and as data.
#[pyfunction]
#[pyo3(name = "_read_messages")]
pub(crate) fn read_messages<'py>(
    py: Python<'py>,
    text: &str,
) -> PyResult<Vec<(String, Bound<'py, PyAny>)>> {
    let messages = py.detach(|| simulcast_explain::read_messages(text));
    let explained = |own: &simulcast_explain::Message| {
        Ok((own.text(TextOptions::default()), object(py, &own.json())?))
    };
    messages.iter().map(explained).collect()
}
