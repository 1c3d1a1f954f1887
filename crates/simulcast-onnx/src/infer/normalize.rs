//! Normalizations: scale and bias laid onto the data, one way only, or one for each channel.

use simulcast_core::{Dim, Dims, Rule};

use super::Fact;
use super::call::{Call, Results};
use crate::ElementType;

impl Call<'_, '_, '_> {
    pub(super) fn normalizations(&mut self) -> Option<Results> {
        let data = self.input(0);
        let same = || Fact::new(data.element, data.dims.clone());
        match self.op() {
            "LayerNormalization" | "RMSNormalization" => {
                let operands: Vec<usize> = (0..3).filter(|input| self.has(*input)).collect();
                self.broadcast(Rule::Unidirectional, &operands);
                let kept = match self.ranked(0) {
                    None => Dims::Unranked,
                    Some(dims) => {
                        let mut dims = dims.to_vec();
                        let axis = self.int("axis").unwrap_or(-1);
                        let axis = match self.axis(axis, dims.len()) {
                            Ok(axis) => axis,
                            Err(message) => return Some(Err(message)),
                        };
                        dims[axis..].fill(Dim::Size(1));
                        dims.into()
                    }
                };
                let float = self.int("stash_type").unwrap_or(1);
                let float = i32::try_from(float).ok().and_then(ElementType::from_code);
                let statistics = Fact::new(float, kept);
                Some(Ok(vec![same(), statistics.clone(), statistics]))
            }
            "BatchNormalization" | "InstanceNormalization" => {
                let count = if self.op() == "BatchNormalization" { 5 } else { 3 };
                let channels = self.ranked(0).and_then(|dims| dims.get(1).cloned());
                for input in 1..count {
                    let Some(dims) = self.ranked(input) else { continue };
                    let (Some(channels), [own]) = (&channels, dims) else { continue };
                    if let Err(message) = self.equal(channels, own, "the channels") {
                        return Some(Err(message));
                    }
                }
                let statistics =
                    Fact::new(data.element, channels.map_or(Dims::Unranked, |c| vec![c].into()));
                let mut results = vec![same()];
                results.extend(std::iter::repeat_n(statistics, count.saturating_sub(1)));
                Some(Ok(results))
            }
            "GroupNormalization" => Some(Ok(vec![same()])),
            _ => None,
        }
    }
}
