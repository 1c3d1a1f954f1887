//! Offsets: where the elements of several operands are, one index of the result after another. Nothing here allocates.

use core::iter::FusedIterator;

use crate::{Refusal, elements};

/// The offsets of the elements of `N` operands, in the row-major order of the result; see [`offsets`].
///
/// ```
/// let mut one = simulcast_core::offsets(&[2], [&[3]])?;
/// assert_eq!((one.len(), one.next(), one.next(), one.next()), (2, Some([0]), Some([3]), None));
/// # Ok::<(), simulcast_core::Refusal>(())
/// ```
#[derive(Clone, Debug)]
pub struct Offsets<'a, const N: usize> {
    shape: &'a [usize],
    strides: [&'a [isize]; N],
    /// How many were given out.
    done: usize,
    len: usize,
    /// The offsets of the next element.
    next: [isize; N],
}

/// The offsets of the elements of `N` operands in row-major order, given a shape and the strides of each along it, as
/// [`strides_into`](crate::strides_into) writes them.
///
/// A step costs a few additions: no index is multiplied by its strides.
///
/// # Errors
///
/// [`Refusal::Buffer`] where an operand has not one stride for each axis; [`Refusal::Overflow`] where the shape has more
/// elements than `usize` holds, or an offset does not fit in `isize`.
///
/// ```
/// use simulcast_core::offsets;
///
/// let (row, column) = ([1, 2, 3], [10, 20]);
/// let sums = offsets(&[2, 3], [&[0, 1], &[1, 0]])?.map(|[a, b]| row[a as usize] + column[b as usize]);
/// assert!(sums.eq([11, 12, 13, 21, 22, 23]));
/// # Ok::<(), simulcast_core::Refusal>(())
/// ```
pub fn offsets<'a, const N: usize>(
    shape: &'a [usize],
    strides: [&'a [isize]; N],
) -> Result<Offsets<'a, N>, Refusal> {
    let len = elements(shape)?;
    for own in strides {
        if own.len() != shape.len() {
            return Err(Refusal::Buffer { needed: shape.len(), given: own.len() });
        }
        if len > 0 {
            // No offset lies further away than this, on either side.
            let furthest = own.iter().zip(shape).try_fold(0_usize, |furthest, (stride, &size)| {
                furthest.checked_add(stride.unsigned_abs().checked_mul(size.saturating_sub(1))?)
            });
            if furthest.is_none_or(|furthest| isize::try_from(furthest).is_err()) {
                return Err(Refusal::Overflow);
            }
        }
    }
    Ok(Offsets { shape, strides, done: 0, len, next: [0; N] })
}

impl<const N: usize> Iterator for Offsets<'_, N> {
    type Item = [isize; N];

    fn next(&mut self) -> Option<[isize; N]> {
        if self.done == self.len {
            return None;
        }
        let current = self.next;
        self.done = self.done.saturating_add(1);
        let mut left = self.done;
        for (axis, &size) in self.shape.iter().enumerate().rev() {
            let at_end = left.checked_rem(size) == Some(0);
            for (offset, strides) in self.next.iter_mut().zip(&self.strides) {
                // Never `None`, and nothing wraps: lengths and offsets were checked.
                let stride = strides.get(axis).copied().unwrap_or(0);
                *offset = match at_end {
                    true => {
                        let back = size.saturating_sub(1).cast_signed();
                        offset.wrapping_sub(stride.wrapping_mul(back))
                    }
                    false => offset.wrapping_add(stride),
                };
            }
            if !at_end {
                break;
            }
            left = left.checked_div(size).unwrap_or(0);
        }
        Some(current)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.len.saturating_sub(self.done);
        (left, Some(left))
    }
}

impl<const N: usize> ExactSizeIterator for Offsets<'_, N> {}
impl<const N: usize> FusedIterator for Offsets<'_, N> {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shape_without_axes_has_one_element_and_an_empty_one_none() {
        assert!(offsets(&[], [&[], &[]]).unwrap().eq([[0, 0]]));
        assert_eq!(offsets(&[3, 0, usize::MAX], [&[isize::MAX; 3]]).unwrap().count(), 0);
    }

    #[test]
    fn offsets_that_do_not_fit_are_refused() {
        let refused = |shape: &[usize], strides: &[isize]| offsets(shape, [strides]).unwrap_err();
        assert_eq!(refused(&[2, 2], &[1]), Refusal::Buffer { needed: 2, given: 1 });
        assert_eq!(refused(&[3], &[isize::MAX]), Refusal::Overflow);
        assert_eq!(refused(&[2, 2], &[isize::MAX, -1]), Refusal::Overflow);
        assert_eq!(refused(&[usize::MAX, 2], &[0, 0]), Refusal::Overflow);
        assert!(offsets(&[2], [&[-isize::MAX]]).unwrap().eq([[0], [-isize::MAX]]));
    }
}
