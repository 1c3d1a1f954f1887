//! Operators that make, move or cut shapes; and values where these become shapes again.

#[cfg(feature = "run")]
pub(super) mod run;

use simulcast_core::{Dim, Dims, Rule};

use super::rows;
use crate::ElementType;
use crate::expr::SizeExpr;
use crate::infer::{FOLDED, Fact, InferNode, Results, gathered, strides};

rows! { "", ROWS:
    "DepthToSpace" 1 "T -> T" infer space run whole(run::space) [moves(&[0])];
    "Dropout" 1 "F F1? bool? -> F _" infer dropout run whole_unless(run::dropout, run::dropout_refusal) [takes(1, 2)];
    "Expand" 8 "T int64 -> T" infer expand run whole(run::expand) [moves(&[0])];
    "Flatten" 1 "T -> T" infer flatten run whole(run::flatten) [moves(&[0])];
    "Reshape" 1 "T int64? -> T" infer reshape run whole(run::reshape) [moves(&[0])];
    "Shape" 1 "T -> int64" infer shape run whole(run::shape) [loses_text];
    "Size" 1 "T -> int64" infer size run whole(run::size) [loses_text];
    "SpaceToDepth" 1 "T -> T" infer space run whole(run::space) [moves(&[0])];
    "Squeeze" 1 "T int64? -> T" infer squeeze run whole(run::squeeze) [moves(&[0])];
    "Tile" 1 "T N1 N1? -> T" infer tile run whole(run::tile) [moves(&[0]), runs_since(6), takes(2, 2)];
    "Transpose" 1 "T -> T" infer transpose run whole(run::transpose) [moves(&[0])];
    "Unsqueeze" 1 "T int64? -> T" infer unsqueeze run whole(run::unsqueeze) [moves(&[0])];
}

impl InferNode<'_, '_, '_> {
    /// Blocks of channels laid out as space, or back.
    fn space(&mut self) -> Results {
        let element = self.element(0);
        let Some([n, c, h, w]) = self.ranked(0) else {
            return match self.ranked(0) {
                Some(_) => Err(format!("{} is no image", self.dims(0))),
                None => Ok(vec![Fact::new(element, vec![Dim::UNKNOWN; 4].into())]),
            };
        };
        let block = self.int("blocksize").filter(|size| *size > 0).ok_or("it has no blocksize")?;
        let block = SizeExpr::from(block);
        let area = block.mul(&block).ok_or("its blocksize is too large")?;
        let [n, c, h, w] = [n, c, h, w].map(Clone::clone);
        let deep = self.op_is("SpaceToDepth");
        let mut dims = vec![n];
        for (dim, by, is_depth) in [(c, &area, true), (h, &block, false), (w, &block, false)] {
            let divide = deep != is_depth;
            let sized = self.with(&[&dim], |own| match divide {
                true => own[0].div_exact(by),
                false => own[0].mul(by),
            })?;
            if divide && dim.size().is_some() && sized.size().is_none() {
                return Err(format!("{dim} is no multiple of {by}"));
            }
            dims.push(sized);
        }
        Ok(vec![Fact::new(element, dims.into())])
    }

    fn dropout(&mut self) -> Results {
        let Fact { element, dims, .. } = self.input(0);
        let mask = if self.opset < 10 { *element } else { Some(ElementType::Bool) };
        Ok(vec![Fact::new(*element, dims.clone()), Fact::new(mask, dims.clone())])
    }

    fn shape(&mut self) -> Results {
        let element = Some(ElementType::I64);
        let Some(dims) = self.ranked(0) else {
            return Ok(vec![Fact::new(element, vec![Dim::UNKNOWN].into())]);
        };
        let rank = i64::try_from(dims.len()).unwrap_or(i64::MAX);
        // Unlike an axis, an end beyond the rank is cut off.
        let end = |at: i64| usize::try_from(if at < 0 { at + rank } else { at }.clamp(0, rank));
        let start = end(self.int("start").unwrap_or(0)).unwrap_or(0);
        let end = end(self.int("end").unwrap_or(rank)).unwrap_or(0);
        let part = dims.get(start..end).unwrap_or_default();
        let values: Option<Vec<SizeExpr>> = part.iter().map(|dim| self.expr(dim)).collect();
        let dims = Dims::from(&[part.len()][..]);
        Ok(vec![self.fact_with(element, dims, values)])
    }

    fn size(&mut self) -> Results {
        let dims = self.ranked(0);
        let exprs: Option<Vec<SizeExpr>> =
            dims.and_then(|dims| dims.iter().map(|dim| self.expr(dim)).collect());
        let product =
            exprs.and_then(|exprs| SizeExpr::product(&exprs)).map(|product| vec![product]);
        Ok(vec![self.fact_with(Some(ElementType::I64), Vec::new().into(), product)])
    }

    fn reshape(&mut self) -> Results {
        let element = self.element(0);
        let target: Option<Vec<SizeExpr>> = match self.ints("shape") {
            Some(shape) if self.opset < 5 => {
                Some(shape.iter().copied().map(SizeExpr::from).collect())
            }
            _ => self.values(1).map(<[_]>::to_vec),
        };
        let Some(target) = target else {
            // The rank at least is the length of the shape.
            let rank = self.ranked(1).and_then(|dims| dims.first()?.size());
            let dims = rank.filter(|rank| *rank <= 64).map(|rank| vec![Dim::UNKNOWN; rank]);
            return Ok(vec![Fact::new(element, dims.map_or(Dims::Unranked, Dims::from))]);
        };
        let data = self.ranked(0);
        let allow_zero = self.int("allowzero").unwrap_or(0) != 0;
        let (mut open, mut exprs) = (None, Vec::new());
        for (axis, value) in target.iter().enumerate() {
            let size = match value.constant() {
                Some(0) if !allow_zero => {
                    let kept = data.map(|data| data.get(axis));
                    match kept {
                        Some(None) => return Err(format!("there is no axis {axis} to keep")),
                        Some(Some(dim)) => self.expr(dim),
                        None => None,
                    }
                }
                Some(-1) if open.is_some() => return Err("two sizes are -1".into()),
                Some(-1) => {
                    open = Some(axis);
                    Some(SizeExpr::from(1))
                }
                Some(..=-1) => return Err(format!("a size is {value}")),
                _ => Some(value.clone()),
            };
            exprs.push(size);
        }
        let total = data.and_then(|data| {
            let all: Vec<SizeExpr> =
                data.iter().map(|dim| self.expr(dim)).collect::<Option<_>>()?;
            SizeExpr::product(&all)
        });
        let known: Option<Vec<SizeExpr>> = exprs.iter().cloned().collect();
        let known = known.and_then(|known| SizeExpr::product(&known));
        let given = self.dims(0);
        let refused = || {
            let target: Vec<String> = target.iter().map(ToString::to_string).collect();
            format!("{given} cannot become ({})", target.join(", "))
        };
        match (open, &total, &known) {
            (Some(axis), Some(total), Some(known)) => {
                let rest = total.div_exact(known);
                if rest.is_none() && total.constant().is_some() && known.constant().is_some() {
                    return Err(refused());
                }
                exprs[axis] = rest;
            }
            (Some(axis), _, _) => exprs[axis] = None,
            (None, Some(total), Some(known)) => {
                let (total, known) = (total.constant(), known.constant());
                if total.is_some() && known.is_some() && total != known {
                    return Err(refused());
                }
            }
            (None, _, _) => {}
        }
        let dims: Vec<Dim> =
            exprs.iter().map(|expr| self.dim(expr.as_ref())).collect::<Result<_, _>>()?;
        let values = self.values(0).map(<[_]>::to_vec);
        let fact = self.fact_with(element, dims.into(), values);
        Ok(vec![fact.with_floats(self.input(0).floats.clone())])
    }

    fn flatten(&mut self) -> Results {
        let element = self.element(0);
        let Some(dims) = self.ranked(0) else {
            return Ok(vec![Fact::new(element, vec![Dim::UNKNOWN; 2].into())]);
        };
        let axis = self.int("axis").unwrap_or(1);
        let axis = match axis == i64::try_from(dims.len()).unwrap_or(-1) {
            true => dims.len(),
            false => self.axis(axis, dims.len())?,
        };
        let (front, back) = dims.split_at(axis);
        let mut both = Vec::new();
        for part in [front, back] {
            let part: Vec<&Dim> = part.iter().collect();
            both.push(self.with(&part, |sizes| SizeExpr::product(sizes))?);
        }
        Ok(vec![Fact::new(element, both.into())])
    }

    fn transpose(&mut self) -> Results {
        let element = self.element(0);
        let order = self.ints("perm");
        let Some(dims) = self.ranked(0) else {
            let dims = order.map(|order| vec![Dim::UNKNOWN; order.len()].into());
            return Ok(vec![Fact::new(element, dims.unwrap_or(Dims::Unranked))]);
        };
        let order: Vec<usize> = match order {
            None => (0..dims.len()).rev().collect(),
            Some(order) => {
                order.iter().map(|axis| self.axis(*axis, dims.len())).collect::<Result<_, _>>()?
            }
        };
        let mut seen = vec![false; dims.len()];
        order.iter().for_each(|axis| seen[*axis] = true);
        if order.len() != dims.len() || seen.contains(&false) {
            let dims = self.dims(0);
            return Err(format!("{order:?} is no order of the axes of {dims}"));
        }
        let values = self.elements(0).map(|(values, sizes)| {
            let strides = strides(&sizes);
            let count = |axis: &usize| (0..sizes[*axis]).map(|at| at * strides[*axis]).collect();
            let steps: Vec<Vec<usize>> = order.iter().map(count).collect();
            gathered(values, &steps)
        });
        let dims: Vec<Dim> = order.iter().map(|axis| dims[*axis].clone()).collect();
        Ok(vec![self.fact_with(element, dims.into(), values)])
    }

    fn squeeze(&mut self) -> Results {
        let element = self.element(0);
        let unknown = Ok(vec![Fact::new(element, Dims::Unranked)]);
        let (Some(dims), Ok(axes)) = (self.ranked(0), self.ints_of("axes", 1)) else {
            return unknown;
        };
        let gone: Vec<usize> = match axes {
            Some(axes) => axes
                .into_iter()
                .map(|axis| self.axis(axis, dims.len()))
                .collect::<Result<_, _>>()?,
            // A symbol may be 1, and then its axis would go too.
            None if dims.iter().any(|dim| dim.size().is_none()) => return unknown,
            None => (0..dims.len()).filter(|axis| dims[*axis] == Dim::Size(1)).collect(),
        };
        for axis in &gone {
            self.equal(&dims[*axis], &Dim::Size(1), "an axis that is squeezed away")?;
        }
        let left = dims.iter().enumerate().filter(|(axis, _)| !gone.contains(axis));
        let dims: Vec<Dim> = left.map(|(_, dim)| dim.clone()).collect();
        let values = self.values(0).map(<[_]>::to_vec);
        let fact = self.fact_with(element, dims.into(), values);
        Ok(vec![fact.with_floats(self.input(0).floats.clone())])
    }

    fn unsqueeze(&mut self) -> Results {
        let element = self.element(0);
        let (Some(dims), Ok(Some(axes))) = (self.ranked(0), self.ints_of("axes", 1)) else {
            return Ok(vec![Fact::new(element, Dims::Unranked)]);
        };
        let rank = dims.len().saturating_add(axes.len());
        let mut added: Vec<usize> =
            axes.into_iter().map(|axis| self.axis(axis, rank)).collect::<Result<_, _>>()?;
        added.sort_unstable();
        if added.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err("an axis is added twice".into());
        }
        let mut own = dims.iter().cloned();
        let dim = |axis| match added.binary_search(&axis) {
            Ok(_) => Dim::Size(1),
            Err(_) => own.next().unwrap_or(Dim::UNKNOWN),
        };
        let dims: Vec<Dim> = (0..rank).map(dim).collect();
        let values = self.values(0).map(<[_]>::to_vec);
        let fact = self.fact_with(element, dims.into(), values);
        Ok(vec![fact.with_floats(self.input(0).floats.clone())])
    }

    /// Two-way with a shape: a size of 1 in the shape keeps the data's.
    fn expand(&mut self) -> Results {
        let element = self.element(0);
        let target = match self.values(1) {
            Some(values) => {
                let each = values.iter().map(|value| self.dim(Some(value)));
                Some(each.collect::<Result<Vec<Dim>, _>>()?)
            }
            None => None,
        };
        let Some(target) = target else {
            // An axis longer than 1 stays, and the rank is the larger one.
            let rank = self.ranked(1).and_then(|dims| dims.first()?.size());
            let (Some(own), Some(rank)) = (self.ranked(0), rank.filter(|rank| *rank <= 64)) else {
                return Ok(vec![Fact::new(element, Dims::Unranked)]);
            };
            let mut dims = vec![Dim::UNKNOWN; rank.saturating_sub(own.len())];
            dims.extend(own.iter().map(|dim| match dim {
                Dim::Size(size) if *size != 1 => dim.clone(),
                _ => Dim::UNKNOWN,
            }));
            return Ok(vec![Fact::new(element, dims.into())]);
        };
        let target = Dims::from(target);
        let dims = match target.sizes() {
            Some(sizes) => {
                self.broadcast_as(Rule::Bidirectional { target: &sizes }, &[(0, None)], element)
            }
            None => {
                let operands = [(0, None), (1, Some(("", target)))];
                self.broadcast_as(Rule::Numpy, &operands, element)
            }
        };
        let values = match (self.values(0), dims.sizes().as_deref()) {
            (Some([only]), Some([count])) if *count <= FOLDED => Some(vec![only.clone(); *count]),
            _ => None,
        };
        Ok(vec![self.fact_with(element, dims, values)])
    }
}
