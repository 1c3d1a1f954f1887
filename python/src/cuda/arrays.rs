//! Arrays of other libraries on CUDA devices: how they are read, and how results become theirs.
//!
//! | what a class offers | how its arrays are read | whose results are |
//! |---|---|---|
//! | `__dlpack_c_exchange_api__` (`PyTorch` from 2.10 on) | by C functions | made by its own allocator |
//! | `__cuda_array_interface__` and a module with `empty` (`CuPy`) | a dictionary | made by `empty` |
//! | `__dlpack__` (JAX, older `PyTorch`) | a capsule | ours, handed over by `from_dlpack` |
//!
//! No library is imported: one whose array came is in `sys.modules`.

use std::collections::{HashMap, VecDeque};
use std::ffi::{CStr, c_char, c_void};
use std::sync::{Mutex, PoisonError};

use numpy::PyUntypedArray;
use pyo3::exceptions::{PyBufferError, PyMemoryError, PyRuntimeError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyType};
use simulcast::DType;
use simulcast_cuda::{Device, DeviceArray, DeviceView, DeviceViewMut, Error, Stream, Timestamp};

use super::dlpack::{
    CUDA, CUDA_MANAGED, Element, Exchange, Managed, Place, READ_ONLY, Tensor, Versioned,
};
use super::failed;

/// An array on a device.
pub(crate) struct Array<'py> {
    pub(crate) object: Bound<'py, PyAny>,
    how: How,
    pub(crate) device: Device,
    pub(crate) dtype: DType,
    address: u64,
    pub(crate) shape: Vec<usize>,
    strides: Vec<isize>,
    /// The stream that its library works on; of one that does not say, ours waited for it.
    stream: Stream,
    kept: Option<Kept>,
    is_read_only: bool,
}

/// How a class is spoken to.
#[derive(Clone, Copy)]
enum How {
    Exchange(&'static Exchange),
    /// The library has a function `empty`.
    Dictionary,
    Capsule,
}

// SAFETY: a table of functions, for ever.
unsafe impl Send for How {}

/// What a capsule gave: its owner may free the memory once this is dropped.
enum Kept {
    Managed(*mut Managed),
    Versioned(*mut Versioned),
}

// SAFETY: DLPack allows a deleter in any thread; that of a Python library attaches to the interpreter itself.
unsafe impl Send for Kept {}

impl Drop for Kept {
    fn drop(&mut self) {
        // SAFETY: structures whose ownership the capsule gave up, deleted once.
        unsafe {
            match *self {
                Self::Managed(own) => {
                    if let Some(delete) = (*own).deleter {
                        delete(own);
                    }
                }
                Self::Versioned(own) => {
                    if let Some(delete) = (*own).deleter {
                        delete(own);
                    }
                }
            }
        }
    }
}

impl Array<'_> {
    /// Whether it surely shares memory with another: both lie without gaps, and their bytes meet.
    pub(super) fn meets(&self, other: &Self) -> bool {
        match (self.bytes(), other.bytes()) {
            (Some(own), Some(other)) => own.start < other.end && other.start < own.end,
            _ => false,
        }
    }

    /// Its bytes, where it lies without gaps in C's order and has any.
    fn bytes(&self) -> Option<std::ops::Range<u64>> {
        let mut next = 1_isize;
        for (&size, &stride) in self.shape.iter().zip(&self.strides).rev() {
            if size != 1 && stride != next {
                return None;
            }
            next = next.saturating_mul(size.cast_signed());
        }
        let bytes = (next.unsigned_abs() as u64).saturating_mul(self.dtype.size() as u64);
        (bytes > 0).then(|| self.address..self.address.saturating_add(bytes))
    }
}

/// What launches still read, and when they are done.
static PENDING: Mutex<VecDeque<(Timestamp, Vec<Kept>)>> = Mutex::new(VecDeque::new());
/// Of so many launches the oldest is waited for.
const PENDING_MAX: usize = 256;

/// Keeps what operands came with until everything that was launched on a stream is done.
pub(crate) fn keep(operands: Vec<Array<'_>>, stream: &Stream) -> Result<(), Error> {
    let kept: Vec<Kept> = operands.into_iter().filter_map(|own| own.kept).collect();
    let event = match kept.is_empty() {
        true => None,
        false => {
            let event = stream.device().event()?;
            stream.record(&event)?;
            Some(event)
        }
    };
    // Before the lock, so that what is dropped is so after it: what deletes an array may run Python's code, which must
    // not find the list locked.
    let mut done = Vec::new();
    let mut pending = PENDING.lock().unwrap_or_else(PoisonError::into_inner);
    pending.extend(event.map(|event| (event, kept)));
    while let Some((event, _)) = pending.front() {
        if pending.len() <= PENDING_MAX && !event.is_done()? {
            break;
        }
        done.extend(pending.pop_front());
    }
    drop(pending);
    for (event, kept) in done {
        event.synchronize()?;
        drop(kept);
    }
    Ok(())
}

/// Our own stream of a device, for arrays of libraries that do not name theirs.
fn own_stream(device: &Device) -> Result<Stream, Error> {
    static STREAMS: Mutex<Vec<Stream>> = Mutex::new(Vec::new());
    let mut streams = STREAMS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(own) = streams.iter().find(|own| own.device() == device) {
        return Ok(own.clone());
    }
    let made = device.stream()?;
    streams.push(made.clone());
    Ok(made)
}

/// A stream by the number that Python's protocols have for it.
fn stream_of(device: &Device, number: usize) -> Stream {
    let raw = match number {
        1 => 0,
        own => own,
    };
    // SAFETY: a stream of the library that made the array, which lives as long as the library works on it.
    unsafe { device.stream_from_raw(std::ptr::without_provenance_mut(raw)) }
}

/// The table of functions of a class, which is looked for once.
fn exchange(kind: &Bound<'_, PyType>) -> Option<&'static Exchange> {
    type Known = HashMap<usize, (Py<PyType>, Option<usize>)>;
    static KNOWN: Mutex<Option<Known>> = Mutex::new(None);
    // SAFETY: tables that were looked at below, which live for ever.
    let table = |own: usize| unsafe { &*(own as *const Exchange) };
    let key = kind.as_ptr() as usize;
    // Nothing of Python's runs while the list is locked: another thread may wait for it attached to the interpreter.
    let known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let found = known.as_ref().and_then(|known| known.get(&key)).map(|own| own.1);
    drop(known);
    if let Some(found) = found {
        return found.map(table);
    }
    let name = intern!(kind.py(), "__dlpack_c_exchange_api__");
    let found = kind.getattr(name).ok().and_then(|capsule| {
        let capsule = capsule.cast_into::<PyCapsule>().ok()?;
        let own = capsule.pointer_checked(Some(c"dlpack_exchange_api")).ok()?;
        // SAFETY: by DLPack, the capsule of that name has such a table, which lives for ever; its version comes first.
        let own: &'static Exchange = unsafe { own.cast::<Exchange>().as_ref() };
        let is_whole = own.version[0] == 1
            && own.allocate.is_some()
            && own.to_python.is_some()
            && own.view.is_some()
            && own.stream.is_some();
        is_whole.then_some(std::ptr::from_ref(own) as usize)
    });
    // The class is kept, so that no other one gets its address.
    let class = kind.clone().unbind();
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let mut old = None;
    if known.as_ref().is_some_and(|known| known.len() > 1024) {
        old = known.take();
    }
    known.get_or_insert_default().insert(key, (class, found));
    drop(known);
    drop(old);
    found.map(table)
}

/// The number of the CUDA device of a place; none of another place.
fn cuda(place: Place) -> Option<usize> {
    (place.kind == CUDA || place.kind == CUDA_MANAGED)
        .then(|| usize::try_from(place.index).ok())
        .flatten()
}

impl<'py> Array<'py> {
    /// An object as an array on a CUDA device; none where it is something else.
    pub(crate) fn read(object: &Bound<'py, PyAny>) -> PyResult<Option<Self>> {
        let (py, kind) = (object.py(), object.get_type());
        if let Some(table) = exchange(&kind) {
            return Self::exchanged(object, table);
        }
        if object.is_instance_of::<PyUntypedArray>() {
            return Ok(None);
        }
        let is_offered = |name| kind.hasattr(name).unwrap_or(false);
        if is_offered(intern!(py, "__dlpack_device__")) {
            let told = object.call_method0(intern!(py, "__dlpack_device__"));
            // What says no place is none on a device: it is read as before.
            let Ok(told) = told.and_then(|own| own.extract::<(i32, i32)>()) else {
                return Ok(None);
            };
            let Some(index) = cuda(Place { kind: told.0, index: told.1 }) else { return Ok(None) };
            let has_empty = module(&kind).is_ok_and(|own| own.hasattr("empty").unwrap_or(false));
            if !(is_offered(intern!(py, "__cuda_array_interface__"))
                && has_empty
                && !is_offered(intern!(py, "data_ptr")))
            {
                return Self::of_capsule(object, index).map(Some);
            }
        }
        if is_offered(intern!(py, "__cuda_array_interface__")) {
            let told = object.getattr(intern!(py, "__cuda_array_interface__"))?;
            return Self::described(object, &told.cast_into::<PyDict>()?).map(Some);
        }
        Ok(None)
    }

    /// By the table of functions of its class.
    fn exchanged(object: &Bound<'py, PyAny>, table: &'static Exchange) -> PyResult<Option<Self>> {
        let py = object.py();
        let (Some(view), Some(current)) = (table.view, table.stream) else { return Ok(None) };
        let mut tensor = Tensor::EMPTY;
        // SAFETY: a live object of the class that the table is of, and a place for what it says.
        if unsafe { view(object.as_ptr().cast(), &raw mut tensor) } != 0 {
            // Another kind of array than DLPack knows, such as a sparse one: the way of all others says why not.
            drop(PyErr::take(py));
            return Ok(None);
        }
        let Some(index) = cuda(tensor.place) else { return Ok(None) };
        if let Ok(grad) = object.getattr(intern!(py, "requires_grad"))
            && grad.is_truthy()?
        {
            return Err(PyTypeError::new_err(
                "an array that requires grad is not computed with: pass x.detach()",
            ));
        }
        // Views that are conjugated or negated once they are read are so read now.
        let is_lazy = |asked| match object.call_method0(asked) {
            Ok(told) => told.is_truthy(),
            Err(_) => Ok(false),
        };
        let is_complex = tensor.element.dtype().is_some_and(DType::is_complex);
        if is_complex && is_lazy(intern!(py, "is_conj"))? {
            return Self::exchanged(&object.call_method0("resolve_conj")?, table);
        }
        if is_lazy(intern!(py, "is_neg"))? {
            return Self::exchanged(&object.call_method0("resolve_neg")?, table);
        }
        let device = Device::new(index).map_err(|error| failed(py, &error))?;
        let mut raw = std::ptr::null_mut();
        // SAFETY: the tensor's own device, and a place for a stream.
        if unsafe { current(tensor.place.kind, tensor.place.index, &raw mut raw) } != 0 {
            return Err(PyErr::fetch(py));
        }
        // SAFETY: the current stream of the library.
        let stream = unsafe { device.stream_from_raw(raw) };
        // SAFETY: the tensor is that of a live object.
        unsafe { Self::of_tensor(object, How::Exchange(table), device, &tensor, stream) }.map(Some)
    }

    /// An array that a structure of `DLPack` describes.
    ///
    /// # Safety
    ///
    /// Its sizes and strides are there.
    unsafe fn of_tensor(
        object: &Bound<'py, PyAny>,
        how: How,
        device: Device,
        tensor: &Tensor,
        stream: Stream,
    ) -> PyResult<Self> {
        let Some(dtype) = tensor.element.dtype() else {
            let Element { code, bits, lanes } = tensor.element;
            return Err(PyTypeError::new_err(format!(
                "the elements of a {} are none that are computed with (DLPack's type {code}, {bits} bits, {lanes} lanes)",
                object.get_type()
            )));
        };
        let rank = usize::try_from(tensor.rank).map_err(|_| unreadable())?;
        if rank > 0 && tensor.shape.is_null() {
            return Err(unreadable());
        }
        let list = |own: *mut i64| -> &[i64] {
            // SAFETY: as many as there are axes.
            if rank == 0 { &[] } else { unsafe { std::slice::from_raw_parts(own, rank) } }
        };
        let size = |&own: &i64| usize::try_from(own).map_err(|_| unreadable());
        let shape: Vec<usize> = list(tensor.shape).iter().map(size).collect::<PyResult<_>>()?;
        let strides = match tensor.strides.is_null() {
            true => contiguous(&shape),
            false => list(tensor.strides).iter().map(|&own| own as isize).collect(),
        };
        Ok(Self {
            object: object.clone(),
            how,
            device,
            dtype,
            address: (tensor.data as u64).wrapping_add(tensor.offset),
            shape,
            strides,
            stream,
            kept: None,
            is_read_only: false,
        })
    }

    /// By the capsule that `__dlpack__` gives, once our stream waits for what makes the array.
    fn of_capsule(object: &Bound<'py, PyAny>, index: usize) -> PyResult<Self> {
        let py = object.py();
        let device = Device::new(index).map_err(|error| failed(py, &error))?;
        let stream = match current_stream(object, index)? {
            Some(number) => stream_of(&device, number),
            None => own_stream(&device).map_err(|error| failed(py, &error))?,
        };
        let options = PyDict::new(py);
        let number = match stream.raw() as usize {
            0 => 1,
            own => own,
        };
        options.set_item("stream", number)?;
        let capsule = object.call_method("__dlpack__", (), Some(&options))?;
        let capsule = capsule.cast_into::<PyCapsule>()?;
        let mut is_read_only = module(&object.get_type()).is_ok_and(|own| {
            // Its arrays never change, which the older capsules do not say.
            own.name().is_ok_and(|name| name.to_string_lossy().starts_with("jax"))
        });
        // SAFETY: by DLPack, a capsule of that name has such a structure, which belongs to who renames the capsule.
        let (tensor, kept) = unsafe {
            if let Ok(own) = capsule.pointer_checked(Some(c"dltensor")) {
                ffi::PyCapsule_SetName(capsule.as_ptr(), c"used_dltensor".as_ptr());
                let own = own.cast::<Managed>();
                ((*own.as_ptr()).tensor, Kept::Managed(own.as_ptr()))
            } else {
                let own = capsule.pointer_checked(Some(c"dltensor_versioned"))?.cast::<Versioned>();
                ffi::PyCapsule_SetName(capsule.as_ptr(), c"used_dltensor_versioned".as_ptr());
                let kept = Kept::Versioned(own.as_ptr());
                // Of another version only the deleter is known to be where it is.
                let [major, minor] = (*own.as_ptr()).version;
                if major != 1 {
                    return Err(PyBufferError::new_err(format!(
                        "the array is told by version {major}.{minor} of DLPack, and version 1 is read"
                    )));
                }
                is_read_only |= (*own.as_ptr()).flags & READ_ONLY != 0;
                ((*own.as_ptr()).tensor, kept)
            }
        };
        if cuda(tensor.place) != Some(index) {
            return Err(PyBufferError::new_err("the array is on another device than it says"));
        }
        // SAFETY: `kept` keeps what the tensor points to.
        let made = unsafe { Self::of_tensor(object, How::Capsule, device, &tensor, stream) }?;
        Ok(Self { kept: Some(kept), is_read_only, ..made })
    }

    /// By the dictionary of the CUDA Array Interface.
    fn described(object: &Bound<'py, PyAny>, told: &Bound<'py, PyDict>) -> PyResult<Self> {
        let py = object.py();
        let item = |name: &str| {
            told.get_item(name)?.ok_or_else(|| {
                PyTypeError::new_err(format!("__cuda_array_interface__ has no {name}"))
            })
        };
        if told.get_item("mask")?.is_some_and(|own| !own.is_none()) {
            return Err(PyTypeError::new_err(
                "an array with a mask is not computed with: fill in what is masked first",
            ));
        }
        let shape: Vec<usize> = item("shape")?.extract()?;
        let (address, is_read_only): (u64, bool) = item("data")?.extract()?;
        let typestr = item("typestr")?;
        // A type that the interface lacks (bfloat16) is told as bytes: the array's own dtype is asked then.
        let text: String = typestr.extract()?;
        let own = object.getattr(intern!(py, "dtype")).and_then(|own| Ok(own.str()?.to_string()));
        let is_bf16 = own.is_ok_and(|own| own == "bfloat16");
        let dtype = named(&text).or(is_bf16.then_some(DType::Bf16));
        let dtype = dtype.ok_or_else(|| {
            PyTypeError::new_err(format!("elements of type {text} are none that are computed with"))
        })?;
        let size = dtype.size().cast_signed();
        let strides = match told.get_item("strides")?.filter(|own| !own.is_none()) {
            None => contiguous(&shape),
            Some(own) => {
                let own: Vec<isize> = own.extract()?;
                if own.len() != shape.len() {
                    return Err(PyTypeError::new_err(format!(
                        "__cuda_array_interface__ has {} strides for {} axes",
                        own.len(),
                        shape.len()
                    )));
                }
                let whole = |(&stride, &len): (&isize, &usize)| match len {
                    0 | 1 => Ok(0),
                    _ if stride % size == 0 => Ok(stride / size),
                    _ => Err(PyTypeError::new_err("the strides are no whole number of elements")),
                };
                own.iter().zip(&shape).map(whole).collect::<PyResult<_>>()?
            }
        };
        let index = match address {
            // An empty array may have no memory.
            0 => object
                .call_method0("__dlpack_device__")
                .and_then(|own| own.extract::<(i32, i32)>())
                .ok()
                .and_then(|own| usize::try_from(own.1).ok())
                .unwrap_or(0),
            _ => Device::of_address(address).map_err(|error| failed(py, &error))?.ok_or_else(
                || PyValueError::new_err("__cuda_array_interface__ has an address of no device"),
            )?,
        };
        let device = Device::new(index).map_err(|error| failed(py, &error))?;
        let stream = match told.get_item("stream")?.filter(|own| !own.is_none()) {
            Some(own) => stream_of(&device, own.extract()?),
            None => device.default_stream(),
        };
        let has_empty =
            module(&object.get_type()).is_ok_and(|own| own.hasattr("empty").unwrap_or(false));
        let how = if has_empty { How::Dictionary } else { How::Capsule };
        Ok(Self {
            object: object.clone(),
            how,
            device,
            dtype,
            address,
            shape,
            strides,
            stream,
            kept: None,
            is_read_only,
        })
    }

    /// The stream that it is used on.
    pub(crate) fn stream(&self) -> &Stream {
        &self.stream
    }

    pub(crate) fn view(&self) -> Result<DeviceView<'static>, Error> {
        let Self { device, dtype, address, shape, strides, .. } = self;
        // SAFETY: what the library says of its array, which it keeps until what is launched on its stream is done.
        unsafe { DeviceView::from_raw(device, *dtype, *address, shape, strides) }
    }

    /// The array as a place for results.
    pub(crate) fn place(&self) -> PyResult<DeviceViewMut<'static>> {
        if self.is_read_only {
            return Err(PyValueError::new_err("out is read-only"));
        }
        let Self { device, dtype, address, shape, strides, .. } = self;
        // SAFETY: as above; the caller gives it to be written to.
        unsafe { DeviceViewMut::from_raw(device, *dtype, *address, shape, strides) }
            .map_err(|error| failed(self.object.py(), &error))
    }

    /// A new array of the same library, on the same device.
    pub(crate) fn fresh(
        &self,
        dtype: DType,
        shape: &[usize],
        stream: &Stream,
    ) -> PyResult<Fresh<'py>> {
        let py = self.object.py();
        let kind = self.object.get_type();
        match self.how {
            How::Exchange(table) => {
                let (Some(allocate), Some(element)) = (table.allocate, Element::of(dtype)) else {
                    return Err(unreadable());
                };
                let mut sizes: Vec<i64> = shape.iter().map(|&own| own as i64).collect();
                let mut wanted = Tensor {
                    place: Place { kind: CUDA, index: self.device.index() as i32 },
                    rank: sizes.len() as i32,
                    element,
                    shape: sizes.as_mut_ptr(),
                    ..Tensor::EMPTY
                };
                let (mut made, mut message) = (std::ptr::null_mut(), String::new());
                // SAFETY: a tensor without data says what is wanted; places for the result and for a message.
                let code = unsafe {
                    let told = (&raw mut message).cast();
                    allocate(&raw mut wanted, &raw mut made, told, said)
                };
                if code != 0 || made.is_null() {
                    return Err(match PyErr::take(py) {
                        Some(error) => error,
                        None if message.contains("out of memory") => {
                            PyMemoryError::new_err(message)
                        }
                        None => PyRuntimeError::new_err(message),
                    });
                }
                // SAFETY: the library's own new array.
                let tensor = unsafe { (*made).tensor };
                let address = (tensor.data as u64).wrapping_add(tensor.offset);
                Ok(Fresh { address, what: What::Exchange(Some(Kept::Versioned(made)), table) })
            }
            How::Dictionary => {
                let made =
                    module(&kind)?.call_method1("empty", (shape.to_vec(), spelled(dtype)))?;
                let told = made.getattr(intern!(py, "__cuda_array_interface__"))?;
                let (address, _): (u64, bool) = told.get_item("data")?.extract()?;
                Ok(Fresh { address, what: What::Object(made) })
            }
            How::Capsule => {
                let made = stream.new_array(dtype, shape).map_err(|error| failed(py, &error))?;
                let receiver = receiver(&kind)?;
                Ok(Fresh { address: made.address(), what: What::Own(made, receiver) })
            }
        }
    }
}

/// Takes an error of a library's allocator.
unsafe extern "C" fn said(context: *mut c_void, _kind: *const c_char, message: *const c_char) {
    if !message.is_null() && !context.is_null() {
        // SAFETY: the text that `fresh` gave a pointer to, and a message that ends in a zero.
        unsafe {
            *context.cast::<String>() = CStr::from_ptr(message).to_string_lossy().into_owned();
        }
    }
}

/// A new array of another library that nobody has yet.
pub(crate) struct Fresh<'py> {
    pub(crate) address: u64,
    what: What<'py>,
}

enum What<'py> {
    Exchange(Option<Kept>, &'static Exchange),
    Object(Bound<'py, PyAny>),
    Own(DeviceArray, Bound<'py, PyAny>),
}

impl<'py> Fresh<'py> {
    /// It, as an object of the library.
    pub(crate) fn object(self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match self.what {
            What::Object(object) => Ok(object),
            What::Exchange(mut kept, table) => {
                let Some(Kept::Versioned(own)) = kept else { return Err(unreadable()) };
                let Some(to_python) = table.to_python else { return Err(unreadable()) };
                let mut made = std::ptr::null_mut();
                // The object is the owner from now on, also where it is not made.
                std::mem::forget(kept.take());
                // SAFETY: the array that the table's own allocator made, and a place for a new reference.
                unsafe {
                    if to_python(own, &raw mut made) != 0 {
                        return Err(PyErr::fetch(py));
                    }
                    Bound::from_owned_ptr_or_err(py, made.cast())
                }
            }
            What::Own(array, receiver) => {
                let lent = Bound::new(py, Lent { array })?;
                receiver.call1((lent,))
            }
        }
    }
}

/// Memory of ours that another library takes over by `DLPack`.
#[pyclass(frozen, module = "simulcast._simulcast")]
struct Lent {
    array: DeviceArray,
}

/// What belongs to a capsule.
struct Owner {
    _array: DeviceArray,
    shape: Vec<i64>,
    strides: Vec<i64>,
}

unsafe extern "C" fn release(own: *mut Managed) {
    // SAFETY: the structure and its owner were boxed by `__dlpack__`, and are deleted once.
    unsafe {
        drop(Box::from_raw((*own).context.cast::<Owner>()));
        drop(Box::from_raw(own));
    }
}

unsafe extern "C" fn forgotten(capsule: *mut ffi::PyObject) {
    // SAFETY: a capsule that nobody took the structure of still has it.
    unsafe {
        let own = ffi::PyCapsule_GetPointer(capsule, c"dltensor".as_ptr());
        if own.is_null() {
            ffi::PyErr_Clear();
        } else {
            release(own.cast());
        }
    }
}

#[pymethods]
impl Lent {
    fn __dlpack_device__(&self) -> (i32, usize) {
        (CUDA, self.array.device().index())
    }

    #[pyo3(signature = (*, stream = None, **_options))]
    fn __dlpack__<'py>(
        &self,
        py: Python<'py>,
        stream: Option<i64>,
        _options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let array = &self.array;
        if stream != Some(-1) {
            let number = stream.and_then(|own| usize::try_from(own).ok()).unwrap_or(0);
            let other = stream_of(array.device(), number);
            array.used_on(&other).map_err(|error| failed(py, &error))?;
        }
        let element = Element::of(array.dtype()).ok_or_else(unreadable)?;
        let mut owner = Box::new(Owner {
            _array: array.clone(),
            shape: array.shape().iter().map(|&own| own as i64).collect(),
            strides: array.strides().iter().map(|&own| own as i64).collect(),
        });
        let tensor = Tensor {
            data: std::ptr::without_provenance_mut(array.address() as usize),
            place: Place { kind: CUDA, index: array.device().index() as i32 },
            rank: owner.shape.len() as i32,
            element,
            shape: owner.shape.as_mut_ptr(),
            strides: owner.strides.as_mut_ptr(),
            offset: 0,
        };
        let context = Box::into_raw(owner).cast();
        let own = Box::into_raw(Box::new(Managed { tensor, context, deleter: Some(release) }));
        // SAFETY: a boxed structure, which the capsule's destructor or the library that takes it deletes.
        unsafe {
            let made = ffi::PyCapsule_New(own.cast(), c"dltensor".as_ptr(), Some(forgotten));
            if made.is_null() {
                release(own);
            }
            Bound::from_owned_ptr_or_err(py, made)
        }
    }
}

/// The library of a class, which is imported if its arrays are there.
fn module<'py>(kind: &Bound<'py, PyType>) -> PyResult<Bound<'py, PyModule>> {
    let py = kind.py();
    let name = kind.module()?.to_string();
    let root = match name.split('.').next().unwrap_or_default() {
        // JAX's arrays are of the library below it.
        "jaxlib" => "jax",
        root => root,
    };
    let modules = py.import("sys")?.getattr(intern!(py, "modules"))?;
    let own = modules
        .get_item(root)
        .map_err(|_| PyTypeError::new_err(format!("the library of {kind} is not imported")))?;
    Ok(own.cast_into::<PyModule>()?)
}

/// The function of a library that takes an array by `DLPack`.
fn receiver<'py>(kind: &Bound<'py, PyType>) -> PyResult<Bound<'py, PyAny>> {
    let own = module(kind)?;
    let inner = |path: &[&str]| {
        let module = path.iter().try_fold(own.clone().into_any(), |own, name| own.getattr(*name));
        module.and_then(|own| own.getattr("from_dlpack"))
    };
    let found = [&[][..], &["numpy"], &["dlpack"], &["utils", "dlpack"]];
    found.into_iter().find_map(|path| inner(path).ok()).ok_or_else(|| {
        PyTypeError::new_err(format!(
            "results do not become a {kind}: its library has no from_dlpack, so pass out="
        ))
    })
}

/// The number of the stream that a library works on now, of one that says so.
fn current_stream(object: &Bound<'_, PyAny>, index: usize) -> PyResult<Option<usize>> {
    let kind = object.get_type();
    if !kind.hasattr("data_ptr")? {
        return Ok(None);
    }
    let Ok(cuda) = module(&kind).and_then(|own| own.getattr("cuda")) else { return Ok(None) };
    let stream = cuda.call_method1("current_stream", (index,))?;
    stream.getattr("cuda_stream")?.extract().map(Some)
}

/// Strides of rows that lie one after the other.
pub(crate) fn contiguous(shape: &[usize]) -> Vec<isize> {
    let mut strides = vec![1_isize; shape.len()];
    for at in (1..shape.len()).rev() {
        strides[at - 1] = strides[at].wrapping_mul(shape[at].max(1).cast_signed());
    }
    strides
}

/// A type by the text of an array interface.
fn named(text: &str) -> Option<DType> {
    let (order, own) = text.split_at_checked(1)?;
    if !matches!(order, "<" | "|" | "=") {
        return None;
    }
    DType::ALL.iter().copied().find(|&dtype| spelled(dtype) == own)
}

/// A type as array interfaces spell it.
const fn spelled(dtype: DType) -> &'static str {
    match dtype {
        DType::Bool => "b1",
        DType::I8 => "i1",
        DType::I16 => "i2",
        DType::I32 => "i4",
        DType::I64 => "i8",
        DType::U8 => "u1",
        DType::U16 => "u2",
        DType::U32 => "u4",
        DType::U64 => "u8",
        DType::F16 => "f2",
        DType::F32 => "f4",
        DType::F64 => "f8",
        DType::C64 => "c8",
        DType::C128 => "c16",
        // No interface has a name for it, and text never comes here.
        DType::Bf16 | DType::String => "bfloat16",
    }
}

fn unreadable() -> PyErr {
    PyTypeError::new_err("the array cannot be used on a device")
}

/// All arrays of a call for what they share: `objects` as a tuple, for errors.
pub(crate) fn described(own: &Array<'_>) -> String {
    format!("{} on device {}", own.object.get_type(), own.device.index())
}
