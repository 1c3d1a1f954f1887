//! Normalizations: scale and bias laid onto the data, one way only, or one for each channel.

#[cfg(feature = "run")]
pub(super) mod run;

use simulcast_core::{Dim, Dims, Rule};

use super::rows;
use crate::infer::{Fact, InferNode, Results};

use crate::ElementType;

rows! { "", ROWS:
    "BatchNormalization" 1 "T T1 T1 T2 T2 -> T T2 T2 T2 T2" infer per_channel run whole_unless(run::batch, run::batch_refusal) [takes(5, 5)];
    "GroupNormalization" 18 "T T T -> T" infer grouped run whole(run::grouped);
    "Hardmax" 1 "T -> T" infer same run whole(run::hardmax);
    "InstanceNormalization" 1 "T T T -> T" infer per_channel run whole(run::grouped);
    "LayerNormalization" 17 "T T T? -> T _ _" infer layer run whole(run::layer);
    "LogSoftmax" 1 "T -> T" infer same run whole(run::softmax);
    "LpNormalization" 1 "T -> T" infer same run whole(run::lp);
    "LRN" 1 "T -> T" infer same;
    "MeanVarianceNormalization" 9 "T -> T" infer same run whole(run::mean_variance);
    "RMSNormalization" 23 "T V -> V" infer layer run whole(run::layer);
    "Softmax" 1 "T -> T" infer same run whole(run::softmax);
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

    /// Scale and bias are one for each channel; before opset 21, one for each group.
    fn grouped(&mut self) -> Results {
        let channels = self.ranked(0).and_then(|dims| dims.get(1).cloned());
        let groups = self.int("num_groups").and_then(|count| usize::try_from(count).ok());
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
