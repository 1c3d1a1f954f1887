//! Any number of threads gives the same bits, whatever processors the machine has.

use std::sync::Mutex;

use ndarray::{Array1, Array2, ArrayView2, s};
use simulcast::{Level, copy_to, par_copy_into, zip};
use simulcast_threads::set_threads;

/// How many threads there are belongs to the process: one test at a time sets it.
static SETS_THREADS: Mutex<()> = Mutex::new(());

const SHAPE: (usize, usize) = if cfg!(miri) { (7, 13) } else { (1031, 1021) };

// [E_BROADCAST_ANY_FUNC_3050]
#[test]
fn zips_have_the_same_bits_on_any_number_of_threads() {
    let _own = SETS_THREADS.lock();
    set_threads(8);
    let (rows, columns) = SHAPE;
    let number = |i: usize, j: usize| (i * 7919 + j * 104_729) as f32 / 997.0;
    let a = Array2::from_shape_fn(SHAPE, |(i, j)| number(i, j));
    let turned = Array2::from_shape_fn((columns, rows), |(j, i)| number(j, i));
    let wide = Array2::from_shape_fn((rows, 2 * columns), |(i, j)| number(j, i));
    let (row, column) = (Array1::from_iter((0..columns).map(|j| j as f32)), a.slice(s![.., ..1]));
    let others: [(&str, ArrayView2<'_, f32>); 5] = [
        ("contiguous", a.view()),
        ("transposed", turned.t()),
        ("strided", wide.slice(s![.., ..;2])),
        ("backward", a.slice(s![..;-1, ..;-1])),
        ("a repeated column", column),
    ];
    for level in Level::available() {
        for (name, other) in &others {
            let three = zip((&a, other, &row)).level(level);
            let f = |a: &f32, b: &f32, c: &f32| a * b - c / 3.0;
            let once = three.map(f);
            let one = f(&a[[3, 5]], &other[[3, 5.min(other.ncols() - 1)]], &row[5]);
            assert_eq!(once[[3, 5]].to_bits(), one.to_bits(), "{name}");
            for threads in [1, 2, 3, 8] {
                let again = zip((&a, other, &row)).level(level).threads(threads).par_map(f);
                let equal = once.iter().zip(&again).all(|(a, b)| a.to_bits() == b.to_bits());
                assert!(equal, "{name} at {} on {threads}", level.name());
            }
        }
    }
}

#[test]
fn copies_are_the_same_on_any_number_of_threads() {
    let _own = SETS_THREADS.lock();
    let words = Array1::from_iter((0..SHAPE.1).map(|j| j.to_string()));
    let numbers = words.mapv(|word| word.len());
    let (copied, cloned) = (copy_to(&numbers, SHAPE), copy_to(&words, SHAPE));
    for threads in [1, 2, 3, 8] {
        set_threads(threads);
        let (mut out, mut texts) = (Array2::zeros(SHAPE), Array2::default(SHAPE));
        par_copy_into(&numbers, &mut out);
        par_copy_into(&words, &mut texts);
        assert!(out == copied && texts == cloned, "{threads}");
    }
}
