//! Operators by name, over arrays of one element type.
//!
//! ```
//! use ndarray::array;
//! use simulcast::ops;
//!
//! let (x, y) = (array![[1, -7], [3, 4]], array![2, 0]);
//! assert_eq!(ops::add(&x, &y), array![[3, -7], [5, 4]]);
//! assert_eq!(ops::divide(&x, &y), array![[0, 0], [1, 0]]); // towards 0, and 0 for a divisor of 0
//! assert_eq!(ops::where_(&ops::less(&x, &y), &x, &y), array![[1, -7], [2, 0]]);
//!
//! let error = ops::try_add(&x, &array![1, 2, 3]).unwrap_err();
//! assert!(error.to_string().contains("axis 1 (-1): A has 2, B has 3"));
//! ```
//!
//! They are [`Op::apply`] with types: one loop for each operation and element type serves every
//! storage and rank. Corner cases are those of [`Op`]; `float16` and `bfloat16` are computed in
//! `float32` and rounded once. A closure of your own goes into [`zip`](crate::zip()).

#![expect(
    clippy::needless_pass_by_value,
    reason = "operands are references, or views to be given away"
)]

use ndarray::{Array, Dimension};
use simulcast_core::{BroadcastError, Refusal, Rule};

use crate::api::view::or_panic;
use crate::array::operand::{CommonDim, Operand};
use crate::by_name::apply::Apply as _;
use crate::by_name::dyn_array::AnyView;
use crate::by_name::program::{ProgramError, ProgramErrorKind};
use simulcast_kernels::dtype::{Complex, Element};
use simulcast_kernels::op::Op;

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident: $above:path = $($type:ty)*;)*) => { $(
        $(#[$doc])*
        ///
        /// Sealed, as [`Element`] is.
        pub trait $name: $above {}
        $(impl $name for $type {})*
    )* };
}

kinds! {
    /// Every type but text.
    Plain: Element = bool i8 i16 i32 i64 u8 u16 u32 u64
        half::f16 half::bf16 f32 f64 Complex<f32> Complex<f64>;
    /// Integers and booleans: what has bits to combine.
    Bits: Plain = bool i8 i16 i32 i64 u8 u16 u32 u64;
    /// Integers, floats, complex numbers.
    Number: Plain = i8 i16 i32 i64 u8 u16 u32 u64
        half::f16 half::bf16 f32 f64 Complex<f32> Complex<f64>;
    /// Integers and floats.
    Real: Number = i8 i16 i32 i64 u8 u16 u32 u64 half::f16 half::bf16 f32 f64;
    /// Integers.
    Integer: Real = i8 i16 i32 i64 u8 u16 u32 u64;
    /// Floats and complex numbers.
    Analytic: Number = half::f16 half::bf16 f32 f64 Complex<f32> Complex<f64>;
    /// Floats.
    Float: Analytic = half::f16 half::bf16 f32 f64;
}

/// An array of `R`, with the rank that operands have together.
pub type Together<R, T> = Array<R, <T as CommonDim>::Dim>;

/// An operand without its type.
fn erased<A: Operand<Elem: Element>>(operand: &A) -> AnyView<'_> {
    let (sizes, steps) = (operand.sizes(), operand.steps());
    // SAFETY: an operand's own pointer, sizes and strides, borrowed as long as it is.
    unsafe { AnyView::from_raw(A::Elem::DTYPE, operand.pointer().cast(), sizes, steps) }
}

/// The result of an operation whose types were checked by the compiler.
fn typed<R: Element, D: Dimension>(
    op: Op,
    operands: &[AnyView<'_>],
) -> Result<Array<R, D>, BroadcastError> {
    let refused = || {
        let shapes: Vec<&[usize]> = operands.iter().map(AnyView::shape).collect();
        BroadcastError::new(Rule::Numpy, &shapes, Refusal::Overflow)
    };
    let made = op.apply(operands).map_err(|error: ProgramError| match error.kind {
        ProgramErrorKind::Broadcast(error) => error,
        // Never: the traits of this module are the types that operations are defined on.
        _ => refused(),
    })?;
    // Never an error: the result's type and rank are those that the traits name.
    let made = made.into_typed::<R>().map_err(|_| refused())?;
    made.into_dimensionality().map_err(|_| refused())
}

macro_rules! operators {
    ($($(#[$doc:meta])* $name:ident / $try:ident = $op:expr, $kind:ident $args:tt $result:ty;)*) => {
        $(operators! { @$args [$(#[$doc])*] $name, $try, $op, $kind, $result })*
    };
    (@(a) $doc:tt $name:ident, $try:ident, $op:expr, $kind:ident, $result:ty) => {
        operators! { @[a: A] $doc $name, $try, $op, $kind, $result }
    };
    (@(a, b) $doc:tt $name:ident, $try:ident, $op:expr, $kind:ident, $result:ty) => {
        operators! { @[a: A, b: B] $doc $name, $try, $op, $kind, $result }
    };
    (
        @[$($arg:ident: $type:ident),*] [$(#[$doc:meta])*]
        $name:ident, $try:ident, $op:expr, $kind:ident, $result:ty
    ) => {
        $(#[$doc])*
        ///
        /// # Panics
        ///
        /// Where the operands do not broadcast, with the message of the [`BroadcastError`].
        #[track_caller]
        pub fn $name<T: $kind, $($type: Operand<Elem = T>),*>(
            $($arg: $type),*
        ) -> Together<$result, ($($type,)*)>
        where
            ($($type,)*): CommonDim,
        {
            or_panic($try($($arg),*))
        }

        #[doc = concat!("[`", stringify!($name), "`] without the panic.")]
        ///
        /// # Errors
        ///
        /// Where the operands do not broadcast.
        pub fn $try<T: $kind, $($type: Operand<Elem = T>),*>(
            $($arg: $type),*
        ) -> Result<Together<$result, ($($type,)*)>, BroadcastError>
        where
            ($($type,)*): CommonDim,
        {
            typed($op, &[$(erased(&$arg)),*])
        }
    };
}

operators! {
    /// `-a`.
    negative / try_negative = Op::Negative, Number (a) T;
    /// `|a|`.
    absolute / try_absolute = Op::Absolute, Real (a) T;
    /// -1, 0 or 1; of a complex number `a / |a|`.
    sign / try_sign = Op::Sign, Number (a) T;
    /// The square root.
    sqrt / try_sqrt = Op::Sqrt, Analytic (a) T;
    /// The cube root.
    cbrt / try_cbrt = Op::Cbrt, Float (a) T;
    /// `a * a`.
    square / try_square = Op::Square, Number (a) T;
    /// `1 / a`.
    reciprocal / try_reciprocal = Op::Reciprocal, Number (a) T;
    /// e to the power of `a`.
    exp / try_exp = Op::Exp, Analytic (a) T;
    /// 2 to the power of `a`.
    exp2 / try_exp2 = Op::Exp2, Analytic (a) T;
    /// `exp(a) - 1`, accurate near 0.
    expm1 / try_expm1 = Op::Expm1, Analytic (a) T;
    /// The natural logarithm.
    log / try_log = Op::Log, Analytic (a) T;
    /// The logarithm to base 2.
    log2 / try_log2 = Op::Log2, Analytic (a) T;
    /// The logarithm to base 10.
    log10 / try_log10 = Op::Log10, Analytic (a) T;
    /// `log(1 + a)`, accurate near 0.
    log1p / try_log1p = Op::Log1p, Analytic (a) T;
    /// The sine.
    sin / try_sin = Op::Sin, Analytic (a) T;
    /// The cosine.
    cos / try_cos = Op::Cos, Analytic (a) T;
    /// The tangent.
    tan / try_tan = Op::Tan, Analytic (a) T;
    /// The inverse of the sine.
    arcsin / try_arcsin = Op::Arcsin, Analytic (a) T;
    /// The inverse of the cosine.
    arccos / try_arccos = Op::Arccos, Analytic (a) T;
    /// The inverse of the tangent.
    arctan / try_arctan = Op::Arctan, Analytic (a) T;
    /// The hyperbolic sine.
    sinh / try_sinh = Op::Sinh, Analytic (a) T;
    /// The hyperbolic cosine.
    cosh / try_cosh = Op::Cosh, Analytic (a) T;
    /// The hyperbolic tangent.
    tanh / try_tanh = Op::Tanh, Analytic (a) T;
    /// The inverse of the hyperbolic sine.
    arcsinh / try_arcsinh = Op::Arcsinh, Analytic (a) T;
    /// The inverse of the hyperbolic cosine.
    arccosh / try_arccosh = Op::Arccosh, Analytic (a) T;
    /// The inverse of the hyperbolic tangent.
    arctanh / try_arctanh = Op::Arctanh, Analytic (a) T;
    /// The error function.
    erf / try_erf = Op::Erf, Float (a) T;
    /// `1 / (1 + exp(-a))`.
    sigmoid / try_sigmoid = Op::Sigmoid, Float (a) T;
    /// `a` where it is positive, else 0; NaN stays.
    relu / try_relu = Op::Relu, Real (a) T;
    /// The largest integer that is not above.
    floor / try_floor = Op::Floor, Float (a) T;
    /// The smallest integer that is not below.
    ceil / try_ceil = Op::Ceil, Float (a) T;
    /// The nearest integer, halves to the even one.
    round / try_round = Op::Round, Float (a) T;
    /// The integer part.
    trunc / try_trunc = Op::Trunc, Float (a) T;
    /// Whether it is 0.
    logical_not / try_logical_not = Op::LogicalNot, Plain (a) bool;
    /// Every bit turned over.
    bitwise_not / try_bitwise_not = Op::BitwiseNot, Bits (a) T;
    /// Whether it is not a number.
    isnan / try_isnan = Op::Isnan, Float (a) bool;
    /// Whether it is infinite.
    isinf / try_isinf = Op::Isinf, Float (a) bool;
    /// Whether it is neither.
    isfinite / try_isfinite = Op::Isfinite, Float (a) bool;
    /// `a + b`.
    add / try_add = Op::Add, Number (a, b) T;
    /// `a - b`.
    subtract / try_subtract = Op::Subtract, Number (a, b) T;
    /// `a * b`.
    multiply / try_multiply = Op::Multiply, Number (a, b) T;
    /// `a / b` rounded down.
    floor_divide / try_floor_divide = Op::FloorDivide, Real (a, b) T;
    /// What is left, with the sign of `b`.
    remainder / try_remainder = Op::Remainder, Real (a, b) T;
    /// What is left, with the sign of `a`.
    fmod / try_fmod = Op::Fmod, Real (a, b) T;
    /// `a` to the power of `b`.
    power / try_power = Op::Power, Number (a, b) T;
    /// The angle of the point (b, a).
    arctan2 / try_arctan2 = Op::Arctan2, Float (a, b) T;
    /// The length of (a, b).
    hypot / try_hypot = Op::Hypot, Float (a, b) T;
    /// The larger one, or NaN.
    maximum / try_maximum = Op::Maximum, Plain (a, b) T;
    /// The smaller one, or NaN.
    minimum / try_minimum = Op::Minimum, Plain (a, b) T;
    /// Whether both are other than 0.
    logical_and / try_logical_and = Op::LogicalAnd, Plain (a, b) bool;
    /// Whether one is other than 0.
    logical_or / try_logical_or = Op::LogicalOr, Plain (a, b) bool;
    /// Whether just one is other than 0.
    logical_xor / try_logical_xor = Op::LogicalXor, Plain (a, b) bool;
    /// Bits of both.
    bitwise_and / try_bitwise_and = Op::BitwiseAnd, Bits (a, b) T;
    /// Bits of either.
    bitwise_or / try_bitwise_or = Op::BitwiseOr, Bits (a, b) T;
    /// Bits of just one.
    bitwise_xor / try_bitwise_xor = Op::BitwiseXor, Bits (a, b) T;
    /// `a` times 2 to the power of `b`.
    left_shift / try_left_shift = Op::LeftShift, Integer (a, b) T;
    /// `a` divided by 2 to the power of `b`, rounded down.
    right_shift / try_right_shift = Op::RightShift, Integer (a, b) T;
    /// `a == b`.
    equal / try_equal = Op::Equal, Element (a, b) bool;
    /// `a != b`.
    not_equal / try_not_equal = Op::NotEqual, Element (a, b) bool;
    /// `a < b`.
    less / try_less = Op::Less, Plain (a, b) bool;
    /// `a <= b`.
    less_equal / try_less_equal = Op::LessEqual, Plain (a, b) bool;
    /// `a > b`.
    greater / try_greater = Op::Greater, Plain (a, b) bool;
    /// `a >= b`.
    greater_equal / try_greater_equal = Op::GreaterEqual, Plain (a, b) bool;
    /// `a / b`; of integers towards 0, and 0 for a divisor of 0.
    divide / try_divide = if T::DTYPE.is_integer() { Op::TruncDivide } else { Op::Divide }, Number (a, b) T;
}

/// `a` where the condition is true, else `b`; of any element type, text included.
///
/// # Panics
///
/// Where the operands do not broadcast, with the message of the [`BroadcastError`].
#[doc(alias = "select")]
#[track_caller]
pub fn where_<T: Element, C: Operand<Elem = bool>, A: Operand<Elem = T>, B: Operand<Elem = T>>(
    condition: C,
    a: A,
    b: B,
) -> Together<T, (C, A, B)>
where
    (C, A, B): CommonDim,
{
    or_panic(try_where(condition, a, b))
}

/// [`where_`] without the panic.
///
/// # Errors
///
/// Where the operands do not broadcast.
pub fn try_where<T: Element, C: Operand<Elem = bool>, A: Operand<Elem = T>, B: Operand<Elem = T>>(
    condition: C,
    a: A,
    b: B,
) -> Result<Together<T, (C, A, B)>, BroadcastError>
where
    (C, A, B): CommonDim,
{
    typed(Op::Where, &[erased(&condition), erased(&a), erased(&b)])
}

/// One text after the other.
///
/// # Panics
///
/// Where the operands do not broadcast, with the message of the [`BroadcastError`].
#[track_caller]
pub fn concat<A: Operand<Elem = String>, B: Operand<Elem = String>>(
    a: A,
    b: B,
) -> Together<String, (A, B)>
where
    (A, B): CommonDim,
{
    or_panic(try_concat(a, b))
}

/// [`concat()`] without the panic.
///
/// # Errors
///
/// Where the operands do not broadcast.
pub fn try_concat<A: Operand<Elem = String>, B: Operand<Elem = String>>(
    a: A,
    b: B,
) -> Result<Together<String, (A, B)>, BroadcastError>
where
    (A, B): CommonDim,
{
    typed(Op::Concat, &[erased(&a), erased(&b)])
}
