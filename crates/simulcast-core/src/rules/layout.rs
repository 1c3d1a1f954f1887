//! Layouts: where a rule lays operands' axes, before any size is looked at: a frame applied to ranks.

use alloc::vec::Vec;

use super::frame::Base;
use crate::{Refusal, Rule};

/// Where a rule lays operands' axes: the picture that a plan and an error share.
///
/// ```
/// use simulcast_core::{Layout, Rule};
///
/// let layout = Layout::new(Rule::Pdpd { axis: Some(1) }, 2, |operand| [4, 2][operand])?;
/// assert_eq!(layout.rank, 4);
/// assert_eq!(layout.targets[1], [Some(1), Some(2)]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Layout {
    /// The result's rank.
    pub rank: usize,
    /// For each operand and each of its axes the result axis; `None` where it is dropped.
    pub targets: Vec<Vec<Option<usize>>>,
    /// The shape that the rule itself carries, if any; it ends where the result ends.
    pub target: Option<Vec<usize>>,
}

impl Layout {
    /// The layout of `rule` for `count` operands, of which number m has `rank(m)` axes.
    ///
    /// # Errors
    ///
    /// A [`Refusal`] where the rule does not accept these ranks.
    pub fn new(
        rule: Rule<'_>,
        count: usize,
        rank: impl Fn(usize) -> usize,
    ) -> Result<Self, Refusal> {
        let frame = rule.frame(count, &rank)?;
        frame.check_distinct(count, &rank, &mut alloc::vec![0; frame.rank])?;
        let mut before = 0_usize;
        let targets = (0..count).map(|operand| {
            let own = rank(operand);
            let mut targets = frame.targets(operand, before, own);
            before = before.saturating_add(own);
            (0..own).map(|_| targets.step()).collect()
        });
        let targets = targets.collect();
        let target = match frame.base {
            Base::Given(shape) => Some(shape.to_vec()),
            Base::Ones | Base::First => None,
        };
        Ok(Self { rank: frame.rank, targets, target })
    }
}
