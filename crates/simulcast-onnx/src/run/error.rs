//! Why a model cannot be run, or not on these inputs.

use std::collections::BTreeMap;
use std::fmt;

use simulcast::{DType, ProgramError};
use simulcast_core::{BroadcastError, format_shape};

use crate::tensor::TensorError;
use crate::{DeclaredDim, ElementType};

/// Why a model cannot be run.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum RunError {
    /// Nodes that there is no code for; nothing has run.
    Unsupported(Vec<UnsupportedNode>),
    /// A value that is no tensor of a type that can be computed with.
    Value {
        /// The value.
        name: String,
        /// What it is.
        why: String,
    },
    /// A tensor that the model carries cannot be read.
    Tensor {
        /// Its name.
        name: String,
        /// What is wrong with it.
        why: TensorError,
    },
    /// Functions that call functions, or nodes of functions, without an end in sight.
    TooMany(String),
    /// An array for an input that the model does not have, or for one that it has already.
    Unexpected {
        /// The name that was given.
        name: String,
        /// The names of the model's inputs.
        inputs: Vec<String>,
    },
    /// An input without an array.
    Missing(String),
    /// An array of another element type than the input has.
    DType {
        /// The input.
        name: String,
        /// Its type.
        expected: ElementType,
        /// The array's.
        given: DType,
    },
    /// An array of other sizes than the input has.
    Shape {
        /// The input.
        name: String,
        /// What the model declares.
        declared: Vec<DeclaredDim>,
        /// The array's sizes.
        given: Vec<usize>,
    },
    /// A symbol that stands for two sizes.
    Symbol {
        /// The symbol.
        symbol: String,
        /// The sizes.
        sizes: [usize; 2],
        /// The input that has the second one.
        name: String,
    },
    /// A place for an output that the model does not have, or for one that has a place already.
    NoOutput {
        /// The name that was given.
        name: String,
        /// The names of the model's outputs.
        outputs: Vec<String>,
    },
    /// A place of another type or shape than the output has.
    Place {
        /// The output.
        name: String,
        /// Its type and sizes.
        made: (DType, Vec<usize>),
        /// Those of the place.
        given: (DType, Vec<usize>),
    },
    /// A size for a symbol that no input has.
    NoSymbol(String),
    /// A node that cannot work on what it was given.
    Node {
        /// The node, with the names of what is around it.
        node: String,
        /// Its operator.
        op: String,
        /// What is wrong.
        why: NodeError,
    },
}

/// A node that there is no code for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnsupportedNode {
    /// The node, with the names of what is around it.
    pub node: String,
    /// Its operator, with the domain where that is another than the standard one.
    pub op: String,
    /// Which use of the operator, where it is only some.
    pub why: Option<String>,
}

/// Why a node cannot work on what it was given.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum NodeError {
    /// Shapes that do not broadcast.
    Broadcast(BroadcastError),
    /// Types that it is not defined on, and whatever else an element-wise program refuses.
    TypedProgram(Box<ProgramError>),
    /// A result that is larger than was allowed, or an empty one that would be if it were none.
    Memory {
        /// Its sizes.
        shape: Vec<usize>,
        /// Its type.
        dtype: DType,
        /// The most bytes that the results may have that are held at a time.
        limit: usize,
        /// The bytes of those that were held by then.
        held: usize,
    },
    /// An attribute or an input that the operator cannot have.
    Other(String),
}

impl From<String> for NodeError {
    fn from(text: String) -> Self {
        Self::Other(text)
    }
}

impl From<&str> for NodeError {
    fn from(text: &str) -> Self {
        Self::Other(text.to_owned())
    }
}

impl From<ProgramError> for NodeError {
    fn from(error: ProgramError) -> Self {
        match error.kind {
            simulcast::ProgramErrorKind::Broadcast(error) => Self::Broadcast(error),
            _ => Self::TypedProgram(Box::new(error)),
        }
    }
}

impl From<simulcast::types::TypeError> for NodeError {
    fn from(error: simulcast::types::TypeError) -> Self {
        ProgramError::from(error).into()
    }
}

impl From<BroadcastError> for NodeError {
    fn from(error: BroadcastError) -> Self {
        Self::Broadcast(error)
    }
}

impl fmt::Display for NodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Broadcast(error) => error.fmt(f),
            Self::TypedProgram(error) => error.fmt(f),
            Self::Memory { shape, dtype, limit, held } => {
                let as_one = if shape.contains(&0) { ", with 1 for its sizes of 0" } else { "" };
                let shape = format_shape(shape);
                match held {
                    0 => write!(f, "a result {dtype} {shape} is larger than {limit} bytes{as_one}"),
                    _ => write!(
                        f,
                        "a result {dtype} {shape} and the {held} bytes of results still held are larger than {limit} bytes{as_one}"
                    ),
                }
            }
            Self::Other(text) => f.write_str(text),
        }
    }
}

impl fmt::Display for UnsupportedNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.node, self.op)?;
        self.why.as_ref().map_or(Ok(()), |why| write!(f, ": {why}"))
    }
}

/// The operators that nodes have, with what is said of some uses, those of the most nodes first.
fn by_operator(nodes: &[UnsupportedNode]) -> Vec<(String, Vec<&str>)> {
    let mut found: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for node in nodes {
        let op = node.why.as_ref().map_or(node.op.clone(), |why| format!("{}: {why}", node.op));
        found.entry(op).or_default().push(&node.node);
    }
    let mut found: Vec<_> = found.into_iter().collect();
    found.sort_by_key(|(_, nodes)| std::cmp::Reverse(nodes.len()));
    found
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unsupported(nodes) => {
                f.write_str("there is no code for ")?;
                for (at, (op, nodes)) in by_operator(nodes).into_iter().enumerate() {
                    f.write_str(if at == 0 { "" } else { ", " })?;
                    match nodes.as_slice() {
                        [only] => write!(f, "{op} (node {only})")?,
                        many => write!(f, "{op} ({} nodes)", many.len())?,
                    }
                }
                Ok(())
            }
            Self::Value { name, why } => write!(f, "{name:?} is {why}, which cannot be run"),
            Self::Tensor { name, why } => write!(f, "tensor {name:?}: {why}"),
            Self::TooMany(what) => f.write_str(what),
            Self::Unexpected { name, inputs } => match inputs.as_slice() {
                [] => write!(f, "{name:?} is no input of the model; it has none"),
                all => write!(
                    f,
                    "{name:?} is no input of the model, or given twice; it has {}",
                    all.join(", ")
                ),
            },
            Self::Missing(name) => write!(f, "the input {name:?} is missing"),
            Self::DType { name, expected, given } => {
                write!(f, "the input {name:?} is {expected}, not {given}")
            }
            Self::Shape { name, declared, given } => {
                let sizes: Vec<String> = declared.iter().map(ToString::to_string).collect();
                let comma = if sizes.len() == 1 { "," } else { "" };
                let sizes = sizes.join(", ");
                write!(
                    f,
                    "the input {name:?} has sizes ({sizes}{comma}), not {}",
                    format_shape(given)
                )
            }
            Self::Symbol { symbol, sizes: [one, other], name } => {
                write!(f, "{symbol} is {one} and, in the input {name:?}, {other}")
            }
            Self::NoOutput { name, outputs } => write!(
                f,
                "{name:?} is no output of the model, or has a place already; it has {}",
                outputs.join(", ")
            ),
            Self::Place { name, made: (dtype, shape), given: (other, sizes) } => write!(
                f,
                "the output {name:?} is {dtype} {}, its place {other} {}",
                format_shape(shape),
                format_shape(sizes)
            ),
            Self::NoSymbol(symbol) => write!(f, "no input of the model has a symbol {symbol:?}"),
            Self::Node { node, op, why } => write!(f, "{node} ({op}): {why}"),
        }
    }
}

impl std::error::Error for RunError {}
