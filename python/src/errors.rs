//! A `BroadcastError` as a Python exception: the same text, the same data.
//!
//! The class is written in Python, so that it pickles by its name; all that it holds goes through its
//! arguments, so that what is unpickled is what was raised.

use pyo3::exceptions::{PyMemoryError, PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use simulcast::program::Diagnostic;
use simulcast::types::{Literal, TypeError, TypeErrorKind};
use simulcast::{ProgramError, ProgramErrorKind};
use simulcast_core::{BroadcastError, Dims, Finding, Fix, Names, Refusal};
use simulcast_explain::terminal_safe;

use crate::shapes::{dims_tuple, tuple};

mod class {
    pyo3::import_exception!(simulcast._errors, BroadcastError);
    pyo3::import_exception!(simulcast._errors, ExpressionError);
    pyo3::import_exception!(simulcast._errors, ExpressionTypeError);
}

/// The exception for a refusal of the core.
#[cold]
pub(crate) fn refused(py: Python<'_>, error: &BroadcastError) -> PyErr {
    refused_as(py, error, &error.to_string())
}

/// The exception for a refusal of the core, with another text.
pub(crate) fn refused_as(py: Python<'_>, error: &BroadcastError, message: &str) -> PyErr {
    if *error.refusal() == Refusal::Memory {
        return PyMemoryError::new_err(error.to_string());
    }
    let about = About {
        code: error.code(),
        axis: error.axis(),
        operands: error.operands(),
        shapes: error.shapes(),
        names: error.names(),
        rule: error.rule().to_string(),
        fixes: error.fixes(),
    };
    about.raise(py, message)
}

/// The exception for an operation that cannot be.
#[cold]
pub(crate) fn failed(py: Python<'_>, error: &ProgramError) -> PyErr {
    match &error.kind {
        ProgramErrorKind::Broadcast(error) => refused(py, error),
        ProgramErrorKind::Type(error) => mistyped(error),
        ProgramErrorKind::NoDerivative { .. } | ProgramErrorKind::Gradient { .. } => {
            PyTypeError::new_err(error.to_string())
        }
        _ => PyValueError::new_err(error.to_string()),
    }
}

/// The exception for types that do not go together: NumPy's.
#[cold]
pub(crate) fn mistyped(error: &TypeError) -> PyErr {
    match is_overflow(error) {
        true => PyOverflowError::new_err(error.to_string()),
        false => PyTypeError::new_err(error.to_string()),
    }
}

/// Whether an integer does not fit in a type of integers.
fn is_overflow(error: &TypeError) -> bool {
    match error.kind {
        TypeErrorKind::Literal { literal: Literal::Int(_), dtype } => dtype.is_integer(),
        TypeErrorKind::TooLarge => true,
        _ => false,
    }
}

/// How many characters stand before a byte of a text: Python's strings are indexed by characters.
fn characters(text: &str, byte: usize) -> usize {
    text.char_indices().take_while(|(at, _)| *at < byte).count()
}

/// The exception for an expression: the error in its text.
#[cold]
pub(crate) fn diagnosed(py: Python<'_>, text: &str, shown: &Diagnostic) -> PyErr {
    let error = shown.error();
    let message = shown.to_string();
    let span = (characters(text, error.span.start), characters(text, error.span.end));
    match &error.kind {
        ProgramErrorKind::Broadcast(error) => refused_as(py, error, &message),
        ProgramErrorKind::Type(error) if is_overflow(error) => PyOverflowError::new_err(message),
        ProgramErrorKind::Type(_) => {
            class::ExpressionTypeError::new_err((message, text.to_owned(), span))
        }
        _ => class::ExpressionError::new_err((message, text.to_owned(), span)),
    }
}

/// The exception for a finding that a policy raises.
#[cold]
pub(crate) fn denied(
    py: Python<'_>,
    finding: &Finding,
    shapes: &[Dims],
    names: &Names,
    rule: String,
) -> PyErr {
    let mut message = finding.to_string();
    if let Some(first) = finding.fixes.first() {
        message = format!("{message}; help: {}", first.describe(names));
    }
    let about = About {
        code: finding.code.as_str(),
        axis: finding.axes.first().copied(),
        operands: finding.operands.clone(),
        shapes,
        names,
        rule,
        fixes: &finding.fixes,
    };
    about.raise(py, &message)
}

/// What an exception is about.
struct About<'a> {
    code: &'a str,
    axis: Option<usize>,
    operands: Vec<usize>,
    shapes: &'a [Dims],
    names: &'a Names,
    rule: String,
    fixes: &'a [Fix],
}

impl About<'_> {
    /// Names come from outside, and the message may go to a terminal.
    fn raise(self, py: Python<'_>, message: &str) -> PyErr {
        let message = terminal_safe(message).into_owned();
        self.data(py).map_or_else(
            |error| error,
            |data| class::BroadcastError::new_err((message, data.unbind())),
        )
    }

    fn data<'py>(self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let shapes: Vec<_> =
            self.shapes.iter().map(|dims| dims_tuple(py, dims)).collect::<PyResult<_>>()?;
        let names: Vec<String> = (0..self.shapes.len()).map(|m| self.names.operand(m)).collect();
        let data = PyDict::new(py);
        data.set_item("code", self.code)?;
        data.set_item("axis", self.axis)?;
        data.set_item("operands", PyTuple::new(py, self.operands)?)?;
        data.set_item("shapes", PyTuple::new(py, shapes)?)?;
        data.set_item("names", PyTuple::new(py, names)?)?;
        data.set_item("rule", self.rule)?;
        let class = py.import("simulcast._errors")?.getattr("Fix")?;
        let fix = |fix: &Fix| {
            let shape = fix.shape().map(|shape| tuple(py, shape)).transpose()?;
            let (text, expression) = (fix.describe(self.names), fix.expression(self.names));
            class.call1((text, expression, shape, tuple(py, fix.result())?))
        };
        let fixes = self.fixes.iter().map(fix).collect::<PyResult<Vec<_>>>()?;
        data.set_item("suggestions", PyTuple::new(py, fixes)?)?;
        Ok(data)
    }
}
