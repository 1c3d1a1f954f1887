//! Benchmarks: ours beside their peers, and this tree's engine beside that of another revision.

use std::fs;
use std::process::Command;

use crate::python;
use crate::revision::Tree;
use crate::run::{Step, cargo, root};

/// Runs what the options ask for.
pub(crate) fn run(options: &[&str]) -> Result<(), String> {
    if let Some(at) = options.iter().position(|&option| option == "--against") {
        let revision = options.get(at + 1).ok_or("--against needs a revision")?;
        let rest: Vec<&str> = [&options[..at], &options[at + 2..]].concat();
        return against(revision, &rest);
    }
    if options.contains(&"--best-of") {
        let mut own = Tree::this().engines_only("run");
        own.args(["--quiet", "--"]).args(options);
        return Step::new("runs together").run(own);
    }
    beside_peers(options)
}

/// Arrays side by side with their peers.
fn beside_peers(options: &[&str]) -> Result<(), String> {
    let mut run =
        cargo(["run", "--release", "-p", "simulcast-bench", "--features", "candle", "--"]);
    run.args(options.iter().filter(|&&option| option != "--peers"));
    if options.contains(&"--peers") {
        let list = root().join("bench/peers/requirements.txt");
        let step = Step::new("environment of the peers");
        match python::environment(&root().join("target/bench"), &list) {
            // Relative to the root, where it is started: a path of its own may have spaces.
            Ok(_) => {
                let mut scripts = vec!["arrays", "pytorch", "xla", "graphs"];
                match python::install(&root().join("target/bench")) {
                    Ok(()) => scripts.push("own"),
                    Err(why) => Step::new("our own package").skipped(&why)?,
                }
                for script in scripts {
                    let peer = format!("target/bench/bin/python bench/peers/{script}.py");
                    run.args(["--peer", &peer]);
                }
            }
            Err(why) => step.skipped(&why)?,
        }
    }
    Step::new("bench").run(run)
}

/// Models that run beside ONNX Runtime; the table goes to `bench/results/onnx.md`.
pub(crate) fn onnx(options: &[&str]) -> Result<(), String> {
    let step = Step::new("packages for the comparison of models");
    let list = root().join("conformance/models/requirements.txt");
    let python = match python::environment(&root().join("target/models/environment"), &list) {
        Ok(python) => python,
        Err(why) => return step.skipped(&why),
    };
    step.check(|| Ok("there".into()))?;
    let build = cargo(["build", "--release", "-p", "simulcast-bench-onnx"]);
    Step::new("the process that runs models").run(build)?;
    let mut run = Command::new(python);
    run.arg("bench/peers/onnx_run.py").arg("target/release/onnx_run").args(options);
    if options.is_empty() {
        run.args(["--page", "bench/results/onnx.md"]);
    }
    Step::new("bench").run(run.current_dir(root()))
}

/// This tree's engine beside that of another revision, measured in turns by the same benchmark compiled with each.
fn against(revision: &str, options: &[&str]) -> Result<(), String> {
    let (old, new) = (Tree::of(revision)?, Tree::this());
    for tree in [&old, &new] {
        let build = tree.engines_only("build");
        Step::new(&format!("build with the engine of {}", tree.name)).run(build)?;
    }
    // A copy, because the next build of the benchmark with other features takes its place.
    let home = root().join("target/against");
    let own = home.join("this");
    let built = new.benchmark();
    fs::copy(&built, &own).map_err(|error| format!("{}: {error}", built.display()))?;
    if options == ["--build"] {
        return Ok(());
    }
    let mut turns = Command::new(own);
    turns.arg("--against").arg(old.benchmark()).args(options).current_dir(root());
    if !options.contains(&"--out") {
        turns.arg("--out").arg(home.join("ratios.jsonl"));
    }
    Step::new(&format!("this tree against {revision}")).run(turns)
}
