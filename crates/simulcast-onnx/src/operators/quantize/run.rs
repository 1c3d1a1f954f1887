//! Quantization on arrays: scales and zero points are operands that broadcast.

use simulcast::program::{Builder, Node};
use simulcast::types::{Literal, TypeError};
use simulcast::{AnyArray, AnyView, DType, Op};
use simulcast_core::format_shape;

use crate::operators::product::run::product;
use crate::run::code::{Results, one};
use crate::run::error::NodeError;
use crate::run::node::{Allowed, Inputs, RunNode, axis};
use crate::run::value::Value;

/// Blocks of elements with a scale each are not read.
pub(crate) fn refusal(call: &RunNode) -> Option<String> {
    let blocks = call.int("block_size").unwrap_or(0) != 0;
    match output_dtype(call) {
        _ if blocks => Some("with a block_size".into()),
        Some(Err(why)) => Some(why),
        _ => None,
    }
}

/// The type that a node names for its result; 0 names none.
fn output_dtype(call: &RunNode) -> Option<Result<DType, String>> {
    call.element("output_dtype").filter(|_| call.int("output_dtype") != Some(0))
}

/// The data, the scale and the zero point, if there is one, as they meet: the latter are a number, or one for each
/// index of the axis.
fn laid<'v>(
    call: &RunNode,
    x: &'v AnyView<'v>,
    scale_and_zero: [Option<&'v AnyView<'v>>; 2],
) -> Result<Vec<AnyView<'v>>, NodeError> {
    let rank = x.shape().len();
    let others = scale_and_zero.into_iter().flatten().map(|own| along_axis(call, own, rank));
    std::iter::once(Ok(x.clone())).chain(others).collect()
}

/// A scale or zero point in as many axes as the data.
fn along_axis<'v>(
    call: &RunNode,
    own: &'v AnyView<'v>,
    rank: usize,
) -> Result<AnyView<'v>, NodeError> {
    let shape = match own.shape() {
        [] | [1] => Vec::new(),
        [count] => {
            let mut shape = vec![1; rank];
            shape[axis(call.int("axis").unwrap_or(1), rank)?] = *count;
            shape
        }
        other => {
            return Err(
                format!("its scale is {}, not a number or a vector", format_shape(other)).into()
            );
        }
    };
    own.reshaped(&shape).ok_or_else(|| "a scale that cannot be laid onto the data".into())
}

/// The least and the largest number of a type of codes.
fn bounds(dtype: DType) -> Result<(f64, f64), NodeError> {
    Ok(match dtype {
        DType::U8 => (0.0, 255.0),
        DType::I8 => (-128.0, 127.0),
        DType::U16 => (0.0, 65535.0),
        DType::I16 => (-32768.0, 32767.0),
        other => return Err(format!("{other} is no type of codes").into()),
    })
}

/// Steps from numbers to codes: divided, rounded to even, moved and cut off.
fn encoded(
    build: &mut Builder,
    x: Node,
    scale: Node,
    zero: Option<Node>,
    to: (DType, (f64, f64)),
) -> Result<Node, TypeError> {
    let (x, scale) = (build.cast(x, DType::F32)?, build.cast(scale, DType::F32)?);
    let quotient = build.apply(Op::Divide, &[x, scale])?;
    let mut code = build.apply(Op::Round, &[quotient])?;
    if let Some(zero) = zero {
        let zero = build.cast(zero, DType::F32)?;
        code = build.apply(Op::Add, &[code, zero])?;
    }
    cut_off(build, code, to)
}

/// Whole numbers as codes: the least and the largest stand for what lies beyond.
fn cut_off(
    build: &mut Builder,
    code: Node,
    (to, (low, high)): (DType, (f64, f64)),
) -> Result<Node, TypeError> {
    let [low, high] = [low, high].map(|bound| build.literal(Literal::Float(bound)));
    let code = build.apply(Op::Maximum, &[code, low])?;
    let code = build.apply(Op::Minimum, &[code, high])?;
    build.cast(code, to)
}

/// Steps from codes to numbers.
fn decoded(
    build: &mut Builder,
    x: Node,
    scale: Node,
    zero: Option<Node>,
    to: DType,
) -> Result<Node, TypeError> {
    let mut code = build.cast(x, DType::I32)?;
    if let Some(zero) = zero {
        let zero = build.cast(zero, DType::I32)?;
        code = build.apply(Op::Subtract, &[code, zero])?;
    }
    let (code, scale) = (build.cast(code, DType::F32)?, build.cast(scale, DType::F32)?);
    let number = build.apply(Op::Multiply, &[code, scale])?;
    build.cast(number, to)
}

pub(crate) fn quantize<'a>(
    call: &RunNode,
    allowed: &Allowed,
    inputs: &mut Inputs<'a>,
) -> Results<'a> {
    let (x, scale) = (inputs.view(0)?, inputs.view(1)?);
    let zero = inputs.get(2).map(Value::view);
    let to = match (&zero, output_dtype(call)) {
        (Some(zero), _) => zero.dtype(),
        (None, Some(named)) => named.map_err(NodeError::from)?,
        (None, None) => DType::U8,
    };
    let bounds = bounds(to)?;
    let views = laid(call, &x, [Some(&scale), zero.as_ref()])?;
    one(allowed.evaluate(&views, |build, args| {
        encoded(build, args[0], args[1], args.get(2).copied(), (to, bounds))
    })?)
}

pub(crate) fn dequantize<'a>(
    call: &RunNode,
    allowed: &Allowed,
    inputs: &mut Inputs<'a>,
) -> Results<'a> {
    let (x, scale) = (inputs.view(0)?, inputs.view(1)?);
    let zero = inputs.get(2).map(Value::view);
    let to = output_dtype(call).unwrap_or(Ok(scale.dtype())).map_err(NodeError::from)?;
    let views = laid(call, &x, [Some(&scale), zero.as_ref()])?;
    one(allowed.evaluate(&views, |build, args| {
        decoded(build, args[0], args[1], args.get(2).copied(), to)
    })?)
}

/// The scale that the data themselves ask for, 0 included.
pub(crate) fn dynamic_quantize<'a>(
    _: &RunNode,
    allowed: &Allowed,
    inputs: &mut Inputs<'a>,
) -> Results<'a> {
    let x = inputs.view(0)?;
    let Some(data) = x.typed::<f32>() else {
        return Err(format!("its input is {}, not float32", x.dtype()).into());
    };
    let low = data.iter().fold(0.0_f32, |low, x| low.min(*x));
    let high = data.iter().fold(0.0_f32, |high, x| high.max(*x));
    // Zeros alone have no range.
    let scale = if high == low { 1.0 } else { (high - low) / 255.0 };
    let zero = (0.0 - low / scale).round_ties_even().clamp(0.0, 255.0);
    let scalar = ndarray::IxDyn(&[]);
    let scale = AnyArray::from(ndarray::ArrayD::from_elem(scalar.clone(), scale));
    let zero = AnyArray::from(ndarray::ArrayD::from_elem(scalar, zero as u8));
    let bounds = bounds(DType::U8)?;
    let codes = allowed.evaluate(&[x.clone(), scale.view(), zero.view()], |build, args| {
        encoded(build, args[0], args[1], Some(args[2]), (DType::U8, bounds))
    })?;
    Ok(vec![codes.into(), scale.into(), zero.into()])
}

/// A sum or a product of codes, by way of the numbers that they stand for. As ONNX Runtime does, which defines the
/// operator, it is rounded once the zero point has been added: halves beside an odd one go the other way.
pub(crate) fn pair<'a>(call: &RunNode, allowed: &Allowed, inputs: &mut Inputs<'a>) -> Results<'a> {
    let op = if call.op == "QLinearAdd" { Op::Add } else { Op::Multiply };
    let to = inputs.view(0)?.dtype();
    let bounds = bounds(to)?;
    let shapes = [inputs.view(0)?.shape().to_vec(), inputs.view(3)?.shape().to_vec()];
    simulcast_core::resolve(simulcast_core::Rule::Numpy, &shapes)?;
    let mut views = Vec::new();
    let mut place = |input: usize| -> Result<Option<usize>, NodeError> {
        let Some(own) = inputs.get(input) else { return Ok(None) };
        let view = own.view();
        let view = match (input, view.shape()) {
            (0 | 3, _) | (_, []) => view,
            // A vector of one element is a number here.
            (_, [1]) => own.view(),
            (_, other) => {
                return Err(format!("a scale is {}, not a number", format_shape(other)).into());
            }
        };
        views.push(view);
        Ok(Some(views.len() - 1))
    };
    let places = (0..8).map(&mut place).collect::<Result<Vec<_>, _>>()?;
    let need = |input: usize| places[input].ok_or_else(|| NodeError::from("a scale is missing"));
    let (a, b, out) = ([need(0)?, need(1)?], [need(3)?, need(4)?], need(6)?);
    one(allowed.evaluate(&views, |build, args| {
        let zero = |input: usize| places[input].map(|at| args[at]);
        let left = decoded(build, args[a[0]], args[a[1]], zero(2), DType::F32)?;
        let right = decoded(build, args[b[0]], args[b[1]], zero(5), DType::F32)?;
        let made = build.apply(op, &[left, right])?;
        let mut code = build.apply(Op::Divide, &[made, args[out]])?;
        if let Some(zero) = zero(7) {
            let zero = build.cast(zero, DType::F32)?;
            code = build.apply(Op::Add, &[code, zero])?;
        }
        let code = build.apply(Op::Round, &[code])?;
        cut_off(build, code, (to, bounds))
    })?)
}

/// A product of codes less their zero points, in integers of 32 bits.
pub(crate) fn matmul<'a>(_: &RunNode, allowed: &Allowed, inputs: &mut Inputs<'a>) -> Results<'a> {
    let side = |input: usize, is_left: bool| -> Result<AnyArray, NodeError> {
        let mut views = vec![inputs.view(input)?];
        if let Some(zero) = inputs.get(input + 2).map(Value::view) {
            // One for each row on the left, for each column on the right.
            let shape = match (zero.shape(), is_left) {
                ([count], true) if *count > 1 => vec![*count, 1],
                (own, _) => own.to_vec(),
            };
            let zero = zero.reshaped(&shape).ok_or("a zero point in no order")?;
            views.push(match zero.shape() {
                [1] => zero.reshaped(&[]).ok_or("a zero point in no order")?,
                _ => zero,
            });
            return allowed.evaluate(&views, |build, args| {
                let (x, zero) =
                    (build.cast(args[0], DType::I32)?, build.cast(args[1], DType::I32)?);
                build.apply(Op::Subtract, &[x, zero])
            });
        }
        allowed.evaluate(&views, |build, args| build.cast(args[0], DType::I32))
    };
    let (a, b) = (side(0, true)?, side(1, false)?);
    one(product(&a.view(), &b.view(), allowed)?)
}
