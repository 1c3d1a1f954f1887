//! Distances between all pairs of points, without the (n, m, d) array of differences.
//!
//! `cargo run --release --example pairwise_distances`

#![allow(clippy::print_stdout, reason = "an example")]

use ndarray::{Array1, Array2, ArrayView1, Axis};
use simulcast::zip;

/// Rows are elements like any others: a column of rows meets a row of rows.
fn distances(a: &Array2<f64>, b: &Array2<f64>) -> Array2<f64> {
    let rows: Array1<ArrayView1<'_, f64>> = a.rows().into_iter().collect();
    let others: Array1<ArrayView1<'_, f64>> = b.rows().into_iter().collect();
    zip((&rows.insert_axis(Axis(1)), &others))
        .par_map(|a, b| zip((a, b)).fold(0.0, |sum, a, b| sum + (a - b) * (a - b)).sqrt())
}

/// Runs the example.
pub fn main() {
    let points = Array2::from_shape_fn((500, 3), |(i, k)| (i * (k + 1) % 17) as f64);
    let all = distances(&points, &points);
    assert!(all.diag().iter().all(|&d| d == 0.0));
    assert_eq!(all, all.t());
    let mean = all.sum() / all.len() as f64;
    println!("{} pairs, mean distance {mean:.3}", all.len());
}
