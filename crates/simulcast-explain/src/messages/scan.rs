//! Reading: text whose space is folded, words, shapes, and the lines of a traceback.

use simulcast_core::Dims;

/// A text in which each run of white space is one space, so that wrapped messages read like others, with the
/// way back to the places in the original.
pub(super) struct Folded {
    pub(super) text: String,
    /// Places in the folded text after which the distance to the original changes, with the original place.
    steps: Vec<(usize, usize)>,
}

impl Folded {
    pub(super) fn new(original: &str) -> Self {
        let (mut text, mut steps) = (String::with_capacity(original.len()), vec![(0, 0)]);
        let mut after_space = false;
        for (place, letter) in original.char_indices() {
            let is_space = letter.is_whitespace();
            if is_space && after_space {
                continue;
            }
            let expected = steps.last().map_or(0, |(folded, own)| own + (text.len() - folded));
            if expected != place {
                steps.push((text.len(), place));
            }
            text.push(if is_space { ' ' } else { letter });
            after_space = is_space;
        }
        Self { text, steps }
    }

    /// The place in the original of a place in the folded text.
    pub(super) fn original(&self, folded: usize) -> usize {
        let after = self.steps.partition_point(|(start, _)| *start <= folded);
        let (start, own) =
            after.checked_sub(1).and_then(|step| self.steps.get(step)).copied().unwrap_or_default();
        own + (folded - start)
    }
}

/// No shape in a message is longer than this.
const SHAPE_BYTES_MAX: usize = 400;

/// A place in a text that moves forward as words and shapes are read.
#[derive(Clone, Copy)]
pub(super) struct Reader<'t> {
    text: &'t str,
    pub(super) place: usize,
}

impl<'t> Reader<'t> {
    pub(super) fn new(text: &'t str, place: usize) -> Self {
        Self { text, place }
    }

    pub(super) fn rest(&self) -> &'t str {
        self.text.get(self.place..).unwrap_or_default()
    }

    fn skip_space(&mut self) {
        let rest = self.rest();
        self.place += rest.len() - rest.trim_start().len();
    }

    /// Goes past a text that stands here, after space.
    pub(super) fn take(&mut self, word: &str) -> Option<()> {
        let mut next = *self;
        next.skip_space();
        next.rest().strip_prefix(word.trim_start())?;
        next.place += word.trim_start().len();
        *self = next;
        Some(())
    }

    /// Goes past the first place of a text, which must be near.
    pub(super) fn take_until(&mut self, word: &str) -> Option<&'t str> {
        let rest = self.rest();
        let near = near(rest, 600);
        let at = near.find(word)?;
        self.place += at + word.len();
        near.get(..at)
    }

    pub(super) fn number(&mut self) -> Option<usize> {
        self.skip_space();
        let rest = self.rest();
        let digits = rest.split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
        let number = digits.parse().ok()?;
        self.place += digits.len();
        Some(number)
    }

    /// A name, such as that of an operation.
    pub(super) fn word(&mut self) -> Option<&'t str> {
        self.skip_space();
        let rest = self.rest();
        let is_letter = |c: char| matches!(c, '_' | '.' | '/') || c.is_alphanumeric();
        let word = rest.split(|c| !is_letter(c)).next().unwrap_or_default();
        self.place += word.len();
        (!word.is_empty()).then_some(word)
    }

    /// A shape: `(2,3)`, `[2, 3]`, `{2,3}`, `torch.Size([2, 3])`, `float32[2,3]`; an added axis is a 1.
    pub(super) fn shape(&mut self) -> Option<Dims> {
        let mut next = *self;
        next.skip_space();
        let rest = near(next.rest(), SHAPE_BYTES_MAX);
        let open = rest.find(['(', '[', '{'])?;
        let before = rest.get(..open)?;
        if !before.chars().all(|c| c == '.' || c == '_' || c.is_ascii_alphanumeric()) {
            return None;
        }
        let body = rest.get(open..)?;
        let (mut depth, mut end) = (0_usize, None);
        for (place, letter) in body.char_indices() {
            match letter {
                '(' | '[' | '{' => depth += 1,
                ')' | ']' | '}' => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                end = Some(place + letter.len_utf8());
                break;
            }
        }
        let body = body.get(..end?)?;
        let inner = body.trim_matches(['(', '[', '{', ')', ']', '}', ' ']);
        let dims: Dims = format!("({})", inner.replace("newaxis", "1")).parse().ok()?;
        next.place += open + body.len();
        *self = next;
        Some(dims)
    }

    /// Shapes one after the other, with spaces, commas or `and` between them.
    pub(super) fn shapes(&mut self) -> Vec<Dims> {
        let mut found = Vec::new();
        while let Some(shape) = self.shape() {
            found.push(shape);
            let mut next = *self;
            let _ = next.take(",").or_else(|| next.take("and "));
            if next.shape().is_some() {
                let _ = self.take(",").or_else(|| self.take("and "));
            }
        }
        found
    }
}

/// The beginning of a text: at most so many bytes, whole characters.
pub(super) fn near(text: &str, bytes: usize) -> &str {
    let end = (bytes.min(text.len())..=text.len()).find(|end| text.is_char_boundary(*end));
    text.get(..end.unwrap_or(0)).unwrap_or_default()
}

/// The end of a text: at most so many bytes, whole characters.
pub(super) fn last(text: &str, bytes: usize) -> &str {
    let start = text.len().saturating_sub(bytes);
    let start = (start..=text.len()).find(|start| text.is_char_boundary(*start));
    text.get(start.unwrap_or(0)..).unwrap_or_default()
}

/// The file and the line of `  File "train.py", line 12, in loss`.
pub(super) fn file_line(line: &str) -> Option<(&str, usize)> {
    let (file, rest) = line.trim_start().strip_prefix("File \"")?.split_once("\", line ")?;
    let digits = rest.split(|c: char| !c.is_ascii_digit()).next()?;
    Some((file, digits.parse().ok()?))
}

/// The two operands of `    return (pred - target).mean()` under the marks `            ~~~~~^~~~~~~~`.
pub(super) fn marked_operands<'s>(source: &'s str, marks: &str) -> Option<(&'s str, &'s str)> {
    let column = |place: usize| source.char_indices().nth(place).map_or(source.len(), |(at, _)| at);
    let marks: Vec<char> = marks.chars().collect();
    let start = marks.iter().position(|c| *c != ' ')?;
    let operator = marks.iter().position(|c| *c == '^')?;
    let carets = marks.iter().skip(operator).take_while(|c| **c == '^').count();
    if start == operator || operator + carets == marks.len() {
        return None;
    }
    // Operands in parentheses have none that is not closed.
    let part = |from: usize, to: usize| source.get(column(from)..column(to)).map(str::trim);
    let (left, right) = (part(start, operator)?, part(operator + carets, marks.len())?);
    let is_operand = |text: &str| (1..=60).contains(&text.len());
    (is_operand(left) && is_operand(right)).then_some((left, right))
}
