//! Gradients against central differences of the operations themselves: every rule, every operand.

mod common;

use common::indices;
use ndarray::{Array1, Array2, ArrayD, Axis, ShapeBuilder, array};
use simulcast::gradient::{Laying, vjp_by, vjp_clip, vjp_clip_by, vjp_prelu};
use simulcast::program::Expr;
use simulcast::types::Promotion;
use simulcast::{
    AnyArray, AnyView, Apply as _, DType, NamedAxes, Op, ProgramError, ProgramErrorKind, Rule,
    dynamic, resolve, sum_to, vjp,
};

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// Numbers between `low` and `high` that do not repeat soon.
fn made(shape: &[usize], low: f64, high: f64, salt: usize) -> ArrayD<f64> {
    let count = shape.iter().product::<usize>();
    let number = |n: usize| ((n + salt) * 7919 % 1009) as f64 / 1009.0;
    let numbers = (0..count).map(|n| low + (high - low) * number(n)).collect();
    ArrayD::from_shape_vec(shape, numbers).expect("as many")
}

/// The sum of `f(operands) * grad`, whose derivatives are the gradients.
fn loss(
    f: &dyn Fn(&[AnyView<'_>]) -> Result<AnyArray, ProgramError>,
    operands: &[ArrayD<f64>],
    grad: &ArrayD<f64>,
) -> f64 {
    let views: Vec<AnyView<'_>> = operands.iter().map(AnyView::from).collect();
    let result = f(&views).expect("a result").into_typed::<f64>().expect("of floats");
    assert_eq!(result.shape(), grad.shape());
    result.iter().zip(grad).map(|(y, g)| y * g).sum()
}

/// Compares gradients with what small steps of each element of each operand change.
fn check(
    what: &str,
    f: &dyn Fn(&[AnyView<'_>]) -> Result<AnyArray, ProgramError>,
    gradients: &[Option<AnyArray>],
    operands: &[ArrayD<f64>],
    grad: &ArrayD<f64>,
) {
    assert_eq!(gradients.len(), operands.len(), "{what}");
    for (at, gradient) in gradients.iter().enumerate() {
        let gradient = gradient.as_ref().and_then(AnyArray::typed::<f64>).expect("of floats");
        assert_eq!(gradient.shape(), operands[at].shape(), "{what}");
        for index in indices(operands[at].shape()) {
            let step = 1e-6;
            let moved = |by: f64| {
                let mut operands = operands.to_vec();
                operands[at][&index[..]] += by;
                loss(f, &operands, grad)
            };
            let slope = (moved(step) - moved(-step)) / (2.0 * step);
            let own = gradient[&index[..]];
            let close = (own - slope).abs() <= 1e-7 * slope.abs().max(1.0);
            assert!(close, "{what}, operand {at}, {index:?}: {own} against {slope}");
        }
    }
}

// [E_BROADCAST_ANY_FUNC_3110]
#[test]
fn gradients_of_one_operand_are_slopes() -> Outcome {
    let whole = |op: Op| match op {
        Op::Arcsin | Op::Arccos | Op::Arctanh => (-0.9, 0.9),
        Op::Arccosh => (1.2, 3.0),
        Op::Sqrt | Op::Cbrt | Op::Reciprocal | Op::Log | Op::Log2 | Op::Log10 => (0.3, 3.0),
        Op::Log1p => (-0.6, 3.0),
        // Between the steps.
        Op::Floor | Op::Ceil | Op::Trunc => (1.1, 1.9),
        Op::Round => (0.6, 1.4),
        Op::Absolute | Op::Relu | Op::Sign => (-2.0, -0.1),
        _ => (-1.4, 1.4),
    };
    let mut checked = 0;
    let one = Op::ALL.iter().copied().filter(|op| op.arity() == 1);
    for op in one {
        let (low, high) = whole(op);
        for (rule, shape) in [
            (Rule::To { target: &[2, 3, 4] }, &[3, 1][..]),
            (Rule::Axes { shape: &[2, 3], broadcast_axes: &[0] }, &[3]),
            (Rule::Mapping { shape: &[2, 3, 4], axes_mapping: &[0, 1] }, &[2, 3]),
            (Rule::Bidirectional { target: &[2, 1] }, &[1, 3]),
        ] {
            let x = made(shape, low, high, 5);
            let plan = resolve(rule, &[shape])?;
            let grad = made(plan.shape(), -1.0, 1.0, 11);
            let found = vjp_by(rule, op, &[(&x).into()], &(&grad).into());
            if op.row().slopes.is_empty() {
                assert!(found.is_err(), "{op}: {found:?}");
                continue;
            }
            let gradients = found?;
            let run = |views: &[AnyView<'_>]| op.apply_by(rule, Promotion::Numpy, views);
            check(op.name(), &run, &gradients, &[x], &grad);
            checked += 1;
        }
    }
    assert!(checked >= 4 * 37, "{checked}");
    Ok(())
}

/// Every operation of several operands that has slopes, but for choices.
fn of_several() -> impl Iterator<Item = Op> {
    let several = |op: &Op| op.arity() > 1 && !op.row().slopes.is_empty() && *op != Op::Where;
    Op::ALL.iter().copied().filter(several)
}

// [E_BROADCAST_ANY_FUNC_3110]
#[test]
fn gradients_under_every_rule_are_slopes() -> Outcome {
    let named = NamedAxes::new(&[&["a", "b"][..], &["c", "b", "a"]])?;
    let cases: [(Rule<'_>, &[usize], &[usize]); 11] = [
        (Rule::Numpy, &[2, 3, 1], &[3, 4]),
        (Rule::Numpy, &[], &[3]),
        (Rule::Exact, &[2, 3], &[2, 3]),
        (Rule::Unidirectional, &[2, 3], &[1, 3]),
        (Rule::Pdpd { axis: Some(1) }, &[2, 3, 2], &[3]),
        (Rule::Pdpd { axis: Some(1) }, &[2, 3], &[3, 1]),
        (Rule::Legacy { axis: Some(0) }, &[2, 3], &[2]),
        (Rule::Paddle { axis: Some(0) }, &[2], &[2, 3]),
        (named.as_rule(), &[2, 3], &[2, 3, 2]),
        (Rule::Numpy, &[0, 1], &[4]),
        (Rule::Numpy, &[3, 1], &[1, 0]),
    ];
    for (rule, left, right) in cases {
        let shape = resolve(rule, &[left, right])?.shape().to_vec();
        let grad = made(&shape, -1.0, 1.0, 3);
        for op in of_several() {
            // Divisors whose multiples the dividends do not meet, and distinct numbers.
            let a = made(left, 3.1, 3.4, 17);
            let b = if matches!(op, Op::Maximum | Op::Minimum) {
                made(right, 3.0, 3.5, 4)
            } else {
                made(right, 1.2, 1.4, 4)
            };
            if op == Op::MultiplyAdd {
                if rule == Rule::Numpy && !shape.contains(&0) {
                    let operands = [a, b, made(&[1], -1.0, 1.0, 9)];
                    let views = operands.each_ref().map(AnyView::from);
                    let gradients = vjp(op, &views, &(&grad).into())?;
                    check(op.name(), &|views| op.apply(views), &gradients, &operands, &grad);
                }
                continue;
            }
            let gradients = vjp_by(rule, op, &[(&a).into(), (&b).into()], &(&grad).into())?;
            let run = |views: &[AnyView<'_>]| op.apply_by(rule, Promotion::Numpy, views);
            check(&format!("{op} {rule:?}"), &run, &gradients, &[a, b], &grad);
        }
    }
    Ok(())
}

// [E_BROADCAST_ANY_FUNC_3110]
#[test]
fn choices_pass_the_gradient_to_what_was_chosen() -> Outcome {
    let (x, y) = (array![[1.0, 2.0, 3.0]], array![[2.0], [2.0]]);
    let grad = array![[1.0, 10.0, 100.0], [1000.0, 1e4, 1e5]];
    let views = [AnyView::from(&x), AnyView::from(&y)];
    let (grad_view, of) = (AnyView::from(&grad), |array: &Option<AnyArray>| {
        array.as_ref().and_then(AnyArray::typed::<f64>).map(|array| array.iter().copied().collect())
    });
    let values =
        |found: Vec<Option<AnyArray>>| -> Vec<Option<Vec<f64>>> { found.iter().map(of).collect() };
    // Where they are equal, half to each.
    let most = values(vjp(Op::Maximum, &views, &grad_view)?);
    assert_eq!(most, [Some(vec![0.0, 5005.0, 100_100.0]), Some(vec![6.0, 6000.0])]);
    let least = values(vjp(Op::Minimum, &views, &grad_view)?);
    assert_eq!(least, [Some(vec![1001.0, 5005.0, 0.0]), Some(vec![105.0, 105_000.0])]);
    // A condition decides and has no gradient; what is infinite is not multiplied by 0.
    let which = array![true, false, true];
    let endless = array![[f64::INFINITY, 10.0, 100.0], [1000.0, f64::NAN, 1e5]];
    let operands = [AnyView::from(&which), views[0].clone(), views[1].clone()];
    let chosen = values(vjp(Op::Where, &operands, &AnyView::from(&endless))?);
    assert_eq!(chosen[..2], [None, Some(vec![f64::INFINITY, 0.0, 100_100.0])]);
    assert!(chosen[2].as_ref().is_some_and(|last| last[0] == 10.0 && last[1].is_nan()));
    let real = which.mapv(f64::from);
    let operands = [AnyView::from(&real), views[0].clone(), views[1].clone()];
    assert_eq!(values(vjp(Op::Where, &operands, &grad_view)?)[0], None);
    // 0 to the power of 0 changes with neither.
    let zero = array![0.0];
    let power = vjp(Op::Power, &[(&zero).into(), (&zero).into()], &AnyView::from(&array![1.0]))?;
    assert_eq!(values(power), [Some(vec![0.0]), Some(vec![0.0])]);

    // prelu and clip, against slopes.
    let x = made(&[2, 3, 2], -1.0, 1.0, 2);
    let slope = made(&[3, 1], 0.1, 0.9, 8);
    let grad = made(&[2, 3, 2], -1.0, 1.0, 1);
    let found = vjp_prelu(&(&x).into(), &(&slope).into(), &(&grad).into())?;
    let run = |views: &[AnyView<'_>]| dynamic::prelu(&views[0], &views[1]);
    check("prelu", &run, &found, &[x.clone(), slope], &grad);
    let (lo, hi) = (made(&[3, 1], -0.5, 0.6, 20), made(&[2], 0.0, 0.7, 31));
    let found = vjp_clip(&(&x).into(), Some(&(&lo).into()), Some(&(&hi).into()), &(&grad).into())?;
    let run = |views: &[AnyView<'_>]| dynamic::clip(&views[0], Some(&views[1]), Some(&views[2]));
    check("clip", &run, &found, &[x.clone(), lo.clone(), hi.clone()], &grad);
    let mut found = vjp_clip(&(&x).into(), Some(&(&lo).into()), None, &(&grad).into())?;
    assert!(found.pop().is_some_and(|last| last.is_none()));
    let run = |views: &[AnyView<'_>]| dynamic::clip(&views[0], Some(&views[1]), None);
    check("clip below", &run, &found, &[x.clone(), lo], &grad);
    let mut found = vjp_clip(&(&x).into(), None, Some(&(&hi).into()), &(&grad).into())?;
    assert!(found.remove(1).is_none());
    let run = |views: &[AnyView<'_>]| dynamic::clip(&views[0], None, Some(&views[1]));
    check("clip above", &run, &found, &[x, hi], &grad);
    Ok(())
}

// [E_BROADCAST_ANY_FUNC_3110]
#[test]
fn clip_shares_its_gradient_as_its_expression_does() -> Outcome {
    let x = array![-1.0, 0.0, 0.5, 1.0, 2.0, f64::NAN];
    let (low, high, grad) = (AnyArray::scalar(0.0), AnyArray::scalar(1.0), Array1::<f64>::ones(6));
    let (x, grad) = (AnyView::from(&x), AnyView::from(&grad));
    // As JAX 0.10 has it of `jnp.clip`, but for NaN, which all three reach.
    let expected =
        [array![0.0, 0.5, 1.0, 0.5, 0.0, 1.0].into(), AnyArray::scalar(2.5), AnyArray::scalar(2.5)];
    let (lo, hi) = (low.view(), high.view());
    let found = vjp_clip(&x, Some(&lo), Some(&hi), &grad)?;
    assert_eq!(found.into_iter().flatten().collect::<Vec<_>>(), expected);
    let operands: [(&str, DType); 3] = ["x", "low", "high"].map(|name| (name, DType::F64));
    let whole = Expr::parse("sum(clip(x, low, high))")?.compile(&operands, Promotion::Numpy)?;
    let gradients = whole.gradient(&["x", "low", "high"])?.run(&[x.clone(), lo.clone(), hi])?;
    assert_eq!(gradients, expected);
    // Bounds that are equal, and those that have crossed.
    let (same, below) = (AnyArray::scalar(0.5), AnyArray::scalar(-3.0));
    let of_x =
        |lo: &AnyView<'_>, hi: &AnyView<'_>| -> Result<Vec<f64>, Box<dyn std::error::Error>> {
            let found = vjp_clip(&x, Some(lo), Some(hi), &grad)?;
            let of_x = found[0].as_ref().and_then(AnyArray::typed::<f64>).ok_or("no gradient")?;
            Ok(of_x.iter().copied().take(5).collect())
        };
    assert_eq!(of_x(&same.view(), &same.view())?, [0.0, 0.0, 0.25, 0.0, 0.0]);
    assert_eq!(of_x(&lo, &below.view())?, [0.0; 5]);
    Ok(())
}

// [E_BROADCAST_ANY_FUNC_3110]
#[test]
fn storage_threads_and_types_make_no_difference() -> Outcome {
    // Long sums of halves do not stall: 5000 times 1 is 5000, in steps of 1 it would stop at 2048.
    let one = half::f16::ONE;
    let (x, bias) = (Array2::from_elem((5000, 2), one), array![one, one]);
    let operands = [AnyView::from(&x), AnyView::from(&bias)];
    let found = vjp(Op::Multiply, &operands, &AnyView::from(&x))?;
    let sums = array![half::f16::from_f32(5000.0), half::f16::from_f32(5000.0)];
    assert_eq!(found[1], Some(AnyArray::from(sums)));
    assert_eq!(found[0].as_ref().map(AnyArray::dtype), Some(DType::F16));
    // Gradients have the types of their operands; integers have none.
    let (whole, real) = (array![[2], [3]], array![1.5_f32, 2.5]);
    let grad = array![[1.0, 2.0], [3.0, 4.0]];
    let operands = [AnyView::from(&whole), AnyView::from(&real)];
    let found = vjp(Op::Multiply, &operands, &AnyView::from(&grad))?;
    assert_eq!(found, [None, Some(AnyArray::from(array![11_f32, 16.0]))]);
    // Transposed, backwards, and as `sum_to` says.
    let grad = made(&[5, 7, 3], -1.0, 1.0, 2);
    let mut other = ArrayD::zeros(grad.raw_dim().f());
    other.assign(&grad);
    let (a, b) = (made(&[7, 1], 0.0, 1.0, 3), made(&[5, 7, 3], 0.0, 1.0, 4));
    let mut backward = b.clone();
    backward.invert_axis(Axis(0));
    let mut backward = backward.as_standard_layout().into_owned();
    backward.invert_axis(Axis(0));
    let views = [AnyView::from(&a), AnyView::from(&b)];
    let found = vjp(Op::Add, &views, &AnyView::from(&grad))?;
    let again = vjp(Op::Add, &[(&a).into(), (&backward).into()], &AnyView::from(&other))?;
    assert_eq!(found, again);
    let plan = resolve(Rule::Numpy, &[a.shape(), b.shape()])?;
    let sums = sum_to(&grad, &plan, 0);
    let own = found[0].as_ref().and_then(AnyArray::typed::<f64>).ok_or("another type")?;
    assert!(own.iter().zip(&sums).all(|(a, b)| (a - b).abs() < 1e-13));
    Ok(())
}

// [E_BROADCAST_ANY_ERR_3110]
#[test]
fn what_has_no_derivative_is_an_error() -> Outcome {
    let (x, n) = (array![1.0_f32, 2.0], array![1, 2]);
    let (x, n) = (AnyView::from(&x), AnyView::from(&n));
    let text = |found: Result<Vec<Option<AnyArray>>, ProgramError>| {
        found.map_err(|error| error.to_string()).expect_err("an error")
    };
    insta::assert_snapshot!(text(vjp(Op::Less, &[x.clone(), x.clone()], &x)));
    insta::assert_snapshot!(text(vjp(Op::Add, &[n.clone(), n.clone()], &x)));
    insta::assert_snapshot!(text(vjp(Op::Add, &[x.clone(), x.clone()], &n)));
    let long = array![1_f32, 2.0, 3.0];
    insta::assert_snapshot!(text(vjp(Op::Add, &[x.clone(), x.clone()], &(&long).into())));
    let z = AnyArray::scalar(simulcast::Complex::new(1.0_f64, 2.0));
    let found = vjp(Op::Exp, &[z.view()], &AnyArray::scalar(1.0).view());
    assert!(matches!(
        found,
        Err(ProgramError { kind: ProgramErrorKind::NoDerivative { name: "exp", .. }, .. })
    ));
    assert!(vjp(Op::Add, std::slice::from_ref(&x), &x).is_err());
    assert!(vjp(Op::Add, &[x.clone(), (&long).into()], &x).is_err());
    assert!(vjp_by(Rule::Exact, Op::Add, &[x.clone(), (&array![1_f32]).into()], &x).is_err());
    Ok(())
}

// [E_BROADCAST_ANY_FUNC_3110]
#[test]
fn numbers_fit_every_rule_beside_gradients() -> Outcome {
    let (x, grad) = (made(&[2, 3, 4], -1.0, 1.0, 2), made(&[2, 3, 4], -1.0, 1.0, 7));
    let (low, high) = (made(&[3], -0.8, -0.1, 5), AnyArray::scalar(0.5));
    let (x, low, grad) = (AnyView::from(&x), AnyView::from(&low), AnyView::from(&grad));
    let high = high.view();
    // As under NumPy's rule, where a number fits anyway.
    let operands = [x.clone(), high.clone()];
    let theirs = vjp(Op::Multiply, &operands, &grad)?;
    for rule in [Rule::Exact, Rule::Unidirectional, Rule::Pdpd { axis: Some(1) }] {
        assert_eq!(vjp_by(Laying { rule, numbers: 0b10 }, Op::Multiply, &operands, &grad)?, theirs);
    }
    assert!(vjp_by(Rule::Exact, Op::Multiply, &operands, &grad).is_err());
    // A bound for each channel is one with axes of 1.
    let channels = Laying { rule: Rule::Pdpd { axis: Some(1) }, numbers: 0b100 };
    let ours = vjp_clip_by(channels, &x, Some(&low), Some(&high), &grad)?;
    let column = low.typed::<f64>().ok_or("another type")?.into_shape_with_order((3, 1))?;
    let theirs = vjp_clip(&x, Some(&AnyView::from(&column)), Some(&high), &grad)?;
    assert_eq!((&ours[0], &ours[2]), (&theirs[0], &theirs[2]));
    let values = |found: &Option<AnyArray>| -> Option<Vec<f64>> {
        Some(found.as_ref()?.typed::<f64>()?.iter().copied().collect())
    };
    assert_eq!(values(&ours[1]), values(&theirs[1]));
    assert_eq!(ours[1].as_ref().map(|own| own.shape().to_vec()), Some(vec![3]));
    assert!(vjp_clip_by(channels.rule, &x, Some(&low), Some(&high), &grad).is_err());
    Ok(())
}
