//! The engine of candle-core: its broadcasting operators, one after another where it has no fused
//! one. It allocates its outputs itself.

use std::hint::black_box;

use candle_core::{DType, Device, Result, Tensor};

use crate::case::Case;
use crate::measure::Task;

/// The case, where candle has an answer to it.
pub(crate) fn task(case: &Case) -> Option<Task> {
    if case.backwards {
        return None;
    }
    let operands = operands(case).ok()?;
    let (op, output) = (case.op.clone(), case.output());
    let run = move || -> Result<Option<Tensor>> {
        let [a, rest @ ..] = &operands[..] else { return Ok(None) };
        let result = match (op.as_str(), rest) {
            ("add", [b]) => a.broadcast_add(b)?,
            ("sub", [b]) => a.broadcast_sub(b)?,
            ("mul", [b]) => a.broadcast_mul(b)?,
            ("greater", [b]) => a.broadcast_gt(b)?,
            ("mul_add", [s, b]) => a.broadcast_mul(s)?.broadcast_add(b)?,
            ("where", [x, y]) => {
                a.broadcast_as(&output[..])?.where_cond(x, &y.broadcast_as(&output[..])?)?
            }
            ("exp_sub_mul", [m, r]) => a.broadcast_sub(m)?.exp()?.broadcast_mul(r)?,
            ("normalise", [m, s]) => a.to_dtype(DType::F32)?.broadcast_sub(m)?.broadcast_mul(s)?,
            ("mul_mul_add", [b, c, d]) => (a.broadcast_mul(b)? + d.broadcast_mul(c)?)?,
            ("square_distance", [b]) => {
                a.unsqueeze(1)?.broadcast_sub(&b.unsqueeze(0)?)?.sqr()?.sum(2)?
            }
            ("copy", []) => a.broadcast_as(&output[..])?.force_contiguous()?,
            ("sum_to", []) => {
                let sizes = a.dims();
                let summed = |axis: &usize| {
                    let back = sizes.len() - axis;
                    output.len().checked_sub(back).is_none_or(|at| output[at] != sizes[*axis])
                };
                a.sum_keepdim((0..sizes.len()).filter(summed).collect::<Vec<_>>())?
            }
            _ => return Ok(None),
        };
        Ok(Some(result))
    };
    // What it refuses once it refuses always.
    run().ok()??;
    Some(Box::new(move || {
        black_box(run().ok());
    }))
}

fn operands(case: &Case) -> Result<Vec<Tensor>> {
    let element = |n: usize| {
        Some(match (case.op.as_str(), case.element.as_str(), n) {
            ("where", _, 0) => DType::U8,
            ("normalise", _, 1..) | (_, "f32", _) => DType::F32,
            (_, "f64", _) => DType::F64,
            (_, "i64", _) => DType::I64,
            (_, "u8", _) => DType::U8,
            (_, "f16", _) => DType::F16,
            (_, "bf16", _) => DType::BF16,
            _ => return None,
        })
    };
    let operand = |(n, shape): (usize, &Vec<usize>)| {
        let count = shape.iter().product();
        let values: Vec<f32> = (0..count).map(|n: usize| (n % 97) as f32).collect();
        let unknown = || candle_core::Error::Msg("no such element type".into());
        let tensor = Tensor::from_vec(values, &shape[..], &Device::Cpu)?;
        let tensor = tensor.to_dtype(element(n).ok_or_else(unknown)?)?;
        if n == 0 && case.transposed { tensor.t() } else { Ok(tensor) }
    };
    case.shapes.iter().enumerate().map(operand).collect()
}
