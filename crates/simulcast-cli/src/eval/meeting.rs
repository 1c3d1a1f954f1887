//! How the operands of an expression meet: warnings, and what `--explain` shows.

use std::fmt::Write as _;
use std::io::Write as _;

use serde_json::{Value, json};
use simulcast::program::{Expr, ExprKind, ProgramOperand, ProgramStrategy};
use simulcast::{AnyView, DType, TypedProgram};
use simulcast_core::{Action, FindingCode, Names, Plan, Policy, Rule, format_shape, resolve};
use simulcast_explain::{Subject, TextOptions, text};

use super::bytes_of;

/// The plan of all operands together, where they meet as they are given: no axes are added, moved
/// or reduced on the way.
pub(super) fn plan(
    expr: &Expr,
    rule: Rule<'_>,
    operands: &[(&str, DType, &[usize])],
) -> Option<Plan> {
    let moved = expr.nodes().iter().any(|node| {
        matches!(node.kind, ExprKind::Index(..) | ExprKind::Transpose(..) | ExprKind::Reduce { .. })
    });
    if moved {
        return None;
    }
    // Of several expressions, one has not all operands.
    let own: Vec<&str> = expr.operands().collect();
    let operands: Vec<_> = operands.iter().filter(|(name, ..)| own.contains(name)).collect();
    let shapes: Vec<&[usize]> = operands.iter().map(|(.., shape)| *shape).collect();
    let names = Names {
        operands: operands.iter().map(|(name, ..)| (*name).to_owned()).collect(),
        axes: shapes.iter().map(|shape| vec![String::new(); shape.len()]).collect(),
    };
    resolve(rule, &shapes).ok().map(|plan| plan.with_names(names))
}

/// Says on standard error what is legal and suspicious, each once; what is only possible too, since a command runs once.
pub(super) fn warn<'p>(plans: impl IntoIterator<Item = &'p Plan>) {
    let policy = Policy::default().with(FindingCode::SquareOuter, Action::Warn);
    let mut said: Vec<String> = Vec::new();
    for finding in plans.into_iter().flat_map(|plan| policy.judge(plan).warned) {
        let finding = finding.to_string();
        if !said.contains(&finding) {
            let _ = writeln!(anstream::stderr(), "warning: {finding}");
            said.push(finding);
        }
    }
}

/// The table of axes, and what is suspicious.
pub(super) fn table(plan: &Plan) -> String {
    let findings = Policy::for_explanations().judge(plan).warned;
    text(&Subject::Plan(plan, &findings), TextOptions { unicode: true, color: true })
}

/// A line for each operand and each result: its type, its shape and its bytes.
pub(super) fn arrays(
    out: &mut String,
    operands: &[ProgramOperand],
    views: &[AnyView<'_>],
    results: &[(&str, DType, &[usize])],
) {
    let given = operands.iter().zip(views);
    let given = given.map(|(operand, view)| (&*operand.name, operand.dtype, view.shape()));
    for (name, dtype, shape) in given.chain(results.iter().copied()) {
        let bytes = simulcast_explain::human_bytes(bytes_of(dtype, shape));
        let _ = writeln!(out, "  {name:<8} {dtype} {}  {bytes}", format_shape(shape));
    }
}

/// The operands in JSON.
pub(super) fn operands_json(operands: &[ProgramOperand], shapes: &[&[usize]]) -> Value {
    let about = operands.iter().zip(shapes).map(|(operand, shape)| {
        json!({ "name": operand.name, "dtype": operand.dtype.name(), "shape": shape })
    });
    about.collect()
}

/// The table of axes, where there is one; then types, bytes and passes over memory.
pub(super) fn explain(
    plan: Option<&Plan>,
    program: &TypedProgram,
    operands: &[AnyView<'_>],
    shape: &[usize],
    strategy: &ProgramStrategy,
) -> String {
    let mut out = plan.map(table).unwrap_or_default();
    arrays(&mut out, program.operands(), operands, &[("result", program.dtype(), shape)]);
    let passes = strategy.stages.len();
    let word = if passes == 1 { "pass" } else { "passes" };
    let _ = writeln!(out, "  {word:<8} {passes} over memory");
    for line in strategy.to_string().lines() {
        let _ = writeln!(out, "    {line}");
    }
    out
}
