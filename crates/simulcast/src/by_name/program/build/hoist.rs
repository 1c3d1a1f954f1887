//! Hoisting: a sub-expression is computed at its own broadcast shape, not at the result's.
//!
//! ```text
//! x + exp(sin(row)) * tanh(row)      x of shape (4000, 4000), row of shape (4000,)
//!     └───────── hoisted ─────────┘  4,000 elements rather than 16,000,000
//! ```
//!
//! A program is compiled for types and runs on any shapes, so which sub-expression is smaller than
//! the result is known only when it runs. What does not depend on shapes is decided here, once for
//! each stage: the [candidates](Candidates), with the cost of each step. With the number of elements
//! of each step, [`Candidates::choose`] picks the sub-expressions that are hoisted, in three passes
//! over the steps:
//!
//! 1. A step is at a *boundary* where a step that reads it has more elements.
//! 2. From the leaves to the root, a boundary is hoisted where that pays (`tuning`, `HOIST_…`): the cost of what
//!    it takes, times the elements saved, against a pass over memory of its own size. What a hoisted
//!    step takes is not counted again for the steps that read it.
//! 3. From the root to the leaves, a step that two stages need is hoisted too where that pays, so that it
//!    is computed once.
//!
//! [`split`] makes a stage of each, in order, and a stage of the rest, which reads them as leaves.
//!
//! Element-wise loops give the same bits wherever they run, and a hoisted 16-bit float stays in
//! 32 bits, so the result has the same bits as without hoisting.

use std::collections::BTreeSet;

use crate::by_name::program::build::builder::widened;
use crate::by_name::program::build::bytecode::{Code, LEAVES};
use crate::by_name::program::build::graph::{Graph, Kind, Node};
use crate::by_name::program::build::stages::{Leaf, Origin, Stage, Work, code};
use crate::by_name::program::front::error::ProgramError;
use simulcast_kernels::cpu::level::Level;
use simulcast_kernels::dtype::DType;
use simulcast_kernels::ops;
use simulcast_kernels::tuning::{
    HOIST_FUNCTION_PS_PER_BYTE, HOIST_LEAST_STEPS, HOIST_PASS_PS_PER_BYTE, HOIST_STAGE_PS,
    HOIST_STEP_PS_PER_BYTE, HOIST_STEPS_MAX,
};

/// No step.
const NONE: u32 = u32::MAX;
/// More than one step.
const SEVERAL: u32 = u32::MAX - 1;

/// A step of a stage that is neither a leaf nor a constant.
#[derive(Clone, Debug)]
struct Candidate {
    node: Node,
    /// The leaves of the stage that it depends on: a bit for each.
    leaves: u32,
    /// The cost of an element, in picoseconds.
    cost: u64,
    /// The bytes of an element, as it would be stored.
    size: usize,
    /// The candidates that it reads.
    args: [u32; 3],
}

impl Candidate {
    fn args(&self) -> impl Iterator<Item = usize> {
        self.args.into_iter().filter(|&arg| arg != NONE).map(|arg| arg as usize)
    }
}

/// The steps of a stage that may be hoisted, each after those that it reads; the last is the root.
#[derive(Clone, Debug)]
pub(crate) struct Candidates {
    steps: Vec<Candidate>,
    /// The cost of an element of all sub-expressions that do not depend on every leaf.
    cost: u64,
}

/// A stage whose sub-expressions are stages of their own.
#[derive(Debug)]
pub(crate) struct Split {
    /// The hoisted sub-expressions, each after those that it reads.
    pub(crate) hoisted: Vec<Stage>,
    /// What is left of the stage.
    pub(crate) rest: Stage,
}

impl Candidates {
    /// The candidates of a stage; none where no sub-expression is worth it, whatever the shapes.
    pub(crate) fn new(graph: &Graph, stage: &Stage, level: Level) -> Option<Self> {
        // What depends on one array has its axes.
        if stage.leaves.len() < 2 {
            return None;
        }
        let all = Self::all(graph, stage, level)?;
        let root = all.steps.last()?.leaves;
        let least =
            all.steps.iter().filter(|step| step.leaves != root).map(|step| least(step.size));
        (all.cost >= least.min()?).then_some(all)
    }

    /// The candidates of a stage, also those that are never worth it.
    pub(crate) fn all(graph: &Graph, stage: &Stage, level: Level) -> Option<Self> {
        let root = match (&stage.work, &graph.step(stage.node).kind) {
            (Work::Map(_), _) => stage.node,
            (Work::Fold(..), Kind::Fold(of, _)) => *of,
            _ => return None,
        };
        let leaf = |node: Node| stage.leaves.iter().position(|leaf| leaf.node == node);
        // The largest node is read by no other node.
        let (mut inside, mut open) = (Vec::new(), BTreeSet::from([root]));
        while let Some(node) = open.pop_last() {
            let kind = &graph.step(node).kind;
            if leaf(node).is_none() && !matches!(kind, Kind::Constant(_) | Kind::Literal) {
                inside.push(node);
                open.extend(kind.args());
            }
            if inside.len() > HOIST_STEPS_MAX {
                return None;
            }
        }
        if inside.len() < 2 {
            return None;
        }
        inside.reverse();
        let mut steps: Vec<Candidate> = Vec::with_capacity(inside.len());
        for &node in &inside {
            let step = graph.step(node);
            let (mut args, mut leaves) = ([NONE; 3], 0);
            for (own, &arg) in args.iter_mut().zip(step.kind.args()) {
                if let Some(leaf) = leaf(arg) {
                    leaves |= 1 << leaf;
                } else if let Ok(place) = inside.binary_search(&arg) {
                    *own = place as u32;
                    leaves |= steps[place].leaves;
                }
            }
            let (cost, size) =
                (cost(&step.kind, step.dtype(), level), widened(step.dtype()).size());
            steps.push(Candidate { node, leaves, cost, size, args });
        }
        let all = steps.last()?.leaves;
        let cost = steps.iter().filter(|step| step.leaves != all).map(|step| step.cost).sum();
        Some(Self { steps, cost })
    }

    /// The most picoseconds that hoisting can save in a stage whose result, or what it reduces, has
    /// so many elements.
    #[inline]
    pub(crate) fn most_saved(&self, elements: usize) -> u64 {
        self.cost.saturating_mul(elements as u64)
    }

    /// The nodes of the steps, in order, and the leaves that each depends on: a bit for each.
    pub(crate) fn steps(&self) -> impl Iterator<Item = (Node, u32)> {
        self.steps.iter().map(|step| (step.node, step.leaves))
    }

    /// The steps to hoist, in order, where step `n` has `elements[n]` elements; they take no more
    /// than `bytes` of memory together. With `always`, every step that is smaller than one that reads it.
    pub(crate) fn choose(&self, elements: &[usize], bytes: u64, always: bool) -> Vec<Node> {
        let mut choice = Choice {
            always,
            steps: &self.steps,
            elements,
            left: bytes,
            hoisted: vec![false; self.steps.len()],
            visited: vec![NONE; self.steps.len()],
            visits: 0,
        };
        // The fewest elements of a larger step that reads each one.
        let mut outer = vec![usize::MAX; self.steps.len()];
        for (at, step) in self.steps.iter().enumerate() {
            for arg in step.args().filter(|&arg| elements[arg] < elements[at]) {
                outer[arg] = outer[arg].min(elements[at]);
            }
        }
        for (at, &outer) in outer.iter().enumerate().filter(|(_, outer)| **outer != usize::MAX) {
            choice.hoist(at, outer - elements[at]);
        }
        if choice.hoisted.contains(&true) {
            choice.share();
        }
        let chosen = self.steps.iter().zip(&choice.hoisted).filter(|(_, hoisted)| **hoisted);
        chosen.map(|(step, _)| step.node).collect()
    }
}

/// A choice under way.
struct Choice<'c> {
    always: bool,
    steps: &'c [Candidate],
    elements: &'c [usize],
    /// The bytes that hoisted values may still take.
    left: u64,
    hoisted: Vec<bool>,
    /// The visit that last came to each step.
    visited: Vec<u32>,
    visits: u32,
}

impl Choice<'_> {
    /// Hoists a step, so that it is computed for `saved` elements fewer, where that pays.
    fn hoist(&mut self, at: usize, saved: usize) {
        let (size, elements) = (self.steps[at].size, self.elements[at] as u64);
        let (cost, bytes) = (self.cost(at), elements.saturating_mul(size as u64));
        let gain = cost.saturating_mul(saved as u64);
        let pass = bytes.saturating_mul(HOIST_PASS_PS_PER_BYTE).saturating_add(HOIST_STAGE_PS);
        if self.always || cost >= least(size) && gain > pass && bytes <= self.left {
            self.hoisted[at] = true;
            self.left = self.left.saturating_sub(bytes);
        }
    }

    /// The cost of an element of a step, with that of everything it reads up to leaves and hoisted steps.
    fn cost(&mut self, at: usize) -> u64 {
        self.visits += 1;
        let (mut cost, mut open) = (0_u64, vec![at]);
        while let Some(at) = open.pop() {
            if std::mem::replace(&mut self.visited[at], self.visits) != self.visits {
                cost = cost.saturating_add(self.steps[at].cost);
                open.extend(self.steps[at].args().filter(|&arg| !self.hoisted[arg]));
            }
        }
        cost
    }

    /// Hoists what would be computed more than once: for two hoisted steps, or for one and the rest.
    fn share(&mut self) {
        // The stage that computes each step: the hoisted step that takes it, or the root.
        let mut stage = vec![NONE; self.steps.len()];
        for at in (0..self.steps.len()).rev() {
            if stage[at] == SEVERAL && !self.hoisted[at] {
                self.hoist(at, self.elements[at]);
            }
            let root = at + 1 == self.steps.len();
            let own = if self.hoisted[at] || root { at as u32 } else { stage[at] };
            for arg in self.steps[at].args() {
                stage[arg] = if stage[arg] == NONE || stage[arg] == own { own } else { SEVERAL };
            }
        }
    }
}

/// The cost of an element of a step, in picoseconds.
fn cost(kind: &Kind, dtype: DType, level: Level) -> u64 {
    let (slow, compute) = match *kind {
        Kind::Apply(op, compute, _) => {
            let wide = widened(compute);
            (ops::kernels(op, wide, level).is_some_and(|kernels| kernels.compute_bound), wide)
        }
        _ => (false, dtype),
    };
    let each = if slow { HOIST_FUNCTION_PS_PER_BYTE } else { HOIST_STEP_PS_PER_BYTE };
    each * compute.size() as u64
}

/// The least cost of a sub-expression that is hoisted, in picoseconds for an element.
fn least(size: usize) -> u64 {
    HOIST_LEAST_STEPS * HOIST_STEP_PS_PER_BYTE * size as u64
}

/// Makes stages of their own of hoisted steps; none where one of them would read too many arrays.
pub(crate) fn split(
    graph: &Graph,
    stage: &Stage,
    hoisted: &[Node],
    level: Level,
) -> Result<Option<Split>, ProgramError> {
    let mut all: Vec<Leaf> = stage.leaves.clone();
    all.extend(hoisted.iter().enumerate().map(|(at, &node)| Leaf {
        node,
        origin: Origin::Hoisted(at),
        views: Vec::new(),
        dtype: widened(graph.step(node).dtype()),
    }));
    all.sort_unstable_by_key(|leaf| leaf.node);
    let made = |root: Node, narrow: bool| -> Result<(Code, Vec<Leaf>), ProgramError> {
        let given = all.iter().filter(|leaf| leaf.node != root);
        let given: Vec<(Node, DType)> = given.map(|leaf| (leaf.node, leaf.dtype)).collect();
        let (code, read) = code(graph, root, &given, narrow, level)?;
        let leaves: Vec<Leaf> =
            all.iter().filter(|leaf| read.binary_search(&leaf.node).is_ok()).cloned().collect();
        Ok((code, leaves))
    };
    let plain = |node: Node, leaves: Vec<Leaf>, work: Work, narrow: bool| Stage {
        node,
        leaves,
        work,
        narrow,
        spent: Vec::new(),
        candidates: None,
    };
    let mut stages = Vec::with_capacity(hoisted.len());
    for &node in hoisted {
        let (code, leaves) = made(node, false)?;
        stages.push(plain(node, leaves, Work::Map(code), false));
    }
    let rest = match (&stage.work, &graph.step(stage.node).kind) {
        (Work::Fold(_, over), Kind::Fold(of, _)) => {
            let (code, leaves) = made(*of, stage.narrow)?;
            plain(stage.node, leaves, Work::Fold(code, over.clone()), stage.narrow)
        }
        _ => {
            let (code, leaves) = made(stage.node, stage.narrow)?;
            plain(stage.node, leaves, Work::Map(code), stage.narrow)
        }
    };
    let fits = stages.iter().chain([&rest]).all(|stage| stage.leaves.len() <= LEAVES);
    Ok(fits.then_some(Split { hoisted: stages, rest }))
}
