//! The architecture of the engine as checks: which part may import which, where `unsafe` and `core::arch` stand, and
//! where thresholds do.
//!
//! Each rule is one table. Beside it may stand a list of what does not keep it yet; an entry that is not needed any
//! more is refused too, so that the lists only shrink.

use std::path::Path;

use crate::check::{files, read};
use crate::source::{Paths, code, rooms_of};

/// The engine, from the root of the project.
const ENGINE: &str = "crates/simulcast/src";
const KERNELS: &str = "crates/simulcast-kernels/src";
const THREADS: &str = "crates/simulcast-threads/src";

/// The crates of the engine, and what names of their files begin with in the tables below.
const CRATES: [(&str, &str); 3] = [(ENGINE, ""), (KERNELS, "kernels/"), (THREADS, "threads/")];

/// What a part of the engine may import, beside itself and the crate of kernels.
struct Layer {
    /// A folder, or a file without its ending, below `crates/simulcast/src`.
    name: &'static str,
    may: &'static [&'static str],
}

const fn layer(name: &'static str, may: &'static [&'static str]) -> Layer {
    Layer { name, may }
}

/// The parts, from the lowest to the highest: each may import some of those above it in this table.
const LAYERS: &[Layer] = &[
    layer("environment", &[]),
    layer("layout", &[]),
    layer("array", &["layout"]),
    layer("exec", &["layout", "array"]),
    layer("reduce", &["layout", "array", "exec"]),
    layer("api", &["layout", "array", "exec", "reduce"]),
    layer("by_name/types", &[]),
    layer("by_name/dyn_array", &["layout", "array", "by_name/types"]),
    layer("by_name/program/front", &["by_name/types"]),
    layer("by_name/program/build", &["layout", "exec", "by_name/types", "by_name/program/front"]),
    layer(
        "by_name/program/run",
        &[
            "layout",
            "array",
            "exec",
            "reduce",
            "by_name/types",
            "by_name/dyn_array",
            "by_name/program/front",
            "by_name/program/build",
        ],
    ),
    layer(
        "by_name/program",
        &[
            "layout",
            "array",
            "exec",
            "by_name/types",
            "by_name/dyn_array",
            "by_name/program/front",
            "by_name/program/build",
            "by_name/program/run",
        ],
    ),
    layer("by_name/formula", &["by_name/types", "by_name/program"]),
    layer("by_name/slope", &["by_name/formula"]),
    layer(
        "by_name/program/joint",
        &[
            "layout",
            "by_name/types",
            "by_name/dyn_array",
            "by_name/program/front",
            "by_name/program/build",
            "by_name/program/run",
            "by_name/program",
            "by_name/formula",
            "by_name/slope",
        ],
    ),
    layer(
        "by_name",
        &[
            "layout",
            "array",
            "exec",
            "reduce",
            "api",
            "by_name/types",
            "by_name/dyn_array",
            "by_name/program/front",
            "by_name/program",
            "by_name/formula",
            "by_name/slope",
            "by_name/program/joint",
        ],
    ),
];

/// Imports upwards that are left: a file, and the part that it imports.
const UPWARD: &[(&str, &str)] = &[
    ("by_name/program/build/builder.rs", "by_name/program"),
    ("by_name/program/build/lower.rs", "by_name"),
    ("by_name/program/build/lower.rs", "by_name/program"),
    ("by_name/program/front/diagnostic.rs", "by_name/program/build"),
    ("by_name/program/run/bind.rs", "by_name/program"),
    ("by_name/program/run/chunked.rs", "by_name/program"),
    ("by_name/program/run/hoist.rs", "by_name/program"),
    ("by_name/program/run/reduction.rs", "by_name/program"),
    ("by_name/program/run/reduction/operation.rs", "by_name/program"),
    ("by_name/program/run/run_map.rs", "by_name/program"),
    ("by_name/program/run/strategy.rs", "by_name/program"),
    ("by_name/program/run/strings.rs", "by_name/program"),
];

/// Crates that the crate of kernels does not know: it has neither arrays nor threads.
const NOT_IN_KERNELS: [&str; 2] = ["ndarray", "rayon"];

/// Files with `unsafe` code.
const UNSAFE: &[&str] = &[
    "threads/interrupt.rs",
    "threads/job.rs",
    "threads/models.rs",
    "threads/process.rs",
    "threads/send_ptr.rs",
    "threads/slot.rs",
    "threads/team.rs",
    "api/copy.rs",
    "api/sum_to.rs",
    "api/view.rs",
    "api/zip.rs",
    "array/operand.rs",
    "array/output.rs",
    "array/raw_view.rs",
    "by_name/apply.rs",
    "by_name/dyn_array.rs",
    "by_name/ops.rs",
    "by_name/program.rs",
    "by_name/program/build/builder.rs",
    "by_name/program/build/chain.rs",
    "by_name/program/run/bind.rs",
    "by_name/program/run/interpreter.rs",
    "by_name/program/run/joint.rs",
    "by_name/program/run/joint/machine.rs",
    "by_name/program/run/joint/sums.rs",
    "by_name/program/run/joint/task.rs",
    "by_name/program/run/reduction.rs",
    "by_name/program/run/run_map.rs",
    "by_name/program/run/strategy.rs",
    "kernels/reduce.rs",
    "reduce/sums.rs",
    "reduce/shared_row.rs",
    "reduce/run.rs",
    "reduce/accumulate.rs",
    "by_name/program/run/reduction/results.rs",
    "kernels/cpu.rs",
    "exec/blocked.rs",
    "exec/closure.rs",
    "exec/contiguous.rs",
    "exec/emit.rs",
    "exec/inner_loop.rs",
    "exec/launch.rs",
    "exec/repeated_block.rs",
    "exec/results.rs",
    "exec/strided.rs",
    "exec/tiled.rs",
    "exec/tiny.rs",
    "layout/small_vec.rs",
    "kernels/addend.rs",
    "kernels/cpu/level.rs",
    "kernels/cpu/nontemporal.rs",
    "kernels/cpu/prefetch.rs",
    "kernels/math/half.rs",
    "kernels/moves.rs",
    "kernels/ops.rs",
    "kernels/ops/cast.rs",
    "kernels/ops/float.rs",
    "kernels/ops/fused_pairs.rs",
    "kernels/ops/half.rs",
    "kernels/ops/int_divide.rs",
    "kernels/ops/int_power.rs",
    "kernels/ops/loops.rs",
    "kernels/ops/table.rs",
    "kernels/pack.rs",
    "kernels/pack/transpose_x86.rs",
    "kernels/pod.rs",
    "kernels/product.rs",
    "kernels/product/loops.rs",
    "kernels/product/out.rs",
    "kernels/product/vector.rs",
    "kernels/reduce/across_rows.rs",
    "kernels/reduce/along_row.rs",
    "kernels/reduce/shared_row.rs",
    "kernels/register_vm.rs",
    "kernels/register_vm/simd.rs",
];

/// Files with `core::arch` or `std::arch`.
const ARCH: &[&str] = &[
    "kernels/addend.rs",
    "kernels/cpu.rs",
    "kernels/cpu/level.rs",
    "kernels/cpu/nontemporal.rs",
    "kernels/cpu/prefetch.rs",
    "kernels/math/half.rs",
    "kernels/ops/half.rs",
    "kernels/pack/transpose_x86.rs",
    "kernels/product.rs",
    "kernels/product/vector.rs",
    "kernels/register_vm.rs",
    "kernels/register_vm/simd.rs",
];

/// Numbers that are no thresholds: a file, or a folder with a slash behind it; a name, or `*` for all of them; and why.
const NUMBERS: &[(&str, &str, &str)] = &[
    ("by_name/program/call.rs", "KEPT", "a bound on memory, not on time"),
    ("kernels/reduce.rs", "ARITY", "the operands of an operation, a fact of its type"),
    ("kernels/reduce/fused.rs", "ARITY", "the operands of an operation, a fact of its type"),
    ("kernels/math/", "*", "coefficients and ranges of approximations, proved by their tests"),
    ("kernels/product/loops.rs", "*", "vectors and sums that fit the registers of a level"),
    ("kernels/ops/", "ARITY", "the operands of an operation, a fact of its type"),
    ("kernels/ops.rs", "LANES", "the width of a loop's body, a fact of its type"),
    ("kernels/ops/half.rs", "HALF_LINE", "the elements of half a cache line of 16-bit numbers"),
    ("kernels/ops/complex_functions.rs", "LARGE", "where squares overflow"),
    ("kernels/ops/complex_functions.rs", "SMALL", "where squares are lost"),
    ("by_name/program/front/parse.rs", "DEPTH", "the deepest expression, a limit on hostile input"),
    ("by_name/program/run/strategy.rs", "SHOWN", "lines of a text for people"),
    ("exec/inner_loop.rs", "MAX_OPERANDS", "the size of an array"),
    ("layout/small_vec.rs", "INLINE", "the size of an array"),
    ("array/output.rs", "HUGE", "the bytes of a huge page"),
];

/// Thresholds that have not moved to `tuning.rs`.
const THRESHOLDS: &[(&str, &str)] = &[];

/// The rules, so that tests can hold made-up trees to made-up tables.
struct Rules {
    layers: &'static [Layer],
    upward: &'static [(&'static str, &'static str)],
    unsafe_files: &'static [&'static str],
    arch_files: &'static [&'static str],
    numbers: &'static [(&'static str, &'static str, &'static str)],
    thresholds: &'static [(&'static str, &'static str)],
}

/// Holds the engine to its rules.
pub(crate) fn check() -> Result<String, String> {
    let rules = Rules {
        layers: LAYERS,
        upward: UPWARD,
        unsafe_files: UNSAFE,
        arch_files: ARCH,
        numbers: NUMBERS,
        thresholds: THRESHOLDS,
    };
    let root = crate::run::root();
    let found = rules.broken(&root)?;
    if !found.is_empty() {
        return Err(format!("\n{}", found.join("\n")));
    }
    let left = UPWARD.len() + THRESHOLDS.len();
    Ok(format!("{} parts in order; {left} exceptions are left", LAYERS.len()))
}

impl Rules {
    /// What does not keep the rules, a line each.
    fn broken(&self, root: &Path) -> Result<Vec<String>, String> {
        let mut found = self.disordered();
        let mut used = Used::default();
        for (crate_folder, prefix) in CRATES {
            let folder = root.join(crate_folder);
            for file in files(&folder, "rs")? {
                let inner = file.strip_prefix(&folder).map_err(|error| error.to_string())?;
                let name = format!("{prefix}{}", inner.display());
                // Tests may reach for anything.
                if name.ends_with("tests.rs") || name.contains("tests/") {
                    continue;
                }
                let text = code(&read(&file)?);
                match crate_folder {
                    ENGINE => self.imports(&name, &text, &mut used, &mut found),
                    KERNELS => self.strangers(&name, &text, &mut found),
                    _ => {}
                }
                self.unsafe_code(&name, &text, &mut used, &mut found);
                self.numbers_of(&name, &text, &mut used, &mut found);
            }
        }
        self.manifest(root, &mut found)?;
        self.unneeded(&used, &mut found);
        Ok(found)
    }

    /// The table itself goes downward.
    fn disordered(&self) -> Vec<String> {
        let mut found = Vec::new();
        for (at, layer) in self.layers.iter().enumerate() {
            for may in layer.may {
                if !self.layers[..at].iter().any(|below| below.name == *may) {
                    found.push(format!("{} may import {may}, which is not below it", layer.name));
                }
            }
        }
        found
    }

    /// The part that a module belongs to: the longest name that it begins with.
    fn layer_of(&self, module: &[String]) -> Option<&Layer> {
        let fits = |layer: &&Layer| {
            let parts: Vec<&str> = layer.name.split('/').collect();
            module.len() >= parts.len() && parts.iter().zip(module).all(|(a, b)| a == b)
        };
        self.layers.iter().filter(fits).max_by_key(|layer| layer.name.len())
    }

    /// Imports go downward only.
    fn imports(&self, file: &str, text: &str, used: &mut Used, found: &mut Vec<String>) {
        let module = rooms_of(file);
        // The root shows what there is; it belongs to no part.
        if file == "lib.rs" {
            return;
        }
        let Some(own) = self.layer_of(&module) else {
            found.push(format!("{file}: it belongs to no part of the table of layers"));
            return;
        };
        for (line, path) in Paths::of(text, &module) {
            // A name that the root shows again belongs to the part that it comes from; those have no rule.
            let Some(other) = self.layer_of(&path) else { continue };
            if other.name == own.name || own.may.contains(&other.name) {
                continue;
            }
            let left = self.upward.iter().position(|one| *one == (file, other.name));
            match left {
                Some(at) => used.upward.push(at),
                None => found.push(format!(
                    "{file}:{line}: {} may not import {} ({})",
                    own.name,
                    other.name,
                    path.join("::")
                )),
            }
        }
    }

    /// The crate of kernels knows neither arrays nor threads.
    fn strangers(&self, file: &str, text: &str, found: &mut Vec<String>) {
        for (number, line) in text.lines().enumerate() {
            for stranger in NOT_IN_KERNELS {
                if words(line).any(|word| word == stranger) {
                    found.push(format!("{file}:{}: kernels do not use {stranger}", number + 1));
                }
            }
        }
    }

    /// Nor does its manifest, but for tests.
    fn manifest(&self, root: &Path, found: &mut Vec<String>) -> Result<(), String> {
        let manifest = read(&root.join(KERNELS).with_file_name("Cargo.toml"))?;
        let mut section = "";
        for line in manifest.lines() {
            if line.starts_with('[') {
                section = line;
            }
            let name = line.split(['.', '=', ' ']).next().unwrap_or_default();
            if section == "[dependencies]" && NOT_IN_KERNELS.contains(&name) {
                found.push(format!("kernels/Cargo.toml: kernels do not depend on {name}"));
            }
        }
        Ok(())
    }

    /// `unsafe` and `core::arch` stand where they are expected.
    fn unsafe_code(&self, file: &str, text: &str, used: &mut Used, found: &mut Vec<String>) {
        let lines = || text.lines().enumerate().map(|(at, line)| (at + 1, line));
        let first = lines().find(|(_, line)| {
            // The lint's name, and attributes of linkage, are no unsafe code.
            words(line).any(|word| word == "unsafe") && !line.contains("unsafe(")
        });
        match (first, self.unsafe_files.iter().position(|one| *one == file)) {
            (Some(_), Some(at)) => used.unsafe_files.push(at),
            (Some((line, _)), None) => {
                found.push(format!("{file}:{line}: this file may have no unsafe code"));
            }
            _ => {}
        }
        let arch = |line: &str| line.contains("core::arch") || line.contains("std::arch");
        let first = lines().find(|(_, line)| arch(line));
        match (first, self.arch_files.iter().position(|one| *one == file)) {
            (Some(_), Some(at)) => used.arch_files.push(at),
            (Some((line, _)), None) => {
                found.push(format!("{file}:{line}: this file may use no core::arch"));
            }
            _ => {}
        }
    }

    /// Thresholds stand in `tuning.rs`.
    fn numbers_of(&self, file: &str, text: &str, used: &mut Used, found: &mut Vec<String>) {
        if file.ends_with("tuning.rs") {
            return;
        }
        for (number, line) in text.lines().enumerate() {
            let Some(name) = constant(line) else { continue };
            let known = self
                .numbers
                .iter()
                .position(|one| is_in(file, one.0) && (one.1 == "*" || one.1 == name));
            let left = self.thresholds.iter().position(|one| *one == (file, name));
            match (known, left) {
                (Some(at), _) => used.numbers.push(at),
                (None, Some(at)) => used.thresholds.push(at),
                (None, None) => found.push(format!(
                    "{file}:{}: {name} is a number: a threshold belongs in tuning.rs, with what it was \
                     measured on; what is none is listed in xtask/src/layers.rs",
                    number + 1
                )),
            }
        }
    }

    /// Entries of the lists that nothing needs.
    fn unneeded(&self, used: &Used, found: &mut Vec<String>) {
        let mut check = |list: &str, entries: Vec<String>, used: &[usize]| {
            for (at, entry) in entries.into_iter().enumerate() {
                if !used.contains(&at) {
                    found.push(format!(
                        "xtask/src/layers.rs: {list} lists {entry}, which is not so any more"
                    ));
                }
            }
        };
        let pairs = |all: &[(&str, &str)]| all.iter().map(|(a, b)| format!("{a} {b}")).collect();
        let names = |all: &[&str]| all.iter().map(|&one| one.to_owned()).collect();
        let numbers = self.numbers.iter().map(|one| format!("{} {}", one.0, one.1)).collect();
        check("UPWARD", pairs(self.upward), &used.upward);
        check("UNSAFE", names(self.unsafe_files), &used.unsafe_files);
        check("ARCH", names(self.arch_files), &used.arch_files);
        check("NUMBERS", numbers, &used.numbers);
        check("THRESHOLDS", pairs(self.thresholds), &used.thresholds);
    }
}

/// The entries of each list that something needs.
#[derive(Default)]
struct Used {
    upward: Vec<usize>,
    unsafe_files: Vec<usize>,
    arch_files: Vec<usize>,
    numbers: Vec<usize>,
    thresholds: Vec<usize>,
}

/// Whether a file is the one that is named, or in the folder that is.
fn is_in(file: &str, named: &str) -> bool {
    if named.ends_with('/') { file.starts_with(named) } else { file == named }
}

fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !c.is_alphanumeric() && c != '_')
}

/// The name of a constant that is a number, where the line declares one: `const NAME: usize = 1 << 16;`.
fn constant(line: &str) -> Option<&str> {
    let (_, rest) = line.split_once("const ")?;
    let (name, rest) = rest.split_once(':')?;
    let (kind, value) = rest.split_once('=')?;
    let number = |c: char| c.is_ascii_digit() || " _.eE+-*/<>()xabcdfABCDF;u".contains(c);
    let sized = ["usize", "u64", "f64"].contains(&kind.trim());
    let is_number = value.contains(|c: char| c.is_ascii_digit())
        && words(value).filter(|word| !word.is_empty()).all(|word| {
            word.starts_with(|c: char| c.is_ascii_digit())
                && word.chars().all(|c| number(c) || "size".contains(c))
        });
    (sized && is_number).then_some(name.trim())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    const RULES: Rules = Rules {
        layers: &[
            layer("layout", &[]),
            layer("exec", &["layout"]),
            layer("program/front", &[]),
            layer("program", &["exec", "layout", "program/front"]),
        ],
        upward: &[],
        unsafe_files: &["exec/launch.rs"],
        arch_files: &["kernels/cpu.rs"],
        numbers: &[("kernels/math.rs", "*", "polynomials")],
        thresholds: &[],
    };

    /// A tree of files that keeps the rules but for those given.
    struct Made(PathBuf);

    impl Made {
        fn new(files: &[(&str, &str)]) -> Self {
            static NUMBER: AtomicUsize = AtomicUsize::new(0);
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let home = std::env::temp_dir().join(format!("layers-{}-{number}", std::process::id()));
            let _ = fs::remove_dir_all(&home);
            let own = [
                (format!("{ENGINE}/lib.rs"), "mod exec; mod layout; mod program;"),
                (format!("{ENGINE}/layout.rs"), "pub(crate) struct Nest;"),
                (
                    format!("{ENGINE}/exec/launch.rs"),
                    "use crate::layout::Nest; fn f() { unsafe { g() } }",
                ),
                (format!("{ENGINE}/program/front/parse.rs"), "// unsafe, ndarray\nfn parse() {}"),
                (format!("{THREADS}/lib.rs"), "fn f() { /* unsafe */ }"),
                (format!("{KERNELS}/cpu.rs"), "use core::arch::x86_64::_mm_prefetch;"),
                (format!("{KERNELS}/tuning.rs"), "pub const TILE_BYTES: usize = 4096;"),
                (format!("{KERNELS}/math.rs"), "const A: f64 = 1.5;"),
                (
                    "crates/simulcast-kernels/Cargo.toml".into(),
                    "[dependencies]\nhalf.workspace = true\n\
                 [dev-dependencies]\nrayon.workspace = true\n",
                ),
            ];
            let given = files.iter().map(|(name, text)| (format!("crates/{name}"), *text));
            for (name, text) in own.into_iter().chain(given) {
                let file = home.join(name);
                fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
                fs::write(file, text).expect("a file");
            }
            Self(home)
        }
    }

    impl Drop for Made {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn broken(files: &[(&str, &str)]) -> Vec<String> {
        RULES.broken(&Made::new(files).0).expect("a tree that can be read")
    }

    #[track_caller]
    fn refused(file: &str, text: &str, expected: &str) {
        let found = broken(&[(file, text)]);
        assert!(found.len() == 1 && found[0].contains(expected), "{found:?}");
    }

    #[test]
    fn a_tree_that_keeps_the_rules_passes() {
        assert_eq!(broken(&[]), Vec::<String>::new());
    }

    #[test]
    fn imports_upward_are_refused_however_they_are_written() {
        for text in [
            "use crate::exec::launch::run;",
            "use crate::{other, exec::launch};",
            "fn f() { crate::exec::launch::run() }",
            "use super::exec::launch;",
        ] {
            refused("simulcast/src/layout.rs", text, "layout may not import exec");
        }
        let text = "use super::super::super::exec::launch;";
        refused("simulcast/src/program/front/token.rs", text, "program/front may not import exec");
        let text = "use super::super::builder;";
        refused(
            "simulcast/src/program/front/token.rs",
            text,
            "program/front may not import program",
        );
    }

    #[test]
    fn imports_downward_and_those_of_tests_pass() {
        let text = "use crate::{exec::launch::run, layout::Nest, program::front::parse};\n\
                    #[cfg(test)]\nmod tests { use crate::exec; }";
        assert_eq!(broken(&[("simulcast/src/program/run.rs", text)]), Vec::<String>::new());
        let text = "#[cfg(test)]\nmod tests { use crate::exec::launch; }\n// use crate::exec;\n";
        assert_eq!(broken(&[("simulcast/src/layout/nest.rs", text)]), Vec::<String>::new());
    }

    #[test]
    fn a_file_of_no_part_is_refused() {
        refused("simulcast/src/misc.rs", "", "belongs to no part");
    }

    #[test]
    fn a_table_that_goes_upward_is_refused() {
        const UPSIDE_DOWN: &[Layer] = &[layer("layout", &["exec"]), layer("exec", &[])];
        let rules = Rules { layers: UPSIDE_DOWN, ..RULES };
        assert_eq!(rules.disordered().len(), 1);
    }

    #[test]
    fn kernels_know_neither_arrays_nor_threads() {
        refused("simulcast-kernels/src/pack.rs", "use ndarray::ArrayView;", "do not use ndarray");
        refused(
            "simulcast-kernels/src/pack.rs",
            "fn f() { rayon::join(a, b) }",
            "do not use rayon",
        );
        let manifest = "[dependencies]\nrayon = \"1\"\n";
        refused("simulcast-kernels/Cargo.toml", manifest, "do not depend on rayon");
    }

    #[test]
    fn unsafe_code_and_instructions_stand_where_they_are_listed() {
        let text = "fn f() { unsafe { g() } }";
        refused("simulcast/src/exec/strategy.rs", text, "may have no unsafe code");
        refused("simulcast-kernels/src/pack.rs", "use std::arch::asm;", "may use no core::arch");
        refused(
            "simulcast-threads/src/team.rs",
            text,
            "threads/team.rs:1: this file may have no unsafe",
        );
        let words = "//! unsafe\n#![forbid(unsafe_code)]\nfn f() { \"unsafe\"; }";
        assert_eq!(broken(&[("simulcast/src/exec/strategy.rs", words)]), Vec::<String>::new());
    }

    #[test]
    fn thresholds_stand_in_one_file() {
        for text in [
            "const TILE: usize = 4096;",
            "    pub(crate) const TILE: usize = 4 << 10;",
            "pub const TILE: u64 = 0xff_u64;",
            "const TILE: f64 = 1.5e-3;",
        ] {
            refused("simulcast/src/exec/tiled.rs", text, "TILE is a number");
        }
        for text in [
            "const TILE: usize = tuning::TILE_BYTES;",
            "const N: u8 = 3;",
            "const fn f(n: usize) -> u64 {",
        ] {
            assert_eq!(
                broken(&[("simulcast/src/exec/tiled.rs", text)]),
                Vec::<String>::new(),
                "{text}"
            );
        }
    }

    #[test]
    fn entries_that_nothing_needs_are_refused() {
        let rules =
            Rules { upward: &[("layout.rs", "exec")], thresholds: &[("layout.rs", "A")], ..RULES };
        let found = rules.broken(&Made::new(&[]).0).expect("a tree that can be read");
        assert!(
            found.len() == 2 && found.iter().all(|one| one.contains("not so any more")),
            "{found:?}"
        );
        let text = "use crate::exec::launch; const A: usize = 1;";
        let found = rules.broken(&Made::new(&[("simulcast/src/layout.rs", text)]).0);
        assert_eq!(found, Ok(Vec::new()));
    }
}
