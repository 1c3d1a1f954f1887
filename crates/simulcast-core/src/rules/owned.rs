//! A rule that owns its parameters, and its text: `numpy`, `pdpd:1`, `to:2,3`, `axes:2,3/0`.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;

use super::{Parts, Rule, RuleKind, RuleOf};
use crate::ShapeText;

/// A [`Rule`] that owns its parameters: what a plan remembers, and what a program stores.
///
/// ```
/// use simulcast_core::{OwnedRule, Rule};
///
/// let rule: OwnedRule = "axes:2,3/0".parse()?;
/// assert_eq!(rule.as_rule(), Rule::Axes { shape: &[2, 3], broadcast_axes: &[0] });
/// assert_eq!(rule.to_string(), "axes:2,3/0");
/// # Ok::<(), simulcast_core::RuleError>(())
/// ```
pub type OwnedRule = RuleOf<Vec<usize>>;

impl OwnedRule {
    /// The rule, borrowing the parameters.
    #[must_use]
    pub fn as_rule(&self) -> Rule<'_> {
        self.map(Vec::as_slice)
    }

    /// The shape that the rule itself carries, if it is of a kind that does.
    #[must_use]
    pub fn target(&self) -> Option<&[usize]> {
        self.parts().shape.map(Vec::as_slice)
    }
}

impl From<Rule<'_>> for OwnedRule {
    fn from(rule: Rule<'_>) -> Self {
        rule.map(|list| list.to_vec())
    }
}

/// As it is read; the labels of `named` are left out.
impl fmt::Display for OwnedRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |sizes: &[usize]| {
            let sizes: Vec<String> = sizes.iter().map(ToString::to_string).collect();
            sizes.join(",")
        };
        f.write_str(self.kind().name())?;
        let parts = self.parts();
        if let Some(axis) = parts.axis {
            write!(f, ":{axis}")?;
        }
        match parts.shape {
            None => {}
            Some(shape) if shape.is_empty() => f.write_str(":()")?,
            Some(shape) => write!(f, ":{}", list(shape))?,
        }
        match parts.axes {
            None => Ok(()),
            Some(axes) => write!(f, "/{}", list(axes)),
        }
    }
}

/// Why a text is not a rule.
///
/// ```
/// use simulcast_core::{OwnedRule, RuleError};
///
/// let error: RuleError = "nunpy".parse::<OwnedRule>().unwrap_err();
/// assert!(error.to_string().contains("nunpy"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleError(String);

impl fmt::Display for RuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl core::error::Error for RuleError {}

impl RuleError {
    /// The error for a name that no rule has.
    #[must_use]
    pub fn unknown(name: &str) -> Self {
        let names: Vec<&str> = RuleKind::ALL.iter().map(|kind| kind.name()).collect();
        let name: String = name.chars().take(40).collect();
        Self(format!("there is no rule {name:?}; there are {}", names.join(", ")))
    }
}

impl FromStr for RuleKind {
    type Err = RuleError;

    /// Reads a [`name`](Self::name); `uni` and `none` are short for `unidirectional` and `exact`.
    fn from_str(name: &str) -> Result<Self, RuleError> {
        let known = Self::ALL.iter().copied().find(|kind| {
            let facts = kind.facts();
            [Some(kind.name()), facts.alias].contains(&Some(name))
        });
        known.ok_or_else(|| RuleError::unknown(name))
    }
}

impl FromStr for OwnedRule {
    type Err = RuleError;

    /// Reads `numpy`, `pdpd:1`, `to:2,3`, `axes:2,3/0`; `uni` and `none` are short for
    /// `unidirectional` and `exact`.
    fn from_str(text: &str) -> Result<Self, RuleError> {
        let (name, parameter) = match text.split_once(':') {
            Some((name, parameter)) => (name.trim(), Some(parameter.trim())),
            None => (text.trim(), None),
        };
        let kind: RuleKind = name.parse()?;
        let takes = kind.parameters();
        // The labels are made later, from the names of axes.
        let mut parts = Parts { labels: takes.labels.then(Vec::new), ..Parts::default() };
        match (parameter, takes.shape, takes.axes) {
            (Some(both), Some(_), Some(_)) => {
                let cut = both.split_once('/').or_else(|| both.rsplit_once(':'));
                let Some((shape, axes)) = cut else {
                    let how =
                        format!("rule {name} is written {name}:SHAPE/AXES, such as {name}:2,3/0");
                    return Err(RuleError(how));
                };
                parts.shape = Some(sizes(shape)?);
                parts.axes = Some(match axes.trim() {
                    "" => Vec::new(),
                    axes => sizes(axes)?,
                });
            }
            (None, Some(_), Some(_)) => {
                return Err(RuleError(format!(
                    "rule {name} needs a shape and axes, such as {name}:2,3/0"
                )));
            }
            (Some(target), Some(_), None) => parts.shape = Some(sizes(target)?),
            (None, Some(_), None) => {
                return Err(RuleError(format!("rule {name} needs a shape, such as {name}:2,3")));
            }
            (Some(axis), None, _) if takes.axis => {
                let axis = axis.parse();
                let axis = axis.map_err(|_| {
                    RuleError(format!("{:?} is not an axis", parameter.unwrap_or_default()))
                });
                parts.axis = Some(axis?);
            }
            (Some(_), None, _) => {
                return Err(RuleError(format!("rule {name} takes no parameter")));
            }
            (None, None, _) => {}
        }
        Self::from_parts(kind, parts).ok_or_else(|| RuleError::unknown(name))
    }
}

#[cfg(feature = "serde")]
mod stored {
    //! A rule as it is written down: its kind, and lists that are empty where it takes none.

    use alloc::string::String;
    use alloc::vec::Vec;

    use super::super::{Parts, RuleKind};
    use super::OwnedRule;

    #[derive(serde::Serialize, serde::Deserialize)]
    struct Stored {
        kind: RuleKind,
        axis: Option<isize>,
        shape: Vec<usize>,
        axes: Vec<usize>,
    }

    impl serde::Serialize for OwnedRule {
        fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            let Parts { axis, shape, axes, labels } = self.parts();
            let (shape, axes) = (shape.cloned(), axes.or(labels).cloned());
            let (shape, axes) = (shape.unwrap_or_default(), axes.unwrap_or_default());
            Stored { kind: self.kind(), axis, shape, axes }.serialize(serializer)
        }
    }

    impl<'de> serde::Deserialize<'de> for OwnedRule {
        fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            let Stored { kind, axis, shape, axes } = Stored::deserialize(deserializer)?;
            let takes = kind.parameters();
            // What a kind does not take is empty; anything else is refused below.
            let list = |list: Vec<usize>, taken: bool| match (taken, list.is_empty()) {
                (false, true) => None,
                (true, _) | (false, false) => Some(list),
            };
            let (axes, labels) = match takes.labels {
                true => (None, Some(axes)),
                false => (list(axes, takes.axes.is_some()), None),
            };
            let parts = Parts { axis, shape: list(shape, takes.shape.is_some()), axes, labels };
            Self::from_parts(kind, parts).ok_or_else(|| {
                let why: String = ["rule ", kind.name(), " has other parameters"].concat();
                serde::de::Error::custom(why)
            })
        }
    }
}

fn sizes(text: &str) -> Result<Vec<usize>, RuleError> {
    let shape: ShapeText = text.parse().map_err(|error| RuleError(format!("{error}")))?;
    shape.dims.sizes().ok_or_else(|| RuleError(format!("{} must have known sizes", shape.dims)))
}

#[cfg(test)]
mod tests {
    use super::*;

    // [E_BROADCAST_ANY_FUNC_2200]
    #[test]
    fn what_is_shown_is_read_back() {
        let texts = [
            "numpy",
            "exact",
            "unidirectional",
            "pdpd",
            "pdpd:1",
            "paddle:-1",
            "legacy:0",
            "to:2,3",
            "to:()",
            "bidirectional:2",
            "axes:2,3/0",
            "axes:2,3/",
            "axes:()/",
            "mapping:2,4,3/0,2",
            "named",
        ];
        for text in texts {
            let rule: OwnedRule = text.parse().unwrap();
            assert_eq!(rule.to_string(), text);
            assert_eq!(OwnedRule::from(rule.as_rule()), rule);
            assert_eq!(rule.as_rule().kind(), rule.kind());
            let carries =
                text.contains("to:") | text.contains('/') | text.contains("bidirectional");
            assert_eq!(rule.target().is_some(), carries, "{text}");
        }
        assert_eq!("uni".parse::<OwnedRule>().unwrap().kind(), RuleKind::Unidirectional);
        assert_eq!("none".parse::<OwnedRule>().unwrap().kind(), RuleKind::Exact);
        assert_eq!("axes:2,3:0".parse::<OwnedRule>(), "axes:2,3/0".parse::<OwnedRule>());
    }

    // [E_BROADCAST_ANY_FUNC_2240]
    #[test]
    fn what_is_no_rule_is_said_clearly() {
        for (text, said) in [
            ("nosuch", "there is no rule \"nosuch\"; there are exact, numpy"),
            ("to", "rule to needs a shape, such as to:2,3"),
            ("to:N", "(N,) must have known sizes"),
            ("to:2,,3", "\"2,,3\" is not a shape: an axis is empty"),
            ("axes:2,3", "rule axes is written axes:SHAPE/AXES"),
            ("mapping", "rule mapping needs a shape and axes"),
            ("numpy:1", "rule numpy takes no parameter"),
            ("pdpd:x", "\"x\" is not an axis"),
        ] {
            let error = text.parse::<OwnedRule>().unwrap_err().to_string();
            assert!(error.starts_with(said), "{error}");
        }
    }
}
