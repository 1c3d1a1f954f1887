//! Linear models, scalers and columns of features on arrays.

use ndarray::Axis;
use simulcast::program::Fold;
use simulcast::types::Literal;
use simulcast::{AnyArray, AnyView, DType, Op};
use simulcast_core::format_shape;

use crate::operators::normalize::run::softmax_steps;
use crate::operators::product::run::product;
use crate::run::code::{Results, one};
use crate::run::error::NodeError;
use crate::run::node::{Allowed, Inputs, RunNode};
use crate::run::value::{array, each};

/// Scores that no code changes so.
pub(crate) fn classifier_refusal(call: &RunNode) -> Option<String> {
    match call.text("post_transform") {
        Some("LOGISTIC" | "SOFTMAX") => None,
        _ => transform_refusal(call),
    }
}

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
    let count = shape.iter().try_fold(1_usize, |count, size| count.checked_mul(*size));
    if count != Some(own.len()) {
        let count =
            count.map_or_else(|| format_shape(shape).to_string(), |count| count.to_string());
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

/// 1 above the threshold, 0 elsewhere. A NaN is neither.
pub(crate) fn binarizer<'a>(
    call: &RunNode,
    allowed: &Allowed,
    inputs: &mut Inputs<'a>,
) -> Results<'a> {
    let view = inputs.view(0)?;
    let is_nan = match (view.typed::<f32>(), view.typed::<f64>()) {
        (Some(view), _) => view.iter().any(|own| own.is_nan()),
        (None, Some(view)) => view.iter().any(|own| own.is_nan()),
        (None, None) => false,
    };
    if is_nan {
        return Err("an element is NaN, which is neither above the threshold nor below".into());
    }
    let (dtype, threshold) = (view.dtype(), call.float("threshold", 0.0));
    one(allowed.evaluate(&[view], |build, args| {
        let x = build.cast(args[0], DType::F64)?;
        let threshold = build.literal(Literal::Float(threshold));
        let above = build.apply(Op::Greater, &[x, threshold])?;
        build.cast(above, dtype)
    })?)
}

/// A value, such as NaN, replaced by one for each column, or by one for all.
pub(crate) fn imputer<'a>(
    call: &RunNode,
    allowed: &Allowed,
    inputs: &mut Inputs<'a>,
) -> Results<'a> {
    let view = inputs.view(0)?;
    let (dtype, count) = (view.dtype(), columns(&view)?);
    let floats = call.floats("imputed_value_floats").unwrap_or(&[]);
    let ints = call.ints("imputed_value_int64s").unwrap_or(&[]);
    let (given, made): (usize, AnyArray) = match dtype.is_integer() {
        true => (ints.len(), array(&[ints.len()], ints.to_vec())?.into()),
        false => (floats.len(), array(&[floats.len()], floats.to_vec())?.into()),
    };
    if given == 0 {
        let kind = if dtype.is_integer() { "int64s" } else { "floats" };
        return Err(format!("it has no imputed_value_{kind} for elements of {dtype}").into());
    }
    // Of more axes it is not said which one the columns are.
    if given != 1 && (given != count || view.shape().len() > 2) {
        let shape = format_shape(view.shape());
        return Err(format!("it has {given} values for columns of {shape}").into());
    }
    let float = call.float("replaced_value_float", 0.0);
    let int = call.int("replaced_value_int64").unwrap_or(0);
    one(allowed.evaluate(&[view, made.view()], |build, args| {
        let x = args[0];
        let is_replaced = match (dtype.is_integer(), float.is_nan()) {
            (true, _) => {
                let own = build.literal(Literal::Int(int.into()));
                build.apply(Op::Equal, &[x, own])?
            }
            (false, true) => build.apply(Op::Isnan, &[x])?,
            (false, false) => {
                let own = build.literal(Literal::Float(float));
                build.apply(Op::Equal, &[x, own])?
            }
        };
        let values = build.cast(args[1], dtype)?;
        build.apply(Op::Where, &[is_replaced, values, x])
    })?)
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
    let targets = call.int("targets").unwrap_or(1);
    let targets = usize::try_from(targets).map_err(|_| format!("it has {targets} targets"))?;
    one(scores(call, allowed, &inputs.view(0)?, targets)?)
}

/// The label whose score is the largest, the first of equal ones, and the scores. A single score is that of the
/// second of two labels, which has the row where it is above 0.
pub(crate) fn linear_classifier<'a>(
    call: &RunNode,
    allowed: &Allowed,
    inputs: &mut Inputs<'a>,
) -> Results<'a> {
    let texts = call.texts("classlabels_strings").filter(|labels| !labels.is_empty());
    let ints = call.ints("classlabels_ints").unwrap_or(&[]);
    let labels = texts.map_or(ints.len(), <[Vec<u8>]>::len);
    let classes = call.floats("intercepts").map_or(0, <[f32]>::len);
    if classes == 0 {
        return Err("it has no intercepts".into());
    }
    if labels < classes || classes == 1 && labels != 2 {
        return Err(format!("it has {labels} labels and {classes} intercepts").into());
    }
    let sums = scores(call, allowed, &inputs.view(0)?, classes)?;
    let rows = sums.view();
    let rows = rows.typed::<f32>().ok_or("scores that are not float32")?;
    let best = |row: ndarray::ArrayViewD<'_, f32>| match row.first() {
        Some(score) if classes == 1 => usize::from(*score > 0.0),
        first => {
            let first = (0, first.copied().unwrap_or(f32::NEG_INFINITY));
            let larger = |best: (usize, f32), (at, score): (usize, &f32)| match *score > best.1 {
                true => (at, *score),
                false => best,
            };
            row.iter().enumerate().fold(first, larger).0
        }
    };
    let best: Vec<usize> = rows.axis_iter(Axis(0)).map(best).collect();
    let shape = [best.len()];
    let named: AnyArray = match texts {
        Some(texts) => {
            let name =
                |at: usize| texts.get(at).and_then(|own| String::from_utf8(own.clone()).ok());
            let named: Option<Vec<String>> = best.into_iter().map(name).collect();
            array(&shape, named.ok_or("a label is not UTF-8")?)?.into()
        }
        None => {
            let named: Option<Vec<i64>> =
                best.into_iter().map(|at| ints.get(at).copied()).collect();
            array(&shape, named.ok_or("a label is missing")?)?.into()
        }
    };
    let post = call.text("post_transform").unwrap_or("NONE");
    let made = allowed.evaluate(&[sums.view()], |build, args| match post {
        "LOGISTIC" => build.apply(Op::Sigmoid, args),
        // One score alone stays as it is.
        "SOFTMAX" if classes > 1 => softmax_steps(build, args[0], &[-1]),
        _ => Ok(args[0]),
    })?;
    let made = if classes == 1 { with_other(&made, allowed)? } else { made };
    Ok(vec![named.into(), made.into()])
}

/// What is left to 1 before each score.
fn with_other(scores: &AnyArray, allowed: &Allowed) -> Result<AnyArray, NodeError> {
    let second: AnyArray = array(&[2], vec![false, true])?.into();
    allowed.evaluate(&[scores.view(), second.view()], |build, args| {
        let one = build.literal(Literal::Int(1));
        let other = build.apply(Op::Subtract, &[one, args[0]])?;
        build.apply(Op::Where, &[args[1], args[0], other])
    })
}

/// Rows of features by the coefficients of each class or target, and the intercepts.
fn scores(
    call: &RunNode,
    allowed: &Allowed,
    view: &AnyView<'_>,
    targets: usize,
) -> Result<AnyArray, NodeError> {
    let features = columns(view)?;
    let rows = match view.shape() {
        [_] => 1,
        [rows, _] => *rows,
        other => return Err(format!("{} are no rows of features", format_shape(other)).into()),
    };
    let coefficients = numbers(call, "coefficients", &[targets, features])?;
    let x = allowed
        .evaluate(std::slice::from_ref(view), |build, args| build.cast(args[0], DType::F32))?;
    let x = x.view().reshaped(&[rows, features]).ok_or("features in no order")?.to_owned();
    let over = coefficients.view().permuted_axes(&[1, 0]).ok_or("coefficients in no order")?;
    let sums = product(&x.view(), &over, allowed)?;
    if call.floats("intercepts").is_none_or(<[f32]>::is_empty) {
        return Ok(sums);
    }
    let intercepts = numbers(call, "intercepts", &[targets])?;
    allowed.evaluate(&[sums.view(), intercepts.view()], |build, args| build.apply(Op::Add, args))
}
