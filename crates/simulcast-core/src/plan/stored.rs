//! A plan as it is written down. What is read back is checked, since a file may say anything.

use alloc::collections::BTreeSet;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::{Alignment, Names, OwnedRule, Plan};

const VERSION: u32 = 1;

/// One operand: its axes, each with its size and the result axis that it feeds.
#[derive(serde::Serialize, serde::Deserialize)]
struct Operand {
    shape: Vec<usize>,
    feeds: Vec<Option<usize>>,
}

#[derive(serde::Serialize, serde::Deserialize)]
pub(super) struct Stored {
    /// The version of this format.
    version: u32,
    rule: OwnedRule,
    alignment: Alignment,
    shape: Vec<usize>,
    operands: Vec<Operand>,
    names: Names,
}

impl From<Plan> for Stored {
    fn from(plan: Plan) -> Self {
        let operands = (0..plan.operand_count()).map(|operand| {
            let (shape, feeds) = plan.axes(operand).unwrap_or(&[]).iter().copied().unzip();
            Operand { shape, feeds }
        });
        let operands = operands.collect();
        let Plan { rule, alignment, shape, names, .. } = plan;
        Self { version: VERSION, rule, alignment, shape, operands, names }
    }
}

// Implements E_BROADCAST_ANY_FUNC_2300.
impl TryFrom<Stored> for Plan {
    type Error = String;

    fn try_from(stored: Stored) -> Result<Self, String> {
        let Stored { version, rule, alignment, shape, operands, names } = stored;
        if version != VERSION {
            return Err(["version ", &version.to_string(), " is not known"].concat());
        }
        // Each size of the result must come from somewhere.
        let mut given: Vec<bool> = shape.iter().map(|&size| size == 1).collect();
        if let Some(target) = rule.target() {
            for ((given, size), own) in given.iter_mut().zip(&shape).rev().zip(target.iter().rev())
            {
                *given |= size == own;
            }
        }
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
                    Some(_) if size == 1 => true,
                    Some(result) => size == result,
                    None => false,
                };
                if !fits {
                    return fail("has a size that does not fit the result");
                }
                if let (Some(given), Some(result)) =
                    (feeds.and_then(|axis| given.get_mut(axis)), result)
                {
                    *given |= size == result;
                }
                if !feeds.is_none_or(|axis| fed.insert(axis)) {
                    return fail("feeds a result axis twice");
                }
                axes.push((size, feeds));
            }
            ends.push(axes.len());
        }
        if given.contains(&false) {
            return Err("a size of the result comes from no operand".to_string());
        }
        Ok(Self { rule, alignment, shape, axes, ends, names })
    }
}
