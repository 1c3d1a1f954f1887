//! Operators against plain closures, element by element: every rule, any strides, any sizes.

mod common;

use common::{Stored, shapes, shown, stored};
use ndarray::{Array1, Array2, Array3, ArrayD, ArrayViewD, Axis, ShapeBuilder, array};
use proptest::prelude::*;
use simulcast::program::Node;
use simulcast::types::{Promotion, TypeError};
use simulcast::{
    AnyArray, AnyView, Apply as _, DType, Element, NamedAxes, Op, ProgramError, ProgramErrorKind,
    Rule, compose, dynamic, ops,
};

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// What a closure makes of the elements that the plan names.
fn oracle<T: Element, R>(
    rule: Rule<'_>,
    [a, b]: [&ArrayViewD<'_, T>; 2],
    f: impl Fn(&T, &T) -> R,
) -> ArrayD<R> {
    let both = shown(rule, &[a.view(), b.view()]);
    ndarray::Zip::from(&both[0]).and(&both[1]).map_collect(f)
}

type Binary<T, R> = (Op, fn(&T, &T) -> R);

const WHOLE: [Binary<i64, i64>; 14] = [
    (Op::Add, |a, b| a.wrapping_add(*b)),
    (Op::Subtract, |a, b| a.wrapping_sub(*b)),
    (Op::Multiply, |a, b| a.wrapping_mul(*b)),
    (Op::TruncDivide, |a, b| a.checked_div(*b).unwrap_or(0)),
    (Op::FloorDivide, |a, b| if *b == 0 { 0 } else { (*a as f64 / *b as f64).floor() as i64 }),
    (Op::Remainder, |a, b| if *b == 0 { 0 } else { (a % b + b) % b }),
    (Op::Fmod, |a, b| a.checked_rem(*b).unwrap_or(0)),
    (Op::Maximum, |a, b| *a.max(b)),
    (Op::Minimum, |a, b| *a.min(b)),
    (Op::BitwiseAnd, |a, b| a & b),
    (Op::BitwiseOr, |a, b| a | b),
    (Op::BitwiseXor, |a, b| a ^ b),
    (Op::LeftShift, |a, b| if (0..64).contains(b) { a << b } else { 0 }),
    (Op::RightShift, |a, b| if (0..64).contains(b) { a >> b } else { a >> 63 }),
];

const COMPARED: [Binary<i64, bool>; 9] = [
    (Op::Equal, |a, b| a == b),
    (Op::NotEqual, |a, b| a != b),
    (Op::Less, |a, b| a < b),
    (Op::LessEqual, |a, b| a <= b),
    (Op::Greater, |a, b| a > b),
    (Op::GreaterEqual, |a, b| a >= b),
    (Op::LogicalAnd, |a, b| *a != 0 && *b != 0),
    (Op::LogicalOr, |a, b| *a != 0 || *b != 0),
    (Op::LogicalXor, |a, b| (*a != 0) != (*b != 0)),
];

const REAL: [Binary<f64, f64>; 5] = [
    (Op::Add, |a, b| a + b),
    (Op::Subtract, |a, b| a - b),
    (Op::Multiply, |a, b| a * b),
    (Op::Divide, |a, b| a / b),
    (Op::Fmod, |a, b| a % b),
];

/// Small numbers of both signs, zeros among them.
fn small(n: usize) -> i64 {
    (n * 37 % 23) as i64 - 11
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    // [E_BROADCAST_ANY_FUNC_3100]
    #[test]
    fn operators_are_closures_on_the_elements_that_the_plan_names(
        (a, b) in shapes(2).prop_flat_map(|shapes| {
            (stored(shapes[0].clone(), small), stored(shapes[1].clone(), small))
        })
    ) {
        let (a, b) = (Stored::view(&a), Stored::view(&b));
        let operands = [AnyView::from(&a), AnyView::from(&b)];
        for (op, f) in WHOLE {
            let expected = oracle(Rule::Numpy, [&a, &b], f);
            prop_assert_eq!(op.apply(&operands)?, AnyArray::from(expected.clone()), "{}", op);
            let mut out = ArrayD::from_elem(expected.raw_dim().f(), 77_i64);
            op.apply_into(&operands, &mut (&mut *out).into())?;
            prop_assert_eq!(out, expected, "{}", op);
        }
        for (op, f) in COMPARED {
            let expected = AnyArray::from(oracle(Rule::Numpy, [&a, &b], f));
            prop_assert_eq!(op.apply(&operands)?, expected, "{}", op);
        }
        let (x, y) = (a.mapv(|a| a as f64 / 7.0), b.mapv(|b| b as f64 / 3.0 + 0.1));
        for (op, f) in REAL {
            let expected = AnyArray::from(oracle(Rule::Numpy, [&x.view(), &y.view()], f));
            prop_assert_eq!(op.apply(&[(&x).into(), (&y).into()])?, expected, "{}", op);
        }
        // Types that meet: int64 with float64 is float64.
        let expected = AnyArray::from(oracle(Rule::Numpy, [&a.mapv(|a| a as f64).view(), &y.view()], |a, b| a - b));
        prop_assert_eq!(Op::Subtract.apply(&[(&a).into(), (&y).into()])?, expected);
    }
}

/// The array, transposed in memory, and backwards in memory.
fn storages(shape: &[usize], from: i64) -> Vec<ArrayD<i64>> {
    let count = shape.iter().product::<usize>();
    let plain = ArrayD::from_shape_vec(shape, (0..count as i64).map(|n| n * 7 + from).collect())
        .expect("as many");
    let mut column_major = ArrayD::zeros(plain.raw_dim().f());
    column_major.assign(&plain);
    let mut backward = plain.clone();
    (0..shape.len()).for_each(|axis| backward.invert_axis(Axis(axis)));
    let mut twice = backward.as_standard_layout().into_owned();
    (0..shape.len()).for_each(|axis| twice.invert_axis(Axis(axis)));
    vec![plain, column_major, twice]
}

// [E_BROADCAST_ANY_FUNC_3100]
#[test]
fn every_rule_lays_the_operands() -> Outcome {
    let named = NamedAxes::new(&[&["a", "b", "c"][..], &["c", "a"]])?;
    let pairs: [(Rule<'_>, &[usize], &[usize]); 12] = [
        (Rule::Numpy, &[2, 3, 4], &[3, 1]),
        (Rule::Exact, &[2, 3, 4], &[2, 3, 4]),
        (Rule::Unidirectional, &[2, 3, 4], &[1, 4]),
        (Rule::Pdpd { axis: Some(1) }, &[2, 3, 4], &[3]),
        (Rule::Pdpd { axis: Some(2) }, &[2, 3, 4], &[4, 1, 1]),
        (Rule::Pdpd { axis: Some(0) }, &[0, 3], &[1, 3]),
        (Rule::Legacy { axis: Some(0) }, &[2, 3, 4], &[2, 3]),
        (Rule::Paddle { axis: Some(1) }, &[2, 3, 4], &[3, 1]),
        (Rule::Paddle { axis: Some(0) }, &[2], &[2, 5]),
        (named.as_rule(), &[2, 3, 4], &[4, 2]),
        (Rule::Numpy, &[0, 1], &[5]),
        (Rule::Numpy, &[], &[2, 2]),
    ];
    for (rule, left, right) in pairs {
        for a in storages(left, -20) {
            for b in storages(right, 3) {
                let operands = [AnyView::from(&a), AnyView::from(&b)];
                let expected = oracle(rule, [&a.view(), &b.view()], |a, b| a - b);
                let result = Op::Subtract.apply_by(rule, Promotion::Strict, &operands)?;
                assert_eq!(result, AnyArray::from(expected.clone()), "{rule:?}");
                let mut out = ArrayD::from_elem(expected.raw_dim(), 1);
                Op::Subtract.apply_by_into(
                    rule,
                    Promotion::Strict,
                    &operands,
                    &mut (&mut *out).into(),
                )?;
                assert_eq!(out, expected, "{rule:?}");
            }
        }
    }
    let singles: [(Rule<'_>, &[usize]); 5] = [
        (Rule::To { target: &[2, 3, 4] }, &[3, 1]),
        (Rule::Bidirectional { target: &[2, 1, 4] }, &[3, 1]),
        (Rule::Axes { shape: &[2, 3, 4], broadcast_axes: &[1] }, &[2, 4]),
        (Rule::Mapping { shape: &[2, 3, 4], axes_mapping: &[1] }, &[3]),
        (Rule::To { target: &[0, 3] }, &[1, 3]),
    ];
    for (rule, shape) in singles {
        for a in storages(shape, -20) {
            let expected = shown(rule, &[a.view()])[0].mapv(|a| -a);
            let result = Op::Negative.apply_by(rule, Promotion::Numpy, &[(&a).into()])?;
            assert_eq!(result, AnyArray::from(expected), "{rule:?}");
        }
    }
    // Three operands, of two types.
    let named = NamedAxes::new(&[&["a"][..], &["b", "a"], &["c"]])?;
    let (which, x) = (array![true, false], array![[1, 2], [3, 4], [5, 6]]);
    let y = array![-1, -2];
    let operands = [(&which).into(), (&x).into(), AnyView::from(&y)];
    let result = Op::Where.apply_by(named.as_rule(), Promotion::Strict, &operands)?;
    let expected =
        Array3::from_shape_fn((2, 3, 2), |(a, b, c)| if a == 0 { x[[b, a]] } else { y[c] });
    assert_eq!(result, AnyArray::from(expected));
    Ok(())
}

macro_rules! agree {
    ($($name:ident: $f:expr;)*) => {{
        let a = Array2::from_shape_fn((3, 5), |(i, j)| (i as f64 * 5.0 + j as f64) / 16.0 + 0.03);
        let b = array![[0.31], [0.5], [0.97]];
        let c = array![0.2_f64, 0.4, 0.6, 0.8, 0.99];
        $( agree!(@$name a b c $f); )*
    }};
    (@$name:ident $a:ident $b:ident $c:ident $f:expr) => {
        let f: &dyn Fn(f64, f64) -> f64 = &$f;
        let expected = Array2::from_shape_fn((3, 5), |(i, j)| f($b[[i, 0]], $c[j]));
        let close = |name: &str, result: Array2<f64>| {
            for (one, other) in result.iter().zip(&expected) {
                assert!((one - other).abs() <= 4e-15 * other.abs().max(1e-3), "{name} {one} {other}");
            }
        };
        close(stringify!($name), call::$name(&$b, &$c));
        let _ = &$a;
    };
}

/// Every operator of floats with two operands; those of one see their sum.
mod call {
    use ndarray::{Array1, Array2};
    use simulcast::ops;

    macro_rules! two {
        ($($name:ident)*) => { $(
            pub(super) fn $name(b: &Array2<f64>, c: &Array1<f64>) -> Array2<f64> { ops::$name(b, c) }
        )* };
    }
    macro_rules! one {
        ($($name:ident)*) => { $(
            pub(super) fn $name(b: &Array2<f64>, c: &Array1<f64>) -> Array2<f64> {
                ops::$name(&ops::multiply(b, c))
            }
        )* };
    }
    two! { add subtract multiply divide floor_divide remainder fmod power arctan2 hypot maximum minimum }
    one! {
        negative absolute sign sqrt cbrt square reciprocal exp exp2 expm1 log log2 log10 log1p sin cos
        tan arcsin arccos arctan sinh cosh tanh arcsinh arctanh sigmoid relu floor ceil round trunc
    }
    pub(super) fn arccosh(b: &Array2<f64>, c: &Array1<f64>) -> Array2<f64> {
        ops::arccosh(&ops::reciprocal(&ops::multiply(b, c)))
    }
}

// [E_BROADCAST_ANY_FUNC_3100]
#[test]
fn names_of_typed_operators_mean_what_they_say() {
    agree! {
        add: |b, c| b + c;
        subtract: |b, c| b - c;
        multiply: |b, c| b * c;
        divide: |b, c| b / c;
        floor_divide: |b, c| (b / c).floor();
        remainder: |b, c| b.rem_euclid(c);
        fmod: |b, c| b % c;
        power: |b, c| b.powf(c);
        arctan2: |b, c| b.atan2(c);
        hypot: |b, c| b.hypot(c);
        maximum: |b, c| b.max(c);
        minimum: |b, c| b.min(c);
        negative: |b, c| -(b * c);
        absolute: |b, c| (b * c).abs();
        sign: |_, _| 1.0;
        sqrt: |b, c| (b * c).sqrt();
        cbrt: |b, c| (b * c).cbrt();
        square: |b, c| (b * c) * (b * c);
        reciprocal: |b, c| 1.0 / (b * c);
        exp: |b, c| (b * c).exp();
        exp2: |b, c| (b * c).exp2();
        expm1: |b, c| (b * c).exp_m1();
        log: |b, c| (b * c).ln();
        log2: |b, c| (b * c).log2();
        log10: |b, c| (b * c).log10();
        log1p: |b, c| (b * c).ln_1p();
        sin: |b, c| (b * c).sin();
        cos: |b, c| (b * c).cos();
        tan: |b, c| (b * c).tan();
        arcsin: |b, c| (b * c).asin();
        arccos: |b, c| (b * c).acos();
        arctan: |b, c| (b * c).atan();
        sinh: |b, c| (b * c).sinh();
        cosh: |b, c| (b * c).cosh();
        tanh: |b, c| (b * c).tanh();
        arcsinh: |b, c| (b * c).asinh();
        arccosh: |b, c| (1.0 / (b * c)).acosh();
        arctanh: |b, c| (b * c).atanh();
        sigmoid: |b, c| 1.0 / (1.0 + (-(b * c)).exp());
        relu: |b, c| b * c;
        floor: |_, _| 0.0;
        ceil: |_, _| 1.0;
        round: |b, c| (b * c).round_ties_even();
        trunc: |_, _| 0.0;
    }
    let (a, b) = (array![[5_i8, -128], [7, 0]], array![2_i8, -1]);
    assert_eq!(ops::divide(&a, &b), array![[2, -128], [3, 0]]);
    assert_eq!(ops::divide(&a, &array![[0_i8]]), array![[0, 0], [0, 0]]);
    assert_eq!(ops::floor_divide(&b, &array![2_i8]), array![1, -1]);
    assert_eq!(ops::remainder(&b, &array![3_i8]), array![2, 2]);
    assert_eq!(ops::fmod(&b, &array![3_i8]), array![2, -1]);
    assert_eq!(ops::power(&b, &array![3_i8]), array![8, -1]);
    assert_eq!(ops::left_shift(&b, &array![1_i8]), array![4, -2]);
    assert_eq!(ops::right_shift(&b, &array![9_i8]), array![0, -1]);
    assert_eq!(ops::bitwise_and(&b, &array![3_i8]), array![2, 3]);
    assert_eq!(ops::bitwise_or(&b, &array![1_i8]), array![3, -1]);
    assert_eq!(ops::bitwise_xor(&array![true, true], &array![true, false]), array![false, true]);
    assert_eq!(ops::bitwise_not(&b), array![-3, 0]);
    assert_eq!(ops::logical_and(&a, &b), array![[true, true], [true, false]]);
    assert_eq!(ops::logical_or(&a, &array![0_i8]), array![[true, true], [true, false]]);
    assert_eq!(ops::logical_xor(&a, &b), array![[false, false], [false, true]]);
    assert_eq!(ops::logical_not(&a), array![[false, false], [false, true]]);
    assert_eq!(ops::equal(&a, &array![7_i8]), array![[false, false], [true, false]]);
    assert_eq!(ops::not_equal(&a, &array![7_i8]), array![[true, true], [false, true]]);
    assert_eq!(ops::less(&b, &array![2_i8]), array![false, true]);
    assert_eq!(ops::less_equal(&b, &array![2_i8]), array![true, true]);
    assert_eq!(ops::greater(&b, &array![-1_i8]), array![true, false]);
    assert_eq!(ops::greater_equal(&b, &array![-1_i8]), array![true, true]);
    let wild = array![f32::NAN, f32::INFINITY, 1.0];
    assert_eq!(ops::isnan(&wild), array![true, false, false]);
    assert_eq!(ops::isinf(&wild), array![false, true, false]);
    assert_eq!(ops::isfinite(&wild), array![false, false, true]);
    // erf(0.5), as Python's math.erf gives it.
    assert!((ops::erf(&array![0.5_f64])[0] - 0.520_499_877_813_046_5).abs() < 1e-15);
    // Ranks known when it runs, halves, text.
    let half = |x: f32| half::f16::from_f32(x);
    let sum = ops::add(&array![[half(1.0)], [half(2.0)]].into_dyn(), &array![half(0.5)]);
    assert_eq!(sum, array![[half(1.5)], [half(2.5)]].into_dyn());
    let words = array!["a".to_owned(), "b".to_owned()];
    let twice = ops::concat(&words, &array![["x".to_owned()]]);
    assert_eq!(twice, array![["ax".to_owned(), "bx".to_owned()]]);
    let chosen = ops::where_(&array![[true], [false]], &words, &array!["-".to_owned()]);
    assert_eq!(chosen.map(String::as_str), array![["a", "b"], ["-", "-"]]);
    assert_eq!(ops::equal(&words, &array!["b".to_owned()]), array![false, true]);
}

type Activation = (
    &'static str,
    fn(&mut simulcast::program::Builder, Node) -> Result<Node, TypeError>,
    fn(f64) -> f64,
);

/// The formulas of the ONNX operators' pages.
const ACTIVATIONS: [Activation; 16] = [
    ("leaky_relu", |b, x| compose::leaky_relu(b, x, 0.01), |x| if x < 0.0 { 0.01 * x } else { x }),
    (
        "thresholded_relu",
        |b, x| compose::thresholded_relu(b, x, 1.5),
        |x| if x > 1.5 { x } else { 0.0 },
    ),
    ("elu", |b, x| compose::elu(b, x, 2.0), |x| if x < 0.0 { 2.0 * (x.exp() - 1.0) } else { x }),
    (
        "selu",
        |b, x| compose::selu(b, x, 1.673, 1.05),
        |x| {
            if x <= 0.0 { 1.05 * (1.673 * x.exp() - 1.673) } else { 1.05 * x }
        },
    ),
    (
        "celu",
        |b, x| compose::celu(b, x, 2.0),
        |x| x.max(0.0) + (2.0 * ((x / 2.0).exp() - 1.0)).min(0.0),
    ),
    ("gelu_tanh", compose::gelu_tanh, |x| {
        0.5 * x * (1.0 + ((2.0 / std::f64::consts::PI).sqrt() * (x + 0.044_715 * x.powi(3))).tanh())
    }),
    (
        "hard_sigmoid",
        |b, x| compose::hard_sigmoid(b, x, 0.2, 0.5),
        |x| (0.2 * x + 0.5).clamp(0.0, 1.0),
    ),
    ("hard_swish", compose::hard_swish, |x| x * (x / 6.0 + 0.5).clamp(0.0, 1.0)),
    ("softplus", compose::softplus, |x| x.exp().ln_1p()),
    ("softsign", compose::softsign, |x| x / (1.0 + x.abs())),
    ("mish", compose::mish, |x| x * x.exp().ln_1p().tanh()),
    ("swish", |b, x| compose::swish(b, x, 1.5), |x| x / (1.0 + (-1.5 * x).exp())),
    (
        "shrink",
        |b, x| compose::shrink(b, x, 1.0, 0.25),
        |x| {
            if x < -1.0 {
                x + 0.25
            } else if x > 1.0 {
                x - 0.25
            } else {
                0.0
            }
        },
    ),
    (
        "max",
        |b, x| {
            let x2 = b.apply(Op::Negative, &[x])?;
            compose::max(b, &[x, x2])
        },
        f64::abs,
    ),
    (
        "min",
        |b, x| {
            let x2 = b.apply(Op::Negative, &[x])?;
            compose::min(b, &[x, x2])
        },
        |x| -x.abs(),
    ),
    ("mean", |b, x| compose::mean(b, &[x, x, x]), |x| (x + x + x) / 3.0),
];

// [E_BROADCAST_ANY_FUNC_3120]
#[test]
fn activations_are_their_formulas() -> Outcome {
    let x = Array1::from_shape_fn(801, |n| (n as f64 - 400.0) / 40.0);
    for (name, steps, formula) in ACTIVATIONS {
        let run = |x: &ArrayD<f64>| {
            compose::evaluate(Promotion::Strict, &[x.into()], |build, args| steps(build, args[0]))
        };
        let y = run(&x.clone().into_dyn())?.into_typed::<f64>().map_err(|_| "another type")?;
        for (&x, &y) in x.iter().zip(&y) {
            let expected = formula(x);
            let bound = 1e-14 * expected.abs().max(1.0);
            assert!((y - expected).abs() <= bound, "{name} {x}: {y} {expected}");
        }
        // In single precision, and in one pass.
        let mut build = simulcast::program::Builder::new(Promotion::Strict);
        let node = build.operand("x", DType::F32);
        let root = steps(&mut build, node)?;
        let program = build.finish(root)?;
        assert_eq!((program.dtype(), program.stages()), (DType::F32, 1), "{name}");
        // Nothing overflows on the way.
        let far = array![-1e5, 1e5].into_dyn();
        let y = run(&far)?.into_typed::<f64>().map_err(|_| "another type")?;
        assert!(y.iter().all(|y| y.is_finite()), "{name} {y}");
    }
    // gelu(1), with Python's math.erf: (1 + erf(sqrt(1/2))) / 2.
    let one = array![1.0, -1.0];
    let y = compose::evaluate(Promotion::Strict, &[(&one).into()], |b, args| {
        compose::gelu(b, args[0])
    })?;
    let y = y.into_typed::<f64>().map_err(|_| "another type")?;
    assert!((y[0] - 0.841_344_746_068_542_9).abs() < 1e-15, "{y}");
    assert!((y[1] + 0.158_655_253_931_457_05).abs() < 1e-15, "{y}");
    Ok(())
}

// [E_BROADCAST_ANY_FUNC_3120]
#[test]
fn composite_operators_are_those_of_onnx() -> Outcome {
    let x = array![[-3.0_f32, 0.0, 2.0], [f32::NAN, 7.0, -1.0]];
    let (lo, hi) = (array![-1.0_f32], array![5.0_f32]);
    let (x, lo, hi) = (AnyView::from(&x), AnyView::from(&lo), AnyView::from(&hi));
    let values = |array: AnyArray| -> Result<Vec<f32>, &str> {
        Ok(array.into_typed::<f32>().map_err(|_| "another type")?.iter().copied().collect())
    };
    let same = |a: Vec<f32>, b: [f32; 6]| {
        a.iter().zip(b).all(|(a, b)| *a == b || a.is_nan() && b.is_nan()) && a.len() == 6
    };
    let nan = f32::NAN;
    let clip = |lo, hi| values(dynamic::clip(&x, lo, hi).map_err(|_| "an error")?);
    assert!(same(clip(Some(&lo), Some(&hi))?, [-1.0, 0.0, 2.0, nan, 5.0, -1.0]));
    assert!(same(clip(Some(&lo), None)?, [-1.0, 0.0, 2.0, nan, 7.0, -1.0]));
    assert!(same(clip(None, Some(&hi))?, [-3.0, 0.0, 2.0, nan, 5.0, -1.0]));
    assert!(same(clip(None, None)?, [-3.0, 0.0, 2.0, nan, 7.0, -1.0]));
    assert!(same(clip(Some(&hi), Some(&lo))?, [-1.0, -1.0, -1.0, nan, -1.0, -1.0]));
    let slope = array![[2.0_f32], [3.0]];
    let sloped = dynamic::prelu(&x, &AnyView::from(&slope))?;
    assert!(same(values(sloped)?, [-6.0, 0.0, 2.0, nan, 7.0, -3.0]));
    // Never the other way round.
    let error = dynamic::prelu(&AnyView::from(&slope), &x).err().ok_or("no error")?;
    assert!(matches!(error.kind, ProgramErrorKind::Broadcast(_)), "{error}");

    let (a, b, c) = (array![[1, 9], [5, 3]], array![4, 4], array![[2], [8]]);
    let all = [AnyView::from(&a), AnyView::from(&b), AnyView::from(&c)];
    assert_eq!(dynamic::max(&all)?, AnyArray::from(array![[4, 9], [8, 8]]));
    assert_eq!(dynamic::min(&all)?, AnyArray::from(array![[1, 2], [4, 3]]));
    assert_eq!(dynamic::sum(&all)?, AnyArray::from(array![[7, 15], [17, 15]]));
    let mean = array![[7.0 / 3.0, 5.0], [17.0 / 3.0, 5.0]];
    assert_eq!(dynamic::mean(&all)?, AnyArray::from(mean));
    assert_eq!(dynamic::max(&all[..1])?, AnyArray::from(a.clone()));
    assert!(dynamic::sum(&[]).is_err());
    let many: Vec<_> = (0..100).map(|n| array![n as f64]).collect();
    let views: Vec<AnyView<'_>> = many.iter().map(AnyView::from).collect();
    assert_eq!(dynamic::mean(&views)?, AnyArray::from(array![49.5]));

    let words = array![["a".to_owned()], ["b".to_owned()]];
    let wide = dynamic::expand(&AnyView::from(&words), &[2, 1, 3])?;
    assert_eq!(wide.shape(), [2, 2, 3]);
    assert_eq!(wide.typed::<String>().ok_or("another type")?[[1, 1, 2]], "b");
    assert!(dynamic::expand(&AnyView::from(&a), &[3, 2]).is_err());
    // More elements than there are numbers for, and more than there is memory.
    assert!(dynamic::expand(&lo, &[usize::MAX, 2]).is_err());
    if let Some(many) = 1_usize.checked_shl(46) {
        assert!(dynamic::expand(&lo, &[many]).is_err());
        let word = words.slice(ndarray::s![..1, ..]);
        assert!(dynamic::expand(&AnyView::from(&word), &[many]).is_err());
    }

    let (x, y) = (array![16_u8, 4, 1], array![1_u8, 2, 8]);
    let (x, y) = (AnyView::from(&x), AnyView::from(&y));
    // The example of ONNX's page, and a shift by the whole width.
    use dynamic::Direction::{Left, Right};
    assert_eq!(dynamic::bit_shift(&x, &y, Right)?, AnyArray::from(array![8_u8, 1, 0]));
    assert_eq!(dynamic::bit_shift(&x, &y, Left)?, AnyArray::from(array![32_u8, 16, 0]));
    // ONNX's examples of Mod, with and without fmod.
    let (a, b) = (array![-4, 7, 5, 4, -7, 8], array![2, -3, 8, -2, 3, 5]);
    let (a, b) = (AnyView::from(&a), AnyView::from(&b));
    assert_eq!(dynamic::modulo(&a, &b, false)?, AnyArray::from(array![0, -2, 5, 0, 2, 3]));
    assert_eq!(dynamic::modulo(&a, &b, true)?, AnyArray::from(array![0, 1, 5, 0, -1, 3]));
    Ok(())
}

// [E_BROADCAST_ANY_ERR_3100]
#[test]
fn what_cannot_be_is_an_error() -> Outcome {
    let (a, b) = (array![[1.0_f32, 2.0]], array![1.0_f32, 2.0, 3.0]);
    let operands = [AnyView::from(&a), AnyView::from(&b)];
    let kind = |result: Result<AnyArray, ProgramError>| result.map_err(|error| error.to_string());
    insta::assert_snapshot!(kind(Op::Add.apply(&operands)).unwrap_err());
    insta::assert_snapshot!(kind(Op::Add.apply(&operands[..1])).unwrap_err());
    insta::assert_snapshot!(kind(Op::BitwiseAnd.apply(&operands)).unwrap_err());
    let exact = Op::Add.apply_by(Rule::Exact, Promotion::Numpy, &operands);
    assert!(matches!(exact, Err(ProgramError { kind: ProgramErrorKind::Broadcast(_), .. })));
    let mixed = [AnyView::from(&a), AnyView::from(&array![1, 2])].map(|view| view.to_owned());
    let mixed = [mixed[0].view(), mixed[1].view()];
    assert_eq!(Op::Add.apply(&mixed)?.dtype(), DType::F64);
    assert!(Op::Add.apply_by(Rule::Numpy, Promotion::Strict, &mixed).is_err());
    // An output never stretches, and never changes its type.
    let two = [operands[0].clone(), operands[0].clone()];
    let mut out = Array1::<f32>::zeros(1);
    let refused = Op::Add.apply_into(&two, &mut (&mut *out).into());
    assert!(matches!(refused, Err(ProgramError { kind: ProgramErrorKind::Broadcast(_), .. })));
    let mut out = Array2::<f64>::zeros((1, 2));
    let refused = Op::Add.apply_into(&two, &mut (&mut *out).into());
    assert!(matches!(refused, Err(ProgramError { kind: ProgramErrorKind::DType { .. }, .. })));
    // A result too large to hold.
    let one = array![1_u8];
    let huge = Rule::To { target: &[1 << (usize::BITS - 2); 2] };
    let refused = Op::Negative.apply_by(huge, Promotion::Numpy, &[(&one).into()]);
    assert!(matches!(refused, Err(ProgramError { kind: ProgramErrorKind::Broadcast(_), .. })));
    let panicked = std::panic::catch_unwind(|| ops::add(&array![1, 2], &array![1, 2, 3]));
    let text = panicked.err().and_then(|text| text.downcast::<String>().ok()).ok_or("no text")?;
    let error = ops::try_add(&array![1, 2], &array![1, 2, 3]).err().ok_or("no error")?;
    assert_eq!(*text, error.to_string());
    Ok(())
}

#[test]
fn one_program_serves_every_thread() -> Outcome {
    std::thread::scope(|scope| {
        for n in 0..8_i16 {
            scope.spawn(move || {
                for m in 0..50_i16 {
                    let (a, b) = (array![n, m], array![[m], [n]]);
                    let result = Op::Hypot.apply(&[(&a).into(), (&b).into()]);
                    assert_eq!(result.map(|array| array.dtype()), Ok(DType::F32));
                    let sum = ops::add(&a, &b);
                    assert_eq!(sum, array![[n + m, m + m], [n + n, m + n]]);
                }
            });
        }
    });
    Ok(())
}
