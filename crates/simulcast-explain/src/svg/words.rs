//! A picture in words: its title, what happens to each operand, and the text that stands in for it.

use simulcast_core::{Plan, Source, format_shape};

use super::notes::notes;
use super::text::{NAME, clip, clip_middle};
use crate::{ROWS, Subject, Table};

/// How many operands a title names.
const NAMED: usize = 4;
/// How many axes a sentence lists.
const LISTED: usize = 6;
/// How long a shape may get in a sentence.
const SHAPE: usize = 40;

/// What is shown, in one line.
pub(crate) fn title(subject: &Subject<'_>) -> String {
    let (operands, count) = operands(subject);
    let verb = |one: &str, many: &str| if count == 1 { one.to_owned() } else { many.to_owned() };
    match subject {
        Subject::Plan(plan, _) => {
            let shape = clip_middle(&format_shape(plan.shape()), SHAPE);
            format!("{operands} {} to {shape}", verb("broadcasts", "broadcast"))
        }
        Subject::Symbolic(plan, ..) => {
            let shape = clip_middle(&plan.shape().to_string(), SHAPE);
            format!("{operands} {} to {shape}", verb("broadcasts", "broadcast"))
        }
        Subject::Error(_) => {
            format!("{operands} {} not broadcast", verb("does", "do"))
        }
    }
}

/// The operands with their shapes, and how many there are.
fn operands(subject: &Subject<'_>) -> (String, usize) {
    let shapes = shapes(subject, NAMED);
    let count = match subject {
        Subject::Plan(plan, _) => plan.operand_count(),
        Subject::Symbolic(plan, ..) => plan.shapes().len(),
        Subject::Error(error) => error.shapes().len(),
    };
    let text = match count {
        0 => "no operands".to_owned(),
        _ if count > NAMED => format!("{count} operands"),
        _ => crate::list_with_and(
            &shapes.iter().map(|(name, shape)| format!("{name} {shape}")).collect::<Vec<_>>(),
        ),
    };
    (text, count)
}

/// The names and shapes of the first operands.
pub(crate) fn shapes(subject: &Subject<'_>, most: usize) -> Vec<(String, String)> {
    let dims: Vec<String> = match subject {
        Subject::Plan(plan, _) => (0..plan.operand_count().min(most))
            .map(|operand| format_shape(&plan.operand_shape(operand).unwrap_or_default()))
            .collect(),
        Subject::Symbolic(plan, ..) => {
            plan.shapes().iter().take(most).map(ToString::to_string).collect()
        }
        Subject::Error(error) => {
            error.shapes().iter().take(most).map(ToString::to_string).collect()
        }
    };
    let names = match subject {
        Subject::Plan(plan, _) => plan.names(),
        Subject::Symbolic(_, names, _) => names,
        Subject::Error(error) => error.names(),
    };
    let named = |(operand, shape): (usize, &String)| {
        (clip(&names.operand(operand), NAME), clip_middle(shape, SHAPE))
    };
    dims.iter().enumerate().map(named).collect()
}

/// What happens to an operand: which axes it gets, and along which it repeats.
pub(crate) fn story(plan: &Plan, operand: usize, axes: &[String]) -> String {
    let sources = plan.sources(operand).unwrap_or_default();
    let own = plan.axes(operand).unwrap_or(&[]);
    let which = |wanted: &dyn Fn(&Source, usize) -> bool| -> Vec<String> {
        let all = sources.iter().zip(plan.shape()).zip(axes);
        all.filter(|((source, size), _)| wanted(source, **size))
            .map(|(_, name)| clip(name, NAME))
            .collect()
    };
    let added = which(&|source, _| *source == Source::Added);
    let repeated = which(&|source, size| source.repeats(size) && size != 0);
    let emptied = which(&|source, size| source.repeats(size) && size == 0);
    let dropped: Vec<String> = own
        .iter()
        .enumerate()
        .filter(|(_, (_, target))| target.is_none())
        .map(|(axis, _)| axis.to_string())
        .collect();
    let mut parts = Vec::new();
    if !dropped.is_empty() {
        parts.push(format!("its own {} of size 1 dropped", counted(&dropped)));
    }
    if !own.iter().filter_map(|&(_, target)| target).is_sorted() {
        parts.push("axes reordered".to_owned());
    }
    if !added.is_empty() {
        parts.push(format!("{} added", counted(&added)));
    }
    if !repeated.is_empty() {
        parts.push(format!("repeated along {}", counted(&repeated)));
    }
    if !emptied.is_empty() {
        parts.push(format!("left empty along {}", counted(&emptied)));
    }
    match parts.is_empty() {
        true => "used as it is".to_owned(),
        false => parts.join("; "),
    }
}

/// `axis 1`, `axes 0 and 2`.
fn counted(axes: &[String]) -> String {
    let word = if axes.len() == 1 { "axis" } else { "axes" };
    let left = axes.len().saturating_sub(LISTED);
    match (axes, left) {
        (_, 0) => format!("{word} {}", crate::list_with_and(axes)),
        (axes, left) => {
            let shown: Vec<String> = axes.iter().take(LISTED).cloned().collect();
            format!("{word} {} and {left} more", shown.join(", "))
        }
    }
}

/// The whole picture in words, for those who do not see it.
pub(crate) fn description(subject: &Subject<'_>, cells: bool) -> String {
    let mut parts = vec![format!("{}.", rule(subject))];
    match subject {
        Subject::Plan(plan, _) => {
            let axes = Table::of_plan(plan).axes;
            for (operand, (name, shape)) in shapes(subject, ROWS).iter().enumerate() {
                parts.push(format!("{name} has shape {shape}: {}.", story(plan, operand, &axes)));
            }
            let shape = clip_middle(&format_shape(plan.shape()), SHAPE);
            parts.push(format!("The result has shape {shape}."));
        }
        Subject::Symbolic(..) | Subject::Error(_) => {
            for (name, shape) in shapes(subject, ROWS) {
                parts.push(format!("{name} has shape {shape}."));
            }
        }
    }
    if let Subject::Symbolic(plan, ..) = subject {
        let shape = clip_middle(&plan.shape().to_string(), SHAPE);
        parts.push(format!("The result has shape {shape}."));
    }
    if cells {
        parts.push(
            "Each operand is drawn three times, cell by cell: as stored, with its axes lined up, \
             and repeated to the result shape. Solid cells are stored, dotted cells repeat a \
             stored one; each is labelled with the index of the stored value that it shows."
                .to_owned(),
        );
    }
    for (tag, text) in notes(subject) {
        parts.push(format!("{tag}: {text}."));
    }
    parts.join(" ")
}

/// The rule, with its parameters.
pub(crate) fn rule(subject: &Subject<'_>) -> String {
    let rule = match subject {
        Subject::Plan(plan, _) => plan.rule(),
        Subject::Symbolic(plan, ..) => plan.rule(),
        Subject::Error(error) => error.rule(),
    };
    format!("rule {}", clip_middle(&rule.to_string(), SHAPE))
}
