//! Softmax and normalizations: reductions and what is computed with them, as programs.

use simulcast::program::{Builder, Fold, Node};
use simulcast::types::{Literal, TypeError};
use simulcast::{AnyArray, AnyView, DType, Op};
use simulcast_core::Rule;

use crate::ElementType;
use crate::operators::reduce::run::{best, signed};
use crate::run::code::{Results, one};
use crate::run::error::NodeError;
use crate::run::node::{Allowed, Inputs, RunNode, axis};
use crate::run::value::dtype as dtype_of;

/// The axes that are one: since opset 13 a single one, before all from `axis` on.
fn over(call: &RunNode, rank: usize) -> Result<Vec<usize>, NodeError> {
    if call.opset >= 13 {
        return Ok(vec![axis(call.int("axis").unwrap_or(-1), rank)?]);
    }
    let at = call.int("axis").unwrap_or(1);
    // The rows may be all there is.
    if usize::try_from(at) == Ok(rank) {
        return Ok(Vec::new());
    }
    Ok((axis(at, rank)?..rank).collect())
}

/// What is left of the largest over some axes, and its powers.
fn powers(build: &mut Builder, x: Node, over: &[isize]) -> Result<(Node, Node), TypeError> {
    let most = build.reduce(Fold::Maximum, x, Some(over), true)?;
    let rest = build.apply(Op::Subtract, &[x, most])?;
    Ok((rest, build.apply(Op::Exp, &[rest])?))
}

/// Powers over their sum.
pub(crate) fn softmax_steps(
    build: &mut Builder,
    x: Node,
    over: &[isize],
) -> Result<Node, TypeError> {
    let (_, power) = powers(build, x, over)?;
    let sum = build.reduce(Fold::Sum, power, Some(over), true)?;
    build.apply(Op::Divide, &[power, sum])
}

pub(crate) fn softmax<'a>(
    call: &RunNode,
    allowed: &Allowed,
    inputs: &mut Inputs<'a>,
) -> Results<'a> {
    let view = inputs.view(0)?;
    let over = signed(&over(call, view.shape().len())?);
    if view.is_empty() {
        return one(view.to_owned());
    }
    let log = call.op == "LogSoftmax";
    if matches!(view.dtype(), DType::F16 | DType::Bf16) && !log {
        // As the operator is defined, what is summed and divided are powers of the data's type.
        let power =
            allowed.evaluate(&[view], |build, args| Ok(powers(build, args[0], &over)?.1))?;
        return one(allowed.evaluate(&[power.view()], |build, args| {
            let sum = build.reduce(Fold::Sum, args[0], Some(&over), true)?;
            build.apply(Op::Divide, &[args[0], sum])
        })?);
    }
    one(allowed.evaluate(&[view], |build, args| {
        if !log {
            return softmax_steps(build, args[0], &over);
        }
        let (rest, power) = powers(build, args[0], &over)?;
        let sum = build.reduce(Fold::Sum, power, Some(&over), true)?;
        let sum = build.apply(Op::Log, &[sum])?;
        build.apply(Op::Subtract, &[rest, sum])
    })?)
}

/// 1 at the first of the largest elements, else 0.
pub(crate) fn hardmax<'a>(
    call: &RunNode,
    allowed: &Allowed,
    inputs: &mut Inputs<'a>,
) -> Results<'a> {
    let view = inputs.view(0)?;
    let rank = view.shape().len();
    let over = over(call, rank)?;
    if view.is_empty() {
        return one(view.to_owned());
    }
    // As rows of what is one, with what comes after it.
    let first = over.first().copied().unwrap_or(rank);
    let after = over.last().map_or(rank, |last| last + 1);
    let size = |range: std::ops::Range<usize>| view.shape()[range].iter().product::<usize>();
    let rows = [size(0..first), size(first..after), size(after..rank)];
    let flat = crate::run::code::reshaped(view.to_owned().into(), &rows, allowed)?;
    let found = best(&flat.view(), allowed, 1, true, false)?.insert_axis(ndarray::Axis(1));
    let places = (0..rows[1] as i64).collect::<Vec<i64>>();
    let places = crate::run::value::array(&[rows[1], 1], places)?;
    let hot = allowed.evaluate(&[(&found).into(), (&places).into()], |build, args| {
        let hot = build.apply(Op::Equal, args)?;
        build.cast(hot, view.dtype())
    })?;
    Ok(vec![crate::run::code::reshaped(hot.into(), view.shape(), allowed)?])
}

/// The data in the type that they are normalized in, less their mean; and one over their deviation.
struct Normal {
    over: Vec<isize>,
    epsilon: f64,
    centred: bool,
}

impl Normal {
    fn mean(&self, build: &mut Builder, x: Node) -> Result<Node, TypeError> {
        build.reduce(Fold::Mean, x, Some(&self.over), true)
    }

    fn centre(&self, build: &mut Builder, x: Node) -> Result<Node, TypeError> {
        if !self.centred {
            return Ok(x);
        }
        let mean = self.mean(build, x)?;
        build.apply(Op::Subtract, &[x, mean])
    }

    fn inverse(&self, build: &mut Builder, centred: Node) -> Result<Node, TypeError> {
        let square = build.apply(Op::Square, &[centred])?;
        let variance = build.reduce(Fold::Mean, square, Some(&self.over), true)?;
        let epsilon = build.literal(Literal::Float(self.epsilon));
        let variance = build.apply(Op::Add, &[variance, epsilon])?;
        let deviation = build.apply(Op::Sqrt, &[variance])?;
        build.apply(Op::Reciprocal, &[deviation])
    }
}

/// Layer and root-mean-square normalization, which leaves the mean where it is.
pub(crate) fn layer<'a>(call: &RunNode, allowed: &Allowed, inputs: &mut Inputs<'a>) -> Results<'a> {
    let views: Vec<AnyView<'_>> =
        (0..inputs.0.len()).map(|input| inputs.view(input)).collect::<Result<_, _>>()?;
    let shapes: Vec<&[usize]> = views.iter().map(AnyView::shape).collect();
    call.resolve(Rule::Unidirectional, &shapes)?;
    let rank = shapes[0].len();
    let first = axis(call.int("axis").unwrap_or(-1), rank)?;
    let own = views[0].dtype();
    let stash = i32::try_from(call.int("stash_type").unwrap_or(1)).ok();
    let stash = stash.and_then(ElementType::from_code).and_then(dtype_of);
    let stash = stash.filter(|dtype| dtype.is_float()).ok_or("its stash_type is no float")?;
    // What is saved has that type; a type that is wider anyway is computed in as it is.
    let saved = stash;
    let stash = if own == DType::F64 { own } else { stash };
    let normal = Normal {
        over: signed(&(first..rank).collect::<Vec<_>>()),
        epsilon: call.float("epsilon", f64::from(1e-5_f32)),
        centred: call.op == "LayerNormalization",
    };
    let result = allowed.evaluate(&views, |build, args| {
        let x = build.cast(args[0], stash)?;
        let centred = normal.centre(build, x)?;
        let inverse = normal.inverse(build, centred)?;
        let normalized = build.apply(Op::Multiply, &[centred, inverse])?;
        let normalized = build.cast(normalized, own)?;
        let scale = args[1];
        let scaled = match build.type_of(scale) == build.type_of(normalized) {
            true => build.apply(Op::Multiply, &[normalized, scale])?,
            false => {
                let scale = build.cast(scale, own)?;
                build.apply(Op::Multiply, &[normalized, scale])?
            }
        };
        match args.get(2) {
            Some(bias) => build.apply(Op::Add, &[scaled, *bias]),
            None => Ok(scaled),
        }
    })?;
    let mut results = vec![result.into()];
    let only = &views[..1];
    if call.wants(1) || call.wants(2) {
        let mean = allowed.evaluate(only, |build, args| {
            let x = build.cast(args[0], stash)?;
            let mean = normal.mean(build, x)?;
            build.cast(mean, saved)
        })?;
        let inverse = allowed.evaluate(only, |build, args| {
            let x = build.cast(args[0], stash)?;
            let centred = normal.centre(build, x)?;
            let inverse = normal.inverse(build, centred)?;
            build.cast(inverse, saved)
        })?;
        results.extend([mean.into(), inverse.into()]);
    }
    Ok(results)
}

pub(crate) fn mean_variance<'a>(
    call: &RunNode,
    allowed: &Allowed,
    inputs: &mut Inputs<'a>,
) -> Results<'a> {
    let view = inputs.view(0)?;
    let asked = call.ints("axes").unwrap_or(&[0, 2, 3]);
    let over = signed(&crate::run::node::axes(asked, view.shape().len())?);
    let normal = Normal { over, epsilon: 0.0, centred: true };
    one(allowed.evaluate(&[view], |build, args| {
        let centred = normal.centre(build, args[0])?;
        let square = build.apply(Op::Square, &[centred])?;
        let variance = normal.mean(build, square)?;
        let deviation = build.apply(Op::Sqrt, &[variance])?;
        let epsilon = build.literal(Literal::Float(1e-9));
        let deviation = build.apply(Op::Add, &[deviation, epsilon])?;
        build.apply(Op::Divide, &[centred, deviation])
    })?)
}

pub(crate) fn lp<'a>(call: &RunNode, allowed: &Allowed, inputs: &mut Inputs<'a>) -> Results<'a> {
    let view = inputs.view(0)?;
    let at = axis(call.int("axis").unwrap_or(-1), view.shape().len())?;
    let over = signed(&[at]);
    let p = call.int("p").unwrap_or(2);
    if !matches!(p, 1 | 2) {
        return Err(format!("its p is {p}").into());
    }
    let made: AnyArray = allowed.evaluate(&[view], |build, args| {
        let op = if p == 1 { Op::Absolute } else { Op::Square };
        let size = build.apply(op, &[args[0]])?;
        let sum = build.reduce(Fold::Sum, size, Some(&over), true)?;
        let norm = if p == 1 { sum } else { build.apply(Op::Sqrt, &[sum])? };
        // Nothing stays nothing.
        let zero = build.literal(Literal::Int(0));
        let one = build.literal(Literal::Int(1));
        let is_zero = build.apply(Op::Equal, &[norm, zero])?;
        let norm = build.apply(Op::Where, &[is_zero, one, norm])?;
        build.apply(Op::Divide, &[args[0], norm])
    })?;
    one(made)
}

/// A scale or bias with one number for each index of axis 1.
fn on_channels<'v>(own: &'v AnyView<'v>, rank: usize) -> Result<AnyView<'v>, NodeError> {
    let mut shape = vec![1; rank.max(2)];
    shape[1] = own.len();
    shape.truncate(rank);
    own.reshaped(&shape).ok_or_else(|| "a number for each channel is no vector".into())
}

/// What a normalization with statistics of its own is not.
pub(crate) fn batch_refusal(call: &RunNode) -> Option<String> {
    let trains = call.flag("training_mode", false)
        || (call.opset < 7 && !call.flag("is_test", false))
        || call.outputs.iter().skip(1).any(|wanted| *wanted);
    match (trains, call.opset < 9 && !call.flag("spatial", true)) {
        (true, _) => Some("in training".into()),
        (_, true) => Some("with statistics of each place".into()),
        _ => None,
    }
}

/// Inference with statistics that are given: everything broadcasts.
pub(crate) fn batch<'a>(call: &RunNode, allowed: &Allowed, inputs: &mut Inputs<'a>) -> Results<'a> {
    let all: Vec<AnyView<'_>> = (0..5).map(|n| inputs.view(n)).collect::<Result<_, _>>()?;
    let rank = all[0].shape().len();
    let mut views = vec![all[0].clone()];
    for own in &all[1..] {
        views.push(on_channels(own, rank)?);
    }
    let shapes: Vec<&[usize]> = views.iter().map(AnyView::shape).collect();
    call.resolve(Rule::Unidirectional, &shapes)?;
    let own = views[0].dtype();
    let wide = if matches!(own, DType::F16 | DType::Bf16) { DType::F32 } else { own };
    let epsilon = call.float("epsilon", f64::from(1e-5_f32));
    one(allowed.evaluate(&views, |build, args| {
        let args: Vec<Node> =
            args.iter().map(|arg| build.cast(*arg, wide)).collect::<Result<_, _>>()?;
        let centred = build.apply(Op::Subtract, &[args[0], args[3]])?;
        let epsilon = build.literal(Literal::Float(epsilon));
        let variance = build.apply(Op::Add, &[args[4], epsilon])?;
        let deviation = build.apply(Op::Sqrt, &[variance])?;
        let scale = build.apply(Op::Divide, &[args[1], deviation])?;
        let scaled = build.apply(Op::Multiply, &[centred, scale])?;
        let moved = build.apply(Op::Add, &[scaled, args[2]])?;
        build.cast(moved, own)
    })?)
}

/// Every channel, or every group of channels, of each sample by its own statistics.
pub(crate) fn grouped<'a>(
    call: &RunNode,
    allowed: &Allowed,
    inputs: &mut Inputs<'a>,
) -> Results<'a> {
    let (x, scale, bias) = (inputs.view(0)?, inputs.view(1)?, inputs.view(2)?);
    let shape = x.shape().to_vec();
    let [samples, channels, ..] = shape[..] else {
        return Err(format!("{} has no channels", simulcast_core::format_shape(&shape)).into());
    };
    let by_group = call.op == "GroupNormalization";
    let groups = match by_group {
        false => channels,
        true => usize::try_from(call.int("num_groups").unwrap_or(0)).unwrap_or(0),
    };
    let own = x.dtype();
    // Beside a 0 the other sizes may be too large to multiply; from here on they are not.
    if x.is_empty() {
        return one(x.to_owned());
    }
    if groups == 0 || channels % groups != 0 {
        return Err(format!("{channels} channels are no {groups} groups").into());
    }
    let row = x.len() / (samples * groups);
    let rows = [samples, groups, row];
    let wide = if matches!(own, DType::F16 | DType::Bf16) { DType::F32 } else { own };
    let normal = Normal {
        over: vec![2],
        epsilon: call.float("epsilon", f64::from(1e-5_f32)),
        centred: true,
    };
    let flat = crate::run::code::reshaped(x.to_owned().into(), &rows, allowed)?;
    let normalized = allowed.evaluate(&[flat.view()], |build, args| {
        let x = build.cast(args[0], wide)?;
        let centred = normal.centre(build, x)?;
        let inverse = normal.inverse(build, centred)?;
        build.apply(Op::Multiply, &[centred, inverse])
    })?;
    // Before opset 21 the groups were scaled, since then the channels.
    let each_group = by_group && call.opset < 21;
    let laid = if each_group { rows.to_vec() } else { shape.clone() };
    let normalized = crate::run::code::reshaped(normalized.into(), &laid, allowed)?;
    let (scale, bias) = (on_channels(&scale, laid.len())?, on_channels(&bias, laid.len())?);
    let views = [normalized.view(), scale, bias];
    let shapes: Vec<&[usize]> = views.iter().map(AnyView::shape).collect();
    call.resolve(Rule::Unidirectional, &shapes)?;
    let made = allowed.evaluate(&views, |build, args| {
        let (scale, bias) = (build.cast(args[1], wide)?, build.cast(args[2], wide)?);
        let scaled = build.apply(Op::Multiply, &[args[0], scale])?;
        let moved = build.apply(Op::Add, &[scaled, bias])?;
        build.cast(moved, own)
    })?;
    Ok(vec![crate::run::code::reshaped(made.into(), &shape, allowed)?])
}
