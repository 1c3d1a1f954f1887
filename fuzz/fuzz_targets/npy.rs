//! Any bytes as a `.npy` file: an array or a clear error, and what is read is written and read back.

#![no_main]

use libfuzzer_sys::fuzz_target;
use simulcast_fuzz::arrays_of;

fuzz_target!(|bytes: &[u8]| {
    // The beginning is given, so that all the work goes into what follows it.
    arrays_of("x.npy", bytes.to_vec());
    arrays_of("x.npy", [b"\x93NUMPY\x01\x00", bytes].concat());
});
