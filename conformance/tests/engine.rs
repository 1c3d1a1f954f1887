//! The recorded values of real systems, in `conformance/data`, against the engine: where each element
//! of a result comes from, and where its gradient goes.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use ndarray::{ArrayD, ArrayViewD, IxDyn};
use simulcast::{broadcast_all_by, copy_to_by, par_sum_to, sum_to, zip_by};
use simulcast_conformance::{data, ours};

/// 0, 1, 2, … in a shape.
fn counted(shape: &[usize]) -> ArrayD<i64> {
    let len: usize = shape.iter().product();
    ArrayD::from_shape_vec(IxDyn(shape), (0..).take(len).collect()).unwrap()
}

fn listed(array: &ArrayViewD<'_, i64>) -> Vec<i64> {
    array.iter().copied().collect()
}

// [E_BROADCAST_ANY_FUNC_2400] [E_BROADCAST_ANY_FUNC_3010] [E_BROADCAST_ANY_FUNC_3020]
// [E_BROADCAST_ANY_FUNC_3030] [E_BROADCAST_ANY_FUNC_3040]
#[test]
fn every_recorded_value_and_gradient_is_ours() {
    let (mut values, mut gradients) = (0, 0);
    for system in data::systems().unwrap() {
        for case in &system.cases {
            let Some(plan) = ours::plan(&case.question) else { continue };
            let (rule, context) =
                (plan.rule().as_rule(), format!("{}: {}", system.name, case.question));
            if let Some(from) = &case.from {
                let operands: Vec<_> = (0..plan.operand_count())
                    .map(|m| counted(&plan.operand_shape(m).unwrap()))
                    .collect();
                let views: Vec<_> = operands.iter().map(|operand| operand.view()).collect();
                for (shown, from) in broadcast_all_by(rule, &views).iter().zip(from) {
                    assert_eq!(listed(shown), *from, "{context}");
                }
                match (&operands[..], &from[..]) {
                    ([x], [of_x]) => {
                        assert_eq!(listed(&copy_to_by(rule, x).view()), *of_x, "{context}");
                    }
                    ([x, y], [of_x, of_y]) => {
                        let zipped = zip_by(rule, (x, y)).map(|x, y| 1000 * x + y);
                        let expected: Vec<i64> =
                            of_x.iter().zip(of_y).map(|(x, y)| 1000 * x + y).collect();
                        assert_eq!(listed(&zipped.view()), expected, "{context}");
                    }
                    _ => {}
                }
                values += 1;
            }
            if let Some(sums) = &case.sums {
                let grad = counted(plan.shape());
                for (operand, sums) in sums.iter().enumerate() {
                    assert_eq!(listed(&sum_to(&grad, &plan, operand).view()), *sums, "{context}");
                    assert_eq!(
                        listed(&par_sum_to(&grad, &plan, operand).view()),
                        *sums,
                        "{context}"
                    );
                }
                gradients += 1;
            }
        }
    }
    assert!(values > 1500 && gradients > 400, "{values} and {gradients}");
}
