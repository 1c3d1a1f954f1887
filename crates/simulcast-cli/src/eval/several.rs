//! Several expressions in one call: computed together, each to the terminal or a file of its own.

use std::path::PathBuf;

use serde_json::{Value, json};
use simulcast::program::{Builder, Diagnostic, Expr, JointRun};
use simulcast::types::Promotion;
use simulcast::{AnyArray, AnyView, AnyViewMut, DType, JointProgram, ProgramError};
use simulcast_core::{OwnedRule, format_shape};
use simulcast_cuda::{Device, DeviceArray, OnDevice as _};
use simulcast_explain::SCHEMA;
use simulcast_files::{FileError, Writer, write_npy, write_npz};

use super::inputs::Inputs;
use super::show::{self, Shown};
use super::{Clock, before, bytes_of, check_names, ends, is_misspelt, meeting, put_json, refused};
use crate::args::{EvalArgs, Place};
use crate::{Failure, output};

/// Where results go.
enum Output<'a> {
    Terminal,
    /// A `.npy` file for each.
    Each(&'a [PathBuf]),
    /// One `.npz` file.
    Archive(&'a PathBuf),
}

impl<'a> Output<'a> {
    fn new(paths: &'a [PathBuf], results: usize) -> Result<Self, Failure> {
        let whole = |path: &PathBuf| std::path::absolute(path).unwrap_or_else(|_| path.clone());
        for (at, path) in paths.iter().enumerate() {
            if let Some(first) = paths[..at].iter().position(|other| whole(other) == whole(path)) {
                let path = path.display();
                return Err(Failure::Usage(format!("results {first} and {at} both go to {path}")));
            }
        }
        match paths {
            [] => Ok(Self::Terminal),
            [path] if ends(path, ".npz") => Ok(Self::Archive(path)),
            paths if paths.len() == results => match paths.iter().find(|own| !ends(own, ".npy")) {
                None => Ok(Self::Each(paths)),
                Some(path) => {
                    Err(Failure::Usage(format!("{} does not end in .npy", path.display())))
                }
            },
            [path] if !ends(path, ".npy") => {
                let path = path.display();
                Err(Failure::Usage(format!("{path} ends in neither .npz nor .npy")))
            }
            paths => {
                let files = if paths.len() == 1 { "file" } else { "files" };
                Err(Failure::Usage(format!(
                    "{results} results go to one .npz file or to {results} .npy files, not to {} {files}",
                    paths.len()
                )))
            }
        }
    }
}

pub(super) fn run(
    args: &EvalArgs,
    exprs: &[Expr],
    rule: &OwnedRule,
    memory: u64,
    clock: &mut Clock,
) -> Result<(), Failure> {
    let out = Output::new(&args.output, exprs.len())?;
    let inputs = Inputs::new(&args.inputs, args.seed, memory, false)?;
    let given = inputs.views()?;
    clock.passed("read");
    let promotion = if args.strict { Promotion::Strict } else { Promotion::Numpy };
    let known: Vec<_> =
        given.iter().map(|(name, view)| (*name, view.dtype(), view.shape())).collect();
    let fail = |error: ProgramError, code: u8| {
        let said = error.to_string();
        match Diagnostic::of_several(exprs, error, &known, rule.as_rule(), promotion) {
            Some(shown) => refused(args, &shown, code),
            None => Failure::Refused(said),
        }
    };
    let types: Vec<_> = known.iter().map(|&(name, dtype, _)| (name, dtype)).collect();
    let mut builder = Builder::new(promotion);
    builder.fast_math(args.fast_math);
    let lowered: Result<Vec<_>, ProgramError> =
        exprs.iter().map(|expr| expr.lower(&mut builder, &types)).collect();
    if let Some(error) = lowered.as_ref().err().filter(|error| is_misspelt(exprs, error)) {
        return Err(fail(error.clone(), 2));
    }
    check_names(exprs, &given)?;
    let fail = |error| fail(error, 1);
    let program = builder.finish_all(&lowered.map_err(fail)?).map_err(fail)?;
    clock.passed("compile");

    let find = |name: &str| given.iter().find(|(own, _)| *own == name);
    let operands = program.operands().iter().filter_map(|operand| find(&operand.name));
    let operands: Vec<AnyView<'_>> = operands.map(|(_, view)| view.clone()).collect();
    let mut run = program.bind(&operands).rule(rule.as_rule());
    if let Some(threads) = args.threads {
        run = run.threads(threads.get());
    }
    let shapes = run.shapes().map_err(fail)?;
    let plans = exprs.iter().map(|expr| meeting::plan(expr, rule.as_rule(), &known));
    let plans: Vec<_> = plans.collect();
    if args.explain && !args.json {
        let mut text = String::new();
        for (expr, plan) in exprs.iter().zip(&plans) {
            if let Some(plan) = plan {
                text.push_str(&format!("{expr}\n{}", meeting::table(plan)));
            }
        }
        let titles: Vec<String> = (0..exprs.len()).map(|at| format!("result {at}")).collect();
        let results = titles.iter().zip(program.dtypes()).zip(&shapes);
        let results: Vec<_> =
            results.map(|((title, &dtype), shape)| (title.as_str(), dtype, &shape[..])).collect();
        meeting::arrays(&mut text, program.operands(), &operands, &results);
        let passes = run.pass_shapes().map_err(fail)?;
        let word = if passes.len() == 1 { "pass" } else { "passes" };
        let over: Vec<String> = passes.iter().map(|shape| format_shape(shape)).collect();
        text.push_str(&format!("  {word:<8} {} over memory: {}\n", passes.len(), over.join(", ")));
        output::print(&text)?;
    } else {
        meeting::warn(plans.iter().flatten());
    }
    let total = program.dtypes().iter().zip(&shapes);
    let total = total.map(|(&dtype, shape)| bytes_of(dtype, shape)).fold(0, u64::saturating_add);
    let has_text = program.dtypes().contains(&DType::String);
    // Files for each result are where they are computed, so that they may be larger than the memory.
    let mapped = matches!(out, Output::Each(_)) && !has_text && args.device == Place::Processor;
    if !mapped && total > inputs.left {
        let (total, limit) =
            (simulcast_explain::human_bytes(total), simulcast_explain::human_bytes(inputs.left));
        return Err(Failure::Usage(format!(
            "the results take {total}, over the limit of {limit}; write each to a .npy file with -o, or raise --max-bytes"
        )));
    }
    before(
        run.memory().map_err(fail)?,
        inputs.left.saturating_sub(if mapped { 0 } else { total }),
    )?;
    let cannot = |error: FileError| Failure::Usage(format!("cannot write {error}"));
    let made = match (&out, args.device) {
        (Output::Each(paths), _) if mapped => {
            to_files(run, paths, program.dtypes(), &shapes, clock, fail)?;
            None
        }
        (_, Place::Processor) => Some(run.compute().map_err(fail)?),
        (_, Place::Cuda(index)) => Some(on_device(index, &program, rule, &operands)?),
    };
    if made.is_some() {
        clock.passed("run");
    }
    let views: Vec<AnyView<'_>> = made.iter().flatten().map(AnyArray::view).collect();
    match &out {
        Output::Each(paths) => {
            for (path, view) in paths.iter().zip(&views) {
                write_npy(path, view).map_err(cannot)?;
            }
        }
        Output::Archive(path) => {
            let names: Vec<String> = (0..views.len()).map(|at| format!("arr_{at}")).collect();
            let arrays: Vec<(&str, AnyView<'_>)> =
                names.iter().map(String::as_str).zip(views.iter().cloned()).collect();
            write_npz(path, &arrays).map_err(cannot)?;
        }
        Output::Terminal => {}
    }
    if made.is_some() && !args.output.is_empty() {
        clock.passed("write");
    }
    // What went to a file is named, not shown.
    let shown = if args.output.is_empty() { &views[..] } else { &[] };
    report(args, exprs, (&program, &run, &operands), &shapes, shown, clock)
}

/// Computes results where their files are mapped.
fn to_files(
    run: JointRun<'_>,
    paths: &[PathBuf],
    dtypes: &[DType],
    shapes: &[Vec<usize>],
    clock: &mut Clock,
    fail: impl Fn(ProgramError) -> Failure,
) -> Result<(), Failure> {
    let cannot = |error: FileError| Failure::Usage(format!("cannot write {error}"));
    let writers = paths.iter().zip(dtypes).zip(shapes);
    let mut writers = writers
        .map(|((path, &dtype), shape)| Writer::create(path, dtype, shape))
        .collect::<Result<Vec<_>, _>>()
        .map_err(cannot)?;
    let mut places = writers
        .iter_mut()
        .map(Writer::view_mut)
        .collect::<Result<Vec<AnyViewMut<'_>>, _>>()
        .map_err(cannot)?;
    run.write(&mut places).map_err(fail)?;
    drop(places);
    clock.passed("run");
    writers.into_iter().try_for_each(Writer::finish).map_err(cannot)?;
    clock.passed("write");
    Ok(())
}

/// Computes them on a device, which has to hold all operands and results.
fn on_device(
    index: usize,
    program: &JointProgram,
    rule: &OwnedRule,
    operands: &[AnyView<'_>],
) -> Result<Vec<AnyArray>, Failure> {
    let device = Device::new(index)?;
    let operands = operands.iter().map(|own| device.upload(own)).collect::<Result<Vec<_>, _>>()?;
    let made = program.on_device(&device).rule(rule.as_rule());
    let made = made.run(&operands.iter().collect::<Vec<_>>())?;
    Ok(made.iter().map(DeviceArray::download).collect::<Result<_, _>>()?)
}

fn report(
    args: &EvalArgs,
    exprs: &[Expr],
    (program, run, operands): (&JointProgram, &JointRun<'_>, &[AnyView<'_>]),
    shapes: &[Vec<usize>],
    views: &[AnyView<'_>],
    clock: &Clock,
) -> Result<(), Failure> {
    let results = exprs.iter().zip(program.dtypes()).zip(shapes).enumerate();
    if args.json {
        let results = results.map(|(at, ((expr, &dtype), shape))| {
            let mut about = show::json_of(dtype, shape, views.get(at));
            about["expression"] = expr.to_string().into();
            about
        });
        let mut answer = json!({ "schema": SCHEMA, "results": results.collect::<Value>() });
        if args.explain {
            let own: Vec<&[usize]> = operands.iter().map(AnyView::shape).collect();
            answer["operands"] = meeting::operands_json(program.operands(), &own);
            let passes = run.pass_shapes().map_err(|error| Failure::Refused(error.to_string()))?;
            answer["passes"] = passes.len().into();
            answer["pass_shapes"] = json!(passes);
        }
        if !args.output.is_empty() {
            let files = args.output.iter().map(|path| path.display().to_string());
            answer["files"] = files.collect();
        }
        return put_json(args, answer, clock);
    }
    if args.time {
        clock.say();
    }
    let mut text = String::new();
    for (at, ((expr, &dtype), shape)) in results {
        let shown = views.get(at).map_or(Shown::About(Vec::new()), Shown::of);
        let about = show::text(dtype, shape, &shown);
        let file = match args.output.as_slice() {
            [] => String::new(),
            [one] if ends(one, ".npz") => format!("{}:arr_{at}: ", one.display()),
            paths => paths.get(at).map_or_else(String::new, |path| format!("{}: ", path.display())),
        };
        text.push_str(&format!("{file}{expr}: {about}"));
    }
    output::print(&text)
}
