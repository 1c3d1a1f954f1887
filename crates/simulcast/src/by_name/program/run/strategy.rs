//! How a program runs on operands of some shapes, as a value: its stages in order, with what is hoisted.

use std::fmt;

use simulcast_core::{Rule, format_shape, row_major_into};

use crate::by_name::dyn_array::AnyView;
use crate::by_name::program::build::bytecode::{Code, LEAVES};
use crate::by_name::program::build::graph::{Bytes, Kind, Node, Over, Value, View};
use crate::by_name::program::build::stages::{Leaf, Origin, Stage, Work};
use crate::by_name::program::front::axes::AxisPattern;
use crate::by_name::program::front::error::ProgramError;
use crate::by_name::program::front::parse::{BINARY, COMPARISON, COMPARISONS, POSTFIX};
use crate::by_name::program::run::bind::{Stepwise, seen_through, shapes};
use crate::by_name::program::run::interpreter::Interpreter;
use crate::by_name::program::{Run, TypedProgram};
use crate::exec::inner_loop::InnerLoop as _;
use crate::exec::launch::explain;
use crate::exec::strategy::Strategy;
use crate::layout::broadcast::Laid;
use simulcast_kernels::dtype::DType;
use simulcast_kernels::op::Op;

/// The most steps of an expression that are shown.
const SHOWN: usize = 32;

/// How a program runs on operands of some shapes; see [`TypedProgram::strategy`].
///
/// ```
/// use simulcast::{DType, TypedProgram};
///
/// let program = TypedProgram::parse("x + exp(sin(row))", &[("x", DType::F32), ("row", DType::F32)])?;
/// let strategy = program.strategy(&[&[4000, 4000], &[4000]])?;
/// assert_eq!(strategy.stages.len(), 2); // exp(sin(row)) first, once for each column
/// assert!(strategy.to_string().contains("exp(sin(row))"));
/// # Ok::<(), simulcast::ProgramError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProgramStrategy {
    /// The passes over memory, in the order in which they run; the last makes the result.
    pub stages: Vec<StageStrategy>,
}

/// One pass over memory.
///
/// ```
/// use simulcast::{DType, TypedProgram};
///
/// let program = TypedProgram::parse("x - mean(x)", &[("x", DType::F32)])?;
/// let stages = program.strategy(&[&[100]])?.stages;
/// assert_eq!((stages[0].shape.len(), &stages[1].shape[..]), (0, &[100][..]));
/// # Ok::<(), simulcast::ProgramError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StageStrategy {
    /// What it computes, where `#1` is the result of the first stage; of a long expression the outer part.
    pub expression: String,
    /// Whether it is a sub-expression that is computed at its own shape, smaller than that of the
    /// stage that reads it: see [`Run::hoisting`].
    pub is_hoisted: bool,
    /// The type of its result.
    pub dtype: DType,
    /// The shape of its result.
    pub shape: Vec<usize>,
    /// How its loops run, where it is element-wise: loop order, stores, prefetch, threads.
    pub execution: Option<Strategy>,
}

impl TypedProgram {
    /// How it runs on row-major operands of these shapes, under NumPy's rule.
    ///
    /// ```
    /// use simulcast::{DType, TypedProgram};
    ///
    /// let program = TypedProgram::parse("x + exp(sin(row))", &[("x", DType::F32), ("row", DType::F32)])?;
    /// let large = program.strategy(&[&[4000, 4000], &[4000]])?;
    /// let hoisted = &large.stages[0];
    /// assert_eq!((&*hoisted.expression, hoisted.is_hoisted), ("exp(sin(row))", true));
    /// assert_eq!((&*large.stages[1].expression, &*large.stages[1].shape), ("x + #1", &[4000, 4000][..]));
    /// println!("{large}"); // with loop order, stores, prefetch and threads
    /// let small = program.strategy(&[&[4, 4], &[4]])?;
    /// assert_eq!(small.stages.len(), 1);
    /// # Ok::<(), simulcast::ProgramError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Where there are more or fewer shapes than operands, or they do not broadcast.
    pub fn strategy(&self, shapes: &[&[usize]]) -> Result<ProgramStrategy, ProgramError> {
        self.strategy_by(Rule::Numpy, shapes)
    }

    /// As [`TypedProgram::strategy`], under any rule.
    ///
    /// # Errors
    ///
    /// As [`TypedProgram::strategy`].
    pub fn strategy_by(
        &self,
        rule: Rule<'_>,
        shapes: &[&[usize]],
    ) -> Result<ProgramStrategy, ProgramError> {
        static TEXT: String = String::new();
        static ZERO: Bytes = Bytes([0; 16]);
        let views = shapes.iter().enumerate().map(|(at, shape)| {
            let dtype = self.operands.get(at).map_or(DType::Bool, |operand| operand.dtype);
            let element: *const u8 = match dtype {
                DType::String => (&raw const TEXT).cast(),
                _ => ZERO.0.as_ptr(),
            };
            // SAFETY: every index is that one element, which is a value of the type and lives as long
            // as the process.
            unsafe { AnyView::from_raw(dtype, element, shape, &vec![0; shape.len()]) }
        });
        let views: Vec<AnyView<'_>> = views.collect();
        self.bind(&views).rule(rule).planned(true)
    }
}

impl Run<'_> {
    /// How it runs on these operands.
    ///
    /// # Errors
    ///
    /// Where the operands are not those that the program was made for, or do not broadcast.
    pub fn strategy(&self) -> Result<ProgramStrategy, ProgramError> {
        self.planned(false)
    }

    /// How it runs; where that is said, as if the operands were row-major.
    fn planned(&self, row_major: bool) -> Result<ProgramStrategy, ProgramError> {
        self.check()?;
        let program = self.program;
        let (mut stages, mut made): (Vec<StageStrategy>, Vec<Vec<usize>>) = (vec![], vec![]);
        // The number of the pass that makes the result of each stage.
        let mut numbers: Vec<usize> = Vec::new();
        for (stage, shapes) in program.stages.iter().zip(shapes(self)?) {
            let (hoisted, rest) = match &shapes.split {
                Some(split) => (&split.hoisted[..], &split.rest),
                None => (&[][..], stage),
            };
            let text = Text { program, stages: &numbers, hoisted: stages.len() + 1 };
            let results = shapes.hoisted.iter().chain([&shapes.result]);
            for (at, (stage, shape)) in hoisted.iter().chain([rest]).zip(results).enumerate() {
                let given = Given { run: self, row_major, stages: &made, hoisted: &shapes.hoisted };
                let execution = given.execution(stage);
                stages.push(StageStrategy {
                    execution,
                    ..text.strategy(stage, shape.clone(), at < hoisted.len())
                });
            }
            made.push(shapes.result);
            numbers.push(stages.len());
        }
        Ok(ProgramStrategy { stages })
    }
}

/// The arrays that stages read.
struct Given<'g> {
    run: &'g Run<'g>,
    /// Whether operands are taken for row-major.
    row_major: bool,
    stages: &'g [Vec<usize>],
    hoisted: &'g [Vec<usize>],
}

impl Given<'_> {
    /// The shape and the strides of a leaf.
    fn leaf(&self, leaf: &Leaf) -> Option<(Vec<usize>, Vec<isize>)> {
        let (shape, strides) = match &leaf.origin {
            Origin::Operand(at) => {
                let view = self.run.operands.get(*at)?;
                (view.shape(), (!self.row_major).then(|| view.strides().to_vec()))
            }
            Origin::Stage(at) => (&self.stages.get(*at)?[..], None),
            Origin::Hoisted(at) => (&self.hoisted.get(*at)?[..], None),
            Origin::Text(_) => return None,
        };
        let strides = strides.or_else(|| {
            let mut strides = vec![0; shape.len()];
            row_major_into(shape, &mut strides).ok()?;
            Some(strides)
        })?;
        seen_through(self.run.program, leaf, shape.to_vec(), strides).ok()
    }

    /// How the loops of an element-wise stage run.
    fn execution(&self, stage: &Stage) -> Option<Strategy> {
        let Work::Map(code) = &stage.work else { return None };
        let run = self.run;
        let leaves: Vec<_> =
            stage.leaves.iter().map(|leaf| self.leaf(leaf)).collect::<Option<_>>()?;
        let shapes: Vec<&[usize]> = leaves.iter().map(|leaf| &leaf.0[..]).collect();
        let strides: Vec<&[isize]> = leaves.iter().map(|leaf| &leaf.1[..]).collect();
        let explained = |code: &Code, shape: &[usize], strides: &[&[isize]]| {
            let inner = Interpreter::new(code, strides.len());
            explain(shape, strides, run.program.level, &inner.facts(), run.threads, false)
        };
        if run.rule == Rule::Numpy {
            let (mut all, mut own) = ([&[][..]; LEAVES], [&[][..]; LEAVES]);
            all.get_mut(..shapes.len())?.copy_from_slice(&shapes);
            own.get_mut(..strides.len())?.copy_from_slice(&strides);
            let laid = Laid::<LEAVES>::new(Rule::Numpy, all, own).ok()?;
            return Some(explained(code, &laid.shape, laid.slices().get(..shapes.len())?));
        }
        let stepwise = Stepwise::new(run.program, stage, run.rule, &shapes).ok()?;
        let relaid = stepwise.relaid(&strides, stage.narrow).ok()?;
        let strides: Vec<&[isize]> = relaid.leaves.iter().map(|leaf| &leaf.1[..]).collect();
        Some(explained(&relaid.code, &relaid.shape, &strides))
    }
}

/// Writes the expressions of stages.
struct Text<'t> {
    program: &'t TypedProgram,
    /// The number of each stage's pass.
    stages: &'t [usize],
    /// The number of the first pass that is hoisted from the stage.
    hoisted: usize,
}

impl Text<'_> {
    fn strategy(&self, stage: &Stage, shape: Vec<usize>, is_hoisted: bool) -> StageStrategy {
        let dtype = match &stage.work {
            Work::Map(code) => code.dtype,
            _ => self.program.graph.step(stage.node).dtype(),
        };
        let expression = self.node(stage, stage.node, 0, &mut { SHOWN });
        StageStrategy { expression, is_hoisted, dtype, shape, execution: None }
    }

    /// A step of a stage, in brackets where it binds less strongly than `least`; at most `left` steps.
    fn node(&self, stage: &Stage, node: Node, least: u8, left: &mut usize) -> String {
        let Some(fewer) = left.checked_sub(1) else { return "...".into() };
        *left = fewer;
        // A stage that copies text is of its own leaf.
        if let Some(leaf) = stage.leaves.iter().find(|leaf| leaf.node == node) {
            return self.leaf(leaf);
        }
        let step = self.program.graph.step(node);
        let mut part = |node: Node, least: u8| self.node(stage, node, least, left);
        let (strength, text) = match &step.kind {
            Kind::Apply(op, _, _) => match *step.kind.args() {
                [a, b] => match binary(*op) {
                    Some((sign, strength)) => (
                        strength,
                        format!("{} {sign} {}", part(a, strength), part(b, strength + 1)),
                    ),
                    None => (POSTFIX, format!("{op}({}, {})", part(a, 0), part(b, 0))),
                },
                ref args => {
                    let args: Vec<String> = args.iter().map(|&arg| part(arg, 0)).collect();
                    (POSTFIX, format!("{op}({})", args.join(", ")))
                }
            },
            Kind::Cast(of) => (POSTFIX, format!("{}({})", step.dtype(), part(*of, 0))),
            Kind::Fold(of, over) => (POSTFIX, reduction(over, &part(*of, 0))),
            Kind::Constant(Value::Plain(bytes)) => (POSTFIX, number(*bytes, step.dtype())),
            // Never: those are leaves.
            _ => (POSTFIX, "...".into()),
        };
        if strength < least { format!("({text})") } else { text }
    }

    fn leaf(&self, leaf: &Leaf) -> String {
        let mut text = match &leaf.origin {
            Origin::Operand(at) => {
                self.program.operands.get(*at).map_or_else(String::new, |own| own.name.clone())
            }
            Origin::Stage(at) => format!("#{}", self.stages.get(*at).copied().unwrap_or(0)),
            Origin::Hoisted(at) => format!("#{}", self.hoisted + at),
            Origin::Text(text) => format!("{text:?}"),
        };
        for &node in &leaf.views {
            if let Kind::View(_, view) = &self.program.graph.step(node).kind {
                text += &seen(view);
            }
        }
        text
    }
}

/// The sign of an operator, and how strongly it binds.
fn binary(op: Op) -> Option<(&'static str, u8)> {
    let comparison = COMPARISONS.iter().find(|own| own.1 == op).map(|own| (own.0, COMPARISON));
    comparison.or_else(|| BINARY.iter().find(|own| own.2 == op).map(|own| (own.0, own.1)))
}

/// A view as it is written behind a value.
fn seen(view: &View) -> String {
    match view {
        View::Transpose(None) => ".T".into(),
        View::Transpose(Some(axes)) => {
            let axes: Vec<String> = axes.iter().map(isize::to_string).collect();
            format!(".transpose({})", axes.join(", "))
        }
        View::Insert(pattern) => {
            let part = |part: &AxisPattern| match part {
                AxisPattern::Keep => ":",
                AxisPattern::New => "None",
                AxisPattern::Rest => "...",
            };
            format!("[{}]", pattern.iter().map(part).collect::<Vec<_>>().join(", "))
        }
    }
}

fn reduction(over: &Over, of: &str) -> String {
    let axes = match over.axes.as_deref() {
        None => String::new(),
        Some([axis]) => format!(", axis={axis}"),
        Some(axes) => {
            let axes: Vec<String> = axes.iter().map(isize::to_string).collect();
            format!(", axis=({})", axes.join(", "))
        }
    };
    let keepdims = if over.keepdims { ", keepdims=True" } else { "" };
    format!("{}({of}{axes}{keepdims})", over.fold.name())
}

/// A constant of some type.
fn number(bytes: Bytes, dtype: DType) -> String {
    fn of<const N: usize>(bytes: Bytes) -> [u8; N] {
        std::array::from_fn(|n| bytes.0[n])
    }
    match dtype {
        DType::Bool => if bytes.0[0] == 0 { "False" } else { "True" }.into(),
        DType::I8 => i8::from_ne_bytes(of(bytes)).to_string(),
        DType::I16 => i16::from_ne_bytes(of(bytes)).to_string(),
        DType::I32 => i32::from_ne_bytes(of(bytes)).to_string(),
        DType::I64 => i64::from_ne_bytes(of(bytes)).to_string(),
        DType::U8 => u8::from_ne_bytes(of(bytes)).to_string(),
        DType::U16 => u16::from_ne_bytes(of(bytes)).to_string(),
        DType::U32 => u32::from_ne_bytes(of(bytes)).to_string(),
        DType::U64 => u64::from_ne_bytes(of(bytes)).to_string(),
        DType::F16 => format!("{:?}", half::f16::from_ne_bytes(of(bytes))),
        DType::Bf16 => format!("{:?}", half::bf16::from_ne_bytes(of(bytes))),
        DType::F32 => format!("{:?}", f32::from_ne_bytes(of(bytes))),
        DType::F64 => format!("{:?}", f64::from_ne_bytes(of(bytes))),
        DType::C64 => {
            let [re, im] = [of::<8>(bytes)[..4].try_into(), of::<8>(bytes)[4..].try_into()]
                .map(|part| part.map_or(0.0, f32::from_ne_bytes));
            format!("complex({re:?}, {im:?})")
        }
        DType::C128 => {
            let number = bytes.complex();
            format!("complex({:?}, {:?})", number.re, number.im)
        }
        DType::String => String::new(),
    }
}

impl fmt::Display for ProgramStrategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let wide = self.stages.iter().map(|stage| stage.expression.chars().count()).max();
        let (wide, digits) = (wide.unwrap_or(0), self.stages.len().to_string().len());
        for (at, stage) in self.stages.iter().enumerate() {
            let number = at + 1;
            let role = match (stage.is_hoisted, number == self.stages.len()) {
                (true, _) => "hoisted",
                (_, true) => "result",
                _ => "earlier",
            };
            let StageStrategy { expression, dtype, shape, .. } = stage;
            let shape = format_shape(shape);
            if at > 0 {
                f.write_str("\n")?;
            }
            write!(f, "#{number:<digits$} {role:<7}  {expression:<wide$}  {dtype} {shape}")?;
            if let Some(execution) = &stage.execution {
                write!(f, "\n    {execution}")?;
            }
        }
        Ok(())
    }
}
