//! Where results go: new arrays of NumPy's, or the array that `out=` names.
//!
//! What is computed is written straight into a new array, or into `out` where it has the type, can be
//! written as it lies, and shares no memory with an operand; else it goes there through a new array,
//! as if all operands had been read first.

use std::ops::Range;

use numpy::npyffi::flags::{NPY_ARRAY_C_CONTIGUOUS, NPY_ARRAY_F_CONTIGUOUS, NPY_ARRAY_WRITEABLE};
use numpy::npyffi::{NpyTypes, get_type_object};
use numpy::{PY_ARRAY_API, PyArrayDescrMethods as _, PyUntypedArray, PyUntypedArrayMethods as _};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};
use simulcast::program::{JointRun, Run};
use simulcast::{
    AnyArray, AnyView, AnyViewMut, BroadcastError, DType, ProgramError, Rule, resolve,
};
use simulcast_core::Names;

use crate::arrays::{plain, too_many_axes};
use crate::dtypes;
use crate::errors::refused_as;
use crate::handler::keeping;
use crate::interrupts::released;
use crate::memory::LARGE;
use crate::operands::view;
use crate::policies;
use crate::threads::Threads;

/// Fewer elements than this are computed without releasing the interpreter, which costs more.
pub(crate) const SMALL: usize = 4096;

/// Where a result goes.
pub(crate) struct Target<'a, 'py> {
    out: Option<Out<'py>>,
    casting: Option<&'a str>,
    pub(crate) threads: Option<usize>,
}

/// The array that `out=` names, and the object that is given back for it.
struct Out<'py> {
    object: Bound<'py, PyAny>,
    array: Bound<'py, PyUntypedArray>,
}

impl<'a, 'py> Target<'a, 'py> {
    #[inline]
    pub(crate) fn new(
        out: Option<&'a Bound<'py, PyAny>>,
        casting: Option<&'a str>,
        threads: Option<Threads>,
    ) -> PyResult<Self> {
        let threads = threads.map(Threads::get);
        let out = out.filter(|out| !out.is_none()).map(Out::read).transpose()?.flatten();
        Ok(Self { out, casting, threads })
    }

    /// The dtype of `out`, where the engine has it.
    pub(crate) fn dtype(&self) -> Option<DType> {
        self.out.as_ref().and_then(|out| dtypes::of_descriptor(&out.array.dtype()))
    }

    /// Runs a program of numbers, and gives back where its result is.
    #[inline]
    pub(crate) fn fill(
        &self,
        py: Python<'py>,
        run: Run<'_>,
        dtype: DType,
        operands: &[AnyView<'_>],
        shape: impl Fn() -> PyResult<Vec<usize>>,
        fail: impl Fn(ProgramError) -> PyErr,
    ) -> PyResult<Bound<'py, PyAny>> {
        if let Some(out) = self.out.as_ref().filter(|_| policies::is_active()) {
            policies::observe_view(py, "out", &shape()?, out.array.as_any())?;
        }
        let run = match self.threads {
            Some(threads) => run.threads(threads),
            None => run,
        };
        if let Some(out) = &self.out
            && let Some(mut place) = out.place(dtype, operands)
        {
            return match go(py, run, operands, &mut place, fail) {
                Ok(()) => Ok(out.object.clone()),
                // What is wrong may be `out`, which the engine takes for one more operand.
                Err(error) => shape().and_then(|shape| out.check(py, &shape)).and(Err(error)),
            };
        }
        let shape = shape()?;
        if let Some(out) = &self.out {
            out.check(py, &shape)?;
        }
        let made = fresh(py, dtype, &shape, operands)?;
        let own = view(&made).ok_or_else(unreadable)?;
        // SAFETY: a new array, which nobody else has yet.
        let mut place = unsafe { writable(&own) };
        go(py, run, operands, &mut place, fail)?;
        match &self.out {
            Some(_) => self.store(made.as_any()),
            None => returned(made),
        }
    }

    /// Gives back a result that is text: lists of words go to Python. Words are as wide as those of
    /// the operands `like`, or as all of them `joined`; where that is not known, as they are.
    pub(crate) fn fill_text(
        &self,
        py: Python<'py>,
        result: &AnyArray,
        like: &[Bound<'py, PyAny>],
        joined: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let words = result.typed::<String>().ok_or_else(unreadable)?;
        if let Some(out) = &self.out {
            out.check(py, result.shape())?;
        }
        let list = PyList::new(py, words.iter())?;
        let shape = PyTuple::new(py, result.shape())?;
        let make = py.import("simulcast._inputs")?.getattr("text_array")?;
        let made = make.call1((list, shape, PyTuple::new(py, like)?, joined))?;
        match &self.out {
            Some(_) => self.store(&made),
            None => Ok(made),
        }
    }

    /// Gives back a result in `out`, to which it stretches, or as it is.
    fn given(
        &self,
        py: Python<'py>,
        made: Bound<'py, PyUntypedArray>,
    ) -> PyResult<Bound<'py, PyAny>> {
        match &self.out {
            Some(out) => {
                out.check(py, made.shape())?;
                self.store(made.as_any())
            }
            None => returned(made),
        }
    }

    /// The memory of `out`, where results can be written there at once; none of it may be an
    /// operand's.
    pub(crate) fn place(&self, operands: &[AnyView<'_>]) -> Option<AnyViewMut<'_>> {
        self.out.as_ref()?.place(self.dtype()?, operands)
    }

    /// What `out` holds, where it can be read as it lies.
    pub(crate) fn view(&self) -> Option<AnyView<'_>> {
        self.out.as_ref().and_then(|out| view(&out.array))
    }

    /// Copies a result into `out`, where that may be cast.
    fn store(&self, result: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let Some(out) = &self.out else { return Ok(result.clone()) };
        let store = result.py().import("simulcast._inputs")?.getattr("store")?;
        store.call1((&out.array, result, self.casting.unwrap_or("same_kind")))?;
        Ok(out.object.clone())
    }
}

impl<'py> Out<'py> {
    /// `None` for a tuple of None, as in NumPy.
    #[inline]
    fn read(object: &Bound<'py, PyAny>) -> PyResult<Option<Self>> {
        let array = match plain(object) {
            Some(array) => array.clone(),
            None => {
                if let Ok(one) = object.cast::<PyTuple>()
                    && one.len() == 1
                {
                    let one = one.get_item(0)?;
                    return if one.is_none() { Ok(None) } else { Self::read(&one) };
                }
                let Ok(array) = object.cast::<PyUntypedArray>() else {
                    let class = object.get_type();
                    let class = class.name()?;
                    let what = format!("argument 'out' is a {class}, not an array of NumPy's");
                    return Err(PyTypeError::new_err(what));
                };
                let plain = object.py().import("simulcast._inputs")?.getattr("plain")?;
                plain.call1((array,))?.cast_into()?
            }
        };
        // SAFETY: the array is alive.
        if unsafe { (*array.as_array_ptr()).fields.flags } & NPY_ARRAY_WRITEABLE == 0 {
            return Err(PyValueError::new_err(
                "argument 'out' is read-only: results cannot be written to it",
            ));
        }
        Ok(Some(Self { object: object.clone(), array }))
    }

    /// Where results can be written at once.
    #[inline]
    fn place(&self, dtype: DType, operands: &[AnyView<'_>]) -> Option<AnyViewMut<'_>> {
        let own = view(&self.array).filter(|own| own.dtype() == dtype)?;
        // SAFETY: the array is alive.
        let flags = unsafe { (*self.array.as_array_ptr()).fields.flags };
        let apart = flags & (NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_F_CONTIGUOUS) != 0;
        if !apart && !is_injective(&own) {
            return None;
        }
        let bytes = extent(&own);
        let shared = operands.iter().map(extent).any(|other| meets(&bytes, &other));
        // SAFETY: the array can be written to, no two of its elements share a place, and none is one
        // of an operand's.
        (!shared).then(|| unsafe { writable(&own) })
    }

    /// Whether a result of that shape stretches to the array, which itself never does.
    fn check(&self, py: Python<'py>, shape: &[usize]) -> PyResult<()> {
        let target = Rule::To { target: self.array.shape() };
        let told = |error: BroadcastError| {
            let own = simulcast_core::format_shape(self.array.shape());
            let shape = simulcast_core::format_shape(shape);
            let what =
                format!("argument 'out' is {own}, to which the result {shape} does not stretch");
            let error = error.with_names(Names::of(["result"])).with_target("out").without_fixes();
            refused_as(py, &error, &what)
        };
        resolve(target, &[shape]).map(|_| ()).map_err(told)
    }
}

/// Refuses arrays for results that share memory: of two results one would be lost.
fn check_apart(targets: &[Target<'_, '_>]) -> PyResult<()> {
    let outs = targets.iter().enumerate();
    let outs: Vec<_> = outs.filter_map(|(at, own)| Some((at, &own.out.as_ref()?.array))).collect();
    for (n, (second, own)) in outs.iter().enumerate() {
        for (first, other) in &outs[..n] {
            if meets(&bytes_of(own), &bytes_of(other)) && shares(own, other)? {
                return Err(overlapping([*first, *second], "share memory"));
            }
        }
    }
    Ok(())
}

/// The error for two arrays for results that are not apart.
#[cold]
pub(crate) fn overlapping([first, second]: [usize; 2], what: &str) -> PyErr {
    PyValueError::new_err(format!(
        "argument 'out': out[{first}] and out[{second}] {what}, so that one result would overwrite the other"
    ))
}

/// Whether an element of one array lies in the other, as NumPy finds out where that is not too much work.
#[cold]
fn shares(a: &Bound<'_, PyUntypedArray>, b: &Bound<'_, PyUntypedArray>) -> PyResult<bool> {
    a.py().import("simulcast._inputs")?.getattr("shares_memory")?.call1((a, b))?.extract()
}

/// The bytes between the first and the last of an array.
fn bytes_of(array: &Bound<'_, PyUntypedArray>) -> Range<usize> {
    // SAFETY: the array is alive.
    let start = unsafe { (*array.as_array_ptr()).fields.data }.addr();
    reach(start, array.shape(), array.strides(), 1, array.dtype().itemsize())
}

/// Runs a program of several results, and gives back where each of them is. `text` are the dtypes of operands that are
/// text.
pub(crate) fn fill_all<'py>(
    py: Python<'py>,
    run: JointRun<'_>,
    dtypes: &[DType],
    targets: &[Target<'_, 'py>],
    operands: &[AnyView<'_>],
    text: &[Bound<'py, PyAny>],
    fail: &impl Fn(ProgramError) -> PyErr,
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    check_apart(targets)?;
    let shapes = run.shapes().map_err(fail)?;
    for (target, shape) in targets.iter().zip(&shapes) {
        if let Some(out) = target.out.as_ref().filter(|_| policies::is_active()) {
            policies::observe_view(py, "out", shape, out.array.as_any())?;
        }
    }
    if dtypes.contains(&DType::String) {
        let made = py.detach(|| run.compute()).map_err(fail)?;
        let given = made.into_iter().zip(targets).map(|(made, target)| match made.dtype() {
            DType::String => target.fill_text(py, &made, text, None),
            _ => target.given(py, into_numpy(py, made)?),
        });
        return given.collect();
    }
    // Results in an operand's place are written once all are computed.
    let mut taken: Vec<Range<usize>> = Vec::new();
    let mut fresh_ones = Vec::with_capacity(targets.len());
    for ((target, shape), &dtype) in targets.iter().zip(&shapes).zip(dtypes) {
        let own = target.out.as_ref().filter(|out| out.array.shape() == shape);
        let apart = own.filter(|out| match (out.place(dtype, operands), view(&out.array)) {
            (Some(_), Some(seen)) => {
                let bytes = extent(&seen);
                let free = !taken.iter().any(|other| meets(other, &bytes));
                taken.push(bytes);
                free
            }
            _ => false,
        });
        fresh_ones.push(match apart {
            Some(_) => None,
            None => {
                target.out.as_ref().map_or(Ok(()), |out| out.check(py, shape))?;
                Some(fresh(py, dtype, shape, &[])?)
            }
        });
    }
    let mut places = Vec::with_capacity(targets.len());
    for (target, made) in targets.iter().zip(&fresh_ones) {
        let array = made.as_ref().or(target.out.as_ref().map(|out| &out.array));
        let seen = array.and_then(view).ok_or_else(unreadable)?;
        // SAFETY: a new array, or one that can be written to and shares no memory with an operand or another of them.
        places.push(unsafe { writable(&seen) });
    }
    let small = operands.iter().all(|operand| operand.len() <= SMALL);
    if small && shapes.iter().all(|shape| shape.iter().product::<usize>() <= SMALL) {
        run.write(&mut places).map_err(fail)?;
    } else {
        // What it takes is more than what it writes.
        released(py, usize::MAX, 0, || run.write(&mut places))?.map_err(fail)?;
    }
    drop(places);
    let given =
        fresh_ones.into_iter().zip(targets).map(|(made, target)| match (made, &target.out) {
            (Some(made), _) => target.given(py, made),
            (None, Some(out)) => Ok(out.object.clone()),
            // Never: what has no place is new.
            (None, None) => Err(unreadable()),
        });
    given.collect()
}

/// Computes; with the interpreter released, where that takes a while.
#[inline]
fn go(
    py: Python<'_>,
    run: Run<'_>,
    operands: &[AnyView<'_>],
    place: &mut AnyViewMut<'_>,
    fail: impl Fn(ProgramError) -> PyErr,
) -> PyResult<()> {
    let many = place.shape().iter().fold(1_usize, |count, &size| count.saturating_mul(size));
    // A reduction reads more than it writes.
    let many = operands.iter().map(AnyView::len).fold(many, usize::max);
    released(py, many, SMALL, || run.write(place))?.map_err(fail)
}

/// An array as a place for results.
///
/// # Safety
///
/// Its elements can be written to, nobody else reads or writes them as long as the view lives, and no
/// two share a place.
#[inline]
unsafe fn writable<'a>(own: &AnyView<'a>) -> AnyViewMut<'a> {
    // SAFETY: as a view it was checked to be readable; the rest is promised.
    unsafe {
        AnyViewMut::from_raw(own.dtype(), own.as_ptr().cast_mut(), own.shape(), own.strides())
    }
}

fn unreadable() -> PyErr {
    PyTypeError::new_err("the result cannot be read")
}

/// A new array; in Fortran's order where all operands of its shape are.
pub(crate) fn fresh<'py>(
    py: Python<'py>,
    dtype: DType,
    shape: &[usize],
    operands: &[AnyView<'_>],
) -> PyResult<Bound<'py, PyUntypedArray>> {
    let rank = i32::try_from(shape.len()).map_err(|_| too_many_axes(shape.len()))?;
    let mut alike = operands.iter().filter(|view| view.shape() == shape).peekable();
    let fortran = shape.len() > 1 && alike.peek().is_some() && alike.all(is_fortran);
    let order = if fortran { NPY_ARRAY_F_CONTIGUOUS } else { 0 };
    // SAFETY: NumPy asks for the memory itself.
    let make = || unsafe { array_of(py, dtype, rank, shape, std::ptr::null_mut(), order) };
    match shape.iter().try_fold(dtype.size(), |bytes, &size| bytes.checked_mul(size)) {
        Some(LARGE..) => keeping(py, make),
        _ => make(),
    }
}

/// An array of NumPy's over memory, or over new memory where there is none.
///
/// # Safety
///
/// The memory holds elements of that type in row-major order, and outlives the array; `rank` is the
/// length of the shape.
unsafe fn array_of<'py>(
    py: Python<'py>,
    dtype: DType,
    rank: i32,
    shape: &[usize],
    memory: *mut u8,
    flags: i32,
) -> PyResult<Bound<'py, PyUntypedArray>> {
    let descriptor = dtypes::descriptor(py, dtype)?;
    // SAFETY: NumPy takes over the reference to the descriptor, copies the sizes and checks them; the
    // rest is promised.
    unsafe {
        let made = PY_ARRAY_API.PyArray_NewFromDescr(
            py,
            get_type_object(py, NpyTypes::PyArray_Type),
            descriptor,
            rank,
            shape.as_ptr().cast_mut().cast(),
            std::ptr::null_mut(),
            memory.cast(),
            flags,
            std::ptr::null_mut(),
        );
        Ok(Bound::from_owned_ptr_or_err(py, made)?.cast_into_unchecked())
    }
}

/// The array, or the scalar in it where it has no axes.
pub(crate) fn returned(array: Bound<'_, PyUntypedArray>) -> PyResult<Bound<'_, PyAny>> {
    let py = array.py();
    if array.ndim() > 0 {
        return Ok(array.into_any());
    }
    // SAFETY: NumPy takes over the reference, and gives one back.
    unsafe {
        let made = PY_ARRAY_API.PyArray_Return(py, array.into_ptr().cast());
        Bound::from_owned_ptr_or_err(py, made)
    }
}

fn copied<'py>(py: Python<'py>, own: &AnyView<'_>) -> PyResult<Bound<'py, PyUntypedArray>> {
    let made = fresh(py, own.dtype(), own.shape(), &[])?;
    let rows = if own.shape().contains(&0) { 0 } else { own.len() * own.dtype().size() };
    if own.dtype() == DType::String || (rows > 0 && !is_row_major(own)) {
        return Err(unreadable());
    }
    // SAFETY: both are row-major, of one type that is no text, and of one shape.
    unsafe {
        let to = (*made.as_array_ptr()).fields.data.cast::<u8>();
        std::ptr::copy_nonoverlapping(own.as_ptr(), to, rows);
    }
    Ok(made)
}

/// An array of the engine's as one of NumPy's: a large one is not copied, NumPy takes its memory over.
pub(crate) fn into_numpy(
    py: Python<'_>,
    mut array: AnyArray,
) -> PyResult<Bound<'_, PyUntypedArray>> {
    let own = array.view();
    let large = own.len() > SMALL && own.dtype() != DType::String && is_row_major(&own);
    let Some(rank) = i32::try_from(own.shape().len()).ok().filter(|_| large) else {
        return copied(py, &own);
    };
    let (dtype, shape) = (own.dtype(), own.shape().to_vec());
    let data = array.view_mut().as_mut_ptr();
    let memory = Bound::new(py, Memory { _array: array })?;
    // SAFETY: the data are row-major, of that type and shape, and nobody but the array that is made
    // gets at them while `memory` lives, which it keeps.
    unsafe {
        let made = array_of(py, dtype, rank, &shape, data, NPY_ARRAY_WRITEABLE)?;
        match PY_ARRAY_API.PyArray_SetBaseObject(py, made.as_array_ptr(), memory.into_ptr()) {
            0 => Ok(made),
            _ => Err(PyErr::fetch(py)),
        }
    }
}

/// An array whose elements are NumPy's to use.
#[pyclass(frozen, module = "simulcast._simulcast")]
struct Memory {
    _array: AnyArray,
}

fn is_row_major(view: &AnyView<'_>) -> bool {
    packed(view.shape().iter().zip(view.strides()).rev())
}

fn is_fortran(view: &AnyView<'_>) -> bool {
    !is_row_major(view) && packed(view.shape().iter().zip(view.strides()))
}

/// Whether each axis begins where those before it end.
fn packed<'a>(axes: impl Iterator<Item = (&'a usize, &'a isize)>) -> bool {
    let mut next = 1_isize;
    axes.filter(|(size, _)| **size != 1).all(|(&size, &stride)| {
        let fits = stride == next;
        next = next.saturating_mul(size.cast_signed());
        fits
    })
}

/// Whether no two elements share a place, as far as that is seen at once: along each axis elements
/// are further apart than all shorter axes reach.
fn is_injective(view: &AnyView<'_>) -> bool {
    let axes = view.shape().iter().zip(view.strides()).filter(|(size, _)| **size > 1);
    let mut axes: Vec<(usize, usize)> =
        axes.map(|(&size, stride)| (stride.unsigned_abs(), size)).collect();
    axes.sort_unstable();
    let mut reach = 0_usize;
    axes.into_iter().all(|(stride, size)| {
        let apart = stride > reach;
        reach = reach.saturating_add(stride.saturating_mul(size - 1));
        apart
    })
}

/// The bytes between a view's first and last element in memory.
#[inline]
fn extent(view: &AnyView<'_>) -> Range<usize> {
    let item = view.dtype().size();
    reach(view.as_ptr().addr(), view.shape(), view.strides(), item, item)
}

/// The bytes from a first element on, along strides of so many bytes each, to the end of the last one.
#[inline]
fn reach(
    start: usize,
    shape: &[usize],
    strides: &[isize],
    unit: usize,
    item: usize,
) -> Range<usize> {
    let (mut low, mut high) = (start, start);
    for (&size, &stride) in shape.iter().zip(strides) {
        let reach = stride.wrapping_mul(size.wrapping_sub(1).cast_signed());
        let reach = reach.wrapping_mul(unit.cast_signed());
        match (size, reach < 0) {
            (0, _) => return 0..0,
            (_, true) => low = low.wrapping_add_signed(reach),
            (_, false) => high = high.wrapping_add_signed(reach),
        }
    }
    low..high.wrapping_add(item)
}

#[inline]
pub(crate) fn meets(a: &Range<usize>, b: &Range<usize>) -> bool {
    a.start < b.end && b.start < a.end
}
