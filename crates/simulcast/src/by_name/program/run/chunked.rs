//! Results in parts: earlier stages once, then any rows of the last one.
//!
//! A result that does not fit in memory goes to a file block by block. What has to be there before
//! its first element can be computed, such as the mean of a column, has to fit: [`Run::memory`] says
//! beforehand what that takes.

use std::ops::Range;

use crate::by_name::dyn_array::{AnyArray, AnyViewMut};
use crate::by_name::program::build::stages::{Stage, Work};
use crate::by_name::program::front::error::ProgramError;
use crate::by_name::program::run::bind;
use crate::by_name::program::run::hoist::Hoisted;
use crate::by_name::program::run::strings::copied;
use crate::by_name::program::{Run, Target};

/// The axis whose steps are the rows of a result of that shape: the first one of another size than 1,
/// so that a batch of one is made in parts too.
#[must_use]
#[doc(hidden)]
pub fn row_axis(shape: &[usize]) -> usize {
    shape.iter().position(|&size| size != 1).unwrap_or(0)
}

/// A program of which all but the last stage has run; see [`Run::by_rows`].
///
/// ```
/// use ndarray::{Array2, array};
/// use simulcast::{AnyView, AnyViewMut, DType, TypedProgram};
///
/// let program = TypedProgram::parse("2 * x", &[("x", DType::F64)])?;
/// let x = array![[1.0, 2.0], [3.0, 4.0]];
/// let operands = [AnyView::from(&x)];
/// let rows = program.bind(&operands).by_rows()?;
/// let mut row = Array2::<f64>::zeros((1, 2));
/// rows.rows_into(1..2, &mut AnyViewMut::from(&mut row))?;
/// assert_eq!(row, array![[6.0, 8.0]]);
/// # Ok::<(), simulcast::ProgramError>(())
/// ```
#[derive(Debug)]
pub struct RunByRows<'r> {
    run: Run<'r>,
    made: Vec<Option<AnyArray>>,
    /// What is hoisted from the last stage.
    hoisted: Option<Hoisted>,
    /// The result, where it cannot be computed in parts: text.
    whole: Option<AnyArray>,
}

impl<'r> Run<'r> {
    /// Runs every stage but the last, whose result is then made piece by piece.
    ///
    /// ```
    /// use ndarray::{Array2, array};
    /// use simulcast::{AnyView, DType};
    /// use simulcast::program::Expr;
    /// use simulcast::types::Promotion;
    ///
    /// let program = Expr::parse("x - x.mean(axis=0)")?;
    /// let program = program.compile(&[("x", DType::F64)], Promotion::Numpy)?;
    /// let x = array![[1.0, 2.0], [3.0, 6.0]];
    /// let operands = [AnyView::from(&x)];
    /// let ready = program.bind(&operands).by_rows()?; // the means
    /// let mut row = Array2::<f64>::zeros((1, 2));
    /// ready.rows_into(0..1, &mut (&mut *row).into())?;
    /// assert_eq!(row, array![[-1.0, -2.0]]);
    /// ready.rows_into(1..2, &mut (&mut *row).into())?;
    /// assert_eq!(row, array![[1.0, 2.0]]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Run::compute`].
    pub fn by_rows(&self) -> Result<RunByRows<'r>, ProgramError> {
        let made = self.earlier()?;
        let (hoisted, whole) = match self.program.stages.last() {
            Some(stage @ Stage { work: Work::Text(_), .. }) => {
                (None, self.one_stage(stage, &made, None, &mut Target::Fresh, None)?)
            }
            Some(stage) => (Hoisted::new(self, stage, &made)?, None),
            None => (None, None),
        };
        Ok(RunByRows { run: *self, made, hoisted, whole })
    }

    /// The most bytes that a run takes at once, beside its operands and its output: the results of
    /// earlier stages, as long as they are needed, sub-expressions that are
    /// [hoisted](Run::hoisting), and what the last stage takes for so many rows of the result. The bytes of text are not counted.
    ///
    /// # Errors
    ///
    /// Where the operands do not broadcast.
    pub fn memory(&self, rows: usize) -> Result<u64, ProgramError> {
        self.check()?;
        let (mut held, mut most) = (0_u64, 0_u64);
        let mut kept: Vec<u64> = Vec::new();
        let stages = &self.program.stages;
        for (at, (stage, shapes)) in stages.iter().zip(bind::shapes(self)?).enumerate() {
            let hoisted = shapes.split.iter().flat_map(|split| &split.hoisted);
            let hoisted = hoisted.zip(&shapes.hoisted).map(|(stage, shape)| match &stage.work {
                Work::Map(code) | Work::Fold(code, _) => bytes(code.dtype.size(), shape),
                Work::Text(_) => 0,
            });
            let hoisted = hoisted.fold(0, u64::saturating_add);
            let (mut shape, last) = (shapes.result, at + 1 == stages.len());
            let axis = row_axis(&shape);
            if let (true, false, Some(size)) =
                (last, matches!(stage.work, Work::Text(_)), shape.get_mut(axis))
            {
                *size = rows.min(*size);
            }
            let size = self.program.graph.step(stage.node).dtype().size();
            let result = bytes(size, &shape);
            let own = match &stage.work {
                // Computed in a buffer, then divided or rounded.
                Work::Fold(code, _) => bytes(2 * code.dtype.size(), &shape),
                Work::Map(_) if last => 0,
                _ => result,
            };
            most = most.max(held.saturating_add(own).saturating_add(hoisted));
            held = held.saturating_add(result);
            kept.push(result);
            for &spent in &stage.spent {
                held = held.saturating_sub(kept.get(spent).copied().unwrap_or(0));
            }
        }
        Ok(most)
    }
}

fn bytes(size: usize, shape: &[usize]) -> u64 {
    if shape.contains(&0) {
        return 0;
    }
    shape.iter().fold(size as u64, |bytes, &size| bytes.saturating_mul(size as u64))
}

impl RunByRows<'_> {
    /// Some rows of the result, steps of its [`row_axis`], into `out`, of their shape; the same bits
    /// as in the whole result.
    ///
    /// # Errors
    ///
    /// Where `out` is of another type, or they do not fit it.
    pub fn rows_into(
        &self,
        rows: Range<usize>,
        out: &mut AnyViewMut<'_>,
    ) -> Result<(), ProgramError> {
        let run = &self.run;
        run.check_out(out)?;
        match (&self.whole, run.program.stages.last()) {
            (Some(whole), Some(stage)) => {
                copied(whole, out, Some(rows)).map_err(|error| run.refused(stage, error))
            }
            (_, Some(stage)) => {
                let (hoisted, target) = (self.hoisted.as_ref(), &mut Target::Into(out));
                run.one_stage(stage, &self.made, hoisted, target, Some(rows)).map(|_| ())
            }
            // Never: a program has a stage.
            (_, None) => Ok(()),
        }
    }
}
