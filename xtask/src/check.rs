//! Checks of the project against itself, and what they read.

use std::fs;
use std::path::{Path, PathBuf};

use crate::run::root;

const TAG: &str = "E_BROADCAST_";

/// The names of tests with the tags in the comments that stand directly above them.
pub(crate) fn named_by_tests(source: &str) -> Vec<(String, String)> {
    let (mut found, mut pending, mut in_test) = (Vec::new(), Vec::new(), false);
    for line in source.lines().map(str::trim) {
        if line.starts_with("//") {
            pending.extend(tags(line));
        } else if line.starts_with("#[test]") {
            in_test = true;
        } else if let (true, Some(rest)) = (in_test, line.strip_prefix("fn ")) {
            let name = rest.split('(').next().unwrap_or(rest).to_owned();
            found.extend(pending.drain(..).map(|tag| (name.clone(), tag)));
            in_test = false;
        } else if !line.starts_with("#[") {
            pending.clear();
            in_test = false;
        }
    }
    found
}

pub(crate) fn tags(line: &str) -> Vec<String> {
    let part_of_tag = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    line.match_indices(TAG)
        .filter_map(|(at, _)| line.get(at..))
        .map(|rest| rest.chars().take_while(|&c| part_of_tag(c)).collect())
        .collect()
}

/// No decision of the core joins conditions, so that branch coverage is as good as MC/DC.
pub(crate) fn single_conditions() -> Result<String, String> {
    let mut lines = 0;
    for file in files(&root().join("crates/simulcast-core/src"), "rs")? {
        let source = read(&file)?;
        // What follows is tests.
        let source = source.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
        for (number, line) in source.lines().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            if code.contains(" && ") || code.contains(" || ") {
                return Err(format!("{}:{}: {}", file.display(), number + 1, line.trim()));
            }
            lines += usize::from(!code.trim().is_empty());
        }
    }
    Ok(format!("{lines} lines of code"))
}

/// The `rust-version` of the workspace.
pub(crate) fn rust_version() -> Result<String, String> {
    let manifest = read(&root().join("Cargo.toml"))?;
    let value = manifest.lines().find_map(|line| line.strip_prefix("rust-version = \""));
    let value = value.and_then(|rest| rest.strip_suffix('"'));
    value.map(str::to_owned).ok_or_else(|| "Cargo.toml has no rust-version".into())
}

/// The names of the fuzz targets.
pub(crate) fn fuzz_targets() -> Result<Vec<String>, String> {
    let files = files(&root().join("fuzz/fuzz_targets"), "rs")?;
    Ok(files.iter().filter_map(|file| Some(file.file_stem()?.to_str()?.to_owned())).collect())
}

/// Every file with that extension below a folder, in order.
pub(crate) fn files(folder: &Path, extension: &str) -> Result<Vec<PathBuf>, String> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        for entry in entries {
            let path = entry.map_err(|error| error.to_string())?.path();
            match path.extension() {
                _ if path.is_dir() => folders.push(path),
                Some(own) if own == extension => files.push(path),
                _ => {}
            }
        }
    }
    files.sort();
    Ok(files)
}

pub(crate) fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_count_only_above_a_test() {
        let source = "// [E_BROADCAST_A_1]\n#[test]\nfn a() {}\n// [E_BROADCAST_A_2]\nlet x;\n#[test]\nfn b() {}\n\
            // [E_BROADCAST_A_3] [E_BROADCAST_A_4]\n#[test]\n#[ignore]\nfn c() {}";
        let named = named_by_tests(source);
        let expected =
            [("a", "E_BROADCAST_A_1"), ("c", "E_BROADCAST_A_3"), ("c", "E_BROADCAST_A_4")];
        assert_eq!(named, expected.map(|(test, tag)| (test.to_owned(), tag.to_owned())));
    }
}
