//! The extension module behind the Python package `simulcast`.
//!
//! Python objects become shapes and arrays here, and answers become Python objects; what a broadcast
//! means is asked of `simulcast-core`, what is computed of `simulcast`. A plain `ndarray` goes
//! straight through; anything else (a list, a subclass, another library's array, a Dask array) is
//! first handed to `simulcast/_inputs.py`.
//!
//! | module | what |
//! |---|---|
//! | [`shapes`] | shapes as Python writes them |
//! | [`rules`] | the class `Rule`, its constructors, and the argument `rule=` |
//! | [`errors`] | a `BroadcastError` as a Python exception |
//! | [`arrays`] | NumPy arrays as pointers and strides, and views of them |
//! | [`broadcast`] | `broadcast_shapes`, `broadcast_to`, `broadcast_arrays` |
//! | [`sums`] | `sum_to` |
//! | [`dtypes`] | element types |
//! | [`operands`], [`results`] | what functions take, and where their results go |
//! | [`cuda`] | arrays of other libraries on CUDA devices |
//! | [`memory`], [`handler`] | memory that is kept for the next result, and arrays that are in it |
//! | [`names`] | `add` and all other operations |
//! | [`functions`], [`dense`] | how they are called, and the short way for small arrays |
//! | [`composites`] | `clip`, `round`, `vjp` |
//! | [`expressions`], [`fastcall`], [`programs`] | `compile`, `evaluate`, and what they keep |
//! | [`given`] | the operands and options that a call gives by name |
//! | [`joint`] | several expressions in one pass, `grad`, `value_and_grad` |
//! | [`explanation`] | `explain` |
//! | [`messages`] | what `explain_error` is made of |
//! | [`onnx`] | what `simulcast.onnx` is made of |
//! | [`command`] | the `simulcast` command inside the wheel |
//! | [`interrupts`] | Ctrl-C during a long call |
//! | [`threads`] | how many threads calls run on |
//! | [`reports`] | how certain findings are, the formats of reports, baselines |
//! | [`policies`] | the class `Policy`, and when a policy is asked |

mod arrays;
mod broadcast;
mod command;
mod composites;
mod cuda;
mod dense;
mod dtypes;
mod errors;
mod explanation;
mod expressions;
mod fastcall;
mod functions;
mod given;
mod handler;
mod interrupts;
mod joint;
mod memory;
mod messages;
mod names;
mod onnx;
mod operands;
mod policies;
mod programs;
mod reports;
mod results;
mod rules;
mod shapes;
mod sums;
mod threads;

use pyo3::prelude::*;

/// Broadcasting for Python: what `simulcast` is made of.
#[pymodule(gil_used = false)]
mod _simulcast {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::broadcast::{broadcast_arrays, broadcast_shapes, broadcast_to, layout};
    #[pymodule_export]
    use crate::command::{clean_up_command, run_command};
    #[pymodule_export]
    use crate::composites::{clip, round, vjp};
    #[pymodule_export]
    use crate::explanation::{Explanation, Finding, explain};
    #[pymodule_export]
    use crate::expressions::{Expression, compile};
    #[pymodule_export]
    use crate::interrupts::set_stoppable;
    #[pymodule_export]
    use crate::joint::{JointExpression, grad, value_and_grad};
    #[pymodule_export]
    use crate::memory::release_memory;
    #[pymodule_export]
    use crate::messages::read_messages;
    #[pymodule_export]
    use crate::onnx::{OnnxCheck, OnnxSession, onnx_infer, onnx_upgrade};
    #[pymodule_export]
    use crate::policies::{Policy, activate};
    #[pymodule_export]
    use crate::reports::{Baseline, report, weigh};
    #[pymodule_export]
    use crate::rules::{
        Rule, axes, bidirectional, legacy, mapping, named, paddle, pdpd, to, unidirectional,
    };
    #[pymodule_export]
    use crate::sums::sum_to;
    #[pymodule_export]
    use crate::threads::{get_num_threads, set_num_threads};

    /// An environment variable that cannot be read is an error of the import.
    fn unreadable(error: &simulcast::EnvironmentError) -> PyErr {
        pyo3::exceptions::PyValueError::new_err(error.to_string())
    }

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        crate::memory::register()
            .and_then(|()| simulcast::check_environment())
            .map_err(|error| unreadable(&error))?;
        crate::fastcall::register(module)?;
        crate::names::register(module)
    }
}
