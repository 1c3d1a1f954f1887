//! Steps: run a program or a check, say how it went and how long it took.

use std::borrow::BorrowMut;
use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Instant;

/// The root of the workspace.
pub(crate) fn root() -> PathBuf {
    let own = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    own.parent().map_or_else(|| own.clone(), PathBuf::from)
}

/// Where tools are installed. Outside the project nothing is touched but rustup's toolchains and, in CI
/// alone (`XTASK_STRICT=1`), system packages.
fn tools() -> PathBuf {
    root().join("target/tools")
}

/// A program, started in the root.
pub(crate) fn command<S: AsRef<OsStr>>(
    program: &str,
    args: impl IntoIterator<Item = S>,
) -> Command {
    let mut command = Command::new(program);
    command.args(args).current_dir(root());
    // A cargo that was chosen for this run must not choose for others.
    command.env_remove("RUSTUP_TOOLCHAIN").env_remove("CARGO");
    // Tools that were installed for this project alone.
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let paths = std::iter::once(tools().join("bin")).chain(std::env::split_paths(&paths));
    if let Ok(paths) = std::env::join_paths(paths) {
        command.env("PATH", paths);
    }
    command
}

/// Cargo, as it was chosen for this run.
pub(crate) fn cargo<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Command {
    let program = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let mut command = Command::new(program);
    command.args(args).current_dir(root());
    command
}

/// Something that is done, with a name.
pub(crate) struct Step {
    name: String,
    start: Instant,
}

impl Step {
    pub(crate) fn new(name: &str) -> Self {
        println!("── {name}");
        Self { name: name.into(), start: Instant::now() }
    }

    /// Runs a program that shows its own output.
    pub(crate) fn run(self, mut command: impl BorrowMut<Command>) -> Result<(), String> {
        let command = command.borrow_mut();
        let status = command
            .status()
            .map_err(|error| format!("{}: cannot start {command:?}: {error}", self.name))?;
        if !status.success() {
            return Err(format!("{}: {command:?} failed ({status})", self.name));
        }
        println!("   {:.1} s", self.start.elapsed().as_secs_f32());
        Ok(())
    }

    /// Runs a check of our own.
    pub(crate) fn check(self, check: impl Fn() -> Result<String, String>) -> Result<(), String> {
        let said = check().map_err(|error| format!("{}: {error}", self.name))?;
        println!("   {said}");
        Ok(())
    }

    /// Says loudly that something could not be done here; under `XTASK_STRICT=1` that is a failure.
    pub(crate) fn skipped(self, why: &str) -> Result<(), String> {
        skip(&self.name, why, is_strict())
    }
}

fn skip(name: &str, why: &str, strict: bool) -> Result<(), String> {
    let why = why.trim();
    if strict {
        return Err(format!("{name}: {why} (XTASK_STRICT=1: nothing may be skipped)"));
    }
    println!("   SKIPPED: {name} ({why})");
    Ok(())
}

/// Whether `XTASK_STRICT=1`, as in CI: a step that cannot be done is a failure, and the machine may be
/// changed to do it.
pub(crate) fn is_strict() -> bool {
    std::env::var("XTASK_STRICT").is_ok_and(|value| value == "1")
}

/// What a program prints; an error says what it printed on standard error.
pub(crate) fn output(mut command: impl BorrowMut<Command>) -> Result<String, String> {
    let command = command.borrow_mut();
    let output = command
        .stderr(Stdio::piped())
        .output()
        .map_err(|error| format!("cannot start {command:?}: {error}"))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Runs rustup quietly.
pub(crate) fn rustup<const N: usize>(args: [&str; N]) -> Result<(), String> {
    output(command("rustup", args)).map(drop)
}

/// Installs a target of the toolchain in use.
pub(crate) fn ensure_target(target: &str) -> Result<(), String> {
    let installed = output(command("rustup", ["target", "list", "--installed"]))?;
    if installed.lines().any(|line| line == target) {
        return Ok(());
    }
    rustup(["target", "add", target])
}

/// Where a program is.
pub(crate) fn program(name: &str) -> Option<String> {
    let found = output(command("sh", ["-c", &format!("command -v {name}")])).ok()?;
    Some(found.trim().to_owned())
}

/// Whether a program is there.
pub(crate) fn exists(name: &str) -> bool {
    program(name).is_some()
}

/// Installs packages of Debian where the machine may be changed for it; elsewhere the error says what is
/// missing, after `why`.
pub(crate) fn install_packages(packages: &[&str], why: &str) -> Result<(), String> {
    let names = packages.join(" ");
    if !is_strict() {
        return Err(format!("{why}on Debian: apt-get install {names}"));
    }
    println!("   installing {names}");
    output(command("apt-get", ["update"]))?;
    let install = command("apt-get", ["install", "-y", "--no-install-recommends"]);
    output({ install }.args(packages).env("DEBIAN_FRONTEND", "noninteractive")).map(drop)
}

/// Installs a cargo subcommand under `target/`, once.
pub(crate) fn ensure_cargo_tool(tool: &str) -> Result<(), String> {
    if output(command(tool, ["--version"])).is_ok() || output(command(tool, ["--help"])).is_ok() {
        return Ok(());
    }
    let mut install = command("cargo", ["install", tool, "--root"]);
    Step::new(&format!("install {tool}")).run(install.arg(tools()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_done_is_a_failure_where_nothing_may_be_skipped() {
        assert_eq!(skip("proofs", "no why3\n", false), Ok(()));
        let failed = skip("proofs", "no why3\n", true);
        assert!(failed.is_err_and(|why| why.starts_with("proofs: no why3 (")));
    }
}
