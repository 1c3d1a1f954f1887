//! Sums of products and of distances, on floats: the operation is computed as it is summed, and never stored.
//!
//! Each operation is a loop of its own, so that there are few: every other operation is stored a block at a time and
//! then reduced.

use std::marker::PhantomData;

use super::Reduce;
use super::along_row::{AlongRow, along_row};
use super::shared_row::{SharedRow, shared_row};
use crate::ops::float::Float;
use crate::{DType, Level, Op};

macro_rules! operations {
    ($($name:ident $ops:pat, |$a:ident, $b:ident| $value:expr;)*) => {
        $(
            struct $name<T>(PhantomData<T>);
            impl<T: Float> Reduce for $name<T> {
                type A = T;
                type B = T;
                type Value = T;
                const ARITY: usize = 2;
                const NEUTRAL: T = T::MINUS_ZERO;
                #[inline(always)]
                fn term($a: T, $b: T) -> T {
                    $value
                }
                #[inline(always)]
                fn join(a: T, b: T) -> T {
                    a + b
                }
            }
        )*

        /// The sum of rows of what some operations make of two rows of `dtype`, each operation after the one that it
        /// reads. None where there is no such loop.
        pub fn fused_along_row(ops: &[Op], dtype: DType, level: Level) -> Option<AlongRow> {
            match (ops, dtype) {
                $(
                    ($ops, DType::F32) => Some(along_row::<$name<f32>>(level)),
                    ($ops, DType::F64) => Some(along_row::<$name<f64>>(level)),
                )*
                _ => None,
            }
        }

        /// The same of one row with many. The operations do not depend on which of the two comes first.
        pub fn fused_shared_row(ops: &[Op], dtype: DType, level: Level) -> Option<SharedRow> {
            match (ops, dtype) {
                $(
                    ($ops, DType::F32) => Some(shared_row::<$name<f32>>(level)),
                    ($ops, DType::F64) => Some(shared_row::<$name<f64>>(level)),
                )*
                _ => None,
            }
        }
    };
}

operations! {
    Product [Op::Multiply], |a, b| a * b;
    SquaredDistance [Op::Subtract, Op::Square], |a, b| (a - b) * (a - b);
    Distance [Op::Subtract, Op::Absolute], |a, b| (a - b).magnitude();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reduce::{JoinOp, Rows, reducer};
    use crate::tuning::{REDUCE_LANE_BYTES, REDUCE_LEAF_ELEMENTS};

    /// An operation on a type: how numbers are made and compared, and what it does.
    struct Case<'c, T> {
        of: fn(f64) -> T,
        bits: fn(T) -> u64,
        ops: &'c [Op],
        make: fn(T, T) -> T,
    }

    impl<T: Copy + crate::Element + std::fmt::Debug> Case<'_, T> {
        /// Numbers for which the order makes a difference.
        fn numbers(&self, count: usize) -> Vec<T> {
            (0..count).map(|at| (self.of)((at as f64 * 0.7).sin() * 3.0 + 0.01)).collect()
        }

        /// The sum of a row of terms that were stored.
        fn stored(&self, terms: impl Iterator<Item = T>) -> u64 {
            let (row, mut sum) = (terms.collect::<Vec<T>>(), (self.of)(0.0));
            let own = Rows { first: row.as_ptr().cast(), stride: 0, step: 1 };
            let along = reducer(JoinOp::Sum, T::DTYPE, Level::BASELINE).unwrap().along;
            // SAFETY: one row.
            unsafe { along((&raw mut sum).cast(), [own; 2], 1, row.len(), false) };
            (self.bits)(sum)
        }

        fn shared_row(&self, len: usize, columns: usize) {
            // Rows that are longer than the columns, to whole vectors.
            let pitch = (columns + 3).next_multiple_of(REDUCE_LANE_BYTES / size_of::<T>());
            let (one, many) = (self.numbers(2 * len), self.numbers(len * pitch));
            let term = |column: usize, k: usize| (self.make)(one[2 * k], many[k * pitch + column]);
            let expected: Vec<u64> =
                (0..columns).map(|column| self.stored((0..len).map(|k| term(column, k)))).collect();
            for level in Level::available() {
                let mut out = self.numbers(columns + 1);
                let after = (self.bits)(out[columns]);
                let fused = fused_shared_row(self.ops, T::DTYPE, level).unwrap();
                let stride = 2 * size_of::<T>().cast_signed();
                // SAFETY: `one` has every other element, and `many` whole rows.
                unsafe {
                    let (one, many) = (one.as_ptr().cast(), many.as_ptr().cast());
                    fused(out.as_mut_ptr().cast(), (one, stride), (many, pitch), columns, len);
                }
                let out: Vec<u64> = out.into_iter().map(self.bits).collect();
                let what = format!("{:?} of {len} {}", self.ops, level.name());
                assert_eq!(out[..columns], expected, "{what}");
                assert_eq!(out[columns], after, "{what}");
            }
        }

        fn along_row(&self, len: usize, rows: usize) {
            let (a, b) = (self.numbers(rows * (len + 1)), self.numbers(rows * len + 7));
            let size = size_of::<T>().cast_signed();
            // Rows apart and backwards, one row for all, and one element for each row.
            let backwards = b.as_ptr().wrapping_add((rows - 1) * len);
            let places = [
                (b.as_ptr(), len.cast_signed(), 1),
                (backwards, -len.cast_signed(), 1),
                (b.as_ptr(), 0, 1),
                (b.as_ptr(), 1, 0),
            ];
            for (first, stride, step) in places {
                let next = (len.cast_signed() + 1) * size;
                let own = Rows { first: a.as_ptr().cast(), stride: next, step: 1 };
                let other = Rows { first: first.cast(), stride: stride * size, step };
                for swapped in [false, true] {
                    let term = |row: usize, k: usize| {
                        let at = row.cast_signed() * stride + (k * step).cast_signed();
                        // SAFETY: the rows lie within the vector.
                        let (a, b) = unsafe { (a[row * (len + 1) + k], *first.offset(at)) };
                        if swapped { (self.make)(b, a) } else { (self.make)(a, b) }
                    };
                    let expected: Vec<u64> =
                        (0..rows).map(|row| self.stored((0..len).map(|k| term(row, k)))).collect();
                    for (level, far) in Level::available()
                        .into_iter()
                        .flat_map(|level| [(level, false), (level, true)])
                    {
                        let mut out = self.numbers(rows + 1);
                        let after = (self.bits)(out[rows]);
                        let fused = fused_along_row(self.ops, T::DTYPE, level).unwrap();
                        let ins = if swapped { [other, own] } else { [own, other] };
                        // SAFETY: the rows lie within the vectors.
                        unsafe { fused(out.as_mut_ptr().cast(), ins, rows, len, far) };
                        let out: Vec<u64> = out.into_iter().map(self.bits).collect();
                        let what = format!("{:?} of {len} {}", self.ops, level.name());
                        assert_eq!(out[..rows], expected, "{what}");
                        assert_eq!(out[rows], after, "{what}");
                    }
                }
            }
        }
    }

    macro_rules! cases {
        ($method:ident $sizes:expr) => {
            cases! { $method $sizes;
                [Op::Multiply] => |a, b| a * b;
                [Op::Subtract, Op::Square] => |a, b| (a - b) * (a - b);
                [Op::Subtract, Op::Absolute] => |a, b| (a - b).abs();
            }
        };
        ($method:ident $sizes:expr; $($ops:expr => |$a:ident, $b:ident| $make:expr;)*) => { $(
            let single = Case::<f32> {
                of: |x| x as f32,
                bits: |x| x.to_bits().into(),
                ops: &$ops,
                make: |$a, $b| $make,
            };
            let double =
                Case::<f64> { of: |x| x, bits: f64::to_bits, ops: &$ops, make: |$a, $b| $make };
            for &(len, count) in &$sizes {
                single.$method(len, count);
                double.$method(len, count);
            }
        )* };
    }

    /// Lengths on both sides of every border, and some numbers of rows.
    fn sizes(counts: [usize; 4]) -> Vec<(usize, usize)> {
        if cfg!(miri) {
            return vec![(7, 3), (9, 3), (65, 1)];
        }
        let lens = [1, 7, 8, 9, 31, 63, 64, 65, 127, 128, 129, 300, REDUCE_LEAF_ELEMENTS];
        let all = lens.into_iter().flat_map(|len| counts.map(|count| (len, count)));
        all.filter(|&(len, count)| len * count < 5000).collect()
    }

    #[test]
    fn a_shared_row_gives_the_bits_of_rows_that_were_stored() {
        cases!(shared_row sizes([1, 31, 33, 70]));
    }

    #[test]
    fn fused_rows_give_the_bits_of_rows_that_were_stored() {
        let mut sizes = sizes([1, 3, 8, 41]);
        sizes.push((if cfg!(miri) { 130 } else { 3 * REDUCE_LEAF_ELEMENTS + 5 }, 1));
        cases!(along_row sizes);
    }
}
