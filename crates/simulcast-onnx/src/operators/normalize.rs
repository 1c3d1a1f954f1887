//! Normalizations: scale and bias laid onto the data, one way only, or one for each channel.

#[cfg(feature = "run")]
pub(super) mod run;

use simulcast_core::{Dim, Dims, Rule};

use super::rows;
use crate::infer::{Fact, InferNode, Results};

use crate::ElementType;

rows! { "", ROWS:
    "BatchNormalization" 1 "F F1 F1 F2 F2 -> F F2 F2 F2 F2" infer per_channel run whole_unless(run::batch, run::batch_refusal) [takes(5, 5)];
    "GroupNormalization" 18 "F F F -> F" infer grouped run whole(run::grouped);
    "Hardmax" 1 "F -> F" infer along run whole(run::hardmax);
    "InstanceNormalization" 1 "F F F -> F" infer per_channel run whole(run::grouped);
    "LayerNormalization" 17 "F F F? -> F _ _" infer layer run whole(run::layer);
    "LogSoftmax" 1 "F -> F" infer along run whole(run::softmax);
    "LpNormalization" 1 "F -> F" infer along run whole(run::lp);
    "LRN" 1 "F -> F" infer same;
    "MeanVarianceNormalization" 9 "F -> F" infer same run whole(run::mean_variance);
    "RMSNormalization" 23 "F F1 -> F1" infer layer run whole(run::layer);
    "Softmax" 1 "F -> F" infer along run whole(run::softmax);
}

impl InferNode<'_, '_, '_> {
    pub(super) fn layer(&mut self) -> Results {
        let data = self.input(0);
        let operands: Vec<usize> = (0..3).filter(|input| self.has(*input)).collect();
        self.broadcast_of(Rule::Unidirectional, &operands);
        let kept = match self.ranked(0) {
            None => Dims::Unranked,
            Some(dims) => {
                let mut dims = dims.to_vec();
                let axis = self.axis(self.int("axis").unwrap_or(-1), dims.len())?;
                dims[axis..].fill(Dim::Size(1));
                dims.into()
            }
        };
        let float = self.element_of("stash_type").or(Some(ElementType::F32));
        let statistics = Fact::new(float, kept);
        let result = Fact::new(self.output_element(0), data.dims.clone());
        Ok(vec![result, statistics.clone(), statistics])
    }

    /// The sizes of the input, along an axis that it must have.
    fn along(&mut self) -> Results {
        let default = if self.op_is("LpNormalization") || self.opset > 12 { -1 } else { 1 };
        if let Some(dims) = self.ranked(0) {
            self.axis(self.int("axis").unwrap_or(default), dims.len())?;
        }
        self.same()
    }

    /// Scale and bias are one for each channel; before opset 21, one for each group.
    fn grouped(&mut self) -> Results {
        let channels = self.ranked(0).and_then(|dims| dims.get(1).cloned());
        let groups = self.int("num_groups").and_then(|count| usize::try_from(count).ok());
        match (groups, channels.as_ref().and_then(Dim::size)) {
            // Only 0 is a multiple of 0.
            (Some(groups), Some(count)) if groups == 0 || !count.is_multiple_of(groups) => {
                return Err(format!("{groups} groups do not divide {count} channels"));
            }
            _ => {}
        }
        let expected = if self.opset < 21 { groups.map(Dim::Size) } else { channels };
        for input in 1..3 {
            if let (Some(expected), Some([own])) = (&expected, self.ranked(input)) {
                self.equal(expected, own, "the scale and the bias")?;
            }
        }
        self.same()
    }

    fn per_channel(&mut self) -> Results {
        let data = self.input(0);
        let count = self.row().inputs().into_inner().1;
        let channels = self.ranked(0).and_then(|dims| dims.get(1).cloned());
        for input in 1..count {
            let Some(dims) = self.ranked(input) else { continue };
            let (Some(channels), [own]) = (&channels, dims) else { continue };
            self.equal(channels, own, "the channels")?;
        }
        let dims = channels.map_or(Dims::Unranked, |channels| vec![channels].into());
        let mut results = vec![Fact::new(data.element, data.dims.clone())];
        results.extend((1..count).map(|input| Fact::new(self.element(input), dims.clone())));
        Ok(results)
    }
}
