//! Policies: what to do about findings.
//!
//! A policy is a value; there is no global state. Its text is read and written here, for Python, the
//! environment and configuration files.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;

use crate::{
    Certainty, Evidence, Finding, FindingCode, Limits, Names, Plan, SymbolicPlan, format_shape,
};

/// What to do about a finding.
///
/// ```
/// use simulcast_core::Action;
///
/// assert_eq!("deny".parse(), Ok(Action::Deny));
/// assert!(Action::Deny > Action::Warn);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Action {
    /// Say nothing.
    Allow,
    /// Say so, and go on.
    Warn,
    /// Refuse.
    Deny,
}

impl Action {
    /// `allow`, `warn` or `deny`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Warn => "warn",
            Self::Deny => "deny",
        }
    }

    /// Every action, the mildest first.
    pub const ALL: &'static [Self] = &[Self::Allow, Self::Warn, Self::Deny];
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Action {
    type Err = PolicyError;

    fn from_str(text: &str) -> Result<Self, PolicyError> {
        let known = Self::ALL.iter().copied().find(|action| action.name() == text);
        known
            .ok_or_else(|| PolicyError::new("action", text, Self::ALL.iter().map(|own| own.name())))
    }
}

/// How much implicit broadcasting is accepted at all.
///
/// ```
/// use simulcast_core::{Policy, Rule, Strictness, resolve};
///
/// let mut policy = Policy::default();
/// policy.strictness = Strictness::SameRank;
/// let plan = resolve(Rule::Numpy, &[&[2, 3][..], &[3]])?;
/// assert!(!policy.judge(&plan).denied.is_empty()); // a rank is padded
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Strictness {
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

impl Strictness {
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

    /// Every strictness, the strictest first.
    pub const ALL: &'static [Self] = &[Self::Exact, Self::ScalarOnly, Self::SameRank, Self::Numpy];
}

impl fmt::Display for Strictness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Strictness {
    type Err = PolicyError;

    fn from_str(text: &str) -> Result<Self, PolicyError> {
        let known = Self::ALL.iter().copied().find(|strictness| strictness.name() == text);
        known.ok_or_else(|| {
            PolicyError::new("strictness", text, Self::ALL.iter().map(|own| own.name()))
        })
    }
}

/// Why a text is no policy, or no part of one.
///
/// ```
/// use simulcast_core::Policy;
///
/// let error = "SC999=warn".parse::<Policy>().unwrap_err();
/// assert!(error.to_string().contains("SC999"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyError(String);

impl PolicyError {
    pub(super) fn new(what: &str, text: &str, known: impl Iterator<Item = &'static str>) -> Self {
        let text: String = text.chars().take(40).collect();
        let known: Vec<&str> = known.collect();
        Self(format!("there is no {what} {text:?}; there are {}", known.join(", ")))
    }
}

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl core::error::Error for PolicyError {}

// Implements E_BROADCAST_ANY_FUNC_2130.
/// A strictness, an action for each code at each [`Certainty`], and limits for growth.
///
/// The default lets everything pass and warns of the square outer alone, once it is confirmed: a warning
/// that is mostly wrong is worse than none.
///
/// ```
/// use simulcast_core::{Action, Evidence, FindingCode, Policy, Rule, resolve};
///
/// let plan = resolve(Rule::Numpy, &[&[32, 1][..], &[32]])?;
/// assert!(Policy::default().judge(&plan).warned.is_empty()); // 32 may meet 32 by chance
/// let again = Evidence { varied: true, ..Evidence::default() };
/// assert_eq!(Policy::default().judge_with(&plan, again).warned.len(), 1);
/// let strict = Policy::default().with(FindingCode::SquareOuter, Action::Deny);
/// assert!(!strict.judge(&plan).denied.is_empty());
/// assert_eq!(strict.to_string(), "numpy,SC102=deny");
/// assert_eq!("SC102=deny".parse(), Ok(strict));
/// # Ok::<(), simulcast_core::BroadcastError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Policy {
    /// How much implicit broadcasting is accepted at all.
    pub strictness: Strictness,
    /// The limits for [`FindingCode::Growth`].
    pub limits: Limits,
    /// For each code, in the order of [`FindingCode::ALL`], at each certainty, in that of
    /// [`Certainty::ALL`].
    actions: [[Action; Certainty::ALL.len()]; FindingCode::ALL.len()],
}

/// Policies that do the same about everything are equal.
impl PartialEq for Policy {
    fn eq(&self, other: &Self) -> bool {
        let about = |policy: &Self| {
            let mut actions = policy.actions;
            for (code, own) in FindingCode::ALL.iter().zip(&mut actions) {
                *own = policy.actions_of(*code);
            }
            (policy.strictness, policy.limits, actions)
        };
        about(self) == about(other)
    }
}

impl Default for Policy {
    fn default() -> Self {
        let square = FindingCode::SquareOuter;
        Self::all(Action::Allow).with_certainty(square, Certainty::Confirmed, Action::Warn)
    }
}

/// Whether one shape is another with ones after it, such as `(n, 1)` with `(n,)`: without that, there is no square outer.
fn has_column_of_row<S: AsRef<[usize]>>(shapes: &[S]) -> bool {
    shapes.iter().map(S::as_ref).any(|long| {
        let mut column = long;
        while let [rest @ .., 1] = column {
            column = rest;
        }
        let is_row = |own: &[usize]| match own {
            [] => false,
            own => column.ends_with(own),
        };
        match column.len() == long.len() {
            true => false,
            false => shapes.iter().map(S::as_ref).any(is_row),
        }
    })
}

/// What a policy says of a plan.
///
/// ```
/// use simulcast_core::{Policy, Rule, resolve};
///
/// let plan = resolve(Rule::Numpy, &[&[32, 1][..], &[32]])?;
/// let verdict = Policy::default().judge(&plan);
/// assert_eq!((verdict.denied.len(), verdict.warned.len()), (0, 0)); // 32 may meet 32 by chance
/// assert_eq!(verdict.unconfirmed.len(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Findings that refuse the broadcast.
    pub denied: Vec<Finding>,
    /// Findings to tell of.
    pub warned: Vec<Finding>,
    /// Findings that are only possible, and that the policy would act on, or act on more strictly, were they
    /// confirmed: whoever can see more than one call gathers [`Evidence`] about them and judges again.
    pub unconfirmed: Vec<Finding>,
}

impl Policy {
    /// One action for every code.
    #[must_use]
    pub fn all(action: Action) -> Self {
        let actions = [[action; Certainty::ALL.len()]; FindingCode::ALL.len()];
        Self { strictness: Strictness::Numpy, limits: Limits::default(), actions }
    }

    /// The policy of an explanation: every finding warns but rank promotion, which is how every bias is
    /// added and which a table shows as a dot.
    #[must_use]
    pub fn for_explanations() -> Self {
        Self::all(Action::Warn).with(FindingCode::RankPromotion, Action::Allow)
    }

    /// Whether the policy can have something to say of operands of these shapes under a right-aligned rule, whatever else is
    /// known about them but names of axes: to warn, to deny, or what more evidence would make it do.
    ///
    /// A necessary condition that costs next to nothing: callers in a hot path need not resolve where it is false.
    ///
    /// ```
    /// use simulcast_core::{Action, FindingCode, Policy};
    ///
    /// let policy = Policy::default();
    /// assert!(policy.may_warn(&[&[32, 1][..], &[32]]));
    /// assert!(!policy.may_warn(&[&[32, 10][..], &[10]]));
    /// let ranks = policy.with(FindingCode::RankPromotion, Action::Warn);
    /// assert!(ranks.may_warn(&[&[32, 10][..], &[10]]));
    /// assert!(!ranks.may_warn(&[&[10], &[10]]));
    /// ```
    #[must_use]
    pub fn may_warn<S: AsRef<[usize]>>(&self, shapes: &[S]) -> bool {
        let acts = |code: &FindingCode| {
            let mut actions = self.actions_of(*code).into_iter();
            actions.any(|action| action != Action::Allow)
        };
        let mut sizes = shapes.iter().map(S::as_ref);
        let first = sizes.next();
        if sizes.all(|own| Some(own) == first) {
            // Nothing repeats; a result alone can be larger than is allowed.
            return acts(&FindingCode::Growth);
        }
        let square = FindingCode::SquareOuter;
        let mut others = FindingCode::ALL.iter().filter(|code| match (self.strictness, **code) {
            // Always denied, and found only where the strictness asks for it.
            (Strictness::Numpy, FindingCode::Repeat) => false,
            (_, own) => own != square,
        });
        match (others.any(acts), acts(&square)) {
            (true, _) => true,
            (false, true) => has_column_of_row(shapes),
            (false, false) => false,
        }
    }

    /// The policy with another action for one code, at every certainty.
    #[must_use]
    pub fn with(self, code: FindingCode, action: Action) -> Self {
        let all = Certainty::ALL.iter();
        all.fold(self, |policy, &certainty| policy.with_certainty(code, certainty, action))
    }

    /// The policy with another action for one code at one certainty.
    #[must_use]
    pub fn with_certainty(
        mut self,
        code: FindingCode,
        certainty: Certainty,
        action: Action,
    ) -> Self {
        let own = self.actions.get_mut(code as usize);
        if let Some(own) = own.and_then(|own| own.get_mut(certainty as usize)) {
            *own = action;
        }
        self
    }

    /// The policy with another strictness.
    #[must_use]
    pub fn with_strictness(mut self, strictness: Strictness) -> Self {
        self.strictness = strictness;
        self
    }

    /// Whether it is the strictness that decides of a code, so that no action can be chosen for it.
    #[must_use]
    pub const fn is_fixed_by_strictness(&self, code: FindingCode) -> bool {
        matches!(
            (self.strictness, code),
            (_, FindingCode::Repeat) | (Strictness::SameRank, FindingCode::RankPromotion)
        )
    }

    /// The action for a code at a certainty. What the strictness forbids is always denied.
    #[must_use]
    pub fn action(&self, code: FindingCode, certainty: Certainty) -> Action {
        self.actions_of(code).get(certainty as usize).copied().unwrap_or(Action::Allow)
    }

    /// The actions for a code at each certainty, in the order of [`Certainty::ALL`].
    fn actions_of(&self, code: FindingCode) -> [Action; Certainty::ALL.len()] {
        let own = self.actions.get(code as usize).copied();
        match self.is_fixed_by_strictness(code) {
            true => [Action::Deny; Certainty::ALL.len()],
            false => own.unwrap_or([Action::Allow; Certainty::ALL.len()]),
        }
    }

    /// Sorts the findings of a plan by what is to be done about them, knowing nothing but its sizes.
    #[must_use]
    pub fn judge(&self, plan: &Plan) -> Verdict {
        self.judge_with(plan, Evidence::default())
    }

    /// Sorts the findings of a plan by what is to be done about them.
    #[must_use]
    pub fn judge_with(&self, plan: &Plan, evidence: Evidence) -> Verdict {
        self.sort(self.found(plan), |_| evidence)
    }

    /// The findings of a plan, those of the strictness too.
    fn found(&self, plan: &Plan) -> Vec<Finding> {
        let mut found = plan.findings(&self.limits);
        if self.strictness == Strictness::SameRank {
            // Wherever the operand was laid: the strictness speaks of ranks alone.
            found.retain(|finding| finding.code != FindingCode::RankPromotion);
            found.extend(plan.padded());
        }
        self.repeats(plan).into_iter().chain(found).collect()
    }

    /// Decides how certain findings are, and sorts them.
    fn sort(&self, found: Vec<Finding>, evidence: impl Fn(&Finding) -> Evidence) -> Verdict {
        let mut verdict = Verdict::default();
        for mut finding in found {
            let Some(certainty) = evidence(&finding).certainty(finding.code) else { continue };
            finding.certainty = certainty;
            let action = self.action(finding.code, certainty);
            if action < self.action(finding.code, Certainty::Confirmed) {
                verdict.unconfirmed.push(finding.clone());
            }
            match action {
                Action::Allow => {}
                Action::Warn => verdict.warned.push(finding),
                Action::Deny => verdict.denied.push(finding),
            }
        }
        verdict
    }

    /// As [`Policy::judge`], of sizes that are not all known: growth says nothing then, and fixes
    /// are given in words, without numbers. `None` where a rank is unknown or no sizes that stand
    /// for the symbols satisfy the constraints.
    #[must_use]
    pub fn judge_symbolic(
        &self,
        plan: &SymbolicPlan,
        names: &Names,
        evidence: Evidence,
    ) -> Option<Verdict> {
        Some(self.judge_with_representative(plan, &plan.representative(names)?, evidence))
    }

    /// Like [`Policy::judge_symbolic`], but reuses a [`SymbolicPlan::representative`] that the caller
    /// already computed.
    ///
    /// Where one symbol carries a finding, that is evidence too.
    #[must_use]
    pub fn judge_with_representative(
        &self,
        plan: &SymbolicPlan,
        representative: &Plan,
        evidence: Evidence,
    ) -> Verdict {
        let names = representative.names();
        let mut verdict = self.sort(self.found(representative), |finding| Evidence {
            symbol: evidence.symbol | plan.carries(finding),
            ..evidence
        });
        let Verdict { denied, warned, unconfirmed } = &mut verdict;
        for found in [denied, warned, unconfirmed] {
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

    /// SC100: the first operand that repeats though the strictness forbids it.
    fn repeats(&self, plan: &Plan) -> Option<Finding> {
        let exempt_rank = match self.strictness {
            Strictness::Exact => None,
            Strictness::ScalarOnly => Some(0),
            Strictness::SameRank | Strictness::Numpy => return None,
        };
        for operand in 0..plan.operand_count() {
            let shape = plan.operand_shape(operand).unwrap_or_default();
            let axes = plan.sum_axes(operand).unwrap_or_default();
            let forbidden = match axes.first() {
                None => false,
                Some(_) => exempt_rank != Some(shape.len()),
            };
            if forbidden {
                let name = plan.operand_name(operand);
                let message = repeated(&name, format_shape(&shape), format_shape(plan.shape()));
                let operands = alloc::vec![operand];
                return Some(Finding::new(FindingCode::Repeat, operands, axes, message));
            }
        }
        None
    }
}

/// What SC100 says.
fn repeated(name: &str, own: impl fmt::Display, result: impl fmt::Display) -> String {
    format!("{name} {own} is repeated to {result}")
}

/// `same-rank,SC104=warn,growth=8`: the strictness, what differs from the default, and limits.
/// `SC102:possible=warn` is the action at one certainty.
impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plain = Self::default().with_strictness(self.strictness);
        write!(f, "{}", self.strictness)?;
        for &code in FindingCode::ALL {
            let (own, plain) = (self.actions_of(code), plain.actions_of(code));
            match own {
                own if own == plain => {}
                [possible, confirmed] if possible == confirmed => {
                    write!(f, ",{code}={confirmed}")?;
                }
                own => {
                    let actions = Certainty::ALL.iter().zip(own).zip(plain);
                    for ((certainty, action), _) in actions.filter(|((_, own), plain)| own != plain)
                    {
                        write!(f, ",{code}:{certainty}={action}")?;
                    }
                }
            }
        }
        if self.limits.growth != plain.limits.growth {
            write!(f, ",growth={}", self.limits.growth)?;
        }
        match self.limits.bytes {
            Some(bytes) => write!(f, ",bytes={bytes}"),
            None => Ok(()),
        }
    }
}

impl FromStr for Policy {
    type Err = PolicyError;

    /// Reads what is shown: words with commas between them, each a strictness (`strict` too, which is short
    /// for `same-rank,SC102=deny`), an action for a code or for `all` of them, or a limit. A code may have a
    /// certainty after it, as in `SC102:confirmed=deny`; without one the action is for both.
    fn from_str(text: &str) -> Result<Self, PolicyError> {
        Self::from_words(text.split(',').map(str::trim).filter(|word| !word.is_empty()))
    }
}

impl Policy {
    /// The policy of the words of a text, in their order.
    ///
    /// # Errors
    ///
    /// A [`PolicyError`] for a word that says nothing, and for an action other than `deny` for what the
    /// strictness forbids.
    pub fn from_words<W: AsRef<str>>(
        words: impl IntoIterator<Item = W>,
    ) -> Result<Self, PolicyError> {
        let (mut policy, mut chosen) = (Self::default(), Vec::new());
        for word in words {
            chosen.extend(policy.set(word.as_ref())?);
        }
        for (code, action) in chosen {
            match (policy.is_fixed_by_strictness(code), action) {
                (false, _) | (true, Action::Deny) => {}
                (true, _) => {
                    return Err(PolicyError(format!(
                        "what the strictness forbids is denied: there is no action to choose for {code} at strictness {}",
                        policy.strictness
                    )));
                }
            }
        }
        Ok(policy)
    }

    /// Applies a word; returns the code and the action that it chose by name, if it did.
    fn set(&mut self, word: &str) -> Result<Option<(FindingCode, Action)>, PolicyError> {
        let Some((key, value)) =
            word.split_once('=').map(|(key, value)| (key.trim(), value.trim()))
        else {
            if word == "strict" {
                self.strictness = Strictness::SameRank;
                *self = self.clone().with(FindingCode::SquareOuter, Action::Deny);
                return Ok(None);
            }
            self.strictness =
                word.parse().map_err(|PolicyError(why)| PolicyError(format!("{why}, strict")))?;
            return Ok(None);
        };
        match key {
            "growth" => match value.parse::<f64>() {
                Ok(growth) if growth > 0.0 => self.limits.growth = growth,
                _ => return Err(PolicyError(format!("growth is a factor above 0, not {value:?}"))),
            },
            "bytes" => match value.parse() {
                Ok(bytes) => self.limits.bytes = Some(bytes),
                Err(_) => return Err(PolicyError(format!("bytes is a number, not {value:?}"))),
            },
            key => {
                let (chosen, action) = (key.parse::<Chosen>()?, value.parse()?);
                *self = self.clone().with_chosen(&chosen, action);
                return Ok(chosen.code.map(|code| (code, action)));
            }
        }
        Ok(None)
    }

    /// The policy with another action for the findings that a text chose.
    #[must_use]
    pub fn with_chosen(mut self, chosen: &Chosen, action: Action) -> Self {
        let codes = FindingCode::ALL.iter().copied();
        for code in codes.filter(|code| chosen.code.is_none_or(|own| own == *code)) {
            for certainty in chosen.certainties() {
                self = self.with_certainty(code, certainty, action);
            }
        }
        self
    }
}

/// Findings that a text chooses: `SC102`, `all`, or one of these at a certainty, as in `SC102:confirmed`.
///
/// ```
/// use simulcast_core::{Certainty, Chosen, FindingCode};
///
/// let chosen: Chosen = "SC102:confirmed".parse()?;
/// assert_eq!(chosen.code, Some(FindingCode::SquareOuter));
/// assert_eq!(chosen.certainty, Some(Certainty::Confirmed));
/// # Ok::<(), simulcast_core::PolicyError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Chosen {
    /// The code; `None` for all.
    pub code: Option<FindingCode>,
    /// The certainty; `None` for both.
    pub certainty: Option<Certainty>,
}

impl Chosen {
    /// The certainties that are chosen.
    pub fn certainties(&self) -> impl Iterator<Item = Certainty> {
        let chosen = self.certainty;
        Certainty::ALL.iter().copied().filter(move |own| chosen.is_none_or(|chosen| chosen == *own))
    }

    /// The text before the certainty, and the certainty.
    ///
    /// # Errors
    ///
    /// A [`PolicyError`] for what follows a colon and is no certainty.
    pub fn split(text: &str) -> Result<(&str, Option<Certainty>), PolicyError> {
        match text.split_once(':') {
            Some((code, certainty)) => Ok((code.trim_end(), Some(certainty.trim_start().parse()?))),
            None => Ok((text, None)),
        }
    }
}

impl FromStr for Chosen {
    type Err = PolicyError;

    fn from_str(text: &str) -> Result<Self, PolicyError> {
        let (code, certainty) = Self::split(text)?;
        let code = match code {
            "all" => None,
            code => Some(code.parse()?),
        };
        Ok(Self { code, certainty })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn what_is_shown_is_read_back() {
        for text in [
            "numpy",
            "exact",
            "scalar-only,SC103=deny",
            "same-rank,SC102=deny,SC104=warn,growth=8,bytes=1000000",
            "numpy,SC102=warn",
            "numpy,SC101:confirmed=warn,SC102:confirmed=deny",
            "numpy,SC102:possible=warn,SC102:confirmed=deny",
            "numpy,SC101=deny,SC102=allow,growth=1.5",
        ] {
            let policy: Policy = text.parse().unwrap();
            assert_eq!(policy.to_string(), text);
        }
        assert_eq!("".parse(), Ok(Policy::default()));
        let strict: Policy = " strict , SC102 = warn ".parse().unwrap();
        assert_eq!(strict.to_string(), "same-rank,SC102=warn");
        let confirmed: Policy = "all=deny,all:possible=allow".parse().unwrap();
        for &code in FindingCode::ALL {
            assert_eq!(confirmed.action(code, Certainty::Confirmed), Action::Deny);
        }
        assert_eq!("SC102 : confirmed = warn".parse(), Ok(Policy::default()));
        assert_eq!("all=warn".parse(), Ok(Policy::all(Action::Warn)));
    }

    #[test]
    fn what_is_no_policy_is_said_clearly() {
        for (text, said) in [
            (
                "loose",
                "there is no strictness \"loose\"; there are exact, scalar-only, same-rank, numpy, strict",
            ),
            ("SC999=warn", "there is no finding \"SC999\"; there are SC100, SC101"),
            ("SC102=raise", "there is no action \"raise\"; there are allow, warn, deny"),
            ("SC102:sure=warn", "there is no certainty \"sure\"; there are possible, confirmed"),
            ("growth=0", "growth is a factor above 0, not \"0\""),
            ("bytes=x", "bytes is a number, not \"x\""),
            (
                "same-rank,SC103=warn",
                "what the strictness forbids is denied: there is no action to choose for SC103",
            ),
            ("SC100=allow", "what the strictness forbids is denied"),
        ] {
            let error = text.parse::<Policy>().unwrap_err().to_string();
            assert!(error.starts_with(said), "{error}");
        }
    }
}
