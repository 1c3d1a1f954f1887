//! NumPy's functions by their names: one call of the engine's operations each.
//!
//! Plain arrays go straight to the program that is kept for their types, small ones by [`dense`]. Whatever else comes (numbers
//! of Python's, lists, text, arrays that cannot be read as they lie, other rules) is read first, and
//! then takes the same way; arrays with labels and Dask's are handed to `simulcast/_labels.py` and `_dask.py`.

use ndarray::Zip;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use simulcast::types::{
    Casting, Literal, OperandType, Promotion, can_cast, literal_as, literal_operand, signature,
};
use simulcast::{AnyView, Apply as _, DType, DTypeKind, Op, TypedProgram};
use simulcast_core::{OwnedRule, resolve, resolve_into};

use crate::arrays::{AXES, plain, scalar};
use crate::cuda;
use crate::dense;
use crate::dtypes;
use crate::errors::{failed, mistyped, refused};
use crate::expressions::python;
use crate::operands::{ARGUMENTS, Operand, Order, view, views};
use crate::policies;
use crate::results::Target;
use crate::rules::Rule;
use crate::threads::Threads;

/// What every function takes besides its operands.
#[derive(Clone, Copy, Default)]
pub(crate) struct Options<'a, 'py> {
    pub(crate) out: Option<&'a Bound<'py, PyAny>>,
    pub(crate) casting: Option<&'a str>,
    pub(crate) dtype: Option<&'a Bound<'py, PyAny>>,
    pub(crate) rule: Option<&'a Bound<'py, PyAny>>,
    pub(crate) threads: Option<Threads>,
}

impl<'py> Options<'_, 'py> {
    /// As keywords, for a call in Python.
    pub(crate) fn keywords(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let keywords = PyDict::new(py);
        if self.out.is_some_and(|out| !out.is_none()) {
            let what =
                "argument 'out' goes with arrays in memory, not with Dask's, and not with labels";
            return Err(PyTypeError::new_err(what));
        }
        keywords.set_item("casting", self.casting.unwrap_or("same_kind"))?;
        keywords.set_item("dtype", self.dtype)?;
        keywords.set_item("rule", Rule::read(self.rule)?)?;
        keywords.set_item("threads", self.threads.map(Threads::get))?;
        Ok(keywords)
    }
}

/// An operation on some objects.
#[inline]
pub(crate) fn apply<'py, const N: usize>(
    op: Op,
    args: [&Bound<'py, PyAny>; N],
    options: Options<'_, 'py>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = args[0].py();
    let scalars = args.map(scalar);
    let args: [_; N] = std::array::from_fn(|n| scalars[n].as_ref().unwrap_or(args[n]));
    if let Some(made) = dense::apply(op, args, options)? {
        return Ok(made);
    }
    let seen = args.map(|object| plain(object).and_then(view));
    let Options { casting, dtype, rule, .. } = &options;
    let plainly = casting.is_none() && dtype.is_none() && rule.is_none();
    if !plainly || seen.iter().any(Option::is_none) {
        return apply_read(op, &args, options);
    }
    let operands = seen.map(|view| view.unwrap_or_else(|| unreachable!()));
    let shapes = operands.each_ref().map(AnyView::shape);
    policies::observe(py, op.name(), &Rule::NUMPY, &shapes)?;
    let dtypes = operands.each_ref().map(AnyView::dtype);
    let program = op.program(Promotion::Numpy, &dtypes).map_err(|error| failed(py, &error))?;
    let target = Target::new(options.out, options.casting, options.threads)?;
    run(py, op, program, &operands, &target)
}

/// An operation on objects of any kind.
#[cold]
fn apply_read<'py>(
    op: Op,
    args: &[&Bound<'py, PyAny>],
    options: Options<'_, 'py>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = args[0].py();
    let named: Vec<_> = ARGUMENTS.into_iter().zip(args.iter().copied()).collect();
    let Some(mut operands) = Operand::read_all(op.name(), &named)? else {
        let call = py.import("simulcast._labels")?.getattr("apply")?;
        let args = PyTuple::new(py, args.iter().copied())?;
        return call.call((op.name(), args), Some(&options.keywords(py)?));
    };
    if cuda::is_any(&operands) {
        let dtype = options.dtype.filter(|dtype| !dtype.is_none()).map(dtypes::read).transpose()?;
        check_casts(op, &operands, dtypes::casting(options.casting)?)?;
        strengthen(op, &mut operands)?;
        settle(op, &mut operands)?;
        let op = squared(op, &operands);
        operands.truncate(op.arity());
        return cuda::apply(py, op, operands, dtype, options);
    }
    let target = Target::new(options.out, options.casting, options.threads)?;
    let casting = dtypes::casting(options.casting)?;
    let words = operands.iter().any(|operand| matches!(operand, Operand::Text(..)));
    let op = if words && op == Op::Add { Op::Concat } else { op };
    if let Some(dtype) = options.dtype.filter(|dtype| !dtype.is_none()) {
        convert(py, op, &mut operands, dtypes::read(dtype)?, casting)?;
    }
    check_casts(op, &operands, casting)?;
    strengthen(op, &mut operands)?;
    settle(op, &mut operands)?;
    let op = squared(op, &operands);
    let operands = &operands[..op.arity()];
    let laid = Laid::new(py, op.name(), operands, Rule::read(options.rule)?)?;
    let dtypes: Vec<DType> = laid.views.iter().map(AnyView::dtype).collect();
    let program = op.program(Promotion::Numpy, &dtypes).map_err(|error| failed(py, &error))?;
    if program.dtype() == DType::String {
        let made = program.run(&laid.views).map_err(|error| failed(py, &error))?;
        let like = text_dtypes(operands);
        return target.fill_text(py, &made, &like, Some(op == Op::Concat));
    }
    run(py, op, program, &laid.views, &target)
}

/// The dtypes of operands that are text.
pub(crate) fn text_dtypes<'py>(operands: &[Operand<'py>]) -> Vec<Bound<'py, PyAny>> {
    let text = operands.iter().filter_map(|operand| match operand {
        Operand::Text(_, dtype) => Some(dtype.clone()),
        _ => None,
    });
    text.collect()
}

/// Runs the program of an operation on operands that are brought together by NumPy's rule.
#[inline]
fn run<'py>(
    py: Python<'py>,
    op: Op,
    program: &TypedProgram,
    operands: &[AnyView<'_>],
    target: &Target<'_, 'py>,
) -> PyResult<Bound<'py, PyAny>> {
    // Skip the exponent check for empty operands.
    let any = operands.iter().all(|operand| !operand.is_empty());
    if op == Op::Power && any && program.dtype().is_integer() {
        check_powers(&operands[1])?;
    }
    fill(py, program, operands, target)
}

/// Runs a program that brings all of its operands together at once.
#[inline]
pub(crate) fn fill<'py>(
    py: Python<'py>,
    program: &TypedProgram,
    operands: &[AnyView<'_>],
    target: &Target<'_, 'py>,
) -> PyResult<Bound<'py, PyAny>> {
    let shape = || {
        let shapes: Vec<&[usize]> = operands.iter().map(AnyView::shape).collect();
        let mut shape = [0; AXES];
        match resolve_into(simulcast_core::Rule::Numpy, &shapes, &mut shape) {
            Ok(shape) => Ok(shape.to_vec()),
            Err(refusal) => {
                let rule = simulcast_core::Rule::Numpy;
                Err(refused(py, &simulcast::BroadcastError::new(rule, &shapes, refusal)))
            }
        }
    };
    target.fill(py, program.bind(operands), program.dtype(), operands, shape, |error| {
        failed(py, &error)
    })
}

/// Numbers among themselves have the types that NumPy gives them.
pub(crate) fn strengthen(op: Op, operands: &mut [Operand<'_>]) -> PyResult<()> {
    let values = if op == Op::Where { 1 } else { 0 };
    let weak = |operand: &Operand<'_>| matches!(operand, Operand::Number(_));
    // Integers that int64 does not hold have the type of what they are computed in.
    let large = |operand: &Operand<'_>| match operand {
        Operand::Number(Literal::Int(value)) => i64::try_from(*value).is_err(),
        _ => false,
    };
    let mut larges = operands.iter().filter(|operand| large(operand)).map(Operand::is);
    // Two different integers beyond 64 bits cannot both be represented, so they are accepted only if equal.
    let alike = match larges.next() {
        Some(first) => larges.all(|other| other == first),
        None => false,
    };
    if !operands.iter().skip(values).all(weak) || alike {
        return Ok(());
    }
    for operand in operands {
        let Operand::Number(number) = *operand else { continue };
        let own = match number {
            Literal::Bool(_) => DType::Bool,
            Literal::Int(_) => DType::I64,
            Literal::Float(_) => DType::F64,
            Literal::Complex(_) => DType::C128,
        };
        *operand = Operand::scalar(&literal_as(number, own).map_err(|error| mistyped(&error))?)?;
    }
    Ok(())
}

/// Casts operands so that the result has a type, as NumPy's `dtype=` asks for it.
pub(crate) fn convert<'py>(
    py: Python<'py>,
    op: Op,
    operands: &mut [Operand<'py>],
    to: DType,
    casting: Casting,
) -> PyResult<()> {
    let types: Vec<OperandType> = operands.iter().map(Operand::is).collect();
    let natural = signature(op, &types, Promotion::Numpy);
    if natural.as_ref().is_ok_and(|natural| natural.result == to) {
        return Ok(());
    }
    let first = usize::from(op == Op::Where);
    for operand in operands.iter_mut().skip(first) {
        let made = match (&*operand, operand.is()) {
            (_, OperandType::Array(own)) if own == to => continue,
            (Operand::Number(number), _) => match literal_as(*number, to) {
                Ok(scalar) => Operand::scalar(&scalar)?,
                Err(_) if casting == Casting::Unsafe && !matches!(number, Literal::Int(_)) => {
                    let strong =
                        py.import("numpy")?.call_method1("asarray", (python(py, *number)?,))?;
                    let cast = strong.call_method1("astype", (dtypes::object(py, to)?,))?;
                    Operand::Array(cast.cast_into()?, Order::Native)
                }
                Err(error) => return Err(mistyped(&error)),
            },
            (_, OperandType::Array(own)) if !can_cast(own, to, casting) => {
                return Err(uncast(op, own, to, casting));
            }
            (Operand::Array(array, order), _) => {
                let descriptor = dtypes::object(array.py(), to)?;
                Operand::Array(array.call_method1("astype", (descriptor,))?.cast_into()?, *order)
            }
            _ => return Err(PyTypeError::new_err(format!("`{op}` does not compute in {to} here"))),
        };
        *operand = made;
    }
    let types: Vec<OperandType> = operands.iter().map(Operand::is).collect();
    match signature(op, &types, Promotion::Numpy).map_err(|error| mistyped(&error))?.result {
        result if result == to => Ok(()),
        result => Err(PyTypeError::new_err(format!("`{op}` of {to} gives {result}, not {to}"))),
    }
}

/// Refuses operands that are cast to be computed with, where no cast is allowed: those of promotion
/// are safe, so nothing else forbids them. Numbers of Python's adopt a type, and are not cast.
pub(crate) fn check_casts(op: Op, operands: &[Operand<'_>], casting: Casting) -> PyResult<()> {
    if !matches!(casting, Casting::No | Casting::Equiv) {
        return Ok(());
    }
    let types: Vec<OperandType> = operands.iter().map(Operand::is).collect();
    let own = signature(op, &types, Promotion::Numpy).map_err(|error| mistyped(&error))?;
    // A condition is asked for its truth.
    let asked = usize::from(op == Op::Where);
    for ((given, to), operand) in types.into_iter().zip(own.args).zip(operands).skip(asked) {
        match given {
            _ if casting == Casting::No && operand.order() == Order::Swapped => {
                return Err(PyTypeError::new_err(format!(
                    "`{op}` as {to}: the bytes of an operand are in the other order, which casting \"no\" \
                     does not change"
                )));
            }
            OperandType::Array(given) if !can_cast(given, to, casting) => {
                return Err(uncast(op, given, to, casting));
            }
            _ => {}
        }
    }
    Ok(())
}

#[cold]
pub(crate) fn uncast(op: Op, own: DType, to: DType, casting: Casting) -> PyErr {
    PyTypeError::new_err(format!(
        "`{op}` as {to}: an operand is {own}, which is not cast to it under casting {:?}",
        name_of(casting)
    ))
}

pub(crate) const fn name_of(casting: Casting) -> &'static str {
    match casting {
        Casting::No => "no",
        Casting::Equiv => "equiv",
        Casting::Safe => "safe",
        Casting::SameKind => "same_kind",
        Casting::Unsafe => "unsafe",
    }
}

/// Numbers adopt their types.
pub(crate) fn settle(op: Op, operands: &mut [Operand<'_>]) -> PyResult<()> {
    if !operands.iter().any(|operand| matches!(operand, Operand::Number(_))) {
        return Ok(());
    }
    let types: Vec<OperandType> = operands.iter().map(Operand::is).collect();
    let own = signature(op, &types, Promotion::Numpy).map_err(|error| mistyped(&error))?;
    for (place, operand) in operands.iter_mut().enumerate() {
        if let Operand::Number(number) = *operand {
            let scalar = literal_operand(op, &types, place, number, own.args[place]);
            *operand = Operand::scalar(&scalar.map_err(|error| mistyped(&error))?)?;
        }
    }
    Ok(())
}

/// A power of 2 is a square, and faster: the same bits, but of complex numbers, whose squares do not overflow on the way.
fn squared(op: Op, operands: &[Operand<'_>]) -> Op {
    match (op, operands) {
        (Op::Power, [a, Operand::Scalar(dtype, bytes)]) if a.is() == OperandType::Array(*dtype) => {
            let two = literal_as(Literal::Int(2), *dtype).ok();
            let two = two.and_then(|two| Operand::scalar(&two).ok());
            match two {
                Some(Operand::Scalar(_, two)) if two == *bytes => Op::Square,
                _ => op,
            }
        }
        _ => op,
    }
}

/// NumPy refuses integers to negative powers.
pub(crate) fn check_powers(exponents: &AnyView<'_>) -> PyResult<()> {
    macro_rules! negative {
        ($($type:ty)*) => {
            false $(|| exponents.typed::<$type>().is_some_and(|own| Zip::from(own).any(|&e| e < 0)))*
        };
    }
    if exponents.dtype().kind() == DTypeKind::Signed && negative!(i8 i16 i32 i64) {
        let why = "Integers to negative integer powers are not allowed.";
        return Err(PyValueError::new_err(why));
    }
    Ok(())
}

/// Operands brought together by a rule, so that NumPy's is left.
pub(crate) struct Laid<'a> {
    pub(crate) views: Vec<AnyView<'a>>,
}

impl<'a> Laid<'a> {
    /// Lays operands, of which the policy is asked first.
    pub(crate) fn new(
        py: Python<'_>,
        function: &str,
        operands: &'a [Operand<'_>],
        rule: Rule,
    ) -> PyResult<Self> {
        let shapes: Vec<&[usize]> = operands.iter().map(Operand::shape).collect();
        let own = views(operands)?;
        if rule == Rule::NUMPY {
            policies::observe(py, function, &rule, &shapes)?;
            return Ok(Self { views: own });
        }
        // Numbers fit everywhere, but where each operand has names.
        let named = rule.is_named();
        let is_laid = |operand: &Operand<'_>| named || !matches!(operand, Operand::Scalar(..));
        let places: Vec<usize> = (0..operands.len()).filter(|&n| is_laid(&operands[n])).collect();
        let shapes: Vec<&[usize]> = places.iter().map(|&n| shapes[n]).collect();
        if shapes.len() == 1 && rule.owned.kind().arity() == Some(2) {
            return Ok(Self { views: own });
        }
        policies::observe(py, function, &rule, &shapes)?;
        let rule: OwnedRule = rule.positional()?;
        let plan = resolve(rule.as_rule(), &shapes).map_err(|error| refused(py, &error))?;
        let mut laid = own;
        for (operand, &place) in places.iter().enumerate() {
            let strides = plan.strides(operand, laid[place].strides());
            let strides = strides.map_err(|refusal| PyValueError::new_err(refusal.to_string()))?;
            // SAFETY: by the plan each stride is the view's own, on an axis of its length, or 0.
            laid[place] = unsafe { laid[place].relaid(plan.shape(), &strides) };
        }
        Ok(Self { views: laid })
    }
}
