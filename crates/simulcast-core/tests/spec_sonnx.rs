//! The relations of SONNX Broadcast, worked: step 1, step 2, `f`, constraint C1, error E1.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use common::{all_shapes, by_maximum, f, indices};
use simulcast_core::{Rule, resolve};

/// Two of them are more than can be counted: 2^40 where addresses have 64 bits, 2^20 where they have 32.
const HUGE: usize = 1 << (usize::BITS / 8 * 5);

fn numpy(shapes: &[&[usize]]) -> Result<Vec<usize>, &'static str> {
    resolve(Rule::Numpy, shapes).map(|plan| plan.shape().to_vec()).map_err(|error| error.code())
}

// [E_BROADCAST_ANY_FUNC_0010] [E_BROADCAST_ANY_FUNC_0090]
#[test]
fn the_common_number_of_dimensions_is_the_largest() {
    assert_eq!(numpy(&[&[1, 1, 1], &[1], &[]]).unwrap().len(), 3);
    assert_eq!(numpy(&[]), Ok(vec![]), "no tensor at all gives the scalar shape");
    assert_eq!(numpy(&[&[4, 1, 2]]), Ok(vec![4, 1, 2]), "one tensor keeps its shape");
}

// [E_BROADCAST_ANY_FUNC_0030] [E_BROADCAST_ANY_CONSTR_X_0010]
#[test]
fn without_size_0_the_size_is_the_maximum_and_e1_is_the_documents() {
    let shapes: Vec<_> = all_shapes(3, 3).into_iter().filter(|s| !s.contains(&0)).collect();
    for a in &shapes {
        for b in &shapes {
            assert_eq!(numpy(&[a, b]), by_maximum(a, b).ok_or("E1"), "{a:?} with {b:?}");
        }
    }
}

// [E_BROADCAST_ANY_FUNC_0070]: the answers of NumPy and ONNX Runtime.
#[test]
fn size_0_joins_with_1_and_0_and_with_nothing_else() {
    assert_eq!(numpy(&[&[0], &[1]]), Ok(vec![0]));
    assert_eq!(numpy(&[&[1], &[0]]), Ok(vec![0]));
    assert_eq!(numpy(&[&[0], &[]]), Ok(vec![0]));
    assert_eq!(numpy(&[&[0], &[0]]), Ok(vec![0]));
    assert_eq!(numpy(&[&[2, 0], &[1]]), Ok(vec![2, 0]));
    assert_eq!(numpy(&[&[2, 0], &[2, 1]]), Ok(vec![2, 0]));
    assert_eq!(numpy(&[&[0, 3], &[3]]), Ok(vec![0, 3]));
    assert_eq!(numpy(&[&[1, 0], &[2, 1]]), Ok(vec![2, 0]));
    assert_eq!(numpy(&[&[0], &[2]]), Err("E1"));
    assert_eq!(numpy(&[&[0, 3], &[2, 3]]), Err("E1"));
    assert_eq!(numpy(&[&[0], &[1], &[1]]), Ok(vec![0]));
    assert_eq!(numpy(&[&[1], &[0], &[]]), Ok(vec![0]));
    assert_eq!(numpy(&[&[3], &[1], &[2]]), Err("E1"));
    // The maximum, folded, would take 0 and 1 to 1 and then accept 2.
    assert_eq!(numpy(&[&[0], &[1], &[2]]), Err("E1"));
}

// [E_BROADCAST_ANY_FUNC_0040] [E_BROADCAST_ANY_FUNC_0080]
#[test]
fn elements_follow_f_and_the_index_prefix_is_zero() {
    // X0 of shape (3, 1), X1 of shape (4): Z0 repeats its column, Z1 its row.
    let (x0, x1) = ([3, 1], [4]);
    let plan = resolve(Rule::Numpy, &[&x0[..], &x1]).unwrap();
    for i in indices(plan.shape()) {
        let y0 = [f(i[0], 3, 3), f(i[1], 1, 4)];
        let y1 = [f(i[0], 1, 3), f(i[1], 4, 4)];
        assert_eq!(plan.source_index(0, &i).unwrap(), y0);
        // Y1 has one more axis than X1; its index there is 0, not the 1 of the printed formula.
        assert_eq!(y1[0], 0);
        assert_eq!(plan.source_index(1, &i).unwrap(), y1[1..]);
    }
}

// [E_BROADCAST_ANY_FUNC_0050] [E_BROADCAST_ANY_CONSTR_X_0020]
#[test]
fn a_plan_moves_values_of_any_type_and_changes_none() {
    // The plan says which element is shown; what the element is never enters. Signalling NaN bits,
    // signed zeros and strings come through as they are.
    let plan = resolve(Rule::Numpy, &[&[2, 1][..], &[3]]).unwrap();
    let show = |operand: usize| -> Vec<usize> {
        indices(plan.shape()).iter().map(|i| plan.offset(operand, i).unwrap()).collect()
    };
    let bits = [0x7f80_0001_u32, 0x8000_0000];
    let shown: Vec<u32> = show(0).iter().map(|&at| bits[at]).collect();
    assert_eq!(shown, [bits[0], bits[0], bits[0], bits[1], bits[1], bits[1]]);
    let words = ["", "naïve", "three"];
    let shown: Vec<&str> = show(1).iter().map(|&at| words[at]).collect();
    assert_eq!(shown, ["", "naïve", "three", "", "naïve", "three"]);
}

// [E_BROADCAST_ANY_ERR_0010]
#[test]
fn e1_names_every_axis_both_ways_with_operands_and_sizes() {
    let error = resolve(Rule::Numpy, &[&[2, 3, 4][..], &[5, 1, 6]]).unwrap_err();
    let said: Vec<String> = error.clashes().iter().map(|clash| error.describe(clash)).collect();
    assert_eq!(said, ["axis 0 (-3): A has 2, B has 5", "axis 2 (-1): A has 4, B has 6"]);
    assert_eq!(error.shapes()[1].to_string(), "(5, 1, 6)");
}

// [E_BROADCAST_ANY_ERR_0080]
#[test]
fn a_result_too_large_to_count_still_has_a_shape() {
    let (a, b) = ([HUGE, 1], [1, HUGE]);
    let plan = resolve(Rule::Numpy, &[a, b]).unwrap();
    assert_eq!(plan.shape(), [HUGE, HUGE]);
    assert_eq!(plan.elements().unwrap_err().code(), "E8");
    assert_eq!(plan.cost().result, None);
}

// [E_BROADCAST_ANY_FUNC_0090]
#[test]
fn a_hundred_thousand_operands_and_a_hundred_thousand_axes_resolve() {
    let many: Vec<[usize; 4]> =
        (0..100_000).map(|m| if m % 2 == 0 { [8, 1, 6, 1] } else { [1, 7, 1, 5] }).collect();
    assert_eq!(resolve(Rule::Numpy, &many).unwrap().shape(), [8, 7, 6, 5]);
    let deep = [vec![1; 100_000], vec![2; 99_999]];
    assert_eq!(resolve(Rule::Numpy, &deep).unwrap().shape().len(), 100_000);
    let mut clash = many.clone();
    clash.push([9, 1, 1, 1]);
    let error = resolve(Rule::Numpy, &clash).unwrap_err();
    assert!(error.to_string().starts_with(
        "E1: 100001 shapes do not broadcast under rule numpy: axis 0 (-4): A has 8, X100000 has 9"
    ));
}
