//! Proofs: replay them all, and hold the Rust core to the program that Why3 extracts from them.

use std::path::PathBuf;

use crate::oracle::{self, Extent};
use crate::run::{Step, command, exists, install_packages, output, root};

/// What Debian calls the tools: Why3, three provers, and OCaml for the oracle.
const PACKAGES: [&str; 7] =
    ["why3", "cvc4", "cvc5", "z3", "ocaml", "ocaml-findlib", "libzarith-ocaml-dev"];

/// `prove` replays every proof; `--oracle` compares the core with the extracted oracle, `--quick` a
/// small part of it; `--ci` does both, the second quickly, where the tools are there.
pub(crate) fn run(args: &[&str]) -> Result<(), String> {
    match args {
        ["--ci"] => {
            if let Err(why) = install() {
                return Step::new("proofs").skipped(&why);
            }
            replay()?;
            oracle::compare(&build()?, Extent::Quick)
        }
        [] => install().and_then(|()| replay()),
        ["--oracle"] => install().and_then(|()| oracle::compare(&build()?, Extent::Whole)),
        ["--oracle", "--quick"] => {
            install().and_then(|()| oracle::compare(&build()?, Extent::Quick))
        }
        _ => Err("prove takes --oracle and then --quick, or --ci, or nothing".into()),
    }
}

/// Replays every proof. Provers work against the clock, so a machine that is busy gets a second
/// chance, one prover at a time.
fn replay() -> Result<(), String> {
    let prove = || command("sh", ["spec/why3/prove.sh"]);
    Step::new("every proof")
        .run(prove())
        .or_else(|_| Step::new("every proof, one prover at a time").run(prove().env("JOBS", "1")))
}

/// Finds the tools. What is missing is installed from Debian's packages in CI (`XTASK_STRICT=1`) only;
/// elsewhere the command that would install it is printed.
fn install() -> Result<(), String> {
    let tools = ["why3", "cvc4", "cvc5", "z3", "ocamlfind"];
    if tools.iter().all(|tool| exists(tool))
        && output(command("ocamlfind", ["query", "zarith"])).is_ok()
    {
        return Ok(());
    }
    install_packages(&PACKAGES, "why3, its provers and OCaml are needed; ")
}

/// Builds the oracle, where its sources are newer.
fn build() -> Result<PathBuf, String> {
    let oracle = root().join("target/oracle");
    let built = oracle.metadata().and_then(|built| built.modified()).ok();
    let folder = root().join("spec/why3");
    let newest = std::fs::read_dir(&folder)
        .map_err(|error| format!("{}: {error}", folder.display()))?
        .filter_map(|entry| entry.ok()?.metadata().ok()?.modified().ok())
        .max();
    if built.is_none() || newest > built {
        let script = [folder.join("oracle.sh"), oracle.clone()];
        Step::new("extract and build the oracle").run(command("sh", script))?;
    }
    Ok(oracle)
}
