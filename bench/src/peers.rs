//! Peers: engines in other processes.
//!
//! A peer reads a question a line on its standard input, as JSON: a case, with the fields of
//! `cases.json` and the `seconds` to spend on each engine, or `seconds` alone, for another turn of the
//! same case. It answers on its standard output with a line for each of its engines that has an answer,
//! `{"engine": "numpy", "threads": 1, "best": 1e-3, "median": 1e-3}`, and then with an empty line. What
//! it says on standard error is shown. So the peers take turns with the engines of this process, several
//! turns a case, and nobody is measured while another one works.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde::Deserialize;

use simulcast_bench::case::Case;
use simulcast_bench::rotation::count;

/// What a peer measured.
#[derive(Deserialize)]
pub(crate) struct Answer {
    pub(crate) engine: String,
    pub(crate) threads: usize,
    pub(crate) best: f64,
    pub(crate) median: f64,
}

/// A process that answers.
pub(crate) struct Peer {
    command: String,
    process: Child,
    cases: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Peer {
    /// Starts a peer: words with spaces between them.
    pub(crate) fn start(command: &str) -> Result<Self, String> {
        let mut words = command.split_whitespace();
        let program = words.next().ok_or("a peer needs a command")?;
        let failed = |error: std::io::Error| format!("{command}: {error}");
        let mut start = Command::new(program);
        start.args(words).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = start.spawn().map_err(failed)?;
        match (process.stdin.take(), process.stdout.take()) {
            (Some(cases), Some(answers)) => {
                let answers = BufReader::new(answers);
                Ok(Self { command: command.into(), process, cases, answers })
            }
            _ => Err(format!("{command}: it has no input or output")),
        }
    }

    /// What the peer measures on a case.
    pub(crate) fn ask(&mut self, case: &Case, seconds: f64) -> Result<Vec<Answer>, String> {
        let mut question = serde_json::to_value(case).map_err(|error| error.to_string())?;
        question["seconds"] = seconds.into();
        question["result"] = serde_json::json!(case.output());
        question["types"] = serde_json::json!(case.types());
        question["gives"] = case.gives().into();
        question["copies"] = count(case).into();
        self.answered(&question)
    }

    /// What it measures on the same case in another turn.
    pub(crate) fn ask_again(&mut self, seconds: f64) -> Result<Vec<Answer>, String> {
        self.answered(&serde_json::json!({ "seconds": seconds }))
    }

    fn answered(&mut self, question: &serde_json::Value) -> Result<Vec<Answer>, String> {
        let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", self.command);
        writeln!(self.cases, "{question}").map_err(|error| failed(&error))?;
        let mut all = Vec::new();
        loop {
            let mut line = String::new();
            if self.answers.read_line(&mut line).map_err(|error| failed(&error))? == 0 {
                return Err(failed(&"it ended in the middle of a case"));
            }
            if line.trim().is_empty() {
                return Ok(all);
            }
            all.push(serde_json::from_str(&line).map_err(|error| failed(&error))?);
        }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // A peer ends with its input; one that does not is ended.
        if self.process.try_wait().is_ok_and(|ended| ended.is_none()) {
            let _ = self.process.kill();
        }
        let _ = self.process.wait();
    }
}
