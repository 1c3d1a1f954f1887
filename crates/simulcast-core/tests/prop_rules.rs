//! Every rule against the oracle: exhaustively over small shapes, and over drawn ones.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use common::{all_shapes, answer, f, indices};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use simulcast_core::{
    NamedAxes, Parts, Rule, RuleKind, Source, offsets, resolve, resolve_into, row_major_into,
    sources_into, strides_into,
};

/// Everything that a plan says, against the oracle.
fn check(rule: Rule<'_>, shapes: &[Vec<usize>]) {
    let expected = answer(rule, shapes);
    let got = resolve(rule, shapes);
    let mut buffer = [7; 16];
    let into = resolve_into(rule, shapes, &mut buffer).map(<[_]>::to_vec);
    let (expected, plan) = match (expected, got) {
        (Some(expected), Ok(plan)) => (expected, plan),
        (None, Err(error)) => {
            assert_eq!(into.unwrap_err().code(), error.code(), "{rule:?} {shapes:?}");
            // Without allocation it is the first clash that was met, else the one of the first axis.
            let met = into_refusal(rule, shapes);
            let told = met == *error.refusal() || error.clashes().contains(&met);
            assert!(told, "{rule:?} {shapes:?}: {met:?} is not in {error:?}");
            return;
        }
        (expected, got) => panic!("{rule:?} {shapes:?}: expected {expected:?}, got {got:?}"),
    };
    let result = &expected.shape;
    assert_eq!(plan.shape(), result, "{rule:?} {shapes:?}");
    assert_eq!(into.as_ref(), Ok(result), "{rule:?} {shapes:?}");
    for (operand, shape) in shapes.iter().enumerate() {
        let laid = &expected.laid[operand];
        let context = format!("{rule:?} {shapes:?} operand {operand}");
        // Sources, with and without allocation.
        let sources: Vec<Source> = laid
            .iter()
            .zip(result)
            .map(|(&(size, axis), &r)| match axis {
                None => Source::Added,
                Some(axis) if size == r => Source::Kept(axis),
                Some(axis) => Source::Stretched(axis),
            })
            .collect();
        assert_eq!(plan.sources(operand).unwrap(), sources, "{context}");
        let mut buffer = [Source::Added; 16];
        sources_into(rule, shapes, operand, result, &mut buffer).unwrap();
        assert_eq!(buffer[..result.len()], sources, "{context}");
        for (axis, source) in sources.iter().enumerate() {
            assert_eq!(plan.source(operand, axis).unwrap(), *source, "{context}");
        }
        // The axes to sum over: those that the operand lacks, and those it repeats along.
        let summed: Vec<usize> =
            (0..result.len()).filter(|&j| laid[j].1.is_none() || laid[j].0 != result[j]).collect();
        assert_eq!(plan.sum_axes(operand).unwrap(), summed, "{context}");
        assert_eq!(plan.operand_shape(operand).unwrap(), *shape, "{context}");
        // Elements: the index i' by f, its position, and the same through strides.
        let own = indices(shape);
        let mut strides = vec![0; shape.len()];
        row_major_into(shape, &mut strides).unwrap();
        let strides = plan.strides(operand, &strides).unwrap();
        let (mut own_shape, mut own_strides) = ([7; 16], [7; 16]);
        let at_once =
            strides_into(rule, shapes, operand, None, &mut own_shape, &mut own_strides).unwrap();
        assert_eq!(
            (at_once, &own_strides[..result.len()]),
            (&result[..], &strides[..]),
            "{context}"
        );
        let visited = indices(result)
            .into_iter()
            .map(|index| [strides.iter().zip(index).map(|(s, at)| s * at as isize).sum::<isize>()]);
        assert!(offsets(result, [&strides]).unwrap().eq(visited), "{context}");
        for index in indices(result) {
            let mut i = vec![0; shape.len()];
            for (j, &(size, axis)) in laid.iter().enumerate() {
                if let Some(axis) = axis {
                    i[axis] = f(index[j], size, result[j]);
                }
            }
            let position = own.iter().position(|at| *at == i).expect("a valid index");
            assert_eq!(plan.source_index(operand, &index).unwrap(), i, "{context}");
            assert_eq!(plan.offset(operand, &index).unwrap(), position, "{context}");
            let through: isize = strides.iter().zip(&index).map(|(s, &at)| s * at as isize).sum();
            assert_eq!(through, position as isize, "{context}");
        }
    }
}

fn into_refusal(rule: Rule<'_>, shapes: &[Vec<usize>]) -> simulcast_core::Refusal {
    resolve_into(rule, shapes, &mut [0; 16]).unwrap_err()
}

// [E_BROADCAST_ANY_FUNC_0010] [E_BROADCAST_ANY_FUNC_0020] [E_BROADCAST_ANY_FUNC_0030]
// [E_BROADCAST_ANY_FUNC_0040] [E_BROADCAST_ANY_FUNC_0070] [E_BROADCAST_ANY_FUNC_0100]
// [E_BROADCAST_ANY_CONSTR_X_0010] [E_BROADCAST_ANY_FUNC_1000] [E_BROADCAST_ANY_FUNC_1100]
// [E_BROADCAST_ANY_FUNC_1220] [E_BROADCAST_ANY_FUNC_1300] [E_BROADCAST_ANY_FUNC_1400]
// [E_BROADCAST_ANY_FUNC_1500] [E_BROADCAST_ANY_FUNC_1600]
#[test]
fn all_pairs_of_shapes_up_to_rank_3_and_size_3_under_every_rule_that_takes_them() {
    let shapes = all_shapes(3, 3);
    for a in &shapes {
        for b in &shapes {
            let pair = [a.clone(), b.clone()];
            let target = Parts { shape: Some(&b[..]), ..Parts::default() };
            for &kind in RuleKind::ALL {
                for axis in (-2..5).map(Some).chain([None]) {
                    let parts = Parts { axis, ..Parts::default() };
                    if let Some(rule) = Rule::from_parts(kind, parts) {
                        check(rule, &pair);
                    }
                }
                if let Some(rule) = Rule::from_parts(kind, target) {
                    check(rule, &pair[..1]);
                }
            }
        }
    }
}

// [E_BROADCAST_ANY_FUNC_1700] [E_BROADCAST_ANY_FUNC_1710] [E_BROADCAST_ANY_FUNC_1720]
#[test]
fn axes_of_all_shapes_up_to_rank_3_and_size_2() {
    let shapes = all_shapes(3, 2);
    for shape in &shapes {
        for arg in &shapes {
            for axes in all_shapes(2, 3) {
                check(Rule::Axes { shape, broadcast_axes: &axes }, std::slice::from_ref(arg));
            }
            check(Rule::Axes { shape, broadcast_axes: &[2, 0, 1] }, std::slice::from_ref(arg));
        }
    }
}

// [E_BROADCAST_ANY_FUNC_1800]
#[test]
fn mappings_of_all_shapes_up_to_rank_3_and_size_2() {
    let shapes = all_shapes(3, 2);
    for shape in &shapes {
        for arg in all_shapes(2, 2) {
            for axes_mapping in all_shapes(2, 3) {
                check(
                    Rule::Mapping { shape, axes_mapping: &axes_mapping },
                    std::slice::from_ref(&arg),
                );
            }
        }
    }
    check(Rule::Mapping { shape: &[2, 3, 4, 5], axes_mapping: &[0, 2, 3] }, &[vec![2, 1, 5]]);
}

fn sizes(rank: usize) -> impl Strategy<Value = Vec<usize>> {
    vec(select(vec![0, 1, 1, 1, 2, 2, 3]), 0..=rank)
}

proptest! {
    // [E_BROADCAST_ANY_FUNC_0090]
    #[test]
    fn any_number_of(shapes in vec(sizes(4), 0..6)) {
        for kind in RuleKind::ALL.iter().copied().filter(|kind| kind.arity().is_none()) {
            if let Some(rule) = Rule::from_parts(kind, Parts::default()) {
                check(rule, &shapes);
            }
        }
    }

    // [E_BROADCAST_ANY_FUNC_1900]
    #[test]
    fn axes_by_name(
        named in vec(prop::sample::subsequence(vec!["b", "c", "h", "w"], 0..=4).prop_shuffle(), 0..4),
        sizes in vec(select(vec![0, 1, 2, 3]), 16),
    ) {
        let mut sizes = sizes.into_iter();
        let shapes: Vec<Vec<usize>> =
            named.iter().map(|names| names.iter().map(|_| sizes.next().unwrap()).collect()).collect();
        let axes = NamedAxes::new(&named).unwrap();
        check(axes.as_rule(), &shapes);
        // The result's axes are the names in the order in which they first appear.
        let mut order: Vec<&str> = Vec::new();
        for name in named.iter().flatten() {
            if !order.contains(name) {
                order.push(name);
            }
        }
        prop_assert_eq!(axes.names(), order);
    }

    // [E_BROADCAST_ANY_FUNC_0060]
    #[test]
    fn order_grouping_and_repetition_do_not_count(shapes in vec(sizes(4), 1..6), seed in any::<u64>()) {
        let all = resolve(Rule::Numpy, &shapes).map(|plan| plan.shape().to_vec());
        // Any permutation.
        let mut shuffled = shapes.clone();
        let len = shuffled.len();
        (0..len).for_each(|k| shuffled.swap(k, (seed as usize).wrapping_mul(k + 7) % len));
        let permuted = resolve(Rule::Numpy, &shuffled).map(|plan| plan.shape().to_vec());
        prop_assert_eq!(all.is_ok(), permuted.is_ok());
        prop_assert_eq!(all.as_ref().ok(), permuted.as_ref().ok());
        // Any grouping of pairs: join two neighbours, chosen by the seed, until one is left.
        let mut left = shapes.clone();
        let mut folded = Some(());
        let mut draw = seed;
        while left.len() > 1 {
            let at = (draw % (left.len() as u64 - 1)) as usize;
            draw = draw.rotate_left(7) ^ 0x9e37;
            let second = left.remove(at + 1);
            match resolve(Rule::Numpy, &[left[at].clone(), second]) {
                Ok(plan) => left[at] = plan.shape().to_vec(),
                Err(_) => { folded = None; break; }
            }
        }
        prop_assert_eq!(folded.map(|()| left[0].clone()), all.as_ref().ok().cloned());
        // Idempotence, and repetition.
        if let Ok(shape) = &all {
            let again = resolve(Rule::Numpy, &[shape.clone(), shape.clone(), shapes[0].clone()]).unwrap();
            prop_assert_eq!(again.shape(), shape);
        }
    }

    // [E_BROADCAST_ANY_FUNC_0110]: <broadcast(x), y> = <x, sum(y)> over the plan's own elements.
    #[test]
    fn sum_axes_are_the_adjoint(shapes in vec(sizes(3), 1..4)) {
        let Ok(plan) = resolve(Rule::Numpy, &shapes) else { return Ok(()) };
        for (operand, shape) in shapes.iter().enumerate() {
            let (all, own) = (indices(plan.shape()), indices(shape));
            let x = |at: usize| 3 * at as i64 + 1;
            let y = |at: usize| (at as i64 * at as i64) % 11 - 5;
            let pushed: i64 = all.iter().enumerate().map(|(l, i)| x(plan.offset(operand, i).unwrap()) * y(l)).sum();
            // Sum y over sum_axes: two results that differ only there go to the same element.
            let axes = plan.sum_axes(operand).unwrap();
            let kept = |i: &[usize]| -> Vec<usize> {
                i.iter().enumerate().filter(|(j, _)| !axes.contains(j)).map(|(_, &at)| at).collect()
            };
            let mut pulled = 0;
            for (at, index) in own.iter().enumerate() {
                let sources = plan.sources(operand).unwrap();
                let mine: Vec<usize> = sources.iter().filter_map(|s| match s { Source::Kept(k) => Some(index[*k]), _ => None }).collect();
                let sum: i64 = all.iter().enumerate().filter(|(_, i)| kept(i) == mine).map(|(l, _)| y(l)).sum();
                pulled += x(at) * sum;
            }
            prop_assert_eq!(pushed, pulled);
        }
    }
}

// [E_BROADCAST_ANY_ERR_0050] [E_BROADCAST_ANY_ERR_0070]
#[test]
fn labels_that_are_no_labels_are_refused() {
    let code = |labels: &[usize], shapes: &[Vec<usize>]| {
        let error = resolve(Rule::Named { labels }, shapes).unwrap_err();
        assert_eq!(into_refusal(Rule::Named { labels }, shapes), *error.refusal());
        error.code()
    };
    assert_eq!(code(&[0], &[vec![2, 3]]), "E7");
    assert_eq!(code(&[0, 2], &[vec![2, 3]]), "E10");
    assert_eq!(code(&[usize::MAX, 0], &[vec![2, 3]]), "E10");
    assert_eq!(code(&[0, 1, 1, 0, 1], &[vec![2], vec![3, 3], vec![2, 3]]), "E4");
    assert_eq!(code(&[0, 1, 0], &[vec![2, 3], vec![3]]), "E1");
}

// [E_BROADCAST_ANY_ERR_0070]
#[test]
fn questions_that_have_no_answer_are_refused() {
    let plan = resolve(Rule::Numpy, &[&[2, 1][..], &[3]]).unwrap();
    assert_eq!(plan.sources(2).unwrap_err().code(), "E12");
    assert_eq!(plan.source(0, 2).unwrap_err().code(), "E12");
    assert_eq!(plan.source(2, 0).unwrap_err().code(), "E12");
    assert_eq!(plan.strides(0, &[1]).unwrap_err().code(), "E9");
    assert_eq!(plan.strides(2, &[1]).unwrap_err().code(), "E12");
    assert_eq!(plan.offset(0, &[0]).unwrap_err().code(), "E9");
    assert_eq!(plan.offset(0, &[0, 3]).unwrap_err().code(), "E12");
    assert_eq!(plan.offset(2, &[0, 0]).unwrap_err().code(), "E12");
    assert_eq!(plan.sum_axes(2).unwrap_err().code(), "E12");
    assert_eq!(plan.is_repeated(2).unwrap_err().code(), "E12");
    assert!(plan.is_repeated(0).unwrap());
    assert_eq!(resolve_into(Rule::Numpy, &[[2, 3]], &mut [0; 1]).unwrap_err().code(), "E9");
    let mut out = [Source::Added; 2];
    let refused = sources_into(Rule::Numpy, &[[2, 3]], 1, &[2, 3], &mut out);
    assert_eq!(refused.unwrap_err().code(), "E12");
    let refused = sources_into(Rule::Numpy, &[[2, 3]], 0, &[2], &mut out);
    assert_eq!(refused.unwrap_err().code(), "E9");
    let refused = sources_into(Rule::To { target: &[1] }, &[[2, 3]], 0, &[2], &mut out);
    assert_eq!(refused.unwrap_err().code(), "E2");
    let refused = sources_into(Rule::Numpy, &[[2]], 0, &[7], &mut out);
    assert_eq!(refused.unwrap_err().code(), "E1", "a result that is none of these shapes");
    let refused = sources_into(Rule::Named { labels: &[0, 0] }, &[[2, 2]], 0, &[2], &mut out);
    assert_eq!(refused.unwrap_err().code(), "E4");
    let huge = resolve(Rule::Numpy, &[[usize::MAX, usize::MAX]]).unwrap();
    let last = [usize::MAX - 1, usize::MAX - 1];
    assert_eq!(huge.offset(0, &last).unwrap_err().code(), "E8");
}
