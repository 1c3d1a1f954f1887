//! Elements put together, taken apart, and picked by index.

use ndarray::{ArrayD, ArrayViewD, Axis, Dimension, IxDyn, Slice};
use simulcast::{AnyArray, AnyView, Element};
use simulcast_core::{elements, format_shape};

use crate::run::code::{Results, one, reshaped};
use crate::run::error::NodeError;
use crate::run::node::{Allowed, Inputs, RunNode, axis, sizes};
use crate::run::value::{Value, array, each};

pub(crate) fn concat<'a>(
    call: &RunNode,
    allowed: &Allowed,
    inputs: &mut Inputs<'a>,
) -> Results<'a> {
    let first = inputs.need(0)?;
    // Opsets below 4 had a default.
    let at = call.int("axis").or((call.opset < 4).then_some(1)).ok_or("it has no axis")?;
    let at = axis(at, first.shape().len())?;
    let mut shape = first.shape().to_vec();
    for input in 1..inputs.0.len() {
        let own = inputs.need(input)?;
        let same = own.shape().len() == shape.len()
            && own.shape().iter().zip(&shape).enumerate().all(|(n, (a, b))| n == at || a == b);
        if !same || own.dtype() != first.dtype() {
            let (own, first) = (own.view(), first.view());
            let (a, b) = (format_shape(own.shape()), format_shape(first.shape()));
            let (x, y) = (own.dtype(), first.dtype());
            return Err(format!("{x} {a} cannot follow {y} {b} along axis {at}").into());
        }
        shape[at] = shape[at].checked_add(own.shape()[at]).ok_or("a size is too large to count")?;
    }
    allowed.room(&shape, first.dtype())?;
    one(each!(first.view(), typed => joined_along(&typed, inputs, &shape, at))?)
}

/// Arrays one after the other along an axis, block by block in row-major order.
fn joined_along<T: Element>(
    _: &ArrayViewD<'_, T>,
    inputs: &Inputs<'_>,
    shape: &[usize],
    at: usize,
) -> Result<AnyArray, NodeError>
where
    AnyArray: From<ArrayD<T>>,
{
    let views: Vec<AnyView<'_>> = inputs.0.iter().flatten().map(Value::view).collect();
    let views: Option<Vec<ArrayViewD<'_, T>>> = views.iter().map(AnyView::typed).collect();
    let views = views.ok_or("an input is of another type")?;
    let parts: Vec<_> = views.iter().map(|view| view.as_standard_layout()).collect();
    let outer: usize = shape[..at].iter().product();
    let mut all = Vec::with_capacity(elements(shape).unwrap_or(0));
    for block in 0..outer {
        for part in &parts {
            let rows = part.as_slice().unwrap_or_default();
            let size = rows.len() / outer;
            all.extend_from_slice(rows.get(block * size..(block + 1) * size).unwrap_or_default());
        }
    }
    Ok(AnyArray::from(array(shape, all)?))
}

/// Some indices of an axis, one after the other, block by block in row-major order.
fn selected<T: Element>(
    view: &ArrayViewD<'_, T>,
    at: usize,
    own: &[usize],
    shape: &[usize],
) -> Result<AnyArray, NodeError>
where
    AnyArray: From<ArrayD<T>>,
{
    let rows = view.as_standard_layout();
    let rows = rows.as_slice().unwrap_or_default();
    let outer: usize = view.shape()[..at].iter().product();
    let block: usize = view.shape()[at + 1..].iter().product();
    let size = view.shape()[at];
    let mut all = Vec::with_capacity(elements(shape).unwrap_or(0));
    for one in 0..outer {
        for index in own {
            let start = (one * size + index) * block;
            all.extend_from_slice(rows.get(start..start + block).unwrap_or_default());
        }
    }
    Ok(AnyArray::from(array(shape, all)?))
}

pub(crate) fn split<'a>(call: &RunNode, _: &Allowed, inputs: &mut Inputs<'a>) -> Results<'a> {
    let view = inputs.view(0)?;
    let at = axis(call.int("axis").unwrap_or(0), view.shape().len())?;
    let size = view.shape()[at];
    let parts = match inputs.ints_or(1, call, "split")? {
        Some(parts) => sizes(&parts)?,
        None => {
            let count = call.int("num_outputs").and_then(|count| usize::try_from(count).ok());
            let count = count.unwrap_or(call.outputs.len());
            if count == 0 {
                return Err("it has no outputs".into());
            }
            // The last part may be smaller.
            let each = size.div_ceil(count);
            let part = |n: usize| each.min(size.saturating_sub(n.saturating_mul(each)));
            (0..count.min(call.outputs.len())).map(part).collect()
        }
    };
    let total = parts.iter().try_fold(0_usize, |sum, part| sum.checked_add(*part));
    if total != Some(size) {
        return Err(format!("{parts:?} does not split {size}").into());
    }
    let mut start = 0;
    let mut results = Vec::new();
    for part in parts {
        let range = Slice::from(start..start + part);
        results.push(each!(view, typed => owned(&typed.slice_axis(Axis(at), range)))?.into());
        start += part;
    }
    Ok(results)
}

/// A view's elements, written out in its order.
fn owned<T: Element>(view: &ArrayViewD<'_, T>) -> Result<AnyArray, NodeError> {
    Ok(AnyView::from(view).to_owned())
}

pub(crate) fn slice<'a>(call: &RunNode, _: &Allowed, inputs: &mut Inputs<'a>) -> Results<'a> {
    let view = inputs.view(0)?;
    let rank = view.shape().len();
    let starts = inputs.ints_or(1, call, "starts")?.ok_or("it has no starts")?;
    let ends = inputs.ints_or(2, call, "ends")?.ok_or("it has no ends")?;
    let default = (0..starts.len() as i64).collect();
    let asked = inputs.ints_or(3, call, "axes")?.unwrap_or(default);
    let steps = inputs.ints(4)?.unwrap_or_else(|| vec![1; starts.len()]);
    if [ends.len(), asked.len(), steps.len()] != [starts.len(); 3] {
        return Err("starts, ends, axes and steps are of different lengths".into());
    }
    crate::run::node::distinct_axes(&asked, rank)?;
    let mut cuts = Vec::new();
    for (((start, end), at), step) in starts.iter().zip(&ends).zip(&asked).zip(&steps) {
        let at = axis(*at, rank)?;
        cuts.push((at, part(*start, *end, *step, view.shape()[at])?));
    }
    one(each!(view, typed => {
        let mut typed = typed;
        for (at, cut) in &cuts {
            typed.slice_axis_inplace(Axis(*at), *cut);
        }
        owned(&typed)
    })?)
}

/// A part of an axis as ONNX writes it; backwards where the step is negative.
fn part(start: i64, end: i64, step: i64, size: usize) -> Result<Slice, NodeError> {
    let size = i64::try_from(size).unwrap_or(i64::MAX);
    let from_end = |at: i64| if at < 0 { at.saturating_add(size) } else { at };
    let (start, end) = (from_end(start), from_end(end));
    let stride = isize::try_from(step).map_err(|_| format!("a step is {step}"))?;
    let place = |at: i64| isize::try_from(at).unwrap_or(isize::MAX);
    match step {
        0 => Err("a step is 0".into()),
        1.. => {
            let start = start.clamp(0, size);
            let end = end.clamp(start, size);
            Ok(Slice::new(place(start), Some(place(end)), stride))
        }
        ..0 => {
            // From `start` down to the one above `end`. What lies before the axis is its first
            // element, unlike in NumPy.
            let last = size.saturating_sub(1);
            let start = start.clamp(last.min(0), last);
            let end = end.clamp(-1, start);
            let stride = stride.max(-isize::MAX);
            Ok(Slice::new(place(end + 1), Some(place(start + 1)), stride))
        }
    }
}

/// Indices within a size, counted from its end where they are negative.
fn indices(values: &[i64], size: usize) -> Result<Vec<usize>, NodeError> {
    let own = |&value: &i64| index(value, size);
    values.iter().map(own).collect()
}

fn index(value: i64, size: usize) -> Result<usize, NodeError> {
    let from_end = value.checked_add(i64::try_from(size).unwrap_or(i64::MAX));
    let own = if value < 0 { from_end } else { Some(value) };
    let own = own.and_then(|own| usize::try_from(own).ok()).filter(|own| *own < size);
    own.ok_or_else(|| format!("there is no index {value} among {size}").into())
}

pub(crate) fn gather<'a>(
    call: &RunNode,
    allowed: &Allowed,
    inputs: &mut Inputs<'a>,
) -> Results<'a> {
    let view = inputs.view(0)?;
    let at = axis(call.int("axis").unwrap_or(0), view.shape().len())?;
    let asked = inputs.ints(1)?.unwrap_or_default();
    let own = indices(&asked, view.shape()[at])?;
    let (before, after) = (&view.shape()[..at], &view.shape()[at + 1..]);
    let shape = [before, inputs.need(1)?.shape(), after].concat();
    allowed.room(&shape, view.dtype())?;
    one(each!(view, typed => selected(&typed, at, &own, &shape))?)
}

/// An array of elements picked from a view, each by its place in row-major order.
fn picked<T: Element>(
    view: &ArrayViewD<'_, T>,
    shape: &[usize],
    places: &[usize],
) -> Result<AnyArray, NodeError>
where
    AnyArray: From<ArrayD<T>>,
{
    let rows = view.as_standard_layout();
    let rows = rows.as_slice().unwrap_or_default();
    let pick = |&place: &usize| rows.get(place).cloned();
    let own: Option<Vec<T>> = places.iter().map(pick).collect();
    Ok(AnyArray::from(array(shape, own.ok_or("a place is outside")?)?))
}

/// How far apart neighbours are along each axis, in row-major order.
fn steps(shape: &[usize]) -> Vec<usize> {
    let mut steps = vec![1_usize; shape.len()];
    for axis in (1..shape.len()).rev() {
        steps[axis - 1] = steps[axis].saturating_mul(shape[axis]);
    }
    steps
}

/// For each element of `shape` the place in `data` at the same index, but for one axis, along which
/// the index is given.
fn along(
    data: &[usize],
    shape: &[usize],
    at: usize,
    values: &[i64],
) -> Result<Vec<usize>, NodeError> {
    let fits = data.len() == shape.len()
        && shape.iter().zip(data).enumerate().all(|(n, (own, all))| n == at || own <= all);
    if !fits {
        return Err(format!(
            "indices {} do not lie in {}",
            format_shape(shape),
            format_shape(data)
        )
        .into());
    }
    let steps = steps(data);
    let places = ndarray::indices(IxDyn(shape)).into_iter().zip(values);
    let place = |(own, value): (IxDyn, &i64)| {
        let mut place = 0;
        for (n, (own, step)) in own.slice().iter().zip(&steps).enumerate() {
            let own = if n == at { index(*value, data[at])? } else { *own };
            place += own * step;
        }
        Ok(place)
    };
    places.map(place).collect()
}

pub(crate) fn gather_elements<'a>(
    call: &RunNode,
    allowed: &Allowed,
    inputs: &mut Inputs<'a>,
) -> Results<'a> {
    let view = inputs.view(0)?;
    let at = axis(call.int("axis").unwrap_or(0), view.shape().len())?;
    let shape = inputs.need(1)?.shape();
    let places = along(view.shape(), shape, at, &inputs.ints(1)?.unwrap_or_default())?;
    allowed.room(shape, view.dtype())?;
    one(each!(view, typed => picked(&typed, shape, &places))?)
}

/// The elements at places along an axis.
pub(crate) fn at_places(
    view: &AnyView<'_>,
    at: usize,
    found: &ArrayD<i64>,
) -> Result<AnyArray, NodeError> {
    let values: Vec<i64> = found.iter().copied().collect();
    let places = along(view.shape(), found.shape(), at, &values)?;
    each!(view, typed => picked(&typed, found.shape(), &places))
}

/// Where the slices lie that tuples of indices name, and how many elements each has.
fn tuples(
    data: &[usize],
    batch: usize,
    inputs: &Inputs<'_>,
) -> Result<(Vec<usize>, usize), NodeError> {
    let shape = inputs.need(1)?.shape();
    let values = inputs.ints(1)?.unwrap_or_default();
    let depth = shape.last().copied().unwrap_or(0);
    let same = shape.get(..batch) == data.get(..batch) && batch < shape.len();
    if !same || batch + depth > data.len() {
        return Err(format!(
            "indices {} do not lie in {}",
            format_shape(shape),
            format_shape(data)
        )
        .into());
    }
    let steps = steps(data);
    let slice: usize = data[batch + depth..].iter().product();
    let count: usize = shape[..shape.len() - 1].iter().product();
    let a_batch: usize = shape[batch..shape.len() - 1].iter().product();
    let batch_step: usize = data[batch..].iter().product();
    let mut places = Vec::with_capacity(count);
    for n in 0..count {
        let mut place = n.checked_div(a_batch).unwrap_or(0) * batch_step;
        for axis in 0..depth {
            let value = values.get(n * depth + axis).copied().unwrap_or(0);
            place += index(value, data[batch + axis])? * steps[batch + axis];
        }
        places.push(place);
    }
    Ok((places, slice))
}

pub(crate) fn gather_nd<'a>(
    call: &RunNode,
    allowed: &Allowed,
    inputs: &mut Inputs<'a>,
) -> Results<'a> {
    let view = inputs.view(0)?;
    let batch = usize::try_from(call.int("batch_dims").unwrap_or(0)).map_err(|e| e.to_string())?;
    let (starts, slice) = tuples(view.shape(), batch, inputs)?;
    let index_shape = inputs.need(1)?.shape();
    let depth = index_shape.last().copied().unwrap_or(0);
    let shape = [&index_shape[..index_shape.len() - 1], &view.shape()[batch + depth..]].concat();
    allowed.room(&shape, view.dtype())?;
    let places: Vec<usize> = starts.iter().flat_map(|start| *start..start + slice).collect();
    one(each!(view, typed => picked(&typed, &shape, &places))?)
}

/// Updates written over the data, or joined with what is there.
fn scattered<'a>(
    call: &RunNode,
    allowed: &Allowed,
    inputs: &mut Inputs<'a>,
    places: &[usize],
    wanted: &[usize],
) -> Results<'a> {
    use simulcast::Op;
    let join = match call.text("reduction") {
        None | Some("none") => None,
        Some("add") => Some(Op::Add),
        Some("mul") => Some(Op::Multiply),
        Some("max") => Some(Op::Maximum),
        Some("min") => Some(Op::Minimum),
        Some(other) => return Err(format!("there is no reduction {other:?}").into()),
    };
    let updates = inputs.view(2)?;
    let dtype = inputs.need(0)?.dtype();
    if updates.shape() != wanted || updates.len() != places.len() || updates.dtype() != dtype {
        let (given, wanted) = (format_shape(updates.shape()), format_shape(wanted));
        let own = updates.dtype();
        return Err(format!("updates are {own} {given}, not {dtype} {wanted}").into());
    }
    let shape = inputs.need(0)?.shape().to_vec();
    if let Some(op) = join {
        return joined(op, allowed, inputs, places, &shape);
    }
    let updates = updates.to_owned();
    let mut data = inputs.take(0)?.into_array(allowed)?;
    simulcast::dispatch!(data.dtype(), T => {
        let (mut view, updates) = (data.view_mut(), updates.typed::<T>());
        let (Some(mut data), Some(updates)) = (view.typed::<T>(), updates) else {
            return Err("the updates are of another type".into());
        };
        // Arrays of a run are row-major.
        let rows = data.as_slice_mut().ok_or("the data are not row-major")?;
        for (place, update) in places.iter().zip(updates.iter()) {
            rows[*place].clone_from(update);
        }
    });
    one(data)
}

/// Updates joined one after the other, where several may meet in one place.
fn joined<'a>(
    op: simulcast::Op,
    allowed: &Allowed,
    inputs: &Inputs<'a>,
    places: &[usize],
    shape: &[usize],
) -> Results<'a> {
    let count = elements(shape).map_err(|refusal| refusal.to_string())?;
    // Rounds in which no place occurs twice.
    let mut seen = vec![0_usize; count];
    let mut rounds: Vec<Vec<(usize, usize)>> = Vec::new();
    for (update, &place) in places.iter().enumerate() {
        let round = seen.get_mut(place).ok_or("a place is outside")?;
        if rounds.len() <= *round {
            rounds.push(Vec::new());
        }
        rounds[*round].push((place, update));
        *round += 1;
    }
    let flat = |input: usize| -> Result<Value<'a>, NodeError> {
        let value = inputs.need(input)?.clone();
        let len = value.view().len();
        reshaped(value, &[len], allowed)
    };
    let (mut data, updates) = (flat(0)?, flat(2)?);
    for round in rounds {
        let (at, from): (Vec<usize>, Vec<usize>) = round.into_iter().unzip();
        let own = each!(data.view(), typed => picked(&typed, &[at.len()], &at))?;
        let new = each!(updates.view(), typed => picked(&typed, &[from.len()], &from))?;
        let joined =
            allowed.evaluate(&[own.view(), new.view()], |build, args| build.apply(op, args))?;
        let mut array = data.into_array(allowed)?;
        simulcast::dispatch!(array.dtype(), T => {
            let mut view = array.view_mut();
            let (Some(mut array), Ok(joined)) = (view.typed::<T>(), joined.into_typed::<T>()) else {
                return Err("the updates are of another type".into());
            };
            at.iter().zip(joined).for_each(|(place, value)| array[*place] = value);
        });
        data = array.into();
    }
    Ok(vec![reshaped(data, shape, allowed)?])
}

pub(crate) fn scatter_elements<'a>(
    call: &RunNode,
    allowed: &Allowed,
    inputs: &mut Inputs<'a>,
) -> Results<'a> {
    let data = inputs.need(0)?.shape();
    let at = axis(call.int("axis").unwrap_or(0), data.len())?;
    let values = inputs.ints(1)?.unwrap_or_default();
    let wanted = inputs.need(1)?.shape().to_vec();
    let places = along(data, &wanted, at, &values)?;
    scattered(call, allowed, inputs, &places, &wanted)
}

pub(crate) fn scatter_nd<'a>(
    call: &RunNode,
    allowed: &Allowed,
    inputs: &mut Inputs<'a>,
) -> Results<'a> {
    let (starts, slice) = tuples(inputs.need(0)?.shape(), 0, inputs)?;
    let places: Vec<usize> = starts.iter().flat_map(|start| *start..start + slice).collect();
    let (data, index) = (inputs.need(0)?.shape(), inputs.need(1)?.shape());
    let depth = index.last().copied().unwrap_or(0);
    let wanted = [&index[..index.len().saturating_sub(1)], data.get(depth..).unwrap_or_default()];
    scattered(call, allowed, inputs, &places, &wanted.concat())
}

/// Which elements are other than 0, row after row.
fn truths(view: &AnyView<'_>, allowed: &Allowed) -> Result<Vec<bool>, NodeError> {
    let truth = allowed.evaluate(std::slice::from_ref(view), |build, args| {
        build.cast(args[0], simulcast::DType::Bool)
    })?;
    Ok(truth.typed::<bool>().map(|all| all.iter().copied().collect()).unwrap_or_default())
}

pub(crate) fn non_zero<'a>(_: &RunNode, allowed: &Allowed, inputs: &mut Inputs<'a>) -> Results<'a> {
    let view = inputs.view(0)?;
    let rank = view.shape().len();
    let truths = truths(&view, allowed)?;
    let places: Vec<usize> = (0..truths.len()).filter(|place| truths[*place]).collect();
    let shape = [rank, places.len()];
    allowed.room(&shape, simulcast::DType::I64)?;
    let steps = steps(view.shape());
    let along = |axis: usize| {
        let (step, size) = (steps[axis], view.shape()[axis]);
        places.iter().map(move |place| (place / step % size) as i64)
    };
    one(array(&shape, (0..rank).flat_map(along).collect::<Vec<i64>>())?)
}

pub(crate) fn compress<'a>(
    call: &RunNode,
    allowed: &Allowed,
    inputs: &mut Inputs<'a>,
) -> Results<'a> {
    let value = inputs.need(0)?.clone();
    let (value, at) = match call.int("axis") {
        Some(at) => {
            let at = axis(at, value.shape().len())?;
            (value, at)
        }
        None => {
            let len = value.view().len();
            (reshaped(value, &[len], allowed)?, 0)
        }
    };
    let truths = truths(&inputs.view(1)?, allowed)?;
    let kept: Vec<usize> = (0..truths.len()).filter(|place| truths[*place]).collect();
    if kept.last().is_some_and(|last| *last >= value.shape()[at]) {
        return Err("the condition is longer than the axis".into());
    }
    let mut shape = value.shape().to_vec();
    shape[at] = kept.len();
    one(each!(value.view(), typed => selected(&typed, at, &kept, &shape))?)
}

/// A triangle of each matrix; 0 elsewhere.
pub(crate) fn trilu<'a>(call: &RunNode, allowed: &Allowed, inputs: &mut Inputs<'a>) -> Results<'a> {
    let view = inputs.view(0)?;
    let [.., rows, columns] = *view.shape() else {
        return Err(format!("{} is no matrix", format_shape(view.shape())).into());
    };
    let diagonal = inputs.ints(1)?.and_then(|all| all.first().copied()).unwrap_or(0);
    let upper = call.flag("upper", true);
    allowed.room(&[rows, columns], simulcast::DType::Bool)?;
    let inside = |place: usize| {
        let (row, column) = (place / columns, place % columns);
        let above = (column as i64).saturating_sub(row as i64);
        if upper { above >= diagonal } else { above <= diagonal }
    };
    let mask: Vec<bool> = (0..rows * columns).map(inside).collect();
    let mask = AnyArray::from(array(&[rows, columns], mask)?);
    one(allowed.evaluate(&[mask.view(), view.clone()], |build, args| {
        let zero = build.literal(match view.dtype() {
            simulcast::DType::Bool => simulcast::types::Literal::Bool(false),
            _ => simulcast::types::Literal::Int(0),
        });
        build.apply(simulcast::Op::Where, &[args[0], args[1], zero])
    })?)
}

/// Elements around the data: a value, or the data's own.
pub(crate) fn pad<'a>(call: &RunNode, allowed: &Allowed, inputs: &mut Inputs<'a>) -> Results<'a> {
    let view = inputs.view(0)?;
    let rank = view.shape().len();
    let pads = inputs.ints_or(1, call, "pads")?.ok_or("it has no pads")?;
    let chosen = match inputs.ints(3)? {
        Some(asked) => asked.iter().map(|&one| axis(one, rank)).collect::<Result<Vec<_>, _>>()?,
        None => (0..rank).collect(),
    };
    if pads.len() != 2 * chosen.len() {
        return Err(format!("{} pads for {} axes", pads.len(), chosen.len()).into());
    }
    let mut around = vec![(0, 0); rank];
    for (n, &axis) in chosen.iter().enumerate() {
        around[axis] = (pads[n], pads[chosen.len() + n]);
    }
    let mode = call.text("mode").unwrap_or("constant");
    let mut shape = Vec::with_capacity(rank);
    for (&size, (before, after)) in view.shape().iter().zip(&around) {
        let all = i64::try_from(size).ok().and_then(|size| size.checked_add(*before));
        let all = all.and_then(|all| all.checked_add(*after)).filter(|all| *all >= 0);
        shape.push(all.and_then(|all| usize::try_from(all).ok()).ok_or("a size is negative")?);
    }
    allowed.room_and_lists::<Option<usize>>(&shape, view.dtype())?;
    // Which index of the data stands where, along each axis; none where the value does.
    let mut sources: Vec<Vec<Option<usize>>> = Vec::with_capacity(rank);
    for (axis, (&size, (before, _))) in view.shape().iter().zip(&around).enumerate() {
        let own = |place: usize| source(place as i64 - before, size, mode);
        sources.push((0..shape[axis]).map(own).collect::<Result<_, _>>()?);
    }
    let steps = steps(view.shape());
    let mut places: Vec<Option<usize>> = Vec::with_capacity(elements(&shape).unwrap_or(0));
    for own in ndarray::indices(IxDyn(&shape)) {
        let each = own.slice().iter().zip(&sources).zip(&steps);
        places.push(each.map(|((at, all), step)| Some(all[*at]? * step)).sum());
    }
    fn filled<T: Element + Default>(
        view: &ArrayViewD<'_, T>,
        value: Option<&AnyView<'_>>,
        shape: &[usize],
        places: &[Option<usize>],
    ) -> Result<AnyArray, NodeError>
    where
        AnyArray: From<ArrayD<T>>,
    {
        let rows = view.as_standard_layout();
        let rows = rows.as_slice().unwrap_or_default();
        let value = match value {
            Some(value) => {
                let value = value.typed::<T>().ok_or("its value is of another type")?;
                value.first().cloned().unwrap_or_default()
            }
            None => T::default(),
        };
        let pick = |place: &Option<usize>| match place {
            Some(place) => rows.get(*place).cloned().unwrap_or_default(),
            None => value.clone(),
        };
        Ok(AnyArray::from(array(shape, places.iter().map(pick).collect())?))
    }
    let attribute = (call.opset < 11).then(|| call.float("value", 0.0)).filter(|v| *v != 0.0);
    let attribute = match attribute {
        Some(value) => {
            Some(allowed.evaluate(&[AnyArray::scalar(value).view()], |build, args| {
                build.cast(args[0], view.dtype())
            })?)
        }
        None => None,
    };
    let given = inputs.get(2).map(Value::view);
    let value = given.or_else(|| attribute.as_ref().map(AnyArray::view));
    one(each!(view, typed => filled(&typed, value.as_ref(), &shape, &places))?)
}

/// The index of the data that stands at a place before, in or after them.
fn source(place: i64, size: usize, mode: &str) -> Result<Option<usize>, NodeError> {
    let count = i64::try_from(size).unwrap_or(i64::MAX);
    if (0..count).contains(&place) {
        return Ok(usize::try_from(place).ok());
    }
    if mode != "constant" && count == 0 {
        return Err(format!("nothing to {mode}").into());
    }
    let own = match mode {
        "constant" => return Ok(None),
        "edge" => place.clamp(0, count - 1),
        "wrap" => place.rem_euclid(count),
        "reflect" if count == 1 => 0,
        "reflect" => {
            let around = place.rem_euclid(2 * (count - 1));
            around.min(2 * (count - 1) - around)
        }
        other => return Err(format!("there is no mode {other:?}").into()),
    };
    Ok(usize::try_from(own).ok())
}
