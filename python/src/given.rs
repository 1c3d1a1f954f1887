//! What is given by name to an expression: its operands, and options such as `dtype=`.
//!
//! Names in a program are mostly the same objects as those of an expression, so that they are compared as objects before they
//! are compared as text.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyMapping, PyString, PyTuple};
use simulcast::program::{Expr, ExprKind, nearest};
use simulcast_explain::terminal_safe;

use crate::functions::Options;
use crate::operands::{Operand, about};

/// A name, and the same as Python's dictionaries find it fastest.
pub(crate) struct Name {
    pub(crate) text: String,
    pub(crate) key: Py<PyString>,
}

impl Name {
    pub(crate) fn new(py: Python<'_>, text: &str) -> PyResult<Self> {
        let key = PyString::intern(py, &normal(py, text)?).unbind();
        Ok(Self { text: text.to_owned(), key })
    }
}

/// Every name of some expressions once, those of constants too.
pub(crate) fn names_of(py: Python<'_>, exprs: &[Expr]) -> PyResult<Vec<Name>> {
    let mut names: Vec<Name> = Vec::new();
    for node in exprs.iter().flat_map(Expr::nodes) {
        if let ExprKind::Name(name) = &node.kind
            && names.iter().all(|own| own.text != *name)
        {
            names.push(Name::new(py, name)?);
        }
    }
    Ok(names)
}

/// A name as Python gives it to a function: of letters that mean the same, one.
pub(crate) fn normal(py: Python<'_>, name: &str) -> PyResult<String> {
    if name.is_ascii() {
        return Ok(name.to_owned());
    }
    py.import("unicodedata")?.getattr("normalize")?.call1(("NFKC", name))?.extract()
}

/// What each name of an expression stands for, where it is given.
pub(crate) type Objects<'py> = Vec<Option<Bound<'py, PyAny>>>;

/// What stands for each name, where something does; `None` where one is a Dask array, or has labels.
pub(crate) fn read<'py>(
    names: &[Name],
    objects: &[Option<Bound<'py, PyAny>>],
) -> PyResult<Option<Vec<Option<Operand<'py>>>>> {
    let read = |(name, object): (&Name, &Option<Bound<'py, PyAny>>)| {
        let Some(object) = object else { return Ok(Some(None)) };
        let named = |error| about(object.py(), &format!("operand `{}`", name.text), &error);
        Ok(Operand::read(object).map_err(named)?.map(Some))
    };
    names.iter().zip(objects).map(read).collect()
}

/// Refuses operands that are given by place.
pub(crate) fn none_by_place(args: &Bound<'_, PyTuple>) -> PyResult<()> {
    match args.len() {
        0 => Ok(()),
        count => {
            let what = format!("operands are given by name, but {count} came by place");
            Err(PyTypeError::new_err(what))
        }
    }
}

/// What an expression takes besides its operands.
pub(crate) const OPTIONS: [&str; 6] = ["out", "casting", "dtype", "rule", "threads", "local_dict"];

/// Whether a name is that of an option, which comes before an operand of that name.
pub(crate) fn is_option(name: &str) -> bool {
    OPTIONS.contains(&name) || name == "fast_math"
}

/// What a call gives by name.
pub(crate) struct Given<'py> {
    pub(crate) objects: Objects<'py>,
    /// In the order of [`OPTIONS`]; None is nothing.
    pub(crate) options: [Option<Bound<'py, PyAny>>; OPTIONS.len()],
}

impl<'py> Given<'py> {
    /// Of a call of an expression with these names.
    pub(crate) fn read(
        names: &[Name],
        given: impl Iterator<Item = (Bound<'py, PyAny>, Bound<'py, PyAny>)>,
    ) -> PyResult<Self> {
        let mut own =
            Self { objects: vec![None; names.len()], options: [const { None }; OPTIONS.len()] };
        for (key, object) in given {
            let key = key.cast_into::<PyString>()?;
            let text = key.to_str()?;
            match OPTIONS.iter().position(|option| *option == text) {
                Some(option) => {
                    own.options[option] = Some(object).filter(|given| !given.is_none());
                }
                None => put(names, &mut own.objects, &key, object, &OPTIONS)?,
            }
        }
        let [.., local_dict] = &own.options;
        fill(names, &mut own.objects, local_dict.as_ref())?;
        for (name, object) in names.iter().zip(&own.objects) {
            let option = OPTIONS.iter().position(|option| *option == name.text);
            if let (Some(option), None) = (option, object)
                && own.options[option].is_some()
            {
                let name = &name.text;
                return Err(PyTypeError::new_err(format!(
                    "`{name}=` is an option of the call: give the operand `{name}` in local_dict, as in local_dict={{\"{name}\": x}}"
                )));
            }
        }
        Ok(own)
    }

    /// The operands alone, where options are arguments of their own.
    pub(crate) fn operands(
        names: &[Name],
        operands: Option<&Bound<'py, PyDict>>,
        local_dict: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Objects<'py>> {
        let mut objects = vec![None; names.len()];
        for (name, object) in operands.into_iter().flatten() {
            put(names, &mut objects, name.cast::<PyString>()?, object, &["rule", "local_dict"])?;
        }
        fill(names, &mut objects, local_dict)?;
        Ok(objects)
    }

    /// What the options say, all but `local_dict`.
    #[inline]
    pub(crate) fn with_options<T>(
        &self,
        then: impl FnOnce(Options<'_, 'py>) -> PyResult<T>,
    ) -> PyResult<T> {
        let [out, casting, dtype, rule, threads, _] = &self.options;
        let casting: Option<String> = extracted(casting.as_ref(), "casting")?;
        then(Options {
            out: out.as_ref(),
            casting: casting.as_deref(),
            dtype: dtype.as_ref(),
            rule: rule.as_ref(),
            threads: threads.as_ref().map(PyAnyMethods::extract).transpose()?,
        })
    }
}

/// An operand for one of some names, in a call that takes these options.
#[inline]
fn put<'py>(
    names: &[Name],
    objects: &mut Objects<'py>,
    key: &Bound<'py, PyString>,
    object: Bound<'py, PyAny>,
    options: &[&str],
) -> PyResult<()> {
    // Names in a program are the same objects, most of the time.
    let mut place = names.iter().position(|name| name.key.is(key));
    if place.is_none() {
        let text = key.to_str()?;
        let normal = |name: &Name| name.key.bind(key.py()).to_str().is_ok_and(|own| own == text);
        place = names.iter().position(|name| name.text == text || normal(name));
    }
    let Some(place) = place else {
        return Err(unknown(names, key.to_str()?, options));
    };
    let own = &names[place];
    if !own.text.is_ascii() {
        // One name may be written with several letters that mean the same.
        for (name, other) in names.iter().zip(&mut *objects) {
            if name.key.is(&own.key) {
                *other = Some(object.clone());
            }
        }
    }
    objects[place] = Some(object);
    Ok(())
}

/// The error for a name that is none of an expression's operands.
#[cold]
fn unknown(names: &[Name], given: &str, options: &[&str]) -> PyErr {
    let is_operand = |name: &&str| !matches!(*name, "pi" | "e" | "nan" | "inf");
    let operands: Vec<&str> =
        names.iter().map(|name| name.text.as_str()).filter(is_operand).collect();
    let known = operands.iter().copied();
    let help = match nearest(given, known.chain(options.iter().copied())) {
        _ if given == "fast_math" => {
            String::from("; `fast_math` is an option of compile and of evaluate")
        }
        _ if is_option(given) => format!("; `{given}` is an option of a call that computes it"),
        Some(name) if operands.contains(&name) => format!("; did you mean `{name}`?"),
        Some(name) => format!("; did you mean the option `{name}`?"),
        None if operands.is_empty() => String::from("; it has no operands"),
        None => format!("; its operands are {}", operands.join(", ")),
    };
    let what = format!("the expression has no operand `{given}`{help}");
    PyTypeError::new_err(terminal_safe(&what).into_owned())
}

/// Operands from `local_dict`, for names that have none yet.
#[inline]
fn fill<'py>(
    names: &[Name],
    objects: &mut Objects<'py>,
    local_dict: Option<&Bound<'py, PyAny>>,
) -> PyResult<()> {
    let Some(local) = local_dict.filter(|local| !local.is_none()) else { return Ok(()) };
    if !local.is_instance_of::<PyDict>() && local.cast::<PyMapping>().is_err() {
        let class = local.get_type();
        let what = format!("argument 'local_dict' is operands by name, a dictionary, not {class}");
        return Err(PyTypeError::new_err(what));
    }
    for (name, object) in names.iter().zip(&mut *objects) {
        if object.is_none() && local.contains(&name.key)? {
            *object = Some(local.get_item(&name.key)?);
        }
    }
    // As it is written, and not as Python reads it.
    for (place, name) in names.iter().enumerate() {
        if objects[place].is_none() && !name.text.is_ascii() && local.contains(&name.text)? {
            put(names, objects, name.key.bind(local.py()), local.get_item(&name.text)?, &[])?;
        }
    }
    Ok(())
}

/// An option as what it has to be.
#[inline]
pub(crate) fn extracted<'py, T: for<'a> FromPyObject<'a, 'py, Error = PyErr>>(
    given: Option<&Bound<'py, PyAny>>,
    name: &str,
) -> PyResult<Option<T>> {
    let Some(given) = given else { return Ok(None) };
    given.extract().map(Some).map_err(|error: PyErr| {
        let py = given.py();
        match error.is_instance_of::<PyTypeError>(py) {
            true => PyTypeError::new_err(format!("argument '{name}': {}", error.value(py))),
            false => error,
        }
    })
}
