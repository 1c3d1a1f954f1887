//! A broadcast explained, from a plan or an error: text, SVG, HTML and JSON.

mod table;

use simulcast_core::{BroadcastError, Finding, Names, Plan, SymbolicPlan};

pub use table::{Cell, Mark, ROWS, Row, Table};

/// What is explained.
#[derive(Clone, Copy, Debug)]
pub enum Subject<'a> {
    /// Shapes that broadcast, with what is suspicious about them.
    Plan(&'a Plan, &'a [Finding]),
    /// Shapes of sizes that are not all known, which broadcast as far as can be said.
    Symbolic(&'a SymbolicPlan<'a>, &'a Names),
    /// Shapes that do not.
    Error(&'a BroadcastError),
}

impl Subject<'_> {
    /// The right-aligned table, where the rule got far enough to lay the axes out.
    #[must_use]
    pub fn table(&self) -> Option<Table> {
        match self {
            Self::Plan(plan, _) => Some(Table::of_plan(plan)),
            Self::Symbolic(plan, names) => Table::of_symbolic(plan, names),
            Self::Error(error) => Table::of_error(error),
        }
    }
}
