//! The functions of the module, by name: one for each operation of the engine.
//!
//! Text is joined by `add`, as in NumPy; what NumPy calls `concat` is something else.

use pyo3::prelude::*;
use simulcast::Op;

use crate::functions::{Options, apply};

macro_rules! functions {
    ($text:tt $args:tt $($(#[$doc:meta])* $name:ident: $variant:ident;)*) => {
        $(functions!(@one $text $args [$(#[$doc])*] $name $variant);)*
    };
    (@one $text:tt ($($arg:ident),+) [$($doc:tt)*] $name:ident $variant:ident) => {
        $($doc)*
        #[pyfunction]
        #[pyo3(
            signature = (
                $($arg),+, /, out = None, *, casting = None, dtype = None, rule = None,
                threads = None
            ),
            text_signature = $text
        )]
        #[allow(clippy::too_many_arguments, reason = "as many as Python gives")]
        pub(crate) fn $name<'py>(
            $($arg: &Bound<'py, PyAny>,)+
            out: Option<&Bound<'py, PyAny>>,
            casting: Option<&str>,
            dtype: Option<&Bound<'py, PyAny>>,
            rule: Option<&Bound<'py, PyAny>>,
            threads: Option<isize>,
        ) -> PyResult<Bound<'py, PyAny>> {
            apply(Op::$variant, [$($arg),+], Options { out, casting, dtype, rule, threads })
        }
    };
}

functions! {
    "(a, /, out=None, *, casting='same_kind', dtype=None, rule='numpy', threads=None)" (a)
    /// `-a`.
    negative: Negative;
    /// `|a|`, of a complex number a float.
    absolute: Absolute;
    /// -1, 0 or 1; of a complex number `a / |a|`.
    sign: Sign;
    /// The square root.
    sqrt: Sqrt;
    /// The cube root.
    cbrt: Cbrt;
    /// `a * a`.
    square: Square;
    /// `1 / a`.
    reciprocal: Reciprocal;
    /// e to the power of `a`.
    ///
    /// >>> import numpy as np, simulcast
    /// >>> simulcast.exp(np.array([0.0, 1.0], dtype=np.float32))
    /// array([1.       , 2.7182817], dtype=float32)
    exp: Exp;
    /// 2 to the power of `a`.
    exp2: Exp2;
    /// `exp(a) - 1`, accurate near 0.
    expm1: Expm1;
    /// The natural logarithm.
    log: Log;
    /// The logarithm to base 2.
    log2: Log2;
    /// The logarithm to base 10.
    log10: Log10;
    /// `log(1 + a)`, accurate near 0.
    log1p: Log1p;
    /// The sine.
    sin: Sin;
    /// The cosine.
    cos: Cos;
    /// The tangent.
    tan: Tan;
    /// The inverse of the sine.
    arcsin: Arcsin;
    /// The inverse of the cosine.
    arccos: Arccos;
    /// The inverse of the tangent.
    arctan: Arctan;
    /// The hyperbolic sine.
    sinh: Sinh;
    /// The hyperbolic cosine.
    cosh: Cosh;
    /// The hyperbolic tangent.
    tanh: Tanh;
    /// The inverse of the hyperbolic sine.
    arcsinh: Arcsinh;
    /// The inverse of the hyperbolic cosine.
    arccosh: Arccosh;
    /// The inverse of the hyperbolic tangent.
    arctanh: Arctanh;
    /// The error function.
    erf: Erf;
    /// `1 / (1 + exp(-a))`.
    sigmoid: Sigmoid;
    /// `a` where it is positive, else 0; NaN stays.
    relu: Relu;
    /// The largest integer that is not above.
    floor: Floor;
    /// The smallest integer that is not below.
    ceil: Ceil;
    /// The nearest integer, halves to the even one.
    round: Round;
    /// The integer part.
    trunc: Trunc;
    /// Whether it is 0.
    logical_not: LogicalNot;
    /// Every bit turned over.
    bitwise_not: BitwiseNot;
    /// Whether it is not a number.
    isnan: Isnan;
    /// Whether it is infinite.
    isinf: Isinf;
    /// Whether it is neither.
    isfinite: Isfinite;
    /// The complex conjugate.
    conjugate: Conjugate;
    /// The real part.
    real: Real;
    /// The imaginary part.
    imag: Imag;
}

functions! {
    "(a, b, /, out=None, *, casting='same_kind', dtype=None, rule='numpy', threads=None)" (a, b)
    /// `a + b`; of booleans, or.
    ///
    /// Types are promoted as in NumPy 2: Python's numbers are weak. Text is joined.
    ///
    /// >>> import numpy as np, simulcast
    /// >>> simulcast.add([[1], [2]], [10.0, 20.0])
    /// array([[11., 21.],
    ///        [12., 22.]])
    /// >>> simulcast.add(np.zeros((2, 3)), [1.0, 2.0], rule=simulcast.pdpd(axis=0))
    /// array([[1., 1., 1.],
    ///        [2., 2., 2.]])
    add: Add;
    /// `a - b`.
    subtract: Subtract;
    /// `a * b`; of booleans, and.
    ///
    /// >>> import numpy as np, simulcast
    /// >>> out = np.empty((2, 3))
    /// >>> simulcast.multiply([[2], [3]], [1.0, 2.0, 3.0], out=out) is out
    /// True
    /// >>> out
    /// array([[2., 4., 6.],
    ///        [3., 6., 9.]])
    multiply: Multiply;
    /// `a / b`, a float for integers too.
    divide: Divide;
    /// `a / b` rounded down.
    floor_divide: FloorDivide;
    /// `a / b` rounded towards 0, of integers.
    trunc_divide: TruncDivide;
    /// What is left, with the sign of `b`.
    remainder: Remainder;
    /// What is left, with the sign of `a`.
    fmod: Fmod;
    /// `a` to the power of `b`.
    power: Power;
    /// The angle of the point (b, a).
    arctan2: Arctan2;
    /// The length of (a, b).
    hypot: Hypot;
    /// The larger one, or NaN.
    ///
    /// >>> import simulcast
    /// >>> simulcast.maximum([1.0, float("nan"), 3.0], 2.0)
    /// array([ 2., nan,  3.])
    maximum: Maximum;
    /// The smaller one, or NaN.
    minimum: Minimum;
    /// Whether both are other than 0.
    logical_and: LogicalAnd;
    /// Whether one is other than 0.
    logical_or: LogicalOr;
    /// Whether just one is other than 0.
    logical_xor: LogicalXor;
    /// Bits of both.
    bitwise_and: BitwiseAnd;
    /// Bits of either.
    bitwise_or: BitwiseOr;
    /// Bits of just one.
    bitwise_xor: BitwiseXor;
    /// `a` times 2 to the power of `b`.
    left_shift: LeftShift;
    /// `a` divided by 2 to the power of `b`, rounded down.
    right_shift: RightShift;
    /// `a == b`.
    equal: Equal;
    /// `a != b`.
    not_equal: NotEqual;
    /// `a < b`.
    less: Less;
    /// `a <= b`.
    less_equal: LessEqual;
    /// `a > b`.
    greater: Greater;
    /// `a >= b`.
    greater_equal: GreaterEqual;
}

functions! {
    "(a, b, c, /, out=None, *, casting='same_kind', dtype=None, rule='numpy', threads=None)" (a, b, c)
    /// `b` where `a` is true, else `c`.
    ///
    /// >>> import simulcast
    /// >>> simulcast.where([True, False], ["yes"], "no")
    /// array(['yes', 'no'], dtype='<U3')
    r#where: Where;
    /// `a * b + c`, rounded once where the machine can.
    multiply_add: MultiplyAdd;
}

macro_rules! register {
    ($($name:ident)*) => {
        /// Adds every function to the module.
        pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
            $(module.add_function(wrap_pyfunction!($name, module)?)?;)*
            Ok(())
        }
    };
}

register! {
    negative absolute sign sqrt cbrt square reciprocal exp exp2 expm1 log log2 log10 log1p sin
    cos tan arcsin arccos arctan sinh cosh tanh arcsinh arccosh arctanh erf sigmoid relu floor
    ceil round trunc logical_not bitwise_not isnan isinf isfinite conjugate real imag add
    subtract multiply divide floor_divide trunc_divide remainder fmod power arctan2 hypot
    maximum minimum logical_and logical_or logical_xor bitwise_and bitwise_or bitwise_xor
    left_shift right_shift equal not_equal less less_equal greater greater_equal r#where
    multiply_add
}
