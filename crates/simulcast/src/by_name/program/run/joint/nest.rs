//! The loop nest of a pass: its axes in the order of memory, merged; and its partition.

use super::{Pass, Value};
use crate::by_name::dyn_array::AnyView;
use crate::by_name::program::build::bytecode::Several;
use crate::by_name::program::front::axes::Fold;
use simulcast_kernels::cpu::level::Level;
use simulcast_kernels::dtype::DType;
use simulcast_kernels::reduce::{JoinOp, Reducer, reducer};
use simulcast_kernels::tuning::{JOINT_PARTS, JOINT_ROW_ELEMENTS, JOINT_SUMS_BYTES, PART_ELEMENTS};
use simulcast_threads::SendPtr;

/// An operand of the nest: its bytes from one step to the next along each axis.
pub(super) struct Source {
    pub(super) first: SendPtr<u8>,
    pub(super) size: usize,
    pub(super) steps: Vec<isize>,
}

/// An array of all elements that is written.
pub(super) struct Map {
    /// Its place among the results of the code.
    pub(super) result: usize,
    pub(super) out: SendPtr<u8>,
    pub(super) size: usize,
    pub(super) steps: Vec<isize>,
}

/// A reduction: its sums from one step to the next along each axis, 0 where it is reduced.
pub(super) struct Folded {
    pub(super) result: usize,
    pub(super) steps: Vec<usize>,
    /// The same along the axes of the pass, before they were sorted and merged.
    pub(super) own_steps: Vec<usize>,
    pub(super) kept: Vec<bool>,
    pub(super) len: usize,
    /// The loops of elements, and of the sums that they are added to.
    pub(super) reducer: Reducer,
    pub(super) wide: Reducer,
    pub(super) types: [DType; 2],
}

/// See the module.
pub(super) struct Nest<'n> {
    pub(super) code: &'n Several,
    pub(super) level: Level,
    pub(super) sizes: Vec<usize>,
    pub(super) sources: Vec<Source>,
    pub(super) maps: Vec<Map>,
    pub(super) folds: Vec<Folded>,
}

/// How a nest is cut: the steps of one axis, in so many parts.
pub(super) struct AxisParts {
    pub(super) axis: usize,
    pub(super) count: usize,
}

/// How a reduction joins.
pub(super) const fn join_of(fold: Fold) -> JoinOp {
    match fold {
        Fold::Sum | Fold::Mean => JoinOp::Sum,
        Fold::Product => JoinOp::Product,
        Fold::Maximum => JoinOp::Maximum,
        Fold::Minimum => JoinOp::Minimum,
    }
}

/// The type that sums of elements are added up in.
pub(super) const fn wide_of(join: JoinOp, dtype: DType) -> DType {
    match (join, dtype) {
        (JoinOp::Sum, DType::F32) => DType::F64,
        (JoinOp::Sum, DType::C64) => DType::C128,
        (_, dtype) => dtype,
    }
}

impl<'n> Nest<'n> {
    /// The nest of a pass over some views, whose results of all elements go to `outs`, row-major; `None` where there is no
    /// loop, which typing excludes.
    pub(super) fn new(
        pass: &'n Pass,
        views: &[AnyView<'_>],
        outs: &[*mut u8],
        level: Level,
    ) -> Option<Self> {
        let rank = pass.shape.len();
        let mut sources: Vec<Source> = Vec::with_capacity(views.len());
        for (leaf, view) in pass.leaves.iter().zip(views) {
            let size = view.dtype().size();
            let mut steps = vec![0; rank];
            for (to, stride) in leaf.axes.iter().zip(view.strides()) {
                if let Some(to) = to {
                    steps[*to] += stride * size.cast_signed();
                }
            }
            sources.push(Source { first: SendPtr::reading(view.as_ptr()), size, steps });
        }
        let (mut maps, mut folds, mut outs) = (Vec::new(), Vec::new(), outs.iter());
        let order = {
            let row_major = row_major(&pass.shape, &vec![true; rank]);
            let mut by: Vec<Vec<isize>> = sources.iter().map(|own| own.steps.clone()).collect();
            by.sort_by_key(|steps| {
                let moved = steps.iter().zip(&pass.shape).filter(|(step, _)| **step != 0);
                std::cmp::Reverse(moved.map(|(_, &size)| size).product::<usize>())
            });
            by.push(row_major.iter().map(|step| step.cast_signed()).collect());
            order(&by, rank)
        };
        for (result, (_, value)) in pass.values.iter().enumerate() {
            match &value.fold {
                None => {
                    let size = value.dtype.size();
                    let steps = row_major(&pass.shape, &vec![true; rank]);
                    let steps = steps.iter().map(|&step| (step * size).cast_signed()).collect();
                    let out = SendPtr::new(*outs.next()?);
                    maps.push(Map { result, out, size, steps });
                }
                Some((fold, mask)) => {
                    folds.push(folded(pass, result, value, *fold, mask, &order, level)?);
                }
            }
        }
        let mut nest =
            Self { code: &pass.code, level, sizes: pass.shape.clone(), sources, maps, folds };
        nest.sort(&order);
        nest.merge();
        Some(nest)
    }

    /// Puts the axes in an order, without those of size 1.
    fn sort(&mut self, order: &[usize]) {
        let order: Vec<usize> =
            order.iter().copied().filter(|&axis| self.sizes[axis] != 1).collect();
        fn own<T: Copy>(values: &[T], order: &[usize]) -> Vec<T> {
            order.iter().map(|&axis| values[axis]).collect()
        }
        self.sizes = own(&self.sizes, &order);
        self.sources.iter_mut().for_each(|source| source.steps = own(&source.steps, &order));
        self.maps.iter_mut().for_each(|map| map.steps = own(&map.steps, &order));
        for fold in &mut self.folds {
            (fold.steps, fold.kept) = (own(&fold.steps, &order), own(&fold.kept, &order));
        }
        if order.is_empty() {
            // One element.
            self.sizes.push(1);
            self.sources.iter_mut().for_each(|source| source.steps.push(0));
            self.maps.iter_mut().for_each(|map| map.steps.push(0));
            self.folds.iter_mut().for_each(|fold| {
                fold.steps.push(0);
                fold.kept.push(false);
            });
        }
    }

    /// Makes one axis of neighbours through which every array strides alike.
    fn merge(&mut self) {
        let mut axis = 0;
        while axis + 1 < self.sizes.len() {
            let size = self.sizes[axis + 1];
            let same =
                |steps: &[isize]| steps[axis] == steps[axis + 1].wrapping_mul(size.cast_signed());
            let alike = self.sources.iter().all(|source| same(&source.steps))
                && self.maps.iter().all(|map| same(&map.steps))
                && self.folds.iter().all(|fold| {
                    fold.kept[axis] == fold.kept[axis + 1]
                        && fold.steps[axis] == fold.steps[axis + 1].wrapping_mul(size)
                });
            if !alike {
                axis += 1;
                continue;
            }
            self.sizes[axis + 1] *= self.sizes[axis];
            self.sizes.remove(axis);
            for steps in self.sources.iter_mut().map(|source| &mut source.steps) {
                steps.remove(axis);
            }
            for steps in self.maps.iter_mut().map(|map| &mut map.steps) {
                steps.remove(axis);
            }
            for fold in &mut self.folds {
                fold.steps.remove(axis);
                fold.kept.remove(axis);
            }
        }
    }

    /// How many elements there are.
    pub(super) fn len(&self) -> usize {
        self.sizes.iter().product()
    }

    /// Into which parts the nest is cut, whatever the number of threads.
    pub(super) fn partition(&self) -> AxisParts {
        let most = (self.len() / PART_ELEMENTS).clamp(1, JOINT_PARTS);
        let mut best = (0, std::cmp::Reverse(0), 0);
        for axis in (0..self.sizes.len()).rev() {
            // Short rows are taken together, and stay whole.
            if axis > 0 && axis + 1 == self.sizes.len() && self.sizes[axis] < JOINT_ROW_ELEMENTS {
                continue;
            }
            let shared = self.folds.iter().filter(|fold| !fold.kept[axis]);
            let bytes = shared.map(|fold| fold.len.saturating_mul(fold.wide.value_bytes));
            let bytes = bytes.fold(0, usize::saturating_add);
            let room = (JOINT_SUMS_BYTES / bytes.max(1)).max(1);
            let count = most.min(self.sizes[axis]).min(room);
            let own = (count, std::cmp::Reverse(bytes), axis);
            // Of equals, the outermost.
            if (own.0, own.1) >= (best.0, best.1) || best.0 == 0 {
                best = own;
            }
        }
        AxisParts { axis: best.2, count: best.0.max(1) }
    }
}

impl AxisParts {
    /// How many places the sums of a reduction have: one for each part that shares them.
    pub(super) fn copies(&self, fold: &Folded) -> usize {
        if fold.kept.get(self.axis) == Some(&true) { 1 } else { self.count }
    }
}

fn folded(
    pass: &Pass,
    result: usize,
    value: &Value,
    fold: Fold,
    mask: &[bool],
    order: &[usize],
    level: Level,
) -> Option<Folded> {
    let (_, dtype) = *pass.code.results.get(result)?;
    let join = join_of(fold);
    let types = [dtype, wide_of(join, dtype)];
    let kept: Vec<bool> = mask.iter().map(|gone| !gone).collect();
    // Row-major in the order of the loops.
    let sorted: Vec<usize> = order.iter().map(|&axis| pass.shape[axis]).collect();
    let sorted_kept: Vec<bool> = order.iter().map(|&axis| kept[axis]).collect();
    let mut steps = vec![0; kept.len()];
    for (step, &axis) in row_major(&sorted, &sorted_kept).into_iter().zip(order) {
        steps[axis] = step;
    }
    Some(Folded {
        result,
        own_steps: steps.clone(),
        steps,
        kept,
        len: value.shape.iter().product(),
        reducer: reducer(join, types[0], level)?,
        wide: reducer(join, types[1], level)?,
        types,
    })
}

/// The steps of a row-major array of the axes that are kept, 0 along all others.
pub(super) fn row_major(shape: &[usize], kept: &[bool]) -> Vec<usize> {
    let (mut steps, mut next) = (vec![0; shape.len()], 1_usize);
    for axis in (0..shape.len()).rev().filter(|&axis| kept[axis]) {
        steps[axis] = next;
        next = next.wrapping_mul(shape[axis]);
    }
    steps
}

/// The axes from the largest step to the smallest: of two, as the first array says that moves along both.
fn order(by: &[Vec<isize>], rank: usize) -> Vec<usize> {
    let mut order: Vec<usize> = Vec::with_capacity(rank);
    for axis in 0..rank {
        let inside = |outer: usize| {
            let says = by.iter().find(|steps| steps[axis] != 0 && steps[outer] != 0);
            says.is_none_or(|steps| steps[axis].unsigned_abs() <= steps[outer].unsigned_abs())
        };
        let mut place = order.len();
        while place > 0 && !inside(order[place - 1]) {
            place -= 1;
        }
        order.insert(place, axis);
    }
    order
}
