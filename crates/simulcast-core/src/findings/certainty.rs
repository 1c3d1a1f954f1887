//! Certainty: whether sizes agree by chance, and the evidence that says so.
//!
//! Two lengths that are equal prove little: a batch of 4 meets a sequence of 4 in code that is right. What
//! is seen around the broadcast proves more. Whoever observes calls reports it as [`Evidence`]; what follows
//! from it is decided here, and nowhere else.
//!
//! | what is known | SC102 | SC104 | SC101 | every other code |
//! |---|---|---|---|---|
//! | the sizes of one call | possible | possible | confirmed | confirmed |
//! | the same place, with another size ([`varied`](Evidence::varied)) | confirmed | confirmed | confirmed | confirmed |
//! | one symbol on both axes ([`symbol`](Evidence::symbol)) | confirmed | confirmed | confirmed | confirmed |
//! | the result is reduced to one number ([`reduced`](Evidence::reduced)) | confirmed | possible | confirmed | confirmed |
//! | and a 1 inserted on purpose ([`deliberate`](Evidence::deliberate)) | one lower | the same | one lower | the same |
//!
//! One lower than possible is no finding. The other codes do not rest on sizes that are equal, so there is
//! nothing that chance could have done.

use core::fmt;
use core::str::FromStr;

use super::{Finding, FindingCode, PolicyError};
use crate::{Dim, SymbolicPlan};

/// How sure it is that a finding is no coincidence of sizes.
///
/// ```
/// use simulcast_core::{Certainty, FindingCode};
///
/// assert_eq!("confirmed".parse(), Ok(Certainty::Confirmed));
/// assert!(Certainty::Possible < Certainty::Confirmed);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Certainty {
    /// One observation of sizes, which may agree by chance.
    Possible,
    /// Seen with two sizes, carried by one symbol, reduced to one number; or a code that does not rest on
    /// sizes that agree.
    Confirmed,
}

impl Certainty {
    /// Both levels, the lower first.
    pub const ALL: &'static [Self] = &[Self::Possible, Self::Confirmed];

    /// `possible` or `confirmed`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Possible => "possible",
            Self::Confirmed => "confirmed",
        }
    }
}

impl fmt::Display for Certainty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Certainty {
    type Err = PolicyError;

    fn from_str(text: &str) -> Result<Self, PolicyError> {
        let known = Self::ALL.iter().copied().find(|certainty| certainty.name() == text);
        known.ok_or_else(|| {
            PolicyError::new("certainty", text, Self::ALL.iter().map(|own| own.name()))
        })
    }
}

/// What is known about a broadcast beside the sizes of one call.
///
/// ```
/// use simulcast_core::{Certainty, Evidence, FindingCode};
///
/// let square = FindingCode::SquareOuter;
/// let once = Evidence::default();
/// assert_eq!(once.certainty(square), Some(Certainty::Possible));
/// let again = Evidence { varied: true, ..once };
/// assert_eq!(again.certainty(square), Some(Certainty::Confirmed));
/// let written_out = Evidence { deliberate: true, ..once };
/// assert_eq!(written_out.certainty(square), None);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Evidence {
    /// The same place in the program had the same finding with another size.
    pub varied: bool,
    /// The axes that agree have one symbol, so that they agree at every size.
    pub symbol: bool,
    /// The whole result is reduced to one number, as that of a loss is.
    pub reduced: bool,
    /// The same expression inserted the axis of size 1: `x[:, None]`, `unsqueeze`, `keepdims=True`.
    pub deliberate: bool,
}

impl Evidence {
    // Implements E_BROADCAST_ANY_FUNC_2140.
    /// How certain a finding of that code is, by the table of `findings/certainty.rs`; `None` where it is no
    /// finding.
    #[must_use]
    pub const fn certainty(self, code: FindingCode) -> Option<Certainty> {
        let alone = code.certainty_alone();
        match code {
            FindingCode::SquareOuter | FindingCode::MutualGrowth => self.weigh(alone),
            FindingCode::AmbiguousAlignment => {
                Self { reduced: false, deliberate: false, ..self }.weigh(alone)
            }
            _ => Some(alone),
        }
    }

    /// What becomes of a certainty by evidence of which all applies.
    #[must_use]
    pub const fn weigh(self, alone: Certainty) -> Option<Certainty> {
        let raised = match (alone, self.varied, self.symbol, self.reduced) {
            (Certainty::Possible, false, false, false) => Certainty::Possible,
            _ => Certainty::Confirmed,
        };
        match (raised, self.deliberate) {
            (raised, false) => Some(raised),
            (Certainty::Confirmed, true) => Some(Certainty::Possible),
            (Certainty::Possible, true) => None,
        }
    }
}

impl SymbolicPlan {
    /// Whether the sizes that a finding rests on are one symbol, so that they agree whatever it stands for.
    pub(super) fn carries(&self, finding: &Finding) -> bool {
        match (finding.code, &*finding.operands, &*finding.axes) {
            (FindingCode::SquareOuter, &[p, q], &[by_p, by_q]) => {
                match (self.operand_dim(q, by_p), self.operand_dim(p, by_q)) {
                    (Some(column), Some(row)) => is_one_symbol(column, row),
                    (None, _) | (_, None) => false,
                }
            }
            (FindingCode::AmbiguousAlignment, &[operand], [_, starts @ ..]) => {
                let (own, result) = (self.shapes().get(operand), self.shape().dims());
                let (Some(own), Some(result)) = (own.and_then(|own| own.dims()), result) else {
                    return false;
                };
                let fits = |(own, met): (&Dim, &Dim)| match own {
                    Dim::Size(1) => true,
                    own => is_one_symbol(own, met),
                };
                starts.iter().any(|start| own.iter().zip(result.iter().skip(*start)).all(fits))
            }
            _ => false,
        }
    }

    /// The dimension of an operand that feeds an axis of the result.
    fn operand_dim(&self, operand: usize, axis: usize) -> Option<&Dim> {
        let targets = self.layout()?.targets.get(operand)?;
        let own = targets.iter().position(|target| *target == Some(axis))?;
        self.shapes().get(operand)?.dims()?.get(own)
    }
}

/// Whether two dimensions are equal at every size.
fn is_one_symbol(a: &Dim, b: &Dim) -> bool {
    match a {
        Dim::Symbol(_) | Dim::Join(_) => a == b,
        Dim::Size(_) | Dim::Range(_) => false,
    }
}

impl FindingCode {
    /// How certain a finding of this code is by the sizes of one call.
    #[must_use]
    pub const fn certainty_alone(self) -> Certainty {
        match self {
            Self::SquareOuter | Self::AmbiguousAlignment => Certainty::Possible,
            _ => Certainty::Confirmed,
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString as _;

    use super::*;

    const NONE: Evidence =
        Evidence { varied: false, symbol: false, reduced: false, deliberate: false };

    /// A row of the module's table: its evidence, and the certainty of SC102, SC104, SC101 and SC103.
    type Row = (Evidence, [Option<Certainty>; 4]);

    // [E_BROADCAST_ANY_FUNC_2140]
    #[test]
    fn the_table_of_certainties() {
        let (possible, confirmed) = (Some(Certainty::Possible), Some(Certainty::Confirmed));
        let rows: [Row; 7] = [
            (NONE, [possible, possible, confirmed, confirmed]),
            (Evidence { varied: true, ..NONE }, [confirmed; 4]),
            (Evidence { symbol: true, ..NONE }, [confirmed; 4]),
            (Evidence { reduced: true, ..NONE }, [confirmed, possible, confirmed, confirmed]),
            (Evidence { deliberate: true, ..NONE }, [None, possible, possible, confirmed]),
            (
                Evidence { varied: true, deliberate: true, ..NONE },
                [possible, confirmed, possible, confirmed],
            ),
            (
                Evidence { varied: true, symbol: true, reduced: true, deliberate: true },
                [possible, confirmed, possible, confirmed],
            ),
        ];
        for (evidence, expected) in rows {
            let codes = [
                FindingCode::SquareOuter,
                FindingCode::AmbiguousAlignment,
                FindingCode::MutualGrowth,
                FindingCode::RankPromotion,
            ];
            assert_eq!(codes.map(|code| evidence.certainty(code)), expected, "{evidence:?}");
        }
    }

    #[test]
    fn names_are_read_back() {
        for &certainty in Certainty::ALL {
            assert_eq!(certainty.name().parse(), Ok(certainty));
        }
        let error = "sure".parse::<Certainty>().unwrap_err().to_string();
        assert_eq!(error, "there is no certainty \"sure\"; there are possible, confirmed");
    }
}
