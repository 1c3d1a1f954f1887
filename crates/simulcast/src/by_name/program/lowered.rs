//! A program for operands of known shapes, as data: what another back end than this crate's own compiles.
//!
//! [`TypedProgram::lower`] decides everything that does not depend on the machine: types, promotion, folded constants,
//! stages, what is hoisted, shapes, and along which axis of which array every leaf moves. What is left are
//! [passes](Pass): each computes one array, element by element, or reduces what it computes. The engine of this crate
//! runs the same passes by its own loops.
//!
//! ```
//! use simulcast::program::Hoisting;
//! use simulcast::program::lowered::{LeafSource, StepKind};
//! use simulcast::{DType, Rule, TypedProgram};
//!
//! let f32 = DType::F32;
//! let program = TypedProgram::parse("sum((x - m)[:, None] * 2, axis=0)", &[("x", f32), ("m", f32)])?;
//! let passes = program.lower(&[&[3], &[1]], Rule::Numpy, Hoisting::WherePays)?;
//! let [difference, sum] = &passes[..] else { panic!("two passes") };
//! assert_eq!((difference.shape(), difference.result_shape()), (&[3][..], &[3][..]));
//! // The second operand has one element: it moves along no axis of the result.
//! assert_eq!(difference.leaves()[1].source(), LeafSource::Operand(1));
//! assert_eq!(difference.leaves()[1].axes(), [None]);
//! // The sum reads the difference with a new axis, and reduces the first of two.
//! assert_eq!((sum.shape(), sum.result_shape()), (&[3, 1][..], &[1][..]));
//! assert_eq!(sum.leaves()[0].source(), LeafSource::Pass(0));
//! assert_eq!(sum.reduction().map(|over| over.kept().to_vec()), Some(vec![false, true]));
//! assert!(matches!(sum.steps().last().map(|step| step.kind()), Some(StepKind::Apply(..))));
//! # Ok::<(), simulcast::ProgramError>(())
//! ```
//!
//! # What a back end computes
//!
//! Steps are computed in order; the last is the value of the pass. `float16` and `bfloat16` are widened to `float32`
//! where a leaf or a constant is read, operations on them are operations on `float32`, and only a [cast](StepKind::Cast)
//! and the end of a pass round. Of a `bool` that is read, every byte but 0 is true. The result of an operation has the
//! type that [`Op`]'s table says for its operands; the meaning of special cases is that of the page of [`Op`].

use std::ops::Range;

use ndarray::{ArrayD, IxDyn};
use simulcast_core::{Rule, resolve};

use crate::by_name::dyn_array::{AnyArray, AnyView};
use crate::by_name::program::build::builder::widened;
use crate::by_name::program::build::bytecode::Flat;
use crate::by_name::program::build::graph::Node;
use crate::by_name::program::build::stages::{Flattened, Leaf, Origin, Stage, Work, flattened};
use crate::by_name::program::front::axes::Fold;
use crate::by_name::program::front::error::{ProgramError, ProgramErrorKind};
use crate::by_name::program::run::bind::{
    RelaidSteps, Stepwise, blame, left, reduced, root, seen_through, shapes,
};
use crate::by_name::program::run::joint::{
    Leaf as JointLeaf, Origin as JointOrigin, Pass as JointPass, Value as JointValue,
};
use crate::by_name::program::{Hoisting, JointProgram, Run, TypedProgram};
use simulcast_kernels::dtype::DType;
use simulcast_kernels::every_dtype;
use simulcast_kernels::op::Op;

/// One pass over memory: an array that is computed from others; see [the module's page](self).
#[derive(Clone, Debug)]
pub struct Pass {
    shape: Vec<usize>,
    leaves: Vec<PassLeaf>,
    steps: Vec<Step>,
    reduction: Option<Reduction>,
    result_shape: Vec<usize>,
    dtype: DType,
}

/// An array that a pass reads.
#[derive(Clone, Debug)]
pub struct PassLeaf {
    source: LeafSource,
    dtype: DType,
    axes: Vec<Option<usize>>,
}

/// Where a leaf of a pass comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LeafSource {
    /// An operand of the program, by its place.
    Operand(usize),
    /// The result of an earlier pass, by its place.
    Pass(usize),
}

/// A step of a pass.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Step {
    kind: StepKind,
    dtype: DType,
}

/// What a step is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StepKind {
    /// The element of a leaf, by its place.
    Leaf(usize),
    /// A number of the step's type: its bytes, as they are in memory; those after its size are 0.
    Constant([u8; 16]),
    /// An operation whose operands have that type, on the values of earlier steps; the first `arity` places count.
    /// The first operand of [`Op::Where`] is a `bool`.
    Apply(Op, DType, [usize; 3]),
    /// The value of an earlier step, rounded to the step's type.
    Cast(usize),
}

/// How a pass reduces what it computes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reduction {
    fold: Fold,
    kept: Vec<bool>,
    element: DType,
    count: usize,
}

impl Pass {
    /// The shape over which its steps are computed.
    #[must_use]
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The arrays that it reads.
    #[must_use]
    pub fn leaves(&self) -> &[PassLeaf] {
        &self.leaves
    }

    /// Its steps, each after those that it reads; the last one is its value.
    #[must_use]
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// How its value is reduced, where it is.
    #[must_use]
    pub const fn reduction(&self) -> Option<&Reduction> {
        self.reduction.as_ref()
    }

    /// The shape of the array that it makes.
    #[must_use]
    pub fn result_shape(&self) -> &[usize] {
        &self.result_shape
    }

    /// The type of that array's elements.
    #[must_use]
    pub const fn dtype(&self) -> DType {
        self.dtype
    }
}

impl PassLeaf {
    /// Where it comes from.
    #[must_use]
    pub const fn source(&self) -> LeafSource {
        self.source
    }

    /// The type of its elements in memory.
    #[must_use]
    pub const fn dtype(&self) -> DType {
        self.dtype
    }

    /// For each axis of the pass, the axis of the array along which the leaf moves; none where it repeats.
    #[must_use]
    pub fn axes(&self) -> &[Option<usize>] {
        &self.axes
    }
}

impl Step {
    /// What it is.
    #[must_use]
    pub const fn kind(&self) -> &StepKind {
        &self.kind
    }

    /// The type of its value.
    #[must_use]
    pub const fn dtype(&self) -> DType {
        self.dtype
    }
}

impl Reduction {
    /// How elements become one.
    #[must_use]
    pub const fn fold(&self) -> Fold {
        self.fold
    }

    /// For each axis of the pass, whether the result has it.
    #[must_use]
    pub fn kept(&self) -> &[bool] {
        &self.kept
    }

    /// The type that elements are joined in: that of the last step, `float32` for 16-bit floats.
    #[must_use]
    pub const fn element(&self) -> DType {
        self.element
    }

    /// How many elements become one.
    #[must_use]
    pub const fn count(&self) -> usize {
        self.count
    }
}

macro_rules! one_of_each {
    ($($variant:ident: $type:ty = $name:literal,)*) => {
        /// One element, of which a view can be had that repeats it.
        fn one(dtype: DType) -> AnyArray {
            match dtype {
                $(DType::$variant => AnyArray::$variant(ArrayD::default(IxDyn(&[]))),)*
            }
        }
    };
}

every_dtype!(one_of_each);

impl TypedProgram {
    /// The program for operands of these shapes, as passes in the order in which they run; the last makes the result.
    ///
    /// # Errors
    ///
    /// Where there are other operands than the program's, they do not broadcast, an axis does not exist, or there is
    /// nothing to take the maximum of; and where the program computes text.
    pub fn lower(
        &self,
        operands: &[&[usize]],
        rule: Rule<'_>,
        hoisting: Hoisting,
    ) -> Result<Vec<Pass>, ProgramError> {
        let given = operands.len();
        if given != self.operands.len() {
            let kind = ProgramErrorKind::Operands { expected: self.operands.len(), given };
            return Err(ProgramError::new(kind, 0..0));
        }
        // Inferring shapes reads no element: views of the right shape repeat a single one.
        let ones: Vec<AnyArray> = self.operands.iter().map(|input| one(input.dtype)).collect();
        let mut views = Vec::with_capacity(ones.len());
        for (one, shape) in ones.iter().zip(operands) {
            let view = one.view().broadcast_to(shape);
            let refused = |error| ProgramError::new(ProgramErrorKind::Broadcast(error), 0..0);
            views.push(view.map_err(refused)?);
        }
        let run = self.bind(&views).rule(rule).hoisting(hoisting);
        let mut lowering = Lowering { run: &run, passes: Vec::new(), stages: Vec::new() };
        for (stage, shapes) in self.stages.iter().zip(shapes(&run)?) {
            let mut hoisted: Vec<usize> = Vec::new();
            let (parts, rest) = match &shapes.split {
                Some(split) => (&split.hoisted[..], &split.rest),
                None => (&[][..], stage),
            };
            for part in parts {
                hoisted.push(lowering.pass(part, &hoisted)?);
            }
            let last = lowering.pass(rest, &hoisted)?;
            lowering.stages.push(last);
        }
        Ok(lowering.passes)
    }
}

/// The passes of a program of several results: what [`JointProgram::lower`] gives.
///
/// ```
/// use simulcast::{DType, Rule, TypedProgram};
///
/// let f32 = DType::F32;
/// let loss = TypedProgram::parse("mean((x - m) ** 2)", &[("x", f32), ("m", f32)])?.value_and_grad(&["m"])?;
/// let lowered = loss.lower(&[&[200, 300], &[300]], Rule::Numpy)?;
/// // The value and the gradient are sums over the same elements.
/// let [value, gradient] = lowered.results() else { panic!("two results") };
/// assert_eq!((value.shape(), gradient.shape()), (&[][..], &[300][..]));
/// let mut groups = lowered.groups().iter();
/// let same = groups.find(|group| group.contains(&value.pass())).expect("a group of the value");
/// assert!(same.len() > 1);
/// assert!(lowered.passes()[same.clone()].iter().all(|pass| pass.shape() == [200, 300]));
/// # Ok::<(), simulcast::ProgramError>(())
/// ```
#[derive(Clone, Debug)]
pub struct JointPasses {
    passes: Vec<Pass>,
    groups: Vec<Range<usize>>,
    results: Vec<JointResult>,
}

/// A result among [`JointPasses`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JointResult {
    pass: usize,
    shape: Vec<usize>,
}

impl JointPasses {
    /// The passes, in an order in which they can run.
    #[must_use]
    pub fn passes(&self) -> &[Pass] {
        &self.passes
    }

    /// Which passes go over the same elements and need nothing of each other: the engine of this crate runs them as one.
    #[must_use]
    pub fn groups(&self) -> &[Range<usize>] {
        &self.groups
    }

    /// The results, in their order.
    #[must_use]
    pub fn results(&self) -> &[JointResult] {
        &self.results
    }
}

impl JointResult {
    /// The pass that makes it.
    #[must_use]
    pub const fn pass(&self) -> usize {
        self.pass
    }

    /// Its shape: that of the pass's array but for axes of size 1.
    #[must_use]
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }
}

impl JointProgram {
    /// The program for operands of these shapes, as passes in the order in which they run.
    ///
    /// # Errors
    ///
    /// As [`TypedProgram::lower`], and where what is to have a gradient is not one number.
    pub fn lower(
        &self,
        operands: &[&[usize]],
        rule: Rule<'_>,
    ) -> Result<JointPasses, ProgramError> {
        let (expected, given) = (self.operands().len(), operands.len());
        if expected != given {
            return Err(ProgramError::new(ProgramErrorKind::Operands { expected, given }, 0..0));
        }
        if self.has_text() {
            let kind = ProgramErrorKind::Unsupported("text on this device".into());
            return Err(ProgramError::new(kind, 0..0));
        }
        let schedule = self.schedule(rule, operands)?;
        let (mut passes, mut groups) = (Vec::new(), Vec::new());
        // The pass that makes each array.
        let mut makers = vec![0; schedule.arrays];
        for joint in &schedule.passes {
            let start = passes.len();
            for ((made, value), &end) in joint.values.iter().zip(&joint.ends) {
                passes.push(one_of(joint, value, end, &makers));
                makers[*made] = passes.len() - 1;
            }
            groups.push(start..passes.len());
        }
        let results = schedule
            .outcomes
            .iter()
            .map(|own| JointResult { pass: makers[own.made], shape: own.shape.clone() })
            .collect();
        Ok(JointPasses { passes, groups, results })
    }
}

/// One of the values of a joint pass, with the steps and the leaves that it needs.
fn one_of(joint: &JointPass, value: &JointValue, end: usize, makers: &[usize]) -> Pass {
    let mut is_needed = vec![false; end + 1];
    is_needed[end] = true;
    for at in (0..=end).rev().filter(|&at| at < joint.steps.len()) {
        if is_needed[at] {
            let args: &[usize] = match &joint.steps[at].0 {
                Flat::Apply(op, _, args) => &args[..op.arity().min(3)],
                Flat::Cast(of) => std::slice::from_ref(of),
                Flat::Leaf(_) | Flat::Constant(_) => &[],
            };
            args.iter().for_each(|&arg| is_needed[arg] = true);
        }
    }
    let (mut places, mut steps, mut leaves) = (vec![0; end + 1], Vec::new(), Vec::new());
    for (at, (flat, dtype)) in joint.steps.iter().enumerate().take(end + 1) {
        if !is_needed[at] {
            continue;
        }
        let kind = match *flat {
            Flat::Leaf(leaf) => {
                let JointLeaf { origin, ref axes } = joint.leaves[leaf];
                let source = match origin {
                    JointOrigin::Operand(operand) => LeafSource::Operand(operand),
                    JointOrigin::Made(made) => LeafSource::Pass(makers[made]),
                };
                // For each axis of the pass that of the array, where the schedule has it the other way round.
                let of = |axis: usize| axes.iter().position(|&own| own == Some(axis));
                let axes = (0..joint.shape.len()).map(of).collect();
                leaves.push(PassLeaf { source, dtype: *dtype, axes });
                StepKind::Leaf(leaves.len() - 1)
            }
            Flat::Constant(bytes) => StepKind::Constant(bytes.0),
            Flat::Apply(op, of, args) => StepKind::Apply(op, of, args.map(|arg| places[arg])),
            Flat::Cast(of) => StepKind::Cast(places[of]),
        };
        places[at] = steps.len();
        steps.push(Step { kind, dtype: *dtype });
    }
    let element = steps.last().map_or(value.dtype, |step| widened(step.dtype));
    let reduction = value.fold.as_ref().map(|(fold, gone)| Reduction {
        fold: *fold,
        kept: gone.iter().map(|gone| !gone).collect(),
        element,
        count: value.count,
    });
    let (shape, result_shape) = (joint.shape.clone(), value.shape.clone());
    Pass { shape, leaves, steps, reduction, result_shape, dtype: value.dtype }
}

/// Where a leaf comes from, its shape, and in the place of each stride one more than the axis of the source that it would
/// be the stride of; 0 for none.
type LeafAxes = (LeafSource, Vec<usize>, Vec<isize>);

struct Lowering<'r> {
    run: &'r Run<'r>,
    passes: Vec<Pass>,
    /// The pass that makes each stage's value.
    stages: Vec<usize>,
}

impl Lowering<'_> {
    /// Adds the pass of a stage, and gives its place.
    fn pass(&mut self, stage: &Stage, hoisted: &[usize]) -> Result<usize, ProgramError> {
        let program = self.run.program;
        if matches!(stage.work, Work::Text(_)) {
            return Err(program.unsupported("text on this device"));
        }
        let leaves: Vec<LeafAxes> =
            stage.leaves.iter().map(|leaf| self.leaf(leaf, hoisted)).collect::<Result<_, _>>()?;
        let shapes: Vec<&[usize]> = leaves.iter().map(|leaf| &leaf.1[..]).collect();
        let places: Vec<&[isize]> = leaves.iter().map(|leaf| &leaf.2[..]).collect();
        let laid = self.laid(stage, &shapes, &places)?;
        let narrow = stage.narrow;
        let value = laid.steps.last().map_or(DType::F32, |step| step.1);
        let value = if narrow { value } else { widened(value) };
        let (reduction, result_shape, dtype) = match &stage.work {
            Work::Fold(_, over) => {
                let kept = reduced(program, stage.node, &laid.shape, over.axes.as_deref())?;
                let result = left(&laid.shape, &kept, over.keepdims);
                let axes = laid.shape.iter().zip(&kept).filter(|axis| !axis.1);
                let count = axes.map(|axis| axis.0).product();
                let step = program.graph.step(stage.node);
                if count == 0 && matches!(over.fold, Fold::Maximum | Fold::Minimum) {
                    let kind = ProgramErrorKind::Empty(over.fold);
                    return Err(ProgramError::new(kind, step.span.clone()));
                }
                let reduction = Reduction { fold: over.fold, kept, element: value, count };
                (Some(reduction), result, step.dtype())
            }
            _ => (None, laid.shape.clone(), value),
        };
        let leaves = laid.leaves.iter().zip(&laid.types).map(|((leaf, places), &dtype)| {
            let axis = |&place: &isize| usize::try_from(place - 1).ok();
            PassLeaf { source: leaves[*leaf].0, dtype, axes: places.iter().map(axis).collect() }
        });
        let steps = laid.steps.iter().map(|(flat, dtype)| {
            let kind = match *flat {
                Flat::Leaf(leaf) => StepKind::Leaf(leaf),
                Flat::Constant(bytes) => StepKind::Constant(bytes.0),
                Flat::Apply(op, of, args) => StepKind::Apply(op, of, args),
                Flat::Cast(of) => StepKind::Cast(of),
            };
            Step { kind, dtype: *dtype }
        });
        let (leaves, steps) = (leaves.collect(), steps.collect());
        self.passes.push(Pass { shape: laid.shape, leaves, steps, reduction, result_shape, dtype });
        Ok(self.passes.len() - 1)
    }

    /// A leaf with the axes that the pass sees.
    fn leaf(&self, leaf: &Leaf, hoisted: &[usize]) -> Result<LeafAxes, ProgramError> {
        let program = self.run.program;
        let source = match leaf.origin {
            Origin::Operand(operand) => Some(LeafSource::Operand(operand)),
            Origin::Stage(stage) => self.stages.get(stage).copied().map(LeafSource::Pass),
            Origin::Hoisted(at) => hoisted.get(at).copied().map(LeafSource::Pass),
            Origin::Text(_) => None,
        };
        let shape = match source {
            Some(LeafSource::Operand(at)) => self.run.operands.get(at).map(AnyView::shape),
            Some(LeafSource::Pass(at)) => self.passes.get(at).map(|pass| &pass.result_shape[..]),
            None => None,
        };
        let (Some(source), Some(shape)) = (source, shape) else {
            return Err(program.unsupported("text on this device"));
        };
        let places = (1..=shape.len().cast_signed()).collect();
        let (shape, places) = seen_through(program, leaf, shape.to_vec(), places)?;
        Ok((source, shape, places))
    }

    /// The steps of a stage, and how its leaves are laid.
    fn laid(
        &self,
        stage: &Stage,
        shapes: &[&[usize]],
        places: &[&[isize]],
    ) -> Result<RelaidSteps, ProgramError> {
        let (run, program) = (self.run, self.run.program);
        if run.rule != Rule::Numpy {
            return Stepwise::new(program, stage, run.rule, shapes)?.relaid_steps(places);
        }
        let plan = resolve(Rule::Numpy, shapes).map_err(|e| blame(run, stage, shapes, e))?;
        let given: Vec<(Node, DType)> =
            stage.leaves.iter().map(|leaf| (leaf.node, leaf.dtype)).collect();
        let Flattened { steps, read, types } =
            flattened(&program.graph, root(program, stage), &given)?;
        let mut leaves = Vec::with_capacity(read.len());
        for node in read {
            // Never at 0 by chance: what is read is one of the leaves that were given.
            let leaf = stage.leaves.iter().position(|leaf| leaf.node == node).unwrap_or(0);
            let own = plan.strides(leaf, places.get(leaf).copied().unwrap_or(&[]));
            leaves.push((leaf, own.unwrap_or_default()));
        }
        Ok(RelaidSteps { steps, types, shape: plan.shape().to_vec(), leaves })
    }
}
