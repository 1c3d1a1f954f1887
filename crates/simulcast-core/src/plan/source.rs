//! Sources: where a result axis gets its elements from, and the strides that follow.
//!
//! Nothing here allocates.

use crate::{Refusal, elements};

/// Where a result axis gets its elements from, in one operand.
///
/// ```
/// use simulcast_core::{Rule, Source, resolve};
///
/// let plan = resolve(Rule::Numpy, &[&[8, 1][..], &[7]])?;
/// assert_eq!(plan.sources(0)?, [Source::Kept(0), Source::Stretched(1)]);
/// assert_eq!(plan.sources(1)?, [Source::Added, Source::Kept(0)]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Source {
    /// From that axis of the operand, element by element.
    Kept(usize),
    /// From that axis of the operand, which has size 1 and is repeated.
    Stretched(usize),
    /// From no axis: the operand lacks it and is repeated along it.
    #[default]
    Added,
}

impl Source {
    /// The source of a result axis of size `result` that axis `axis`, of size `size`, feeds.
    pub(crate) const fn of(axis: usize, size: usize, result: usize) -> Self {
        if size == result { Self::Kept(axis) } else { Self::Stretched(axis) }
    }

    /// Whether one element is shown a number of times other than once along a result axis of `size`.
    #[must_use]
    pub const fn repeats(&self, size: usize) -> bool {
        match self {
            Self::Kept(_) => false,
            Self::Stretched(_) => true,
            Self::Added => size != 1,
        }
    }
}

// Implements E_BROADCAST_ANY_FUNC_0100.
/// Writes the strides of a view of the result's shape, given an operand's own; 0 where it repeats.
///
/// # Errors
///
/// [`Refusal::Buffer`] where `out` is shorter than `sources`, or `strides` lacks an axis.
///
/// ```
/// use simulcast_core::{Source, view_strides_into};
///
/// let sources = [Source::Added, Source::Kept(0), Source::Stretched(1)];
/// let mut strides = [0; 3];
/// view_strides_into(&sources, &[-5, 5], &mut strides)?;
/// assert_eq!(strides, [0, -5, 0]);
/// # Ok::<(), simulcast_core::Refusal>(())
/// ```
pub fn view_strides_into(
    sources: &[Source],
    strides: &[isize],
    out: &mut [isize],
) -> Result<(), Refusal> {
    if out.len() < sources.len() {
        return Err(Refusal::Buffer { needed: sources.len(), given: out.len() });
    }
    for (source, stride) in sources.iter().zip(out) {
        *stride = match *source {
            Source::Kept(axis) => match strides.get(axis) {
                Some(&own) => own,
                None => {
                    let needed = axis.saturating_add(1);
                    return Err(Refusal::Buffer { needed, given: strides.len() });
                }
            },
            Source::Stretched(_) | Source::Added => 0,
        };
    }
    Ok(())
}

/// The offset of the element at `index`, through strides.
///
/// # Errors
///
/// [`Refusal::Buffer`] where the two have different lengths, [`Refusal::Overflow`] where the offset
/// does not fit in `isize`.
///
/// ```
/// use simulcast_core::offset_through;
///
/// assert_eq!(offset_through(&[0, -5, 1], &[7, 2, 3]), Ok(-7));
/// ```
pub fn offset_through(strides: &[isize], index: &[usize]) -> Result<isize, Refusal> {
    if strides.len() != index.len() {
        return Err(Refusal::Buffer { needed: strides.len(), given: index.len() });
    }
    strides
        .iter()
        .zip(index)
        .try_fold(0_isize, |offset, (&stride, &at)| match (stride, isize::try_from(at)) {
            (0, _) => Some(offset),
            (_, Ok(at)) => offset.checked_add(stride.checked_mul(at)?),
            (_, Err(_)) => None,
        })
        .ok_or(Refusal::Overflow)
}

/// Writes the strides of a row-major array of that shape, in elements; zeros where it is empty.
///
/// # Errors
///
/// [`Refusal::Overflow`] where its elements do not fit in `isize`, [`Refusal::Buffer`] where `out`
/// is shorter than `shape`.
///
/// ```
/// use simulcast_core::row_major_into;
///
/// let mut strides = [0; 3];
/// row_major_into(&[7, 1, 5], &mut strides)?;
/// assert_eq!(strides, [5, 5, 1]);
/// # Ok::<(), simulcast_core::Refusal>(())
/// ```
pub fn row_major_into(shape: &[usize], out: &mut [isize]) -> Result<(), Refusal> {
    let given = out.len();
    let Some(out) = out.get_mut(..shape.len()) else {
        return Err(Refusal::Buffer { needed: shape.len(), given });
    };
    let Ok(all) = isize::try_from(elements(shape)?) else { return Err(Refusal::Overflow) };
    if all == 0 {
        out.fill(0);
        return Ok(());
    }
    let mut left = 1_isize;
    for (stride, &size) in out.iter_mut().zip(shape).rev() {
        *stride = left;
        // No product of sizes exceeds that of all sizes, since none is 0.
        left = left.saturating_mul(size.cast_signed());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    // [E_BROADCAST_ANY_FUNC_0100]
    #[test]
    fn strides_are_refused_where_a_slice_is_too_short() {
        let sources = [Source::Added, Source::Kept(1)];
        let refused = view_strides_into(&sources, &[1], &mut [0; 2]);
        assert_eq!(refused, Err(Refusal::Buffer { needed: 2, given: 1 }));
        let refused = view_strides_into(&sources, &[1, 1], &mut [0; 1]);
        assert_eq!(refused, Err(Refusal::Buffer { needed: 2, given: 1 }));
    }

    // [E_BROADCAST_ANY_ERR_0080]
    #[test]
    fn offsets_never_wrap() {
        assert_eq!(offset_through(&[-3, 0, 2], &[1, usize::MAX, 5]), Ok(7));
        assert_eq!(offset_through(&[isize::MAX, 1], &[1, 1]), Err(Refusal::Overflow));
        assert_eq!(offset_through(&[isize::MAX], &[2]), Err(Refusal::Overflow));
        assert_eq!(offset_through(&[1], &[usize::MAX]), Err(Refusal::Overflow));
        assert_eq!(offset_through(&[1], &[]), Err(Refusal::Buffer { needed: 1, given: 0 }));
    }

    // [E_BROADCAST_ANY_ERR_0080]
    #[test]
    fn row_major_strides_never_wrap() {
        let mut out = [7; 3];
        assert_eq!(row_major_into(&[0, usize::MAX, usize::MAX], &mut out), Ok(()));
        assert_eq!(out, [0, 0, 0]);
        assert_eq!(row_major_into(&[1, usize::MAX / 2, 3], &mut out), Err(Refusal::Overflow));
        assert_eq!(row_major_into(&[usize::MAX], &mut out), Err(Refusal::Overflow));
        let short = row_major_into(&[2, 2, 2, 2], &mut out);
        assert_eq!(short, Err(Refusal::Buffer { needed: 4, given: 3 }));
    }
}
