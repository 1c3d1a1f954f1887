//! Coverage of the core by its own tests: every line, and both sides of every branch.
//!
//! Decisions in the core have one condition each, so branch coverage is as good as MC/DC. What an
//! invariant excludes carries a comment that begins with `Never else:` and says which.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::process::Command;

use crate::check::read;
use crate::run::{Step, command, ensure_cargo_tool, output, root, rustup};

const REPORT: &str = "spec/coverage.md";

/// What the tests did with a file: for each line whether it was reached, for each branch which of
/// its sides were taken.
#[derive(Default)]
struct File {
    lines: BTreeMap<usize, bool>,
    branches: BTreeMap<(usize, String), [bool; 2]>,
}

/// Runs the tests with coverage, writes the report, and fails on what is not covered.
pub(crate) fn run() -> Result<(), String> {
    ensure_cargo_tool("cargo-llvm-cov")?;
    rustup(["component", "add", "llvm-tools", "--toolchain", "nightly"])?;
    Step::new("tests of simulcast-core, with coverage").run(llvm_cov(&["--summary-only"]))?;
    let files = files(&output(llvm_cov(&["--no-run", "--text"]))?)?;
    Step::new("every line, and both sides of every branch").check(|| {
        let (report, missing) = report(&files)?;
        std::fs::write(root().join(REPORT), report)
            .map_err(|error| format!("{REPORT}: {error}"))?;
        match missing.is_empty() {
            true => Ok(format!("all that can be reached; see {REPORT}")),
            false => Err(format!("not reached, or only one side taken:\n{}", missing.join("\n"))),
        }
    })
}

fn llvm_cov(more: &[&str]) -> Command {
    let base = ["+nightly", "llvm-cov", "-p", "simulcast-core", "--features", "serde", "--branch"];
    let mut command = command("cargo", base);
    command.args(more).env("CARGO_TARGET_DIR", root().join("target/coverage"));
    command
}

/// Reads the report of llvm-cov, and adds up the instantiations of generic code.
fn files(report: &str) -> Result<BTreeMap<String, File>, String> {
    let mut files: BTreeMap<String, File> = BTreeMap::new();
    let mut name = String::new();
    for line in report.lines() {
        if let Some(path) = line.strip_suffix(".rs:") {
            name = format!("{path}.rs");
        }
        let file = files.entry(name.clone()).or_default();
        let mut parts = line.split('|');
        let (number, count) = (parts.next().map(str::trim), parts.next().map(str::trim));
        if let (Some(Ok(number)), Some(count)) = (number.map(str::parse), count)
            && count.starts_with(|first: char| first.is_ascii_digit())
        {
            *file.lines.entry(number).or_default() |= count != "0";
        }
        let Some((_, branch)) = line.split_once("Branch (") else { continue };
        let Some((place, taken)) = branch.split_once("): [True: ") else { continue };
        let Some((number, column)) = place.split_once(':') else { continue };
        let Some((yes, no)) = taken.trim_end_matches(']').split_once(", False: ") else { continue };
        let number = number.parse().map_err(|_| format!("not a line number: {line}"))?;
        let both = file.branches.entry((number, column.into())).or_default();
        both[0] |= yes != "0";
        both[1] |= no != "0";
    }
    files.retain(|name, _| !name.is_empty());
    Ok(files)
}

/// The table, and what is missing from it.
fn report(files: &BTreeMap<String, File>) -> Result<(String, Vec<String>), String> {
    let mut out = String::from(
        "# Coverage of the core\n\nWritten by `cargo xtask coverage`: the tests of `simulcast-core` reach every line, and take both sides \
         of every branch,\nbut for what an invariant excludes (`Never else:` in the source says which). Decisions have one condition \
         each.\n\n| file | lines | reached | excluded | branches | both sides | excluded |\n|---|--:|--:|--:|--:|--:|--:|\n",
    );
    let mut missing = Vec::new();
    let mut total = [0_usize; 6];
    for (name, file) in files {
        let source = read(name.as_ref())?;
        let lines: Vec<&str> = source.lines().collect();
        // A comment up to three lines above; the closing bracket of a branch that never is.
        let excluded = |number: usize| {
            let above = number.saturating_sub(4)..number.saturating_sub(1);
            let marked = |line: &&str| line.trim().starts_with("// Never else:");
            lines.get(above).is_some_and(|above| above.iter().any(marked))
                || lines.get(number.wrapping_sub(1)).is_some_and(|line| line.trim() == "}")
        };
        let mut row = [file.lines.len(), 0, 0, file.branches.len(), 0, 0];
        for (&number, &reached) in &file.lines {
            match (reached, excluded(number)) {
                (true, _) => row[1] += 1,
                (false, true) => row[2] += 1,
                (false, false) => missing.push(format!("{name}:{number}")),
            }
        }
        for ((number, _), both) in &file.branches {
            match (both, excluded(*number)) {
                ([true, true], _) => row[4] += 1,
                (_, true) => row[5] += 1,
                (_, false) => missing.push(format!("{name}:{number}")),
            }
        }
        total.iter_mut().zip(row).for_each(|(total, own)| *total += own);
        let short = name.rsplit_once("/src/").map_or(name.as_str(), |(_, short)| short);
        let _ = writeln!(out, "| {short} | {} |", row.map(|n| n.to_string()).join(" | "));
    }
    let _ = writeln!(out, "| all | {} |", total.map(|n| n.to_string()).join(" | "));
    Ok((out, missing))
}
