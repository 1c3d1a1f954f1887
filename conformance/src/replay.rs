//! The comparison: every recorded answer beside ours.

use std::collections::BTreeMap;
use std::fs;
use std::sync::OnceLock;

use serde_json::Value;
use simulcast_core::RuleKind;

use crate::data::{self, Answer, Case, Lists, Question, Stage, System, folder};
use crate::deviation::{Difference, Reasons};
use crate::ours;

/// An example of a source document.
pub struct Example {
    pub document: String,
    pub section: String,
    pub question: Question,
    pub says: Answer,
    pub from: Option<Lists>,
    pub sums: Option<Lists>,
}

/// A deviation that was found.
pub struct Found {
    pub question: Question,
    pub op: String,
    pub theirs: Answer,
    pub ours: Answer,
}

/// Questions by their text, with the system that was asked and its case, once a system.
type Asked = BTreeMap<String, Vec<(usize, usize)>>;

/// The name and the title of each document.
type Titles = Vec<(String, String)>;

/// All that was recorded, and how it compares.
pub struct Replay {
    pub systems: Vec<System>,
    pub reasons: Reasons,
    pub documents: Titles,
    pub examples: Vec<Example>,
    /// What was found of each listed deviation.
    pub explained: Vec<Vec<Found>>,
    /// Answers that are neither ours nor listed.
    pub unexplained: Vec<String>,
    /// Ours, for each case of each system.
    pub ours: Vec<Vec<Answer>>,
    /// Questions asked, by the family of their rule.
    pub asked: BTreeMap<&'static str, Asked>,
}

impl Replay {
    /// The replay, made once.
    pub fn get() -> &'static Self {
        static REPLAY: OnceLock<Replay> = OnceLock::new();
        REPLAY.get_or_init(|| Self::new().unwrap_or_else(|error| panic!("{error}")))
    }

    fn new() -> Result<Self, String> {
        let (systems, reasons) = (data::systems()?, Reasons::read()?);
        let (documents, examples) = documents()?;
        let mut explained: Vec<Vec<Found>> = reasons.deviations.iter().map(|_| vec![]).collect();
        let (mut unexplained, mut all_ours) = (Vec::new(), Vec::new());
        let mut asked: BTreeMap<_, Asked> = BTreeMap::new();
        for (number, system) in systems.iter().enumerate() {
            let mut own = Vec::new();
            for (position, case) in system.cases.iter().enumerate() {
                if let Some((family, text)) = key(&case.question) {
                    let places = asked.entry(family).or_default().entry(text).or_default();
                    if places.last().is_none_or(|&(last, _)| last != number) {
                        places.push((number, position));
                    }
                }
                let ours = ours::answer(&case.question);
                own.push(ours.clone());
                let describe =
                    |stage: Stage, theirs: &dyn std::fmt::Display, ours: &dyn std::fmt::Display| {
                        let (system, op, rule) = (&system.name, &case.op, case.question.rule);
                        format!(
                            "{system} {op}, {rule}, {stage:?}: {}: {theirs}, ours {ours}",
                            case.question
                        )
                    };
                for (stage, theirs) in case.said.iter().filter(|(_, theirs)| *theirs != ours) {
                    let stage = *stage;
                    let difference =
                        Difference { system: &system.name, case, stage, theirs, ours: &ours };
                    match reasons.explain(&difference) {
                        Some(reason) => explained[reason].push(Found {
                            question: case.question.clone(),
                            op: case.op.clone(),
                            theirs: theirs.clone(),
                            ours: ours.clone(),
                        }),
                        None => unexplained.push(describe(stage, theirs, &ours)),
                    }
                }
                for (stage, theirs, ours) in values(case) {
                    if *theirs != ours {
                        let text = |lists: &[Vec<i64>]| format!("{lists:?}");
                        unexplained.push(describe(stage, &text(theirs), &text(&ours)));
                    }
                }
            }
            all_ours.push(own);
        }
        let ours = all_ours;
        Ok(Self { systems, reasons, documents, examples, explained, unexplained, ours, asked })
    }

    /// The case in which a system was asked that question.
    pub fn said<'a>(&'a self, system: &System, question: &Question) -> Option<&'a Case> {
        let (family, text) = key(question)?;
        let places = self.asked.get(family)?.get(&text)?;
        let asked = |&&(number, _): &&(usize, usize)| self.systems[number].name == system.name;
        let &(number, position) = places.iter().find(asked)?;
        self.systems[number].cases.get(position)
    }

    /// The name of the deviation that explains why a system's first answer is not ours.
    pub fn explain(&self, (number, position): (usize, usize)) -> Option<&str> {
        let (system, ours) = (&self.systems[number], &self.ours[number][position]);
        let case = &system.cases[position];
        let (stage, theirs) = case.said.first()?;
        if theirs == ours {
            return None;
        }
        let difference = Difference { system: &system.name, case, stage: *stage, theirs, ours };
        Some(&self.reasons.deviations.get(self.reasons.explain(&difference)?)?.name)
    }
}

/// What was recorded of elements and gradients, with ours, where we accept the shapes.
fn values(case: &Case) -> Vec<(Stage, &Lists, Lists)> {
    let (from, sums) = (case.from.as_ref(), case.sums.as_ref());
    if from.is_none() && sums.is_none() {
        return Vec::new();
    }
    let Some(plan) = ours::plan(&case.question) else { return Vec::new() };
    let from = from.map(|theirs| (Stage::From, theirs, ours::from(&plan)));
    let sums = sums.map(|theirs| (Stage::Sums, theirs, ours::sums(&plan)));
    from.into_iter().chain(sums).collect()
}

/// The words under which different systems were asked the same: a family of rules, and the rest.
/// Only questions with known sizes, under no greater strictness, have them.
pub fn key(question: &Question) -> Option<(&'static str, String)> {
    let _known = question.sizes()?;
    if question.strictness.is_some() {
        return None;
    }
    match question.rule {
        RuleKind::Pdpd | RuleKind::Paddle => Some(("axis", question.to_string())),
        RuleKind::Axes | RuleKind::Mapping => {
            Some(("mapping", under(question, RuleKind::Mapping)?.to_string()))
        }
        rule => Some((rule.name(), question.to_string())),
    }
}

/// The same question under another rule of its family; `None` where that rule cannot put it.
pub fn under(question: &Question, rule: RuleKind) -> Option<Question> {
    let mut question = question.clone();
    if question.rule != rule && matches!(rule, RuleKind::Axes | RuleKind::Mapping) {
        // Each rule lists the axes that the other leaves out.
        let rank = question.shape.as_ref().map_or(0, Vec::len) as i64;
        let inside = question.axes.iter().all(|axis| (0..rank).contains(axis));
        if !inside || !question.axes.windows(2).all(|pair| pair[0] < pair[1]) {
            return None;
        }
        question.axes = (0..rank).filter(|axis| !question.axes.contains(axis)).collect();
    }
    question.rule = rule;
    Some(question)
}

fn documents() -> Result<(Titles, Vec<Example>), String> {
    let text = fs::read_to_string(folder().join("documents.json")).map_err(|e| e.to_string())?;
    let all: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    let titles = all["documents"].as_object().into_iter().flatten();
    let titles = titles.map(|(name, title)| (name.clone(), title.as_str().unwrap_or("").into()));
    let mut examples = Vec::new();
    for line in all["examples"].as_array().into_iter().flatten() {
        let line = line.as_object().ok_or("an example is an object")?;
        let text = |key: &str| line.get(key).and_then(Value::as_str).unwrap_or("").to_string();
        let says = line.get("says").ok_or("an example says nothing")?;
        examples.push(Example {
            document: text("document"),
            section: text("section"),
            question: Question::read(line)?,
            says: data::answer(says, line)?,
            from: data::positions(line, "from")?,
            sums: data::positions(line, "sums")?,
        });
    }
    Ok((titles.collect(), examples))
}
