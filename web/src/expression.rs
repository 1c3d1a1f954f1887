//! Expressions: every operation with its type, its shape and its broadcast; what is hoisted, and what moves through
//! memory.

use serde_json::{Value, json};
use simulcast::program::{Diagnostic, Expr, ExprKind, ExprNode, ProgramStrategy};
use simulcast::types::{OperandType, Promotion};
use simulcast::{DType, ProgramError, ProgramErrorKind};
use simulcast_core::{Names, OwnedRule, Policy, RuleError, ShapeText, resolve};
use simulcast_explain::{Subject, error_json};

use crate::ask::Ask;
use crate::shapes::shown;

/// Longer expressions are refused: nobody reads a tree of more operations.
const NODES: usize = 512;

/// The number sign of a stage's result, as a letter that names may have and nobody writes.
const STAGE: &str = "\u{1c2}";

/// Explains an expression over operands of given types and shapes.
pub(crate) fn explain(ask: &Ask) -> Result<Value, String> {
    let text = ask.text("text")?;
    let rule = match ask.text_or_empty("rule")? {
        "" => OwnedRule::Numpy,
        rule => rule.parse().map_err(|error: RuleError| error.to_string())?,
    };
    if !matches!((rule.kind().arity(), rule.kind().parameters().labels), (None | Some(2), false)) {
        return Err(format!("rule {rule} does not bring two operands together"));
    }
    let expr = match Expr::parse(text) {
        Ok(expr) => expr,
        Err(error) => return Ok(refused(text, &Diagnostic::of_text(text, error))),
    };
    if expr.nodes().len() > NODES {
        return Err(format!("the expression has more than {NODES} parts"));
    }
    let wanted: Vec<&str> = expr.operands().collect();
    let mut given: Vec<(String, DType, Vec<usize>)> = Vec::new();
    let types = ask.texts("types")?;
    for (at, word) in ask.texts("operands")?.into_iter().enumerate() {
        let wrong = |why: String| json!({ "usage": why, "operand": at, "wanted": wanted });
        let dtype = match types.get(at).copied().unwrap_or("float32").parse::<DType>() {
            Ok(dtype) => dtype,
            Err(error) => return Ok(wrong(error.to_string())),
        };
        let shape: ShapeText = match word.parse() {
            Ok(shape) => shape,
            Err(error) => return Ok(wrong(format!("{error}"))),
        };
        let Some(sizes) = shape.dims.sizes() else {
            return Ok(wrong("every size of an expression's operand is a number".into()));
        };
        let name = shape.name.unwrap_or_default();
        if wanted.contains(&&*name) && !given.iter().any(|(own, ..)| *own == name) {
            given.push((name, dtype, sizes));
        }
    }
    if let Some(missing) = wanted.iter().find(|name| !given.iter().any(|(own, ..)| own == *name)) {
        return Ok(json!({ "usage": format!("give `{missing}` a shape"), "wanted": wanted }));
    }
    let known: Vec<(&str, DType, &[usize])> =
        given.iter().map(|(name, dtype, sizes)| (&**name, *dtype, &**sizes)).collect();
    let mut answer = Parts { expr: &expr, rule: &rule, known: &known }.explained();
    answer["wanted"] = json!(wanted);
    Ok(answer)
}

/// An error in its text.
fn refused(text: &str, diagnostic: &Diagnostic) -> Value {
    let error = diagnostic.error();
    let mut about = match &error.kind {
        ProgramErrorKind::Broadcast(error) => error_json(error),
        _ => json!({}),
    };
    // Not the error's own text, which would draw a terminal's picture of it: that code is a tenth of what the page loads.
    about["message"] = error.kind.to_string().into();
    about["span"] = span(text, error.span.start, error.span.end);
    about["suggestions"] = diagnostic.suggestions().collect();
    json!({ "error": about })
}

/// A part of a text, in the units in which JavaScript counts.
fn span(text: &str, start: usize, end: usize) -> Value {
    let units = |at: usize| text.get(..at).map_or(0, |before| before.encode_utf16().count());
    json!([units(start), units(end)])
}

/// An expression with its operands.
struct Parts<'p> {
    expr: &'p Expr,
    rule: &'p OwnedRule,
    known: &'p [(&'p str, DType, &'p [usize])],
}

impl Parts<'_> {
    fn explained(&self) -> Value {
        let Self { expr, rule, known } = *self;
        let typed: Vec<(&str, DType)> =
            known.iter().map(|&(name, dtype, _)| (name, dtype)).collect();
        let types = expr.types(&typed, Promotion::Numpy);
        let shape_of = |name: &str| known.iter().find(|own| own.0 == name).map(|own| own.2);
        let shapes = expr.shapes(rule.as_rule(), shape_of);
        let nodes: Vec<Value> = expr
            .nodes()
            .iter()
            .enumerate()
            .map(|(at, node)| {
                let mut part = self.node(node, &shapes);
                part["shape"] = json!(shapes.get(at).cloned().flatten());
                // What does not fit has a shape of its own, and what is computed of it has none.
                part["reached"] = (at < shapes.len() && at < types.len()).into();
                part["type"] = match types.get(at) {
                    Some(OperandType::Array(dtype)) => dtype.name().into(),
                    _ => Value::Null,
                };
                part
            })
            .collect();
        let mut answer = match self.planned(&typed) {
            Ok((dtype, strategy)) => self.costs(dtype, &strategy, &shapes, &types),
            Err(error) => {
                let promotion = Promotion::Numpy;
                refused(
                    expr.text(),
                    &Diagnostic::new(expr, error, known, rule.as_rule(), promotion),
                )
            }
        };
        answer["nodes"] = nodes.into();
        answer
    }

    fn planned(&self, typed: &[(&str, DType)]) -> Result<(DType, ProgramStrategy), ProgramError> {
        let program = self.expr.compile(typed, Promotion::Numpy)?;
        let shapes: Vec<&[usize]> = self.known.iter().map(|&(.., shape)| shape).collect();
        Ok((program.dtype(), program.strategy_by(self.rule.as_rule(), &shapes)?))
    }

    /// A part of the expression, and how its operands meet.
    fn node(&self, node: &ExprNode, shapes: &[Option<Vec<usize>>]) -> Value {
        let text = self.expr.text();
        let children = node.kind.children();
        let kind = match &node.kind {
            ExprKind::Literal(_) | ExprKind::Text(_) => "literal",
            ExprKind::Name(_) => "name",
            ExprKind::Index(..) | ExprKind::Transpose(..) => "view",
            ExprKind::Cast(..) => "cast",
            ExprKind::Reduce { .. } => "reduction",
            _ => "operation",
        };
        let mut arrays: Vec<(&[usize], String)> = Vec::new();
        let mut whole = true;
        for id in &children {
            match (shapes.get(id.index()), self.expr.node(*id)) {
                (Some(Some(shape)), Some(child)) => arrays.push((shape, self.expr.written(child))),
                (Some(None), _) => {}
                _ => whole = false,
            }
        }
        let meeting = (whole && kind == "operation" && arrays.len() > 1).then(|| {
            let names = Names::of(arrays.iter().map(|(_, name)| name));
            let sizes: Vec<&[usize]> = arrays.iter().map(|(shape, _)| *shape).collect();
            match resolve(self.rule.as_rule(), &sizes) {
                Ok(plan) => {
                    let plan = plan.with_names(names);
                    let verdict = Policy::for_explanations().judge(&plan);
                    let findings: Vec<_> =
                        verdict.denied.into_iter().chain(verdict.warned).collect();
                    shown(&Subject::Plan(&plan, &findings))
                }
                Err(error) => shown(&Subject::Error(&error.with_names(names))),
            }
        });
        json!({
            "text": self.expr.written(node),
            "head": text.get(node.head.clone()),
            "span": span(text, node.span.start, node.span.end),
            "kind": kind,
            "children": children.iter().map(|id| id.index()).collect::<Vec<_>>(),
            "broadcast": meeting,
        })
    }

    /// What runs, and how many bytes it moves: in its stages, and one operation after another.
    fn costs(
        &self,
        dtype: DType,
        strategy: &ProgramStrategy,
        shapes: &[Option<Vec<usize>>],
        types: &[OperandType],
    ) -> Value {
        let own = |at: usize| match (types.get(at), shapes.get(at)) {
            (Some(OperandType::Array(dtype)), Some(Some(shape))) => bytes(*dtype, shape),
            _ => 0,
        };
        let mut each = 0_u64;
        let mut made = 0_u64;
        for (at, node) in self.expr.nodes().iter().enumerate() {
            if !matches!(
                node.kind,
                ExprKind::Literal(_)
                    | ExprKind::Text(_)
                    | ExprKind::Name(_)
                    | ExprKind::Index(..)
                    | ExprKind::Transpose(..)
            ) {
                let read = node.kind.children().into_iter().map(|id| own(id.index()));
                each = read.fold(each, u64::saturating_add).saturating_add(own(at));
                made = made.saturating_add(own(at));
            }
        }
        let mut sizes: Vec<(String, u64)> = self
            .known
            .iter()
            .map(|(name, dtype, shape)| ((*name).to_owned(), bytes(*dtype, shape)))
            .collect();
        let mut moved = Some(0_u64);
        for (at, stage) in strategy.stages.iter().enumerate() {
            let result = bytes(stage.dtype, &stage.shape);
            let read = Expr::parse(&stage.expression.replace('#', STAGE)).ok();
            let read = read.map(|read| {
                read.operands()
                    .filter_map(|name| sizes.iter().find(|(own, _)| own == name))
                    .fold(0, |sum: u64, (_, own)| sum.saturating_add(*own))
            });
            moved =
                moved.zip(read).map(|(sum, read)| sum.saturating_add(read).saturating_add(result));
            sizes.push((format!("{STAGE}{}", at + 1), result));
        }
        let last = strategy.stages.last();
        let result = last.map_or(0, |stage| bytes(stage.dtype, &stage.shape));
        json!({
            "result": { "type": dtype.name(), "shape": last.map(|stage| &stage.shape), "bytes": result },
            "stages": strategy.stages.iter().map(|stage| json!({
                "expression": stage.expression,
                "hoisted": stage.is_hoisted,
                "type": stage.dtype.name(),
                "shape": stage.shape,
                "bytes": bytes(stage.dtype, &stage.shape),
            })).collect::<Vec<_>>(),
            "traffic": moved,
            "traffic_each": each,
            "temporaries": strategy.stages.iter().rev().skip(1)
                .fold(0_u64, |sum, stage| sum.saturating_add(bytes(stage.dtype, &stage.shape))),
            "temporaries_each": made.saturating_sub(result),
        })
    }
}

/// The bytes of an array; as many as can be said where there are more.
fn bytes(dtype: DType, shape: &[usize]) -> u64 {
    let count = if shape.contains(&0) { 0 } else { 1_u64 };
    let count = shape.iter().fold(count, |count, &size| count.saturating_mul(size as u64));
    count.saturating_mul(dtype.size() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer;

    fn ask(text: &str, operands: &[&str], types: &[&str]) -> Value {
        let request =
            json!({ "do": "expression", "text": text, "operands": operands, "types": types });
        answer(&request.to_string(), Vec::new()).json
    }

    #[test]
    fn every_operation_has_a_type_and_a_shape() {
        let found = ask(
            "(image - mean) / std",
            &["image:32,224,224,3", "mean:3", "std:3"],
            &["uint8", "float32", "float32"],
        );
        assert_eq!(found["result"]["shape"], json!([32, 224, 224, 3]));
        assert_eq!(found["result"]["type"], "float32");
        let subtract = &found["nodes"][2];
        assert_eq!(subtract["text"], "(image - mean)");
        assert_eq!(
            subtract["broadcast"]["explanation"]["result"]["shape"],
            json!([32, 224, 224, 3])
        );
        // 4,816,896 pixels of one byte, three floats twice, and as many floats as pixels.
        let pixels = 32 * 224 * 224 * 3;
        assert_eq!(found["traffic"], pixels + 2 * 12 + 4 * pixels);
        assert_eq!(
            found["traffic_each"],
            (pixels + 12 + 4 * pixels) + (4 * pixels + 12 + 4 * pixels)
        );
        assert_eq!(found["stages"].as_array().unwrap().len(), 1);
    }

    #[test]
    fn what_is_hoisted_is_a_stage_of_its_own() {
        let found = ask("x + exp(sin(row))", &["x:4000,4000", "row:4000"], &[]);
        assert_eq!(found["stages"][0]["expression"], "exp(sin(row))");
        assert_eq!(found["stages"][0]["hoisted"], true);
        let (x, row) = (4 * 4000 * 4000, 4 * 4000);
        assert_eq!(found["traffic"], (row + row) + (x + row + x));
    }

    #[test]
    fn errors_point_into_the_text_and_suggest_edits() {
        let found = ask("µ * (image - mean)", &["µ:()", "image:32,64,56,56", "mean:64"], &[]);
        assert_eq!(found["error"]["code"], "E1");
        assert_eq!(found["error"]["span"], json!([4, 18]), "{found}");
        assert_eq!(found["error"]["suggestions"][0], "µ * (image - mean[:, None, None])");
        let found = ask("a +* b", &[], &[]);
        assert!(found["error"]["message"].is_string());
        let found = ask("a + b", &["a:2,3"], &[]);
        assert_eq!(
            (&found["usage"], &found["wanted"]),
            (&json!("give `b` a shape"), &json!(["a", "b"]))
        );
        let found = ask("a + b", &["a:2,3", "b:2.5"], &[]);
        assert_eq!(found["operand"], 1);
    }
}
