//! Policies: a class, and the question whether a broadcast is to be looked at more closely.
//!
//! Which policy holds where is kept in Python (`simulcast/_policy.py`), in a context variable. Most
//! calls never ask: until a policy or a record is first used, only shapes that the default policy
//! could warn of are looked at.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use numpy::{PyUntypedArray, PyUntypedArrayMethods as _};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use simulcast_core::{
    Certainty, Dims, Evidence, FindingCode, Names, Outcome, Policy as CorePolicy,
};

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
    static DEFAULT: OnceLock<CorePolicy> = OnceLock::new();
    is_active() || DEFAULT.get_or_init(CorePolicy::default).may_warn(shapes)
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
    observe_named(py, function, rule, shapes, None, Evidence::default())
}

/// Judges a broadcast of several operands by the policy that holds here, with what they are called and what the
/// caller knows beside the shapes. Python is told where a record is kept, or there is something to say or to
/// confirm: it knows the place in the program, and what was seen there before.
pub(crate) fn observe_named(
    py: Python<'_>,
    function: &str,
    rule: &Rule,
    shapes: &[&[usize]],
    called: Option<Vec<String>>,
    evidence: Evidence,
) -> PyResult<()> {
    let holding = Holding::get(py)?;
    let policy = holding.policy()?;
    let mut names = Names { operands: called.clone().unwrap_or_default(), axes: Vec::new() };
    let owned = rule.clone().with_names(&mut names)?;
    let dims: Vec<Dims> = shapes.iter().map(|own| Dims::from(*own)).collect();
    let outcome = Outcome::of(&owned, &dims, &names);
    let judged = policy.get().verdict(py, &owned.to_string(), &outcome, &names, evidence, &[])?;
    let silent = judged.raised.is_none() && judged.warned.is_empty();
    if silent && judged.unconfirmed.is_empty() && !holding.records()? {
        return Ok(());
    }
    let shapes: Vec<_> = shapes.iter().map(|own| tuple(py, own)).collect::<PyResult<_>>()?;
    let shapes = PyTuple::new(py, shapes)?;
    let tell = holding.module.getattr("tell")?;
    let known = (evidence.reduced, evidence.deliberate);
    tell.call1((function, shapes, rule.clone(), called, known, judged.into_tuple())).map(drop)
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
    /// The finding that it is raised for.
    refused: Option<Finding>,
    warned: Vec<Finding>,
    unconfirmed: Vec<Finding>,
}

/// A verdict for Python: the result's shape, the exception, its finding, and the findings that are warned of
/// and that are not confirmed.
type VerdictTuple<'py> =
    (Option<Bound<'py, PyTuple>>, Option<Py<PyAny>>, Option<Finding>, Vec<Finding>, Vec<Finding>);

impl<'py> Verdict<'py> {
    fn into_tuple(self) -> VerdictTuple<'py> {
        (self.shape, self.raised, self.refused, self.warned, self.unconfirmed)
    }
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
/// short for `same-rank,SC102=deny`. An action can be for one certainty: `SC102:confirmed=deny`. Without
/// anything, SC102 is warned of once it is confirmed, and all else allowed.
///
/// >>> import simulcast
/// >>> simulcast.Policy("same-rank", SC104="warn")
/// simulcast.Policy("same-rank,SC104=warn")
#[pyclass(module = "simulcast", frozen, eq)]
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Policy(CorePolicy);

impl Policy {
    fn actions_at<'py>(
        &self,
        py: Python<'py>,
        certainty: Certainty,
    ) -> PyResult<Bound<'py, PyDict>> {
        let actions = PyDict::new(py);
        for &code in FindingCode::ALL {
            actions.set_item(code.as_str(), self.0.action(code, certainty).name())?;
        }
        Ok(actions)
    }

    fn verdict<'py>(
        &self,
        py: Python<'py>,
        rule: &str,
        outcome: &Outcome,
        names: &Names,
        evidence: Evidence,
        ignored: &[FindingCode],
    ) -> PyResult<Verdict<'py>> {
        if let Some(error) = outcome.error() {
            return Err(refused(py, error));
        }
        let shape = outcome.shape().map_or(Ok(None), |shape| dims_tuple(py, &shape))?;
        let Some(verdict) = outcome.judge_with(&self.0, names, evidence) else {
            return Err(PyValueError::new_err("a policy needs shapes whose ranks are known"));
        };
        let mut refused = verdict.denied.iter().filter(|own| !ignored.contains(&own.code));
        let refused = refused.next();
        let raised = refused.map(|finding| {
            let shapes = outcome.shapes();
            denied(py, finding, &shapes, names, rule.to_owned()).into_value(py).into_any()
        });
        let refused = refused.map(|own| Finding::of(own, names));
        let told = |found: &[simulcast_core::Finding]| {
            let told = found.iter().filter(|own| !ignored.contains(&own.code));
            told.map(|own| Finding::of(own, names)).collect()
        };
        let (warned, unconfirmed) = (told(&verdict.warned), told(&verdict.unconfirmed));
        Ok(Verdict { shape, raised, refused, warned, unconfirmed })
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

    /// What is done about each finding that is confirmed: its code, and `allow`, `warn` or `raise`.
    #[getter]
    fn actions<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.actions_at(py, Certainty::Confirmed)
    }

    /// What is done about each finding that is only possible.
    #[getter]
    fn possible_actions<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.actions_at(py, Certainty::Possible)
    }

    /// The result's shape, what is refused (an exception, not yet raised) and its finding, what is warned of,
    /// and what is not confirmed; but for codes that are ignored.
    #[pyo3(signature = (operands, rule = None, names = None, *, varied = false, symbol = false, reduced = false, deliberate = false, ignored = None))]
    #[expect(clippy::too_many_arguments, reason = "keywords of Python")]
    fn _judge<'py>(
        &self,
        py: Python<'py>,
        operands: &Bound<'py, PyTuple>,
        rule: Option<&Bound<'py, PyAny>>,
        names: Option<Vec<String>>,
        varied: bool,
        symbol: bool,
        reduced: bool,
        deliberate: bool,
        ignored: Option<Vec<String>>,
    ) -> PyResult<VerdictTuple<'py>> {
        let Request { rule, names, outcome, .. } = Request::read(operands, rule, names)?;
        let evidence = Evidence { varied, symbol, reduced, deliberate };
        // A code of a model, or of a later version, is nothing that could be found here.
        let ignored = ignored.unwrap_or_default();
        let ignored: Vec<FindingCode> = match ignored.iter().any(|own| own == "all") {
            true => FindingCode::ALL.to_vec(),
            false => ignored.iter().filter_map(|own| own.parse().ok()).collect(),
        };
        let rule = rule.to_string();
        let judged = self.verdict(py, &rule, &outcome, &names, evidence, &ignored)?;
        Ok(judged.into_tuple())
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
