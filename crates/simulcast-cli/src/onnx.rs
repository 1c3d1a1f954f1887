//! `simulcast onnx`: a model's broadcasts checked, its shapes written back, models run, and old ones
//! upgraded.

mod infer;
mod run;

use std::path::Path;

use simulcast_core::Action;
use simulcast_explain::TextOptions;
use simulcast_onnx::{Check, CheckPolicy, Model, UpgradeError, check, upgrade};

use crate::args::{OnnxCheckArgs, OnnxCommand, OnnxUpgradeArgs};
use crate::request::symbol_size;
use crate::{Failure, output};

pub(crate) fn run(command: &OnnxCommand) -> Result<(), Failure> {
    match command {
        OnnxCommand::Check(args) => run_check(args),
        OnnxCommand::Infer(args) => infer::run(args),
        OnnxCommand::Run(args) => run::run(args),
        OnnxCommand::Upgrade(args) => run_upgrade(args),
    }
}

fn run_check(args: &OnnxCheckArgs) -> Result<(), Failure> {
    let to_stdout = args.html.as_deref() == Some(Path::new("-"));
    if to_stdout && args.json {
        return Err(Failure::Usage("only one of --html - and --json can print".into()));
    }
    let mut policy = CheckPolicy::default();
    for (words, action) in [(&args.allow, Action::Allow), (&args.deny, Action::Raise)] {
        for word in words {
            policy = policy.with(word, action).map_err(Failure::Usage)?;
        }
    }
    let sizes = sizes(&args.sizes)?;
    let about = |why: String| Failure::Usage(format!("{}: {why}", args.model.display()));
    let model = load(&args.model)?;
    let found = check(&model, &sizes, &policy).map_err(about)?;
    let refused = refused(&found);
    match (show(args, &model, &found, to_stdout), refused) {
        // A reader that has seen enough changes nothing about the verdict.
        (Err(Failure::Closed), Some(message)) => Err(Failure::Refused(message)),
        (Err(failure), _) => Err(failure),
        (Ok(()), Some(message)) => Err(Failure::Refused(message)),
        (Ok(()), None) => Ok(()),
    }
}

/// The sizes of symbols, none twice.
fn sizes(words: &[String]) -> Result<Vec<(&str, usize)>, Failure> {
    let mut sizes = Vec::new();
    for word in words {
        let (name, size) = symbol_size(word).map_err(Failure::Usage)?;
        if sizes.iter().any(|(known, _)| *known == name) {
            return Err(Failure::Usage(format!("{name} is set twice")));
        }
        sizes.push((name, size));
    }
    Ok(sizes)
}

fn load(path: &Path) -> Result<Model, Failure> {
    Model::load(path).map_err(|error| match error {
        simulcast_onnx::LoadError::Read { .. } => Failure::Usage(error.to_string()),
        error => Failure::Usage(format!("{}: {error}", path.display())),
    })
}

/// Writes the page that was asked for, and prints the text unless something took its place.
fn show(args: &OnnxCheckArgs, model: &Model, found: &Check, page: bool) -> Result<(), Failure> {
    if let Some(path) = &args.html {
        let title = args.model.file_name().unwrap_or(args.model.as_os_str());
        output::write(path, found.html(model, &title.to_string_lossy()))?;
    }
    if page {
        return Ok(());
    }
    if args.json {
        return output::put(format!("{}\n", found.json(model)));
    }
    // anstream takes the colours out where they are not wanted.
    let options = TextOptions { color: true, ..TextOptions::default() };
    output::print(&found.text(model, options))
}

/// What the exit code is for, in a line each.
fn refused(found: &Check) -> Option<String> {
    let lines = found.failures();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

fn run_upgrade(args: &OnnxUpgradeArgs) -> Result<(), Failure> {
    let about = |why: &dyn std::fmt::Display| format!("{}: {why}", args.model.display());
    let bytes = simulcast_onnx::read(&args.model).map_err(|error| Failure::Usage(about(&error)))?;
    let folder = args.model.parent();
    let upgraded = upgrade(&bytes, folder).map_err(|error| match error {
        // Understood, and no model of the newer opset says the same.
        UpgradeError::Node { .. } => Failure::Refused(about(&error)),
        error => Failure::Usage(about(&error)),
    })?;
    output::write(&args.output, upgraded)
}
