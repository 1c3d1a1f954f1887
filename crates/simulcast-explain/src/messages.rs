//! Error messages of array libraries, read from text that people paste: a traceback, a log, an issue.
//!
//! [`read_messages`] finds what NumPy, PyTorch, JAX, TensorFlow, ONNX Runtime and OpenVINO say where arrays do
//! not broadcast, and gives each as data: the library, the operation, the shapes and the rule under which they
//! met. The texts are tested against `conformance/messages.jsonl`, which is recorded from the libraries.
//!
//! ```
//! use simulcast_explain::{Library, read_messages};
//!
//! let log = "step 3\nValueError: operands could not be broadcast together with shapes (2,3) (2,) \n";
//! let messages = read_messages(log);
//! assert_eq!((messages[0].library, messages[0].line), (Library::Numpy, 2));
//! let outcome = messages[0].request().unwrap().resolve();
//! assert!(outcome.error().unwrap().to_string().contains("A has 3, B has 2"));
//!
//! // Some messages carry no shapes, and say what is missing.
//! let torch = "The size of tensor a (3) must match the size of tensor b (2) at non-singleton dimension 1";
//! assert!(read_messages(torch)[0].missing().unwrap().contains("a.shape"));
//! ```
//!
//! Text is read once, whatever is in it; a message that occurs again (chained tracebacks repeat them) is
//! listed once.

mod patterns;
mod scan;

use std::fmt;
use std::ops::Range;

use simulcast_core::{
    Action, Dims, FindingCode, Names, OwnedRule, Policy, Request, ShapeText, Strictness,
};

use crate::{Subject, TextOptions, json, text};

/// A library whose messages are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Library {
    /// NumPy, and `CuPy` and numexpr, which use its words.
    Numpy,
    /// `PyTorch`.
    Torch,
    /// JAX.
    Jax,
    /// TensorFlow and Keras.
    TensorFlow,
    /// ONNX Runtime.
    OnnxRuntime,
    /// `OpenVINO`.
    OpenVino,
}

impl Library {
    /// Every library.
    pub const ALL: &'static [Self] =
        &[Self::Numpy, Self::Torch, Self::Jax, Self::TensorFlow, Self::OnnxRuntime, Self::OpenVino];

    /// The library's name as it writes it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Numpy => "NumPy",
            Self::Torch => "PyTorch",
            Self::Jax => "JAX",
            Self::TensorFlow => "TensorFlow",
            Self::OnnxRuntime => "ONNX Runtime",
            Self::OpenVino => "OpenVINO",
        }
    }
}

impl fmt::Display for Library {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Two sizes that clash, where a message tells them and no shapes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Clash {
    /// The sizes.
    pub sizes: (usize, usize),
    /// The axis of the result, where it is told.
    pub axis: Option<usize>,
}

/// A place in a source file, as a traceback of Python tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Place {
    /// The file.
    pub file: String,
    /// Its line, counted from 1.
    pub line: usize,
    /// The source line, without the space around it.
    pub source: String,
}

/// What a library said of arrays that do not broadcast, or that it doubts.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Message {
    /// Whose message it is.
    pub library: Library,
    /// The operation, where the message names it: `add`, `AddV2`.
    pub operation: Option<String>,
    /// The node of a model, where the message names it.
    pub node: Option<String>,
    /// The rule under which the shapes met.
    pub rule: OwnedRule,
    /// How much broadcasting was accepted: JAX may refuse to pad ranks.
    pub strictness: Strictness,
    /// The shapes that met; empty where the message carries none.
    pub shapes: Vec<Dims>,
    /// What the operands are called, where the message or the traceback says it.
    pub names: Vec<String>,
    /// Two sizes that clash, where no shapes are told.
    pub clash: Option<Clash>,
    /// Whether it is a warning, not an error.
    pub is_warning: bool,
    /// The bytes of the text in which it stands.
    pub span: Range<usize>,
    /// The line of the text, counted from 1.
    pub line: usize,
    /// The line of code that failed, where a traceback shows it.
    pub place: Option<Place>,
}

impl Message {
    /// The shapes with their rule, ready to be resolved; `None` where the message carries no shapes.
    #[must_use]
    pub fn request(&self) -> Option<Request> {
        if self.shapes.is_empty() {
            return None;
        }
        let name = |position: usize| self.names.get(position).filter(|name| !name.is_empty());
        let operands = self.shapes.iter().enumerate().map(|(position, dims)| ShapeText {
            name: name(position).cloned(),
            dims: dims.clone(),
            axes: vec![String::new(); dims.dims().map_or(0, <[_]>::len)],
        });
        // No rule of a message takes labels, which alone could be refused.
        Request::new(self.rule.clone(), operands).ok()
    }

    /// The policy with which it is explained: that of explanations, with the strictness of the library.
    #[must_use]
    pub fn policy(&self) -> Policy {
        let policy = Policy::for_explanations().with_strictness(self.strictness);
        match self.is_warning {
            true => policy.with(FindingCode::RankPromotion, Action::Warn),
            false => policy,
        }
    }

    /// What is missing for an explanation, and how to get it; `None` where nothing is.
    #[must_use]
    pub fn missing(&self) -> Option<String> {
        if !self.shapes.is_empty() {
            return None;
        }
        let named = Names::of(&self.names);
        let (a, b) = (named.operand(0), named.operand(1));
        let told = match self.clash {
            Some(Clash { sizes: (first, second), axis }) => {
                let axis = axis.map_or_else(String::new, |axis| format!(" on axis {axis}"));
                format!("{a} has {first} and {b} has {second}{axis}, and neither is 1; ")
            }
            None => String::new(),
        };
        let how = match self.library {
            Library::Torch => format!(
                "print {a}.shape and {b}.shape, or run under `python -m simulcast.torch`, which adds them"
            ),
            Library::OnnxRuntime | Library::OpenVino => {
                "run `simulcast onnx check` on the model, with --set for its sizes".into()
            }
            Library::Numpy | Library::Jax | Library::TensorFlow => {
                "print the shapes of the operands".into()
            }
        };
        Some(format!("{told}the message carries no shapes: {how}"))
    }

    /// Where and what: `PyTorch, add, line 3 of the text (train.py:12)`.
    #[must_use]
    pub fn title(&self) -> String {
        let operation = self.operation.as_ref().map(|operation| format!(", {operation}"));
        let node = self.node.as_ref().map(|node| format!(" of node {node}"));
        let place = self.place.as_ref().map(|place| format!(" ({}:{})", place.file, place.line));
        let [operation, node, place] = [operation, node, place].map(Option::unwrap_or_default);
        format!("{}{operation}{node}, line {} of the text{place}", self.library, self.line)
    }

    /// The explanation as text: the title, the line of code, and the table or what is missing.
    ///
    /// ```
    /// use simulcast_explain::{TextOptions, read_messages};
    ///
    /// let said = "TypeError: add got incompatible shapes for broadcasting: (2, 3), (2, 4).";
    /// let text = read_messages(said)[0].text(TextOptions::default());
    /// assert!(text.starts_with("JAX, add, line 1 of the text\n"));
    /// ```
    #[must_use]
    pub fn text(&self, options: TextOptions) -> String {
        let mut out = self.title();
        out.push('\n');
        if let Some(place) = &self.place {
            out = format!("{out}  {}\n", place.source);
        }
        let out = crate::terminal_safe(&out).into_owned();
        let Some(request) = self.request() else {
            let missing = self.missing().unwrap_or_default();
            return format!("{out}  missing  {}\n", crate::terminal_safe(&missing));
        };
        let outcome = request.resolve();
        let verdict = outcome.judge(&self.policy(), &request.names).unwrap_or_default();
        let findings: Vec<_> = verdict.denied.into_iter().chain(verdict.warned).collect();
        format!("{out}{}", text(&Subject::of(&outcome, &request.names, &findings), options))
    }

    /// The message and its explanation as JSON; `explanation` is `null` where shapes are missing.
    #[must_use]
    pub fn json(&self) -> serde_json::Value {
        let explanation = self.request().map(|request| {
            let outcome = request.resolve();
            let verdict = outcome.judge(&self.policy(), &request.names).unwrap_or_default();
            let findings: Vec<_> = verdict.denied.into_iter().chain(verdict.warned).collect();
            json(&Subject::of(&outcome, &request.names, &findings))
        });
        serde_json::json!({
            "library": self.library.name(),
            "operation": self.operation,
            "node": self.node,
            "rule": self.rule.to_string(),
            "shapes": self.shapes.iter().map(crate::dims_json).collect::<Vec<_>>(),
            "names": self.names,
            "warning": self.is_warning,
            "line": self.line,
            "place": self.place.as_ref().map(|place| serde_json::json!({
                "file": place.file, "line": place.line, "source": place.source,
            })),
            "missing": self.missing(),
            "explanation": explanation,
        })
    }
}

/// At most this many messages are listed.
const MESSAGES_MAX: usize = 1000;

/// Every message about broadcasting in a text, in the order in which they stand there.
#[must_use]
pub fn read_messages(text: &str) -> Vec<Message> {
    let folded = scan::Folded::new(text);
    let mut found: Vec<Message> = Vec::new();
    let mut line_at = (0, 1);
    for (start, pattern) in patterns::occurrences(&folded.text) {
        let Some(message) = patterns::read(&folded, start, pattern) else { continue };
        let (from, line) = line_at;
        let before = text.get(from..message.span.start).unwrap_or_default();
        line_at = (message.span.start.max(from), line + before.matches('\n').count());
        let mut message = Message { line: line_at.1, ..message };
        name_by_traceback(&mut message, text);
        let again = found.iter().any(|known| {
            (known.library, &known.shapes, &known.rule, &known.clash)
                == (message.library, &message.shapes, &message.rule, &message.clash)
                && (message.place.is_none() || known.place == message.place)
        });
        if !again {
            found.push(message);
        }
        if found.len() == MESSAGES_MAX {
            break;
        }
    }
    found
}

/// Takes the failing line from a traceback of Python that ends with the message, and the operands' names from
/// its marks, where they are those of a binary operator: `~~~~~^~~~~~~~` under `pred - target`.
fn name_by_traceback(message: &mut Message, text: &str) {
    let above = text.get(..message.span.start).unwrap_or_default();
    // The message's own line, and at most three above it.
    let mut lines = above.rsplit('\n').skip(1).take(3).map(|line| line.trim_end_matches('\r'));
    let (Some(mut last), mut marks) = (lines.next(), "") else { return };
    if !last.trim().is_empty() && last.chars().all(|c| matches!(c, ' ' | '~' | '^')) {
        marks = last;
        let Some(source) = lines.next() else { return };
        last = source;
    }
    let Some(file) = lines.next().and_then(scan::file_line) else { return };
    let source = last.trim();
    message.place = Some(Place { file: file.0.into(), line: file.1, source: source.into() });
    if let Some((left, right)) = scan::marked_operands(last, marks)
        && message.shapes.len() <= 2
        && message.names.iter().all(|name| matches!(name.as_str(), "a" | "b" | ""))
        && (message.shapes.len() == 2 || message.clash.is_some())
    {
        message.names = vec![left.into(), right.into()];
    }
}

#[cfg(test)]
mod tests;
