//! Checks: what is found in a model, and where.

use simulcast_core::Action;
use simulcast_explain::TextOptions;

use super::build::{Build, int, ints};
use crate::{Check, CheckPolicy, Model, check};

fn checked(build: &Build) -> (Model, Check) {
    let model = build.load();
    let check = check(&model, &[], &CheckPolicy::default()).unwrap();
    (model, check)
}

fn codes(check: &Check) -> Vec<String> {
    let of_model = check.findings.iter().map(|finding| finding.code.to_string());
    let broadcasts = check.broadcasts.iter().flat_map(|checked| &checked.findings);
    broadcasts.map(|finding| finding.code.to_string()).chain(of_model).collect()
}

fn loss(axes: &[i64]) -> Build {
    Build::new(17)
        .input("pred", &["batch".into(), super::build::Size::Known(1)])
        .input("target", &["batch"])
        .node("Sub", &["pred", "target"], &["d"], &[])
        .node("Mul", &["d", "d"], &["square"], &[])
        .node("ReduceMean", &["square"], &["loss"], &[ints("axes", axes), int("keepdims", 0)])
        .bare_output("loss")
}

#[test]
fn a_loss_over_pairs_is_found_before_any_size_is_known() {
    let (model, check) = checked(&loss(&[0, 1]));
    assert_eq!(codes(&check), ["SC102", "SC110"]);
    let said = check.text(&model, TextOptions::default());
    assert!(said.contains("loss (ReduceMean) reduces the result to one number"), "{said}");
    let (_, rows) = checked(&loss(&[1]));
    assert_eq!(codes(&rows), ["SC102"], "rows stay");
    let model = loss(&[0, 1]).load();
    let denied = CheckPolicy::default().with("SC110", Action::Raise).unwrap();
    assert_eq!(check_with(&model, &denied).raised(), 1);
    let allowed = CheckPolicy::default().with("all", Action::Allow).unwrap();
    assert_eq!(codes(&check_with(&model, &allowed)), [""; 0]);
    assert!(CheckPolicy::default().with("SC999", Action::Raise).unwrap_err().contains("SC112"));
}

fn check_with(model: &Model, policy: &CheckPolicy) -> Check {
    check(model, &[], policy).unwrap()
}

#[test]
fn a_slope_that_lies_on_the_width_is_found() {
    let slope = |x: &[i64], slope: &[i64]| {
        let build = Build::new(17).input("x", x).input("slope", slope);
        let (_, check) =
            checked(&build.node("PRelu", &["x", "slope"], &["y"], &[]).bare_output("y"));
        codes(&check).contains(&"SC112".to_owned())
    };
    assert!(slope(&[1, 3, 2, 3], &[3]));
    assert!(!slope(&[1, 3, 2, 3], &[3, 1, 1]));
    assert!(!slope(&[1, 4, 2, 3], &[3]));
    assert!(!slope(&[2, 3], &[3]));
    assert!(!slope(&[1, 3, 2, 3], &[1]));
}

#[test]
fn a_declared_shape_that_is_another_is_found() {
    let declared = |sizes: &[i64]| {
        let build = Build::new(17).input("x", &[2, 1]).input("b", &[3]);
        checked(&build.node("Add", &["x", "b"], &["y"], &[]).output("y", sizes)).1
    };
    assert_eq!(declared(&[2, 3]).findings, []);
    let differs = declared(&[2, 1]);
    assert_eq!(
        differs.findings[0].to_string(),
        "SC109: y: declared (2, 1), inferred (2, 3); it is the result of a node Add"
    );
    assert_eq!(declared(&[6]).findings.len(), 1);
}

#[test]
fn errors_name_the_node_the_inputs_and_who_made_them() {
    let build = Build::new(17)
        .input("x", &[2, 3, 4])
        .input("w", &[4, 5])
        .input("b", &[2, 4])
        .node("MatMul", &["x", "w"], &["h"], &[])
        .node("Add", &["h", "b"], &["y"], &[])
        .node("Relu", &["y"], &["z"], &[])
        .output("z", &[2, 3, 5]);
    let (model, check) = checked(&build);
    assert_eq!((check.errors(), check.broadcasts.len()), (1, 1));
    let said = check.text(&model, TextOptions::default());
    for part in [
        "node y (Add)",
        "h is the result of a node MatMul",
        "b is an input of the graph",
        "axis 2 (-1): h has 5, b has 4",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let json = check.json(&model);
    assert_eq!(json["broadcasts"][0]["error"]["code"], "E1");
    assert_eq!(json["values"][3]["shape"], serde_json::json!([2, 3, 5]));
    let page = check.html(&model, "m.onnx");
    assert!(page.contains("<h2>y (Add)</h2>") && page.contains("<svg"));
}

#[test]
fn constraints_are_kept_for_the_whole_model() {
    let build = Build::new(17)
        .input("x", &["N"])
        .input("y", &[3])
        .input("z", &["M"])
        .node("Add", &["x", "y"], &["a"], &[])
        .node("Mul", &["x", "y"], &["b"], &[])
        .node("Mul", &["x", "z"], &["c"], &[])
        .bare_output("a");
    let (_, check) = checked(&build);
    let said: Vec<String> = check
        .inference
        .constraints
        .iter()
        .map(|(constraint, nodes)| format!("{constraint}: {}", nodes.join(" ")))
        .collect();
    assert_eq!(said, ["N is 1 or 3: a b", "M and N are equal or one is 1: c"]);
    let model = build.load();
    let known = crate::infer(&model, &[("N", 3)]).unwrap().constraints;
    let known: Vec<String> = known.iter().map(|(constraint, _)| constraint.to_string()).collect();
    assert_eq!(known, ["M is 1 or 3"]);
    let said = crate::infer(&model, &[("K", 3)]).unwrap_err();
    assert_eq!(said, "no input of the model has a symbol \"K\"; it has M, N");
}
