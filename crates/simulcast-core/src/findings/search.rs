//! The search for findings in a plan, from shapes, names and rule alone.
//!
//! An operand *repeats* along a result axis where it stretches or lacks the axis, and the result's
//! size there is not 1. Scalars (rank 0) are meant to repeat, so they are left out of everything
//! but growth and emptying. Of many operands, the first [`MAX_COMPARED_OPERANDS`] with distinct shapes are
//! compared, so that finding stays linear.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::errors::fix;
use crate::{Alignment, Finding, FindingCode, Fix, Limits, Plan, Source};

/// Operands with distinct shapes that are compared with each other.
///
/// ```
/// assert!(simulcast_core::MAX_COMPARED_OPERANDS > 1);
/// ```
pub const MAX_COMPARED_OPERANDS: usize = 32;

impl Plan {
    // Implements E_BROADCAST_ANY_FUNC_2100.
    /// Everything suspicious about the broadcast.
    ///
    /// ```
    /// use simulcast_core::{FindingCode, Limits, Names, Rule, resolve};
    ///
    /// let plan = resolve(Rule::Numpy, &[&[32, 1][..], &[32]])?;
    /// let findings = plan.with_names(Names::of(["pred", "target"])).findings(&Limits::default());
    /// assert_eq!(findings[0].code, FindingCode::SquareOuter);
    /// let names = Names::of(["pred", "target"]);
    /// assert_eq!(findings[0].fixes[0].expression(&names), "target[:, None]");
    /// # Ok::<(), simulcast_core::BroadcastError>(())
    /// ```
    #[must_use]
    pub fn findings(&self, limits: &Limits) -> Vec<Finding> {
        let looked = Operand::distinct(self);
        let mut found = Vec::new();
        self.growing_pairs(&looked, &mut found);
        let square = found.iter().any(|f: &Finding| f.code == FindingCode::SquareOuter);
        self.rank_promotion(&mut found);
        if !square {
            self.ambiguous(&looked, &mut found);
        }
        self.growth(limits, &mut found);
        self.named_stretch(&looked, &mut found);
        self.emptied(&mut found);
        self.name_mismatch(&looked, &mut found);
        found
    }

    /// SC101 and SC102.
    fn growing_pairs(&self, looked: &[Operand], found: &mut Vec<Finding>) {
        let Some(Pair { p, q, axes: (i, j), square }) = self.growing_pair(looked) else { return };
        let (a, b) = (self.operand_name(p.number), self.operand_name(q.number));
        let (operands, axes) = (alloc::vec![p.number, q.number], alloc::vec![i, j]);
        if !square {
            let message = format!("both grow: {a} along axis {i}, {b} along axis {j}");
            found.push(Finding::new(FindingCode::MutualGrowth, operands, axes, message));
            return;
        }
        let message = format!(
            "a column meets a row of the same length: {a} repeats along axis {i}, {b} along axis {j}"
        );
        let (short, long) = if p.rank < q.rank { (p, q) } else { (q, p) };
        let fixes = self.search(&[short.number, long.number], |plan| !plan.is_growing());
        let square = Finding::new(FindingCode::SquareOuter, operands, axes, message);
        found.push(square.with_fixes(fixes));
    }

    // Implements E_BROADCAST_ANY_FUNC_2110.
    /// Two operands that each repeat along an axis where the other does not: a square pair if there
    /// is one, otherwise the first.
    fn growing_pair<'o>(&self, looked: &'o [Operand]) -> Option<Pair<'o>> {
        let rank = self.shape().len();
        let only = |a: &Operand, b: &Operand| -> Vec<usize> {
            (0..rank)
                .filter(|axis| (a.repeats_at(*axis), b.repeats_at(*axis)) == (true, false))
                .collect()
        };
        let mut first = None;
        for (position, p) in looked.iter().enumerate() {
            for q in looked.iter().skip(position.saturating_add(1)) {
                let (by_p, by_q) = (only(p, q), only(q, p));
                let (Some(&i), Some(&j)) = (by_p.first(), by_q.first()) else { continue };
                let square = match self.alignment() {
                    Alignment::Right => self.square((p, &by_p), (q, &by_q), looked),
                    Alignment::Given => None,
                };
                if let Some(axes) = square {
                    return Some(Pair { p, q, axes, square: true });
                }
                first.get_or_insert(Pair { p, q, axes: (i, j), square: false });
            }
        }
        first
    }

    /// Whether two operands both grow.
    pub(crate) fn is_growing(&self) -> bool {
        self.growing_pair(&Operand::distinct(self)).is_some()
    }

    /// Whether a column meets a row of the same length.
    pub(crate) fn is_square_outer(&self) -> bool {
        self.growing_pair(&Operand::distinct(self)).is_some_and(|pair| pair.square)
    }

    /// The axes on which a column meets a row: the longer operand is the shorter one with ones after
    /// it, `(n, 1)` with `(n,)`, and no third operand has both axes, as `(n, n)` would. Axes before those of
    /// the row are those of a batch, `(b, n, 1)`; a 1 among them was put there to broadcast, as in
    /// `(1, n, 1)`, and so were the ones after it.
    fn square(
        &self,
        (p, by_p): (&Operand, &[usize]),
        (q, by_q): (&Operand, &[usize]),
        looked: &[Operand],
    ) -> Option<(usize, usize)> {
        let shape = |operand: &Operand| self.operand_shape(operand.number).unwrap_or_default();
        let (short, mut long) = match p.rank < q.rank {
            true => (shape(p), shape(q)),
            false => (shape(q), shape(p)),
        };
        let length = long.len();
        while let Some(1) = long.last() {
            long.pop();
        }
        let batch = match (long.len() < length, long.strip_suffix(&*short)) {
            (true, Some(batch)) => batch,
            (false, _) | (_, None) => return None,
        };
        if batch.contains(&1) {
            return None;
        }
        let size = |axis: &usize| self.shape().get(*axis).copied().unwrap_or(0);
        let rows: BTreeSet<usize> = by_q.iter().map(size).collect();
        let i = *by_p.iter().filter(|i| size(i) > 1).find(|i| rows.contains(&size(i)))?;
        let j = *by_q.iter().rfind(|j| size(j) == size(&i))?;
        let has_both = |operand: &Operand| match (operand.repeats_at(i), operand.repeats_at(j)) {
            (false, false) => true,
            (true, _) | (_, true) => false,
        };
        (!looked.iter().any(has_both)).then_some((i, j))
    }

    /// Edits of operands that resolve to a plan for which `accept` holds.
    fn search(&self, operands: &[usize], accept: impl Fn(&Plan) -> bool) -> Vec<Fix> {
        let mut fixes =
            fix::search(self.rule().as_rule(), &self.operand_shapes(), operands, accept);
        fixes.retain(|fix| !matches!(fix.edit(), fix::Edit::Transpose { .. }));
        fixes
    }

    /// One edit, where it resolves.
    fn verified(&self, edit: fix::Edit) -> Option<Fix> {
        fix::verify(self.rule().as_rule(), &self.operand_shapes(), edit, |_| true)
    }

    fn operand_shapes(&self) -> Vec<Vec<usize>> {
        (0..self.operand_count()).map(|m| self.operand_shape(m).unwrap_or_default()).collect()
    }

    /// SC103: JAX's rule, where neither names nor an axis say where the operand belongs.
    fn rank_promotion(&self, found: &mut Vec<Finding>) {
        match self.alignment() {
            Alignment::Right => found.extend(self.padded()),
            Alignment::Given => {}
        }
    }

    /// The first operand that is no scalar and lacks an axis of the result.
    pub(crate) fn padded(&self) -> Option<Finding> {
        let rank = self.shape().len();
        let own = |operand: usize| self.axes(operand).map_or(0, <[_]>::len);
        let operand = (0..self.operand_count()).find(|&m| (1..rank).contains(&own(m)))?;
        let added = rank.saturating_sub(own(operand));
        let plural = if added == 1 { "axis" } else { "axes" };
        let sources = self.sources(operand).unwrap_or_default();
        let axes = (0..).zip(sources).filter(|(_, source)| *source == Source::Added);
        let axes: Vec<usize> = axes.map(|(axis, _)| axis).collect();
        // The same result, with the axes written out.
        let edit = fix::Edit::InsertAxes { operand, axes: axes.clone() };
        let fix = self.verified(edit).filter(|fix| fix.result() == self.shape());
        let name = self.operand_name(operand);
        let message = format!("{name} has rank {} and was given {added} {plural}", own(operand));
        let padded = Finding::new(FindingCode::RankPromotion, alloc::vec![operand], axes, message);
        Some(padded.with_fixes(fix.into_iter().collect()))
    }

    /// SC104: the sizes other than 1 of an operand would meet equal ones at another offset.
    fn ambiguous(&self, looked: &[Operand], found: &mut Vec<Finding>) {
        let rank = self.shape().len();
        let searched = match self.alignment() {
            Alignment::Given => 0..0,
            Alignment::Right => 0..fix::SEARCHED_RANK.saturating_add(1),
        };
        if !searched.contains(&rank) {
            return;
        }
        for operand in looked {
            let shape = self.operand_shape(operand.number).unwrap_or_default();
            let right = rank.saturating_sub(shape.len());
            let fits_from = |start: &usize| {
                let places = self.shape().iter().skip(*start);
                shape.iter().zip(places).all(|(own, size)| [1, *size].contains(own))
            };
            let starts: Vec<usize> = match shape.iter().all(|&size| size == 1) {
                true => continue,
                false => (0..right).filter(fits_from).collect(),
            };
            if starts.is_empty() {
                continue;
            }
            // Trailing axes of size 1 move the operand to the left.
            let fixes = starts.iter().rev().filter_map(|start| {
                let trailing = right.saturating_sub(*start);
                let axes = (shape.len()..shape.len().saturating_add(trailing)).collect();
                let edit = fix::Edit::InsertAxes { operand: operand.number, axes };
                self.verified(edit).filter(|fix| fix.result() == self.shape())
            });
            let said: Vec<String> = starts.iter().map(|start| format!("{start}")).collect();
            let message = format!(
                "{} lies on axis {right} and would fit from axis {} too",
                self.operand_name(operand.number),
                said.join(", ")
            );
            let axes = core::iter::once(right).chain(starts.iter().copied()).collect();
            let (code, operands) = (FindingCode::AmbiguousAlignment, alloc::vec![operand.number]);
            let fixes = fixes.take(4).collect();
            found.push(Finding::new(code, operands, axes, message).with_fixes(fixes));
            return;
        }
    }

    /// SC105: by factor, or by bytes.
    fn growth(&self, limits: &Limits, found: &mut Vec<Finding>) {
        let cost = self.cost();
        let bytes = cost.result_bytes(limits.element);
        let message = match (cost.growth(), cost.result, limits.bytes, bytes) {
            (_, None, ..) => "the result has too many elements to count".into(),
            (Some(growth), ..) if growth > limits.growth => {
                format!("the result has {growth:.1} times the elements of the operands")
            }
            (_, _, Some(limit), Some(bytes)) if bytes <= limit => return,
            (_, _, Some(limit), Some(bytes)) => {
                format!("the result takes {bytes} bytes, more than {limit}")
            }
            (_, _, Some(limit), None) => format!("the result takes more than {limit} bytes"),
            (_, _, None, _) => return,
        };
        found.push(Finding::new(FindingCode::Growth, Vec::new(), Vec::new(), message));
    }

    /// SC106: a name promises a size; 1 is rarely it.
    fn named_stretch(&self, looked: &[Operand], found: &mut Vec<Finding>) {
        for operand in looked {
            for (axis, source) in operand.sources.iter().enumerate() {
                let Source::Stretched(own) = *source else { continue };
                let Some(name) = self.names().axis(operand.number, own) else { continue };
                let own = self.operand_name(operand.number);
                let message = format!("axis {name} of {own} has size 1 and stretches");
                let (operands, axes) = (alloc::vec![operand.number], alloc::vec![axis]);
                found.push(Finding::new(FindingCode::NamedStretch, operands, axes, message));
                return;
            }
        }
    }

    // Implements E_BROADCAST_ANY_FUNC_2120.
    /// SC107: what the source documents' maximum refuses and the size rule does not. Looks at every
    /// operand, scalars too, so that raising it is exactly their reading.
    fn emptied(&self, found: &mut Vec<Finding>) {
        if !self.shape().contains(&0) {
            return;
        }
        for operand in 0..self.operand_count() {
            // The sizes of 0 that the operand did not bring itself stay.
            let mut sizes = self.shape().to_vec();
            for axis in self.axes(operand).unwrap_or(&[]) {
                if let (0, Some(size)) = (axis.0, axis.1.and_then(|target| sizes.get_mut(target))) {
                    *size = 1;
                }
            }
            let Some(axis) = sizes.iter().position(|size| *size == 0) else { continue };
            let message = format!(
                "{} is repeated 0 times along axis {axis}, so the result is empty",
                self.operand_name(operand)
            );
            let (operands, axes) = (alloc::vec![operand], alloc::vec![axis]);
            found.push(Finding::new(FindingCode::Emptied, operands, axes, message));
            return;
        }
    }

    /// SC111: two names on one axis, where axes meet by position.
    fn name_mismatch(&self, looked: &[Operand], found: &mut Vec<Finding>) {
        for axis in 0..self.shape().len() {
            let mut known: Option<(usize, &str)> = None;
            for operand in looked {
                let Some(Source::Kept(own)) = operand.sources.get(axis) else { continue };
                let Some(name) = self.names().axis(operand.number, *own) else { continue };
                match known {
                    Some((other, first)) if first != name => {
                        let message = format!(
                            "on axis {axis}, {first} of {} meets {name} of {}",
                            self.operand_name(other),
                            self.operand_name(operand.number)
                        );
                        let (operands, axes) =
                            (alloc::vec![other, operand.number], alloc::vec![axis]);
                        let code = FindingCode::NameMismatch;
                        found.push(Finding::new(code, operands, axes, message));
                        return;
                    }
                    _ => known = Some((operand.number, name)),
                }
            }
        }
    }
}

/// Two operands that both grow, and along which axes.
struct Pair<'o> {
    p: &'o Operand,
    q: &'o Operand,
    axes: (usize, usize),
    square: bool,
}

/// An operand that is no scalar, with where it repeats.
struct Operand {
    number: usize,
    rank: usize,
    sources: Vec<Source>,
    repeats: Vec<bool>,
}

impl Operand {
    /// The first operands with distinct axes; scalars left out.
    fn distinct(plan: &Plan) -> Vec<Self> {
        let mut seen = Vec::new();
        let mut operands = Vec::new();
        for number in 0..plan.operand_count() {
            let axes = plan.axes(number).unwrap_or(&[]);
            let fresh = match plan.names().axes.get(number) {
                _ if axes.is_empty() => false,
                names => !seen.contains(&(axes, names)),
            };
            let (true, Ok(sources)) = (fresh, plan.sources(number)) else { continue };
            seen.push((axes, plan.names().axes.get(number)));
            let sizes = sources.iter().zip(plan.shape());
            let repeats = sizes.map(|(source, &size)| source.repeats(size)).collect();
            operands.push(Self { number, rank: axes.len(), sources, repeats });
            if operands.len() == MAX_COMPARED_OPERANDS {
                break;
            }
        }
        operands
    }

    fn repeats_at(&self, axis: usize) -> bool {
        self.repeats.get(axis).copied().unwrap_or(false)
    }
}
