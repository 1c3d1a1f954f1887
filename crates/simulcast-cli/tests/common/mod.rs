//! What tests of the command share: calls of it, transcripts of those, and folders for files.

#![allow(dead_code, reason = "not every test uses all of it")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The command with some arguments.
pub(crate) fn simulcast(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_simulcast"));
    command.args(args);
    command
}

/// A call in a folder of the workspace, so that paths are as short as in the documentation.
pub(crate) fn called_in(folder: &str, args: &[&str]) -> Output {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(folder);
    simulcast(args).current_dir(folder).output().unwrap()
}

/// A call and what came of it: lines of standard error begin with `!`.
pub(crate) fn transcript(args: &[&str], output: Output) -> String {
    let plain = |c: char| c.is_alphanumeric() || "=._:-,@/".contains(c);
    let quoted = args.iter().map(|word| match word.chars().all(plain) {
        true => (*word).to_string(),
        false if word.contains('\'') => format!("\"{word}\""),
        false => format!("'{word}'"),
    });
    let quoted: Vec<String> = quoted.collect();
    let said = String::from_utf8(output.stderr).unwrap();
    format!(
        "$ simulcast {}\n{}{}[exit code {}]\n",
        quoted.join(" "),
        String::from_utf8(output.stdout).unwrap(),
        said.lines().map(|line| format!("! {line}\n")).collect::<String>(),
        output.status.code().unwrap()
    )
}

/// An empty folder of a test.
pub(crate) fn folder(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}
