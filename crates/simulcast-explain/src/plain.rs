//! Text for people and for terminals, in one place for every crate that prints.

use std::borrow::Cow;

/// Text that a terminal can be given: names come from outside, and a control character other than a
/// line feed becomes `?`.
///
/// ```
/// assert_eq!(simulcast_explain::terminal_safe("a\u{1b}[2Jb\n"), "a?[2Jb\n");
/// ```
#[must_use]
pub fn terminal_safe(text: &str) -> Cow<'_, str> {
    let control = |c: char| c.is_control() && c != '\n';
    if text.contains(control) { text.replace(control, "?").into() } else { text.into() }
}

/// `0`, `0 and 2`, `0, 1 and 3`.
///
/// ```
/// assert_eq!(simulcast_explain::list_with_and(&["a".into(), "b".into()]), "a and b");
/// ```
#[must_use]
pub fn list_with_and(items: &[String]) -> String {
    match items {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// A number of bytes in powers of 1000: `999 bytes`, `1.5 kB`, `2 GB`.
///
/// ```
/// assert_eq!(simulcast_explain::human_bytes(1_500), "1.5 kB");
/// assert_eq!(simulcast_explain::human_bytes(2_000_000_000), "2 GB");
/// ```
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "a number for people, not for arithmetic")]
pub fn human_bytes(bytes: u64) -> String {
    let (mut value, mut unit) = (bytes as f64, "bytes");
    for next in ["kB", "MB", "GB", "TB", "PB", "EB"] {
        if value < 1000.0 {
            break;
        }
        (value, unit) = (value / 1000.0, next);
    }
    let shown = format!("{value:.1}");
    format!("{} {unit}", shown.strip_suffix(".0").unwrap_or(&shown))
}
