//! The Python package: its wheel, its tests, and private environments for Python programs.
//!
//! A host `python3` with pip is all that is asked for. Environments are made without a pip of their
//! own, since some systems ship none for them, and filled by the host's; they are kept under
//! `target/` until the list of their packages changes.

use std::fs;
use std::path::{Path, PathBuf};

use crate::check::read;
use crate::run::{Step, command, output, root};

/// Builds the wheel for users, in `target/wheels`. On Linux zig links it, against a C library as old as
/// the wheel promises, whatever the machine has.
pub(crate) fn wheel() -> Result<PathBuf, String> {
    let step = Step::new("the wheel");
    let home = root().join("target/python/release");
    let python = environment(&home, &root().join("python/requirements-release.txt"))
        .map_err(|why| format!("the wheel: {why}"))?;
    let linux = ["--zig", "--compatibility", "manylinux2014"];
    let mut options = vec!["--release"];
    if cfg!(target_os = "linux") {
        options.extend(linux);
    }
    step.run(build(&python, &wheels(), &options)?)?;
    Ok(wheels())
}

/// Installs the package as a wheel into a private environment, and runs its tests there.
///
/// The wheel is one with overflow checks and assertions.
pub(crate) fn test() -> Result<(), String> {
    tested("Python package", "environment", "python/requirements-test.txt", &["python/tests"])
}

/// Runs the tests that compare the package with other libraries, which are in an environment of their own: those of
/// `python/peers/test_NAME.py`.
pub(crate) fn test_beside(name: &str) -> Result<(), String> {
    let (list, file) =
        (format!("python/requirements-{name}.txt"), format!("python/peers/test_{name}.py"));
    tested(&format!("Python package: {name}"), name, &list, &[&file])
}

/// Builds the wheel, installs it into an environment with a list of packages, and runs some tests there.
fn tested(what: &str, environment_name: &str, list: &str, tests: &[&str]) -> Result<(), String> {
    let step = Step::new(&format!("packages for the tests of the {what}"));
    let home = root().join("target/python").join(environment_name);
    let builder = own_environment();
    let python = match builder.and_then(|own| Ok((own, environment(&home, &root().join(list))?))) {
        Ok(python) => python,
        Err(why) => return step.skipped(&why),
    };
    let (builder, python) = python;
    step.check(|| Ok("there".into()))?;
    let checked = root().join("target/python/wheels");
    Step::new("the wheel").run(build(&builder, &checked, &["--quiet"])?)?;
    install_from(&checked, &home)?;
    let mut run = command(&python.to_string_lossy(), ["-m", "pytest", "-p", "no:cacheprovider"]);
    run.args(tests);
    Step::new(&format!("tests of the {what}")).run(run.env("PYTHONDONTWRITEBYTECODE", "1"))
}

/// Runs the tests of `simulcast.torch` and of the other homes of the guard with the packages themselves, and models
/// that others wrote, whose table is in `docs/guide/pytorch.md`: compared, or with `write` made anew.
pub(crate) fn test_torch(write: bool) -> Result<(), String> {
    let tests = ["torch", "torch_guide", "torch_planted", "torch_callbacks", "jax", "ipython"];
    let tests = tests.map(|own| format!("python/tests/test_{own}.py"));
    let tests = tests.each_ref().map(String::as_str);
    tested("Python package: torch", "torch", "python/requirements-torch.txt", &tests)?;
    let home = root().join("target/python/torch");
    let python = home.join("bin/python");
    if !python.exists() {
        // Packages that could not be installed were skipped.
        return Ok(());
    }
    let python = python.to_string_lossy();
    let guarded = |args: &[&str]| {
        let mut run = command(&python, ["python/torch_runs/guarded.py"]);
        run.args(args);
        run
    };
    let mut files = Vec::new();
    for kind in ["language", "vision", "learning"] {
        let file = home.join(format!("{kind}.json")).to_string_lossy().into_owned();
        Step::new(&format!("models under guard: {kind}")).run(guarded(&["run", kind, &file]))?;
        files.push(file);
    }
    let mut words = vec![if write { "page" } else { "check" }];
    words.extend(files.iter().map(String::as_str));
    Step::new("the table of models under guard").run(guarded(&words))
}

/// The linter and the types, over all Python of the repository.
pub(crate) fn lint() -> Result<(), String> {
    let step = Step::new("Python: ruff");
    let python = match own_environment() {
        Ok(python) => python,
        Err(why) => return step.skipped(&why),
    };
    let python = python.to_string_lossy();
    let folders = ["python", "bench", "conformance", "crates", "spec"];
    step.run(command(&python, ["-m", "ruff", "check", "--quiet"]).args(folders))?;
    let mypy = |options: &[&str], folder: &str| {
        let mut files = python_files(&root().join(folder))?;
        if folder == "python/simulcast" {
            files.extend(python_files(&root().join("python/simulcast/torch"))?);
        }
        let options = options.iter().chain(&["--no-incremental", "--follow-imports=silent"]);
        let mut types = command(&python, ["-m", "mypy"]);
        Step::new(&format!("Python: mypy {folder}")).run(types.args(options).args(files))
    };
    mypy(&["--strict"], "python/simulcast")?;
    mypy(&["--strict"], "python/simulcast/numexpr")?;
    // The rest is written without types, for the systems that it asks; what can be inferred has to fit.
    let rest = [
        "python/tests",
        "python/peers",
        "python/torch_runs",
        "bench/peers",
        "conformance/models",
        "conformance/record",
        "crates/simulcast-cli/tests",
        "crates/simulcast-files/tests",
        "crates/simulcast-onnx/models",
        "python/tests/gpu",
        "spec/why3",
    ];
    rest.into_iter().try_for_each(|folder| mypy(&["--ignore-missing-imports"], folder))?;
    // Its own package downloads the checker once; Node comes with the environment.
    let mut types = command(&python, ["-m", "pyright", "--project", "python", "--pythonpath"]);
    types.arg(&*python).env("PYRIGHT_PYTHON_CACHE_DIR", root().join("target/python/pyright"));
    types.env("PYRIGHT_PYTHON_IGNORE_WARNINGS", "1");
    Step::new("Python: pyright python/tests/typed").run(types)
}

/// The Python files of a folder.
fn python_files(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let paths = entries.flatten().map(|entry| entry.path());
    let mut files: Vec<_> =
        paths.filter(|path| path.extension().is_some_and(|e| e == "py")).collect();
    files.sort();
    Ok(files)
}

/// Builds the wheel for users, and installs it into an environment.
pub(crate) fn install(environment: &Path) -> Result<(), String> {
    install_from(&wheel()?, environment)
}

/// Installs the package from a folder of wheels.
fn install_from(wheels: &Path, environment: &Path) -> Result<(), String> {
    let mut pip = pip(environment);
    pip.args(["install", "--force-reinstall", "--no-deps", "--no-index", "--find-links"]);
    output(pip.arg(wheels).arg("simulcast")).map(drop)
}

fn wheels() -> PathBuf {
    root().join("target/wheels")
}

/// The environment of the package's tests.
fn own_environment() -> Result<PathBuf, String> {
    let home = root().join("target/python/environment");
    environment(&home, &root().join("python/requirements-test.txt"))
}

/// A call of maturin. It builds in a folder of its own: the interpreter that it names would make
/// cargo build everything again. Wheels that lie there already go: one for a newer system would be
/// taken for the better one.
fn build(python: &Path, wheels: &Path, options: &[&str]) -> Result<std::process::Command, String> {
    for old in fs::read_dir(wheels).into_iter().flatten().flatten() {
        if old.path().extension().is_some_and(|own| own == "whl") {
            fs::remove_file(old.path()).map_err(|error| error.to_string())?;
        }
    }
    let mut build = command(&python.to_string_lossy(), ["-m", "maturin", "build", "--locked"]);
    build.args(options).arg("--interpreter").arg(python).arg("--out").arg(wheels);
    build.arg("--manifest-path").arg(root().join("python/Cargo.toml"));
    build.env("CARGO_TARGET_DIR", root().join("target/python/build"));
    // maturin looks for zig there.
    if let Some(programs) = python.parent() {
        let found = std::env::var_os("PATH").unwrap_or_default();
        let paths = std::iter::once(programs.into()).chain(std::env::split_paths(&found));
        build.env("PATH", std::env::join_paths(paths).map_err(|error| error.to_string())?);
    }
    Ok(build)
}

fn pip(environment: &Path) -> std::process::Command {
    let mut pip = command("python3", ["-m", "pip", "--quiet", "--python"]);
    pip.arg(environment);
    pip
}

/// GitHub's workflows: their schema, and what is unsafe in them.
pub(crate) fn workflows() -> Result<(), String> {
    let step = Step::new("workflows");
    let home = root().join("target/python/workflows");
    let python = match environment(&home, &root().join(".github/requirements.txt")) {
        Ok(python) => python,
        Err(why) => return step.skipped(&why),
    };
    let folder = root().join(".github/workflows");
    let names = fs::read_dir(folder).map_err(|error| error.to_string())?.flatten();
    let mut schema = command(
        &python.with_file_name("check-jsonschema").to_string_lossy(),
        ["--quiet", "--builtin-schema", "vendor.github-workflows"],
    );
    step.run(schema.args(names.map(|entry| entry.path())))?;
    let zizmor = python.with_file_name("zizmor");
    Step::new("workflows: what is unsafe")
        .run(command(&zizmor.to_string_lossy(), ["--offline", "--quiet", ".github"]))
}

/// The interpreter of an environment, made where it is missing or its packages changed.
pub(crate) fn environment(home: &Path, list: &Path) -> Result<PathBuf, String> {
    let wanted = read(list)?;
    let (python, done) = (home.join("bin/python"), home.join("requirements.txt"));
    if fs::read_to_string(&done).is_ok_and(|made| made == wanted) {
        return Ok(python);
    }
    let (interpreter, version) = interpreter(&wanted);
    let python_with = |args: &[&str]| {
        let mut command = command(&interpreter, args);
        if !version.is_empty() {
            // Where pyenv stands behind the name, it has to be told which one is meant.
            command.env("PYENV_VERSION", &version);
        }
        command
    };
    if output(python_with(&["--version"])).is_err() {
        return Err(format!("there is no {interpreter} here"));
    }
    output(python_with(&["-m", "venv", "--clear", "--without-pip"]).arg(home))?;
    output(pip(home).args(["install", "--requirement"]).arg(list))?;
    fs::write(&done, wanted).map_err(|error| error.to_string())?;
    Ok(python)
}

/// The interpreter that a list of packages asks for in its first line, and its version.
fn interpreter(requirements: &str) -> (String, String) {
    let first = requirements.lines().next().unwrap_or_default();
    match first.strip_prefix("# python ") {
        Some(version) => (format!("python{version}"), version.into()),
        None => ("python3".into(), String::new()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_interpreter_is_asked_for_by_its_version() {
        assert_eq!(interpreter("numpy==2.4.6\n"), ("python3".into(), String::new()));
        assert_eq!(interpreter("# python 3.7\nx==1\n"), ("python3.7".into(), "3.7".into()));
    }
}
