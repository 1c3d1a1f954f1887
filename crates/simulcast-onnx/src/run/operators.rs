//! Operators that need their operands as arrays: which there are, and how many inputs each takes.

use std::ops::RangeInclusive;
use std::sync::Arc;

use simulcast::AnyArray;

use super::call::{Allowed, Call, Inputs};
use super::error::NodeError;
use super::value::{Look, Value};
use super::{constant, cut, normalize, products, reduce, shapes, text};

/// What a node gives: its outputs in order.
pub(super) type Results<'a> = Result<Vec<Value<'a>>, NodeError>;

/// The code of an operator.
pub(super) type Whole = for<'a> fn(&Call, &Allowed, &mut Inputs<'a>) -> Results<'a>;

/// An operator's code, and how many inputs it takes.
pub(super) type Found = (Whole, RangeInclusive<usize>);

/// The code for a node; `Ok(None)` where the operator has none, an error where only this use of it
/// has none.
pub(super) fn find(call: &Call) -> Result<Option<Found>, Option<String>> {
    let groups = [
        shapes::find,
        cut::find,
        constant::find,
        reduce::find,
        normalize::find,
        products::find,
        text::find,
    ];
    for group in groups {
        if let Some(found) = group(call)? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// Whether a node makes text of something, or something of text.
pub(super) fn casts_text(call: &Call, text: bool) -> bool {
    match call.op.as_str() {
        "Cast" => text || call.element("to") == Some(Ok(simulcast::DType::String)),
        "CastLike" => text,
        _ => false,
    }
}

/// Whether an operator gives text where it is given some.
pub(super) fn keeps_text(op: &str) -> bool {
    !matches!(op, "Cast" | "CastLike" | "Equal" | "Shape" | "Size")
}

/// One result.
pub(super) fn one<'a>(array: impl Into<AnyArray>) -> Results<'a> {
    Ok(vec![Value::from(array.into())])
}

/// The same elements, row after row, in other sizes.
pub(super) fn reshaped<'a>(
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
    macro_rules! each {
        ($($variant:ident),*) => {
            match value.into_array(allowed)? {
                $(AnyArray::$variant(array) => {
                    let array = array.into_shape_with_order(shape);
                    AnyArray::$variant(array.map_err(|error| NodeError::from(error.to_string()))?)
                })*
            }
        };
    }
    Ok(Value::from(each!(
        Bool, I8, I16, I32, I64, U8, U16, U32, U64, F16, Bf16, F32, F64, C64, C128, String
    )))
}
