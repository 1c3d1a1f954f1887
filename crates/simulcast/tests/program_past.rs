//! Programs whose results no cache holds: their bits are those of the same program on a few rows at a time, which stay in one.

use ndarray::{Array1, Array2, ArrayViewMut2, Axis};
use simulcast::program::Expr;
use simulcast::types::Promotion;
use simulcast::{AnyView, AnyViewMut, DType, Level};

/// One step and several; functions; values that wait for one, two and three others.
const EXPRESSIONS: [&str; 12] = [
    "exp(a)",
    "tanh(a)",
    "sigmoid(a)",
    "log(a)",
    "a * sigmoid(a + b)",
    "erf(a * b) * c",
    "log(abs(a) + 1) - b * c",
    "exp(a - c) * b + exp(b - a)",
    "where(a > b, a - b, b - a) * c + 1",
    "(a - b) * (a + c) - a * b",
    "(a - b) * (b - c) * (c + a) + (a + b) * (a * c) - (a - c)",
    "maximum(floor(a), minimum(b, c)) / (round(a) + 0.5)",
];

/// Numbers of all kinds.
fn number(at: usize) -> f64 {
    match at % 1009 {
        0 => f64::NAN,
        1 => f64::INFINITY,
        2 => f64::NEG_INFINITY,
        3 => -0.0,
        4 => 1e30,
        5 => -1e30,
        6 => 1e-40,
        _ => (at.wrapping_mul(7919) % 4001) as f64 / 64.0 - 30.0,
    }
}

// [E_BROADCAST_ANY_FUNC_3050]
#[test]
fn large_results_have_the_bits_of_their_parts() {
    macro_rules! check {
        ($($type:ty, $dtype:expr;)*) => { $({
            // Rows that end within a line, and more than the cache holds that is assumed with debug assertions.
            let (rows, columns) = (1031 * 4 / size_of::<$type>(), 1061);
            let a = Array2::from_shape_fn((rows, columns), |(i, j)| number(i * columns + j) as $type);
            let b = Array1::from_shape_fn(columns, |j| number(3 * j + 11) as $type);
            let c = Array2::from_shape_fn((rows, 1), |(i, _)| number(5 * i + 13) as $type);
            let levels = [Level::avx2(), Level::avx512()].into_iter().flatten();
            for (level, text) in levels.flat_map(|level| EXPRESSIONS.map(|text| (level, text))) {
                let types = [("a", $dtype), ("b", $dtype), ("c", $dtype)];
                let program = Expr::parse(text).unwrap().compile(&types, Promotion::Numpy).unwrap();
                let program = program.at_level(level).unwrap();
                let results = |views: &[AnyView<'_>]| {
                    program.run(views).unwrap().into_typed::<$type>().unwrap()
                };
                let all = results(&[(&a).into(), (&b).into(), (&c).into()]);
                let few = 61;
                let parts = a.axis_chunks_iter(Axis(0), few).zip(c.axis_chunks_iter(Axis(0), few));
                for ((a, c), all) in parts.zip(all.axis_chunks_iter(Axis(0), few)) {
                    let own = results(&[(&a).into(), (&b).into(), (&c).into()]);
                    let mut both = own.iter().zip(all);
                    let same = both.all(|(x, y)| x.to_bits() == y.to_bits() || x.is_nan() && y.is_nan());
                    assert!(same, "{text} of {:?} at {}", $dtype, level.name());
                }
            }
        })* };
    }
    check! { f32, DType::F32; f64, DType::F64; }
}

// [E_BROADCAST_ANY_FUNC_3050]
#[test]
fn calls_that_come_back_have_the_same_bits_whichever_way_their_results_go() {
    // As many bytes as make a call try what it has not tried yet; all ways were taken after some twenty calls.
    let (rows, columns) = (661, 1061);
    let a = Array2::from_shape_fn((rows, columns), |(i, j)| (i * 7 + j) as f32 / 4096.0);
    let b = Array1::from_shape_fn(columns, |j| j as f32 - 0.5);
    let turned = a.t().as_standard_layout().into_owned().reversed_axes();
    let calls = [("a * b", &a), ("a * b", &turned), ("exp(a)", &a), ("(a - b) * b + a", &a)];
    for (text, a) in calls {
        let types = [("a", DType::F32), ("b", DType::F32)];
        let program = Expr::parse(text).unwrap().compile(&types, Promotion::Numpy).unwrap();
        let mut out = Array2::<f32>::zeros((rows, columns));
        let mut first = None;
        for call in 0..24 {
            out.fill(7.5);
            let views: [AnyView<'_>; 2] = [a.into(), (&b).into()];
            program.bind(&views).write(&mut AnyViewMut::from(&mut *out)).unwrap();
            // No zeros of two signs, and nothing that is unlike itself.
            assert!(*first.get_or_insert_with(|| out.clone()) == out, "{text}, call {call}");
        }
    }
}

// [E_BROADCAST_ANY_FUNC_3050]
#[test]
fn large_results_begin_anywhere_in_a_line() {
    // Rows of whole lines, and one that no tile ends with.
    let (rows, columns) = (40_961, 64);
    let a = Array2::from_shape_fn((rows, columns), |(i, j)| (i * 7 + j) as f32 / 4096.0);
    let b = Array1::from_shape_fn(columns, |j| j as f32 - 0.5);
    let mut memory = vec![7.5_f32; rows * columns + 64];
    for text in ["a + b", "a * b + 1", "(a - b) * b + a", "exp(a - b)"] {
        let types = [("a", DType::F32), ("b", DType::F32)];
        let program = Expr::parse(text).unwrap().compile(&types, Promotion::Numpy).unwrap();
        for level in [Level::avx2(), Level::avx512()].into_iter().flatten() {
            let program = program.clone().at_level(level).unwrap();
            let row = |at: usize| {
                let own = a.row(at);
                let views: [AnyView<'_>; 2] = [(&own).into(), (&b).into()];
                program.run(&views).unwrap().into_typed::<f32>().unwrap()
            };
            for first in [0, 4, 17] {
                memory.fill(7.5);
                let (before, rest) = memory.split_at_mut(first);
                let (own, after) = rest.split_at_mut(rows * columns);
                let mut out = ArrayViewMut2::from_shape((rows, columns), own).unwrap();
                let views: [AnyView<'_>; 2] = [(&a).into(), (&b).into()];
                program.bind(&views).write(&mut AnyViewMut::from(&mut *out)).unwrap();
                for at in (0..40).chain(rows / 2..rows / 2 + 40).chain(rows - 40..rows) {
                    assert_eq!(out.row(at).into_dyn(), row(at), "{text}, row {at}");
                }
                assert!(before.iter().chain(&*after).all(|&n| n == 7.5));
            }
        }
    }
}
