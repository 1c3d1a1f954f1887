//! Errors shown in the text that they come from, as `rustc` shows them.
//!
//! A [`Diagnostic`] points at the operator, says the type and the shape of each operand, and suggests
//! edits of the text. An edit is shown only where the edited text is an expression whose shapes fit,
//! from its operands to its result.
//!
//! ```
//! use simulcast::{DType, Rule, broadcast_shapes};
//! use simulcast::program::{Diagnostic, Expr};
//! use simulcast::types::Promotion;
//!
//! let expr = Expr::parse("image - mean")?;
//! let operands = [("image", DType::F32, &[32, 64, 56, 56][..]), ("mean", DType::F32, &[64])];
//! # use ndarray::ArrayD;
//! # let arrays = operands.map(|(.., shape)| ArrayD::<f32>::zeros(shape));
//! # let views = arrays.each_ref().map(Into::into);
//! let program = expr.compile(&operands.map(|(name, dtype, _)| (name, dtype)), Promotion::Numpy)?;
//! let error = program.run(&views).unwrap_err();
//! let shown = Diagnostic::new(&expr, error, &operands, Rule::Numpy, Promotion::Numpy).to_string();
//! assert!(shown.contains("image - mean[:, None, None]"), "{shown}");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::fmt;
use std::ops::Range;

use annotate_snippets::{AnnotationKind, Group, Level, Patch, Renderer, Snippet};
use simulcast_core::{BroadcastError, Names, Refusal, Rule, format_shape};

use crate::by_name::program::build::builder::Builder;
use crate::by_name::program::build::lower::lowered;
use crate::by_name::program::front::error::{ErrorOperand, ProgramError, ProgramErrorKind};
use crate::by_name::program::front::expr::{Expr, ExprId, ExprKind};
use crate::by_name::program::front::matrix_product;
use crate::by_name::program::front::shapes::shapes;
use crate::by_name::program::front::syntax_error::{SyntaxError, SyntaxErrorKind};
use crate::by_name::types::{Casting, OperandType, Promotion, TypeErrorKind, can_cast};
use simulcast_kernels::dtype::DType;

/// An error together with the text that it is about.
///
/// ```
/// use simulcast::program::{Diagnostic, Expr};
///
/// let text = "x + * y";
/// let error = Expr::parse(text).unwrap_err();
/// let shown = Diagnostic::of_text(text, error).to_string();
/// assert!(shown.starts_with("error") && shown.contains("1 | x + * y"));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Diagnostic {
    text: String,
    error: ProgramError,
    title: String,
    /// What stands under the operator, and where that is.
    primary: (Range<usize>, String),
    /// What stands under the operands.
    labels: Vec<(Range<usize>, String)>,
    /// Edits that were checked: what they lead to, and what replaces what.
    help: Vec<(String, Range<usize>, String)>,
}

impl Diagnostic {
    /// The error in its text, for operands of these names, types and shapes. Shapes are not asked for
    /// where the error came before there were any.
    #[must_use]
    pub fn new(
        expr: &Expr,
        error: ProgramError,
        operands: &[(&str, DType, &[usize])],
        rule: Rule<'_>,
        promotion: Promotion,
    ) -> Self {
        let shape_of =
            |name: &str| operands.iter().find(|(own, ..)| *own == name).map(|(.., shape)| *shape);
        let node = expr.nodes().iter().rev().find(|node| node.span == error.span);
        let children = node.map(|node| node.kind.children()).unwrap_or_default();
        let mut builder = Builder::new(promotion);
        let declared: Vec<(&str, DType)> =
            operands.iter().map(|(name, dtype, _)| (*name, *dtype)).collect();
        let (values, _) = lowered(expr, &mut builder, &declared);
        let known = shapes(expr, rule, shape_of);
        let described = |id: &ExprId| {
            let value = builder.type_of(*values.get(id.index())?);
            let shape = known.get(id.index()).cloned().flatten();
            let text = match (value, shape) {
                // A literal says itself.
                (OperandType::Literal(_), _) => return None,
                (OperandType::Array(dtype), Some(shape)) if is_shaped(&error.kind) => {
                    format!("{dtype} {}", format_shape(&shape))
                }
                (OperandType::Array(dtype), _) => dtype.to_string(),
            };
            Some((expr.node(*id)?.span.clone(), text))
        };
        let labels: Vec<_> = children.iter().filter_map(described).collect();
        // In the order in which the operation takes them.
        let operands: Vec<ExprId> = match (node.map(|node| &node.kind), children.as_slice()) {
            (Some(ExprKind::If(..)), &[yes, condition, no]) => vec![condition, yes, no],
            _ => children.clone(),
        };
        let arrays: Vec<ExprId> = operands
            .iter()
            .filter(|id| matches!(known.get(id.index()), Some(Some(_))))
            .copied()
            .collect();
        let clashing = clashing(&error.kind, &arrays);
        let head = match (node, clashing.as_slice()) {
            (None, _) => error.span.clone(),
            // Of a chain, the comparison of these two.
            (Some(node), &[a, b])
                if matches!(node.kind, ExprKind::Compare(..))
                    && children.windows(2).any(|w| w == [a, b]) =>
            {
                between(expr, a, b).unwrap_or_else(|| node.head.clone())
            }
            (Some(node), _) => node.head.clone(),
        };
        let (title, under) = words(&error.kind, expr.text().get(head.clone()).unwrap_or_default());
        let help = match &error.kind {
            ProgramErrorKind::Broadcast(broadcast) => {
                let fits = |text: &str| {
                    let edited = edited_expr(expr, text)?;
                    (shapes(&edited, rule, shape_of).len() == edited.nodes().len()).then_some(())
                };
                suggestions(expr, broadcast, &arrays, fits)
            }
            ProgramErrorKind::Type(mistyped) if mistyped.kind == TypeErrorKind::Different => {
                let fits = |text: &str| {
                    let edited = edited_expr(expr, text)?;
                    let (_, failed) = lowered(&edited, &mut Builder::new(promotion), &declared);
                    failed.is_none().then_some(())
                };
                let typed = children.iter().filter_map(|id| {
                    match builder.type_of(*values.get(id.index())?) {
                        OperandType::Array(dtype) => Some((*id, dtype)),
                        OperandType::Literal(_) => None,
                    }
                });
                casts(expr, &typed.collect::<Vec<_>>(), fits)
            }
            ProgramErrorKind::Unknown { near: Some(near), .. } => {
                vec![("an operand has a similar name".into(), error.span.clone(), near.clone())]
            }
            _ => Vec::new(),
        };
        let error = match error.kind {
            ProgramErrorKind::Broadcast(broadcast) => {
                // What met there, in the order of the shapes; nothing did where the error is about the result.
                let written = |arg: &ErrorOperand| {
                    let node = expr.nodes().iter().rev().find(|node| node.span == arg.span)?;
                    Some(expr.written(node))
                };
                let names: Option<Vec<String>> = error.operands.iter().map(written).collect();
                let broadcast = match names.filter(|names| !names.is_empty()) {
                    Some(names) => broadcast.with_names(Names::of(names)),
                    None => broadcast,
                };
                ProgramError { kind: ProgramErrorKind::Broadcast(broadcast), ..error }
            }
            _ => error,
        };
        let text = expr.text().to_string();
        Self { text, title, primary: (head, under), labels, help, error }
    }

    /// As [`Diagnostic::new`], for an error of one of several expressions: of that which it is in.
    ///
    /// ```
    /// use simulcast::program::{Diagnostic, Expr};
    /// use simulcast::types::Promotion;
    /// use simulcast::{DType, JointProgram, Rule};
    ///
    /// let expressions = Expr::parse_several("x * 2; x + 'a'")?;
    /// let error = JointProgram::compile(&expressions, &[("x", DType::F64)], Promotion::Numpy).unwrap_err();
    /// let operands = [("x", DType::F64, &[3][..])];
    /// let shown = Diagnostic::of_several(&expressions, error, &operands, Rule::Numpy, Promotion::Numpy);
    /// assert!(shown.is_some_and(|shown| shown.to_string().contains("1 | x * 2; x + 'a'")));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// It is `None` for an error that is in none of them.
    #[must_use]
    pub fn of_several(
        expressions: &[Expr],
        error: ProgramError,
        operands: &[(&str, DType, &[usize])],
        rule: Rule<'_>,
        promotion: Promotion,
    ) -> Option<Self> {
        let (start, end) = (error.span.start, error.span.end);
        let holds = |expression: &&Expr| {
            let root = expression.nodes().last();
            root.is_some_and(|root| root.span.start <= start && end <= root.span.end)
        };
        let own = expressions.iter().find(holds).or(expressions.first());
        let own = own.filter(|_| start < end)?;
        Some(Self::new(own, error, operands, rule, promotion))
    }

    /// The error of a text that is no expression.
    #[must_use]
    pub fn of_text(text: &str, error: SyntaxError) -> Self {
        Self::of_text_with(text, error, |_| None)
    }

    /// The error in a text that is no expression, where the shapes of some operands are known: what is suggested for `@` was
    /// checked with them.
    #[must_use]
    pub fn of_text_with<'a>(
        text: &str,
        error: SyntaxError,
        shape_of: impl Fn(&str) -> Option<&'a [usize]>,
    ) -> Self {
        let help = match &error.kind {
            _ if text.get(error.span.clone()) == Some("@") => {
                let what = "for operands of these shapes, a product and its sum are one pass";
                let made = matrix_product::suggestion(text, &error.span, shape_of);
                made.into_iter().map(|(span, with)| (what.into(), span, with)).collect()
            }
            SyntaxErrorKind::UnknownFunction { near: Some(near), .. } => {
                let what = "a function has a similar name".into();
                vec![(what, error.span.clone(), (*near).to_string())]
            }
            SyntaxErrorKind::Module(_)
                if Expr::parse_several(&edited(text, &error.span, "")).is_ok() =>
            {
                vec![(
                    "without it, this is an expression".into(),
                    error.span.clone(),
                    String::new(),
                )]
            }
            _ => Vec::new(),
        };
        let error = ProgramError::from(error);
        let (title, under) = words(&error.kind, "");
        let primary = (error.span.clone(), under);
        Self { text: text.into(), title, primary, labels: Vec::new(), help, error }
    }

    /// The error without its text.
    pub(super) fn into_error(self) -> ProgramError {
        self.error
    }

    /// The error.
    #[must_use]
    pub fn error(&self) -> &ProgramError {
        &self.error
    }

    /// The text with each suggested edit made; checked, likeliest first.
    pub fn suggestions(&self) -> impl Iterator<Item = String> {
        self.help.iter().map(|(_, span, with)| edited(&self.text, span, with))
    }

    /// The error as people read it, with the colours of a terminal if `styled`.
    #[must_use]
    pub fn render(&self, styled: bool) -> String {
        let renderer = if styled { Renderer::styled() } else { Renderer::plain() };
        let (head, under) = &self.primary;
        let label = Some(under.as_str()).filter(|under| !under.is_empty());
        let mut snippet = Snippet::source(self.text.as_str())
            .annotation(AnnotationKind::Primary.span(head.clone()).label(label));
        for (span, label) in &self.labels {
            snippet = snippet
                .annotation(AnnotationKind::Context.span(span.clone()).label(label.as_str()));
        }
        let title = Level::ERROR.primary_title(self.title.as_str());
        let title = match &self.error.kind {
            ProgramErrorKind::Broadcast(error) => title.id(error.code()),
            _ => title,
        };
        let mut report: Vec<Group<'_>> = vec![title.element(snippet)];
        for (what, span, with) in &self.help {
            let patch = Patch::new(span.clone(), with.as_str());
            let snippet = Snippet::source(self.text.as_str()).patch(patch);
            report.push(Level::HELP.secondary_title(what.as_str()).element(snippet));
        }
        renderer.render(&report)
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(false))
    }
}

impl std::error::Error for Diagnostic {}

/// Whether it is about shapes, so that they should be seen.
fn is_shaped(kind: &ProgramErrorKind) -> bool {
    matches!(
        kind,
        ProgramErrorKind::Broadcast(_)
            | ProgramErrorKind::Axis { .. }
            | ProgramErrorKind::Axes { .. }
            | ProgramErrorKind::Indices { .. }
            | ProgramErrorKind::Empty(_)
    )
}

/// The title, and what stands under the operator.
fn words(kind: &ProgramErrorKind, operator: &str) -> (String, String) {
    match kind {
        ProgramErrorKind::Broadcast(error) if *error.refusal() == Refusal::Memory => {
            (error.describe(error.refusal()), String::new())
        }
        ProgramErrorKind::Broadcast(error) => {
            let under = match *error.refusal() {
                Refusal::Clash { axis, rank, first, second } => {
                    let from_end = rank.saturating_sub(axis);
                    let (a, b) = (first.size, second.size);
                    // Of other rules, what may not stretch may be 1.
                    let one = [a, b].iter().any(|size| size.size() == Some(1));
                    let why = if one || !error.rule().kind().stretches() {
                        format!("which {} does not allow", error.rule().kind())
                    } else {
                        "and neither is 1".into()
                    };
                    format!("axis {axis} (-{from_end}): {a} and {b} differ, {why}")
                }
                _ => error.describe(error.refusal()),
            };
            (format!("operands of `{operator}` do not broadcast"), under)
        }
        ProgramErrorKind::Type(error) => match error.kind {
            TypeErrorKind::Undefined => {
                let allowed: Vec<&str> = error.allowed().collect();
                let under = format!("takes {}", crate::by_name::types::listed(&allowed));
                let types = crate::by_name::types::listed(&error.types);
                (format!("`{operator}` is not defined on {types}"), under)
            }
            _ => (error.to_string(), String::new()),
        },
        other => (other.to_string(), String::new()),
    }
}

/// The nodes that clash, among those that have a shape.
fn clashing(kind: &ProgramErrorKind, arrays: &[ExprId]) -> Vec<ExprId> {
    let ProgramErrorKind::Broadcast(error) = kind else { return Vec::new() };
    error.operands().iter().filter_map(|&operand| arrays.get(operand).copied()).collect()
}

/// What stands between two neighbours: their operator.
fn between(expr: &Expr, a: ExprId, b: ExprId) -> Option<Range<usize>> {
    let (start, end) = (expr.node(a)?.span.end, expr.node(b)?.span.start);
    let gap = expr.text().get(start..end)?;
    let sign = gap.trim();
    let start = start + gap.find(sign)?;
    (!sign.is_empty()).then(|| start..start + sign.len())
}

/// The fixes of the error as edits of the text, where the whole expression fits then.
fn suggestions(
    expr: &Expr,
    error: &BroadcastError,
    arrays: &[ExprId],
    fits: impl Fn(&str) -> Option<()>,
) -> Vec<(String, Range<usize>, String)> {
    use simulcast_core::Edit;
    let one = |fix: &simulcast_core::Fix| {
        let (Edit::InsertAxes { operand, .. } | Edit::Transpose { operand, .. }) = fix.edit()
        else {
            return None;
        };
        let node = expr.node(*arrays.get(*operand)?)?;
        let own = expr.text().get(node.span.clone())?;
        let names = Names::of((0..arrays.len()).map(|_| "#"));
        let suffix = fix.expression(&names);
        let suffix = suffix.strip_prefix('#')?;
        let (span, with) = match node.is_tight() {
            true => (node.span.end..node.span.end, suffix.to_string()),
            false => (node.span.clone(), format!("({own}){suffix}")),
        };
        fits(&edited(expr.text(), &span, &with))?;
        let (shape, result) = (format_shape(fix.shape()?), format_shape(fix.result()));
        Some((format!("as {shape} it fits, and the result is {result}"), span, with))
    };
    error.fixes().iter().filter_map(one).collect()
}

/// The expression in an edited text, which may hold several.
fn edited_expr(expr: &Expr, text: &str) -> Option<Expr> {
    let start = expr.nodes().last()?.span.start;
    let own = |other: &Expr| other.nodes().last().is_some_and(|root| root.span.start == start);
    let at = Expr::parse_several(expr.text()).ok()?.iter().position(own)?;
    Expr::parse_several(text).ok()?.into_iter().nth(at)
}

/// Operands cast to the type of another one that holds all their values, where that is enough.
fn casts(
    expr: &Expr,
    operands: &[(ExprId, DType)],
    fits: impl Fn(&str) -> Option<()>,
) -> Vec<(String, Range<usize>, String)> {
    let one = |&(id, own): &(ExprId, DType)| {
        let wider = |dtype: &DType| *dtype != own && can_cast(own, *dtype, Casting::Safe);
        let to = operands.iter().map(|(_, dtype)| *dtype).find(wider)?;
        let node = expr.node(id)?;
        let span = node.span.clone();
        let text = expr.text().get(span.clone())?;
        let with =
            if node.is_bracketed() { format!("{to}{text}") } else { format!("{to}({text})") };
        fits(&edited(expr.text(), &span, &with))?;
        Some((format!("as {to} it is of the other's type"), span, with))
    };
    operands.iter().filter_map(one).collect()
}

fn edited(text: &str, span: &Range<usize>, with: &str) -> String {
    let before = text.get(..span.start).unwrap_or_default();
    let after = text.get(span.end..).unwrap_or_default();
    [before, with, after].concat()
}
