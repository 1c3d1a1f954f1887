//! Models from someone who means harm: each is refused or bounded, none panics.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use super::build::{Build, graph_attribute, int, int64s, ints, message, node, value_info};
use crate::{
    CheckPolicy, ExternalError, ExternalFiles, LoadError, Model, TensorError, WireError, check,
    infer,
};

/// Two of them are more than can be counted: 2^40 where addresses have 64 bits, 2^20 where they have 32.
const HUGE: usize = 1 << (usize::BITS / 8 * 5);

fn refused(build: &Build) -> LoadError {
    Model::from_bytes(&build.bytes()).unwrap_err()
}

fn tensor_error(build: &Build) -> TensorError {
    match refused(build) {
        LoadError::Tensor { why, .. } => why,
        other => panic!("{other}"),
    }
}

#[test]
fn a_model_cut_off_anywhere_never_panics() {
    let build = Build::new(17)
        .input("x", &[2, 3])
        .int64s("shape", &[2], &[3, 2])
        .node("Reshape", &["x", "shape"], &["y"], &[])
        .output("y", &[3, 2]);
    let bytes = build.bytes();
    let mut refusals = 0;
    for length in 0..bytes.len() {
        match Model::from_bytes(&bytes[..length]) {
            Ok(model) => drop(infer(&model, &[])),
            Err(_) => refusals += 1,
        }
    }
    // Cut between two fields, what is left is a model with less in it.
    assert!(refusals > bytes.len() - 5, "{refusals} of {}", bytes.len());
}

#[test]
fn any_byte_changed_never_panics() {
    let build = Build::new(6)
        .input("x", &[2, 3])
        .input("b", &[2])
        .int64s("shape", &[2], &[3, 2])
        .node("Add", &["x", "b"], &["z"], &[int("broadcast", 1), int("axis", 0)])
        .node("Reshape", &["z", "shape"], &["y"], &[])
        .output("y", &[3, 2]);
    let bytes = build.bytes();
    for at in 0..bytes.len() {
        for value in [0, 1, 2, 7, 0x0a, 0x3a, 0x7f, 0x80, 0xff, bytes[at] ^ 1] {
            let mut bytes = bytes.clone();
            bytes[at] = value;
            if let Ok(model) = Model::from_bytes(&bytes) {
                let _ = check(&model, &[], &Default::default());
                let _ = crate::upgrade(&bytes, None);
            }
        }
    }
}

#[test]
fn what_is_no_protobuf_is_said_to_be_none() {
    let error = Model::from_bytes(b"hello, this is a text").unwrap_err();
    let part = "ModelProto";
    assert!(matches!(error, LoadError::Protobuf { part: p, .. } if p == part), "{error}");
    assert_eq!(Model::from_bytes(&[]).unwrap_err(), LoadError::NoGraph);
    let missing = Model::load("no/such/model.onnx").unwrap_err();
    assert!(missing.to_string().starts_with("no/such/model.onnx: "), "{missing}");
}

#[test]
fn a_second_graph_is_refused() {
    let one = Build::new(6).input("x", &[2]).node("Relu", &["x"], &["y"], &[]).bytes();
    // An empty one after it: what was loaded and what is written would be two models.
    let two = [&one[..], &[0x3a, 0]].concat();
    let error = Model::from_bytes(&two).unwrap_err();
    assert_eq!(error, LoadError::Unsupported("a second graph".into()));
    assert_eq!(crate::upgrade(&two, None), Err(crate::UpgradeError::Load(error)));
}

#[test]
fn graphs_nested_without_end_do_not_overflow_the_stack() {
    let mut graph = message(|_| {});
    for _ in 0..2_000 {
        let holder = node("If", &[], &["y"], &[graph_attribute("then_branch", &graph)]);
        graph = message(|outer| outer.message(1, &holder));
    }
    let mut build = Build::new(17);
    build.graph = graph;
    assert_eq!(refused(&build), LoadError::TooDeep(32));
}

#[test]
fn functions_that_call_each_other_without_end_are_stopped() {
    let function = |name: &str, calls: &str, times: usize| {
        message(|function| {
            function.bytes(1, name);
            function.bytes(4, "x");
            function.bytes(5, "y0");
            for at in 0..times {
                let call = message(|node| {
                    node.bytes(1, "x");
                    node.bytes(2, format!("y{at}"));
                    node.bytes(4, calls);
                    node.bytes(7, "own");
                });
                function.message(7, &call);
            }
            function.bytes(10, "own");
        })
    };
    let call = message(|node| {
        node.bytes(1, "x");
        node.bytes(2, "y");
        node.bytes(4, "f0");
        node.bytes(7, "own");
    });
    let build = Build::new(17).input("x", &[2]).field(1, &call).bare_output("y");
    let model = build.clone().function(function("f0", "f0", 1)).load();
    assert!(infer(&model, &[]).unwrap_err().contains("more than 64 deep"));
    // Thirty functions that each call the next ten times.
    let many = (0..30).fold(build, |build, at| {
        build.function(function(&format!("f{at}"), &format!("f{}", at + 1), 10))
    });
    assert!(infer(&many.load(), &[]).unwrap_err().contains("more than 250000 nodes"));
}

#[test]
fn thousands_of_branches_take_no_more_time_for_what_was_noted_before() {
    let branch = |at: usize| {
        message(|graph| {
            graph.message(1, &node("Add", &["x", "w"], &["t"], &[]));
            graph.message(1, &node(&format!("Own{at}"), &["t"], &["u"], &[]));
            graph.message(12, &message(|value| value.bytes(1, "t")));
        })
    };
    let count = 4000;
    let build = Build::new(17).input("x", &["n"]).input("w", &["m"]);
    let build = build.typed("flag", crate::ElementType::Bool, &[]);
    let build = (0..count).fold(build, |build, at| {
        let branches = ["then_branch", "else_branch"];
        let branches = branches.map(|name| graph_attribute(name, &branch(at)));
        build.node("If", &["flag"], &[&format!("y{at}")], &branches)
    });
    let model = build.bare_output("y0").load();
    let start = std::time::Instant::now();
    let inference = infer(&model, &[]).unwrap();
    // It takes a third of a second unoptimized; 25 s where each branch copies what was noted before it.
    assert!(start.elapsed() < std::time::Duration::from_secs(5), "{:?}", start.elapsed());
    assert_eq!(inference.unknown.len(), count);
    assert_eq!(inference.constraints.len(), 1);
    assert_eq!(inference.constraints[0].1.len(), 2 * count);
}

#[test]
fn nodes_that_wait_for_each_other_are_named() {
    let build = Build::new(17)
        .input("x", &[2])
        .node("Add", &["x", "b"], &["a"], &[])
        .node("Relu", &["a"], &["b"], &[])
        .bare_output("b");
    let LoadError::Cycle { nodes } = refused(&build) else { panic!() };
    assert_eq!(nodes.len(), 2);
    let own = Build::new(17).node("Relu", &["a"], &["a"], &[]).bare_output("a");
    let said = refused(&own).to_string();
    assert_eq!(said, "nodes wait for each other: a reads from a");
}

#[test]
fn nodes_out_of_order_are_put_in_order() {
    let build = Build::new(17)
        .node("Relu", &["a"], &["b"], &[])
        .node("Neg", &["x"], &["a"], &[])
        .input("x", &[2, 3])
        .bare_output("b");
    let model = build.load();
    assert_eq!(model.graph.order, [1, 0]);
    let facts = infer(&model, &[]).unwrap().facts;
    assert_eq!(facts[model.graph.outputs[0].index()].dims.to_string(), "(2, 3)");
}

#[test]
fn a_name_that_is_produced_twice_is_refused() {
    let twice = Build::new(17).input("x", &[2]).node("Relu", &["x"], &["y"], &[]).node(
        "Neg",
        &["x"],
        &["y"],
        &[],
    );
    assert_eq!(refused(&twice).to_string(), "\"y\" is produced again by node 1");
    let input = Build::new(17).input("x", &[2]).node("Relu", &["x"], &["x"], &[]);
    assert!(matches!(refused(&input), LoadError::Duplicate { .. }));
    let tensors = Build::new(17).int64s("c", &[1], &[1]).int64s("c", &[1], &[2]);
    assert!(matches!(refused(&tensors), LoadError::Duplicate { .. }));
    let inputs = Build::new(17).input("x", &[2]).input("x", &[2]);
    assert!(matches!(refused(&inputs), LoadError::Duplicate { .. }));
    // The default of an input is no second producer, in either order.
    let default =
        Build::new(17).int64s("c", &[1], &[1]).field(11, &value_info("c", 7, &[1.into()]));
    let default = default.load();
    assert!(default.graph.value(default.graph.inputs[0]).tensor.is_some());
}

#[test]
fn a_value_that_nothing_produces_is_named_with_its_reader() {
    let build = Build::new(17).input("x", &[2]).node("Add", &["x", "ghost"], &["y"], &[]);
    assert_eq!(refused(&build).to_string(), "node y (Add) reads \"ghost\", which nothing produces");
    let output = Build::new(17).input("x", &[2]).bare_output("ghost");
    assert_eq!(
        refused(&output).to_string(),
        "the output of the graph reads \"ghost\", which nothing produces"
    );
    let inner = message(|graph| {
        graph.message(1, &node("Relu", &["ghost"], &["t"], &[]));
        graph.message(12, &message(|value| value.bytes(1, "t")));
    });
    let branch = Build::new(17).input("x", &[2]).node(
        "If",
        &["x"],
        &["y"],
        &[graph_attribute("then_branch", &inner)],
    );
    assert_eq!(refused(&branch).to_string(), "node y (If) reads \"ghost\", which nothing produces");
    let nothing = Build::new(17).field(1, &message(|node| node.bytes(2, "y")));
    assert_eq!(refused(&nothing), LoadError::NoOperator { node: 0 });
}

#[test]
fn sizes_that_lie_about_the_data_are_refused() {
    let huge = Build::new(17).field(5, &int64s("w", &[1 << (usize::BITS / 2 - 2); 2], &[1]));
    let TensorError::Length { expected, given: 1, bytes: false, .. } = tensor_error(&huge) else {
        panic!("{}", tensor_error(&huge));
    };
    assert_eq!(expected, 1 << (usize::BITS - 4));
    let overflow = Build::new(17).field(5, &int64s("w", &[HUGE as i64; 2], &[1]));
    assert_eq!(tensor_error(&overflow), TensorError::Elements(vec![HUGE; 2]));
    let negative = Build::new(17).field(5, &int64s("w", &[-1], &[]));
    assert_eq!(tensor_error(&negative), TensorError::Size(-1));
    let raw = message(|tensor| {
        tensor.int(1, 3);
        tensor.int(2, 1);
        tensor.bytes(8, "w");
        tensor.bytes(9, [0; 8]);
    });
    let said = refused(&Build::new(17).field(5, &raw)).to_string();
    assert_eq!(said, "tensor \"w\": float32 (3,) needs 12 bytes, not 8");
}

#[test]
fn a_shape_of_many_axes_or_huge_sizes_is_only_arithmetic() {
    let build = Build::new(17)
        .input("x", &[1])
        .int64s("shape", &[3], &[HUGE as i64; 3])
        .node("Expand", &["x", "shape"], &["y"], &[])
        .node("ConstantOfShape", &["shape"], &["z"], &[])
        .node("Tile", &["y", "shape"], &["t"], &[])
        .int64s("end", &[], &[isize::MAX as i64])
        .int64s("zero", &[], &[0])
        .int64s("one", &[], &[1])
        .node("Range", &["zero", "end", "one"], &["r"], &[])
        .node("Size", &["y"], &["s"], &[])
        .bare_output("s");
    let inference = infer(&build.load(), &[]).unwrap();
    let shapes: Vec<String> = inference.facts.iter().map(|fact| fact.dims.to_string()).collect();
    let size = HUGE;
    assert_eq!(shapes[2], format!("({size}, {size}, {size})"));
    assert_eq!(shapes[8], format!("({},)", isize::MAX));
    // Offsets along the axes of an array without elements are not listed.
    for sizes in [[0, HUGE, HUGE], [HUGE, HUGE, 0], [HUGE, 0, 1]] {
        let build = Build::new(9).int64s("x", &sizes.map(|size| size as i64), &[]).node(
            "Transpose",
            &["x"],
            &["t"],
            &[],
        );
        let ends = [ints("starts", &[0]), ints("ends", &[1])];
        let build = build.node("Slice", &["x"], &["s"], &ends).bare_output("t").bare_output("s");
        let model = build.load();
        let inference = infer(&model, &[]).unwrap();
        let dims =
            |output: usize| inference.facts[model.graph.outputs[output].index()].dims.sizes();
        let [a, b, c] = sizes;
        assert_eq!(dims(0), Some(vec![c, b, a]));
        assert_eq!(dims(1), Some(vec![a.min(1), b, c]));
    }
    let many = vec![1_i64; 5000];
    let wide = Build::new(17).input("x", &many).node("Relu", &["x"], &["y"], &[]).bare_output("y");
    assert!(infer(&wide.load(), &[]).is_ok());
}

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("simulcast-onnx-{}-{name}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(folder.join("model")).unwrap();
    folder
}

/// A model whose only tensor, four floats, is in another file.
fn external(entries: &[(&str, &str)]) -> Vec<u8> {
    let tensor = message(|tensor| {
        tensor.int(1, 4);
        tensor.int(2, 1);
        tensor.bytes(8, "w");
        for (key, value) in entries {
            tensor.message(
                13,
                &message(|entry| {
                    entry.bytes(1, key);
                    entry.bytes(2, value);
                }),
            );
        }
        tensor.int(14, 1);
    });
    Build::new(17).field(5, &tensor).bare_output("w").bytes()
}

#[test]
fn data_in_other_files_are_read_only_below_the_models_folder() {
    let folder = folder("external");
    let data: Vec<u8> = (0..20).collect();
    fs::write(folder.join("model/w.bin"), &data).unwrap();
    fs::write(folder.join("secret.bin"), &data).unwrap();
    let load = |entries: &[(&str, &str)]| {
        let path = folder.join("model/m.onnx");
        fs::write(&path, external(entries)).unwrap();
        match Model::load(path) {
            Ok(model) => {
                let tensor = model.graph.values[0].tensor.clone().unwrap();
                match tensor.bytes() {
                    Ok(_) => Ok(tensor),
                    Err(TensorError::External(why)) => Err(why),
                    Err(other) => panic!("{other}"),
                }
            }
            Err(LoadError::Tensor { why: TensorError::External(why), .. }) => Err(why),
            Err(other) => panic!("{other}"),
        }
    };
    let found = load(&[("location", "w.bin"), ("offset", "4"), ("length", "16")]).unwrap();
    assert_eq!(found.bytes().unwrap(), &data[4..]);
    assert!(load(&[("location", "./w.bin"), ("offset", "4")]).is_ok());
    let outside = |location: &str| Err(ExternalError::Outside(location.into()));
    let absolute = folder.join("secret.bin").to_string_lossy().into_owned();
    for location in ["../secret.bin", "../model/w.bin", "", "..\\secret.bin", &absolute] {
        assert_eq!(load(&[("location", location)]).map(drop), outside(location), "{location}");
    }
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("../secret.bin", folder.join("model/link.bin")).unwrap();
        assert_eq!(load(&[("location", "link.bin")]).map(drop), outside("link.bin"));
    }
    let length = |entries: &[(&str, &str)]| match load(entries) {
        Err(ExternalError::Length { expected: 16, given, .. }) => given,
        other => panic!("{other:?}"),
    };
    assert_eq!(length(&[("location", "w.bin"), ("length", "8")]), 8);
    assert_eq!(length(&[("location", "w.bin"), ("offset", "8"), ("length", "16")]), 12);
    assert_eq!(length(&[("location", "w.bin"), ("offset", "18446744073709551615")]), 0);
    assert_eq!(
        load(&[("location", "w.bin"), ("offset", "x")]).map(drop),
        Err(ExternalError::Entry)
    );
    assert_eq!(load(&[("offset", "0")]).map(drop), Err(ExternalError::Entry));
    assert!(matches!(load(&[("location", "gone.bin")]), Err(ExternalError::Read { .. })));
    fs::create_dir(folder.join("model/sub")).unwrap();
    assert!(matches!(load(&[("location", "sub")]), Err(ExternalError::Read { .. })));
    // The file shrinks after it was looked at.
    fs::write(folder.join("model/w.bin"), [0; 10]).unwrap();
    let TensorError::External(ExternalError::Length { given: 6, .. }) = found.bytes().unwrap_err()
    else {
        panic!()
    };
    fs::remove_dir_all(&folder).unwrap();
    let bytes = external(&[("location", "w.bin")]);
    // A model without its folder can be looked at, its data cannot.
    let alone = Model::from_bytes(&bytes).unwrap().graph.values[0].tensor.clone().unwrap();
    assert_eq!(alone.bytes().unwrap_err(), TensorError::External(ExternalError::NoFolder));
}

/// Files that were handed over with a model.
#[derive(Debug)]
struct Given(Vec<(&'static str, Vec<u8>)>);

impl ExternalFiles for Given {
    fn size(&self, location: &str) -> Option<u64> {
        Some(self.0.iter().find(|own| own.0 == location)?.1.len() as u64)
    }

    fn read(&self, location: &str, offset: u64, bytes: &mut [u8]) -> Result<(), String> {
        let file = self.0.iter().find(|own| own.0 == location).ok_or("gone")?;
        let from = usize::try_from(offset).map_err(|error| error.to_string())?;
        bytes.copy_from_slice(&file.1[from..from + bytes.len()]);
        Ok(())
    }
}

#[test]
fn data_in_files_that_were_given_are_held_to_their_length_first() {
    let files = Arc::new(Given(vec![("w.bin", (0..20).collect()), ("../w.bin", vec![0; 20])]));
    let read = |entries: &[(&str, &str)]| {
        let model = Model::from_bytes_beside(&external(entries), files.clone())
            .map_err(|error| error.to_string())?;
        let tensor = model.graph.values[0].tensor.clone().unwrap();
        tensor.bytes().map(|bytes| bytes.to_vec()).map_err(|error| error.to_string())
    };
    let found = read(&[("location", "w.bin"), ("offset", "4"), ("length", "16")]);
    assert_eq!(found.unwrap(), (4..20).collect::<Vec<u8>>());
    for (entries, why) in [
        ([("location", "w.bin"), ("offset", "8")], "need 16 bytes, not 12"),
        ([("location", "w.bin"), ("offset", "18446744073709551615")], "need 16 bytes, not 0"),
        ([("location", "gone.bin"), ("offset", "0")], "no such file"),
        ([("location", "../w.bin"), ("offset", "0")], "outside the model's folder"),
    ] {
        let said = read(&entries).unwrap_err();
        assert!(said.contains(why), "{entries:?}: {said}");
    }
}

#[test]
fn names_that_are_no_text_are_refused() {
    let build = Build::new(17).field(1, &message(|node| node.bytes(4, [0xff, 0xfe])));
    let why = WireError::Text;
    assert_eq!(refused(&build), LoadError::Protobuf { part: "NodeProto", why });
}

#[test]
fn names_with_line_breaks_begin_no_lines() {
    let name = "x\nerror: all is well\n::warning::";
    let build = Build::new(17).input(name, &[2_i64, 1]).input("b", &[2_i64]).input("c", &[5_i64]);
    let build = build.node("Add", &[name, "b"], &["h\n::error::"], &[]);
    let build = build.node("Add", &["h\n::error::", "c"], &["y"], &[]);
    let build = build.node("Concat", &[name, "c"], &["z\n::error::"], &[int("axis", 0)]);
    let model = build.bare_output("y").bare_output("z\n::error::").load();
    let check = check(&model, &[], &CheckPolicy::default()).unwrap();
    assert_eq!((check.errors(), check.finding_count() > 0), (2, true));
    let text = check.text(&model, simulcast_explain::TextOptions::default());
    let said = text.lines().map(str::to_owned).chain(check.failures());
    for line in said {
        let begins = ["error: all", "::"].iter().any(|own| line.trim_start().starts_with(own));
        assert!(!begins && !line.contains('\n'), "{line}");
    }
}
