//! From a model to a list of steps: functions called, constants read, branches in place.
//!
//! Every value of every graph becomes a slot of one list, so that a branch or a function reads what
//! is around it without ado. What there is no code for is collected, and named before anything runs.

use std::collections::HashMap;
use std::sync::Arc;

use simulcast::AnyArray;
use simulcast_core::Names;

use super::code::{Code, casts_text};
use super::error::{RunError, UnsupportedNode};
use super::fuse::{Block, fuse};
use super::node::RunNode;
use super::{codes, lay, text, value};
use crate::model::{Attribute, AttributeValue, Declared, Function, Graph, Node, Producer, ValueId};
use crate::operators::{self, Row};
use crate::{ElementType, Model, Tensor};

/// A place for a value.
pub(crate) type Slot = usize;

/// Nodes in all, functions at each of their calls: a small file can ask for more than any machine
/// can do.
const BUDGET: usize = 250_000;
/// How deep functions may call functions and graphs hold graphs.
const DEPTH: usize = 64;

/// A step before elementwise ones are brought together.
#[derive(Debug)]
pub(crate) enum Raw {
    Node {
        call: RunNode,
        code: Code,
        inputs: Vec<Option<Slot>>,
        outputs: Vec<Option<Slot>>,
    },
    If {
        call: RunNode,
        condition: Slot,
        branches: [(Vec<Raw>, Vec<Slot>); 2],
        outputs: Vec<Option<Slot>>,
    },
}

/// An input of the model.
#[derive(Clone, Debug)]
pub(crate) struct Input {
    pub(crate) name: String,
    pub(crate) declared: Option<Declared>,
    pub(crate) slot: Slot,
    /// Whether only chains read it, which take truths of any bytes.
    pub(crate) chained: bool,
}

/// An output of the model.
#[derive(Clone, Debug)]
pub(crate) struct Output {
    pub(crate) name: String,
    pub(crate) slot: Slot,
    /// Whether nobody but the caller reads it, so that it may be made in the caller's memory.
    pub(crate) alone: bool,
    /// Whether a later output is the same value.
    pub(crate) again: bool,
    /// Its type, where it is held as codes.
    pub(crate) code: Option<ElementType>,
}

/// What a model becomes.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) inputs: Vec<Input>,
    /// The numbers of the inputs, by name.
    pub(crate) named: HashMap<String, usize>,
    pub(crate) outputs: Vec<Output>,
    /// What the model carries, and the defaults of inputs.
    pub(crate) constants: Vec<(Slot, Arc<AnyArray>)>,
    pub(crate) block: Block,
    pub(crate) slots: usize,
}

/// A graph that is followed, and what its names mean.
struct Scope<'m> {
    graph: &'m Graph,
    opsets: &'m std::collections::BTreeMap<String, i64>,
    path: String,
    arguments: HashMap<&'m str, &'m AttributeValue>,
    depth: usize,
    slots: Vec<Option<Slot>>,
}

struct Planner<'m> {
    functions: HashMap<(&'m str, &'m str, &'m str), &'m Function>,
    constants: Vec<(Slot, Arc<AnyArray>)>,
    /// Values that are strings or codes, as far as their types are known here.
    kinds: HashMap<Slot, ElementType>,
    names: Vec<String>,
    unsupported: Vec<UnsupportedNode>,
    budget: usize,
}

pub(crate) fn plan(model: &Model) -> Result<Plan, RunError> {
    let functions = model.functions.iter();
    let named = |f: &'_ &Function| !f.name.is_empty();
    let mut planner = Planner {
        functions: functions
            .filter(named)
            .map(|f| ((f.domain.as_str(), f.name.as_str(), f.overload.as_str()), f))
            .collect(),
        constants: Vec::new(),
        kinds: HashMap::new(),
        names: Vec::new(),
        unsupported: Vec::new(),
        budget: BUDGET,
    };
    let graph = &model.graph;
    let mut scope = Scope {
        graph,
        opsets: &model.opsets,
        path: String::new(),
        arguments: HashMap::new(),
        depth: 0,
        slots: vec![None; graph.values.len()],
    };
    let mut inputs = Vec::new();
    for &id in &graph.inputs {
        let own = graph.value(id);
        let slot = planner.slot(&own.name);
        scope.slots[id.index()] = Some(slot);
        if let Some(tensor) = &own.tensor {
            let default = value::of_tensor(tensor, &own.name)?;
            planner.constant(slot, default, tensor.element());
            // Before IR 4 initializers had to be inputs too.
            if model.ir_version < 4 {
                continue;
            }
        }
        let element = match &own.declared {
            Some(Declared::Tensor { element, .. }) => *element,
            Some(Declared::Other) => {
                return Err(RunError::Value { name: own.name.clone(), why: "no tensor".into() });
            }
            None => None,
        };
        planner.note(slot, element);
        let (name, declared) = (own.name.clone(), own.declared.clone());
        inputs.push(Input { name, declared, slot, chained: false });
    }
    let steps = planner.graph(&mut scope)?;
    if !planner.unsupported.is_empty() {
        return Err(RunError::Unsupported(planner.unsupported));
    }
    let mut results: Vec<Slot> = Vec::new();
    for &id in &graph.outputs {
        let slot = planner.read(&mut scope, id)?;
        results.push(slot.ok_or_else(|| RunError::Missing(graph.name_of(id).to_owned()))?);
    }
    let block = fuse(steps, &results, &planner.names, false);
    let (reads, others) = (block.reads(true), block.reads(false));
    // How many outputs each value is, and of how many of them it still is to come.
    let mut count: HashMap<Slot, usize> = HashMap::new();
    results.iter().for_each(|slot| *count.entry(*slot).or_default() += 1);
    let mut left = count.clone();
    for input in &mut inputs {
        input.chained = !others.contains(&input.slot) && !count.contains_key(&input.slot);
    }
    let output = |(&id, &slot): (&ValueId, &Slot)| {
        let alone = count.get(&slot) == Some(&1) && !reads.contains(&slot);
        let again = left.get_mut(&slot).is_some_and(|left| {
            *left -= 1;
            *left > 0
        });
        let name = graph.name_of(id).to_owned();
        Output { name, slot, alone, again, code: planner.code(slot) }
    };
    let outputs = graph.outputs.iter().zip(&results).map(output).collect();
    let named = inputs.iter().enumerate().map(|(at, input)| (input.name.clone(), at)).collect();
    let slots = planner.names.len();
    Ok(Plan { inputs, named, outputs, constants: planner.constants, block, slots })
}

impl<'m> Planner<'m> {
    fn slot(&mut self, name: &str) -> Slot {
        self.names.push(name.to_owned());
        self.names.len() - 1
    }

    fn constant(&mut self, slot: Slot, array: AnyArray, element: ElementType) {
        self.note(slot, Some(element));
        self.constants.push((slot, Arc::new(array)));
    }

    /// Notes what a value is, where that decides the code of who reads it.
    fn note(&mut self, slot: Slot, element: Option<ElementType>) {
        if let Some(element) = element.filter(|e| *e == ElementType::String || codes::is_code(*e)) {
            self.kinds.insert(slot, element);
        }
    }

    /// The slot of a value; an initializer gets one when it is first read.
    fn read(&mut self, scope: &mut Scope<'m>, id: ValueId) -> Result<Option<Slot>, RunError> {
        let known = scope.slots[id.index()];
        let own = scope.graph.value(id);
        match (known, &own.tensor) {
            (None, Some(tensor)) if own.producer == Producer::Initializer => {
                let array = value::of_tensor(tensor, &own.name)?;
                let slot = self.slot(&own.name);
                self.constant(slot, array, tensor.element());
                scope.slots[id.index()] = Some(slot);
                Ok(Some(slot))
            }
            _ => Ok(known),
        }
    }

    fn graph(&mut self, scope: &mut Scope<'m>) -> Result<Vec<Raw>, RunError> {
        if scope.depth > DEPTH {
            let text = format!("functions call functions more than {DEPTH} deep");
            return Err(RunError::TooMany(text));
        }
        let graph = scope.graph;
        let mut steps = Vec::new();
        for &index in &graph.order {
            self.budget = self.budget.checked_sub(1).ok_or_else(|| {
                let text = format!("its functions amount to more than {BUDGET} nodes");
                RunError::TooMany(text)
            })?;
            self.node(scope, index, &mut steps)?;
        }
        Ok(steps)
    }

    fn node(
        &mut self,
        scope: &mut Scope<'m>,
        index: usize,
        steps: &mut Vec<Raw>,
    ) -> Result<(), RunError> {
        let graph = scope.graph;
        let node = &graph.nodes[index];
        let mut inputs = Vec::with_capacity(node.inputs.len());
        for id in &node.inputs {
            let slot = match id {
                Some(id) => self.read(scope, *id)?,
                None => None,
            };
            inputs.push(slot);
        }
        // Optional inputs at the end may be written or left out.
        while inputs.last() == Some(&None) {
            inputs.pop();
        }
        let key = (node.domain.as_str(), node.op.as_str(), node.overload.as_str());
        if let Some(function) = self.functions.get(&key).copied() {
            return self.function(scope, index, function, &inputs, steps);
        }
        let call = RunNode {
            node: format!("{}{}", scope.path, graph.node_name(index)),
            op: node.op.clone(),
            row: operators::find(&node.domain, &node.op),
            opset: scope.opsets.get(&node.domain).copied().unwrap_or(1),
            attributes: resolved(scope, node),
            inputs: Names::of(node.inputs.iter().map(|id| id.map_or("", |id| graph.name_of(id)))),
            outputs: node.outputs.iter().map(Option::is_some).collect(),
            codes: inputs.iter().map(|slot| self.code((*slot)?)).collect(),
        };
        if !node.domain.is_empty() && call.row.is_none_or(|row| row.code.is_none()) {
            let op = format!("{}.{}", node.domain, node.op);
            self.unsupported.push(UnsupportedNode { node: call.node, op, why: None });
            self.outputs(scope, node, None);
            return Ok(());
        }
        match (node.op.as_str(), inputs.as_slice()) {
            // Another name for the same value.
            ("Identity", [Some(slot)]) => {
                if let Some(Some(output)) = node.outputs.first() {
                    scope.slots[output.index()] = Some(*slot);
                }
                return Ok(());
            }
            ("Constant", []) => {
                let name = graph.node_name(index);
                match operators::constant(&call, &name)? {
                    Ok((array, element)) => {
                        let slot = self.slot(&name);
                        self.constant(slot, array, element);
                        if let Some(Some(output)) = node.outputs.first() {
                            scope.slots[output.index()] = Some(slot);
                        }
                    }
                    Err(why) => {
                        self.refuse(call, Some(why));
                        self.outputs(scope, node, None);
                    }
                }
                return Ok(());
            }
            ("If", [Some(condition)]) => {
                return self.branches(scope, node, call, *condition, steps);
            }
            _ => {}
        }
        let text = inputs.iter().flatten().any(|slot| self.is_text(*slot));
        let code = match code(&call, inputs.len(), text) {
            Ok(code) => code,
            Err(why) => {
                self.refuse(call, why);
                // What reads its results is looked at all the same.
                self.outputs(scope, node, None);
                return Ok(());
            }
        };
        if matches!(code, Code::Steps(_)) && lay::is_needed(&call) {
            inputs = self.laid(call.clone(), inputs, steps);
        }
        let element = match text && !call.row.is_some_and(|row| row.loses_text) {
            true => Some(ElementType::String),
            false => given(&call),
        };
        let outputs = self.outputs(scope, node, element);
        steps.push(Raw::Node { call, code, inputs, outputs });
        Ok(())
    }

    fn is_text(&self, slot: Slot) -> bool {
        self.kinds.get(&slot) == Some(&ElementType::String)
    }

    /// The type of a value that is held as codes.
    fn code(&self, slot: Slot) -> Option<ElementType> {
        self.kinds.get(&slot).copied().filter(|element| codes::is_code(*element))
    }

    fn refuse(&mut self, call: RunNode, why: Option<String>) {
        self.unsupported.push(UnsupportedNode { node: call.node, op: call.op, why });
    }

    /// Slots for the outputs of a node.
    fn outputs(
        &mut self,
        scope: &mut Scope<'m>,
        node: &Node,
        element: Option<ElementType>,
    ) -> Vec<Option<Slot>> {
        let mut slot = |id: &Option<ValueId>| {
            let id = (*id)?;
            let slot = self.slot(scope.graph.name_of(id));
            scope.slots[id.index()] = Some(slot);
            self.note(slot, element);
            Some(slot)
        };
        node.outputs.iter().map(&mut slot).collect()
    }

    /// The inputs as the operator's rule shows them to NumPy's.
    fn laid(
        &mut self,
        call: RunNode,
        inputs: Vec<Option<Slot>>,
        steps: &mut Vec<Raw>,
    ) -> Vec<Option<Slot>> {
        let mut laid: Vec<Option<Slot>> = Vec::new();
        for slot in &inputs {
            let name = slot.and_then(|slot| self.names.get(slot).cloned()).unwrap_or_default();
            laid.push(slot.map(|_| self.slot(&name)));
        }
        let code = Code::Whole(lay::lay);
        steps.push(Raw::Node { call, code, inputs, outputs: laid.clone() });
        laid
    }

    /// A function's nodes in the place of a call.
    fn function(
        &mut self,
        scope: &mut Scope<'m>,
        index: usize,
        function: &'m Function,
        inputs: &[Option<Slot>],
        steps: &mut Vec<Raw>,
    ) -> Result<(), RunError> {
        let node = &scope.graph.nodes[index];
        let arguments = function.arguments(node, &scope.arguments);
        let mut inner = Scope {
            graph: &function.graph,
            opsets: &function.opsets,
            path: format!("{}{}/", scope.path, scope.graph.node_name(index)),
            arguments,
            depth: scope.depth + 1,
            slots: vec![None; function.graph.values.len()],
        };
        for (id, slot) in function.graph.inputs.iter().zip(inputs) {
            inner.slots[id.index()] = *slot;
        }
        steps.extend(self.graph(&mut inner)?);
        for (id, output) in function.graph.outputs.iter().zip(&node.outputs) {
            let slot = self.read(&mut inner, *id)?;
            if let Some(output) = output {
                scope.slots[output.index()] = slot;
            }
        }
        Ok(())
    }

    /// Both branches, or the one that is taken where the model says which.
    fn branches(
        &mut self,
        scope: &mut Scope<'m>,
        node: &'m Node,
        call: RunNode,
        condition: Slot,
        steps: &mut Vec<Raw>,
    ) -> Result<(), RunError> {
        let graph = |name: &str| match node.attribute(name) {
            Some(AttributeValue::Graphs(graphs)) => graphs.first(),
            _ => None,
        };
        let (Some(then), Some(other)) = (graph("then_branch"), graph("else_branch")) else {
            self.refuse(call, Some("it has not two branches".into()));
            self.outputs(scope, node, None);
            return Ok(());
        };
        let constant = self.constants.iter().find(|(slot, _)| *slot == condition);
        let taken = constant.and_then(|(_, array)| array.typed::<bool>()?.first().copied());
        // An input's default is no constant: another value may be given.
        let is_input =
            scope.graph.inputs.iter().any(|id| scope.slots[id.index()] == Some(condition));
        if let (Some(taken), false) = (taken, is_input) {
            let (inner, results) = self.branch(scope, &call, if taken { then } else { other })?;
            steps.extend(inner);
            for (output, slot) in node.outputs.iter().zip(results) {
                if let Some(output) = output {
                    scope.slots[output.index()] = Some(slot);
                }
            }
            return Ok(());
        }
        let branches = [self.branch(scope, &call, then)?, self.branch(scope, &call, other)?];
        let outputs = self.outputs(scope, node, None);
        for (n, output) in outputs.iter().enumerate() {
            let result = |(_, results): &(_, Vec<Slot>)| self.kinds.get(results.get(n)?).copied();
            if let (Some(output), [Some(one), Some(other)]) =
                (output, branches.each_ref().map(result))
                && one == other
            {
                self.kinds.insert(*output, one);
            }
        }
        steps.push(Raw::If { call, condition, branches, outputs });
        Ok(())
    }

    fn branch(
        &mut self,
        scope: &mut Scope<'m>,
        call: &RunNode,
        graph: &'m Graph,
    ) -> Result<(Vec<Raw>, Vec<Slot>), RunError> {
        let mut slots = vec![None; graph.values.len()];
        for &(here, there) in &graph.captures {
            slots[here.index()] = self.read(scope, there)?;
        }
        let mut inner = Scope {
            graph,
            opsets: scope.opsets,
            path: format!("{}/", call.node),
            arguments: scope.arguments.clone(),
            depth: scope.depth + 1,
            slots,
        };
        let steps = self.graph(&mut inner)?;
        let mut results = Vec::new();
        for &id in &graph.outputs {
            match self.read(&mut inner, id)? {
                Some(slot) => results.push(slot),
                None => return Err(RunError::Missing(graph.name_of(id).to_owned())),
            }
        }
        Ok((steps, results))
    }
}

/// The attributes of a node, those of a call in the place of references to them.
fn resolved(scope: &Scope<'_>, node: &Node) -> Vec<Attribute> {
    let resolve = |attribute: &Attribute| {
        let value = match &attribute.value {
            AttributeValue::Reference(of) => (*scope.arguments.get(of.as_str())?).clone(),
            // Branches are followed where they stand.
            AttributeValue::Graphs(_) => return None,
            value => value.clone(),
        };
        Some(Attribute { name: attribute.name.clone(), value })
    };
    node.attributes.iter().filter_map(resolve).collect()
}

/// The type of a node's results, where they are codes.
fn given(call: &RunNode) -> Option<ElementType> {
    match call.op.as_str() {
        "Cast" | "CastLike" => call.target(),
        "ConstantOfShape" => call.tensor("value").map(Tensor::element),
        _ => codes::moved(call, call.codes.len())?.first().and_then(|input| call.code(*input)),
    }
}

/// The code for a node, or why there is none.
fn code(call: &RunNode, inputs: usize, is_text: bool) -> Result<Code, Option<String>> {
    let is_cast = matches!(call.op.as_str(), "Cast" | "CastLike");
    let coded = call.codes.iter().flatten().next().copied();
    let to_codes = call.target().filter(|element| is_cast && codes::is_code(*element));
    let (row, own): (&Row, Code) = call
        .row
        .and_then(|row| Some((row, row.code?)))
        .filter(|(row, _)| call.opset >= row.runs_since)
        .ok_or(None)?;
    let code = match coded.or(to_codes) {
        Some(element) if is_cast && casts_text(call, is_text) => {
            return Err(Some(format!("there is no text of {element}")));
        }
        Some(_) if is_cast => Code::Whole(codes::cast),
        Some(element) => {
            let from = codes::moved(call, inputs).unwrap_or_default();
            let alike = !from.is_empty() && from.iter().all(|n| call.code(*n) == Some(element));
            let asks = matches!(call.op.as_str(), "Shape" | "Size");
            if !alike && !asks {
                return Err(Some(format!("{element} cannot be computed with")));
            }
            own
        }
        None if casts_text(call, is_text) => Code::Whole(text::cast),
        None => own,
    };
    if let Some(why) = row.refuses.and_then(|refuses| refuses(call)) {
        return Err(Some(why));
    }
    if let Some(Err(why)) = call.element("to").filter(|_| call.op == "Cast" && to_codes.is_none()) {
        return Err(Some(why));
    }
    match row.taken().contains(&inputs) {
        true => Ok(code),
        false => Err(Some(format!("it has {inputs} inputs"))),
    }
}
