//! The gradient of a loss through a broadcast: what was repeated is summed back.
//!
//! `cargo run --release --example broadcast_gradient`

#![allow(clippy::print_stdout, reason = "an example")]

use ndarray::{Array1, Array2};
use simulcast::{ops, sum_to_like, zip};

/// loss = sum((x * w + b)^2), with w and b one for each column.
fn loss(x: &Array2<f64>, w: &Array1<f64>, b: &Array1<f64>) -> f64 {
    zip((x, w, b)).fold(0.0, |sum, x, w, b| sum + (x * w + b).powi(2))
}

/// Runs the example.
pub fn main() {
    let x = Array2::from_shape_fn((5, 3), |(i, j)| (i + 2 * j) as f64 / 7.0);
    let (mut w, b) =
        (Array1::from_vec(vec![0.5, -1.0, 2.0]), Array1::from_vec(vec![0.1, 0.2, 0.3]));

    let grad = zip((&x, &w, &b)).map(|x, w, b| 2.0 * (x * w + b)); // of what is squared
    let (_, grad_w) = ops::vjp::multiply(&x, &w, &grad);
    let grad_b = sum_to_like(&grad, &b); // a sum passes its gradient on

    // The same by a small step.
    let (step, before) = (1e-6, loss(&x, &w, &b));
    w[1] += step;
    let slope = (loss(&x, &w, &b) - before) / step;
    assert!((slope - grad_w[1]).abs() < 1e-4);
    println!("gradient of w {grad_w:.3}, of b {grad_b:.3}");
}
