//! A block: one tensor of up to three axes, drawn cell by cell.
//!
//! The last axis runs across, the one before it down, the one before that from layer to layer.
//! Layers lie one below the other, each shifted to the right, so that no cell hides another.

use super::canvas::{Area, Canvas, Font};
use super::slots::Slot;
use super::text::short;

/// The space between cells.
const SPACE: usize = 4;
/// The height of a cell.
const HEIGHT: usize = 24;
/// How far a slot of left-out cells reaches.
const GAP: usize = 20;
/// How far each layer is shifted to the right.
const SHIFT: usize = 16;
/// The line that numbers the columns.
const TICKS: usize = 16;
/// The line that numbers a layer.
const LAYER: usize = 18;

/// An axis of a block: its size, and the cells that are drawn.
#[derive(Clone, Debug)]
pub(super) struct Axis {
    pub(super) size: usize,
    pub(super) slots: Vec<Slot>,
    /// What is written above the block.
    pub(super) label: String,
}

impl Axis {
    fn one() -> Self {
        Self { size: 1, slots: vec![Slot::At(0)], label: String::new() }
    }

    /// How far its cells reach, of which each takes `cell`; a size of 0 takes one.
    fn reach(&self, cell: usize) -> usize {
        self.place(self.slots.len(), cell).max(cell + SPACE) - SPACE
    }

    /// Where slot number `at` begins.
    fn place(&self, at: usize, cell: usize) -> usize {
        let before = self.slots.iter().take(at);
        before.map(|slot| if *slot == Slot::Gap { GAP } else { cell } + SPACE).sum()
    }
}

/// What a cell shows: the index of the stored value, and whether it stands for a stored one.
#[derive(Clone, Debug)]
pub(super) struct Shown {
    pub(super) own: Vec<usize>,
    pub(super) stored: bool,
}

/// Sizes that all blocks of a picture share.
#[derive(Clone, Copy, Debug)]
pub(super) struct Metrics {
    /// The width of a cell.
    pub(super) cell: usize,
    /// Whether layers are numbered.
    pub(super) layered: bool,
}

/// A block at its place.
pub(super) struct Block {
    axes: [Axis; 3],
    rank: usize,
    metrics: Metrics,
    x: usize,
    y: usize,
}

impl Block {
    /// The block whose first line, above the cells, begins at `y`.
    pub(super) fn new(mut axes: Vec<Axis>, metrics: Metrics, x: usize, y: usize) -> Self {
        let rank = axes.len().min(3);
        let mut next = || axes.pop().unwrap_or_else(Axis::one);
        let (across, down, layers) = (next(), next(), next());
        Self { axes: [layers, down, across], rank, metrics, x, y }
    }

    /// Whether it has no cells at all.
    pub(super) fn is_empty(&self) -> bool {
        self.axes.iter().any(|axis| axis.size == 0)
    }

    fn layer_height(&self) -> usize {
        let heading = if self.metrics.layered { LAYER } else { 0 };
        heading + TICKS + self.axes[1].reach(HEIGHT) + SPACE
    }

    /// Where a layer begins.
    fn layer_y(&self, at: usize) -> usize {
        self.y + self.axes[0].place(at, self.layer_height())
    }

    fn layer_x(&self, at: usize) -> usize {
        let full = self.axes[0].slots.iter().take(at).filter(|slot| **slot != Slot::Gap);
        self.x + full.count() * SHIFT
    }

    /// How wide and how high the block is.
    pub(super) fn extent(&self) -> (usize, usize) {
        let across = match self.is_empty() {
            true => self.axes[2].reach(self.metrics.cell).max(EMPTY),
            false => self.axes[2].reach(self.metrics.cell),
        };
        let layers = self.axes[0].slots.len().max(1);
        let width = self.layer_x(layers - 1) - self.x + across;
        (width, self.axes[0].reach(self.layer_height()))
    }

    /// The middle of the left and of the right end of a row.
    pub(super) fn row(&self, layer: usize, row: usize) -> [(usize, usize); 2] {
        let heading = if self.metrics.layered { LAYER } else { 0 };
        let y = self.layer_y(layer) + heading + TICKS + self.axes[1].place(row, HEIGHT);
        let (x, middle) = (self.layer_x(layer), y + HEIGHT / 2);
        let across = match self.is_empty() {
            true => self.axes[2].reach(self.metrics.cell).max(EMPTY),
            false => self.axes[2].reach(self.metrics.cell),
        };
        [(x, middle), (x + across, middle)]
    }

    /// Draws every cell. `data` names the attribute for a cell's own index, where it gets one.
    pub(super) fn draw(
        &self,
        canvas: &mut Canvas,
        data: Option<&str>,
        shown: impl Fn(&[usize]) -> Shown,
    ) {
        if self.is_empty() {
            return self.draw_empty(canvas);
        }
        let [layers, down, across] = &self.axes;
        for (l, layer) in layers.slots.iter().enumerate() {
            let Slot::At(layer) = *layer else {
                let [(x, _), _] = self.row(l, 0);
                canvas.text(Font::Cell, x + self.metrics.cell / 2, self.layer_y(l) + 14, "⋮");
                continue;
            };
            self.draw_layer_ticks(canvas, l, layer, data.is_some());
            for (r, row) in down.slots.iter().enumerate() {
                let [(left, middle), _] = self.row(l, r);
                if let (Slot::At(row), Some(_)) = (row, data) {
                    self.draw_row_tick(canvas, left, middle, *row);
                }
                for (c, column) in across.slots.iter().enumerate() {
                    let x = left + across.place(c, self.metrics.cell);
                    let (Slot::At(row), Slot::At(column)) = (*row, *column) else {
                        self.draw_gap(canvas, x, middle, *row, *column);
                        continue;
                    };
                    let index = [layer, row, column];
                    let index = &index[3 - self.rank..];
                    self.draw_cell(canvas, x, middle - HEIGHT / 2, index, data, &shown(index));
                }
            }
        }
    }

    fn draw_cell(
        &self,
        canvas: &mut Canvas,
        x: usize,
        y: usize,
        index: &[usize],
        data: Option<&str>,
        shown: &Shown,
    ) {
        let class = if shown.stored { "sc-stored" } else { "sc-virtual" };
        let (own, at) =
            (joined(&shown.own, ToString::to_string), joined(index, ToString::to_string));
        let area = Area { x, y, width: self.metrics.cell, height: HEIGHT };
        match data {
            Some(name) => canvas.rect(class, area, &[("data-x", &own), (name, &at)]),
            None => canvas.rect(class, area, &[("data-x", &own)]),
        }
        let label = joined(&shown.own, |at| short(*at));
        let label = if label.is_empty() { "()" } else { &label };
        canvas.text(Font::Cell, x + self.metrics.cell / 2, y + 16, label);
    }

    fn draw_gap(&self, canvas: &mut Canvas, x: usize, middle: usize, row: Slot, column: Slot) {
        let (sign, width, y) = match (row, column) {
            (Slot::Gap, Slot::Gap) => ("⋱", GAP, middle),
            (Slot::Gap, Slot::At(_)) => ("⋮", self.metrics.cell, middle),
            _ => ("…", GAP, middle + 4),
        };
        canvas.text(Font::Cell, x + width / 2, y, sign);
    }

    /// The number of a layer and, where the block is the result's, those of the columns.
    fn draw_layer_ticks(&self, canvas: &mut Canvas, at: usize, layer: usize, columns: bool) {
        let (x, y) = (self.layer_x(at), self.layer_y(at));
        let heading = if self.metrics.layered { LAYER } else { 0 };
        if self.rank == 3 {
            // Right above the cells, or above the numbers of their columns.
            let y = if columns { y + 12 } else { y + heading + 8 };
            canvas.text(Font::Small, x, y, &format!("layer {}", short(layer)));
        }
        if !columns || self.rank == 0 {
            return;
        }
        let across = &self.axes[2];
        for (c, column) in across.slots.iter().enumerate() {
            if let Slot::At(column) = column {
                let middle = x + across.place(c, self.metrics.cell) + self.metrics.cell / 2;
                canvas.text(Font::Tick, middle, y + heading + 10, &short(*column));
            }
        }
    }

    fn draw_row_tick(&self, canvas: &mut Canvas, left: usize, middle: usize, row: usize) {
        if self.rank < 2 {
            return;
        }
        let text = short(row);
        let x = left.saturating_sub(8 + Font::Tick.width(&text) / 2);
        canvas.text(Font::Tick, x, middle + 4, &text);
    }

    fn draw_empty(&self, canvas: &mut Canvas) {
        let [(x, middle), (right, _)] = self.row(0, 0);
        let area = Area {
            x,
            y: middle - HEIGHT / 2,
            width: right - x,
            height: self.axes[1].reach(HEIGHT),
        };
        canvas.rect("sc-empty", area, &[]);
        let y = area.y + area.height / 2 + 4;
        canvas.text(Font::Cell, x + area.width / 2, y, "0 values");
    }
}

/// The width of the outline of an empty block, at least.
const EMPTY: usize = 76;

fn joined(index: &[usize], text: impl Fn(&usize) -> String) -> String {
    index.iter().map(text).collect::<Vec<_>>().join(",")
}
