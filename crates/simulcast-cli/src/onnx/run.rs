//! `simulcast onnx run`: a model's outputs for some arrays, to the terminal or a file.

use std::path::Path;

use serde_json::{Map, Value, json};
use simulcast::{AnyArray, AnyView};
use simulcast_explain::SCHEMA;
use simulcast_files::{write_npy, write_npz};
use simulcast_onnx::{RunError, Session};

use super::{load_with, sizes};
use crate::args::OnnxRunArgs;
use crate::eval::inputs::Inputs;
use crate::eval::show::{self, Shown};
use crate::eval::{Clock, available};
use crate::{Failure, output};

pub(super) fn run(args: &OnnxRunArgs) -> Result<(), Failure> {
    let mut clock = Clock::start();
    let memory = args.max_bytes.unwrap_or_else(available);
    let sizes = sizes(&args.sizes)?;
    let model = load_with(&args.model, args.trust_names)?;
    let fail = |error: RunError| failed(&args.model, &error);
    let mut session =
        Session::new(&model).and_then(|made| made.with_sizes(&sizes)).map_err(fail)?;
    if args.dry_run {
        return dry_run(&session);
    }
    session = session.limit(usize::try_from(memory).unwrap_or(usize::MAX));
    if let Some(threads) = args.threads {
        session = session.threads(threads.get());
    }
    if let Some(path) = &args.output {
        check_output(path, session.outputs().count())?;
    }
    clock.passed("load");
    let inputs = Inputs::new(&args.inputs, args.seed, memory, true)?;
    let given = inputs.views()?;
    clock.passed("read");
    let outputs = session.run(&given).map_err(fail)?;
    clock.passed("run");
    if let Some(path) = &args.output {
        write(path, &outputs)?;
        clock.passed("write");
    }
    report(args, &session, &outputs, &clock)
}

/// What the model is given and gives; what it has no code for was said when the session was made.
fn dry_run(session: &Session) -> Result<(), Failure> {
    let mut text = String::from("there is code for every node\n");
    for name in session.inputs() {
        let wanted = session.input_text(name).unwrap_or_default();
        text.push_str(&format!("input {name}: {wanted}\n"));
    }
    for name in session.outputs() {
        text.push_str(&format!("output {name}\n"));
    }
    output::print(&simulcast_explain::terminal_safe(&text))
}

/// What is wrong with the call exits with 2, what is wrong with shapes and types with 1.
fn failed(model: &Path, error: &RunError) -> Failure {
    let text = format!("{}: {error}", model.display());
    match error {
        RunError::Node { .. }
        | RunError::Shape { .. }
        | RunError::DType { .. }
        | RunError::Symbol { .. } => Failure::Refused(text),
        _ => Failure::Usage(text),
    }
}

fn check_output(path: &Path, outputs: usize) -> Result<(), Failure> {
    let ends = |with: &str| path.extension().is_some_and(|extension| extension == with);
    match (ends("npz"), ends("npy"), outputs) {
        (true, ..) | (_, true, 1) => Ok(()),
        (_, true, _) => {
            let path = path.display();
            Err(Failure::Usage(format!("{outputs} outputs go to a .npz file, not to {path}")))
        }
        _ => Err(Failure::Usage(format!("{} ends in neither .npz nor .npy", path.display()))),
    }
}

fn write(path: &Path, outputs: &[(String, AnyArray)]) -> Result<(), Failure> {
    let views: Vec<(&str, AnyView<'_>)> =
        outputs.iter().map(|(name, array)| (name.as_str(), array.view())).collect();
    let written = match views.as_slice() {
        [(_, only)] if path.extension().is_some_and(|extension| extension == "npy") => {
            write_npy(path, only)
        }
        all => write_npz(path, all),
    };
    written.map_err(|error| Failure::Usage(format!("cannot write {error}")))
}

fn report(
    args: &OnnxRunArgs,
    session: &Session,
    outputs: &[(String, AnyArray)],
    clock: &Clock,
) -> Result<(), Failure> {
    let file = args.output.as_ref().map(|path| path.display().to_string());
    if args.json {
        let about: Map<String, Value> = outputs
            .iter()
            .map(|(name, array)| {
                let view = array.view();
                (name.clone(), show::json_of(array.dtype(), array.shape(), Some(&view)))
            })
            .collect();
        let mut answer = json!({ "schema": SCHEMA, "outputs": about });
        if let Some(file) = file {
            answer["file"] = file.into();
        }
        if args.time {
            answer["seconds"] = clock.seconds();
            answer["programs"] = session.fused().into();
        }
        return output::put(format!("{answer}\n"));
    }
    if args.time {
        clock.say();
    }
    let mut text = String::new();
    for (name, array) in outputs {
        let shown = Shown::of(&array.view());
        let about = show::text(array.dtype(), array.shape(), &shown);
        let name = simulcast_explain::terminal_safe(name).replace('\n', "?");
        text.push_str(&format!("{name}: {about}"));
    }
    if let Some(file) = file {
        text.push_str(&format!("written to {file}\n"));
    }
    output::print(&text)
}
