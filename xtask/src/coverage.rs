//! Coverage of the core by its own tests: every line, and both sides of every branch.
//!
//! Decisions in the core have one condition each, so branch coverage is as good as MC/DC. A branch
//! that an invariant excludes carries a comment that begins with `Never else:` and says which.

use std::collections::BTreeMap;
use std::process::Command;

use crate::check::read;
use crate::run::{Step, command, ensure_cargo_tool, output, root, rustup};

/// Runs the tests with coverage, prints the table, and fails on what is not covered.
pub(crate) fn run() -> Result<(), String> {
    ensure_cargo_tool("cargo-llvm-cov")?;
    rustup(["component", "add", "llvm-tools", "--toolchain", "nightly"])?;
    Step::new("coverage of simulcast-core").run(llvm_cov(&["--summary-only"]))?;
    let text = output(llvm_cov(&["--no-run", "--text"]))?;
    let sides = Step::new("both sides of every branch").check(|| branches(&text));
    let missing = output(llvm_cov(&["--no-run", "--show-missing-lines", "--summary-only"]))?;
    let (_, lines) = missing.split_once("Uncovered Lines:").unwrap_or_default();
    let every = Step::new("every line").check(|| uncovered(lines));
    sides.and(every)
}

fn llvm_cov(more: &[&str]) -> Command {
    let base = ["+nightly", "llvm-cov", "-p", "simulcast-core", "--features", "serde", "--branch"];
    let mut command = command("cargo", base);
    command.args(more).env("CARGO_TARGET_DIR", root().join("target/coverage"));
    command
}

/// Adds up the instantiations of each branch in the report of llvm-cov, and names those that only
/// ever went one way.
fn branches(report: &str) -> Result<String, String> {
    let mut counts: BTreeMap<(String, usize, String), [bool; 2]> = BTreeMap::new();
    let mut file = String::new();
    for line in report.lines() {
        if let Some(path) = line.strip_suffix(".rs:") {
            file = format!("{path}.rs");
        }
        let Some((_, branch)) = line.split_once("Branch (") else { continue };
        let Some((place, taken)) = branch.split_once("): [True: ") else { continue };
        let Some((number, column)) = place.split_once(':') else { continue };
        let Some((yes, no)) = taken.trim_end_matches(']').split_once(", False: ") else { continue };
        let number = number.parse().map_err(|_| format!("not a line number: {line}"))?;
        let both = counts.entry((file.clone(), number, column.into())).or_default();
        both[0] |= yes != "0";
        both[1] |= no != "0";
    }
    let (mut one_way, mut excused) = (Vec::new(), 0);
    for ((file, number, _), _) in counts.iter().filter(|(_, both)| **both != [true, true]) {
        let source = read(file.as_ref())?;
        let above = number.checked_sub(2).and_then(|above| source.lines().nth(above));
        match above {
            Some(comment) if comment.trim().starts_with("// Never else:") => excused += 1,
            _ => one_way.push(format!("{file}:{number}")),
        }
    }
    match one_way.is_empty() {
        true => Ok(format!("{} branches, {excused} excluded by an invariant", counts.len())),
        false => Err(format!("only one side was taken at\n{}", one_way.join("\n"))),
    }
}

/// Lines that no test reaches, but for the closing brackets of branches that never are.
fn uncovered(lines: &str) -> Result<String, String> {
    let mut missing = Vec::new();
    for line in lines.lines() {
        let Some((file, numbers)) = line.rsplit_once(": ") else { continue };
        let source = read(file.trim().as_ref())?;
        for number in numbers.split(", ") {
            let at = number.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
            let nearby = at.map(|at| source.lines().take(at).skip(at.saturating_sub(3)));
            let mut nearby = nearby.into_iter().flatten();
            let excused = nearby.any(|line| line.trim().starts_with("// Never else:"));
            let text = at.and_then(|at| source.lines().nth(at));
            if !excused && text.is_none_or(|text| text.trim() != "}") {
                missing.push(format!("{}:{number}", file.trim()));
            }
        }
    }
    match missing.is_empty() {
        true => Ok("all that can be reached".into()),
        false => Err(format!("no test reaches\n{}", missing.join("\n"))),
    }
}
