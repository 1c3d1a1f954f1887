//! What ONNX Runtime refuses, at loading or in every run, and what is only unusual: `conformance/record/refusals.py`.

use serde_json::Value as Json;

use super::build::{Build, Size, float, int, int64s, ints, message, text, value_info};
use crate::{Inference, Model, annotate, infer};

fn lines() -> Vec<Json> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../conformance/refusals.jsonl");
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().skip(1).map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn numbers(value: &Json) -> Vec<i64> {
    value.as_array().unwrap().iter().map(|number| number.as_i64().unwrap()).collect()
}

fn words(value: &Json) -> Vec<&str> {
    value.as_array().unwrap().iter().map(|word| word.as_str().unwrap()).collect()
}

fn declared(name: &str, typed: &Json, symbolic: bool) -> crate::wire::Message {
    let size = |(axis, size): (usize, i64)| match symbolic {
        true => Size::Symbol(format!("{name}_{axis}")),
        false => Size::Known(size),
    };
    let sizes: Vec<Size> = numbers(&typed[1]).into_iter().enumerate().map(size).collect();
    value_info(name, typed[0].as_i64().unwrap(), &sizes)
}

/// The model; with `symbolic`, each size of an input is a symbol.
fn build(case: &Json, symbolic: bool) -> Build {
    let mut build = Build::new(case["opset"].as_i64().unwrap());
    for (name, typed) in case["inputs"].as_object().unwrap() {
        build = build.field(11, &declared(name, typed, symbolic));
    }
    for (name, own) in case["constants"].as_object().unwrap() {
        build = build.field(5, &int64s(name, &numbers(&own[0]), &numbers(&own[1])));
    }
    let node = &case["node"];
    let attribute = |(name, value): (&String, &Json)| match value {
        Json::String(value) => text(name, value),
        Json::Array(_) => ints(name, &numbers(value)),
        value if value.is_i64() => int(name, value.as_i64().unwrap()),
        value => float(name, value.as_f64().unwrap() as f32),
    };
    let attributes: Vec<_> = node[3].as_object().unwrap().iter().map(attribute).collect();
    build = build.node(node[0].as_str().unwrap(), &words(&node[1]), &words(&node[2]), &attributes);
    for name in words(&node[2]) {
        let own = case["declared"].get(name);
        let bare = || message(|value| value.bytes(1, name));
        build = build.field(12, &own.map_or_else(bare, |typed| declared(name, typed, symbolic)));
    }
    build
}

/// Errors, and declarations that are not so.
fn is_wrong(inference: &Inference) -> bool {
    !inference.errors().is_empty() || !inference.differences.is_empty()
}

#[test]
fn what_onnx_runtime_refuses_is_an_error_and_what_it_runs_is_none() {
    let (mut wrong, mut refused, mut accepted) = (Vec::new(), 0, 0);
    for case in lines() {
        let inference = infer(&build(&case, false).load(), &[]).unwrap();
        let expected = matches!(case["out"].as_str().unwrap(), "load" | "run");
        refused += usize::from(expected);
        accepted += usize::from(!expected);
        if is_wrong(&inference) != expected {
            wrong.push(format!("{:?}: {case}", inference.errors()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(refused > 300 && accepted > 300, "{refused} {accepted}");
}

#[test]
fn sizes_that_are_not_known_are_not_wrong() {
    for case in lines().iter().filter(|case| case["out"] == "ok") {
        let inference = infer(&build(case, true).load(), &[]).unwrap();
        assert_eq!(inference.errors(), [""; 0], "{case}");
    }
}

#[test]
fn declared_types_that_are_others_are_told() {
    let typed = |of: i64, sizes: &[i64]| {
        let sizes: Vec<Size> = sizes.iter().copied().map(Size::Known).collect();
        let build = Build::new(17).input("a", &[2_i64, 2]).node("Relu", &["a"], &["c"], &[]);
        build.field(12, &value_info("c", of, &sizes))
    };
    let told = |build: &Build| {
        let model: Model = build.load();
        let differences = infer(&model, &[]).unwrap().differences;
        let first = differences.first().map(|own| (own.declared.clone(), own.inferred.clone()));
        let replaced =
            annotate(build.bytes(), crate::AnnotateOptions::default()).unwrap().report.replaced;
        (first, replaced.first().map(|(_, before, after)| format!("{before} is {after}")))
    };
    let both = |a: &str, b: &str| (Some((a.to_owned(), b.to_owned())), Some(format!("{a} is {b}")));
    assert_eq!(told(&typed(1, &[2, 2])), (None, None));
    assert_eq!(told(&typed(1, &[2, 3])), both("(2, 3)", "(2, 2)"));
    assert_eq!(told(&typed(7, &[2, 2])), both("int64 (2, 2)", "float32 (2, 2)"));
    assert_eq!(told(&typed(7, &[4])), both("int64 (4,)", "float32 (2, 2)"));
}
