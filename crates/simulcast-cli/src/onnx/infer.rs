//! `simulcast onnx infer`: a model's shapes written back into it.

use std::fmt::Write as _;
use std::path::Path;

use simulcast_explain::{SCHEMA, terminal_safe};
use simulcast_onnx::{AnnotateOptions, AnnotateReport, annotate, read};

use super::sizes;
use crate::args::OnnxInferArgs;
use crate::{Failure, output};

/// At most this many errors of a model are listed.
const ERRORS: usize = 20;

pub(super) fn run(args: &OnnxInferArgs) -> Result<(), Failure> {
    let to = args.output.as_deref().unwrap_or(&args.model);
    if to == Path::new("-") && (args.report || args.json) {
        return Err(Failure::Usage(
            "the model goes to standard output, where the report would".into(),
        ));
    }
    let about = |why: &dyn std::fmt::Display| format!("{}: {why}", args.model.display());
    let sizes = sizes(&args.sizes)?;
    let bytes = read(&args.model).map_err(|error| Failure::Usage(about(&error)))?;
    let mut options = AnnotateOptions::default();
    options.sizes = &sizes;
    options.folder = args.model.parent();
    options.distrust_names = !args.trust_names;
    let annotated = annotate(bytes, options).map_err(|error| Failure::Usage(about(&error)))?;
    let errors = annotated.inference.errors();
    let refused = || {
        let more = errors.len().saturating_sub(ERRORS);
        let mut text = errors.iter().take(ERRORS).cloned().collect::<Vec<_>>().join("\n");
        if more > 0 {
            let _ = write!(text, "\nand {more} more");
        }
        Failure::Refused(text)
    };
    if !errors.is_empty() && !args.keep_going {
        return Err(refused());
    }
    output::write(to, &annotated.bytes)?;
    if to != Path::new("-") {
        show(args, to, &annotated.report, errors.len())?;
    }
    if errors.is_empty() { Ok(()) } else { Err(refused()) }
}

fn show(
    args: &OnnxInferArgs,
    to: &Path,
    report: &AnnotateReport,
    errors: usize,
) -> Result<(), Failure> {
    let AnnotateReport { added, replaced, kept, complete, symbolic, unranked, lost, .. } = report;
    if args.json {
        let mut answer = report.json();
        answer["schema"] = SCHEMA.into();
        answer["file"] = to.display().to_string().into();
        answer["errors"] = errors.into();
        return output::put(format!("{answer}\n"));
    }
    let mut text = format!(
        "{} every size, {symbolic} sizes with names, {unranked} no rank that is known\n{} added, {} \
         replaced, {kept} kept as they were\n",
        counted(*complete, "result has", "results have"),
        counted(*added, "shape", "shapes"),
        replaced.len()
    );
    if args.report {
        for (name, before, after) in replaced {
            let _ = writeln!(text, "  {name}: {before} is {after}");
        }
        for (op, count) in lost {
            let nodes = if *count == 1 { "node" } else { "nodes" };
            let _ = writeln!(text, "  not known after {op} ({count} {nodes})");
        }
    }
    let _ = writeln!(text, "written to {}", to.display());
    output::print(&terminal_safe(&text))
}

fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}
