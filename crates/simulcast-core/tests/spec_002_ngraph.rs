//! Every statement of nGraph's Broadcast: shape, `broadcast_axes`, output, backprop.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use simulcast_core::{Rule, resolve};

fn broadcast(
    arg: &[usize],
    shape: &[usize],
    broadcast_axes: &[usize],
) -> Result<Vec<usize>, &'static str> {
    resolve(Rule::Axes { shape, broadcast_axes }, &[arg])
        .map(|plan| plan.shape().to_vec())
        .map_err(|error| error.code())
}

/// The result as rows of letters, from the document's `arg = [a, b, c]`.
fn rows(shape: [usize; 2], broadcast_axes: &[usize]) -> Vec<String> {
    let plan = resolve(Rule::Axes { shape: &shape, broadcast_axes }, &[[3]]).unwrap();
    let letter = |i, j| ["a", "b", "c"][plan.offset(0, &[i, j]).unwrap()];
    (0..shape[0]).map(|i| (0..shape[1]).map(|j| letter(i, j)).collect()).collect()
}

// [E_BROADCAST_ANY_FUNC_1710]
#[test]
fn the_two_matrices_of_the_document() {
    assert_eq!(rows([2, 3], &[0]), ["abc", "abc"]);
    assert_eq!(rows([3, 2], &[1]), ["aa", "bb", "cc"]);
}

// [E_BROADCAST_ANY_FUNC_1710]
#[test]
fn p_removes_the_broadcast_axes_from_a_coordinate() {
    let shape = [2, 3, 4, 5, 6];
    let plan =
        resolve(Rule::Axes { shape: &shape, broadcast_axes: &[1, 3] }, &[[2, 4, 6]]).unwrap();
    assert_eq!(plan.source_index(0, &[1, 2, 3, 4, 5]).unwrap(), [1, 3, 5]);
}

// [E_BROADCAST_ANY_FUNC_1720]
#[test]
fn backprop_sums_over_broadcast_axes() {
    let cases: [(&[usize], &[usize], &[usize]); 4] = [
        (&[3], &[2, 3], &[0]),
        (&[3], &[3, 2], &[1]),
        (&[], &[2, 3], &[0, 1]),
        (&[2, 4], &[1, 2, 3, 4, 2], &[0, 2, 4]),
    ];
    for (arg, shape, broadcast_axes) in cases {
        let plan = resolve(Rule::Axes { shape, broadcast_axes }, &[arg]).unwrap();
        assert_eq!(plan.sum_axes(0).unwrap(), broadcast_axes);
    }
}

// [E_BROADCAST_ANY_FUNC_1700]: what nGraph's own backends answered.
#[test]
fn the_shape_of_arg_is_shape_without_the_axes() {
    assert_eq!(broadcast(&[2, 4], &[1, 2, 3, 4, 5], &[0, 2, 4]), Ok(vec![1, 2, 3, 4, 5]));
    assert_eq!(broadcast(&[3], &[3], &[]), Ok(vec![3]));
    assert_eq!(broadcast(&[], &[], &[]), Ok(vec![]));
    assert_eq!(broadcast(&[3], &[2, 3], &[1]), Err("E1"));
    assert_eq!(broadcast(&[3], &[2, 3], &[]), Err("E2"));
    assert_eq!(broadcast(&[3], &[2, 3], &[0, 1]), Err("E2"));
    assert_eq!(broadcast(&[3], &[2, 3], &[2]), Err("E3"));
    assert_eq!(broadcast(&[1, 3], &[2, 3], &[0]), Err("E2"));
    assert_eq!(broadcast(&[1, 3], &[2, 3], &[]), Err("E1"), "a 1 is never stretched");
    assert_eq!(broadcast(&[2], &[2, 3], &[1, 1]), Ok(vec![2, 3]), "it is a set");
    assert_eq!(broadcast(&[4], &[2, 3, 4], &[1, 0]), Ok(vec![2, 3, 4]), "it is a set");
    assert_eq!(broadcast(&[3], &[0, 3], &[0]), Ok(vec![0, 3]));
    assert_eq!(broadcast(&[0], &[2, 0], &[0]), Ok(vec![2, 0]));
    assert_eq!(broadcast(&[2], &[2, 0], &[1]), Ok(vec![2, 0]));
}
