//! Programs of several results: values and gradients.

use simulcast::{AnyView, DType, JointProgram, Rule, TypedProgram};

use super::{Case, Compiled, Operand, cases, compare, random};
use crate::launch::Limits;
use crate::plan::{Layout, Plan};
use crate::source::Kind;

/// A case of a program of several results.
fn case(name: String, program: &JointProgram, operands: Vec<Operand>, limits: &Limits) -> Case {
    let shapes: Vec<&[usize]> = operands.iter().map(|own| &own.shape[..]).collect();
    let lowered = program.lower(&shapes, Rule::Numpy).expect("operands that fit");
    let layouts: Vec<Layout> = operands.iter().map(Operand::layout).collect();
    let plan = Plan::joint(&lowered, &layouts, limits).expect("a plan");
    let mut results = program.dtypes().iter().copied().zip(plan.shapes);
    let (dtype, shape) = results.next().expect("a result");
    Case { name, passes: plan.passes, operands, dtype, shape, others: results.collect() }
}

#[test]
fn values_and_gradients_are_those_of_the_engine() {
    let mut source = random::Source::new(9);
    let (mut all, mut programs) = (Vec::new(), Vec::new());
    for (text, wrt, shapes) in cases::LOSSES {
        for dtype in [DType::F32, DType::F64, DType::F16] {
            let names = [("a", dtype), ("b", dtype), ("c", dtype)];
            let loss = TypedProgram::parse(text, &names).expect("a loss");
            let program = loss.value_and_grad(wrt).expect("gradients");
            for (multiprocessors, is_odd) in [(1, false), (9, true)] {
                let limits = Limits { joint: 0, ..Limits::new(multiprocessors) };
                let operands: Vec<Operand> =
                    shapes.iter().map(|shape| source.small(dtype, shape, is_odd)).collect();
                let name = format!("gradients of {text} of {dtype}, {multiprocessors}");
                all.push(case(name, &program, operands, &limits));
                programs.push(program.clone());
            }
        }
    }
    let several = JointProgram::parse(
        "a + b; sum(a * b, axis=0); a + b; a",
        &[("a", DType::F32), ("b", DType::F32)],
    );
    let several = several.expect("a program");
    let operands =
        vec![source.array(DType::F32, &[6, 30], false), source.array(DType::F32, &[30], false)];
    all.push(case("several sums".into(), &several, operands, &Limits::new(4)));
    programs.push(several);
    let launches = |case: &Case| {
        let all = case.passes.iter().flat_map(|pass| &pass.launches);
        all.filter(|launch| matches!(launch.kind, Kind::Joint(_))).count()
    };
    let joint = all.iter().filter(|case| launches(case) > 0).count();
    assert!(joint >= 20, "{joint} cases are computed together");
    let Some(compiled) = Compiled::new("joint", &all) else { return };
    for (program, case) in programs.iter().zip(&all) {
        let views: Vec<AnyView<'_>> = case.operands.iter().map(Operand::view).collect();
        let expected = program.run(&views).expect("the engine's results");
        for (at, (got, expected)) in compiled.run_all(case).iter().zip(&expected).enumerate() {
            compare(&format!("{}, the sum {at}", case.name), got, expected, 64.0);
        }
    }
}
