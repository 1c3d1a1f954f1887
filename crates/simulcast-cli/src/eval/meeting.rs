//! How the operands of an expression meet: warnings, and what `--explain` shows.

use std::fmt::Write as _;
use std::io::Write as _;

use simulcast::program::{Expr, ExprKind, ProgramStrategy};
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
    let shapes: Vec<&[usize]> = operands.iter().map(|(.., shape)| *shape).collect();
    let names = Names {
        operands: operands.iter().map(|(name, ..)| (*name).to_owned()).collect(),
        axes: shapes.iter().map(|shape| vec![String::new(); shape.len()]).collect(),
    };
    resolve(rule, &shapes).ok().map(|plan| plan.with_names(names))
}

/// Says on standard error what is legal and suspicious; what is only possible too, since a command runs once.
pub(super) fn warn(plan: Option<&Plan>) {
    let policy = Policy::default().with(FindingCode::SquareOuter, Action::Warn);
    let found = plan.map(|plan| policy.judge(plan).warned).unwrap_or_default();
    for finding in found {
        let _ = writeln!(anstream::stderr(), "warning: {finding}");
    }
}

/// The table of axes, where there is one; then types, bytes and passes over memory.
pub(super) fn explain(
    plan: Option<&Plan>,
    program: &TypedProgram,
    operands: &[AnyView<'_>],
    shape: &[usize],
    strategy: &ProgramStrategy,
) -> String {
    let mut out = String::new();
    if let Some(plan) = plan {
        let findings = Policy::for_explanations().judge(plan).warned;
        out = text(&Subject::Plan(plan, &findings), TextOptions { unicode: true, color: true });
    }
    let given = program.operands().iter().zip(operands);
    let given = given.map(|(operand, view)| (&*operand.name, operand.dtype, view.shape()));
    for (name, dtype, shape) in given.chain([("result", program.dtype(), shape)]) {
        let bytes = simulcast_explain::human_bytes(bytes_of(dtype, shape));
        let _ = writeln!(out, "  {name:<8} {dtype} {}  {bytes}", format_shape(shape));
    }
    let passes = strategy.stages.len();
    let word = if passes == 1 { "pass" } else { "passes" };
    let _ = writeln!(out, "  {word:<8} {passes} over memory");
    for line in strategy.to_string().lines() {
        let _ = writeln!(out, "    {line}");
    }
    out
}
