//! Programs whose results no cache holds: their bits are those of the same program row by row, which stays in a cache.

use ndarray::{Array1, Array2, Axis};
use simulcast::{AnyView, DType, Expr, Promotion};

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
        _ => ((at * 7919) % 4001) as f64 / 64.0 - 30.0,
    }
}

// [E_BROADCAST_ANY_FUNC_3050]
#[test]
fn large_results_have_the_bits_of_their_rows() {
    macro_rules! check {
        ($($type:ty, $dtype:expr;)*) => { $({
            // Rows that end within a line, and more than a cache of tests holds.
            let (rows, columns) = (1031 * 4 / size_of::<$type>(), 1237);
            let a = Array2::from_shape_fn((rows, columns), |(i, j)| number(i * columns + j) as $type);
            let b = Array1::from_shape_fn(columns, |j| number(3 * j + 11) as $type);
            let c = Array2::from_shape_fn((rows, 1), |(i, _)| number(5 * i + 13) as $type);
            for text in EXPRESSIONS {
                let types = [("a", $dtype), ("b", $dtype), ("c", $dtype)];
                let expr = Expr::parse(text).unwrap();
                let program = expr.compile(&types, Promotion::Numpy).unwrap();
                let results = |views: &[AnyView<'_>]| {
                    program.run(views).unwrap().into_typed::<$type>().unwrap()
                };
                let all = results(&[(&a).into(), (&b).into(), (&c).into()]);
                for row in 0..rows {
                    let (a, c) = (a.index_axis(Axis(0), row), c.index_axis(Axis(0), row));
                    let own = results(&[(&a).into(), (&b).into(), (&c).into()]);
                    let mut both = own.iter().zip(all.index_axis(Axis(0), row));
                    let same = both.all(|(x, y)| x.to_bits() == y.to_bits() || x.is_nan() && y.is_nan());
                    assert!(same, "{text} of {:?}, row {row}", $dtype);
                }
            }
        })* };
    }
    check! { f32, DType::F32; f64, DType::F64; }
}
