//! The helper threads' protocol: explored with loom, and its ordinary tests run under Miri and `ThreadSanitizer`.

use std::process::Command;

use crate::run::{Step, command, output, root, rustup};

/// Every interleaving of the models, within their bounds.
pub(crate) fn loom() -> Result<(), String> {
    let mut test = command("cargo", ["test", "--release", "-p", "simulcast-threads", "--lib"]);
    test.args(["--", "--nocapture"]).env("RUSTFLAGS", "--cfg loom");
    Step::new("interleavings of the helper threads").run(own_target(test, "loom"))
}

/// The ordinary tests under Miri, which must be installed: undefined behaviour and data races.
pub(crate) fn miri() -> Result<(), String> {
    let mut test = command("cargo", ["+nightly", "miri", "test", "-p", "simulcast-threads"]);
    // Helpers live as long as the process; the id of the process is asked for.
    test.args(["--lib", "--tests"])
        .env("MIRIFLAGS", "-Zmiri-disable-isolation -Zmiri-ignore-leaks");
    Step::new("Miri on the helper threads").run(own_target(test, "miri"))
}

/// The ordinary tests at full speed under `ThreadSanitizer`: data races.
pub(crate) fn sanitize() -> Result<(), String> {
    let step = Step::new("ThreadSanitizer on the helper threads");
    if let Err(why) = rustup(["component", "add", "rust-src", "--toolchain", "nightly"]) {
        return step.skipped(&why);
    }
    let version = output(command("rustc", ["+nightly", "-vV"]))?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    let host = host.ok_or("rustc does not say what its host is")?;
    let mut test = command("cargo", ["+nightly", "test", "-Zbuild-std", "--target", host]);
    test.args(["-p", "simulcast-threads", "--lib", "--tests"]);
    // Some tests fork, and their children start threads.
    test.env("RUSTFLAGS", "-Zsanitizer=thread").env("TSAN_OPTIONS", "die_after_fork=0");
    step.run(own_target(test, "tsan"))
}

/// Flags of its own would build everything else anew.
fn own_target(mut command: Command, name: &str) -> Command {
    command.env("CARGO_TARGET_DIR", root().join("target").join(name));
    command
}
