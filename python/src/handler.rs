//! Large results: arrays of NumPy's whose memory is kept when they are freed.
//!
//! NumPy has a handler for each array's memory (NEP 49). Ours is set for as long as it takes to make
//! a large result, so that no other array has it; the array then owns its memory as any other does,
//! and is resized, pickled and freed as such. A handler that somebody else has set stays.

use std::alloc::{Layout, alloc, alloc_zeroed, dealloc, realloc};
use std::ffi::c_void;
use std::ptr::null_mut;

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

/// NumPy's `PyDataMem_Handler`.
#[repr(C)]
struct Handler {
    name: [u8; 127],
    version: u8,
    context: *mut c_void,
    malloc: unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void,
    calloc: unsafe extern "C" fn(*mut c_void, usize, usize) -> *mut c_void,
    realloc: unsafe extern "C" fn(*mut c_void, *mut c_void, usize) -> *mut c_void,
    free: unsafe extern "C" fn(*mut c_void, *mut c_void, usize),
}

// SAFETY: nobody writes to it, and its functions may be called from any thread.
unsafe impl Sync for Handler {}

static HANDLER: Handler = Handler {
    name: {
        let mut name = [0; 127];
        name.split_at_mut(9).0.copy_from_slice(b"simulcast");
        name
    },
    version: 1,
    context: null_mut(),
    malloc,
    calloc,
    realloc: resized,
    free,
};

/// What lies before an array's memory: its size. Large memory mostly begins 16 bytes after a page:
/// then an array begins at a line.
const BEFORE: usize = 48;

/// The layout of so many bytes for an array.
fn layout(bytes: usize) -> Option<Layout> {
    Layout::from_size_align(bytes.checked_add(BEFORE)?, 16).ok()
}

/// An array's memory in a block that was given for a layout, or nothing where there is none.
///
/// # Safety
///
/// The block is null, or of that layout, which is one of [`layout`]'s.
unsafe fn within(block: *mut u8, layout: Layout) -> *mut c_void {
    if block.is_null() {
        return null_mut();
    }
    // SAFETY: the block is larger than what lies before the array, and aligned for a size.
    unsafe {
        block.cast::<usize>().write(layout.size());
        block.add(BEFORE).cast()
    }
}

/// The block that an array's memory lies in, and its layout.
///
/// # Safety
///
/// One of the functions here gave it, and it was not freed.
unsafe fn around(memory: *mut c_void) -> Option<(*mut u8, Layout)> {
    // SAFETY: then it lies in a block that begins with its size.
    unsafe {
        let block = memory.cast::<u8>().sub(BEFORE);
        Some((block, Layout::from_size_align(block.cast::<usize>().read(), 16).ok()?))
    }
}

/// # Safety
///
/// As C's, in all of these.
unsafe extern "C" fn malloc(_: *mut c_void, bytes: usize) -> *mut c_void {
    // SAFETY: the layout has a size.
    layout(bytes).map_or(null_mut(), |layout| unsafe { within(alloc(layout), layout) })
}

unsafe extern "C" fn calloc(_: *mut c_void, count: usize, size: usize) -> *mut c_void {
    let layout = count.checked_mul(size).and_then(layout);
    // SAFETY: the layout has a size.
    layout.map_or(null_mut(), |layout| unsafe { within(alloc_zeroed(layout), layout) })
}

unsafe extern "C" fn resized(
    context: *mut c_void,
    memory: *mut c_void,
    bytes: usize,
) -> *mut c_void {
    if memory.is_null() {
        // SAFETY: as C's.
        return unsafe { malloc(context, bytes) };
    }
    // SAFETY: the memory is one of ours, and the new layout has a size.
    unsafe {
        match (around(memory), layout(bytes)) {
            (Some((block, old)), Some(new)) => within(realloc(block, old, new.size()), new),
            _ => null_mut(),
        }
    }
}

/// NumPy's own word on the size is not taken: arrays change what they are.
unsafe extern "C" fn free(_: *mut c_void, memory: *mut c_void, _: usize) {
    if memory.is_null() {
        return;
    }
    // SAFETY: the memory is one of ours.
    if let Some((block, layout)) = unsafe { around(memory) } {
        // SAFETY: as above.
        unsafe { dealloc(block, layout) };
    }
}

/// NumPy's `PyDataMem_SetHandler`.
type SetHandler = unsafe extern "C" fn(*mut ffi::PyObject) -> *mut ffi::PyObject;

/// What the numpy crate does not name of NumPy, and our handler for it.
struct Set {
    set: SetHandler,
    standard: *mut ffi::PyObject,
    own: Py<PyAny>,
}

// SAFETY: functions and objects that stay as long as NumPy does.
unsafe impl Send for Set {}
// SAFETY: as above.
unsafe impl Sync for Set {}

/// The places of `PyDataMem_SetHandler` and `PyDataMem_DefaultHandler` in NumPy's table of functions, which the numpy crate
/// does not name: <https://github.com/numpy/numpy/blob/main/numpy/_core/code_generators/numpy_api.py>.
const SET_HANDLER: usize = 304;
const DEFAULT_HANDLER: usize = 306;

impl Set {
    fn get(py: Python<'_>) -> PyResult<&'static Self> {
        static SET: PyOnceLock<Set> = PyOnceLock::new();
        SET.get_or_try_init(py, || {
            let module = py.import("numpy._core._multiarray_umath");
            let module = module.or_else(|_| py.import("numpy.core._multiarray_umath"))?;
            let capsule = module.getattr("_ARRAY_API")?;
            // SAFETY: NumPy's table of functions, which every version since 1.22 has these places of;
            // the handler is never freed.
            unsafe {
                let table = ffi::PyCapsule_GetPointer(capsule.as_ptr(), std::ptr::null());
                if table.is_null() {
                    return Err(PyErr::fetch(py));
                }
                let table = table.cast::<*mut c_void>();
                let handler = (&raw const HANDLER).cast_mut().cast();
                let own = ffi::PyCapsule_New(handler, c"mem_handler".as_ptr(), None);
                Ok(Self {
                    set: std::mem::transmute::<*mut c_void, SetHandler>(*table.add(SET_HANDLER)),
                    standard: *(*table.add(DEFAULT_HANDLER)).cast(),
                    own: Bound::from_owned_ptr_or_err(py, own)?.unbind(),
                })
            }
        })
    }

    /// Sets a handler, and gives back the one that was there.
    fn put<'py>(
        &self,
        py: Python<'py>,
        handler: *mut ffi::PyObject,
    ) -> PyResult<Bound<'py, PyAny>> {
        // SAFETY: a live capsule with a handler, and the interpreter is attached.
        unsafe { Bound::from_owned_ptr_or_err(py, (self.set)(handler)) }
    }
}

/// Makes an array whose memory is kept when it is freed.
pub(crate) fn keeping<T>(py: Python<'_>, make: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    // Where there is no such table, an array is as good as ever.
    let Ok(set) = Set::get(py) else { return make() };
    let before = set.put(py, set.own.as_ptr())?;
    if before.as_ptr() != set.standard {
        // Somebody else's.
        set.put(py, before.as_ptr())?;
        return make();
    }
    let made = make();
    set.put(py, before.as_ptr())?;
    made
}
