//! A rule that owns its parameters, and its text: `numpy`, `pdpd:1`, `to:2,3`, `axes:2,3/0`.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;

use super::{Rule, RuleKind};
use crate::ShapeText;

/// A [`Rule`] that owns its parameters: what a plan remembers, and what a program stores.
///
/// ```
/// use simulcast_core::{OwnedRule, Rule};
///
/// let rule: OwnedRule = "axes:2,3/0".parse()?;
/// assert_eq!(rule.rule(), Rule::Axes { shape: &[2, 3], broadcast_axes: &[0] });
/// assert_eq!(rule.to_string(), "axes:2,3/0");
/// # Ok::<(), simulcast_core::RuleError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct OwnedRule {
    /// Which rule it is.
    pub kind: RuleKind,
    /// The `axis` of `pdpd`, `legacy` and `paddle`.
    pub axis: Option<isize>,
    /// The target of `to` and `bidirectional`, the shape of `axes` and `mapping`.
    pub shape: Vec<usize>,
    /// The `broadcast_axes`, the `axes_mapping`, or the labels of `named`.
    pub axes: Vec<usize>,
}

impl OwnedRule {
    /// A rule with no parameters.
    #[must_use]
    pub const fn new(kind: RuleKind) -> Self {
        Self { kind, axis: None, shape: Vec::new(), axes: Vec::new() }
    }

    /// The rule, borrowing the parameters.
    #[must_use]
    pub fn rule(&self) -> Rule<'_> {
        let (axis, shape, axes) = (self.axis, &self.shape, &self.axes);
        match self.kind {
            RuleKind::Exact => Rule::Exact,
            RuleKind::Numpy => Rule::Numpy,
            RuleKind::Unidirectional => Rule::Unidirectional,
            RuleKind::Pdpd => Rule::Pdpd { axis },
            RuleKind::Legacy => Rule::Legacy { axis },
            RuleKind::Paddle => Rule::Paddle { axis },
            RuleKind::Bidirectional => Rule::Bidirectional { target: shape },
            RuleKind::To => Rule::To { target: shape },
            RuleKind::Axes => Rule::Axes { shape, broadcast_axes: axes },
            RuleKind::Mapping => Rule::Mapping { shape, axes_mapping: axes },
            RuleKind::Named => Rule::Named { labels: axes },
        }
    }

    /// The shape that the rule itself carries, if it is of a kind that does.
    #[must_use]
    pub fn target(&self) -> Option<&[usize]> {
        match self.kind {
            RuleKind::Bidirectional | RuleKind::To | RuleKind::Axes | RuleKind::Mapping => {
                Some(&self.shape)
            }
            RuleKind::Exact
            | RuleKind::Numpy
            | RuleKind::Unidirectional
            | RuleKind::Pdpd
            | RuleKind::Legacy
            | RuleKind::Paddle
            | RuleKind::Named => None,
        }
    }
}

impl From<Rule<'_>> for OwnedRule {
    fn from(rule: Rule<'_>) -> Self {
        let mut owned = Self::new(rule.kind());
        match rule {
            Rule::Exact | Rule::Numpy | Rule::Unidirectional => {}
            Rule::Pdpd { axis } | Rule::Legacy { axis } | Rule::Paddle { axis } => {
                owned.axis = axis;
            }
            Rule::Bidirectional { target } | Rule::To { target } => owned.shape = target.to_vec(),
            Rule::Axes { shape, broadcast_axes: axes }
            | Rule::Mapping { shape, axes_mapping: axes } => {
                owned.shape = shape.to_vec();
                owned.axes = axes.to_vec();
            }
            Rule::Named { labels } => owned.axes = labels.to_vec(),
        }
        owned
    }
}

/// As it is read; the labels of `named` are left out.
impl fmt::Display for OwnedRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |sizes: &[usize]| {
            let sizes: Vec<String> = sizes.iter().map(ToString::to_string).collect();
            sizes.join(",")
        };
        f.write_str(self.kind.name())?;
        match (self.kind, self.axis) {
            (_, Some(axis)) => write!(f, ":{axis}"),
            (RuleKind::To | RuleKind::Bidirectional, None) => match self.shape.len() {
                0 => f.write_str(":()"),
                _ => write!(f, ":{}", list(&self.shape)),
            },
            (RuleKind::Axes | RuleKind::Mapping, None) => match self.shape.len() {
                0 => write!(f, ":()/{}", list(&self.axes)),
                _ => write!(f, ":{}/{}", list(&self.shape), list(&self.axes)),
            },
            _ => Ok(()),
        }
    }
}

/// Why a text is not a rule.
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

impl FromStr for OwnedRule {
    type Err = RuleError;

    /// Reads `numpy`, `pdpd:1`, `to:2,3`, `axes:2,3/0`; `uni` and `none` are short for
    /// `unidirectional` and `exact`.
    fn from_str(text: &str) -> Result<Self, RuleError> {
        let (name, parameter) = match text.split_once(':') {
            Some((name, parameter)) => (name.trim(), Some(parameter.trim())),
            None => (text.trim(), None),
        };
        let kind = match name {
            "uni" => RuleKind::Unidirectional,
            "none" => RuleKind::Exact,
            name => RuleKind::from_name(name).ok_or_else(|| RuleError::unknown(name))?,
        };
        let mut rule = Self::new(kind);
        match (kind, parameter) {
            (RuleKind::Pdpd | RuleKind::Paddle | RuleKind::Legacy, Some(axis)) => {
                let axis =
                    axis.parse().map_err(|_| RuleError(format!("{axis:?} is not an axis")))?;
                rule.axis = Some(axis);
            }
            (RuleKind::To | RuleKind::Bidirectional, Some(target)) => rule.shape = sizes(target)?,
            (RuleKind::Axes | RuleKind::Mapping, Some(both)) => {
                let cut = both.split_once('/').or_else(|| both.rsplit_once(':'));
                let Some((shape, axes)) = cut else {
                    let how =
                        format!("rule {name} is written {name}:SHAPE/AXES, such as {name}:2,3/0");
                    return Err(RuleError(how));
                };
                rule.shape = sizes(shape)?;
                rule.axes = match axes.trim() {
                    "" => Vec::new(),
                    axes => sizes(axes)?,
                };
            }
            (RuleKind::To | RuleKind::Bidirectional, None) => {
                return Err(RuleError(format!("rule {name} needs a shape, such as {name}:2,3")));
            }
            (RuleKind::Axes | RuleKind::Mapping, None) => {
                return Err(RuleError(format!(
                    "rule {name} needs a shape and axes, such as {name}:2,3/0"
                )));
            }
            (_, Some(_)) => return Err(RuleError(format!("rule {name} takes no parameter"))),
            (_, None) => {}
        }
        Ok(rule)
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
            assert_eq!(OwnedRule::from(rule.rule()), rule);
            assert_eq!(rule.rule().kind(), rule.kind);
            let carries =
                text.contains("to:") | text.contains('/') | text.contains("bidirectional");
            assert_eq!(rule.target().is_some(), carries, "{text}");
        }
        assert_eq!("uni".parse::<OwnedRule>().unwrap().kind, RuleKind::Unidirectional);
        assert_eq!("none".parse::<OwnedRule>().unwrap().kind, RuleKind::Exact);
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
