//! A broadcast explained, from a plan or an error: text, SVG, HTML and JSON; and findings in the formats of
//! editors and continuous integration.
//!
//! Text, SVG and HTML draw one [`Table`] and print one cost line, so that they cannot disagree; JSON is
//! the plan's or the error's own data.
//!
//! ```
//! use simulcast_core::{Limits, Rule, resolve};
//! use simulcast_explain::{Subject, TextOptions, text};
//!
//! let plan = resolve(Rule::Numpy, &[&[8, 1, 6, 1][..], &[7, 1, 5]])?;
//! let findings = plan.findings(&Limits::default());
//! let said = text(&Subject::Plan(&plan, &findings), TextOptions::default());
//! assert!(said.contains("A repeats along 1 and 3, B along 0 and 2"));
//! # Ok::<(), simulcast_core::BroadcastError>(())
//! ```

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod cost;
mod formats;
mod html;
mod json;
mod messages;
mod plain;
mod svg;
mod table;
mod text;

use simulcast_core::{BroadcastError, Finding, Names, Outcome, Plan, SymbolicPlan};

pub use formats::{
    Baseline, BaselineError, FINDINGS_SCHEMA, Format, Notice, Position, Severity, TextEdit,
    fingerprints, format_notices, report_path,
};
pub use html::{Section, fragment, page, report};
pub use json::{SCHEMA, constraint_json, dims_json, error_json, json, refusal_json};
pub use messages::{Clash, Library, Message, Place, read_messages};
pub use plain::{human_bytes, list_with_and, terminal_safe};
pub use svg::{picture, picture_css, svg};
pub use table::{Cell, Mark, ROWS, Row, Table};
pub use text::{TextOptions, text, width};

/// What is explained.
#[derive(Clone, Copy, Debug)]
pub enum Subject<'a> {
    /// Shapes that broadcast, with what is suspicious about them.
    Plan(&'a Plan, &'a [Finding]),
    /// Shapes of sizes that are not all known, which broadcast as far as can be said; with what is
    /// suspicious about them.
    Symbolic(&'a SymbolicPlan, &'a Names, &'a [Finding]),
    /// Shapes that do not.
    Error(&'a BroadcastError),
}

impl<'a> Subject<'a> {
    /// An outcome with the findings that are to be shown.
    #[must_use]
    pub fn of(outcome: &'a Outcome, names: &'a Names, findings: &'a [Finding]) -> Self {
        match outcome {
            Outcome::Plan(plan) => Self::Plan(plan, findings),
            Outcome::Symbolic(plan) => Self::Symbolic(plan, names, findings),
            Outcome::Error(error) => Self::Error(error),
        }
    }
}

impl Subject<'_> {
    /// The right-aligned table, where the rule got far enough to lay the axes out.
    #[must_use]
    pub fn table(&self) -> Option<Table> {
        match self {
            Self::Plan(plan, _) => Some(Table::of_plan(plan)),
            Self::Symbolic(plan, names, _) => Table::of_symbolic(plan, names),
            Self::Error(error) => Table::of_error(error),
        }
    }
}
