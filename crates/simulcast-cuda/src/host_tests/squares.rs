//! Squares of results: reductions of what rows of two operands make of each other, and transposed operands.

use simulcast::program::Hoisting;
use simulcast::{AnyView, Rule, TypedProgram};

use super::{Case, Compiled, Operand, case, cases, compare, random};
use crate::launch::Limits;
use crate::source::Kind;

#[test]
fn squares_of_results_have_the_values_of_the_engine() {
    let mut source = random::Source::new(8);
    let (mut all, mut programs): (Vec<Case>, Vec<TypedProgram>) = (Vec::new(), Vec::new());
    for (text, a, b) in cases::SQUARES {
        for dtype in cases::SQUARE_TYPES {
            let names = [("a", dtype), ("b", dtype)];
            let Ok(program) = TypedProgram::parse(text, &names) else { continue };
            for (multiprocessors, is_odd) in [(1, false), (3, true)] {
                let limits = Limits::new(multiprocessors);
                let operands = [a, b].map(|shape| source.bounded(dtype, shape, is_odd)).into();
                let name = format!("{text} of {dtype} {a:?} {b:?}, {multiprocessors}");
                all.push(case(name, &program, Rule::Numpy, Hoisting::Never, operands, &limits));
                programs.push(program.clone());
            }
        }
    }
    let count = |is_it: fn(&Kind) -> bool| {
        let launches = all.iter().flat_map(|case| &case.passes).flat_map(|pass| &pass.launches);
        launches.filter(|launch| is_it(&launch.kind)).count()
    };
    let deep = count(|kind| matches!(kind, Kind::Pairwise(own) if own.is_deep));
    let wide = count(|kind| matches!(kind, Kind::Pairwise(own) if own.per_thread == 8));
    let pairwise = count(|kind| matches!(kind, Kind::Pairwise(_)));
    let slanted = count(|kind| matches!(kind, Kind::Tiled(own) if own.slant > 0));
    let kinds = [deep, wide, pairwise, slanted];
    assert!(kinds.iter().zip([5, 15, 70, 30]).all(|(own, least)| *own >= least), "{kinds:?}");
    let Some(compiled) = Compiled::new("squares", &all) else { return };
    for (program, case) in programs.iter().zip(&all) {
        let views: Vec<AnyView<'_>> = case.operands.iter().map(Operand::view).collect();
        let expected = program.run(&views).expect("the engine's result");
        let places = if case.dtype.is_integer() { 0.0 } else { random::places(&case.name) };
        compare(&case.name, &compiled.run(case), &expected, places);
    }
}
