//! Where a product goes: a matrix that can be cut by rows and by columns, so that threads write parts of one result.

use std::marker::PhantomData;

/// A matrix in memory that is written: its rows are contiguous, and its elements are of no other.
///
/// ```
/// # #[cfg(feature = "product")] {
/// use simulcast_kernels::product::Out;
///
/// let mut all = [0; 6];
/// let (left, right) = Out::new(&mut all, [2, 3]).unwrap().split_columns(1);
/// left.fill(1);
/// right.fill(2);
/// assert_eq!(all, [1, 2, 2, 1, 2, 2]);
/// # }
/// ```
#[derive(Debug)]
pub struct Out<'a, T> {
    /// To `rows` rows of `columns` elements, each row `down` elements after the one before: all within one exclusive
    /// borrow for `'a`, and in no other `Out`.
    to: *mut T,
    sizes: [usize; 2],
    down: usize,
    of: PhantomData<&'a mut [T]>,
}

// SAFETY: it is an exclusive borrow of its elements, as `&mut [T]` is.
unsafe impl<T: Send> Send for Out<'_, T> {}
// SAFETY: a shared reference to it reaches no element.
unsafe impl<T: Sync> Sync for Out<'_, T> {}

impl<'a, T> Out<'a, T> {
    /// All elements, row after row; `None` where they are not as many.
    #[must_use]
    pub fn new(elements: &'a mut [T], [rows, columns]: [usize; 2]) -> Option<Self> {
        let fits = rows.checked_mul(columns) == Some(elements.len());
        let to = elements.as_mut_ptr();
        fits.then_some(Self { to, sizes: [rows, columns], down: columns, of: PhantomData })
    }

    /// Its rows and columns.
    #[must_use]
    pub const fn sizes(&self) -> [usize; 2] {
        self.sizes
    }

    /// The rows before this one, and the others.
    ///
    /// # Panics
    ///
    /// Where it has not so many.
    #[must_use]
    pub fn split_rows(self, at: usize) -> (Self, Self) {
        let [rows, columns] = self.sizes;
        assert!(at <= rows, "{at} of {rows} rows");
        // Of no row, nothing is written: the pointer stays where it is.
        let offset = if at < rows { at * self.down } else { 0 };
        // SAFETY: there is a row, so its first element is within the borrow, or behind its end where it has no columns.
        let rest = unsafe { self.to.add(offset) };
        (
            Self { sizes: [at, columns], ..self },
            Self { to: rest, sizes: [rows - at, columns], ..self },
        )
    }

    /// The columns before this one, and the others.
    ///
    /// # Panics
    ///
    /// Where it has not so many.
    #[must_use]
    pub fn split_columns(self, at: usize) -> (Self, Self) {
        let [rows, columns] = self.sizes;
        assert!(at <= columns, "{at} of {columns} columns");
        let offset = if rows > 0 { at } else { 0 };
        // SAFETY: the first row has so many elements.
        let rest = unsafe { self.to.add(offset) };
        (Self { sizes: [rows, at], ..self }, Self { to: rest, sizes: [rows, columns - at], ..self })
    }

    /// Writes one value everywhere.
    pub fn fill(self, value: T)
    where
        T: Copy,
    {
        let [rows, columns] = self.sizes;
        for row in 0..rows {
            for column in 0..columns {
                // SAFETY: the element is one of the matrix; what it had needs no drop.
                unsafe { self.to.add(row * self.down + column).write(value) };
            }
        }
    }

    /// The first element, and from a row to the next.
    pub(super) fn into_raw(self) -> (*mut T, usize) {
        (self.to, self.down)
    }
}
