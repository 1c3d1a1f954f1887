//! Sums back are the adjoint of the broadcast, the same bits however they are run.

mod common;

use common::{Stored, indices, size, stored};
use half::{bf16, f16};
use ndarray::{Array1, Array2, Array3, ArrayD, ArrayViewD, Axis, array, s};
use proptest::prelude::*;
use simulcast::{
    Addend, Complex, NamedAxes, Plan, Rule, par_sum_to, par_sum_to_shape, resolve, sum_to,
    sum_to_shape, try_sum_to, try_sum_to_shape,
};
use simulcast_threads::set_threads;

/// Element by element: every place of the result that shows the operand's element.
fn naive(grad: &ArrayViewD<'_, i64>, plan: &Plan, operand: usize) -> ArrayD<i64> {
    let mut sums = ArrayD::zeros(plan.operand_shape(operand).expect("an operand"));
    for index in indices(plan.shape()) {
        sums[&plan.source_index(operand, &index).expect("an index")[..]] += grad[&index[..]];
    }
    sums
}

proptest! {
    // [E_BROADCAST_ANY_FUNC_3040] [E_BROADCAST_ANY_FUNC_0110]
    #[test]
    fn sums_are_those_of_the_plan(
        (grad, shape) in prop::collection::vec(size(), 0..5)
            .prop_filter("small", |shape| shape.iter().product::<usize>() <= 20_000)
            .prop_flat_map(|shape| {
                let own: Vec<usize> = shape.clone();
                (stored(shape, |n| n as i64 * 7 % 1009), Just(own), 0_usize..3, any::<u8>())
            })
            .prop_map(|(grad, shape, drop, ones)| {
                let axes = shape.iter().enumerate().skip(drop.min(shape.len()));
                let own = axes.map(|(axis, &size)| if ones >> axis & 1 == 1 { 1 } else { size });
                (grad, own.collect::<Vec<usize>>())
            }),
    ) {
        let view = Stored::view(&grad);
        // A 1 that stands for a 0 is a legal operand: its gradient is 0.
        let plan = resolve(Rule::To { target: view.shape() }, &[&shape]).unwrap();
        let expected = naive(&view, &plan, 0);
        prop_assert_eq!(&sum_to(&view, &plan, 0), &expected);
        prop_assert_eq!(&sum_to_shape(&view, &shape[..]), &expected);
        prop_assert_eq!(&par_sum_to_shape(&view, &shape[..]), &expected);
        let halves = view.mapv(|n| f16::from_f32((n % 5) as f32));
        let wide = view.mapv(|n| n % 5);
        let sums = naive(&wide.view(), &plan, 0).mapv(|n| f16::from_f32(n as f32));
        prop_assert_eq!(&sum_to_shape(&halves, &shape[..]), &sums);
    }
}

// [E_BROADCAST_ANY_FUNC_3040]
#[test]
fn every_rule_has_an_adjoint() {
    let grad =
        Array3::from_shape_fn((2, 3, 4), |(i, j, k)| (100 * i + 10 * j + k) as i64).into_dyn();
    let named = NamedAxes::new(&[&["a", "b", "c"][..], &["c", "a"]]).unwrap();
    let two = |rule, b: &[usize]| resolve(rule, &[&[2, 3, 4], b]).unwrap();
    let plans = [
        two(Rule::Numpy, &[3, 1]),
        two(Rule::Exact, &[2, 3, 4]),
        two(Rule::Unidirectional, &[1, 4]),
        two(Rule::Pdpd { axis: Some(1) }, &[3]),
        two(Rule::Legacy { axis: Some(0) }, &[2, 3]),
        two(Rule::Paddle { axis: Some(1) }, &[3, 1]),
        two(named.as_rule(), &[4, 2]),
        resolve(Rule::Axes { shape: &[2, 3, 4], broadcast_axes: &[1] }, &[&[2, 4]]).unwrap(),
        resolve(Rule::Mapping { shape: &[2, 3, 4], axes_mapping: &[1] }, &[&[3]]).unwrap(),
        resolve(Rule::Bidirectional { target: &[2, 1, 4] }, &[&[3, 1]]).unwrap(),
        resolve(Rule::To { target: &[2, 3, 4] }, &[&[1, 1]]).unwrap(),
    ];
    for plan in plans {
        for operand in 0..plan.operand_count() {
            let expected = naive(&grad.view(), &plan, operand);
            assert_eq!(sum_to(&grad, &plan, operand), expected, "{}", plan.rule());
            assert_eq!(par_sum_to(&grad, &plan, operand), expected, "{}", plan.rule());
        }
    }
}

// [E_BROADCAST_ANY_FUNC_3040]
#[test]
fn large_sums_are_accurate_and_the_same_bits_on_any_number_of_threads() {
    let grad = Array3::from_shape_fn((64, 131, 257), |(i, j, k)| {
        ((i * 7919 + j * 104_729 + k * 1_299_709) % 1_000_003) as f32 / 997.0
    });
    let exact = grad.mapv(f64::from);
    for shape in
        [[1, 1, 257], [64, 1, 1], [1, 131, 1], [1, 1, 1], [64, 1, 257], [64, 131, 1], [1, 131, 257]]
    {
        let sums = sum_to_shape(&grad, shape);
        for threads in [1, 2, 3, 8] {
            // No other test of this file sets it.
            set_threads(threads);
            let same = par_sum_to_shape(&grad, shape);
            let equal = sums.iter().zip(&same).all(|(a, b)| a.to_bits() == b.to_bits());
            assert!(equal, "{shape:?} on {threads}");
        }
        let exact = sum_to_shape(&exact, shape);
        let terms = grad.len() as f64 / sums.len() as f64;
        // Pairwise: half a unit in the last place for each level of the tree, 32 more for leaves.
        let bound = f64::from(f32::EPSILON) / 2.0 * (terms.log2() + 64.0);
        for (sum, exact) in sums.iter().zip(&exact) {
            assert!(
                (f64::from(*sum) - exact).abs() <= bound * exact.abs(),
                "{shape:?}: {sum} {exact}"
            );
        }
        // The transpose holds the same numbers in another order.
        let turned = sum_to_shape(grad.view().reversed_axes(), [shape[2], shape[1], shape[0]]);
        for (sum, other) in sums.iter().zip(turned.view().reversed_axes()) {
            assert!((sum - other).abs() <= 2.0 * bound as f32 * sum.abs(), "{shape:?}");
        }
    }
}

// [E_BROADCAST_ANY_FUNC_3040]
#[test]
fn sums_of_any_length_and_width_are_those_of_ndarray() {
    // Rows that are short, long, or left over; runs of many blocks; more neighbours than go together.
    for shape in [
        [1, 4003, 3],
        [7, 515, 24],
        [2, 131, 257],
        [3, 70, 4100],
        [2, 3, 70_001],
        [5, 130, 37],
        [40, 64, 100],
    ] {
        let number = |(i, j, k)| {
            let place = [i, j, k].map(|index: usize| index as u64);
            ((place[0] * 7919 + place[1] * 104_729 + place[2] * 1_299_709) % 1009) as i32
        };
        let whole = Array3::from_shape_fn(shape, number);
        // Every second element, in rows that do not follow each other.
        let holes = Array3::from_shape_fn([shape[0], shape[1], 2 * shape[2] + 1], number);
        let holes = holes.slice(s![.., .., 1..;2]);
        for (grad, kept) in
            [whole.view(), holes].iter().flat_map(|grad| (0..8).map(move |k| (grad, k)))
        {
            let (mut expected, mut to) = (grad.to_owned(), shape);
            for axis in (0..3).filter(|axis| kept >> axis & 1 == 0) {
                expected = expected.sum_axis(Axis(axis)).insert_axis(Axis(axis));
                to[axis] = 1;
            }
            assert_eq!(sum_to_shape(grad, to), expected, "{shape:?} to {to:?}");
            assert_eq!(par_sum_to_shape(grad, to), expected, "{shape:?} to {to:?}");
        }
    }
}

// [E_BROADCAST_ANY_FUNC_3040]
#[test]
fn halves_are_summed_in_single_precision() {
    let ones = Array2::from_elem((5000, 3), f16::ONE);
    assert_eq!(sum_to_shape(&ones, 3), Array1::from_elem(3, f16::from_f32(5000.0)));
    assert_eq!(sum_to_shape(&ones, (5000, 1)).row(7), array![f16::from_f32(3.0)]);
    let ones = Array2::from_elem((4096, 2), bf16::ONE);
    assert_eq!(sum_to_shape(&ones, 2), Array1::from_elem(2, bf16::from_f32(4096.0)));
}

// [E_BROADCAST_ANY_FUNC_3040]
#[test]
fn complex_numbers_are_summed_part_by_part() {
    let number = |(i, j)| {
        let n = (i * 7 + j) as f64;
        Complex::new(n * 0.5 - 70.0, 3.0 - n)
    };
    let grad = Array2::from_shape_fn((40, 7), number);
    let whole = sum_to_shape(&grad, 7);
    let (real, imaginary) = (grad.mapv(|own| own.re), grad.mapv(|own| own.im));
    let (real, imaginary) = (sum_to_shape(&real, 7), sum_to_shape(&imaginary, 7));
    let joined = real.iter().zip(&imaginary).map(|(&re, &im)| Complex::new(re, im));
    assert_eq!(whole, Array1::from_iter(joined));
}

// [E_BROADCAST_ANY_FUNC_3040]
#[test]
fn nothing_sums_to_zero() {
    assert_eq!(sum_to_shape(&Array2::<f32>::zeros((0, 3)), 3), array![0.0, 0.0, 0.0]);
    assert_eq!(sum_to_shape(&Array2::<f32>::zeros((0, 3)), (0, 1)), Array2::zeros((0, 1)));
    assert_eq!(sum_to_shape(&Array2::<u8>::from_elem((300, 2), 1), 1), array![88]); // wraps
}

// [E_BROADCAST_ANY_FUNC_3040]
#[test]
fn exact_types_are_summed_exactly() {
    #[derive(Clone, Copy, Debug, PartialEq)]
    struct Ratio(i128, i128);
    impl Addend for Ratio {
        type Sum = Self;
        const ZERO: Self = Ratio(0, 1);
        fn widen(self) -> Self {
            self
        }
        fn plus(a: Self, b: Self) -> Self {
            let (n, d) = (a.0 * b.1 + b.0 * a.1, a.1 * b.1);
            let (mut x, mut y) = (n.abs(), d);
            while y != 0 {
                (x, y) = (y, x % y);
            }
            Ratio(n / x, d / x)
        }
        fn narrow(sum: Self) -> Self {
            sum
        }
    }
    let grad =
        Array2::from_shape_fn((3, 40), |(i, j)| Ratio(1, [2, 3, 5][i] * (j as i128 % 4 + 1)));
    let sums = sum_to_shape(&grad, (3, 1));
    // 10 * (1 + 1/2 + 1/3 + 1/4) = 125/6.
    assert_eq!(sums, array![[Ratio(125, 12)], [Ratio(125, 18)], [Ratio(25, 6)]]);
}

// [E_BROADCAST_ANY_ERR_3030]
#[test]
fn gradients_of_another_shape_are_refused() {
    let plan = resolve(Rule::Numpy, &[&[2, 3][..], &[3]]).unwrap();
    let grad = Array2::<f32>::zeros((2, 3));
    let error = try_sum_to(grad.t(), &plan, 1).unwrap_err();
    assert!(
        error.to_string().starts_with("E1: result (2, 3) and gradient (3, 2) do not broadcast")
    );
    assert_eq!(try_sum_to(&grad, &plan, 2).unwrap_err().code(), "E12");
    assert_eq!(try_sum_to_shape(&grad, 2).unwrap_err().code(), "E1");
    assert_eq!(try_sum_to_shape(&grad, (1, 1, 1)).unwrap_err().code(), "E2");
    let broadcast = grad.broadcast((5, 2, 3)).unwrap();
    assert_eq!(
        try_sum_to_shape(broadcast.index_axis(Axis(0), 1), (1, 3)).unwrap(),
        Array2::<f32>::zeros((1, 3))
    );
}

// [E_BROADCAST_ANY_FUNC_3040]
#[test]
fn the_sign_of_zero_is_kept_and_the_sum_of_nothing_is_positive() {
    let minus = Array2::from_elem((3, 40), -0.0_f32);
    for sums in [sum_to_shape(&minus, 40), sum_to_shape(&minus.t(), 3)] {
        assert!(sums.iter().all(|sum| sum.to_bits() == (-0.0_f32).to_bits()));
    }
    assert!(sum_to_shape(&minus, (3, 40)).iter().all(|sum| sum.is_sign_negative()));
    let nothing = Array2::<f64>::zeros((0, 2));
    assert!(sum_to_shape(&nothing, 2).iter().all(|sum| sum.to_bits() == 0));
}
