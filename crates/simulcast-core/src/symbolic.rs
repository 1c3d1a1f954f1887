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

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use crate::frame::{Base, Frame};
use crate::{
    BroadcastError, Dim, Dims, Interval, Layout, Names, Plan, Refusal, Rule, Side, Symbol, resolve,
};

/// A size that a constraint speaks of.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Term {
    /// A known size.
    Size(usize),
    /// The size that a symbol stands for.
    Symbol(String),
    /// The size of an axis that has no name.
    Axis {
        /// The operand, counted from 0.
        operand: usize,
        /// The axis of its shape.
        axis: usize,
    },
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.describe(|operand| format!("operand {operand}")))
    }
}

impl Term {
    fn describe(&self, name: impl Fn(usize) -> String) -> String {
        match self {
            Self::Size(size) => size.to_string(),
            Self::Symbol(name) => name.clone(),
            Self::Axis { operand, axis } => format!("axis {axis} of {}", name(*operand)),
        }
    }
}

/// What must hold for the sizes, once they are known.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Constraint {
    /// Both are equal.
    Equal(Term, Term),
    /// The first is 1, or equal to the second.
    OneOr(Term, Term),
    /// Those that are not 1 are equal.
    Agree(Vec<Term>),
}

impl Constraint {
    /// Whether the constraint holds; `None` where `size` does not know a size that decides it.
    pub fn holds(&self, size: impl Fn(&Term) -> Option<usize>) -> Option<bool> {
        let size = |term: &Term| match term {
            Term::Size(size) => Some(*size),
            Term::Symbol(_) | Term::Axis { .. } => size(term),
        };
        match self {
            Self::Equal(a, b) => Some(size(a)? == size(b)?),
            Self::OneOr(a, b) => match size(a)? {
                1 => Some(true),
                known => Some(known == size(b)?),
            },
            Self::Agree(terms) => {
                let sizes: Option<BTreeSet<usize>> = terms.iter().map(size).collect();
                let mut sizes = sizes?;
                sizes.remove(&1);
                Some(sizes.len() < 2)
            }
        }
    }
}

/// The text with operands numbered, as no names are known here.
impl fmt::Display for Constraint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.write(|operand| format!("operand {operand}")))
    }
}

impl Constraint {
    /// `N = 4`, `N is 1 or 4`, `N and M are equal or one is 1`, with operands by name.
    #[must_use]
    pub fn describe(&self, names: &Names) -> String {
        self.write(|operand| names.operand(operand))
    }

    fn write(&self, name: impl Fn(usize) -> String) -> String {
        let term = |term: &Term| term.describe(&name);
        match self {
            Self::Equal(a, b) => format!("{} = {}", term(a), term(b)),
            Self::OneOr(a, b) => format!("{} is 1 or {}", term(a), term(b)),
            Self::Agree(terms) => match terms.as_slice() {
                [a, b] => format!("{} and {} are equal or one is 1", term(a), term(b)),
                terms => {
                    let terms: Vec<String> = terms.iter().map(term).collect();
                    format!("{}: those that are not 1 are equal", terms.join(", "))
                }
            },
        }
    }
}

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
    let mut solver = Solver::new(&ranked).map_err(|refusal| fail(&[refusal]))?;
    let meetings = meetings(&frame, &layout, &ranked);
    loop {
        let before = solver.known.clone();
        let (dims, refusals) = solver.pass(&frame, &meetings);
        if !refusals.is_empty() {
            return Err(fail(&refusals));
        }
        if solver.known == before {
            let constraints = solver.constraints.into_iter().collect();
            let (operands, shape) = (shapes.to_vec(), Dims::Ranked(dims));
            return Ok(SymbolicPlan { rule, operands, shape, constraints, layout: Some(layout) });
        }
    }
}

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

/// What meets on a result axis, the base first where there is one.
type Meeting<'d> = Vec<(Side, &'d Dim)>;

/// What meets on each result axis; the last entry holds the dropped axes.
fn meetings<'d>(frame: &Frame<'_>, layout: &Layout, shapes: &[&'d [Dim]]) -> Vec<Meeting<'d>> {
    let mut meetings: Vec<Meeting<'d>> = alloc::vec![Vec::new(); frame.rank.saturating_add(1)];
    for (operand, (dims, targets)) in shapes.iter().zip(&layout.targets).enumerate() {
        for (axis, (dim, target)) in dims.iter().zip(targets).enumerate() {
            let side = Side { operand: Some(operand), axis, size: dim.interval() };
            if let Some(meeting) = meetings.get_mut(target.unwrap_or(frame.rank)) {
                meeting.push((side, dim));
            }
        }
    }
    meetings
}

/// The sizes that a symbol can still have: an interval, or a few sizes in it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Domain {
    range: Interval,
    among: Option<BTreeSet<usize>>,
}

impl Domain {
    fn from(range: Interval) -> Self {
        Self { range, among: None }
    }

    fn interval(&self) -> Interval {
        match self.among.as_ref().and_then(|sizes| Some((*sizes.first()?, *sizes.last()?))) {
            Some((lo, hi)) => Interval::new(lo, Some(hi)),
            None => self.range,
        }
    }

    fn contains(&self, size: usize) -> bool {
        match &self.among {
            Some(sizes) => sizes.contains(&size),
            None => self.range.contains(size),
        }
    }

    /// Keeps the sizes that `other` allows too; `false` where none is left.
    fn narrow(&mut self, other: &Self) -> bool {
        let sizes = match (&self.among, &other.among) {
            (Some(own), _) => own.iter().copied().filter(|&size| other.contains(size)).collect(),
            (None, Some(theirs)) => {
                theirs.iter().copied().filter(|&size| self.range.contains(size)).collect()
            }
            (None, None) => match self.range.intersect(other.range) {
                Some(range) => {
                    self.range = range;
                    return true;
                }
                None => BTreeSet::new(),
            },
        };
        let left = !sizes.is_empty();
        self.among = Some(sizes);
        left
    }
}

/// One thing that meets on an axis, with what is known of it now.
#[derive(Clone, Debug)]
struct Party {
    side: Side,
    term: Term,
    domain: Domain,
}

impl Party {
    /// Its size, where only one is left.
    fn size(&self) -> Option<usize> {
        self.domain.interval().size()
    }

    /// Whether it may turn out to be 1.
    fn may_be_1(&self) -> bool {
        self.domain.contains(1)
    }
}

/// What is known of the symbols, and what has been recorded.
struct Solver {
    known: BTreeMap<Term, Domain>,
    given: BTreeMap<Term, Domain>,
    constraints: BTreeSet<Constraint>,
}

impl Solver {
    /// The symbols with their intervals; a symbol with contradicting intervals is refused.
    fn new(shapes: &[&[Dim]]) -> Result<Self, Refusal> {
        let mut known: BTreeMap<Term, Domain> = BTreeMap::new();
        for (operand, dims) in shapes.iter().enumerate() {
            for (axis, dim) in dims.iter().enumerate() {
                let domain = Domain::from(dim.interval());
                let term = term(operand, axis, dim);
                if let Term::Size(_) = term {
                    continue;
                }
                let entry = known.entry(term).or_insert_with(|| domain.clone());
                if !entry.narrow(&domain) {
                    return Err(Refusal::Bind { operand, axis: Some(axis) });
                }
            }
        }
        Ok(Self { given: known.clone(), known, constraints: BTreeSet::new() })
    }

    /// One pass over all axes with what is known so far.
    fn pass(&mut self, frame: &Frame<'_>, meetings: &[Meeting<'_>]) -> (Vec<Dim>, Vec<Refusal>) {
        self.constraints.clear();
        let (mut dims, mut refusals) = (Vec::new(), Vec::new());
        for (axis, meeting) in meetings.iter().enumerate() {
            if axis == frame.rank {
                // The dropped axes.
                for party in self.parties(meeting) {
                    let one = Party { side: party.side, ..Party::known(frame, 0, 1) };
                    if !self.equal(&party, &one) {
                        let Side { operand, axis, size } = party.side;
                        let operand = operand.unwrap_or(0);
                        refusals.push(Refusal::Overhang { operand, axis, size, rank: frame.rank });
                    }
                }
                break;
            }
            let mut parties = self.parties(meeting);
            if let Base::Given(shape) = frame.base {
                let padding = frame.rank.saturating_sub(shape.len());
                let own = axis.checked_sub(padding).and_then(|own| shape.get(own));
                parties.insert(0, Party::known(frame, axis, own.copied().unwrap_or(1)));
            }
            let solved = match frame.grow {
                true => self.join(&parties),
                false => self.onto(frame.stretch, &parties),
            };
            match solved {
                Ok(dim) => dims.push(dim),
                Err((first, second)) => {
                    refusals.push(Refusal::Clash { axis, rank: frame.rank, first, second });
                }
            }
        }
        (dims, refusals)
    }

    fn parties(&self, meeting: &Meeting<'_>) -> Vec<Party> {
        let party = |&(side, dim): &(Side, &Dim)| {
            let term = term(side.operand.unwrap_or(0), side.axis, dim);
            let domain = self.known.get(&term).cloned().unwrap_or(Domain::from(side.size));
            Party { side: Side { size: domain.interval(), ..side }, term, domain }
        };
        meeting.iter().map(party).collect()
    }

    /// All stretch and the result grows: the size rule.
    fn join(&mut self, parties: &[Party]) -> Result<Dim, (Side, Side)> {
        // Whoever is certainly not 1 decides the size.
        let Some(chief) = chief(parties) else { return Ok(self.undecided(parties)) };
        for party in parties {
            let fits = match party.may_be_1() {
                true => self.one_or(party, chief),
                false => self.equal(party, chief),
            };
            if !fits {
                return Err((chief.side, party.side));
            }
        }
        Ok(self.dim(chief))
    }

    /// Every one of them may be 1.
    fn undecided(&mut self, parties: &[Party]) -> Dim {
        let mut open: BTreeMap<Term, &Party> = BTreeMap::new();
        for party in parties {
            match party.size() {
                Some(_) => self.fixed(party),
                None => _ = open.insert(party.term.clone(), party),
            }
        }
        let mut interval = Interval::from(1);
        for party in open.values() {
            // Both contain 1, so there is always a hull.
            interval = interval.hull(party.domain.interval());
        }
        if let (1, Some(only)) = (open.len(), open.values().next()) {
            return self.dim(only);
        }
        let symbols: Option<Vec<Symbol>> = open
            .values()
            .map(|party| match &party.term {
                Term::Symbol(name) => {
                    Some(Symbol { name: name.clone(), range: party.domain.interval() })
                }
                Term::Size(_) | Term::Axis { .. } => None,
            })
            .collect();
        if open.is_empty() {
            return Dim::Size(1);
        }
        self.constraints.insert(Constraint::Agree(open.keys().cloned().collect()));
        symbols.map_or(Dim::from(interval), Dim::Join)
    }

    /// The first decides, and the others are equal to it, or 1 where they may stretch.
    fn onto(&mut self, stretch: bool, parties: &[Party]) -> Result<Dim, (Side, Side)> {
        let Some(base) = parties.first() else { return Ok(Dim::Size(1)) };
        for party in parties {
            let may_stretch = match stretch {
                true => party.may_be_1(),
                false => false,
            };
            let fits = match may_stretch {
                true => self.one_or(party, base),
                false => self.equal(party, base),
            };
            if !fits {
                return Err((base.side, party.side));
            }
        }
        Ok(self.dim(base))
    }

    /// Requires `party` to be 1 or equal to `chief`; `false` where it can be neither.
    fn one_or(&mut self, party: &Party, chief: &Party) -> bool {
        if party.term == chief.term {
            self.fixed(party);
            return true;
        }
        if party.size() == Some(1) {
            self.fixed(party);
            return true;
        }
        if let Some(size) = chief.size() {
            self.fixed(chief);
            let among = Some(BTreeSet::from([1, size]));
            return self.require(party, &Domain { range: Interval::UNKNOWN, among }, |party| {
                Constraint::OneOr(party, Term::Size(size))
            });
        }
        self.constraints.insert(Constraint::OneOr(party.term.clone(), chief.term.clone()));
        true
    }

    /// Requires `party` to be equal to `chief`; `false` where it cannot.
    fn equal(&mut self, party: &Party, chief: &Party) -> bool {
        if party.term == chief.term {
            self.fixed(party);
            return true;
        }
        if let Some(size) = chief.size() {
            self.fixed(chief);
            return self.require(party, &Domain::from(size.into()), |party| {
                Constraint::Equal(party, Term::Size(size))
            });
        }
        if let Some(size) = party.size() {
            self.fixed(party);
            return self.require(chief, &Domain::from(size.into()), |chief| {
                Constraint::Equal(chief, Term::Size(size))
            });
        }
        let mut ours = self.current(party);
        if !ours.narrow(&self.current(chief)) {
            return false;
        }
        self.constraints.insert(Constraint::Equal(party.term.clone(), chief.term.clone()));
        self.known.insert(party.term.clone(), ours.clone());
        self.known.insert(chief.term.clone(), ours);
        true
    }

    /// Narrows `party` to `domain`; `false` where nothing is left. Records the constraint unless
    /// what was given implies it.
    fn require(
        &mut self,
        party: &Party,
        domain: &Domain,
        constraint: impl Fn(Term) -> Constraint,
    ) -> bool {
        let mut narrowed = self.current(party);
        if !narrowed.narrow(domain) {
            return false;
        }
        if let Term::Size(_) = party.term {
            return true;
        }
        match narrowed.interval().size() {
            Some(_) => self.fixed(&Party { domain: narrowed.clone(), ..party.clone() }),
            None => _ = self.constraints.insert(constraint(party.term.clone())),
        }
        self.known.insert(party.term.clone(), narrowed);
        true
    }

    /// What is known of a party by now: an axis before may have narrowed it in the same pass.
    fn current(&self, party: &Party) -> Domain {
        self.known.get(&party.term).unwrap_or(&party.domain).clone()
    }

    /// Records that a symbol has only one size left, where that was not given.
    fn fixed(&mut self, party: &Party) {
        let Some(size) = party.size() else { return };
        let Some(given) = self.given.get(&party.term) else { return };
        if given.interval().size().is_none() {
            self.constraints.insert(Constraint::Equal(party.term.clone(), Term::Size(size)));
        }
    }

    /// The result dimension that is the party's own.
    fn dim(&self, party: &Party) -> Dim {
        match (&party.term, self.current(party).interval()) {
            (Term::Symbol(name), range) if range.size().is_none() => {
                Dim::Symbol(Symbol { name: name.clone(), range })
            }
            (_, range) => Dim::from(range),
        }
    }
}

impl Party {
    /// The shape that the rule itself carries.
    fn known(frame: &Frame<'_>, axis: usize, size: usize) -> Self {
        let side = frame.base_side(axis, size);
        Self { side, term: Term::Size(size), domain: Domain::from(size.into()) }
    }
}

/// Whoever is certainly not 1: a known size before a symbol, a symbol before an unnamed axis.
fn chief(parties: &[Party]) -> Option<&Party> {
    let certain = parties.iter().filter(|party| !party.may_be_1());
    certain.min_by_key(|party| match (party.size(), &party.term) {
        (Some(_), _) => 0,
        (None, Term::Symbol(_)) => 1,
        (None, _) => 2,
    })
}

/// What a dimension is called in constraints.
fn term(operand: usize, axis: usize, dim: &Dim) -> Term {
    match dim {
        Dim::Symbol(symbol) => Term::Symbol(symbol.name.clone()),
        Dim::Size(_) | Dim::Range(_) | Dim::Join(_) => match dim.size() {
            Some(size) => Term::Size(size),
            None => Term::Axis { operand, axis },
        },
    }
}
