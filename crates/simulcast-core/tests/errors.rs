//! Errors: their text, and fixes that were promised to work.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use common::all_shapes;
use simulcast_core::{BroadcastError, NamedAxes, Names, OwnedRule, Refusal, Rule, resolve};

/// Applies every fix of an error and resolves again.
fn check(rule: Rule<'_>, shapes: &[Vec<usize>]) -> usize {
    let Err(error) = resolve(rule, shapes) else { return 0 };
    for fix in error.fixes() {
        let (rule, shapes) = fix.edit().apply(rule, shapes);
        let plan = resolve(rule, &shapes);
        let said = fix.describe(error.names());
        assert_eq!(plan.unwrap_or_else(|e| panic!("{error}: {said}: {e}")).shape(), fix.result());
        assert_eq!(fix.rule().as_rule(), rule, "{error}");
        // As it is written, too.
        if let Some(text) = fix.expression(error.names()).strip_prefix("rule ") {
            let written: OwnedRule = text.parse().unwrap();
            assert_eq!(written.as_rule(), rule, "{error}");
        }
        if let Some(shape) = fix.shape() {
            assert!(shapes.iter().any(|s| s == shape), "{error}: {said}");
        }
    }
    error.fixes().len()
}

// [E_BROADCAST_ANY_ERR_0020]
#[test]
fn every_suggested_fix_resolves() {
    let shapes = all_shapes(3, 3);
    let mut fixes = 0;
    for a in &shapes {
        for b in &shapes {
            let pair = [a.clone(), b.clone()];
            for rule in [Rule::Exact, Rule::Numpy, Rule::Unidirectional] {
                fixes += check(rule, &pair);
            }
            for axis in [None, Some(0), Some(1), Some(3), Some(5)] {
                fixes += check(Rule::Pdpd { axis }, &pair);
                fixes += check(Rule::Legacy { axis }, &pair);
                fixes += check(Rule::Paddle { axis }, &pair);
            }
            fixes += check(Rule::To { target: b }, &pair[..1]);
            fixes += check(Rule::Bidirectional { target: b }, &pair[..1]);
            fixes += check(Rule::Axes { shape: b, broadcast_axes: &[0] }, &pair[..1]);
            fixes += check(Rule::Mapping { shape: b, axes_mapping: &[0] }, &pair[..1]);
        }
    }
    assert!(fixes > 50_000, "only {fixes} fixes were checked");
}

#[test]
fn fixes_lead_to_the_target_that_is_named() {
    // Stretched from (3, 1, 8, 8) it would be (3, 4, 8, 8), which nobody asked for.
    let target = [1, 4, 8, 8];
    let error = resolve(Rule::Bidirectional { target: &target }, &[[1, 3, 8, 8]]).unwrap_err();
    assert_eq!(error.fixes(), []);
    let error = resolve(Rule::Bidirectional { target: &[4, 3] }, &[[3, 4]]).unwrap_err();
    assert_eq!(error.fixes()[0].result(), [4, 3]);
}

fn said(rule: Rule<'_>, shapes: &[&[usize]]) -> String {
    let error = resolve(rule, shapes).unwrap_err();
    let mut lines = vec![error.to_string()];
    lines.extend(error.fixes().iter().map(|fix| format!("  {}", fix.describe(error.names()))));
    lines.join("\n")
}

// [E_BROADCAST_ANY_ERR_0010] [E_BROADCAST_ANY_ERR_0020] [E_BROADCAST_ANY_ERR_0030]
// [E_BROADCAST_ANY_ERR_0040]
#[test]
fn texts_name_the_axis_the_sizes_and_a_fix() {
    let texts = [
        said(Rule::Numpy, &[&[2, 3, 4], &[2, 4]]),
        said(Rule::Numpy, &[&[2, 3], &[2]]),
        said(Rule::Numpy, &[&[3, 2], &[2, 3]]),
        said(Rule::Numpy, &[&[5, 3, 1], &[5, 3]]),
        said(Rule::Numpy, &[&[32, 3, 224, 224], &[3]]),
        said(Rule::Numpy, &[&[3], &[2]]),
        said(Rule::Numpy, &[&[2, 3], &[4, 5]]),
        said(Rule::Numpy, &[&[2, 1], &[3, 1], &[4, 1], &[5, 1], &[6, 1]]),
        said(Rule::Exact, &[&[2, 3], &[1, 3]]),
        said(Rule::Exact, &[&[2, 3], &[3]]),
        said(Rule::Unidirectional, &[&[3], &[2, 3]]),
        said(Rule::Pdpd { axis: None }, &[&[2, 3, 4, 5], &[3, 4]]),
        said(Rule::Pdpd { axis: Some(3) }, &[&[2, 3, 4, 5], &[3, 4]]),
        said(Rule::Pdpd { axis: Some(9) }, &[&[2, 3, 4, 5], &[3, 4]]),
        said(Rule::Pdpd { axis: Some(1) }, &[&[8, 1, 6, 1], &[7, 1, 5]]),
        said(Rule::Paddle { axis: Some(3) }, &[&[2, 3, 4, 5], &[3, 4]]),
        said(Rule::Legacy { axis: Some(3) }, &[&[2, 3, 4, 5], &[5, 1]]),
        said(Rule::To { target: &[1, 3] }, &[&[2, 3]]),
        said(Rule::To { target: &[3] }, &[&[1, 3]]),
        said(Rule::Bidirectional { target: &[2] }, &[&[3]]),
        said(Rule::Axes { shape: &[2, 3], broadcast_axes: &[2] }, &[&[2]]),
        said(Rule::Axes { shape: &[2, 3], broadcast_axes: &[1] }, &[&[3]]),
        said(Rule::Mapping { shape: &[3, 2], axes_mapping: &[1, 0] }, &[&[2, 3]]),
        said(Rule::Mapping { shape: &[3, 2], axes_mapping: &[0] }, &[&[2, 3]]),
        said(Rule::Mapping { shape: &[3, 2], axes_mapping: &[0, 0] }, &[&[3, 3]]),
        said(Rule::Pdpd { axis: None }, &[&[3]]),
        said(Rule::To { target: &[3] }, &[]),
        said(Rule::Named { labels: &[0, 2] }, &[&[3, 3]]),
    ];
    insta::assert_snapshot!(texts.join("\n\n"));
}

// [E_BROADCAST_ANY_ERR_0010]
#[test]
fn the_operands_that_clash_are_named_and_no_others() {
    let shapes = all_shapes(2, 3);
    for a in &shapes {
        for b in &shapes {
            for c in &shapes {
                let Err(error) = resolve(Rule::Numpy, &[a, b, c]) else { continue };
                assert_eq!(error.clashes().first(), Some(error.refusal()), "{a:?} {b:?} {c:?}");
                assert_eq!(error.operands().len(), 2);
                let axes = error.clashes().iter().map(|clash| match clash {
                    Refusal::Clash { axis, .. } => *axis,
                    _ => panic!("{clash:?}"),
                });
                assert!(axes.is_sorted_by(|a, b| a < b), "{a:?} {b:?} {c:?}");
                for clash in error.clashes() {
                    let Refusal::Clash { first, second, .. } = clash else { panic!("{clash:?}") };
                    for side in [first, second] {
                        let shape = [a, b, c][side.operand.unwrap()];
                        assert_eq!(side.size.size(), Some(shape[side.axis]));
                        assert_ne!(side.size.size(), Some(1), "{a:?} {b:?} {c:?}");
                    }
                    assert_ne!(first.size, second.size);
                }
            }
        }
    }
    let error = resolve(Rule::Numpy, &[[1], [3], [4]]).unwrap_err();
    assert_eq!((error.operands(), error.sizes()), (vec![1, 2], vec![3.into(), 4.into()]));
    let error = resolve(Rule::Pdpd { axis: Some(1) }, &[&[2][..], &[2]]).unwrap_err();
    assert_eq!((error.operands(), error.sizes()), (vec![1], vec![2.into()]));
    let error = resolve(Rule::To { target: &[2] }, &[[1, 2]]).unwrap_err();
    assert_eq!((error.operands(), error.sizes()), (vec![0], vec![]));
    let error = resolve(Rule::To { target: &[2] }, &[[1], [2]]).unwrap_err();
    assert_eq!((error.operands(), error.sizes()), (vec![], vec![]));
    assert_eq!(error.rule().to_string(), "to:2");
}

// [E_BROADCAST_ANY_ERR_0010]
#[test]
fn names_take_the_place_of_letters() {
    let error = resolve(Rule::Numpy, &[&[2, 3, 4][..], &[2, 4]]).unwrap_err();
    let error = error.with_names(Names::of(["image", "mask"]));
    assert_eq!(
        error.to_string(),
        "E1: image (2, 3, 4) and mask (2, 4) do not broadcast under rule numpy: axis 1 (-2): image has 3, \
         mask has 2; help: mask[:, None, :] is (2, 1, 4), result (2, 3, 4)"
    );
    assert_eq!(error.names().operand(0), "image");
}

// [E_BROADCAST_ANY_FUNC_1900] [E_BROADCAST_ANY_ERR_0010]
#[test]
fn one_name_with_two_sizes_is_e1() {
    let axes = NamedAxes::new(&[&["b", "c"][..], &["c"]]).unwrap();
    let error = resolve(axes.as_rule(), &[&[32, 3][..], &[4]]).unwrap_err();
    assert_eq!((error.code(), error.axis(), error.rule().kind().name()), ("E1", Some(1), "named"));
    assert!(error.fixes().is_empty());
    let axes = vec![vec!["b".into(), "c".into()], vec!["c".into()]];
    let named = error.clone().with_names(Names { operands: vec![], axes });
    assert_eq!(named.describe(named.refusal()), "axis c (1, -1): A has 3, B has 4");
    assert_eq!(error.layout().unwrap().targets, [vec![Some(0), Some(1)], vec![Some(1)]]);
}

// [E_BROADCAST_ANY_ERR_0010]
#[test]
fn errors_are_data() {
    fn assert_traits<T: Clone + Eq + Send + Sync + std::error::Error + 'static>(_: &T) {}
    let error: BroadcastError = resolve(Rule::Numpy, &[[3], [2]]).unwrap_err();
    assert_traits(&error);
    assert_eq!(error.clone(), error);
    assert!(size_of::<BroadcastError>() <= size_of::<usize>());
}

// [E_BROADCAST_ANY_ERR_0090]
#[test]
fn hostile_ranks_and_counts_are_answered_in_no_time() {
    let deep = [vec![2; 50_000], vec![3; 50_000]];
    let error = resolve(Rule::Numpy, &deep).unwrap_err();
    assert_eq!(error.clashes().len(), 50_000);
    assert!(error.to_string().contains("and 49996 more"));
    assert!(resolve(Rule::Pdpd { axis: Some(7) }, &deep).is_err());
    let axes: Vec<usize> = (0..50_000).rev().collect();
    let shape = vec![1; 100_000];
    assert!(resolve(Rule::Axes { shape: &shape, broadcast_axes: &axes }, &deep[..1]).is_err());
    let mut many = vec![vec![2, 1]; 50_000];
    many.push(vec![3, 3]);
    assert_eq!(resolve(Rule::Numpy, &many).unwrap_err().fixes().len(), 0);
}

// [E_BROADCAST_ANY_ERR_0020]
#[test]
fn nobody_is_told_to_write_an_index_of_twenty_axes() {
    let long = [vec![3], vec![2; 19]].concat();
    let error = resolve(Rule::Numpy, &[long, vec![3]]).unwrap_err();
    assert!(error.fixes().is_empty());
}
