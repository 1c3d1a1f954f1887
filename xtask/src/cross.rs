//! Other processors and systems: tests under emulation, and builds that are only checked.
//!
//! | target | how | what it shows |
//! |---|---|---|
//! | i686 | natively | 32-bit sizes |
//! | aarch64 | qemu-user | NEON, weaker memory order |
//! | s390x | qemu-user | big-endian files and models |
//! | thumbv7em | qemu-user | the core without an operating system or an allocator (`cargo xtask bare`) |
//! | wasm32-wasip1 | node's WASI | the core and explanations without an operating system |
//! | x86_64-pc-windows-gnu | wine | paths, mapped files, terminals of Windows |
//! | Windows (MSVC), macOS, wasm32-unknown-unknown | `cargo check` | that it compiles |

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::run::{Step, cargo, command, ensure_target, exists, install_packages, output, root};

/// Crates whose tests run everywhere that has an operating system.
const CRATES: [&str; 7] = [
    "simulcast-core",
    "simulcast-explain",
    "simulcast-threads",
    "simulcast-kernels",
    "simulcast",
    "simulcast-files",
    "simulcast-onnx",
];

struct Target {
    name: &'static str,
    /// The short name on the command line.
    short: &'static str,
    packages: &'static [&'static str],
    linker: &'static str,
    /// What runs a program of the target, before its path.
    runner: &'static str,
    /// Prints a version, if the runner is there.
    probe: &'static str,
}

const TARGETS: [Target; 4] = [
    Target {
        name: "i686-unknown-linux-gnu",
        short: "i686",
        packages: &["gcc-i686-linux-gnu", "libc6-dev-i386-cross"],
        linker: "i686-linux-gnu-gcc",
        runner: "/usr/i686-linux-gnu/lib/ld-linux.so.2 --library-path /usr/i686-linux-gnu/lib",
        probe: "/usr/i686-linux-gnu/lib/ld-linux.so.2",
    },
    Target {
        name: "aarch64-unknown-linux-gnu",
        short: "aarch64",
        packages: &["gcc-aarch64-linux-gnu", "libc6-dev-arm64-cross", "qemu-user"],
        linker: "aarch64-linux-gnu-gcc",
        runner: "qemu-aarch64 -L /usr/aarch64-linux-gnu",
        probe: "qemu-aarch64",
    },
    Target {
        name: "s390x-unknown-linux-gnu",
        short: "s390x",
        packages: &["gcc-s390x-linux-gnu", "libc6-dev-s390x-cross", "qemu-user"],
        linker: "s390x-linux-gnu-gcc",
        runner: "qemu-s390x -L /usr/s390x-linux-gnu",
        probe: "qemu-s390x",
    },
    Target {
        name: "x86_64-pc-windows-gnu",
        short: "windows",
        packages: &["gcc-mingw-w64-x86-64-posix", "wine64"],
        linker: "x86_64-w64-mingw32-gcc",
        runner: "/usr/lib/wine/wine64",
        probe: "/usr/lib/wine/wine64",
    },
];

/// What is only compiled, and for which crates.
const CHECKED: [(&str, &[&str]); 3] = [
    ("x86_64-pc-windows-msvc", &["simulcast-cli"]),
    ("aarch64-apple-darwin", &["simulcast-cli"]),
    ("wasm32-unknown-unknown", &["simulcast-core", "simulcast-explain"]),
];

const SHORTS: [&str; 6] = ["i686", "aarch64", "s390x", "windows", "wasm", "check"];

/// Every target, or those that are named.
pub(crate) fn run(names: &[&str]) -> Result<(), String> {
    if let Some(unknown) = names.iter().find(|name| !SHORTS.contains(name)) {
        return Err(format!("there is no target `{unknown}`; there are {}", SHORTS.join(", ")));
    }
    let asked = |short: &str| names.is_empty() || names.contains(&short);
    for target in TARGETS.iter().filter(|target| asked(target.short)) {
        test(target)?;
    }
    if asked("wasm") {
        wasm()?;
    }
    if asked("check") {
        check()?;
    }
    Ok(())
}

/// Finds the tools of a target.
fn install(target: &Target) -> Result<(), String> {
    ensure_programs(&[target.linker, target.probe], target.packages)?;
    ensure_target(target.name)
}

/// Finds programs. What is missing is installed from Debian's packages in CI only.
fn ensure_programs(programs: &[&str], packages: &[&str]) -> Result<(), String> {
    match programs.iter().all(|program| exists(program)) {
        true => Ok(()),
        false => install_packages(packages, ""),
    }
}

/// The core where there is no operating system: with and without an allocator it builds, with its default features it says
/// what to do, and without an allocator its example runs, under qemu's user mode.
pub(crate) fn bare() -> Result<(), String> {
    const BARE: &str = "thumbv7em-none-eabi";
    let step = Step::new("the core on a bare target");
    if let Err(why) = ensure_target(BARE) {
        return step.skipped(&why);
    }
    let build = || cargo(["build", "-p", "simulcast-core", "--target", BARE]);
    let none = "--no-default-features";
    step.run(build().args([none, "--features", "alloc"]))?;
    Step::new("the core's default features on a bare target").check(|| match output(build()) {
        Err(said) if said.contains("say `default-features = false`") => {
            Ok("refused, with what to do".into())
        }
        Err(said) => Err(said),
        Ok(_) => Err("they build, and fail in the program that uses them".into()),
    })?;
    let step = Step::new("the core's example on a bare target");
    if let Err(why) = ensure_programs(&["qemu-arm"], &["qemu-user"]) {
        return step.skipped(&why);
    }
    // Compiled directly: cargo would compile what the tests need for the target too.
    output(build().arg(none))?;
    let library = format!("simulcast_core=target/{BARE}/debug/libsimulcast_core.rlib");
    let program = format!("target/{BARE}/debug/bare");
    let mut compile =
        command("rustc", ["--edition", "2024", "--target", BARE, "-C", "panic=abort"]);
    compile.args(["--extern", &library, "-o", &program, "crates/simulcast-core/examples/bare.rs"]);
    output(compile)?;
    step.run(command("qemu-arm", [program]))
}

/// Cargo for a target, with its linker and what runs its programs. Emulated tests draw fewer cases.
fn cargo_for(target: &Target, words: &[&str]) -> Command {
    let variable = |what: &str| {
        let name = target.name.to_ascii_uppercase().replace('-', "_");
        format!("CARGO_TARGET_{name}_{what}")
    };
    let mut cargo = cargo(words);
    cargo.args(["--target", target.name]);
    cargo.env(variable("LINKER"), target.linker).env(variable("RUNNER"), target.runner);
    cargo.env("PROPTEST_CASES", "16").env("WINEDEBUG", "-all");
    cargo
}

fn test(target: &Target) -> Result<(), String> {
    let step = Step::new(&format!("tests on {}", target.name));
    if let Err(why) = install(target) {
        return step.skipped(&why);
    }
    let mut tests =
        cargo_for(target, &["test", "--lib", "--tests", "--features", "simulcast/program"]);
    for name in CRATES {
        tests.args(["-p", name]);
    }
    step.run(tests)?;
    if target.short == "aarch64" {
        vectorised(target)?;
    }
    same_answers(target)
}

/// The innermost loops of the kernels, as symbols name them, and the least share of each that has vector instructions.
/// The rest is scalar on `AArch64` for good: products of 64-bit integers, divisions, copies by `memcpy`.
const HOT_LOOPS: [(&str, f64); 4] = [
    ("loops7chunked17h", 0.7),
    ("loops5tiled17h", 1.0),
    ("along_row9every_row17h", 0.9),
    ("across_rows9every_row17h", 0.9),
];

/// The kernels' innermost loops are compiled to vector instructions: their assembly has NEON's registers.
fn vectorised(target: &Target) -> Result<(), String> {
    let step = Step::new(&format!("vector instructions on {}", target.name));
    let words =
        ["rustc", "-p", "simulcast-kernels", "--features", "ops,product", "--release", "--lib"];
    let folder = root().join("target/cross/assembly");
    let mut build = cargo_for(target, &words);
    build.env("CARGO_TARGET_DIR", &folder).args(["--", "--emit", "asm", "-C", "codegen-units=1"]);
    let path = folder.join(target.name).join("release/deps");
    // Assembly of an earlier build would be read in the place of this one's.
    if path.exists() {
        fs::remove_dir_all(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    output(build)?;
    let files = fs::read_dir(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let is_ours = |name: &str| name.starts_with("simulcast_kernels-") && name.ends_with(".s");
    let ours = files.flatten().find(|file| file.file_name().to_str().is_some_and(is_ours));
    let ours = ours.ok_or("cargo wrote no assembly of simulcast-kernels")?.path();
    let text = fs::read_to_string(&ours).map_err(|error| format!("{}: {error}", ours.display()))?;
    step.check(|| {
        let counts = HOT_LOOPS.map(|(name, least)| (name, least, with_vectors(&text, name)));
        let said = counts.map(|(name, _, (with, all))| format!("{name} {with} of {all}"));
        let kept = |&(_, least, (with, all)): &(&str, f64, (usize, usize))| {
            all > 0 && with as f64 >= least * all as f64
        };
        match counts.iter().all(kept) {
            true => Ok(said.join(", ")),
            false => Err(format!("loops lost their vector instructions: {}", said.join(", "))),
        }
    })
}

/// How many of the functions whose symbol has a part use a vector register, and how many there are.
fn with_vectors(assembly: &str, part: &str) -> (usize, usize) {
    let (mut with, mut all, mut open) = (0, 0, false);
    for line in assembly.lines() {
        let label = line.strip_suffix(':').filter(|label| label.starts_with("_ZN"));
        match label {
            Some(label) => {
                open = label.contains(part);
                all += usize::from(open);
            }
            None if open && is_vector(line) => {
                with += 1;
                open = false;
            }
            None => {}
        }
    }
    (with, all)
}

/// Whether an instruction computes with several elements: `fadd v0.4s, v1.4s, v2.4s`.
fn is_vector(line: &str) -> bool {
    [".16b", ".8h", ".4s", ".2d"].iter().any(|lanes| line.contains(lanes))
}

/// The command prints on the target what it prints here: of shapes, files and models.
fn same_answers(target: &Target) -> Result<(), String> {
    let step = Step::new(&format!("the command on {}", target.name));
    output(cargo(["build", "-p", "simulcast-cli"]))?;
    output(cargo_for(target, &["build", "-p", "simulcast-cli"]))?;
    let folder = root().join("target/cross");
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let suffix = if target.name.contains("windows") { ".exe" } else { "" };
    let theirs = root().join(format!("target/{}/debug/simulcast{suffix}", target.name));
    let own = root().join("target/debug/simulcast");
    let (made_here, made_there) =
        (folder.join("here.npy"), folder.join(format!("{}.npy", target.short)));
    let here = |words: &[&str]| output(command(&own.to_string_lossy(), words));
    let there = |words: &[&str]| {
        let runner = target.runner.split(' ').map(PathBuf::from);
        let mut all = runner.chain([theirs.clone()]).chain(words.iter().map(PathBuf::from));
        let program = all.next().unwrap_or_default();
        output(command(&program.to_string_lossy(), all).env("WINEDEBUG", "-all"))
    };
    let result = "exp(x) * 2.5 - row";
    let operands = ["x=arange(12).reshape(3, 4) / 7.0", "row=[1, 2.5, 3, 4]"];
    let path =
        |path: &PathBuf| path.to_string_lossy().replace(&format!("{}/", root().display()), "");
    let (path_here, path_there) = (path(&made_here), path(&made_there));
    here(&["eval", result, operands[0], operands[1], "-o", &path_here, "--force"])?;
    there(&["eval", result, operands[0], operands[1], "-o", &path_there, "--force"])?;
    let bytes =
        |path: &PathBuf| fs::read(path).map_err(|error| format!("{}: {error}", path.display()));
    let read_back = format!("x={path_here}");
    step.check(|| {
        for words in [
            &["explain", "8,1,6,1", "7,1,5"][..],
            &["explain", "N,3,H,W", "M,1,1,4", "--json"],
            &["eval", "sum(x * x, axis=0)", &read_back],
            &["onnx", "check", "crates/simulcast-onnx/models/loss.onnx"],
        ] {
            let (ours, theirs) = (here(words)?, there(words)?.replace("\r\n", "\n"));
            if ours != theirs {
                return Err(format!("{words:?} prints\n{theirs}\ninstead of\n{ours}"));
            }
        }
        let written = bytes(&made_there)?;
        let big = target.short == "s390x";
        if !big && written != bytes(&made_here)? {
            return Err(format!("{path_there} is not {path_here}"));
        }
        // Big-endian machines write their own byte order; what they write is read here.
        let words = ["eval", "x == y", &read_back, &format!("y={path_there}")];
        match here(&words)? {
            text if text.contains("False") => Err(format!("{path_there}: other values\n{text}")),
            _ => Ok("the same".to_string()),
        }
    })
}

/// The core and explanations under node's WASI.
fn wasm() -> Result<(), String> {
    const WASI: &str = "wasm32-wasip1";
    let step = Step::new(&format!("tests on {WASI}"));
    let node = if exists("node") { Ok(()) } else { Err("node is needed".to_string()) };
    if let Err(why) = node.and_then(|()| ensure_target(WASI)) {
        return step.skipped(&why);
    }
    let folder = root().join("target/cross");
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let script = folder.join("wasi.mjs");
    let text = "import { readFile } from 'node:fs/promises';\n\
                import { WASI } from 'node:wasi';\n\
                const [, , program, ...args] = process.argv;\n\
                const wasi = new WASI({ version: 'preview1', args: [program, ...args], env: process.env, preopens: { '.': '.' } });\n\
                const module = await WebAssembly.compile(await readFile(program));\n\
                process.exitCode = wasi.start(await WebAssembly.instantiate(module, wasi.getImportObject()));\n";
    fs::write(&script, text).map_err(|error| format!("{}: {error}", script.display()))?;
    let mut test = cargo(["test", "--lib", "--target", WASI]);
    test.args(["-p", "simulcast-core", "-p", "simulcast-explain"]);
    test.env(
        "CARGO_TARGET_WASM32_WASIP1_RUNNER",
        format!("node --no-warnings {}", script.display()),
    );
    step.run(test)
}

fn check() -> Result<(), String> {
    for (target, crates) in CHECKED {
        let step = Step::new(&format!("{} for {target}", crates.join(", ")));
        if let Err(why) = ensure_target(target) {
            step.skipped(&why)?;
            continue;
        }
        let mut check = cargo(["check", "--target", target]);
        for name in crates {
            check.args(["-p", name]);
        }
        step.run(check)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_with_vector_instructions_are_counted() {
        let text = "_ZN4loop7chunked17h1E:\n\tfadd\tv0.4s, v1.4s, v2.4s\n\tfadd\tv0.4s, v1.4s, v2.4s\n\
                    _ZN4loop7chunked17h2E:\n\tfadd\ts0, s1, s2\n_ZN5other17h3E:\n\tfadd\tv0.2d, v1.2d, v2.2d\n";
        assert_eq!(with_vectors(text, "7chunked17h"), (1, 2));
    }
}
