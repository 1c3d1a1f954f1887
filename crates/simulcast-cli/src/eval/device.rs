//! `simulcast eval --device cuda`: on a GPU, in parts where arrays are larger than its memory.

use std::path::Path;

use ndarray::{ArrayD, Axis, IxDyn, Slice};
use simulcast::program::row_axis;
use simulcast::{AnyArray, AnyView, AnyViewMut, DType, TypedProgram, dispatch};
use simulcast_core::OwnedRule;
use simulcast_cuda::{Device, Error, OnDevice as _};
use simulcast_files::{FileError, Writer};

use super::{Bar, Clock, bytes_of, fits};
use crate::Failure;

/// The part of a device's free memory that arrays may take.
const MEMORY_PART: f64 = 0.8;

/// A result that is made part by part.
enum Made {
    Array(AnyArray),
    File(Writer),
}

/// Computes a program on a device; the result, where it goes to no file.
pub(super) fn run(
    index: usize,
    (program, rule): (&TypedProgram, &OwnedRule),
    operands: &[AnyView<'_>],
    shape: &[usize],
    (path, memory): (Option<&Path>, u64),
    clock: &mut Clock,
) -> Result<Option<AnyArray>, Failure> {
    let dtype = program.dtype();
    if dtype == DType::String || operands.iter().any(|own| own.dtype() == DType::String) {
        return Err(Error::Text.into());
    }
    let cannot = |error: FileError| Failure::Usage(format!("cannot write {error}"));
    let device = Device::new(index)?;
    let stream = device.stream()?;
    let mut made = match path {
        Some(path) => Made::File(Writer::create(path, dtype, shape).map_err(cannot)?),
        None => {
            fits(dtype, shape, 0, memory)?;
            Made::Array(dispatch!(dtype, T => {
                AnyArray::from(ArrayD::<T>::from_elem(IxDyn(shape), T::default()))
            }))
        }
    };
    clock.passed("start");
    let on_device = program.on_device(&device).rule(rule.as_rule());
    let free = (device.free_bytes()? as f64 * MEMORY_PART) as u64;
    let bar = Bar::new(bytes_of(dtype, shape));
    let row =
        bytes_of(dtype, shape) / shape.get(row_axis(shape)).copied().unwrap_or(1).max(1) as u64;
    on_device.run_in_parts(operands, free, &stream, |rows, part| {
        let end = rows.end as u64 * row;
        match &mut made {
            Made::File(writer) => assign(&mut writer.rows_mut(rows).map_err(cannot)?, &part),
            Made::Array(array) => {
                dispatch!(dtype, T => {
                    if let Some(mut own) = array.view_mut().typed::<T>() {
                        if !shape.is_empty() {
                            own.slice_axis_inplace(Axis(row_axis(shape)), Slice::from(rows));
                        }
                        assign(&mut AnyViewMut::from(&mut own), &part);
                    }
                });
            }
        }
        bar.reached(end);
        Ok::<(), Failure>(())
    })?;
    drop(bar);
    clock.passed("run");
    match made {
        Made::Array(array) => Ok(Some(array)),
        Made::File(writer) => {
            writer.finish().map_err(cannot)?;
            clock.passed("write");
            Ok(None)
        }
    }
}

/// The elements of an array into a place of the same type and shape.
fn assign(to: &mut AnyViewMut<'_>, from: &AnyArray) {
    dispatch!(from.dtype(), T => {
        if let (Some(mut to), Some(from)) = (to.typed::<T>(), from.typed::<T>()) {
            to.assign(&from);
        }
    });
}
