//! Tensors out of shapes and numbers.

#[cfg(feature = "run")]
pub(super) mod run;

use simulcast_core::{Dim, Dims, elements};

use super::rows;
use crate::ElementType;
use crate::expr::SizeExpr;
use crate::infer::{FOLDED, Fact, InferNode, Results};
use crate::model::AttributeValue;

rows! { "", ROWS:
    "BlackmanWindow" 17 "index -> _" infer window;
    "Constant" 1 "-> _" infer constant;
    "ConstantOfShape" 9 "int64 -> _" infer constant_of_shape run whole(run::of_shape);
    "EyeLike" 9 "_ -> _" infer random_like run whole_unless(run::eye, run::eye_refusal);
    "HammingWindow" 17 "index -> _" infer window;
    "HannWindow" 17 "index -> _" infer window;
    "Multinomial" 7 "F -> _" infer multinomial;
    "OneHot" 9 "_ _ T -> T" infer one_hot run whole(run::one_hot);
    "RandomNormal" 1 "-> _" infer random;
    "RandomUniform" 1 "-> _" infer random;
    "Range" 11 "N N N -> N" infer range run whole(run::range);
}

impl InferNode<'_, '_, '_> {
    fn constant(&mut self) -> Results {
        let scalar = |element, values: Option<Vec<SizeExpr>>| {
            vec![self.fact_with(Some(element), Vec::new().into(), values)]
        };
        let list = |element, count: usize, values: Option<Vec<SizeExpr>>| {
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
                scalar(ElementType::I64, Some(vec![SizeExpr::from(*value)]))
            }
            Some(AttributeValue::Ints(values)) => {
                let exprs = values.iter().copied().map(SizeExpr::from).collect();
                list(ElementType::I64, values.len(), Some(exprs))
            }
            Some(AttributeValue::Float(value)) => {
                let fact = Fact::new(Some(ElementType::F32), Vec::new().into());
                vec![fact.with_floats(Some([*value].into()))]
            }
            Some(AttributeValue::Floats(values)) => {
                let fact = Fact::new(Some(ElementType::F32), Dims::from(&[values.len()][..]));
                let known = (values.len() <= FOLDED).then(|| values.as_slice().into());
                vec![fact.with_floats(known)]
            }
            Some(AttributeValue::Text(_)) => scalar(ElementType::String, None),
            Some(AttributeValue::Texts(values)) => list(ElementType::String, values.len(), None),
            _ => return Err("it has no value".into()),
        })
    }

    fn constant_of_shape(&mut self) -> Results {
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
            (Some(count), Some(value)) if count <= FOLDED => {
                Some(vec![SizeExpr::from(value); count])
            }
            _ => None,
        };
        Ok(vec![self.fact_with(Some(element), dims, values)])
    }

    fn range(&mut self) -> Results {
        let element = self.element(0);
        let one = |input: usize| match self.values(input) {
            Some([only]) => Some(only.clone()),
            _ => None,
        };
        let (Some(start), Some(end), Some(step)) = (one(0), one(1), one(2)) else {
            let known = |input: usize| Some(f64::from(*self.input(input).known_floats()?.first()?));
            if let (Some(start), Some(end), Some(step)) = (known(0), known(1), known(2)) {
                let count = ((end - start) / step).ceil().max(0.0);
                let size = (count < 1e15).then(|| SizeExpr::from(count as i64));
                let dim = self.dim(size.as_ref())?;
                return Ok(vec![Fact::new(element, vec![dim].into())]);
            }
            return Ok(vec![Fact::new(element, vec![Dim::UNKNOWN].into())]);
        };
        let span = end.sub(&start);
        let count = match (span.as_ref().and_then(SizeExpr::constant), step.constant()) {
            (_, Some(0)) => return Err("the step is 0".into()),
            (Some(span), Some(step)) => {
                // Rounded up, and never below 0.
                let steps = i128::from(span).div_euclid(i128::from(step));
                let rest = i128::from(span).rem_euclid(i128::from(step));
                let up = steps + i128::from(rest != 0 && step > 0);
                i64::try_from(up.max(0)).ok().map(SizeExpr::from)
            }
            // From 0 on by ones there are as many as the end says.
            (None, Some(1)) => span.filter(|span| span.is_at_least(0)),
            _ => None,
        };
        let dim = self.dim(count.as_ref())?;
        let values =
            match (count.and_then(|count| count.constant()), start.constant(), step.constant()) {
                (Some(count), Some(start), Some(step)) if count <= FOLDED as i64 => {
                    let at = |index: i64| {
                        start.checked_add(index.checked_mul(step)?).map(SizeExpr::from)
                    };
                    (0..count).map(at).collect()
                }
                _ => None,
            };
        Ok(vec![self.fact_with(element, vec![dim].into(), values)])
    }

    /// Random numbers in sizes that are an attribute.
    fn random(&mut self) -> Results {
        let element = self.element_of("dtype").or(Some(ElementType::F32));
        let shape = self.ints("shape").ok_or("it has no shape")?;
        let size = |size: &i64| usize::try_from(*size).map_err(|_| format!("a size is {size}"));
        let dims: Vec<usize> = shape.iter().map(size).collect::<Result<_, _>>()?;
        Ok(vec![Fact::new(element, Dims::from(dims.as_slice()))])
    }

    /// A window of a length that is an input.
    fn window(&mut self) -> Results {
        let element = self.element_of("output_datatype").or(Some(ElementType::F32));
        let size = self.values(0).and_then(|values| values.first().cloned());
        let dim = self.dim(size.as_ref())?;
        Ok(vec![Fact::new(element, vec![dim].into())])
    }

    fn multinomial(&mut self) -> Results {
        let element = self.element_of("dtype").or(Some(ElementType::I32));
        let batch = self.ranked(0).and_then(|dims| dims.first().cloned()).unwrap_or(Dim::UNKNOWN);
        let count = usize::try_from(self.int("sample_size").unwrap_or(1));
        let count = count.map_or(Dim::UNKNOWN, Dim::Size);
        Ok(vec![Fact::new(element, vec![batch, count].into())])
    }

    fn one_hot(&mut self) -> Results {
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
}
