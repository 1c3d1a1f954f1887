//! Linear models, scalers and columns of features on arrays.

use ndarray::Axis;
use simulcast::program::Fold;
use simulcast::types::Literal;
use simulcast::{AnyArray, AnyView, DType, Op};
use simulcast_core::tuple;

use crate::operators::product::run::product;
use crate::run::code::{Results, one};
use crate::run::error::NodeError;
use crate::run::node::{Allowed, Inputs, RunNode};
use crate::run::value::{array, each};

/// Only scores as they are.
pub(crate) fn transform_refusal(call: &RunNode) -> Option<String> {
    match call.text("post_transform") {
        None | Some("NONE") => None,
        Some(other) => Some(format!("with the post_transform {other}")),
    }
}

/// The numbers of an attribute as an array.
fn numbers(call: &RunNode, name: &str, shape: &[usize]) -> Result<AnyArray, NodeError> {
    let own = call.floats(name).unwrap_or(&[]);
    let count: usize = shape.iter().product();
    if own.len() != count {
        return Err(format!("{name} has {} numbers, not {count}", own.len()).into());
    }
    Ok(array(shape, own.to_vec())?.into())
}

fn columns(view: &AnyView<'_>) -> Result<usize, NodeError> {
    let last = view.shape().last().copied();
    last.ok_or_else(|| "it is a scalar, which has no features".into())
}

/// Columns picked by number.
pub(crate) fn array_feature_extractor<'a>(
    _: &RunNode,
    _: &Allowed,
    inputs: &mut Inputs<'a>,
) -> Results<'a> {
    let view = inputs.view(0)?;
    let count = columns(&view)?;
    let indices = inputs.ints(1)?.ok_or("it has no indices")?;
    let index = |at: &i64| usize::try_from(*at).ok().filter(|at| *at < count);
    let picked: Option<Vec<usize>> = indices.iter().map(index).collect();
    let picked = picked.ok_or_else(|| format!("an index is outside {count} columns"))?;
    let made: AnyArray = each!(view, typed => {
        let last = Axis(typed.ndim() - 1);
        let own = typed.select(last, &picked);
        // A vector is one row.
        let own = if own.ndim() == 1 { own.insert_axis(Axis(0)) } else { own };
        Ok::<AnyArray, NodeError>(AnyView::from(&own.view()).to_owned())
    })?;
    one(made)
}

/// Moved and scaled, column by column.
pub(crate) fn scaler<'a>(
    call: &RunNode,
    allowed: &Allowed,
    inputs: &mut Inputs<'a>,
) -> Results<'a> {
    let view = inputs.view(0)?;
    let count = columns(&view)?;
    let shaped = |name: &str| {
        let own = call.floats(name).map_or(count, <[f32]>::len);
        numbers(call, name, &[if own == 1 { 1 } else { count }])
    };
    let (offset, scale) = (shaped("offset")?, shaped("scale")?);
    one(allowed.evaluate(&[view, offset.view(), scale.view()], |build, args| {
        let x = build.cast(args[0], DType::F32)?;
        let moved = build.apply(Op::Subtract, &[x, args[1]])?;
        build.apply(Op::Multiply, &[moved, args[2]])
    })?)
}

/// Each row over its norm; rows of zeros stay.
pub(crate) fn normalizer<'a>(
    call: &RunNode,
    allowed: &Allowed,
    inputs: &mut Inputs<'a>,
) -> Results<'a> {
    let view = inputs.view(0)?;
    columns(&view)?;
    let norm = call.text("norm").unwrap_or("MAX").to_owned();
    if !matches!(norm.as_str(), "MAX" | "L1" | "L2") {
        return Err(format!("its norm is {norm:?}").into());
    }
    one(allowed.evaluate(&[view], |build, args| {
        let x = build.cast(args[0], DType::F32)?;
        let last = Some(&[-1_isize][..]);
        let size = match norm.as_str() {
            "MAX" => build.reduce(Fold::Maximum, x, last, true)?,
            "L1" => {
                let size = build.apply(Op::Absolute, &[x])?;
                build.reduce(Fold::Sum, size, last, true)?
            }
            _ => {
                let square = build.apply(Op::Square, &[x])?;
                let sum = build.reduce(Fold::Sum, square, last, true)?;
                build.apply(Op::Sqrt, &[sum])?
            }
        };
        let (zero, one) = (build.literal(Literal::Int(0)), build.literal(Literal::Int(1)));
        let is_zero = build.apply(Op::Equal, &[size, zero])?;
        let size = build.apply(Op::Where, &[is_zero, one, size])?;
        build.apply(Op::Divide, &[x, size])
    })?)
}

/// A product with the coefficients of each target, and its intercept.
pub(crate) fn linear_regressor<'a>(
    call: &RunNode,
    allowed: &Allowed,
    inputs: &mut Inputs<'a>,
) -> Results<'a> {
    let view = inputs.view(0)?;
    let features = columns(&view)?;
    let rows = match view.shape() {
        [_] => 1,
        [rows, _] => *rows,
        other => return Err(format!("{} are no rows of features", tuple(other)).into()),
    };
    let targets = call.int("targets").unwrap_or(1);
    let targets = usize::try_from(targets).map_err(|_| format!("it has {targets} targets"))?;
    let coefficients = numbers(call, "coefficients", &[targets, features])?;
    let x = allowed.evaluate(&[view], |build, args| build.cast(args[0], DType::F32))?;
    let x = x.view().reshaped(&[rows, features]).ok_or("features in no order")?.to_owned();
    let over = coefficients.view().permuted_axes(&[1, 0]).ok_or("coefficients in no order")?;
    let sums = product(&x.view(), &over, allowed)?;
    if call.floats("intercepts").is_none_or(<[f32]>::is_empty) {
        return one(sums);
    }
    let intercepts = numbers(call, "intercepts", &[targets])?;
    one(allowed
        .evaluate(&[sums.view(), intercepts.view()], |build, args| build.apply(Op::Add, args))?)
}
