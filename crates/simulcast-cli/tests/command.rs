//! The command as a user meets it: output, exit codes, files.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::fs;
use std::io::{BufRead as _, Write as _};
use std::process::{Child, Command, Output, Stdio};

use common::folder;

fn simulcast(args: &[&str]) -> Output {
    common::simulcast(args).output().unwrap()
}

fn transcript(args: &[&str]) -> String {
    common::transcript(args, simulcast(args))
}

/// The command that answers line by line, waiting for requests.
fn answering() -> Child {
    Command::new(env!("CARGO_BIN_EXE_simulcast"))
        .args(["shape", "--jsonl"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Answers to lines of standard input, and the exit code.
fn jsonl(lines: &[u8]) -> (Vec<String>, i32) {
    let mut child = answering();
    let mut stdin = child.stdin.take().unwrap();
    let lines = lines.to_vec();
    let writer = std::thread::spawn(move || stdin.write_all(&lines).unwrap());
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    (text.lines().map(str::to_owned).collect(), output.status.code().unwrap())
}

// [E_BROADCAST_ANY_FUNC_2220]
#[test]
fn explanations() {
    let calls: [&[&str]; 23] = [
        &["explain", "8,1,6,1", "7,1,5"],
        &["explain", "pred:32,1", "target:32"],
        &["explain", "2,3,4", "2,4"],
        &["explain", "2,3", "4,5"],
        &["explain", "--ascii", "()", "2,3"],
        &["explain", "0,3", "3"],
        &["explain", "3,3", "3"],
        &["explain", "N,3,1", "M,1,4", "--set", "M=2"],
        &["explain", "N,3", "?,1", "2..8,1"],
        &["explain", "N@2..8", "5..9", "10"],
        &["explain", "pred:N,1", "target:N"],
        &["explain", "...", "2,3"],
        &["explain", "--rule", "pdpd:1", "2,3,4,5", "3,4"],
        &["explain", "--rule", "pdpd", "2,3,4,5", "3,4"],
        &["explain", "--rule", "paddle:1", "8,1,6,1", "7,1,5"],
        &["explain", "--rule", "to:2,3", "3"],
        &["explain", "--rule", "bidirectional:2,1,6", "3,1"],
        &["explain", "--rule", "axes:3,2/1", "3"],
        &["explain", "--rule", "mapping:2,4,3/0,2", "2,3"],
        &["explain", "--rule", "named", "b=32,c=3", "w=8,c=3"],
        &["explain", "b=32,c=3", "c=32,b=3"],
        &[
            "explain", "3", "1", "1", "1", "1", "1", "1", "1", "1", "1", "1", "1", "1", "1", "1",
            "1", "1", "1", "4",
        ],
        &["explain"],
    ];
    insta::assert_snapshot!(calls.map(transcript).join("\n"));
}

// [E_BROADCAST_ANY_FUNC_2220]
/// The command with a text on standard input.
fn pasted(args: &[&str], text: &str) -> (String, i32) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_simulcast"));
    let mut child = command
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // A command that refuses its options reads nothing: the pipe is closed (EPIPE).
    let _ = child.stdin.take().unwrap().write_all(text.as_bytes());
    let output = child.wait_with_output().unwrap();
    (String::from_utf8(output.stdout).unwrap(), output.status.code().unwrap())
}

#[test]
fn messages_in_pasted_text_are_explained() {
    let log = "Traceback (most recent call last):\n  File \"train.py\", line 12, in loss\n    \
               return ((pred - target) ** 2).mean()\n             ~~~~~^~~~~~~~\n\
               ValueError: operands could not be broadcast together with shapes (2,3) (2,) \n";
    insta::assert_snapshot!(pasted(&["explain", "-"], log).0, @r#"
    NumPy, line 5 of the text (train.py:12)
      return ((pred - target) ** 2).mean()
      axis     0   1     '.' = no such axis
      pred     2   3     (2, 3)
      target   .   2     (2,)
                   ^ axis 1 (-1): pred has 3, target has 2
      rule     numpy
      error    E1: sizes must be equal, or the one that stretches must be 1
      help     target[:, None] is (2, 1), result (2, 3)
      help     pred.T is (3, 2), result (3, 2)
    "#);
    let (json, code) = pasted(&["explain", "-", "--json"], log);
    let document: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&document["messages"][0]["library"], code), (&"NumPy".into(), 0));
    assert_eq!(pasted(&["explain", "-"], "all is well\n"), (String::new(), 1));
    assert_eq!(pasted(&["explain", "-", "--deny", "all"], log).1, 2);
}

#[test]
fn shapes_for_scripts() {
    let calls: [&[&str]; 10] = [
        &["shape", "-1,3", "5,1"],
        &["shape", "8,1,6,1", "7,1,5"],
        &["shape", "()", "scalar"],
        &["shape"],
        &["shape", "N,3", "1"],
        &["shape", "N", "M"],
        &["shape", "...", "3"],
        &["shape", "2,3", "4"],
        &["shape", "--json", "2,1", "N,3"],
        &["shape", "--json", "2,3", "4"],
    ];
    insta::assert_snapshot!(calls.map(transcript).join("\n"));
}

// [E_BROADCAST_ANY_FUNC_2240]
#[test]
fn usage_errors_say_what_is_wrong_and_exit_with_2() {
    let calls: [&[&str]; 17] = [
        &["shape", "2,,3"],
        &["shape", "nosuch.npy"],
        &["shape", "--rule", "nosuch", "3"],
        &["shape", "--rule", "to", "3"],
        &["shape", "--rule", "to:N", "3"],
        &["shape", "--rule", "axes:2,3", "3"],
        &["shape", "--rule", "mapping", "3"],
        &["shape", "--rule", "numpy:1", "3"],
        &["shape", "--rule", "pdpd:x", "3", "3"],
        &["shape", "--rule", "named", "3", "b=3"],
        &["shape", "--rule", "named", "b=3,b=3"],
        &["shape", "N@2..3", "--set", "N=4"],
        &["shape", "N", "--set", "M=4"],
        &["explain", "3", "--deny", "SC999"],
        &["shape", "N", "--set", "N=2", "--set", "N=3"],
        &["explain", "3", "--svg", "-", "--html", "-"],
        &["explain", "3", "--max-growth", "nan"],
    ];
    let said = calls.map(transcript);
    for text in &said {
        assert!(text.contains("[exit code 2]"), "{text}");
    }
    insta::assert_snapshot!(said.join("\n"));
}

// [E_BROADCAST_ANY_FUNC_2220]
#[test]
fn denied_findings_exit_with_1() {
    let code = |args: &[&str]| simulcast(args).status.code().unwrap();
    assert_eq!(code(&["explain", "32,1", "32"]), 0);
    assert_eq!(code(&["explain", "32,1", "32", "--deny", "SC102"]), 1);
    assert_eq!(code(&["explain", "32,1", "32", "--deny", "sc101,sc102"]), 1);
    assert_eq!(code(&["explain", "32,1", "1,32", "--deny", "SC102"]), 0);
    assert_eq!(code(&["explain", "2,3", "3", "--deny", "all"]), 1);
    assert_eq!(code(&["explain", "2,3", "3", "--strictness", "same-rank"]), 1);
    assert_eq!(code(&["explain", "2,3", "1,3", "--strictness", "same-rank"]), 0);
    assert_eq!(code(&["explain", "2,3", "()", "--strictness", "exact"]), 1);
    assert_eq!(code(&["explain", "100", "--max-bytes", "799", "--deny", "SC105"]), 1);
    assert_eq!(code(&["explain", "100", "--max-bytes", "800", "--deny", "SC105"]), 0);
    let Output { stdout, stderr, .. } = simulcast(&["explain", "32,1", "32", "--deny", "SC102"]);
    assert!(String::from_utf8(stdout).unwrap().contains("SC102"));
    assert!(String::from_utf8(stderr).unwrap().starts_with("denied: SC102: a column meets a row"));
    // Symbols stand for sizes, and are judged like them.
    assert_eq!(code(&["explain", "N,1", "N"]), 0);
    assert_eq!(code(&["explain", "N,1", "N", "--deny", "SC102"]), 1);
    assert_eq!(code(&["explain", "N,1", "M", "--deny", "SC102"]), 0);
    assert_eq!(code(&["explain", "N,3", "3", "--strictness", "exact"]), 1);
    assert_eq!(code(&["explain", "...", "3"]), 0);
    assert_eq!(code(&["explain", "...", "3", "--deny", "SC102"]), 2, "there is nothing to judge");
    let hidden = simulcast(&["explain", "32,1", "32", "--allow", "SC102"]);
    assert!(!String::from_utf8(hidden.stdout).unwrap().contains("SC102"));
}

// [E_BROADCAST_ANY_FUNC_2220]
#[test]
fn json_has_a_schema() {
    let calls: [&[&str]; 4] = [
        &["explain", "--json", "2,1", "3"],
        &["explain", "--json", "2,3,4", "2,4"],
        &["explain", "--json", "N,3", "2..8,1"],
        &["explain", "--json", "--rule", "to:2", "3"],
    ];
    let pretty = calls.map(|args| {
        let value: serde_json::Value = serde_json::from_slice(&simulcast(args).stdout).unwrap();
        assert_eq!(value["schema"], 1);
        serde_json::to_string_pretty(&value).unwrap()
    });
    insta::assert_snapshot!(pretty.join("\n\n"));
}

// [E_BROADCAST_ANY_FUNC_2230]
#[test]
fn pictures_are_written_whole_or_not_at_all() {
    let folder = folder("pictures");
    let (svg, html) = (folder.join("b.svg"), folder.join("b.html"));
    let output = simulcast(&[
        "explain",
        "3,1",
        "4",
        "--svg",
        svg.to_str().unwrap(),
        "--html",
        html.to_str().unwrap(),
    ]);
    assert_eq!(output.status.code(), Some(0));
    assert!(fs::read_to_string(&svg).unwrap().starts_with("<svg"));
    assert!(fs::read_to_string(&html).unwrap().to_lowercase().starts_with("<!doctype html>"));
    let names: Vec<_> =
        fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names.len(), 2, "nothing else is left: {names:?}");
    // A link is followed; a pipe stays a pipe.
    let link = folder.join("link.svg");
    std::os::unix::fs::symlink(&svg, &link).unwrap();
    assert!(simulcast(&["explain", "5", "--svg", link.to_str().unwrap()]).status.success());
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert!(fs::read_to_string(&svg).unwrap().contains("(5,)"));
    assert!(simulcast(&["explain", "5", "--svg", "/dev/null"]).status.success());
    assert!(!fs::metadata("/dev/null").unwrap().is_file());
    let missing = folder.join("missing/b.svg");
    let output = simulcast(&["explain", "3", "--svg", missing.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8(output.stderr).unwrap().starts_with("error: cannot write"));
    let output = simulcast(&["explain", "3", "--svg", "/"]);
    assert_eq!(output.status.code(), Some(2));
    let piped = simulcast(&["explain", "2,3", "4", "--svg", "-"]);
    assert_eq!(piped.status.code(), Some(1), "an error has a picture too");
    assert!(String::from_utf8(piped.stdout).unwrap().trim_end().ends_with("</svg>"));
}

// [E_BROADCAST_ANY_FUNC_2210]
#[test]
fn numpy_files_are_shapes() {
    let folder = folder("npy");
    let path = folder.join("x.npy");
    let header = "{'descr': '<f4', 'fortran_order': False, 'shape': (8, 1, 6, 1), }\n";
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend(u16::try_from(header.len()).unwrap().to_le_bytes());
    bytes.extend(header.bytes());
    fs::write(&path, &bytes).unwrap();
    let path = path.to_str().unwrap();
    for word in [path.to_string(), format!("a:{path}"), format!("a={path}")] {
        let output = simulcast(&["shape", &word, "7,1,5"]);
        assert_eq!(String::from_utf8(output.stdout).unwrap(), "8,7,6,5\n");
    }
    let named = simulcast(&["explain", &format!("image:{path}"), "2"]);
    assert!(String::from_utf8(named.stdout).unwrap().contains("  image "));
    fs::write(path, b"\x93NUMPY\x01\x00\xff\xff{").unwrap();
    let data = concat!(env!("CARGO_MANIFEST_DIR"), "/../simulcast-files/tests/data");
    for word in ["numpy.npz:big_fortran", "a:numpy.npz:empty", "tensors.safetensors:float32"] {
        let word = word.replacen(":numpy", &format!(":{data}/numpy"), 1);
        let word = if word.contains('/') { word } else { format!("{data}/{word}") };
        assert!(simulcast(&["shape", &word, "1"]).status.success(), "{word}");
    }
    let choose = simulcast(&["shape", &format!("{data}/tensors.safetensors")]);
    assert_eq!(choose.status.code(), Some(2));
    assert!(
        String::from_utf8(choose.stderr).unwrap().contains("tensors.safetensors: choose one of")
    );
    let broken = simulcast(&["shape", path]);
    assert_eq!(broken.status.code(), Some(2));
    assert!(String::from_utf8(broken.stderr).unwrap().contains("the file ends inside its header"));
}

// [E_BROADCAST_ANY_FUNC_2250]
#[test]
fn each_line_gets_an_answer_in_order() {
    let requests = [
        r#"{"rule":"numpy","shapes":[[2,1],[3]]}"#,
        r#"{"rule":"numpy","shapes":[[2,3],[4]]}"#,
        r#"{"shapes":[]}"#,
        "",
        "not json",
        "[1]",
        r#"{"rule":"nosuch","shapes":[]}"#,
        r#"{"rule":7,"shapes":[]}"#,
        r#"{"rule":"numpy"}"#,
        r#"{"rule":"numpy","shapes":[[-2]]}"#,
        r#"{"rule":"numpy","shapes":[[1.5]]}"#,
        r#"{"rule":"numpy","shapes":[[18446744073709551615],[1]]}"#,
        r#"{"rule":"numpy","shapes":[[18446744073709551616]]}"#,
        r#"{"rule":"exact","shapes":[[2,3],[2,3]]}"#,
        r#"{"rule":"unidirectional","shapes":[[3],[2,3]]}"#,
        r#"{"rule":"pdpd","axis":1,"shapes":[[2,3,4,5],[3,4]]}"#,
        r#"{"rule":"pdpd","axis":null,"shapes":[[2,3,4,5],[4,5]]}"#,
        r#"{"rule":"pdpd","axis":-2,"shapes":[[2,3,4,5],[4,5]]}"#,
        r#"{"rule":"pdpd","axis":"1","shapes":[[2,3,4,5],[4,5]]}"#,
        r#"{"rule":"paddle","axis":1,"shapes":[[7,1,5],[8,1,6,1]]}"#,
        r#"{"rule":"bidirectional","target":[2,1,6],"shapes":[[3,1]]}"#,
        r#"{"rule":"to","target":[2,3],"shapes":[[3]]}"#,
        r#"{"rule":"to","shapes":[[3]]}"#,
        r#"{"rule":"axes","shape":[2,3,4],"broadcast_axes":[2,0],"shapes":[[3]]}"#,
        r#"{"rule":"mapping","shape":[2,3],"axes_mapping":[1],"shapes":[[3]]}"#,
        r#"{"rule":"mapping","shape":[2,3],"axes_mapping":[-1],"shapes":[[3]]}"#,
        r#"{"rule":"mapping","shape":[2,3],"axes_mapping":[1,0],"shapes":[[3,2]]}"#,
        r#"{"rule":"named","axes":[["b","c"],["c","w"]],"shapes":[[32,3],[3,8]]}"#,
        r#"{"rule":"named","shapes":["b=32,c=3","c=3,w=8"]}"#,
        r#"{"rule":"named","shapes":[{"b":32,"c":3},{"c":4}]}"#,
        r#"{"rule":"named","shapes":[[32],[3]]}"#,
        r#"{"rule":"named","axes":[["b"],["b","b"]],"shapes":[[32],[3,3]]}"#,
        r#"{"rule":"numpy","shapes":[["N",3],[null,1],[4,1]]}"#,
        r#"{"rule":"numpy","shapes":[null,[3]]}"#,
        r#"{"rule":"numpy","shapes":[["batch-size","2..8"],[1,1]]}"#,
        r#"{"rule":"axes","shape":[2],"broadcast_axes":[18446744073709551615],"shapes":[[2]]}"#,
        r#"{"rule":"legacy","axis":1,"shapes":[[2,3,4],[3]]}"#,
    ];
    let (answers, code) = jsonl(requests.join("\n").as_bytes());
    assert_eq!((answers.len(), code), (requests.len(), 0));
    let both: Vec<String> =
        requests.iter().zip(&answers).map(|(q, a)| format!("{q}\n  {a}")).collect();
    insta::assert_snapshot!(both.join("\n"));
}

// [E_BROADCAST_ANY_FUNC_2250]
#[test]
fn hostile_lines_do_not_stop_it() {
    let mut lines = b"\xff\xfe\n".to_vec();
    lines.extend(b"[".repeat(100_000));
    lines.extend(b"\n{\"rule\":\"axes\",\"shape\":[");
    lines.extend(b"1,".repeat(100_000));
    lines.extend(b"1],\"broadcast_axes\":[");
    (0..50_000).rev().for_each(|axis| lines.extend(format!("{axis},").bytes()));
    lines.extend(b"0],\"shapes\":[[1]]}\n");
    lines.extend(b"{\"shapes\":[[2],[3]]}\r\n\n");
    lines.extend(b"{\"shapes\":[[2],[1]]}");
    let (answers, code) = jsonl(&lines);
    assert_eq!((answers.len(), code), (6, 0));
    assert!(answers[..3].iter().all(|answer| answer.starts_with(r#"{"error":{"code":"E"#)));
    assert!(answers[3].contains(r#""code":"E1""#));
    assert!(answers[4].contains(r#""code":"E0""#));
    assert_eq!(answers[5], r#"{"shape":[2]}"#);
}

// [E_BROADCAST_ANY_FUNC_2250]
#[test]
fn an_answer_comes_before_the_next_question() {
    let mut child = answering();
    let (mut stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let mut answers = std::io::BufReader::new(stdout).lines();
    for size in 1..5 {
        writeln!(stdin, r#"{{"shapes":[[{size}],[1]]}}"#).unwrap();
        assert_eq!(answers.next().unwrap().unwrap(), format!(r#"{{"shape":[{size}]}}"#));
    }
    drop(stdin);
    assert!(child.wait().unwrap().success());
}

// [E_BROADCAST_ANY_FUNC_2220]
#[test]
fn a_closed_reader_does_not_change_the_verdict() {
    for (args, code) in [
        (&["explain", "2,3", "4"][..], 1),
        (&["explain", "32,1", "32", "--deny", "SC102"], 1),
        (&["shape", "--json", "2", "3"], 1),
        (&["explain", "2,3", "3"], 0),
    ] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_simulcast"))
            .args(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        assert_eq!(child.wait().unwrap().code(), Some(code), "{args:?}");
    }
}

#[test]
fn help_completions_and_manual_pages() {
    let help = String::from_utf8(simulcast(&["explain", "--help"]).stdout).unwrap();
    assert!(help.contains("pdpd[:AXIS]") && help.contains("Exit codes"));
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = simulcast(&["completions", shell]);
        assert!(script.status.success() && script.stdout.len() > 1000, "{shell}");
    }
    assert!(String::from_utf8(simulcast(&["man"]).stdout).unwrap().contains(".TH simulcast 1"));
    assert!(
        String::from_utf8(simulcast(&["man", "shape"]).stdout)
            .unwrap()
            .contains(".TH simulcast-shape 1")
    );
    assert_eq!(simulcast(&["man", "nosuch"]).status.code(), Some(2));
    assert_eq!(simulcast(&["nosuch"]).status.code(), Some(2));
}

// [E_BROADCAST_ANY_FUNC_2220]
#[test]
fn colour_only_where_it_is_asked_for() {
    let plain = simulcast(&["explain", "2,3", "4"]);
    assert!(!plain.stdout.contains(&0x1b));
    let coloured = simulcast(&["explain", "2,3", "4", "--color", "always"]);
    assert!(coloured.stdout.contains(&0x1b));
    let folder = folder("colour");
    let file = folder.join("\u{1b}[31mred.npy");
    let header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)}";
    let length = u16::try_from(header.len()).unwrap().to_le_bytes();
    let bytes = [b"\x93NUMPY\x01\x00", &length[..], header.as_bytes()].concat();
    fs::write(&file, bytes).unwrap();
    let named = simulcast(&["explain", file.to_str().unwrap(), "4", "--color", "never"]);
    assert!(!named.stdout.contains(&0x1b) && !named.stderr.contains(&0x1b));
    let hostile = simulcast(&["explain", "--rule", "named", "b\u{1b}[31m=3"]);
    assert_eq!(hostile.status.code(), Some(2));
    assert!(!hostile.stderr.contains(&0x1b));
}

fn model(name: &str) -> String {
    format!("{}/../simulcast-onnx/models/{name}.onnx", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn models_are_checked_with_exit_codes() {
    let (loss, clash) = (model("loss"), model("clash"));
    let check = |args: &[&str]| simulcast(&[&["onnx", "check"], args].concat());
    let code = |output: &Output| output.status.code().unwrap();
    assert_eq!(code(&check(&[&loss])), 0);
    let denied = check(&[&loss, "--deny", "SC110", "--json"]);
    assert_eq!(code(&denied), 1);
    assert!(String::from_utf8(denied.stderr).unwrap().starts_with("denied: SC110: subtract: "));
    let json: serde_json::Value = serde_json::from_slice(&denied.stdout).unwrap();
    assert_eq!((&json["schema"], &json["denied"]), (&1.into(), &1.into()));
    let error = check(&[&clash]);
    assert_eq!(code(&error), 1);
    assert!(String::from_utf8(error.stderr).unwrap().starts_with("rescale (Mul): E1: "));
    let sized = check(&[&loss, "--set", "batch=32"]);
    assert!(String::from_utf8(sized.stdout).unwrap().contains("16.0x  4.1 kB"));
    for (args, said) in [
        (
            &[&loss[..], "--set", "N=3"][..],
            "no input of the model has a symbol \"N\"; it has batch",
        ),
        (&[&loss, "--deny", "SC999"], "there is no finding \"SC999\""),
        (&["gone.onnx"], "gone.onnx: "),
        (&[concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")], "not an ONNX model"),
        (&[&loss, "--json", "--html", "-"], "only one of"),
    ] {
        let output = check(args);
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{stderr}");
        assert!(stderr.starts_with("error: ") && stderr.contains(said), "{stderr}");
    }
}

#[test]
fn models_run_on_arrays_to_the_terminal_and_to_files() {
    let folder = folder("onnx-run");
    let npz = folder.join("out.npz");
    let npz = npz.to_str().unwrap();
    let loss = model("loss");
    let inputs = [
        "--input=x=array([[1,1,1,1,1,1,1,1],[2,2,2,2,2,2,2,2]], dtype=float32)",
        "--input=weight=full((8,1), 0.125, dtype=float32)",
        "--input=target=array([1,2], dtype=float32)",
    ];
    let run = |more: &[&str]| simulcast(&[&["onnx", "run", &loss], &inputs[..], more].concat());
    let plain = run(&[]);
    // The mean over the square outer of (2, 1) with (2,), not 0.
    assert_eq!(String::from_utf8(plain.stdout).unwrap(), "loss: float32 ()\n0.5\n");
    let json = run(&["--json", "--time", "--threads", "1", "-o", npz, "--set", "batch=2"]);
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(json["outputs"]["loss"]["values"], 0.5);
    assert_eq!((&json["programs"], &json["file"]), (&serde_json::json!([2]), &npz.into()));
    assert!(json["seconds"]["run"].is_f64());
    let read = simulcast(&["eval", "loss * 2", &format!("loss={npz}:loss")]);
    assert_eq!(String::from_utf8(read.stdout).unwrap(), "float32 ()\n1.0\n");
    for (args, code, said) in [
        (&["--set", "batch=3"][..], 1, "batch is 3 and, in the input \"x\", 2"),
        (&["--set", "N=3"], 2, "no input of the model has a symbol \"N\""),
        (&["--input=y=1"], 2, "\"y\" is no input of the model"),
        (&["-o", "out.txt"], 2, "out.txt ends in neither .npz nor .npy"),
        (&["--max-bytes", "3"], 2, "over the limit"),
        (&["--threads", "0"], 2, "invalid value '0' for '--threads <N>'"),
    ] {
        let output = run(args);
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{stderr}");
        assert!(stderr.contains(said), "{stderr}");
    }
    let clash = simulcast(&[
        "onnx",
        "run",
        &model("clash"),
        "-i=x=zeros(4,8, dtype=float32)",
        "-i=weight=zeros(8,3, dtype=float32)",
        "-i=scale=zeros(4, dtype=float32)",
        "-o",
        npz,
    ]);
    assert_eq!(clash.status.code(), Some(1));
    let stderr = String::from_utf8(clash.stderr).unwrap();
    assert!(stderr.contains("rescale (Mul): E1: "), "{stderr}");
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
}

#[test]
fn a_page_shows_every_broadcast_of_a_model() {
    let folder = folder("onnx-page");
    let page = folder.join("page.html");
    let output = simulcast(&["onnx", "check", &model("loss"), "--html", page.to_str().unwrap()]);
    assert!(output.status.success());
    let page = fs::read_to_string(page).unwrap();
    assert!(
        page.contains("<title>loss.onnx</title>")
            && page.contains("<summary>subtract <span class=\"badge\">SC102</span>")
    );
    assert_eq!(page.matches("<svg").count(), 1);
}

#[test]
#[cfg(target_os = "linux")]
fn what_does_not_begin_as_a_model_is_not_read_to_its_end() {
    for words in [&["onnx", "check", "/dev/zero"][..], &["onnx", "upgrade", "/dev/zero", "-o", "-"]]
    {
        let output = simulcast(words);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("not an ONNX model"), "{said}");
    }
}

#[test]
fn only_shapes_begin_with_a_number_that_is_not_known() {
    let folder = folder("minus");
    let mut command = Command::new(env!("CARGO_BIN_EXE_simulcast"));
    command.current_dir(&folder).args(["explain", "--svg", "-5.svg", "2", "2"]);
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
    let output = simulcast(&["shape", "-1,3", "1,3"]);
    assert!(output.status.success());
}

#[test]
fn a_legacy_model_is_upgraded_whole_or_not_at_all() {
    let folder = folder("onnx-upgrade");
    let new = folder.join("new.onnx");
    let new = new.to_str().unwrap();
    let output = simulcast(&["onnx", "upgrade", &model("legacy"), "-o", new]);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(0), 0));
    // Bytes that a terminal would take for commands reach a pipe too.
    let piped = simulcast(&["onnx", "upgrade", &model("legacy"), "-o", "-"]);
    assert_eq!((piped.status.code(), piped.stdout), (Some(0), fs::read(new).unwrap()));
    let check = simulcast(&["onnx", "check", new]);
    let said = String::from_utf8(check.stdout).unwrap();
    assert!(
        said.starts_with("opset 7, 2 nodes") && said.contains("b_on_axis_1 (3, 4, 1)"),
        "{said}"
    );
    let again = simulcast(&["onnx", "upgrade", new, "-o", new]);
    assert_eq!(again.status.code(), Some(2));
    let stderr = String::from_utf8(again.stderr).unwrap();
    assert!(stderr.contains("it imports opset 7"), "{stderr}");
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
}

#[test]
fn inferred_shapes_are_written_into_the_model_and_nowhere_else() {
    let folder = folder("onnx-infer");
    let new = folder.join("new.onnx");
    let new = new.to_str().unwrap();
    let infer = |args: &[&str]| simulcast(&[&["onnx", "infer"], args].concat());
    let output = infer(&[&model("loss"), "-o", new, "--report"]);
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{said}");
    assert!(
        said.contains("4 results have every size") || said.contains("sizes with names"),
        "{said}"
    );
    let written = fs::read(new).unwrap();
    assert!(written.len() > fs::read(model("loss")).unwrap().len());
    // Again nothing changes, in its place or as a stream.
    assert!(infer(&[new, "--in-place"]).status.success());
    assert_eq!(fs::read(new).unwrap(), written);
    assert_eq!(infer(&[new, "-o", "-"]).stdout, written);
    let json = infer(&[new, "--in-place", "--json", "--set", "batch=8"]);
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!((&json["schema"], &json["results"]["symbolic"]), (&1.into(), &0.into()), "{json}");
    // A model that cannot work is not written, unless asked for.
    let clash = folder.join("clash.onnx");
    let clash = clash.to_str().unwrap();
    let refused = infer(&[&model("clash"), "-o", clash]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(String::from_utf8(refused.stderr).unwrap().contains("rescale (Mul)"));
    assert!(!fs::exists(clash).unwrap());
    assert_eq!(infer(&[&model("clash"), "-o", clash, "--keep-going"]).status.code(), Some(1));
    assert!(fs::exists(clash).unwrap());
    for words in [&[new][..], &[new, "-o", "-", "--json"], &[new, "-o", new, "--set", "none=3"]] {
        assert_eq!(infer(words).status.code(), Some(2), "{words:?}");
    }
    assert_eq!(infer(&[new, "-o", new, "--trust-names", "no"]).status.code(), Some(0));
}
