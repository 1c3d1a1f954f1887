//! The page `docs/dialects.md`: who answers what, generated from the recorded answers.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use simulcast_core::{Dims, RuleKind};

use crate::data::{Answer, Case, Lists, Question, Stage, System};
use crate::deviation::between_two_rules;
use crate::ours;
use crate::replay::{Example, Found, Replay, under};

/// The page, the same bytes for the same data.
///
/// # Errors
///
/// Where systems disagree and no listed reason says why, or a listed reason says nothing.
pub fn page(replay: &Replay) -> Result<String, String> {
    let mut out = String::new();
    match write(&mut out, replay) {
        Ok(unexplained) if unexplained.is_empty() => {}
        Ok(unexplained) => return Err(format!("no listed reason for {}", unexplained.join("; "))),
        Err(error) => return Err(error.to_string()),
    }
    let said = |name: &str| out.contains(&format!("- **{name}**: "));
    match replay.reasons.two_rules.iter().find(|reason| !said(&reason.name)) {
        Some(reason) => Err(format!("{} never occurs: take it off the list", reason.name)),
        None => Ok(out),
    }
}

/// Writes the page; what comes back are disagreements without a reason.
fn write(out: &mut String, replay: &Replay) -> Result<Vec<String>, std::fmt::Error> {
    out.push_str(
        "# Dialects: who answers what\n\n\
         Generated from the recorded answers in `conformance/data` by `cargo xtask conformance --dialects`; a test\n\
         fails where it is stale. *Ours* is what the core says today.\n\n",
    );
    systems(out, replay)?;
    examples(out, replay)?;
    deviations(out, replay)?;
    disagreements(out, replay)
}

fn systems(out: &mut String, replay: &Replay) -> std::fmt::Result {
    out.push_str(
        "## What was asked\n\n\
         | system | version | rules | shape cases | with values | not as ours |\n|---|---|---|--:|--:|--:|\n",
    );
    let mut all = [0; 3];
    for (system, ours) in replay.systems.iter().zip(&replay.ours) {
        let versions: Vec<String> =
            system.versions.iter().map(|(k, v)| format!("{k} {v}")).collect();
        let strict = |case: &Case| case.question.strictness.is_some();
        let rules: BTreeSet<(RuleKind, bool)> =
            system.cases.iter().map(|case| (case.question.rule, strict(case))).collect();
        let rule = |&(rule, strict): &(RuleKind, bool)| match strict {
            true => format!("{rule} at strictness same-rank"),
            false => rule.to_string(),
        };
        let rules: Vec<String> = rules.iter().map(rule).collect();
        let valued = |case: &&Case| case.from.is_some() || case.sums.is_some();
        let other = |(case, ours): &(&Case, &Answer)| case.said.iter().any(|(_, a)| a != *ours);
        let counts = [
            system.cases.len(),
            system.cases.iter().filter(valued).count(),
            system.cases.iter().zip(ours).filter(other).count(),
        ];
        let [cases, valued, other] = counts;
        let (name, versions, rules) = (&system.name, versions.join(", "), rules.join(", "));
        writeln!(out, "| {name} | {versions} | {rules} | {cases} | {valued} | {other} |")?;
        all.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
    }
    let [cases, valued, other] = all;
    writeln!(out, "| all | | | {cases} | {valued} | {other} |\n")?;
    out.push_str(
        "Every recorded element position and every recorded gradient is ours. Where shapes differ, they differ for\n\
         the reasons below, and for no other.\n\n",
    );
    Ok(())
}

fn examples(out: &mut String, replay: &Replay) -> std::fmt::Result {
    out.push_str(
        "## The documents' examples\n\n\
         Each example of the source documents, with what the systems answer to it. Bold: not what the document says.\n\n",
    );
    for (document, title) in &replay.documents {
        writeln!(out, "### {document}: {title}\n")?;
        let of_document = || replay.examples.iter().filter(|e| e.document == *document);
        let mut sections: Vec<&str> = Vec::new();
        for example in of_document() {
            if !sections.contains(&&example.section[..]) {
                sections.push(&example.section);
            }
        }
        for section in sections {
            let examples: Vec<&Example> = of_document().filter(|e| e.section == section).collect();
            section_table(out, replay, section, &examples)?;
        }
    }
    Ok(())
}

fn section_table(
    out: &mut String,
    replay: &Replay,
    section: &str,
    examples: &[&Example],
) -> std::fmt::Result {
    let asked = |system: &&System| {
        examples.iter().any(|example| replay.said(system, &example.question).is_some())
    };
    let systems: Vec<&System> = replay.systems.iter().filter(asked).collect();
    let names: Vec<&str> = systems.iter().map(|system| &system.name[..]).collect();
    writeln!(out, "| {section} | document | {} | ours |", names.join(" | "))?;
    writeln!(out, "|---|---|{}---|", "---|".repeat(names.len()))?;
    for example in examples {
        let cell = |case: Option<&Case>| {
            let Some((_, answer)) = case.and_then(|case| case.said.first()) else {
                return String::new();
            };
            bold(answer, *answer != example.says)
        };
        let mut row = vec![example.question.to_string(), example.says.to_string()];
        row.extend(systems.iter().map(|system| cell(replay.said(system, &example.question))));
        let ours = ours::answer(&example.question);
        row.push(bold(&ours, ours != example.says));
        writeln!(out, "| {} |", row.join(" | "))?;
        let plan = ours::plan(&example.question);
        let from = plan.as_ref().map(ours::from);
        value_row(out, replay, &systems, example, ("elements", Stage::From), from.as_ref())?;
        let sums = plan.as_ref().map(ours::sums);
        value_row(
            out,
            replay,
            &systems,
            example,
            ("backprop of 0, 1, 2, ...", Stage::Sums),
            sums.as_ref(),
        )?;
    }
    out.push('\n');
    Ok(())
}

/// A row with what the document says of elements or gradients, if it says something.
fn value_row(
    out: &mut String,
    replay: &Replay,
    systems: &[&System],
    example: &Example,
    (title, stage): (&str, Stage),
    ours: Option<&Lists>,
) -> std::fmt::Result {
    let says = if stage == Stage::From { &example.from } else { &example.sums };
    let Some(says) = says else { return Ok(()) };
    let text = |lists: &Lists| {
        let all: Vec<String> = lists.iter().flatten().map(ToString::to_string).collect();
        all.join(" ")
    };
    let cell = |theirs: Option<&Lists>| match theirs {
        Some(theirs) if theirs == says => text(theirs),
        Some(theirs) => format!("**{}**", text(theirs)),
        None => String::new(),
    };
    let mut row = vec![title.to_string(), text(says)];
    row.extend(systems.iter().map(|system| {
        let case = replay.said(system, &example.question);
        cell(
            case.and_then(|case| {
                if stage == Stage::From { &case.from } else { &case.sums }.as_ref()
            }),
        )
    }));
    row.push(cell(ours));
    writeln!(out, "| {} |", row.join(" | "))
}

fn bold(answer: &Answer, stands_out: bool) -> String {
    if stands_out { format!("**{answer}**") } else { answer.to_string() }
}

fn deviations(out: &mut String, replay: &Replay) -> std::fmt::Result {
    out.push_str(
        "## Where our answer is another than a system's\n\n\
         All of them, with the smallest case of each kind. The names and reasons are those of `conformance/deviations.json`.\n\n\
         | name | system | rule | when | smallest case | theirs | ours | cases |\n|---|---|---|---|---|---|---|--:|\n",
    );
    let all = || replay.reasons.deviations.iter().zip(&replay.explained);
    for (reason, found) in all() {
        let Some(smallest) = found.iter().min_by_key(|f| (!f.ours.accepts(), size(&f.question)))
        else {
            continue;
        };
        let rules: BTreeSet<&str> = found.iter().map(|found| found.question.rule.name()).collect();
        let rules: Vec<&str> = rules.into_iter().collect();
        let Found { question, op, theirs, ours } = smallest;
        let (name, when, rules) = (&reason.name, &reason.when, rules.join(", "));
        let who = reason.who();
        writeln!(
            out,
            "| {name} | {who} | {rules} | {when} | {op}: {question} | {theirs} | {ours} | {} |",
            found.len()
        )?;
    }
    out.push('\n');
    for (reason, _) in all() {
        writeln!(out, "- **{}**: {}", reason.name, reason.why)?;
    }
    out.push('\n');
    Ok(())
}

/// What makes a case smaller than another: known, not empty, few axes, small sizes, an axis near 0.
fn size(question: &Question) -> ([bool; 2], [usize; 4], String) {
    let rank = |dims: &Dims| dims.dims().map_or(9, <[_]>::len);
    let low = |dims: &Dims| -> usize {
        dims.dims().unwrap_or(&[]).iter().map(|dim| dim.interval().lo()).sum()
    };
    let own = question.shape.as_deref().unwrap_or(&[]);
    let sizes = question.sizes().unwrap_or_default();
    let empty = sizes.iter().flatten().chain(own).any(|&size| size == 0);
    let ranks = question.shapes.iter().map(rank).sum::<usize>() + own.len() + question.axes.len();
    let total = question.shapes.iter().map(low).sum::<usize>() + own.iter().sum::<usize>();
    let negative = question.axes.iter().filter(|axis| **axis < 0).count();
    let axis = question.axis.map_or(0, isize::unsigned_abs);
    ([question.sizes().is_none(), empty], [ranks, total, negative, axis], question.to_string())
}

/// The kinds of disagreement in a family: by what everyone says and why, the cases with all cells.
type Kinds<'a> = BTreeMap<Vec<String>, Vec<(&'a Question, Vec<String>)>>;

fn disagreements(out: &mut String, replay: &Replay) -> Result<Vec<String>, std::fmt::Error> {
    let mut unexplained = Vec::new();
    out.push_str(
        "## Where systems disagree with each other\n\n\
         Questions that at least two systems were asked. One row a kind of disagreement, with its smallest case.\n\n",
    );
    for (family, questions) in &replay.asked {
        let rules: Vec<RuleKind> = match *family {
            "axis" => vec![RuleKind::Pdpd, RuleKind::Paddle],
            "mapping" => vec![RuleKind::Mapping, RuleKind::Axes],
            name => RuleKind::from_name(name).into_iter().collect(),
        };
        let numbers: BTreeSet<usize> = questions.values().flatten().map(|&(n, _)| n).collect();
        if numbers.len() < 2 {
            continue;
        }
        let names: Vec<&str> = numbers.iter().map(|&n| &replay.systems[n].name[..]).collect();
        let shared = questions.values().filter(|places| places.len() > 1);
        let kinds = kinds(replay, &rules, &numbers, shared.clone());
        for (pattern, cases) in &kinds {
            if pattern.last().is_some_and(|why| why.split(", ").any(str::is_empty)) {
                unexplained.extend(cases.first().map(|(question, _)| question.to_string()));
            }
        }
        let titles: Vec<&str> = rules.iter().map(|rule| rule.name()).collect();
        let title = list(&titles);
        writeln!(out, "### {} {title}\n", if rules.len() > 1 { "Rules" } else { "Rule" })?;
        let (asked, differ) = (shared.count(), kinds.values().map(Vec::len).sum::<usize>());
        if differ == 0 {
            writeln!(out, "{} agree on all {asked} questions.\n", list(&names))?;
            continue;
        }
        writeln!(
            out,
            "{asked} questions were asked of two systems or more; on {differ} they disagree.\n"
        )?;
        kinds_table(out, &names, &titles, &kinds)?;
        for reason in &replay.reasons.two_rules {
            let used = |why: &String| why.split(", ").any(|name| name == reason.name);
            if kinds.keys().any(|pattern| pattern.last().is_some_and(used)) {
                writeln!(out, "- **{}**: {}. {}", reason.name, reason.when, reason.why)?;
            }
        }
        if rules.len() > 1 {
            out.push('\n');
        }
    }
    // The file ends with one line break.
    out.truncate(out.trim_end().len() + 1);
    Ok(unexplained)
}

fn kinds<'a>(
    replay: &'a Replay,
    rules: &[RuleKind],
    numbers: &BTreeSet<usize>,
    shared: impl Iterator<Item = &'a Vec<(usize, usize)>>,
) -> Kinds<'a> {
    let mut kinds = Kinds::new();
    for places in shared {
        let case = |&(number, position): &(usize, usize)| &replay.systems[number].cases[position];
        let answer = |place: &(usize, usize)| case(place).said.first().map(|(_, answer)| answer);
        if places.windows(2).all(|pair| answer(&pair[0]) == answer(&pair[1])) {
            continue;
        }
        let Some(question) = places.first().map(|place| &case(place).question) else { continue };
        let ours: Vec<Option<Answer>> =
            rules.iter().map(|&rule| under(question, rule).map(|q| ours::answer(&q))).collect();
        let mut why: BTreeSet<&str> =
            places.iter().filter_map(|&place| replay.explain(place)).collect();
        if matches!(&ours[..], [Some(one), Some(other)] if one != other) {
            why.insert(between_two_rules(question));
        }
        let theirs =
            |number: &usize| places.iter().find(|place| place.0 == *number).and_then(answer);
        let all: Vec<Option<&Answer>> =
            numbers.iter().map(theirs).chain(ours.iter().map(Option::as_ref)).collect();
        let word = |answer: &Option<&Answer>| match answer {
            Some(answer) if answer.accepts() => "accepts".into(),
            Some(answer) => answer.to_string(),
            None => String::new(),
        };
        let mut pattern: Vec<String> = all.iter().map(word).collect();
        pattern.push(why.into_iter().collect::<Vec<_>>().join(", "));
        let cell = |answer: &Option<&Answer>| answer.map_or(String::new(), ToString::to_string);
        kinds.entry(pattern).or_default().push((question, all.iter().map(cell).collect()));
    }
    kinds
}

fn kinds_table(
    out: &mut String,
    names: &[&str],
    rules: &[&str],
    kinds: &Kinds<'_>,
) -> std::fmt::Result {
    let ours: Vec<String> = match rules {
        [_] => vec!["ours".into()],
        rules => rules.iter().map(|rule| format!("ours, {rule}")).collect(),
    };
    writeln!(
        out,
        "| smallest case | {} | {} | cases | why |",
        names.join(" | "),
        ours.join(" | ")
    )?;
    writeln!(out, "|---|{}--:|---|", "---|".repeat(names.len() + ours.len()))?;
    let mut rows = Vec::new();
    for (pattern, cases) in kinds {
        let Some((question, cells)) = cases.iter().min_by_key(|(q, _)| size(q)) else { continue };
        let why = pattern.last().map_or("", String::as_str);
        let row = format!("| {question} | {} | {} | {why} |", cells.join(" | "), cases.len());
        rows.push((cases.len(), size(question), row));
    }
    rows.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    rows.iter().try_for_each(|(_, _, row)| writeln!(out, "{row}"))?;
    out.push('\n');
    Ok(())
}

/// `A, B and C`
fn list(names: &[&str]) -> String {
    match names {
        [before @ .., last] if !before.is_empty() => format!("{} and {last}", before.join(", ")),
        names => names.concat(),
    }
}
