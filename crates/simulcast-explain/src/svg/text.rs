//! Text in pictures: escaped, clipped and wrapped.
//!
//! Names come from files that others wrote. Every text passes through [`escape`] on its way into
//! markup, and nothing else writes user text, so a name can neither break out nor grow a picture.

/// How many characters of a name are shown.
pub(crate) const NAME: usize = 24;

/// The text as XML and HTML take it, in content and in quoted attributes.
///
/// What XML 1.0 forbids is left out, and so are the marks that reverse the direction of text: they
/// could make a picture read as something else. Line breaks stay only where `lines` asks for them.
pub(crate) fn escape(text: &str, lines: bool) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' if lines => out.push('\n'),
            '\n' | '\r' | '\t' => out.push(' '),
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {}
            '\u{fffe}' | '\u{ffff}' => {}
            c if c.is_control() => {}
            c => out.push(c),
        }
    }
    out
}

/// The first `max` characters, with an ellipsis where there are more.
pub(crate) fn clip(text: &str, max: usize) -> String {
    match text.char_indices().nth(max) {
        Some(_) => text.chars().take(max.saturating_sub(1)).chain(['…']).collect(),
        None => text.to_owned(),
    }
}

/// Both ends of a text, with an ellipsis between them where it has more than `max` characters.
///
/// The end of a shape says more than its middle.
pub(crate) fn clip_middle(text: &str, max: usize) -> String {
    if text.char_indices().nth(max).is_none() {
        return text.to_owned();
    }
    let half = max.saturating_sub(3) / 2;
    let head: String = text.chars().take(half).collect();
    let tail: Vec<char> = text.chars().rev().take(half).collect();
    format!("{} … {}", head.trim_end(), tail.iter().rev().collect::<String>().trim_start())
}

/// About how wide a text is in a font of `size` pixels; rather too wide than too narrow, since
/// the reader's font is not known.
pub(crate) fn width(text: &str, size: usize, mono: bool) -> usize {
    let percent = |c: char| match c {
        _ if !c.is_ascii() => 100,
        _ if mono => 61,
        ' ' | ',' | '.' | ':' | ';' | '\'' | '|' | '!' | 'i' | 'j' | 'l' => 35,
        '(' | ')' | '[' | ']' | '-' | '/' | 'f' | 'r' | 't' => 42,
        'm' | 'w' | 'M' | 'W' | '%' | '@' => 100,
        '+' | '=' | '<' | '>' | '~' | '#' => 85,
        'A'..='Z' => 77,
        _ => 64,
    };
    (text.chars().map(percent).sum::<usize>() * size).div_ceil(100)
}

/// The text in lines of at most `limit` pixels; at most `lines` of them.
pub(crate) fn wrap(text: &str, size: usize, limit: usize, lines: usize) -> Vec<String> {
    let mut out = vec![String::new()];
    // No more characters than the lines could hold are ever looked at.
    let room = (limit / size.max(1) + 1) * 3 * lines;
    for word in clip(text, room).split(' ').flat_map(|word| pieces(word, size, limit)) {
        let Some(line) = out.last_mut() else { break };
        match line.is_empty() {
            true => line.push_str(&word),
            false if width(line, size, false) + width(&word, size, false) + size <= limit => {
                line.push(' ');
                line.push_str(&word);
            }
            false => out.push(word),
        }
    }
    if out.len() > lines {
        out.truncate(lines);
        if let Some(last) = out.last_mut() {
            last.push('…');
        }
    }
    out
}

/// A word in pieces that fit in a line, each but the last as long as can be.
fn pieces(word: &str, size: usize, limit: usize) -> Vec<String> {
    let mut out = vec![String::new()];
    let mut reached = 0;
    for c in word.chars() {
        let wide = width(c.encode_utf8(&mut [0; 4]), size, false);
        if reached > 0 && reached + wide > limit {
            out.push(String::new());
            reached = 0;
        }
        reached += wide;
        if let Some(piece) = out.last_mut() {
            piece.push(c);
        }
    }
    out
}

/// A large number with its last digits only, so that a cell stays a cell.
pub(crate) fn short(number: usize) -> String {
    match number {
        0..1_000_000 => number.to_string(),
        _ => format!("…{:04}", number % 10_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_text_is_defused() {
        assert_eq!(
            escape("<b a='1'>&\"\u{0}\u{1b}\u{202e}\n", false),
            "&lt;b a=&#39;1&#39;&gt;&amp;&quot; "
        );
        assert_eq!(escape("a\nb\u{ffff}", true), "a\nb");
    }

    #[test]
    fn long_text_is_clipped_and_wrapped() {
        assert_eq!(clip("abcdef", 4), "abc…");
        assert_eq!(clip("abcd", 4), "abcd");
        assert_eq!(clip_middle("(1, 2, 3, 4, 5, 6)", 13), "(1, 2 … 5, 6)");
        assert_eq!(wrap("one two three", 10, 60, 3), ["one two", "three"]);
        assert_eq!(wrap("abcdefghijkl", 10, 50, 2), ["abcdefg", "hijkl"]);
        assert_eq!(wrap(&"m".repeat(20), 10, 50, 2), ["mmmmm", "mmmmm…"]);
        assert_eq!(wrap("", 10, 50, 2), [""]);
        let end = format!("…{}", usize::MAX % 10_000);
        assert_eq!([short(999_999), short(usize::MAX)], ["999999", &end]);
    }
}
