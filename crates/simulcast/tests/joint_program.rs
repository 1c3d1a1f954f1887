//! Programs of several results, and gradients of programs.
//!
//! Values are compared with those of programs of one result, which other tests compare with NumPy's; gradients with
//! differences of values, in `float64`, and with what is known of them in special cases.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use ndarray::{ArrayD, IxDyn, array};
use simulcast::program::Expr;
use simulcast::types::Promotion;
use simulcast::{
    AnyArray, AnyView, AnyViewMut, DType, JointProgram, ProgramErrorKind, Rule, TypedProgram,
};

/// Pseudo-random numbers (xorshift), the same in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 20) as usize % end
    }

    fn of<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[self.below(all.len())]
    }

    fn array(&mut self, shape: &[usize]) -> ArrayD<f64> {
        let number = || 0.3 + self.below(1_000_000) as f64 / 700_000.0;
        ArrayD::from_shape_simple_fn(IxDyn(shape), number)
    }
}

/// Two of them are more than can be counted: 2^40 where addresses have 64 bits, 2^20 where they have 32.
const HUGE: usize = 1 << (usize::BITS / 8 * 5);

const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];
const SHAPES: [&[usize]; 5] = [&[3, 4], &[4], &[3, 1], &[], &[2, 1, 4]];

/// An expression on the operands above: smooth where they are positive, but for choices between them.
fn expression(random: &mut Random, depth: usize) -> String {
    if depth == 0 || random.below(9) == 0 {
        return match random.below(7) {
            0 => format!("{:.2}", 0.4 + random.below(100) as f64 / 60.0),
            n => NAMES[n % 5].into(),
        };
    }
    let own = |random: &mut Random| expression(random, depth - 1);
    let (a, b, c) = (own(random), own(random), own(random));
    match random.below(14) {
        0 | 1 => format!("({a} + {b})"),
        2 => format!("({a} - {b})"),
        3 | 4 => format!("({a} * {b})"),
        5 => format!("({a} / (0.7 + {b} ** 2))"),
        6 => {
            let function = random
                .of(&["sin", "cos", "tanh", "arctan", "sigmoid", "erf", "softsign", "arcsinh"]);
            format!("{function}({a})")
        }
        7 => format!(
            "{}(0.5 + abs({a}))",
            random.of(&["log", "sqrt", "cbrt", "log1p", "reciprocal"])
        ),
        8 => format!("exp(-abs({a}))"),
        9 => format!("{}({a}, {b})", random.of(&["maximum", "minimum", "hypot", "arctan2"])),
        10 => format!("where({a} < {b}, {c}, {a})"),
        11 => {
            let fold = random.of(&["sum", "mean", "max", "min", "prod"]);
            format!("{fold}({a}, axis=-1, keepdims=True)")
        }
        12 => format!("clip({a}, 0.4, 1.3)"),
        _ => format!("({a} + a).mean(axis=-2, keepdims=True)"),
    }
}

/// The value of a program of one number.
fn value(program: &TypedProgram, operands: &[ArrayD<f64>]) -> f64 {
    let views: Vec<AnyView<'_>> = operands.iter().map(AnyView::from).collect();
    program.run(&views).unwrap().typed::<f64>().unwrap().sum()
}

fn operands() -> Vec<(&'static str, DType)> {
    NAMES.map(|name| (name, DType::F64)).to_vec()
}

/// A program of the sum of some expression, whose operands all have an axis to reduce.
fn program(text: &str) -> Option<TypedProgram> {
    // Values without axes have none to reduce: they are laid on `a`'s.
    TypedProgram::parse(&format!("sum({text} + 0 * a)"), &operands()).ok()
}

#[test]
fn gradients_are_what_differences_of_values_say() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut checked = 0;
    for case in 0..160 {
        let text = expression(&mut random, 1 + case % 4);
        let Some(program) = program(&text) else { continue };
        let mut arrays: Vec<ArrayD<f64>> = SHAPES.iter().map(|shape| random.array(shape)).collect();
        let views: Vec<AnyView<'_>> = arrays.iter().map(AnyView::from).collect();
        let Ok(whole) = program.run(&views) else { continue };
        let joint = program.value_and_grad(&NAMES).unwrap();
        let made = joint.run(&views).unwrap();
        let whole = whole.typed::<f64>().unwrap().sum();
        let own = made[0].typed::<f64>().unwrap().sum();
        assert!((whole - own).abs() <= 1e-12 * whole.abs().max(1.0), "{text}: {own} for {whole}");
        let only = program.gradient(&NAMES).unwrap().run(&views).unwrap();
        drop(views);
        for (n, gradient) in made[1..].iter().enumerate() {
            let gradient = gradient.typed::<f64>().unwrap().to_owned();
            assert_eq!(gradient.shape(), SHAPES[n], "{text}");
            let alone = only[n].typed::<f64>().unwrap();
            for (at, &expected) in gradient.iter().enumerate() {
                assert!(
                    (expected - alone.iter().nth(at).unwrap()).abs()
                        <= 1e-11 * expected.abs().max(1.0)
                );
                let old = *arrays[n].iter().nth(at).unwrap();
                let h = 1e-6;
                let mut moved = |by: f64| {
                    *arrays[n].iter_mut().nth(at).unwrap() = old + by;
                    value(&program, &arrays)
                };
                let (up, down) = (moved(h), moved(-h));
                let (twice, half) = (moved(2.0 * h), moved(0.5 * h));
                moved(0.0);
                // A kink between the points is no derivative.
                let (one, other) = ((up - down) / (2.0 * h), (twice - half) / (1.5 * h));
                let scale = 1.0 + one.abs() + whole.abs();
                if (one - other).abs() > 1e-4 * scale {
                    continue;
                }
                assert!(
                    (one - expected).abs() <= 2e-5 * scale,
                    "{text}: {n} {at}: {expected} for {one}"
                );
                checked += 1;
            }
        }
    }
    assert!(checked > 2000, "{checked} elements");
}

#[test]
fn several_results_are_those_of_programs_of_one() {
    let mut random = Random(0x1234_5678_9abc_def1);
    let mut compared = 0;
    for case in 0..200 {
        let texts: Vec<String> =
            (0..1 + case % 4).map(|_| expression(&mut random, 1 + case % 3)).collect();
        let joint = JointProgram::parse(&texts.join("; "), &operands()).unwrap();
        let arrays: Vec<ArrayD<f64>> = SHAPES.iter().map(|shape| random.array(shape)).collect();
        let views: Vec<AnyView<'_>> = arrays.iter().map(AnyView::from).collect();
        let each: Result<Vec<AnyArray>, _> = texts
            .iter()
            .map(|text| TypedProgram::parse(text, &operands()).unwrap().run(&views))
            .collect();
        let made = joint.run(&views);
        let Ok(each) = each else {
            assert!(made.is_err(), "{texts:?}");
            continue;
        };
        let shapes = joint.bind(&views).shapes().unwrap();
        for (((one, other), text), shape) in each.iter().zip(made.unwrap()).zip(&texts).zip(shapes)
        {
            assert_eq!((one.shape(), one.shape()), (other.shape(), &shape[..]), "{text}");
            let (one, other) = (one.typed::<f64>().unwrap(), other.typed::<f64>().unwrap());
            for (one, other) in one.iter().zip(other) {
                let close = (one - other).abs() <= 1e-13 * one.abs().max(1.0);
                assert!(close || one.to_bits() == other.to_bits(), "{text}: {other} for {one}");
                compared += 1;
            }
        }
    }
    assert!(compared > 2000, "{compared} elements");
}

#[test]
fn every_type_and_layout_is_computed_alike() {
    let text = "x + y; x * y; where(x > y, x, y)";
    for dtype in DType::ALL.iter().copied().filter(|&dtype| dtype != DType::String) {
        let names = [("x", dtype), ("y", dtype)];
        let texts: Vec<&str> = if dtype.is_complex() {
            text.split("; ").take(2).collect()
        } else {
            text.split("; ").collect()
        };
        let Ok(cast) =
            TypedProgram::parse(&format!("(n % 13 - 3).astype({dtype})"), &[("n", DType::F64)])
        else {
            panic!("{dtype}")
        };
        let numbers = |shape: [usize; 3]| {
            let mut n = 0.0;
            let numbers = ArrayD::from_shape_simple_fn(IxDyn(&shape), || {
                n += 1.0;
                n
            });
            cast.run(&[AnyView::from(&numbers)]).unwrap()
        };
        let (x, y) = (numbers([5, 7, 65]), numbers([65, 7, 1]));
        let turned = y.view().permuted_axes(&[2, 1, 0]).unwrap();
        let views = [x.view(), turned];
        let joint = JointProgram::parse(&texts.join(";"), &names).unwrap().run(&views).unwrap();
        for (text, made) in texts.iter().zip(joint) {
            let one = TypedProgram::parse(text, &names).unwrap().run(&views).unwrap();
            assert_eq!(one, made, "{text} on {dtype}");
        }
        for fold in ["sum", "max", "min", "prod"] {
            if dtype.is_complex() && matches!(fold, "max" | "min") {
                continue;
            }
            let texts = ["axis=0", "axis=1", "axis=2", "axis=(0, 2)", "keepdims=True"]
                .map(|axes| format!("{fold}(x - x + y, {axes})"));
            let texts = texts.map(|text| match dtype {
                DType::Bool => text.replace("x - x + y", "x & y"),
                _ => text,
            });
            let joint = JointProgram::parse(&texts.join(";"), &names).unwrap().run(&views).unwrap();
            for (text, made) in texts.iter().zip(joint) {
                let one = TypedProgram::parse(text, &names).unwrap().run(&views).unwrap();
                let close = |one: &AnyArray, made: &AnyArray| {
                    let both = [("x", one.dtype()), ("y", one.dtype())];
                    let near = "max(abs(x - y) > 1e-2 * abs(x)) | max((x == x) != (y == y))";
                    let near = if one.dtype().is_float() || one.dtype().is_complex() {
                        near
                    } else {
                        "max(x != y)"
                    };
                    let near = TypedProgram::parse(near, &both)
                        .unwrap()
                        .run(&[one.view(), made.view()])
                        .unwrap();
                    near.typed::<bool>().unwrap().iter().all(|differs| !differs)
                };
                assert!(one.shape() == made.shape() && one.dtype() == made.dtype());
                assert!(close(&one, &made), "{text} on {dtype}: {made:?} for {one:?}");
            }
        }
    }
}

#[test]
fn the_number_of_threads_changes_no_bit() {
    let mut random = Random(77);
    let text = "mean((x - m) ** 2 / s + log(s))";
    let names = ["x", "m", "s"].map(|name| (name, DType::F32));
    let program = TypedProgram::parse(text, &names).unwrap();
    let joint = program.value_and_grad(&["x", "m", "s"]).unwrap();
    let f32 = |array: ArrayD<f64>| array.mapv(|value| value as f32);
    for (x, m, s) in [
        ([1, 700, 1000], [1, 1, 1000], [1, 700, 1]),
        ([900, 300, 3], [1, 1, 3], [900, 1, 1]),
        ([5, 4, 70_000], [5, 1, 1], [1, 4, 70_000]),
        ([1, 1, 1_000_000], [1, 1, 1], [1, 1, 1]),
    ] {
        let arrays = [&x, &m, &s].map(|shape| f32(random.array(shape)));
        let views: Vec<AnyView<'_>> = arrays.iter().map(AnyView::from).collect();
        simulcast_threads::set_threads(8);
        let once = joint.bind(&views).threads(1).compute().unwrap();
        for threads in [2, 3, 8] {
            assert_eq!(joint.bind(&views).threads(threads).compute().unwrap(), once, "{x:?}");
        }
        // The same in float64, step by step.
        let wide = arrays.clone().map(|array| array.mapv(f64::from));
        let (x, m, s) = (&wide[0], &wide[1], &wide[2]);
        let (m, s) = (m.broadcast(x.shape()).unwrap(), s.broadcast(x.shape()).unwrap());
        let centred = x - &m;
        let count = x.len() as f64;
        let mean = (&centred * &centred / &s + s.mapv(f64::ln)).sum() / count;
        let by_x = &centred * 2.0 / &s / count;
        let by_s = (1.0 / &s - &centred * &centred / &s / &s) / count;
        let folded = |full: &ArrayD<f64>, to: &[usize]| {
            let mut sum = full.clone();
            for axis in (0..to.len()).filter(|&axis| to[axis] == 1) {
                sum = sum.sum_axis(ndarray::Axis(axis)).insert_axis(ndarray::Axis(axis));
            }
            sum
        };
        let expected = [
            ArrayD::from_elem(IxDyn(&[]), mean),
            by_x.clone(),
            folded(&-&by_x, wide[1].shape()),
            folded(&by_s, wide[2].shape()),
        ];
        for (n, (made, expected)) in once.iter().zip(&expected).enumerate() {
            let made = made.typed::<f32>().unwrap();
            let largest = expected.iter().fold(0.0_f64, |most, value| most.max(value.abs()));
            assert_eq!(made.shape(), expected.shape());
            for (&made, &expected) in made.iter().zip(expected) {
                let error = (f64::from(made) - expected).abs();
                assert!(error <= 3e-6 * largest, "{n}: {made} for {expected}, of {largest}");
            }
        }
    }
}

#[test]
fn the_value_and_gradients_of_a_row_and_a_column_are_one_pass_over_the_elements() {
    let names = ["x", "m", "s"].map(|name| (name, DType::F32));
    let program = TypedProgram::parse("mean((x - m) ** 2 / s + log(s))", &names).unwrap();
    let joint = program.value_and_grad(&["m", "s"]).unwrap();
    let (x, m, s) = (
        ArrayD::<f32>::ones(IxDyn(&[300, 200])),
        ArrayD::<f32>::zeros(IxDyn(&[200])),
        ArrayD::<f32>::ones(IxDyn(&[300, 1])),
    );
    let views = [AnyView::from(&x), AnyView::from(&m), AnyView::from(&s)];
    // What is of the shape of a row or of a column takes passes of its own, over that many elements.
    let large = joint.bind(&views).pass_shapes().unwrap();
    let large: Vec<_> =
        large.into_iter().filter(|shape| shape.iter().product::<usize>() > 300).collect();
    assert_eq!(large, [vec![300, 200]]);
    let made = joint.run(&views).unwrap();
    assert_eq!(made[0].typed::<f32>().unwrap().sum(), 1.0);
    assert!((made[1].typed::<f32>().unwrap().sum() + 2.0).abs() < 1e-6);
    assert!(made[2].typed::<f32>().unwrap().sum().abs() < 1e-6);
}

#[test]
fn gradients_go_by_the_rule() {
    let names = [("a", DType::F64), ("b", DType::F64)];
    let program = TypedProgram::parse("sum(sin(a) * b * b)", &names).unwrap();
    let joint = program.gradient(&["a", "b"]).unwrap();
    let mut random = Random(5);
    for (rule, a, b) in [
        (Rule::Pdpd { axis: Some(1) }, vec![2, 3, 4], vec![3]),
        (Rule::Pdpd { axis: Some(0) }, vec![2, 3, 4], vec![2, 1]),
        (Rule::Exact, vec![2, 3], vec![2, 3]),
        (Rule::Unidirectional, vec![2, 3], vec![1, 3]),
        (Rule::Numpy, vec![2, 1, 4], vec![3, 1]),
    ] {
        let (mut a, mut b) = (random.array(&a), random.array(&b));
        let whole = |a: &ArrayD<f64>, b: &ArrayD<f64>| {
            let views = [AnyView::from(a), AnyView::from(b)];
            program.bind(&views).rule(rule).compute().unwrap().typed::<f64>().unwrap().sum()
        };
        let made =
            joint.bind(&[AnyView::from(&a), AnyView::from(&b)]).rule(rule).compute().unwrap();
        let h = 1e-6;
        for at in 0..a.len() {
            let old = *a.iter().nth(at).unwrap();
            let mut moved = |by| {
                *a.iter_mut().nth(at).unwrap() = old + by;
                whole(&a, &b)
            };
            let slope = (moved(h) - moved(-h)) / (2.0 * h);
            moved(0.0);
            let own = *made[0].typed::<f64>().unwrap().iter().nth(at).unwrap();
            assert!((slope - own).abs() < 1e-6, "{rule:?} a[{at}]: {own} for {slope}");
        }
        for at in 0..b.len() {
            let old = *b.iter().nth(at).unwrap();
            let mut moved = |by| {
                *b.iter_mut().nth(at).unwrap() = old + by;
                whole(&a, &b)
            };
            let slope = (moved(h) - moved(-h)) / (2.0 * h);
            moved(0.0);
            let own = *made[1].typed::<f64>().unwrap().iter().nth(at).unwrap();
            assert!((slope - own).abs() < 1e-6, "{rule:?} b[{at}]: {own} for {slope}");
        }
    }
}

/// The gradient of one operand `x`.
fn gradient(text: &str, x: &ArrayD<f64>) -> Vec<f64> {
    let program = TypedProgram::parse(text, &[("x", DType::F64)]).unwrap();
    let made = program.gradient(&["x"]).unwrap().run(&[AnyView::from(x)]).unwrap();
    made[0].typed::<f64>().unwrap().iter().copied().collect()
}

#[test]
fn ties_zeros_and_nan_have_their_conventions() {
    let x =
        |values: &[f64]| ArrayD::from_shape_vec(IxDyn(&[values.len()]), values.to_vec()).unwrap();
    // As torch.amax and jax.numpy.max.
    assert_eq!(gradient("max(x)", &x(&[1.0, 3.0, 3.0])), [0.0, 0.5, 0.5]);
    assert_eq!(gradient("min(x)", &x(&[1.0, 3.0, 1.0])), [0.5, 0.0, 0.5]);
    let nan = gradient("max(x)", &x(&[1.0, f64::NAN, 3.0]));
    assert_eq!(nan, [0.0, 1.0, 0.0]);
    // As torch.prod.
    assert_eq!(gradient("prod(x)", &x(&[2.0, 3.0, 4.0])), [12.0, 8.0, 6.0]);
    assert_eq!(gradient("prod(x)", &x(&[2.0, 0.0, 4.0])), [0.0, 8.0, 0.0]);
    assert_eq!(gradient("prod(x)", &x(&[0.0, 0.0, 4.0])), [0.0, 0.0, 0.0]);
    assert_eq!(gradient("sum(abs(x) + floor(x))", &x(&[-2.0, 0.0, 4.5])), [-1.0, 0.0, 1.0]);
    assert_eq!(gradient("sum(x[:, None] * x)", &x(&[1.0, 2.0])), [6.0, 6.0]);
    assert_eq!(gradient("sum(3)  + 0 * sum(x)", &x(&[1.0, 2.0])), [0.0, 0.0]);
    assert_eq!(gradient("sum(x.astype(int64) * 2.0)", &x(&[1.0, 2.0])), [0.0, 0.0]);
    assert_eq!(gradient("mean(x)", &x(&[])), [0.0; 0]);
}

#[test]
fn what_has_no_gradient_is_refused() {
    let (f64, i64) = (DType::F64, DType::I64);
    let kind = |text: &str, operands: &[(&str, DType)], wrt: &[&str]| {
        TypedProgram::parse(text, operands).unwrap().gradient(wrt).map(|_| ()).unwrap_err().kind
    };
    let unknown = kind("sum(mean * x)", &[("x", f64), ("mean", f64)], &["maen"]);
    let near = Some("mean".into());
    assert_eq!(unknown, ProgramErrorKind::Unknown { name: "maen".into(), near });
    let int = kind("sum(x * n)", &[("x", f64), ("n", i64)], &["n"]);
    assert_eq!(int, ProgramErrorKind::NotAFloat { name: "n".into(), given: i64 });
    let result = kind("sum(x > 0)", &[("x", f64)], &["x"]);
    assert_eq!(result, ProgramErrorKind::NotAFloat { name: "the result".into(), given: i64 });
    let complex = kind("sum(real(x * 1j))", &[("x", f64)], &["x"]);
    assert!(matches!(complex, ProgramErrorKind::NoDerivative { .. }), "{complex:?}");
    let program = TypedProgram::parse("x * 2", &[("x", f64)]).unwrap().gradient(&["x"]).unwrap();
    let x = array![1.0, 2.0];
    let shape = program.run(&[AnyView::from(&x)]).unwrap_err();
    assert_eq!(shape.kind, ProgramErrorKind::NotOneNumber { shape: vec![2] });
    assert_eq!(
        shape.to_string(),
        "the result has shape (2,), and a gradient is that of one number; reduce it, as in `sum(...)`, or give the \
         gradient of the result"
    );
}

#[test]
fn a_pullback_takes_the_gradient_of_the_result_and_can_be_pulled_back_again() {
    let f64 = DType::F64;
    let program = TypedProgram::parse("x ** 3 * y", &[("x", f64), ("y", f64)]).unwrap();
    let pullback = program.pullback(&["x"]).unwrap();
    let names: Vec<&str> = pullback.operands().iter().map(|own| own.name.as_str()).collect();
    assert_eq!(names, ["x", "y", "gradient"]);
    let (x, y, g) = (array![1.0, 2.0], array![[3.0], [5.0]], array![[1.0, 1.0], [1.0, 10.0]]);
    let views = [AnyView::from(&x), AnyView::from(&y), AnyView::from(&g)];
    let made = pullback.run(&views).unwrap();
    // 3 x^2 times the sum of g y along the columns.
    assert_eq!(made[0].typed::<f64>().unwrap(), array![24.0, 636.0].view().into_dyn());
    let again = pullback.pullback(&["x", "y", "gradient"]).unwrap();
    let h = array![1.0, 10.0];
    let views = [AnyView::from(&x), AnyView::from(&y), AnyView::from(&g), AnyView::from(&h)];
    let made = again.run(&views).unwrap();
    // By x: 6 x h times the sum of g y; by y and by g: sums and products of 3 x^2 h.
    assert_eq!(made[0].typed::<f64>().unwrap(), array![48.0, 6360.0].view().into_dyn());
    assert_eq!(made[1].typed::<f64>().unwrap(), array![[123.0], [1203.0]].view().into_dyn());
    assert_eq!(
        made[2].typed::<f64>().unwrap(),
        array![[9.0, 360.0], [15.0, 600.0]].view().into_dyn()
    );
    let wrong = array![1.0];
    let views = [AnyView::from(&x), AnyView::from(&y), AnyView::from(&wrong)];
    let error = pullback.run(&views).unwrap_err().to_string();
    assert!(error.contains("gradient"), "{error}");
}

#[test]
fn gradients_of_16_bit_floats_are_computed_in_32() {
    let names = [("x", DType::F16), ("m", DType::F16)];
    let program = TypedProgram::parse("mean(exp((x - m) / 8))", &names).unwrap();
    let cast = |values: ArrayD<f64>| {
        let cast = TypedProgram::parse("n.astype(float16)", &[("n", DType::F64)]).unwrap();
        cast.run(&[AnyView::from(&values)]).unwrap()
    };
    let mut random = Random(3);
    let (x, m) = (cast(random.array(&[40, 30])), cast(random.array(&[30])));
    let made = program.gradient(&["x", "m"]).unwrap().run(&[x.view(), m.view()]).unwrap();
    assert_eq!(made[1].dtype(), DType::F16);
    let wide = |array: &AnyArray| {
        let cast = TypedProgram::parse("n.astype(float64)", &[("n", array.dtype())]).unwrap();
        cast.run(&[array.view()]).unwrap().typed::<f64>().unwrap().to_owned()
    };
    let by_x = ((&wide(&x) - &wide(&m)) / 8.0).mapv(f64::exp) / 8.0 / 1200.0;
    let by_m = -by_x.sum_axis(ndarray::Axis(0));
    for (own, expected) in wide(&made[1]).iter().zip(&by_m) {
        assert!((own - expected).abs() <= expected.abs() / 1000.0, "{own} for {expected}");
    }
}

/// The values of an array in another type.
fn cast(array: &AnyView<'_>, dtype: DType) -> AnyArray {
    let text = format!("n.astype({dtype})");
    TypedProgram::parse(&text, &[("n", array.dtype())])
        .unwrap()
        .run(std::slice::from_ref(array))
        .unwrap()
}

#[test]
fn gradients_of_16_bit_floats_that_are_repeated_are_those_of_32_rounded_once() {
    const TEXTS: [&str; 6] = [
        "sum(a * b + c)",
        "sum(a * b * c)",
        "sum(a * exp(b) - c / b)",
        "sum(a + b * c)",
        "sum((a * b).T * 2 + (a - c).T)",
        "sum(a + a - b + maximum(b, c))",
    ];
    const SHAPES: [[&[usize]; 3]; 7] = [
        [&[33, 130], &[130], &[33, 1]],
        [&[3, 4], &[4], &[3, 1]],
        [&[130, 33], &[130, 1], &[33]],
        [&[4096], &[1], &[]],
        [&[9, 8, 64], &[8, 1], &[9, 1, 64]],
        [&[64, 65], &[], &[65]],
        [&[20, 300, 7], &[7], &[20, 1, 1]],
    ];
    const WRT: [&str; 3] = ["a", "b", "c"];
    let mut random = Random(0x5bd1_e995);
    for dtype in [DType::F16, DType::Bf16] {
        for (text, shapes) in TEXTS.iter().flat_map(|text| SHAPES.map(|shapes| (text, shapes))) {
            let own = shapes.map(|shape| cast(&AnyView::from(&random.array(shape)), dtype));
            let wide = own.each_ref().map(|array| cast(&array.view(), DType::F32));
            let gradient = |arrays: &[AnyArray; 3]| {
                let names = WRT.map(|name| (name, arrays[0].dtype()));
                let program = TypedProgram::parse(text, &names).unwrap();
                let views = arrays.each_ref().map(AnyArray::view);
                let only = program.gradient(&WRT).unwrap().run(&views).unwrap();
                let alone = WRT.map(|name| {
                    program.gradient(&[name]).unwrap().run(&views).unwrap().pop().unwrap()
                });
                let mut all = program.value_and_grad(&WRT).unwrap().run(&views).unwrap();
                all.extend(only.into_iter().chain(alone));
                all
            };
            let (made, expected) = (gradient(&own), gradient(&wide));
            assert_eq!(made.len(), 10, "{text}");
            for (n, (made, expected)) in made.iter().zip(&expected).enumerate() {
                let name = format!("{text} of {dtype} {shapes:?}, {n}");
                assert_eq!(made.dtype(), dtype, "{name}");
                let expected = cast(&cast(&expected.view(), dtype).view(), DType::F64);
                let made = cast(&made.view(), DType::F64);
                assert_eq!(made.typed::<f64>(), expected.typed::<f64>(), "{name}");
            }
        }
    }
}

#[test]
fn results_that_are_operands_are_those_operands_in_every_type() {
    const TEXTS: [&str; 6] = ["a", "b", "a.T", "a[None]", "a", "sum(a, axis=0)"];
    let mut random = Random(0x1234_5678);
    // Whole numbers, whose sums are exact in any order.
    let mut whole = |shape: &[usize]| (random.array(shape) * 40.0).floor();
    let (a, b, turned) = (whole(&[33, 130]), whole(&[130]), whole(&[130, 33]).reversed_axes());
    for dtype in DType::ALL.iter().copied().filter(|dtype| *dtype != DType::String) {
        let names = [("a", dtype), ("b", dtype)];
        let (a, b) = (cast(&AnyView::from(&a), dtype), cast(&AnyView::from(&b), dtype));
        let turned = cast(&AnyView::from(&turned), dtype);
        for views in [[a.view(), b.view()], [turned.view(), b.view()]] {
            let together = JointProgram::parse(&TEXTS.join("; "), &names).unwrap();
            let together = together.run(&views).unwrap();
            for (text, made) in TEXTS.iter().zip(&together) {
                let alone = TypedProgram::parse(text, &names).unwrap().run(&views).unwrap();
                let [made, alone] = [made, &alone].map(|array| cast(&array.view(), DType::C128));
                assert_eq!(made, alone, "{text} of {dtype}");
            }
        }
    }
}

#[test]
fn texts_are_results_too_and_errors_point_into_the_whole_text() {
    let names = [("s", DType::String), ("x", DType::F64)];
    let joint = JointProgram::parse("s + ';'; x * 2", &names).unwrap();
    let s = array!["a".to_owned(), "b".to_owned()];
    let x = array![1.0, 2.0];
    let made = joint.run(&[AnyView::from(&s), AnyView::from(&x)]).unwrap();
    assert_eq!(made[0].typed::<String>().unwrap()[0], "a;");
    assert_eq!(made[1].typed::<f64>().unwrap()[1], 4.0);
    let error = JointProgram::parse("x + 1; x +", &names).unwrap_err();
    assert_eq!(error.span, 10..10);
    let error = JointProgram::parse("x + 1; x + yy", &names).unwrap_err();
    assert_eq!(error.span, 11..13);
    assert!(JointProgram::parse("x;", &names).is_err());
    let several = Expr::parse_several("x; s").unwrap();
    let joint = JointProgram::compile(&several, &names, Promotion::Numpy).unwrap();
    assert_eq!(joint.dtypes(), [DType::F64, DType::String]);
}

#[test]
fn large_and_empty_shapes_are_results_or_errors() {
    let names = [("a", DType::F64), ("b", DType::F64)];
    let joint = JointProgram::parse("a + b; sum(a * b); mean(a, axis=0)", &names).unwrap();
    let (a, b) = (ArrayD::<f64>::zeros(IxDyn(&[0, 3])), ArrayD::<f64>::zeros(IxDyn(&[3])));
    let made = joint.run(&[AnyView::from(&a), AnyView::from(&b)]).unwrap();
    assert_eq!(made[0].shape(), [0, 3]);
    assert_eq!(made[1].typed::<f64>().unwrap().sum().to_bits(), 0.0_f64.to_bits());
    assert!(made[2].typed::<f64>().unwrap().iter().all(|mean| mean.is_nan()));
    let one = array![[1.0]];
    let wide = AnyView::from(&one).broadcast_to(&[HUGE, 1]).unwrap();
    let flat = AnyView::from(&one).broadcast_to(&[1, HUGE]).unwrap();
    let error = joint.run(&[wide, flat]).unwrap_err();
    assert!(matches!(error.kind, ProgramErrorKind::Broadcast(_)), "{error}");
}

#[test]
fn results_are_written_where_they_are_wanted() {
    let f64 = DType::F64;
    let both =
        JointProgram::parse("a + b; sum(a * b); a - b; b", &[("a", f64), ("b", f64)]).unwrap();
    let (a, b) = (array![[1.0, 2.0], [3.0, 4.0]], array![10.0, 20.0]);
    let operands = [AnyView::from(&a), AnyView::from(&b)];
    let mut sum = ndarray::Array2::<f64>::zeros((2, 2));
    let mut total = ndarray::arr0(0.0);
    // Neither of these is row-major and of the result's shape: the results are copied there.
    let mut difference = ndarray::Array3::<f64>::zeros((3, 2, 2));
    let mut copied = ndarray::Array2::<f64>::zeros((2, 2));
    let mut out = [
        (&mut sum).into(),
        (&mut total).into(),
        (&mut difference).into(),
        AnyViewMut::from(&mut copied),
    ];
    both.bind(&operands).write(&mut out).unwrap();
    assert_eq!(sum, &a + &b);
    assert_eq!(total.sum(), 160.0);
    assert_eq!(difference.index_axis(ndarray::Axis(0), 2), &a - &b);
    assert_eq!(copied, array![[10.0, 20.0], [10.0, 20.0]]);
    let mut wrong = [AnyViewMut::from(&mut sum)];
    assert!(both.bind(&operands).write(&mut wrong).is_err());
    let mut narrow = ndarray::Array2::<f32>::zeros((2, 2));
    let mut wrong = [AnyViewMut::from(&mut narrow)];
    let one = JointProgram::parse("a + b", &[("a", f64), ("b", f64)]).unwrap();
    let error = one.bind(&operands).write(&mut wrong).unwrap_err();
    assert!(matches!(error.kind, ProgramErrorKind::DType { .. }), "{error}");
}

#[test]
fn values_come_before_gradients_that_are_given() {
    let f64 = DType::F64;
    let product = JointProgram::parse("x * w", &[("x", f64), ("w", f64)]).unwrap();
    let (x, w, g) = (array![1.0, 2.0], ndarray::arr0(3.0), array![1.0, 10.0]);
    let operands = [AnyView::from(&x), AnyView::from(&w), AnyView::from(&g)];
    let made = product.value_and_pullback(&["w"]).unwrap().run(&operands).unwrap();
    assert_eq!(made[0].typed::<f64>().unwrap(), array![3.0, 6.0].into_dyn());
    assert_eq!(made[1].typed::<f64>().unwrap().sum(), 21.0);
    let sums = JointProgram::parse("sum(x); sum(x * w)", &[("x", f64), ("w", f64)]).unwrap();
    let made = sums.gradient(&["x"]).unwrap().run(&operands[..2]).unwrap();
    assert_eq!(made[0].typed::<f64>().unwrap(), array![4.0, 4.0].into_dyn());
    assert_eq!(sums.value_and_grad(&["w"]).unwrap().run(&operands[..2]).unwrap().len(), 3);
}
