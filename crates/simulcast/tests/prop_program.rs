//! Random programs against a naive interpreter: one step at a time, every index by arithmetic.
//!
//! The interpreter lays every operand out element by element, brings arguments to one shape by
//! index, and runs each operation as a program of its own on rows of equal length; 16-bit floats
//! are kept in 32 bits until the end. So what is tested is how steps are put together, laid over
//! memory and cut up, not the operations themselves.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use common::indices;
use proptest::prelude::*;
use simulcast::program::{AxisPattern, Builder, Fold, Hoisting, Node, row_axis};
use simulcast::types::{Literal, OperandType, Promotion, signature};
use simulcast::{AnyView, AnyViewMut, DType, DTypeKind, Level, Op, ProgramErrorKind, TypedProgram};

/// Where random choices come from: a list that proptest shortens, then zeros.
struct Choices(std::vec::IntoIter<u32>);

impl Choices {
    fn below(&mut self, end: usize) -> usize {
        self.0.next().unwrap_or(0) as usize % end.max(1)
    }

    fn of<T: Clone>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())].clone()
    }
}

/// A shape and the bytes of its elements, row-major.
#[derive(Clone, Debug)]
struct Data {
    dtype: DType,
    shape: Vec<usize>,
    words: Vec<[u64; 2]>,
}

fn row_major(shape: &[usize]) -> Vec<isize> {
    (0..shape.len()).map(|k| shape[k + 1..].iter().product::<usize>() as isize).collect()
}

impl Data {
    fn new(dtype: DType, shape: &[usize]) -> Self {
        let bytes = shape.iter().product::<usize>() * dtype.size();
        Self { dtype, shape: shape.to_vec(), words: vec![[0; 2]; bytes.div_ceil(16).max(1)] }
    }

    fn bytes(&self) -> &[u8] {
        let bytes = self.shape.iter().product::<usize>() * self.dtype.size();
        // SAFETY: the words have no padding, and there are as many.
        unsafe { std::slice::from_raw_parts(self.words.as_ptr().cast(), bytes) }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        let bytes = self.shape.iter().product::<usize>() * self.dtype.size();
        // SAFETY: as above, and any bytes are words.
        unsafe { std::slice::from_raw_parts_mut(self.words.as_mut_ptr().cast(), bytes) }
    }

    fn view(&self) -> AnyView<'_> {
        let strides = row_major(&self.shape);
        // SAFETY: row-major elements of that type, aligned for any.
        unsafe { AnyView::from_raw(self.dtype, self.words.as_ptr().cast(), &self.shape, &strides) }
    }

    fn of(view: &AnyView<'_>) -> Self {
        let mut own = Self::new(view.dtype(), view.shape());
        let size = view.dtype().size();
        for (at, index) in indices(view.shape()).iter().enumerate() {
            let offset: isize =
                index.iter().zip(view.strides()).map(|(&i, s)| i as isize * s).sum();
            // SAFETY: the index lies within the view.
            let element = unsafe {
                let from = view.as_ptr().offset(offset * size as isize);
                std::slice::from_raw_parts(from, size)
            };
            own.bytes_mut()[at * size..][..size].copy_from_slice(element);
        }
        own
    }

    /// Stretched to a shape, by a map of indices.
    fn shown(&self, shape: &[usize], from: impl Fn(&[usize]) -> Vec<usize>) -> Self {
        let mut own = Self::new(self.dtype, shape);
        let (size, strides) = (self.dtype.size(), row_major(&self.shape));
        for (at, index) in indices(shape).iter().enumerate() {
            let place: isize = from(index).iter().zip(&strides).map(|(&i, s)| i as isize * s).sum();
            let element = &self.bytes()[place as usize * size..][..size];
            own.bytes_mut()[at * size..][..size].copy_from_slice(element);
        }
        own
    }

    fn rows(&self, rows: std::ops::Range<usize>) -> Vec<u8> {
        let row = self.bytes().len() / self.shape[row_axis(&self.shape)].max(1);
        self.bytes()[rows.start * row..rows.end * row].to_vec()
    }
}

/// Equal bits, but any NaN is a NaN.
fn same(dtype: DType, a: &[u8], b: &[u8]) -> bool {
    let part = match dtype {
        DType::C64 => 4,
        DType::C128 => 8,
        other => other.size(),
    };
    let is_nan = |bytes: &[u8]| match (dtype, bytes.len()) {
        (DType::F16, _) => half::f16::from_ne_bytes(bytes.try_into().unwrap()).is_nan(),
        (DType::Bf16, _) => half::bf16::from_ne_bytes(bytes.try_into().unwrap()).is_nan(),
        (DType::F32 | DType::C64, _) => f32::from_ne_bytes(bytes.try_into().unwrap()).is_nan(),
        (DType::F64 | DType::C128, _) => f64::from_ne_bytes(bytes.try_into().unwrap()).is_nan(),
        _ => false,
    };
    let mut pairs = a.chunks(part).zip(b.chunks(part));
    a.len() == b.len() && pairs.all(|(a, b)| a == b || is_nan(a) && is_nan(b))
}

/// An array with strides of any kind, and the memory that it lies in.
#[derive(Debug)]
struct Stored {
    data: Data,
    start: usize,
    shape: Vec<usize>,
    strides: Vec<isize>,
}

impl Stored {
    /// Axes in any order in memory, some backwards, with gaps, or repeated.
    fn new(choices: &mut Choices, dtype: DType, shape: &[usize], repeats: bool) -> Self {
        let mut order: Vec<usize> = (0..shape.len()).rev().collect();
        if choices.below(2) == 1 {
            for k in 1..order.len() {
                order.swap(k, choices.below(k + 1));
            }
        }
        let (mut strides, mut start, mut extent) = (vec![0; shape.len()], 0, 1);
        for &axis in &order {
            let size = shape[axis].max(1);
            let way = choices.below(8);
            if repeats && way == 7 {
                continue;
            }
            let stride = extent * if matches!(way, 4 | 5) { 2 } else { 1 };
            extent = stride * size;
            strides[axis] = stride as isize;
            if matches!(way, 5 | 6) {
                strides[axis] = -strides[axis];
                start += stride * (size - 1);
            }
        }
        let data = filled(choices, dtype, extent);
        Self { data, start, shape: shape.to_vec(), strides }
    }

    fn view(&self) -> AnyView<'_> {
        let dtype = self.data.dtype;
        let start = self.data.words.as_ptr().cast::<u8>().wrapping_add(self.start * dtype.size());
        // SAFETY: the strides stay within the extent.
        unsafe { AnyView::from_raw(dtype, start, &self.shape, &self.strides) }
    }

    fn view_mut(&mut self) -> AnyViewMut<'_> {
        let dtype = self.data.dtype;
        let start =
            self.data.words.as_mut_ptr().cast::<u8>().wrapping_add(self.start * dtype.size());
        // SAFETY: the strides stay within the extent, and no two elements share a place.
        unsafe { AnyViewMut::from_raw(dtype, start, &self.shape, &self.strides) }
    }
}

/// Values of all sizes: small ones, some that are special, and any bits.
fn filled(choices: &mut Choices, dtype: DType, len: usize) -> Data {
    let mut data = Data::new(dtype, &[len]);
    let seed = choices.below(1 << 30) as u64;
    let size = dtype.size();
    let float = |bits: u64, narrow: usize| -> Vec<u8> {
        let special = [0.0, -0.0, 1.0, f64::INFINITY, f64::NAN, 1e-300, 6.5e4, -2.0];
        let value = match bits % 8 {
            0 => special[bits as usize / 8 % 8],
            _ => (bits >> 8) as f64 / (1_u64 << 52) as f64 - 8.0,
        };
        match narrow {
            2 if dtype == DType::Bf16 => half::bf16::from_f64(value).to_ne_bytes().to_vec(),
            2 => half::f16::from_f64(value).to_ne_bytes().to_vec(),
            4 => (value as f32).to_ne_bytes().to_vec(),
            _ => value.to_ne_bytes().to_vec(),
        }
    };
    for (at, place) in data.bytes_mut().chunks_mut(size).enumerate() {
        let mut bits = (seed + at as u64).wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        bits = (bits ^ bits >> 31).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits ^= bits >> 29;
        match dtype.kind() {
            DTypeKind::Bool => place[0] = (bits >> 7) as u8 & 1,
            DTypeKind::Float => place.copy_from_slice(&float(bits, size)),
            DTypeKind::Complex => {
                let (re, im) = place.split_at_mut(size / 2);
                re.copy_from_slice(&float(bits, size / 2));
                im.copy_from_slice(&float(bits.rotate_left(21), size / 2));
            }
            _ if bits.is_multiple_of(4) => place.copy_from_slice(&bits.to_ne_bytes()[..size]),
            _ => {
                let small =
                    (bits >> 8) as i64 % 9 - if dtype.kind() == DTypeKind::Signed { 4 } else { 0 };
                place.copy_from_slice(&small.unsigned_abs().to_ne_bytes()[..size]);
                if small < 0 {
                    place.copy_from_slice(&small.to_ne_bytes()[..size]);
                }
            }
        }
    }
    data
}

/// A step as it was written.
#[derive(Clone, Debug)]
enum Step {
    Operand(usize),
    Literal,
    Apply(Op, Vec<usize>),
    Cast(DType, usize),
    Insert(usize),
    Transpose(Option<Vec<isize>>, usize),
    Fold(Fold, usize, Option<Vec<isize>>, bool),
}

/// An expression under construction: its steps, their nodes and shapes.
struct Written {
    builder: Builder,
    steps: Vec<(Step, Node, OperandType)>,
    /// None for a literal, which has no shape.
    shapes: Vec<Option<Vec<usize>>>,
}

impl Written {
    fn push(&mut self, step: Step, node: Node, shape: Option<Vec<usize>>) -> usize {
        let is = self.builder.type_of(node);
        self.steps.push((step, node, is));
        self.shapes.push(shape);
        self.steps.len() - 1
    }
}

const MOST: usize = 20_000;

/// NumPy's rule, by hand.
fn joined(shapes: &[&[usize]]) -> Option<Vec<usize>> {
    let rank = shapes.iter().map(|shape| shape.len()).max().unwrap_or(0);
    let mut result = vec![1; rank];
    for shape in shapes {
        for (to, &size) in result.iter_mut().rev().zip(shape.iter().rev()) {
            match (*to, size) {
                (1, size) => *to = size,
                (_, 1) => {}
                (to, size) if to == size => {}
                _ => return None,
            }
        }
    }
    Some(result)
}

/// A random expression over operands that mostly go together.
fn written(choices: &mut Choices, operands: &mut Vec<Stored>) -> Written {
    const SIZES: [usize; 15] = [1, 2, 3, 5, 7, 8, 13, 0, 16, 31, 64, 255, 257, 1024, 4099];
    let rank = choices.below(6);
    let mut whole: Vec<usize> = Vec::new();
    for _ in 0..rank {
        let size = choices.of(&SIZES);
        let fits = whole.iter().map(|&own: &usize| own.max(1)).product::<usize>() * size <= 5000;
        whole.push(if fits { size } else { 1 + size % 2 });
    }
    let plain: Vec<DType> = DType::ALL.iter().copied().filter(|d| *d != DType::String).collect();
    let many = choices.below(6) == 5;
    let count = if many { 45 } else { 1 + choices.below(6) };
    let common = choices.of(&plain);
    let mut all =
        Written { builder: Builder::new(Promotion::Numpy), steps: Vec::new(), shapes: Vec::new() };
    if many {
        whole.truncate(2);
        whole.iter_mut().for_each(|size| *size = (*size).min(11));
    }
    for n in 0..count {
        let dtype = if many || choices.below(2) == 0 { common } else { choices.of(&plain) };
        let mut shape: Vec<usize> = whole[choices.below(whole.len() + 1)..].to_vec();
        for size in &mut shape {
            *size = if choices.below(4) == 3 { 1 } else { *size };
        }
        operands.push(Stored::new(choices, dtype, &shape, true));
        let node = all.builder.operand(&format!("x{n}"), dtype);
        all.push(Step::Operand(n), node, Some(shape));
    }
    if many {
        // A sum of all, some of them twice.
        let mut sum = 0;
        for n in 1..count {
            let op = choices.of(&[Op::Maximum, Op::Multiply, Op::Maximum]);
            sum = apply(&mut all, op, &[sum, n]).unwrap_or(sum);
            if choices.below(4) == 0 {
                sum = apply(&mut all, Op::Maximum, &[n / 2, sum]).unwrap_or(sum);
            }
        }
    }
    for _ in 0..choices.below(24) {
        let last = all.steps.len() - 1;
        let old = if choices.below(3) == 0 { last } else { choices.below(last + 1) };
        let shape = all.shapes[old].clone();
        match (choices.below(16), shape) {
            (0, _) => {
                use Literal::{Bool, Float, Int};
                let literal = choices.of(&[Int(2), Int(1), Float(0.5), Int(-1), Bool(true)]);
                let node = all.builder.literal(literal);
                all.push(Step::Literal, node, None);
            }
            (1, shape) => {
                let dtype = choices.of(&plain);
                if let Ok(node) = all.builder.cast(all.steps[old].1, dtype) {
                    all.push(Step::Cast(dtype, old), node, Some(shape.unwrap_or_default()));
                }
            }
            (2, Some(mut shape)) => {
                use AxisPattern::{Keep, New, Rest};
                let pattern = choices.of(&[vec![New], vec![Rest, New], vec![Keep, New]]);
                let node = all.builder.insert_axes(all.steps[old].1, &pattern);
                let at = match pattern[..] {
                    [New] => 0,
                    [Keep, _] if !shape.is_empty() => 1,
                    [Keep, _] => continue,
                    _ => shape.len(),
                };
                shape.insert(at, 1);
                if shape.len() < 7 {
                    all.push(Step::Insert(old), node, Some(shape));
                }
            }
            (3, Some(mut shape)) => {
                let axes = (choices.below(2) == 1 && !shape.is_empty()).then(|| {
                    let by = choices.below(shape.len());
                    let mut axes: Vec<isize> = (0..shape.len() as isize).collect();
                    axes.rotate_left(by);
                    axes
                });
                let node = all.builder.transpose(all.steps[old].1, axes.as_deref());
                match &axes {
                    None => shape.reverse(),
                    Some(axes) => shape = axes.iter().map(|&axis| shape[axis as usize]).collect(),
                }
                all.push(Step::Transpose(axes, old), node, Some(shape));
            }
            (4 | 5, Some(shape)) => {
                let folds = [Fold::Sum, Fold::Mean, Fold::Maximum, Fold::Minimum, Fold::Product];
                let (fold, keep) = (choices.of(&folds), choices.below(2) == 1);
                let axes = (choices.below(4) > 0).then(|| {
                    let some = (0..shape.len()).filter(|_| choices.below(2) == 1);
                    some.map(|axis| axis as isize).collect::<Vec<_>>()
                });
                let gone = |axis: usize| axes.as_ref().is_none_or(|a| a.contains(&(axis as isize)));
                let sizes = shape.iter().copied().enumerate();
                let shape: Vec<usize> = match keep {
                    true => sizes.map(|(k, size)| if gone(k) { 1 } else { size }).collect(),
                    false => sizes.filter(|(k, _)| !gone(*k)).map(|(_, size)| size).collect(),
                };
                let node = all.builder.reduce(fold, all.steps[old].1, axes.as_deref(), keep);
                if let Ok(node) = node {
                    all.push(Step::Fold(fold, old, axes, keep), node, Some(shape));
                }
            }
            _ => {
                let start = choices.below(Op::ALL.len());
                let args = [old, choices.below(last + 1), choices.below(last + 1)];
                let ops = Op::ALL.iter().cycle().skip(start).take(20);
                for &op in ops.filter(|op| **op != Op::Concat) {
                    if apply(&mut all, op, &args[..op.arity()]).is_some() {
                        break;
                    }
                }
            }
        }
    }
    all
}

/// An operation, where it is defined on the types, and the shapes go together.
fn apply(all: &mut Written, op: Op, args: &[usize]) -> Option<usize> {
    let shapes: Vec<&[usize]> = args.iter().filter_map(|&n| all.shapes[n].as_deref()).collect();
    let shape = joined(&shapes)?;
    let shape = (!shapes.is_empty()).then_some(shape);
    if shape.iter().flatten().product::<usize>() > MOST {
        return None;
    }
    let nodes: Vec<Node> = args.iter().map(|&n| all.steps[n].1).collect();
    let node = all.builder.apply(op, &nodes).ok()?;
    let shape = match all.builder.type_of(node) {
        OperandType::Literal(_) => None,
        OperandType::Array(_) => Some(shape.unwrap_or_default()),
    };
    Some(all.push(Step::Apply(op, args.to_vec()), node, shape))
}

const fn wide(dtype: DType) -> DType {
    match dtype {
        DType::F16 | DType::Bf16 => DType::F32,
        other => other,
    }
}

/// A program of one step.
fn one(
    level: Level,
    types: &[DType],
    step: impl FnOnce(&mut Builder, &[Node]) -> Node,
) -> TypedProgram {
    let mut builder = Builder::new(Promotion::Numpy);
    let names = ["a", "b", "c"];
    let args: Vec<Node> = names.iter().zip(types).map(|(n, &t)| builder.operand(n, t)).collect();
    let root = step(&mut builder, &args);
    builder.finish(root).unwrap().at_level(level).unwrap()
}

fn cast(level: Level, data: &Data, to: DType) -> Data {
    if data.dtype == to {
        return data.clone();
    }
    let program = one(level, &[data.dtype], |b, args| b.cast(args[0], to).unwrap());
    Data::of(&program.run(&[data.view()]).unwrap().view())
}

/// A value of the interpreter: in 32 bits where its type is a 16-bit float. A literal has none.
#[derive(Clone)]
struct Value {
    dtype: DType,
    data: Data,
    constant: bool,
}

/// A value as one of another type.
fn converted(level: Level, value: &Value, to: DType) -> Data {
    if value.dtype == to {
        return value.data.clone();
    }
    let level = if value.constant { Level::for_closures() } else { level };
    cast(level, &cast(level, &value.data, to), wide(to))
}

/// Every step of an expression, one after the other; an error where a maximum is of nothing.
fn interpreted(level: Level, all: &Written, operands: &[Stored]) -> Result<Data, ()> {
    let mut values: Vec<Option<Value>> = Vec::new();
    for ((step, _, is), shape) in all.steps.iter().zip(&all.shapes) {
        let dtype = match is {
            OperandType::Array(dtype) => *dtype,
            OperandType::Literal(_) => {
                values.push(None);
                continue;
            }
        };
        let shape = shape.clone().unwrap_or_default();
        // A literal alone has the type of its kind.
        let alone = |n: usize| {
            values[n].clone().unwrap_or_else(|| {
                let OperandType::Literal(literal) = all.steps[n].2 else { panic!("an array") };
                let program = one(level, &[], |b, _| b.literal(literal));
                let data = Data::of(&program.run(&[]).unwrap().view());
                Value { dtype: program.dtype(), data, constant: true }
            })
        };
        let mut constant = false;
        let data = match step {
            Step::Literal => unreachable!(),
            Step::Operand(n) => {
                let data = Data::of(&operands[*n].view());
                cast(level, &data, wide(dtype))
            }
            Step::Cast(to, of) => {
                constant = values[*of].as_ref().is_none_or(|value| value.constant);
                match (&values[*of], all.steps[*of].2) {
                    (None, OperandType::Literal(literal)) => {
                        let program = one(level, &[], |b, _| {
                            let literal = b.literal(literal);
                            b.cast(literal, *to).unwrap()
                        });
                        cast(level, &Data::of(&program.run(&[]).unwrap().view()), wide(*to))
                    }
                    (Some(value), _) => converted(level, value, *to),
                    _ => unreachable!(),
                }
            }
            Step::Apply(op, args) => {
                let types: Vec<OperandType> = args.iter().map(|&n| all.steps[n].2).collect();
                let signature = signature(*op, &types, Promotion::Numpy).unwrap();
                constant = args.iter().all(|&n| values[n].as_ref().is_none_or(|v| v.constant));
                let level = if constant { Level::for_closures() } else { level };
                let mut shown: Vec<Data> = Vec::new();
                for (&n, to) in args.iter().zip(signature.args) {
                    if let Some(value) = &values[n] {
                        let data = converted(level, value, to);
                        let drop = shape.len() - data.shape.len();
                        let own = data.shape.clone();
                        shown.push(data.shown(&shape, |index| {
                            let pairs = index[drop..].iter().zip(&own);
                            pairs.map(|(&i, &size)| if size == 1 { 0 } else { i }).collect()
                        }));
                    }
                }
                let given: Vec<DType> = shown.iter().map(|data| data.dtype).collect();
                let program = one(level, &given, |b, nodes| {
                    let mut arrays = nodes.iter();
                    let mut all_args = Vec::new();
                    for (place, (&n, to)) in args.iter().zip(signature.args).enumerate() {
                        let OperandType::Literal(literal) = all.steps[n].2 else {
                            all_args.push(*arrays.next().unwrap());
                            continue;
                        };
                        let asks = matches!(
                            op,
                            Op::LogicalAnd | Op::LogicalOr | Op::LogicalXor | Op::LogicalNot
                        ) || *op == Op::Where && place == 0;
                        let node = b.literal(literal);
                        all_args.push(if asks {
                            node
                        } else {
                            let rounded = b.cast(node, to).unwrap();
                            b.cast(rounded, wide(to)).unwrap()
                        });
                    }
                    // A constant is one here too, since some operations are others then.
                    b.apply(*op, &all_args).unwrap()
                });
                let views: Vec<AnyView<'_>> = shown.iter().map(Data::view).collect();
                let made = Data::of(&program.run(&views).unwrap().view());
                // A constant is stored as what it is, and so rounded.
                if constant { cast(level, &cast(level, &made, dtype), wide(dtype)) } else { made }
            }
            Step::Insert(of) => Data { shape: shape.clone(), ..alone(*of).data },
            Step::Transpose(axes, of) => {
                let data = alone(*of).data;
                let order: Vec<usize> = match axes {
                    None => (0..shape.len()).rev().collect(),
                    Some(axes) => axes.iter().map(|&axis| axis as usize).collect(),
                };
                data.shown(&shape, |index| {
                    let mut from = vec![0; index.len()];
                    order.iter().zip(index).for_each(|(&axis, &i)| from[axis] = i);
                    from
                })
            }
            Step::Fold(fold, of, axes, keep) => {
                let value = alone(*of);
                let data = converted(level, &value, dtype);
                let axes = axes.as_deref();
                let program = one(level, &[data.dtype], |b, args| {
                    b.reduce(*fold, args[0], axes, *keep).unwrap()
                });
                let made = program.run(&[data.view()]).map_err(|error| {
                    assert!(matches!(error.kind, ProgramErrorKind::Empty(_)), "{error}");
                })?;
                let made = Data::of(&made.view());
                near(*fold, &data, &made, axes);
                made
            }
        };
        assert_eq!(data.shape, shape, "{step:?}");
        values.push(Some(Value { dtype, data, constant }));
    }
    let (value, is) = (values.pop().unwrap(), all.steps.last().unwrap().2);
    Ok(match (value, is) {
        (Some(value), _) => cast(level, &value.data, value.dtype),
        (None, OperandType::Literal(literal)) => {
            let program = one(level, &[], |b, _| b.literal(literal));
            Data::of(&program.run(&[]).unwrap().view())
        }
        _ => unreachable!(),
    })
}

/// A reduction is near the one that goes element by element, in 64 bits: the order differs, so that
/// sums are as exact as adding up a few hundred terms at a time allows.
fn near(fold: Fold, data: &Data, made: &Data, axes: Option<&[isize]>) {
    let numbers = |data: &Data| -> Option<Vec<f64>> {
        let bytes = data.bytes();
        Some(match data.dtype {
            DType::F32 => {
                bytes.chunks(4).map(|b| f32::from_ne_bytes(b.try_into().unwrap()).into()).collect()
            }
            DType::F64 => {
                bytes.chunks(8).map(|b| f64::from_ne_bytes(b.try_into().unwrap())).collect()
            }
            _ => return None,
        })
    };
    let whole: Option<Vec<i128>> = match data.dtype {
        DType::I64 => Some(
            data.bytes()
                .chunks(8)
                .map(|b| i64::from_ne_bytes(b.try_into().unwrap()).into())
                .collect(),
        ),
        DType::U64 => Some(
            data.bytes()
                .chunks(8)
                .map(|b| u64::from_ne_bytes(b.try_into().unwrap()).into())
                .collect(),
        ),
        _ => None,
    };
    let gone = |axis: usize| axes.is_none_or(|axes| axes.contains(&(axis as isize)));
    let kept: Vec<usize> = (0..data.shape.len()).filter(|&axis| !gone(axis)).collect();
    let shape: Vec<usize> = kept.iter().map(|&axis| data.shape[axis]).collect();
    let strides = row_major(&shape);
    let mut members: Vec<Vec<usize>> = vec![Vec::new(); shape.iter().product()];
    for (at, index) in indices(&data.shape).iter().enumerate() {
        let to: isize = kept.iter().zip(&strides).map(|(&axis, s)| index[axis] as isize * s).sum();
        members[to as usize].push(at);
    }
    if let (Some(all), Some(made)) = (numbers(data), numbers(made)) {
        let epsilon = if data.dtype == DType::F32 { f32::EPSILON.into() } else { f64::EPSILON };
        for (members, made) in members.iter().zip(made) {
            let terms: Vec<f64> = members.iter().map(|&at| all[at]).collect();
            let (sum, size) =
                (terms.iter().sum::<f64>(), terms.iter().map(|t| t.abs()).sum::<f64>());
            let count = terms.len() as f64;
            let (expected, bound) = match fold {
                Fold::Sum => (sum, size * 300.0 * epsilon),
                Fold::Mean => (sum / count, size / count * 300.0 * epsilon),
                Fold::Maximum => (terms.iter().fold(f64::NEG_INFINITY, |a, &b| a.max(b)), 0.0),
                Fold::Minimum => (terms.iter().fold(f64::INFINITY, |a, &b| a.min(b)), 0.0),
                Fold::Product => continue,
            };
            if terms.iter().any(|term| term.is_nan()) {
                assert!(made.is_nan());
            } else if size.is_finite() && size < f32::MAX.into() {
                assert!((made - expected).abs() <= bound || made.is_nan() && expected.is_nan());
            }
        }
    } else if let Some(all) = whole {
        for (members, made) in members.iter().zip(made.bytes().chunks(8)) {
            let terms = members.iter().map(|&at| all[at]);
            let expected = match fold {
                Fold::Sum => terms.fold(0, i128::wrapping_add),
                Fold::Product => terms.fold(1_i128, |a, b| a.wrapping_mul(b) as u64 as i128),
                Fold::Maximum => terms.max().unwrap_or(0),
                Fold::Minimum => terms.min().unwrap_or(0),
                Fold::Mean => continue,
            };
            assert_eq!(made, (expected as u64).to_ne_bytes());
        }
    }
}

/// Every way to run a program gives the expected bytes.
fn every_way(
    choices: &mut Choices,
    program: &TypedProgram,
    views: &[AnyView<'_>],
    expected: &Data,
) {
    let check = |got: &Data, what: &str| {
        assert_eq!(got.shape, expected.shape, "{what}");
        assert!(same(got.dtype, got.bytes(), expected.bytes()), "{what}\n{got:?}\n{expected:?}");
    };
    let run = program.bind(views);
    assert_eq!((run.shape().unwrap(), program.dtype()), (expected.shape.clone(), expected.dtype));
    check(&Data::of(&run.compute().unwrap().view()), "collect");
    for hoisting in [Hoisting::Always, Hoisting::Never] {
        let made = run.hoisting(hoisting).compute().unwrap();
        check(&Data::of(&made.view()), &format!("{hoisting:?}"));
    }
    // Into an array with gaps, other orders, backwards; what lies between stays.
    let mut out = Stored::new(choices, expected.dtype, &expected.shape, false);
    let before = out.data.bytes().to_vec();
    run.write(&mut out.view_mut()).unwrap();
    check(&Data::of(&out.view()), "write");
    let size = expected.dtype.size();
    let mut untouched = vec![true; before.len() / size.max(1)];
    for index in indices(&out.shape) {
        let at: isize = index.iter().zip(&out.strides).map(|(&i, s)| i as isize * s).sum();
        untouched[(out.start as isize + at) as usize] = false;
    }
    for (at, _) in untouched.iter().enumerate().filter(|(_, untouched)| **untouched) {
        assert_eq!(out.data.bytes()[at * size..][..size], before[at * size..][..size]);
    }
    // Into a larger one.
    let mut larger: Vec<usize> =
        expected.shape.iter().map(|&size| if size == 1 { 3 } else { size }).collect();
    larger.insert(0, 2);
    if larger.iter().product::<usize>() <= MOST {
        let mut out = Stored::new(choices, expected.dtype, &larger, false);
        run.write(&mut out.view_mut()).unwrap();
        let stretched = expected.shown(&larger, |index| {
            let pairs = index[1..].iter().zip(&expected.shape);
            pairs.map(|(&i, &size)| if size == 1 { 0 } else { i }).collect()
        });
        assert!(same(expected.dtype, Data::of(&out.view()).bytes(), stretched.bytes()), "larger");
    }
    // In parts.
    let axis = row_axis(&expected.shape);
    if let Some(&rows) = expected.shape.get(axis) {
        let cut = choices.below(rows + 1);
        let hoisting = choices.of(&[Hoisting::WherePays, Hoisting::Always]);
        let ready = run.hoisting(hoisting).by_rows().unwrap();
        for part in [0..cut, cut..rows] {
            let mut shape = expected.shape.clone();
            shape[axis] = part.len();
            let mut out = Stored::new(choices, expected.dtype, &shape, false);
            ready.rows_into(part.clone(), &mut out.view_mut()).unwrap();
            let got = Data::of(&out.view());
            assert!(same(got.dtype, got.bytes(), &expected.rows(part)), "rows");
        }
    }
}

fn is_half(is: &OperandType) -> bool {
    matches!(is, OperandType::Array(DType::F16 | DType::Bf16))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]

    #[test]
    fn programs_do_what_their_steps_do(
        list in prop::collection::vec(any::<u32>(), 0..400),
    ) {
        let mut choices = Choices(list.into_iter());
        let mut operands = Vec::new();
        let all = written(&mut choices, &mut operands);
        let views: Vec<AnyView<'_>> = operands.iter().map(Stored::view).collect();
        let root = all.steps.last().unwrap().1;
        let program = all.builder.clone().finish(root).unwrap();
        // A 16-bit float that is written between two stages is rounded there.
        let rounded = program.stages() > 1 && all.steps.iter().any(|(.., is)| is_half(is));
        for level in Level::available() {
            let program = program.at_level(level).unwrap();
            match (interpreted(level, &all, &operands), rounded) {
                (Ok(expected), false) => every_way(&mut choices, &program, &views, &expected),
                (Ok(_), true) => {
                    let whole = Data::of(&program.run(&views).unwrap().view());
                    every_way(&mut choices, &program, &views, &whole);
                }
                // An unused step may be the one that fails.
                (Err(()), _) => {
                    if let Err(error) = program.run(&views) {
                        prop_assert!(matches!(error.kind, ProgramErrorKind::Empty(_)));
                    }
                }
            }
        }
    }
}
