//! The driver's functions, loaded when the first is needed: the crate is built, and its tests start, without CUDA.
//!
//! # Safety
//!
//! The signatures below are those of the driver's C interface, which keeps them under these names; that is all that
//! makes a call well-typed. What a call does with its arguments is the caller's to promise, at each `unsafe` block.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::sync::OnceLock;

use libloading::Library;

use crate::error::Error;

pub(crate) type Context = *mut c_void;
pub(crate) type RawStream = *mut c_void;
pub(crate) type Module = *mut c_void;
pub(crate) type Function = *mut c_void;
pub(crate) type Event = *mut c_void;

const OUT_OF_MEMORY: c_int = 2;

/// An attribute of a device.
pub(crate) const MULTIPROCESSORS: c_int = 16;
pub(crate) const CAPABILITY_MAJOR: c_int = 75;
pub(crate) const CAPABILITY_MINOR: c_int = 76;
/// An attribute of a pool: the bytes that it keeps.
pub(crate) const RELEASE_THRESHOLD: c_int = 4;
/// An attribute of a pointer.
pub(crate) const POINTER_DEVICE: c_int = 9;

macro_rules! functions {
    ($($name:ident = $symbol:literal($($argument:ty),*);)*) => {
        /// The driver, loaded.
        pub(crate) struct Driver {
            $(pub(crate) $name: unsafe extern "C" fn($($argument),*) -> c_int,)*
            /// The process that loaded it.
            process: u32,
            _library: Library,
        }

        impl Driver {
            fn of(library: Library) -> Result<Self, libloading::Error> {
                // SAFETY: functions of the driver's C interface under their own names.
                unsafe {
                    Ok(Self {
                        $($name: *library.get(concat!($symbol, "\0").as_bytes())?,)*
                        process: std::process::id(),
                        _library: library,
                    })
                }
            }
        }
    };
}

functions! {
    init = "cuInit"(c_uint);
    driver_version = "cuDriverGetVersion"(*mut c_int);
    device_count = "cuDeviceGetCount"(*mut c_int);
    device_get = "cuDeviceGet"(*mut c_int, c_int);
    device_name = "cuDeviceGetName"(*mut c_char, c_int, c_int);
    device_memory = "cuDeviceTotalMem_v2"(*mut usize, c_int);
    device_attribute = "cuDeviceGetAttribute"(*mut c_int, c_int, c_int);
    context_retain = "cuDevicePrimaryCtxRetain"(*mut Context, c_int);
    context_current = "cuCtxGetCurrent"(*mut Context);
    context_push = "cuCtxPushCurrent_v2"(Context);
    context_pop = "cuCtxPopCurrent_v2"(*mut Context);
    context_synchronize = "cuCtxSynchronize"();
    module_load = "cuModuleLoadData"(*mut Module, *const c_void);
    module_function = "cuModuleGetFunction"(*mut Function, Module, *const c_char);
    launch = "cuLaunchKernel"(
        Function, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, RawStream, *mut *mut c_void, *mut *mut c_void
    );
    allocate = "cuMemAllocAsync"(*mut u64, usize, RawStream);
    free = "cuMemFreeAsync"(u64, RawStream);
    memory_info = "cuMemGetInfo_v2"(*mut usize, *mut usize);
    upload = "cuMemcpyHtoDAsync_v2"(u64, *const c_void, usize, RawStream);
    download = "cuMemcpyDtoHAsync_v2"(*mut c_void, u64, usize, RawStream);
    copy = "cuMemcpyDtoDAsync_v2"(u64, u64, usize, RawStream);
    pool = "cuDeviceGetDefaultMemPool"(*mut *mut c_void, c_int);
    pool_set = "cuMemPoolSetAttribute"(*mut c_void, c_int, *const c_void);
    stream_create = "cuStreamCreate"(*mut RawStream, c_uint);
    stream_destroy = "cuStreamDestroy_v2"(RawStream);
    stream_synchronize = "cuStreamSynchronize"(RawStream);
    stream_wait = "cuStreamWaitEvent"(RawStream, Event, c_uint);
    event_create = "cuEventCreate"(*mut Event, c_uint);
    event_record = "cuEventRecord"(Event, RawStream);
    event_query = "cuEventQuery"(Event);
    event_synchronize = "cuEventSynchronize"(Event);
    event_elapsed = "cuEventElapsedTime"(*mut f32, Event, Event);
    event_destroy = "cuEventDestroy_v2"(Event);
    pointer_attribute = "cuPointerGetAttribute"(*mut c_void, c_int, u64);
    error_name = "cuGetErrorName"(c_int, *mut *const c_char);
    error_text = "cuGetErrorString"(c_int, *mut *const c_char);
}

/// Loads the first of some libraries that is there; what the system said of the others, otherwise.
pub(crate) fn first_of<'n>(
    names: impl IntoIterator<Item = &'n std::ffi::OsStr>,
) -> Result<Library, Vec<String>> {
    let mut tried = Vec::new();
    for name in names {
        // SAFETY: the driver and its compiler run no code that harms when they are loaded.
        match unsafe { Library::new(name) } {
            Ok(library) => return Ok(library),
            Err(error) => tried.push(error.to_string()),
        }
    }
    Err(tried)
}

/// The driver, which is loaded and initialised once.
pub(crate) fn driver() -> Result<&'static Driver, Error> {
    static DRIVER: OnceLock<Result<Driver, Error>> = OnceLock::new();
    let loaded = DRIVER.get_or_init(|| {
        let names: &[&str] = if cfg!(windows) {
            &["nvcuda.dll"]
        } else {
            &["libcuda.so.1", "libcuda.so", "/usr/local/nvidia/lib64/libcuda.so.1"]
        };
        let library = first_of(names.iter().map(std::ffi::OsStr::new))
            .map_err(|tried| Error::NoDriver { tried })?;
        let driver = Driver::of(library)
            .map_err(|error| Error::NoDriver { tried: vec![format!("an old driver: {error}")] })?;
        // SAFETY: the first call, without flags.
        match unsafe { (driver.init)(0) } {
            0 => Ok(driver),
            // No device: the driver has nothing to drive.
            100 => Err(Error::NoDevice),
            code => Err(driver.failed("cuInit", code)),
        }
    });
    let driver = loaded.as_ref().map_err(Clone::clone)?;
    if driver.process == std::process::id() { Ok(driver) } else { Err(Error::Forked) }
}

impl Driver {
    /// The error of a call that gave a code.
    #[cold]
    pub(crate) fn failed(&self, call: &'static str, code: c_int) -> Error {
        let text = |get: unsafe extern "C" fn(c_int, *mut *const c_char) -> c_int| {
            let mut text = std::ptr::null();
            // SAFETY: a place for a text that the driver keeps.
            unsafe {
                if get(code, &raw mut text) != 0 || text.is_null() {
                    return String::new();
                }
                CStr::from_ptr(text).to_string_lossy().into_owned()
            }
        };
        let message = format!("{}: {}", text(self.error_name), text(self.error_text));
        Error::Driver { call, code, message }
    }

    /// Nothing, or the error of a call that gave a code.
    #[inline]
    pub(crate) fn check(&self, call: &'static str, code: c_int) -> Result<(), Error> {
        if code == 0 { Ok(()) } else { Err(self.failed(call, code)) }
    }

    /// The error of an allocation.
    #[cold]
    pub(crate) fn not_allocated(&self, asked: usize, code: c_int) -> Error {
        if code != OUT_OF_MEMORY {
            return self.failed("cuMemAllocAsync", code);
        }
        let (mut free, mut total) = (0, 0);
        // SAFETY: two places; a context is current.
        unsafe { (self.memory_info)(&raw mut free, &raw mut total) };
        Error::OutOfMemory { asked, free, total }
    }
}
