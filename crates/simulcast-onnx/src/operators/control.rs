//! Functions and graphs inside nodes: followed where they are called.

use simulcast_core::Dims;

use super::rows;
use crate::infer::{Context, Fact, InferNode, Results, Scope};
use crate::model::{AttributeValue, Graph};

impl<'m> Context<'m> {
    /// Follows a function at a call of it.
    pub(crate) fn call(
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

rows! { "", ROWS:
    "If" 1 "bool -> _*" infer either;
    "Loop" 1 "int64? bool? _* -> _*" infer repeated;
    "Scan" 8 "_* -> _*" infer scanned;
}

impl<'m> InferNode<'_, '_, 'm> {
    /// The graphs of the attributes, each followed with what is declared of its inputs.
    fn branches(&mut self) -> Option<Vec<Vec<Fact>>> {
        let mut branches = Vec::new();
        for attribute in &self.node.attributes {
            let AttributeValue::Graphs(graphs) = &attribute.value else { continue };
            for graph in graphs {
                match self.branch(&attribute.name, graph) {
                    Ok(results) => branches.push(results),
                    Err(message) => {
                        self.context.fatal = Some(message);
                        return None;
                    }
                }
            }
        }
        Some(branches)
    }

    /// What both branches agree on holds; the condition is not looked at.
    fn either(&mut self) -> Results {
        let Some(branches) = self.branches() else { return Ok(Vec::new()) };
        match branches.as_slice() {
            [one, other] => {
                let both = one.iter().zip(other.iter());
                Ok(both.map(|(a, b)| agreed(a, b)).collect())
            }
            _ => Err("it has not two branches".into()),
        }
    }

    /// The states keep their types.
    fn repeated(&mut self) -> Results {
        let Some(branches) = self.branches() else { return Ok(Vec::new()) };
        let [body] = branches.as_slice() else { return Err("it has no body".into()) };
        let count = self.node.inputs.len().saturating_sub(2);
        let states = body.iter().skip(1).take(count);
        let states = states.map(|fact| Fact::new(fact.element, Dims::Unranked));
        let scanned = body.iter().skip(count.saturating_add(1));
        let scanned = scanned.map(|fact| Fact::new(fact.element, Dims::Unranked));
        Ok(states.chain(scanned).collect())
    }

    fn scanned(&mut self) -> Results {
        let followed = self.branches().is_some();
        if followed {
            self.context.note_unknown(self.node);
        }
        Ok(Vec::new())
    }

    fn branch(&mut self, name: &str, graph: &'m Graph) -> Result<Vec<Fact>, String> {
        let scope = Scope {
            graph,
            path: format!("{}/{name}/", self.name()),
            depth: self.scope.depth + 1,
            top: false,
            ..self.scope.clone()
        };
        let captured: Vec<Fact> =
            graph.captures.iter().map(|(_, there)| self.facts[there.index()].clone()).collect();
        let inputs = vec![None; graph.inputs.len()];
        let facts = self.context.graph(&scope, inputs, &captured)?;
        self.context.nested.insert(std::ptr::from_ref(graph).addr(), facts.clone());
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
