//! Other revisions of the project, compiled beside this one.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, io};

use crate::run::{self, Step, output, root};

/// A tree of the project, and where it is compiled.
pub(crate) struct Tree {
    pub(crate) name: String,
    pub(crate) folder: PathBuf,
    pub(crate) target: PathBuf,
}

impl Tree {
    /// The one that this program belongs to.
    pub(crate) fn this() -> Self {
        Self { name: "this tree".into(), folder: root(), target: root().join("target") }
    }

    /// That of a revision, with this tree's `bench` in place of its own, so that both are measured by one program.
    ///
    /// It is exported to a folder under `target/against` and compiled there with its own profiles, as its users would
    /// compile it. An export is no checkout: nothing is left in the repository's list of worktrees, and `target` can be
    /// deleted at any time.
    pub(crate) fn of(revision: &str) -> Result<Self, String> {
        let commit = format!("{revision}^{{commit}}");
        let commit = output(run::command("git", ["rev-parse", "--short=12", &commit]))?;
        let home = root().join("target/against").join(commit.trim());
        let folder = home.join("tree");
        if !folder.join("Cargo.toml").is_file() {
            Step::new(&format!("export {revision}")).check(|| export(commit.trim(), &home))?;
        }
        Step::new(&format!("this tree's benchmark in {revision}")).check(|| {
            let changed = mirror(&root().join("bench"), &folder.join("bench"))?;
            Ok(format!("{changed} files changed"))
        })?;
        Ok(Self { name: revision.into(), target: home.join("target"), folder })
    }

    /// Cargo on the benchmark with engines of ours alone.
    pub(crate) fn engines_only(&self, verb: &str) -> Command {
        let mut cargo = self.cargo();
        cargo.args([verb, "--release", "-p", "simulcast-bench", "--no-default-features"]);
        cargo
    }

    /// Cargo, as it was chosen for this run, in this tree.
    pub(crate) fn cargo(&self) -> Command {
        let mut cargo = run::cargo([""; 0]);
        cargo.current_dir(&self.folder).env("CARGO_TARGET_DIR", &self.target);
        cargo
    }

    /// The benchmark once it is built.
    pub(crate) fn benchmark(&self) -> PathBuf {
        self.target.join("release/simulcast-bench")
    }
}

/// The files of a commit, in a folder of their own.
fn export(commit: &str, home: &Path) -> Result<String, String> {
    let failed = |error: io::Error| format!("{}: {error}", home.display());
    // Moved into place when it is whole.
    let (part, archive) = (home.join("part"), home.join("tree.tar"));
    let _ = fs::remove_dir_all(&part);
    fs::create_dir_all(&part).map_err(failed)?;
    let mut git = run::command("git", ["archive", "--format=tar", "--output"]);
    output(git.arg(&archive).arg(commit))?;
    output(run::command("tar", ["-x", "-f"]).arg(&archive).arg("-C").arg(&part))?;
    fs::remove_file(&archive).map_err(failed)?;
    fs::rename(&part, home.join("tree")).map_err(failed)?;
    Ok(home.join("tree").display().to_string())
}

/// Makes a folder's files those of another; what is the same already stays untouched, so that it is not compiled again.
fn mirror(from: &Path, to: &Path) -> Result<usize, String> {
    let failed = |path: &Path| {
        let path = path.display().to_string();
        move |error: io::Error| format!("{path}: {error}")
    };
    let names = |folder: &Path| -> Result<Vec<PathBuf>, String> {
        let entries = match fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(failed(folder)(error)),
        };
        let names = entries.map(|entry| entry.map(|entry| PathBuf::from(entry.file_name())));
        names.collect::<Result<_, _>>().map_err(failed(folder))
    };
    let (wanted, mut changed) = (names(from)?, 0);
    for name in names(to)? {
        if !wanted.contains(&name) {
            let old = to.join(name);
            let removed =
                if old.is_dir() { fs::remove_dir_all(&old) } else { fs::remove_file(&old) };
            removed.map_err(failed(&old))?;
            changed += 1;
        }
    }
    fs::create_dir_all(to).map_err(failed(to))?;
    for name in wanted {
        let (source, target) = (from.join(&name), to.join(&name));
        if source.is_dir() {
            changed += mirror(&source, &target)?;
        } else {
            let text = fs::read(&source).map_err(failed(&source))?;
            if fs::read(&target).ok().as_ref() != Some(&text) {
                fs::write(&target, text).map_err(failed(&target))?;
                changed += 1;
            }
        }
    }
    Ok(changed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mirror_is_the_same_and_leaves_alone_what_was() {
        let home = std::env::temp_dir().join(format!("mirror-{}", std::process::id()));
        let _ = fs::remove_dir_all(&home);
        let (from, to) = (home.join("from"), home.join("to"));
        let put = |path: PathBuf, text: &str| {
            fs::create_dir_all(path.parent().unwrap_or(&home)).expect("a folder");
            fs::write(path, text).expect("a file");
        };
        put(from.join("a"), "1");
        put(from.join("src/b"), "2");
        put(to.join("src/old"), "3");
        put(to.join("gone/c"), "4");
        assert_eq!(mirror(&from, &to), Ok(4));
        assert_eq!(fs::read(to.join("src/b")).ok(), Some(b"2".to_vec()));
        assert!(!to.join("src/old").exists() && !to.join("gone").exists());
        assert_eq!(mirror(&from, &to), Ok(0));
        put(from.join("a"), "5");
        assert_eq!(mirror(&from, &to), Ok(1));
        let _ = fs::remove_dir_all(home);
    }
}
