//! A check as text, JSON and an HTML page.

use std::collections::HashMap;
use std::fmt::{self, Write as _};

use serde_json::{Value, json};
use simulcast_core::{Certainty, Names, Outcome};
use simulcast_explain::{
    Section, Subject, TextOptions, constraint_json, dims_json, human_bytes, terminal_safe, text,
    width as columns,
};

use crate::check::{Check, Checked, one_line};
use crate::infer::NodeProblem;
use crate::model::{Model, ValueId};

/// The version of the JSON schema: it changes when a field changes its meaning or goes.
pub const SCHEMA: u32 = 1;

/// At most this many operands of a node are listed: in the table, and where it cannot work.
const OPERANDS: usize = 4;
const LISTED: usize = 8;
/// Longer names are cut in the middle in the table, whose ends tell apart what exporters make.
const NAME: usize = 32;
/// Where the table has too few columns then, to the first of these with which it fits, or the last.
const NARROWER: [usize; 4] = [24, 16, 12, 8];

impl Check {
    /// The table of every broadcast that repeats an operand, then errors, findings, and what must
    /// hold for the symbols.
    #[must_use]
    pub fn text(&self, model: &Model, options: TextOptions) -> String {
        self.text_within(model, options, None)
    }

    /// As [`Self::text`]; names in the table are cut so that it takes no more columns than these, where that is
    /// possible.
    #[must_use]
    pub fn text_within(
        &self,
        model: &Model,
        options: TextOptions,
        columns: Option<usize>,
    ) -> String {
        let mut out = self.summary(model);
        let shown: Vec<&Checked> =
            self.broadcasts.iter().filter(|checked| !checked.repeats.is_empty()).collect();
        if !shown.is_empty() {
            out.push('\n');
            out.push_str(&terminal_safe(&table(&shown, columns)));
        }
        for checked in self.broadcasts.iter().filter(|checked| checked.is_error()) {
            let _ = write!(out, "\n{}", terminal_safe(&heading(checked)));
            out.push_str(&text(&checked.subject(), options));
        }
        for problem in &self.inference.problems {
            let NodeProblem { node, op, .. } = problem;
            let heading = one_line(&format!("node {node} ({op})"));
            let said = format!("\n{heading}\n{}", problem_text(problem));
            out.push_str(&terminal_safe(&said));
        }
        let mut notes = String::new();
        for checked in &self.broadcasts {
            for finding in &checked.findings {
                let said = format!("{}: {}", checked.broadcast.node, finding.message);
                let (code, chance) = (finding.code, chance(finding.certainty));
                let _ = writeln!(notes, "  {code}    {}{chance}", one_line(&said));
                for fix in &finding.fixes {
                    let fix = fix.describe(&checked.broadcast.names);
                    let _ = writeln!(notes, "  help     {}", one_line(&fix));
                }
            }
        }
        for finding in &self.findings {
            let said = format!("{}: {}", finding.at, finding.message);
            let (code, chance) = (finding.code, chance(finding.certainty));
            let _ = writeln!(notes, "  {code}    {}{chance}", one_line(&said));
        }
        notes.push_str(&self.notes(model));
        if !notes.is_empty() {
            out.push('\n');
            out.push_str(&terminal_safe(&notes));
        }
        out
    }

    /// What must hold for the symbols, and what is not known.
    fn notes(&self, model: &Model) -> String {
        let mut notes = String::new();
        for (constraint, nodes) in &self.inference.constraints {
            let more = match nodes.len() {
                0 | 1 => String::new(),
                count => format!(" and {} more", count - 1),
            };
            let first = nodes.first().map_or("", String::as_str);
            let said = one_line(&format!("{constraint} ({first}{more})"));
            let _ = writeln!(notes, "  needs    {said}");
        }
        // Before IR 3 there was no place for it.
        if model.opsets.is_empty() && model.ir_version >= 3 {
            notes.push_str("  note     the model says no opset (opset_import is empty): it is read as opset 1\n");
        }
        for text in &self.inference.untaken {
            let _ = writeln!(
                notes,
                "  note     a branch is not taken with these sizes: {}",
                one_line(text)
            );
        }
        for (op, count) in &self.inference.unknown {
            let _ = match count {
                1 => writeln!(
                    notes,
                    "  note     {op} has no rule here: its node has the declared shapes"
                ),
                _ => writeln!(
                    notes,
                    "  note     {op} has no rule here: its {count} nodes have the declared shapes"
                ),
            };
        }
        notes
    }

    fn summary(&self, model: &Model) -> String {
        let count = |count: usize, what: &str| match count {
            1 => format!("1 {what}"),
            count => format!("{count} {what}s"),
        };
        let repeating = self.broadcasts.iter().filter(|c| !c.repeats.is_empty()).count();
        let peak = self.peak_bytes(model).map_or(String::new(), |(bytes, node)| {
            let bytes = human_bytes(bytes as u64);
            format!("at most {bytes} of results at a time, at {}\n", terminal_safe(&node))
        });
        format!(
            "opset {}, {}, {} ({repeating} with an operand that repeats); {}, {}\n{peak}",
            model.opset(),
            count(model.graph.nodes.len(), "node"),
            count(self.broadcasts.len(), "broadcast"),
            count(self.errors(), "error"),
            count(self.finding_count(), "finding"),
        )
    }

    /// How many findings there are, those of broadcasts and those that only a model can show.
    #[must_use]
    pub fn finding_count(&self) -> usize {
        let broadcasts: usize = self.broadcasts.iter().map(|checked| checked.findings.len()).sum();
        broadcasts + self.findings.len()
    }

    /// The most bytes that inputs and results of nodes take at a time, each kept until its last reader has run, and
    /// the node at which they do; `None` where a size or a type is not known. Weights are not counted.
    #[must_use]
    pub fn peak_bytes(&self, model: &Model) -> Option<(usize, String)> {
        let graph = &model.graph;
        let bytes = |id: &ValueId| {
            let fact = self.inference.facts.get(id.index())?;
            let elements = simulcast_core::elements(&fact.dims.sizes()?).ok()?;
            fact.element?.bytes(elements)
        };
        let mut last = vec![usize::MAX; graph.values.len()];
        for (at, &index) in graph.order.iter().enumerate() {
            let node = &graph.nodes[index];
            let inner = node.graphs().flat_map(|own| own.captures.iter().map(|(_, there)| there));
            node.inputs.iter().flatten().chain(inner).for_each(|id| last[id.index()] = at);
        }
        // What the caller gets stays; what nothing reads goes at once; weights are not counted.
        let given = graph.inputs.iter().filter(|id| graph.value(**id).tensor.is_none());
        let given: Vec<ValueId> = given.copied().collect();
        let mut gone: Vec<Vec<ValueId>> = vec![Vec::new(); graph.nodes.len()];
        let mut is_kept = vec![false; graph.values.len()];
        graph.outputs.iter().for_each(|id| is_kept[id.index()] = true);
        let mut goes = |id: ValueId, made: usize| {
            let at = Some(last[id.index()]).filter(|at| *at < usize::MAX).unwrap_or(made);
            if let (false, Some(gone)) = (is_kept[id.index()], gone.get_mut(at)) {
                gone.push(id);
            }
        };
        given.iter().for_each(|id| goes(*id, usize::MAX));
        for (at, &index) in graph.order.iter().enumerate() {
            graph.nodes[index].outputs.iter().flatten().for_each(|id| goes(*id, at));
        }
        let mut sum = given.iter().try_fold(0_usize, |sum, id| sum.checked_add(bytes(id)?))?;
        let (mut most, mut is_empty) = ((sum, "the inputs".to_owned()), given.is_empty());
        for (at, &index) in graph.order.iter().enumerate() {
            for id in graph.nodes[index].outputs.iter().flatten() {
                sum = sum.checked_add(bytes(id)?)?;
                is_empty = false;
            }
            if sum > most.0 {
                most = (sum, graph.node_name(index));
            }
            for id in &gone[at] {
                sum = sum.saturating_sub(bytes(id)?);
            }
        }
        (!is_empty).then_some(most)
    }

    /// Everything, for scripts: every broadcast, and what is known of every value.
    #[must_use]
    pub fn json(&self, model: &Model) -> Value {
        let values = model.graph.values.iter().zip(&self.inference.facts).map(|(value, fact)| {
            json!({
                "name": value.name,
                "element": fact.element.map(crate::ElementType::name),
                "shape": dims_json(&fact.dims),
            })
        });
        json!({
            "schema": SCHEMA,
            "model": {
                "ir_version": model.ir_version,
                "opset": model.opset(),
                "producer": model.producer,
                "nodes": model.graph.nodes.len(),
            },
            "errors": self.errors(),
            "finding_count": self.finding_count(),
            "peak_bytes": self.peak_bytes(model).map(|(bytes, _)| bytes),
            "denied": self.denied(),
            "broadcasts": self.broadcasts.iter().map(broadcast_json).collect::<Vec<_>>(),
            "problems": self.inference.problems.iter().map(|problem| json!({
                "node": problem.node, "op": problem.op, "message": problem.message,
                "operands": problem.operands.iter().map(|operand| json!({
                    "name": operand.name, "producer": operand.producer,
                    "element": operand.element.map(crate::ElementType::name),
                    "shape": dims_json(&operand.dims),
                })).collect::<Vec<_>>(),
            })).collect::<Vec<_>>(),
            "untaken": self.inference.untaken,
            "findings": self.findings.iter().map(|finding| json!({
                "code": finding.code.as_str(), "certainty": finding.certainty.name(), "at": finding.at,
                "message": finding.message, "denied": finding.denied,
            })).collect::<Vec<_>>(),
            "all_findings": self.findings_json(),
            "constraints": self.inference.constraints.iter().map(|(constraint, nodes)| {
                let mut value = constraint_json(constraint, &Names::default());
                value["nodes"] = json!(nodes);
                value
            }).collect::<Vec<_>>(),
            "symbols": self.inference.symbols,
            "unknown_operators": self.inference.unknown,
            "values": values.collect::<Vec<_>>(),
        })
    }

    /// All findings: those of broadcasts, each with the number of its broadcast, then those that only a model can show.
    fn findings_json(&self) -> Vec<Value> {
        let told = |code: &str, certainty: Certainty, at: &str, message: &str, denied: bool| {
            json!({
                "code": code, "certainty": certainty.name(), "at": at, "message": message,
                "denied": denied, "broadcast": null,
            })
        };
        let mut all = Vec::new();
        for (number, Checked { broadcast, findings, denied, .. }) in
            self.broadcasts.iter().enumerate()
        {
            for (at, own) in findings.iter().enumerate() {
                let (code, denied) = (own.code.as_str(), at < *denied);
                let mut one = told(code, own.certainty, &broadcast.node, &own.message, denied);
                one["broadcast"] = number.into();
                all.push(one);
            }
        }
        for own in &self.findings {
            all.push(told(own.code.as_str(), own.certainty, &own.at, &own.message, own.denied));
        }
        all
    }

    /// A self-contained page: every broadcast that repeats an operand, fails or has a finding, with its picture; errors
    /// and findings first, the others folded by the part of the model that they are in.
    #[must_use]
    pub fn html(&self, model: &Model, title: &str) -> String {
        let is_shown =
            |own: &Checked| own.is_error() || !own.repeats.is_empty() || !own.findings.is_empty();
        let shown: Vec<&Checked> = self.broadcasts.iter().filter(|own| is_shown(own)).collect();
        // Pictures have no room for what exporters call a value.
        let names: Vec<Names> =
            shown.iter().map(|checked| short(&checked.broadcast.names)).collect();
        let broadcasts = shown.iter().zip(&names).map(|(checked, names)| self.part(checked, names));
        let problems = self.inference.problems.iter().map(|problem| Section {
            title: problem.node.clone(),
            brief: problem.op.clone(),
            scope: scope(&problem.node, &problem.op),
            error: Some(("error".into(), problem.message.clone())),
            findings: Vec::new(),
            text: problem_text(problem),
            subject: None,
        });
        let mut sections: Vec<Section<'_>> = broadcasts.chain(problems).collect();
        // Of several nodes of one name, the first.
        let mut places: HashMap<&str, usize> = HashMap::new();
        for (at, checked) in shown.iter().enumerate() {
            places.entry(&checked.broadcast.node).or_insert(at);
        }
        for finding in &self.findings {
            let told = (finding.code.to_string(), finding.message.clone());
            let at = places.get(finding.at.as_str());
            match at.and_then(|at| sections.get_mut(*at)) {
                Some(own) => own.findings.push(told),
                None => sections.push(Section {
                    title: finding.at.clone(),
                    brief: String::new(),
                    scope: scope(&finding.at, ""),
                    error: None,
                    findings: vec![told],
                    text: finding.to_string(),
                    subject: None,
                }),
            }
        }
        simulcast_explain::report(title, &self.summary(model), &self.notes(model), &sections)
    }

    /// A broadcast as a part of the page.
    fn part<'c>(&self, checked: &'c Checked, names: &'c Names) -> Section<'c> {
        let Checked { broadcast, findings, .. } = checked;
        let shapes: Vec<String> = (0..)
            .zip(checked.shapes())
            .map(|(operand, shape)| format!("{} {shape}", names.operand(operand)))
            .collect();
        let result = checked.result().map_or(String::new(), |result| format!(" -> {result}"));
        let error = match &broadcast.outcome {
            Outcome::Error(error) => Some((error.code().to_string(), error.to_string())),
            _ => None,
        };
        let told = findings.iter().map(|finding| {
            (finding.code.to_string(), format!("{}{}", finding.message, chance(finding.certainty)))
        });
        Section {
            title: broadcast.node.clone(),
            brief: format!("{} {}{result}", broadcast.op, shapes.join(", ")),
            scope: scope(&broadcast.node, &broadcast.op),
            error,
            findings: told.collect(),
            text: format!(
                "{}{}",
                producers(checked),
                text(&checked.subject(), TextOptions::default())
            ),
            subject: Some(Subject::of(&broadcast.outcome, names, findings)),
        }
    }
}

/// The names of operands, cut in the middle.
fn short(names: &Names) -> Names {
    Names {
        operands: names.operands.iter().map(|name| cut(name, NAME)).collect(),
        axes: names.axes.clone(),
    }
}

/// The part of a model that a node is in, as far as the first name with a number: `encoder/layer.3` of
/// `/encoder/layer.3/attention/Add`; the first name where none has, and the operator where the node is in none.
fn scope(node: &str, op: &str) -> String {
    let parts: Vec<&str> = node.split('/').filter(|part| !part.is_empty()).collect();
    let around = parts.split_last().map_or(&[][..], |(_, around)| around);
    let numbered = around.iter().position(|part| part.contains(|c: char| c.is_ascii_digit()));
    match around[..numbered.map_or(around.len().min(1), |at| at + 1)].join("/") {
        own if own.is_empty() => op.to_owned(),
        own => own,
    }
}

/// What stands behind a finding that may be chance.
fn chance(certainty: Certainty) -> &'static str {
    match certainty {
        Certainty::Possible => " (possible)",
        Certainty::Confirmed => "",
    }
}

fn broadcast_json(checked: &Checked) -> Value {
    let broadcast = &checked.broadcast;
    let mut value = simulcast_explain::json(&checked.subject());
    value["node"] = json!(broadcast.node);
    value["op"] = json!(broadcast.op);
    value["element"] = json!(broadcast.element.map(crate::ElementType::name));
    value["producers"] = json!(broadcast.producers);
    value["repeats"] = checked
        .repeats
        .iter()
        .map(|(operand, axes)| json!({ "operand": operand, "axes": axes }))
        .collect();
    value["result_bytes"] = json!(checked.result_bytes());
    value["denied"] = json!(checked.denied);
    value
}

/// A name that fits, cut in the middle where it is too long.
fn cut(name: &str, most: usize) -> String {
    let count = name.chars().count();
    if count <= most {
        return name.to_owned();
    }
    let (front, back) = (most / 3, most - most / 3 - 1);
    let head: String = name.chars().take(front).collect();
    let tail: String = name.chars().skip(count - back).collect();
    format!("{head}…{tail}")
}

/// The node, and where each operand comes from.
fn heading(checked: &Checked) -> String {
    let heading = format!("node {} ({})", checked.broadcast.node, checked.broadcast.op);
    format!("{}\n{}", one_line(&heading), producers(checked))
}

/// What a node that cannot work reads, and why it cannot.
fn problem_text(problem: &NodeProblem) -> String {
    let mut said = String::new();
    for operand in problem.operands.iter().take(LISTED) {
        let _ = writeln!(said, "  {}", one_line(&format!("{operand} is {}", operand.producer)));
    }
    if let Some(more @ 1..) = problem.operands.len().checked_sub(LISTED) {
        let _ = writeln!(said, "  and {more} more inputs");
    }
    let _ = writeln!(said, "  error    {}", one_line(&problem.message));
    said
}

fn producers(checked: &Checked) -> String {
    let mut out = String::new();
    let broadcast = &checked.broadcast;
    for (operand, producer) in broadcast.producers.iter().enumerate() {
        if !producer.is_empty() {
            let said = format!("{} is {producer}", broadcast.names.operand(operand));
            let _ = writeln!(out, "  {}", one_line(&said));
        }
    }
    out
}

fn table(shown: &[&Checked], most: Option<usize>) -> String {
    let laid = |name: usize| {
        let mut rows = vec![Row::heading()];
        rows.extend(shown.iter().map(|checked| Row::new(checked, name)));
        let mut widths = [0; Row::HEADING.len()];
        for row in &rows {
            for (width, (_, own)) in widths.iter_mut().zip(row.cells()) {
                *width = (*width).max(own);
            }
        }
        (rows, widths)
    };
    // Two spaces are before each.
    let fits = |widths: &[usize]| {
        most.is_none_or(|most| widths.iter().map(|width| width + 2).sum::<usize>() <= most)
    };
    let mut own = laid(NAME);
    for name in NARROWER {
        if fits(&own.1) {
            break;
        }
        own = laid(name);
    }
    let (rows, widths) = own;
    let mut out = String::new();
    for row in &rows {
        for (column, ((cell, own), width)) in row.cells().zip(widths).enumerate() {
            let space = std::iter::repeat_n(' ', width.saturating_sub(own));
            out.push_str("  ");
            // Numbers stand to the right.
            if column < 6 {
                out.push_str(cell);
                out.extend(space);
            } else {
                out.extend(space);
                out.push_str(cell);
            }
        }
        out.truncate(out.trim_end().len());
        out.push('\n');
    }
    out
}

/// A row of the table: the text of its cells, one after another, and where each ends and how many
/// columns it takes.
#[derive(Default)]
struct Row {
    text: String,
    ends: Vec<(usize, usize)>,
}

impl Row {
    const HEADING: [&str; 8] =
        ["node", "op", "rule", "operands", "result", "repeats", "growth", "memory"];

    fn heading() -> Self {
        let mut row = Self::default();
        Self::HEADING.iter().for_each(|cell| row.cell(|text| write!(text, "{cell}")));
        row
    }

    fn new(checked: &Checked, most: usize) -> Self {
        let broadcast = &checked.broadcast;
        let name = |operand: usize| cut(&broadcast.names.operand(operand), most);
        let comma = |position: usize| if position == 0 { "" } else { ", " };
        let mut row = Self::default();
        row.cell(|text| text.write_str(&cut(&broadcast.node, most)));
        row.cell(|text| text.write_str(&broadcast.op));
        row.cell(|text| write!(text, "{}", broadcast.outcome.rule()));
        row.cell(|text| {
            let shapes = checked.shapes();
            for (operand, dims) in shapes.iter().enumerate().take(OPERANDS) {
                write!(text, "{}{} {dims}", comma(operand), name(operand))?;
            }
            match shapes.len().checked_sub(OPERANDS) {
                Some(more @ 1..) => write!(text, ", {more} more"),
                _ => Ok(()),
            }
        });
        row.cell(|text| checked.result().map_or(Ok(()), |result| write!(text, "{result}")));
        row.cell(|text| {
            for (position, (operand, axes)) in checked.repeats.iter().enumerate().take(OPERANDS) {
                write!(text, "{}{}", comma(position), name(*operand))?;
                axes.iter().try_for_each(|axis| write!(text, " {axis}"))?;
            }
            Ok(())
        });
        // Less than what is stored is no growth.
        let growth = checked.growth().filter(|growth| *growth > 1.0);
        row.cell(|text| growth.map_or(Ok(()), |growth| write!(text, "{growth:.1}x")));
        row.cell(|text| {
            checked.result_bytes().map_or(Ok(()), |all| text.write_str(&human_bytes(all as u64)))
        });
        row
    }

    /// Adds a cell.
    fn cell(&mut self, write: impl FnOnce(&mut String) -> fmt::Result) {
        let start = self.text.len();
        // Texts in memory take everything.
        let _ = write(&mut self.text);
        if self.text[start..].contains(['\n', '\r']) {
            let line = one_line(&self.text[start..]);
            self.text.replace_range(start.., &line);
        }
        self.ends.push((self.text.len(), columns(&self.text[start..])));
    }

    /// The cells, each with the columns that it takes.
    fn cells(&self) -> impl Iterator<Item = (&str, usize)> {
        let mut start = 0;
        self.ends.iter().map(move |&(end, columns)| {
            let cell = &self.text[start..end];
            start = end;
            (cell, columns)
        })
    }
}
