//! Kernels against the answers of NumPy, and against themselves: patterns, places, lengths.
//!
//! `conformance/operations.jsonl` holds operands, results and conversions by NumPy 2, as bytes.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::*;
use crate::dtype::DTypeKind as Values;

/// What this machine and NumPy compute alike: bit by bit. Other results may differ by a number of units
/// in the last place; NumPy's own are not always the nearest.
fn bound(op: Op, dtype: DType) -> u64 {
    let rounded = matches!(
        op,
        Op::Cbrt
            | Op::Exp
            | Op::Exp2
            | Op::Expm1
            | Op::Log
            | Op::Log2
            | Op::Log10
            | Op::Log1p
            | Op::Sin
            | Op::Cos
            | Op::Tan
            | Op::Arcsin
            | Op::Arccos
            | Op::Arctan
            | Op::Sinh
            | Op::Cosh
            | Op::Tanh
            | Op::Arcsinh
            | Op::Arccosh
            | Op::Arctanh
            | Op::Erf
            | Op::Sigmoid
            | Op::Power
            | Op::Arctan2
            | Op::Hypot
    );
    let composed = matches!(
        op,
        Op::Sqrt
            | Op::Sign
            | Op::Reciprocal
            | Op::Divide
            | Op::Absolute
            | Op::Square
            | Op::Multiply
            | Op::MultiplyAdd
    );
    match dtype.kind() {
        Values::Float if rounded => 4,
        // The C library's functions of 32-bit x86 round otherwise, which an exponent of thousands multiplies.
        Values::Complex if op == Op::Power && cfg!(target_arch = "x86") => 4096,
        Values::Complex if rounded => 16,
        Values::Complex if composed => 4,
        _ => 0,
    }
}

/// Of complex numbers, what is compared for finite operands alone: NumPy fuses products, so that
/// infinities cancel in other places, and its powers of infinities follow no formula.
const FINITE: [Op; 4] = [Op::Multiply, Op::Square, Op::MultiplyAdd, Op::Power];

/// Operations of one float that no recorded system has: the formula in double precision, and how many units in the last
/// place results may be from it.
type Formula = (Op, fn(f64) -> f64, u64);

/// See [`Formula`].
const FORMULAS: [Formula; 1] = [(Op::Softsign, |x| x / (1.0 + x.abs()), 2)];

/// Memory of any element type, aligned for all of them.
#[derive(Clone, PartialEq)]
struct Bytes(Vec<u64>, usize);

impl Bytes {
    fn new(len: usize) -> Self {
        Self(vec![0; len.div_ceil(8) + 1], len)
    }

    fn of(bytes: &[u8]) -> Self {
        let mut own = Self::new(bytes.len());
        own.slice_mut().copy_from_slice(bytes);
        own
    }

    fn of_hex(text: &str) -> Self {
        let digit = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).unwrap();
        Self::of(&(0..text.len()).step_by(2).map(digit).collect::<Vec<_>>())
    }

    fn slice(&self) -> &[u8] {
        // SAFETY: the words hold at least that many bytes.
        unsafe { std::slice::from_raw_parts(self.0.as_ptr().cast(), self.1) }
    }

    fn slice_mut(&mut self) -> &mut [u8] {
        // SAFETY: the words hold at least that many bytes.
        unsafe { std::slice::from_raw_parts_mut(self.0.as_mut_ptr().cast(), self.1) }
    }
}

/// The recorded answers.
struct Recorded {
    operands: HashMap<DType, [Vec<Bytes>; 3]>,
    lines: Vec<Value>,
}

fn dtype_of(value: &Value) -> DType {
    value.as_str().unwrap().parse().unwrap()
}

fn recorded() -> Recorded {
    let text = include_str!("../../../../conformance/operations.jsonl");
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let mut operands = HashMap::new();
    for line in lines.iter().filter(|line| line.get("operands").is_some()) {
        let lists = [0, 1, 2].map(|arity| {
            let hex = line["operands"][arity].as_array().unwrap().iter();
            hex.map(|hex| Bytes::of_hex(hex.as_str().unwrap())).collect()
        });
        operands.insert(dtype_of(&line["dtype"]), lists);
    }
    Recorded { operands, lines }
}

/// The parts of an element as `f64`, or none where it is an integer.
fn parts(bytes: &[u8], dtype: DType) -> Vec<f64> {
    let half = |at: &[u8]| u16::from_le_bytes(at.try_into().unwrap());
    match dtype {
        DType::F16 => vec![::half::f16::from_bits(half(bytes)).to_f64()],
        DType::Bf16 => vec![::half::bf16::from_bits(half(bytes)).to_f64()],
        DType::F32 => vec![f32::from_le_bytes(bytes.try_into().unwrap()).into()],
        DType::F64 => vec![f64::from_le_bytes(bytes.try_into().unwrap())],
        DType::C64 => bytes.chunks(4).flat_map(|part| parts(part, DType::F32)).collect(),
        DType::C128 => bytes.chunks(8).flat_map(|part| parts(part, DType::F64)).collect(),
        _ => Vec::new(),
    }
}

/// Whether two elements are the same, NaN for NaN, or within `bound` units in the last place of the
/// larger part.
fn close(ours: &[u8], theirs: &[u8], dtype: DType, bound: u64) -> bool {
    if ours == theirs {
        return true;
    }
    let (ours, theirs) = (parts(ours, dtype), parts(theirs, dtype));
    if ours.is_empty() {
        return false;
    }
    let largest = theirs.iter().fold(0.0_f64, |most, part| most.max(part.abs()));
    let (unit, least) = match dtype {
        DType::F64 | DType::C128 => (f64::EPSILON, f64::from_bits(1)),
        _ => (f32::EPSILON.into(), f32::from_bits(1).into()),
    };
    // A unit in the last place is between half of and all of the epsilon times the number.
    let near = (largest * unit).max(least) * bound as f64;
    ours.iter().zip(&theirs).all(|(a, b)| {
        a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan() || bound > 0 && (a - b).abs() <= near
    })
}

fn ins(operands: &[Bytes]) -> [*const u8; 3] {
    let mut ins = [std::ptr::null(); 3];
    for (to, from) in ins.iter_mut().zip(operands) {
        *to = from.slice().as_ptr();
    }
    ins
}

/// What kernels say that NumPy has no loop for: real numbers have their own conjugate and so on.
fn ours_alone(op: Op, dtype: DType) -> bool {
    dtype == DType::Bool
        && matches!(op, Op::Conjugate | Op::Real | Op::Imag | Op::Round | Op::MultiplyAdd)
}

#[test]
fn operations_without_recorded_answers_are_their_formulas() {
    let recorded = recorded();
    for ((op, formula, bound), dtype) in
        FORMULAS.iter().flat_map(|row| [DType::F32, DType::F64].map(|dtype| (row, dtype)))
    {
        let (operand, size) = (&recorded.operands[&dtype][0], dtype.size());
        let len = operand[0].slice().len() / size;
        for level in Level::available() {
            let mut out = Bytes::new(len * size);
            let kernels = kernels(*op, dtype, level).unwrap();
            // SAFETY: an operand of `len` elements, and a result of as many.
            unsafe { (kernels.cached)(out.slice_mut().as_mut_ptr(), &ins(operand), 0, len) };
            for (ours, x) in out.slice().chunks(size).zip(operand[0].slice().chunks(size)) {
                let x = parts(x, dtype)[0];
                let theirs = formula(x);
                let theirs = match dtype {
                    DType::F32 => (theirs as f32).to_le_bytes().to_vec(),
                    _ => theirs.to_le_bytes().to_vec(),
                };
                let same = close(ours, &theirs, dtype, *bound);
                assert!(
                    same,
                    "{op} of {dtype} {x} at {}: {ours:02x?}, not {theirs:02x?}",
                    level.name()
                );
            }
        }
    }
}

#[test]
fn every_operation_gives_what_numpy_gives() {
    let recorded = recorded();
    let mut seen = HashSet::new();
    let mut wrong = Vec::new();
    for line in recorded.lines.iter().filter(|line| line.get("op").is_some()) {
        let (name, dtype) = (line["op"].as_str().unwrap(), dtype_of(&line["dtype"]));
        let fused = name.starts_with("fused ");
        let op: Op = name.trim_start_matches("fused ").parse().unwrap();
        let result = result_of(op, dtype);
        assert_eq!(result, dtype_of(&line["result"]), "{op} of {dtype}");
        let mut operands = recorded.operands[&dtype][op.arity() - 1].clone();
        let len = operands[0].slice().len() / dtype.size();
        if op == Op::Where {
            let choice: Vec<u8> = (0..len).map(|at| u8::from(at % 3 == 1)).collect();
            operands[0] = Bytes::of(&choice);
        }
        seen.insert((op, dtype));
        let op = swapped(op).inspect(|_| operands.swap(0, 1)).unwrap_or(op);
        let theirs = Bytes::of_hex(line["out"].as_str().unwrap());
        for level in Level::available() {
            let once = op == Op::MultiplyAdd && dtype.is_float() && level != Level::BASELINE;
            if once != fused {
                continue;
            }
            let Some(loops) = kernels(op, dtype, level) else {
                wrong.push(format!("{op} of {dtype} is not there"));
                break;
            };
            let mut out = Bytes::new(len * result.size());
            // SAFETY: operands of `len` elements each, and a result of as many.
            unsafe { (loops.cached)(out.slice_mut().as_mut_ptr(), &ins(&operands), 0, len) };
            let size = result.size();
            for at in 0..len {
                let one = |bytes: &Bytes| {
                    parts(&bytes.slice()[at * dtype.size()..][..dtype.size()], dtype)
                };
                let free = dtype.is_complex() && FINITE.contains(&op);
                if free && operands.iter().any(|own| one(own).iter().any(|part| !part.is_finite()))
                {
                    continue;
                }
                let [ours, theirs] =
                    [&out, &theirs].map(|bytes| &bytes.slice()[at * size..][..size]);
                if !close(ours, theirs, result, bound(op, dtype)) {
                    let show = |bytes: &Bytes| {
                        let own = bytes.slice();
                        let size = own.len() / len;
                        let one = &own[at * size..][..size];
                        let parts = parts(one, dtype);
                        if parts.is_empty() { format!("{one:02x?}") } else { format!("{parts:?}") }
                    };
                    let operands: Vec<_> = operands.iter().map(show).collect();
                    let shown = |one: &[u8]| format!("{one:02x?} {:?}", parts(one, result));
                    wrong.push(format!(
                        "{op} of {dtype} at {}: {operands:?} gave {} and not {}",
                        level.name(),
                        shown(ours),
                        shown(theirs)
                    ));
                }
            }
        }
    }
    for &op in Op::ALL {
        for &dtype in DType::ALL {
            let there = kernels(swapped(op).unwrap_or(op), dtype, Level::BASELINE).is_some();
            let formula = dtype.is_float() && FORMULAS.iter().any(|(own, ..)| *own == op);
            let known = seen.contains(&(op, dtype)) || ours_alone(op, dtype) || formula && there;
            if there != known {
                wrong.push(format!("{op} of {dtype}: it has loops: {there}; it is recorded, ours alone, or in `FORMULAS`: {known}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn every_conversion_rounds_once() {
    let recorded = recorded();
    let mut wrong = Vec::new();
    for line in recorded.lines.iter().filter(|line| line.get("cast").is_some()) {
        let (to, from) = (dtype_of(&line["cast"]), dtype_of(&line["dtype"]));
        let operand = &recorded.operands[&from][0];
        let len = operand[0].slice().len() / from.size();
        let theirs = Bytes::of_hex(line["out"].as_str().unwrap());
        for level in Level::available() {
            let mut out = Bytes::new(len * to.size());
            // SAFETY: `len` elements and as many results.
            unsafe {
                let conversion = cast(from, to, level).unwrap();
                let sizes = [from.size(), to.size()];
                let source = operand[0].slice().as_ptr();
                conversion.run(out.slice_mut().as_mut_ptr(), source, sizes, len);
            }
            for at in 0..len {
                let [ours, theirs] =
                    [&out, &theirs].map(|bytes| &bytes.slice()[at * to.size()..][..to.size()]);
                if !close(ours, theirs, to, 0) {
                    let one = &operand[0].slice()[at * from.size()..][..from.size()];
                    wrong.push(format!(
                        "{from} to {to} at {}: {one:02x?} gave {ours:02x?} and not {theirs:02x?}",
                        level.name()
                    ));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
    for &dtype in DType::ALL {
        assert!(cast(dtype, DType::String, Level::BASELINE).is_none());
        assert!(cast(DType::String, dtype, Level::BASELINE).is_none());
    }
}

/// The lengths: none, one, primes, and around the widths of vectors, of tiles and of blocks between non-temporal stores.
const LENGTHS: [usize; 22] =
    [0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 61, 64, 65, 127, 129, 151, 255, 257, 513, 600];

/// A kernel, and whether it is to use non-temporal stores.
type Call = (Kernels, bool);

/// The kernels of an operation, with either kind of stores.
fn both_stores(kernels: Kernels) -> Vec<Call> {
    let nontemporal = kernels.nontemporal.is_some().then_some((kernels, true));
    [(kernels, false)].into_iter().chain(nontemporal).collect()
}

/// # Safety
///
/// As [`Kernels::run`].
unsafe fn run_all((kernels, nontemporal): Call, out: *mut u8, ins: [*const u8; 3], len: usize) {
    // SAFETY: the caller keeps the conditions.
    unsafe { kernels.run(nontemporal, out, &ins, 0, len) };
    drop(crate::cpu::nontemporal::Fence);
}

#[test]
fn patterns_places_and_lengths_do_not_matter() {
    let recorded = recorded();
    let lengths = if cfg!(miri) { &LENGTHS[..6] } else { &LENGTHS };
    for &op in Op::ALL {
        for &dtype in DType::ALL {
            for level in Level::available() {
                let both = [kernels(op, dtype, level), half(op, dtype, level)];
                for call in both.into_iter().flatten().flat_map(both_stores) {
                    let operands = &recorded.operands[&dtype][op.arity() - 1];
                    agree(op, dtype, call, operands, lengths);
                }
            }
        }
    }
}

#[test]
fn halves_are_computed_in_single_precision_and_rounded_once() {
    use ::half::{bf16, f16};
    type Each = (Op, fn(f32, f32) -> f32);
    /// Every operation of one half, against that type's own conversions.
    fn check(dtype: DType, all: &[u16], wide: impl Fn(u16) -> f32, narrow: impl Fn(f32) -> u16) {
        let ops: [Each; 7] = [
            (Op::Add, |a, b| a + b),
            (Op::Subtract, |a, b| a - b),
            (Op::Multiply, |a, b| a * b),
            (Op::Divide, |a, b| a / b),
            (Op::Square, |a, _| a * a),
            (Op::Sqrt, |a, _| a.sqrt()),
            (Op::Relu, |a, _| if a <= 0.0 { 0.0 } else { a }),
        ];
        let turned: Vec<u16> = all.iter().rev().copied().collect();
        for ((op, f), level) in
            ops.iter().flat_map(|op| Level::available().into_iter().map(move |l| (op, l)))
        {
            let loops = half(*op, dtype, level).unwrap();
            for call in both_stores(loops) {
                let mut out = vec![0_u16; all.len()];
                let ins = [all.as_ptr().cast(), turned.as_ptr().cast(), std::ptr::null()];
                // SAFETY: as many elements in all of them.
                unsafe { run_all(call, out.as_mut_ptr().cast(), ins, all.len()) };
                for ((&a, &b), &ours) in all.iter().zip(&turned).zip(&out) {
                    let expected = narrow(f(wide(a), wide(b)));
                    let same = ours == expected || wide(ours).is_nan() && wide(expected).is_nan();
                    assert!(
                        same,
                        "{op} of {dtype} at {level:?}: {a:04x} {b:04x} {ours:04x} {expected:04x}"
                    );
                }
            }
        }
    }
    let step = if cfg!(miri) { 4001 } else { 7 };
    let all: Vec<u16> = (0..=u16::MAX).step_by(step).collect();
    let wide = |bits| f16::from_bits(bits).to_f32();
    check(DType::F16, &all, wide, |x| f16::from_f32(x).to_bits());
    let wide = |bits| bf16::from_bits(bits).to_f32();
    check(DType::Bf16, &all, wide, |x| bf16::from_f32(x).to_bits());
}

#[test]
fn pairs_round_as_two_steps_do() {
    let recorded = recorded();
    for (&first, &second) in
        Op::ALL.iter().flat_map(|first| Op::ALL.iter().map(move |second| (first, second)))
    {
        for (dtype, level) in [DType::F32, DType::F64]
            .into_iter()
            .flat_map(|dtype| Level::available().into_iter().map(move |level| (dtype, level)))
        {
            // What chooses reads three.
            for place in 0..second.arity().min(2) {
                let Some(both) = pair(first, second, place, dtype, level) else { continue };
                let operands = &recorded.operands[&dtype][2];
                let (size, count) = (dtype.size(), operands[0].1 / dtype.size());
                let run = |call: Call, ins: [*const u8; 3]| {
                    let mut out = Bytes::new(count * size);
                    // SAFETY: as many elements in all of them.
                    unsafe { run_all(call, out.slice_mut().as_mut_ptr(), ins, count) };
                    out
                };
                let [a, b, c] = [0, 1, 2].map(|n| operands[n].slice().as_ptr());
                let between =
                    run((kernels(first, dtype, level).unwrap(), false), [a, b, std::ptr::null()]);
                let between = between.slice().as_ptr();
                let ins = if place == 0 {
                    [between, c, std::ptr::null()]
                } else {
                    [c, between, std::ptr::null()]
                };
                let apart = run((kernels(second, dtype, level).unwrap(), false), ins);
                for joined in both_stores(both).into_iter().map(|call| run(call, [a, b, c])) {
                    let places = joined.slice().chunks(size).zip(apart.slice().chunks(size));
                    for (ours, theirs) in places {
                        assert!(
                            close(ours, theirs, dtype, 0),
                            "{first} then {second} of {dtype} at {level:?}: {ours:02x?} {theirs:02x?}"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn choices_by_a_comparison_are_what_it_says() {
    let recorded = recorded();
    for (op, dtype) in [Op::Less, Op::LessEqual, Op::Greater, Op::GreaterEqual]
        .into_iter()
        .flat_map(|op| [DType::F32, DType::F64].map(|dtype| (op, dtype)))
    {
        for level in Level::available() {
            let operands = &recorded.operands[&dtype][1];
            let (size, count) = (dtype.size(), operands[0].1 / dtype.size());
            let [a, b] = [0, 1].map(|n| operands[n].slice().as_ptr());
            let mut choice = Bytes::new(count);
            let (mut apart, mut joined) = (Bytes::new(count * size), Bytes::new(count * size));
            // SAFETY: as many elements in all of them.
            unsafe {
                let (less, operands) = match swapped(op) {
                    Some(less) => (less, [b, a, std::ptr::null()]),
                    None => (op, [a, b, std::ptr::null()]),
                };
                let [compare, choose] =
                    [less, Op::Where].map(|op| kernels(op, dtype, level).unwrap().cached);
                compare(choice.slice_mut().as_mut_ptr(), &operands, 0, count);
                choose(apart.slice_mut().as_mut_ptr(), &[choice.slice().as_ptr(), a, b], 0, count);
                let both = choice_by(op, dtype, level).unwrap().cached;
                both(joined.slice_mut().as_mut_ptr(), &[a, b, std::ptr::null()], 0, count);
            }
            assert!(joined.slice() == apart.slice(), "{op} of {dtype} at {level:?}");
        }
    }
}

/// The element at each place is what a loop over that element alone gives, whatever is repeated,
/// and wherever the stretch begins.
fn agree(
    op: Op,
    dtype: DType,
    (kernels, nontemporal): Call,
    operands: &[Bytes],
    lengths: &[usize],
) {
    let result = result_of(op, dtype);
    let sizes: Vec<usize> = (0..op.arity())
        .map(|operand| if op == Op::Where && operand == 0 { 1 } else { dtype.size() })
        .collect();
    // Element `at` of an operand, around and around.
    let element = |operand: usize, at: usize| -> Vec<u8> {
        if op == Op::Where && operand == 0 {
            return vec![u8::from(at % 3 == 1)];
        }
        let own = operands[operand].slice();
        let count = own.len() / dtype.size();
        own[at * 7 % count * dtype.size()..][..dtype.size()].to_vec()
    };
    let alone = |pattern: usize, at: usize| {
        let ones: Vec<Bytes> = (0..op.arity())
            .map(|n| Bytes::of(&element(n, if pattern >> n & 1 == 1 { 0 } else { at })))
            .collect();
        let mut out = Bytes::new(result.size());
        // SAFETY: one element of each.
        unsafe { kernels.run(nontemporal, out.slice_mut().as_mut_ptr(), &ins(&ones), 0, 1) };
        out.slice().to_vec()
    };
    for pattern in 0..(1 << op.arity()) - 1 {
        for &len in lengths {
            // One element off the start, so that vectors are not aligned.
            let stretch = |n: usize| {
                let count = if pattern >> n & 1 == 1 { 1 } else { len };
                let body = (0..count).flat_map(|at| element(n, at));
                Bytes::of(&vec![0; sizes[n]].into_iter().chain(body).collect::<Vec<_>>())
            };
            let ones: Vec<Bytes> = (0..op.arity()).map(stretch).collect();
            let mut starts = ins(&ones);
            for (start, size) in starts.iter_mut().zip(&sizes) {
                *start = start.wrapping_add(*size);
            }
            let expected: Vec<u8> = (0..len).flat_map(|at| alone(pattern, at)).collect();
            let check = |out: &[u8], place: &str| {
                let size = result.size();
                assert_eq!(out.len(), expected.len());
                for (at, (ours, one)) in out.chunks(size).zip(expected.chunks(size)).enumerate() {
                    // Only the bits of a NaN may depend on the place.
                    assert!(
                        close(ours, one, result, 0),
                        "{op} of {dtype}, pattern {pattern}, {len}, {place}, at {at}: {ours:02x?} {one:02x?}"
                    );
                }
            };
            let mut out = Bytes::new((len + 1) * result.size());
            let size = result.size();
            // SAFETY: the stretches begin one element late and have `len` elements, or one.
            unsafe {
                let to = out.slice_mut().as_mut_ptr().add(size);
                kernels.run(nontemporal, to, &starts, pattern, len);
            }
            check(&out.slice()[size..], "apart");
            assert!(out.slice()[..size].iter().all(|&byte| byte == 0));
        }
    }
}
