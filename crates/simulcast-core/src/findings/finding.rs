//! Findings: their stable codes, what one says, and the limits of growth.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;

use super::{Certainty, PolicyError};
use crate::{Code, Fix};

/// The stable codes of findings.
///
/// ```
/// use simulcast_core::FindingCode;
///
/// assert_eq!("sc102".parse(), Ok(FindingCode::SquareOuter));
/// assert_eq!(FindingCode::SquareOuter.as_str(), "SC102");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum FindingCode {
    /// `SC100`: an operand repeats where the policy's strictness forbids it.
    Repeat,
    /// `SC101`: two operands each repeat along an axis where the other does not.
    MutualGrowth,
    /// `SC102`: a column meets a row of the same length: `(n, 1)` with `(n,)`.
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
    pub const ALL: &'static [Self] = &[
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

    /// The code's row in the list of all codes.
    #[expect(clippy::indexing_slicing, reason = "of a constant, in a constant")]
    #[must_use]
    pub fn code(self) -> &'static Code {
        // Never else: a test finds every code in the list.
        Code::find(self.as_str()).unwrap_or(const { &Code::ALL[0] })
    }

    /// What the code stands for, in a few words.
    #[must_use]
    pub fn title(self) -> &'static str {
        self.code().title
    }
}

impl FromStr for FindingCode {
    type Err = PolicyError;

    /// Reads `SC102`, in capitals or not.
    fn from_str(text: &str) -> Result<Self, PolicyError> {
        let known = Self::ALL.iter().copied().find(|code| code.as_str().eq_ignore_ascii_case(text));
        known.ok_or_else(|| {
            PolicyError::new("finding", text, Self::ALL.iter().map(|own| own.as_str()))
        })
    }
}

impl fmt::Display for FindingCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A legal but suspicious broadcast.
///
/// ```
/// use simulcast_core::{FindingCode, Limits, Rule, resolve};
///
/// let found = resolve(Rule::Numpy, &[&[32, 1][..], &[32]])?.findings(&Limits::default());
/// assert_eq!(found[0].code, FindingCode::SquareOuter);
/// assert!(found[0].to_string().starts_with("SC102: "));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// The stable code.
    pub code: FindingCode,
    /// How sure it is that the sizes do not agree by chance; see [`Evidence`](crate::Evidence).
    pub certainty: Certainty,
    /// The operands concerned.
    pub operands: Vec<usize>,
    /// The result axes concerned.
    pub axes: Vec<usize>,
    /// What was found, with names and sizes.
    pub message: String,
    /// What could be meant instead, checked to resolve.
    pub fixes: Vec<Fix>,
}

impl Finding {
    /// A finding without fixes, as certain as a single observation makes it.
    pub(super) fn new(
        code: FindingCode,
        operands: Vec<usize>,
        axes: Vec<usize>,
        message: String,
    ) -> Self {
        let certainty = code.certainty_alone();
        Self { code, certainty, operands, axes, message, fixes: Vec::new() }
    }

    /// The finding with changes that were checked to work.
    pub(super) fn with_fixes(mut self, fixes: Vec<Fix>) -> Self {
        self.fixes = fixes;
        self
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.message)
    }
}

/// The limits above which growth is a finding.
///
/// ```
/// use simulcast_core::{FindingCode, Limits, Rule, resolve};
///
/// let plan = resolve(Rule::Numpy, &[&[1000, 1][..], &[999]])?;
/// let grown = |limits| plan.findings(&limits).iter().any(|found| found.code == FindingCode::Growth);
/// assert!(grown(Limits::default()));
/// assert!(!grown(Limits { growth: 1e6, ..Limits::default() }));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CodeKind;

    #[test]
    fn every_finding_is_in_the_list_of_codes() {
        let listed = Code::ALL.iter().filter(|code| code.kind == CodeKind::Finding);
        let listed: Vec<&str> = listed.map(|code| code.code).collect();
        let own: Vec<&str> = FindingCode::ALL.iter().map(|code| code.as_str()).collect();
        assert_eq!(listed, own);
        for &code in FindingCode::ALL {
            assert_eq!(code.code().code, code.as_str());
        }
    }
}
