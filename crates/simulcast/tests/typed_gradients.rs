//! Typed gradients against central differences of the typed operations, and single values as operands.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use ndarray::{Array1, Array2, Axis, array, s};
use simulcast::half::f16;
use simulcast::ops;
use simulcast::ops::vjp;

const STEP: f64 = 1e-6;

fn near(found: f64, expected: f64) -> bool {
    (found - expected).abs() <= 1e-6 * expected.abs().max(1.0)
}

macro_rules! unary {
    ($($name:ident)*) => { $({
        let x = array![0.3, 0.45, 0.7];
        let x = if stringify!($name) == "arccosh" { x + 1.0 } else { x };
        let weights = array![1.0, -2.0, 0.5];
        let found = vjp::$name(&x, &weights);
        let (above, below) = (ops::$name(&(&x + STEP)), ops::$name(&(&x - STEP)));
        for at in 0..3 {
            let expected = weights[at] * (above[at] - below[at]) / (2.0 * STEP);
            assert!(near(found[at], expected), "{}: {} and {expected}", stringify!($name), found[at]);
        }
    })* };
}

macro_rules! binary {
    ($($name:ident)*) => { $({
        let (a, b) = (array![[0.3], [0.8]], array![0.5, 1.25, 0.6]);
        let weights = Array2::from_shape_fn((2, 3), |(i, j)| (i * 3 + j) as f64 - 1.5);
        let (of_a, of_b) = vjp::$name(&a, &b, &weights);
        let sum = |a: &Array2<f64>, b: &Array1<f64>| (ops::$name(a, b) * &weights).sum();
        for (at, found) in of_a.iter().enumerate() {
            let (mut above, mut below) = (a.clone(), a.clone());
            above[[at, 0]] += STEP;
            below[[at, 0]] -= STEP;
            let expected = (sum(&above, &b) - sum(&below, &b)) / (2.0 * STEP);
            assert!(near(*found, expected), "{} by a: {found} and {expected}", stringify!($name));
        }
        for (at, found) in of_b.iter().enumerate() {
            let (mut above, mut below) = (b.clone(), b.clone());
            above[at] += STEP;
            below[at] -= STEP;
            let expected = (sum(&a, &above) - sum(&a, &below)) / (2.0 * STEP);
            assert!(near(*found, expected), "{} by b: {found} and {expected}", stringify!($name));
        }
    })* };
}

// [E_BROADCAST_ANY_FUNC_3110]
#[test]
fn gradients_are_central_differences() {
    unary! {
        negative absolute sqrt cbrt square reciprocal exp exp2 expm1 log log2 log10 log1p sin cos tan arcsin arccos
        arctan sinh cosh tanh arcsinh arccosh arctanh erf sigmoid softsign relu floor ceil round trunc
    }
    binary! { add subtract multiply divide power arctan2 hypot maximum minimum }
}

#[test]
fn gradients_have_the_types_and_shapes_of_their_operands() {
    let (x, w) = (Array2::from_elem((4, 3), f16::from_f32(0.5)), Array1::from_elem(3, f16::ONE));
    let ones = Array2::from_elem((4, 3), f16::ONE);
    let (of_x, of_w): (Array2<f16>, Array1<f16>) = vjp::multiply(&x, &w, &ones);
    assert_eq!((of_x[[3, 2]], of_w[2]), (f16::ONE, f16::from_f32(2.0)));
    let (of_x, of_number) = vjp::multiply(&x, f16::ONE, &ones);
    assert_eq!((of_x.dim(), of_number.into_scalar()), ((4, 3), f16::from_f32(6.0)));
    let error = vjp::try_multiply(&x, &w, ones.slice(s![.., ..1])).unwrap_err();
    assert_eq!(error.clash().map(|clash| clash.sizes), Some([3, 1]), "{error}");
}

#[test]
fn single_values_are_operands_of_the_type_that_arrays_have() {
    let x = array![[1_f32, 2.0], [3.0, 4.0]];
    assert_eq!(ops::add(&x, 1.0), &x + 1.0);
    assert_eq!(ops::subtract(1.0, &x), 1.0 - &x);
    assert_eq!(ops::greater(&x, 2.0), array![[false, false], [true, true]]);
    assert_eq!(ops::maximum(x.row(0), 1.5), array![1.5, 2.0]);
    assert_eq!(ops::where_(&ops::greater(&x, 2.0), &x, 0.0), array![[0.0, 0.0], [3.0, 4.0]]);
    let bytes = array![1_u8, 200];
    assert_eq!(ops::left_shift(&bytes, 1), array![2, 144]);
    assert_eq!(ops::add(&x.view().insert_axis(Axis(0)), &x.row(0)).dim(), (1, 2, 2));
}
