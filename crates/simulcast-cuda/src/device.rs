//! Devices, and the kernels that are loaded on them.
//!
//! # Safety
//!
//! Handles (contexts, streams, events, functions) come from the driver and are given back to it once, by the `Drop` of
//! the one value that has them. Every call is made with the device's own context current, which [`Device::enter`] sees
//! to.

use std::collections::HashMap;
use std::ffi::{CStr, c_void};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use simulcast::AnyView;

use crate::array::DeviceArray;
use crate::cache::Cache;
use crate::driver::{
    CAPABILITY_MAJOR, CAPABILITY_MINOR, Context, Driver, Function, MULTIPROCESSORS, POINTER_DEVICE,
    RELEASE_THRESHOLD, driver,
};
use crate::error::Error;
use crate::launch::Limits;
use crate::nvrtc::{Target, compiler};
use crate::source::NAME;
use crate::stream::Stream;

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
pub(crate) struct Kernel(pub(crate) Function);

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
        Ok(Stream::new(self.clone(), raw, true))
    }

    /// The stream on which everything runs where no other is named.
    #[must_use]
    pub fn default_stream(&self) -> Stream {
        let raw = std::ptr::null_mut();
        Stream::new(self.clone(), raw, false)
    }

    /// A stream of another library.
    ///
    /// # Safety
    ///
    /// The handle is one of a stream of this device, or null for its default stream, and lives as long as the value and
    /// the arrays that are made on it.
    #[must_use]
    pub unsafe fn stream_from_raw(&self, raw: *mut c_void) -> Stream {
        Stream::new(self.clone(), raw, false)
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

#[cfg(test)]
mod tests {
    use super::*;

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
