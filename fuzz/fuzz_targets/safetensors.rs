//! Any bytes as a `.safetensors` file: tensors or a clear error, and what is read is written and
//! read back.

#![no_main]

use libfuzzer_sys::fuzz_target;
use simulcast_fuzz::arrays_of;

fuzz_target!(|bytes: &[u8]| {
    arrays_of("x.safetensors", bytes.to_vec());
    // A length that fits, so that all the work goes into the header.
    let at = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    let length = (at as u64).to_le_bytes();
    arrays_of("x.safetensors", [&length, bytes].concat());
});
