//! Quantization: numbers as integers, with a scale and a zero point for a tensor or for each index of an axis.

#[cfg(feature = "run")]
pub(super) mod run;

use simulcast_core::{Dim, Dims, Rule};

use super::Broadcasts::Numpy;
use super::reduce::reduced;
use super::rows;
use crate::ElementType;
use crate::infer::{Fact, InferNode, Results};

rows! { "", ROWS:
    "DequantizeLinear" 10 "N1 F2 N1? -> _" infer dequantize run whole_unless(run::dequantize, run::refusal);
    "DynamicQuantizeLinear" 11 "float32 -> uint8 float32 uint8" infer dynamic_quantize run whole(run::dynamic_quantize);
    "QuantizeLinear" 10 "_ _ N? -> N" infer quantize run whole_unless(run::quantize, run::refusal);
}

rows! { "com.microsoft", CONTRIB:
    "DequantizeLinear" 1 "T1 T2 T1? -> T2" infer dequantize;
    "DynamicQuantizeMatMul" 1 "T T2 T T2? T? -> T" infer dynamic_quantize_matmul;
    "MatMulIntegerToFloat" 1 "T1 T2 T3 T3 T1? T2? T3? -> T3" infer integers_to_float;
    "QGemm" 1 "TA float32 TA TB float32 TB int32? float32? TY? -> _" infer quantized_gemm;
    "QLinearAdd" 1 "T float32 T? T float32 T? float32 T? -> T" infer quantized_pair run whole(run::pair) [by(Numpy)];
    "QLinearAveragePool" 1 "T float32 T? float32 T? -> T" infer quantized_pool;
    "QLinearConcat" 1 "float32 T _* -> T" infer quantized_concat;
    "QLinearGlobalAveragePool" 1 "T float32 T float32 T -> T" infer quantized_pool_all;
    "QLinearLeakyRelu" 1 "T float32 T? float32 T? -> T" infer same;
    "QLinearMul" 1 "T float32 T? T float32 T? float32 T? -> T" infer quantized_pair run whole(run::pair) [by(Numpy)];
    "QLinearReduceMean" 1 "T float32 T? float32 T? -> T" infer quantized_mean;
    "QLinearSigmoid" 1 "T float32 T? float32 T? -> T" infer same;
    "QLinearSoftmax" 1 "T float32 T? float32 T -> T" infer same;
    "QLinearWhere" 1 "bool T float32 T T float32 T float32 T -> T" infer quantized_where [by(Numpy)];
    "QuantizeLinear" 1 "_ _ T? -> T" infer quantize;
}

impl InferNode<'_, '_, '_> {
    /// Whether scale and zero point are one, or one for each index of the axis.
    fn scales(&mut self) -> Result<(), String> {
        let blocks = self.int("block_size").unwrap_or(0) != 0;
        let (Some(scale), Some(data)) = (self.ranked(1), self.ranked(0)) else { return Ok(()) };
        if let Some(zero) = self.ranked(2)
            && zero.len() == scale.len()
        {
            for (own, other) in scale.iter().zip(zero) {
                self.equal(own, other, "the scales and the zero points")?;
            }
        }
        match scale {
            _ if blocks => Ok(()),
            [] | [Dim::Size(1)] => Ok(()),
            [own] => {
                let axis = self.axis(self.int("axis").unwrap_or(1), data.len())?;
                self.equal(
                    &data[axis],
                    own,
                    format_args!("the scales, one for each index of axis {axis}"),
                )?;
                Ok(())
            }
            _ => Err(format!("its scale is {}, not a number or a vector", self.dims(1))),
        }
    }

    fn quantize(&mut self) -> Results {
        self.scales()?;
        let named = self.element_of("output_dtype").or(Some(ElementType::U8));
        let element = if self.has(2) { self.element(2) } else { named };
        Ok(vec![Fact::new(element, self.dims(0).clone())])
    }

    fn dequantize(&mut self) -> Results {
        self.scales()?;
        let named = self.element_of("output_dtype").or(self.element(1));
        Ok(vec![Fact::new(named, self.dims(0).clone())])
    }

    fn dynamic_quantize(&mut self) -> Results {
        let scalar = |element| Fact::new(Some(element), Vec::new().into());
        let codes = Fact::new(Some(ElementType::U8), self.dims(0).clone());
        Ok(vec![codes, scalar(ElementType::F32), scalar(ElementType::U8)])
    }

    /// Two operands that broadcast, each followed by its scale and zero point.
    fn quantized_pair(&mut self) -> Results {
        let element = self.element(0);
        let dims = self.broadcast_as(Rule::Numpy, &[(0, None), (3, None)], element);
        Ok(vec![Fact::new(element, dims)])
    }

    fn quantized_where(&mut self) -> Results {
        let element = self.element(1);
        let dims = self.broadcast_as(Rule::Numpy, &[(0, None), (1, None), (4, None)], element);
        Ok(vec![Fact::new(element, dims)])
    }

    fn quantized_concat(&mut self) -> Results {
        let parts: Vec<usize> = (2..self.inputs.len()).step_by(3).collect();
        self.joined(&parts, self.element(1))
    }

    fn quantized_pool(&mut self) -> Results {
        if self.int("channels_last").unwrap_or(0) != 0 {
            let rank = self.ranked(0).map(<[Dim]>::len);
            let dims = rank.map_or(Dims::Unranked, |rank| vec![Dim::UNKNOWN; rank].into());
            return Ok(vec![Fact::new(self.element(0), dims)]);
        }
        self.pool()
    }

    fn quantized_pool_all(&mut self) -> Results {
        if self.int("channels_last").unwrap_or(0) == 0 {
            return self.pool_all();
        }
        let Some(dims) = self.ranked(0) else {
            return Ok(vec![Fact::new(self.element(0), Dims::Unranked)]);
        };
        let mut dims = dims.to_vec();
        let last = dims.len().saturating_sub(1);
        dims.iter_mut().take(last).skip(1).for_each(|dim| *dim = Dim::Size(1));
        Ok(vec![Fact::new(self.element(0), dims.into())])
    }

    fn quantized_mean(&mut self) -> Results {
        let element = self.element(0);
        let keep = self.int("keepdims").unwrap_or(1) != 0;
        let Some(dims) = self.ranked(0) else {
            return Ok(vec![Fact::new(element, Dims::Unranked)]);
        };
        let axes: Vec<usize> = match self.ints("axes") {
            Some(axes) => {
                axes.iter().map(|axis| self.axis(*axis, dims.len())).collect::<Result<_, _>>()?
            }
            None => (0..dims.len()).collect(),
        };
        Ok(vec![Fact::new(element, reduced(dims, &axes, keep).into())])
    }

    fn dynamic_quantize_matmul(&mut self) -> Results {
        self.matmul(0, 1, self.element(0))
    }

    fn integers_to_float(&mut self) -> Results {
        self.matmul(0, 1, self.element(2))
    }

    fn quantized_gemm(&mut self) -> Results {
        let element = if self.has(8) { self.element(8) } else { Some(ElementType::F32) };
        let product = self.gemm_sides(0, 3)?;
        Ok(vec![Fact::new(element, product.map_or(Dims::from(vec![Dim::UNKNOWN; 2]), Dims::from))])
    }
}
