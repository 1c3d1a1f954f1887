//! Reductions over axes, and the places of largest and smallest elements.

use ndarray::{ArrayD, ArrayViewD, Axis, IxDyn};
use simulcast::program::{Builder, Fold, Node};
use simulcast::types::{Literal, TypeError};
use simulcast::{AnyArray, AnyView, DType, Element, Op};
use simulcast_core::elements;

use crate::run::code::{Results, one};
use crate::run::error::NodeError;
use crate::run::node::{Allowed, Inputs, RunNode, axes, axis};
use crate::run::value::array;

/// Axes as programs take them.
pub(crate) fn signed(axes: &[usize]) -> Vec<isize> {
    axes.iter().map(|&axis| axis.cast_signed()).collect()
}

pub(crate) fn reduce<'a>(
    call: &RunNode,
    allowed: &Allowed,
    inputs: &mut Inputs<'a>,
) -> Results<'a> {
    let view = inputs.view(0)?;
    let rank = view.shape().len();
    let asked = inputs.ints_or(1, call, "axes")?.filter(|axes| !axes.is_empty());
    let over = match asked {
        Some(asked) => axes(&asked, rank)?,
        None if call.flag("noop_with_empty_axes", false) => Vec::new(),
        None => (0..rank).collect(),
    };
    let keep = call.flag("keepdims", true);
    let dtype = view.dtype();
    let nothing = over.iter().any(|&axis| view.shape()[axis] == 0);
    if nothing && matches!(call.op.as_str(), "ReduceMax" | "ReduceMin" | "ReduceLogSumExp") {
        return of_nothing(call, allowed, &view, &over, keep);
    }
    let count = elements(&over.iter().map(|&axis| view.shape()[axis]).collect::<Vec<_>>());
    let count = count.map_err(|refusal| refusal.to_string())?;
    one(allowed.evaluate(std::slice::from_ref(&view), |build, args| {
        reduced(&call.op, build, args[0], dtype, &signed(&over), keep, count)
    })?)
}

/// Steps of a reduction; what is whole stays whole, by way of floats where it must.
fn reduced(
    op: &str,
    build: &mut Builder,
    x: Node,
    dtype: DType,
    over: &[isize],
    keep: bool,
    count: usize,
) -> Result<Node, TypeError> {
    let fold = |build: &mut Builder, fold: Fold, x: Node| build.reduce(fold, x, Some(over), keep);
    let wide = if dtype.is_integer() { DType::F64 } else { dtype };
    let made = match op {
        "ReduceSum" => fold(build, Fold::Sum, x)?,
        "ReduceProd" => fold(build, Fold::Product, x)?,
        "ReduceMax" => fold(build, Fold::Maximum, x)?,
        "ReduceMin" => fold(build, Fold::Minimum, x)?,
        "ReduceMean" if dtype.is_integer() => {
            let sum = fold(build, Fold::Sum, x)?;
            let count = build.literal(Literal::Int(count.max(1) as i128));
            build.apply(Op::TruncDivide, &[sum, count])?
        }
        "ReduceMean" => fold(build, Fold::Mean, x)?,
        "ReduceL1" => {
            let size = build.apply(Op::Absolute, &[x])?;
            fold(build, Fold::Sum, size)?
        }
        "ReduceSumSquare" => {
            let square = build.apply(Op::Square, &[x])?;
            fold(build, Fold::Sum, square)?
        }
        "ReduceL2" => {
            let x = build.cast(x, wide)?;
            let square = build.apply(Op::Square, &[x])?;
            let sum = fold(build, Fold::Sum, square)?;
            build.apply(Op::Sqrt, &[sum])?
        }
        "ReduceLogSum" => {
            let x = build.cast(x, wide)?;
            let sum = fold(build, Fold::Sum, x)?;
            build.apply(Op::Log, &[sum])?
        }
        _ => {
            let x = build.cast(x, wide)?;
            let most = build.reduce(Fold::Maximum, x, Some(over), true)?;
            // Infinity minus infinity is no number, but there the largest one decides.
            let finite = build.apply(Op::Isfinite, &[most])?;
            let zero = build.literal(Literal::Int(0));
            let most = build.apply(Op::Where, &[finite, most, zero])?;
            let rest = build.apply(Op::Subtract, &[x, most])?;
            let rest = build.apply(Op::Exp, &[rest])?;
            let sum = build.reduce(Fold::Sum, rest, Some(over), true)?;
            let log = build.apply(Op::Log, &[sum])?;
            let all = build.apply(Op::Add, &[most, log])?;
            // Its axes of size 1 go, where they are not kept.
            if keep { all } else { build.reduce(Fold::Maximum, all, Some(over), false)? }
        }
    };
    build.cast(made, dtype)
}

/// The largest, the smallest, or the logarithm of the sum, of no elements.
fn of_nothing<'a>(
    call: &RunNode,
    allowed: &Allowed,
    view: &AnyView<'_>,
    over: &[usize],
    keep: bool,
) -> Results<'a> {
    let mut shape = Vec::new();
    for (axis, &size) in view.shape().iter().enumerate() {
        match over.contains(&axis) {
            true if keep => shape.push(1),
            true => {}
            false => shape.push(size),
        }
    }
    allowed.room(&shape, DType::F64)?;
    let count = elements(&shape).map_err(|refusal| refusal.to_string())?;
    let smallest = call.op != "ReduceMin";
    let dtype = view.dtype();
    if dtype.is_integer() {
        // The end of the type's own range.
        let bits = 8 * dtype.size() as u32;
        let unsigned = dtype.kind() == simulcast::DTypeKind::Unsigned;
        let (lo, hi) = match unsigned {
            true => (0, (1_i128 << bits) - 1),
            false => (-(1_i128 << (bits - 1)), (1_i128 << (bits - 1)) - 1),
        };
        let value = if smallest { lo } else { hi };
        let zeros = array(&shape, vec![0_i64; count])?;
        return one(allowed.evaluate(&[(&zeros).into()], |build, args| {
            let zeros = build.cast(args[0], dtype)?;
            let value = build.literal(Literal::Int(value));
            build.apply(Op::Add, &[zeros, value])
        })?);
    }
    let value = if smallest { f64::NEG_INFINITY } else { f64::INFINITY };
    let all = array(&shape, vec![value; count])?;
    one(allowed.evaluate(&[(&all).into()], |build, args| match dtype {
        DType::Bool => {
            let zero = build.literal(Literal::Int(0));
            build.apply(Op::Greater, &[args[0], zero])
        }
        dtype => build.cast(args[0], dtype),
    })?)
}

/// The elements in a type whose order is theirs, so that few types need code: floats as `float64`,
/// integers as 64-bit ones.
enum Ordered {
    Float(ArrayD<f64>),
    Signed(ArrayD<i64>),
    Unsigned(ArrayD<u64>),
}

fn ordered(view: &AnyView<'_>, allowed: &Allowed) -> Result<Ordered, NodeError> {
    use simulcast::DTypeKind;
    let to = match view.dtype().kind() {
        DTypeKind::Float => DType::F64,
        DTypeKind::Unsigned | DTypeKind::Bool => DType::U64,
        DTypeKind::Signed => DType::I64,
        DTypeKind::Complex | DTypeKind::String => {
            return Err(format!("{} has no order", view.dtype()).into());
        }
    };
    allowed.room(view.shape(), to)?;
    let wide =
        allowed.evaluate(std::slice::from_ref(view), |build, args| build.cast(args[0], to))?;
    Ok(match wide {
        AnyArray::F64(all) => Ordered::Float(all),
        AnyArray::I64(all) => Ordered::Signed(all),
        AnyArray::U64(all) => Ordered::Unsigned(all),
        _ => return Err("it has no order".into()),
    })
}

/// The place of the largest in each lane, or the smallest; NaN, as in NumPy, is both.
fn places<T: PartialOrd + Copy>(
    all: &ArrayViewD<'_, T>,
    at: usize,
    largest: bool,
    last: bool,
) -> ArrayD<i64> {
    let better = |own: T, best: T| {
        let is_nan = |value: T| value.partial_cmp(&value).is_none();
        if is_nan(best) {
            return last && is_nan(own);
        }
        let above = if largest { own > best } else { own < best };
        is_nan(own) || above || (last && own == best)
    };
    all.map_axis(Axis(at), |lane| {
        let mut best = 0;
        for place in 1..lane.len() {
            if better(lane[place], lane[best]) {
                best = place;
            }
        }
        best as i64
    })
}

/// The place of the largest, or the smallest, element of each lane.
pub(crate) fn best(
    view: &AnyView<'_>,
    allowed: &Allowed,
    at: usize,
    largest: bool,
    last: bool,
) -> Result<ArrayD<i64>, NodeError> {
    let empty = view.is_empty() && view.shape()[at] == 0;
    if empty && elements(&[&view.shape()[..at], &view.shape()[at + 1..]].concat()) != Ok(0) {
        return Err("there is no largest or smallest of no elements".into());
    }
    Ok(match ordered(view, allowed)? {
        Ordered::Float(all) => places(&all.view(), at, largest, last),
        Ordered::Signed(all) => places(&all.view(), at, largest, last),
        Ordered::Unsigned(all) => places(&all.view(), at, largest, last),
    })
}

pub(crate) fn arg<'a>(call: &RunNode, allowed: &Allowed, inputs: &mut Inputs<'a>) -> Results<'a> {
    let view = inputs.view(0)?;
    let at = axis(call.int("axis").unwrap_or(0), view.shape().len())?;
    let last = call.flag("select_last_index", false);
    let found = best(&view, allowed, at, call.op == "ArgMax", last)?;
    one(if call.flag("keepdims", true) { found.insert_axis(Axis(at)) } else { found })
}

pub(crate) fn cumulate<'a>(
    call: &RunNode,
    allowed: &Allowed,
    inputs: &mut Inputs<'a>,
) -> Results<'a> {
    let view = inputs.view(0)?;
    let at = inputs.ints(1)?.and_then(|all| all.first().copied()).ok_or("it has no axis")?;
    let at = axis(at, view.shape().len())?;
    let (before, backwards) = (call.flag("exclusive", false), call.flag("reverse", false));
    let sums = call.op == "CumSum";
    fn run<T: Element + Copy>(
        all: &mut ArrayD<T>,
        at: usize,
        [before, backwards]: [bool; 2],
        first: T,
        join: impl Fn(T, T) -> T,
    ) {
        for mut lane in all.lanes_mut(Axis(at)) {
            if backwards {
                lane.invert_axis(Axis(0));
            }
            let mut sum = first;
            for place in &mut lane {
                let next = join(sum, *place);
                *place = if before { sum } else { next };
                sum = next;
            }
        }
    }
    let dtype = view.dtype();
    let how = [before, backwards];
    let made = match ordered(&view, allowed)? {
        Ordered::Float(mut all) => {
            match sums {
                true => run(&mut all, at, how, 0.0, |a, b| a + b),
                false => run(&mut all, at, how, 1.0, |a, b| a * b),
            }
            AnyArray::from(all)
        }
        Ordered::Signed(mut all) => {
            match sums {
                true => run(&mut all, at, how, 0, i64::wrapping_add),
                false => run(&mut all, at, how, 1, i64::wrapping_mul),
            }
            AnyArray::from(all)
        }
        Ordered::Unsigned(mut all) => {
            match sums {
                true => run(&mut all, at, how, 0, u64::wrapping_add),
                false => run(&mut all, at, how, 1, u64::wrapping_mul),
            }
            AnyArray::from(all)
        }
    };
    one(allowed.evaluate(&[made.view()], |build, args| build.cast(args[0], dtype))?)
}

/// The largest or smallest elements of each lane in order, and their places.
pub(crate) fn top_k<'a>(call: &RunNode, allowed: &Allowed, inputs: &mut Inputs<'a>) -> Results<'a> {
    let view = inputs.view(0)?;
    let at = axis(call.int("axis").unwrap_or(-1), view.shape().len())?;
    let count = inputs.ints(1)?.and_then(|all| all.first().copied()).ok_or("it has no k")?;
    let count = usize::try_from(count).ok().filter(|count| *count <= view.shape()[at]);
    let count = count.ok_or_else(|| format!("there are but {} elements", view.shape()[at]))?;
    let largest = call.flag("largest", true);
    let mut shape = view.shape().to_vec();
    shape[at] = count;
    fn best<T: PartialOrd + Copy>(
        all: &ArrayD<T>,
        at: usize,
        shape: &[usize],
        largest: bool,
    ) -> ArrayD<i64> {
        let mut found = ArrayD::zeros(IxDyn(shape));
        for (lane, mut out) in all.lanes(Axis(at)).into_iter().zip(found.lanes_mut(Axis(at))) {
            let mut order: Vec<usize> = (0..lane.len()).collect();
            order.sort_by(|a, b| {
                // NaN, as in NumPy, is larger than every number.
                let is_nan = |place: usize| lane[place].partial_cmp(&lane[place]).is_none();
                let order = lane[*a].partial_cmp(&lane[*b]);
                let order = order.unwrap_or_else(|| is_nan(*a).cmp(&is_nan(*b)));
                let order = if largest { order.reverse() } else { order };
                order.then(a.cmp(b))
            });
            out.iter_mut().zip(order).for_each(|(out, place)| *out = place as i64);
        }
        found
    }
    let found = match ordered(&view, allowed)? {
        Ordered::Float(all) => best(&all, at, &shape, largest),
        Ordered::Signed(all) => best(&all, at, &shape, largest),
        Ordered::Unsigned(all) => best(&all, at, &shape, largest),
    };
    let values = crate::operators::index::run::at_places(&view, at, &found)?;
    Ok(vec![values.into(), AnyArray::from(found).into()])
}
