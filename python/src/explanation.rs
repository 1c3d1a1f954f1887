//! `explain`: a broadcast in words and pictures, as the command shows it.

use std::hash::{Hash, Hasher};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use serde_json::Value;
use simulcast_core::{
    Finding as CoreFinding, FindingCode, Names, Outcome, OwnedRule, Policy, PolicyError, ShapeText,
};
use simulcast_explain::{Subject, TextOptions, fragment, json, page, svg, terminal_safe, text};

use crate::rules::Rule;
use crate::shapes::{dims_tuple, operand_object, read_operand};

/// What is asked, as it is asked again of what was pickled: operands, what they are called, the rule.
#[derive(PartialEq, Eq, Hash)]
struct Question {
    operands: Vec<ShapeText>,
    names: Vec<String>,
    rule: Rule,
}

/// Operands, their names and the rule, and what comes of them.
pub(crate) struct Request {
    question: Question,
    pub(crate) rule: OwnedRule,
    pub(crate) names: Names,
    pub(crate) outcome: Outcome,
}

impl Request {
    pub(crate) fn read(
        operands: &Bound<'_, PyTuple>,
        rule: Option<&Bound<'_, PyAny>>,
        called: Option<Vec<String>>,
    ) -> PyResult<Self> {
        let asked = Rule::read(rule)?;
        let rule = asked.clone();
        let by_name = rule.is_named();
        let (mut shapes, mut names) = (Vec::new(), Names::default());
        let read = operands.iter().map(|operand| read_operand(&operand));
        let mut read: Vec<ShapeText> = read.collect::<PyResult<_>>()?;
        for shape in &mut read {
            names.axes.push(if by_name { shape.axis_names() } else { shape.axes.clone() });
            names.operands.push(shape.name.take().unwrap_or_default());
            shapes.push(shape.dims.clone());
        }
        if let Some(called) = called {
            if called.len() != operands.len() {
                return Err(PyValueError::new_err(format!(
                    "names are for {} operands, and there are {}",
                    called.len(),
                    operands.len()
                )));
            }
            names.operands = called;
        }
        let question = Question { operands: read, names: names.operands.clone(), rule: asked };
        let rule = rule.with_names(&mut names)?;
        let outcome = Outcome::of(&rule, &shapes, &names);
        Ok(Self { question, rule, names, outcome })
    }
}

/// Something suspicious about a broadcast. It can be pickled.
#[pyclass(module = "simulcast", frozen, get_all, eq, hash)]
#[derive(PartialEq, Eq, Hash)]
pub(crate) struct Finding {
    /// The stable code, such as `SC102`.
    code: &'static str,
    /// What was found.
    message: String,
    /// The operands concerned, counted from 0.
    operands: Vec<usize>,
    /// The result axes concerned.
    axes: Vec<usize>,
    /// What could be meant instead; each was checked to work.
    suggestions: Vec<String>,
    /// `possible`: seen with one size, which may agree by chance. `confirmed`: it does not.
    certainty: &'static str,
}

impl Finding {
    pub(crate) fn of(finding: &CoreFinding, names: &Names) -> Self {
        Self {
            code: finding.code.as_str(),
            message: terminal_safe(&finding.message).into_owned(),
            operands: finding.operands.clone(),
            axes: finding.axes.clone(),
            suggestions: finding.fixes.iter().map(|fix| fix.describe(names)).collect(),
            certainty: finding.certainty.name(),
        }
    }
}

#[pymethods]
impl Finding {
    #[new]
    #[pyo3(signature = (code, message, operands, axes, suggestions, certainty = None))]
    fn new(
        code: &str,
        message: String,
        operands: Vec<usize>,
        axes: Vec<usize>,
        suggestions: Vec<String>,
        certainty: Option<&str>,
    ) -> PyResult<Self> {
        let refused = |error: PolicyError| PyValueError::new_err(error.to_string());
        let known: FindingCode = code.parse().map_err(refused)?;
        let certainty = match certainty {
            Some(certainty) => certainty.parse().map_err(refused)?,
            None => known.certainty_alone(),
        };
        let (code, certainty) = (known.as_str(), certainty.name());
        Ok(Self { code, message, operands, axes, suggestions, certainty })
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let Self { code, message, operands, axes, suggestions, certainty } = self;
        let own = (code, message, operands, axes, suggestions, certainty);
        (py.get_type::<Self>(), own).into_pyobject(py)
    }

    fn __str__(&self) -> String {
        format!("{}: {}", self.code, self.message)
    }

    fn __repr__(&self) -> String {
        format!("<simulcast.Finding {}: {}>", self.code, self.message)
    }
}

/// A broadcast explained: prints as text, shows as a picture in a notebook. It can be pickled.
#[pyclass(module = "simulcast", frozen, eq, hash)]
pub(crate) struct Explanation {
    question: Question,
    outcome: Outcome,
    names: Names,
    findings: Vec<CoreFinding>,
}

/// All else follows from what was asked.
impl PartialEq for Explanation {
    fn eq(&self, other: &Self) -> bool {
        self.question == other.question
    }
}

impl Hash for Explanation {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.question.hash(state);
    }
}

impl Explanation {
    fn subject(&self) -> Subject<'_> {
        Subject::of(&self.outcome, &self.names, &self.findings)
    }
}

/// Explains how shapes broadcast, or why they do not, and what is suspicious about it.
///
/// A shape is a tuple (`None` or a name for a size that is not known), an int, a text such as
/// `"N,3,H,W"`, a dict of named sizes, or anything with a `shape`.
///
/// >>> import simulcast
/// >>> print(simulcast.explain((2, 3, 4), (2, 4), names=["image", "mask"]))
///   axis     0   1   2     '.' = no such axis
///   image    2   3   4     (2, 3, 4)
///   mask     .   2   4     (2, 4)
///                ^ axis 1 (-2): image has 3, mask has 2
///   rule     numpy
///   error    E1: sizes must be equal, or the one that stretches must be 1
///   help     mask[:, None, :] is (2, 1, 4), result (2, 3, 4)
///   help     image.transpose(1, 0, 2) is (3, 2, 4), result (3, 2, 4)
/// <BLANKLINE>
/// >>> [finding.code for finding in simulcast.explain("pred:32,1", "target:32").findings]
/// ['SC102']
#[pyfunction]
#[pyo3(signature = (*operands, names = None, rule = None), text_signature = "(*operands, names=None, rule='numpy')")]
pub(crate) fn explain(
    operands: &Bound<'_, PyTuple>,
    names: Option<Vec<String>>,
    rule: Option<&Bound<'_, PyAny>>,
) -> PyResult<Explanation> {
    let Request { question, names, outcome, .. } = Request::read(operands, rule, names)?;
    let findings = outcome.judge(&Policy::for_explanations(), &names).unwrap_or_default().warned;
    Ok(Explanation { question, outcome, names, findings })
}

#[pymethods]
impl Explanation {
    /// The result's shape; `None` for a size that is not known, a text for a symbol. `None` alone
    /// where there is no result, or its rank is not known.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        self.outcome.shape().map_or(Ok(None), |shape| dims_tuple(py, &shape))
    }

    /// What is suspicious about the broadcast.
    #[getter]
    fn findings(&self) -> Vec<Finding> {
        self.findings.iter().map(|finding| Finding::of(finding, &self.names)).collect()
    }

    /// What must hold for sizes that are not known.
    #[getter]
    fn constraints(&self) -> Vec<String> {
        match &self.outcome {
            Outcome::Symbolic(plan) => {
                plan.constraints().iter().map(|own| own.describe(&self.names)).collect()
            }
            Outcome::Plan(_) | Outcome::Error(_) => Vec::new(),
        }
    }

    /// The picture, as a standalone SVG.
    fn svg(&self) -> String {
        svg(&self.subject())
    }

    /// A self-contained HTML page with the picture and the text.
    fn html(&self) -> String {
        page(&self.subject(), &self.__str__())
    }

    /// The explanation as data, as `simulcast explain --json` prints it.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        object(py, &json(&self.subject()))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let Question { operands, names, rule } = &self.question;
        let options = PyDict::new(py);
        options.set_item("names", names)?;
        options.set_item("rule", rule.clone())?;
        let explain = py.import("simulcast")?.getattr("explain")?;
        let ask = py.import("functools")?.getattr("partial")?.call((explain,), Some(&options))?;
        let operands = operands.iter().map(|operand| operand_object(py, operand));
        let operands = PyTuple::new(py, operands.collect::<PyResult<Vec<_>>>()?)?;
        (ask, operands).into_pyobject(py)
    }

    fn __str__(&self) -> String {
        text(&self.subject(), TextOptions::default())
    }

    fn __repr__(&self) -> String {
        self.__str__()
    }

    fn _repr_html_(&self) -> String {
        fragment(&self.subject())
    }
}

/// JSON as Python objects.
pub(crate) fn object<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        Value::Null => py.None().into_bound(py),
        Value::Bool(own) => own.into_pyobject(py)?.to_owned().into_any(),
        Value::Number(own) => match (own.as_u64(), own.as_i64()) {
            (Some(own), _) => own.into_pyobject(py)?.into_any(),
            (None, Some(own)) => own.into_pyobject(py)?.into_any(),
            (None, None) => own.as_f64().into_pyobject(py)?,
        },
        Value::String(own) => own.into_pyobject(py)?.into_any(),
        Value::Array(own) => {
            let list = PyList::empty(py);
            own.iter().try_for_each(|own| list.append(object(py, own)?))?;
            list.into_any()
        }
        Value::Object(own) => {
            let dict = PyDict::new(py);
            own.iter().try_for_each(|(key, own)| dict.set_item(key, object(py, own)?))?;
            dict.into_any()
        }
    })
}
