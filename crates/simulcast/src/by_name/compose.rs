//! Functions made of several operations: ONNX's activations, bounds, and operators of any number
//! of operands, as steps of a program.
//!
//! Each adds its steps to a [`Builder`], so that it is fused with what is around it; [`evaluate`]
//! makes a program of nothing else and runs it.
//!
//! ```
//! use ndarray::array;
//! use simulcast::{AnyView, Promotion, compose};
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

use crate::by_name::dyn_array::{AnyArray, AnyView};
use crate::by_name::program::{Builder, Node, ProgramError};
use crate::by_name::types::{Literal, Promotion, TypeError, TypeErrorKind};
use simulcast_kernels::op::Op;

/// What a function gives: a value, or the types that it is not defined on.
type Composed = Result<Node, TypeError>;

// Implements E_BROADCAST_ANY_FUNC_3120.
/// Makes a program of some steps on these arrays, and runs it.
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

/// Short forms of steps.
pub(crate) trait Steps {
    fn number(&mut self, value: f64) -> Node;
    fn one(&mut self, op: Op, a: Node) -> Composed;
    fn two(&mut self, op: Op, a: Node, b: Node) -> Composed;
    /// An operation with a number.
    fn by(&mut self, op: Op, a: Node, number: f64) -> Composed;
    /// An operation on a number.
    fn of(&mut self, op: Op, number: f64, b: Node) -> Composed;
    fn choose(&mut self, which: Node, a: Node, b: Node) -> Composed;
}

impl Steps for Builder {
    fn number(&mut self, value: f64) -> Node {
        // Whole numbers fit integers too.
        #[expect(clippy::cast_possible_truncation, reason = "compared with what it came from")]
        let whole = value as i32;
        self.literal(match f64::from(whole).to_bits() == value.to_bits() {
            true => Literal::Int(whole.into()),
            false => Literal::Float(value),
        })
    }

    fn one(&mut self, op: Op, a: Node) -> Composed {
        self.apply(op, &[a])
    }

    fn two(&mut self, op: Op, a: Node, b: Node) -> Composed {
        self.apply(op, &[a, b])
    }

    fn by(&mut self, op: Op, a: Node, number: f64) -> Composed {
        let number = self.number(number);
        self.apply(op, &[a, number])
    }

    fn of(&mut self, op: Op, number: f64, b: Node) -> Composed {
        let number = self.number(number);
        self.apply(op, &[number, b])
    }

    fn choose(&mut self, which: Node, a: Node, b: Node) -> Composed {
        self.apply(Op::Where, &[which, a, b])
    }
}

macro_rules! functions {
    ($($(#[$doc:meta])* $name:ident($build:ident, $($arg:ident: $type:ty),*) $body:block)*) => { $(
        $(#[$doc])*
        ///
        /// # Errors
        ///
        /// Where a step is not defined on the types.
        pub fn $name($build: &mut Builder, $($arg: $type),*) -> Result<Node, TypeError> $body
    )* };
}

functions! {
    /// `min(max(x, lo), hi)`, with the bounds that there are; where `lo` is above `hi`, `hi`. The
    /// result's type is that of all three together, as in NumPy.
    clip(build, x: Node, lo: Option<Node>, hi: Option<Node>) {
        let (x, lo, hi) = match (lo, hi) {
            (Some(lo), Some(hi)) => {
                let [x, lo, hi] = build.alike([x, lo, hi])?;
                (x, Some(lo), Some(hi))
            }
            one => (x, one.0, one.1),
        };
        let x = match lo {
            Some(lo) => build.two(Op::Maximum, x, lo)?,
            None => x,
        };
        match hi {
            Some(hi) => build.two(Op::Minimum, x, hi),
            None => Ok(x),
        }
    }

    /// `slope * x` where `x` is negative, else `x`.
    prelu(build, x: Node, slope: Node) {
        let negative = build.by(Op::Less, x, 0.0)?;
        let sloped = build.two(Op::Multiply, x, slope)?;
        build.choose(negative, sloped, x)
    }

    /// `alpha * x` where `x` is negative, else `x`.
    leaky_relu(build, x: Node, alpha: f64) {
        let alpha = build.literal(Literal::Float(alpha));
        prelu(build, x, alpha)
    }

    /// `x` where it is above `alpha`, else 0; NaN is not above.
    thresholded_relu(build, x: Node, alpha: f64) {
        let (above, zero) = (build.by(Op::Greater, x, alpha)?, build.number(0.0));
        build.choose(above, x, zero)
    }

    /// `alpha * expm1(x)` where `x` is negative, else `x`.
    elu(build, x: Node, alpha: f64) {
        scaled_elu(build, x, alpha, 1.0)
    }

    /// `gamma * elu(x, alpha)`.
    selu(build, x: Node, alpha: f64, gamma: f64) {
        let elu = elu(build, x, alpha)?;
        build.by(Op::Multiply, elu, gamma)
    }

    /// `alpha * expm1(x / alpha)` where `x` is negative, else `x`.
    celu(build, x: Node, alpha: f64) {
        scaled_elu(build, x, alpha, alpha)
    }

    /// `x / 2 * (1 + erf(x / sqrt(2)))`.
    gelu(build, x: Node) {
        let inner = build.by(Op::Multiply, x, std::f64::consts::FRAC_1_SQRT_2)?;
        let inner = build.one(Op::Erf, inner)?;
        halved(build, x, inner)
    }

    /// `x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x * x * x)))`.
    gelu_tanh(build, x: Node) {
        // sqrt(2 / pi)
        let scale = std::f64::consts::FRAC_2_SQRT_PI * std::f64::consts::FRAC_1_SQRT_2;
        let square = build.one(Op::Square, x)?;
        let inner = build.by(Op::Multiply, square, 0.044_715)?;
        let inner = build.by(Op::Add, inner, 1.0)?;
        let inner = build.two(Op::Multiply, inner, x)?;
        let inner = build.by(Op::Multiply, inner, scale)?;
        let inner = build.one(Op::Tanh, inner)?;
        halved(build, x, inner)
    }

    /// `min(max(alpha * x + beta, 0), 1)`.
    hard_sigmoid(build, x: Node, alpha: f64, beta: f64) {
        let line = build.by(Op::Multiply, x, alpha)?;
        let line = build.by(Op::Add, line, beta)?;
        let (zero, one) = (build.number(0.0), build.number(1.0));
        clip(build, line, Some(zero), Some(one))
    }

    /// `x * hard_sigmoid(x, 1/6, 1/2)`.
    hard_swish(build, x: Node) {
        let gate = hard_sigmoid(build, x, 1.0 / 6.0, 0.5)?;
        build.two(Op::Multiply, x, gate)
    }

    /// `log(1 + exp(x))`, as `max(x, 0) + log1p(exp(-|x|))`.
    softplus(build, x: Node) {
        let size = build.one(Op::Absolute, x)?;
        let size = build.one(Op::Negative, size)?;
        let small = build.one(Op::Exp, size)?;
        let small = build.one(Op::Log1p, small)?;
        let large = build.by(Op::Maximum, x, 0.0)?;
        build.two(Op::Add, large, small)
    }

    /// `x / (1 + |x|)`.
    softsign(build, x: Node) {
        let size = build.one(Op::Absolute, x)?;
        let below = build.by(Op::Add, size, 1.0)?;
        build.two(Op::Divide, x, below)
    }

    /// `x * tanh(softplus(x))`.
    mish(build, x: Node) {
        let inner = softplus(build, x)?;
        let gate = build.one(Op::Tanh, inner)?;
        build.two(Op::Multiply, x, gate)
    }

    /// `x * sigmoid(alpha * x)`.
    swish(build, x: Node, alpha: f64) {
        let inner = build.by(Op::Multiply, x, alpha)?;
        let gate = build.one(Op::Sigmoid, inner)?;
        build.two(Op::Multiply, x, gate)
    }

    /// `x + bias` below `-lambd`, `x - bias` above `lambd`, else 0; NaN is neither.
    shrink(build, x: Node, lambd: f64, bias: f64) {
        let (below, above) = (build.by(Op::Less, x, -lambd)?, build.by(Op::Greater, x, lambd)?);
        let (raised, lowered) = (build.by(Op::Add, x, bias)?, build.by(Op::Subtract, x, bias)?);
        let zero = build.number(0.0);
        let rest = build.choose(above, lowered, zero)?;
        build.choose(below, raised, rest)
    }

    /// The largest of one value or more, element by element; NaN wins.
    max(build, args: &[Node]) {
        in_turn(build, Op::Maximum, args)
    }

    /// The smallest of one value or more, element by element; NaN wins.
    min(build, args: &[Node]) {
        in_turn(build, Op::Minimum, args)
    }

    /// The sum of one value or more, element by element, from the first to the last.
    sum(build, args: &[Node]) {
        in_turn(build, Op::Add, args)
    }

    /// [`sum`] divided by the number of values.
    mean(build, args: &[Node]) {
        let sum = sum(build, args)?;
        build.by(Op::Divide, sum, args.len() as f64)
    }
}

/// `alpha * expm1(x / scale)` where `x` is negative, else `x`.
fn scaled_elu(build: &mut Builder, x: Node, alpha: f64, scale: f64) -> Composed {
    let negative = build.by(Op::Less, x, 0.0)?;
    let inner = if scale == 1.0 { x } else { build.by(Op::Divide, x, scale)? };
    let curved = build.one(Op::Expm1, inner)?;
    let curved = build.by(Op::Multiply, curved, alpha)?;
    build.choose(negative, curved, x)
}

/// `x / 2 * (1 + inner)`.
fn halved(build: &mut Builder, x: Node, inner: Node) -> Composed {
    let inner = build.by(Op::Add, inner, 1.0)?;
    let half = build.by(Op::Multiply, x, 0.5)?;
    build.two(Op::Multiply, half, inner)
}

fn in_turn(build: &mut Builder, op: Op, args: &[Node]) -> Composed {
    let mut args = args.iter();
    let Some(&first) = args.next() else {
        return Err(TypeError::new(Some(op), &[], TypeErrorKind::Arity { expected: 1 }));
    };
    args.try_fold(first, |sum, &next| build.two(op, sum, next))
}
