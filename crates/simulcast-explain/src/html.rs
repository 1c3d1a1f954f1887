//! Pages: a picture with its text, on one self-contained HTML page, or alone for a notebook.
//!
//! A page needs no network and no other file. On pictures that are drawn cell by cell, pointing at
//! a cell of the result, or moving to it with the arrow keys, lights up the value of every operand
//! that it shows and says so in a line. Its policy lets nothing run but the one script below, so
//! even a mistake in escaping a hostile name would run nothing.

use std::fmt::Write as _;

use crate::Subject;
use crate::svg::notes::notes;
use crate::svg::text::escape;
use crate::svg::{bare, is_cell_by_cell, svg, words};

const STYLE: &str = include_str!("html/page.css");
const SCRIPT: &str = include_str!("html/page.js");
/// The SHA-256 of the script, in base64; a test keeps it true.
const SCRIPT_HASH: &str = "sha256-KGszJntgtAR+l+SB9As2ekC+eFIo3KJL8e+QCztO8wE=";

/// The picture alone, as notebooks show it. Several can stand on one page.
#[must_use]
pub fn fragment(subject: &Subject<'_>) -> String {
    format!("<figure class=\"simulcast-figure\" style=\"margin:0\">\n{}</figure>\n", svg(subject))
}

/// A self-contained HTML page: the picture, what can be said about it, and `text`, the plain
/// explanation.
///
/// ```
/// use simulcast_core::{Rule, resolve};
/// use simulcast_explain::{Subject, page};
///
/// let plan = resolve(Rule::Numpy, &[&[3, 1][..], &[4]])?;
/// let page = page(&Subject::Plan(&plan, &[]), "A repeats along axis 1");
/// assert!(page.contains("<pre>A repeats along axis 1</pre>"));
/// # Ok::<(), simulcast_core::BroadcastError>(())
/// ```
#[must_use]
pub fn page(subject: &Subject<'_>, text: &str) -> String {
    let cells = is_cell_by_cell(subject).is_some();
    let mut out = head(&words::title(subject));
    push_figure(&mut out, subject, cells);
    push_notes(&mut out, subject);
    push_text(&mut out, "As text", text);
    push_end(&mut out, cells);
    out
}

/// A part of a [`report`]: a broadcast with a heading and what is to be said about it.
#[derive(Clone, Debug)]
pub struct Section<'a> {
    /// The heading.
    pub title: String,
    /// What is said under it, as plain text.
    pub text: String,
    /// The broadcast.
    pub subject: Subject<'a>,
    /// What it is a part of: the index folds sections of one scope together. May be empty.
    pub scope: String,
    /// Whether its picture is shown at once; else it opens on demand.
    pub open: bool,
}

/// From this many sections on a page begins with an index.
const INDEXED: usize = 4;

/// A self-contained HTML page on many broadcasts: `text` about all of them, then each with its
/// picture. The script serves them all.
///
/// ```
/// use simulcast_core::{Rule, resolve};
/// use simulcast_explain::{Section, Subject, report};
///
/// let plan = resolve(Rule::Numpy, &[&[3, 1][..], &[4]])?;
/// let section = Section {
///     title: "node add".into(),
///     text: "x + y".into(),
///     subject: Subject::Plan(&plan, &[]),
///     scope: String::new(),
///     open: true,
/// };
/// let page = report("model.onnx", "one broadcast", &[section]);
/// assert!(page.contains("<h2>node add</h2>"));
/// # Ok::<(), simulcast_core::BroadcastError>(())
/// ```
#[must_use]
pub fn report(title: &str, text: &str, sections: &[Section<'_>]) -> String {
    let mut out = head(title);
    push_index(&mut out, sections);
    push_text(&mut out, "Summary", text);
    let mut any = false;
    for (number, Section { title, text, subject, open, .. }) in sections.iter().enumerate() {
        let cells = is_cell_by_cell(subject).is_some();
        any |= cells;
        let (title, text) = (escape(title, false), escape(text.trim_end(), true));
        let _ = writeln!(out, "<section id=\"b{number}\">\n<h2>{title}</h2>\n<pre>{text}</pre>");
        let open = if *open { " open" } else { "" };
        let _ = writeln!(out, "<details{open}>\n<summary>Picture</summary>");
        push_figure(&mut out, subject, cells);
        out.push_str("</details>\n");
        push_notes(&mut out, subject);
        if sections.len() >= INDEXED {
            out.push_str("<p><a href=\"#index\">index</a></p>\n");
        }
        out.push_str("</section>\n");
    }
    push_end(&mut out, any);
    out
}

/// A link to each section; those that are open first, the others folded by scope.
fn push_index(out: &mut String, sections: &[Section<'_>]) {
    if sections.len() < INDEXED {
        return;
    }
    out.push_str("<nav id=\"index\">\n<h2>Index</h2>\n");
    let mut scopes: Vec<(&str, Vec<usize>)> = Vec::new();
    let mut first = Vec::new();
    for (number, section) in sections.iter().enumerate() {
        if section.open {
            first.push(number);
            continue;
        }
        match scopes.iter_mut().find(|(scope, _)| *scope == section.scope) {
            Some((_, numbers)) => numbers.push(number),
            None => scopes.push((&section.scope, vec![number])),
        }
    }
    push_links(out, sections, &first);
    for (scope, numbers) in scopes {
        let scope = if scope.is_empty() { "others" } else { scope };
        let (scope, count) = (escape(scope, false), numbers.len());
        let _ = writeln!(out, "<details>\n<summary>{scope} ({count})</summary>");
        push_links(out, sections, &numbers);
        out.push_str("</details>\n");
    }
    out.push_str("</nav>\n");
}

fn push_links(out: &mut String, sections: &[Section<'_>], numbers: &[usize]) {
    if numbers.is_empty() {
        return;
    }
    out.push_str("<ul>\n");
    for number in numbers {
        let title = escape(&sections[*number].title, false);
        let _ = writeln!(out, "<li><a href=\"#b{number}\">{title}</a></li>");
    }
    out.push_str("</ul>\n");
}

/// Everything before the first thing that is said.
fn head(title: &str) -> String {
    let title = escape(title, false);
    let mut out = String::from("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n");
    out.push_str("<meta charset=\"utf-8\">\n");
    let _ = writeln!(
        out,
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
         style-src 'unsafe-inline'; script-src '{SCRIPT_HASH}'; base-uri 'none'; \
         form-action 'none'\">"
    );
    out.push_str("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
    out.push_str("<meta name=\"color-scheme\" content=\"light dark\">\n");
    let _ = writeln!(out, "<title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>");
    let _ = writeln!(out, "<main>\n<h1>{title}</h1>");
    out
}

fn push_text(out: &mut String, title: &str, text: &str) {
    let text = escape(text.trim_end(), true);
    let _ = writeln!(out, "<section>\n<h2>{title}</h2>\n<pre>{text}</pre>\n</section>");
}

fn push_end(out: &mut String, cells: bool) {
    out.push_str("</main>\n");
    if cells {
        let _ = writeln!(out, "<script>{SCRIPT}</script>");
    }
    out.push_str("</body>\n</html>\n");
}

/// The picture; where it has cells, with the line that says what a cell shows.
fn push_figure(out: &mut String, subject: &Subject<'_>, cells: bool) {
    let picture = bare(subject);
    if !cells {
        let _ = writeln!(out, "<figure>\n{picture}</figure>");
        return;
    }
    let _ = writeln!(
        out,
        "<figure>\n<div class=\"picture\" tabindex=\"0\" role=\"group\" \
         aria-label=\"Cells of the result. Arrow keys move, page up and page down change the \
         layer, escape ends.\">\n{picture}</div>\n<p class=\"line\" aria-live=\"polite\">Point at a \
         cell, or tab to the picture and use the arrow keys.</p>\n</figure>"
    );
}

fn push_notes(out: &mut String, subject: &Subject<'_>) {
    let notes = notes(subject);
    if notes.is_empty() {
        return;
    }
    out.push_str("<section>\n<h2>Notes</h2>\n<dl>\n");
    for (tag, text) in notes {
        let (tag, text) = (escape(&tag, false), escape(&text, false));
        let _ = writeln!(out, "<div><dt>{tag}</dt><dd>{text}</dd></div>");
    }
    out.push_str("</dl>\n</section>\n");
}
