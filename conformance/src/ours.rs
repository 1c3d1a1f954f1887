//! What the core says to the same questions.

use simulcast_core::{
    Dim, Dims, OwnedRule, Parts, Plan, Policy, elements, resolve, resolve_dims, resolve_into,
};

use crate::data::{Answer, Lists, Question};

/// The rule of a question; `None` where an axis is negative, which no rule that takes a list of
/// axes accepts.
fn rule(question: &Question) -> Option<OwnedRule> {
    let axes = question.axes.iter().map(|&axis| usize::try_from(axis).ok());
    let axes: Vec<usize> = axes.collect::<Option<_>>()?;
    let takes = question.rule.parameters();
    let shape = takes.shape.map(|_| question.shape.clone().unwrap_or_default());
    let (labels, axes) = (takes.labels.then(|| axes.clone()), takes.axes.map(|_| axes));
    OwnedRule::from_parts(
        question.rule,
        Parts { axis: question.axis.filter(|_| takes.axis), shape, axes, labels },
    )
}

/// The answer of the core. The three ways to ask it must agree.
pub fn answer(question: &Question) -> Answer {
    let Some(rule) = rule(question) else { return Answer::Refused };
    let rule = rule.as_rule();
    match question.sizes() {
        Some(sizes) => {
            let mut buffer = [0; 64];
            let into = resolve_into(rule, &sizes, &mut buffer).map(<[usize]>::to_vec);
            match (into, plan(question)) {
                (Ok(shape), Some(plan)) => {
                    assert_eq!(plan.shape(), shape, "{question}");
                    let dims = Dims::from(&shape[..]);
                    let symbolic = resolve_dims(rule, &question.shapes);
                    assert_eq!(symbolic.map(|plan| plan.shape().clone()), Ok(dims.clone()));
                    let mut policy = Policy::default();
                    policy.strictness = question.strictness.unwrap_or_default();
                    match policy.judge(&plan).denied.is_empty() {
                        true => Answer::Shape(dims),
                        false => Answer::Refused,
                    }
                }
                (Err(_), None) => Answer::Refused,
                (into, plan) => panic!("{question}: {into:?}, {plan:?}"),
            }
        }
        None => match resolve_dims(rule, &question.shapes) {
            Ok(plan) => Answer::Shape(plain(plan.shape())),
            Err(_) => Answer::Refused,
        },
    }
}

/// The plan, where all sizes are known and the rule accepts them.
pub fn plan(question: &Question) -> Option<Plan> {
    let sizes = question.sizes()?;
    resolve(rule(question)?.as_rule(), &sizes).ok()
}

fn plain(dims: &Dims) -> Dims {
    match dims {
        Dims::Ranked(dims) => {
            dims.iter().map(|dim| Dim::from(dim.interval())).collect::<Vec<_>>().into()
        }
        Dims::Unranked => Dims::Unranked,
    }
}

/// Every index of a shape, in row-major order.
fn indices(shape: &[usize]) -> impl Iterator<Item = Vec<usize>> {
    let shape = shape.to_vec();
    (0..elements(&shape).unwrap_or(0)).map(move |mut position| {
        let mut index = vec![0; shape.len()];
        for (at, &size) in index.iter_mut().zip(&shape).rev() {
            *at = position % size;
            position /= size;
        }
        index
    })
}

/// The position, in each operand, of each element of the result.
pub fn from(plan: &Plan) -> Lists {
    let offset =
        |operand: usize, index: &Vec<usize>| plan.offset(operand, index).unwrap_or(usize::MAX);
    (0..plan.operand_count())
        .map(|operand| indices(plan.shape()).map(|index| offset(operand, &index) as i64).collect())
        .collect()
}

/// The gradient of each operand where the result's is 0, 1, 2, ...: a sum over `sum_axes`, then a
/// reshape.
pub fn sums(plan: &Plan) -> Lists {
    (0..plan.operand_count())
        .map(|operand| {
            let summed = plan.sum_axes(operand).unwrap_or_default();
            let kept: Vec<usize> =
                (0..plan.shape().len()).filter(|k| !summed.contains(k)).collect();
            let sizes = plan.operand_shape(operand).unwrap_or_default();
            let mut out = vec![0; elements(&sizes).unwrap_or(0)];
            for (delta, index) in (0..).zip(indices(plan.shape())) {
                let position =
                    kept.iter().fold(0, |position, &k| position * plan.shape()[k] + index[k]);
                out[position] += delta;
            }
            out
        })
        .collect()
}
