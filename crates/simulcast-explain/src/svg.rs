//! Pictures: a broadcast as one standalone SVG.
//!
//! Small plans are drawn cell by cell in the two steps of the specification; all else as the
//! right-aligned table that the text shows too. Solid borders stand for what is stored, dotted ones
//! for what is only repeated, so that a picture is right without its colours. It is drawn from the
//! plan and never by hand, it says in words what it shows, and it stays small however large the
//! shapes are.
//!
//! ```
//! use simulcast_core::{Rule, resolve};
//! use simulcast_explain::{Subject, svg};
//!
//! let plan = resolve(Rule::Numpy, &[&[3, 1][..], &[4]])?;
//! let picture = svg(&Subject::Plan(&plan, &[]));
//! assert!(picture.starts_with("<svg "));
//! assert_eq!(picture.matches("class=\"sc-virtual\"").count(), 3 * 3 + 2 * 4);
//! # Ok::<(), simulcast_core::BroadcastError>(())
//! ```
//!
//! # Limits
//!
//! At most four operands of rank three are drawn cell by cell, at most eight cells along an axis,
//! and at most about a dozen columns of a table; an ellipsis stands for the rest.

mod block;
mod canvas;
mod grid;
pub(crate) mod notes;
mod slots;
pub(crate) mod steps;
mod style;
pub(crate) mod text;
pub(crate) mod words;

use crate::Subject;
use canvas::{Canvas, Font, MARGIN};

// Implements E_BROADCAST_ANY_FUNC_2260.
/// A standalone SVG picture of a plan or an error.
///
/// It refers to nothing outside itself, holds no script and no id, follows the reader's choice of
/// light or dark, and carries its content in words for those who cannot see it. Every text in it is
/// escaped, so names from untrusted files do no harm.
#[must_use]
pub fn svg(subject: &Subject<'_>) -> String {
    let mut canvas = Canvas::default();
    // What happens stands at the end of the title, so its middle goes first.
    let title = text::clip_middle(&words::title(subject), 160);
    for line in text::wrap(&title, 18, 680, 4) {
        let y = canvas.bottom().max(MARGIN - 6) + 18;
        canvas.text(Font::Title, MARGIN, y, &line);
    }
    draw(&mut canvas, subject);
    notes::draw(&mut canvas, subject);
    finish(canvas, subject)
}

/// The picture without its title and its notes, for a page that has them in its own text.
pub(crate) fn bare(subject: &Subject<'_>) -> String {
    let mut canvas = Canvas::default();
    draw(&mut canvas, subject);
    finish(canvas, subject)
}

/// The picture of a plan that is drawn cell by cell, for a page that has its title and notes in its own text and
/// [`picture_css`] among its styles; `None` for what only a table shows.
///
/// Cells of the result carry their index (`data-z`) and that of the value which they show (`data-x`), cells of
/// operands the latter: enough for a script to light up what belongs together.
#[must_use]
pub fn picture(subject: &Subject<'_>) -> Option<String> {
    is_cell_by_cell(subject)?;
    let whole = bare(subject);
    let (before, rest) = whole.split_once("<style>")?;
    let (_, after) = rest.split_once("</style>\n")?;
    Some([before, after].concat())
}

/// The styles of every picture, for pages whose policy forbids styles inside of it.
#[must_use]
pub const fn picture_css() -> &'static str {
    style::CSS
}

fn draw(canvas: &mut Canvas, subject: &Subject<'_>) {
    let y = canvas.bottom().max(MARGIN) + 14;
    canvas.text(Font::Small, MARGIN, y, &words::rule(subject));
    match is_cell_by_cell(subject) {
        Some(plan) => steps::draw(canvas, plan),
        None => grid::draw(canvas, subject),
    }
}

fn finish(canvas: Canvas, subject: &Subject<'_>) -> String {
    let cells = is_cell_by_cell(subject).is_some();
    canvas.finish(&words::title(subject), &words::description(subject, cells))
}

/// The plan, where it is drawn cell by cell.
pub(crate) fn is_cell_by_cell<'a>(subject: &Subject<'a>) -> Option<&'a simulcast_core::Plan> {
    match *subject {
        Subject::Plan(plan, _) if steps::fits(plan) => Some(plan),
        Subject::Plan(..) | Subject::Symbolic(..) | Subject::Error(_) => None,
    }
}
