use simulcast_core::Outcome;

use super::*;

/// What the libraries said, recorded from them.
const RECORDED: &str = include_str!("../../../../conformance/messages.jsonl");

fn recorded() -> Vec<serde_json::Value> {
    RECORDED.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn every_recorded_message_is_read_with_its_library_shapes_and_rule() {
    let mut libraries = std::collections::BTreeSet::new();
    for row in recorded() {
        let text = row["text"].as_str().unwrap();
        let messages = read_messages(text);
        let [message] = &messages[..] else { panic!("{} messages in {text:?}", messages.len()) };
        let library = message.library.name().replace(' ', "").to_lowercase();
        let library = if library == "pytorch" { "torch".into() } else { library };
        assert_eq!(library, row["library"].as_str().unwrap(), "{text}");
        let shapes: Vec<_> = message.shapes.iter().map(crate::dims_json).collect();
        match row["silent"].as_bool().unwrap() {
            true => {
                assert!(shapes.is_empty(), "{text}");
                assert!(message.missing().unwrap().contains("no shapes"), "{text}");
            }
            false => {
                assert_eq!(serde_json::json!(shapes), row["shapes"], "{text}");
                assert_eq!(message.rule.to_string(), row["rule"].as_str().unwrap(), "{text}");
                // What a library refused is refused by our rule, and what it warned of is not.
                let refused = matches!(message.request().unwrap().resolve(), Outcome::Error(_));
                let promoted = text.contains("rank_promotion");
                assert_eq!(refused, !message.is_warning && !promoted, "{text}");
            }
        }
        libraries.insert(library);
    }
    assert_eq!(libraries.len(), Library::ALL.len());
}

#[test]
fn a_traceback_gives_the_line_and_the_names() {
    let text = "Traceback (most recent call last):\n  File \"train.py\", line 12, in loss\n    \
                return ((pred - target) ** 2).mean()\n             ~~~~~^~~~~~~~\n\
                ValueError: operands could not be broadcast together with shapes (2,3) (2,) \n";
    let [message] = &read_messages(text)[..] else { panic!() };
    assert_eq!(message.names, ["pred", "target"]);
    let place = message.place.as_ref().unwrap();
    assert_eq!((place.file.as_str(), place.line), ("train.py", 12));
    assert_eq!(message.title(), "NumPy, line 5 of the text (train.py:12)");
    let said = message.text(TextOptions::default());
    assert!(said.contains("pred has 3, target has 2"), "{said}");
    assert!(said.contains("target[:, None]"), "{said}");
}

#[test]
fn a_message_without_shapes_says_what_is_missing_by_name() {
    let text = "  File \"t.py\", line 3, in f\n    return x * batch[\"y\"]\n           ~~^~~~~~~~~~~~\n\
                RuntimeError: The size of tensor a (3) must match the size of tensor b (2) at \
                non-singleton dimension 1\n";
    let [message] = &read_messages(text)[..] else { panic!() };
    let missing = message.missing().unwrap();
    assert!(missing.starts_with("x has 3 and batch[\"y\"] has 2 on axis 1"), "{missing}");
}

#[test]
fn what_is_wrapped_is_read_and_what_is_repeated_is_listed_once() {
    let once = "operands could not be\n   broadcast together with shapes (2,3)\n (2,)\n";
    let messages = read_messages(&format!("é{once}\n{once}"));
    assert_eq!(messages.len(), 1);
    let span = messages[0].span.clone();
    assert_eq!(&format!("é{once}")[span.clone()], once.trim_end(), "{span:?}");
}

/// Words of other versions, which are not recorded: JAX 0.4.13, ONNX Runtime on CUDA (its Expand), TensorFlow 2.8.
#[test]
fn messages_of_other_versions_are_read_too() {
    let said = |text: &str| {
        let [message] = &read_messages(text)[..] else { panic!("{text}") };
        let shapes: Vec<String> = message.shapes.iter().map(ToString::to_string).collect();
        (message.operation.clone().unwrap_or_default(), shapes.join(" "))
    };
    let jax = "ValueError: Incompatible shapes for broadcasting: ((2, 3), (2,))";
    assert_eq!(said(jax), (String::new(), "(2, 3) (2,)".into()));
    let cuda = "[ONNXRuntimeError] : 1 : FAIL : Non-zero status code returned while running Expand node. \
                Name:'/bert/Expand' Status Message: /bert/Expand: left operand cannot broadcast on dim 1 \
                LeftShape: {1,512}, RightShape: {18,513}";
    assert_eq!(said(cuda), ("Expand".into(), "(1, 512) (18, 513)".into()));
    assert_eq!(read_messages(cuda)[0].node.as_deref(), Some("/bert/Expand"));
    let gpu = "InvalidArgumentError: required broadcastable shapes [Op:Sub]";
    assert_eq!(said(gpu), ("Sub".into(), String::new()));
}

/// Text from outside: nothing panics, and nothing else than messages is found.
#[test]
fn what_is_cut_off_or_hostile_is_no_message() {
    for row in recorded() {
        let text = row["text"].as_str().unwrap();
        for (end, _) in text.char_indices() {
            let _ = read_messages(&text[..end]);
            let _ = read_messages(&text[end..]);
        }
    }
    for text in [
        "",
        "Incompatible shapes: [[[[[[[[",
        "Incompatible shapes: [2,3] vs. ",
        "operands could not be broadcast together with shapes (2,3)",
        "operands could not be broadcast together with shapes (99999999999999999999999999,3) (2,)",
        "Dimensions must be equal, but are 3 and 4 for '{{node m}} = MatMul[T=DT_FLOAT](a, b)' with input shapes: [2,3], [4,5].",
        "The size of tensor a (3) must match the size of tensor b (",
        "Node () Op () [ShapeInferenceError] Incompatible",
    ] {
        assert_eq!(read_messages(text), [], "{text}");
    }
    let brackets = format!("Incompatible shapes: {} vs. [2]", "[".repeat(100_000));
    assert_eq!(read_messages(&brackets), []);
}
