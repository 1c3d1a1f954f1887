//! The right-aligned table: one row an operand, one column a result axis.
//!
//! Text, SVG and HTML all draw this one model, so that they cannot disagree.

use std::collections::BTreeSet;

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
    /// The operand, counted from 0; `None` for the target and the result.
    pub operand: Option<usize>,
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
        for operand in 0..plan.operand_count().min(ROWS) {
            let own = plan.operand_shape(operand).unwrap_or_default();
            let sources = plan.sources(operand).unwrap_or_default();
            let cells = sources.iter().zip(shape).map(|(source, &size)| match *source {
                Source::Kept(_) => Cell { text: size.to_string(), mark: Mark::Kept },
                Source::Stretched(_) => Cell { text: "1".into(), mark: Mark::Stretched },
                Source::Added => Cell { text: ".".into(), mark: Mark::Added },
            });
            rows.push(Row {
                operand: Some(operand),
                name: plan.operand_name(operand),
                cells: cells.collect(),
                shape: Dims::from(&own[..]).to_string(),
            });
        }
        let axes = axis_names(
            shape.len(),
            plan.names(),
            |operand| plan.axes(operand).unwrap_or(&[]).iter().map(|&(_, target)| target).collect(),
            plan.operand_count(),
        );
        let dims: Vec<Dim> = shape.iter().copied().map(Dim::Size).collect();
        Self {
            axes,
            rows,
            result: Some(result_row(&Dims::from(dims))),
            omitted: plan.operand_count().saturating_sub(ROWS),
        }
    }

    /// The table of an error, where the rule got far enough to lay the axes out.
    #[must_use]
    pub fn of_error(error: &BroadcastError) -> Option<Self> {
        // The clashing operands get a row wherever they stand.
        let sides = error.clashes().iter().flat_map(|clash| match clash {
            Refusal::Clash { axis, first, second, .. } => {
                vec![(first.operand, *axis), (second.operand, *axis)]
            }
            _ => Vec::new(),
        });
        let sides: Vec<(Option<usize>, usize)> = sides.take(ROWS).collect();
        let beyond = sides.iter().filter_map(|(operand, _)| *operand).filter(|&m| m >= ROWS);
        let beyond: BTreeSet<usize> = beyond.collect();
        let mut table = Self::of_layout(error.layout()?, error.shapes(), error.names(), &beyond);
        for (operand, axis) in sides {
            let row = table.rows.iter_mut().find(|row| row.operand == operand);
            if let Some(cell) = row.and_then(|row| row.cells.get_mut(axis)) {
                cell.mark = Mark::Clash;
            }
        }
        Some(table)
    }

    /// The table of a plan over symbols, where every rank is known.
    #[must_use]
    pub fn of_symbolic(plan: &SymbolicPlan, names: &Names) -> Option<Self> {
        let mut table = Self::of_layout(plan.layout()?, plan.shapes(), names, &BTreeSet::new());
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

    /// The axes of the first operands, and of those `beyond`, where the layout puts them; nothing
    /// is known of the result.
    fn of_layout(
        layout: &Layout,
        shapes: &[Dims],
        names: &Names,
        beyond: &BTreeSet<usize>,
    ) -> Self {
        let mut rows: Vec<Row> =
            layout.target.iter().map(|target| target_row(target, layout.rank)).collect();
        let shown = |operand: &usize| *operand < ROWS || beyond.contains(operand);
        for (operand, dims) in shapes.iter().enumerate().filter(|(operand, _)| shown(operand)) {
            let mut cells = vec![Cell { text: ".".into(), mark: Mark::Added }; layout.rank];
            let targets = layout.targets.get(operand).map_or(&[][..], Vec::as_slice);
            for (dim, target) in dims.dims().unwrap_or(&[]).iter().zip(targets) {
                if let Some(cell) = target.and_then(|target| cells.get_mut(target)) {
                    *cell = Cell { text: dim.to_string(), mark: Mark::Kept };
                }
            }
            rows.push(Row {
                operand: Some(operand),
                name: names.operand(operand),
                cells,
                shape: dims.to_string(),
            });
        }
        let axes = axis_names(
            layout.rank,
            names,
            |operand| layout.targets.get(operand).cloned().unwrap_or_default(),
            shapes.len(),
        );
        let omitted = shapes.len().saturating_sub(ROWS + beyond.len());
        Self { axes, rows, result: None, omitted }
    }
}

/// Numbers, or the names that operands give to the axes; the first operand that names one decides.
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
        operand: None,
        name: "target".into(),
        cells: std::iter::repeat_n(none, padding).chain(sizes).collect(),
        shape: Dims::from(target).to_string(),
    }
}

fn result_row(dims: &Dims) -> Row {
    let cell = |dim: &Dim| Cell { text: dim.to_string(), mark: Mark::Kept };
    Row {
        operand: None,
        name: "result".into(),
        cells: dims.dims().unwrap_or(&[]).iter().map(cell).collect(),
        shape: dims.to_string(),
    }
}
