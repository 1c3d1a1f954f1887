//! Errors of expressions, shown in their text; suggested edits run.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use ndarray::ArrayD;
use simulcast::program::{Diagnostic, Expr};
use simulcast::types::Promotion;
use simulcast::{AnyArray, AnyView, DType, Rule};

type Operands<'a> = [(&'a str, DType, &'a [usize])];

/// An array of some zeros.
fn zeros(dtype: DType, shape: &[usize]) -> AnyArray {
    match dtype {
        DType::F32 => ArrayD::<f32>::zeros(shape).into(),
        DType::F64 => ArrayD::<f64>::zeros(shape).into(),
        DType::I8 => ArrayD::<i8>::zeros(shape).into(),
        DType::Bool => ArrayD::from_elem(shape, false).into(),
        other => panic!("{other}"),
    }
}

/// What becomes of an expression on operands like these: the result's shape, or the error.
fn run(
    text: &str,
    operands: &Operands<'_>,
    promotion: Promotion,
) -> Result<Vec<usize>, Box<Diagnostic>> {
    let expr = Expr::parse(text).map_err(|error| Diagnostic::of_text(text, error))?;
    let show = |error| Diagnostic::new(&expr, error, operands, Rule::Numpy, promotion);
    let declared: Vec<_> = operands.iter().map(|(name, dtype, _)| (*name, *dtype)).collect();
    let program = expr.compile(&declared, promotion).map_err(show)?;
    let arrays: Vec<AnyArray> = operands.iter().map(|(_, dtype, s)| zeros(*dtype, s)).collect();
    let views: Vec<AnyView<'_>> = arrays.iter().map(Into::into).collect();
    let result = program.run(&views).map_err(show)?;
    Ok(result.shape().to_vec())
}

/// The error as text; every edit that it suggests is made, and runs.
fn shown(text: &str, operands: &Operands<'_>) -> String {
    let diagnostic = run(text, operands, Promotion::Numpy).unwrap_err();
    for suggestion in diagnostic.suggestions() {
        if let Err(error) = run(&suggestion, operands, Promotion::Numpy) {
            panic!("{suggestion}\n{error}");
        }
    }
    diagnostic.to_string()
}

const F32: DType = DType::F32;

#[test]
fn shapes_that_clash() {
    let image: &Operands<'_> =
        &[("image", F32, &[32, 64, 56, 56]), ("mean", F32, &[64]), ("std", F32, &[64])];
    insta::assert_snapshot!("missing_axes", shown("(image - mean) * 2", image));
    insta::assert_snapshot!("an_operand_in_brackets", shown("image / (mean + std)", image));
    insta::assert_snapshot!(
        "an_operand_that_needs_brackets",
        shown("image - sqrt(mean) * std", image)
    );
    insta::assert_snapshot!("a_function", shown("maximum(image, mean)", image));
    insta::assert_snapshot!("a_condition", shown("image if mean > 0 else 0", image));
    for (text, suggested) in [
        ("image - (mean) * (std)", "image - ((mean) * (std))[:, None, None]"),
        ("image - sqrt(mean)", "image - sqrt(mean)[:, None, None]"),
        ("image - (mean).clip(0, 1)", "image - (mean).clip(0, 1)[:, None, None]"),
    ] {
        let diagnostic = run(text, image, Promotion::Numpy).unwrap_err();
        assert_eq!(diagnostic.suggestions().next().as_deref(), Some(suggested));
        assert_eq!(run(suggested, image, Promotion::Numpy).ok().as_deref(), Some(image[0].2));
    }
    let matrices: &Operands<'_> = &[("a", F32, &[3, 5]), ("b", F32, &[5, 3]), ("c", F32, &[4])];
    insta::assert_snapshot!("transposed", shown("a + b", matrices));
    insta::assert_snapshot!("the_second_comparison", shown("1 < a <= c", matrices));
    insta::assert_snapshot!("nothing_helps", shown("a.sum(axis=0) + c", matrices));
}

#[test]
fn axes_that_are_not_there() {
    let x: &Operands<'_> = &[("x", F32, &[3, 5])];
    insta::assert_snapshot!("no_such_axis", shown("1 + x.sum(axis=2)", x));
    insta::assert_snapshot!("no_order", shown("x.transpose(0, 0) + 1", x));
    insta::assert_snapshot!("too_many_indices", shown("1 + x[:, :, :, None]", x));
}

#[test]
fn types_that_do_not_go_together() {
    let mask: &Operands<'_> =
        &[("mask", DType::Bool, &[3]), ("x", F32, &[3]), ("k", DType::I8, &[3])];
    insta::assert_snapshot!("undefined", shown("1 + (mask - mask)", mask));
    insta::assert_snapshot!("bits_of_floats", shown("(x + 1) & k", mask));
    insta::assert_snapshot!("a_literal_that_does_not_fit", shown("k * 300 + x", mask));
    insta::assert_snapshot!("text_and_a_number", shown("'a' + k", mask));
    insta::assert_snapshot!("too_large_an_integer", shown("k + 10 ** 40", mask));
    let strict = run("x + k", mask, Promotion::Strict).unwrap_err();
    insta::assert_snapshot!("strict", strict.to_string());
    for text in
        ["x + k", "(x * 2) + (k - 1)", "where(mask, k, x)", "k if mask else x + 1", "x + (k) * (k)"]
    {
        let strict = run(text, mask, Promotion::Strict).unwrap_err();
        let edits: Vec<String> = strict.suggestions().collect();
        assert!(!edits.is_empty(), "{strict}");
        assert!(edits.iter().all(|edit| run(edit, mask, Promotion::Strict).is_ok()), "{strict}");
    }
}

#[test]
fn names_and_syntax() {
    let mean: &Operands<'_> = &[("mean", F32, &[3])];
    insta::assert_snapshot!("an_unknown_name", shown("1 + maen", mean));
    insta::assert_snapshot!(
        "an_unknown_function",
        run("exq(mean) + 1", mean, Promotion::Numpy).unwrap_err().to_string()
    );
    insta::assert_snapshot!(
        "a_module",
        run("np.exp(mean) + 1", mean, Promotion::Numpy).unwrap_err().to_string()
    );
    insta::assert_snapshot!(
        "matrix_product",
        run("mean @ mean", mean, Promotion::Numpy).unwrap_err().to_string()
    );
    insta::assert_snapshot!(
        "an_early_end",
        run("(mean + 1", mean, Promotion::Numpy).unwrap_err().to_string()
    );
}

#[test]
fn colours_are_added_and_nothing_else() {
    let image: &Operands<'_> = &[("image", F32, &[32, 64]), ("mean", F32, &[32])];
    let diagnostic = run("image - mean", image, Promotion::Numpy).unwrap_err();
    let styled = diagnostic.render(true);
    assert!(styled.contains("\u{1b}["));
    let mut plain = String::new();
    let mut rest = styled.as_str();
    while let Some((before, after)) = rest.split_once("\u{1b}[") {
        plain.push_str(before);
        rest = after.split_once('m').map_or("", |(_, after)| after);
    }
    plain.push_str(rest);
    assert_eq!(plain, diagnostic.render(false));
}

#[test]
fn a_shared_operand_is_pointed_at_where_it_clashes() {
    let x: &Operands<'_> = &[("x", F32, &[4]), ("y", F32, &[4, 3])];
    let diagnostic = run("x * x + (x + 1) * y", x, Promotion::Numpy).unwrap_err();
    assert_eq!(diagnostic.error().span, 8..19);
    // `(x + 1)[:, None]` would fit here, and then its product with `x * x` would not.
    assert_eq!(diagnostic.suggestions().collect::<Vec<_>>(), ["x * x + (x + 1) * y.T"]);
}
