//! A worker: a process that measures one engine of one case at a time, in short turns, as another process tells it.
//!
//! It reads a question a line on its standard input, as JSON, and answers each with a line:
//!
//! | question | answer |
//! |---|---|
//! | `{"engines": CASE}` | the names of our engines that the case has, `["ours-1", "ours"]` |
//! | `{"make": "ours"}` | `true` once that engine and its arrays are there, or a text that says why not |
//! | `{"turn": 0.02}` | the median of the seconds a call, of calls for about that many seconds |
//! | `{"drop": true}` | `true` once engine and arrays are gone |

use std::io::{BufRead as _, BufReader, Write as _};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::case::Case;
use crate::engines;
use crate::measure::{Task, turn};

/// What a worker is asked.
#[derive(Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
enum Question {
    Engines(Case),
    Make(String),
    Turn(f64),
    Drop(bool),
}

/// Whether an engine is one of ours.
fn is_ours(engine: &str) -> bool {
    ["ours", "program", "operator"].iter().any(|own| engine.starts_with(own))
}

/// Answers until the input ends.
pub(crate) fn serve() -> Result<(), String> {
    let (mut case, mut task): (Option<Case>, Option<Task>) = (None, None);
    for line in std::io::stdin().lines() {
        let line = line.map_err(|error| error.to_string())?;
        let question = serde_json::from_str(&line).map_err(|error| format!("{line}: {error}"))?;
        let answer = match question {
            Question::Engines(asked) => {
                let names = std::cell::RefCell::new(Vec::new());
                engines::tasks(&asked, &|engine| {
                    names.borrow_mut().extend(is_ours(engine).then(|| engine.to_owned()));
                    false
                });
                case = Some(asked);
                json!(names.into_inner())
            }
            Question::Make(engine) => {
                let case = case.as_ref().ok_or("there is no case yet")?;
                let wanted = |one: &str| one == engine;
                // An expression that this revision does not know ends in a panic.
                let made = catch_unwind(AssertUnwindSafe(|| engines::tasks(case, &wanted).pop()));
                task = made.ok().flatten().map(|(_, task)| task);
                if task.is_some() { json!(true) } else { json!("it cannot be made") }
            }
            Question::Turn(seconds) => {
                json!(turn(seconds, task.as_mut().ok_or("there is no engine yet")?))
            }
            Question::Drop(_) => {
                task = None;
                json!(true)
            }
        };
        let mut out = std::io::stdout().lock();
        writeln!(out, "{answer}").and_then(|()| out.flush()).map_err(|error| error.to_string())?;
    }
    Ok(())
}

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

    pub(crate) fn drop_task(&mut self) -> Result<(), String> {
        self.ask(&json!({ "drop": true }))
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
