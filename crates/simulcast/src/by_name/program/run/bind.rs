//! Binding a stage to arrays: the shape of its value, and the strides of each leaf along that shape.
//!
//! Under NumPy's rule the order of operations makes no difference to shapes, so all leaves are
//! broadcast together at once. Under any other rule, and to find the operation at fault when shapes do
//! not broadcast, shapes are inferred step by step.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use simulcast_core::{BroadcastError, Names, Rule, resolve};

use crate::by_name::dyn_array::{AnyArray, AnyView};
use crate::by_name::program::build::bytecode::{Code, Flat, LEAVES};
use crate::by_name::program::build::graph::{Kind, Node};
use crate::by_name::program::build::hoist::Split;
use crate::by_name::program::build::stages::{Leaf, Origin, Stage, Work, seen};
use crate::by_name::program::front::axes::axis_of;
use crate::by_name::program::front::error::{ErrorOperand, ProgramError, ProgramErrorKind};
use crate::by_name::program::run::hoist;
use crate::by_name::program::{Run, TypedProgram};
use simulcast_kernels::dtype::DType;

/// The arrays that a stage reads, with the axes that it sees.
pub(crate) enum Leaves<'a> {
    /// Operands as they stand, which takes no memory to say.
    Operands(&'a [AnyView<'a>], &'a [Leaf]),
    Seen(Vec<Seen<'a>>),
}

/// One of them.
pub(crate) enum Seen<'a> {
    Operand(&'a AnyView<'a>),
    Own(AnyView<'a>),
}

impl<'a> Seen<'a> {
    #[inline]
    fn view(&self) -> &AnyView<'a> {
        match self {
            Self::Operand(view) => view,
            Self::Own(view) => view,
        }
    }
}

impl<'a> Leaves<'a> {
    #[inline]
    pub(crate) fn new(
        run: &Run<'a>,
        stage: &'a Stage,
        made: &'a [Option<AnyArray>],
        hoisted: &'a [AnyArray],
    ) -> Result<Self, ProgramError> {
        let stands = |leaf: &Leaf| match leaf.origin {
            Origin::Operand(operand) => leaf.views.is_empty() && operand < run.operands.len(),
            _ => false,
        };
        if stage.leaves.iter().all(stands) {
            return Ok(Self::Operands(run.operands, &stage.leaves));
        }
        Self::seen(run, stage, made, hoisted)
    }

    fn seen(
        run: &Run<'a>,
        stage: &'a Stage,
        made: &'a [Option<AnyArray>],
        hoisted: &'a [AnyArray],
    ) -> Result<Self, ProgramError> {
        let program = run.program;
        let mut views = Vec::with_capacity(stage.leaves.len());
        for leaf in &stage.leaves {
            let base = match &leaf.origin {
                Origin::Operand(operand) => run.operands.get(*operand).map(Seen::Operand),
                Origin::Stage(stage) => {
                    made.get(*stage).and_then(Option::as_ref).map(|array| Seen::Own(array.view()))
                }
                Origin::Hoisted(at) => hoisted.get(*at).map(|array| Seen::Own(array.view())),
                Origin::Text(text) => {
                    // SAFETY: one text, borrowed from the program.
                    let one = unsafe {
                        AnyView::from_raw(DType::String, (&raw const *text).cast(), &[], &[])
                    };
                    Some(Seen::Own(one))
                }
            };
            let base = base.ok_or_else(|| program.unsupported("a leaf without an array"))?;
            views.push(if leaf.views.is_empty() { base } else { viewed(program, leaf, &base)? });
        }
        Ok(Self::Seen(views))
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Operands(_, leaves) => leaves.len(),
            Self::Seen(views) => views.len(),
        }
    }

    #[inline]
    pub(crate) fn view(&self, leaf: usize) -> Option<&AnyView<'a>> {
        match self {
            Self::Operands(operands, leaves) => match leaves.get(leaf)?.origin {
                Origin::Operand(operand) => operands.get(operand),
                _ => None,
            },
            Self::Seen(views) => views.get(leaf).map(Seen::view),
        }
    }

    pub(crate) fn shapes(&self) -> Vec<&[usize]> {
        (0..self.len()).filter_map(|leaf| self.view(leaf)).map(AnyView::shape).collect()
    }

    /// The shapes of all leaves, in the places given.
    #[inline]
    pub(crate) fn shapes_in<'s>(
        &'s self,
        places: &'s mut [&'s [usize]; LEAVES],
    ) -> &'s [&'s [usize]] {
        let count = self.len().min(LEAVES);
        for (leaf, place) in places.iter_mut().enumerate().take(count) {
            *place = self.view(leaf).map_or(&[], AnyView::shape);
        }
        &places[..count]
    }

    pub(crate) fn strides(&self) -> Vec<&[isize]> {
        (0..self.len()).filter_map(|leaf| self.view(leaf)).map(AnyView::strides).collect()
    }
}

fn viewed<'a>(
    program: &TypedProgram,
    leaf: &Leaf,
    base: &Seen<'a>,
) -> Result<Seen<'a>, ProgramError> {
    let base = base.view();
    let (mut shape, mut strides) = (base.shape().to_vec(), base.strides().to_vec());
    for &node in &leaf.views {
        let step = program.graph.step(node);
        let Kind::View(_, view) = &step.kind else { continue };
        let dtype = step.dtype();
        let error = |kind| {
            let span = step.span.clone();
            let operand = ErrorOperand { span: span.clone(), dtype, shape: shape.clone() };
            ProgramError::of_operands(kind, span, [operand])
        };
        (shape, strides) = seen(view, &shape, &strides).map_err(error)?;
    }
    // SAFETY: axes were reordered, or added with size 1: the same elements are reached.
    Ok(Seen::Own(unsafe { base.relaid(&shape, &strides) }))
}

/// The shapes of a stage, and of the sub-expressions that are hoisted from it.
pub(crate) struct StageShapes {
    pub(crate) result: Vec<usize>,
    pub(crate) hoisted: Vec<Vec<usize>>,
    /// The stages of those and of the rest, where there are any.
    pub(crate) split: Option<Arc<Split>>,
}

/// The shapes of every stage, that of the program's result last.
pub(crate) fn shapes(run: &Run<'_>) -> Result<Vec<StageShapes>, ProgramError> {
    let mut shapes: Vec<StageShapes> = Vec::new();
    for stage in &run.program.stages {
        let leaves = leaf_shapes(run, stage, &shapes, &[])?;
        let own: Vec<&[usize]> = leaves.iter().map(Vec::as_slice).collect();
        let result = stage_shape(run, stage, &own)?;
        let split = hoist::chosen(run, stage, &own);
        let mut hoisted: Vec<Vec<usize>> = Vec::new();
        for stage in split.iter().flat_map(|split| &split.hoisted) {
            let leaves = leaf_shapes(run, stage, &shapes, &hoisted)?;
            let own: Vec<&[usize]> = leaves.iter().map(Vec::as_slice).collect();
            hoisted.push(stage_shape(run, stage, &own)?);
        }
        shapes.push(StageShapes { result, hoisted, split });
    }
    Ok(shapes)
}

/// The shapes of a stage's leaves.
fn leaf_shapes(
    run: &Run<'_>,
    stage: &Stage,
    stages: &[StageShapes],
    hoisted: &[Vec<usize>],
) -> Result<Vec<Vec<usize>>, ProgramError> {
    let mut shapes = Vec::with_capacity(stage.leaves.len());
    for leaf in &stage.leaves {
        let base = match &leaf.origin {
            Origin::Operand(operand) => run.operands.get(*operand).map(|v| v.shape().to_vec()),
            Origin::Stage(stage) => stages.get(*stage).map(|shapes| shapes.result.clone()),
            Origin::Text(_) => Some(Vec::new()),
            Origin::Hoisted(at) => hoisted.get(*at).cloned(),
        };
        let base = base.unwrap_or_default();
        let strides = vec![0; base.len()];
        shapes.push(seen_through(run.program, leaf, base, strides)?.0);
    }
    Ok(shapes)
}

/// The shape and the strides of a leaf, from those of the array that it is a view of.
pub(crate) fn seen_through(
    program: &TypedProgram,
    leaf: &Leaf,
    mut shape: Vec<usize>,
    mut strides: Vec<isize>,
) -> Result<(Vec<usize>, Vec<isize>), ProgramError> {
    for &node in &leaf.views {
        if let Kind::View(_, view) = &program.graph.step(node).kind {
            let span = program.graph.step(node).span.clone();
            (shape, strides) =
                seen(view, &shape, &strides).map_err(|kind| ProgramError::new(kind, span))?;
        }
    }
    Ok((shape, strides))
}

/// The shape of a stage's result.
fn stage_shape(
    run: &Run<'_>,
    stage: &Stage,
    leaves: &[&[usize]],
) -> Result<Vec<usize>, ProgramError> {
    let shape = mapped(run.program, stage, run.rule, leaves)?;
    match &stage.work {
        Work::Fold(_, over) => {
            let kept = reduced(run.program, stage.node, &shape, over.axes.as_deref())?;
            Ok(left(&shape, &kept, over.keepdims))
        }
        _ => Ok(shape),
    }
}

/// What a reduction leaves of a shape.
pub(crate) fn left(shape: &[usize], kept: &[bool], keepdims: bool) -> Vec<usize> {
    let axes = shape.iter().zip(kept);
    axes.filter(|(_, kept)| **kept || keepdims)
        .map(|(&s, &kept)| if kept { s } else { 1 })
        .collect()
}

/// The element-wise shape of a stage.
fn mapped(
    program: &TypedProgram,
    stage: &Stage,
    rule: Rule<'_>,
    shapes: &[&[usize]],
) -> Result<Vec<usize>, ProgramError> {
    if rule == Rule::Numpy
        && let Ok(plan) = resolve(rule, shapes)
    {
        return Ok(plan.shape().to_vec());
    }
    Ok(Stepwise::new(program, stage, rule, shapes)?.root_shape())
}

/// Which axes a reduction keeps.
pub(crate) fn reduced(
    program: &TypedProgram,
    node: Node,
    shape: &[usize],
    axes: Option<&[isize]>,
) -> Result<Vec<bool>, ProgramError> {
    let rank = shape.len();
    let span = program.graph.step(node).span.clone();
    let Some(axes) = axes else { return Ok(vec![false; rank]) };
    let mut kept = vec![true; rank];
    for &axis in axes {
        let kind = ProgramErrorKind::Axis { axis, rank };
        let at = axis_of(axis, rank).ok_or_else(|| ProgramError::new(kind, span.clone()))?;
        if !std::mem::replace(&mut kept[at], false) {
            let kind = ProgramErrorKind::Axes { axes: axes.to_vec(), rank };
            return Err(ProgramError::new(kind, span));
        }
    }
    Ok(kept)
}

/// The element-wise root of a stage: what it folds, or what it makes.
pub(crate) fn root(program: &TypedProgram, stage: &Stage) -> Node {
    match (&stage.work, &program.graph.step(stage.node).kind) {
        (Work::Fold(..), Kind::Fold(of, _)) => *of,
        _ => stage.node,
    }
}

/// The error of a stage whose leaves do not come together: the first operation at fault.
#[cold]
pub(crate) fn blame(
    run: &Run<'_>,
    stage: &Stage,
    shapes: &[&[usize]],
    error: BroadcastError,
) -> ProgramError {
    match Stepwise::new(run.program, stage, run.rule, shapes) {
        Err(error) => error,
        // Each operation is possible, the whole is too large.
        Ok(_) => run.refused(stage, error),
    }
}

/// The axes of an argument: their sizes, and which axis of the result each goes to.
type Axes = Vec<(usize, Option<usize>)>;

/// Shapes of every step of a stage, operation by operation.
pub(crate) struct Stepwise<'p> {
    program: &'p TypedProgram,
    /// Steps in order, the root last.
    nodes: Vec<Node>,
    shapes: Vec<Vec<usize>>,
    /// For each step, and each of its arguments, where the argument's axes go; none for a constant.
    axes: Vec<Vec<Option<Axes>>>,
    /// For each step, the leaf that it is, and the type of the leaf's elements.
    leaves: Vec<Option<(usize, DType)>>,
}

/// Steps of a stage whose leaves are laid some other way than NumPy's, and their strides.
pub(crate) struct RelaidSteps {
    pub(crate) steps: Vec<(Flat, DType)>,
    pub(crate) types: Vec<DType>,
    pub(crate) shape: Vec<usize>,
    /// As of [`Relaid`].
    pub(crate) leaves: Vec<(usize, Vec<isize>)>,
}

/// Code for a stage whose leaves are laid some other way than NumPy's, and their strides.
pub(crate) struct Relaid {
    pub(crate) code: Code,
    pub(crate) shape: Vec<usize>,
    /// Which leaf of the stage, and how it strides along the shape.
    pub(crate) leaves: Vec<(usize, Vec<isize>)>,
}

impl<'p> Stepwise<'p> {
    pub(crate) fn new(
        program: &'p TypedProgram,
        stage: &Stage,
        rule: Rule<'_>,
        shapes: &[&[usize]],
    ) -> Result<Self, ProgramError> {
        let root = root(program, stage);
        let leaf = |node: Node| {
            let at = stage.leaves.iter().position(|leaf| leaf.node == node)?;
            Some((at, stage.leaves[at].dtype))
        };
        let mut nodes = vec![];
        let mut open = vec![root];
        let mut seen = std::collections::HashSet::new();
        while let Some(node) = open.pop() {
            if seen.insert(node) {
                nodes.push(node);
                if leaf(node).is_none() {
                    open.extend(program.graph.step(node).kind.args());
                }
            }
        }
        nodes.sort_unstable();
        let leaves: Vec<Option<(usize, DType)>> = nodes.iter().map(|&node| leaf(node)).collect();
        let mut this = Self { program, nodes, shapes: Vec::new(), axes: Vec::new(), leaves };
        for at in 0..this.nodes.len() {
            let (shape, axes) = match this.leaves[at] {
                Some((leaf, _)) => {
                    (shapes.get(leaf).map(|s| s.to_vec()).unwrap_or_default(), Vec::new())
                }
                None => this.step(this.nodes[at], rule)?,
            };
            this.shapes.push(shape);
            this.axes.push(axes);
        }
        Ok(this)
    }

    fn place(&self, node: Node) -> usize {
        self.nodes.binary_search(&node).unwrap_or(0)
    }

    /// The shape of a step.
    pub(crate) fn shape(&self, node: Node) -> &[usize] {
        self.shapes.get(self.place(node)).map_or(&[], Vec::as_slice)
    }

    fn root_shape(&self) -> Vec<usize> {
        self.shapes.last().cloned().unwrap_or_default()
    }

    /// The shape of one step, and where the axes of its arguments go.
    fn step(
        &self,
        node: Node,
        rule: Rule<'_>,
    ) -> Result<(Vec<usize>, Vec<Option<Axes>>), ProgramError> {
        let step = self.program.graph.step(node);
        let args = step.kind.args();
        let is_constant = |arg: &Node| {
            matches!(self.program.graph.step(*arg).kind, Kind::Constant(_) | Kind::Literal)
        };
        let arrays: Vec<Node> = args.iter().copied().filter(|arg| !is_constant(arg)).collect();
        let shapes: Vec<&[usize]> =
            arrays.iter().map(|&arg| &self.shapes[self.place(arg)][..]).collect();
        // Of the rules, those for one operand say something of an operation on one array.
        let alone = match (rule.kind().arity(), &step.kind) {
            (Some(1), Kind::Apply(..)) => false,
            _ => shapes.len() == 1,
        };
        if let ([only], true) = (&shapes[..], alone) {
            let whole: Vec<_> = only.iter().enumerate().map(|(k, &size)| (size, Some(k))).collect();
            let axes = args.iter().map(|arg| (!is_constant(arg)).then(|| whole.clone())).collect();
            return Ok((only.to_vec(), axes));
        }
        if shapes.is_empty() {
            return Ok((Vec::new(), vec![None; args.len()]));
        }
        let plan =
            resolve(rule, &shapes).map_err(|error| self.clash(&step.span, &arrays, error))?;
        let mut operand = 0;
        let mut axes = Vec::with_capacity(args.len());
        for arg in args {
            if is_constant(arg) {
                axes.push(None);
                continue;
            }
            axes.push(plan.axes(operand).ok().map(<[_]>::to_vec));
            operand += 1;
        }
        Ok((plan.shape().to_vec(), axes))
    }

    fn clash(&self, span: &Range<usize>, arrays: &[Node], error: BroadcastError) -> ProgramError {
        let graph = &self.program.graph;
        let name = |&node: &Node| {
            let mut at = node;
            while let Kind::View(of, _) = graph.step(at).kind {
                at = of;
            }
            match graph.step(at).kind {
                Kind::Operand(operand) => {
                    self.program.operands.get(operand).map_or("", |input| &input.name)
                }
                _ => "",
            }
        };
        let operands = arrays.iter().map(|&node| {
            let (step, shape) = (graph.step(node), self.shapes[self.place(node)].clone());
            ErrorOperand { span: step.span.clone(), dtype: step.dtype(), shape }
        });
        let error = error.with_names(Names::of(arrays.iter().map(name)));
        ProgramError::of_operands(ProgramErrorKind::Broadcast(error), span.clone(), operands)
    }

    /// Code in which each leaf stands as often as it is laid differently.
    pub(crate) fn relaid(
        &self,
        strides: &[&[isize]],
        narrow: bool,
    ) -> Result<Relaid, ProgramError> {
        let RelaidSteps { steps, types, shape, leaves } = self.relaid_steps(strides)?;
        let code = Code::new(&steps, &types, narrow, self.program.level);
        let code = code.ok_or_else(|| self.program.unsupported("this"))?;
        Ok(Relaid { code, shape, leaves })
    }

    /// Steps in which each leaf stands as often as it is laid differently.
    pub(crate) fn relaid_steps(&self, strides: &[&[isize]]) -> Result<RelaidSteps, ProgramError> {
        /// Where a step's axes go in the root's shape: nowhere, where they are stretched or dropped.
        type Places = Vec<Option<usize>>;
        let shape = self.root_shape();
        let root = self.nodes.len() - 1;
        let whole: Places = (0..shape.len()).map(Some).collect();
        // A step that is laid in two ways is two instances.
        let mut known: HashMap<(usize, Places), ()> = HashMap::new();
        let mut instances: Vec<(usize, Places)> = Vec::new();
        let mut open = vec![(root, whole.clone())];
        let argument = |at: usize, arg: usize, places: &Places| -> (usize, Places) {
            let node = self.program.graph.step(self.nodes[at]).kind.args()[arg];
            let own = match self.axes[at].get(arg) {
                Some(Some(axes)) => {
                    let place = |&(size, to): &(usize, Option<usize>)| {
                        let to = to.filter(|&to| self.shapes[at].get(to) == Some(&size))?;
                        places.get(to).copied().flatten()
                    };
                    axes.iter().map(place).collect()
                }
                _ => Vec::new(),
            };
            (self.place(node), own)
        };
        let count = |at: usize| match self.leaves[at] {
            Some(_) => 0,
            None => self.program.graph.step(self.nodes[at]).kind.args().len(),
        };
        while let Some((at, places)) = open.pop() {
            if known.insert((at, places.clone()), ()).is_none() {
                open.extend((0..count(at)).map(|arg| argument(at, arg, &places)));
                instances.push((at, places));
            }
        }
        // The root is the only instance of the last step, and arguments come before it.
        instances.sort();
        let find = |instance: &(usize, Places)| instances.binary_search(instance).unwrap_or(0);
        let (mut flats, mut leaves, mut types) = (Vec::new(), Vec::new(), Vec::new());
        for (at, places) in &instances {
            let step = self.program.graph.step(self.nodes[*at]);
            let mut dtype = step.dtype();
            let flat = match (self.leaves[*at], &step.kind) {
                (Some((leaf, own)), _) => {
                    dtype = own;
                    let mut own = vec![0; shape.len()];
                    for (place, stride) in
                        places.iter().zip(strides.get(leaf).copied().unwrap_or(&[]))
                    {
                        if let Some(place) = place {
                            own[*place] = *stride;
                        }
                    }
                    leaves.push((leaf, own));
                    types.push(dtype);
                    Flat::Leaf(leaves.len() - 1)
                }
                (
                    None,
                    Kind::Constant(crate::by_name::program::build::graph::Value::Plain(bytes)),
                ) => Flat::Constant(*bytes),
                (None, Kind::Cast(_)) => Flat::Cast(find(&argument(*at, 0, places))),
                (None, Kind::Apply(op, dtype, _)) => {
                    let mut own = [0; 3];
                    for (arg, own) in own.iter_mut().enumerate().take(op.arity()) {
                        *own = find(&argument(*at, arg, places));
                    }
                    Flat::Apply(*op, *dtype, own)
                }
                _ => return Err(self.program.unsupported("this under another rule than numpy's")),
            };
            flats.push((flat, dtype));
        }
        if leaves.len() > LEAVES {
            let what = "so many operands under another rule than numpy's";
            return Err(self.program.unsupported(what));
        }
        Ok(RelaidSteps { steps: flats, types, shape, leaves })
    }
}
