//! Tensors out of shapes and numbers.

use simulcast_core::{Dim, Dims, elements};

use crate::ElementType;
use crate::expr::Expr;
use crate::infer::call::{Call, Results};
use crate::infer::{FOLDED, Fact};
use crate::model::AttributeValue;

impl Call<'_, '_, '_> {
    pub(super) fn constant(&mut self) -> Results {
        let scalar = |element, values: Option<Vec<Expr>>| {
            vec![self.fact_with(Some(element), Vec::new().into(), values)]
        };
        let list = |element, count: usize, values: Option<Vec<Expr>>| {
            vec![self.fact_with(Some(element), Dims::from(&[count][..]), values)]
        };
        let names = [
            "value",
            "value_int",
            "value_ints",
            "value_float",
            "value_floats",
            "value_string",
            "value_strings",
        ];
        let value = names.into_iter().find_map(|name| self.attribute(name));
        Ok(match value {
            Some(AttributeValue::Tensor(tensor)) => vec![Fact::of_tensor(tensor, true)],
            Some(AttributeValue::Int(value)) => {
                scalar(ElementType::I64, Some(vec![Expr::from(*value)]))
            }
            Some(AttributeValue::Ints(values)) => {
                let exprs = values.iter().copied().map(Expr::from).collect();
                list(ElementType::I64, values.len(), Some(exprs))
            }
            Some(AttributeValue::Float(_)) => scalar(ElementType::F32, None),
            Some(AttributeValue::Floats(values)) => list(ElementType::F32, values.len(), None),
            Some(AttributeValue::Text(_)) => scalar(ElementType::String, None),
            Some(AttributeValue::Texts(values)) => list(ElementType::String, values.len(), None),
            _ => return Err("it has no value".into()),
        })
    }

    pub(super) fn constant_of_shape(&mut self) -> Results {
        let tensor = match self.attribute("value") {
            Some(AttributeValue::Tensor(tensor)) => Some(tensor),
            _ => None,
        };
        let element = tensor.map_or(ElementType::F32, |tensor| tensor.element());
        let Some(shape) = self.values(0) else {
            let rank =
                self.ranked(0).and_then(|dims| dims.first()?.size()).filter(|rank| *rank <= 64);
            let dims = rank.map_or(Dims::Unranked, |rank| vec![Dim::UNKNOWN; rank].into());
            return Ok(vec![Fact::new(Some(element), dims)]);
        };
        let dims: Vec<Dim> =
            shape.iter().map(|size| self.dim(Some(size))).collect::<Result<_, _>>()?;
        let dims = Dims::from(dims);
        let count = dims.sizes().and_then(|sizes| elements(&sizes).ok());
        let value = tensor.and_then(|tensor| tensor.ints()?.first().copied());
        let values = match (count, value) {
            (Some(count), Some(value)) if count <= FOLDED => Some(vec![Expr::from(value); count]),
            _ => None,
        };
        Ok(vec![self.fact_with(Some(element), dims, values)])
    }

    pub(super) fn range(&mut self) -> Results {
        let element = self.element(0);
        let one = |input: usize| match self.values(input) {
            Some([only]) => Some(only.clone()),
            _ => None,
        };
        let (Some(start), Some(end), Some(step)) = (one(0), one(1), one(2)) else {
            return Ok(vec![Fact::new(element, vec![Dim::UNKNOWN].into())]);
        };
        let span = end.sub(&start);
        let count = match (span.as_ref().and_then(Expr::constant), step.constant()) {
            (_, Some(0)) => return Err("the step is 0".into()),
            (Some(span), Some(step)) => {
                // Rounded up, and never below 0.
                let steps = i128::from(span).div_euclid(i128::from(step));
                let rest = i128::from(span).rem_euclid(i128::from(step));
                let up = steps + i128::from(rest != 0 && step > 0);
                i64::try_from(up.max(0)).ok().map(Expr::from)
            }
            // From 0 on by ones there are as many as the end says.
            (None, Some(1)) => span.filter(|span| span.is_at_least(0)),
            _ => None,
        };
        let dim = self.dim(count.as_ref())?;
        let values =
            match (count.and_then(|count| count.constant()), start.constant(), step.constant()) {
                (Some(count), Some(start), Some(step)) if count <= FOLDED as i64 => {
                    let at =
                        |index: i64| start.checked_add(index.checked_mul(step)?).map(Expr::from);
                    (0..count).map(at).collect()
                }
                _ => None,
            };
        Ok(vec![self.fact_with(element, vec![dim].into(), values)])
    }

    pub(super) fn one_hot(&mut self) -> Results {
        let element = self.element(2);
        let Some(dims) = self.ranked(0) else {
            return Ok(vec![Fact::new(element, Dims::Unranked)]);
        };
        let mut dims = dims.to_vec();
        let axis = self.axis(self.int("axis").unwrap_or(-1), dims.len().saturating_add(1))?;
        let depth = self.values(1).and_then(|values| values.first().cloned());
        let depth = self.dim(depth.as_ref())?;
        dims.insert(axis, depth);
        Ok(vec![Fact::new(element, dims.into())])
    }

    pub(super) fn non_zero(&mut self) -> Results {
        let rank = self.ranked(0).map_or(Dim::UNKNOWN, |dims| Dim::Size(dims.len().max(1)));
        let dims = vec![rank, Dim::UNKNOWN];
        Ok(vec![Fact::new(Some(ElementType::I64), dims.into())])
    }
}
