//! Pairs: two operations of which the first is read by the second alone, as one loop.
//!
//! What lies between them stays in a register of the machine, rather than in a tile; both round, as
//! they do apart. These are the steps of scaling and shifting, of distances, and of softmax.

use std::marker::PhantomData;
use std::mem::MaybeUninit;

use super::{ElementOp, Kernels, Weight, alone, body, kernels_of};
use crate::ops::float::Float;
use crate::{DType, Level, Op};

/// The loops of `second`, whose operand number `place` is `first`. They read the operands of the
/// first, then the other one of the second. None where there is no such loop.
pub fn pair(first: Op, second: Op, place: usize, dtype: DType, level: Level) -> Option<Kernels> {
    match dtype {
        DType::F32 => of::<f32>(first, second, place, level),
        DType::F64 => of::<f64>(first, second, place, level),
        _ => None,
    }
}

/// The loops of a choice between two operands by a comparison of them, `where(a < b, a, b)`. None
/// where there is no such loop.
pub fn choice_by(comparison: Op, dtype: DType, level: Level) -> Option<Kernels> {
    fn of<T: Float>(comparison: Op, level: Level) -> Option<Kernels> {
        Some(match comparison {
            Op::Less => kernels_of::<ByLess<T>>(level),
            Op::LessEqual => kernels_of::<ByLessEqual<T>>(level),
            Op::Greater => kernels_of::<ByGreater<T>>(level),
            Op::GreaterEqual => kernels_of::<ByGreaterEqual<T>>(level),
            _ => return None,
        })
    }
    match dtype {
        DType::F32 => of::<f32>(comparison, level),
        DType::F64 => of::<f64>(comparison, level),
        _ => None,
    }
}

macro_rules! choices {
    ($($name:ident $sign:tt)*) => { $(
        struct $name<T>(PhantomData<T>);
        impl<T: Float> ElementOp for $name<T> {
            body!(Light 2 T { if a $sign b { a } else { b } } a: T, b: T, _none: ());
        }
    )* };
}

choices! { ByLess < ByLessEqual <= ByGreater > ByGreaterEqual >= }

/// `exp(a - b)`.
struct DifferenceExp<T>(PhantomData<T>);

impl<T: Float> ElementOp for DifferenceExp<T> {
    type A = T;
    type B = T;
    type C = ();
    type Out = T;
    const ARITY: usize = 2;
    const WEIGHT: Weight = Weight::Tiled;

    #[inline(always)]
    fn at<const FMA: bool>(a: T, b: T, (): ()) -> T {
        alone(a, |out| T::exp_tile::<FMA>(|_| a - b, out))
    }

    #[inline(always)]
    unsafe fn tile<const FMA: bool>(a: &[T], b: &[T], _: &[()], out: &mut [MaybeUninit<T>]) {
        let (a, b) = (&a[..out.len()], &b[..out.len()]);
        T::exp_tile::<FMA>(|at| a[at] - b[at], out);
    }
}

macro_rules! pairs {
    ($($name:ident $arity:tt ($first:ident $second:ident $place:pat) |$a:ident, $b:ident, $c:ident| $value:expr;)*) => {
        $(
            struct $name<T>(PhantomData<T>);
            impl<T: Float> ElementOp for $name<T> {
                pairs!(@ $arity $a $b $c $value);
            }
        )*

        fn of<T: Float>(
            first: Op,
            second: Op,
            place: usize,
            level: Level,
        ) -> Option<Kernels> {
            match (first, second, place) {
                (Op::Subtract, Op::Exp, _) => Some(kernels_of::<DifferenceExp<T>>(level)),
                $((Op::$first, Op::$second, $place) => Some(kernels_of::<$name<T>>(level)),)*
                _ => None,
            }
        }
    };
    (@ 2 $a:ident $b:ident $c:ident $value:expr) => {
        body!(Light 2 T { $value } $a: T, $b: T, $c: ());
    };
    (@ 3 $a:ident $b:ident $c:ident $value:expr) => {
        body!(Light 3 T { $value } $a: T, $b: T, $c: T);
    };
}

pairs! {
    ProductPlus 3 (Multiply Add 0 | 1) |a, b, c| a * b + c;
    ProductLess 3 (Multiply Subtract 0) |a, b, c| a * b - c;
    LessProduct 3 (Multiply Subtract 1) |a, b, c| c - a * b;
    DifferenceTimes 3 (Subtract Multiply 0 | 1) |a, b, c| (a - b) * c;
    DifferenceOver 3 (Subtract Divide 0) |a, b, c| (a - b) / c;
    DifferenceSquared 2 (Subtract Square _) |a, b, _none| (a - b) * (a - b);
    SumOrZero 2 (Add Relu _) |a, b, _none| if a + b <= T::ZERO { T::ZERO } else { a + b };
}
