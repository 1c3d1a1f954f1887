//! Casts between numbers and text.

use simulcast::{AnyArray, DType};
use simulcast_core::format_shape;

use super::code::{Results, one};
use super::error::NodeError;
use super::node::{Allowed, Inputs, RunNode};
use super::value::array;

/// `Cast` and `CastLike` from text, or to it.
pub(crate) fn cast<'a>(call: &RunNode, allowed: &Allowed, inputs: &mut Inputs<'a>) -> Results<'a> {
    let to = match call.op.as_str() {
        "Cast" => call.element("to").unwrap_or_else(|| Err("it casts to no type".into()))?,
        _ => inputs.need(1)?.dtype(),
    };
    let own = inputs.need(0)?.dtype();
    match (own, to) {
        (own, to) if own == to => Ok(vec![inputs.take(0)?]),
        (DType::String, to) => {
            let view = inputs.view(0)?;
            let texts = view.typed::<String>().ok_or("a view without its type")?;
            allowed.room(view.shape(), DType::F64)?;
            // Integers keep all of their digits; everything else is a float.
            let made = match to.is_integer() {
                true => {
                    let numbers: Result<Vec<i128>, NodeError> =
                        texts.iter().map(|t| whole(t)).collect();
                    let numbers = numbers?;
                    match to {
                        DType::U64 => {
                            let narrow = |n: &i128| u64::try_from(*n).map_err(|_| beyond(*n, to));
                            let all = numbers.iter().map(narrow).collect::<Result<_, _>>()?;
                            AnyArray::from(array(view.shape(), all)?)
                        }
                        _ => {
                            let narrow = |n: &i128| i64::try_from(*n).map_err(|_| beyond(*n, to));
                            let all = numbers.iter().map(narrow).collect::<Result<_, _>>()?;
                            AnyArray::from(array(view.shape(), all)?)
                        }
                    }
                }
                false => {
                    let numbers =
                        texts.iter().map(|text| real(text)).collect::<Result<Vec<f64>, _>>()?;
                    AnyArray::from(array(view.shape(), numbers)?)
                }
            };
            one(allowed.evaluate(&[made.view()], |build, args| build.cast(args[0], to))?)
        }
        (_, DType::String) => {
            let view = inputs.view(0)?;
            allowed.room(view.shape(), DType::String)?;
            // Halves are written as the floats that they are.
            let wide = match own {
                DType::F16 | DType::Bf16 => DType::F32,
                DType::C64 | DType::C128 => {
                    return Err(format!("{own} {} has no text", format_shape(view.shape())).into());
                }
                own => own,
            };
            let wide = allowed.evaluate(&[view], |build, args| build.cast(args[0], wide))?;
            let shape = wide.shape().to_vec();
            let texts: Vec<String> = match &wide {
                AnyArray::F32(all) => {
                    all.iter().map(|x| float(f64::from(*x), &format!("{x:?}"))).collect()
                }
                AnyArray::F64(all) => all.iter().map(|x| float(*x, &format!("{x:?}"))).collect(),
                AnyArray::Bool(all) => {
                    all.iter().map(|x| if *x { "True" } else { "False" }.to_owned()).collect()
                }
                other => {
                    let whole = allowed.evaluate(&[other.view()], |build, args| {
                        let to = if own == DType::U64 { own } else { DType::I64 };
                        build.cast(args[0], to)
                    })?;
                    match &whole {
                        AnyArray::U64(all) => all.iter().map(ToString::to_string).collect(),
                        AnyArray::I64(all) => all.iter().map(ToString::to_string).collect(),
                        _ => return Err("it has no text".into()),
                    }
                }
            };
            one(array(&shape, texts)?)
        }
        (_, to) => {
            let view = inputs.view(0)?;
            one(allowed.evaluate(&[view], |build, args| build.cast(args[0], to))?)
        }
    }
}

fn beyond(number: i128, to: DType) -> NodeError {
    format!("{number} does not fit in {to}").into()
}

/// Plain decimal notation, without a fraction where there is none.
fn float(value: f64, shortest: &str) -> String {
    match value {
        value if value.is_nan() => "NaN".into(),
        value if value.is_infinite() => if value > 0.0 { "INF" } else { "-INF" }.into(),
        _ => shortest.strip_suffix(".0").unwrap_or(shortest).into(),
    }
}

fn whole(text: &str) -> Result<i128, NodeError> {
    let trimmed = text.trim();
    let number = trimmed.parse::<i128>().ok();
    // Also "3.0", as other systems read it.
    let number = number.or_else(|| {
        let real = trimmed.parse::<f64>().ok()?;
        (real.fract() == 0.0 && real.abs() < 9e18).then_some(real as i128)
    });
    number.ok_or_else(|| format!("{text:?} is no integer").into())
}

fn real(text: &str) -> Result<f64, NodeError> {
    let trimmed = text.trim();
    trimmed.parse::<f64>().map_err(|_| format!("{text:?} is no number").into())
}
