//! Programs of `simulcast` on NVIDIA GPUs, at the speed of device memory.
//!
//! ```no_run
//! use ndarray::array;
//! use simulcast::{AnyView, DType, TypedProgram};
//! use simulcast_cuda::{Device, OnDevice as _};
//!
//! let device = Device::new(0)?;
//! let program = TypedProgram::parse("x * scale", &[("x", DType::F32), ("scale", DType::F32)])?.on_device(&device);
//! let (x, scale) = (array![[1_f32, 2.0], [3.0, 4.0]], array![10_f32, 100.0]);
//! let (x, scale) = (device.upload(&AnyView::from(&x))?, device.upload(&AnyView::from(&scale))?);
//! let y = program.run(&[&x, &scale])?;
//! assert_eq!(y.download()?.typed::<f32>(), Some(array![[10_f32, 200.0], [30.0, 400.0]].view().into_dyn()));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A program is parsed, typed and cut into passes as on the host ([`simulcast::program::lowered`]); here each pass becomes one
//! kernel, written as CUDA C++ for the element types and the way in which its operands lie, and compiled by NVRTC when
//! it runs first. No size is part of a kernel. What was compiled is kept in memory and on disk.
//!
//! Nothing of CUDA is needed to build this crate: the driver (`libcuda`) and the compiler (`libnvrtc`) are loaded when
//! they are first used, and where one is missing the [`Error`] says which.
//!
//! ```text
//! body     the steps of a pass as a C++ function
//! loops    the fewest loops over some arrays
//! launch   which kernel for these loops, its arguments, its grid
//! source   the kernels' text
//! plan     all passes of a program, and the memory between them
//! ─────────────────────────────────────────────────────── no device up to here: tested by the host's compiler
//! cache    compiled kernels on disk
//! driver, nvrtc   what is loaded
//! device, stream, array   devices, what runs on them, what lies there
//! program, joint, parts  calls
//! ```
//!
//! # Values
//!
//! Results have the bits of the host's engine for arithmetic (`+ - * /`, square roots, comparisons, conversions,
//! integers, minima and maxima but for the sign of zeros), under every rule. Functions are those of CUDA's library,
//! within [`ULP_MAX`] units in the last place of the exact value; complex functions are computed in `f64`. A sum has one
//! order for a shape, a type and a device, whatever else runs: the same bits on every run, though not those of the
//! host. Sums of 16-bit floats are kept in `f32`.

#![cfg_attr(not(test), warn(clippy::panic, clippy::expect_used))]

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod array;
mod body;
mod cache;
mod device;
#[cfg(test)]
mod device_tests;
mod driver;
mod error;
mod host;
#[cfg(test)]
mod host_tests;
mod joint;
mod launch;
mod loops;
mod nvrtc;
mod parts;
mod plan;
mod program;
mod samples;
mod source;
mod stream;
mod tuning;

use simulcast::Rule;

pub use array::{DeviceArray, DeviceView, DeviceViewMut};
pub use device::Device;
pub use error::Error;
pub use joint::JointDeviceProgram;
pub use nvrtc::{Compiler, Target, add_compiler_folder};
pub use program::{DeviceProgram, OnDevice};
#[doc(hidden)]
pub use samples::{Sample, samples};
pub use stream::{Stream, Timestamp};

/// The most units in the last place that a function of real numbers is off, of `f32` and of `f64`; tests on a device
/// assert it against the host's functions, whose own bounds are part of it.
pub const ULP_MAX: f64 = 8.0;

/// The elements of an array in a larger shape, as an array of their own: NumPy's `broadcast_to`, copied.
///
/// # Errors
///
/// Where the shape is none that the array broadcasts to, memory is short, or the driver fails.
pub fn copy_to(
    array: &DeviceView<'_>,
    shape: &[usize],
    stream: &Stream,
) -> Result<DeviceArray, Error> {
    simulcast::resolve(Rule::To { target: shape }, &[array.shape()])?;
    let made = stream.new_array(array.dtype(), shape)?;
    let (from, to) = (program::layout(array), plan::Layout::fresh(shape));
    let pass = plan::copy(array.dtype(), &from, &to, stream.device().limits());
    program::run_one(pass, array, made.address(), stream)?;
    Ok(made)
}

/// The elements of an array into another, to whose shape they broadcast. The two share no memory.
///
/// # Errors
///
/// Where the shapes or types do not fit, two elements of `out` share a place, or the driver fails.
pub fn copy_into(
    array: &DeviceView<'_>,
    out: &mut DeviceViewMut<'_>,
    stream: &Stream,
) -> Result<(), Error> {
    let to = &out.view;
    program::check_out(to, array.dtype())?;
    simulcast::resolve(Rule::To { target: to.shape() }, &[array.shape()])?;
    if let Some(own) = to.array {
        own.used_on(stream)?;
    }
    let (from, layout) = (program::layout(array), program::layout(to));
    let pass = plan::copy(array.dtype(), &from, &layout, stream.device().limits());
    program::run_one(pass, array, to.address, stream)
}

/// The sum of an array to a shape that broadcasts to its own: the gradient of a broadcast.
///
/// # Errors
///
/// Where the shape does not broadcast to the array's, truths are summed, memory is short, or the driver fails.
pub fn sum_to(
    array: &DeviceView<'_>,
    shape: &[usize],
    stream: &Stream,
) -> Result<DeviceArray, Error> {
    let dtype = summed(array, shape)?;
    let made = stream.new_array(dtype, shape)?;
    let (from, to) = (program::layout(array), plan::Layout::fresh(shape));
    let pass = plan::sum_to(dtype, &from, &to, stream.device().limits());
    program::run_one(pass, array, made.address(), stream)?;
    Ok(made)
}

/// The sum of an array to the shape of another, which broadcasts to its own. The two share no memory.
///
/// # Errors
///
/// As [`sum_to`], and where the types differ or two elements of `out` share a place.
pub fn sum_into(
    array: &DeviceView<'_>,
    out: &mut DeviceViewMut<'_>,
    stream: &Stream,
) -> Result<(), Error> {
    let to = &out.view;
    let dtype = summed(array, to.shape())?;
    program::check_out(to, dtype)?;
    if let Some(own) = to.array {
        own.used_on(stream)?;
    }
    let (from, layout) = (program::layout(array), program::layout(to));
    let pass = plan::sum_to(dtype, &from, &layout, stream.device().limits());
    program::run_one(pass, array, to.address, stream)
}

/// The type of the sum of an array to a shape.
fn summed(array: &DeviceView<'_>, shape: &[usize]) -> Result<simulcast::DType, Error> {
    simulcast::resolve(Rule::To { target: array.shape() }, &[shape])?;
    let dtype = array.dtype();
    if dtype == simulcast::DType::Bool {
        let expected = simulcast::DType::I64;
        return Err(Error::Mistyped { name: "the array to sum".into(), expected, given: dtype });
    }
    Ok(dtype)
}
