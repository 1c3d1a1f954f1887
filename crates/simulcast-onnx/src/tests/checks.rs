//! Checks: what is found in a model, and where.

use simulcast_core::Action;
use simulcast_explain::TextOptions;

use super::build::{Build, graph_attribute, int, ints, message, node};
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
fn tables_fit_into_the_columns_that_there_are() {
    let long = "model.layers.0.self_attention.scores.with.a.long.name";
    let build = Build::new(17).input(long, &[2_i64, 1]).input("b", &[3_i64]);
    let (model, check) = checked(&build.node("Add", &[long, "b"], &["y"], &[]).bare_output("y"));
    let options = TextOptions::default();
    let row = |columns: Option<usize>| {
        let text = check.text_within(&model, options, columns);
        text.lines().find(|line| line.contains("numpy")).unwrap().to_owned()
    };
    let width = |columns| row(columns).chars().count();
    assert_eq!(row(None), row(Some(1000)));
    assert!(width(None) > 120, "{}", row(None));
    assert!((80..=100).contains(&width(Some(100))), "{}", row(Some(100)));
    assert!(row(Some(100)).contains('…') && width(Some(90)) <= 90, "{}", row(Some(90)));
    // Ends stay where nothing is narrow enough.
    assert!(row(Some(1)).contains("mo….name"), "{}", row(Some(1)));
}

#[test]
fn a_loss_over_pairs_is_found_before_any_size_is_known() {
    let (model, check) = checked(&loss(&[0, 1]));
    assert_eq!(codes(&check), ["SC102", "SC110"]);
    let said = check.text(&model, TextOptions::default());
    assert!(said.contains("loss (ReduceMean) reduces the result to one number"), "{said}");
    let listed = &check.json(&model)["all_findings"];
    let own = |at: usize| (listed[at]["code"].clone(), listed[at]["broadcast"].clone());
    assert_eq!(own(0), ("SC102".into(), 0.into()));
    assert_eq!(own(1), ("SC110".into(), serde_json::Value::Null));
    assert_eq!(listed.as_array().map(Vec::len), Some(check.finding_count()));
    // Those of broadcasts are not there twice.
    let json = check.json(&model);
    let of_model = &json["findings"];
    assert_eq!(of_model.as_array().map(Vec::len), Some(1));
    assert_eq!((&of_model[0]["code"], of_model[0].get("broadcast")), (&"SC110".into(), None));
    let (_, rows) = checked(&loss(&[1]));
    assert_eq!(codes(&rows), ["SC102"], "rows stay");
    let model = loss(&[0, 1]).load();
    let denied = CheckPolicy::default().with("SC110", Action::Deny).unwrap();
    assert_eq!(check_with(&model, &denied).denied(), 1);
    let allowed = CheckPolicy::default().with("all", Action::Allow).unwrap();
    assert_eq!(codes(&check_with(&model, &allowed)), [""; 0]);
    assert!(CheckPolicy::default().with("SC999", Action::Deny).unwrap_err().contains("SC112"));
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
    assert!(page.contains("<span class=\"badge bad\">E1</span> <a href=\"#p0\">y</a>"), "{page}");
    let part = "<details class=\"part\" id=\"p0\" data-scope=\"Add\" open>";
    assert!(page.contains(part) && page.contains("<svg"));
}

#[test]
fn a_report_folds_by_scope_and_shows_what_is_wrong_first() {
    let named = |node: &str| {
        Build::new(17).input("row", &[4_i64]).input("x", &[3_i64, 4]).node(
            "Add",
            &["x", "row"],
            &[node],
            &[],
        )
    };
    let group = |node: &str| {
        let (model, check) = checked(&named(node).bare_output(node));
        let page = check.html(&model, "m.onnx");
        let (_, name) = page.split_once("data-name=\"").unwrap();
        name.split('"').next().unwrap().to_owned()
    };
    assert_eq!(group("/model.22/cv2/Add"), "model.22");
    assert_eq!(group("/encoder/layer.3/attention/Add"), "encoder/layer.3");
    assert_eq!(group("/encoder/embeddings/Add"), "encoder");
    assert_eq!(group("Add_12"), "Add");
    assert_eq!(group("a\"><b\u{202e}/c"), "a&quot;&gt;&lt;b");
    let (model, check) = checked(&loss(&[0, 1]));
    let page = check.html(&model, "m.onnx");
    assert!(page.contains("data-name=\"Findings\" open>"), "{page}");
    assert!(page.contains("<button type=\"button\" data-code=\"SC110\""), "{page}");
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

#[test]
fn d2_a_name_that_would_have_to_be_two_numbers_is_found() {
    let build = Build::new(17).input("x", &["batch", "width"]).input("d", &["batch", "width"]);
    let build = build.zeros("w", &[256, 4]).zeros("v", &[8, 4]);
    let build =
        build.node("MatMul", &["x", "w"], &["a"], &[]).node("MatMul", &["d", "v"], &["b"], &[]);
    let (_, check) = checked(&build.bare_output("a").bare_output("b"));
    assert_eq!(codes(&check), ["SC113"]);
    assert!(check.findings[0].message.contains("8 (b) and 256 (a)"), "{}", check.findings[0]);
}

#[test]
fn d13_a_constant_that_fixes_a_size_is_found() {
    let bias = |sizes: &[i64]| {
        let build =
            Build::new(17).input("x", &["batch", "height", "width"]).zeros("w", &[256, 256]);
        let build = build.zeros("b", sizes).node("MatMul", &["x", "w"], &["h"], &[]);
        let (_, check) = checked(&build.node("Add", &["h", "b"], &["y"], &[]).bare_output("y"));
        codes(&check).into_iter().filter(|code| code == "SC114").count()
    };
    assert_eq!((bias(&[256]), bias(&[256, 1]), bias(&[1, 256])), (0, 1, 0));
}

#[test]
fn d14_totals_peak_memory_and_one_node_in_the_right_words() {
    let build = Build::new(17).input("x", &[2_i64, 3]).node("Mystery", &["x"], &["m"], &[]);
    let (model, check) = checked(&build.bare_output("m"));
    let said = check.text(&model, TextOptions::default());
    assert!(said.contains("Mystery has no rule here: its node has the declared shapes"), "{said}");
    let build = Build::new(17).input("x", &[4_i64]).node("Neg", &["x"], &["a"], &[]);
    let build = build.node("Neg", &["a"], &["b"], &[]).node("Neg", &["b"], &["c"], &[]);
    let (model, check) = checked(&build.bare_output("c"));
    // Two vectors at a time: the one that is read and the one that is made.
    assert_eq!(check.peak_bytes(&model).map(|(bytes, _)| bytes), Some(32));
    let json = check.json(&model);
    assert_eq!((&json["finding_count"], &json["peak_bytes"]), (&0.into(), &32.into()));
}

#[test]
fn what_a_branch_reads_last_goes_with_it() {
    let branch = |op: &str, name: &str| {
        let graph = message(|graph| {
            graph.message(1, &node(op, &["a"], &[name], &[]));
            graph.message(12, &message(|value| value.bytes(1, name)));
        });
        graph_attribute(if op == "Abs" { "then_branch" } else { "else_branch" }, &graph)
    };
    let build = Build::new(17).typed("flag", crate::ElementType::Bool, &[]).input("x", &[400_i64]);
    let build = build.node("Neg", &["x"], &["a"], &[]);
    let branches = [branch("Abs", "t"), branch("Neg", "e")];
    let build = build.node("If", &["flag"], &["b"], &branches).node("Neg", &["b"], &["c"], &[]);
    let (model, check) = checked(&build.node("Neg", &["c"], &["d"], &[]).bare_output("d"));
    // The flag goes with the branches that it chooses between, and so does `a`, which only they read.
    let two = 2 * 400 * 4;
    assert_eq!(check.peak_bytes(&model).map(|(bytes, _)| bytes), Some(two + 1));
}

#[test]
fn d9_errors_that_are_no_broadcast_tell_who_made_their_inputs() {
    let build = Build::new(17).input("x", &[1_i64, 8]).input("z", &[2_i64, 9]);
    let build = build.node("Relu", &["z"], &["h"], &[]);
    let build = build.node("Concat", &["x", "h"], &["y"], &[int("axis", 0)]).bare_output("y");
    let (model, check) = checked(&build);
    let said = check.text(&model, TextOptions::default());
    for part in [
        "node y (Concat)",
        "x float32 (1, 8) is an input of the graph",
        "h float32 (2, 9) is the result of a node Relu",
        "error    axis 1: 8 and 9 differ",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert_eq!(
        check.json(&model)["problems"][0]["operands"][1]["shape"],
        serde_json::json!([2, 9])
    );
}
