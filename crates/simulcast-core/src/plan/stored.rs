//! A plan as it is written down. What is read back is checked, since a file may say anything.

use alloc::collections::BTreeSet;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::{Alignment, Plan};
use crate::{Names, RuleKind};

/// One operand: its axes, each with its size and the result axis that it feeds.
#[derive(serde::Serialize, serde::Deserialize)]
struct Operand {
    shape: Vec<usize>,
    feeds: Vec<Option<usize>>,
}

#[derive(serde::Serialize, serde::Deserialize)]
pub(super) struct Stored {
    rule: RuleKind,
    alignment: Alignment,
    shape: Vec<usize>,
    operands: Vec<Operand>,
    target: Option<Vec<usize>>,
    names: Names,
}

impl From<Plan> for Stored {
    fn from(plan: Plan) -> Self {
        let operands = (0..plan.operands()).map(|operand| {
            let (shape, feeds) = plan.axes(operand).unwrap_or(&[]).iter().copied().unzip();
            Operand { shape, feeds }
        });
        let operands = operands.collect();
        let Plan { rule, alignment, shape, target, names, .. } = plan;
        Self { rule, alignment, shape, operands, target, names }
    }
}

// Implements E_BROADCAST_ANY_FUNC_2300.
impl TryFrom<Stored> for Plan {
    type Error = String;

    fn try_from(stored: Stored) -> Result<Self, String> {
        let Stored { rule, alignment, shape, operands, target, names } = stored;
        let (mut axes, mut ends) = (Vec::new(), Vec::new());
        for (number, operand) in operands.into_iter().enumerate() {
            let fail = |what: &str| Err(["operand ", &number.to_string(), " ", what].concat());
            if operand.shape.len() != operand.feeds.len() {
                return fail("does not say what each of its axes feeds");
            }
            let mut fed = BTreeSet::new();
            for (size, feeds) in operand.shape.into_iter().zip(operand.feeds) {
                let result = match feeds {
                    Some(axis) => shape.get(axis).copied(),
                    None => Some(1),
                };
                let fits = match result {
                    Some(result) => (size == 1) | (size == result),
                    None => false,
                };
                if !fits {
                    return fail("has a size that does not fit the result");
                }
                if !feeds.is_none_or(|axis| fed.insert(axis)) {
                    return fail("feeds a result axis twice");
                }
                axes.push((size, feeds));
            }
            ends.push(axes.len());
        }
        Ok(Self { rule, alignment, shape, axes, ends, target, names })
    }
}
