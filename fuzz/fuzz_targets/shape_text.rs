//! Any text: a shape or a clear error, and what is shown is read back.

#![no_main]

use libfuzzer_sys::fuzz_target;
use simulcast_core::ShapeText;

fuzz_target!(|text: &str| {
    match text.parse::<ShapeText>() {
        Ok(shape) => {
            let shown = shape.dims.to_string();
            let again: ShapeText = shown.parse().expect("what is shown is read back");
            assert_eq!(again.dims.to_string(), shown);
            let _ = shape.axis_names();
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});
