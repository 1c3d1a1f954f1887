//! Operands as a rule other than NumPy's lays them, so that NumPy's rule shows the same.
//!
//! Before opset 7 the second operand is laid onto the first from `axis`, or the shapes are equal; a
//! slope is laid onto the data, never the other way. The rule is asked first; then axes of size 1 at
//! the end put the second operand where it says.

use simulcast_core::Rule;

use super::code::{Results, reshaped};
use super::error::NodeError;
use super::node::{Allowed, Inputs, RunNode};
use crate::operators::Broadcasts;

/// Whether another rule than NumPy's decides.
pub(crate) fn is_needed(call: &RunNode) -> bool {
    use Broadcasts::{SinceEight, SinceSeven, Slope};
    match call.row.map_or(Broadcasts::No, |row| row.broadcasts) {
        Slope => true,
        SinceEight => call.opset < 8,
        SinceSeven => call.opset < 7,
        _ => false,
    }
}

pub(crate) fn lay<'a>(call: &RunNode, allowed: &Allowed, inputs: &mut Inputs<'a>) -> Results<'a> {
    let shapes = (0..inputs.0.len()).map(|input| inputs.need(input).map(|v| v.shape().to_vec()));
    let shapes = shapes.collect::<Result<Vec<_>, NodeError>>()?;
    let rank = shapes.first().map_or(0, Vec::len);
    let rule = match call.row {
        Some(row) => row.rule(call.opset, rank, |name| call.int(name)),
        None => Rule::Numpy,
    };
    let plan = call.resolve(rule, &shapes)?;
    // The second was laid onto an axis of the first: for what follows it gets axes of size 1.
    if rule.kind().parameters().axis {
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
