//! Reports: many broadcasts on one page, errors and findings first, the others folded by scope.

use std::fmt::Write as _;

use super::{head, push_end, push_figure, push_notes};
use crate::Subject;
use crate::svg::is_cell_by_cell;
use crate::svg::text::escape;

const STYLE: &str = include_str!("report.css");
const SCRIPT: &str = include_str!("report.js");
/// The SHA-256 of the script, in base64; a test keeps it true.
pub(super) const SCRIPT_HASH: &str = "sha256-dh6bix0OPNLumj0dypeAF/Ol892UztSqZGOLqaKyumM=";

/// A part of a [`report`]: a broadcast, or a place of a model where there is something to say.
#[derive(Clone, Debug)]
pub struct Section<'a> {
    /// The name, as of a node.
    pub title: String,
    /// What stands beside it, as the operator and the shapes.
    pub brief: String,
    /// What it is a part of: parts of one scope are folded together. May be empty.
    pub scope: String,
    /// What is wrong: an error's code and message. Such parts come first, and are open.
    pub error: Option<(String, String)>,
    /// What is suspicious: codes and messages. Such parts come next.
    pub findings: Vec<(String, String)>,
    /// What is said under the heading, as plain text.
    pub text: String,
    /// The broadcast, whose picture is shown.
    pub subject: Option<Subject<'a>>,
}

impl Section<'_> {
    /// What is wrong with it or suspicious about it.
    fn told(&self) -> impl Iterator<Item = &(String, String)> {
        self.error.iter().chain(&self.findings)
    }

    fn is_told(&self) -> bool {
        self.told().next().is_some()
    }
}

/// Up to this many parts are open without being asked for.
const OPEN: usize = 8;

/// Up to this many scopes have a group of their own; the parts of further ones are among the others.
const GROUPS: usize = 200;

/// A self-contained HTML page on many broadcasts: `text` about all of them; links to what is wrong or suspicious; then
/// each with its picture, in groups that open on demand. A box filters them by words.
///
/// ```
/// use simulcast_core::{Rule, resolve};
/// use simulcast_explain::{Section, Subject, report};
///
/// let plan = resolve(Rule::Numpy, &[&[3, 1][..], &[4]])?;
/// let section = Section {
///     title: "node add".into(),
///     brief: "Add x (3, 1), y (4,)".into(),
///     scope: "model.0".into(),
///     error: None,
///     findings: vec![("SC102".into(), "a column meets a row".into())],
///     text: "x + y".into(),
///     subject: Some(Subject::Plan(&plan, &[])),
/// };
/// let page = report("model.onnx", "one broadcast", "", &[section]);
/// assert!(page.contains("<a href=\"#p0\">node add</a>"));
/// # Ok::<(), simulcast_core::BroadcastError>(())
/// ```
#[must_use]
pub fn report(title: &str, text: &str, notes: &str, sections: &[Section<'_>]) -> String {
    let mut out = head(title, STYLE, &[super::SCRIPT_HASH, SCRIPT_HASH]);
    let _ = writeln!(out, "<p>{}</p>", escape(text.trim_end(), true));
    let groups = grouped(sections);
    push_filter(&mut out, sections);
    push_links(&mut out, sections, &groups);
    let mut cells = false;
    let few = sections.len() <= OPEN;
    let mut opened = 0;
    for Group { name, parts, is_first } in &groups {
        let shown = escape(name, false);
        let open = if few || *is_first { " open" } else { "" };
        let _ = writeln!(out, "<details class=\"group\" data-name=\"{shown}\"{open}>");
        let _ = writeln!(out, "<summary>{shown} ({})</summary>", parts.len());
        for &number in parts {
            let is_open = (few || *is_first) && opened < OPEN;
            opened += usize::from(is_open);
            cells |= push_part(&mut out, number, &sections[number], is_open);
        }
        out.push_str("</details>\n");
    }
    if !notes.is_empty() {
        let notes = escape(notes.trim_end(), true);
        let _ = writeln!(
            out,
            "<section>\n<h2>Notes</h2>\n<pre tabindex=\"0\">{notes}</pre>\n</section>"
        );
    }
    push_end(&mut out, &[(cells, super::SCRIPT), (true, SCRIPT)]);
    out
}

/// Parts under one heading, by number.
struct Group {
    name: String,
    parts: Vec<usize>,
    /// Whether they are errors or findings.
    is_first: bool,
}

/// Errors, findings, and the others by scope, in the order in which they come.
fn grouped(sections: &[Section<'_>]) -> Vec<Group> {
    let numbers = |wanted: &dyn Fn(&Section<'_>) -> bool| -> Vec<usize> {
        (0..sections.len()).filter(|number| wanted(&sections[*number])).collect()
    };
    let first = |name: &str, parts| Group { name: name.into(), parts, is_first: true };
    let mut groups = vec![
        first("Errors", numbers(&|own| own.error.is_some())),
        first("Findings", numbers(&|own| own.error.is_none() && own.is_told())),
    ];
    let named = groups.len();
    for number in numbers(&|own| !own.is_told()) {
        let name = match sections[number].scope.as_str() {
            "" => "Others",
            scope => scope,
        };
        let full = groups.len() - named >= GROUPS;
        let name = if full { "Others" } else { name };
        match groups[named..].iter().position(|group| group.name == name) {
            Some(at) => groups[named + at].parts.push(number),
            None => groups.push(Group { name: name.into(), parts: vec![number], is_first: false }),
        }
    }
    groups.retain(|group| !group.parts.is_empty());
    groups
}

/// The box, and a button for each code. It is shown by the script, without which it does nothing.
fn push_filter(out: &mut String, sections: &[Section<'_>]) {
    let mut codes: Vec<(&str, usize)> = Vec::new();
    for (code, _) in sections.iter().flat_map(Section::told) {
        match codes.iter_mut().find(|(own, _)| own == code) {
            Some((_, count)) => *count += 1,
            None => codes.push((code, 1)),
        }
    }
    codes.sort_unstable();
    out.push_str(
        "<div class=\"filter\" hidden>\n<input id=\"filter\" type=\"search\" aria-label=\"Filter\" \
         placeholder=\"Filter by node, operator, shape, scope or code\">\n",
    );
    for (code, count) in codes {
        let code = escape(code, false);
        let _ = writeln!(
            out,
            "<button type=\"button\" data-code=\"{code}\" aria-pressed=\"false\">{code} \
             ({count})</button>"
        );
    }
    out.push_str("<span id=\"count\" role=\"status\"></span>\n</div>\n");
}

/// A link to everything that is wrong or suspicious.
fn push_links(out: &mut String, sections: &[Section<'_>], groups: &[Group]) {
    let first = groups.iter().filter(|group| group.is_first).flat_map(|group| &group.parts);
    let mut first = first.peekable();
    if first.peek().is_none() {
        return;
    }
    out.push_str("<ul class=\"first\">\n");
    for &number in first {
        let own = &sections[number];
        for (code, message) in own.told() {
            let (badge, title) = (badge(own, code), escape(&own.title, false));
            let message = escape(message, false);
            let _ = writeln!(out, "<li>{badge} <a href=\"#p{number}\">{title}</a>: {message}</li>");
        }
    }
    out.push_str("</ul>\n");
}

fn badge(own: &Section<'_>, code: &str) -> String {
    let bad = own.error.as_ref().is_some_and(|(error, _)| error == code);
    let class = if bad { "badge bad" } else { "badge" };
    format!("<span class=\"{class}\">{}</span>", escape(code, false))
}

/// A part; whether its picture has cells.
fn push_part(out: &mut String, number: usize, own: &Section<'_>, is_open: bool) -> bool {
    let open = if is_open { " open" } else { "" };
    let (title, brief) = (escape(&own.title, false), escape(&own.brief, false));
    let scope = escape(&own.scope, false);
    let _ = write!(
        out,
        "<details class=\"part\" id=\"p{number}\" data-scope=\"{scope}\"{open}>\n<summary>{title}"
    );
    for (code, _) in own.told() {
        let _ = write!(out, " {}", badge(own, code));
    }
    let _ = writeln!(out, " <code class=\"brief\">{brief}</code></summary>");
    let _ = writeln!(out, "<pre tabindex=\"0\">{}</pre>", escape(own.text.trim_end(), true));
    let Some(subject) = &own.subject else {
        out.push_str("</details>\n");
        return false;
    };
    let cells = is_cell_by_cell(subject).is_some();
    push_figure(out, subject, cells);
    push_notes(out, subject);
    out.push_str("</details>\n");
    cells
}
