//! Coverage of the core: lines and branches, by its own tests.

use crate::run::{Step, command, ensure_cargo_tool, output, root, rustup};

/// Reports lines and branches of simulcast-core, and names each line that no test reaches.
pub(crate) fn run() -> Result<(), String> {
    ensure_cargo_tool("cargo-llvm-cov")?;
    rustup(["component", "add", "llvm-tools", "--toolchain", "nightly"])?;
    let base = ["+nightly", "llvm-cov", "-p", "simulcast-core", "--features", "serde", "--branch"];
    let target = root().join("target/coverage");
    let run = |more: &[&str]| {
        let mut command = command("cargo", base);
        command.args(more).env("CARGO_TARGET_DIR", &target);
        command
    };
    Step::new("coverage of simulcast-core").run(run(&["--summary-only"]))?;
    let missing = output(run(&["--no-run", "--show-missing-lines", "--summary-only"]))?;
    let (_, lines) = missing.split_once("Uncovered Lines:").unwrap_or_default();
    println!("lines that no test reaches:{}", if lines.is_empty() { " none" } else { lines });
    Ok(())
}
