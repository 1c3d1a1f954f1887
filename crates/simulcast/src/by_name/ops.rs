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
use simulcast_kernels::every_op;
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

/// Writes the function of an operation and its form without the panic.
macro_rules! function {
    ($doc:literal $op:expr, $name:ident(a), $try:ident: $kind:ident -> $result:ty) => {
        function! { @[a: A] $doc $op, $name, $try, $kind, $result }
    };
    ($doc:literal $op:expr, $name:ident(a, b), $try:ident: $kind:ident -> $result:ty) => {
        function! { @[a: A, b: B] $doc $op, $name, $try, $kind, $result }
    };
    (
        @[$($arg:ident: $type:ident),*] $doc:literal
        $op:expr, $name:ident, $try:ident, $kind:ident, $result:ty
    ) => {
        #[doc = $doc]
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

/// Writes a function for each row of the table of operations that has a typed one.
macro_rules! functions {
    (
        { $grad:ident }
        $(
            $doc:literal
            $variant:ident = $name:literal $function:ident $operands:tt on $types:tt -> $gives:ident,
                typed $typed:tt, also $also:tt, text $text:tt, onnx $onnx:tt, slope $slopes:tt;
        )*
    ) => {
        $(functions! { @one $typed $doc $variant $function $operands })*
    };
    (@one [] $doc:literal $variant:ident $function:ident $operands:tt) => {};
    (@one [$try:ident: $kind:ident -> $result:ty] $doc:literal $variant:ident $function:ident $operands:tt) => {
        function! { $doc Op::$variant, $function $operands, $try: $kind -> $result }
    };
}

every_op!(functions);

function! {
    "`a / b`; of integers towards 0, and 0 for a divisor of 0."
    if T::DTYPE.is_integer() { Op::TruncDivide } else { Op::Divide }, divide(a, b), try_divide: Number -> T
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
