//! Every example of OpenVINO's "Broadcast Rules For Elementwise Operations", by section.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use simulcast_core::{Rule, Source, resolve};

struct Case {
    a: &'static [usize],
    b: &'static [usize],
    /// `None` is "broadcast won't happen".
    result: Option<&'static [usize]>,
}

const fn case(a: &'static [usize], b: &'static [usize], result: Option<&'static [usize]>) -> Case {
    Case { a, b, result }
}

fn check(rule: Rule<'_>, Case { a, b, result }: &Case) {
    let got = resolve(rule, &[*a, *b]);
    match result {
        Some(shape) => assert_eq!(got.unwrap().shape(), *shape, "{a:?} with {b:?}"),
        None => assert_eq!(got.unwrap_err().code(), "E1", "{a:?} with {b:?}"),
    }
}

// [E_BROADCAST_ANY_FUNC_1000]
#[test]
fn none_rules_1_and_2_equal_shapes_only() {
    check(Rule::Exact, &case(&[2, 3], &[2, 3], Some(&[2, 3])));
    check(Rule::Exact, &case(&[0], &[0], Some(&[0])));
    check(Rule::Exact, &case(&[2, 3], &[2, 1], None));
    check(Rule::Exact, &case(&[0], &[1], None));
    for (a, b) in [(&[][..], &[1][..]), (&[1], &[1, 1]), (&[3], &[2, 3])] {
        assert_eq!(resolve(Rule::Exact, &[a, b]).unwrap_err().code(), "E2");
    }
}

// [E_BROADCAST_ANY_FUNC_0010] [E_BROADCAST_ANY_FUNC_0020] [E_BROADCAST_ANY_FUNC_0030]
// [E_BROADCAST_ANY_CONSTR_X_0010]
#[test]
fn numpy_examples() {
    let cases = [
        case(&[], &[], Some(&[])),
        case(&[2, 3], &[1], Some(&[2, 3])),
        case(&[3], &[2, 3], Some(&[2, 3])),
        case(&[2, 3, 5], &[], Some(&[2, 3, 5])),
        case(&[2, 1, 5], &[1, 4, 5], Some(&[2, 4, 5])),
        case(&[6, 5], &[2, 1, 5], Some(&[2, 6, 5])),
        case(&[2, 1, 5], &[4, 1], Some(&[2, 4, 5])),
        case(&[3, 2, 1, 4], &[5, 4], Some(&[3, 2, 5, 4])),
        case(&[1, 5, 3], &[5, 2, 1, 3], Some(&[5, 2, 5, 3])),
        case(&[3], &[2], None),
        case(&[3, 1, 5], &[4, 4, 5], None),
    ];
    for case in &cases {
        check(Rule::Numpy, case);
    }
    let error = resolve(Rule::Numpy, &[[3, 1, 5], [4, 4, 5]]).unwrap_err();
    assert_eq!(error.axis(), Some(0), "a mismatch on the leftmost axis");
    assert_eq!(error.clashes().len(), 1);
}

// [E_BROADCAST_ANY_FUNC_1210] [E_BROADCAST_ANY_FUNC_1220] [E_BROADCAST_ANY_FUNC_1250]
#[test]
fn pdpd_examples() {
    const A: &[usize] = &[2, 3, 4, 5];
    let cases = [
        (Some(1), case(A, &[3, 4], Some(A))),
        (Some(1), case(A, &[3, 1], Some(A))),
        (Some(-1), case(A, &[4, 5], Some(A))),
        (None, case(A, &[4, 5], Some(A))),
        (Some(2), case(A, &[4, 5], Some(A))),
        (Some(0), case(A, &[1, 3], Some(A))),
        (None, case(A, &[], Some(A))),
        (Some(-1), case(A, &[5], Some(A))),
        (Some(3), case(A, &[5], Some(A))),
        // "only B to A broadcast is supported for PDPD"
        (Some(1), case(&[8, 1, 6, 1], &[7, 1, 5], None)),
    ];
    for (axis, case) in &cases {
        check(Rule::Pdpd { axis: *axis }, case);
    }
}

// [E_BROADCAST_ANY_FUNC_1200] [E_BROADCAST_ANY_FUNC_1230] [E_BROADCAST_ANY_FUNC_1240]
#[test]
fn pdpd_rules_1_4_and_5() {
    let pdpd = |axis, a: &[usize], b: &[usize]| {
        resolve(Rule::Pdpd { axis }, &[a, b]).map(|plan| plan.shape().to_vec())
    };
    let code = |axis, a: &[usize], b: &[usize]| pdpd(axis, a, b).unwrap_err().code();
    let a = &[2, 3, 4, 5];
    // Rule 1: B's rank is at most A's.
    assert_eq!(code(None, &[4, 5], &[2, 4, 5]), "E2");
    assert_eq!(code(Some(0), &[4, 5], &[4, 5, 1]), "E2");
    // Rule 4: -1 and no other negative value.
    assert_eq!(code(Some(-2), a, &[3, 4]), "E3");
    assert_eq!(code(Some(5), a, &[]), "E3");
    assert_eq!(pdpd(Some(4), a, &[]).unwrap(), a);
    // Rule 5: trailing ones that hang over the end are ignored, and nothing else is.
    for (axis, b) in [(3, &[5, 1][..]), (2, &[4, 5, 1]), (3, &[1, 1]), (1, &[3, 1, 1, 1])] {
        assert_eq!(pdpd(Some(axis), a, b).unwrap(), a, "{b:?} from {axis}");
    }
    assert_eq!(code(Some(3), a, &[5, 2]), "E11");
    assert_eq!(code(Some(1), a, a), "E1");
    // The default axis counts B's rank as given, so (5, 1) is laid from axis 2.
    assert_eq!(code(None, a, &[5, 1]), "E1");
}

// [E_BROADCAST_ANY_FUNC_1260]
#[test]
fn pdpd_with_size_0_gives_the_shape_of_a() {
    let pdpd = |a: &[usize], b: &[usize]| {
        resolve(Rule::Pdpd { axis: None }, &[a, b]).map(|plan| plan.shape().to_vec())
    };
    assert_eq!(pdpd(&[0], &[1]).unwrap(), [0]);
    assert_eq!(pdpd(&[0, 3], &[1, 3]).unwrap(), [0, 3]);
    assert_eq!(pdpd(&[2, 0], &[1]).unwrap(), [2, 0]);
    assert_eq!(pdpd(&[0, 3], &[3]).unwrap(), [0, 3]);
    assert_eq!(pdpd(&[1], &[0]).unwrap_err().code(), "E1");
    assert_eq!(pdpd(&[2, 3], &[0]).unwrap_err().code(), "E1");
}

// [E_BROADCAST_ANY_FUNC_1500] [E_BROADCAST_ANY_FUNC_1510]
#[test]
fn bidirectional_examples() {
    let cases: [(&[usize], &[usize], &[usize]); 5] = [
        (&[5], &[1], &[5]),
        (&[2, 3], &[3], &[2, 3]),
        (&[3, 1], &[3, 4], &[3, 4]),
        (&[3, 4], &[], &[3, 4]),
        (&[3, 1], &[2, 1, 6], &[2, 3, 6]),
    ];
    for (a, target, result) in cases {
        let plan = resolve(Rule::Bidirectional { target }, &[a]).unwrap();
        assert_eq!(plan.shape(), result, "{a:?} to {target:?}");
    }
    let error = resolve(Rule::Bidirectional { target: &[2] }, &[[3]]).unwrap_err();
    assert_eq!(
        error.to_string().split(';').next().unwrap(),
        "E1: A (3,) does not broadcast under rule bidirectional: axis 0 (-1): the target has 2, A has 3"
    );
}

// [E_BROADCAST_ANY_FUNC_1800]: the answers of OpenVINO's Broadcast in mode explicit, with the
// duplicates that it lets pass refused.
#[test]
fn mapping_answers() {
    let mapping = |data: &[usize], shape: &[usize], axes_mapping: &[usize]| {
        resolve(Rule::Mapping { shape, axes_mapping }, &[data])
            .map(|plan| plan.shape().to_vec())
            .map_err(|error| error.code())
    };
    assert_eq!(mapping(&[3], &[2, 3], &[1]), Ok(vec![2, 3]));
    assert_eq!(mapping(&[3], &[3, 2], &[0]), Ok(vec![3, 2]));
    assert_eq!(mapping(&[2, 3], &[2, 4, 3], &[0, 2]), Ok(vec![2, 4, 3]));
    assert_eq!(mapping(&[2, 3], &[3, 2], &[1, 0]), Err("E5"));
    assert_eq!(mapping(&[3, 3], &[3, 4], &[0, 0]), Err("E4"));
    assert_eq!(mapping(&[3], &[2, 3], &[2]), Err("E3"));
    assert_eq!(mapping(&[3], &[2, 3], &[usize::MAX]), Err("E3"));
    let error = resolve(Rule::Mapping { shape: &[2], axes_mapping: &[usize::MAX] }, &[[2]]);
    assert!(error.unwrap_err().to_string().contains(&format!("axis {} is out", usize::MAX)));
    assert_eq!(mapping(&[3], &[2, 3], &[0]), Err("E1"));
    assert_eq!(mapping(&[3], &[2, 1], &[1]), Err("E1"));
    assert_eq!(mapping(&[1], &[2, 3], &[1]), Ok(vec![2, 3]));
    assert_eq!(mapping(&[1, 3], &[2, 3], &[0, 1]), Ok(vec![2, 3]));
    assert_eq!(mapping(&[2, 3], &[2, 3], &[0]), Err("E7"));
    assert_eq!(mapping(&[3], &[2, 3], &[0, 1]), Err("E7"));
    assert_eq!(mapping(&[], &[2, 3], &[]), Ok(vec![2, 3]));
    assert_eq!(mapping(&[3], &[0, 3], &[1]), Ok(vec![0, 3]));
    assert_eq!(mapping(&[1], &[2, 0], &[1]), Ok(vec![2, 0]));
    assert_eq!(mapping(&[0], &[2, 0], &[1]), Ok(vec![2, 0]));
}

// [E_BROADCAST_ANY_FUNC_1600]
#[test]
fn to_is_one_directional() {
    let to = |data: &[usize], target: &[usize]| {
        resolve(Rule::To { target }, &[data]).map(|plan| plan.shape().to_vec())
    };
    assert_eq!(to(&[3], &[2, 3]).unwrap(), [2, 3]);
    assert_eq!(to(&[1], &[0]).unwrap(), [0]);
    assert_eq!(to(&[2, 3], &[1, 3]).unwrap_err().code(), "E1");
    assert_eq!(to(&[2, 3], &[3]).unwrap_err().code(), "E2");
    assert_eq!(to(&[1, 3], &[3]).unwrap_err().code(), "E2");
}

// [E_BROADCAST_ANY_FUNC_1100]
#[test]
fn unidirectional_keeps_the_first_shape() {
    let uni = |shapes: &[&[usize]]| {
        resolve(Rule::Unidirectional, shapes).map(|plan| plan.shape().to_vec())
    };
    assert_eq!(uni(&[&[2, 3, 4, 5], &[1, 1], &[5], &[]]).unwrap(), [2, 3, 4, 5]);
    assert_eq!(uni(&[&[3], &[2, 3]]).unwrap_err().code(), "E2");
    assert_eq!(uni(&[&[1, 3], &[2, 3]]).unwrap_err().code(), "E1");
    assert_eq!(uni(&[]).unwrap(), [0; 0]);
}

// [E_BROADCAST_ANY_FUNC_1400] [E_BROADCAST_ANY_FUNC_1410]: what Paddle 3 answered, A = (2, 3, 4, 5)
// where it is not given.
#[test]
fn paddle_answers() {
    let paddle = |axis: isize, a: &[usize], b: &[usize]| {
        resolve(Rule::Paddle { axis: Some(axis) }, &[a, b])
            .map(|plan| plan.shape().to_vec())
            .map_err(|error| error.code())
    };
    let a = &[2, 3, 4, 5][..];
    let ok = Ok(a.to_vec());
    for (axis, b) in [
        (1, &[3, 4][..]),
        (1, &[3, 1]),
        (-1, &[4, 5]),
        (2, &[4, 5]),
        (0, &[1, 3]),
        (-1, &[]),
        (3, &[5]),
    ] {
        assert_eq!(paddle(axis, a, b), ok, "{b:?} from {axis}");
    }
    assert_eq!(paddle(1, &[8, 1, 6, 1], &[7, 1, 5]), Ok(vec![8, 7, 6, 5]));
    assert_eq!(paddle(1, &[7, 1, 5], &[8, 1, 6, 1]), Ok(vec![8, 7, 6, 5]));
    assert_eq!(paddle(-1, a, &[5, 1]), Err("E1"));
    assert_eq!(paddle(1, a, &[3, 1, 1, 1]), Err("E3"));
    assert_eq!(paddle(-1, a, &[1, 1, 1, 1, 1]), Ok(vec![1, 2, 3, 4, 5]));
    assert_eq!(paddle(4, a, &[]), Err("E3"));
    assert_eq!(paddle(4, a, &[1]), Err("E3"));
    assert_eq!(paddle(7, a, a), ok);
    assert_eq!(paddle(-1, a, &[2, 1, 4, 5]), ok);
    assert_eq!(paddle(-1, &[4, 5], &[2, 4, 5]), Ok(vec![2, 4, 5]));
    assert_eq!(paddle(0, &[4, 5], &[4, 5, 1]), Ok(vec![4, 5, 1]));
    assert_eq!(paddle(-1, &[], &[1]), Ok(vec![1]));
    assert_eq!(paddle(-1, &[1, 3], &[2, 3]), Ok(vec![2, 3]));
    assert_eq!(paddle(-2, a, &[3, 4]), Err("E3"));
    assert_eq!(paddle(3, a, &[3]), Err("E1"));
    assert_eq!(paddle(3, a, &[3, 4]), Err("E3"));
    assert_eq!(paddle(-1, &[0, 3], &[1, 3]), Ok(vec![0, 3]));
    assert_eq!(paddle(-1, &[1], &[0]), Ok(vec![0]));
}

// [E_BROADCAST_ANY_FUNC_1300]: ONNX opsets 1 to 6, the examples of their text and two of the
// models that ONNX ships for opset 6.
#[test]
fn legacy_examples() {
    let legacy = |axis: Option<isize>, a: &[usize], b: &[usize]| {
        resolve(Rule::Legacy { axis }, &[a, b])
            .map(|plan| plan.shape().to_vec())
            .map_err(|error| error.code())
    };
    let a = &[2, 3, 4, 5][..];
    let ok = Ok(a.to_vec());
    assert_eq!(legacy(None, a, &[]), ok);
    assert_eq!(legacy(None, a, &[1, 1]), ok);
    assert_eq!(legacy(None, a, &[5]), ok);
    assert_eq!(legacy(None, a, &[4, 5]), ok);
    assert_eq!(legacy(Some(1), a, &[3, 4]), ok);
    assert_eq!(legacy(Some(0), a, &[2]), ok);
    assert_eq!(legacy(Some(0), &[2, 3], &[2, 1]), Ok(vec![2, 3]));
    assert_eq!(legacy(Some(0), &[2, 3], &[1, 3]), Ok(vec![2, 3]));
    // A single element lies anywhere; unlike PDPD, nothing else hangs over.
    assert_eq!(legacy(Some(3), a, &[1, 1]), ok);
    assert_eq!(legacy(Some(3), a, &[5, 1]), Err("E3"));
    assert_eq!(resolve(Rule::Pdpd { axis: Some(3) }, &[a, &[5, 1]]).unwrap().shape(), a);
    assert_eq!(legacy(Some(-2), a, &[1]), Err("E3"));
    assert_eq!(legacy(None, &[3], &[1, 1]), Err("E2"));
}

// [E_BROADCAST_ANY_FUNC_1300]: the case that converts to a wrong model elsewhere.
#[test]
fn legacy_axis_decides_where_elements_go() {
    let plan = resolve(Rule::Legacy { axis: Some(1) }, &[&[3, 3, 3][..], &[3]]).unwrap();
    assert_eq!(plan.sources(1).unwrap(), [Source::Added, Source::Kept(0), Source::Added]);
}

// [E_BROADCAST_ANY_ERR_0060]
#[test]
fn rules_take_their_number_of() {
    let one: &[&[usize]] = &[&[1]];
    let two: &[&[usize]] = &[&[1], &[1]];
    for rule in
        [Rule::Pdpd { axis: None }, Rule::Paddle { axis: None }, Rule::Legacy { axis: None }]
    {
        assert_eq!(resolve(rule, one).unwrap_err().code(), "E6");
    }
    for rule in [Rule::To { target: &[1] }, Rule::Bidirectional { target: &[1] }] {
        assert_eq!(resolve(rule, two).unwrap_err().code(), "E6");
    }
}
