//! Reductions: many elements into few, in an order that depends on the shape alone.
//!
//! ```text
//! loops    as in a nest, ordered by the gradient's strides, so that it is read in order; a loop
//!          is summed (the result does not move) or kept
//! unit     along  (the innermost loop is summed)  one element of the result
//!          across (the innermost loop is kept)    up to 2048 neighbours
//! leaf     along   up to 2048 elements of one run, in 32 sums side by side
//!          across  up to 32 rows, four at a time, added to one row of sums
//! tree     leaves are added in pairs, pairs in pairs, and so on
//! parts    where there are few units, the leaves of each are cut into equal parts, the sums of
//!          which are added the same way
//! ```
//!
//! Invariant: the gradient's pointer with its loops stays within the gradient, the result's offsets
//! stay within the result, and two units never share an element of it.

use std::ops::Range;

use crate::Addend;
use crate::addend::TOGETHER;
use crate::inline::Inline;
use crate::level::{Kind, Level, compiled_for_levels};
use crate::nest::{Loop, Nest};
use crate::run::share;
use crate::stream::{LINE, prefetch};
use crate::threads;

/// The neighbours that one unit across sums.
const WIDE: usize = 2048;
/// The elements of a leaf along.
const RUN: usize = 2048;
/// The rows of a leaf across.
const ROWS: usize = 32;
/// The rows that are added at a time.
const FOUR: usize = 4;
/// The sums side by side in a leaf along.
const LANES: usize = 32;
/// The parts that there should be at least, whoever does them.
const PARTS: usize = 64;

/// What is summed into what: pure arithmetic on the shape.
pub(crate) struct Reduction {
    /// Where gradient and result begin.
    start: (isize, isize),
    /// The innermost loop.
    inner: Loop<1>,
    /// The other loops that are kept, and those that are summed.
    kept: Inline<Loop<1>>,
    summed: Inline<Loop<1>>,
    /// How many units there are, leaves a unit, and parts that the leaves of a unit are cut into.
    units: usize,
    leaves: usize,
    parts: usize,
}

impl Reduction {
    /// The reduction over a shape without a 0, given the strides of the gradient and of the result.
    pub(crate) fn new(shape: &[usize], grad: &[isize], result: &[isize]) -> Self {
        let nest = Nest::new(shape, grad, [result]);
        let (mut kept, mut summed) = (Inline::new(), Inline::new());
        let (inner, outer) = match nest.loops.split_last() {
            Some((inner, outer)) => (*inner, outer),
            None => (Loop::default(), &[][..]),
        };
        for one in outer {
            if one.ins == [0] { summed.push(*one) } else { kept.push(*one) }
        }
        let (width, depth) = (count(&kept), count(&summed));
        let (units, leaves) = if inner.ins == [0] {
            (width, depth * inner.len.div_ceil(RUN))
        } else {
            (width * inner.len.div_ceil(WIDE), depth.div_ceil(ROWS))
        };
        let parts = PARTS.div_ceil(units).min(leaves.div_ceil(4));
        let start = (nest.out, nest.ins[0]);
        Self { start, inner, kept, summed, units, leaves, parts }
    }

    /// Whether the innermost loop is summed.
    fn along(&self) -> bool {
        self.inner.ins == [0]
    }

    /// Where the gradient and the result of a unit begin, and how many neighbours it has.
    fn unit(&self, unit: usize) -> (isize, isize, usize) {
        let (rest, column) = if self.along() {
            (unit, 0)
        } else {
            let blocks = self.inner.len.div_ceil(WIDE);
            (unit / blocks, unit % blocks * WIDE)
        };
        let width = if self.along() { 1 } else { WIDE.min(self.inner.len - column) };
        let (grad, result) = offsets(&self.kept, rest);
        let column = column.cast_signed();
        let [step] = self.inner.ins;
        (
            self.start.0 + grad + column * self.inner.out,
            self.start.1 + result + column * step,
            width,
        )
    }

    /// The most sums that one unit has.
    fn width(&self) -> usize {
        if self.along() { 1 } else { WIDE.min(self.inner.len) }
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
    width: usize,
    added: usize,
    /// Row k holds the sum of `1 << k` leaves, where bit k of `added` is set.
    levels: Vec<Vec<S>>,
}

impl<S: Copy> Tree<S> {
    fn new(width: usize) -> Self {
        Self { width, added: 0, levels: Vec::new() }
    }

    fn clear(&mut self, width: usize) {
        self.width = width;
        self.added = 0;
    }

    /// Adds a leaf, which is used up.
    #[inline(always)]
    fn add(&mut self, leaf: &mut [S], plus: impl Fn(S, S) -> S + Copy) {
        let mut level = 0;
        while self.added >> level & 1 == 1 {
            join_rows(leaf, &self.levels[level][..self.width], plus);
            level += 1;
        }
        if level == self.levels.len() {
            self.levels.push(leaf.to_vec());
        } else {
            let row = &mut self.levels[level];
            row.clear();
            row.extend_from_slice(leaf);
        }
        self.added += 1;
    }

    /// The sum of all leaves, into `total`, which held zeros.
    #[inline(always)]
    fn total(&self, total: &mut [S], plus: impl Fn(S, S) -> S + Copy) {
        let mut first = true;
        for (level, row) in self.levels.iter().enumerate() {
            if self.added >> level & 1 == 1 {
                if first {
                    total.copy_from_slice(&row[..self.width]);
                } else {
                    join_rows(total, &row[..self.width], plus);
                }
                first = false;
            }
        }
    }
}

/// `late := early + late`, sum by sum.
#[inline(always)]
fn join_rows<S: Copy>(late: &mut [S], early: &[S], plus: impl Fn(S, S) -> S) {
    for (late, &early) in late.iter_mut().zip(early) {
        *late = plus(early, *late);
    }
}

/// Pointers that cross threads: to what is read, and to what is written.
struct Shared<G, R>(*const G, *mut R);

// SAFETY: what is read is `Sync`, what is written is `Send`, and every task writes elements of its
// own.
unsafe impl<G: Sync, R: Send> Sync for Shared<G, R> {}

impl<G, R> Shared<G, R> {
    fn get(&self) -> (*const G, *mut R) {
        (self.0, self.1)
    }
}

/// Sums the gradient into the result.
///
/// # Safety
///
/// The invariant of this module, for `grad`, `result` and the strides that `reduction` was made of.
pub(crate) unsafe fn reduce<T: Addend>(
    level: Level,
    reduction: &Reduction,
    grad: *const T,
    result: &mut [T],
    parallel: bool,
) {
    let shared = Shared(grad, result.as_mut_ptr());
    let run = |tasks: usize, task: &(dyn Fn(usize) + Sync)| {
        if parallel { threads::each(tasks, task) } else { (0..tasks).for_each(task) }
    };
    let Reduction { units, leaves, parts, .. } = *reduction;
    if parts == 1 {
        let tasks = units.min(4 * PARTS);
        run(tasks, &|task| {
            let (grad, result) = shared.get();
            let mut work = Work::new(reduction.width());
            for unit in share(units, task, tasks)..share(units, task + 1, tasks) {
                // SAFETY: the caller keeps the invariant; tasks have units of their own.
                unsafe {
                    work.sum(level, reduction, grad, unit, 0..leaves);
                    work.store(reduction, result, unit);
                }
            }
        });
        return;
    }
    // Few units: at most `2 * PARTS` rows of sums.
    let width = reduction.width();
    let mut rows = vec![T::NEUTRAL; units * parts * width];
    let rows_at = Shared(grad, rows.as_mut_ptr());
    run(units * parts, &|task| {
        let (unit, part) = (task / parts, task % parts);
        let mut work = Work::new(width);
        let own = share(leaves, part, parts)..share(leaves, part + 1, parts);
        // SAFETY: the caller keeps the invariant; every task writes a row of its own.
        unsafe {
            let (grad, rows) = rows_at.get();
            work.sum(level, reduction, grad, unit, own);
            let row = rows.add(task * width);
            std::ptr::copy_nonoverlapping(work.total.as_ptr(), row, work.total.len());
        }
    });
    let mut work = Work::<T>::new(width);
    for unit in 0..units {
        let (_, _, own) = reduction.unit(unit);
        work.tree.clear(own);
        work.total.clear();
        work.total.resize(own, T::NEUTRAL);
        for row in rows.chunks_exact_mut(width).skip(unit * parts).take(parts) {
            work.tree.add(&mut row[..own], T::plus);
        }
        work.tree.total(&mut work.total, T::plus);
        // SAFETY: the caller keeps the invariant.
        unsafe { work.store(reduction, shared.get().1, unit) };
    }
}

/// What one thread works with.
struct Work<T: Addend> {
    tree: Tree<T::Sum>,
    leaf: Vec<T::Sum>,
    total: Vec<T::Sum>,
}

impl<T: Addend> Work<T> {
    fn new(width: usize) -> Self {
        Self { tree: Tree::new(width), leaf: Vec::new(), total: Vec::new() }
    }

    /// Writes the total of a unit into the result.
    ///
    /// # Safety
    ///
    /// The invariant of this module.
    unsafe fn store(&self, reduction: &Reduction, result: *mut T, unit: usize) {
        let (_, to, _) = reduction.unit(unit);
        let [step] = reduction.inner.ins;
        for (at, &sum) in self.total.iter().enumerate() {
            // SAFETY: a unit's neighbours lie within the result.
            unsafe { result.offset(to + at.cast_signed() * step).write(T::narrow(sum)) };
        }
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
        self.tree.clear(width);
        self.total.clear();
        self.total.resize(width, T::NEUTRAL);
        let summed = &reduction.summed[..];
        let inner = reduction.inner;
        if reduction.along() {
            let pieces = inner.len.div_ceil(RUN);
            for leaf in leaves {
                let start = leaf % pieces * RUN;
                let (offset, _) = offsets(summed, leaf / pieces);
                let at = from + offset + start.cast_signed() * inner.out;
                // SAFETY: the run lies within the gradient.
                let sum = unsafe {
                    run::<T, WIDE>(grad.offset(at), RUN.min(inner.len - start), inner.out)
                };
                self.tree.add(&mut [sum], T::plus);
            }
        } else {
            let all = count(summed);
            for leaf in leaves {
                self.leaf.clear();
                self.leaf.resize(width, T::NEUTRAL);
                let rows = leaf * ROWS..all.min((leaf + 1) * ROWS);
                // SAFETY: the rows lie within the gradient.
                unsafe {
                    let from = grad.offset(from);
                    across::<T, WIDE>(&mut self.leaf, from, summed, rows, inner.out);
                }
                self.tree.add(&mut self.leaf, T::plus);
            }
        }
        self.tree.total(&mut self.total, T::plus);
    }
}

/// The sum of one run: many sums side by side, then those in pairs.
///
/// # Safety
///
/// `from` reaches `len` elements with that stride; with `WIDE`, the caller is compiled for AVX2 and
/// F16C.
#[inline(always)]
unsafe fn run<T: Addend, const WIDE: bool>(from: *const T, len: usize, stride: isize) -> T::Sum {
    let mut lanes = [T::NEUTRAL; LANES];
    let whole = len / LANES * LANES;
    if stride == 1 {
        for at in (0..whole).step_by(LANES) {
            for (part, lanes) in lanes.chunks_exact_mut(TOGETHER).enumerate() {
                // SAFETY: by the conditions of this function.
                let own = unsafe { T::widen_all::<WIDE>(from.add(at + part * TOGETHER)) };
                for (lane, own) in lanes.iter_mut().zip(own) {
                    *lane = T::plus(*lane, own);
                }
            }
        }
    } else {
        for at in 0..whole {
            // SAFETY: by the condition of this function.
            let element = unsafe { from.offset(at.cast_signed() * stride).read() };
            lanes[at % LANES] = T::plus(lanes[at % LANES], element.widen());
        }
    }
    for at in whole..len {
        // SAFETY: by the condition of this function.
        let element = unsafe { from.offset(at.cast_signed() * stride).read() };
        lanes[at - whole] = T::plus(lanes[at - whole], element.widen());
    }
    let mut half = LANES / 2;
    while half > 0 {
        for at in 0..half {
            lanes[at] = T::plus(lanes[at], lanes[at + half]);
        }
        half /= 2;
    }
    lanes[0]
}

/// Sums of neighbours, added.
#[inline(always)]
fn both<T: Addend>(mut a: [T::Sum; TOGETHER], b: [T::Sum; TOGETHER]) -> [T::Sum; TOGETHER] {
    for (a, b) in a.iter_mut().zip(b) {
        *a = T::plus(*a, b);
    }
    a
}

/// Adds rows to sums, four rows at a time: with more of them, lines that are a power of two apart would
/// push each other out of the first-level cache.
///
/// # Safety
///
/// From `from`, every row of the loops reaches as many elements as there are sums, with that stride;
/// with `WIDE`, the caller is compiled for AVX2 and F16C.
#[inline(always)]
unsafe fn across<T: Addend, const WIDE: bool>(
    sums: &mut [T::Sum],
    from: *const T,
    loops: &[Loop<1>],
    rows: Range<usize>,
    stride: isize,
) {
    let mut row = rows.start;
    while row + FOUR <= rows.end && stride == 1 {
        let four = |row| -> [*const T; FOUR] {
            std::array::from_fn(|r| from.wrapping_offset(offsets(loops, row + r).0))
        };
        let [a, b, c, d] = four(row);
        // Rows that lie close together hide the order from the hardware: ask for those after the next.
        let next = four(row + 2 * FOUR);
        // A few neighbours at a time, in registers.
        let bytes = TOGETHER * size_of::<T>();
        let whole = sums.len() / TOGETHER * TOGETHER;
        for (block, sums) in sums.chunks_exact_mut(TOGETHER).enumerate() {
            let at = block * TOGETHER;
            if (block * bytes).is_multiple_of(LINE) {
                for line in (0..bytes).step_by(LINE) {
                    let line = block * bytes + line;
                    next.iter().for_each(|next| prefetch(next.cast::<u8>().wrapping_add(line)));
                }
            }
            // SAFETY: the rows are as long as the sums, and the caller has the instructions.
            let rows = unsafe {
                both::<T>(
                    both::<T>(T::widen_all::<WIDE>(a.add(at)), T::widen_all::<WIDE>(b.add(at))),
                    both::<T>(T::widen_all::<WIDE>(c.add(at)), T::widen_all::<WIDE>(d.add(at))),
                )
            };
            for (sum, row) in sums.iter_mut().zip(rows) {
                *sum = T::plus(*sum, row);
            }
        }
        for (at, sum) in sums.iter_mut().enumerate().skip(whole) {
            // SAFETY: as above.
            let [a, b, c, d] = [a, b, c, d].map(|row| unsafe { row.add(at).read() }.widen());
            *sum = T::plus(*sum, T::plus(T::plus(a, b), T::plus(c, d)));
        }
        row += FOUR;
    }
    for row in row..rows.end {
        let start = from.wrapping_offset(offsets(loops, row).0);
        for (at, sum) in sums.iter_mut().enumerate() {
            // SAFETY: by the condition of this function.
            let element = unsafe { start.offset(at.cast_signed() * stride).read() };
            *sum = T::plus(*sum, element.widen());
        }
    }
}

#[cfg(test)]
mod tests {
    use half::f16;

    use super::*;

    // [E_BROADCAST_ANY_FUNC_3040] [E_BROADCAST_ANY_FUNC_3050]
    #[test]
    fn sums_have_the_same_bits_at_every_level_on_any_number_of_threads() {
        let shape = if cfg!(miri) { [3, 5, 40] } else { [70, 33, 2100] };
        let len: usize = shape.iter().product();
        let grad: Vec<f32> = (0..len).map(|n| (n * 7919 % 10_007) as f32 / 97.0).collect();
        let strides = [shape[1] * shape[2], shape[2], 1].map(usize::cast_signed);
        for kept in 0..8_usize {
            // Row-major strides over the axes that are kept.
            let (mut result, mut all) = ([0_isize; 3], 1);
            for axis in (0..3).rev().filter(|axis| kept >> axis & 1 == 1) {
                result[axis] = all;
                all *= shape[axis].cast_signed();
            }
            let reduction = Reduction::new(&shape, &strides, &result);
            let run = |level, parallel| {
                let mut sums = vec![0.0_f32; all.unsigned_abs()];
                // SAFETY: the strides are row-major in vectors of these sizes.
                unsafe { reduce(level, &reduction, grad.as_ptr(), &mut sums, parallel) };
                sums.into_iter().map(f32::to_bits).collect::<Vec<_>>()
            };
            let once = run(Level::BASELINE, false);
            for level in Level::available() {
                // Not under Miri: the queues of rayon's threads break its rules for references.
                for parallel in [false, !cfg!(miri)] {
                    assert_eq!(run(level, parallel), once, "{} {parallel} {kept:b}", level.name());
                }
            }
        }
    }

    // [E_BROADCAST_ANY_FUNC_3040] [E_BROADCAST_ANY_FUNC_3050]
    #[test]
    fn halves_are_summed_as_the_floats_that_they_are() {
        // Rows and columns of more than whole vectors; sums that a half can hold.
        let shape = [41_usize, 2071];
        let len = shape[0] * shape[1];
        let halves: Vec<f16> =
            (0..len).map(|n| f16::from_f32((n * 7919 % 10_007) as f32 / 100_000.0)).collect();
        let floats: Vec<f32> = halves.iter().map(|half| half.to_f32()).collect();
        for (result, all) in [([0, 1], shape[1]), ([1, 0], shape[0]), ([0, 0], 1)] {
            let strides = [shape[1].cast_signed(), 1];
            let reduction = Reduction::new(&shape, &strides, &result);
            let mut expected = vec![0.0_f32; all];
            // SAFETY: the strides are row-major in vectors of these sizes.
            unsafe { reduce(Level::BASELINE, &reduction, floats.as_ptr(), &mut expected, false) };
            let expected: Vec<f16> = expected.into_iter().map(f16::from_f32).collect();
            assert!(expected.iter().all(|sum| sum.is_finite()));
            for level in Level::available() {
                let mut sums = vec![f16::ZERO; all];
                // SAFETY: as above.
                unsafe { reduce(level, &reduction, halves.as_ptr(), &mut sums, false) };
                assert_eq!(sums, expected, "{}", level.name());
            }
        }
    }
}
