//! What stands after `name=`: numbers, text, lists, shapes, and calls such as `rand(3, 4, dtype=float32)`.

use std::iter::Peekable;
use std::str::CharIndices;

/// Brackets within brackets, at most.
const DEEPEST: usize = 64;

/// A value as it is written.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Word {
    Bool(bool),
    Int(i128),
    Float(f64),
    /// `2j`, `1+2j`
    Complex(f64, f64),
    Text(String),
    /// `float32`
    Name(String),
    /// `(3, 4)`
    Tuple(Vec<Word>),
    /// `[3, 4]`
    List(Vec<Word>),
    /// `rand(3, 4, dtype=float32)`
    Call {
        name: String,
        args: Vec<Word>,
        named: Vec<(String, Word)>,
    },
}

impl Word {
    /// Reads all of a text.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut scan = Scan { text, chars: text.char_indices().peekable() };
        let word = scan.word(0)?;
        match scan.peek() {
            None => Ok(word),
            Some(',') => Err("a shape is written (3, 4), values are written [3, 4]".into()),
            Some(_) => Err(scan.wrong("nothing more")),
        }
    }
}

struct Scan<'a> {
    text: &'a str,
    chars: Peekable<CharIndices<'a>>,
}

impl<'a> Scan<'a> {
    /// The next character that is no space.
    fn peek(&mut self) -> Option<char> {
        while self.chars.next_if(|(_, c)| c.is_whitespace()).is_some() {}
        self.chars.peek().map(|&(_, c)| c)
    }

    fn at(&mut self) -> usize {
        self.chars.peek().map_or(self.text.len(), |&(at, _)| at)
    }

    fn eat(&mut self, wanted: char) -> bool {
        self.peek() == Some(wanted) && self.chars.next().is_some()
    }

    fn wrong(&mut self, expected: &str) -> String {
        let rest = self.text.get(self.at()..).unwrap_or_default();
        let found: String = rest.chars().take(12).collect();
        match found.as_str() {
            "" => format!("expected {expected} at its end"),
            found => format!("expected {expected}, found {found:?}"),
        }
    }

    fn word(&mut self, depth: usize) -> Result<Word, String> {
        if depth > DEEPEST {
            return Err(format!("brackets are nested more than {DEEPEST} deep"));
        }
        match self.peek() {
            Some('[') => Ok(Word::List(self.items(']', depth)?.0)),
            Some('(') => Ok(Word::Tuple(self.items(')', depth)?.0)),
            Some(quote @ ('\'' | '"')) => self.quoted(quote),
            Some(c) if c.is_alphabetic() || c == '_' => {
                let name = self.run(|c| c.is_alphanumeric() || matches!(c, '_' | '.'));
                match name {
                    "True" | "true" => Ok(Word::Bool(true)),
                    "False" | "false" => Ok(Word::Bool(false)),
                    "nan" | "NaN" => Ok(Word::Float(f64::NAN)),
                    "inf" => Ok(Word::Float(f64::INFINITY)),
                    _ if self.peek() == Some('(') => {
                        let (args, named) = self.items(')', depth)?;
                        Ok(Word::Call { name: name.to_owned(), args, named })
                    }
                    _ => Ok(Word::Name(name.to_owned())),
                }
            }
            _ => self.number(),
        }
    }

    /// What stands in brackets, with commas between; `name=word` in round ones.
    fn items(&mut self, close: char, depth: usize) -> Result<Items, String> {
        self.chars.next();
        let (mut items, mut named) = (Vec::new(), Vec::new());
        while !self.eat(close) {
            let word = self.word(depth + 1)?;
            match word {
                Word::Name(name) if close == ')' && self.eat('=') => {
                    named.push((name, self.word(depth + 1)?));
                }
                word => items.push(word),
            }
            if !self.eat(',') {
                if self.eat(close) {
                    break;
                }
                return Err(self.wrong(&format!("a comma or {close:?}")));
            }
        }
        Ok((items, named))
    }

    fn quoted(&mut self, quote: char) -> Result<Word, String> {
        self.chars.next();
        let mut text = String::new();
        while let Some((_, c)) = self.chars.next() {
            match c {
                // As in an expression.
                '\\' => text.push(match self.chars.next() {
                    Some((_, 'n')) => '\n',
                    Some((_, 't')) => '\t',
                    Some((_, 'r')) => '\r',
                    Some((_, c @ ('\\' | '\'' | '"'))) => c,
                    Some((_, c)) => return Err(format!("a backslash before {c:?} means nothing")),
                    None => break,
                }),
                c if c == quote => return Ok(Word::Text(text)),
                c => text.push(c),
            }
        }
        Err(format!("a text without its closing {quote}"))
    }

    /// The longest stretch of such characters.
    fn run(&mut self, belongs: impl Fn(char) -> bool) -> &'a str {
        let start = self.at();
        while self.chars.next_if(|&(_, c)| belongs(c)).is_some() {}
        let end = self.at();
        self.text.get(start..end).unwrap_or_default()
    }

    /// A number, or two of which the second is the imaginary part.
    fn number(&mut self) -> Result<Word, String> {
        let first = self.part()?;
        let real = match first {
            Word::Int(x) => x as f64,
            Word::Float(x) => x,
            other => return Ok(other),
        };
        let Some(sign @ ('+' | '-')) = self.peek() else { return Ok(first) };
        let wrong = self.wrong("an imaginary part, such as +2j");
        self.eat(sign);
        self.peek();
        match self.part() {
            Ok(Word::Complex(_, im)) => Ok(Word::Complex(real, if sign == '-' { -im } else { im })),
            _ => Err(wrong),
        }
    }

    fn part(&mut self) -> Result<Word, String> {
        let start = self.at();
        let wrong = self.wrong("a number, a list, a shape or a call");
        let sign = if self.eat('-') {
            "-"
        } else {
            self.eat('+');
            ""
        };
        let mut digits = self.run(|c| c.is_ascii_digit() || matches!(c, '.' | '_')).to_owned();
        // As in Python, an underscore stands between two digits.
        let grouped = |part: &str| part.is_empty() || !part.split('_').any(str::is_empty);
        if !digits.split('.').all(grouped) {
            return Err(wrong);
        }
        if digits.is_empty() {
            return match self.run(char::is_alphabetic) {
                "inf" => Ok(Word::Float(format!("{sign}inf").parse().unwrap_or(f64::INFINITY))),
                _ => Err(wrong),
            };
        }
        if self.chars.next_if(|&(_, c)| matches!(c, 'e' | 'E')).is_some() {
            digits.push('e');
            digits.extend(self.chars.next_if(|&(_, c)| matches!(c, '+' | '-')).map(|(_, c)| c));
            digits.push_str(self.run(|c| c.is_ascii_digit()));
        }
        let number = format!("{sign}{}", digits.replace('_', ""));
        let float = || number.parse::<f64>().map_err(|_| wrong.clone());
        if self.chars.next_if(|&(_, c)| c == 'j').is_some() {
            return Ok(Word::Complex(0.0, float()?));
        }
        let end = self.at();
        if number.contains(['.', 'e']) {
            return Ok(Word::Float(float()?));
        }
        number.parse().map(Word::Int).map_err(|_| {
            let shown: String =
                self.text.get(start..end).unwrap_or_default().chars().take(40).collect();
            format!("{shown} is too large")
        })
    }
}

type Items = (Vec<Word>, Vec<(String, Word)>);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read() {
        let int = Word::Int;
        assert_eq!(Word::parse(" -3 "), Ok(int(-3)));
        assert_eq!(Word::parse("2.5e-1"), Ok(Word::Float(0.25)));
        assert_eq!(Word::parse("1_000.2_5"), Ok(Word::Float(1000.25)));
        assert_eq!(Word::parse("-inf"), Ok(Word::Float(f64::NEG_INFINITY)));
        assert_eq!(Word::parse("2j"), Ok(Word::Complex(0.0, 2.0)));
        assert_eq!(Word::parse("-1.5 - 2j"), Ok(Word::Complex(-1.5, -2.0)));
        assert_eq!(Word::parse(r#""a\n\"b""#), Ok(Word::Text("a\n\"b".into())));
        assert_eq!(Word::parse("True"), Ok(Word::Bool(true)));
        assert_eq!(Word::parse("'it\\'s'"), Ok(Word::Text("it's".into())));
        assert_eq!(Word::parse("(3,)"), Ok(Word::Tuple(vec![int(3)])));
        assert_eq!(Word::parse("()"), Ok(Word::Tuple(vec![])));
        let row = |x| Word::List(vec![int(x), int(x + 1)]);
        assert_eq!(Word::parse("[[1, 2], [3, 4,]]"), Ok(Word::List(vec![row(1), row(3)])));
        let call = Word::Call {
            name: "rand".into(),
            args: vec![int(3), int(4)],
            named: vec![("dtype".into(), Word::Name("float32".into()))],
        };
        assert_eq!(Word::parse("rand(3,4, dtype=float32)"), Ok(call));
    }

    #[test]
    fn what_is_no_word_is_refused() {
        for text in [
            "",
            "[",
            "[1",
            "[1 2]",
            "1 2",
            "1+2",
            "1j+2j",
            "1+",
            r"'\d'",
            r"'\",
            "'a",
            "(",
            "rand(",
            "-",
            "--1",
            "1e",
            "é(",
            "1__",
            "1_",
            "1_.5",
            "1._5",
            "é3(]",
            "$",
            "999999999999999999999999999999999999999999",
        ] {
            assert!(Word::parse(text).is_err(), "{text}");
        }
        let deep = "[".repeat(100_000);
        assert_eq!(Word::parse(&deep), Err("brackets are nested more than 64 deep".into()));
    }
}
