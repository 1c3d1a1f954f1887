//! Pages: a picture with its text, on one self-contained HTML page, or alone for a notebook.
//!
//! A page needs no network and no other file. On pictures that are drawn cell by cell, pointing at
//! a cell of the result, or moving to it with the arrow keys, lights up the value of every operand
//! that it shows and says so in a line. Its policy lets nothing run but the scripts below, so
//! even a mistake in escaping a hostile name would run nothing.

mod report;

use std::fmt::Write as _;

use crate::Subject;
use crate::svg::notes::notes;
use crate::svg::text::escape;
use crate::svg::{bare, is_cell_by_cell, svg, words};

pub use report::{Section, report};

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
    let mut out = head(&words::title(subject), "", &[SCRIPT_HASH]);
    push_figure(&mut out, subject, cells);
    push_notes(&mut out, subject);
    push_text(&mut out, "As text", text);
    push_end(&mut out, &[(cells, SCRIPT)]);
    out
}

/// Everything before the first thing that is said.
fn head(title: &str, style: &str, scripts: &[&str]) -> String {
    let scripts: Vec<String> = scripts.iter().map(|hash| format!("'{hash}'")).collect();
    let scripts = scripts.join(" ");
    let title = escape(title, false);
    let mut out = String::from("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n");
    out.push_str("<meta charset=\"utf-8\">\n");
    let _ = writeln!(
        out,
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
         style-src 'unsafe-inline'; script-src {scripts}; base-uri 'none'; \
         form-action 'none'\">"
    );
    out.push_str("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
    out.push_str("<meta name=\"color-scheme\" content=\"light dark\">\n");
    let _ =
        writeln!(out, "<title>{title}</title>\n<style>\n{STYLE}{style}</style>\n</head>\n<body>");
    let _ = writeln!(out, "<main>\n<h1>{title}</h1>");
    out
}

fn push_text(out: &mut String, title: &str, text: &str) {
    let text = escape(text.trim_end(), true);
    let _ = writeln!(out, "<section>\n<h2>{title}</h2>\n<pre>{text}</pre>\n</section>");
}

/// The end of a page, with the scripts that it needs.
fn push_end(out: &mut String, scripts: &[(bool, &str)]) {
    out.push_str("</main>\n");
    for (_, script) in scripts.iter().filter(|(is_needed, _)| *is_needed) {
        let _ = writeln!(out, "<script>{script}</script>");
    }
    out.push_str("</body>\n</html>\n");
}

/// The picture; where it has cells, with the line that says what a cell shows.
fn push_figure(out: &mut String, subject: &Subject<'_>, cells: bool) {
    let picture = bare(subject);
    if !cells {
        // In a narrow window it scrolls.
        let _ = writeln!(out, "<figure tabindex=\"0\">\n{picture}</figure>");
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
