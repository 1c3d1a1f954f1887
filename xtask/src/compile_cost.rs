//! What a further closure costs a user: CPU seconds and bytes in a release build, by how it is called and on how many
//! operands.
//!
//! For each row a small program with one such call is compiled, and one with several: their difference, over the number of
//! further calls, is the cost of one. What all calls share is in both and falls out, and so do the dependencies, which are
//! compiled before.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use crate::run::{Step, cargo, output, root};

/// The further calls of a row.
const FURTHER: usize = 6;

/// The ways of calling.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Call {
    Map,
    MapInto,
    Fold,
    ParMap,
    SumTo,
}

impl Call {
    const ALL: [Self; 5] = [Self::Map, Self::MapInto, Self::Fold, Self::ParMap, Self::SumTo];

    const fn name(self) -> &'static str {
        match self {
            Self::Map => "map",
            Self::MapInto => "map_into",
            Self::Fold => "fold",
            Self::ParMap => "par_map",
            Self::SumTo => "sum_to_shape",
        }
    }

    /// The numbers of operands that it is measured with; a sum has one, and no closure.
    const fn operands(self) -> &'static [usize] {
        match self {
            Self::SumTo => &[1],
            _ => &[1, 2, 4],
        }
    }

    /// A function that makes the call, of which no two have the same closure.
    fn function(self, operands: usize, number: usize) -> String {
        let names = &["a", "b", "c", "d"][..operands];
        let args = names.join(", ");
        let sum = names.join(" + ");
        let parameters: Vec<String> =
            names.iter().map(|name| format!("{name}: &Array2<f32>")).collect();
        let parameters = parameters.join(", ");
        let (zip, body) = (format!("zip(({args},))"), format!("({sum}) * {number}.5"));
        let (result, call) = match self {
            Self::Map => ("Array2<f32>", format!("{zip}.map(|{args}| {body})")),
            Self::ParMap => ("Array2<f32>", format!("{zip}.par_map(|{args}| {body})")),
            Self::MapInto => (
                "Array2<f32>",
                format!("let mut out = a.clone(); {zip}.map_into(&mut out, |{args}| {body}); out"),
            ),
            Self::Fold => ("f32", format!("{zip}.fold({number}.0, |all, {args}| all + {body})")),
            Self::SumTo => ("Array2<f32>", format!("simulcast::sum_to_shape(a, (1, {number}))")),
        };
        format!("#[inline(never)]\nfn call{number}({parameters}) -> {result} {{\n    {call}\n}}\n")
    }

    /// A program with so many calls.
    fn program(self, operands: usize, calls: usize) -> String {
        let mut text =
            String::from("use ndarray::Array2;\n#[allow(unused)]\nuse simulcast::zip;\n");
        let given = vec!["x"; operands].join(", ");
        let mut main = String::new();
        for number in 1..=calls {
            text += &self.function(operands, number);
            let _ = writeln!(main, "    std::hint::black_box(call{number}({given}));");
        }
        format!(
            "{text}fn main() {{\n    let x = &std::hint::black_box(Array2::<f32>::zeros((3, 1)));\n{main}}}\n"
        )
    }
}

/// Compiles every row, prints the table and writes it beside the results of the benchmark.
pub(crate) fn run() -> Result<(), String> {
    let project = Project::new()?;
    Step::new("dependencies")
        .check(|| project.build("fn main() {}\n").map(|_| "compiled".into()))?;
    let mut table = format!(
        "What a further call costs in a release build of a user's crate, beside one that is there: {FURTHER} further calls, \
         over their number. The closures differ; the element type, float32, and the rank do not.\n\n\
         | call | operands | CPU seconds | bytes |\n|---|---|---|---|\n"
    );
    for call in Call::ALL {
        for &operands in call.operands() {
            let step = Step::new(&format!("{} of {operands}", call.name()));
            let build = |calls| project.build(&call.program(operands, calls));
            let (one, many) = (build(1)?, build(1 + FURTHER)?);
            let seconds = (many.seconds - one.seconds) / FURTHER as f64;
            let bytes = (many.bytes as f64 - one.bytes as f64) / FURTHER as f64;
            step.check(|| Ok(format!("{seconds:.2} s and {bytes:.0} bytes a call")))?;
            let _ =
                writeln!(table, "| `{}` | {operands} | {seconds:.2} | {bytes:.0} |", call.name());
        }
    }
    print!("{table}");
    let file = root().join("bench/results/compile.md");
    fs::write(&file, table).map_err(|error| format!("{}: {error}", file.display()))
}

/// What a build took, and made.
#[derive(Clone, Copy)]
struct Cost {
    seconds: f64,
    bytes: u64,
}

/// A user's crate under `target/`, which depends on this tree's `simulcast`.
struct Project {
    folder: PathBuf,
}

impl Project {
    fn new() -> Result<Self, String> {
        let folder = root().join("target/compile-cost");
        let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
        fs::create_dir_all(folder.join("src")).map_err(failed)?;
        let manifest = format!(
            "[package]\nname = \"further\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[dependencies]\n\
             ndarray = \"0.17\"\nsimulcast = {{ path = {:?} }}\n\n[profile.release]\nstrip = true\n\n[workspace]\n",
            root().join("crates/simulcast")
        );
        fs::write(folder.join("Cargo.toml"), manifest).map_err(failed)?;
        fs::copy(root().join("Cargo.lock"), folder.join("Cargo.lock")).map_err(failed)?;
        Ok(Self { folder })
    }

    /// Builds a program.
    fn build(&self, program: &str) -> Result<Cost, String> {
        let source = self.folder.join("src/main.rs");
        fs::write(&source, program).map_err(|error| format!("{}: {error}", source.display()))?;
        let mut build = cargo(["build", "--release", "--quiet"]);
        build.current_dir(&self.folder).env("CARGO_TARGET_DIR", self.folder.join("target"));
        let before = children_seconds()?;
        output(build)?;
        let seconds = children_seconds()? - before;
        let binary = self.folder.join("target/release/further");
        let bytes = fs::metadata(&binary).map_err(|error| format!("{}: {error}", binary.display()));
        Ok(Cost { seconds, bytes: bytes?.len() })
    }
}

/// The CPU seconds of the processes that this one started and waited for, and of theirs.
fn children_seconds() -> Result<f64, String> {
    /// The ticks of a second in `/proc`, on every Linux.
    const TICKS: f64 = 100.0;
    let file = Path::new("/proc/self/stat");
    let text =
        fs::read_to_string(file).map_err(|error| format!("CPU times need Linux: {error}"))?;
    // After the name, which may have spaces: fields 16 and 17, user and system time of children.
    let (_, fields) = text.rsplit_once(')').ok_or("/proc/self/stat has no name")?;
    let ticks = fields.split_whitespace().skip(13).take(2).map(str::parse::<f64>);
    let ticks =
        ticks.sum::<Result<f64, _>>().map_err(|error| format!("/proc/self/stat: {error}"))?;
    Ok(ticks / TICKS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_calls_of_a_program_have_one_closure() {
        let program = Call::Fold.program(2, 3);
        assert_eq!(program.matches("zip((a, b,)).fold(").count(), 3);
        assert!(
            program.contains("all + (a + b) * 1.5)") && program.contains("all + (a + b) * 3.5)")
        );
        assert!(program.contains("call3(x, x)"));
    }

    #[test]
    fn times_of_children_are_read() {
        assert!(children_seconds().is_ok_and(|seconds| seconds >= 0.0));
    }
}
