//! Any rule on any shapes: both ways of resolving agree, fixes work, everything can be drawn.

#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use simulcast_core::{Action, OwnedRule, Parts, Policy, RuleKind, resolve, resolve_into};
use simulcast_explain::{Subject, TextOptions, json, page, svg, text};

#[derive(Arbitrary, Debug)]
struct Input {
    kind: u8,
    axis: Option<isize>,
    shape: Vec<usize>,
    axes: Vec<usize>,
    shapes: Vec<Vec<usize>>,
    /// Small sizes meet more often.
    small: bool,
    draw: bool,
}

fuzz_target!(|input: Input| {
    let Input { kind, mut axis, mut shape, mut axes, mut shapes, small, draw } = input;
    if small {
        let sizes = shape.iter_mut().chain(shapes.iter_mut().flatten());
        sizes.for_each(|size| *size %= 4);
        axes.iter_mut().for_each(|axis| *axis %= 6);
        axis = axis.map(|axis| axis % 6);
    }
    let kind = RuleKind::ALL[usize::from(kind) % RuleKind::ALL.len()];
    let takes = kind.parameters();
    let parts = Parts {
        axis: axis.filter(|_| takes.axis),
        shape: takes.shape.map(|_| shape),
        axes: takes.axes.map(|_| axes.clone()),
        labels: takes.labels.then_some(axes),
    };
    let rule = OwnedRule::from_parts(kind, parts).expect("its own parameters");
    let (rank, rule) = (rule.target().map_or(0, <[_]>::len), rule.as_rule());
    let mut out = vec![0; rank + shapes.iter().map(Vec::len).sum::<usize>()];
    let plain = resolve_into(rule, &shapes, &mut out).map(<[_]>::to_vec);
    match resolve(rule, &shapes) {
        Ok(plan) => {
            assert_eq!(plain.as_deref(), Ok(plan.shape()));
            for operand in 0..plan.operand_count() {
                let strides = vec![-7; shapes[operand].len()];
                let strides = plan.strides(operand, &strides).expect("strides");
                assert_eq!(strides.len(), plan.shape().len());
                assert_eq!(
                    plan.sum_axes(operand).expect("axes").is_empty(),
                    strides.iter().all(|s| *s != 0)
                );
                if plan.shape().iter().all(|size| *size > 0) {
                    let last: Vec<usize> = plan.shape().iter().map(|size| size - 1).collect();
                    let own = plan.source_index(operand, &last).expect("an index");
                    assert!(own.iter().zip(&shapes[operand]).all(|(at, size)| at < size));
                    let _ = plan.offset(operand, &last);
                }
            }
            let _ = plan.cost();
            let verdict = Policy::all(Action::Warn).judge(&plan);
            for fix in verdict.warned.iter().flat_map(|finding| &finding.fixes) {
                let (rule, shapes) = fix.edit().apply(rule, &shapes);
                assert_eq!(resolve(rule, &shapes).expect("a fix").shape(), fix.result());
            }
            show(&Subject::Plan(&plan, &verdict.warned), draw);
        }
        Err(error) => {
            assert_eq!(plain.expect_err("both refuse").code(), error.code());
            for fix in error.fixes() {
                let (rule, shapes) = fix.edit().apply(rule, &shapes);
                assert_eq!(resolve(rule, &shapes).expect("a fix").shape(), fix.result());
            }
            assert!(error.to_string().starts_with(error.code()));
            show(&Subject::Error(&error), draw);
        }
    }
});

fn show(subject: &Subject<'_>, draw: bool) {
    let said = text(subject, TextOptions::default());
    assert!(!said.is_empty());
    let _ = json(subject).to_string();
    if draw {
        assert!(svg(subject).len() < 1 << 22);
        let _ = page(subject, &said);
    }
}
