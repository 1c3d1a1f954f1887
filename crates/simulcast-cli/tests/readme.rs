//! The README's transcripts are what the command says.

use std::fs;
use std::process::Command;

#[test]
fn transcripts_are_true() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md");
    let readme = fs::read_to_string(path).unwrap();
    let mut checked = 0;
    for block in readme.split("```console\n").skip(1) {
        let block = block.split("```").next().unwrap();
        let (call, expected) = block.split_once('\n').unwrap();
        let words = call.strip_prefix("$ simulcast ").unwrap().split(' ');
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
        let mut command = Command::new(env!("CARGO_BIN_EXE_simulcast"));
        let output = command.args(words).current_dir(root).output().unwrap();
        assert_eq!(String::from_utf8(output.stdout).unwrap(), expected, "{call}");
        checked += 1;
    }
    assert!(checked >= 5);
}
