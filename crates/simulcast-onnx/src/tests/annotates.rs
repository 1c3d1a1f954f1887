//! Annotated models: what is written, and that nothing else changes.

use super::build::{Build, Size, graph_attribute, int64s, ints, message, node, value_info};
use crate::schema::{attribute, graph, model, value_info as info};
use crate::wire::{Fields, Message};
use crate::{AnnotateError, AnnotateOptions, Annotated, Model, annotate};

fn annotated(bytes: Vec<u8>) -> Annotated {
    annotate(bytes, AnnotateOptions::default()).unwrap()
}

/// What the file declares of a value.
fn declared(bytes: &[u8], name: &str) -> String {
    let model = Model::from_bytes(bytes).unwrap();
    let value = model.graph.values.iter().find(|value| value.name == name).unwrap();
    match &value.declared {
        Some(crate::Declared::Tensor { element, dims: Some(dims) }) => {
            let dims: Vec<String> = dims.iter().map(ToString::to_string).collect();
            format!("{} {}", element.map_or("?", crate::ElementType::name), dims.join(","))
        }
        other => format!("{other:?}"),
    }
}

/// The fields of the graph but `value_info` and those of `numbers`, as bytes.
fn others(bytes: &[u8], numbers: &[u64]) -> Vec<Vec<u8>> {
    let fields: Vec<_> = Fields::new(bytes).map(Result::unwrap).collect();
    let own = fields.iter().find(|field| field.number == model::GRAPH).unwrap();
    let around = fields.iter().filter(|field| field.number != model::GRAPH);
    let inside = own.fields().unwrap().map(Result::unwrap);
    let kept = inside
        .filter(|field| field.number != graph::VALUE_INFO && !numbers.contains(&field.number))
        .map(|field| field.whole.to_vec());
    around.map(|field| field.whole.to_vec()).chain(kept).collect()
}

fn convolved() -> Build {
    Build::new(17)
        .input("x", &["N".into(), Size::Known(3), "H".into(), 8.into()])
        .input("w", &[5, 3, 3, 3])
        .node("Conv", &["x", "w"], &["c"], &[ints("strides", &[2, 2])])
        .node("Relu", &["c"], &["r"], &[])
        .node("Shape", &["r"], &["s"], &[])
        .node("NonZero", &["x"], &["z"], &[])
        .bare_output("r")
        .bare_output("s")
        .bare_output("z")
}

#[test]
fn every_result_gets_its_type_and_shape() {
    let bytes = convolved().bytes();
    let made = annotated(bytes.clone());
    assert_eq!(declared(&made.bytes, "c"), "float32 N,5,(H + 1)//2 - 1,3");
    assert_eq!(declared(&made.bytes, "r"), "float32 N,5,(H + 1)//2 - 1,3");
    assert_eq!(declared(&made.bytes, "s"), "int64 4");
    assert_eq!(declared(&made.bytes, "z"), "int64 4,z.1");
    assert_eq!(declared(&made.bytes, "x"), "float32 N,3,H,8");
    assert_eq!(made.report.lost.keys().collect::<Vec<_>>(), ["NonZero"]);
    assert_eq!(others(&made.bytes, &[graph::OUTPUT]), others(&bytes, &[graph::OUTPUT]));
    // What was written is believed when it is read again.
    let again = annotated(made.bytes.clone());
    assert_eq!(again.bytes, made.bytes);
    assert_eq!((again.report.added, again.report.replaced.len()), (0, 0));
}

#[test]
fn sizes_that_are_set_stand_in_the_inputs_too() {
    let options = AnnotateOptions { sizes: &[("H", 9), ("N", 2)], ..AnnotateOptions::default() };
    let made = annotate(convolved().bytes(), options).unwrap();
    assert_eq!(declared(&made.bytes, "x"), "float32 2,3,9,8");
    assert_eq!(declared(&made.bytes, "c"), "float32 2,5,4,3");
    let gone = AnnotateOptions { sizes: &[("M", 9)], ..AnnotateOptions::default() };
    let refused = annotate(convolved().bytes(), gone).unwrap_err();
    assert!(matches!(&refused, AnnotateError::Infer(why) if why.contains("no input")), "{refused}");
}

#[test]
fn stale_shapes_are_replaced_and_everything_unknown_stays() {
    let mut stale = value_info("c", 1, &[Size::Known(1), 5.into(), 7.into(), 7.into()]);
    stale.bytes(info::TYPE + 1, "a doc string");
    stale.bytes(99, "a field of the future");
    let foreign = value_info("gone", 1, &[Size::Known(4)]);
    let bytes = convolved()
        .field(graph::VALUE_INFO, &stale)
        .field(graph::VALUE_INFO, &foreign)
        .field(77, &message(|own| own.bytes(1, "unknown")))
        .bytes();
    let made = annotated(bytes.clone());
    assert_eq!(declared(&made.bytes, "c"), "float32 N,5,(H + 1)//2 - 1,3");
    let replaced =
        ("c".to_owned(), "(1, 5, 7, 7)".to_owned(), "(N, 5, (H + 1)//2 - 1, 3)".to_owned());
    assert!(made.report.replaced.contains(&replaced), "{:?}", made.report);
    assert_eq!(others(&made.bytes, &[graph::OUTPUT]), others(&bytes, &[graph::OUTPUT]));
    let has = |text: &str| made.bytes.windows(text.len()).any(|part| part == text.as_bytes());
    assert!(has("a doc string") && has("a field of the future") && has("gone"));
}

#[test]
fn a_size_with_a_name_that_means_unknown_has_a_name_of_its_own() {
    for name in ["?", "None", "unknown", "-1"] {
        let unknown = || Size::from(name);
        let build = Build::new(17)
            .input("x", &[unknown(), unknown()])
            .node("Transpose", &["x"], &["t"], &[])
            .node("Add", &["x", "t"], &["y"], &[])
            .bare_output("y");
        let made = annotated(build.bytes());
        assert_eq!(declared(&made.bytes, "t"), "float32 x.1,x.0", "{name}");
        assert_eq!(made.inference.symbols, ["x.0", "x.1"], "{name}");
        assert!(!made.inference.constraints.is_empty(), "x + x.T needs a square");
    }
}

#[test]
fn names_that_are_not_trusted_are_made_distinct() {
    let build = Build::new(17)
        .input("x", &[Size::from("w"), Size::from("w")])
        .node("Transpose", &["x"], &["t"], &[])
        .bare_output("t");
    assert_eq!(declared(&annotated(build.bytes()).bytes, "t"), "float32 w,w");
    let options = AnnotateOptions { distrust_names: true, ..AnnotateOptions::default() };
    let made = annotate(build.bytes(), options).unwrap();
    assert_eq!(declared(&made.bytes, "x"), "float32 x.0,x.1");
    assert_eq!(declared(&made.bytes, "t"), "float32 x.1,x.0");
}

#[test]
fn results_of_nodes_that_cannot_work_have_no_shape() {
    let clash = Build::new(17)
        .input("x", &[2, 3])
        .input("y", &[4])
        .node("Add", &["x", "y"], &["z"], &[])
        .field(graph::VALUE_INFO, &value_info("z", 1, &[Size::Known(2), 4.into()]))
        .node("Relu", &["z"], &["r"], &[])
        .bare_output("r");
    let made = annotated(clash.bytes());
    assert_eq!(made.inference.errors().len(), 1);
    assert!(declared(&made.bytes, "r").contains("dims: None"), "{}", declared(&made.bytes, "r"));
}

#[test]
fn graphs_inside_nodes_are_annotated_in_their_place() {
    let branch = |op: &str| {
        message(|own: &mut Message| {
            own.message(graph::NODE, &node(op, &["x"], &["inner"], &[]));
            own.message(graph::NODE, &node("Relu", &["inner"], &["out"], &[]));
            own.bytes(graph::NAME, "branch");
            own.message(graph::OUTPUT, &message(|out| out.bytes(info::NAME, "out")));
        })
    };
    let build = Build::new(17)
        .input("x", &["N", "M"])
        .field(graph::INPUT, &value_info("c", 9, &[]))
        .node(
            "If",
            &["c"],
            &["y"],
            &[
                graph_attribute("then_branch", &branch("Abs")),
                graph_attribute("else_branch", &branch("Neg")),
            ],
        )
        .bare_output("y");
    let made = annotated(build.bytes());
    assert_eq!(declared(&made.bytes, "y"), "float32 N,M");
    let model = Model::from_bytes(&made.bytes).unwrap();
    let inner: Vec<_> = model.graph.nodes[0].graphs().collect();
    assert_eq!(inner.len(), 2);
    for graph in inner {
        assert!(
            graph.values.iter().filter(|own| own.name != "x").all(|own| own.declared.is_some())
        );
    }
    assert_eq!(annotated(made.bytes.clone()).bytes, made.bytes);
    assert_eq!(attribute::NAME, 1);
}

#[test]
fn data_in_other_files_need_not_be_there() {
    let tensor = message(|own| {
        own.int(crate::schema::tensor::DIMS, 3);
        own.int(crate::schema::tensor::DATA_TYPE, 1);
        own.bytes(crate::schema::tensor::NAME, "w");
        own.message(
            crate::schema::tensor::EXTERNAL_DATA,
            &message(|entry| {
                entry.bytes(1, "location");
                entry.bytes(2, "weights.bin");
            }),
        );
        own.int(crate::schema::tensor::DATA_LOCATION, 1);
    });
    let build = Build::new(17)
        .input("x", &["N", "M"])
        .field(graph::INITIALIZER, &tensor)
        .field(graph::INITIALIZER, &int64s("shape", &[1], &[3]))
        .node("Add", &["x", "w"], &["y"], &[])
        .bare_output("y");
    let made = annotated(build.bytes());
    assert_eq!(declared(&made.bytes, "y"), "float32 N,3");
    assert!(others(&made.bytes, &[graph::OUTPUT]) == others(&build.bytes(), &[graph::OUTPUT]));
}
