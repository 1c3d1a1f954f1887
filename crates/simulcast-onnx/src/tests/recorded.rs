//! What ONNX Runtime gave for every value of recorded models, and onnx inferred.

use std::collections::BTreeMap;

use serde_json::Value as Json;
use simulcast_core::{Dim, Dims, Term, join};

use super::build::{Build, Size, float, int, ints, text};
use crate::{Inference, Model, infer};

type Shapes = BTreeMap<String, Vec<usize>>;

fn lines() -> Vec<Json> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../conformance/models.jsonl");
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().skip(1).map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn sizes(value: &Json) -> Vec<i64> {
    value.as_array().unwrap().iter().map(|size| size.as_i64().unwrap()).collect()
}

fn words(value: &Json) -> Vec<&str> {
    value.as_array().unwrap().iter().map(|word| word.as_str().unwrap()).collect()
}

/// The sizes of every value, or `None` where ONNX Runtime refused the model.
fn shapes(out: &Json) -> Option<Shapes> {
    let shape = |value: &Json| sizes(value).into_iter().map(|size| size as usize).collect();
    Some(out.as_object()?.iter().map(|(name, value)| (name.clone(), shape(value))).collect())
}

/// A random model; with `symbolic`, each size of an input is a symbol.
fn random(case: &Json, symbolic: bool) -> Model {
    let mut build = Build::new(17);
    for (name, shape) in case["inputs"].as_object().unwrap() {
        let size = |(axis, size): (usize, i64)| match symbolic {
            true => Size::Symbol(format!("{name}_{axis}")),
            false => Size::Known(size),
        };
        let sizes: Vec<Size> = sizes(shape).into_iter().enumerate().map(size).collect();
        build = build.input(name, &sizes);
    }
    for (name, values) in case["constants"].as_object().unwrap() {
        build = match values.as_i64() {
            Some(value) => build.int64s(name, &[], &[value]),
            None => build.int64s(name, &[values.as_array().unwrap().len() as i64], &sizes(values)),
        };
    }
    for node in case["nodes"].as_array().unwrap() {
        let attribute = |(name, value): (&String, &Json)| match value {
            Json::String(value) => text(name, value),
            Json::Array(_) => ints(name, &sizes(value)),
            value if value.is_i64() || value.is_u64() => int(name, value.as_i64().unwrap()),
            value => float(name, value.as_f64().unwrap() as f32),
        };
        let attributes: Vec<_> = node[3].as_object().unwrap().iter().map(attribute).collect();
        build =
            build.node(node[0].as_str().unwrap(), &words(&node[1]), &words(&node[2]), &attributes);
    }
    build.load()
}

fn facts(model: &Model, inference: &Inference) -> BTreeMap<String, Dims> {
    let values = model.graph.values.iter().zip(&inference.facts);
    values.map(|(value, fact)| (value.name.clone(), fact.dims.clone())).collect()
}

fn is_wrong(inference: &Inference) -> bool {
    let errors =
        inference.broadcasts.iter().any(|b| matches!(b.outcome, simulcast_core::Outcome::Error(_)));
    errors || !inference.problems.is_empty()
}

#[test]
fn every_value_of_a_random_model_has_the_sizes_that_onnx_runtime_gave_it() {
    let (mut right, mut refused, mut onnx_differs) = (0, 0, 0);
    let mut wrong = Vec::new();
    for case in lines().iter().filter(|case| case.get("nodes").is_some()) {
        let model = random(case, false);
        let inference = infer(&model, &[]).unwrap();
        assert_eq!(inference.unknown.len(), 0, "{case}");
        match shapes(&case["out"]) {
            None => {
                if !is_wrong(&inference) {
                    wrong.push(format!("ONNX Runtime refuses {case}"));
                }
                refused += 1;
            }
            Some(out) => {
                if is_wrong(&inference) {
                    wrong.push(format!("{:?}: {case}", inference.problems));
                }
                let facts = facts(&model, &inference);
                for (name, shape) in out {
                    if facts[&name].sizes().as_ref() != Some(&shape) {
                        wrong.push(format!("{name} is {}: {case}", facts[&name]));
                    }
                    right += 1;
                }
            }
        }
        onnx_differs += usize::from(case.get("inferred").is_some());
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // Ours has an answer where the inference of onnx has none or another.
    assert!(right > 1500 && refused > 15 && onnx_differs > 30, "{right} {refused} {onnx_differs}");
}

/// What a size stands for, where sizes of inputs are known.
fn stands_for(dim: &Dim, known: &BTreeMap<String, usize>) -> Option<usize> {
    match dim {
        Dim::Size(size) => Some(*size),
        Dim::Symbol(symbol) => known.get(&*symbol.name).copied(),
        Dim::Join(symbols) => {
            symbols.iter().try_fold(1, |common, symbol| join(common, *known.get(&*symbol.name)?))
        }
        Dim::Range(_) => None,
    }
}

#[test]
fn what_is_inferred_of_symbols_holds_for_the_sizes_of_a_run() {
    let (mut exact, mut held) = (0, 0);
    for case in lines().iter().filter(|case| case.get("nodes").is_some()) {
        let Some(out) = shapes(&case["out"]) else { continue };
        let model = random(case, true);
        let inference = infer(&model, &[]).unwrap();
        let known: BTreeMap<String, usize> = case["inputs"]
            .as_object()
            .unwrap()
            .iter()
            .flat_map(|(name, shape)| {
                let sizes = sizes(shape).into_iter().enumerate();
                sizes.map(move |(axis, size)| (format!("{name}_{axis}"), size as usize))
            })
            .collect();
        // A reshape to sizes of this very run may contradict other sizes, never these.
        assert!(!is_wrong(&inference), "{case} {:?}", inference.problems);
        let facts = facts(&model, &inference);
        for (name, shape) in out {
            let Some(dims) = facts[&name].dims() else { continue };
            assert_eq!(dims.len(), shape.len(), "{name} of {case}");
            for (dim, size) in dims.iter().zip(shape) {
                if let Some(said) = stands_for(dim, &known) {
                    assert_eq!(said, size, "{name}: {dim} of {case}");
                    exact += 1;
                }
            }
        }
        let size = |term: &Term| match term {
            Term::Symbol(name) => known.get(&**name).copied(),
            _ => None,
        };
        for (constraint, nodes) in &inference.constraints {
            if let Some(holds) = constraint.holds(size) {
                assert!(holds, "{constraint} at {nodes:?} of {case}");
                held += 1;
            }
        }
    }
    assert!(exact > 3000 && held > 300, "{exact} {held}");
}

/// Standard base64, as the recorder writes it.
fn base64(text: &str) -> Vec<u8> {
    let digit = |c: u8| match c {
        b'A'..=b'Z' => c - b'A',
        b'a'..=b'z' => c - b'a' + 26,
        b'0'..=b'9' => c - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let mut out = Vec::new();
    for chunk in text.trim_end_matches('=').as_bytes().chunks(4) {
        let bits = chunk.iter().fold(0_u32, |bits, c| bits << 6 | u32::from(digit(*c)));
        let bits = bits << (6 * (4 - chunk.len()));
        out.extend_from_slice(&bits.to_be_bytes()[1..chunk.len()]);
    }
    out
}

#[test]
fn every_value_of_an_exported_network_has_the_sizes_that_onnx_runtime_gave_it() {
    let mut models: BTreeMap<String, Model> = BTreeMap::new();
    let mut checked = 0;
    for case in lines().iter().filter(|case| case.get("model").is_some()) {
        let name = case["name"].as_str().unwrap().to_owned();
        let model = models.entry(name.clone()).or_insert_with(|| {
            Model::from_bytes(&base64(case["model"].as_str().unwrap())).unwrap()
        });
        let symbols = case["symbols"].as_object().unwrap();
        let sizes: Vec<(&str, usize)> = symbols
            .iter()
            .map(|(name, size)| (name.as_str(), size.as_u64().unwrap() as usize))
            .collect();
        let inference = infer(model, &sizes).unwrap();
        assert!(!is_wrong(&inference), "{name}: {:?}", inference.problems);
        assert!(inference.unknown.is_empty() && inference.differences.is_empty(), "{name}");
        let facts = facts(model, &inference);
        for (value, shape) in shapes(&case["out"]).unwrap() {
            assert_eq!(facts[&value].sizes(), Some(shape), "{value} of {name}");
            checked += 1;
        }
        // With symbols, what is known of the result is said in them.
        let open = infer(model, &[]).unwrap();
        let output = &open.facts[model.graph.outputs[0].index()].dims;
        assert!(output.to_string().starts_with("(batch, "), "{name}: {output}");
    }
    assert_eq!(models.len(), 6);
    assert!(checked > 300, "{checked}");
}
