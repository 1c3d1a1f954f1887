//! Windows that slide: convolutions and poolings.

use simulcast_core::{Dim, Dims};

use super::rows;
use crate::infer::{Fact, InferNode, Results};

use crate::ElementType;
use crate::expr::Expr;

rows! { "", ROWS:
    "AveragePool" 1 "T -> T" infer pool;
    "Conv" 1 "T T T? -> T" infer conv;
    "ConvInteger" 10 "T1 T2 T1? T2? -> int32" infer conv_integer;
    "GlobalAveragePool" 1 "T -> T" infer pool_all;
    "GlobalLpPool" 1 "T -> T" infer pool_all;
    "GlobalMaxPool" 1 "T -> T" infer pool_all;
    "LpPool" 1 "T -> T" infer pool;
    "MaxPool" 1 "T -> T int64" infer pool;
    "QLinearConv" 10 "T1 float32 T1 T2 float32 T2 float32 T3 int32? -> T3" infer conv_quantized;
}

impl InferNode<'_, '_, '_> {
    fn conv(&mut self) -> Results {
        self.convolution(0, 1, self.element(0))
    }

    fn conv_integer(&mut self) -> Results {
        self.convolution(0, 1, Some(ElementType::I32))
    }

    fn conv_quantized(&mut self) -> Results {
        self.convolution(0, 3, self.element(7))
    }

    /// Every axis behind the channels becomes one place.
    pub(super) fn pool_all(&mut self) -> Results {
        let element = self.element(0);
        let Some(dims) = self.ranked(0) else {
            return Ok(vec![Fact::new(element, Dims::Unranked)]);
        };
        let mut dims = dims.to_vec();
        dims.iter_mut().skip(2).for_each(|dim| *dim = Dim::Size(1));
        Ok(vec![Fact::new(element, dims.into())])
    }

    fn convolution(&mut self, x: usize, w: usize, element: Option<ElementType>) -> Results {
        let (Some(data), Some(weight)) = (self.ranked(x), self.ranked(w)) else {
            return Ok(vec![Fact::new(element, Dims::Unranked)]);
        };
        if data.len() != weight.len() || data.len() < 3 {
            let (data, weight) = (self.dims(x), self.dims(w));
            return Err(format!("{data} has no windows of {weight}"));
        }
        let group = Expr::from(self.int("group").unwrap_or(1));
        let channels = self.with(&[&weight[1]], |own| own[0].mul(&group))?;
        self.equal(&data[1], &channels, "the channels")?;
        let kernel: Vec<Dim> = match self.ints("kernel_shape") {
            Some(sizes) => sizes.iter().map(|size| known(*size)).collect(),
            None => weight[2..].to_vec(),
        };
        let mut dims = vec![data[0].clone(), weight[0].clone()];
        dims.extend(self.slid(&data[2..], &kernel, false)?);
        Ok(vec![Fact::new(element, dims.into())])
    }

    fn pool(&mut self) -> Results {
        let element = self.element(0);
        let Some(data) = self.ranked(0) else {
            return Ok(vec![Fact::new(element, Dims::Unranked)]);
        };
        let kernel: Vec<Dim> =
            self.ints("kernel_shape").unwrap_or_default().iter().map(|size| known(*size)).collect();
        if data.len() != kernel.len() + 2 {
            let data = self.dims(0);
            return Err(format!("{data} has no windows of {} axes", kernel.len()));
        }
        let mut dims = data[..2].to_vec();
        dims.extend(self.slid(&data[2..], &kernel, self.int("ceil_mode").unwrap_or(0) != 0)?);
        let indices = Fact::new(Some(ElementType::I64), dims.clone().into());
        Ok(vec![Fact::new(element, dims.into()), indices])
    }

    /// How many places windows of those sizes have along each axis.
    fn slid(&mut self, data: &[Dim], kernel: &[Dim], ceil: bool) -> Result<Vec<Dim>, String> {
        let rank = data.len();
        let list = |name: &str, default: i64, count: usize| {
            let own = self.ints(name).filter(|own| !own.is_empty());
            let own = own.map_or_else(|| vec![default; count], <[_]>::to_vec);
            match own.len() == count {
                true => Ok(own),
                false => Err(format!("{name} has {} numbers for {rank} axes", own.len())),
            }
        };
        let strides = list("strides", 1, rank)?;
        let dilations = list("dilations", 1, rank)?;
        let pads = list("pads", 0, rank.saturating_mul(2))?;
        if kernel.len() != rank || strides.iter().chain(&dilations).any(|step| *step < 1) {
            return Err("windows, strides and dilations must be above 0 for each axis".into());
        }
        let auto = self.text("auto_pad").unwrap_or("NOTSET").to_owned();
        let mut out = Vec::new();
        for axis in 0..rank {
            let stride = Expr::from(strides[axis]);
            let dilation = Expr::from(dilations[axis]);
            let sizes = [&data[axis], &kernel[axis]];
            let one = Expr::from(1);
            let dim = match auto.as_str() {
                "SAME_UPPER" | "SAME_LOWER" => {
                    self.with(&sizes[..1], |own| rounded_up(&own[0], &stride))?
                }
                _ => {
                    let padded = match auto.as_str() {
                        "VALID" => Expr::from(0),
                        _ => Expr::from(pads[axis].saturating_add(pads[axis + rank])),
                    };
                    self.with(&sizes, |own| {
                        // The window spans dilation * (kernel - 1) + 1.
                        let span = own[1].sub(&one)?.mul(&dilation)?.add(&one)?;
                        let room = own[0].add(&padded)?.sub(&span)?;
                        let room = match ceil {
                            true => room.add(&stride)?.sub(&one)?,
                            false => room,
                        };
                        let places = room.div_floor(&stride)?.add(&one)?;
                        // A last window that starts in the padding is not counted.
                        match (ceil, places.constant(), own[0].constant()) {
                            (true, Some(count), Some(size)) => {
                                let last = (count - 1).checked_mul(strides[axis])?;
                                let over = last >= size.checked_add(pads[axis])?;
                                Some(Expr::from(if over { count - 1 } else { count }))
                            }
                            (true, _, _) => None,
                            _ => Some(places),
                        }
                    })?
                }
            };
            out.push(dim);
        }
        Ok(out)
    }
}

fn rounded_up(size: &Expr, stride: &Expr) -> Option<Expr> {
    size.add(stride)?.sub(&Expr::from(1))?.div_floor(stride)
}

fn known(size: i64) -> Dim {
    usize::try_from(size).map_or(Dim::UNKNOWN, Dim::Size)
}
