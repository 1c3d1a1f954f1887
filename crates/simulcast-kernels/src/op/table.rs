//! The table of operations: one row for each, from which everything that lists operations is generated.
//!
//! ```text
//! "One sentence: Rust's, Python's and the reference page's documentation."
//! Variant = "name" function(operands) on [element types] -> result,
//!     typed [try_function: Trait -> Type], also [names], text [names], onnx [names],
//!     slope [derivative for each operand];
//! ```
//!
//! | column | what is generated from it |
//! |---|---|
//! | `Variant`, `"name"` | [`Op`](super::Op), its name in expressions, and the function of that name in Python |
//! | `function(operands)` | the arity; the function in `simulcast::ops`, where `typed` is not empty |
//! | `on [types] -> result` | what the operation is defined on and gives: masks and results of `op/domain.rs` |
//! | `typed` | the panic-free function, the trait of its element types and its result's type; empty: none, or one by hand |
//! | `also` | NumPy's and the array API standard's other names: functions in Python, and names in expressions |
//! | `text` | further names in expressions alone |
//! | `onnx` | the ONNX operators that compute just this |
//! | `slope` | for each operand, the derivative times `grad`, the gradient of the result; empty: there is none |
//!
//! A slope is a formula over the operands and `grad`: Rust's operators, every operation as a method, numbers as floats,
//! and `choose(condition, a, b)`. `ZERO` is 0 whatever `grad` is; `DECIDES` is an operand that is not computed with.
//!
//! The loops stand in `ops/`, one row for each group of element types; `op::tests` fails by name where a loop is missing.

/// Calls a macro with `{ grad }`, the name that slopes give the gradient, and with every row of the table of operations.
#[macro_export]
macro_rules! every_op {
    ($call:ident) => {
        $call! {
            { grad }

            "`-a`."
            Negative = "negative" negative(a) on [NUMBERS | REFUSES_BOOL] -> Same,
                typed [try_negative: Number -> T], also [], text ["neg"], onnx ["Neg"],
                slope [-grad];

            "`|a|`; of a complex number, a float."
            Absolute = "absolute" absolute(a) on [BOOL | NUMBERS] -> Part,
                typed [try_absolute: Real -> T], also ["abs"], text [], onnx ["Abs"],
                slope [grad * a.sign()];

            "-1, 0 or 1; of a complex number, `a / |a|`."
            Sign = "sign" sign(a) on [NUMBERS | REFUSES_BOOL] -> Same,
                typed [try_sign: Number -> T], also [], text ["sgn"], onnx ["Sign"],
                slope [ZERO];

            "The square root."
            Sqrt = "sqrt" sqrt(a) on [FLOATS | COMPLEX] -> Same,
                typed [try_sqrt: Analytic -> T], also [], text [], onnx ["Sqrt"],
                slope [grad / (a.sqrt() * 2.0)];

            "The cube root."
            Cbrt = "cbrt" cbrt(a) on [FLOATS] -> Same,
                typed [try_cbrt: Float -> T], also [], text [], onnx [],
                slope [grad / (a.cbrt().square() * 3.0)];

            "`a * a`."
            Square = "square" square(a) on [NUMBERS] -> Same,
                typed [try_square: Number -> T], also [], text [], onnx [],
                slope [grad * (a * 2.0)];

            "`1 / a`."
            Reciprocal = "reciprocal" reciprocal(a) on [NUMBERS] -> Same,
                typed [try_reciprocal: Number -> T], also [], text ["recip"], onnx ["Reciprocal"],
                slope [grad / -a.square()];

            "e to the power of `a`."
            Exp = "exp" exp(a) on [FLOATS | COMPLEX] -> Same,
                typed [try_exp: Analytic -> T], also [], text [], onnx ["Exp"],
                slope [grad * a.exp()];

            "2 to the power of `a`."
            Exp2 = "exp2" exp2(a) on [FLOATS | COMPLEX] -> Same,
                typed [try_exp2: Analytic -> T], also [], text [], onnx [],
                slope [grad * (a.exp2() * LN_2)];

            "`exp(a) - 1`, accurate near 0."
            Expm1 = "expm1" expm1(a) on [FLOATS | COMPLEX] -> Same,
                typed [try_expm1: Analytic -> T], also [], text [], onnx [],
                slope [grad * a.exp()];

            "The natural logarithm."
            Log = "log" log(a) on [FLOATS | COMPLEX] -> Same,
                typed [try_log: Analytic -> T], also [], text ["ln"], onnx ["Log"],
                slope [grad / a];

            "The logarithm to base 2."
            Log2 = "log2" log2(a) on [FLOATS | COMPLEX] -> Same,
                typed [try_log2: Analytic -> T], also [], text [], onnx [],
                slope [grad / (a * LN_2)];

            "The logarithm to base 10."
            Log10 = "log10" log10(a) on [FLOATS | COMPLEX] -> Same,
                typed [try_log10: Analytic -> T], also [], text [], onnx [],
                slope [grad / (a * LN_10)];

            "`log(1 + a)`, accurate near 0."
            Log1p = "log1p" log1p(a) on [FLOATS | COMPLEX] -> Same,
                typed [try_log1p: Analytic -> T], also [], text [], onnx [],
                slope [grad / (a + 1.0)];

            "The sine."
            Sin = "sin" sin(a) on [FLOATS | COMPLEX] -> Same,
                typed [try_sin: Analytic -> T], also [], text [], onnx ["Sin"],
                slope [grad * a.cos()];

            "The cosine."
            Cos = "cos" cos(a) on [FLOATS | COMPLEX] -> Same,
                typed [try_cos: Analytic -> T], also [], text [], onnx ["Cos"],
                slope [grad * -a.sin()];

            "The tangent."
            Tan = "tan" tan(a) on [FLOATS | COMPLEX] -> Same,
                typed [try_tan: Analytic -> T], also [], text [], onnx ["Tan"],
                slope [grad * (a.tan().square() + 1.0)];

            // (1 - a) (1 + a) has no cancellation near 1.
            "The inverse of the sine."
            Arcsin = "arcsin" arcsin(a) on [FLOATS | COMPLEX] -> Same,
                typed [try_arcsin: Analytic -> T], also ["asin"], text [], onnx ["Asin"],
                slope [grad / ((1.0 - a) * (a + 1.0)).sqrt()];

            "The inverse of the cosine."
            Arccos = "arccos" arccos(a) on [FLOATS | COMPLEX] -> Same,
                typed [try_arccos: Analytic -> T], also ["acos"], text [], onnx ["Acos"],
                slope [grad / -((1.0 - a) * (a + 1.0)).sqrt()];

            "The inverse of the tangent."
            Arctan = "arctan" arctan(a) on [FLOATS | COMPLEX] -> Same,
                typed [try_arctan: Analytic -> T], also ["atan"], text [], onnx ["Atan"],
                slope [grad / (a.square() + 1.0)];

            "The hyperbolic sine."
            Sinh = "sinh" sinh(a) on [FLOATS | COMPLEX] -> Same,
                typed [try_sinh: Analytic -> T], also [], text [], onnx ["Sinh"],
                slope [grad * a.cosh()];

            "The hyperbolic cosine."
            Cosh = "cosh" cosh(a) on [FLOATS | COMPLEX] -> Same,
                typed [try_cosh: Analytic -> T], also [], text [], onnx ["Cosh"],
                slope [grad * a.sinh()];

            // 1 - tanh^2 would cancel where the result is near 1.
            "The hyperbolic tangent."
            Tanh = "tanh" tanh(a) on [FLOATS | COMPLEX] -> Same,
                typed [try_tanh: Analytic -> T], also [], text [], onnx ["Tanh"],
                slope [grad / a.cosh().square()];

            "The inverse of the hyperbolic sine."
            Arcsinh = "arcsinh" arcsinh(a) on [FLOATS | COMPLEX] -> Same,
                typed [try_arcsinh: Analytic -> T], also ["asinh"], text [], onnx ["Asinh"],
                slope [grad / a.hypot(1.0)];

            "The inverse of the hyperbolic cosine."
            Arccosh = "arccosh" arccosh(a) on [FLOATS | COMPLEX] -> Same,
                typed [try_arccosh: Analytic -> T], also ["acosh"], text [], onnx ["Acosh"],
                slope [grad / ((a - 1.0).sqrt() * (a + 1.0).sqrt())];

            "The inverse of the hyperbolic tangent."
            Arctanh = "arctanh" arctanh(a) on [FLOATS | COMPLEX] -> Same,
                typed [try_arctanh: Analytic -> T], also ["atanh"], text [], onnx ["Atanh"],
                slope [grad / ((1.0 - a) * (a + 1.0))];

            "The error function."
            Erf = "erf" erf(a) on [FLOATS] -> Same,
                typed [try_erf: Float -> T], also [], text [], onnx ["Erf"],
                slope [grad * ((-a.square()).exp() * FRAC_2_SQRT_PI)];

            // 1 - sigmoid(a) would cancel where the result is near 1.
            "`1 / (1 + exp(-a))`."
            Sigmoid = "sigmoid" sigmoid(a) on [FLOATS] -> Same,
                typed [try_sigmoid: Float -> T], also [], text ["expit"], onnx ["Sigmoid"],
                slope [grad * (a.sigmoid() * (-a).sigmoid())];

            "`a / (1 + |a|)`."
            Softsign = "softsign" softsign(a) on [FLOATS] -> Same,
                typed [try_softsign: Float -> T], also [], text [], onnx ["Softsign"],
                slope [grad / (a.absolute() + 1.0).square()];

            "`a` where it is positive, else 0; NaN stays."
            Relu = "relu" relu(a) on [REAL] -> Same,
                typed [try_relu: Real -> T], also [], text [], onnx ["Relu"],
                slope [choose(a.less_equal(0.0), 0.0, grad)];

            "The largest integer that is not above `a`."
            Floor = "floor" floor(a) on [BOOL | REAL] -> Same,
                typed [try_floor: Float -> T], also [], text [], onnx ["Floor"],
                slope [ZERO];

            "The smallest integer that is not below `a`."
            Ceil = "ceil" ceil(a) on [BOOL | REAL] -> Same,
                typed [try_ceil: Float -> T], also [], text [], onnx ["Ceil"],
                slope [ZERO];

            "The nearest integer; ties go to the even one."
            Round = "round" round(a) on [NUMBERS] -> Same,
                typed [try_round: Float -> T], also [], text ["rint"], onnx ["Round"],
                slope [ZERO];

            "The integer part."
            Trunc = "trunc" trunc(a) on [BOOL | REAL] -> Same,
                typed [try_trunc: Float -> T], also [], text ["fix"], onnx [],
                slope [ZERO];

            "Whether `a` is 0."
            LogicalNot = "logical_not" logical_not(a) on [BOOL | NUMBERS] -> Bool,
                typed [try_logical_not: Plain -> bool], also [], text [], onnx ["Not"],
                slope [];

            "Every bit inverted."
            BitwiseNot = "bitwise_not" bitwise_not(a) on [BOOL | INTEGERS] -> Same,
                typed [try_bitwise_not: Bits -> T], also ["bitwise_invert", "invert"], text [], onnx ["BitwiseNot"],
                slope [];

            "Whether `a` is NaN."
            Isnan = "isnan" isnan(a) on [BOOL | NUMBERS] -> Bool,
                typed [try_isnan: Float -> bool], also [], text [], onnx ["IsNaN"],
                slope [];

            "Whether `a` is infinite."
            Isinf = "isinf" isinf(a) on [BOOL | NUMBERS] -> Bool,
                typed [try_isinf: Float -> bool], also [], text [], onnx [],
                slope [];

            "Whether `a` is neither infinite nor NaN."
            Isfinite = "isfinite" isfinite(a) on [BOOL | NUMBERS] -> Bool,
                typed [try_isfinite: Float -> bool], also [], text [], onnx [],
                slope [];

            "The complex conjugate."
            Conjugate = "conjugate" conjugate(a) on [NUMBERS] -> Same,
                typed [], also ["conj"], text [], onnx [],
                slope [grad];

            "The real part."
            Real = "real" real(a) on [BOOL | NUMBERS] -> Part,
                typed [], also [], text [], onnx [],
                slope [grad];

            "The imaginary part."
            Imag = "imag" imag(a) on [BOOL | NUMBERS] -> Part,
                typed [], also [], text [], onnx [],
                slope [ZERO];

            "`a + b`; of booleans, or."
            Add = "add" add(a, b) on [BOOL | NUMBERS] -> Same,
                typed [try_add: Number -> T], also [], text [], onnx ["Add"],
                slope [grad, grad];

            "`a - b`."
            Subtract = "subtract" subtract(a, b) on [NUMBERS | REFUSES_BOOL] -> Same,
                typed [try_subtract: Number -> T], also [], text ["sub"], onnx ["Sub"],
                slope [grad, -grad];

            "`a * b`; of booleans, and."
            Multiply = "multiply" multiply(a, b) on [BOOL | NUMBERS] -> Same,
                typed [try_multiply: Number -> T], also [], text ["mul"], onnx ["Mul"],
                slope [grad * b, grad * a];

            "`a / b`; a float for integers too."
            Divide = "divide" divide(a, b) on [FLOATS | COMPLEX] -> Same,
                typed [], also ["true_divide"], text ["div"], onnx [],
                slope [grad / b, grad * -(a / b / b)];

            "`a / b` rounded down."
            FloorDivide = "floor_divide" floor_divide(a, b) on [REAL] -> Same,
                typed [try_floor_divide: Real -> T], also [], text [], onnx [],
                slope [ZERO, ZERO];

            "`a / b` rounded towards 0, of integers."
            TruncDivide = "trunc_divide" trunc_divide(a, b) on [INTEGERS] -> Same,
                typed [], also [], text [], onnx [],
                slope [];

            "The remainder of `a / b`, with the sign of `b`."
            Remainder = "remainder" remainder(a, b) on [REAL] -> Same,
                typed [try_remainder: Real -> T], also ["mod"], text [], onnx [],
                slope [grad, grad * -a.floor_divide(b)];

            // Rounded: the computed quotient may lie beside the integer that it is.
            "The remainder of `a / b`, with the sign of `a`."
            Fmod = "fmod" fmod(a, b) on [REAL] -> Same,
                typed [try_fmod: Real -> T], also [], text [], onnx [],
                slope [grad, grad * ((a.fmod(b) - a) / b).round()];

            // By `a`: 0 for b = 0, where a may be 0 too. By `b`: 0 for a = 0, unless the power is infinite.
            "`a` to the power of `b`."
            Power = "power" power(a, b) on [NUMBERS] -> Same,
                typed [try_power: Number -> T], also ["pow"], text [], onnx [],
                slope [
                    grad * choose(b.equal(0.0), 0.0, b * a.power(b - 1.0)),
                    grad * choose(a.equal(0.0).logical_and(b.greater_equal(0.0)), 0.0, a.power(b) * a.log())
                ];

            // Divided twice by the length, whose square may overflow.
            "The angle of the point (b, a)."
            Arctan2 = "arctan2" arctan2(a, b) on [FLOATS] -> Same,
                typed [try_arctan2: Float -> T], also ["atan2"], text [], onnx [],
                slope [grad * (b / a.hypot(b) / a.hypot(b)), grad * -(a / a.hypot(b) / a.hypot(b))];

            "The length of the vector (a, b)."
            Hypot = "hypot" hypot(a, b) on [FLOATS] -> Same,
                typed [try_hypot: Float -> T], also [], text [], onnx [],
                slope [grad * (a / a.hypot(b)), grad * (b / a.hypot(b))];

            // Of equal numbers, half to each; NaN is neither less nor equal, and both get the gradient.
            "The larger one; NaN if either is NaN."
            Maximum = "maximum" maximum(a, b) on [BOOL | NUMBERS] -> Same,
                typed [try_maximum: Plain -> T], also [], text [], onnx [],
                slope [
                    choose(a.less(b), 0.0, choose(a.equal(b), grad * 0.5, grad)),
                    choose(b.less(a), 0.0, choose(a.equal(b), grad * 0.5, grad))
                ];

            "The smaller one; NaN if either is NaN."
            Minimum = "minimum" minimum(a, b) on [BOOL | NUMBERS] -> Same,
                typed [try_minimum: Plain -> T], also [], text [], onnx [],
                slope [
                    choose(a.greater(b), 0.0, choose(a.equal(b), grad * 0.5, grad)),
                    choose(b.greater(a), 0.0, choose(a.equal(b), grad * 0.5, grad))
                ];

            "Whether both are other than 0."
            LogicalAnd = "logical_and" logical_and(a, b) on [BOOL | NUMBERS] -> Bool,
                typed [try_logical_and: Plain -> bool], also [], text [], onnx ["And"],
                slope [];

            "Whether at least one is other than 0."
            LogicalOr = "logical_or" logical_or(a, b) on [BOOL | NUMBERS] -> Bool,
                typed [try_logical_or: Plain -> bool], also [], text [], onnx ["Or"],
                slope [];

            "Whether exactly one is other than 0."
            LogicalXor = "logical_xor" logical_xor(a, b) on [BOOL | NUMBERS] -> Bool,
                typed [try_logical_xor: Plain -> bool], also [], text [], onnx ["Xor"],
                slope [];

            "The bits that both have."
            BitwiseAnd = "bitwise_and" bitwise_and(a, b) on [BOOL | INTEGERS] -> Same,
                typed [try_bitwise_and: Bits -> T], also [], text [], onnx ["BitwiseAnd"],
                slope [];

            "The bits that at least one has."
            BitwiseOr = "bitwise_or" bitwise_or(a, b) on [BOOL | INTEGERS] -> Same,
                typed [try_bitwise_or: Bits -> T], also [], text [], onnx ["BitwiseOr"],
                slope [];

            "The bits that exactly one has."
            BitwiseXor = "bitwise_xor" bitwise_xor(a, b) on [BOOL | INTEGERS] -> Same,
                typed [try_bitwise_xor: Bits -> T], also [], text [], onnx ["BitwiseXor"],
                slope [];

            "`a` times 2 to the power of `b`."
            LeftShift = "left_shift" left_shift(a, b) on [INTEGERS] -> Same,
                typed [try_left_shift: Integer -> T], also ["bitwise_left_shift"], text [], onnx [],
                slope [];

            "`a` divided by 2 to the power of `b`, rounded down."
            RightShift = "right_shift" right_shift(a, b) on [INTEGERS] -> Same,
                typed [try_right_shift: Integer -> T], also ["bitwise_right_shift"], text [], onnx [],
                slope [];

            "`a == b`."
            Equal = "equal" equal(a, b) on [BOOL | NUMBERS | STRING] -> Compared,
                typed [try_equal: Element -> bool], also [], text ["eq"], onnx ["Equal"],
                slope [];

            "`a != b`."
            NotEqual = "not_equal" not_equal(a, b) on [BOOL | NUMBERS | STRING] -> Compared,
                typed [try_not_equal: Element -> bool], also [], text ["ne"], onnx [],
                slope [];

            "`a < b`."
            Less = "less" less(a, b) on [BOOL | NUMBERS] -> Compared,
                typed [try_less: Plain -> bool], also [], text ["lt"], onnx ["Less"],
                slope [];

            "`a <= b`."
            LessEqual = "less_equal" less_equal(a, b) on [BOOL | NUMBERS] -> Compared,
                typed [try_less_equal: Plain -> bool], also [], text ["le"], onnx ["LessOrEqual"],
                slope [];

            "`a > b`."
            Greater = "greater" greater(a, b) on [BOOL | NUMBERS] -> Compared,
                typed [try_greater: Plain -> bool], also [], text ["gt"], onnx ["Greater"],
                slope [];

            "`a >= b`."
            GreaterEqual = "greater_equal" greater_equal(a, b) on [BOOL | NUMBERS] -> Compared,
                typed [try_greater_equal: Plain -> bool], also [], text ["ge"], onnx ["GreaterOrEqual"],
                slope [];

            "The text of `a`, then that of `b`."
            Concat = "concat" concat(a, b) on [STRING] -> Same,
                typed [], also [], text [], onnx ["StringConcat"],
                slope [];

            "`b` where `a` is true, else `c`."
            Where = "where" where_(a, b, c) on [BOOL | NUMBERS | STRING] -> Same,
                typed [], also [], text ["select"], onnx ["Where"],
                slope [DECIDES, choose(a, grad, 0.0), choose(a, 0.0, grad)];

            "`a * b + c`; rounded once with fused multiply-add."
            MultiplyAdd = "multiply_add" multiply_add(a, b, c) on [BOOL | NUMBERS] -> Same,
                typed [], also [], text ["fma"], onnx [],
                slope [grad * b, grad * a, grad];
        }
    };
}
