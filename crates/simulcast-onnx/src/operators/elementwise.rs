//! Operators that work element by element: those that broadcast, and those of one operand.

#[cfg(feature = "run")]
pub(super) mod run;

use simulcast_core::{Dims, Rule};

use super::Broadcasts::{Numpy, SinceEight, SinceSeven, Slope};
use super::rows;
use crate::ElementType;
use crate::expr::SizeExpr;
use crate::infer::{Fact, InferNode, Results};

rows! { "", ROWS:
    "Abs" 1 "N -> N" infer signed run steps(run::apply) [elementwise];
    "Acos" 7 "F -> F" infer same run steps(run::apply) [elementwise];
    "Acosh" 9 "F -> F" infer same run steps(run::apply) [elementwise];
    "Add" 1 "N N -> N" infer broadcast run steps(run::apply) [by(SinceSeven), elementwise];
    "And" 1 "bool bool -> bool" infer broadcast run steps(run::apply) [by(SinceSeven), elementwise];
    "Asin" 7 "F -> F" infer same run steps(run::apply) [elementwise];
    "Asinh" 9 "F -> F" infer same run steps(run::apply) [elementwise];
    "Atan" 7 "F -> F" infer same run steps(run::apply) [elementwise];
    "Atanh" 9 "F -> F" infer same run steps(run::apply) [elementwise];
    "Bernoulli" 15 "_ -> _" infer random_like;
    "BitCast" 26 "_ -> _";
    "BitShift" 11 "I I -> I" infer broadcast run steps(run::shift) [by(Numpy), elementwise];
    "BitwiseAnd" 18 "I I -> I" infer broadcast run steps(run::apply) [by(Numpy), elementwise];
    "BitwiseNot" 18 "I -> I" infer same run steps(run::apply) [elementwise];
    "BitwiseOr" 18 "I I -> I" infer broadcast run steps(run::apply) [by(Numpy), elementwise];
    "BitwiseXor" 18 "I I -> I" infer broadcast run steps(run::apply) [by(Numpy), elementwise];
    "Cast" 1 "_ -> _" infer cast run steps(run::cast) [elementwise, loses_text];
    "CastLike" 15 "_ T -> T" infer cast run steps(run::cast_like) [elementwise, loses_text];
    "Ceil" 1 "F -> F" infer rounded run steps(run::apply) [elementwise];
    "Celu" 12 "F -> F" infer same run steps(run::activation) [elementwise];
    "Clip" 1 "N N? N? -> N" infer clip run steps(run::clip) [elementwise];
    "Cos" 7 "F -> F" infer same run steps(run::apply) [elementwise];
    "Cosh" 9 "F -> F" infer same run steps(run::apply) [elementwise];
    "Div" 1 "N N -> N" infer broadcast run steps(run::divide) [by(SinceSeven), elementwise];
    "Elu" 1 "F -> F" infer same run steps(run::activation) [elementwise];
    "Equal" 1 "T T -> bool" infer broadcast run steps(run::apply) [by(SinceSeven), elementwise, loses_text];
    "Erf" 9 "N -> N" infer same run steps(run::apply) [elementwise];
    "Exp" 1 "F -> F" infer same run steps(run::apply) [elementwise];
    "Floor" 1 "F -> F" infer rounded run steps(run::apply) [elementwise];
    "Gelu" 20 "F -> F" infer same run steps(run::activation) [elementwise];
    "Greater" 1 "N N -> bool" infer broadcast run steps(run::apply) [by(SinceSeven), elementwise];
    "GreaterOrEqual" 12 "N N -> bool" infer broadcast run steps(run::apply) [by(Numpy), elementwise];
    "HardSigmoid" 1 "F -> F" infer same run steps(run::activation) [elementwise];
    "HardSwish" 14 "F -> F" infer same run steps(run::activation) [elementwise];
    "Identity" 1 "_ -> _" infer identity [elementwise];
    "IsInf" 10 "F -> bool" infer same run steps(run::is_inf) [elementwise];
    "IsNaN" 9 "F -> bool" infer same run steps(run::apply) [elementwise];
    "LeakyRelu" 1 "F -> F" infer same run steps(run::activation) [elementwise];
    "Less" 1 "N N -> bool" infer broadcast run steps(run::apply) [by(SinceSeven), elementwise];
    "LessOrEqual" 12 "N N -> bool" infer broadcast run steps(run::apply) [by(Numpy), elementwise];
    "Log" 1 "F -> F" infer same run steps(run::apply) [elementwise];
    "Max" 1 "N* -> N" infer broadcast run steps(run::variadic) [by(SinceEight), elementwise];
    "Mean" 1 "F* -> F" infer broadcast run steps(run::variadic) [by(SinceEight), elementwise];
    "Min" 1 "N* -> N" infer broadcast run steps(run::variadic) [by(SinceEight), elementwise];
    "Mish" 18 "F -> F" infer same run steps(run::activation) [elementwise];
    "Mod" 10 "N N -> N" infer broadcast run steps(run::modulo) [by(Numpy), elementwise];
    "Mul" 1 "N N -> N" infer broadcast run steps(run::apply) [by(SinceSeven), elementwise];
    "Neg" 1 "N -> N" infer signed run steps(run::apply) [elementwise];
    "Not" 1 "bool -> bool" infer signed run steps(run::apply) [elementwise];
    "Or" 1 "bool bool -> bool" infer broadcast run steps(run::apply) [by(SinceSeven), elementwise];
    "Pow" 1 "N N1 -> N" infer broadcast run steps(run::power) [by(SinceSeven), elementwise];
    "PRelu" 1 "N N -> N" infer slope run steps(run::prelu) [by(Slope), elementwise];
    "RandomNormalLike" 1 "_ -> _" infer random_like;
    "RandomUniformLike" 1 "_ -> _" infer random_like;
    "Reciprocal" 1 "F -> F" infer same run steps(run::apply) [elementwise];
    "Relu" 1 "N -> N" infer same run steps(run::apply) [elementwise];
    "Round" 11 "F -> F" infer rounded run steps(run::apply) [elementwise];
    "Selu" 1 "F -> F" infer same run steps(run::activation) [elementwise];
    "Shrink" 9 "N -> N" infer same run steps(run::shrink) [elementwise];
    "Sigmoid" 1 "F -> F" infer same run steps(run::apply) [elementwise];
    "Sign" 9 "N -> N" infer same run steps(run::apply) [elementwise];
    "Sin" 7 "F -> F" infer same run steps(run::apply) [elementwise];
    "Sinh" 9 "F -> F" infer same run steps(run::apply) [elementwise];
    "Softplus" 1 "F -> F" infer same run steps(run::activation) [elementwise];
    "Softsign" 1 "F -> F" infer same run steps(run::apply) [elementwise];
    "Sqrt" 1 "F -> F" infer same run steps(run::apply) [elementwise];
    "StringConcat" 20 "string string -> string" infer broadcast run steps(run::apply) [by(Numpy), elementwise];
    "Sub" 1 "N N -> N" infer broadcast run steps(run::apply) [by(SinceSeven), elementwise];
    "Sum" 1 "F* -> F" infer broadcast run steps(run::variadic) [by(SinceEight), elementwise];
    "Swish" 24 "F -> F" infer same run steps(run::activation) [elementwise];
    "Tan" 7 "F -> F" infer same run steps(run::apply) [elementwise];
    "Tanh" 1 "F -> F" infer same run steps(run::apply) [elementwise];
    "ThresholdedRelu" 10 "F -> F" infer same run steps(run::activation) [elementwise];
    "Where" 9 "bool T T -> T" infer broadcast run steps(run::apply) [by(Numpy), elementwise, moves(&[1, 2])];
    "Xor" 1 "bool bool -> bool" infer broadcast run steps(run::apply) [by(SinceSeven), elementwise];
}

impl InferNode<'_, '_, '_> {
    /// Operands that broadcast; the result's type is the signature's.
    fn broadcast(&mut self) -> Results {
        let inputs = self.row().inputs();
        let all: Vec<usize> = (0..self.inputs.len()).collect();
        let (least, most) = inputs.into_inner();
        let count = if most == usize::MAX { all.len().max(1) } else { least };
        if all.len() != count || !all.iter().all(|input| self.has(*input)) {
            return Err(format!("it needs {count} inputs"));
        }
        let element = self.output_element(0);
        let rule = self.rule();
        let operands: Vec<_> = all.iter().map(|input| (*input, None)).collect();
        let dims = self.broadcast_as(rule, &operands, element);
        let values = self.folded(&dims);
        let floats = if values.is_none() { self.folded_floats(&dims) } else { None };
        Ok(vec![self.fact_with(element, dims, values).with_floats(floats)])
    }

    /// The known floats of the result, computed as the operator would: factors of sizes.
    fn folded_floats(&self, dims: &Dims) -> Option<std::sync::Arc<[f32]>> {
        if self.element(0) != Some(ElementType::F32) || dims.dims()?.len() > 1 {
            return None;
        }
        let (a, b) = (self.input(0).known_floats()?, self.input(1).known_floats()?);
        let count = dims.sizes()?.first().copied().unwrap_or(1);
        let fold = |a: f32, b: f32| match self.op() {
            "Add" => Some(a + b),
            "Sub" => Some(a - b),
            "Mul" => Some(a * b),
            "Div" => Some(a / b),
            "Max" => Some(a.max(b)),
            "Min" => Some(a.min(b)),
            _ => None,
        };
        let at =
            |from: &[f32], index: usize| from.get(if from.len() == 1 { 0 } else { index }).copied();
        let two = self.inputs.len() == 2 && count <= crate::infer::FOLDED;
        two.then(|| (0..count).map(|n| fold(at(&a, n)?, at(&b, n)?)).collect())?
    }

    /// The rule of the operator at this opset.
    fn rule(&self) -> Rule<'static> {
        let rank = self.ranked(0).map_or(2, <[_]>::len);
        self.row().rule(self.opset, rank, |name| self.int(name))
    }

    fn slope(&mut self) -> Results {
        let element = self.element(0);
        let dims = self.broadcast_of(self.rule(), &[0, 1]);
        Ok(vec![Fact::new(element, dims)])
    }

    fn clip(&mut self) -> Results {
        // Its bounds are scalars since opset 11; nothing broadcasts.
        for (bound, what) in [(1, "min"), (2, "max")] {
            if self.opset < 11 || !self.has(bound) {
                continue;
            }
            if self.ranked(bound).is_some_and(|dims| !dims.is_empty()) {
                let dims = self.dims(bound);
                return Err(format!("{what} must be a scalar, not {dims}"));
            }
        }
        self.same()
    }

    /// The sizes of the first input; the type is the signature's.
    pub(super) fn same(&mut self) -> Results {
        Ok(vec![Fact::new(self.output_element(0), self.dims(0).clone())])
    }

    fn identity(&mut self) -> Results {
        Ok(vec![self.input(0).clone()])
    }

    fn rounded(&mut self) -> Results {
        match self.values(0) {
            // Whole numbers stay what they are.
            Some(_) => self.identity(),
            None => {
                let round = |x: &f32| match self.op() {
                    "Floor" => x.floor(),
                    "Ceil" => x.ceil(),
                    _ => x.round_ties_even(),
                };
                let floats = self.input(0).floats.as_ref();
                let floats = floats.map(|floats| floats.iter().map(round).collect());
                let fact = Fact::new(self.output_element(0), self.dims(0).clone());
                Ok(vec![fact.with_floats(floats)])
            }
        }
    }

    fn signed(&mut self) -> Results {
        let values = self.values(0).and_then(|values| self.folded_unary(values));
        Ok(vec![self.fact_with(self.element(0), self.dims(0).clone(), values)])
    }

    fn cast(&mut self) -> Results {
        let Fact { dims, values, .. } = self.input(0);
        if self.op() == "CastLike" {
            return Ok(vec![Fact::new(self.element(1), dims.clone())]);
        }
        let to = match (self.int("to"), self.text("to")) {
            (Some(code), _) => i32::try_from(code).ok().and_then(ElementType::from_code),
            (None, Some(name)) => ElementType::from_legacy_name(name),
            (None, None) => None,
        };
        let to = to.ok_or("it casts to no known type")?;
        // Whole numbers stay what they are in types that hold sizes.
        let kept =
            matches!(to, ElementType::I64 | ElementType::I32 | ElementType::F32 | ElementType::F64);
        let truth = to == ElementType::Bool;
        let truths = |values: &[SizeExpr]| {
            let one = |value: &SizeExpr| Some(SizeExpr::from(i64::from(value.constant()? != 0)));
            values.iter().map(one).collect()
        };
        let values = match truth {
            true => values.as_deref().and_then(truths),
            false => values.clone().filter(|_| kept),
        };
        let fact = Fact { values, ..Fact::new(Some(to), dims.clone()) };
        let floats = self.input(0).floats.clone().filter(|_| fact.values.is_none());
        Ok(vec![match to {
            ElementType::F32 | ElementType::F64 => fact.with_floats(floats),
            // The fraction goes.
            ElementType::I64 | ElementType::I32 => {
                let whole = floats.map(|floats| floats.iter().map(|x| x.trunc()).collect());
                Fact { floats: None, ..fact.with_floats(whole) }
            }
            _ => fact,
        }])
    }

    /// Random numbers in the sizes of the input.
    pub(super) fn random_like(&mut self) -> Results {
        let element = self.element_of("dtype").or(self.element(0));
        Ok(vec![Fact::new(element, self.dims(0).clone())])
    }

    fn folded_unary(&self, values: &[SizeExpr]) -> Option<Vec<SizeExpr>> {
        let of = |value: &SizeExpr| match self.op() {
            "Neg" => value.mul(&SizeExpr::from(-1)),
            "Not" => Some(SizeExpr::from(i64::from(value.constant()? == 0))),
            _ if value.is_at_least(0) => Some(value.clone()),
            _ => value.constant()?.checked_abs().map(SizeExpr::from),
        };
        values.iter().map(of).collect()
    }

    /// The values of the result, where those of the operands are followed.
    fn folded(&self, dims: &Dims) -> Option<Vec<SizeExpr>> {
        let rank_of_result = dims.dims()?.len();
        let operands: Vec<&[SizeExpr]> =
            (0..self.inputs.len()).map(|input| self.values(input)).collect::<Option<_>>()?;
        // Shapes are computed in scalars and vectors.
        if rank_of_result > 1 {
            return None;
        }
        let count = operands.iter().map(|operand| operand.len()).max()?;
        let count = if operands.iter().any(|operand| operand.is_empty()) { 0 } else { count };
        let at = |operand: &[SizeExpr], index: usize| match operand.len() {
            1 => operand.first().cloned(),
            _ => operand.get(index).cloned(),
        };
        let value = |index: usize| {
            let own: Vec<SizeExpr> =
                operands.iter().map(|o| at(o, index)).collect::<Option<_>>()?;
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

    fn fold(&self, a: &SizeExpr, b: &SizeExpr) -> Option<SizeExpr> {
        let both = || Some((a.constant()?, b.constant()?));
        let truth = |truth: bool| Some(SizeExpr::from(i64::from(truth)));
        let difference = a.sub(b);
        let above = |low: i64| difference.as_ref().is_some_and(|d| d.is_at_least(low));
        let below = |low: i64| b.sub(a).is_some_and(|d| d.is_at_least(low));
        match self.op() {
            "Add" | "Sum" => a.add(b),
            "Sub" => difference,
            "Mul" => a.mul(b),
            "Div" if !self.is_integer() => a.div_exact(b),
            "Div" => match both() {
                Some((a, b)) => a.checked_div(b).map(SizeExpr::from),
                None if a.is_at_least(0) && b.is_at_least(0) => a.div_floor(b),
                None => None,
            },
            "And" => truth(both()?.0 != 0 && both()?.1 != 0),
            "Or" => truth(both()?.0 != 0 || both()?.1 != 0),
            "GreaterOrEqual" if above(0) => truth(true),
            "GreaterOrEqual" if below(1) => truth(false),
            "LessOrEqual" if below(0) => truth(true),
            "LessOrEqual" if above(1) => truth(false),
            "Mod" => {
                let (a, b) = both()?;
                (a >= 0 && b > 0).then(|| SizeExpr::from(a % b))
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
