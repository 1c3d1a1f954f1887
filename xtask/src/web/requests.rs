//! Random requests with what the command says to them, to which the page is held.

use std::fs;
use std::io::Write as _;
use std::path::Path;

use crate::run::{command, root};

/// How many requests there are.
const REQUESTS: usize = 10_000;
const SEED: u64 = 0x5eed_0035;

/// Spellings that the fields of a page meet while somebody types.
const ODD: [&str; 24] = [
    "()",
    "[]",
    "scalar",
    "...",
    "?",
    "2..8",
    "2..",
    "..8",
    "8..2",
    "N@2..8",
    "N@",
    "2;3",
    "(2,3",
    "2,,3",
    "-1,3",
    "x:",
    ":2",
    "b=32,c=3",
    "b=32,3",
    "b=2,b=3",
    "2.5",
    "²",
    "torch.Size([8, 1])",
    "None,4",
];
const SIZES: [&str; 16] =
    ["1", "1", "1", "1", "2", "2", "3", "3", "4", "5", "7", "0", "12", "N", "M", "?"];
const NAMES: [&str; 4] = ["h", "w", "c", "b"];

/// A linear congruential generator, which is the same everywhere.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        ((self.0 >> 33) as usize) % limit.max(1)
    }

    fn of<'t>(&mut self, list: &[&'t str]) -> &'t str {
        list.get(self.below(list.len())).copied().unwrap_or_default()
    }

    /// Sizes in one of the spellings.
    fn shape(&mut self) -> String {
        let sizes: Vec<&str> = (0..self.below(6)).map(|_| self.of(&SIZES)).collect();
        match self.below(8) {
            0 => format!("[{}]", sizes.join(", ")),
            1 if !sizes.is_empty() => sizes.join("x"),
            2 => format!("torch.Size([{}])", sizes.join(", ")),
            _ if sizes.is_empty() => "()".into(),
            3 => format!("({},)", sizes.join(", ")),
            _ => sizes.join(","),
        }
    }

    fn named(&mut self) -> String {
        let first = self.below(NAMES.len());
        let name = |at: usize| NAMES.get((first + at) % NAMES.len()).copied().unwrap_or_default();
        let axes = (0..self.below(NAMES.len() + 1))
            .map(|at| format!("{}={}", name(at), 1 + self.below(3)));
        let axes: Vec<String> = axes.collect();
        if axes.is_empty() { "()".into() } else { axes.join(",") }
    }

    fn rule(&mut self) -> String {
        let shape = |own: &mut Self| {
            (0..1 + own.below(3)).map(|_| own.of(&SIZES[..12])).collect::<Vec<_>>().join(",")
        };
        match self.below(24) {
            0 => "exact".into(),
            1 => "unidirectional".into(),
            kind @ 2..=6 => {
                let name = ["pdpd", "legacy", "paddle", "pdpd", "paddle"]
                    .get(kind - 2)
                    .copied()
                    .unwrap_or("pdpd");
                match self.below(5) {
                    0 => name.into(),
                    axis => format!("{name}:{}", axis - 1),
                }
            }
            7 => format!("bidirectional:{}", shape(self)),
            8 => format!("to:{}", shape(self)),
            9 => format!("axes:{}/{}", shape(self), self.below(3)),
            10 => format!("mapping:{}/{}", shape(self), self.below(3)),
            11 => self.of(&["nunpy", "to", "pdpd:x", "axes:2,3"]).into(),
            12..=14 => "named".into(),
            _ => "numpy".into(),
        }
    }

    /// A rule, operands, and sizes of symbols.
    fn request(&mut self) -> (String, Vec<String>, Vec<(&'static str, usize)>) {
        let rule = self.rule();
        let one =
            [":", "/"].iter().any(|sign| rule.contains(sign)) && !rule.starts_with(['p', 'l']);
        let usual = if one { 1 } else { 2 };
        let count = if self.below(4) == 0 { 1 + self.below(4) } else { usual };
        let shapes = (0..count).map(|at| {
            let shape = match self.below(12) {
                0 => self.of(&ODD).into(),
                _ if rule == "named" => self.named(),
                _ => self.shape(),
            };
            match self.below(4) {
                0 if !shape.contains(':') => {
                    format!("{}:{shape}", ["x", "mean", "größe", "w.0"][at % 4])
                }
                _ => shape,
            }
        });
        let shapes: Vec<String> = shapes.collect();
        let sizes = match self.below(8) {
            0 => vec![("N", self.below(5))],
            1 => vec![("N", self.below(5)), ("M", 1)],
            _ => Vec::new(),
        };
        (rule, shapes, sizes)
    }
}

/// Writes the requests as lines of JSON: rule, shapes, sizes, exit code, standard output, standard error.
pub(super) fn write(out: &Path) -> Result<String, String> {
    let mut random = Random(SEED);
    let requests: Vec<_> = (0..REQUESTS).map(|_| random.request()).collect();
    let half = requests.len().div_ceil(2);
    let parts: Vec<Result<Vec<String>, String>> = std::thread::scope(|scope| {
        let part = |part| scope.spawn(move || answered(part));
        let running: Vec<_> = requests.chunks(half).map(part).collect();
        running
            .into_iter()
            .map(|part| part.join().unwrap_or_else(|_| Err("a thread failed".into())))
            .collect()
    });
    let mut file = fs::File::create(out).map_err(|error| error.to_string())?;
    for line in parts.into_iter().collect::<Result<Vec<_>, _>>()?.concat() {
        writeln!(file, "{line}").map_err(|error| error.to_string())?;
    }
    Ok(format!("{REQUESTS} requests"))
}

type Request = (String, Vec<String>, Vec<(&'static str, usize)>);

fn answered(requests: &[Request]) -> Result<Vec<String>, String> {
    let program = root().join("target/debug/simulcast").to_string_lossy().into_owned();
    let answer = |(rule, shapes, sizes): &Request| {
        let mut run = command(&program, ["explain", "--json", "--rule", rule]);
        for (name, size) in sizes {
            run.args(["--set", &format!("{name}={size}")]);
        }
        let done = run.args(shapes).output().map_err(|error| format!("{program}: {error}"))?;
        let text = |bytes: &[u8]| crate::site::quoted(&String::from_utf8_lossy(bytes));
        let shapes: Vec<String> = shapes.iter().map(|own| crate::site::quoted(own)).collect();
        let sizes: Vec<String> =
            sizes.iter().map(|(name, size)| format!("\"{name}\":{size}")).collect();
        Ok(format!(
            "{{\"rule\":{},\"shapes\":[{}],\"sizes\":{{{}}},\"code\":{},\"out\":{},\"err\":{}}}",
            crate::site::quoted(rule),
            shapes.join(","),
            sizes.join(","),
            done.status.code().unwrap_or(-1),
            text(&done.stdout),
            text(&done.stderr)
        ))
    };
    requests.iter().map(answer).collect()
}
