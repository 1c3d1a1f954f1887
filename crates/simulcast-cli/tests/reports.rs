//! Reports of findings: formats, baselines and exit codes of `simulcast onnx check`.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::fs;
use std::process::Output;

use common::{called_in, folder};

/// A call in the folder of the example models, so that paths are short.
fn check(args: &[&str]) -> Output {
    called_in("simulcast-onnx/models", &[&["onnx", "check"], args].concat())
}

fn stdout(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).unwrap()
}

fn stderr(output: &Output) -> &str {
    std::str::from_utf8(&output.stderr).unwrap()
}

// [E_BROADCAST_ANY_FUNC_2290]
#[test]
fn formats_of_two_models() {
    let formats = ["text", "concise", "github", "gitlab", "sarif", "junit", "json"];
    let shown = formats.map(|format| {
        let output = check(&["loss.onnx", "clash.onnx", "--format", format, "--quiet"]);
        assert_eq!(output.status.code(), Some(1), "the second one has an error");
        assert!(stderr(&output).starts_with("clash.onnx: rescale (Mul): E1: "));
        format!("$ --format {format}\n{}", stdout(&output))
    });
    insta::assert_snapshot!(shown.join("\n").replace(env!("CARGO_PKG_VERSION"), "VERSION"));
}

// [E_BROADCAST_ANY_FUNC_2290]
#[test]
fn quiet_says_nothing_where_nothing_is_found() {
    let loud = check(&["loss.onnx"]);
    assert!(stdout(&loud).starts_with("opset 17"));
    let quiet = check(&["loss.onnx", "--quiet", "--allow", "all"]);
    assert_eq!((stdout(&quiet), stderr(&quiet), quiet.status.code()), ("", "", Some(0)));
    let found = check(&["loss.onnx", "-q"]);
    assert!(stdout(&found).starts_with("loss.onnx: subtract: SC102 confirmed: "));
    let several = check(&["loss.onnx", "loss.onnx"]);
    assert_eq!(stdout(&several).matches("loss.onnx: opset 17").count(), 2);
}

// [E_BROADCAST_ANY_FUNC_2290]
#[test]
fn what_is_confirmed_can_be_denied_alone() {
    let code = |args: &[&str]| check(args).status.code();
    assert_eq!(code(&["loss.onnx", "--deny", "SC102:confirmed"]), Some(1));
    assert_eq!(code(&["loss.onnx", "--deny", "SC102:possible"]), Some(0));
    // The reduction confirms what equal numbers alone do not.
    assert_eq!(code(&["loss.onnx", "--set", "batch=8", "--deny", "SC102:confirmed"]), Some(1));
    assert_eq!(code(&["loss.onnx", "--deny", "all:confirmed", "--allow", "SC102,SC110"]), Some(1));
    let wrong = check(&["loss.onnx", "--deny", "SC102:sure"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(
        stderr(&wrong).contains("there is no certainty \"sure\"; there are possible, confirmed")
    );
}

// [E_BROADCAST_ANY_FUNC_2290]
#[test]
fn a_baseline_knows_findings_and_no_errors() {
    let folder = folder("baseline");
    let file = folder.join("known.json");
    let file = file.to_str().unwrap();
    let denied = ["loss.onnx", "--deny", "all", "--quiet"];
    assert_eq!(check(&denied).status.code(), Some(1));
    let written = check(&[&denied[..], &["--write-baseline", file]].concat());
    assert_eq!((stdout(&written), written.status.code()), ("", Some(0)), "{}", stderr(&written));
    let known = check(&[&denied[..], &["--baseline", file]].concat());
    assert_eq!((stdout(&known), stderr(&known), known.status.code()), ("", "", Some(0)));
    let json = check(&["loss.onnx", "--deny", "all", "--json", "--baseline", file]);
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!((&json["denied"], &json["findings"]), (&0.into(), &serde_json::json!([])));
    // A model with an error fails whatever is known.
    let clash = check(&["clash.onnx", "--quiet", "--write-baseline", file]);
    assert_eq!(clash.status.code(), Some(1));
    let again = check(&[&denied[..], &["--baseline", file]].concat());
    assert_eq!(again.status.code(), Some(1), "the file is now of another model");
}

#[test]
fn bad_baselines_and_formats_are_said_clearly() {
    let folder = folder("baseline-bad");
    let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    fs::write(path("damaged.json"), "{\"schema\": 1, \"findings\": [").unwrap();
    fs::write(path("newer.json"), "{\"schema\": 9, \"findings\": []}").unwrap();
    fs::write(path("bytes.json"), b"\xff\xfe").unwrap();
    let (damaged, newer, bytes) = (path("damaged.json"), path("newer.json"), path("bytes.json"));
    let gone = path("gone.json");
    for (args, said) in [
        (&["--baseline", &damaged][..], "damaged.json: not a baseline of findings: EOF"),
        (&["--baseline", &newer], "newer.json: not a baseline of findings: its schema is 9, not 1"),
        (&["--baseline", &bytes], "bytes.json: not a baseline of findings: it is no text"),
        (&["--baseline", &gone], "gone.json: "),
        (&["--write-baseline", "-"], "--write-baseline takes the name of a file"),
        (&["--write-baseline", "/nowhere/at/all.json"], "cannot write /nowhere/at/all.json"),
        (
            &["--format", "xml"],
            "[possible values: text, concise, github, gitlab, sarif, junit, json]",
        ),
        (&["loss.onnx", "--json"], "--html and --json are of one model"),
    ] {
        let output = check(&[&["loss.onnx"], args].concat());
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(stderr(&output).contains(said), "{args:?}: {}", stderr(&output));
        assert_eq!(stdout(&output), "");
    }
}

/// A file that is no model is an error of its own; the others are reported as ever.
#[test]
fn a_file_that_is_no_model_does_not_hide_the_others() {
    for format in ["concise", "github", "gitlab", "sarif", "junit", "json", "text"] {
        let output = check(&["loss.onnx", "/nope.onnx", "--format", format, "--quiet"]);
        assert_eq!(output.status.code(), Some(2), "{format}");
        let said = stdout(&output);
        assert!(said.contains("SC102"), "{format}: {said}");
        assert!(said.contains("/nope.onnx"), "{format}: {said}");
        assert!(stderr(&output).contains("error: ") && stderr(&output).contains("/nope.onnx"));
    }
    let alone = check(&["/nope.onnx", "--format", "json"]);
    assert_eq!((alone.status.code(), stdout(&alone)), (Some(2), ""));
}

/// Names of models come from outside: none begins a line of a report, and none reaches a terminal as it is.
#[test]
fn names_with_line_ends_and_control_characters_stay_in_their_line() {
    let text = fs::read(
        std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../simulcast-onnx/models/clash.onnx"),
    )
    .unwrap();
    // The name keeps its length, so that the file stays whole.
    let at = text.windows(7).position(|own| own == b"rescale").unwrap();
    let mut hostile = text;
    hostile[at..at + 7].copy_from_slice(b"\n::e\x1b%\r");
    let path = folder("hostile").join("names.onnx");
    fs::write(&path, hostile).unwrap();
    for format in ["concise", "github", "gitlab", "sarif", "junit", "json", "text"] {
        for quiet in [&["--quiet"][..], &[]] {
            let output = check(&[&[path.to_str().unwrap(), "--format", format], quiet].concat());
            assert_eq!(output.status.code(), Some(1), "{format}");
            for said in [stdout(&output), stderr(&output)] {
                assert!(!said.contains(['\u{1b}', '\r']), "{format}: {said}");
                assert!(
                    !said
                        .lines()
                        .any(|line| line.starts_with("::e\u{1b}") || line.starts_with("::e?")),
                    "{format}: {said}"
                );
            }
            let said = stdout(&output);
            match format {
                "github" => assert!(said.contains("::%0A::e?%25%0D: "), "{said}"),
                "concise" => assert!(said.lines().all(|line| line.contains("names.onnx: "))),
                _ => {}
            }
        }
    }
}
