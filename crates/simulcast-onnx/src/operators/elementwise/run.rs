//! Operators that work element by element, as steps of a program: chains of them become one.
//!
//! What a node adds is decided by its operator, its attributes and the types of what it meets; how
//! shapes meet is the program's business (and, before opset 7, that of [`crate::run::lay`]).

use simulcast::program::{Builder, Node};
use simulcast::types::{Literal, OperandType, promote_types};
use simulcast::{DType, Op, compose};

use crate::run::error::NodeError;
use crate::run::node::RunNode;

type Made = Result<Node, NodeError>;

/// The input of that number.
fn at(args: &[Option<Node>], input: usize) -> Result<Node, NodeError> {
    let arg = args.get(input).copied().flatten();
    arg.ok_or_else(|| format!("input {input} is missing").into())
}

fn all(args: &[Option<Node>]) -> Result<Vec<Node>, NodeError> {
    (0..args.len()).map(|input| at(args, input)).collect()
}

fn dtype_of(build: &Builder, node: Node) -> Result<DType, NodeError> {
    match build.type_of(node) {
        OperandType::Array(dtype) => Ok(dtype),
        OperandType::Literal(_) => Err("a number without a type".into()),
    }
}

pub(crate) fn apply(call: &RunNode, build: &mut Builder, args: &[Option<Node>]) -> Made {
    let op =
        Op::from_onnx(&call.op).ok_or_else(|| format!("`{}` is not one operation", call.op))?;
    Ok(build.apply(op, &all(args)?)?)
}

/// Integers are divided towards 0.
pub(crate) fn divide(_: &RunNode, build: &mut Builder, args: &[Option<Node>]) -> Made {
    let whole = dtype_of(build, at(args, 0)?)?.is_integer();
    Ok(build.apply(if whole { Op::TruncDivide } else { Op::Divide }, &all(args)?)?)
}

pub(crate) fn modulo(call: &RunNode, build: &mut Builder, args: &[Option<Node>]) -> Made {
    let like_c = call.flag("fmod", false);
    Ok(build.apply(if like_c { Op::Fmod } else { Op::Remainder }, &all(args)?)?)
}

/// The exponent may have another type: both are cast to one that holds them, as in NumPy, and the
/// result to the base's.
pub(crate) fn power(_: &RunNode, build: &mut Builder, args: &[Option<Node>]) -> Made {
    let (x, y) = (at(args, 0)?, at(args, 1)?);
    let (own, other) = (dtype_of(build, x)?, dtype_of(build, y)?);
    if own == other {
        return Ok(build.apply(Op::Power, &[x, y])?);
    }
    // NumPy's promotion knows nothing of bfloat16.
    let wide = |dtype| if matches!(dtype, DType::F16 | DType::Bf16) { DType::F32 } else { dtype };
    let both = promote_types(own, other).or_else(|| promote_types(wide(own), wide(other)));
    let both = both.ok_or("the types have nothing in common")?;
    let (x, y) = (build.cast(x, both)?, build.cast(y, both)?);
    let power = build.apply(Op::Power, &[x, y])?;
    Ok(build.cast(power, own)?)
}

pub(crate) fn shift(call: &RunNode, build: &mut Builder, args: &[Option<Node>]) -> Made {
    let op = match call.text("direction") {
        Some("LEFT") => Op::LeftShift,
        Some("RIGHT") => Op::RightShift,
        _ => return Err("its direction is neither LEFT nor RIGHT".into()),
    };
    Ok(build.apply(op, &all(args)?)?)
}

/// One step for each further operand.
pub(crate) fn variadic(call: &RunNode, build: &mut Builder, args: &[Option<Node>]) -> Made {
    let args = all(args)?;
    Ok(match call.op.as_str() {
        "Max" => compose::max(build, &args),
        "Min" => compose::min(build, &args),
        "Sum" => compose::sum(build, &args),
        _ => compose::mean(build, &args),
    }?)
}

pub(crate) fn prelu(_: &RunNode, build: &mut Builder, args: &[Option<Node>]) -> Made {
    Ok(compose::prelu(build, at(args, 0)?, at(args, 1)?)?)
}

pub(crate) fn cast(call: &RunNode, build: &mut Builder, args: &[Option<Node>]) -> Made {
    let to = call.element("to").unwrap_or_else(|| Err("it casts to no type".into()))?;
    Ok(build.cast(at(args, 0)?, to)?)
}

pub(crate) fn cast_like(_: &RunNode, build: &mut Builder, args: &[Option<Node>]) -> Made {
    let to = dtype_of(build, at(args, 1)?)?;
    Ok(build.cast(at(args, 0)?, to)?)
}

/// Bounds are attributes before opset 11, and inputs since.
pub(crate) fn clip(call: &RunNode, build: &mut Builder, args: &[Option<Node>]) -> Made {
    let mut bound = |input: usize, name: &str| {
        let attribute = (call.opset < 11).then(|| call.attribute(name)).flatten();
        let literal = attribute.map(|_| build.literal(Literal::Float(call.float(name, 0.0))));
        args.get(input).copied().flatten().or(literal)
    };
    let (lo, hi) = (bound(1, "min"), bound(2, "max"));
    Ok(compose::clip(build, at(args, 0)?, lo, hi)?)
}

pub(crate) fn is_inf(call: &RunNode, build: &mut Builder, args: &[Option<Node>]) -> Made {
    let x = at(args, 0)?;
    let infinite = build.apply(Op::Isinf, &[x])?;
    let zero = build.literal(Literal::Int(0));
    let asked = [call.flag("detect_negative", true), call.flag("detect_positive", true)];
    Ok(match asked {
        [true, true] => infinite,
        [negative, positive] => {
            let op = if negative { Op::Less } else { Op::Greater };
            let side = build.apply(op, &[x, zero])?;
            let side = match negative || positive {
                true => side,
                false => build.apply(Op::LogicalXor, &[infinite, infinite])?,
            };
            build.apply(Op::LogicalAnd, &[infinite, side])?
        }
    })
}

/// Of integers too, by way of floats.
pub(crate) fn shrink(call: &RunNode, build: &mut Builder, args: &[Option<Node>]) -> Made {
    let own = dtype_of(build, at(args, 0)?)?;
    let wide = if own.is_float() { own } else { DType::F64 };
    let x = build.cast(at(args, 0)?, wide)?;
    let shrunk = compose::shrink(build, x, call.float("lambd", 0.5), call.float("bias", 0.0))?;
    Ok(build.cast(shrunk, own)?)
}

pub(crate) fn activation(call: &RunNode, build: &mut Builder, args: &[Option<Node>]) -> Made {
    let x = at(args, 0)?;
    let alpha = |default| call.float("alpha", default);
    Ok(match call.op.as_str() {
        "Softplus" => compose::softplus(build, x),
        "Mish" => compose::mish(build, x),
        "HardSwish" => compose::hard_swish(build, x),
        "Gelu" if call.text("approximate") == Some("tanh") => compose::gelu_tanh(build, x),
        "Gelu" => compose::gelu(build, x),
        "Elu" => compose::elu(build, x, alpha(1.0)),
        // The defaults changed with opset 6.
        "Selu" if call.opset < 6 => {
            compose::selu(build, x, alpha(1.6732), call.float("gamma", 1.0507))
        }
        "Selu" => compose::selu(
            build,
            x,
            alpha(f64::from(1.673_263_2_f32)),
            call.float("gamma", f64::from(1.050_701_f32)),
        ),
        "Celu" => compose::celu(build, x, alpha(1.0)),
        "LeakyRelu" => compose::leaky_relu(build, x, alpha(f64::from(0.01_f32))),
        "ThresholdedRelu" => compose::thresholded_relu(build, x, alpha(1.0)),
        "Swish" => compose::swish(build, x, alpha(1.0)),
        _ => {
            let beta = call.float("beta", 0.5);
            compose::hard_sigmoid(build, x, alpha(f64::from(0.2_f32)), beta)
        }
    }?)
}
