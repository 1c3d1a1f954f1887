//! Zips compute what an index-by-index loop computes, at every level, serial and parallel.

mod common;

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicIsize, AtomicUsize, Ordering};

use common::{Stored, shapes, shown, stored};
use ndarray::{
    Array1, Array2, Array3, Array4, ArrayBase, ArrayD, ArrayViewMut2, ArrayViewMut3, Axis,
    Dimension as _, Ix1, Ix2, ShapeBuilder as _, Zip as NdZip, array, aview0, s,
};
use proptest::prelude::*;
use simulcast::{Level, NamedAxes, Rule, try_zip, try_zip_by, zip, zip_by};

fn operands<T: Clone + std::fmt::Debug + 'static>(
    count: usize,
    make: fn(usize) -> T,
) -> impl Strategy<Value = Vec<Stored<T>>> {
    shapes(count).prop_flat_map(move |shapes| {
        shapes.into_iter().map(|shape| stored(shape, make)).collect::<Vec<_>>()
    })
}

/// Two operands and an output of the caller's, stored somehow.
fn with_output<T: Clone + std::fmt::Debug + 'static>(
    make: fn(usize) -> T,
) -> impl Strategy<Value = (Vec<Stored<T>>, Stored<T>)> {
    shapes(2).prop_flat_map(move |shapes| {
        let result = simulcast::broadcast_shapes(&shapes).expect("shapes that broadcast");
        let operands = shapes.into_iter().map(|shape| stored(shape, make)).collect::<Vec<_>>();
        (operands, stored(result, make))
    })
}

macro_rules! agrees {
    ($($name:ident: $type:ty = $make:expr, $f:expr;)*) => { $(
        proptest! {
            #![proptest_config(ProptestConfig::with_cases(200))]

            // [E_BROADCAST_ANY_FUNC_3030] [E_BROADCAST_ANY_FUNC_3050]
            #[test]
            fn $name((operands, out) in with_output::<$type>($make)) {
                let f = $f;
                let views: Vec<_> = operands.iter().map(Stored::view).collect();
                let full = shown(Rule::Numpy, &views);
                let expected = NdZip::from(&full[0]).and(&full[1]).map_collect(|a, b| f(a, b));
                for level in Level::available() {
                    let pair = zip((&views[0], &views[1])).level(level);
                    prop_assert_eq!(&pair.map(f), &expected, "map at {}", level.name());
                    prop_assert_eq!(&pair.par_map(f), &expected, "par_map at {}", level.name());
                    let mut out = out.clone();
                    let untouched = out.clone();
                    {
                        let order: Vec<usize> = out.axes.iter().map(|axis| axis.0).collect();
                        let mut view = out.memory.view_mut().permuted_axes(&order[..]);
                        for (axis, &(_, step, backwards)) in out.axes.iter().enumerate() {
                            view.slice_axis_inplace(Axis(axis), ndarray::Slice::new(0, None, step as isize));
                            if backwards {
                                view.invert_axis(Axis(axis));
                            }
                        }
                        pair.map_into(&mut view, f);
                    }
                    prop_assert_eq!(&out.view(), &expected, "map_into at {}", level.name());
                    // Gaps of the output keep what they held.
                    let changed = out.memory.iter().zip(&untouched.memory).filter(|(a, b)| a != b).count();
                    prop_assert!(changed <= expected.len());
                }
            }
        }
    )* };
}

agrees! {
    f32_sub: f32 = |n| n as f32 * 0.37 - 3.0, |a: &f32, b: &f32| a - b;
    f64_div: f64 = |n| n as f64 + 0.5, |a: &f64, b: &f64| a / b;
    u8_wrap: u8 = |n| n as u8, |a: &u8, b: &u8| a.wrapping_mul(3).wrapping_sub(*b);
    i64_mul: i64 = |n| n as i64 - 50, |a: &i64, b: &i64| a * 7 - b;
    u16_xor: u16 = |n| n as u16, |a: &u16, b: &u16| a ^ b.rotate_left(3);
    u128_add: u128 = |n| n as u128, |a: &u128, b: &u128| (a << 64) + b;
    strings: String = |n| n.to_string(), |a: &String, b: &String| format!("{a}-{b}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    // [E_BROADCAST_ANY_FUNC_3030]
    #[test]
    fn eight_operands(operands in operands(8, |n| n as u32)) {
        let views: Vec<_> = operands.iter().map(Stored::view).collect();
        let full = shown(Rule::Numpy, &views);
        let [a, b, c, d, e, f, g, h] = &views[..] else { unreachable!() };
        let sum = |n: usize| (1..n).fold(full[0].clone(), |sum, m| sum * 3 + &full[m]);
        let at = |n: usize| simulcast::broadcast_shapes(&views[..n].iter().map(ArrayBase::shape).collect::<Vec<_>>()).unwrap();
        // Fewer operands may have a smaller result: it is compared where it is shown.
        let same = |got: ArrayD<u32>, n: usize| got.shape() == at(n) && got.broadcast(full[0].shape()).unwrap() == sum(n);
        for level in Level::available() {
            prop_assert!(same(zip((a,)).level(level).map(|a| *a), 1));
            prop_assert!(same(zip((a, b, c)).level(level).map(|a, b, c| (a * 3 + b) * 3 + c), 3));
            prop_assert!(same(zip((a, b, c, d)).level(level).map(|a, b, c, d| ((a * 3 + b) * 3 + c) * 3 + d), 4));
            prop_assert!(same(zip((a, b, c, d, e)).level(level).map(|a, b, c, d, e| (((a * 3 + b) * 3 + c) * 3 + d) * 3 + e), 5));
            let all = zip((a, b, c, d, e, f, g, h)).level(level).par_map(|a, b, c, d, e, f, g, h| {
                ((((((a * 3 + b) * 3 + c) * 3 + d) * 3 + e) * 3 + f) * 3 + g) * 3 + h
            });
            prop_assert!(same(all, 8));
        }
    }

    // [E_BROADCAST_ANY_FUNC_3030]
    #[test]
    fn folds_go_in_row_major_order(operands in operands(2, |n| n as u16)) {
        let views: Vec<_> = operands.iter().map(Stored::view).collect();
        let full = shown(Rule::Numpy, &views);
        let pairs: Vec<(u16, u16)> = full[0].iter().copied().zip(full[1].iter().copied()).collect();
        let folded = zip((&views[0], &views[1])).fold(Vec::new(), |mut all, &a, &b| {
            all.push((a, b));
            all
        });
        prop_assert_eq!(&folded, &pairs);
        let mut visited = Vec::new();
        zip((&views[0], &views[1])).for_each(|&a, &b| visited.push((a, b)));
        let mut pairs = pairs;
        visited.sort_unstable();
        pairs.sort_unstable();
        prop_assert_eq!(visited, pairs);
    }
}

// [E_BROADCAST_ANY_FUNC_3030]
#[test]
fn folds_of_long_arrays_go_in_row_major_order_whichever_way_they_run() {
    for shape in [(1, 5000), (7, 3001), (3001, 7), (3001, 3)] {
        let a = Array2::from_shape_fn(shape, |(i, j)| (i * shape.1 + j) as u32);
        let ways =
            [a.slice(s![.., ..;-1]), a.slice(s![..;-1, ..]), a.slice(s![..;-1, ..;-1]), a.t()];
        for level in Level::available() {
            for view in &ways {
                let folded = zip((view,)).level(level).fold(Vec::new(), |mut all, &a| {
                    all.push(a);
                    all
                });
                assert!(folded.iter().eq(view.iter()), "{shape:?} {:?}", view.strides());
            }
        }
    }
}

// [E_BROADCAST_ANY_FUNC_3030] [E_BROADCAST_ANY_FUNC_3050]
#[test]
fn large_results_are_the_same_serial_parallel_and_at_every_level() {
    // Large enough for streaming stores and for several parts; odd sizes, odd places.
    let a = Array2::from_shape_fn((2053, 2111), |(i, j)| (i * 31 + j * 7) as f32);
    let (row, column) = (a.row(5).to_owned(), a.column(3).to_owned().insert_axis(Axis(1)));
    let turned = Array2::from_shape_fn((2111, 2053), |(i, j)| (i * 3 + j * 5) as f32);
    let rgb = Array3::from_shape_fn((1201, 1203, 3), |(i, j, k)| (i + 2 * j + 5 * k) as f32);
    let mean = array![1.0_f32, 2.0, 3.0];
    let (few, short) = (a.slice(s![..9, ..70]), a.slice(s![..63, ..110]));
    let naive =
        |f: &dyn Fn(usize, usize) -> f32| Array2::from_shape_fn((2053, 2111), |(i, j)| f(i, j));
    for level in Level::available() {
        let sums = zip((&a, &row)).level(level);
        let expected = naive(&|i, j| a[[i, j]] + row[j]);
        assert_eq!(sums.map(|a, b| a + b), expected);
        assert_eq!(sums.par_map(|a, b| a + b), expected);
        let mut out = Array2::zeros((2053, 2114));
        zip((&a, &row))
            .level(level)
            .threads(3)
            .par_map_into(&mut out.slice_mut(s![.., 1..2112]), |a, b| a + b);
        assert_eq!(out.slice(s![.., 1..2112]), expected);
        assert!(out.column(0).iter().chain(out.column(2112)).all(|&x| x == 0.0));
        let expected = naive(&|i, j| a[[i, j]] * turned[[j, i]] - column[[i, 0]]);
        let three = zip((&a, turned.t(), &column)).level(level);
        assert_eq!(three.map(|a, t, c| a * t - c), expected);
        assert_eq!(three.par_map(|a, t, c| a * t - c), expected);
        let four = zip((&a, &row, &column, turned.t())).level(level);
        let expected = naive(&|i, j| a[[i, j]] + row[j] - column[[i, 0]] * turned[[j, i]]);
        assert_eq!(four.par_map(|a, r, c, t| a + r - c * t), expected);
        let expected = Array3::from_shape_fn((1201, 1203, 3), |at| rgb[at] - mean[at.2]);
        assert_eq!(zip((&rgb, &mean)).level(level).map(|x, m| x - m), expected);
        assert_eq!(zip((&rgb, &mean)).level(level).par_map(|x, m| x - m), expected);
        // Short runs of both, over and over.
        let (few_by, short_by) = (few.insert_axis(Axis(1)), short.insert_axis(Axis(1)));
        let many = zip((few_by.insert_axis(Axis(3)), short_by)).level(level);
        let expected =
            Array4::from_shape_fn((9, 63, 70, 110), |at| few[[at.0, at.2]] - short[[at.1, at.3]]);
        assert_eq!(many.map(|few, short| few - short), expected);
        assert_eq!(many.par_map(|few, short| few - short), expected);
        let counted = AtomicUsize::new(0);
        zip((&a, &row)).level(level).par_for_each(|_, _| {
            counted.fetch_add(1, Ordering::Relaxed);
        });
        assert_eq!(counted.into_inner(), a.len());
    }
}

// [E_BROADCAST_ANY_FUNC_3030]
#[test]
fn every_rule_zips() {
    let (a, b) = (Array2::from_shape_fn((4, 3), |(i, j)| 10 * i + j), array![7_usize, 8, 9, 10]);
    let named = NamedAxes::new(&[&["x", "y"][..], &["x"]]).unwrap();
    let rules = [
        Rule::Pdpd { axis: Some(0) },
        Rule::Legacy { axis: Some(0) },
        Rule::Paddle { axis: Some(0) },
        named.as_rule(),
    ];
    let expected = Array2::from_shape_fn((4, 3), |(i, j)| a[[i, j]] * 100 + b[i]).into_dyn();
    for rule in rules {
        assert_eq!(zip_by(rule, (&a, &b)).map(|a, b| a * 100 + b), expected, "{rule:?}");
    }
    let wide = zip_by(Rule::Axes { shape: &[4, 2, 3], broadcast_axes: &[1] }, (&a,)).map(|a| *a);
    assert_eq!(wide.index_axis(Axis(1), 1), a.view().into_dyn());
    assert!(try_zip_by(Rule::Exact, (&a, &b)).is_err());
    assert!(try_zip_by(Rule::Unidirectional, (&b, &a)).is_err());
}

// [E_BROADCAST_ANY_FUNC_3030]
#[test]
fn a_zip_knows_its_shape_before_it_runs_and_after() {
    let (column, row) = (array![[1], [2], [3]], array![10, 20]);
    let sums = zip((&column, &row));
    assert_eq!(sums.map(|a, b| a + b), array![[11, 21], [12, 22], [13, 23]]);
    for _ in 0..2 {
        assert_eq!(sums.shape(), [3, 2]);
        assert_eq!(sums.map(|a, b| a + b)[[2, 1]], 23);
    }
    assert_eq!(zip((&row, &row)).shape(), [2]);
    assert_eq!(zip_by(Rule::Pdpd { axis: Some(0) }, (&column, &array![1, 2, 3])).shape(), [3, 1]);
}

// [E_BROADCAST_ANY_FUNC_3030]
#[test]
fn high_ranks_work() {
    let a =
        ArrayD::from_shape_fn(vec![2; 12], |index| (0..12).map(|k| index[k] << k).sum::<usize>());
    let b = a.slice_axis(Axis(4), ndarray::Slice::from(..1)).to_owned();
    let c = a.view().reversed_axes();
    let sums = zip((&a, &b, &c)).map(|a, b, c| a * 3 + b * 5 + c);
    for (index, sum) in sums.indexed_iter() {
        let index: Vec<usize> = index.as_array_view().to_vec();
        let mut first = index.clone();
        first[4] = 0;
        assert_eq!(*sum, a[&index[..]] * 3 + b[&first[..]] * 5 + c[&index[..]]);
    }
}

// [E_BROADCAST_ANY_ERR_3020]
#[test]
fn an_output_never_stretches() {
    let (a, b) = (Array2::<f32>::ones((2, 3)), Array1::<f32>::ones(3));
    let texts: Vec<String> = [vec![2, 1], vec![3], vec![3, 2], vec![]]
        .into_iter()
        .map(|shape| {
            try_zip((&a, &b)).unwrap().try_map_into(&mut ArrayD::zeros(shape), |a, b| a + b)
        })
        .map(|outcome| outcome.unwrap_err().to_string())
        .collect();
    insta::assert_snapshot!(texts.join("\n"), @r"
    E1: result (2, 3) does not broadcast to out (2, 1): axis 1 (-1): out has 1, result has 3
    E2: result (2, 3) does not broadcast to out (3,): result has rank 2, out has 1
    E1: result (2, 3) does not broadcast to out (3, 2): axis 0 (-2): out has 3, result has 2; axis 1 (-1): out has 2, result has 3
    E2: result (2, 3) does not broadcast to out (): result has rank 2, out has 0
    ");
}

// [E_BROADCAST_ANY_FUNC_3030]
#[test]
fn a_result_stretches_to_the_output() {
    let mut out = Array3::zeros((4, 2, 3));
    zip((&array![1, 2, 3], &array![[10], [20]])).map_into(&mut out, |a, b| a + b);
    assert!(out.outer_iter().all(|page| page == array![[11, 12, 13], [21, 22, 23]]));
    zip((&array![[5]],)).map_into(&mut out, |&a| a);
    assert!(out.iter().all(|&a| a == 5));
}

// [E_BROADCAST_ANY_FUNC_3030]
#[test]
fn elements_are_shown_themselves_never_copies() {
    let counts = array![Cell::new(0), Cell::new(0), Cell::new(0)];
    zip((&Array2::<u8>::zeros((500, 3)), &counts)).for_each(|_, count| count.set(count.get() + 1));
    assert_eq!(counts.map(Cell::get), array![500, 500, 500]);
}

// [E_BROADCAST_ANY_FUNC_3030]
#[test]
fn rows_can_be_elements() {
    let points = array![[0.0, 0.0], [3.0, 4.0], [6.0, 8.0]];
    let rows = Array1::from_iter(points.rows());
    let columns = rows.view().insert_axis(Axis(1));
    let distances = zip((columns, &rows))
        .map(|a, b| zip((a, b)).fold(0.0_f64, |sum, a, b| sum + (a - b) * (a - b)).sqrt());
    assert_eq!(distances, array![[0.0, 5.0, 10.0], [5.0, 0.0, 5.0], [10.0, 5.0, 0.0]]);
}

// [E_BROADCAST_ANY_FUNC_3030]
#[test]
fn exact_rationals_are_computed_exactly() {
    #[derive(Clone, Copy, Debug, PartialEq)]
    struct Ratio(i64, i64);
    let add = |a: &Ratio, b: &Ratio| {
        let (n, d) = (a.0 * b.1 + b.0 * a.1, a.1 * b.1);
        let gcd = (1..=d).rev().find(|g| n % g == 0 && d % g == 0).unwrap_or(1);
        Ratio(n / gcd, d / gcd)
    };
    let (a, b) = (array![[Ratio(1, 3)], [Ratio(1, 2)]], array![Ratio(1, 6), Ratio(2, 3)]);
    let expected = array![[Ratio(1, 2), Ratio(1, 1)], [Ratio(2, 3), Ratio(7, 6)]];
    assert_eq!(zip((&a, &b)).map(add), expected);
}

// [E_BROADCAST_ANY_FUNC_3030]
#[test]
fn ranks_are_known_to_the_compiler_where_they_can_be() {
    let sum: ndarray::Array<i32, Ix2> =
        zip((&array![1, 2], &array![[1], [2]], aview0(&5))).map(|a, b, c| a + b + c);
    assert_eq!(sum, array![[7, 8], [8, 9]]);
    let one: ndarray::Array<i32, Ix1> = zip((array![1, 2].slice(s![..;-1]),)).map(|a| -a);
    assert_eq!(one, array![-2, -1]);
}

/// How many of these are alive, and a place to break down at.
struct Counted<'a>(&'a AtomicIsize);

impl<'a> Counted<'a> {
    fn new(alive: &'a AtomicIsize) -> Self {
        alive.fetch_add(1, Ordering::SeqCst);
        Self(alive)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        assert!(self.0.fetch_sub(1, Ordering::SeqCst) > 0, "dropped twice");
    }
}

// [E_BROADCAST_ANY_FUNC_3060]
#[test]
fn a_panic_drops_every_result_once() {
    let (a, b) = (Array2::<u8>::zeros((300, 400)), Array1::<u16>::zeros(400));
    let turned = Array2::<u8>::zeros((400, 300));
    for fuse in [0, 1, 399, 400, 401, 60_000, 119_999, 120_000, 200_000] {
        for parallel in [false, true] {
            let (alive, left) = (AtomicIsize::new(0), AtomicIsize::new(fuse));
            let make = || {
                assert!(left.fetch_sub(1, Ordering::SeqCst) > 0, "the fuse");
                Counted::new(&alive)
            };
            let outcome = catch_unwind(AssertUnwindSafe(|| {
                let three = zip((&a, &b, turned.t()));
                if parallel { three.par_map(|_, _, _| make()) } else { three.map(|_, _, _| make()) }
            }));
            assert_eq!(outcome.is_ok(), fuse >= 120_000, "{fuse} {parallel}");
            if let Ok(array) = outcome {
                assert_eq!(alive.load(Ordering::SeqCst), 120_000);
                drop(array);
            }
            assert_eq!(alive.load(Ordering::SeqCst), 0, "{fuse} {parallel}");
        }
    }
}

// [E_BROADCAST_ANY_FUNC_3060]
#[test]
fn a_panic_leaves_the_callers_output_whole() {
    let alive = AtomicIsize::new(0);
    let a = Array2::<u8>::zeros((30, 40));
    let mut out = Array2::from_shape_simple_fn((40, 30), || Counted::new(&alive));
    for fuse in [0, 1, 39, 700, 1200] {
        for parallel in [false, true] {
            let left = AtomicIsize::new(fuse);
            let make = |_: &u8| {
                assert!(left.fetch_sub(1, Ordering::SeqCst) > 0, "the fuse");
                Counted::new(&alive)
            };
            let mut turned = out.view_mut().reversed_axes();
            let _ = catch_unwind(AssertUnwindSafe(|| {
                if parallel {
                    zip((&a,)).par_map_into(&mut turned, make);
                } else {
                    zip((&a,)).map_into(&mut turned, make);
                }
            }));
            assert_eq!(alive.load(Ordering::SeqCst), 1200);
        }
    }
    drop(out);
    assert_eq!(alive.load(Ordering::SeqCst), 0);
}

// [E_BROADCAST_ANY_FUNC_3030]
#[test]
fn large_results_of_any_type_come_out_right() {
    // Numbers are streamed, what has padding or pointers is not.
    let x = Array1::from_iter(0..(5_u32 << 20));
    let pairs = zip((&x,)).map(|&x| (x as u8, x));
    assert!(pairs.iter().zip(0..).all(|(&pair, n)| pair == (n as u8, n)));
    let names = ["even", "odd"];
    let shown = zip((&x,)).map(|&x| names[x as usize % 2]);
    assert!(shown.iter().zip(0..).all(|(&name, n)| name == names[n % 2]));
    let doubled = zip((&x,)).par_map(|&x| u64::from(x) * 2);
    assert!(doubled.iter().zip(0_u64..).all(|(&twice, n)| twice == 2 * n));
}

// [E_BROADCAST_ANY_FUNC_3030]
#[test]
fn masks_choose_whether_they_repeat_along_a_row_or_not() {
    // Results that stay in the caches, and some that are stored non-temporally.
    for (rows, columns) in [(7, 300), (1100, if cfg!(debug_assertions) { 1024 } else { 12_000 })] {
        let x = Array2::from_shape_fn((rows, columns), |(i, j)| (i * columns + j) as u32);
        let row = Array1::from_shape_fn(columns, |j| !(j as u32));
        let by_row = Array2::from_shape_fn((rows, 1), |(i, _)| i % 3 == 0);
        let by_element = Array1::from_shape_fn(columns, |j| j % 5 < 2);
        for level in Level::available() {
            let choose = |mask: &bool, a: &u32, b: &u32| if *mask { *a } else { *b };
            let held = zip((&by_row, &x, &row)).level(level).map(choose);
            let each = zip((&by_element, &x, &row)).level(level).map(choose);
            let both = zip((&by_row, &by_element, &x)).level(level);
            let both = both.map(|m, n, a| if *m { *a } else { u32::from(*n) });
            let last = zip((&x, &by_row)).level(level).map(|a, m| if *m { *a } else { 1 });
            for ((i, j), &a) in x.indexed_iter() {
                let (m, n) = (i % 3 == 0, j % 5 < 2);
                assert_eq!(held[[i, j]], if m { a } else { !(j as u32) }, "{level:?} {i} {j}");
                assert_eq!(each[[i, j]], if n { a } else { !(j as u32) }, "{level:?} {i} {j}");
                assert_eq!(both[[i, j]], if m { a } else { u32::from(n) }, "{level:?} {i} {j}");
                assert_eq!(last[[i, j]], if m { a } else { 1 }, "{level:?} {i} {j}");
            }
        }
    }
}

// [E_BROADCAST_ANY_FUNC_3030]
#[test]
fn large_results_begin_anywhere_in_a_line() {
    macro_rules! check {
        ($($type:ty)*) => { $({
            // Rows of whole lines, as many as no cache holds with debug assertions, and one that no tile ends with.
            let columns = 256 / size_of::<$type>();
            let rows = 40_961;
            let make = |n: usize| (n % 113 * 7919 % 113) as $type;
            let a = Array2::from_shape_fn((rows, columns), |(i, j)| make(i * columns + j));
            let (b, c) = (Array1::from_shape_fn(columns, make), aview0(&(3 as $type)));
            let mut memory = vec![9 as $type; rows * columns + 256];
            for first in [0, 1, 4] {
                memory.fill(9 as $type);
                let (before, rest) = memory.split_at_mut(64 + first);
                let (own, after) = rest.split_at_mut(rows * columns);
                let mut out = ArrayViewMut2::from_shape((rows, columns), own).unwrap();
                for threads in [false, true] {
                    out.fill(0 as $type);
                    let add = |a: &$type, b: &$type, c: &$type| a % 16 as $type + b % 16 as $type + c;
                    let all = zip((&a, &b, c));
                    if threads { all.par_map_into(&mut out, add) } else { all.map_into(&mut out, add) }
                    for ((i, j), &sum) in out.indexed_iter() {
                        assert_eq!(sum, add(&a[[i, j]], &b[j], &3), "{first}: {i}, {j}");
                    }
                }
                assert!(before.iter().chain(&*after).all(|&n| n == 9));
            }
        })* };
    }
    check! { u8 u16 u32 u64 u128 }
}

// [E_BROADCAST_ANY_FUNC_3030]
#[test]
fn large_results_with_gaps_begin_anywhere_in_a_line() {
    // Blocks whose rows are whole lines, each of which begins elsewhere in a line, and a block that every one of them meets.
    let (blocks, rows, columns, gap) = (3, 12_289, 64, 5);
    let a = Array3::from_shape_fn((blocks, rows, columns), |(i, j, k)| (i * 31 + j * 7 + k) as u32);
    let (row, block) = (a.slice(s![0, 0, ..]), a.slice(s![1, .., ..]));
    let mut memory = Array1::from_elem(blocks * (rows * columns + gap) + 16, 9_u32);
    let strides = [rows * columns + gap, columns, 1];
    for first in [0, 3] {
        memory.fill(9);
        let mut part = memory.slice_mut(s![first..]);
        let own = part.as_slice_mut().unwrap();
        let mut out =
            ArrayViewMut3::from_shape((blocks, rows, columns).strides(strides.into()), own)
                .unwrap();
        zip((&a, &row)).par_map_into(&mut out, |a, b| a + b);
        assert!(out.indexed_iter().all(|((i, j, k), &sum)| sum == a[[i, j, k]] + row[k]));
        zip((&a, &row, &block)).map_into(&mut out, |a, b, c| (a * 3 + b).wrapping_sub(*c));
        let expected = |i, j, k| (a[[i, j, k]] * 3 + row[k]).wrapping_sub(block[[j, k]]);
        assert!(out.indexed_iter().all(|((i, j, k), &sum)| sum == expected(i, j, k)));
        for block in 0..blocks {
            let end = first + block * strides[0] + rows * columns;
            assert!(memory.slice(s![end..end + gap]).iter().all(|&n| n == 9));
        }
    }
}

// [E_BROADCAST_ANY_FUNC_3030]
#[test]
fn parallel_folds_and_counts_are_those_of_one_thread() {
    let (x, column) =
        (Array2::from_shape_fn((700, 300), |(i, j)| (i * 31 + j * 7) as u64), array![[3_u64]]);
    let (x, column) = (x.view(), column.view());
    let divisible = |x: &u64, column: &u64| x.is_multiple_of(*column);
    let count = x.iter().filter(|x| *x % 3 == 0).count();
    assert_eq!(zip((x, column)).count(divisible), count);
    for threads in [1, 2, 3, 8] {
        let both = zip((x, column)).threads(threads);
        assert_eq!(both.par_count(divisible), count);
        let sum = both.par_fold(|| 0, |sum, x, column| sum + x * column, |a, b| a + b);
        assert_eq!(sum, 3 * x.sum());
        let strings = both.par_fold(String::new, |all, _, _| all, |a, b| a + &b);
        assert!(strings.is_empty());
    }
    assert_eq!(zip((&Array1::<u8>::zeros(0),)).par_fold(|| 7, |_, _| 8, |a: i32, _| a), 7);
}

#[test]
fn a_panic_in_a_parallel_fold_reaches_the_caller() {
    let x = Array1::from_iter(0..100_000);
    let fold = || {
        zip((&x,)).par_fold(
            || 0,
            |sum, &x| if x == 77_777 { panic!("here") } else { sum + 1 },
            |a, b| a + b,
        )
    };
    assert!(catch_unwind(fold).is_err());
}

// [E_BROADCAST_ANY_FUNC_3030, E_BROADCAST_ANY_ERR_3010]
#[test]
fn operands_of_any_rank_come_back_in_the_first_ones_dimension() {
    fn scaled<D: ndarray::Dimension>(
        x: &ndarray::Array<f64, D>,
        scale: &Array1<f64>,
    ) -> ndarray::Array<f64, D> {
        simulcast::zip_onto(Rule::Numpy, (x, scale)).map(|x, scale| x * scale)
    }
    let scale = array![2.0, 3.0];
    assert_eq!(scaled(&array![[1.0], [2.0]], &scale), array![[2.0, 3.0], [4.0, 6.0]]);
    assert_eq!(scaled(&array![1.0, 2.0], &scale), array![2.0, 6.0]);
    let (column, dynamic) = (array![[1.0], [2.0]], array![[1.0], [2.0]].into_dyn());
    let any = simulcast::zip_dyn((&dynamic, &scale));
    assert_eq!(any.shape(), [2, 2]);
    assert_eq!(any.ranked::<Ix2>().map(|x, scale| x * scale), array![[2.0, 3.0], [4.0, 6.0]]);
    // Of one shape already, and under a rule that laid them.
    assert!(simulcast::try_zip_onto(Rule::Exact, (&scale, &scale)).is_ok());
    let wrong = zip((&scale, &scale)).try_ranked::<ndarray::Ix3>().unwrap_err();
    assert_eq!(wrong.code(), "E2");
    let wrong = simulcast::try_zip_onto(Rule::Paddle { axis: None }, (&scale, &column));
    assert!(wrong.unwrap_err().to_string().contains("result has rank 2, the first operand has 1"));
}
