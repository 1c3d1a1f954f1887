//! ONNX models from anyone: loaded or refused, inferred, checked, shown, upgraded and run, never a panic.

#![no_main]

use libfuzzer_sys::fuzz_target;
use simulcast::{AnyArray, AnyView};
use simulcast_explain::TextOptions;
use simulcast_onnx::{
    CheckPolicy, Declared, DeclaredDim, ElementType, Model, Session, check, upgrade,
};

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
    run(&model);
});

/// Runs a model on small inputs of what it declares.
fn run(model: &Model) {
    let Ok(session) = Session::new(model) else { return };
    let session = session.limit(1 << 16).threads(1);
    let made: Vec<(&str, AnyArray)> =
        session.inputs().filter_map(|name| Some((name, input(model, name)?))).collect();
    let views: Vec<(&str, AnyView<'_>)> =
        made.iter().map(|(name, array)| (*name, array.view())).collect();
    if let Ok(outputs) = session.run(&views) {
        assert_eq!(outputs.len(), session.outputs().count());
    }
}

fn input(model: &Model, name: &str) -> Option<AnyArray> {
    let value = model.graph.values.iter().find(|value| value.name == name)?;
    let (element, dims) = match &value.declared {
        Some(Declared::Tensor { element, dims }) => (*element, dims.as_deref().unwrap_or_default()),
        _ => (None, &[][..]),
    };
    let size = |dim: &DeclaredDim| match dim {
        DeclaredDim::Size(size) => *size,
        DeclaredDim::Symbol(_) | DeclaredDim::Unknown => 2,
    };
    let shape: Vec<usize> = dims.iter().map(size).collect();
    let count = shape.iter().try_fold(1_usize, |count, size| count.checked_mul(*size))?;
    if count > 1 << 12 {
        return None;
    }
    let numbers: Vec<f32> = (0..count).map(|n| n as f32 - 2.0).collect();
    let numbers = ndarray::ArrayD::from_shape_vec(shape, numbers).ok()?;
    Some(match element.unwrap_or(ElementType::F32) {
        ElementType::F32 => numbers.into(),
        ElementType::F64 => numbers.mapv(f64::from).into(),
        ElementType::I64 => numbers.mapv(|x| x as i64).into(),
        ElementType::I32 => numbers.mapv(|x| x as i32).into(),
        ElementType::Bool => numbers.mapv(|x| x > 0.0).into(),
        ElementType::String => numbers.mapv(|x| x.to_string()).into(),
        _ => numbers.mapv(|x| x as u8).into(),
    })
}
