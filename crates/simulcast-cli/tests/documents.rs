//! The transcripts of the README and of every page under `docs/` are what the command prints.
//!
//! A transcript is a block ` ```console ` whose first line is `$ simulcast …`; what follows is compared. A block without further
//! lines is a command that must only be accepted. `SIMULCAST_RECORD=1` writes what is printed into the pages instead.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
const OPENING: &str = "```console\n";
const CLOSING: &str = "```";

/// Words as a shell takes them, as far as quotes go.
fn words(call: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), String::new(), None);
    for c in call.chars() {
        match (c, quote) {
            ('\'' | '"', None) => quote = Some(c),
            (c, Some(open)) if c == open => quote = None,
            (' ', None) => words.push(std::mem::take(&mut word)),
            (c, _) => word.push(c),
        }
    }
    words.push(word);
    words
}

/// The README, and every page of a folder and those below it.
fn pages() -> Vec<PathBuf> {
    let mut pages = vec![Path::new(ROOT).join("README.md")];
    let mut folders = vec![Path::new(ROOT).join("docs")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                pages.push(path);
            }
        }
    }
    pages.sort();
    pages
}

/// What a call prints, and whether its usage was accepted.
fn printed(call: &str) -> (String, bool) {
    let words = words(call);
    let mut command = Command::new(env!("CARGO_BIN_EXE_simulcast"));
    let output = command.args(words).current_dir(ROOT).output().unwrap();
    let accepted = output.status.code() != Some(2);
    let shown = if output.stdout.is_empty() { output.stderr } else { output.stdout };
    (String::from_utf8(shown).unwrap(), accepted)
}

/// A page with its transcripts made anew, and how many there are.
fn rewritten(page: &str) -> (String, usize) {
    let mut blocks = page.split(OPENING);
    let mut text = blocks.next().unwrap_or_default().to_string();
    let mut count = 0;
    for block in blocks {
        let (transcript, rest) = block.split_once(CLOSING).expect("the block is closed");
        let (call, expected) = transcript.split_once('\n').unwrap();
        let words = call.strip_prefix("$ simulcast ").expect("a call of simulcast");
        let (shown, accepted) = printed(words);
        let kept = if expected.is_empty() {
            assert!(accepted, "{call}: {shown}");
            String::new()
        } else {
            shown
        };
        text += &format!("{OPENING}{call}\n{kept}{CLOSING}{rest}");
        count += 1;
    }
    (text, count)
}

#[test]
fn transcripts_are_what_the_command_prints() {
    let record = std::env::var_os("SIMULCAST_RECORD").is_some();
    let mut total = 0;
    for path in pages() {
        let page = fs::read_to_string(&path).unwrap();
        let (text, count) = rewritten(&page);
        total += count;
        if record && text != page {
            fs::write(&path, text).unwrap();
        } else {
            assert_eq!(text, page, "{}", path.display());
        }
    }
    assert!(total >= 20, "{total} transcripts");
}

#[test]
fn links_of_the_pages_lead_to_files() {
    for path in pages() {
        let page = fs::read_to_string(&path).unwrap();
        for link in page.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let file = link.split('#').next().unwrap_or_default();
            let is_file = !file.is_empty() && !file.contains("://") && !file.contains([' ', '`']);
            let target = path.parent().unwrap().join(file);
            assert!(!is_file || target.exists(), "{}: {link}", path.display());
        }
    }
}
