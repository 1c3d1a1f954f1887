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

const SIZES: [[usize; 3]; 14] = [
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
];

#[test]
fn every_method_and_level_agrees_with_sums_in_f64() {
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
            for level in Level::available() {
                // NaN where nothing is written.
                let mut out = vec![f32::NAN; m * n];
                product.run(level, 0..m, 0..n, &mut out);
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
                product.run(level, 0..m, 0..n, &mut whole);
                for cuts in [2, 3, 5] {
                    for part in 0..cuts {
                        let (rows, columns) = (
                            m * part / cuts..m * (part + 1) / cuts,
                            n * part / cuts..n * (part + 1) / cuts,
                        );
                        let mut out = vec![0.0; rows.len() * n];
                        product.run(level, rows.clone(), 0..n, &mut out);
                        assert_eq!(
                            out,
                            whole[rows.start * n..rows.end * n],
                            "{m} {n} {k} {level:?}"
                        );
                        let mut out = vec![0.0; m * columns.len()];
                        product.run(level, 0..m, columns.clone(), &mut out);
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
        product.run(level, 0..1, 0..1, &mut out);
        assert_eq!(out, [1.0 + 1e-18]);
        let (a, b) = ([0.1_f64; 90], [0.3_f64; 90]);
        let mut out = [0.0; 81];
        let product = Product::new(matrix(&a, [9, 10], true), matrix(&b, [10, 9], false)).unwrap();
        product.run(level, 0..9, 0..9, &mut out);
        assert!(out.iter().all(|own| (own - 0.3).abs() < 1e-15), "{out:?}");
    }
}

#[test]
fn nothing_to_add_gives_zeros_and_what_does_not_fit_is_refused() {
    let empty: [f32; 0] = [];
    let product =
        Product::new(matrix(&empty, [2, 0], false), matrix(&empty, [0, 3], false)).unwrap();
    let mut out = [f32::NAN; 6];
    product.run(Level::BASELINE, 0..2, 0..3, &mut out);
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
