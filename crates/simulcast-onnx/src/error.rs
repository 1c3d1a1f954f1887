//! Why a file is no model that can be worked with.

use std::fmt;
use std::path::PathBuf;

use crate::tensor::TensorError;
use crate::wire::WireError;

/// Why a model cannot be loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LoadError {
    /// The file cannot be read.
    Read {
        /// The file.
        path: PathBuf,
        /// What the system says.
        why: String,
    },
    /// The bytes are no ONNX model.
    Protobuf {
        /// The message that is broken, by its name in the schema.
        part: &'static str,
        /// What is wrong with it.
        why: WireError,
    },
    /// The model has no graph.
    NoGraph,
    /// Graphs inside nodes of graphs, more than this many deep.
    TooDeep(usize),
    /// A node has no operator.
    NoOperator {
        /// The node, counted from 0.
        node: usize,
    },
    /// Two things produce a value of one name, or two functions have one name.
    Duplicate {
        /// The name.
        name: String,
        /// What produces it again.
        by: String,
    },
    /// Something reads a value that nothing produces.
    Missing {
        /// The name of the value.
        name: String,
        /// What reads it.
        by: String,
    },
    /// Nodes that wait for each other.
    Cycle {
        /// The nodes, in the order in which one waits for the next.
        nodes: Vec<String>,
    },
    /// A tensor is not what it says.
    Tensor {
        /// Its name.
        name: String,
        /// What is wrong with it.
        why: TensorError,
    },
    /// A part of the format that is not supported.
    Unsupported(String),
}

/// How many nodes of a cycle a text lists.
const LISTED: usize = 6;

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read { path, why } => write!(f, "{}: {why}", path.display()),
            Self::Protobuf { part, why } => write!(f, "not an ONNX model: {part}: {why}"),
            Self::NoGraph => f.write_str("not an ONNX model: it has no graph"),
            Self::TooDeep(limit) => write!(f, "graphs are nested more than {limit} deep"),
            Self::NoOperator { node } => write!(f, "node {node} has no operator"),
            Self::Duplicate { name, by } => write!(f, "{name:?} is produced again by {by}"),
            Self::Missing { name, by } => write!(f, "{by} reads {name:?}, which nothing produces"),
            Self::Cycle { nodes } => {
                f.write_str("nodes wait for each other: ")?;
                for node in nodes.iter().take(LISTED) {
                    write!(f, "{node} reads from ")?;
                }
                match nodes.len() {
                    0..=LISTED => f.write_str(nodes.first().map_or("", String::as_str)),
                    more => write!(f, "{} more", more - LISTED),
                }
            }
            Self::Tensor { name, why } => write!(f, "tensor {name:?}: {why}"),
            Self::Unsupported(what) => write!(f, "{what} is not supported"),
        }
    }
}

impl std::error::Error for LoadError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Tensor { why, .. } => Some(why),
            _ => None,
        }
    }
}
