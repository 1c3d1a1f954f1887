//! Launching: operands that were laid become a nest, a strategy and parts, and the executors run them.
//!
//! ```text
//! Source ──▶ tiny?   rows, without a nest
//!        └─▶ Nest ──▶ Strategy ──▶ Partition ──▶ contiguous · tiled · blocked · strided
//! ```
//!
//! All of this is compiled once: what is computed comes as an [`InnerLoop`]. The result is split between threads, never the
//! work on one element, so every result has the same bits on any number of threads.
//!
//! **Invariant of a [`Source`].** Its pointers reach every element that its strides name along its shape, because they are
//! those of the operands that were laid; the operands stay borrowed while it lives.

use simulcast_core::{elements, row_major_into};
use simulcast_kernels::cpu::level::Level;
use simulcast_kernels::cpu::nontemporal::Fence;
use simulcast_kernels::tuning::{CACHE_LINE_BYTES, TINY_ARRAYS};
use simulcast_threads::{SendPtr, for_each_part};

use super::inner_loop::{Facts, InnerLoop, MAX_OPERANDS};
use super::strategy::{Question, Shape, Stores, Strategy};
use super::tiny::{Tiny, is_tiny};
use super::{blocked, contiguous, parallelism, strided, tiled};
use crate::array::output::Ledger;
use crate::layout::nest::Nest;
use crate::layout::small_vec::Inline;

/// Operands that were laid, and the level to run at.
#[derive(Clone, Copy)]
pub(crate) struct Source<'s> {
    pub(super) shape: &'s [usize],
    pub(super) strides: &'s [&'s [isize]],
    pub(super) ins: &'s [*const u8],
    pub(super) len: usize,
    pub(super) level: Level,
}

/// A function that makes an inner loop for each part, and passes it on.
pub(crate) type Make<'w> = dyn Fn(&mut dyn FnMut(&mut dyn InnerLoop)) + Sync + 'w;

/// The work, and who does it.
pub(crate) enum Work<'w> {
    /// One inner loop, on this thread.
    Here(&'w mut dyn InnerLoop),
    /// An inner loop for each part, on at most that many threads if that is said.
    Parts(&'w Make<'w>, Option<usize>),
}

/// What an executor is given.
pub(crate) struct Job<'j> {
    pub(crate) nest: &'j Nest,
    pub(crate) strategy: &'j Strategy,
    /// Where the nest's offsets count from: the result, and the operands.
    pub(crate) out: *mut u8,
    pub(crate) ins: &'j [*const u8],
}

/// Runs an inner loop over a nest as the strategy says. Nothing is decided here.
///
/// # Safety
///
/// `out` and `ins` reach every element of the nest, as [`super::inner_loop`] asks; the strategy was chosen for this nest, or
/// for one of which it is a part, and for the facts of this inner loop.
unsafe fn execute(inner: &mut dyn InnerLoop, job: &Job<'_>) {
    let _fence = (job.strategy.stores == Stores::NonTemporal).then_some(Fence);
    // SAFETY: the caller keeps the conditions.
    unsafe {
        match job.strategy.shape {
            Shape::Empty | Shape::Tiny => unreachable!("these have no nest"),
            Shape::Contiguous { repeated } => contiguous::contiguous(inner, job, repeated),
            shape @ Shape::Tiled { .. } => tiled::tiled(inner, job, shape),
            Shape::Blocked { with } => blocked::blocked(inner, job, with),
            Shape::Strided => strided::strided(inner, job),
        }
    }
}

/// [`execute`], entering what was written in the ledger, also where the inner loop panics.
///
/// # Safety
///
/// As there; with a ledger, the nest is in the order of the result's memory, which is contiguous.
unsafe fn recorded(inner: &mut dyn InnerLoop, job: &Job<'_>, ledger: Option<&Ledger>) {
    struct Entry<'e> {
        inner: &'e mut dyn InnerLoop,
        start: usize,
        ledger: &'e Ledger,
    }
    impl Drop for Entry<'_> {
        fn drop(&mut self) {
            self.ledger.enter(self.start, self.inner.written());
        }
    }
    // SAFETY: the caller keeps the conditions.
    unsafe {
        match ledger {
            None => execute(inner, job),
            Some(ledger) => {
                let size = inner.facts().sizes[0];
                let start = job.nest.starts()[0].unsigned_abs() / size;
                let entry = Entry { inner, start, ledger };
                execute(entry.inner, job);
            }
        }
    }
}

/// The strategy of a call on operands with these strides into a new row-major array, without running it.
pub(crate) fn explain(
    shape: &[usize],
    strides: &[&[isize]],
    level: Level,
    facts: &Facts<'_>,
    threads: Option<usize>,
    drops: bool,
) -> Strategy {
    // The pointers are not read.
    let ins = [std::ptr::dangling(); MAX_OPERANDS];
    let ins = ins.get(..strides.len()).unwrap_or(&ins);
    let len = elements(shape).unwrap_or(0);
    Source { shape, strides, ins, len, level }.explain(facts, threads, drops)
}

impl<'s> Source<'s> {
    /// # Safety
    ///
    /// `ins` are the pointers of the operands whose strides along the shape these are, borrowed for `'s`, of the types that
    /// the inner loops read; shared between threads only where they are `Sync`.
    #[inline]
    pub(crate) unsafe fn new(
        shape: &'s [usize],
        strides: &'s [&'s [isize]],
        ins: &'s [*const u8],
        level: Level,
    ) -> Self {
        // No overflow: whoever laid the operands bounded the sizes.
        let len = shape.iter().product();
        Self { shape, strides, ins, len, level }
    }

    /// The number of results.
    #[inline]
    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    /// The nest of a call, for inner loops with these facts.
    fn nest(&self, facts: &Facts<'_>, out: &[isize]) -> Nest {
        let mut strides = [out; MAX_OPERANDS + 1];
        for (place, own) in strides[1..].iter_mut().zip(self.strides) {
            *place = own;
        }
        Nest::new(self.shape, &strides[..=self.strides.len()], facts.sizes)
    }

    /// The rows of a tiny result.
    fn tiny(&self, facts: &Facts<'_>, out: &[isize]) -> Option<Tiny<TINY_ARRAYS>> {
        if !is_tiny(self.len) || self.strides.len() >= TINY_ARRAYS {
            return None;
        }
        let mut arrays = [(self.shape, out); TINY_ARRAYS];
        for (array, own) in arrays[1..].iter_mut().zip(self.strides) {
            array.1 = own;
        }
        Tiny::new(facts, &arrays[..=self.strides.len()])
    }

    /// The strategy of a call, in about `parts` parts, with an output that begins at an address.
    fn strategy(
        &self,
        facts: &Facts<'_>,
        nest: &Nest,
        out: *mut u8,
        parts: usize,
        any_order: bool,
    ) -> (Strategy, usize) {
        let before = before(nest, out);
        let question = Question {
            facts,
            nest,
            any_order,
            parts,
            rows_aligned: before.is_some(),
            level: self.level,
        };
        (Strategy::new(&question), before.unwrap_or(0))
    }

    /// The strategy of a call into a new row-major array, without running it; `drops` says whether results have to be dropped.
    pub(crate) fn explain(
        &self,
        facts: &Facts<'_>,
        threads: Option<usize>,
        drops: bool,
    ) -> Strategy {
        let shape = |shape| Strategy::without_nest(shape, self.level);
        if self.len == 0 {
            return shape(Shape::Empty);
        }
        let mut strides = Inline::of_len(self.shape.len());
        if row_major_into(self.shape, &mut strides).is_err() {
            return shape(Shape::Empty);
        }
        if !drops && self.tiny(facts, &strides).is_some() {
            return shape(Shape::Tiny);
        }
        let parts = parallelism::parts(self.len, threads);
        let nest = self.nest(facts, &strides);
        self.strategy(facts, &nest, std::ptr::null_mut(), parts, !drops).0
    }

    /// Runs the work into an output with these strides, in elements.
    ///
    /// # Safety
    ///
    /// `out` with `strides` reaches every element of the result, for writes, and overlaps no operand; it holds values where
    /// the inner loops assign. With a ledger it is row-major, and not in any order.
    pub(crate) unsafe fn run(
        &self,
        work: Work<'_>,
        out: *mut u8,
        strides: &[isize],
        ledger: Option<&Ledger>,
        any_order: bool,
    ) {
        if self.len == 0 {
            return;
        }
        let ins = self.ins;
        match work {
            Work::Here(inner) => {
                let facts = inner.facts();
                if ledger.is_none()
                    && let Some(tiny) = self.tiny(&facts, strides)
                {
                    // SAFETY: the caller vouches for the output, `Source` for the operands.
                    return unsafe { tiny.run(inner, out, ins) };
                }
                let nest = self.nest(&facts, strides);
                let (strategy, _) = self.strategy(&facts, &nest, out, 1, any_order);
                let job = Job { nest: &nest, strategy: &strategy, out, ins };
                // SAFETY: as above.
                unsafe { recorded(inner, &job, ledger) };
            }
            Work::Parts(make, limit) => {
                let about = parallelism::parts(self.len, limit);
                make(&mut |inner| {
                    let facts = inner.facts();
                    if ledger.is_none()
                        && let Some(tiny) = self.tiny(&facts, strides)
                    {
                        // SAFETY: the caller vouches for the output, `Source` for the operands.
                        return unsafe { tiny.run(inner, out, ins) };
                    }
                    let about = about.max(parallelism::pieces(self.len, facts.operations));
                    let nest = self.nest(&facts, strides);
                    let (strategy, before) = self.strategy(&facts, &nest, out, about, any_order);
                    let parts = strategy.partition.count();
                    if parts == 1 {
                        let job = Job { nest: &nest, strategy: &strategy, out, ins };
                        // SAFETY: as above.
                        return unsafe { recorded(inner, &job, ledger) };
                    }
                    let (out, ins) = (SendPtr::new(out), SendPtr::reading(ins));
                    let (nest, strategy) = (&nest, &strategy);
                    for_each_part(parts, limit, &|part| {
                        // SAFETY: the slice is borrowed for as long as this function runs.
                        let (out, ins) = (out.get(), unsafe { &*ins.get() });
                        let part = strategy.partition.part(nest, part, before);
                        let job = Job { nest: &part, strategy, out, ins };
                        // SAFETY: as above; parallel calls ask for `Sync` elements and `Send` results, and parts are
                        // disjoint (`layout::partition`, whose test counts every element once).
                        make(&mut |inner| unsafe { recorded(inner, &job, ledger) });
                    });
                });
            }
        }
    }
}

/// How many results would fit before the first one of every row, in its cache line, where those are as many.
fn before(nest: &Nest, out: *mut u8) -> Option<usize> {
    let last = nest.rank().checked_sub(1)?;
    let aligned = |at: usize| nest.step(at)[0].unsigned_abs().is_multiple_of(CACHE_LINE_BYTES);
    let size = nest.step(last)[0].unsigned_abs().max(1);
    let start = out.wrapping_offset(nest.starts()[0]).addr();
    (0..last).all(aligned).then_some(start % CACHE_LINE_BYTES / size)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::closure::Closure;
    use super::super::inner_loop::{Operands, Repeated};
    use super::super::strategy::Strategy;
    use super::*;
    use crate::layout::partition::Partition;

    /// Every strategy under which a nest may run, but for threads.
    fn strategies(question: &Question<'_>) -> Vec<Strategy> {
        let chosen = Strategy::new(question);
        let rank = question.nest.rank();
        let with = |shape, stores| Strategy { shape, stores, ..chosen.clone() };
        let mut all = vec![chosen.clone()];
        if chosen.shape != Shape::Strided {
            let last = rank - 1;
            for stores in [Stores::Cached, Stores::NonTemporal] {
                all.push(with(chosen.shape, stores));
                all.extend((0..last).map(|at| with(Shape::Blocked { with: at }, stores)));
                all.extend(question.tilings().into_iter().map(|shape| with(shape, stores)));
            }
        }
        all
    }

    fn run<F: FnMut(&u32, &u64) -> u32>(f: F, level: Level, job: &Job<'_>) {
        let mut inner = Closure::<F, (u32, u64), u32>::new(f, true, false, level);
        // SAFETY: the arrays of the tests reach every element of their nests.
        unsafe { execute(&mut inner, job) };
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 100 }))]

        // [E_BROADCAST_ANY_FUNC_3030, E_BROADCAST_ANY_FUNC_3050]
        #[test]
        fn every_strategy_writes_the_bits_that_strided_writes(
            sizes in prop::collection::vec(prop_oneof![1_usize..4, 5_usize..40, 60_usize..70, Just(130)], 1..4),
            kinds in prop::collection::vec((0_u8..6, 0_u8..6), 3),
            off in 0_usize..20,
            order in any::<bool>(),
        ) {
            let shape: Vec<usize> = if cfg!(miri) { sizes.iter().map(|size| size % 5 + 1).collect() } else { sizes };
            let total: usize = shape.iter().product();
            prop_assume!(total <= 200_000);
            // Each operand: contiguous, repeated, backwards or with gaps along each axis, or transposed as a whole.
            let operand = |which: usize| {
                let transposed = order && which == 1;
                let mut axes: Vec<usize> = (0..shape.len()).collect();
                if transposed {
                    axes.reverse();
                }
                let (mut strides, mut step, mut first) = (vec![0; shape.len()], 1_isize, 0_isize);
                for &axis in axes.iter().rev() {
                    let kind = if which == 0 { kinds[axis].0 } else { kinds[axis].1 };
                    match kind {
                        0 => {}
                        1 => {
                            strides[axis] = -step;
                            first += step * (shape[axis].cast_signed() - 1);
                            step *= shape[axis].cast_signed();
                        }
                        2 => {
                            strides[axis] = 2 * step;
                            step *= 2 * shape[axis].cast_signed();
                        }
                        _ => {
                            strides[axis] = step;
                            step *= shape[axis].cast_signed();
                        }
                    }
                }
                (strides, step.unsigned_abs(), first)
            };
            let ((a, a_len, a_first), (b, b_len, b_first)) = (operand(0), operand(1));
            let left: Vec<u32> = (0..a_len).map(|n| (n as u32).wrapping_mul(0x9e37_79b9)).collect();
            let right: Vec<u64> = (0..b_len).map(|n| (n as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
            let f = |x: &u32, y: &u64| x.wrapping_mul(31) ^ (*y >> 7) as u32;
            let mut out = vec![1_isize; shape.len()];
            for at in (1..shape.len()).rev() {
                out[at - 1] = out[at] * shape[at].cast_signed();
            }
            let facts = Facts {
                sizes: &[4, 4, 8],
                plain: Operands::MAX,
                plain_result: true,
                repeated: Repeated::Block,
                copies: None,
                nontemporal: false,
                prefetches: true,
                compute_bound: false,
                operations: 1,
            };
            let nest = Nest::new(&shape, &[&out, &a, &b], facts.sizes);
            let ins = [left[a_first.cast_unsigned()..].as_ptr().cast::<u8>(), right[b_first.cast_unsigned()..].as_ptr().cast()];
            for level in Level::available() {
                let question = Question { facts: &facts, nest: &nest, any_order: true, parts: 1, rows_aligned: true, level };
                let result = |strategy: &Strategy| {
                    let mut memory = vec![0xdead_beef_u32; total + 40];
                    let place = memory[off..].as_mut_ptr().cast();
                    run(f, level, &Job { nest: &nest, strategy, out: place, ins: &ins });
                    memory
                };
                let strided = Strategy { shape: Shape::Strided, stores: Stores::Cached, prefetch: 0, partition: Partition::whole(nest.rank()), level };
                let expected = result(&strided);
                for strategy in strategies(&question) {
                    prop_assert_eq!(&result(&strategy), &expected, "{}", strategy);
                }
            }
        }
    }
}
