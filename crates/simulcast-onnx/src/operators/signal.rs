//! Signals and their spectra.

use simulcast_core::{Dim, Dims};

use super::rows;
use crate::expr::SizeExpr;
use crate::infer::{Fact, InferNode, Results};

rows! { "", ROWS:
    "DFT" 17 "F index? int64? -> F" infer spectrum;
    "MelWeightMatrix" 17 "index _ _ _ _ -> _" infer mel_weights;
    "STFT" 17 "F index F? index? -> F" infer frames;
}

impl InferNode<'_, '_, '_> {
    fn number(&self, input: usize) -> Option<SizeExpr> {
        self.values(input).and_then(|values| values.first().cloned())
    }

    /// How many frequencies a spectrum of that length has.
    fn frequencies(&mut self, length: Option<SizeExpr>, one_sided: bool) -> Result<Dim, String> {
        let length = match (length, one_sided) {
            (Some(length), true) => {
                length.div_floor(&SizeExpr::from(2)).and_then(|half| half.add(&SizeExpr::from(1)))
            }
            (length, _) => length,
        };
        self.dim(length.as_ref())
    }

    fn spectrum(&mut self) -> Results {
        let element = self.element(0);
        let Some(dims) = self.ranked(0) else {
            return Ok(vec![Fact::new(element, Dims::Unranked)]);
        };
        let mut dims = dims.to_vec();
        let one_sided = self.int("onesided").unwrap_or(0) != 0;
        let inverse = self.int("inverse").unwrap_or(0) != 0;
        let axis = match self.opset {
            ..20 => Some(self.int("axis").unwrap_or(1)),
            _ if self.has(2) => self.number(2).and_then(|axis| axis.constant()),
            _ => Some(-2),
        };
        let (Some(axis), false) = (axis, inverse && one_sided) else {
            return Ok(vec![Fact::new(element, vec![Dim::UNKNOWN; dims.len()].into())]);
        };
        let axis = self.axis(axis, dims.len())?;
        let length = if self.has(1) { self.number(1) } else { self.expr(&dims[axis]) };
        dims[axis] = self.frequencies(length, one_sided)?;
        dims.iter_mut().last().into_iter().for_each(|last| *last = Dim::Size(2));
        Ok(vec![Fact::new(element, dims.into())])
    }

    /// A spectrum for each place of a window.
    fn frames(&mut self) -> Results {
        let element = self.element(0);
        let (mut batch, mut samples) = (Dim::UNKNOWN, Dim::UNKNOWN);
        if let Some([own, length, ..]) = self.ranked(0) {
            (batch, samples) = (own.clone(), length.clone());
        }
        let window = self.ranked(2).and_then(|dims| dims.first().cloned());
        let length = match (self.has(3), window) {
            (true, _) => self.number(3),
            (false, Some(window)) => self.expr(&window),
            (false, None) => None,
        };
        let step = self.number(1);
        let frames = self.with(&[&samples], |own| {
            let room = own[0].sub(length.as_ref()?)?;
            room.div_floor(step.as_ref()?)?.add(&SizeExpr::from(1))
        })?;
        let bins = self.frequencies(length, self.int("onesided").unwrap_or(1) != 0)?;
        Ok(vec![Fact::new(element, vec![batch, frames, bins, Dim::Size(2)].into())])
    }

    fn mel_weights(&mut self) -> Results {
        let element = self.element_of("output_datatype").or(Some(crate::ElementType::F32));
        let (bands, length) = (self.number(0), self.number(1));
        let bins = self.frequencies(length, true)?;
        let dims = vec![bins, self.dim(bands.as_ref())?];
        Ok(vec![Fact::new(element, dims.into())])
    }
}
