//! Values from attributes and sizes alone.

use ndarray::{Array1, ArrayD, IxDyn};
use simulcast::{AnyArray, DType, Element};
use simulcast_core::{elements, format_shape};

use crate::ElementType;
use crate::model::AttributeValue;
use crate::run::code::{Results, one};
use crate::run::error::{NodeError, RunError};
use crate::run::node::{Allowed, Inputs, RunNode, axis, sizes};
use crate::run::value::{array, each, of_tensor};

/// The value of a `Constant`; the inner error says which kinds there is no code for.
pub(crate) fn constant(
    call: &RunNode,
    name: &str,
) -> Result<Result<(AnyArray, ElementType), String>, RunError> {
    let text = |text: &[u8]| {
        let why =
            || RunError::Value { name: name.to_owned(), why: "a text that is not UTF-8".into() };
        String::from_utf8(text.to_vec()).map_err(|_| why())
    };
    let Some(attribute) = call.attributes.iter().find(|a| a.name.starts_with("value")) else {
        return Ok(Err("it has no value".into()));
    };
    use ElementType as E;
    Ok(Ok(match &attribute.value {
        AttributeValue::Tensor(tensor) => match of_tensor(tensor, name) {
            Err(RunError::Value { why, .. }) => return Ok(Err(why)),
            other => (other?, tensor.element()),
        },
        AttributeValue::Float(value) => (AnyArray::scalar(*value), E::F32),
        AttributeValue::Int(value) => (AnyArray::scalar(*value), E::I64),
        AttributeValue::Text(value) => (AnyArray::scalar(text(value)?), E::String),
        AttributeValue::Floats(values) => (Array1::from_vec(values.clone()).into(), E::F32),
        AttributeValue::Ints(values) => (Array1::from_vec(values.clone()).into(), E::I64),
        AttributeValue::Texts(values) => {
            let values = values.iter().map(|value| text(value)).collect::<Result<Vec<_>, _>>()?;
            (Array1::from_vec(values).into(), E::String)
        }
        _ => return Ok(Err("it has no tensor".into())),
    }))
}

fn filled<T: Element>(value: Option<&T>, shape: &[usize]) -> Result<AnyArray, NodeError>
where
    AnyArray: From<ArrayD<T>>,
{
    let value = value.ok_or("its value has no element")?;
    let count = elements(shape).map_err(|refusal| refusal.to_string())?;
    let mut all = Vec::new();
    all.try_reserve_exact(count).map_err(|error| error.to_string())?;
    all.resize(count, value.clone());
    Ok(AnyArray::from(array(shape, all)?))
}

pub(crate) fn of_shape<'a>(
    call: &RunNode,
    allowed: &Allowed,
    inputs: &mut Inputs<'a>,
) -> Results<'a> {
    let shape = sizes(&inputs.ints(0)?.unwrap_or_default())?;
    let value = match call.tensor("value") {
        Some(tensor) => of_tensor(tensor, "value").map_err(|error| error.to_string())?,
        None => AnyArray::scalar(0_f32),
    };
    allowed.room(&shape, value.dtype())?;
    one(each!(value.view(), typed => filled(typed.first(), &shape))?)
}

pub(crate) fn range<'a>(_: &RunNode, allowed: &Allowed, inputs: &mut Inputs<'a>) -> Results<'a> {
    let views = [inputs.view(0)?, inputs.view(1)?, inputs.view(2)?];
    let dtype = views[0].dtype();
    if views.iter().any(|view| view.len() != 1 || view.dtype() != dtype) {
        return Err("start, limit and delta are not three numbers of one type".into());
    }
    let number = |input: usize, to: DType| {
        allowed.evaluate(&[views[input].clone()], |build, args| build.cast(args[0], to))
    };
    // How many there are, exactly for integers.
    let count = if dtype.is_integer() {
        let whole = |input: usize| {
            let value = number(input, DType::I64)?;
            Ok::<_, NodeError>(i128::from(
                value.typed::<i64>().and_then(|all| all.first().copied()).unwrap_or(0),
            ))
        };
        let (start, limit, delta): (i128, i128, i128) = (whole(0)?, whole(1)?, whole(2)?);
        match delta {
            0 => return Err(NodeError::from("delta is 0")),
            1.. => {
                (limit - start).max(0).div_euclid(delta)
                    + i128::from((limit - start).max(0) % delta != 0)
            }
            _ => {
                let (span, step) = ((start - limit).max(0), -delta);
                span / step + i128::from(span % step != 0)
            }
        }
    } else {
        let real = |input: usize| {
            let value = number(input, DType::F64)?;
            Ok::<_, NodeError>(
                value.typed::<f64>().and_then(|all| all.first().copied()).unwrap_or(0.0),
            )
        };
        let (start, limit, delta) = (real(0)?, real(1)?, real(2)?);
        let count = ((limit - start) / delta).ceil().max(0.0);
        if !count.is_finite() {
            return Err("there is no end to it".into());
        }
        count as i128
    };
    let count = usize::try_from(count).map_err(|_| "it is too long to count")?;
    allowed.room(&[count], DType::I64)?;
    let places = Array1::from_iter(0..count as i64);
    let views = [simulcast::AnyView::from(&places), views[0].clone(), views[2].clone()];
    // Scalars of one axis stretch too.
    let made = allowed.evaluate(&views, |build, args| {
        let place = build.cast(args[0], dtype)?;
        let far = build.apply(simulcast::Op::Multiply, &[place, args[2]])?;
        build.apply(simulcast::Op::Add, &[args[1], far])
    })?;
    one(made)
}

pub(crate) fn eye_refusal(call: &RunNode) -> Option<String> {
    call.element("dtype").and_then(Result::err)
}

pub(crate) fn eye<'a>(call: &RunNode, allowed: &Allowed, inputs: &mut Inputs<'a>) -> Results<'a> {
    let view = inputs.view(0)?;
    let &[rows, columns] = view.shape() else {
        return Err(format!("{} is no matrix", format_shape(view.shape())).into());
    };
    let dtype = call.element("dtype").unwrap_or_else(|| Ok(view.dtype()))?;
    allowed.room(&[rows, columns], dtype)?;
    let mut ones = ndarray::Array2::from_elem((rows, columns), false);
    let shift = call.int("k").unwrap_or(0);
    for row in 0..rows {
        let column = i64::try_from(row).ok().and_then(|row| row.checked_add(shift));
        let column = column.and_then(|column| usize::try_from(column).ok());
        if let Some(place) = column.and_then(|column| ones.get_mut((row, column))) {
            *place = true;
        }
    }
    one(allowed.evaluate(&[(&ones).into()], |build, args| build.cast(args[0], dtype))?)
}

/// The second of two values where an index is, else the first, along a new axis.
pub(crate) fn one_hot<'a>(
    call: &RunNode,
    allowed: &Allowed,
    inputs: &mut Inputs<'a>,
) -> Results<'a> {
    let whole = |input: usize| {
        allowed.evaluate(&[inputs.view(input)?], |build, args| build.cast(args[0], DType::I64))
    };
    let (indices, depth) = (whole(0)?, whole(1)?);
    let depth = depth.typed::<i64>().and_then(|all| all.first().copied()).unwrap_or(0);
    let size = usize::try_from(depth).map_err(|_| format!("its depth is {depth}"))?;
    let values = inputs.view(2)?;
    if values.shape() != [2] {
        return Err(format!("{} is no pair of values", format_shape(values.shape())).into());
    }
    let at = axis(call.int("axis").unwrap_or(-1), indices.shape().len() + 1)?;
    let mut shape = indices.shape().to_vec();
    shape.insert(at, size);
    allowed.room(&shape, values.dtype())?;
    allowed.room(&[size], DType::I64)?;
    let mut own = vec![1; shape.len()];
    own[at] = size;
    let places = ArrayD::from_shape_vec(IxDyn(&own), (0..depth).collect::<Vec<i64>>());
    let places = places.map_err(|error| error.to_string())?;
    let Some(asked) = indices.typed::<i64>() else { return Err("no indices".into()) };
    // Negative ones count from the end.
    let from = |&index: &i64| if index < 0 { index.saturating_add(depth) } else { index };
    let mut shape = indices.shape().to_vec();
    shape.insert(at, 1);
    let asked = array(&shape, asked.iter().map(from).collect::<Vec<i64>>())?;
    let pair = |n: usize| {
        let view = values.clone();
        each!(view, typed => Ok(simulcast::AnyView::from(&typed.slice_axis(ndarray::Axis(0), (n..n + 1).into())).to_owned()))
    };
    let (off, on) = (pair(0)?, pair(1)?);
    let views = [(&asked).into(), (&places).into(), on.view(), off.view()];
    one(allowed.evaluate(&views, |build, args| {
        let hot = build.apply(simulcast::Op::Equal, &args[..2])?;
        build.apply(simulcast::Op::Where, &[hot, args[2], args[3]])
    })?)
}
