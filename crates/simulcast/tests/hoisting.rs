//! Hoisting: which sub-expressions are computed at their own shape, that the result has the same bits,
//! and what memory they take.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use ndarray::{ArrayD, IxDyn};
use proptest::prelude::*;
use simulcast::program::Hoisting;
use simulcast::types::Promotion;
use simulcast::{AnyArray, AnyView, DType, Rule, TypedProgram};

const F32: DType = DType::F32;

fn program(text: &str, operands: &[(&str, DType)]) -> TypedProgram {
    TypedProgram::parse(text, operands).unwrap()
}

/// The expressions of the stages, and whether each is hoisted.
fn stages(program: &TypedProgram, shapes: &[&[usize]]) -> Vec<(String, bool, Vec<usize>)> {
    let strategy = program.strategy(shapes).unwrap();
    strategy.stages.into_iter().map(|s| (s.expression, s.is_hoisted, s.shape)).collect()
}

/// Numbers between 0.25 and 1.25 that differ.
fn filled(dtype: DType, shape: &[usize]) -> AnyArray {
    let mut state = shape.len() as u64 + 1;
    let numbers = ArrayD::from_shape_simple_fn(IxDyn(shape), || {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (state >> 40) as f64 / (1_u64 << 24) as f64 + 0.25
    });
    let mut build = simulcast::program::Builder::new(Promotion::Numpy);
    let x = build.operand("x", DType::F64);
    let x = build.cast(x, dtype).unwrap();
    build.finish(x).unwrap().run(&[AnyView::from(&numbers)]).unwrap()
}

/// Bytes of a contiguous array.
fn bytes(array: &AnyArray) -> Vec<u8> {
    let view = array.view();
    // SAFETY: results are row-major and without gaps.
    unsafe { std::slice::from_raw_parts(view.as_ptr(), view.len() * view.dtype().size()) }.to_vec()
}

#[test]
fn what_is_hoisted_depends_on_shapes_and_cost() {
    struct Case {
        text: &'static str,
        shapes: &'static [&'static [usize]],
        hoisted: &'static [(&'static str, &'static [usize])],
    }
    let full: &[usize] = &[1000, 1000];
    let cases = [
        // A row, a column, one number.
        Case {
            text: "x + exp(sin(r)) * tanh(r)",
            shapes: &[&[1000, 1000], &[1000]],
            hoisted: &[("exp(sin(r)) * tanh(r)", &[1000])],
        },
        Case {
            text: "x + exp(r)",
            shapes: &[&[1000, 1000], &[1000, 1]],
            hoisted: &[("exp(r)", &[1000, 1])],
        },
        Case { text: "x + exp(r)", shapes: &[&[1000, 1000], &[]], hoisted: &[("exp(r)", &[])] },
        // The same program, where nothing is smaller, or all is small.
        Case { text: "x + exp(r)", shapes: &[&[1000, 1000], &[1000, 1000]], hoisted: &[] },
        Case { text: "x + exp(r)", shapes: &[&[8, 8], &[8]], hoisted: &[] },
        Case { text: "x + exp(r)", shapes: &[&[0, 1000], &[1000]], hoisted: &[] },
        // Cheap, and not so cheap any more.
        Case { text: "x + r * s", shapes: &[&[1000, 1000], &[1000], &[1000]], hoisted: &[] },
        Case {
            text: "x + ((((r * s + r) * s + r) * s + r) * s + r)",
            shapes: &[&[1000, 1000], &[1000], &[1000]],
            hoisted: &[("(((r * s + r) * s + r) * s + r) * s + r", &[1000])],
        },
        // Half of the elements are saved at the price of a pass over as many.
        Case {
            text: "x + (r - s) * s",
            shapes: &[&[2, 500, 500], &[500, 500], &[500, 500]],
            hoisted: &[],
        },
        // A row within a matrix within a block; a middle axis.
        Case {
            text: "x + exp(s + exp(r))",
            shapes: &[&[50, 100, 200], &[200], &[100, 200]],
            hoisted: &[("exp(r)", &[200]), ("exp(s + #1)", &[100, 200])],
        },
        Case {
            text: "x * sin(r)",
            shapes: &[&[50, 100, 200], &[50, 1, 200]],
            hoisted: &[("sin(r)", &[50, 1, 200])],
        },
        // Neither operand is as large as the result.
        Case {
            text: "exp(x) - exp(r)",
            shapes: &[&[1000, 1], &[1000]],
            hoisted: &[("exp(x)", &[1000, 1]), ("exp(r)", &[1000])],
        },
        // What two hoisted values share is computed once.
        Case {
            text: "x * exp(sin(cos(sin(cos(sin(cos(sin(cos(r))))))))) \
                   + tanh(sin(cos(sin(cos(sin(cos(sin(cos(r)))))))))",
            shapes: &[&[1000, 1000], &[1000]],
            hoisted: &[
                ("sin(cos(sin(cos(sin(cos(sin(cos(r))))))))", &[1000]),
                ("exp(#1)", &[1000]),
                ("tanh(#1)", &[1000]),
            ],
        },
        // It is computed again where that takes less than a stage of its own.
        Case {
            text: "x * exp(sin(r)) + cos(sin(r))",
            shapes: &[&[1000, 1000], &[1000]],
            hoisted: &[("exp(sin(r))", &[1000]), ("cos(sin(r))", &[1000])],
        },
        Case {
            text: "where(x > exp(r), x, log(r))",
            shapes: &[&[1000, 1000], &[1000]],
            hoisted: &[("exp(r)", &[1000]), ("log(r)", &[1000])],
        },
        // Under a reduction.
        Case {
            text: "sum(x * exp(r), axis=0)",
            shapes: &[&[1000, 1000], &[1000]],
            hoisted: &[("exp(r)", &[1000])],
        },
    ];
    for Case { text, shapes, hoisted } in cases {
        let names = [("x", F32), ("r", F32), ("s", F32)];
        let program = program(text, &names[..shapes.len()]);
        let mut got = stages(&program, shapes);
        let last = got.pop().unwrap();
        let expected: Vec<_> =
            hoisted.iter().map(|(text, shape)| (text.to_string(), true, shape.to_vec())).collect();
        assert_eq!(got, expected, "{text} of {shapes:?}");
        assert!(!last.1, "{text}");
        // What runs is what is shown.
        let arrays: Vec<AnyArray> = shapes.iter().map(|shape| filled(F32, shape)).collect();
        let views: Vec<AnyView<'_>> = arrays.iter().map(AnyArray::view).collect();
        let run = program.bind(&views);
        let memory: usize = hoisted.iter().map(|(_, s)| 4 * s.iter().product::<usize>()).sum();
        let never = run.hoisting(Hoisting::Never);
        let own = never.memory(usize::MAX).unwrap();
        assert_eq!(run.memory(usize::MAX).unwrap(), own + memory as u64, "{text}");
        let (made, plain) = (run.compute().unwrap(), never.compute().unwrap());
        assert_eq!(bytes(&made), bytes(&plain), "{text} of {shapes:?}");
    }
    assert_eq!(
        stages(&program("x * 2", &[("x", F32)]), &[full]),
        [("x * 2.0".into(), false, full.to_vec())]
    );
}

#[test]
fn every_rule_hoists() {
    let (x, r) = (filled(F32, &[40, 30, 20]), filled(F32, &[30]));
    let operands = [x.view(), r.view()];
    let program = program("x + exp(sin(r))", &[("x", F32), ("r", F32)]);
    for rule in [Rule::Pdpd { axis: Some(1) }, Rule::Paddle { axis: Some(1) }] {
        let run = program.bind(&operands).rule(rule);
        let strategy = run.strategy().unwrap();
        let first = &strategy.stages[0];
        assert_eq!(
            (&*first.expression, first.is_hoisted, &*first.shape),
            ("exp(sin(r))", true, &[30][..])
        );
        assert_eq!(strategy.stages.len(), 2);
        let plain = run.hoisting(Hoisting::Never).compute().unwrap();
        assert_eq!(bytes(&run.compute().unwrap()), bytes(&plain), "{rule:?}");
        let ready = run.by_rows().unwrap();
        let mut rows = AnyArray::from(ArrayD::<f32>::zeros(&[2, 30, 20][..]));
        ready.rows_into(7..9, &mut rows.view_mut()).unwrap();
        assert_eq!(bytes(&rows), bytes(&plain)[7 * 2400..9 * 2400], "{rule:?}");
    }
}

#[test]
fn earlier_stages_and_texts_are_told_apart() {
    let program = program("x - log(sum(exp(x), axis=1, keepdims=True))", &[("x", F32)]);
    let shown = program.strategy(&[&[1000, 100]]).unwrap();
    assert!(shown.stages[0].execution.is_none() && shown.stages[2].execution.is_some());
    let shown = shown.to_string();
    let lines: Vec<&str> = shown.lines().filter(|line| line.starts_with('#')).collect();
    assert_eq!(
        lines.join("\n"),
        "#1 earlier  sum(exp(x), axis=1, keepdims=True)  float32 (1000, 1)\n\
         #2 hoisted  log(#1)                             float32 (1000, 1)\n\
         #3 result   x - #2                              float32 (1000, 100)"
    );
    let text =
        TypedProgram::parse("where(w == 'a', w + 'b', 'c')", &[("w", DType::String)]).unwrap();
    let shown = text.strategy(&[&[3]]).unwrap();
    assert!(shown.stages.iter().all(|stage| !stage.is_hoisted));
    let last = shown.stages.last().unwrap();
    assert_eq!((last.dtype, &last.shape[..]), (DType::String, &[3][..]));
}

#[test]
fn long_expressions_are_cut() {
    let deep = (0..60).fold(String::from("x"), |text, _| format!("sin({text})"));
    let program = program(&deep, &[("x", F32)]);
    let shown = program.strategy(&[&[3]]).unwrap().stages[0].expression.clone();
    assert!(shown.starts_with("sin(sin(") && shown.contains("...") && shown.len() < 200, "{shown}");
}

#[test]
fn a_result_that_cannot_be_is_the_same_error() {
    let program = program("x + exp(sin(r))", &[("x", F32), ("r", F32)]);
    let (x, r) = (filled(F32, &[300, 300]), filled(F32, &[7]));
    let operands = [x.view(), r.view()];
    let run = program.bind(&operands);
    let error = run.compute().unwrap_err();
    assert_eq!(error, run.hoisting(Hoisting::Never).compute().unwrap_err());
    assert_eq!(error, run.strategy().unwrap_err());
}

/// An expression of operands `a` to `e`, and their shapes.
fn written() -> impl Strategy<Value = (String, Vec<Vec<usize>>)> {
    let leaf =
        prop::sample::select(vec!["a", "b", "c", "d", "e", "2", "0.5"]).prop_map(String::from);
    let text = leaf.prop_recursive(5, 40, 3, |inner| {
        let one = prop::sample::select(vec!["exp", "sin", "tanh", "sqrt", "abs", "-"]);
        let two = prop::sample::select(vec!["+", "-", "*", "/", "<"]);
        prop_oneof![
            (one, inner.clone()).prop_map(|(f, x)| format!("{f}({x})")),
            (two, inner.clone(), inner.clone()).prop_map(|(op, x, y)| format!("({x}) {op} ({y})")),
            (inner.clone(), inner.clone(), inner)
                .prop_map(|(c, x, y)| format!("where(({c}) > 0.5, {x}, {y})")),
        ]
    });
    let whole = prop::collection::vec(prop::sample::select(vec![1, 2, 3, 7, 16, 33]), 0..4);
    let part = prop::collection::vec((0_usize..4, 0_usize..16), 5);
    (text, whole, part).prop_map(|(text, whole, parts)| {
        let shape = |(from, ones): (usize, usize)| {
            let own = whole.iter().enumerate().skip(from.min(whole.len()));
            own.map(|(k, &size)| if ones >> k & 1 == 1 { 1 } else { size }).collect()
        };
        (text, parts.into_iter().map(shape).collect())
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn hoisted_results_have_the_bits_of_others(
        (text, shapes) in written(),
        types in prop::collection::vec(prop::sample::select(vec![
            DType::F32, DType::F32, DType::F64, DType::F16, DType::Bf16, DType::I32, DType::Bool,
        ]), 5),
        reduced in prop::sample::select(vec!["", "sum", "max", "mean"]),
        threads in prop::sample::select(vec![1_usize, 2, 3, 8]),
    ) {
        let text = if reduced.is_empty() { text } else { format!("{reduced}({text}, axis=-1)") };
        let names = ["a", "b", "c", "d", "e"];
        let typed: Vec<(&str, DType)> = names.into_iter().zip(types.iter().copied()).collect();
        // Not every type has every operation, and a number has no axes.
        let Ok(program) = TypedProgram::parse(&text, &typed) else { return Ok(()) };
        let arrays: Vec<AnyArray> =
            shapes.iter().zip(&types).map(|(shape, &dtype)| filled(dtype, shape)).collect();
        let views: Vec<AnyView<'_>> = arrays.iter().map(AnyArray::view).collect();
        let run = program.bind(&views).threads(threads);
        let (always, never) = (run.hoisting(Hoisting::Always), run.hoisting(Hoisting::Never));
        let (Ok(hoisted), Ok(plain)) = (always.compute(), never.compute()) else {
            prop_assert_eq!(always.compute().err(), never.compute().err());
            return Ok(());
        };
        prop_assert_eq!(hoisted.shape(), plain.shape());
        prop_assert_eq!(bytes(&hoisted), bytes(&plain), "{}", text);
        prop_assert_eq!(bytes(&run.compute().unwrap()), bytes(&plain), "{}", text);
    }
}
