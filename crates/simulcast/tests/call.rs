//! Programs called by name: types found when they run, and errors that point into the text.

use ndarray::{Array1, Array2, Array3, ArrayD, Ix1, Ix2, array, s};
use simulcast::program::{Argument, Hoisting};
use simulcast::{AnyArray, AnyView, DType, Program, ProgramError, ProgramErrorKind, Rule, eval};

#[test]
fn one_line_gives_an_array_of_the_type_it_has() -> Result<(), ProgramError> {
    let (x, mean) = (array![[1_f32, 2.0], [3.0, 6.0]], array![2_f32, 4.0]);
    let y: Array2<f32> = eval("(x - mean) / 2", (("x", &x), ("mean", &mean)))?.try_into()?;
    assert_eq!(y, array![[-0.5, -1.0], [0.5, 1.0]]);
    let count: ArrayD<i64> = eval("sum(x > mean)", (("x", &x), ("mean", &mean)))?.try_into()?;
    assert_eq!(count, ndarray::arr0(2_i64).into_dyn());
    let wrong: Result<Array3<f32>, _> = eval("x", ("x", &x))?.try_into();
    assert_eq!(
        wrong.map_err(|error| error.to_string()),
        Err("the array is float32 (2, 2), not float32 with 3 axes".into())
    );
    Ok(())
}

#[test]
fn arguments_come_in_any_order_and_form() -> Result<(), ProgramError> {
    let program = Program::parse("x - y * e")?;
    let (x, y) = (array![10.0, 20.0], array![1.0, 2.0]);
    let expected = AnyArray::from(array![8.0, 16.0]);
    let (vx, vy, ve) =
        (AnyView::from(&x), AnyView::from(y.view()), AnyView::from(&*y).broadcast_to(&[2]));
    assert!(ve.is_ok());
    assert_eq!(program.call((("e", 2), ("y", &y), ("x", &x)))?.compute()?, expected);
    assert_eq!(program.call([("y", &y), ("x", &x), ("e", &array![2.0])])?.compute()?, expected);
    let pairs =
        vec![("x", Argument::from(vx.clone())), ("y", vy.clone().into()), ("e", 2.0.into())];
    assert_eq!(program.call(&pairs[..])?.compute()?, expected);
    assert_eq!(program.call(pairs)?.compute()?, expected);
    // Without an argument, `e` is the number.
    let y = program.call([("x", vx), ("y", vy)])?.into_array::<f64, Ix1>()?;
    assert_eq!(y, array![10.0 - std::f64::consts::E, 20.0 - 2.0 * std::f64::consts::E]);
    assert_eq!(eval("1 + 2", ())?.into_array::<i64, ndarray::Ix0>()?, ndarray::arr0(3));
    Ok(())
}

#[test]
fn what_was_compiled_is_kept_for_each_list_of_types() -> Result<(), ProgramError> {
    let program = Program::parse("1 / x")?;
    let at = |x: f64| -> Result<f64, ProgramError> {
        Ok(program.call(("x", x))?.into_array::<f64, ndarray::Ix0>()?.into_scalar())
    };
    // Numbers stand in the program: those of other bits are other programs.
    assert_eq!((at(0.0)?, at(-0.0)?, at(0.0)?), (f64::INFINITY, f64::NEG_INFINITY, f64::INFINITY));
    assert!(at(f64::NAN)?.is_nan());
    let (single, double) = (array![2_f32], array![2_f64]);
    for _ in 0..3 {
        let (a, b) = (program.call(("x", &single))?, program.call(("x", &double))?);
        assert_eq!((a.dtype(), b.dtype()), (DType::F32, DType::F64));
        let again = program.call(("x", &single))?;
        assert!(std::ptr::eq(a.program(), again.program()));
        assert!(!std::ptr::eq(a.program(), b.program()));
    }
    // More lists than are kept.
    for x in 0..100 {
        assert_eq!(at(f64::from(x))?, 1.0 / f64::from(x));
    }
    let copy = program.clone();
    assert_eq!(copy.call(("x", &double))?.compute()?, AnyArray::from(array![0.5]));
    assert_eq!(
        (copy.to_string(), format!("{copy:?}")),
        ("1 / x".into(), "Program(\"1 / x\")".into())
    );
    Ok(())
}

#[test]
fn results_go_into_arrays_and_views_of_any_strides() -> Result<(), ProgramError> {
    let program = Program::parse("x + y")?;
    let (x, y) = (array![[1], [2]], array![10, 20, 30]);
    let call = program.call((("x", &x), ("y", &y)))?.threads(2).hoisting(Hoisting::Never);
    assert_eq!(call.shape()?, [2, 3]);
    let expected = array![[11, 21, 31], [12, 22, 32]];
    let mut out = Array2::<i32>::zeros((2, 3));
    call.write(&mut out)?;
    assert_eq!(out, expected);
    let mut wide = Array2::<i32>::zeros((4, 6));
    call.write(wide.slice_mut(s![..;-2, 1..;2]))?;
    assert_eq!(wide.slice(s![..;-2, 1..;2]), expected);
    assert_eq!(wide.sum(), expected.sum());
    let mut view = out.view_mut();
    call.write(&mut view)?;
    let mut any = AnyArray::from(Array2::<i32>::zeros((2, 3)));
    call.write(&mut any)?;
    assert_eq!(any, AnyArray::from(expected));

    let error = call.write(&mut Array2::<i64>::zeros((2, 3))).unwrap_err();
    assert!(matches!(error.kind, ProgramErrorKind::DType { .. }), "{error}");
    assert!(call.write(&mut Array1::<i32>::zeros(3)).is_err());
    let by = call.clone().rule(Rule::Pdpd { axis: Some(0) }).compute().unwrap_err();
    assert!(by.to_string().contains("operands of `+` do not broadcast"), "{by}");
    Ok(())
}

#[test]
fn names_that_do_not_meet_are_errors() {
    let x = array![1.0];
    let told = |text: &str, names: &[&str]| {
        let pairs: Vec<_> = names.iter().map(|name| (*name, &x)).collect();
        eval(text, pairs).unwrap_err().to_string()
    };
    assert_eq!(
        told("mean + 1", &["men"]),
        "the expression has no operand `men`; did you mean `mean`?"
    );
    assert_eq!(told("mean + 1", &["mean", "other"]), "the expression has no operand `other`");
    assert_eq!(told("x + x", &["x", "x"]), "`x` is given twice");
    let missing = told("mean + x", &["x"]);
    assert!(
        missing.contains("there is no operand `mean`") && missing.contains("^^^^"),
        "{missing}"
    );
    let broken = told("mean +", &["mean"]);
    assert!(broken.starts_with("error: ") && broken.contains("1 | mean +"), "{broken}");
}

#[test]
fn an_error_is_its_text_and_has_its_source() {
    let (a, b) = (array![[1, 2, 3], [4, 5, 6]], array![1, 2]);
    let error = eval("a * b", (("a", &a), ("b", &b))).unwrap_err();
    let shown = error.to_string();
    assert!(shown.contains("1 | a * b[:, None]"), "{shown}");
    assert_eq!(format!("{error:?}"), shown);
    let source = std::error::Error::source(&error).map(ToString::to_string);
    assert!(source.is_some_and(|text| text.starts_with("E1: a (2, 3) and b (2,)")));
    let typed = eval("a & b", (("a", &a), ("b", &array![1.0]))).unwrap_err();
    assert!(typed.to_string().contains("`&` is not defined on"), "{typed}");
    assert!(std::error::Error::source(&typed).is_some());

    // One error type for zips and programs.
    fn both(a: &Array2<i32>, b: &Array1<i32>) -> Result<Array2<i32>, ProgramError> {
        let _ = simulcast::try_zip((a, b))?;
        eval("a * b", (("a", a), ("b", b)))?.into_array::<i32, Ix2>().map_err(Into::into)
    }
    assert!(both(&a, &b).unwrap_err().to_string().starts_with("E1: A (2, 3) and B (2,)"));
}
