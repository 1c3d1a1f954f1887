//! Expressions in text: `evaluate`, and `compile` for those that are used again.
//!
//! An expression is read once, and becomes a program once for the types of its operands. Numbers of
//! Python's stand in it as if they were written there.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyComplex, PyDict, PyFloat, PyList, PyString, PyTuple};
use simulcast::{Casting, DType, Diagnostic, Expr, ExprKind, Literal, ProgramError, Promotion};

use crate::dtypes;
use crate::errors::diagnosed;
use crate::functions::{Options, check_powers, text_dtypes};
use crate::operands::{Operand, views};
use crate::policies;
use crate::programs::{KEPT, Programs, part};
use crate::results::Target;
use crate::rules::Rule;

/// An expression that was read, and the programs that were made of it.
struct Read {
    expr: Expr,
    /// Every name in it, once, those of constants too.
    names: Vec<String>,
    programs: Programs,
}

/// An expression, ready to be computed for arrays of any types and shapes.
///
/// What it takes besides its operands is what `evaluate` takes. It can be pickled.
///
/// >>> import numpy as np, simulcast
/// >>> normalised = simulcast.compile("(x - mean) / std")
/// >>> normalised.operands
/// ('x', 'mean', 'std')
/// >>> normalised(x=np.array([[1.0, 2.0], [3.0, 6.0]]), mean=[2.0, 4.0], std=2)
/// array([[-0.5, -1. ],
///        [ 0.5,  1. ]])
#[pyclass(module = "simulcast", frozen)]
pub(crate) struct Expression(Arc<Read>);

#[pymethods]
impl Expression {
    #[new]
    fn new(py: Python<'_>, expr: &str) -> PyResult<Self> {
        Ok(Self(Arc::new(Read::new(py, expr)?)))
    }

    /// The names of its operands, in the order in which they first appear.
    #[getter]
    fn operands<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.0.expr.operands().collect::<Vec<_>>())
    }

    #[pyo3(signature = (
        *, out = None, casting = None, dtype = None, rule = None, threads = None,
        local_dict = None, **operands
    ))]
    #[expect(clippy::too_many_arguments, reason = "as many as Python gives")]
    fn __call__<'py>(
        &self,
        py: Python<'py>,
        out: Option<&Bound<'py, PyAny>>,
        casting: Option<&str>,
        dtype: Option<&Bound<'py, PyAny>>,
        rule: Option<&Bound<'py, PyAny>>,
        threads: Option<isize>,
        local_dict: Option<&Bound<'py, PyAny>>,
        operands: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let options = Options { out, casting, dtype, rule, threads };
        self.0.evaluate(py, options, local_dict, operands)
    }

    fn __str__(&self) -> &str {
        self.0.expr.text()
    }

    fn __repr__(&self) -> String {
        format!("simulcast.compile({:?})", self.0.expr.text())
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let args = PyTuple::new(py, [self.0.expr.text()])?;
        PyTuple::new(py, [py.get_type::<Self>().into_any(), args.into_any()])
    }

    /// Its nodes, operands before what is computed of them: what each is, and of which it is computed.
    #[getter]
    fn _nodes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let nodes = PyList::empty(py);
        for node in self.0.expr.nodes() {
            let children: Vec<usize> = node.kind.children().iter().map(|id| id.index()).collect();
            let (kind, what): (&str, Bound<'py, PyAny>) = match &node.kind {
                ExprKind::Literal(literal) => ("value", python(py, *literal)?),
                ExprKind::Text(text) => ("value", PyString::new(py, text).into_any()),
                ExprKind::Name(name) => ("name", PyString::new(py, name).into_any()),
                ExprKind::Apply(op, _) => ("apply", PyString::new(py, op.name()).into_any()),
                ExprKind::Compare(_, rest) => {
                    let ops = rest.iter().map(|(op, _)| op.name());
                    ("compare", PyTuple::new(py, ops.collect::<Vec<_>>())?.into_any())
                }
                ExprKind::If(..) => ("if", py.None().into_bound(py)),
                ExprKind::Clip(..) => ("clip", py.None().into_bound(py)),
                ExprKind::Cast(dtype, _) => ("cast", dtypes::object(py, *dtype)?),
                ExprKind::Index(_, pattern) => {
                    let pattern = pattern.iter().map(|axis| format!("{axis:?}"));
                    ("index", PyTuple::new(py, pattern.collect::<Vec<_>>())?.into_any())
                }
                ExprKind::Transpose(_, axes) => ("transpose", axes.clone().into_pyobject(py)?),
                ExprKind::Reduce { fold, axes, keepdims, .. } => {
                    ("reduce", (fold.name(), axes.clone(), *keepdims).into_pyobject(py)?.into_any())
                }
            };
            nodes.append((kind, what, children))?;
        }
        Ok(nodes.into_any())
    }
}

/// A literal as a number of Python's.
fn python(py: Python<'_>, literal: Literal) -> PyResult<Bound<'_, PyAny>> {
    Ok(match literal {
        Literal::Bool(value) => PyBool::new(py, value).to_owned().into_any(),
        Literal::Int(value) => value.into_pyobject(py)?.into_any(),
        Literal::Float(value) => PyFloat::new(py, value).into_any(),
        Literal::Complex(value) => PyComplex::from_doubles(py, value.re, value.im).into_any(),
    })
}

/// An expression to be used again; see `Expression`.
///
/// >>> import simulcast
/// >>> hypotenuse = simulcast.compile("sqrt(a**2 + b**2)")
/// >>> hypotenuse(a=3.0, b=[4.0, 1.25])
/// array([5.  , 3.25])
#[pyfunction]
#[pyo3(signature = (expr, /))]
pub(crate) fn compile(py: Python<'_>, expr: &str) -> PyResult<Expression> {
    Ok(Expression(read(py, expr)?))
}

/// The value of an expression in text, in one pass over memory.
///
/// Python's syntax and precedence, NumPy's functions, types and promotion; no part of the text is run
/// by Python. Operands are given by name, or in `local_dict`. The result is cast to `dtype`, or to the
/// dtype of `out`, as `casting` allows; it stretches to `out`, which never stretches itself.
///
/// >>> import numpy as np, simulcast
/// >>> x = np.array([[1, 2], [3, 6]], dtype=np.float32)
/// >>> simulcast.evaluate("(x - mean(x, axis=0)) * 0.5 if x > 1 else nan", x=x)
/// array([[ nan, -1. ],
///        [ 0.5,  1. ]], dtype=float32)
/// >>> simulcast.evaluate("image - mean", image=np.ones((2, 3, 4, 4)), mean=np.ones(3))
/// Traceback (most recent call last):
/// simulcast._errors.BroadcastError: error[E1]: operands of `-` do not broadcast
/// ...
#[pyfunction]
#[pyo3(
    signature = (
        expr, /, *, out = None, casting = None, dtype = None, rule = None, threads = None,
        local_dict = None, **operands
    ),
    text_signature = "(expr, /, *, out=None, casting='same_kind', dtype=None, rule='numpy', threads=None, local_dict=None, **operands)"
)]
#[expect(clippy::too_many_arguments, reason = "as many as Python gives")]
pub(crate) fn evaluate<'py>(
    py: Python<'py>,
    expr: &str,
    out: Option<&Bound<'py, PyAny>>,
    casting: Option<&str>,
    dtype: Option<&Bound<'py, PyAny>>,
    rule: Option<&Bound<'py, PyAny>>,
    threads: Option<isize>,
    local_dict: Option<&Bound<'py, PyAny>>,
    operands: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let options = Options { out, casting, dtype, rule, threads };
    read(py, expr)?.evaluate(py, options, local_dict, operands)
}

/// The expression of a text, which is kept for a while.
fn read(py: Python<'_>, text: &str) -> PyResult<Arc<Read>> {
    static READ: Mutex<Option<HashMap<String, Arc<Read>>>> = Mutex::new(None);
    let mut all = READ.lock().unwrap_or_else(PoisonError::into_inner);
    let all = all.get_or_insert_default();
    if let Some(known) = all.get(text) {
        return Ok(Arc::clone(known));
    }
    let made = Arc::new(Read::new(py, text)?);
    if all.len() >= KEPT {
        all.clear();
    }
    all.insert(text.to_owned(), Arc::clone(&made));
    Ok(made)
}

impl Read {
    fn new(py: Python<'_>, text: &str) -> PyResult<Self> {
        let expr = Expr::parse(text)
            .map_err(|error| diagnosed(py, text, &Diagnostic::of_text(text, error)))?;
        let mut names: Vec<String> = Vec::new();
        for node in expr.nodes() {
            if let ExprKind::Name(name) = &node.kind
                && !names.contains(name)
            {
                names.push(name.clone());
            }
        }
        Ok(Self { expr, names, programs: Programs::default() })
    }

    /// The value for some operands.
    fn evaluate<'py>(
        self: &Arc<Self>,
        py: Python<'py>,
        options: Options<'_, 'py>,
        local_dict: Option<&Bound<'py, PyAny>>,
        given: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (names, objects) = self.find(local_dict, given)?;
        let Some(operands) = Operand::read_all(&objects.iter().collect::<Vec<_>>())? else {
            let call = py.import("simulcast._dask")?.getattr("evaluate")?;
            let own = PyDict::new(py);
            names.iter().zip(&objects).try_for_each(|(name, object)| own.set_item(name, object))?;
            let expression = Expression(Arc::clone(self));
            return call.call((expression, own), Some(&options.keywords(py)?));
        };
        let target = Target::new(options.out, options.casting, options.threads)?;
        let casting = dtypes::casting(options.casting)?;
        let dtype = match options.dtype.filter(|dtype| !dtype.is_none()) {
            Some(dtype) => Some(dtypes::read(dtype)?),
            None => target.dtype().filter(|&own| own != DType::String),
        };
        let rule = Rule::read(options.rule)?;
        Call { read: self, py, names: &names, operands, rule }.run(dtype, casting, &target)
    }

    /// The operands that are given, with their names, in the order of the text.
    fn find<'a, 'py>(
        &'a self,
        local_dict: Option<&Bound<'py, PyAny>>,
        given: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<(Vec<&'a str>, Vec<Bound<'py, PyAny>>)> {
        let (mut names, mut objects) = (Vec::new(), Vec::new());
        let mut used = 0;
        for name in &self.names {
            let own = match given {
                Some(given) => given.get_item(name)?,
                None => None,
            };
            used += usize::from(own.is_some());
            let own = match (own, local_dict.filter(|local| !local.is_none())) {
                (None, Some(local)) if local.contains(name)? => Some(local.get_item(name)?),
                (own, _) => own,
            };
            if let Some(own) = own {
                names.push(name.as_str());
                objects.push(own);
            }
        }
        if let Some(given) = given.filter(|given| given.len() > used) {
            let keys: Vec<String> = given.keys().extract()?;
            let other = keys.iter().find(|key| !self.names.contains(key));
            return Err(PyTypeError::new_err(format!(
                "the expression has no operand `{}`",
                other.map_or("", String::as_str)
            )));
        }
        Ok((names, objects))
    }
}

/// An expression with its operands.
struct Call<'a, 'py> {
    read: &'a Read,
    py: Python<'py>,
    names: &'a [&'a str],
    operands: Vec<Operand<'py>>,
    rule: Rule,
}

impl<'py> Call<'_, 'py> {
    fn run(
        mut self,
        dtype: Option<DType>,
        casting: Casting,
        target: &Target<'_, 'py>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = self.py;
        let numbers: Vec<(&str, Literal)> = self
            .names
            .iter()
            .zip(&self.operands)
            .filter_map(|(name, operand)| match operand {
                Operand::Number(number) => Some((*name, *number)),
                _ => None,
            })
            .collect();
        let bound;
        let expr = if numbers.is_empty() {
            &self.read.expr
        } else {
            bound = self.read.expr.with_numbers(&numbers);
            &bound
        };
        let key = (self.operands.iter().map(part).collect::<Vec<_>>(), dtype);
        let (mut names, mut operands) = (Vec::new(), Vec::new());
        for (name, operand) in self.names.iter().zip(std::mem::take(&mut self.operands)) {
            if !matches!(operand, Operand::Number(_)) {
                names.push(*name);
                operands.push(operand);
            }
        }
        let views = views(&operands)?;
        let rule = self.rule.clone().positional()?;
        let told: Vec<(&str, DType, &[usize])> =
            names.iter().zip(&views).map(|(name, v)| (*name, v.dtype(), v.shape())).collect();
        let fail = |error: ProgramError| {
            let shown = Diagnostic::new(expr, error, &told, rule.rule(), Promotion::Numpy);
            diagnosed(py, expr.text(), &shown)
        };
        let typed: Vec<(&str, DType)> =
            told.iter().map(|(name, dtype, _)| (*name, *dtype)).collect();
        let compiled = self.read.programs.find(expr, &numbers, &typed, (key, casting), &fail)?;
        self.observe(expr, &told)?;
        let program = &compiled.program;
        let run = program.on(&views).rule(rule.rule());
        for exponents in &compiled.exponents {
            let made = exponents.on(&views).rule(rule.rule()).collect().map_err(fail)?;
            check_powers(&made.view())?;
        }
        if program.dtype() == DType::String {
            let made = run.collect().map_err(fail)?;
            return target.fill_text(py, &made, &text_dtypes(&operands), None);
        }
        target.fill(py, run, program.dtype(), &views, || run.shape().map_err(fail), fail)
    }

    /// Asks the policy of every operation in the text, where someone may care.
    fn observe(&self, expr: &Expr, told: &[(&str, DType, &[usize])]) -> PyResult<()> {
        let all: Vec<&[usize]> = told.iter().map(|(.., shape)| *shape).collect();
        if !policies::is_asked(&all) {
            return Ok(());
        }
        let of = |name: &str| told.iter().find(|(own, ..)| *own == name).map(|(.., shape)| *shape);
        let rule = self.rule.clone().positional()?;
        let shapes = expr.shapes(rule.rule(), of);
        // What does not broadcast has no shape, and is an error later.
        for node in expr.nodes().iter().take(shapes.len()) {
            let children = node.kind.children();
            let own = children.iter().filter_map(|id| shapes.get(id.index())?.as_deref());
            let own: Vec<&[usize]> = own.collect();
            if own.len() > 1 {
                policies::observe(self.py, "evaluate", &self.rule, &own)?;
            }
        }
        Ok(())
    }
}
