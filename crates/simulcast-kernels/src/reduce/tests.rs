//! The loops at every level, against loops that say the order in a few lines.

use super::{JoinOp, Rows, reducer};
use crate::{DType, Level};

// [E_BROADCAST_ANY_FUNC_3050]
#[test]
fn rows_are_joined_across_in_eights_at_every_level() {
    /// Numbers whose joints depend on the order, for floats.
    fn case<T: Copy + crate::Element + std::fmt::Debug + PartialEq>(
        of: impl Fn(f64) -> T,
        join: impl Fn(JoinOp, T, T) -> T,
    ) {
        let (counts, heights): (&[_], &[_]) = match cfg!(miri) {
            true => (&[3, 41], &[1, 9]),
            false => (&[1, 3, 8, 15, 16, 31, 33, 64, 131, 300], &[1, 2, 7, 8, 9, 16, 21]),
        };
        for &count in counts {
            for &rows in heights {
                let stride = count + 3;
                let value = |at: usize| of((at * 7919 % 1009) as f64 / 7.0 - 60.0);
                let data: Vec<T> = (0..rows * stride).map(value).collect();
                let places: Vec<*const u8> =
                    (0..rows).map(|row| data[row * stride..].as_ptr().cast()).collect();
                for op in [JoinOp::Sum, JoinOp::Product, JoinOp::Maximum, JoinOp::Minimum] {
                    let started: Vec<T> = (0..=count).map(|at| value(at + 5)).collect();
                    for (level, more) in Level::available()
                        .into_iter()
                        .flat_map(|level| [(level, false), (level, true)])
                    {
                        let across = reducer(op, T::DTYPE, level).unwrap().across;
                        let mut out = started.clone();
                        // SAFETY: the rows lie within the vector, and the result has room for one more.
                        unsafe { across(out.as_mut_ptr().cast(), &places, count, more, true) };
                        for column in 0..count {
                            let mut all = more.then_some(started[column]);
                            for first in (0..rows).step_by(8) {
                                let own =
                                    (first..rows.min(first + 8)).map(|r| data[r * stride + column]);
                                let eights = rows - first >= 8;
                                let parts: Vec<T> = if eights {
                                    own.reduce(|a, b| join(op, a, b)).into_iter().collect()
                                } else {
                                    own.collect()
                                };
                                for part in parts {
                                    all = Some(all.map_or(part, |all| join(op, all, part)));
                                }
                            }
                            assert_eq!(
                                Some(out[column]),
                                all,
                                "{op:?} {rows} of {count} {}",
                                T::DTYPE
                            );
                        }
                        assert_eq!(out[count], started[count], "nothing else is written");
                    }
                }
            }
        }
    }
    macro_rules! cases {
        ($($type:ident $plus:ident $times:ident)*) => { $(
            case::<$type>(|x| x as $type, |op, a, b| match op {
                JoinOp::Sum => a.$plus(b),
                JoinOp::Product => a.$times(b),
                JoinOp::Maximum => a.max(b),
                JoinOp::Minimum => a.min(b),
            });
        )* };
    }
    use std::ops::{Add as _, Mul as _};
    cases!(f32 add mul f64 add mul);
    for level in Level::available() {
        let down = |op, dtype, rows: &[*const u8], to: *mut u8| {
            let across = reducer(op, dtype, level).unwrap().across;
            // SAFETY: rows of three elements.
            unsafe { across(to, rows, 3, false, false) };
        };
        // The first NaN, and the sign of sums of zeros.
        let [a, b] = [[f32::NAN, -0.0, -0.0], [1.0, -0.0, 0.0]];
        let mut to = [0.0_f32; 3];
        let rows = [a.as_ptr().cast(), b.as_ptr().cast()];
        for (op, signs) in [(JoinOp::Sum, [true, false]), (JoinOp::Maximum, [true, false])] {
            down(op, DType::F32, &rows, to.as_mut_ptr().cast());
            assert!(to[0].is_nan());
            assert_eq!([to[1], to[2]].map(f32::is_sign_negative), signs, "{op:?}");
        }
        // Every byte but 0 is true.
        let [a, b] = [[0_u8, 7, 0], [0, 2, 9]];
        let mut to = [5_u8; 3];
        for (op, truths) in
            [(JoinOp::Maximum, [false, true, true]), (JoinOp::Minimum, [false, true, false])]
        {
            down(op, DType::Bool, &[a.as_ptr(), b.as_ptr()], to.as_mut_ptr());
            assert_eq!(to.map(|byte| byte != 0), truths, "{op:?}");
        }
    }
    if !cfg!(miri) {
        cases! {
            i8 wrapping_add wrapping_mul u16 wrapping_add wrapping_mul
            i32 wrapping_add wrapping_mul u64 wrapping_add wrapping_mul
        }
    }
}

#[test]
fn rows_become_the_same_value_at_every_level_and_the_right_one() {
    /// Small whole numbers, so that sums and products of floats are exact in any order.
    fn case<T: Copy + crate::Element + PartialEq + std::fmt::Debug>(
        of: impl Fn(i32) -> T,
        join: impl Fn(JoinOp, T, T) -> T,
    ) {
        let many = if cfg!(miri) { 40 } else { 9000 };
        for len in [1, 2, 3, 7, 8, 9, 31, 32, 63, 64, 127, 128, 129, 2047, 2048, 2049, many] {
            let len = len.min(many);
            let (rows, stride) = (if len < 40 { 37 } else { 3 }, len + 2);
            for op in [JoinOp::Sum, JoinOp::Product, JoinOp::Maximum, JoinOp::Minimum] {
                let value = |at: usize| match op {
                    JoinOp::Product => 1 + i32::from(at % 97 == 5 && at < 1000),
                    _ => (at * 37 % 101) as i32 - 50,
                };
                let row: Vec<T> = (0..rows * stride).map(|at| of(value(at))).collect();
                for level in Level::available() {
                    let along = reducer(op, T::DTYPE, level).unwrap().along;
                    let mut out = vec![of(0); rows];
                    // SAFETY: rows that lie within the vector.
                    unsafe {
                        let first = row.as_ptr().cast();
                        let stride = (stride * size_of::<T>()).cast_signed();
                        let own = Rows { first, stride, step: 1 };
                        along(out.as_mut_ptr().cast(), [own; 2], rows, len, true);
                    }
                    for (at, out) in out.iter().enumerate() {
                        let own = row[at * stride..][..len].iter().copied();
                        let naive = own.reduce(|a, b| join(op, a, b)).unwrap();
                        assert_eq!(*out, naive, "{op:?} of {len} {}", T::DTYPE);
                    }
                }
            }
        }
    }
    macro_rules! ints {
        ($($type:ident)*) => { $(
            case::<$type>(|x| x as $type, |op, a, b| match op {
                JoinOp::Sum => a.wrapping_add(b),
                JoinOp::Product => a.wrapping_mul(b),
                JoinOp::Maximum => a.max(b),
                JoinOp::Minimum => a.min(b),
            });
        )* };
    }
    ints!(i8 i16 i32 i64 u8 u16 u32 u64);
    macro_rules! floats {
        ($($type:ident)*) => { $(
            case::<$type>(|x| x as $type, |op, a, b| match op {
                JoinOp::Sum => a + b,
                JoinOp::Product => a * b,
                JoinOp::Maximum => a.max(b),
                JoinOp::Minimum => a.min(b),
            });
            case::<num_complex::Complex<$type>>(|x| num_complex::Complex::new(x as $type, 0.0), |op, a, b| match op {
                JoinOp::Sum => a + b,
                JoinOp::Product => a * b,
                JoinOp::Maximum => if a.re >= b.re { a } else { b },
                JoinOp::Minimum => if a.re <= b.re { a } else { b },
            });
        )* };
    }
    floats!(f32 f64);
}

#[test]
fn nan_and_the_sign_of_zero_and_the_order_are_kept() {
    let run = |op: JoinOp, row: &[f32], level: Level| {
        let mut out = [0.0_f32];
        let along = reducer(op, DType::F32, level).unwrap().along;
        let own = Rows { first: row.as_ptr().cast(), stride: 0, step: 1 };
        // SAFETY: one row.
        unsafe { along(out.as_mut_ptr().cast(), [own; 2], 1, row.len(), false) };
        out[0]
    };
    for len in [1_usize, 5, 40, 300, 5000] {
        let mut row = vec![1.0_f32; len];
        row[len / 2] = f32::NAN;
        let rough: Vec<f32> = (0..len).map(|at| (at as f32 * 0.7).sin() * 1e3).collect();
        let exact: f64 = rough.iter().map(|&x| f64::from(x)).sum();
        let size: f64 = rough.iter().map(|&x| f64::from(x.abs())).sum();
        let first = run(JoinOp::Sum, &rough, Level::BASELINE);
        assert!((f64::from(first) - exact).abs() <= size * 1e-6, "{first} is not {exact}");
        for level in Level::available() {
            assert!(
                run(JoinOp::Maximum, &row, level).is_nan()
                    && run(JoinOp::Minimum, &row, level).is_nan()
            );
            assert_eq!(run(JoinOp::Sum, &vec![-0.0; len], level).to_bits(), (-0.0_f32).to_bits());
            assert_eq!(run(JoinOp::Sum, &rough, level).to_bits(), first.to_bits());
        }
    }
    assert_eq!(run(JoinOp::Maximum, &[], Level::BASELINE), f32::NEG_INFINITY);
    for level in Level::available() {
        for (op, expected) in [(JoinOp::Maximum, [1, 0, 1]), (JoinOp::Minimum, [0, 0, 1])] {
            let (rows, mut out) = ([0_u8, 1, 0, 0, 1, 1], [9_u8; 3]);
            // SAFETY: three rows of two.
            unsafe {
                let own = Rows { first: rows.as_ptr(), stride: 2, step: 1 };
                let along = reducer(op, DType::Bool, level).unwrap().along;
                along(out.as_mut_ptr(), [own; 2], 3, 2, false);
            }
            assert_eq!(out, expected);
        }
    }
}
