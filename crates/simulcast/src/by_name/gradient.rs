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
//! | `maximum`, `minimum` of equal numbers | half to each |
//! | `absolute` at 0, `relu` at 0 | 0 |
//! | `floor`, `sign` and other steps | 0 |
//! | `power` to 0, `power` of 0 as the exponent changes | 0 |
//! | an operand of integers or booleans beside floats | `None` |
//! | no float at all, complex numbers, comparisons, logic | an error |

use std::f64::consts::{FRAC_2_SQRT_PI, LN_2, LN_10};

use ndarray::{ArrayD, IxDyn};
use simulcast_core::{BroadcastError, Names, Plan, Rule, Source, resolve};

use crate::by_name::apply::{LETTERS, lay};
use crate::by_name::compose::Steps;
use crate::by_name::dyn_array::{AnyArray, AnyView};
use crate::by_name::program::{Builder, Fold, Node, ProgramError, ProgramErrorKind};
use crate::by_name::types::{Promotion, TypeError};
use simulcast_kernels::dtype::DType;
use simulcast_kernels::op::Op;

/// The gradient of each operand, under NumPy's rule; see [the module's page](self).
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
pub struct Laying<'r> {
    /// The rule of all other operands.
    pub rule: Rule<'r>,
    /// The bits of the operands, without axes, that the rule is not asked about.
    pub numbers: usize,
}

impl<'r> From<Rule<'r>> for Laying<'r> {
    fn from(rule: Rule<'r>) -> Self {
        Self { rule, numbers: 0 }
    }
}

impl Laying<'_> {
    /// The operands in the result's shape, and those of the plan.
    fn lay<'v>(
        self,
        operands: &[AnyView<'v>],
    ) -> Result<(Plan, Vec<usize>, Vec<AnyView<'v>>), ProgramError> {
        let is_array = |n: &usize| self.numbers >> n & 1 == 0 || !operands[*n].shape().is_empty();
        let arrays: Vec<usize> = (0..operands.len()).filter(is_array).collect();
        // A rule of two says nothing about an operand alone.
        let alone = arrays.len() < operands.len()
            && (arrays.is_empty() || arrays.len() == 1 && self.rule.kind().arity() == Some(2));
        let rule = if alone { Rule::Numpy } else { self.rule };
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
    let args = named(&mut build, operands);
    build.apply(op, &args)?;
    pulled(laying.into(), op.name(), operands, grad, |build, args, grad, at| {
        derivative(build, op, args, grad, at)
    })
}

/// The gradients of `x` and of the slope of [`dynamic::prelu`](crate::by_name::dynamic::prelu).
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
    pulled(Rule::Unidirectional.into(), "prelu", &operands, grad, |build, args, grad, at| {
        let (x, slope) = (args[0], args[1]);
        let (negative, zero) = (build.by(Op::Less, x, 0.0)?, build.number(0.0));
        let sloped = build.two(Op::Multiply, grad, if at == 0 { slope } else { x })?;
        build.choose(negative, sloped, if at == 0 { grad } else { zero }).map(Local::Of)
    })
}

/// The gradients of `x` and of the bounds of [`dynamic::clip`](crate::by_name::dynamic::clip): whichever
/// is the result gets it, `x` where it is equal to a bound. `None` for a bound that is not there.
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
    let mut made = pulled(laying.into(), "clip", &operands, grad, |build, args, grad, at| {
        let x = args[0];
        let low = lo.and(args.get(1).copied());
        let high = hi.and(args.last().copied());
        let zero = build.number(0.0);
        // Each comparison is the other way round, so that NaN passes the gradient to x.
        let under = low.map(|low| build.two(Op::Less, x, low)).transpose()?;
        let over = high.map(|high| build.two(Op::Greater, x, high)).transpose()?;
        let crossed = match (low, high) {
            (Some(low), Some(high)) => Some(build.two(Op::Greater, low, high)?),
            _ => None,
        };
        let is_low = lo.is_some() && at == 1;
        let mut of = if at == 0 || is_low { grad } else { zero };
        if is_low {
            of = under.map_or(Ok(zero), |under| build.choose(under, of, zero))?;
        } else if at == 0 {
            for outside in [under, over].into_iter().flatten() {
                of = build.choose(outside, zero, of)?;
            }
        } else if let Some(over) = over {
            of = build.choose(over, grad, of)?;
        }
        if let Some(crossed) = crossed {
            let rest = if at == 0 || is_low { zero } else { grad };
            of = build.choose(crossed, rest, of)?;
        }
        Ok(Local::Of(of))
    })?;
    if lo.is_none() {
        made.insert(1, None);
    }
    if hi.is_none() {
        made.push(None);
    }
    Ok(made)
}

/// A derivative times the gradient.
enum Local {
    Of(Node),
    /// 0, whatever the gradient is.
    Zero,
    /// The operand decides and is not computed with: it has no gradient.
    Decides,
    /// There is no derivative.
    Nothing,
}

/// The operands as values of a program.
fn named(build: &mut Builder, operands: &[AnyView<'_>]) -> Vec<Node> {
    let named = LETTERS.iter().zip(operands);
    named.map(|(name, view)| build.operand(name, view.dtype())).collect()
}

/// Halves in single precision, others as they are.
fn widened(build: &mut Builder, node: Node, dtype: DType) -> Result<Node, TypeError> {
    if matches!(dtype, DType::F16 | DType::Bf16) { build.cast(node, DType::F32) } else { Ok(node) }
}

/// The gradient of each operand: what `local` makes of operands and gradient, summed back.
fn pulled(
    laying: Laying<'_>,
    name: &'static str,
    operands: &[AnyView<'_>],
    grad: &AnyView<'_>,
    mut local: impl FnMut(&mut Builder, &[Node], Node, usize) -> Result<Local, TypeError>,
) -> Result<Vec<Option<AnyArray>>, ProgramError> {
    let none = || {
        let dtypes = operands.iter().map(AnyView::dtype).collect();
        ProgramError::new(ProgramErrorKind::NoDerivative { name, dtypes }, 0..0)
    };
    let floats = operands.iter().any(|view| view.dtype().is_float());
    let complex = operands.iter().any(|view| view.dtype().is_complex());
    if !floats || complex {
        return Err(none());
    }
    if !grad.dtype().is_float() {
        let kind = ProgramErrorKind::Gradient { given: grad.dtype() };
        return Err(ProgramError::new(kind, 0..0));
    }
    let (plan, arrays, mut laid) = laying.lay(operands)?;
    resolve(Rule::Exact, &[plan.shape(), grad.shape()]).map_err(|error: BroadcastError| {
        let error = error.with_names(Names::of(["result", "gradient"])).without_fixes();
        ProgramError::new(ProgramErrorKind::Broadcast(error), 0..0)
    })?;
    laid.push(grad.clone());
    let mut gradients = Vec::with_capacity(operands.len());
    for (at, operand) in operands.iter().enumerate() {
        if !operand.dtype().is_float() {
            gradients.push(None);
            continue;
        }
        let mut build = Builder::new(Promotion::Numpy);
        let mut args = named(&mut build, operands);
        for (arg, view) in args.iter_mut().zip(operands) {
            *arg = widened(&mut build, *arg, view.dtype())?;
        }
        let gradient = build.operand("gradient", grad.dtype());
        let gradient = widened(&mut build, gradient, grad.dtype())?;
        let own = match local(&mut build, &args, gradient, at)? {
            Local::Of(node) => node,
            Local::Zero => {
                gradients.push(Some(zeros(operand.dtype(), operand.shape()).ok_or_else(none)?));
                continue;
            }
            Local::Decides => {
                gradients.push(None);
                continue;
            }
            Local::Nothing => return Err(none()),
        };
        let place = arrays.iter().position(|&n| n == at);
        let axes = match place {
            Some(place) => plan.sum_axes(place).unwrap_or_default(),
            None => (0..plan.shape().len()).collect(),
        };
        let axes: Vec<isize> = axes.into_iter().map(usize::cast_signed).collect();
        let summed = match axes.is_empty() {
            true => own,
            false => build.reduce(Fold::Sum, own, Some(&axes), false)?,
        };
        let root = build.cast(summed, operand.dtype())?;
        let sums = build.finish(root)?.run(&laid)?;
        gradients.push(Some(match place {
            Some(place) => reshaped(sums, &plan, place, operand.shape()).ok_or_else(none)?,
            None => sums,
        }));
    }
    Ok(gradients)
}

/// The derivative of an operation by its operand `at`, times `grad`.
fn derivative(
    build: &mut Builder,
    op: Op,
    args: &[Node],
    grad: Node,
    at: usize,
) -> Result<Local, TypeError> {
    match *args {
        [a] => of_one(build, op, a, grad),
        [a, b] => of_two(build, op, [a, b], grad, at),
        [a, b, c] => of_three(build, op, [a, b, c], grad, at),
        _ => Ok(Local::Nothing),
    }
}

fn of_one(build: &mut Builder, op: Op, a: Node, grad: Node) -> Result<Local, TypeError> {
    use Op::{Add, Divide, Multiply, Negative, Subtract};
    // What the gradient is divided by, or else multiplied by.
    let below = match op {
        Op::Sqrt => {
            let root = build.one(Op::Sqrt, a)?;
            Some(build.by(Multiply, root, 2.0)?)
        }
        Op::Cbrt => {
            let root = build.one(Op::Cbrt, a)?;
            let square = build.one(Op::Square, root)?;
            Some(build.by(Multiply, square, 3.0)?)
        }
        Op::Reciprocal => {
            let square = build.one(Op::Square, a)?;
            Some(build.one(Negative, square)?)
        }
        Op::Log => Some(a),
        Op::Log2 => Some(build.by(Multiply, a, LN_2)?),
        Op::Log10 => Some(build.by(Multiply, a, LN_10)?),
        Op::Log1p => Some(build.by(Add, a, 1.0)?),
        // (1 - a) (1 + a) has no cancellation near 1.
        Op::Arcsin | Op::Arccos | Op::Arctanh => {
            let (less, more) = (build.of(Subtract, 1.0, a)?, build.by(Add, a, 1.0)?);
            let product = build.two(Multiply, less, more)?;
            Some(match op {
                Op::Arctanh => product,
                Op::Arcsin => build.one(Op::Sqrt, product)?,
                _ => {
                    let root = build.one(Op::Sqrt, product)?;
                    build.one(Negative, root)?
                }
            })
        }
        Op::Arctan => {
            let square = build.one(Op::Square, a)?;
            Some(build.by(Add, square, 1.0)?)
        }
        // 1 - tanh^2 would cancel where the result is near 1.
        Op::Tanh => {
            let cosh = build.one(Op::Cosh, a)?;
            Some(build.one(Op::Square, cosh)?)
        }
        Op::Arcsinh => Some(build.by(Op::Hypot, a, 1.0)?),
        Op::Arccosh => {
            let (less, more) = (build.by(Subtract, a, 1.0)?, build.by(Add, a, 1.0)?);
            let (less, more) = (build.one(Op::Sqrt, less)?, build.one(Op::Sqrt, more)?);
            Some(build.two(Multiply, less, more)?)
        }
        _ => None,
    };
    if let Some(below) = below {
        return build.two(Divide, grad, below).map(Local::Of);
    }
    let by = match op {
        Negative => return build.one(Negative, grad).map(Local::Of),
        Op::Conjugate | Op::Real => return Ok(Local::Of(grad)),
        Op::Sign | Op::Floor | Op::Ceil | Op::Round | Op::Trunc | Op::Imag => {
            return Ok(Local::Zero);
        }
        Op::Relu => {
            let (off, zero) = (build.by(Op::LessEqual, a, 0.0)?, build.number(0.0));
            return build.choose(off, zero, grad).map(Local::Of);
        }
        Op::Absolute => build.one(Op::Sign, a)?,
        Op::Square => build.by(Multiply, a, 2.0)?,
        Op::Exp | Op::Expm1 => build.one(Op::Exp, a)?,
        Op::Exp2 => {
            let power = build.one(Op::Exp2, a)?;
            build.by(Multiply, power, LN_2)?
        }
        Op::Sin => build.one(Op::Cos, a)?,
        Op::Cos => {
            let sin = build.one(Op::Sin, a)?;
            build.one(Negative, sin)?
        }
        Op::Tan => {
            let tan = build.one(Op::Tan, a)?;
            let square = build.one(Op::Square, tan)?;
            build.by(Add, square, 1.0)?
        }
        Op::Sinh => build.one(Op::Cosh, a)?,
        Op::Cosh => build.one(Op::Sinh, a)?,
        Op::Erf => {
            let square = build.one(Op::Square, a)?;
            let square = build.one(Negative, square)?;
            let bell = build.one(Op::Exp, square)?;
            build.by(Multiply, bell, FRAC_2_SQRT_PI)?
        }
        // s(a) s(-a), where 1 - s(a) would cancel.
        Op::Sigmoid => {
            let other = build.one(Negative, a)?;
            let (up, down) = (build.one(Op::Sigmoid, a)?, build.one(Op::Sigmoid, other)?);
            build.two(Multiply, up, down)?
        }
        _ => return Ok(Local::Nothing),
    };
    build.two(Multiply, grad, by).map(Local::Of)
}

fn of_two(
    build: &mut Builder,
    op: Op,
    [a, b]: [Node; 2],
    grad: Node,
    at: usize,
) -> Result<Local, TypeError> {
    use Op::{Divide, Multiply, Negative, Subtract};
    let (own, other) = if at == 0 { (a, b) } else { (b, a) };
    let node = match (op, at) {
        (Op::Add, _) | (Subtract | Op::Remainder | Op::Fmod, 0) => grad,
        (Subtract, _) => build.one(Negative, grad)?,
        (Multiply, _) => build.two(Multiply, grad, other)?,
        (Divide, 0) => build.two(Divide, grad, b)?,
        (Divide, _) => {
            let quotient = build.two(Divide, a, b)?;
            let by = build.two(Divide, quotient, b)?;
            let by = build.one(Negative, by)?;
            build.two(Multiply, grad, by)?
        }
        // b a^(b - 1), and 0 for b = 0, where a may be 0 too.
        (Op::Power, 0) => {
            let less = build.by(Subtract, b, 1.0)?;
            let power = build.two(Op::Power, a, less)?;
            let slope = build.two(Multiply, b, power)?;
            let (constant, zero) = (build.by(Op::Equal, b, 0.0)?, build.number(0.0));
            let slope = build.choose(constant, zero, slope)?;
            build.two(Multiply, grad, slope)?
        }
        // a^b log(a), and 0 for a = 0, unless the power is infinite.
        (Op::Power, _) => {
            let power = build.two(Op::Power, a, b)?;
            let log = build.one(Op::Log, a)?;
            let slope = build.two(Multiply, power, log)?;
            let (none, up) = (build.by(Op::Equal, a, 0.0)?, build.by(Op::GreaterEqual, b, 0.0)?);
            let (flat, zero) = (build.two(Op::LogicalAnd, none, up)?, build.number(0.0));
            let slope = build.choose(flat, zero, slope)?;
            build.two(Multiply, grad, slope)?
        }
        // NaN is neither beaten nor equal: both get the gradient.
        (Op::Maximum | Op::Minimum, _) => {
            let beaten = if op == Op::Maximum { Op::Less } else { Op::Greater };
            let (beaten, even) = (build.two(beaten, own, other)?, build.two(Op::Equal, a, b)?);
            let (half, zero) = (build.by(Multiply, grad, 0.5)?, build.number(0.0));
            let rest = build.choose(even, half, grad)?;
            build.choose(beaten, zero, rest)?
        }
        (Op::Remainder, _) => {
            let times = build.two(Op::FloorDivide, a, b)?;
            let times = build.one(Negative, times)?;
            build.two(Multiply, grad, times)?
        }
        // The whole number of times, rather than a quotient that was rounded up to one.
        (Op::Fmod, _) => {
            let left = build.two(Op::Fmod, a, b)?;
            let whole = build.two(Subtract, left, a)?;
            let times = build.two(Divide, whole, b)?;
            let times = build.one(Op::Round, times)?;
            build.two(Multiply, grad, times)?
        }
        (Op::FloorDivide, _) => return Ok(Local::Zero),
        (Op::Hypot, _) => {
            let length = build.two(Op::Hypot, a, b)?;
            let slope = build.two(Divide, own, length)?;
            build.two(Multiply, grad, slope)?
        }
        // Divided twice by the length, whose square may overflow.
        (Op::Arctan2, _) => {
            let length = build.two(Op::Hypot, a, b)?;
            let slope = build.two(Divide, other, length)?;
            let slope = build.two(Divide, slope, length)?;
            let slope = if at == 0 { slope } else { build.one(Negative, slope)? };
            build.two(Multiply, grad, slope)?
        }
        _ => return Ok(Local::Nothing),
    };
    Ok(Local::Of(node))
}

fn of_three(
    build: &mut Builder,
    op: Op,
    [a, b, _]: [Node; 3],
    grad: Node,
    at: usize,
) -> Result<Local, TypeError> {
    let node = match (op, at) {
        (Op::Where, 0) => return Ok(Local::Decides),
        (Op::Where, _) => {
            let zero = build.number(0.0);
            let (taken, left) = if at == 1 { (grad, zero) } else { (zero, grad) };
            build.choose(a, taken, left)?
        }
        (Op::MultiplyAdd, 0) => build.two(Op::Multiply, grad, b)?,
        (Op::MultiplyAdd, 1) => build.two(Op::Multiply, grad, a)?,
        (Op::MultiplyAdd, _) => grad,
        _ => return Ok(Local::Nothing),
    };
    Ok(Local::Of(node))
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
