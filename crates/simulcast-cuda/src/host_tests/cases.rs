//! What the tests on the host and those on a device compute alike.

use simulcast::{DType, Op, Rule, TypedProgram};

/// Names of operands.
const NAMES: [&str; 3] = ["a", "b", "c"];

/// An operation of one type.
pub(crate) struct Operation {
    pub(crate) op: Op,
    pub(crate) name: String,
    pub(crate) program: TypedProgram,
    pub(crate) types: Vec<(&'static str, DType)>,
}

/// Every operation of every type that it has.
pub(crate) fn every_operation() -> Vec<Operation> {
    let mut all = Vec::new();
    for &op in Op::ALL {
        for &dtype in DType::ALL {
            if dtype == DType::String || !op.row().domain.has(dtype) {
                continue;
            }
            let own = |n: usize| if op == Op::Where && n == 0 { DType::Bool } else { dtype };
            let types: Vec<(&'static str, DType)> =
                (0..op.arity()).map(|n| (NAMES[n], own(n))).collect();
            let text = format!("{}({})", op.name(), NAMES[..op.arity()].join(", "));
            if let Ok(program) = TypedProgram::parse(&text, &types) {
                all.push(Operation { op, name: format!("{text} of {dtype}"), program, types });
            }
        }
    }
    assert!(all.len() > 400, "{} operations", all.len());
    all
}

/// Rules, and shapes that go together under each.
pub(crate) const RULES: [(Rule<'static>, &[usize], &[usize]); 4] = [
    (Rule::Pdpd { axis: Some(1) }, &[2, 3, 4, 5], &[3, 4]),
    (Rule::Exact, &[4, 3], &[4, 3]),
    (Rule::Paddle { axis: Some(0) }, &[4, 3, 2], &[4, 3]),
    (Rule::Numpy, &[4, 1, 2], &[3, 1]),
];
/// Pairs of arrays whose rows are reduced with each other, and slanted squares: expressions and shapes.
pub(crate) const SQUARES: [(&str, &[usize], &[usize]); 13] = [
    ("sum((a[:, None, :] - b[None, :, :]) ** 2, axis=-1)", &[70, 20], &[90, 20]),
    ("sum(a[:, :, None] * b[None, :, :], axis=1)", &[130, 33], &[33, 65]),
    ("sum(abs(a[:, :, None] - b[:, None]), axis=-1)", &[2, 40, 7], &[2, 44, 7]),
    ("max(a[:, None, :] - b, axis=-1, keepdims=True)", &[64, 17], &[64, 17]),
    ("mean(a[:, :, None, :] * b[:, None, :, :], axis=-1)", &[3, 40, 12], &[3, 50, 12]),
    ("sum(where(a[:, None] > b[None], 1, 0) + a[:, None], axis=-1)", &[33, 9], &[47, 9]),
    ("sum(a.T[:, None, :] * b, axis=-1)", &[300, 40], &[50, 300]),
    ("sum(a[:, None, :] * b[:, :, None] * 2 + 1, axis=(1, 4))", &[36, 8], &[5, 3, 44, 8]),
    ("a.T + b", &[67, 45], &[67]),
    ("a.T * b", &[130, 71], &[71, 1]),
    ("a.T + b.T", &[63, 130], &[63, 130]),
    ("a.T * 2 - b", &[66, 35], &[35, 66]),
    ("a[..., None] * 1 + b.T", &[61], &[77, 61]),
];

/// An expression, some of its operands, and the shapes of all.
type Loss = (&'static str, &'static [&'static str], [&'static [usize]; 3]);

/// Losses, what they are differentiated by, and the shapes of their operands `a`, `b` and `c`.
pub(crate) const LOSSES: [Loss; 9] = [
    ("sum(a * b + c)", &["a", "b", "c"], [&[33, 130], &[130], &[33, 1]]),
    ("mean((a - b) ** 2 / c + a)", &["b", "c"], [&[40, 256], &[256], &[40, 1]]),
    ("sum(a * a * b + c)", &["a", "b", "c"], [&[33, 130], &[130], &[33, 1]]),
    ("sum((a * b - c) ** 2)", &["b", "c"], [&[5, 6, 128], &[6, 1], &[5, 1, 128]]),
    ("mean(a * b * c)", &["b", "c"], [&[7, 9, 320], &[320], &[1, 9, 1]]),
    ("sum(maximum(a, b) * c)", &["b", "c"], [&[129, 64], &[64], &[]]),
    ("mean(where(a > b, a - b, c))", &["b", "c"], [&[12, 1000], &[12, 1], &[1000]]),
    ("sum(a.T * b) + mean(c)", &["b", "c"], [&[70, 48], &[48, 1], &[48]]),
    ("sum(a * b) * sum(c * a)", &["b", "c"], [&[20, 160], &[160], &[20, 1]]),
];

/// The types that squares are computed of.
pub(crate) const SQUARE_TYPES: [DType; 10] = [
    DType::F32,
    DType::F64,
    DType::I8,
    DType::I16,
    DType::I32,
    DType::I64,
    DType::F16,
    DType::U8,
    DType::C64,
    DType::C128,
];
