//! The terminal's explanation: the right-aligned table, what repeats, what it costs, what is
//! suspicious; and for an error a caret under each clashing axis and the fixes.

use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};
use simulcast_core::{BroadcastError, Certainty, Finding, Names, Plan, Refusal, SymbolicPlan};
use unicode_width::UnicodeWidthStr as _;

use crate::{Mark, Subject, Table};

/// How the text is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextOptions {
    /// Lines, crosses and ellipses; plain ASCII otherwise.
    pub unicode: bool,
    /// ANSI colours, in addition to what the text says.
    pub color: bool,
}

impl Default for TextOptions {
    fn default() -> Self {
        Self { unicode: true, color: false }
    }
}

const ERROR: Style = AnsiColor::Red.on_default().bold();
const NOTE: Style = AnsiColor::Yellow.on_default().bold();
const HELP: Style = AnsiColor::Green.on_default().bold();
const FAINT: Style = Style::new().dimmed();
const STRONG: Style = Style::new().bold();

/// At most this many columns are shown at either end of a shape.
const COLUMNS: usize = 10;
/// At most this many clashes get a line.
const CLASHES: usize = 8;

/// The explanation as text, with a line feed at its end.
///
/// ```
/// use simulcast_core::{Rule, resolve};
/// use simulcast_explain::{Subject, TextOptions, text};
///
/// let error = resolve(Rule::Numpy, &[&[2, 3, 4][..], &[2, 4]]).unwrap_err();
/// let said = text(&Subject::Error(&error), TextOptions::default());
/// assert!(said.contains("^ axis 1 (-2): A has 3, B has 2"));
/// assert!(said.contains("B[:, None, :] is (2, 1, 4), result (2, 3, 4)"));
/// ```
#[must_use]
pub fn text(subject: &Subject<'_>, options: TextOptions) -> String {
    let mut page = Page { options, out: String::new() };
    match subject {
        Subject::Plan(plan, findings) => page.plan(plan, findings),
        Subject::Symbolic(plan, names, findings) => page.symbolic(plan, names, findings),
        Subject::Error(error) => page.error(error),
    }
    page.out
}

/// The text as far as it is written.
struct Page {
    options: TextOptions,
    out: String,
}

/// The columns of a table that are shown, with their width.
struct Columns {
    /// `None` is an ellipsis.
    shown: Vec<Option<usize>>,
    label: usize,
    width: usize,
}

impl Page {
    fn plan(&mut self, plan: &Plan, findings: &[Finding]) {
        let table = Table::of_plan(plan);
        let columns = self.table(&table);
        self.result(&table, &columns, &repeats(plan, &table.axes));
        self.line("rule", FAINT, &plan.rule().to_string());
        self.line("stored", FAINT, &crate::cost::cost(plan));
        self.findings(findings, plan.names());
    }

    fn symbolic(&mut self, plan: &SymbolicPlan, names: &Names, findings: &[Finding]) {
        match Table::of_symbolic(plan, names) {
            Some(table) => {
                let columns = self.table(&table);
                self.result(&table, &columns, "");
            }
            None => {
                for (operand, dims) in plan.shapes().iter().enumerate() {
                    self.line(&names.operand(operand), STRONG, &dims.to_string());
                }
                self.line("result", STRONG, &plan.shape().to_string());
            }
        }
        self.line("rule", FAINT, &plan.rule().to_string());
        for constraint in plan.constraints() {
            self.line("needs", NOTE, &constraint.describe(names));
        }
        self.findings(findings, names);
    }

    fn error(&mut self, error: &BroadcastError) {
        if let Some(table) = Table::of_error(error) {
            let columns = self.table(&table);
            for clash in error.clashes().iter().take(CLASHES) {
                self.caret(&columns, clash, &error.describe(clash));
            }
            if let Some(more @ 1..) = error.clashes().len().checked_sub(CLASHES) {
                self.line("", FAINT, &format!("and {more} more axes"));
            }
        } else {
            for (operand, dims) in error.shapes().iter().enumerate().take(crate::ROWS) {
                self.line(&error.names().operand(operand), STRONG, &dims.to_string());
            }
        }
        let reason = match error.refusal() {
            Refusal::Clash { .. } if error.rule().kind().stretches() => {
                "sizes must be equal, or the one that stretches must be 1".to_string()
            }
            Refusal::Clash { .. } => "sizes must be equal".to_string(),
            other => error.describe(other),
        };
        self.line("rule", FAINT, &error.rule().to_string());
        self.line("error", ERROR, &format!("{}: {reason}", error.code()));
        for fix in error.fixes() {
            self.line("help", HELP, &fix.describe(error.names()));
        }
    }

    fn findings(&mut self, findings: &[Finding], names: &Names) {
        for finding in findings {
            let chance = match finding.certainty {
                Certainty::Possible => " (possible)",
                Certainty::Confirmed => "",
            };
            let said = format!("{}{chance}", finding.message);
            self.line(finding.code.as_str(), NOTE, &said);
            for fix in &finding.fixes {
                self.line("help", HELP, &fix.describe(names));
            }
        }
    }

    /// The axes and the operands.
    fn table(&mut self, table: &Table) -> Columns {
        let cells = table.rows.iter().chain(&table.result).flat_map(|row| &row.cells);
        let texts = cells.map(|cell| &cell.text).chain(&table.axes);
        let width = texts.map(|text| self.width(text)).max().unwrap_or(1);
        let names = table.rows.iter().map(|row| self.width(&row.name));
        let rank = table.axes.len();
        let shown = if rank > 2 * COLUMNS + 1 {
            let ends = (0..COLUMNS).map(Some);
            ends.chain([None]).chain((rank - COLUMNS..rank).map(Some)).collect()
        } else {
            (0..rank).map(Some).collect()
        };
        let columns = Columns { shown, label: names.max().unwrap_or(0).max(6), width };
        let axes: Vec<(String, Style)> =
            table.axes.iter().map(|axis| (axis.clone(), FAINT)).collect();
        let added =
            table.rows.iter().flat_map(|row| &row.cells).any(|cell| cell.mark == Mark::Added);
        let legend = if added { "'.' = no such axis" } else { "" };
        self.row(&columns, "axis", FAINT, &axes, legend);
        for row in &table.rows {
            let cells = row.cells.iter().map(|cell| (cell.text.clone(), style(cell.mark)));
            self.row(&columns, &row.name, STRONG, &cells.collect::<Vec<_>>(), &row.shape);
        }
        if table.omitted > 0 {
            self.line("", FAINT, &format!("and {} more operands", table.omitted));
        }
        columns
    }

    /// A line under the operands, and the result.
    fn result(&mut self, table: &Table, columns: &Columns, beside: &str) {
        let Some(row) = &table.result else { return };
        let dash = if self.options.unicode { '─' } else { '-' };
        let dashes: String = std::iter::repeat_n(dash, columns.total()).collect();
        let _ = writeln!(self.out, "  {}", self.paint(FAINT, &dashes));
        let cells: Vec<(String, Style)> =
            row.cells.iter().map(|cell| (cell.text.clone(), STRONG)).collect();
        let beside = match (row.cells.is_empty(), beside.is_empty()) {
            (true, _) | (false, true) => row.shape.clone(),
            (false, false) => format!("{}  {beside}", row.shape),
        };
        self.row(columns, &row.name, STRONG, &cells, &beside);
    }

    fn row(
        &mut self,
        columns: &Columns,
        label: &str,
        strong: Style,
        cells: &[(String, Style)],
        beside: &str,
    ) {
        let mut line = format!("  {}", self.paint(strong, &self.pad(label, columns.label)));
        for column in &columns.shown {
            let (text, style) = match column.and_then(|column| cells.get(column)) {
                Some((text, style)) => (text.clone(), *style),
                None => (self.ellipsis().to_string(), FAINT),
            };
            let space = columns.width.saturating_sub(self.width(&text)) + 3;
            let _ = write!(line, "{:space$}{}", "", self.paint(style, &text));
        }
        if !beside.is_empty() {
            let _ = write!(line, "     {}", self.paint(FAINT, beside));
        }
        let _ = writeln!(self.out, "{}", line.trim_end());
    }

    /// A caret under a clashing axis, with what is wrong there.
    fn caret(&mut self, columns: &Columns, clash: &Refusal, what: &str) {
        let Refusal::Clash { axis, .. } = clash else {
            self.line("", ERROR, what);
            return;
        };
        let Some(column) = columns.shown.iter().position(|shown| *shown == Some(*axis)) else {
            self.line("", ERROR, what);
            return;
        };
        let space = 2 + columns.label + (columns.width + 3) * (column + 1) - 1;
        let caret = self.paint(ERROR, &format!("^ {what}"));
        let _ = writeln!(self.out, "{:space$}{caret}", "");
    }

    fn line(&mut self, label: &str, style: Style, text: &str) {
        let label = self.paint(style, &self.pad(label, 6));
        let line = format!("  {label}   {}", printable(text, self.options.unicode));
        let _ = writeln!(self.out, "{}", line.trim_end());
    }

    /// How many columns it takes as it is printed.
    fn width(&self, text: &str) -> usize {
        width(&printable(text, self.options.unicode))
    }

    fn pad(&self, text: &str, width: usize) -> String {
        let space = width.saturating_sub(self.width(text));
        format!("{text}{:space$}", "")
    }

    fn ellipsis(&self) -> &'static str {
        if self.options.unicode { "…" } else { "..." }
    }

    fn paint(&self, style: Style, text: &str) -> String {
        let text = printable(text, self.options.unicode);
        if self.options.color && !text.trim().is_empty() {
            format!("{style}{text}{style:#}")
        } else {
            text
        }
    }
}

impl Columns {
    fn total(&self) -> usize {
        self.label + self.shown.len() * (self.width + 3)
    }
}

/// How many columns of a terminal a text takes: two for a wide character, none for a combining one.
///
/// ```
/// assert_eq!(simulcast_explain::width("画像"), 4);
/// assert_eq!(simulcast_explain::width("re\u{301}sume\u{301}"), 6);
/// ```
#[must_use]
pub fn width(text: &str) -> usize {
    // Most text is one column a letter, which is seen sooner than looked up.
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~')) { text.len() } else { text.width() }
}

fn style(mark: Mark) -> Style {
    match mark {
        Mark::Kept => Style::new(),
        Mark::Stretched | Mark::Added => FAINT,
        Mark::Clash => ERROR,
    }
}

/// What reaches the terminal: no line feeds, no other control characters, and in ASCII nothing else.
fn printable(text: &str, unicode: bool) -> String {
    let shown = |c: char| match c {
        '\n' => '?',
        c if !unicode && !c.is_ascii() => '?',
        c => c,
    };
    crate::terminal_safe(text).chars().map(shown).collect()
}

/// `A repeats along 1 and 3, B along 0 and 2`.
fn repeats(plan: &Plan, names: &[String]) -> String {
    let mut parts: Vec<String> = Vec::new();
    for operand in 0..plan.operand_count().min(crate::ROWS) {
        let sources = plan.sources(operand).unwrap_or_default();
        let repeated = sources.iter().zip(plan.shape()).zip(names);
        let repeated = repeated.filter(|((source, size), _)| source.repeats(**size));
        let axes: Vec<String> = repeated.map(|(_, name)| name.clone()).take(COLUMNS).collect();
        if axes.is_empty() {
            continue;
        }
        let verb = if parts.is_empty() { " repeats" } else { "" };
        parts.push(format!(
            "{}{verb} along {}",
            plan.operand_name(operand),
            crate::list_with_and(&axes)
        ));
    }
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Widths by the tables of Python's `unicodedata`: 2 for a wide or full-width character, 0 for a
    /// mark that does not space (`east_asian_width`, `category`), 1 else.
    #[test]
    fn names_of_wide_and_combining_characters_take_the_columns_that_they_take() {
        let unicode = Page { options: TextOptions::default(), out: String::new() };
        for (name, width) in [
            ("mask", 4),
            ("画像", 4),
            ("한글", 4),
            ("ｆｕｌｌ", 8),
            ("re\u{301}sume\u{301}", 6),
            ("\u{915}\u{94d}\u{937}", 2),
            ("a\u{200b}b", 2),
            ("a\tb", 3),
        ] {
            assert_eq!(unicode.width(name), width, "{name}");
            assert_eq!(unicode.width(&unicode.pad(name, 9)), 9, "{name}");
        }
        // Each character is a question mark there.
        let ascii = Page { options: TextOptions { unicode: false, color: false }, ..unicode };
        assert_eq!(ascii.width("re\u{301}画"), 4);
    }
}
