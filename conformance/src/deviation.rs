//! Deviations: where a recorded answer is not ours, and which listed reason explains it.
//!
//! `deviations.json` holds the names and the reasons; what a name means is here, as tight as it can
//! be said, so that a new difference does not hide behind an old one.

use std::fs;

use serde_json::Value;
use simulcast_core::{Dim, Dims, Interval, Rule, RuleKind, resolve};

use crate::data::{Answer, Case, Question, Stage, folder};
use crate::ours;

/// A named reason.
pub struct Reason {
    pub name: String,
    pub when: String,
    pub why: String,
    /// The system, rule and stage that it is about; empty for the reasons of `two_rules`.
    about: [String; 3],
}

impl Reason {
    /// The system, and who of it was asked where that is not plain.
    pub fn who(&self) -> String {
        let [system, _, stage] = &self.about;
        match &stage[..] {
            "ran" => format!("{system}, evaluate"),
            "cpu" => format!("{system}, CPU plugin"),
            "inferred" => format!("{system}, inference"),
            _ => system.clone(),
        }
    }
}

/// The listed reasons: deviations of ours, and differences between our own two rules with an axis.
pub struct Reasons {
    pub deviations: Vec<Reason>,
    pub two_rules: Vec<Reason>,
}

impl Reasons {
    pub fn read() -> Result<Self, String> {
        let path = folder().join("deviations.json");
        let text = fs::read_to_string(path).map_err(|error| error.to_string())?;
        let all: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
        let list = |key: &str| -> Vec<Reason> {
            let text = |reason: &Value, key: &str| reason[key].as_str().unwrap_or("").to_string();
            let read = |reason: &Value| Reason {
                name: text(reason, "name"),
                when: text(reason, "when"),
                why: text(reason, "why"),
                about: ["system", "rule", "stage"].map(|key| text(reason, key)),
            };
            all[key].as_array().map_or(Vec::new(), |list| list.iter().map(read).collect())
        };
        Ok(Self { deviations: list("deviations"), two_rules: list("two_rules") })
    }

    /// The reason that explains why `theirs` is not `ours`, as a position in the list.
    pub fn explain(&self, difference: &Difference<'_>) -> Option<usize> {
        let stage = Stage::SAID.iter().find(|(stage, _)| *stage == difference.stage)?.1;
        let rule = difference.case.question.rule.name();
        self.deviations.iter().position(|reason| {
            let [system, about, at] = &reason.about;
            system == difference.system
                && (about == rule || about == "*")
                && at == stage
                && difference.is(&reason.name)
        })
    }
}

/// A recorded answer that is not ours.
pub struct Difference<'a> {
    pub system: &'a str,
    pub case: &'a Case,
    pub stage: Stage,
    pub theirs: &'a Answer,
    pub ours: &'a Answer,
}

impl Difference<'_> {
    /// Whether the difference is the one of that name.
    fn is(&self, name: &str) -> bool {
        let question = &self.case.question;
        let (theirs, ours) = (self.theirs, self.ours);
        let they_refuse = *theirs == Answer::Refused && *ours == a_cut_to_b(question);
        let they_accept = theirs.accepts() && *ours == Answer::Refused;
        let known = question.sizes();
        let first = || question.shapes.first().cloned().map(Answer::Shape);
        match name {
            "pdpd-overhang" => they_refuse && question.axis.is_some() && overhang(question) > 0,
            "pdpd-0-under-1" => they_refuse && overhang(question) == 0 && meets(question, 0, 1),
            "pdpd-1-under-0" => they_accept && known.is_some() && meets(question, 1, 0),
            "pdpd-interval-wider" => {
                known.is_none() && *ours == a_cut_to_b(question) && wider(theirs, ours)
            }
            "pdpd-interval-hopeless" => {
                they_accept
                    && known.is_none()
                    && laid(question).iter().any(|&(a, b)| hopeless(a, b))
            }
            "to-interval-unchecked" => {
                let target = question.shape.as_deref().unwrap_or(&[]);
                they_accept
                    && *theirs == Answer::Shape(Dims::from(target))
                    && right(question, target).iter().any(|&(a, b)| hopeless(a, b))
            }
            "pdpd-python-default" => {
                let from_0 = Question { axis: Some(0), ..question.clone() };
                question.axis.is_none() && *theirs == ours::answer(&from_0)
            }
            "mapping-repeated-axes" => they_accept && !distinct(&question.axes),
            "mapping-scalar-axis" => {
                let size = |axis: i64| question.shape.as_ref()?.get(usize::try_from(axis).ok()?);
                let scalar = known == Some(vec![vec![]]);
                they_accept
                    && scalar
                    && matches!(question.axes[..], [axis] if size(axis) == Some(&1))
            }
            "empty-result-overrun" => {
                let outside = *theirs == Answer::Other("wrote outside".to_string());
                self.case.op == "Add" && outside && empty(self.out())
            }
            "broadcast-empty-operand" => {
                let died = *theirs == Answer::Crashed("SIGFPE".to_string());
                died && self.case.op.starts_with("Broadcast") && first().is_some_and(|s| empty(&s))
            }
            "broadcast-cpu-empty" => {
                empty(ours) && first().is_some_and(|s| *theirs == s && !empty(&s))
            }
            "broadcast-cpu-scalar" => {
                let scalar = Answer::Shape(Dims::Ranked(Vec::new()));
                matches!(theirs, Answer::Crashed(_))
                    && first() == Some(scalar.clone())
                    && *ours == scalar
            }
            "pdpd-old-equal-shapes" => they_accept && equal(question),
            "pdpd-old-only-ones" => {
                let ones = known.is_some_and(|s| s[1].iter().all(|&size| size == 1));
                they_accept && !equal(question) && ones && overhang(question) > 0
            }
            "pdpd-old-subsequence" => they_refuse && inner_one(question),
            "prelu-first-grows" => {
                let both = known.and_then(|sizes| resolve(Rule::Numpy, &sizes).ok());
                let both = both.map(|plan| Answer::Shape(Dims::from(plan.shape())));
                self.case.op == "PRelu" && they_accept && both.as_ref() == Some(theirs)
            }
            "prelu-unchecked" => {
                self.case.op == "PRelu" && they_accept && first().as_ref() == Some(theirs)
            }
            "paddle-overhang" => {
                let undefined = *theirs == Answer::Other("undefined".to_string());
                *ours == Answer::Refused && undefined && shorter_overhangs(question)
            }
            "paddle-negative-axis" => {
                they_accept && empty(theirs) && question.axis.is_some_and(|axis| axis < -1)
            }
            "paddle-to-scalar" => {
                they_accept
                    && first().as_ref() == Some(theirs)
                    && question.shape == Some(Vec::new())
            }
            "jax-transpose" => {
                they_accept && distinct(&question.axes) && !question.axes.is_sorted()
            }
            "jax-no-mapping" => {
                let rank = question.shape.as_ref().map(Vec::len);
                let same = known.is_some_and(|sizes| Some(sizes[0].len()) == rank);
                they_accept && question.axes.is_empty() && same && first().as_ref() == Some(theirs)
            }
            _ => false,
        }
    }

    /// What the system said in the first place.
    fn out(&self) -> &Answer {
        self.case.said.first().map_or(self.theirs, |(_, answer)| answer)
    }
}

/// The name of the reason why our two rules of one family differ on a question.
pub fn between_two_rules(question: &Question) -> &'static str {
    let sizes = question.sizes().unwrap_or_default();
    let [a, b] = &sizes[..] else {
        let one = sizes.iter().flatten().any(|&size| size == 1);
        return if one { "one-stretches" } else { "" };
    };
    match () {
        () if a == b => "equal-any-axis",
        () if b.len() > a.len() => "b-longer",
        () if b.is_empty() => "scalar-at-end",
        () if overhang(question) > 0 => "ones-overhang",
        () if laid(question).iter().any(|&(a, b)| a.size() == Some(1) && a != b) => "a-stretches",
        () => "",
    }
}

fn empty(answer: &Answer) -> bool {
    let Answer::Shape(dims) = answer else { return false };
    dims.sizes().is_some_and(|sizes| sizes.contains(&0))
}

fn distinct(axes: &[i64]) -> bool {
    let mut axes = axes.to_vec();
    axes.sort_unstable();
    axes.windows(2).all(|pair| pair[0] != pair[1])
}

fn equal(question: &Question) -> bool {
    question.shapes.windows(2).all(|pair| pair[0] == pair[1])
}

fn intervals(dims: &Dims) -> Vec<Interval> {
    dims.dims().unwrap_or(&[]).iter().map(Dim::interval).collect()
}

/// The axis of A that B's first axis is laid on, with the intervals of both.
fn placed(question: &Question) -> (usize, Vec<Interval>, Vec<Interval>) {
    let [a, b] = &question.shapes[..] else { return (0, Vec::new(), Vec::new()) };
    let (a, b) = (intervals(a), intervals(b));
    let start = match question.axis {
        None | Some(-1) => a.len().saturating_sub(b.len()),
        Some(axis) => usize::try_from(axis).unwrap_or(0),
    };
    (start, a, b)
}

/// How many axes of B hang over A's end.
fn overhang(question: &Question) -> usize {
    let (start, a, b) = placed(question);
    (start + b.len()).saturating_sub(a.len())
}

/// What meets where B is laid onto A.
fn laid(question: &Question) -> Vec<(Interval, Interval)> {
    let (start, a, b) = placed(question);
    a.into_iter().skip(start).zip(b).collect()
}

/// The document's result: A's shape, and of each size only what B allows.
fn a_cut_to_b(question: &Question) -> Answer {
    let (start, mut a, b) = placed(question);
    for (size, other) in a.iter_mut().skip(start).zip(b) {
        if !other.contains(1) {
            match size.intersect(other) {
                Some(both) => *size = both,
                None => return Answer::Refused,
            }
        }
    }
    Answer::Shape(a.into_iter().map(Dim::from).collect::<Vec<_>>().into())
}

/// What meets where the operand, second, is laid onto the target.
fn right(question: &Question, target: &[usize]) -> Vec<(Interval, Interval)> {
    let own = question.shapes.first().map(intervals).unwrap_or_default();
    target.iter().rev().map(|&size| size.into()).zip(own.into_iter().rev()).collect()
}

/// Whether A has size `a` somewhere where B has `b`.
fn meets(question: &Question, a: usize, b: usize) -> bool {
    laid(question).contains(&(a.into(), b.into()))
}

/// Whether no size of `b` is 1 or one of `a`.
fn hopeless(a: Interval, b: Interval) -> bool {
    !b.contains(1) && a.intersect(b).is_none()
}

/// Whether `theirs` allows all that `ours` does, and more.
fn wider(theirs: &Answer, ours: &Answer) -> bool {
    match (theirs, ours) {
        (Answer::Shape(Dims::Unranked), Answer::Shape(Dims::Ranked(_))) => true,
        (Answer::Shape(theirs), Answer::Shape(ours)) => {
            let (theirs, ours) = (intervals(theirs), intervals(ours));
            let inside = |(a, b): (&Interval, &Interval)| a.intersect(*b) == Some(*b);
            theirs.len() == ours.len() && theirs != ours && theirs.iter().zip(&ours).all(inside)
        }
        _ => false,
    }
}

/// Whether B has a 1, not among those at its end, where A has another size.
fn inner_one(question: &Question) -> bool {
    let one = Interval::from(1);
    let laid = laid(question);
    let kept = laid.iter().rposition(|&(_, b)| b != one).map_or(0, |last| last + 1);
    laid.iter().take(kept).any(|&(a, b)| b == one && a != one)
}

fn shorter_overhangs(question: &Question) -> bool {
    let mut ranks: Vec<usize> = question.shapes.iter().map(|dims| intervals(dims).len()).collect();
    ranks.sort_unstable();
    let axis = question.axis.and_then(|axis| usize::try_from(axis).ok()).unwrap_or(0);
    question.rule == RuleKind::Paddle && ranks[0] < ranks[1] && ranks[0] + axis > ranks[1]
}
