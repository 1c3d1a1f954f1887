//! Tensors cut and put together along axes.

#[cfg(feature = "run")]
pub(super) mod run;

use simulcast_core::{Dim, Dims};

use super::rows;
use crate::ElementType;
use crate::expr::SizeExpr;
use crate::infer::{Fact, InferNode, Results, gathered, strides};

rows! { "", ROWS:
    "Compress" 9 "T bool -> T" infer compress run whole(run::compress) [moves(&[0])];
    "Concat" 1 "T* -> T" infer concat run whole(run::concat) [moves_all];
    "Gather" 1 "T index -> T" infer gather run whole(run::gather) [moves(&[0])];
    "GatherElements" 11 "T index -> T" infer gather_elements run whole(run::gather_elements) [moves(&[0])];
    "GatherND" 11 "T int64 -> T" infer gather_nd run whole(run::gather_nd) [moves(&[0])];
    "NonZero" 9 "T -> int64" infer non_zero run whole(run::non_zero);
    "Pad" 1 "T int64? T? index? -> T" infer pad run whole(run::pad) [runs_since(2)];
    "ReverseSequence" 10 "T int64 -> T" infer same;
    "Scatter" 9 "T index T -> T" infer same run whole(run::scatter_elements) [moves(&[0, 2])];
    "ScatterElements" 11 "T index T -> T" infer same run whole(run::scatter_elements) [moves(&[0, 2])];
    "ScatterND" 11 "T int64 T -> T" infer scatter_nd run whole(run::scatter_nd) [moves(&[0, 2])];
    "Slice" 1 "T I? I? I? I? -> T" infer slice run whole(run::slice) [moves(&[0])];
    "Split" 1 "T _? -> T*" infer split run whole(run::split) [moves(&[0])];
    "Unique" 11 "T -> T int64 int64 int64" infer unique;
    "TensorScatter" 24 "T T int64? -> T" infer same;
    "Trilu" 14 "T int64? -> T" infer same run whole(run::trilu);
}

impl InferNode<'_, '_, '_> {
    /// As many as are different.
    fn unique(&mut self) -> Results {
        let mut dims = match (self.int("axis"), self.ranked(0)) {
            (Some(axis), Some(dims)) => {
                let mut dims = dims.to_vec();
                let axis = self.axis(axis, dims.len())?;
                dims[axis] = Dim::UNKNOWN;
                vec![Dims::from(dims)]
            }
            (Some(_), None) => vec![Dims::Unranked],
            (None, _) => vec![vec![Dim::UNKNOWN].into()],
        };
        dims.resize(4, vec![Dim::UNKNOWN].into());
        let facts = dims.into_iter().enumerate().map(|(output, dims)| {
            let element = if output == 0 { self.element(0) } else { Some(ElementType::I64) };
            Fact::new(element, dims)
        });
        Ok(facts.collect())
    }

    fn gather_elements(&mut self) -> Results {
        if let Some(data) = self.ranked(0) {
            let axis = self.axis(self.int("axis").unwrap_or(0), data.len())?;
            self.inside(1, &data[axis], true)?;
        }
        Ok(vec![Fact::new(self.element(0), self.dims(1).clone())])
    }

    /// As many as the condition picks.
    fn compress(&mut self) -> Results {
        let element = self.element(0);
        let picked =
            self.input(1).ints().map(|picked| picked.iter().filter(|one| **one != 0).count());
        let picked = picked.map_or(Dim::UNKNOWN, Dim::Size);
        let (Some(axis), Some(dims)) = (self.int("axis"), self.ranked(0)) else {
            let flat = self.attribute("axis").is_none();
            let dims = if flat { vec![picked].into() } else { Dims::Unranked };
            return Ok(vec![Fact::new(element, dims)]);
        };
        let mut dims = dims.to_vec();
        let axis = self.axis(axis, dims.len())?;
        dims[axis] = picked;
        Ok(vec![Fact::new(element, dims.into())])
    }

    fn non_zero(&mut self) -> Results {
        let rank = self.ranked(0).map_or(Dim::UNKNOWN, |dims| Dim::Size(dims.len().max(1)));
        Ok(vec![Fact::new(Some(ElementType::I64), vec![rank, Dim::UNKNOWN].into())])
    }

    fn concat(&mut self) -> Results {
        let all: Vec<usize> = (0..self.inputs.len()).collect();
        self.joined(&all, self.element(0))
    }

    /// Inputs put together along the axis.
    pub(super) fn joined(&mut self, inputs: &[usize], element: Option<ElementType>) -> Results {
        let count = inputs.len();
        let shapes: Vec<&[Dim]> = inputs.iter().filter_map(|input| self.ranked(*input)).collect();
        let Some(&first) = shapes.first() else {
            return Ok(vec![Fact::new(element, Dims::Unranked)]);
        };
        let axis =
            self.int("axis").or((self.opset < 4 && self.node.domain.is_empty()).then_some(1));
        let axis = self.axis(axis.ok_or("it has no axis")?, first.len())?;
        let mut dims = first.to_vec();
        for &other in &shapes[1..] {
            if other.len() != dims.len() {
                let (a, b) = (Dims::from(first.to_vec()), Dims::from(other.to_vec()));
                return Err(format!("{a} and {b} have different ranks"));
            }
            for (own, (dim, other)) in dims.iter_mut().zip(other).enumerate() {
                if own != axis {
                    *dim = self.equal(dim, other, format_args!("axis {own}"))?;
                }
            }
        }
        let along: Vec<&Dim> = shapes.iter().map(|shape| &shape[axis]).collect();
        dims[axis] = match shapes.len() == count {
            true => self.with(&along, |sizes| {
                sizes.iter().try_fold(SizeExpr::from(0), |sum, size| sum.add(size))
            })?,
            false => Dim::UNKNOWN,
        };
        // Along the first axis, what lies one after another stays so.
        let values = match axis {
            0 => inputs.iter().map(|input| self.values(*input)).collect::<Option<Vec<_>>>(),
            _ => None,
        };
        let floats = inputs.iter().map(|input| self.input(*input).known_floats());
        let floats = match (axis, element) {
            (0, Some(ElementType::F32)) => floats.collect::<Option<Vec<_>>>(),
            _ => None,
        };
        let fact = self.fact_with(element, dims.into(), values.map(|parts| parts.concat()));
        Ok(vec![fact.with_floats(floats.map(|parts| parts.concat().into()))])
    }

    fn split(&mut self) -> Results {
        let element = self.element(0);
        let count = self.node.outputs.len();
        let Some(dims) = self.ranked(0) else {
            return Ok(vec![Fact::new(element, Dims::Unranked); count]);
        };
        if let Some(parts @ ..1) = self.int("num_outputs") {
            return Err(format!("num_outputs is {parts}"));
        }
        let axis = self.axis(self.int("axis").unwrap_or(0), dims.len())?;
        let parts = match self.ints_of("split", 1) {
            Ok(parts) => parts,
            Err(()) => {
                let mut dims = dims.to_vec();
                dims[axis] = Dim::UNKNOWN;
                return Ok(vec![Fact::new(element, dims.into()); count]);
            }
        };
        let parts: Vec<Dim> = match (parts, dims[axis].size()) {
            (Some(parts), _) => {
                let size = |part: &i64| usize::try_from(*part).map(Dim::Size);
                let parts: Result<Vec<Dim>, _> = parts.iter().map(size).collect();
                let parts = parts.map_err(|_| "a part is negative")?;
                let all: Vec<&Dim> = parts.iter().collect();
                let sum = self.with(&all, |sizes| {
                    sizes.iter().try_fold(SizeExpr::from(0), |sum, size| sum.add(size))
                })?;
                self.equal(&dims[axis], &sum, "the parts together and the axis")?;
                parts
            }
            // Equal parts, the last one smaller.
            (None, Some(size)) => {
                let part = size.div_ceil(count.max(1));
                let part_at = |at: usize| size.saturating_sub(part.saturating_mul(at)).min(part);
                (0..count).map(|at| Dim::Size(part_at(at))).collect()
            }
            (None, None) => {
                let by = SizeExpr::from(i64::try_from(count).unwrap_or(1));
                let part = self.with(&[&dims[axis]], |size| size[0].div_exact(&by))?;
                vec![part; count]
            }
        };
        let values = self.values(0).filter(|_| dims.len() == 1);
        let mut results = Vec::new();
        let mut from = 0;
        for part in parts {
            let mut own = dims.to_vec();
            let to = part.size().map(|size| from + size);
            let part_of = |values: &[SizeExpr]| Some(values.get(from..to?)?.to_vec());
            let values = values.and_then(part_of);
            from = to.unwrap_or(from);
            own[axis] = part;
            results.push(self.fact_with(element, own.into(), values));
        }
        Ok(results)
    }

    fn slice(&mut self) -> Results {
        let element = self.element(0);
        let Some(dims) = self.ranked(0) else {
            return Ok(vec![Fact::new(element, Dims::Unranked)]);
        };
        let mut dims = dims.to_vec();
        let list = |name: &str, input: usize| match self.opset {
            ..10 => self.ints(name).map(|own| own.iter().copied().map(SizeExpr::from).collect()),
            _ => self.values(input).map(<[_]>::to_vec),
        };
        let (starts, ends): (Option<Vec<SizeExpr>>, Option<Vec<SizeExpr>>) =
            (list("starts", 1), list("ends", 2));
        let given = |input: usize| self.opset >= 10 && self.has(input);
        let (axes, steps) = (list("axes", 3), list("steps", 4));
        let unknown = starts.is_none() || ends.is_none() || (given(3) && axes.is_none());
        if unknown || (given(4) && steps.is_none()) {
            let known: Option<Vec<i64>> =
                axes.and_then(|axes| axes.iter().map(SizeExpr::constant).collect());
            match known {
                Some(axes) => {
                    for axis in axes {
                        let axis = self.axis(axis, dims.len())?;
                        dims[axis] = Dim::UNKNOWN;
                    }
                }
                None => dims.fill(Dim::UNKNOWN),
            }
            return Ok(vec![Fact::new(element, dims.into())]);
        }
        let (starts, ends) = (starts.unwrap_or_default(), ends.unwrap_or_default());
        // What is picked of each axis, as offsets of elements.
        let mut offsets = self.elements(0).map(|(_, sizes)| {
            let strides = strides(&sizes);
            let all = sizes.iter().zip(strides);
            all.map(|(size, stride)| (0..*size).map(|at| at * stride).collect()).collect()
        });
        for (position, (start, end)) in starts.iter().zip(&ends).enumerate() {
            let axis = match &axes {
                Some(axes) => {
                    axes.get(position).and_then(SizeExpr::constant).ok_or("axes are too few")?
                }
                None => i64::try_from(position).unwrap_or(0),
            };
            let axis = self.axis(axis, dims.len())?;
            let step = match &steps {
                Some(steps) => steps.get(position).and_then(SizeExpr::constant).unwrap_or(0),
                None => 1,
            };
            if step == 0 {
                return Err("a step is 0 or not known".into());
            }
            let size = dims[axis].clone();
            if let (Some(size), Some(start), Some(end)) =
                (size.size(), start.constant(), end.constant())
            {
                let size = i64::try_from(size).map_err(|_| "an axis is too long to slice")?;
                let picked = picked(size, start, end, step);
                dims[axis] = Dim::Size(picked.len());
                if let Some(all) = &mut offsets {
                    let all: &mut Vec<Vec<usize>> = all;
                    let at = |index: i64| all[axis].get(usize::try_from(index).ok()?).copied();
                    let own = picked.iter().filter_map(at).collect();
                    all[axis] = own;
                }
                continue;
            }
            offsets = None;
            dims[axis] = self.with(&[&size], |own| symbolic(&own[0], start, end, step))?;
        }
        let values = match (offsets, self.values(0)) {
            (Some(offsets), Some(values)) => Some(gathered(values, &offsets)),
            _ => None,
        };
        Ok(vec![self.fact_with(element, dims.into(), values)])
    }

    fn gather(&mut self) -> Results {
        let element = self.element(0);
        let (Some(data), Some(indices)) = (self.ranked(0), self.ranked(1)) else {
            return Ok(vec![Fact::new(element, Dims::Unranked)]);
        };
        let axis = self.axis(self.int("axis").unwrap_or(0), data.len())?;
        self.inside(1, &data[axis], true)?;
        let mut dims = data[..axis].to_vec();
        dims.extend_from_slice(indices);
        dims.extend_from_slice(&data[axis + 1..]);
        let values = match (data.len(), self.values(0), self.input(1).ints()) {
            (1, Some(values), Some(at)) => {
                let count = i64::try_from(values.len()).unwrap_or(i64::MAX);
                let one = |index: &i64| {
                    let index = if *index < 0 { index + count } else { *index };
                    usize::try_from(index).ok().and_then(|index| values.get(index)).cloned()
                };
                let all: Option<Vec<SizeExpr>> = at.iter().map(one).collect();
                Some(all.ok_or_else(|| format!("an index of {at:?} is outside {count} values"))?)
            }
            _ => None,
        };
        Ok(vec![self.fact_with(element, dims.into(), values)])
    }

    fn gather_nd(&mut self) -> Results {
        let element = self.element(0);
        let unknown = Ok(vec![Fact::new(element, Dims::Unranked)]);
        let (Some(data), Some(indices)) = (self.ranked(0), self.ranked(1)) else { return unknown };
        let batch = usize::try_from(self.int("batch_dims").unwrap_or(0)).unwrap_or(0);
        let Some((last, front)) = indices.split_last() else { return unknown };
        let Some(depth) = last.size() else { return unknown };
        let Some(left) = data.get(batch.saturating_add(depth)..) else {
            let data = self.dims(0);
            return Err(format!("an index of {depth} numbers is too long for {data}"));
        };
        let dims: Vec<Dim> = front.iter().chain(left).cloned().collect();
        Ok(vec![Fact::new(element, dims.into())])
    }

    /// The sizes of the data, where indices are inside and updates have the sizes of what they replace.
    fn scatter_nd(&mut self) -> Results {
        let (Some(data), Some(indices), Some(updates)) =
            (self.ranked(0), self.ranked(1), self.ranked(2))
        else {
            return self.same();
        };
        let Some((Dim::Size(depth @ 1..), front)) = indices.split_last() else {
            return self.same();
        };
        let Some((picked, left)) = data.split_at_checked(*depth) else {
            let data = self.dims(0);
            return Err(format!("an index of {depth} numbers is too long for {data}"));
        };
        let known = self.input(1).ints().unwrap_or_default();
        for (position, index) in known.iter().enumerate() {
            let Some(size) = picked[position % depth].size() else { continue };
            let size = i64::try_from(size).unwrap_or(i64::MAX);
            if !(size.saturating_neg()..size).contains(index) {
                return Err(format!("the index {index} is outside an axis of {size}"));
            }
        }
        let replaced: Vec<Dim> = front.iter().chain(left).cloned().collect();
        let differ = |(a, b): (&Dim, &Dim)| a.size().zip(b.size()).is_some_and(|(a, b)| a != b);
        if replaced.len() != updates.len() || replaced.iter().zip(updates).any(differ) {
            let (updates, replaced) = (self.dims(2), Dims::from(replaced));
            return Err(format!("its updates are {updates}, and what they replace is {replaced}"));
        }
        self.same()
    }

    pub(super) fn tile(&mut self) -> Results {
        let element = self.element(0);
        let Some(dims) = self.ranked(0) else {
            return Ok(vec![Fact::new(element, Dims::Unranked)]);
        };
        let repeats = self.values(1).filter(|_| self.opset >= 6);
        let given = self.ranked(1).and_then(|repeats| repeats.first()?.size());
        match (self.opset, given) {
            (6.., Some(given)) if given != dims.len() => {
                return Err(format!("{given} numbers do not repeat {} axes", dims.len()));
            }
            _ => {}
        }
        let mut out = Vec::new();
        for (axis, dim) in dims.iter().enumerate() {
            let times = repeats.and_then(|repeats| repeats.get(axis));
            out.push(match times {
                Some(times) => self.with(&[dim], |size| size[0].mul(times))?,
                None => Dim::UNKNOWN,
            });
        }
        Ok(vec![Fact::new(element, out.into())])
    }

    fn pad(&mut self) -> Results {
        let element = self.element(0);
        let Some(dims) = self.ranked(0) else {
            return Ok(vec![Fact::new(element, Dims::Unranked)]);
        };
        let name = if self.opset < 2 { "paddings" } else { "pads" };
        let pads = match self.opset {
            ..11 => self.ints(name).map(<[_]>::to_vec),
            _ => self.input(1).ints(),
        };
        let axes: Option<Vec<usize>> = match (self.opset >= 18 && self.has(3), self.input(3).ints())
        {
            (false, _) => Some((0..dims.len()).collect()),
            (true, None) => None,
            (true, Some(axes)) => Some(
                axes.iter().map(|axis| self.axis(*axis, dims.len())).collect::<Result<_, _>>()?,
            ),
        };
        let (Some(pads), Some(axes)) = (pads, axes) else {
            return Ok(vec![Fact::new(element, vec![Dim::UNKNOWN; dims.len()].into())]);
        };
        if pads.len() != axes.len().saturating_mul(2) {
            return Err(format!("{} numbers do not pad {} axes", pads.len(), axes.len()));
        }
        let mut out = dims.to_vec();
        for (position, axis) in axes.iter().enumerate() {
            let more =
                SizeExpr::from(pads[position]).add(&SizeExpr::from(pads[position + axes.len()]));
            out[*axis] = self.with(&[&dims[*axis]], |size| size[0].add(&more?))?;
        }
        Ok(vec![Fact::new(element, out.into())])
    }
}

/// The indices that a slice of known numbers picks; bounded by the axis' own size.
fn picked(size: i64, start: i64, end: i64, step: i64) -> Picked {
    let from_end = |at: i64| if at < 0 { at.saturating_add(size) } else { at };
    let (start, end) = (from_end(start), from_end(end));
    let (start, end) = match step > 0 {
        true => (start.clamp(0, size), end.clamp(0, size)),
        false => (start.clamp(0, (size - 1).max(0)), end.clamp(-1, size - 1)),
    };
    let span = i128::from(end) - i128::from(start);
    let count = match (size, span.signum() == i128::from(step.signum())) {
        (0, _) | (_, false) => 0,
        _ => (span.unsigned_abs()).div_ceil(u128::from(step.unsigned_abs())),
    };
    Picked { start, step, count: usize::try_from(count).unwrap_or(usize::MAX) }
}

struct Picked {
    start: i64,
    step: i64,
    count: usize,
}

impl Picked {
    fn len(&self) -> usize {
        self.count
    }

    fn iter(&self) -> impl Iterator<Item = i64> {
        let (start, step) = (self.start, self.step);
        (0..self.count as i64).map(move |index| start.saturating_add(index.saturating_mul(step)))
    }
}

/// How many a slice picks of a size that is not known, where that can be said.
fn symbolic(size: &SizeExpr, start: &SizeExpr, end: &SizeExpr, step: i64) -> Option<SizeExpr> {
    let whole = end.constant().is_some_and(|end| end >= i64::from(i32::MAX)) || end == size;
    match (start.constant(), step) {
        (Some(0), 1) if whole => Some(size.clone()),
        // Only where the axis is surely long enough is there something to count.
        (Some(start), 1) if whole && start > 0 => {
            let left = size.sub(&SizeExpr::from(start))?;
            left.is_at_least(0).then_some(left)
        }
        (Some(start @ ..0), 1) if whole => {
            let most = start.checked_neg()?;
            size.is_at_least(most).then(|| SizeExpr::from(most))
        }
        (Some(0), 1) => match end.constant() {
            Some(end @ ..0) => {
                let left = size.add(&SizeExpr::from(end))?;
                left.is_at_least(0).then_some(left)
            }
            // Up to a size that is no larger than the axis.
            _ => (end.is_at_least(0) && size.sub(end)?.is_at_least(0)).then(|| end.clone()),
        },
        _ => None,
    }
}
