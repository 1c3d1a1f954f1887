//! Functions and graphs inside nodes: followed where they are called.

use simulcast_core::Dims;

use super::call::Call;
use super::{Context, Fact, Scope};
use crate::model::{AttributeValue, Graph};

impl<'m> Context<'m> {
    /// Follows a function at a call of it.
    pub(super) fn call(
        &mut self,
        scope: &Scope<'m>,
        index: usize,
        function: usize,
        inputs: &[Option<&Fact>],
    ) -> Result<Vec<Fact>, String> {
        let function = &self.model.functions[function];
        let node = &scope.graph.nodes[index];
        let arguments = function.arguments(node, &scope.arguments);
        let inner = Scope {
            graph: &function.graph,
            opsets: &function.opsets,
            path: format!("{}{}/", scope.path, scope.graph.node_name(index)),
            arguments,
            depth: scope.depth + 1,
            top: false,
        };
        let count = function.graph.inputs.len();
        let inputs =
            (0..count).map(|input| inputs.get(input).copied().flatten().cloned()).collect();
        let facts = self.graph(&inner, inputs, &[])?;
        Ok(function.graph.outputs.iter().map(|output| facts[output.index()].clone()).collect())
    }
}

impl<'m> Call<'_, '_, 'm> {
    /// The results of a node with graphs in it; `None` where it has none.
    pub(super) fn control(&mut self, facts: &[Fact]) -> Result<Option<Vec<Fact>>, String> {
        let node = self.node;
        let mut branches = Vec::new();
        for attribute in &node.attributes {
            let AttributeValue::Graphs(graphs) = &attribute.value else { continue };
            for graph in graphs {
                let results = self.branch(&attribute.name, graph, facts)?;
                branches.push(results);
            }
        }
        match (self.op(), branches.as_mut_slice()) {
            (_, []) => Ok(None),
            // What both branches agree on holds; the condition is not looked at.
            ("If", [one, other]) => {
                let both = one.iter().zip(other.iter());
                Ok(Some(both.map(|(a, b)| agreed(a, b)).collect()))
            }
            // Only one of both is right for a loop: the states keep their types.
            ("Loop", [body]) => {
                let count = node.inputs.len().saturating_sub(2);
                let states = body.iter().skip(1).take(count);
                let states = states.map(|fact| Fact::new(fact.element, Dims::Unranked));
                let scanned = body.iter().skip(count.saturating_add(1));
                let scanned = scanned.map(|fact| Fact::new(fact.element, Dims::Unranked));
                Ok(Some(states.chain(scanned).collect()))
            }
            _ => {
                *self.context.unknown.entry(self.node.op.clone()).or_default() += 1;
                Ok(Some(Vec::new()))
            }
        }
    }

    fn branch(
        &mut self,
        name: &str,
        graph: &'m Graph,
        facts: &[Fact],
    ) -> Result<Vec<Fact>, String> {
        let scope = Scope {
            graph,
            path: format!("{}/{name}/", self.name()),
            depth: self.scope.depth + 1,
            top: false,
            ..self.scope.clone()
        };
        let captured: Vec<Fact> =
            graph.captures.iter().map(|(_, there)| facts[there.index()].clone()).collect();
        let inputs = vec![None; graph.inputs.len()];
        let facts = self.context.graph(&scope, inputs, &captured)?;
        Ok(graph.outputs.iter().map(|output| facts[output.index()].clone()).collect())
    }
}

/// What holds of both.
fn agreed(a: &Fact, b: &Fact) -> Fact {
    let dims = match (a.dims.dims(), b.dims.dims()) {
        (Some(x), Some(y)) if x.len() == y.len() => {
            let both = x.iter().zip(y).map(|(x, y)| match x == y {
                true => x.clone(),
                false => simulcast_core::Dim::UNKNOWN,
            });
            Dims::from(both.collect::<Vec<_>>())
        }
        _ => Dims::Unranked,
    };
    Fact::new(a.element.filter(|element| Some(*element) == b.element), dims)
}
