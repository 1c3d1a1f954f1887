//! Results: a call's output, a new array or the caller's, and what is wrong with it.

use std::mem::needs_drop;

use ndarray::{Array, ArrayRef, Dimension};
use simulcast_core::{BroadcastError, Names, Refusal, Rule, elements, row_major_into};

use super::inner_loop::MAX_OPERANDS;
use super::launch::{Source, Work};
use crate::array::output::{Fresh, Ledger};
use crate::layout::broadcast::{Laid, same};
use crate::layout::small_vec::Inline;

impl Source<'_> {
    /// An error of the result itself.
    pub(crate) fn refused(&self, refusal: Refusal) -> BroadcastError {
        BroadcastError::new(Rule::Exact, &[self.shape], refusal).with_names(Names::of(["result"]))
    }

    /// A new row-major array of results.
    pub(crate) fn collect<R, D: Dimension>(
        &self,
        work: Work<'_>,
    ) -> Result<Array<R, D>, BroadcastError> {
        let mut fresh = Fresh::<R>::new(self.len).map_err(|refusal| self.refused(refusal))?;
        let (out, drops) = (fresh.pointer().cast(), needs_drop::<R>());
        // SAFETY: the memory has room for every element of the row-major result.
        unsafe { self.run_row_major(work, out, drops.then_some(&fresh.ledger))? };
        let rank = self.shape.len();
        let dim = D::NDIM.is_none_or(|own| own == rank).then(|| {
            let mut dim = D::zeros(rank);
            dim.slice_mut().copy_from_slice(self.shape);
            dim
        });
        // SAFETY: every element was written.
        let array = dim.and_then(|dim| unsafe { fresh.finish(dim, self.len) });
        // Never `None`: the dimension has the result's rank and sizes.
        array.ok_or_else(|| self.refused(Refusal::Overflow))
    }

    /// Runs into a row-major output.
    ///
    /// # Safety
    ///
    /// As [`Self::run`].
    pub(crate) unsafe fn run_row_major(
        &self,
        work: Work<'_>,
        out: *mut u8,
        ledger: Option<&Ledger>,
    ) -> Result<(), BroadcastError> {
        let mut strides = Inline::of_len(self.shape.len());
        row_major_into(self.shape, &mut strides).map_err(|refusal| self.refused(refusal))?;
        // SAFETY: the caller keeps the conditions.
        unsafe { self.run(work, out, &strides, ledger, ledger.is_none()) };
        Ok(())
    }

    /// Results into the caller's array, to whose shape the result stretches.
    pub(crate) fn assign<R, D: Dimension>(
        &self,
        work: Work<'_>,
        out: &mut ArrayRef<R, D>,
    ) -> Result<(), BroadcastError> {
        let pointer = out.as_mut_ptr().cast();
        // SAFETY: the array is borrowed for writing, and holds values of its type.
        unsafe { self.assign_to(work, out.shape(), pointer, out.strides(), !needs_drop::<R>()) }
    }

    /// [`Self::assign`] for an output by its parts.
    ///
    /// # Safety
    ///
    /// As [`Self::run`], with an output of that shape.
    pub(crate) unsafe fn assign_to(
        &self,
        work: Work<'_>,
        shape: &[usize],
        out: *mut u8,
        strides: &[isize],
        any_order: bool,
    ) -> Result<(), BroadcastError> {
        if same(shape, self.shape) {
            // SAFETY: the caller keeps the conditions.
            unsafe { self.run(work, out, strides, None, any_order) };
            return Ok(());
        }
        let mut relaid = [const { Inline::new() }; MAX_OPERANDS];
        self.onto(shape, &mut relaid)?;
        let onto: [&[isize]; MAX_OPERANDS] = std::array::from_fn(|n| &relaid[n][..]);
        let (strides_onto, len) = (&onto[..self.ins.len()], elements(shape).unwrap_or(0));
        let source = Source { shape, strides: strides_onto, len, ..*self };
        // SAFETY: the operands are the same, laid onto the output's shape.
        unsafe { source.run(work, out, strides, None, any_order) };
        Ok(())
    }

    // Implements E_BROADCAST_ANY_ERR_3020.
    /// The strides of the operands along the shape of an output, through that of the result.
    #[cold]
    fn onto(
        &self,
        out: &[usize],
        strides: &mut [Inline<isize>; MAX_OPERANDS],
    ) -> Result<(), BroadcastError> {
        for (to, from) in strides.iter_mut().zip(self.strides) {
            let [own] = Laid::new(Rule::To { target: out }, [self.shape], [from])
                .map_err(|error| {
                    error.with_names(Names::of(["result"])).with_target("out").without_fixes()
                })?
                .strides;
            *to = own;
        }
        Ok(())
    }

    /// Runs an inner loop that writes nothing: in row-major order, or in any.
    pub(crate) fn effects(&self, work: Work<'_>, any_order: bool) {
        let mut strides = Inline::of_len(self.shape.len());
        // Never an error: whoever laid the operands bounded the sizes.
        if row_major_into(self.shape, &mut strides).is_ok() {
            // SAFETY: values without a size are written nowhere.
            unsafe { self.run(work, std::ptr::dangling_mut(), &strides, None, any_order) };
        }
    }
}
