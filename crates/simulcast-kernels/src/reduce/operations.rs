//! Operations that are folded as they are made: those of products and distances, on floats.
//!
//! Every operation with every fold is a loop of its own, so that there are few of them: sums and
//! differences are not summed, and nothing is multiplied. All others are written out first, a block at
//! a time.

use std::marker::PhantomData;

use super::{Fold, Maximum, Minimum, Sum};
use crate::ops::float::Float;
use crate::ops::{Body, body};
use crate::reduce::along_row::{RowFold, rows};
use crate::reduce::shared_row::{Abreast, columns};
use crate::{DType, Level, Op};

/// The fold abreast of some operations, each after the one that it reads; the first reads one and
/// many, or many and one where they are `swapped`. None where there is no such loop.
pub fn abreast(
    fold: Fold,
    ops: &[Op],
    swapped: bool,
    dtype: DType,
    level: Level,
) -> Option<Abreast> {
    match dtype {
        DType::F32 => crossed::<f32>(fold, ops, swapped, level),
        DType::F64 => crossed::<f64>(fold, ops, swapped, level),
        _ => None,
    }
}

/// The fold of rows of the same operations.
pub(super) fn along(fold: Fold, ops: &[Op], dtype: DType, level: Level) -> Option<RowFold> {
    match dtype {
        DType::F32 => straight::<f32>(fold, ops, level),
        DType::F64 => straight::<f64>(fold, ops, level),
        _ => None,
    }
}

macro_rules! operations {
    ($($name:ident ($ops:pat, $swapped:pat) [$($fold:ident)+] |$a:ident, $b:ident| $value:expr;)*) => {
        $(
            struct $name<T>(PhantomData<T>);
            impl<T: Float> Body for $name<T> {
                body!(Light 2 T { $value } $a: T, $b: T, _none: ());
            }
        )*

        fn crossed<T: Float>(
            fold: Fold,
            ops: &[Op],
            swapped: bool,
            level: Level,
        ) -> Option<Abreast> {
            match (ops, swapped, fold) {
                $($(($ops, $swapped, Fold::$fold) => {
                    Some(columns::<$name<T>, $fold<T>>(level))
                })+)*
                _ => None,
            }
        }
    };
}

operations! {
    Both ([Op::Add], _) [Maximum Minimum] |a, b| a + b;
    Less ([Op::Subtract], false) [Maximum Minimum] |a, b| a - b;
    LessThan ([Op::Subtract], true) [Maximum Minimum] |a, b| b - a;
    Times ([Op::Multiply], _) [Sum Maximum Minimum] |a, b| a * b;
    Squared ([Op::Subtract, Op::Square], _) [Sum Maximum Minimum] |a, b| (a - b) * (a - b);
    Distance ([Op::Subtract, Op::Absolute], _) [Sum Maximum Minimum] |a, b| (a - b).magnitude();
}

fn straight<T: Float>(fold: Fold, ops: &[Op], level: Level) -> Option<RowFold> {
    macro_rules! each {
        ($name:ident) => {
            match fold {
                Fold::Sum => rows::<$name<T>, Sum<T>>(level),
                Fold::Maximum => rows::<$name<T>, Maximum<T>>(level),
                Fold::Minimum => rows::<$name<T>, Minimum<T>>(level),
                Fold::Product => return None,
            }
        };
    }
    Some(match ops {
        [Op::Multiply] => each!(Times),
        [Op::Subtract, Op::Square] => each!(Squared),
        [Op::Subtract, Op::Absolute] => each!(Distance),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::super::{LEAF, Rows, WIDE, fold};
    use super::*;

    /// An operation on a type: how numbers are made and compared, and what it does.
    struct Case<'c, T> {
        of: fn(f64) -> T,
        bits: fn(T) -> u64,
        ops: &'c [Op],
        folds: &'c [Fold],
        make: fn(T, T) -> T,
    }

    impl<T: Copy + crate::Element + std::fmt::Debug> Case<'_, T> {
        /// Numbers for which the order makes a difference.
        fn numbers(&self, count: usize) -> Vec<T> {
            (0..count).map(|at| (self.of)((at as f64 * 0.7).sin() * 3.0 + 0.01)).collect()
        }

        /// The fold of a row that was written out.
        fn alone(&self, op: Fold, row: &[T]) -> u64 {
            let mut alone = (self.of)(0.0);
            let own = Rows { first: row.as_ptr().cast(), stride: 0, step: 1 };
            let fold = fold(op, &[], T::DTYPE, Level::BASELINE).unwrap();
            // SAFETY: one row.
            unsafe { fold((&raw mut alone).cast(), [own; 2], 1, row.len()) };
            (self.bits)(alone)
        }

        fn abreast(&self, len: usize, columns: usize) {
            // Rows that are longer than the columns, to whole vectors.
            let pitch = (columns + 3).next_multiple_of(WIDE / size_of::<T>());
            let (one, many) = (self.numbers(2 * len), self.numbers(len * pitch));
            for (op, swapped) in self.folds.iter().flat_map(|&op| [(op, false), (op, true)]) {
                let expected: Vec<u64> = (0..columns)
                    .map(|column| {
                        let pair = |k: usize| (one[2 * k], many[k * pitch + column]);
                        let made = (0..len).map(pair).map(|(a, b)| match swapped {
                            true => (self.make)(b, a),
                            false => (self.make)(a, b),
                        });
                        self.alone(op, &made.collect::<Vec<T>>())
                    })
                    .collect();
                for level in Level::available() {
                    let mut out = self.numbers(columns + 1);
                    let after = (self.bits)(out[columns]);
                    let fold = abreast(op, self.ops, swapped, T::DTYPE, level).unwrap();
                    // SAFETY: `one` has every other element, and `many` whole rows.
                    unsafe {
                        let (one, many) = (one.as_ptr().cast(), many.as_ptr().cast());
                        fold(out.as_mut_ptr().cast(), (one, 2), (many, pitch), columns, len);
                    }
                    let out: Vec<u64> = out.into_iter().map(self.bits).collect();
                    let what = format!("{op:?} {:?} of {len} {}", self.ops, level.name());
                    assert_eq!(out[..columns], expected, "{what}");
                    assert_eq!(out[columns], after, "{what}");
                }
            }
        }

        fn along(&self, len: usize, rows: usize) {
            let (a, b) = (self.numbers(rows * (len + 1)), self.numbers(rows * len + 7));
            // Rows apart and backwards, one row for all, and one element for each row.
            let backwards = b.as_ptr().wrapping_add((rows - 1) * len);
            let places = [
                (b.as_ptr(), len.cast_signed(), 1),
                (backwards, -len.cast_signed(), 1),
                (b.as_ptr(), 0, 1),
                (b.as_ptr(), 1, 0),
            ];
            for (op, (first, stride, step)) in
                self.folds.iter().flat_map(|&op| places.map(|p| (op, p)))
            {
                let own = Rows { first: a.as_ptr().cast(), stride: len.cast_signed() + 1, step: 1 };
                let other = Rows { first: first.cast(), stride, step };
                for swapped in [false, true] {
                    let expected: Vec<u64> = (0..rows)
                        .map(|row| {
                            let made = (0..len).map(|k| {
                                let at = row.cast_signed() * stride + (k * step).cast_signed();
                                // SAFETY: the rows lie within the vector.
                                let (a, b) = unsafe { (a[row * (len + 1) + k], *first.offset(at)) };
                                if swapped { (self.make)(b, a) } else { (self.make)(a, b) }
                            });
                            self.alone(op, &made.collect::<Vec<T>>())
                        })
                        .collect();
                    for level in Level::available() {
                        let mut out = self.numbers(rows + 1);
                        let after = (self.bits)(out[rows]);
                        let fold = fold(op, self.ops, T::DTYPE, level).unwrap();
                        let ins = if swapped { [other, own] } else { [own, other] };
                        // SAFETY: the rows lie within the vectors.
                        unsafe { fold(out.as_mut_ptr().cast(), ins, rows, len) };
                        let out: Vec<u64> = out.into_iter().map(self.bits).collect();
                        let what = format!("{op:?} {:?} of {len} {}", self.ops, level.name());
                        assert_eq!(out[..rows], expected, "{what}");
                        assert_eq!(out[rows], after, "{what}");
                    }
                }
            }
        }
    }

    macro_rules! cases {
        ($each:expr; $($ops:expr, [$($fold:ident)+] => |$a:ident, $b:ident| $make:expr;)*) => { $(
            let single = Case::<f32> {
                of: |x| x as f32,
                bits: |x| x.to_bits().into(),
                ops: &$ops,
                folds: &[$(Fold::$fold),+],
                make: |$a, $b| $make,
            };
            let double = Case::<f64> { of: |x| x, bits: f64::to_bits, ops: &$ops,
                folds: &[$(Fold::$fold),+], make: |$a, $b| $make };
            for (len, count) in $each {
                single.run(len, count);
                double.run(len, count);
            }
        )* };
    }

    /// Lengths on both sides of every border, and some numbers of rows.
    fn sizes(counts: [usize; 4]) -> Vec<(usize, usize)> {
        if cfg!(miri) {
            return vec![(7, 3), (9, 3), (65, 1)];
        }
        let lens = [1, 7, 8, 9, 31, 63, 64, 65, 127, 128, 129, 300, LEAF];
        let all = lens.into_iter().flat_map(|len| counts.map(|count| (len, count)));
        all.filter(|&(len, count)| len * count < 5000).collect()
    }

    #[test]
    fn rows_abreast_have_the_bits_of_rows_that_were_written_out() {
        trait Run {
            fn run(&self, len: usize, columns: usize);
        }
        impl<T: Copy + crate::Element + std::fmt::Debug> Run for Case<'_, T> {
            fn run(&self, len: usize, columns: usize) {
                self.abreast(len, columns);
            }
        }
        cases! { sizes([1, 31, 33, 70]);
            [Op::Add], [Maximum Minimum] => |a, b| a + b;
            [Op::Subtract], [Maximum Minimum] => |a, b| a - b;
            [Op::Multiply], [Sum Maximum Minimum] => |a, b| a * b;
            [Op::Subtract, Op::Square], [Sum Maximum Minimum] => |a, b| (a - b) * (a - b);
            [Op::Subtract, Op::Absolute], [Sum Maximum Minimum] => |a, b| (a - b).abs();
        }
    }

    #[test]
    fn rows_as_they_are_made_have_the_bits_of_rows_that_were_written_out() {
        trait Run {
            fn run(&self, len: usize, rows: usize);
        }
        impl<T: Copy + crate::Element + std::fmt::Debug> Run for Case<'_, T> {
            fn run(&self, len: usize, rows: usize) {
                self.along(len, rows);
            }
        }
        let mut sizes = sizes([1, 3, 8, 41]);
        sizes.push((if cfg!(miri) { 130 } else { 3 * LEAF + 5 }, 1));
        cases! { sizes.clone();
            [Op::Multiply], [Sum Maximum Minimum] => |a, b| a * b;
            [Op::Subtract, Op::Square], [Sum Maximum Minimum] => |a, b| (a - b) * (a - b);
            [Op::Subtract, Op::Absolute], [Sum Maximum Minimum] => |a, b| (a - b).abs();
        }
    }
}
