//! The right-aligned table: one row an operand, one column a result axis.
//!
//! Text, SVG and HTML all draw this one model, so that they cannot disagree.

use simulcast_core::{
    BroadcastError, Dim, Dims, Layout, Names, Plan, Refusal, Source, SymbolicPlan,
};

/// What a cell of the table stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// A size that the operand has and the result keeps.
    Kept,
    /// A 1 that is repeated.
    Stretched,
    /// No axis: the operand is repeated along it.
    Added,
    /// A size that clashes.
    Clash,
}

/// A size in the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    /// The size, or `.` where there is no axis.
    pub text: String,
    /// What it stands for.
    pub mark: Mark,
}

/// An operand, the target of a rule, or the result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// What it is called.
    pub name: String,
    /// One cell for each result axis.
    pub cells: Vec<Cell>,
    /// The whole shape, as it was given.
    pub shape: String,
}

/// The right-aligned table of a broadcast.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// The names of the result axes: numbers, or names where axes meet by name.
    pub axes: Vec<String>,
    /// The operands, and before them the target that the rule carries.
    pub rows: Vec<Row>,
    /// The result, where there is one.
    pub result: Option<Row>,
    /// How many operands were left out.
    pub omitted: usize,
}

/// At most this many operands get a row.
pub const ROWS: usize = 16;

impl Table {
    /// The table of a plan.
    #[must_use]
    pub fn of_plan(plan: &Plan) -> Self {
        let shape = plan.shape();
        let mut rows: Vec<Row> =
            plan.target().map(|target| target_row(target, shape.len())).into_iter().collect();
        for operand in 0..plan.operands().min(ROWS) {
            let own = plan.operand_shape(operand).unwrap_or_default();
            let sources = plan.sources(operand).unwrap_or_default();
            let cells = sources.iter().zip(shape).map(|(source, &size)| match *source {
                Source::Kept(_) => Cell { text: size.to_string(), mark: Mark::Kept },
                Source::Stretched(_) => Cell { text: "1".into(), mark: Mark::Stretched },
                Source::Added => Cell { text: ".".into(), mark: Mark::Added },
            });
            rows.push(Row {
                name: plan.operand_name(operand),
                cells: cells.collect(),
                shape: Dims::from(&own[..]).to_string(),
            });
        }
        let axes = axis_names(
            shape.len(),
            plan.names(),
            |operand| plan.axes(operand).unwrap_or(&[]).iter().map(|&(_, target)| target).collect(),
            plan.operands(),
        );
        let dims: Vec<Dim> = shape.iter().copied().map(Dim::Size).collect();
        Self {
            axes,
            rows,
            result: Some(result_row(&Dims::from(dims))),
            omitted: plan.operands().saturating_sub(ROWS),
        }
    }

    /// The table of an error, where the rule got far enough to lay the axes out.
    #[must_use]
    pub fn of_error(error: &BroadcastError) -> Option<Self> {
        let mut table = Self::of_layout(error.layout()?, error.shapes(), error.names());
        for clash in error.clashes() {
            let Refusal::Clash { axis, first, second, .. } = clash else { continue };
            for operand in [first.operand, second.operand] {
                let target = usize::from(error.layout()?.target.is_some());
                let row = operand.map_or(0, |operand| operand + target);
                let cell = table.rows.get_mut(row).and_then(|row| row.cells.get_mut(*axis));
                if let Some(cell) = cell {
                    cell.mark = Mark::Clash;
                }
            }
        }
        Some(table)
    }

    /// The table of a plan over symbols, where every rank is known.
    #[must_use]
    pub fn of_symbolic(plan: &SymbolicPlan<'_>, names: &Names) -> Option<Self> {
        let mut table = Self::of_layout(plan.layout()?, plan.operands(), names);
        let result = plan.shape().dims()?;
        for row in &mut table.rows {
            for (cell, dim) in row.cells.iter_mut().zip(result) {
                if (cell.text.as_str(), cell.mark) == ("1", Mark::Kept) && dim.size() != Some(1) {
                    cell.mark = Mark::Stretched;
                }
            }
        }
        table.result = Some(result_row(plan.shape()));
        Some(table)
    }

    /// Every operand's axes where the layout puts them; nothing is known of the result.
    fn of_layout(layout: &Layout, shapes: &[Dims], names: &Names) -> Self {
        let mut rows: Vec<Row> =
            layout.target.iter().map(|target| target_row(target, layout.rank)).collect();
        for (operand, dims) in shapes.iter().enumerate().take(ROWS) {
            let mut cells = vec![Cell { text: ".".into(), mark: Mark::Added }; layout.rank];
            let targets = layout.targets.get(operand).map_or(&[][..], Vec::as_slice);
            for (dim, target) in dims.dims().unwrap_or(&[]).iter().zip(targets) {
                if let Some(cell) = target.and_then(|target| cells.get_mut(target)) {
                    *cell = Cell { text: dim.to_string(), mark: Mark::Kept };
                }
            }
            rows.push(Row { name: names.operand(operand), cells, shape: dims.to_string() });
        }
        let axes = axis_names(
            layout.rank,
            names,
            |operand| layout.targets.get(operand).cloned().unwrap_or_default(),
            shapes.len(),
        );
        Self { axes, rows, result: None, omitted: shapes.len().saturating_sub(ROWS) }
    }
}

/// Numbers, or the names that operands give to the axes where all that name one agree.
fn axis_names(
    rank: usize,
    names: &Names,
    targets: impl Fn(usize) -> Vec<Option<usize>>,
    operands: usize,
) -> Vec<String> {
    let mut axes: Vec<String> = (0..rank).map(|axis| axis.to_string()).collect();
    let named = names.axes.iter().take(operands).enumerate();
    for (operand, own) in named.rev() {
        for (name, target) in own.iter().zip(targets(operand)) {
            if let Some(axis) = target.and_then(|target| axes.get_mut(target))
                && !name.is_empty()
            {
                axis.clone_from(name);
            }
        }
    }
    axes
}

fn target_row(target: &[usize], rank: usize) -> Row {
    let padding = rank.saturating_sub(target.len());
    let none = Cell { text: ".".into(), mark: Mark::Added };
    let sizes = target.iter().map(|size| Cell { text: size.to_string(), mark: Mark::Kept });
    Row {
        name: "target".into(),
        cells: std::iter::repeat_n(none, padding).chain(sizes).collect(),
        shape: Dims::from(target).to_string(),
    }
}

fn result_row(dims: &Dims) -> Row {
    let cell = |dim: &Dim| Cell { text: dim.to_string(), mark: Mark::Kept };
    Row {
        name: "result".into(),
        cells: dims.dims().unwrap_or(&[]).iter().map(cell).collect(),
        shape: dims.to_string(),
    }
}
