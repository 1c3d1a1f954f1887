//! Devices, their streams and their memory.
//!
//! # Safety
//!
//! Handles (contexts, streams, events, functions) come from the driver and are given back to it once, by the `Drop` of
//! the one value that has them. Every call is made with the device's own context current, which [`Device::enter`] sees
//! to. Memory is freed in the order of the stream that it was made on, after everything that was launched there;
//! what another stream does with an array, that stream does after an event which this one recorded, and memory that
//! was seen by another stream is freed after the device has done all its work.

use std::collections::HashMap;
use std::ffi::{CStr, c_void};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use simulcast::{AnyArray, AnyView, DType};

use crate::cache::Cache;
use crate::driver::{
    CAPABILITY_MAJOR, CAPABILITY_MINOR, Context, Driver, Event, Function, MULTIPROCESSORS,
    POINTER_DEVICE, RELEASE_THRESHOLD, RawStream, driver,
};
use crate::error::Error;
use crate::launch::Limits;
use crate::nvrtc::{Target, compiler};
use crate::plan::{bytes_of, contiguous};
use crate::source::NAME;

/// What the driver says of an event that has not happened.
const NOT_READY: i32 = 600;

/// A device: a GPU that the driver knows. It is shared, and cheap to clone.
#[derive(Clone)]
pub struct Device(Arc<Shared>);

struct Shared {
    driver: &'static Driver,
    index: usize,
    context: Context,
    name: String,
    memory_bytes: usize,
    architecture: usize,
    driver_version: i32,
    limits: Limits,
    cache: Cache,
    kernels: RwLock<HashMap<String, Kernel>>,
}

// SAFETY: a context may be current in any thread, and in several at once.
unsafe impl Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}

/// A kernel that is loaded, as long as the process lives.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kernel(Function);

// SAFETY: a function may be launched from any thread.
unsafe impl Send for Kernel {}
// SAFETY: as above.
unsafe impl Sync for Kernel {}

/// Makes the context that was current before current again.
struct Entered<'d> {
    driver: &'d Driver,
    is_pushed: bool,
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        if self.is_pushed {
            let mut context = std::ptr::null_mut();
            // SAFETY: the context that was pushed.
            unsafe { (self.driver.context_pop)(&raw mut context) };
        }
    }
}

impl Device {
    /// How many devices there are.
    ///
    /// # Errors
    ///
    /// Where there is no driver, or none of its devices is visible.
    pub fn count() -> Result<usize, Error> {
        let driver = driver()?;
        let mut count = 0;
        // SAFETY: a place.
        driver.check("cuDeviceGetCount", unsafe { (driver.device_count)(&raw mut count) })?;
        match usize::try_from(count) {
            Ok(0) | Err(_) => Err(Error::NoDevice),
            Ok(count) => Ok(count),
        }
    }

    /// All devices.
    ///
    /// # Errors
    ///
    /// Where there is none, or one cannot be used.
    pub fn all() -> Result<Vec<Self>, Error> {
        (0..Self::count()?).map(Self::new).collect()
    }

    /// A device by its number, from 0 on. The context is the driver's primary one, which other libraries use too.
    ///
    /// # Errors
    ///
    /// Where there is no driver, or no such device.
    pub fn new(index: usize) -> Result<Self, Error> {
        static DEVICES: Mutex<Vec<Device>> = Mutex::new(Vec::new());
        // A process that was forked is told so, whatever was made before.
        driver()?;
        let mut devices = DEVICES.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = devices.iter().find(|own| own.0.index == index) {
            return Ok(known.clone());
        }
        let made = Self::open(index)?;
        devices.push(made.clone());
        Ok(made)
    }

    fn open(index: usize) -> Result<Self, Error> {
        let (driver, count) = (driver()?, Self::count()?);
        let Some(number) = i32::try_from(index).ok().filter(|_| index < count) else {
            return Err(Error::DeviceIndex { index, count });
        };
        let (mut device, mut context, mut pool) = (0, std::ptr::null_mut(), std::ptr::null_mut());
        let (mut name, mut bytes, mut version) = ([0_u8; 256], 0, 0);
        let mut attributes = [0; 3];
        // SAFETY: places for what is asked for, and the size of the name's.
        unsafe {
            driver.check("cuDeviceGet", (driver.device_get)(&raw mut device, number))?;
            let place = name.as_mut_ptr().cast();
            driver.check("cuDeviceGetName", (driver.device_name)(place, 255, device))?;
            driver.check("cuDeviceTotalMem", (driver.device_memory)(&raw mut bytes, device))?;
            driver.check("cuDriverGetVersion", (driver.driver_version)(&raw mut version))?;
            let wanted = [MULTIPROCESSORS, CAPABILITY_MAJOR, CAPABILITY_MINOR];
            for (attribute, which) in attributes.iter_mut().zip(wanted) {
                let code = (driver.device_attribute)(attribute, which, device);
                driver.check("cuDeviceGetAttribute", code)?;
            }
            let retained = (driver.context_retain)(&raw mut context, device);
            driver.check("cuDevicePrimaryCtxRetain", retained)?;
            driver.check("cuDeviceGetDefaultMemPool", (driver.pool)(&raw mut pool, device))?;
            // Memory that was freed serves the next allocation: the system is not asked each time.
            let keep = u64::MAX;
            let code = (driver.pool_set)(pool, RELEASE_THRESHOLD, (&raw const keep).cast());
            driver.check("cuMemPoolSetAttribute", code)?;
        }
        let name = CStr::from_bytes_until_nul(&name).unwrap_or_default();
        let [multiprocessors, major, minor] =
            attributes.map(|own| usize::try_from(own).unwrap_or(0));
        Ok(Self(Arc::new(Shared {
            driver,
            index,
            context,
            name: name.to_string_lossy().into_owned(),
            memory_bytes: bytes,
            architecture: 10 * major + minor,
            driver_version: version,
            limits: Limits::new(multiprocessors),
            cache: Cache::of_user(),
            kernels: RwLock::default(),
        })))
    }

    /// Its number.
    #[must_use]
    pub fn index(&self) -> usize {
        self.0.index
    }

    /// Its name, such as `NVIDIA H200`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// The bytes of its memory.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.0.memory_bytes
    }

    /// The bytes that are free now.
    ///
    /// # Errors
    ///
    /// Where the driver fails.
    pub fn free_bytes(&self) -> Result<usize, Error> {
        let (_entered, driver) = (self.enter()?, self.0.driver);
        let (mut free, mut total) = (0, 0);
        // SAFETY: two places.
        let code = unsafe { (driver.memory_info)(&raw mut free, &raw mut total) };
        driver.check("cuMemGetInfo", code)?;
        Ok(free)
    }

    /// Its architecture: 90 for compute capability 9.0.
    #[must_use]
    pub fn architecture(&self) -> usize {
        self.0.architecture
    }

    /// How many multiprocessors it has.
    #[must_use]
    pub fn multiprocessors(&self) -> usize {
        self.0.limits.multiprocessors
    }

    /// The version of CUDA that the driver has, such as (13, 0).
    #[must_use]
    pub fn cuda_version(&self) -> (i32, i32) {
        (self.0.driver_version / 1000, self.0.driver_version % 1000 / 10)
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.0.limits
    }

    pub(crate) fn driver(&self) -> &'static Driver {
        self.0.driver
    }

    /// Makes the device's context current, until the value is dropped.
    #[inline]
    pub(crate) fn enter(&self) -> Result<impl Drop + use<>, Error> {
        let driver = driver()?;
        let mut current = std::ptr::null_mut();
        // SAFETY: a place; then the device's own context.
        let is_pushed = unsafe {
            driver.check("cuCtxGetCurrent", (driver.context_current)(&raw mut current))?;
            let is_other = current != self.0.context;
            if is_other {
                driver.check("cuCtxPushCurrent", (driver.context_push)(self.0.context))?;
            }
            is_other
        };
        Ok(Entered { driver, is_pushed })
    }

    /// Waits until the device has done all that was launched.
    ///
    /// # Errors
    ///
    /// Where the driver fails, also by an earlier launch.
    pub fn synchronize(&self) -> Result<(), Error> {
        let _entered = self.enter()?;
        // SAFETY: the device's context is current.
        self.0.driver.check("cuCtxSynchronize", unsafe { (self.0.driver.context_synchronize)() })
    }

    /// The kernel of a text, from memory, from disk, or compiled.
    pub(crate) fn kernel(&self, text: &str) -> Result<Kernel, Error> {
        let known = self.0.kernels.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(&kernel) = known.get(text) {
            return Ok(kernel);
        }
        drop(known);
        let key = format!(
            "simulcast-cuda {}\ndriver {}\nsm_{}\n{text}",
            env!("CARGO_PKG_VERSION"),
            self.0.driver_version,
            self.0.architecture
        );
        // A file that is whole and is no kernel all the same is replaced as one that is damaged.
        let kept = self.0.cache.get(&key).and_then(|code| self.loaded(&code).ok());
        let kernel = match kept {
            Some(kernel) => kernel,
            None => {
                let major = usize::try_from(self.0.driver_version / 1000).unwrap_or(0);
                let compiler = compiler(major)?;
                let target: Target = compiler.target(self.0.architecture)?;
                let code = compiler.compiled(text, target)?;
                let kernel = self.loaded(&code)?;
                self.0.cache.put(&key, &code);
                kernel
            }
        };
        let mut kernels = self.0.kernels.write().unwrap_or_else(PoisonError::into_inner);
        Ok(*kernels.entry(text.to_owned()).or_insert(kernel))
    }

    /// A kernel of some code; modules stay as long as the process.
    fn loaded(&self, code: &[u8]) -> Result<Kernel, Error> {
        let (_entered, driver) = (self.enter()?, self.0.driver);
        let (mut module, mut function) = (std::ptr::null_mut(), std::ptr::null_mut());
        // PTX is text, which ends in a zero; NVRTC writes one, and a file of machine code says its own length.
        let name = std::ffi::CString::new(NAME).unwrap_or_default();
        // SAFETY: code that the compiler made, and the name of the function in it.
        unsafe {
            driver.check(
                "cuModuleLoadData",
                (driver.module_load)(&raw mut module, code.as_ptr().cast()),
            )?;
            let found = (driver.module_function)(&raw mut function, module, name.as_ptr());
            driver.check("cuModuleGetFunction", found)?;
        }
        Ok(Kernel(function))
    }

    /// A new stream: what is launched on it runs in order, beside what other streams run.
    ///
    /// # Errors
    ///
    /// Where the driver fails.
    pub fn stream(&self) -> Result<Stream, Error> {
        let (_entered, driver) = (self.enter()?, self.0.driver);
        let mut raw = std::ptr::null_mut();
        // SAFETY: a place; 1 says that it does not wait for the default stream.
        driver.check("cuStreamCreate", unsafe { (driver.stream_create)(&raw mut raw, 1) })?;
        Ok(Stream(Arc::new(OwnStream { device: self.clone(), raw, is_owned: true })))
    }

    /// The stream on which everything runs where no other is named.
    #[must_use]
    pub fn default_stream(&self) -> Stream {
        let raw = std::ptr::null_mut();
        Stream(Arc::new(OwnStream { device: self.clone(), raw, is_owned: false }))
    }

    /// A stream of another library.
    ///
    /// # Safety
    ///
    /// The handle is one of a stream of this device, or null for its default stream, and lives as long as the value and
    /// the arrays that are made on it.
    #[must_use]
    pub unsafe fn stream_from_raw(&self, raw: *mut c_void) -> Stream {
        Stream(Arc::new(OwnStream { device: self.clone(), raw, is_owned: false }))
    }

    /// The number of the device whose memory an address is; none where it is no device's.
    ///
    /// # Errors
    ///
    /// Where there is no driver.
    pub fn of_address(address: u64) -> Result<Option<usize>, Error> {
        let driver = driver()?;
        let mut index = -1_i32;
        // SAFETY: a place for a number; any address may be asked for.
        let code =
            unsafe { (driver.pointer_attribute)((&raw mut index).cast(), POINTER_DEVICE, address) };
        Ok(usize::try_from(index).ok().filter(|_| code == 0))
    }

    /// A copy of an array on the device.
    ///
    /// # Errors
    ///
    /// Text, and where the driver fails or memory is short.
    pub fn upload(&self, array: &AnyView<'_>) -> Result<DeviceArray, Error> {
        self.default_stream().upload(array)
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Device").field("index", &self.index()).field("name", &self.name()).finish()
    }
}

impl PartialEq for Device {
    fn eq(&self, other: &Self) -> bool {
        self.0.index == other.0.index
    }
}

impl Eq for Device {}

/// A stream of a device: what is launched on it runs in order.
#[derive(Clone)]
pub struct Stream(Arc<OwnStream>);

struct OwnStream {
    device: Device,
    raw: RawStream,
    is_owned: bool,
}

// SAFETY: a stream may be used from any thread.
unsafe impl Send for OwnStream {}
// SAFETY: as above.
unsafe impl Sync for OwnStream {}

impl Drop for OwnStream {
    fn drop(&mut self) {
        if self.is_owned
            && let Ok(_entered) = self.device.enter()
        {
            // SAFETY: a stream that was made here; the driver lets it finish.
            unsafe { (self.device.driver().stream_destroy)(self.raw) };
        }
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Stream").field(&self.0.device).field(&self.0.raw).finish()
    }
}

impl Stream {
    /// Its device.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.0.device
    }

    /// Its handle.
    #[must_use]
    #[inline]
    pub fn raw(&self) -> *mut c_void {
        self.0.raw
    }

    /// Waits until it has done all that was launched on it.
    ///
    /// # Errors
    ///
    /// Where the driver fails, also by an earlier launch.
    pub fn synchronize(&self) -> Result<(), Error> {
        let (_entered, driver) = (self.0.device.enter()?, self.0.device.driver());
        // SAFETY: its own handle.
        driver.check("cuStreamSynchronize", unsafe { (driver.stream_synchronize)(self.0.raw) })
    }

    /// What is launched on it from now on waits for what was launched on another stream until now.
    ///
    /// # Errors
    ///
    /// Where the driver fails.
    pub fn wait_for(&self, other: &Self) -> Result<(), Error> {
        if self.0.raw == other.0.raw {
            return Ok(());
        }
        let event = self.0.device.event()?;
        other.record(&event)?;
        let (_entered, driver) = (self.0.device.enter()?, self.0.device.driver());
        // SAFETY: both handles live; the event may be destroyed before it has happened.
        driver.check("cuStreamWaitEvent", unsafe { (driver.stream_wait)(self.0.raw, event.raw, 0) })
    }

    /// Notes on an event when all that was launched until now is done.
    ///
    /// # Errors
    ///
    /// Where the driver fails.
    pub fn record(&self, event: &Timestamp) -> Result<(), Error> {
        let (_entered, driver) = (self.0.device.enter()?, self.0.device.driver());
        // SAFETY: both handles live.
        driver.check("cuEventRecord", unsafe { (driver.event_record)(event.raw, self.0.raw) })
    }

    /// A copy of an array on the device. It returns when the array has been read.
    ///
    /// # Errors
    ///
    /// Text, and where the driver fails or memory is short.
    pub fn upload(&self, array: &AnyView<'_>) -> Result<DeviceArray, Error> {
        let dtype = array.dtype();
        if dtype == DType::String {
            return Err(Error::Text);
        }
        let made = self.new_array(dtype, array.shape())?;
        let is_plain = array.strides() == contiguous(array.shape()) && dtype != DType::Bool;
        let copied = (!is_plain).then(|| array.to_owned());
        let view = copied.as_ref().map_or_else(|| array.clone(), AnyArray::view);
        let bytes = made.memory.bytes;
        if bytes > 0 {
            let (_entered, driver) = (self.0.device.enter()?, self.0.device.driver());
            // SAFETY: as many bytes as the array has, contiguous, into memory of the same size; the stream is waited for
            // before the array may go.
            let code = unsafe {
                (driver.upload)(made.memory.address, view.as_ptr().cast(), bytes, self.0.raw)
            };
            driver.check("cuMemcpyHtoDAsync", code)?;
            self.synchronize()?;
        }
        Ok(made)
    }

    /// The driver's own copy between two arrays of as many bytes, which benchmarks measure against.
    ///
    /// # Errors
    ///
    /// Where the two are not of one size, and where the driver fails.
    #[doc(hidden)]
    pub fn copy_bytes(&self, from: &DeviceArray, to: &DeviceArray) -> Result<(), Error> {
        let bytes = from.memory.bytes;
        if bytes != to.memory.bytes {
            return Err(Error::Layout { shape: to.shape.clone(), given: bytes });
        }
        let (_entered, driver) = (self.0.device.enter()?, self.0.device.driver());
        // SAFETY: as many bytes as both have.
        let code =
            unsafe { (driver.copy)(to.memory.address, from.memory.address, bytes, self.0.raw) };
        driver.check("cuMemcpyDtoDAsync", code)
    }

    /// A new contiguous array, whose elements are anything until they are written.
    ///
    /// # Errors
    ///
    /// Text, and where memory is short.
    pub fn new_array(&self, dtype: DType, shape: &[usize]) -> Result<DeviceArray, Error> {
        if dtype == DType::String {
            return Err(Error::Text);
        }
        let bytes = bytes_of(shape, dtype)
            .ok_or_else(|| Error::Layout { shape: shape.to_vec(), given: dtype.size() })?;
        let memory = Arc::new(self.memory(bytes)?);
        let offset = 0;
        Ok(DeviceArray { memory, dtype, shape: shape.to_vec(), strides: contiguous(shape), offset })
    }

    pub(crate) fn memory(&self, bytes: usize) -> Result<Memory, Error> {
        let mut address = 0;
        if bytes > 0 {
            let (_entered, driver) = (self.0.device.enter()?, self.0.device.driver());
            // SAFETY: a place for an address.
            let code = unsafe { (driver.allocate)(&raw mut address, bytes, self.0.raw) };
            if code != 0 {
                return Err(driver.not_allocated(bytes, code));
            }
        }
        Ok(Memory { stream: self.clone(), address, bytes, is_seen: AtomicBool::new(false) })
    }

    /// Launches a kernel.
    ///
    /// # Safety
    ///
    /// The arguments are those of the kernel, and every array that it reads or writes by them is there until it has run.
    #[inline]
    pub(crate) unsafe fn launch(
        &self,
        kernel: Kernel,
        grid: [u32; 2],
        args: &mut [u8],
    ) -> Result<(), Error> {
        let driver = self.0.device.driver();
        let mut size = args.len();
        // Pointer and size of a buffer of arguments, then the end.
        let mut extra: [*mut c_void; 5] = [
            std::ptr::without_provenance_mut(1),
            args.as_mut_ptr().cast(),
            std::ptr::without_provenance_mut(2),
            (&raw mut size).cast(),
            std::ptr::null_mut(),
        ];
        let ([x, y], threads) = (grid, crate::source::THREADS);
        // SAFETY: the caller promises the arguments; the driver copies them before it returns.
        let code = unsafe {
            (driver.launch)(
                kernel.0,
                x,
                y,
                1,
                threads,
                1,
                1,
                0,
                self.0.raw,
                std::ptr::null_mut(),
                extra.as_mut_ptr(),
            )
        };
        driver.check("cuLaunchKernel", code)
    }
}

/// A point in the work of a stream, with its time.
pub struct Timestamp {
    device: Device,
    raw: Event,
}

// SAFETY: an event may be used from any thread.
unsafe impl Send for Timestamp {}
// SAFETY: as above.
unsafe impl Sync for Timestamp {}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Timestamp").field(&self.raw).finish()
    }
}

impl Drop for Timestamp {
    fn drop(&mut self) {
        if let Ok(_entered) = self.device.enter() {
            // SAFETY: an event that was made here.
            unsafe { (self.device.driver().event_destroy)(self.raw) };
        }
    }
}

impl Device {
    /// A point in time, to be [recorded](Stream::record).
    ///
    /// # Errors
    ///
    /// Where the driver fails.
    pub fn event(&self) -> Result<Timestamp, Error> {
        let (_entered, driver) = (self.enter()?, self.0.driver);
        let mut raw = std::ptr::null_mut();
        // SAFETY: a place.
        driver.check("cuEventCreate", unsafe { (driver.event_create)(&raw mut raw, 0) })?;
        Ok(Timestamp { device: self.clone(), raw })
    }
}

impl Timestamp {
    /// Whether all that it was recorded after is done. Nothing is waited for.
    ///
    /// # Errors
    ///
    /// Where the driver fails, also by an earlier launch.
    pub fn is_done(&self) -> Result<bool, Error> {
        let (_entered, driver) = (self.device.enter()?, self.device.driver());
        // SAFETY: its own handle.
        match unsafe { (driver.event_query)(self.raw) } {
            NOT_READY => Ok(false),
            code => driver.check("cuEventQuery", code).map(|()| true),
        }
    }

    /// Waits until all that it was recorded after is done.
    ///
    /// # Errors
    ///
    /// Where the driver fails, also by an earlier launch.
    pub fn synchronize(&self) -> Result<(), Error> {
        let (_entered, driver) = (self.device.enter()?, self.device.driver());
        // SAFETY: its own handle.
        driver.check("cuEventSynchronize", unsafe { (driver.event_synchronize)(self.raw) })
    }

    /// The seconds from one to another, both of which were recorded; waits for the later one.
    ///
    /// # Errors
    ///
    /// Where the driver fails.
    pub fn seconds_until(&self, later: &Self) -> Result<f64, Error> {
        let (_entered, driver) = (self.device.enter()?, self.device.driver());
        let mut milliseconds = 0.0;
        // SAFETY: both handles live, and a place.
        unsafe {
            driver.check("cuEventSynchronize", (driver.event_synchronize)(later.raw))?;
            let code = (driver.event_elapsed)(&raw mut milliseconds, self.raw, later.raw);
            driver.check("cuEventElapsedTime", code)?;
        }
        Ok(f64::from(milliseconds) / 1000.0)
    }
}

/// Memory of a device, which is freed in the order of its stream.
pub(crate) struct Memory {
    pub(crate) stream: Stream,
    pub(crate) address: u64,
    pub(crate) bytes: usize,
    /// Whether another stream uses it.
    is_seen: AtomicBool,
}

impl Drop for Memory {
    fn drop(&mut self) {
        let device = self.stream.device();
        if self.address == 0 {
            return;
        }
        if let Ok(_entered) = device.enter() {
            let driver = device.driver();
            // SAFETY: memory that was allocated on the stream; nothing on the device uses it after what was launched.
            unsafe {
                if self.is_seen.load(Ordering::Acquire) {
                    (driver.context_synchronize)();
                }
                (driver.free)(self.address, self.stream.raw());
            }
        }
    }
}

/// An array on a device, of any element type but text. A clone is the same memory.
#[derive(Clone)]
pub struct DeviceArray {
    memory: Arc<Memory>,
    dtype: DType,
    shape: Vec<usize>,
    strides: Vec<isize>,
    /// The bytes from the memory's start to the first element.
    offset: isize,
}

/// Read-only elements on a device, of this crate or of another library: an address, sizes and strides.
#[derive(Clone, Debug)]
pub struct DeviceView<'a> {
    pub(crate) device: Device,
    pub(crate) dtype: DType,
    pub(crate) address: u64,
    pub(crate) shape: Vec<usize>,
    pub(crate) strides: Vec<isize>,
    pub(crate) array: Option<&'a DeviceArray>,
}

/// Elements on a device that are written; no two of them share a place.
#[derive(Debug)]
pub struct DeviceViewMut<'a> {
    pub(crate) view: DeviceView<'a>,
}

impl DeviceArray {
    /// Its device.
    #[must_use]
    pub fn device(&self) -> &Device {
        self.memory.stream.device()
    }

    /// The type of its elements.
    #[must_use]
    pub const fn dtype(&self) -> DType {
        self.dtype
    }

    /// The sizes.
    #[must_use]
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// How far apart neighbours are along each axis, in elements.
    #[must_use]
    pub fn strides(&self) -> &[isize] {
        &self.strides
    }

    /// The address of the first element on the device; the array keeps the memory.
    #[must_use]
    pub fn address(&self) -> u64 {
        self.memory.address.wrapping_add_signed(self.offset as i64)
    }

    /// A view of all of it.
    #[must_use]
    pub fn view(&self) -> DeviceView<'_> {
        DeviceView {
            device: self.device().clone(),
            dtype: self.dtype,
            address: self.address(),
            shape: self.shape.clone(),
            strides: self.strides.clone(),
            array: Some(self),
        }
    }

    /// A view of all of it, for writing; none where a clone shares the memory.
    #[must_use]
    pub fn view_mut(&mut self) -> Option<DeviceViewMut<'_>> {
        let is_alone = Arc::get_mut(&mut self.memory).is_some();
        is_alone.then(|| DeviceViewMut { view: self.view() })
    }

    /// The same elements with the axes in another order; none where `axes` is no order of them.
    #[must_use]
    pub fn permuted_axes(&self, axes: &[usize]) -> Option<Self> {
        let mut seen = vec![false; self.shape.len()];
        for &axis in axes {
            if std::mem::replace(seen.get_mut(axis)?, true) {
                return None;
            }
        }
        let is_order = axes.len() == self.shape.len();
        is_order.then(|| Self {
            shape: axes.iter().map(|&axis| self.shape[axis]).collect(),
            strides: axes.iter().map(|&axis| self.strides[axis]).collect(),
            ..self.clone()
        })
    }

    /// A copy on the host, once everything that makes it is done.
    ///
    /// # Errors
    ///
    /// Where the driver fails, also by an earlier launch.
    pub fn download(&self) -> Result<AnyArray, Error> {
        let stream = &self.memory.stream;
        if self.strides != contiguous(&self.shape) {
            return crate::copy_to(&self.view(), &self.shape, stream)?.download();
        }
        let (device, driver) = (self.device(), self.device().driver());
        let _entered = device.enter()?;
        let fill = |to: *mut u8, bytes: usize| -> Result<(), Error> {
            if bytes > 0 {
                // SAFETY: room for as many bytes as the array has; the stream is waited for.
                let code =
                    unsafe { (driver.download)(to.cast(), self.address(), bytes, stream.raw()) };
                driver.check("cuMemcpyDtoHAsync", code)?;
            }
            stream.synchronize()
        };
        crate::host::filled(self.dtype, &self.shape, fill)
    }

    /// That any stream may read the memory, all of whose elements are there: before it is freed, its device is waited for.
    pub fn used_on_any(&self) {
        self.memory.is_seen.store(true, Ordering::Release);
    }

    /// That another stream uses the memory, which waits for what its own stream did until now.
    ///
    /// # Errors
    ///
    /// Where the driver fails.
    pub fn used_on(&self, stream: &Stream) -> Result<(), Error> {
        if self.memory.stream.raw() != stream.raw() {
            self.used_on_any();
            stream.wait_for(&self.memory.stream)?;
        }
        Ok(())
    }
}

impl fmt::Debug for DeviceArray {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "DeviceArray {:?} of {} on device {}",
            self.shape,
            self.dtype,
            self.device().index()
        )
    }
}

impl DeviceView<'_> {
    /// A view of another library's memory; strides in elements.
    ///
    /// # Safety
    ///
    /// For every index within `shape`, the address moved by the index times the strides (times the size of an element)
    /// is aligned and holds a value of that type in memory that `device` can read, until all that is launched with the
    /// view is done.
    ///
    /// # Errors
    ///
    /// Where the strides are not one for each axis, or the sizes are more than memory has; and text.
    pub unsafe fn from_raw(
        device: &Device,
        dtype: DType,
        address: u64,
        shape: &[usize],
        strides: &[isize],
    ) -> Result<Self, Error> {
        if dtype == DType::String {
            return Err(Error::Text);
        }
        let fits = |shape: &[usize]| {
            let sizes: Vec<usize> = shape.iter().copied().filter(|&size| size != 0).collect();
            bytes_of(&sizes, dtype).is_some()
        };
        if shape.len() != strides.len() || !fits(shape) {
            return Err(Error::Layout { shape: shape.to_vec(), given: strides.len() });
        }
        Ok(Self {
            device: device.clone(),
            dtype,
            address,
            shape: shape.to_vec(),
            strides: strides.to_vec(),
            array: None,
        })
    }

    /// The type of the elements.
    #[must_use]
    pub const fn dtype(&self) -> DType {
        self.dtype
    }

    /// The sizes.
    #[must_use]
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// How far apart neighbours are along each axis, in elements.
    #[must_use]
    pub fn strides(&self) -> &[isize] {
        &self.strides
    }

    /// The device that it lies on.
    #[must_use]
    pub const fn device(&self) -> &Device {
        &self.device
    }

    /// The address of the first element in the order of indices.
    #[must_use]
    pub const fn address(&self) -> u64 {
        self.address
    }

    /// The bytes that it reaches: from the first address on, and up to the last.
    pub(crate) fn extent(&self) -> (u64, u64) {
        if self.shape.contains(&0) {
            return (self.address, self.address);
        }
        let size = self.dtype.size().cast_signed();
        let (mut low, mut high) = (0_isize, size);
        for (&len, &stride) in self.shape.iter().zip(&self.strides) {
            let far = stride.wrapping_mul(size).wrapping_mul(len.cast_signed() - 1);
            if far < 0 { low += far } else { high += far }
        }
        (
            self.address.wrapping_add_signed(low as i64),
            self.address.wrapping_add_signed(high as i64),
        )
    }
}

impl DeviceViewMut<'_> {
    /// A place for results in another library's memory; strides in elements.
    ///
    /// # Safety
    ///
    /// As [`DeviceView::from_raw`], of memory that `device` can write, and which nothing else reads or writes until
    /// what is launched with the view is done.
    ///
    /// # Errors
    ///
    /// As [`DeviceView::from_raw`], and where two elements share a place.
    pub unsafe fn from_raw(
        device: &Device,
        dtype: DType,
        address: u64,
        shape: &[usize],
        strides: &[isize],
    ) -> Result<Self, Error> {
        // SAFETY: the caller promises it.
        let view = unsafe { DeviceView::from_raw(device, dtype, address, shape, strides)? };
        if is_apart(shape, strides) { Ok(Self { view }) } else { Err(Error::RepeatedOut) }
    }
}

/// Whether no two elements share a place: every axis steps over all that the smaller ones reach.
pub(crate) fn is_apart(shape: &[usize], strides: &[isize]) -> bool {
    if shape.contains(&0) {
        return true;
    }
    let mut axes: Vec<(usize, usize)> = shape
        .iter()
        .zip(strides)
        .filter(|axis| *axis.0 != 1)
        .map(|(&size, stride)| (stride.unsigned_abs(), size))
        .collect();
    axes.sort_unstable();
    let mut reach = 0_usize;
    axes.iter().all(|&(stride, size)| {
        let apart = stride > reach;
        reach = reach.saturating_add(stride.saturating_mul(size - 1));
        apart
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_that_share_a_place_are_found() {
        assert!(is_apart(&[3, 4], &[4, 1]) && is_apart(&[3, 4], &[-1, 3]) && is_apart(&[], &[]));
        assert!(is_apart(&[3, 1], &[2, 0]) && is_apart(&[0, 2], &[0, 0]));
        assert!(!is_apart(&[3, 4], &[0, 1]) && !is_apart(&[3, 4], &[3, 1]));
    }

    #[test]
    fn without_a_driver_the_error_says_what_is_missing() {
        // On a machine with a device there is nothing to say.
        if let Err(error) = Device::count() {
            let text = error.to_string();
            assert!(text.contains("driver"), "{text}");
            assert!(!text.ends_with('.') && text.starts_with(char::is_lowercase), "{text}");
        }
    }
}
