//! Results in parts, for operands or results that are larger than the memory of a device.
//!
//! Where a program is one pass, and each row of its result needs one row of every operand that moves with it, rows are
//! uploaded, computed and downloaded part by part; what repeats is uploaded once. Any other program runs at once.

use std::ops::Range;

use ndarray::{Axis, Slice};
use simulcast::program::lowered::{LeafSource, Pass};
use simulcast::program::{Hoisting, row_axis};
use simulcast::{AnyArray, AnyView, DType, TypedProgram, dispatch};

use crate::array::{DeviceArray, DeviceView};
use crate::error::Error;
use crate::plan::bytes_of;
use crate::program::DeviceProgram;
use crate::stream::Stream;

/// How a program is cut into parts.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Cut {
    /// The rows of the result, along its first axis of another size than 1.
    rows: usize,
    /// For each operand the axis that moves with the rows; none where it is needed whole.
    axes: Vec<Option<usize>>,
}

impl Cut {
    /// The cut of some passes; none where they are computed at once.
    fn new(passes: &[Pass], operands: usize) -> Option<Self> {
        let [pass] = passes else { return None };
        let row = row_axis(pass.result_shape());
        let rows = *pass.result_shape().get(row)?;
        // The axis of the pass that the rows are along.
        let axis = match pass.reduction() {
            None => row,
            Some(over) if over.kept().len() == pass.result_shape().len() => row,
            Some(over) => {
                let mut kept = (0..over.kept().len()).filter(|&axis| over.kept()[axis]);
                kept.nth(row)?
            }
        };
        if pass.reduction().is_some_and(|over| !over.kept().get(axis).copied().unwrap_or(false)) {
            return None;
        }
        let mut axes: Vec<Option<Option<usize>>> = vec![None; operands];
        for leaf in pass.leaves() {
            let LeafSource::Operand(operand) = leaf.source() else { return None };
            let own = leaf.axes().get(axis).copied().flatten();
            match axes.get_mut(operand)? {
                // An operand that is read along two of its axes.
                Some(known) if *known != own => return None,
                known => *known = Some(own),
            }
        }
        Some(Self { rows, axes: axes.into_iter().map(Option::flatten).collect() })
    }
}

/// Some rows of an array on the host, on the device.
fn uploaded(
    view: &AnyView<'_>,
    axis: usize,
    rows: &Range<usize>,
    stream: &Stream,
) -> Result<DeviceArray, Error> {
    dispatch!(view.dtype(), T => {
        let Some(mut own) = view.typed::<T>() else { return Err(Error::Text) };
        own.slice_axis_inplace(Axis(axis), Slice::from(rows.clone()));
        stream.upload(&AnyView::from(&own))
    })
}

impl DeviceProgram {
    /// The result for arrays on the host, in as many parts as fit in `memory` bytes of the device: `take` gets each
    /// with its rows, which are along the first axis of another size than 1. A program that cannot be cut is one part.
    ///
    /// # Errors
    ///
    /// As [`DeviceProgram::run`], and those of `take`.
    pub fn run_in_parts<E: From<Error>>(
        &self,
        operands: &[AnyView<'_>],
        memory: u64,
        stream: &Stream,
        mut take: impl FnMut(Range<usize>, AnyArray) -> Result<(), E>,
    ) -> Result<(), E> {
        let (rule, program) = (self.own_rule(), self.program());
        let shapes: Vec<&[usize]> = operands.iter().map(AnyView::shape).collect();
        let passes =
            program.lower(&shapes, rule.as_rule(), Hoisting::Never).map_err(Error::from)?;
        let result = passes.last().map(|pass| pass.result_shape().to_vec()).unwrap_or_default();
        let cut = Cut::new(&passes, operands.len());
        let step = cut.as_ref().and_then(|cut| cut.step(program, operands, &result, memory));
        let (Some(cut), Some(step)) = (cut, step) else {
            let all =
                operands.iter().map(|own| stream.upload(own)).collect::<Result<Vec<_>, _>>()?;
            let views: Vec<DeviceView<'_>> = all.iter().map(DeviceArray::view).collect();
            let made = self.run_on(&views, stream)?.download()?;
            let rows = result.get(row_axis(&result)).copied().unwrap_or(1);
            return take(0..rows, made);
        };
        let whole: Vec<Option<DeviceArray>> = operands
            .iter()
            .zip(&cut.axes)
            .map(|(own, axis)| axis.is_none().then(|| stream.upload(own)).transpose())
            .collect::<Result<_, _>>()?;
        for start in (0..cut.rows).step_by(step) {
            let rows = start..(start + step).min(cut.rows);
            let parts: Vec<Option<DeviceArray>> = operands
                .iter()
                .zip(&cut.axes)
                .map(|(own, axis)| axis.map(|axis| uploaded(own, axis, &rows, stream)).transpose())
                .collect::<Result<_, _>>()?;
            let views: Vec<DeviceView<'_>> = parts
                .iter()
                .zip(&whole)
                .filter_map(|(part, whole)| part.as_ref().or(whole.as_ref()))
                .map(DeviceArray::view)
                .collect();
            let made = self.run_on(&views, stream)?;
            take(rows, made.download()?)?;
        }
        Ok(())
    }
}

impl Cut {
    /// How many rows go to the device at a time; none where all do.
    fn step(
        &self,
        program: &TypedProgram,
        operands: &[AnyView<'_>],
        result: &[usize],
        memory: u64,
    ) -> Option<usize> {
        let bytes = |shape: &[usize], dtype: DType| -> u128 {
            bytes_of(shape, dtype).map_or(u128::MAX >> 32, |bytes| bytes as u128)
        };
        let (mut whole, mut moving) = (0, bytes(result, program.dtype()));
        for (own, axis) in operands.iter().zip(&self.axes) {
            let bytes = bytes(own.shape(), own.dtype());
            *if axis.is_some() { &mut moving } else { &mut whole } += bytes;
        }
        let memory = u128::from(memory);
        if whole + moving <= memory || self.rows == 0 {
            return None;
        }
        let row = moving.div_ceil(self.rows as u128).max(1);
        let step = memory.saturating_sub(whole) / row;
        Some(usize::try_from(step).unwrap_or(usize::MAX).clamp(1, self.rows))
    }
}

#[cfg(test)]
mod tests {
    use simulcast::Rule;

    use super::*;

    fn cut(text: &str, rule: Rule<'_>, shapes: &[&[usize]]) -> Option<Cut> {
        let names = ["a", "b"];
        let types: Vec<(&str, DType)> =
            names.into_iter().take(shapes.len()).map(|name| (name, DType::F32)).collect();
        let program = TypedProgram::parse(text, &types).expect("a program");
        let passes = program.lower(shapes, rule, Hoisting::Never).expect("operands that fit");
        Cut::new(&passes, shapes.len())
    }

    #[test]
    fn rows_of_operands_move_with_rows_of_the_result() {
        let numpy = Rule::Numpy;
        let made = |rows, axes: &[Option<usize>]| Some(Cut { rows, axes: axes.to_vec() });
        assert_eq!(cut("a + b", numpy, &[&[5, 3], &[3]]), made(5, &[Some(0), None]));
        assert_eq!(cut("a + b", numpy, &[&[1, 5, 3], &[5, 1]]), made(5, &[Some(1), Some(0)]));
        assert_eq!(cut("a.T + b", numpy, &[&[5, 3], &[3, 1]]), made(3, &[Some(1), Some(0)]));
        assert_eq!(cut("sum(a, axis=0)", numpy, &[&[5, 3]]), made(3, &[Some(1)]));
        assert_eq!(cut("sum(a, axis=1)", numpy, &[&[5, 3]]), made(5, &[Some(0)]));
        let pdpd = Rule::Pdpd { axis: Some(0) };
        assert_eq!(cut("a * b", pdpd, &[&[5, 3], &[5]]), made(5, &[Some(0), Some(0)]));
        // What is read along two axes, or needs several passes, is computed at once.
        assert_eq!(cut("a.T + a", numpy, &[&[5, 5]]), None);
        assert_eq!(cut("a - max(a, axis=-1, keepdims=True)", numpy, &[&[5, 3]]), None);
        assert_eq!(cut("sum(a)", numpy, &[&[5, 3]]), None);
    }

    #[test]
    fn as_many_rows_as_fit_go_at_a_time() {
        let types = [("a", DType::F32), ("b", DType::F32)];
        let program = TypedProgram::parse("a + b", &types).expect("a program");
        let (a, b) = (ndarray::Array2::<f32>::zeros((100, 25)), ndarray::Array1::<f32>::zeros(25));
        let operands = [AnyView::from(&a), AnyView::from(&b)];
        let own = Cut { rows: 100, axes: vec![Some(0), None] };
        // A row takes 200 bytes, and the second operand 100.
        for (memory, step) in [(20_100, None), (20_000, Some(99)), (1000, Some(4)), (0, Some(1))] {
            assert_eq!(own.step(&program, &operands, &[100, 25], memory), step, "{memory}");
        }
    }
}
