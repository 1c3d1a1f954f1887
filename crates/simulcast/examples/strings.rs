//! Strings and other types broadcast like numbers.
//!
//! `cargo run --release --example strings`

#![allow(clippy::print_stdout, reason = "an example")]

use ndarray::{Axis, array};
use simulcast::{broadcast_to, copy_to, zip};

/// Runs the example.
pub fn main() {
    let first = array!["red", "green"];
    let second = array!["apple", "pear", "plum"];
    let pairs = zip((first.view().insert_axis(Axis(1)), &second)).map(|a, b| format!("{a} {b}"));
    assert_eq!(pairs[[1, 2]], "green plum");
    println!("{pairs}");

    // A view repeats without a copy, a copy is an array of its own.
    let words = array!["one".to_owned(), "two".to_owned()];
    let shown = broadcast_to(&words, (3, 2));
    assert!(std::ptr::eq(&raw const shown[[0, 1]], &raw const shown[[2, 1]]));
    let mut own = copy_to(&words, (3, 2));
    own[[0, 0]].push_str(" more");
    assert_eq!(own.column(0), array!["one more", "one", "one"]);
}
