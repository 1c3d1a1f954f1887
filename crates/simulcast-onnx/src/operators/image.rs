//! Images: resized, sampled at places, and pooled over regions.

use simulcast_core::{Dim, Dims};

use super::rows;
use crate::ElementType;
use crate::expr::SizeExpr;
use crate::infer::{Fact, InferNode, Results};

rows! { "", ROWS:
    "AffineGrid" 20 "F int64 -> F" infer affine_grid;
    "CenterCropPad" 18 "T index -> T" infer center_crop_pad;
    "Col2Im" 18 "T int64 int64 -> T" infer column_to_image;
    "GridSample" 16 "T _ -> T" infer grid_sample;
    "MaxRoiPool" 1 "F F -> F" infer max_roi_pool;
    "NonMaxSuppression" 10 "float32 float32 int64? float32? float32? -> int64" infer non_max_suppression;
    "Resize" 10 "T _? float32? int64? -> T" infer resize;
    "RoiAlign" 10 "F F int64 -> F" infer roi_align;
    "Upsample" 1 "T float32? -> T" infer upsample;
}

impl InferNode<'_, '_, '_> {
    /// The numbers of an input that is a small tensor of floats.
    fn factors(&self, input: usize) -> Option<&[f32]> {
        self.input(input).floats.as_deref().filter(|factors| !factors.is_empty())
    }

    /// Each axis times a factor, rounded down.
    fn scaled(&mut self, dims: &[Dim], factors: &[f32]) -> Result<Vec<Dim>, String> {
        if factors.len() != dims.len() {
            return Err(format!("{} factors do not scale {} axes", factors.len(), dims.len()));
        }
        let mut out = Vec::with_capacity(dims.len());
        for (dim, &factor) in dims.iter().zip(factors) {
            if !(factor.is_finite() && factor > 0.0) {
                return Err(format!("an axis is scaled by {factor}"));
            }
            out.push(self.with(&[dim], |size| times(&size[0], factor))?);
        }
        Ok(out)
    }

    fn upsample(&mut self) -> Results {
        let element = self.element(0);
        let Some(dims) = self.ranked(0) else {
            return Ok(vec![Fact::new(element, Dims::Unranked)]);
        };
        let factors = match self.opset {
            ..9 => self.floats("scales"),
            _ => self.factors(1),
        };
        let out = match factors.map(<[f32]>::to_vec) {
            Some(factors) => self.scaled(dims, &factors)?,
            None => vec![Dim::UNKNOWN; dims.len()],
        };
        Ok(vec![Fact::new(element, out.into())])
    }

    fn resize(&mut self) -> Results {
        let element = self.element(0);
        let Some(dims) = self.ranked(0) else {
            return Ok(vec![Fact::new(element, Dims::Unranked)]);
        };
        let rank = dims.len();
        let axes: Vec<usize> = match self.ints("axes") {
            Some(axes) => {
                axes.iter().map(|axis| self.axis(*axis, rank)).collect::<Result<_, _>>()?
            }
            None => (0..rank).collect(),
        };
        let kept: Vec<Dim> = axes.iter().map(|axis| dims[*axis].clone()).collect();
        let scales = if self.opset < 11 { 1 } else { 2 };
        let mut out = dims.to_vec();
        let sizes = self.values(3).filter(|sizes| self.opset >= 11 && !sizes.is_empty());
        let new: Vec<Dim> = match (sizes, self.factors(scales).map(<[f32]>::to_vec)) {
            (Some(sizes), _) => {
                if sizes.len() != axes.len() {
                    return Err(format!("{} sizes are given for {} axes", sizes.len(), axes.len()));
                }
                // With another policy one factor for all axes decides.
                match self.text("keep_aspect_ratio_policy").unwrap_or("stretch") {
                    "stretch" => {
                        sizes.iter().map(|size| self.dim(Some(size))).collect::<Result<_, _>>()?
                    }
                    _ => vec![Dim::UNKNOWN; axes.len()],
                }
            }
            (None, Some(factors)) => {
                let cropped =
                    self.text("coordinate_transformation_mode") == Some("tf_crop_and_resize");
                match cropped {
                    true => vec![Dim::UNKNOWN; axes.len()],
                    false => self.scaled(&kept, &factors)?,
                }
            }
            (None, None) => vec![Dim::UNKNOWN; axes.len()],
        };
        axes.iter().zip(new).for_each(|(axis, dim)| out[*axis] = dim);
        Ok(vec![Fact::new(element, out.into())])
    }

    /// The data's batch and channels, at the places of the grid.
    fn grid_sample(&mut self) -> Results {
        let element = self.element(0);
        let (data, grid) = (self.ranked(0), self.ranked(1));
        let rank = data.or(grid).map(<[Dim]>::len);
        let Some(rank) = rank.filter(|rank| *rank >= 3) else {
            return Ok(vec![Fact::new(element, Dims::Unranked)]);
        };
        let mut dims = vec![Dim::UNKNOWN; rank];
        if let Some(data) = data {
            dims[..2].clone_from_slice(&data[..2]);
        }
        if let Some(grid) = grid {
            if grid.len() != rank {
                let (data, grid) = (self.dims(0), self.dims(1));
                return Err(format!("{data} is not sampled at {grid}"));
            }
            let depth = Dim::Size(rank - 2);
            self.equal(&grid[rank - 1], &depth, "the coordinates of a place")?;
            dims[0] = self.equal(&dims[0].clone(), &grid[0], "the batch")?;
            dims[2..].clone_from_slice(&grid[1..rank - 1]);
        }
        Ok(vec![Fact::new(element, dims.into())])
    }

    fn size_of(&self, name: &str) -> Dim {
        let size = self.int(name).unwrap_or(1);
        usize::try_from(size).map_or(Dim::UNKNOWN, Dim::Size)
    }

    /// A picture of one size for each region.
    fn roi_align(&mut self) -> Results {
        let element = self.element(0);
        let first = |dims: Option<&[Dim]>, axis: usize| {
            dims.and_then(|dims| dims.get(axis).cloned()).unwrap_or(Dim::UNKNOWN)
        };
        let regions = first(self.ranked(1), 0);
        if self.has(2) {
            self.equal(&regions, &first(self.ranked(2), 0), "the regions and their pictures")?;
        }
        if let Some(rois) = self.ranked(1) {
            if rois.len() != 2 {
                return Err(format!("{} is no list of regions", self.dims(1)));
            }
            self.equal(&rois[1], &Dim::Size(4), "the corners of a region")?;
        }
        let (height, width) = (self.size_of("output_height"), self.size_of("output_width"));
        let dims = vec![regions, first(self.ranked(0), 1), height, width];
        Ok(vec![Fact::new(element, dims.into())])
    }

    fn max_roi_pool(&mut self) -> Results {
        let element = self.element(0);
        let of = |input: usize, axis: usize| {
            self.ranked(input).and_then(|dims| dims.get(axis).cloned()).unwrap_or(Dim::UNKNOWN)
        };
        let mut dims = vec![of(1, 0), of(0, 1)];
        let pooled = self.ints("pooled_shape").unwrap_or_default();
        dims.extend(pooled.iter().map(|s| usize::try_from(*s).map_or(Dim::UNKNOWN, Dim::Size)));
        Ok(vec![Fact::new(element, dims.into())])
    }

    /// As many as overlap little enough: batch, class and box of each.
    fn non_max_suppression(&mut self) -> Results {
        let dims = vec![Dim::UNKNOWN, Dim::Size(3)];
        Ok(vec![Fact::new(Some(ElementType::I64), dims.into())])
    }

    fn affine_grid(&mut self) -> Results {
        let element = self.element(0);
        let Some([batch, _, space @ ..]) = self.values(1) else {
            return Ok(vec![Fact::new(element, Dims::Unranked)]);
        };
        let (batch, space) = (batch.clone(), space.to_vec());
        let mut dims = vec![self.dim(Some(&batch))?];
        for size in &space {
            dims.push(self.dim(Some(size))?);
        }
        dims.push(Dim::Size(space.len()));
        Ok(vec![Fact::new(element, dims.into())])
    }

    fn center_crop_pad(&mut self) -> Results {
        let element = self.element(0);
        let Some(dims) = self.ranked(0) else {
            return Ok(vec![Fact::new(element, Dims::Unranked)]);
        };
        let axes: Vec<usize> = match self.ints("axes") {
            Some(axes) => {
                axes.iter().map(|axis| self.axis(*axis, dims.len())).collect::<Result<_, _>>()?
            }
            None => (0..dims.len()).collect(),
        };
        let mut dims = dims.to_vec();
        let sizes = self.values(1).map(<[SizeExpr]>::to_vec);
        for (position, axis) in axes.into_iter().enumerate() {
            dims[axis] = match sizes.as_ref().and_then(|sizes| sizes.get(position)) {
                Some(size) => self.dim(Some(size))?,
                None => Dim::UNKNOWN,
            };
        }
        Ok(vec![Fact::new(element, dims.into())])
    }

    /// Columns that are blocks of an image, put together.
    fn column_to_image(&mut self) -> Results {
        let element = self.element(0);
        let (image, block) = (self.input(1).ints(), self.input(2).ints());
        let (Some(image), Some([batch, rows, _])) = (image, self.ranked(0)) else {
            return Ok(vec![Fact::new(element, Dims::Unranked)]);
        };
        let area = block.and_then(|block| block.iter().try_fold(1_i64, |a, b| a.checked_mul(*b)));
        let (batch, rows) = (batch.clone(), rows.clone());
        let channels = match area.filter(|area| *area > 0) {
            Some(area) => self.with(&[&rows], |own| own[0].div_exact(&SizeExpr::from(area)))?,
            None => Dim::UNKNOWN,
        };
        let mut dims = vec![batch, channels];
        for size in image {
            dims.push(self.dim(Some(&SizeExpr::from(size)))?);
        }
        Ok(vec![Fact::new(element, dims.into())])
    }
}

/// A size times a factor, rounded down; of a size that is not known, where the factor is a whole number
/// or one over one.
fn times(size: &SizeExpr, factor: f32) -> Option<SizeExpr> {
    if factor == 1.0 {
        return Some(size.clone());
    }
    if let Some(size) = size.constant() {
        // As in ONNX Runtime, in floats of 32 bits.
        return Some(SizeExpr::from((size as f32 * factor).floor() as i64));
    }
    let whole = |x: f32| (x.fract() == 0.0 && (1.0..1e6).contains(&x)).then_some(x as i64);
    match (whole(factor), whole(factor.recip())) {
        (Some(factor), _) => size.mul(&SizeExpr::from(factor)),
        (None, Some(by)) if by.count_ones() == 1 => size.div_floor(&SizeExpr::from(by)),
        _ => None,
    }
}
