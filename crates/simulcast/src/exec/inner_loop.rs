//! The waist between the driver and what is computed: a run of elements.
//!
//! The driver ([`super::launch`] and the executors) is compiled once. It knows bytes, strides and [`Facts`]; what it calls
//! for each run is an [`InnerLoop`]: a closure of the user's ([`super::closure`]), or the interpreter of a program.
//!
//! **Invariant of every call.** Array 0 is the result, the arrays after it are the operands in order. Each pointer is
//! aligned for its element and reaches `len` elements along its step, valid for writes (the result) or reads (operands).
//! The result overlaps no operand: it comes from a `&mut` borrow or from a new allocation, while operands are borrowed.

use super::strategy::Stores;

/// The most operands of an inner loop: the leaves of a program's stage.
pub(crate) const MAX_OPERANDS: usize = 16;

/// A set of operands, a bit for each.
pub(crate) type Operands = u32;

/// What the driver has to know of an inner loop.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts<'f> {
    /// The bytes of an element of each array, the result first; 1 for results without a size, so that they have places.
    pub(crate) sizes: &'f [usize],
    /// The operands whose elements are plain data: their bytes may be copied into a tile and read there.
    pub(crate) plain: Operands,
    /// Whether results are plain data: they may be written as bytes, in any order, from a tile.
    pub(crate) plain_result: bool,
    /// How a repeated operand is passed to [`InnerLoop::contiguous`].
    pub(crate) repeated: Repeated,
    /// The operand whose elements are the results, where the loop only copies.
    pub(crate) copies: Option<usize>,
    /// Whether the loop has non-temporal stores of its own.
    pub(crate) nontemporal: bool,
    /// Whether the loop is long enough for the hardware to lose track of what it reads: prefetching pays.
    pub(crate) prefetches: bool,
    /// Whether arithmetic takes longer than memory: then memory traffic overlaps with it, and non-temporal stores would
    /// only add stalls.
    pub(crate) compute_bound: bool,
    /// How many operations an element takes, about: how soon a call can be interrupted.
    pub(crate) operations: usize,
}

/// How an operand that repeats one element along a run is passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Repeated {
    /// As a pointer to the element.
    Element,
    /// As a pointer to a block of copies of it, [`REPEATED_BLOCK_ELEMENTS`](simulcast_kernels::tuning::REPEATED_BLOCK_ELEMENTS) of them, or the run's length if that is less: then one vectorised
    /// loop serves every combination of repeated operands. Only plain data is copied so.
    Block,
}

/// A run on which the result is contiguous, and each operand is contiguous or repeated.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run<'r> {
    pub(crate) out: *mut u8,
    pub(crate) ins: &'r [*const u8],
    /// The operands that repeat.
    pub(crate) repeated: Operands,
    /// The operands to prefetch.
    pub(crate) prefetch: Operands,
    /// How results are stored; [`Stores::NonTemporal`] only where [`Facts::nontemporal`] is true.
    pub(crate) stores: Stores,
    pub(crate) len: usize,
}

/// How often a run comes, and the bytes that each array moves from one row to the next, the result first: a call for each
/// row would take as long as some 100 elements.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowLoop<'r> {
    pub(crate) count: usize,
    pub(crate) steps: &'r [isize],
}

impl RowLoop<'_> {
    /// A run that comes once.
    pub(crate) const ONE: Self = Self { count: 1, steps: &[0; MAX_OPERANDS + 1] };

    /// Moves pointers to the next row.
    #[inline(always)]
    pub(crate) fn advance(&self, out: &mut *mut u8, ins: &mut [*const u8]) {
        *out = out.wrapping_offset(self.steps[0]);
        for (pointer, &step) in ins.iter_mut().zip(&self.steps[1..]) {
            *pointer = pointer.wrapping_offset(step);
        }
    }
}

/// What is done to a run of elements.
///
/// # Safety
///
/// The methods write every result of a run and nothing else, also where they say how many they wrote before a panic;
/// [`Facts`] are those of the types that the methods read and write.
pub(crate) unsafe trait InnerLoop {
    /// What the driver has to know; the same on every call.
    fn facts(&self) -> Facts<'_>;

    /// Rows of runs on which the result is contiguous and every operand contiguous or repeated; with non-temporal stores
    /// one row, after which the driver fences.
    ///
    /// # Safety
    ///
    /// The invariant of this module, for each row; repeated operands are passed as [`Facts::repeated`] says.
    unsafe fn contiguous(&mut self, run: &Run<'_>, rows: RowLoop<'_>);

    /// [`Self::contiguous`] with ordinary stores for so few elements that a call counts: it is inlined where the type of
    /// the loop is known.
    ///
    /// # Safety
    ///
    /// As there, and no operand is repeated if those are passed as blocks.
    #[inline(always)]
    unsafe fn few(&mut self, run: &Run<'_>, rows: RowLoop<'_>) {
        // SAFETY: the caller keeps the conditions.
        unsafe { self.contiguous(run, rows) }
    }

    /// A run with any steps, in bytes, the result's first.
    ///
    /// # Safety
    ///
    /// The invariant of this module.
    unsafe fn strided(&mut self, out: *mut u8, ins: &[*const u8], steps: &[isize], len: usize);

    /// How many results were written, counted where they have to be dropped.
    fn written(&self) -> usize {
        0
    }
}
