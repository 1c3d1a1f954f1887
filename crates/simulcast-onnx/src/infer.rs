//! Shape inference: what each value is, and every broadcast on the way.
//!
//! Nodes are followed in order. Each operator that broadcasts is resolved by `simulcast-core` over
//! sizes that may be symbols, so that errors, findings and constraints ("N is 1 or 3") are its own.
//! Small integer tensors are followed by value, because exported models compute shapes from shapes.
//! Where there is no rule for an operator, what the file declares of its results stands.

mod node;

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use simulcast_core::{Constraint, Dim, Dims, Names, Outcome, Symbol};

use crate::expr::SizeExpr;
use crate::model::{AttributeValue, Declared, DeclaredDim, Graph, Model, Node, Producer, ValueId};
use crate::{ElementType, Tensor, operators};
pub(crate) use node::{InferNode, Results, gathered, strides};

/// Nodes that are looked at in all, functions at each of their calls: a small file can ask for more
/// than any machine can do.
const BUDGET: usize = 250_000;
/// How deep functions may call functions and graphs hold graphs.
const DEPTH: usize = 64;
pub(crate) use crate::tensor::FOLDED;

/// Up to here every whole number is a float of 32 bits.
const EXACT: f32 = 16_777_216.0;

/// What is known of a value.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Fact {
    /// The type of its elements.
    pub element: Option<ElementType>,
    /// Its sizes.
    pub dims: Dims,
    /// Its elements, row after row, where it is a small tensor of integers.
    pub(crate) values: Option<Arc<[SizeExpr]>>,
    /// Its elements, where it is a small tensor of floats that are known.
    pub(crate) floats: Option<Arc<[f32]>>,
    /// Whether a size of it, or of what it was inferred from, is only what the file declares of a
    /// result: such sizes may be stale.
    pub(crate) declared: bool,
}

impl Fact {
    pub(crate) const UNKNOWN: Self =
        Self { element: None, dims: Dims::Unranked, values: None, floats: None, declared: false };

    pub(crate) fn new(element: Option<ElementType>, dims: Dims) -> Self {
        Self { element, dims, values: None, floats: None, declared: false }
    }

    pub(crate) fn of_tensor(tensor: &Tensor, with_values: bool) -> Self {
        let values = if with_values { tensor.ints() } else { None };
        let floats = if with_values { tensor.floats() } else { None };
        Self {
            element: Some(tensor.element()),
            dims: Dims::from(tensor.shape()),
            values: values.map(|values| values.into_iter().map(SizeExpr::from).collect()),
            floats: floats.map(Into::into),
            declared: false,
        }
    }

    /// The same with known floats, where there are as many as the tensor has elements.
    pub(crate) fn with_floats(mut self, floats: Option<Arc<[f32]>>) -> Self {
        let count = self.dims.sizes().and_then(|sizes| simulcast_core::elements(&sizes).ok());
        self.floats = floats.filter(|floats| count == Some(floats.len()));
        if let (Some(floats), None) = (&self.floats, &self.values) {
            let exact = |float: &f32| float.fract() == 0.0 && float.abs() <= EXACT;
            if floats.iter().all(exact) {
                self.values =
                    Some(floats.iter().map(|float| SizeExpr::from(*float as i64)).collect());
            }
        }
        self
    }

    /// The elements as floats, where they are known numbers.
    pub(crate) fn known_floats(&self) -> Option<Arc<[f32]>> {
        let of_ints = || Some(self.ints()?.iter().map(|value| *value as f32).collect());
        self.floats.clone().or_else(of_ints)
    }

    /// The values, where all of them are known numbers.
    #[must_use]
    pub fn ints(&self) -> Option<Vec<i64>> {
        self.values.as_ref()?.iter().map(SizeExpr::constant).collect()
    }
}

/// A broadcast of a model.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Broadcast {
    /// The node, with the names of what is around it: `loop/body/add`.
    pub node: String,
    /// Its operator.
    pub op: String,
    /// The operands' names.
    pub names: Names,
    /// Where each operand comes from, in words.
    pub producers: Vec<String>,
    /// The type of the result's elements.
    pub element: Option<ElementType>,
    /// The plan, or why there is none.
    pub outcome: Outcome,
    /// The node in the model's graph; `None` inside a function or a graph of a node.
    pub(crate) at: Option<usize>,
}

impl Broadcast {
    /// What is wrong, in a line.
    pub(crate) fn error_text(&self) -> Option<String> {
        let error = self.outcome.error()?;
        Some(format!("{} ({}): {error}", self.node, self.op))
    }
}

/// A node that cannot work, for another reason than a broadcast.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NodeProblem {
    /// The node.
    pub node: String,
    /// Its operator.
    pub op: String,
    /// What is wrong.
    pub message: String,
    /// The node's inputs.
    pub operands: Vec<ProblemOperand>,
}

/// An input of a node that cannot work.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProblemOperand {
    /// Its name.
    pub name: String,
    /// Where it comes from, in words.
    pub producer: String,
    /// The type of its elements.
    pub element: Option<ElementType>,
    /// Its sizes.
    pub dims: Dims,
}

/// `w float32 (4, 5)`
impl std::fmt::Display for ProblemOperand {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.name)?;
        self.element.map_or(Ok(()), |element| write!(f, " {element}"))?;
        write!(f, " {}", self.dims)
    }
}

/// At most this many inputs are named in a line.
const OPERANDS: usize = 4;

/// `join (Concat): axis 1: 8 and 9 differ; of a float32 (2, 8), b float32 (2, 9)`
impl std::fmt::Display for NodeProblem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({}): {}", self.node, self.op, self.message)?;
        for (position, operand) in self.operands.iter().take(OPERANDS).enumerate() {
            write!(f, "{}{operand}", if position == 0 { "; of " } else { ", " })?;
        }
        match self.operands.len().checked_sub(OPERANDS) {
            Some(more @ 1..) => write!(f, ", {more} more"),
            _ => Ok(()),
        }
    }
}

/// A value whose declared shape or type is not the inferred one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Difference {
    /// The value.
    pub value: String,
    /// Where it comes from, in words.
    pub producer: String,
    /// What the file declares.
    pub declared: String,
    /// What was inferred.
    pub inferred: String,
}

/// What was inferred of a model.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Inference {
    /// What is known of each value of the model's graph.
    pub facts: Vec<Fact>,
    /// Every broadcast, in the order of the nodes.
    pub broadcasts: Vec<Broadcast>,
    /// Every node that cannot work for another reason.
    pub problems: Vec<NodeProblem>,
    /// What must hold for the symbols, and for which nodes.
    pub constraints: Vec<(Constraint, Vec<String>)>,
    /// Values whose declared shape or type is not the inferred one.
    pub differences: Vec<Difference>,
    /// What is wrong in branches that are not taken, a line for each node: `If` guards what cannot work
    /// with some sizes.
    pub untaken: Vec<String>,
    /// Operators that there is no rule for, and how many nodes have them.
    pub unknown: BTreeMap<String, usize>,
    /// The symbols of the inputs' sizes.
    pub symbols: Vec<String>,
    /// What is known of the values of graphs inside nodes, by the address of the graph.
    pub(crate) nested: HashMap<usize, Vec<Fact>>,
}

impl Inference {
    /// What is wrong with the model, a line for each node that cannot work.
    #[must_use]
    pub fn errors(&self) -> Vec<String> {
        let broadcasts = self.broadcasts.iter().filter_map(Broadcast::error_text);
        let problems = self.problems.iter().map(ToString::to_string);
        broadcasts.chain(problems).map(|line| crate::check::one_line(&line)).collect()
    }
}

/// Infers what every value of a model is, with sizes for some of its symbols.
///
/// # Errors
///
/// A text where a size is set for a symbol that no input has, or the model's functions ask for too
/// many nodes.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let path = concat!(env!("CARGO_MANIFEST_DIR"), "/models/loss.onnx");
/// let model = simulcast_onnx::Model::load(path)?;
/// let inference = simulcast_onnx::infer(&model, &[("batch", 32)])?;
/// let output = model.graph.outputs[0];
/// assert_eq!(inference.facts[output.index()].dims.to_string(), "()");
/// # Ok(())
/// # }
/// ```
pub fn infer(model: &Model, sizes: &[(&str, usize)]) -> Result<Inference, String> {
    let mut context = Context::new(model, sizes);
    let scope = Scope {
        graph: &model.graph,
        opsets: &model.opsets,
        path: String::new(),
        arguments: HashMap::new(),
        depth: 0,
        top: true,
    };
    let inputs = vec![None; model.graph.inputs.len()];
    let facts = context.graph(&scope, inputs, &[])?;
    let known = |name: &str| context.symbols.iter().any(|symbol| symbol == name);
    if let Some((name, _)) = sizes.iter().find(|(name, _)| !known(name)) {
        let all = match context.symbols.as_slice() {
            [] => "it has none".to_owned(),
            all => format!("it has {}", all.join(", ")),
        };
        return Err(format!("no input of the model has a symbol {name:?}; {all}"));
    }
    Ok(Inference {
        facts,
        broadcasts: context.broadcasts,
        problems: context.problems,
        constraints: context.constraints.into_iter().collect(),
        differences: context.differences,
        untaken: context.untaken,
        unknown: context.unknown,
        symbols: context.symbols,
        nested: context.nested,
    })
}

/// What is known of a node's results.
pub(crate) struct Followed {
    facts: Vec<Fact>,
    /// Whether it cannot work.
    failed: bool,
}

impl From<Vec<Fact>> for Followed {
    fn from(facts: Vec<Fact>) -> Self {
        Self { facts, failed: false }
    }
}

/// What is inferred of a value beside what is declared of it.
struct Merged {
    fact: Fact,
    /// Whether the two contradict each other.
    differs: bool,
}

/// A graph that is followed, and what its names mean.
#[derive(Clone)]
pub(crate) struct Scope<'m> {
    pub(crate) graph: &'m Graph,
    pub(crate) opsets: &'m BTreeMap<String, i64>,
    /// The nodes around it, each with a slash.
    pub(crate) path: String,
    /// In a function: the attributes of its call.
    pub(crate) arguments: HashMap<&'m str, &'m AttributeValue>,
    pub(crate) depth: usize,
    /// Whether it is the model's own graph.
    pub(crate) top: bool,
}

pub(crate) struct Context<'m> {
    pub(crate) model: &'m Model,
    functions: HashMap<(&'m str, &'m str, &'m str), usize>,
    sizes: HashMap<&'m str, usize>,
    symbols: Vec<String>,
    /// Names of sizes that are expressions or joins, so that arithmetic sees through them.
    pub(crate) derived: HashMap<String, SizeExpr>,
    joins: HashMap<String, Dim>,
    /// Names that were made here, for sizes of which nothing is known.
    pub(crate) fresh: HashSet<String>,
    /// The names of the inputs' sizes.
    named: HashSet<&'m str>,
    /// Names that no size made here may have: those, and the names of the inputs' sizes.
    taken: HashSet<String>,
    /// The names that were made here, in order.
    made: Vec<String>,
    /// What is known of the values of graphs inside nodes, by the address of the graph.
    pub(crate) nested: HashMap<usize, Vec<Fact>>,
    pub(crate) broadcasts: Vec<Broadcast>,
    pub(crate) problems: Vec<NodeProblem>,
    constraints: BTreeMap<Constraint, Vec<String>>,
    /// The constraint that each node was noted for, in order, so that it can be taken back.
    required: Vec<Constraint>,
    differences: Vec<Difference>,
    untaken: Vec<String>,
    unknown: BTreeMap<String, usize>,
    /// The operators that were counted, in order, so that they can be taken back.
    counted: Vec<String>,
    budget: usize,
    /// Why inference cannot go on at all.
    pub(crate) fatal: Option<String>,
}

/// Where inference stood: lengths, so that a mark takes no time whatever the model has.
pub(crate) struct Mark {
    broadcasts: usize,
    problems: usize,
    differences: usize,
    untaken: usize,
    made: usize,
    required: usize,
    counted: usize,
}

impl<'m> Context<'m> {
    fn new(model: &'m Model, sizes: &[(&'m str, usize)]) -> Self {
        let name = |(index, f): (usize, &'m crate::model::Function)| {
            ((f.domain.as_str(), f.name.as_str(), f.overload.as_str()), index)
        };
        Self {
            model,
            functions: model.functions.iter().enumerate().map(name).collect(),
            sizes: sizes.iter().copied().collect(),
            symbols: Vec::new(),
            derived: HashMap::new(),
            joins: HashMap::new(),
            fresh: HashSet::new(),
            named: model.graph.input_symbols().collect(),
            taken: model.graph.input_symbols().map(str::to_owned).collect(),
            made: Vec::new(),
            nested: HashMap::new(),
            broadcasts: Vec::new(),
            problems: Vec::new(),
            constraints: BTreeMap::new(),
            required: Vec::new(),
            differences: Vec::new(),
            untaken: Vec::new(),
            unknown: BTreeMap::new(),
            counted: Vec::new(),
            budget: BUDGET,
            fatal: None,
        }
    }

    /// Follows a graph. `inputs` are facts about its inputs, where there are any besides what is
    /// declared; `captured` those of the values that it reads from the graph around it.
    pub(crate) fn graph(
        &mut self,
        scope: &Scope<'m>,
        inputs: Vec<Option<Fact>>,
        captured: &[Fact],
    ) -> Result<Vec<Fact>, String> {
        if scope.depth > DEPTH {
            return Err(format!("functions call functions more than {DEPTH} deep"));
        }
        let graph = scope.graph;
        let mut facts = vec![Fact::UNKNOWN; graph.values.len()];
        for ((here, _), fact) in graph.captures.iter().zip(captured) {
            facts[here.index()] = fact.clone();
        }
        for (id, value) in graph.values.iter().enumerate() {
            if let Some(tensor) = &value.tensor {
                // An input's default is its value only where no one can give another.
                let fixed = value.producer != Producer::Input || self.model.ir_version < 4;
                facts[id] = Fact::of_tensor(tensor, fixed);
            }
        }
        for (input, fact) in graph.inputs.iter().zip(inputs) {
            let value = graph.value(*input);
            if value.tensor.is_some() {
                continue;
            }
            let fact = fact.unwrap_or(Fact::UNKNOWN);
            let Merged { mut fact, .. } = self.merge(fact, value.declared.as_ref(), &value.name);
            // What is declared of an input is what is asked of those who give it.
            fact.declared = false;
            if scope.top {
                self.note_symbols(value);
            }
            facts[input.index()] = fact;
        }
        if scope.top {
            self.symbols.sort();
            self.symbols.dedup();
        }
        for &index in &graph.order {
            self.budget = self.budget.checked_sub(1).ok_or_else(|| {
                format!("its functions and graphs amount to more than {BUDGET} nodes")
            })?;
            let node = &graph.nodes[index];
            let results = self.node(scope, index, node, &facts)?;
            let captured = node.graphs().flat_map(|graph| graph.captures.iter().map(|(_, id)| id));
            let mut read = node.inputs.iter().flatten().chain(captured);
            let declared = read.any(|id| facts[id.index()].declared);
            let Followed { facts: results, failed } = results;
            let mut results = results.into_iter();
            for output in &node.outputs {
                let mut fact = results.next().unwrap_or(Fact::UNKNOWN);
                let Some(output) = output else { continue };
                fact.declared |= declared;
                // Of a node that cannot work nothing is known, whatever the file says.
                if !failed {
                    fact = self.settle(scope, *output, fact);
                }
                facts[output.index()] = fact;
            }
        }
        Ok(facts)
    }

    /// The symbols of an input's sizes, those that were set included.
    fn note_symbols(&mut self, value: &crate::model::Value) {
        let Some(Declared::Tensor { dims: Some(dims), .. }) = &value.declared else { return };
        for (axis, dim) in dims.iter().enumerate() {
            match dim {
                DeclaredDim::Symbol(name) => self.symbols.push(name.clone()),
                DeclaredDim::Unknown => self.symbols.push(format!("{}.{axis}", value.name)),
                DeclaredDim::Size(_) => {}
            }
        }
    }

    /// What is known of a node's results.
    pub(crate) fn node(
        &mut self,
        scope: &Scope<'m>,
        index: usize,
        node: &'m Node,
        facts: &[Fact],
    ) -> Result<Followed, String> {
        let key = (node.domain.as_str(), node.op.as_str(), node.overload.as_str());
        let inputs: Vec<Option<&Fact>> =
            node.inputs.iter().map(|id| id.map(|id| &facts[id.index()])).collect();
        if let Some(&function) = self.functions.get(&key) {
            return self.call(scope, index, function, &inputs).map(Followed::from);
        }
        let row = operators::find(&node.domain, &node.op);
        let Some((row, rule)) = row.and_then(|row| Some((row, row.infer?))) else {
            self.note_unknown(node);
            let facts = row.map_or_else(Vec::new, |row| {
                // The types at least are known.
                let opset = scope.opsets.get(&node.domain).copied().unwrap_or(1);
                let own =
                    InferNode { context: self, scope, node, row, index, opset, inputs, facts };
                let outputs = 0..node.outputs.len();
                outputs.map(|n| Fact::new(own.output_element(n), Dims::Unranked)).collect()
            });
            return Ok(facts.into());
        };
        let opset = scope.opsets.get(&node.domain).copied().unwrap_or(1);
        let mut own = InferNode { context: self, scope, node, row, index, opset, inputs, facts };
        let before = own.context.broadcasts.len();
        // Wrong types leave the shapes what they are.
        for wrong in [own.types(), own.form()] {
            if let Err(message) = wrong {
                own.problem(message);
            }
        }
        let results = rule(&mut own);
        let results = results.map_err(|message| own.problem(message));
        if let Some(message) = self.fatal.take() {
            return Err(message);
        }
        let own = self.broadcasts.get(before..).unwrap_or_default();
        let failed = own.iter().any(|broadcast| broadcast.outcome.error().is_some());
        Ok(match results {
            Ok(facts) => Followed { facts, failed },
            Err(()) => Followed { facts: Vec::new(), failed: true },
        })
    }

    /// Counts a node without a rule: what is declared of its results stands.
    pub(crate) fn note_unknown(&mut self, node: &Node) {
        let operator = node.operator();
        *self.unknown.entry(operator.clone()).or_default() += 1;
        self.counted.push(operator);
    }

    /// Notes what must hold for a node.
    pub(crate) fn require(&mut self, constraint: Constraint, node: String) {
        let nodes = self.constraints.entry(constraint.clone()).or_default();
        if nodes.last() != Some(&node) {
            nodes.push(node);
            self.required.push(constraint);
        }
    }

    /// What a value is, from what was inferred of it and what is declared; a contradiction is noted.
    pub(crate) fn settle(&mut self, scope: &Scope<'m>, id: ValueId, inferred: Fact) -> Fact {
        let value = scope.graph.value(id);
        let own = inferred.element;
        let Merged { fact, differs } = self.merge(inferred, value.declared.as_ref(), &value.name);
        let Some(declared) = &value.declared else { return fact };
        let typed = match declared {
            Declared::Tensor { element: Some(element), .. } => own.filter(|own| own != element),
            _ => None,
        };
        // What comes from one declaration does not prove another one wrong.
        let differs = differs && !fact.declared;
        if differs || typed.is_some() {
            let (mut declared, mut inferred) = (declared.to_string(), fact.dims.to_string());
            match typed {
                Some(element) => inferred = format!("{element} {inferred}"),
                // Shapes alone, where only they differ.
                None => {
                    let own = declared.find('(').unwrap_or(0);
                    declared.drain(..own);
                }
            }
            self.differences.push(Difference {
                value: format!("{}{}", scope.path, value.name),
                producer: scope.graph.producer_text(id),
                declared,
                inferred,
            });
        }
        fact
    }

    /// What is inferred, and where that says nothing what is declared; whether the two contradict
    /// each other. Sizes that nothing is known of get a name from the value and the axis.
    fn merge(&mut self, mut fact: Fact, declared: Option<&Declared>, name: &str) -> Merged {
        let (element, dims) = match declared {
            Some(Declared::Tensor { element, dims }) => (*element, dims.as_deref()),
            _ => (None, None),
        };
        fact.element = fact.element.or(element);
        let mut differs = false;
        let inferred = std::mem::replace(&mut fact.dims, Dims::Unranked);
        let merged: Option<Vec<Dim>> = match (inferred, dims) {
            (Dims::Unranked, None) => None,
            (Dims::Ranked(own), None) => Some(own),
            (Dims::Unranked, Some(dims)) => {
                fact.declared = true;
                Some(dims.iter().map(|dim| self.declared_dim(dim)).collect())
            }
            (Dims::Ranked(own), Some(dims)) if own.len() != dims.len() => {
                differs = true;
                Some(own)
            }
            (Dims::Ranked(own), Some(dims)) => {
                let each = own.into_iter().zip(dims).map(|(own, declared)| {
                    let declared = self.declared_dim(declared);
                    match (&own, &declared) {
                        (Dim::Range(_), Dim::Range(_)) => own,
                        (Dim::Range(_), _) => {
                            fact.declared = true;
                            declared
                        }
                        (Dim::Size(a), Dim::Size(b)) => {
                            differs |= a != b;
                            own
                        }
                        (_, Dim::Size(_)) => {
                            differs |= !self.is_open(&own);
                            own
                        }
                        _ => own,
                    }
                });
                Some(each.collect())
            }
        };
        if let Some(mut dims) = merged {
            for (axis, dim) in dims.iter_mut().enumerate() {
                if matches!(dim, Dim::Range(_)) {
                    *dim = self.fresh(&format!("{name}.{axis}"));
                }
            }
            fact.dims = dims.into();
        }
        Merged { fact, differs }
    }

    fn declared_dim(&mut self, dim: &DeclaredDim) -> Dim {
        match dim {
            DeclaredDim::Size(size) => Dim::Size(*size),
            DeclaredDim::Unknown => Dim::UNKNOWN,
            DeclaredDim::Symbol(name) => match self.sizes.get(name.as_str()) {
                Some(size) => Dim::Size(*size),
                None => {
                    self.written(name).unwrap_or_else(|| Dim::Symbol(Symbol::new(name.as_str())))
                }
            },
        }
    }

    /// A size whose name is an expression over the names of the inputs' sizes.
    fn written(&mut self, name: &str) -> Option<Dim> {
        let symbol = |name: &str| match self.sizes.get(name) {
            Some(size) => i64::try_from(*size).ok().map(SizeExpr::from),
            None => self.named.contains(name).then(|| SizeExpr::symbol(name)),
        };
        let expr = SizeExpr::parse(name, &symbol)?;
        self.dim(&expr)
    }

    /// A symbol for a size of which nothing is known; the name is changed where it is taken.
    pub(crate) fn fresh(&mut self, name: &str) -> Dim {
        let mut own = name.to_owned();
        let mut number = 1;
        while !self.taken.insert(own.clone()) {
            number += 1;
            own = format!("{name}#{number}");
        }
        self.fresh.insert(own.clone());
        self.made.push(own.clone());
        match self.sizes.get(own.as_str()) {
            Some(size) => Dim::Size(*size),
            None => Dim::Symbol(Symbol::new(own)),
        }
    }

    /// Where inference stands, to come back to.
    pub(crate) fn mark(&self) -> Mark {
        Mark {
            broadcasts: self.broadcasts.len(),
            problems: self.problems.len(),
            differences: self.differences.len(),
            untaken: self.untaken.len(),
            made: self.made.len(),
            required: self.required.len(),
            counted: self.counted.len(),
        }
    }

    /// Whether something was wrong between two marks.
    pub(crate) fn fails(&self, from: &Mark, to: Option<&Mark>) -> bool {
        let (broadcasts, problems) = self.between(from, to);
        let broadcasts = self.broadcasts.get(broadcasts).unwrap_or_default();
        !problems.is_empty() || broadcasts.iter().any(|own| own.outcome.error().is_some())
    }

    /// Takes what was wrong between two marks as the reason why a branch is not taken.
    pub(crate) fn forgive(&mut self, from: &Mark, to: Option<&Mark>) {
        let (broadcasts, problems) = self.between(from, to);
        self.untaken.extend(self.problems.drain(problems).map(|problem| problem.to_string()));
        let own: Vec<Broadcast> = self.broadcasts.drain(broadcasts.clone()).collect();
        let (failed, kept): (Vec<_>, Vec<_>) =
            own.into_iter().partition(|own| own.outcome.error().is_some());
        self.untaken.extend(failed.iter().filter_map(Broadcast::error_text));
        self.broadcasts.splice(broadcasts.start..broadcasts.start, kept);
    }

    fn between(&self, from: &Mark, to: Option<&Mark>) -> (Range<usize>, Range<usize>) {
        let to_broadcasts = to.map_or(self.broadcasts.len(), |to| to.broadcasts);
        let to_problems = to.map_or(self.problems.len(), |to| to.problems);
        (from.broadcasts..to_broadcasts, from.problems..to_problems)
    }

    /// Forgets what was noted since, so that a graph can be followed again. What it cost stays spent.
    pub(crate) fn rewind(&mut self, mark: &Mark) {
        self.broadcasts.truncate(mark.broadcasts);
        self.problems.truncate(mark.problems);
        self.differences.truncate(mark.differences);
        self.untaken.truncate(mark.untaken);
        for name in self.made.drain(mark.made..) {
            self.taken.remove(&name);
            self.fresh.remove(&name);
        }
        for constraint in self.required.drain(mark.required..) {
            if let Entry::Occupied(mut nodes) = self.constraints.entry(constraint) {
                nodes.get_mut().pop();
                if nodes.get().is_empty() {
                    nodes.remove();
                }
            }
        }
        for operator in self.counted.drain(mark.counted..) {
            if let Entry::Occupied(mut count) = self.unknown.entry(operator) {
                match *count.get() {
                    0 | 1 => _ = count.remove(),
                    more => _ = count.insert(more - 1),
                }
            }
        }
    }

    /// Whether a size hangs on one that nothing is known of.
    fn is_open(&self, dim: &Dim) -> bool {
        match dim {
            Dim::Size(_) => false,
            Dim::Range(_) => true,
            Dim::Symbol(symbol) => match self.derived.get(&*symbol.name) {
                Some(expr) => expr.symbols().any(|name| self.fresh.contains(name)),
                None => self.fresh.contains(&*symbol.name),
            },
            Dim::Join(symbols) => symbols.iter().any(|symbol| self.fresh.contains(&*symbol.name)),
        }
    }

    /// A size as an expression.
    pub(crate) fn expr(&mut self, dim: &Dim) -> Option<SizeExpr> {
        match dim {
            Dim::Size(size) => Some(SizeExpr::from(i64::try_from(*size).ok()?)),
            Dim::Range(_) => None,
            Dim::Symbol(symbol) => {
                let known = self.derived.get(&*symbol.name).cloned();
                Some(known.unwrap_or_else(|| SizeExpr::symbol(Arc::clone(&symbol.name))))
            }
            Dim::Join(_) => {
                let name = dim.to_string();
                self.joins.entry(name.clone()).or_insert_with(|| dim.clone());
                Some(SizeExpr::symbol(name))
            }
        }
    }

    /// An expression as a size; `None` where it is negative.
    pub(crate) fn dim(&mut self, expr: &SizeExpr) -> Option<Dim> {
        if let Some(size) = expr.constant() {
            return usize::try_from(size).ok().map(Dim::Size);
        }
        if let Some(name) = expr.single() {
            let join = self.joins.get(&**name).cloned();
            return Some(join.unwrap_or_else(|| Dim::Symbol(Symbol::new(Arc::clone(name)))));
        }
        let Some(name) = expr.text() else { return Some(Dim::UNKNOWN) };
        self.derived.insert(name.clone(), expr.clone());
        Some(Dim::Symbol(Symbol::new(name)))
    }
}
