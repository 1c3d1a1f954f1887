//! Element-wise operations by name: what a program computes, element by element.
//!
//! ```
//! # extern crate simulcast_kernels as simulcast;
//! use simulcast::Op;
//!
//! assert_eq!("maximum".parse(), Ok(Op::Maximum));
//! assert_eq!((Op::Where.name(), Op::Where.arity()), ("where", 3));
//! assert_eq!(Op::from_onnx("Mul"), Some(Op::Multiply));
//! ```
//!
//! | case | value |
//! |---|---|
//! | integers that overflow | wrap, also the negation and the absolute value of the smallest |
//! | integers divided by 0, and their remainder | 0 |
//! | integers to a negative power | the quotient rounded towards 0: 0, but for 1 and -1; 0 to a negative power is 0 |
//! | shifts by the width or more | 0, or -1 for a negative number shifted right; so for a negative amount |
//! | `maximum`, `minimum` with NaN | NaN |
//! | `remainder`, `floor_divide` | the sign of the divisor, as in Python |
//! | `fmod`, `trunc_divide` | the sign of the dividend, as in C |
//! | `round` | ties go to the even neighbour |
//! | `sign` | of NaN, NaN; of -0.0, 0.0, as NumPy |
//! | strings | `concat`, `equal`, `not_equal` and `where` alone |
//!
//! Every list of operations is generated from the table in `op/table.rs`: this enum, names in expressions, types, the functions
//! of `simulcast::ops`, gradients, Python's functions and their stubs, ONNX's operators, the reference page.

pub mod domain;
mod table;

use std::fmt;
use std::str::FromStr;

use domain::{BOOL, COMPLEX, Domain, FLOATS, Gives, INTEGERS, NUMBERS, REAL, REFUSES_BOOL, STRING};

/// An operation's row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// The name: NumPy's, where NumPy has the operation.
    pub name: &'static str,
    /// One sentence.
    pub doc: &'static str,
    /// The names of the operands.
    pub operands: &'static [&'static str],
    /// The element types that it takes, and what it gives.
    pub domain: Domain,
    /// NumPy's and the array API standard's other names.
    pub also: &'static [&'static str],
    /// Further names, in expressions alone.
    pub text: &'static [&'static str],
    /// The ONNX operators that compute just this.
    pub onnx: &'static [&'static str],
    /// The formula of the gradient of each operand; none where there is no derivative.
    pub slopes: &'static [&'static str],
}

macro_rules! ops {
    (
        { $grad:ident }
        $(
            $doc:literal
            $variant:ident = $name:literal $function:ident($($operand:ident),+) on [$types:expr] -> $gives:ident,
                typed $typed:tt, also [$($also:literal),*], text [$($text:literal),*], onnx [$($onnx:literal),*],
                slope [$($slope:expr),*];
        )*
    ) => {
        /// An element-wise operation.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum Op {
            $(#[doc = $doc] $variant,)*
        }

        impl Op {
            /// Every operation.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];
        }

        /// The rows, in the order of [`Op::ALL`].
        static ROWS: [Row; Op::ALL.len()] = [
            $(Row {
                name: $name,
                doc: $doc,
                operands: &[$(stringify!($operand)),+],
                domain: Domain::new($types, Gives::$gives),
                also: &[$($also),*],
                text: &[$($text),*],
                onnx: &[$($onnx),*],
                slopes: &[$(stringify!($slope)),*],
            },)*
        ];
    };
}

crate::every_op!(ops);

impl Op {
    /// Its row of the table.
    #[doc(hidden)]
    #[must_use]
    #[inline]
    pub const fn row(self) -> &'static Row {
        // A row for each variant, in their order.
        &ROWS[self as usize]
    }

    /// Its name: NumPy's, where NumPy has it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.row().name
    }

    /// How many operands it takes.
    #[must_use]
    #[inline]
    pub const fn arity(self) -> usize {
        self.row().operands.len()
    }

    /// The operation that an ONNX operator is, where it is just one.
    #[must_use]
    pub fn from_onnx(operator: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|op| op.row().onnx.contains(&operator))
    }
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

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn a_name_means_one_operation() {
        let mut seen = HashSet::new();
        for op in Op::ALL {
            let row = op.row();
            for name in row.also.iter().chain(row.text).chain([&row.name]) {
                assert!(seen.insert(*name), "{op}: another operation is called `{name}` too");
            }
        }
        let onnx: Vec<_> = Op::ALL.iter().flat_map(|op| op.row().onnx).collect();
        assert_eq!(onnx.iter().collect::<HashSet<_>>().len(), onnx.len(), "{onnx:?}");
    }

    #[test]
    fn rows_are_complete() {
        for op in Op::ALL {
            let row = op.row();
            assert_eq!(row.name.parse(), Ok(*op));
            assert!(row.doc.ends_with('.'), "{op}: its documentation is one sentence");
            let slopes = row.slopes.len();
            assert!(slopes == 0 || slopes == op.arity(), "{op}: a slope for each operand");
        }
    }

    /// The loops of `float16` and `bfloat16` are those of `float32`, and strings have none.
    #[cfg(feature = "ops")]
    #[test]
    fn every_operation_has_loops_for_the_types_of_its_row() {
        use crate::ops::{kernels, swapped};
        use crate::{DType, Level};

        let mut missing = Vec::new();
        for &op in Op::ALL {
            for &dtype in DType::ALL {
                let loops = !matches!(dtype, DType::F16 | DType::Bf16 | DType::String);
                let served = swapped(op).unwrap_or(op);
                if loops
                    && op.row().domain.has(dtype)
                    && kernels(served, dtype, Level::BASELINE).is_none()
                {
                    missing.push(format!("{op} of {dtype}"));
                }
            }
        }
        assert!(missing.is_empty(), "no loop in ops/ for {}", missing.join(", "));
    }
}
