//! A bias for each channel, for images stored channels-first and channels-last.
//!
//! `cargo run --release --example channel_bias`

#![allow(clippy::print_stdout, reason = "an example")]

use ndarray::{Array4, Axis, array};
use simulcast::{Rule, zip, zip_onto};

/// Runs the example.
pub fn main() {
    let bias = array![10.0, 20.0, 30.0];

    // Channels last: the rule that everybody knows aligns the last axes.
    let last = Array4::<f64>::zeros((2, 4, 4, 3));
    let sum = zip((&last, &bias)).map(|x, b| x + b);
    assert_eq!(sum[[1, 2, 3, 1]], 20.0);

    // Channels first: either give the bias two axes of size 1 …
    let first = Array4::<f64>::zeros((2, 3, 4, 4));
    let column = bias.view().insert_axis(Axis(1)).insert_axis(Axis(2));
    let sum = zip((&first, column)).map(|x, b| x + b);
    assert_eq!(sum[[1, 1, 2, 3]], 20.0);

    // … or say on which axis it belongs.
    let same = zip_onto(Rule::Pdpd { axis: Some(1) }, (&first, &bias)).map(|x, b| x + b);
    assert_eq!(same, sum);

    // Without that, the error tells what is wrong and what would work.
    if let Err(error) = simulcast::try_zip((&first, &bias)) {
        println!("{error}");
    }
}
