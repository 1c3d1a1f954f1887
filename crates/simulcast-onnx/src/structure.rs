//! The structure of a graph: names to numbers, one producer each, and an order.
//!
//! Files hold names. Reading interns them; at the end every value that is read must be produced, by
//! this graph or the one around it, and nodes must be in an order, or can be brought into one.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use crate::LoadError;
use crate::model::{Declared, Graph, Producer, Value, ValueId};

/// A graph that is being read.
#[derive(Debug, Default)]
pub(crate) struct Builder {
    pub(crate) graph: Graph,
    ids: HashMap<String, ValueId>,
    /// Who produces each value, once somebody does.
    producers: Vec<Option<Producer>>,
}

impl Builder {
    /// The value of that name, which something reads or declares.
    pub(crate) fn read(&mut self, name: &str) -> ValueId {
        if let Some(id) = self.ids.get(name) {
            return *id;
        }
        // A file has no room for 2^32 names: each takes bytes of its own.
        let id = ValueId(self.graph.values.len() as u32);
        self.ids.insert(name.to_owned(), id);
        let producer = Producer::Captured;
        self.graph.values.push(Value {
            name: name.to_owned(),
            declared: None,
            tensor: None,
            producer,
        });
        self.producers.push(None);
        id
    }

    fn claim(&mut self, name: &str, by: Producer) -> Result<ValueId, LoadError> {
        let id = self.read(name);
        match self.producers[id.index()].replace(by) {
            None => Ok(id),
            Some(before) => {
                let by = match (before, by) {
                    (_, Producer::Node(node)) => format!("node {node}"),
                    (Producer::Node(node), _) => format!("node {node}"),
                    (_, Producer::Input) => "another input".into(),
                    _ => "another initializer".into(),
                };
                Err(LoadError::Duplicate { name: name.to_owned(), by })
            }
        }
    }

    pub(crate) fn input(
        &mut self,
        name: &str,
        declared: Option<Declared>,
    ) -> Result<(), LoadError> {
        // An initializer may be the default of an input.
        let id = self.read(name);
        if self.producers[id.index()] == Some(Producer::Initializer) {
            self.producers[id.index()] = None;
        }
        let id = self.claim(name, Producer::Input)?;
        self.graph.inputs.push(id);
        self.declare(name, declared);
        Ok(())
    }

    pub(crate) fn initializer(&mut self, tensor: crate::Tensor) -> Result<(), LoadError> {
        let name = tensor.name().to_owned();
        let id = self.read(&name);
        if self.graph.values[id.index()].tensor.is_some() {
            return Err(LoadError::Duplicate { name, by: "another initializer".into() });
        }
        if self.producers[id.index()] != Some(Producer::Input) {
            self.claim(&name, Producer::Initializer)?;
        }
        self.graph.values[id.index()].tensor = Some(tensor.into());
        Ok(())
    }

    pub(crate) fn produce(&mut self, name: &str, node: usize) -> Result<ValueId, LoadError> {
        self.claim(name, Producer::Node(node))
    }

    /// What is declared of a value; of one that does not occur it means nothing.
    pub(crate) fn declare(&mut self, name: &str, declared: Option<Declared>) {
        if let (Some(id), Some(declared)) = (self.ids.get(name), declared) {
            self.graph.values[id.index()].declared = Some(declared);
        }
    }

    pub(crate) fn output(&mut self, name: &str, declared: Option<Declared>) {
        let id = self.read(name);
        self.graph.outputs.push(id);
        self.declare(name, declared);
    }

    /// The graph of an attribute: what it does not produce, the graph around it must.
    pub(crate) fn nested(mut self) -> Result<Graph, LoadError> {
        self.resolve_nested();
        let mut graph = self.graph;
        for (index, producer) in self.producers.iter().enumerate() {
            match producer {
                Some(producer) => graph.values[index].producer = *producer,
                None => {
                    let here = ValueId(index as u32);
                    // The number there is known once the graph around it is.
                    graph.captures.push((here, here));
                }
            }
        }
        graph.order = order(&graph)?;
        Ok(graph)
    }

    /// A graph with nothing around it.
    pub(crate) fn finish(self, what: &str) -> Result<Graph, LoadError> {
        let graph = self.nested()?;
        if let Some((missing, _)) = graph.captures.first() {
            let reads = |node: &crate::model::Node| {
                let direct = node.inputs.iter().flatten();
                let nested =
                    node.graphs().flat_map(|graph| graph.captures.iter().map(|(_, there)| there));
                direct.chain(nested).any(|id| id == missing)
            };
            let by = match graph.nodes.iter().position(reads) {
                Some(node) => format!("node {} ({})", graph.node_name(node), graph.nodes[node].op),
                None => format!("the output of {what}"),
            };
            let name = graph.name_of(*missing).to_owned();
            return Err(LoadError::Missing { name, by });
        }
        Ok(graph)
    }

    /// Gives the captures of graphs inside this one their numbers here.
    fn resolve_nested(&mut self) {
        let mut nodes = std::mem::take(&mut self.graph.nodes);
        for graph in nodes.iter_mut().flat_map(crate::model::Node::graphs_mut) {
            let Graph { values, captures, .. } = graph;
            for (here, there) in captures {
                *there = self.read(&values[here.index()].name);
            }
        }
        self.graph.nodes = nodes;
    }
}

/// An order of the nodes in which each comes after those that it reads from: the file's, where that
/// is one.
fn order(graph: &Graph) -> Result<Vec<usize>, LoadError> {
    let reads = |node: usize| {
        let node = &graph.nodes[node];
        let nested = node.graphs().flat_map(|graph| graph.captures.iter().map(|(_, there)| *there));
        node.inputs.iter().flatten().copied().chain(nested).filter_map(|id| {
            match graph.value(id).producer {
                Producer::Node(before) => Some(before),
                _ => None,
            }
        })
    };
    let count = graph.nodes.len();
    if (0..count).all(|node| reads(node).all(|before| before < node)) {
        return Ok((0..count).collect());
    }
    let mut waiting: Vec<usize> = (0..count).map(|node| reads(node).count()).collect();
    let mut readers: Vec<Vec<usize>> = vec![Vec::new(); count];
    for node in 0..count {
        for before in reads(node) {
            readers[before].push(node);
        }
    }
    let mut ready: BinaryHeap<Reverse<usize>> =
        (0..count).filter(|node| waiting[*node] == 0).map(Reverse).collect();
    let mut order = Vec::with_capacity(count);
    while let Some(Reverse(node)) = ready.pop() {
        order.push(node);
        for reader in &readers[node] {
            waiting[*reader] -= 1;
            if waiting[*reader] == 0 {
                ready.push(Reverse(*reader));
            }
        }
    }
    if order.len() == count {
        return Ok(order);
    }
    // Each node left waits for another that is left: following that comes back somewhere.
    let start = (0..count).find(|node| waiting[*node] > 0).unwrap_or(0);
    let next = |node: usize| reads(node).find(|before| waiting[*before] > 0).unwrap_or(node);
    let inside = (0..count).fold(start, |node, _| next(node));
    let mut cycle = vec![inside];
    let mut node = next(inside);
    while node != inside {
        cycle.push(node);
        node = next(node);
    }
    Err(LoadError::Cycle { nodes: cycle.into_iter().map(|node| graph.node_name(node)).collect() })
}
