//! Tokens: the words of an expression, each with the bytes that it takes.

use std::ops::Range;

use crate::by_name::program::front::syntax_error::{SyntaxError, SyntaxErrorKind};
use crate::by_name::types::Literal;
use simulcast_kernels::dtype::Complex;

/// A word of the language.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::by_name::program) enum Token {
    Number(Literal),
    Text(String),
    /// A name or a keyword.
    Name(String),
    /// An operator or a bracket.
    Sign(&'static str),
    End,
}

/// A token and where it stands.
#[derive(Clone, Debug)]
pub(in crate::by_name::program) struct Spanned {
    pub(in crate::by_name::program) token: Token,
    pub(in crate::by_name::program) span: Range<usize>,
}

/// Longer ones first, so that `**` is not two `*`.
const SIGNS: [&str; 35] = [
    "...", "**", "//", "<<", ">>", "<=", ">=", "==", "!=", "&&", "||", "->", ":=", "+", "-", "*",
    "/", "%", "@", "<", ">", "=", "!", "~", "&", "|", "^", "(", ")", "[", "]", ",", ":", ".", "?",
];

/// The tokens of a text, the last one being its end.
pub(in crate::by_name::program) fn tokens(text: &str) -> Result<Vec<Spanned>, SyntaxError> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(rest) = text.get(at..) {
        let Some(first) = rest.chars().next() else { break };
        if first.is_whitespace() {
            at += first.len_utf8();
            continue;
        }
        let digit = |c: char| c.is_ascii_digit();
        let dotted = first == '.' && rest.get(1..).is_some_and(|rest| rest.starts_with(digit));
        let (token, len) = if digit(first) || dotted {
            number(rest).map_err(|(kind, len)| SyntaxError::new(at..at + len, kind))?
        } else if first == '_' || first.is_alphabetic() {
            let word = |c: char| !(c == '_' || c.is_alphanumeric());
            let len = rest.find(word).unwrap_or(rest.len());
            (Token::Name(rest.get(..len).unwrap_or_default().into()), len)
        } else if first == '\'' || first == '"' {
            quoted(rest, first).map_err(|kind| SyntaxError::new(at..text.len(), kind))?
        } else if let Some(sign) = SIGNS.iter().find(|sign| rest.starts_with(**sign)) {
            (Token::Sign(sign), sign.len())
        } else {
            let span = at..at + first.len_utf8();
            return Err(SyntaxError::new(span, SyntaxErrorKind::Character(first)));
        };
        found.push(Spanned { token, span: at..at + len });
        at += len;
    }
    found.push(Spanned { token: Token::End, span: text.len()..text.len() });
    Ok(found)
}

/// A number at the start of the text, as Python writes it; what is wrong otherwise, and how far.
fn number(text: &str) -> Result<(Token, usize), (SyntaxErrorKind, usize)> {
    let bytes = text.as_bytes();
    let is = |at: usize, test: fn(&u8) -> bool| bytes.get(at).is_some_and(test);
    let digits = |mut at: usize, test: fn(&u8) -> bool| {
        // An underscore stands between two digits.
        while is(at, test) || (bytes.get(at) == Some(&b'_') && is(at + 1, test)) {
            at += 1;
        }
        at
    };
    let radix = match bytes.get(1) {
        _ if bytes.first() != Some(&b'0') => 10,
        Some(b'x' | b'X') => 16,
        Some(b'o' | b'O') => 8,
        Some(b'b' | b'B') => 2,
        _ => 10,
    };
    let (mut end, mut whole) = (0, true);
    if radix == 10 {
        end = digits(end, u8::is_ascii_digit);
        if bytes.get(end) == Some(&b'.')
            && !text.get(end..).is_some_and(|rest| rest.starts_with("..."))
        {
            whole = false;
            end = digits(end + 1, u8::is_ascii_digit);
        }
        if is(end, |c| matches!(c, b'e' | b'E')) {
            let sign = usize::from(is(end + 1, |c| matches!(c, b'+' | b'-')));
            if is(end + 1 + sign, u8::is_ascii_digit) {
                whole = false;
                end = digits(end + 1 + sign, u8::is_ascii_digit);
            }
        }
    } else {
        end = digits(2, u8::is_ascii_hexdigit);
    }
    let imaginary = radix == 10 && is(end, |c| matches!(c, b'j' | b'J'));
    let plain: String = text.get(..end).unwrap_or_default().replace('_', "");
    let len = end + usize::from(imaginary);
    // A number runs into a name: `2x`.
    let rest = text.get(len..).and_then(|rest| rest.chars().next());
    if let Some(c) = rest.filter(|&c| c == '_' || c.is_alphanumeric()) {
        return Err((SyntaxErrorKind::Number, len + c.len_utf8()));
    }
    let literal = if whole && !imaginary {
        let digits = plain.get(if radix == 10 { 0 } else { 2 }..).unwrap_or_default();
        match i128::from_str_radix(digits, radix) {
            // Not an octal number either: `007`.
            Ok(1..) if radix == 10 && digits.starts_with('0') => {
                return Err((SyntaxErrorKind::Number, len));
            }
            Ok(value) => Literal::Int(value),
            Err(_)
                if digits.chars().any(|c| c.is_digit(radix))
                    && digits.chars().all(|c| c.is_digit(radix)) =>
            {
                return Err((SyntaxErrorKind::TooLarge, len));
            }
            Err(_) => return Err((SyntaxErrorKind::Number, len.max(1))),
        }
    } else {
        match plain.parse::<f64>() {
            Ok(value) if !value.is_finite() => return Err((SyntaxErrorKind::TooLarge, len)),
            Ok(value) if imaginary => Literal::Complex(Complex::new(0.0, value)),
            Ok(value) => Literal::Float(value),
            Err(_) => return Err((SyntaxErrorKind::Number, len)),
        }
    };
    Ok((Token::Number(literal), len))
}

/// A text in quotes at the start of `text`.
fn quoted(text: &str, quote: char) -> Result<(Token, usize), SyntaxErrorKind> {
    let mut value = String::new();
    let mut chars = text.char_indices().skip(1);
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => value.push(match chars.next() {
                Some((_, 'n')) => '\n',
                Some((_, 't')) => '\t',
                Some((_, 'r')) => '\r',
                Some((_, c @ ('\\' | '\'' | '"'))) => c,
                Some((_, c)) => return Err(SyntaxErrorKind::Escape(c)),
                None => return Err(SyntaxErrorKind::Unclosed),
            }),
            _ if c == quote => return Ok((Token::Text(value), at + 1)),
            _ => value.push(c),
        }
    }
    Err(SyntaxErrorKind::Unclosed)
}
