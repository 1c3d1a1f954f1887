//! Several expressions in one pass, and gradients: what `evaluate("a; b")`, `compile([...])` and `grad` compute.

mod call;
mod derived;

use std::sync::Mutex;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString, PyTuple, PyType};
use simulcast::program::{Diagnostic, Expr};

pub(crate) use self::call::call;
use self::call::{Kept, Wanted};
use self::derived::Derived;
pub(crate) use self::derived::{compiled_jointly, grad, value_and_grad};
use crate::errors::diagnosed;
use crate::functions::Options;
use crate::given::{Given, Name, names_of, none_by_place, normal};

/// Several expressions, or gradients, ready to be computed for arrays of any types and shapes in as few passes over the
/// operands as there can be.
///
/// `compile` makes one of several texts, `grad` and `value_and_grad` one of an expression. What it takes besides its
/// operands is what `evaluate` takes; `out` is one array for each result, in their order, or None for a new one. It can be
/// pickled.
///
/// >>> import numpy as np, simulcast
/// >>> both = simulcast.compile(["a + b", "sum(a * b)"])
/// >>> both(a=np.array([1.0, 2.0]), b=10.0)
/// (array([11., 12.]), np.float64(30.0))
/// >>> loss = simulcast.value_and_grad("mean((x - m) ** 2)", wrt=["m"])
/// >>> loss(x=np.array([[1.0, 2.0], [3.0, 6.0]]), m=np.array([2.0, 2.0]))
/// (np.float64(4.5), (array([-0., -2.]),))
#[pyclass(module = "simulcast", frozen)]
pub(crate) struct JointExpression {
    exprs: Vec<Expr>,
    /// Whether it was one text, not a list: then its result is one array, not a tuple.
    alone: bool,
    /// Every name of the expressions once, those of constants too; then the gradients that are operands.
    names: Vec<Name>,
    /// How often it was differentiated, and how.
    derived: Vec<Derived>,
    /// Whether its products and sums may be rounded once rather than twice.
    #[pyo3(get)]
    fast_math: bool,
    kept: Mutex<Vec<Kept>>,
}

#[pymethods]
impl JointExpression {
    #[new]
    #[pyo3(signature = (exprs, fast_math = false, _derived = Vec::new()))]
    fn new(
        exprs: &Bound<'_, PyAny>,
        fast_math: bool,
        _derived: Vec<(Vec<String>, bool, Vec<String>, bool)>,
    ) -> PyResult<Self> {
        let py = exprs.py();
        let mut own = match exprs.cast::<PyString>() {
            Ok(text) => Self::of_text(py, text.to_str()?, fast_math)?,
            Err(_) => Self::of_list(exprs, fast_math)?,
        };
        for (wrt, alone, gradients, values) in _derived {
            own = own.derived(py, Derived { wrt, alone, gradients, values })?;
        }
        Ok(own)
    }

    /// The class with the type of what its calls give, for annotations: `JointExpression[NDArray[Any]]`.
    #[classmethod]
    fn __class_getitem__<'py>(
        class: &Bound<'py, PyType>,
        result: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        class.py().import("types")?.getattr("GenericAlias")?.call1((class, result))
    }

    /// The names of its operands, in the order in which they first appear; then those of gradients.
    #[getter]
    fn operands<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.operand_names(py)?)
    }

    #[pyo3(signature = (*args, **given))]
    fn __call__<'py>(
        this: &Bound<'py, Self>,
        args: &Bound<'py, PyTuple>,
        given: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        none_by_place(args)?;
        call(this, given.into_iter().flatten())
    }

    /// The gradients of some operands, each in its operand's shape and type, as an expression of the same operands.
    ///
    /// Its results are one number each, or `gradient` names operands that are their gradients; see `grad`.
    #[pyo3(signature = (wrt, *, gradient = None))]
    pub(crate) fn grad(
        &self,
        wrt: &Bound<'_, PyAny>,
        gradient: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        self.derived(wrt.py(), Derived::read(wrt, gradient, false)?)
    }

    /// The results and the gradients of some operands, as an expression of the same operands; see `value_and_grad`.
    #[pyo3(signature = (wrt, *, gradient = None))]
    pub(crate) fn value_and_grad(
        &self,
        wrt: &Bound<'_, PyAny>,
        gradient: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        self.derived(wrt.py(), Derived::read(wrt, gradient, true)?)
    }

    /// The shapes whose elements it visits for these operands: one pass over memory each.
    ///
    /// >>> import numpy as np, simulcast
    /// >>> loss = simulcast.value_and_grad("mean((x - m) ** 2 / s)", wrt=["m", "s"])
    /// >>> loss.passes(x=np.ones((200, 300)), m=np.ones(300), s=np.ones((200, 1))).count((200, 300))
    /// 1
    #[pyo3(signature = (*, rule = None, local_dict = None, **operands))]
    fn passes<'py>(
        this: &Bound<'py, Self>,
        rule: Option<&Bound<'py, PyAny>>,
        local_dict: Option<&Bound<'py, PyAny>>,
        operands: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let own = this.get();
        let objects = Given::operands(&own.names, operands, local_dict)?;
        let options = Options { rule, ..Options::default() };
        own.run(this.py(), options, &objects, &Wanted::Passes)
    }

    fn __str__(&self) -> String {
        self.texts().join("; ")
    }

    fn __repr__(&self) -> String {
        let fast = if self.fast_math { ", fast_math=True" } else { "" };
        let texts = self.texts();
        let mut shown = match (self.alone, texts.as_slice()) {
            (true, [one]) => format!("simulcast.compile({one:?}{fast})"),
            _ => format!("simulcast.compile({texts:?}{fast})"),
        };
        for Derived { wrt, alone, gradients, values } in &self.derived {
            let list = |names: &[String]| match names {
                [one] => format!("{one:?}"),
                _ => format!("{names:?}"),
            };
            shown.push_str(if *values { ".value_and_grad(" } else { ".grad(" });
            shown.push_str(&if *alone { list(wrt) } else { format!("{wrt:?}") });
            if !gradients.is_empty() {
                shown.push_str(&format!(", gradient={}", list(gradients)));
            }
            shown.push(')');
        }
        shown
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let texts = self.texts();
        let exprs = match texts.as_slice() {
            [one] if self.alone => PyString::new(py, one).into_any(),
            _ => PyList::new(py, texts)?.into_any(),
        };
        let derived = self.derived.iter().map(|own| {
            let Derived { wrt, alone, gradients, values } = own.clone();
            (wrt, alone, gradients, values)
        });
        let derived: Vec<_> = derived.collect();
        (py.get_type::<Self>(), (exprs, self.fast_math, derived)).into_pyobject(py)
    }
}

impl JointExpression {
    /// The expressions of a text; of one that has no `;` the result is one array.
    fn of_text(py: Python<'_>, text: &str, fast_math: bool) -> PyResult<Self> {
        let exprs = Expr::parse_several(text)
            .map_err(|error| diagnosed(py, text, &Diagnostic::of_text(text, error)))?;
        let alone = exprs.len() == 1;
        Self::of(py, exprs, alone, fast_math)
    }

    /// The expressions of a list.
    fn of_list(list: &Bound<'_, PyAny>, fast_math: bool) -> PyResult<Self> {
        let (py, mut texts) = (list.py(), Vec::new());
        let wrong = || {
            let class = list.get_type();
            PyTypeError::new_err(format!("an expression is text, or a list of texts, not {class}"))
        };
        if list.is_instance_of::<PyBytes>() {
            return Err(wrong());
        }
        let entries = list.try_iter().map_err(|_| wrong())?;
        for (number, entry) in entries.enumerate() {
            let entry = entry?;
            let Ok(text) = entry.cast::<PyString>() else {
                let class = entry.get_type();
                let what = format!("an expression is text, but number {number} is {class}");
                return Err(PyTypeError::new_err(what));
            };
            // Each alone, so that none can end within another.
            let text = text.to_str()?.to_owned();
            Expr::parse(&text)
                .map_err(|error| diagnosed(py, &text, &Diagnostic::of_text(&text, error)))?;
            texts.push(text);
        }
        if texts.is_empty() {
            return Err(PyValueError::new_err(
                "a list of no expressions: there is nothing to compute",
            ));
        }
        let whole = texts.join("; ");
        let exprs = Expr::parse_several(&whole)
            .map_err(|error| diagnosed(py, &whole, &Diagnostic::of_text(&whole, error)))?;
        Self::of(py, exprs, false, fast_math)
    }

    /// Of an expression that was compiled already.
    pub(crate) fn of_one(py: Python<'_>, expr: &Expr, fast_math: bool) -> PyResult<Self> {
        Self::of(py, vec![expr.clone()], true, fast_math)
    }

    fn of(py: Python<'_>, exprs: Vec<Expr>, alone: bool, fast_math: bool) -> PyResult<Self> {
        let names = names_of(py, &exprs)?;
        let (derived, kept) = (Vec::new(), Mutex::default());
        Ok(Self { exprs, alone, names, derived, fast_math, kept })
    }

    /// How many arrays it makes.
    fn count(&self) -> usize {
        self.derived.iter().fold(self.exprs.len(), |count, derived| {
            derived.wrt.len() + if derived.values { count } else { 0 }
        })
    }

    /// The expressions in words.
    fn texts(&self) -> Vec<String> {
        match self.exprs.as_slice() {
            [one] if self.alone => vec![one.text().to_owned()],
            several => several.iter().map(Expr::to_string).collect(),
        }
    }

    fn operand_names(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        let mut names: Vec<String> = Vec::new();
        let own = self.exprs.iter().flat_map(Expr::operands);
        for name in own.chain(self.gradients().map(String::as_str)) {
            let name = normal(py, name)?;
            if !names.contains(&name) {
                names.push(name);
            }
        }
        Ok(names)
    }

    /// The names of operands that are gradients.
    fn gradients(&self) -> impl Iterator<Item = &String> {
        self.derived.iter().flat_map(|derived| &derived.gradients)
    }

    /// How many names are those of the expressions.
    fn own_names(&self) -> usize {
        self.names.len() - self.gradients().count()
    }

    /// The results as they are given back.
    fn shaped<'py>(
        &self,
        py: Python<'py>,
        level: usize,
        mut results: Vec<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (wrt, alone, values) = match level.checked_sub(1).and_then(|at| self.derived.get(at)) {
            Some(own) => (own.wrt.len(), own.alone, own.values),
            None => (results.len(), self.alone, false),
        };
        let mut last = results.split_off(results.len().saturating_sub(wrt));
        let last = match last.len() {
            1 if alone => last.remove(0),
            _ => PyTuple::new(py, last)?.into_any(),
        };
        if !values {
            return Ok(last);
        }
        let first = self.shaped(py, level - 1, results)?;
        Ok(PyTuple::new(py, [first, last])?.into_any())
    }
}
