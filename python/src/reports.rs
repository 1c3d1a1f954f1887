//! Findings with their places: how certain they are, the formats that they are written in, and baselines.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use simulcast_core::{Certainty, Evidence, FindingCode, PolicyError};
use simulcast_explain::{Baseline as CoreBaseline, Format, Notice, Position, TextEdit};

/// How certain a finding is by what was seen, or `None` where it is no finding.
#[pyfunction]
#[pyo3(name = "_weigh", signature = (code, *, varied = false, symbol = false, reduced = false, deliberate = false))]
pub(crate) fn weigh(
    code: &str,
    varied: bool,
    symbol: bool,
    reduced: bool,
    deliberate: bool,
) -> PyResult<Option<&'static str>> {
    let code: FindingCode = code.parse().map_err(|error| refused(&error))?;
    let evidence = Evidence { varied, symbol, reduced, deliberate };
    Ok(evidence.certainty(code).map(Certainty::name))
}

fn refused(error: &PolicyError) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// Findings in a format.
#[pyfunction]
#[pyo3(name = "_report")]
#[expect(clippy::needless_pass_by_value, reason = "a list of Python's")]
pub(crate) fn report(findings: Vec<Bound<'_, PyDict>>, format: &str) -> PyResult<String> {
    let format: Format = format.parse().map_err(PyValueError::new_err)?;
    Ok(simulcast_explain::format_notices(&notices(&findings)?, format))
}

/// Findings that are known.
#[pyclass(module = "simulcast._simulcast", name = "_Baseline", frozen)]
pub(crate) struct Baseline(CoreBaseline);

#[pymethods]
impl Baseline {
    /// Reads the text of a baseline.
    #[new]
    fn new(text: &str) -> PyResult<Self> {
        let own = CoreBaseline::parse(text);
        own.map(Self).map_err(|error| PyValueError::new_err(error.to_string()))
    }

    /// The text of a baseline of these findings.
    #[staticmethod]
    #[expect(clippy::needless_pass_by_value, reason = "a list of Python's")]
    fn text_of(findings: Vec<Bound<'_, PyDict>>) -> PyResult<String> {
        Ok(CoreBaseline::text_of(&notices(&findings)?))
    }

    /// The findings that are new.
    fn news<'py>(&self, findings: Vec<Bound<'py, PyDict>>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let new = self.0.news(&notices(&findings)?);
        Ok(findings.into_iter().zip(new).filter(|(_, new)| *new).map(|(own, _)| own).collect())
    }
}

fn notices(findings: &[Bound<'_, PyDict>]) -> PyResult<Vec<Notice>> {
    let Some(first) = findings.first() else { return Ok(Vec::new()) };
    // A folder that was removed has no path; files are then named as they are given.
    let folder = first.py().import("os")?.getattr("getcwd")?.call0();
    let folder = folder.and_then(|own| own.extract::<String>()).unwrap_or_default();
    findings.iter().map(|own| notice(own, &folder)).collect()
}

fn notice(finding: &Bound<'_, PyDict>, folder: &str) -> PyResult<Notice> {
    let code: String = required(finding, "code")?;
    let certainty: Option<String> = optional(finding, "certainty")?;
    let certainty = certainty.map(|own| own.parse::<Certainty>()).transpose();
    let certainty = certainty.map_err(|error| refused(&error))?;
    let message: String = required(finding, "message")?;
    let file: String = required(finding, "file")?;
    let file = simulcast_explain::report_path(&file, folder);
    let mut notice = Notice::new(code, certainty, message, file);
    notice.help = optional(finding, "help")?.unwrap_or_default();
    notice.node = optional(finding, "node")?;
    notice.snippet = optional(finding, "snippet")?.unwrap_or_default();
    notice.operands = optional(finding, "operands")?.unwrap_or_default();
    notice.denied = optional(finding, "denied")?.unwrap_or_default();
    notice.start = position(finding, "line", "column")?;
    notice.end = position(finding, "end_line", "end_column")?;
    let fixes: Option<Vec<Bound<'_, PyDict>>> = optional(finding, "fixes")?;
    let fixes = fixes.unwrap_or_default();
    notice.fixes = fixes.iter().map(edit).collect::<PyResult<_>>()?;
    Ok(notice)
}

fn edit(fix: &Bound<'_, PyDict>) -> PyResult<TextEdit> {
    let place = |line: &str, column: &str| {
        position(fix, line, column)?.ok_or_else(|| missing(&format!("a fix has no {line:?}")))
    };
    Ok(TextEdit {
        description: required(fix, "description")?,
        start: place("line", "column")?,
        end: place("end_line", "end_column")?,
        text: required(fix, "text")?,
    })
}

fn position(dict: &Bound<'_, PyDict>, line: &str, column: &str) -> PyResult<Option<Position>> {
    let Some(number) = optional(dict, line)? else { return Ok(None) };
    let column: Option<usize> = optional(dict, column)?;
    match (number, column) {
        (0, _) | (_, Some(0)) => Err(missing("lines and columns count from 1")),
        (line, column) => Ok(Some(Position { line, column })),
    }
}

/// A field that may be left out, or be `None`.
fn optional<'py, T: for<'a> FromPyObject<'a, 'py>>(
    dict: &Bound<'py, PyDict>,
    key: &str,
) -> PyResult<Option<T>> {
    let Some(own) = dict.get_item(key)?.filter(|own| !own.is_none()) else { return Ok(None) };
    let wrong = |_| missing(&format!("{key:?} of a finding is {:.80}", own.to_string()));
    own.extract().map(Some).map_err(wrong)
}

fn required<'py, T: for<'a> FromPyObject<'a, 'py>>(
    dict: &Bound<'py, PyDict>,
    key: &str,
) -> PyResult<T> {
    optional(dict, key)?.ok_or_else(|| missing(&format!("a finding has no {key:?}")))
}

fn missing(why: &str) -> PyErr {
    PyValueError::new_err(why.to_owned())
}
