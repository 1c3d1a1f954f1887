//! Arrays and views on a device, and the memory that they lie in.
//!
//! # Safety
//!
//! Memory is freed in the order of the stream that it was made on, after everything that was launched there; what
//! another stream does with an array, that stream does after an event which this one recorded, and memory that was seen
//! by another stream is freed after the device has done all its work.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use simulcast::{AnyArray, DType};

use crate::device::Device;
use crate::error::Error;
use crate::plan::{bytes_of, contiguous};
use crate::stream::Stream;

/// Memory of a device, which is freed in the order of its stream.
pub(crate) struct Memory {
    pub(crate) stream: Stream,
    pub(crate) address: u64,
    pub(crate) bytes: usize,
    /// Whether another stream uses it.
    is_seen: AtomicBool,
}

impl Memory {
    pub(crate) fn new(stream: Stream, address: u64, bytes: usize) -> Self {
        Self { stream, address, bytes, is_seen: AtomicBool::new(false) }
    }
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
    /// A contiguous array of all of some memory.
    pub(crate) fn new(memory: Memory, dtype: DType, shape: &[usize]) -> Self {
        let (memory, strides) = (Arc::new(memory), contiguous(shape));
        Self { memory, dtype, shape: shape.to_vec(), strides, offset: 0 }
    }

    pub(crate) fn memory(&self) -> &Memory {
        &self.memory
    }

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

    /// The type of the elements.
    #[must_use]
    pub const fn dtype(&self) -> DType {
        self.view.dtype
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
}
