//! ONNX models from anyone: loaded or refused, inferred, checked, shown and upgraded, never a panic.

#![no_main]

use libfuzzer_sys::fuzz_target;
use simulcast_explain::TextOptions;
use simulcast_onnx::{CheckPolicy, Model, check, upgrade};

fuzz_target!(|bytes: &[u8]| {
    let Ok(model) = Model::from_bytes(bytes) else { return };
    if let Ok(found) = check(&model, &[], &CheckPolicy::default()) {
        let _ = found.text(&model, TextOptions::default());
        let _ = found.json(&model);
    }
    if let Ok(bytes) = upgrade(bytes, None) {
        // What is written can be read, and is new enough not to be written again.
        let model = Model::from_bytes(&bytes).expect("an upgraded model loads");
        assert_eq!(model.opset(), 7);
    }
});
