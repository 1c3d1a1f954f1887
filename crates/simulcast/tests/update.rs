//! Updates in place: against a plain loop over indices, for every way in which operands can lie.

use ndarray::{Array2, Array3, Axis, array, s};
use simulcast::zip;

fn numbers(shape: (usize, usize)) -> Array2<f64> {
    Array2::from_shape_fn(shape, |(i, j)| (i * 31 + j * 7 % 13) as f64 / 8.0)
}

#[test]
fn updates_are_those_of_a_loop_over_indices() {
    for (rows, columns) in [(1, 1), (3, 5), (40, 300), (300, 200), (0, 4), (700, 3)] {
        let (row, column) = (numbers((1, columns)).row(0).to_owned(), numbers((rows, 1)));
        let transposed = numbers((columns, rows));
        for parallel in [false, true] {
            let mut x = numbers((rows, columns));
            let expected = Array2::from_shape_fn((rows, columns), |(i, j)| {
                x[[i, j]] * column[[i, 0]] - row[j] + transposed[[j, i]]
            });
            let operands = zip((&row, &column, transposed.t()));
            if parallel {
                operands.par_update(&mut x, |x, row, column, t| *x = *x * column - row + t);
            } else {
                operands.update(&mut x, |x, row, column, t| *x = *x * column - row + t);
            }
            assert_eq!(x, expected);
        }
    }
}

#[test]
fn views_with_gaps_and_elements_that_own_memory_are_updated_where_they_are() {
    let mut x = Array3::from_shape_fn((4, 6, 5), |(i, j, k)| vec![i, j, k]);
    let untouched = x.clone();
    zip((&array![7, 8, 9],)).update(&mut x.slice_mut(s![1..3, ..;-2, 2]), |x, n| x.push(*n));
    for ((i, j, k), found) in x.indexed_iter() {
        let mut expected = untouched[[i, j, k]].clone();
        if (1..3).contains(&i) && j % 2 == 1 && k == 2 {
            expected.push([9, 8, 7][j / 2]);
        }
        assert_eq!(*found, expected, "{i} {j} {k}");
    }
}

#[test]
fn large_arrays_are_updated_with_what_they_held() {
    let mut x = Array2::from_shape_fn((1500, 1500), |(i, j)| (i + j) as u32);
    let row = ndarray::Array1::from_shape_fn(1500, |j| j as u32);
    zip((&row,)).par_update(&mut x, |x, row| *x += row);
    assert!(x.indexed_iter().all(|((i, j), &x)| x as usize == i + 2 * j));
}

#[test]
fn an_array_that_would_have_to_stretch_is_an_error_that_names_it() {
    let mut x = Array2::<i32>::zeros((1, 3));
    let rows = Array2::<i32>::zeros((2, 3));
    let error = zip((&rows,)).try_update(&mut x, |x, n| *x += n).unwrap_err();
    assert!(error.to_string().contains("out has 1, result has 2"), "{error}");
    assert!(
        zip((&rows,)).try_update(&mut x.view_mut().insert_axis(Axis(0)), |x, n| *x += n).is_err()
    );
}
