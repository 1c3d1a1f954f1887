//! The README's transcripts are what the command says.

use std::fs;
use std::process::Command;

/// Words as a shell takes them, as far as single quotes go.
fn words(call: &str) -> Vec<String> {
    let (mut words, mut word, mut quoted) = (Vec::new(), String::new(), false);
    for c in call.chars() {
        match c {
            '\'' => quoted = !quoted,
            ' ' if !quoted => words.push(std::mem::take(&mut word)),
            c => word.push(c),
        }
    }
    words.push(word);
    words
}

#[test]
fn transcripts_are_true() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md");
    let readme = fs::read_to_string(path).unwrap();
    let mut checked = 0;
    for block in readme.split("```console\n").skip(1) {
        let block = block.split("```").next().unwrap();
        let (call, expected) = block.split_once('\n').unwrap();
        let words = words(call.strip_prefix("$ simulcast ").unwrap());
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
        let mut command = Command::new(env!("CARGO_BIN_EXE_simulcast"));
        let output = command.args(words).current_dir(root).output().unwrap();
        let shown = if output.stdout.is_empty() { output.stderr } else { output.stdout };
        assert_eq!(String::from_utf8(shown).unwrap(), expected, "{call}");
        checked += 1;
    }
    assert!(checked >= 5);
}
