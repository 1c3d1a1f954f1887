//! `grad` and `value_and_grad`: expressions that are differentiated, and those that are kept.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};
use simulcast_explain::terminal_safe;

use super::JointExpression;
use crate::expressions::Expression;
use crate::given::{Name, normal};
use crate::programs::KEPT;

/// Gradients of what was there before.
#[derive(Clone)]
pub(super) struct Derived {
    pub(super) wrt: Vec<String>,
    /// Whether `wrt` was one name, not a list: then it is one gradient, not a tuple.
    pub(super) alone: bool,
    /// The operands that are the gradients of the results; none where those are one number each.
    pub(super) gradients: Vec<String>,
    /// Whether the results come too, before the gradients.
    pub(super) values: bool,
}

impl Derived {
    pub(super) fn read(
        wrt: &Bound<'_, PyAny>,
        gradient: Option<&Bound<'_, PyAny>>,
        values: bool,
    ) -> PyResult<Self> {
        let (wrt, alone) = names(wrt, "wrt")?;
        let gradient = gradient.filter(|gradient| !gradient.is_none());
        let gradients = gradient.map(|gradient| names(gradient, "gradient")).transpose()?;
        Ok(Self { wrt, alone, gradients: gradients.unwrap_or_default().0, values })
    }
}

/// One name, or a list of names; and whether it is one.
fn names(given: &Bound<'_, PyAny>, argument: &str) -> PyResult<(Vec<String>, bool)> {
    if let Ok(one) = given.cast::<PyString>() {
        return Ok((vec![normal(given.py(), one.to_str()?)?], true));
    }
    let names = given.try_iter().and_then(|names| {
        names.map(|name| normal(given.py(), name?.cast::<PyString>()?.to_str()?)).collect()
    });
    let wrong = |_| {
        let class = given.get_type();
        PyTypeError::new_err(format!(
            "{argument} is the name of an operand or a list of names, not {class}"
        ))
    };
    Ok((names.map_err(wrong)?, false))
}

impl JointExpression {
    /// The same, differentiated once more.
    pub(super) fn derived(&self, py: Python<'_>, own: Derived) -> PyResult<Self> {
        let operands = self.operand_names(py)?;
        if let Some(name) = own.wrt.iter().find(|name| !operands.contains(name)) {
            let operands = operands.join(", ");
            let what = format!("wrt: the expression has no operand `{name}`, it has {operands}");
            return Err(PyValueError::new_err(terminal_safe(&what).into_owned()));
        }
        let (count, gradients) = (self.count(), &own.gradients);
        if !gradients.is_empty() && gradients.len() != count {
            let given = gradients.len();
            let what = format!("gradient: there are {count} results, but {given} names");
            return Err(PyValueError::new_err(what));
        }
        for (at, name) in gradients.iter().enumerate() {
            if operands.contains(name) || gradients[..at].contains(name) {
                let what = format!("gradient: another operand has the name `{name}`");
                return Err(PyValueError::new_err(terminal_safe(&what).into_owned()));
            }
        }
        let mut made = Self::of(py, self.exprs.clone(), self.alone, self.fast_math)?;
        made.derived.clone_from(&self.derived);
        made.derived.push(own);
        for name in made.derived.iter().flat_map(|derived| &derived.gradients) {
            // A constant that a gradient hides is no operand of the expression.
            if let Some(own) = made.names.iter().find(|own| own.text == *name) {
                let what = format!("gradient: the expression uses the constant `{}`", own.text);
                return Err(PyValueError::new_err(what));
            }
            made.names.push(Name::new(py, name)?);
        }
        Ok(made)
    }
}

/// Several expressions to be used again: those of a text with `;`, or of a list.
pub(crate) fn compiled_jointly<'py>(
    exprs: &Bound<'py, PyAny>,
    fast_math: bool,
) -> PyResult<Bound<'py, JointExpression>> {
    let py = exprs.py();
    let key = match exprs.cast::<PyList>() {
        Ok(list) => list.to_tuple().into_any(),
        Err(_) => exprs.clone(),
    };
    kept(py, (key, fast_math).into_pyobject(py)?, || {
        JointExpression::new(exprs, fast_math, Vec::new())
    })
}

/// What was made for a key; a key that cannot be one is refused by who makes it.
fn kept<'py>(
    py: Python<'py>,
    key: Bound<'py, PyTuple>,
    make: impl FnOnce() -> PyResult<JointExpression>,
) -> PyResult<Bound<'py, JointExpression>> {
    static READ: PyOnceLock<Py<PyDict>> = PyOnceLock::new();
    let read = READ.get_or_init(py, || PyDict::new(py).unbind()).bind(py);
    if key.hash().is_err() {
        return Bound::new(py, make()?);
    }
    if let Some(known) = read.get_item(&key)? {
        return Ok(known.cast_into()?);
    }
    let made = Bound::new(py, make()?)?;
    if read.len() >= KEPT {
        read.clear();
    }
    read.set_item(key, &made)?;
    Ok(made)
}

/// The gradients of some operands of an expression, as an expression of the same operands.
///
/// Called with operands, it gives the gradient of each operand that `wrt` names, in that operand's shape and type: one
/// array for one name, a tuple for a list of them. The result of the expression is one number; otherwise `gradient` names
/// one more operand, which is the gradient of the result in the result's shape (of a list of expressions: one for each).
/// The element-wise part and the sums over repeated axes are computed together, nothing of the result's size is stored.
///
/// >>> import numpy as np, simulcast
/// >>> slope = simulcast.grad("mean((x - m) ** 2)", wrt="m")
/// >>> slope(x=np.array([[1.0, 2.0], [3.0, 6.0]]), m=np.array([2.0, 2.0]))
/// array([-0., -2.])
/// >>> pullback = simulcast.grad("x * w", wrt=["x", "w"], gradient="g")
/// >>> pullback(x=np.array([[1.0, 2.0]]), w=3.0, g=np.array([[1.0, 10.0]]))
/// (array([[ 3., 30.]]), np.float64(21.0))
///
/// Integers and booleans have no gradient, complex numbers none yet. Elements that tie for `maximum`, `minimum`, `max` or
/// `min` share the gradient equally, and so do what `clip` clips and the bound that it meets, since `clip` is
/// `minimum(maximum(x, low), high)`; `abs` has slope 0 at 0; what `where` does not choose gets 0.
#[pyfunction]
#[pyo3(signature = (expr, wrt, *, gradient = None, fast_math = false))]
pub(crate) fn grad<'py>(
    expr: &Bound<'py, PyAny>,
    wrt: &Bound<'py, PyAny>,
    gradient: Option<&Bound<'py, PyAny>>,
    fast_math: bool,
) -> PyResult<Bound<'py, JointExpression>> {
    derived(expr, Derived::read(wrt, gradient, false)?, fast_math)
}

/// The value of an expression and the gradients of some operands, as an expression of the same operands; see `grad`.
///
/// Called with operands, it gives the value and then what `grad` gives, in one pass over the operands where nothing but the
/// whole is reduced.
///
/// >>> import numpy as np, simulcast
/// >>> loss = simulcast.value_and_grad("mean((y - a * x - b) ** 2)", wrt=["a", "b"])
/// >>> value, (for_a, for_b) = loss(x=np.array([0.0, 1.0]), y=np.array([1.0, 3.0]), a=1.0, b=1.0)
/// >>> float(value), float(for_a), float(for_b)
/// (0.5, -1.0, -1.0)
#[pyfunction]
#[pyo3(signature = (expr, wrt, *, gradient = None, fast_math = false))]
pub(crate) fn value_and_grad<'py>(
    expr: &Bound<'py, PyAny>,
    wrt: &Bound<'py, PyAny>,
    gradient: Option<&Bound<'py, PyAny>>,
    fast_math: bool,
) -> PyResult<Bound<'py, JointExpression>> {
    derived(expr, Derived::read(wrt, gradient, true)?, fast_math)
}

fn derived<'py>(
    expr: &Bound<'py, PyAny>,
    own: Derived,
    fast_math: bool,
) -> PyResult<Bound<'py, JointExpression>> {
    let py = expr.py();
    if let Ok(one) = expr.cast::<Expression>() {
        return Bound::new(py, one.get().joint(py)?.derived(py, own)?);
    }
    if let Ok(several) = expr.cast::<JointExpression>() {
        return Bound::new(py, several.get().derived(py, own)?);
    }
    let of = match expr.cast::<PyList>() {
        Ok(list) => list.to_tuple().into_any(),
        Err(_) => expr.clone(),
    };
    let Derived { wrt, alone, gradients, values } = own.clone();
    let (wrt, gradients) = (PyTuple::new(py, wrt)?, PyTuple::new(py, gradients)?);
    let key = (of, fast_math, wrt, alone, gradients, values).into_pyobject(py)?;
    kept(py, key, || JointExpression::new(expr, fast_math, Vec::new())?.derived(py, own))
}
