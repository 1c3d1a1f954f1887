//! Functions and graphs inside nodes: followed where they are called.

use simulcast_core::{Dim, Dims};

use super::rows;
use crate::ElementType;
use crate::infer::{Context, Fact, InferNode, Results, Scope};
use crate::model::{AttributeValue, Graph};

/// So many rounds of a loop are followed until its states are given up.
const ROUNDS: usize = 3;

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
                match self.branch(&attribute.name, graph, Vec::new()) {
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

    /// The branch that is taken, where the condition is known; else what both branches agree on.
    fn either(&mut self) -> Results {
        let taken = self.input(0).ints().and_then(|known| known.first().copied());
        let graph = |name: &str| match self.node.attribute(name) {
            Some(AttributeValue::Graphs(graphs)) => graphs.first(),
            _ => None,
        };
        let (Some(then), Some(other)) = (graph("then_branch"), graph("else_branch")) else {
            return Err("it has not two branches".into());
        };
        let start = self.context.mark();
        let first = self.branch("then_branch", then, Vec::new());
        let middle = self.context.mark();
        let second = self.branch("else_branch", other, Vec::new());
        let (then, other) = match (first, second) {
            (Ok(then), Ok(other)) => (then, other),
            (Err(message), _) | (_, Err(message)) => {
                self.context.fatal = Some(message);
                return Ok(Vec::new());
            }
        };
        let failed = [self.context.fails(&start, Some(&middle)), self.context.fails(&middle, None)];
        Ok(match (taken, failed) {
            // A branch that cannot work with these sizes is not taken where the model works.
            (Some(0), _) | (None, [true, false]) => {
                self.context.forgive(&start, Some(&middle));
                other
            }
            (Some(_), _) | (None, [false, true]) => {
                self.context.forgive(&middle, None);
                then
            }
            (None, _) => then.iter().zip(other.iter()).map(|(a, b)| agreed(a, b)).collect(),
        })
    }

    /// States, and one more axis in front of what is collected.
    fn repeated(&mut self) -> Results {
        let [AttributeValue::Graphs(bodies)] = self.bodies()[..] else {
            return Err("it has no body".into());
        };
        let [body] = bodies.as_slice() else { return Err("it has no body".into()) };
        let count = self.node.inputs.len().saturating_sub(2);
        let types = [ElementType::I64, ElementType::Bool];
        // Scalars, or vectors of one element where the body declares that.
        let fixed = types.into_iter().zip(&body.inputs).map(|(element, input)| {
            let declared = body.value(*input).declared.as_ref().map_or(0, |own| own.dims().len());
            Some(Fact::new(Some(element), vec![Dim::Size(1); declared.min(1)].into()))
        });
        let fixed: Vec<Option<Fact>> = fixed.collect();
        let at_least_once = {
            let known =
                |input: usize| self.input(input).ints().and_then(|own| own.first().copied());
            let more = !self.has(0) || known(0).is_some_and(|count| count >= 1);
            more && (!self.has(1) || known(1).is_some_and(|condition| condition != 0))
        };
        let states = (2..2 + count).map(|input| self.input(input).clone()).collect();
        let Some((states, results)) = self.settled(body, &fixed, states, &[], 1) else {
            return Ok(Vec::new());
        };
        // What the body made is there after the first round, whatever the state was before.
        let states = match at_least_once {
            true => results.iter().skip(1).take(count).map(known_sizes).collect(),
            false => states,
        };
        // How often it runs is known only where nothing ends it early.
        let collected = results.into_iter().skip(1 + count).map(|fact| {
            let dims = fact.dims.dims().map(|dims| [&[Dim::UNKNOWN], dims].concat().into());
            Fact::new(fact.element, dims.unwrap_or(Dims::Unranked))
        });
        Ok(states.into_iter().chain(collected).collect())
    }

    /// States, and the elements of sequences put together along an axis.
    fn scanned(&mut self) -> Results {
        let [AttributeValue::Graphs(bodies)] = self.bodies()[..] else {
            return Err("it has no body".into());
        };
        let [body] = bodies.as_slice() else { return Err("it has no body".into()) };
        let sequences = usize::try_from(self.int("num_scan_inputs").unwrap_or(0)).unwrap_or(0);
        let states = self.node.inputs.len().checked_sub(sequences);
        // The oldest form has a batch around everything.
        let Some(states) = states.filter(|_| self.opset >= 9) else {
            self.branches();
            self.context.note_unknown(self.node);
            return Ok(Vec::new());
        };
        let (input_axes, output_axes) =
            (self.ints("scan_input_axes"), self.ints("scan_output_axes"));
        let axis_of = |axes: Option<&[i64]>, at: usize| {
            axes.and_then(|axes| axes.get(at).copied()).unwrap_or(0)
        };
        let (mut length, mut elements) = (Dim::UNKNOWN, Vec::new());
        for sequence in 0..sequences {
            let own = self.input(states + sequence);
            let Some(dims) = own.dims.dims() else {
                elements.push(Some(Fact::new(own.element, Dims::Unranked)));
                continue;
            };
            let mut dims = dims.to_vec();
            let axis = self.axis(axis_of(input_axes, sequence), dims.len())?;
            length = self.equal(&length, &dims.remove(axis), "the lengths of the sequences")?;
            elements.push(Some(Fact::new(own.element, dims.into())));
        }
        let initial = (0..states).map(|input| self.input(input).clone()).collect();
        let Some((settled, results)) = self.settled(body, &[], initial, &elements, 0) else {
            return Ok(Vec::new());
        };
        let mut all = settled;
        for (at, fact) in results.into_iter().skip(states).enumerate() {
            let dims = match fact.dims.dims() {
                Some(dims) => {
                    let axis = self.axis(axis_of(output_axes, at), dims.len() + 1)?;
                    let mut dims = dims.to_vec();
                    dims.insert(axis, length.clone());
                    dims.into()
                }
                None => Dims::Unranked,
            };
            all.push(Fact::new(fact.element, dims));
        }
        Ok(all)
    }

    /// The graphs among the attributes.
    fn bodies(&self) -> Vec<&'m AttributeValue> {
        let all = self.node.attributes.iter().map(|attribute| &attribute.value);
        all.filter(|value| is_graph(value)).collect()
    }

    /// What holds of the states of a loop before and after each round, and the results of its body:
    /// sizes that a round changes are given up until none does. `skipped` results come before the
    /// states.
    fn settled(
        &mut self,
        body: &'m Graph,
        before: &[Option<Fact>],
        mut states: Vec<Fact>,
        after: &[Option<Fact>],
        skipped: usize,
    ) -> Option<(Vec<Fact>, Vec<Fact>)> {
        for state in &mut states {
            // Elements change from round to round.
            (state.values, state.floats) = (None, None);
        }
        let name = self.bodies_name();
        for round in 0.. {
            let known = |state: &Fact| Some(state.clone());
            let mut inputs = before.to_vec();
            inputs.extend(states.iter().map(known));
            inputs.extend(after.iter().cloned());
            let mark = self.context.mark();
            let results = match self.branch(name, body, inputs) {
                Ok(results) => results,
                Err(message) => {
                    self.context.fatal = Some(message);
                    return None;
                }
            };
            let made = results.iter().skip(skipped).take(states.len());
            let mut next: Vec<Fact> =
                states.iter().zip(made).map(|(state, made)| agreed(state, made)).collect();
            next.resize(states.len(), Fact::UNKNOWN);
            let is_stable = next.iter().zip(&states).all(|(next, state)| next.dims == state.dims);
            if is_stable {
                return Some((next, results));
            }
            // Sizes can only be given up so often; a state whose rank changes is given up at once.
            if round >= ROUNDS {
                next.iter_mut().for_each(|state| state.dims = Dims::Unranked);
            }
            states = next;
            self.context.rewind(&mark);
        }
        None
    }

    fn bodies_name(&self) -> &'m str {
        let own = self.node.attributes.iter().find(|own| is_graph(&own.value));
        own.map_or("body", |own| own.name.as_str())
    }

    fn branch(
        &mut self,
        name: &str,
        graph: &'m Graph,
        mut inputs: Vec<Option<Fact>>,
    ) -> Result<Vec<Fact>, String> {
        let scope = Scope {
            graph,
            path: format!("{}/{name}/", self.name()),
            depth: self.scope.depth + 1,
            top: false,
            ..self.scope.clone()
        };
        let captured: Vec<Fact> =
            graph.captures.iter().map(|(_, there)| self.facts[there.index()].clone()).collect();
        inputs.resize(graph.inputs.len(), None);
        let facts = self.context.graph(&scope, inputs, &captured)?;
        self.context.nested.insert(std::ptr::from_ref(graph).addr(), facts.clone());
        Ok(graph.outputs.iter().map(|output| facts[output.index()].clone()).collect())
    }
}

fn is_graph(value: &AttributeValue) -> bool {
    matches!(value, AttributeValue::Graphs(_))
}

/// Type and sizes, whatever the elements.
fn known_sizes(fact: &Fact) -> Fact {
    Fact::new(fact.element, fact.dims.clone())
}

/// What holds of both.
fn agreed(a: &Fact, b: &Fact) -> Fact {
    let dims = match (a.dims.dims(), b.dims.dims()) {
        (Some(x), Some(y)) if x.len() == y.len() => {
            let both = x.iter().zip(y).map(|(x, y)| match x == y {
                true => x.clone(),
                false => Dim::UNKNOWN,
            });
            Dims::from(both.collect::<Vec<_>>())
        }
        _ => Dims::Unranked,
    };
    Fact::new(a.element.filter(|element| Some(*element) == b.element), dims)
}
