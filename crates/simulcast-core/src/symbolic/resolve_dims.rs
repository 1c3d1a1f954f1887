//! Resolution of shapes whose sizes may not be known, by the frames that serve known sizes.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use super::solver::solve;
use crate::rules::{Fixed, Unranked};
use crate::{
    BroadcastError, Constraint, Dim, Dims, Interval, Layout, Names, OwnedRule, Plan, Refusal, Rule,
    Symbol, join, resolve,
};

/// The outcome of [`resolve_dims`]: the result's dimensions, and what must hold for them.
///
/// ```
/// use simulcast_core::{Rule, ShapeText, resolve_dims};
///
/// let shapes = ["N,1", "4"].map(|text| text.parse::<ShapeText>().unwrap().dims);
/// let plan = resolve_dims(Rule::Numpy, &shapes)?;
/// assert_eq!(plan.shape().to_string(), "(N, 4)");
/// assert_eq!(plan.substitute(&[("N", 8)])?.shape().to_string(), "(8, 4)");
/// assert_eq!(plan.bind(&[&[8, 1][..], &[4]])?.shape(), [8, 4]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SymbolicPlan {
    rule: OwnedRule,
    operands: Vec<Dims>,
    shape: Dims,
    constraints: Vec<Constraint>,
    layout: Option<Layout>,
}

impl SymbolicPlan {
    /// The result's dimensions.
    #[must_use]
    pub fn shape(&self) -> &Dims {
        &self.shape
    }

    /// The operands' dimensions, as given.
    #[must_use]
    pub fn shapes(&self) -> &[Dims] {
        &self.operands
    }

    /// What must hold for the sizes. Where every rank is known, the rule accepts sizes exactly when
    /// all of this holds; otherwise it is necessary and not sufficient.
    #[must_use]
    pub fn constraints(&self) -> &[Constraint] {
        &self.constraints
    }

    /// Where the rule lays the operands' axes, where every rank is known.
    #[must_use]
    pub fn layout(&self) -> Option<&Layout> {
        self.layout.as_ref()
    }

    /// The rule with its parameters.
    #[must_use]
    pub fn rule(&self) -> &OwnedRule {
        &self.rule
    }

    /// Replaces symbols by sizes and resolves again.
    ///
    /// # Errors
    ///
    /// A [`BroadcastError`] where the sizes violate a constraint, or the interval of a symbol.
    pub fn substitute(&self, sizes: &[(&str, usize)]) -> Result<Self, BroadcastError> {
        let mut operands = self.operands.clone();
        for (operand, dims) in operands.iter_mut().enumerate() {
            let Dims::Ranked(dims) = dims else { continue };
            for (axis, dim) in dims.iter_mut().enumerate() {
                match with_sizes(dim, sizes) {
                    Ok(known) => *dim = known,
                    Err((given, allowed)) => {
                        let refusal = Refusal::Bind { operand, axis: Some(axis), given, allowed };
                        return Err(self.refused(refusal));
                    }
                }
            }
        }
        resolve_dims(self.rule.as_rule(), &operands)
    }

    // Implements E_BROADCAST_ANY_FUNC_2030.
    /// Checks shapes of known sizes against the symbolic ones and resolves them.
    ///
    /// # Errors
    ///
    /// A [`BroadcastError`]: [`Refusal::Bind`] where a size is not what its symbol, interval or
    /// rank allows, otherwise the rule's own.
    pub fn bind<S: AsRef<[usize]>>(&self, shapes: &[S]) -> Result<Plan, BroadcastError> {
        match self.mismatch(shapes) {
            Some(refusal) => Err(self.refused(refusal)),
            None => resolve(self.rule.as_rule(), shapes),
        }
    }

    fn refused(&self, refusal: Refusal) -> BroadcastError {
        BroadcastError::symbolic(self.rule.as_rule(), &self.operands, &[refusal])
    }

    /// The first place where sizes are not what symbols, intervals and ranks allow.
    fn mismatch<S: AsRef<[usize]>>(&self, shapes: &[S]) -> Option<Refusal> {
        if shapes.len() != self.operands.len() {
            let (expected, given) = (self.operands.len(), shapes.len());
            return Some(Refusal::Operands { expected, given });
        }
        let mut known: BTreeMap<&str, usize> = BTreeMap::new();
        for (operand, (dims, shape)) in self.operands.iter().zip(shapes).enumerate() {
            let (Some(dims), shape) = (dims.dims(), shape.as_ref()) else { continue };
            if dims.len() != shape.len() {
                let (given, allowed) = (shape.len(), dims.len().into());
                return Some(Refusal::Bind { operand, axis: None, given, allowed });
            }
            for (axis, (dim, &given)) in dims.iter().zip(shape).enumerate() {
                let agreed = match dim {
                    Dim::Symbol(Symbol { name, .. }) => *known.entry(name).or_insert(given),
                    Dim::Size(_) | Dim::Range(_) | Dim::Join(_) => given,
                };
                let allowed = match agreed == given {
                    true => dim.interval(),
                    false => Interval::from(agreed),
                };
                if !allowed.contains(given) {
                    return Some(Refusal::Bind { operand, axis: Some(axis), given, allowed });
                }
            }
        }
        None
    }

    /// A plan over sizes that stand for the symbols: symbols that meet on an axis get one size,
    /// others different ones, none of them 1 or a size that occurs. What is suspicious about it is
    /// suspicious about the symbols; its numbers mean nothing.
    ///
    /// `None` where a rank is unknown or no such sizes satisfy the constraints.
    #[must_use]
    pub fn representative(&self, names: &Names) -> Option<Plan> {
        let layout = self.layout.as_ref()?;
        let mut taken: BTreeSet<usize> = BTreeSet::new();
        let mut shapes: Vec<Vec<usize>> = Vec::new();
        // The size that each symbol got, and that each result axis has.
        let mut sizes: BTreeMap<&str, usize> = BTreeMap::new();
        let mut results: Vec<Option<usize>> = alloc::vec![None; layout.rank];
        let set = |results: &mut Vec<Option<usize>>, axis: usize, size: usize| {
            // A size of 1 leaves the axis to the others. Never else: targets are below the rank.
            if let (Some(result), 0 | 2..) = (results.get_mut(axis), size) {
                *result = Some(size);
            }
        };
        for dims in &self.operands {
            taken.extend(dims.dims()?.iter().filter_map(Dim::size));
        }
        if let Some(target) = self.rule.target() {
            taken.extend(target);
            let padding = layout.rank.saturating_sub(target.len());
            for (axis, &size) in (padding..).zip(target) {
                set(&mut results, axis, size);
            }
        }
        for (dims, targets) in self.operands.iter().zip(&layout.targets) {
            for (dim, target) in dims.dims()?.iter().zip(targets) {
                if let (Some(size), Some(target)) = (dim.size(), target) {
                    set(&mut results, *target, size);
                }
            }
        }
        for (dims, targets) in self.operands.iter().zip(&layout.targets) {
            let mut shape = Vec::new();
            for (dim, target) in dims.dims()?.iter().zip(targets) {
                let named = match dim {
                    Dim::Symbol(symbol) => Some(&*symbol.name),
                    Dim::Size(_) | Dim::Range(_) | Dim::Join(_) => None,
                };
                let known = named.and_then(|name| sizes.get(name)).copied().or(dim.size());
                let result = target.and_then(|target| *results.get(target)?);
                let result = result.filter(|size| dim.interval().contains(*size));
                let size = known.or(result).unwrap_or_else(|| fresh(dim.interval(), &mut taken));
                if let Some(name) = named {
                    sizes.insert(name, size);
                }
                if let Some(target) = target {
                    set(&mut results, *target, size);
                }
                shape.push(size);
            }
            shapes.push(shape);
        }
        Some(resolve(self.rule.as_rule(), &shapes).ok()?.with_names(names.clone()))
    }
}

/// A size in the interval that is above 1 and was not taken yet, or the next best.
fn fresh(range: Interval, taken: &mut BTreeSet<usize>) -> usize {
    let from = range.lo().max(5);
    let size = (from..=usize::MAX).find(|size| !taken.contains(size)).unwrap_or(from);
    taken.insert(size);
    match range.hi() {
        Some(hi) => size.min(hi),
        None => size,
    }
}

/// A dimension with sizes for its symbols; a size outside a symbol's interval, or sizes of a join
/// that do not agree, are the error.
fn with_sizes(dim: &Dim, sizes: &[(&str, usize)]) -> Result<Dim, (usize, Interval)> {
    let size_of = |symbol: &Symbol| {
        let known = sizes.iter().find(|(name, _)| *name == &*symbol.name).map(|(_, size)| *size);
        match known {
            Some(size) if !symbol.range.contains(size) => Err((size, symbol.range)),
            known => Ok(known),
        }
    };
    match dim {
        Dim::Size(_) | Dim::Range(_) => Ok(dim.clone()),
        Dim::Symbol(symbol) => Ok(size_of(symbol)?.map_or_else(|| dim.clone(), Dim::Size)),
        Dim::Join(symbols) => {
            let (mut common, mut open) = (1, Vec::new());
            for symbol in symbols {
                match size_of(symbol)? {
                    Some(size) => common = join(common, size).ok_or((size, common.into()))?,
                    None => open.push(symbol.clone()),
                }
            }
            Ok(match (common, open.as_slice()) {
                (1, []) => Dim::Size(1),
                (1, [only]) => Dim::Symbol(only.clone()),
                (1, _) => Dim::Join(open),
                (common, _) => Dim::Size(common),
            })
        }
    }
}

// Implements E_BROADCAST_ANY_FUNC_2020.
/// Resolves shapes whose sizes may not be known.
///
/// On known sizes it says what [`resolve`] says.
///
/// # Errors
///
/// A [`BroadcastError`] where no choice of sizes can succeed.
///
/// ```
/// use simulcast_core::{Rule, ShapeText, resolve_dims};
///
/// let image = "N,3,H,W".parse::<ShapeText>()?.dims;
/// let scale = "M,1,1,4".parse::<ShapeText>()?.dims;
/// let plan = resolve_dims(Rule::Numpy, &[image, scale])?;
/// assert_eq!(plan.shape().to_string(), "(bcast(M, N), 3, H, 4)");
/// let constraints: Vec<_> = plan.constraints().iter().map(ToString::to_string).collect();
/// assert_eq!(constraints, ["W is 1 or 4", "M and N are equal or one is 1"]);
/// assert!(plan.substitute(&[("W", 5)]).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn resolve_dims(rule: Rule<'_>, shapes: &[Dims]) -> Result<SymbolicPlan, BroadcastError> {
    let fail = |refusals: &[Refusal]| BroadcastError::symbolic(rule, shapes, refusals);
    let ranked: Vec<&[Dim]> = shapes.iter().filter_map(Dims::dims).collect();
    if ranked.len() < shapes.len() {
        return unranked(rule, shapes);
    }
    let rank = |operand: usize| ranked.get(operand).map_or(0, |dims| dims.len());
    // Known sizes alone: the plain way gives the better error, with fixes.
    if ranked.iter().all(|dims| dims.iter().all(|dim| dim.size().is_some())) {
        let sizes: Vec<Vec<usize>> = shapes.iter().filter_map(Dims::sizes).collect();
        resolve(rule, &sizes)?;
    }
    let frame = rule.frame(ranked.len(), rank).map_err(|refusal| fail(&[refusal]))?;
    let layout = Layout::new(rule, ranked.len(), rank).map_err(|refusal| fail(&[refusal]))?;
    let (dims, constraints) =
        solve(&frame, &layout, &ranked).map_err(|refusals| fail(&refusals))?;
    let (operands, shape) = (shapes.to_vec(), Dims::Ranked(dims));
    Ok(SymbolicPlan { rule: rule.into(), operands, shape, constraints, layout: Some(layout) })
}

// Implements E_BROADCAST_ANY_FUNC_2040.
/// A rank is unknown: what can be said without it.
///
/// Where an operand of unknown rank cannot matter, a neutral one takes its place, so that operands
/// keep their numbers and those of known rank are held to each other.
fn unranked(rule: Rule<'_>, shapes: &[Dims]) -> Result<SymbolicPlan, BroadcastError> {
    if let Some(refusal) = rule.parameter_refusal(shapes.len()) {
        return Err(BroadcastError::symbolic(rule, shapes, &[refusal]));
    }
    let first = shapes.first().cloned().unwrap_or(Dims::Unranked);
    let scalar = Dims::Ranked(Vec::new());
    let facts = rule.kind().facts();
    let (held, neutral) = match (facts.unranked, &first) {
        // Equal to any other operand, so to the first whose rank is known.
        (Unranked::Same, _) => {
            let known = shapes.iter().find(|dims| dims.dims().is_some());
            (Some(rule), known.cloned().unwrap_or(scalar))
        }
        (Unranked::Scalar, _) | (Unranked::ScalarAfterFirst, Dims::Ranked(_)) => {
            (Some(rule), scalar)
        }
        // All meet the unknown first operand, and so each other.
        (Unranked::ScalarAfterFirst, Dims::Unranked) => (Some(Rule::Numpy), scalar),
        (Unranked::Nothing, _) => (None, scalar),
    };
    let put = |dims: &Dims| match dims {
        Dims::Ranked(_) => dims.clone(),
        Dims::Unranked => neutral.clone(),
    };
    let neutral: Vec<Dims> = shapes.iter().map(put).collect();
    let known = match held {
        Some(held) => {
            Some(resolve_dims(held, &neutral).map_err(|error| error.about(rule, shapes))?)
        }
        None => None,
    };
    let any_known = shapes.iter().any(|dims| dims.dims().is_some());
    let shape = match (facts.fixed, &known) {
        (Fixed::Every, Some(known)) if any_known => known.shape.clone(),
        (Fixed::First, _) => first,
        (Fixed::Carried, _) => {
            rule.parts().shape.map_or(Dims::Unranked, |shape| Dims::from(*shape))
        }
        (Fixed::Nothing | Fixed::Every, _) => Dims::Unranked,
    };
    let constraints = known.map_or_else(Vec::new, |known| known.constraints);
    Ok(SymbolicPlan {
        rule: rule.into(),
        operands: shapes.to_vec(),
        shape,
        constraints,
        layout: None,
    })
}
