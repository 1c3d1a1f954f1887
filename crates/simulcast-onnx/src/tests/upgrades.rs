//! Upgraded models: B in its place, everything else as it was.

use super::build::{Build, int, ints, message, text};
use crate::{AttributeValue, Model, UpgradeError, infer, upgrade};

fn upgraded(build: &Build) -> Model {
    Model::from_bytes(&upgrade(&build.bytes(), None).unwrap()).unwrap()
}

fn refused(build: &Build) -> String {
    upgrade(&build.bytes(), None).unwrap_err().to_string()
}

fn legacy(op: &str, a: &[i64], b: &[i64], axis: Option<i64>) -> Build {
    let mut attributes = vec![int("broadcast", 1)];
    attributes.extend(axis.map(|axis| int("axis", axis)));
    Build::new(6)
        .input("a", a)
        .input("b", b)
        .node(op, &["a", "b"], &["c"], &attributes)
        .bare_output("c")
}

#[test]
fn b_gets_axes_behind_its_own_until_numpy_lays_it_as_the_axis_did() {
    // A, B, axis, and the axes that are added: from the definition of `axis`.
    type Case = (&'static [i64], &'static [i64], Option<i64>, &'static [i64]);
    let cases: [Case; 8] = [
        (&[2, 3, 4, 5], &[3, 4], Some(1), &[2]),
        (&[2, 3, 4, 5], &[2], Some(0), &[1, 2, 3]),
        (&[2, 3, 4, 5], &[2, 3], Some(0), &[2, 3]),
        (&[2, 3, 4, 5], &[5], Some(3), &[]),
        (&[2, 3, 4, 5], &[4, 5], None, &[]),
        (&[3, 3, 3], &[3], Some(1), &[1]),
        (&[2, 3], &[2, 1], Some(0), &[]),
        (&[2, 3], &[1], Some(0), &[]),
    ];
    for (a, b, axis, added) in cases {
        let model = upgraded(&legacy("Sub", a, b, axis));
        assert_eq!(model.opset(), 7);
        let node = &model.graph.nodes[model.graph.nodes.len() - 1];
        assert!(node.attributes.is_empty(), "{:?}", node.attributes);
        match added {
            [] => assert_eq!(model.graph.nodes.len(), 1),
            added => {
                let Some(AttributeValue::Ints(axes)) = model.graph.nodes[0].attribute("axes")
                else {
                    panic!()
                };
                assert_eq!(
                    (model.graph.nodes[0].op.as_str(), axes.as_slice()),
                    ("Unsqueeze", added)
                );
            }
        }
        let inference = infer(&model, &[]).unwrap();
        let result = &inference.facts[model.graph.outputs[0].index()].dims;
        let a: Vec<usize> = a.iter().map(|size| *size as usize).collect();
        assert_eq!(result.sizes(), Some(a));
    }
}

#[test]
fn shapes_that_the_old_rule_refused_are_not_made_legal() {
    let said = refused(&legacy("Add", &[2, 3, 4], &[4], Some(0)));
    assert!(said.contains("under rule legacy"), "{said}");
    let stretches_a = refused(&legacy("Add", &[1, 3], &[2, 3], None));
    assert!(stretches_a.contains("node c (Add)"), "{stretches_a}");
    let exact =
        Build::new(6).input("a", &[2, 3]).input("b", &[3]).node("Add", &["a", "b"], &["c"], &[]);
    assert!(refused(&exact.bare_output("c")).contains("under rule exact"));
}

#[test]
fn unknown_sizes_are_enough_and_unknown_ranks_are_refused() {
    let build = Build::new(6)
        .input("a", &["N", "C", "H"])
        .input("b", &["C"])
        .node("Mul", &["a", "b"], &["c"], &[int("broadcast", 1), int("axis", 1)])
        .bare_output("c");
    assert_eq!(upgraded(&build).graph.nodes[0].op, "Unsqueeze");
    let unranked = Build::new(6)
        .field(11, &message(|value| value.bytes(1, "a")))
        .input("b", &[3])
        .node("Mul", &["a", "b"], &["c"], &[int("broadcast", 1), int("axis", 1)])
        .bare_output("c");
    assert!(refused(&unranked).contains("the rank of its first input is not known"));
}

#[test]
fn what_else_changed_is_changed_or_refused_by_name() {
    let one = |opset: i64, op: &str, attributes: &[crate::wire::Message]| {
        Build::new(opset).input("x", &[2, 3]).node(op, &["x"], &["y"], attributes).bare_output("y")
    };
    let reshaped =
        upgraded(&one(1, "Reshape", &[ints("shape", &[3, 2]), ints("consumed_inputs", &[0])]));
    assert_eq!(reshaped.graph.nodes[0].op, "Constant");
    assert!(reshaped.graph.nodes[1].attributes.is_empty());
    let facts = infer(&reshaped, &[]).unwrap().facts;
    assert_eq!(facts[reshaped.graph.outputs[0].index()].dims.to_string(), "(3, 2)");
    let cast = upgraded(&one(1, "Cast", &[text("to", "INT64")]));
    assert!(matches!(cast.graph.nodes[0].attribute("to"), Some(AttributeValue::Int(7))));
    let concat = upgraded(&one(1, "Concat", &[]));
    assert!(matches!(concat.graph.nodes[0].attribute("axis"), Some(AttributeValue::Int(1))));
    let pad = upgraded(&one(1, "Pad", &[ints("paddings", &[0, 1, 0, 1])]));
    assert!(pad.graph.nodes[0].attribute("pads").is_some());
    let test = upgraded(&one(6, "Dropout", &[int("is_test", 1)]));
    assert!(test.graph.nodes[0].attributes.is_empty());
    for (opset, op, why) in [
        (6, "Dropout", "training mode"),
        (6, "Upsample", "its scales"),
        (1, "Tile", "its inputs"),
        (1, "LpPool", "its exponent"),
    ] {
        let said = refused(&one(opset, op, &[]));
        assert!(said.starts_with(&format!("node y ({op}): ")) && said.contains(why), "{said}");
    }
    let new = upgrade(&one(13, "Relu", &[]).bytes(), None);
    assert_eq!(new, Err(UpgradeError::Opset(13)));
}

#[test]
fn fields_that_are_not_understood_are_copied() {
    let strange = message(|node| {
        node.bytes(1, "a");
        node.bytes(1, "b");
        node.bytes(2, "c");
        node.bytes(4, "Add");
        node.message(5, &int("broadcast", 1));
        node.message(5, &int("axis", 0));
        node.bytes(6, "a comment");
        node.bytes(999, "from the future");
    });
    let build =
        Build::new(6).input("a", &[2, 3]).input("b", &[2]).field(1, &strange).bare_output("c");
    let bytes = upgrade(&build.field(998, &int("x", 1)).bytes(), None).unwrap();
    for kept in ["a comment", "from the future"] {
        assert!(bytes.windows(kept.len()).any(|part| part == kept.as_bytes()), "{kept}");
    }
    let future =
        crate::wire::Fields::new(&bytes).map(Result::unwrap).find(|field| field.number == 7);
    let numbers = future.unwrap().fields().unwrap().map(|field| field.unwrap().number);
    assert!(numbers.into_iter().any(|number| number == 998));
}

#[test]
fn a_name_that_is_taken_is_not_taken_again() {
    let build = legacy("Add", &[2, 3], &[2], Some(0)).input("b_on_axis_0", &[1]);
    assert_eq!(upgraded(&build).graph.nodes.len(), 2);
}

#[test]
fn a_domain_that_is_there_twice_is_the_last_one() {
    let mut bytes = Build::new(6).input("x", &[2]).node("Relu", &["x"], &["y"], &[]).bytes();
    let import = message(|import| {
        import.bytes(1, "other");
        import.bytes(1, "");
    });
    bytes.extend(message(|model| model.message(8, &import)).into_bytes());
    let upgraded = upgrade(&bytes, None).unwrap();
    assert_eq!(Model::from_bytes(&upgraded).unwrap().opset(), 7);
}
