//! `simulcast eval`: an expression over arrays, in one pass over memory, to the terminal or a file.

mod device;
mod generate;
pub(crate) mod inputs;
mod meeting;
mod several;
pub(crate) mod show;
mod word;

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::{Value, json};
use simulcast::program::{
    Builder, Diagnostic, Expr, ExprKind, Hoisting, ProgramStrategy, Run, SyntaxError, row_axis,
};
use simulcast::types::Promotion;
use simulcast::{AnyArray, AnyView, DType, ProgramError, ProgramErrorKind, TypedProgram};
use simulcast_core::{OwnedRule, RuleKind, format_shape};
use simulcast_explain::{SCHEMA, error_json, list_with_and};
use simulcast_files::{FileError, Writer, write_npy};

use crate::args::{EvalArgs, Place};
use crate::{Failure, output};
use inputs::Inputs;
use show::Shown;

/// Results go to files in blocks of about that many bytes.
const BLOCK: u64 = 64 << 20;

/// Work that takes longer has a progress bar.
const LONG: Duration = Duration::from_millis(500);

// Implements E_BROADCAST_ANY_FUNC_2270.
pub(crate) fn run(args: &EvalArgs) -> Result<(), Failure> {
    let mut clock = Clock::start();
    let rule = rule(&args.rule)?;
    let text = args.expression.as_str();
    let memory = args.max_bytes.unwrap_or_else(available);
    let exprs = Expr::parse_several(text).map_err(|error| misread(args, error, memory))?;
    let [expr] = exprs.as_slice() else {
        return several::run(args, &exprs, &rule, memory, &mut clock);
    };
    let path = output_path(&args.output)?;
    let inputs = Inputs::new(&args.inputs, args.seed, memory, false)?;
    let given = inputs.views()?;
    clock.passed("read");
    let promotion = if args.strict { Promotion::Strict } else { Promotion::Numpy };
    let known: Vec<_> =
        given.iter().map(|(name, view)| (*name, view.dtype(), view.shape())).collect();
    let shown = |error| Diagnostic::new(expr, error, &known, rule.as_rule(), promotion);
    let fail = |error: ProgramError| refused(args, &shown(error), 1);
    let types: Vec<_> = known.iter().map(|&(name, dtype, _)| (name, dtype)).collect();
    let mut builder = Builder::new(promotion);
    builder.fast_math(args.fast_math);
    let root = expr.lower(&mut builder, &types);
    if let Some(error) = root.as_ref().err().filter(|error| is_misspelt(&exprs, error)) {
        return Err(refused(args, &shown(error.clone()), 2));
    }
    check_names(&exprs, &given)?;
    let root = root.map_err(fail)?;
    let program = builder.finish(root).map_err(fail)?;
    clock.passed("compile");

    let operands: Vec<AnyView<'_>> = given.iter().map(|(_, view)| view.clone()).collect();
    let mut run = program.bind(&operands).rule(rule.as_rule());
    if let Some(threads) = args.threads {
        run = run.threads(threads.get());
    }
    let shape = run.shape().map_err(fail)?;
    // Without hoisting, a run may fit.
    let (rows, result) = match path {
        Some(_) => (1, 0),
        None => (usize::MAX, bytes_of(program.dtype(), &shape)),
    };
    if run.memory(rows).map_err(fail)? > inputs.left.saturating_sub(result) {
        run = run.hoisting(Hoisting::Never);
    }
    let strategy = run.strategy().map_err(fail)?;
    let plan = meeting::plan(expr, rule.as_rule(), &known);
    if args.explain && !args.json {
        let text = meeting::explain(plan.as_ref(), &program, &operands, &shape, &strategy);
        output::print(&text)?;
    } else {
        meeting::warn(&plan);
    }
    let made = match (path, args.device) {
        (path, Place::Cuda(index)) => {
            let out = (path, inputs.left);
            device::run(index, (&program, &rule), &operands, &shape, out, &mut clock)?
        }
        (Some(path), Place::Processor) => {
            to_file(&run, &program, &shape, path, inputs.left, &mut clock, fail)?;
            None
        }
        (None, Place::Processor) => {
            let aside = run.memory(usize::MAX).map_err(fail)?;
            fits(program.dtype(), &shape, aside, inputs.left)?;
            let made = run.compute().map_err(fail)?;
            clock.passed("run");
            Some(made)
        }
    };
    let shapes: Vec<&[usize]> = operands.iter().map(AnyView::shape).collect();
    report(args, &program, &shapes, &shape, made.as_ref(), &strategy, &clock)
}

/// A rule that brings any two shapes together, as the operators of an expression need it.
fn rule(text: &str) -> Result<OwnedRule, Failure> {
    let rule: OwnedRule = text.parse().map_err(|error| Failure::Usage(format!("{error}")))?;
    let kind = rule.kind();
    match (kind.arity(), kind.parameters().labels) {
        (None | Some(2), false) => Ok(rule),
        _ => {
            let fit = |kind: &RuleKind| {
                matches!((kind.arity(), kind.parameters().labels), (None | Some(2), false))
            };
            let fit: Vec<String> =
                RuleKind::ALL.iter().filter(|own| fit(own)).map(ToString::to_string).collect();
            Err(Failure::Usage(format!(
                "rule {text} does not bring two operands together; expressions take {}",
                list_with_and(&fit)
            )))
        }
    }
}

/// The file that the one result goes to.
fn output_path(paths: &[PathBuf]) -> Result<Option<&Path>, Failure> {
    match paths {
        [] => Ok(None),
        [path] if ends(path, ".npy") => Ok(Some(path)),
        [path] => Err(Failure::Usage(format!("{} does not end in .npy", path.display()))),
        paths => Err(Failure::Usage(format!("there is one result, but {} files", paths.len()))),
    }
}

fn ends(path: &Path, with: &str) -> bool {
    path.as_os_str().as_encoded_bytes().ends_with(with.as_bytes())
}

/// Every name of the expressions is given, and every one that is given is in one of them.
fn check_names(exprs: &[Expr], given: &[(&str, AnyView<'_>)]) -> Result<(), Failure> {
    let known = |name: &str| given.iter().any(|(known, _)| *known == name);
    let mut missing: Vec<&str> = Vec::new();
    for name in exprs.iter().flat_map(Expr::operands).filter(|name| !known(name)) {
        if !missing.contains(&name) {
            missing.push(name);
        }
    }
    if let [first, ..] = missing[..] {
        let names: Vec<String> = missing.iter().map(|name| format!("`{name}`")).collect();
        let names = names.join(", ");
        return Err(Failure::Usage(format!(
            "nothing is given for {names}; write {first}=FILE, {first}=VALUE or {first}='(3, 4)'"
        )));
    }
    let names = names(exprs);
    match given.iter().find(|(name, _)| !names.contains(name)) {
        Some((name, _)) => Err(Failure::Usage(format!("`{name}` is not in the expression"))),
        None => Ok(()),
    }
}

/// Every name of the expressions. Not only operands: `e` is a constant until it is given.
fn names(exprs: &[Expr]) -> HashSet<&str> {
    let kinds = exprs.iter().flat_map(Expr::nodes).map(|node| &node.kind);
    kinds
        .filter_map(|kind| if let ExprKind::Name(name) = kind { Some(&name[..]) } else { None })
        .collect()
}

/// Whether the error is a name that is nearly one of an operand which is in no expression.
fn is_misspelt(exprs: &[Expr], error: &ProgramError) -> bool {
    match &error.kind {
        ProgramErrorKind::Unknown { near: Some(near), .. } => !names(exprs).contains(&near[..]),
        _ => false,
    }
}

/// An error with its place in the expression, and that exit code.
fn refused(args: &EvalArgs, diagnostic: &Diagnostic, code: u8) -> Failure {
    if args.json {
        let error = diagnostic.error();
        let mut about = match &error.kind {
            ProgramErrorKind::Broadcast(error) => error_json(error),
            _ => json!({}),
        };
        about["message"] = error.to_string().into();
        about["span"] = json!([error.span.start, error.span.end]);
        about["suggestions"] = diagnostic.suggestions().collect();
        let answer = json!({ "schema": SCHEMA, "error": about });
        // Whoever reads it may have seen enough; the verdict stays.
        let _ = output::put(format!("{answer}\n"));
    }
    Failure::Shown(diagnostic.to_string(), code)
}

/// An error in a text that is no expression. What is suggested for `@` is checked with the operands.
fn misread(args: &EvalArgs, error: SyntaxError, memory: u64) -> Failure {
    let text = args.expression.as_str();
    let shapes = match text.get(error.span.clone()) {
        Some("@") => inputs::shapes(&args.inputs, memory),
        _ => Vec::new(),
    };
    let shape_of =
        |name: &str| shapes.iter().find(|(own, _)| own == name).map(|(_, shape)| &shape[..]);
    refused(args, &Diagnostic::of_text_with(text, error, shape_of), 2)
}

/// The bytes of an array; as many as can be said where there are more.
fn bytes_of(dtype: DType, shape: &[usize]) -> u64 {
    let count = if shape.contains(&0) { 0 } else { 1_u64 };
    let count = shape.iter().fold(count, |count, &size| count.saturating_mul(size as u64));
    count.saturating_mul(dtype.size() as u64)
}

/// Whether a result fits in memory, with what is computed before it.
fn fits(dtype: DType, shape: &[usize], aside: u64, memory: u64) -> Result<(), Failure> {
    let result = bytes_of(dtype, shape);
    if result > memory {
        let (shape, limit) = (format_shape(shape), simulcast_explain::human_bytes(memory));
        return Err(Failure::Usage(format!(
            "the result, {dtype} {shape}, is over the limit of {limit}; write it to a file with \
             -o, or raise --max-bytes"
        )));
    }
    before(aside, memory.saturating_sub(result))
}

/// Whether what is computed before a result fits in memory.
fn before(aside: u64, memory: u64) -> Result<(), Failure> {
    if aside <= memory {
        return Ok(());
    }
    let (aside, limit) =
        (simulcast_explain::human_bytes(aside), simulcast_explain::human_bytes(memory));
    Err(Failure::Usage(format!(
        "what is computed before the result takes {aside}, and {limit} are left of the limit; raise \
         --max-bytes"
    )))
}

/// Computes a result straight into its file, block by block.
fn to_file(
    run: &Run<'_>,
    program: &TypedProgram,
    shape: &[usize],
    path: &Path,
    memory: u64,
    clock: &mut Clock,
    fail: impl Fn(ProgramError) -> Failure,
) -> Result<(), Failure> {
    let dtype = program.dtype();
    let cannot = |error: FileError| Failure::Usage(format!("cannot write {error}"));
    if dtype == DType::String {
        before(run.memory(usize::MAX).map_err(&fail)?, memory)?;
        let made = run.compute().map_err(fail)?;
        clock.passed("run");
        write_npy(path, &made.view()).map_err(cannot)?;
        clock.passed("write");
        return Ok(());
    }
    let axis = row_axis(shape);
    let rows = shape.get(axis).copied().unwrap_or(1);
    let row = bytes_of(dtype, shape.get(axis + 1..).unwrap_or_default()).max(1);
    let mut step =
        usize::try_from(BLOCK.min(memory) / row).unwrap_or(usize::MAX).clamp(1, rows.max(1));
    // Fewer rows may leave less aside.
    while step > 1 && run.memory(step).map_err(&fail)? > memory {
        step /= 2;
    }
    before(run.memory(step).map_err(&fail)?, memory)?;
    let mut writer = Writer::create(path, dtype, shape).map_err(cannot)?;
    let ready = run.by_rows().map_err(&fail)?;
    let bar = Bar::new((rows as u64).saturating_mul(row));
    for start in (0..rows).step_by(step) {
        let block = start..(start + step).min(rows);
        let mut out = writer.rows_mut(block.clone()).map_err(cannot)?;
        ready.rows_into(block.clone(), &mut out).map_err(&fail)?;
        bar.reached(block.end as u64 * row);
    }
    drop(bar);
    clock.passed("run");
    writer.finish().map_err(cannot)?;
    clock.passed("write");
    Ok(())
}

/// A progress bar, on a terminal, for long work.
struct Bar {
    bar: ProgressBar,
    start: Instant,
}

impl Bar {
    fn new(bytes: u64) -> Self {
        let bar = ProgressBar::with_draw_target(Some(bytes), ProgressDrawTarget::hidden());
        let style =
            "{bar:24} {decimal_bytes} of {decimal_total_bytes}, {decimal_bytes_per_sec}, {eta}";
        if let Ok(style) = ProgressStyle::with_template(style) {
            bar.set_style(style);
        }
        Self { bar, start: Instant::now() }
    }

    fn reached(&self, bytes: u64) {
        if self.bar.is_hidden() && self.start.elapsed() > LONG {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        self.bar.set_position(bytes);
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// When what was done.
pub(crate) struct Clock(Vec<(&'static str, Instant)>);

impl Clock {
    pub(crate) fn start() -> Self {
        Self(vec![("start", Instant::now())])
    }

    pub(crate) fn passed(&mut self, name: &'static str) {
        self.0.push((name, Instant::now()));
    }

    fn parts(&self) -> impl Iterator<Item = (&'static str, Duration)> {
        self.0.windows(2).map(|pair| (pair[1].0, pair[1].1.duration_since(pair[0].1)))
    }

    /// The parts in seconds, by name.
    pub(crate) fn seconds(&self) -> Value {
        let parts = self.parts();
        parts.map(|(name, time)| (name.to_owned(), json!(time.as_secs_f64()))).collect()
    }

    /// Says how long each part took, beside the results.
    pub(crate) fn say(&self) {
        let parts: Vec<String> =
            self.parts().map(|(name, time)| format!("{name} {time:.1?}")).collect();
        let _ = std::io::Write::write_all(
            &mut anstream::stderr(),
            format!("{}\n", parts.join(", ")).as_bytes(),
        );
    }
}

/// Prints an answer in JSON, with how long it took where that is asked.
fn put_json(args: &EvalArgs, mut answer: Value, clock: &Clock) -> Result<(), Failure> {
    if args.time {
        answer["seconds"] = clock.seconds();
    }
    output::put(format!("{answer}\n"))
}

fn report(
    args: &EvalArgs,
    program: &TypedProgram,
    shapes: &[&[usize]],
    shape: &[usize],
    made: Option<&AnyArray>,
    strategy: &ProgramStrategy,
    clock: &Clock,
) -> Result<(), Failure> {
    let (dtype, view) = (program.dtype(), made.map(AnyArray::view));
    let file = args.output.first().map(|path| path.display().to_string());
    if args.json {
        let mut answer = json!({ "schema": SCHEMA });
        if let Value::Object(about) = show::json_of(dtype, shape, view.as_ref()) {
            about.into_iter().for_each(|(key, value)| answer[key] = value);
        }
        if args.explain {
            answer["operands"] = meeting::operands_json(program.operands(), shapes);
            answer["passes"] = strategy.stages.len().into();
            let stages = strategy.stages.iter().map(|stage| {
                json!({
                    "expression": stage.expression,
                    "hoisted": stage.is_hoisted,
                    "dtype": stage.dtype.name(),
                    "shape": stage.shape,
                    "execution": stage.execution.as_ref().map(ToString::to_string),
                })
            });
            answer["stages"] = stages.collect();
        }
        if let Some(file) = file {
            answer["file"] = file.into();
        }
        return put_json(args, answer, clock);
    }
    if args.time {
        clock.say();
    }
    let shown = view.as_ref().map_or(Shown::About(Vec::new()), Shown::of);
    let mut text = show::text(dtype, shape, &shown);
    if let Some(file) = file {
        text = format!("{file}: {text}");
    }
    output::print(&text)
}

/// Half of the memory that this process may still take, where the system says it; 4 GiB elsewhere.
///
/// The machine, the control groups around the process and its limit of address space each have a say: what is above
/// the least of them ends in an abort or in the hands of the kernel.
pub(crate) fn available() -> u64 {
    let told = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let kilobytes = |text: &str, key: &str| {
        let rest = text.lines().find_map(|line| line.strip_prefix(key))?;
        rest.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
    };
    let machine = kilobytes(&told("/proc/meminfo"), "MemAvailable:");
    let (limits, status) = (told("/proc/self/limits"), told("/proc/self/status"));
    let space = address_space(&limits)
        .map(|limit| limit.saturating_sub(kilobytes(&status, "VmSize:").unwrap_or(0)));
    let group = control_groups(&told("/proc/self/cgroup"), &told);
    let least = [machine, space, group].into_iter().flatten().min();
    least.map_or(4 << 30, |bytes| bytes / 2)
}

/// The soft limit of the address space in `/proc/self/limits`, which `ulimit -v` sets.
fn address_space(limits: &str) -> Option<u64> {
    let rest = limits.lines().find_map(|line| line.strip_prefix("Max address space"))?;
    rest.split_whitespace().next()?.parse().ok()
}

/// What the control groups of `/proc/self/cgroup` leave, of both versions: a container sees its own at the root.
fn control_groups(groups: &str, told: &dyn Fn(&str) -> String) -> Option<u64> {
    let number = |path: String| told(&path).trim().parse::<u64>().ok();
    let mut least = None;
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(kinds), Some(path)) = (parts.next(), parts.next()) else { continue };
        let (root, limit, used) = match kinds {
            "" => ("/sys/fs/cgroup", "memory.max", "memory.current"),
            kinds if kinds.split(',').any(|kind| kind == "memory") => {
                ("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes")
            }
            _ => continue,
        };
        // A group is held to the limits of those around it too.
        let mut path = path.trim_end_matches('/');
        loop {
            if let Some(limit) = number(format!("{root}{path}/{limit}")) {
                let left =
                    limit.saturating_sub(number(format!("{root}{path}/{used}")).unwrap_or(0));
                least = Some(least.map_or(left, |own: u64| own.min(left)));
            }
            match path.rfind('/') {
                Some(at) => path = &path[..at],
                None => break,
            }
        }
    }
    least
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_limit_of_all_control_groups_counts() {
        let files = |path: &str| {
            let text = match path {
                "/sys/fs/cgroup/user/job/memory.max" => "max",
                "/sys/fs/cgroup/user/memory.max" => "1000",
                "/sys/fs/cgroup/user/memory.current" => "400",
                "/sys/fs/cgroup/memory/a/memory.limit_in_bytes" => "5000",
                _ => "",
            };
            text.to_owned()
        };
        assert_eq!(control_groups("0::/user/job\n", &files), Some(600));
        assert_eq!(control_groups("4:cpu,memory:/a\n3:cpu:/b\n", &files), Some(5000));
        assert_eq!(control_groups("0::/\n", &files), None);
        let limits = "Max address space         8589934592           unlimited            bytes \n";
        assert_eq!(address_space(limits), Some(8_589_934_592));
        assert_eq!(address_space("Max address space   unlimited  unlimited  bytes"), None);
    }
}
