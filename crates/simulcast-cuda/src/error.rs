//! What can go wrong, as data first and text second.

use std::fmt;

use simulcast::{DType, ProgramError};
use simulcast_core::{BroadcastError, format_shape};

/// An error of a device, or of what it was asked for.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Error {
    /// The driver of NVIDIA GPUs is not installed, or cannot be loaded.
    NoDriver {
        /// What the system said of each file that was tried.
        tried: Vec<String>,
    },
    /// The driver has no device.
    NoDevice,
    /// There are fewer devices.
    DeviceIndex {
        /// The device that was asked for.
        index: usize,
        /// How many there are.
        count: usize,
    },
    /// NVRTC, which compiles kernels, is not installed, or cannot be loaded.
    NoCompiler {
        /// What the system said of each file that was tried.
        tried: Vec<String>,
    },
    /// NVRTC does not know the device's architecture.
    Architecture {
        /// Of the device, such as 90.
        device: usize,
        /// The newest that NVRTC knows.
        newest: usize,
    },
    /// A kernel was not compiled.
    Compile {
        /// What the compiler said.
        log: String,
    },
    /// A call of the driver failed; also where an earlier launch failed and this call noticed.
    Driver {
        /// The call.
        call: &'static str,
        /// Its code.
        code: i32,
        /// The name of the code, and what it means.
        message: String,
    },
    /// The device has too little memory.
    OutOfMemory {
        /// The bytes that were asked for.
        asked: usize,
        /// The bytes that are free.
        free: usize,
        /// The bytes of the device.
        total: usize,
    },
    /// The process is a fork of one that used a device: the driver cannot be used in it.
    Forked,
    /// Arrays lie on different devices.
    Devices {
        /// The number of the device that is used.
        expected: usize,
        /// Of the array's.
        given: usize,
        /// Which array.
        name: String,
    },
    /// An array has other elements.
    Mistyped {
        /// Which array.
        name: String,
        /// The type that it should have.
        expected: DType,
        /// The type that it has.
        given: DType,
    },
    /// Two elements of an array for results share a place.
    RepeatedOut,
    /// A shape and strides that do not belong together, or more elements than memory has.
    Layout {
        /// The sizes.
        shape: Vec<usize>,
        /// How many strides there are, or bytes.
        given: usize,
    },
    /// Text has no place on a device.
    Text,
    /// The program cannot be run.
    Program(ProgramError),
    /// Shapes do not go together.
    Broadcast(BroadcastError),
}

/// A list in words, one a line.
fn listed(f: &mut fmt::Formatter<'_>, tried: &[String]) -> fmt::Result {
    tried.iter().try_for_each(|one| write!(f, "\n  {one}"))
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoDriver { tried } => {
                f.write_str("no NVIDIA driver: libcuda cannot be loaded; install the driver of the GPU")?;
                listed(f, tried)
            }
            Self::NoDevice => f.write_str("the NVIDIA driver is there, but no device is visible to it"),
            Self::DeviceIndex { index, count } => {
                write!(f, "there is no device {index}: the driver has {count}, from 0 on")
            }
            Self::NoCompiler { tried } => {
                f.write_str(
                    "NVRTC, the compiler of kernels, is missing: `pip install nvidia-cuda-nvrtc`, install the CUDA \
                     toolkit, or set SIMULCAST_NVRTC to the library's file",
                )?;
                listed(f, tried)
            }
            Self::Architecture { device, newest } => write!(
                f,
                "NVRTC compiles for architectures up to {newest}, and the device has {device}: a newer NVRTC is needed"
            ),
            Self::Compile { log } => write!(f, "a kernel was not compiled: {log}"),
            Self::Driver { call, code, message } => write!(f, "{call} failed with {code}: {message}"),
            Self::OutOfMemory { asked, free, total } => write!(
                f,
                "out of device memory: {asked} bytes were asked for, {free} of {total} are free"
            ),
            Self::Forked => f.write_str(
                "the process was forked after a device was used, and the driver cannot be used in a fork; start \
                 processes by spawn",
            ),
            Self::Devices { expected, given, name } => {
                write!(f, "`{name}` lies on device {given}, and the others on device {expected}")
            }
            Self::Mistyped { name, expected, given } => {
                write!(f, "`{name}` holds {given}, and not {expected}")
            }
            Self::RepeatedOut => f.write_str("two elements of out share a place"),
            Self::Layout { shape, given } => {
                write!(f, "an array of shape {} does not fit with {given}", format_shape(shape))
            }
            Self::Text => f.write_str("text is not computed on a device"),
            Self::Program(error) => error.fmt(f),
            Self::Broadcast(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Program(error) => Some(error),
            Self::Broadcast(error) => Some(error),
            _ => None,
        }
    }
}

impl From<ProgramError> for Error {
    fn from(error: ProgramError) -> Self {
        Self::Program(error)
    }
}

impl From<BroadcastError> for Error {
    fn from(error: BroadcastError) -> Self {
        Self::Broadcast(error)
    }
}
