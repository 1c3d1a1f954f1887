//! Operands laid onto a result: its shape, and every operand's strides along it.
//!
//! The rules live in the core. The two common ones, NumPy's and that to a shape, are asked for axis
//! by axis here, with the core's [`join`], so that tiny arrays stay cheap: nothing is allocated where
//! there are no more than eight axes. Every other rule, and every error, comes from a plan.

use ndarray::Dimension;
use simulcast_core::{BroadcastError, Plan, Refusal, Rule, join, resolve};

use crate::layout::small_vec::{INLINE, Inline};

/// The shape of a result, and the strides along it of `N` operands.
#[derive(Clone, Debug)]
pub struct Laid<const N: usize> {
    pub(crate) shape: Inline<usize>,
    pub(crate) strides: [Inline<isize>; N],
    /// The number of elements of the result.
    pub(crate) len: usize,
}

impl<const N: usize> Default for Laid<N> {
    #[inline(always)]
    fn default() -> Self {
        Self { shape: Inline::new(), strides: [const { Inline::new() }; N], len: 0 }
    }
}

impl<const N: usize> Laid<N> {
    /// Lays operands of these shapes and strides under a rule.
    #[inline(always)]
    pub(crate) fn new(
        rule: Rule<'_>,
        shapes: [&[usize]; N],
        strides: [&[isize]; N],
    ) -> Result<Self, BroadcastError> {
        let mut laid = Self::default();
        laid.lay(rule, &shapes, &strides)?;
        Ok(laid)
    }

    /// The strides of each operand.
    #[inline(always)]
    pub(crate) fn slices(&self) -> [&[isize]; N] {
        std::array::from_fn(|n| &self.strides[n][..])
    }

    /// [`Laid::new`] in place, for `N` operands at most: a few hundred bytes are not moved about for tiny arrays.
    #[inline(always)]
    pub(crate) fn lay(
        &mut self,
        rule: Rule<'_>,
        shapes: &[&[usize]],
        strides: &[&[isize]],
    ) -> Result<(), BroadcastError> {
        self.len = lay(rule, shapes, strides, &mut self.shape, &mut self.strides)?;
        Ok(())
    }
}

/// Lays operands of these shapes and strides: writes the result's shape and their strides along it, and gives the number
/// of elements. Compiled once, for any number of operands.
fn lay(
    rule: Rule<'_>,
    shapes: &[&[usize]],
    own: &[&[isize]],
    result: &mut Inline<usize>,
    strides: &mut [Inline<isize>],
) -> Result<usize, BroadcastError> {
    let done = match rule {
        Rule::Numpy => right_aligned(None, shapes, own, result, strides),
        Rule::To { target } => right_aligned(Some(target), shapes, own, result, strides),
        _ => None,
    };
    match done {
        Some(len) => Ok(len),
        None => planned(rule, shapes, own, result, strides),
    }
}

/// [`Rule::Numpy`], or [`Rule::To`] a target, for few axes, without an allocation; `None` leaves the answer to the plan.
fn right_aligned(
    target: Option<&[usize]>,
    shapes: &[&[usize]],
    own: &[&[isize]],
    result: &mut Inline<usize>,
    strides: &mut [Inline<isize>],
) -> Option<usize> {
    let rank = shapes.iter().chain(&target).map(|shape| shape.len()).max()?;
    if rank > INLINE {
        return None;
    }
    result.grow(rank, 1);
    for shape in shapes.iter().chain(&target) {
        join_into(result, shape)?;
    }
    if target.is_some_and(|target| !same(target, result)) {
        return None;
    }
    for ((own, shape), all) in own.iter().zip(shapes).zip(strides) {
        all.grow(rank, 0);
        let axes = own.iter().zip(*shape).rev();
        for ((stride, result), (&own, size)) in all.iter_mut().zip(&**result).rev().zip(axes) {
            *stride = if size == result { own } else { 0 };
        }
    }
    checked_len(result).ok()
}

/// The way through a plan: for many axes, for other rules, and for errors.
#[cold]
fn planned(
    rule: Rule<'_>,
    shapes: &[&[usize]],
    own: &[&[isize]],
    result: &mut Inline<usize>,
    strides: &mut [Inline<isize>],
) -> Result<usize, BroadcastError> {
    let plan = resolve(rule, shapes)?;
    let refused = |refusal| BroadcastError::new(rule, shapes, refusal);
    for (operand, (out, own)) in strides.iter_mut().zip(own).enumerate() {
        *out = strides_under(&plan, operand, own).map_err(refused)?;
    }
    let len = checked_len(plan.shape()).map_err(refused)?;
    *result = Inline::from_slice(plan.shape());
    Ok(len)
}

/// Joins a shape with a result so far, aligned on the right, of at least as many axes; `None` where they clash. The one
/// place outside of the core that knows NumPy's rule, by the core's own [`join`].
#[inline]
fn join_into(result: &mut [usize], shape: &[usize]) -> Option<()> {
    for (result, &size) in result.iter_mut().rev().zip(shape.iter().rev()) {
        *result = join(*result, size)?;
    }
    Some(())
}

/// Whether two shapes are one: a comparison that is not worth a call.
#[inline(always)]
pub(crate) fn same(a: &[usize], b: &[usize]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a == b)
}

/// Whether shapes broadcast under [`Rule::Numpy`], and an array of the result may exist.
#[inline(always)]
pub(crate) fn fit(shapes: &[&[usize]]) -> bool {
    let rank = shapes.iter().map(|shape| shape.len()).max().unwrap_or(0);
    let mut product = 1_isize;
    for back in 1..=rank {
        let mut result = 1;
        for shape in shapes {
            let own = shape.len().checked_sub(back).map_or(1, |at| shape[at]);
            let Some(joined) = join(result, own) else { return false };
            result = joined;
        }
        let size = isize::try_from(result.max(1)).ok();
        let Some(all) = size.and_then(|size| product.checked_mul(size)) else { return false };
        product = all;
    }
    true
}

/// The common shape under [`Rule::Numpy`], where there is one of that dimension.
#[inline(always)]
pub(crate) fn common<'s, D: Dimension>(
    shapes: impl Iterator<Item = &'s [usize]> + Clone,
) -> Option<D> {
    let rank = shapes.clone().map(<[usize]>::len).max()?;
    if D::NDIM.is_some_and(|own| own != rank) {
        return None;
    }
    let mut dim = D::zeros(rank);
    let sizes = dim.slice_mut();
    sizes.fill(1);
    for shape in shapes {
        join_into(sizes, shape)?;
    }
    Some(dim)
}

/// The strides of an operand along a plan's result.
pub(crate) fn strides_under(
    plan: &Plan,
    operand: usize,
    own: &[isize],
) -> Result<Inline<isize>, Refusal> {
    Ok(Inline::from_slice(&plan.strides(operand, own)?))
}

/// The number of elements, where an array of that shape may exist: the product of the sizes other
/// than 0 fits in `isize`, as `ndarray` requires.
#[inline]
pub(crate) fn checked_len(shape: &[usize]) -> Result<usize, Refusal> {
    let (mut product, mut empty) = (1_usize, false);
    for &size in shape {
        empty |= size == 0;
        product = product.checked_mul(size.max(1)).ok_or(Refusal::Overflow)?;
    }
    if isize::try_from(product).is_err() {
        return Err(Refusal::Overflow);
    }
    Ok(if empty { 0 } else { product })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 8 } else { 2048 }))]

        // [E_BROADCAST_ANY_FUNC_3030, E_BROADCAST_ANY_ERR_3010]
        #[test]
        fn what_fits_is_what_can_be_laid(shapes in prop::collection::vec(
            prop::collection::vec(prop::sample::select(vec![0, 1, 2, 3, 1 << 31, usize::MAX]), 0..4), 3
        )) {
            let shapes: [&[usize]; 3] = std::array::from_fn(|n| &shapes[n][..]);
            let strides = shapes.map(|shape| vec![1; shape.len()]);
            let strides = std::array::from_fn(|n| &strides[n][..]);
            prop_assert_eq!(fit(&shapes), Laid::new(Rule::Numpy, shapes, strides).is_ok());
            let plan = resolve(Rule::Numpy, &shapes);
            prop_assert_eq!(fit(&shapes), plan.is_ok_and(|plan| checked_len(plan.shape()).is_ok()));
        }
    }
}
