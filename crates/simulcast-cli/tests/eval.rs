//! `simulcast eval` as a user meets it: results, errors, files, signals.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::fs;
use std::io::Write as _;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use common::folder;
use serde_json::Value;
use simulcast_files::{ReadLimits, Store};

fn simulcast(args: &[&str]) -> Output {
    let mut command = common::simulcast(args);
    // Files are named as on the command line of the examples.
    command.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../simulcast-files/tests/data"));
    // What is explained names the level, which is that of the machine.
    if args.contains(&"--explain") {
        command.env("SIMULCAST_LEVEL", "baseline");
    }
    command.output().unwrap()
}

fn transcript(args: &[&str]) -> String {
    common::transcript(args, simulcast(args))
}

// [E_BROADCAST_ANY_FUNC_2270]
#[test]
fn results_are_shown() {
    let calls: [&[&str]; 18] = [
        &["eval", "a * b + 1", "a=(2,3)", "b=[10, 20, 30]"],
        &["eval", "(x - m) / s", "x=[[1, 2], [3, 6]]", "m=[2, 4]", "s=[[1], [2]]"],
        &["eval", "x / 2", "x=version1.npy"],
        &["eval", "x + 1", "x=numpy.npz:big_fortran"],
        &["eval", "x + y", "x=tensors.safetensors:bfloat16", "y=tensors.safetensors:float16"],
        &["eval", "x == 'a'", "x=deflated.npz:text"],
        &["eval", "-x", "x=3"],
        &["eval", "x.sum()", "x=(100,100)"],
        &["eval", "x + y", "x=(1000,1)", "y=(3,)"],
        &["eval", "x > 3", "x=(1000,)"],
        &["eval", "x * 1j", "x=[1, 2.5]"],
        &["eval", "x[:, None] * x", "x=arange(4, dtype=int8)"],
        &["eval", "sum((x[:, None] - y) ** 2, axis=-1)", "x=(2,3)", "y=(4,3)", "--explain"],
        &["eval", "a * b", "a=(2,1)", "b=(3,)", "--explain"],
        &["eval", "sum(x - exp(sin(r)))", "x=(30,3000)", "r=(3000,)", "--explain"],
        &["eval", "x", "x=linspace(0, 1, 40)"],
        &["eval", "a * b + 1", "a=(2,3)", "b=2.5", "--json", "--explain"],
        &["eval", "x + y", "x=(2,3,4)", "y=(3,)", "--rule", "pdpd:1", "--json"],
    ];
    insta::assert_snapshot!(calls.map(transcript).join("\n"));
}

// [E_BROADCAST_ANY_FUNC_2270]
#[test]
fn several_results_are_shown() {
    let calls: [&[&str]; 11] = [
        &["eval", "a + b; a - b", "a=[1, 2, 3]", "b=10"],
        &["eval", "x - m; sum(x)", "x=(300,50)", "m=(50,)", "--explain"],
        &["eval", "a * b; max(a)", "a=(2,3)", "b=2.5", "--json", "--explain"],
        &["eval", "x + y; x * y", "x=(2,3,2)", "y=(3,)", "--rule", "pdpd:1", "--json"],
        &["eval", "x == 'a'; x", "x=['a', 'b']"],
        &["eval", "pred - target; pred * target", "pred=(3,1)", "target=(3,)"],
        &["eval", "x; 1 + (x + m)", "x=(2,3)", "m=(2,)"],
        &["eval", "x; x + 'a'", "x=(2,3)", "--json"],
        &["eval", "x * 2;", "x=3"],
        &["eval", "x; y + z + y", "x=3"],
        &["eval", "xs; x", "xs=3", "xx=2"],
    ];
    insta::assert_snapshot!(calls.map(transcript).join("\n"));
}

/// Each result goes to a file of its own, in which it is computed, or all to one archive.
#[test]
fn several_results_go_to_files() {
    let folder = folder("several");
    let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let files = ["sum.npy", "product.npy", "both.npz", "text.npy", "lengths.npy"].map(path);
    let operands = ["a=rand(200, 1)", "b=rand(300)"];
    let told = |name: &str, with: &[&str], outs: &[&String]| {
        let mut args = vec!["eval", name];
        args.extend(with);
        outs.iter().for_each(|out| args.extend(["-o", out.as_str()]));
        simulcast(&args)
    };
    // The results are not held in memory.
    let limited = [&operands[..], &["--max-bytes", "100000"]].concat();
    let done = told("a + b; a * b", &limited, &[&files[0], &files[1]]);
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    assert!(told("a + b; a * b", &operands, &[&files[2]]).status.success());
    let read = |path: &String, name| {
        let store = Store::open(path, &ReadLimits::default()).unwrap();
        let view = store.get(name).unwrap();
        (view.shape().to_vec(), view.typed::<f64>().unwrap().to_owned())
    };
    for (file, name) in files.iter().zip(["arr_0", "arr_1"]) {
        let alone = path("alone.npy");
        let text = if name == "arr_0" { "a + b" } else { "a * b" };
        assert!(told(text, &operands, &[&alone]).status.success());
        assert_eq!(
            (read(file, None), read(&files[2], Some(name))),
            (read(&alone, None), read(&alone, None))
        );
    }
    assert!(told("x + 'b'; x == 'a'", &["x=['a', 'c']"], &[&files[3], &files[4]]).status.success());
    assert!(fs::metadata(&files[3]).is_ok() && fs::metadata(&files[4]).is_ok());
    let again = path("sum.npy");
    for (outs, why) in [
        (vec![&files[0]], "2 results go to one .npz file or to 2 .npy files, not to 1 file"),
        (vec![&files[0], &files[1], &files[3]], "not to 3 files"),
        (vec![&files[0], &again], "results 0 and 1 both go to"),
        (vec![&files[0], &files[2]], "both.npz does not end in .npy"),
        (vec![&files[2]], "the results take 960 kB, over the limit of"),
    ] {
        let refused = told("a + b; a * b", &limited, &outs);
        let said = String::from_utf8(refused.stderr).unwrap();
        assert!(said.contains(why) && refused.status.code() == Some(2), "{said}");
    }
    let refused = told("a + b", &operands, &[&files[0], &files[1]]);
    assert!(
        String::from_utf8(refused.stderr).unwrap().contains("there is one result, but 2 files")
    );
}

// [E_BROADCAST_ANY_FUNC_2270]
#[test]
fn what_is_legal_and_suspicious_is_said() {
    let said = |args: &[&str]| String::from_utf8(simulcast(args).stderr).unwrap();
    let column = said(&["eval", "pred - target", "pred=(3,1)", "target=(3,)"]);
    assert!(column.starts_with("warning: SC102: a column meets a row"), "{column}");
    assert_eq!(said(&["eval", "pred - target[:, None]", "pred=(3,1)", "target=(3,)"]), "");
}

/// What several files take of the memory is one sum.
#[test]
fn files_share_the_memory() {
    let folder = folder("shared");
    // 1,000 numbers in the other byte order, which have to be converted: 2,000 bytes.
    let header = "{'descr': '>i2', 'fortran_order': False, 'shape': (1000,), }\n";
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    file.extend(u16::try_from(header.len()).unwrap().to_le_bytes());
    file.extend(header.bytes());
    file.extend([0; 2000]);
    let operands: Vec<String> = ["a", "b", "c"]
        .map(|name| {
            let path = folder.join(format!("{name}.npy"));
            fs::write(&path, &file).unwrap();
            format!("{name}={}", path.display())
        })
        .to_vec();
    let out = folder.join("out.npy");
    let sum = |limit| {
        let [a, b, c] = [&operands[0], &operands[1], &operands[2]];
        let out = out.to_str().unwrap();
        simulcast(&["eval", "a + b + c", a, b, c, "--max-bytes", limit, "-o", out])
    };
    let refused = sum("5000");
    let said = String::from_utf8(refused.stderr).unwrap();
    assert!(said.contains("c.npy: an array of 2000 bytes is over the limit of 1000"), "{said}");
    assert_eq!((refused.status.code(), out.exists()), (Some(2), false));
    assert!(sum("6000").status.success());
}

// [E_BROADCAST_ANY_FUNC_2270]
/// What is hoisted counts as memory, and is left where that is short.
#[test]
fn hoisting_takes_memory_where_there_is_some() {
    let stages = |bytes: &str| {
        let args = ["eval", "sum(x + exp(r))", "x=(50,2000)", "r=(2000,)", "--max-bytes", bytes];
        let output = simulcast(&[&args[..], &["--explain", "--json"]].concat());
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
        let hoisted = |stage: &Value| stage["hoisted"].as_bool().unwrap();
        let stages: Vec<bool> = answer["stages"].as_array().unwrap().iter().map(hoisted).collect();
        (stages, answer["values"].clone())
    };
    // Operands of 816,000 bytes, a hoisted row of 16,000, and a result with the room that it is made in.
    let (ample, short) = (stages("840000"), stages("820000"));
    assert_eq!((ample.0, short.0), (vec![true, false], vec![false]));
    assert_eq!(ample.1, short.1);
}

/// More elements than can be counted: a shape, and no memory for it.
#[test]
fn results_beyond_counting_are_refused() {
    let folder = folder("beyond");
    let path = folder.join("x.npy");
    let axes: Vec<String> = (0..7).map(|axes| format!("a[:{}]", ", None".repeat(axes))).collect();
    let expression = axes.join(" + ");
    for extra in [&[][..], &["--explain"], &["-o", path.to_str().unwrap()]] {
        let mut args = vec!["eval", expression.as_str(), "a=(1000,)"];
        args.extend(extra);
        let output = simulcast(&args);
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(matches!(output.status.code(), Some(1 | 2)), "{said}");
        assert!(said.starts_with("error"), "{said}");
    }
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
}

// [E_BROADCAST_ANY_FUNC_2270]
#[test]
fn what_does_not_go_together_exits_with_1() {
    let calls: [&[&str]; 6] = [
        &["eval", "-1 * a + b", "a=(2,3)", "b=(2,)"],
        &["eval", "image - mean", "image=zeros(8,3,4,5)", "mean=zeros(3)"],
        &["eval", "a + b", "a=(2,3,4)", "b=(2,4)", "--json"],
        &["eval", "a + b", "a=zeros(3, dtype=float32)", "b=zeros(3)", "--strict"],
        &["eval", "a + b", "a=['x']", "b=1"],
        &["eval", "a + b", "a=(3,)", "b=(1,)", "--rule", "exact"],
    ];
    let said = calls.map(transcript);
    for text in &said {
        assert!(text.contains("[exit code 1]"), "{text}");
    }
    insta::assert_snapshot!(said.join("\n"));
}

// [E_BROADCAST_ANY_FUNC_2240]
#[test]
fn what_cannot_be_understood_exits_with_2() {
    let calls: [&[&str]; 27] = [
        &["eval", "a + "],
        &["eval", "a + ", "--json"],
        &["eval", "a - maen", "a=1", "mean=1"],
        &["eval", "a", "a=numpy.npz:int8.npy"],
        &["eval", "a + foo(b)", "a=1", "b=1"],
        &["eval", "a + b", "a=1"],
        &["eval", "a", "a=1", "b=1"],
        &["eval", "a", "a=1", "a=2"],
        &["eval", "a", "rand(3)"],
        &["eval", "a", "1a=3"],
        &["eval", "a", "a="],
        &["eval", "a", "a=3,4"],
        &["eval", "a", "a=foo"],
        &["eval", "a", "a=foo(3)"],
        &["eval", "a", "a=[[1], [2, 3]]"],
        &["eval", "a", "a=[1, 'a']"],
        &["eval", "a", "a=array([300], dtype=int8)"],
        &["eval", "a", "a=rand(3, dtype=int8)"],
        &["eval", "a", "a=zeros(100, 100)", "--max-bytes", "1000"],
        &["eval", "a[:, None] + a", "a=(100,)", "--max-bytes", "1000"],
        &["eval", "a", "a=zeros(4294967296, 4294967296, 4294967296)", "--max-bytes", "1000"],
        &["eval", "a", "a=no.npy"],
        &["eval", "a", "a=numpy.npz"],
        &["eval", "a", "a=numpy.npz:no"],
        &["eval", "a", "a=refused.npz:object"],
        &["eval", "a", "a=1", "-o", "a.txt"],
        &["eval", "a", "a=1", "--rule", "named"],
    ];
    let said = calls.map(transcript);
    for text in &said {
        assert!(text.contains("[exit code 2]"), "{text}");
    }
    insta::assert_snapshot!(said.join("\n"));
}

// [E_BROADCAST_ANY_FUNC_2270]
#[test]
fn a_result_in_a_file_is_the_one_in_memory() {
    let folder = folder("eval");
    let (whole, blocks) = (folder.join("whole.npy"), folder.join("blocks.npy"));
    for (expression, shape) in [
        ("sin(x) * y", &[300, 50][..]),
        ("(x * y).sum(axis=1)", &[300]),
        ("x * y / (x * y).sum()", &[300, 50]),
        ("(x - x.mean(axis=0)) / y.sum() * y.T", &[300, 50]),
        ("sum((x[:, None] - y) ** 2, axis=-1)", &[300, 1]),
        ("sum(x.T * y[:, None], axis=0)", &[300]),
        ("x.sum() + y.sum()", &[]),
        ("sin(x[None]) * y", &[1, 300, 50]),
        ("(x[None] * y).sum(axis=2, keepdims=True)", &[1, 300, 1]),
    ] {
        let operands = ["x=randn(300, 1)", "y=rand(50, dtype=float32)"];
        for (path, limit) in [(&whole, "100000000"), (&blocks, "5000")] {
            let mut args = vec!["eval", expression, "--max-bytes", limit, "-o"];
            args.push(path.to_str().unwrap());
            args.extend(operands);
            let output = simulcast(&args);
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        }
        assert!(fs::read(&whole).unwrap() == fs::read(&blocks).unwrap(), "{expression}");
        let store = Store::open(&whole, &ReadLimits::default()).unwrap();
        assert_eq!(store.get(None).unwrap().shape(), shape);
    }
    // What is read may be replaced.
    let path = whole.to_str().unwrap();
    assert!(simulcast(&["eval", "x + 1", "x=(3,)", "-o", path]).status.success());
    let operand = format!("x={path}");
    assert!(simulcast(&["eval", "x * 2", &operand, "-o", path]).status.success());
    let store = Store::open(&whole, &ReadLimits::default()).unwrap();
    assert_eq!(store.get(None).unwrap().to_owned(), ndarray::array![2_i64, 4, 6].into());
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 2);
    // Text too.
    let words = format!("{}/words.npy", folder.display());
    assert!(simulcast(&["eval", "x", "x=['a', 'bc']", "-o", &words]).status.success());
    let store = Store::open(&words, &ReadLimits::default()).unwrap();
    let words = ndarray::array!["a", "bc"].mapv(String::from);
    assert_eq!(store.get(None).unwrap().to_owned(), words.into());
}

/// What is computed before a result counts, and is counted before anything is computed.
// [E_BROADCAST_ANY_FUNC_2270]
#[test]
fn memory_for_what_comes_before_the_result_is_limited() {
    let folder = folder("limited");
    let path = folder.join("x.npy");
    let path = path.to_str().unwrap();
    // `x` takes 8 kB, the square of its transpose 8 kB more, two sums of columns 1 kB.
    let square = ["eval", "x + (x * x).T.T", "x=rand(10, 100)", "--max-bytes"];
    let sums = ["eval", "x - x.sum(axis=0)", "x=rand(10, 100)", "--max-bytes"];
    let file = ["-o", path];
    let cases: [(&[&str], &str, &[&str], bool); 7] = [
        (&square, "15999", &file, false),
        (&square, "16000", &file, true),
        (&square, "23999", &[], false),
        (&square, "24000", &[], true),
        (&sums, "9599", &file, false),
        (&sums, "9600", &file, true),
        // Text is made before it is written.
        (
            &["eval", "where(x, 'a', 'b')", "x=ones(1000, dtype=bool)", "--max-bytes"],
            "9000",
            &file,
            false,
        ),
    ];
    for (call, limit, file, enough) in cases {
        let output = simulcast(&[call, &[limit], file].concat());
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(if enough { 0 } else { 2 }), "{limit}: {said}");
        assert_eq!(said.contains("raise --max-bytes"), !enough, "{said}");
        assert_eq!(fs::remove_file(path).is_ok(), enough && !file.is_empty());
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
    }
}

/// (1 + e)(1 - e) - 1 is 0 where the product is rounded, and -e^2 where it is not.
#[test]
fn fast_math_is_off_unless_asked_for() {
    let call = ["eval", "a * b + c", "a=1.0000000000000002", "b=0.9999999999999998", "c=-1.0"];
    let value = |extra: &[&str]| {
        let output = simulcast(&[&call[..], &["--json"], extra].concat());
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
        answer["values"].as_f64().unwrap()
    };
    let (a, b) = (1.000_000_000_000_000_2_f64, 0.999_999_999_999_999_8_f64);
    assert_eq!(value(&[]), a * b - 1.0);
    assert_eq!(value(&["--fast-math"]), a.mul_add(b, -1.0));
    assert_ne!(value(&[]), value(&["--fast-math"]));
}

// [E_BROADCAST_ANY_FUNC_2230]
#[test]
fn of_two_runs_into_one_file_one_is_there_whole() {
    let folder = folder("two");
    let path = folder.join(".npy");
    let start = |more: i32| {
        Command::new(env!("CARGO_BIN_EXE_simulcast"))
            .args(["eval", &format!("x + {more}"), "x=zeros(300, 500)", "-o"])
            .arg(&path)
            .stdout(Stdio::null())
            .spawn()
            .unwrap()
    };
    for mut run in [1, 2, 3, 4].map(start) {
        assert!(run.wait().unwrap().success());
    }
    let store = Store::open(&path, &ReadLimits::default()).unwrap();
    let view = store.get(None).unwrap();
    let result = view.typed::<f64>().unwrap();
    let first = result[[0, 0]];
    assert!([1.0, 2.0, 3.0, 4.0].contains(&first));
    assert!(result.iter().all(|&x| x == first));
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
    let missing = folder.join("missing/x.npy");
    let output = simulcast(&["eval", "x", "x=1", "-o", missing.to_str().unwrap()]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.ends_with("missing/x.npy: there is no such folder\n"), "{said}");
}

// [E_BROADCAST_ANY_FUNC_2230]
#[test]
fn an_interrupted_run_leaves_nothing() {
    for signal in ["INT", "TERM", "KILL"] {
        let folder = folder(&format!("interrupted-{signal}"));
        let path = folder.join("x.npy");
        let mut child = Command::new(env!("CARGO_BIN_EXE_simulcast"))
            .args(["eval", "sin(x[:, None] * y).sum(axis=1)", "x=(100000,)", "y=(1000000,)", "-o"])
            .args([path.to_str().unwrap(), "--threads", "1"])
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(700));
        let sent =
            Command::new("kill").args(["-s", signal, &child.id().to_string()]).status().unwrap();
        assert!(sent.success(), "it was still at work");
        let start = Instant::now();
        let status = child.wait().unwrap();
        // What a shell says of a process that a signal has ended; nobody gets to say it after `KILL`.
        let number = Command::new("kill").args(["-l", signal]).output().unwrap();
        let number: i32 = String::from_utf8(number.stdout).unwrap().trim().parse().unwrap();
        assert_eq!(status.code(), (signal != "KILL").then_some(128 + number), "{signal}");
        assert!(start.elapsed() < Duration::from_secs(20));
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0, "{signal}");
    }
}

#[test]
fn standard_input_is_a_file() {
    let data = concat!(env!("CARGO_MANIFEST_DIR"), "/../simulcast-files/tests/data/big.npy");
    let mut child = Command::new(env!("CARGO_BIN_EXE_simulcast"))
        .args(["eval", "x.max()", "x=/dev/stdin", "--json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(&fs::read(data).unwrap()).unwrap();
    let output = child.wait_with_output().unwrap();
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&answer["dtype"], &answer["values"]), (&"int32".into(), &23.into()));
}

#[test]
fn times_are_told_on_standard_error() {
    let output = simulcast(&["eval", "x + 1", "x=(3,)", "--time"]);
    let said = String::from_utf8(output.stderr).unwrap();
    let parts: Vec<&str> = said.split(", ").map(|part| part.split(' ').next().unwrap()).collect();
    assert_eq!(parts, ["read", "compile", "run"]);
    let output = simulcast(&["eval", "x + 1", "x=(3,)", "--time", "--json"]);
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(answer["seconds"]["run"].as_f64().unwrap() > 0.0);
}

#[test]
fn the_seed_decides_random_numbers() {
    let rand =
        |seed| simulcast(&["eval", "x - y", "x=rand(3)", "y=rand(3)", "--seed", seed]).stdout;
    assert_eq!(rand("1"), rand("1"));
    assert_ne!(rand("1"), rand("2"));
    let zeros = simulcast(&["eval", "x - x", "x=rand(3)"]).stdout;
    assert_ne!(rand("1"), zeros, "each operand has its own");
}

/// Whether two answers are the same, up to the last digits of a float.
fn alike(ours: &Value, theirs: &Value) -> bool {
    match (ours, theirs) {
        (Value::Array(ours), Value::Array(theirs)) => {
            ours.len() == theirs.len() && ours.iter().zip(theirs).all(|(a, b)| alike(a, b))
        }
        (Value::Number(a), Value::Number(b)) if a.is_f64() && b.is_f64() => {
            let (a, b) = (a.as_f64().unwrap(), b.as_f64().unwrap());
            (a - b).abs() <= 1e-15 * b.abs()
        }
        _ => ours == theirs,
    }
}

/// `tests/record_eval.py` asked NumPy.
// [E_BROADCAST_ANY_FUNC_2270]
#[test]
fn answers_are_those_of_numpy() {
    let cases: Vec<Value> = serde_json::from_str(include_str!("eval.json")).unwrap();
    assert!(cases.len() >= 25);
    for case in &cases {
        let operands = case["operands"].as_object().unwrap().iter();
        let operands: Vec<String> =
            operands.map(|(name, word)| format!("{name}={}", word.as_str().unwrap())).collect();
        let mut args = vec!["eval", "--json", case["expression"].as_str().unwrap()];
        args.extend(operands.iter().map(String::as_str));
        let output = simulcast(&args);
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        let ours: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!((&ours["dtype"], &ours["shape"]), (&case["dtype"], &case["shape"]), "{args:?}");
        assert!(alike(&ours["values"], &case["values"]), "{args:?}: {ours} {case}");
    }
}

#[test]
fn a_device_that_is_not_there_is_an_error() {
    let none = !std::path::Path::new("/dev/nvidia0").exists();
    for args in [&["devices"][..], &["eval", "a + 1", "a=(2,3)", "--device", "cuda"]] {
        let Output { status, stderr, .. } = simulcast(args);
        let said = String::from_utf8(stderr).unwrap();
        assert!(!none || status.code() == Some(1) && said.contains("no NVIDIA driver"), "{said}");
    }
    let Output { status, stderr, .. } = simulcast(&["eval", "1", "--device", "gpu"]);
    assert_eq!(status.code(), Some(2));
    assert!(String::from_utf8(stderr).unwrap().contains("cpu, cuda or cuda:1"));
    assert!(simulcast(&["eval", "a + 1", "a=(2,3)", "--device", "cpu"]).status.success());
}

// [E_BROADCAST_ANY_FUNC_2270]
#[test]
fn a_matrix_product_is_suggested_where_the_shapes_allow_it() {
    let calls: [&[&str]; 5] = [
        &["eval", "1 + a @ b", "a=(3,4)", "b=(4,)"],
        &["eval", "a @ b", "a=[1, 2]", "b=ones(2, 5)"],
        // Shapes that are never made: a gigabyte each.
        &["eval", "a @ b", "a=(20000,10000)", "b=(10000,20000)", "--json"],
        &["eval", "a @ b", "a=(3,4)", "b=(3,4)"],
        &["eval", "a @ b", "a=(3,4)", "b=missing.npy"],
    ];
    insta::assert_snapshot!(calls.map(transcript).join("\n"));
}

// [E_BROADCAST_ANY_FUNC_2270]
#[test]
fn values_are_rounded_to_decimals() {
    let calls: [&[&str]; 4] = [
        &["eval", "round(x, 2) + x.round(decimals=-1)", "x=[1.245, 2.675, -17.5]"],
        &["eval", "round(n, 2) + round(n, -2)", "n=[149, 150, 250, 350]"],
        &["eval", "round(x, 1.5)", "x=[1.245]"],
        &["eval", "rint(x, 2)", "x=[1.245]"],
    ];
    insta::assert_snapshot!(calls.map(transcript).join("\n"));
}
