//! Expressions as text: with the brackets that they need and no others.
//!
//! A stack of what is left to write, not recursion: chains may be long.

use std::borrow::Cow;
use std::fmt;

use crate::by_name::program::front::axes::AxisPattern;
use crate::by_name::program::front::expr::{Expr, ExprId, ExprKind};
use crate::by_name::program::front::parse::{
    BINARY, COMPARISON, COMPARISONS, NOT, POSTFIX, POWER, UNARY,
};
use simulcast_kernels::op::Op;

/// Binds as strongly as anything, and is no number.
const ATOM: u8 = POSTFIX + 1;

/// What is left to write.
enum Piece<'a> {
    Text(Cow<'a, str>),
    /// A node, in brackets where it binds less strongly.
    Node(ExprId, u8),
}

impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(root) = self.nodes.len().checked_sub(1) else { return Ok(()) };
        let mut left = vec![Piece::Node(ExprId(u32::try_from(root).unwrap_or(u32::MAX)), 0)];
        while let Some(part) = left.pop() {
            match part {
                Piece::Text(text) => f.write_str(&text)?,
                Piece::Node(id, least) => {
                    let Some(node) = self.nodes.get(id.index()) else { continue };
                    let (strength, mut parts) = parts(&node.kind);
                    if strength < least {
                        parts.insert(0, text("("));
                        parts.push(text(")"));
                    }
                    left.extend(parts.into_iter().rev());
                }
            }
        }
        Ok(())
    }
}

fn text<'a>(text: impl Into<Cow<'a, str>>) -> Piece<'a> {
    Piece::Text(text.into())
}

/// How strongly the node binds, and what it is made of.
fn parts(kind: &ExprKind) -> (u8, Vec<Piece<'_>>) {
    use Piece::Node;
    match kind {
        // A number would take the dot of a method for its own.
        ExprKind::Literal(literal) => (POSTFIX, vec![text(literal.to_string())]),
        ExprKind::Text(own) => (ATOM, vec![text(quoted(own))]),
        ExprKind::Name(name) => (ATOM, vec![text(name)]),
        ExprKind::Apply(op, args) => applied(*op, args),
        ExprKind::Compare(first, rest) => {
            let mut parts = vec![Node(*first, COMPARISON + 1)];
            for (op, operand) in rest {
                let sign = COMPARISONS.iter().find(|(_, own)| own == op).map_or("", |own| own.0);
                parts.extend([text(format!(" {sign} ")), Node(*operand, COMPARISON + 1)]);
            }
            (COMPARISON, parts)
        }
        ExprKind::If(yes, condition, no) => {
            let (yes, condition) = (Node(*yes, 1), Node(*condition, 1));
            (0, vec![yes, text(" if "), condition, text(" else "), Node(*no, 0)])
        }
        ExprKind::Clip(of, low, high) => called("clip", &[*of, *low, *high]),
        ExprKind::Round(of, decimals) => {
            (ATOM, vec![text("round("), Node(*of, 0), text(format!(", {decimals})"))])
        }
        ExprKind::Cast(dtype, of) => called(dtype.name(), &[*of]),
        ExprKind::Index(of, pattern) => {
            let part = |part: &AxisPattern| match part {
                AxisPattern::Keep => ":",
                AxisPattern::New => "None",
                AxisPattern::Rest => "...",
            };
            let pattern: Vec<&str> = pattern.iter().map(part).collect();
            (ATOM, vec![Node(*of, ATOM), text(format!("[{}]", pattern.join(", ")))])
        }
        ExprKind::Transpose(of, None) => (ATOM, vec![Node(*of, ATOM), text(".T")]),
        ExprKind::Transpose(of, Some(axes)) => {
            // Without any, it would be the other way round.
            let axes = if axes.is_empty() { "(())".into() } else { tuple(axes) };
            (ATOM, vec![Node(*of, ATOM), text(format!(".transpose{axes}"))])
        }
        ExprKind::Reduce { fold, of, axes, keepdims } => {
            let axes = axes.as_deref().map(|axes| match axes {
                [axis] => format!(", axis={axis}"),
                axes => format!(", axis={}", tuple(axes)),
            });
            let keepdims = if *keepdims { ", keepdims=True" } else { "" };
            let rest = format!("{}{keepdims})", axes.unwrap_or_default());
            (ATOM, vec![text(fold.name()), text("("), Node(*of, 0), text(rest)])
        }
    }
}

fn applied(op: Op, args: &[ExprId]) -> (u8, Vec<Piece<'_>>) {
    use Piece::Node;
    match *args {
        [a, b] => {
            if let Some(&(sign, strength, _)) = BINARY.iter().find(|(.., own)| *own == op) {
                let sign = text(format!(" {sign} "));
                return (strength, vec![Node(a, strength), sign, Node(b, strength + 1)]);
            }
            if op == Op::Power {
                return (POWER, vec![Node(a, POSTFIX), text(" ** "), Node(b, UNARY)]);
            }
        }
        [a] => match op {
            Op::Negative => return (UNARY, vec![text("-"), Node(a, UNARY)]),
            Op::BitwiseNot => return (UNARY, vec![text("~"), Node(a, UNARY)]),
            Op::LogicalNot => return (NOT, vec![text("not "), Node(a, NOT)]),
            _ => {}
        },
        _ => {}
    }
    called(op.name(), args)
}

fn called<'a>(name: &'a str, args: &[ExprId]) -> (u8, Vec<Piece<'a>>) {
    let mut parts = vec![text(name)];
    for (k, &arg) in args.iter().enumerate() {
        parts.extend([text(if k == 0 { "(" } else { ", " }), Piece::Node(arg, 0)]);
    }
    parts.push(text(")"));
    (ATOM, parts)
}

fn tuple(axes: &[isize]) -> String {
    let axes: Vec<String> = axes.iter().map(isize::to_string).collect();
    format!("({})", axes.join(", "))
}

fn quoted(own: &str) -> String {
    let mut quoted = String::from("'");
    for c in own.chars() {
        match c {
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            '\r' => quoted.push_str("\\r"),
            '\\' | '\'' => quoted.extend(['\\', c]),
            _ => quoted.push(c),
        }
    }
    quoted.push('\'');
    quoted
}
