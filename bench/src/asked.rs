//! A worker as the process that asks it sees it; what is asked and answered stands in `worker.rs`.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use simulcast_bench::case::Case;

/// A worker as another process sees it.
pub(crate) struct Worker {
    program: String,
    process: Child,
    questions: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Worker {
    pub(crate) fn start(program: &Path) -> Result<Self, String> {
        let name = program.display().to_string();
        let mut start = Command::new(program);
        start.arg("--worker").stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = start.spawn().map_err(|error| format!("{name}: {error}"))?;
        let ends = (process.stdin.take(), process.stdout.take());
        let (Some(questions), Some(answers)) = ends else {
            return Err(format!("{name}: it has no input or output"));
        };
        Ok(Self { program: name, process, questions, answers: BufReader::new(answers) })
    }

    /// Our engines that a case has.
    pub(crate) fn engines(&mut self, case: &Case) -> Result<Vec<String>, String> {
        self.ask(&json!({ "engines": case }))?;
        let answer = self.answer()?;
        serde_json::from_value(answer).map_err(|error| format!("{}: {error}", self.program))
    }

    /// Tells it to make an engine; [`Worker::done`] waits until it is there.
    pub(crate) fn make(&mut self, engine: &str) -> Result<(), String> {
        self.ask(&json!({ "make": engine }))
    }

    /// Whether what it was told succeeded.
    pub(crate) fn done(&mut self) -> Result<bool, String> {
        Ok(self.answer()? == json!(true))
    }

    /// The median of a turn, in seconds a call.
    pub(crate) fn turn(&mut self, seconds: f64) -> Result<f64, String> {
        self.ask(&json!({ "turn": seconds }))?;
        let answer = self.answer()?;
        answer.as_f64().ok_or_else(|| format!("{}: {answer} is no time", self.program))
    }

    fn ask(&mut self, question: &Value) -> Result<(), String> {
        let asked = writeln!(self.questions, "{question}");
        asked.map_err(|error| format!("{}: {error}", self.program))
    }

    fn answer(&mut self) -> Result<Value, String> {
        let mut line = String::new();
        match self.answers.read_line(&mut line) {
            Ok(1..) => {
                serde_json::from_str(&line).map_err(|error| format!("{}: {error}", self.program))
            }
            Ok(0) => Err(format!("{}: it ended in the middle of a case", self.program)),
            Err(error) => Err(format!("{}: {error}", self.program)),
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        if self.process.try_wait().is_ok_and(|ended| ended.is_none()) {
            let _ = self.process.kill();
        }
        let _ = self.process.wait();
    }
}
