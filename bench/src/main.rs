//! Side-by-side benchmarks: a table, a plot, a chart of a few cases, and one line of JSON a measurement.
//!
//! Cases are data (`cases.json`). An engine is anything that makes a `Task` of a
//! case, or a process that answers as [`peers`] says. Times are good as ratios inside one run of
//! one case: all take turns, several turns a case, and so does the floor, the bytes that must move
//! over the bandwidth that this machine has at that moment.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it talks to a terminal")]

mod against;
mod asked;
mod floor;
mod peers;
mod report;

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use floor::Pages;
use peers::{Answer, Peer};
use report::{Line, Row, size, time};
use simulcast_bench::case::Case;
use simulcast_bench::measure::{Measured, cores, measure, median};
use simulcast_bench::{engines, program, worker};

const HELP: &str = "\
simulcast-bench [--cases FILE] [--case GLOB] [--engine NAME] [--quick] [--peer COMMAND]...
simulcast-bench --against PROGRAM [--cases FILE] [--case GLOB] [--engine NAME] [--quick] [--rounds N] [--runs N] [--out FILE]
simulcast-bench --best-of FILE...

  --cases FILE     other cases than those of bench/cases.json
  --case GLOB      the cases whose name fits
  --engine NAME    that engine alone, beside the floor
  --quick          under a minute: less time for each engine, one case of each kind
  --peer COMMAND   a process that answers as bench/README.md says, beside the others
  --against PROGRAM  our engines beside those of this benchmark compiled with another revision, in turns
  --rounds N       the most pairs of turns a row (15)
  --runs N         as many runs, and what they come to together
  --out FILE       where the ratios are written; with several runs, FILE.1, FILE.2 and so on
  --best-of FILE...  what runs come to together
  --worker         answer questions of another process (src/worker.rs)
  --help           this text";

struct Options {
    cases: Option<PathBuf>,
    case: String,
    engine: Option<String>,
    seconds: f64,
    quick: bool,
    peers: Vec<String>,
    against: Option<PathBuf>,
    rounds: usize,
    runs: usize,
    out: Option<PathBuf>,
    best_of: Vec<PathBuf>,
    worker: bool,
}

/// What is asked for; nothing where that is help.
fn options() -> Result<Option<Options>, String> {
    let mut options = Options {
        cases: None,
        case: "*".into(),
        engine: None,
        seconds: 0.5,
        quick: false,
        peers: Vec::new(),
        against: None,
        rounds: 15,
        runs: 1,
        out: None,
        best_of: Vec::new(),
        worker: false,
    };
    let number = |text: String| text.parse().map_err(|_| format!("{text} is no number\n{HELP}"));
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or(format!("{arg} needs a value\n{HELP}"));
        match arg.as_str() {
            "--cases" => options.cases = Some(value()?.into()),
            "--case" => options.case = value()?,
            "--engine" => options.engine = Some(value()?),
            "--peer" => options.peers.push(value()?),
            "--against" => options.against = Some(value()?.into()),
            "--rounds" => options.rounds = number(value()?)?,
            "--runs" => options.runs = number(value()?)?,
            "--out" => options.out = Some(value()?.into()),
            "--best-of" => options.best_of.extend(args.by_ref().map(PathBuf::from)),
            "--worker" => options.worker = true,
            "--help" | "-h" => return Ok(None),
            "--quick" => (options.quick, options.seconds) = (true, 0.06),
            _ => return Err(format!("what is {arg}?\n{HELP}")),
        }
    }
    Ok(Some(options))
}

fn main() -> ExitCode {
    let done = options().and_then(|options| match options {
        Some(options) => run(&options),
        None => {
            println!("{HELP}");
            Ok(())
        }
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<(), String> {
    if options.worker {
        return worker::serve();
    }
    if !options.best_of.is_empty() {
        let runs = options.best_of.iter().map(|file| against::read(file));
        return verdict(&runs.collect::<Result<Vec<_>, _>>()?);
    }
    let home = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let file = options.cases.clone().unwrap_or_else(|| home.join("cases.json"));
    let text = fs::read_to_string(&file).map_err(|e| format!("{}: {e}", file.display()))?;
    let cases: Vec<Case> =
        serde_json::from_str(&text).map_err(|e| format!("{}: {e}", file.display()))?;
    let wanted =
        |case: &&Case| matches(&options.case, &case.name) && (case.quick || !options.quick);
    match &options.against {
        Some(old) => compare(options, old, || cases.iter().filter(wanted)),
        None => measure_all(options, &home, &file, &cases, wanted),
    }
}

/// Runs beside another revision, and what they come to.
fn compare<'c, I: Iterator<Item = &'c Case>>(
    options: &Options,
    old: &Path,
    cases: impl Fn() -> I,
) -> Result<(), String> {
    let seconds = if options.quick { 0.01 } else { 0.02 };
    let schedule = against::Schedule { old: old.to_owned(), rounds: options.rounds, seconds };
    let mut runs = Vec::new();
    for run in 1..=options.runs.max(1) {
        let rows = against::run(cases(), options.engine.as_deref(), &schedule)?;
        if rows.is_empty() {
            return Err("no case and engine fits that both revisions have".into());
        }
        println!("\n{}", against::summary(&rows));
        if let Some(out) = &options.out {
            let mut name = out.as_os_str().to_owned();
            if options.runs > 1 {
                name.push(format!(".{run}"));
            }
            write(Path::new(&name), &against::lines(&rows)?)?;
        }
        runs.push(rows);
    }
    if runs.len() > 1 { verdict(&runs) } else { Ok(()) }
}

/// What several runs come to; an error where that is too slow.
fn verdict(runs: &[Vec<against::Ratio>]) -> Result<(), String> {
    let verdict = against::Verdict::of(runs);
    println!("{}", verdict.text());
    if verdict.passes() { Ok(()) } else { Err("slower than the other revision".into()) }
}

/// Every engine of each case beside the floor and its peers: the tables.
fn measure_all(
    options: &Options,
    home: &Path,
    file: &Path,
    cases: &[Case],
    wanted: impl Fn(&&Case) -> bool,
) -> Result<(), String> {
    let mut peers = options.peers.iter().map(|p| Peer::start(p)).collect::<Result<Vec<_>, _>>()?;
    println!(
        "{:<14} {:<16} {:>11} {:>11} {:>8} {:>10} {:>9} {:>7}",
        "case", "engine", "best", "median", "of floor", "ns/element", "must move", "GB/s"
    );
    let mut lines: Vec<Line> = Vec::new();
    for case in cases.iter().filter(wanted) {
        lines.extend(measured(case, options, &mut peers)?);
        println!();
    }
    if lines.is_empty() {
        return Err(format!("no case of {} fits {}", file.display(), options.case));
    }
    if let Some(engine) = &options.engine
        && lines.iter().all(|line| line.engine != *engine)
    {
        return Err(format!("{engine} has none of these cases, or is no engine"));
    }
    let folder = home.join("results");
    fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let (machine, file) = (machine(), folder.join("results.jsonl"));
    println!("{}", report::table(&rows(cases, &lines), &machine));
    let lines = beside(earlier(&file, &machine), lines);
    let rows = rows(cases, &lines);
    let text = lines.iter().map(|line| serde_json::to_string(line).map(|line| line + "\n"));
    write(&file, &text.collect::<Result<String, _>>().map_err(|e| e.to_string())?)?;
    write(&folder.join("table.md"), &report::table(&rows, &machine))?;
    write(&folder.join("plot.svg"), &report::plot(&rows, &machine))?;
    write(&folder.join("chart.svg"), &report::chart(&rows, &machine))
}

/// The measurements of earlier runs on this machine.
fn earlier(file: &Path, machine: &str) -> Vec<Line> {
    let text = fs::read_to_string(file).unwrap_or_default();
    let lines = text.lines().filter_map(|line| serde_json::from_str::<Line>(line).ok());
    lines.filter(|line| line.machine == machine).collect()
}

/// Earlier measurements beside new ones: of a case only those of one run, the latest.
fn beside(mut earlier: Vec<Line>, new: Vec<Line>) -> Vec<Line> {
    earlier.retain(|line| new.iter().all(|one| one.case != line.case));
    earlier.extend(new);
    earlier
}

/// The measurements of each case, in the order of the cases.
fn rows(cases: &[Case], lines: &[Line]) -> Vec<Row> {
    let row = |case: &Case| {
        let of_case = lines.iter().filter(|line| line.case == case.name);
        let (case, chart) = (case.name.clone(), case.chart.clone());
        Row { case, chart, lines: of_case.cloned().collect() }
    };
    cases.iter().map(row).filter(|row| !row.lines.is_empty()).collect()
}

/// Writes a file whole or not at all.
fn write(path: &Path, text: &str) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{}: {error}", path.display());
    let beside = path.with_extension("part");
    let mut file = fs::File::create(&beside).map_err(failed)?;
    file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(failed)?;
    fs::rename(&beside, path).map_err(failed)
}

/// The turns that every engine takes at a case, and the rounds of each for those of this process. A shared machine's
/// memory is half as fast for a while, and then again as fast: what is compared is measured one after the other, often,
/// rather than once for long.
const TURNS: usize = 7;
const ROUNDS: usize = 4;

/// An engine at a case.
struct Entrant {
    engine: String,
    threads: usize,
    /// Whether it works in another process.
    outside: bool,
    rounds: Vec<Round>,
}

/// A measurement, and what half of the floor's calls beside it took.
struct Round {
    own: Measured,
    floor: Option<f64>,
}

impl Entrant {
    /// The share of the floor that half of the rounds reach, each of the floor beside it.
    fn share(&self) -> Option<f64> {
        let shares = self.rounds.iter().map(|round| Some(round.floor? / round.own.median));
        median(shares.collect::<Option<Vec<f64>>>()?)
    }

    fn floor(&self) -> Option<f64> {
        median(self.rounds.iter().map(|round| round.floor).collect::<Option<Vec<f64>>>()?)
    }
}

/// Every engine's measurement of a case, the floors' first where there are any.
fn measured(case: &Case, options: &Options, peers: &mut [Peer]) -> Result<Vec<Line>, String> {
    let all = std::thread::available_parallelism().map_or(1, usize::from);
    let wanted = |engine: &str| {
        engine.starts_with("floor")
            || options.engine.as_deref().is_none_or(|wanted| wanted == engine)
    };
    let floors = [("floor", Pages::Plain), ("floor-huge", Pages::Huge)];
    let floors = floors.into_iter().filter(|_| case.moves());
    let floors = floors.map(|(name, pages)| (name, floor::of(case, pages)));
    let tasks = floors.chain(engines::tasks(case, &wanted));
    let (engines, mut tasks): (Vec<_>, Vec<_>) = tasks.unzip();
    let entrant = |&engine: &&str| {
        let threads = if engine.ends_with("-1") || engine == "hand" { 1 } else { all };
        Entrant { engine: engine.into(), threads, outside: false, rounds: Vec::new() }
    };
    let mut entrants: Vec<Entrant> = engines.iter().map(entrant).collect();
    let [floor, floor_huge] =
        ["floor", "floor-huge"].map(|name| engines.iter().position(|&engine| engine == name));
    let rounds = if options.quick { 1 } else { ROUNDS };
    let seconds = options.seconds / (TURNS * rounds) as f64;
    let mut had = Vec::new();
    for turn in 0..TURNS {
        had.push(cores(all));
        for round in 0..rounds {
            let mut beside = [None; 2];
            for (n, (task, entrant)) in tasks.iter_mut().zip(&mut entrants).enumerate() {
                // One call of a slow engine takes its time for the whole turn.
                let slow = |last: &Round| last.own.median > seconds && Some(n) != floor;
                if round > 0 && entrant.rounds.last().is_some_and(slow) {
                    continue;
                }
                let own = measure(seconds, task);
                let huge = Some(n) == floor_huge;
                if huge || Some(n) == floor {
                    beside[usize::from(huge)] = Some(own.median);
                }
                entrant.rounds.push(Round { own, floor: beside[usize::from(huge)] });
            }
        }
        // A model is written here, for engines of this process.
        for peer in peers.iter_mut().filter(|_| case.op != "onnx_check") {
            let mut floor = || floor_huge.map(|n| measure(seconds, &mut tasks[n]).median);
            let before = floor();
            let seconds = options.seconds / TURNS as f64;
            let answers = if turn == 0 { peer.ask(case, seconds) } else { peer.ask_again(seconds) };
            let answers = answers?;
            let floor = before.zip(floor()).map(|(before, after)| (before + after) / 2.0);
            for answer in answers.into_iter().filter(|answer| wanted(&answer.engine)) {
                let Answer { engine, threads, best, median } = answer;
                let known = entrants.iter().position(|one| one.outside && one.engine == engine);
                let at = known.unwrap_or_else(|| {
                    entrants.push(Entrant { engine, threads, outside: true, rounds: Vec::new() });
                    entrants.len() - 1
                });
                entrants[at].rounds.push(Round { own: Measured { best, median }, floor });
            }
        }
    }
    let cores = median(had);
    let lines = entrants.iter().map(|entrant| {
        let Measured { best, median } = Measured::over(entrant.rounds.iter().map(|one| &one.own));
        Line {
            case: case.name.clone(),
            engine: entrant.engine.clone(),
            outside: entrant.outside,
            element: case.element.clone(),
            shapes: case.shapes.clone(),
            threads: entrant.threads,
            best,
            median,
            floor: entrant.floor(),
            share: entrant.share(),
            bytes: case.bytes(),
            cores,
            strategy: (entrant.engine == "program").then(|| program::strategy(case)).flatten(),
            machine: machine(),
        }
    });
    Ok(lines.inspect(|line| show(case, line)).collect())
}

fn show(case: &Case, line: &Line) {
    let share = |share: f64| format!("{:.0}%", share * 100.0);
    println!(
        "{:<14} {:<16} {:>11} {:>11} {:>8} {:>10.3} {:>9} {:>7.2}",
        case.name,
        line.engine,
        time(line.best),
        time(line.median),
        line.share().map_or("-".into(), share),
        line.median * 1e9 / case.elements() as f64,
        size(line.bytes),
        line.bytes as f64 / line.median / 1e9,
    );
}

/// The processor: many have the name of others.
fn machine() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let of = |key: &str| {
        let pairs = text.lines().filter_map(|line| line.split_once(':'));
        let found = pairs.map(|(own, value)| (own.trim(), value.trim())).find(|one| one.0 == key);
        found.map_or("unknown", |(_, value)| value)
    };
    let [name, family, model] = ["model name", "cpu family", "model"].map(of);
    format!("{} {name}, family {family}, model {model}", std::env::consts::ARCH)
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
