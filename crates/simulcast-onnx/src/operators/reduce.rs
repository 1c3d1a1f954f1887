//! Reductions: axes that go, or stay with size 1.

#[cfg(feature = "run")]
pub(super) mod run;

use simulcast_core::{Dim, Dims};

use super::rows;
use crate::infer::{Fact, InferNode, Results};

use crate::ElementType;
use crate::expr::SizeExpr;

rows! { "", ROWS:
    "ArgMax" 1 "N -> int64" infer arg run whole(run::arg);
    "ArgMin" 1 "N -> int64" infer arg run whole(run::arg);
    "CumProd" 26 "N _ -> N" infer cumulated run whole(run::cumulate);
    "CumSum" 11 "N index -> N" infer cumulated run whole(run::cumulate);
    "ReduceL1" 1 "N int64? -> N" infer reduce run whole(run::reduce) [reduces];
    "ReduceL2" 1 "N int64? -> N" infer reduce run whole(run::reduce) [reduces];
    "ReduceLogSum" 1 "N int64? -> N" infer reduce run whole(run::reduce) [reduces];
    "ReduceLogSumExp" 1 "N int64? -> N" infer reduce run whole(run::reduce) [reduces];
    "ReduceMax" 1 "T int64? -> T" infer reduce run whole(run::reduce) [reduces];
    "ReduceMean" 1 "N int64? -> N" infer reduce run whole(run::reduce) [reduces];
    "ReduceMin" 1 "T int64? -> T" infer reduce run whole(run::reduce) [reduces];
    "ReduceProd" 1 "N int64? -> N" infer reduce run whole(run::reduce) [reduces];
    "ReduceSum" 1 "N int64? -> N" infer reduce run whole(run::reduce) [reduces];
    "ReduceSumSquare" 1 "N int64? -> N" infer reduce run whole(run::reduce) [reduces];
    "TopK" 1 "N int64? -> N int64" infer top_k run whole(run::top_k) [runs_since(10), takes(2, 2)];
}

impl InferNode<'_, '_, '_> {
    /// The axes that are reduced; all of them where none is named, unless that means none.
    pub(super) fn reduced_axes(&self, rank: usize) -> Result<Option<Vec<usize>>, String> {
        let Ok(axes) = self.ints_of("axes", 1) else { return Ok(None) };
        match axes {
            None => Ok(Some(self.all_axes(rank))),
            Some(axes) if axes.is_empty() => Ok(Some(self.all_axes(rank))),
            Some(axes) => {
                let axes = axes.into_iter().map(|axis| self.axis(axis, rank));
                Ok(Some(axes.collect::<Result<_, _>>()?))
            }
        }
    }

    fn all_axes(&self, rank: usize) -> Vec<usize> {
        match self.int("noop_with_empty_axes") {
            Some(1) => Vec::new(),
            _ => (0..rank).collect(),
        }
    }

    fn reduce(&mut self) -> Results {
        let keep = self.int("keepdims").unwrap_or(1) != 0;
        let element = self.element(0);
        let unknown = Fact::new(element, Dims::Unranked);
        let Some(dims) = self.ranked(0) else {
            // Every axis goes, whatever their number.
            let all = !keep && !self.has(1) && self.ints("axes").is_none();
            let scalar = all && self.int("noop_with_empty_axes").unwrap_or(0) == 0;
            return Ok(vec![if scalar { Fact::new(element, Vec::new().into()) } else { unknown }]);
        };
        let Some(axes) = self.reduced_axes(dims.len())? else {
            let named = self.ranked(1).and_then(|axes| axes.first()?.size());
            let rank = match (keep, named) {
                (true, _) => Some(dims.len()),
                (false, Some(1)) => dims.len().checked_sub(1),
                // None named may mean all of them, and several may be one.
                (false, _) => None,
            };
            let same_rank = rank.map(|rank| vec![Dim::UNKNOWN; rank].into());
            return Ok(vec![same_rank.map_or(unknown, |dims| Fact::new(element, dims))]);
        };
        let values = match (self.op(), self.values(0)) {
            ("ReduceProd", Some(values)) if dims.len() == 1 => {
                SizeExpr::product(values.iter()).map(|product| vec![product])
            }
            ("ReduceSum", Some(values)) if dims.len() == 1 => {
                let sum = values.iter().try_fold(SizeExpr::from(0), |sum, value| sum.add(value));
                sum.map(|sum| vec![sum])
            }
            ("ReduceMax" | "ReduceMin", Some(_)) if dims.len() == 1 => {
                let known = self.input(0).ints().unwrap_or_default().into_iter();
                let one = if self.op_is("ReduceMax") { known.max() } else { known.min() };
                one.map(|one| vec![SizeExpr::from(one)])
            }
            _ => None,
        };
        let dims: Dims = reduced(dims, &axes, keep).into();
        Ok(vec![self.fact_with(element, dims, values)])
    }

    fn arg(&mut self) -> Results {
        let element = Some(ElementType::I64);
        let Some(dims) = self.ranked(0) else {
            return Ok(vec![Fact::new(element, Dims::Unranked)]);
        };
        let axis = self.axis(self.int("axis").unwrap_or(0), dims.len())?;
        let keep = self.int("keepdims").unwrap_or(1) != 0;
        Ok(vec![Fact::new(element, reduced(dims, &[axis], keep).into())])
    }

    /// The sizes of the input, along an axis that it must have.
    fn cumulated(&mut self) -> Results {
        if let (Some(dims), Some([axis])) = (self.ranked(0), self.input(1).ints().as_deref()) {
            self.axis(*axis, dims.len())?;
        }
        self.same()
    }

    fn top_k(&mut self) -> Results {
        let Some(dims) = self.ranked(0) else { return Ok(Vec::new()) };
        let mut dims = dims.to_vec();
        let axis = self.axis(self.int("axis").unwrap_or(-1), dims.len())?;
        let k = match (self.values(1), self.int("k")) {
            (Some(values), _) => values.first().cloned(),
            (None, k) => k.map(SizeExpr::from),
        };
        let picked = self.dim(k.as_ref())?;
        match (picked.size(), dims[axis].size()) {
            (Some(k), Some(size)) if k > size => {
                return Err(format!("an axis of {size} has no {k} elements"));
            }
            _ => {}
        }
        dims[axis] = picked;
        let indices = Fact::new(Some(ElementType::I64), dims.clone().into());
        Ok(vec![Fact::new(self.element(0), dims.into()), indices])
    }
}

pub(super) fn reduced(dims: &[Dim], axes: &[usize], keep: bool) -> Vec<Dim> {
    let each =
        dims.iter().enumerate().filter_map(|(axis, dim)| match (axes.contains(&axis), keep) {
            (false, _) => Some(dim.clone()),
            (true, true) => Some(Dim::Size(1)),
            (true, false) => None,
        });
    each.collect()
}
