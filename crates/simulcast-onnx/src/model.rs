//! Models in memory: graphs, nodes, values, attributes and functions, as inference, checks and
//! everything after them see them.
//!
//! Values are numbered within their graph, so that nothing after loading looks names up. A graph
//! inside a node's attribute (a branch, a loop's body) or a function's body is a [`Graph`] too; what
//! a branch reads from the graph around it stands in [`Graph::captures`].

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use simulcast_core::format_shape;

use crate::{ElementType, Tensor};

/// A value of a graph, counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ValueId(pub(crate) u32);

impl ValueId {
    /// The position in [`Graph::values`].
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A model as it was loaded; its structure has been checked.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Model {
    /// The version of the file format.
    pub ir_version: i64,
    /// What wrote the model, with its version; empty where it does not say.
    pub producer: String,
    /// The version of each domain's operators; the standard domain is the empty text.
    pub opsets: BTreeMap<String, i64>,
    /// The graph.
    pub graph: Graph,
    /// The functions that the model brings along.
    pub functions: Vec<Function>,
}

impl Model {
    /// The version of the standard operators; 1 where the model does not say, as before IR 3.
    #[must_use]
    pub fn opset(&self) -> i64 {
        self.opsets.get("").copied().unwrap_or(1)
    }
}

impl Model {
    /// Takes the names of all sizes away, so that equal names do not mean equal sizes: ONNX says that
    /// they do, but some exporters reuse names, and ONNX Runtime does not compare them.
    pub fn forget_names(&mut self) {
        self.graph.forget_names();
        self.functions.iter_mut().for_each(|function| function.graph.forget_names());
    }
}

/// A function that a model brings along.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Function {
    /// The domain of its name.
    pub domain: String,
    /// Its name: nodes of that operator call it.
    pub name: String,
    /// Which of several functions of one name.
    pub overload: String,
    /// The version of each domain's operators in its body.
    pub opsets: BTreeMap<String, i64>,
    /// What attributes are where a call does not give them.
    pub defaults: Vec<Attribute>,
    /// The body.
    pub graph: Graph,
}

impl Function {
    /// What its attributes are at a call: those of the node, some of which may stand for attributes
    /// of the function around it, and its defaults.
    pub(crate) fn arguments<'m>(
        &'m self,
        node: &'m Node,
        around: &HashMap<&str, &'m AttributeValue>,
    ) -> HashMap<&'m str, &'m AttributeValue> {
        let mut arguments: HashMap<&str, &AttributeValue> =
            self.defaults.iter().map(|own| (own.name.as_str(), &own.value)).collect();
        for attribute in &node.attributes {
            let value = match &attribute.value {
                AttributeValue::Reference(of) => around.get(of.as_str()).copied(),
                value => Some(value),
            };
            if let Some(value) = value {
                arguments.insert(&attribute.name, value);
            }
        }
        arguments
    }
}

/// A graph: nodes between inputs and outputs.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Graph {
    /// The name.
    pub name: String,
    /// The nodes, as they stand in the file.
    pub nodes: Vec<Node>,
    /// An order of the nodes in which each comes after those that it reads from.
    pub order: Vec<usize>,
    /// Every value that occurs.
    pub values: Vec<Value>,
    /// The inputs.
    pub inputs: Vec<ValueId>,
    /// The outputs.
    pub outputs: Vec<ValueId>,
    /// Values read from the graph around this one: here, and there.
    pub captures: Vec<(ValueId, ValueId)>,
}

impl Graph {
    /// A value. Ids are made with the graph, so there always is one.
    #[must_use]
    pub fn value(&self, id: ValueId) -> &Value {
        &self.values[id.index()]
    }

    /// The name of a value.
    #[must_use]
    pub fn name_of(&self, id: ValueId) -> &str {
        &self.value(id).name
    }

    fn forget_names(&mut self) {
        let declared = self.values.iter_mut().filter_map(|value| value.declared.as_mut());
        for dim in declared.flat_map(Declared::dims_mut) {
            if matches!(dim, DeclaredDim::Symbol(_)) {
                *dim = DeclaredDim::Unknown;
            }
        }
        self.nodes.iter_mut().flat_map(Node::graphs_mut).for_each(Self::forget_names);
    }

    /// The names of the inputs' sizes, as often as they stand there.
    pub(crate) fn input_symbols(&self) -> impl Iterator<Item = &str> {
        let declared = self.inputs.iter().filter_map(|id| self.value(*id).declared.as_ref());
        declared.flat_map(Declared::dims).filter_map(|dim| match dim {
            DeclaredDim::Symbol(name) => Some(name.as_str()),
            _ => None,
        })
    }

    /// What a node is called: its name, or where it has none, by operator and first output.
    #[must_use]
    pub fn node_name(&self, index: usize) -> String {
        let Some(node) = self.nodes.get(index) else { return String::new() };
        if !node.name.is_empty() {
            return node.name.clone();
        }
        match node.outputs.iter().flatten().next() {
            Some(output) => self.name_of(*output).to_owned(),
            None => format!("{}#{index}", node.op),
        }
    }

    /// Where a value comes from, in words.
    #[must_use]
    pub fn producer_text(&self, id: ValueId) -> String {
        match self.value(id).producer {
            Producer::Input => "an input of the graph".into(),
            Producer::Initializer => "an initializer".into(),
            Producer::Captured => "from the graph around this one".into(),
            Producer::Node(index) => {
                let op = self.nodes.get(index).map_or("", |node| node.op.as_str());
                match self.node_name(index) {
                    name if name == self.name_of(id) => format!("the result of a node {op}"),
                    name => format!("the result of node {name} ({op})"),
                }
            }
        }
    }
}

/// Where a value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Producer {
    /// An input of the graph.
    Input,
    /// An initializer that is no input.
    Initializer,
    /// The node of that number.
    Node(usize),
    /// The graph around this one.
    Captured,
}

/// A value of a graph.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Value {
    /// The name.
    pub name: String,
    /// What the file declares it to be.
    pub declared: Option<Declared>,
    /// The tensor that an initializer gives it; of an input, its default.
    pub tensor: Option<Arc<Tensor>>,
    /// Where it comes from.
    pub producer: Producer,
}

/// What a file declares a value to be.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Declared {
    /// A tensor.
    Tensor {
        /// The type of its elements.
        element: Option<ElementType>,
        /// Its sizes, where the rank is declared.
        dims: Option<Vec<DeclaredDim>>,
    },
    /// A sequence, a map, an optional or something else that has no shape.
    Other,
}

/// `float32 (batch, 3)`
impl std::fmt::Display for Declared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Tensor { element, dims } => {
                f.write_str(element.map_or("any type", ElementType::name))?;
                let Some(dims) = dims else { return Ok(()) };
                let texts: Vec<String> = dims.iter().map(ToString::to_string).collect();
                let comma = if texts.len() == 1 { "," } else { "" };
                write!(f, " ({}{comma})", texts.join(", "))
            }
            Self::Other => f.write_str("no tensor"),
        }
    }
}

impl Declared {
    /// The sizes; none where the rank is not declared.
    pub(crate) fn dims(&self) -> &[DeclaredDim] {
        match self {
            Self::Tensor { dims: Some(dims), .. } => dims,
            _ => &[],
        }
    }

    fn dims_mut(&mut self) -> &mut [DeclaredDim] {
        match self {
            Self::Tensor { dims: Some(dims), .. } => dims,
            _ => &mut [],
        }
    }
}

/// Names that exporters give to every size that they do not know: equal ones are no equal sizes.
const UNNAMED: [&str; 9] = ["", "?", "*", "-1", "none", "null", "unknown", "dynamic", "any"];

impl DeclaredDim {
    /// A size by its name; one whose name says that it is not known has none.
    pub(crate) fn named(name: &str) -> Self {
        match UNNAMED.iter().any(|own| own.eq_ignore_ascii_case(name.trim())) {
            true => Self::Unknown,
            false => Self::Symbol(name.to_owned()),
        }
    }
}

/// A size as a file declares it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeclaredDim {
    /// A size.
    Size(usize),
    /// A name.
    Symbol(String),
    /// Nothing.
    Unknown,
}

/// A node: an operator with its inputs and outputs.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Node {
    /// The name, which may be empty; see [`Graph::node_name`].
    pub name: String,
    /// The operator.
    pub op: String,
    /// The operator's domain; the standard one is the empty text.
    pub domain: String,
    /// Which of several functions of one name.
    pub overload: String,
    /// The inputs; `None` where an optional one is left out.
    pub inputs: Vec<Option<ValueId>>,
    /// The outputs; `None` where an optional one is left out.
    pub outputs: Vec<Option<ValueId>>,
    /// The attributes.
    pub attributes: Vec<Attribute>,
}

impl Node {
    /// The operator with its domain, where that is not the standard one.
    pub(crate) fn operator(&self) -> String {
        match self.domain.as_str() {
            "" => self.op.clone(),
            domain => format!("{domain}.{}", self.op),
        }
    }

    /// The attribute of that name.
    #[must_use]
    pub fn attribute(&self, name: &str) -> Option<&AttributeValue> {
        self.attributes.iter().find(|attribute| attribute.name == name).map(|found| &found.value)
    }

    /// The graphs in its attributes.
    pub fn graphs(&self) -> impl Iterator<Item = &Graph> {
        self.attributes.iter().flat_map(|attribute| match &attribute.value {
            AttributeValue::Graphs(graphs) => graphs.as_slice(),
            _ => &[],
        })
    }

    pub(crate) fn graphs_mut(&mut self) -> impl Iterator<Item = &mut Graph> {
        self.attributes.iter_mut().flat_map(|attribute| match &mut attribute.value {
            AttributeValue::Graphs(graphs) => graphs.as_mut_slice(),
            _ => &mut [],
        })
    }
}

/// An attribute of a node.
#[derive(Clone, Debug)]
pub struct Attribute {
    /// The name.
    pub name: String,
    /// The value.
    pub value: AttributeValue,
}

/// The value of an attribute.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum AttributeValue {
    /// A number.
    Float(f32),
    /// An integer.
    Int(i64),
    /// A text, which need not be UTF-8.
    Text(Vec<u8>),
    /// Numbers.
    Floats(Vec<f32>),
    /// Integers.
    Ints(Vec<i64>),
    /// Texts.
    Texts(Vec<Vec<u8>>),
    /// A tensor.
    Tensor(Arc<Tensor>),
    /// One graph, or several.
    Graphs(Vec<Graph>),
    /// In a function: the attribute of that name of the call.
    Reference(String),
    /// Something that has no bearing on shapes: a type, sparse tensors.
    Other,
}

impl std::fmt::Display for DeclaredDim {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Size(size) => write!(f, "{size}"),
            Self::Symbol(name) => f.write_str(name),
            Self::Unknown => f.write_str("?"),
        }
    }
}

impl Tensor {
    /// `float32 (2, 3)`
    #[must_use]
    pub fn describe(&self) -> String {
        format!("{} {}", self.element(), format_shape(self.shape()))
    }
}
