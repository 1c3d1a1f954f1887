//! Shapes explained: what the command prints, and what a page needs beside it to draw and to edit.

use serde_json::{Map, Value, json};
use simulcast_core::{
    BroadcastError, Dim, Dims, Edit, Finding, Fix, Interval, Names, Outcome, OwnedRule, Policy,
    Request, RuleError, ShapeText, Verdict,
};
use simulcast_explain::{
    Mark, Row, Subject, Table, TextOptions, json, picture, read_messages, svg, text,
};

use crate::ask::Ask;

/// Explains operands under a rule.
pub(crate) fn explain(ask: &Ask) -> Result<Value, String> {
    let words = ask.texts("shapes")?;
    let rule = match ask.text_or_empty("rule")? {
        "" => OwnedRule::Numpy,
        rule => rule.parse().map_err(|error: RuleError| error.to_string())?,
    };
    let mut operands = Vec::with_capacity(words.len());
    for (operand, word) in words.iter().enumerate() {
        match word.parse::<ShapeText>() {
            Ok(shape) => operands.push(shape),
            Err(error) => return Ok(json!({ "usage": error.to_string(), "operand": operand })),
        }
    }
    if operands.is_empty() {
        return Err("give at least one shape, such as 8,1,6,1 7,1,5".into());
    }
    let mut request =
        Request::new(rule.clone(), operands.clone()).map_err(|error| error.to_string())?;
    let symbols = symbols(&request.shapes);
    for (name, size) in ask.sizes()? {
        request.set(name, size).map_err(|error| error.to_string())?;
    }
    let outcome = request.resolve();
    let mut answer =
        edited(&outcome, &request.names, &operands, &rule, &Policy::for_explanations());
    answer.insert("symbols".into(), symbols);
    if ask.flag("svg") {
        let findings = findings(&outcome, &request.names, &Policy::for_explanations());
        answer.insert("svg".into(), svg(&Subject::of(&outcome, &request.names, &findings)).into());
    }
    Ok(answer.into())
}

/// The messages of array libraries in a text, each explained where it carries shapes.
pub(crate) fn messages(ask: &Ask) -> Result<Value, String> {
    let read = read_messages(ask.text("text")?);
    let messages = read.iter().map(|message| {
        let mut value = message.json();
        value["title"] = message.title().into();
        if let Some(request) = message.request() {
            let name = |own: usize| request.names.operands.get(own).filter(|name| !name.is_empty());
            let operands: Vec<ShapeText> = request
                .shapes
                .iter()
                .enumerate()
                .map(|(at, dims)| ShapeText {
                    name: name(at).filter(|name| is_name(name)).cloned(),
                    dims: dims.clone(),
                    axes: vec![String::new(); dims.dims().map_or(0, <[_]>::len)],
                })
                .collect();
            let (outcome, policy) = (request.resolve(), message.policy());
            let shown = edited(&outcome, &request.names, &operands, &request.rule, &policy);
            value["shown"] = shown.into();
        }
        value
    });
    Ok(json!({ "messages": messages.collect::<Vec<_>>() }))
}

/// Whether shape text can begin with it; an operand may be any expression in a traceback.
fn is_name(name: &str) -> bool {
    format!("{name}:2").parse::<ShapeText>().is_ok_and(|shape| shape.name.as_deref() == Some(name))
}

/// What is shown, and each fix as the request that it leads to.
fn edited(
    outcome: &Outcome,
    names: &Names,
    operands: &[ShapeText],
    rule: &OwnedRule,
    policy: &Policy,
) -> Map<String, Value> {
    let findings = findings(outcome, names, policy);
    let edits = Edits { operands, rule };
    let after = |fixes: &[Fix]| fixes.iter().map(|fix| edits.after(fix, names)).collect::<Value>();
    let mut answer = shown(&Subject::of(outcome, names, &findings));
    answer.insert(
        "request".into(),
        json!({ "shapes": operands.iter().map(written).collect::<Vec<_>>(), "rule": rule.to_string() }),
    );
    answer.insert(
        "fixes".into(),
        after(outcome.error().map(BroadcastError::fixes).unwrap_or_default()),
    );
    let of_findings = findings.iter().map(|finding| after(&finding.fixes)).collect();
    answer.insert("finding_fixes".into(), of_findings);
    answer
}

/// The findings in the order in which the command shows them.
fn findings(outcome: &Outcome, names: &Names, policy: &Policy) -> Vec<Finding> {
    let verdict = outcome.judge(policy, names);
    let Verdict { denied, warned, .. } = verdict.unwrap_or_default();
    denied.into_iter().chain(warned).collect()
}

/// The explanation as the command prints it, as text and as JSON; the table, and the picture where there is one cell by
/// cell.
pub(crate) fn shown(subject: &Subject<'_>) -> Map<String, Value> {
    let mut answer = Map::new();
    answer.insert("explanation".into(), json(subject));
    answer.insert("text".into(), text(subject, TextOptions::default()).into());
    answer.insert("table".into(), subject.table().as_ref().map_or(Value::Null, table));
    answer.insert("picture".into(), picture(subject).into());
    answer
}

fn table(table: &Table) -> Value {
    let row = |row: &Row| {
        let cells = row.cells.iter().map(|cell| {
            let mark = match cell.mark {
                Mark::Kept => "kept",
                Mark::Stretched => "stretched",
                Mark::Added => "added",
                Mark::Clash => "clash",
            };
            json!([cell.text, mark])
        });
        json!({
            "operand": row.operand,
            "name": row.name,
            "shape": row.shape,
            "cells": cells.collect::<Vec<_>>(),
        })
    };
    json!({
        "axes": table.axes,
        "rows": table.rows.iter().map(row).collect::<Vec<_>>(),
        "result": table.result.as_ref().map(row),
        "omitted": table.omitted,
    })
}

/// The symbols in the order in which they appear, with the sizes that they allow.
fn symbols(shapes: &[Dims]) -> Value {
    let mut map = Map::new();
    for dim in shapes.iter().filter_map(Dims::dims).flatten() {
        if let Dim::Symbol(symbol) = dim {
            map.insert(
                symbol.name.to_string(),
                json!({ "lo": symbol.range.lo(), "hi": symbol.range.hi() }),
            );
        }
    }
    map.into()
}

/// The operands and the rule as they were written, which edits change.
struct Edits<'e> {
    operands: &'e [ShapeText],
    rule: &'e OwnedRule,
}

impl Edits<'_> {
    /// The request after a fix, with the fix as people write it.
    fn after(&self, fix: &Fix, names: &Names) -> Value {
        let mut operands = self.operands.to_vec();
        let mut rule = self.rule.to_string();
        match fix.edit() {
            Edit::InsertAxes { operand, axes } => {
                edit(&mut operands, *operand, |dims| {
                    for &axis in axes {
                        dims.insert(axis.min(dims.len()), (Dim::Size(1), String::new()));
                    }
                });
            }
            Edit::Transpose { operand, order } => edit(&mut operands, *operand, |dims| {
                let old = dims.clone();
                *dims = order.iter().filter_map(|&axis| old.get(axis).cloned()).collect();
            }),
            Edit::DropAxis { operand, axis } => edit(&mut operands, *operand, |dims| {
                if *axis < dims.len() {
                    dims.remove(*axis);
                }
            }),
            Edit::Swap => operands.reverse(),
            Edit::StartAxis { .. } | Edit::UseRule(_) => rule = fix.rule().to_string(),
            _ => return Value::Null,
        }
        json!({
            "text": fix.describe(names),
            "shapes": operands.iter().map(written).collect::<Vec<_>>(),
            "rule": rule,
        })
    }
}

fn edit(operands: &mut [ShapeText], operand: usize, change: impl FnOnce(&mut Vec<(Dim, String)>)) {
    let Some(shape) = operands.get_mut(operand) else { return };
    let Dims::Ranked(dims) = &shape.dims else { return };
    let mut pairs: Vec<(Dim, String)> =
        dims.iter().cloned().zip(shape.axes.iter().cloned()).collect();
    change(&mut pairs);
    let (dims, axes): (Vec<Dim>, Vec<String>) = pairs.into_iter().unzip();
    (shape.dims, shape.axes) = (Dims::from(dims), axes);
}

/// An operand as text that is read as the same operand.
fn written(shape: &ShapeText) -> String {
    let dim = |dim: &Dim| match dim {
        Dim::Symbol(symbol) if symbol.range != Interval::UNKNOWN => {
            format!("{}@{}", symbol.name, symbol.range)
        }
        dim => dim.to_string(),
    };
    let dims = match &shape.dims {
        Dims::Unranked => "...".into(),
        Dims::Ranked(dims) if dims.is_empty() => "()".into(),
        Dims::Ranked(dims) => {
            let axis = |(own, name): (&Dim, &String)| match name.is_empty() {
                true => dim(own),
                false => format!("{name}={}", dim(own)),
            };
            dims.iter().zip(&shape.axes).map(axis).collect::<Vec<_>>().join(",")
        }
    };
    match &shape.name {
        Some(name) => format!("{name}:{dims}"),
        None => dims,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer;

    fn ask(request: &Value) -> Value {
        answer(&request.to_string(), Vec::new()).json
    }

    #[test]
    fn operands_are_written_as_they_are_read() {
        for text in [
            "8,1,6,1",
            "()",
            "...",
            "pred:N,1",
            "x:N@2..8,3",
            "b=32,c=3",
            "image:h=2,w=3",
            "?,2..8,3..",
            "x:rows=N@..4,2",
        ] {
            let shape: ShapeText = text.parse().unwrap();
            assert_eq!(written(&shape).parse::<ShapeText>().as_ref(), Ok(&shape), "{text}");
        }
    }

    #[test]
    fn a_fix_that_is_applied_leads_to_its_result() {
        let words: [(&str, &[&str]); 4] = [
            ("numpy", &["image:2,3,4", "mask:2,4"]),
            ("numpy", &["pred:32,1", "target:32"]),
            ("unidirectional", &["3", "2,3"]),
            ("pdpd:2", &["2,3,4", "3"]),
        ];
        for (rule, shapes) in words {
            let found = ask(&json!({ "do": "explain", "rule": rule, "shapes": shapes }));
            let fixes = found["fixes"].as_array().unwrap().iter();
            let of_findings = found["finding_fixes"].as_array().unwrap().iter();
            let of_findings = of_findings.flat_map(|own| own.as_array().unwrap());
            let fixes: Vec<&Value> = fixes.chain(of_findings).collect();
            assert!(!fixes.is_empty(), "{rule} {shapes:?}: {found}");
            for fix in fixes {
                let after =
                    ask(&json!({ "do": "explain", "rule": fix["rule"], "shapes": fix["shapes"] }));
                assert_eq!(after["explanation"]["error"], Value::Null, "{fix}");
                assert!(after["explanation"]["result"].is_object(), "{fix}");
            }
        }
    }

    #[test]
    fn what_is_no_shape_is_an_error_of_its_operand() {
        let found = ask(&json!({ "do": "explain", "shapes": ["2,3", "2;3"] }));
        assert_eq!(found["operand"], 1);
        assert!(found["usage"].as_str().unwrap().contains("is not a shape"));
        let found = ask(&json!({ "do": "explain", "shapes": ["2"], "rule": "nunpy" }));
        assert!(found["usage"].as_str().unwrap().contains("nunpy"));
        assert!(ask(&json!({ "do": "explain" }))["usage"].is_string());
        assert!(ask(&json!(["explain"]))["usage"].is_string());
    }

    #[test]
    fn messages_of_libraries_are_explained() {
        let log = "  File \"train.py\", line 41, in <module>\n    loss = image - mask\n           ~~~~~~^~~~~~\nValueError: operands could not be broadcast together with shapes (2,3,4) (2,4) \n";
        let found = ask(&json!({ "do": "error", "text": log }));
        let message = &found["messages"][0];
        assert_eq!(message["library"], "NumPy");
        assert_eq!(message["shown"]["request"]["shapes"], json!(["image:2,3,4", "mask:2,4"]));
        assert_eq!(message["shown"]["fixes"][0]["shapes"], json!(["image:2,3,4", "mask:2,1,4"]));
        let torch = "The size of tensor a (3) must match the size of tensor b (2) at non-singleton dimension 1";
        let found = ask(&json!({ "do": "error", "text": torch }));
        assert_eq!(found["messages"][0]["shown"], Value::Null);
        assert!(found["messages"][0]["missing"].as_str().unwrap().contains("a.shape"));
    }

    #[test]
    fn symbols_are_set() {
        let request = json!({ "do": "explain", "shapes": ["N@2..8,1", "M"], "sizes": { "N": 3 } });
        let found = ask(&request);
        assert_eq!(found["explanation"]["result"]["shape"], json!([3, "M"]));
        assert_eq!(found["symbols"]["N"], json!({ "lo": 2, "hi": 8 }));
        assert_eq!(found["symbols"]["M"], json!({ "lo": 0, "hi": null }));
    }
}
