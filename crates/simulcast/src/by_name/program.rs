//! Programs: expressions over broadcast arrays, computed in one pass over memory.
//!
//! ```
//! use ndarray::{Array2, array};
//! use simulcast::{Program, eval};
//!
//! let (x, mean, std) = (array![[1_f32, 2.0], [3.0, 6.0]], array![2_f32, 4.0], array![[1_f32], [2.0]]);
//! let y: Array2<f32> = eval("(x - mean) / std", (("x", &x), ("mean", &mean), ("std", &std)))?.try_into()?;
//! assert_eq!(y, array![[-1.0, -2.0], [0.5, 1.0]]);
//!
//! let centre = Program::parse("x - mean")?; // compiled once for each list of types
//! let mut out = Array2::<f32>::zeros((2, 2));
//! centre.call((("x", &x), ("mean", &mean)))?.write(&mut out)?;
//! assert_eq!(out, array![[-1.0, -2.0], [1.0, 2.0]]);
//! # Ok::<(), simulcast::ProgramError>(())
//! ```
//!
//! | you have | you call |
//! |---|---|
//! | a text and arrays, once | [`eval`] |
//! | a text, and arrays that come often, by name | [`Program::parse`], [`Program::call`] |
//! | types that are known before the arrays | [`TypedProgram::parse`], or [`Builder`] without a text; [`TypedProgram::bind`] |
//!
//! ```text
//! text ──parse──▶ Expr ──┐
//! ONNX, Python, you ─────┴─▶ Builder ──▶ graph ──▶ stages ──▶ code ──run──▶ result
//!                            types       steps     pieces     kernels over tiles
//! ```
//!
//! The language of expressions has Python's syntax and precedence:
//!
//! | you write | it means |
//! |---|---|
//! | `+ - * / // % **`, `& \| ^ ~ << >>` | as in NumPy |
//! | `a < b <= c`, `and`, `or`, `not`, `a if c else b` | as in Python, element by element |
//! | `1`, `0x1F`, `1e-3`, `2j`, `True`, `'text'` | literals; numbers adopt the type of what they meet |
//! | `nan`, `inf`, `pi`, `e` | those numbers, unless an operand has the name |
//! | `sqrt(a)`, `where(c, a, b)`, `clip(a, 0, None)`, `max(a, b, c)` | every [`Op`](crate::Op) by its name, and by the usual ones |
//! | `float32(a)`, `a.astype(float32)` | casts |
//! | `a[:, None]`, `a[..., None]`, `a.T`, `a.transpose(0, 2, 1)` | new axes, other orders |
//! | `sum(a, axis=-1)`, `a.mean((0, 1), keepdims=True)`; `prod`, `max`, `min` | reductions |
//!
//! Where NumPy has more than one answer, the array API standard's holds: `rint` is `round`, which leaves
//! integers what they are; `x ** 0.5` is C's `pow` also of `-inf` and `-0.0`, where NumPy takes the root
//! of some; a value without axes has no axis 0 to reduce. `clip` has the type of all its operands
//! together, as NumPy's.
//!
//! A program is compiled once for the types of its operands, and runs on arrays of any shapes. It
//! writes an intermediate result to memory only between two stages ([`TypedProgram::stages`]), and where a
//! sub-expression is smaller than the result: that is computed first, at its own shape
//! ([`Run::hoisting`]). [`TypedProgram::strategy`] shows both.

mod build;
mod call;
mod front;
pub(super) mod joint;
pub mod lowered;
mod run;

use std::ops::Range;

use simulcast_core::{BroadcastError, Rule};

use crate::by_name::dyn_array::{AnyArray, AnyView, AnyViewMut};
use crate::by_name::types::Promotion;
use crate::exec::inner_loop::{self, InnerLoop as _, Operands};
use crate::exec::strategy::Stores;
pub use build::builder::Builder;
use build::graph::Graph;
pub use build::graph::Node;
use build::stages::{Origin, Stage, Work, stages};
pub use call::{Argument, Arguments, Call, Program, eval};
pub use front::axes::{AxisPattern, Fold};
pub use front::builtins::nearest;
pub use front::diagnostic::Diagnostic;
pub use front::error::{ErrorOperand, ProgramError, ProgramErrorKind};
pub use front::expr::{Expr, ExprId, ExprKind, ExprNode};
pub use front::syntax_error::{SyntaxError, SyntaxErrorKind};
pub use joint::{JointProgram, JointRun};
use run::bind::Leaves;
pub use run::chunked::{RunByRows, row_axis};
use run::hoist::{Hoisted, Splits};
use run::interpreter::Interpreter;
pub use run::strategy::{ProgramStrategy, StageStrategy};
use simulcast_kernels::cpu::level::Level;
use simulcast_kernels::dtype::DType;

/// An operand of a program.
///
/// ```
/// use simulcast::{DType, TypedProgram};
///
/// let program = TypedProgram::parse("x + y", &[("x", DType::F32), ("y", DType::I8)])?;
/// assert_eq!((program.operands()[1].name.as_str(), program.operands()[1].dtype), ("y", DType::I8));
/// # Ok::<(), simulcast::ProgramError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProgramOperand {
    /// Its name.
    pub name: String,
    /// The type of its elements.
    pub dtype: DType,
}

/// An expression that was compiled for operands of certain types, which it takes in order; see [the module's page](self).
///
/// A [`Program`] takes them by name and compiles itself for the types that come.
///
/// ```
/// use ndarray::array;
/// use simulcast::{AnyArray, AnyView, DType, TypedProgram};
///
/// let program = TypedProgram::parse("(x - mean) / 2", &[("x", DType::F64), ("mean", DType::F64)])?;
/// let (x, mean) = (array![[1.0, 2.0], [3.0, 6.0]], array![2.0, 4.0]);
/// let y = program.run(&[AnyView::from(&x), AnyView::from(&mean)])?;
/// assert_eq!(y, AnyArray::from(array![[-0.5, -1.0], [0.5, 1.0]]));
/// # Ok::<(), simulcast::ProgramError>(())
/// ```
#[derive(Clone, Debug)]
pub struct TypedProgram {
    graph: Graph,
    operands: Vec<ProgramOperand>,
    root: Node,
    stages: Vec<Stage>,
    level: Level,
    /// Stages that were split by shapes which came before.
    splits: Splits,
}

impl TypedProgram {
    fn new(
        graph: Graph,
        operands: Vec<ProgramOperand>,
        root: Node,
        level: Level,
    ) -> Result<Self, ProgramError> {
        let stages = stages(&graph, root, level)?;
        Ok(Self { graph, operands, root, stages, level, splits: Splits::default() })
    }

    /// The program of a text, for operands of these names and types, with NumPy's promotion:
    /// [`Expr::parse`] and [`Expr::compile`] in one.
    ///
    /// ```
    /// use ndarray::array;
    /// use simulcast::{AnyView, DType, TypedProgram};
    ///
    /// let f32 = DType::F32;
    /// let program = TypedProgram::parse("(x - m) / s", &[("x", f32), ("m", f32), ("s", f32)])?;
    /// let (x, m, s) = (array![[1_f32, 2.0], [3.0, 6.0]], array![2_f32, 4.0], array![[1_f32], [2.0]]);
    /// let y = program.run(&[(&x).into(), (&m).into(), AnyView::from(&s)])?;
    /// assert_eq!(y.typed::<f32>(), Some(array![[-1_f32, -2.0], [0.5, 1.0]].view().into_dyn()));
    /// # Ok::<(), simulcast::ProgramError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// A text that is no expression, names that no operand has, and types that do not go together, with
    /// their place in the text.
    pub fn parse(text: &str, operands: &[(&str, DType)]) -> Result<Self, ProgramError> {
        Expr::parse(text)?.compile(operands, Promotion::Numpy)
    }

    /// The same program for another instruction-set level.
    ///
    /// # Errors
    ///
    /// None that its making did not have.
    pub fn at_level(&self, level: Level) -> Result<Self, ProgramError> {
        Self::new(self.graph.clone(), self.operands.clone(), self.root, level)
    }

    /// Its operands, in the order in which [`TypedProgram::run`] takes them.
    #[must_use]
    pub fn operands(&self) -> &[ProgramOperand] {
        &self.operands
    }

    /// The type of the result's elements.
    #[must_use]
    pub fn dtype(&self) -> DType {
        self.graph.step(self.root).dtype()
    }

    /// How many passes over memory it takes: one, but where a reduction, a value with new axes, or
    /// text has to be there before the rest can begin. What is [hoisted](Run::hoisting) depends on
    /// shapes, and comes on top.
    #[must_use]
    pub fn stages(&self) -> usize {
        self.stages.len()
    }

    /// The result for some arrays, on as many threads as it is worth.
    ///
    /// # Errors
    ///
    /// Where the arrays are not those that the program was made for, or do not broadcast.
    pub fn run(&self, operands: &[AnyView<'_>]) -> Result<AnyArray, ProgramError> {
        self.bind(operands).compute()
    }

    /// The result for some arrays into `out`, to whose shape it stretches.
    ///
    /// # Errors
    ///
    /// As [`TypedProgram::run`], and where the result does not fit `out`.
    pub fn run_into(
        &self,
        operands: &[AnyView<'_>],
        out: &mut AnyViewMut<'_>,
    ) -> Result<(), ProgramError> {
        self.bind(operands).write(out)
    }

    /// Results from operands whose elements lie side by side: the short way for small arrays.
    ///
    /// The bits of `single` say which operands have one element, which repeats. False, and nothing is
    /// done, where the program is not of one element-wise stage over eight operands at most.
    ///
    /// # Safety
    ///
    /// Each of the program's operands points to `len` elements of its type (of `bool`: bytes, of which
    /// all but 0 are true), or to one, and `out` to room for `len` results, all aligned; `out` shares no
    /// memory with an operand.
    #[must_use]
    #[inline]
    #[doc(hidden)]
    pub unsafe fn run_dense(
        &self,
        out: *mut u8,
        operands: &[*const u8],
        single: usize,
        len: usize,
    ) -> bool {
        let [Stage { work: Work::Map(code), leaves, .. }] = &self.stages[..] else { return false };
        let (mut ins, mut splat) = ([run::run_map::dangling(); 8], 0);
        if leaves.len() > ins.len() || operands.len() != self.operands.len() {
            return false;
        }
        for (n, (place, leaf)) in ins.iter_mut().zip(leaves).enumerate() {
            match leaf.origin {
                Origin::Operand(own) if leaf.views.is_empty() => {
                    *place = operands[own];
                    splat |= (single >> own & 1) << n;
                }
                _ => return false,
            }
        }
        // SAFETY: there are no more leaves than eight, and each is an operand as it is, of the type
        // that the code reads; the rest is promised.
        unsafe {
            let repeated = splat as Operands;
            let run = inner_loop::Run {
                out,
                ins: &ins[..leaves.len()],
                repeated,
                prefetch: 0,
                stores: Stores::Cached,
                len,
            };
            Interpreter::new(code, leaves.len()).contiguous(&run, inner_loop::RowLoop::ONE);
        }
        true
    }

    /// The program with its operands, to be run under another rule, on fewer threads, or in parts.
    #[inline]
    pub const fn bind<'r>(&'r self, operands: &'r [AnyView<'r>]) -> Run<'r> {
        Run {
            program: self,
            operands,
            rule: Rule::Numpy,
            threads: None,
            hoisting: Hoisting::WherePays,
        }
    }
}

/// A program with its operands; see [`TypedProgram::bind`].
///
/// ```
/// use ndarray::array;
/// use simulcast::{AnyView, DType, Rule, TypedProgram};
///
/// let program = TypedProgram::parse("x + b", &[("x", DType::I32), ("b", DType::I32)])?;
/// let (x, b) = (array![[1, 2], [3, 4]], array![10, 20]);
/// let operands = [AnyView::from(&x), AnyView::from(&b)];
/// let run = program.bind(&operands).rule(Rule::Pdpd { axis: Some(0) }).threads(1);
/// assert_eq!(run.compute()?.typed::<i32>(), Some(array![[11, 12], [23, 24]].view().into_dyn()));
/// # Ok::<(), simulcast::ProgramError>(())
/// ```
#[derive(Clone, Copy, Debug)]
#[must_use = "nothing runs until the result is collected"]
pub struct Run<'r> {
    program: &'r TypedProgram,
    operands: &'r [AnyView<'r>],
    rule: Rule<'r>,
    threads: Option<usize>,
    hoisting: Hoisting,
}

/// Which sub-expressions are hoisted: computed at their own shape before the stage that reads them,
/// such as `exp(row)` in `x + exp(row)`. They take memory of their own size; the result has the same
/// bits.
///
/// ```
/// use ndarray::array;
/// use simulcast::program::Hoisting;
/// use simulcast::{AnyView, DType, TypedProgram};
///
/// let program = TypedProgram::parse("x + exp(row)", &[("x", DType::F64), ("row", DType::F64)])?;
/// let (x, row) = (array![[1.0, 2.0]], array![0.0, 0.0]);
/// let operands = [AnyView::from(&x), AnyView::from(&row)];
/// let run = |hoisting| program.bind(&operands).hoisting(hoisting).compute();
/// assert_eq!(run(Hoisting::Always)?, run(Hoisting::Never)?); // the same bits
/// # Ok::<(), simulcast::ProgramError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Hoisting {
    /// Those that save more time than a pass of their own takes.
    #[default]
    WherePays,
    /// All that have fewer elements than a step that reads them, for tests.
    Always,
    /// None.
    Never,
}

/// Where results go.
enum Target<'t, 'a> {
    Fresh,
    Into(&'t mut AnyViewMut<'a>),
}

impl<'r> Run<'r> {
    /// Under another rule than NumPy's: every operation brings its operands together by it, in the
    /// order in which they are written; constants fit everywhere.
    pub const fn rule(mut self, rule: Rule<'r>) -> Self {
        self.rule = rule;
        self
    }

    /// On at most that many threads.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = Some(threads.max(1));
        self
    }

    /// Which sub-expressions are computed at their own shape first; [`Hoisting::WherePays`] unless set.
    pub const fn hoisting(mut self, hoisting: Hoisting) -> Self {
        self.hoisting = hoisting;
        self
    }

    /// The shape of the result.
    ///
    /// # Errors
    ///
    /// Where the operands do not broadcast.
    pub fn shape(&self) -> Result<Vec<usize>, ProgramError> {
        self.check()?;
        Ok(run::bind::shapes(self)?.pop().map(|last| last.result).unwrap_or_default())
    }

    /// The result as a new array.
    ///
    /// # Errors
    ///
    /// Where the arrays are not those that the program was made for, or do not broadcast.
    pub fn compute(&self) -> Result<AnyArray, ProgramError> {
        let made = self.whole(&mut Target::Fresh)?;
        // Never `None`: a fresh target gives an array.
        made.ok_or_else(|| self.program.unsupported("a result without a place"))
    }

    /// The result into `out`, to whose shape it stretches.
    ///
    /// # Errors
    ///
    /// As [`Run::compute`], and where the result does not fit `out`.
    pub fn write(&self, out: &mut AnyViewMut<'_>) -> Result<(), ProgramError> {
        self.check_out(out)?;
        self.whole(&mut Target::Into(out)).map(|_| ())
    }

    fn check(&self) -> Result<(), ProgramError> {
        let (inputs, given) = (&self.program.operands, self.operands.len());
        if inputs.len() != given {
            let kind = ProgramErrorKind::Operands { expected: inputs.len(), given };
            return Err(ProgramError::new(kind, 0..0));
        }
        for (input, view) in inputs.iter().zip(self.operands) {
            if input.dtype != view.dtype() {
                return Err(mistyped(&input.name, input.dtype, view.dtype()));
            }
        }
        Ok(())
    }

    fn check_out(&self, out: &AnyViewMut<'_>) -> Result<(), ProgramError> {
        let dtype = self.program.dtype();
        if dtype == out.dtype() { Ok(()) } else { Err(mistyped("out", dtype, out.dtype())) }
    }

    /// Runs every stage.
    #[inline]
    fn whole(&self, target: &mut Target<'_, '_>) -> Result<Option<AnyArray>, ProgramError> {
        let made = self.earlier()?;
        let Some(stage) = self.program.stages.last() else { return Ok(None) };
        let hoisted = Hoisted::new(self, stage, &made)?;
        self.one_stage(stage, &made, hoisted.as_ref(), target, None)
    }

    /// Runs every stage but the last; a result that no later stage reads is freed on the way.
    #[inline]
    fn earlier(&self) -> Result<Vec<Option<AnyArray>>, ProgramError> {
        self.check()?;
        let mut made: Vec<Option<AnyArray>> = Vec::new();
        let earlier = self.program.stages.split_last().map_or(&[][..], |(_, earlier)| earlier);
        for stage in earlier {
            let hoisted = Hoisted::new(self, stage, &made)?;
            let target = &mut Target::Fresh;
            let array = self.one_stage(stage, &made, hoisted.as_ref(), target, None)?;
            made.push(array);
            for &spent in &stage.spent {
                made[spent] = None;
            }
        }
        Ok(made)
    }

    /// Runs a stage, or some rows of its result, after what is hoisted from it.
    #[inline]
    fn one_stage(
        &self,
        stage: &Stage,
        made: &[Option<AnyArray>],
        hoisted: Option<&Hoisted>,
        target: &mut Target<'_, '_>,
        rows: Option<Range<usize>>,
    ) -> Result<Option<AnyArray>, ProgramError> {
        let (stage, values) = match hoisted {
            Some(hoisted) => (&hoisted.split.rest, &hoisted.values[..]),
            None => (stage, &[][..]),
        };
        self.on_leaves(stage, &Leaves::new(self, stage, made, values)?, target, rows)
    }

    fn on_leaves(
        &self,
        stage: &Stage,
        leaves: &Leaves<'_>,
        target: &mut Target<'_, '_>,
        rows: Option<Range<usize>>,
    ) -> Result<Option<AnyArray>, ProgramError> {
        match &stage.work {
            Work::Map(code) => run::run_map::map(self, stage, code, leaves, target, rows),
            Work::Fold(code, over) => {
                run::reduction::fold(self, stage, code, over, leaves, target, rows)
            }
            Work::Text(op) => run::strings::text(self, stage, *op, leaves, target),
        }
    }

    /// An error of a stage's own: its result's, rather than that of some operands.
    fn refused(&self, stage: &Stage, error: BroadcastError) -> ProgramError {
        let span = self.program.graph.step(stage.node).span.clone();
        ProgramError::new(ProgramErrorKind::Broadcast(error), span)
    }
}

impl TypedProgram {
    fn unsupported(&self, what: &str) -> ProgramError {
        ProgramError::new(ProgramErrorKind::Unsupported(what.into()), 0..0)
    }
}

fn mistyped(name: &str, expected: DType, given: DType) -> ProgramError {
    let kind = ProgramErrorKind::DType { name: name.into(), expected, given };
    ProgramError::new(kind, 0..0)
}
