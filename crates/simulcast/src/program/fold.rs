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

use simulcast_core::{BroadcastError, Rule, row_major_into};

use super::code::{Code, LEAVES};
use super::error::{ProgramError, ProgramErrorKind};
use super::exec::Interpreter;
use super::graph::{Bytes, Fold, Over, Value};
use super::lay::{Leaves, blame, left, reduced};
use super::map::{brought, fresh, one_by_one};
use super::stage::Stage;
use super::text::given;
use super::{Run, Target};
use crate::any::AnyArray;
use crate::dtype::{DType, Kind, Scalar};
use crate::inline::Inline;
use crate::kernels::{self, Kernel, RowFold};
use crate::laid::Laid;
use crate::level::Level;
use crate::op::Op;
use crate::pack::pack;
use crate::run::{Never, Source, Work, share};
use crate::threads;

/// The elements of a block.
const BLOCK: usize = 16384;
/// The bytes of a block of rows that are folded one by one, each in one go.
const ROWS: usize = 131_072;
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
    let deal = &mut Deal { run, stage, over, target, rows };
    if run.rule == Rule::Numpy {
        return match leaves.len() {
            0..=2 => deal.together::<2>(code, leaves),
            3..=4 => deal.together::<4>(code, leaves),
            _ => deal.together::<LEAVES>(code, leaves),
        };
    }
    let (code, laid, ins) = one_by_one(run, stage, leaves, false)?;
    deal.folded(&code, &laid, ins)
}

/// What is to be folded, and for whom.
struct Deal<'d, 'r, 't, 'a> {
    run: &'d Run<'r>,
    stage: &'d Stage,
    over: &'d Over,
    target: &'d mut Target<'t, 'a>,
    rows: Option<Range<usize>>,
}

impl Deal<'_, '_, '_, '_> {
    /// All leaves brought together at once.
    fn together<const N: usize>(
        &mut self,
        code: &Code,
        leaves: &Leaves<'_>,
    ) -> Result<Option<AnyArray>, ProgramError> {
        let mut laid = Laid::<N>::default();
        let ins = brought::<N>(leaves, &mut laid)
            .map_err(|error| blame(self.run, self.stage, &leaves.shapes(), error))?;
        self.folded(code, &laid, ins)
    }

    /// Folds laid leaves, into the target itself where its elements lie in a row.
    fn folded<const N: usize>(
        &mut self,
        code: &Code,
        laid: &Laid<N>,
        mut ins: [*const u8; N],
    ) -> Result<Option<AnyArray>, ProgramError> {
        let (run, stage, over) = (self.run, self.stage, self.over);
        let program = run.program;
        let step = program.graph.step(stage.node);
        let kept = reduced(program, stage.node, &laid.shape, over.axes.as_deref())?;
        let mut shape = left(&laid.shape, &kept, over.keepdims);
        let whole = Cuts::new(laid, &kept, None);
        let part = match (&self.rows, shape.first_mut()) {
            (Some(rows), Some(first)) => {
                let start = rows.start.min(*first);
                *first = rows.end.min(*first).saturating_sub(start);
                // The axis that the first of the result is, where it is one.
                let axis =
                    (0..kept.len()).find(|&at| kept[at] || over.keepdims).filter(|&at| kept[at]);
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
        let (len, count) = (shape.iter().product::<usize>(), cuts.reduced());
        if count == 0 && matches!(over.fold, Fold::Maximum | Fold::Minimum) {
            return Err(ProgramError::new(ProgramErrorKind::Empty(over.fold), step.span.clone()));
        }
        let (level, dtype) = (program.level, step.dtype());
        let folding =
            Folding::new(over.fold, code.dtype, count, dtype, level).ok_or_else(|| {
                let what = format!("the {} of {}", over.fold.name(), code.dtype);
                ProgramError::new(ProgramErrorKind::Unsupported(what), step.span.clone())
            })?;
        let task = FoldTask { code, level, ins, whole: &whole, cuts, folding: &folding };
        let mut write = |out: *mut u8| match (len, count) {
            (0, _) => {}
            // SAFETY: there is room for the results.
            (_, 0) => unsafe { folding.nothing(out, len) },
            // SAFETY: as above.
            _ => unsafe { task.go(out, run.threads) },
        };
        if let Target::Into(out) = &mut *self.target
            && out.shape() == shape
            && in_a_row(&shape, out.strides())
        {
            write(out.pointer());
            return Ok(None);
        }
        let made = fresh(dtype, &shape, len, &mut write);
        let refused = |refusal| BroadcastError::new(Rule::Exact, &[&shape[..]], refusal);
        made.map_err(refused)
            .and_then(|made| given(made, self.target))
            .map_err(|error| run.refused(stage, error))
    }
}

/// Whether elements of that shape follow one another, row by row.
fn in_a_row(shape: &[usize], strides: &[isize]) -> bool {
    let mut own = Inline::of_len(shape.len());
    let same = |((&size, &stride), &own): ((&usize, &isize), &isize)| size == 1 || stride == own;
    row_major_into(shape, &mut own).is_ok() && shape.iter().zip(strides).zip(&*own).all(same)
}

/// What folds, and what is done to what was folded.
struct Folding {
    /// A row into one element.
    row: RowFold,
    /// Two stretches into one.
    pair: Kernel,
    /// What the fold of nothing is.
    identity: Bytes,
    /// A mean is a sum over the number of its terms.
    over: Option<(Kernel, Bytes)>,
    /// To the type of the result.
    cast: Option<Kernel>,
    /// The bytes of an element, as it is folded and as it is given away.
    size: usize,
    gives: usize,
}

impl Folding {
    fn new(fold: Fold, dtype: DType, count: usize, gives: DType, level: Level) -> Option<Self> {
        let (kind, op, start) = match fold {
            Fold::Sum | Fold::Mean => (kernels::Fold::Sum, Op::Add, 0),
            Fold::Product => (kernels::Fold::Product, Op::Multiply, 1),
            Fold::Maximum => (kernels::Fold::Maximum, Op::Maximum, 0),
            Fold::Minimum => (kernels::Fold::Minimum, Op::Minimum, 0),
        };
        let row = kernels::fold(kind, dtype, level)?;
        let pair = *kernels::kernels(op, dtype, level)?.first()?;
        let number = |number: i128| {
            let number = match dtype.kind() {
                Kind::Bool => Scalar::Bool(number == 1),
                Kind::Signed | Kind::Unsigned => Scalar::Int(dtype, number),
                Kind::Float => Scalar::Float(dtype, number as f64),
                _ => Scalar::Complex(dtype, num_complex::Complex::new(number as f64, 0.0)),
            };
            match Value::new(&number) {
                Value::Plain(bytes) => Some(bytes),
                _ => None,
            }
        };
        let over = match fold {
            // The second operand repeats.
            Fold::Mean => {
                let divide = *kernels::kernels(Op::Divide, dtype, level)?.get(2)?;
                Some((divide, number(count as i128)?))
            }
            _ => None,
        };
        let cast = if dtype == gives { None } else { Some(kernels::cast(dtype, gives, level)?) };
        let identity = number(start)?;
        Some(Self { row, pair, identity, over, cast, size: dtype.size(), gives: gives.size() })
    }

    /// Whether what was folded is the result.
    fn is_done(&self) -> bool {
        self.over.is_none() && self.cast.is_none()
    }

    /// Makes `count` results out of what was folded.
    ///
    /// # Safety
    ///
    /// There are so many, and room for as many in `spare` and `out`, all apart from one another.
    unsafe fn finish(&self, out: *mut u8, folded: *const u8, spare: *mut u8, count: usize) {
        let mut from = folded;
        // SAFETY: as many elements everywhere, of the kernels' types; one that repeats.
        unsafe {
            if let Some((divide, by)) = &self.over {
                let to = if self.cast.is_some() { spare } else { out };
                divide(to, [from, (&raw const *by).cast(), std::ptr::null()], count);
                from = to;
            }
            match self.cast {
                Some(cast) => cast(out, [from; 3], count),
                None if from == out => {}
                None => std::ptr::copy_nonoverlapping(from, out, count * self.size),
            }
        }
    }

    /// The fold of nothing, `len` times.
    ///
    /// # Safety
    ///
    /// There is room for so many.
    unsafe fn nothing(&self, out: *mut u8, len: usize) {
        let (mut one, mut spare) = ([0_u64; 2], [0_u64; 2]);
        let one: *mut u8 = (&raw mut one).cast();
        // SAFETY: a value of any type fits in each place, and the first one is repeated.
        unsafe {
            self.finish(one, (&raw const self.identity).cast(), (&raw mut spare).cast(), 1);
            pack(self.gives, out, one, &[(len, 0)]);
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
    /// Folds into memory for all results.
    ///
    /// # Safety
    ///
    /// There is room for them, apart from the operands.
    unsafe fn go(&self, out: *mut u8, limit: Option<usize>) {
        let cuts = self.cuts;
        let elements = cuts.results().saturating_mul(cuts.reduced());
        let parallel = threads::parts(elements, limit);
        if cuts.columns().is_empty() && cuts.reduced() <= BLOCK {
            self.rows(out, parallel, limit);
        } else {
            self.groups(out, parallel, limit);
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
    fn rows(&self, out: *mut u8, parallel: usize, limit: Option<usize>) {
        let (cuts, reduced, folding) = (self.cuts, self.cuts.reduced(), self.folding);
        let outer = 0..cuts.inner.start;
        let most = (ROWS / folding.size / reduced).max(1);
        let cut = cuts.cut(outer.clone(), most);
        let shared = Shared(out);
        let this = self;
        Self::each(cut.blocks, parallel, limit, |blocks| {
            let out = shared.get();
            let mut room = room(most * reduced, folding.size);
            let mut folded = Spare::new(folding, most);
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
                    folded.through(out.add(first * folding.gives), rows, |to| {
                        (folding.row)(to, room, rows, reduced, reduced);
                    });
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
    fn groups(&self, results: *mut u8, parallel: usize, limit: Option<usize>) {
        let (cuts, folding, size) = (self.cuts, self.folding, self.folding.size);
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
        let out = if parts > 1 { partial.as_mut_ptr().cast() } else { results };
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
            let mut room = room(depth * widest, size);
            let mut other = self::room(depth.div_ceil(2) * widest, size);
            let mut folded = Spare::new(folding, widest);
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
                        pile.push(row, count, size, folding.pair);
                    }
                }
                // SAFETY: every task has a place of its own, with room for `count` elements.
                unsafe {
                    if parts > 1 {
                        let out = out.add(task * widest * size);
                        pile.finish(out, count, size, folding.pair);
                    } else {
                        folded.through(out.add(first * folding.gives), count, |to| {
                            pile.finish(to, count, size, folding.pair);
                        });
                    }
                }
            }
        });
        if parts > 1 {
            let mut pile = Pile::new(widest * size);
            let mut folded = Spare::new(folding, widest);
            for group in 0..groups {
                let (first, count) = place(group);
                for part in 0..parts {
                    // SAFETY: each part left `count` elements in its place.
                    unsafe {
                        let from = out.add((group * parts + part) * widest * size);
                        pile.push(from, count, size, folding.pair);
                    }
                }
                // SAFETY: the results of the group are there to be written.
                unsafe {
                    folded.through(results.add(first * folding.gives), count, |to| {
                        pile.finish(to, count, size, folding.pair);
                    });
                }
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

/// A line of memory: whole vectors that begin at one are stored at once.
#[repr(align(64))]
#[derive(Clone, Copy)]
struct Line(#[allow(dead_code, reason = "reached through pointers")] [u64; 8]);

/// Memory for so many elements of so many bytes.
fn room(elements: usize, size: usize) -> Vec<Line> {
    Vec::with_capacity((elements * size).div_ceil(size_of::<Line>()) + 1)
}

/// Where elements lie between their fold and the result.
struct Spare<'f> {
    folding: &'f Folding,
    folded: Vec<Line>,
    spare: Vec<Line>,
}

impl<'f> Spare<'f> {
    /// For at most that many.
    fn new(folding: &'f Folding, most: usize) -> Self {
        let most = if folding.is_done() { 0 } else { most.max(1) };
        Self { folding, folded: room(most, folding.size), spare: room(most, folding.size) }
    }

    /// Has `count` elements folded, and makes results of them.
    ///
    /// # Safety
    ///
    /// There is room for the results; `fold` writes that many elements.
    unsafe fn through(&mut self, out: *mut u8, count: usize, fold: impl FnOnce(*mut u8)) {
        if self.folding.is_done() {
            return fold(out);
        }
        let (folded, spare) = (self.folded.as_mut_ptr().cast(), self.spare.as_mut_ptr().cast());
        fold(folded);
        // SAFETY: the elements were folded, and there is room for as many.
        unsafe { self.folding.finish(out, folded, spare, count) };
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
