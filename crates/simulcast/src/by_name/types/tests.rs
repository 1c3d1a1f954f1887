//! The types against NumPy's recorded ones, in `conformance/promotion.jsonl`.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

use serde_json::Value;

use super::*;
use simulcast_kernels::dtype::{Complex, Scalar};

const RECORDED: &str = include_str!("../../../../../conformance/promotion.jsonl");

struct Recorded {
    operands: Vec<OperandType>,
    edges: Vec<i128>,
    lines: Vec<Value>,
}

fn words(value: &Value) -> Vec<&str> {
    value.as_str().unwrap().split(' ').collect()
}

fn recorded() -> Recorded {
    let mut lines: Vec<Value> =
        RECORDED.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let header = lines.remove(0);
    let text = |key: &str| {
        let words = header[key].as_array().unwrap().iter();
        words.map(|word| word.as_str().unwrap().to_string()).collect::<Vec<_>>()
    };
    let operand = |word: &String| match word.as_str() {
        "True" => OperandType::Literal(Literal::Bool(true)),
        "1" => OperandType::Literal(Literal::Int(1)),
        "1.5" => OperandType::Literal(Literal::Float(1.5)),
        "1j" => OperandType::Literal(Literal::Complex(Complex::new(0.0, 1.0))),
        name => OperandType::Array(name.parse().unwrap()),
    };
    Recorded {
        operands: text("operands").iter().map(operand).collect(),
        edges: text("edges").iter().map(|word| word.parse().unwrap()).collect(),
        lines,
    }
}

fn named(found: Option<DType>) -> &'static str {
    found.map_or("-", DType::name)
}

fn result(op: Op, args: &[OperandType]) -> Option<DType> {
    signature(op, args, Promotion::Numpy).ok().map(|signature| signature.result)
}

/// Compares a recorded table with ours.
fn check(
    line: &Value,
    operands: &[OperandType],
    ours: impl Fn(OperandType, OperandType) -> Option<DType>,
) -> usize {
    let rows = line["out"].as_array().unwrap();
    let mut count = 0;
    for (row, &a) in rows.iter().zip(operands) {
        let row = words(row);
        assert_eq!(row.len(), rows.len());
        for (theirs, &b) in row.iter().zip(operands) {
            assert_eq!(named(ours(a, b)), *theirs, "{} of {a} and {b}", line["ask"]);
            count += 1;
        }
    }
    count
}

#[test]
fn types_promote_as_in_numpy() {
    let Recorded { operands, lines, .. } = recorded();
    let (mut count, mut ops) = (0, 0);
    for line in &lines {
        let ask = line["ask"].as_str().unwrap();
        count += match ask {
            "promote_types" => check(line, &operands, |a, b| match (a, b) {
                (OperandType::Array(a), OperandType::Array(b)) => promote_types(a, b),
                _ => None,
            }),
            "result_type" => {
                check(line, &operands, |a, b| result_type(&[a, b], Promotion::Numpy).ok())
            }
            "where" => check(line, &operands, |a, b| {
                result(Op::Where, &[OperandType::Array(DType::Bool), a, b])
            }),
            "can_cast" | "literal" | "compare" | "mixed" => 0,
            _ => {
                let op: Op = ask.parse().unwrap();
                ops += 1;
                if op.arity() == 2 {
                    check(line, &operands, |a, b| result(op, &[a, b]))
                } else {
                    let row = words(&line["out"][0]);
                    for (theirs, &a) in row.iter().zip(&operands) {
                        assert_eq!(named(result(op, &[a])), *theirs, "{op} of {a}");
                    }
                    row.len()
                }
            }
        };
    }
    // All that NumPy has, but for where.
    assert_eq!(ops, 64);
    assert!(count > 10_000, "{count}");
}

#[test]
fn casts_are_allowed_as_in_numpy() {
    let Recorded { operands, lines, .. } = recorded();
    let types: Vec<DType> = operands
        .iter()
        .filter_map(|one| if let OperandType::Array(dtype) = one { Some(*dtype) } else { None })
        .collect();
    let tables: Vec<&Value> = lines.iter().filter(|line| line["ask"] == "can_cast").collect();
    assert_eq!(tables.len(), 5);
    for line in tables {
        let casting = match line["casting"].as_str().unwrap() {
            "no" => Casting::No,
            "equiv" => Casting::Equiv,
            "safe" => Casting::Safe,
            "same_kind" => Casting::SameKind,
            _ => Casting::Unsafe,
        };
        for (row, &from) in line["out"].as_array().unwrap().iter().zip(&types) {
            let ours: String =
                types.iter().map(|&to| u8::from(can_cast(from, to, casting)).to_string()).collect();
            assert_eq!(ours, row.as_str().unwrap(), "{casting:?} from {from}");
        }
    }
}

#[test]
fn literals_fit_where_numpy_takes_them() {
    let Recorded { edges, lines, .. } = recorded();
    let mut count = 0;
    for line in lines.iter().filter(|line| line["ask"] == "literal") {
        let op: Op = line["op"].as_str().unwrap().parse().unwrap();
        let own: DType = line["type"].as_str().unwrap().parse().unwrap();
        for (theirs, &value) in words(&line["out"]).iter().zip(&edges) {
            // NumPy reads the literal as 64 bits there; here it is any float, and any truth.
            let narrow = own == DType::Bf16 || op == Op::LogicalAnd;
            let unread = narrow && i64::try_from(value).is_err() && *theirs == "-";
            let args = [OperandType::Array(own), OperandType::Literal(Literal::Int(value))];
            let ours = named(result(op, &args));
            assert!(ours == *theirs || unread, "{op} of {own} and {value}: {ours}, not {theirs}");
            count += 1;
        }
    }
    assert!(count > 2_000, "{count}");
}

/// A value in the type that a comparison takes it in.
#[derive(PartialEq, PartialOrd)]
enum Seen {
    Whole(i128),
    Float(f64),
}

/// What a comparison gives, computed as its signature says.
fn compared(op: Op, signature: &Signature, a: Scalar, b: Scalar) -> bool {
    let seen = |scalar: Scalar| match scalar {
        Scalar::Int(_, value) => Seen::Whole(value),
        Scalar::Float(_, value) => Seen::Float(value),
        other => panic!("{other:?}"),
    };
    // Values keep their sign here, as the mixed comparison does.
    assert!(signature.is_mixed() || signature.args[0] == signature.args[1]);
    let order = seen(a).partial_cmp(&seen(b)).unwrap();
    match op {
        Op::Equal => order.is_eq(),
        Op::NotEqual => order.is_ne(),
        Op::Less => order.is_lt(),
        Op::LessEqual => order.is_le(),
        Op::Greater => order.is_gt(),
        _ => order.is_ge(),
    }
}

fn ends(dtype: DType) -> Vec<i128> {
    let (least, most) = literal::range(dtype).unwrap();
    vec![least, least + 1, 0, most - 1, most]
}

/// An integer cast to the type.
fn cast(value: i128, dtype: DType) -> Scalar {
    literal_as(Literal::Int(value), dtype).unwrap()
}

#[test]
fn comparisons_are_exact_at_the_ends_of_the_integers() {
    let Recorded { edges, lines, .. } = recorded();
    let mut count = 0;
    for line in &lines {
        if line["ask"] == "compare" {
            let op: Op = line["op"].as_str().unwrap().parse().unwrap();
            let own: DType = line["type"].as_str().unwrap().parse().unwrap();
            for (theirs, &edge) in words(&line["literals"]).iter().zip(&edges) {
                let args = [OperandType::Array(own), OperandType::Literal(Literal::Int(edge))];
                let signature = signature(op, &args, Promotion::Numpy).unwrap();
                assert_eq!(signature.result, DType::Bool);
                let literal = || {
                    literal_operand(op, &args, 1, Literal::Int(edge), signature.args[1]).unwrap()
                };
                let ours: String = ends(own)
                    .iter()
                    .map(|&value| {
                        compared(op, &signature, cast(value, signature.args[0]), literal())
                    })
                    .map(|one| u8::from(one).to_string())
                    .collect();
                assert_eq!(ours, *theirs, "{op} of {own} and {edge}");
                count += 1;
            }
        } else if line["ask"] == "mixed" {
            let op: Op = line["op"].as_str().unwrap().parse().unwrap();
            let [own, other] = [0, 1].map(|k| line["types"][k].as_str().unwrap().parse().unwrap());
            let signature = signature(
                op,
                &[OperandType::Array(own), OperandType::Array(other)],
                Promotion::Numpy,
            );
            let signature = signature.unwrap();
            assert!(signature.is_mixed());
            for (theirs, &a) in words(&line["out"]).iter().zip(&ends(own)) {
                let ours: String = ends(other)
                    .iter()
                    .map(|&b| {
                        let [first, second, _] = signature.args;
                        compared(op, &signature, cast(a, first), cast(b, second))
                    })
                    .map(|one| u8::from(one).to_string())
                    .collect();
                assert_eq!(ours, *theirs, "{op} of {own} {a} and {other}");
                count += 1;
            }
        }
    }
    assert!(count > 1_500, "{count}");
}

#[test]
fn what_numpy_lacks_follows_its_neighbours() {
    let array = OperandType::Array;
    assert_eq!(result(Op::Erf, &[array(DType::I8)]), Some(DType::F16));
    assert_eq!(result(Op::Sigmoid, &[array(DType::F32)]), Some(DType::F32));
    assert_eq!(result(Op::Sigmoid, &[array(DType::C64)]), None);
    assert_eq!(result(Op::Relu, &[array(DType::I16)]), Some(DType::I16));
    assert_eq!(result(Op::TruncDivide, &[array(DType::I8), array(DType::U8)]), Some(DType::I16));
    assert_eq!(result(Op::TruncDivide, &[array(DType::F32), array(DType::F32)]), None);
    let text = array(DType::String);
    assert_eq!(result(Op::Concat, &[text, text]), Some(DType::String));
    assert_eq!(result(Op::Equal, &[text, text]), Some(DType::Bool));
    assert_eq!(result(Op::Less, &[text, text]), None);
    assert_eq!(result(Op::Where, &[array(DType::Bool), text, text]), Some(DType::String));
    let fused = [array(DType::F32), OperandType::Literal(Literal::Int(2)), array(DType::I64)];
    assert_eq!(result(Op::MultiplyAdd, &fused), Some(DType::F64));
}

#[test]
fn a_literal_is_rounded_to_the_type_that_it_meets() {
    let half = OperandType::Array(DType::F16);
    let sum =
        signature(Op::Add, &[half, OperandType::Literal(Literal::Float(0.1))], Promotion::Numpy);
    assert_eq!(sum.map(|sum| sum.args[1]), Ok(DType::F16));
    assert_eq!(
        literal_as(Literal::Float(0.1), DType::F16),
        Ok(Scalar::Float(DType::F16, half::f16::from_f32(0.1).to_f64()))
    );
}

#[test]
fn strict_types_are_equal_and_literals_adopt_them() {
    let strict = |op, args: &[OperandType]| signature(op, args, Promotion::Strict);
    let (f32, i32) = (OperandType::Array(DType::F32), OperandType::Array(DType::I32));
    let (two, half) =
        (OperandType::Literal(Literal::Int(2)), OperandType::Literal(Literal::Float(0.5)));
    assert_eq!(strict(Op::Add, &[f32, two]).unwrap().result, DType::F32);
    assert_eq!(strict(Op::Add, &[i32, two]).unwrap().result, DType::I32);
    let message = |op, args: &[OperandType]| strict(op, args).unwrap_err().to_string();
    assert_eq!(
        message(Op::Add, &[f32, i32]),
        "float32 and int32 differ, and `add` takes equal types here; cast one of them"
    );
    assert_eq!(message(Op::Add, &[i32, half]), "0.5 does not fit in int32");
    assert_eq!(
        message(Op::Sqrt, &[i32]),
        "`sqrt` is not defined on int32; it takes floats and complex numbers"
    );
    assert_eq!(
        message(Op::Divide, &[i32, i32]),
        "`divide` is not defined on int32 and int32; it takes floats and complex numbers"
    );
    assert_eq!(message(Op::Where, &[i32, f32, f32]), "the condition of `where` is bool, not int32");
    assert_eq!(message(Op::Where, &[i32]), "`where` takes 3 operands, not 1");
}

#[test]
fn literals_are_written_as_python_writes_them() {
    let shown = |literal: Literal| literal.to_string();
    assert_eq!(shown(Literal::Bool(true)), "True");
    assert_eq!(shown(Literal::Float(2.0)), "2.0");
    assert_eq!(shown(Literal::Float(1e-7)), "1e-7");
    assert_eq!(shown(Literal::Float(f64::INFINITY)), "inf");
    assert_eq!(shown(Literal::Complex(Complex::new(0.0, 2.0))), "2.0j");
    assert_eq!(shown(Literal::Complex(Complex::new(1.0, -2.0))), "(1.0-2.0j)");
}

#[test]
fn floats_see_the_value_of_an_integer_beyond_64_bits() {
    let large = Literal::Int(1 << 70);
    let compared = |own: DType| {
        let args = [OperandType::Array(own), OperandType::Literal(large)];
        let signature = signature(Op::Less, &args, Promotion::Numpy).unwrap();
        literal_operand(Op::Less, &args, 1, large, signature.args[1]).unwrap()
    };
    let value = 2_f64.powi(70);
    assert_eq!(compared(DType::F64), Scalar::Float(DType::F64, value));
    assert_eq!(compared(DType::F32), Scalar::Float(DType::F32, value));
    assert_eq!(compared(DType::I64), Scalar::Float(DType::F64, f64::INFINITY));
}
