//! Reductions: many elements into few, in an order that depends on the shape alone.
//!
//! ```text
//! loops    as in a nest, ordered by the gradient's strides, so that it is read in order; a loop
//!          is summed (the result does not move) or kept
//! unit     neighbours in the result
//!          along  (the innermost loop is summed)  up to 64, each the sum of runs
//!          across (the innermost loop is kept)    up to 4096, the sums of rows
//! leaf     along   up to 32768 elements of a run for each neighbour: sums of 2048, in 32 sums side
//!                  by side, added in pairs
//!          across  up to 128 rows, eight at a time, added to one row of sums; where short rows
//!                  follow each other, a power of two of them is one row, until all are summed
//! tree     leaves are added in pairs, pairs in pairs, and so on
//! parts    where there are few units, the leaves of each are cut into a power of two of equal parts,
//!          the sums of which are added in pairs
//! ```
//!
//! So memory is read in order wherever the sums of a unit find room in the first-level cache.
//!
//! Invariant: the gradient's pointer with its loops stays within the gradient, the result's offsets
//! stay within the result, and two units never share an element of it.

mod loops;

use simulcast_kernels::cpu::EIGHT;
use std::ops::Range;

use self::loops::{ROWS, RUN, across, run};
use crate::Addend;
use crate::layout::loop_nest::{Loop, Nest};
use crate::layout::small_vec::Inline;
use simulcast_kernels::compiled_for_levels;
use simulcast_kernels::cpu::level::{Kind, Level};
use simulcast_kernels::cpu::nontemporal;
use simulcast_threads::{SendPtr, for_each_part, share};

/// The neighbours of a unit across, and along.
const WIDE: usize = 4096;
const NARROW: usize = 64;
/// Rows are short where several of them have no more elements together.
const SHORT: usize = 512;
/// The parts that there should be at least, whoever does them, the elements that are worth one, and the
/// sums of parts that there may be.
const PARTS: usize = 64;
const PART: usize = 1 << 14;
const SUMS: usize = 1 << 16;

/// What is summed into what: pure arithmetic on the shape.
pub(crate) struct Reduction {
    /// Where gradient and result begin.
    start: (isize, isize),
    /// The loop over the neighbours of units, and how many of them a unit has at most.
    row: Loop<1>,
    width: usize,
    /// The innermost loop, where it is summed.
    run: Option<Loop<1>>,
    /// The other loops that are kept, and those that are summed.
    kept: Inline<Loop<1>>,
    summed: Inline<Loop<1>>,
    /// How many short rows that follow each other are taken as one, and how many rows are left over.
    abreast: usize,
    over: usize,
    elements: usize,
    /// How many units there are, leaves a unit, and parts that the leaves of a unit are cut into.
    units: usize,
    leaves: usize,
    parts: usize,
}

impl Reduction {
    /// The reduction over a shape without a 0, given the strides of the gradient and of the result.
    pub(crate) fn new(shape: &[usize], grad: &[isize], result: &[isize]) -> Self {
        let nest = Nest::new(shape, grad, [result]);
        let is_kept = |one: &Loop<1>| one.ins != [0];
        let mut outer = &nest.loops[..];
        let run = outer.split_last().filter(|(inner, _)| !is_kept(inner)).map(|(inner, rest)| {
            outer = rest;
            *inner
        });
        let row = outer.split_last().filter(|(inner, _)| is_kept(inner)).map(|(inner, rest)| {
            outer = rest;
            *inner
        });
        let row = row.unwrap_or_default();
        let (mut kept, mut summed) = (Inline::new(), Inline::new());
        for one in outer {
            if is_kept(one) { kept.push(*one) } else { summed.push(*one) }
        }
        let (mut abreast, mut over) = (1, 0);
        if let (None, 1, [rows]) = (run, row.out, &mut summed[..])
            && rows.out == row.len.cast_signed()
        {
            abreast = 1 << (SHORT / row.len).min(rows.len / EIGHT).max(1).ilog2();
            over = rows.len % abreast;
            rows.len /= abreast;
            rows.out *= abreast.cast_signed();
        }
        let depth = count(&summed);
        let (width, leaves) = match run {
            Some(run) => (NARROW.min(row.len), depth * run.len.div_ceil(RUN)),
            None => (WIDE.min(row.len), depth.div_ceil(ROWS)),
        };
        let units = count(&kept) * row.len.div_ceil(width);
        let elements = count(&nest.loops);
        let most = (elements / PART).min(SUMS / (units * width)).max(1);
        let parts = 1 << PARTS.div_ceil(units).min(leaves).min(most).ilog2();
        let start = (nest.out, nest.ins[0]);
        Self { start, row, width, run, kept, summed, abreast, over, elements, units, leaves, parts }
    }

    /// Whether gradients of that type are more than caches near a thread hold, so that lines of them are asked for.
    fn is_far<T>(&self) -> bool {
        self.elements.saturating_mul(size_of::<T>()) >= nontemporal::FAR
    }

    /// Where the gradient and the result of a unit begin, and how many neighbours it has.
    fn unit(&self, unit: usize) -> (isize, isize, usize) {
        let blocks = self.row.len.div_ceil(self.width);
        let (grad, result) = offsets(&self.kept, unit / blocks);
        let first = unit % blocks * self.width;
        let width = self.width.min(self.row.len - first);
        let first = first.cast_signed();
        let [step] = self.row.ins;
        (self.start.0 + grad + first * self.row.out, self.start.1 + result + first * step, width)
    }
}

fn count(loops: &[Loop<1>]) -> usize {
    loops.iter().map(|one| one.len).product()
}

/// How far gradient and result have moved at step `step` of some loops, taken as one.
#[inline(always)]
fn offsets(loops: &[Loop<1>], mut step: usize) -> (isize, isize) {
    if let [one] = loops {
        let step = step.cast_signed();
        return (step * one.out, step * one.ins[0]);
    }
    let mut at = (0, 0);
    for one in loops.iter().rev() {
        let index = (step % one.len).cast_signed();
        step /= one.len;
        at.0 += index * one.out;
        at.1 += index * one.ins[0];
    }
    at
}

/// Sums in pairs, pairs of pairs and so on: rows of sums, each of the same width.
struct Tree<S> {
    added: usize,
    /// Row k holds the sum of `1 << k` leaves, where bit k of `added` is set.
    levels: Vec<Vec<S>>,
}

impl<S: Copy> Tree<S> {
    /// Adds a leaf, which is used up.
    #[inline(always)]
    fn add(&mut self, leaf: &mut Vec<S>, plus: impl Fn(S, S) -> S + Copy) {
        let mut level = 0;
        while self.added >> level & 1 == 1 {
            join_rows(leaf, &self.levels[level], plus);
            level += 1;
        }
        if level == self.levels.len() {
            self.levels.push(Vec::new());
        }
        std::mem::swap(&mut self.levels[level], leaf);
        self.added += 1;
    }

    /// The sum of all leaves, of which there are some; none are left.
    #[inline(always)]
    fn total(&mut self, total: &mut Vec<S>, plus: impl Fn(S, S) -> S + Copy) {
        let mut level = self.added.trailing_zeros() as usize;
        std::mem::swap(&mut self.levels[level], total);
        level += 1;
        while self.added >> level > 0 {
            if self.added >> level & 1 == 1 {
                join_rows(total, &self.levels[level], plus);
            }
            level += 1;
        }
        self.added = 0;
    }
}

/// `late := early + late`, sum by sum.
#[inline(always)]
fn join_rows<S: Copy>(late: &mut [S], early: &[S], plus: impl Fn(S, S) -> S) {
    for (late, &early) in late.iter_mut().zip(early) {
        *late = plus(early, *late);
    }
}

/// Sums the gradient into the result, on at most `limit` threads if that is said.
///
/// # Safety
///
/// The invariant of this module, for `grad`, `result` and the strides that `reduction` was made of.
pub(crate) unsafe fn reduce<T: Addend>(
    level: Level,
    reduction: &Reduction,
    grad: *const T,
    result: &mut [T],
    limit: Option<usize>,
) {
    // What is read is `Sync`, what is written `Send`, and every task writes elements of its own.
    let (grad, result) = (SendPtr::reading(grad), SendPtr::new(result.as_mut_ptr()));
    let run = |tasks: usize, task: &(dyn Fn(usize) + Sync)| for_each_part(tasks, limit, task);
    let Reduction { units, leaves, parts, .. } = *reduction;
    if parts == 1 {
        let tasks = units.min(4 * PARTS);
        run(tasks, &|task| {
            let (grad, result) = (grad.get().cast_const(), result.get());
            let mut work = Work::new();
            for unit in share(units, task, tasks)..share(units, task + 1, tasks) {
                // SAFETY: the caller keeps the invariant; tasks have units of their own.
                unsafe {
                    work.sum(level, reduction, grad, unit, 0..leaves);
                    store(reduction, &work.total, result, unit);
                }
            }
        });
        return;
    }
    // Few units: at most `SUMS` sums.
    let width = reduction.width;
    let mut rows: Vec<T::Sum> = Vec::with_capacity(units * parts * width);
    let rows_at = SendPtr::new(rows.as_mut_ptr());
    run(units * parts, &|task| {
        let (unit, part) = (task / parts, task % parts);
        let own = share(leaves, part, parts)..share(leaves, part + 1, parts);
        let mut work = Work::new();
        // SAFETY: the caller keeps the invariant; every task writes a row of its own.
        unsafe {
            let (grad, rows) = (grad.get().cast_const(), rows_at.get());
            work.sum(level, reduction, grad, unit, own);
            work.total.resize(width, T::NEUTRAL);
            std::ptr::copy_nonoverlapping(work.total.as_ptr(), rows.add(task * width), width);
        }
    });
    // SAFETY: each of the rows is written.
    unsafe { rows.set_len(units * parts * width) };
    for (unit, rows) in rows.chunks_exact_mut(parts * width).enumerate() {
        in_pairs::<T>(rows, width);
        // SAFETY: the caller keeps the invariant.
        unsafe { store(reduction, rows, result.get(), unit) };
    }
}

/// Writes the sums of a unit into the result.
///
/// # Safety
///
/// The invariant of this module.
unsafe fn store<T: Addend>(reduction: &Reduction, sums: &[T::Sum], result: *mut T, unit: usize) {
    let (_, to, width) = reduction.unit(unit);
    let write = |step: isize| {
        for (at, &sum) in sums.iter().take(width).enumerate() {
            // SAFETY: a unit's neighbours lie within the result.
            unsafe { result.offset(to + at.cast_signed() * step).write(T::narrow(sum)) };
        }
    };
    // The step that is usual becomes a loop of its own.
    let [step] = reduction.row.ins;
    if step == 1 { write(1) } else { write(step) }
}

/// What one thread works with.
struct Work<T: Addend> {
    tree: Tree<T::Sum>,
    leaf: Vec<T::Sum>,
    total: Vec<T::Sum>,
}

impl<T: Addend> Work<T> {
    fn new() -> Self {
        let tree = Tree { added: 0, levels: Vec::new() };
        Self { tree, leaf: Vec::new(), total: Vec::new() }
    }

    /// Sums some leaves of a unit into `total`, at a level.
    ///
    /// # Safety
    ///
    /// The invariant of this module.
    unsafe fn sum(
        &mut self,
        level: Level,
        reduction: &Reduction,
        grad: *const T,
        unit: usize,
        leaves: Range<usize>,
    ) {
        // SAFETY: the caller keeps the invariant; a `Level` exists only where the machine has it.
        unsafe {
            match level.kind() {
                Kind::Baseline => self.plain::<false>(reduction, grad, unit, leaves),
                #[cfg(target_arch = "x86_64")]
                Kind::Avx2 => self.avx2(reduction, grad, unit, leaves),
                #[cfg(target_arch = "x86_64")]
                Kind::Avx512 => self.avx512(reduction, grad, unit, leaves),
            }
        }
    }

    compiled_for_levels! {
        /// # Safety
        ///
        /// As [`Work::plain`], and the machine has the features.
        unsafe fn avx2, avx512(
            &mut self,
            reduction: &Reduction,
            grad: *const T,
            unit: usize,
            leaves: Range<usize>,
        ) {
            // SAFETY: the caller keeps the conditions.
            unsafe { self.plain::<true>(reduction, grad, unit, leaves) }
        }
    }

    /// # Safety
    ///
    /// The invariant of this module; with `WIDE`, the caller is compiled for AVX2 and F16C.
    #[inline(always)]
    unsafe fn plain<const WIDE: bool>(
        &mut self,
        reduction: &Reduction,
        grad: *const T,
        unit: usize,
        leaves: Range<usize>,
    ) {
        let (from, _, width) = reduction.unit(unit);
        let from = grad.wrapping_offset(from);
        let summed = &reduction.summed[..];
        let asks = reduction.is_far::<T>() && nontemporal::likes_help();
        for leaf in leaves {
            self.leaf.clear();
            self.leaf.resize(width * reduction.abreast, T::NEUTRAL);
            if let Some(inner) = reduction.run {
                let pieces = inner.len.div_ceil(RUN);
                let start = leaf % pieces * RUN;
                let len = RUN.min(inner.len - start);
                let (offset, _) = offsets(summed, leaf / pieces);
                let mut at = from.wrapping_offset(offset + start.cast_signed() * inner.out);
                for sum in &mut self.leaf {
                    // SAFETY: the run lies within the gradient.
                    *sum = unsafe { run::<T, WIDE>(at, len, inner.out, asks) };
                    at = at.wrapping_offset(reduction.row.out);
                }
            } else {
                // SAFETY: the rows lie within the gradient, and so does what is left over after them.
                unsafe { across::<T, WIDE>(reduction, from, leaf, &mut self.leaf) };
            }
            self.tree.add(&mut self.leaf, T::plus);
        }
        self.tree.total(&mut self.total, T::plus);
        in_pairs::<T>(&mut self.total, width);
        self.total.truncate(width);
    }
}

/// The sum of a power of two of rows, which is the first of them afterwards.
fn in_pairs<T: Addend>(rows: &mut [T::Sum], width: usize) {
    let mut half = rows.len() / 2;
    while half >= width {
        let (early, late) = rows.split_at_mut(half);
        join_rows(early, &late[..half], |a, b| T::plus(b, a));
        half /= 2;
    }
}

#[cfg(test)]
mod tests {
    use half::f16;
    use simulcast_threads::set_threads;

    use super::*;

    // [E_BROADCAST_ANY_FUNC_3040] [E_BROADCAST_ANY_FUNC_3050]
    #[test]
    fn sums_have_the_same_bits_at_every_level_on_any_number_of_threads() {
        let shapes = match cfg!(miri) {
            true => [[3, 5, 40], [50, 3, 5]],
            // Long rows, and short ones of which some are left over.
            false => [[70, 9, 2100], [3001, 7, 5]],
        };
        for (shape, kept) in shapes.into_iter().flat_map(|shape| (0..8).map(move |k| (shape, k))) {
            let len: usize = shape.iter().product();
            let grad: Vec<f32> = (0..len).map(|n| (n * 7919 % 10_007) as f32 / 97.0).collect();
            let strides = [shape[1] * shape[2], shape[2], 1].map(usize::cast_signed);
            // Row-major strides over the axes that are kept.
            let (mut result, mut all) = ([0_isize; 3], 1);
            for axis in (0..3).rev().filter(|axis| kept >> axis & 1 == 1) {
                result[axis] = all;
                all *= shape[axis].cast_signed();
            }
            let reduction = Reduction::new(&shape, &strides, &result);
            let run = |level, limit| {
                let mut sums = vec![0.0_f32; all.unsigned_abs()];
                // SAFETY: the strides are row-major in vectors of these sizes.
                unsafe { reduce(level, &reduction, grad.as_ptr(), &mut sums, limit) };
                sums.into_iter().map(f32::to_bits).collect::<Vec<_>>()
            };
            set_threads(8);
            let once = run(Level::BASELINE, Some(1));
            for level in Level::available() {
                for threads in [1, 2, 3, 8] {
                    assert_eq!(
                        run(level, Some(threads)),
                        once,
                        "{} {threads} {kept:b}",
                        level.name()
                    );
                }
            }
        }
    }

    // [E_BROADCAST_ANY_FUNC_3040] [E_BROADCAST_ANY_FUNC_3050]
    #[test]
    fn halves_are_summed_as_the_floats_that_they_are() {
        // Rows and columns of more than whole vectors; sums that a half can hold.
        let shape: [usize; 2] = if cfg!(miri) { [11, 79] } else { [41, 2071] };
        let len = shape[0] * shape[1];
        let halves: Vec<f16> =
            (0..len).map(|n| f16::from_f32((n * 7919 % 10_007) as f32 / 100_000.0)).collect();
        let floats: Vec<f32> = halves.iter().map(|half| half.to_f32()).collect();
        for (result, all) in [([0, 1], shape[1]), ([1, 0], shape[0]), ([0, 0], 1)] {
            let strides = [shape[1].cast_signed(), 1];
            let reduction = Reduction::new(&shape, &strides, &result);
            let mut expected = vec![0.0_f32; all];
            // SAFETY: the strides are row-major in vectors of these sizes.
            unsafe { reduce(Level::BASELINE, &reduction, floats.as_ptr(), &mut expected, Some(1)) };
            let expected: Vec<f16> = expected.into_iter().map(f16::from_f32).collect();
            assert!(expected.iter().all(|sum| sum.is_finite()));
            for level in Level::available() {
                let mut sums = vec![f16::ZERO; all];
                // SAFETY: as above.
                unsafe { reduce(level, &reduction, halves.as_ptr(), &mut sums, Some(1)) };
                assert_eq!(sums, expected, "{}", level.name());
            }
        }
    }
}
