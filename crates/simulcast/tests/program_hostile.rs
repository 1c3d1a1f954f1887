//! Programs that nobody would write on purpose: each gives its result or a clear error.

use ndarray::{Array1, Array2, ArrayD, ArrayView, IxDyn, array};
use simulcast::{
    AnyArray, AnyView, AxisPattern, Builder, Complex, DType, Expr, Fold, Literal, Node, Op,
    Program, ProgramErrorKind, Promotion, Rule,
};

type Outcome = Result<(), Box<dyn std::error::Error>>;

fn compiled(text: &str, operands: &[(&str, DType)]) -> Result<Program, Box<dyn std::error::Error>> {
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
