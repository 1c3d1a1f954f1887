//! What the code of an operator is: steps of a program, or a function on arrays.

use std::sync::Arc;

use simulcast::AnyArray;
use simulcast::program::{Builder, Node};

use super::error::NodeError;
use super::node::{Allowed, Inputs, RunNode};
use super::value::{Look, Value};

/// What a node gives: its outputs in order.
pub(crate) type Results<'a> = Result<Vec<Value<'a>>, NodeError>;

/// Adds the steps of a node to a program.
pub(crate) type Steps = fn(&RunNode, &mut Builder, &[Option<Node>]) -> Result<Node, NodeError>;

/// Why one use of an operator cannot run.
pub(crate) type Refusal = fn(&RunNode) -> Option<String>;

/// The code of an operator.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Code {
    Steps(Steps),
    Whole(Whole),
}

/// The code of an operator that needs its operands as arrays.
pub(crate) type Whole = for<'a> fn(&RunNode, &Allowed, &mut Inputs<'a>) -> Results<'a>;

/// Whether a node makes text of something, or something of text.
pub(crate) fn casts_text(call: &RunNode, text: bool) -> bool {
    match call.op.as_str() {
        "Cast" => text || call.element("to") == Some(Ok(simulcast::DType::String)),
        "CastLike" => text,
        _ => false,
    }
}

/// One result.
pub(crate) fn one<'a>(array: impl Into<AnyArray>) -> Results<'a> {
    Ok(vec![Value::from(array.into())])
}

/// The same elements, row after row, in other sizes.
pub(crate) fn reshaped<'a>(
    value: Value<'a>,
    shape: &[usize],
    allowed: &Allowed,
) -> Result<Value<'a>, NodeError> {
    if value.shape() == shape {
        return Ok(value);
    }
    // Where nobody else has the array it stays one, which may be worked in.
    let unshared = matches!(&value, Value::Made(array) if Arc::strong_count(array) == 1);
    if !unshared {
        return value.look(&Look::Sizes(shape.to_vec()), allowed);
    }
    let array = value.into_array(allowed)?;
    simulcast::dispatch!(array.dtype(), T => {
        let array = array.into_typed::<T>().map_err(|_| "an array without its type")?;
        let array = array.into_shape_with_order(shape).map_err(|error| error.to_string())?;
        Ok(Value::from(AnyArray::from(array)))
    })
}
