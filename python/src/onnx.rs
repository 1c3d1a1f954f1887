//! ONNX models: sessions that run, and checks.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};
use simulcast::AnyView;
use simulcast_core::Action;
use simulcast_explain::TextOptions;
use simulcast_onnx::{Check, CheckPolicy, ElementType, Model, Outcome, RunError};

use crate::operands::{Operand, views};
use crate::results::{Target, into_numpy};

/// A model from its bytes, or from a file, whose folder may hold data.
fn load(source: &Bound<'_, PyAny>) -> PyResult<Model> {
    let py = source.py();
    let loaded = match source.cast::<PyBytes>() {
        Ok(bytes) => Model::from_bytes(bytes.as_bytes()),
        Err(_) => Model::load(source.extract::<std::path::PathBuf>()?),
    };
    loaded.map_err(|error| raised(py, "ModelError", &error.to_string()))
}

/// An exception of `simulcast.onnx`.
fn raised(py: Python<'_>, class: &str, text: &str) -> PyErr {
    let class = py.import("simulcast.onnx").and_then(|module| module.getattr(class));
    match class.and_then(|class| class.call1((text,))) {
        Ok(error) => PyErr::from_value(error),
        Err(error) => error,
    }
}

fn failed(py: Python<'_>, error: &RunError) -> PyErr {
    let class = match error {
        RunError::Unsupported(_) | RunError::Value { .. } => "UnsupportedError",
        _ => "ModelError",
    };
    raised(py, class, &error.to_string())
}

/// The bytes of a model of opset 1 to 6, rewritten for opset 7.
#[pyfunction]
pub(crate) fn onnx_upgrade<'py>(source: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
    let py = source.py();
    let made = match source.cast::<PyBytes>() {
        Ok(bytes) => simulcast_onnx::upgrade(bytes.as_bytes(), None),
        Err(_) => {
            let path: std::path::PathBuf = source.extract()?;
            simulcast_onnx::upgrade(&std::fs::read(&path)?, path.parent())
        }
    };
    let made = made.map_err(|error| raised(py, "ModelError", &error.to_string()))?;
    Ok(PyBytes::new(py, &made))
}

/// A model that is ready to run.
#[pyclass(frozen, module = "simulcast._simulcast")]
pub(crate) struct OnnxSession(simulcast_onnx::Session);

#[pymethods]
impl OnnxSession {
    #[new]
    fn new(
        model: &Bound<'_, PyAny>,
        threads: Option<usize>,
        limit: Option<usize>,
    ) -> PyResult<Self> {
        let py = model.py();
        let model = load(model)?;
        let mut session = py
            .detach(|| simulcast_onnx::Session::new(&model))
            .map_err(|error| failed(py, &error))?;
        match threads {
            Some(0) => return Err(PyValueError::new_err("threads is a number from 1 on")),
            Some(threads) => session = session.threads(threads),
            None => {}
        }
        if let Some(limit) = limit {
            session = session.limit(limit);
        }
        Ok(Self(session))
    }

    /// The names of the inputs.
    #[getter]
    fn inputs(&self) -> Vec<String> {
        self.0.inputs().map(Into::into).collect()
    }

    /// The names of the outputs.
    #[getter]
    fn outputs(&self) -> Vec<String> {
        self.0.outputs().map(Into::into).collect()
    }

    /// The type that the model declares for an input, by ONNX's name.
    fn input_type(&self, name: &str) -> Option<&'static str> {
        self.0.input_type(name).map(ElementType::name)
    }

    /// The types of the outputs that are codes, one in each byte, by ONNX's names.
    #[getter]
    fn codes(&self) -> Vec<(String, &'static str)> {
        self.0.codes().map(|(output, code)| (output.into(), code.name())).collect()
    }

    /// How many nodes each program computes.
    #[getter]
    fn fused(&self) -> Vec<usize> {
        self.0.fused()
    }

    /// The outputs in order: arrays, and for text a list of words with its shape. Those that `out`
    /// names are written into its arrays.
    #[pyo3(signature = (inputs, out=None))]
    fn run<'py>(
        &self,
        py: Python<'py>,
        inputs: &Bound<'py, PyDict>,
        out: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyList>> {
        let names: Vec<String> = inputs.keys().extract()?;
        let objects: Vec<Bound<'py, PyAny>> = inputs.values().iter().collect();
        let objects: Vec<&Bound<'py, PyAny>> = objects.iter().collect();
        let Some(operands) = Operand::read_all(&objects)? else {
            return Err(PyTypeError::new_err("a model runs on arrays, not on Dask's"));
        };
        let views = views(&operands)?;
        let asked: Vec<(String, Bound<'py, PyAny>)> =
            out.map_or(Ok(Vec::new()), |out| out.items().extract())?;
        let targets = asked.iter().map(|(_, object)| Target::new(Some(object), None, None));
        let targets = targets.collect::<PyResult<Vec<_>>>()?;
        let (mut places, mut taken) = (Vec::with_capacity(asked.len()), views.clone());
        for ((name, _), target) in asked.iter().zip(&targets) {
            let Some(place) = target.place(&taken) else {
                return Err(PyValueError::new_err(format!(
                    "{name:?} cannot be written to its array, which holds no numbers as they lie in \
                     memory, or shares it with an input or another output"
                )));
            };
            places.push((name.as_str(), place));
            taken.extend(target.view());
        }
        let given: Vec<(&str, AnyView<'_>)> = names.iter().map(String::as_str).zip(views).collect();
        let made = py.detach(|| self.0.run_into(&given, &mut places));
        let mut made = made.map_err(|error| failed(py, &error))?.into_iter().peekable();
        let list = PyList::empty(py);
        for name in self.0.outputs() {
            let Some((_, array)) = made.next_if(|(own, _)| own == name) else {
                // It was written where it was asked for.
                let place = asked.iter().find(|(own, _)| own == name);
                list.append(place.map(|(_, object)| object))?;
                continue;
            };
            match array.typed::<String>() {
                Some(words) => {
                    let words: Vec<&String> = words.iter().collect();
                    list.append((words, array.shape().to_vec()))?;
                }
                None => list.append(into_numpy(py, array)?)?,
            }
        }
        Ok(list)
    }
}

/// What a check of a model found.
#[pyclass(frozen, module = "simulcast._simulcast")]
pub(crate) struct OnnxCheck {
    model: Model,
    found: Check,
}

#[pymethods]
impl OnnxCheck {
    #[new]
    fn new(
        model: &Bound<'_, PyAny>,
        sizes: &Bound<'_, PyDict>,
        allow: Vec<String>,
        deny: Vec<String>,
    ) -> PyResult<Self> {
        let py = model.py();
        let model = load(model)?;
        let mut policy = CheckPolicy::default();
        for (words, action) in [(allow, Action::Allow), (deny, Action::Raise)] {
            for word in words {
                policy = policy.with(&word, action).map_err(PyValueError::new_err)?;
            }
        }
        let sizes: Vec<(String, usize)> = sizes.items().extract()?;
        let sizes: Vec<(&str, usize)> = sizes.iter().map(|(name, n)| (name.as_str(), *n)).collect();
        let found = simulcast_onnx::check(&model, &sizes, &policy);
        let found = found.map_err(|error| raised(py, "ModelError", &error))?;
        Ok(Self { model, found })
    }

    /// What is wrong with the model, a line each; nothing where it is sound.
    #[getter]
    fn errors(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for checked in &self.found.broadcasts {
            let node = &checked.broadcast.node;
            if let Outcome::Error(error) = &checked.broadcast.outcome {
                lines.push(format!("{node} ({}): {error}", checked.broadcast.op));
            }
            let raised = checked.findings.iter().take(checked.raised);
            lines.extend(raised.map(|finding| format!("denied: {node}: {finding}")));
        }
        for problem in &self.found.inference.problems {
            lines.push(format!("{} ({}): {}", problem.node, problem.op, problem.message));
        }
        let raised = self.found.findings.iter().filter(|finding| finding.raised);
        lines.extend(raised.map(|finding| format!("denied: {finding}")));
        lines
    }

    /// Everything that was found, as JSON.
    fn json(&self) -> String {
        self.found.json(&self.model).to_string()
    }

    /// A page with a picture of each broadcast.
    fn html(&self, title: &str) -> String {
        self.found.html(&self.model, title)
    }

    fn __str__(&self) -> String {
        self.found.text(&self.model, TextOptions::default())
    }
}
