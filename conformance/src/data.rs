//! The recorded answers: one file a system, one case a line.

use std::fmt;
use std::fs;
use std::path::PathBuf;

use serde_json::{Map, Value};
use simulcast_core::{Dim, Dims, RuleKind, ShapeText, Strictness, format_shape};

/// The folder `conformance/`.
pub fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// A system and what it answered.
pub struct System {
    pub name: String,
    /// The packages that were asked, with their versions.
    pub versions: Vec<(String, String)>,
    pub cases: Vec<Case>,
}

/// Numbers for each operand: positions of elements, or a gradient.
pub type Lists = Vec<Vec<i64>>;

/// A question.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    pub rule: RuleKind,
    pub axis: Option<isize>,
    /// The target, or the shape of the result.
    pub shape: Option<Vec<usize>>,
    /// The broadcast axes, or the mapping; as asked, so they may be negative.
    pub axes: Vec<i64>,
    /// How much implicit broadcasting the system was told to accept.
    pub strictness: Option<Strictness>,
    pub shapes: Vec<Dims>,
}

/// A question and what a system said to it.
pub struct Case {
    /// The system's own word for what was asked.
    pub op: String,
    pub question: Question,
    /// What each stage said: `out` first, then those that said something else.
    pub said: Vec<(Stage, Answer)>,
    /// The position, in each operand, of each element of the result.
    pub from: Option<Lists>,
    /// The gradient of each operand, where the result's is 0, 1, 2, ...
    pub sums: Option<Lists>,
}

/// Who of a system was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// What the system answers in the first place.
    Out,
    /// OpenVINO and nGraph: what a run gave, where it is not `Out`.
    Ran,
    /// OpenVINO: what the CPU plugin gave, where it is not `Out`.
    Cpu,
    /// ONNX Runtime: what the shape inference of `onnx` says, where it is not `Out`.
    Inferred,
    /// Where elements come from.
    From,
    /// Gradients.
    Sums,
}

impl Stage {
    pub const SAID: [(Self, &'static str); 4] =
        [(Self::Out, "out"), (Self::Ran, "ran"), (Self::Cpu, "cpu"), (Self::Inferred, "inferred")];
}

/// What is answered.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    Shape(Dims),
    Refused,
    /// The process died, of that signal.
    Crashed(String),
    /// Something else that was seen.
    Other(String),
}

impl Answer {
    pub fn accepts(&self) -> bool {
        matches!(self, Self::Shape(_))
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shape(dims) => write!(f, "{dims}"),
            Self::Refused => f.write_str("refused"),
            Self::Crashed(signal) => write!(f, "{signal}"),
            Self::Other(what) => f.write_str(what),
        }
    }
}

impl fmt::Display for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shapes: Vec<String> = self.shapes.iter().map(ToString::to_string).collect();
        f.write_str(&shapes.join(" with "))?;
        if let Some(axis) = self.axis {
            write!(f, ", axis {axis}")?;
        }
        if let Some(shape) = &self.shape {
            write!(f, " to {}", format_shape(shape))?;
        }
        match self.rule.parameters().axes {
            Some(name) => write!(f, ", {} {:?}", name.replace('_', " "), self.axes),
            None => Ok(()),
        }
    }
}

impl Question {
    pub fn read(line: &Map<String, Value>) -> Result<Self, String> {
        let rule = line.get("rule").and_then(Value::as_str).and_then(RuleKind::from_name);
        let axes = line.get("axes_mapping").or_else(|| line.get("broadcast_axes"));
        let shape = line.get("target").or_else(|| line.get("shape"));
        let shapes = line.get("shapes").and_then(Value::as_array).ok_or("no shapes")?;
        let axis = line.get("axis").map(|axis| axis.as_i64().ok_or("axis is not a number"));
        Ok(Self {
            rule: rule.ok_or("no rule")?,
            axis: axis.transpose()?.map(|axis| axis as isize),
            shape: shape.map(numbers).transpose()?,
            axes: axes.map_or(Ok(Vec::new()), numbers)?,
            strictness: line
                .get("level")
                .and_then(Value::as_str)
                .and_then(|name| name.parse().ok()),
            shapes: shapes.iter().map(dims).collect::<Result<_, _>>()?,
        })
    }

    /// The sizes of the operands, where all of them are known.
    pub fn sizes(&self) -> Option<Vec<Vec<usize>>> {
        self.shapes.iter().map(Dims::sizes).collect()
    }
}

/// Every system, in the order of the files' names.
pub fn systems() -> Result<Vec<System>, String> {
    let entries = fs::read_dir(folder().join("data")).map_err(|error| error.to_string())?;
    let mut paths: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|end| end == "jsonl"))
        .collect();
    paths.sort();
    paths.iter().map(system).collect()
}

fn system(path: &PathBuf) -> Result<System, String> {
    let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let mut lines = text.lines().enumerate().map(|(number, line)| {
        let at = |error: String| format!("{}:{}: {error}", path.display(), number + 1);
        match serde_json::from_str(line) {
            Ok(Value::Object(line)) => Ok((number, line)),
            Ok(_) => Err(at("not an object".to_string())),
            Err(error) => Err(at(error.to_string())),
        }
    });
    let (_, header) = lines.next().ok_or_else(|| format!("{}: empty", path.display()))??;
    let versions = header.get("versions").and_then(Value::as_object).into_iter().flatten();
    Ok(System {
        name: text_of(&header, "system")?,
        versions: versions.map(|(k, v)| (k.clone(), v.as_str().unwrap_or("?").into())).collect(),
        cases: lines
            .map(|line| {
                let (number, line) = line?;
                case(&line).map_err(|error| format!("{}:{}: {error}", path.display(), number + 1))
            })
            .collect::<Result<_, _>>()?,
    })
}

fn case(line: &Map<String, Value>) -> Result<Case, String> {
    let mut said = Vec::new();
    for (stage, key) in Stage::SAID {
        if let Some(value) = line.get(key) {
            said.push((stage, answer(value, line)?));
        }
    }
    Ok(Case {
        op: text_of(line, "op")?,
        question: Question::read(line)?,
        said,
        from: positions(line, "from")?,
        sums: positions(line, "sums")?,
    })
}

/// Lists of numbers, one for each operand; a word in their place is no list.
pub fn positions(line: &Map<String, Value>, key: &str) -> Result<Option<Lists>, String> {
    match line.get(key) {
        Some(Value::Array(lists)) => lists.iter().map(numbers).collect::<Result<_, _>>().map(Some),
        _ => Ok(None),
    }
}

fn text_of(line: &Map<String, Value>, key: &str) -> Result<String, String> {
    line.get(key).and_then(Value::as_str).map(str::to_owned).ok_or_else(|| format!("no {key}"))
}

/// An answer as the files write it: a shape, null for an unknown rank, or a word.
pub fn answer(value: &Value, line: &Map<String, Value>) -> Result<Answer, String> {
    match value {
        Value::String(word) if word == "refused" => Ok(Answer::Refused),
        Value::String(word) if word == "crashed" => {
            Ok(Answer::Crashed(text_of(line, "signal").unwrap_or_else(|_| "crashed".into())))
        }
        Value::String(word) => Ok(Answer::Other(word.clone())),
        shape => Ok(Answer::Shape(dims(shape)?)),
    }
}

fn dims(value: &Value) -> Result<Dims, String> {
    let Value::Array(sizes) = value else {
        return if value.is_null() {
            Ok(Dims::Unranked)
        } else {
            Err(format!("{value}: no shape"))
        };
    };
    let dim = |size: &Value| match size {
        Value::String(text) => {
            let text: ShapeText = text.parse().map_err(|error| format!("{size}: {error}"))?;
            text.dims.dims().and_then(|dims| dims.first().cloned()).ok_or(format!("{size}"))
        }
        size => {
            size.as_u64().map(|size| Dim::Size(size as usize)).ok_or(format!("{size}: no size"))
        }
    };
    Ok(Dims::Ranked(sizes.iter().map(dim).collect::<Result<_, _>>()?))
}

fn numbers<T: TryFrom<i64>>(value: &Value) -> Result<Vec<T>, String> {
    let number = |value: &Value| value.as_i64().and_then(|number| T::try_from(number).ok());
    let list = value.as_array().and_then(|list| list.iter().map(number).collect());
    list.ok_or_else(|| format!("{value} is not a list of numbers"))
}
