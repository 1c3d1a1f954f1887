//! Shape text: every spelling that people paste.
//!
//! | text | means |
//! |---|---|
//! | `8,1,6,1` `(8, 1, 6, 1)` `[8,1,6,1]` `8x1x6x1` `8 1 6 1` `torch.Size([8, 1, 6, 1])` | sizes |
//! | `Nx3x1` `BxCxHxW` `b c h w` | sizes and symbols |
//! | `()` `[]` `scalar` | rank 0 |
//! | `N,3,1` | a symbol; `N@2..8` limits it to an interval |
//! | `?` `None` `-1`, `2..8` `2..` `..8` | an unknown size, an interval |
//! | `...` | an unknown rank |
//! | `b=32,c=3` | axes with names |
//! | `pred:32,1` | an operand with a name |

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;

use crate::{Dim, Dims, Interval, Symbol};

/// A shape as it was written: with names, where there are any.
///
/// ```
/// use simulcast_core::ShapeText;
///
/// let shape: ShapeText = "pred:b=32,c=1".parse()?;
/// assert_eq!(shape.name.as_deref(), Some("pred"));
/// assert_eq!(shape.dims.sizes(), Some(vec![32, 1]));
/// assert_eq!(shape.axis_names(), ["b", "c"]);
/// # Ok::<(), simulcast_core::ParseError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ShapeText {
    /// The operand's name, if it has one.
    pub name: Option<String>,
    /// The dimensions.
    pub dims: Dims,
    /// The name of each axis; empty where it has none.
    pub axes: Vec<String>,
}

impl ShapeText {
    /// The name of each axis, or that of its symbol; empty where it has neither.
    #[must_use]
    pub fn axis_names(&self) -> Vec<String> {
        let dims = self.dims.dims().unwrap_or(&[]);
        let name = |(name, dim): (&String, &Dim)| match dim {
            Dim::Symbol(symbol) if name.is_empty() => symbol.name.to_string(),
            _ => name.clone(),
        };
        self.axes.iter().zip(dims).map(name).collect()
    }
}

/// Why a text is not a shape.
///
/// ```
/// use simulcast_core::ShapeText;
///
/// let error = "2,x!".parse::<ShapeText>().unwrap_err();
/// assert_eq!(error.part(), "x!");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    text: String,
    part: String,
    reason: Reason,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reason {
    Empty,
    EmptyAxis,
    Bracket,
    Size,
    TooLarge,
    Interval,
    Name,
    Named,
}

impl ParseError {
    fn new(text: &str, part: &str, reason: Reason) -> Self {
        // Whole characters, and few enough that a hostile text does not flood the terminal.
        let cut = |text: &str| text.chars().take(80).collect();
        Self { text: cut(text), part: cut(part), reason }
    }

    /// The part of the text that is wrong.
    #[must_use]
    pub fn part(&self) -> &str {
        &self.part
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { text, part, reason } = self;
        write!(f, "{text:?} is not a shape: ")?;
        match reason {
            Reason::Empty => f.write_str("it is empty; a scalar is written ()"),
            Reason::EmptyAxis => f.write_str("an axis is empty"),
            Reason::Bracket => f.write_str("brackets do not match"),
            Reason::Size => write!(f, "{part:?} is no size, symbol or interval"),
            Reason::TooLarge => write!(f, "the size {part} is too large"),
            Reason::Interval => write!(f, "the interval {part:?} ends before it begins"),
            Reason::Name => write!(f, "{part:?} is no name"),
            Reason::Named => write!(f, "the name {part:?} has no place here"),
        }
    }
}

impl core::error::Error for ParseError {}

// Implements E_BROADCAST_ANY_FUNC_2200.
impl FromStr for ShapeText {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let fail = |part: &str, reason| Err(ParseError::new(text, part, reason));
        let (name, shape) = match text.split_once(':') {
            Some((name, shape)) => (Some(name.trim()), shape),
            None => (None, text),
        };
        match name {
            Some(name) if !is_name(name) => return fail(name, Reason::Name),
            _ => {}
        }
        let name = name.map(ToString::to_string);
        let body = match unwrap(shape.trim()) {
            Unwrapped::Body(body) => body,
            Unwrapped::Mismatched => return fail(shape, Reason::Bracket),
        };
        let parts = match body {
            Body::Bare("") => return fail("", Reason::Empty),
            Body::Bare("scalar") | Body::Bracketed("" | ",") => Vec::new(),
            Body::Bare("...") | Body::Bracketed("...") => {
                return Ok(Self { name, dims: Dims::Unranked, axes: Vec::new() });
            }
            Body::Bare(body) | Body::Bracketed(body) => match split(body) {
                Some(parts) => parts,
                None => return fail(body, Reason::EmptyAxis),
            },
        };
        let (mut dims, mut axes) = (Vec::new(), Vec::new());
        for part in parts {
            let (axis, dim) = match part.split_once('=') {
                Some((axis, dim)) if is_name(axis.trim()) => (axis.trim(), dim.trim()),
                Some((axis, _)) => return fail(axis, Reason::Name),
                None => ("", part),
            };
            match parse_dim(dim) {
                Ok(dim) => dims.push(dim),
                Err(reason) => return fail(dim, reason),
            }
            axes.push(axis.to_string());
        }
        Ok(Self { name, dims: Dims::Ranked(dims), axes })
    }
}

/// What is left of a shape without its brackets, and whether it had any.
#[derive(Clone, Copy)]
enum Body<'a> {
    Bare(&'a str),
    Bracketed(&'a str),
}

enum Unwrapped<'a> {
    Body(Body<'a>),
    Mismatched,
}

/// Takes brackets off, with what is written before them: `torch.Size([2, 3])`, `Shape(2, 3)`.
fn unwrap(text: &str) -> Unwrapped<'_> {
    let mut body = Body::Bare(text);
    loop {
        let (Body::Bare(text) | Body::Bracketed(text)) = body;
        let open = text.find(['(', '[']);
        let close = text.ends_with([')', ']']);
        let (before, inside) = match (open, close) {
            (None, false) => return Unwrapped::Body(body),
            (Some(open), true) => text.split_at_checked(open).unwrap_or((text, "")),
            _ => return Unwrapped::Mismatched,
        };
        let inside = match inside.chars().next() {
            Some('(') => inside.strip_prefix('(').and_then(|inside| inside.strip_suffix(')')),
            _ => inside.strip_prefix('[').and_then(|inside| inside.strip_suffix(']')),
        };
        let (true, Some(inside)) = (before.chars().all(is_name_char), inside) else {
            return Unwrapped::Mismatched;
        };
        body = Body::Bracketed(inside.trim());
    }
}

/// The parts between commas, or between `x`, or between spaces; `None` for a stray `x`.
fn split(body: &str) -> Option<Vec<&str>> {
    if body.contains(',') {
        let body = body.strip_suffix(',').unwrap_or(body);
        return Some(body.split(',').map(str::trim).collect());
    }
    let words: Vec<&str> = body.split_whitespace().collect();
    if words.len() > 1 {
        return split_words(words);
    }
    // `8x1`, `Nx3`, `BxCxHxW`, but not the symbols `axb` and `dx1`.
    let parts: Vec<&str> = body.split(['x', '×']).collect();
    if parts.iter().all(|part| is_factor(part)) {
        return Some(parts);
    }
    // `8X1`; a name in capitals may have an X of its own.
    let numbers: Vec<&str> = body.split('X').collect();
    match numbers.iter().all(|part| part.parse::<usize>().is_ok()) {
        true => Some(numbers),
        false => Some(alloc::vec![body]),
    }
}

/// `8 1 6 1`, `8 x 1 x 6 x 1`, `b c h w`, `x y`.
fn split_words(words: Vec<&str>) -> Option<Vec<&str>> {
    let crosses = |word: &&str| ["x", "X", "×", "*"].contains(word);
    let between = words.iter().skip(1).step_by(2);
    if between.clone().all(crosses) {
        let last = words.last().filter(|word| !crosses(word));
        return last.map(|_| words.iter().copied().step_by(2).collect());
    }
    let digits = |word: &&str| word.starts_with(|first: char| first.is_ascii_digit());
    match (words.iter().any(crosses), words.iter().any(digits)) {
        (true, true) => None,
        _ => Some(words),
    }
}

impl FromStr for Dims {
    type Err = ParseError;

    /// Reads shape text without names.
    fn from_str(text: &str) -> Result<Self, ParseError> {
        let shape: ShapeText = text.parse()?;
        match (shape.name, shape.axes.iter().find(|name| !name.is_empty())) {
            (None, None) => Ok(shape.dims),
            (Some(name), _) => Err(ParseError::new(text, &name, Reason::Named)),
            (None, Some(name)) => Err(ParseError::new(text, name, Reason::Named)),
        }
    }
}

impl FromStr for Dim {
    type Err = ParseError;

    /// Reads a size, an interval, a symbol, or `?`: one axis of shape text.
    fn from_str(text: &str) -> Result<Self, ParseError> {
        let text = text.trim();
        parse_dim(text).map_err(|reason| ParseError::new(text, text, reason))
    }
}

/// A number, `?`, or a name in capitals.
fn is_factor(part: &str) -> bool {
    match part.chars().next() {
        None => false,
        Some('?') => part.len() == 1,
        Some('0'..='9') => part.chars().all(|c| c.is_ascii_digit()),
        Some(_) => part.chars().all(|c| matches!(c, 'A'..='Z' | '0'..='9')),
    }
}

fn is_name_char(c: char) -> bool {
    match c {
        '_' | '.' | '-' | '/' => true,
        c => c.is_alphanumeric(),
    }
}

/// Something with a letter in it, so that no number passes for a name.
fn is_name(text: &str) -> bool {
    match text.chars().all(is_name_char) {
        true => text.chars().any(|c| !c.is_ascii_digit()),
        false => false,
    }
}

fn parse_dim(text: &str) -> Result<Dim, Reason> {
    match text {
        "" => return Err(Reason::EmptyAxis),
        "?" | "None" | "-1" => return Ok(Dim::UNKNOWN),
        _ => {}
    }
    if let Some((name, range)) = text.split_once('@') {
        let Some(range) = parse_interval(range)? else { return Err(Reason::Size) };
        return Ok(Dim::Symbol(Symbol { range, ..symbol(name)? }));
    }
    match parse_interval(text)? {
        Some(range) => Ok(Dim::from(range)),
        None => symbol(text).map(Dim::Symbol),
    }
}

fn symbol(text: &str) -> Result<Symbol, Reason> {
    let begins = |first: char| first.is_alphabetic().then_some(()).or((first == '_').then_some(()));
    let begins = text.chars().next().and_then(begins);
    let goes_on = |c: char| match c {
        '_' => true,
        c => c.is_alphanumeric(),
    };
    match (begins, text.chars().all(goes_on), text) {
        // `None` says that a size is not known, so it names none.
        (_, _, "None") => Err(Reason::Size),
        (Some(()), true, _) => Ok(Symbol::new(text)),
        _ => Err(Reason::Size),
    }
}

/// A size or an interval; `None` for what begins with no digit.
fn parse_interval(text: &str) -> Result<Option<Interval>, Reason> {
    let Some((lo, hi)) = text.split_once("..") else {
        return Ok(parse_size(text)?.map(Interval::from));
    };
    let lo = match lo {
        "" => 0,
        lo => parse_size(lo)?.ok_or(Reason::Size)?,
    };
    let hi = match hi {
        "" => None,
        hi => Some(parse_size(hi)?.ok_or(Reason::Size)?),
    };
    Interval::new(lo, hi).map(Some).ok_or(Reason::Interval)
}

/// A size; `None` for what begins with no digit. `1_000` is a size too.
fn parse_size(text: &str) -> Result<Option<usize>, Reason> {
    if !text.starts_with(|first: char| first.is_ascii_digit()) {
        return Ok(None);
    }
    if text.ends_with('_') {
        return Err(Reason::Size);
    }
    let digits: String = text.chars().filter(|&c| c != '_').collect();
    if !digits.chars().all(|c| c.is_ascii_digit()) {
        return Err(Reason::Size);
    }
    digits.parse().map(Some).map_err(|_| Reason::TooLarge)
}
