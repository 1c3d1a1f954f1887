//! Side-by-side benchmarks: one table, one line of JSON a measurement.
//!
//! Cases are data (`cases.json`). An engine is anything that makes a [`Task`](measure::Task) of a case; what
//! runs in another process only has to print the same JSON lines. Times are good as ratios inside
//! one run of one case: the floor, the bytes that must move over the bandwidth that this machine
//! has at that moment, is measured beside every case.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it talks to a terminal")]

mod case;
mod engines;
mod floor;
mod measure;

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use case::Case;
use measure::{Measured, measure};

const HELP: &str = "simulcast-bench [--cases FILE] [--case GLOB] [--engine NAME] [--quick]";

struct Options {
    cases: Option<PathBuf>,
    case: String,
    engine: Option<String>,
    seconds: f64,
}

fn options() -> Result<Options, String> {
    let mut options = Options { cases: None, case: "*".into(), engine: None, seconds: 0.5 };
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or(format!("{arg} needs a value\n{HELP}"));
        match arg.as_str() {
            "--cases" => options.cases = Some(value()?.into()),
            "--case" => options.case = value()?,
            "--engine" => options.engine = Some(value()?),
            "--quick" => options.seconds = 0.08,
            _ => return Err(format!("what is {arg}?\n{HELP}")),
        }
    }
    Ok(options)
}

fn main() -> ExitCode {
    match options().and_then(|options| run(&options)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<(), String> {
    let home = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let file = options.cases.clone().unwrap_or_else(|| home.join("cases.json"));
    let text = fs::read_to_string(&file).map_err(|e| format!("{}: {e}", file.display()))?;
    let cases: Vec<Case> = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    let folder = home.join("results");
    fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    let file = fs::File::create(folder.join("results.jsonl")).map_err(|error| error.to_string())?;
    let mut file = std::io::BufWriter::new(file);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    println!(
        "{:<14} {:<13} {:>11} {:>11} {:>8} {:>10}",
        "case", "engine", "best", "median", "of floor", "ns/element"
    );
    for case in cases.iter().filter(|case| matches(&options.case, &case.name)) {
        let mut floor = None;
        for (engine, mut task) in engines::tasks(case) {
            let wanted = options.engine.as_deref().is_none_or(|name| name == engine);
            if engine != "floor" && !wanted {
                continue;
            }
            let measured = measure(options.seconds, &mut task);
            let floor = *floor.get_or_insert(measured.best);
            show(case, engine, &measured, floor);
            let line = serde_json::json!({
                "case": case.name, "engine": engine, "type": case.element, "shapes": case.shapes,
                "threads": if engine.ends_with("-1") || engine == "hand" { 1 } else { threads },
                "best": measured.best, "median": measured.median, "floor": floor,
                "bytes": case.bytes(), "machine": machine(),
            });
            writeln!(file, "{line}").map_err(|error| error.to_string())?;
        }
        println!();
    }
    file.flush().map_err(|error| error.to_string())
}

fn show(case: &Case, engine: &str, measured: &Measured, floor: f64) {
    println!(
        "{:<14} {engine:<13} {:>11} {:>11} {:>7.0}% {:>10.3}",
        case.name,
        time(measured.best),
        time(measured.median),
        floor / measured.best * 100.0,
        measured.best * 1e9 / case.elements() as f64,
    );
}

fn time(seconds: f64) -> String {
    match seconds {
        s if s < 1e-6 => format!("{:.1} ns", s * 1e9),
        s if s < 1e-3 => format!("{:.1} us", s * 1e6),
        s => format!("{:.2} ms", s * 1e3),
    }
}

fn machine() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = text.lines().find_map(|line| line.strip_prefix("model name")?.split(": ").nth(1));
    format!("{} {}", std::env::consts::ARCH, name.unwrap_or("unknown"))
}

/// Whether a name fits a pattern with `*`.
fn matches(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((head, tail)) => {
            let rest = name.strip_prefix(head);
            rest.is_some_and(|rest| {
                (0..=rest.len()).any(|at| rest.get(at..).is_some_and(|end| matches(tail, end)))
            })
        }
    }
}
