//! The table of operators: one row for each, from which inference, checks, runs and
//! `docs/reference/onnx-operators.md` come.
//!
//! ```text
//! "Concat"   4   "T* -> T"   infer concat   run whole(run::concat)   [moves_all];
//!  name    since  types       shape rule     code on arrays           properties
//! ```
//!
//! A family is one file with its rows and shape rules, and beside it `run.rs` with its code on
//! arrays. Types are written as in the operator's schema: inputs, an arrow, outputs. A capitalised
//! word is a type variable, and equal words are equal types: one that begins with `F` is a float type,
//! with `I` an integer type, with `N` one of both, and others are any; another word is an element type, or
//! `index` (int32 or int64); `_` is anything. `?` marks an input that may be left out in some opset,
//! `*` one that repeats. Which types of a class an opset takes is `operators/types.txt`. `docs/contributing/adding-an-operator.md` adds one.

pub(crate) mod attributes;
mod contrib;
mod control;
mod elementwise;
mod image;
mod index;
mod machine_learning;
mod make;
mod normalize;
mod product;
mod quantize;
mod recurrent;
mod reduce;
mod shape;
mod signal;
pub(crate) mod types;
mod window;

use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::sync::LazyLock;

use simulcast_core::Rule;

use crate::infer::{InferNode, Results};
#[cfg(feature = "run")]
use crate::run::{Code, Refusal};

#[cfg(feature = "run")]
pub(crate) use make::run::constant;

/// The shape rule of an operator.
pub(crate) type Infer = for<'c, 'f, 'm> fn(&mut InferNode<'c, 'f, 'm>) -> Results;

/// An operator.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) name: &'static str,
    /// The empty text for the standard domain.
    pub(crate) domain: &'static str,
    /// The first version of the domain that has it.
    pub(crate) since: i64,
    /// The element types of inputs and outputs.
    pub(crate) types: &'static str,
    pub(crate) infer: Option<Infer>,
    #[cfg(feature = "run")]
    pub(crate) code: Option<Code>,
    /// Why one use of the operator cannot run, though others can.
    #[cfg(feature = "run")]
    pub(crate) refuses: Option<Refusal>,
    pub(crate) runs: Runs,
    /// The first opset whose form of the operator runs.
    pub(crate) runs_since: i64,
    /// The number of inputs that the code takes, where that is less than the operator has.
    takes: Option<(usize, usize)>,
    pub(crate) broadcasts: Broadcasts,
    /// Whether each element of the result depends on the elements of the operands at its place alone.
    pub(crate) elementwise: bool,
    moves: Moves,
    /// Whether the result of text is something else than text.
    pub(crate) loses_text: bool,
    /// Whether it folds axes of its first input into one element.
    pub(crate) reduces: bool,
}

/// How the shapes of an operator's inputs are brought together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Broadcasts {
    No,
    /// By NumPy's rule.
    Numpy,
    /// By NumPy's rule since opset 7; before, equal shapes, or with `broadcast=1` the second operand
    /// laid onto the first from `axis`.
    SinceSeven,
    /// By NumPy's rule since opset 8; before, equal shapes.
    SinceEight,
    /// The others laid onto the first, never the other way.
    Unidirectional,
    /// The second laid onto the first, never the other way. Before opset 7 a slope of more than one
    /// element is one for each channel.
    Slope,
}

/// Whether an operator has code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Runs {
    Not,
    /// As steps of a program, which operators that follow each other share.
    Fused,
    /// On arrays.
    Alone,
}

/// The words of rows.
impl Runs {
    const fn steps() -> Self {
        Self::Fused
    }

    const fn whole() -> Self {
        Self::Alone
    }

    const fn whole_unless() -> Self {
        Self::Alone
    }
}

/// The inputs whose elements an operator moves without computing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Moves {
    Nothing,
    Inputs(&'static [usize]),
    All,
}

impl Row {
    const fn new(
        domain: &'static str,
        name: &'static str,
        since: i64,
        types: &'static str,
        infer: Option<Infer>,
    ) -> Self {
        Self {
            name,
            domain,
            since,
            types,
            infer,
            #[cfg(feature = "run")]
            code: None,
            #[cfg(feature = "run")]
            refuses: None,
            runs: Runs::Not,
            runs_since: 1,
            takes: None,
            broadcasts: Broadcasts::No,
            elementwise: false,
            moves: Moves::Nothing,
            loses_text: false,
            reduces: false,
        }
    }

    const fn runs(mut self, runs: Runs) -> Self {
        self.runs = runs;
        self
    }

    #[cfg(feature = "run")]
    const fn steps(mut self, steps: crate::run::Steps) -> Self {
        self.code = Some(Code::Steps(steps));
        self
    }

    #[cfg(feature = "run")]
    const fn whole(mut self, whole: crate::run::Whole) -> Self {
        self.code = Some(Code::Whole(whole));
        self
    }

    #[cfg(feature = "run")]
    const fn whole_unless(mut self, whole: crate::run::Whole, refuses: Refusal) -> Self {
        self.code = Some(Code::Whole(whole));
        self.refuses = Some(refuses);
        self
    }

    const fn runs_since(mut self, opset: i64) -> Self {
        self.runs_since = opset;
        self
    }

    const fn takes(mut self, least: usize, most: usize) -> Self {
        self.takes = Some((least, most));
        self
    }

    const fn by(mut self, broadcasts: Broadcasts) -> Self {
        self.broadcasts = broadcasts;
        self
    }

    const fn elementwise(mut self) -> Self {
        self.elementwise = true;
        self
    }

    const fn moves(mut self, inputs: &'static [usize]) -> Self {
        self.moves = Moves::Inputs(inputs);
        self
    }

    const fn moves_all(mut self) -> Self {
        self.moves = Moves::All;
        self
    }

    const fn loses_text(mut self) -> Self {
        self.loses_text = true;
        self
    }

    const fn reduces(mut self) -> Self {
        self.reduces = true;
        self
    }

    /// How many inputs the operator has, over all opsets.
    pub(crate) fn inputs(&self) -> RangeInclusive<usize> {
        let signature = Signature::of(self.types);
        let least = signature.inputs.iter().filter(|input| !input.optional).count();
        let repeats = signature.inputs.last().is_some_and(|input| input.repeats);
        least..=if repeats { usize::MAX } else { signature.inputs.len() }
    }

    /// How many inputs its code takes.
    #[cfg(feature = "run")]
    pub(crate) fn taken(&self) -> RangeInclusive<usize> {
        self.takes.map_or_else(|| self.inputs(), |(least, most)| least..=most)
    }

    /// The inputs whose elements the operator moves without computing.
    #[cfg_attr(not(feature = "run"), allow(dead_code, reason = "only runs read it"))]
    pub(crate) fn moved(&self, inputs: usize) -> Vec<usize> {
        match self.moves {
            Moves::Nothing => Vec::new(),
            Moves::Inputs(own) => own.to_vec(),
            Moves::All => (0..inputs).collect(),
        }
    }

    /// The rule of the operator at an opset; `attribute` gives integers by name.
    pub(crate) fn rule(
        &self,
        opset: i64,
        rank: usize,
        attribute: impl Fn(&str) -> Option<i64>,
    ) -> Rule<'static> {
        match (self.broadcasts, opset) {
            (Broadcasts::SinceEight, ..8) => Rule::Exact,
            (Broadcasts::SinceSeven, ..7) => match attribute("broadcast") {
                Some(1..) => {
                    let axis = attribute("axis").and_then(|axis| isize::try_from(axis).ok());
                    Rule::Legacy { axis }
                }
                _ => Rule::Exact,
            },
            (Broadcasts::Slope, ..7) => Rule::Legacy { axis: (rank > 1).then_some(1) },
            (Broadcasts::Slope | Broadcasts::Unidirectional, _) => Rule::Unidirectional,
            _ => Rule::Numpy,
        }
    }

    /// What the page of operators says of its inputs' shapes.
    fn broadcasts_text(&self) -> &'static str {
        match self.broadcasts {
            Broadcasts::No => "",
            Broadcasts::Numpy => "`numpy`",
            Broadcasts::SinceSeven => "`numpy`; before 7 `legacy`",
            Broadcasts::SinceEight => "`numpy`; before 8 `exact`",
            Broadcasts::Unidirectional => "`unidirectional`",
            Broadcasts::Slope => "`unidirectional`; before 7 `legacy`",
        }
    }
}

/// The element types of an operator's inputs and outputs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Signature {
    pub(crate) inputs: Vec<Typed>,
    pub(crate) outputs: Vec<Typed>,
}

/// An input or output in a signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Typed {
    pub(crate) word: &'static str,
    pub(crate) optional: bool,
    pub(crate) repeats: bool,
}

impl Signature {
    pub(crate) fn of(types: &'static str) -> Self {
        let typed = |word: &'static str| Typed {
            word: word.trim_end_matches(['?', '*']),
            optional: word.ends_with('?'),
            repeats: word.ends_with('*'),
        };
        let (inputs, outputs) = types.split_once("->").unwrap_or((types, ""));
        let [inputs, outputs] =
            [inputs, outputs].map(|side| side.split_whitespace().map(typed).collect());
        Self { inputs, outputs }
    }

    /// The type of an input; of those that repeat, that of all of them.
    pub(crate) fn input(&self, input: usize) -> Option<Typed> {
        let last = self.inputs.last().filter(|last| last.repeats);
        self.inputs.get(input).or(last).copied()
    }

    pub(crate) fn output(&self, output: usize) -> Option<Typed> {
        let last = self.outputs.last().filter(|last| last.repeats);
        self.outputs.get(output).or(last).copied()
    }
}

/// Rows of a family: `name since types`, then `infer RULE`, `run KIND(CODE)` and `[properties]`,
/// each where there is one.
macro_rules! rows {
    ($domain:literal, $name:ident: $($op:literal $since:literal $types:literal
        $(infer $infer:ident)? $(run $kind:ident($($code:expr),+))?
        $([$($property:ident $(($($argument:expr),*))?),*])?;)*) => {
        pub(super) const $name: &[$crate::operators::Row] = &[$({
            #[allow(unused_mut, unused_assignments, reason = "a row may have no rule")]
            let mut infer: Option<$crate::operators::Infer> = None;
            $(infer = Some(|node| node.$infer());)?
            let row = $crate::operators::Row::new($domain, $op, $since, $types, infer);
            $(let row = row.runs($crate::operators::Runs::$kind());
            #[cfg(feature = "run")]
            let row = row.$kind($($code),+);)?
            $($(let row = row.$property($($($argument),*)?);)*)?
            row
        }),*];
    };
}
use rows;

const FAMILIES: &[&[Row]] = &[
    elementwise::ROWS,
    shape::ROWS,
    index::ROWS,
    make::ROWS,
    reduce::ROWS,
    normalize::ROWS,
    product::ROWS,
    window::ROWS,
    image::ROWS,
    signal::ROWS,
    recurrent::ROWS,
    quantize::ROWS,
    control::ROWS,
    machine_learning::ROWS,
    contrib::STANDARD,
    contrib::ROWS,
    contrib::BLOCKED,
    quantize::CONTRIB,
    recurrent::CONTRIB,
];

/// Every operator.
pub(crate) fn all() -> impl Iterator<Item = &'static Row> {
    FAMILIES.iter().flat_map(|family| family.iter())
}

/// The row of an operator.
pub(crate) fn find(domain: &str, name: &str) -> Option<&'static Row> {
    static BY_NAME: LazyLock<HashMap<(&str, &str), &Row>> =
        LazyLock::new(|| all().map(|row| ((row.domain, row.name), row)).collect());
    BY_NAME.get(&(domain, name)).copied()
}

/// The page of operators, in Markdown.
#[must_use]
pub fn operators_page() -> String {
    let mut page = String::from(
        "# ONNX operators\n\n\
         Generated from the table of operators (`crates/simulcast-onnx/src/operators.rs`) by `cargo xtask operators`.\n\n\
         *Shapes* says whether `simulcast onnx infer` and `check` know what the operator makes of shapes; of the others, \
         what the\nfile declares stands. *Runs* says whether `simulcast onnx run` has code for it: `fused` operators that \
         follow each other are one\nprogram. Convolutions, pools and recurrent layers do not run; ONNX Runtime is the tool \
         for these. *Inputs* counts those of all opsets.\n",
    );
    let mut domains: Vec<&str> = all().map(|row| row.domain).collect();
    domains.sort_unstable();
    domains.dedup();
    for domain in domains {
        let title = if domain.is_empty() { "The standard domain" } else { domain };
        let mut rows: Vec<&Row> = all().filter(|row| row.domain == domain).collect();
        rows.sort_unstable_by_key(|row| row.name);
        let runs = rows.iter().filter(|row| row.runs != Runs::Not).count();
        page += &format!(
            "\n## {title}\n\n{} operators, {runs} of them run.\n\n\
             | operator | since | inputs | types | broadcasts | shapes | runs |\n|---|---|---|---|---|---|---|\n",
            rows.len()
        );
        for row in rows {
            let (least, most) = row.inputs().into_inner();
            let inputs = match most {
                usize::MAX => format!("{least} or more"),
                most if most == least => least.to_string(),
                most => format!("{least} to {most}"),
            };
            let runs = match (row.runs, row.runs_since) {
                (Runs::Not, _) => String::new(),
                (Runs::Fused, _) => "fused".into(),
                (Runs::Alone, 1) => "yes".into(),
                (Runs::Alone, since) => format!("since opset {since}"),
            };
            page += &format!(
                "| `{}` | {} | {inputs} | `{}` | {} | {} | {runs} |\n",
                row.name,
                row.since,
                row.types.trim(),
                row.broadcasts_text(),
                if row.infer.is_some() { "yes" } else { "" },
            );
        }
    }
    page
}
