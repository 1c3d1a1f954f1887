//! A worker: a process that measures one engine of one case at a time, in short turns, as another process tells it.
//!
//! It reads a question a line on its standard input, as JSON, and answers each with a line:
//!
//! | question | answer |
//! |---|---|
//! | `{"engines": CASE}` | the names of our engines that the case has, `["ours-1", "ours"]` |
//! | `{"make": "ours"}` | `true` once that engine and its arrays are there, or a text that says why not |
//! | `{"turn": 0.02}` | the median of the seconds a call, of calls for about that many seconds |

use std::cell::RefCell;
use std::io::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};

use serde::Deserialize;
use serde_json::json;

use crate::case::Case;
use crate::engines;
use crate::measure::{Task, turn};

/// What a worker is asked.
#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Question {
    Engines(Case),
    Make(String),
    Turn(f64),
}

/// Whether an engine is one of ours.
fn is_ours(engine: &str) -> bool {
    ["ours", "program", "operator"].iter().any(|own| engine.starts_with(own))
}

/// Answers until the input ends.
pub fn serve() -> Result<(), String> {
    let (mut case, mut task): (Option<Case>, Option<Task>) = (None, None);
    for line in std::io::stdin().lines() {
        let line = line.map_err(|error| error.to_string())?;
        let question = serde_json::from_str(&line).map_err(|error| format!("{line}: {error}"))?;
        let answer = match question {
            Question::Engines(asked) => {
                let names = RefCell::new(Vec::new());
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
        };
        let mut out = std::io::stdout().lock();
        writeln!(out, "{answer}").and_then(|()| out.flush()).map_err(|error| error.to_string())?;
    }
    Ok(())
}
