//! Operands as a rule other than NumPy's lays them, so that NumPy's rule shows the same.
//!
//! Before opset 7 the second operand is laid onto the first from `axis`, or the shapes are equal; a
//! slope is laid onto the data, never the other way. The rule is asked first; then axes of size 1 at
//! the end put the second operand where it says.

use simulcast_core::Rule;

use super::call::{Allowed, Call, Inputs};
use super::error::NodeError;
use super::operators::{Results, reshaped};

/// Whether another rule than NumPy's decides.
pub(super) fn is_needed(call: &Call) -> bool {
    match call.op.as_str() {
        "PRelu" => true,
        "Max" | "Min" | "Sum" | "Mean" => call.opset < 8,
        "Add" | "Sub" | "Mul" | "Div" | "Pow" | "And" | "Or" | "Xor" | "Equal" | "Greater"
        | "Less" => call.opset < 7,
        _ => false,
    }
}

fn rule(call: &Call, rank: usize) -> Rule<'static> {
    match call.op.as_str() {
        "PRelu" if call.opset >= 7 => Rule::Unidirectional,
        // A slope of more than one element is one for each channel.
        "PRelu" => Rule::Legacy { axis: (rank > 1).then_some(1) },
        "Max" | "Min" | "Sum" | "Mean" => Rule::Exact,
        _ if call.flag("broadcast", false) => {
            Rule::Legacy { axis: call.int("axis").and_then(|axis| isize::try_from(axis).ok()) }
        }
        _ => Rule::Exact,
    }
}

pub(super) fn lay<'a>(call: &Call, allowed: &Allowed, inputs: &mut Inputs<'a>) -> Results<'a> {
    let shapes = (0..inputs.0.len()).map(|input| inputs.need(input).map(|v| v.shape().to_vec()));
    let shapes = shapes.collect::<Result<Vec<_>, NodeError>>()?;
    let rank = shapes.first().map_or(0, Vec::len);
    let rule = rule(call, rank);
    let plan = call.resolve(rule, &shapes)?;
    if matches!(rule, Rule::Legacy { .. }) {
        let mut shape = vec![1; rank];
        let axes = plan.axes(1).map_err(|refusal| NodeError::from(refusal.to_string()))?;
        for &(size, target) in axes {
            if let Some(place) = target.and_then(|target| shape.get_mut(target)) {
                *place = size;
            }
        }
        let second = inputs.take(1)?;
        inputs.0[1] = Some(reshaped(second, &shape, allowed)?);
    }
    std::mem::take(&mut inputs.0)
        .into_iter()
        .map(|value| value.ok_or_else(|| "an input is missing".into()))
        .collect()
}
