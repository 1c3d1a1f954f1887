//! The artefacts of a release: the wheel, the command's archive, the crates; each is tried before it counts.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::check::read;
use crate::python;
use crate::run::{Step, cargo, command, output, root};

const USAGE: &str = "usage: cargo xtask release --dry-run | --archive TARGET";

pub(crate) fn run(options: &[&str]) -> Result<(), String> {
    match options {
        ["--dry-run"] => dry_run(),
        ["--archive", target] => archive(target).map(|path| println!("{}", path.display())),
        _ => Err(USAGE.into()),
    }
}

/// Makes everything that can be made here, and tries it.
fn dry_run() -> Result<(), String> {
    try_wheel(&python::wheel()?)?;
    let host = host()?;
    try_archive(&archive(&host)?)?;
    Step::new("the crates, compiled from what would be uploaded").run(verified()?)?;
    let missing = addresses()?;
    if !missing.is_empty() {
        println!("   before a release, set: {}", missing.join(", "));
    }
    Ok(())
}

/// Packages the crates that are published. What else the workspace has is built with files around it, which no package
/// carries.
pub(crate) fn package() -> Result<Command, String> {
    let mut package = cargo(["package", "--locked", "--allow-dirty", "--quiet"]);
    for name in published()? {
        package.args(["--package", &name]);
    }
    Ok(package)
}

/// [`package`], each compiled from its package alone. Cargo knows packages that are not uploaded by name and version:
/// what it unpacked and compiled of an earlier run would be taken for this one's.
fn verified() -> Result<Command, String> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| std::env::home_dir().map(|own| own.join(".cargo")));
    let sources = home.unwrap_or_default().join("registry/src");
    for old in unpacked(&sources, &published()?, &version()?) {
        fs::remove_dir_all(&old).map_err(|error| format!("{}: {error}", old.display()))?;
    }
    let mut package = package()?;
    package.arg("--target-dir").arg(folder("package")?);
    Ok(package)
}

/// Where cargo has unpacked crates that were never uploaded.
fn unpacked(sources: &Path, names: &[String], version: &str) -> Vec<PathBuf> {
    let registries = fs::read_dir(sources).into_iter().flatten().flatten();
    // Its own registry of them has no host before the hash.
    let own = registries.filter(|entry| entry.file_name().to_string_lossy().starts_with('-'));
    let folders = own.flat_map(|entry| {
        names.iter().map(move |name| entry.path().join(format!("{name}-{version}")))
    });
    folders.filter(|folder| folder.exists()).collect()
}

/// The crates below `crates`, each in a folder of its name.
fn published() -> Result<Vec<String>, String> {
    let mut names = Vec::new();
    for entry in fs::read_dir(root().join("crates")).map_err(|error| error.to_string())?.flatten() {
        let manifest = entry.path().join("Cargo.toml");
        if manifest.exists() && !read(&manifest)?.contains("\npublish = false") {
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    names.sort();
    Ok(names)
}

/// Installs the wheel and NumPy into a new environment, and runs the command and the package there.
fn try_wheel(wheels: &Path) -> Result<(), String> {
    let step = Step::new("the wheel in an empty environment");
    let home = folder("wheel-environment")?;
    output(command("python3", ["-m", "venv", "--clear", "--without-pip"]).arg(&home))?;
    let mut pip = command("python3", ["-m", "pip", "--quiet", "--python"]);
    pip.arg(&home).args(["install", "--find-links"]).arg(wheels);
    output(pip.arg("simulcast"))?;
    let bin = home.join("bin");
    step.check(|| {
        let script = bin.join("simulcast");
        let shape = output(command(&script.to_string_lossy(), ["shape", "8,1,6,1", "7,1,5"]))?;
        same("simulcast shape", shape.trim(), "8,7,6,5")?;
        let program = "import simulcast; print(simulcast.evaluate('a * 2', a=[1, 2]).tolist())";
        let python = bin.join("python");
        let value = output(command(&python.to_string_lossy(), ["-c", program]))?;
        same("simulcast.evaluate", value.trim(), "[2, 4]")?;
        sizes(wheels, "whl")
    })
}

/// The archive of the command for a target: binary, completions, manual pages, licences.
fn archive(target: &str) -> Result<PathBuf, String> {
    let mut build = cargo(["build", "--release", "--locked", "-p", "simulcast-cli", "--target"]);
    Step::new(&format!("the command for {target}")).run(build.arg(target))?;
    let name = format!("simulcast-{}-{target}", version()?);
    let parts = folder(&name)?;
    let suffix = if target.contains("windows") { ".exe" } else { "" };
    let binary = format!("simulcast{suffix}");
    let built = root().join("target").join(target).join("release").join(&binary);
    let place = |from: &Path, to: PathBuf| {
        fs::copy(from, to).map(drop).map_err(|error| format!("{}: {error}", from.display()))
    };
    place(&built, parts.join(&binary))?;
    for file in ["README.md", "CHANGELOG.md", "LICENSE-MIT", "LICENSE-APACHE"] {
        place(&root().join(file), parts.join(file))?;
    }
    // Made by the command of this machine: another target's may not run here.
    let is_own = target == host()?;
    let say = |words: &[&str]| match is_own {
        true => output(command(&built.to_string_lossy(), words)),
        false => {
            let run = ["run", "--release", "--quiet", "--locked", "-p", "simulcast-cli", "--"];
            output(cargo(run).args(words))
        }
    };
    let write = |name: String, text: String| {
        let path = parts.join(name);
        fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))
    };
    for (shell, file) in [
        ("bash", "simulcast.bash"),
        ("zsh", "_simulcast"),
        ("fish", "simulcast.fish"),
        ("powershell", "_simulcast.ps1"),
        ("elvish", "simulcast.elv"),
    ] {
        write(file.into(), say(&["completions", shell])?)?;
    }
    write("simulcast.1".into(), say(&["man"])?)?;
    for page in ["explain", "shape", "eval", "onnx"] {
        write(format!("simulcast-{page}.1"), say(&["man", page])?)?;
    }
    let file = artifacts().join(format!("{name}.tar.gz"));
    let mut tar = command("tar", ["-czf"]);
    tar.arg(&file).arg("-C").arg(artifacts()).arg(&name);
    output(tar)?;
    fs::remove_dir_all(&parts).map_err(|error| error.to_string())?;
    Ok(file)
}

/// Unpacks the archive and runs the command that is in it.
fn try_archive(file: &Path) -> Result<(), String> {
    Step::new("the archive, unpacked").check(|| {
        let home = folder("archive-unpacked")?;
        output(command("tar", ["-xzf"]).arg(file).arg("-C").arg(&home))?;
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let binary = home.join(name.trim_end_matches(".tar.gz")).join("simulcast");
        let said = output(command(&binary.to_string_lossy(), ["--version"]))?;
        same("simulcast --version", said.trim(), &format!("simulcast {}", version()?))?;
        let shape = output(command(&binary.to_string_lossy(), ["shape", "8,1,6,1", "7,1,5"]))?;
        same("simulcast shape", shape.trim(), "8,7,6,5")?;
        sizes(&artifacts(), "gz")
    })
}

/// The addresses that a release needs and the manifests do not have.
fn addresses() -> Result<Vec<&'static str>, String> {
    let wanted = [
        ("Cargo.toml", "\nrepository = ", "`repository` in Cargo.toml"),
        ("python/pyproject.toml", "[project.urls]", "`project.urls` in python/pyproject.toml"),
        ("CITATION.cff", "\nrepository-code: ", "`repository-code` in CITATION.cff"),
    ];
    let mut missing = Vec::new();
    for (file, text, name) in wanted {
        if !read(&root().join(file))?.contains(text) {
            missing.push(name);
        }
    }
    Ok(missing)
}

fn same(what: &str, said: &str, wanted: &str) -> Result<(), String> {
    if said == wanted {
        return Ok(());
    }
    Err(format!("{what} says {said:?}, not {wanted:?}"))
}

/// The files with an extension, each with its size.
fn sizes(folder: &Path, extension: &str) -> Result<String, String> {
    let mut lines = Vec::new();
    for entry in fs::read_dir(folder).map_err(|error| error.to_string())?.flatten() {
        if entry.path().extension().is_some_and(|own| own == extension) {
            let bytes = entry.metadata().map_err(|error| error.to_string())?.len();
            let name = entry.file_name().to_string_lossy().into_owned();
            lines.push(format!("{name}: {:.1} MB", bytes as f64 / 1e6));
        }
    }
    Ok(lines.join(", "))
}

fn artifacts() -> PathBuf {
    root().join("target/release-artifacts")
}

/// A new, empty folder among the artefacts.
fn folder(name: &str) -> Result<PathBuf, String> {
    let path = artifacts().join(name);
    if path.exists() {
        fs::remove_dir_all(&path).map_err(|error| error.to_string())?;
    }
    fs::create_dir_all(&path).map_err(|error| error.to_string())?;
    Ok(path)
}

/// The version of the workspace.
fn version() -> Result<String, String> {
    let manifest = read(&root().join("Cargo.toml"))?;
    let line = manifest.lines().find_map(|line| line.strip_prefix("version = \""));
    line.and_then(|rest| rest.strip_suffix('"'))
        .map(str::to_owned)
        .ok_or_else(|| "Cargo.toml has no version".into())
}

/// The target of this machine.
fn host() -> Result<String, String> {
    let said = output(command("rustc", ["-vV"]))?;
    said.lines()
        .find_map(|line| line.strip_prefix("host: "))
        .map(str::to_owned)
        .ok_or_else(|| "rustc does not say its host".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_packaged_is_what_is_published() {
        let names = published().unwrap_or_default();
        assert!(names.iter().any(|name| name == "simulcast-core"), "{names:?}");
        for name in &names {
            let manifest = read(&root().join("crates").join(name).join("Cargo.toml"));
            let stated = format!("\nname = \"{name}\"\n");
            assert!(manifest.is_ok_and(|text| text.contains(&stated)), "{name}");
        }
        // Its build script reads the engine's sources beside it.
        assert!(!names.iter().any(|name| name == "simulcast-bench"));
    }

    #[test]
    fn what_cargo_unpacked_of_crates_that_were_not_uploaded_is_found() {
        let sources = root().join("target/tmp/xtask-unpacked");
        let ours = sources.join("-3d81f3ff3bcbb644/simulcast-core-0.1.0");
        let uploaded = sources.join("index.crates.io-1949cf8c6b5b557f/simulcast-core-0.1.0");
        let other = sources.join("-3d81f3ff3bcbb644/simulcast-core-0.2.0");
        for folder in [&ours, &uploaded, &other] {
            assert!(fs::create_dir_all(folder).is_ok());
        }
        assert_eq!(unpacked(&sources, &["simulcast-core".into()], "0.1.0"), [ours]);
        assert_eq!(
            unpacked(&sources.join("missing"), &["simulcast-core".into()], "0.1.0").len(),
            0
        );
        assert!(fs::remove_dir_all(&sources).is_ok());
    }
}
