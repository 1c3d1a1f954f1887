//! Rules of operators that recorded models do not show: old opsets, functions, branches.

use simulcast_core::Outcome;

use super::build::{Build, Size, graph_attribute, int, message, node, value_info};

use crate::{Model, infer};

fn output(model: &Model, sizes: &[(&str, usize)]) -> String {
    let inference = infer(model, sizes).unwrap();
    assert_eq!(inference.problems, []);
    inference.facts[model.graph.outputs[0].index()].dims.to_string()
}

#[test]
fn old_opsets_lay_the_second_input_onto_the_first() {
    let build = |attributes: &[crate::wire::Message]| {
        let build = Build::new(6).input("a", &[2, 3, 4, 5]).input("b", &[3, 4]);
        build.node("Add", &["a", "b"], &["c"], attributes).bare_output("c").load()
    };
    let laid = build(&[int("broadcast", 1), int("axis", 1)]);
    assert_eq!(output(&laid, &[]), "(2, 3, 4, 5)");
    for wrong in [build(&[int("broadcast", 1)]), build(&[])] {
        let inference = infer(&wrong, &[]).unwrap();
        assert!(matches!(inference.broadcasts[0].outcome, Outcome::Error(_)));
    }
}

#[test]
fn one_way_operands_that_would_have_to_grow_are_errors() {
    let gemm = |c: &[i64]| {
        let build = Build::new(17).input("a", &[2, 3]).input("b", &[3, 4]).input("c", c);
        let model = build.node("Gemm", &["a", "b", "c"], &["y"], &[]).bare_output("y").load();
        let inference = infer(&model, &[]).unwrap();
        matches!(inference.broadcasts[0].outcome, Outcome::Error(_))
    };
    // onnx accepts the last three.
    let answers = [&[4][..], &[2, 1], &[], &[5, 6], &[2, 3, 4], &[1, 2, 4]].map(gemm);
    assert_eq!(answers, [false, false, false, true, true, true]);
    let norm = Build::new(17).input("x", &[2, 3, 4]).input("s", &[9]);
    let norm = norm.node("LayerNormalization", &["x", "s"], &["y"], &[]).bare_output("y").load();
    assert!(matches!(infer(&norm, &[]).unwrap().broadcasts[0].outcome, Outcome::Error(_)));
    let clip = Build::new(17).input("x", &[2]).input("low", &[2]);
    let clip = clip.node("Clip", &["x", "low"], &["y"], &[]).bare_output("y").load();
    assert_eq!(infer(&clip, &[]).unwrap().problems[0].message, "min must be a scalar, not (2,)");
}

#[test]
fn functions_are_followed_at_each_call() {
    let function = message(|function| {
        function.bytes(1, "shift");
        function.bytes(4, "v");
        function.bytes(4, "w");
        function.bytes(5, "out");
        function.bytes(6, "axis");
        let reference = message(|attribute| {
            attribute.bytes(1, "axis");
            attribute.int(20, 2);
            attribute.bytes(21, "axis");
        });
        function.message(7, &node("Add", &["v", "w"], &["sum"], &[]));
        function.message(7, &node("Concat", &["sum", "sum"], &["out"], &[reference]));
        function.message(9, &message(|opset| opset.int(2, 17)));
        function.bytes(10, "own");
    });
    let call = |output: &str, axis: i64| {
        message(|node| {
            node.bytes(1, "x");
            node.bytes(1, "b");
            node.bytes(2, output);
            node.bytes(4, "shift");
            node.bytes(7, "own");
            node.message(5, &int("axis", axis));
        })
    };
    let model = Build::new(17)
        .input("x", &[2, 3])
        .input("b", &[3])
        .field(1, &call("p", 0))
        .field(1, &call("q", 1))
        .bare_output("p")
        .bare_output("q")
        .function(function)
        .load();
    let inference = infer(&model, &[]).unwrap();
    let shapes: Vec<String> = model
        .graph
        .outputs
        .iter()
        .map(|output| inference.facts[output.index()].dims.to_string())
        .collect();
    assert_eq!(shapes, ["(4, 3)", "(2, 6)"]);
    assert_eq!(inference.broadcasts[0].node, "p/sum");
    assert_eq!(inference.broadcasts[0].names.operands, ["v", "w"]);
}

#[test]
fn branches_read_from_the_graph_around_them() {
    let branch = |other: &str| {
        message(|graph| {
            graph.message(1, &node("Add", &["x", other], &["t"], &[]));
            graph.message(12, &message(|value| value.bytes(1, "t")));
        })
    };
    let model = Build::new(17)
        .field(11, &value_info("flag", 9, &[]))
        .input("x", &[4, 1])
        .input("b", &[3])
        .input("c", &["N"])
        .node(
            "If",
            &["flag"],
            &["y"],
            &[
                graph_attribute("then_branch", &branch("b")),
                graph_attribute("else_branch", &branch("c")),
            ],
        )
        .bare_output("y")
        .load();
    assert_eq!(output(&model, &[]), "(4, y.1)");
    assert_eq!(output(&model, &[("N", 3)]), "(4, 3)");
    let inference = infer(&model, &[]).unwrap();
    let nodes: Vec<&str> = inference.broadcasts.iter().map(|own| own.node.as_str()).collect();
    assert_eq!(nodes, ["y/then_branch/t", "y/else_branch/t"]);
}

#[test]
fn sizes_are_followed_through_their_arithmetic() {
    let model = Build::new(17)
        .input("x", &[Size::from("N"), Size::from("T"), Size::Known(8)])
        .int64s("zero", &[1], &[0])
        .int64s("one", &[1], &[1])
        .int64s("two", &[1], &[2])
        .int64s("all", &[1], &[-1])
        .node("Shape", &["x"], &["shape"], &[])
        .node("Gather", &["shape", "zero"], &["n"], &[])
        .node("Gather", &["shape", "one"], &["t"], &[])
        .node("Mul", &["n", "two"], &["twice"], &[])
        .node("Concat", &["twice", "t", "all"], &["target"], &[int("axis", 0)])
        .node("Reshape", &["x", "target"], &["y"], &[])
        .bare_output("y")
        .load();
    assert_eq!(output(&model, &[]), "(2*N, T, 4)");
    assert_eq!(output(&model, &[("N", 3), ("T", 5)]), "(6, 5, 4)");
}

#[test]
fn inputs_without_names_for_their_sizes_can_be_set() {
    let build = Build::new(17).input("x", &["", ""]).node("Relu", &["x"], &["y"], &[]);
    let model = build.bare_output("y").load();
    assert_eq!(output(&model, &[]), "(x.0, x.1)");
    assert_eq!(output(&model, &[("x.1", 7)]), "(x.0, 7)");
}

#[test]
fn operators_without_a_rule_have_the_declared_shape() {
    let build = Build::new(17).input("x", &[2]).node("Mystery", &["x"], &["y"], &[]);
    let model = build.output("y", &[5, 6]).load();
    assert_eq!(output(&model, &[]), "(5, 6)");
    assert_eq!(infer(&model, &[]).unwrap().unknown["Mystery"], 1);
}
