//! The right-aligned table as a picture: any rank, any number of operands, symbols and errors.

use simulcast_core::Refusal;

use super::canvas::{Area, Canvas, Font, MARGIN};
use super::notes;
use super::slots::{Slot, columns};
use super::text::{NAME, clip, clip_middle};
use super::words;
use crate::{Mark, ROWS, Row, Subject, Table};

/// How long a size may get; symbols have names of any length.
const SIZE: usize = 24;
/// How long a shape at the end of a row may get.
const SHAPE: usize = 44;
/// The width of a column that stands for several.
const GAP_WIDTH: usize = 28;
const SPACE: usize = 8;

/// Draws the table, or the bare shapes where the rule did not lay the axes out.
pub(super) fn draw(canvas: &mut Canvas, subject: &Subject<'_>) {
    match subject.table() {
        Some(table) => Grid::new(subject, &table).draw(canvas),
        None => draw_shapes(canvas, subject),
    }
}

fn draw_shapes(canvas: &mut Canvas, subject: &Subject<'_>) {
    let mut shapes = words::shapes(subject, ROWS);
    if let Subject::Symbolic(plan, ..) = subject {
        shapes.push(("result".to_owned(), clip_middle(&plan.shape().to_string(), SHAPE)));
    }
    let names = shapes.iter().map(|(name, _)| Font::Code.width(name)).max().unwrap_or(0);
    let mut y = canvas.bottom() + 24;
    for (name, shape) in &shapes {
        canvas.text(Font::Code, MARGIN, y, name);
        canvas.text(Font::Code, MARGIN + names + 16, y, shape);
        y += 20;
    }
}

/// A row of the table as it is drawn.
struct Line<'a> {
    row: &'a Row,
    result: bool,
    /// The strides of a view, where there are any.
    strides: Option<Vec<isize>>,
}

struct Grid<'a> {
    table: &'a Table,
    lines: Vec<Line<'a>>,
    /// The axes that are drawn, each with its place and its width.
    columns: Vec<(Slot, usize, usize)>,
    right: usize,
}

impl<'a> Grid<'a> {
    fn new(subject: &Subject<'_>, table: &'a Table) -> Self {
        let clashes = match subject {
            Subject::Error(error) => error.clashes(),
            Subject::Plan(..) | Subject::Symbolic(..) => &[],
        };
        let axes = clashes.iter().filter_map(|clash| match clash {
            Refusal::Clash { axis, .. } => Some(*axis),
            _ => None,
        });
        let slots = columns(table.axes.len(), axes);
        let strides = |row: &Row| match subject {
            Subject::Plan(plan, _) => plan.row_major_strides(row.operand?).ok(),
            Subject::Symbolic(..) | Subject::Error(_) => None,
        };
        let line = |row| Line { row, result: false, strides: strides(row) };
        let mut lines: Vec<Line<'a>> = table.rows.iter().map(line).collect();
        lines.extend(table.result.iter().map(|row| Line { row, result: true, strides: None }));
        let names = lines.iter().map(|line| Font::Code.width(&clip(&line.row.name, NAME)));
        let mut x = MARGIN + names.max().unwrap_or(0) + 20;
        let mut columns = Vec::new();
        for slot in slots {
            let width = column_width(table, &lines, slot);
            columns.push((slot, x, width));
            x += width + SPACE;
        }
        Self { table, lines, columns, right: x }
    }

    fn draw(&self, canvas: &mut Canvas) {
        let top = canvas.bottom() + 20;
        self.draw_head(canvas, top);
        let mut y = if self.columns.is_empty() { top } else { top + 36 };
        let mut key: Vec<(&str, &str)> = Vec::new();
        for (number, line) in self.lines.iter().enumerate() {
            let height = if line.strides.is_some() { 42 } else { 30 };
            if line.result {
                y = self.draw_omitted(canvas, y);
                if number > 0 {
                    canvas.path("sc-line", &format!("M{MARGIN} {y}H{}", self.right));
                    y += 12;
                }
            }
            self.draw_line(canvas, line, y, height);
            for (entry, shown) in self.entries(line) {
                if shown && !key.contains(&entry) {
                    key.push(entry);
                }
            }
            y += height + SPACE;
        }
        if self.table.result.is_none() {
            y = self.draw_omitted(canvas, y);
        }
        self.draw_carets(canvas, y);
        let strided = self.lines.iter().any(|line| line.strides.is_some());
        let lines = ["stride: how far apart neighbours are stored; 0 shows one value again"];
        notes::key(canvas, &key, if strided { &lines } else { &[] });
    }

    /// The axes, counted from both ends.
    fn draw_head(&self, canvas: &mut Canvas, y: usize) {
        let rank = self.table.axes.len();
        for &(slot, x, width) in &self.columns {
            let middle = x + width / 2;
            match slot {
                Slot::Gap => canvas.text(Font::Tick, middle, y + 14, "…"),
                Slot::At(axis) => {
                    let name = self.table.axes.get(axis).map_or("", String::as_str);
                    canvas.text(Font::Tick, middle, y + 8, &format!("axis {}", clip(name, SIZE)));
                    canvas.text(Font::Tick, middle, y + 22, &format!("(-{})", rank - axis));
                }
            }
        }
    }

    fn draw_omitted(&self, canvas: &mut Canvas, y: usize) -> usize {
        match self.table.omitted {
            0 => y,
            more => {
                canvas.text(Font::Small, MARGIN, y + 12, &format!("… and {more} more operands"));
                y + 26
            }
        }
    }

    fn draw_line(&self, canvas: &mut Canvas, line: &Line<'_>, y: usize, height: usize) {
        let base = y + height / 2 + 4;
        // Colours repeat after four operands; borders tell what matters.
        let class = match line.row.operand {
            Some(operand) => format!("sc-o{}", operand % 4),
            None => "sc-shape".to_owned(),
        };
        canvas.open(&class, &[]);
        canvas.text(Font::Code, MARGIN, base, &clip(&line.row.name, NAME));
        for &(slot, x, width) in &self.columns {
            let middle = x + width / 2;
            let Slot::At(axis) = slot else {
                canvas.text(Font::Cell, middle, base, "…");
                continue;
            };
            let Some(cell) = line.row.cells.get(axis) else { continue };
            let class = match cell.mark {
                _ if line.result => "sc-result",
                Mark::Kept => "sc-stored",
                Mark::Stretched | Mark::Added => "sc-virtual",
                Mark::Clash => "sc-clash",
            };
            canvas.rect(class, Area { x, y, width, height }, &[]);
            let text = cell_text(self.table, line.row, axis);
            match line.strides.as_ref().and_then(|strides| strides.get(axis)) {
                Some(stride) => {
                    canvas.text(Font::Cell, middle, y + 18, &text);
                    canvas.text(Font::Tick, middle, y + 33, &format!("stride {stride}"));
                }
                None => canvas.text(Font::Cell, middle, base, &text),
            }
        }
        canvas.text(Font::Code, self.right + 8, base, &clip_middle(&line.row.shape, SHAPE));
        canvas.close();
    }

    /// Points at every column with a clash, as the text does.
    fn draw_carets(&self, canvas: &mut Canvas, y: usize) {
        for &(slot, x, width) in &self.columns {
            let Slot::At(axis) = slot else { continue };
            let clashes =
                |row: &Row| row.cells.get(axis).map(|cell| cell.mark) == Some(Mark::Clash);
            if !self.table.rows.iter().any(clashes) {
                continue;
            }
            let middle = x + width / 2;
            let (left, right, foot) = (middle - 7, middle + 7, y + 12);
            canvas.path("sc-sign", &format!("M{middle} {y}L{right} {foot}H{left}Z"));
            canvas.text(Font::Tick, middle, y + 26, "these differ");
        }
    }

    /// What the key says of the borders in a line.
    fn entries(&self, line: &Line<'_>) -> [((&'static str, &'static str), bool); 5] {
        let drawn = |axis: &usize| self.columns.iter().any(|column| column.0 == Slot::At(*axis));
        let marks: Vec<Mark> = line
            .row
            .cells
            .iter()
            .enumerate()
            .filter(|(axis, _)| drawn(axis))
            .map(|(_, cell)| cell.mark)
            .collect();
        let has = |mark: Mark| !line.result && marks.contains(&mark);
        [
            (("sc-stored", "solid: kept as it is"), has(Mark::Kept)),
            (("sc-virtual", "dotted, 1 → n: repeated"), has(Mark::Stretched)),
            (("sc-virtual", "dotted, a point: no such axis, repeated"), has(Mark::Added)),
            (("sc-clash", "thick, ≠: these sizes clash"), has(Mark::Clash)),
            (("sc-result", "heavy: the result"), line.result && !marks.is_empty()),
        ]
    }
}

/// What stands in a cell: a size, the size it is stretched to, or a point.
fn cell_text(table: &Table, row: &Row, axis: usize) -> String {
    let Some(cell) = row.cells.get(axis) else { return String::new() };
    let result = table.result.as_ref().and_then(|result| result.cells.get(axis));
    match (cell.mark, result) {
        (Mark::Stretched, Some(result)) => clip(&format!("{} → {}", cell.text, result.text), SIZE),
        (Mark::Clash, _) => format!("≠ {}", clip(&cell.text, SIZE)),
        _ => clip(&cell.text, SIZE),
    }
}

/// As wide as its widest cell.
fn column_width(table: &Table, lines: &[Line<'_>], slot: Slot) -> usize {
    let Slot::At(axis) = slot else { return GAP_WIDTH };
    let name = table.axes.get(axis).map_or(0, |name| clip(name, SIZE).chars().count() + 5);
    let cells = lines.iter().map(|line| {
        let stride = line.strides.as_ref().and_then(|strides| strides.get(axis));
        let stride = stride.map_or(0, |stride| Font::Tick.width(&format!("stride {stride}")));
        stride.max(Font::Cell.width(&cell_text(table, line.row, axis)))
    });
    cells.chain([name * 6]).max().unwrap_or(0).max(44) + 16
}
