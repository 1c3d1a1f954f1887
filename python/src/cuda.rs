//! Arrays of `PyTorch`, `CuPy`, JAX and others on CUDA devices: computed on their device and their current stream, with
//! results that are arrays of the same library.
//!
//! A call whose operands are such arrays comes here once they are read ([`Operand::Device`]). Nothing of CUDA is
//! loaded before, and a call returns when everything is launched.

mod arrays;
mod dlpack;

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, Once, PoisonError};

use pyo3::exceptions::{PyMemoryError, PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use simulcast::gradient::{Laying, OperandGradient, vjp_clip_programs, vjp_programs};
use simulcast::program::Builder;
use simulcast::types::{OperandType, Promotion, can_cast};
use simulcast::{AnyView, DType, JointProgram, Op, ProgramError, TypedProgram};
use simulcast_core::{OwnedRule, Source, resolve};
use simulcast_cuda::{
    Device, DeviceArray, DeviceProgram, DeviceView, DeviceViewMut, Error, JointDeviceProgram,
    OnDevice as _, Stream, add_compiler_folder, copy_into, sum_into,
};

pub(crate) use self::arrays::Array;
use crate::dtypes;
use crate::errors::{self, refused};
use crate::functions::{Options, check_powers, name_of, uncast};
use crate::operands::Operand;
use crate::policies;
use crate::results::overlapping;
use crate::rules::Rule;

/// Names of operands that have none of their own.
const LETTERS: [&str; 8] = ["A", "B", "C", "D", "E", "F", "G", "H"];
/// So many numbers are kept on devices, and so many programs of functions.
const KEPT: usize = 1024;

/// The exception for an error of a device.
#[cold]
pub(crate) fn failed(py: Python<'_>, error: &Error) -> PyErr {
    match error {
        Error::Program(error) => errors::failed(py, error),
        Error::Broadcast(error) => refused(py, error),
        Error::OutOfMemory { .. } => PyMemoryError::new_err(error.to_string()),
        Error::Mistyped { .. } | Error::Text => PyTypeError::new_err(error.to_string()),
        Error::Devices { .. } | Error::RepeatedOut | Error::Layout { .. } => {
            PyValueError::new_err(error.to_string())
        }
        _ => PyRuntimeError::new_err(error.to_string()),
    }
}

/// Whether an operand lies on a device, so that all of the call is computed there.
pub(crate) fn is_any<'o, 'py: 'o>(operands: impl IntoIterator<Item = &'o Operand<'py>>) -> bool {
    operands.into_iter().any(|operand| matches!(operand, Operand::Device(_)))
}

/// One program on the devices that it ran on, under the rules that it was asked for.
pub(crate) struct Programs<P = DeviceProgram>(Mutex<Vec<Known<P>>>);

/// A rule, the number of a device, and the program for both.
type Known<P> = (OwnedRule, usize, Arc<P>);

impl<P> Default for Programs<P> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<P> Programs<P> {
    fn get(&self, device: &Device, rule: &OwnedRule, make: impl FnOnce() -> P) -> Arc<P> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = |own: &&Known<P>| own.1 == device.index() && own.0 == *rule;
        if let Some((.., own)) = known.iter().find(fits) {
            return Arc::clone(own);
        }
        let made = Arc::new(make());
        if known.len() >= 16 {
            known.clear();
        }
        known.push((rule.clone(), device.index(), Arc::clone(&made)));
        made
    }
}

/// Operands that lie on one device, and the stream that everything runs on.
struct Meeting<'py> {
    arrays: Vec<Array<'py>>,
    /// Those that `views` are of: other calls may push them out of what is kept.
    _numbers: Vec<DeviceArray>,
    views: Vec<DeviceView<'static>>,
    device: Device,
    stream: Stream,
}

impl<'py> Meeting<'py> {
    /// Brings operands together: numbers go to the device, and other streams are waited for.
    fn new(py: Python<'py>, names: &[&str], operands: Vec<Operand<'py>>) -> PyResult<Self> {
        let fail = |error: Error| failed(py, &error);
        let first = operands.iter().enumerate().find_map(|(n, operand)| match operand {
            Operand::Device(array) => Some((n, array)),
            _ => None,
        });
        let Some((main, array)) = first else {
            return Err(PyTypeError::new_err("no operand is on a device"));
        };
        let (device, stream) = (array.device.clone(), array.stream().clone());
        let name = |n: usize| names.get(n).copied().unwrap_or("an operand");
        for (n, operand) in operands.iter().enumerate() {
            match operand {
                Operand::Device(own) if own.device != device => {
                    let (own, said) = (arrays::described(own), arrays::described(array));
                    return Err(PyValueError::new_err(format!(
                        "`{}` is a {own}, and `{}` a {said}: move one of them",
                        name(n),
                        name(main)
                    )));
                }
                Operand::Device(_) => {}
                operand if operand.shape().is_empty() => {}
                _ => {
                    return Err(PyTypeError::new_err(format!(
                        "`{}` is an array in this machine's memory, and `{}` a {}: move one of them",
                        name(n),
                        name(main),
                        arrays::described(array)
                    )));
                }
            }
        }
        look_for_compiler(py);
        let (mut views, mut arrays) = (Vec::with_capacity(operands.len()), Vec::new());
        let mut numbers = Vec::new();
        for operand in operands {
            views.push(match operand {
                Operand::Device(own) => {
                    if own.stream().raw() != stream.raw() {
                        stream.wait_for(own.stream()).map_err(fail)?;
                    }
                    let view = own.view().map_err(fail)?;
                    arrays.push(*own);
                    view
                }
                operand => match operand.view() {
                    Some(own) => {
                        let (number, view) = number(&device, &own).map_err(fail)?;
                        numbers.push(number);
                        view
                    }
                    None => return Err(PyTypeError::new_err("an operand cannot be read")),
                },
            });
        }
        Ok(Self { arrays, _numbers: numbers, views, device, stream })
    }

    /// Lays the operands by a rule other than NumPy's, but for numbers, which fit everywhere.
    fn lay(&mut self, py: Python<'py>, rule: &Rule) -> PyResult<()> {
        if *rule == Rule::NUMPY {
            return Ok(());
        }
        let named = rule.is_named();
        let places: Vec<usize> =
            (0..self.views.len()).filter(|&n| named || !self.views[n].shape().is_empty()).collect();
        if places.is_empty() || places.len() == 1 && rule.owned.kind().arity() == Some(2) {
            return Ok(());
        }
        let shapes: Vec<&[usize]> = places.iter().map(|&n| self.views[n].shape()).collect();
        let rule = rule.clone().positional()?;
        let plan = resolve(rule.as_rule(), &shapes).map_err(|error| refused(py, &error))?;
        let laid: Vec<(usize, Vec<Source>)> = places
            .iter()
            .enumerate()
            .filter_map(|(operand, &n)| Some((n, plan.sources(operand).ok()?)))
            .collect();
        for (n, sources) in laid {
            self.views[n] = laid_by(&self.views[n], &sources, plan.shape())
                .map_err(|error| failed(py, &error))?;
        }
        Ok(())
    }

    /// After everything is launched: the libraries' own streams go on when it is done.
    fn done(mut self) -> Result<(), Error> {
        self.release()
    }

    fn release(&mut self) -> Result<(), Error> {
        let arrays = std::mem::take(&mut self.arrays);
        let waited = arrays
            .iter()
            .filter(|own| own.stream().raw() != self.stream.raw())
            .try_for_each(|own| own.stream().wait_for(&self.stream));
        waited.and(arrays::keep(arrays, &self.stream))
    }

    /// Runs a program, and gives its result as an array of the first operand's library, or in `out`.
    fn run(
        mut self,
        py: Python<'py>,
        program: &DeviceProgram,
        out: Option<Out<'py>>,
        fail: impl Fn(ProgramError) -> PyErr,
    ) -> PyResult<Bound<'py, PyAny>> {
        let fail = |error: Error| match error {
            Error::Program(error) => fail(error),
            error => failed(py, &error),
        };
        let dtype = program.program().dtype();
        let Some(out) = out else {
            let (mut fresh, array) = (None, self.first()?);
            let allocate = |shape: &[usize]| -> Result<u64, Failure> {
                let made = array.fresh(dtype, shape, &self.stream).map_err(Failure::Python)?;
                Ok(fresh.insert(made).address)
            };
            // SAFETY: a new array of the library's on the operands' device, contiguous as those are made, which is
            // freed in the order of the stream that its library works on, which is this one or waits for it.
            let run = unsafe { program.run_new(&self.views, &self.stream, allocate) };
            run.map_err(|error| match error {
                Failure::Python(error) => error,
                Failure::Device(error) => fail(error),
            })?;
            self.done().map_err(fail)?;
            return match fresh {
                Some(made) => made.object(py),
                None => Err(PyTypeError::new_err("there is no result")),
            };
        };
        let (array, to, casting) = (&out.array, out.array.dtype, out.casting);
        self.reach(array)?;
        let mut place = array.place()?;
        if to == dtype {
            let done = program.run_into(&self.views, &mut place, &self.stream);
            self.arrays.push(out.array);
            done.map_err(fail)?;
        } else {
            uncastable(dtype, to, casting)?;
            let made = program.run_on(&self.views, &self.stream).map_err(fail)?;
            self.arrays.push(out.array);
            self.write(py, &made, &mut place)?;
        }
        self.done().map_err(fail)?;
        Ok(out.object)
    }

    /// Checks that a place for results is on this device, and waits for its stream.
    fn reach(&self, array: &Array<'py>) -> PyResult<()> {
        if array.device != self.device {
            let (own, other) = (arrays::described(array), arrays::described(self.first()?));
            return Err(PyValueError::new_err(format!(
                "`out` is a {own}, and the operands are a {other}: move one of them"
            )));
        }
        if array.stream().raw() != self.stream.raw() {
            let waited = self.stream.wait_for(array.stream());
            waited.map_err(|error| failed(array.object.py(), &error))?;
        }
        Ok(())
    }

    /// Writes a result to a place, whose type it is cast to.
    fn write(
        &self,
        py: Python<'py>,
        made: &DeviceArray,
        place: &mut DeviceViewMut<'_>,
    ) -> PyResult<()> {
        let (from, to) = (made.dtype(), place.dtype());
        let written = if from == to {
            copy_into(&made.view(), place, &self.stream)
        } else {
            let cast = cast(from, to).map_err(|error| errors::failed(py, &error))?;
            cast.on_device(&self.device).run_into(&[made.view()], place, &self.stream)
        };
        written.map_err(|error| failed(py, &error))
    }

    /// The first array, whose library makes the results.
    fn first(&self) -> PyResult<&Array<'py>> {
        self.arrays.first().ok_or_else(|| PyTypeError::new_err("no operand is on a device"))
    }
}

/// Refuses results that are not cast to the type of their place.
fn uncastable(from: DType, to: DType, casting: simulcast::types::Casting) -> PyResult<()> {
    if can_cast(from, to, casting) {
        return Ok(());
    }
    Err(PyTypeError::new_err(format!(
        "the result is {from}, which is not cast to out's {to} under casting {:?}",
        name_of(casting)
    )))
}

impl Drop for Meeting<'_> {
    /// Where a call ends with an error, what it launched before still uses the operands.
    fn drop(&mut self) {
        if !self.arrays.is_empty() {
            // The call's own error is the one that is told.
            let _failed = self.release();
        }
    }
}

/// Folders where packages of Python's have NVRTC: `nvidia/cu13/lib`, `nvidia/cuda_nvrtc/lib`.
fn look_for_compiler(py: Python<'_>) {
    static LOOKED: Once = Once::new();
    LOOKED.call_once(|| {
        let paths = py.import("sys").and_then(|sys| sys.getattr("path"));
        let paths: Vec<PathBuf> = paths.and_then(|own| own.extract()).unwrap_or_default();
        for path in paths {
            let packages = std::fs::read_dir(path.join("nvidia")).into_iter().flatten().flatten();
            for package in packages {
                for folder in ["lib", "bin"].map(|own| package.path().join(own)) {
                    if folder.is_dir() {
                        add_compiler_folder(&folder);
                    }
                }
            }
        }
    });
}

/// An error of the device, or one that Python raised.
enum Failure {
    Python(PyErr),
    Device(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Device(error)
    }
}

/// A view as a plan lays it.
fn laid_by(
    view: &DeviceView<'_>,
    sources: &[Source],
    shape: &[usize],
) -> Result<DeviceView<'static>, Error> {
    let stride = |source: &Source| match *source {
        Source::Kept(axis) => view.strides().get(axis).copied().unwrap_or(0),
        Source::Stretched(_) | Source::Added => 0,
    };
    let strides: Vec<isize> = sources.iter().map(stride).collect();
    // SAFETY: each axis moves as the view's own does, or not at all.
    unsafe { DeviceView::from_raw(view.device(), view.dtype(), view.address(), shape, &strides) }
}

fn cast(from: DType, to: DType) -> Result<TypedProgram, ProgramError> {
    let mut build = Builder::new(Promotion::Numpy);
    let own = build.operand(LETTERS[0], from);
    let root = build.cast(own, to)?;
    build.finish(root)
}

/// A number on a device, and a view of it. It is kept there, so that the next call with it uploads nothing. The caller
/// holds it until everything that reads it is launched; its device is waited for before it is freed.
fn number(device: &Device, own: &AnyView<'_>) -> Result<(DeviceArray, DeviceView<'static>), Error> {
    type Key = (usize, DType, [u8; 16]);
    static NUMBERS: Mutex<Option<HashMap<Key, DeviceArray>>> = Mutex::new(None);
    let dtype = own.dtype();
    let mut bytes = [0; 16];
    if dtype == DType::String {
        return Err(Error::Text);
    }
    // SAFETY: one element of that type, of at most 16 bytes.
    unsafe { std::ptr::copy_nonoverlapping(own.as_ptr(), bytes.as_mut_ptr(), dtype.size()) };
    let key = (device.index(), dtype, bytes);
    // Before the lock, so that what is freed is so after it.
    let mut _old = None;
    let mut known = NUMBERS.lock().unwrap_or_else(PoisonError::into_inner);
    if known.as_ref().is_some_and(|known| known.len() >= KEPT && !known.contains_key(&key)) {
        _old = known.take();
    }
    let array = match known.get_or_insert_default().entry(key) {
        Entry::Occupied(own) => own.get().clone(),
        Entry::Vacant(place) => {
            let made = device.upload(own)?;
            made.used_on_any();
            place.insert(made).clone()
        }
    };
    // SAFETY: one element, which was uploaded when the call returned, and lives as long as the array beside it.
    let view = unsafe { DeviceView::from_raw(device, dtype, array.address(), &[], &[]) }?;
    Ok((array, view))
}

/// The array that `out=` names.
pub(crate) struct Out<'py> {
    object: Bound<'py, PyAny>,
    array: Array<'py>,
    casting: simulcast::types::Casting,
}

impl<'py> Out<'py> {
    /// The argument; none where there is none.
    pub(crate) fn read(options: &Options<'_, 'py>) -> PyResult<Option<Self>> {
        options.out.map_or(Ok(None), |out| Self::of(out, options.casting))
    }

    /// An array as a place; none for `None`.
    pub(crate) fn of(object: &Bound<'py, PyAny>, casting: Option<&str>) -> PyResult<Option<Self>> {
        if object.is_none() {
            return Ok(None);
        }
        let mut object = object.clone();
        if let Ok(one) = object.cast::<PyTuple>()
            && one.len() == 1
        {
            let one = one.get_item(0)?;
            if one.is_none() {
                return Ok(None);
            }
            object = one;
        }
        let Some(array) = Array::read(&object)? else {
            return Err(PyTypeError::new_err(format!(
                "`out` is a {} in this machine's memory, and the operands are on a device",
                object.get_type()
            )));
        };
        let casting = dtypes::casting(casting)?;
        Ok(Some(Self { object, array, casting }))
    }

    pub(crate) fn dtype(&self) -> DType {
        self.array.dtype
    }
}

/// The value of an expression for operands with names.
pub(crate) fn evaluate<'py>(
    py: Python<'py>,
    (program, programs): (&TypedProgram, &Programs),
    rule: &OwnedRule,
    (names, operands): (&[&str], Vec<Operand<'py>>),
    out: Option<Out<'py>>,
    fail: impl Fn(ProgramError) -> PyErr,
) -> PyResult<Bound<'py, PyAny>> {
    let meeting = Meeting::new(py, names, operands)?;
    let device = &meeting.device;
    let made = || program.on_device(device).rule(rule.as_rule());
    let program = programs.get(device, rule, made);
    meeting.run(py, &program, out, fail)
}

/// The values of expressions for operands with names, or their gradients; `outs` are places for some of them.
pub(crate) fn evaluate_jointly<'py>(
    py: Python<'py>,
    (program, programs): (&JointProgram, &Programs<JointDeviceProgram>),
    rule: &OwnedRule,
    (names, operands): (&[&str], Vec<Operand<'py>>),
    mut outs: Vec<Option<Out<'py>>>,
    fail: impl Fn(ProgramError) -> PyErr,
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let fail = |error: Error| match error {
        Error::Program(error) => fail(error),
        error => failed(py, &error),
    };
    let mut meeting = Meeting::new(py, names, operands)?;
    let device = &meeting.device;
    let made = || program.on_device(device).rule(rule.as_rule());
    let program = programs.get(device, rule, made);
    let dtypes = program.program().dtypes();
    let mut results = Vec::with_capacity(dtypes.len());
    if outs.iter().all(Option::is_none) {
        let (mut fresh, array) = (Vec::with_capacity(dtypes.len()), meeting.first()?);
        let allocate = |at: usize, shape: &[usize]| -> Result<u64, Failure> {
            let made = array.fresh(dtypes[at], shape, &meeting.stream).map_err(Failure::Python)?;
            fresh.push(made);
            Ok(fresh[at].address)
        };
        // SAFETY: new arrays of the library's on the operands' device; see `Meeting::run`.
        let run = unsafe { program.run_new(&meeting.views, &meeting.stream, allocate) };
        run.map_err(|error| match error {
            Failure::Python(error) => error,
            Failure::Device(error) => fail(error),
        })?;
        meeting.done().map_err(fail)?;
        for own in fresh {
            results.push(own.object(py)?);
        }
        return Ok(results);
    }
    for (at, (out, &dtype)) in outs.iter().zip(dtypes).enumerate() {
        if let Some(out) = out {
            let meets = |own: &Option<Out<'py>>| {
                own.as_ref().is_some_and(|own| own.array.meets(&out.array))
            };
            if let Some(first) = outs[..at].iter().position(meets) {
                return Err(overlapping([first, at], "share memory"));
            }
            meeting.reach(&out.array)?;
            uncastable(dtype, out.array.dtype, out.casting)?;
        }
    }
    let made = program.run_on(&meeting.views, &meeting.stream).map_err(fail)?;
    for (at, made) in made.iter().enumerate() {
        if let Some(out) = outs.get_mut(at).and_then(Option::take) {
            let mut place = out.array.place()?;
            meeting.arrays.push(out.array);
            meeting.write(py, made, &mut place)?;
            results.push(out.object);
            continue;
        }
        let fresh = meeting.first()?.fresh(made.dtype(), made.shape(), &meeting.stream)?;
        // SAFETY: a new array of that type and shape.
        let place = unsafe { place(&meeting.device, made.dtype(), fresh.address, made.shape()) };
        meeting.write(py, made, &mut place.map_err(fail)?)?;
        results.push(fresh.object(py)?);
    }
    meeting.done().map_err(fail)?;
    Ok(results)
}

/// A program of a function, and the same on devices.
struct Applied {
    program: TypedProgram,
    on_devices: Programs,
}

/// The program of an operation on these types, computed in `dtype` where that is another; it is kept.
fn applied(op: Op, types: &[DType], dtype: Option<DType>) -> Result<Arc<Applied>, ProgramError> {
    type Key = (Op, Vec<DType>, Option<DType>);
    static KNOWN: Mutex<Option<HashMap<Key, Arc<Applied>>>> = Mutex::new(None);
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let known = known.get_or_insert_default();
    let key = (op, types.to_vec(), dtype);
    if let Some(own) = known.get(&key) {
        return Ok(Arc::clone(own));
    }
    let mut build = Builder::new(Promotion::Numpy);
    let first = usize::from(op == Op::Where);
    let mut args = Vec::with_capacity(types.len());
    for (n, (&own, name)) in types.iter().zip(LETTERS).enumerate() {
        let arg = build.operand(name, own);
        args.push(match dtype {
            Some(to) if n >= first && own != to => build.cast(arg, to)?,
            _ => arg,
        });
    }
    let root = build.apply(op, &args)?;
    let made = Arc::new(Applied { program: build.finish(root)?, on_devices: Programs::default() });
    if known.len() >= KEPT {
        known.clear();
    }
    known.insert(key, Arc::clone(&made));
    Ok(made)
}

/// An operation on operands whose numbers have got their types, one of which is on a device.
pub(crate) fn apply<'py>(
    py: Python<'py>,
    op: Op,
    operands: Vec<Operand<'py>>,
    dtype: Option<DType>,
    options: Options<'_, 'py>,
) -> PyResult<Bound<'py, PyAny>> {
    let types = types(&operands);
    let natural = applied(op, &types, None);
    let own = match (natural, dtype) {
        (Ok(own), None) => own,
        (Ok(own), Some(dtype)) if own.program.dtype() == dtype => own,
        (Err(error), None) => return Err(errors::failed(py, &error)),
        (_, Some(dtype)) => {
            let casting = dtypes::casting(options.casting)?;
            let first = usize::from(op == Op::Where);
            if let Some(&from) = types[first..].iter().find(|&&own| !can_cast(own, dtype, casting))
            {
                return Err(uncast(op, from, dtype, casting));
            }
            applied(op, &types, Some(dtype)).map_err(|error| errors::failed(py, &error))?
        }
    };
    // Exponents that are numbers are looked at; to look at those on the device would be to wait for it.
    if op == Op::Power
        && own.program.dtype().is_integer()
        && let Some(exponent) = operands.get(1).and_then(Operand::view)
    {
        check_powers(&exponent)?;
    }
    compute(py, op.name(), (&own.program, &own.on_devices), operands, options)
}

/// A program of a function on operands by place, by the rule of the options.
pub(crate) fn compute<'py>(
    py: Python<'py>,
    function: &str,
    (program, programs): (&TypedProgram, &Programs),
    operands: Vec<Operand<'py>>,
    options: Options<'_, 'py>,
) -> PyResult<Bound<'py, PyAny>> {
    let (out, rule) = (Out::read(&options)?, Rule::read(options.rule)?);
    let shapes: Vec<&[usize]> = operands.iter().map(Operand::shape).collect();
    policies::observe(py, function, &rule, &shapes)?;
    let mut meeting = Meeting::new(py, &LETTERS, operands)?;
    meeting.lay(py, &rule)?;
    let device = &meeting.device;
    let program = programs.get(device, &OwnedRule::Numpy, || program.on_device(device));
    meeting.run(py, &program, out, |error| errors::failed(py, &error))
}

/// The types of operands whose numbers have got theirs.
fn types(operands: &[Operand<'_>]) -> Vec<DType> {
    let own = operands.iter().map(|operand| match operand.is() {
        OperandType::Array(dtype) => dtype,
        OperandType::Literal(_) => DType::String,
    });
    own.collect()
}

/// What is differentiated.
#[derive(Clone, Copy)]
pub(crate) enum Differentiated {
    Op(Op),
    /// `clip`, and which of its bounds are there.
    Clip([bool; 2]),
}

/// Gradients of a function, one for each operand that is there; see `vjp`.
pub(crate) fn vjp<'py>(
    py: Python<'py>,
    function: Differentiated,
    laying: Laying<'_>,
    operands: Vec<Operand<'py>>,
    grad: Operand<'py>,
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let mut all = operands;
    all.push(grad);
    let types = types(&all);
    let names: Vec<&str> =
        LETTERS[..all.len() - 1].iter().copied().chain(["the gradient"]).collect();
    let mut meeting = Meeting::new(py, &names, all)?;
    let fail = |error: Error| failed(py, &error);
    let last = meeting.views.len() - 1;
    let shapes: Vec<Vec<usize>> = meeting.views.iter().map(|view| view.shape().to_vec()).collect();
    let own: Vec<(DType, &[usize])> =
        types.iter().copied().zip(shapes.iter().map(Vec::as_slice)).take(last).collect();
    let grad = (types[last], &shapes[last][..]);
    let programs = match function {
        Differentiated::Op(op) => vjp_programs(laying, op, &own, grad),
        Differentiated::Clip(bounds) => vjp_clip_programs(laying, bounds, &own, grad),
    };
    let programs = programs.map_err(|error| errors::failed(py, &error))?;
    // Every operand in the result's shape, which is the gradient's.
    let operand_shapes: Vec<&[usize]> = shapes[..last].iter().map(Vec::as_slice).collect();
    let (plan, arrays) =
        laying.plan(&operand_shapes).map_err(|error| errors::failed(py, &error))?;
    for n in 0..last {
        let sources = match arrays.iter().position(|&own| own == n) {
            Some(place) => plan.sources(place).unwrap_or_default(),
            None => vec![Source::Added; plan.shape().len()],
        };
        meeting.views[n] = laid_by(&meeting.views[n], &sources, plan.shape()).map_err(fail)?;
    }
    let mut made = Vec::with_capacity(last);
    for ((kind, shape), &dtype) in programs.into_iter().zip(&shapes).zip(&types) {
        let program = match kind {
            OperandGradient::Nothing => {
                made.push(py.None().into_bound(py));
                continue;
            }
            OperandGradient::Zeros => None,
            OperandGradient::Program(program) => Some(program.on_device(&meeting.device)),
        };
        let fresh = meeting.first()?.fresh(dtype, shape, &meeting.stream)?;
        match program {
            // SAFETY: the sum has the operand's elements in their order, but for axes of size 1; a new array of them.
            Some(program) => unsafe {
                program
                    .run_new(&meeting.views, &meeting.stream, |_| Ok::<u64, Error>(fresh.address))
            }
            .map_err(fail)?,
            None => {
                let (_number, zero) = zero(&meeting.device, dtype).map_err(fail)?;
                // SAFETY: a new array of that type and shape.
                let mut out =
                    unsafe { place(&meeting.device, dtype, fresh.address, shape) }.map_err(fail)?;
                copy_into(&zero, &mut out, &meeting.stream).map_err(fail)?;
            }
        }
        made.push(fresh.object(py)?);
    }
    meeting.done().map_err(fail)?;
    Ok(made)
}

/// Zero of a type of floats on a device.
fn zero(device: &Device, dtype: DType) -> Result<(DeviceArray, DeviceView<'static>), Error> {
    let bytes = [0_u64; 2];
    // SAFETY: zeros are an element of any type of floats.
    let own = unsafe { AnyView::from_raw(dtype, bytes.as_ptr().cast(), &[], &[]) };
    number(device, &own)
}

/// A contiguous place for results at an address.
///
/// # Safety
///
/// There is room for the shape, which nothing else uses.
unsafe fn place(
    device: &Device,
    dtype: DType,
    address: u64,
    shape: &[usize],
) -> Result<DeviceViewMut<'static>, Error> {
    let strides = arrays::contiguous(shape);
    // SAFETY: the caller promises it.
    unsafe { DeviceViewMut::from_raw(device, dtype, address, shape, &strides) }
}

/// A new array of a shape, whose elements `write` makes of another array at a place that is seen in the shape `seen`.
fn made_of<'py>(
    array: Array<'py>,
    (shape, seen): (&[usize], &[usize]),
    write: impl FnOnce(&DeviceView<'_>, &mut DeviceViewMut<'_>, &Stream) -> Result<(), Error>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = array.object.py();
    let fail = |error: Error| failed(py, &error);
    let meeting = Meeting::new(py, &["x"], vec![Operand::Device(Box::new(array))])?;
    let own = meeting.first()?;
    let (dtype, stream) = (own.dtype, &meeting.stream);
    let fresh = own.fresh(dtype, shape, stream)?;
    // SAFETY: a new array of that type, of as many elements.
    let mut out = unsafe { place(&meeting.device, dtype, fresh.address, seen) }.map_err(fail)?;
    write(&meeting.views[0], &mut out, stream).map_err(fail)?;
    meeting.done().map_err(fail)?;
    fresh.object(py)
}

/// The elements of an array in a larger shape, as a new array; `sources` as a plan lays it.
pub(crate) fn broadcast_to<'py>(
    array: Array<'py>,
    sources: &[Source],
    shape: &[usize],
) -> PyResult<Bound<'py, PyAny>> {
    made_of(array, (shape, shape), |own, out, stream| {
        copy_into(&laid_by(own, sources, shape)?, out, stream)
    })
}

/// The sum of an array to a shape, as a new array. By `sources` the shape is laid onto the array's, whose axes that are
/// kept come in the same order as in the shape.
pub(crate) fn sum_to<'py>(
    array: Array<'py>,
    sources: &[Source],
    shape: &[usize],
) -> PyResult<Bound<'py, PyAny>> {
    let axes = array.shape.iter().zip(sources);
    let kept = axes.map(|(&size, source)| if matches!(source, Source::Kept(_)) { size } else { 1 });
    let kept: Vec<usize> = kept.collect();
    made_of(array, (shape, &kept), sum_into)
}
