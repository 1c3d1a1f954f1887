//! Element-wise operations by name: what a program computes, element by element.
//!
//! ```
//! # extern crate simulcast_kernels as simulcast;
//! use simulcast::Op;
//!
//! assert_eq!("maximum".parse(), Ok(Op::Maximum));
//! assert_eq!((Op::Where.name(), Op::Where.arity()), ("where", 3));
//! ```
//!
//! | case | value |
//! |---|---|
//! | integers that overflow | wrap, also the negation and the absolute value of the smallest |
//! | integers divided by 0, and their remainder | 0 |
//! | integers to a negative power | the quotient rounded towards 0: 0, but for 1 and -1; 0 to a negative power is 0 |
//! | shifts by the width or more | 0, or -1 for a negative number shifted right; a negative amount counts as such |
//! | `maximum`, `minimum` with NaN | NaN |
//! | `remainder`, `floor_divide` | the sign of the divisor, as in Python |
//! | `fmod`, `trunc_divide` | the sign of the dividend, as in C |
//! | `round` | halves go to the even neighbour |
//! | `sign` | of NaN, NaN; of -0.0, 0.0, as NumPy |
//! | strings | `concat`, `equal`, `not_equal` and `where` alone |

use std::fmt;
use std::str::FromStr;

macro_rules! ops {
    ($($(#[$doc:meta])* $variant:ident = $name:literal / $arity:literal,)*) => {
        /// An element-wise operation.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Op {
            $($(#[$doc])* $variant,)*
        }

        impl Op {
            /// Every operation.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// Its name: NumPy's, where NumPy has it.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),* }
            }

            /// How many operands it takes.
            #[must_use]
            pub const fn arity(self) -> usize {
                match self { $(Self::$variant => $arity),* }
            }
        }
    };
}

ops! {
    /// `-a`
    Negative = "negative" / 1,
    /// `|a|`, of a complex number a float
    Absolute = "absolute" / 1,
    /// -1, 0 or 1; of a complex number `a / |a|`
    Sign = "sign" / 1,
    /// The square root
    Sqrt = "sqrt" / 1,
    /// The cube root
    Cbrt = "cbrt" / 1,
    /// `a * a`
    Square = "square" / 1,
    /// `1 / a`
    Reciprocal = "reciprocal" / 1,
    /// e to the power of `a`
    Exp = "exp" / 1,
    /// 2 to the power of `a`
    Exp2 = "exp2" / 1,
    /// `exp(a) - 1`, accurate near 0
    Expm1 = "expm1" / 1,
    /// The natural logarithm
    Log = "log" / 1,
    /// The logarithm to base 2
    Log2 = "log2" / 1,
    /// The logarithm to base 10
    Log10 = "log10" / 1,
    /// `log(1 + a)`, accurate near 0
    Log1p = "log1p" / 1,
    /// The sine
    Sin = "sin" / 1,
    /// The cosine
    Cos = "cos" / 1,
    /// The tangent
    Tan = "tan" / 1,
    /// The inverse of the sine
    Arcsin = "arcsin" / 1,
    /// The inverse of the cosine
    Arccos = "arccos" / 1,
    /// The inverse of the tangent
    Arctan = "arctan" / 1,
    /// The hyperbolic sine
    Sinh = "sinh" / 1,
    /// The hyperbolic cosine
    Cosh = "cosh" / 1,
    /// The hyperbolic tangent
    Tanh = "tanh" / 1,
    /// The inverse of the hyperbolic sine
    Arcsinh = "arcsinh" / 1,
    /// The inverse of the hyperbolic cosine
    Arccosh = "arccosh" / 1,
    /// The inverse of the hyperbolic tangent
    Arctanh = "arctanh" / 1,
    /// The error function
    Erf = "erf" / 1,
    /// `1 / (1 + exp(-a))`
    Sigmoid = "sigmoid" / 1,
    /// `a` where it is positive, else 0; NaN stays
    Relu = "relu" / 1,
    /// The largest integer that is not above
    Floor = "floor" / 1,
    /// The smallest integer that is not below
    Ceil = "ceil" / 1,
    /// The nearest integer, halves to the even one
    Round = "round" / 1,
    /// The integer part
    Trunc = "trunc" / 1,
    /// Whether it is 0
    LogicalNot = "logical_not" / 1,
    /// Every bit turned over
    BitwiseNot = "bitwise_not" / 1,
    /// Whether it is not a number
    Isnan = "isnan" / 1,
    /// Whether it is infinite
    Isinf = "isinf" / 1,
    /// Whether it is neither
    Isfinite = "isfinite" / 1,
    /// The complex conjugate
    Conjugate = "conjugate" / 1,
    /// The real part
    Real = "real" / 1,
    /// The imaginary part
    Imag = "imag" / 1,

    /// `a + b`; of booleans, or
    Add = "add" / 2,
    /// `a - b`
    Subtract = "subtract" / 2,
    /// `a * b`; of booleans, and
    Multiply = "multiply" / 2,
    /// `a / b`, a float for integers too
    Divide = "divide" / 2,
    /// `a / b` rounded down
    FloorDivide = "floor_divide" / 2,
    /// `a / b` rounded towards 0, of integers
    TruncDivide = "trunc_divide" / 2,
    /// What is left, with the sign of `b`
    Remainder = "remainder" / 2,
    /// What is left, with the sign of `a`
    Fmod = "fmod" / 2,
    /// `a` to the power of `b`
    Power = "power" / 2,
    /// The angle of the point (b, a)
    Arctan2 = "arctan2" / 2,
    /// The length of (a, b)
    Hypot = "hypot" / 2,
    /// The larger one, or NaN
    Maximum = "maximum" / 2,
    /// The smaller one, or NaN
    Minimum = "minimum" / 2,
    /// Whether both are other than 0
    LogicalAnd = "logical_and" / 2,
    /// Whether one is other than 0
    LogicalOr = "logical_or" / 2,
    /// Whether just one is other than 0
    LogicalXor = "logical_xor" / 2,
    /// Bits of both
    BitwiseAnd = "bitwise_and" / 2,
    /// Bits of either
    BitwiseOr = "bitwise_or" / 2,
    /// Bits of just one
    BitwiseXor = "bitwise_xor" / 2,
    /// `a` times 2 to the power of `b`
    LeftShift = "left_shift" / 2,
    /// `a` divided by 2 to the power of `b`, rounded down
    RightShift = "right_shift" / 2,
    /// `a == b`
    Equal = "equal" / 2,
    /// `a != b`
    NotEqual = "not_equal" / 2,
    /// `a < b`
    Less = "less" / 2,
    /// `a <= b`
    LessEqual = "less_equal" / 2,
    /// `a > b`
    Greater = "greater" / 2,
    /// `a >= b`
    GreaterEqual = "greater_equal" / 2,
    /// One text after the other
    Concat = "concat" / 2,

    /// `b` where `a` is true, else `c`
    Where = "where" / 3,
    /// `a * b + c`, rounded once where the machine can
    MultiplyAdd = "multiply_add" / 3,
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A name that is no [`Op`]'s.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownOp(String);

impl fmt::Display for UnknownOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is no operation", self.0)
    }
}

impl std::error::Error for UnknownOp {}

impl FromStr for Op {
    type Err = UnknownOp;

    fn from_str(name: &str) -> Result<Self, UnknownOp> {
        let named = Self::ALL.iter().find(|op| op.name() == name);
        named.copied().ok_or_else(|| UnknownOp(name.into()))
    }
}
