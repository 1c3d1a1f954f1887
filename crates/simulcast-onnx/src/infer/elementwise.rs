//! Operators that work element by element: those that broadcast, and those of one operand.

use simulcast_core::{Dims, Rule};

use super::Fact;
use super::call::{Call, Results};
use crate::ElementType;
use crate::expr::Expr;

/// What the elements of a result are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Element {
    /// Those of the input of that number.
    Of(usize),
    Bool,
}

impl Call<'_, '_, '_> {
    pub(super) fn elementwise(&mut self) -> Option<Results> {
        let all: Vec<usize> = (0..self.inputs.len()).collect();
        let (count, element) = match self.op() {
            "Add" | "Sub" | "Mul" | "Div" | "Pow" | "Mod" | "BitShift" | "BitwiseAnd"
            | "BitwiseOr" | "BitwiseXor" | "StringConcat" => (2, Element::Of(0)),
            "And" | "Or" | "Xor" | "Equal" | "Greater" | "Less" | "GreaterOrEqual"
            | "LessOrEqual" => (2, Element::Bool),
            "Where" => (3, Element::Of(1)),
            "Max" | "Min" | "Sum" | "Mean" => (all.len().max(1), Element::Of(0)),
            _ => return self.unidirectional().or_else(|| self.unary()),
        };
        if all.len() != count || !all.iter().all(|input| self.has(*input)) {
            return Some(Err(format!("it needs {count} inputs")));
        }
        let element = match element {
            Element::Of(input) => self.element(input),
            Element::Bool => Some(ElementType::Bool),
        };
        let rule = self.rule();
        let operands: Vec<_> = all.iter().map(|input| (*input, None)).collect();
        let dims = self.broadcast_as(rule, &operands, element);
        let values = self.folded(&dims);
        Some(Ok(vec![self.fact_with(element, dims, values)]))
    }

    /// The rule of the operator at this opset: NumPy's since 7 (of any number of inputs since 8),
    /// before that none, or with `broadcast=1` the second laid onto the first from `axis`.
    pub(super) fn rule(&self) -> Rule<'static> {
        let variadic = matches!(self.op(), "Max" | "Min" | "Sum" | "Mean");
        match (variadic, self.opset) {
            (true, ..8) => Rule::Exact,
            (false, ..7) => match self.int("broadcast") {
                Some(1..) => {
                    let axis = self.int("axis").and_then(|axis| isize::try_from(axis).ok());
                    Rule::Legacy { axis }
                }
                _ => Rule::Exact,
            },
            _ => Rule::Numpy,
        }
    }

    fn unidirectional(&mut self) -> Option<Results> {
        let element = self.element(0);
        match self.op() {
            "PRelu" => {
                // Before opset 7 a slope of more than one element is one for each channel.
                let rank = self.ranked(0).map_or(2, <[_]>::len);
                let rule = match self.opset {
                    ..7 => Rule::Legacy { axis: (rank > 1).then_some(1) },
                    _ => Rule::Unidirectional,
                };
                let dims = self.broadcast(rule, &[0, 1]);
                Some(Ok(vec![Fact::new(element, dims)]))
            }
            "Clip" => {
                // Its bounds are scalars since opset 11; nothing broadcasts.
                for bound in [1, 2] {
                    if self.opset < 11 || !self.has(bound) {
                        continue;
                    }
                    if self.ranked(bound).is_some_and(|dims| !dims.is_empty()) {
                        let what = if bound == 1 { "min" } else { "max" };
                        let dims = self.dims(bound);
                        return Some(Err(format!("{what} must be a scalar, not {dims}")));
                    }
                }
                Some(Ok(vec![Fact::new(element, self.dims(0).clone())]))
            }
            _ => None,
        }
    }

    /// One operand, whose sizes the result has.
    fn unary(&mut self) -> Option<Results> {
        let own @ Fact { element, dims, values } = self.input(0);
        let element = match self.op() {
            "Identity" => return Some(Ok(vec![own.clone()])),
            "Floor" | "Ceil" | "Round" if values.is_some() => return Some(Ok(vec![own.clone()])),
            "Neg" | "Abs" => {
                let values = values.as_deref().and_then(|values| self.folded_unary(values));
                return Some(Ok(vec![self.fact_with(*element, dims.clone(), values)]));
            }
            "Cast" => {
                let to = match (self.int("to"), self.text("to")) {
                    (Some(code), _) => i32::try_from(code).ok().and_then(ElementType::from_code),
                    (None, Some(name)) => ElementType::from_legacy_name(name),
                    (None, None) => None,
                };
                let Some(to) = to else { return Some(Err("it casts to no known type".into())) };
                // Whole numbers stay what they are in types that hold sizes.
                let kept = matches!(
                    to,
                    ElementType::I64 | ElementType::I32 | ElementType::F32 | ElementType::F64
                );
                let values = values.clone().filter(|_| kept);
                return Some(Ok(vec![Fact { element: Some(to), dims: dims.clone(), values }]));
            }
            "CastLike" => self.element(1),
            "QuantizeLinear" => self.element(2).or_else(|| match self.int("output_dtype") {
                Some(code @ 1..) => i32::try_from(code).ok().and_then(ElementType::from_code),
                _ => Some(ElementType::U8),
            }),
            "DequantizeLinear" => self.element(1),
            "Not" | "IsNaN" | "IsInf" => Some(ElementType::Bool),
            "Bernoulli" | "RandomNormalLike" | "RandomUniformLike" | "EyeLike" => {
                let code = self.int("dtype").and_then(|code| i32::try_from(code).ok());
                code.and_then(ElementType::from_code).or(*element)
            }
            "Dropout" => {
                let mask = if self.opset < 10 { *element } else { Some(ElementType::Bool) };
                let mask = Fact::new(mask, dims.clone());
                return Some(Ok(vec![Fact::new(*element, dims.clone()), mask]));
            }
            "Acos"
            | "Acosh"
            | "Asin"
            | "Asinh"
            | "Atan"
            | "Atanh"
            | "BitwiseNot"
            | "Ceil"
            | "Celu"
            | "Cos"
            | "Cosh"
            | "CumSum"
            | "CumProd"
            | "Elu"
            | "Erf"
            | "Exp"
            | "Floor"
            | "Gelu"
            | "HardSigmoid"
            | "HardSwish"
            | "Hardmax"
            | "LeakyRelu"
            | "Log"
            | "LogSoftmax"
            | "LpNormalization"
            | "LRN"
            | "MeanVarianceNormalization"
            | "Mish"
            | "Reciprocal"
            | "Relu"
            | "ReverseSequence"
            | "Round"
            | "ScatterElements"
            | "ScatterND"
            | "Scatter"
            | "TensorScatter"
            | "Selu"
            | "Shrink"
            | "Sigmoid"
            | "Sign"
            | "Sin"
            | "Sinh"
            | "Softmax"
            | "Softplus"
            | "Softsign"
            | "Sqrt"
            | "Swish"
            | "Tan"
            | "Tanh"
            | "ThresholdedRelu"
            | "Trilu" => *element,
            _ => return None,
        };
        Some(Ok(vec![Fact::new(element, dims.clone())]))
    }

    fn folded_unary(&self, values: &[Expr]) -> Option<Vec<Expr>> {
        let of = |value: &Expr| match self.op() {
            "Neg" => value.mul(&Expr::from(-1)),
            _ if value.is_at_least(0) => Some(value.clone()),
            _ => value.constant()?.checked_abs().map(Expr::from),
        };
        values.iter().map(of).collect()
    }

    /// The values of the result, where those of the operands are followed.
    fn folded(&self, dims: &Dims) -> Option<Vec<Expr>> {
        let rank_of_result = dims.dims()?.len();
        let operands: Vec<&[Expr]> =
            (0..self.inputs.len()).map(|input| self.values(input)).collect::<Option<_>>()?;
        // Shapes are computed in scalars and vectors.
        if rank_of_result > 1 {
            return None;
        }
        let count = operands.iter().map(|operand| operand.len()).max()?;
        let count = if operands.iter().any(|operand| operand.is_empty()) { 0 } else { count };
        let at = |operand: &[Expr], index: usize| match operand.len() {
            1 => operand.first().cloned(),
            _ => operand.get(index).cloned(),
        };
        let value = |index: usize| {
            let own: Vec<Expr> = operands.iter().map(|o| at(o, index)).collect::<Option<_>>()?;
            match (self.op(), own.as_slice()) {
                ("Where", [condition, one, other]) => match condition.constant()? {
                    0 => Some(other.clone()),
                    _ => Some(one.clone()),
                },
                (_, [first, rest @ ..]) => {
                    rest.iter().try_fold(first.clone(), |left, right| self.fold(&left, right))
                }
                _ => None,
            }
        };
        (0..count).map(value).collect()
    }

    /// Whether quotients are rounded: of integers they are, of floats only exact ones are followed.
    fn is_integer(&self) -> bool {
        matches!(self.element(0), Some(ElementType::I64 | ElementType::I32))
    }

    fn fold(&self, a: &Expr, b: &Expr) -> Option<Expr> {
        let both = || Some((a.constant()?, b.constant()?));
        let truth = |truth: bool| Some(Expr::from(i64::from(truth)));
        let difference = a.sub(b);
        let above = |low: i64| difference.as_ref().is_some_and(|d| d.is_at_least(low));
        let below = |low: i64| b.sub(a).is_some_and(|d| d.is_at_least(low));
        match self.op() {
            "Add" | "Sum" => a.add(b),
            "Sub" => difference,
            "Mul" => a.mul(b),
            "Div" if !self.is_integer() => a.div_exact(b),
            "Div" => match both() {
                Some((a, b)) => a.checked_div(b).map(Expr::from),
                None if a.is_at_least(0) && b.is_at_least(0) => a.div_floor(b),
                None => None,
            },
            "Mod" => {
                let (a, b) = both()?;
                (a >= 0 && b > 0).then(|| Expr::from(a % b))
            }
            "Max" if above(0) => Some(a.clone()),
            "Max" if below(0) => Some(b.clone()),
            "Min" if above(0) => Some(b.clone()),
            "Min" if below(0) => Some(a.clone()),
            "Equal" if a == b => truth(true),
            "Equal" if above(1) || below(1) => truth(false),
            "Greater" if above(1) => truth(true),
            "Greater" if below(0) => truth(false),
            "Less" if below(1) => truth(true),
            "Less" if above(0) => truth(false),
            _ => None,
        }
    }
}
