//! What needs a GPU, or its compiler: tests, benchmarks, kernels of every kind.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::python;
use crate::run::{Step, cargo, command, output, root};

/// So many kernels of the matrix are compiled without a GPU, unless `SIMULCAST_KERNELS` says another number.
const KERNELS: &str = "400";

/// Programs on a GPU against the engine, and arrays of other libraries through the Python package.
pub(crate) fn test() -> Result<(), String> {
    let mut tests = cargo(["test", "--release", "-p", "simulcast-cuda", "--lib", "--"]);
    tests.args(["device_tests", "--test-threads", "1", "--nocapture"]);
    Step::new("programs on a GPU").run(tests.env("SIMULCAST_TEST_GPU", "1"))?;
    let mut arrays = command("python3", ["python/tests/gpu/arrays.py"]);
    Step::new("arrays of other libraries on a GPU").run(arrays.env("PYTHONPATH", package()?))
}

/// The cases of `bench/gpu.json`, from Rust and from Python, beside their peers.
pub(crate) fn bench(options: &[&str]) -> Result<(), String> {
    let home = root().join("target/gpu");
    std::fs::create_dir_all(&home).map_err(|error| error.to_string())?;
    let rust = home.join("rust.jsonl");
    // First calls are those of kernels that no earlier run has kept.
    let cache = home.join("cache");
    let _ = std::fs::remove_dir_all(&cache);
    let mut own = cargo(["bench", "-p", "simulcast-cuda", "--bench", "device", "--", "--json"]);
    own.arg(&rust).env("SIMULCAST_CACHE_DIR", &cache);
    Step::new("bench on a GPU, from Rust").run(own)?;
    let mut peers = command("python3", ["bench/peers/gpu.py", "--json"]);
    peers.arg(home.join("python.jsonl")).arg("--rust").arg(&rust);
    peers.args(["--table", "bench/results/gpu.md", "--plot", "bench/results/gpu.svg"]);
    peers.args(options);
    Step::new("bench on a GPU, beside peers").run(peers.env("PYTHONPATH", package()?))
}

/// Kernels of every kind compiled to PTX by NVRTC from `PyPI`, which needs neither a driver nor a GPU.
pub(crate) fn kernels() -> Result<(), String> {
    let step = Step::new("kernels compiled without a GPU");
    let home = root().join("target/tools/nvrtc");
    let library = match nvrtc(&home) {
        Some(library) => library,
        None => {
            let mut pip =
                command("python3", ["-m", "pip", "--quiet", "install", "--upgrade", "--no-deps"]);
            if let Err(why) = output(pip.arg("--target").arg(&home).arg("nvidia-cuda-nvrtc")) {
                return step.skipped(&why);
            }
            nvrtc(&home).ok_or("the package nvidia-cuda-nvrtc has no libnvrtc")?
        }
    };
    let mut tests =
        cargo(["test", "-p", "simulcast-cuda", "--test", "compiler", "--", "--nocapture"]);
    if std::env::var_os("SIMULCAST_KERNELS").is_none() {
        tests.env("SIMULCAST_KERNELS", KERNELS);
    }
    step.run(tests.env("SIMULCAST_NVRTC", library))
}

/// NVRTC below a folder of packages.
fn nvrtc(home: &Path) -> Option<PathBuf> {
    let folders = |folder: PathBuf| std::fs::read_dir(folder).into_iter().flatten().flatten();
    let files = folders(home.join("nvidia")).flat_map(|own| folders(own.path().join("lib")));
    let mut files: Vec<PathBuf> = files.map(|own| own.path()).collect();
    files.sort();
    files.into_iter().find(|file| {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("libnvrtc.so.") && !name.contains("alt")
    })
}

/// The Python package in a folder of its own, for an interpreter that has the other libraries.
fn package() -> Result<PathBuf, String> {
    let home = root().join("target/gpu/package");
    let wheels = python::wheel()?;
    let mut pip: Command = command("python3", ["-m", "pip", "--quiet", "install", "--upgrade"]);
    pip.args(["--no-deps", "--no-index", "--find-links"]).arg(wheels);
    output(pip.arg("--target").arg(&home).arg("simulcast"))?;
    Ok(home)
}
