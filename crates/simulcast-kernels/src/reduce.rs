//! Folds of rows: many elements into one, in an order that depends on their number alone.
//!
//! ```text
//! short    up to 7 elements     one after the other
//! middle   less than 512 bytes  eight values side by side
//! long     128 bytes of values side by side, which are joined in pairs at the end; rows of more than 2048
//!          are cut into leaves of 2048, which are joined in pairs, and so on
//! ```
//!
//! A fold of what an operation makes of two rows reads those, and writes nothing in between. Nothing
//! is fused or reordered by a level, so results are bit-equal at all of them.

mod across_rows;
mod along_row;
mod operations;
mod shared_row;

use std::marker::PhantomData;

use num_complex::Complex;

use self::across_rows::down;
use self::along_row::{Same, rows};
use crate::cpu::level::Level;
use crate::ops::complex;
use crate::ops::float::{self, Float};
use crate::ops::int::Int;
use crate::{DType, Op};

pub use across_rows::Down;
pub use along_row::{RowFold, Rows};
pub use operations::abreast;
pub use shared_row::Abreast;

/// What rows are folded with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fold {
    Sum,
    Product,
    Maximum,
    Minimum,
}

/// Rows of fewer elements are folded one element after the other.
const SHORT: usize = 8;

/// The elements of a leaf; rows of more are not folded abreast.
pub const LEAF: usize = 2048;

/// The bytes of the values that are kept side by side.
pub const WIDE: usize = 128;

/// Rows of as many elements are long.
const fn long_from<T>() -> usize {
    4 * WIDE / size_of::<T>()
}

/// The fold of what some operations make of two rows of `dtype`, each operation after the one that it
/// reads, or of one row where there are none. None where there is no such loop.
pub fn fold(op: Fold, ops: &[Op], dtype: DType, level: Level) -> Option<RowFold> {
    match ops {
        [] => folds(op, dtype, level).map(|(row, _)| row),
        _ => operations::along(op, ops, dtype, level),
    }
}

/// The fold of rows of `dtype`, each into one element, and all into one row; of `bool` there are the maximum
/// and the minimum alone.
pub fn folds(op: Fold, dtype: DType, level: Level) -> Option<(RowFold, Down)> {
    Some(match dtype {
        DType::Bool => match op {
            Fold::Maximum => alone::<Any>(level),
            Fold::Minimum => alone::<All>(level),
            Fold::Sum | Fold::Product => return None,
        },
        DType::I8 => of_int::<i8>(op, level),
        DType::I16 => of_int::<i16>(op, level),
        DType::I32 => of_int::<i32>(op, level),
        DType::I64 => of_int::<i64>(op, level),
        DType::U8 => of_int::<u8>(op, level),
        DType::U16 => of_int::<u16>(op, level),
        DType::U32 => of_int::<u32>(op, level),
        DType::U64 => of_int::<u64>(op, level),
        DType::F32 => of_float::<f32>(op, level),
        DType::F64 => of_float::<f64>(op, level),
        DType::C64 => of_complex::<f32>(op, level),
        DType::C128 => of_complex::<f64>(op, level),
        DType::F16 | DType::Bf16 | DType::String => return None,
    })
}

/// Sums and products do not depend on the sign.
fn of_int<T: Int>(op: Fold, level: Level) -> (RowFold, Down) {
    match op {
        Fold::Sum => alone::<IntSum<T::Bits>>(level),
        Fold::Product => alone::<IntProduct<T::Bits>>(level),
        Fold::Maximum => alone::<IntMaximum<T>>(level),
        Fold::Minimum => alone::<IntMinimum<T>>(level),
    }
}

fn of_float<T: Float>(op: Fold, level: Level) -> (RowFold, Down) {
    match op {
        Fold::Sum => alone::<Sum<T>>(level),
        Fold::Product => alone::<Product<T>>(level),
        Fold::Maximum => alone::<Maximum<T>>(level),
        Fold::Minimum => alone::<Minimum<T>>(level),
    }
}

fn of_complex<T: Float>(op: Fold, level: Level) -> (RowFold, Down) {
    match op {
        Fold::Sum => alone::<ComplexSum<T>>(level),
        Fold::Product => alone::<ComplexProduct<T>>(level),
        // Comparisons of pairs do not vectorise.
        Fold::Maximum => alone::<ComplexMaximum<T>>(Level::BASELINE),
        Fold::Minimum => alone::<ComplexMinimum<T>>(Level::BASELINE),
    }
}

/// How two values become one.
trait Joint {
    type Value: Copy;

    /// What changes nothing.
    const NEUTRAL: Self::Value;

    fn join(a: Self::Value, b: Self::Value) -> Self::Value;
}

macro_rules! joints {
    ($($name:ident$(<$T:ident: $bound:path>)? for $value:ty, $neutral:expr, |$a:ident, $b:ident| $join:expr;)*) => { $(
        struct $name$(<$T>(PhantomData<$T>))?;
        impl$(<$T: $bound>)? Joint for $name$(<$T>)? {
            type Value = $value;
            const NEUTRAL: $value = $neutral;
            #[inline(always)]
            fn join($a: $value, $b: $value) -> $value {
                $join
            }
        }
    )* };
}

joints! {
    // Of truths every byte but 0 is one, and is to stay so.
    Any for u8, 0, |a, b| a.max(b);
    All for u8, 1, |a, b| a.min(b);
    IntSum<T: Int> for T, T::ZERO, |a, b| a.plus(b);
    IntProduct<T: Int> for T, T::ONE, |a, b| a.times(b);
    IntMaximum<T: Int> for T, T::SMALLEST, |a, b| a.max(b);
    IntMinimum<T: Int> for T, T::LARGEST, |a, b| a.min(b);
    // A sum of negative zeros keeps its sign.
    Sum<T: Float> for T, T::MINUS_ZERO, |a, b| a + b;
    Product<T: Float> for T, T::ONE, |a, b| a * b;
    Maximum<T: Float> for T, T::MINUS_INFINITY, |a, b| float::maximum(a, b);
    Minimum<T: Float> for T, T::INFINITY, |a, b| float::minimum(a, b);
    ComplexSum<T: Float> for Complex<T>, pair(T::MINUS_ZERO, T::MINUS_ZERO), |a, b| complex::add(a, b);
    ComplexProduct<T: Float> for Complex<T>, pair(T::ONE, T::ZERO), |a, b| complex::multiply(a, b);
    ComplexMaximum<T: Float> for Complex<T>, pair(T::MINUS_INFINITY, T::MINUS_INFINITY),
        |a, b| complex::maximum(a, b);
    ComplexMinimum<T: Float> for Complex<T>, pair(T::INFINITY, T::INFINITY),
        |a, b| complex::minimum(a, b);
}

const fn pair<T: Copy>(re: T, im: T) -> Complex<T> {
    Complex { re, im }
}

/// The folds of rows as they are.
fn alone<J: Joint>(level: Level) -> (RowFold, Down) {
    (rows::<Same<J::Value>, J>(level), down::<J>(level))
}
