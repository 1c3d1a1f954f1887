//! What the page knows before anything is asked: rules and codes.

use serde_json::{Value, json};
use simulcast_core::{Code, CodeKind, RuleKind};

pub(crate) fn facts() -> Value {
    let rules = RuleKind::ALL.iter().map(|rule| {
        let takes = rule.parameters();
        json!({
            "name": rule.name(),
            "summary": rule.summary(),
            "operands": rule.arity(),
            "axis": takes.axis,
            "shape": takes.shape,
            "axes": takes.axes,
            "names": takes.labels,
        })
    });
    let codes = Code::ALL.iter().map(|code| {
        let kind = match code.kind {
            CodeKind::Error => "error",
            CodeKind::Finding => "finding",
            CodeKind::Model => "model",
        };
        json!({
            "code": code.code, "kind": kind, "title": code.title, "explanation": code.explanation,
            "page": code.anchor().to_string(),
        })
    });
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "rules": rules.collect::<Vec<_>>(),
        "codes": codes.collect::<Vec<_>>(),
    })
}
