//! Sizes: the rule for one axis, and products that never wrap.
//!
//! The source documents set the size of an axis to the maximum of the operands' sizes. That is
//! right only while no size is 0: the maximum of 0 and 1 is 1, and an empty tensor has no element
//! to show there. The rule here, as in NumPy, ONNX Runtime and the array API standard: leave out
//! the 1s; what is left must be one value; if nothing is left the size is 1. Wherever no size is 0
//! it equals the maximum.
//!
//! ```
//! use simulcast_core::join;
//!
//! assert_eq!(join(1, 4), Some(4));
//! assert_eq!(join(1, 0), Some(0)); // the maximum would say 1
//! assert_eq!(join(0, 3), None); // error E1
//! ```

use crate::Refusal;

// Implements E_BROADCAST_ANY_FUNC_0030, E_BROADCAST_ANY_FUNC_0060, E_BROADCAST_ANY_FUNC_0070.
/// The common size of two aligned axes, or `None` where they clash (error `E1`).
///
/// Commutative, associative and idempotent, with 1 as its neutral element; so the common size of
/// any number of axes does not depend on their order or grouping.
///
/// ```
/// use simulcast_core::join;
///
/// assert_eq!([join(1, 4), join(1, 0), join(3, 4)], [Some(4), Some(0), None]);
/// ```
#[inline]
#[must_use]
pub const fn join(a: usize, b: usize) -> Option<usize> {
    if a == b {
        return Some(a);
    }
    if a == 1 {
        return Some(b);
    }
    if b == 1 {
        return Some(a);
    }
    None
}

// Implements E_BROADCAST_ANY_ERR_0080.
/// The number of elements of a shape: the product of its sizes, 1 for a scalar.
///
/// A 0 among the sizes gives 0, however large the others are.
///
/// # Errors
///
/// [`Refusal::Overflow`] where the product does not fit in `usize`.
///
/// ```
/// use simulcast_core::elements;
///
/// assert_eq!(elements(&[2, 3, 4]), Ok(24));
/// assert_eq!(elements(&[usize::MAX, usize::MAX, 0]), Ok(0));
/// assert!(elements(&[usize::MAX, 2]).is_err());
/// ```
pub fn elements(shape: &[usize]) -> Result<usize, Refusal> {
    if shape.contains(&0) {
        return Ok(0);
    }
    shape
        .iter()
        .try_fold(1_usize, |product, &size| product.checked_mul(size))
        .ok_or(Refusal::Overflow)
}

#[cfg(test)]
mod tests {
    use super::*;

    // [E_BROADCAST_ANY_FUNC_0030] [E_BROADCAST_ANY_FUNC_0070]
    #[test]
    fn join_is_the_maximum_unless_a_size_is_0() {
        for a in 0..6 {
            for b in 0..6 {
                let seed = if a == b || a == 1 || b == 1 { Some(a.max(b)) } else { None };
                let zero = a == 0 || b == 0;
                match zero {
                    false => assert_eq!(join(a, b), seed, "{a} with {b}"),
                    true => assert_eq!(join(a, b), (a + b <= 1).then_some(0), "{a} with {b}"),
                }
            }
        }
    }

    // [E_BROADCAST_ANY_ERR_0080]
    #[test]
    fn a_zero_among_huge_sizes_gives_zero() {
        assert_eq!(elements(&[usize::MAX, usize::MAX, 0]), Ok(0));
        assert_eq!(elements(&[0, usize::MAX, usize::MAX]), Ok(0));
        assert_eq!(elements(&[usize::MAX]), Ok(usize::MAX));
        assert_eq!(elements(&[]), Ok(1));
        assert_eq!(elements(&[usize::MAX / 2, 3]), Err(Refusal::Overflow));
    }
}
