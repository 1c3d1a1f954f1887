//! Several expressions in one pass, and gradients: what `evaluate("a; b")`, `compile([...])` and `grad` compute.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use numpy::{PyUntypedArray, PyUntypedArrayMethods as _};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};
use simulcast::program::{Builder, Diagnostic, Expr, ExprKind, ProgramErrorKind};
use simulcast::types::{Casting, Literal, OperandType, Promotion, can_cast, literal_as};
use simulcast::{AnyView, DType, JointProgram, ProgramError, TypedProgram};

use crate::dtypes;
use crate::errors::{diagnosed, failed, mistyped};
use crate::expressions::{Expression, Name, Objects, compiled, fill, normal, observe, put, read};
use crate::fastcall::{OPTIONS, with_options};
use crate::functions::{Options, check_powers, name_of, text_dtypes};
use crate::operands::{Operand, views};
use crate::programs::{KEPT, Part, exponents};
use crate::results::{Target, fill_all};
use crate::rules::Rule;

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

/// Gradients of what was there before.
#[derive(Clone)]
struct Derived {
    wrt: Vec<String>,
    /// Whether `wrt` was one name, not a list: then it is one gradient, not a tuple.
    alone: bool,
    /// The operands that are the gradients of the results; none where those are one number each.
    gradients: Vec<String>,
    /// Whether the results come too, before the gradients.
    values: bool,
}

/// A program, and what else has to be looked at before it runs.
struct Compiled {
    program: JointProgram,
    /// For each of the program's operands, the name that it stands for.
    operands: Vec<usize>,
    /// The types of the results, before they are cast.
    natural: Vec<DType>,
    /// The exponents of powers of integers, which must not be negative.
    exponents: Vec<TypedProgram>,
}

/// A program, and what it was made for.
struct Kept {
    parts: Vec<Part>,
    dtype: Option<DType>,
    compiled: Arc<Compiled>,
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
        if !args.is_empty() {
            let what = format!("operands are given by name, but {} came by place", args.len());
            return Err(PyTypeError::new_err(what));
        }
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
        let mut objects = own.nothing();
        for (name, object) in operands.into_iter().flatten() {
            put(&own.names, &mut objects, name.cast::<PyString>()?, object)?;
        }
        fill(&own.names, &mut objects, local_dict)?;
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

impl Derived {
    fn read(
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

/// What is asked for.
enum Wanted<'t, 'a, 'py> {
    Results(&'t [Target<'a, 'py>]),
    /// The shapes of its passes.
    Passes,
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
        let entries = list.try_iter().map_err(|_| {
            let class = list.get_type();
            PyTypeError::new_err(format!("an expression is text, or a list of texts, not {class}"))
        })?;
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
        let mut names: Vec<Name> = Vec::new();
        for node in exprs.iter().flat_map(Expr::nodes) {
            if let ExprKind::Name(name) = &node.kind
                && names.iter().all(|own| own.text != *name)
            {
                names.push(Name::new(py, name)?);
            }
        }
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

    fn derived(&self, py: Python<'_>, own: Derived) -> PyResult<Self> {
        let operands = self.operand_names(py)?;
        if let Some(name) = own.wrt.iter().find(|name| !operands.contains(name)) {
            let operands = operands.join(", ");
            let what = format!("wrt: the expression has no operand `{name}`, it has {operands}");
            return Err(PyValueError::new_err(what));
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
                return Err(PyValueError::new_err(what));
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

    fn nothing<'py>(&self) -> Objects<'py> {
        vec![None; self.names.len()]
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

    fn run<'py>(
        &self,
        py: Python<'py>,
        options: Options<'_, 'py>,
        objects: &[Option<Bound<'py, PyAny>>],
        wanted: &Wanted<'_, '_, 'py>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let Some(mut read) = read(&self.names, objects)? else {
            return self.lazy(py, options, objects);
        };
        let rule = Rule::read(options.rule)?;
        let casting = dtypes::casting(options.casting)?;
        let dtype = options.dtype.filter(|dtype| !dtype.is_none()).map(dtypes::read).transpose()?;
        if dtype.is_some() && !self.derived.is_empty() {
            let what = "dtype: gradients have the types of their operands";
            return Err(PyTypeError::new_err(what));
        }
        self.strengthen(&mut read)?;
        let gradients = read.split_off(self.own_names());
        let (mut numbers, mut parts) = (Vec::new(), Vec::new());
        let (mut given, mut operands) = (Vec::new(), Vec::new());
        for (at, operand) in read.into_iter().enumerate() {
            parts.push(operand.as_ref().map_or(Part::Absent, |operand| operand.is().into()));
            match operand {
                Some(Operand::Number(number)) => {
                    numbers.push((self.names[at].text.as_str(), number));
                }
                Some(operand) => {
                    given.push(at);
                    operands.push(operand);
                }
                None => {}
            }
        }
        let bound: Vec<Expr>;
        let exprs = if numbers.is_empty() {
            &self.exprs
        } else {
            bound = self.exprs.iter().map(|expr| expr.with_numbers(&numbers)).collect();
            &bound
        };
        let positional = rule.clone().positional()?;
        let own_views = views(&operands)?;
        let name = |at: usize| self.names[at].text.as_str();
        let told: Vec<(&str, DType, &[usize])> =
            given.iter().zip(&own_views).map(|(&at, v)| (name(at), v.dtype(), v.shape())).collect();
        let fail = |error: ProgramError| {
            if let ProgramErrorKind::NotOneNumber { shape } = &error.kind {
                return PyValueError::new_err(format!(
                    "the result is {}, which is not one number: reduce it, as by sum(...), or name an operand that is its \
                     gradient by gradient=...",
                    simulcast_core::tuple(shape)
                ));
            }
            if error.span.is_empty() {
                return failed(py, &error);
            }
            let whole = |range: &Range<usize>| {
                let root = |expr: &&Expr| {
                    expr.nodes().last().is_some_and(|root| {
                        root.span.start <= range.start && range.end <= root.span.end
                    })
                };
                exprs.iter().find(root).or(exprs.first())
            };
            let Some(expr) = whole(&error.span) else {
                return PyValueError::new_err(error.to_string());
            };
            let shown = Diagnostic::new(expr, error, &told, positional.as_rule(), Promotion::Numpy);
            diagnosed(py, expr.text(), &shown)
        };
        let typed: Vec<(&str, DType)> =
            told.iter().map(|(name, dtype, _)| (*name, *dtype)).collect();
        let compiled = self.find(exprs, &numbers, &typed, (parts, dtype), &fail)?;
        for &natural in compiled.natural.iter().filter(|_| dtype.is_some()) {
            check_cast(natural, dtype, casting)?;
        }
        let names: Vec<&str> = numbers.iter().map(|(name, _)| *name).collect();
        for (whole, expr) in self.exprs.iter().zip(exprs) {
            observe(py, &rule, [whole, expr], &told, &names)?;
        }
        for exponents in &compiled.exponents {
            let run = exponents.bind(&own_views).rule(positional.as_rule());
            check_powers(&run.compute().map_err(fail)?.view())?;
        }
        let gradients = self.settled_gradients(py, gradients, &compiled)?;
        let gradients = views(&gradients)?;
        let all: Vec<(usize, &AnyView<'_>)> = given
            .iter()
            .copied()
            .zip(&own_views)
            .chain((self.own_names()..).zip(&gradients))
            .collect();
        let find =
            |at: &usize| all.iter().find(|(own, _)| own == at).map(|(_, view)| (*view).clone());
        let ordered: Vec<AnyView<'_>> = compiled.operands.iter().filter_map(find).collect();
        let run = compiled.program.bind(&ordered).rule(positional.as_rule());
        match wanted {
            Wanted::Passes => {
                let shapes = run.pass_shapes().map_err(fail)?;
                let shapes: Vec<_> =
                    shapes.iter().map(|shape| PyTuple::new(py, shape)).collect::<PyResult<_>>()?;
                Ok(PyList::new(py, shapes)?.into_any())
            }
            Wanted::Results(targets) => {
                let text = text_dtypes(&operands);
                let (dtypes, threads) = (compiled.program.dtypes(), targets.first());
                let run = match threads.and_then(|target| target.threads) {
                    Some(threads) => run.threads(threads),
                    None => run,
                };
                let results = fill_all(py, run, dtypes, targets, &ordered, &text, &fail)?;
                self.shaped(py, self.derived.len(), results)
            }
        }
    }

    /// Numbers whose gradients are wanted get the type of the result, as that of what they meet.
    fn strengthen(&self, read: &mut [Option<Operand<'_>>]) -> PyResult<()> {
        let is_wanted =
            |name: &Name| self.derived.iter().any(|derived| derived.wrt.contains(&name.text));
        let mut natural = None;
        for at in 0..self.own_names() {
            if !matches!(&read[at], Some(Operand::Number(_))) || !is_wanted(&self.names[at]) {
                continue;
            }
            let dtype = match natural {
                Some(dtype) => dtype,
                None => *natural.insert(self.natural(read)),
            };
            if let Some(Operand::Number(number)) = &read[at] {
                let number = literal_as(*number, dtype).map_err(|error| mistyped(&error))?;
                read[at] = Some(Operand::scalar(&number)?);
            }
        }
        Ok(())
    }

    /// The type of the first result for some operands, as a float.
    fn natural(&self, read: &[Option<Operand<'_>>]) -> DType {
        let (mut numbers, mut typed) = (Vec::new(), Vec::new());
        for (Name { text, .. }, operand) in self.names.iter().zip(read) {
            match operand.as_ref().map(Operand::is) {
                Some(OperandType::Literal(number)) => numbers.push((text.as_str(), number)),
                Some(OperandType::Array(dtype)) => typed.push((text.as_str(), dtype)),
                None => {}
            }
        }
        let of = |expr: &Expr| expr.with_numbers(&numbers).compile(&typed, Promotion::Numpy);
        let first = self.exprs.first().and_then(|expr| of(expr).ok());
        first.map(|program| program.dtype()).filter(|dtype| dtype.is_float()).unwrap_or(DType::F64)
    }

    /// Gradients of results, in the results' types.
    fn settled_gradients<'py>(
        &self,
        py: Python<'py>,
        given: Vec<Option<Operand<'py>>>,
        compiled: &Compiled,
    ) -> PyResult<Vec<Operand<'py>>> {
        let first = self.own_names();
        let mut settled = Vec::with_capacity(given.len());
        for (at, gradient) in given.into_iter().enumerate() {
            let name = &self.names[first + at].text;
            let place = compiled.operands.iter().position(|&own| own == first + at);
            let dtype = place.and_then(|place| compiled.program.operands().get(place));
            let dtype = dtype.map_or(DType::F64, |operand| operand.dtype);
            settled.push(match gradient {
                None => {
                    let what = format!("`{name}`, the gradient of a result, is not given");
                    return Err(PyTypeError::new_err(what));
                }
                Some(Operand::Number(number)) => {
                    let number = literal_as(number, dtype).map_err(|error| mistyped(&error))?;
                    Operand::scalar(&number)?
                }
                Some(Operand::Array(array, order))
                    if dtypes::of_descriptor(&array.dtype()).is_some_and(|own| {
                        own != dtype && can_cast(own, dtype, Casting::SameKind)
                    }) =>
                {
                    let array = array.call_method1("astype", (dtypes::object(py, dtype)?,))?;
                    Operand::Array(array.cast_into::<PyUntypedArray>()?, order)
                }
                Some(gradient) => gradient,
            });
        }
        Ok(settled)
    }

    /// The program for these types, made where it is not kept.
    fn find(
        &self,
        exprs: &[Expr],
        numbers: &[(&str, Literal)],
        typed: &[(&str, DType)],
        (parts, dtype): (Vec<Part>, Option<DType>),
        fail: &impl Fn(ProgramError) -> PyErr,
    ) -> PyResult<Arc<Compiled>> {
        let kept = || self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let known = kept()
            .iter()
            .find(|own| own.parts == parts && own.dtype == dtype)
            .map(|own| Arc::clone(&own.compiled));
        if let Some(known) = known {
            return Ok(known);
        }
        let mut builder = Builder::new(Promotion::Numpy);
        builder.fast_math(self.fast_math);
        let (mut roots, mut natural, mut powers) = (Vec::new(), Vec::new(), Vec::new());
        for expr in exprs {
            let mut root = expr.lower(&mut builder, typed).map_err(fail)?;
            let own = match builder.type_of(root) {
                OperandType::Array(own) => own,
                // A number on its own: what NumPy makes of it.
                OperandType::Literal(_) => {
                    expr.compile(typed, Promotion::Numpy).map_err(fail)?.dtype()
                }
            };
            if let Some(dtype) = dtype
                && dtype != own
                && own != DType::String
            {
                root = builder.cast(root, dtype).map_err(|error| fail(error.into()))?;
            }
            roots.push(root);
            natural.push(own);
            powers.extend(exponents(expr, numbers, typed));
        }
        let mut program = builder.finish_all(&roots).map_err(fail)?;
        // The program has names of its own for gradients.
        let own_names = self.names.iter().take(self.own_names());
        let mut all: Vec<(usize, String)> =
            own_names.map(|name| name.text.clone()).enumerate().collect();
        let mut next = all.len();
        for derived in &self.derived {
            let same = |name: &String| {
                let own = &self.names;
                all.iter().find(|(at, _)| own[*at].text == *name).map(|(_, own)| own.as_str())
            };
            let wrt: Vec<&str> =
                derived.wrt.iter().map(|name| same(name).unwrap_or(name)).collect();
            let before = program.operands().len();
            program = match (derived.gradients.is_empty(), derived.values) {
                (true, false) => program.gradient(&wrt),
                (true, true) => program.value_and_grad(&wrt),
                (false, false) => program.pullback(&wrt),
                (false, true) => program.value_and_pullback(&wrt),
            }
            .map_err(fail)?;
            for operand in &program.operands()[before..] {
                all.push((next, operand.name.clone()));
                next += 1;
            }
        }
        let place = |name: &str| all.iter().find(|(_, own)| own == name).map(|(at, _)| *at);
        let operands = program.operands().iter();
        let operands = operands.map(|operand| place(&operand.name).unwrap_or(usize::MAX)).collect();
        let compiled = Arc::new(Compiled { program, operands, natural, exponents: powers });
        let mut kept = kept();
        if kept.len() >= KEPT {
            kept.clear();
        }
        kept.push(Kept { parts, dtype, compiled: Arc::clone(&compiled) });
        Ok(compiled)
    }

    /// Each expression of Dask arrays.
    fn lazy<'py>(
        &self,
        py: Python<'py>,
        options: Options<'_, 'py>,
        objects: &[Option<Bound<'py, PyAny>>],
    ) -> PyResult<Bound<'py, PyAny>> {
        if !self.derived.is_empty() {
            return Err(PyTypeError::new_err(
                "gradients are computed of arrays in memory, not of Dask's: compute() them, or differentiate within the \
                 function that runs on each block",
            ));
        }
        let call = py.import("simulcast._labels")?.getattr("evaluate")?;
        let mut results = Vec::with_capacity(self.exprs.len());
        for text in self.texts() {
            let own = compiled(&PyString::new(py, &text), self.fast_math)?;
            let given = PyDict::new(py);
            for name in own.get().operands(py)? {
                let name = name.cast_into::<PyString>()?;
                let text = name.to_str()?;
                let is_it = |own: &Name| own.key.bind(py).to_str().is_ok_and(|own| own == text);
                let at = self.names.iter().position(is_it);
                if let Some(object) = at.and_then(|at| objects[at].as_ref()) {
                    given.set_item(&name, object)?;
                }
            }
            results.push(call.call((own, given), Some(&options.keywords(py)?))?);
        }
        self.shaped(py, 0, results)
    }
}

fn check_cast(natural: DType, dtype: Option<DType>, casting: Casting) -> PyResult<()> {
    match dtype {
        Some(dtype) if !can_cast(natural, dtype, casting) => Err(PyTypeError::new_err(format!(
            "a result is {natural}, which is not cast to {dtype} under casting {:?}",
            name_of(casting)
        ))),
        _ => Ok(()),
    }
}

/// Calls it with what is given by name: options, and its operands.
pub(crate) fn call<'py>(
    this: &Bound<'py, JointExpression>,
    given: impl Iterator<Item = (Bound<'py, PyAny>, Bound<'py, PyAny>)>,
) -> PyResult<Bound<'py, PyAny>> {
    let own = this.get();
    let (mut objects, mut options) = (own.nothing(), [const { None }; OPTIONS.len()]);
    for (key, object) in given {
        let key = key.cast_into::<PyString>()?;
        let text = key.to_str()?;
        match OPTIONS.iter().position(|option| *option == text) {
            Some(option) => options[option] = Some(object).filter(|given| !given.is_none()),
            None => put(&own.names, &mut objects, &key, object)?,
        }
    }
    let [out, .., local_dict] = &options;
    fill(&own.names, &mut objects, local_dict.as_ref())?;
    let mut outs = Vec::new();
    out.as_ref().map_or(Ok(()), |out| flattened(out, &mut outs))?;
    let count = own.count();
    if !outs.is_empty() && outs.len() != count {
        let what = format!("out: there are {count} results, but {} arrays", outs.len());
        return Err(PyValueError::new_err(what));
    }
    with_options(&options, |options| {
        let target = |at: usize| Target::new(outs.get(at), options.casting, options.threads);
        let targets = (0..count).map(target).collect::<PyResult<Vec<_>>>()?;
        let options = Options {
            out: options.out.filter(|_| outs.iter().any(|out| !out.is_none())),
            ..options
        };
        own.run(this.py(), options, &objects, &Wanted::Results(&targets))
    })
}

/// The arrays of `out`, in the order of the results.
fn flattened<'py>(out: &Bound<'py, PyAny>, all: &mut Vec<Bound<'py, PyAny>>) -> PyResult<()> {
    if out.is_instance_of::<PyTuple>() || out.is_instance_of::<PyList>() {
        return out.try_iter()?.try_for_each(|out| flattened(&out?, all));
    }
    all.push(out.clone());
    Ok(())
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
