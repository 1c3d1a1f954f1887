//! The schedule: which steps are computed in which pass over memory.
//!
//! What becomes an array is a *root*: a result, a reduction, or a value that is far smaller than what it is repeated to.
//! Everything between roots is computed where it is read, and never stored. Roots with the same shape of elements, of which
//! none needs another, are one pass: an operand that several of them read is read once, and a step that they share is
//! computed once.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::steps::{Id, Kind, Steps};
use crate::by_name::program::build::builder::widened;
use crate::by_name::program::build::bytecode::{Flat, Several};
use crate::by_name::program::front::axes::Fold;
use crate::by_name::program::run::joint::{Leaf, Origin, Pass, Value};
use simulcast_kernels::cpu::level::Level;
use simulcast_kernels::dtype::DType;
use simulcast_kernels::tuning::{JOINT_HOIST_ELEMENTS, JOINT_HOIST_RATIO};

/// A result: an array that was made, in another shape with as many elements.
#[derive(Clone, Debug)]
pub(in crate::by_name::program) struct Outcome {
    pub(in crate::by_name::program) made: usize,
    pub(in crate::by_name::program) shape: Vec<usize>,
}

/// Passes, in order.
#[derive(Clone, Debug)]
pub(in crate::by_name::program) struct Schedule {
    pub(in crate::by_name::program) passes: Vec<Pass>,
    pub(in crate::by_name::program) outcomes: Vec<Outcome>,
    /// How many arrays are made.
    pub(in crate::by_name::program) arrays: usize,
}

/// A step that becomes an array.
struct Root {
    id: Id,
    /// The step whose elements are computed, and the reduction of them.
    of: Id,
    fold: Option<(Fold, Vec<bool>)>,
    is_result: bool,
    /// The roots that have to be there before.
    needs: Vec<usize>,
}

impl Root {
    /// The type that it is stored in: what is neither a result nor reduced stays as wide as it is computed.
    fn dtype(&self, steps: &Steps) -> DType {
        let dtype = steps.dtype(self.id);
        if self.is_result || self.fold.is_some() { dtype } else { widened(dtype) }
    }
}

impl Schedule {
    /// The schedule of some results; `None` where there is no kernel, which typing excludes.
    pub(super) fn new(steps: &Steps, results: &[Id], level: Level) -> Option<Self> {
        let stored: Vec<Id> = results.iter().map(|&id| stored(steps, id)).collect();
        let mut roots = roots(steps, &stored);
        let number: HashMap<Id, usize> =
            roots.iter().enumerate().map(|(at, root)| (root.id, at)).collect();
        for at in 0..roots.len() {
            roots[at].needs = needs(steps, &roots, at, &number);
        }
        let (mut passes, mut done) = (Vec::new(), vec![false; roots.len()]);
        for group in groups(steps, &roots) {
            passes.push(pass(steps, &roots, &group, (&number, &done), level)?);
            group.iter().for_each(|&root| done[root] = true);
        }
        let mut read: BTreeSet<usize> = stored.iter().map(|id| number[id]).collect();
        for pass in passes.iter_mut().rev() {
            let own = pass.leaves.iter().filter_map(|leaf| match leaf.origin {
                Origin::Made(made) => Some(made),
                Origin::Operand(_) => None,
            });
            let own: BTreeSet<usize> = own.collect();
            pass.spent = own.into_iter().filter(|&made| read.insert(made)).collect();
        }
        let outcomes = stored
            .iter()
            .zip(results)
            .map(|(id, &result)| Outcome { made: number[id], shape: steps.shape(result).to_vec() });
        Some(Self { passes, outcomes: outcomes.collect(), arrays: roots.len() })
    }

    /// Whether a result has to be an array of its own: a reduction, read by another pass, or more than one result.
    pub(super) fn is_read(&self, outcome: &Outcome) -> bool {
        let made = outcome.made;
        let leaves = self.passes.iter().flat_map(|pass| &pass.leaves);
        let values = self.passes.iter().flat_map(|pass| &pass.values);
        leaves.into_iter().any(|leaf| leaf.origin == Origin::Made(made))
            || values.into_iter().any(|(own, value)| *own == made && value.fold.is_some())
            || self.outcomes.iter().filter(|other| other.made == made).count() > 1
    }
}

/// What is stored for a result: a value that is only seen with other axes of size 1 is stored itself.
fn stored(steps: &Steps, result: Id) -> Id {
    let mut id = result;
    while let Kind::Lay(of, axes) = &steps.step(id).kind {
        let mut kept = axes.iter().zip(steps.shape(id)).filter(|(_, size)| **size != 1);
        let mut last = None;
        let in_order = kept.all(|(axis, _)| {
            let later = axis.is_some() && *axis > last;
            last = *axis;
            later
        });
        let computed = !matches!(steps.step(*of).kind, Kind::Operand(_) | Kind::Constant(_));
        if !in_order || !computed || steps.elements(*of) != steps.elements(id) {
            break;
        }
        id = *of;
    }
    id
}

/// Every step that becomes an array, each after those that it needs.
fn roots(steps: &Steps, results: &[Id]) -> Vec<Root> {
    let mut found: BTreeMap<Id, bool> = results.iter().map(|&id| (id, true)).collect();
    let mut open: Vec<Id> = results.to_vec();
    let mut seen: BTreeSet<Id> = open.iter().copied().collect();
    while let Some(id) = open.pop() {
        let step = steps.step(id);
        if let Kind::Fold(..) = step.kind {
            found.entry(id).or_insert(false);
        }
        if let Kind::Lay(of, _) = step.kind {
            let (own, all) = (steps.elements(of), steps.elements(id));
            let computed = matches!(steps.step(of).kind, Kind::Apply(..) | Kind::Cast(_));
            if computed
                && all >= JOINT_HOIST_ELEMENTS
                && own.saturating_mul(JOINT_HOIST_RATIO) <= all
            {
                found.entry(of).or_insert(false);
            }
        }
        open.extend(step.kind.args().iter().filter(|&&arg| seen.insert(arg)));
    }
    let root = |(id, is_result): (Id, bool)| {
        let (of, fold) = match &steps.step(id).kind {
            Kind::Fold(of, fold, mask) => (*of, Some((*fold, mask.clone()))),
            _ => (id, None),
        };
        Root { id, of, fold, is_result, needs: Vec::new() }
    };
    found.into_iter().map(root).collect()
}

/// The roots that a root reads. An array of the same shape that is not reduced is computed again, or in the same pass, so
/// the roots that it reads count instead.
fn needs(steps: &Steps, roots: &[Root], at: usize, number: &HashMap<Id, usize>) -> Vec<usize> {
    let own = &roots[at];
    let mut needs = BTreeSet::new();
    let mut open = vec![own.of];
    let mut seen = BTreeSet::new();
    while let Some(id) = open.pop() {
        if !seen.insert(id) {
            continue;
        }
        if let Some(&root) = number.get(&id).filter(|&&root| root != at) {
            let alike = steps.shape(id) == steps.shape(own.of) && roots[root].fold.is_none();
            if !alike {
                needs.insert(root);
                continue;
            }
        }
        open.extend(steps.args(id));
    }
    needs.into_iter().collect()
}

/// The roots of each pass, in order: of those that need nothing more, all of the smallest shape. So a pass over many elements
/// waits until everything that is smaller is there, and makes as much as it can.
fn groups(steps: &Steps, roots: &[Root]) -> Vec<Vec<usize>> {
    let (mut done, mut order) = (vec![false; roots.len()], Vec::new());
    loop {
        let ready: Vec<usize> = (0..roots.len())
            .filter(|&at| !done[at] && roots[at].needs.iter().all(|&need| done[need]))
            .collect();
        let size = |at: &&usize| steps.elements(roots[**at].of);
        let Some(&first) = ready.iter().min_by_key(size) else { return order };
        let shape = steps.shape(roots[first].of);
        let group: Vec<usize> =
            ready.iter().copied().filter(|&at| steps.shape(roots[at].of) == shape).collect();
        group.iter().for_each(|&at| done[at] = true);
        order.push(group);
    }
}

/// A step as a pass reads it: for each of its axes, the axis of the pass.
type Instance = (Id, Vec<Option<usize>>);

/// The pass of some roots.
fn pass(
    steps: &Steps,
    roots: &[Root],
    group: &[usize],
    (number, done): (&HashMap<Id, usize>, &[bool]),
    level: Level,
) -> Option<Pass> {
    let first = group.first()?;
    let shape = steps.shape(roots[*first].of).to_vec();
    let mut writing = Writing {
        steps,
        roots,
        number,
        done,
        known: HashMap::new(),
        flats: Vec::new(),
        leaves: Vec::new(),
    };
    let (mut results, mut values) = (Vec::new(), Vec::new());
    for &root in group {
        let own = &roots[root];
        let axes = (0..shape.len()).map(Some).collect();
        let at = writing.write((own.of, axes));
        let dtype = own.dtype(steps);
        // Of an array that an earlier pass made, the step is as wide as that is stored: the type is the root's.
        let computed = if own.fold.is_none() { dtype } else { widened(steps.dtype(own.of)) };
        results.push((at, computed));
        let (whole, fold) = (shape.clone(), own.fold.clone());
        let gone = fold.iter().flat_map(|(_, mask)| whole.iter().zip(mask));
        let count = gone.filter(|(_, gone)| **gone).map(|(&size, _)| size).product();
        let shape = steps.shape(own.id).to_vec();
        values.push((root, Value { dtype, shape, fold, count }));
    }
    let code = Several::new(&writing.flats, &results, level)?;
    let ends = results.into_iter().map(|(at, _)| at).collect();
    let (leaves, steps) = (writing.leaves, writing.flats);
    Some(Pass { shape, leaves, code, steps, ends, values, spent: Vec::new() })
}

/// Steps of a pass as code.
struct Writing<'w> {
    steps: &'w Steps,
    roots: &'w [Root],
    number: &'w HashMap<Id, usize>,
    /// Which roots earlier passes made.
    done: &'w [bool],
    /// Where each instance is among the steps of the code.
    known: HashMap<Instance, usize>,
    flats: Vec<(Flat, DType)>,
    leaves: Vec<Leaf>,
}

impl Writing<'_> {
    /// Writes an instance, and what it reads, and says where it is.
    fn write(&mut self, root: Instance) -> usize {
        let root = self.settled(root);
        let mut open = vec![(root.clone(), false)];
        while let Some((instance, ready)) = open.pop() {
            if self.known.contains_key(&instance) {
                continue;
            }
            let args = self.args(&instance);
            if !ready && !args.is_empty() {
                open.push((instance, true));
                open.extend(args.into_iter().map(|arg| (arg, false)));
                continue;
            }
            let flat = self.flat(&instance, &args);
            self.known.insert(instance, self.flats.len());
            self.flats.push(flat);
        }
        self.known.get(&root).copied().unwrap_or(0)
    }

    /// The array that a step is, where an earlier pass made it.
    fn made(&self, id: Id) -> Option<usize> {
        self.number.get(&id).copied().filter(|&made| self.done[made])
    }

    /// An instance through what is only laid, with no axes where it does not move.
    fn settled(&self, (mut id, mut axes): Instance) -> Instance {
        while let (None, Kind::Lay(of, map)) = (self.made(id), &self.steps.step(id).kind) {
            let own = (0..self.steps.shape(*of).len()).map(|axis| {
                let at = map.iter().position(|&from| from == Some(axis))?;
                axes.get(at).copied().flatten()
            });
            (id, axes) = (*of, own.collect());
        }
        let step = self.steps.step(id);
        for (axis, size) in axes.iter_mut().zip(&step.shape) {
            *axis = axis.filter(|_| *size != 1);
        }
        if let Kind::Constant(_) = step.kind {
            axes.clear();
        }
        (id, axes)
    }

    fn args(&self, (id, axes): &Instance) -> Vec<Instance> {
        if self.made(*id).is_some() {
            return Vec::new();
        }
        match &self.steps.step(*id).kind {
            Kind::Apply(..) | Kind::Cast(_) => {
                let args = self.steps.args(*id).iter();
                args.map(|&arg| self.settled((arg, axes.clone()))).collect()
            }
            _ => Vec::new(),
        }
    }

    fn flat(&mut self, (id, axes): &Instance, args: &[Instance]) -> (Flat, DType) {
        let step = self.steps.step(*id);
        let at = |n: usize| args.get(n).and_then(|arg| self.known.get(arg)).copied().unwrap_or(0);
        let origin = match (self.made(*id), &step.kind) {
            (Some(made), _) => Some(Origin::Made(made)),
            (None, Kind::Operand(operand)) => Some(Origin::Operand(*operand)),
            _ => None,
        };
        if let Some(origin) = origin {
            let dtype = match origin {
                Origin::Made(made) => self.roots[made].dtype(self.steps),
                Origin::Operand(_) => step.dtype,
            };
            self.leaves.push(Leaf { origin, axes: axes.clone() });
            return (Flat::Leaf(self.leaves.len() - 1), dtype);
        }
        let flat = match step.kind {
            Kind::Constant(bytes) => Flat::Constant(bytes),
            Kind::Apply(op, compute, _) => Flat::Apply(op, compute, [at(0), at(1), at(2)]),
            // A conversion; there are no others.
            _ => Flat::Cast(at(0)),
        };
        (flat, step.dtype)
    }
}
