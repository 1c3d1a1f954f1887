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
        laid.lay(rule, shapes, strides)?;
        Ok(laid)
    }

    /// The strides of each operand.
    #[inline(always)]
    pub(crate) fn slices(&self) -> [&[isize]; N] {
        std::array::from_fn(|n| &self.strides[n][..])
    }

    /// [`Laid::new`] in place: a few hundred bytes are not moved about for tiny arrays.
    #[inline(always)]
    pub(crate) fn lay(
        &mut self,
        rule: Rule<'_>,
        shapes: [&[usize]; N],
        strides: [&[isize]; N],
    ) -> Result<(), BroadcastError> {
        let done = match rule {
            Rule::Numpy => self.right_aligned(None, &shapes, &strides),
            Rule::To { target } => self.right_aligned(Some(target), &shapes, &strides),
            _ => None,
        };
        if done.is_some() {
            return Ok(());
        }
        *self = Self::planned(rule, shapes, strides)?;
        Ok(())
    }

    /// [`Rule::Numpy`], or [`Rule::To`] a target, for few axes, without an allocation; `None` sends
    /// the question to the plan.
    #[inline(always)]
    fn right_aligned(
        &mut self,
        target: Option<&[usize]>,
        shapes: &[&[usize]; N],
        strides: &[&[isize]; N],
    ) -> Option<()> {
        let rank = shapes.iter().chain(&target).map(|shape| shape.len()).max()?;
        if rank > INLINE {
            return None;
        }
        self.shape.grow(rank, 1);
        self.strides.iter_mut().for_each(|strides| strides.grow(rank, 0));
        for shape in shapes.iter().chain(&target) {
            for (result, &size) in self.shape.iter_mut().rev().zip(shape.iter().rev()) {
                *result = join(*result, size)?;
            }
        }
        if target.is_some_and(|target| !same(target, &self.shape)) {
            return None;
        }
        for ((own, shape), all) in strides.iter().zip(shapes).zip(&mut self.strides) {
            let axes = own.iter().zip(*shape).rev();
            for ((stride, result), (&own, size)) in all.iter_mut().zip(&*self.shape).rev().zip(axes)
            {
                *stride = if size == result { own } else { 0 };
            }
        }
        self.len = checked_len(&self.shape).ok()?;
        Some(())
    }

    /// The way through a plan: for many axes, and for errors.
    #[cold]
    fn planned(
        rule: Rule<'_>,
        shapes: [&[usize]; N],
        strides: [&[isize]; N],
    ) -> Result<Self, BroadcastError> {
        let plan = resolve(rule, &shapes)?;
        let refused = |refusal| BroadcastError::new(rule, &shapes, refusal);
        let mut all = [const { Inline::new() }; N];
        for (operand, (out, own)) in all.iter_mut().zip(strides).enumerate() {
            *out = strides_under(&plan, operand, own).map_err(refused)?;
        }
        let len = checked_len(plan.shape()).map_err(refused)?;
        Ok(Self { shape: Inline::from_slice(plan.shape()), strides: all, len })
    }
}

/// Whether two shapes are one: a comparison that is not worth a call.
#[inline(always)]
pub(crate) fn same(a: &[usize], b: &[usize]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a == b)
}

/// Whether shapes broadcast under [`Rule::Numpy`], and an array of the result may exist.
#[inline(always)]
pub(crate) fn fit<const N: usize>(shapes: [&[usize]; N]) -> bool {
    let rank = shapes.iter().map(|shape| shape.len()).max().unwrap_or(0);
    let mut product = 1_isize;
    for back in 0..rank {
        let mut result = 1;
        for shape in shapes {
            let own = if back < shape.len() { shape[shape.len() - 1 - back] } else { 1 };
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
        for (result, &size) in sizes.iter_mut().rev().zip(shape.iter().rev()) {
            *result = join(*result, size)?;
        }
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
            prop_assert_eq!(fit(shapes), Laid::new(Rule::Numpy, shapes, strides).is_ok());
            let plan = resolve(Rule::Numpy, &shapes);
            prop_assert_eq!(fit(shapes), plan.is_ok_and(|plan| checked_len(plan.shape()).is_ok()));
        }
    }
}
