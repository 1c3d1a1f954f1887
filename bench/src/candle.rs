//! The engine of candle-core: its broadcasting operators, one after another where it has no fused
//! one. It allocates its outputs itself.

use std::hint::black_box;

use candle_core::{DType, Device, Result, Tensor};

use crate::case::Case;
use crate::engines::Engines;
use crate::measure::Task;
use crate::rotation::{Rotation, count};

/// The case, where candle has an answer to it.
pub fn add(to: &mut Engines<'_>, case: &Case) {
    if !case.backwards {
        to.add_if("candle", || task(case));
    }
}

fn task(case: &Case) -> Option<Task> {
    let sets = (0..count(case)).map(|_| operands(case));
    let mut sets = Rotation::new(sets.collect::<Result<Vec<_>>>().ok()?);
    let (op, output) = (case.op.clone(), case.output());
    let mut run = move || -> Result<Option<Tensor>> {
        let operands = sets.turn();
        let [a, rest @ ..] = &operands[..] else { return Ok(None) };
        let result = match (op.as_str(), rest) {
            ("a + b", [b]) => a.broadcast_add(b)?,
            ("a - b", [b]) => a.broadcast_sub(b)?,
            ("a * b", [b]) => a.broadcast_mul(b)?,
            ("a > b", [b]) => a.broadcast_gt(b)?,
            ("a * b + c", [s, b]) => a.broadcast_mul(s)?.broadcast_add(b)?,
            ("where(a, b, c)", [x, y]) => {
                a.broadcast_as(&output[..])?.where_cond(x, &y.broadcast_as(&output[..])?)?
            }
            ("exp(a - b) * c", [m, r]) => a.broadcast_sub(m)?.exp()?.broadcast_mul(r)?,
            ("(a - b) * c", [m, s]) => {
                a.to_dtype(DType::F32)?.broadcast_sub(m)?.broadcast_mul(s)?
            }
            ("a * b + c * d", [b, c, d]) => (a.broadcast_mul(b)? + c.broadcast_mul(d)?)?,
            (distance, [b]) if distance.starts_with("sum(") => {
                a.unsqueeze(1)?.broadcast_sub(&b.unsqueeze(0)?)?.sqr()?.sum(2)?
            }
            ("(a - b) / c", [m, s]) => a.broadcast_sub(m)?.broadcast_div(s)?,
            ("(a - b) / c * d + e", [m, s, g, b]) => {
                let scaled = a.broadcast_sub(m)?.broadcast_div(s)?.broadcast_mul(g)?;
                scaled.broadcast_add(b)?
            }
            ("where(a > b, a, b)", [b]) => a.broadcast_maximum(b)?,
            ("exp(a)", []) => a.exp()?,
            ("tanh(a)", []) => a.tanh()?,
            ("sin(a)", []) => a.sin()?,
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
    let element = |name: &str| {
        Some(match name {
            "f32" => DType::F32,
            "f64" => DType::F64,
            "i64" => DType::I64,
            // Its conditions are numbers.
            "u8" | "bool" => DType::U8,
            "f16" => DType::F16,
            "bf16" => DType::BF16,
            _ => return None,
        })
    };
    let types = case.types();
    let operand = |(n, shape): (usize, &Vec<usize>)| {
        let count = shape.iter().product();
        let values: Vec<f32> = (0..count).map(|n: usize| (n % 97 + 1) as f32 / 16.0).collect();
        let unknown = || candle_core::Error::Msg("no such element type".into());
        let tensor = Tensor::from_vec(values, &shape[..], &Device::Cpu)?;
        let tensor = tensor.to_dtype(element(&types[n]).ok_or_else(unknown)?)?;
        if n == 0 && case.transposed { tensor.t() } else { Ok(tensor) }
    };
    case.shapes.iter().enumerate().map(operand).collect()
}
