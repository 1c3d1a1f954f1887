//! ONNX models: sessions that run, and checks.

use numpy::{PyUntypedArray, PyUntypedArrayMethods as _};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString};
use simulcast::{AnyArray, AnyView};
use simulcast_core::Action;
use simulcast_explain::TextOptions;
use simulcast_onnx::{
    AnnotateOptions, Check, CheckPolicy, ElementType, Model, RunError, Session, annotate,
};

use crate::arrays::plain;
use crate::dtypes;
use crate::interrupts::released;
use crate::operands::Operand;
use crate::results::{Target, into_numpy};
use crate::shapes::read_size;
use crate::threads::Threads;

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
    match python(py, class).and_then(|class| class.call1((text,))) {
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
            simulcast_onnx::upgrade(&read_file(py, &path)?, path.parent())
        }
    };
    let made = made.map_err(|error| raised(py, "ModelError", &error.to_string()))?;
    Ok(PyBytes::new(py, &made))
}

/// The bytes of a model with its inferred shapes, a report as JSON, and what is wrong, a line each.
#[pyfunction]
pub(crate) fn onnx_infer<'py>(
    source: &Bound<'py, PyAny>,
    sizes: &Bound<'py, PyDict>,
    trust_names: bool,
) -> PyResult<(Bound<'py, PyBytes>, String, Vec<String>)> {
    let py = source.py();
    let mut folder = None;
    let bytes = match source.cast::<PyBytes>() {
        Ok(bytes) => bytes.as_bytes().to_vec(),
        Err(_) => {
            let path: std::path::PathBuf = source.extract()?;
            folder = path.parent().map(std::path::Path::to_owned);
            read_file(py, &path)?
        }
    };
    let sizes = sizes_of(sizes)?;
    let sizes: Vec<(&str, usize)> = sizes.iter().map(|(name, n)| (name.as_str(), *n)).collect();
    let mut options = AnnotateOptions::default();
    options.sizes = &sizes;
    options.folder = folder.as_deref();
    options.distrust_names = !trust_names;
    let made = py.detach(|| annotate(bytes, options));
    let made = made.map_err(|error| raised(py, "ModelError", &error.to_string()))?;
    let report = made.report.json().to_string();
    Ok((PyBytes::new(py, &made.bytes), report, made.inference.errors()))
}

/// The bytes of a model's file.
fn read_file(py: Python<'_>, path: &std::path::Path) -> PyResult<Vec<u8>> {
    simulcast_onnx::read(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::InvalidData => raised(py, "ModelError", &error.to_string()),
        _ => error.into(),
    })
}

/// Sizes by symbol.
fn sizes_of(sizes: &Bound<'_, PyDict>) -> PyResult<Vec<(String, usize)>> {
    sizes.iter().map(|(name, size)| Ok((name.extract()?, read_size(&size)?))).collect()
}

/// A model that is ready to run.
#[pyclass(frozen, module = "simulcast._simulcast")]
pub(crate) struct OnnxSession {
    session: Session,
    outputs: Vec<Output>,
}

/// An output: its name, and the type of its codes where it is held as such.
struct Output {
    name: Py<PyString>,
    code: Option<ElementType>,
}

#[pymethods]
impl OnnxSession {
    #[new]
    fn new(
        model: &Bound<'_, PyAny>,
        threads: Option<Threads>,
        limit: Option<usize>,
    ) -> PyResult<Self> {
        let py = model.py();
        let model = load(model)?;
        let mut session = py.detach(|| Session::new(&model)).map_err(|error| failed(py, &error))?;
        if let Some(threads) = threads {
            session = session.threads(threads.get());
        }
        if let Some(limit) = limit {
            session = session.limit(limit);
        }
        let code = |name| session.codes().find(|(own, _)| *own == name).map(|(_, code)| code);
        let output = |name| Output { name: PyString::intern(py, name).unbind(), code: code(name) };
        let outputs = session.outputs().map(output).collect();
        Ok(Self { session, outputs })
    }

    /// The names of the inputs.
    #[getter]
    fn inputs(&self) -> Vec<String> {
        self.session.inputs().map(Into::into).collect()
    }

    /// The names of the outputs.
    #[getter]
    fn outputs(&self) -> Vec<String> {
        self.session.outputs().map(Into::into).collect()
    }

    /// How many nodes each program computes.
    #[getter]
    fn fused(&self) -> Vec<usize> {
        self.session.fused()
    }

    /// The outputs by name. Those that `out` names are written into its arrays.
    #[pyo3(signature = (inputs, out=None))]
    fn run<'py>(
        &self,
        py: Python<'py>,
        inputs: &Bound<'py, PyDict>,
        out: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let inputs = pairs(inputs)?;
        let read = |(name, object): &Pair<'py>| self.operand(name.to_str()?, object);
        let operands = inputs.iter().map(read).collect::<PyResult<Vec<_>>>()?;
        let mut given: Vec<(&str, AnyView<'_>)> = Vec::with_capacity(inputs.len());
        for ((name, _), operand) in inputs.iter().zip(&operands) {
            given.push((name.to_str()?, operand.view().ok_or_else(unreadable)?));
        }
        let asked = out.map_or(Ok(Vec::new()), pairs)?;
        let targets = asked.iter().map(|(_, object)| Target::new(Some(object), None, None));
        let targets = targets.collect::<PyResult<Vec<_>>>()?;
        let (mut places, mut taken) = (Vec::with_capacity(asked.len()), Vec::new());
        if !asked.is_empty() {
            taken.extend(given.iter().map(|(_, view)| view.clone()));
        }
        for ((name, _), target) in asked.iter().zip(&targets) {
            let name = name.to_str()?;
            let Some(place) = target.place(&taken) else {
                return Err(PyValueError::new_err(format!(
                    "{name:?} cannot be written to its array, which holds no numbers as they lie in \
                     memory, or shares it with an input or another output"
                )));
            };
            places.push((name, place));
            taken.extend(target.view());
        }
        // What a model computes has no size that its inputs tell.
        let made = released(py, usize::MAX, 0, || self.session.run_into(&given, &mut places))?;
        let mut made = made.map_err(|error| failed(py, &error))?.into_iter().peekable();
        let results = PyDict::new(py);
        for (name, output) in self.session.outputs().zip(&self.outputs) {
            let value = match made.next_if(|(own, _)| own == name) {
                Some((_, array)) => Some(output.value(py, array)?),
                // It was written where it was asked for.
                None => out.map_or(Ok(None), |out| out.get_item(&output.name))?,
            };
            results.set_item(&output.name, value)?;
        }
        Ok(results)
    }
}

/// A name, and an array.
type Pair<'py> = (Bound<'py, PyString>, Bound<'py, PyAny>);

/// What a dictionary holds, before anything runs that may change it.
fn pairs<'py>(of: &Bound<'py, PyDict>) -> PyResult<Vec<Pair<'py>>> {
    of.iter().map(|(name, object)| Ok((name.cast_into()?, object))).collect()
}

impl OnnxSession {
    /// An input as an operand. Python makes arrays of what is none, and codes of elements that nothing
    /// computes with.
    fn operand<'py>(&self, name: &str, object: &Bound<'py, PyAny>) -> PyResult<Operand<'py>> {
        let py = object.py();
        let known =
            |array: &&Bound<'py, PyUntypedArray>| dtypes::of_descriptor(&array.dtype()).is_some();
        let read = match plain(object).filter(known) {
            Some(array) => Operand::read(array)?,
            None => {
                let declared = self.session.input_type(name).map(ElementType::name);
                Operand::read(&python(py, "_input")?.call1((name, object, declared))?)?
            }
        };
        read.ok_or_else(unreadable)
    }
}

fn unreadable() -> PyErr {
    PyTypeError::new_err("an input cannot be read")
}

impl Output {
    /// What Python gets for it.
    fn value<'py>(&self, py: Python<'py>, array: AnyArray) -> PyResult<Bound<'py, PyAny>> {
        if let Some(words) = array.typed::<String>() {
            let words: Vec<&String> = words.iter().collect();
            return python(py, "_text")?.call1((words, array.shape().to_vec()));
        }
        let array = into_numpy(py, array)?.into_any();
        match self.code {
            Some(code) => python(py, "_numbers")?.call1((array, code.name())),
            None => Ok(array),
        }
    }
}

/// A name of `simulcast.onnx`.
fn python<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    py.import("simulcast.onnx")?.getattr(name)
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
        for (words, action) in [(allow, Action::Allow), (deny, Action::Deny)] {
            for word in words {
                policy = policy.with(&word, action).map_err(PyValueError::new_err)?;
            }
        }
        let sizes = sizes_of(sizes)?;
        let sizes: Vec<(&str, usize)> = sizes.iter().map(|(name, n)| (name.as_str(), *n)).collect();
        let found = simulcast_onnx::check(&model, &sizes, &policy);
        let found = found.map_err(|error| raised(py, "ModelError", &error))?;
        Ok(Self { model, found })
    }

    /// What is wrong with the model, a line each; nothing where it is sound.
    #[getter]
    fn errors(&self) -> Vec<String> {
        self.found.failures()
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
