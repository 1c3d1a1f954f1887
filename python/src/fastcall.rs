//! `evaluate`, called as Python calls what is its own: operands by name without a dictionary.
//!
//! A function that takes any names is handed a dictionary, of which another one is made: for arrays of
//! three elements that is half of the time. Here the names are looked at where the caller keeps them,
//! by [`call`], which serves expressions that are called themselves too.

use std::ffi::CStr;
use std::panic::{AssertUnwindSafe, catch_unwind};

use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple, PyTupleMethods};

use crate::expressions::{Expression, compiled, explained, value};
use crate::given::{Given, extracted};
use crate::joint;

const DOC: &CStr = c"evaluate(expr, /, *, out=None, casting='same_kind', dtype=None, rule='numpy', threads=None, local_dict=None, fast_math=False, **operands)
--

The value of an expression in text, in one pass over memory.

Python's syntax and precedence, NumPy's functions, types and promotion; no part of the text is run
by Python. Operands are given by name, or in `local_dict`. The result is cast to `dtype`, or to the
dtype of `out`, as `casting` allows; it stretches to `out`, which never stretches itself.

Several expressions, with `;` between them or in a list, are computed in as few passes as there can be, and give a tuple;
`out` is then a list of arrays, or None for a new one.

>>> import numpy as np, simulcast
>>> x = np.array([[1, 2], [3, 6]], dtype=np.float32)
>>> simulcast.evaluate(\"(x - mean(x, axis=0)) * 0.5 if x > 1 else nan\", x=x)
array([[ nan, -1. ],
       [ 0.5,  1. ]], dtype=float32)
>>> simulcast.evaluate(\"x.sum(); x.max(axis=0)\", x=x)
(np.float32(12.0), array([3., 6.], dtype=float32))
>>> simulcast.evaluate(\"image - mean\", image=np.ones((2, 3, 4, 4)), mean=np.ones(3))
Traceback (most recent call last):
simulcast.BroadcastError: error[E1]: operands of `-` do not broadcast
...

With `fast_math`, `a * b + c` may be rounded once rather than twice, where the machine can: faster,
and no longer the bits that NumPy gives.
";

/// Adds the function to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let own = ffi::PyMethodDef {
        ml_name: c"evaluate".as_ptr(),
        ml_meth: ffi::PyMethodDefPointer { PyCFunctionFastWithKeywords: evaluate },
        ml_flags: ffi::METH_FASTCALL | ffi::METH_KEYWORDS,
        ml_doc: DOC.as_ptr(),
    };
    // Python keeps a pointer to it, and ends with an empty one; a module is never unloaded.
    let both = Box::leak(Box::new([own, ffi::PyMethodDef::zeroed()]));
    // SAFETY: a live module, and definitions that live for ever.
    match unsafe { ffi::PyModule_AddFunctions(module.as_ptr(), both.as_mut_ptr()) } {
        0 => Ok(()),
        _ => Err(PyErr::fetch(module.py())),
    }
}

/// What Python calls.
///
/// # Safety
///
/// Python's own: the interpreter is attached, `args` points to `count` objects and then to one for
/// each of the names, which are a tuple of strings or nothing.
unsafe extern "C" fn evaluate(
    _module: *mut ffi::PyObject,
    args: *const *mut ffi::PyObject,
    count: ffi::Py_ssize_t,
    names: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    Python::attach(|py| {
        let called = AssertUnwindSafe(|| {
            // SAFETY: by the condition of this function.
            let names = unsafe { Bound::from_borrowed_ptr_or_opt(py, names) };
            let names = names.map(Bound::cast_into::<PyTuple>).transpose()?;
            // SAFETY: as above; nobody asks for more than there are.
            let arg = |n: usize| unsafe { Bound::from_borrowed_ptr(py, *args.add(n)) };
            read(count.cast_unsigned(), arg, names.as_ref())
        });
        let made = catch_unwind(called).unwrap_or_else(|_| {
            Err(PyRuntimeError::new_err("a mistake of this package: please report it"))
        });
        match made {
            Ok(made) => made.into_ptr(),
            Err(error) => {
                error.restore(py);
                std::ptr::null_mut()
            }
        }
    })
}

/// The call with its arguments: so many by place, then those by name.
fn read<'py>(
    count: usize,
    arg: impl Fn(usize) -> Bound<'py, PyAny>,
    names: Option<&Bound<'py, PyTuple>>,
) -> PyResult<Bound<'py, PyAny>> {
    if count != 1 {
        return Err(PyTypeError::new_err(format!(
            "evaluate() takes 1 positional argument, the expression, but {count} were given"
        )));
    }
    let expr = arg(0);
    let given = names.map_or(0, PyTupleMethods::len);
    let names = || names.into_iter().flat_map(|names| names.iter_borrowed()).enumerate();
    let found = |own: &Bound<'py, PyString>| {
        Ok(names().find(|(_, key)| key.is(own)).map(|(n, _)| arg(count + n)))
    };
    let one = match expr.cast::<PyString>() {
        Ok(text) if !text.to_str()?.contains(';') => Some(text),
        _ => None,
    };
    let read = one.map(|text| {
        compiled(text, false).map_err(|error| {
            let named = names().map(|(n, key)| (key.to_owned(), arg(count + n)));
            let mut operands: Vec<_> = named.collect();
            let local = operands.iter().find(|(key, _)| key.to_string() == "local_dict");
            if let Some(Ok(local)) = local.map(|(_, own)| own.cast::<PyDict>().cloned()) {
                operands.extend(local.iter());
            }
            explained(text, error, operands.into_iter())
        })
    });
    if let Some(expression) = read.transpose()?
        && let Some(made) = expression.get().short(expr.py(), given, found)?
    {
        return Ok(made);
    }
    // This one is looked for first: it decides which expression it is.
    let mut fast_math = None;
    for (n, key) in names() {
        if key.cast::<PyString>()?.to_str()? == "fast_math" {
            fast_math = Some(n);
        }
    }
    let fast = fast_math.map(|n| arg(count + n)).filter(|fast| !fast.is_none());
    let fast = extracted(fast.as_ref(), "fast_math")?.unwrap_or(false);
    let given = names().filter(|(n, _)| Some(*n) != fast_math);
    let given = given.map(|(n, key)| (key.to_owned(), arg(count + n)));
    match one {
        Some(text) => call(&compiled(text, fast)?, given),
        None => joint::call(&joint::compiled_jointly(&expr, fast)?, given),
    }
}

/// The value of an expression for what is given by name: options, and its operands.
pub(crate) fn call<'py>(
    expression: &Bound<'py, Expression>,
    given: impl Iterator<Item = (Bound<'py, PyAny>, Bound<'py, PyAny>)>,
) -> PyResult<Bound<'py, PyAny>> {
    let own = expression.get();
    let given = Given::read(&own.names, given)?;
    given.with_options(|options| value(expression, options, &given.objects))
}
