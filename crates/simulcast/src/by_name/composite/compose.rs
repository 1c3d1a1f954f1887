//! Functions made of several operations: ONNX's activations, bounds, and operators of any number
//! of operands, as steps of a program.
//!
//! Each adds its steps to a [`Builder`], so that it is fused with what is around it; [`evaluate`]
//! makes a program of nothing else and runs it.
//!
//! ```
//! use ndarray::array;
//! use simulcast::{AnyView, compose};
//! use simulcast::types::Promotion;
//!
//! let x = array![-1000_f32, 0.0, 1000.0];
//! let y = compose::evaluate(Promotion::Strict, &[AnyView::from(&x)], |build, args| {
//!     compose::softplus(build, args[0])
//! })?;
//! assert_eq!(y.typed::<f32>(), Some(array![0_f32, 2_f32.ln(), 1000.0].view().into_dyn()));
//! # Ok::<(), simulcast::ProgramError>(())
//! ```
//!
//! NaN goes through, but where a function says otherwise. Values are those of the steps that each
//! names; none overflows where its own value does not.

use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI};

use crate::by_name::dyn_array::{AnyArray, AnyView};
use crate::by_name::formula::{Formula, Term, choose, formula};
use crate::by_name::program::{Builder, Node, ProgramError};
use crate::by_name::types::{Literal, Promotion, TypeError, TypeErrorKind};
use simulcast_kernels::op::Op;

// Implements E_BROADCAST_ANY_FUNC_3120.
/// Makes a program of some steps on these arrays, and runs it.
///
/// ```
/// use ndarray::array;
/// use simulcast::types::Promotion;
/// use simulcast::{AnyArray, AnyView, compose};
///
/// let x = array![-1.0, 2.0];
/// let y = compose::evaluate(Promotion::Numpy, &[AnyView::from(&x)], |build, args| {
///     compose::leaky_relu(build, args[0], 0.5)
/// })?;
/// assert_eq!(y, AnyArray::from(array![-0.5, 2.0]));
/// # Ok::<(), simulcast::ProgramError>(())
/// ```
///
/// # Errors
///
/// Where the steps are not defined on the types, or the arrays do not broadcast.
pub fn evaluate(
    promotion: Promotion,
    operands: &[AnyView<'_>],
    steps: impl FnOnce(&mut Builder, &[Node]) -> Result<Node, TypeError>,
) -> Result<AnyArray, ProgramError> {
    let mut build = Builder::new(promotion);
    let args: Vec<Node> = operands
        .iter()
        .enumerate()
        .map(|(n, view)| build.operand(&simulcast_core::Names::default().operand(n), view.dtype()))
        .collect();
    let root = steps(&mut build, &args)?;
    build.finish(root)?.run(operands)
}

/// What a function takes, as terms of a formula.
trait Lift {
    type Terms<'b>;
    fn lift<'b>(self, formula: &'b Formula<'_>) -> Self::Terms<'b>;
}

impl Lift for Node {
    type Terms<'b> = Term<'b>;
    fn lift<'b>(self, formula: &'b Formula<'_>) -> Term<'b> {
        formula.term(self)
    }
}

impl Lift for f64 {
    type Terms<'b> = Self;
    fn lift(self, _: &Formula<'_>) -> Self {
        self
    }
}

impl<T: Lift> Lift for Option<T> {
    type Terms<'b> = Option<T::Terms<'b>>;
    fn lift<'b>(self, formula: &'b Formula<'_>) -> Self::Terms<'b> {
        self.map(|own| own.lift(formula))
    }
}

impl Lift for &[Node] {
    type Terms<'b> = Vec<Term<'b>>;
    fn lift<'b>(self, formula: &'b Formula<'_>) -> Self::Terms<'b> {
        self.iter().map(|&node| formula.term(node)).collect()
    }
}

/// Writes each function twice: over terms, for other formulas, and over the nodes of a builder.
macro_rules! functions {
    ($($(#[$doc:meta])* $name:ident($formula:ident, $($arg:ident: $type:ty),*) $body:block)*) => {
        mod terms {
            use super::*;

            $(
                pub(super) fn $name<'b>(
                    $formula: &'b Formula<'_>,
                    $($arg: <$type as Lift>::Terms<'b>),*
                ) -> Term<'b> $body
            )*
        }

        $(
            $(#[$doc])*
            ///
            /// # Errors
            ///
            /// Where a step is not defined on the types.
            pub fn $name(build: &mut Builder, $($arg: $type),*) -> Result<Node, TypeError> {
                formula(build, |steps| {
                    $(let $arg = $arg.lift(steps);)*
                    terms::$name(steps, $($arg),*)
                })
            }
        )*
    };
}

functions! {
    /// `min(max(x, lo), hi)`, with the bounds that there are; where `lo` is above `hi`, `hi`. The
    /// result's type is that of all three together, as in NumPy.
    clip(formula, x: Node, lo: Option<Node>, hi: Option<Node>) {
        let (x, lo, hi) = match (lo, hi) {
            (Some(lo), Some(hi)) => {
                let [x, lo, hi] = formula.alike([x, lo, hi]);
                (x, Some(lo), Some(hi))
            }
            one => (x, one.0, one.1),
        };
        let x = lo.map_or(x, |lo| x.maximum(lo));
        hi.map_or(x, |hi| x.minimum(hi))
    }

    /// `slope * x` where `x` is negative, else `x`.
    prelu(_formula, x: Node, slope: Node) {
        choose(x.less(0.0), x * slope, x)
    }

    /// `alpha * x` where `x` is negative, else `x`.
    leaky_relu(formula, x: Node, alpha: f64) {
        prelu(formula, x, formula.literal(Literal::Float(alpha)))
    }

    /// `x` where it is above `alpha`, else 0; NaN is not above.
    thresholded_relu(_formula, x: Node, alpha: f64) {
        choose(x.greater(alpha), x, 0.0)
    }

    /// `alpha * expm1(x)` where `x` is negative, else `x`.
    elu(_formula, x: Node, alpha: f64) {
        choose(x.less(0.0), x.expm1() * alpha, x)
    }

    /// `gamma * elu(x, alpha)`.
    selu(formula, x: Node, alpha: f64, gamma: f64) {
        elu(formula, x, alpha) * gamma
    }

    /// `alpha * expm1(x / alpha)` where `x` is negative, else `x`.
    celu(formula, x: Node, alpha: f64) {
        match alpha == 1.0 {
            true => elu(formula, x, alpha),
            false => choose(x.less(0.0), (x / alpha).expm1() * alpha, x),
        }
    }

    /// `x / 2 * (1 + erf(x / sqrt(2)))`.
    gelu(_formula, x: Node) {
        x * 0.5 * ((x * FRAC_1_SQRT_2).erf() + 1.0)
    }

    /// `x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x * x * x)))`.
    gelu_tanh(_formula, x: Node) {
        // sqrt(2 / pi)
        let scale = FRAC_2_SQRT_PI * FRAC_1_SQRT_2;
        let inner = (x.square() * 0.044_715 + 1.0) * x * scale;
        x * 0.5 * (inner.tanh() + 1.0)
    }

    /// `min(max(alpha * x + beta, 0), 1)`.
    hard_sigmoid(formula, x: Node, alpha: f64, beta: f64) {
        clip(formula, x * alpha + beta, Some(formula.number(0.0)), Some(formula.number(1.0)))
    }

    /// `x * hard_sigmoid(x, 1/6, 1/2)`.
    hard_swish(formula, x: Node) {
        x * hard_sigmoid(formula, x, 1.0 / 6.0, 0.5)
    }

    /// `log(1 + exp(x))`, as `max(x, 0) + log1p(exp(-|x|))`.
    softplus(_formula, x: Node) {
        x.maximum(0.0) + (-x.absolute()).exp().log1p()
    }

    /// `x / (1 + |x|)`.
    softsign(_formula, x: Node) {
        x.softsign()
    }

    /// `x * tanh(softplus(x))`.
    mish(formula, x: Node) {
        x * softplus(formula, x).tanh()
    }

    /// `x * sigmoid(alpha * x)`.
    swish(_formula, x: Node, alpha: f64) {
        x * (x * alpha).sigmoid()
    }

    /// `x + bias` below `-lambd`, `x - bias` above `lambd`, else 0; NaN is neither.
    shrink(_formula, x: Node, lambd: f64, bias: f64) {
        choose(x.less(-lambd), x + bias, choose(x.greater(lambd), x - bias, 0.0))
    }

    /// The largest of one value or more, element by element; NaN wins.
    max(formula, args: &[Node]) {
        in_turn(formula, Op::Maximum, args, Term::maximum)
    }

    /// The smallest of one value or more, element by element; NaN wins.
    min(formula, args: &[Node]) {
        in_turn(formula, Op::Minimum, args, Term::minimum)
    }

    /// The sum of one value or more, element by element, from the first to the last.
    sum(formula, args: &[Node]) {
        in_turn(formula, Op::Add, args, Term::add)
    }

    /// [`sum`] divided by the number of values.
    mean(formula, args: &[Node]) {
        let count = args.len() as f64;
        sum(formula, args) / count
    }
}

/// The first value with the second, the result with the third, and so on.
fn in_turn<'b>(
    formula: &'b Formula<'_>,
    op: Op,
    args: Vec<Term<'b>>,
    join: impl Fn(Term<'b>, Term<'b>) -> Term<'b>,
) -> Term<'b> {
    let one = || formula.fail(TypeError::new(Some(op), &[], TypeErrorKind::Arity { expected: 1 }));
    args.into_iter().reduce(join).unwrap_or_else(one)
}
