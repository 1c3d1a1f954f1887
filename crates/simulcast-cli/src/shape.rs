//! `simulcast shape`: the result alone, for scripts.

use serde_json::json;
use simulcast_core::{Dims, Outcome};
use simulcast_explain::{SCHEMA, constraint_json, dims_json, error_json};

use crate::args::ShapeArgs;
use crate::request::request;
use crate::{Failure, jsonl, output};

pub(crate) fn run(args: &ShapeArgs) -> Result<(), Failure> {
    if args.jsonl {
        return jsonl::run();
    }
    let request = request(&args.request)?;
    let (shape, constraints) = match request.resolve() {
        Outcome::Plan(plan) => (Dims::from(plan.shape()), None),
        Outcome::Symbolic(plan) => {
            let needs = plan.constraints().iter().map(|c| constraint_json(c, &request.names));
            (plan.shape().clone(), Some(needs.collect::<Vec<_>>()))
        }
        Outcome::Error(error) => {
            if args.json {
                let answer = json!({ "schema": SCHEMA, "error": error_json(&error) });
                match output::put(format!("{answer}\n")) {
                    Ok(()) | Err(Failure::Closed) => {}
                    failure => return failure,
                }
            }
            return Err(Failure::Refused(error.to_string()));
        }
    };
    let line = match (args.json, constraints) {
        (true, None) => json!({ "schema": SCHEMA, "shape": dims_json(&shape) }).to_string(),
        (true, Some(needs)) => {
            json!({ "schema": SCHEMA, "shape": dims_json(&shape), "constraints": needs })
                .to_string()
        }
        (false, _) => bare(&shape),
    };
    output::put(format!("{line}\n"))
}

/// `8,7,6,5`; `()` for a scalar.
fn bare(shape: &Dims) -> String {
    match shape.dims() {
        Some([]) => "()".into(),
        Some(dims) => dims.iter().map(ToString::to_string).collect::<Vec<_>>().join(","),
        None => "...".into(),
    }
}
