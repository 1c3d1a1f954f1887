//! What folds: two elements or many into one, and what is done to what was folded.

use crate::by_name::program::build::graph::{Bytes, Fold, Value};
use simulcast_kernels::cpu::aligned_buf::{Line, room};
use simulcast_kernels::cpu::level::Level;
use simulcast_kernels::dtype::{DType, Kind, Scalar};
use simulcast_kernels::op::Op;
use simulcast_kernels::ops::{self, Conversion, Kernel};
use simulcast_kernels::pack::pack;
use simulcast_kernels::reduce::{Down, RowFold};

/// What folds, and what is done to what was folded.
pub(super) struct Folding {
    /// How.
    pub(super) kind: simulcast_kernels::reduce::Fold,
    /// A row into one element, and rows into one.
    pub(super) row: RowFold,
    pub(super) down: Down,
    /// Two stretches into one.
    pub(super) pair: Kernel,
    /// What the fold of nothing is.
    identity: Bytes,
    /// A mean is a sum over the number of its terms.
    over: Option<(Kernel, Bytes)>,
    /// To the type of the result.
    cast: Option<Conversion>,
    /// The bytes of an element, as it is folded and as it is given away.
    pub(super) size: usize,
    pub(super) gives: usize,
}

impl Folding {
    pub(super) fn new(
        fold: Fold,
        dtype: DType,
        count: usize,
        gives: DType,
        level: Level,
    ) -> Option<Self> {
        let (kind, op, start) = match fold {
            Fold::Sum | Fold::Mean => (simulcast_kernels::reduce::Fold::Sum, Op::Add, 0),
            Fold::Product => (simulcast_kernels::reduce::Fold::Product, Op::Multiply, 1),
            Fold::Maximum => (simulcast_kernels::reduce::Fold::Maximum, Op::Maximum, 0),
            Fold::Minimum => (simulcast_kernels::reduce::Fold::Minimum, Op::Minimum, 0),
        };
        let (row, down) = simulcast_kernels::reduce::folds(kind, dtype, level)?;
        let pair = ops::kernels(op, dtype, level)?.cached;
        let number = |number: i128| {
            let number = match dtype.kind() {
                Kind::Bool => Scalar::Bool(number == 1),
                Kind::Signed | Kind::Unsigned => Scalar::Int(dtype, number),
                Kind::Float => Scalar::Float(dtype, number as f64),
                _ => Scalar::Complex(dtype, num_complex::Complex::new(number as f64, 0.0)),
            };
            match Value::new(&number) {
                Value::Plain(bytes) => Some(bytes),
                _ => None,
            }
        };
        let over = match fold {
            // The second operand repeats.
            Fold::Mean => {
                let divide = ops::kernels(Op::Divide, dtype, level)?.cached;
                Some((divide, number(count as i128)?))
            }
            _ => None,
        };
        let cast = match dtype {
            // What is folded may be any byte, of which all but 0 are true.
            DType::Bool => Some(ops::cast(DType::U8, gives, level)?),
            _ if dtype == gives => None,
            _ => Some(ops::cast(dtype, gives, level)?),
        };
        let identity = number(start)?;
        Some(Self {
            kind,
            row,
            down,
            pair,
            identity,
            over,
            cast,
            size: dtype.size(),
            gives: gives.size(),
        })
    }

    /// Whether what was folded is the result.
    pub(super) fn is_done(&self) -> bool {
        self.over.is_none() && self.cast.is_none()
    }

    /// Makes `count` results out of what was folded.
    ///
    /// # Safety
    ///
    /// There are so many, and room for as many in `spare` and `out`, all apart from one another.
    pub(super) unsafe fn finish(
        &self,
        out: *mut u8,
        folded: *const u8,
        spare: *mut u8,
        count: usize,
    ) {
        let mut from = folded;
        // SAFETY: as many elements everywhere, of the kernels' types; one that repeats.
        unsafe {
            if let Some((divide, by)) = &self.over {
                let to = if self.cast.is_some() { spare } else { out };
                divide(to, [from, (&raw const *by).cast(), std::ptr::null()], 0b10, count);
                from = to;
            }
            match self.cast {
                Some(cast) => cast.run(out, from, [self.size, self.gives], count),
                None if from == out => {}
                None => std::ptr::copy_nonoverlapping(from, out, count * self.size),
            }
        }
    }

    /// The fold of nothing, `len` times.
    ///
    /// # Safety
    ///
    /// There is room for so many.
    pub(super) unsafe fn nothing(&self, out: *mut u8, len: usize) {
        let (mut one, mut spare) = ([0_u64; 2], [0_u64; 2]);
        let one: *mut u8 = (&raw mut one).cast();
        // SAFETY: a value of any type fits in each place, and the first one is repeated.
        unsafe {
            self.finish(one, (&raw const self.identity).cast(), (&raw mut spare).cast(), 1);
            pack::<false>(self.gives, out, one, &[(len, 0)]);
        }
    }
}
/// Where elements lie between their fold and the result.
pub(super) struct Spare<'f> {
    folding: &'f Folding,
    folded: Vec<Line>,
    spare: Vec<Line>,
}

impl<'f> Spare<'f> {
    /// For at most that many.
    pub(super) fn new(folding: &'f Folding, most: usize) -> Self {
        let most = if folding.is_done() { 0 } else { most.max(1) };
        Self { folding, folded: room(most * folding.size), spare: room(most * folding.size) }
    }

    /// Has `count` elements folded, and makes results of them.
    ///
    /// # Safety
    ///
    /// There is room for the results; `fold` writes that many elements.
    pub(super) unsafe fn through(
        &mut self,
        out: *mut u8,
        count: usize,
        fold: impl FnOnce(*mut u8),
    ) {
        if self.folding.is_done() {
            return fold(out);
        }
        let (folded, spare) = (self.folded.as_mut_ptr().cast(), self.spare.as_mut_ptr().cast());
        fold(folded);
        // SAFETY: the elements were folded, and there is room for as many.
        unsafe { self.folding.finish(out, folded, spare, count) };
    }
}
