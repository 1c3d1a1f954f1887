//! What is written under a picture: what is stored, findings, clashes and fixes, and the key to its borders.

use super::canvas::{Area, Canvas, Font, MARGIN};
use super::text::{clip, wrap};
use crate::Subject;

/// How many clashes or constraints are listed.
const LISTED: usize = 6;
/// How long a message may get.
const MESSAGE: usize = 400;
/// How many lines a message may take.
const LINES: usize = 4;

/// The lines under a picture, each with its tag.
pub(crate) fn notes(subject: &Subject<'_>) -> Vec<(String, String)> {
    let mut notes = Vec::new();
    let mut note = |tag: &str, text: &str| notes.push((tag.to_owned(), clip(text, MESSAGE)));
    match subject {
        Subject::Plan(plan, findings) => {
            note("stored", &crate::cost::cost(plan));
            for finding in *findings {
                note(finding.code.as_str(), &finding.message);
                for fix in &finding.fixes {
                    note("help", &fix.describe(plan.names()));
                }
            }
        }
        Subject::Symbolic(plan, names, findings) => {
            let all = plan.constraints();
            for constraint in all.iter().take(LISTED) {
                note("needs", &constraint.describe(names));
            }
            if let Some(more @ 1..) = all.len().checked_sub(LISTED) {
                note("needs", &format!("{more} more"));
            }
            for finding in *findings {
                note(finding.code.as_str(), &finding.message);
            }
        }
        Subject::Error(error) => {
            let clashes = match error.clashes() {
                [] => std::slice::from_ref(error.refusal()),
                clashes => clashes,
            };
            for clash in clashes.iter().take(LISTED) {
                note(clash.code(), &error.describe(clash));
            }
            if let Some(more @ 1..) = clashes.len().checked_sub(LISTED) {
                note(error.code(), &format!("{more} more"));
            }
            for fix in error.fixes() {
                note("help", &fix.describe(error.names()));
            }
        }
    }
    notes
}

/// Writes the notes below what is drawn, in lines no wider than it.
pub(crate) fn draw(canvas: &mut Canvas, subject: &Subject<'_>) {
    let notes = notes(subject);
    let tag = notes.iter().map(|(tag, _)| Font::Code.width(tag)).max().unwrap_or(0) + 16;
    let limit = canvas.right().clamp(640, 1000).saturating_sub(MARGIN + tag);
    let mut y = canvas.bottom() + 30;
    for (name, text) in notes {
        canvas.text(Font::Code, MARGIN, y, &name);
        for line in wrap(&text, Font::Text.class().1, limit, LINES) {
            canvas.text(Font::Text, MARGIN + tag, y, &line);
            y += 18;
        }
        y += 4;
    }
}

/// Explains borders: one sample with its words for each, side by side while there is room; what
/// has no sample gets a line of its own.
pub(crate) fn key(canvas: &mut Canvas, samples: &[(&str, &str)], lines: &[&str]) {
    let limit = canvas.right().clamp(640, 1000);
    let (mut x, mut y) = (MARGIN, canvas.bottom() + 22);
    for (class, words) in samples {
        let width = 36 + Font::Small.width(words);
        if x > MARGIN && x + width > limit {
            (x, y) = (MARGIN, y + 28);
        }
        canvas.rect(&format!("sc-key {class}"), Area { x, y, width: 28, height: 20 }, &[]);
        canvas.text(Font::Small, x + 36, y + 14, words);
        x += width + 20;
    }
    for (line, words) in lines.iter().enumerate() {
        canvas.text(Font::Small, MARGIN, y + 40 + line * 18, words);
    }
}
