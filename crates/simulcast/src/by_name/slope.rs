//! Slopes: the derivative of each operation by each operand, times the gradient of the result.
//!
//! They stand in the table of operations (`op/table.rs` of the kernels); here they become steps of a program. Gradients of
//! one operation ([`vjp`](crate::vjp)) and of whole programs ([`TypedProgram::gradient`](crate::TypedProgram::gradient)) read them.

use std::f64::consts::{FRAC_2_SQRT_PI, LN_2, LN_10};

use crate::by_name::formula::{Term, choose};
use simulcast_kernels::every_op;
use simulcast_kernels::op::Op;

/// A derivative times the gradient of the result.
pub(crate) enum Slope<'b> {
    Of(Term<'b>),
    /// 0, whatever the gradient is.
    Zero,
    /// The operand decides and is not computed with: it has no gradient.
    Decides,
    /// There is no derivative.
    Nothing,
}

impl<'b> From<Term<'b>> for Slope<'b> {
    fn from(term: Term<'b>) -> Self {
        Self::Of(term)
    }
}

/// Writes the slopes of the table of operations.
macro_rules! slopes {
    (
        { $grad:ident }
        $(
            $doc:literal
            $variant:ident = $name:literal $function:ident($($operand:ident),+) on $types:tt -> $gives:ident,
                typed $typed:tt, also $also:tt, text $text:tt, onnx $onnx:tt, slope [$($slope:expr),*];
        )*
    ) => {
        // Constants, which `cargo check` evaluates too.
        $(const _: () = {
            let slopes: &[&str] = &[$(stringify!($slope)),*];
            let operands: &[&str] = &[$(stringify!($operand)),+];
            let complete = slopes.is_empty() || slopes.len() == operands.len();
            assert!(complete, concat!($name, " has a slope for each operand, or none"));
        };)*

        /// The derivative of an operation by its operand `at`, times the gradient of the result.
        #[allow(unused_variables, reason = "not every slope reads every operand")]
        pub(crate) fn slope<'b>(op: Op, args: &[Term<'b>], $grad: Term<'b>, at: usize) -> Slope<'b> {
            const ZERO: Slope<'static> = Slope::Zero;
            const DECIDES: Slope<'static> = Slope::Decides;
            match op {
                $(Op::$variant => {
                    let &[$($operand),+] = args else { return Slope::Nothing };
                    let by_operand: &[&dyn Fn() -> Slope<'b>] = &[$(&|| ($slope).into()),*];
                    by_operand.get(at).map_or(Slope::Nothing, |slope| slope())
                })*
                // Never: there is a row for each.
                _ => Slope::Nothing,
            }
        }
    };
}

every_op!(slopes);
