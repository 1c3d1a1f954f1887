//! Reductions of programs: an element-wise expression is reduced as it is computed, never stored as a whole.
//!
//! The engine is [`crate::reduce`]; here are the elements that it reads (computed by the interpreter, or leaves as they
//! lie), and what becomes of its values.

mod operation;
pub(super) mod results;

use std::ops::Range;

use simulcast_core::{BroadcastError, Rule, row_major_into};

use self::operation::{Arg, Operation};
use self::results::{Finish, Row};
use crate::by_name::dyn_array::AnyArray;
use crate::by_name::program::build::bytecode::{Code, LEAVES};
use crate::by_name::program::build::graph::Over;
use crate::by_name::program::build::stages::Stage;
use crate::by_name::program::front::axes::Fold;
use crate::by_name::program::front::error::{ProgramError, ProgramErrorKind};
use crate::by_name::program::run::bind::{Leaves, blame, left, reduced};
use crate::by_name::program::run::chunked::row_axis;
use crate::by_name::program::run::interpreter::Interpreter;
use crate::by_name::program::run::run_map::{brought, fresh, one_by_one};
use crate::by_name::program::run::strings::given;
use crate::by_name::program::{Run, Target};
use crate::exec::launch::{self, Work};
use crate::layout::broadcast::Laid;
use crate::layout::small_vec::Inline;
use crate::reduce::blocking::Rectangle;
use crate::reduce::plan::{Axes, Axis, Elements, ReductionPlan};
use crate::reduce::run::{Direct, Operand, Reduction, Source};
use crate::reduce::shared_row::Loop;
use simulcast_kernels::cpu::level::Level;
use simulcast_threads::SendPtr;

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
    let reducing = &mut Reducing { run, stage, over, target, rows };
    if run.rule == Rule::Numpy {
        return match leaves.len() {
            0..=2 => reducing.together::<2>(code, leaves),
            3..=4 => reducing.together::<4>(code, leaves),
            _ => reducing.together::<LEAVES>(code, leaves),
        };
    }
    let (code, laid, mut ins) = one_by_one(run, stage, leaves, false)?;
    reducing.reduce(&code, &laid.shape, &laid.slices(), &mut ins)
}

/// A stage about to be reduced, and where its results go.
struct Reducing<'d, 'r, 't, 'a> {
    run: &'d Run<'r>,
    stage: &'d Stage,
    over: &'d Over,
    target: &'d mut Target<'t, 'a>,
    rows: Option<Range<usize>>,
}

impl Reducing<'_, '_, '_, '_> {
    /// All leaves brought together at once.
    fn together<const N: usize>(
        &mut self,
        code: &Code,
        leaves: &Leaves<'_>,
    ) -> Result<Option<AnyArray>, ProgramError> {
        let mut laid = Laid::<N>::default();
        let mut ins = brought::<N>(leaves, &mut laid)
            .map_err(|error| blame(self.run, self.stage, &leaves.shapes(), error))?;
        self.reduce(code, &laid.shape, &laid.slices(), &mut ins)
    }

    /// Reduces laid leaves, into the target itself where its elements lie in a row.
    fn reduce(
        &mut self,
        code: &Code,
        laid: &[usize],
        strides: &[&[isize]],
        ins: &mut [*const u8],
    ) -> Result<Option<AnyArray>, ProgramError> {
        let (run, stage, over) = (self.run, self.stage, self.over);
        let program = run.program;
        let step = program.graph.step(stage.node);
        let kept = reduced(program, stage.node, laid, over.axes.as_deref())?;
        let mut shape = left(laid, &kept, over.keepdims);
        let whole = axes(laid, strides, &kept);
        let own = row_axis(&shape);
        let part = match (&self.rows, shape.get_mut(own)) {
            (Some(rows), Some(size)) => {
                let start = rows.start.min(*size);
                *size = rows.end.min(*size).saturating_sub(start);
                // The axis that this one of the result is, where it is one.
                let mut shown = (0..kept.len()).filter(|&at| kept[at] || over.keepdims);
                let axis = shown.nth(own).filter(|&at| kept[at]);
                axis.map(|axis| {
                    for (n, pointer) in ins.iter_mut().enumerate() {
                        let stride = strides[n].get(axis).copied().unwrap_or(0);
                        let size = code.leaf_sizes().get(n).copied().unwrap_or(1).cast_signed();
                        *pointer = pointer.wrapping_offset(start.cast_signed() * stride * size);
                    }
                    let mut part = whole.clone();
                    part[axis].size = *size;
                    part
                })
            }
            _ => None,
        };
        let reduced = (0..kept.len()).filter(|&at| !kept[at]).map(|at| laid[at]);
        let (len, count) = (shape.iter().product::<usize>(), reduced.product::<usize>());
        if count == 0 && matches!(over.fold, Fold::Maximum | Fold::Minimum) {
            return Err(ProgramError::new(ProgramErrorKind::Empty(over.fold), step.span.clone()));
        }
        let (level, dtype) = (program.level, step.dtype());
        let finish = Finish::new(over.fold, code.dtype, count, dtype, level).ok_or_else(|| {
            let what = format!("the {} of {}", over.fold.name(), code.dtype);
            ProgramError::new(ProgramErrorKind::Unsupported(what), step.span.clone())
        })?;
        // Under another rule than NumPy's, leaves are not laid as the stage says.
        let loops = (finish.join, &finish.reducer);
        let operation = (run.rule == Rule::Numpy)
            .then(|| Operation::new(program, stage, loops, code.dtype, level))
            .flatten();
        let ins: Vec<SendPtr<u8>> = ins.iter().map(|&own| SendPtr::reading(own)).collect();
        let source = Computed { code, level, ins: &ins };
        let direct = operation.as_ref().map(|operation| source.direct(operation));
        let reduce = |out: *mut u8| {
            let facts = source.facts(operation.as_ref(), &finish);
            let (axes, whole) = match &part {
                Some(part) => (part, Some(&whole[..])),
                None => (&whole, None),
            };
            let (plan, results) = (
                ReductionPlan::new(axes, whole, facts),
                Row { finish: &finish, to: SendPtr::new(out) },
            );
            let join = operation.as_ref().and_then(|operation| operation.shared_row);
            let reduction = Reduction {
                plan: &plan,
                reducer: finish.reducer,
                direct,
                source: &source,
                results: &results,
                shared_row: join.map(|join| Loop { join, level }),
            };
            // SAFETY: the leaves' own pointers and strides, and loops of their types; there is room for all results.
            unsafe { reduction.run(run.threads) };
        };
        let mut write = |out: *mut u8| match (len, count) {
            (0, _) => {}
            // SAFETY: there is room for the results.
            (_, 0) => unsafe { finish.nothing(out, len) },
            _ => reduce(out),
        };
        if let Target::Into(out) = &mut *self.target
            && out.shape() == shape
            && in_a_row(&shape, out.strides())
        {
            write(out.as_mut_ptr());
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

/// The axes of leaves that are laid on a shape.
fn axes(laid: &[usize], strides: &[&[isize]], kept: &[bool]) -> Vec<Axis> {
    let axis = |(at, &kept): (usize, &bool)| {
        let mut own = Inline::new();
        strides.iter().for_each(|strides| own.push(strides.get(at).copied().unwrap_or(0)));
        Axis { size: laid[at], kept, strides: own }
    };
    kept.iter().enumerate().map(axis).collect()
}

/// Elements that a stage computes.
struct Computed<'c> {
    code: &'c Code,
    level: Level,
    /// The leaves' pointers, which are read on any thread.
    ins: &'c [SendPtr<u8>],
}

impl Computed<'_> {
    fn bytes(&self, leaf: usize) -> usize {
        self.code.leaf_sizes().get(leaf).copied().unwrap_or(1)
    }

    /// The loop of an operation, and its operands.
    fn direct(&self, operation: &Operation) -> Direct {
        let operand = |arg: &Arg| match arg {
            &Arg::Leaf(leaf) => {
                Operand { first: self.ins[leaf], number: Some(leaf), bytes: self.bytes(leaf) }
            }
            Arg::Constant(bytes) => Operand {
                first: SendPtr::reading((&raw const *bytes).cast()),
                number: None,
                bytes: 0,
            },
        };
        let operands = operation.args.each_ref().map(operand);
        Direct { along: operation.along, operands, bare: operation.ops.is_empty() }
    }

    fn facts(&self, operation: Option<&Operation>, finish: &Finish) -> Elements {
        let mut facts = Elements {
            element_bytes: finish.reducer.element_bytes,
            value_bytes: finish.reducer.value_bytes,
            bare: None,
            pair: None,
        };
        if let Some(operation) = operation {
            match operation.args {
                [Arg::Leaf(leaf), _] if operation.ops.is_empty() => facts.bare = Some(leaf),
                [Arg::Leaf(a), Arg::Leaf(b)] => {
                    facts.pair = operation.shared_row.map(|_| [a, b]);
                }
                _ => {}
            }
        }
        facts
    }
}

impl Source for Computed<'_> {
    unsafe fn fill(&self, axes: &Axes, rectangle: &Rectangle, to: *mut u8) {
        let count = self.ins.len().min(LEAVES);
        let (mut shape, mut strides) = (Inline::new(), [const { Inline::new() }; LEAVES]);
        let mut ins = [std::ptr::null(); LEAVES];
        for (axis, &len) in rectangle.len.iter().enumerate().filter(|(_, len)| **len != 1) {
            shape.push(len);
            for (n, strides) in strides[..count].iter_mut().enumerate() {
                strides.push(axes.stride(axis, n));
            }
        }
        for (n, (to, from)) in ins.iter_mut().zip(self.ins).enumerate() {
            let offset = axes.offset(rectangle, n) * self.bytes(n).cast_signed();
            *to = from.get().cast_const().wrapping_offset(offset);
        }
        let mut out = Inline::of_len(shape.len());
        let laid = row_major_into(&shape, &mut out);
        assert!(laid.is_ok(), "the strides of a block fit");
        let strides: [&[isize]; LEAVES] = std::array::from_fn(|n| &strides[n][..]);
        // SAFETY: the leaves' own pointers and strides, and room for all results by the condition of the trait.
        unsafe {
            let (strides, ins) = (&strides[..count], &ins[..count]);
            let source = launch::Source::new(&shape, strides, ins, self.level);
            source.run(Work::Here(&mut Interpreter::new(self.code, count)), to, &out, None, true);
        }
    }
}
