//! The rest of the public surface: texts of refusals, edits that do not apply, small questions.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use simulcast_core::{
    Code, CodeKind, Constraint, Cost, Edit, Interval, Names, Refusal, Rule, RuleKind, Side, Term,
    broadcast_shapes, resolve, resolve_dims,
};

// [E_BROADCAST_ANY_ERR_0010]
#[test]
fn every_refusal_has_a_code_and_a_text() {
    let side = |operand, size: usize| Side { operand, axis: 0, size: size.into() };
    let all = [
        Refusal::Clash { axis: 1, rank: 2, first: side(Some(0), 3), second: side(Some(1), 2) },
        Refusal::Clash { axis: 1, rank: 2, first: side(None, 3), second: side(None, 2) },
        Refusal::Rank { operand: 1, rank: 3, allowed: 2, at_most: true },
        Refusal::Rank { operand: 1, rank: 3, allowed: 2, at_most: false },
        Refusal::Axis { axis: 3, allowed: 0 },
        Refusal::Axis { axis: 3, allowed: 1 },
        Refusal::Axis { axis: -2, allowed: 3 },
        Refusal::Duplicate { operand: 1, axis: 0 },
        Refusal::NotIncreasing { position: 1 },
        Refusal::Operands { expected: 1, given: 2 },
        Refusal::Operands { expected: 2, given: 1 },
        Refusal::AxisCount { expected: 2, given: 1 },
        Refusal::Overflow,
        Refusal::Buffer { needed: 2, given: 1 },
        Refusal::Label { position: 1 },
        Refusal::Overhang { operand: 1, axis: 1, size: Interval::at_least(2), rank: 2 },
        Refusal::Index { index: 2, len: 2 },
        Refusal::Bind {
            operand: 1,
            axis: Some(1),
            given: 5,
            allowed: Interval::new(2, Some(4)).unwrap(),
        },
        Refusal::Bind { operand: 1, axis: None, given: 3, allowed: 2.into() },
        Refusal::Unnamed { operand: 1, axis: 1 },
        Refusal::Memory,
    ];
    let said: Vec<String> =
        all.iter().map(|refusal| format!("{}: {refusal}", refusal.code())).collect();
    insta::assert_snapshot!(said.join("\n"));
    let mut codes: Vec<&str> = all.iter().map(Refusal::code).collect();
    codes.dedup();
    let errors = Code::ALL.iter().filter(|code| code.kind == CodeKind::Error);
    let errors: Vec<&str> = errors.map(|code| code.code).collect();
    assert_eq!((errors[0], &errors[1..]), ("E0", &codes[..]));
}

// [E_BROADCAST_ANY_ERR_0020]
#[test]
fn an_edit_that_does_not_apply_changes_nothing() {
    let shapes = [vec![2, 1], vec![3]];
    let edits = [
        Edit::InsertAxes { operand: 2, axes: vec![0] },
        Edit::Transpose { operand: 2, order: vec![1, 0] },
        Edit::Transpose { operand: 0, order: vec![7, 7] },
        Edit::DropAxis { operand: 2, axis: 0 },
        Edit::DropAxis { operand: 0, axis: 5 },
        Edit::StartAxis { axis: 1 },
        Edit::UseRule(RuleKind::To),
    ];
    for edit in edits {
        assert_eq!(edit.apply(Rule::Numpy, &shapes), (Rule::Numpy, shapes.to_vec()), "{edit:?}");
    }
    let inserted = Edit::InsertAxes { operand: 1, axes: vec![9] }.apply(Rule::Numpy, &shapes);
    assert_eq!(inserted.1[1], [3, 1], "beyond the end is at the end");
}

// [E_BROADCAST_ANY_ERR_0010]
#[test]
fn three_operands_are_listed_and_other_refusals_have_no_axis() {
    let error = resolve(Rule::Numpy, &[[2], [3], [1]]).unwrap_err();
    assert!(error.to_string().starts_with("E1: A (2,), B (3,) and C (1,) do not broadcast"));
    let error = resolve(Rule::To { target: &[2] }, &[[1, 2]]).unwrap_err();
    assert_eq!(error.axis(), None);
    let dims = |text: &str| text.parse::<simulcast_core::ShapeText>().unwrap().dims;
    let plan = resolve_dims(Rule::Numpy, &[dims("n@2..4")]).unwrap();
    assert_eq!(plan.bind(&[[5]]).unwrap_err().operands(), [0]);
    let mapping = Rule::Mapping { shape: &[2], axes_mapping: &[0, 0] };
    assert_eq!(resolve(mapping, &[[2, 2]]).unwrap_err().operands(), [0]);
}

// [E_BROADCAST_ANY_ERR_0080]
#[test]
fn costs_are_counted_without_overflow() {
    let plan = resolve(Rule::Numpy, &[&[8, 1, 6, 1][..], &[7, 1, 5]]).unwrap();
    let cost = plan.cost();
    assert_eq!(cost, Cost { stored: Some(83), result: Some(1680) });
    assert_eq!((cost.stored_bytes(4), cost.result_bytes(4)), (Some(332), Some(6720)));
    assert!((cost.growth().unwrap() - 20.24).abs() < 0.01);
    assert_eq!(Cost { stored: Some(0), result: Some(0) }.growth(), None);
    let most = Cost { stored: Some(usize::MAX), result: Some(usize::MAX) };
    assert_eq!((most.stored_bytes(2), most.result_bytes(2)), (None, None));
    let two = resolve(Rule::Numpy, &[[usize::MAX], [usize::MAX]]).unwrap();
    assert_eq!(two.cost().stored, None, "the operands together are too many");
    assert_eq!(two.cost().result, Some(usize::MAX), "and the result is not");
    assert_eq!(two.cost().growth(), None);
    assert_eq!((two.cost().stored_bytes(1), two.cost().result_bytes(1)), (None, Some(usize::MAX)));
}

// [E_BROADCAST_ANY_FUNC_0090]
#[test]
fn small_questions() {
    assert_eq!(broadcast_shapes(&[&[2, 1][..], &[3], &[]]).unwrap(), [2, 3]);
    assert_eq!(broadcast_shapes::<&[usize]>(&[]).unwrap(), [0; 0]);
    assert!(broadcast_shapes(&[[2], [3]]).is_err());
    let to = resolve(Rule::To { target: &[2, 3] }, &[[3]]).unwrap();
    assert_eq!(to.target(), Some(&[2, 3][..]));
    assert_eq!(resolve(Rule::Numpy, &[[3]]).unwrap().target(), None);
    assert_eq!(to.rule().kind().to_string(), "to");
    assert!(!resolve(Rule::Numpy, &[[3]]).unwrap().is_repeated(0).unwrap());
    let stretching = RuleKind::ALL.iter().copied().filter(|kind| !kind.stretches());
    assert_eq!(stretching.collect::<Vec<_>>(), [RuleKind::Exact, RuleKind::Axes]);
}

// [E_BROADCAST_ANY_FUNC_2010]
#[test]
fn constraints_speak_of_by_name() {
    let dims = |text: &str| text.parse::<simulcast_core::ShapeText>().unwrap().dims;
    let plan = resolve_dims(Rule::Unidirectional, &[dims("n,?"), dims("m,3")]).unwrap();
    let names = Names::of(["image", "mask"]);
    let said: Vec<String> = plan.constraints().iter().map(|c| c.describe(&names)).collect();
    assert_eq!(said, ["axis 1 of image = 3", "m is 1 or n"]);
    assert_eq!(plan.shapes().len(), 2);
    let agree = Constraint::Agree(vec![
        Term::Size(2),
        Term::Symbol("n".into()),
        Term::Axis { operand: 0, axis: 1 },
    ]);
    assert_eq!(agree.to_string(), "2, n, axis 1 of operand 0: those that are not 1 are equal");
    assert_eq!(Term::Axis { operand: 0, axis: 1 }.to_string(), "axis 1 of operand 0");
    assert_eq!(agree.holds(|_| Some(2)), Some(true));
    assert_eq!(agree.holds(|_| Some(3)), Some(false));
}
