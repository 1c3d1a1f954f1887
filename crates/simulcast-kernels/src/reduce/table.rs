//! The loops of every way to join and element type.

use std::marker::PhantomData;

use num_complex::Complex;

use super::{Reduce, Reducer};
use crate::ops::complex;
use crate::ops::float::{self, Float};
use crate::ops::int::Int;
use crate::{Addend, DType, Level};

/// How elements of one type become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum JoinOp {
    Sum,
    Product,
    Maximum,
    Minimum,
}

/// The loops that reduce elements of `dtype`; of `bool` there are the maximum and the minimum alone.
pub fn reducer(op: JoinOp, dtype: DType, level: Level) -> Option<Reducer> {
    Some(match dtype {
        DType::Bool => match op {
            JoinOp::Maximum => Reducer::new::<Any>(Level::BASELINE),
            JoinOp::Minimum => Reducer::new::<All>(Level::BASELINE),
            JoinOp::Sum | JoinOp::Product => return None,
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

// Products of arrays, and reductions of `bool`, are rare or short of memory before they are short of vectors: compiled
// for the baseline alone.

/// Sums and products do not depend on the sign.
fn of_int<T: Int + Addend>(op: JoinOp, level: Level) -> Reducer {
    match op {
        JoinOp::Sum => T::reducer(level),
        JoinOp::Product => Reducer::new::<IntProduct<T::Bits>>(Level::BASELINE),
        JoinOp::Maximum => Reducer::new::<IntMaximum<T>>(level),
        JoinOp::Minimum => Reducer::new::<IntMinimum<T>>(level),
    }
}

fn of_float<T: Float + Addend>(op: JoinOp, level: Level) -> Reducer {
    match op {
        JoinOp::Sum => T::reducer(level),
        JoinOp::Product => Reducer::new::<Product<T>>(Level::BASELINE),
        JoinOp::Maximum => Reducer::new::<Maximum<T>>(level),
        JoinOp::Minimum => Reducer::new::<Minimum<T>>(level),
    }
}

fn of_complex<T: Float>(op: JoinOp, level: Level) -> Reducer
where
    Complex<T>: Addend,
{
    match op {
        JoinOp::Sum => Complex::<T>::reducer(level),
        JoinOp::Product => Reducer::new::<ComplexProduct<T>>(Level::BASELINE),
        // Comparisons of pairs do not vectorise.
        JoinOp::Maximum => Reducer::new::<ComplexMaximum<T>>(Level::BASELINE),
        JoinOp::Minimum => Reducer::new::<ComplexMinimum<T>>(Level::BASELINE),
    }
}

macro_rules! joins {
    ($($name:ident$(<$T:ident: $bound:path>)? for $value:ty, $neutral:expr, |$a:ident, $b:ident| $join:expr;)*) => { $(
        struct $name$(<$T>(PhantomData<$T>))?;
        impl$(<$T: $bound>)? Reduce for $name$(<$T>)? {
            type A = $value;
            type B = ();
            type Value = $value;
            const NEUTRAL: $value = $neutral;
            #[inline(always)]
            fn term(a: $value, _none: ()) -> $value {
                a
            }
            #[inline(always)]
            fn join($a: $value, $b: $value) -> $value {
                $join
            }
        }
    )* };
}

joins! {
    // Every byte but 0 is true, and stays so.
    Any for u8, 0, |a, b| a.max(b);
    All for u8, 1, |a, b| a.min(b);
    IntProduct<T: Int> for T, T::ONE, |a, b| a.times(b);
    IntMaximum<T: Int> for T, T::SMALLEST, |a, b| a.max(b);
    IntMinimum<T: Int> for T, T::LARGEST, |a, b| a.min(b);
    Product<T: Float> for T, T::ONE, |a, b| a * b;
    Maximum<T: Float> for T, T::MINUS_INFINITY, |a, b| float::maximum(a, b);
    Minimum<T: Float> for T, T::INFINITY, |a, b| float::minimum(a, b);
    ComplexProduct<T: Float> for Complex<T>, both(T::ONE, T::ZERO), |a, b| complex::multiply(a, b);
    ComplexMaximum<T: Float> for Complex<T>, both(T::MINUS_INFINITY, T::MINUS_INFINITY),
        |a, b| complex::maximum(a, b);
    ComplexMinimum<T: Float> for Complex<T>, both(T::INFINITY, T::INFINITY),
        |a, b| complex::minimum(a, b);
}

const fn both<T: Copy>(re: T, im: T) -> Complex<T> {
    Complex { re, im }
}
