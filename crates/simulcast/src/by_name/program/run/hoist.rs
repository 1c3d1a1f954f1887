//! Running stages whose sub-expressions are hoisted: which ones for these shapes, and their values.
//!
//! The choice is made for every call, in less time than a few hundred elements take; the code of a
//! choice is made once and kept with the program.

use std::sync::{Arc, Mutex, PoisonError};

use simulcast_core::Rule;

use crate::by_name::dyn_array::{AnyArray, AnyView};
use crate::by_name::program::build::bytecode::LEAVES;
use crate::by_name::program::build::graph::Node;
use crate::by_name::program::build::hoist::{Candidates, Split, split};
use crate::by_name::program::build::stages::{Leaf, Origin, Stage, Work};
use crate::by_name::program::front::error::ProgramError;
use crate::by_name::program::run::bind::{Leaves, Stepwise};
use crate::by_name::program::{Hoisting, Run, Target, TypedProgram};
use simulcast_kernels::tuning::{
    HOIST_AXES_MAX, HOIST_CHOICES_KEPT, HOIST_MOST_BYTES, HOIST_STAGE_PS,
};

/// A choice: the value of a stage, the steps of it that are hoisted, and the stages that follow.
#[derive(Debug)]
struct Kept {
    node: Node,
    hoisted: Vec<Node>,
    split: Option<Arc<Split>>,
}

/// The choices that were made before, with their code.
#[derive(Clone, Debug, Default)]
pub(crate) struct Splits(Arc<Mutex<Vec<Kept>>>);

/// A stage with the values of what was hoisted from it.
#[derive(Debug)]
pub(crate) struct Hoisted {
    pub(crate) split: Arc<Split>,
    pub(crate) values: Vec<AnyArray>,
}

impl Hoisted {
    /// Computes what is hoisted from a stage; none where nothing is.
    #[inline]
    pub(crate) fn new(
        run: &Run<'_>,
        stage: &Stage,
        made: &[Option<AnyArray>],
    ) -> Result<Option<Self>, ProgramError> {
        match (run.hoisting, &stage.candidates) {
            (Hoisting::WherePays, None) | (Hoisting::Never, _) => Ok(None),
            (Hoisting::WherePays, Some(candidates)) if is_small(run, stage, candidates) => Ok(None),
            _ => Self::of(run, stage, made),
        }
    }

    #[inline(never)]
    fn of(
        run: &Run<'_>,
        stage: &Stage,
        made: &[Option<AnyArray>],
    ) -> Result<Option<Self>, ProgramError> {
        let leaves = Leaves::new(run, stage, made, &[])?;
        let mut shapes = [&[][..]; LEAVES];
        let shapes = leaves.shapes_in(&mut shapes);
        let Some(split) = chosen(run, stage, shapes) else { return Ok(None) };
        let mut values = Vec::with_capacity(split.hoisted.len());
        for stage in &split.hoisted {
            let leaves = Leaves::new(run, stage, made, &values)?;
            // Never `None`: a fresh target gives an array.
            let value = run.on_leaves(stage, &leaves, &mut Target::Fresh, None)?;
            let value = value.ok_or_else(|| run.program.unsupported("a value without a place"))?;
            drop(leaves);
            values.push(value);
        }
        Ok(Some(Self { split, values }))
    }
}

/// Whether operands are too small for hoisting, or of one shape: the early exit of most calls.
#[inline]
fn is_small(run: &Run<'_>, stage: &Stage, candidates: &Candidates) -> bool {
    let shape = |leaf: &Leaf| match leaf.origin {
        Origin::Operand(operand) if leaf.views.is_empty() => {
            run.operands.get(operand).map(AnyView::shape)
        }
        _ => None,
    };
    let (mut first, mut alike, mut rank) = (None, true, 0);
    for leaf in &stage.leaves {
        let Some(shape) = shape(leaf) else { return false };
        alike &= *first.get_or_insert(shape) == shape;
        rank = rank.max(shape.len());
    }
    if alike {
        return true;
    }
    let size = |shape: &[usize], back: usize| match shape.len().checked_sub(back + 1) {
        Some(axis) => shape[axis],
        None => 1,
    };
    let axis = |back| stage.leaves.iter().filter_map(shape).map(|shape| size(shape, back)).max();
    let most = (0..rank).filter_map(axis).fold(1, usize::saturating_mul);
    candidates.most_saved(most) < HOIST_STAGE_PS
}

/// The sub-expressions that are hoisted from a stage whose leaves have these shapes.
pub(crate) fn chosen(run: &Run<'_>, stage: &Stage, shapes: &[&[usize]]) -> Option<Arc<Split>> {
    let (program, every) = (run.program, run.hoisting == Hoisting::Always);
    let all;
    let candidates = match (run.hoisting, &stage.candidates) {
        (Hoisting::Never, _) => return None,
        (Hoisting::WherePays, candidates) => candidates.as_ref()?,
        (Hoisting::Always, _) => {
            all = Candidates::all(&program.graph, stage, program.level)?;
            &all
        }
    };
    let pays = |elements: usize| every || candidates.most_saved(elements) >= HOIST_STAGE_PS;
    let elements = if run.rule == Rule::Numpy {
        let axes = Axes::new(shapes)?;
        // Where all leaves have the same axes, so have all steps.
        if axes.is_common(shapes.len()) || !pays(axes.len) {
            return None;
        }
        candidates.steps().map(|(_, leaves)| axes.elements(leaves)).collect::<Vec<_>>()
    } else {
        // The result has hardly ever more elements than the largest leaf.
        let largest = shapes.iter().map(|shape| elements(shape)).max()?;
        if !pays(largest) {
            return None;
        }
        let stepwise = Stepwise::new(program, stage, run.rule, shapes).ok()?;
        candidates.steps().map(|(node, _)| elements(stepwise.shape(node))).collect()
    };
    let result = *elements.last()?;
    if result == 0 || isize::try_from(result).is_err() {
        return None;
    }
    let hoisted = candidates.choose(&elements, most_bytes(stage, shapes, result), every);
    if hoisted.is_empty() {
        return None;
    }
    program.splits.get(program, stage, hoisted)
}

/// The bytes that hoisted values may take: no more than the operands and the result do together,
/// where those are not small.
fn most_bytes(stage: &Stage, shapes: &[&[usize]], result: usize) -> u64 {
    let of = |size: usize, elements: usize| (size as u64).saturating_mul(elements as u64);
    let leaves = stage.leaves.iter().zip(shapes);
    let read = leaves.map(|(leaf, shape)| of(leaf.dtype.size(), elements(shape)));
    let written = match &stage.work {
        Work::Map(code) => of(code.dtype.size(), result),
        _ => 0,
    };
    read.fold(written, u64::saturating_add).max(HOIST_MOST_BYTES)
}

fn elements(shape: &[usize]) -> usize {
    if shape.contains(&0) {
        return 0;
    }
    shape.iter().fold(1, |product: usize, &size| product.saturating_mul(size))
}

/// The axes of a stage under NumPy's rule: neighbours along which the same leaves have more than one
/// element are one.
struct Axes {
    /// Those leaves, a bit for each, and the number of steps along the axes.
    runs: [(u32, usize); HOIST_AXES_MAX],
    count: usize,
    /// The elements of all axes.
    len: usize,
}

impl Axes {
    /// None where the shapes do not broadcast, where nothing is computed, or where there are too
    /// many axes to tell apart.
    fn new(shapes: &[&[usize]]) -> Option<Self> {
        let rank = shapes.iter().map(|shape| shape.len()).max()?;
        let mut axes = Self { runs: [(0, 1); HOIST_AXES_MAX], count: 0, len: 1 };
        for back in 0..rank {
            let (mut size, mut leaves) = (1, 0_u32);
            for (leaf, shape) in shapes.iter().enumerate() {
                let own = if back < shape.len() { shape[shape.len() - 1 - back] } else { 1 };
                if own != 1 {
                    if leaves != 0 && own != size {
                        return None;
                    }
                    (size, leaves) = (own, leaves | 1 << leaf);
                }
            }
            if leaves == 0 {
                continue;
            }
            axes.len = axes.len.checked_mul(size).filter(|&len| len != 0)?;
            match axes.runs[..axes.count].last_mut() {
                Some((own, steps)) if *own == leaves => *steps *= size,
                _ => {
                    *axes.runs.get_mut(axes.count)? = (leaves, size);
                    axes.count += 1;
                }
            }
        }
        Some(axes)
    }

    fn runs(&self) -> &[(u32, usize)] {
        &self.runs[..self.count]
    }

    /// Whether so many leaves all have more than one element along every axis.
    fn is_common(&self, leaves: usize) -> bool {
        self.runs().iter().all(|run| run.0.count_ones() as usize == leaves)
    }

    /// The elements of a step that depends on some leaves.
    fn elements(&self, leaves: u32) -> usize {
        self.runs().iter().filter(|run| run.0 & leaves != 0).map(|run| run.1).product()
    }
}

impl Splits {
    /// The stages of a choice, which may be there already.
    fn get(&self, program: &TypedProgram, stage: &Stage, hoisted: Vec<Node>) -> Option<Arc<Split>> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = kept.iter().find(|kept| kept.node == stage.node && kept.hoisted == hoisted);
        if let Some(known) = known {
            return known.split.clone();
        }
        // Never an error: the stage was made of the same steps.
        let made = split(&program.graph, stage, &hoisted, program.level).ok().flatten();
        let split = made.map(Arc::new);
        if kept.len() >= HOIST_CHOICES_KEPT {
            kept.remove(0);
        }
        kept.push(Kept { node: stage.node, hoisted, split: split.clone() });
        split
    }
}
