//! Shapes: asked for, and changed while the elements stay in order.

use simulcast::AnyArray;
use simulcast_core::{Rule, elements, format_shape, resolve};

use crate::run::code::{Results, one, reshaped};
use crate::run::node::{Allowed, Inputs, RunNode, axes, axis, distinct_axes, sizes};
use crate::run::value::{Look, array};

pub(crate) fn shape<'a>(call: &RunNode, _: &Allowed, inputs: &mut Inputs<'a>) -> Results<'a> {
    let own = inputs.need(0)?.shape();
    let rank = i64::try_from(own.len()).unwrap_or(i64::MAX);
    let bound = |name: &str, default: i64| {
        let bound = call.int(name).unwrap_or(default);
        let bound = if bound < 0 { bound.saturating_add(rank) } else { bound };
        usize::try_from(bound.clamp(0, rank)).unwrap_or(0)
    };
    let (start, end) = (bound("start", 0), bound("end", rank));
    let sizes = own.get(start..end).unwrap_or_default().iter().map(|&size| size as i64).collect();
    one(ndarray::Array1::<i64>::from_vec(sizes))
}

pub(crate) fn size<'a>(_: &RunNode, _: &Allowed, inputs: &mut Inputs<'a>) -> Results<'a> {
    one(AnyArray::scalar(inputs.view(0)?.len() as i64))
}

pub(crate) fn reshape<'a>(
    call: &RunNode,
    allowed: &Allowed,
    inputs: &mut Inputs<'a>,
) -> Results<'a> {
    let target = inputs.ints_or(1, call, "shape")?.ok_or("it has no shape")?;
    let own = inputs.need(0)?.shape().to_vec();
    let zero = call.flag("allowzero", false);
    let mut known: Vec<usize> = Vec::with_capacity(target.len());
    let mut open = None;
    for (at, &size) in target.iter().enumerate() {
        known.push(match size {
            0 if !zero => *own.get(at).ok_or_else(|| format!("there is no size {at} to keep"))?,
            -1 if open.is_none() => {
                open = Some(at);
                1
            }
            size => usize::try_from(size).map_err(|_| format!("a size is {size}"))?,
        });
    }
    let (have, rest) = (inputs.view(0)?.len(), elements(&known).unwrap_or(usize::MAX));
    let fits = match open {
        Some(at) if rest > 0 && have.is_multiple_of(rest) => {
            known[at] = have / rest;
            true
        }
        Some(_) => false,
        None => have == rest,
    };
    if !fits {
        return Err(
            format!("{} has {have} elements, which is no {target:?}", format_shape(&own)).into()
        );
    }
    Ok(vec![reshaped(inputs.take(0)?, &known, allowed)?])
}

pub(crate) fn flatten<'a>(
    call: &RunNode,
    allowed: &Allowed,
    inputs: &mut Inputs<'a>,
) -> Results<'a> {
    let value = inputs.take(0)?;
    let rank = value.shape().len();
    // The axis may be the end.
    let at = match call.int("axis").unwrap_or(1) {
        end if usize::try_from(end) == Ok(rank) => rank,
        other => axis(other, rank)?,
    };
    let (before, after) = value.shape().split_at(at);
    let shape = [before.iter().product(), after.iter().product()];
    Ok(vec![reshaped(value, &shape, allowed)?])
}

pub(crate) fn squeeze<'a>(
    call: &RunNode,
    allowed: &Allowed,
    inputs: &mut Inputs<'a>,
) -> Results<'a> {
    let asked = inputs.ints_or(1, call, "axes")?;
    let value = inputs.take(0)?;
    let own = value.shape();
    let gone = match asked {
        Some(asked) => axes(&asked, own.len())?,
        None => (0..own.len()).filter(|&axis| own[axis] == 1).collect(),
    };
    if let Some(axis) = gone.iter().find(|&&axis| own[axis] != 1) {
        return Err(format!("axis {axis} of {} is not 1", format_shape(own)).into());
    }
    let kept = (0..own.len()).filter(|axis| !gone.contains(axis)).map(|axis| own[axis]);
    let shape: Vec<usize> = kept.collect();
    Ok(vec![reshaped(value, &shape, allowed)?])
}

pub(crate) fn unsqueeze<'a>(
    call: &RunNode,
    allowed: &Allowed,
    inputs: &mut Inputs<'a>,
) -> Results<'a> {
    let asked = inputs.ints_or(1, call, "axes")?.ok_or("it has no axes")?;
    let value = inputs.take(0)?;
    let rank = value.shape().len() + asked.len();
    let new = distinct_axes(&asked, rank)?;
    let mut own = value.shape().iter();
    let size = |axis: usize| if new.contains(&axis) { Some(1) } else { own.next().copied() };
    let shape: Vec<usize> = (0..rank).filter_map(size).collect();
    Ok(vec![reshaped(value, &shape, allowed)?])
}

pub(crate) fn transpose<'a>(
    call: &RunNode,
    allowed: &Allowed,
    inputs: &mut Inputs<'a>,
) -> Results<'a> {
    let view = inputs.view(0)?;
    let rank = view.shape().len();
    let order: Vec<usize> = match call.ints("perm") {
        None => (0..rank).rev().collect(),
        Some(perm) => {
            if distinct_axes(perm, rank)?.len() != rank {
                return Err(format!("{perm:?} is no order of {rank} axes").into());
            }
            perm.iter().map(|&one| axis(one, rank)).collect::<Result<_, _>>()?
        }
    };
    Ok(vec![inputs.take(0)?.look(&Look::Axes(order), allowed)?])
}

pub(crate) fn expand<'a>(_: &RunNode, allowed: &Allowed, inputs: &mut Inputs<'a>) -> Results<'a> {
    let target = sizes(&inputs.ints(1)?.unwrap_or_default())?;
    let view = inputs.view(0)?;
    let plan = resolve(Rule::Bidirectional { target: &target }, &[view.shape()])?;
    allowed.room(plan.shape(), view.dtype())?;
    let to = Look::To(plan.shape().to_vec());
    Ok(vec![inputs.take(0)?.look(&to, allowed)?])
}

/// Copies beside each other: along a new axis before each, which stretches, and then they merge.
pub(crate) fn tile<'a>(_: &RunNode, allowed: &Allowed, inputs: &mut Inputs<'a>) -> Results<'a> {
    let repeats = sizes(&inputs.ints(1)?.unwrap_or_default())?;
    let view = inputs.view(0)?;
    let own = view.shape();
    if repeats.len() != own.len() {
        return Err(format!("{} repeats for {} axes", repeats.len(), own.len()).into());
    }
    let each_size = own.iter().zip(&repeats).map(|(size, times)| size.checked_mul(*times));
    let shape: Option<Vec<usize>> = each_size.collect();
    let shape = shape.ok_or("a size is too large to count")?;
    allowed.room(&shape, view.dtype())?;
    let apart: Vec<usize> = repeats.iter().zip(own).flat_map(|(t, size)| [*t, *size]).collect();
    // Where nothing is left, sizes that no longer show have to be countable too.
    allowed.room(&apart, view.dtype())?;
    let lone: Vec<usize> = own.iter().flat_map(|&size| [1, size]).collect();
    let laid = inputs.take(0)?.look(&Look::Sizes(lone), allowed)?;
    let laid = laid.look(&Look::To(apart), allowed)?;
    Ok(vec![laid.look(&Look::Sizes(shape), allowed)?])
}

/// Blocks of channels laid out as space, or back.
pub(crate) fn space<'a>(call: &RunNode, allowed: &Allowed, inputs: &mut Inputs<'a>) -> Results<'a> {
    let view = inputs.view(0)?;
    let block = call.int("blocksize").and_then(|size| usize::try_from(size).ok());
    let block = block.filter(|size| *size > 0).ok_or("it has no blocksize")?;
    let &[n, c, h, w] = view.shape() else {
        return Err(format!("{} is no image", format_shape(view.shape())).into());
    };
    let to_space = call.op == "DepthToSpace";
    let times = |size: usize, n: usize| size.checked_mul(n).ok_or("a size is too large to count");
    let area = times(block, block)?;
    let whole = match to_space {
        true => c.is_multiple_of(area),
        false => h.is_multiple_of(block) && w.is_multiple_of(block),
    };
    if !whole {
        return Err(format!("{} is no whole number of blocks", format_shape(view.shape())).into());
    }
    let rows_first = call.text("mode") != Some("CRD");
    let (apart, order, shape) = match (to_space, rows_first) {
        (true, true) => {
            let rest = c / area;
            let shape = [n, rest, times(h, block)?, times(w, block)?];
            ([n, block, block, rest, h, w], [0, 3, 4, 1, 5, 2], shape)
        }
        (true, false) => {
            let rest = c / area;
            let shape = [n, rest, times(h, block)?, times(w, block)?];
            ([n, rest, block, block, h, w], [0, 1, 4, 2, 5, 3], shape)
        }
        (false, rows_first) => {
            let (rows, columns) = (h / block, w / block);
            let shape = [n, times(c, area)?, rows, columns];
            let order = if rows_first { [0, 3, 5, 1, 2, 4] } else { [0, 1, 3, 5, 2, 4] };
            ([n, c, rows, block, columns, block], order, shape)
        }
    };
    let laid = inputs.take(0)?.look(&Look::Sizes(apart.to_vec()), allowed)?;
    let moved = laid.look(&Look::Axes(order.to_vec()), allowed)?;
    Ok(vec![moved.look(&Look::Sizes(shape.to_vec()), allowed)?])
}

/// Before opset 10 the mask was of the data's type.
pub(crate) fn dropout_refusal(call: &RunNode) -> Option<String> {
    (call.opset < 10 && call.wants(1)).then(|| "its mask before opset 10".into())
}

/// Nothing is dropped but in training, which a third input asks for.
pub(crate) fn dropout<'a>(call: &RunNode, _: &Allowed, inputs: &mut Inputs<'a>) -> Results<'a> {
    let value = inputs.take(0)?;
    if !call.wants(1) {
        return Ok(vec![value]);
    }
    let count = elements(value.shape()).map_err(|refusal| refusal.to_string())?;
    let mask = AnyArray::from(array(value.shape(), vec![true; count])?);
    Ok(vec![value, mask.into()])
}
