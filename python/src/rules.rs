//! Rules: a class, a constructor for each kind that has parameters, and what `rule=` accepts.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};
use simulcast_core::{NamedAxes, Names, OwnedRule, RuleKind};

use crate::shapes::read_shape;

/// A rule under which shapes meet, from its text: `Rule("pdpd:1")`.
///
/// >>> import simulcast
/// >>> simulcast.Rule("pdpd:1") == simulcast.pdpd(axis=1)
/// True
/// >>> print(simulcast.axes((2, 3), (0,)))
/// axes:2,3/0
#[pyclass(module = "simulcast", frozen, eq, hash)]
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Rule {
    pub(crate) owned: OwnedRule,
    /// The names of each operand's axes, under `named`.
    pub(crate) axes: Vec<Vec<String>>,
}

impl Rule {
    pub(crate) const NUMPY: Self = Self { owned: OwnedRule::Numpy, axes: Vec::new() };

    fn of(owned: OwnedRule) -> Self {
        Self { owned, axes: Vec::new() }
    }

    /// Whether axes meet by name.
    pub(crate) fn is_named(&self) -> bool {
        self.owned.kind().parameters().labels
    }

    /// The rule of an argument: text, a rule, or `None` for NumPy's.
    pub(crate) fn read(argument: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let Some(argument) = argument else { return Ok(Self::NUMPY) };
        if let Ok(rule) = argument.cast::<Self>() {
            return Ok(rule.get().clone());
        }
        match argument.cast::<PyString>() {
            Ok(text) => Self::new(text.to_str()?),
            Err(_) => Err(PyTypeError::new_err(format!(
                "rule is a text or a Rule, not {}",
                argument.get_type()
            ))),
        }
    }

    /// Whether the rule of an argument brings arrays of equal shapes together as they are: `Some(false)` for NumPy's, which
    /// stretches others too, `Some(true)` for rules without parameters; `None` where more has to be looked at.
    #[inline]
    pub(crate) fn keeps_equal_shapes(argument: &Bound<'_, PyAny>, operands: usize) -> Option<bool> {
        let kind = match argument.cast::<Self>() {
            Ok(rule) => Some(&rule.get().owned).filter(|own| own.parts().axis.is_none())?.kind(),
            Err(_) => RuleKind::from_name(argument.cast::<PyString>().ok()?.to_str().ok()?)?,
        };
        let takes = kind.parameters();
        let fits = takes.shape.is_none()
            && !takes.labels
            && kind.arity().is_none_or(|arity| arity == operands);
        fits.then_some(kind != RuleKind::Numpy)
    }

    /// The rule with its names, for so many operands; `own` are the names that operands bring.
    pub(crate) fn with_names(mut self, names: &mut Names) -> PyResult<OwnedRule> {
        if !self.axes.is_empty() {
            names.axes = self.axes;
        } else if self.is_named() && !names.axes.is_empty() {
            self.owned = labelled(&names.axes)?;
        }
        Ok(self.owned)
    }

    /// The rule for a call whose operands have no names for their axes.
    pub(crate) fn positional(self) -> PyResult<OwnedRule> {
        if self.is_named() && self.axes.is_empty() {
            return Err(PyValueError::new_err(
                "rule named needs names: simulcast.named((\"b\", \"c\"), (\"c\",))",
            ));
        }
        Ok(self.owned)
    }
}

/// The rule under which axes of these names meet.
fn labelled<A: AsRef<[S]>, S: AsRef<str>>(axes: &[A]) -> PyResult<OwnedRule> {
    let named =
        NamedAxes::new(axes).map_err(|refusal| PyValueError::new_err(refusal.to_string()))?;
    Ok(named.into_rule())
}

#[pymethods]
impl Rule {
    #[new]
    fn new(text: &str) -> PyResult<Self> {
        let owned = text.parse::<OwnedRule>();
        let owned = owned.map_err(|error| PyValueError::new_err(error.to_string()))?;
        Ok(Self { owned, axes: Vec::new() })
    }

    /// The name of the rule without its parameters: `pdpd`.
    #[getter]
    fn kind(&self) -> &'static str {
        self.owned.kind().name()
    }

    /// The axis that operands are laid from; `None` where it was left out or the rule takes none.
    #[getter]
    fn axis(&self) -> Option<isize> {
        self.owned.parts().axis
    }

    /// The shape that the rule itself carries, if it does.
    #[getter]
    fn target<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        self.owned.target().map(|target| PyTuple::new(py, target)).transpose()
    }

    /// The list of axes that the rule carries: `broadcast_axes` or `axes_mapping`.
    #[getter]
    fn axes<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        self.owned.parts().axes.map(|axes| PyTuple::new(py, axes)).transpose()
    }

    /// How many operands it takes, where that is not any number.
    #[getter]
    #[pyo3(name = "_arity")]
    fn arity(&self) -> Option<usize> {
        self.owned.kind().arity()
    }

    /// Whether axes meet by name.
    #[getter]
    #[pyo3(name = "_is_named")]
    fn meets_by_name(&self) -> bool {
        self.is_named()
    }

    fn __str__(&self) -> String {
        self.owned.to_string()
    }

    fn __repr__(&self) -> String {
        match self.axes.is_empty() {
            true => format!("simulcast.Rule({:?})", self.owned.to_string()),
            false => {
                let own = |axes: &Vec<String>| match &axes[..] {
                    [only] => format!("({only:?},)"),
                    axes => format!(
                        "({})",
                        axes.iter().map(|a| format!("{a:?}")).collect::<Vec<_>>().join(", ")
                    ),
                };
                let axes: Vec<String> = self.axes.iter().map(own).collect();
                format!("simulcast.named({})", axes.join(", "))
            }
        }
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let module = py.import("simulcast")?;
        let (make, args) = match self.axes.is_empty() {
            true => (module.getattr("Rule")?, PyTuple::new(py, [self.owned.to_string()])?),
            false => (module.getattr("named")?, PyTuple::new(py, &self.axes)?),
        };
        PyTuple::new(py, [make, args.into_any()])
    }
}

/// The second operand is laid onto the first from `axis`; only it stretches (OpenVINO's PDPD).
///
/// >>> import simulcast
/// >>> simulcast.broadcast_shapes((2, 3, 4, 5), (3, 4), rule=simulcast.pdpd(axis=1))
/// (2, 3, 4, 5)
#[pyfunction]
#[pyo3(signature = (axis = None))]
pub(crate) fn pdpd(axis: Option<isize>) -> Rule {
    Rule::of(OwnedRule::Pdpd { axis })
}

/// As `pdpd`, and only a single element may hang over the end (ONNX opsets 1 to 6).
#[pyfunction]
#[pyo3(signature = (axis = None))]
pub(crate) fn legacy(axis: Option<isize>) -> Rule {
    Rule::of(OwnedRule::Legacy { axis })
}

/// The shorter shape is laid onto the longer from `axis`; both stretch (Paddle).
///
/// >>> import simulcast
/// >>> simulcast.broadcast_shapes((3, 1), (2, 3, 4), rule=simulcast.paddle(axis=1))
/// (2, 3, 4)
#[pyfunction]
#[pyo3(signature = (axis = None))]
pub(crate) fn paddle(axis: Option<isize>) -> Rule {
    Rule::of(OwnedRule::Paddle { axis })
}

/// As NumPy's rule, and the result is the first operand's shape (ONNX unidirectional).
#[pyfunction]
pub(crate) fn unidirectional() -> Rule {
    Rule::of(OwnedRule::Unidirectional)
}

/// As NumPy's rule against a target shape; the result may be larger than the target (ONNX Expand).
///
/// >>> import simulcast
/// >>> simulcast.broadcast_shapes((3, 1), rule=simulcast.bidirectional((2, 1, 4)))
/// (2, 3, 4)
#[pyfunction]
pub(crate) fn bidirectional(target: &Bound<'_, PyAny>) -> PyResult<Rule> {
    Ok(Rule::of(OwnedRule::Bidirectional { target: read_shape(target)? }))
}

/// As NumPy's rule, and the result is the target.
#[pyfunction]
pub(crate) fn to(target: &Bound<'_, PyAny>) -> PyResult<Rule> {
    Ok(Rule::of(OwnedRule::To { target: read_shape(target)? }))
}

/// The operand's shape is `shape` without `broadcast_axes` (nGraph's Broadcast).
///
/// >>> import simulcast
/// >>> simulcast.broadcast_to([1, 2, 3], rule=simulcast.axes((3, 2), (1,)))
/// array([[1, 1],
///        [2, 2],
///        [3, 3]])
#[pyfunction]
pub(crate) fn axes(shape: &Bound<'_, PyAny>, broadcast_axes: &Bound<'_, PyAny>) -> PyResult<Rule> {
    let (shape, broadcast_axes) = (read_shape(shape)?, read_axes(broadcast_axes)?);
    Ok(Rule::of(OwnedRule::Axes { shape, broadcast_axes }.with_sorted_sets()))
}

/// Operand axis k feeds result axis `axes_mapping[k]` (OpenVINO's Broadcast in mode explicit).
///
/// >>> import simulcast
/// >>> simulcast.broadcast_shapes((16, 50), rule=simulcast.mapping((1, 16, 50, 50), (1, 2)))
/// (1, 16, 50, 50)
#[pyfunction]
pub(crate) fn mapping(shape: &Bound<'_, PyAny>, axes_mapping: &Bound<'_, PyAny>) -> PyResult<Rule> {
    let (shape, axes_mapping) = (read_shape(shape)?, read_axes(axes_mapping)?);
    Ok(Rule::of(OwnedRule::Mapping { shape, axes_mapping }))
}

/// Axes meet by name: one tuple of names for each operand.
///
/// >>> import simulcast
/// >>> by_name = simulcast.named(("b", "c"), ("w", "c"))
/// >>> simulcast.broadcast_shapes((32, 3), (8, 3), rule=by_name)
/// (32, 3, 8)
#[pyfunction]
#[pyo3(signature = (*axes))]
pub(crate) fn named(axes: &Bound<'_, PyTuple>) -> PyResult<Rule> {
    let axes: Vec<Vec<String>> = axes.extract()?;
    Ok(Rule { owned: labelled(&axes)?, axes })
}

/// Axes; a negative one does not exist, in every rule that takes a list of them.
fn read_axes(axes: &Bound<'_, PyAny>) -> PyResult<Vec<usize>> {
    let axis = |axis: Bound<'_, PyAny>| {
        let axis: isize = axis.extract()?;
        usize::try_from(axis).map_err(|_| PyValueError::new_err(format!("there is no axis {axis}")))
    };
    axes.try_iter()?.map(|own| axis(own?)).collect()
}
