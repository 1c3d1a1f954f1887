//! What the command line may say.

use std::fmt::Write as _;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand};
use simulcast_core::{Code, CodeKind, RuleKind, Strictness};
use simulcast_explain::Format;

const SHAPES: &str = "\
Shapes, in any spelling:
  8,1,6,1  (8, 1, 6, 1)  [8,1,6,1]  8x1x6x1  torch.Size([8, 1, 6, 1])
  () or scalar      rank 0
  N,3,1             a symbol (N@2..8: between 2 and 8)
  ? or 2..8         an unknown size, an interval; ... an unknown rank
  b=32,c=3          axes with names
  pred:32,1         an operand with a name
  x.npy, a:x.npy    the shape of a NumPy file (only its header is read)
  d.npz:key, w.safetensors:layer.weight    the shape of an array in a file of several";

const PASTED: &str = "\
Pasted text:
  simulcast explain - < log.txt
                    explains every broadcasting error of NumPy, PyTorch, JAX, TensorFlow, ONNX Runtime
                    and OpenVINO in a log or a traceback; exit code 1 where there is none";

/// Every rule, as it is written, with what it means.
fn rules() -> String {
    let mut text = String::from("Rules:");
    for &kind in RuleKind::ALL {
        let takes = kind.parameters();
        let parameters = match (takes.axis, takes.shape, takes.axes) {
            (true, ..) => "[:AXIS]",
            (_, Some(_), Some(_)) => ":SHAPE/AXES",
            (_, Some(_), None) => ":SHAPE",
            _ => "",
        };
        let usage = format!("{kind}{parameters}");
        let default = if kind == RuleKind::Numpy { " (the default)" } else { "" };
        let _ = write!(text, "\n  {usage:<22} {}{default}", kind.summary());
    }
    text
}

/// Every strictness, named as they are everywhere.
fn strictness() -> impl TypedValueParser<Value = Strictness> {
    // Never else: only the names of strictnesses get past the parser of possible values.
    PossibleValuesParser::new(Strictness::ALL.iter().map(|own| own.name()))
        .map(|name| name.parse::<Strictness>().unwrap_or_default())
}

/// Every format of findings.
fn formats() -> impl TypedValueParser<Value = Format> {
    // Never else: only the names of formats get past the parser of possible values.
    PossibleValuesParser::new(Format::ALL.iter().map(|own| own.name()))
        .map(|name| name.parse::<Format>().unwrap_or_default())
}

const OPERANDS: &str = "\
Operands, each NAME= and one of:
  x.npy             a NumPy file, mapped into memory; /dev/stdin, read
  d.npz:key         an array of several; w.safetensors:layer.weight likewise
  2.5, 1+2j, 'a'    a value of rank 0: float64, int64, bool, complex128 or string
  [[1,2],[3,4]]     these values
  (3,4)             0, 1, 2, ... in that shape, int64
  rand(3,4), randn(3,4)       random, the same for the same --seed
  zeros(3,4), ones(3,4), full((3,4), 2.5), array([1,2])
  arange(10), arange(2,10,2), linspace(0,1,11)
Each call takes dtype=, such as rand(3,4, dtype=float32).";

const EXPRESSIONS: &str = "\
Expressions are Python's: + - * / // % ** comparisons & | ^ ~, where(c, a, b), exp(x), max(a, b),
float32(x), x[:, None], x.T, and reductions: x.sum(axis=-1, keepdims=True), mean, max, min, prod.
A number in the expression takes the type of what it meets; an operand keeps its own.";

const EVAL: &str = "\
Examples:
  simulcast eval 'a * b + 1' a='(2,3)' b='[10, 20, 30]'
  simulcast eval '(x - m) / s' x=x.npy m=stats.npz:mean s=stats.npz:std -o y.npy
  simulcast eval 'x - m; x.sum()' x=x.npy m=2 -o centred.npy -o sum.npy
  simulcast eval 'x.mean(axis=(0, 2, 3))' x='rand(32,64,56,56, dtype=float32)' --time
  simulcast eval 'exp(x - m)' x=large.npy m=m.npy -o y.npy --device cuda";

const EXIT: &str = "\
Exit codes: 0 fine, 1 incompatible or denied, 2 usage, 130 interrupted, 143 terminated.";

/// Broadcasting, explained: which axis feeds which, what fails, and how to fix it.
#[derive(Debug, Parser)]
#[command(name = "simulcast", version, after_help = EXIT, propagate_version = true)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) color: Color,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// When to use colour.
#[derive(Debug, Args)]
pub(crate) struct Color {
    /// Colour the output: on a terminal, always or never; `NO_COLOR` is honoured.
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto", value_parser = ["auto", "always", "never"])]
    color: String,
}

impl Color {
    pub(crate) fn write_global(&self) {
        match self.color.as_str() {
            "always" => anstream::ColorChoice::Always.write_global(),
            "never" => anstream::ColorChoice::Never.write_global(),
            _ => {}
        }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Explain a broadcast: a table, a picture, findings and fixes.
    #[command(after_help = format!("{SHAPES}\n\n{PASTED}\n\n{}\n\n{EXIT}", rules()))]
    Explain(ExplainArgs),
    /// Print the result shape alone, for scripts.
    #[command(after_help = format!("{SHAPES}\n\n{}\n\nWith --jsonl, each line of standard input is a request:
  {{\"rule\": \"numpy\", \"shapes\": [[2, 1], [3]]}}  is answered by  {{\"shape\":[2,3]}}
  or by {{\"error\":{{\"code\":\"E1\", ...}}}}. Further fields: axis; target; shape with
  broadcast_axes or axes_mapping; axes (lists of names, for rule named).

{EXIT}", rules()))]
    Shape(ShapeArgs),
    /// Compute an expression over arrays: from files, values and generated ones, in one pass.
    #[command(after_help = format!("{OPERANDS}\n\n{EXPRESSIONS}\n\n{EVAL}\n\n{EXIT}"))]
    Eval(EvalArgs),
    /// Check, infer, run and upgrade ONNX models.
    #[command(subcommand)]
    Onnx(OnnxCommand),
    /// Explain a code of an error or a finding, or list them all.
    #[command(after_help = EXIT)]
    Codes {
        /// The code: E1, SC102.
        code: Option<String>,
    },
    /// List the NVIDIA GPUs that eval --device can compute on, and their memory.
    #[command(after_help = EXIT)]
    Devices,
    /// Print a completion script.
    Completions {
        /// The shell to complete for.
        shell: clap_complete::Shell,
    },
    /// Print a manual page.
    Man {
        /// The command whose page is wanted.
        command: Option<String>,
    },
}

/// Shapes and a rule.
#[derive(Debug, Args)]
pub(crate) struct RequestArgs {
    /// The operands' shapes.
    #[arg(value_name = "SHAPE")]
    pub(crate) shapes: Vec<String>,
    /// The rule under which they meet.
    #[arg(long, short, default_value = "numpy")]
    pub(crate) rule: String,
    /// The size of a symbol.
    #[arg(long = "set", value_name = "SYMBOL=SIZE")]
    pub(crate) sizes: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    #[command(flatten)]
    pub(crate) request: RequestArgs,
    /// Write the picture to a file (- for standard output).
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
    /// Write a page with the picture to a file (- for standard output).
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Print JSON instead of text.
    #[arg(long, conflicts_with = "ascii")]
    pub(crate) json: bool,
    /// Print plain ASCII.
    #[arg(long)]
    pub(crate) ascii: bool,
    /// Fail (exit code 1) on a finding: SC102, all, or one that is no coincidence of sizes, SC102:confirmed.
    #[arg(long, value_name = "CODE", value_delimiter = ',')]
    pub(crate) deny: Vec<String>,
    /// Do not show a finding: SC105, all, or one that may be a coincidence, SC102:possible.
    #[arg(long, value_name = "CODE", value_delimiter = ',')]
    pub(crate) allow: Vec<String>,
    /// How much broadcasting is accepted at all.
    #[arg(long, alias = "level", default_value_t, value_parser = strictness())]
    pub(crate) strictness: Strictness,
    /// Growth beyond this factor is a finding (SC105).
    #[arg(long, value_name = "FACTOR", default_value_t = 16.0)]
    pub(crate) max_growth: f64,
    /// A result of more bytes than this is a finding (SC105).
    #[arg(long, value_name = "BYTES")]
    pub(crate) max_bytes: Option<usize>,
    /// The size of an element in bytes, for --max-bytes.
    #[arg(long, value_name = "BYTES", default_value_t = 8)]
    pub(crate) element_size: usize,
}

#[derive(Debug, Args)]
pub(crate) struct ShapeArgs {
    #[command(flatten)]
    pub(crate) request: RequestArgs,
    /// Print JSON instead of text.
    #[arg(long)]
    pub(crate) json: bool,
    /// Answer one request a line, from standard input; never stops at an error.
    #[arg(long, conflicts_with_all = ["shapes", "rule", "sizes", "json"])]
    pub(crate) jsonl: bool,
}

#[derive(Debug, Args)]
pub(crate) struct EvalArgs {
    /// The expression; several, with `;` between them, are computed together.
    #[arg(value_name = "EXPR", allow_hyphen_values = true)]
    pub(crate) expression: String,
    /// Its operands.
    #[arg(value_name = "NAME=OPERAND")]
    pub(crate) inputs: Vec<String>,
    /// Write the result to a .npy file, which gets its name when it is whole. Results of several expressions go to a file
    /// each, in their order, or all to one .npz file, with the names of NumPy's savez.
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Vec<PathBuf>,
    /// The rule under which the operands of each operator meet.
    #[arg(long, short, default_value = "numpy")]
    pub(crate) rule: String,
    /// Convert no types: operands of an operator must be of one type, as in ONNX.
    #[arg(long)]
    pub(crate) strict: bool,
    /// Round a product and a sum once, not twice: faster, and other last digits.
    #[arg(long)]
    pub(crate) fast_math: bool,
    /// The memory for what is generated, unpacked or computed; half of what is free unless told. A
    /// result that goes to a file may be larger, what is computed before it may not.
    #[arg(long, value_name = "BYTES")]
    pub(crate) max_bytes: Option<u64>,
    /// At most that many threads.
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<NonZeroUsize>,
    /// What random numbers begin with.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,
    /// Print how long each part took.
    #[arg(long)]
    pub(crate) time: bool,
    /// Print JSON instead of text.
    #[arg(long)]
    pub(crate) json: bool,
    /// Explain how the operands meet, what is moved, and the passes over memory.
    #[arg(long)]
    pub(crate) explain: bool,
    /// Where it is computed: on this processor, or on an NVIDIA GPU, such as cuda or cuda:1. What is larger than the
    /// memory of the GPU goes there in parts.
    #[arg(long, value_name = "DEVICE", default_value = "cpu", value_parser = device)]
    pub(crate) device: Place,
}

/// Where an expression is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// On the processor.
    Processor,
    /// On the NVIDIA GPU of that number.
    Cuda(usize),
}

fn device(word: &str) -> Result<Place, String> {
    let number = match word {
        "cpu" => return Ok(Place::Processor),
        "cuda" => Some(0),
        other => other.strip_prefix("cuda:").and_then(|own| own.parse().ok()),
    };
    number.map(Place::Cuda).ok_or_else(|| "write cpu, cuda or cuda:1".into())
}

/// The findings that only a model can show.
fn model_findings() -> String {
    let mut text = String::from("Findings: those of simulcast explain, and of a model");
    for code in Code::ALL.iter().filter(|code| code.kind == CodeKind::Model) {
        let _ = write!(text, "\n  {}   {}", code.code, code.title);
    }
    text
}

const INFER: &str = "\
Every result of a node gets its type and shape: sizes, names of the inputs' sizes, and expressions of them
(2*N + 1, (height - 1)//2, bcast(N, M)). A size that depends on the elements of arrays is named after its
value: y.0 is axis 0 of y. What the file declared of results is replaced where it says something else; what
it declares of inputs stays, but for sizes that are set.";

#[derive(Debug, Subcommand)]
pub(crate) enum OnnxCommand {
    /// Infer every shape of a model and check every broadcast in it.
    #[command(after_help = format!("{}\n\n{EXIT}", model_findings()))]
    Check(OnnxCheckArgs),
    /// Compare the shapes and broadcasts of two models, such as before and after simplification or quantization.
    #[command(
        after_help = "Exit code 1 where a shape or a broadcast differs, or a model cannot work; 2 where a model cannot be read."
    )]
    Diff(OnnxDiffArgs),
    /// Write a model's inferred shapes into it; everything else stays as it is, byte for byte.
    #[command(after_help = format!("{INFER}\n\n{EXIT}"))]
    Infer(OnnxInferArgs),
    /// Run a model on arrays in files, values and generated ones.
    #[command(after_help = format!("{OPERANDS}\n\n{EXIT}"))]
    Run(OnnxRunArgs),
    /// Rewrite a model of opset 1 to 6 for opset 7, where broadcasting is NumPy's.
    #[command(after_help = EXIT)]
    Upgrade(OnnxUpgradeArgs),
}

#[derive(Debug, Args)]
pub(crate) struct OnnxCheckArgs {
    /// The models.
    #[arg(value_name = "MODEL", required = true)]
    pub(crate) models: Vec<PathBuf>,
    /// The size of a symbol; x.0 is axis 0 of an input x whose size has no name.
    #[arg(long = "set", value_name = "SYMBOL=SIZE")]
    pub(crate) sizes: Vec<String>,
    /// Whether sizes of one name are equal; with no, each axis of an input gets a name of its own.
    #[arg(long, value_name = "yes|no", default_value = "yes", value_parser = yes_or_no, action = clap::ArgAction::Set)]
    pub(crate) trust_names: bool,
    /// Print the whole report of a model as JSON: every broadcast, shape and constraint.
    #[arg(long)]
    pub(crate) json: bool,
    /// How to print errors and findings: for people (with the table of broadcasts), a line each, for GitHub's
    /// annotations, as GitLab's Code Quality report, SARIF 2.1.0 or `JUnit`'s XML, or as JSON.
    #[arg(long, default_value_t, conflicts_with = "json", value_parser = formats())]
    pub(crate) format: Format,
    /// Print errors and findings alone, and nothing where there are none.
    #[arg(long, short, conflicts_with = "json")]
    pub(crate) quiet: bool,
    /// Write a page with a picture of each broadcast to a file (- for standard output).
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Fail (exit code 1) on a finding: SC102, all, or one that is no coincidence of sizes, SC102:confirmed.
    #[arg(long, value_name = "CODE", value_delimiter = ',')]
    pub(crate) deny: Vec<String>,
    /// Do not show a finding: SC105, all, or one that may be a coincidence, SC102:possible.
    #[arg(long, value_name = "CODE", value_delimiter = ',')]
    pub(crate) allow: Vec<String>,
    /// Neither show nor deny the findings in this file. Errors are in no baseline.
    #[arg(long, value_name = "FILE")]
    pub(crate) baseline: Option<PathBuf>,
    /// Write the findings of now to a file for --baseline, which replaces it; they are not denied.
    #[arg(long, value_name = "FILE")]
    pub(crate) write_baseline: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct OnnxInferArgs {
    /// The model.
    pub(crate) model: PathBuf,
    /// The file to write (- for standard output); it gets its name when it is whole.
    #[arg(long, short, value_name = "FILE", required_unless_present = "in_place")]
    pub(crate) output: Option<PathBuf>,
    /// Put the result in the model's place.
    #[arg(long, conflicts_with = "output")]
    pub(crate) in_place: bool,
    /// The size of a symbol; x.0 is axis 0 of an input x whose size has no name.
    #[arg(long = "set", value_name = "SYMBOL=SIZE")]
    pub(crate) sizes: Vec<String>,
    /// List the shapes that were replaced, and the operators behind which sizes are not known.
    #[arg(long)]
    pub(crate) report: bool,
    /// Print what was written as JSON.
    #[arg(long, conflicts_with = "report")]
    pub(crate) json: bool,
    /// Whether sizes of one name are equal. ONNX says so, some exporters reuse names, and ONNX Runtime does
    /// not compare them; with no, each axis of an input gets a name of its own.
    #[arg(long, value_name = "yes|no", default_value = "yes", value_parser = yes_or_no, action = clap::ArgAction::Set)]
    pub(crate) trust_names: bool,
    /// Write the file although nodes cannot work; their results have no shapes then.
    #[arg(long)]
    pub(crate) keep_going: bool,
}

fn yes_or_no(word: &str) -> Result<bool, String> {
    match word {
        "yes" => Ok(true),
        "no" => Ok(false),
        _ => Err("write yes or no".into()),
    }
}

#[derive(Debug, Args)]
pub(crate) struct OnnxRunArgs {
    /// The model.
    pub(crate) model: PathBuf,
    /// An input; as often as there are some.
    #[arg(long = "input", short, value_name = "NAME=OPERAND")]
    pub(crate) inputs: Vec<String>,
    /// Write the outputs to a .npz file by name, or the only one to a .npy file; it gets its name
    /// when it is whole.
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// The size that a symbol must have.
    #[arg(long = "set", value_name = "SYMBOL=SIZE")]
    pub(crate) sizes: Vec<String>,
    /// Whether sizes of one name are equal; with no, as ONNX Runtime does, they are not compared.
    #[arg(long, value_name = "yes|no", default_value = "yes", value_parser = yes_or_no, action = clap::ArgAction::Set)]
    pub(crate) trust_names: bool,
    /// Say whether the model can run, and what it needs; run nothing.
    #[arg(long, conflicts_with_all = ["json", "output"])]
    pub(crate) dry_run: bool,
    /// The most bytes of results that are held at a time; half of the memory that is free unless told.
    #[arg(long, value_name = "BYTES")]
    pub(crate) max_bytes: Option<u64>,
    /// At most that many threads.
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<NonZeroUsize>,
    /// What random numbers begin with.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,
    /// Print how long each part took.
    #[arg(long)]
    pub(crate) time: bool,
    /// Print JSON instead of text.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct OnnxDiffArgs {
    /// The model before.
    pub(crate) before: PathBuf,
    /// The model after.
    pub(crate) after: PathBuf,
    /// The size of a symbol of both.
    #[arg(long = "set", value_name = "SYMBOL=SIZE")]
    pub(crate) sizes: Vec<String>,
    /// Print JSON instead of text.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct OnnxUpgradeArgs {
    /// The model.
    pub(crate) model: PathBuf,
    /// The file to write (- for standard output).
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: PathBuf,
}
