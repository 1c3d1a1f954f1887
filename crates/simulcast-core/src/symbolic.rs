//! Symbolic shapes: resolution when sizes are not known yet.
//!
//! A rule's frame depends on ranks alone, so it serves here unchanged; what differs is how sizes
//! meet. Resolution is sound: what it says of the result holds for every choice of sizes that
//! satisfies the recorded constraints, the constraints hold exactly where the rule accepts the
//! sizes, and an error means that no choice can succeed on the axes it names.
//!
//! | on one axis | result | constraint |
//! |---|---|---|
//! | `n`, `n` | `n` | |
//! | `n`, 1 | `n` | |
//! | `n`, 4 | 4 | n is 1 or 4 |
//! | `n`, `m` | `bcast(n, m)` | n and m are equal or one is 1 |
//! | `n` above 1, `m` | `n` | m is 1 or n |
//!
//! A symbol is never taken to differ from 1 unless its interval says so.

mod constraint;
mod solver;

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

pub use constraint::{Constraint, Term};

use crate::frame::Frame;
use crate::{BroadcastError, Dim, Dims, Layout, Plan, Refusal, Rule, Symbol, resolve};
use solver::solve;

/// The outcome of [`resolve_dims`]: the result's dimensions, and what must hold for them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SymbolicPlan<'a> {
    rule: Rule<'a>,
    operands: Vec<Dims>,
    shape: Dims,
    constraints: Vec<Constraint>,
    layout: Option<Layout>,
}

impl<'a> SymbolicPlan<'a> {
    /// The result's dimensions.
    #[must_use]
    pub fn shape(&self) -> &Dims {
        &self.shape
    }

    /// The operands' dimensions, as given.
    #[must_use]
    pub fn operands(&self) -> &[Dims] {
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

    /// The rule.
    #[must_use]
    pub fn rule(&self) -> Rule<'a> {
        self.rule
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
                let Dim::Symbol(Symbol { name, range }) = dim else { continue };
                let Some(&(_, size)) = sizes.iter().find(|(known, _)| known == name) else {
                    continue;
                };
                if !range.contains(size) {
                    let refusal = Refusal::Bind { operand, axis: Some(axis) };
                    return Err(BroadcastError::symbolic(self.rule, &self.operands, &[refusal]));
                }
                *dim = Dim::Size(size);
            }
        }
        resolve_dims(self.rule, &operands)
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
            Some(refusal) => Err(BroadcastError::symbolic(self.rule, &self.operands, &[refusal])),
            None => resolve(self.rule, shapes),
        }
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
                return Some(Refusal::Bind { operand, axis: None });
            }
            for (axis, (dim, &size)) in dims.iter().zip(shape).enumerate() {
                let agreed = match dim {
                    Dim::Symbol(Symbol { name, .. }) => *known.entry(name).or_insert(size) == size,
                    Dim::Size(_) | Dim::Range(_) | Dim::Join(_) => true,
                };
                if !agreed {
                    return Some(Refusal::Bind { operand, axis: Some(axis) });
                }
                if !dim.interval().contains(size) {
                    return Some(Refusal::Bind { operand, axis: Some(axis) });
                }
            }
        }
        None
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
pub fn resolve_dims<'a>(
    rule: Rule<'a>,
    shapes: &[Dims],
) -> Result<SymbolicPlan<'a>, BroadcastError> {
    let fail = |refusals: &[Refusal]| BroadcastError::symbolic(rule, shapes, refusals);
    let ranked: Vec<&[Dim]> = shapes.iter().filter_map(Dims::dims).collect();
    if ranked.len() < shapes.len() {
        return unranked(rule, shapes, &ranked);
    }
    // Known sizes alone: the plain way gives the better error, with fixes.
    if let Some(sizes) = shapes.iter().map(Dims::sizes).collect::<Option<Vec<_>>>() {
        let plan = resolve(rule, &sizes)?;
        let shape = Dims::from(plan.shape());
        let layout = Layout::new(rule, sizes.len(), |m| sizes.get(m).map_or(0, Vec::len)).ok();
        return Ok(SymbolicPlan {
            rule,
            operands: shapes.to_vec(),
            shape,
            constraints: Vec::new(),
            layout,
        });
    }
    let rank = |operand: usize| ranked.get(operand).map_or(0, |dims| dims.len());
    let frame = Frame::new(rule, ranked.len(), rank).map_err(|refusal| fail(&[refusal]))?;
    let layout = Layout::new(rule, ranked.len(), rank).map_err(|refusal| fail(&[refusal]))?;
    let (dims, constraints) =
        solve(&frame, &layout, &ranked).map_err(|refusals| fail(&refusals))?;
    let (operands, shape) = (shapes.to_vec(), Dims::Ranked(dims));
    Ok(SymbolicPlan { rule, operands, shape, constraints, layout: Some(layout) })
}

// Implements E_BROADCAST_ANY_FUNC_2040.
/// A rank is unknown: what can be said without it.
fn unranked<'a>(
    rule: Rule<'a>,
    shapes: &[Dims],
    ranked: &[&[Dim]],
) -> Result<SymbolicPlan<'a>, BroadcastError> {
    let known = |rule| -> Result<SymbolicPlan<'_>, BroadcastError> {
        let shapes: Vec<Dims> = ranked.iter().map(|dims| Dims::from(dims.to_vec())).collect();
        resolve_dims(rule, &shapes)
    };
    let plan = |shape: Dims, constraints: Vec<Constraint>| SymbolicPlan {
        rule,
        operands: shapes.to_vec(),
        shape,
        constraints,
        layout: None,
    };
    match rule {
        // The operands whose ranks are known must agree among themselves all the same.
        Rule::Exact => match ranked.first() {
            Some(_) => known(rule).map(|sub| plan(sub.shape, sub.constraints)),
            None => Ok(plan(Dims::Unranked, Vec::new())),
        },
        Rule::Numpy => known(rule).map(|sub| plan(Dims::Unranked, sub.constraints)),
        Rule::To { target: shape } | Rule::Axes { shape, .. } | Rule::Mapping { shape, .. } => {
            Ok(plan(Dims::from(shape), Vec::new()))
        }
        Rule::Unidirectional | Rule::Pdpd { .. } | Rule::Legacy { .. } => {
            let first = shapes.first().cloned().unwrap_or(Dims::Unranked);
            Ok(plan(first, Vec::new()))
        }
        Rule::Paddle { .. } | Rule::Bidirectional { .. } | Rule::Named { .. } => {
            Ok(plan(Dims::Unranked, Vec::new()))
        }
    }
}
