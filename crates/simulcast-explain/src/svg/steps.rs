//! The two steps, cell by cell: X as stored, Y with its axes lined up, Z repeated to the result.
//!
//! These are the figures of the Broadcast specification. Step 1 gives every operand the result's
//! rank, with axes of size 1; step 2 repeats along them. Links show the function f of step 2, row
//! by row: `Z[i] = Y[f(i)]`, where f takes an index to 0 on a repeated axis and leaves it otherwise.

use simulcast_core::{Plan, Source, format_shape};

use super::block::{Axis, Block, Metrics, Shown};
use super::canvas::{Area, Canvas, Font, MARGIN};
use super::notes;
use super::slots::{Slot, slots};
use super::text::{NAME, clip, clip_middle, short};
use super::words::story;
use crate::Table;

/// The most operands and axes that are drawn cell by cell.
const OPERANDS: usize = 4;
const RANK: usize = 3;
/// Room for the arrow of step 1.
const ARROW: usize = 64;
/// Room for the links of step 2, and for the numbers of the rows they lead to.
const LINKS: usize = 132;
/// The height of a line above a block.
const LINE: usize = 16;

/// Whether a plan is small enough to be drawn cell by cell.
pub(crate) fn fits(plan: &Plan) -> bool {
    let operands = plan.operand_count();
    let rank = |operand| plan.axes(operand).map_or(0, <[_]>::len);
    (1..=OPERANDS).contains(&operands)
        && plan.shape().len() <= RANK
        && (0..operands).all(|operand| rank(operand) <= RANK)
}

/// One operand: the axes of X, Y and Z.
struct Band {
    operand: usize,
    own: Vec<(usize, Option<usize>)>,
    sources: Vec<Source>,
    axes: [Vec<Axis>; 3],
}

/// What stands above an operand.
struct Head {
    title: String,
    story: String,
}

impl Head {
    /// Where the story begins, after the title.
    fn indent(&self) -> usize {
        Font::Code.width(&self.title) + 16
    }

    fn width(&self) -> usize {
        self.indent() + Font::Small.width(&self.story)
    }

    fn draw(&self, canvas: &mut Canvas, x: usize, y: usize) {
        canvas.text(Font::Code, x, y, &self.title);
        canvas.text(Font::Small, x + self.indent(), y, &self.story);
    }
}

/// Draws every operand.
pub(super) fn draw(canvas: &mut Canvas, plan: &Plan) {
    let names = Table::of_plan(plan).axes;
    let metrics = metrics(plan);
    let caps = caps(plan.shape().len(), metrics.cell);
    let bands: Vec<Band> =
        (0..plan.operand_count()).map(|operand| Band::new(plan, operand, &names, &caps)).collect();
    let column = |stage: usize| {
        let wide = bands.iter().map(|band| band.width(stage, metrics));
        wide.max().unwrap_or(0).max(Font::Small.width(HEADS[stage].1))
    };
    let x = MARGIN + 12;
    let y = x + column(0) + ARROW;
    let z = y + column(1) + LINKS;
    let places = [x, y, z];
    let heads = bands.iter().map(|band| x + band.head(plan, &names).width());
    let right = heads.max().unwrap_or(0).max(z + column(2)) + 12;
    draw_heads(canvas, places);
    for band in &bands {
        band.draw(canvas, plan, &names, metrics, places, right);
    }
    let size = |axis: &Axis| axis.size;
    let empty = |axes: &Vec<Axis>| axes.iter().map(size).any(|size| size == 0);
    let repeats = |band: &Band| !empty(&band.axes[2]) && band.fills(plan) != "1";
    let mut key = vec![("sc-stored", "solid: a stored value")];
    if bands.iter().any(repeats) {
        key.push(("sc-virtual", "dotted: a stored value shown again, never copied"));
    }
    if bands.iter().flat_map(|band| &band.axes).any(empty) {
        key.push(("sc-empty", "dashed: no values"));
    }
    let lines = [
        "A cell is labelled with the index of the stored value that it shows.",
        "f takes an index to 0 on a repeated axis and leaves it as it is on any other.",
    ];
    notes::key(canvas, &key, &lines);
}

const HEADS: [(&str, &str); 3] =
    [("X", "as stored"), ("Y", "step 1: axes lined up"), ("Z", "step 2: repeated")];

fn draw_heads(canvas: &mut Canvas, places: [usize; 3]) {
    let y = canvas.bottom() + 26;
    for ((name, words), x) in HEADS.iter().zip(places) {
        canvas.text(Font::Title, x, y, name);
        canvas.text(Font::Small, x, y + 18, words);
    }
    let [_, _, z] = places;
    canvas.text(Font::Cell, z.saturating_sub(LINKS / 2), y + 18, "Z[i] = Y[f(i)]");
    canvas.reach(0, y + 22);
}

/// Cells as wide as the longest index.
fn metrics(plan: &Plan) -> Metrics {
    let label = |operand| {
        let own = plan.axes(operand).unwrap_or(&[]);
        let index = own.iter().map(|&(size, _)| short(size.saturating_sub(1)));
        Font::Cell.width(&index.collect::<Vec<_>>().join(","))
    };
    let widest = (0..plan.operand_count()).map(label).max().unwrap_or(0);
    Metrics { cell: (widest + 12).max(32), layered: plan.shape().len() == 3 }
}

/// How many cells are drawn along each result axis: fewer where there are layers of them, or where
/// they are wide.
fn caps(rank: usize, cell: usize) -> Vec<usize> {
    let across = (420 / cell).clamp(4, 8);
    let all: [usize; 3] = if rank == 3 { [3, 5, across] } else { [8, 8, across] };
    all[3 - rank.min(3)..].to_vec()
}

impl Band {
    fn new(plan: &Plan, operand: usize, names: &[String], caps: &[usize]) -> Self {
        let own = plan.axes(operand).unwrap_or(&[]).to_vec();
        let sources = plan.sources(operand).unwrap_or_default();
        let cap = |target: usize| caps.get(target).copied().unwrap_or(8);
        let x = own.iter().enumerate().map(|(axis, &(size, target))| {
            let number = axis.to_string();
            let name = plan.names().axis(operand, axis).unwrap_or(&number);
            let dropped = if target.is_none() { ", dropped" } else { "" };
            let label = format!("{}{dropped}", label(own.len(), axis, name, &size.to_string()));
            Axis { size, slots: slots(size, target.map_or(8, cap)), label }
        });
        let rank = sources.len();
        let named = |axis: usize| names.get(axis).map_or("", String::as_str);
        let all = || sources.iter().zip(plan.shape()).enumerate();
        let y = all().map(|(axis, (source, &size))| {
            let (size, note) = match source {
                Source::Kept(_) => (size, ""),
                Source::Stretched(_) => (1, ""),
                Source::Added => (1, ", added"),
            };
            let label = format!("{}{note}", label(rank, axis, named(axis), &size.to_string()));
            Axis { size, slots: slots(size, cap(axis)), label }
        });
        let z = all().map(|(axis, (source, &size))| {
            let from = if source.repeats(size) { "1 → " } else { "" };
            let label = label(rank, axis, named(axis), &format!("{from}{size}"));
            Axis { size, slots: slots(size, cap(axis)), label }
        });
        let axes = [x.collect(), y.collect(), z.collect()];
        Self { operand, own, axes, sources }
    }

    fn block(&self, stage: usize, metrics: Metrics, x: usize, y: usize) -> Block {
        Block::new(self.axes[stage].clone(), metrics, x, y)
    }

    /// How wide a stage is, with the lines above it.
    fn width(&self, stage: usize, metrics: Metrics) -> usize {
        let labels = self.axes[stage].iter().map(|axis| Font::Small.width(&axis.label));
        let (width, _) = self.block(stage, metrics, 0, 0).extent();
        labels.max().unwrap_or(0).max(width)
    }

    /// Draws the operand below what is there.
    fn draw(
        &self,
        canvas: &mut Canvas,
        plan: &Plan,
        names: &[String],
        metrics: Metrics,
        places: [usize; 3],
        right: usize,
    ) {
        let top = canvas.bottom() + 14;
        let lines = plan.shape().len().max(self.own.len()) * LINE;
        let y = top + 40 + lines;
        let blocks = [0, 1, 2].map(|stage| self.block(stage, metrics, places[stage], y));
        let height = blocks.iter().map(|block| block.extent().1).max().unwrap_or(0);
        let width = right - MARGIN;
        let name = plan.operand_name(self.operand);
        let class = format!("sc-o{}", self.operand);
        canvas
            .open(&class, &[("data-name", &clip(&name, NAME)), ("data-fills", &self.fills(plan))]);
        let area = Area { x: MARGIN, y: top, width, height: y + height + 14 - top };
        canvas.rect("sc-band", area, &[]);
        self.head(plan, names).draw(canvas, places[0], top + 24);
        for (axes, x) in self.axes.iter().zip(places) {
            let first = y - axes.len() * LINE;
            for (line, axis) in axes.iter().enumerate() {
                canvas.text(Font::Small, x, first + line * LINE + 4, &axis.label);
            }
        }
        let [x, aligned, z] = &blocks;
        draw_arrow(canvas, x, aligned);
        self.draw_links(canvas, aligned, z);
        canvas.open("sc-x", &[]);
        x.draw(canvas, None, |index| Shown { own: index.to_vec(), stored: true });
        canvas.close();
        canvas.open("sc-y", &[]);
        aligned.draw(canvas, None, |index| Shown { own: self.own_index(index), stored: true });
        canvas.close();
        canvas.open("sc-z", &[]);
        z.draw(canvas, Some("data-z"), |index| {
            let own = plan.source_index(self.operand, index).unwrap_or_default();
            Shown { own, stored: self.is_stored(plan, index) }
        });
        canvas.close();
        canvas.close();
    }

    /// The name, the shape, and what happens to it.
    fn head(&self, plan: &Plan, names: &[String]) -> Head {
        let shape: Vec<usize> = self.own.iter().map(|&(size, _)| size).collect();
        let name = clip(&plan.operand_name(self.operand), NAME);
        let title = format!("{name} {}", clip_middle(&format_shape(&shape), 48));
        Head { title, story: story(plan, self.operand, names) }
    }

    /// The index in X of what Y shows at `index`.
    fn own_index(&self, index: &[usize]) -> Vec<usize> {
        let at = |target: Option<usize>| target.and_then(|target| index.get(target).copied());
        self.own
            .iter()
            .map(|&(size, target)| if size == 1 { 0 } else { at(target).unwrap_or(0) })
            .collect()
    }

    /// Whether Z shows a stored value there for the first time.
    fn is_stored(&self, plan: &Plan, index: &[usize]) -> bool {
        let all = self.sources.iter().zip(plan.shape()).zip(index);
        all.into_iter().all(|((source, &size), &at)| at == 0 || !source.repeats(size))
    }

    /// How many result cells show each value; nothing where they cannot be counted.
    fn fills(&self, plan: &Plan) -> String {
        let repeated = self.sources.iter().zip(plan.shape()).filter(|(s, size)| s.repeats(**size));
        let count = repeated.map(|(_, &size)| size).try_fold(1_usize, usize::checked_mul);
        count.map_or(String::new(), |count| count.to_string())
    }

    /// A link from each row of Z to the row of Y that it shows: dotted where it is shown again.
    fn draw_links(&self, canvas: &mut Canvas, y: &Block, z: &Block) {
        if y.is_empty() || z.is_empty() {
            return;
        }
        let rank = self.sources.len();
        let slots = |back: usize| match rank.checked_sub(back) {
            Some(axis) => (self.axes[2][axis].slots.clone(), self.axes[1][axis].size == 1),
            None => (vec![Slot::At(0)], true),
        };
        let ((layers, one_layer), (rows, one_row)) = (slots(3), slots(2));
        for (l, layer) in layers.iter().enumerate() {
            for (r, row) in rows.iter().enumerate() {
                if *layer == Slot::Gap || *row == Slot::Gap {
                    continue;
                }
                let from = (if one_layer { 0 } else { l }, if one_row { 0 } else { r });
                let [_, (x1, y1)] = y.row(from.0, from.1);
                let [(left, y2), _] = z.row(l, r);
                let tick = match row {
                    Slot::At(row) if rank > 1 => Font::Tick.width(&short(*row)) + 8,
                    _ => 0,
                };
                let (x1, x2) = (x1 + 6, left.saturating_sub(tick + 6));
                let class = if from == (l, r) { "sc-link" } else { "sc-again" };
                let bend = (x1 + x2) / 2;
                canvas.path(class, &format!("M{x1} {y1}C{bend} {y1} {bend} {y2} {x2} {y2}"));
            }
        }
    }
}

fn draw_arrow(canvas: &mut Canvas, from: &Block, to: &Block) {
    let ([_, (x1, y1)], [(x2, y2), _]) = (from.row(0, 0), to.row(0, 0));
    let (x1, x2) = (x1 + 8, x2.saturating_sub(8));
    let neck = x2.saturating_sub(8);
    canvas.path("sc-link", &format!("M{x1} {y1}L{neck} {y2}"));
    let (upper, lower) = (y2 - 5, y2 + 5);
    canvas.path("sc-head", &format!("M{x2} {y2}L{neck} {upper}V{lower}Z"));
}

/// `axis 1 (across): 4`.
fn label(rank: usize, axis: usize, name: &str, size: &str) -> String {
    let way = match rank - axis {
        1 => "across",
        2 => "down",
        _ => "layers",
    };
    format!("axis {} ({way}): {size}", clip(name, NAME))
}
