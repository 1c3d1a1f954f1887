//! `simulcast devices`: the GPUs that `simulcast eval --device` computes on.

use std::fmt::Write as _;

use simulcast_cuda::{Device, Error};
use simulcast_explain::human_bytes;

use crate::{Failure, output};

pub(crate) fn run() -> Result<(), Failure> {
    let mut text = String::new();
    for device in Device::all()? {
        let free = device.free_bytes()? as u64;
        let (major, minor) = device.cuda_version();
        // Writing to a string never fails.
        let _ = writeln!(
            text,
            "cuda:{}  {}, {} of {} free, architecture {}, CUDA {major}.{minor}",
            device.index(),
            device.name(),
            human_bytes(free),
            human_bytes(device.memory_bytes() as u64),
            device.architecture(),
        );
    }
    output::print(&text)
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Refused(format!("error: {error}"))
    }
}
