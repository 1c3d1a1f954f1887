//! Chains of element-wise nodes become one program each.
//!
//! A value that nothing but nodes of one chain reads is never written to memory. Whatever else
//! reads it (another chain, a node of another kind, a branch, the caller) finds an array. Steps know
//! which values nobody reads after them, so that memory is given back, or used again, at once.

use std::collections::{HashMap, HashSet};
use std::sync::OnceLock;

use simulcast::program::Builder;
use simulcast::types::Promotion;
use simulcast::{AnyView, TypedProgram};

use super::code::{Code, Steps, Whole};
use super::error::{NodeError, RunError};
use super::node::RunNode;
use super::plan::{Raw, Slot};

/// The most nodes of a chain: what is computed from many steps ago is no longer in the cache.
const MEMBERS: usize = 32;

/// Steps in order, and the values that they leave.
#[derive(Debug)]
pub(crate) struct Block {
    pub(crate) steps: Vec<Step>,
    pub(crate) results: Vec<Slot>,
}

impl Block {
    /// The values that its steps read; those of chains only where they are asked for.
    pub(crate) fn reads(&self, chains: bool) -> HashSet<Slot> {
        let mut reads = Vec::new();
        self.steps.iter().for_each(|step| step.work.reads(chains, &mut reads));
        reads.into_iter().collect()
    }
}

/// A step of a run.
#[derive(Debug)]
pub(crate) struct Step {
    pub(crate) work: Work,
    /// Values that nobody reads afterwards.
    pub(crate) last: Vec<Slot>,
}

#[derive(Debug)]
pub(crate) enum Work {
    Chain(Chain),
    Whole { call: RunNode, code: Whole, inputs: Vec<Read>, outputs: Vec<Option<Slot>> },
    If { call: RunNode, condition: Slot, branches: [Block; 2], outputs: Vec<Option<Slot>> },
}

/// What a node reads as one of its inputs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Read {
    /// The value; `None` where the input is left out.
    pub(crate) slot: Option<Slot>,
    /// Whether nobody reads the value afterwards, not even as another input of the node.
    pub(crate) last: bool,
}

/// Element-wise nodes that become one program, for the types that they first meet.
#[derive(Debug)]
pub(crate) struct Chain {
    members: Vec<Member>,
    pub(crate) operands: Vec<Slot>,
    names: Vec<String>,
    pub(crate) output: Slot,
    made: OnceLock<TypedProgram>,
}

#[derive(Debug)]
struct Member {
    call: RunNode,
    steps: Steps,
    args: Vec<Option<Arg>>,
}

#[derive(Clone, Copy, Debug)]
enum Arg {
    Operand(usize),
    Member(usize),
}

impl Chain {
    /// How many nodes it has.
    pub(crate) fn len(&self) -> usize {
        self.members.len()
    }

    /// Does something with the program for operands of these types.
    pub(crate) fn with<T>(
        &self,
        operands: &[AnyView<'_>],
        run: impl FnOnce(&TypedProgram) -> Result<T, RunError>,
    ) -> Result<T, RunError> {
        if self.made.get().is_none() {
            let _ = self.made.set(self.program(operands)?);
        }
        match self.made.get() {
            Some(program) if is_for(program, operands) => run(program),
            _ => run(&self.program(operands)?),
        }
    }

    fn program(&self, operands: &[AnyView<'_>]) -> Result<TypedProgram, RunError> {
        let mut build = Builder::new(Promotion::Strict);
        let named = self.names.iter().zip(operands);
        let operands: Vec<_> =
            named.map(|(name, operand)| build.operand(name, operand.dtype())).collect();
        let mut made = Vec::with_capacity(self.members.len());
        for (index, member) in self.members.iter().enumerate() {
            build.at(index..index + 1);
            let node = |arg: &Option<Arg>| match (*arg)? {
                Arg::Operand(operand) => operands.get(operand).copied(),
                Arg::Member(member) => made.get(member).copied(),
            };
            let args: Vec<_> = member.args.iter().map(node).collect();
            let steps = (member.steps)(&member.call, &mut build, &args);
            made.push(steps.map_err(|why| self.error(index, why))?);
        }
        let root = made.last().copied().ok_or_else(|| self.error(0, "it is empty".into()))?;
        build.finish(root).map_err(|error| self.failed(error))
    }

    /// An error of the program, as one of the node that it is about.
    pub(crate) fn failed(&self, error: simulcast::ProgramError) -> RunError {
        let about = if error.span.is_empty() { self.members.len() - 1 } else { error.span.start };
        self.error(about, error.into())
    }

    pub(crate) fn error(&self, member: usize, why: NodeError) -> RunError {
        let call = self.members.get(member).or(self.members.last()).map(|member| &member.call);
        let (node, op) = call.map_or_else(Default::default, |c| (c.node.clone(), c.op.clone()));
        RunError::Node { node, op, why }
    }
}

/// Whether a program was made for operands of these types.
fn is_for(program: &TypedProgram, operands: &[AnyView<'_>]) -> bool {
    let own = program.operands().iter().map(|own| own.dtype);
    own.eq(operands.iter().map(AnyView::dtype))
}

/// What reads a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reader {
    /// The nodes of one chain.
    Chain(usize),
    /// Something that needs an array.
    Array,
}

/// Brings the element-wise steps of a block together, and notes where values are last read.
///
/// Values from around a branch may be read after it, so `is_branch` keeps them.
pub(crate) fn fuse(raw: Vec<Raw>, results: &[Slot], names: &[String], is_branch: bool) -> Block {
    let chains = chains(&raw, results);
    let mut members: HashMap<usize, Vec<usize>> = HashMap::new();
    for (index, chain) in chains.iter().enumerate() {
        if let Some(chain) = chain {
            members.entry(*chain).or_default().push(index);
        }
    }
    let mut raw: Vec<Option<Raw>> = raw.into_iter().map(Some).collect();
    let mut steps = Vec::new();
    for index in 0..raw.len() {
        let work = match chains[index] {
            // The chain stands where its last node does.
            Some(chain) if chain == index => {
                let own = members.remove(&chain).unwrap_or_default();
                let nodes = own.iter().filter_map(|&member| raw[member].take()).collect();
                build(nodes, names).map(Work::Chain)
            }
            Some(_) => None,
            None => raw[index].take().and_then(|one| whole(one, names)),
        };
        steps.extend(work.map(|work| Step { work, last: Vec::new() }));
    }
    let written: HashSet<Slot> = steps.iter().flat_map(|step| step.work.writes()).collect();
    let mut seen: HashSet<Slot> = results.iter().copied().collect();
    for step in steps.iter_mut().rev() {
        let mut reads = Vec::new();
        step.work.reads(true, &mut reads);
        // A result that nobody reads goes at once.
        reads.extend(step.work.writes());
        reads.retain(|slot| seen.insert(*slot) && (!is_branch || written.contains(slot)));
        if let Work::Whole { inputs, .. } = &mut step.work {
            let mut left: HashSet<Slot> = reads.iter().copied().collect();
            for input in inputs.iter_mut().rev() {
                input.last = input.slot.is_some_and(|slot| left.remove(&slot));
            }
        }
        step.last = reads;
    }
    Block { steps, results: results.to_vec() }
}

/// The last node of the chain that each node belongs to, by number.
fn chains(raw: &[Raw], results: &[Slot]) -> Vec<Option<usize>> {
    let mut readers: HashMap<Slot, Reader> =
        results.iter().map(|slot| (*slot, Reader::Array)).collect();
    let mut chains = vec![None; raw.len()];
    let mut sizes: HashMap<usize, usize> = HashMap::new();
    for (index, one) in raw.iter().enumerate().rev() {
        let reader = match one {
            Raw::Node { code: Code::Steps(_), outputs, .. } => {
                let output = outputs.first().copied().flatten();
                let reader = output.and_then(|output| readers.get(&output));
                let chain = match reader {
                    Some(Reader::Chain(chain)) if sizes.get(chain) < Some(&MEMBERS) => *chain,
                    _ => index,
                };
                *sizes.entry(chain).or_default() += 1;
                chains[index] = Some(chain);
                Reader::Chain(chain)
            }
            _ => Reader::Array,
        };
        let mut reads = Vec::new();
        read_by(one, &mut reads);
        for slot in reads {
            let known = readers.entry(slot).or_insert(reader);
            if *known != reader {
                *known = Reader::Array;
            }
        }
    }
    chains
}

/// The values that a step reads, those of its branches included.
fn read_by(raw: &Raw, reads: &mut Vec<Slot>) {
    match raw {
        Raw::Node { inputs, .. } => reads.extend(inputs.iter().flatten()),
        Raw::If { condition, branches, .. } => {
            reads.push(*condition);
            for (steps, results) in branches {
                steps.iter().for_each(|step| read_by(step, reads));
                reads.extend(results);
            }
        }
    }
}

fn whole(raw: Raw, names: &[String]) -> Option<Work> {
    Some(match raw {
        Raw::Node { call, code: Code::Whole(code), inputs, outputs } => {
            let inputs = inputs.into_iter().map(|slot| Read { slot, last: false }).collect();
            Work::Whole { call, code, inputs, outputs }
        }
        // Never: nodes of steps are in chains.
        Raw::Node { .. } => return None,
        Raw::If { call, condition, branches, outputs } => {
            let branches = branches.map(|(steps, results)| fuse(steps, &results, names, true));
            Work::If { call, condition, branches, outputs }
        }
    })
}

fn build(nodes: Vec<Raw>, names: &[String]) -> Option<Chain> {
    let mut known: HashMap<Slot, Arg> = HashMap::new();
    let (mut members, mut operands, mut output) = (Vec::new(), Vec::new(), None);
    for node in nodes {
        let Raw::Node { call, code: Code::Steps(steps), inputs, outputs } = node else { continue };
        let arg = |slot: &Option<Slot>| {
            let slot = (*slot)?;
            Some(*known.entry(slot).or_insert_with(|| {
                operands.push(slot);
                Arg::Operand(operands.len() - 1)
            }))
        };
        let args = inputs.iter().map(arg).collect();
        output = outputs.first().copied().flatten();
        known.extend(output.map(|output| (output, Arg::Member(members.len()))));
        members.push(Member { call, steps, args });
    }
    // Operands of one name would be one operand.
    let mut named: HashMap<&str, usize> = HashMap::new();
    for name in operands.iter().filter_map(|slot: &Slot| names.get(*slot)) {
        *named.entry(name).or_default() += 1;
    }
    let name = |(n, slot): (usize, &Slot)| match names.get(*slot) {
        Some(name) if named.get(name.as_str()) == Some(&1) => name.clone(),
        name => format!("{}#{n}", name.map_or("", String::as_str)),
    };
    let names = operands.iter().enumerate().map(name).collect();
    Some(Chain { members, operands, names, output: output?, made: OnceLock::new() })
}

impl Work {
    fn reads(&self, chains: bool, reads: &mut Vec<Slot>) {
        match self {
            Self::Chain(_) if !chains => {}
            Self::Chain(chain) => reads.extend(&chain.operands),
            Self::Whole { inputs, .. } => reads.extend(inputs.iter().filter_map(|own| own.slot)),
            Self::If { condition, branches, .. } => {
                reads.push(*condition);
                for branch in branches {
                    branch.steps.iter().for_each(|step| step.work.reads(chains, reads));
                    reads.extend(&branch.results);
                }
            }
        }
    }

    fn writes(&self) -> Vec<Slot> {
        match self {
            Self::Chain(chain) => vec![chain.output],
            Self::Whole { outputs, .. } | Self::If { outputs, .. } => {
                outputs.iter().flatten().copied().collect()
            }
        }
    }
}
