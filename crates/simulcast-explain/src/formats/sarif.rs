//! SARIF 2.1.0: <https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html>.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use simulcast_core::{Certainty, Code};

use super::{Notice, Position, Severity, TextEdit, fingerprints};

/// Where the schema is published.
const SCHEMA: &str =
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";

/// A log with one run.
pub(super) fn sarif(notices: &[Notice]) -> Value {
    let mut rules: Vec<Value> = Vec::new();
    let mut places: BTreeMap<&str, usize> = BTreeMap::new();
    for notice in notices {
        places.entry(&notice.code).or_insert_with(|| {
            rules.push(rule(notice));
            rules.len().saturating_sub(1)
        });
    }
    let results = notices.iter().zip(fingerprints(notices)).map(|(notice, fingerprint)| {
        result(notice, places.get(&*notice.code).copied(), &fingerprint)
    });
    let results: Vec<Value> = results.collect();
    json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "simulcast",
                "semanticVersion": env!("CARGO_PKG_VERSION"),
                "rules": rules,
            }},
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    })
}

fn rule(notice: &Notice) -> Value {
    let mut rule = Map::new();
    rule.insert("id".into(), json!(notice.code));
    let title = notice.title();
    rule.insert("shortDescription".into(), json!({ "text": title }));
    if let Some(code) = Code::find(&notice.code) {
        rule.insert("fullDescription".into(), json!({ "text": code.explanation }));
        let (mut text, mut markdown) = (code.explanation.to_owned(), code.explanation.to_owned());
        if !code.example.is_empty() {
            text = format!("{text} Example: simulcast {}", code.example);
            markdown = format!("{markdown}\n\n```console\n$ simulcast {}\n```\n", code.example);
        }
        markdown = format!(
            "{markdown}\n`simulcast codes {}` says so too; see {}.",
            code.code,
            code.anchor()
        );
        rule.insert("help".into(), json!({ "text": text, "markdown": markdown }));
    }
    rule.insert("defaultConfiguration".into(), json!({ "level": level(Severity::Warning) }));
    rule.insert("properties".into(), json!({ "tags": ["broadcasting"], "precision": "high" }));
    Value::Object(rule)
}

fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Note => "note",
        Severity::Warning => "warning",
        Severity::Error => "error",
    }
}

fn result(notice: &Notice, rule: Option<usize>, fingerprint: &str) -> Value {
    let artifact = json!({ "uri": uri(&notice.file) });
    let mut physical = Map::new();
    physical.insert("artifactLocation".into(), artifact.clone());
    if let Some(start) = notice.start {
        let mut own = region(start, notice.end);
        if !notice.snippet.is_empty() {
            let end = notice.end.map_or(start.line, |end| end.line);
            let lines = json!({
                "startLine": start.line, "endLine": end.max(start.line),
                "snippet": { "text": notice.snippet },
            });
            match start.column {
                // The region is the expression, and the lines around it are its context.
                Some(_) => physical.insert("contextRegion".into(), lines),
                None => own.insert("snippet".into(), json!({ "text": notice.snippet })),
            };
        }
        physical.insert("region".into(), Value::Object(own));
    }
    let mut location = Map::new();
    location.insert("physicalLocation".into(), Value::Object(physical));
    if let Some(node) = &notice.node {
        location.insert("logicalLocations".into(), json!([{ "name": node, "kind": "element" }]));
    }
    let mut text = notice.message.clone();
    if let Some(node) = &notice.node {
        text = format!("{node}: {text}");
    }
    for help in &notice.help {
        text = format!("{text}\nhelp: {help}");
    }
    let mut result = Map::new();
    result.insert("ruleId".into(), json!(notice.code));
    if let Some(rule) = rule {
        result.insert("ruleIndex".into(), json!(rule));
    }
    result.insert("level".into(), json!(level(notice.severity())));
    result.insert("message".into(), json!({ "text": message(&text) }));
    result.insert("locations".into(), json!([location]));
    result.insert("partialFingerprints".into(), json!({ "simulcast/v1": fingerprint }));
    if !notice.fixes.is_empty() {
        let fixes: Vec<Value> = notice.fixes.iter().map(|edit| fix(edit, &artifact)).collect();
        result.insert("fixes".into(), json!(fixes));
    }
    result.insert(
        "properties".into(),
        json!({
            "certainty": notice.certainty.map(Certainty::name),
            "operands": notice.operands,
            "denied": notice.denied,
        }),
    );
    Value::Object(result)
}

fn region(start: Position, end: Option<Position>) -> Map<String, Value> {
    let mut region = Map::new();
    region.insert("startLine".into(), json!(start.line));
    if let Some(column) = start.column {
        region.insert("startColumn".into(), json!(column));
    }
    if let Some(end) = end {
        region.insert("endLine".into(), json!(end.line));
        // An end means nothing without a start.
        if let (Some(_), Some(column)) = (start.column, end.column) {
            region.insert("endColumn".into(), json!(column));
        }
    }
    region
}

fn fix(edit: &TextEdit, artifact: &Value) -> Value {
    json!({
        "description": { "text": message(&edit.description) },
        "artifactChanges": [{
            "artifactLocation": artifact,
            "replacements": [{
                "deletedRegion": region(edit.start, Some(edit.end)),
                "insertedContent": { "text": edit.text },
            }],
        }],
    })
}

/// Plain text as a message: braces are places for arguments, and are doubled to be braces (3.11.5 of the standard).
fn message(text: &str) -> String {
    text.replace('{', "{{").replace('}', "}}")
}

/// A path as a relative reference of RFC 3986, or as a `file` URI where it is absolute.
fn uri(path: &str) -> String {
    let mut out = String::new();
    // `C:/…` of Windows.
    let drive = path.chars().nth(1) == Some(':');
    if drive {
        out.push_str("file:///");
    } else if path.starts_with('/') {
        out.push_str("file://");
    }
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'.' | b'_' | b'~' => {
                out.push(char::from(byte));
            }
            b':' if drive => out.push(':'),
            byte => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}
