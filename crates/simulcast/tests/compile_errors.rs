//! What the compiler says of ten usual mistakes: the lines that are this crate's, whatever the compiler adds.
//!
//! Each file in `compile_errors/` is a program with one mistake. A line `//~ text` says that the compiler's message has
//! that text, and every message is an error of one place in the file.

#![allow(clippy::unwrap_used, reason = "a test")]
#![cfg(all(target_os = "linux", target_arch = "x86_64", not(miri)))]

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The compiled crates that programs may use, by name, as cargo made them.
fn libraries() -> BTreeMap<String, PathBuf> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut build = Command::new(cargo);
    build.args(["build", "--offline", "--message-format=json", "--manifest-path"]);
    build.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml"));
    if cfg!(feature = "program") {
        build.args(["--features", "program"]);
    }
    let output = build.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = String::from_utf8(output.stdout).unwrap();
    let made = lines.lines().filter_map(|line| {
        let line: serde_json::Value = serde_json::from_str(line).ok()?;
        let name = line["target"]["name"].as_str()?.to_owned();
        let files = line["filenames"].as_array()?.iter().filter_map(serde_json::Value::as_str);
        Some((name, PathBuf::from(files.into_iter().find(|file| file.ends_with(".rlib"))?)))
    });
    made.collect()
}

/// What the compiler says of a program, if it refuses it.
fn said(program: &Path, libraries: &BTreeMap<String, PathBuf>) -> Option<String> {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let mut compile = Command::new(rustc);
    compile.args(["--edition", "2024", "--emit", "metadata", "--color", "never", "-o"]);
    compile.arg(Path::new(env!("CARGO_TARGET_TMPDIR")).join("compile_errors.rmeta"));
    for name in ["simulcast", "ndarray"] {
        let library = &libraries[name];
        compile.arg("--extern").arg(format!("{name}={}", library.display()));
        let folder = library.parent().unwrap();
        for folder in [folder.to_owned(), folder.join("deps")] {
            compile.arg("-L").arg(format!("dependency={}", folder.display()));
        }
    }
    let output = compile.arg(program).output().unwrap();
    (!output.status.success()).then(|| String::from_utf8(output.stderr).unwrap())
}

#[test]
fn usual_mistakes_are_told_with_their_remedy() {
    let libraries = libraries();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/compile_errors");
    let mut programs: Vec<PathBuf> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    programs.sort();
    let mut wrong = String::new();
    for program in &programs {
        let text = fs::read_to_string(program).unwrap();
        if text.contains("//~ needs program") && !cfg!(feature = "program") {
            continue;
        }
        let expected = text.lines().filter_map(|line| line.trim().strip_prefix("//~ "));
        let expected: Vec<&str> = expected.filter(|line| *line != "needs program").collect();
        let name = program.file_name().unwrap().to_string_lossy();
        let Some(said) = said(program, &libraries) else {
            wrong += &format!("{name} compiles\n");
            continue;
        };
        for line in expected.iter().filter(|line| !said.contains(**line)) {
            wrong += &format!("{name}: no `{line}` in\n{said}\n");
        }
        assert!(!expected.is_empty(), "{name} expects nothing");
    }
    assert!(programs.len() >= 10 && wrong.is_empty(), "{wrong}");
}
