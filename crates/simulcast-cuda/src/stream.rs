//! Streams of a device, what is launched on them, and points in time on them.
//!
//! # Safety
//!
//! As in [`device`](crate::device): a handle is given back once, and calls are made with the device's context current.

use std::ffi::c_void;
use std::fmt;
use std::sync::Arc;

use simulcast::{AnyArray, AnyView, DType};

use crate::array::{DeviceArray, Memory};
use crate::device::{Device, Kernel};
use crate::driver::{Event, RawStream};
use crate::error::Error;
use crate::plan::{bytes_of, contiguous};

/// What the driver says of an event that has not happened.
const NOT_READY: i32 = 600;

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
    pub(crate) fn new(device: Device, raw: RawStream, is_owned: bool) -> Self {
        Self(Arc::new(OwnStream { device, raw, is_owned }))
    }

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
        let bytes = made.memory().bytes;
        if bytes > 0 {
            let (_entered, driver) = (self.0.device.enter()?, self.0.device.driver());
            // SAFETY: as many bytes as the array has, contiguous, into memory of the same size; the stream is waited for
            // before the array may go.
            let code = unsafe {
                (driver.upload)(made.memory().address, view.as_ptr().cast(), bytes, self.0.raw)
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
        let bytes = from.memory().bytes;
        if bytes != to.memory().bytes {
            return Err(Error::Layout { shape: to.shape().to_vec(), given: bytes });
        }
        let (_entered, driver) = (self.0.device.enter()?, self.0.device.driver());
        // SAFETY: as many bytes as both have.
        let code =
            unsafe { (driver.copy)(to.memory().address, from.memory().address, bytes, self.0.raw) };
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
        Ok(DeviceArray::new(self.memory(bytes)?, dtype, shape))
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
        Ok(Memory::new(self.clone(), address, bytes))
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
        let (_entered, driver) = (self.enter()?, self.driver());
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
