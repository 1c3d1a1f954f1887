//! Running a body over a broadcast: into a fresh array, into the caller's, or for its effects.
//!
//! Serial calls take a body, parallel ones a way to make a body for each part. Both come down to
//! [`drive`](crate::exec::drive) on a nest or on its parts: the output is split, never the work on one
//! element.
//!
//! Invariant: the pointers of a [`Source`] reach every element that its strides name along its
//! shape, because they are those of the operands that were laid; the operands stay borrowed while
//! it lives.

use std::marker::PhantomData;
use std::mem::needs_drop;

use ndarray::{Array, ArrayRef, Dimension};
use simulcast_core::{BroadcastError, Names, Refusal, Rule, elements, row_major_into};

use crate::array::output::{Fresh, Ledger};
use crate::exec::autotune::Taken;
use crate::exec::drive::{Job, drive, movable};
use crate::exec::inner_loop::Body;
use crate::exec::threads;
use crate::layout::broadcast::{Laid, same};
use crate::layout::loop_nest::{Loop, Nest};
use crate::layout::partition::Parts;
use crate::layout::small_vec::Inline;
use simulcast_kernels::cpu::level::Level;
use simulcast_kernels::cpu::nontemporal::{self, Streams};
use simulcast_kernels::pod::is_plain;

/// Results of at most that many elements are not worth a nest, or a level.
const SMALL: usize = 64;

/// Operands that were laid, and how to run.
pub(crate) struct Source<'z, const N: usize> {
    shape: &'z [usize],
    strides: [&'z [isize]; N],
    len: usize,
    ins: [*const u8; N],
    level: Level,
    operands: PhantomData<&'z ()>,
}

/// Who does the work.
pub(crate) enum Work<S, P> {
    /// One body, on this thread.
    Here(S),
    /// A body for each part, on at most that many threads if that is said.
    Parts(P, Option<usize>),
}

/// What makes no parts.
pub(crate) type Never<B> = fn() -> B;

impl<'z, const N: usize> Source<'z, N> {
    /// # Safety
    ///
    /// `ins` are the pointers of the operands that `laid` was made for, borrowed for `'z`, and of
    /// the types that the bodies read; shared between threads only where they are `Sync`.
    #[inline(always)]
    pub(crate) unsafe fn new(laid: &'z Laid<N>, ins: [*const u8; N], level: Level) -> Self {
        let strides = std::array::from_fn(|n| &laid.strides[n][..]);
        Self { shape: &laid.shape, strides, len: laid.len, ins, level, operands: PhantomData }
    }

    /// Operands that lie as they are.
    ///
    /// # Safety
    ///
    /// As for [`Source::new`], with the strides of operands that all have that shape.
    #[inline(always)]
    pub(crate) unsafe fn alike(
        shape: &'z [usize],
        strides: [&'z [isize]; N],
        ins: [*const u8; N],
        level: Level,
    ) -> Self {
        // No overflow: an array of that shape exists.
        let len = shape.iter().product();
        Self { shape, strides, len, ins, level, operands: PhantomData }
    }

    /// The number of results.
    #[inline(always)]
    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn refused(&self, refusal: Refusal) -> BroadcastError {
        BroadcastError::new(Rule::Exact, &[self.shape], refusal).with_names(Names::of(["result"]))
    }

    /// A fresh row-major array of results.
    #[inline(always)]
    pub(crate) fn collect<B: Body<N>, P: Fn() -> B + Sync, D: Dimension>(
        &self,
        work: Work<B, P>,
    ) -> Result<Array<B::Out, D>, BroadcastError> {
        let shape = self.shape;
        let mut fresh = Fresh::new(self.len).map_err(|refusal| self.refused(refusal))?;
        let mut strides = Inline::of_len(shape.len());
        row_major_into(shape, &mut strides).map_err(|refusal| self.refused(refusal))?;
        let out = fresh.pointer();
        let ledger = needs_drop::<B::Out>().then_some(&fresh.ledger);
        // SAFETY: the memory has room for every element of the row-major result.
        unsafe { self.run(work, out, &strides, ledger, movable::<B::Out>()) };
        let dim = (D::NDIM.is_none_or(|rank| rank == shape.len())).then(|| {
            let mut dim = D::zeros(shape.len());
            dim.slice_mut().copy_from_slice(shape);
            dim
        });
        // SAFETY: every element was written.
        let array = dim.and_then(|dim| unsafe { fresh.finish(dim, self.len) });
        // Never `None`: the dimension has the result's rank and sizes.
        array.ok_or_else(|| self.refused(Refusal::Overflow))
    }

    /// Results into the caller's array, to whose shape the result stretches.
    #[inline(always)]
    pub(crate) fn assign<B: Body<N>, P: Fn() -> B + Sync, D: Dimension>(
        &self,
        work: Work<B, P>,
        out: &mut ArrayRef<B::Out, D>,
    ) -> Result<(), BroadcastError> {
        let (relaid, this);
        let source = if same(out.shape(), self.shape) {
            self
        } else {
            relaid = self.onto(out.shape())?;
            // SAFETY: the operands are the same.
            this = unsafe { Source::new(&relaid, self.ins, self.level) };
            &this
        };
        let pointer = out.as_mut_ptr();
        // SAFETY: the array is borrowed for writing and has the shape that the operands are laid on.
        unsafe { source.run(work, pointer, out.strides(), None, movable::<B::Out>()) };
        Ok(())
    }

    // Implements E_BROADCAST_ANY_ERR_3020.
    /// The operands laid onto the shape of an output, through that of the result.
    #[cold]
    pub(crate) fn onto(&self, out: &[usize]) -> Result<Laid<N>, BroadcastError> {
        let (shape, len) = (Inline::from_slice(out), elements(out).unwrap_or(0));
        let mut onto = Laid { shape, strides: std::array::from_fn(|_| Inline::new()), len };
        for (to, from) in onto.strides.iter_mut().zip(self.strides) {
            let [strides] = Laid::new(Rule::To { target: out }, [self.shape], [from])
                .map_err(|error| error.with_names(Names::of(["result"])).without_fixes())?
                .strides;
            *to = strides;
        }
        Ok(onto)
    }

    /// Runs a body that writes nothing: in row-major order, or in any.
    #[inline(always)]
    pub(crate) fn effects<B: Body<N, Out = ()>, P: Fn() -> B + Sync>(
        &self,
        work: Work<B, P>,
        any_order: bool,
    ) {
        let mut strides = Inline::of_len(self.shape.len());
        // Never an error: `Laid` bounded the sizes.
        if row_major_into(self.shape, &mut strides).is_ok() {
            let mut nothing = ();
            // SAFETY: values without a size can be written to any aligned place.
            unsafe { self.run(work, &raw mut nothing, &strides, None, any_order) };
        }
    }

    /// Which results are too much for a cache.
    #[inline(always)]
    fn streams<B: Body<N>>(&self, body: &B, limit: Option<usize>) -> (Streams, Option<Taken>) {
        let written = self.len.saturating_mul(size_of::<B::Out>() * body.unit());
        // Moved as vectors, which only numbers are: no padding, no pointers.
        if written < nontemporal::FEW || !is_plain::<B::Out>() || body.spreads() {
            return (Streams::NONE, None);
        }
        let distinct = |strides: &[isize]| -> usize {
            let axes = self.shape.iter().zip(strides).filter(|(_, stride)| **stride != 0);
            axes.map(|(size, _)| size).product()
        };
        let read = self.strides.iter().zip(body.sizes());
        let read = read.map(|(strides, size)| distinct(strides).saturating_mul(size));
        let read = read.fold(0, usize::saturating_add);
        let guess = Streams::guess(written, read);
        if Streams::is_guess(written, read) {
            Taken::new(&(self.shape, self.strides, body.sizes(), body.identity(), limit), guess)
        } else {
            (guess, None)
        }
    }

    /// # Safety
    ///
    /// `out` with `strides` reaches every element of the result, for writes, and overlaps no
    /// operand; it holds values where the bodies assign.
    #[inline(always)]
    pub(crate) unsafe fn run<B: Body<N>, P: Fn() -> B + Sync>(
        &self,
        mut work: Work<B, P>,
        out: *mut B::Out,
        strides: &[isize],
        ledger: Option<&Ledger>,
        any_order: bool,
    ) {
        if self.len == 0 {
            return;
        }
        if self.len <= SMALL
            && let (Work::Here(body), None) = (&mut work, ledger)
        {
            let steps = self.strides.map(last_two);
            let small = Small { shape: self.shape, out: last_two(strides), ins: steps };
            // SAFETY: the caller vouches for the output, `Source` for the operands.
            if unsafe { small.run(body, out, self.ins) } {
                return;
            }
        }
        let nest = Nest::new(self.shape, strides, self.strides);
        let (stream, _taken) = match &work {
            Work::Here(body) => self.streams(body, Some(1)),
            Work::Parts(make, limit) => self.streams(&make(), *limit),
        };
        match work {
            Work::Here(body) => {
                let job = Job { nest: &nest, out, ins: self.ins, stream, any_order };
                // SAFETY: the caller vouches for the output, `Source` for the operands.
                unsafe { recorded(self.level, body, &job, ledger) };
            }
            Work::Parts(make, limit) => {
                let shared = Shared { out, ins: self.ins };
                let level = self.level;
                let before = before(&nest, out);
                let parts = Parts::new(&nest, threads::parts(self.len, limit), before, any_order);
                if parts.count() == 1 {
                    let job = Job { nest: &nest, out, ins: self.ins, stream, any_order };
                    // SAFETY: as above.
                    unsafe { recorded(level, make(), &job, ledger) };
                    return;
                }
                threads::each(parts.count(), limit, |part| {
                    let part = parts.part(&nest, part);
                    let Shared { out, ins } = *shared.get();
                    let job = Job { nest: &part, out, ins, stream, any_order };
                    // SAFETY: as above; the parts write distinct elements of the output.
                    unsafe { recorded(level, make(), &job, ledger) };
                });
            }
        }
    }
}

/// Steps along the last two axes, that along rows first; 0 where there is no such axis.
type Steps = [isize; 2];

#[inline(always)]
fn last_two(strides: &[isize]) -> Steps {
    match *strides {
        [] => [0, 0],
        [along] => [0, along],
        [.., down, along] => [down, along],
    }
}

/// A small result, and how everyone moves along its rows and from row to row.
struct Small<'s, const N: usize> {
    shape: &'s [usize],
    out: Steps,
    ins: [Steps; N],
}

impl<const N: usize> Small<'_, N> {
    /// Runs over the rows as they come, where that needs no nest: up to two axes, contiguous rows. Says whether it did.
    ///
    /// # Safety
    ///
    /// The invariant of [`crate::exec::drive`], for these steps.
    #[inline(always)]
    unsafe fn run<B: Body<N>>(&self, body: &mut B, to: *mut B::Out, ins: [*const u8; N]) -> bool {
        let (rows, columns) = match *self.shape {
            [columns] => (1, columns),
            [rows, columns] => (rows, columns),
            _ => return false,
        };
        let splat = (0..N).fold(0, |mask, n| mask | usize::from(self.ins[n][1] == 0) << n);
        let dense = self.ins.iter().all(|&[_, along]| along == 0 || along == 1);
        if !dense || self.out[1] != body.unit().cast_signed() || !(B::PATTERNS || splat == 0) {
            return false;
        }
        let rows = Loop { len: rows, out: self.out[0], ins: self.ins.map(|[down, _]| down) };
        // SAFETY: the rows lie within the arrays, and their strides were compared above.
        unsafe { body.few(to, ins, splat, columns, &rows) };
        true
    }
}

/// How an operand moves along an output of up to two axes to which it stretches under NumPy's rule; `None` sends the
/// question to those who lay operands.
#[inline(always)]
pub(crate) fn toward(out: &[usize], shape: &[usize], strides: &[isize]) -> Option<Steps> {
    let step = |result: usize, size: usize, stride: isize| match size {
        _ if size == result => Some(stride),
        1 => Some(0),
        _ => None,
    };
    match (out, shape, strides) {
        (_, [], []) => Some([0, 0]),
        (&[.., columns], &[size], &[along]) => Some([0, step(columns, size, along)?]),
        (&[rows, columns], &[height, width], &[down, along]) => {
            Some([step(rows, height, down)?, step(columns, width, along)?])
        }
        _ => None,
    }
}

/// Results into a small output of the caller's, where all operands move along it so and that needs neither a nest nor
/// to lay them. Says whether it did: tiny arrays are worth a way of their own.
///
/// # Safety
///
/// As for [`Source::new`], with how [`toward`] says that they move along the shape of `out`.
#[inline(always)]
pub(crate) unsafe fn assign_small<B: Body<N>, D: Dimension, const N: usize>(
    body: &mut B,
    out: &mut ArrayRef<B::Out, D>,
    steps: [Option<Steps>; N],
    ins: [*const u8; N],
) -> bool {
    if out.len() > SMALL || out.is_empty() || steps.iter().any(Option::is_none) {
        return false;
    }
    let to = out.as_mut_ptr();
    let small = Small {
        shape: out.shape(),
        out: last_two(out.strides()),
        ins: steps.map(Option::unwrap_or_default),
    };
    // SAFETY: the output is borrowed for writing, and the caller vouches for the operands.
    unsafe { small.run(body, to, ins) }
}

/// How many results would fit before the first one of every row, in its line, where those are as many.
fn before<R, const N: usize>(nest: &Nest<N>, out: *mut R) -> Option<usize> {
    let (inner, outer) = nest.loops.split_last()?;
    let bytes = |one: &Loop<N>| one.out.unsigned_abs() * size_of::<R>();
    let whole = outer.iter().all(|one| bytes(one).is_multiple_of(nontemporal::LINE));
    whole.then(|| out.wrapping_offset(nest.out).addr() % nontemporal::LINE / bytes(inner).max(1))
}

/// Pointers that cross threads.
struct Shared<R, const N: usize> {
    out: *mut R,
    ins: [*const u8; N],
}

impl<R, const N: usize> Shared<R, N> {
    fn get(&self) -> &Self {
        self
    }
}

// SAFETY: parallel calls ask for `Sync` elements and `Send` results, and every part writes elements
// of its own.
unsafe impl<R, const N: usize> Sync for Shared<R, N> {}

/// Runs a body and enters what it wrote in the ledger, also where it panics.
///
/// # Safety
///
/// The invariant of [`crate::exec::drive`]; with a ledger, the job is in order and contiguous.
#[inline(always)]
unsafe fn recorded<B: Body<N>, const N: usize>(
    level: Level,
    mut body: B,
    job: &Job<'_, B::Out, N>,
    ledger: Option<&Ledger>,
) {
    struct Entry<'l, B: Body<N>, const N: usize> {
        body: B,
        start: usize,
        ledger: &'l Ledger,
    }
    impl<B: Body<N>, const N: usize> Drop for Entry<'_, B, N> {
        fn drop(&mut self) {
            self.ledger.enter(self.start, self.body.done());
        }
    }
    // SAFETY: the caller keeps the conditions.
    unsafe {
        match ledger {
            None => drive(level, &mut body, job),
            Some(ledger) => {
                let mut entry = Entry { body, start: job.nest.out.unsigned_abs(), ledger };
                drive(level, &mut entry.body, job);
            }
        }
    }
}
