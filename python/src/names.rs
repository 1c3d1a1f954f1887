//! The functions of the module, by name: one for each row of the table of operations.
//!
//! Text is joined by `add`, as in NumPy; what NumPy calls `concat` is something else.

use pyo3::prelude::*;
use simulcast::Op;
use simulcast_kernels::every_op;

use crate::functions::{Options, apply};
use crate::threads::Threads;

/// The examples in a function's documentation.
macro_rules! example {
    (Exp) => {
        r#"

>>> import numpy as np, simulcast
>>> simulcast.exp(np.array([0.0, 1.0], dtype=np.float32))
array([1.       , 2.7182817], dtype=float32)"#
    };
    (Add) => {
        r#"

Types are promoted as in NumPy 2: Python's numbers are weak. Text is joined.

>>> import numpy as np, simulcast
>>> simulcast.add([[1], [2]], [10.0, 20.0])
array([[11., 21.],
       [12., 22.]])
>>> simulcast.add(np.zeros((2, 3)), [1.0, 2.0], rule=simulcast.pdpd(axis=0))
array([[1., 1., 1.],
       [2., 2., 2.]])"#
    };
    (Multiply) => {
        r#"

>>> import numpy as np, simulcast
>>> out = np.empty((2, 3))
>>> simulcast.multiply([[2], [3]], [1.0, 2.0, 3.0], out=out) is out
True
>>> out
array([[2., 4., 6.],
       [3., 6., 9.]])"#
    };
    (Maximum) => {
        r#"

>>> import simulcast
>>> simulcast.maximum([1.0, float("nan"), 3.0], 2.0)
array([ 2., nan,  3.])"#
    };
    (Where) => {
        r#"

>>> import simulcast
>>> simulcast.where([True, False], ["yes"], "no")
array(['yes', 'no'], dtype='<U3')"#
    };
    ($other:ident) => {
        ""
    };
}

/// Writes a function for each row but those of `concat` and `round`, and what registers all of them.
macro_rules! functions {
    (
        { $grad:ident }
        $(
            $doc:literal
            $variant:ident = $name:literal $function:ident $operands:tt on $types:tt -> $gives:ident,
                typed $typed:tt, also $also:tt, text $text:tt, onnx $onnx:tt, slope $slopes:tt;
        )*
    ) => {
        $(functions! { @one $variant $operands $doc $name $function })*

        /// Adds every function to the module.
        pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
            $(functions! { @register $variant $function module })*
            Ok(())
        }
    };
    (@one Concat $operands:tt $doc:literal $name:literal $function:ident) => {};
    // It has decimals: `composites::round`.
    (@one Round $operands:tt $doc:literal $name:literal $function:ident) => {};
    (@one $variant:ident ($a:ident) $doc:literal $name:literal $function:ident) => {
        functions! { @function $variant ($a) $doc $name $function
            "(a, /, out=None, *, casting='same_kind', dtype=None, rule='numpy', threads=None)" }
    };
    (@one $variant:ident ($a:ident, $b:ident) $doc:literal $name:literal $function:ident) => {
        functions! { @function $variant ($a, $b) $doc $name $function
            "(a, b, /, out=None, *, casting='same_kind', dtype=None, rule='numpy', threads=None)" }
    };
    (@one $variant:ident $operands:tt $doc:literal $name:literal $function:ident) => {
        functions! { @function $variant $operands $doc $name $function
            "(a, b, c, /, out=None, *, casting='same_kind', dtype=None, rule='numpy', threads=None)" }
    };
    (
        @function $variant:ident ($($arg:ident),+) $doc:literal $name:literal $function:ident
        $signature:literal
    ) => {
        #[doc = concat!($doc, example!($variant))]
        #[pyfunction]
        #[pyo3(
            name = $name,
            signature = (
                $($arg),+, /, out = None, *, casting = None, dtype = None, rule = None,
                threads = None
            ),
            text_signature = $signature
        )]
        #[allow(clippy::too_many_arguments, reason = "as many as Python gives")]
        pub(crate) fn $function<'py>(
            $($arg: &Bound<'py, PyAny>,)+
            out: Option<&Bound<'py, PyAny>>,
            casting: Option<&str>,
            dtype: Option<&Bound<'py, PyAny>>,
            rule: Option<&Bound<'py, PyAny>>,
            threads: Option<Threads>,
        ) -> PyResult<Bound<'py, PyAny>> {
            apply(Op::$variant, [$($arg),+], Options { out, casting, dtype, rule, threads })
        }
    };
    (@register Concat $function:ident $module:ident) => {};
    (@register Round $function:ident $module:ident) => {};
    (@register $variant:ident $function:ident $module:ident) => {
        $module.add_function(wrap_pyfunction!($function, $module)?)?;
    };
}

every_op!(functions);
