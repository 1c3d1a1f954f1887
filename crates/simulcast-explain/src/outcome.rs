//! What came of a request: a plan, a symbolic plan or an error, judged and ready to be shown.

use simulcast_core::{
    Action, BroadcastError, Dims, Finding, FindingCode, Names, OwnedRule, Plan, Policy,
    SymbolicPlan, Verdict, resolve, resolve_dims,
};

use crate::Subject;

/// What came of shapes under a rule.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// Every size is known, and they broadcast.
    Plan(Plan),
    /// They broadcast as far as can be said.
    Symbolic(SymbolicPlan),
    /// They do not.
    Error(BroadcastError),
}

impl Outcome {
    /// Resolves shapes, plainly where every size is known; the names go to the plan or the error.
    ///
    /// ```
    /// use simulcast_core::{Names, OwnedRule, Rule, ShapeText};
    /// use simulcast_explain::Outcome;
    ///
    /// let shapes = [("N,1"), ("4")].map(|text| text.parse::<ShapeText>().unwrap().dims);
    /// let outcome = Outcome::of(&OwnedRule::from(Rule::Numpy), &shapes, &Names::default());
    /// assert!(matches!(outcome, Outcome::Symbolic(plan) if plan.shape().to_string() == "(N, 4)"));
    /// ```
    #[must_use]
    pub fn of(rule: &OwnedRule, shapes: &[Dims], names: &Names) -> Self {
        let sizes: Option<Vec<Vec<usize>>> = shapes.iter().map(Dims::sizes).collect();
        let outcome = match sizes {
            Some(sizes) => {
                resolve(rule.rule(), &sizes).map(|plan| Self::Plan(plan.with_names(names.clone())))
            }
            None => resolve_dims(rule.rule(), shapes).map(Self::Symbolic),
        };
        outcome.unwrap_or_else(|error| Self::Error(error.with_names(names.clone())))
    }

    /// What a policy says; `None` where a rank is not known, or sizes cannot stand for the symbols.
    ///
    /// Of an error it says nothing: that is refused already.
    #[must_use]
    pub fn judge(&self, policy: &Policy, names: &Names) -> Option<Verdict> {
        match self {
            Self::Plan(plan) => Some(policy.judge(plan)),
            Self::Symbolic(plan) => policy.judge_symbolic(plan, names),
            Self::Error(_) => Some(Verdict::default()),
        }
    }

    /// What is explained, with the findings that are to be shown.
    #[must_use]
    pub fn subject<'a>(&'a self, names: &'a Names, findings: &'a [Finding]) -> Subject<'a> {
        match self {
            Self::Plan(plan) => Subject::Plan(plan, findings),
            Self::Symbolic(plan) => Subject::Symbolic(plan, names, findings),
            Self::Error(error) => Subject::Error(error),
        }
    }
}

/// The policy of an explanation: every finding is shown but rank promotion, which the table shows as
/// a dot.
#[must_use]
pub fn shown() -> Policy {
    Policy::all(Action::Warn).with(FindingCode::RankPromotion, Action::Allow)
}
