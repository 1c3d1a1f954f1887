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
use simulcast_core::{Dims, FindingCode, Names, Outcome, Policy as CorePolicy};

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
    is_active() || CorePolicy::default_may_warn(shapes)
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

/// Judges a broadcast of several operands by the policy that holds here, with what they are called. Python
/// is told where a record is kept, or there is something to say.
pub(crate) fn observe_named(
    py: Python<'_>,
    function: &str,
    rule: &Rule,
    shapes: &[&[usize]],
    names: Option<Vec<String>>,
) -> PyResult<()> {
    let holding = Holding::get(py)?;
    let policy = holding.policy()?;
    let mut names = Names { operands: names.unwrap_or_default(), axes: Vec::new() };
    let owned = rule.clone().with_names(&mut names)?;
    let dims: Vec<Dims> = shapes.iter().map(|own| Dims::from(*own)).collect();
    let outcome = Outcome::of(&owned, &dims, &names);
    let Verdict { shape, raised, warned } =
        policy.get().verdict(py, &owned.to_string(), &outcome, &names)?;
    if raised.is_none() && warned.is_empty() && !holding.records()? {
        return Ok(());
    }
    let shapes: Vec<_> = shapes.iter().map(|own| tuple(py, own)).collect::<PyResult<_>>()?;
    let shapes = PyTuple::new(py, shapes)?;
    let tell = holding.module.getattr("tell")?;
    tell.call1((function, shapes, shape, rule.owned.to_string(), raised, warned)).map(drop)
}

/// The module in which Python keeps which policy holds where.
struct Holding<'py> {
    module: Bound<'py, PyModule>,
}

impl<'py> Holding<'py> {
    fn get(py: Python<'py>) -> PyResult<Self> {
        Ok(Self { module: py.import("simulcast._policy")? })
    }

    /// The policy of this context, or the one that holds where none has its own.
    fn policy(&self) -> PyResult<Bound<'py, Policy>> {
        let own = self.module.getattr("_policy")?.call_method0("get")?;
        let policy = if own.is_none() { self.module.getattr("_default")? } else { own };
        Ok(policy.cast_into()?)
    }

    /// Whether this context keeps a record.
    fn records(&self) -> PyResult<bool> {
        Ok(!self.module.getattr("_record")?.call_method0("get")?.is_none())
    }
}

/// What a policy says of a broadcast.
struct Verdict<'py> {
    /// The result's shape, where its rank is known.
    shape: Option<Bound<'py, PyTuple>>,
    /// What is refused: an exception that is not raised yet.
    raised: Option<Py<PyAny>>,
    warned: Vec<Finding>,
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

/// What is done about findings: a strictness, and an action for each code.
///
/// The text names a strictness (`exact`, `scalar-only`, `same-rank`, `numpy`), actions (`SC104=warn`) and
/// limits (`growth=8`, `bytes=1000000`), separated by commas; keywords say the same. `strict` is
/// short for `same-rank,SC102=raise`. Without anything, SC102 is warned of and all else allowed.
///
/// >>> import simulcast
/// >>> simulcast.Policy("same-rank", SC104="warn")
/// simulcast.Policy("same-rank,SC104=warn")
#[pyclass(module = "simulcast", frozen, eq)]
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Policy(CorePolicy);

impl Policy {
    fn verdict<'py>(
        &self,
        py: Python<'py>,
        rule: &str,
        outcome: &Outcome,
        names: &Names,
    ) -> PyResult<Verdict<'py>> {
        if let Some(error) = outcome.error() {
            return Err(refused(py, error));
        }
        let shape = outcome.shape().map_or(Ok(None), |shape| dims_tuple(py, &shape))?;
        let Some(verdict) = outcome.judge(&self.0, names) else {
            return Err(PyValueError::new_err("a policy needs shapes whose ranks are known"));
        };
        let raised = verdict.raised.first().map(|finding| {
            let shapes = outcome.shapes();
            denied(py, finding, &shapes, names, rule.to_owned()).into_value(py).into_any()
        });
        let warned = verdict.warned.iter().map(|own| Finding::of(own, names)).collect();
        Ok(Verdict { shape, raised, warned })
    }
}

#[pymethods]
impl Policy {
    #[new]
    #[pyo3(signature = (text = "", /, **settings))]
    fn new(text: &str, settings: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let text = text.split(',').map(str::trim).filter(|word| !word.is_empty());
        let mut words: Vec<String> = text.map(str::to_owned).collect();
        for (key, value) in settings.into_iter().flatten() {
            words.push(match key.extract::<&str>()? {
                // `level` is the older name.
                "strictness" | "level" => value.str()?.to_string(),
                key => format!("{key}={value}"),
            });
        }
        let policy = CorePolicy::from_words(words);
        policy.map(Self).map_err(|error| PyValueError::new_err(error.to_string()))
    }

    /// How much implicit broadcasting is accepted at all.
    #[getter]
    fn strictness(&self) -> &'static str {
        self.0.strictness.name()
    }

    /// An older name of `strictness`.
    #[getter]
    fn level(&self) -> &'static str {
        self.strictness()
    }

    /// What is done about each finding: its code, and `allow`, `warn` or `raise`.
    #[getter]
    fn actions<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let actions = PyDict::new(py);
        for code in FindingCode::ALL {
            actions.set_item(code.as_str(), self.0.action(code).name())?;
        }
        Ok(actions)
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
        let rule = rule.to_string();
        let Verdict { shape, raised, warned } = self.verdict(py, &rule, &outcome, &names)?;
        Ok((shape, raised, warned))
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        format!("simulcast.Policy({:?})", self.__str__())
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let args = PyTuple::new(py, [self.__str__()])?;
        PyTuple::new(py, [py.get_type::<Self>().into_any(), args.into_any()])
    }
}
