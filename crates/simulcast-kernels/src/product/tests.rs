//! Products against sums of products in `f64`, for every method, level, and size around the tiles.

use super::*;

fn numbers(count: usize, seed: u64) -> Vec<f32> {
    let mut state = seed;
    let mut next = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1 << 24) as f32 - 0.5
    };
    (0..count).map(|_| next()).collect()
}

/// How B, or A, lies in memory.
const ROW_MAJOR: bool = false;
const COLUMN_MAJOR: bool = true;

fn matrix<T>(elements: &[T], [rows, columns]: [usize; 2], over: bool) -> Matrix<'_, T> {
    let strides = if over { [1, rows] } else { [columns, 1] };
    Matrix::new(elements, [rows, columns], strides).unwrap()
}

fn run<T: Factor>(
    product: &Product<'_, T>,
    level: Level,
    rows: Range<usize>,
    columns: Range<usize>,
    out: &mut [T],
) {
    let sizes = [rows.len(), columns.len()];
    product.run(level, rows, columns, Out::new(out, sizes).unwrap());
}

const SIZES: [[usize; 3]; 17] = [
    [1, 1, 1],
    [1, 5, 17],
    [1, 64, 300],
    [2, 47, 16],
    [3, 33, 31],
    [4, 50, 64],
    [5, 19, 129],
    [7, 96, 40],
    [8, 130, 33],
    [9, 16, 700],
    [13, 49, 5],
    [31, 97, 601],
    [66, 3, 8],
    [70, 145, 20],
    // More rows than are computed beside the result at a time, in two blocks.
    [1100, 3, 514],
    [530, 1, 3],
    [300, 6, 40],
];

#[test]
fn doubles_have_the_same_bits_at_every_level() {
    for [m, n, k] in SIZES {
        let of = |count, seed| numbers(count, seed).into_iter().map(|own| f64::from(own) / 3.0);
        let (a, b): (Vec<f64>, Vec<f64>) = (of(m * k, 5).collect(), of(k * n, 6).collect());
        for over in [ROW_MAJOR, COLUMN_MAJOR] {
            let product =
                Product::new(matrix(&a, [m, k], false), matrix(&b, [k, n], over)).unwrap();
            let of_level = |level| {
                let mut out = vec![f64::NAN; m * n];
                run(&product, level, 0..m, 0..n, &mut out);
                out.into_iter().map(f64::to_bits).collect::<Vec<u64>>()
            };
            for level in Level::available() {
                assert_eq!(
                    of_level(level),
                    of_level(Level::BASELINE),
                    "{m} {n} {k} {over} {level:?}"
                );
            }
        }
    }
}

#[test]
fn the_order_of_sums_is_that_of_sixteen_lanes_and_nothing_is_fused() {
    let large = 16_777_216.0_f32;
    let mut lanes = [0.0; 32];
    // In lane 0 the large ones cancel; in fewer lanes, the 1 would be lost between them.
    (lanes[0], lanes[8], lanes[16]) = (large, 1.0, -large);
    let slightly = 1.0 + 1.0 / 4096.0;
    let (mut by, mut fused) = ([1.0; 32], [0.0; 32]);
    // The square, rounded, is what is subtracted from it.
    (fused[0], fused[16], by[16]) = (-(1.0 + 1.0 / 2048.0), slightly, slightly);
    for level in Level::available() {
        let of = |a: &[f32], b: &[f32], rows: usize| {
            let repeated = Matrix::new(a, [rows, 32], [0, 1]).unwrap();
            let product = Product::new(repeated, matrix(b, [32, 1], COLUMN_MAJOR)).unwrap();
            let mut out = vec![f32::NAN; rows];
            run(&product, level, 0..rows, 0..1, &mut out);
            out
        };
        for rows in [1, 2, 5] {
            assert_eq!(of(&lanes, &[1.0; 32], rows), vec![1.0; rows], "{level:?}");
            assert_eq!(of(&fused, &by, rows), vec![0.0; rows], "{level:?}");
        }
        let product = Product::new(
            matrix(&fused, [1, 32], false),
            Matrix::new(&by, [32, 5], [1, 0]).unwrap(),
        );
        let product = Product { method: Method::Packed, ..product.unwrap() };
        let mut out = [f32::NAN; 5];
        run(&product, level, 0..1, 0..5, &mut out);
        assert_eq!(out, [0.0; 5], "{level:?}");
    }
}

#[test]
fn strides_of_a_single_row_may_be_anything() {
    let ones = [1_f32; 16];
    let b = Matrix::new(&ones, [1, 16], [usize::MAX, 1]).unwrap();
    for level in Level::available() {
        let mut out = [0.0; 16];
        run(&Product::new(matrix(&[2.0], [1, 1], false), b).unwrap(), level, 0..1, 0..16, &mut out);
        assert_eq!(out, [2.0; 16]);
    }
}

#[test]
fn parts_are_written_where_they_belong() {
    let [m, n, k] = [9, 70, 33];
    let (a, b) = (numbers(m * k, 7), numbers(k * n, 8));
    for b_over in [ROW_MAJOR, COLUMN_MAJOR] {
        for a_over in [ROW_MAJOR, COLUMN_MAJOR] {
            let product =
                Product::new(matrix(&a, [m, k], a_over), matrix(&b, [k, n], b_over)).unwrap();
            for level in Level::available() {
                let mut whole = vec![0.0; m * n];
                run(&product, level, 0..m, 0..n, &mut whole);
                for (row, column) in [(0, 0), (4, 33), (8, 64), (9, 70)] {
                    let mut out = vec![f32::NAN; m * n];
                    let (above, below) = Out::new(&mut out, [m, n]).unwrap().split_rows(row);
                    for (rows, out) in [(0..row, above), (row..m, below)] {
                        let (left, right) = out.split_columns(column);
                        product.run(level, rows.clone(), 0..column, left);
                        product.run(level, rows, column..n, right);
                    }
                    assert_eq!(out, whole, "{a_over} {b_over} {level:?} {row} {column}");
                }
            }
        }
    }
}

#[test]
#[should_panic(expected = "3 of 2 rows")]
fn parts_beyond_the_result_are_refused() {
    let mut all = [0.0; 2];
    let _ = Out::new(&mut all, [2, 1]).unwrap().split_rows(3);
}

#[test]
fn every_method_agrees_with_sums_in_f64_and_has_the_same_bits_at_every_level() {
    let mut met = std::collections::HashSet::new();
    for [m, n, k] in SIZES {
        let (a, b) = (numbers(m * k, 1), numbers(k * n, 2));
        for (a_over, b_over) in [
            (ROW_MAJOR, ROW_MAJOR),
            (ROW_MAJOR, COLUMN_MAJOR),
            (COLUMN_MAJOR, ROW_MAJOR),
            (COLUMN_MAJOR, COLUMN_MAJOR),
        ] {
            let (a, b) = (matrix(&a, [m, k], a_over), matrix(&b, [k, n], b_over));
            let at = |own: &Matrix<'_, f32>, r: usize, c: usize| {
                f64::from(own.elements[r * own.strides[0] + c * own.strides[1]])
            };
            let product = Product::new(a, b).unwrap();
            met.insert(format!("{:?}", product.method()));
            let mut first: Option<Vec<u32>> = None;
            for level in Level::available() {
                // NaN where nothing is written.
                let mut out = vec![f32::NAN; m * n];
                run(&product, level, 0..m, 0..n, &mut out);
                let bits: Vec<u32> = out.iter().map(|own| own.to_bits()).collect();
                let own = first.get_or_insert_with(|| bits.clone());
                assert_eq!(*own, bits, "{m} {n} {k} {a_over} {b_over} {level:?}");
                for (place, own) in out.iter().enumerate() {
                    let (row, column) = (place / n, place % n);
                    let terms = (0..k).map(|i| at(&a, row, i) * at(&b, i, column));
                    let (sum, size) =
                        terms.fold((0.0, 0.0), |(sum, size), term| (sum + term, size + term.abs()));
                    let bound =
                        size * k as f64 * f64::from(f32::EPSILON) + f64::from(f32::MIN_POSITIVE);
                    let error = (f64::from(*own) - sum).abs();
                    assert!(
                        error <= bound,
                        "{m} {n} {k} {a_over} {b_over} {level:?} {place}: {own} {sum}"
                    );
                }
            }
        }
    }
    assert_eq!(met.len(), 3, "{met:?}");
}

#[test]
fn parts_have_the_bits_of_the_whole() {
    for [m, n, k] in SIZES {
        let (a, b) = (numbers(m * k, 3), numbers(k * n, 4));
        for b_over in [ROW_MAJOR, COLUMN_MAJOR] {
            let product =
                Product::new(matrix(&a, [m, k], false), matrix(&b, [k, n], b_over)).unwrap();
            for level in Level::available() {
                let mut whole = vec![0.0; m * n];
                run(&product, level, 0..m, 0..n, &mut whole);
                for cuts in [2, 3, 5] {
                    for part in 0..cuts {
                        let (rows, columns) = (
                            m * part / cuts..m * (part + 1) / cuts,
                            n * part / cuts..n * (part + 1) / cuts,
                        );
                        let mut out = vec![0.0; rows.len() * n];
                        run(&product, level, rows.clone(), 0..n, &mut out);
                        assert_eq!(
                            out,
                            whole[rows.start * n..rows.end * n],
                            "{m} {n} {k} {level:?}"
                        );
                        let mut out = vec![0.0; m * columns.len()];
                        run(&product, level, 0..m, columns.clone(), &mut out);
                        let own = (0..m)
                            .flat_map(|row| &whole[row * n + columns.start..row * n + columns.end]);
                        assert!(out.iter().eq(own), "{m} {n} {k} {level:?}");
                    }
                }
            }
        }
    }
}

#[test]
fn doubles_are_multiplied_as_doubles() {
    let (a, b) = ([1.0_f64, 1e-9], [1.0_f64, 1e-9]);
    for level in Level::available() {
        let mut out = [0.0];
        let product = Product::new(matrix(&a, [1, 2], false), matrix(&b, [2, 1], true)).unwrap();
        run(&product, level, 0..1, 0..1, &mut out);
        assert_eq!(out, [1.0 + 1e-18]);
        let (a, b) = ([0.1_f64; 90], [0.3_f64; 90]);
        let mut out = [0.0; 81];
        let product = Product::new(matrix(&a, [9, 10], true), matrix(&b, [10, 9], false)).unwrap();
        run(&product, level, 0..9, 0..9, &mut out);
        assert!(out.iter().all(|own| (own - 0.3).abs() < 1e-15), "{out:?}");
    }
}

#[test]
fn nothing_to_add_gives_zeros_and_what_does_not_fit_is_refused() {
    let empty: [f32; 0] = [];
    let product =
        Product::new(matrix(&empty, [2, 0], false), matrix(&empty, [0, 3], false)).unwrap();
    let mut out = [f32::NAN; 6];
    run(&product, Level::BASELINE, 0..2, 0..3, &mut out);
    assert_eq!(out, [0.0; 6]);
    assert!(
        Product::new(matrix(&[1.0_f32; 2], [1, 2], false), matrix(&[1.0; 3], [3, 1], false))
            .is_none()
    );
    assert!(Matrix::new(&[1.0_f32; 5], [2, 3], [3, 1]).is_none());
    assert!(Matrix::new(&[1.0_f32; 5], [usize::MAX, 2], [usize::MAX, 1]).is_none());
    // A row that repeats is a matrix too.
    assert!(Matrix::new(&[1.0_f32; 5], [1000, 5], [0, 1]).is_some());
}
