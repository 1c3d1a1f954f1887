//! Findings in the formats of terminals, editors and continuous integration.
//!
//! | format | for |
//! |---|---|
//! | `text` | people: the source line with the expression underlined, and the fixes |
//! | `concise` | editors and `grep`: a line each |
//! | `github` | workflow commands, which GitHub Actions shows as annotations |
//! | `gitlab` | a Code Quality report of GitLab |
//! | `sarif` | SARIF 2.1.0, for GitHub code scanning, Azure DevOps and editors |
//! | `junit` | `JUnit`'s XML, for everything that shows tests |
//! | `json` | programs: `docs/reference/schemas/findings.schema.json` |
//!
//! A [`Notice`] is a finding at a place: in a source file, or at the node of a model. Its fingerprint survives
//! other lines being added and removed, so that a [`Baseline`] of known findings keeps its meaning.
//!
//! ```
//! use simulcast_core::Certainty;
//! use simulcast_explain::{Format, Notice, Position, format_notices};
//!
//! let mut notice = Notice::new("SC102", Some(Certainty::Confirmed), "a column meets a row", "train.py");
//! notice.start = Some(Position { line: 12, column: Some(9) });
//! let said = format_notices(&[notice], Format::Concise);
//! assert_eq!(said, "train.py:12:9: SC102 confirmed: a column meets a row\n");
//! ```

mod baseline;
mod ci;
mod fingerprint;
mod junit;
mod sarif;

use std::fmt::{self, Write as _};
use std::str::FromStr;

use serde_json::{Value, json};
use simulcast_core::{Certainty, Code};

use crate::plain::terminal_safe;
use crate::text::width;

pub use baseline::{Baseline, BaselineError};
pub use fingerprint::fingerprints;

/// The version of the schema of `json` and of baselines: it changes when a field changes its meaning or goes.
pub const FINDINGS_SCHEMA: u32 = 1;

/// A form in which findings are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Format {
    /// For people.
    #[default]
    Text,
    /// A line for each finding.
    Concise,
    /// GitHub's workflow commands.
    Github,
    /// GitLab's Code Quality report.
    Gitlab,
    /// SARIF 2.1.0.
    Sarif,
    /// `JUnit`'s XML.
    Junit,
    /// JSON.
    Json,
}

impl Format {
    /// Every format.
    pub const ALL: &'static [Self] = &[
        Self::Text,
        Self::Concise,
        Self::Github,
        Self::Gitlab,
        Self::Sarif,
        Self::Junit,
        Self::Json,
    ];

    /// Its name: `text`, `concise`, `github`, `gitlab`, `sarif`, `junit` or `json`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Concise => "concise",
            Self::Github => "github",
            Self::Gitlab => "gitlab",
            Self::Sarif => "sarif",
            Self::Junit => "junit",
            Self::Json => "json",
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = Self::ALL.iter().copied().find(|format| format.name() == text);
        known.ok_or_else(|| {
            let text: String = text.chars().take(40).collect();
            let names: Vec<_> = Self::ALL.iter().map(|format| format.name()).collect();
            format!("there is no format {text:?}; there are {}", names.join(", "))
        })
    }
}

/// A place in a text: lines and columns count from 1, columns in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Position {
    /// The line.
    pub line: usize,
    /// The column, where it is known.
    pub column: Option<usize>,
}

/// A change of the source text that was checked to work.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TextEdit {
    /// What it does.
    pub description: String,
    /// Where the text that is replaced begins.
    pub start: Position,
    /// Where it ends: the column after its last character.
    pub end: Position,
    /// What takes its place.
    pub text: String,
}

/// How bad something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Severity {
    /// A finding that is only possible.
    Note,
    /// A confirmed finding.
    Warning,
    /// What fails: shapes that do not broadcast, and findings that a policy refuses.
    Error,
}

/// A finding, or an error, at its place.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Notice {
    /// The code: `SC102`, `E1`; `model` for an error of a model that has no code.
    pub code: String,
    /// How certain a finding is; `None` of an error.
    pub certainty: Option<Certainty>,
    /// What was found.
    pub message: String,
    /// What could be meant instead.
    pub help: Vec<String>,
    /// The file, with `/` between folders; relative to where the tool runs, where it is below.
    pub file: String,
    /// The node of a model, or the value, by name.
    pub node: Option<String>,
    /// Where the expression begins; `None` where the file has no lines.
    pub start: Option<Position>,
    /// Where it ends: the column after its last character.
    pub end: Option<Position>,
    /// The source lines, from the first to the last, whole.
    pub snippet: String,
    /// The operands as they are written.
    pub operands: Vec<String>,
    /// Changes of the source that make the shapes meet as they were meant to.
    pub fixes: Vec<TextEdit>,
    /// Whether a policy refuses it.
    pub denied: bool,
}

impl Notice {
    /// A finding or an error in a file.
    #[must_use]
    pub fn new(
        code: impl Into<String>,
        certainty: Option<Certainty>,
        message: impl Into<String>,
        file: impl Into<String>,
    ) -> Self {
        Self {
            code: code.into(),
            certainty,
            message: message.into(),
            help: Vec::new(),
            file: file.into(),
            node: None,
            start: None,
            end: None,
            snippet: String::new(),
            operands: Vec::new(),
            fixes: Vec::new(),
            denied: false,
        }
    }

    /// How bad it is.
    #[must_use]
    pub fn severity(&self) -> Severity {
        match (self.denied, self.certainty) {
            (true, _) | (false, None) => Severity::Error,
            (false, Some(Certainty::Confirmed)) => Severity::Warning,
            (false, Some(Certainty::Possible)) => Severity::Note,
        }
    }

    /// What the code stands for, in a few words.
    fn title(&self) -> &str {
        Code::find(&self.code).map_or("an error of the model", |code| code.title)
    }

    /// `SC102 confirmed`, `E1`.
    fn label(&self) -> String {
        match self.certainty {
            Some(certainty) => format!("{} {certainty}", self.code),
            None => self.code.clone(),
        }
    }

    /// `train.py:12:9`, `model.onnx: subtract`.
    fn place(&self) -> String {
        // Names come from files and models: a line end in one must not begin a line of the report.
        let mut place = one_line(&self.file);
        // Texts in memory take everything.
        if let Some(Position { line, column }) = self.start {
            let _ = write!(place, ":{line}");
            if let Some(column) = column {
                let _ = write!(place, ":{column}");
            }
        }
        if let Some(node) = &self.node {
            let _ = write!(place, ": {}", one_line(node));
        }
        place
    }

    /// The message with the fixes, for formats that have one text.
    fn with_help(&self, separator: &str) -> String {
        let mut text = self.message.clone();
        for help in &self.help {
            let _ = write!(text, "{separator}help: {help}");
        }
        text
    }
}

/// A text as one line.
fn one_line(text: &str) -> String {
    text.replace(['\n', '\r'], " ")
}

/// A path as reports write it: relative to a folder where it is below, and with `/` between folders.
///
/// ```
/// use simulcast_explain::report_path;
///
/// assert_eq!(report_path("/home/me/project/src/train.py", "/home/me/project"), "src/train.py");
/// assert_eq!(report_path("./train.py", "/home/me/project"), "train.py");
/// assert_eq!(report_path("/usr/lib/x.py", "/home/me/project"), "/usr/lib/x.py");
/// ```
#[must_use]
pub fn report_path(file: &str, folder: &str) -> String {
    let slashed = |text: &str| match cfg!(windows) {
        true => text.replace('\\', "/"),
        false => text.to_owned(),
    };
    let (file, folder) = (slashed(file), slashed(folder));
    let folder = folder.trim_end_matches('/');
    let below = file.strip_prefix(folder).and_then(|rest| rest.strip_prefix('/'));
    let own = match below {
        Some(rest) if !folder.is_empty() => rest,
        _ => &file,
    };
    own.strip_prefix("./").unwrap_or(own).to_owned()
}

/// Findings in a format; text for people is safe for terminals.
#[must_use]
pub fn format_notices(notices: &[Notice], format: Format) -> String {
    match format {
        Format::Text => terminal_safe(&text(notices)).into_owned(),
        Format::Concise => terminal_safe(&concise(notices)).into_owned(),
        Format::Github => ci::github(notices),
        Format::Gitlab => pretty(&ci::gitlab(notices)),
        Format::Sarif => pretty(&sarif::sarif(notices)),
        Format::Junit => junit::junit(notices),
        Format::Json => pretty(&findings_json(notices)),
    }
}

fn pretty(value: &Value) -> String {
    format!("{value:#}\n")
}

fn text(notices: &[Notice]) -> String {
    let mut out = String::new();
    for notice in notices {
        let message = one_line(&notice.message);
        let _ = writeln!(out, "{}: {}: {message}", notice.place(), notice.label());
        source(&mut out, notice);
        for help in &notice.help {
            let _ = writeln!(out, "  help: {}", one_line(help));
        }
    }
    let counts = [Severity::Error, Severity::Warning, Severity::Note]
        .map(|severity| notices.iter().filter(|notice| notice.severity() == severity).count());
    let names = ["refused", "confirmed", "possible"];
    let counted = counts.iter().zip(names).filter(|(count, _)| **count > 0);
    let counted: Vec<String> = counted.map(|(count, name)| format!("{count} {name}")).collect();
    match notices.len() {
        0 => out.push_str("no findings\n"),
        1 => {
            let _ = writeln!(out, "1 finding: {}", counted.join(", "));
        }
        all => {
            let _ = writeln!(out, "{all} findings: {}", counted.join(", "));
        }
    }
    out
}

/// The first source line, with the expression underlined as far as it reaches there.
fn source(out: &mut String, notice: &Notice) {
    let (Some(start), Some(first)) = (notice.start, notice.snippet.lines().next()) else { return };
    let number = start.line.to_string();
    let margin = " ".repeat(number.len());
    // A terminal decides how wide a tab is; what stands below it has to know.
    let wide = |text: &str| text.replace('\t', "    ");
    let _ = writeln!(out, "  {number} | {}", wide(first));
    let Some(column) = start.column else { return };
    let before: String = first.chars().take(column.saturating_sub(1)).collect();
    let after = first.chars().skip(column.saturating_sub(1));
    let last = notice.end.filter(|end| end.line == start.line).and_then(|end| end.column);
    let marked: String = match last {
        Some(end) => after.take(end.saturating_sub(column).max(1)).collect(),
        None => after.collect(),
    };
    let space = " ".repeat(width(&wide(&before)));
    let marks = "^".repeat(width(&wide(&marked)).max(1));
    let _ = writeln!(out, "  {margin} | {space}{marks}");
}

fn concise(notices: &[Notice]) -> String {
    let line = |notice: &Notice| {
        let message = one_line(&notice.with_help("; "));
        format!("{}: {}: {message}\n", notice.place(), notice.label())
    };
    notices.iter().map(line).collect()
}

fn findings_json(notices: &[Notice]) -> Value {
    let position = |position: Position| json!({ "line": position.line, "column": position.column });
    let edit = |edit: &TextEdit| {
        json!({
            "description": edit.description,
            "start": position(edit.start),
            "end": position(edit.end),
            "text": edit.text,
        })
    };
    let prints = fingerprints(notices);
    let notices = notices.iter().zip(prints).map(|(notice, fingerprint)| {
        json!({
            "code": notice.code,
            "certainty": notice.certainty.map(Certainty::name),
            "denied": notice.denied,
            "message": notice.message,
            "help": notice.help,
            "file": notice.file,
            "node": notice.node,
            "start": notice.start.map(position),
            "end": notice.end.map(position),
            "snippet": notice.snippet,
            "operands": notice.operands,
            "fixes": notice.fixes.iter().map(edit).collect::<Vec<_>>(),
            "fingerprint": fingerprint,
        })
    });
    json!({ "schema": FINDINGS_SCHEMA, "findings": notices.collect::<Vec<_>>() })
}
