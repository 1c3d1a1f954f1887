//! Policies: a class, and the question whether a broadcast is to be looked at more closely.
//!
//! Which policy holds where is kept in Python (`simulcast/_policy.py`), in a context variable. Most
//! calls never ask: until a policy or a record is first used, only shapes that the default policy
//! could warn of are looked at.

use std::sync::atomic::{AtomicBool, Ordering};

use numpy::{PyUntypedArray, PyUntypedArrayMethods as _};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use simulcast_core::{Action, FindingCode, Level, Policy as CorePolicy};
use simulcast_explain::Outcome;

use crate::errors::{denied, refused};
use crate::explanation::{Finding, Request};
use crate::rules::Rule;
use crate::shapes::{dims_tuple, tuple};

/// Whether a policy or a record has been used: then every call asks. No program unsets it, since a
/// context may outlive the block that made it.
static ACTIVE: AtomicBool = AtomicBool::new(false);

/// From now on, every call asks which policy holds; or, for tests that begin anew, none does.
#[pyfunction]
#[pyo3(name = "_activate", signature = (active = true))]
pub(crate) fn activate(active: bool) {
    ACTIVE.store(active, Ordering::Relaxed);
}

/// Whether every call asks.
#[inline]
pub(crate) fn is_active() -> bool {
    ACTIVE.load(Ordering::Relaxed)
}

/// Whether someone may care about operands of these shapes, of one operation.
#[inline]
pub(crate) fn is_asked(shapes: &[&[usize]]) -> bool {
    is_active() || is_suspicious(shapes)
}

/// Tells Python of a broadcast of several operands, where someone may care.
#[inline]
pub(crate) fn observe(
    py: Python<'_>,
    function: &str,
    rule: &Rule,
    shapes: &[&[usize]],
) -> PyResult<()> {
    if !is_asked(shapes) {
        return Ok(());
    }
    observe_named(py, function, rule, shapes, None)
}

/// Tells Python of a broadcast of several operands, and what they are called.
pub(crate) fn observe_named(
    py: Python<'_>,
    function: &str,
    rule: &Rule,
    shapes: &[&[usize]],
    names: Option<Vec<String>>,
) -> PyResult<()> {
    let shapes: Vec<_> = shapes.iter().map(|own| tuple(py, own)).collect::<PyResult<_>>()?;
    let policy = py.import("simulcast._policy")?;
    policy.getattr("observe")?.call1((function, PyTuple::new(py, shapes)?, rule.clone(), names))?;
    Ok(())
}

/// Tells Python of a view in a shape that was asked for, where records are kept.
#[inline]
pub(crate) fn observe_view(
    py: Python<'_>,
    function: &str,
    own: &[usize],
    view: &Bound<'_, PyAny>,
) -> PyResult<()> {
    if !ACTIVE.load(Ordering::Relaxed) {
        return Ok(());
    }
    let result = tuple(py, view.cast::<PyUntypedArray>()?.shape())?;
    let policy = py.import("simulcast._policy")?;
    policy.getattr("observe_view")?.call1((function, tuple(py, own)?, result))?;
    Ok(())
}

/// Whether the default policy could warn (SC102): one operand is another with ones after it, such as
/// `(n, 1)` with `(n,)`.
fn is_suspicious(shapes: &[&[usize]]) -> bool {
    shapes.iter().any(|long| {
        let ones = long.iter().rev().take_while(|&&size| size == 1).count();
        let column = &long[..long.len() - ones];
        ones > 0 && shapes.iter().any(|own| !own.is_empty() && column.ends_with(own))
    })
}

/// What is done about findings: a level, and an action for each code.
///
/// The text names a level (`exact`, `scalar-only`, `same-rank`, `numpy`), actions (`SC104=warn`) and
/// limits (`growth=8`, `bytes=1000000`), separated by commas; keywords say the same. `strict` is
/// short for `same-rank,SC102=raise`. Without anything, SC102 is warned of and all else allowed.
///
/// >>> import simulcast
/// >>> simulcast.Policy("same-rank", SC104="warn")
/// simulcast.Policy("same-rank,SC104=warn")
#[pyclass(module = "simulcast", frozen, eq)]
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Policy(CorePolicy);

#[pymethods]
impl Policy {
    #[new]
    #[pyo3(signature = (text = "", /, **settings))]
    fn new(text: &str, settings: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let mut policy = CorePolicy::default();
        let mut words: Vec<String> = Vec::new();
        for word in text.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            policy = set(policy, word)?;
            words.push(word.to_owned());
        }
        for (key, value) in settings.into_iter().flatten() {
            let word = match key.extract::<&str>()? {
                "level" => value.str()?.to_string(),
                key => format!("{key}={value}"),
            };
            policy = set(policy, &word)?;
            words.push(word);
        }
        for (key, value) in words.iter().filter_map(|word| word.split_once('=')) {
            let raised = value.trim() == Action::Raise.name();
            let code = FindingCode::from_text(key.trim()).filter(|code| policy.is_of_level(*code));
            if let (Some(code), false) = (code, raised) {
                return Err(PyValueError::new_err(format!(
                    "what a level forbids is raised: there is no action to choose for {code} at level {}",
                    policy.level.name()
                )));
            }
        }
        Ok(Self(policy))
    }

    /// The result's shape, what is refused (an exception, not yet raised), and what is warned of.
    #[pyo3(signature = (operands, rule = None, names = None))]
    #[expect(clippy::type_complexity, reason = "a tuple for Python")]
    fn _judge<'py>(
        &self,
        py: Python<'py>,
        operands: &Bound<'py, PyTuple>,
        rule: Option<&Bound<'py, PyAny>>,
        names: Option<Vec<String>>,
    ) -> PyResult<(Option<Bound<'py, PyTuple>>, Option<Py<PyAny>>, Vec<Finding>)> {
        let Request { rule, names, outcome, .. } = Request::read(operands, rule, names)?;
        let (shape, shapes) = match &outcome {
            Outcome::Error(error) => return Err(refused(py, error)),
            Outcome::Plan(plan) => {
                let own = (0..plan.operands()).filter_map(|m| plan.operand_shape(m).ok());
                (Some(tuple(py, plan.shape())?), own.map(|own| own[..].into()).collect())
            }
            Outcome::Symbolic(plan) => (dims_tuple(py, plan.shape())?, plan.shapes().to_vec()),
        };
        let Some(verdict) = outcome.judge(&self.0, &names) else {
            return Err(PyValueError::new_err("a policy needs shapes whose ranks are known"));
        };
        let raised = verdict.raised.first().map(|finding| {
            denied(py, finding, &shapes, &names, rule.to_string()).into_value(py).into_any()
        });
        let warned = verdict.warned.iter().map(|own| Finding::of(own, &names)).collect();
        Ok((shape, raised, warned))
    }

    fn __str__(&self) -> String {
        let Self(policy) = self;
        let plain = CorePolicy::default().at(policy.level);
        let mut words = vec![policy.level.name().to_string()];
        for code in FindingCode::ALL {
            let action = policy.action(code);
            if action != plain.action(code) {
                words.push(format!("{code}={}", action.name()));
            }
        }
        if policy.limits.growth != plain.limits.growth {
            words.push(format!("growth={}", policy.limits.growth));
        }
        if let Some(bytes) = policy.limits.bytes {
            words.push(format!("bytes={bytes}"));
        }
        words.join(",")
    }

    fn __repr__(&self) -> String {
        format!("simulcast.Policy({:?})", self.__str__())
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let args = PyTuple::new(py, [self.__str__()])?;
        PyTuple::new(py, [py.get_type::<Self>().into_any(), args.into_any()])
    }
}

/// The policy with one word of its text.
fn set(mut policy: CorePolicy, word: &str) -> PyResult<CorePolicy> {
    let unknown = |what: String| Err(PyValueError::new_err(what));
    if word == "strict" {
        return Ok(policy.at(Level::SameRank).with(FindingCode::SquareOuter, Action::Raise));
    }
    let Some((key, value)) = word.split_once('=').map(|(key, value)| (key.trim(), value.trim()))
    else {
        return match Level::from_name(word) {
            Some(level) => Ok(policy.at(level)),
            None => unknown(format!(
                "there is no level {word:?}; there are exact, scalar-only, same-rank, numpy and strict"
            )),
        };
    };
    match key {
        "growth" => match value.parse::<f64>() {
            Ok(growth) if growth > 0.0 => policy.limits.growth = growth,
            _ => return unknown(format!("growth is a factor above 0, not {value:?}")),
        },
        "bytes" => match value.parse() {
            Ok(bytes) => policy.limits.bytes = Some(bytes),
            Err(_) => return unknown(format!("bytes is a number, not {value:?}")),
        },
        _ => {
            let codes = match key {
                "all" => FindingCode::ALL.to_vec(),
                key => FindingCode::from_text(key).into_iter().collect(),
            };
            let Some(action) = Action::from_name(value) else {
                return unknown(format!("an action is allow, warn or raise, not {value:?}"));
            };
            if codes.is_empty() {
                let known: Vec<_> = FindingCode::ALL.iter().map(|code| code.as_str()).collect();
                return unknown(format!(
                    "there is no finding {key:?}; there are {}",
                    known.join(", ")
                ));
            }
            policy = codes.into_iter().fold(policy, |policy, code| policy.with(code, action));
        }
    }
    Ok(policy)
}
