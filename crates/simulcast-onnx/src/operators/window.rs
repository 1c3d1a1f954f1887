//! Windows that slide: convolutions and poolings.

use simulcast_core::{Dim, Dims};

use super::rows;
use crate::infer::{Fact, InferNode, Results};

use crate::ElementType;
use crate::expr::SizeExpr;

rows! { "", ROWS:
    "AveragePool" 1 "F -> F" infer pool;
    "Conv" 1 "F F F? -> F" infer conv;
    "ConvTranspose" 1 "F F F? -> F" infer conv_transpose;
    "DeformConv" 19 "F F F F? F? -> F" infer conv;
    "ConvInteger" 10 "I1 I2 I1? I2? -> int32" infer conv_integer;
    "GlobalAveragePool" 1 "F -> F" infer pool_all;
    "GlobalLpPool" 1 "F -> F" infer pool_all;
    "GlobalMaxPool" 1 "F -> F" infer pool_all;
    "LpPool" 1 "F -> F" infer pool;
    "MaxPool" 1 "N -> N int64" infer pool;
    "MaxUnpool" 9 "F int64 int64? -> F" infer unpool;
    "QLinearConv" 10 "I1 float32 I1 I2 float32 I2 float32 I3 int32? -> I3" infer conv_quantized;
}

impl InferNode<'_, '_, '_> {
    pub(super) fn conv(&mut self) -> Results {
        if !self.op_is("DeformConv") {
            self.bias_of_channels(2, 1, 0)?;
        }
        self.convolution(0, 1, self.element(0))
    }

    /// A bias has one number for each channel of the result, which is an axis of the weights, or one of
    /// each group.
    fn bias_of_channels(&mut self, bias: usize, weight: usize, axis: usize) -> Result<(), String> {
        let (Some(bias), Some(weight)) = (self.ranked(bias), self.ranked(weight)) else {
            return Ok(());
        };
        let ([own], Some(channels)) = (bias, weight.get(axis)) else {
            return Err(format!("its bias is {}, not a vector", Dims::from(bias.to_vec())));
        };
        let (own, channels) = (own.clone(), channels.clone());
        let group = if axis == 0 { 1 } else { self.int("group").unwrap_or(1) };
        let all = self.with(&[&channels], |own| own[0].mul(&SizeExpr::from(group)))?;
        self.equal(&own, &all, "the bias, one number for each channel of the result")?;
        Ok(())
    }

    /// What a convolution would have to be given to give this.
    fn conv_transpose(&mut self) -> Results {
        let element = self.element(0);
        let (Some(data), Some(weight)) = (self.ranked(0), self.ranked(1)) else {
            return Ok(vec![Fact::new(element, Dims::Unranked)]);
        };
        if data.len() != weight.len() || data.len() < 3 {
            let (data, weight) = (self.dims(0), self.dims(1));
            return Err(format!("{data} has no windows of {weight}"));
        }
        self.equal(&data[1], &weight[0], "the channels")?;
        self.bias_of_channels(2, 1, 1)?;
        let group = SizeExpr::from(self.int("group").unwrap_or(1));
        let channels = self.with(&[&weight[1]], |own| own[0].mul(&group))?;
        let rank = data.len() - 2;
        let kernel: Vec<Dim> = match self.ints("kernel_shape") {
            Some(sizes) => sizes.iter().map(|size| known(*size)).collect(),
            None => weight[2..].to_vec(),
        };
        let strides = self.steps("strides", 1, rank)?;
        let dilations = self.steps("dilations", 1, rank)?;
        let pads = self.steps("pads", 0, rank.saturating_mul(2))?;
        let more = self.steps("output_padding", 0, rank)?;
        if kernel.len() != rank {
            return Err("windows must have a size for each axis".into());
        }
        let auto = self.text("auto_pad").unwrap_or("NOTSET").to_owned();
        let mut dims = vec![data[0].clone(), channels];
        let given = self.ints("output_shape").unwrap_or_default();
        for axis in 0..rank {
            // Some exporters write all axes there.
            let own = given.len().checked_sub(rank).and_then(|front| given.get(front + axis));
            if let Some(size) = own {
                dims.push(known(*size));
                continue;
            }
            let (stride, one) = (SizeExpr::from(strides[axis]), SizeExpr::from(1));
            let pad = pads[axis].saturating_add(pads[axis + rank]);
            let extra =
                SizeExpr::from(more[axis].saturating_sub(if auto == "NOTSET" { pad } else { 0 }));
            let dilation = SizeExpr::from(dilations[axis]);
            let sizes = [&data[axis + 2], &kernel[axis]];
            dims.push(match auto.as_str() {
                "SAME_UPPER" | "SAME_LOWER" => self.with(&sizes[..1], |own| own[0].mul(&stride))?,
                _ => self.with(&sizes, |own| {
                    let span = own[1].sub(&one)?.mul(&dilation)?.add(&one)?;
                    own[0].sub(&one)?.mul(&stride)?.add(&span)?.add(&extra)
                })?,
            });
        }
        Ok(vec![Fact::new(element, dims.into())])
    }

    /// Places of a pooling, back where they were.
    fn unpool(&mut self) -> Results {
        let element = self.element(0);
        if let Some(sizes) = self.values(2).map(<[SizeExpr]>::to_vec) {
            let dims = sizes.iter().map(|size| self.dim(Some(size)));
            return Ok(vec![Fact::new(element, dims.collect::<Result<Vec<_>, _>>()?.into())]);
        }
        let Some(data) = self.ranked(0) else {
            return Ok(vec![Fact::new(element, Dims::Unranked)]);
        };
        let rank = data.len().saturating_sub(2);
        let kernel = self.ints("kernel_shape").unwrap_or_default();
        if self.has(2) || kernel.len() != rank {
            return Ok(vec![Fact::new(element, vec![Dim::UNKNOWN; data.len()].into())]);
        }
        let strides = self.steps("strides", 1, rank)?;
        let pads = self.steps("pads", 0, rank.saturating_mul(2))?;
        let mut dims = data.get(..2).unwrap_or_default().to_vec();
        for axis in 0..rank {
            let pad = pads[axis].saturating_add(pads[axis + rank]);
            let more = SizeExpr::from(kernel[axis].saturating_sub(pad));
            let stride = SizeExpr::from(strides[axis]);
            let size = [&data[axis + 2]];
            dims.push(
                self.with(&size, |own| own[0].sub(&SizeExpr::from(1))?.mul(&stride)?.add(&more))?,
            );
        }
        Ok(vec![Fact::new(element, dims.into())])
    }

    /// The numbers of an attribute, one for each axis, or the default for all.
    fn steps(&self, name: &str, default: i64, count: usize) -> Result<Vec<i64>, String> {
        let own = self.ints(name).filter(|own| !own.is_empty());
        let own = own.map_or_else(|| vec![default; count], <[_]>::to_vec);
        match own.len() == count {
            true => Ok(own),
            false => Err(format!("{name} has {} numbers, not {count}", own.len())),
        }
    }

    fn conv_integer(&mut self) -> Results {
        self.convolution(0, 1, Some(ElementType::I32))
    }

    fn conv_quantized(&mut self) -> Results {
        self.bias_of_channels(8, 3, 0)?;
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
        self.windows_of(x, w, element, true)
    }

    /// A convolution, with its channels compared where that is asked for.
    pub(super) fn windows_of(
        &mut self,
        x: usize,
        w: usize,
        element: Option<ElementType>,
        compared: bool,
    ) -> Results {
        let (Some(data), Some(weight)) = (self.ranked(x), self.ranked(w)) else {
            return Ok(vec![Fact::new(element, Dims::Unranked)]);
        };
        if data.len() != weight.len() || data.len() < 3 {
            let (data, weight) = (self.dims(x), self.dims(w));
            return Err(format!("{data} has no windows of {weight}"));
        }
        let group = SizeExpr::from(self.int("group").unwrap_or(1));
        if compared {
            let channels = self.with(&[&weight[1]], |own| own[0].mul(&group))?;
            self.equal(&data[1], &channels, "the channels")?;
        }
        let kernel: Vec<Dim> = match self.ints("kernel_shape") {
            Some(sizes) => sizes.iter().map(|size| known(*size)).collect(),
            None => weight[2..].to_vec(),
        };
        let mut dims = vec![data[0].clone(), weight[0].clone()];
        dims.extend(self.slid(&data[2..], &kernel, false)?);
        Ok(vec![Fact::new(element, dims.into())])
    }

    pub(super) fn pool(&mut self) -> Results {
        let element = self.element(0);
        let Some(data) = self.ranked(0) else {
            return Ok(vec![Fact::new(element, Dims::Unranked)]);
        };
        let kernel = self.ints("kernel_shape").unwrap_or_default();
        if kernel.iter().any(|size| *size < 1) {
            return Err("windows must be above 0 for each axis".into());
        }
        let kernel: Vec<Dim> = kernel.iter().map(|size| known(*size)).collect();
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
        let strides = self.steps("strides", 1, rank)?;
        let dilations = self.steps("dilations", 1, rank)?;
        let pads = self.steps("pads", 0, rank.saturating_mul(2))?;
        if kernel.len() != rank || strides.iter().chain(&dilations).any(|step| *step < 1) {
            return Err("windows, strides and dilations must be above 0 for each axis".into());
        }
        let auto = self.text("auto_pad").unwrap_or("NOTSET").to_owned();
        let mut out = Vec::new();
        for axis in 0..rank {
            let stride = SizeExpr::from(strides[axis]);
            let dilation = SizeExpr::from(dilations[axis]);
            let sizes = [&data[axis], &kernel[axis]];
            let one = SizeExpr::from(1);
            let dim = match auto.as_str() {
                "SAME_UPPER" | "SAME_LOWER" => {
                    self.with(&sizes[..1], |own| rounded_up(&own[0], &stride))?
                }
                _ => {
                    let padded = match auto.as_str() {
                        "VALID" => SizeExpr::from(0),
                        _ => SizeExpr::from(pads[axis].saturating_add(pads[axis + rank])),
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
                                Some(SizeExpr::from(if over { count - 1 } else { count }))
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

fn rounded_up(size: &SizeExpr, stride: &SizeExpr) -> Option<SizeExpr> {
    size.add(stride)?.sub(&SizeExpr::from(1))?.div_floor(stride)
}

fn known(size: i64) -> Dim {
    usize::try_from(size).map_or(Dim::UNKNOWN, Dim::Size)
}
