//! Tiny results: rows of at most two axes, one after the other, without a nest.
//!
//! With a closure all of this is inlined where it is called: of three elements, every call counts.

use simulcast_kernels::tuning::TINY_ELEMENTS;

use super::inner_loop::{Facts, InnerLoop, Operands, Repeated, RowLoop, Run};
use super::strategy::Stores;

/// An array of a tiny call: its shape, and its strides in elements.
pub(crate) type Array<'a> = (&'a [usize], &'a [isize]);

/// Whether so few results are computed without a nest, where they have one or two axes.
#[inline(always)]
pub(crate) fn is_tiny(len: usize) -> bool {
    len <= TINY_ELEMENTS
}

/// Rows and columns, and how far each of at most `A` arrays moves along a row and from row to row, in bytes; the result
/// is the first of them.
pub(crate) struct Tiny<const A: usize> {
    rows: usize,
    columns: usize,
    along: [isize; A],
    down: [isize; A],
    repeated: Operands,
    is_contiguous: bool,
}

impl<const A: usize> Tiny<A> {
    /// The rows of a call on these arrays, the result first: where it is tiny, has rows of contiguous results, and all
    /// operands stretch to it under NumPy's rule.
    #[inline(always)]
    pub(crate) fn new(facts: &Facts<'_>, arrays: &[Array<'_>]) -> Option<Self> {
        let &(shape, _) = arrays.first()?;
        let (rows, columns) = match *shape {
            [columns] => (1, columns),
            [rows, columns] => (rows, columns),
            _ => return None,
        };
        let len = rows.saturating_mul(columns);
        if len == 0 || !is_tiny(len) || arrays.len() > A {
            return None;
        }
        let (along, down) = ([0; A], [0; A]);
        let mut tiny = Self { rows, columns, along, down, repeated: 0, is_contiguous: true };
        let mut follows = true;
        for (array, &(own, strides)) in arrays.iter().enumerate() {
            let step = |result: usize, size: usize, stride: isize| match size {
                _ if size == result => Some(stride),
                1 => Some(0),
                _ => None,
            };
            let (down, along) = match (own, strides) {
                ([], []) => (0, 0),
                (&[width], &[along]) => (0, step(columns, width, along)?),
                (&[height, width], &[down, along]) if shape.len() == 2 => {
                    (step(rows, height, down)?, step(columns, width, along)?)
                }
                _ => return None,
            };
            let size = facts.sizes[array].cast_signed();
            let (down, along) = (down * size, along * size);
            (tiny.down[array], tiny.along[array]) = (down, along);
            follows &= down == along * columns.cast_signed();
            if along == 0 && array > 0 && size > 0 {
                tiny.repeated |= 1 << (array - 1);
                tiny.is_contiguous &= facts.repeated == Repeated::Element;
            } else {
                tiny.is_contiguous &= along == size;
            }
        }
        // Programs gather what is not contiguous; a nest does that better.
        if !tiny.is_contiguous && facts.repeated == Repeated::Element {
            return None;
        }
        if follows {
            (tiny.rows, tiny.columns) = (1, len);
        }
        Some(tiny)
    }

    /// Computes the rows.
    ///
    /// # Safety
    ///
    /// `out` and `ins` are those of the arrays that these rows were made for, with the facts of this inner loop: the invariant
    /// of [`super::inner_loop`] holds for them.
    #[inline(always)]
    pub(crate) unsafe fn run<L: InnerLoop + ?Sized>(
        &self,
        inner: &mut L,
        mut out: *mut u8,
        ins: &[*const u8],
    ) {
        let rows = RowLoop { count: self.rows, steps: &self.down };
        // SAFETY: the rows lie within the arrays: `new` compared their sizes, and their steps with the sizes of elements.
        unsafe {
            if self.is_contiguous {
                let (repeated, len) = (self.repeated, self.columns);
                return inner.few(
                    &Run { out, ins, repeated, prefetch: 0, stores: Stores::Cached, len },
                    rows,
                );
            }
            let mut places = [std::ptr::null(); A];
            let places = &mut places[..ins.len()];
            places.copy_from_slice(ins);
            for _ in 0..self.rows {
                inner.strided(out, places, &self.along[..=ins.len()], self.columns);
                rows.advance(&mut out, places);
            }
        }
    }
}
