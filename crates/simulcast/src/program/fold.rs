//! Reductions: an element-wise expression folded as it is computed, never written out.
//!
//! ```text
//! axes     outer (kept) · inner (reduced) · columns (kept, after the last reduced axis)
//! along    without columns: rows of the reduced axes, folded one by one
//! across   with columns: a block of rows, folded in pairs, pairs in pairs
//! block    what is computed at once, into memory that stays in the second-level cache
//! group    a row of the result that is folded from many blocks: in pairs again, in their order
//! part     where there are few groups, the blocks of each are cut into parts of equal size
//! ```
//!
//! How the work is cut up depends on the shape alone, so that the result has the same bits on any
//! number of threads. The error of a sum grows with the logarithm of the number of terms.

use std::ops::Range;

use ndarray::{ArrayD, IxDyn};
use simulcast_core::{BroadcastError, Rule, row_major_into};

use super::code::{Code, LEAVES};
use super::error::{ProgramError, ProgramErrorKind};
use super::exec::Interpreter;
use super::graph::{Bytes, Fold, Over, Value};
use super::lay::{Leaves, blame, left, reduced};
use super::map::one_by_one;
use super::stage::Stage;
use super::text::given;
use super::{Run, Target};
use crate::any::AnyArray;
use crate::dtype::{DType, Element, Kind, Scalar, every_dtype};
use crate::inline::Inline;
use crate::kernels::{self, Kernel, RowFold};
use crate::laid::Laid;
use crate::level::Level;
use crate::op::Op;
use crate::run::{Never, Source, Work, share};
use crate::threads;

/// The elements of a block.
const BLOCK: usize = 16384;
/// The columns of a block.
const COLUMNS: usize = 2048;
/// The parts that there should be at least, whoever does them.
const PARTS: usize = 64;

/// Runs a stage.
pub(crate) fn fold(
    run: &Run<'_>,
    stage: &Stage,
    code: &Code,
    over: &Over,
    leaves: &Leaves<'_>,
    target: &mut Target<'_, '_>,
    rows: Option<Range<usize>>,
) -> Result<Option<AnyArray>, ProgramError> {
    let made = if run.rule == Rule::Numpy {
        match leaves.len() {
            0..=2 => together::<2>(run, stage, code, over, leaves, rows)?,
            3..=4 => together::<4>(run, stage, code, over, leaves, rows)?,
            _ => together::<LEAVES>(run, stage, code, over, leaves, rows)?,
        }
    } else {
        let (code, laid, ins) = one_by_one(run, stage, leaves, false)?;
        folded(run, stage, &code, over, &laid, ins, rows)?
    };
    given(made, target).map_err(|error| run.refused(stage, error))
}

/// All leaves brought together at once.
fn together<const N: usize>(
    run: &Run<'_>,
    stage: &Stage,
    code: &Code,
    over: &Over,
    leaves: &Leaves<'_>,
    rows: Option<Range<usize>>,
) -> Result<AnyArray, ProgramError> {
    let mut laid = Laid::<N>::default();
    let ins = super::map::brought::<N>(leaves, &mut laid)
        .map_err(|error| blame(run, stage, &leaves.shapes(), error))?;
    folded(run, stage, code, over, &laid, ins, rows)
}

/// Folds laid leaves, and gives the result its type and shape.
fn folded<const N: usize>(
    run: &Run<'_>,
    stage: &Stage,
    code: &Code,
    over: &Over,
    laid: &Laid<N>,
    mut ins: [*const u8; N],
    rows: Option<Range<usize>>,
) -> Result<AnyArray, ProgramError> {
    let program = run.program;
    let span = || program.graph.step(stage.node).span.clone();
    let kept = reduced(program, stage.node, &laid.shape, over.axes.as_deref())?;
    let mut shape = left(&laid.shape, &kept, over.keepdims);
    let whole = Cuts::new(laid, &kept, None);
    let part = match (rows, shape.first_mut()) {
        (Some(rows), Some(first)) => {
            let start = rows.start.min(*first);
            *first = rows.end.min(*first).saturating_sub(start);
            // The axis that the first of the result is, where it is one.
            let axis = (0..kept.len()).find(|&at| kept[at] || over.keepdims).filter(|&at| kept[at]);
            axis.map(|axis| {
                for (n, pointer) in ins.iter_mut().enumerate() {
                    let stride = laid.strides[n].get(axis).copied().unwrap_or(0);
                    let size = code.sizes.get(n).copied().unwrap_or(1).cast_signed();
                    *pointer = pointer.wrapping_offset(start.cast_signed() * stride * size);
                }
                Cuts::new(laid, &kept, Some((axis, *first)))
            })
        }
        _ => None,
    };
    let cuts = part.as_ref().unwrap_or(&whole);
    let len = shape.iter().product::<usize>();
    let empty = cuts.reduced() == 0;
    if empty && len > 0 && matches!(over.fold, Fold::Maximum | Fold::Minimum) {
        return Err(ProgramError::new(ProgramErrorKind::Empty(over.fold), span()));
    }
    let unsupported = || {
        let what = format!("the {} of {}", over.fold.name(), code.dtype);
        ProgramError::new(ProgramErrorKind::Unsupported(what), span())
    };
    let level = program.level;
    let folding = Folding::new(over.fold, code.dtype, level).ok_or_else(unsupported)?;
    let mut results = Buffer::new(len, code.dtype).ok_or_else(|| {
        let shape = [&laid.shape[..]];
        run.refused(
            stage,
            BroadcastError::new(Rule::Exact, &shape, simulcast_core::Refusal::Overflow),
        )
    })?;
    if empty {
        results.fill(folding.identity);
    } else if len > 0 {
        let task = FoldTask { code, level, ins, whole: &whole, cuts, folding: &folding };
        task.go(&mut results, run.threads);
    }
    if over.fold == Fold::Mean {
        results = mean(results, cuts.reduced(), code.dtype, level).ok_or_else(unsupported)?;
    }
    let dtype = program.graph.step(stage.node).dtype();
    let results = results.cast(code.dtype, dtype, level).ok_or_else(unsupported)?;
    results.array(dtype, &shape).ok_or_else(unsupported)
}

/// Sums divided by the number of terms.
fn mean(mut sums: Buffer, count: usize, dtype: DType, level: Level) -> Option<Buffer> {
    let count = match dtype.kind() {
        Kind::Complex => Scalar::Complex(dtype, num_complex::Complex::new(count as f64, 0.0)),
        _ => Scalar::Float(dtype, count as f64),
    };
    let Value::Plain(count) = Value::new(&count) else { return None };
    let kernel = *kernels::kernels(Op::Divide, dtype, level)?.get(2)?;
    let mut means = Buffer::new(sums.len, dtype)?;
    let ins = [sums.pointer().cast_const(), (&raw const count).cast(), std::ptr::null()];
    // SAFETY: as many sums as means, divided by one number of their type.
    unsafe { kernel(means.pointer(), ins, sums.len) };
    Some(means)
}

/// What folds.
struct Folding {
    /// A row into one element.
    row: RowFold,
    /// Two stretches into one.
    pair: Kernel,
    /// What the fold of nothing is.
    identity: Bytes,
}

impl Folding {
    fn new(fold: Fold, dtype: DType, level: Level) -> Option<Self> {
        let (fold, op, start) = match fold {
            Fold::Sum | Fold::Mean => (kernels::Fold::Sum, Op::Add, 0),
            Fold::Product => (kernels::Fold::Product, Op::Multiply, 1),
            Fold::Maximum => (kernels::Fold::Maximum, Op::Maximum, 0),
            Fold::Minimum => (kernels::Fold::Minimum, Op::Minimum, 0),
        };
        let row = kernels::fold(fold, dtype, level)?;
        let pair = *kernels::kernels(op, dtype, level)?.first()?;
        let identity = match dtype.kind() {
            Kind::Bool => Scalar::Bool(start == 1),
            Kind::Signed | Kind::Unsigned => Scalar::Int(dtype, start),
            Kind::Float => Scalar::Float(dtype, start as f64),
            _ => Scalar::Complex(dtype, num_complex::Complex::new(start as f64, 0.0)),
        };
        let Value::Plain(identity) = Value::new(&identity) else { return None };
        Some(Self { row, pair, identity })
    }
}

/// Room for elements of any plain type.
struct Buffer {
    memory: Vec<[u64; 2]>,
    len: usize,
    size: usize,
}

impl Buffer {
    fn new(len: usize, dtype: DType) -> Option<Self> {
        let size = dtype.size();
        let words = len.checked_mul(size)?.div_ceil(16);
        let mut memory = Vec::new();
        memory.try_reserve_exact(words).ok()?;
        memory.resize(words, [0; 2]);
        Some(Self { memory, len, size })
    }

    fn pointer(&mut self) -> *mut u8 {
        self.memory.as_mut_ptr().cast()
    }

    fn fill(&mut self, value: Bytes) {
        let (out, size, len) = (self.pointer(), self.size, self.len);
        // SAFETY: one element, repeated into room for `len`.
        unsafe { crate::pack::pack(size, out, (&raw const value).cast(), &[(len, 0)]) };
    }

    fn cast(mut self, from: DType, to: DType, level: Level) -> Option<Self> {
        if from == to {
            return Some(self);
        }
        let kernel = kernels::cast(from, to, level)?;
        let mut cast = Self::new(self.len, to)?;
        let own = self.pointer().cast_const();
        // SAFETY: as many elements in both.
        unsafe { kernel(cast.pointer(), [own; 3], self.len) };
        Some(cast)
    }

    fn array(mut self, dtype: DType, shape: &[usize]) -> Option<AnyArray> {
        fn taken<T: Element>(pointer: *const u8, len: usize, shape: &[usize]) -> Option<ArrayD<T>> {
            // SAFETY: `len` elements of that type, aligned to 16 bytes; plain data, so that a copy
            // is as good.
            let elements = unsafe { std::slice::from_raw_parts(pointer.cast::<T>(), len) };
            ArrayD::from_shape_vec(IxDyn(shape), elements.to_vec()).ok()
        }
        macro_rules! by_type {
            ($($variant:ident: $type:ty = $name:literal,)*) => {
                match dtype {
                    DType::String => None,
                    $(DType::$variant => {
                        taken::<$type>(self.pointer(), self.len, shape).map(AnyArray::$variant)
                    })*
                }
            };
        }
        #[allow(unreachable_patterns, reason = "text was excluded first")]
        {
            every_dtype!(by_type)
        }
    }
}

/// Axes in the order in which they are folded.
struct Cuts<const N: usize> {
    axes: Vec<(usize, [isize; N])>,
    /// Where the reduced axes begin, and where they end.
    inner: Range<usize>,
}

/// A rectangle of steps: the axes before `axis` have one index each, `axis` some steps, and those
/// after it, up to an end, are whole.
#[derive(Clone, Copy, Debug)]
struct Cut {
    axis: usize,
    /// How many steps of `axis` a block takes, and how many blocks there are in all.
    steps: usize,
    blocks: usize,
    /// The elements of one step.
    whole: usize,
}

impl<const N: usize> Cuts<N> {
    /// Of all steps, or of some of one axis that is kept.
    fn new(laid: &Laid<N>, kept: &[bool], part: Option<(usize, usize)>) -> Self {
        let axis = |at: usize| {
            let strides = std::array::from_fn(|n| laid.strides[n].get(at).copied().unwrap_or(0));
            let size = part.filter(|part| part.0 == at).map_or(laid.shape[at], |part| part.1);
            (size, strides)
        };
        // Axes of size 1 take no part.
        let real = |&at: &usize| laid.shape[at] != 1;
        let last = (0..kept.len()).rev().find(|&at| !kept[at] && laid.shape[at] != 1).unwrap_or(0);
        let mut axes: Vec<_> = (0..last).filter(|&at| kept[at]).filter(real).map(axis).collect();
        let start = axes.len();
        axes.extend((0..kept.len()).filter(|&at| !kept[at]).filter(real).map(axis));
        let end = axes.len();
        axes.extend((last..kept.len()).filter(|&at| kept[at]).filter(real).map(axis));
        Self { axes, inner: start..end }
    }

    fn product(&self, axes: Range<usize>) -> usize {
        self.axes[axes].iter().map(|(size, _)| size).product()
    }

    fn reduced(&self) -> usize {
        self.product(self.inner.clone())
    }

    fn columns(&self) -> Range<usize> {
        self.inner.end..self.axes.len()
    }

    fn results(&self) -> usize {
        self.product(0..self.inner.start) * self.product(self.columns())
    }

    /// The columns that are folded at once, and how many they are at most.
    fn wide(&self) -> (Cut, usize) {
        let columns = self.columns();
        let wide = self.cut(columns.clone(), COLUMNS);
        let whole = self.is_whole(&columns, wide);
        (wide, if whole { wide.whole } else { wide.steps * wide.whole })
    }

    /// Cuts axes into rectangles of at most `most` elements, where one step has as many at most.
    fn cut(&self, axes: Range<usize>, most: usize) -> Cut {
        let (mut axis, mut whole) = (axes.end, 1);
        while axis > axes.start && whole * self.axes[axis - 1].0 <= most {
            axis -= 1;
            whole *= self.axes[axis].0;
        }
        if axis == axes.start {
            return Cut { axis, steps: 1, blocks: 1, whole };
        }
        let axis = axis - 1;
        let size = self.axes[axis].0;
        let steps = (most / whole).clamp(1, size);
        let blocks = self.product(axes.start..axis) * size.div_ceil(steps);
        // Equal blocks, rather than a short one at the end.
        Cut { axis, steps, blocks, whole }
    }

    /// Where a block begins, for each operand, and how many steps it takes.
    fn block(&self, axes: Range<usize>, cut: Cut, block: usize) -> ([isize; N], usize) {
        let mut at = [0; N];
        if cut.axis >= axes.end
            || cut.blocks <= 1 && cut.axis == axes.start && cut.whole >= self.product(axes.clone())
        {
            return (at, 1);
        }
        let (size, strides) = self.axes[cut.axis];
        let across = size.div_ceil(cut.steps);
        let first = block % across * cut.steps;
        let mut rest = block / across;
        at.iter_mut().zip(strides).for_each(|(at, stride)| *at += stride * first.cast_signed());
        for &(size, strides) in self.axes[axes.start..cut.axis].iter().rev() {
            let index = (rest % size).cast_signed();
            rest /= size;
            at.iter_mut().zip(strides).for_each(|(at, stride)| *at += stride * index);
        }
        (at, cut.steps.min(size - first))
    }

    /// Whether a cut leaves its axes whole.
    fn is_whole(&self, axes: &Range<usize>, cut: Cut) -> bool {
        cut.blocks == 1 && cut.whole == self.product(axes.clone())
    }

    /// The axes of a block: the steps of its own axis, and what comes after.
    fn within(&self, axes: &Range<usize>, cut: Cut, steps: usize) -> Vec<(usize, [isize; N])> {
        if self.is_whole(axes, cut) {
            return self.axes[axes.clone()].to_vec();
        }
        let mut own = self.axes[cut.axis..axes.end].to_vec();
        if let Some(first) = own.first_mut() {
            first.0 = steps;
        }
        own
    }
}

/// A fold about to run.
#[derive(Clone, Copy)]
struct FoldTask<'t, const N: usize> {
    code: &'t Code,
    level: Level,
    ins: [*const u8; N],
    /// What is folded is a part of this, cut up as it would be in the whole.
    whole: &'t Cuts<N>,
    cuts: &'t Cuts<N>,
    folding: &'t Folding,
}

/// A pointer that crosses threads.
struct Shared(*mut u8);

// SAFETY: every part writes elements of its own.
unsafe impl Sync for Shared {}

impl Shared {
    fn get(&self) -> *mut u8 {
        self.0
    }
}

// SAFETY: operands are read only, and their elements are `Sync`.
unsafe impl<const N: usize> Sync for FoldTask<'_, N> {}

impl<const N: usize> FoldTask<'_, N> {
    fn go(&self, results: &mut Buffer, limit: Option<usize>) {
        let cuts = self.cuts;
        let elements = cuts.results().saturating_mul(cuts.reduced());
        let parallel = threads::parts(elements, limit);
        if cuts.columns().is_empty() && cuts.reduced() <= BLOCK {
            self.rows(results, parallel, limit);
        } else {
            self.groups(results, parallel, limit);
        }
    }

    /// Does some tasks, on this thread or on several.
    fn each(
        tasks: usize,
        parallel: usize,
        limit: Option<usize>,
        work: impl Fn(Range<usize>) + Sync,
    ) {
        let parts = match (parallel, limit) {
            (0 | 1, _) => 1,
            (_, Some(limit)) => limit.min(tasks),
            (parallel, None) => parallel.min(tasks),
        };
        if parts <= 1 {
            return work(0..tasks);
        }
        threads::each(parts, |part| work(share(tasks, part, parts)..share(tasks, part + 1, parts)));
    }

    /// Rows of the reduced axes that fit in a block: several at a time.
    fn rows(&self, results: &mut Buffer, parallel: usize, limit: Option<usize>) {
        let (cuts, reduced) = (self.cuts, self.cuts.reduced());
        let outer = 0..cuts.inner.start;
        let cut = cuts.cut(outer.clone(), BLOCK / reduced);
        let shared = Shared(results.pointer());
        let this = self;
        let size = self.code.dtype.size();
        Self::each(cut.blocks, parallel, limit, |blocks| {
            let out = shared.get();
            let mut room = Vec::<[u64; 2]>::with_capacity((BLOCK.max(reduced) * size).div_ceil(16));
            for block in blocks {
                let (at, steps) = cuts.block(outer.clone(), cut, block);
                let mut axes = cuts.within(&outer, cut, steps);
                let rows = axes.iter().map(|(size, _)| size).product::<usize>();
                axes.extend_from_slice(&cuts.axes[cuts.inner.clone()]);
                let first = this.first_row(&outer, cut, block);
                // SAFETY: the room holds `rows * reduced` elements, at most a block; every block
                // writes rows of its own.
                unsafe {
                    let room = room.as_mut_ptr().cast::<u8>();
                    this.compute(&axes, at, room);
                    (this.folding.row)(out.add(first * size), room, rows, reduced, reduced);
                }
            }
        });
    }

    /// Which result a block of the outer axes begins with.
    fn first_row(&self, outer: &Range<usize>, cut: Cut, block: usize) -> usize {
        if self.cuts.is_whole(outer, cut) {
            return 0;
        }
        let size = self.cuts.axes[cut.axis].0;
        let across = size.div_ceil(cut.steps);
        (block / across * size + block % across * cut.steps) * cut.whole
    }

    /// Groups of neighbouring results, each folded from many blocks.
    fn groups(&self, results: &mut Buffer, parallel: usize, limit: Option<usize>) {
        let (cuts, size) = (self.cuts, self.code.dtype.size());
        let (outer, inner, columns) = (0..cuts.inner.start, cuts.inner.clone(), cuts.columns());
        let units = cuts.product(outer.clone());
        let (wide, widest) = cuts.wide();
        let groups = units * wide.blocks;
        let (deep, parts) = {
            let (wide, widest) = self.whole.wide();
            let deep = cuts.cut(inner.clone(), (BLOCK / widest).max(1));
            let groups = self.whole.product(outer.clone()) * wide.blocks;
            (deep, if groups >= PARTS { 1 } else { PARTS.div_ceil(groups).min(deep.blocks) })
        };
        let mut partial = Vec::new();
        if parts > 1 {
            partial.resize((groups * parts * widest * size).div_ceil(16), [0_u64; 2]);
        }
        let out = if parts > 1 { partial.as_mut_ptr().cast() } else { results.pointer() };
        let (shared, this) = (Shared(out), self);
        let all_columns = cuts.product(columns.clone());
        // Where the results of a group are, and how many.
        let place = |group: usize| {
            let (unit, block) = (group / wide.blocks, group % wide.blocks);
            let (_, steps) = cuts.block(columns.clone(), wide, block);
            let count = if cuts.is_whole(&columns, wide) { wide.whole } else { steps * wide.whole };
            let first = if cuts.is_whole(&columns, wide) {
                0
            } else {
                let size = cuts.axes[wide.axis].0;
                let across = size.div_ceil(wide.steps);
                (block / across * size + block % across * wide.steps) * wide.whole
            };
            (unit * all_columns + first, count)
        };
        Self::each(groups * parts, parallel, limit, |tasks| {
            let out = shared.get();
            let depth =
                if cuts.is_whole(&inner, deep) { deep.whole } else { deep.steps * deep.whole };
            let mut room = Vec::<[u64; 2]>::with_capacity((depth * widest * size).div_ceil(16) + 1);
            let mut other = Vec::<[u64; 2]>::with_capacity(room.capacity() / 2 + widest);
            let mut pile = Pile::new(widest * size);
            for task in tasks {
                let (group, part) = (task / parts, task % parts);
                let (unit, column) = (group / wide.blocks, group % wide.blocks);
                let mut at = unit_offset(cuts, &outer, unit);
                let (more, steps) = cuts.block(columns.clone(), wide, column);
                at.iter_mut().zip(more).for_each(|(at, more)| *at += more);
                let across = cuts.within(&columns, wide, steps);
                let (first, count) = place(group);
                let blocks = share(deep.blocks, part, parts)..share(deep.blocks, part + 1, parts);
                for block in blocks {
                    let (more, steps) = cuts.block(inner.clone(), deep, block);
                    let mut start = at;
                    start.iter_mut().zip(more).for_each(|(at, more)| *at += more);
                    let mut axes = cuts.within(&inner, deep, steps);
                    let rows = axes.iter().map(|(size, _)| size).product::<usize>();
                    axes.extend_from_slice(&across);
                    // SAFETY: the room holds a block of `rows * count` elements.
                    unsafe {
                        let room = room.as_mut_ptr().cast::<u8>();
                        this.compute(&axes, start, room);
                        let row = this.down(room, other.as_mut_ptr().cast(), rows, count);
                        pile.push(row, count, size, this.folding.pair);
                    }
                }
                // SAFETY: every task has a place of its own, with room for `count` elements.
                unsafe {
                    let out = match parts {
                        1 => out.add(first * size),
                        _ => out.add(task * widest * size),
                    };
                    pile.finish(out, count, size, this.folding.pair);
                }
            }
        });
        if parts > 1 {
            let mut pile = Pile::new(widest * size);
            for group in 0..groups {
                let (first, count) = place(group);
                for part in 0..parts {
                    // SAFETY: each part left `count` elements in its place.
                    unsafe {
                        let from = out.add((group * parts + part) * widest * size);
                        pile.push(from, count, size, self.folding.pair);
                    }
                }
                // SAFETY: the results of the group are there to be written.
                unsafe {
                    pile.finish(
                        results.pointer().add(first * size),
                        count,
                        size,
                        self.folding.pair,
                    );
                };
            }
        }
    }

    /// Folds `rows` rows of `count` elements into one, in pairs, pairs in pairs; says where it is.
    ///
    /// # Safety
    ///
    /// The room holds that many elements, and the other half as many, rounded up.
    unsafe fn down(&self, room: *mut u8, other: *mut u8, rows: usize, count: usize) -> *mut u8 {
        let size = self.code.dtype.size();
        if self.whole.columns().is_empty() {
            // SAFETY: one row of `rows` elements into one place.
            unsafe { (self.folding.row)(other, room, 1, rows, rows) };
            return other;
        }
        let (mut from, mut to, mut rows) = (room, other, rows);
        while rows > 1 {
            let half = rows / 2;
            // SAFETY: the second half of the rows with the first; the last of an odd number goes
            // along to the next round. What is written fits in the half that is not read.
            unsafe {
                let second = from.add(half * count * size).cast_const();
                (self.folding.pair)(to, [from, second, std::ptr::null()], half * count);
                if rows % 2 == 1 {
                    let last = from.add((rows - 1) * count * size);
                    let place = to.add(half * count * size);
                    std::ptr::copy_nonoverlapping(last, place, count * size);
                }
            }
            rows -= half;
            std::mem::swap(&mut from, &mut to);
        }
        from
    }

    /// Computes a rectangle into the room, row-major.
    ///
    /// # Safety
    ///
    /// The room holds as many elements as the axes have, and the axes from `at` on stay within the
    /// leaves.
    unsafe fn compute(&self, axes: &[(usize, [isize; N])], at: [isize; N], room: *mut u8) {
        let mut laid = Laid::<N>::default();
        let mut shape = Inline::of_len(axes.len());
        let mut strides: [Inline<isize>; N] = std::array::from_fn(|_| Inline::of_len(axes.len()));
        laid.len = 1;
        for (axis, (size, steps)) in axes.iter().enumerate() {
            shape[axis] = *size;
            laid.len *= size;
            strides.iter_mut().zip(steps).for_each(|(all, step)| all[axis] = *step);
        }
        (laid.shape, laid.strides) = (shape, strides);
        let ins = std::array::from_fn(|n| {
            let size = self.code.sizes.get(n).copied().unwrap_or(1);
            self.ins[n].wrapping_offset(at[n] * size.cast_signed())
        });
        let mut out = Inline::of_len(axes.len());
        // Never an error: a block is small.
        if row_major_into(&laid.shape, &mut out).is_err() {
            return;
        }
        let unit = self.code.dtype.size().cast_signed();
        out.iter_mut().for_each(|stride| *stride *= unit);
        // SAFETY: the leaves' own pointers and strides, and a room for all results.
        unsafe {
            let source = Source::new(&laid, ins, self.level);
            let body = Interpreter::<N>::new(self.code);
            source.run(Work::<_, Never<_>>::Here(body), room, &out, None, true);
        }
    }
}

/// How far each operand has moved at an index of the outer axes, taken as one.
fn unit_offset<const N: usize>(cuts: &Cuts<N>, outer: &Range<usize>, unit: usize) -> [isize; N] {
    let (mut at, mut rest) = ([0; N], unit);
    for &(size, strides) in cuts.axes[outer.clone()].iter().rev() {
        let index = (rest % size).cast_signed();
        rest /= size;
        at.iter_mut().zip(strides).for_each(|(at, stride)| *at += stride * index);
    }
    at
}

/// Rows that were folded already, to be folded in pairs: the number of each is a power of two.
struct Pile {
    rows: Vec<(u32, Vec<[u64; 2]>)>,
    spare: Vec<Vec<[u64; 2]>>,
    words: usize,
}

impl Pile {
    fn new(bytes: usize) -> Self {
        Self { rows: Vec::new(), spare: Vec::new(), words: bytes.div_ceil(16) }
    }

    /// Adds a row of `count` elements of `size` bytes.
    ///
    /// # Safety
    ///
    /// It is there, of the kernel's type, and no longer than a row of the pile.
    unsafe fn push(&mut self, row: *const u8, count: usize, size: usize, pair: Kernel) {
        let mut own = self.empty();
        // SAFETY: the row fits by the condition of this function.
        unsafe { std::ptr::copy_nonoverlapping(row, own.as_mut_ptr().cast(), count * size) };
        let mut level = 0;
        while let Some((_, older)) = self.rows.pop_if(|(top, _)| *top == level) {
            // SAFETY: both hold `count` elements.
            own = unsafe { self.paired(older, own, count, pair) };
            level += 1;
        }
        self.rows.push((level, own));
    }

    /// Folds what is left into `out`, and is empty again.
    ///
    /// # Safety
    ///
    /// `out` has room for `count` elements of `size` bytes; rows were pushed, of that many.
    unsafe fn finish(&mut self, out: *mut u8, count: usize, size: usize, pair: Kernel) {
        let Some((_, mut newer)) = self.rows.pop() else { return };
        while let Some((_, older)) = self.rows.pop() {
            // SAFETY: both hold `count` elements.
            newer = unsafe { self.paired(older, newer, count, pair) };
        }
        // SAFETY: there is room by the condition of this function.
        unsafe { std::ptr::copy_nonoverlapping(newer.as_ptr().cast(), out, count * size) };
        self.spare.push(newer);
    }

    fn empty(&mut self) -> Vec<[u64; 2]> {
        self.spare.pop().unwrap_or_else(|| vec![[0; 2]; self.words])
    }

    /// Two rows as one.
    ///
    /// # Safety
    ///
    /// Both hold `count` elements of the kernel's type.
    unsafe fn paired(
        &mut self,
        older: Vec<[u64; 2]>,
        newer: Vec<[u64; 2]>,
        count: usize,
        pair: Kernel,
    ) -> Vec<[u64; 2]> {
        let mut both = self.empty();
        let ins = [older.as_ptr().cast(), newer.as_ptr().cast(), std::ptr::null()];
        // SAFETY: a row of the pile has room for `count` elements.
        unsafe { pair(both.as_mut_ptr().cast(), ins, count) };
        self.spare.extend([older, newer]);
        both
    }
}
