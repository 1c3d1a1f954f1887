//! Gradients of operations: what a change of the result says of each operand, in its own shape.
//!
//! ```
//! use ndarray::array;
//! use simulcast::{AnyView, Op, vjp};
//!
//! let (x, w, grad) = (array![[1.0, 2.0], [3.0, 4.0]], array![10.0, 20.0], array![[1.0, 1.0], [1.0, 2.0]]);
//! let both = vjp(Op::Multiply, &[AnyView::from(&x), AnyView::from(&w)], &AnyView::from(&grad))?;
//! let [Some(of_x), Some(of_w)] = &both[..] else { panic!("two gradients") };
//! assert_eq!(of_x.typed::<f64>(), Some(array![[10.0, 20.0], [10.0, 40.0]].view().into_dyn()));
//! assert_eq!(of_w.typed::<f64>(), Some(array![4.0, 10.0].view().into_dyn()));
//! # Ok::<(), simulcast::ProgramError>(())
//! ```
//!
//! The derivative times the gradient is summed, as it is computed, over the axes along which the
//! operand was repeated: nothing of the result's size is written. `float16` and `bfloat16` are
//! computed and summed in `float32`.
//!
//! | where | gradient |
//! |---|---|
//! | `maximum`, `minimum` of equal numbers; `clip` at a bound | half to each |
//! | `absolute` at 0, `relu` at 0 | 0 |
//! | `floor`, `sign` and other steps | 0 |
//! | `power` to 0, `power` of 0 as the exponent changes | 0 |
//! | an operand of integers or booleans beside floats | `None` |
//! | no float at all, complex numbers, comparisons, logic | an error |

use ndarray::{ArrayD, IxDyn};
use simulcast_core::{BroadcastError, Names, Plan, Rule, Source, resolve};

use crate::by_name::apply::{LETTERS, lay};
use crate::by_name::dyn_array::{AnyArray, AnyView};
use crate::by_name::formula::{Formula, Term, choose};
use crate::by_name::program::{Builder, Fold, Node, ProgramError, ProgramErrorKind, TypedProgram};
use crate::by_name::slope::{Slope, slope};
use crate::by_name::types::{Promotion, TypeError};
use simulcast_kernels::dtype::DType;
use simulcast_kernels::op::Op;

/// The gradient of each operand, under NumPy's rule; see [the module's page](self).
///
/// ```
/// use ndarray::array;
/// use simulcast::{AnyArray, AnyView, Op, vjp};
///
/// let (x, w, grad) = (array![[1.0, 2.0], [3.0, 4.0]], array![10.0, 20.0], array![[1.0, 1.0], [1.0, 2.0]]);
/// let both = vjp(Op::Multiply, &[AnyView::from(&x), AnyView::from(&w)], &AnyView::from(&grad))?;
/// assert_eq!(both[1], Some(AnyArray::from(array![4.0, 10.0])));
/// # Ok::<(), simulcast::ProgramError>(())
/// ```
///
/// # Errors
///
/// Where the operation has no derivative on these types, the operands do not broadcast, or the
/// gradient is not one of floats in the result's shape.
pub fn vjp(
    op: Op,
    operands: &[AnyView<'_>],
    grad: &AnyView<'_>,
) -> Result<Vec<Option<AnyArray>>, ProgramError> {
    vjp_by(Rule::Numpy, op, operands, grad)
}

/// How operands come together: by a rule, but for those that are numbers, which fit everywhere.
#[derive(Clone, Copy, Debug)]
#[doc(hidden)]
pub struct Laying<'r> {
    /// The rule of all other operands.
    pub rule: Rule<'r>,
    /// The operands without axes that the rule does not apply to: a bit for each.
    pub numbers: usize,
}

impl<'r> From<Rule<'r>> for Laying<'r> {
    fn from(rule: Rule<'r>) -> Self {
        Self { rule, numbers: 0 }
    }
}

impl Laying<'_> {
    /// The operands that the rule applies to, and it.
    fn arrays(&self, shapes: &[&[usize]]) -> (Vec<usize>, Rule<'_>) {
        let is_array = |n: &usize| self.numbers >> n & 1 == 0 || !shapes[*n].is_empty();
        let arrays: Vec<usize> = (0..shapes.len()).filter(is_array).collect();
        // A rule of two says nothing about an operand alone.
        let alone = arrays.len() < shapes.len()
            && (arrays.is_empty() || arrays.len() == 1 && self.rule.kind().arity() == Some(2));
        let rule = if alone { Rule::Numpy } else { self.rule };
        (arrays, rule)
    }

    /// The plan of the operands that the rule applies to, and which those are.
    ///
    /// # Errors
    ///
    /// Where they do not come together.
    pub fn plan(&self, shapes: &[&[usize]]) -> Result<(Plan, Vec<usize>), ProgramError> {
        let (arrays, rule) = self.arrays(shapes);
        let own: Vec<&[usize]> = arrays.iter().map(|&n| shapes[n]).collect();
        let plan = resolve(rule, &own)
            .map_err(|error| ProgramError::new(ProgramErrorKind::Broadcast(error), 0..0))?;
        Ok((plan, arrays))
    }

    /// The operands in the result's shape, and those of the plan.
    fn lay<'v>(
        self,
        operands: &[AnyView<'v>],
    ) -> Result<(Plan, Vec<usize>, Vec<AnyView<'v>>), ProgramError> {
        let shapes: Vec<&[usize]> = operands.iter().map(AnyView::shape).collect();
        let (arrays, rule) = self.arrays(&shapes);
        let own: Vec<AnyView<'v>> = arrays.iter().map(|&n| operands[n].clone()).collect();
        let (plan, own) = lay(rule, &own)?;
        let mut laid = operands.to_vec();
        for (&n, view) in arrays.iter().zip(own) {
            laid[n] = view;
        }
        Ok((plan, arrays, laid))
    }
}

// Implements E_BROADCAST_ANY_FUNC_3110, E_BROADCAST_ANY_ERR_3110.
/// [`vjp`] under any rule, or beside numbers that fit everywhere.
///
/// ```
/// use ndarray::array;
/// use simulcast::gradient::vjp_by;
/// use simulcast::{AnyArray, AnyView, Op, Rule};
///
/// let (x, by_row, grad) = (array![[1.0, 2.0], [3.0, 4.0]], array![1.0, 1.0], array![[1.0, 1.0], [1.0, 2.0]]);
/// let operands = [AnyView::from(&x), AnyView::from(&by_row)];
/// let both = vjp_by(Rule::Pdpd { axis: Some(0) }, Op::Add, &operands, &AnyView::from(&grad))?;
/// assert_eq!(both[1], Some(AnyArray::from(array![2.0, 3.0])));
/// # Ok::<(), simulcast::ProgramError>(())
/// ```
///
/// # Errors
///
/// As [`vjp`].
pub fn vjp_by<'r>(
    laying: impl Into<Laying<'r>>,
    op: Op,
    operands: &[AnyView<'_>],
    grad: &AnyView<'_>,
) -> Result<Vec<Option<AnyArray>>, ProgramError> {
    // The operation's own check of its operands, and its result's type.
    let mut build = Builder::new(Promotion::Numpy);
    let types: Vec<DType> = operands.iter().map(AnyView::dtype).collect();
    let args = named(&mut build, &types);
    build.apply(op, &args)?;
    pulled(laying.into(), op.name(), operands, grad, |args, grad, at| slope(op, args, grad, at))
}

/// The gradients of `x` and of the slope of [`dynamic::prelu`](crate::by_name::dynamic::prelu).
///
/// ```
/// use ndarray::array;
/// use simulcast::gradient::vjp_prelu;
/// use simulcast::{AnyArray, AnyView};
///
/// let (x, slope, grad) = (array![-2.0, 3.0], array![0.5], array![1.0, 1.0]);
/// let made = vjp_prelu(&AnyView::from(&x), &AnyView::from(&slope), &AnyView::from(&grad))?;
/// assert_eq!(made[0], Some(AnyArray::from(array![0.5, 1.0])));
/// assert_eq!(made[1], Some(AnyArray::from(array![-2.0])));
/// # Ok::<(), simulcast::ProgramError>(())
/// ```
///
/// # Errors
///
/// As [`vjp`].
pub fn vjp_prelu(
    x: &AnyView<'_>,
    slope: &AnyView<'_>,
    grad: &AnyView<'_>,
) -> Result<Vec<Option<AnyArray>>, ProgramError> {
    let operands = [x.clone(), slope.clone()];
    pulled(Rule::Unidirectional.into(), "prelu", &operands, grad, |args, grad, at| {
        let (x, slope) = (args[0], args[1]);
        Slope::Of(match at {
            0 => choose(x.less(0.0), grad * slope, grad),
            _ => choose(x.less(0.0), grad * x, 0.0),
        })
    })
}

/// The gradients of `x` and of the bounds of [`dynamic::clip`](crate::by_name::dynamic::clip), which is
/// `minimum(maximum(x, lo), hi)`: whichever is the result gets it, and equal ones share it. `None` for a bound that is not
/// there.
///
/// ```
/// use ndarray::array;
/// use simulcast::gradient::vjp_clip;
/// use simulcast::{AnyArray, AnyView};
///
/// let (x, lo, grad) = (array![-2.0, 3.0], array![0.0], array![1.0, 1.0]);
/// let made = vjp_clip(&AnyView::from(&x), Some(&AnyView::from(&lo)), None, &AnyView::from(&grad))?;
/// assert_eq!(made[0], Some(AnyArray::from(array![0.0, 1.0])));
/// assert_eq!(made[1], Some(AnyArray::from(array![1.0])));
/// # Ok::<(), simulcast::ProgramError>(())
/// ```
///
/// # Errors
///
/// As [`vjp`].
pub fn vjp_clip(
    x: &AnyView<'_>,
    lo: Option<&AnyView<'_>>,
    hi: Option<&AnyView<'_>>,
    grad: &AnyView<'_>,
) -> Result<Vec<Option<AnyArray>>, ProgramError> {
    vjp_clip_by(Rule::Numpy, x, lo, hi, grad)
}

/// [`vjp_clip`] under any rule; numbers are counted among the operands that are there.
///
/// ```
/// use ndarray::array;
/// use simulcast::gradient::vjp_clip_by;
/// use simulcast::{AnyArray, AnyView, Rule};
///
/// let (x, hi, grad) = (array![1.0, 3.0], array![2.0, 2.0], array![1.0, 1.0]);
/// let made = vjp_clip_by(Rule::Exact, &AnyView::from(&x), None, Some(&AnyView::from(&hi)), &AnyView::from(&grad))?;
/// assert_eq!(made[2], Some(AnyArray::from(array![0.0, 1.0])));
/// # Ok::<(), simulcast::ProgramError>(())
/// ```
///
/// # Errors
///
/// As [`vjp`].
pub fn vjp_clip_by<'r>(
    laying: impl Into<Laying<'r>>,
    x: &AnyView<'_>,
    lo: Option<&AnyView<'_>>,
    hi: Option<&AnyView<'_>>,
    grad: &AnyView<'_>,
) -> Result<Vec<Option<AnyArray>>, ProgramError> {
    let operands: Vec<AnyView<'_>> = [Some(x), lo, hi].into_iter().flatten().cloned().collect();
    let bounds = [lo.is_some(), hi.is_some()];
    let mut made = pulled(laying.into(), "clip", &operands, grad, |args, grad, at| {
        clip_slope(bounds, args, grad, at)
    })?;
    if lo.is_none() {
        made.insert(1, None);
    }
    if hi.is_none() {
        made.push(None);
    }
    Ok(made)
}

/// The slope of `clip`, which is `minimum(maximum(x, low), high)`, by one of the operands that are there.
fn clip_slope<'b>([lo, hi]: [bool; 2], args: &[Term<'b>], grad: Term<'b>, at: usize) -> Slope<'b> {
    let x = args[0];
    let low = args.get(1).copied().filter(|_| lo);
    let high = args.last().copied().filter(|_| hi);
    let raised = low.map_or(x, |low| x.maximum(low));
    let of_raised = match high {
        Some(high) if low.is_none() || at == 2 => {
            let place = usize::from(at > 0);
            return slope(Op::Minimum, &[raised, high], grad, place);
        }
        Some(high) => slope(Op::Minimum, &[raised, high], grad, 0),
        None => grad.into(),
    };
    match (low, of_raised) {
        (Some(low), Slope::Of(grad)) => slope(Op::Maximum, &[x, low], grad, at),
        (_, of_raised) => of_raised,
    }
}

/// The operands as values of a program.
fn named(build: &mut Builder, operands: &[DType]) -> Vec<Node> {
    let named = LETTERS.iter().zip(operands);
    named.map(|(name, &dtype)| build.operand(name, dtype)).collect()
}

/// Halves in single precision, others as they are.
fn widened(build: &mut Builder, node: Node, dtype: DType) -> Result<Node, TypeError> {
    if matches!(dtype, DType::F16 | DType::Bf16) { build.cast(node, DType::F32) } else { Ok(node) }
}

/// How the gradient of an operand is computed: what [`vjp_programs`] gives.
///
/// ```
/// use simulcast::gradient::{OperandGradient, vjp_programs};
/// use simulcast::{DType, Op, Rule};
///
/// let choice: Op = "where".parse().unwrap();
/// let operands: [(DType, &[usize]); 3] = [(DType::Bool, &[3]), (DType::F64, &[3]), (DType::F64, &[3])];
/// let by = vjp_programs(Rule::Numpy, choice, &operands, (DType::F64, &[3]))?;
/// assert!(matches!(by[0], OperandGradient::Nothing)); // it only decides between the others
/// assert!(matches!(by[1], OperandGradient::Program(_)));
/// # Ok::<(), simulcast::ProgramError>(())
/// ```
#[derive(Clone, Debug)]
pub enum OperandGradient {
    /// There is none: the operand holds no floats, or only decides between others.
    Nothing,
    /// Zeros in the operand's shape.
    Zeros,
    /// A program of all operands, each repeated to the result's shape, and of the gradient, which comes last. It has
    /// the operand's elements in their order, without the axes that were summed.
    Program(TypedProgram),
}

/// The programs of [`vjp_by`] for operands and a gradient of these types and shapes: for back ends that run them
/// elsewhere.
///
/// ```
/// use ndarray::array;
/// use simulcast::gradient::{OperandGradient, vjp_programs};
/// use simulcast::{AnyView, DType, Rule};
///
/// let own: (DType, &[usize]) = (DType::F64, &[2]);
/// let by = vjp_programs(Rule::Numpy, "multiply".parse().unwrap(), &[own, own], own)?;
/// let (a, b, grad) = (array![2.0, 3.0], array![10.0, 20.0], array![1.0, 0.5]);
/// if let OperandGradient::Program(by_a) = &by[0] {
///     let made = by_a.run(&[AnyView::from(&a), AnyView::from(&b), AnyView::from(&grad)])?;
///     assert_eq!(made.typed::<f64>(), Some(array![10.0, 10.0].view().into_dyn()));
/// }
/// # Ok::<(), simulcast::ProgramError>(())
/// ```
///
/// # Errors
///
/// As [`vjp_by`].
pub fn vjp_programs<'r>(
    laying: impl Into<Laying<'r>>,
    op: Op,
    operands: &[(DType, &[usize])],
    grad: (DType, &[usize]),
) -> Result<Vec<OperandGradient>, ProgramError> {
    let mut build = Builder::new(Promotion::Numpy);
    let types: Vec<DType> = operands.iter().map(|own| own.0).collect();
    let args = named(&mut build, &types);
    build.apply(op, &args)?;
    laid_programs(laying.into(), op.name(), operands, grad, &|args, grad, at| {
        slope(op, args, grad, at)
    })
}

/// The same of `clip`: of [`vjp_clip_by`], whose bounds are there or not. There is a program for each operand.
///
/// ```
/// use simulcast::gradient::{OperandGradient, vjp_clip_programs};
/// use simulcast::{DType, Rule};
///
/// let own: (DType, &[usize]) = (DType::F64, &[2]);
/// let by = vjp_clip_programs(Rule::Numpy, [false, true], &[own, (DType::F64, &[])], own)?;
/// assert!(matches!(by[..], [OperandGradient::Program(_), OperandGradient::Program(_)]));
/// # Ok::<(), simulcast::ProgramError>(())
/// ```
///
/// # Errors
///
/// As [`vjp_by`].
pub fn vjp_clip_programs<'r>(
    laying: impl Into<Laying<'r>>,
    bounds: [bool; 2],
    operands: &[(DType, &[usize])],
    grad: (DType, &[usize]),
) -> Result<Vec<OperandGradient>, ProgramError> {
    laid_programs(laying.into(), "clip", operands, grad, &|args, grad, at| {
        clip_slope(bounds, args, grad, at)
    })
}

/// The programs of gradients of operands that are laid.
fn laid_programs(
    laying: Laying<'_>,
    name: &'static str,
    operands: &[(DType, &[usize])],
    grad: (DType, &[usize]),
    slope: &SlopeOf<'_>,
) -> Result<Vec<OperandGradient>, ProgramError> {
    let types: Vec<DType> = operands.iter().map(|own| own.0).collect();
    check(name, &types, grad.0)?;
    let shapes: Vec<&[usize]> = operands.iter().map(|own| own.1).collect();
    let (plan, arrays) = laying.plan(&shapes)?;
    programs((&plan, &arrays), name, &types, grad, slope)
}

fn no_derivative(name: &'static str, operands: &[DType]) -> ProgramError {
    let dtypes = operands.to_vec();
    ProgramError::new(ProgramErrorKind::NoDerivative { name, dtypes }, 0..0)
}

/// Refuses operands none of which has a gradient, and gradients that are no floats.
fn check(name: &'static str, operands: &[DType], grad: DType) -> Result<(), ProgramError> {
    let floats = operands.iter().any(|dtype| dtype.is_float());
    let complex = operands.iter().any(|dtype| dtype.is_complex());
    if !floats || complex {
        return Err(no_derivative(name, operands));
    }
    if !grad.is_float() {
        let kind = ProgramErrorKind::Gradient { given: grad };
        return Err(ProgramError::new(kind, 0..0));
    }
    Ok(())
}

/// The slope by an operand, of terms for all operands and for the gradient.
type SlopeOf<'f> = dyn for<'b> Fn(&[Term<'b>], Term<'b>, usize) -> Slope<'b> + 'f;

/// The program of each operand's gradient: the slope by it, summed over the axes along which it was repeated. The plan
/// is of the operands whose places are listed; others are numbers.
fn programs(
    (plan, arrays): (&Plan, &[usize]),
    name: &'static str,
    operands: &[DType],
    (grad, grad_shape): (DType, &[usize]),
    slope: &SlopeOf<'_>,
) -> Result<Vec<OperandGradient>, ProgramError> {
    let none = || no_derivative(name, operands);
    resolve(Rule::Exact, &[plan.shape(), grad_shape]).map_err(|error: BroadcastError| {
        let error = error.with_names(Names::of(["result", "gradient"])).without_fixes();
        ProgramError::new(ProgramErrorKind::Broadcast(error), 0..0)
    })?;
    let mut gradients = Vec::with_capacity(operands.len());
    for (at, &dtype) in operands.iter().enumerate() {
        if !dtype.is_float() {
            gradients.push(OperandGradient::Nothing);
            continue;
        }
        let mut build = Builder::new(Promotion::Numpy);
        let mut args = named(&mut build, operands);
        for (arg, &dtype) in args.iter_mut().zip(operands) {
            *arg = widened(&mut build, *arg, dtype)?;
        }
        let gradient = build.operand("gradient", grad);
        let gradient = widened(&mut build, gradient, grad)?;
        let formula = Formula::new(&mut build);
        let terms: Vec<Term<'_>> = args.iter().map(|&arg| formula.term(arg)).collect();
        let node = match slope(&terms, formula.term(gradient), at) {
            Slope::Of(term) => term.node,
            Slope::Zero => {
                gradients.push(OperandGradient::Zeros);
                continue;
            }
            Slope::Decides => {
                gradients.push(OperandGradient::Nothing);
                continue;
            }
            Slope::Nothing => return Err(none()),
        };
        let own = formula.finish(node)?;
        let axes = match arrays.iter().position(|&n| n == at) {
            Some(place) => plan.sum_axes(place).unwrap_or_default(),
            None => (0..plan.shape().len()).collect(),
        };
        let axes: Vec<isize> = axes.into_iter().map(usize::cast_signed).collect();
        let summed = match axes.is_empty() {
            true => own,
            false => build.reduce(Fold::Sum, own, Some(&axes), false)?,
        };
        let root = build.cast(summed, dtype)?;
        gradients.push(OperandGradient::Program(build.finish(root)?));
    }
    Ok(gradients)
}

/// The gradient of each operand, computed.
fn pulled(
    laying: Laying<'_>,
    name: &'static str,
    operands: &[AnyView<'_>],
    grad: &AnyView<'_>,
    slope: impl for<'b> Fn(&[Term<'b>], Term<'b>, usize) -> Slope<'b>,
) -> Result<Vec<Option<AnyArray>>, ProgramError> {
    let types: Vec<DType> = operands.iter().map(AnyView::dtype).collect();
    let lost = || no_derivative(name, &types);
    check(name, &types, grad.dtype())?;
    let (plan, arrays, mut laid) = laying.lay(operands)?;
    let own = programs((&plan, &arrays), name, &types, (grad.dtype(), grad.shape()), &slope)?;
    laid.push(grad.clone());
    let mut gradients = Vec::with_capacity(operands.len());
    for (at, (operand, gradient)) in operands.iter().zip(own).enumerate() {
        gradients.push(match gradient {
            OperandGradient::Nothing => None,
            OperandGradient::Zeros => {
                Some(zeros(operand.dtype(), operand.shape()).ok_or_else(lost)?)
            }
            OperandGradient::Program(program) => {
                let sums = program.run(&laid)?;
                Some(match arrays.iter().position(|&n| n == at) {
                    Some(place) => {
                        reshaped(sums, &plan, place, operand.shape()).ok_or_else(lost)?
                    }
                    None => sums,
                })
            }
        });
    }
    Ok(gradients)
}

macro_rules! floats {
    ($($variant:ident)*) => {
        fn zeros(dtype: DType, shape: &[usize]) -> Option<AnyArray> {
            match dtype {
                $(DType::$variant => {
                    let (mut zeros, count) = (Vec::new(), shape.iter().product());
                    zeros.try_reserve_exact(count).ok()?;
                    zeros.resize(count, Default::default());
                    ArrayD::from_shape_vec(IxDyn(shape), zeros).ok().map(AnyArray::$variant)
                })*
                _ => None,
            }
        }

        /// Sums with the axes that an operand keeps, in the result's order, as an array of its shape.
        fn reshaped(sums: AnyArray, plan: &Plan, operand: usize, shape: &[usize]) -> Option<AnyArray> {
            let sources = plan.sources(operand).ok()?;
            let kept = sources.iter().filter_map(|source| match source {
                Source::Kept(own) => Some(*own),
                _ => None,
            });
            let kept: Vec<usize> = kept.collect();
            let mut order: Vec<usize> = (0..kept.len()).collect();
            order.sort_by_key(|&axis| kept[axis]);
            match sums {
                $(AnyArray::$variant(sums) => {
                    let sums = sums.permuted_axes(IxDyn(&order));
                    let sums = if sums.is_standard_layout() {
                        sums
                    } else {
                        sums.as_standard_layout().into_owned()
                    };
                    sums.into_shape_with_order(IxDyn(shape)).ok().map(AnyArray::$variant)
                })*
                _ => None,
            }
        }
    };
}

floats!(F16 Bf16 F32 F64);
