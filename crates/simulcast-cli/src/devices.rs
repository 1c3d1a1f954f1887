//! `simulcast devices`: the GPUs that `simulcast eval --device` computes on.

use std::fmt::Write as _;

use serde_json::{Value, json};
use simulcast_cuda::{Device, Error};
use simulcast_explain::{SCHEMA, human_bytes};

use crate::{Failure, output};

pub(crate) fn run(as_json: bool) -> Result<(), Failure> {
    let devices = match Device::all() {
        Ok(devices) => devices,
        Err(error) if as_json => {
            let (none, error) = (Vec::<Value>::new(), error.to_string());
            let answer = json!({ "schema": SCHEMA, "devices": none, "error": error });
            return output::put(format!("{answer}\n"));
        }
        Err(error) => return Err(refused(&error)),
    };
    if as_json {
        let about = devices.iter().map(|device| {
            json!({
                "device": format!("cuda:{}", device.index()),
                "name": device.name(),
                "memory_bytes": device.memory_bytes(),
                "free_bytes": device.free_bytes().ok(),
                "architecture": device.architecture(),
                "multiprocessors": device.multiprocessors(),
            })
        });
        let about: Vec<Value> = about.collect();
        let answer = json!({ "schema": SCHEMA, "devices": about });
        return output::put(format!("{answer}\n"));
    }
    let mut text = String::new();
    for device in &devices {
        let free = device.free_bytes().map_err(|error| refused(&error))? as u64;
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

/// The failure of a device.
pub(crate) fn refused(error: &Error) -> Failure {
    Failure::Refused(format!("error: {error}"))
}
