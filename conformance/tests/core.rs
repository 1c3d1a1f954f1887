//! Replays the recorded answers of real systems, in `conformance/data`, against the core.
//!
//! Every answer that is not ours must be explained by a deviation listed in
//! `conformance/deviations.json`, and every listed deviation must occur. `docs/dialects.md` is
//! generated from the same comparison, and so is `conformance/other-answers.txt`;
//! `SIMULCAST_DIALECTS=write` writes them.

use std::{env, fs, io};

use simulcast_conformance::replay::Replay;
use simulcast_conformance::{data, dialects, ours};

// [E_BROADCAST_ANY_FUNC_2400]
#[test]
fn every_answer_is_ours_or_a_listed_deviation() {
    let replay = Replay::get();
    assert!(
        replay.unexplained.is_empty(),
        "{} answers that are neither ours nor listed:\n{}",
        replay.unexplained.len(),
        replay.unexplained.join("\n")
    );
    for (reason, found) in replay.reasons.deviations.iter().zip(&replay.explained) {
        assert!(!found.is_empty(), "{} never occurs: take it off the list", reason.name);
        assert!(!reason.why.is_empty(), "{} has no reason", reason.name);
    }
}

// [E_BROADCAST_ANY_FUNC_2400]
#[test]
fn the_recording_is_large_enough_to_mean_something() {
    let cases = || Replay::get().systems.iter().flat_map(|system| &system.cases);
    assert!(cases().count() >= 20_000);
    let valued = cases().filter(|case| case.from.is_some() || case.sums.is_some());
    assert!(valued.count() >= 2_000);
}

// [E_BROADCAST_ANY_FUNC_2400]
#[test]
fn the_examples_of_the_documents_hold_and_were_asked() {
    let replay = Replay::get();
    for example in &replay.examples {
        let question = &example.question;
        assert_eq!(ours::answer(question), example.says, "{question}");
        if let Some(plan) = ours::plan(question) {
            assert!(example.from.as_ref().is_none_or(|from| *from == ours::from(&plan)));
            assert!(example.sums.as_ref().is_none_or(|sums| *sums == ours::sums(&plan)));
        }
        let asked = replay.systems.iter().filter(|system| replay.said(system, question).is_some());
        assert!(asked.count() >= 2, "{question}");
    }
}

// [E_BROADCAST_ANY_FUNC_2400]
#[test]
fn the_page_of_dialects_is_current() {
    let page = dialects::page(Replay::get()).unwrap();
    assert!(is_current("../docs/dialects.md", &page).unwrap(), "{STALE}");
}

/// The lines of `data` to which our answer is another, with ours: for replays in other languages, so
/// that what a deviation means is said once.
#[test]
fn the_list_of_other_answers_is_current() {
    let replay = Replay::get();
    let mut list = String::new();
    for (number, (system, ours)) in replay.systems.iter().zip(&replay.ours).enumerate() {
        for (position, ours) in ours.iter().enumerate() {
            let Some(name) = replay.explain((number, position)) else { continue };
            let ours = match ours {
                data::Answer::Shape(dims) => dims.to_string(),
                refused => refused.to_string(),
            };
            // The first line of a file names the system.
            list += &format!("{}:{} {name}: {ours}\n", system.name, position + 2);
        }
    }
    assert!(is_current("other-answers.txt", &list).unwrap(), "{STALE}");
}

const STALE: &str = "the file is stale: run cargo xtask conformance --dialects";

/// Whether a generated file is what it should be; where that is asked for, it is written first.
fn is_current(name: &str, text: &str) -> io::Result<bool> {
    let path = data::folder().join(name);
    if env::var_os("SIMULCAST_DIALECTS").is_some_and(|what| what == "write") {
        fs::write(&path, text)?;
    }
    Ok(fs::read_to_string(&path)? == text)
}
