//! Upgrade: a model of opset 1 to 6 rewritten for opset 7, where broadcasting became NumPy's.
//!
//! Until opset 6 a node said `broadcast=1` and `axis`: B is laid onto A from that axis. NumPy's rule
//! lays B from the right, so B first gets axes of size 1 behind its own, `rank(A) - axis - rank(B)`
//! of them, through an `Unsqueeze` in front of the node. What else changed up to opset 7 is changed
//! too, or refused with the node's name; nothing is left to be misread.
//!
//! | operator | change |
//! |---|---|
//! | Add Sub Mul Div Pow And Or Xor Equal Greater Less | `broadcast` and `axis` go, B is unsqueezed |
//! | `PRelu` | a slope for each channel is unsqueezed behind the channels |
//! | Gemm | `broadcast` goes |
//! | Reshape below 5 | the attribute `shape` becomes an input |
//! | Cast below 6 | the type's name becomes its number |
//! | Concat below 4 | the axis 1, which was the default, is written out |
//! | Pad below 2 | `paddings` is called `pads` |
//! | `Dropout`, `BatchNormalization` | `is_test=1` goes; training is refused |
//! | everything | `consumed_inputs`, a hint of opset 1, goes |
//! | Split and Tile with other inputs, Upsample, recurrent networks with `output_sequence` | refused |
//!
//! Every field that is not understood is copied as it stands.

use std::collections::HashSet;
use std::fmt;
use std::path::Path;

use simulcast_core::{BroadcastError, Dims, Outcome};

use crate::infer::{Inference, infer};
use crate::model::{AttributeValue, Node};
use crate::schema;
use crate::wire::{Field, Fields, Message, WireError};
use crate::{ElementType, LoadError, Model};

/// The opset that models are upgraded to.
const TARGET: i64 = 7;

/// Why a model is not upgraded.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum UpgradeError {
    /// It is no model that can be worked with.
    Load(LoadError),
    /// It is new enough.
    Opset(i64),
    /// A node that no node of the newer opset can stand for.
    Node {
        /// The node.
        node: String,
        /// Its operator.
        op: String,
        /// Why.
        why: String,
    },
}

impl fmt::Display for UpgradeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Load(error) => write!(f, "{error}"),
            Self::Opset(opset) => write!(
                f,
                "it imports opset {opset}; broadcasting has been NumPy's since opset {TARGET}"
            ),
            Self::Node { node, op, why } => write!(f, "node {node} ({op}): {why}"),
        }
    }
}

impl std::error::Error for UpgradeError {}

impl From<LoadError> for UpgradeError {
    fn from(error: LoadError) -> Self {
        Self::Load(error)
    }
}

impl From<WireError> for UpgradeError {
    fn from(why: WireError) -> Self {
        Self::Load(LoadError::Protobuf { part: "ModelProto", why })
    }
}

/// Rewrites a model of opset 1 to 6 for opset 7. `folder` is where data in other files are.
///
/// # Errors
///
/// An [`UpgradeError`] where the bytes are no model, the model is of opset 7 or newer, or a node
/// cannot be rewritten.
pub fn upgrade(bytes: &[u8], folder: Option<&Path>) -> Result<Vec<u8>, UpgradeError> {
    let model = Model::from_bytes_in(bytes, folder)?;
    let opset = model.opset();
    if opset >= TARGET {
        return Err(UpgradeError::Opset(opset));
    }
    let why = |why| UpgradeError::Node { node: model.graph.name.clone(), op: "graph".into(), why };
    if !model.functions.is_empty() {
        return Err(why("functions did not exist in this opset".into()));
    }
    let inference = infer(&model, &[]).map_err(why)?;
    let mut graph = Upgrade {
        model: &model,
        inference: &inference,
        opset,
        names: model.graph.values.iter().map(|value| value.name.clone()).collect(),
    };
    let mut out = Message::default();
    let mut imported = false;
    for field in Fields::new(bytes) {
        let field = field?;
        match field.number {
            schema::model::GRAPH => out.message(schema::model::GRAPH, &graph.graph(&field)?),
            schema::model::OPSET_IMPORT => {
                imported |= is_standard(&field)?;
                out.message(schema::model::OPSET_IMPORT, &opset_import(&field)?);
            }
            // Opsets were first imported in IR 3.
            schema::model::IR_VERSION => out.int(schema::model::IR_VERSION, field.int()?.max(3)),
            _ => out.copy(&field),
        }
    }
    if !imported {
        let mut import = Message::default();
        import.int(schema::opset::VERSION, TARGET);
        out.message(schema::model::OPSET_IMPORT, &import);
    }
    Ok(out.into_bytes())
}

fn is_standard(field: &Field<'_>) -> Result<bool, WireError> {
    // Of a field that is there twice the last one counts, as where models are loaded.
    let mut domain = "";
    for field in field.fields()? {
        let field = field?;
        if field.number == schema::opset::DOMAIN {
            domain = field.text()?;
        }
    }
    Ok(matches!(domain, "" | "ai.onnx"))
}

fn opset_import(field: &Field<'_>) -> Result<Message, WireError> {
    let standard = is_standard(field)?;
    let mut out = Message::default();
    for field in field.fields()? {
        let field = field?;
        match field.number {
            schema::opset::VERSION if standard => {}
            _ => out.copy(&field),
        }
    }
    if standard {
        out.int(schema::opset::VERSION, TARGET);
    }
    Ok(out)
}

struct Upgrade<'m> {
    model: &'m Model,
    inference: &'m Inference,
    opset: i64,
    /// Names that are taken.
    names: HashSet<String>,
}

/// How a node changes: what stands in front of it, and what of it is another.
#[derive(Default)]
struct Change {
    before: Vec<Message>,
    /// An input, and the name of what takes its place; one beyond the last is added.
    input: Option<(usize, String)>,
    /// Attributes that go.
    dropped: Vec<&'static str>,
    /// Attributes that come.
    added: Vec<Message>,
}

impl Upgrade<'_> {
    fn graph(&mut self, field: &Field<'_>) -> Result<Message, UpgradeError> {
        let mut out = Message::default();
        let mut index = 0;
        for field in field.fields()? {
            let field = field?;
            match field.number {
                schema::graph::NODE => {
                    let node = &self.model.graph.nodes[index];
                    let change = self.change(index, node).map_err(|why| UpgradeError::Node {
                        node: self.model.graph.node_name(index),
                        op: node.op.clone(),
                        why,
                    })?;
                    for node in &change.before {
                        out.message(schema::graph::NODE, node);
                    }
                    out.message(schema::graph::NODE, &rewritten(&field, &change)?);
                    index += 1;
                }
                _ => out.copy(&field),
            }
        }
        Ok(out)
    }

    fn change(&mut self, index: usize, node: &Node) -> Result<Change, String> {
        let mut change = Change::default();
        if !node.domain.is_empty() {
            return Ok(change);
        }
        if node.graphs().next().is_some() {
            return Err("it holds a graph, which is not upgraded".into());
        }
        if node.attribute("consumed_inputs").is_some() {
            change.dropped.push("consumed_inputs");
        }
        let int = |name: &str| match node.attribute(name) {
            Some(AttributeValue::Int(value)) => Some(*value),
            _ => None,
        };
        match node.op.as_str() {
            "Add" | "Sub" | "Mul" | "Div" | "Pow" | "And" | "Or" | "Xor" | "Equal" | "Greater"
            | "Less" => {
                change.dropped.extend(["broadcast", "axis"]);
                self.broadcast(
                    index,
                    node,
                    int("axis").filter(|_| int("broadcast") == Some(1)),
                    &mut change,
                )?;
            }
            "PRelu" => {
                let axis = self.rank(node, 0)?.filter(|rank| *rank > 1).map(|_| 1);
                self.broadcast(index, node, axis, &mut change)?;
            }
            "Gemm" => {
                self.resolved(index)?;
                change.dropped.push("broadcast");
            }
            "Max" | "Min" | "Sum" | "Mean" => self.resolved(index)?,
            "Reshape" if self.opset < 5 => {
                let Some(AttributeValue::Ints(shape)) = node.attribute("shape") else {
                    return Err("it has no attribute shape".into());
                };
                change.dropped.push("shape");
                let name = self.fresh(&format!("{}_shape", self.output_name(node)));
                change.before.push(constant(&name, shape));
                change.input = Some((1, name));
            }
            "Cast" if self.opset < 6 => {
                let Some(AttributeValue::Text(name)) = node.attribute("to") else {
                    return Err("it has no type's name".into());
                };
                let name = String::from_utf8_lossy(name).into_owned();
                let to = ElementType::from_legacy_name(&name);
                let to = to.ok_or_else(|| format!("there is no type {name:?}"))?;
                change.dropped.push("to");
                change.added.push(int_attribute("to", to.code().into()));
            }
            "Concat" if self.opset < 4 && int("axis").is_none() => {
                change.added.push(int_attribute("axis", 1));
            }
            "Pad" if self.opset < 2 => {
                if let Some(AttributeValue::Ints(pads)) = node.attribute("paddings") {
                    change.dropped.push("paddings");
                    change.added.push(ints_attribute("pads", pads));
                }
            }
            "BatchNormalization" | "Dropout" => {
                if int("is_test") != Some(1) {
                    return Err("it is in training mode (is_test is not 1)".into());
                }
                change.dropped.push("is_test");
            }
            "Split" if self.opset < 2 && node.inputs.len() > 1 => {
                return Err("its parts are an input, which opset 2 took away".into());
            }
            "Tile" if self.opset < 6 => return Err("its inputs changed with opset 6".into()),
            "Upsample" => return Err("its scales changed with opset 7".into()),
            "RNN" | "GRU" | "LSTM" if node.attribute("output_sequence").is_some() => {
                return Err("output_sequence went with opset 7".into());
            }
            "GlobalLpPool" | "LpPool" if self.opset < 2 => {
                return Err("its exponent changed with opset 2".into());
            }
            _ => {}
        }
        Ok(change)
    }

    /// Puts B where NumPy's rule lays it as the old rule did.
    fn broadcast(
        &mut self,
        index: usize,
        node: &Node,
        axis: Option<i64>,
        change: &mut Change,
    ) -> Result<(), String> {
        self.resolved(index)?;
        let Some(axis) = axis else { return Ok(()) };
        let Some(b) = self.rank(node, 1)? else {
            return Err("the rank of its second input is not known".into());
        };
        // One element fits wherever it is laid, and it alone may hang over the end.
        let sizes = node.inputs.get(1).copied().flatten();
        let sizes = sizes.and_then(|id| self.inference.facts.get(id.index())?.dims.sizes());
        if b == 0 || axis == -1 || sizes.is_some_and(|sizes| sizes.iter().all(|size| *size == 1)) {
            return Ok(());
        }
        let Some(a) = self.rank(node, 0)? else {
            return Err("the rank of its first input is not known".into());
        };
        let axis = usize::try_from(axis).map_err(|_| format!("there is no axis {axis}"))?;
        let behind = a.checked_sub(axis).and_then(|left| left.checked_sub(b));
        let behind =
            behind.ok_or_else(|| format!("{b} axes from axis {axis} on are more than {a}"))?;
        if behind == 0 {
            return Ok(());
        }
        let input = node.inputs.get(1).copied().flatten().ok_or("it has no second input")?;
        let name = self.model.graph.name_of(input);
        let moved = self.fresh(&format!("{name}_on_axis_{axis}"));
        let axes: Vec<i64> = (b..b + behind).map(|axis| axis as i64).collect();
        let mut unsqueeze = Message::default();
        unsqueeze.bytes(schema::node::INPUT, name);
        unsqueeze.bytes(schema::node::OUTPUT, &moved);
        unsqueeze.bytes(schema::node::OP_TYPE, "Unsqueeze");
        unsqueeze.message(schema::node::ATTRIBUTE, &ints_attribute("axes", &axes));
        change.before.push(unsqueeze);
        change.input = Some((1, moved));
        Ok(())
    }

    /// That the node's broadcast was accepted by the rule of its opset: the newer rule would accept
    /// more, and say something else.
    fn resolved(&self, index: usize) -> Result<(), String> {
        let broadcast = self.inference.broadcasts.iter().find(|own| own.at == Some(index));
        match broadcast.map(|broadcast| &broadcast.outcome) {
            Some(Outcome::Error(error)) => Err(BroadcastError::to_string(error)),
            _ => Ok(()),
        }
    }

    fn rank(&self, node: &Node, input: usize) -> Result<Option<usize>, String> {
        let id = node.inputs.get(input).copied().flatten();
        let id = id.ok_or_else(|| format!("it has no input {input}"))?;
        let dims = self.inference.facts.get(id.index()).map(|fact| &fact.dims);
        Ok(dims.and_then(Dims::dims).map(<[_]>::len))
    }

    fn output_name(&self, node: &Node) -> &str {
        let output = node.outputs.iter().flatten().next();
        output.map_or("", |output| self.model.graph.name_of(*output))
    }

    /// A name that no value has.
    fn fresh(&mut self, wish: &str) -> String {
        let mut name = wish.to_owned();
        let mut number = 1;
        while !self.names.insert(name.clone()) {
            number += 1;
            name = format!("{wish}_{number}");
        }
        name
    }
}

/// The node with its changes; fields that are not understood are copied.
fn rewritten(field: &Field<'_>, change: &Change) -> Result<Message, UpgradeError> {
    let mut out = Message::default();
    let mut inputs = 0;
    for field in field.fields()? {
        let field = field?;
        match (field.number, &change.input) {
            (schema::node::INPUT, Some((input, name))) => {
                match inputs == *input {
                    true => out.bytes(schema::node::INPUT, name),
                    false => out.copy(&field),
                }
                inputs += 1;
            }
            (schema::node::ATTRIBUTE, _) if change.dropped.contains(&attribute_name(&field)?) => {}
            _ => out.copy(&field),
        }
    }
    if let Some((input, name)) = &change.input
        && inputs == *input
    {
        out.bytes(schema::node::INPUT, name);
    }
    for attribute in &change.added {
        out.message(schema::node::ATTRIBUTE, attribute);
    }
    Ok(out)
}

fn attribute_name<'a>(field: &Field<'a>) -> Result<&'a str, WireError> {
    let mut name = "";
    for field in field.fields()? {
        let field = field?;
        if field.number == schema::attribute::NAME {
            name = field.text()?;
        }
    }
    Ok(name)
}

fn int_attribute(name: &str, value: i64) -> Message {
    let mut out = Message::default();
    out.bytes(schema::attribute::NAME, name);
    out.int(schema::attribute::I, value);
    out.int(schema::attribute::TYPE, schema::attribute_type::INT.cast_signed());
    out
}

fn ints_attribute(name: &str, values: &[i64]) -> Message {
    let mut out = Message::default();
    out.bytes(schema::attribute::NAME, name);
    for value in values {
        out.int(schema::attribute::INTS, *value);
    }
    out.int(schema::attribute::TYPE, schema::attribute_type::INTS.cast_signed());
    out
}

/// A node that gives a list of integers.
fn constant(name: &str, values: &[i64]) -> Message {
    let mut tensor = Message::default();
    tensor.int(schema::tensor::DIMS, values.len() as i64);
    tensor.int(schema::tensor::DATA_TYPE, ElementType::I64.code().into());
    tensor.bytes(
        schema::tensor::RAW_DATA,
        values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>(),
    );
    let mut value = Message::default();
    value.bytes(schema::attribute::NAME, "value");
    value.message(schema::attribute::T, &tensor);
    value.int(schema::attribute::TYPE, schema::attribute_type::TENSOR.cast_signed());
    let mut node = Message::default();
    node.bytes(schema::node::OUTPUT, name);
    node.bytes(schema::node::OP_TYPE, "Constant");
    node.message(schema::node::ATTRIBUTE, &value);
    node
}
