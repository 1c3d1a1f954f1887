//! Folds of rows: many elements into one, in an order that depends on their number alone.
//!
//! ```text
//! short    up to 7 elements     one after the other
//! middle   less than 512 bytes  eight values side by side
//! long     128 bytes of values side by side, which are joined in pairs at the end; rows of more than 2048
//!          are cut into leaves of 2048, which are joined in pairs, and so on
//! ```
//!
//! Nothing is fused or reordered by a level, so results are bit-equal at all of them.

mod abreast;

use std::marker::PhantomData;

use num_complex::Complex;

use super::complex;
use super::float::{self, Float};
use super::int::Int;
use crate::DType;
use crate::level::{Kind, Level, compiled_for_levels};

pub(crate) use abreast::{ABREAST, Abreast, abreast};

/// What rows are folded with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Fold {
    Sum,
    Product,
    Maximum,
    Minimum,
}

/// `out[r]` becomes the fold of row `r`: `rows` rows of `len` elements, which follow one another at
/// `stride` elements. The result does not overlap the rows. Of no elements it is what changes
/// nothing: 0, 1, or the smallest or largest value.
pub(crate) type RowFold =
    unsafe fn(out: *mut u8, ins: *const u8, rows: usize, len: usize, stride: usize);

/// Rows of fewer elements are folded one element after the other.
const SHORT: usize = 8;

/// The elements of a leaf.
const LEAF: usize = 2048;

/// The bytes of the values that are kept side by side.
pub(crate) const WIDE: usize = 128;

/// Rows of as many elements are long.
const fn long_from<T>() -> usize {
    4 * WIDE / size_of::<T>()
}

/// The fold of rows of `dtype`; of `bool` there are the maximum and the minimum alone.
pub(crate) fn fold(op: Fold, dtype: DType, level: Level) -> Option<RowFold> {
    Some(match dtype {
        DType::Bool => match op {
            Fold::Maximum => rows::<Any>(level),
            Fold::Minimum => rows::<All>(level),
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
fn of_int<T: Int>(op: Fold, level: Level) -> RowFold {
    match op {
        Fold::Sum => rows::<IntSum<T::Bits>>(level),
        Fold::Product => rows::<IntProduct<T::Bits>>(level),
        Fold::Maximum => rows::<IntMaximum<T>>(level),
        Fold::Minimum => rows::<IntMinimum<T>>(level),
    }
}

fn of_float<T: Float>(op: Fold, level: Level) -> RowFold {
    match op {
        Fold::Sum => rows::<Sum<T>>(level),
        Fold::Product => rows::<Product<T>>(level),
        Fold::Maximum => rows::<Maximum<T>>(level),
        Fold::Minimum => rows::<Minimum<T>>(level),
    }
}

fn of_complex<T: Float>(op: Fold, level: Level) -> RowFold {
    match op {
        Fold::Sum => rows::<ComplexSum<T>>(level),
        Fold::Product => rows::<ComplexProduct<T>>(level),
        // Comparisons of pairs do not vectorise.
        Fold::Maximum => rows::<ComplexMaximum<T>>(Level::BASELINE),
        Fold::Minimum => rows::<ComplexMinimum<T>>(Level::BASELINE),
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
    Any for u8, 0, |a, b| a | b;
    All for u8, 1, |a, b| a & b;
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

fn rows<J: Joint>(level: Level) -> RowFold {
    match level.kind() {
        Kind::Baseline => baseline::<J>,
        #[cfg(target_arch = "x86_64")]
        Kind::Avx2 => avx2::<J>,
        #[cfg(target_arch = "x86_64")]
        Kind::Avx512 => avx512::<J>,
    }
}

/// The fold of every row, at the baseline.
///
/// # Safety
///
/// As [`RowFold`] says.
unsafe fn baseline<J: Joint>(out: *mut u8, ins: *const u8, rows: usize, len: usize, stride: usize) {
    // SAFETY: the caller keeps the conditions.
    unsafe { every_row::<J>(out.cast(), ins.cast(), rows, len, stride) }
}

compiled_for_levels! {
    /// The fold of every row, compiled for a level.
    ///
    /// # Safety
    ///
    /// As [`RowFold`] says, and the machine has the features.
    unsafe fn avx2, avx512<J: Joint>(
        out: *mut u8,
        ins: *const u8,
        rows: usize,
        len: usize,
        stride: usize,
    ) {
        // SAFETY: the caller keeps the conditions.
        unsafe { every_row::<J>(out.cast(), ins.cast(), rows, len, stride) }
    }
}

/// # Safety
///
/// `out` has `rows` elements; `ins` has `rows` rows of `len`, each `stride` after the last.
#[inline(always)]
unsafe fn every_row<J: Joint>(
    out: *mut J::Value,
    ins: *const J::Value,
    rows: usize,
    len: usize,
    stride: usize,
) {
    for at in 0..rows {
        // SAFETY: the row is one of those that the caller vouches for.
        let row = unsafe { std::slice::from_raw_parts(ins.add(at * stride), len) };
        let value = if len < SHORT {
            row.iter().fold(J::NEUTRAL, |sum, &one| J::join(sum, one))
        } else if len < long_from::<J::Value>() {
            side_by_side::<J, 8>(row)
        } else {
            long::<J>(row)
        };
        // SAFETY: `at` is below the number of rows.
        unsafe { out.add(at).write(value) };
    }
}

/// Leaf after leaf, joined in pairs, and the pairs in pairs.
#[inline(always)]
fn long<J: Joint>(row: &[J::Value]) -> J::Value {
    // Place k holds what `1 << k` leaves gave, where bit k of their number is set.
    let mut places = [J::NEUTRAL; usize::BITS as usize];
    let mut leaves = 0_usize;
    for part in row.chunks(LEAF) {
        let mut value = match size_of::<J::Value>() {
            1 => side_by_side::<J, WIDE>(part),
            2 => side_by_side::<J, { WIDE / 2 }>(part),
            4 => side_by_side::<J, { WIDE / 4 }>(part),
            8 => side_by_side::<J, { WIDE / 8 }>(part),
            _ => side_by_side::<J, { WIDE / 16 }>(part),
        };
        if row.len() <= LEAF {
            return value;
        }
        let full = leaves.trailing_ones() as usize;
        for &early in &places[..full] {
            value = J::join(early, value);
        }
        places[full] = value;
        leaves += 1;
    }
    let full = (0..usize::BITS as usize).filter(|place| leaves >> place & 1 == 1);
    full.map(|place| places[place]).reduce(|late, early| J::join(early, late)).unwrap_or(J::NEUTRAL)
}

/// `LANES` values side by side, joined in pairs at the end.
#[inline(always)]
fn side_by_side<J: Joint, const LANES: usize>(row: &[J::Value]) -> J::Value {
    let mut values = [J::NEUTRAL; LANES];
    let (chunks, rest) = row.as_chunks::<LANES>();
    for chunk in chunks {
        for (value, &one) in values.iter_mut().zip(chunk) {
            *value = J::join(*value, one);
        }
    }
    for (value, &one) in values.iter_mut().zip(rest) {
        *value = J::join(*value, one);
    }
    let mut width = LANES / 2;
    while width > 0 {
        for lane in 0..width {
            values[lane] = J::join(values[lane], values[lane + width]);
        }
        width /= 2;
    }
    values[0]
}
