//! How many functions the engine's crates compile to, by module: counted from the symbols of a release build.
//!
//! A kernel is a compiled function of the kernels' modules: a loop for an operation, an element type and an instruction
//! set. They are most of the time that a release build takes and of the bytes of a binary, so their number is watched.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::revision::Tree;
use crate::run::{Step, output};

/// Where kernels are: all of the crate of kernels, and the folder that it came from in earlier revisions.
const KERNELS: [&str; 2] = ["simulcast_kernels::", "simulcast::kernels::"];
/// The crates of the engine, as symbols name them.
const CRATES: [&str; 2] = ["simulcast_kernels", "simulcast"];
/// Groups with fewer functions than this are one line.
const FEW: usize = 10;

/// Functions and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Count {
    functions: usize,
    bytes: u64,
}

impl Count {
    fn add(&mut self, other: Self) {
        self.functions += other.functions;
        self.bytes += other.bytes;
    }
}

/// What each group of a build comes to.
type Groups = BTreeMap<String, Count>;

/// Prints the table, beside that of another revision where one is named.
pub(crate) fn run(options: &[&str]) -> Result<(), String> {
    let other = match options {
        [] => None,
        ["--against", revision] => Some(Tree::of(revision)?),
        _ => return Err("kernels takes --against REV or nothing".into()),
    };
    let this = counted(&Tree::this())?;
    let other = other.as_ref().map(counted).transpose()?;
    print!("{}", table(&this, other.as_ref()));
    Ok(())
}

/// The functions of a tree's engine.
fn counted(tree: &Tree) -> Result<Groups, String> {
    // The build that benchmarks of two revisions need too.
    let mut build = tree.engines_only("build");
    build.arg("--message-format=json-render-diagnostics");
    let step = Step::new(&format!("symbols of {}", tree.name));
    let said = output(build)?;
    let libraries: Vec<PathBuf> = CRATES.iter().filter_map(|name| library(&said, name)).collect();
    if libraries.is_empty() {
        return Err("cargo did not say where the engine's libraries are".into());
    }
    let mut groups = Groups::new();
    for library in libraries {
        for (name, count) in symbols(&library)? {
            groups.entry(name).or_default().add(count);
        }
    }
    let all: usize = groups.values().map(|count| count.functions).sum();
    step.check(|| Ok(format!("{all} functions")))?;
    Ok(groups)
}

/// The library of a crate, from cargo's messages.
fn library(messages: &str, name: &str) -> Option<PathBuf> {
    let begin = format!("/lib{name}-");
    let mut strings = messages.split('"').filter(|text| text.ends_with(".rlib"));
    strings.rfind(|text| text.contains(&begin)).map(PathBuf::from)
}

/// The functions of a library, by group.
fn symbols(library: &Path) -> Result<Groups, String> {
    let mut nm = Command::new("nm");
    nm.args(["-C", "-S", "--defined-only", "--quiet"]).arg(library);
    let text = output(nm).map_err(|error| format!("nm of binutils lists symbols: {error}"))?;
    let mut groups = Groups::new();
    for (name, bytes) in text.lines().filter_map(function) {
        groups.entry(group(name)).or_default().add(Count { functions: 1, bytes });
    }
    Ok(groups)
}

/// The name and the size of a function in a line of `nm`: address, size, kind and name.
fn function(line: &str) -> Option<(&str, u64)> {
    let mut words = line.splitn(4, ' ');
    let (_, size, kind, name) = (words.next()?, words.next()?, words.next()?, words.next()?);
    let code = matches!(kind, "t" | "T" | "W" | "w");
    code.then_some((name, u64::from_str_radix(size, 16).ok()?))
}

/// The module of a function, two levels below its crate; what comes from other crates' generics is one group.
fn group(name: &str) -> String {
    let starts = CRATES.iter().filter_map(|own| {
        let own = format!("{own}::");
        name.match_indices(&own).map(|(at, _)| at).find(|&at| {
            // The name of a crate, not the end of another one's.
            !name[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':')
        })
    });
    let Some(path) = starts.min().and_then(|at| name.get(at..)) else {
        return "generics of other crates".into();
    };
    let part = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    let path = &path[..path.find(|c| !part(c)).unwrap_or(path.len())];
    let parts: Vec<&str> = path.split("::").filter(|part| !part.is_empty()).collect();
    // The last part is the function or the type itself.
    let modules = parts.len().saturating_sub(1).clamp(1, 3).min(parts.len());
    parts[..modules].join("::")
}

fn is_kernel(group: &str) -> bool {
    let group = format!("{group}::");
    KERNELS.iter().any(|kernels| group.starts_with(kernels))
}

fn table(this: &Groups, other: Option<&Groups>) -> String {
    let mut rows: BTreeMap<(bool, String), [Count; 2]> = BTreeMap::new();
    let mut totals = [[Count::default(); 2]; 2];
    for (side, groups) in [Some(this), other].into_iter().enumerate() {
        for (name, &count) in groups.into_iter().flatten() {
            let kernel = is_kernel(name);
            let largest = [Some(this), other].into_iter().flatten().filter_map(|all| all.get(name));
            let few = largest.map(|count| count.functions).max() < Some(FEW);
            let name = if few { "smaller groups".to_owned() } else { name.clone() };
            rows.entry((!kernel, name)).or_default()[side].add(count);
            totals[0][side].add(count);
            if kernel {
                totals[1][side].add(count);
            }
        }
    }
    let mut rows: Vec<((bool, String), [Count; 2])> = rows.into_iter().collect();
    rows.sort_by_key(|((other, name), counts)| {
        (*other, std::cmp::Reverse(counts[0].functions.max(counts[1].functions)), name.clone())
    });
    let line = |name: &str, [own, before]: [Count; 2]| {
        let cell = |count: Count| format!("{:>9} {:>9}", count.functions, count.bytes >> 10);
        let before = other.map_or(String::new(), |_| cell(before));
        format!("{name:<44} {} {before}\n", cell(own))
    };
    let columns = "functions       KiB";
    let before = other.map_or("", |_| "   before:       KiB");
    let mut text = format!("{:<44} {columns} {before}\n", "group");
    for ((_, name), counts) in rows.iter().filter(|row| !row.0.0) {
        text += &line(name, *counts);
    }
    text += &line("= kernels", totals[1]);
    for ((_, name), counts) in rows.iter().filter(|row| row.0.0) {
        text += &line(name, *counts);
    }
    text + &line("= all", totals[0])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_belong_to_the_module_that_they_are_in() {
        for (name, expected) in [
            ("simulcast::kernels::table::light_avx2", "simulcast::kernels::table"),
            ("simulcast::kernels::fold::down::all_avx2", "simulcast::kernels::fold"),
            ("simulcast_kernels::loops::light", "simulcast_kernels::loops"),
            (
                "<simulcast::exec::cursor::Cursor<_> as core::fmt::Debug>::fmt",
                "simulcast::exec::cursor",
            ),
            ("core::ptr::drop_in_place<simulcast::any::AnyArray>", "simulcast::any"),
            ("<alloc::vec::Vec<T> as core::ops::drop::Drop>::drop", "generics of other crates"),
            ("my_simulcast::f", "generics of other crates"),
            ("simulcast::eval", "simulcast"),
        ] {
            assert_eq!(group(name), expected, "{name}");
        }
        assert!(is_kernel("simulcast::kernels::table") && is_kernel("simulcast_kernels"));
        assert!(!is_kernel("simulcast::kernel") && !is_kernel("simulcast::exec"));
    }

    #[test]
    fn only_code_is_counted() {
        let line = "0000000000000000 0000000000000012 t simulcast::a::b";
        assert_eq!(function(line), Some(("simulcast::a::b", 0x12)));
        assert_eq!(function("0000000000000000 0000000000000012 r simulcast::A"), None);
        assert_eq!(function("0000000000000000 t simulcast::a::b"), None);
        assert_eq!(function("simulcast.rcgu.o:"), None);
    }

    #[test]
    fn the_table_sums_kernels_apart() {
        let count = |functions, bytes| Count { functions, bytes };
        let this = Groups::from([
            ("simulcast_kernels::loops".into(), count(30, 3 << 10)),
            ("simulcast_kernels::cpu".into(), count(2, 1 << 10)),
            ("simulcast::exec".into(), count(40, 9 << 10)),
        ]);
        let text = table(&this, None);
        let words: Vec<Vec<&str>> =
            text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert!(words.contains(&vec!["=", "kernels", "32", "4"]), "{text}");
        assert!(words.contains(&vec!["=", "all", "72", "13"]), "{text}");
        assert!(words.contains(&vec!["smaller", "groups", "2", "1"]), "{text}");
    }
}
