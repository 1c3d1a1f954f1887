//! Any bytes as a `.npz` file: arrays or a clear error, and what is read is written and read back.

#![no_main]

use libfuzzer_sys::fuzz_target;
use simulcast_fuzz::arrays_of;

fuzz_target!(|bytes: &[u8]| arrays_of("x.npz", bytes.to_vec()));
