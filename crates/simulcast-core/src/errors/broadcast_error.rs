//! Errors: what does not fit, where, and how to fix it; data first, text second.

use alloc::boxed::Box;
use alloc::string::ToString;
use alloc::vec::Vec;
use core::fmt;

use super::fix::{self, Fix};
use crate::plan::resolve::all_clashes;
use crate::{Dims, Interval, Layout, Names, OwnedRule, Refusal, Rule, Side};

// Implements E_BROADCAST_ANY_ERR_0010.
/// Why shapes do not broadcast: every clashing axis, both ways of counting it, the sizes, the
/// operands with their names and original shapes, and fixes that were checked to work.
///
/// ```
/// use simulcast_core::{Names, Rule, resolve};
///
/// let error = resolve(Rule::Numpy, &[&[2, 3, 4][..], &[2, 4]]).unwrap_err();
/// let error = error.with_names(Names::of(["image", "mask"]));
/// assert_eq!((error.code(), error.axis()), ("E1", Some(1)));
/// assert_eq!(error.fixes()[0].result(), [2, 3, 4]);
/// assert!(error.to_string().ends_with("help: mask[:, None, :] is (2, 1, 4), result (2, 3, 4)"));
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct BroadcastError(Box<Inner>);

#[derive(Clone, PartialEq, Eq)]
struct Inner {
    rule: OwnedRule,
    shapes: Vec<Dims>,
    layout: Option<Layout>,
    refusal: Refusal,
    clashes: Vec<Refusal>,
    fixes: Vec<Fix>,
    names: Names,
    /// What the shape is called that the rule itself carries.
    target: Option<&'static str>,
}

/// Two known sizes that meet on an axis of the result, and neither may stretch; see [`BroadcastError::clash`].
///
/// ```
/// use simulcast_core::{Rule, resolve};
///
/// let clash = resolve(Rule::To { target: &[2, 3] }, &[[4]]).unwrap_err().clash().unwrap();
/// assert_eq!((clash.axis, clash.sizes), (1, [3, 4]));
/// assert_eq!(clash.operands, [None, Some(0)]); // the target has 3, operand 0 has 4
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Clash {
    /// The axis of the result, counted from 0.
    pub axis: usize,
    /// The two sizes.
    pub sizes: [usize; 2],
    /// The operands that have them, counted from 0; `None` for the shape that the rule itself carries, or that of an output.
    pub operands: [Option<usize>; 2],
}

impl BroadcastError {
    /// The error for shapes of known sizes; looks for every clash and for fixes.
    ///
    /// For crates that refuse more than the rules do, such as a result that no array can hold.
    #[cold]
    pub fn new<S: AsRef<[usize]>>(rule: Rule<'_>, shapes: &[S], refusal: Refusal) -> Self {
        // The search for fixes is compiled once, not for each type of shapes.
        let shapes: Vec<&[usize]> = shapes.iter().map(AsRef::as_ref).collect();
        Self::searched(rule, &shapes, refusal)
    }

    fn searched(rule: Rule<'_>, shapes: &[&[usize]], refusal: Refusal) -> Self {
        // As people read shapes, whichever operand the clash was met at.
        let clashes = match refusal {
            Refusal::Clash { .. } | Refusal::Overhang { .. } => all_clashes(rule, shapes),
            _ => Vec::new(),
        };
        let refusal = match (refusal, clashes.first()) {
            (Refusal::Clash { .. }, Some(&first @ Refusal::Clash { .. })) => first,
            _ => refusal,
        };
        let fixes = fix::fixes(rule, shapes, &refusal);
        let layout =
            Layout::new(rule, shapes.len(), |m| shapes.get(m).map_or(0, |shape| shape.len()));
        let shapes = shapes.iter().map(|shape| Dims::from(*shape)).collect();
        Self::with(rule.into(), shapes, layout.ok(), refusal, clashes, fixes)
    }

    /// The error for symbolic shapes.
    #[cold]
    pub(crate) fn symbolic(rule: Rule<'_>, shapes: &[Dims], refusals: &[Refusal]) -> Self {
        let refusal = refusals.first().copied().unwrap_or(Refusal::Overflow);
        let clashes = match refusal {
            Refusal::Clash { .. } | Refusal::Overhang { .. } => refusals.to_vec(),
            _ => Vec::new(),
        };
        let rank = |m: usize| shapes.get(m).and_then(Dims::dims).map_or(0, <[_]>::len);
        let layout = Layout::new(rule, shapes.len(), rank).ok();
        Self::with(rule.into(), shapes.to_vec(), layout, refusal, clashes, Vec::new())
    }

    /// The same error, said of the operands as they were given.
    pub(crate) fn about(mut self, rule: Rule<'_>, shapes: &[Dims]) -> Self {
        self.0.rule = rule.into();
        self.0.shapes = shapes.to_vec();
        self.0.layout = None;
        self.without_fixes()
    }

    fn with(
        rule: OwnedRule,
        shapes: Vec<Dims>,
        layout: Option<Layout>,
        refusal: Refusal,
        clashes: Vec<Refusal>,
        fixes: Vec<Fix>,
    ) -> Self {
        let names = Names::default();
        let target = None;
        Self(Box::new(Inner { rule, shapes, layout, refusal, clashes, fixes, names, target }))
    }

    /// The error with names for its operands and their axes.
    #[must_use]
    pub fn with_names(mut self, names: Names) -> Self {
        self.0.names = names;
        self
    }

    /// The error with a name for the shape that the rule itself carries, such as `out` for an output, where that is an
    /// array of the caller's; without a name it is "the target".
    ///
    /// ```
    /// use simulcast_core::{Names, Rule, resolve};
    ///
    /// let error = resolve(Rule::To { target: &[1, 3] }, &[&[2, 3][..]]).unwrap_err();
    /// let error = error.with_names(Names::of(["result"])).with_target("out").without_fixes();
    /// let text = "E1: result (2, 3) does not broadcast to out (1, 3): axis 0 (-2): out has 1, result has 2";
    /// assert_eq!(error.to_string(), text);
    /// ```
    #[must_use]
    pub fn with_target(mut self, name: &'static str) -> Self {
        self.0.target = Some(name);
        self
    }

    /// The error without fixes, where neither the rule nor the operands are the caller's to change.
    #[must_use]
    pub fn without_fixes(mut self) -> Self {
        self.0.fixes.clear();
        self
    }

    /// The stable code: `E1` for incompatible sizes.
    #[must_use]
    pub fn code(&self) -> &'static str {
        self.0.refusal.code()
    }

    /// The first reason.
    #[must_use]
    pub fn refusal(&self) -> &Refusal {
        &self.0.refusal
    }

    /// Every clashing or overhanging axis; empty where the reason is another.
    #[must_use]
    pub fn clashes(&self) -> &[Refusal] {
        &self.0.clashes
    }

    /// The first clashing result axis, counted from 0.
    #[must_use]
    pub fn axis(&self) -> Option<usize> {
        match self.0.refusal {
            Refusal::Clash { axis, .. } => Some(axis),
            _ => None,
        }
    }

    /// The first clash, where its sizes are known: the axis, and the sizes that meet there. `None` where the reason is
    /// another ([`BroadcastError::refusal`] has it), or a size is symbolic.
    ///
    /// ```
    /// use simulcast_core::{Clash, Rule, resolve};
    ///
    /// let error = resolve(Rule::Numpy, &[&[2, 3, 4][..], &[2, 4]]).unwrap_err();
    /// let Some(Clash { axis, sizes: [a, b], .. }) = error.clash() else { panic!("no clash") };
    /// assert_eq!((axis, a, b), (1, 3, 2));
    /// ```
    #[must_use]
    pub fn clash(&self) -> Option<Clash> {
        match self.0.refusal {
            Refusal::Clash { axis, first, second, .. } => Some(Clash {
                axis,
                sizes: [first.size.size()?, second.size.size()?],
                operands: [first.operand, second.operand],
            }),
            _ => None,
        }
    }

    /// The rule that refused, with its parameters.
    #[must_use]
    pub fn rule(&self) -> &OwnedRule {
        &self.0.rule
    }

    /// The operands of the first clash, counted from 0.
    #[must_use]
    pub fn operands(&self) -> Vec<usize> {
        match self.0.refusal {
            Refusal::Clash { first, second, .. } => {
                first.operand.into_iter().chain(second.operand).collect()
            }
            Refusal::Rank { operand, .. }
            | Refusal::Duplicate { operand, .. }
            | Refusal::Overhang { operand, .. }
            | Refusal::Bind { operand, .. }
            | Refusal::Unnamed { operand, .. } => alloc::vec![operand],
            _ => Vec::new(),
        }
    }

    /// The sizes of the first clash.
    #[must_use]
    pub fn sizes(&self) -> Vec<Interval> {
        match self.0.refusal {
            Refusal::Clash { first, second, .. } => alloc::vec![first.size, second.size],
            Refusal::Overhang { size, .. } => alloc::vec![size],
            _ => Vec::new(),
        }
    }

    /// The shapes as they were given.
    #[must_use]
    pub fn shapes(&self) -> &[Dims] {
        &self.0.shapes
    }

    /// Where the rule lays the operands' axes, where it got that far.
    #[must_use]
    pub fn layout(&self) -> Option<&Layout> {
        self.0.layout.as_ref()
    }

    /// Changes that make the shapes broadcast, each checked to work; the likeliest first.
    #[must_use]
    pub fn fixes(&self) -> &[Fix] {
        &self.0.fixes
    }

    /// The names of operands and axes.
    #[must_use]
    pub fn names(&self) -> &Names {
        &self.0.names
    }

    /// A refusal of this error as text, with the operands' names.
    #[must_use]
    pub fn describe(&self, refusal: &Refusal) -> alloc::string::String {
        self.described(refusal).to_string()
    }

    fn described<'a>(&'a self, refusal: &'a Refusal) -> Described<'a> {
        Described(refusal, &self.0.names, self.0.target)
    }
}

struct Described<'a>(&'a Refusal, &'a Names, Option<&'static str>);

impl fmt::Display for Described<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let axis = |side: &Side| self.1.axis(side.operand?, side.axis);
        self.0.write(f, |f, operand| f.write_str(&self.1.operand(operand)), axis, self.2)
    }
}

/// How many shapes a text lists before it only counts them.
const LISTED: usize = 4;

impl fmt::Display for BroadcastError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { rule, shapes, refusal, clashes, fixes, names, target, .. } = &*self.0;
        write!(f, "{}: ", refusal.code())?;
        match shapes.len() {
            0 => f.write_str("no shapes")?,
            count if count > LISTED => write!(f, "{count} shapes")?,
            count => {
                for (operand, shape) in shapes.iter().enumerate() {
                    let left = count.saturating_sub(operand);
                    let before = match (operand, left) {
                        (0, _) => "",
                        (_, 1) => " and ",
                        _ => ", ",
                    };
                    write!(f, "{before}{} {shape}", names.operand(operand))?;
                }
            }
        }
        match (refusal, target, shapes.len()) {
            (Refusal::Memory, _, _) => f.write_str(": ")?,
            (_, Some(target), _) => {
                write!(f, " does not broadcast to {target}")?;
                match rule.target() {
                    Some(shape) => write!(f, " {}: ", Dims::from(shape))?,
                    None => f.write_str(": ")?,
                }
            }
            (_, None, 1) => write!(f, " does not broadcast under rule {}: ", rule.kind())?,
            (_, None, _) => write!(f, " do not broadcast under rule {}: ", rule.kind())?,
        }
        match clashes.len() {
            0 => write!(f, "{}", self.described(refusal))?,
            _ => {
                for (position, clash) in clashes.iter().take(LISTED).enumerate() {
                    f.write_str(if position > 0 { "; " } else { "" })?;
                    write!(f, "{}", self.described(clash))?;
                }
                if let Some(more @ 1..) = clashes.len().checked_sub(LISTED) {
                    write!(f, "; and {more} more")?;
                }
            }
        }
        match fixes.first() {
            Some(fix) => write!(f, "; help: {}", fix.describe(names)),
            None => Ok(()),
        }
    }
}

/// As its text: what `unwrap` shows.
impl fmt::Debug for BroadcastError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("BroadcastError").field(&format_args!("{self}")).finish()
    }
}

impl core::error::Error for BroadcastError {}
