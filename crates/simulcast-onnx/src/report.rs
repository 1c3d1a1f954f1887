//! A check as text, JSON and an HTML page.

use std::fmt::{self, Write as _};

use serde_json::{Value, json};
use simulcast_core::Certainty;
use simulcast_explain::{
    Section, TextOptions, constraint_json, dims_json, human_bytes, terminal_safe, text,
    width as columns,
};

use crate::check::{Check, Checked};
use crate::model::Model;

/// The version of the JSON schema: it changes when a field changes its meaning or goes.
pub const SCHEMA: u32 = 1;

/// At most this many operands of a node are listed.
const OPERANDS: usize = 4;

impl Check {
    /// The table of every broadcast that repeats an operand, then errors, findings, and what must
    /// hold for the symbols.
    #[must_use]
    pub fn text(&self, model: &Model, options: TextOptions) -> String {
        let mut out = self.summary(model);
        let shown: Vec<&Checked> =
            self.broadcasts.iter().filter(|checked| !checked.repeats.is_empty()).collect();
        if !shown.is_empty() {
            out.push('\n');
            out.push_str(&terminal_safe(&table(&shown)));
        }
        for checked in self.broadcasts.iter().filter(|checked| checked.is_error()) {
            let _ = write!(out, "\n{}", terminal_safe(&heading(checked)));
            out.push_str(&text(&checked.subject(), options));
        }
        for problem in &self.inference.problems {
            let said = format!(
                "\nnode {} ({})\n  error    {}\n",
                problem.node, problem.op, problem.message
            );
            out.push_str(&terminal_safe(&said));
        }
        let mut notes = String::new();
        for checked in &self.broadcasts {
            for finding in &checked.findings {
                let _ = writeln!(
                    notes,
                    "  {}    {}: {}{}",
                    finding.code,
                    checked.broadcast.node,
                    finding.message,
                    chance(finding.certainty)
                );
                for fix in &finding.fixes {
                    let _ =
                        writeln!(notes, "  help     {}", fix.describe(&checked.broadcast.names));
                }
            }
        }
        for finding in &self.findings {
            let _ = writeln!(
                notes,
                "  {}    {}: {}{}",
                finding.code,
                finding.at,
                finding.message,
                chance(finding.certainty)
            );
        }
        for (constraint, nodes) in &self.inference.constraints {
            let more = match nodes.len() {
                0 | 1 => String::new(),
                count => format!(" and {} more", count - 1),
            };
            let first = nodes.first().map_or("", String::as_str);
            let _ = writeln!(notes, "  needs    {constraint} ({first}{more})");
        }
        for text in &self.inference.untaken {
            let _ = writeln!(notes, "  note     a branch is not taken with these sizes: {text}");
        }
        for (op, count) in &self.inference.unknown {
            let nodes = if *count == 1 { "node" } else { "nodes" };
            let _ = writeln!(
                notes,
                "  note     {op} has no rule here: its {count} {nodes} have the declared shapes"
            );
        }
        if !notes.is_empty() {
            out.push('\n');
            out.push_str(&terminal_safe(&notes));
        }
        out
    }

    fn summary(&self, model: &Model) -> String {
        let count = |count: usize, what: &str| match count {
            1 => format!("1 {what}"),
            count => format!("{count} {what}s"),
        };
        let repeating = self.broadcasts.iter().filter(|c| !c.repeats.is_empty()).count();
        let findings: usize = self.broadcasts.iter().map(|c| c.findings.len()).sum();
        format!(
            "opset {}, {}, {} ({repeating} with an operand that repeats); {}, {}\n",
            model.opset(),
            count(model.graph.nodes.len(), "node"),
            count(self.broadcasts.len(), "broadcast"),
            count(self.errors(), "error"),
            count(findings + self.findings.len(), "finding"),
        )
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
            "denied": self.raised(),
            "broadcasts": self.broadcasts.iter().map(broadcast_json).collect::<Vec<_>>(),
            "problems": self.inference.problems.iter().map(|problem| json!({
                "node": problem.node, "op": problem.op, "message": problem.message,
            })).collect::<Vec<_>>(),
            "findings": self.findings.iter().map(|finding| json!({
                "code": finding.code.as_str(), "certainty": finding.certainty.name(), "at": finding.at,
                "message": finding.message, "denied": finding.raised,
            })).collect::<Vec<_>>(),
            "constraints": self.inference.constraints.iter().map(|(constraint, nodes)| {
                let mut value = constraint_json(constraint, &simulcast_core::Names::default());
                value["nodes"] = json!(nodes);
                value
            }).collect::<Vec<_>>(),
            "symbols": self.inference.symbols,
            "unknown_operators": self.inference.unknown,
            "values": values.collect::<Vec<_>>(),
        })
    }

    /// A self-contained page: the text, and a picture of every broadcast that repeats an operand or
    /// fails.
    #[must_use]
    pub fn html(&self, model: &Model, title: &str) -> String {
        let plain = TextOptions::default();
        let shown = self.broadcasts.iter().filter(|c| c.is_error() || !c.repeats.is_empty());
        let section = |checked: &'_ Checked| {
            let name = &checked.broadcast;
            format!("{} ({})", name.node, name.op)
        };
        let sections: Vec<Section<'_>> = shown
            .map(|checked| Section {
                title: section(checked),
                text: format!("{}{}", producers(checked), text(&checked.subject(), plain)),
                subject: checked.subject(),
            })
            .collect();
        simulcast_explain::report(title, &self.text(model, plain), &sections)
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
    value["denied"] = json!(checked.raised);
    value
}

/// The node, and where each operand comes from.
fn heading(checked: &Checked) -> String {
    format!("node {} ({})\n{}", checked.broadcast.node, checked.broadcast.op, producers(checked))
}

fn producers(checked: &Checked) -> String {
    let mut out = String::new();
    let broadcast = &checked.broadcast;
    for (operand, producer) in broadcast.producers.iter().enumerate() {
        if !producer.is_empty() {
            let _ = writeln!(out, "  {} is {producer}", broadcast.names.operand(operand));
        }
    }
    out
}

fn table(shown: &[&Checked]) -> String {
    let mut rows = vec![Row::heading()];
    rows.extend(shown.iter().map(|checked| Row::new(checked)));
    let mut widths = [0; Row::HEADING.len()];
    for row in &rows {
        for (width, (_, own)) in widths.iter_mut().zip(row.cells()) {
            *width = (*width).max(own);
        }
    }
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

    fn new(checked: &Checked) -> Self {
        let broadcast = &checked.broadcast;
        let name = |operand: usize| broadcast.names.operand(operand);
        let comma = |position: usize| if position == 0 { "" } else { ", " };
        let mut row = Self::default();
        row.cell(|text| text.write_str(&broadcast.node));
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
        row.cell(|text| checked.growth().map_or(Ok(()), |growth| write!(text, "{growth:.1}x")));
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
