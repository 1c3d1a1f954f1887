//! Expressions in text: what [`evaluate`](crate::fastcall) and calls of what `compile` gives compute.
//!
//! An expression is read once, and becomes a program once for the types of its operands. Numbers of
//! Python's stand in it as if they were written there.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyComplex, PyDict, PyFloat, PyList, PyString, PyTuple};
use simulcast::program::{AxisPattern, Diagnostic, Expr, ExprId, ExprKind};
use simulcast::types::{Casting, Literal, Promotion};
use simulcast::{DType, ProgramError};
use simulcast_core::Evidence;

use crate::cuda;
use crate::dense;
use crate::dtypes;
use crate::errors::diagnosed;
use crate::fastcall::call;
use crate::functions::{Options, check_powers, text_dtypes};
use crate::given::{Given, Name, is_option, names_of, none_by_place, normal, read};
use crate::joint::{self, JointExpression};
use crate::operands::{Operand, views};
use crate::policies;
use crate::programs::{self, KEPT, Programs, Source};
use crate::results::Target;
use crate::rules::Rule;

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
pub(crate) struct Expression {
    expr: Expr,
    /// Every name in it, once, those of constants too.
    pub(crate) names: Vec<Name>,
    /// Whether one of them is that of an option, which comes first.
    is_shadowed: bool,
    programs: Programs,
    /// Whether its products and sums may be rounded once rather than twice.
    #[pyo3(get)]
    fast_math: bool,
    /// Which part of the expression in its text it is, where that is not all of it.
    part: Option<Part>,
}

/// A part of an expression: one of its nodes, and those that are operands in it, with their names.
type Part = (usize, Vec<(usize, String)>);

#[pymethods]
impl Expression {
    #[new]
    #[pyo3(signature = (expr, fast_math = false, _part = None))]
    fn new(py: Python<'_>, expr: &str, fast_math: bool, _part: Option<Part>) -> PyResult<Self> {
        let expr = Expr::parse(expr)
            .map_err(|error| diagnosed(py, expr, &Diagnostic::of_text(expr, error)))?;
        Self::of(py, &expr, fast_math, _part)
    }

    /// The names of its operands, in the order in which they first appear.
    #[getter]
    pub(crate) fn operands<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let mut names: Vec<String> = Vec::new();
        for name in self.expr.operands() {
            let name = normal(py, name)?;
            if !names.contains(&name) {
                names.push(name);
            }
        }
        PyTuple::new(py, names)
    }

    // What is passed on as it comes is not copied into another dictionary.
    #[pyo3(signature = (*args, **given))]
    fn __call__<'py>(
        this: &Bound<'py, Self>,
        args: &Bound<'py, PyTuple>,
        given: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        none_by_place(args)?;
        if let Some(given) = given
            && let Some(made) =
                this.get().short(this.py(), given.len(), |key| given.get_item(key))?
        {
            return Ok(made);
        }
        call(this, given.into_iter().flatten())
    }

    fn __str__(&self) -> &str {
        self.expr.text()
    }

    fn __repr__(&self) -> String {
        let fast = if self.fast_math { ", fast_math=True" } else { "" };
        format!("simulcast.compile({:?}{fast})", self.expr.text())
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let (kind, text) = (py.get_type::<Self>(), self.expr.text());
        match &self.part {
            None => (kind, (text, self.fast_math)).into_pyobject(py),
            Some((root, operands)) => {
                let part = (*root, operands.clone());
                (kind, (text, self.fast_math, part)).into_pyobject(py)
            }
        }
    }

    /// The result's shape, for arrays of which only types and sizes count; the policy is asked.
    #[pyo3(signature = (operands, rule = None))]
    fn _shape<'py>(
        this: &Bound<'py, Self>,
        operands: &Bound<'py, PyDict>,
        rule: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let objects = Given::operands(&this.get().names, None, Some(operands.as_any()))?;
        Call::of(this, &objects, rule)?.run(None, Casting::SameKind, Wanted::Shape)
    }

    /// How it runs on these operands: its passes over memory, and how the loops of each run. `#1` is the result of the first.
    ///
    /// What is hoisted is computed at its own shape, which is smaller than the result's.
    ///
    /// >>> import numpy as np, simulcast
    /// >>> x, row = np.ones((2000, 500)), np.ones(500)
    /// >>> strategy = simulcast.compile("x + exp(sin(row))").strategy(x=x, row=row)
    /// >>> print("\n".join(line for line in strategy.splitlines() if line.startswith("#")))
    /// #1 hoisted  exp(sin(row))  float64 (500,)
    /// #2 result   x + #1         float64 (2000, 500)
    #[pyo3(signature = (*, rule = None, local_dict = None, **operands))]
    fn strategy<'py>(
        this: &Bound<'py, Self>,
        rule: Option<&Bound<'py, PyAny>>,
        local_dict: Option<&Bound<'py, PyAny>>,
        operands: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let objects = Given::operands(&this.get().names, operands, local_dict)?;
        Call::of(this, &objects, rule)?.run(None, Casting::SameKind, Wanted::Strategy)
    }

    /// The gradients of some operands, each in its operand's shape and type, as an expression of the same operands; see
    /// `simulcast.grad`.
    #[pyo3(signature = (wrt, *, gradient = None))]
    fn grad(
        &self,
        wrt: &Bound<'_, PyAny>,
        gradient: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<JointExpression> {
        self.joint(wrt.py())?.grad(wrt, gradient)
    }

    /// The value and the gradients of some operands, as an expression of the same operands; see
    /// `simulcast.value_and_grad`.
    #[pyo3(signature = (wrt, *, gradient = None))]
    fn value_and_grad(
        &self,
        wrt: &Bound<'_, PyAny>,
        gradient: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<JointExpression> {
        self.joint(wrt.py())?.value_and_grad(wrt, gradient)
    }

    /// The expression of one of its nodes, in which some others are operands by these names.
    fn _part(&self, py: Python<'_>, root: usize, operands: Vec<(usize, String)>) -> PyResult<Self> {
        if self.part.is_some() {
            return Err(PyValueError::new_err("a part of a part is a part of the whole"));
        }
        Self::of(py, &self.expr, self.fast_math, Some((root, operands)))
    }

    /// Its nodes, operands before what is computed of them: what each is, and of which it is computed.
    #[getter]
    fn _nodes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let nodes = PyList::empty(py);
        for node in self.expr.nodes() {
            let children: Vec<usize> = node.kind.children().iter().map(|id| id.index()).collect();
            let (kind, what): (&str, Bound<'py, PyAny>) = match &node.kind {
                ExprKind::Literal(literal) => ("value", python(py, *literal)?),
                ExprKind::Text(text) => ("value", PyString::new(py, text).into_any()),
                ExprKind::Name(name) => ("name", PyString::new(py, &normal(py, name)?).into_any()),
                ExprKind::Apply(op, _) => ("apply", PyString::new(py, op.name()).into_any()),
                ExprKind::Compare(_, rest) => {
                    let ops = rest.iter().map(|(op, _)| op.name());
                    ("compare", PyTuple::new(py, ops.collect::<Vec<_>>())?.into_any())
                }
                ExprKind::If(..) => ("if", py.None().into_bound(py)),
                ExprKind::Clip(..) => ("clip", py.None().into_bound(py)),
                ExprKind::Round(_, decimals) => ("round", decimals.into_pyobject(py)?.into_any()),
                ExprKind::Cast(dtype, _) => ("cast", dtypes::object(py, *dtype)?),
                ExprKind::Index(_, pattern) => {
                    // Names that Python knows, whatever the variants are called.
                    let pattern = pattern.iter().map(|axis| match axis {
                        AxisPattern::Keep => "keep",
                        AxisPattern::New => "new",
                        AxisPattern::Rest => "rest",
                    });
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

impl Expression {
    /// The same, to be differentiated.
    pub(crate) fn joint(&self, py: Python<'_>) -> PyResult<JointExpression> {
        if self.part.is_some() {
            return Err(PyValueError::new_err(
                "a part of an expression has no gradient of its own",
            ));
        }
        JointExpression::of_one(py, &self.expr, self.fast_math)
    }

    /// An expression, or a part of it.
    fn of(py: Python<'_>, whole: &Expr, fast_math: bool, part: Option<Part>) -> PyResult<Self> {
        let expr = match &part {
            None => whole.clone(),
            Some((root, operands)) => {
                let operands: Vec<(ExprId, &str)> =
                    operands.iter().map(|(id, name)| (ExprId::new(*id), name.as_str())).collect();
                let part = whole.part(ExprId::new(*root), &operands);
                part.ok_or_else(|| PyValueError::new_err("the expression has no such part"))?
            }
        };
        let names = names_of(py, std::slice::from_ref(&expr))?;
        let is_shadowed = names.iter().any(|name| is_option(&name.text));
        Ok(Self { expr, names, is_shadowed, programs: Programs::default(), fast_math, part })
    }
}

/// A literal as a number of Python's.
pub(crate) fn python(py: Python<'_>, literal: Literal) -> PyResult<Bound<'_, PyAny>> {
    Ok(match literal {
        Literal::Bool(value) => PyBool::new(py, value).to_owned().into_any(),
        Literal::Int(value) => value.into_pyobject(py)?.into_any(),
        Literal::Float(value) => PyFloat::new(py, value).into_any(),
        Literal::Complex(value) => PyComplex::from_doubles(py, value.re, value.im).into_any(),
    })
}

/// The error for a text that is no expression, for operands whose shapes are told where they have some: what it suggests was
/// checked with them.
#[cold]
pub(crate) fn explained<'py>(
    expr: &Bound<'py, PyString>,
    error: PyErr,
    operands: impl Iterator<Item = (Bound<'py, PyAny>, Bound<'py, PyAny>)>,
) -> PyErr {
    let told = |(name, object): (Bound<'py, PyAny>, Bound<'py, PyAny>)| {
        let shape = object.getattr("shape").ok()?.extract::<Vec<usize>>().ok()?;
        Some((name.extract::<String>().ok()?, shape))
    };
    let shapes: Vec<(String, Vec<usize>)> = operands.filter_map(told).collect();
    let shape_of =
        |name: &str| shapes.iter().find(|(own, _)| own == name).map(|(_, shape)| shape.as_slice());
    let Ok(text) = expr.to_str() else { return error };
    match Expr::parse(text) {
        Err(wrong) => diagnosed(expr.py(), text, &Diagnostic::of_text_with(text, wrong, shape_of)),
        Ok(_) => error,
    }
}

/// An expression to be used again; see `Expression`, and `evaluate` for `fast_math`.
///
/// A list of expressions is computed together, in as few passes over the operands as there can be; see `JointExpression`.
///
/// >>> import simulcast
/// >>> hypotenuse = simulcast.compile("sqrt(a**2 + b**2)")
/// >>> hypotenuse(a=3.0, b=[4.0, 1.25])
/// array([5.  , 3.25])
/// >>> simulcast.compile(["a + b", "a - b"])(a=3.0, b=[4.0, 1.25])
/// (array([7.  , 4.25]), array([-1.  ,  1.75]))
#[pyfunction]
#[pyo3(signature = (expr, /, *, fast_math = false))]
pub(crate) fn compile<'py>(
    expr: &Bound<'py, PyAny>,
    fast_math: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let Ok(text) = expr.cast::<PyString>() else {
        return Ok(joint::compiled_jointly(expr, fast_math)?.into_any());
    };
    let several = Expr::parse_several(text.to_str()?).is_ok_and(|several| several.len() > 1);
    if several {
        let what = "several expressions: compile takes them as a list, as in compile([\"a + b\", \"a - b\"])";
        return Err(PyValueError::new_err(what));
    }
    Ok(compiled(text, fast_math)?.into_any())
}

/// The expression of a text, which is kept.
pub(crate) fn compiled<'py>(
    expr: &Bound<'py, PyString>,
    fast_math: bool,
) -> PyResult<Bound<'py, Expression>> {
    static READ: [PyOnceLock<Py<PyDict>>; 2] = [PyOnceLock::new(), PyOnceLock::new()];
    let py = expr.py();
    // Another kind of text may be equal to what it is not.
    let exact;
    let expr = if expr.is_exact_instance_of::<PyString>() {
        expr
    } else {
        exact = PyString::new(py, expr.to_str()?);
        &exact
    };
    let read = READ[usize::from(fast_math)].get_or_init(py, || PyDict::new(py).unbind()).bind(py);
    if let Some(known) = read.get_item(expr)? {
        return Ok(known.cast_into()?);
    }
    let made = Bound::new(py, Expression::new(py, expr.to_str()?, fast_math, None)?)?;
    if read.len() >= KEPT {
        read.clear();
    }
    read.set_item(expr, &made)?;
    Ok(made)
}

/// The value of an expression for some operands.
pub(crate) fn value<'py>(
    expression: &Bound<'py, Expression>,
    options: Options<'_, 'py>,
    objects: &[Option<Bound<'py, PyAny>>],
) -> PyResult<Bound<'py, PyAny>> {
    let (py, own) = (expression.py(), expression.get());
    if let Some(made) = dense::evaluate(py, &own.programs, objects, options)? {
        return Ok(made);
    }
    let Some(operands) = read(&own.names, objects)? else {
        let call = py.import("simulcast._labels")?.getattr("evaluate")?;
        let given = PyDict::new(py);
        for (name, object) in own.names.iter().zip(objects) {
            object.as_ref().map_or(Ok(()), |object| given.set_item(&name.key, object))?;
        }
        return call.call((expression, given), Some(&options.keywords(py)?));
    };
    let casting = dtypes::casting(options.casting)?;
    if cuda::is_any(operands.iter().flatten()) {
        let out = cuda::Out::read(&options)?;
        let dtype = options.dtype.filter(|dtype| !dtype.is_none()).map(dtypes::read).transpose()?;
        let dtype = dtype.or_else(|| out.as_ref().map(cuda::Out::dtype));
        let call = Call { own, py, operands, rule: Rule::read(options.rule)? };
        return call.run(dtype, casting, Wanted::OnDevice(out));
    }
    let target = Target::new(options.out, options.casting, options.threads)?;
    let (dtype, asked) = match options.dtype.filter(|dtype| !dtype.is_none()) {
        Some(dtype) => (Some(dtypes::read(dtype)?), "dtype"),
        None => (target.dtype().filter(|&own| own != DType::String), "out"),
    };
    let call = Call { own, py, operands, rule: Rule::read(options.rule)? };
    call.run(dtype, casting, Wanted::Result { target: &target, asked })
}

impl Expression {
    /// The value for so many operands, where that is one for each of its names and it can go the short
    /// way: to look for names is faster than to look at what there is.
    #[inline]
    pub(crate) fn short<'py>(
        &self,
        py: Python<'py>,
        given: usize,
        find: impl Fn(&Bound<'py, PyString>) -> PyResult<Option<Bound<'py, PyAny>>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let mut objects = [const { None }; dense::FEW];
        if self.is_shadowed || given > dense::FEW || given != self.names.len() {
            return Ok(None);
        }
        for (object, name) in objects.iter_mut().zip(&self.names) {
            *object = find(name.key.bind(py))?;
            if object.is_none() {
                return Ok(None);
            }
        }
        dense::evaluate(py, &self.programs, &objects[..given], Options::default())
    }
}

/// An expression with its operands.
struct Call<'a, 'py> {
    own: &'a Expression,
    py: Python<'py>,
    /// For each of its names, where one is given.
    operands: Vec<Option<Operand<'py>>>,
    rule: Rule,
}

/// What is asked of an expression with its operands.
enum Wanted<'t, 'py> {
    /// The result, in a target; and the argument that asks for its type, where one does.
    Result {
        target: &'t Target<'t, 'py>,
        asked: &'static str,
    },
    /// The result of operands on a device, in an array there where one is given.
    OnDevice(Option<cuda::Out<'py>>),
    Shape,
    /// Its passes over memory, as text.
    Strategy,
}

impl Wanted<'_, '_> {
    /// The argument that asks for the type of the result, where one does.
    const fn asked(&self) -> &'static str {
        match self {
            Self::Result { asked, .. } => asked,
            Self::OnDevice(_) | Self::Shape | Self::Strategy => "dtype",
        }
    }
}

impl<'a, 'py> Call<'a, 'py> {
    /// On arrays in memory.
    fn of(
        this: &'a Bound<'py, Expression>,
        objects: &[Option<Bound<'py, PyAny>>],
        rule: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Self> {
        let operands = read(&this.get().names, objects)?;
        let operands =
            operands.ok_or_else(|| PyTypeError::new_err("arrays in memory are needed"))?;
        Ok(Self { own: this.get(), py: this.py(), operands, rule: Rule::read(rule)? })
    }

    fn run(
        mut self,
        dtype: Option<DType>,
        casting: Casting,
        wanted: Wanted<'_, 'py>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (py, own) = (self.py, self.own);
        let (mut numbers, mut names) = (Vec::new(), Vec::new());
        let (mut parts, mut operands) = (Vec::new(), Vec::new());
        for (Name { text, .. }, operand) in own.names.iter().zip(std::mem::take(&mut self.operands))
        {
            parts.push(
                operand.as_ref().map_or(programs::Part::Absent, |operand| operand.is().into()),
            );
            match operand {
                Some(Operand::Number(number)) => numbers.push((text.as_str(), number)),
                Some(operand) => {
                    names.push(text.as_str());
                    operands.push(operand);
                }
                None => {}
            }
        }
        let bound;
        let expr = if numbers.is_empty() {
            &own.expr
        } else {
            bound = own.expr.with_numbers(&numbers);
            &bound
        };
        let rule = self.rule.clone().positional()?;
        let shapes: Vec<Vec<usize>> = operands.iter().map(|own| own.shape().to_vec()).collect();
        let told: Vec<(&str, DType, &[usize])> = names
            .iter()
            .zip(operands.iter().zip(&shapes))
            .map(|(name, (own, shape))| (*name, own.dtype(), &shape[..]))
            .collect();
        let fail = |error: ProgramError| {
            let shown = Diagnostic::new(expr, error, &told, rule.as_rule(), Promotion::Numpy);
            diagnosed(py, expr.text(), &shown)
        };
        let typed: Vec<(&str, DType)> =
            told.iter().map(|(name, dtype, _)| (*name, *dtype)).collect();
        let fast_math = own.fast_math;
        let source = Source { expr, numbers: &numbers, typed: &typed, fast_math };
        let compiled = own.programs.find(&source, parts, dtype, casting, wanted.asked(), &fail)?;
        let given: Vec<&str> = numbers.iter().map(|(name, _)| *name).collect();
        observe(py, &self.rule, [&own.expr, expr], &told, &given)?;
        let program = &compiled.program;
        let wanted = match wanted {
            Wanted::OnDevice(out) => {
                let program = (program, &compiled.on_devices);
                return cuda::evaluate(py, program, &rule, (&names, operands), out, fail);
            }
            wanted => wanted,
        };
        let views = views(&operands)?;
        let run = program.bind(&views).rule(rule.as_rule());
        let target = match wanted {
            Wanted::Result { target, .. } => target,
            Wanted::OnDevice(_) | Wanted::Shape => {
                return Ok(PyTuple::new(py, run.shape().map_err(fail)?)?.into_any());
            }
            Wanted::Strategy => {
                let strategy = run.strategy().map_err(fail)?;
                return Ok(PyString::new(py, &strategy.to_string()).into_any());
            }
        };
        for exponents in &compiled.exponents {
            let made = exponents.bind(&views).rule(rule.as_rule()).compute().map_err(fail)?;
            check_powers(&made.view())?;
        }
        if program.dtype() == DType::String {
            let made = run.compute().map_err(fail)?;
            return target.fill_text(py, &made, &text_dtypes(&operands), None);
        }
        target.fill(py, run, program.dtype(), &views, || run.shape().map_err(fail), fail)
    }
}

/// Asks the policy of every operation in the text, where someone may care.
///
/// `whole` is the expression before numbers stood in it.
pub(crate) fn observe(
    py: Python<'_>,
    rule: &Rule,
    [whole, expr]: [&Expr; 2],
    told: &[(&str, DType, &[usize])],
    numbers: &[&str],
) -> PyResult<()> {
    // A column that the expression makes itself, by an index or a reduction, is meant; by default only one
    // that an operand has can be suspicious.
    let has_ones = told.iter().any(|(.., shape)| shape.len() > 1 && shape.contains(&1));
    if !(policies::is_active() || has_ones) {
        return Ok(());
    }
    let makes_ones = |kind: &ExprKind| match kind {
        ExprKind::Index(_, axes) => axes.contains(&AxisPattern::New),
        ExprKind::Reduce { keepdims, .. } => *keepdims,
        _ => false,
    };
    let of = |name: &str| told.iter().find(|(own, ..)| *own == name).map(|(.., shape)| *shape);
    let positional = rule.clone().positional()?;
    let shapes = expr.shapes(positional.as_rule(), of);
    // The whole expression is one number, so every result in it was reduced to that.
    let is_number = |own: &Option<Vec<usize>>| {
        own.as_ref().is_some_and(|shape| shape.iter().product::<usize>() == 1)
    };
    let reduced = shapes.len() == expr.nodes().len() && shapes.last().is_some_and(is_number);
    let mut made: Vec<bool> = Vec::with_capacity(shapes.len());
    // What does not broadcast has no shape, and is an error later.
    for node in expr.nodes().iter().take(shapes.len()) {
        let children = node.kind.children();
        let deliberate = children.iter().any(|id| made[id.index()]);
        let folds = matches!(node.kind, ExprKind::Reduce { .. });
        made.push(makes_ones(&node.kind) || (deliberate && !folds));
        let own = children.iter().filter_map(|id| {
            let name = expr.written(expr.node(*id)?);
            // A number that was given is an operand, one in the text is not.
            let given = matches!(&whole.node(*id)?.kind,
                ExprKind::Name(name) if numbers.contains(&name.as_str()));
            let number = given.then_some(&[][..]);
            Some((shapes.get(id.index())?.as_deref().or(number)?, name))
        });
        let (own, names): (Vec<&[usize]>, Vec<String>) = own.unzip();
        if own.len() > 1 && policies::is_asked(&own) {
            let named = Some(names);
            let evidence = Evidence { reduced, deliberate, ..Evidence::default() };
            policies::observe_named(py, "evaluate", rule, &own, named, evidence)?;
        }
    }
    Ok(())
}
