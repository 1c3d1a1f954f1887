//! Kernels of every kind, for tests that compile them without a device: operation × element type × rule × layout.

use simulcast::program::Hoisting;
use simulcast::{DType, Op, Rule, TypedProgram};

use crate::launch::Limits;
use crate::plan::{Layout, Plan, contiguous};
use crate::source::text;

/// A kernel, and what it is one of.
#[derive(Clone, Debug)]
pub struct Sample {
    /// What it computes, of which types, for arrays that lie how.
    pub name: String,
    /// Its text.
    pub text: String,
}

/// How the operands of a sample lie.
const LAYOUTS: [(&str, &[usize], &[usize]); 8] = [
    ("alike", &[64, 128], &[64, 128]),
    ("row", &[64, 128], &[128]),
    ("column", &[64, 128], &[64, 1]),
    ("middle", &[8, 64, 32], &[8, 1, 32]),
    ("odd row", &[33, 31], &[31]),
    ("transposed", &[64, 128], &[64, 128]),
    ("transposed, odd", &[65, 127], &[65, 127]),
    ("backwards, not aligned", &[64, 128], &[64, 128]),
];

fn layout(kind: &str, shape: &[usize], dtype: DType, is_first: bool) -> Layout {
    let mut own = Layout::fresh(shape);
    if kind.starts_with("transposed") && is_first {
        let turned: Vec<usize> = shape.iter().rev().copied().collect();
        own.strides = contiguous(&turned).into_iter().rev().collect();
    }
    if kind.starts_with("backwards") && is_first {
        own.strides.iter_mut().for_each(|stride| *stride = -*stride);
        own.low_bits = dtype.size() % 16;
    }
    own
}

/// Every kernel of the matrix: each operation of each type with operands that lie in each way, reductions along and
/// across each way, and rules. The same kernel comes once.
#[must_use]
pub fn samples() -> Vec<Sample> {
    let mut all: Vec<Sample> = Vec::new();
    let mut seen = std::collections::HashSet::new();
    let mut take = |name: String, plan: Option<Plan>| {
        for pass in plan.iter().flat_map(|plan| &plan.passes) {
            for launch in &pass.launches {
                let partial = pass.partial.as_ref().filter(|_| launch.joins_partial);
                let text = text(partial.unwrap_or(&pass.body), &launch.kind);
                if seen.insert(text.clone()) {
                    all.push(Sample { name: name.clone(), text });
                }
            }
        }
    };
    let limits = Limits { joint: 0, ..Limits::new(132) };
    let losses = [DType::F32, DType::F64, DType::F16, DType::Bf16];
    for dtype in losses {
        let names = [("a", dtype), ("b", dtype), ("c", dtype)];
        let loss = TypedProgram::parse("mean((a - b) ** 2 / c + log(c))", &names);
        let Ok(program) = loss.and_then(|loss| loss.value_and_grad(&["b", "c"])) else { continue };
        for shapes in
            [[&[512, 256][..], &[256], &[512, 1]], [&[64, 32, 129], &[32, 1], &[64, 1, 1]]]
        {
            let layouts = shapes.map(Layout::fresh);
            let Ok(lowered) = program.lower(&shapes, Rule::Numpy) else { continue };
            let plan = Plan::joint(&lowered, &layouts, &limits);
            take(format!("gradients of {dtype}, {shapes:?}"), plan);
        }
    }
    let mut add = |name: String, program: &TypedProgram, rule: Rule<'_>, layouts: &[Layout]| {
        let shapes: Vec<&[usize]> = layouts.iter().map(|own| &own.shape[..]).collect();
        let Ok(passes) = program.lower(&shapes, rule, Hoisting::Always) else { return };
        take(name, Plan::new(&passes, layouts, None, &limits));
    };
    let numbers = DType::ALL.iter().copied().filter(|&dtype| dtype != DType::String);
    for dtype in numbers {
        for &op in Op::ALL {
            if !op.row().domain.has(dtype) {
                continue;
            }
            let names = ["a", "b", "c"];
            let own = |n: usize| if op == Op::Where && n == 0 { DType::Bool } else { dtype };
            let types: Vec<(&str, DType)> = names
                .iter()
                .take(op.arity())
                .enumerate()
                .map(|(n, name)| (*name, own(n)))
                .collect();
            let list: Vec<&str> = types.iter().map(|own| own.0).collect();
            let call = format!("{}({})", op.name(), list.join(", "));
            let Ok(program) = TypedProgram::parse(&call, &types) else { continue };
            for (kind, first, others) in LAYOUTS {
                let layouts: Vec<Layout> = types
                    .iter()
                    .enumerate()
                    .map(|(n, own)| {
                        layout(kind, if n == 0 { first } else { others }, own.1, n == 0)
                    })
                    .collect();
                add(format!("{call} of {dtype}, {kind}"), &program, Rule::Numpy, &layouts);
            }
        }
        for (kind, shape, _) in LAYOUTS {
            for text in [
                "sum(a, axis=0)",
                "mean(a, axis=-1)",
                "max(a)",
                "prod(a, axis=0)",
                "min(a, axis=-1)",
            ] {
                if let Ok(program) = TypedProgram::parse(text, &[("a", dtype)]) {
                    let own = layout(kind, shape, dtype, true);
                    add(format!("{text} of {dtype}, {kind}"), &program, Rule::Numpy, &[own]);
                }
            }
        }
        let pairs = [("a", dtype), ("b", dtype)];
        for (text, a, b) in [
            ("sum((a[:, None, :] - b) ** 2, axis=-1)", [832, 20], [832, 20]),
            ("sum(a[:, :, None] * b, axis=1)", [2048, 300], [300, 2048]),
            ("max(a[:, None, :] + b, axis=-1)", [900, 7], [700, 7]),
        ] {
            if let Ok(program) = TypedProgram::parse(text, &pairs) {
                let layouts = [Layout::fresh(&a), Layout::fresh(&b)];
                add(format!("{text} of {dtype}"), &program, Rule::Numpy, &layouts);
            }
        }
        for &to in DType::ALL {
            if let Ok(program) = TypedProgram::parse(&format!("a.astype({to})"), &[("a", dtype)]) {
                let own = layout("alike", &[64, 128], dtype, true);
                add(format!("{dtype} to {to}"), &program, Rule::Numpy, &[own]);
            }
        }
    }
    let f32 = DType::F32;
    if let Ok(program) = TypedProgram::parse("a * b", &[("a", f32), ("b", f32)]) {
        let rules: [(Rule<'_>, &[usize], &[usize]); 3] = [
            (Rule::Pdpd { axis: Some(1) }, &[8, 64, 32], &[64]),
            (Rule::Paddle { axis: Some(0) }, &[8, 64, 32], &[8, 64]),
            (Rule::Exact, &[8, 64], &[8, 64]),
        ];
        for (rule, a, b) in rules {
            add(format!("a * b, {rule:?}"), &program, rule, &[Layout::fresh(a), Layout::fresh(b)]);
        }
    }
    all
}
