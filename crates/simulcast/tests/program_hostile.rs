//! Programs that nobody would write on purpose: each gives its result or a clear error.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use ndarray::{Array1, Array2, ArrayD, IxDyn, array};
use simulcast::program::{Builder, Diagnostic, Expr, Fold, Node};
use simulcast::types::Promotion;
use simulcast::{
    AnyArray, AnyView, Complex, DType, Level, Op, ProgramErrorKind, Rule, TypedProgram, try_zip_by,
};
use simulcast_threads::set_threads;

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// Two of them are more than can be counted: 2^40 where addresses have 64 bits, 2^20 where they have 32.
const HUGE: usize = 1 << (usize::BITS / 8 * 5);

fn compiled(
    text: &str,
    operands: &[(&str, DType)],
) -> Result<TypedProgram, Box<dyn std::error::Error>> {
    Ok(Expr::parse(text)?.compile(operands, Promotion::Numpy)?)
}

/// The text of the error of an expression on some arrays, wherever it comes from.
fn refused(text: &str, operands: &[(&str, AnyArray)]) -> String {
    let declared: Vec<_> = operands.iter().map(|(name, array)| (*name, array.dtype())).collect();
    let views: Vec<AnyView<'_>> = operands.iter().map(|(_, array)| array.view()).collect();
    let run = || -> Result<AnyArray, Box<dyn std::error::Error>> {
        Ok(compiled(text, &declared)?.run(&views)?)
    };
    match run() {
        Ok(result) => format!("{result:?}"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn a_value_that_becomes_an_array_late_is_still_itself() -> Outcome {
    // `a * b` is used twice as it is, and then seen with another axis.
    let program = compiled(
        "exp(a * b)[:, None] * 0 + (a * b) * 2 + (a * b)[:, None]",
        &[("a", DType::F64), ("b", DType::I8)],
    )?;
    let (a, b) = (array![1.5_f64, 2.5, -3.5], array![2_i8, 3, 4]);
    let result = program.run(&[(&a).into(), (&b).into()])?;
    let product = [3.0, 7.5, -14.0];
    let expected = Array2::from_shape_fn((3, 3), |(i, j)| product[j] * 2.0 + product[i]);
    assert_eq!(result.typed::<f64>(), Some(expected.view().into_dyn()));
    // The same of a number.
    let program = compiled("x * 2.5 + float64(2.5)[None]", &[("x", DType::F64)])?;
    assert_eq!(program.run(&[(&a).into()])?, AnyArray::from(a.mapv(|a| a * 2.5 + 2.5)));
    // And where too many arrays meet: the first sum is cut off after its square was asked for.
    let mut build = Builder::new(Promotion::Numpy);
    let all: Vec<Node> = (0..31).map(|n| build.operand(&format!("x{n}"), DType::F64)).collect();
    let mut low = all[0];
    for &more in &all[1..16] {
        low = build.apply(Op::Add, &[low, more])?;
    }
    let square = build.apply(Op::Square, &[low])?;
    let mut high = low;
    for &more in &all[16..] {
        high = build.apply(Op::Add, &[high, more])?;
    }
    let root = build.apply(Op::Subtract, &[square, high])?;
    let program = build.finish(root)?;
    let arrays: Vec<Array1<f64>> = (0..31).map(|n| array![f64::from(n), 1.0]).collect();
    let views: Vec<AnyView<'_>> = arrays.iter().map(Into::into).collect();
    let expected = array![120_f64.powi(2) - 465.0, 256.0 - 31.0];
    assert_eq!(program.run(&views)?, AnyArray::from(expected));
    Ok(())
}

#[test]
fn ten_thousand_operands_are_found_by_their_names() -> Outcome {
    let names: Vec<String> = (0..10_000).map(|n| format!("x{n}")).collect();
    let operands: Vec<(&str, DType)> = names.iter().map(|name| (&name[..], DType::F64)).collect();
    let program = compiled(&names.join("+"), &operands)?;
    let x = array![1.0, 0.5];
    let views: Vec<AnyView<'_>> = names.iter().map(|_| (&x).into()).collect();
    assert_eq!(program.run(&views)?, AnyArray::from(array![10_000.0, 5_000.0]));
    Ok(())
}

#[test]
fn chains_of_a_hundred_thousand_steps_run() -> Outcome {
    // Fifty thousand steps on one value, and a hundred thousand that share theirs.
    let mut build = Builder::new(Promotion::Numpy);
    let x = build.operand("x", DType::I64);
    let mut deep = x;
    for _ in 0..50_000 {
        deep = build.apply(Op::Negative, &[deep])?;
    }
    for _ in 0..100_000 {
        let more = build.apply(Op::Add, &[deep, x])?;
        deep = build.apply(Op::BitwiseAnd, &[more, deep])?;
    }
    let program = build.finish(deep)?;
    let x = array![0_i64, 1, 6, -1];
    let expected = x.mapv(|x| (0..100_000).fold(x, |deep, _| deep.wrapping_add(x) & deep));
    assert_eq!(program.run(&[(&x).into()])?, AnyArray::from(expected));
    Ok(())
}

#[test]
fn two_thousand_reductions_are_as_many_stages() -> Outcome {
    let mut build = Builder::new(Promotion::Numpy);
    let x = build.operand("x", DType::F64);
    let mut deep = x;
    for _ in 0..2_000 {
        let sum = build.reduce(Fold::Maximum, deep, Some(&[0]), true)?;
        deep = build.apply(Op::Maximum, &[sum, x])?;
        deep = build.transpose(deep, None);
        deep = build.insert_axes(deep, &[]);
    }
    let program = build.finish(deep)?;
    let x = array![3.0, 7.0];
    assert_eq!(program.run(&[(&x).into()])?, AnyArray::from(array![7.0, 7.0]));
    Ok(())
}

#[test]
fn a_second_ellipsis_is_refused() -> Outcome {
    use simulcast::program::AxisPattern::{New, Rest};
    let mut build = Builder::new(Promotion::Numpy);
    let x = build.operand("x", DType::F64);
    let once = build.insert_axes(x, &[Rest, New]);
    let twice = build.insert_axes(x, &[Rest, New, Rest]);
    let program = build.clone().finish(once)?;
    assert_eq!(program.bind(&[(&array![1.0]).into()]).shape()?, [1, 1]);
    let said = "an index is made of `:`, `None` and one `...` alone";
    assert_eq!(build.finish(twice).unwrap_err().to_string(), said);
    Ok(())
}

#[test]
#[should_panic(expected = "the node is of another builder")]
fn a_node_of_another_builder_is_no_node() {
    let mut one = Builder::new(Promotion::Numpy);
    one.operand("x", DType::F64);
    let stranger = one.operand("y", DType::F64);
    let mut other = Builder::new(Promotion::Numpy);
    let own = other.operand("x", DType::F64);
    let _ = other.apply(Op::Add, &[own, stranger]);
}

#[test]
fn programs_of_numbers_alone() -> Outcome {
    let cases = [
        ("1", AnyArray::scalar(1_i64)),
        ("(1 + 2j) * 2", AnyArray::scalar(Complex::new(2.0, 4.0))),
        ("True", AnyArray::scalar(true)),
        ("'text'", AnyArray::scalar("text".to_owned())),
        ("float16(1) / 3", AnyArray::scalar(half::f16::from_f32(1.0 / 3.0))),
        ("sum(2.5)", AnyArray::scalar(2.5)),
        ("sum(float16(2.5))", AnyArray::scalar(half::f16::from_f32(2.5))),
        ("mean(True)", AnyArray::scalar(1.0)),
        ("(2)[None, None]", AnyArray::from(array![[2_i64]])),
        ("('a')[None].T", AnyArray::from(array!["a".to_owned()])),
        ("where(True, 'a', 'b')", AnyArray::scalar("a".to_owned())),
        ("9223372036854775807 + 1 - 1", AnyArray::scalar(i64::MAX)),
    ];
    for (text, expected) in cases {
        assert_eq!(compiled(text, &[])?.run(&[])?, expected, "{text}");
    }
    assert!(refused("2 ** 100", &[]).contains("does not fit"), "{}", refused("2 ** 100", &[]));
    Ok(())
}

#[test]
fn reductions_that_make_no_sense_are_refused_and_odd_ones_are_done() {
    let x = || AnyArray::from(array![[1.5_f32, 2.5, 3.0], [4.0, 5.0, 6.0]]);
    let none = || AnyArray::from(ArrayD::<f32>::zeros(IxDyn(&[2, 0])));
    let words = || AnyArray::from(array!["a".to_owned()]);
    let ints = || AnyArray::from(array![100_i8, 100, -1]);
    let bools = || AnyArray::from(array![true, true, false]);
    let complex = || AnyArray::from(array![Complex::new(1.0_f32, 5.0), Complex::new(1.0, 7.0)]);
    let cases = [
        ("sum(x, axis=2)", x(), "axis 2"),
        ("sum(x, axis=-3)", x(), "axis -3"),
        ("sum(x, axis=(0, -2))", x(), "(0, -2)"),
        ("x.transpose(0, 0)", x(), "(0, 0)"),
        ("x[:, :, :]", x(), "3"),
        ("max(x, axis=1)", none(), "no max of no elements"),
        ("sum(x, axis=1)", none(), "[0.0, 0.0]"),
        ("prod(x)", none(), "1.0"),
        ("max(x, axis=0, keepdims=True)", none(), "shape=[1, 0]"),
        ("mean(x, axis=1)", none(), "[NaN, NaN]"),
        ("sum(x)", words(), "string"),
        ("max(x)", words(), "string"),
        ("sum(x)", ints(), "199"),
        ("mean(x)", ints(), "66.3"),
        ("max(x)", ints(), "100"),
        ("sum(x)", bools(), "2"),
        ("max(x)", bools(), "true"),
        ("prod(x)", bools(), "0"),
        ("max(x)", complex(), "im: 7.0"),
        ("mean(x)", complex(), "im: 6.0"),
    ];
    for (text, array, part) in cases {
        let said = refused(text, &[("x", array)]);
        assert!(said.contains(part), "{text}: {said}");
    }
}

#[test]
fn views_of_more_elements_than_there_is_memory() -> Outcome {
    let one = array![1_f64];
    let huge = |shape: &[usize]| {
        let strides = vec![0; shape.len()];
        // SAFETY: every index is the one element.
        unsafe { AnyView::from_raw(DType::F64, one.as_ptr().cast(), shape, &strides) }
    };
    let double = compiled("x * 2", &[("x", DType::F64)])?;
    let most = usize::MAX / 2;
    // Too large as a result, too large to count, and none at all although the other axes are large.
    assert!(double.run(&[huge(&[HUGE, 1 << (usize::BITS / 16 * 5)])]).is_err());
    assert!(double.run(&[huge(&[1 << (usize::BITS - 2)])]).is_err());
    let many = 1 << (usize::BITS - 3);
    assert_eq!(double.run(&[huge(&[many, 0])])?.shape(), [many, 0]);
    assert_eq!(double.run(&[huge(&[0, most])])?.shape(), [0, most]);
    let outer = compiled("x + y", &[("x", DType::F64), ("y", DType::F64)])?;
    assert!(outer.run(&[huge(&[HUGE, 1]), huge(&[HUGE])]).is_err());
    assert!(outer.run(&[huge(&[HUGE, 1, 0]), huge(&[HUGE, 1])]).is_err());
    let sum = compiled("sum(x + y, axis=0)", &[("x", DType::F64), ("y", DType::F64)])?;
    assert!(sum.run(&[huge(&[HUGE, 1]), huge(&[HUGE])]).is_err());
    assert!(sum.run(&[huge(&[2, 1]), huge(&[1 << (usize::BITS - 4)])]).is_err());
    assert_eq!(sum.run(&[huge(&[0, 1]), huge(&[3])])?, AnyArray::from(array![0.0, 0.0, 0.0]));
    assert_eq!(sum.run(&[huge(&[HUGE, 0]), huge(&[1])])?.shape(), [0]);
    let total = compiled("sum(x)", &[("x", DType::F64)])?;
    assert_eq!(total.run(&[huge(&[0, most])])?, AnyArray::scalar(0.0));
    assert_eq!(total.run(&[huge(&[1 << 14, 1 << 6])])?, AnyArray::scalar(1048576.0));
    // An output that is none, and one of the wrong rank.
    let mut out = ArrayD::<f64>::zeros(IxDyn(&[]));
    assert!(double.run_into(&[huge(&[1])], &mut (&mut *out).into()).is_err());
    let mut out = Array1::<f64>::zeros(0);
    assert!(double.run_into(&[huge(&[3])], &mut (&mut *out).into()).is_err());
    double.run_into(&[huge(&[1])], &mut (&mut *out).into())?;
    Ok(())
}

#[test]
fn every_operation_goes_by_the_rule() -> Outcome {
    let shapes: [(&[usize], &[usize]); 8] = [
        (&[2, 3, 4], &[3]),
        (&[2, 3, 4], &[3, 4]),
        (&[2, 3, 4], &[2, 3, 4]),
        (&[2, 3, 4], &[1]),
        (&[2, 3, 4], &[3, 1]),
        (&[3], &[2, 3, 1]),
        (&[2, 1, 4], &[1, 3, 1]),
        (&[], &[3]),
    ];
    let rules = [
        Rule::Exact,
        Rule::Unidirectional,
        Rule::Pdpd { axis: Some(1) },
        Rule::Pdpd { axis: None },
        Rule::Legacy { axis: Some(0) },
        Rule::Paddle { axis: Some(1) },
        Rule::Paddle { axis: Some(-1) },
    ];
    let text = "(x - y * 2) * 3 - y";
    let program = compiled(text, &[("x", DType::F64), ("y", DType::F64)])?;
    let total = compiled(&format!("sum({text}, axis=0)"), &[("x", DType::F64), ("y", DType::F64)])?;
    for rule in rules {
        for (x, y) in shapes {
            let numbers = |shape: &[usize]| {
                let len = shape.iter().product::<usize>();
                ArrayD::from_shape_vec(shape, (0..len).map(|n| n as f64 + 0.5).collect())
            };
            let (x, y) = (numbers(x)?, numbers(y)?.mapv(|y| y * 7.0));
            let views = [AnyView::from(&x), AnyView::from(&y)];
            // Operation by operation: what the rule says of two arrays, and one on the next.
            let two = |a: &ArrayD<f64>, b: &ArrayD<f64>| -> Result<ArrayD<f64>, _> {
                try_zip_by(rule, (a.view(), b.view()))?.try_map(|a, b| a - b)
            };
            let steps = two(&x, &(&y * 2.0)).and_then(|first| two(&(first * 3.0), &y));
            let run = program.bind(&views).rule(rule);
            match steps {
                Ok(expected) => {
                    assert_eq!(run.compute()?.typed::<f64>(), Some(expected.view()), "{rule:?}");
                    assert_eq!(run.shape()?, expected.shape());
                    if expected.ndim() > 0 {
                        let sum = expected.sum_axis(ndarray::Axis(0));
                        let got = total.bind(&views).rule(rule).compute()?;
                        assert_eq!(got.typed::<f64>(), Some(sum.view()), "{rule:?}");
                    }
                }
                Err(_) => {
                    let error = run.compute().map(|_| ()).map_err(|error| error.kind);
                    assert!(matches!(error, Err(ProgramErrorKind::Broadcast(_))), "{rule:?}");
                }
            }
        }
    }
    // Rules for one operand, of operations on one.
    let x = array![1.0, 4.0, 9.0];
    let roots = compiled("sqrt(x) * 2", &[("x", DType::F64)])?;
    let views = [AnyView::from(&x)];
    let to = roots.bind(&views).rule(Rule::To { target: &[2, 3] }).compute()?;
    assert_eq!(to, AnyArray::from(array![[2.0, 4.0, 6.0], [2.0, 4.0, 6.0]]));
    assert!(roots.bind(&views).rule(Rule::To { target: &[3, 2] }).compute().is_err());
    let root = compiled("sqrt(x)", &[("x", DType::F64)])?;
    let onto = Rule::Axes { shape: &[3, 2], broadcast_axes: &[1] };
    let axes = root.bind(&views).rule(onto).compute()?;
    assert_eq!(axes, AnyArray::from(array![[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]]));
    Ok(())
}

#[test]
fn errors_say_where_their_values_stand() -> Outcome {
    let expr = Expr::parse("x + x * y")?;
    let program = expr.compile(&[("x", DType::F64), ("y", DType::F64)], Promotion::Numpy)?;
    let (x, y) = (array![1.0, 2.0, 3.0], array![1.0]);
    let views = [AnyView::from(&x), AnyView::from(&y)];
    let error = program.bind(&views).rule(Rule::Exact).compute().map(|_| ()).unwrap_err();
    assert_eq!((error.span.clone(), error.operands[1].span.clone()), (4..9, 8..9));
    assert_eq!(error.operands[0].span, 0..1);
    let shapes = [("x", DType::F64, &[3][..]), ("y", DType::F64, &[1])];
    let shown = Diagnostic::new(&expr, error, &shapes, Rule::Exact, Promotion::Numpy).to_string();
    assert!(shown.contains("axis 0 (-1): 3 and 1 differ, which exact does not allow"), "{shown}");
    Ok(())
}

#[test]
fn results_that_go_past_the_caches_are_those_of_the_steps() -> Outcome {
    type Each = fn([f32; 4]) -> f32;
    let shape = (2053, 2111);
    let of = |scale: usize| {
        Array2::from_shape_fn(shape, |(i, j)| ((i * 31 + j * scale) % 1009) as f32 / 7.0 - 50.0)
    };
    let (x, y) = (of(7), of(13));
    let (r, s) = (x.row(5).to_owned(), y.row(9).mapv(|v| v + 0.5));
    let views = [AnyView::from(&x), (&y).into(), (&r).into(), (&s).into()];
    let cases: [(&str, Each); 7] = [
        ("x * y + r", |[x, y, r, _]| x * y + r),
        ("abs(x)", |[x, ..]| x.abs()),
        ("x * 3", |[x, ..]| x * 3.0),
        ("where(x > y, x, y)", |[x, y, ..]| if x > y { x } else { y }),
        ("where(x <= r, r, x)", |[x, _, r, _]| if x <= r { r } else { x }),
        ("(x - r) / s * r + s", |[x, _, r, s]| (x - r) / s * r + s),
        ("floor(x * y) - (x - r) * s", |[x, y, r, s]| (x * y).floor() - (x - r) * s),
    ];
    for (text, f) in cases {
        let program = compiled(text, &["x", "y", "r", "s"].map(|name| (name, DType::F32)))?;
        let expected = Array2::from_shape_fn(shape, |(i, j)| f([x[[i, j]], y[[i, j]], r[j], s[j]]));
        for level in Level::available() {
            let leveled = program.at_level(level)?;
            // Rows that begin and end within lines, each elsewhere or all at the same place.
            for gap in [3, 17] {
                let mut wide = Array2::<f32>::zeros((shape.0, shape.1 + gap));
                let mut part = wide.slice_mut(ndarray::s![.., 1..=shape.1]);
                leveled.run_into(&views, &mut (&mut *part).into())?;
                assert!(part == expected, "{text} at {}", level.name());
                assert!(wide.column(0).iter().chain(wide.column(shape.1 + 1)).all(|&v| v == 0.0));
            }
        }
    }
    Ok(())
}

#[test]
fn any_number_of_threads_gives_the_same_bits() -> Outcome {
    set_threads(8);
    // More than the caches hold, so that results are streamed; rows that end within a line.
    let (rows, columns) = (1031, 2039);
    let x = Array2::from_shape_fn((columns, rows), |(i, j)| (i * 7 + j) as f64 / 3.0);
    let y = Array1::from_shape_fn(columns, |j| j as f32);
    let views = [AnyView::from(&x), AnyView::from(&y)];
    let operands = [("x", DType::F64), ("y", DType::F32)];
    for (text, cut) in [("x.T * y + 1", 1000), ("sum(x.T * y, axis=1)", 7), ("sum(x.T * y)", 0)] {
        let program = compiled(text, &operands)?;
        let whole = program.bind(&views).threads(1).compute()?;
        for threads in [2, 3, 8] {
            assert!(program.bind(&views).threads(threads).compute()? == whole, "{text} {threads}");
        }
        let whole = whole.typed::<f64>().ok_or("another type")?;
        match whole.ndim() {
            2 => assert_eq!(whole[[cut, 2038]], x[[2038, cut]] * 2038.0 + 1.0),
            1 => {
                let expected: f64 = (0..columns).map(|k| x[[k, cut]] * f64::from(y[k])).sum();
                assert!((whole[[cut]] - expected).abs() <= expected * 1e-13);
            }
            _ => {}
        }
        if whole.ndim() > 0 {
            let mut parts = ArrayD::<f64>::zeros(whole.raw_dim());
            let (mut low, mut high) = parts.view_mut().split_at(ndarray::Axis(0), cut);
            let ready = program.bind(&views).by_rows()?;
            ready.rows_into(0..cut, &mut (&mut *low).into())?;
            ready.rows_into(cut..rows, &mut (&mut *high).into())?;
            assert!(parts == whole, "{text}");
        }
    }
    Ok(())
}
