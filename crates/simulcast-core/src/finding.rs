//! Findings: broadcasts that are legal and suspicious, from shapes, names and rule alone.
//!
//! An operand *repeats* along a result axis where it stretches or lacks the axis, and the result's
//! size there is not 1. Scalars (rank 0) are meant to repeat, so they are left out of everything
//! but growth and emptying. Of many operands, the first [`LOOKED_AT`] with distinct shapes are
//! looked at, so that finding stays linear.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::fix::{self, Fix};
use crate::{Alignment, Plan, Rule, RuleKind, Source, tuple};

/// Operands with distinct shapes that are compared with each other.
pub const LOOKED_AT: usize = 32;

/// The stable codes of findings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum FindingCode {
    /// `SC100`: an operand repeats where the policy's level does not let it.
    Repeat,
    /// `SC101`: two operands each repeat along an axis where the other does not.
    MutualGrowth,
    /// `SC102`: a column meets a row of the same length, such as `(n, 1)` with `(n,)`.
    SquareOuter,
    /// `SC103`: an operand that is no scalar was given axes on the left.
    RankPromotion,
    /// `SC104`: an operand would fit at another place too, such as `(3,)` on `(3, 3)`.
    AmbiguousAlignment,
    /// `SC105`: the result is much larger than all operands together.
    Growth,
    /// `SC106`: an axis with a name has size 1 and stretches.
    NamedStretch,
    /// `SC107`: an axis of size 1 meets one of size 0 and becomes empty.
    ///
    /// The source documents' rule, the maximum, makes exactly these an error `E1`; raising this
    /// finding is their strict reading.
    Emptied,
    /// `SC111`: axes of one size and different names meet by position.
    NameMismatch,
}

impl FindingCode {
    /// Every code, in order.
    pub const ALL: [Self; 9] = [
        Self::Repeat,
        Self::MutualGrowth,
        Self::SquareOuter,
        Self::RankPromotion,
        Self::AmbiguousAlignment,
        Self::Growth,
        Self::NamedStretch,
        Self::Emptied,
        Self::NameMismatch,
    ];

    /// The code as text.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Repeat => "SC100",
            Self::MutualGrowth => "SC101",
            Self::SquareOuter => "SC102",
            Self::RankPromotion => "SC103",
            Self::AmbiguousAlignment => "SC104",
            Self::Growth => "SC105",
            Self::NamedStretch => "SC106",
            Self::Emptied => "SC107",
            Self::NameMismatch => "SC111",
        }
    }

    /// What the code stands for, in a few words.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Repeat => "an operand repeats where the level forbids it",
            Self::MutualGrowth => "both operands grow",
            Self::SquareOuter => "a column meets a row of the same length",
            Self::RankPromotion => "axes were added on the left",
            Self::AmbiguousAlignment => "an operand would fit elsewhere too",
            Self::Growth => "the result is much larger than the operands",
            Self::NamedStretch => "a named axis stretches",
            Self::Emptied => "an axis of size 1 becomes empty",
            Self::NameMismatch => "axes of different names meet",
        }
    }

    /// The code of that text.
    #[must_use]
    pub fn from_text(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|code| code.as_str().eq_ignore_ascii_case(text))
    }
}

impl fmt::Display for FindingCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A legal but suspicious broadcast.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The stable code.
    pub code: FindingCode,
    /// The operands concerned.
    pub operands: Vec<usize>,
    /// The result axes concerned.
    pub axes: Vec<usize>,
    /// What was found, with names and sizes.
    pub message: String,
    /// What could be meant instead, checked to resolve.
    pub fixes: Vec<Fix>,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.message)
    }
}

/// The limits above which growth is a finding.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// How many times larger the result may be than all operands together.
    pub growth: f64,
    /// How many bytes the result may have; `None` for any number.
    pub bytes: Option<usize>,
    /// The size of an element, for `bytes`.
    pub element: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { growth: 16.0, bytes: None, element: 8 }
    }
}

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
        self.rank_promotion(&looked, &mut found);
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
            let message = format!("both operands grow: {a} along axis {i}, {b} along axis {j}");
            let (code, fixes) = (FindingCode::MutualGrowth, Vec::new());
            found.push(Finding { code, operands, axes, message, fixes });
            return;
        }
        let size = self.shape().get(i).copied().unwrap_or(0);
        let message = format!(
            "a column meets a row of the same length {size}: {a} repeats along axis {i}, {b} along axis {j}"
        );
        let (short, long) = if p.rank < q.rank { (p, q) } else { (q, p) };
        let fixes = self.search(&[short.number, long.number], |plan| {
            plan.growing_pair(&Operand::distinct(plan)).is_none()
        });
        found.push(Finding { code: FindingCode::SquareOuter, operands, axes, message, fixes });
    }

    // Implements E_BROADCAST_ANY_FUNC_2110.
    /// Two operands that each repeat along an axis where the other does not: a square pair if there
    /// is one, otherwise the first.
    fn growing_pair<'o>(&self, looked: &'o [Operand]) -> Option<Pair<'o>> {
        let rank = self.shape().len();
        let only = |a: &Operand, b: &Operand| -> Vec<usize> {
            (0..rank).filter(|axis| a.repeats_at(*axis) & !b.repeats_at(*axis)).collect()
        };
        let mut first = None;
        for (position, p) in looked.iter().enumerate() {
            for q in looked.iter().skip(position.saturating_add(1)) {
                let (by_p, by_q) = (only(p, q), only(q, p));
                let (Some(&i), Some(&j)) = (by_p.first(), by_q.first()) else { continue };
                let square = match self.alignment() {
                    Alignment::Right if p.rank != q.rank => self.square(&by_p, &by_q),
                    Alignment::Right | Alignment::Given => None,
                };
                if let Some(axes) = square {
                    return Some(Pair { p, q, axes, square: true });
                }
                first.get_or_insert(Pair { p, q, axes: (i, j), square: false });
            }
        }
        first
    }

    /// Whether a column meets a row of the same length.
    pub(crate) fn is_square_outer(&self) -> bool {
        self.growing_pair(&Operand::distinct(self)).is_some_and(|pair| pair.square)
    }

    /// Two axes of one size above 1, one from each list.
    fn square(&self, by_p: &[usize], by_q: &[usize]) -> Option<(usize, usize)> {
        let size = |axis: &usize| self.shape().get(*axis).copied().unwrap_or(0);
        let pairs = by_p.iter().flat_map(|i| by_q.iter().map(move |j| (*i, *j)));
        pairs.filter(|(i, _)| size(i) > 1).find(|(i, j)| size(i) == size(j))
    }

    /// Edits of right-aligned operands that resolve to a plan that `accept` likes.
    fn search(&self, operands: &[usize], accept: impl Fn(&Plan) -> bool) -> Vec<Fix> {
        let shapes: Result<Vec<_>, _> =
            (0..self.operands()).map(|m| self.operand_shape(m)).collect();
        let (Ok(shapes), RuleKind::Numpy) = (shapes, self.rule()) else { return Vec::new() };
        let mut fixes = fix::search(Rule::Numpy, &shapes, operands, accept);
        fixes.retain(|fix| !matches!(fix.edit(), fix::Edit::Transpose { .. }));
        fixes
    }

    /// SC103: JAX's rule.
    fn rank_promotion(&self, looked: &[Operand], found: &mut Vec<Finding>) {
        if self.alignment() == Alignment::Given {
            return;
        }
        let rank = self.shape().len();
        let Some(operand) = looked.iter().find(|operand| operand.rank < rank) else { return };
        let added = rank.saturating_sub(operand.rank);
        let name = self.operand_name(operand.number);
        let plural = if added == 1 { "axis" } else { "axes" };
        found.push(Finding {
            code: FindingCode::RankPromotion,
            operands: alloc::vec![operand.number],
            axes: (0..added).collect(),
            message: format!(
                "{name} has rank {} and was given {added} {plural} on the left",
                operand.rank
            ),
            fixes: Vec::new(),
        });
    }

    /// SC104: the sizes other than 1 of an operand would meet equal ones at another offset.
    fn ambiguous(&self, looked: &[Operand], found: &mut Vec<Finding>) {
        if self.alignment() == Alignment::Given {
            return;
        }
        let rank = self.shape().len();
        for operand in looked {
            let shape = self.operand_shape(operand.number).unwrap_or_default();
            let right = rank.saturating_sub(shape.len());
            if shape.iter().all(|&size| size == 1) {
                continue;
            }
            let fits = |start: &usize| {
                let places = self.shape().iter().skip(*start);
                shape.iter().zip(places).all(|(&own, &size)| (own == 1) | (own == size))
            };
            let Some(start) = (0..right).rev().find(fits) else { continue };
            let name = self.operand_name(operand.number);
            let fixes = self.search(&[operand.number], |plan| plan.shape() == self.shape());
            found.push(Finding {
                code: FindingCode::AmbiguousAlignment,
                operands: alloc::vec![operand.number],
                axes: alloc::vec![right, start],
                message: format!(
                    "{name} {} lies on axis {right} and would fit from axis {start} too",
                    tuple(&shape)
                ),
                fixes,
            });
            return;
        }
    }

    /// SC105: by factor, or by bytes.
    fn growth(&self, limits: &Limits, found: &mut Vec<Finding>) {
        let Ok(cost) = self.cost() else {
            found.push(Finding {
                code: FindingCode::Growth,
                operands: Vec::new(),
                axes: Vec::new(),
                message: "the number of elements of the result overflows".into(),
                fixes: Vec::new(),
            });
            return;
        };
        let bytes = cost.result_bytes(limits.element).unwrap_or(usize::MAX);
        let message = match limits.bytes {
            _ if cost.growth() > limits.growth => {
                format!("the result has {:.1} times the elements of the operands", cost.growth())
            }
            Some(limit) if bytes > limit => {
                format!("the result takes {bytes} bytes, more than {limit}")
            }
            _ => return,
        };
        let (operands, axes, fixes) = (Vec::new(), Vec::new(), Vec::new());
        found.push(Finding { code: FindingCode::Growth, operands, axes, message, fixes });
    }

    /// SC106: a name promises a size; 1 is rarely it.
    fn named_stretch(&self, looked: &[Operand], found: &mut Vec<Finding>) {
        for operand in looked {
            for (axis, source) in operand.sources.iter().enumerate() {
                let Source::Stretched(own) = *source else { continue };
                let Some(name) = self.names().axis(operand.number, own) else { continue };
                let size = self.shape().get(axis).copied().unwrap_or(0);
                found.push(Finding {
                    code: FindingCode::NamedStretch,
                    operands: alloc::vec![operand.number],
                    axes: alloc::vec![axis],
                    message: format!(
                        "axis {name} of {} has size 1 and stretches to {size}",
                        self.operand_name(operand.number)
                    ),
                    fixes: Vec::new(),
                });
                return;
            }
        }
    }

    // Implements E_BROADCAST_ANY_FUNC_2120.
    /// SC107: what the source documents' maximum refuses and the size rule does not. Looks at every
    /// operand, scalars too, so that raising it is exactly their reading.
    fn emptied(&self, found: &mut Vec<Finding>) {
        let empty: BTreeSet<usize> =
            (0..).zip(self.shape()).filter(|&(_, &size)| size == 0).map(|(axis, _)| axis).collect();
        for operand in (0..self.operands()).filter(|_| !empty.is_empty()) {
            let own = self.axes(operand).unwrap_or(&[]);
            let kept = own.iter().filter(|&&(size, _)| size == 0);
            let kept: BTreeSet<usize> = kept.filter_map(|&(_, target)| target).collect();
            let Some(&axis) = empty.difference(&kept).next() else { continue };
            found.push(Finding {
                code: FindingCode::Emptied,
                operands: alloc::vec![operand],
                axes: alloc::vec![axis],
                message: format!(
                    "{} is repeated 0 times along axis {axis}, so the result is empty",
                    self.operand_name(operand)
                ),
                fixes: Vec::new(),
            });
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
                        found.push(Finding {
                            code: FindingCode::NameMismatch,
                            operands: alloc::vec![other, operand.number],
                            axes: alloc::vec![axis],
                            message: format!(
                                "on axis {axis}, {first} of {} meets {name} of {}",
                                self.operand_name(other),
                                self.operand_name(operand.number)
                            ),
                            fixes: Vec::new(),
                        });
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
        let mut seen = BTreeSet::new();
        let mut operands = Vec::new();
        for number in 0..plan.operands() {
            let axes = plan.axes(number).unwrap_or(&[]);
            let fresh = match plan.names().axes.get(number) {
                _ if axes.is_empty() => false,
                names => seen.insert((axes, names)),
            };
            let (true, Ok(sources)) = (fresh, plan.sources(number)) else { continue };
            let sizes = sources.iter().zip(plan.shape());
            let repeats = sizes.map(|(source, &size)| source.repeats(size)).collect();
            operands.push(Self { number, rank: axes.len(), sources, repeats });
            if operands.len() == LOOKED_AT {
                break;
            }
        }
        operands
    }

    fn repeats_at(&self, axis: usize) -> bool {
        self.repeats.get(axis).copied().unwrap_or(false)
    }
}
