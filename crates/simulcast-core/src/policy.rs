//! Policies: what to do about findings.
//!
//! A policy is a value; there is no global state.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::{Finding, FindingCode, Limits, Names, Plan, SymbolicPlan, tuple};

/// What to do about a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Action {
    /// Say nothing.
    Allow,
    /// Say so, and go on.
    Warn,
    /// Refuse.
    Raise,
}

impl Action {
    /// `allow`, `warn` or `raise`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Warn => "warn",
            Self::Raise => "raise",
        }
    }

    /// The action of that name: `allow`, `warn` or `raise`.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "allow" => Some(Self::Allow),
            "warn" => Some(Self::Warn),
            "raise" => Some(Self::Raise),
            _ => None,
        }
    }
}

/// How much implicit broadcasting is accepted at all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Level {
    /// No operand repeats, not even a scalar.
    Exact,
    /// Only scalars (rank 0) repeat.
    ScalarOnly,
    /// Sizes of 1 that are written out stretch, and scalars; no other rank is padded.
    SameRank,
    /// Whatever the rule accepts.
    #[default]
    Numpy,
}

impl Level {
    /// `exact`, `scalar-only`, `same-rank` or `numpy`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::ScalarOnly => "scalar-only",
            Self::SameRank => "same-rank",
            Self::Numpy => "numpy",
        }
    }

    /// The level of that name: `exact`, `scalar-only`, `same-rank` or `numpy`.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "exact" => Some(Self::Exact),
            "scalar-only" => Some(Self::ScalarOnly),
            "same-rank" => Some(Self::SameRank),
            "numpy" => Some(Self::Numpy),
            _ => None,
        }
    }
}

// Implements E_BROADCAST_ANY_FUNC_2130.
/// A level, an action for each code, and limits for growth.
///
/// The default lets everything pass and warns of the square outer alone: a warning that is mostly
/// wrong is worse than none.
///
/// ```
/// use simulcast_core::{Action, FindingCode, Policy, Rule, resolve};
///
/// let plan = resolve(Rule::Numpy, &[&[32, 1][..], &[32]])?;
/// assert_eq!(Policy::default().judge(&plan).warned.len(), 1);
/// let strict = Policy::default().with(FindingCode::SquareOuter, Action::Raise);
/// assert!(!strict.judge(&plan).raised.is_empty());
/// # Ok::<(), simulcast_core::BroadcastError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Policy {
    /// How much implicit broadcasting is accepted at all.
    pub level: Level,
    /// The limits for [`FindingCode::Growth`].
    pub limits: Limits,
    /// For each code, in the order of [`FindingCode::ALL`].
    actions: [Action; FindingCode::ALL.len()],
}

/// Policies that do the same about everything are equal.
impl PartialEq for Policy {
    fn eq(&self, other: &Self) -> bool {
        let about = |policy: &Self| {
            let actions = FindingCode::ALL.map(|code| policy.action(code));
            (policy.level, policy.limits, actions)
        };
        about(self) == about(other)
    }
}

impl Default for Policy {
    fn default() -> Self {
        Self::all(Action::Allow).with(FindingCode::SquareOuter, Action::Warn)
    }
}

/// What a policy says of a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Findings that refuse the broadcast.
    pub raised: Vec<Finding>,
    /// Findings to tell of.
    pub warned: Vec<Finding>,
}

impl Policy {
    /// One action for every code.
    #[must_use]
    pub fn all(action: Action) -> Self {
        let actions = FindingCode::ALL.map(|_| action);
        Self { level: Level::Numpy, limits: Limits::default(), actions }
    }

    /// The policy with another action for one code.
    #[must_use]
    pub fn with(mut self, code: FindingCode, action: Action) -> Self {
        if let Some(own) = self.actions.get_mut(code as usize) {
            *own = action;
        }
        self
    }

    /// The policy at another level.
    #[must_use]
    pub fn at(mut self, level: Level) -> Self {
        self.level = level;
        self
    }

    /// Whether it is the level that speaks of a code, so that no action can be chosen for it.
    #[must_use]
    pub const fn is_of_level(&self, code: FindingCode) -> bool {
        matches!(
            (self.level, code),
            (_, FindingCode::Repeat) | (Level::SameRank, FindingCode::RankPromotion)
        )
    }

    /// The action for a code. What a level forbids is always raised.
    #[must_use]
    pub fn action(&self, code: FindingCode) -> Action {
        match self.is_of_level(code) {
            true => Action::Raise,
            false => self.actions.get(code as usize).copied().unwrap_or(Action::Allow),
        }
    }

    /// Sorts the findings of a plan by what is to be done about them.
    #[must_use]
    pub fn judge(&self, plan: &Plan) -> Verdict {
        let mut verdict = Verdict::default();
        let mut found = plan.findings(&self.limits);
        if self.level == Level::SameRank {
            // Wherever the operand was laid: the level speaks of ranks alone.
            found.retain(|finding| finding.code != FindingCode::RankPromotion);
            found.extend(plan.padded());
        }
        for finding in self.repeats(plan).into_iter().chain(found) {
            match self.action(finding.code) {
                Action::Allow => {}
                Action::Warn => verdict.warned.push(finding),
                Action::Raise => verdict.raised.push(finding),
            }
        }
        verdict
    }

    /// As [`Policy::judge`], of sizes that are not all known: growth says nothing then, and fixes
    /// are given in words, without numbers. `None` where a rank is unknown or no sizes that stand
    /// for the symbols satisfy the constraints.
    #[must_use]
    pub fn judge_symbolic(&self, plan: &SymbolicPlan, names: &Names) -> Option<Verdict> {
        Some(self.judge_standing(plan, &plan.representative(names)?))
    }

    /// As [`Policy::judge_symbolic`], with the [`SymbolicPlan::representative`] that the caller has.
    #[must_use]
    pub fn judge_standing(&self, plan: &SymbolicPlan, representative: &Plan) -> Verdict {
        let names = representative.names();
        let mut verdict = self.judge(representative);
        for found in [&mut verdict.raised, &mut verdict.warned] {
            found.retain(|finding| finding.code != FindingCode::Growth);
            for finding in found {
                // What stands for a symbol is no size of the operand's.
                if finding.code == FindingCode::Repeat {
                    let own = plan.shapes().iter().enumerate();
                    let own = own.filter(|(operand, _)| finding.operands.contains(operand));
                    finding.message = own
                        .map(|(operand, own)| repeated(&names.operand(operand), own, plan.shape()))
                        .collect();
                }
                let fixes: Vec<String> =
                    finding.fixes.drain(..).map(|fix| fix.expression(names)).collect();
                if !fixes.is_empty() {
                    finding.message =
                        format!("{}; perhaps {}", finding.message, fixes.join(" or "));
                }
            }
        }
        verdict
    }

    /// SC100: the first operand that repeats though the level forbids it.
    fn repeats(&self, plan: &Plan) -> Option<Finding> {
        let exempt_rank = match self.level {
            Level::Exact => None,
            Level::ScalarOnly => Some(0),
            Level::SameRank | Level::Numpy => return None,
        };
        for operand in 0..plan.operands() {
            let shape = plan.operand_shape(operand).unwrap_or_default();
            let axes = plan.sum_axes(operand).unwrap_or_default();
            let forbidden = match axes.first() {
                None => false,
                Some(_) => exempt_rank != Some(shape.len()),
            };
            if forbidden {
                let name = plan.operand_name(operand);
                return Some(Finding {
                    code: FindingCode::Repeat,
                    operands: alloc::vec![operand],
                    axes,
                    message: repeated(&name, tuple(&shape), tuple(plan.shape())),
                    fixes: Vec::new(),
                });
            }
        }
        None
    }
}

/// What SC100 says.
fn repeated(name: &str, own: impl fmt::Display, result: impl fmt::Display) -> String {
    format!("{name} {own} is repeated to {result}")
}
