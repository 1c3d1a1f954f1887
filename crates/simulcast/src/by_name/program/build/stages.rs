//! Stages: a graph cut into pieces that run one after the other.
//!
//! Element-wise steps are one stage, however many. A stage of its own is made for
//!
//! - a reduction whose result is used further,
//! - a value that is seen with other axes, such as `(a + b)[:, None]`: it is computed once, before
//!   it is repeated,
//! - text, which cannot be computed in tiles,
//! - what would read more than 16 arrays at once.

use std::mem::replace;

use crate::by_name::program::build::bytecode::{Code, Flat, LEAVES};
use crate::by_name::program::build::graph::{Graph, Kind, Node, Over, Value, View};
use crate::by_name::program::build::hoist::Candidates;
use crate::by_name::program::front::axes::{AxisPattern, axis_of};
use crate::by_name::program::front::error::{ProgramError, ProgramErrorKind};
use crate::by_name::program::front::syntax_error::SyntaxErrorKind;
use crate::by_name::types::OperandType;
use simulcast_kernels::cpu::level::Level;
use simulcast_kernels::dtype::DType;
use simulcast_kernels::op::Op;

/// Where a leaf comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    Operand(usize),
    Stage(usize),
    Text(String),
    /// A sub-expression of the same stage, which was [hoisted](crate::by_name::program::build::hoist).
    Hoisted(usize),
}

/// An array that a stage reads, perhaps with other axes.
#[derive(Clone, Debug)]
pub(crate) struct Leaf {
    pub(crate) node: Node,
    pub(crate) origin: Origin,
    /// From the array outwards.
    pub(crate) views: Vec<Node>,
    /// The type of the array's elements: the step's own, or a wider one where it was hoisted.
    pub(crate) dtype: DType,
}

/// What a stage does.
#[derive(Clone, Debug)]
pub(crate) enum Work {
    Map(Code),
    Fold(Code, Over),
    /// An operation on text, or a copy of it.
    Text(Option<Op>),
}

/// A piece of a program.
#[derive(Clone, Debug)]
pub(crate) struct Stage {
    /// The value that it makes.
    pub(crate) node: Node,
    pub(crate) leaves: Vec<Leaf>,
    pub(crate) work: Work,
    /// Whether the result is rounded to the value's own type. A 16-bit float that is hoisted or
    /// reduced stays in 32 bits.
    pub(crate) narrow: bool,
    /// The stages whose results no later stage reads.
    pub(crate) spent: Vec<usize>,
    /// The sub-expressions that may be hoisted, where there are any worth it.
    pub(crate) candidates: Option<Candidates>,
}

impl Stage {
    /// The stages whose results it reads.
    fn reads(&self) -> impl Iterator<Item = usize> {
        self.leaves.iter().filter_map(|leaf| match leaf.origin {
            Origin::Stage(stage) => Some(stage),
            _ => None,
        })
    }
}

/// The stages that make a value, which the last one does.
pub(crate) fn stages(graph: &Graph, root: Node, level: Level) -> Result<Vec<Stage>, ProgramError> {
    let mut staging = Staging {
        graph,
        level,
        made: vec![None; graph.steps.len()],
        reads: vec![Vec::new(); graph.steps.len()],
        stages: Vec::new(),
    };
    let (needed, whole) = needed(graph, root);
    for at in (0..=root.index()).filter(|&at| needed[at]) {
        let node = Node(at as u32);
        staging.visit(node)?;
        // Before any other step reads it, so that it is computed once.
        if whole[at] {
            staging.settle(node)?;
        }
    }
    if staging.made[root.index()] != staging.stages.len().checked_sub(1)
        || staging.stages.is_empty()
    {
        staging.cut(root)?;
    }
    let mut stages = staging.stages;
    for stage in &mut stages {
        stage.candidates = Candidates::new(graph, stage, level);
    }
    let mut read = vec![false; stages.len()];
    for stage in stages.iter_mut().rev() {
        let last: Vec<usize> = stage.reads().filter(|&at| !replace(&mut read[at], true)).collect();
        stage.spent = last;
    }
    Ok(stages)
}

/// Which steps a value needs, and which of them it needs as arrays.
fn needed(graph: &Graph, root: Node) -> (Vec<bool>, Vec<bool>) {
    let mut needed = vec![false; graph.steps.len()];
    let mut whole = needed.clone();
    needed[root.index()] = true;
    for at in (0..=root.index()).rev() {
        if needed[at] {
            let kind = &graph.steps[at].kind;
            let wholly = matches!(kind, Kind::View(..) | Kind::Apply(_, DType::String, _));
            for arg in kind.args() {
                needed[arg.index()] = true;
                whole[arg.index()] |= wholly;
            }
        }
    }
    (needed, whole)
}

struct Staging<'g> {
    graph: &'g Graph,
    level: Level,
    /// The stage that makes each step, where one does.
    made: Vec<Option<usize>>,
    /// The leaves that each step reads, if it is no leaf itself.
    reads: Vec<Vec<Node>>,
    stages: Vec<Stage>,
}

impl Staging<'_> {
    /// Whether a step is an array as it stands.
    fn is_leaf(&self, node: Node) -> bool {
        let step = self.graph.step(node);
        match &step.kind {
            Kind::Operand(_) => true,
            Kind::Constant(Value::Text(_)) => true,
            // A number stays one, also where its array is seen with other axes.
            Kind::Constant(Value::Plain(_)) => false,
            Kind::View(..) => true,
            _ => self.made[node.index()].is_some(),
        }
    }

    fn visit(&mut self, node: Node) -> Result<(), ProgramError> {
        let step = self.graph.step(node);
        match step.kind.clone() {
            Kind::View(_, View::Insert(pattern))
                if pattern.iter().filter(|one| **one == AxisPattern::Rest).count() > 1 =>
            {
                let kind = ProgramErrorKind::Parse(SyntaxErrorKind::Index);
                return Err(ProgramError::new(kind, step.span.clone()));
            }
            Kind::Operand(_) | Kind::Literal | Kind::Constant(_) | Kind::View(..) => {}
            Kind::Fold(of, over) => {
                let (code, leaves) = self.code(of, false)?;
                self.finish(node, leaves, Work::Fold(code, over), false);
            }
            Kind::Apply(op, DType::String, _) => {
                let args: Vec<Node> = step.kind.args().to_vec();
                let leaves = args.iter().map(|&arg| self.leaf(arg)).collect();
                self.finish(node, leaves, Work::Text(Some(op)), true);
            }
            Kind::Apply(..) | Kind::Cast(_) => {
                let args: Vec<Node> = step.kind.args().to_vec();
                loop {
                    let mut reads = self.read_by(&args);
                    if reads.len() <= LEAVES {
                        reads.shrink_to_fit();
                        self.reads[node.index()] = reads;
                        break;
                    }
                    // The argument that reads most becomes an array.
                    let open = args.iter().filter(|arg| !self.is_leaf(**arg));
                    match open.max_by_key(|arg| self.reads[arg.index()].len()) {
                        Some(&most) => self.cut(most)?,
                        // Never: three arrays are few.
                        None => break,
                    }
                }
            }
        }
        Ok(())
    }

    /// The leaves that some steps read, each once.
    fn read_by(&self, nodes: &[Node]) -> Vec<Node> {
        let mut reads: Vec<Node> = Vec::new();
        for &node in nodes {
            if self.is_leaf(node) {
                reads.push(node);
            } else {
                reads.extend(&self.reads[node.index()]);
            }
        }
        reads.sort_unstable();
        reads.dedup();
        reads
    }

    /// Makes sure that a step is an array.
    fn settle(&mut self, node: Node) -> Result<(), ProgramError> {
        let made = self.made[node.index()].is_some();
        if made || self.is_leaf(node) { Ok(()) } else { self.cut(node) }
    }

    /// A stage for a step.
    fn cut(&mut self, node: Node) -> Result<(), ProgramError> {
        if self.graph.step(node).dtype() == DType::String {
            let leaves = vec![self.leaf(node)];
            self.finish(node, leaves, Work::Text(None), true);
            return Ok(());
        }
        let (code, leaves) = self.code(node, true)?;
        self.finish(node, leaves, Work::Map(code), true);
        Ok(())
    }

    fn finish(&mut self, node: Node, leaves: Vec<Leaf>, work: Work, narrow: bool) {
        self.made[node.index()] = Some(self.stages.len());
        let (spent, candidates) = (Vec::new(), None);
        self.stages.push(Stage { node, leaves, work, narrow, spent, candidates });
    }

    /// A leaf, through its views to what it is a view of.
    fn leaf(&self, node: Node) -> Leaf {
        let mut views = Vec::new();
        let mut at = node;
        let origin = loop {
            if let Some(stage) = self.made[at.index()] {
                break Origin::Stage(stage);
            }
            match &self.graph.step(at).kind {
                Kind::Operand(operand) => break Origin::Operand(*operand),
                Kind::Constant(Value::Text(text)) => break Origin::Text(text.clone()),
                Kind::View(of, _) => {
                    views.push(at);
                    at = *of;
                }
                // Never: leaves are the above.
                _ => break Origin::Text(String::new()),
            }
        };
        views.reverse();
        Leaf { node, origin, views, dtype: self.graph.step(node).dtype() }
    }

    /// The code that makes a step of leaves.
    fn code(&self, root: Node, narrow: bool) -> Result<(Code, Vec<Leaf>), ProgramError> {
        let leaves = self.read_by(&[root]);
        let leaves: Vec<(Node, DType)> =
            leaves.into_iter().map(|leaf| (leaf, self.graph.step(leaf).dtype())).collect();
        let (code, read) = code(self.graph, root, &leaves, narrow, self.level)?;
        Ok((code, read.into_iter().map(|leaf| self.leaf(leaf)).collect()))
    }
}

/// The code that makes a step of some leaves, sorted, whose elements have these types; and the
/// leaves that it reads.
///
/// A step that became an array after the root was visited is none of the leaves: it is computed
/// once more.
pub(crate) fn code(
    graph: &Graph,
    root: Node,
    leaves: &[(Node, DType)],
    narrow: bool,
    level: Level,
) -> Result<(Code, Vec<Node>), ProgramError> {
    let Flattened { steps, read, types } = flattened(graph, root, leaves)?;
    let code = Code::new(&steps, &types, narrow, level);
    Ok((code.ok_or_else(|| unsupported(graph, root))?, read))
}

/// The steps between some leaves and a root, each after those that it reads.
pub(crate) struct Flattened {
    pub(crate) steps: Vec<(Flat, DType)>,
    /// The leaves that the steps read, and the types of their elements.
    pub(crate) read: Vec<Node>,
    pub(crate) types: Vec<DType>,
}

/// The steps that make a root of some leaves, sorted, whose elements have these types.
pub(crate) fn flattened(
    graph: &Graph,
    root: Node,
    leaves: &[(Node, DType)],
) -> Result<Flattened, ProgramError> {
    let leaf = |node: Node| leaves.binary_search_by_key(&node, |leaf| leaf.0).ok();
    // The steps between the leaves and the root, in order.
    let mut inside: Vec<Node> = Vec::new();
    let mut open = vec![root];
    let mut seen = std::collections::BTreeSet::new();
    while let Some(node) = open.pop() {
        if seen.insert(node) {
            inside.push(node);
            if leaf(node).is_none() {
                open.extend(graph.step(node).kind.args());
            }
        }
    }
    inside.sort_unstable();
    let place = |node: Node| inside.binary_search(&node).unwrap_or(0);
    let (mut steps, mut read, mut types) = (Vec::with_capacity(inside.len()), vec![], vec![]);
    for &node in &inside {
        let step = graph.step(node);
        let mut dtype = step.dtype();
        let flat = match (leaf(node), &step.kind) {
            (Some(leaf), _) => {
                dtype = leaves[leaf].1;
                read.push(node);
                types.push(dtype);
                Flat::Leaf(read.len() - 1)
            }
            (_, Kind::Constant(Value::Plain(bytes))) => Flat::Constant(*bytes),
            (_, Kind::Cast(of)) => Flat::Cast(place(*of)),
            (_, Kind::Apply(op, dtype, args)) => {
                let mut own = [0; 3];
                for (own, &arg) in own.iter_mut().zip(args).take(op.arity()) {
                    *own = place(arg);
                }
                Flat::Apply(*op, *dtype, own)
            }
            _ => return Err(unsupported(graph, node)),
        };
        steps.push((flat, dtype));
    }
    Ok(Flattened { steps, read, types })
}

fn unsupported(graph: &Graph, node: Node) -> ProgramError {
    let step = graph.step(node);
    let what = match (&step.kind, &step.is) {
        (Kind::Apply(op, dtype, _), _) => format!("{op} of {dtype}"),
        (_, OperandType::Array(dtype)) => format!("this on {dtype}"),
        (_, OperandType::Literal(literal)) => format!("{literal} here"),
    };
    ProgramError::new(ProgramErrorKind::Unsupported(what), step.span.clone())
}

/// The shape of a value seen otherwise, and its strides.
pub(crate) fn seen(
    view: &View,
    shape: &[usize],
    strides: &[isize],
) -> Result<(Vec<usize>, Vec<isize>), ProgramErrorKind> {
    use AxisPattern::{Keep, New, Rest};
    let rank = shape.len();
    match view {
        View::Insert(pattern) => {
            let kept = pattern.iter().filter(|one| **one == Keep).count();
            let Some(rest) = rank.checked_sub(kept) else {
                return Err(ProgramErrorKind::Indices { indices: kept, rank });
            };
            let (mut sizes, mut steps) = (Vec::new(), Vec::new());
            let mut axes = shape.iter().copied().zip(strides.iter().copied());
            let mut take = |count: usize, sizes: &mut Vec<usize>, steps: &mut Vec<isize>| {
                for (size, step) in axes.by_ref().take(count) {
                    sizes.push(size);
                    steps.push(step);
                }
            };
            for one in pattern {
                match one {
                    Keep => take(1, &mut sizes, &mut steps),
                    Rest => take(rest, &mut sizes, &mut steps),
                    New => {
                        sizes.push(1);
                        steps.push(0);
                    }
                }
            }
            // What no entry names follows; nothing, where `...` stands.
            take(rank, &mut sizes, &mut steps);
            Ok((sizes, steps))
        }
        View::Transpose(None) => {
            Ok((shape.iter().rev().copied().collect(), strides.iter().rev().copied().collect()))
        }
        View::Transpose(Some(axes)) => {
            let order = || ProgramErrorKind::Axes { axes: axes.clone(), rank };
            let mut own = Vec::with_capacity(rank);
            for &axis in axes {
                let at = axis_of(axis, rank).filter(|at| !own.contains(at)).ok_or_else(order)?;
                own.push(at);
            }
            if own.len() != rank {
                return Err(order());
            }
            Ok((
                own.iter().map(|&at| shape[at]).collect(),
                own.iter().map(|&at| strides[at]).collect(),
            ))
        }
    }
}
