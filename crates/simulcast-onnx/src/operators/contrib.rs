//! Operators of ONNX Runtime: what its optimizer fuses models into.

use simulcast_core::{Dim, Dims, Rule};

use super::Broadcasts::Unidirectional;
use super::rows;
use crate::ElementType;
use crate::infer::{Fact, InferNode, Results};

rows! { "com.microsoft", ROWS:
    "Attention" 1 "T T T? _? T? T? _? -> T T" infer fused_attention;
    "BiasAdd" 1 "T T T -> T" infer same;
    "BiasGelu" 1 "T T -> T" infer bias_first [by(Unidirectional)];
    "BiasSplitGelu" 1 "T T -> T";
    "EmbedLayerNormalization" 1 "int32 int32? T T T? T T int32? int32? -> T int32 T" infer embed_layer;
    "FastGelu" 1 "T T? -> T" infer bias_first [by(Unidirectional)];
    "FusedConv" 1 "T T T? T? -> T" infer conv;
    "FusedGemm" 1 "T T T? -> T" infer gemm;
    "FusedMatMul" 1 "T T -> T" infer fused_matmul;
    "FusedMatMulActivation" 1 "T T -> T" infer fused_matmul;
    "Gelu" 1 "T -> T" infer same;
    "GroupNorm" 1 "T float32 float32 -> T" infer same;
    "Inverse" 1 "T -> T" infer same;
    "MatMulNBits" 1 "T1 T2 T1 _? _? _? -> T1" infer matmul_bits;
    "MultiHeadAttention" 1 "T T? T? T? _? T? T? T? -> T T T" infer multi_head;
    "QuickGelu" 1 "T -> T" infer same;
    "RotaryEmbedding" 1 "T int64 T T -> T" infer same;
    "SkipLayerNormalization" 1 "T T T T? T? -> T U U T" infer skip_layer;
    "SkipSimplifiedLayerNormalization" 1 "T T T T? -> T U U T" infer skip_layer;
    "TransposeMatMul" 1 "T T -> T" infer fused_matmul;
    "Trilu" 1 "T int64? -> T" infer same;
}

rows! { "", STANDARD:
    "SimplifiedLayerNormalization" 1 "T V -> V U" infer layer;
}

rows! { "com.microsoft.nchwc", BLOCKED:
    "AveragePool" 1 "T -> T" infer pool;
    "Conv" 1 "T T T? T? -> T" infer blocked_conv;
    "GlobalAveragePool" 1 "T -> T" infer pool_all;
    "GlobalMaxPool" 1 "T -> T" infer pool_all;
    "MaxPool" 1 "T -> T" infer pool;
    "ReorderInput" 1 "T -> T" infer reorder_input;
    "ReorderOutput" 1 "T -> T" infer reorder_output;
    "Upsample" 1 "T -> T" infer blocked_upsample;
}

impl InferNode<'_, '_, '_> {
    /// The bias is laid onto the data.
    fn bias_first(&mut self) -> Results {
        let element = self.element(0);
        let dims = match self.has(1) {
            true => self.broadcast_of(Rule::Unidirectional, &[0, 1]),
            false => self.dims(0).clone(),
        };
        Ok(vec![Fact::new(element, dims)])
    }

    /// A product whose sides may be transposed first.
    fn fused_matmul(&mut self) -> Results {
        let element = self.element(0);
        let mut sides = Vec::new();
        for (input, name) in [(0, "transA"), (1, "transB")] {
            let Some(dims) = self.ranked(input) else {
                return Ok(vec![Fact::new(element, Dims::Unranked)]);
            };
            let mut dims = dims.to_vec();
            let rank = dims.len();
            // Of the batch's axes the first comes last, before the matrix is transposed.
            if self.int(&name.replace("trans", "transBatch")).unwrap_or(0) != 0 && rank > 2 {
                dims[..rank - 1].rotate_left(1);
            }
            if self.int(name).unwrap_or(0) != 0 && rank > 1 {
                dims.swap(rank - 2, rank - 1);
            }
            sides.push(Dims::from(dims));
        }
        let [a, b] = &sides[..] else { return Ok(Vec::new()) };
        self.matmul_of((0, a), (1, b), element)
    }

    /// A product with weights of few bits: `K` rows and `N` columns.
    fn matmul_bits(&mut self) -> Results {
        let element = self.element(0);
        let size = |name: &str| self.int(name).and_then(|size| usize::try_from(size).ok());
        let (Some(k), Some(n), Some(dims)) = (size("K"), size("N"), self.ranked(0)) else {
            return Ok(vec![Fact::new(element, Dims::Unranked)]);
        };
        let mut dims = dims.to_vec();
        let Some(last) = dims.last_mut() else { return Err("it multiplies no scalars".into()) };
        let inner = std::mem::replace(last, Dim::Size(n));
        self.equal(&inner, &Dim::Size(k), "the inner sizes")?;
        Ok(vec![Fact::new(element, dims.into())])
    }

    /// The sum of input, skip and bias, normalized over the last axis.
    fn skip_layer(&mut self) -> Results {
        let element = self.element(0);
        let bias = if self.op_is("SkipLayerNormalization") { 4 } else { 3 };
        let mut operands = vec![0, 1];
        operands.extend(Some(bias).filter(|input| self.has(*input)));
        let sum = self.broadcast_of(Rule::Unidirectional, &operands);
        let last = sum.dims().and_then(<[Dim]>::last).cloned();
        for input in 2..bias {
            if let (Some(last), Some([own])) = (&last, self.ranked(input)) {
                self.equal(last, own, "the last axis and its scale")?;
            }
        }
        let statistics = sum.dims().map(|dims| {
            let mut dims = dims.to_vec();
            dims.iter_mut().last().into_iter().for_each(|last| *last = Dim::Size(1));
            Dims::from(dims)
        });
        let statistics = Fact::new(Some(ElementType::F32), statistics.unwrap_or(Dims::Unranked));
        let all = Fact::new(element, sum);
        Ok(vec![all.clone(), statistics.clone(), statistics, all])
    }

    fn embed_layer(&mut self) -> Results {
        let element = self.element(2);
        let rows = self.ranked(0).map(<[Dim]>::to_vec);
        let hidden = self.ranked(2).and_then(|dims| dims.last().cloned());
        let hidden = hidden.unwrap_or(Dim::UNKNOWN);
        let Some([batch, length]) = rows.as_deref() else {
            return Ok(vec![Fact::new(element, vec![Dim::UNKNOWN, Dim::UNKNOWN, hidden].into())]);
        };
        let all = Fact::new(element, vec![batch.clone(), length.clone(), hidden].into());
        let mask = Fact::new(Some(ElementType::I32), vec![batch.clone()].into());
        Ok(vec![all.clone(), mask, all])
    }

    /// The batch and the length of the query, and as many features as the values have.
    fn fused_attention(&mut self) -> Results {
        let element = self.element(0);
        let Some([batch, length, _]) = self.ranked(0) else {
            return Ok(vec![Fact::new(element, Dims::Unranked)]);
        };
        let (batch, length) = (batch.clone(), length.clone());
        let values = self.ints("qkv_hidden_sizes").and_then(|sizes| sizes.get(2).copied());
        let features = match values.and_then(|size| usize::try_from(size).ok()) {
            Some(size) => Dim::Size(size),
            None => {
                let all = self.ranked(1).and_then(|dims| dims.last().cloned());
                let all = all.unwrap_or(Dim::UNKNOWN);
                self.with(&[&all], |own| own[0].div_exact(&crate::expr::SizeExpr::from(3)))?
            }
        };
        Ok(vec![Fact::new(element, vec![batch, length, features].into())])
    }

    fn multi_head(&mut self) -> Results {
        let element = self.element(0);
        // Packed forms have other ranks.
        let (Some([batch, length, own]), true) = (self.ranked(0), self.has(2)) else {
            return Ok(vec![Fact::new(element, Dims::Unranked)]);
        };
        let features = match self.ranked(2) {
            Some([_, _, features]) => features.clone(),
            Some(_) => own.clone(),
            None => Dim::UNKNOWN,
        };
        Ok(vec![Fact::new(element, vec![batch.clone(), length.clone(), features].into())])
    }

    /// Its channels are padded to whole blocks, in the weights too.
    fn blocked_conv(&mut self) -> Results {
        self.windows_of(0, 1, self.element(0), false)
    }

    /// Channels are padded to whole blocks, of which only the processor knows the size.
    fn reorder_input(&mut self) -> Results {
        let mut dims = self.dims(0).clone();
        if let Dims::Ranked(dims) = &mut dims {
            let last = self.int("channels_last").unwrap_or(0) != 0;
            if last && dims.len() > 2 {
                dims[1..].rotate_right(1);
            }
            dims.iter_mut().skip(1).take(1).for_each(|dim| *dim = Dim::UNKNOWN);
        }
        Ok(vec![Fact::new(self.element(0), dims)])
    }

    fn reorder_output(&mut self) -> Results {
        let mut dims = self.dims(0).clone();
        let channels = self.int("channels").and_then(|count| usize::try_from(count).ok());
        if let Dims::Ranked(dims) = &mut dims
            && let Some(own) = dims.get_mut(1)
        {
            *own = channels.map_or(Dim::UNKNOWN, Dim::Size);
            if self.int("channels_last").unwrap_or(0) != 0 {
                dims[1..].rotate_left(1);
            }
        }
        Ok(vec![Fact::new(self.element(0), dims)])
    }

    fn blocked_upsample(&mut self) -> Results {
        let element = self.element(0);
        let (Some(dims), Some(scales)) = (self.ranked(0), self.ints("scales")) else {
            return Ok(vec![Fact::new(element, Dims::Unranked)]);
        };
        let mut out = Vec::new();
        for (dim, scale) in dims.iter().zip(scales) {
            let scale = crate::expr::SizeExpr::from(*scale);
            out.push(self.with(&[dim], |own| own[0].mul(&scale))?);
        }
        Ok(vec![Fact::new(element, out.into())])
    }
}
