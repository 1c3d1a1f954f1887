//! A call of several expressions or gradients: their program for the operands' types, and where its results go.

use std::sync::{Arc, PoisonError};

use numpy::{PyUntypedArray, PyUntypedArrayMethods as _};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};
use simulcast::program::{Builder, Diagnostic, Expr, ProgramErrorKind};
use simulcast::types::{Casting, Literal, OperandType, Promotion, can_cast, literal_as};
use simulcast::{AnyView, DType, JointProgram, ProgramError, TypedProgram};
use simulcast_cuda::JointDeviceProgram;
use simulcast_explain::terminal_safe;

use super::JointExpression;
use crate::cuda;
use crate::dtypes;
use crate::errors::{diagnosed, failed, mistyped};
use crate::expressions::{compiled, observe};
use crate::functions::{Options, check_powers, name_of, text_dtypes};
use crate::given::{Given, Name, read};
use crate::operands::{Operand, views};
use crate::programs::{KEPT, Part, exponents};
use crate::results::{Target, fill_all, overlapping};
use crate::rules::Rule;

/// A program, and what else has to be looked at before it runs.
struct Compiled {
    program: JointProgram,
    /// For each of the program's operands, the name that it stands for.
    operands: Vec<usize>,
    /// The types of the results, before they are cast.
    natural: Vec<DType>,
    /// The exponents of powers of integers, which must not be negative.
    exponents: Vec<TypedProgram>,
    /// The program on devices.
    on_devices: cuda::Programs<JointDeviceProgram>,
}

/// A program, and what it was made for.
pub(super) struct Kept {
    parts: Vec<Part>,
    dtype: Option<DType>,
    compiled: Arc<Compiled>,
}

/// What is asked for.
pub(super) enum Wanted<'t, 'py> {
    /// The results, in arrays where they are given.
    Results(&'t [Bound<'py, PyAny>]),
    /// The shapes of its passes.
    Passes,
}

impl JointExpression {
    pub(super) fn run<'py>(
        &self,
        py: Python<'py>,
        options: Options<'_, 'py>,
        objects: &[Option<Bound<'py, PyAny>>],
        wanted: &Wanted<'_, 'py>,
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
        let name = |at: usize| self.names[at].text.as_str();
        let shapes: Vec<Vec<usize>> = operands.iter().map(|own| own.shape().to_vec()).collect();
        let told: Vec<(&str, DType, &[usize])> = given
            .iter()
            .zip(operands.iter().zip(&shapes))
            .map(|(&at, (own, shape))| (name(at), own.dtype(), &shape[..]))
            .collect();
        let fail = |error: ProgramError| {
            if let ProgramErrorKind::NotOneNumber { shape } = &error.kind {
                return PyValueError::new_err(format!(
                    "the result is {}, which is not one number: reduce it, as by sum(...), or name an operand that is its \
                     gradient by gradient=...",
                    simulcast_core::format_shape(shape)
                ));
            }
            if error.span.is_empty() {
                return failed(py, &error);
            }
            let (rule, text) = (positional.as_rule(), exprs.first().map_or("", Expr::text));
            let what = error.to_string();
            match Diagnostic::of_several(exprs, error, &told, rule, Promotion::Numpy) {
                Some(shown) => diagnosed(py, text, &shown),
                None => PyValueError::new_err(what),
            }
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
        if let (true, Wanted::Results(outs)) =
            (cuda::is_any(operands.iter().chain(gradients.iter().flatten())), wanted)
        {
            let gradients = self.settled_gradients(py, gradients, &compiled)?;
            let mut all: Vec<Option<Operand<'py>>> = Vec::new();
            all.resize_with(self.names.len(), || None);
            let places = given.iter().copied().chain(self.own_names()..);
            for (at, operand) in places.zip(operands.into_iter().chain(gradients)) {
                all[at] = Some(operand);
            }
            let names: Vec<&str> = compiled.operands.iter().map(|&at| name(at)).collect();
            let find = |&at: &usize| all.get_mut(at).and_then(Option::take);
            let ordered: Vec<Operand<'py>> = compiled.operands.iter().filter_map(find).collect();
            let outs = outs.iter().map(|out| cuda::Out::of(out, options.casting));
            let outs = outs.collect::<PyResult<Vec<_>>>()?;
            let program = (&compiled.program, &compiled.on_devices);
            let results =
                cuda::evaluate_jointly(py, program, &positional, (&names, ordered), outs, fail)?;
            return self.shaped(py, self.derived.len(), results);
        }
        let own_views = views(&operands)?;
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
            Wanted::Results(outs) => {
                let target = |at| Target::new(outs.get(at), options.casting, options.threads);
                let targets = (0..self.count()).map(target).collect::<PyResult<Vec<_>>>()?;
                let text = text_dtypes(&operands);
                let (dtypes, threads) = (compiled.program.dtypes(), targets.first());
                let run = match threads.and_then(|target| target.threads) {
                    Some(threads) => run.threads(threads),
                    None => run,
                };
                let results = fill_all(py, run, dtypes, &targets, &ordered, &text, &fail)?;
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
                    return Err(PyTypeError::new_err(terminal_safe(&what).into_owned()));
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
        let on_devices = cuda::Programs::default();
        let compiled = Compiled { program, operands, natural, exponents: powers, on_devices };
        let compiled = Arc::new(compiled);
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
    let given = Given::read(&own.names, given)?;
    let [out, ..] = &given.options;
    let mut outs = Vec::new();
    out.as_ref().map_or(Ok(()), |out| flattened(out, &mut outs))?;
    let count = own.count();
    if !outs.is_empty() && outs.len() != count {
        let what = format!("out: there are {count} results, but {} arrays", outs.len());
        return Err(PyValueError::new_err(what));
    }
    for (second, own) in outs.iter().enumerate() {
        let same = |other: &Bound<'py, PyAny>| !own.is_none() && own.is(other);
        if let Some(first) = outs[..second].iter().position(same) {
            return Err(overlapping([first, second], "are the same array"));
        }
    }
    given.with_options(|options| {
        let options = Options {
            out: options.out.filter(|_| outs.iter().any(|out| !out.is_none())),
            ..options
        };
        own.run(this.py(), options, &given.objects, &Wanted::Results(&outs))
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
