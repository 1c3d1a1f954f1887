//! Columns brought to mean 0 and deviation 1: sums down, zips back.
//!
//! `cargo run --release --example standardise_columns`

#![allow(clippy::print_stdout, reason = "an example")]

use ndarray::Array2;
use simulcast::{sum_to_shape, zip};

/// Runs the example.
pub fn main() {
    let (rows, columns) = (1000, 4);
    let data = Array2::from_shape_fn((rows, columns), |(i, j)| {
        ((i * 37 + j) % 101) as f64 * (j + 1) as f64
    });
    let mean = sum_to_shape(&data, columns) / rows as f64;
    let squares = zip((&data, &mean)).map(|x, mean| (x - mean) * (x - mean));
    let deviation = (sum_to_shape(&squares, columns) / rows as f64).sqrt();
    let standard = zip((&data, &mean, &deviation)).map(|x, mean, deviation| (x - mean) / deviation);

    let check = sum_to_shape(&standard, columns) / rows as f64;
    assert!(check.iter().all(|mean| mean.abs() < 1e-12));
    println!("means {mean:.2}, deviations {deviation:.2}");
}
