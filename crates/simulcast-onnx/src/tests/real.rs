//! Defects that showed on real models, each as the smallest model that has it.

use simulcast_core::Outcome;

use super::build::{
    Build, Size, float, graph_attribute, int, ints, message, node, text, value_info,
};
use crate::ElementType::{F32, F64, I64, U8};
use crate::{Inference, Model, infer};

fn inferred(build: &Build) -> (Model, Inference) {
    let model = build.load();
    let inference = infer(&model, &[]).unwrap();
    (model, inference)
}

/// The shapes of the outputs of a model that nothing is wrong with.
fn outputs(build: &Build) -> Vec<String> {
    let (model, inference) = inferred(build);
    assert_eq!(inference.errors(), [""; 0]);
    let facts = model.graph.outputs.iter().map(|output| &inference.facts[output.index()]);
    facts.map(|fact| fact.dims.to_string()).collect()
}

fn output(build: &Build) -> String {
    outputs(build).concat()
}

/// What is wrong with a model.
fn errors(build: &Build) -> Vec<String> {
    inferred(build).1.errors()
}

fn error(build: &Build) -> String {
    let errors = errors(build);
    assert_eq!(errors.len(), 1, "{errors:?}");
    errors.concat()
}

fn sizes(words: &[&str]) -> Vec<Size> {
    words.iter().map(|word| word.parse().map_or_else(|_| Size::from(*word), Size::Known)).collect()
}

fn of(sizes_of_x: &[&str]) -> Build {
    Build::new(17).input("x", &sizes(sizes_of_x))
}

/// One node `y` over `x` and what else the model has.
fn one(build: Build, op: &str, inputs: &[&str], attributes: &[crate::wire::Message]) -> Build {
    build.node(op, inputs, &["y"], attributes).bare_output("y")
}

#[test]
fn d1_sizes_that_are_called_unknown_are_not_equal() {
    let build = of(&["1", "3", "?", "?"]);
    assert_eq!(output(&one(build, "Relu", &["x"], &[])), "(1, 3, x.2, x.3)");
    let turned = of(&["?", "?"]).node("Transpose", &["x"], &["t"], &[]);
    let (_, inference) = inferred(&one(turned, "Add", &["x", "t"], &[]));
    assert!(!inference.constraints.is_empty());
}

#[cfg(feature = "run")]
#[test]
fn d1_a_run_takes_sizes_that_are_called_unknown() {
    let model = one(of(&["1", "3", "?", "?"]), "Relu", &["x"], &[]).load();
    let x = ndarray::Array4::<f32>::ones((1, 3, 2, 5));
    let made = crate::Session::new(&model).unwrap().run(&[("x", (&x).into())]).unwrap();
    assert_eq!(made[0].1.shape(), [1, 3, 2, 5]);
}

#[cfg(feature = "run")]
#[test]
fn d2_reused_names_can_be_distrusted() {
    let build = of(&["batch", "width"]).input("d", &sizes(&["batch", "width"]));
    let build = build.node("Shape", &["d"], &["s"], &[]).node("Relu", &["x"], &["y"], &[]);
    let mut model = build.bare_output("y").bare_output("s").load();
    let (x, d) = (ndarray::Array2::<f32>::ones((1, 256)), ndarray::Array2::<f32>::ones((1, 8)));
    let given = [("x", (&x).into()), ("d", (&d).into())];
    let refused = crate::Session::new(&model).unwrap().run(&given).unwrap_err();
    assert!(refused.to_string().starts_with("width is 256 and"), "{refused}");
    model.forget_names();
    assert_eq!(crate::Session::new(&model).unwrap().run(&given).unwrap().len(), 2);
}

#[test]
fn d3_stale_shapes_behind_an_operator_without_a_rule_are_no_finding() {
    let build = Build::new(17).input("x", &[2_i64, 3]);
    let stale = value_info("h", 1, &sizes(&["2", "unk__3", "128"]));
    let build = build.node("Mystery", &["x"], &["h"], &[]).field(13, &stale);
    let build = build.node("Relu", &["h"], &["y"], &[]).output("y", &sizes(&["2", "1", "128"]));
    assert_eq!(inferred(&build).1.differences, []);
}

#[test]
fn d4_resize_by_factors_keeps_and_multiplies_sizes() {
    let resized = |sizes: &[&str], factors: &[f32]| {
        let build = of(sizes).float32s("scales", &[factors.len() as i64], factors);
        output(&one(build, "Resize", &["x", "", "scales"], &[]))
    };
    assert_eq!(resized(&["N", "3", "H", "8"], &[1.0, 1.0, 2.0, 2.0]), "(N, 3, 2*H, 16)");
    assert_eq!(resized(&["N", "3", "H", "9"], &[1.0, 1.0, 0.5, 0.5]), "(N, 3, H//2, 4)");
    assert_eq!(resized(&["1", "3", "7", "7"], &[1.0, 1.0, 1.5, 2.6]), "(1, 3, 10, 18)");
    let wrong = of(&["1", "3", "7"]).float32s("s", &[2], &[1.0, 2.0]);
    assert!(error(&one(wrong, "Resize", &["x", "", "s"], &[])).contains("2 factors"));
    let to = of(&["N", "3", "H", "W"]).int64s("to", &[4], &[1, 3, 40, 50]);
    assert_eq!(output(&one(to, "Resize", &["x", "", "", "to"], &[])), "(1, 3, 40, 50)");
    let axes = of(&["N", "3", "H", "W"]).int64s("to", &[2], &[40, 50]);
    let axes = one(axes, "Resize", &["x", "", "", "to"], &[ints("axes", &[2, 3])]);
    assert_eq!(output(&axes), "(N, 3, 40, 50)");
    let mut nine = Build::new(9).input("x", &[1_i64, 2, 3]);
    nine = nine.float32s("scales", &[3], &[1.0, 1.0, 3.0]);
    assert_eq!(output(&one(nine, "Upsample", &["x", "scales"], &[])), "(1, 2, 9)");
}

#[test]
fn d4_a_loop_keeps_what_its_body_keeps() {
    let body = message(|graph| {
        graph.message(1, &node("Add", &["kept", "one"], &["next"], &[]));
        graph.message(1, &node("Concat", &["grown", "grown"], &["more"], &[int("axis", 1)]));
        graph.message(1, &node("Identity", &["go"], &["again"], &[]));
        graph.message(1, &node("Mul", &["kept", "w"], &["product"], &[]));
        graph.message(1, &node("Own", &["kept"], &["other"], &[]));
        for (name, element) in [("i", 7), ("go", 9), ("kept", 1), ("grown", 1)] {
            let bare = message(|value| {
                value.bytes(1, name);
                let tensor = message(|tensor| tensor.int(1, element));
                value.message(2, &message(|kind| kind.message(1, &tensor)));
            });
            graph.message(11, &bare);
        }
        for name in ["again", "next", "more", "next"] {
            graph.message(12, &message(|value| value.bytes(1, name)));
        }
    });
    let build = of(&["2", "N"]).typed("count", I64, &[]).zeros("one", &[1]).input("w", &["M"]);
    let build = build.node(
        "Loop",
        &["count", "", "x", "x"],
        &["a", "b", "c"],
        &[graph_attribute("body", &body)],
    );
    let build = build.bare_output("a").bare_output("b").bare_output("c");
    assert_eq!(outputs(&build), ["(2, N)", "(2, b.1)", "(c.0, 2, N)"]);
    // However many rounds were followed, what they found is noted once.
    let inference = inferred(&build).1;
    assert_eq!(inference.unknown.values().collect::<Vec<_>>(), [&1]);
    let nodes: Vec<usize> = inference.constraints.iter().map(|(_, nodes)| nodes.len()).collect();
    assert_eq!((nodes, inference.broadcasts.len()), (vec![1], 2));
}

#[test]
fn d5_a_bias_has_a_number_for_each_channel() {
    let build = of(&["1", "3", "8", "8"]).zeros("w", &[5, 3, 3, 3]).zeros("b", &[4]);
    let said = error(&one(build, "Conv", &["x", "w", "b"], &[]));
    assert!(
        said.starts_with(
            "y (Conv): the bias, one number for each channel of the result: 4 and 5 differ"
        ),
        "{said}"
    );
    let build = of(&["1", "3", "8", "8"]).zeros("w", &[3, 5, 3, 3]).zeros("b", &[5]);
    assert!(
        error(&one(build, "ConvTranspose", &["x", "w", "b"], &[int("group", 3)]))
            .contains("5 and 15")
    );
}

#[test]
fn d6_element_types_are_compared() {
    let build = of(&["2", "3"]).typed("z", F64, &sizes(&["2", "3"]));
    assert_eq!(
        error(&one(build, "Add", &["x", "z"], &[])),
        "y (Add): x is float32 and z float64, which must be the same type; of x float32 (2, 3), \
         z float64 (2, 3)"
    );
    let build = Build::new(17).typed("x", F64, &sizes(&["2", "3"])).zeros("w", &[3, 4]);
    assert!(error(&one(build, "Gemm", &["x", "w"], &[])).contains("must be the same type"));
    let build = of(&["2", "3"]).input("i", &[2_i64]);
    assert!(
        error(&one(build, "Gather", &["x", "i"], &[])).contains("i is float32, not int32 or int64")
    );
}

#[test]
fn d7_constant_indices_are_inside_the_axis() {
    let gather = |index: i64| {
        let build = of(&["2", "3"]).int64s("i", &[1], &[index]);
        errors(&one(build, "Gather", &["x", "i"], &[int("axis", 1)]))
    };
    assert_eq!((gather(2), gather(-3)), (vec![], vec![]));
    assert!(gather(3).concat().contains("the index 3 is outside an axis of 3"));
    assert!(gather(-4).concat().contains("the index -4 is outside"));
}

#[test]
fn d7_scales_of_quantization_fit_the_axis() {
    let build = |count: i64| {
        let codes = Build::new(13).typed("x", U8, &sizes(&["2", "3", "4"]));
        one(codes.zeros("s", &[count]), "DequantizeLinear", &["x", "s"], &[int("axis", 1)])
    };
    assert_eq!(output(&build(3)), "(2, 3, 4)");
    assert_eq!(output(&build(1)), "(2, 3, 4)");
    assert!(error(&build(4)).contains("the scales, one for each index of axis 1: 3 and 4 differ"));
}

#[test]
fn d7_weights_of_recurrent_layers_fit() {
    let layer = |op: &str, gates: i64, rows: i64, bias: i64| {
        let build = of(&["T", "N", "6"]).zeros("w", &[2, gates * rows, 6]);
        let build = build.zeros("r", &[2, gates * 5, 5]).zeros("b", &[2, bias]);
        let attributes = [int("hidden_size", 5), text("direction", "bidirectional")];
        let build = build.node(op, &["x", "w", "r", "b"], &["y", "h"], &attributes);
        build.bare_output("y").bare_output("h")
    };
    assert_eq!(outputs(&layer("LSTM", 4, 5, 40)), ["(T, 2, N, 5)", "(2, N, 5)"]);
    assert_eq!(outputs(&layer("GRU", 3, 5, 30)), ["(T, 2, N, 5)", "(2, N, 5)"]);
    assert_eq!(outputs(&layer("RNN", 1, 5, 10)), ["(T, 2, N, 5)", "(2, N, 5)"]);
    assert!(
        error(&layer("LSTM", 4, 4, 40))
            .contains("the rows of W, 4 times the hidden size: 16 and 20")
    );
    assert!(error(&layer("GRU", 3, 5, 20)).contains("B, axis 1: 20 and 30 differ"));
}

#[test]
fn d7_channels_of_transposed_convolutions_fit() {
    let made = |channels: i64, attributes: &[crate::wire::Message]| {
        let build = of(&["1", "4", "H", "8"]).zeros("w", &[channels, 5, 3, 3]);
        one(build, "ConvTranspose", &["x", "w"], attributes)
    };
    assert_eq!(output(&made(4, &[])), "(1, 5, H + 2, 10)");
    let strided =
        [ints("strides", &[2, 2]), ints("pads", &[1; 4]), ints("output_padding", &[1, 1])];
    assert_eq!(output(&made(4, &strided)), "(1, 5, 2*H, 16)");
    assert_eq!(output(&made(4, &[ints("output_shape", &[20, 21])])), "(1, 5, 20, 21)");
    assert!(error(&made(3, &[])).contains("the channels: 4 and 3 differ"));
}

#[test]
fn d8_a_product_is_named_by_its_factors() {
    let build =
        of(&["2", "3"]).node("Relu", &["x"], &["h"], &[]).zeros("w", &[5, 3]).zeros("b", &[4]);
    let build = build.node("Gemm", &["h", "w", "b"], &["y"], &[int("transB", 1)]).bare_output("y");
    let (_, inference) = inferred(&build);
    let gemm = &inference.broadcasts[0];
    assert_eq!(gemm.names.operands, ["h @ w.T", "b"]);
    assert_eq!(gemm.producers, ["", "an initializer"]);
    assert!(matches!(gemm.outcome, Outcome::Error(_)));
}

#[test]
fn d9_errors_that_are_no_broadcast_name_their_inputs() {
    let build = of(&["1", "3", "8", "8"]).input("z", &sizes(&["1", "3", "8", "9"]));
    let (_, inference) = inferred(&one(build, "Concat", &["x", "z"], &[int("axis", 1)]));
    let problem = &inference.problems[0];
    assert_eq!(
        problem.to_string(),
        "y (Concat): axis 3: 8 and 9 differ; of x float32 (1, 3, 8, 8), z float32 (1, 3, 8, 9)"
    );
    let told: Vec<&str> = problem.operands.iter().map(|own| own.producer.as_str()).collect();
    assert_eq!(told, ["an input of the graph"; 2]);
    let build = of(&["2", "3", "8"]).input("z", &sizes(&["3", "8", "4"]));
    let (_, inference) = inferred(&one(build, "MatMul", &["x", "z"], &[]));
    assert_eq!(
        inference.broadcasts[0].producers,
        ["part of (2, 3, 8), an input of the graph", "part of (3, 8, 4), an input of the graph"]
    );
}

#[test]
fn d12_expressions_of_other_tools_are_equal_to_ours() {
    let build = of(&["1", "3", "height", "8"]).zeros("w", &[5, 3, 3, 3]);
    let attributes = [ints("strides", &[2, 2]), ints("pads", &[1; 4])];
    let build = build.node("Conv", &["x", "w"], &["c"], &attributes);
    let known = value_info("m", 1, &sizes(&["1", "5", "floor(height/2 - 1/2) + 1", "4"]));
    let build = build.node("Mystery", &["x"], &["m"], &[]).field(13, &known);
    let build = one(build, "Concat", &["c", "m"], &[int("axis", 1)]);
    assert_eq!(output(&build), "(1, 10, (height + 1)//2, 4)");
    assert_eq!(inferred(&build).1.constraints, []);
}

#[test]
fn pads_as_torch_writes_them_are_followed() {
    let build = of(&["N", "3", "H", "8"]).int64s("given", &[8], &[1, 2, 3, 4, 0, 0, 0, 0]);
    let build = build.int64s("pairs", &[2], &[-1, 2]).int64s("all", &[1], &[-1]);
    let build = build.int64s("end", &[1], &[i64::MIN + 1]).int64s("axis", &[1], &[0]);
    let build = build.node("Reshape", &["given", "pairs"], &["p"], &[]);
    let build = build.node("Slice", &["p", "all", "end", "axis", "all"], &["turned"], &[]);
    let build = build.node("Transpose", &["turned"], &["t"], &[ints("perm", &[1, 0])]);
    let build = build.node("Reshape", &["t", "all"], &["flat"], &[]);
    let build = build.node("Cast", &["flat"], &["pads"], &[int("to", 7)]);
    assert_eq!(output(&one(build, "Pad", &["x", "pads"], &[])), "(N, 3, H + 7, 11)");
}

#[test]
fn branches_that_agree_and_branches_that_are_taken_give_sizes() {
    let branch = |op: &str| {
        message(|graph| {
            let attributes = if op == "Squeeze" { vec![ints("axes", &[0])] } else { vec![] };
            graph.message(1, &node(op, &["x"], &["t"], &attributes));
            graph.message(12, &message(|value| value.bytes(1, "t")));
        })
    };
    let guarded = |x: &[&str], condition: Option<&str>, then: &str| {
        let build =
            Build::new(11).input("x", &sizes(x)).typed("flag", crate::ElementType::Bool, &[]);
        let build = build.node("Shape", &["x"], &["s"], &[]).int64s("one", &[], &[1]);
        let build = build.int64s("zero", &[], &[0]).node("Gather", &["s", "zero"], &["n"], &[]);
        let build = build.node("Equal", &["n", "one"], &["is_one"], &[]);
        let attributes = [
            graph_attribute("then_branch", &branch(then)),
            graph_attribute("else_branch", &branch("Relu")),
        ];
        let inputs = [condition.unwrap_or("is_one")];
        build.node("If", &inputs, &["y"], &attributes).bare_output("y")
    };
    assert_eq!(output(&guarded(&["N", "5"], Some("flag"), "Sigmoid")), "(N, 5)");
    assert_eq!(output(&guarded(&["1", "5"], None, "Squeeze")), "(5,)");
    assert_eq!(output(&guarded(&["2", "5"], None, "Squeeze")), "(2, 5)");
    // What cannot work is not taken, and no error of a model that can.
    let build = guarded(&["2", "5"], Some("flag"), "Squeeze");
    assert_eq!(output(&build), "(2, 5)");
    assert_eq!(inferred(&build).1.untaken.len(), 1);
}

#[test]
fn operators_of_onnx_runtime_are_followed() {
    let contrib = |x: &[&str], op: &str, inputs: &[&str], attributes: &[crate::wire::Message]| {
        let build = of(x).zeros("w", &[4, 6]).zeros("g", &[6]).zeros("conv", &[7, 3, 1, 1]);
        let build = build.node_of("com.microsoft", op, inputs, &["y"], attributes);
        output(&build.bare_output("y"))
    };
    assert_eq!(contrib(&["N", "4"], "FusedMatMul", &["x", "w"], &[float("alpha", 0.5)]), "(N, 6)");
    assert_eq!(
        contrib(&["N", "2", "6"], "FusedMatMul", &["x", "w"], &[int("transB", 1)]),
        "(N, 2, 4)"
    );
    assert_eq!(
        contrib(&["N", "5", "6"], "SkipLayerNormalization", &["x", "x", "g"], &[]),
        "(N, 5, 6)"
    );
    assert_eq!(contrib(&["N", "6"], "BiasGelu", &["x", "g"], &[]), "(N, 6)");
    assert_eq!(contrib(&["N", "3", "8", "8"], "FusedConv", &["x", "conv"], &[]), "(N, 7, 8, 8)");
    let codes = Build::new(13).typed("a", U8, &sizes(&["N", "1", "4"]));
    let codes = codes.typed("b", U8, &sizes(&["3", "1"])).zeros("s", &[]);
    let inputs = ["a", "s", "", "b", "s", "", "s", ""];
    let codes = codes.node_of("com.microsoft", "QLinearAdd", &inputs, &["y"], &[]).bare_output("y");
    assert_eq!(output(&codes), "(N, 3, 4)");
    assert_eq!(inferred(&codes).1.broadcasts.len(), 1);
}

#[test]
fn operators_of_scikit_learn_are_followed() {
    let ml = |op: &str, outputs: &[&str], attributes: &[crate::wire::Message]| {
        let build = Build::new(17).typed("x", F32, &sizes(&["N", "6"])).int64s("i", &[2], &[0, 5]);
        let inputs: &[&str] = if op == "ArrayFeatureExtractor" { &["x", "i"] } else { &["x"] };
        let build = build.node_of("ai.onnx.ml", op, inputs, outputs, attributes);
        self::outputs(&outputs.iter().fold(build, |build, output| build.bare_output(output)))
    };
    assert_eq!(ml("Scaler", &["y"], &[]), ["(N, 6)"]);
    assert_eq!(ml("Normalizer", &["y"], &[]), ["(N, 6)"]);
    assert_eq!(ml("LinearRegressor", &["y"], &[int("targets", 3)]), ["(N, 3)"]);
    assert_eq!(ml("ArrayFeatureExtractor", &["y"], &[]), ["(N, 2)"]);
    assert_eq!(ml("OneHotEncoder", &["y"], &[ints("cats_int64s", &[1, 2, 3])]), ["(N, 6, 3)"]);
    let labels = ints("classlabels_int64s", &[0, 1, 2]);
    assert_eq!(ml("TreeEnsembleClassifier", &["y", "p"], &[labels]), ["(N,)", "(N, 3)"]);
}

#[test]
fn data_that_decide_sizes_get_names_of_their_own() {
    let found = of(&["2", "N"]).node("NonZero", &["x"], &["y"], &[]);
    let found = found.node("Transpose", &["y"], &["t"], &[]).bare_output("y").bare_output("t");
    assert_eq!(outputs(&found), ["(2, y.1)", "(y.1, 2)"]);
    let many = of(&["2", "3"]).node("Unique", &["x"], &["y", "i"], &[]);
    assert_eq!(outputs(&many.bare_output("y")), ["(y.0,)"]);
    let expanded = of(&["4", "1"]).typed("to", I64, &sizes(&["3"]));
    assert_eq!(output(&one(expanded, "Expand", &["x", "to"], &[])), "(y.0, 4, y.2)");
}
