//! `simulcast onnx diff`: what another tool made of a model's shapes and broadcasts.

use std::path::Path;

use simulcast_explain::{SCHEMA, terminal_safe};
use simulcast_onnx::{Inference, ModelDiff, diff, infer};

use super::{load, sizes};
use crate::args::OnnxDiffArgs;
use crate::{Failure, output};

pub(super) fn run(args: &OnnxDiffArgs) -> Result<(), Failure> {
    let sizes = sizes(&args.sizes)?;
    let read = |path: &Path| {
        let model = load(path)?;
        let about = |why: String| Failure::Usage(format!("{}: {why}", path.display()));
        let inference = infer(&model, &sizes).map_err(about)?;
        Ok::<_, Failure>((model, inference))
    };
    let (before, inferred) = read(&args.before)?;
    let (after, inferred_after) = read(&args.after)?;
    let found = diff((&before, &inferred), (&after, &inferred_after));
    let errors = errors(&args.before, &inferred).chain(errors(&args.after, &inferred_after));
    let errors: Vec<String> = errors.collect();
    show(args, &found)?;
    match (errors.is_empty(), found.is_empty()) {
        (true, true) => Ok(()),
        (false, _) => Err(Failure::Refused(errors.join("\n"))),
        (true, false) => Err(Failure::Refused("the models differ".into())),
    }
}

fn errors(path: &Path, inference: &Inference) -> impl Iterator<Item = String> {
    let path = path.display().to_string();
    inference.errors().into_iter().map(move |error| format!("{path}: {error}"))
}

fn show(args: &OnnxDiffArgs, found: &ModelDiff) -> Result<(), Failure> {
    if args.json {
        let mut answer = found.json();
        answer["schema"] = SCHEMA.into();
        return output::put(format!("{answer}\n"));
    }
    output::print(&terminal_safe(&found.to_string()))
}
