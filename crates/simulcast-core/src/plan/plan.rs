//! Plans: what goes where. Everything after a rule sees only this.
//!
//! A plan holds the result shape and, for each axis of each operand, its size and the result axis
//! that it feeds. That is linear in the total number of sizes, so 100,000 operands are no problem,
//! and it says all that views, copies, loops and gradients need to know.

use alloc::string::String;
use alloc::vec::Vec;

use crate::{Names, OwnedRule, Refusal, Rule, Source, elements, row_major_into, view_strides_into};

/// How operand axes were aligned with result axes.
///
/// ```
/// use simulcast_core::{Alignment, Rule, resolve};
///
/// let alignment = |rule| resolve(rule, &[&[2, 3][..], &[2]]).map(|plan| plan.alignment());
/// assert_eq!(alignment(Rule::Pdpd { axis: Some(0) })?, Alignment::Given);
/// assert_eq!(resolve(Rule::Numpy, &[[2, 3]])?.alignment(), Alignment::Right);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "lowercase"))]
pub enum Alignment {
    /// By counting axes from the right: the rule names no axis.
    Right,
    /// By an axis, a mapping or names that the caller gave.
    Given,
}

// Implements E_BROADCAST_ANY_FUNC_0050, E_BROADCAST_ANY_CONSTR_X_0020.
/// Which operand axis feeds which result axis, under one rule.
///
/// ```
/// use simulcast_core::{Rule, Source, resolve};
///
/// let plan = resolve(Rule::Numpy, &[&[8, 1, 6, 1][..], &[7, 1, 5]])?;
/// assert_eq!(plan.sources(0)?, [0, 1, 2, 3].map(|k| match k {
///     1 | 3 => Source::Stretched(k),
///     _ => Source::Kept(k),
/// }));
/// assert_eq!(plan.strides(1, &[5, 5, 1])?, [0, 5, 0, 1]);
/// assert_eq!(plan.offset(1, &[7, 6, 5, 4])?, 34);
/// assert_eq!(plan.sum_axes(1)?, [0, 2]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(
    feature = "serde",
    serde(try_from = "super::stored::Stored", into = "super::stored::Stored")
)]
pub struct Plan {
    pub(super) rule: OwnedRule,
    pub(super) alignment: Alignment,
    pub(super) shape: Vec<usize>,
    /// Of all operands, one after another: the size, and the result axis; `None` is a dropped 1.
    pub(super) axes: Vec<(usize, Option<usize>)>,
    /// Where the axes of each operand end in `axes`.
    pub(super) ends: Vec<usize>,
    pub(super) names: Names,
}

impl Plan {
    pub(crate) fn new(
        rule: Rule<'_>,
        shape: Vec<usize>,
        axes: Vec<(usize, Option<usize>)>,
        ends: Vec<usize>,
    ) -> Self {
        let alignment = match rule.is_right_aligned() {
            true => Alignment::Right,
            false => Alignment::Given,
        };
        // The labels of named axes stand in `axes` already.
        let rule = OwnedRule::from(rule.without_labels());
        Self { rule, alignment, shape, axes, ends, names: Names::default() }
    }

    /// The shape that the rule itself carried, if any; it ends where the result ends.
    #[must_use]
    pub fn target(&self) -> Option<&[usize]> {
        self.rule.target()
    }

    /// The plan with names for its operands and their axes, which findings and texts then use.
    #[must_use]
    pub fn with_names(mut self, names: Names) -> Self {
        self.names = names;
        self
    }

    /// The names of operands and axes.
    #[must_use]
    pub fn names(&self) -> &Names {
        &self.names
    }

    /// The rule that was resolved, with its parameters but for the labels of `named`.
    #[must_use]
    pub fn rule(&self) -> &OwnedRule {
        &self.rule
    }

    /// Whether axes were counted from the right, or the caller said where they belong.
    #[must_use]
    pub fn alignment(&self) -> Alignment {
        self.alignment
    }

    /// The result shape.
    #[must_use]
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The number of operands.
    #[must_use]
    pub fn operand_count(&self) -> usize {
        self.ends.len()
    }

    /// The size of each axis of an operand, and the result axis that it feeds.
    ///
    /// `None` stands for an axis of size 1 that feeds no result axis.
    ///
    /// # Errors
    ///
    /// [`Refusal::Index`] where there is no such operand.
    pub fn axes(&self, operand: usize) -> Result<&[(usize, Option<usize>)], Refusal> {
        let Some(&end) = self.ends.get(operand) else {
            return Err(Refusal::Index { index: operand, len: self.ends.len() });
        };
        let start = match operand.checked_sub(1) {
            Some(before) => self.ends.get(before).copied().unwrap_or(0),
            None => 0,
        };
        Ok(self.axes.get(start..end).unwrap_or(&[]))
    }

    /// The shape of an operand, as it was given.
    ///
    /// # Errors
    ///
    /// [`Refusal::Index`] where there is no such operand.
    pub fn operand_shape(&self, operand: usize) -> Result<Vec<usize>, Refusal> {
        Ok(self.axes(operand)?.iter().map(|&(size, _)| size).collect())
    }

    /// The source of each result axis in an operand.
    ///
    /// # Errors
    ///
    /// [`Refusal::Index`] where there is no such operand.
    pub fn sources(&self, operand: usize) -> Result<Vec<Source>, Refusal> {
        let mut sources = alloc::vec![Source::Added; self.shape.len()];
        for (axis, &(size, target)) in self.axes(operand)?.iter().enumerate() {
            let Some(target) = target else { continue };
            // Never else: targets are below the result's rank.
            if let (Some(source), Some(&result)) = (sources.get_mut(target), self.shape.get(target))
            {
                *source = Source::of(axis, size, result);
            }
        }
        Ok(sources)
    }

    /// The source of one result axis in an operand.
    ///
    /// # Errors
    ///
    /// [`Refusal::Index`] where there is no such operand or no such axis.
    pub fn source(&self, operand: usize, axis: usize) -> Result<Source, Refusal> {
        let Some(&result) = self.shape.get(axis) else {
            return Err(Refusal::Index { index: axis, len: self.shape.len() });
        };
        let axes = self.axes(operand)?;
        let fed = axes.iter().position(|&(_, target)| target == Some(axis));
        let size = fed.and_then(|own| axes.get(own));
        Ok(match (fed, size) {
            (Some(own), Some(&(size, _))) => Source::of(own, size, result),
            _ => Source::Added,
        })
    }

    /// Whether an operand's elements appear more than once, or not at all, in the result.
    ///
    /// # Errors
    ///
    /// [`Refusal::Index`] where there is no such operand.
    pub fn is_repeated(&self, operand: usize) -> Result<bool, Refusal> {
        let sources = self.sources(operand)?;
        Ok(sources.iter().zip(&self.shape).any(|(source, &size)| source.repeats(size)))
    }

    /// The strides of a view of the result's shape, given the operand's own; 0 where it repeats.
    ///
    /// Strides are signed and in whatever unit the caller counts: elements or bytes.
    ///
    /// # Errors
    ///
    /// [`Refusal::Index`] where there is no such operand, [`Refusal::Buffer`] where `strides` does
    /// not have one entry for each of its axes.
    pub fn strides(&self, operand: usize, strides: &[isize]) -> Result<Vec<isize>, Refusal> {
        let rank = self.axes(operand)?.len();
        if strides.len() != rank {
            return Err(Refusal::Buffer { needed: rank, given: strides.len() });
        }
        let mut out = alloc::vec![0; self.shape.len()];
        view_strides_into(&self.sources(operand)?, strides, &mut out)?;
        Ok(out)
    }

    /// The strides, in elements, of a view of the result's shape of an operand that lies row-major.
    ///
    /// ```
    /// use simulcast_core::{Rule, resolve};
    ///
    /// let plan = resolve(Rule::Numpy, &[&[8, 1, 6][..], &[7, 1]])?;
    /// assert_eq!(plan.row_major_strides(0), Ok(vec![6, 0, 1]));
    /// assert_eq!(plan.row_major_strides(1), Ok(vec![0, 1, 0]));
    /// # Ok::<(), simulcast_core::BroadcastError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Refusal::Index`] where there is no such operand, [`Refusal::Overflow`] where its elements do not fit in
    /// `isize`.
    pub fn row_major_strides(&self, operand: usize) -> Result<Vec<isize>, Refusal> {
        let shape = self.operand_shape(operand)?;
        let mut own = alloc::vec![0; shape.len()];
        row_major_into(&shape, &mut own)?;
        self.strides(operand, &own)
    }

    // Implements E_BROADCAST_ANY_FUNC_0040, E_BROADCAST_ANY_FUNC_0080, E_BROADCAST_ANY_ERR_0070.
    /// The index, in an operand, of the element that the result shows at `index`: i' of the source
    /// documents, with `f` on each axis.
    ///
    /// # Errors
    ///
    /// [`Refusal::Index`] where there is no such operand or `index` lies outside the result.
    pub fn source_index(&self, operand: usize, index: &[usize]) -> Result<Vec<usize>, Refusal> {
        let axes = self.axes(operand)?;
        if index.len() != self.shape.len() {
            return Err(Refusal::Buffer { needed: self.shape.len(), given: index.len() });
        }
        if let Some((&index, &len)) = index.iter().zip(&self.shape).find(|(at, size)| at >= size) {
            return Err(Refusal::Index { index, len });
        }
        let at = |target: Option<usize>| target.and_then(|target| index.get(target)).copied();
        Ok(axes
            .iter()
            .map(|&(size, target)| if size == 1 { 0 } else { at(target).unwrap_or(0) })
            .collect())
    }

    // Implements E_BROADCAST_ANY_FUNC_0100.
    /// The row-major position, in an operand, of the element that the result shows at `index`.
    ///
    /// # Errors
    ///
    /// As [`Plan::source_index`], and [`Refusal::Overflow`] where the position does not fit.
    pub fn offset(&self, operand: usize, index: &[usize]) -> Result<usize, Refusal> {
        let own = self.source_index(operand, index)?;
        self.axes(operand)?
            .iter()
            .zip(own)
            .try_fold(0_usize, |offset, (&(size, _), at)| offset.checked_mul(size)?.checked_add(at))
            .ok_or(Refusal::Overflow)
    }

    // Implements E_BROADCAST_ANY_FUNC_0110, E_BROADCAST_ANY_FUNC_1720.
    /// The result axes that a gradient must be summed over to come back to an operand: those it
    /// lacks and those it stretches along. Then a reshape to the operand's shape is all that is
    /// left, after a transposition where names reordered its axes.
    ///
    /// Under [`Rule::Axes`] these are the `broadcast_axes`, as the backprop formula has it.
    ///
    /// # Errors
    ///
    /// [`Refusal::Index`] where there is no such operand.
    pub fn sum_axes(&self, operand: usize) -> Result<Vec<usize>, Refusal> {
        let sources = self.sources(operand)?;
        let summed = sources.iter().enumerate().filter(|(_, s)| !matches!(s, Source::Kept(_)));
        Ok(summed.map(|(axis, _)| axis).collect())
    }

    /// The number of elements of the result.
    ///
    /// A shape is only arithmetic: a result too large to allocate still has a shape, and only this
    /// question refuses.
    ///
    /// # Errors
    ///
    /// [`Refusal::Overflow`] where it does not fit in `usize`.
    pub fn elements(&self) -> Result<usize, Refusal> {
        elements(&self.shape)
    }

    /// What the broadcast costs.
    #[must_use]
    pub fn cost(&self) -> Cost {
        let mut stored = Some(0_usize);
        for operand in 0..self.operand_count() {
            let own = elements(&self.operand_shape(operand).unwrap_or_default());
            stored = stored.zip(own.ok()).and_then(|(stored, own)| stored.checked_add(own));
        }
        Cost { stored, result: self.elements().ok() }
    }

    /// The name of an operand: the caller's, or a letter.
    #[must_use]
    pub fn operand_name(&self, operand: usize) -> String {
        self.names.operand(operand)
    }
}

/// What a broadcast costs, in elements; `None` is more than fits in `usize`.
///
/// ```
/// use simulcast_core::{Rule, resolve};
///
/// let cost = resolve(Rule::Numpy, &[&[1000, 1][..], &[1000]])?.cost();
/// assert_eq!((cost.stored, cost.result), (Some(2000), Some(1_000_000)));
/// assert_eq!((cost.growth(), cost.result_bytes(4)), (Some(500.0), Some(4_000_000)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cost {
    /// The elements that all operands together store.
    pub stored: Option<usize>,
    /// The elements of the result.
    pub result: Option<usize>,
}

impl Cost {
    /// How many times larger the result is than what is stored; `None` where nothing is stored, or
    /// either is too many to count.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a ratio for people, not for arithmetic")]
    pub fn growth(&self) -> Option<f64> {
        match (self.stored, self.result) {
            (Some(stored @ 1..), Some(result)) => Some(result as f64 / stored as f64),
            _ => None,
        }
    }

    /// The bytes of the result, for elements of that size; `None` where that overflows.
    #[must_use]
    pub fn result_bytes(&self, element: usize) -> Option<usize> {
        self.result?.checked_mul(element)
    }

    /// The bytes of all operands together, for elements of that size; `None` where that overflows.
    #[must_use]
    pub fn stored_bytes(&self, element: usize) -> Option<usize> {
        self.stored?.checked_mul(element)
    }
}
