//! Eleven ordinary tasks, each in plain `ndarray` and with simulcast, which is never longer.
//!
//! `cargo run --release --features program --example beside_ndarray`

#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "an example")]

use ndarray::{Array1, Array2, Array4, array};
use simulcast::half::f16;

/// Each task in plain `ndarray`.
mod plain {
    use ndarray::{Array, Array1, Array2, Array4, Axis, DimMax, Dimension, Ix1, Zip};
    use simulcast::half::f16;

    pub(super) fn standardise_columns(x: &Array2<f64>) -> Array2<f64> {
        let (mean, std) = (x.mean_axis(Axis(0)).unwrap_or_default(), x.std_axis(Axis(0), 0.0));
        (x - &mean) / &std
    }

    pub(super) fn bias_of_channels(images: &Array4<f32>, bias: &Array1<f32>) -> Array4<f32> {
        images + &bias.view().insert_axis(Axis(1)).insert_axis(Axis(2))
    }

    pub(super) fn pairwise_distances(a: &Array2<f64>, b: &Array2<f64>) -> Array2<f64> {
        let differences = &a.view().insert_axis(Axis(1)) - &b.view().insert_axis(Axis(0));
        differences.mapv(|d| d * d).sum_axis(Axis(2)).mapv(f64::sqrt)
    }

    pub(super) fn three_types(
        pixels: &Array2<u8>,
        gain: &Array1<f32>,
        dark: &Array2<f64>,
    ) -> Array2<f64> {
        let shape = (pixels.nrows(), gain.len());
        let (pixels, gain) = (pixels.broadcast(shape), gain.broadcast(shape));
        let pairs = Zip::from(&pixels.unwrap())
            .and(&gain.unwrap())
            .map_collect(|&p, &g| f64::from(p) * f64::from(g));
        pairs - dark * 0.5
    }

    pub(super) fn the_axis_of_an_error(
        x: &Array2<f64>,
        mean: &Array1<f64>,
    ) -> Result<Array2<f64>, Option<usize>> {
        let mean = mean.broadcast(x.raw_dim()).ok_or(Some(1))?;
        Ok(x - &mean)
    }

    pub(super) fn gradient(x: &Array2<f64>, grad: &Array2<f64>, _w: &Array1<f64>) -> Array1<f64> {
        (grad * x).sum_axis(Axis(0))
    }

    pub(super) fn of_any_rank<D>(x: &Array<f64, D>, scale: &Array1<f64>) -> Array<f64, D>
    where
        D: Dimension + DimMax<Ix1, Output = D>,
    {
        x * scale
    }

    pub(super) fn in_place(x: &mut Array2<f64>, row: &Array1<f64>) {
        *x += row;
    }

    pub(super) fn count(x: &Array2<f64>, limit: &Array1<f64>) -> usize {
        Zip::from(x).and_broadcast(limit).fold(0, |count, x, limit| count + usize::from(x > limit))
    }

    pub(super) fn into_a_buffer(a: &Array2<f64>, b: &Array1<f64>, out: &mut Array2<f64>) {
        Zip::from(out).and_broadcast(a).and_broadcast(b).for_each(|out, a, b| *out = a * b);
    }

    pub(super) fn halves(x: &Array2<f16>, most: &Array2<f16>) -> Array2<f16> {
        (x - most).mapv(|d| f16::from_f32(d.to_f32().exp()))
    }
}

/// Each task with simulcast.
mod ours {
    use ndarray::{Array, Array1, Array2, Array4, Axis, Dimension};
    use simulcast::half::f16;
    use simulcast::{Rule, eval, math, sum_to_like, try_zip, zip, zip_onto};

    pub(super) fn standardise_columns(x: &Array2<f64>) -> Array2<f64> {
        let (mean, std) = (x.mean_axis(Axis(0)).unwrap_or_default(), x.std_axis(Axis(0), 0.0));
        zip((x, &mean, &std)).map(|x, mean, std| (x - mean) / std)
    }

    pub(super) fn bias_of_channels(images: &Array4<f32>, bias: &Array1<f32>) -> Array4<f32> {
        zip_onto(Rule::Pdpd { axis: Some(1) }, (images, bias)).map(|x, bias| x + bias)
    }

    pub(super) fn pairwise_distances(a: &Array2<f64>, b: &Array2<f64>) -> Array2<f64> {
        let distances = eval("sqrt(sum((a[:, None] - b) ** 2, axis=-1))", (("a", a), ("b", b)));
        distances.unwrap().try_into().unwrap()
    }

    pub(super) fn three_types(
        pixels: &Array2<u8>,
        gain: &Array1<f32>,
        dark: &Array2<f64>,
    ) -> Array2<f64> {
        let half = 0.5;
        zip((pixels, gain, dark)).map(|&p, &g, dark| f64::from(p) * f64::from(g) - dark * half)
    }

    pub(super) fn the_axis_of_an_error(
        x: &Array2<f64>,
        mean: &Array1<f64>,
    ) -> Result<Array2<f64>, Option<usize>> {
        let both = try_zip((x, mean)).map_err(|error| error.axis())?;
        Ok(both.map(|x, mean| x - mean))
    }

    pub(super) fn gradient(x: &Array2<f64>, grad: &Array2<f64>, w: &Array1<f64>) -> Array1<f64> {
        sum_to_like(&(grad * x), w)
    }

    pub(super) fn of_any_rank<D: Dimension>(
        x: &Array<f64, D>,
        scale: &Array1<f64>,
    ) -> Array<f64, D> {
        zip_onto(Rule::Unidirectional, (x, scale)).map(|x, scale| x * scale)
    }

    pub(super) fn in_place(x: &mut Array2<f64>, row: &Array1<f64>) {
        zip((row,)).update(x, |x, row| *x += row);
    }

    pub(super) fn count(x: &Array2<f64>, limit: &Array1<f64>) -> usize {
        zip((x, limit)).count(|x, limit| x > limit)
    }

    pub(super) fn into_a_buffer(a: &Array2<f64>, b: &Array1<f64>, out: &mut Array2<f64>) {
        zip((a, b)).map_into(out, |a, b| a * b);
    }

    pub(super) fn halves(x: &Array2<f16>, most: &Array2<f16>) -> Array2<f16> {
        zip((x, most)).map(|x, most| math::exp(x - most))
    }
}

/// Whether all elements are nearly equal: sums add in another order, and `exp` rounds otherwise.
fn near(a: &Array2<f64>, b: &Array2<f64>) -> bool {
    a.dim() == b.dim() && a.iter().zip(b).all(|(a, b)| (a - b).abs() <= 1e-12 * b.abs().max(1.0))
}

/// The lines of each function of a module of this file.
fn lengths(module: &str) -> Vec<(String, usize)> {
    let text = include_str!("beside_ndarray.rs");
    let start = format!("\nmod {module} {{\n");
    let body =
        text.split(&start).nth(1).and_then(|rest| rest.split("\n}\n").next()).unwrap_or_default();
    let functions = body.split("    pub(super) fn ").skip(1);
    let length = |function: &str| {
        let name = function.split(['(', '<']).next().unwrap_or_default().to_owned();
        (name, function.trim_end().lines().count())
    };
    functions.map(length).collect()
}

/// Compares what both compute, and how long they are.
pub fn main() {
    let x = Array2::from_shape_fn((40, 3), |(i, j)| ((i * 37 + j * 5) % 101) as f64 / 7.0);
    let row = array![1.5, 2.5, 3.5];
    assert!(near(&ours::standardise_columns(&x), &plain::standardise_columns(&x)));

    let images = Array4::from_shape_fn((2, 3, 4, 5), |(n, c, i, j)| (n + 2 * c + 3 * i + j) as f32);
    let bias = array![1.0, 2.0, 3.0];
    assert_eq!(ours::bias_of_channels(&images, &bias), plain::bias_of_channels(&images, &bias));

    let others = Array2::from_shape_fn((7, 3), |(i, j)| (i * j) as f64);
    assert!(near(&ours::pairwise_distances(&x, &others), &plain::pairwise_distances(&x, &others)));

    let (pixels, gain, dark) =
        (array![[1_u8], [200]], array![0.5_f32, 2.0], array![[1.0, 2.0], [3.0, 4.0]]);
    assert!(near(
        &ours::three_types(&pixels, &gain, &dark),
        &plain::three_types(&pixels, &gain, &dark)
    ));

    let wrong = Array1::zeros(2);
    assert_eq!(ours::the_axis_of_an_error(&x, &wrong), Err(Some(1)));
    assert_eq!(plain::the_axis_of_an_error(&x, &wrong), Err(Some(1)));
    assert_eq!(ours::the_axis_of_an_error(&x, &row), plain::the_axis_of_an_error(&x, &row));

    let grad = Array2::from_shape_fn((40, 3), |(i, j)| (i + j) as f64);
    let as_row = |sums: Array1<f64>| sums.insert_axis(ndarray::Axis(0));
    assert!(near(
        &as_row(ours::gradient(&x, &grad, &row)),
        &as_row(plain::gradient(&x, &grad, &row))
    ));
    assert_eq!(ours::of_any_rank(&x, &row), plain::of_any_rank(&x, &row));

    let (mut own, mut other) = (x.clone(), x.clone());
    ours::in_place(&mut own, &row);
    plain::in_place(&mut other, &row);
    assert_eq!(own, other);
    assert_eq!(ours::count(&x, &row), plain::count(&x, &row));
    ours::into_a_buffer(&x, &row, &mut own);
    plain::into_a_buffer(&x, &row, &mut other);
    assert_eq!(own, other);

    let halves = array![[0.5, 1.5], [2.5, -3.0]].mapv(f16::from_f32);
    let most = array![[1.5], [2.5]].mapv(f16::from_f32);
    let (own, other) = (ours::halves(&halves, &most), plain::halves(&halves, &most));
    assert!(own.iter().zip(&other).all(|(a, b)| a.to_bits().abs_diff(b.to_bits()) <= 1));

    for ((name, ours), (_, plain)) in lengths("ours").into_iter().zip(lengths("plain")) {
        println!("{name:30} {ours} lines, plain ndarray {plain}");
        assert!(ours <= plain, "{name}");
    }
    assert_eq!(lengths("ours").len(), 11);
}
