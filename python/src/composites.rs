//! Functions of more than one operation: `clip`, and gradients.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};
use simulcast::gradient::{Laying, vjp_by, vjp_clip_by};
use simulcast::program::Builder;
use simulcast::types::{Literal, OperandType, Promotion, literal_as};
use simulcast::{AnyView, DType, Op, ProgramError, TypedProgram, compose};

use crate::cuda;
use crate::dtypes;
use crate::errors::failed;
use crate::functions::{Laid, Options, apply, check_casts, convert, fill, settle, strengthen};
use crate::interrupts::released;
use crate::operands::{Operand, views};
use crate::policies;
use crate::results::{Target, into_numpy, returned};
use crate::rules::Rule;
use crate::threads::Threads;

/// `a` within bounds: `minimum(maximum(a, a_min), a_max)`, with the bounds that are given.
///
/// An integer of Python's that no element can reach is no bound, as in NumPy.
///
/// >>> import numpy as np, simulcast
/// >>> simulcast.clip(np.array([1, 5, 9], dtype=np.uint8), 2, 300)
/// array([2, 5, 9], dtype=uint8)
#[pyfunction]
#[pyo3(
    signature = (
        a, /, a_min = None, a_max = None, out = None, *, min = None, max = None, casting = None,
        dtype = None, rule = None, threads = None
    ),
    text_signature = "(a, /, a_min=None, a_max=None, out=None, *, min=None, max=None, casting='same_kind', dtype=None, rule='numpy', threads=None)"
)]
#[expect(clippy::too_many_arguments, reason = "as many as Python gives")]
pub(crate) fn clip<'py>(
    a: &Bound<'py, PyAny>,
    a_min: Option<&Bound<'py, PyAny>>,
    a_max: Option<&Bound<'py, PyAny>>,
    out: Option<&Bound<'py, PyAny>>,
    min: Option<&Bound<'py, PyAny>>,
    max: Option<&Bound<'py, PyAny>>,
    casting: Option<&str>,
    dtype: Option<&Bound<'py, PyAny>>,
    rule: Option<&Bound<'py, PyAny>>,
    threads: Option<Threads>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = a.py();
    let options = Options { out, casting, dtype, rule, threads };
    if a_min.and(min).is_some() || a_max.and(max).is_some() {
        return Err(PyTypeError::new_err("a bound is given twice"));
    }
    let bounds = [a_min.or(min), a_max.or(max)];
    let named = [("a", Some(a)), ("a_min", bounds[0]), ("a_max", bounds[1])];
    let named: Vec<(&str, &Bound<'py, PyAny>)> =
        named.into_iter().filter_map(|(name, object)| Some((name, object?))).collect();
    let Some(mut operands) = Operand::read_all("clip", &named)? else {
        let call = py.import("simulcast._labels")?.getattr("clip")?;
        return call.call((a, bounds[0], bounds[1]), Some(&options.keywords(py)?));
    };
    let (mut low, mut high) = (bounds[0].is_some(), bounds[1].is_some());
    let a_type = operands[0].is();
    let within = |operand: &Operand<'_>, low: bool| match (operand, a_type) {
        (Operand::Number(number @ Literal::Int(value)), OperandType::Array(dtype)) => {
            let beyond = if low { *value < 0 } else { *value > 0 };
            !(dtype.is_integer() && beyond && literal_as(*number, dtype).is_err())
        }
        _ => true,
    };
    if high && !within(&operands[operands.len() - 1], false) {
        operands.pop();
        high = false;
    }
    if low && !within(&operands[1], true) {
        operands.remove(1);
        low = false;
    }
    // An operation with as many operands, and whose loops take equal types.
    let op = match operands.len() {
        1 => Op::Real,
        2 => Op::Maximum,
        _ => Op::MultiplyAdd,
    };
    if cuda::is_any(&operands) {
        if options.dtype.is_some_and(|dtype| !dtype.is_none()) {
            return Err(PyTypeError::new_err("clip on a device takes no dtype: cast its operands"));
        }
        check_casts(op, &operands, dtypes::casting(options.casting)?)?;
        strengthen(op, &mut operands)?;
        settle(op, &mut operands)?;
        let types = operands.iter().map(Operand::is).filter_map(|own| match own {
            OperandType::Array(dtype) => Some(dtype),
            OperandType::Literal(_) => None,
        });
        let types: Vec<DType> = types.collect();
        let program = clipped(&types, low, high).map_err(|error| failed(py, &error))?;
        return cuda::compute(py, "clip", (&program.0, &program.1), operands, options);
    }
    let target = Target::new(options.out, options.casting, options.threads)?;
    let casting = dtypes::casting(options.casting)?;
    if let Some(dtype) = options.dtype.filter(|dtype| !dtype.is_none()) {
        convert(py, op, &mut operands, dtypes::read(dtype)?, casting)?;
    }
    check_casts(op, &operands, casting)?;
    strengthen(op, &mut operands)?;
    settle(op, &mut operands)?;
    let laid = Laid::new(py, "clip", &operands, Rule::read(options.rule)?)?;
    let types: Vec<DType> = laid.views.iter().map(AnyView::dtype).collect();
    let program = clipped(&types, low, high).map_err(|error| failed(py, &error))?;
    fill(py, &program.0, &laid.views, &target)
}

/// The nearest number of so many decimals, or of none; ties go to the even digit.
///
/// As NumPy's: scaled by a power of ten, rounded to integers and scaled back, each step in the operand's own type.
///
/// >>> import simulcast
/// >>> simulcast.round([1.2345, -2.5, 2.675], 2)
/// array([ 1.23, -2.5 ,  2.68])
/// >>> simulcast.round([15, 25, 1234], -1)
/// array([  20,   20, 1230])
#[pyfunction]
#[pyo3(
    signature = (
        a, /, decimals = 0, out = None, *, casting = None, dtype = None, rule = None, threads = None
    ),
    text_signature = "(a, /, decimals=0, out=None, *, casting='same_kind', dtype=None, rule='numpy', threads=None)"
)]
pub(crate) fn round<'py>(
    a: &Bound<'py, PyAny>,
    decimals: i64,
    out: Option<&Bound<'py, PyAny>>,
    casting: Option<&str>,
    dtype: Option<&Bound<'py, PyAny>>,
    rule: Option<&Bound<'py, PyAny>>,
    threads: Option<Threads>,
) -> PyResult<Bound<'py, PyAny>> {
    let options = Options { out, casting, dtype, rule, threads };
    if decimals == 0 {
        return apply(Op::Round, [a], options);
    }
    let py = a.py();
    let settings = PyDict::new(py);
    settings.set_item("out", out)?;
    settings.set_item("casting", casting)?;
    settings.set_item("dtype", dtype)?;
    settings.set_item("rule", rule)?;
    settings.set_item("threads", threads.map(Threads::get))?;
    let rounded = py.import("simulcast._rounding")?.getattr("rounded")?;
    rounded.call((a, decimals), Some(&settings))
}

/// A program of `clip`, and the same on devices.
type Clipped = (TypedProgram, cuda::Programs);

/// The program of `clip` for these types, which is kept.
fn clipped(types: &[DType], low: bool, high: bool) -> Result<Arc<Clipped>, ProgramError> {
    type Key = (Vec<DType>, bool, bool);
    static KEPT: Mutex<Option<HashMap<Key, Arc<Clipped>>>> = Mutex::new(None);
    let key = (types.to_vec(), low, high);
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    let kept = kept.get_or_insert_default();
    if let Some(program) = kept.get(&key) {
        return Ok(Arc::clone(program));
    }
    let mut build = Builder::new(Promotion::Numpy);
    let named = ["A", "B", "C"].iter().zip(types);
    let args: Vec<_> = named.map(|(name, &dtype)| build.operand(name, dtype)).collect();
    let lo = args.get(1).copied().filter(|_| low);
    let hi = args.last().copied().filter(|_| high);
    let root = compose::clip(&mut build, args[0], lo, hi)?;
    let program = Arc::new((build.finish(root)?, cuda::Programs::default()));
    kept.insert(key, Arc::clone(&program));
    Ok(program)
}

/// The gradient of each operand of a function, from that of its result, in the operand's own shape.
///
/// `function` is one of this module's, or its name; `None` stands for operands that are no floats.
///
/// >>> import numpy as np, simulcast
/// >>> x, w = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([10.0, 20.0])
/// >>> simulcast.vjp("multiply", (x, w), np.ones((2, 2)))
/// (array([[10., 20.],
///        [10., 20.]]), array([4., 6.]))
#[pyfunction]
#[pyo3(
    signature = (function, operands, grad, /, *, rule = None),
    text_signature = "(function, operands, grad, /, *, rule='numpy')"
)]
pub(crate) fn vjp<'py>(
    function: &Bound<'py, PyAny>,
    operands: &Bound<'py, PyAny>,
    grad: &Bound<'py, PyAny>,
    rule: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyTuple>> {
    let py = function.py();
    if grad.is_none() {
        return Err(PyTypeError::new_err("argument 'grad' of vjp is None: there is no gradient"));
    }
    // A function that has several names knows itself by one.
    let text = function.cast::<PyString>().ok();
    let known = text.and_then(|name| py.import("simulcast").and_then(|own| own.getattr(name)).ok());
    let named = known.as_ref().unwrap_or(function).getattr("__name__");
    let named = named.or_else(|error| text.map(|name| name.clone().into_any()).ok_or(error));
    let Ok(name) = named.and_then(|name| name.extract::<String>()) else {
        let what = format!("function is one of this module, or its name, not {function}");
        return Err(PyTypeError::new_err(what));
    };
    let objects: Vec<Bound<'py, PyAny>> = operands.try_iter()?.collect::<PyResult<_>>()?;
    let rule = Rule::read(rule)?;
    let all = objects.iter().map(|object| ("operands", object)).chain([("grad", grad)]);
    let present: Vec<(&str, &Bound<'py, PyAny>)> =
        all.filter(|(_, object)| !object.is_none()).collect();
    let Some(mut read) = Operand::read_all("vjp", &present)? else {
        let call = py.import("simulcast._labels")?.getattr("vjp")?;
        let made = call.call1((name, PyTuple::new(py, &objects)?, grad, rule))?;
        return Ok(made.cast_into()?);
    };
    let mut grad = [read.pop().ok_or_else(|| PyTypeError::new_err("there is no gradient"))?];
    strengthen(Op::Negative, &mut grad)?;
    settle(Op::Negative, &mut grad)?;
    let op = match name.as_str() {
        "clip" if read.len() == 3 => Op::MultiplyAdd,
        "clip" if read.len() == 2 => Op::Maximum,
        "clip" if read.len() > 3 => {
            return Err(PyTypeError::new_err("`clip` takes an array and two bounds"));
        }
        "clip" => return Err(PyTypeError::new_err("the gradients of clip need a bound")),
        name => name
            .parse()
            .map_err(|error: simulcast::UnknownOp| PyValueError::new_err(error.to_string()))?,
    };
    if name != "clip" && read.len() != op.arity() {
        return Err(PyTypeError::new_err(format!(
            "`{name}` takes {} operands, not {}",
            op.arity(),
            read.len()
        )));
    }
    strengthen(op, &mut read)?;
    settle(op, &mut read)?;
    // Numbers fit everywhere, but where each operand has names.
    let named = rule.is_named();
    let is_number = |n: usize| !named && matches!(read[n], Operand::Scalar(..));
    let numbers = (0..read.len()).fold(0, |bits, n| bits | usize::from(is_number(n)) << n);
    let laid = (0..read.len()).filter(|&n| rule == Rule::NUMPY || !is_number(n));
    let shapes: Vec<&[usize]> = laid.map(|n| read[n].shape()).collect();
    if shapes.len() > 1 || numbers == 0 {
        policies::observe(py, &name, &rule, &shapes)?;
    }
    let rule = rule.positional()?;
    let laying = Laying { rule: rule.as_rule(), numbers };
    let low = objects.get(1).is_some_and(|own| !own.is_none());
    if cuda::is_any(read.iter().chain(&grad)) {
        let ([grad], bounds) = (grad, [low, read.len() - usize::from(low) == 2]);
        let function = match name.as_str() {
            "clip" => cuda::Differentiated::Clip(bounds),
            _ => cuda::Differentiated::Op(op),
        };
        let mut made = cuda::vjp(py, function, laying, read, grad)?;
        if name == "clip" {
            for (at, _) in bounds.iter().enumerate().filter(|(_, is_there)| !**is_there) {
                made.insert(at + 1, py.None().into_bound(py));
            }
        }
        return PyTuple::new(py, made);
    }
    let (views, grads) = (views(&read)?, views(&grad)?);
    let many = views.iter().chain(&grads).map(AnyView::len).fold(0, usize::max);
    let made = released(py, many, 0, || match name.as_str() {
        "clip" => {
            let hi = views.get(1 + usize::from(low));
            vjp_clip_by(laying, &views[0], views.get(1).filter(|_| low), hi, &grads[0])
        }
        _ => vjp_by(laying, op, &views, &grads[0]),
    })?;
    let made = made.map_err(|error| failed(py, &error))?;
    let each = |own: Option<_>| match own {
        Some(own) => into_numpy(py, own).and_then(returned),
        None => Ok(py.None().into_bound(py)),
    };
    PyTuple::new(py, made.into_iter().map(each).collect::<PyResult<Vec<_>>>()?)
}
