//! Programs of several results, and gradients, which are such programs.
//!
//! ```text
//! graph ──lower──▶ steps ──reverse──▶ steps ──schedule──▶ passes ──run──▶ results
//!        rule, shapes     gradients
//! ```
//!
//! Which passes there are depends on shapes, so they are made at the first run on those, and kept.

pub(in crate::by_name::program) mod lower;
mod reverse;
pub(in crate::by_name::program) mod schedule;
pub(in crate::by_name::program) mod steps;

use std::sync::{Arc, Mutex, PoisonError};

use simulcast_core::{BroadcastError, Names, OwnedRule, Rule, resolve};

use self::schedule::Schedule;
use self::steps::{Id, Steps};
use crate::by_name::dyn_array::{AnyArray, AnyView, AnyViewMut};
use crate::by_name::program::build::builder::{Builder, widened};
use crate::by_name::program::build::graph::{Graph, Kind, Node};
use crate::by_name::program::front::builtins::nearest;
use crate::by_name::program::front::error::{ProgramError, ProgramErrorKind};
use crate::by_name::program::front::expr::Expr;
use crate::by_name::program::run::joint::Place;
use crate::by_name::program::run::strings::copied;
use crate::by_name::program::{ProgramOperand, TypedProgram};
use crate::by_name::types::Promotion;
use simulcast_kernels::cpu::level::Level;
use simulcast_kernels::dtype::DType;
use simulcast_kernels::tuning::JOINT_SCHEDULES_KEPT;

/// A program of several results, computed in as few passes over the operands as there can be; gradients are such programs.
///
/// ```
/// use ndarray::array;
/// use simulcast::{AnyView, DType, JointProgram, TypedProgram};
///
/// let f64 = DType::F64;
/// let both = JointProgram::parse("a + b; sum(a * b)", &[("a", f64), ("b", f64)])?; // one pass
/// let (a, b) = (array![1.0, 2.0], array![10.0, 20.0]);
/// let made = both.run(&[(&a).into(), AnyView::from(&b)])?;
/// assert_eq!(made[0].typed::<f64>(), Some(array![11.0, 22.0].view().into_dyn()));
/// assert_eq!(made[1].typed::<f64>().map(|sum| sum.sum()), Some(50.0));
///
/// let loss = TypedProgram::parse("mean((x - m) ** 2)", &[("x", f64), ("m", f64)])?;
/// let (x, m) = (array![[1.0, 2.0], [3.0, 6.0]], array![2.0, 2.0]);
/// let made = loss.value_and_grad(&["m"])?.run(&[(&x).into(), AnyView::from(&m)])?;
/// assert_eq!(made[0].typed::<f64>().map(|value| value.sum()), Some(4.5));
/// assert_eq!(made[1].typed::<f64>(), Some(array![0.0, -2.0].view().into_dyn())); // in the shape of m
/// # Ok::<(), simulcast::ProgramError>(())
/// ```
///
/// In a pass, the element-wise part and all reductions are one loop: nothing of the size of an operand is written but
/// results that have it. Reductions do not depend on the number of threads; sums of `float32` and of 16-bit floats are
/// added up in `float64` from row to row, so that they may differ from [`TypedProgram::run`]'s in the last place.
///
/// Gradients follow the conventions of [`vjp`](crate::vjp). Elements that tie for a `max` or `min` share its gradient
/// equally; where the result is NaN, elements that are NaN do.
#[derive(Clone, Debug)]
pub struct JointProgram {
    graph: Arc<Graph>,
    operands: Vec<ProgramOperand>,
    /// The types of the results.
    results: Vec<DType>,
    recipe: Recipe,
    level: Level,
    /// A program for each result, where text is among them.
    separate: Vec<TypedProgram>,
    kept: Kept,
}

/// What is computed.
#[derive(Clone, Debug)]
enum Recipe {
    Values(Vec<Node>),
    /// Gradients of what another recipe makes.
    Pulled(Box<Pulled>),
}

#[derive(Clone, Debug)]
struct Pulled {
    of: Recipe,
    /// The operands that gradients are made of.
    wrt: Vec<usize>,
    /// The operand that is the gradient of the first result, those of the others following; none where it is 1.
    given: Option<usize>,
    /// Whether the results themselves are made too, before the gradients.
    values: bool,
}

/// The schedules for shapes that came before, the latest last.
#[derive(Clone, Debug, Default)]
struct Kept(Arc<Mutex<Vec<Known>>>);

/// What a schedule was made for, and it.
type Known = (Key, Arc<Schedule>);

#[derive(Debug, PartialEq)]
struct Key {
    rule: OwnedRule,
    shapes: Vec<Vec<usize>>,
}

impl TypedProgram {
    /// The program of the gradients of some operands, each in its operand's shape and type, for a result that is one
    /// number.
    ///
    /// ```
    /// use ndarray::array;
    /// use simulcast::{AnyArray, AnyView, DType, TypedProgram};
    ///
    /// let loss = TypedProgram::parse("sum(x * w)", &[("x", DType::F64), ("w", DType::F64)])?;
    /// let (x, w) = (array![[1.0, 2.0], [3.0, 4.0]], array![1.0, 1.0]);
    /// let made = loss.gradient(&["w"])?.run(&[AnyView::from(&x), AnyView::from(&w)])?;
    /// assert_eq!(made[0], AnyArray::from(array![4.0, 6.0]));
    /// # Ok::<(), simulcast::ProgramError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Names that no operand has, operands that are not floats, and operations that have no derivative.
    pub fn gradient(&self, wrt: &[&str]) -> Result<JointProgram, ProgramError> {
        JointProgram::of(self).pulled(wrt, false, false)
    }

    /// The program of the result, which is one number, and of the gradients of some operands, in as few passes over the
    /// operands as there can be: one, where nothing but the root is reduced.
    ///
    /// # Errors
    ///
    /// As [`TypedProgram::gradient`].
    pub fn value_and_grad(&self, wrt: &[&str]) -> Result<JointProgram, ProgramError> {
        JointProgram::of(self).pulled(wrt, false, true)
    }

    /// The program of the gradients of some operands, for a result of any shape: it takes the gradient of the result as
    /// one more operand, of the result's shape and type.
    ///
    /// # Errors
    ///
    /// As [`TypedProgram::gradient`].
    pub fn pullback(&self, wrt: &[&str]) -> Result<JointProgram, ProgramError> {
        JointProgram::of(self).pullback(wrt)
    }
}

impl JointProgram {
    /// The program of expressions that are separated by `;`, for operands of these names and types, with NumPy's
    /// promotion.
    ///
    /// # Errors
    ///
    /// As [`TypedProgram::parse`].
    pub fn parse(text: &str, operands: &[(&str, DType)]) -> Result<Self, ProgramError> {
        let expressions = Expr::parse_several(text)?;
        Self::compile(&expressions, operands, Promotion::Numpy)
    }

    /// The program of some expressions, for operands of these names and types.
    ///
    /// # Errors
    ///
    /// As [`Expr::compile`]; places in the text are those of the expression at fault.
    pub fn compile(
        expressions: &[Expr],
        operands: &[(&str, DType)],
        promotion: Promotion,
    ) -> Result<Self, ProgramError> {
        let mut builder = Builder::new(promotion);
        let mut roots = Vec::with_capacity(expressions.len());
        for expression in expressions {
            roots.push(expression.lower(&mut builder, operands)?);
        }
        builder.finish_all(&roots)
    }

    /// The program of the values of a graph.
    pub(in crate::by_name::program) fn new(
        graph: Graph,
        operands: Vec<ProgramOperand>,
        roots: Vec<Node>,
        level: Level,
    ) -> Result<Self, ProgramError> {
        let results = roots.iter().map(|&root| graph.step(root).dtype()).collect();
        let has_text = graph.steps.iter().any(|step| step.dtype() == DType::String);
        let mut separate = Vec::new();
        for &root in roots.iter().filter(|_| has_text) {
            separate.push(TypedProgram::new(graph.clone(), operands.clone(), root, level)?);
        }
        let (graph, recipe) = (Arc::new(graph), Recipe::Values(roots));
        let kept = Kept::default();
        Ok(Self { graph, operands, results, recipe, level, separate, kept })
    }

    /// A program of one result.
    fn of(program: &TypedProgram) -> Self {
        Self {
            graph: Arc::new(program.graph.clone()),
            operands: program.operands.clone(),
            results: vec![program.dtype()],
            recipe: Recipe::Values(vec![program.root]),
            level: program.level,
            separate: Vec::new(),
            kept: Kept::default(),
        }
    }

    /// Its operands, in the order in which [`JointProgram::run`] takes them.
    #[must_use]
    pub fn operands(&self) -> &[ProgramOperand] {
        &self.operands
    }

    /// The types of the results' elements.
    #[must_use]
    pub fn dtypes(&self) -> &[DType] {
        &self.results
    }

    /// The program of the gradients of some operands, each in its operand's shape and type, for results that are one
    /// number each: of their sum.
    ///
    /// # Errors
    ///
    /// Names that no operand has, operands and results that are not floats, and operations that have no derivative.
    pub fn gradient(&self, wrt: &[&str]) -> Result<Self, ProgramError> {
        self.pulled(wrt, false, false)
    }

    /// The program of the results, and then of what [`JointProgram::gradient`] gives.
    ///
    /// # Errors
    ///
    /// As [`JointProgram::gradient`].
    pub fn value_and_grad(&self, wrt: &[&str]) -> Result<Self, ProgramError> {
        self.pulled(wrt, false, true)
    }

    /// The program of the gradients of some operands: it takes the gradient of each result as one more operand, in
    /// their order, of the result's shape and type.
    ///
    /// # Errors
    ///
    /// As [`JointProgram::gradient`].
    pub fn pullback(&self, wrt: &[&str]) -> Result<Self, ProgramError> {
        self.pulled(wrt, true, false)
    }

    /// The program of the results, and then of what [`JointProgram::pullback`] gives.
    ///
    /// # Errors
    ///
    /// As [`JointProgram::gradient`].
    pub fn value_and_pullback(&self, wrt: &[&str]) -> Result<Self, ProgramError> {
        self.pulled(wrt, true, true)
    }

    fn pulled(&self, wrt: &[&str], given: bool, values: bool) -> Result<Self, ProgramError> {
        let mut own = Vec::with_capacity(wrt.len());
        for &name in wrt {
            let at = self.operands.iter().position(|operand| operand.name == name);
            let at = at.ok_or_else(|| {
                let names = self.operands.iter().map(|operand| operand.name.as_str());
                let near = nearest(name, names).map(String::from);
                let kind = ProgramErrorKind::Unknown { name: name.into(), near };
                ProgramError::new(kind, 0..0)
            })?;
            let ProgramOperand { name, dtype } = &self.operands[at];
            if !dtype.is_float() {
                let kind = ProgramErrorKind::NotAFloat { name: name.clone(), given: *dtype };
                return Err(ProgramError::new(kind, 0..0));
            }
            own.push(at);
        }
        if let Some(&result) = self.results.iter().find(|dtype| !dtype.is_float()) {
            let kind = ProgramErrorKind::NotAFloat { name: "the result".into(), given: result };
            return Err(ProgramError::new(kind, 0..0));
        }
        check_derivatives(&self.graph, self.recipe.roots(), &own)?;
        let gradients = own.iter().map(|&at| self.operands[at].dtype);
        let results = if values { &self.results[..] } else { &[] };
        let results = results.iter().copied().chain(gradients).collect();
        let mut operands = self.operands.clone();
        for (number, &dtype) in self.results.iter().enumerate().filter(|_| given) {
            let mut name = match self.results.len() {
                1 => "gradient".to_owned(),
                _ => format!("gradient{number}"),
            };
            while operands.iter().any(|operand| operand.name == name) {
                name.push('_');
            }
            operands.push(ProgramOperand { name, dtype });
        }
        let given = given.then_some(self.operands.len());
        let pulled = Pulled { of: self.recipe.clone(), wrt: own, given, values };
        Ok(Self {
            graph: Arc::clone(&self.graph),
            operands,
            results,
            recipe: Recipe::Pulled(Box::new(pulled)),
            level: self.level,
            separate: Vec::new(),
            kept: Kept::default(),
        })
    }

    /// The results for some arrays, on as many threads as it is worth.
    ///
    /// # Errors
    ///
    /// Where the arrays are not those that the program was made for, do not broadcast, or what is to have a gradient is
    /// not one number.
    pub fn run(&self, operands: &[AnyView<'_>]) -> Result<Vec<AnyArray>, ProgramError> {
        self.bind(operands).compute()
    }

    /// The program with its operands, to be run under another rule or on fewer threads.
    pub const fn bind<'r>(&'r self, operands: &'r [AnyView<'r>]) -> JointRun<'r> {
        JointRun { program: self, operands, rule: Rule::Numpy, threads: None }
    }

    /// Whether text is among what it computes.
    pub(in crate::by_name::program) const fn has_text(&self) -> bool {
        !self.separate.is_empty()
    }

    /// The passes for arrays of some shapes, which may be there already.
    pub(in crate::by_name::program) fn schedule(
        &self,
        rule: Rule<'_>,
        shapes: &[&[usize]],
    ) -> Result<Arc<Schedule>, ProgramError> {
        let is_it = |key: &Key| key.rule.as_rule() == rule && key.shapes.iter().eq(shapes);
        let mut kept = self.kept.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, known)) = kept.iter().find(|(key, _)| is_it(key)) {
            return Ok(Arc::clone(known));
        }
        drop(kept);
        let (steps, ids) = self.recipe.lower(self, rule, shapes)?;
        let made = Schedule::new(&steps, &ids, self.level);
        let made = Arc::new(made.ok_or_else(|| unsupported("one of the results"))?);
        let shapes = shapes.iter().map(|shape| shape.to_vec()).collect();
        kept = self.kept.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= JOINT_SCHEDULES_KEPT {
            kept.remove(0);
        }
        kept.push((Key { rule: rule.into(), shapes }, Arc::clone(&made)));
        Ok(made)
    }
}

impl Recipe {
    /// The values of the graph that it begins with.
    fn roots(&self) -> &[Node] {
        match self {
            Self::Values(roots) => roots,
            Self::Pulled(pulled) => pulled.of.roots(),
        }
    }

    /// Its steps for arrays of some shapes, and the results among them.
    fn lower(
        &self,
        program: &JointProgram,
        rule: Rule<'_>,
        shapes: &[&[usize]],
    ) -> Result<(Steps, Vec<Id>), ProgramError> {
        let pulled = match self {
            Self::Values(roots) => {
                return lower::lower(&program.graph, &program.operands, roots, rule, shapes);
            }
            Self::Pulled(pulled) => pulled,
        };
        let (mut steps, results) = pulled.of.lower(program, rule, shapes)?;
        let mut seeds = Vec::with_capacity(results.len());
        for (number, &result) in results.iter().enumerate() {
            let (dtype, shape) = (steps.dtype(result), steps.shape(result).to_vec());
            let seed = match pulled.given {
                Some(first) => {
                    let own = shapes.get(first + number).copied().unwrap_or(&[]);
                    resolve(Rule::Exact, &[shape.as_slice(), own]).map_err(
                        |error: BroadcastError| {
                            let error = error.with_names(Names::of(["result", "gradient"]));
                            let error = ProgramErrorKind::Broadcast(error.without_fixes());
                            ProgramError::new(error, 0..0)
                        },
                    )?;
                    let given = steps.operand(first + number, dtype, own);
                    steps.cast(given, widened(dtype))
                }
                None if shape.iter().all(|&size| size == 1) => {
                    steps.number(1.0, widened(dtype), &shape)
                }
                None => {
                    let kind = ProgramErrorKind::NotOneNumber { shape };
                    return Err(ProgramError::new(kind, 0..0));
                }
            };
            seeds.push((result, seed));
        }
        let mut wrt = Vec::with_capacity(pulled.wrt.len());
        for &at in &pulled.wrt {
            let dtype = program.operands.get(at).map_or(DType::F64, |operand| operand.dtype);
            wrt.push(steps.operand(at, dtype, shapes.get(at).copied().unwrap_or(&[])));
        }
        let gradients = reverse::pull(&mut steps, &seeds, &wrt)?;
        let values = if pulled.values { results } else { Vec::new() };
        Ok((steps, values.into_iter().chain(gradients).collect()))
    }
}

fn unsupported(what: &str) -> ProgramError {
    ProgramError::new(ProgramErrorKind::Unsupported(what.into()), 0..0)
}

/// Whether every operation between some operands and the results has a derivative on its types.
fn check_derivatives(graph: &Graph, roots: &[Node], wrt: &[usize]) -> Result<(), ProgramError> {
    let mut wanted = vec![false; graph.steps.len()];
    roots.iter().for_each(|root| wanted[root.index()] = true);
    for at in (0..wanted.len()).rev() {
        if wanted[at] {
            graph.steps[at].kind.args().iter().for_each(|arg| wanted[arg.index()] = true);
        }
    }
    let mut needs = vec![false; graph.steps.len()];
    for at in (0..needs.len()).filter(|&at| wanted[at]) {
        let step = &graph.steps[at];
        let args = step.kind.args();
        let reads = args.iter().any(|arg| needs[arg.index()]);
        needs[at] = match step.kind {
            Kind::Operand(operand) => wrt.contains(&operand),
            _ => reads && step.dtype().is_float(),
        };
        let name = match &step.kind {
            Kind::Apply(op, ..) if reads && step.dtype().is_float() => {
                let dtypes: Vec<DType> = args.iter().map(|&arg| graph.step(arg).dtype()).collect();
                let needed = args.iter().enumerate().filter(|(_, arg)| needs[arg.index()]);
                let mut lacks = needed.map(|(at, _)| reverse::has_slope(*op, &dtypes, at));
                if lacks.all(|has| has) {
                    continue;
                }
                op.name()
            }
            Kind::Apply(op, ..) if reads && step.dtype().is_complex() => op.name(),
            Kind::Cast(_) if reads && step.dtype().is_complex() => {
                "a conversion to complex numbers"
            }
            _ => continue,
        };
        let dtypes = args.iter().map(|&arg| graph.step(arg).dtype()).collect();
        let kind = ProgramErrorKind::NoDerivative { name, dtypes };
        return Err(ProgramError::new(kind, step.span.clone()));
    }
    Ok(())
}

/// A program of several results with its operands; see [`JointProgram::bind`].
///
/// ```
/// use ndarray::array;
/// use simulcast::{AnyView, DType, JointProgram};
///
/// let both = JointProgram::parse("x + 1; sum(x)", &[("x", DType::F64)])?;
/// let x = array![1.0, 2.0];
/// let operands = [AnyView::from(&x)];
/// let run = both.bind(&operands).threads(1);
/// assert_eq!(run.shapes()?, [vec![2], vec![]]);
/// assert_eq!(run.compute()?.len(), 2);
/// # Ok::<(), simulcast::ProgramError>(())
/// ```
#[derive(Clone, Copy, Debug)]
#[must_use = "nothing runs until the results are computed"]
pub struct JointRun<'r> {
    program: &'r JointProgram,
    operands: &'r [AnyView<'r>],
    rule: Rule<'r>,
    threads: Option<usize>,
}

impl<'r> JointRun<'r> {
    /// Under another rule than NumPy's, as [`Run::rule`](crate::program::Run::rule).
    pub const fn rule(mut self, rule: Rule<'r>) -> Self {
        self.rule = rule;
        self
    }

    /// On at most that many threads.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = Some(threads.max(1));
        self
    }

    /// The shapes whose elements each pass visits.
    ///
    /// # Errors
    ///
    /// As [`JointRun::compute`].
    pub fn pass_shapes(&self) -> Result<Vec<Vec<usize>>, ProgramError> {
        self.check()?;
        Ok(self.schedule()?.passes.iter().map(|pass| pass.shape.clone()).collect())
    }

    /// The shapes of the results.
    ///
    /// # Errors
    ///
    /// As [`JointRun::compute`].
    pub fn shapes(&self) -> Result<Vec<Vec<usize>>, ProgramError> {
        self.check()?;
        if !self.program.separate.is_empty() {
            let separate = self.program.separate.iter();
            return separate.map(|one| one.bind(self.operands).rule(self.rule).shape()).collect();
        }
        Ok(self.schedule()?.outcomes.iter().map(|outcome| outcome.shape.clone()).collect())
    }

    /// The most bytes that a run takes beside its operands and its results: those of arrays that its passes make, and that
    /// are no results. The bytes of text are not counted.
    ///
    /// ```
    /// use ndarray::array;
    /// use simulcast::{AnyView, DType, JointProgram};
    ///
    /// let both = JointProgram::parse("x - mean(x); x * 2", &[("x", DType::F64)])?;
    /// let x = array![1.0, 2.0];
    /// assert_eq!(both.bind(&[AnyView::from(&x)]).memory()?, 8); // the mean
    /// # Ok::<(), simulcast::ProgramError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`JointRun::compute`].
    pub fn memory(&self) -> Result<u64, ProgramError> {
        self.check()?;
        if !self.program.separate.is_empty() {
            let separate = self.program.separate.iter();
            let memory =
                |one: &TypedProgram| one.bind(self.operands).rule(self.rule).memory(usize::MAX);
            return separate.map(memory).try_fold(0, |most, own| Ok(own?.max(most)));
        }
        let schedule = self.schedule()?;
        let is_result = |number: usize| schedule.outcomes.iter().any(|own| own.made == number);
        let values = schedule.passes.iter().flat_map(|pass| &pass.values);
        let beside = values.filter(|(number, _)| !is_result(*number)).map(|(_, value)| {
            let size = value.dtype.size() as u64;
            value.shape.iter().fold(size, |bytes, &size| bytes.saturating_mul(size as u64))
        });
        Ok(beside.fold(0, u64::saturating_add))
    }

    /// The results as new arrays.
    ///
    /// # Errors
    ///
    /// Where the arrays are not those that the program was made for, do not broadcast, or what is to have a gradient is
    /// not one number.
    pub fn compute(&self) -> Result<Vec<AnyArray>, ProgramError> {
        let mut made = Vec::new();
        for result in self.results(&mut [])? {
            // Never `None`: no result has a place.
            made.push(result.ok_or_else(|| unsupported("a result without a place"))?);
        }
        Ok(made)
    }

    /// The results into arrays, one for each, to whose shapes they stretch; large ones are computed there if they are
    /// row-major and have the result's shape.
    ///
    /// # Errors
    ///
    /// As [`JointRun::compute`], and where a result does not fit its array.
    pub fn write(&self, out: &mut [AnyViewMut<'_>]) -> Result<(), ProgramError> {
        let dtypes = self.program.dtypes();
        if out.len() != dtypes.len() {
            let kind = ProgramErrorKind::Operands { expected: dtypes.len(), given: out.len() };
            return Err(ProgramError::new(kind, 0..0));
        }
        for (place, &expected) in out.iter().zip(dtypes) {
            if place.dtype() != expected {
                let (name, given) = ("out".to_owned(), place.dtype());
                let kind = ProgramErrorKind::DType { name, expected, given };
                return Err(ProgramError::new(kind, 0..0));
            }
        }
        for (result, place) in self.results(out)?.into_iter().zip(out) {
            let Some(result) = result else { continue };
            copied(&result, place, None)
                .map_err(|error| ProgramError::new(ProgramErrorKind::Broadcast(error), 0..0))?;
        }
        Ok(())
    }

    /// Every result that was not computed in its place.
    fn results(
        &self,
        places: &mut [AnyViewMut<'_>],
    ) -> Result<Vec<Option<AnyArray>>, ProgramError> {
        self.check()?;
        let program = self.program;
        if !program.separate.is_empty() {
            let run = |one: &TypedProgram| {
                let run = one.bind(self.operands).rule(self.rule);
                self.threads.map_or(run, |threads| run.threads(threads)).compute().map(Some)
            };
            return program.separate.iter().map(run).collect();
        }
        let schedule = self.schedule()?;
        let outcomes = &schedule.outcomes;
        let mut direct: Vec<Option<Place<'_>>> = Vec::new();
        direct.resize_with(schedule.arrays, || None);
        for (outcome, place) in outcomes.iter().zip(places) {
            if place.shape() == outcome.shape && !schedule.is_read(outcome) {
                direct[outcome.made] = Place::of(place);
            }
        }
        let has_place: Vec<bool> = direct.iter().map(Option::is_some).collect();
        let mut made: Vec<Option<AnyArray>> = Vec::new();
        made.resize_with(schedule.arrays, || None);
        for pass in &schedule.passes {
            let arrays = pass.run(self.operands, &made, &mut direct, program.level, self.threads);
            let arrays = arrays.map_err(|refusal| {
                let error = BroadcastError::new(Rule::Exact, &[&pass.shape[..]], refusal);
                ProgramError::new(ProgramErrorKind::Broadcast(error), 0..0)
            })?;
            for ((number, _), array) in pass.values.iter().zip(arrays) {
                made[*number] = array;
            }
            pass.spent.iter().for_each(|&spent| made[spent] = None);
        }
        let mut results = Vec::with_capacity(outcomes.len());
        for (at, outcome) in outcomes.iter().enumerate() {
            let later = outcomes[at + 1..].iter().any(|other| other.made == outcome.made);
            let array = match made.get_mut(outcome.made) {
                Some(array) if later => array.clone(),
                Some(array) => array.take(),
                None => None,
            };
            if array.is_none() && has_place[outcome.made] {
                results.push(None);
                continue;
            }
            let array = array.and_then(|array| array.reshaped(&outcome.shape));
            // Never `None`: every result is made, and has as many elements in its shape.
            results.push(Some(array.ok_or_else(|| unsupported("one of the results"))?));
        }
        Ok(results)
    }

    fn check(&self) -> Result<(), ProgramError> {
        let (inputs, given) = (&self.program.operands, self.operands.len());
        if inputs.len() != given {
            let kind = ProgramErrorKind::Operands { expected: inputs.len(), given };
            return Err(ProgramError::new(kind, 0..0));
        }
        for (input, view) in inputs.iter().zip(self.operands) {
            if input.dtype != view.dtype() {
                let (name, expected, given) = (input.name.clone(), input.dtype, view.dtype());
                let kind = ProgramErrorKind::DType { name, expected, given };
                return Err(ProgramError::new(kind, 0..0));
            }
        }
        Ok(())
    }

    fn schedule(&self) -> Result<Arc<Schedule>, ProgramError> {
        let shapes: Vec<&[usize]> = self.operands.iter().map(AnyView::shape).collect();
        self.program.schedule(self.rule, &shapes)
    }
}
