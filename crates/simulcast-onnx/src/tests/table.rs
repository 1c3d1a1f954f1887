//! The table of operators: what it says of itself, and of the engine's operations.

use std::collections::BTreeSet;

use crate::operators::{Signature, all};

#[test]
fn every_operator_has_one_row() {
    let mut seen = BTreeSet::new();
    for row in all() {
        assert!(seen.insert((row.domain, row.name)), "{}", row.name);
    }
}

#[test]
fn signatures_are_well_formed() {
    for row in all() {
        let signature = Signature::of(row.types);
        assert!(row.types.contains("->") && !signature.outputs.is_empty(), "{}", row.name);
        for typed in signature.inputs.iter().chain(&signature.outputs) {
            let variable = typed.word.starts_with(|first: char| first.is_ascii_uppercase());
            let known = crate::ElementType::from_name(typed.word).is_some();
            let known = known || matches!(typed.word, "_" | "index");
            assert!(variable || known, "{}: {}", row.name, typed.word);
        }
        let optional = signature.inputs.iter().position(|input| input.optional);
        let needed = signature.inputs.iter().rposition(|input| !input.optional && !input.repeats);
        let ordered = match (optional, needed) {
            (Some(optional), Some(needed)) => needed < optional,
            _ => true,
        };
        assert!(ordered || row.domain == "com.microsoft", "{}", row.name);
    }
}

#[cfg(feature = "run")]
#[test]
fn every_operation_that_onnx_has_is_a_row_that_runs() {
    use crate::operators::{Runs, find};
    for op in simulcast::Op::ALL {
        for name in op.row().onnx {
            let row = find("", name).unwrap_or_else(|| panic!("{name} has no row"));
            assert!(row.runs == Runs::Fused && row.elementwise, "{name}");
        }
    }
}

#[test]
fn what_runs_has_a_shape_rule() {
    for row in all() {
        let runs = row.runs != crate::operators::Runs::Not;
        assert!(!runs || row.infer.is_some(), "{}", row.name);
    }
}
