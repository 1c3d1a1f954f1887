//! The solver: what meets on each axis, and what follows for symbols.
//!
//! One pass over all axes narrows what is known of the symbols and records constraints; passes are
//! repeated until nothing more is learnt, or often enough.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::{Constraint, Term};
use crate::rules::frame::{Base, Frame};
use crate::{Dim, Interval, Layout, Refusal, Side, Symbol};

// Implements E_BROADCAST_ANY_FUNC_2010.
/// The result's dimensions and what must hold for them, or every axis on which nothing can fit.
pub(super) fn solve(
    frame: &Frame<'_>,
    layout: &Layout,
    shapes: &[&[Dim]],
) -> Result<(Vec<Dim>, Vec<Constraint>), Vec<Refusal>> {
    match plain(frame, layout, shapes) {
        Some(dims) => Ok((dims, Vec::new())),
        None => search(frame, layout, shapes),
    }
}

/// As [`solve`], by passes.
fn search(
    frame: &Frame<'_>,
    layout: &Layout,
    shapes: &[&[Dim]],
) -> Result<(Vec<Dim>, Vec<Constraint>), Vec<Refusal>> {
    let mut solver = Solver::new(shapes).map_err(|refusal| alloc::vec![refusal])?;
    let meetings = meetings(frame, layout, shapes);
    let mut dims = Vec::new();
    for _ in 0..PASSES {
        solver.learnt = false;
        let (now, refusals) = solver.pass(frame, &meetings);
        if !refusals.is_empty() {
            return Err(refusals);
        }
        dims = now;
        if !solver.learnt {
            break;
        }
    }
    Ok((dims, solver.constraints.into_iter().collect()))
}

/// The result where there is nothing to solve, which is nearly always: on every axis a size, or a
/// symbol of which nothing is known, meets itself and ones.
fn plain(frame: &Frame<'_>, layout: &Layout, shapes: &[&[Dim]]) -> Option<Vec<Dim>> {
    let (true, true, Base::Ones) = (frame.grow, frame.stretch, frame.base) else { return None };
    let mut result = alloc::vec![&Dim::Size(1); frame.rank];
    for (dim, target) in shapes.iter().zip(&layout.targets).flat_map(|(own, to)| own.iter().zip(to))
    {
        let met = result.get_mut((*target)?)?;
        match dim {
            Dim::Size(1) => continue,
            Dim::Size(_) | Dim::Symbol(Symbol { range: Interval::UNKNOWN, .. }) => {}
            Dim::Symbol(_) | Dim::Range(_) | Dim::Join(_) => return None,
        }
        match *met {
            Dim::Size(1) => *met = dim,
            other if other == dim => {}
            _ => return None,
        }
    }
    Some(result.into_iter().cloned().collect())
}

/// How often all axes are looked at. Each pass records constraints that stand for themselves, so
/// stopping early leaves less known of the result and nothing untrue; and a chain of symbols, each
/// equal to the next, cannot make the work quadratic.
const PASSES: usize = 16;

/// What meets on a result axis, the base first where there is one.
type Meeting<'d> = Vec<(Side, &'d Dim)>;

/// What meets on each result axis; the last entry holds the dropped axes.
fn meetings<'d>(frame: &Frame<'_>, layout: &Layout, shapes: &[&'d [Dim]]) -> Vec<Meeting<'d>> {
    let mut meetings: Vec<Meeting<'d>> = alloc::vec![Vec::new(); frame.rank.saturating_add(1)];
    for (operand, (dims, targets)) in shapes.iter().zip(&layout.targets).enumerate() {
        for (axis, (dim, target)) in dims.iter().zip(targets).enumerate() {
            let side = Side { operand: Some(operand), axis, size: dim.interval() };
            // Never else: targets are below the rank, and one more entry takes the rest.
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
            // Never else: the first of a set is not above the last.
            Some((lo, hi)) => Interval::new(lo, Some(hi)).unwrap_or(self.range),
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
    /// Whether this pass has narrowed anything.
    learnt: bool,
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
                if let Dim::Join(symbols) = dim {
                    for Symbol { name, range } in symbols {
                        let part = Domain::from(*range);
                        known.entry(Term::Symbol(name.clone())).or_insert(part);
                    }
                }
                let entry = known.entry(term).or_insert_with(|| domain.clone());
                if !entry.narrow(&domain) {
                    let allowed = entry.range;
                    let given = dim.interval().lo();
                    return Err(Refusal::Bind { operand, axis: Some(axis), given, allowed });
                }
            }
        }
        Ok(Self { given: known.clone(), known, constraints: BTreeSet::new(), learnt: false })
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
                        let overhang = Refusal::Overhang { operand, axis, size, rank: frame.rank };
                        refusals.push(frame.refusal_override.unwrap_or(overhang));
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
                true => {
                    let parts: Vec<Party> = parties.iter().flat_map(|p| self.parts(p)).collect();
                    self.join(&parts)
                }
                false => self.onto(frame.stretch, &parties),
            };
            match solved {
                Ok(dim) => dims.push(dim),
                Err((a, b)) => {
                    // In the order of the operands, as people read them.
                    let (first, second) = if b.operand < a.operand { (b, a) } else { (a, b) };
                    let clash = Refusal::Clash { axis, rank: frame.rank, first, second };
                    refusals.push(frame.refusal_override.unwrap_or(clash));
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

    /// A join as the symbols that meet in it; anything else as it is.
    fn parts(&self, party: &Party) -> Vec<Party> {
        let Term::Join(symbols) = &party.term else { return alloc::vec![party.clone()] };
        let part = |name: &Arc<str>| {
            let term = Term::Symbol(name.clone());
            let domain = self.known.get(&term).cloned().unwrap_or(Domain::from(Interval::UNKNOWN));
            Party { side: Side { size: domain.interval(), ..party.side }, term, domain }
        };
        symbols.iter().map(part).collect()
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
                Term::Size(_) | Term::Axis { .. } | Term::Join(_) => None,
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
        // Never else: where nothing grows, the base is a party.
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
            let constraint = Constraint::OneOr(party.term.clone(), Term::Size(size));
            return self.require(party, &Domain { range: Interval::UNKNOWN, among }, constraint);
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
            return self.must_be(party, size);
        }
        if let Some(size) = party.size() {
            self.fixed(party);
            return self.must_be(chief, size);
        }
        let mut ours = self.current(party);
        if !ours.narrow(&self.current(chief)) {
            return false;
        }
        self.constraints.insert(Constraint::Equal(party.term.clone(), chief.term.clone()));
        self.learn(&party.term, ours.clone());
        self.learn(&chief.term, ours);
        true
    }

    /// Requires `party` to have that size; `false` where it cannot.
    fn must_be(&mut self, party: &Party, size: usize) -> bool {
        let constraint = Constraint::Equal(party.term.clone(), Term::Size(size));
        self.require(party, &Domain::from(size.into()), constraint)
    }

    /// Narrows `party` to `domain`; `false` where nothing is left. Records the constraint unless
    /// what was given implies it.
    fn require(&mut self, party: &Party, domain: &Domain, constraint: Constraint) -> bool {
        let mut narrowed = self.current(party);
        if !narrowed.narrow(domain) {
            return false;
        }
        if let Term::Size(_) = party.term {
            return true;
        }
        match narrowed.interval().size() {
            Some(_) => self.fixed(&Party { domain: narrowed.clone(), ..party.clone() }),
            None => _ = self.constraints.insert(constraint),
        }
        self.learn(&party.term, narrowed);
        true
    }

    fn learn(&mut self, term: &Term, domain: Domain) {
        if self.known.get(term) != Some(&domain) {
            self.known.insert(term.clone(), domain);
            self.learnt = true;
        }
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
            (Term::Join(names), range) if range.size().is_none() => {
                let symbol = |name: &Arc<str>| {
                    let known = self.known.get(&Term::Symbol(name.clone()));
                    let range = known.map_or(Interval::UNKNOWN, Domain::interval);
                    Symbol { name: name.clone(), range }
                };
                Dim::Join(names.iter().map(symbol).collect())
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
        Dim::Join(symbols) => {
            let mut names: Vec<Arc<str>> =
                symbols.iter().map(|symbol| symbol.name.clone()).collect();
            names.sort();
            names.dedup();
            Term::Join(names)
        }
        Dim::Size(_) | Dim::Range(_) => match dim.size() {
            Some(size) => Term::Size(size),
            None => Term::Axis { operand, axis },
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rule;

    #[test]
    fn where_nothing_is_to_solve_the_passes_say_the_same() {
        let named = |name: &str| Dim::Symbol(Symbol::new(name));
        let narrow = Symbol { name: "n".into(), range: Interval::new(1, Some(2)).unwrap() };
        let sizes =
            [Dim::Size(0), Dim::Size(1), Dim::Size(2), named("n"), named("m"), Dim::UNKNOWN]
                .into_iter()
                .chain([Dim::Symbol(narrow)]);
        let sizes: Vec<Dim> = sizes.collect();
        let pairs = sizes.iter().flat_map(|a| sizes.iter().map(|b| [a.clone(), b.clone()]));
        let pairs: Vec<[Dim; 2]> = pairs.collect();
        // Miri takes its time.
        let (every, least) = if cfg!(miri) { (61, 1) } else { (1, 500) };
        let (mut same, mut left) = (0, 0);
        let both = pairs.iter().flat_map(|a| pairs.iter().map(move |b| (a, b)));
        for (a, b) in both.step_by(every) {
            for shapes in [[&a[..], &b[..]], [&a[..], &b[..1]], [&a[..0], &b[..]]] {
                let rank = |operand: usize| shapes[operand].len();
                let frame = Rule::Numpy.frame(2, rank).unwrap();
                let layout = Layout::new(Rule::Numpy, 2, rank).unwrap();
                match plain(&frame, &layout, &shapes) {
                    Some(dims) => {
                        same += 1;
                        let solved = search(&frame, &layout, &shapes);
                        assert_eq!(solved, Ok((dims, Vec::new())), "{shapes:?}");
                    }
                    None => left += 1,
                }
            }
        }
        assert!(same > least && left > least, "{same} {left}");
    }
}
