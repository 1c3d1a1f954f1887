//! The core against the oracle: the programs that are proved in `spec/why3`, extracted to OCaml.
//!
//! Requests go out on one thread while answers come in on the other, each compared with what the
//! core says. The protocol stands at the top of `spec/why3/oracle.ml`.

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, BufWriter, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{SyncSender, sync_channel};

use simulcast_core::{
    Interval, NamedAxes, OwnedRule, Parts, Plan, Refusal, Rule, RuleKind, Source, offset_through,
    resolve, resolve_into, row_major_into, sources_into, view_strides_into,
};

use crate::run::Step;

/// How much is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// Every shape of rank up to 4 with sizes 0 to 4, and millions of random requests.
    Whole,
    /// Every shape of rank up to 2 with sizes 0 to 3, and some thousands.
    Quick,
}

/// Compares the core with the oracle; the first difference is the error.
pub(crate) fn compare(oracle: &Path, extent: Extent) -> Result<(), String> {
    for (name, requests) in [
        ("shapes under every rule", shapes as fn(&mut Requests<'_>, Extent)),
        ("elements and sums under every rule", elements),
        ("intervals", intervals),
        ("random requests", random),
    ] {
        Step::new(&format!("oracle: {name}")).check(|| {
            let count = ask(oracle, |out| requests(out, extent))?;
            Ok(format!("{count} answers agree"))
        })?;
    }
    Ok(())
}

/// Where requests are put together with the answers that the core gives.
pub(crate) struct Requests<'a> {
    stdin: BufWriter<&'a mut std::process::ChildStdin>,
    expected: SyncSender<(String, String)>,
    line: String,
}

impl Requests<'_> {
    /// Sends a request; what fails here shows as a missing answer there.
    fn send(&mut self, ours: String) {
        let request = std::mem::take(&mut self.line);
        let _ = writeln!(self.stdin, "{request}");
        let _ = self.expected.send((request, ours));
    }

    fn shape(&mut self, rule: &OwnedRule, shapes: &[Vec<usize>]) {
        self.request("shape", rule, shapes);
        // The allocation-free core answers; where it accepts, the plan must say the same.
        let rank = shapes.iter().map(Vec::len).sum::<usize>() + rule.target().map_or(0, <[_]>::len);
        let mut out = vec![0; rank];
        let ours = match resolve_into(rule.as_rule(), shapes, &mut out) {
            Ok(shape) => match resolve(rule.as_rule(), shapes) {
                Ok(plan) if plan.shape() == shape => format!("ok {}", list(shape)),
                _ => "the core disagrees with itself".into(),
            },
            Err(refusal) => refused(&refusal).to_owned(),
        };
        self.send(ours);
    }

    /// Where each element comes from, and where a gradient goes back to.
    fn elements(&mut self, rule: &OwnedRule, shapes: &[Vec<usize>]) {
        let plan = resolve(rule.as_rule(), shapes);
        let (mut shown, mut summed) = (String::new(), String::new());
        match &plan {
            Ok(plan) => {
                let _ = write!(shown, "ok {}", list(plan.shape()));
                summed.clone_from(&shown);
                for (operand, shape) in shapes.iter().enumerate() {
                    let offsets = offsets(rule.as_rule(), shapes, plan, operand);
                    let mut sums = vec![0; simulcast_core::elements(shape).unwrap_or(0)];
                    for (value, &offset) in offsets.iter().enumerate() {
                        if let Some(sum) = sums.get_mut(offset) {
                            *sum += value;
                        }
                    }
                    let _ = write!(shown, "|{}", list(&offsets));
                    let _ = write!(summed, "|{}", list(&sums));
                }
            }
            Err(error) => {
                refused(error.refusal()).clone_into(&mut shown);
                summed.clone_from(&shown);
            }
        }
        self.request("elements", rule, shapes);
        self.send(shown);
        self.request("sum", rule, shapes);
        self.send(summed);
    }

    fn request(&mut self, what: &str, rule: &OwnedRule, shapes: &[Vec<usize>]) {
        let _ = write!(self.line, "{what} {} {}", rule.kind(), lists(shapes));
        let parts = rule.parts();
        if rule.kind().parameters().axis {
            let axis = parts.axis.map_or("none".to_owned(), |axis| axis.to_string());
            let _ = write!(self.line, " {axis}");
        }
        for own in [parts.shape, parts.axes].into_iter().flatten() {
            let _ = write!(self.line, " {}", list(own));
        }
        if let Some(labels) = parts.labels {
            let mut labels = labels.iter().copied();
            let own = |shape: &Vec<usize>| labels.by_ref().take(shape.len()).collect();
            let names: Vec<Vec<usize>> = shapes.iter().map(own).collect();
            let _ = write!(self.line, " {}", lists(&names));
        }
    }
}

/// The offset of the element that each result element shows: through the strides of the
/// allocation-free core and by the plan's index i'; where the two differ, a number that no oracle
/// gives.
fn offsets(rule: Rule<'_>, shapes: &[Vec<usize>], plan: &Plan, operand: usize) -> Vec<usize> {
    let (shape, result) = (&shapes[operand], plan.shape());
    let (mut own, mut strides) = (vec![0; shape.len()], vec![0; result.len()]);
    let mut sources = vec![Source::Added; result.len()];
    let laid = row_major_into(shape, &mut own)
        .and_then(|()| sources_into(rule, shapes, operand, result, &mut sources))
        .and_then(|()| view_strides_into(&sources, &own, &mut strides));
    let offset = |index: &Vec<usize>| {
        let through = laid.and_then(|()| offset_through(&strides, index)).ok();
        let through = through.and_then(|offset| usize::try_from(offset).ok());
        let direct = plan.offset(operand, index).ok();
        if through == direct { direct.unwrap_or(usize::MAX) } else { usize::MAX }
    };
    indices(result).iter().map(offset).collect()
}

/// Runs the oracle on what `requests` sends, and compares.
fn ask(oracle: &Path, requests: impl FnOnce(&mut Requests<'_>) + Send) -> Result<usize, String> {
    let cannot = |error: std::io::Error| format!("{}: {error}", oracle.display());
    let mut child = Command::new(oracle)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(cannot)?;
    let (Some(mut stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
        return Err("the oracle has no pipes".into());
    };
    let (expected, known) = sync_channel(1 << 14);
    let outcome = std::thread::scope(|scope| {
        scope.spawn(move || {
            let stdin_ref = &mut stdin;
            let mut out =
                Requests { stdin: BufWriter::new(stdin_ref), expected, line: String::new() };
            requests(&mut out);
            let _ = out.stdin.flush();
        });
        let (mut answers, mut count) = (BufReader::new(stdout).lines(), 0);
        let mut outcome = Ok(());
        // The other thread must not wait for ever, so every pair is taken from it.
        for (request, ours) in known {
            let theirs = answers.next().and_then(Result::ok).unwrap_or_default();
            if outcome.is_ok() && !same(&request, &ours, &theirs) {
                outcome =
                    Err(format!("{request}\n  the core says   {ours}\n  the oracle says {theirs}"));
            }
            count += 1;
        }
        outcome.map(|()| count)
    });
    let _ = child.kill();
    let _ = child.wait();
    outcome
}

/// Two refusals are worded differently on purpose: where an axis was badly chosen, the core blames
/// the axis for what follows from it.
fn same(request: &str, ours: &str, theirs: &str) -> bool {
    let rule = request.split(' ').nth(1);
    match (rule, ours, theirs) {
        (Some("paddle"), "refused", "E1") | (Some("legacy"), "refused", "overhang") => true,
        _ => ours == theirs,
    }
}

fn refused(refusal: &Refusal) -> &'static str {
    match refusal {
        Refusal::Clash { .. } => "E1",
        Refusal::Overhang { .. } => "overhang",
        _ => "refused",
    }
}

fn list(numbers: &[usize]) -> String {
    match numbers {
        [] => "-".into(),
        numbers => numbers.iter().map(ToString::to_string).collect::<Vec<_>>().join(","),
    }
}

fn lists(shapes: &[Vec<usize>]) -> String {
    match shapes {
        [] => ".".into(),
        shapes => shapes.iter().map(|shape| list(shape)).collect::<Vec<_>>().join(";"),
    }
}

/// Every index of a shape, in row-major order.
fn indices(shape: &[usize]) -> Vec<Vec<usize>> {
    let mut all = vec![Vec::new()];
    for &size in shape {
        let longer = |index: &Vec<usize>, i: usize| [index.as_slice(), &[i]].concat();
        all = all.iter().flat_map(|index| (0..size).map(move |i| longer(index, i))).collect();
    }
    all
}

/// Every shape of rank up to `rank` with sizes up to `size`.
fn all_shapes(rank: usize, size: usize) -> Vec<Vec<usize>> {
    (0..=rank).flat_map(|rank| indices(&vec![size + 1; rank])).collect()
}

/// The rules for each pair of shapes, with every axis that can matter and some that cannot.
fn pair_rules(rank: isize) -> Vec<OwnedRule> {
    let mut rules = Vec::new();
    for &kind in RuleKind::ALL {
        let takes = kind.parameters();
        let axes: Vec<Option<isize>> = match takes.axis {
            true => [None].into_iter().chain((-2..=rank + 1).map(Some)).collect(),
            false => vec![None],
        };
        // A rule that carries lists, or takes one operand, is none here.
        let of = |axis| OwnedRule::from_parts(kind, Parts { axis, ..Parts::default() });
        rules.extend(axes.into_iter().filter_map(of));
    }
    rules
}

/// Calls `each` with every request that exhausts rules and shapes of that rank and size.
fn exhaust(rank: usize, size: usize, mut each: impl FnMut(&OwnedRule, &[Vec<usize>])) {
    let all = all_shapes(rank, size);
    let rules = pair_rules(rank.cast_signed());
    for a in &all {
        for b in &all {
            let pair = [a.clone(), b.clone()];
            rules.iter().for_each(|rule| each(rule, &pair));
            let target = Parts { shape: Some(b.clone()), ..Parts::default() };
            for &kind in RuleKind::ALL {
                if let Some(rule) = OwnedRule::from_parts(kind, target.clone()) {
                    each(&rule, &pair[..1]);
                }
            }
        }
    }
    for shape in &all {
        for axes in (0..=shape.len()).flat_map(|count| indices(&vec![shape.len() + 1; count])) {
            let fits = |kept: bool| -> Vec<usize> {
                let axis = |axis: &usize| axes.contains(axis) == kept;
                (0..shape.len()).filter(axis).map(|axis| shape[axis]).collect()
            };
            // What fits, and what is one off somewhere. The oracle names these two rules: what fits is said here from
            // their documents, and not asked of the core, which is what is tested.
            let (shape, list) = (shape.clone(), axes.clone());
            for (rule, fitting) in [
                (
                    OwnedRule::Axes { shape: shape.clone(), broadcast_axes: list.clone() },
                    fits(false),
                ),
                (OwnedRule::Mapping { shape, axes_mapping: list }, fits(true)),
            ] {
                each(&rule, std::slice::from_ref(&fitting));
                for at in 0..fitting.len() {
                    for other in 0..=size {
                        let mut arg = fitting.clone();
                        arg[at] = other;
                        each(&rule, &[arg]);
                    }
                }
            }
        }
    }
    // No operand at all.
    for kind in RuleKind::ALL.iter().copied().filter(|kind| kind.arity().is_none()) {
        let parts = Parts { labels: kind.parameters().labels.then(Vec::new), ..Parts::default() };
        if let Some(rule) = OwnedRule::from_parts(kind, parts) {
            each(&rule, &[]);
        }
    }
}

fn shapes(out: &mut Requests<'_>, extent: Extent) {
    let (rank, size) = if extent == Extent::Whole { (4, 4) } else { (2, 3) };
    exhaust(rank, size, |rule, shapes| out.shape(rule, shapes));
}

fn elements(out: &mut Requests<'_>, extent: Extent) {
    let (rank, size) = if extent == Extent::Whole { (3, 2) } else { (2, 2) };
    exhaust(rank, size, |rule, shapes| out.elements(rule, shapes));
}

fn intervals(out: &mut Requests<'_>, _: Extent) {
    let all: Vec<Interval> = (0..6)
        .flat_map(|lo| (lo..6).map(Some).chain([None]).filter_map(move |hi| Interval::new(lo, hi)))
        .collect();
    let show = |interval: Interval| {
        let hi = interval.hi().map_or("*".to_owned(), |hi| hi.to_string());
        format!("{} {hi}", interval.lo())
    };
    for &a in &all {
        for &b in &all {
            let _ = write!(out.line, "interval {} {}", show(a), show(b));
            out.send(a.join(b).map_or("empty".into(), |both| format!("ok {}", show(both))));
        }
    }
}

/// A small generator of our own: the same requests on every machine.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap_or(0) % end.max(1)
    }

    fn shape(&mut self) -> Vec<usize> {
        (0..self.below(6)).map(|_| [1, 1, 1, 0, 2, 3, 3, 4][self.below(8)]).collect()
    }
}

fn random(out: &mut Requests<'_>, extent: Extent) {
    let mut random = Random(0x51_4d_0c_a5);
    let names = ["b", "c", "h", "w", "t"];
    let count = if extent == Extent::Whole { 2_000_000 } else { 20_000 };
    for round in 0..count {
        let operands: Vec<Vec<usize>> = (0..random.below(6)).map(|_| random.shape()).collect();
        let kind = RuleKind::ALL[random.below(RuleKind::ALL.len())];
        let takes = kind.parameters();
        let operands = match kind.arity() {
            Some(1) => vec![random.shape()],
            Some(_) => vec![random.shape(), random.shape()],
            None => operands,
        };
        let mut parts = Parts::default();
        if takes.axis {
            parts.axis = [None, Some(-1), Some(0), Some(1), Some(2), Some(3)][random.below(6)];
        }
        if takes.shape.is_some() {
            let shape = random.shape();
            let rank = shape.len() + 1;
            if takes.axes.is_some() {
                parts.axes = Some((0..random.below(rank)).map(|_| random.below(rank)).collect());
            }
            parts.shape = Some(shape);
        }
        if takes.labels {
            let draw = |shape: &Vec<usize>, random: &mut Random| {
                let mut left = names.to_vec();
                let axes = shape.iter().take(names.len());
                axes.map(|_| left.remove(random.below(left.len()))).collect::<Vec<&str>>()
            };
            let axes: Vec<Vec<&str>> =
                operands.iter().map(|shape| draw(shape, &mut random)).collect();
            let Ok(named) = NamedAxes::new(&axes) else { continue };
            parts.labels = Some(named.labels().to_vec());
        }
        let Some(rule) = OwnedRule::from_parts(kind, parts) else { continue };
        out.shape(&rule, &operands);
        if round % 16 == 0 {
            out.elements(&rule, &operands);
        }
    }
}
