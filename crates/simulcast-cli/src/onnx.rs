//! `simulcast onnx`: a model's broadcasts checked, its shapes written back, models run, and old ones
//! upgraded.

mod check;
mod diff;
mod infer;
mod run;

use std::path::Path;

use simulcast_onnx::{Model, UpgradeError, upgrade};

use crate::args::{OnnxCommand, OnnxUpgradeArgs};
use crate::request::symbol_size;
use crate::{Failure, output};

pub(crate) fn run(command: &OnnxCommand) -> Result<(), Failure> {
    match command {
        OnnxCommand::Check(args) => check::run(args),
        OnnxCommand::Diff(args) => diff::run(args),
        OnnxCommand::Infer(args) => infer::run(args),
        OnnxCommand::Run(args) => run::run(args),
        OnnxCommand::Upgrade(args) => run_upgrade(args),
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

/// The model in which equal names of sizes mean equal sizes only where they are trusted.
fn load_with(path: &Path, trust_names: bool) -> Result<Model, Failure> {
    let mut model = load(path)?;
    if !trust_names {
        model.forget_names();
    }
    Ok(model)
}

fn load(path: &Path) -> Result<Model, Failure> {
    Model::load(path).map_err(|error| match error {
        simulcast_onnx::LoadError::Read { .. } => Failure::Usage(error.to_string()),
        error => Failure::Usage(format!("{}: {error}", path.display())),
    })
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
