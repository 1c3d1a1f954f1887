//! `cargo xtask conformance`: asks the real systems again, and shows what changed.
//!
//! Each system has an environment of its own under `target/conformance`, made from the pinned
//! packages in `conformance/record/requirements-SYSTEM.txt`; a first line `# python 3.7` names the
//! interpreter where a system needs an old one. Answers go to `target/conformance/data` first:
//!
//! ```text
//! cargo xtask conformance                 ask every system, show what changed
//! cargo xtask conformance numpy jax       only these
//! cargo xtask conformance --accept        and replace the recorded answers
//! cargo xtask conformance --dialects      make docs/dialects.md anew, asking no one
//! ```

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use crate::check::read;
use crate::python::environment;
use crate::run::{Step, cargo, command, root};

/// How many changed answers are shown for each system.
const SHOWN: usize = 20;

/// What the words of the command ask for.
#[derive(Debug, Default, PartialEq, Eq)]
struct Wish {
    accept: bool,
    dialects: bool,
    systems: Vec<String>,
}

pub(crate) fn run(args: &[String]) -> Result<(), String> {
    let all = systems()?;
    let wish = wish(args, &all)?;
    if !wish.dialects {
        for system in &wish.systems {
            record(system, wish.accept)?;
        }
    }
    if wish.dialects || wish.accept {
        return dialects();
    }
    Ok(())
}

fn wish(args: &[String], all: &[String]) -> Result<Wish, String> {
    let mut wish = Wish::default();
    for arg in args {
        match arg.as_str() {
            "--accept" => wish.accept = true,
            "--dialects" => wish.dialects = true,
            name if all.iter().any(|known| known == name) => wish.systems.push(name.into()),
            name => {
                return Err(format!("{name:?} is no system; there are {}", all.join(", ")));
            }
        }
    }
    if wish.systems.is_empty() {
        wish.systems = all.to_vec();
    }
    Ok(wish)
}

/// Makes docs/dialects.md and the list of other answers anew: the tests that check them write them,
/// with the core as a library.
fn dialects() -> Result<(), String> {
    let mut test = cargo(["test", "--quiet", "-p", "simulcast-conformance", "--test", "core"]);
    test.env("SIMULCAST_DIALECTS", "write").args(["--", "is_current"]);
    Step::new("docs/dialects.md").run(test)
}

/// What is recorded: the answers of systems, and what the engine's own tests compare.
fn systems() -> Result<Vec<String>, String> {
    let folder = root().join("conformance/record");
    let entries =
        fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter_map(|name| {
            let list = name.strip_prefix("requirements-")?.strip_suffix(".txt")?;
            Some(list.to_string())
        })
        .collect();
    names.sort();
    Ok(names)
}

/// The recorder of a system and its recording. Those of the engine's functions have no `from_`, and
/// lie beside `data/`, all of whose lines are requests.
fn paths(system: &str) -> (PathBuf, PathBuf) {
    let folder = root().join("conformance");
    let own = folder.join(format!("record/{system}.py"));
    if own.exists() {
        return (own, folder.join(format!("{system}.jsonl")));
    }
    (folder.join(format!("record/from_{system}.py")), folder.join(format!("data/{system}.jsonl")))
}

/// Asks a system again and shows what changed; with `accept`, keeps it.
fn record(system: &str, accept: bool) -> Result<(), String> {
    let step = Step::new(&format!("ask {system}"));
    let list = root().join(format!("conformance/record/requirements-{system}.txt"));
    let python = match environment(&root().join("target/conformance").join(system), &list) {
        Ok(python) => python,
        Err(why) => return step.skipped(&why),
    };
    let fresh = root().join("target/conformance/data");
    fs::create_dir_all(&fresh).map_err(|error| error.to_string())?;
    let fresh = fresh.join(format!("{system}.jsonl"));
    let (script, kept) = paths(system);
    let mut ask = command(&python.to_string_lossy(), [&script, &fresh]);
    // Crashes are answers: the heap should look the same each time.
    ask.env("PYTHONHASHSEED", "0").env("PYTHONDONTWRITEBYTECODE", "1");
    step.run(ask)?;
    let (old, new) = (fs::read_to_string(&kept).unwrap_or_default(), read(&fresh)?);
    print!("{}", changes(&old, &new, SHOWN));
    if accept && old != new {
        fs::write(&kept, new).map_err(|error| format!("{}: {error}", kept.display()))?;
        println!("   kept: {}", kept.display());
    }
    Ok(())
}

/// What differs between two recordings, case by case.
fn changes(old: &str, new: &str, shown: usize) -> String {
    let (old, new) = (by_question(old), by_question(new));
    let mut lines = Vec::new();
    for (question, answer) in &new {
        match old.get(question) {
            None => lines.push(format!("   + {question}{answer}\n")),
            Some(before) if before != answer => {
                lines.push(format!("   - {question}{before}\n   + {question}{answer}\n"));
            }
            Some(_) => {}
        }
    }
    let gone = old.iter().filter(|(question, _)| !new.contains_key(*question));
    lines.extend(gone.map(|(question, answer)| format!("   - {question}{answer}\n")));
    if lines.is_empty() {
        return format!("   nothing changed in {} lines\n", new.len());
    }
    let more = lines.len().saturating_sub(shown);
    let mut text = format!("   {} of {} lines changed\n", lines.len(), new.len());
    text.extend(lines.into_iter().take(shown));
    if more > 0 {
        text += &format!("   and {more} more\n");
    }
    text
}

/// Each line, cut where the answer begins.
fn by_question(recording: &str) -> BTreeMap<&str, &str> {
    let cut = |line: &str| line.find(",\"out\":").or_else(|| line.find(",\"versions\":"));
    recording.lines().map(|line| line.split_at(cut(line).unwrap_or(line.len()))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_recorder_has_its_packages_and_its_data() {
        let all = systems().unwrap();
        assert!(all.iter().any(|name| name == "numpy"), "{all:?}");
        for system in all {
            let list = root().join(format!("conformance/record/requirements-{system}.txt"));
            let pinned = |line: &str| line.starts_with('#') || line.contains("==");
            assert!(read(&list).unwrap().lines().all(pinned), "{system}");
            let (script, kept) = paths(&system);
            assert!(script.exists() && kept.exists(), "{system}");
        }
    }

    #[test]
    fn words_are_read() {
        let all = ["jax".to_string(), "numpy".to_string()];
        let read = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|word| (*word).into()).collect();
            wish(&words, &all)
        };
        assert_eq!(read(&[]).unwrap().systems, all);
        assert_eq!(read(&["numpy", "--accept"]).unwrap().systems, ["numpy"]);
        assert!(read(&["numpy", "--accept"]).unwrap().accept);
        assert!(read(&["--dialects"]).unwrap().dialects);
        assert!(read(&["nympy"]).unwrap_err().contains("jax, numpy"));
    }

    #[test]
    fn changes_are_shown_case_by_case() {
        let old = "{\"system\":\"x\",\"versions\":{\"x\":\"1\"}}\n\
                   {\"op\":\"a\",\"shapes\":[],\"out\":[]}\n\
                   {\"op\":\"b\",\"shapes\":[],\"out\":[]}\n";
        assert_eq!(changes(old, old, 9), "   nothing changed in 3 lines\n");
        let new = "{\"system\":\"x\",\"versions\":{\"x\":\"2\"}}\n\
                   {\"op\":\"a\",\"shapes\":[],\"out\":\"refused\"}\n\
                   {\"op\":\"c\",\"shapes\":[],\"out\":[]}\n";
        assert_eq!(
            changes(old, new, 2),
            "   4 of 3 lines changed\n   \
             - {\"op\":\"a\",\"shapes\":[],\"out\":[]}\n   \
             + {\"op\":\"a\",\"shapes\":[],\"out\":\"refused\"}\n   \
             + {\"op\":\"c\",\"shapes\":[],\"out\":[]}\n   and 2 more\n"
        );
    }
}
