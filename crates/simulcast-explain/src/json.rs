//! The explanation as JSON, with a schema version: what scripts and other languages read.
//!
//! Sizes are numbers; a symbol is its name, an interval is `{"lo": 2, "hi": 8}`, a size of which
//! nothing is known is `null`, and so is the shape of an unknown rank.

use serde_json::{Map, Value, json};
use simulcast_core::{
    BroadcastError, Constraint, Dim, Dims, Edit, Finding, Fix, Interval, Names, OwnedRule, Plan,
    Refusal, Side, Source, SymbolicPlan, Term, elements,
};

use crate::Subject;

/// The version of the schema: it changes when a field changes its meaning or goes.
pub const SCHEMA: u32 = 1;

/// The whole explanation.
///
/// ```
/// use simulcast_core::{Rule, resolve};
/// use simulcast_explain::{Subject, json};
///
/// let plan = resolve(Rule::Numpy, &[&[2, 1][..], &[3]])?;
/// let value = json(&Subject::Plan(&plan, &[]));
/// assert_eq!(value["schema"], 1);
/// assert_eq!(value["result"]["shape"], serde_json::json!([2, 3]));
/// # Ok::<(), simulcast_core::BroadcastError>(())
/// ```
#[must_use]
pub fn json(subject: &Subject<'_>) -> Value {
    match subject {
        Subject::Plan(plan, findings) => plan_json(plan, findings),
        Subject::Symbolic(plan, names, findings) => symbolic_json(plan, names, findings),
        Subject::Error(error) => json!({
            "schema": SCHEMA,
            "rule": error.rule().kind().name(),
            "parameters": parameters_json(error.rule()),
            "operands": error.shapes().iter().enumerate().map(|(operand, dims)| json!({
                "name": error.names().operand(operand),
                "shape": dims_json(dims),
            })).collect::<Vec<_>>(),
            "error": error_json(error),
        }),
    }
}

fn plan_json(plan: &Plan, findings: &[Finding]) -> Value {
    let cost = plan.cost();
    json!({
        "schema": SCHEMA,
        "rule": plan.rule().kind().name(),
        "parameters": parameters_json(plan.rule()),
        "operands": (0..plan.operand_count()).map(|operand| operand_json(plan, operand)).collect::<Vec<_>>(),
        "target": plan.target(),
        "result": { "shape": plan.shape(), "elements": plan.elements().ok() },
        "cost": { "stored": cost.stored, "result": cost.result, "growth": cost.growth() },
        "findings": findings.iter().map(|finding| finding_json(finding, plan.names())).collect::<Vec<_>>(),
    })
}

fn operand_json(plan: &Plan, operand: usize) -> Value {
    let shape = plan.operand_shape(operand).unwrap_or_default();
    let source = |source: &Source| match source {
        Source::Kept(axis) => json!({ "axis": axis }),
        Source::Stretched(axis) => json!({ "axis": axis, "stretched": true }),
        Source::Added => json!({ "added": true }),
    };
    json!({
        "name": plan.operand_name(operand),
        "shape": shape,
        "elements": elements(&shape).ok(),
        "sources": plan.sources(operand).unwrap_or_default().iter().map(source).collect::<Vec<_>>(),
        "strides": plan.row_major_strides(operand).ok(),
        "sum_axes": plan.sum_axes(operand).unwrap_or_default(),
    })
}

fn symbolic_json(plan: &SymbolicPlan, names: &Names, findings: &[Finding]) -> Value {
    json!({
        "schema": SCHEMA,
        "rule": plan.rule().kind().name(),
        "parameters": parameters_json(plan.rule()),
        "operands": plan.shapes().iter().enumerate().map(|(operand, dims)| json!({
            "name": names.operand(operand),
            "shape": dims_json(dims),
        })).collect::<Vec<_>>(),
        "result": { "shape": dims_json(plan.shape()) },
        "constraints": plan.constraints().iter().map(|c| constraint_json(c, names)).collect::<Vec<_>>(),
        "symbols": symbols_json(plan.shapes()),
        "findings": findings.iter().map(|finding| finding_json(finding, names)).collect::<Vec<_>>(),
    })
}

/// The parameters of a rule, by the names that requests use.
fn parameters_json(rule: &OwnedRule) -> Value {
    let (takes, parts) = (rule.kind().parameters(), rule.parts());
    let mut map = Map::new();
    if takes.axis {
        map.insert("axis".into(), json!(parts.axis));
    }
    // Labels are not shown: they follow from the names.
    for (name, list) in [(takes.shape, parts.shape), (takes.axes, parts.axes)] {
        if let (Some(name), Some(list)) = (name, list) {
            map.insert(name.into(), json!(list));
        }
    }
    map.into()
}

/// A constraint as text and as data.
#[must_use]
pub fn constraint_json(constraint: &Constraint, names: &Names) -> Value {
    let term = |term: &Term| match term {
        Term::Size(size) => json!(size),
        Term::Symbol(name) => json!(**name),
        Term::Join(names) => {
            json!({ "join": names.iter().map(|name| &**name).collect::<Vec<_>>() })
        }
        Term::Axis { operand, axis } => json!({ "operand": operand, "axis": axis }),
        _ => Value::Null,
    };
    let text = constraint.describe(names);
    match constraint {
        Constraint::Equal(a, b) => json!({ "text": text, "equal": [term(a), term(b)] }),
        Constraint::OneOr(a, b) => json!({ "text": text, "one_or": [term(a), term(b)] }),
        Constraint::Agree(terms) => {
            json!({ "text": text, "agree": terms.iter().map(term).collect::<Vec<_>>() })
        }
        _ => json!({ "text": text }),
    }
}

/// The intervals of the symbols that have one.
fn symbols_json(shapes: &[Dims]) -> Value {
    let mut map = Map::new();
    for dim in shapes.iter().filter_map(Dims::dims).flatten() {
        if let Dim::Symbol(symbol) = dim
            && symbol.range != Interval::UNKNOWN
        {
            map.insert(symbol.name.to_string(), interval_json(symbol.range));
        }
    }
    map.into()
}

/// An error: its code, its text, every clash and every fix.
#[must_use]
pub fn error_json(error: &BroadcastError) -> Value {
    let clash = |clash: &Refusal| {
        let mut map = refusal_json(clash);
        map.insert("message".into(), error.describe(clash).into());
        Value::Object(map)
    };
    json!({
        "code": error.code(),
        "message": error.to_string(),
        "axis": error.axis(),
        "clashes": error.clashes().iter().map(clash).collect::<Vec<_>>(),
        "fixes": error.fixes().iter().map(|fix| fix_json(fix, error.names())).collect::<Vec<_>>(),
    })
}

/// A refusal as fields: where, who and which sizes.
#[must_use]
pub fn refusal_json(refusal: &Refusal) -> Map<String, Value> {
    let mut map = Map::new();
    map.insert("code".into(), refusal.code().into());
    match refusal {
        Refusal::Clash { axis, rank, first, second } => {
            map.insert("axis".into(), (*axis).into());
            map.insert("from_end".into(), json!(*axis as i128 - *rank as i128));
            map.insert("sides".into(), json!([side_json(first), side_json(second)]));
        }
        Refusal::Rank { operand, rank, allowed, .. } => {
            map.insert("operand".into(), (*operand).into());
            map.insert("rank".into(), (*rank).into());
            map.insert("allowed".into(), (*allowed).into());
        }
        Refusal::Axis { axis, allowed } => {
            map.insert("axis".into(), json!(axis));
            map.insert("allowed".into(), (*allowed).into());
        }
        Refusal::Duplicate { operand, axis } | Refusal::Unnamed { operand, axis } => {
            map.insert("operand".into(), (*operand).into());
            map.insert("operand_axis".into(), (*axis).into());
        }
        Refusal::NotIncreasing { position } | Refusal::Label { position } => {
            map.insert("position".into(), (*position).into());
        }
        Refusal::Operands { expected, given } | Refusal::AxisCount { expected, given } => {
            map.insert("expected".into(), (*expected).into());
            map.insert("given".into(), (*given).into());
        }
        Refusal::Bind { operand, axis, given, allowed } => {
            map.insert("operand".into(), (*operand).into());
            map.insert("operand_axis".into(), json!(axis));
            map.insert("given".into(), (*given).into());
            map.insert("allowed".into(), interval_json(*allowed));
        }
        Refusal::Overhang { operand, axis, size, .. } => {
            map.insert("operand".into(), (*operand).into());
            map.insert("operand_axis".into(), (*axis).into());
            map.insert("size".into(), interval_json(*size));
        }
        _ => {}
    }
    map
}

fn side_json(side: &Side) -> Value {
    json!({ "operand": side.operand, "axis": side.axis, "size": interval_json(side.size) })
}

fn finding_json(finding: &Finding, names: &Names) -> Value {
    json!({
        "code": finding.code.as_str(),
        "certainty": finding.certainty.name(),
        "message": finding.message,
        "operands": finding.operands,
        "axes": finding.axes,
        "fixes": finding.fixes.iter().map(|fix| fix_json(fix, names)).collect::<Vec<_>>(),
    })
}

fn fix_json(fix: &Fix, names: &Names) -> Value {
    let edit = match fix.edit() {
        Edit::InsertAxes { operand, axes } => json!({ "insert_axes": axes, "operand": operand }),
        Edit::Transpose { operand, order } => json!({ "transpose": order, "operand": operand }),
        Edit::DropAxis { operand, axis } => json!({ "drop_axis": axis, "operand": operand }),
        Edit::StartAxis { axis } => json!({ "start_axis": axis }),
        Edit::Swap => json!({ "swap": true }),
        Edit::UseRule(_) => json!({ "rule": fix.rule().to_string() }),
        _ => Value::Null,
    };
    json!({
        "edit": edit,
        "expression": fix.expression(names),
        "shape": fix.shape(),
        "result": fix.result(),
    })
}

/// The dimensions of a shape; `null` where the rank is not known.
#[must_use]
pub fn dims_json(dims: &Dims) -> Value {
    let dim = |dim: &Dim| match dim {
        Dim::Size(size) => (*size).into(),
        Dim::Range(range) => interval_json(*range),
        Dim::Symbol(symbol) => (*symbol.name).into(),
        Dim::Join(symbols) => {
            json!({ "join": symbols.iter().map(|s| &*s.name).collect::<Vec<_>>() })
        }
    };
    dims.dims().map_or(Value::Null, |dims| dims.iter().map(dim).collect())
}

fn interval_json(interval: Interval) -> Value {
    match (interval.size(), interval) {
        (Some(size), _) => size.into(),
        (None, Interval::UNKNOWN) => Value::Null,
        (None, _) => json!({ "lo": interval.lo(), "hi": interval.hi() }),
    }
}
