//! Checks: what is wrong or suspicious about the broadcasts of a model.
//!
//! Beside the findings of `simulcast-core`, which look at one broadcast, a model shows more: where
//! a result goes, and what the file itself says of it.

use std::collections::BTreeSet;
use std::fmt;

use simulcast_core::{
    Action, Certainty, Chosen, Code, Constraint, Dim, Dims, Evidence, Finding, FindingCode, Names,
    Outcome, Plan, Policy, Term, Verdict,
};
use simulcast_explain::Subject;

use crate::infer::{Broadcast, Inference, infer};
use crate::model::{Model, ValueId};

/// The codes of findings that only a model can show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum ModelCode {
    /// `SC109`: a declared shape is not the inferred one.
    Declared,
    /// `SC110`: both operands grow (SC101, SC102), and the result is reduced to one number: a loss
    /// over pairs that were never meant to meet.
    ReducedGrowth,
    /// `SC112`: a `PRelu` slope lies on the last axes though it has the length of the channels.
    Coincidence,
    /// `SC113`: a name stands for two sizes of the inputs.
    ReusedName,
    /// `SC114`: a constant of the model fixes a size of the inputs that has a name.
    Pinned,
}

impl ModelCode {
    /// Every code, in order.
    pub const ALL: &'static [Self] =
        &[Self::Declared, Self::ReducedGrowth, Self::Coincidence, Self::ReusedName, Self::Pinned];

    /// The code as text.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Declared => "SC109",
            Self::ReducedGrowth => "SC110",
            Self::Coincidence => "SC112",
            Self::ReusedName => "SC113",
            Self::Pinned => "SC114",
        }
    }

    /// What the code stands for, in a few words: its row in the list of all codes has them.
    #[must_use]
    pub fn title(self) -> &'static str {
        Code::find(self.as_str()).map_or("", |code| code.title)
    }

    /// The code of that text.
    #[must_use]
    pub fn from_text(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|code| code.as_str().eq_ignore_ascii_case(text))
    }
}

impl fmt::Display for ModelCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Something suspicious that only a model can show.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ModelFinding {
    /// The code.
    pub code: ModelCode,
    /// How sure it is that sizes do not agree by chance. SC109 rests on no such sizes; SC110 is confirmed by the
    /// reduction, unless a node before the broadcast inserted the axis; SC112 is confirmed by a symbol.
    pub certainty: Certainty,
    /// The node, or for SC109 the value.
    pub at: String,
    /// What was found.
    pub message: String,
    /// Whether the policy denies it.
    pub denied: bool,
}

impl fmt::Display for ModelFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.code, self.at, self.message)
    }
}

/// What to do about findings.
#[derive(Clone, Debug)]
pub struct CheckPolicy {
    /// What to do about those of one broadcast. The byte size of elements is the model's.
    pub broadcasts: Policy,
    /// What to do about those that only a model can show, in the order of [`ModelCode::ALL`], at each certainty.
    pub model: [[Action; Certainty::ALL.len()]; ModelCode::ALL.len()],
}

impl Default for CheckPolicy {
    /// Everything is told but rank promotion, which is how every bias is added.
    fn default() -> Self {
        let model = [[Action::Warn; Certainty::ALL.len()]; ModelCode::ALL.len()];
        Self { broadcasts: Policy::for_explanations(), model }
    }
}

impl CheckPolicy {
    /// The policy with another action for a code: of a broadcast, of a model, or `all`; a certainty may follow,
    /// as in `SC102:confirmed`.
    ///
    /// # Errors
    ///
    /// The codes that there are, where this is none of them.
    pub fn with(mut self, code: &str, action: Action) -> Result<Self, String> {
        let (code, certainty) = Chosen::split(code).map_err(|error| error.to_string())?;
        let all = code == "all";
        let is_chosen = |own: &str| all || own.eq_ignore_ascii_case(code);
        let own = FindingCode::ALL.iter().copied().filter(|own| is_chosen(own.as_str()));
        let of_model = ModelCode::ALL.iter().copied().filter(|own| is_chosen(own.as_str()));
        let (own, of_model): (Vec<_>, Vec<_>) = (own.collect(), of_model.collect());
        if own.is_empty() && of_model.is_empty() {
            let codes = FindingCode::ALL.iter().map(|code| (code.as_str(), code.title()));
            let codes =
                codes.chain(ModelCode::ALL.iter().map(|code| (code.as_str(), code.title())));
            let codes: Vec<String> =
                codes.map(|(code, title)| format!("  {code}  {title}")).collect();
            return Err(format!("there is no finding {code:?}; there are\n{}", codes.join("\n")));
        }
        for code in own {
            let chosen = Chosen { code: Some(code), certainty };
            self.broadcasts = self.broadcasts.with_chosen(&chosen, action);
        }
        let chosen = Chosen { code: None, certainty };
        for code in of_model {
            for certainty in chosen.certainties() {
                self.model[code as usize][certainty as usize] = action;
            }
        }
        Ok(self)
    }
}

/// A broadcast of a model, with what is suspicious about it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Checked {
    /// The broadcast.
    pub broadcast: Broadcast,
    /// Findings, those that the policy denies first.
    pub findings: Vec<Finding>,
    /// How many findings the policy denies.
    pub denied: usize,
    /// Each operand that repeats, and along which axes of the result.
    pub repeats: Vec<(usize, Vec<usize>)>,
}

impl Checked {
    /// The broadcast as what can be explained.
    #[must_use]
    pub fn subject(&self) -> Subject<'_> {
        Subject::of(&self.broadcast.outcome, &self.broadcast.names, &self.findings)
    }

    /// How many times larger the result is than what is stored, where sizes are known.
    #[must_use]
    pub fn growth(&self) -> Option<f64> {
        match &self.broadcast.outcome {
            Outcome::Plan(plan) => plan.cost().growth(),
            _ => None,
        }
    }

    /// The bytes of the result, where sizes and type are known.
    #[must_use]
    pub fn result_bytes(&self) -> Option<usize> {
        match &self.broadcast.outcome {
            Outcome::Plan(plan) => self.broadcast.element?.bytes(plan.elements().ok()?),
            _ => None,
        }
    }

    /// Whether the shapes do not broadcast.
    #[must_use]
    pub fn is_error(&self) -> bool {
        matches!(self.broadcast.outcome, Outcome::Error(_))
    }

    pub(crate) fn shapes(&self) -> Vec<Dims> {
        self.broadcast.outcome.shapes()
    }

    pub(crate) fn result(&self) -> Option<Dims> {
        self.broadcast.outcome.shape()
    }
}

/// What a check found.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Check {
    /// What was inferred; its broadcasts have moved to [`Check::broadcasts`].
    pub inference: Inference,
    /// Every broadcast, with its findings.
    pub broadcasts: Vec<Checked>,
    /// Findings that only a model can show.
    pub findings: Vec<ModelFinding>,
}

impl Check {
    /// How many errors there are.
    #[must_use]
    pub fn errors(&self) -> usize {
        let broadcasts = self.broadcasts.iter().filter(|checked| checked.is_error()).count();
        broadcasts + self.inference.problems.len()
    }

    /// Why the check failed, a line each: errors, and what the policy denies; empty where the model is
    /// sound.
    #[must_use]
    pub fn failures(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for checked in &self.broadcasts {
            let node = &checked.broadcast.node;
            if let Outcome::Error(error) = &checked.broadcast.outcome {
                lines.push(format!("{node} ({}): {error}", checked.broadcast.op));
            }
            let denied = checked.findings.iter().take(checked.denied);
            lines.extend(denied.map(|finding| format!("denied: {node}: {finding}")));
        }
        for problem in &self.inference.problems {
            lines.push(problem.to_string());
        }
        let denied = self.findings.iter().filter(|finding| finding.denied);
        lines.extend(denied.map(|finding| format!("denied: {finding}")));
        lines.iter().map(|line| one_line(line)).collect()
    }

    /// How many findings the policy denies.
    #[must_use]
    pub fn denied(&self) -> usize {
        let broadcasts: usize = self.broadcasts.iter().map(|checked| checked.denied).sum();
        broadcasts + self.findings.iter().filter(|finding| finding.denied).count()
    }
}

/// A text as one line: a name in it may have line breaks, and must not begin lines of its own.
pub(crate) fn one_line(text: &str) -> String {
    text.replace(['\n', '\r'], "?")
}

/// Checks every broadcast of a model, with sizes for some of its symbols.
///
/// # Errors
///
/// As [`infer`].
pub fn check(
    model: &Model,
    sizes: &[(&str, usize)],
    policy: &CheckPolicy,
) -> Result<Check, String> {
    let mut inference = infer(model, sizes)?;
    let broadcasts = std::mem::take(&mut inference.broadcasts);
    let flow = Flow::new(model, &inference);
    let broadcasts = broadcasts.into_iter().map(|broadcast| {
        let reducer = flow.reducer(&broadcast);
        (checked(broadcast, policy, &flow, reducer.is_some()), reducer)
    });
    let broadcasts: Vec<(Checked, Option<usize>)> = broadcasts.collect();
    let mut findings = Vec::new();
    let mut add = |code: ModelCode, certainty: Certainty, at: &str, message: String| {
        let action = policy.model[code as usize][certainty as usize];
        if action > Action::Allow {
            let (at, denied) = (at.to_owned(), action == Action::Deny);
            findings.push(ModelFinding { code, certainty, at, message, denied });
        }
    };
    for difference in &inference.differences {
        let message = format!(
            "declared {}, inferred {}; it is {}",
            difference.declared, difference.inferred, difference.producer
        );
        add(ModelCode::Declared, Certainty::Confirmed, &difference.value, message);
    }
    for (checked, reducer) in &broadcasts {
        let node = &checked.broadcast.node;
        if let Some((certainty, message)) = flow.reduced_growth(checked, *reducer) {
            add(ModelCode::ReducedGrowth, certainty, node, message);
        }
        if let Some((certainty, message)) = coincidence(checked) {
            add(ModelCode::Coincidence, certainty, node, message);
        }
    }
    for (symbol, message) in reused(model, &inference) {
        add(ModelCode::ReusedName, Certainty::Confirmed, &symbol, message);
    }
    let broadcasts: Vec<Checked> = broadcasts.into_iter().map(|(checked, _)| checked).collect();
    for (node, message) in pinned(&broadcasts, &inference) {
        add(ModelCode::Pinned, Certainty::Possible, &node, message);
    }
    drop(flow);
    Ok(Check { inference, broadcasts, findings })
}

fn checked(broadcast: Broadcast, policy: &CheckPolicy, flow: &Flow<'_>, reduced: bool) -> Checked {
    let mut own = policy.broadcasts.clone();
    if let Some(bits) = broadcast.element.and_then(crate::ElementType::bits) {
        own.limits.element = bits.div_ceil(8);
    }
    let deliberate = flow.inserts_axis(&broadcast);
    let evidence = Evidence { reduced, deliberate, ..Evidence::default() };
    let (verdict, repeats) = match &broadcast.outcome {
        Outcome::Plan(plan) => (own.judge_with(plan, evidence), repeats(plan)),
        // Sizes that stand for the symbols show where operands repeat.
        Outcome::Symbolic(plan) => match plan.representative(&broadcast.names) {
            Some(standing) => {
                (own.judge_with_representative(plan, &standing, evidence), repeats(&standing))
            }
            None => Default::default(),
        },
        Outcome::Error(_) => Default::default(),
    };
    let Verdict { denied: mut findings, warned, .. } = verdict;
    let denied = findings.len();
    findings.extend(warned);
    Checked { broadcast, findings, denied, repeats }
}

/// Each operand that repeats, and along which axes of the result.
fn repeats(plan: &Plan) -> Vec<(usize, Vec<usize>)> {
    let axes = (0..plan.operand_count())
        .map(|operand| (operand, plan.sum_axes(operand).unwrap_or_default()));
    axes.filter(|(_, axes)| !axes.is_empty()).collect()
}

/// Where values of the model's graph go.
struct Flow<'a> {
    model: &'a Model,
    inference: &'a Inference,
    /// The nodes that read each value, and the one that makes it.
    readers: Vec<Vec<usize>>,
    makers: Vec<Option<usize>>,
}

impl<'a> Flow<'a> {
    fn new(model: &'a Model, inference: &'a Inference) -> Self {
        let mut readers = vec![Vec::new(); model.graph.values.len()];
        let mut makers = vec![None; model.graph.values.len()];
        for (index, node) in model.graph.nodes.iter().enumerate() {
            for input in node.inputs.iter().flatten() {
                readers[input.index()].push(index);
            }
            for output in node.outputs.iter().flatten() {
                makers[output.index()] = Some(index);
            }
        }
        Self { model, inference, readers, makers }
    }

    /// SC110: what reduces everything that two operands which both grow have made.
    fn reduced_growth(
        &self,
        checked: &Checked,
        reducer: Option<usize>,
    ) -> Option<(Certainty, String)> {
        let growing = [FindingCode::MutualGrowth, FindingCode::SquareOuter];
        let found = checked.findings.iter().find(|finding| growing.contains(&finding.code))?;
        let reducer = reducer?;
        let graph = &self.model.graph;
        let (name, op) = (graph.node_name(reducer), &graph.nodes[reducer].op);
        let names = &checked.broadcast.names;
        let names: Vec<String> =
            found.operands.iter().map(|operand| names.operand(*operand)).collect();
        let message = format!(
            "{} both grow ({}), and {name} ({op}) reduces the result to one number",
            names.join(" and "),
            found.code
        );
        Some((found.certainty, message))
    }

    /// Whether a node inserted axes of size 1 for this broadcast: what `x[:, None]` is exported as. A file
    /// does not say which expression a node was in, so this looks at the operands themselves.
    fn inserts_axis(&self, broadcast: &Broadcast) -> bool {
        let graph = &self.model.graph;
        let Some(node) = broadcast.at.and_then(|at| graph.nodes.get(at)) else { return false };
        let inserted = |id: &ValueId| {
            let maker = self.makers.get(id.index()).copied().flatten();
            maker.is_some_and(|maker| {
                let maker = &graph.nodes[maker];
                maker.domain.is_empty() && maker.op == "Unsqueeze"
            })
        };
        node.inputs.iter().flatten().any(inserted)
    }

    /// The node that reduces the whole result of a broadcast to one number.
    fn reducer(&self, broadcast: &Broadcast) -> Option<usize> {
        let start = broadcast.at?;
        let graph = &self.model.graph;
        let mut seen = vec![start];
        let mut next = 0;
        while let Some(&node) = seen.get(next) {
            next += 1;
            for output in graph.nodes[node].outputs.iter().flatten() {
                for &reader in &self.readers[output.index()] {
                    let op = graph.nodes[reader].op.as_str();
                    let row = crate::operators::find(&graph.nodes[reader].domain, op);
                    if row.is_some_and(|row| row.reduces) && self.is_one_number(reader) {
                        return Some(reader);
                    }
                    if row.is_some_and(|row| row.elementwise)
                        && !seen.contains(&reader)
                        && seen.len() < 64
                    {
                        seen.push(reader);
                    }
                }
            }
        }
        None
    }

    fn is_one_number(&self, node: usize) -> bool {
        let result = |id: &ValueId| {
            let dims = self.inference.facts.get(id.index()).and_then(|fact| fact.dims.dims());
            dims.is_some_and(|dims| dims.iter().all(|dim| *dim == Dim::Size(1)))
        };
        self.model.graph.nodes[node].outputs.iter().flatten().next().is_some_and(result)
    }
}

/// SC112: the one axis of a `PRelu` slope, where the channels have the same length and it does not
/// lie on them.
fn coincidence(checked: &Checked) -> Option<(Certainty, String)> {
    if checked.broadcast.op != "PRelu" || checked.is_error() {
        return None;
    }
    let shapes = checked.shapes();
    let (data, slope) = (shapes.first()?.dims()?, shapes.get(1)?.dims()?);
    let mut wide = slope.iter().enumerate().filter(|(_, dim)| **dim != Dim::Size(1));
    let (Some((axis, size)), None) = (wide.next(), wide.next()) else { return None };
    let axis = axis + data.len().checked_sub(slope.len())?;
    // Laid from an axis, it was meant to be there.
    if checked.broadcast.outcome.rule().kind().parameters().axis
        || axis == 1
        || data.get(1)? != size
    {
        return None;
    }
    let names: &Names = &checked.broadcast.names;
    let (x, s) = (names.operand(0), names.operand(1));
    let ones = vec!["1"; data.len().saturating_sub(2)].join(", ");
    let certainty = match size.size() {
        Some(_) => Certainty::Possible,
        None => Certainty::Confirmed,
    };
    let message = format!(
        "{s} {} lies on axis {axis} of {x} {}, and the channels on axis 1 have the same length; \
         for one slope a channel it is ({size}, {ones})",
        shapes[1], shapes[0]
    );
    Some((certainty, message))
}

/// SC113: names that several inputs' sizes have, and that would have to be two numbers.
fn reused(model: &Model, inference: &Inference) -> Vec<(String, String)> {
    let fixed = inference.constraints.iter().filter_map(|(constraint, nodes)| match constraint {
        Constraint::Equal(Term::Symbol(symbol), Term::Size(size)) => {
            Some((&**symbol, *size, nodes.first().map_or("", String::as_str)))
        }
        _ => None,
    });
    // Constraints are in order: those of one symbol stand together.
    let fixed: Vec<(&str, usize, &str)> = fixed.collect();
    let times = |symbol: &str| model.graph.input_symbols().filter(|own| *own == symbol).count();
    let by_symbol = fixed.chunk_by(|(before, ..), (after, ..)| before == after);
    let found = by_symbol.filter(|own| own.len() > 1 && times(own[0].0) > 1);
    let told = found.map(|own| {
        let symbol = own[0].0;
        let sizes: Vec<String> =
            own.iter().map(|(_, size, node)| format!("{size} ({node})")).collect();
        let message = format!(
            "it would have to be {}; where the inputs reuse the name, --trust-names=no takes them apart",
            sizes.join(" and ")
        );
        (symbol.to_owned(), message)
    });
    told.collect()
}

/// SC114: constants that fix a size of the inputs by a broadcast, where nothing else of the model does: an error in
/// the constant shows nowhere else. Each is told once.
fn pinned(broadcasts: &[Checked], inference: &Inference) -> Vec<(String, String)> {
    let mut told: Vec<(String, String)> = Vec::new();
    let mut seen = BTreeSet::new();
    let is_named = |symbol: &str| inference.symbols.iter().any(|own| own == symbol);
    for checked in broadcasts {
        let Outcome::Symbolic(plan) = &checked.broadcast.outcome else { continue };
        for constraint in plan.constraints() {
            let Constraint::OneOr(Term::Symbol(symbol), Term::Size(size)) = constraint else {
                continue;
            };
            let by_design = Constraint::Equal(Term::Symbol(symbol.clone()), Term::Size(*size));
            let known = inference.constraints.iter().any(|(own, _)| *own == by_design);
            let shapes = checked.shapes();
            let fixes = |operand: &usize| {
                let from = checked.broadcast.producers.get(*operand).map_or("", String::as_str);
                let dims = shapes.get(*operand).and_then(Dims::dims).unwrap_or_default();
                from == "an initializer" && dims.contains(&Dim::Size(*size))
            };
            let Some(operand) = (0..shapes.len()).find(fixes) else { continue };
            if known || !is_named(symbol) || !seen.insert(constraint.clone()) {
                continue;
            }
            let name = checked.broadcast.names.operand(operand);
            let message = format!(
                "{name} {}, an initializer, allows {symbol} to be 1 or {size} only",
                shapes[operand]
            );
            told.push((checked.broadcast.node.clone(), message));
        }
    }
    told
}
